"""Conversion between rows and the values of `model`, for both databases.

SQL is written once for both. A parameter is marked with `?`, a list is matched with `= ANY(?)`, and
each store translates these two when it runs a statement. Scopes are integers and are written into
the statement, so that an index can be used in its order.
"""

import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

from bethink.errors import StoreCorrupt
from bethink.model import (
    EVERYTHING,
    LATER,
    NOTHING,
    READINGS,
    TRUST,
    Entity,
    Event,
    FieldInfo,
    Filter,
    Memory,
    Relation,
    Session,
    Shape,
    Source,
    Span,
    Strings,
    fields_of,
)
from bethink.text import blake2b, hash_text

# Condition for a note, whatever source it names: not a passage of that source, nor an idea from a conversation.
IS_NOTE = "(m.dedup IS NOT NULL AND m.session IS NULL)"
SOURCE_TYPE = f"CASE WHEN {IS_NOTE} THEN 'note' ELSE o.type END"

# Actions that reading a source leaves in history by itself; any other comes from a person or an agent.
READING = "('add', 'reread', 'restore', 'retire', 'cite')"

# SQL for fields of a memory that are not a column of the same name. `{}` is the database's function that collects the rows
# of a subquery into JSON.
_READ_FROM = {
    "scope": "s.key",
    "source": "o.uri",
    "source_type": SOURCE_TYPE,
    "lines": "m.line_start",
    "newer": "(SELECT string_agg(r.source, ',') FROM relations r JOIN memories n ON n.id = r.source WHERE r.target = m.id"
    " AND r.type = 'may_replace' AND n.superseded_by IS NULL AND n.deleted_at IS NULL AND n.trust >= m.trust"
    " AND n.created_at >= m.created_at AND +n.scope = m.scope)",
    "entities": "(SELECT {} FROM memory_entities me JOIN entities e ON e.id = me.entity WHERE me.memory = m.key)",
}
_FIELDS = ", ".join(_READ_FROM.get(name, f"m.{name}") for name in Memory._fields)
COLUMNS = f"m.key, {_FIELDS}, m.line_end, m.row_hash"
_PLACES = {name: at for at, name in enumerate(("key", *Memory._fields, "line_end", "row_hash"))}
JOINS = "memories m JOIN scopes s ON s.id = m.scope JOIN sources o ON o.id = m.source"


def _select(kind: type, alias: str, joined: Mapping[str, str] = NOTHING, more: str = "") -> str:
    """Start of a statement that selects the fields of a value in order, the ends of its lines, and `more`."""
    infos = fields_of(kind).values()
    names = [joined.get(info.name) or f"{alias}.{info.columns[0]}" for info in infos]
    ends = [f"{alias}.{column}" for info in infos for column in info.columns[1:]]
    return f"SELECT {', '.join([*names, *ends, *more.split()])}"


SOURCE = f"{_select(Source, 'o', more='s.key')} FROM sources o JOIN scopes s ON s.id = o.scope"
_JOINED = {"scope": "s.key", "source": "coalesce(o.uri, '')"}
SESSION = (
    f"{_select(Session, 'n', _JOINED)}"
    " FROM sessions n JOIN scopes s ON s.id = n.scope LEFT JOIN sources o ON o.id = n.source"
)
SPAN = f"{_select(Span, 'p', _JOINED)} FROM spans p JOIN scopes s ON s.id = p.scope"
RELATION = f"{_select(Relation, 'relations', more='actor')} FROM relations"
EVENT = f"{_select(Event, 'h', more='h.memory')} FROM history h"
EVENT_OF = f"{_select(Event, 'h', more='m.id')} FROM history h"

