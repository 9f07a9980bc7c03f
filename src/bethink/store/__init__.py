"""Where memories live. Each kind of database is one file; `base.py` says what they share, `api.open_store` opens the one that is set."""
