"""Calls of a team's tools, and the outbox for writes that could not be delivered: one file for each, in the order in which they were asked
for, until the server has said that it did them.

Each carries a key made when it was asked for, under which the server does it once: a delivery whose answer was lost is simply made
again. Secrets are taken out before anything is sent or written, so that every delivery says the same. What the server refuses for good,
or breaks over while it does later ones, is set aside and told, not lost. Several processes may share an outbox; one delivers at a time.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from bethink import project as projects
from bethink.config import data_directory
from bethink.errors import BethinkError
from bethink.ingest.redact import redact_value
from bethink.surface.mcp import schemas
from bethink.surface.remote.client import Client, Failed, Refused, Unreachable
from bethink.text import textfile
from bethink.text.ids import new_id

READY, ASIDE = ".json", ".refused"
MOST = 10_000  # entries that wait; more are refused, so that a server that is gone for good does not fill the disk
AGAIN = 15.0  # seconds between two attempts to deliver what waits
QUICK = 8.0  # seconds that an agent is kept waiting for the server
EARLIER = 4.0  # seconds in which a call begins to deliver what was asked for before it; the rest waits on, and the call with it
TRIES = 5  # deliveries that the server may break over before later ones are tried without it

log = logging.getLogger("bethink")


class Entry(NamedTuple):
    """A write as it is sent, now or later."""

    key: str
    tool: str
    arguments: dict[str, Any]
    project: str
    container: str | None = None


def outbox_folder(url: str) -> Path:
    """Where the writes for a server wait."""
    return (
        data_directory()
        / "outbox"
        / sha256(url.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    )


def redacted_entry(
    tool: str, arguments: dict[str, Any], project: str, container: str | None
) -> tuple[Entry, int]:
    """A write without its secrets, and how many were taken out."""
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
        try:
            self.place.mkdir(mode=0o700, parents=True, exist_ok=True)
            textfile.write(self.place / f"{new_id()}{READY}", text, None, 0o600)
            _sync_folder(self.place)
        except (OSError, BethinkError) as error:
            raise BethinkError(
                f"The server cannot be reached, and {self.place} cannot be written either: {error}.",
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
        with textfile.alone(self.place, until) as ours:
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


class Team:
    """A server, and the outbox for when it is away. Thread-safe."""

    def __init__(
        self,
        client: Client,
        name: str | None = None,
        container: str | None = None,
        outbox: Outbox | None = None,
    ) -> None:
        self._client, self._name, self._container = client, name, container
        self.outbox = outbox or Outbox(outbox_folder(client.shown))
        self._delivering = threading.Lock()
        self._ended = threading.Event()

    def project(self, directory: Path | None) -> str:
        return f"team:{self._name or projects.find(directory).name}"

    def call(
        self, name: str, arguments: dict[str, Any], directory: Path | None
    ) -> tuple[str, bool]:
        """What the server says, and whether that is a failure. Raises `Unreachable` for reads; writes wait then."""
        if schemas.TOOLS[name].hints.get("readOnlyHint"):
            text, failed = self._send(
                Entry("", name, arguments, self.project(directory), self._container)
            )
            return "\n".join([text, *self._notes()]), failed
        asked, hidden = redacted_entry(name, arguments, self.project(directory), self._container)
        try:
            self.deliver(time.monotonic() + EARLIER)  # what was asked for before comes first
            if self.outbox.waiting():
                raise Unreachable("Earlier writes still wait to be delivered.")
            text, failed = self._send(asked)
            return (
                f"{text}\n{hidden} private or secret part(s) taken out before it was sent."
                if hidden
                else text
            ), failed
        except Unreachable as error:
            self.outbox.put(asked)
            waiting = len(self.outbox.waiting())
            said = f"Kept on this machine: {error.message} It is delivered once the server is reached again, exactly once ({waiting} waiting)."
            return said, False

    def _send(self, entry: Entry) -> tuple[str, bool]:
        where = {"project": entry.project, "container": entry.container}
        answer = self._client.post(
            f"/tools/{entry.tool}",
            {"arguments": entry.arguments},
            key=entry.key,
            seconds=QUICK,
            **where,
        )
        if not isinstance(answer, dict) or not isinstance(answer.get("text"), str):
            raise Unreachable(f"{self._client.shown} answered with something else.")
        return answer["text"], answer.get("failed") is True

    def _notes(self) -> list[str]:
        notes = []
        if waiting := len(self.outbox.waiting()):
            notes.append(
                f"Note: {waiting} write(s) of this machine still wait for the team's server."
            )
        if aside := len(self.outbox.aside()):
            notes.append(
                f"Note: the team's server refused {aside} write(s) of this machine; they are kept in {self.outbox.place}."
            )
        return notes

    def deliver(self, until: float | None = None) -> int:
        """Delivers what waits, if the server is there; with `until`, no longer than that."""

        def send(entry: Entry) -> str | None:
            try:
                text, failed = self._send(entry)
            except Refused as error:
                return f"{error.message} {error.hint or ''}"
            return text if failed else None

        if not self._delivering.acquire(
            timeout=-1 if until is None else max(0.0, until - time.monotonic())
        ):
            return 0
        try:
            return self.outbox.deliver(send, until)
        except Unreachable as error:
            log.debug("Not delivered: %s", error.message)
            return 0
        finally:
            self._delivering.release()

    def keep_delivering(self) -> None:
        """Tries now and then until `close`."""
        while True:
            if done := self.deliver():
                log.info("Delivered %d writes.", done)
            if self._ended.wait(AGAIN):
                return

    def close(self) -> None:
        self._ended.set()
