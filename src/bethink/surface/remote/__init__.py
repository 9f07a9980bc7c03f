"""A team's server, from the machine of somebody in the team: `client` asks it, `outbox` keeps what cannot be delivered yet, `desk`
answers a local agent with it, `side` is its end of a sync."""
