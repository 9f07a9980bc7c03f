CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, content_hash TEXT UNIQUE NOT NULL, content TEXT NOT NULL, tags TEXT,
  memory_type TEXT, metadata TEXT, created_at REAL, updated_at REAL, created_at_iso TEXT, updated_at_iso TEXT,
  deleted_at REAL DEFAULT NULL);
CREATE TABLE memory_graph (source_hash TEXT NOT NULL, target_hash TEXT NOT NULL, similarity REAL NOT NULL,
  connection_types TEXT NOT NULL, metadata TEXT, created_at REAL NOT NULL, relationship_type TEXT DEFAULT 'related',
  PRIMARY KEY (source_hash, target_hash));
INSERT INTO memories VALUES (1, 'h1', 'We keep sessions in Redis', 'cache,redis', 'decision', '{"ticket": "OPS-7"}', 1769000000.5, 1769000000.5, NULL, NULL, NULL);
INSERT INTO memories VALUES (2, 'h2', 'Redis needs AOF', 'cache', 'observation', '{}', 1769000001.5, 1769000001.5, NULL, NULL, NULL);
INSERT INTO memories VALUES (3, 'h3', 'Old news', '', 'note', '{}', 1769000001.5, 1769000001.5, NULL, NULL, 1769000002.0);
INSERT INTO memory_graph VALUES ('h2', 'h1', 0.8, '[]', '{}', 1769000003.0, 'supports');
