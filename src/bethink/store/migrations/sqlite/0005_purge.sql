-- A purge takes the words of one memory out of the index, and out of the file, without touching those of any other: `secure-delete`
-- rewrites the pages that hold them, and is told the words, which a table with `contentless_delete` cannot be. The program fills both
-- tables anew from the texts in the same transaction.

DROP TABLE memories_fts;
CREATE VIRTUAL TABLE memories_fts USING fts5(
  content, summary, section, tags, scope,
  content='', tokenize='porter unicode61 remove_diacritics 2'
);
INSERT INTO memories_fts(memories_fts, rank) VALUES ('secure-delete', 1);

DROP TABLE spans_fts;
CREATE VIRTUAL TABLE spans_fts USING fts5(name, summary, scope, content='', tokenize='porter unicode61 remove_diacritics 2');
INSERT INTO spans_fts(spans_fts, rank) VALUES ('secure-delete', 1);

-- Numbers about the database are read from indexes, never from the rows: how much is cached, and the few that should have no vector.
CREATE INDEX embedding_cache_model ON embedding_cache(model);
CREATE INDEX memories_unvectored ON memories(deleted_at) WHERE instr(metadata, '"vector_index"') > 0;
DROP INDEX vectors_memory;
CREATE INDEX vectors_memory ON vectors(memory, model);
