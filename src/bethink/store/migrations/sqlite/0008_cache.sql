-- A memory's vectors are found by the text they are made of. So the cache keeps only those of texts that no memory has: it was a second
-- copy of every vector.
ALTER TABLE vectors ADD COLUMN text BLOB;
CREATE INDEX vectors_text ON vectors(text, model) WHERE text IS NOT NULL;
DELETE FROM embedding_cache;
