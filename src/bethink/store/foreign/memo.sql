-- One database for a project. Its `tags` say from which file an imported passage is.
SELECT *, content AS text, tags AS section, NULL AS tags,
  CASE WHEN tags LIKE 'repo-map:%' THEN substr(tags, 10) ELSE tags END AS file,
  iif(container_tag LIKE 'memo_container_%', substr(container_tag, 16), NULL) AS container
FROM memories;
