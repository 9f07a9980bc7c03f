-- Conversations: topics get vectors of their own, and a message that was taken in once is known for good.

DROP INDEX memories_hash;  -- nothing asked it
CREATE INDEX memories_span ON memories(span) WHERE span IS NOT NULL;
CREATE INDEX spans_scope ON spans(scope, created_at);
CREATE INDEX sources_uri ON sources(uri);
CREATE INDEX sessions_scope ON sessions(scope, started_at);

-- Hashes of message identities: forks and resumed sessions repeat messages, and what was purged must not come back with them.
CREATE TABLE turns (
  scope INTEGER NOT NULL REFERENCES scopes(id),
  identity BLOB NOT NULL,
  PRIMARY KEY (scope, identity)
) WITHOUT ROWID;

-- Like `vectors`, for the summaries of topics.
CREATE TABLE span_vectors (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  model INTEGER NOT NULL REFERENCES models(id),
  scope INTEGER NOT NULL,
  span INTEGER NOT NULL,
  data BLOB NOT NULL
);
CREATE INDEX span_vectors_scan ON span_vectors(model, scope, id);
CREATE INDEX span_vectors_span ON span_vectors(span);
CREATE TABLE span_vectors_removed (number INTEGER PRIMARY KEY AUTOINCREMENT, vector INTEGER NOT NULL);
CREATE TRIGGER span_vectors_removal AFTER DELETE ON span_vectors BEGIN
  INSERT INTO span_vectors_removed(vector) VALUES (old.id);
END;
