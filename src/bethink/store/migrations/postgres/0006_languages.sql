-- Vectors of the model for other languages have 512 dimensions.
CREATE INDEX vectors_near_512 ON bethink.vectors USING hnsw ((data::halfvec(512)) halfvec_cosine_ops) WHERE dimensions = 512;
