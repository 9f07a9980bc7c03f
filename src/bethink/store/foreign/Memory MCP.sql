-- Typed memories, and the names that each mentions.
WITH named AS (SELECT memory_id, json_group_array(entity) AS names FROM entities GROUP BY memory_id)
SELECT memories.*, content AS text, importance AS importance, names AS entities
FROM memories LEFT JOIN named ON memory_id = memories.id;
