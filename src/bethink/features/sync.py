"""Memories from elsewhere: check records, merge two copies of one, and synchronise two databases.

**Check.** Records are stored as they are, so they may contain only values that our own pipeline
would write; a wrong value is refused by name. A text that looks like a secret here is not the
sender's mistake, whose rules may be older. In a file the secret is redacted. In a sync such records
are skipped and reported, because both sides must have the same text.

**Merge.** If one copy's history continues the other's, the longer one wins. If both diverged, their
events are sorted by time, each field keeps its last value, and the votes of both count. Nothing is
lost: overruled values are in the history, and `restore` brings them back. All of this is pure: no
store, no clock.

**Sync.** `Sync` compares the notes of both sides. Missing ones are copied, changed ones are merged,
purged ones are purged. Each database has its own scope for a project; in transit it is "". The
local database records what both sides had last time, and only that is ever purged on behalf of the
other. Every step is one transaction and every write expects the state that was read, so a sync may
be interrupted or run next to writers at any moment; the next one continues. A sync hides a memory
only if its replacement is visible on that side, or a person chose to forget it. This module
contains no SQL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import takewhile
from typing import Any, NamedTuple, Protocol

from bethink.errors import BethinkError, InvalidInput
from bethink.ingest.redact import redact_value
from bethink.model import (
    ENTITY_TYPES,
    IMPORTED,
    NOTHING,
    RELATIONS,
    TRUST,
    Batch,
    Event,
    FieldInfo,
    Memory,
    Relation,
    Values,
    fields_of,
)
from bethink.schema import find_fault
from bethink.store.base import Store
from bethink.store.places import content_hash, embedded_text, turn_identity
from bethink.store.rows import Ids, Record, Row, from_history
from bethink.store.transfer import (
    Bundle,
    Expected,
    bundle_from_json,
    event_digest,
    list_texts,
    record_from_json,
    record_to_json,
    rename_scope,
    sign_bundle,
    split_pages,
    version,
)

_MOST = 1000  # items of one bundle
_LONGEST_NAME = 10_000  # characters
LONGEST_FIELD = 100_000  # characters of any other field, by its repr
MOST_EVENTS = 10_000
# Votes and uses that a stranger's file may claim. Set by hand: a few votes and a month of daily use.
MOST_VOTES, MOST_USES = 10.0, 30

ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# Errors that values of a wrong type or shape may raise.
WRONG = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    OSError,
    RecursionError,
)
# Parts of a record without secrets: `wrong_field` checks their form, or they follow from others.
_AS_IT_IS = "id scope kind content_hash superseded_by path unique".split()
_READERS = "note markdown repomap transcript analysis git import".split()

Fields = tuple[str, ...]
VOTES = "usefulness"  # summed instead of overruled


class Incoming(NamedTuple):
    """Memory from a file, with its relations."""

    record: Record
    relations: tuple[Relation, ...] = ()
    redactions: int = 0
    saved: str = ""  # digest of a vault's note when it was written
    head: Values = NOTHING  # fields of a vault's note, as they are written there

    @property
    def memory(self) -> Memory:
        return self.record.memory

    @property
    def id(self) -> str:
        return self.record.id


# Values. Their types were checked when they were read.


def _is_id(value: str | None) -> bool:
    return bool(ID.fullmatch(value or ""))


def _are_names(*values: str) -> bool:
    return all(len(value) <= _LONGEST_NAME for value in values)


def wrong_field(record: Record, longest: int) -> str | None:
    """Name of a value that our own pipeline would not write, or None."""
    memory, events = record.memory, record.events
    fitting = {name: _is_fitting(info, memory) for name, info in fields_of(Memory).items()}
    fitting |= {
        "id": _is_id(memory.id),
        "superseded_by": memory.superseded_by is None or _is_id(memory.superseded_by),
        "content": bool(memory.content.strip()) and len(memory.content) <= longest,
        "summary": len(memory.summary) <= longest,
        "content_hash": memory.content_hash == content_hash(memory.content),
        "history": len(events) <= MOST_EVENTS and all(_is_event(one, memory) for one in events),
        "vectors": all(
            _are_names(model) and 1 <= dimensions <= 8192 and len(data) == 4 + 2 * dimensions
            for model, dimensions, data in record.vectors
        ),
    }
    return next((name for name, fine in fitting.items() if not fine), None)


def _is_fitting(info: FieldInfo, memory: Memory) -> bool:
    """Return True if a field's value is within its bounds, or short enough if it has none."""
    value = getattr(memory, info.name)
    return not find_fault(info, value) and len(repr(value)) <= LONGEST_FIELD


