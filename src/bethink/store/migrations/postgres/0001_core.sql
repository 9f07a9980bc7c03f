-- The whole model, for many tenants. Tables and columns are those of SQLite; in addition each row belongs to a tenant and a scope.
-- Times are milliseconds since the epoch, UTC. Numbers (keys of memories, scopes, sources …) are given out per tenant by `tenants.last`:
-- a sequence shared by all would tell one tenant how busy the others are. Every key leads with the tenant, so that rows can be sharded by it.
--
-- Who sees a row is decided by one policy for all tables, and by nothing else: its tenant, and its scope. The scope of what is personal
-- has a negative number, one for each person; 0 is what belongs to the whole tenant and to no scope.
--
-- Two roles serve, neither of which can log in, owns a table or bypasses row-level security:
--   bethink_app     whom every transaction acts as
--   bethink_keeper  whom a few functions act as: entering and leaving a tenant, looking words up, sealing the audit trail, purging

DO $$
DECLARE wanted text;
BEGIN
  FOREACH wanted IN ARRAY ARRAY['bethink_app', 'bethink_keeper'] LOOP
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = wanted) THEN
      BEGIN
        EXECUTE format('CREATE ROLE %I NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE', wanted);
      EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;  -- another database of this server was first
      END;
    END IF;
    IF NOT pg_has_role(current_user, wanted, 'SET') THEN
      EXECUTE format('GRANT %I TO CURRENT_USER WITH INHERIT FALSE, SET TRUE', wanted);
    END IF;
  END LOOP;
  -- Whoever can make temporary objects can put types and operators of their own in front of ours.
  EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
END $$;

GRANT USAGE ON SCHEMA bethink TO bethink_app, bethink_keeper;

-- For whom a transaction acts: told to the database anew in each one.
CREATE FUNCTION bethink.tenant() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE
  RETURN nullif(current_setting('bethink.tenant', true), '')::integer;
CREATE FUNCTION bethink.person() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
  RETURN coalesce(current_setting('bethink.person', true), '');

CREATE TABLE bethink.tenants (
  id integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  name text NOT NULL UNIQUE,
  last bigint NOT NULL DEFAULT 0,             -- the newest number given out
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  deleted_at timestamptz,                     -- a deleted tenant keeps its name, so that nobody enters an empty one by mistake
  sealed bigint NOT NULL DEFAULT 0,           -- the newest entry of its audit trail, and that entry's hash
  seal bytea NOT NULL DEFAULT ''
) WITH (fillfactor = 50);

-- Roles that log in and may act for one person of one tenant only, whatever they say. Any other may act for everybody.
CREATE TABLE bethink.logins (
  role name PRIMARY KEY,
  tenant integer NOT NULL REFERENCES bethink.tenants(id),
  person text NOT NULL CHECK (person <> '')
);

CREATE TABLE bethink.scopes (
  tenant integer NOT NULL DEFAULT bethink.tenant(),
  id bigint NOT NULL,
  key text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL DEFAULT '',
  name text NOT NULL DEFAULT '',
  path text NOT NULL DEFAULT '',
  memories bigint NOT NULL DEFAULT 0,
  words bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant, id),
  UNIQUE (tenant, key, owner),
  CHECK ((key = 'personal') = (id < 0)),      -- what is personal belongs to somebody
  CHECK ((key = 'personal') = (owner <> ''))
) WITH (fillfactor = 70);

-- The scope of what is personal to whoever acts; null where there is none.
CREATE FUNCTION bethink.mine() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
  RETURN (SELECT s.id FROM bethink.scopes s WHERE s.tenant = bethink.tenant() AND s.key = 'personal' AND s.owner = bethink.person());
-- Whether the role that logged in may act for whom it says it does.
CREATE FUNCTION bethink.allowed() RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
  RETURN NOT EXISTS (SELECT 1 FROM bethink.logins l WHERE l.role = session_user
                     AND (l.tenant, l.person) IS DISTINCT FROM (bethink.tenant(), bethink.person()));

CREATE TABLE bethink.meta (
  tenant integer NOT NULL DEFAULT bethink.tenant(), scope bigint NOT NULL, key text COLLATE "C" NOT NULL, value text NOT NULL,
  PRIMARY KEY (tenant, scope, key)
);

