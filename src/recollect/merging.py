"""Two copies of a memory that went different ways, made one again. Pure: no store, no clock.

History decides. Where one copy's history continues the other's, the longer one is right. Where both went on, their events are put in
order of time, each field keeps what was last said of it, and votes of both count. Nothing is lost: what was overruled stands in the
history, from where `restore` brings it back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from recollect.records import Record, event_digest, stamp, version
from recollect.store.writer import content_hash
from recollect.types import Entity, Event, Memory

TIMES = ("valid_from", "valid_to", "expires_at", "deleted_at", "created_at", "last_accessed", "updated_at")
LISTS = ("tags", "keywords")
COUNTED = "usefulness"  # what is summed instead of overruled


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
    memory = memory._replace(updated_at=max(mine.memory.updated_at, theirs.memory.updated_at))
    same = (memory.content, memory.section) == (first.memory.content, first.memory.section)
    other = (memory.content, memory.section) == (second.memory.content, second.memory.section)
    vectors = first.vectors if same else second.vectors if other else ()
    record = Record(memory, first.unique, (*mine.events[:shared], *tail), vectors)
    return Merged(_used(record, mine, theirs), _conflicts(here, there))


def hidden(record: Record, winner: Record) -> Record:
    """A memory that says what another one of the same scope says, put behind it. Both sides come to the same."""
    at = max(record.memory.updated_at, winner.memory.created_at)
    after = {"superseded_by": winner.memory.id, "deleted_at": stamp(at)}
    event = Event(at, "sync", "merge", {"superseded_by": record.memory.superseded_by, "deleted_at": None}, after)
    memory = record.memory._replace(superseded_by=winner.memory.id, deleted_at=at, updated_at=at)
    return record._replace(memory=memory, events=(*record.events, event))


def _used(record: Record, *others: Record) -> Record:
    """The record with the larger of the counts: each database counts its own uses."""
    memories = [record.memory, *(other.memory for other in others)]
    seen = [memory.last_accessed for memory in memories if memory.last_accessed]
    memory = record.memory._replace(access_count=max(memory.access_count for memory in memories), last_accessed=max(seen) if seen else None)
    return record._replace(memory=memory)


def _ordered(mine: Record, theirs: Record) -> tuple[Record, Record]:
    """The one that was changed last first; by what they say where that does not tell."""
    first, second = sorted((mine, theirs), key=lambda record: (record.memory.updated_at, version(record)), reverse=True)
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
    return applied(memory, fields)


def applied(memory: Memory, fields: Mapping[str, Any]) -> Memory:
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
    return tuple(sorted(name for name in mine.keys() & theirs.keys() if name != COUNTED and mine[name] != theirs[name]))
