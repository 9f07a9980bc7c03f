"""Two copies of a memory that went different ways, made one again. Pure: no store, no clock.

History decides. Where one copy's history continues the other's, the longer one is right. Where both went on, their events are put in
order of time, each field keeps what was last said of it, and votes of both count. What was worked out from a text stays with it. Nothing
is lost: what was overruled stands in the history, from where `restore` brings it back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from bethink.store.bundle import Record, event_digest, stamp, valid_before, version
from bethink.store.writer import content_hash
from bethink.types import Entity, Event, Memory

TIMES = (
    "valid_from",
    "valid_to",
    "expires_at",
    "deleted_at",
    "created_at",
    "last_accessed",
    "updated_at",
)
LISTS = ("tags", "keywords")
COUNTED = "usefulness"  # what is summed instead of overruled
OF_TEXT = ("summary", "keywords", "entities")  # what a new text brings along


class Merged(NamedTuple):
    record: Record
    conflicts: tuple[str, ...] = ()  # fields that both sides changed, in different ways


def merge(mine: Record, theirs: Record) -> Merged:
    """One record from two of the same memory. The order of the two makes no difference."""
    if version(mine) == version(theirs):
        return Merged(_used(mine, theirs))
    shared = _shared(mine.events, theirs.events)
    here, there = mine.events[shared:], theirs.events[shared:]
    if not there:
        return Merged(_used(*((mine, theirs) if here else _ordered(mine, theirs))))
    if not here:
        return Merged(_used(theirs, mine))
    first, second = _ordered(mine, theirs)
    tail = _in_order(here, there)
    memory = _replayed(first.memory, tail, _before(here, there))
    memory = _with_text(memory, tail, first.memory, first.events[shared:], second.memory)
    memory = memory._replace(updated_at=max(mine.memory.updated_at, theirs.memory.updated_at))
    same = (memory.content, memory.section) == (first.memory.content, first.memory.section)
    other = (memory.content, memory.section) == (second.memory.content, second.memory.section)
    vectors = first.vectors if same else second.vectors if other else ()
    record = Record(memory, first.unique, (*mine.events[:shared], *tail), vectors)
    return Merged(_used(record, mine, theirs), _conflicts(here, there))


def hide(record: Record, winner: Record) -> Record:
    """A memory that says what another one of the same scope says, put behind it. Both sides come to the same."""
    at = max(record.memory.updated_at, winner.memory.created_at)
    after = {"superseded_by": winner.memory.id, "deleted_at": stamp(at)}
    event = Event(
        at,
        "sync",
        "merge",
        {"superseded_by": record.memory.superseded_by, "deleted_at": None},
        after,
    )
    memory = record.memory._replace(superseded_by=winner.memory.id, deleted_at=at, updated_at=at)
    return record._replace(memory=memory, events=(*record.events, event))


def find_circles(behind: Mapping[str, str]) -> list[list[str]]:
    """The ids that replace each other in a circle, given what replaced each."""
    found, seen = [], set[str]()
    for start in behind:
        path, at = list[str](), start
        while at in behind and at not in seen:
            seen.add(at)
            path.append(at)
            at = behind[at]
        if at in path:
            found.append(path[path.index(at) :])
    return found


def replaced_at(record: Record) -> datetime:
    """When a memory was said to be replaced by what replaces it now."""
    word = _replacing(record)
    return word.at if word else record.memory.created_at


def free(record: Record) -> Record:
    """A replaced memory as it was before that, visible again. Both sides come to the same."""
    memory, word = record.memory, _replacing(record)
    valid_to = memory.valid_to
    if word is None or "valid_to" in word.after or word.before.get("superseded_by"):
        before = valid_before([(event.before, event.after) for event in record.events])
        valid_to = apply_fields(memory, {"valid_to": before}).valid_to
    # Behind everything that was said of it, so that it is the last word wherever the history is put in order.
    at = max((memory.updated_at, *(event.at for event in record.events))) + timedelta(
        milliseconds=1
    )
    back = memory._replace(superseded_by=None, valid_to=valid_to, updated_at=at)
    was, now = (
        {"superseded_by": one.superseded_by, "valid_to": one.valid_to and stamp(one.valid_to)}
        for one in (memory, back)
    )
    return record._replace(
        memory=back, events=(*record.events, Event(at, "sync", "restore", was, now))
    )


def _replacing(record: Record) -> Event | None:
    """The event that put a memory behind what replaces it now."""
    by = record.memory.superseded_by
    return next(
        (event for event in reversed(record.events) if event.after.get("superseded_by") == by), None
    )


def _used(record: Record, *others: Record) -> Record:
    """The record with the larger of the counts: each database counts its own uses."""
    memories = [record.memory, *(other.memory for other in others)]
    seen = [memory.last_accessed for memory in memories if memory.last_accessed]
    memory = record.memory._replace(
        access_count=max(memory.access_count for memory in memories),
        last_accessed=max(seen) if seen else None,
    )
    return record._replace(memory=memory)


def _ordered(mine: Record, theirs: Record) -> tuple[Record, Record]:
    """The one that was changed last first; by what they say where that does not tell."""
    first, second = sorted(
        (mine, theirs), key=lambda record: (record.memory.updated_at, version(record)), reverse=True
    )
    return first, second


def _shared(mine: Sequence[Event], theirs: Sequence[Event]) -> int:
    """How many events both histories begin with."""
    number = 0
    for one, other in zip(mine, theirs, strict=False):
        if event_digest(one) != event_digest(other):
            break
        number += 1
    return number


def _in_order(here: Sequence[Event], there: Sequence[Event]) -> list[Event]:
    """The events of both in order of time, those that both have once."""
    found = {event_digest(event): event for event in (*here, *there)}
    return [event for _, event in sorted(found.items(), key=lambda item: (item[1].at, item[0]))]


def _before(here: Sequence[Event], there: Sequence[Event]) -> float | None:
    """The usefulness from which both went on."""
    for events in (here, there):
        for event in events:
            if COUNTED in event.before:
                return float(event.before[COUNTED])
    return None


def _replayed(memory: Memory, tail: Sequence[Event], useful: float | None) -> Memory:
    fields: dict[str, Any] = {}
    for event in tail:
        for name, value in event.after.items():
            if name == COUNTED and useful is not None:
                useful += float(value) - float(event.before.get(name, 0.0))
            else:
                fields[name] = value
    if useful is not None:
        fields[COUNTED] = useful
    return apply_fields(memory, fields)


def _with_text(
    memory: Memory, tail: Sequence[Event], first: Memory, own: Sequence[Event], second: Memory
) -> Memory:
    """The memory with what belongs to the text that stands. An edit that left the summary as it was says nothing of it, and the one that
    was overruled may have changed it."""
    at = max(
        (number for number, event in enumerate(tail) if "content" in event.after), default=None
    )
    if at is None:
        return memory
    digest = event_digest(tail[at])
    owner = first if any(event_digest(event) == digest for event in own) else second
    told = {name for event in tail[at:] for name in event.after}
    return memory._replace(**{name: getattr(owner, name) for name in OF_TEXT if name not in told})


def apply_fields(memory: Memory, fields: Mapping[str, Any]) -> Memory:
    """A memory with values as history keeps them: times as milliseconds, lists and metadata as JSON."""
    new: dict[str, Any] = {}
    for name, value in fields.items():
        if name in TIMES:
            new[name] = None if value is None else datetime.fromtimestamp(value / 1000, UTC)
        elif name in LISTS:
            new[name] = tuple(json.loads(value))
        elif name == "metadata":
            new[name] = json.loads(value)
        elif name == "entities":
            new[name] = tuple(Entity(str(one), str(type)) for one, type in value)
        elif name == "answered":
            new[name] = None if value is None else bool(value)
        elif name in Memory._fields:
            new[name] = value
    if "content" in new:
        new["content_hash"] = content_hash(new["content"])
    return memory._replace(**new)


def _conflicts(here: Sequence[Event], there: Sequence[Event]) -> tuple[str, ...]:
    last: list[dict[str, Any]] = []
    for events in (here, there):
        said: dict[str, Any] = {}
        for event in events:
            said |= event.after
        last.append(said)
    mine, theirs = last
    return tuple(
        sorted(
            name
            for name in mine.keys() & theirs.keys()
            if name != COUNTED and mine[name] != theirs[name]
        )
    )
