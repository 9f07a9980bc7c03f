"""Where memories live. Each kind of database is one file; `base.py` says what they share, `sqlite.open_store` opens the one that is set."""
