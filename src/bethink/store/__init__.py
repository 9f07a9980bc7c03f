"""Where memories live: opens the store that the settings name. Each kind is one file; `base.py` says what they share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bethink.config import Config, data_directory, trusts
from bethink.errors import StoreError
from bethink.project import Project
from bethink.store.base import Store


def open_store(config: Config, project: Project) -> Store:
    """The database that the settings name, else the project's own, else the user's."""
    target = config.database
    if config.shared:
        try:
            from bethink.store.postgres import PostgresStore
        except ImportError as error:
            raise StoreError(
                f"PostgreSQL needs a package that is not installed: {error.name}.",
                "pip install 'bethink[postgres]'",
            ) from error
        return PostgresStore(
            target, tenant=config.tenant, user=config.user, timeout=config.busy_timeout
        )
    if "://" in target:
        scheme = target.partition("://")[0]
        raise StoreError(
            f"No database is spoken to by {scheme}://.",
            "Give a path, or postgresql://USER@HOST/NAME.",
        )
    from bethink.store.sqlite import SqliteStore

    return SqliteStore(Path(locate_database(config, project)), config.busy_timeout)


@contextmanager
def open_copy(path: Path) -> Iterator[Store]:
    """A copy of a database file of this or an older version, brought to the newest schema. The file itself is only read."""
    import tempfile

    from bethink.store.connection import copy_database
    from bethink.store.sqlite import SqliteStore

    with tempfile.TemporaryDirectory(prefix="bethink-") as folder:
        copy_database(path, Path(folder) / "copy.db")
        store = SqliteStore(Path(folder) / "copy.db")
        try:
            yield store
        finally:
            store.close()


def locate_database(config: Config, project: Project) -> str:
    """The path or URL of the database that `open_store` opens. Opens nothing."""
    target = config.database
    if target:
        return target if "://" in target else str(Path(target).expanduser().absolute())
    local = project.local_database
    return str(local if local.exists() and trusts(project.root) else data_directory() / "memory.db")
