-- What its model noted of each session, of all projects; and the rules that the user gave it. Older versions lack these tables.
CREATE TABLE IF NOT EXISTS directives (id, project, content, status, created_at_epoch);
CREATE TABLE IF NOT EXISTS user_prompts (id);
WITH noted AS (
  SELECT *, iif(json_valid(facts), facts, '[]') AS list,
    iif(json_valid(files_modified), files_modified, '[]') AS modified,
    iif(json_valid(files_read), files_read, '[]') AS seen
  FROM observations
)
SELECT *, 'observations ' || id AS id, type AS kind, concepts AS tags,
  concat_ws(char(10), nullif(title, ''), nullif(narrative, ''), nullif(text, ''),
    (SELECT group_concat('- ' || value, char(10)) FROM json_each(list))) AS text,
  (SELECT json_group_array('file:' || value)
    FROM (SELECT value FROM json_each(modified) UNION ALL SELECT value FROM json_each(seen))
  ) AS entities
FROM noted;
SELECT *, 'session_summaries ' || id AS id, 'conclusion' AS kind,
  concat_ws(char(10), 'Asked: ' || nullif(request, ''), 'Looked at: ' || nullif(investigated, ''),
    'Learned: ' || nullif(learned, ''), 'Done: ' || nullif(completed, ''),
    'Next: ' || nullif(next_steps, '')) AS text
FROM session_summaries;
SELECT 'directives ' || id AS id, iif(status = 'active', content, '') AS text, 'preference' AS kind,
  coalesce(nullif(project, ''), 'personal') AS project, created_at_epoch AS created
FROM directives;
-- What was asked, word for word, is for `bethink backfill`.
SELECT 'raw' AS why_left FROM user_prompts;
