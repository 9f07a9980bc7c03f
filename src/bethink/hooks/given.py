"""Which memories a session was given already, so that it is not told the same thing twice.

A small file for each session. It forgets when the session's own context was emptied (`forget`), and files of sessions that are long over
are cleaned away. Losing such a file only means that something may be told again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from bethink.config import data_directory
from bethink.hooks.event import Hook
from bethink.hooks.failures import put

MOST = 1000  # ids of one session; the oldest go first
OLD = 30 * 86400.0  # seconds after which a session is over
FILES = 500


class Given(NamedTuple):
    ids: tuple[str, ...] = ()
    briefing: str = ""  # digest of the last one
    emptied: bool = (
        False  # whether the session's context was, so that it no longer knows what it said itself
    )


def folder() -> Path:
    return data_directory() / "hooks" / "given"


def read(hook: Hook) -> Given:
    path = _file(hook)
    if path is None:
        return Given()
    try:
        kept = json.loads(path.read_text("utf-8", "replace"))
        return Given(tuple(map(str, kept["ids"])), str(kept["briefing"]), bool(kept["emptied"]))
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return Given()


def note(hook: Hook, ids: Iterable[str], briefing: str | None = None) -> None:
    """Keeps what this session is given now beside what it was given before."""
    before = read(hook)
    known = tuple(dict.fromkeys((*before.ids, *ids)))[-MOST:]
    _keep(
        hook, before._replace(ids=known, briefing=before.briefing if briefing is None else briefing)
    )


def forget(hook: Hook) -> None:
    """After the session's context was emptied, it has nothing of what it was given."""
    _keep(hook, Given(emptied=True))


def _keep(hook: Hook, value: Given) -> None:
    if path := _file(hook):
        with suppress(OSError):
            put(path, value._asdict())


def clean() -> None:
    """Removes the files of sessions that are over, and of all but the newest of very many."""
    aged = []
    with suppress(OSError):
        for path in folder().iterdir():
            with suppress(OSError):
                aged.append((path.stat().st_mtime, path))
    aged.sort(key=lambda row: -row[0])
    limit = time.time() - OLD
    for at, (changed, path) in enumerate(aged):
        if at >= FILES or changed < limit:
            with suppress(OSError):
                path.unlink()


def digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _file(hook: Hook) -> Path | None:
    """Named by a hash, because a host may give anything as the name of a session."""
    name = hook.session or hook.transcript
    return folder() / f"{digest(f'{hook.host} {name}')}.json" if name else None
