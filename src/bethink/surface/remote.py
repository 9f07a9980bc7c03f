"""A team's server from somebody's machine: requests that are bounded in time and size, with a token that is never shown and errors that
say what to do next; and the server as one of the two peers that `features/sync.py` brings in step.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import SplitResult, urlencode

from bethink import post
from bethink.errors import BethinkError, ConfigError
from bethink.features.sync import Link, Outline, OutlineEntry
from bethink.post import Key, PostError
from bethink.store.rows import Record
from bethink.store.transfer import Bundle, bundle_from_json, bundle_to_json, split_pages
from bethink.types import Relation

VARIABLE = "BETHINK_TOKEN"
API = "/api/v1"
LARGEST_ANSWER = 256 << 20
PATIENCE = 300.0  # seconds for a request: the server reads a whole project for some
LARGEST_REQUEST = 4 << 20  # bytes: the server reads no more than eight
HASHES, IDS, RECORDS = 5000, 500, 100  # of one request
WRONG = (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError)
HINTS = {
    "key": f"Put a token of that server into {VARIABLE}; `bethink token create` on the server makes one.",
    "missing": "Check the address; it is that of `bethink serve`, without a path.",
}


def read_token() -> Key | None:
    """The token for the server, of the environment. It is in no setting, because settings are shown."""
    try:
        return post.key((VARIABLE,))
    except ValueError as error:
        raise ConfigError(f"{error}.", "Copy the token once more.") from error


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

    def post(self, path: str, body: Any, **query: str | None) -> Any:
        """The answer to a request."""
        parts = self._address
        given = urlencode({name: value for name, value in query.items() if value})
        where = SplitResult(parts.scheme, parts.netloc, parts.path + path, given, "")
        headers = {"Authorization": f"Bearer {self._secret.value}"} if self._secret else {}
        try:
            return post.send(where, body, headers, self._secret, PATIENCE, LARGEST_ANSWER)
        except PostError as error:
            hint = HINTS.get(error.kind, "Check the address and whether the server runs.")
            raise BethinkError(error.message, hint) from error


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

    def outline(self) -> Outline:
        answer = self._ask("outline")
        try:
            lines = {
                str(id): OutlineEntry(bytes.fromhex(version), str(hash), bool(unique))
                for id, version, hash, unique in answer["lines"]
            }
            links = {}
            for source, target, type, at, actor in answer["links"]:
                relation = Relation(source, target, type, datetime.fromtimestamp(at / 1000, UTC))
                links[source, target, type] = (relation, actor)
        except WRONG as error:
            raise self._odd(error) from error
        return Outline(lines, links)

    def fetch(self, ids: Sequence[str]) -> list[Record]:
        try:
            return [
                record
                for page in split_pages(ids, RECORDS)
                for record in bundle_from_json(self._ask("records", ids=page)["bundle"]).records
            ]
        except WRONG as error:
            raise self._odd(error) from error

    def take(self, bundle: Bundle, expect: Mapping[str, bytes | None]) -> tuple[str, ...]:
        left: list[str] = []
        for part in _split(bundle):
            wanted = {record.memory.id for record in part.records}
            given = {
                id: None if one is None else one.hex() for id, one in expect.items() if id in wanted
            }
            left += self._read_left(self._ask("take", bundle=bundle_to_json(part), expect=given))
        return tuple(left)

    def remove(self, purge: Sequence[str], unlink: Sequence[Link]) -> None:
        for ids in split_pages(purge, IDS):
            self._ask("remove", purge=ids)
        for links in split_pages(unlink, IDS):
            self._ask("remove", unlink=[list(link) for link in links])

    def find_purged(self, hashes: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for page in split_pages(hashes, HASHES):
            found |= set(self._ask("purged", hashes=page)["purged"]) & set(page)
        return found

    def _ask(self, operation: str, **body: Any) -> Any:
        return self._client.post(f"/sync/{operation}", body, **self._where)

    def _read_left(self, answer: Any) -> list[str]:
        left = answer.get("left") if isinstance(answer, dict) else None
        return [str(id) for id in left] if isinstance(left, list) else []

    def _odd(self, error: Exception) -> BethinkError:
        return BethinkError(
            f"{self._client.shown} answered with something that is no part of a memory: {error}.",
            "Is its version older?",
        )


def _split(bundle: Bundle) -> Iterable[Bundle]:
    """Parts of a bundle that are small enough to be sent."""
    if bundle.size <= 1 or len(json.dumps(bundle_to_json(bundle))) <= LARGEST_REQUEST:
        yield bundle
        return
    for name in ("records", "relations"):
        items = getattr(bundle, name)
        half = (len(items) + 1) // 2
        for part in split_pages(items, half) if items else ():
            smaller = Bundle(scopes=bundle.scopes)._replace(**{name: tuple(part)})  # type: ignore[arg-type]
            yield from [smaller] if len(part) == 1 else _split(smaller)
