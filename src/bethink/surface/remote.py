"""A team's server from somebody's machine: requests that are bounded in time and size, with a token that is never shown and errors that
say what to do next; the server as one of the two sides that `features/sync.py` brings in step; and calls of its tools, with an outbox
for writes that could not be delivered.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlencode

from bethink import post
from bethink import project as projects
from bethink.config import data_directory
from bethink.errors import BethinkError, ConfigError
from bethink.features.sync import PLACES, Link, Outline, OutlineEntry
from bethink.ingest.redact import redact_value
from bethink.post import Deadline, Key, PostError
from bethink.store.bundle import Bundle, Record, bundle_from_json, bundle_to_json
from bethink.surface.mcp import schemas
from bethink.text import textfile
from bethink.text.ids import new_id
from bethink.types import Relation

VARIABLE = "BETHINK_TOKEN"
API = "/api/v1"
LARGEST_ANSWER = 256 << 20
LONGEST_TOKEN = 1000
PATIENCE = 20.0  # seconds for a call
LONG = 300.0  # seconds for what reads a whole project
AWAY = (
    "unreachable",
    "timeout",
    "broken",
    "busy",
    "garbage",
    "large",
)  # the server may well be there later
BROKEN = 500  # what the server answers where it is itself at fault; others of that kind say that something before it is away

LARGEST_REQUEST = 4 << 20  # bytes: the server reads no more than eight
HASHES, IDS, RECORDS = 5000, 500, 100  # of one request
WRONG = (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError)
HINTS = {
    "key": f"Put a token of that server into {VARIABLE}; `bethink token create` on the server makes one.",
    "redirect": "Give the address that it redirects to.",
    "missing": "Check the address; it is that of `bethink serve`, without a path.",
}


class Unreachable(BethinkError):
    """The server cannot be reached, or did not answer: whether it did what was asked is not known."""


class ServerFailure(Unreachable):
    """The server is there, and broke over what it was asked."""


class ServerRefusal(BethinkError):
    """The server is there and says no."""


def read_token(file: str | None = None) -> Key | None:
    """The token for the server: of a file, or of the environment. It is in no setting, because settings are shown."""
    if file is None:
        try:
            return post.key((VARIABLE,))
        except ValueError as error:
            raise ConfigError(f"{error}.", "Copy the token once more.") from error
    path = Path(file).expanduser()
    try:
        with path.open("r", encoding="utf-8") as stream:
            text = stream.read(LONGEST_TOKEN + 1).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"The token file {file} cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}.",
            "Check the path.",
        ) from error
    if (
        not text
        or len(text) > LONGEST_TOKEN
        or not text.isascii()
        or any(character.isspace() for character in text)
    ):
        raise ConfigError(
            f"The file {file} does not hold a token.",
            "One line that starts with rcl_ belongs into it.",
        )
    return Key(text, str(file))


class Client:
    """One server, as the holder of one token."""

    def __init__(self, url: str, secret: Key | None) -> None:
        try:
            self._address = post.address(url, API)
        except ValueError as error:
            raise ConfigError(
                f"The team's server cannot be asked: {error}.", "Give it as https://memory.example"
            ) from error
        host = self._address.hostname or ""
        if self._address.scheme == "http" and secret and not post.is_this_machine(host):
            raise ConfigError(
                f"Without TLS the token for {host} can be read on the way.",
                f"Give it as https://{host}",
            )
        self._secret = secret
        self.shown = f"{self._address.scheme}://{self._address.netloc}"

    def post(
        self,
        path: str,
        body: Any,
        *,
        key: str | None = None,
        seconds: float = PATIENCE,
        **query: str | None,
    ) -> Any:
        """The answer to a request. With a key the server does it once, however often it is sent."""
        parts = self._address
        given = urlencode({name: value for name, value in query.items() if value})
        where = SplitResult(parts.scheme, parts.netloc, parts.path + path, given, "")
        headers = {"Authorization": f"Bearer {self._secret.value}"} if self._secret else {}
        if key:
            headers["Idempotency-Key"] = key
        try:
            return post.send(where, body, headers, self._secret, Deadline(seconds), LARGEST_ANSWER)
        except PostError as error:
            hint = HINTS.get(error.kind)
            if error.status == BROKEN:
                raise ServerFailure(error.message, "The server's log says why.") from error
            if error.kind in AWAY:
                raise Unreachable(
                    error.message, "Check the address and whether the server runs."
                ) from error
            raise ServerRefusal(error.message, hint) from error


class ServerPeer:
    """The far peer of a sync. It knows the project by the name that the team gave it."""

    def __init__(
        self, client: Client, name: str, container: str | None = None, personal: bool = False
    ) -> None:
        self._client = client
        self._where = {
            "project": f"team:{name}",
            "container": container,
            "personal": "true" if personal else None,
        }

    def outline(self, what: Sequence[str]) -> Outline:
        answer = self._ask("outline", what=list(what))
        try:
            lines = {
                str(id): OutlineEntry(bytes.fromhex(version), str(hash), alone is True)
                for id, version, hash, alone in answer["lines"]
            }
            links = {}
            for source, target, type, at, actor in answer["links"]:
                relation = Relation(source, target, type, datetime.fromtimestamp(at / 1000, UTC))
                links[source, target, type] = (relation, actor)
        except WRONG as error:
            raise self._odd(error) from error
        return Outline(lines, links)

    def fetch(self, ids: Sequence[str]) -> list[Record]:
        pages = (self._ask("records", ids=page) for page in _parts(ids, RECORDS))
        return [record for answer in pages for record in self._bundle(answer).records]

    def take(self, bundle: Bundle, expect: Mapping[str, bytes | None]) -> tuple[str, ...]:
        left: list[str] = []
        for part in _split(bundle):
            wanted = {record.memory.id for record in part.records}
            given = {
                id: None if one is None else one.hex() for id, one in expect.items() if id in wanted
            }
            left += self._read_left(self._ask("take", bundle=bundle_to_json(part), expect=given))
        return tuple(left)

    def remove(
        self, gone: Mapping[str, bytes | None], purge: Sequence[str], unlink: Sequence[Link]
    ) -> tuple[str, ...]:
        left: list[str] = []
        for page in _parts(list(gone), IDS):
            expect = {id: one.hex() for id in page if (one := gone[id]) is not None}
            left += self._read_left(self._ask("remove", gone=page, expect=expect))
        for ids in _parts(purge, IDS):
            self._ask("remove", purge=ids)
        for links in _parts(unlink, IDS):
            self._ask("remove", unlink=[list(link) for link in links])
        return tuple(left)

    def find_purged(self, hashes: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for page in _parts(hashes, HASHES):
            found |= set(self._ask("purged", hashes=page)["purged"]) & set(page)
        return found

    def places(self) -> Bundle:
        return self._bundle(self._ask("places"))

    def _ask(self, operation: str, **body: Any) -> Any:
        return self._client.post(f"/sync/{operation}", body, seconds=LONG, **self._where)

    def _read_left(self, answer: Any) -> list[str]:
        left = answer.get("left") if isinstance(answer, dict) else None
        return [str(id) for id in left] if isinstance(left, list) else []

    def _bundle(self, answer: Any) -> Bundle:
        try:
            return bundle_from_json(answer["bundle"])
        except WRONG as error:
            raise self._odd(error) from error

    def _odd(self, error: Exception) -> BethinkError:
        return BethinkError(
            f"{self._client.shown} answered with something that is no part of a memory: {error}.",
            "Is its version older?",
        )


def _parts(items: Sequence[Any], size: int) -> Iterable[list[Any]]:
    for at in range(0, len(items), size):
        yield list(items[at : at + size])


def _split(bundle: Bundle) -> Iterable[Bundle]:
    """Parts of a bundle that are small enough to be sent."""
    if bundle.size <= 1 or len(json.dumps(bundle_to_json(bundle))) <= LARGEST_REQUEST:
        yield bundle
        return
    for name in (*PLACES, "records", "relations"):
        items = getattr(bundle, name)
        half = (len(items) + 1) // 2
        for part in _parts(items, half) if items else ():
            smaller = Bundle(scopes=bundle.scopes)._replace(**{name: tuple(part)})  # type: ignore[arg-type]
            yield from [smaller] if len(part) == 1 else _split(smaller)


# Calls of tools, and the outbox: one file for each write that waits, in the order in which they were asked for, until the server has
# said that it did them. Each carries a key made when it was asked for, under which the server does it once: a delivery whose answer
# was lost is simply made again. Secrets are taken out before anything is sent or written, so that every delivery says the same. What
# the server refuses for good, or breaks over while it does later ones, is set aside and told, not lost. Several processes may share
# an outbox; one delivers at a time.

READY, ASIDE = ".json", ".refused"
MOST = 10_000  # entries that wait; more are refused, so that a server that is gone for good does not fill the disk
AGAIN = 15.0  # seconds between two attempts to deliver what waits
QUICK = 8.0  # seconds that an agent is kept waiting for the server
EARLIER = 4.0  # seconds in which a call begins to deliver what was asked for before it; the rest waits on, and the call with it
TRIES = 5  # deliveries that the server may break over before later ones are tried without it

log = logging.getLogger("bethink")


class WaitingCall(NamedTuple):
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
) -> tuple[WaitingCall, int]:
    """A write without its secrets, and how many were taken out."""
    clean, hidden = redact_value(arguments)
    return WaitingCall(str(uuid.uuid4()), tool, clean, project, container), hidden


class Outbox:
    def __init__(self, place: Path) -> None:
        self.place = place
        self._failures: Counter[str] = Counter()  # file → how often the server broke over it

    def put(self, entry: WaitingCall) -> None:
        """Keeps a write. When this returns it survives a power cut."""
        if len(self.list_waiting()) >= MOST:
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

    def list_waiting(self) -> list[Path]:
        return self._files(READY)

    def aside(self) -> list[Path]:
        """What the server would not take."""
        return self._files(ASIDE)

    def _files(self, suffix: str) -> list[Path]:
        try:
            return sorted(path for path in self.place.iterdir() if path.suffix == suffix)
        except OSError:
            return []

    def deliver(self, send: Callable[[WaitingCall], str | None], until: float | None = None) -> int:
        """Sends what waits, oldest first, until the server cannot be reached. `send` says why an entry was refused for good, or None.
        With `until`, a moment of the monotonic clock, nothing more is begun after it. Returns how many were delivered."""
        if not self.list_waiting():
            return 0
        done = 0
        broken: list[tuple[Path, str]] = []
        with textfile.alone(self.place, until) as ours:
            for file in self.list_waiting() if ours else ():
                if until is not None and time.monotonic() >= until:
                    break
                entry = _read(file)
                try:
                    refused = "It cannot be read." if entry is None else send(entry)
                except ServerFailure as error:
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


def _read(file: Path) -> WaitingCall | None:
    try:
        value = json.loads(file.read_text("ascii"))
        entry = WaitingCall(**value)
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
                WaitingCall("", name, arguments, self.project(directory), self._container)
            )
            return "\n".join([text, *self._notes()]), failed
        asked, hidden = redacted_entry(name, arguments, self.project(directory), self._container)
        try:
            self.deliver(time.monotonic() + EARLIER)  # what was asked for before comes first
            if self.outbox.list_waiting():
                raise Unreachable("Earlier writes still wait to be delivered.")
            text, failed = self._send(asked)
            return (
                f"{text}\n{hidden} private or secret part(s) taken out before it was sent."
                if hidden
                else text
            ), failed
        except Unreachable as error:
            self.outbox.put(asked)
            waiting = len(self.outbox.list_waiting())
            said = f"Kept on this machine: {error.message} It is delivered once the server is reached again, exactly once ({waiting} waiting)."
            return said, False

    def _send(self, entry: WaitingCall) -> tuple[str, bool]:
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
        if waiting := len(self.outbox.list_waiting()):
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

        def send(entry: WaitingCall) -> str | None:
            try:
                text, failed = self._send(entry)
            except ServerRefusal as error:
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
