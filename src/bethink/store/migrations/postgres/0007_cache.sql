-- A memory's vectors are found by the text they are made of. So the cache keeps only those of texts that no memory has: it was a second
-- copy of every vector.
ALTER TABLE bethink.vectors ADD COLUMN text bytea;
CREATE INDEX vectors_text ON bethink.vectors (tenant, text, model) WHERE text IS NOT NULL;
TRUNCATE bethink.embedding_cache;