def _is_event(event: Event, memory: Memory) -> bool:
    """Return True if an event can be read, and its values restored to the memory."""
    infos = [info for info in fields_of(Memory).values() if info.field.low is not None]
    try:
        states = [apply_fields(memory, state) for state in (event.before, event.after)]
        fitting = all(_is_fitting(info, state) for info in infos for state in states)
        return fitting and _are_names(event.actor, event.action)
    except WRONG:
        return False


# Secrets


def redact_record(record: Record) -> tuple[Record, int]:
    """Remove secrets from all fields of a record, and count them."""
    value = record_to_json(record._replace(vectors=()))
    fields = {name: found for name, found in value.items() if name not in _AS_IT_IS}
    clean, hidden = redact_value(fields)
    if not hidden:
        return record, 0
    redacted = record_from_json({**value, **clean})
    memory = redacted.memory._replace(content_hash=content_hash(clean["content"]))
    return redacted._replace(memory=memory), hidden


# A stranger's file


def limit_stranger(record: Record, now: datetime) -> Record:
    """Limit a record from a file that the user does not vouch for.

    It is an import from an unknown author, not dated later than now, with few votes and uses, and
    without the history it claims.
    """
    memory = cap_times(record, now).memory
    source = memory.source.removeprefix(IMPORTED)
    is_note = memory.source_type == "note" and source == memory.source
    memory = memory._replace(
        usefulness=max(-MOST_VOTES, min(memory.usefulness, MOST_VOTES)),
        access_count=min(memory.access_count, MOST_USES),
        trust=min(memory.trust, TRUST["import"]),
        source=IMPORTED.rstrip(":") if is_note else IMPORTED + source,
        source_type=memory.source_type if memory.source_type in _READERS else "import",
        entities=tuple(one for one in memory.entities if one.type in ENTITY_TYPES),
    )
    return record._replace(memory=memory, events=())


def cap_times(record: Record, now: datetime) -> Record:
    """Limit the times of a record to now."""
    past = [name for name, info in fields_of(Memory).items() if info.field.past]
    capped = {name: min(at, now) for name in past if (at := getattr(record.memory, name))}
    return record._replace(memory=record.memory._replace(**capped))


# A bundle of another machine


def note_turns(bundle: Bundle) -> Bundle:
    """Add the identities of a bundle's turns, so that a transcript repeating them adds nothing."""
    turns = [
        (memory.scope, turn_identity(str(memory.metadata["host"]), str(memory.metadata["turn"])))
        for memory in (record.memory for record in bundle.records)
        if memory.session
        and memory.kind == "context"
        and {"host", "turn"} <= memory.metadata.keys()
    ]
    return bundle._replace(turns=tuple(turns))


def check_bundle(value: Any, longest: int) -> tuple[Bundle, Ids]:
    """Read and check the bundle in a request, which names no scope because the request does.

    Also returns the ids of memories that were skipped because they contain a secret by our rules.
    """
    try:
        bundle = bundle_from_json(value)
        wrong = next(_find_wrong(bundle, longest), "")
    except WRONG as error:
        wrong = f"it cannot be read ({str(error)[:200]})"
    if wrong:
        raise InvalidInput(
            f"Invalid bundle: {wrong}.",
            "Send what another Bethink exported, without a scope: the request names the project.",
        )
    clean = tuple(one for one in bundle.records if not redact_record(one)[1])
    hidden = tuple(one.id for one in bundle.records if one not in clean)
    return bundle._replace(records=clean), hidden