CREATE TABLE bethink.models (
  tenant integer NOT NULL DEFAULT bethink.tenant(), scope bigint NOT NULL DEFAULT 0,
  id bigint NOT NULL, name text COLLATE "C" NOT NULL, dimensions integer NOT NULL,
  PRIMARY KEY (tenant, id), UNIQUE (tenant, name)
);

CREATE TABLE bethink.sources (
  tenant integer NOT NULL DEFAULT bethink.tenant(),
  id bigint NOT NULL,
  scope bigint NOT NULL,
  uri text COLLATE "C" NOT NULL,
  type text NOT NULL,
  hash text,
  position bigint NOT NULL DEFAULT 0,
  read_at bigint NOT NULL,
  metadata text NOT NULL DEFAULT '{}',
  PRIMARY KEY (tenant, id),
  UNIQUE (tenant, scope, uri)
);
CREATE INDEX sources_uri ON bethink.sources (tenant, uri);

CREATE TABLE bethink.sessions (
  tenant integer NOT NULL DEFAULT bethink.tenant(),
  id text COLLATE "C" NOT NULL,
  scope bigint NOT NULL,
  host text NOT NULL DEFAULT '',
  title text NOT NULL DEFAULT '',
  source bigint,
  started_at bigint,
  ended_at bigint,
  metadata text NOT NULL DEFAULT '{}',
  PRIMARY KEY (tenant, id)
);
CREATE INDEX sessions_scope ON bethink.sessions (tenant, scope, started_at);
CREATE INDEX sessions_source ON bethink.sessions (tenant, source);

CREATE TABLE bethink.spans (
  tenant integer NOT NULL DEFAULT bethink.tenant(),
  key bigint NOT NULL,
  id text COLLATE "C" NOT NULL,
  scope bigint NOT NULL,
  session text COLLATE "C" NOT NULL,
  parent text COLLATE "C",
  name text NOT NULL,
  summary text NOT NULL DEFAULT '',
  line_start bigint NOT NULL,
  line_end bigint,
  depth integer NOT NULL DEFAULT 0,
  created_at bigint NOT NULL,
  metadata text NOT NULL DEFAULT '{}',
  PRIMARY KEY (tenant, key),
  UNIQUE (tenant, id)
);
CREATE INDEX spans_session ON bethink.spans (tenant, session, line_start);
CREATE INDEX spans_scope ON bethink.spans (tenant, scope, created_at);

CREATE TABLE bethink.memories (
  tenant integer NOT NULL DEFAULT bethink.tenant(),
  key bigint NOT NULL,
  scope bigint NOT NULL,
  source bigint NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  last_accessed bigint,
  valid_from bigint,
  valid_to bigint,
  expires_at bigint,
  deleted_at bigint,
  importance double precision NOT NULL,
  confidence double precision NOT NULL,
  usefulness double precision NOT NULL DEFAULT 0,
  access_count bigint NOT NULL DEFAULT 0,
  position bigint NOT NULL DEFAULT 0,
  line_start bigint,
  line_end bigint,
  trust smallint NOT NULL,
  answered smallint,
  id text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  superseded_by text COLLATE "C",
  span text COLLATE "C",
  session text COLLATE "C",
  dedup text COLLATE "C",                         -- the content hash where the text may stand only once in its scope, else null
  content_hash text COLLATE "C" NOT NULL,
  row_hash bytea NOT NULL,
  length integer NOT NULL DEFAULT 0,              -- words in the index
  lexemes bytea NOT NULL DEFAULT '',              -- as `store/lexemes.py` packs them: what scoring reads
  section text,
  summary text NOT NULL,
  tags text NOT NULL DEFAULT '[]',
  keywords text NOT NULL DEFAULT '[]',
  metadata text NOT NULL DEFAULT '{}',
  content text NOT NULL,
  PRIMARY KEY (tenant, key),
  UNIQUE (tenant, id)
) WITH (fillfactor = 85);
CREATE UNIQUE INDEX memories_once ON bethink.memories (tenant, scope, dedup) WHERE dedup IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX memories_recent ON bethink.memories (tenant, scope, created_at);
CREATE INDEX memories_source ON bethink.memories (tenant, source, position);
CREATE INDEX memories_session ON bethink.memories (tenant, session, position) WHERE session IS NOT NULL;
CREATE INDEX memories_span ON bethink.memories (tenant, span) WHERE span IS NOT NULL;
CREATE INDEX memories_kind ON bethink.memories (tenant, scope, kind, created_at);
CREATE INDEX memories_used ON bethink.memories (tenant, scope) WHERE usefulness <> 0 OR access_count > 0;
CREATE INDEX memories_doubted ON bethink.memories (tenant, scope, created_at) WHERE trust <= 1;
CREATE INDEX memories_hidden ON bethink.memories (tenant, scope)
  WHERE deleted_at IS NOT NULL OR superseded_by IS NOT NULL OR valid_to IS NOT NULL OR expires_at IS NOT NULL OR trust = 0;
