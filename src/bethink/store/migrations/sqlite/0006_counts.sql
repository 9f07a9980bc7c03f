-- The database itself keeps the numbers of a scope in step with its memories, and cuts the log of removed vectors: a scanner that is
-- further behind than the log reaches reads its vectors anew.

CREATE TRIGGER memories_added AFTER INSERT ON memories BEGIN
  UPDATE scopes SET memories = memories + 1, words = words + new.length WHERE id = new.scope;
END;
CREATE TRIGGER memories_reworded AFTER UPDATE OF length ON memories WHEN old.length <> new.length BEGIN
  UPDATE scopes SET words = words + new.length - old.length WHERE id = new.scope;
END;
CREATE TRIGGER memories_gone AFTER DELETE ON memories BEGIN
  UPDATE scopes SET memories = memories - 1, words = words - old.length WHERE id = old.scope;
END;

CREATE TRIGGER vectors_removed_cut AFTER INSERT ON vectors_removed WHEN new.number % 10000 = 0 BEGIN
  DELETE FROM vectors_removed WHERE number <= new.number - 100000;
END;
CREATE TRIGGER span_vectors_removed_cut AFTER INSERT ON span_vectors_removed WHEN new.number % 10000 = 0 BEGIN
  DELETE FROM span_vectors_removed WHERE number <= new.number - 100000;
END;
