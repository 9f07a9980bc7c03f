#!/bin/sh
# Run once by the image when the database is new: the extension, and the role by which the server logs in, which owns nothing.
set -e
psql -v ON_ERROR_STOP=1 -v password="$SERVER_PASSWORD" -U "$POSTGRES_USER" -d "$POSTGRES_DB" <<'SQL'
CREATE EXTENSION IF NOT EXISTS vector;
CREATE ROLE bethink_app NOLOGIN;
CREATE ROLE server LOGIN PASSWORD :'password';
GRANT bethink_app TO server;
SQL
