-- Failures are looked up by the signature of their error, at every failed command.

CREATE INDEX memories_signature ON memories(metadata ->> 'signature') WHERE kind = 'failure';
