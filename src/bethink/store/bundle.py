"""The one form in which memories travel: whole records, with their history and vectors, as values and as JSON.

`bethink export` writes records as JSON, `import` reads them, `migrate` and `sync` pass bundles of them from store to store, and
a team's server sends them over the network. A `Bundle` is to two stores what a `Batch` is to one write, but says what is, not what
happened: nothing is guessed, embedded or reconciled again. This module knows no store and no network.
"""

import binascii
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from operator import attrgetter, itemgetter
from types import UnionType
from typing import Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from bethink.text import blake2b
from bethink.types import (
    Entity,
    Event,
    Memory,
    Receipt,
    Relation,
    Session,
    Source,
    Span,
)

Stored = tuple[
    tuple[str, int, bytes], ...
]  # (model, dimensions, data) of each window in order, byte for byte as the store keeps it

# In the order in which they can be put in: what a memory belongs to comes before it.
PARTS = "scopes sources sessions spans records relations turns tombstones".split()
PAGE = 200  # items that go into one transaction
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST = 253_402_300_799_999  # the last millisecond that a date has a year for


class Record(NamedTuple):
    """A memory with everything that is only its own."""

    memory: Memory
    unique: bool  # whether its text may stand only once in its scope
    events: tuple[Event, ...] = ()  # oldest first; their numbers do not count
    vectors: Stored = ()


class Bundle(NamedTuple):
    """A part of a store."""

    scopes: tuple[tuple[str, str, str], ...] = ()  # key, name, path
    sources: tuple[tuple[str, Source, datetime], ...] = ()  # scope, source, when it was read
    sessions: tuple[Session, ...] = ()
    spans: tuple[tuple[Span, Stored], ...] = ()
    records: tuple[Record, ...] = ()
    relations: tuple[tuple[Relation, str], ...] = ()  # and who made it
    turns: tuple[tuple[str, bytes], ...] = ()  # scope, hash of a message's identity
    tombstones: tuple[tuple[bytes, datetime], ...] = ()
    salt: str = ""  # of the tombstones, in hexadecimal
    gone: tuple[str, ...] = ()  # ids of memories that are no more, removed without a trace

    @property
    def size(self) -> int:
        return sum(len(getattr(self, part)) for part in PARTS)


Item = TypeVar("Item")


def split_pages(items: Sequence[Item], size: int = PAGE) -> Iterator[Sequence[Item]]:
    for at in range(0, len(items), size):
        yield items[at : at + size]


def rename_scope(item: Any, names: Mapping[str, str]) -> Any:
    """An item of any part as another database calls its scope, which is a field of it or of what it begins with."""
    if hasattr(item, "scope"):
        return item._replace(scope=names.get(item.scope, item.scope))
    if not isinstance(item, tuple):
        return names.get(item, item)
    return getattr(item, "_make", tuple)((rename_scope(item[0], names), *item[1:]))


# By what an item of a part is known.
_KEYS: dict[str, Callable[[Any], Any]] = {
    "scopes": itemgetter(0),
    "sources": lambda one: (one[0], one[1].uri),
    "sessions": attrgetter("id"),
    "spans": lambda one: one[0].id,
    "records": attrgetter("memory.id"),
    "relations": lambda one: one[0][:3],
    "turns": tuple,
    "tombstones": itemgetter(0),
}


def item_key(part: str, item: Any) -> Any:
    return _KEYS[part](item)


def digest(part: str, item: Any) -> bytes:
    """What an item of a part says, whichever store keeps it. Numbers that a store gives out do not count."""
    if part == "records":
        item = (
            _fold_names(item.memory),
            item.unique,
            [event[:5] for event in item.events],
            item.vectors,
        )
    return blake2b(_canonical(item), digest_size=16).digest()


def version(record: Record) -> bytes:
    """What was said of a memory and what became of it, by which two databases that share it agree. How often it was read and what its
    project is called are each one's own, and vectors can be made anew."""
    memory = _fold_names(record.memory)._replace(scope="", access_count=0, last_accessed=None)
    events = [_get_facts(event) for event in record.events]
    return blake2b(_canonical((memory, record.unique, events)), digest_size=16).digest()


def list_texts(record: Record) -> set[str]:
    """Every text that a memory has or had."""
    earlier = (
        state.get("content") for event in record.events for state in (event.before, event.after)
    )
    return {record.memory.content, *(text for text in earlier if isinstance(text, str))}


