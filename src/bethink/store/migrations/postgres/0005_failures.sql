-- Failures are looked up by the signature of their error, at every failed command.

CREATE INDEX memories_signature ON bethink.memories (tenant, ((metadata::json) ->> 'signature')) WHERE kind = 'failure';
