-- The whole model. Times are milliseconds since the epoch, UTC. Columns that scoring reads by the hundred come before the long texts,
-- so that reading them never touches an overflow page.

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE scopes (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,               -- personal, project:<hash>, container:<hash>/<name>
  name TEXT NOT NULL DEFAULT '',
  path TEXT NOT NULL DEFAULT '',
  memories INTEGER NOT NULL DEFAULT 0,    -- indexed memories and their words: the statistics of BM25
  words INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE sources (
  id INTEGER PRIMARY KEY,
  scope INTEGER NOT NULL REFERENCES scopes(id),
  uri TEXT NOT NULL,
  type TEXT NOT NULL,
  hash TEXT,
  position INTEGER NOT NULL DEFAULT 0,
  read_at INTEGER NOT NULL,
  metadata TEXT NOT NULL DEFAULT '{}',
  UNIQUE (scope, uri)
);

CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  scope INTEGER NOT NULL REFERENCES scopes(id),
  host TEXT NOT NULL DEFAULT '',
  title TEXT NOT NULL DEFAULT '',
  source INTEGER REFERENCES sources(id),
  started_at INTEGER,
  ended_at INTEGER,
  metadata TEXT NOT NULL DEFAULT '{}'
) WITHOUT ROWID;

CREATE TABLE spans (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  scope INTEGER NOT NULL REFERENCES scopes(id),
  session TEXT NOT NULL,
  parent TEXT,
  name TEXT NOT NULL,
  summary TEXT NOT NULL DEFAULT '',
  line_start INTEGER NOT NULL,
  line_end INTEGER,
  depth INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  metadata TEXT NOT NULL DEFAULT '{}'
);
CREATE INDEX spans_session ON spans(session, line_start);
CREATE VIRTUAL TABLE spans_fts USING fts5(name, summary, scope, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2');

CREATE TABLE memories (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  scope INTEGER NOT NULL REFERENCES scopes(id),
  kind TEXT NOT NULL,
  importance REAL NOT NULL,
  confidence REAL NOT NULL,
  usefulness REAL NOT NULL DEFAULT 0,
  access_count INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  last_accessed INTEGER,
  valid_from INTEGER,
  valid_to INTEGER,
  expires_at INTEGER,
  deleted_at INTEGER,
  superseded_by TEXT,
  answered INTEGER,
  trust INTEGER NOT NULL,
  source INTEGER NOT NULL REFERENCES sources(id),
  line_start INTEGER,
  line_end INTEGER,
  position INTEGER NOT NULL DEFAULT 0,    -- place among the passages of its source
  span TEXT,
  session TEXT,
  dedup TEXT,                             -- the content hash where the text may stand only once in its scope, else null
  content_hash TEXT NOT NULL,
  row_hash BLOB NOT NULL,
  length INTEGER NOT NULL DEFAULT 0,      -- words in the index
  lexemes BLOB,                           -- sorted 32-bit word hashes, then a count byte for each
  section TEXT,
  summary TEXT NOT NULL,
  tags TEXT NOT NULL DEFAULT '[]',
  keywords TEXT NOT NULL DEFAULT '[]',
  metadata TEXT NOT NULL DEFAULT '{}',
  content TEXT NOT NULL
);
CREATE UNIQUE INDEX memories_once ON memories(scope, dedup) WHERE dedup IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX memories_hash ON memories(content_hash);
CREATE INDEX memories_recent ON memories(scope, created_at);
CREATE INDEX memories_source ON memories(source, position);
CREATE INDEX memories_session ON memories(session, position) WHERE session IS NOT NULL;
-- Hidden memories are few. Where a scope has none, a search need not ask which of its finds may be seen.
CREATE INDEX memories_hidden ON memories(scope)
  WHERE deleted_at IS NOT NULL OR superseded_by IS NOT NULL OR valid_to IS NOT NULL OR expires_at IS NOT NULL OR trust = 0;
CREATE INDEX memories_superseded ON memories(superseded_by) WHERE superseded_by IS NOT NULL;

CREATE VIRTUAL TABLE memories_fts USING fts5(
  content, summary, section, tags, scope,
  content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2'
);

-- How many memories of a scope hold a word: the weight of a word is decided inside the scope that is searched.
CREATE TABLE lexeme_counts (
  scope INTEGER NOT NULL,
  hash INTEGER NOT NULL,
  memories INTEGER NOT NULL,
  PRIMARY KEY (scope, hash)
) WITHOUT ROWID;

CREATE TABLE entities (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  folded TEXT NOT NULL,
  type TEXT NOT NULL,
  UNIQUE (folded, type)
);
CREATE TABLE memory_entities (
  memory INTEGER NOT NULL REFERENCES memories(key) ON DELETE CASCADE,
  entity INTEGER NOT NULL REFERENCES entities(id),
  PRIMARY KEY (memory, entity)
) WITHOUT ROWID;
CREATE INDEX memory_entities_entity ON memory_entities(entity);

CREATE TABLE relations (
  source TEXT NOT NULL,
  target TEXT NOT NULL,
  type TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  PRIMARY KEY (source, target, type)
) WITHOUT ROWID;
CREATE INDEX relations_target ON relations(target);

CREATE TABLE models (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimensions INTEGER NOT NULL);

-- One row per window of a memory's text: a 32-bit float scale, then a signed 16-bit number per dimension.
CREATE TABLE vectors (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  model INTEGER NOT NULL REFERENCES models(id),
  scope INTEGER NOT NULL,
  memory INTEGER NOT NULL,
  data BLOB NOT NULL
);
CREATE INDEX vectors_scan ON vectors(model, scope, id);
CREATE INDEX vectors_memory ON vectors(memory);
-- Scanners that hold vectors in memory learn of deletions from here; additions they see by their rising id.
CREATE TABLE vectors_removed (number INTEGER PRIMARY KEY AUTOINCREMENT, vector INTEGER NOT NULL);
CREATE TRIGGER vectors_removal AFTER DELETE ON vectors BEGIN
  INSERT INTO vectors_removed(vector) VALUES (old.id);
END;

CREATE TABLE embedding_cache (
  hash BLOB NOT NULL,
  model INTEGER NOT NULL REFERENCES models(id),
  data BLOB NOT NULL,
  PRIMARY KEY (hash, model)
) WITHOUT ROWID;

CREATE TABLE history (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  memory INTEGER NOT NULL,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  before TEXT,
  after TEXT
);
CREATE INDEX history_memory ON history(memory, number);

CREATE TABLE tombstones (hash BLOB PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;