# Condition for memories that an ordinary search hides, exactly as in the index `memories_hidden`.
HIDDEN = (
    "deleted_at IS NOT NULL OR superseded_by IS NOT NULL OR valid_to IS NOT NULL"
    " OR expires_at IS NOT NULL OR trust = 0"
)
FORGOTTEN = f"({HIDDEN}) AND m.deleted_at IS NOT NULL"
# Conditions of partial indexes, which are used only if the text is identical: `memories_used`, `memories_doubted`.
USED = "(m.usefulness <> 0 OR m.access_count > 0)"
DOUBTED = f"m.trust <= {TRUST['import']}"
# Memories that must not have a vector, exactly as in the index `memories_unvectored`, and those that have none.
UNWANTED = (
    "instr(m.metadata, '\"vector_index\"') > 0 AND instr(m.metadata, '\"vector_index\": false') > 0"
)
BARE = "NOT EXISTS (SELECT 1 FROM vectors v WHERE v.memory = m.key)"
BARE_OF = "NOT EXISTS (SELECT 1 FROM vectors v WHERE v.memory = m.key AND v.model = ?)"

ORDER_CLAUSES = {
    "created": "m.created_at DESC, m.key DESC",
    "oldest": "m.created_at, m.key",
    "importance": "m.importance DESC, m.key DESC",
    "used": "m.access_count DESC, m.key DESC",
    "useful": "m.usefulness DESC, m.key DESC",
    "proven": "2 * m.usefulness + m.access_count DESC, m.key",
    "updated": "m.updated_at DESC, m.key DESC",
    "position": "m.position, m.key",
}

# Columns of a memory that a Change may set: those of a single field, unless the field identifies the memory.
SETTABLE = frozenset(
    name
    for name, info in fields_of(Memory).items()
    if info.columns == (name,) and info.field.rule != "fixed"
)
# Columns that a change or a purge reads.
ROW = ("key", *(column for info in fields_of(Memory).values() for column in info.columns), "dedup")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = 253_402_300_799_999  # the last millisecond that a date has a year for

# (model, dimensions, data) of each window in order, byte for byte as the store keeps it
Stored = tuple[tuple[str, int, bytes], ...]
Rows = list[Any]  # result of a statement
Run = Callable[..., Rows]  # function that runs a statement with its parameters
Ids = Collection[str]  # of memories or topics
Keys = Collection[int]  # numbers that the database assigns to its rows, including scopes
Scopes = Collection[str]
Row = Mapping[str, Any]  # column → value
Cosines = tuple[dict[int, float], float]  # per memory, and the mean over all memories of the scopes
Where = tuple[str, list[Any]]  # a condition over `memories m`, and its parameters


class Record(NamedTuple):
    """Memory with its events and vectors."""

    memory: Memory
    unique: bool  # whether its text may occur only once in its scope
    events: tuple[Event, ...] = ()  # oldest first; their numbers are ignored
    vectors: Stored = ()

    @property
    def id(self) -> str:
        return self.memory.id


def stamp(moment: datetime) -> int:
    """Convert a time to milliseconds since the epoch; a time without a zone is UTC.

    "For ever" is often the end of the calendar. It must not be rounded beyond that, because such a
    time could not be read back.
    """
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return min(round(zoned.timestamp() * 1000), _LAST)


def instant(stamp: int) -> datetime:
    return datetime.fromtimestamp(min(stamp, _LAST) / 1000, UTC)


def moment(stamp: int | None) -> datetime | None:
    return None if stamp is None else instant(stamp)


# `json.dumps` would create an encoder for every value.
_json = json.JSONEncoder(ensure_ascii=False).encode


def to_column(value: object) -> Any:
    """Convert the value of a field to the value of its column."""
    if isinstance(value, datetime):
        return stamp(value)
    if isinstance(value, Mapping):
        return _json(dict(value))
    if isinstance(value, tuple | list):
        return _json(list(value))
    return int(value) if isinstance(value, bool) else value


@cache
def _list_columns(kind: Any) -> list[tuple[str, Strings]]:
    """Stored fields of a value, each with its columns."""
    return [(name, info.columns) for name, info in fields_of(kind).items() if info.columns]


def to_row(item: object, **own: object) -> dict[str, Any]:
    """Columns of a memory, source, topic, event or relation; `own` are those the store itself fills."""
    row: dict[str, Any] = {}
    kind: Any = type(item)
    for name, columns in _list_columns(kind):
        value = getattr(item, name)
        if columns == (name,):
            row[name] = to_column(value)
        else:
            row |= zip(columns, value or (None,) * len(columns), strict=True)
    return row | own


