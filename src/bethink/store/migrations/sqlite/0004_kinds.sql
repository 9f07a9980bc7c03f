-- The last handoff, open questions, decisions: a session that starts asks for the newest of a kind, which may be rare.

CREATE INDEX memories_kind ON memories(scope, kind, created_at);
