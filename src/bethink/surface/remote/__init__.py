"""A team's server, from the machine of somebody in the team: `client` asks it and is its end of a sync, `outbox` calls its tools and keeps
what cannot be delivered yet, `tools` answers a local agent with it."""