# Columns that the row hash covers: the content, nothing that use changes. Fields added later count only if they differ from
# the default, so that hashes older than the field stay valid.
_HASHED = [
    column
    for name, info in fields_of(Memory).items()
    for column in info.columns
    if info.hashed and name not in LATER
]
_HASHED_LATER = [
    (name, to_column(info.default))
    for name, info in fields_of(Memory).items()
    if info.hashed and name in LATER
]


def row_hash(values: Mapping[str, Any]) -> bytes:
    """Hash that guards a row against silent corruption: the database checks pages, not their meaning."""
    texts = [_to_text(values[column]) for column in _HASHED]
    texts += [
        f"{name}={_to_text(values[name])}"
        for name, default in _HASHED_LATER
        if values[name] != default
    ]
    return hash_text("\x1f".join(texts), 12)


def _to_text(value: object) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def is_intact(row: Sequence[Any]) -> bool:
    """Return True if a row of COLUMNS is unchanged since it was written."""
    stored = {name: row[at] for name, at in _PLACES.items()}
    return row_hash(stored | {"line_start": stored["lines"]}) == bytes(stored["row_hash"])


def memory(row: Sequence[Any]) -> Memory:
    """Build a Memory from a row of COLUMNS."""
    try:
        found: Memory = read(Memory, row[1:])
        return found
    except (ValueError, TypeError, OverflowError, OSError) as error:
        raise StoreCorrupt(
            f"The memory {row[1]} is damaged: {error}.", "Run `bethink doctor --deep`."
        ) from error


_EMPTY: Mapping[str | None, type] = {None: dict, "": dict, "{}": dict, "[]": list}


def _read_json(text: str | None) -> Any:
    empty = _EMPTY.get(text)  # most are, and a search reads hundreds
    return empty() if empty else json.loads(text or "{}")


def _read_entities(stored: str | Iterable[Iterable[str]] | None) -> tuple[Entity, ...]:
    """Read entities from JSON, or from the pairs that history keeps."""
    pairs = _read_json(stored or "[]") if isinstance(stored, str | None) else stored
    return tuple(Entity(*map(str, pair)) for pair in pairs)


# Conversions from columns to fields, for those that differ.
_READERS: dict[Shape, Callable[[Any], Any]] = {
    "time": moment,
    "object": _read_json,
    "texts": lambda text: tuple(_read_json(text)),
    "switch": lambda value: None if value is None else bool(value),
    "entities": _read_entities,
}


def _read_newer(ids: str | None) -> Strings:
    return tuple(sorted(ids.split(","))) if ids else ()


def _find_reader(info: FieldInfo) -> Callable[[Any], Any] | None:
    return _read_newer if info.name == "newer" else _READERS.get(info.shape)


def from_history(field: str, value: object) -> Any:
    """Convert a value kept in history to the value of its field."""
    info = fields_of(Memory).get(field)
    reader = _find_reader(info) if info and value is not None else None
    return reader(value) if reader else value


@cache
def _list_readers(kind: Any) -> tuple[list[tuple[int, Callable[[Any], Any]]], int | None]:
    """Readers of a value's fields by position, and the position of its lines."""
    infos = fields_of(kind).values()
    readers = [(at, reader) for at, info in enumerate(infos) if (reader := _find_reader(info))]
    lines = [at for at, info in enumerate(infos) if info.shape == "lines"]
    return readers, lines[0] if lines else None


def read(kind: Any, row: Sequence[Any]) -> Any:
    """Build a value from a row that contains its fields in order, followed by the end of its lines."""
    readers, lines = _list_readers(kind)
    values = list(row[: len(kind._fields)])
    for at, reader in readers:
        values[at] = reader(values[at])
    if lines is not None:
        first, last = values[lines], row[len(values)]
        values[lines] = None if first is None else (first, first if last is None else last)
    return kind._make(values)