CREATE INDEX memories_superseded ON bethink.memories (tenant, superseded_by) WHERE superseded_by IS NOT NULL;

-- The words of memories and of topics, apart from their rows: counting a use then copies no words and touches no index, and looking a word
-- up reads narrow rows, since the tsvector itself is kept out of line. Each lexeme begins with tenant and scope ("1f.3:deploy", in a summary
-- "1f.3~deploy"), so that a list of the index holds the memories of one scope and nobody pays for another's words.
CREATE TABLE bethink.words (
  tenant integer NOT NULL DEFAULT bethink.tenant(),
  scope bigint NOT NULL,
  key bigint NOT NULL,                            -- of a memory
  lexed tsvector NOT NULL,                        -- positions in the content are marked A, in the section C, among tags D
  PRIMARY KEY (tenant, key)
) WITH (toast_tuple_target = 128);
CREATE INDEX words_lexed ON bethink.words USING gin (lexed) WITH (fastupdate = off);

CREATE TABLE bethink.span_words (
  tenant integer NOT NULL DEFAULT bethink.tenant(),
  scope bigint NOT NULL,
  key bigint NOT NULL,                            -- of a topic
  lexed tsvector NOT NULL,                        -- name A, summary B
  PRIMARY KEY (tenant, key)
);
CREATE INDEX span_words_lexed ON bethink.span_words USING gin (lexed) WITH (fastupdate = off);

CREATE TABLE bethink.lexeme_counts (
  tenant integer NOT NULL DEFAULT bethink.tenant(), scope bigint NOT NULL, hash bigint NOT NULL, memories bigint NOT NULL,
  PRIMARY KEY (tenant, scope, hash)
) WITH (fillfactor = 85);

CREATE TABLE bethink.entities (
  tenant integer NOT NULL DEFAULT bethink.tenant(),
  scope bigint NOT NULL,
  id bigint NOT NULL,
  name text NOT NULL,
  folded text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, id),
  UNIQUE (tenant, folded, type, scope)
);

CREATE TABLE bethink.memory_entities (
  tenant integer NOT NULL DEFAULT bethink.tenant(), scope bigint NOT NULL, memory bigint NOT NULL, entity bigint NOT NULL,
  PRIMARY KEY (tenant, memory, entity)
);
CREATE INDEX memory_entities_entity ON bethink.memory_entities (tenant, entity);

CREATE TABLE bethink.relations (
  tenant integer NOT NULL DEFAULT bethink.tenant(),
  scope bigint NOT NULL,                          -- of whichever of both memories is personal
  source text COLLATE "C" NOT NULL,
  target text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  actor text NOT NULL,
  PRIMARY KEY (tenant, source, target, type)
);
CREATE INDEX relations_target ON bethink.relations (tenant, target);

-- One row per window of a text: 32-bit floats are the truth, and with their scale give back the very bytes that SQLite keeps.
CREATE TABLE bethink.vectors (
  tenant integer NOT NULL DEFAULT bethink.tenant(),
  memory bigint NOT NULL,
  model bigint NOT NULL,
  scope bigint NOT NULL,
  part integer NOT NULL,
  dimensions integer NOT NULL,
  scale real NOT NULL,
  data vector NOT NULL,
  PRIMARY KEY (tenant, memory, model, part)
);
CREATE INDEX vectors_scope ON bethink.vectors (tenant, model, scope);

CREATE TABLE bethink.span_vectors (
  tenant integer NOT NULL DEFAULT bethink.tenant(),
  span bigint NOT NULL,
  model bigint NOT NULL,
  scope bigint NOT NULL,
  part integer NOT NULL,
  dimensions integer NOT NULL,
  scale real NOT NULL,
  data vector NOT NULL,
  PRIMARY KEY (tenant, span, model, part)
);
CREATE INDEX span_vectors_scope ON bethink.span_vectors (tenant, model, scope);

