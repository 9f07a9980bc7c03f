CREATE TABLE memories (id TEXT PRIMARY KEY, content TEXT NOT NULL, vector BLOB NOT NULL, container_tag TEXT NOT NULL,
  tags TEXT, type TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, metadata TEXT, display_name TEXT,
  user_name TEXT, user_email TEXT, project_path TEXT, project_name TEXT, git_repo_url TEXT);
CREATE TABLE embedding_cache (content_hash TEXT NOT NULL, model TEXT NOT NULL, embedding BLOB NOT NULL,
  created_at INTEGER NOT NULL, PRIMARY KEY (content_hash, model));
CREATE VIRTUAL TABLE fts_memories USING fts5(content, memory_id UNINDEXED, container_tag UNINDEXED, tokenize='unicode61');
