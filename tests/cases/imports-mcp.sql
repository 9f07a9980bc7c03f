CREATE TABLE memories (id TEXT PRIMARY KEY, type TEXT, content TEXT NOT NULL, summary TEXT, importance INTEGER,
  created_at INTEGER, last_accessed INTEGER, access_count INTEGER, expires_at INTEGER, metadata TEXT, is_deleted INTEGER DEFAULT 0);
CREATE TABLE entities (id TEXT PRIMARY KEY, memory_id TEXT, entity TEXT);
CREATE VIRTUAL TABLE memories_fts USING fts5(memory_id UNINDEXED, content, summary, tokenize = 'porter unicode61');
INSERT INTO memories VALUES ('a', 'self', 'I like dark mode', 'Likes dark mode', 8, 1769000000000, 1769000000000, 4, NULL, '{}', 0);
INSERT INTO memories VALUES ('b', 'fact', 'The API is written with FastAPI', 'FastAPI', 5, 1769000000000, NULL, 0, NULL, NULL, 0);
INSERT INTO memories VALUES ('c', 'fact', 'Thrown away', 'x', 5, 1769000000000, NULL, 0, NULL, NULL, 1);
INSERT INTO entities VALUES ('e', 'b', 'FastAPI');