def valid_before(states: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> int | None:
    """Until when a memory was valid before it was replaced, from what was before and after each of its changes."""
    end: int | None = None
    for before, after in reversed(states):
        if after.get("superseded_by"):
            end = before.get("valid_to", end)
            if not before.get("superseded_by"):
                break
        elif "valid_to" in after:  # somebody said so since
            return after["valid_to"]  # type: ignore[no-any-return]
    return end


def event_digest(event: Event) -> bytes:
    """What happened, by which two databases know an event again."""
    return blake2b(_canonical(_get_facts(event)), digest_size=16).digest()


def _get_facts(event: Event) -> tuple[Any, ...]:
    """An event without the name of who did it: a team's database says the person where a laptop says `user`."""
    return (event.at, event.action, event.before, event.after)


def sign_actor(actor: str, person: str) -> str:
    """Who did something, as a team's history keeps it: a person, or an agent on behalf of one."""
    if not person or " for " in actor:
        return actor
    return person if actor == "user" else f"{actor} for {person}"


def sign_bundle(bundle: Bundle, known: Sequence[Record], person: str) -> Bundle:
    """A bundle that a person brings into a team's database, with their name on what that does not know yet."""
    names = {
        (one.memory.id, event_digest(event)): event.actor for one in known for event in one.events
    }

    def signed(record: Record) -> Record:
        return record._replace(
            events=tuple(
                event._replace(
                    actor=names.get((record.memory.id, event_digest(event)))
                    or sign_actor(event.actor, person)
                )
                for event in record.events
            )
        )

    return bundle._replace(
        records=tuple(map(signed, bundle.records)),
        relations=tuple((one, sign_actor(actor, person)) for one, actor in bundle.relations),
    )


def _fold_names(memory: Memory) -> Memory:
    # A store keeps one spelling of each name, and in no order.
    return memory._replace(
        entities=tuple(
            sorted(Entity(entity.name.casefold(), entity.type) for entity in memory.entities)
        )
    )


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, default=_plain, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return stamp(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} cannot travel")


def stamp(moment: datetime) -> int:
    """Milliseconds since the epoch. A time without a zone is meant in UTC. What is to last for ever often ends with the calendar, and
    must not be rounded beyond it: such a time could not be read again."""
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return min(round(zoned.timestamp() * 1000), LAST)


def instant(stamp: int) -> datetime:
    return datetime.fromtimestamp(min(stamp, LAST) / 1000, UTC)


class Tally(NamedTuple):
    """How many, and a sum of digests that does not depend on their order."""

    number: int = 0
    total: int = 0

    def plus(self, digests: Iterable[bytes]) -> "Tally":
        number, total = self
        for one in digests:
            number += 1
            total += int.from_bytes(one)
        return Tally(number, total % (1 << 128))

    @property
    def text(self) -> str:
        return f"{self.total:032x}"


# What became of a write that is done at most once


def receipt_text(receipt: Receipt, at: int) -> str:
    return json.dumps({"at": at, "receipt": receipt})


def receipt_of(text: str) -> Receipt:
    receipt: Receipt = _from_json(Receipt, json.loads(text)["receipt"])
    return receipt


# As JSON

_EVENT = ("actor", "action", "before", "after")


def record_to_json(record: Record) -> dict[str, Any]:
    """A record as the JSON object of an export."""
    memory = record.memory
    value = {name: _to_json(getattr(memory, name)) for name in Memory._fields}
    value["entities"] = [entity._asdict() for entity in memory.entities]
    value["history"] = [
        {"at": _iso(event.at), **{name: _to_json(getattr(event, name)) for name in _EVENT}}
        for event in record.events
    ]
    if record.vectors:
        value["vectors"] = _to_json(record.vectors)
    return {**value, "path": memory.path, "unique": record.unique}


def record_from_json(value: Mapping[str, Any]) -> Record:
    """The record in a JSON object. What older exports do not tell has its default; `unique` is then for the caller to say.
    A ValueError, KeyError, TypeError or AttributeError where it is none."""
    events = _from_json(tuple[Event, ...], value.get("history"))
    vectors = _from_json(Stored, value.get("vectors"))
    return Record(_from_json(Memory, value), value.get("unique") is not False, events, vectors)


def bundle_to_json(bundle: Bundle) -> dict[str, Any]:
    """A bundle as it goes over the network."""
    value = bundle._replace(records=())._asdict()
    value = {name: _to_json(found) for name, found in value.items() if found}
    if bundle.records:
        value["records"] = [record_to_json(record) for record in bundle.records]
    return value


def bundle_from_json(value: Mapping[str, Any]) -> Bundle:
    """The bundle that JSON holds. A ValueError, KeyError, TypeError or IndexError where it is none; who receives it translates."""
    records = tuple(map(record_from_json, value.get("records", ())))
    bundle: Bundle = _from_json(Bundle, {**value, "records": ()})
    return bundle._replace(records=records)


def _iso(moment: datetime) -> str:
    text = instant(stamp(moment)).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _to_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return _iso(value)
    if isinstance(value, bytes):
        return binascii.b2a_base64(value, newline=False).decode()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple | list):
        return [_to_json(part) for part in value]
    return value


@cache
def _fields(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _from_json(kind: Any, value: Any) -> Any:
    """A value of a type from JSON: named tuples from objects or rows, times from text, bytes from base64. Nothing else is taken
    for anything that it is not."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:  # or none
        return None if value is None else _from_json(inner[0], value)
    if origin is tuple:
        kinds = [inner[0]] * len(value or ()) if inner[-1] is Ellipsis else inner
        return tuple(_from_json(*pair) for pair in zip(kinds, value or (), strict=True))
    if hasattr(kind, "_fields"):
        return _row_from_json(kind, value)
    if kind is bytes:
        return binascii.a2b_base64(value, strict_mode=True)
    if isinstance(kind, type) and issubclass(datetime, kind):
        return instant(stamp(datetime.fromisoformat(value)))
    if kind is Any or isinstance(value, (int, float) if kind is float else origin or kind):
        return value
    raise TypeError(f"{str(value)[:40]!r} is no {getattr(kind, '__name__', kind)}")


def _row_from_json(kind: Any, value: Any) -> Any:
    """A named tuple from an object or a row. What has a default may be missing."""
    names = kind._fields
    if len(value) > len(names) and not isinstance(value, Mapping):
        raise ValueError(f"a {kind.__name__} of {len(value)} parts")
    given = value if isinstance(value, Mapping) else dict(zip(names, value, strict=False))
    wanted = [name for name in kind._fields if name in given or name not in kind._field_defaults]
    return kind(**{name: _from_json(_fields(kind)[name], given[name]) for name in wanted})
