-- The database itself keeps the numbers of a scope in step with its memories, and the sums of vectors with the vectors. These functions
-- act as whoever writes, so row-level security holds in them.

CREATE FUNCTION bethink.count_memories() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    UPDATE bethink.scopes s SET memories = s.memories + c.memories, words = s.words + c.words
      FROM (SELECT scope, count(*) AS memories, sum(length) AS words FROM changed GROUP BY scope) c WHERE s.id = c.scope;
  ELSE
    UPDATE bethink.scopes s SET memories = s.memories - c.memories, words = s.words - c.words
      FROM (SELECT scope, count(*) AS memories, sum(length) AS words FROM changed GROUP BY scope) c WHERE s.id = c.scope;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER memories_added AFTER INSERT ON bethink.memories REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION bethink.count_memories();
CREATE TRIGGER memories_gone AFTER DELETE ON bethink.memories REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION bethink.count_memories();

CREATE FUNCTION bethink.count_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE bethink.scopes SET words = words + new.length - old.length WHERE id = new.scope;
  RETURN NULL;
END $$;
CREATE TRIGGER memories_reworded AFTER UPDATE OF length ON bethink.memories
  FOR EACH ROW WHEN (old.length <> new.length) EXECUTE FUNCTION bethink.count_words();

CREATE FUNCTION bethink.sum_vectors() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO bethink.vector_totals AS t (model, scope, vectors, total)
      SELECT model, scope, count(*), sum(data) FROM changed GROUP BY model, scope
      ON CONFLICT (tenant, model, scope) DO UPDATE SET vectors = t.vectors + excluded.vectors, total = t.total + excluded.total;
  ELSE
    UPDATE bethink.vector_totals t SET vectors = t.vectors - c.vectors, total = t.total - c.total
      FROM (SELECT model, scope, count(*) AS vectors, sum(data) AS total FROM changed GROUP BY model, scope) c
      WHERE t.model = c.model AND t.scope = c.scope;
    DELETE FROM bethink.vector_totals WHERE vectors <= 0;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER vectors_added AFTER INSERT ON bethink.vectors REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION bethink.sum_vectors();
CREATE TRIGGER vectors_gone AFTER DELETE ON bethink.vectors REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION bethink.sum_vectors();
