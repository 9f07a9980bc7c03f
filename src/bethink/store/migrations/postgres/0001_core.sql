-- The whole model, for many tenants. Every key leads with the tenant, so that a shard or a partition holds whole tenants.
-- Times are milliseconds since the epoch, UTC. Numbers (keys of memories, scopes, sources …) are given out per tenant by `tenants.last`:
-- a sequence shared by all would tell one tenant how busy the others are.
--
-- Two roles serve, neither of which can log in, owns a table or bypasses row-level security:
--   bethink_app     whom every transaction acts as
--   bethink_keeper  whom a few functions act as: entering and leaving a tenant, looking words up, sealing the audit trail

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
END $$;

GRANT USAGE ON SCHEMA bethink TO bethink_app, bethink_keeper;

CREATE FUNCTION bethink.tenant() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE
  RETURN nullif(current_setting('bethink.tenant', true), '')::integer;
CREATE FUNCTION bethink.person() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
  RETURN coalesce(current_setting('bethink.person', true), '');

CREATE TABLE bethink.tenants (
  id integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  name text NOT NULL UNIQUE,
  last bigint NOT NULL DEFAULT 0,             -- the newest number given out
  salt text NOT NULL,                         -- of the tombstones
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  deleted_at timestamptz,                     -- a deleted tenant keeps its name, so that nobody enters an empty one by mistake
  sealed bigint NOT NULL DEFAULT 0,           -- the newest entry of its audit trail, and that entry's hash
  seal bytea NOT NULL DEFAULT ''
) WITH (fillfactor = 50);

-- One row per scope. What is personal is one scope for each person.
CREATE TABLE bethink.scopes (
  tenant integer NOT NULL,
  id bigint NOT NULL,
  key text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL DEFAULT '',
  name text NOT NULL DEFAULT '',
  path text NOT NULL DEFAULT '',
  memories bigint NOT NULL DEFAULT 0,
  words bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant, id),
  UNIQUE (tenant, key, owner)
) WITH (fillfactor = 70);

CREATE TABLE bethink.facts (tenant integer NOT NULL, name text COLLATE "C" NOT NULL, value text NOT NULL, PRIMARY KEY (tenant, name));

CREATE TABLE bethink.models (
  tenant integer NOT NULL, id bigint NOT NULL, name text COLLATE "C" NOT NULL, dimensions integer NOT NULL,
  PRIMARY KEY (tenant, id), UNIQUE (tenant, name)
);

CREATE TABLE bethink.sources (
  tenant integer NOT NULL,
  id bigint NOT NULL,
  scope bigint NOT NULL,
  uri text COLLATE "C" NOT NULL,
  type text NOT NULL,
  hash text,
  position bigint NOT NULL DEFAULT 0,
  read_at bigint NOT NULL,
  metadata text NOT NULL DEFAULT '{}',
  PRIMARY KEY (tenant, id)
) PARTITION BY HASH (tenant);
CREATE UNIQUE INDEX sources_uri ON bethink.sources (tenant, scope, md5(uri));
CREATE INDEX sources_anywhere ON bethink.sources (tenant, md5(uri));

CREATE TABLE bethink.sessions (
  tenant integer NOT NULL,
  id text COLLATE "C" NOT NULL,
  scope bigint NOT NULL,
  host text NOT NULL DEFAULT '',
  title text NOT NULL DEFAULT '',
  source bigint,
  started_at bigint,
  ended_at bigint,
  metadata text NOT NULL DEFAULT '{}',
  PRIMARY KEY (tenant, id)
) PARTITION BY HASH (tenant);
CREATE INDEX sessions_scope ON bethink.sessions (tenant, scope, started_at);

CREATE TABLE bethink.spans (
  tenant integer NOT NULL,
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
) PARTITION BY HASH (tenant);
CREATE INDEX spans_session ON bethink.spans (tenant, session, line_start);
CREATE INDEX spans_scope ON bethink.spans (tenant, scope, created_at);

