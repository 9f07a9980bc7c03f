"""Moving a whole memory from one database into another, page by page: ids, history, relations, vectors and what was purged.

A team's database knows projects by name and a person's own by folder, so on the way from one to the other scopes are renamed, and back.
Each page goes in together with a note of how far it was, so a migration that was cut off goes on from there. At the end both
databases are read once more and compared by number and digest. The source is only read. What can be made anew, such as the
cache of embeddings, stays behind. This module knows no SQL.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from bethink import project as projects
from bethink.errors import InvalidInput, StoreError
from bethink.store.base import Store
from bethink.store.bundle import EPOCH, PARTS, Bundle, Tally, digest
from bethink.types import Batch, Relation

PAGE = 500
ROUNDS = 3  # times that a source which is written to meanwhile is caught up with
NOTE, SCOPES = "migration", "migrated-scopes"

Progress = Callable[[int, int], None]


class Moved(NamedTuple):
    """What a migration found on both sides at its end."""

    parts: dict[str, Tally]
    taken: int  # items that this run brought over
    resumed: bool  # whether an earlier run had begun it


def migrate(
    source: Store, target: Store, origin: str, *, page: int = PAGE, progress: Progress | None = None
) -> Moved:
    """Brings everything over and compares. `origin` names the source, so that a second run knows it."""
    state = _begun(target, origin)
    names = renamed(source, target)
    if names:
        target.take(Bundle(), note=(SCOPES, json.dumps({new: old for old, new in names.items()})))
    source = cast(Store, Renaming(source, names))
    resumed, taken = state is not None, 0
    done, total = 0, source.overview().memories + source.overview().deleted
    part, after = state or (PARTS[0], "")
    for at in range(PARTS.index(part) if part else len(PARTS), len(PARTS)):
        while True:
            bundle, after = source.export(PARTS[at], after, page)
            if not bundle_items(bundle, PARTS[at]):
                break
            _take(target, bundle, _note(origin, PARTS[at], after))
            taken += bundle.size
            done += len(bundle.records)
            if progress and bundle.records:
                progress(min(done, total), total)
        after = ""
        target.take(Bundle(), note=_note(origin, PARTS[at + 1] if at + 1 < len(PARTS) else "", ""))
    return _settled(source, target, page, taken, resumed)


def renamed(source: Store, target: Store) -> dict[str, str]:
    """Scope in the source → scope in the target, for those that differ. What would fall together with another keeps its name."""
    to_team, from_team = (hasattr(store, "acting") for store in (target, source))
    if to_team == from_team:
        return {}
    known = [scope for bundle in pages(source, "scopes") for scope in bundle.scopes]
    before = json.loads(source.noted(SCOPES) or "{}") if from_team else {}
    names: dict[str, str] = {}
    for key, name, path in known:
        if to_team and key.startswith("project:") and name:
            names[key] = f"project:{projects.team_identity(name)}"
        elif from_team and key in before:
            names[key] = before[key]
        elif (
            from_team
            and name
            and path
            and key == f"project:{projects.team_identity(name)}"
            and Path(path).is_dir()
        ):
            names[key] = projects.find(Path(path)).scope
    for key, _, _ in known:
        owner, _, container = key.removeprefix("container:").partition("/")
        if key.startswith("container:") and f"project:{owner}" in names and key not in names:
            names[key] = (
                f"container:{names[f'project:{owner}'].removeprefix('project:')}/{container}"
            )
    wanted = Counter([*names.values(), *(key for key, _, _ in known if key not in names)])
    return {key: new for key, new in names.items() if wanted[new] == 1 and key != new}


class Renaming:
    """A store whose scopes go by other names when they are given out."""

    def __init__(self, store: Store, names: Mapping[str, str]) -> None:
        self._store, self._names = store, names

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def export(self, part: str, after: str, limit: int) -> tuple[Bundle, str]:
        bundle, after = self._store.export(part, after, limit)
        if self._names and part in MOVES:
            items = tuple(MOVES[part](item, self._names) for item in bundle_items(bundle, part))
            bundle = bundle._replace(**{part: items})  # type: ignore[arg-type]
        return bundle, after


def _first(item: Any, names: Mapping[str, str]) -> Any:
    return (names.get(item[0], item[0]), *item[1:])


def _own(item: Any, names: Mapping[str, str]) -> Any:
    return item._replace(scope=names.get(item.scope, item.scope))


MOVES: dict[str, Callable[[Any, Mapping[str, str]], Any]] = {
    "scopes": _first,
    "sources": _first,
    "turns": _first,
    "sessions": _own,
    "spans": lambda item, names: (_own(item[0], names), item[1]),
    "records": lambda item, names: item._replace(memory=_own(item.memory, names)),
}


def named(target: str) -> str:
    """A database as people may see it: without a password, and a path in full."""
    if "://" not in target:
        return str(Path(target).expanduser().absolute())
    scheme, _, rest = target.partition("://")
    place, question, options = rest.partition("?")
    kept = "&".join(
        option
        for option in options.split("&")
        if option and "password" not in option.partition("=")[0].lower()
    )
    who, at, where = place.rpartition("@")
    return f"{scheme}://{who.partition(':')[0]}{at}{where}{question if kept else ''}{kept}"


def bundle_items(bundle: Bundle, part: str) -> tuple[Any, ...]:
    return getattr(bundle, part)  # type: ignore[no-any-return]


def _note(origin: str, part: str, after: str) -> tuple[str, str]:
    return NOTE, json.dumps({"from": origin, "part": part, "after": after})


def _begun(target: Store, origin: str) -> tuple[str, str] | None:
    """How far an earlier run came; None where the target is empty. A database with memories of its own is left alone."""
    noted = target.noted(NOTE)
    if noted is not None:
        state = json.loads(noted)
        if state["from"] == origin:
            return state["part"], state["after"]
    overview = target.overview()
    held = overview.memories + overview.deleted
    if held or overview.sources or overview.sessions:
        whose = f", brought from {json.loads(noted)['from']}" if noted is not None else ""
        raise InvalidInput(
            f"The target holds {held} memories already{whose}.",
            "Migrate into an empty database; `bethink sync` merges two that are in use.",
        )
    return None


def _take(target: Store, bundle: Bundle, note: tuple[str, str] | None = None) -> None:
    left = target.take(bundle, allow_purged=True, note=note)
    if left:
        raise StoreError(
            f"The target refused {len(left)} memories, the first of them {left[0]}.",
            "Somebody else writes to it; migrate into one of your own.",
        )


def tallies(store: Store, page: int = PAGE) -> dict[str, Tally]:
    """How many of each part a store holds, with a digest of them all."""
    found = {}
    for part in PARTS:
        tally = Tally()
        for bundle in pages(store, part, page):
            tally = tally.plus(digest(part, item) for item in bundle_items(bundle, part))
        found[part] = tally
    return found


def pages(store: Store, part: str, page: int = PAGE) -> Iterator[Bundle]:
    after = ""
    while True:
        bundle, after = store.export(part, after, page)
        if not bundle_items(bundle, part):
            return
        yield bundle


def _settled(source: Store, target: Store, page: int, taken: int, resumed: bool) -> Moved:
    """Compares, and where somebody wrote to the source meanwhile brings that over too."""
    for _ in range(ROUNDS):
        there, here = tallies(target, page), tallies(source, page)
        differing = [part for part in PARTS if there[part] != here[part]]
        if not differing:
            return Moved(there, taken, resumed)
        taken += sum(_caught_up(source, target, part, page) for part in differing)
    there, here = tallies(target, page), tallies(source, page)
    differing = [part for part in PARTS if there[part] != here[part]]
    if differing:
        told = ", ".join(f"{part} {here[part].number} → {there[part].number}" for part in differing)
        raise StoreError(
            f"Source and target do not agree: {told}.",
            "Stop what writes to the source, then run the same command again: it goes on from here.",
        )
    return Moved(there, taken, resumed)


def _caught_up(source: Store, target: Store, part: str, page: int) -> int:
    """Brings over what differs, and removes what the source no longer has."""
    known = {
        _key(part, item): digest(part, item)
        for bundle in pages(target, part, page)
        for item in bundle_items(bundle, part)
    }
    taken = 0
    for bundle in pages(source, part, page):
        items = bundle_items(bundle, part)
        fresh = tuple(
            item for item in items if known.pop(_key(part, item), None) != digest(part, item)
        )
        if fresh:
            _take(target, bundle._replace(**{part: fresh}))  # type: ignore[arg-type]
            taken += len(fresh)
    if known and part == "records":
        target.take(Bundle(gone=tuple(known)))
    elif known and part == "relations":
        target.write(
            Batch(
                at=EPOCH,
                actor="migration",
                unrelate=tuple(Relation(*json.loads(key)) for key in known),
            )
        )
    return taken + len(known)


def _key(part: str, item: Any) -> str:
    """By what an item is known in its part."""
    if part == "records":
        return str(item.memory.id)
    if part == "relations":
        return json.dumps(item[0][:3])
    if part == "spans":
        return str(item[0].id)
    if part == "sessions":
        return str(item.id)
    if part == "sources":
        return json.dumps([item[0], item[1].uri])
    return json.dumps(
        [
            value.hex() if isinstance(value, bytes) else str(value)
            for value in item[: 2 if part == "turns" else 1]
        ]
    )
