"""Small files that hooks keep: what went wrong, for `doctor`; which memories a session was given already; what the user asked to
forget; and when memory is paused.

A hook itself never complains, because its agent would have to. Each file is written whole and put in place at once; of two writes in
the same moment one may be lost, which means that a failure goes uncounted or that something is told twice. Where nothing can be
written, nothing is.

While memory is paused, in a project or everywhere, hooks neither tell nor note anything. A transcript goes on meanwhile, so every
pause is kept with its times, also after it ended: whoever reads a transcript, now or in a year, passes over what was said in
between. A file of pauses that cannot be understood counts as a pause, since somebody who wanted one wrote it.
"""

from __future__ import annotations

import json
import os
import re
import time
from _thread import get_ident
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from bethink.config import data_directory
from bethink.errors import BethinkError
from bethink.hooks.event import EVENTS, HOSTS, Hook
from bethink.ingest.redact import redact
from bethink.project import find as find_project
from bethink.text import textfile

LONGEST = 300  # characters of a message
OTHER = "unknown"  # stands for hosts and events that do not exist, so that the rows stay few
MOST_IDS = 1000  # of one session; the oldest go first
OLD = 30 * 86400.0  # seconds after which a session is over
MOST_SESSIONS = 500
EVERYWHERE = "everywhere"  # the scope of a pause that holds in every project
MOST_PAUSES = 1000  # that are kept; the oldest that are over go first


def folder() -> Path:
    return data_directory() / "hooks"


def make_private(path: Path) -> None:
    """Makes a folder and those above it that are missing, for their owner alone."""
    if not path.parent.is_dir():
        make_private(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)
    if path == folder() or folder() in path.parents:
        with suppress(OSError):  # one that an earlier version or another program left open
            if folder().stat().st_mode & 0o077:
                folder().chmod(0o700)


def write_json(path: Path, value: Any) -> None:
    """A JSON file in place at once, for its owner alone."""
    # Calls of one MCP server are threads of one process.
    fresh = path.with_name(f"{path.name}.{os.getpid()}-{get_ident()}.new")
    flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    try:
        make_private(path.parent)
        try:
            with os.fdopen(os.open(fresh, flags, 0o600), "wb") as stream:
                stream.write(json.dumps(value, ensure_ascii=True).encode())
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        raise BethinkError(
            f"{path} cannot be written: {error.strerror or error}.",
            "Check permissions and free space, or set BETHINK_HOME.",
        ) from error


def read_json(path: Path) -> Any:
    """What such a file holds, None if it is not there or broken."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


# Failures


class Failure(NamedTuple):
    host: str
    event: str
    count: int  # type: ignore[assignment]
    first: float  # seconds since the epoch
    last: float
    message: str  # of the last one


def failures_file() -> Path:
    return folder() / "failures.json"


def note_failure(host: str, event: str, message: str) -> None:
    """Counts one. Never raises for want of a place to write."""
    host, event = host if host in HOSTS else OTHER, event if event in EVENTS else OTHER
    now = time.time()
    rows = {(row.host, row.event): row for row in read_failures()}
    before = rows.get((host, event), Failure(host, event, 0, now, now, ""))
    said = " ".join(redact(message).text.split())[:LONGEST]
    rows[(host, event)] = before._replace(count=before.count + 1, last=now, message=said)
    with suppress(BethinkError):
        write_json(failures_file(), [row._asdict() for row in rows.values()])


def read_failures() -> list[Failure]:
    """What failed, the latest first; nothing where the file is damaged."""
    try:
        found = [Failure(**row) for row in read_json(failures_file()) or ()]
    except TypeError:
        return []
    return sorted(found, key=lambda row: -row.last)


def clear_failures() -> None:
    with suppress(OSError):
        failures_file().unlink()


# Whether the user asked to forget something

FORGETTING = re.compile(
    r"(?<!not )(?<!n't )(?<!n’t )(?<!never )\b(?:forget|erase|unlearn|vergiss|vergesse|olvida|oublie|esquece|dimentica)\b"
    r"|\b(?:delete|remove|drop|hide|purge|discard)\b[^.!?\n]{0,80}\b(?:memory|memories|bethink)\b",
    re.IGNORECASE,
)
# Seconds for which the user's request holds: a turn of an agent may take that long. Set by hand.
ASKED_SECONDS = 3600.0


def note_forgetting(prompt: str, root: Path) -> None:
    """Notes that the user's prompt asks to forget something of a project: then the agent may do so."""
    if FORGETTING.search(prompt[:10_000]):
        write_json(folder() / "asked" / f"{digest(str(root))}.json", {"at": time.time()})


def is_forgetting_asked(root: Path) -> bool:
    kept = read_json(folder() / "asked" / f"{digest(str(root))}.json") or {}
    return time.time() - float(kept.get("at", 0)) < ASKED_SECONDS


# What a session was given


class Deliveries(NamedTuple):
    """What a session was told, so that it is not told twice."""

    ids: tuple[str, ...] = ()
    briefing: str = ""  # digest of the last one
    emptied: bool = False  # whether its context was, so that it no longer knows what it said itself
    briefed: str = ""  # the scope of the project that the briefing was about


def read_deliveries(hook: Hook) -> Deliveries:
    path = _deliveries_file(hook)
    kept: Any = read_json(path) if path else None
    try:
        return Deliveries(**{**kept, "ids": tuple(kept["ids"])})
    except (TypeError, KeyError):
        return Deliveries()


