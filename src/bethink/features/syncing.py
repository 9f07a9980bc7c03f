"""Two databases that share a project, brought in step: what is new goes over, what both changed is merged, what one removed goes.

    outline both → compare with each other and with what both had last time → push, pull, merge, remove → remember what both have now

A project has one name in the team and a scope of its own in each database. What both had last time is kept beside the local
database; without it nothing is ever removed, only added and merged. Every step is one transaction and every write expects what was
read, so a sync may be cut off or run beside writers at any moment: the next one goes on. Which of two versions is right, `merging` says.
What somebody sees is not hidden by a sync unless what replaced it can be seen there, or somebody chose to forget it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from bethink.errors import BethinkError
from bethink.features import merging
from bethink.project import team_identity
from bethink.store.base import Store
from bethink.store.bundle import Bundle, Record, digest, texts, version
from bethink.store.writer import content_hash
from bethink.types import Batch, Memory, Relation

PAGE = 200
TOLD, CONVERSATIONS, DOCUMENTS = "told", "conversations", "documents"
PLACES = ("sources", "sessions", "spans", "turns")  # what memories belong to
MANY = 20  # removals that are done without asking, whatever part of the whole they are

Link = tuple[str, str, str]
Item = TypeVar("Item")


class Line(NamedTuple):
    """What of a memory is needed to compare it."""

    version: bytes
    hash: str  # of its text
    alone: bool  # whether no other visible memory of the scope may hold the same text
    behind: str | None = None  # what replaced it; a server does not say


class Outline(NamedTuple):
    lines: dict[str, Line]
    links: dict[Link, tuple[Relation, str]]


class Shared(NamedTuple):
    """What both sides had after the last sync."""

    records: Mapping[str, bytes]
    links: frozenset[Link]


class Side(Protocol):
    """One of the two databases, near or far."""

    def outline(self, scope: str, what: Sequence[str]) -> Outline: ...

    def fetch(self, scope: str, ids: Sequence[str]) -> list[Record]: ...

    def take(
        self, scope: str, bundle: Bundle, expect: Mapping[str, bytes | None]
    ) -> tuple[str, ...]: ...

    def remove(
        self,
        scope: str,
        gone: Mapping[str, bytes | None],
        purge: Sequence[str],
        unlink: Sequence[Link],
    ) -> tuple[str, ...]:
        """Removes memories without a trace if they are still the given version (None: whichever), purges others, and ends relations.
        Returns the ids that stayed."""
        ...

    def purged(self, hashes: Sequence[str]) -> set[str]: ...

    def places(self, scope: str) -> Bundle: ...


class Report(NamedTuple):
    """What a sync did."""

    pushed: int = 0
    pulled: int = 0
    merged: int = 0
    removed_here: int = 0
    removed_there: int = 0
    links: int = 0
    conflicts: tuple[
        tuple[str, tuple[str, ...]], ...
    ] = ()  # (id, fields) that both sides changed; the later word stands
    left: tuple[
        str, ...
    ] = ()  # ids that were not taken: changed meanwhile, or purged on the other side


def load(file: Path) -> Shared:
    """What both sides had last time. A file that cannot be read counts as none: nothing is removed then."""
    try:
        value = json.loads(file.read_text("utf-8"))
        records = {str(id): bytes.fromhex(one) for id, one in value["records"].items()}
        return Shared(
            records,
            frozenset(
                (str(source), str(target), str(type)) for source, target, type in value["links"]
            ),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Shared({}, frozenset())


def save(file: Path, shared: Shared) -> None:
    """Keeps what both sides have now, whole or not at all."""
    value = {
        "records": {id: one.hex() for id, one in shared.records.items()},
        "links": sorted(shared.links),
    }
    partial = file.with_name(f".{file.name}.{os.getpid()}.partial")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial.unlink(missing_ok=True)
        with os.fdopen(
            os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as stream:
            json.dump(value, stream)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(file)
    except OSError as error:
        raise BethinkError(
            f"What both sides have now cannot be noted in {file}: {error.strerror or error}.",
            "Nothing is lost; free some space and sync again.",
        ) from error
    finally:
        partial.unlink(missing_ok=True)


class TooMany(BethinkError):
    """So much is missing on one side that it looks like a loss, not like somebody's wish."""


def team_scope(name: str) -> str:
    """The scope of a project that a team knows by name, the same for everybody."""
    return f"project:{team_identity(name)}"