-- The usual sizes of embeddings. Vectors of another size are compared one by one.
DO $$
DECLARE dimensions integer;
BEGIN
  FOREACH dimensions IN ARRAY ARRAY[384, 768, 1024, 1536, 3072] LOOP
    EXECUTE format('CREATE INDEX vectors_near_%1$s ON bethink.vectors USING hnsw ((data::halfvec(%1$s)) halfvec_cosine_ops) WHERE dimensions = %1$s', dimensions);
  END LOOP;
END $$;

-- How many vectors a scope has, and their sum: the mean cosine of a question is read from one row.
CREATE TABLE bethink.vector_totals (
  tenant integer NOT NULL DEFAULT bethink.tenant(), model bigint NOT NULL, scope bigint NOT NULL, vectors bigint NOT NULL, total vector NOT NULL,
  PRIMARY KEY (tenant, model, scope)
);

-- Each person's own: who knows that a text was embedded knows that it was said.
CREATE TABLE bethink.embedding_cache (
  tenant integer NOT NULL DEFAULT bethink.tenant(), scope bigint NOT NULL, hash bytea NOT NULL, model bigint NOT NULL, data bytea NOT NULL,
  PRIMARY KEY (tenant, hash, model, scope)
);

CREATE TABLE bethink.history (
  tenant integer NOT NULL DEFAULT bethink.tenant(),
  scope bigint NOT NULL,
  number bigint NOT NULL,
  memory bigint NOT NULL,
  at bigint NOT NULL,
  actor text NOT NULL,
  action text NOT NULL,
  before text,
  after text,
  PRIMARY KEY (tenant, number)
);
CREATE INDEX history_memory ON bethink.history (tenant, memory, number);

CREATE TABLE bethink.tombstones (
  tenant integer NOT NULL DEFAULT bethink.tenant(), scope bigint NOT NULL, hash bytea NOT NULL, at bigint NOT NULL,
  PRIMARY KEY (tenant, hash, scope)
);

CREATE TABLE bethink.turns (
  tenant integer NOT NULL DEFAULT bethink.tenant(), scope bigint NOT NULL, identity bytea NOT NULL, PRIMARY KEY (tenant, scope, identity)
);

-- Who changed what, one row per write. Rows are numbered, timed and sealed by the database: each hash covers the one before it.
CREATE TABLE bethink.audit (
  tenant integer NOT NULL DEFAULT bethink.tenant(),
  scope bigint NOT NULL DEFAULT 0,
  number bigint NOT NULL,
  at timestamptz NOT NULL,
  person text NOT NULL,
  actor text NOT NULL,
  mark text NOT NULL,                             -- the write's own name, by which a writer that lost its connection finds out whether it went in
  changes text NOT NULL,                          -- JSON: what was done to which ids
  hash bytea NOT NULL,
  PRIMARY KEY (tenant, number)
);