# For each part of an export: the columns that order it, the selection, and the column of its scope.
EXPORTS = {
    "scopes": ("id", "SELECT key, name, path FROM scopes", "id"),
    "sources": ("o.id", SOURCE.replace("s.key", "s.key, o.read_at"), "o.scope"),
    "sessions": ("n.id", SESSION, "n.scope"),
    "spans": ("p.key", SPAN, "p.scope"),
    "records": ("m.key", f"SELECT {{columns}}, m.dedup FROM {JOINS}", "m.scope"),
    "relations": (
        "source, target, type",
        RELATION,
        "(SELECT scope FROM memories WHERE id = relations.source)",
    ),
    "turns": (
        "t.scope, t.identity",
        "SELECT s.key, t.identity FROM turns t JOIN scopes s ON s.id = t.scope",
        "t.scope",
    ),
    "tombstones": ("hash", "SELECT hash, at FROM tombstones", ""),
}
ITEMS: dict[str, Callable[[Any], Any]] = {
    "scopes": tuple,
    "sources": lambda row: (row[-2], read(Source, row), instant(row[-1])),
    "sessions": lambda row: read(Session, row),
    "relations": lambda row: (read(Relation, row), row[-1]),
    "turns": lambda row: (row[0], bytes(row[1])),
    "tombstones": lambda row: (bytes(row[0]), instant(row[1])),
}


def within(column: str, scopes: Iterable[int] | None) -> str:
    """Condition that a column is one of these scopes; an empty list matches nothing, None everything."""
    if scopes is None:
        return "1 = 1"
    return f"{column} IN ({','.join(map(str, scopes)) or 'NULL'})"


def marks(values: Iterable[Any]) -> str:
    return ",".join("?" for _ in values)


def on_conflict(table: str, key: str, names: Iterable[str]) -> str:
    """Clause that updates an existing row with the same key, except for its number.

    Word counts are added to the existing counts.
    """
    kept, added = ("id", "key", *key.split(", ")), table == "lexeme_counts"
    changed = ", ".join(
        f"{name} = {f'{table}.{name} + ' if added else ''}excluded.{name}"
        for name in names
        if name not in kept
    )
    return f" ON CONFLICT ({key}) DO UPDATE SET {changed}"


def tombstone(content_hash: str, salt: str) -> bytes:
    """Trace of a purged text, salted with the database's secret so that short texts cannot be guessed."""
    return blake2b(content_hash.encode(), key=bytes.fromhex(salt), digest_size=16).digest()


class Reader:
    """Base of everything that queries a database: a store, or a write in progress."""

    stored = "v.data"  # SQL for the columns of a vector `v` that `encode_stored` turns into bytes
    order = "v.id"  # SQL column that orders the vectors of a memory

    def encode_stored(self, *stored: Any) -> bytes:
        """Build the bytes of a vector from the columns of `stored`."""
        return bytes(stored[0])

    def run(self, sql: str, *values: object) -> Rows:
        """Return the rows of a statement; `?` and `= ANY(?)` as described above."""
        raise NotImplementedError

    def column(self, sql: str, *values: object) -> Rows:
        return [row[0] for row in self.run(sql, *values)]

    def find_purged(self, hashes: Iterable[str]) -> set[str]:
        """Return those of these content hashes whose text was purged."""
        salts = self.column("SELECT value FROM meta WHERE key = 'salt'")
        stones = {tombstone(hash, salt): hash for salt in salts for hash in hashes}
        found = self.column("SELECT hash FROM tombstones WHERE hash = ANY(?)", stones)
        return {stones[bytes(hash)] for hash in found}

    def find_living(
        self, scopes: Iterable[int], hashes: Iterable[str]
    ) -> dict[tuple[int, str], str]:
        """Map (scope, content hash) to the id of the live memory with that text."""
        sql = f"SELECT scope, dedup, id FROM memories WHERE {within('scope', scopes)} AND dedup = ANY(?) AND deleted_at IS NULL"
        return {(scope, hash): id for scope, hash, id in self.run(sql, hashes)}

    def find_turns(
        self, scopes: Iterable[int], identities: Iterable[bytes]
    ) -> set[tuple[int, bytes]]:
        """Return messages (scope, hash of identity) that were ingested before."""
        sql = f"SELECT scope, identity FROM turns WHERE {within('scope', scopes)} AND identity = ANY(?)"
        return {(scope, bytes(turn)) for scope, turn in self.run(sql, identities)}