def sort_of(record: Record) -> str:
    """Whether a memory was told, said in a conversation, or read from a file."""
    type = record.memory.source_type
    if type == "transcript" or record.memory.session:
        return CONVERSATIONS
    return TOLD if type in ("note", "handoff") else DOCUMENTS


class Database:
    """A side that is a store."""

    def __init__(self, store: Store, actor: str, clock: Callable[[], Any]) -> None:
        self.store, self.actor, self.clock = store, actor, clock

    def outline(self, scope: str, what: Sequence[str]) -> Outline:
        lines: dict[str, Line] = {}
        for bundle in _pages(self.store, "records", scope):
            for record in bundle.records:
                if sort_of(record) in what:
                    memory = record.memory
                    alone = record.unique and memory.deleted_at is None
                    lines[memory.id] = Line(
                        version(record), memory.content_hash, alone, memory.superseded_by
                    )
        links = {
            (relation.source, relation.target, relation.type): (relation, actor)
            for bundle in _pages(self.store, "relations", scope)
            for relation, actor in bundle.relations
            if relation.source in lines and relation.target in lines
        }
        return Outline(lines, links)

    def fetch(self, scope: str, ids: Sequence[str]) -> list[Record]:
        return [record for record in self.store.records(ids) if record.memory.scope == scope]

    def take(
        self, scope: str, bundle: Bundle, expect: Mapping[str, bytes | None]
    ) -> tuple[str, ...]:
        return self.store.take(bundle, expect=expect)

    def remove(
        self,
        scope: str,
        gone: Mapping[str, bytes | None],
        purge: Sequence[str],
        unlink: Sequence[Link],
    ) -> tuple[str, ...]:
        left: tuple[str, ...] = ()
        if gone:
            left = self.store.take(
                Bundle(gone=tuple(gone)),
                expect={id: one for id, one in gone.items() if one is not None},
            )
        if purge or unlink:
            self.store.write(
                Batch(
                    at=self.clock(),
                    actor=self.actor,
                    purge=tuple(purge),
                    unrelate=tuple(Relation(*link) for link in unlink),
                )
            )
        return left

    def purged(self, hashes: Sequence[str]) -> set[str]:
        return self.store.tombstoned(hashes)

    def places(self, scope: str) -> Bundle:
        parts: dict[str, Any] = {
            part: tuple(
                item for bundle in _pages(self.store, part, scope) for item in getattr(bundle, part)
            )
            for part in PLACES
        }
        return Bundle(**parts)


def _pages(store: Store, part: str, scope: str) -> Iterable[Bundle]:
    after = ""
    while True:
        bundle, after = store.export(part, after, PAGE, [scope], vectors=part == "spans")
        if not getattr(bundle, part):
            return
        yield bundle


