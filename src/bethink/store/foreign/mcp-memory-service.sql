-- Memories are known by their hash, also in its graph, which older versions do not have.
CREATE TABLE IF NOT EXISTS memory_graph (source_hash, target_hash, relationship_type);
WITH links AS (
  SELECT source_hash, json_group_array(json_array(relationship_type, target_hash)) AS pairs
  FROM memory_graph GROUP BY source_hash
)
SELECT memories.*, content AS text, content_hash AS id, memory_type AS kind, pairs AS relations
FROM memories LEFT JOIN links ON source_hash = content_hash;
