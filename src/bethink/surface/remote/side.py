"""A team's server as one of the two databases that `syncing` brings in step."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bethink.errors import BethinkError
from bethink.features.syncing import Line, Link, Outline
from bethink.store.bundle import Bundle, Record, bundle_from_json, bundle_to_json
from bethink.surface.remote.client import LONG, Client
from bethink.types import PERSONAL, Relation

LARGEST = 4 << 20  # bytes of one request: the server reads no more than eight
PAGE = 5000
WRONG = (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError)


class Server:
    """The far side. It knows the project by the name that the team gave it."""

    def __init__(self, client: Client, name: str, container: str | None = None) -> None:
        self._client, self._name, self._container = client, name, container

    def outline(self, scope: str, what: Sequence[str]) -> Outline:
        answer = self._ask(scope, "outline", {"what": list(what)}, LONG)
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

    def fetch(self, scope: str, ids: Sequence[str]) -> list[Record]:
        records: list[Record] = []
        for page in _parts(ids, 100):
            records += self._bundle(self._ask(scope, "records", {"ids": list(page)}, LONG)).records
        return records

    def take(
        self, scope: str, bundle: Bundle, expect: Mapping[str, bytes | None]
    ) -> tuple[str, ...]:
        left: list[str] = []
        for part in _split(bundle):
            wanted = {record.memory.id for record in part.records}
            given = {
                id: None if one is None else one.hex() for id, one in expect.items() if id in wanted
            }
            answer = self._ask(
                scope, "take", {"bundle": bundle_to_json(part), "expect": given}, LONG
            )
            left += self._left(answer)
        return tuple(left)

    def remove(
        self,
        scope: str,
        gone: Mapping[str, bytes | None],
        purge: Sequence[str],
        unlink: Sequence[Link],
    ) -> tuple[str, ...]:
        left: list[str] = []
        for page in _parts(list(gone), 500):
            expect = {id: one.hex() for id in page if (one := gone[id]) is not None}
            left += self._left(self._ask(scope, "remove", {"gone": page, "expect": expect}, LONG))
        for ids in _parts(purge, 500):
            self._ask(scope, "remove", {"purge": ids}, LONG)
        for links in _parts(unlink, 500):
            self._ask(scope, "remove", {"unlink": [list(link) for link in links]}, LONG)
        return tuple(left)

    def purged(self, hashes: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for page in _parts(hashes, PAGE):
            answer = self._ask("", "purged", {"hashes": list(page)})
            found |= set(answer["purged"]) & set(page)
        return found

    def places(self, scope: str) -> Bundle:
        return self._bundle(self._ask(scope, "places", {}, LONG))

    def _left(self, answer: Any) -> list[str]:
        return (
            [str(id) for id in answer["left"]]
            if isinstance(answer, dict) and isinstance(answer.get("left"), list)
            else []
        )

    def _ask(self, scope: str, what: str, body: Any, seconds: float = LONG) -> Any:
        personal = "true" if scope == PERSONAL else None
        return self._client.post(
            f"/sync/{what}",
            body,
            seconds=seconds,
            project=f"team:{self._name}",
            container=self._container,
            personal=personal,
        )

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


def _parts(items: Sequence[Any], size: int) -> Iterable[Sequence[Any]]:
    for at in range(0, len(items), size):
        yield items[at : at + size]


def _split(bundle: Bundle) -> Iterable[Bundle]:
    """Parts of a bundle that are small enough to be sent."""
    if bundle.size <= 1 or len(json.dumps(bundle_to_json(bundle))) <= LARGEST:
        yield bundle
        return
    for name in ("sources", "sessions", "spans", "records", "relations", "turns"):
        items = getattr(bundle, name)
        if not items:
            continue
        if len(items) == 1:
            parts = [items]
        else:
            parts = [items[: len(items) // 2], items[len(items) // 2 :]]
        for part in parts:
            scopes = bundle.scopes if name == "records" else ()
            smaller = Bundle(scopes=scopes)._replace(**{name: part})
            yield from [smaller] if len(part) == 1 else _split(smaller)