class Sync:
    """One run over one scope. `here` and `there` are the scope's names on the two sides."""

    def __init__(
        self,
        mine: Side,
        theirs: Side,
        here: str,
        there: str,
        name: str = "",
        what: Sequence[str] = (TOLD,),
        allow_loss: bool = False,
    ) -> None:
        self.mine, self.theirs, self.here, self.there, self.name = mine, theirs, here, there, name
        self.what = tuple(what)
        self.allow_loss = allow_loss
        self.both: dict[str, bytes] = {}  # what both sides have when it is done
        self.behind: dict[Side, dict[str, str]] = {
            mine: {},
            theirs: {},
        }  # what replaced memories on each side
        self.forgotten: set[tuple[Side, str]] = (
            set()
        )  # what this run itself has hidden for good, and on which side
        self.waiting: list[
            str
        ] = []  # what is replaced by something that the other side may get only later in this run
        self.undone: set[Link] = set()
        self.left: list[str] = []
        self.conflicts: list[tuple[str, tuple[str, ...]]] = []

    def run(self, shared: Shared) -> tuple[Report, Shared]:
        """Does it, and says what was done and what both sides have now."""
        mine, theirs = (
            self.mine.outline(self.here, self.what),
            self.theirs.outline(self.there, self.what),
        )
        for id, line in mine.lines.items():
            if (other := theirs.lines.get(id)) and other.version == line.version:
                self._note(id, line.version, line.behind)
        pairs = _twins(mine, theirs)
        twins = {id for pair in pairs for id in pair}
        only_mine = [id for id in mine.lines if id not in theirs.lines and id not in twins]
        only_theirs = [id for id in theirs.lines if id not in mine.lines and id not in twins]
        gone_here, purge_here, push = self._missing(
            self.theirs, self.mine, self.here, mine, only_mine, shared
        )
        gone_there, purge_there, pull = self._missing(
            self.mine, self.theirs, self.there, theirs, only_theirs, shared
        )
        self._guard(
            len(gone_here) + len(purge_here) + len(gone_there) + len(purge_there),
            len(shared.records),
        )
        if self.what != (TOLD,):
            self._places()
        merged = self._merge(
            [id for id in mine.lines if id in theirs.lines and id not in self.both]
        )
        removed_here = self._remove(self.mine, self.here, gone_here, purge_here)
        removed_there = self._remove(self.theirs, self.there, gone_there, purge_there)
        pushed = self._copy(self.mine, self.theirs, self.here, self.there, push)
        pulled = self._copy(self.theirs, self.mine, self.there, self.here, pull)
        waiting, self.waiting = self.waiting, []
        merged += self._merge(waiting) + sum(self._settle(*pair) for pair in pairs)
        self._open_circles()
        links, both_links = self._links(mine, theirs, shared)
        report = Report(
            pushed,
            pulled,
            merged,
            removed_here,
            removed_there,
            links,
            tuple(self.conflicts),
            tuple(dict.fromkeys(self.left)),
        )
        # What both still have and could not be agreed on may be removed or purged by the next sync as before.
        kept = {
            id: was for id, was in shared.records.items() if id in mine.lines and id in theirs.lines
        }
        return report, Shared({**kept, **self.both}, both_links)

    def _note(self, id: str, version: bytes, behind: str | None) -> None:
        """Both sides have a memory in this version now."""
        self.both[id] = version
        for known in self.behind.values():
            known.pop(id, None)
            if behind:
                known[id] = behind

    # What both have

    def _merge(self, ids: Sequence[str]) -> int:
        """Memories that differ: one record from both, put down on both sides."""
        done = 0
        for page in _paged(ids):
            mine = {record.memory.id: record for record in self.mine.fetch(self.here, page)}
            theirs = {record.memory.id: record for record in self.theirs.fetch(self.there, page)}
            for id in page:
                if id in mine and id in theirs:
                    for side, record in ((self.mine, mine[id]), (self.theirs, theirs[id])):
                        if record.memory.superseded_by:
                            self.behind[side][id] = record.memory.superseded_by
                    done += self._agree(mine[id], theirs[id], merging.merge(mine[id], theirs[id]))
        return done

    def _agree(self, mine: Record, theirs: Record, merged: merging.Merged) -> int:
        id, record, conflicts = mine.memory.id, merged.record, merged.conflicts
        both = ((self.theirs, self.there, theirs), (self.mine, self.here, mine))
        for side, scope, was in both:
            by = record.memory.superseded_by
            if (
                by
                and by != was.memory.superseded_by
                and record.memory.deleted_at is None
                and was.memory.deleted_at is None
            ):
                end = self._end(side, scope, record.memory)
                if end is None:
                    # Its replacement is on its way, or is not exchanged: what a private conversation did here is not done there.
                    self.waiting.append(id)
                    return 0
                if not self._shown(side, end) and self._shown(
                    side, self._end(side, scope, was.memory)
                ):
                    # One side replaced it by what the other had forgotten: neither meant that nothing of it is left.
                    record, conflicts = (
                        self._free(record),
                        tuple(sorted({*conflicts, "superseded_by"})),
                    )
        if conflicts:
            self.conflicts.append((id, conflicts))
        return self._put_both(record, both)

    def _put_both(self, record: Record, both: Iterable[tuple[Side, str, Record]]) -> int:
        id, now = record.memory.id, version(record)
        for side, scope, was in both:
            if now != version(was) and self._put(side, scope, [record], {id: version(was)}):
                return 0
            if record.memory.deleted_at and was.memory.deleted_at is None:
                self.forgotten.add((side, id))
        self._note(id, now, record.memory.superseded_by)
        return 1

    def _end(self, side: Side, scope: str, memory: Memory) -> Memory | None:
        """Where following what replaced a memory leads on a side; None if it leads to something that the side does not have."""
        seen = {memory.id}
        while memory.superseded_by and memory.superseded_by not in seen:
            seen.add(memory.superseded_by)
            found = side.fetch(scope, [memory.superseded_by])
            if not found:
                return None
            memory = found[0].memory
        return memory

    def _shown(self, side: Side, end: Memory | None) -> bool:
        """Whether it could be seen on a side when the run began."""
        return end is not None and (end.deleted_at is None or (side, end.id) in self.forgotten)

    def _free(self, record: Record) -> Record:
        self.undone.add((record.memory.superseded_by or "", record.memory.id, "supersedes"))
        return merging.freed(record)

    def _open_circles(self) -> None:
        """Where each side said that its own replaces the other's, the two hide each other. The later word stands: what was replaced first
        is brought back. By what the sides have and not by what this run did, so that one that was cut off leaves no circle for good."""
        for side, scope in ((self.mine, self.here), (self.theirs, self.there)):
            for circle in merging.circles(self.behind[side]):
                found = {record.memory.id: record for record in side.fetch(scope, circle)}
                if any(
                    id not in found or found[id].memory.superseded_by != self.behind[side][id]
                    for id in circle
                ):
                    continue  # changed meanwhile
                known = [
                    record
                    for id, record in found.items()
                    if self.both.get(id) == version(record) and not record.memory.deleted_at
                ]
                if known:
                    first = min(
                        known, key=lambda record: (merging.replaced_at(record), record.memory.id)
                    )
                    self.conflicts.append((first.memory.id, ("superseded_by",)))
                    self._put_both(
                        self._free(first),
                        ((self.theirs, self.there, first), (self.mine, self.here, first)),
                    )

    def _settle(self, one: str, other: str) -> int:
        """The same text under two ids: the older one stays, the other is put behind it."""
        first, second = self.mine.fetch(self.here, [one]), self.theirs.fetch(self.there, [other])
        if not first or not second:
            return 0
        mine, theirs = first[0], second[0]
        keep, drop = (mine, theirs) if one < other else (theirs, mine)
        behind = merging.hidden(drop, keep)
        both = ((self.mine, self.here, mine), (self.theirs, self.there, theirs))
        for side, scope, own in both:
            if (
                own is drop
                and _visible(drop.memory)
                and ((end := self._end(side, scope, keep.memory)) is None or end.deleted_at)
            ):
                self.left += [one, other]  # the one that would stay cannot be seen there either
                return 0
        for side, scope, own in both:
            expect = {
                each.memory.id: version(each) if each is own else None for each in (keep, drop)
            }
            if self._put(side, scope, [behind, keep], expect):
                return 0
        for record in (keep, behind):
            self._note(record.memory.id, version(record), record.memory.superseded_by)
        return 2

    # What one side lacks

    def _missing(
        self,
        lacking: Side,
        having: Side,
        scope: str,
        outline: Outline,
        ids: Sequence[str],
        shared: Shared,
    ) -> tuple[dict[str, bytes | None], list[str], list[str]]:
        """Of memories that one side lacks: those to be removed where they are without a trace, in the version that was seen, those to be
        purged there, and those to be copied."""
        known = [id for id in ids if id in shared.records]
        hashes = {id: {outline.lines[id].hash} for id in known}
        changed = [id for id in known if outline.lines[id].version != shared.records[id]]
        for page in _paged(changed):  # whose text may be another one than that which was purged
            hashes |= {
                record.memory.id: set(map(content_hash, texts(record)))
                for record in having.fetch(scope, page)
            }
        purged = lacking.purged(sorted(set().union(*hashes.values()))) if known else set()
        gone, purge, copy = dict[str, bytes | None](), list[str](), list[str]()
        for id in ids:
            if id not in shared.records:
                copy.append(id)
            elif hashes[id] & purged:
                purge.append(id)
            elif outline.lines[id].version == shared.records[id]:
                gone[id] = outline.lines[id].version
            else:
                copy.append(id)  # removed there, but changed here since: somebody cares for it
        return gone, purge, copy

    def _remove(
        self, side: Side, scope: str, gone: Mapping[str, bytes | None], purge: Sequence[str]
    ) -> int:
        left = side.remove(scope, gone, purge, ())
        self.left += left
        return len(gone) + len(purge) - len(left)

    def _guard(self, removals: int, known: int) -> None:
        if not self.allow_loss and removals > max(MANY, known // 2):
            raise TooMany(
                f"{removals} of {known} memories that both sides had are missing on one of them. Nothing was changed.",
                "If they were meant to go: add --accept-removals. If a database was lost or restored: `bethink sync --forget-base`.",
            )

    def _copy(
        self, source: Side, target: Side, source_scope: str, target_scope: str, ids: Sequence[str]
    ) -> int:
        done = 0
        for page in _paged(ids):
            records = source.fetch(source_scope, page)
            # Hidden ones first: they make room for a visible one with the same text.
            records.sort(key=lambda record: record.memory.deleted_at is None)
            left = self._put(
                target, target_scope, records, {record.memory.id: None for record in records}
            )
            for record in records:
                if record.memory.id not in left:
                    self._note(record.memory.id, version(record), record.memory.superseded_by)
                    done += 1
        return done

    def _put(
        self, side: Side, scope: str, records: Sequence[Record], expect: Mapping[str, bytes | None]
    ) -> tuple[str, ...]:
        given = tuple(
            record._replace(memory=record.memory._replace(scope=scope)) for record in records
        )
        scopes = ((scope, self.name, ""),) if self.name else ()
        left = side.take(scope, Bundle(scopes=scopes, records=given), expect)
        self.left += left
        return left

    # What belongs to memories

    def _links(self, mine: Outline, theirs: Outline, shared: Shared) -> tuple[int, frozenset[Link]]:
        lacking_there = {
            link: found
            for link, found in mine.links.items()
            if link not in theirs.links and self._ends(link)
        }
        lacking_here = {
            link: found
            for link, found in theirs.links.items()
            if link not in mine.links and self._ends(link)
        }
        ended = {
            link for link in (*lacking_there, *lacking_here) if link in shared.links
        } | self.undone
        unlink_here, unlink_there = (
            tuple(link for link in ended if link in side.links) for side in (mine, theirs)
        )
        push, pull = (
            tuple(value for link, value in found.items() if link not in ended)
            for found in (lacking_there, lacking_here)
        )
        for side, scope, given, gone in (
            (self.theirs, self.there, push, unlink_there),
            (self.mine, self.here, pull, unlink_here),
        ):
            for page in _paged(given):
                side.take(scope, Bundle(relations=tuple(page)), {})
            for links in _paged(gone):
                side.remove(scope, {}, (), links)
        both = {link for link in {**mine.links, **theirs.links} if self._ends(link)}
        both |= {
            link
            for link in shared.links
            if not self._ends(link) and link in mine.links and link in theirs.links
        }
        number = len(push) + len(pull) + len({*unlink_here, *unlink_there})
        return number, frozenset(both - ended)

    def _ends(self, link: Link) -> bool:
        return link[0] in self.both and link[1] in self.both

    def _places(self) -> None:
        """Sources, sessions and topics: the one that was read further stands. Messages that either side knows, both know."""
        mine, theirs = self.mine.places(self.here), self.theirs.places(self.there)
        for side, scope, given, known in (
            (self.theirs, self.there, mine, theirs),
            (self.mine, self.here, theirs, mine),
        ):
            for part in PLACES:
                for page in _paged(
                    _further(part, getattr(given, part), getattr(known, part), scope)
                ):
                    side.take(scope, Bundle(**{part: tuple(page)}), {})  # type: ignore[arg-type]


def _twins(mine: Outline, theirs: Outline) -> list[tuple[str, str]]:
    """The same text under two ids, told on both sides."""
    here = {line.hash: id for id, line in mine.lines.items() if line.alone}
    there = {line.hash: id for id, line in theirs.lines.items() if line.alone}
    found = [(here[hash], there[hash]) for hash in here if hash in there]
    return [
        (one, other)
        for one, other in found
        if one != other and one not in theirs.lines and other not in mine.lines
    ]


def _visible(memory: Memory) -> bool:
    return memory.deleted_at is None and memory.superseded_by is None


def _further(part: str, given: Sequence[Any], known: Sequence[Any], scope: str) -> list[Any]:
    """What of the given the other side lacks, or has not got as far, under that side's scope."""
    moved = [_moved(part, item, scope) for item in given]
    there = {_key(part, item): item for item in known}
    return [
        item
        for item in moved
        if (other := there.get(_key(part, item))) is None
        or (digest(part, item) != digest(part, other) and _far(part, item) > _far(part, other))
    ]


def _moved(part: str, item: Any, scope: str) -> Any:
    if part == "sessions":
        return item._replace(scope=scope)
    return (item[0]._replace(scope=scope), item[1]) if part == "spans" else (scope, *item[1:])


def _key(part: str, item: Any) -> Any:
    return {
        "sources": lambda: item[1].uri,
        "sessions": lambda: item.id,
        "spans": lambda: item[0].id,
        "turns": lambda: item[1],
    }[part]()


def _far(part: str, item: Any) -> Any:
    if part == "sources":
        return item[2].timestamp()
    if part == "sessions":
        return item.ended_at.timestamp() if item.ended_at else 0.0
    return item[0].lines[1] if part == "spans" else 0


def _paged(items: Sequence[Item]) -> Iterable[Sequence[Item]]:
    for at in range(0, len(items), PAGE):
        yield items[at : at + PAGE]
