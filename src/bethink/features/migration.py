"""Moving a whole memory from one database into another, page by page: ids, history, relations, vectors and what was purged.

Each part of the source is compared with the target by digests, and what differs is brought over or removed, until a whole round finds
both the same. So a migration that was cut off goes on from there, and one whose source is written to meanwhile catches up. The
source is only read. A team's database knows projects by name and a person's own by folder, so on the way from one to the other
scopes are renamed, and back. What can be made anew, such as the cache of embeddings, stays behind. This module knows no SQL.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from bethink import project as projects
from bethink.errors import InvalidInput, StoreError
from bethink.store.base import Store
from bethink.store.bundle import EPOCH, PARTS, Bundle, Tally, digest, item_key, rename_scope
from bethink.types import Batch, Relation

ROUNDS = 4  # in which a source that is written to meanwhile is caught up with
NOTE, SCOPES = "migration", "migrated-scopes"

Progress = Callable[[int, int], None]


class Moved(NamedTuple):
    """What a migration found on both sides at its end."""

    parts: dict[str, Tally]
    taken: int  # items that this run brought over or removed
    resumed: bool  # whether an earlier run had begun it


def migrate(
    source: Store, target: Store, origin: str, *, progress: Progress | None = None
) -> Moved:
    """Brings everything over and compares. `origin` names the source, so that a second run knows it."""
    resumed = _claim(target, origin)
    names = map_scopes(source, target)
    if names:
        target.take(Bundle(), note=(SCOPES, json.dumps({new: old for old, new in names.items()})))
    overview = source.overview()
    total = overview.memories + overview.deleted

    def report(number: int) -> None:
        if progress and total:
            progress(min(number, total), total)

    taken = 0
    for _ in range(ROUNDS):
        done = {part: _catch_up(source, target, part, names, report) for part in PARTS}
        changed = sum(number for number, _ in done.values())
        if not changed:
            return Moved({part: tally for part, (_, tally) in done.items()}, taken, resumed)
        taken += changed
    differing = ", ".join(part for part, (number, _) in done.items() if number)
    raise StoreError(
        f"Source and target do not agree: {differing}.",
        "Stop what writes to the source, then run the same command again: it goes on from here.",
    )


def _claim(target: Store, origin: str) -> bool:
    """Notes whose memories a database is for, if it has none of its own. Says whether an earlier run had done so."""
    noted = target.read_note(NOTE)
    if noted == origin:
        return True
    overview = target.overview()
    held = overview.memories + overview.deleted
    if held or overview.sources or overview.sessions:
        whose = f", brought from {noted}" if noted is not None else ""
        raise InvalidInput(
            f"The target holds {held} memories already{whose}.",
            "Migrate into an empty database; `bethink sync` merges two that are in use.",
        )
    target.take(Bundle(), note=(NOTE, origin))
    return False


def _catch_up(
    source: Store,
    target: Store,
    part: str,
    names: Mapping[str, str],
    report: Callable[[int], None],
) -> tuple[int, Tally]:
    """Brings over what differs in a part, and removes what the source no longer has. Returns how much that was, and what the
    source holds."""
    known = {item_key(part, one): digest(part, one) for one in target.items(part)}
    tally, taken = Tally(), 0
    for bundle in source.export(part):
        now = [rename_scope(item, names) for item in getattr(bundle, part)]
        digests = [digest(part, item) for item in now]
        tally = tally.plus(digests)
        fresh = tuple(
            item
            for item, one in zip(now, digests, strict=True)
            if known.pop(item_key(part, item), None) != one
        )
        differing = bundle._replace(**{part: fresh})  # type: ignore[arg-type]
        left = target.take(differing, allow_purged=True) if fresh else ()
        if left:
            raise StoreError(
                f"The target refused {len(left)} memories, the first of them {left[0]}.",
                "Somebody else writes to it; migrate into one of your own.",
            )
        taken += len(fresh)
        if part == "records":
            report(tally.number)
    if known and part == "records":
        target.take(Bundle(gone=tuple(known)))
    elif known and part == "relations":
        gone = tuple(Relation(*key) for key in known)
        target.write(Batch(at=EPOCH, actor="migration", unrelate=gone))
    # A scope that only the target names holds nothing: what is personal has one from the start.
    return taken + (0 if part == "scopes" else len(known)), tally


def map_scopes(source: Store, target: Store) -> dict[str, str]:
    """Scope in the source → scope in the target, for those that differ. What would fall together with another keeps its name."""
    to_team, from_team = (hasattr(store, "act_as") for store in (target, source))
    if to_team == from_team:
        return {}
    before = json.loads(source.read_note(SCOPES) or "{}") if from_team else {}
    names = {
        key: before.get(key) or _find_scope(key, name, path, to_team)
        for key, name, path in source.items("scopes")
    }
    for key in names:
        owner, _, container = key.removeprefix("container:").partition("/")
        project = names.get(f"project:{owner}")
        if project and key.startswith("container:") and not names[key]:
            names[key] = f"container:{project.removeprefix('project:')}/{container}"
    wanted = Counter(new or key for key, new in names.items())
    return {key: new for key, new in names.items() if new and wanted[new] == 1 and key != new}


def _find_scope(key: str, name: str, path: str, to_team: bool) -> str:
    """What the other kind of database calls a project: a team's by its name, a person's by its folder; "" if as here."""
    team = f"project:{projects.team_identity(name)}"
    if to_team:
        return team if key.startswith("project:") and name else ""
    is_here = name and path and key == team and Path(path).is_dir()
    return projects.find(Path(path)).scope if is_here else ""