# Filters that are either on or off.
FLAGS = {
    "used": USED,
    "transcribed": "EXISTS (SELECT 1 FROM sources r WHERE r.id = m.source AND r.type = 'transcript')",
}
# Filters with a value: field, condition, and conversion of the parameter.
CHOICES: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("min_importance", "m.importance >= ?", float),
    ("since", "m.created_at >= ?", stamp),
    ("until", "m.created_at < ?", stamp),
    ("answered", "coalesce(m.answered, 0) = ?", int),
    ("session", "m.session = ?", str),
    ("spans", "m.span = ANY(?)", list),
    ("max_trust", "m.trust <= ?", int),
    ("min_trust", "m.trust >= ?", int),
    ("hosts", "m.session IN (SELECT id FROM sessions WHERE host = ANY(?))", list),
    (
        "tags",
        "EXISTS (SELECT 1 FROM json_each(m.tags) t WHERE lower(t.value) = ANY(?))",
        lambda tags: [tag.lower() for tag in tags],
    ),
    (
        "sources",
        "m.source IN (SELECT id FROM sources WHERE uri = ANY(?))",
        lambda uris: [prefix + uri for uri in uris for prefix in ("", *READINGS)],
    ),
    (
        "entities",
        "m.key IN (SELECT me.memory FROM entities e JOIN memory_entities me ON me.entity = e.id"
        " WHERE e.folded = ANY(?))",
        lambda names: [name.casefold() for name in names],
    ),
)


def is_narrow(filter: Filter) -> bool:
    """Return True if a filter restricts more than scope and visibility, so few memories may match."""
    wide = Filter(filter.scopes, now=filter.now, follow=filter.follow)
    return filter != wide._replace(**{name: getattr(filter, name) for name in EVERYTHING})


def where(filter: Filter, scopes: Keys, by_key: bool = False) -> Where:
    """Translate a filter into SQL over `memories m`, with its parameters.

    `by_key` is for statements that look up memories by key: the unary plus keeps SQLite from using
    the index of scopes.
    """
    shown, values = _where_shown(filter)
    parts = [within("+m.scope" if by_key else "m.scope", scopes), *shown]
    if filter.kinds:
        # A rarer condition has its own index, so keep SQLite from using the one of kinds.
        rarer = filter.used or filter.max_trust is not None
        kind = "coalesce(m.kind, '')" if rarer else "m.kind"
        parts.append(f"{kind} IN ({marks(filter.kinds)})")
        values += filter.kinds
    if filter.max_trust is not None and filter.max_trust <= TRUST["import"]:
        parts.append(DOUBTED)
    parts += [sql for field, sql in FLAGS.items() if getattr(filter, field)]
    for field, sql, parameter in CHOICES:
        value = getattr(filter, field)
        if value not in (None, "", ()):
            parts.append(sql)
            values.append(parameter(value))
    return " AND ".join(parts), values


def _where_shown(filter: Filter) -> tuple[list[str], list[Any]]:
    """Conditions that hide forgotten, quarantined, replaced, invalid and expired memories."""
    moment = filter.as_of or filter.now
    now = stamp(moment) if moment else int(time.time() * 1000)
    valid = "(m.valid_to IS NULL OR m.valid_to > ?)"
    parts, values = list[str](), list[Any]()
    if not filter.include_deleted:
        parts.append("m.deleted_at IS NULL")
    if not filter.include_quarantined:
        parts.append("m.trust > 0")
    if filter.as_of:
        parts.append(f"coalesce(m.valid_from, m.created_at) <= ? AND {valid}")
        values += [now, now]
    elif filter.follow:
        parts.append(f"(m.superseded_by IS NOT NULL OR {valid})")
        values.append(now)
    elif not filter.include_superseded:
        parts.append(f"m.superseded_by IS NULL AND {valid}")
        values.append(now)
    if not filter.include_expired:
        parts.append("(m.expires_at IS NULL OR m.expires_at > ?)")
        values.append(now)
    return parts, values
