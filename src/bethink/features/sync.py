"""Two databases that share a project, brought in step: what is new goes over, what both changed is merged, what one removed goes.

    outline both → compare with each other and with what both had last time → remove, push, pull, merge → remember what both have now

A project has a scope of its own in each database; on the way between them it is called "". What both had last time is noted in the
local database; without it nothing is ever removed, only added and merged. Every step is one transaction and every write expects what
was read, so a sync may be cut off or run beside writers at any moment: the next one goes on. Which of two versions is right,
`incoming.merge` says. A sync hides nothing from anybody unless what replaced it can be seen there, or somebody chose to forget it.

A migration (`migrate`) moves everything of one database into an empty one: each part is compared by digests, and what differs is brought
over or removed, until a whole round finds both the same. So one that was cut off goes on, and one whose source is written to meanwhile
catches up. The source is only read. A team's database knows projects by name and a person's own by folder, so on the way from one to the
other scopes are renamed, and back. What can be made anew, such as the cache of embeddings, stays behind. This module knows no SQL.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from bethink import project as projects
from bethink.errors import BethinkError, InvalidInput, StoreError
from bethink.features import incoming
from bethink.store.base import Store
from bethink.store.bundle import (
    EPOCH,
    PARTS,
    Bundle,
    Record,
    Tally,
    digest,
    item_key,
    list_texts,
    rename_scope,
    sign_bundle,
    split_pages,
    version,
)
from bethink.store.places import content_hash
from bethink.types import Batch, Memory, Relation

TOLD, CONVERSATIONS, DOCUMENTS = "told", "conversations", "documents"
MANY = 20  # removals that are done without asking, whatever part of the whole they are; set by hand

Link = tuple[str, str, str]
Progress = Callable[[int, int], None]


class OutlineEntry(NamedTuple):
    """What of a memory is needed to compare it."""

    version: bytes
    hash: str  # of its text
    unique: bool  # whether no other visible memory of the scope may hold the same text


def _make_entry(record: Record) -> OutlineEntry:
    return OutlineEntry(version(record), record.memory.content_hash, record.unique)


class Outline(NamedTuple):
    lines: dict[str, OutlineEntry]
    links: dict[Link, tuple[Relation, str]]


class Shared(NamedTuple):
    """What both peers had after the last sync."""

    records: Mapping[str, bytes]
    links: frozenset[Link]


class Missing(NamedTuple):
    """What becomes of memories that only one peer has."""

    gone: Mapping[str, bytes]  # to be removed without a trace, in the version that was seen
    purge: Sequence[str]
    copy: Sequence[str]

    def count_removals(self) -> int:
        return len(self.gone) + len(self.purge)


class Peer(Protocol):
    """The scope of one of the two databases, near or far."""

    def outline(self, what: Sequence[str]) -> Outline: ...

    def fetch(self, ids: Sequence[str]) -> list[Record]: ...

    def take(self, bundle: Bundle, expect: Mapping[str, bytes | None]) -> tuple[str, ...]: ...

    def remove(
        self, gone: Mapping[str, bytes | None], purge: Sequence[str], unlink: Sequence[Link]
    ) -> tuple[str, ...]:
        """Removes memories without a trace if they are still the given version (None: whichever), purges others, and ends relations.
        Returns the ids that stayed."""
        ...

    def find_purged(self, hashes: Sequence[str]) -> set[str]: ...


class SyncReport(NamedTuple):
    """What a sync did."""

    pushed: int = 0
    pulled: int = 0
    merged: int = 0
    removed_here: int = 0
    removed_there: int = 0
    links: int = 0
    # (id, fields) that both peers changed; the later word stands
    conflicts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    # ids that were not taken: changed meanwhile, or purged on the other peer
    left: tuple[str, ...] = ()


class TooMany(BethinkError):
    """So much is missing on one peer that it looks like a loss, not like somebody's wish."""


def load_shared(store: Store, name: str) -> Shared:
    """What both peers had last time, as the local database notes it. It goes back in time with a database that is restored, so what
    is missing then is not taken for removed."""
    value = json.loads(store.read_note(name) or '{"records": {}, "links": []}')
    records = {id: bytes.fromhex(one) for id, one in value["records"].items()}
    links = ((source, target, type) for source, target, type in value["links"])
    return Shared(records, frozenset(links))