-- Tokens of the people of a team, for any number of servers on the same database. Only the hash of a token is kept.
CREATE TABLE bethink.tokens (
  tenant integer NOT NULL DEFAULT bethink.tenant(),
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

-- Two functions that SQLite has, so that both databases understand the same statements.
CREATE FUNCTION bethink.instr(text, text) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN strpos($1, $2);
CREATE FUNCTION bethink.json_each(text) RETURNS TABLE (value text) LANGUAGE sql IMMUTABLE PARALLEL SAFE
  BEGIN ATOMIC SELECT json_array_elements_text(replace($1, '\u0000', '\ufffd')::json); END;
CREATE INDEX memories_unvectored ON bethink.memories (tenant, deleted_at) WHERE strpos(metadata, '"vector_index"') > 0;

-- Nobody sees a row unless a policy lets them; the owner of the tables no more than others.
DO $$
DECLARE
  named text;
  tenant CONSTANT text := 'tenant = (SELECT bethink.tenant()) AND (SELECT bethink.allowed())';
  seen text;
BEGIN
  FOR named IN SELECT relname FROM pg_class WHERE relnamespace = 'bethink'::regnamespace AND relkind = 'r' AND relname <> 'migrations' LOOP
    EXECUTE format('ALTER TABLE bethink.%I ENABLE ROW LEVEL SECURITY', named);
    EXECUTE format('ALTER TABLE bethink.%I FORCE ROW LEVEL SECURITY', named);
    seen := CASE named
      WHEN 'tenants' THEN 'id = (SELECT bethink.tenant()) AND deleted_at IS NULL AND (SELECT bethink.allowed())'
      WHEN 'logins' THEN 'role = session_user'
      WHEN 'scopes' THEN tenant || ' AND (owner = '''' OR owner = (SELECT bethink.person()))'
      WHEN 'tokens' THEN tenant
      ELSE tenant || ' AND (scope >= 0 OR scope = (SELECT bethink.mine()))' END;
    EXECUTE format('CREATE POLICY own ON bethink.%I TO bethink_app USING (%s) WITH CHECK (%s)', named, seen, seen);
    -- What was written in history and in the audit trail stays as it was written.
    EXECUTE format('GRANT %s ON bethink.%I TO bethink_app', CASE
      WHEN named IN ('history', 'audit') THEN 'SELECT, INSERT'
      WHEN named = 'tenants' THEN 'SELECT, UPDATE (last)'
      WHEN named = 'logins' THEN 'SELECT'
      ELSE 'SELECT, INSERT, UPDATE, DELETE' END, named);
  END LOOP;
  FOREACH named IN ARRAY ARRAY['tenants', 'logins', 'scopes', 'words', 'span_words', 'tokens', 'memories', 'history', 'embedding_cache', 'meta'] LOOP
    EXECUTE format('CREATE POLICY keeping ON bethink.%I TO bethink_keeper USING (true) WITH CHECK (true)', named);
    EXECUTE format('GRANT SELECT ON bethink.%I TO bethink_keeper', named);
  END LOOP;
END $$;
GRANT SELECT ON bethink.migrations TO bethink_app;
GRANT INSERT, UPDATE (sealed, seal, deleted_at) ON bethink.tenants TO bethink_keeper;
GRANT INSERT, DELETE ON bethink.logins TO bethink_keeper;
GRANT DELETE ON bethink.history, bethink.embedding_cache, bethink.meta TO bethink_keeper;

-- Functions that act as the keeper. Each looks names up in pg_catalog first and among temporary objects last, names what is ours in full,
-- and asks itself whether the caller may act for whom it says it does.

-- The number of a tenant, which is made when it is new; null when it was deleted, or is none of the caller's.
CREATE FUNCTION bethink.enter(wanted text) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE found integer; gone timestamptz; bound integer;
BEGIN
  SELECT l.tenant INTO bound FROM bethink.logins l WHERE l.role = session_user;
  SELECT t.id, t.deleted_at INTO found, gone FROM bethink.tenants t WHERE t.name = wanted;
  IF found IS NULL AND bound IS NULL THEN
    INSERT INTO bethink.tenants (name) VALUES (wanted) ON CONFLICT (name) DO NOTHING;
    SELECT t.id, t.deleted_at INTO found, gone FROM bethink.tenants t WHERE t.name = wanted;
  END IF;
  RETURN CASE WHEN gone IS NULL AND (bound IS NULL OR bound = found) THEN found END;
END $$;

-- Deletes a tenant, for the owner of the database: from now on nobody sees anything of it. Gives its number; null when there is none.
CREATE FUNCTION bethink.leave(wanted text) RETURNS integer
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE bethink.tenants SET deleted_at = clock_timestamp() WHERE name = wanted AND deleted_at IS NULL RETURNING id;
$$;

-- Binds a role that logs in to one person of one tenant, for the owner of the database; to nobody, with null.
CREATE FUNCTION bethink.bind(login name, wanted text, person text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM bethink.logins l WHERE l.role = login;
  IF wanted IS NOT NULL THEN
    INSERT INTO bethink.logins (role, tenant, person) VALUES (login, bethink.enter(wanted), person);
  END IF;
END $$;

-- Keys of the memories that hold words, each with the sum of the weights of what it holds. Row-level security would keep the word index
-- from being used, since the planner does not trust `@@` with rows that may be hidden; so this runs as the keeper, says itself whose rows
-- are meant and gives out nothing but keys.
CREATE FUNCTION bethink.find(queries tsquery[], weights double precision[], most integer)
RETURNS TABLE (key bigint, weight double precision, total bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT bethink.allowed() THEN RETURN; END IF;
  RETURN QUERY EXECUTE
    'SELECT f.key, sum(f.weight), count(*) OVER () FROM ('
    '  SELECT w.key, q.weight FROM unnest($2, $3) AS q(query, weight) CROSS JOIN LATERAL'
    '    (SELECT w.key FROM bethink.words w WHERE w.lexed @@ q.query AND w.tenant = $1 AND (w.scope >= 0 OR w.scope = $5) OFFSET 0) w) f'
    ' GROUP BY f.key ORDER BY 2 DESC, 1 DESC LIMIT $4'
    USING bethink.tenant(), queries, weights, most, bethink.mine();
END $$;

CREATE FUNCTION bethink.find_spans(query tsquery) RETURNS TABLE (key bigint, lexed tsvector)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT bethink.allowed() THEN RETURN; END IF;
  RETURN QUERY EXECUTE
    'SELECT w.key, w.lexed FROM bethink.span_words w WHERE w.lexed @@ $2 AND w.tenant = $1 AND (w.scope >= 0 OR w.scope = $3) LIMIT 10000'
    USING bethink.tenant(), query, bethink.mine();
END $$;

-- Takes the history of memories out that are no more: of these, or of all with null. That of a memory that is there stays.
CREATE FUNCTION bethink.drop_history(keys bigint[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  DELETE FROM bethink.history h WHERE h.tenant = bethink.tenant() AND bethink.allowed() AND (keys IS NULL OR h.memory = ANY (keys))
    AND NOT EXISTS (SELECT 1 FROM bethink.memories m WHERE m.tenant = h.tenant AND m.key = h.memory);
$$;

-- After a purge: the vectors of its texts leave everybody's cache, and so does every answer that is kept, since any may quote it.
CREATE FUNCTION bethink.expunge(hashes bytea[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  DELETE FROM bethink.embedding_cache c WHERE c.tenant = bethink.tenant() AND bethink.allowed() AND c.hash = ANY (hashes);
  DELETE FROM bethink.meta f WHERE f.tenant = bethink.tenant() AND bethink.allowed() AND f.key >= 'note:answer:' AND f.key < 'note:answer;';
$$;

CREATE FUNCTION bethink.seal() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE before bethink.tenants%ROWTYPE;
BEGIN
  SELECT * INTO before FROM bethink.tenants WHERE id = new.tenant FOR UPDATE;
  new.number := before.sealed + 1;
  new.at := clock_timestamp();
  new.person := bethink.person();
  new.hash := sha256(before.seal || convert_to(concat_ws(chr(31), new.tenant, new.number, (extract(epoch FROM new.at) * 1000000)::bigint,
                                                         new.person, new.actor, new.mark, new.changes), 'UTF8'));
  UPDATE bethink.tenants SET sealed = new.number, seal = new.hash WHERE id = new.tenant;
  RETURN new;
END $$;
CREATE TRIGGER seal BEFORE INSERT ON bethink.audit FOR EACH ROW EXECUTE FUNCTION bethink.seal();

CREATE FUNCTION bethink.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'The audit trail cannot be changed.';
END $$;
CREATE TRIGGER refuse BEFORE UPDATE OR DELETE ON bethink.audit FOR EACH ROW EXECUTE FUNCTION bethink.refuse();
CREATE TRIGGER refuse_all BEFORE TRUNCATE ON bethink.audit FOR EACH STATEMENT EXECUTE FUNCTION bethink.refuse();

-- Which tenant a token opens is asked before any tenant is entered. Whoever asks has to know the token: it gives out one row, by its hash.
CREATE FUNCTION bethink.token(wanted text)
RETURNS TABLE (tenant text, id text, name text, hash text, scope text, projects text, personal boolean, person text, created bigint, expires bigint, used text, revoked bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT n.name, t.id, t.name, t.hash, t.scope, t.projects, t.personal, t.person, t.created, t.expires, t.used, t.revoked
  FROM bethink.tokens t JOIN bethink.tenants n ON n.id = t.tenant WHERE t.hash = wanted AND n.deleted_at IS NULL
$$;

-- Rights first, hands after: who is not the owner of a function cannot give its rights away.
DO $$
DECLARE
  made regprocedure;
  owner CONSTANT text := current_user;
BEGIN
  GRANT CREATE ON SCHEMA bethink TO bethink_keeper;  -- only for as long as the functions change hands
  FOR made IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'bethink'::regnamespace AND p.prosecdef LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', made);
    IF made::text !~ '\m(leave|bind)\(' THEN
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO bethink_app', made);
    END IF;
    EXECUTE format('ALTER FUNCTION %s OWNER TO bethink_keeper', made);
  END LOOP;
  REVOKE CREATE ON SCHEMA bethink FROM bethink_keeper;
  SET LOCAL ROLE bethink_keeper;
  EXECUTE format('GRANT EXECUTE ON FUNCTION bethink.leave(text), bethink.bind(name, text, text) TO %I', owner);
  RESET ROLE;
END $$;
