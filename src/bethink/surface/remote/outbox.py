"""Writes that could not be delivered: one file for each, in the order in which they were asked for, until the server has said that it
did them.

Each carries a key made when it was asked for, under which the server does it once: a delivery whose answer was lost is simply made
again. Secrets are taken out before anything is sent or written, so that every delivery says the same. What the server refuses for good,
or breaks over while it does later ones, is set aside and told, not lost. Several processes may share an outbox; one delivers at a time.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from bethink.config import data_directory
from bethink.errors import BethinkError
from bethink.surface.remote.client import Failed
from bethink.text.ids import new_id
from bethink.text.textfile import alone

READY, ASIDE = ".json", ".refused"
MOST = 10_000  # entries that wait; more are refused, so that a server that is gone for good does not fill the disk
TRIES = 5  # deliveries that the server may break over before later ones are tried without it


class Entry(NamedTuple):
    """A write as it is sent, now or later."""

    key: str
    tool: str
    arguments: dict[str, Any]
    project: str
    container: str | None = None


def folder(url: str) -> Path:
    """Where the writes for a server wait."""
    return (
        data_directory()
        / "outbox"
        / sha256(url.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    )


def entry(
    tool: str, arguments: dict[str, Any], project: str, container: str | None
) -> tuple[Entry, int]:
    """A write without its secrets, and how many were taken out."""
    from bethink.ingest.redact import redact_value

    clean, hidden = redact_value(arguments)
    return Entry(str(uuid.uuid4()), tool, clean, project, container), hidden


class Outbox:
    def __init__(self, place: Path) -> None:
        self.place = place
        self._failures: Counter[str] = Counter()  # file → how often the server broke over it

    def put(self, entry: Entry) -> None:
        """Keeps a write. When this returns it survives a power cut."""
        if len(self.waiting()) >= MOST:
            raise BethinkError(
                f"{MOST:,} writes wait for the server already.",
                "`bethink mcp --remote` delivers them once it is reached.",
            )
        text = json.dumps(entry._asdict(), ensure_ascii=True)
        # Ids rise with time, so names sort in the order of asking.
        final = self.place / f"{new_id()}{READY}"
        partial = final.with_suffix(".partial")
        try:
            self.place.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(
                os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii"
            ) as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            partial.replace(final)
            _sync_folder(self.place)
        except OSError as error:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            raise BethinkError(
                f"The server cannot be reached, and {self.place} cannot be written either: {error.strerror or error}.",
                "Nothing was stored.",
            ) from error

    def waiting(self) -> list[Path]:
        return self._files(READY)

    def aside(self) -> list[Path]:
        """What the server would not take."""
        return self._files(ASIDE)

    def _files(self, suffix: str) -> list[Path]:
        try:
            return sorted(path for path in self.place.iterdir() if path.suffix == suffix)
        except OSError:
            return []

    def deliver(self, send: Callable[[Entry], str | None], until: float | None = None) -> int:
        """Sends what waits, oldest first, until the server cannot be reached. `send` says why an entry was refused for good, or None.
        With `until`, a moment of the monotonic clock, nothing more is begun after it. Returns how many were delivered."""
        if not self.waiting():
            return 0
        done = 0
        broken: list[tuple[Path, str]] = []
        with alone(self.place, until) as ours:
            for file in self.waiting() if ours else ():
                if until is not None and time.monotonic() >= until:
                    break
                entry = _read(file)
                try:
                    refused = "It cannot be read." if entry is None else send(entry)
                except Failed as error:
                    self._failures[file.name] += 1
                    if self._failures[file.name] < TRIES:
                        raise
                    broken.append((file, error.message))
                    continue
                if refused is None:
                    file.unlink(missing_ok=True)
                    done += 1
                    for (
                        one,
                        reason,
                    ) in broken:  # the server does others, so it is this one that it cannot do
                        _set_aside(one, reason)
                    broken = []
                else:
                    _set_aside(file, refused)
        return done


def _read(file: Path) -> Entry | None:
    try:
        value = json.loads(file.read_text("ascii"))
        entry = Entry(**value)
        good = all(
            isinstance(part, str) for part in (entry.key, entry.tool, entry.project)
        ) and isinstance(entry.arguments, dict)
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    return entry if good else None


def _set_aside(file: Path, reason: str) -> None:
    with suppress(OSError):
        file.with_suffix(".reason").write_text(reason[:1000], "utf-8")
        file.rename(file.with_suffix(ASIDE))


def _sync_folder(folder: Path) -> None:
    """The name of a file survives a power cut only once its folder was written."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