CREATE TABLE bethink.memories (
  tenant integer NOT NULL,
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
  owner text COLLATE "C" NOT NULL DEFAULT '',     -- whose scope it is in, where that is personal
  kind text COLLATE "C" NOT NULL,
  superseded_by text COLLATE "C",
  span text COLLATE "C",
  session text COLLATE "C",
  dedup bytea,                                    -- the content hash where the text may stand only once in its scope, else null
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
  PRIMARY KEY (tenant, key)
) PARTITION BY HASH (tenant);
CREATE UNIQUE INDEX memories_id ON bethink.memories (tenant, id);
CREATE UNIQUE INDEX memories_once ON bethink.memories (tenant, scope, dedup) WHERE dedup IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX memories_recent ON bethink.memories (tenant, scope, created_at);
CREATE INDEX memories_source ON bethink.memories (tenant, source, position);
CREATE INDEX memories_session ON bethink.memories (tenant, session, position) WHERE session IS NOT NULL;
CREATE INDEX memories_span ON bethink.memories (tenant, span) WHERE span IS NOT NULL;
CREATE INDEX memories_kind ON bethink.memories (tenant, scope, kind, created_at);
CREATE INDEX memories_used ON bethink.memories (tenant, scope) WHERE usefulness <> 0 OR access_count > 0;
CREATE INDEX memories_doubted ON bethink.memories (tenant, scope, created_at) WHERE trust <= 1;
CREATE INDEX memories_superseded ON bethink.memories (tenant, superseded_by) WHERE superseded_by IS NOT NULL;

-- The words of memories and of topics, apart from their rows: counting a use then copies no words and touches no index, and looking a word
-- up reads narrow rows, since the tsvector itself is kept out of line. Each lexeme begins with tenant and scope ("1f.3:deploy", in a summary
-- "1f.3~deploy"), so that a list of the index holds the memories of one scope and nobody pays for another's words.
CREATE TABLE bethink.words (
  tenant integer NOT NULL,
  key bigint NOT NULL,                            -- of a memory
  lexed tsvector NOT NULL,                        -- positions in the content are marked A, in the section C, among tags D
  PRIMARY KEY (tenant, key)
) PARTITION BY HASH (tenant);
CREATE INDEX words_lexed ON bethink.words USING gin (lexed) WITH (fastupdate = off);

CREATE TABLE bethink.span_words (
  tenant integer NOT NULL,
  key bigint NOT NULL,                            -- of a topic
  lexed tsvector NOT NULL,                        -- name A, summary B
  PRIMARY KEY (tenant, key)
) PARTITION BY HASH (tenant);
CREATE INDEX span_words_lexed ON bethink.span_words USING gin (lexed) WITH (fastupdate = off);

CREATE TABLE bethink.lexeme_counts (
  tenant integer NOT NULL,
  scope bigint NOT NULL,
  hash bigint NOT NULL,
  memories bigint NOT NULL,
  PRIMARY KEY (tenant, scope, hash)
) PARTITION BY HASH (tenant);

CREATE TABLE bethink.entities (
  tenant integer NOT NULL,
  id bigint NOT NULL,
  name text NOT NULL,
  folded text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, id)
) PARTITION BY HASH (tenant);
CREATE UNIQUE INDEX entities_folded ON bethink.entities (tenant, md5(folded), type);

CREATE TABLE bethink.memory_entities (
  tenant integer NOT NULL, memory bigint NOT NULL, entity bigint NOT NULL,
  PRIMARY KEY (tenant, memory, entity)
) PARTITION BY HASH (tenant);
CREATE INDEX memory_entities_entity ON bethink.memory_entities (tenant, entity);

CREATE TABLE bethink.relations (
  tenant integer NOT NULL,
  source text COLLATE "C" NOT NULL,
  target text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  actor text NOT NULL,
  PRIMARY KEY (tenant, source, target, type)
) PARTITION BY HASH (tenant);
CREATE INDEX relations_target ON bethink.relations (tenant, target);

