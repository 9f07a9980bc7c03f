"""Where memories live: opens the store that the settings name. Each kind is one file; `base.py` says what they share."""

from __future__ import annotations

from pathlib import Path

from recollect.config import Config, data_directory, trusts
from recollect.errors import StoreError
from recollect.project import Project
from recollect.store.base import Store


def open_store(config: Config, project: Project) -> Store:
    """The database that the settings name, else the project's own, else the user's."""
    target = config.database
    if target.startswith(("postgres://", "postgresql://")):
        raise StoreError("This version does not speak PostgreSQL yet.", "Set `database` to a path, or leave it empty.")
    from recollect.store.sqlite import SqliteStore

    if target:
        path = Path(target).expanduser()
    elif project.local_database.exists() and trusts(project.root):
        path = project.local_database
    else:
        path = data_directory() / "memory.db"
    return SqliteStore(path, config.busy_timeout)
