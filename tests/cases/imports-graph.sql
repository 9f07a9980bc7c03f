CREATE TABLE spans (id INTEGER PRIMARY KEY, session TEXT NOT NULL, parent_id INTEGER REFERENCES spans(id),
  name TEXT NOT NULL, summary TEXT, start_line INTEGER NOT NULL, end_line INTEGER, depth INTEGER NOT NULL DEFAULT 0,
  created_at TEXT DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE ideas (id INTEGER PRIMARY KEY, span_id INTEGER REFERENCES spans(id), content TEXT NOT NULL, intent TEXT,
  confidence REAL DEFAULT 0.5, answered BOOLEAN, source_file TEXT NOT NULL, source_line INTEGER NOT NULL,
  created_at TEXT DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE entities (id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT, UNIQUE(name, type));
CREATE TABLE idea_entities (idea_id INTEGER, entity_id INTEGER, PRIMARY KEY (idea_id, entity_id));
CREATE TABLE relations (id INTEGER PRIMARY KEY, from_id INTEGER, to_id INTEGER, relation_type TEXT);
INSERT INTO spans VALUES (1, 'control', NULL, 'LoRa', 'The radio reaches two kilometres', 1, 9, 0, '2026-01-02 10:00:00');
INSERT INTO entities VALUES (1, 'ESP32', 'technology');
INSERT INTO idea_entities VALUES (1, 1);
INSERT INTO relations VALUES (1, 2, 1, 'answers');
INSERT INTO ideas VALUES (1, 1, 'How far does the radio reach?', 'question', 0.9, 1, '/h/.claude/projects/{slug}/a.jsonl', 7, '2026-01-02 10:00:00');
INSERT INTO ideas VALUES (2, 1, 'LoRa reaches two kilometres', 'solution', 0.9, NULL, '/h/.claude/projects/{slug}/a.jsonl', 7, '2026-01-02 10:00:00');
INSERT INTO ideas VALUES (3, NULL, 'Of another project', 'decision', 0.9, NULL, '/h/.claude/projects/-home-zoo/b.jsonl', 7, '2026-01-02 10:00:00');
INSERT INTO ideas VALUES (4, 1, 'The radio hops between three channels', 'decision', 0.9, NULL, '/h/.claude/projects/{slug}/a.jsonl', 8, '2026-01-03 10:00:00');
INSERT INTO ideas VALUES (5, 1, 'The radio stays on one channel', 'decision', 0.9, NULL, '/h/.claude/projects/{slug}/a.jsonl', 9, '2026-01-04 10:00:00');
INSERT INTO relations VALUES (2, 5, 4, 'supersedes');
INSERT INTO ideas VALUES (6, 1, 'The antenna stands in the barn', 'decision', 0.9, NULL, '/h/.claude/projects/{slug}/a.jsonl', 10, '2026-01-05 10:00:00');
INSERT INTO ideas VALUES (7, 1, 'The antenna stands in the loft', 'decision', 0.9, NULL, '/h/.claude/projects/{slug}/a.jsonl', 11, '2026-01-05 10:00:00');
INSERT INTO ideas VALUES (8, 1, 'The antenna stands on the roof', 'decision', 0.9, NULL, '/h/.claude/projects/{slug}/a.jsonl', 12, '2026-01-05 10:00:00');
INSERT INTO relations VALUES (3, 6, 7, 'supersedes'), (4, 7, 8, 'supersedes'), (5, 8, 6, 'supersedes');
