-- Ideas of conversations, the topics that they belong to, and what they mention. The transcript tells the project.
WITH RECURSIVE topics AS (
  SELECT id AS topic_id, name AS path, session AS talk, start_line, end_line
  FROM spans WHERE parent_id IS NULL
  UNION ALL
  SELECT id, path || ' > ' || name, session, spans.start_line, spans.end_line
  FROM spans JOIN topics ON parent_id = topic_id WHERE depth < 20
),
named AS (
  SELECT idea_id, json_group_array(concat_ws(':', type, name)) AS names
  FROM idea_entities JOIN entities ON entities.id = entity_id GROUP BY idea_id
),
links AS (
  SELECT from_id, json_group_array(json_array(relation_type, to_id)) AS pairs
  FROM relations GROUP BY from_id
)
SELECT ideas.*, content AS text, intent AS kind, spans.name AS section, names AS entities,
  pairs AS relations, source_file AS project,
  json_object('transcript', source_file, 'line', source_line, 'session', talk, 'topic', path) AS metadata
FROM ideas
LEFT JOIN spans ON spans.id = span_id
LEFT JOIN topics ON topic_id = span_id
LEFT JOIN named ON idea_id = ideas.id
LEFT JOIN links ON from_id = ideas.id;
-- A topic that has a summary is a memory, too.
WITH talks AS (
  SELECT session AS talk, max(source_file) AS file
  FROM ideas JOIN spans ON spans.id = span_id GROUP BY session
)
SELECT 'span ' || id AS id, summary AS text, name AS section, 'conclusion' AS kind,
  file AS project, created_at AS created,
  json_object('transcript', file, 'session', session, 'startLine', start_line, 'endLine', end_line) AS metadata
FROM spans LEFT JOIN talks ON talk = session
WHERE summary <> '';
