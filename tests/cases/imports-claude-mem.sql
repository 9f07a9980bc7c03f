CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, content_session_id TEXT, memory_session_id TEXT, project TEXT);
CREATE TABLE observations (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT NULL, text TEXT,
  type TEXT NOT NULL, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT, files_read TEXT, files_modified TEXT,
  prompt_number INTEGER, discovery_tokens INTEGER, content_hash TEXT, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
CREATE TABLE session_summaries (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT NULL,
  request TEXT, investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT, files_read TEXT, files_edited TEXT, notes TEXT,
  created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
CREATE TABLE user_prompts (id INTEGER PRIMARY KEY, content_session_id TEXT, prompt_number INTEGER, prompt_text TEXT, created_at TEXT, created_at_epoch INTEGER);
CREATE TABLE directives (id INTEGER PRIMARY KEY, scope TEXT, project TEXT, content TEXT, status TEXT, source TEXT, created_at TEXT, created_at_epoch INTEGER, updated_at_epoch INTEGER);
INSERT INTO observations VALUES (1, 's', 'shop', NULL, 'bugfix', 'Rounding mended', NULL, '["Prices are cents", "No floats"]',
  'The ledger added floats.', '["money"]', '[]', '["src/ledger.py"]', 1, 0, 'h', '2026-01-01T00:00:00Z', 1769000000000);
INSERT INTO observations VALUES (2, 's', '/srv/ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2/zoo', NULL, 'discovery', 'Owls', NULL, '[]', 'Owls hunt at night.', '[]', '[]', '[]', 1, 0, 'i', '2026-01-01T00:00:00Z', 1769000000000);
INSERT INTO session_summaries VALUES (1, 's', 'shop', 'Mend rounding', 'ledger.py', 'Floats add up wrongly', 'Cents now', 'Test it', '', '', '', '2026-01-01T00:00:00Z', 1769000000000);
INSERT INTO user_prompts VALUES (1, 's', 1, 'mend it', '2026-01-01T00:00:00Z', 1769000000000);
INSERT INTO directives VALUES (1, 'global', NULL, 'Always answer in English', 'active', 'manual', '2026-01-01', 1769000000000, 1769000000000);