def save_shared(store: Store, name: str, shared: Shared) -> None:
    records = {id: one.hex() for id, one in shared.records.items()}
    value = {"records": records, "links": sorted(shared.links)}
    store.take(Bundle(), note=(name, json.dumps(value)))


def team_scope(name: str) -> str:
    """The scope of a project that a team knows by name, the same for everybody."""
    return f"project:{projects.team_identity(name)}"


class StorePeer:
    """A peer that is a store."""

    def __init__(self, store: Store, scope: str, actor: str, clock: Callable[[], datetime]) -> None:
        self.store, self.scope, self.actor, self.clock = store, scope, actor, clock

    def outline(self, what: Sequence[str]) -> Outline:
        records = self.store.items("records", [self.scope], vectors=False)
        lines = {one.memory.id: _make_entry(one) for one in records if _sort_of(one.memory) in what}
        links = {
            (relation.source, relation.target, relation.type): (relation, actor)
            for relation, actor in self.store.items("relations", [self.scope])
            if relation.source in lines and relation.target in lines
        }
        return Outline(lines, links)

    def fetch(self, ids: Sequence[str]) -> list[Record]:
        own = [one for one in self.store.records(ids) if one.memory.scope == self.scope]
        return [rename_scope(one, {self.scope: ""}) for one in own]

    def take(self, bundle: Bundle, expect: Mapping[str, bytes | None]) -> tuple[str, ...]:
        person = getattr(self.store, "person", "")  # whom a team's database acts for
        if person:
            ids = [record.memory.id for record in bundle.records]
            bundle = sign_bundle(bundle, self.store.records(ids, vectors=False), person)
        scopes, records = (
            tuple(rename_scope(one, {"": self.scope}) for one in part)
            for part in (bundle.scopes, bundle.records)
        )
        own = incoming.note_turns(bundle._replace(scopes=scopes, records=records))
        return self.store.take(own, expect=expect)

    def remove(
        self, gone: Mapping[str, bytes | None], purge: Sequence[str], unlink: Sequence[Link]
    ) -> tuple[str, ...]:
        left: tuple[str, ...] = ()
        if gone:
            expect = {id: one for id, one in gone.items() if one is not None}
            left = self.store.take(Bundle(gone=tuple(gone)), expect=expect)
        if purge or unlink:
            ended = tuple(Relation(*link) for link in unlink)
            self.store.write(
                Batch(at=self.clock(), actor=self.actor, purge=tuple(purge), unrelate=ended)
            )
        return left

    def find_purged(self, hashes: Sequence[str]) -> set[str]:
        return self.store.find_purged(hashes)


def _sort_of(memory: Memory) -> str:
    """Whether a memory was told, said in a conversation, or read from a file."""
    if memory.source_type == "transcript" or memory.session:
        return CONVERSATIONS
    return TOLD if memory.source_type in ("note", "handoff") else DOCUMENTS


