"""What `postgres.py` is made of: connections, schema, rows, words, writing, transfer and care for PostgreSQL. Nothing here is for others to call."""