def _find_wrong(bundle: Bundle, longest: int) -> Iterator[str]:
    """Yield faults of a bundle. It may not name a scope, remove anything or contain tombstones."""
    if bundle.size > _MOST:
        yield f"it has more than {_MOST:,} items"
    if bundle._replace(scopes=(), records=(), relations=()) != Bundle():
        yield "it holds more than memories and their relations"
    for scope in bundle.scopes:
        if scope[0] or not _are_names(*scope):
            yield "it names a scope"
    for record in bundle.records:
        if field := wrong_field(record, longest) or ("scope" if record.memory.scope else None):
            yield f"the {field} of the memory {record.id[:36]} is wrong"
    for relation, actor in bundle.relations:
        ends = all(map(_is_id, relation[:2]))
        if not (ends and relation.type in RELATIONS and _are_names(actor)):
            yield "a relation is wrong"


# Two copies of a memory


class Merged(NamedTuple):
    record: Record
    conflicts: Fields = ()  # fields that both sides changed, in different ways


def merge(mine: Record, theirs: Record) -> Merged:
    """Merge two records of the same memory. Their order makes no difference."""
    shared = _count_shared(mine.events, theirs.events)
    here, there = mine.events[shared:], theirs.events[shared:]
    later, earlier = sorted(
        (mine, theirs), key=lambda one: (one.memory.updated_at, version(one)), reverse=True
    )
    if not here or not there:
        later = mine if here else theirs if there else later
    found = {event_digest(event): event for event in (*here, *there)}
    tail = [found[key] for key in sorted(found, key=lambda key: (found[key].at, key))]
    memory = _replay(later, tail)
    same = [one for one in (later, earlier) if embedded_text(one.memory) == embedded_text(memory)]
    vectors = same[0].vectors if same else ()
    # Each database counts its own uses.
    seen = [one.memory.last_accessed for one in (mine, theirs) if one.memory.last_accessed]
    memory = memory._replace(
        updated_at=later.memory.updated_at,
        access_count=max(mine.memory.access_count, theirs.memory.access_count),
        last_accessed=max(seen, default=None),
    )
    record = Record(memory, later.unique, (*mine.events[:shared], *tail), vectors)
    mine_last, theirs_last = _last_words(here), _last_words(there)
    both = (mine_last.keys() & theirs_last.keys()) - {VOTES}
    return Merged(
        record, tuple(sorted(name for name in both if mine_last[name] != theirs_last[name]))
    )


def _last_words(events: Sequence[Event]) -> Row:
    """Last value of each changed field."""
    return {name: value for event in events for name, value in event.after.items()}


def _replay(record: Record, tail: Sequence[Event]) -> Memory:
    """Apply the events of both sides: the last value of each field, and votes not yet counted."""
    counted = set(map(event_digest, record.events))
    votes = record.memory.usefulness
    for event in tail:
        if VOTES in event.after and event_digest(event) not in counted:
            votes += event.after[VOTES] - event.before.get(VOTES, 0.0)
    return apply_fields(record.memory, {**_last_words(tail), VOTES: votes})


