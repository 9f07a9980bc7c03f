CREATE TABLE session (id text PRIMARY KEY, project_id, parent_id, directory NOT NULL, title NOT NULL, time_created, time_updated);
CREATE TABLE message (id text PRIMARY KEY, session_id NOT NULL, time_created, time_updated, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id NOT NULL, session_id NOT NULL, time_created, time_updated, data text NOT NULL);
CREATE TABLE credential (secret text);
