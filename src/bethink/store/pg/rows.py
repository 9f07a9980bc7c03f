"""Between PostgreSQL's rows and the values of `types`: columns, filters, texts with zero bytes, vectors.

Columns come in the order of `store/rows.py`, whose functions then read them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from bethink.store.rows import TYPE, stamp
from bethink.types import READINGS, Filter

COLUMNS = (
    "m.key, m.id, s.key, m.kind, m.content, m.summary, m.created_at, m.updated_at, m.importance, m.confidence, m.usefulness,"
    " m.access_count, m.last_accessed, m.valid_from, m.valid_to, m.expires_at, m.deleted_at, m.superseded_by, m.answered,"
    f" m.content_hash, o.uri, {TYPE}, m.line_start, m.line_end, m.section, m.span, m.session, m.tags, m.keywords, m.metadata,"
    " m.trust, m.row_hash,"
    " coalesce((SELECT json_agg(json_build_array(e.name, e.type) ORDER BY e.id)::text FROM memory_entities me"
    " JOIN entities e ON e.tenant = me.tenant AND e.id = me.entity WHERE me.tenant = m.tenant AND me.memory = m.key), '[]'),"
    " m.position"
)
JOINS = "memories m JOIN scopes s ON s.tenant = m.tenant AND s.id = m.scope JOIN sources o ON o.tenant = m.tenant AND o.id = m.source"

# Text in PostgreSQL holds no zero bytes. They are written as two characters of the private area, and the first of these as itself twice.
_MARK, _ZERO = "\ue0ff", "\ue0ff0"
TEXTS = ("content", "summary", "section")


def json_of(column: str) -> str:
    """A column of JSON as PostgreSQL can look into it: a zero byte, even one that is written as an escape, would make that fail."""
    return f"replace({column}, '\\u0000', '\\ufffd')::json"


def inward(text: str | None) -> str | None:
    if text is None or ("\x00" not in text and _MARK not in text):
        return text
    return text.replace(_MARK, _MARK * 2).replace("\x00", _ZERO)


def outward(text: str | None) -> str | None:
    if text is None or _MARK not in text:
        return text
    return _MARK.join(part.replace(_ZERO, "\x00") for part in text.split(_MARK * 2))


def readable(row: Sequence[Any]) -> Sequence[Any]:
    """A row of COLUMNS with its texts as they were given."""
    if any(row[at] and _MARK in row[at] for at in (4, 5, 24)):
        return [outward(value) if at in (4, 5, 24) else value for at, value in enumerate(row)]
    return row


def dedup(hash: str | None) -> bytes | None:
    """A content hash as the column that makes texts unique holds it: half as long."""
    if hash is None:
        return None
    try:
        return bytes.fromhex(hash)
    except ValueError:
        return hash.encode()


def vector_text(vector: Any) -> str:
    """A vector as pgvector reads it, to the last bit of its 32-bit floats."""
    values = [float(value) for value in vector]
    return f"[{','.join(['%.9g'] * len(values)) % tuple(values)}]"


def where(filter: Filter, tenant: int, scopes: Sequence[int]) -> tuple[str, list[Any]]:
    """A filter as SQL over `memories m`, with its parameters."""
    parts, values = ["m.tenant = %s AND m.scope = ANY(%s)"], [tenant, list(scopes)]
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
            "coalesce(m.valid_from, m.created_at) <= %s AND (m.valid_to IS NULL OR m.valid_to > %s)",
            at,
            at,
        )
        now = at
    elif filter.follow:
        also("(m.superseded_by IS NOT NULL OR m.valid_to IS NULL OR m.valid_to > %s)", now)
    elif not filter.include_superseded:
        also("m.superseded_by IS NULL AND (m.valid_to IS NULL OR m.valid_to > %s)", now)
    if not filter.include_expired:
        also("(m.expires_at IS NULL OR m.expires_at > %s)", now)
    if filter.kinds:
        also("m.kind = ANY(%s)", list(filter.kinds))
    if filter.min_importance is not None:
        also("m.importance >= %s", filter.min_importance)
    if filter.since:
        also("m.created_at >= %s", stamp(filter.since))
    if filter.until:
        also("m.created_at < %s", stamp(filter.until))
    if filter.answered is not None:
        also("coalesce(m.answered, 0) = %s", int(filter.answered))
    if filter.session:
        also("m.session = %s", filter.session)
    if filter.max_trust is not None:
        also("m.trust <= %s", filter.max_trust)
    if filter.used:
        also("(m.usefulness <> 0 OR m.access_count > 0)")
    if filter.transcribed:
        also(
            "EXISTS (SELECT 1 FROM sources r WHERE r.tenant = m.tenant AND r.id = m.source AND r.type = 'transcript')"
        )
    if filter.hosts:
        also(
            "m.session IN (SELECT n.id FROM sessions n WHERE n.tenant = %s AND n.host = ANY(%s))",
            tenant,
            list(filter.hosts),
        )
    if filter.tags:
        also(
            f"EXISTS (SELECT 1 FROM json_array_elements_text({json_of('m.tags')}) t(value) WHERE lower(t.value) = ANY(%s))",
            [tag.lower() for tag in filter.tags],
        )
    if filter.sources:
        uris = [prefix + uri for uri in filter.sources for prefix in ("", *READINGS)]
        also(
            "m.source IN (SELECT o.id FROM sources o WHERE o.tenant = %s AND o.uri = ANY(%s))",
            tenant,
            uris,
        )
    if filter.entities:
        also(
            "m.key IN (SELECT me.memory FROM memory_entities me JOIN entities e ON e.tenant = me.tenant AND e.id = me.entity"
            " WHERE me.tenant = %s AND e.folded = ANY(%s))",
            tenant,
            [name.casefold() for name in filter.entities],
        )
    return " AND ".join(parts), values