-- One row per window of a text: 32-bit floats are the truth, and with their scale give back the very bytes that SQLite keeps.
CREATE TABLE bethink.vectors (
  tenant integer NOT NULL,
  memory bigint NOT NULL,
  model bigint NOT NULL,
  scope bigint NOT NULL,
  part integer NOT NULL,
  dimensions integer NOT NULL,
  scale real NOT NULL,
  data vector NOT NULL,
  PRIMARY KEY (tenant, memory, model, part)
) PARTITION BY HASH (tenant);
CREATE INDEX vectors_scope ON bethink.vectors (tenant, model, scope);

CREATE TABLE bethink.span_vectors (
  tenant integer NOT NULL,
  span bigint NOT NULL,
  model bigint NOT NULL,
  scope bigint NOT NULL,
  part integer NOT NULL,
  dimensions integer NOT NULL,
  scale real NOT NULL,
  data vector NOT NULL,
  PRIMARY KEY (tenant, span, model, part)
) PARTITION BY HASH (tenant);
CREATE INDEX span_vectors_scope ON bethink.span_vectors (tenant, model, scope);

-- How many vectors a scope has, and their sum: the mean cosine of a question is read from one row.
CREATE TABLE bethink.vector_totals (
  tenant integer NOT NULL, model bigint NOT NULL, scope bigint NOT NULL, vectors bigint NOT NULL, total vector NOT NULL,
  PRIMARY KEY (tenant, model, scope)
);

CREATE TABLE bethink.embedding_cache (
  tenant integer NOT NULL, hash bytea NOT NULL, model bigint NOT NULL, data bytea NOT NULL,
  PRIMARY KEY (tenant, hash, model)
) PARTITION BY HASH (tenant);

CREATE TABLE bethink.history (
  tenant integer NOT NULL,
  number bigint NOT NULL,
  memory bigint NOT NULL,
  owner text COLLATE "C" NOT NULL DEFAULT '',
  at bigint NOT NULL,
  actor text NOT NULL,
  action text NOT NULL,
  before text,
  after text,
  PRIMARY KEY (tenant, number)
) PARTITION BY HASH (tenant);
CREATE INDEX history_memory ON bethink.history (tenant, memory, number);

CREATE TABLE bethink.tombstones (tenant integer NOT NULL, hash bytea NOT NULL, at bigint NOT NULL, PRIMARY KEY (tenant, hash));

CREATE TABLE bethink.turns (
  tenant integer NOT NULL, scope bigint NOT NULL, identity bytea NOT NULL, PRIMARY KEY (tenant, scope, identity)
) PARTITION BY HASH (tenant);

-- Who changed what, one row per write. Rows are numbered, timed and sealed by the database: each hash covers the one before it.
CREATE TABLE bethink.audit (
  tenant integer NOT NULL,
  number bigint NOT NULL,
  at timestamptz NOT NULL,
  person text NOT NULL,
  actor text NOT NULL,
  mark text NOT NULL,                             -- the write's own name, by which a writer that lost its connection finds out whether it went in
  changes text NOT NULL,                          -- JSON: what was done to which ids
  hash bytea NOT NULL,
  PRIMARY KEY (tenant, number)
) PARTITION BY HASH (tenant);

