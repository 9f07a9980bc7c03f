"""Between SQLite's rows and the values of `types`: columns, times, filters and the hash that guards a row."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any

from bethink.errors import StoreCorrupt
from bethink.store import bundle
from bethink.types import READINGS, TRUST, Entity, Filter, Memory

# What somebody told, whatever source it names: as against a passage that a reader found there, or an idea of a conversation.
TOLD = "(m.dedup IS NOT NULL AND m.session IS NULL)"
TYPE = f"CASE WHEN {TOLD} THEN 'note' ELSE o.type END"

# The words of history that reading a source anew leaves by itself; any other is somebody's.
READING = "('add', 'reread', 'restore', 'retire')"

COLUMNS = (
    "m.key, m.id, s.key, m.kind, m.content, m.summary, m.created_at, m.updated_at, m.importance, m.confidence, m.usefulness,"
    " m.access_count, m.last_accessed, m.valid_from, m.valid_to, m.expires_at, m.deleted_at, m.superseded_by, m.answered,"
    f" m.content_hash, o.uri, {TYPE}, m.line_start, m.line_end, m.section, m.span, m.session, m.tags, m.keywords, m.metadata,"
    " m.trust, m.row_hash,"
    " (SELECT json_group_array(json_array(e.name, e.type)) FROM memory_entities me JOIN entities e ON e.id = me.entity WHERE me.memory = m.key),"
    " m.position"
)
JOINS = "memories m JOIN scopes s ON s.id = m.scope JOIN sources o ON o.id = m.source"

# What makes a memory invisible to an ordinary search, in the words of the index `memories_hidden`.
HIDDEN = "deleted_at IS NOT NULL OR superseded_by IS NOT NULL OR valid_to IS NOT NULL OR expires_at IS NOT NULL OR trust = 0"

# What a partial index answers only when it is asked in the index's own words: `memories_used`, `memories_doubted`.
USED = "(m.usefulness <> 0 OR m.access_count > 0)"
DOUBTED = f"m.trust <= {TRUST['import']}"

# As many values as there may be, where marks of their own would run out.
LISTED = "(SELECT value FROM json_each(?))"

# Columns that a Change may set directly, with how a value is stored.
PLAIN = (
    "kind",
    "summary",
    "importance",
    "confidence",
    "usefulness",
    "superseded_by",
    "answered",
    "trust",
    "section",
    "span",
    "session",
)
TIMES = (
    "last_accessed",
    "valid_from",
    "valid_to",
    "expires_at",
    "deleted_at",
    "created_at",
    "updated_at",
)
JSONS = ("tags", "keywords", "metadata")

# What the row hash covers: all that was said, nothing that use changes.
GUARDED = (
    "id",
    "kind",
    "content",
    "summary",
    "created_at",
    "importance",
    "confidence",
    "valid_from",
    "valid_to",
    "expires_at",
    "line_start",
    "line_end",
    "section",
    "tags",
    "metadata",
)


def stamp(moment: datetime | None) -> int | None:
    return None if moment is None else bundle.stamp(moment)


instant = bundle.instant


def moment(stamp: int | None) -> datetime | None:
    return None if stamp is None else instant(stamp)


def last(found: Sequence[Any]) -> str:
    """The cursor behind a page of rows that begin with their key."""
    return str(found[-1][0]) if found else ""


_json = json.JSONEncoder(
    ensure_ascii=False
).encode  # `json.dumps` would make an encoder for every value


def stored(field: str, value: Any) -> Any:
    """A field's value as its column holds it."""
    if field in TIMES:
        return stamp(value)
    if field in JSONS:
        return _json(
            value
            if isinstance(value, dict)
            else list(value)
            if not isinstance(value, Mapping)
            else dict(value)
        )
    if field == "answered":
        return None if value is None else int(value)
    return value


def values(memory: Memory, scope: int, source: int) -> dict[str, Any]:
    """What the columns hold of a memory in every backend."""
    lines = memory.lines or (None, None)
    return {
        "id": memory.id,
        "scope": scope,
        "kind": memory.kind,
        "importance": float(memory.importance),
        "confidence": float(memory.confidence),
        "usefulness": float(memory.usefulness),
        "access_count": memory.access_count,
        "created_at": stamp(memory.created_at),
        "updated_at": stamp(memory.updated_at),
        "last_accessed": stamp(memory.last_accessed),
        "valid_from": stamp(memory.valid_from),
        "valid_to": stamp(memory.valid_to),
        "expires_at": stamp(memory.expires_at),
        "deleted_at": stamp(memory.deleted_at),
        "superseded_by": memory.superseded_by,
        "answered": stored("answered", memory.answered),
        "trust": memory.trust,
        "source": source,
        "line_start": lines[0],
        "line_end": lines[1],
        "position": memory.position,
        "span": memory.span,
        "session": memory.session,
        "content_hash": memory.content_hash,
        "section": memory.section,
        "summary": memory.summary,
        "tags": stored("tags", memory.tags),
        "keywords": stored("keywords", memory.keywords),
        "metadata": stored("metadata", memory.metadata),
        "content": memory.content,
    }


def row_hash(values: Mapping[str, Any]) -> bytes:
    """Guards a row against silent corruption: SQLite's own checks see the page, not the meaning."""
    text = "\x1f".join(
        ""
        if values[name] is None
        else f"{values[name]:g}"
        if isinstance(values[name], float)
        else str(values[name])
        for name in GUARDED
    )
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest()


