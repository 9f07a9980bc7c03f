"""Two copies of a memory that went different ways, made one again. Pure: no store, no clock.

History decides. Where one copy's history continues the other's, the longer one is right. Where both went on, their events are put in
order of time, each field keeps what was last said of it, and votes of both count. What was worked out from a text stays with it. Nothing
is lost: what was overruled stands in the history, from where `restore` brings it back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from bethink.store.bundle import Record, event_digest, instant, stamp, valid_before, version
from bethink.store.places import content_hash
from bethink.store.rows import from_history
from bethink.types import Event, Memory

VOTES = "usefulness"  # what is summed instead of overruled
OF_TEXT = ("summary", "keywords", "entities")  # what a new text brings along


class Merged(NamedTuple):
    record: Record
    conflicts: tuple[str, ...] = ()  # fields that both sides changed, in different ways


def merge(mine: Record, theirs: Record) -> Merged:
    """One record from two of the same memory. The order of the two makes no difference."""
    shared = _count_shared(mine.events, theirs.events)
    here, there = mine.events[shared:], theirs.events[shared:]
    later, earlier = sorted(
        (mine, theirs), key=lambda one: (one.memory.updated_at, version(one)), reverse=True
    )
    if not here or not there:
        longer = mine if here else theirs if there else later
        return Merged(_with_most_uses(longer, mine, theirs))
    tail = _in_order_of_time(here, there)
    memory = _replay(later.memory, tail, _votes_before(here, there))
    memory = _keep_text_whole(memory, tail, later.memory, later.events[shared:], earlier.memory)
    memory = memory._replace(updated_at=later.memory.updated_at)
    vectors = next((one.vectors for one in (later, earlier) if _same_text(one, memory)), ())
    record = Record(memory, later.unique, (*mine.events[:shared], *tail), vectors)
    return Merged(_with_most_uses(record, mine, theirs), _find_conflicts(here, there))


def hide(record: Record, winner: Record) -> Record:
    """A memory that says what another one of the same scope says, put behind it. Both sides come to the same."""
    at = max(record.memory.updated_at, winner.memory.created_at)
    before = {"superseded_by": record.memory.superseded_by, "deleted_at": None}
    after = {"superseded_by": winner.memory.id, "deleted_at": stamp(at)}
    event = Event(at, "sync", "merge", before, after)
    memory = record.memory._replace(superseded_by=winner.memory.id, deleted_at=at, updated_at=at)
    return record._replace(memory=memory, events=(*record.events, event))


def replaced_at(record: Record) -> datetime:
    """When a memory was said to be replaced by what replaces it now."""
    event = _replacing_event(record)
    return event.at if event else record.memory.created_at


def free(record: Record) -> Record:
    """A replaced memory as it was before that, visible again. Both sides come to the same."""
    memory, event = record.memory, _replacing_event(record)
    valid_to = memory.valid_to
    if event is None or "valid_to" in event.after or event.before.get("superseded_by"):
        before = valid_before([(event.before, event.after) for event in record.events])
        valid_to = None if before is None else instant(before)
    # Behind everything that was said of it, so that it is the last word wherever the history is put in order.
    last = max((memory.updated_at, *(event.at for event in record.events)))
    at = last + timedelta(milliseconds=1)
    back = memory._replace(superseded_by=None, valid_to=valid_to, updated_at=at)
    was, now = (
        {"superseded_by": one.superseded_by, "valid_to": one.valid_to and stamp(one.valid_to)}
        for one in (memory, back)
    )
    restored = Event(at, "sync", "restore", was, now)
    return record._replace(memory=back, events=(*record.events, restored))


def _replacing_event(record: Record) -> Event | None:
    """The event that put a memory behind what replaces it now."""
    by = record.memory.superseded_by
    events = reversed(record.events)
    return next((event for event in events if event.after.get("superseded_by") == by), None)


def _same_text(record: Record, memory: Memory) -> bool:
    own = record.memory
    return (own.content, own.section) == (memory.content, memory.section)


def _with_most_uses(record: Record, *copies: Record) -> Record:
    """The record with the larger of the counts: each database counts its own uses."""
    seen = [one.memory.last_accessed for one in copies if one.memory.last_accessed]
    memory = record.memory._replace(
        access_count=max(one.memory.access_count for one in copies),
        last_accessed=max(seen) if seen else None,
    )
    return record._replace(memory=memory)


def _count_shared(mine: Sequence[Event], theirs: Sequence[Event]) -> int:
    """How many events both histories begin with."""
    number = 0
    for one, other in zip(mine, theirs, strict=False):
        if event_digest(one) != event_digest(other):
            break
        number += 1
    return number


def _in_order_of_time(here: Sequence[Event], there: Sequence[Event]) -> list[Event]:
    """The events of both, those that both have once."""
    found = {event_digest(event): event for event in (*here, *there)}
    return [event for _, event in sorted(found.items(), key=lambda item: (item[1].at, item[0]))]


def _votes_before(here: Sequence[Event], there: Sequence[Event]) -> float | None:
    """The usefulness from which both went on."""
    votes = (event.before[VOTES] for event in (*here, *there) if VOTES in event.before)
    return next(map(float, votes), None)


def _replay(memory: Memory, tail: Sequence[Event], votes: float | None) -> Memory:
    fields: dict[str, Any] = {}
    for event in tail:
        for name, value in event.after.items():
            if name == VOTES and votes is not None:
                votes += float(value) - float(event.before.get(name, 0.0))
            else:
                fields[name] = value
    if votes is not None:
        fields[VOTES] = votes
    return apply_fields(memory, fields)


def _keep_text_whole(
    memory: Memory, tail: Sequence[Event], later: Memory, own: Sequence[Event], earlier: Memory
) -> Memory:
    """The memory with what belongs to the text that stands. An edit that left the summary as it was says nothing of it, and the one that
    was overruled may have changed it."""
    edits = [number for number, event in enumerate(tail) if "content" in event.after]
    if not edits:
        return memory
    last = event_digest(tail[edits[-1]])
    owner = later if any(event_digest(event) == last for event in own) else earlier
    told = {name for event in tail[edits[-1] :] for name in event.after}
    return memory._replace(**{name: getattr(owner, name) for name in OF_TEXT if name not in told})


def apply_fields(memory: Memory, fields: Mapping[str, Any]) -> Memory:
    """A memory with values as history keeps them: times as milliseconds, lists and metadata as JSON."""
    known = {name: value for name, value in fields.items() if name in Memory._fields}
    new = {name: from_history(name, value) for name, value in known.items()}
    if "content" in new:
        new["content_hash"] = content_hash(new["content"])
    return memory._replace(**new)


def _find_conflicts(here: Sequence[Event], there: Sequence[Event]) -> tuple[str, ...]:
    mine, theirs = (
        {name: value for event in events for name, value in event.after.items()}
        for events in (here, there)
    )
    both = (mine.keys() & theirs.keys()) - {VOTES}
    return tuple(sorted(name for name in both if mine[name] != theirs[name]))
