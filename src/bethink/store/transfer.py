"""Exchange between stores: complete records with history and vectors, as values and as JSON.

`bethink export` writes records as JSON and `import` reads them. `migrate` and `sync` pass bundles
of them from store to store, and a team's server sends them over the network. A `Bundle` describes
state, where a `Batch` describes events: nothing is guessed, embedded or reconciled again.
`features/exchange.py` and `features/sync.py` decide in advance which of two versions of a memory
wins. Records that the target refuses are left out and reported.
"""

import binascii
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import filterfalse
from types import UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from bethink import project as projects
from bethink.errors import InvalidInput, StoreError
from bethink.model import (
    LATER,
    Entity,
    Event,
    Json,
    Memory,
    Relation,
    Session,
    Source,
    Span,
    Strings,
    Values,
    fields_of,
)
from bethink.store.places import content_hash, embedded_text
from bethink.store.rows import EPOCH, Record, Row, Stored, instant, stamp
from bethink.text import hash_text

if TYPE_CHECKING:
    from bethink.store.base import Store
    from bethink.store.rules import Writer

# Fields of a memory that are exported.
EXPORTED = tuple(name for name, info in fields_of(Memory).items() if info.is_shown("export"))
# In the order of insertion: the things that a memory refers to come before it.
PARTS = "scopes sources sessions spans records relations turns tombstones".split()
ITEMS_PER_WRITE = 200  # items per transaction

Expected = Mapping[str, bytes | None]  # id → expected version; None: the memory must not exist
Progress = Callable[[int, int], None]


class Bundle(NamedTuple):
    """Part of a store."""

    scopes: tuple[tuple[str, str, str], ...] = ()  # key, name, path
    sources: tuple[tuple[str, Source, datetime], ...] = ()  # scope, source, when it was read
    sessions: tuple[Session, ...] = ()
    spans: tuple[tuple[Span, Stored], ...] = ()
    records: tuple[Record, ...] = ()
    relations: tuple[tuple[Relation, str], ...] = ()  # relation, actor
    turns: tuple[tuple[str, bytes], ...] = ()  # scope, hash of a message's identity
    tombstones: tuple[tuple[bytes, datetime], ...] = ()
    salt: str = ""  # of the tombstones, in hexadecimal
    gone: Strings = ()  # ids of memories that were removed without a trace

    @property
    def size(self) -> int:
        return sum(len(getattr(self, part)) for part in PARTS)


Item = TypeVar("Item")


def split_pages(items: Sequence[Item], size: int = ITEMS_PER_WRITE) -> Iterator[Sequence[Item]]:
    for at in range(0, len(items), size):
        yield items[at : at + size]


def rename_scope(item: Any, names: Mapping[str, str]) -> Any:
    """Replace the scope of an item of any part by its name in another database.

    The scope is a field of the item or of its first element.
    """
    if hasattr(item, "scope"):
        return item._replace(scope=names.get(item.scope, item.scope))
    if not isinstance(item, tuple):
        return names.get(item, item)
    return getattr(item, "_make", tuple)((rename_scope(item[0], names), *item[1:]))


def digest(part: str, item: object) -> bytes:
    """Digest of an item, the same in every store: numbers assigned by a store are ignored."""
    if isinstance(item, Record):
        events = [event[:5] for event in item.events]
        item = (_list_values(item.memory), item.unique, events, item.vectors)
    return _hash(item)


def version(record: Record) -> bytes:
    """Digest of a memory and its history, equal in two databases that agree on it.

    Read counts and the project's name differ between databases, and vectors can be recomputed, so
    they do not count.
    """
    memory = record.memory._replace(**_OWN)
    return _hash((_list_values(memory), record.unique, list(map(_get_facts, record.events))))


def event_digest(event: Event) -> bytes:
    """Digest that identifies an event across databases."""
    return _hash(_get_facts(event))


def _get_facts(event: Event) -> tuple[Any, ...]:
    """Event without its actor: a team's database has a person where a laptop has `user`."""
    return (event.at, event.action, event.before, event.after)


# Fields that differ between databases, with the value that a version assumes for them.
_OWN: Json = {
    name: "" if info.required else info.default
    for name, info in fields_of(Memory).items()
    if not info.field.synced
}


def _list_values(memory: Memory) -> list[Any]:
    """Values of a memory in order.

    Fields added later follow by name if they differ from their default, so that a database that
    does not know them yet agrees.
    """
    # A store keeps one spelling of each name, in no order.
    folded = sorted(Entity(entity.name.casefold(), entity.type) for entity in memory.entities)
    values = list(memory._replace(entities=tuple(folded)))
    later = {
        name: value
        for name in LATER
        if (value := getattr(memory, name)) != memory._field_defaults[name]
    }
    return [*values[: len(values) - len(LATER)], *([later] if later else [])]


