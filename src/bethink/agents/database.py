"""Databases in which agents keep their sessions: opened read-only, and only between pages."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from bethink.errors import BethinkError

Row = tuple[Any, ...]
_BUSY = 3_000  # milliseconds to wait for a writer


def read_rows(
    path: Path, query: str, values: Mapping[str, Any], most_bytes: int, title: str
) -> list[Row]:
    """Return rows in one go, so that no statement stays open; at most about so many bytes."""
    import apsw

    found: list[Row] = []
    size = 0
    try:
        # As in the writer's own process, a lock of a moment is waited for. A WAL is read along, not copied.
        with closing(apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)) as database:
            database.set_busy_timeout(_BUSY)
            for row in database.execute(query, dict(values)):
                found.append(row)
                size += sum(len(value) for value in row if isinstance(value, str | bytes))
                if size >= most_bytes:
                    break
    except apsw.Error as error:
        raise BethinkError(
            f"The {title} database {path} cannot be read: {error}.",
            f"Close {title} and try again.",
        ) from None
    return found