DO $$
DECLARE parent text; part integer; dimensions integer; partitions CONSTANT integer := 16;
BEGIN
  FOR parent IN SELECT relname FROM pg_class WHERE relnamespace = 'bethink'::regnamespace AND relkind = 'p' LOOP
    FOR part IN 0 .. partitions - 1 LOOP
      EXECUTE format('CREATE TABLE bethink.%I PARTITION OF bethink.%I FOR VALUES WITH (MODULUS %s, REMAINDER %s)',
                     parent || '_' || part, parent, partitions, part);
      IF parent IN ('memories', 'lexeme_counts') THEN
        EXECUTE format('ALTER TABLE bethink.%I SET (fillfactor = 85)', parent || '_' || part);
      ELSIF parent = 'words' THEN
        EXECUTE format('ALTER TABLE bethink.%I SET (toast_tuple_target = 128)', parent || '_' || part);
      END IF;
    END LOOP;
  END LOOP;
  -- The usual sizes of embeddings. Vectors of another size are compared one by one.
  FOREACH dimensions IN ARRAY ARRAY[384, 768, 1024, 1536, 3072] LOOP
    EXECUTE format('CREATE INDEX vectors_near_%1$s ON bethink.vectors USING hnsw ((data::halfvec(%1$s)) halfvec_cosine_ops) WHERE dimensions = %1$s', dimensions);
  END LOOP;
END $$;

-- Nobody sees a row unless a policy lets them; the owner of the tables no more than others.
DO $$
DECLARE named text; kind "char";
BEGIN
  FOR named, kind IN
    SELECT relname, relkind FROM pg_class WHERE relnamespace = 'bethink'::regnamespace AND relkind IN ('r', 'p') AND relname <> 'migrations'
  LOOP
    EXECUTE format('ALTER TABLE bethink.%I ENABLE ROW LEVEL SECURITY', named);
    EXECUTE format('ALTER TABLE bethink.%I FORCE ROW LEVEL SECURITY', named);
    CONTINUE WHEN named ~ '_[0-9]+$';  -- a partition is reached through its parent only
    IF named IN ('memories', 'history') THEN
      EXECUTE format('CREATE POLICY own ON bethink.%I TO bethink_app USING (tenant = bethink.tenant() AND (owner = '''' OR owner = bethink.person()))'
                     ' WITH CHECK (tenant = bethink.tenant() AND (owner = '''' OR owner = bethink.person()))', named);
    ELSIF named = 'scopes' THEN
      EXECUTE 'CREATE POLICY own ON bethink.scopes TO bethink_app USING (tenant = bethink.tenant() AND owner = CASE key WHEN ''personal'' THEN bethink.person() ELSE '''' END)'
              ' WITH CHECK (tenant = bethink.tenant() AND owner = CASE key WHEN ''personal'' THEN bethink.person() ELSE '''' END)';
    ELSIF named = 'tenants' THEN
      EXECUTE 'CREATE POLICY own ON bethink.tenants TO bethink_app USING (id = bethink.tenant() AND deleted_at IS NULL)';
    ELSE
      EXECUTE format('CREATE POLICY own ON bethink.%I TO bethink_app USING (tenant = bethink.tenant()) WITH CHECK (tenant = bethink.tenant())', named);
    END IF;
    IF named = 'audit' THEN
      GRANT SELECT, INSERT ON bethink.audit TO bethink_app;
    ELSIF named = 'tenants' THEN
      GRANT SELECT, UPDATE (last, salt) ON bethink.tenants TO bethink_app;
    ELSE
      EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON bethink.%I TO bethink_app', named);
    END IF;
  END LOOP;
END $$;
GRANT SELECT ON bethink.migrations TO bethink_app;

CREATE POLICY keeping ON bethink.tenants TO bethink_keeper USING (true) WITH CHECK (true);
CREATE POLICY keeping ON bethink.words FOR SELECT TO bethink_keeper USING (true);
CREATE POLICY keeping ON bethink.span_words FOR SELECT TO bethink_keeper USING (true);
GRANT SELECT, INSERT ON bethink.tenants TO bethink_keeper;
GRANT UPDATE (sealed, seal, deleted_at) ON bethink.tenants TO bethink_keeper;
GRANT SELECT ON bethink.words, bethink.span_words TO bethink_keeper;

