"""What went wrong in hooks, counted where `doctor` shows it: a hook itself never complains, because its agent would have to.

One small file, a row for each host and event. Written whole and put in place at once; of two failures in the same moment one may go
uncounted. Where it cannot be written, nothing is: the home that is read-only is what `doctor` reports then.
"""

from __future__ import annotations

import json
import os
import time
from _thread import get_ident
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from bethink.config import data_directory
from bethink.hooks.event import EVENTS, HOSTS

LONGEST = 300  # characters of a message
OTHER = "unknown"  # stands for hosts and events that do not exist, so that the rows stay few


class Failure(NamedTuple):
    host: str
    event: str
    count: int  # type: ignore[assignment]
    first: float  # seconds since the epoch
    last: float
    message: str  # of the last one


def file() -> Path:
    return data_directory() / "hooks" / "failures.json"


def note(host: str, event: str, message: str) -> None:
    """Counts one. Never raises for want of a place to write."""
    host, event = host if host in HOSTS else OTHER, event if event in EVENTS else OTHER
    now = time.time()
    rows = {(row.host, row.event): row for row in read()}
    before = rows.get((host, event), Failure(host, event, 0, now, now, ""))
    from bethink.ingest.redact import redact  # messages quote names of files and of sessions

    said = " ".join(redact(message).text.split())[:LONGEST]
    rows[(host, event)] = before._replace(count=before.count + 1, last=now, message=said)
    with suppress(OSError):
        put(file(), [row._asdict() for row in rows.values()])


def read() -> list[Failure]:
    """What failed, the latest first."""
    return sorted(filter(None, map(_row, _rows())), key=lambda row: -row.last)


def clear() -> None:
    with suppress(OSError):
        file().unlink()


def _rows() -> list[Any]:
    try:
        rows = json.loads(file().read_text("utf-8", "replace"))
    except (OSError, ValueError, RecursionError):
        return []
    return rows if isinstance(rows, list) else []


def _row(given: Any) -> Failure | None:
    try:
        return Failure(
            str(given["host"]),
            str(given["event"]),
            int(given["count"]),
            float(given["first"]),
            float(given["last"]),
            str(given["message"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def make_private(folder: Path) -> None:
    """Makes a folder and those above it that are missing, for their owner alone."""
    if not folder.parent.is_dir():
        make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def put(path: Path, value: Any) -> None:
    """A JSON file in place at once, for its owner alone."""
    make_private(path.parent)
    fresh = path.with_name(
        f"{path.name}.{os.getpid()}-{get_ident()}.new"
    )  # calls of one MCP server are threads of one process
    try:
        descriptor = os.open(
            fresh, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o600
        )
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(json.dumps(value, ensure_ascii=True).encode())
        fresh.replace(path)
    except BaseException:
        with suppress(OSError):
            fresh.unlink()
        raise
