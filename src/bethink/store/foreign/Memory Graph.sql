-- Ideas of conversations, the topics that they belong to, and what they mention. The transcript tells the project.
WITH named AS (
  SELECT idea_id, json_group_array(concat_ws(':', type, name)) AS names
  FROM idea_entities JOIN entities ON entities.id = entity_id GROUP BY idea_id
),
links AS (
  SELECT from_id, json_group_array(json_array(relation_type, to_id)) AS pairs
  FROM relations GROUP BY from_id
)
SELECT ideas.*, content AS text, intent AS kind, spans.name AS section, names AS entities,
  pairs AS relations, source_file AS project,
  json_object('transcript', source_file, 'line', source_line) AS metadata
FROM ideas
LEFT JOIN spans ON spans.id = span_id
LEFT JOIN named ON idea_id = ideas.id
LEFT JOIN links ON from_id = ideas.id;
-- A topic that has a summary is a memory, too.
WITH talks AS (
  SELECT session AS talk, max(source_file) AS file
  FROM ideas JOIN spans ON spans.id = span_id GROUP BY session
)
SELECT 'span ' || id AS id, summary AS text, name AS section, 'conclusion' AS kind,
  file AS project, created_at AS created
FROM spans LEFT JOIN talks ON talk = session
WHERE summary <> '';