def memory(row: Sequence[Any]) -> Memory:
    """A row of COLUMNS as a Memory."""
    try:
        return _memory(row)
    except (ValueError, TypeError, OverflowError, OSError) as error:
        raise StoreCorrupt(
            f"The memory {row[1]} is damaged: {error}.", "Run `bethink doctor --deep`."
        ) from error


def _memory(row: Sequence[Any]) -> Memory:
    return Memory(
        id=row[1],
        scope=row[2],
        kind=row[3],
        content=row[4],
        summary=row[5],
        created_at=moment(row[6]),  # type: ignore[arg-type]
        updated_at=moment(row[7]),  # type: ignore[arg-type]
        importance=row[8],
        confidence=row[9],
        usefulness=row[10],
        access_count=row[11],
        last_accessed=moment(row[12]),
        valid_from=moment(row[13]),
        valid_to=moment(row[14]),
        expires_at=moment(row[15]),
        deleted_at=moment(row[16]),
        superseded_by=row[17],
        answered=None if row[18] is None else bool(row[18]),
        content_hash=row[19],
        source=row[20],
        source_type=row[21],
        lines=None if row[22] is None else (row[22], row[23] if row[23] is not None else row[22]),
        position=row[33],
        section=row[24],
        span=row[25],
        session=row[26],
        tags=tuple(json.loads(row[27])) if row[27] != "[]" else (),
        keywords=tuple(json.loads(row[28])) if row[28] != "[]" else (),
        metadata=json.loads(row[29]) if row[29] != "{}" else {},
        trust=row[30],
        entities=tuple(Entity(name, type) for name, type in json.loads(row[32]))
        if row[32] != "[]"
        else (),
    )


def guarded(row: Sequence[Any]) -> dict[str, Any]:
    """The guarded values of a row of COLUMNS, for checking its hash."""
    names = {
        "id": 1,
        "kind": 3,
        "content": 4,
        "summary": 5,
        "created_at": 6,
        "importance": 8,
        "confidence": 9,
        "valid_from": 13,
        "valid_to": 14,
        "expires_at": 15,
        "line_start": 22,
        "line_end": 23,
        "section": 24,
        "tags": 27,
        "metadata": 29,
    }
    return {name: row[at] for name, at in names.items()}


def listed(values: Iterable[str]) -> str:
    """Any number of values as the one parameter of LISTED."""
    return json.dumps(list(values))


def where(filter: Filter, scopes: Sequence[int]) -> tuple[str, list[Any]]:
    """A filter as SQL over `memories m`, with its parameters."""
    marks = ",".join("?" * len(scopes))
    parts, values = [f"m.scope IN ({marks})"], list[Any](scopes)
    now = stamp(filter.now) if filter.now else int(time.time() * 1000)

    def also(sql: str, *parameters: Any) -> None:
        parts.append(sql)
        values.extend(parameters)

    if not filter.include_deleted:
        also("m.deleted_at IS NULL")
    if not filter.include_quarantined:
        also("m.trust > 0")
    if filter.as_of:
        at = stamp(filter.as_of)
        also(
            "coalesce(m.valid_from, m.created_at) <= ? AND (m.valid_to IS NULL OR m.valid_to > ?)",
            at,
            at,
        )
        now = at
    elif filter.follow:
        also("(m.superseded_by IS NOT NULL OR m.valid_to IS NULL OR m.valid_to > ?)", now)
    elif not filter.include_superseded:
        also("m.superseded_by IS NULL AND (m.valid_to IS NULL OR m.valid_to > ?)", now)
    if not filter.include_expired:
        also("(m.expires_at IS NULL OR m.expires_at > ?)", now)
    if filter.kinds:
        # The plus leaves the choice of an index to the rarer condition.
        rare = "+" * (filter.used or filter.max_trust is not None)
        also(f"{rare}m.kind IN ({','.join('?' * len(filter.kinds))})", *filter.kinds)
    if filter.min_importance is not None:
        also("m.importance >= ?", filter.min_importance)
    if filter.since:
        also("m.created_at >= ?", stamp(filter.since))
    if filter.until:
        also("m.created_at < ?", stamp(filter.until))
    if filter.answered is not None:
        also("coalesce(m.answered, 0) = ?", int(filter.answered))
    if filter.session:
        also("m.session = ?", filter.session)
    if filter.max_trust is not None:
        also(
            f"{DOUBTED} AND m.trust <= ?"
            if filter.max_trust <= TRUST["import"]
            else "m.trust <= ?",
            filter.max_trust,
        )
    if filter.used:
        also(USED)
    if filter.transcribed:
        also("EXISTS (SELECT 1 FROM sources r WHERE r.id = m.source AND r.type = 'transcript')")
    if filter.hosts:
        also(f"m.session IN (SELECT id FROM sessions WHERE host IN {LISTED})", listed(filter.hosts))
    if filter.tags:
        also(
            f"EXISTS (SELECT 1 FROM json_each(m.tags) t WHERE lower(t.value) IN {LISTED})",
            listed(tag.lower() for tag in filter.tags),
        )
    if filter.sources:
        uris = [prefix + uri for uri in filter.sources for prefix in ("", *READINGS)]
        also(f"m.source IN (SELECT id FROM sources WHERE uri IN {LISTED})", listed(uris))
    if filter.entities:
        also(
            f"m.key IN (SELECT me.memory FROM memory_entities me JOIN entities e ON e.id = me.entity WHERE e.folded IN {LISTED})",
            listed(name.casefold() for name in filter.entities),
        )
    return " AND ".join(parts), values
