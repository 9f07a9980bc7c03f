-- Tokens of the people of a team, for any number of servers on the same database. Only the hash of a token is kept.

CREATE TABLE bethink.tokens (
  tenant integer NOT NULL,
  id text COLLATE "C" NOT NULL,
  name text NOT NULL,
  hash text COLLATE "C" NOT NULL,                 -- SHA-256 of the token, in hexadecimal
  scope text NOT NULL CHECK (scope IN ('read', 'write')),
  projects text,                                  -- JSON; null: every project
  personal boolean NOT NULL,
  person text NOT NULL DEFAULT '',                -- whose it is: what is personal is theirs, and the audit trail names them
  created bigint NOT NULL,                        -- milliseconds since the epoch, as below
  expires bigint,
  used text NOT NULL DEFAULT '',                  -- the last day
  revoked bigint,
  PRIMARY KEY (tenant, id)
);
CREATE UNIQUE INDEX tokens_hash ON bethink.tokens (hash);
CREATE UNIQUE INDEX tokens_name ON bethink.tokens (tenant, name) WHERE revoked IS NULL;

ALTER TABLE bethink.tokens ENABLE ROW LEVEL SECURITY;
ALTER TABLE bethink.tokens FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON bethink.tokens TO bethink_app USING (tenant = bethink.tenant()) WITH CHECK (tenant = bethink.tenant());
CREATE POLICY keeping ON bethink.tokens FOR SELECT TO bethink_keeper USING (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON bethink.tokens TO bethink_app;
GRANT SELECT ON bethink.tokens TO bethink_keeper;

-- Which tenant a token opens is asked before any tenant is entered. Whoever asks has to know the token: it gives out one row, by its hash.
CREATE FUNCTION bethink.token(wanted text)
RETURNS TABLE (tenant text, id text, name text, hash text, scope text, projects text, personal boolean, person text, created bigint, expires bigint, used text, revoked bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog AS $$
  SELECT n.name, t.id, t.name, t.hash, t.scope, t.projects, t.personal, t.person, t.created, t.expires, t.used, t.revoked
  FROM bethink.tokens t JOIN bethink.tenants n ON n.id = t.tenant WHERE t.hash = wanted AND n.deleted_at IS NULL
$$;
REVOKE ALL ON FUNCTION bethink.token(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION bethink.token(text) TO bethink_app;
GRANT CREATE ON SCHEMA bethink TO bethink_keeper;  -- only for as long as the function changes hands
ALTER FUNCTION bethink.token(text) OWNER TO bethink_keeper;
REVOKE CREATE ON SCHEMA bethink FROM bethink_keeper;
