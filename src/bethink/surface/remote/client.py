"""A team's server from somebody's machine: requests that are bounded in time and size, with a token that is never shown and errors that
say what to do next; and the server as one of the two sides that `features/sync.py` brings in step."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlencode

from bethink import post
from bethink.errors import BethinkError, ConfigError
from bethink.features.sync import PLACES, Line, Link, Outline
from bethink.post import Deadline, Key, PostError
from bethink.store.bundle import Bundle, Record, bundle_from_json, bundle_to_json
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


class Failed(Unreachable):
    """The server is there, and broke over what it was asked."""


class Refused(BethinkError):
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
                raise Failed(error.message, "The server's log says why.") from error
            if error.kind in AWAY:
                raise Unreachable(
                    error.message, "Check the address and whether the server runs."
                ) from error
            raise Refused(error.message, hint) from error


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
                str(id): Line(bytes.fromhex(version), str(hash), alone is True)
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
            left += self._left(self._ask("take", bundle=bundle_to_json(part), expect=given))
        return tuple(left)

    def remove(
        self, gone: Mapping[str, bytes | None], purge: Sequence[str], unlink: Sequence[Link]
    ) -> tuple[str, ...]:
        left: list[str] = []
        for page in _parts(list(gone), IDS):
            expect = {id: one.hex() for id in page if (one := gone[id]) is not None}
            left += self._left(self._ask("remove", gone=page, expect=expect))
        for ids in _parts(purge, IDS):
            self._ask("remove", purge=ids)
        for links in _parts(unlink, IDS):
            self._ask("remove", unlink=[list(link) for link in links])
        return tuple(left)

    def purged(self, hashes: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for page in _parts(hashes, HASHES):
            found |= set(self._ask("purged", hashes=page)["purged"]) & set(page)
        return found

    def places(self) -> Bundle:
        return self._bundle(self._ask("places"))

    def _ask(self, operation: str, **body: Any) -> Any:
        return self._client.post(f"/sync/{operation}", body, seconds=LONG, **self._where)

    def _left(self, answer: Any) -> list[str]:
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