def _hash(value: object) -> bytes:
    text = json.dumps(value, sort_keys=True, default=_make_plain, separators=(",", ":"))
    return hash_text(text)


def _make_plain(value: datetime | Values | bytes | memoryview) -> object:
    if isinstance(value, datetime):
        return stamp(value)
    return dict(value) if isinstance(value, Mapping) else bytes(value).hex()


def list_texts(record: Record) -> set[str]:
    """Every text that a memory has or had."""
    states = (state for event in record.events for state in (event.before, event.after))
    texts = (record.memory.content, *(state.get("content") for state in states))
    return {text for text in texts if isinstance(text, str)}


def sign_actor(actor: str, person: str) -> str:
    """Actor as recorded in a team's history: a person, or an agent on behalf of one."""
    if not person or " for " in actor:
        return actor
    return person if actor == "user" else f"{actor} for {person}"


def sign_bundle(bundle: Bundle, known: Sequence[Record], person: str) -> Bundle:
    """Sign everything new in a bundle with the person who brings it to a team's database."""
    names = {
        (one.memory.id, event_digest(event)): event.actor for one in known for event in one.events
    }

    def sign(id: str, event: Event) -> Event:
        actor = names.get((id, event_digest(event))) or sign_actor(event.actor, person)
        return event._replace(actor=actor)

    records = (
        one._replace(events=tuple(sign(one.memory.id, event) for event in one.events))
        for one in bundle.records
    )
    relations = ((one, sign_actor(actor, person)) for one, actor in bundle.relations)
    return bundle._replace(records=tuple(records), relations=tuple(relations))


# As JSON


def record_to_json(record: Record) -> Json:
    """A record as the JSON object of an export."""
    value = {name: _to_json(getattr(record.memory, name)) for name in EXPORTED}
    value["history"] = list(map(_to_json, record.events))
    for event in value["history"]:
        del event["number"]
    if record.vectors:
        value["vectors"] = _to_json(record.vectors)
    return {**value, "path": record.memory.path, "unique": record.unique}


def record_from_json(value: Row) -> Record:
    """Read a record from a JSON object.

    Fields missing in older exports get their default; the caller then decides on `unique`. Raises
    ValueError, KeyError, TypeError or AttributeError for an invalid record.
    """
    events = from_json(tuple[Event, ...], value.get("history"))
    vectors = from_json(Stored, value.get("vectors"))
    known = {name: value[name] for name in EXPORTED if name in value}
    return Record(from_json(Memory, known), value.get("unique") is not False, events, vectors)


def bundle_to_json(bundle: Bundle) -> Json:
    """A bundle as it goes over the network."""
    records = list(map(record_to_json, bundle.records))
    value = {**_to_json(bundle._replace(records=())), "records": records}
    return {name: found for name, found in value.items() if found}


def bundle_from_json(value: Row) -> Bundle:
    """Read a bundle from JSON.

    Raises ValueError, KeyError, TypeError or IndexError for an invalid one; the receiver
    translates.
    """
    records = tuple(map(record_from_json, value.get("records", ())))
    bundle: Bundle = from_json(Bundle, {**value, "records": ()})
    return bundle._replace(records=records)


def _to_json(value: object) -> Any:
    if isinstance(value, datetime):
        text = instant(stamp(value)).isoformat(timespec="milliseconds")
        return text.replace("+00:00", "Z")
    if isinstance(value, bytes):
        return binascii.b2a_base64(value, newline=False).decode()
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "_asdict"):
        return {name: _to_json(part) for name, part in value._asdict().items()}
    return [_to_json(part) for part in value] if isinstance(value, tuple | list) else value


_list_fields = cache(get_type_hints)