def _count_shared(mine: Sequence[Event], theirs: Sequence[Event]) -> int:
    """Count the events that both histories start with."""
    pairs = zip(map(event_digest, mine), map(event_digest, theirs), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def apply_fields(memory: Memory, fields: Row) -> Memory:
    """Set fields of a memory from history: times in milliseconds, lists and metadata as JSON."""
    known = {name: value for name, value in fields.items() if name in Memory._fields}
    new = {name: from_history(name, value) for name, value in known.items()}
    if "content" in new:
        new["content_hash"] = content_hash(new["content"])
    return memory._replace(**new)


# Two databases

SYNCED_TYPES = (
    "note",
    "handoff",
)  # source types that are exchanged: no conversations, no documents
MANY = 20  # removals that need no confirmation, whatever their share; set by hand

Link = tuple[str, str, str]


class OutlineEntry(NamedTuple):
    """Data for comparing a memory."""

    version: bytes
    hash: str  # of its text
    unique: bool  # whether no other visible memory of the scope may have the same text


class Outline(NamedTuple):
    lines: dict[str, OutlineEntry]
    links: dict[Link, tuple[Relation, str]]


class Shared(NamedTuple):
    """Memories and relations that both peers had after the last sync."""

    ids: frozenset[str] = frozenset()
    links: frozenset[Link] = frozenset()


class Peer(Protocol):
    """Scope of one of the two databases, local or remote."""

    def outline(self) -> Outline: ...

    def fetch(self, ids: Ids) -> list[Record]: ...

    def take(self, bundle: Bundle, expect: Expected) -> Ids: ...

    def remove(self, purge: Ids, unlink: Sequence[Link]) -> None:
        """Purge memories, and delete relations."""
        ...

    def find_purged(self, hashes: Sequence[str]) -> set[str]: ...


class SyncReport(NamedTuple):
    """Result of a sync."""

    pushed: int = 0
    pulled: int = 0
    merged: int = 0
    removed_here: int = 0
    removed_there: int = 0
    links: int = 0
    # (id, fields) that both peers changed; the later value wins
    conflicts: tuple[tuple[str, Fields], ...] = ()
    # ids that were refused: changed meanwhile, or purged on the other peer
    left: Ids = ()


class TooMany(BethinkError):
    """Error: so much was purged on one peer that it looks like an accident."""


def load_shared(store: Store, name: str) -> Shared:
    """Load what both peers had last time from the local database, which may be a restored one."""
    value = json.loads(store.read_note(name) or '{"records": [], "links": []}')
    return Shared(frozenset(value["records"]), frozenset(map(tuple, value["links"])))


def save_shared(store: Store, name: str, shared: Shared) -> None:
    value = {"records": sorted(shared.ids), "links": sorted(shared.links)}
    store.take(Bundle(), note=(name, json.dumps(value)))


def list_exchanged(store: Store) -> set[str]:
    """Memories that this database shared with others after the last sync with each."""
    notes = map(json.loads, store.list_notes("sync:"))
    return {id for note in notes for id in note["records"]}


class StorePeer:
    """Peer that is a store."""

    def __init__(self, store: Store, scope: str, actor: str, clock: Callable[[], datetime]) -> None:
        self.store, self.scope, self.actor, self.clock = store, scope, actor, clock

    def outline(self) -> Outline:
        lines = {
            one.id: OutlineEntry(version(one), one.memory.content_hash, one.unique)
            for one in self.store.items("records", [self.scope], vectors=False)
            if one.memory.source_type in SYNCED_TYPES and not one.memory.session
        }
        links = {
            (relation.source, relation.target, relation.type): (relation, actor)
            for relation, actor in self.store.items("relations", [self.scope])
            if relation.source in lines and relation.target in lines
        }
        return Outline(lines, links)

    def fetch(self, ids: Ids) -> list[Record]:
        own = [one for one in self.store.records(ids) if one.memory.scope == self.scope]
        return [rename_scope(one, {self.scope: ""}) for one in own]

    def take(self, bundle: Bundle, expect: Expected) -> Ids:
        person = getattr(self.store, "person", "")  # person that a team's database acts for
        if person:
            ids = [record.id for record in bundle.records]
            bundle = sign_bundle(bundle, self.store.records(ids, vectors=False), person)
        scopes, records = (
            tuple(rename_scope(one, {"": self.scope}) for one in part)
            for part in (bundle.scopes, bundle.records)
        )
        own = note_turns(bundle._replace(scopes=scopes, records=records))
        return self.store.take(own, expect=expect)

    def remove(self, purge: Ids, unlink: Sequence[Link]) -> None:
        if purge or unlink:
            ended = tuple(Relation(*link) for link in unlink)
            self.store.write(
                Batch(at=self.clock(), actor=self.actor, purge=tuple(purge), unrelate=ended)
            )

    def find_purged(self, hashes: Sequence[str]) -> set[str]:
        return self.store.find_purged(hashes)


class Difference(NamedTuple):
    """Two copies of a memory that differ, merged."""

    record: Record
    conflicts: Fields
    versions: tuple[bytes, ...]  # of the copies
    hides: tuple[
        bool, ...
    ]  # whether the merged record gets a replacement that the copy does not have

    @classmethod
    def of(cls, *copies: Record) -> Difference:
        record, conflicts = merge(*copies)
        memory = record.memory
        hides = (
            memory.superseded_by not in (None, copy.memory.superseded_by) and not memory.deleted_at
            for copy in copies
        )
        return cls(record, conflicts, tuple(map(version, copies)), tuple(hides))

    def follow(self, chains: Sequence[Chains]) -> list[tuple[set[str], bool]]:
        """Follow the replacements of the merged record on each peer that would hide it."""
        return [
            chain.follow(self.record.memory)
            for chain, hides in zip(chains, self.hides, strict=True)
            if hides
        ]


class Chains:
    """Chains of replacements on a peer, fetched together."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.known: dict[str, Memory | None] = {}

    def prepare(self, memories: Sequence[Memory]) -> None:
        """Fetch the chains of many memories, a link of all of them at a time."""
        while wanted := sorted(
            {one.superseded_by for one in memories if one.superseded_by} - self.known.keys()
        ):
            self._fetch(wanted)
            memories = [found for id in wanted if (found := self.known[id])]

    def follow(self, memory: Memory) -> tuple[set[str], bool]:
        """Return the ids of the chain, and whether it ends in a memory that the peer shows.

        A replacement by a private conversation, or by a memory forgotten there, does not count
        there; nor does a cycle.
        """
        seen = {memory.id}
        while memory.superseded_by:
            if memory.superseded_by not in self.known:
                self._fetch([memory.superseded_by])
            found = self.known[memory.superseded_by]
            if found is None or found.id in seen:
                return seen, False
            memory = found
            seen.add(memory.id)
        return seen, memory.deleted_at is None

    def _fetch(self, ids: Ids) -> None:
        found = {record.id: record.memory for record in self.peer.fetch(ids)}
        self.known |= {id: found.get(id) for id in ids}


class Side(NamedTuple):
    """Peer and its outline, without the memories that are purged on behalf of the other."""

    peer: Peer
    lines: dict[str, OutlineEntry]
    links: dict[Link, tuple[Relation, str]]


class Sync:
    """One run over one scope, shown to users as `name`."""

    def __init__(self, mine: Peer, theirs: Peer, name: str = "", allow_loss: bool = False) -> None:
        self.name, self.allow_loss = name, allow_loss
        self.peers = (theirs, mine)  # remote first: what it refuses is not stored here either
        self.agreed: set[str] = (
            set()
        )  # memories that both peers have in the same version at the end
        self.left: list[str] = []
        self.conflicts: list[tuple[str, Fields]] = []

    def run(self, shared: Shared) -> tuple[SyncReport, Shared]:
        """Run the sync. Returns a report, and what both peers have now."""
        there, here = (Side(peer, *peer.outline()) for peer in self.peers)
        # Sorted by id, because each database has a different order, and among replacements that would form a cycle those
        # merged first win.
        common = sorted(here.lines.keys() & there.lines.keys())
        self.agreed = {id for id in common if here.lines[id].version == there.lines[id].version}
        purged_there = _find_purged(there, here, shared)
        purged_here = _find_purged(here, there, shared)
        purged = len(purged_here) + len(purged_there)
        if not self.allow_loss and purged > max(MANY, len(shared.ids) // 2):
            raise TooMany(
                f"{purged} of {len(shared.ids)} memories that both sides had were purged on one of them."
                " Nothing was changed.",
                "If they were meant to go: add --accept-removals.",
            )
        # Before merging: nothing may be replaced by a memory that is going to be removed.
        for side, ids in ((there, purged_there), (here, purged_here)):
            side.peer.remove(ids, ())
            for id in ids:
                del side.lines[id]
        # Forgotten memories are merged before replaced ones: nothing may be replaced by a memory that is going to be hidden.
        merged = self._merge(common, replaced=False) + self._merge(common, replaced=True)
        pulled, pushed = self._copy(there, here), self._copy(here, there)
        # Again, for those whose replacement has been copied since.
        merged += self._merge(common, replaced=True)
        links, both_links = self._exchange_links(there, here, shared)
        report = SyncReport(
            pushed,
            pulled,
            merged,
            len(purged_here),
            len(purged_there),
            links,
            tuple(self.conflicts),
            tuple(dict.fromkeys(self.left)),
        )
        # Memories without agreement count as shared as well, so that the next sync may purge them.
        return report, Shared(frozenset({*self.agreed, *common}), both_links)

    # What both have

    def _merge(self, common: Sequence[str], replaced: bool) -> int:
        """Merge memories that differ, and store the result on both peers, in one write per page.

        With `replaced`, only those that thereby get another replacement on one of them; else only
        the others. One whose merge would hide it on a peer that cannot show its replacement stays
        as it is on each.
        """
        done = 0
        differing = [id for id in common if id not in self.agreed and id not in self.left]
        for page in split_pages(differing):
            copies = [{record.id: record for record in peer.fetch(page)} for peer in self.peers]
            chains = list(map(Chains, self.peers))
            waiting: list[Difference] = []
            both = [id for id in page if all(id in side for side in copies)]
            found = [Difference.of(*(side[id] for side in copies)) for id in both]
            chosen = [one for one in found if any(one.hides) == replaced]
            for at, chain in enumerate(chains):
                chain.prepare([one.record.memory for one in chosen if one.hides[at]])
            for one in chosen:
                ends = one.follow(chains)
                # Whether a replacement is visible may depend on a merge that waits to be stored.
                if any(other.record.id in ids for ids, _ in ends for other in waiting):
                    done += self._store(waiting, chains)
                    waiting, ends = [], one.follow(chains)
                if all(shown for _, shown in ends):
                    waiting.append(one)
            done += self._store(waiting, chains)
        return done

    def _store(self, waiting: Sequence[Difference], chains: Sequence[Chains]) -> int:
        """Store merged records on both peers; return the number on which both agree now."""
        accepted = {one.record.id: one for one in waiting}
        self.conflicts += [(one.record.id, one.conflicts) for one in waiting if one.conflicts]
        for at, (peer, chain) in enumerate(zip(self.peers, chains, strict=True)):
            changed = [one for one in accepted.values() if one.versions[at] != version(one.record)]
            expect = {one.record.id: one.versions[at] for one in changed}
            for id in self._put(peer, [one.record for one in changed], expect) if changed else ():
                accepted.pop(id, None)
            chain.known.clear()
        self.agreed |= accepted.keys()
        return len(accepted)

    # What one peer lacks

    def _copy(self, side: Side, other: Side) -> int:
        """Copy memories that only this side has to the other.

        Skip those whose text the other has under another id, whatever became of it. A text that
        both forgot may be added again.
        """
        known_texts = {
            line.hash for id, line in other.lines.items() if line.unique and id not in side.lines
        }
        lacking = [
            id
            for id, line in side.lines.items()
            if id not in other.lines and not (line.unique and line.hash in known_texts)
        ]
        taken: set[str] = set()
        for page in split_pages(lacking):
            records = side.peer.fetch(page)
            none = {record.id: None for record in records}
            taken |= none.keys() - set(self._put(other.peer, records, none))
        self.agreed |= taken
        return len(taken)

    def _put(self, peer: Peer, records: Sequence[Record], expect: Expected) -> Ids:
        scopes = (("", self.name, ""),) if self.name else ()
        left = peer.take(Bundle(scopes=scopes, records=tuple(records)), expect)
        self.left += left
        return left

    # What belongs to memories

    def _exchange_links(
        self, there: Side, here: Side, shared: Shared
    ) -> tuple[int, frozenset[Link]]:
        """Copy relations that one peer lacks, and delete those that one peer deleted.

        Returns their number, and the relations that both have now.
        """
        all_links, common = {**here.links, **there.links}, here.links.keys() & there.links.keys()
        exchanged = {link for link in all_links if self.agreed.issuperset(link[:2])}
        one_sided = exchanged - common
        ended = one_sided & shared.links
        for peer, _, known in (there, here):
            for page in split_pages(sorted(one_sided - ended - known.keys())):
                peer.take(Bundle(relations=tuple(all_links[link] for link in page)), {})
            for gone in split_pages(sorted(ended & known.keys())):
                peer.remove((), gone)
        # Relations of memories without agreement stay recorded, so that a later sync may delete them.
        kept = shared.links & common
        return len(one_sided), frozenset((exchanged | kept) - ended)


def _find_purged(side: Side, other: Side, shared: Shared) -> list[str]:
    """Memories of this side that both had and the other purged since, whatever their text is now."""
    missing = [id for id in side.lines if id in shared.ids and id not in other.lines]
    hashes = {
        record.id: set(map(content_hash, list_texts(record)))
        for page in split_pages(missing)
        for record in side.peer.fetch(page)
    }
    texts = sorted(set[str]().union(*hashes.values()))
    purged = other.peer.find_purged(texts) if texts else set()
    return sorted(id for id, own in hashes.items() if own & purged)
