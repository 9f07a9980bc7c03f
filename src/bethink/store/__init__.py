"""Storage of memories: one module per database, `base.py` for the shared part.

`api.open_store` opens the configured database.
"""
