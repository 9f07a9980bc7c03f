"""When memory is paused, in a project or everywhere: hooks then neither tell nor note anything, and what was said meanwhile is not
learned later either.

A transcript goes on while memory is paused, so every pause is kept with its times, also after it ended: whoever reads a transcript,
now or in a year, passes over what was said in between. A file that cannot be understood counts as a pause, since somebody who wanted
one wrote it. Hooks ask at every prompt: nothing is imported here that they do not have already.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bethink import project as projects
from bethink.config import data_directory
from bethink.errors import BethinkError
from bethink.text import textfile

EVERYWHERE = "everywhere"
MOST = 1000  # pauses that are kept; the oldest that are over go first


class Pause(NamedTuple):
    scope: str  # of a project, or EVERYWHERE
    since: float  # seconds since the epoch
    until: float | None = None  # None: until it is resumed
    name: str = ""  # of the project, for people to read

    def holds(self, at: float) -> bool:
        return self.since <= at and (self.until is None or at < self.until)


def file() -> Path:
    return data_directory() / "pauses.json"


def is_paused(directory: str, scope: str | None = None) -> bool:
    """Whether memory is paused now where a session works, or in the project that it belongs to, which outside git may be another."""
    try:
        known = read()
    except BethinkError:
        return True
    current = [pause for pause in known if pause.holds(time.time())]
    return bool(current) and is_covered(current, time.time(), scope, directory)


def has_turned(since: float) -> bool:
    """Whether memory was paused or resumed anywhere since then."""
    now = time.time()
    return any(
        pause.since >= since or (pause.until is not None and since <= pause.until <= now)
        for pause in read()
    )


def is_covered(
    pauses: Sequence[Pause], at: float, scope: str | None, directory: str | None
) -> bool:
    """Whether something was paused at a time, by the scope it belongs to or by the directory it was said in."""
    scopes = {pause.scope for pause in pauses if pause.holds(at)}
    if EVERYWHERE in scopes or scope in scopes:
        return True
    return (
        bool(scopes)
        and directory is not None
        and projects.find(Path(directory) if directory else None).scope in scopes
    )


def read() -> list[Pause]:
    """Every pause, the oldest first."""
    try:
        rows = json.loads(file().read_bytes())
        return sorted(map(_read_pause, rows), key=lambda pause: pause.since)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise BethinkError(
            f"The pauses in {file()} cannot be read ({error}), so memory counts as paused.",
            "Mend the file, or remove it to forget them.",
        ) from None


def _read_pause(row: Any) -> Pause:
    until = None if row["until"] is None else float(row["until"])
    return Pause(str(row["scope"]), float(row["since"]), until, str(row.get("name", "")))


def pause(scope: str, name: str = "", seconds: float | None = None) -> Pause:
    """Pauses memory from now on, for some time or until it is resumed. In place of a pause of the same scope that holds already."""
    now = time.time()
    fresh = Pause(scope, now, None if seconds is None else now + seconds, name)
    _change(lambda known: [*_end(known, {scope}, now), fresh])
    return fresh


def resume(scope: str) -> list[Pause]:
    """Ends the pause of a project, or with EVERYWHERE all pauses that hold. Returns those that it ended."""
    now = time.time()
    ended: list[Pause] = []

    def change(known: list[Pause]) -> list[Pause]:
        ended[:] = [one for one in known if one.holds(now) and scope in (EVERYWHERE, one.scope)]
        return _end(known, {one.scope for one in ended}, now)

    _change(change)
    return ended


def _end(known: Sequence[Pause], scopes: set[str], now: float) -> list[Pause]:
    return [
        one._replace(until=now) if one.scope in scopes and one.holds(now) else one for one in known
    ]


def _change(change: Callable[[list[Pause]], list[Pause]]) -> None:

    path = file()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BethinkError(
            f"{path.parent} cannot be made: {error.strerror or error}.",
            "Check its permissions, or set BETHINK_HOME.",
        ) from error
    with textfile.alone(path.parent):
        known, was = change(read()), textfile.read(path)
        now = time.time()
        over = [one for one in known if one.until is not None and one.until <= now]
        dropped = set(over[: max(0, len(known) - MOST)])
        rows = [one._asdict() for one in known if one not in dropped]
        if not textfile.write(path, json.dumps(rows, indent=1) + "\n", was, 0o600):
            raise BethinkError(
                f"{path} was changed by another process at the same moment.", "Try again."
            )
