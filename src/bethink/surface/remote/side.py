"""A team's server as one of the two sides that `features/sync.py` brings in step."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bethink.errors import BethinkError
from bethink.features.sync import PLACES, Line, Link, Outline
from bethink.store.bundle import Bundle, Record, bundle_from_json, bundle_to_json
from bethink.surface.remote.client import LONG, Client
from bethink.types import Relation

LARGEST = 4 << 20  # bytes of one request: the server reads no more than eight
HASHES, IDS, RECORDS = 5000, 500, 100  # of one request
WRONG = (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError)


class Server:
    """The far side. It knows the project by the name that the team gave it."""

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
    if bundle.size <= 1 or len(json.dumps(bundle_to_json(bundle))) <= LARGEST:
        yield bundle
        return
    for name in (*PLACES, "records", "relations"):
        items = getattr(bundle, name)
        half = (len(items) + 1) // 2
        for part in _parts(items, half) if items else ():
            smaller = Bundle(scopes=bundle.scopes)._replace(**{name: tuple(part)})  # type: ignore[arg-type]
            yield from [smaller] if len(part) == 1 else _split(smaller)