def from_json(kind: Any, value: Any) -> Any:
    """Convert JSON to a type: named tuples from objects or rows, times from text, bytes from base64.

    Any other mismatch is an error.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:  # or none
        return None if value is None else from_json(inner[0], value)
    if origin is tuple:
        kinds = [inner[0]] * len(value or ()) if inner[-1] is Ellipsis else inner
        return tuple(from_json(*pair) for pair in zip(kinds, value or (), strict=True))
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
    """Build a named tuple from an object or a row. Fields with a default may be missing."""
    names = kind._fields
    if len(value) > len(names) and not isinstance(value, Mapping):
        raise ValueError(f"a {kind.__name__} of {len(value)} parts")
    fields = value if isinstance(value, Mapping) else dict(zip(names, value, strict=False))
    wanted = [name for name in names if name in fields or name not in kind._field_defaults]
    return kind(**{name: from_json(_list_fields(kind)[name], fields[name]) for name in wanted})


# Putting a bundle down


def take(
    writer: "Writer", bundle: Bundle, known: Mapping[str, Record], expect: Expected
) -> Strings:
    """Store a bundle; `known` are the existing records with its ids. Returns the ids it refused."""
    named = "UPDATE scopes SET name = coalesce(nullif(name, ''), ?), path = coalesce(nullif(path, ''), ?) WHERE id = ?"
    for key, name, path in bundle.scopes:
        writer.run(named, name, path, writer.scope(key))
    for scope, source, read in bundle.sources:
        writer.put_source(writer.scope(scope), source, stamp(read))
        writer.audit("source", source.uri)
    for session in bundle.sessions:
        writer.run("DELETE FROM sessions WHERE id = ?", session.id)
        writer.put_session(session)
    writer.put_spans(bundle.spans)
    if bundle.tombstones and bundle.salt != writer.salt():
        # Tombstones are hashed with the secret of their store, so it comes with them.
        if writer.one("SELECT 1 FROM tombstones LIMIT 1"):
            raise StoreError(
                "This database already has tombstones of purged memories, made with another secret.",
                "Migrate into an empty database.",
            )
        writer.run("UPDATE meta SET value = ? WHERE key = 'salt'", bundle.salt)
    if bundle.gone:
        writer.remove(writer.column("SELECT key FROM memories WHERE id = ANY(?)", bundle.gone))
        writer.release(bundle.gone)
        writer.audit("remove", *bundle.gone)
    left = _take_records(writer, bundle.records, known, expect) if bundle.records else ()
    relations = [(one, stamp(one.created_at or EPOCH), actor) for one, actor in bundle.relations]
    writer.put_relations(relations)
    turns = [{"scope": writer.scope(scope), "identity": turn} for scope, turn in bundle.turns]
    writer.put("turns", turns)
    stones = [{"scope": 0, "hash": hash, "at": stamp(at)} for hash, at in bundle.tombstones]
    writer.put("tombstones", stones)
    for part in ("relations", "turns", "tombstones"):
        if number := len(getattr(bundle, part)):
            writer.audit(f"take {part}", number)
    writer.settle()
    return left


def _take_records(
    writer: "Writer", records: Sequence[Record], known: Mapping[str, Record], expect: Expected
) -> Strings:
    """Insert or replace memories, with their vectors or existing vectors of the same text.

    Returns the ids of refused memories: those in another scope, of an unexpected version,
    duplicates of a note, and purged ones.
    """
    incoming = {one.memory.id: one for one in records}
    purged = _find_purged(writer, incoming, known)
    scopes = {one.memory.scope: writer.scope(one.memory.scope) for one in records}
    hashes = {one.memory.content_hash for one in records if one.unique}
    living = writer.find_living(scopes.values(), hashes)
    taken: dict[str, Record] = {}
    for id, record in incoming.items():
        memory, current = record.memory, known.get(id)
        place = (scopes[memory.scope], memory.content_hash)
        once = record.unique and memory.deleted_at is None
        is_twin = once and living.get(place, id) != id
        if is_twin or id in purged or not _is_expected(memory, current, expect):
            continue
        if current:
            if living.get(was := (place[0], current.memory.content_hash)) == id:
                del living[was]
            if not record.vectors and embedded_text(current.memory) == embedded_text(memory):
                record = record._replace(vectors=current.vectors)
        if once:
            living[place] = id
        taken[id] = record
    keys = dict(writer.run("SELECT id, key FROM memories WHERE id = ANY(?)", taken))
    writer.remove(keys.values())
    writer.put_records(
        [
            (keys.get(id) or writer.number("memories"), scopes[one.memory.scope], one)
            for id, one in taken.items()
        ]
    )
    writer.audit("take", *taken)
    return tuple(filterfalse(taken.__contains__, incoming))


def _is_expected(memory: Memory, current: Record | None, expect: Expected) -> bool:
    """Return True if the existing memory has the same scope and the expected version."""
    if current and current.memory.scope != memory.scope:
        return False
    found = version(current) if current and memory.id in expect else None
    return expect.get(memory.id) == found


def _find_purged(
    writer: "Writer", incoming: Mapping[str, Record], known: Mapping[str, Record]
) -> set[str]:
    """Ids of memories whose text or history contains a purged text."""
    texts = {}
    for id, record in incoming.items():
        texts[id] = {record.memory.content_hash, *map(content_hash, list_texts(record))}
        if id in known:
            texts[id] -= set(map(content_hash, list_texts(known[id])))
    purged = writer.find_refused(set[str]().union(*texts.values()))
    return {id for id, own in texts.items() if own & purged}


# Everything into another database

ROUNDS = 4  # to catch up with a source that is written to meanwhile
MIGRATION_NOTE, _SCOPES = "migration", "migrated-scopes"


class Tally(NamedTuple):
    """Number of items, and a sum of their digests that does not depend on their order."""

    number: int
    digest: str


def count_items(digests: Sequence[bytes]) -> Tally:
    return Tally(len(digests), f"{sum(map(int.from_bytes, digests)) % (1 << 128):032x}")


class Moved(NamedTuple):
    """Result of a migration."""

    parts: dict[str, Tally]
    taken: int  # items that this run transferred
    resumed: bool  # whether an earlier run had started it


def migrate(
    source: "Store", target: "Store", origin: str, *, progress: Progress | None = None
) -> Moved:
    """Copy everything from one database to an empty one.

    Each part is compared by digests, and differences are copied, until a whole round finds none. So
    an interrupted migration resumes, and one whose source is written to catches up. The source,
    named by `origin`, is only read. Derived data, such as the embedding cache, is left behind.
    """
    resumed = _claim(target, origin)
    names = map_scopes(source, target)
    if names:
        target.take(Bundle(), note=(_SCOPES, json.dumps({new: old for old, new in names.items()})))
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
        "Stop what writes to the source, then run the same command again: it resumes from here.",
    )


def _claim(target: "Store", origin: str) -> bool:
    """Mark an empty target as a copy of `origin`. Returns True if an earlier run did so."""
    noted = target.read_note(MIGRATION_NOTE)
    if noted == origin:
        return True
    overview = target.overview()
    existing = overview.memories + overview.deleted
    if existing or overview.sources or overview.sessions:
        whose = f", brought from {noted}" if noted is not None else ""
        raise InvalidInput(
            f"The target already contains {existing} memories{whose}.",
            "Migrate into an empty database; `bethink sync` merges two that are in use.",
        )
    target.take(Bundle(), note=(MIGRATION_NOTE, origin))
    return False


def _catch_up(
    source: "Store",
    target: "Store",
    part: str,
    names: Mapping[str, str],
    report: Callable[[int], None],
) -> tuple[int, Tally]:
    """Copy the differences in a part. Returns their number, and the tally of the source."""
    known = {digest(part, one) for one in target.items(part)}
    seen, taken = list[bytes](), 0
    for bundle in source.export(part):
        items = (rename_scope(item, names) for item in getattr(bundle, part))
        found = {digest(part, item): item for item in items}
        seen += found
        fresh = tuple(item for key, item in found.items() if key not in known)
        known -= found.keys()
        differing = bundle._replace(**{part: fresh})  # type: ignore[arg-type]
        left = target.take(differing, allow_purged=True) if fresh else ()
        if left:
            raise StoreError(
                f"The target refused {len(left)} memories, the first of them {left[0]}.",
                "Another process writes to it; migrate into a database that is not in use.",
            )
        taken += len(fresh)
        if part == "records":
            report(len(seen))
    # A copied item may have replaced another: the next round finds out. A scope that only the target has is empty: the personal
    # scope exists from the start.
    if known and not taken and part != "scopes":
        raise StoreError(
            f"The target holds {len(known)} {part} that the source no longer has.",
            "Stop what writes to the source, and migrate into a new, empty database.",
        )
    return taken, count_items(seen)


def team_scope(name: str) -> str:
    """Scope of a project that a team knows by name, the same for all members."""
    return f"project:{projects.team_identity(name)}"


def map_scopes(source: "Store", target: "Store") -> dict[str, str]:
    """Map scopes of the source to those of the target, where they differ.

    A team's database knows projects by name, a personal one by folder. Names that would collide are
    kept.
    """
    to_team, from_team = (hasattr(store, "act_as") for store in (target, source))
    if to_team == from_team:
        return {}
    before = json.loads(source.read_note(_SCOPES) or "{}") if from_team else {}
    names = {
        key: before.get(key) or _find_scope(key, name, to_team)
        for key, name, _ in source.items("scopes")
    }
    for key in names:
        owner, _, container = key.removeprefix("container:").partition("/")
        project = names.get(f"project:{owner}")
        if project and key.startswith("container:") and not names[key]:
            names[key] = f"container:{project.removeprefix('project:')}/{container}"
    wanted = Counter(new or key for key, new in names.items())
    return {key: new for key, new in names.items() if new and wanted[new] == 1 and key != new}


def _find_scope(key: str, name: str, to_team: bool) -> str:
    """Scope of a project in the other kind of database, or "" if it is the same.

    A team's is derived from the project's name, a person's from the folder that joined it.
    """
    team = team_scope(name)
    if to_team:
        return team if key.startswith("project:") and name else ""
    joined = projects.find_joined(name) if name and key == team else ""
    return f"project:{joined}" if joined else ""