-- The number of a tenant, which is made when it is new; null when it was deleted.
CREATE FUNCTION bethink.enter(wanted text, salt text) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE found integer; gone timestamptz;
BEGIN
  SELECT t.id, t.deleted_at INTO found, gone FROM bethink.tenants t WHERE t.name = wanted;
  IF found IS NULL THEN
    INSERT INTO bethink.tenants (name, salt) VALUES (wanted, salt) ON CONFLICT (name) DO NOTHING;
    SELECT t.id, t.deleted_at INTO found, gone FROM bethink.tenants t WHERE t.name = wanted;
  END IF;
  RETURN CASE WHEN gone IS NULL THEN found END;
END $$;

-- Deletes a tenant, for the owner of the database: from now on nobody sees anything of it. Gives its number; null when there is none.
CREATE FUNCTION bethink.leave(wanted text) RETURNS integer
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog AS $$
  UPDATE bethink.tenants SET deleted_at = clock_timestamp() WHERE name = wanted AND deleted_at IS NULL RETURNING id;
$$;

-- Keys of the memories that hold words, each with the sum of the weights of what it holds. Row-level security would keep the word index
-- from being used, since the planner does not trust `@@` with rows that may be hidden; so this runs as the keeper, names the tenant itself
-- and gives out nothing but keys. Dynamic, so that the planner knows the tenant and looks into one partition.
CREATE FUNCTION bethink.find(queries tsquery[], weights double precision[], most integer)
RETURNS TABLE (key bigint, weight double precision, total bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
  RETURN QUERY EXECUTE
    'SELECT f.key, sum(f.weight), count(*) OVER () FROM ('
    '  SELECT w.key, q.weight FROM unnest($2, $3) AS q(query, weight) CROSS JOIN LATERAL'
    '    (SELECT w.key FROM bethink.words w WHERE w.tenant = $1 AND w.lexed @@ q.query OFFSET 0) w) f'
    ' GROUP BY f.key ORDER BY 2 DESC, 1 DESC LIMIT $4'
    USING bethink.tenant(), queries, weights, most;
END $$;

CREATE FUNCTION bethink.find_spans(query tsquery) RETURNS TABLE (key bigint, lexed tsvector)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
  RETURN QUERY EXECUTE 'SELECT w.key, w.lexed FROM bethink.span_words w WHERE w.tenant = $1 AND w.lexed @@ $2 LIMIT 10000'
    USING bethink.tenant(), query;
END $$;

CREATE FUNCTION bethink.seal() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE before bethink.tenants%ROWTYPE;
BEGIN
  SELECT * INTO before FROM bethink.tenants WHERE id = new.tenant FOR UPDATE;
  new.number := before.sealed + 1;
  new.at := clock_timestamp();
  new.person := coalesce(current_setting('bethink.person', true), '');
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

-- Rights first, hands after: who is not the owner of a function cannot give its rights away.
REVOKE ALL ON FUNCTION bethink.enter(text, text), bethink.leave(text), bethink.find(tsquery[], double precision[], integer), bethink.find_spans(tsquery),
  bethink.seal() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION bethink.enter(text, text), bethink.find(tsquery[], double precision[], integer), bethink.find_spans(tsquery) TO bethink_app;
GRANT CREATE ON SCHEMA bethink TO bethink_keeper;  -- only for as long as the functions change hands
ALTER FUNCTION bethink.enter(text, text) OWNER TO bethink_keeper;
ALTER FUNCTION bethink.leave(text) OWNER TO bethink_keeper;
ALTER FUNCTION bethink.find(tsquery[], double precision[], integer) OWNER TO bethink_keeper;
ALTER FUNCTION bethink.find_spans(tsquery) OWNER TO bethink_keeper;
ALTER FUNCTION bethink.seal() OWNER TO bethink_keeper;
REVOKE CREATE ON SCHEMA bethink FROM bethink_keeper;

DO $$
DECLARE owner text := current_user;
BEGIN
  SET LOCAL ROLE bethink_keeper;
  EXECUTE format('GRANT EXECUTE ON FUNCTION bethink.leave(text) TO %I', owner);
  RESET ROLE;
END $$;