def is_briefed(scope: str) -> bool:
    """Whether any session of a project was given a briefing."""
    with suppress(OSError):
        kept = map(read_json, (folder() / "given").iterdir())
        return any(isinstance(one, dict) and one.get("briefed") == scope for one in kept)
    return False


def note_delivery(hook: Hook, ids: Iterable[str], briefing: str = "", scope: str = "") -> None:
    """Keeps what this session is given now beside what it was given before."""
    before = read_deliveries(hook)
    known = tuple(dict.fromkeys((*before.ids, *ids)))[-MOST_IDS:]
    last = (briefing, scope) if briefing else (before.briefing, before.briefed)
    _write_deliveries(hook, before._replace(ids=known, briefing=last[0], briefed=last[1]))


def forget_deliveries(hook: Hook) -> None:
    """After the session's context was emptied, it has nothing of what it was given."""
    _write_deliveries(hook, Deliveries(emptied=True))


def _write_deliveries(hook: Hook, value: Deliveries) -> None:
    if path := _deliveries_file(hook):
        with suppress(BethinkError):
            write_json(path, value._asdict())


def remove_old_deliveries() -> None:
    """Removes the files of sessions that are over, and of all but the newest of very many."""
    aged = []
    with suppress(OSError):
        for path in (folder() / "given").iterdir():
            with suppress(OSError):
                aged.append((path.stat().st_mtime, path))
    limit = time.time() - OLD
    for at, (changed, path) in enumerate(sorted(aged, reverse=True)):
        if at >= MOST_SESSIONS or changed < limit:
            with suppress(OSError):
                path.unlink()


def digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _deliveries_file(hook: Hook) -> Path | None:
    """Named by a hash, because a host may give anything as the name of a session."""
    name = hook.session or hook.transcript
    return folder() / "given" / f"{digest(f'{hook.host} {name}')}.json" if name else None


# When memory is paused


class Pause(NamedTuple):
    scope: str  # of a project, or EVERYWHERE
    since: float  # seconds since the epoch
    until: float | None = None  # None: until it is resumed
    name: str = ""  # of the project, for people to read

    def holds(self, at: float) -> bool:
        return self.since <= at and (self.until is None or at < self.until)


def pauses_file() -> Path:
    return data_directory() / "pauses.json"


def read_pauses() -> list[Pause]:
    """Every pause, the oldest first."""
    try:
        rows = json.loads(pauses_file().read_bytes())
        return sorted(map(_read_pause, rows), key=lambda pause: pause.since)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise BethinkError(
            f"The pauses in {pauses_file()} cannot be read ({error}), so memory counts as paused.",
            "Mend the file, or remove it to forget them.",
        ) from None


def _read_pause(row: Any) -> Pause:
    until = None if row["until"] is None else float(row["until"])
    return Pause(str(row["scope"]), float(row["since"]), until, str(row.get("name", "")))


def is_paused(directory: str, scope: str | None = None) -> bool:
    """Whether memory is paused now where a session works, or in the project that it belongs to, which outside git may be another."""
    try:
        return is_covered(read_pauses(), time.time(), scope, directory)
    except BethinkError:
        return True


def is_covered(
    pauses: Sequence[Pause], at: float, scope: str | None, directory: str | None
) -> bool:
    """Whether something was paused at a time, by the scope it belongs to or by the directory it was said in."""
    scopes = {pause.scope for pause in pauses if pause.holds(at)}
    if not scopes or EVERYWHERE in scopes or scope in scopes:
        return bool(scopes)
    return (
        directory is not None
        and find_project(Path(directory) if directory else None).scope in scopes
    )


def has_pause_turned(since: float) -> bool:
    """Whether memory was paused or resumed anywhere since then."""
    now = time.time()
    return any(
        pause.since >= since or (pause.until is not None and since <= pause.until <= now)
        for pause in read_pauses()
    )


def pause_memory(scope: str, name: str = "", seconds: float | None = None) -> Pause:
    """Pauses memory from now on, for some time or until it is resumed. In place of a pause of the same scope that holds already."""
    now = time.time()
    fresh = Pause(scope, now, None if seconds is None else now + seconds, name)
    _change_pauses(lambda known: [*_end_pauses(known, {scope}, now), fresh])
    return fresh


def resume_memory(scope: str) -> list[Pause]:
    """Ends the pause of a project, or with EVERYWHERE all pauses that hold. Returns those that it ended."""
    now = time.time()
    ended: list[Pause] = []

    def change(known: list[Pause]) -> list[Pause]:
        ended[:] = [one for one in known if one.holds(now) and scope in (EVERYWHERE, one.scope)]
        return _end_pauses(known, {one.scope for one in ended}, now)

    _change_pauses(change)
    return ended


def _end_pauses(known: Sequence[Pause], scopes: set[str], now: float) -> list[Pause]:
    return [
        one._replace(until=now) if one.scope in scopes and one.holds(now) else one for one in known
    ]


def _change_pauses(change: Callable[[list[Pause]], list[Pause]]) -> None:
    path, now = pauses_file(), time.time()
    with suppress(OSError):  # writing says it better
        make_private(path.parent)
    with textfile.alone(path.parent):
        known = change(read_pauses())
        over = [one for one in known if one.until is not None and one.until <= now]
        dropped = set(over[: max(0, len(known) - MOST_PAUSES)])
        write_json(path, [one._asdict() for one in known if one not in dropped])