class Sync:
    """One run over one scope, which people know by `name`."""

    def __init__(
        self,
        mine: Peer,
        theirs: Peer,
        name: str = "",
        what: Sequence[str] = (TOLD,),
        allow_loss: bool = False,
    ) -> None:
        self.name, self.what, self.allow_loss = name, tuple(what), allow_loss
        # What cannot be put down far away is not put down here either.
        self.other: dict[Peer, Peer] = {theirs: mine, mine: theirs}
        self.both: dict[str, bytes] = {}  # the versions that both peers have when it is done
        self.left: list[str] = []
        self.conflicts: list[tuple[str, tuple[str, ...]]] = []

    def run(self, shared: Shared) -> tuple[SyncReport, Shared]:
        """Does it, and says what was done and what both peers have now."""
        outlines = {peer: peer.outline(self.what) for peer in self.other}
        there, here = (outline.lines for outline in outlines.values())
        common = [id for id in here if id in there]
        self.both = {id: here[id].version for id in common if here[id].version == there[id].version}
        plans = {peer: self._plan_missing(peer, outlines, shared) for peer in self.other}
        removals, known = sum(map(Missing.count_removals, plans.values())), len(shared.records)
        if not self.allow_loss and removals > max(MANY, known // 2):
            raise TooMany(
                f"{removals} of {known} memories that both sides had are missing on one of them. Nothing was changed.",
                "If they were meant to go: add --accept-removals. If a database was lost: `bethink sync --forget-base`.",
            )
        # Before anything is merged: nothing may be put behind what is going to be removed.
        removed_there, removed_here = (self._remove(peer, plan) for peer, plan in plans.items())
        merged = self._merge(common)
        pulled, pushed = (self._copy(peer, plan.copy) for peer, plan in plans.items())
        merged += self._merge(common)  # what is replaced by something that has come over since
        merged += sum(map(self._settle_twins, _find_twins(outlines)))
        links, both_links = self._exchange_links(outlines, shared)
        conflicts, left = tuple(self.conflicts), tuple(dict.fromkeys(self.left))
        report = SyncReport(
            pushed, pulled, merged, removed_here, removed_there, links, conflicts, left
        )
        # What both still have and could not be agreed on may be removed or purged by the next sync as before.
        kept = {id: shared.records[id] for id in common if id in shared.records}
        return report, Shared({**kept, **self.both}, both_links)

    # What both have

    def _merge(self, common: Sequence[str]) -> int:
        """Makes one record of memories that differ, and puts it down on both peers."""
        done = 0
        differing = [id for id in common if id not in self.both and id not in self.left]
        for page in split_pages(differing):
            found = {
                peer: {record.memory.id: record for record in peer.fetch(page)}
                for peer in self.other
            }
            for id in page:
                if all(id in records for records in found.values()):
                    done += self._agree({peer: records[id] for peer, records in found.items()})
        return done

    def _agree(self, was: Mapping[Peer, Record]) -> int:
        record, conflicts = incoming.merge(*was.values())
        memory, now = record.memory, version(record)
        for peer, before in was.items():
            is_new = memory.superseded_by not in (None, before.memory.superseded_by)
            if is_new and not memory.deleted_at and not self._shows_end(peer, memory):
                return 0  # each peer keeps what it has
        if conflicts:
            self.conflicts.append((memory.id, conflicts))
        for peer, before in was.items():
            if now != version(before) and self._put(peer, [record], {memory.id: version(before)}):
                return 0
        self.both[memory.id] = now
        return 1

    def _shows_end(self, peer: Peer, memory: Memory) -> bool:
        """Whether following what replaced a memory leads to something that the peer shows. What a private conversation, or
        something that is forgotten there, replaced here is not replaced there; nor does anything replace itself in a circle."""
        seen = {memory.id}
        while memory.superseded_by:
            found = peer.fetch([memory.superseded_by])
            if not found or found[0].memory.id in seen:
                return False
            memory = found[0].memory
            seen.add(memory.id)
        return memory.deleted_at is None

    def _settle_twins(self, ids: Mapping[Peer, str]) -> int:
        """The same text under two ids: the older one stays, the other is put behind it, where the older one is seen."""
        own = {peer: record for peer, id in ids.items() for record in peer.fetch([id])}
        if len(own) < len(ids) or any(record.memory.deleted_at for record in own.values()):
            return 0
        keep, drop = sorted(own.values(), key=lambda record: record.memory.id)
        if not all(self._shows_end(peer, keep.memory) for peer in self.other):
            self.left += ids.values()
            return 0
        behind = incoming.hide(drop, keep)
        for peer, record in own.items():
            expect = {
                one.memory.id: version(one) if one is record else None for one in (keep, drop)
            }
            if self._put(peer, [behind, keep], expect):
                return 0
        self.both |= {record.memory.id: version(record) for record in (keep, behind)}
        return len(own)

    # What one peer lacks

    def _plan_missing(
        self, peer: Peer, outlines: Mapping[Peer, Outline], shared: Shared
    ) -> Missing:
        """What becomes of the memories that only this peer has. What the other was told in the same words under an id of its own,
        whatever became of that, it does not get again. What both forgot may be told again, and what was purged goes."""
        lines, other = outlines[peer].lines, outlines[self.other[peer]].lines
        ids = [id for id in lines if id not in other]
        told = {line.hash for id, line in other.items() if line.unique and id not in lines}
        twins = {id for id in ids if lines[id].unique and lines[id].hash in told}
        known = [id for id in ids if id in shared.records]
        hashes = {id: {lines[id].hash} for id in known}
        changed = [id for id in known if lines[id].version != shared.records[id]]
        for page in split_pages(changed):
            # Its text may be another one than that which was purged.
            for record in peer.fetch(page):
                hashes[record.memory.id] = set(map(content_hash, list_texts(record)))
        texts = sorted(set[str]().union(*hashes.values()))
        purged = self.other[peer].find_purged(texts) if texts else set()
        purge = {id for id in known if hashes[id] & purged}
        gone = {
            id: shared.records[id]
            for id in known
            if id not in purge | twins and lines[id].version == shared.records[id]
        }
        # What was removed on one peer, but changed on the other since, somebody cares for.
        copy = [id for id in ids if id not in purge | twins | gone.keys()]
        return Missing(gone, list(purge), copy)

    def _remove(self, peer: Peer, missing: Missing) -> int:
        left = peer.remove(missing.gone, missing.purge, ())
        self.left += left
        return missing.count_removals() - len(left)

    def _copy(self, peer: Peer, ids: Sequence[str]) -> int:
        """Brings memories of this peer to the other."""
        done = 0
        for page in split_pages(ids):
            records = peer.fetch(page)
            # Hidden ones first: they make room for a visible one with the same text.
            records.sort(key=lambda record: record.memory.deleted_at is None)
            none = {record.memory.id: None for record in records}
            left = self._put(self.other[peer], records, none)
            taken = [record for record in records if record.memory.id not in left]
            self.both |= {record.memory.id: version(record) for record in taken}
            done += len(taken)
        return done

    def _put(
        self, peer: Peer, records: Sequence[Record], expect: Mapping[str, bytes | None]
    ) -> tuple[str, ...]:
        scopes = (("", self.name, ""),) if self.name else ()
        left = peer.take(Bundle(scopes=scopes, records=tuple(records)), expect)
        self.left += left
        return left

    # What belongs to memories

    def _exchange_links(
        self, outlines: Mapping[Peer, Outline], shared: Shared
    ) -> tuple[int, frozenset[Link]]:
        """Brings over the relations that one peer lacks, ends those that one peer ended. Returns how many, and what both have now."""
        theirs, mine = (outline.links for outline in outlines.values())
        all_links, common = {**mine, **theirs}, mine.keys() & theirs.keys()
        exchanged = {link for link in all_links if link[0] in self.both and link[1] in self.both}
        one_sided = exchanged - common
        ended = one_sided & shared.links
        for peer, outline in outlines.items():
            lacking = [link for link in one_sided - ended if link not in outline.links]
            for page in split_pages(sorted(lacking)):
                peer.take(Bundle(relations=tuple(all_links[link] for link in page)), {})
            for gone in split_pages(sorted(link for link in ended if link in outline.links)):
                peer.remove({}, (), gone)
        # Those of memories that could not be agreed on stay known, so that a later sync may end them.
        kept = shared.links & common
        return len(one_sided), frozenset((exchanged | kept) - ended)


# Everything into another database

ROUNDS = 4  # in which a source that is written to meanwhile is caught up with
NOTE, SCOPES = "migration", "migrated-scopes"


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
    team = team_scope(name)
    if to_team:
        return team if key.startswith("project:") and name else ""
    is_here = name and path and key == team and Path(path).is_dir()
    return projects.find(Path(path)).scope if is_here else ""


def _find_twins(outlines: Mapping[Peer, Outline]) -> list[dict[Peer, str]]:
    """The same text under two ids, told on both peers: the id of each."""
    (peer, here), (other, there) = ((one, outline.lines) for one, outline in outlines.items())
    told = {line.hash: id for id, line in here.items() if line.unique and id not in there}
    return [
        {peer: told[line.hash], other: id}
        for id, line in there.items()
        if line.unique and line.hash in told and id not in here
    ]
