"""PostgreSQL's side of moving memories between stores: whole records out, whole records in, one page and one transaction at a time.

What comes in is put down as it is; `store/transfer.py` does the same for SQLite.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bethink.errors import InvalidInput, StoreError
from bethink.store import rows
from bethink.store.bundle import Bundle, Record, Stored, version
from bethink.store.pg import changing
from bethink.store.pg import rows as own
from bethink.store.pg import spans as topics
from bethink.store.pg.writer import Writer
from bethink.store.spans import session, span
from bethink.store.transfer import brought
from bethink.store.writer import index_tags
from bethink.types import Batch, Event, Relation, Session, Source, Span

Run = Callable[..., list[Any]]


class Transfers:
    """What `PostgresStore` can do for other stores."""

    @property
    def tenant(self) -> int:
        raise NotImplementedError

    def _run(self, sql: str, values: Any = ()) -> list[Any]:
        raise NotImplementedError

    def _scopes(self, keys: Sequence[str]) -> list[int]:
        raise NotImplementedError

    def _written(self, batch: Batch, action: Callable[[Writer], Any]) -> Any:
        raise NotImplementedError

    def export(
        self,
        part: str,
        after: str,
        limit: int,
        scopes: Sequence[str] | None = None,
        vectors: bool = True,
    ) -> tuple[Bundle, str]:
        inside = None if scopes is None else self._scopes(scopes)
        return EXPORTS[part](self._run, self.tenant, after, limit, inside, vectors)

    def records(self, ids: Sequence[str], vectors: bool = True) -> list[Record]:
        return records_of(self._run, self.tenant, "m.id = ANY(%s)", (list(ids),), vectors)[0]

    def take(
        self,
        bundle: Bundle,
        *,
        expect: Mapping[str, bytes | None] | None = None,
        allow_purged: bool = False,
        note: tuple[str, str] | None = None,
    ) -> tuple[str, ...]:
        def taken(writer: Writer) -> tuple[str, ...]:
            left = _take(writer, bundle, expect or {})
            if note is not None:
                writer.run(
                    "INSERT INTO facts(tenant, name, value) VALUES (%s, %s, %s) ON CONFLICT (tenant, name) DO UPDATE SET value = excluded.value",
                    (writer.tenant, *note),
                )
            return left

        left: tuple[str, ...] = self._written(
            Batch(at=datetime.now(UTC), allow_purged=allow_purged), taken
        )
        return left

    def noted(self, name: str) -> str | None:
        found = self._run(
            "SELECT value FROM facts WHERE tenant = %s AND name = %s", (self.tenant, name)
        )
        return str(found[0][0]) if found else None


# Out: each gives one page behind a cursor, and the cursor behind the page.


def _within(column: str, scopes: Sequence[int] | None) -> tuple[str, list[Any]]:
    return ("true", []) if scopes is None else (f"{column} = ANY(%s)", [list(scopes)])


def _scopes_out(
    run: Run, tenant: int, after: str, limit: int, scopes: Sequence[int] | None, vectors: bool
) -> tuple[Bundle, str]:
    inside, values = _within("id", scopes)
    sql = f"SELECT id, key, name, path FROM scopes WHERE tenant = %s AND id > %s AND {inside} ORDER BY id LIMIT %s"
    found = run(sql, (tenant, int(after or 0), *values, limit))
    return Bundle(scopes=tuple((key, name, path) for _, key, name, path in found)), rows.last(found)


def _sources_out(
    run: Run, tenant: int, after: str, limit: int, scopes: Sequence[int] | None, vectors: bool
) -> tuple[Bundle, str]:
    inside, values = _within("o.scope", scopes)
    found = run(
        "SELECT o.id, s.key, o.uri, o.type, o.hash, o.position, o.metadata, o.read_at FROM sources o JOIN scopes s ON s.tenant = o.tenant AND s.id = o.scope"
        f" WHERE o.tenant = %s AND o.id > %s AND {inside} ORDER BY o.id LIMIT %s",
        (tenant, int(after or 0), *values, limit),
    )
    given = tuple(
        (scope, Source(uri, type, hash, position, json.loads(metadata)), rows.instant(read))
        for _, scope, uri, type, hash, position, metadata, read in found
    )
    return Bundle(sources=given), rows.last(found)


def _sessions_out(
    run: Run, tenant: int, after: str, limit: int, scopes: Sequence[int] | None, vectors: bool
) -> tuple[Bundle, str]:
    inside, values = _within("n.scope", scopes)
    sql = f"{topics.SESSION} WHERE n.tenant = %s AND n.id > %s AND {inside} ORDER BY n.id LIMIT %s"
    found = run(sql, (tenant, after, *values, limit))
    return Bundle(sessions=tuple(session(row) for row in found)), rows.last(found)


def _spans_out(
    run: Run, tenant: int, after: str, limit: int, scopes: Sequence[int] | None, vectors: bool
) -> tuple[Bundle, str]:
    inside, values = _within("p.scope", scopes)
    sql = f"{topics.SPAN} WHERE p.tenant = %s AND p.key > %s AND {inside} ORDER BY p.key LIMIT %s"
    found = run(sql, (tenant, int(after or 0), *values, limit))
    keys = [row[11] for row in found]
    kept = _vectors(run, tenant, "span_vectors", "span", keys) if vectors else {}
    return Bundle(spans=tuple((span(row), kept.get(row[11], ())) for row in found)), str(
        keys[-1]
    ) if keys else ""


def _records_out(
    run: Run, tenant: int, after: str, limit: int, scopes: Sequence[int] | None, vectors: bool
) -> tuple[Bundle, str]:
    inside, values = _within("m.scope", scopes)
    found, last = records_of(
        run,
        tenant,
        f"m.key > %s AND {inside} ORDER BY m.key LIMIT %s",
        (int(after or 0), *values, limit),
        vectors,
    )
    return Bundle(records=tuple(found)), last


def records_of(
    run: Run, tenant: int, where: str, values: Sequence[Any], vectors: bool
) -> tuple[list[Record], str]:
    """Records by a condition, and the key of the last one."""
    found = run(
        f"SELECT {own.COLUMNS}, m.dedup FROM {own.JOINS} WHERE m.tenant = %s AND {where}",
        (tenant, *values),
    )
    keys = [row[0] for row in found]
    kept = _vectors(run, tenant, "vectors", "memory", keys) if vectors else {}
    events = _events(run, tenant, keys)
    given = [
        Record(
            rows.memory(own.readable(row[:-1])),
            row[-1] is not None,
            tuple(events.get(row[0], ())),
            kept.get(row[0], ()),
        )
        for row in found
    ]
    return given, str(keys[-1]) if keys else ""


def _vectors(
    run: Run, tenant: int, table: str, owner: str, keys: Sequence[int]
) -> dict[int, Stored]:
    """Vectors in the bytes of SQLite: a scale, then whole numbers, which the floats are multiples of."""
    import numpy as np

    if not keys:
        return {}
    found: dict[int, list[tuple[str, int, bytes]]] = defaultdict(list)
    sql = (
        f"SELECT v.{owner}, d.name, d.dimensions, v.scale, vector_send(v.data) FROM {table} v JOIN models d ON d.tenant = v.tenant AND d.id = v.model"
        f" WHERE v.tenant = %s AND v.{owner} = ANY(%s) ORDER BY v.{owner}, v.part, v.model"
    )
    for key, model, dimensions, scale, data in run(sql, (tenant, list(keys))):
        size = np.float32(scale)
        numbers = np.rint(np.frombuffer(data, ">f4", offset=4).astype(np.float32) / size).astype(
            np.int16
        )
        found[key].append((model, dimensions, size.tobytes() + numbers.tobytes()))
    return {key: tuple(given) for key, given in found.items()}


def _events(run: Run, tenant: int, keys: Sequence[int]) -> dict[int, list[Event]]:
    found: dict[int, list[Event]] = defaultdict(list)
    sql = "SELECT memory, at, actor, action, before, after, number FROM history WHERE tenant = %s AND memory = ANY(%s) ORDER BY memory, number"
    for key, at, actor, action, before, after, number in (
        run(sql, (tenant, list(keys))) if keys else ()
    ):
        event = Event(
            rows.instant(at),
            actor,
            action,
            json.loads(before) if before else {},
            json.loads(after) if after else {},
            number,
        )
        found[key].append(event)
    return found


def _relations_out(
    run: Run, tenant: int, after: str, limit: int, scopes: Sequence[int] | None, vectors: bool
) -> tuple[Bundle, str]:
    inside, values = _within("m.scope", scopes)
    source, target, type = json.loads(after) if after else ("", "", "")
    among = (
        "true"
        if scopes is None
        else f"source IN (SELECT m.id FROM memories m WHERE m.tenant = %s AND {inside})"
    )
    found = run(
        f"SELECT source, target, type, created_at, actor FROM relations WHERE tenant = %s AND (source, target, type) > (%s, %s, %s) AND {among}"
        " ORDER BY source, target, type LIMIT %s",
        (tenant, source, target, type, *([tenant, *values] if scopes is not None else []), limit),
    )
    given = tuple(
        (Relation(source, target, type, rows.instant(at)), actor)
        for source, target, type, at, actor in found
    )
    return Bundle(relations=given), json.dumps(found[-1][:3]) if found else ""


def _turns_out(
    run: Run, tenant: int, after: str, limit: int, scopes: Sequence[int] | None, vectors: bool
) -> tuple[Bundle, str]:
    inside, values = _within("t.scope", scopes)
    scope, identity = json.loads(after) if after else (0, "")
    found = run(
        "SELECT t.scope, s.key, t.identity FROM turns t JOIN scopes s ON s.tenant = t.tenant AND s.id = t.scope"
        f" WHERE t.tenant = %s AND (t.scope, t.identity) > (%s, %s) AND {inside} ORDER BY t.scope, t.identity LIMIT %s",
        (tenant, scope, bytes.fromhex(identity), *values, limit),
    )
    last = json.dumps((found[-1][0], bytes(found[-1][2]).hex())) if found else ""
    return Bundle(turns=tuple((key, bytes(identity)) for _, key, identity in found)), last


def _tombstones_out(
    run: Run, tenant: int, after: str, limit: int, scopes: Sequence[int] | None, vectors: bool
) -> tuple[Bundle, str]:
    found = run(
        "SELECT hash, at FROM tombstones WHERE tenant = %s AND hash > %s ORDER BY hash LIMIT %s",
        (tenant, bytes.fromhex(after), limit),
    )
    salt = run("SELECT salt FROM tenants WHERE id = %s", (tenant,))[0][0]
    return Bundle(
        tombstones=tuple((bytes(hash), rows.instant(at)) for hash, at in found), salt=salt
    ), bytes(found[-1][0]).hex() if found else ""


EXPORTS = {
    "scopes": _scopes_out,
    "sources": _sources_out,
    "sessions": _sessions_out,
    "spans": _spans_out,
    "records": _records_out,
    "relations": _relations_out,
    "turns": _turns_out,
    "tombstones": _tombstones_out,
}


# In


def _take(writer: Writer, bundle: Bundle, expect: Mapping[str, bytes | None]) -> tuple[str, ...]:
    for key, name, path in bundle.scopes:
        writer.run(
            "UPDATE scopes SET name = CASE name WHEN '' THEN %s ELSE name END, path = CASE path WHEN '' THEN %s ELSE path END WHERE tenant = %s AND id = %s",
            (name, path, writer.tenant, writer.scope(key)),
        )
    _take_sources(writer, bundle)
    elsewhere = _elsewhere(writer, "sessions", bundle.sessions)
    for one in bundle.sessions:
        if one.id in elsewhere:
            continue
        writer.run("DELETE FROM sessions WHERE tenant = %s AND id = %s", (writer.tenant, one.id))
        topics.put_session(writer, one)
    _take_spans(writer, bundle)
    _take_salt(writer, bundle)
    left = _remove(writer, bundle.gone, expect) + _take_records(writer, bundle.records, expect)
    writer.put(
        "relations",
        [
            {
                "tenant": 0,
                "source": one.source,
                "target": one.target,
                "type": one.type,
                "created_at": rows.stamp(one.created_at) or 0,
                "actor": actor,
            }
            for one, actor in bundle.relations
        ],
        "ON CONFLICT DO NOTHING",
    )
    turns = [
        {"tenant": 0, "scope": writer.scope(scope), "identity": identity}
        for scope, identity in bundle.turns
    ]
    writer.put("turns", turns, "ON CONFLICT DO NOTHING")
    stones = [{"tenant": 0, "hash": hash, "at": rows.stamp(at)} for hash, at in bundle.tombstones]
    writer.put("tombstones", stones, "ON CONFLICT DO NOTHING")
    for name, count in (
        ("relations", len(bundle.relations)),
        ("turns", len(turns)),
        ("tombstones", len(stones)),
    ):
        if count:
            writer.told(f"take {name}", count)
    writer.settle()
    return left


def _take_sources(writer: Writer, bundle: Bundle) -> None:
    """Sources as they were last read; one that was read later here stays."""
    latest = {
        (writer.scope(scope), source.uri): (source, read) for scope, source, read in bundle.sources
    }
    writer.put(
        "sources",
        [
            {
                "tenant": 0,
                "id": writer.number(),
                "scope": scope,
                "uri": uri,
                "type": source.type,
                "hash": source.hash,
                "position": source.position,
                "read_at": rows.stamp(read),
                "metadata": rows.stored("metadata", source.metadata),
            }
            for (scope, uri), (source, read) in latest.items()
        ],
        "ON CONFLICT (tenant, scope, md5(uri)) DO UPDATE SET type = excluded.type, hash = excluded.hash, position = excluded.position,"
        " read_at = excluded.read_at, metadata = excluded.metadata WHERE sources.read_at <= excluded.read_at",
    )


def _remove(
    writer: Writer, gone: Sequence[str], expect: Mapping[str, bytes | None]
) -> tuple[str, ...]:
    """Takes memories out. Gives back those that are not what was expected."""
    if not gone:
        return ()
    expected = [id for id in gone if id in expect]
    known = records_of(
        lambda *asked: writer.run(*asked).fetchall(),
        writer.tenant,
        "m.id = ANY(%s)",
        (expected,),
        False,
    )[0]
    left = {one.memory.id for one in known if version(one) != expect[one.memory.id]}
    ids = [id for id in gone if id not in left]
    keys = [
        row[0]
        for row in writer.run(
            "SELECT key FROM memories WHERE tenant = %s AND id = ANY(%s)",
            (writer.tenant, list(ids)),
        ).fetchall()
    ]
    changing.remove(writer, keys)
    writer.run("DELETE FROM history WHERE tenant = %s AND memory = ANY(%s)", (writer.tenant, keys))
    changing.release(writer, ids)
    writer.told("remove", *ids)
    return tuple(id for id in gone if id in left)


def _take_spans(writer: Writer, bundle: Bundle) -> None:
    elsewhere = _elsewhere(writer, "spans", [one for one, _ in bundle.spans])
    own = [(one, vectors) for one, vectors in bundle.spans if one.id not in elsewhere]
    if not own:
        return
    keys = topics.put_rows(writer, [one for one, _ in own])
    given = [(keys[one.id], writer.scope(one.scope), vectors) for one, vectors in own if vectors]
    writer.run(
        "DELETE FROM span_vectors WHERE tenant = %s AND span = ANY(%s)",
        (writer.tenant, [key for key, _, _ in given]),
    )
    writer.put_vectors(
        [one for key, scope, vectors in given for one in _numbered(writer, key, scope, vectors)],
        "span_vectors",
        "span",
    )


def _elsewhere(writer: Writer, table: str, given: Sequence[Session | Span]) -> set[str]:
    """The ids that are somebody else's: what another scope holds is not taken over."""
    ids = [one.id for one in given]
    known = dict(
        writer.run(
            f"SELECT id, scope FROM {table} WHERE tenant = %s AND id = ANY(%s)",
            (writer.tenant, ids),
        ).fetchall()
    )
    return {one.id for one in given if one.id in known and known[one.id] != writer.scope(one.scope)}


def _numbered(
    writer: Writer, key: int, scope: int, vectors: Stored
) -> list[tuple[int, int, int, int, bytes]]:
    for model, dimensions, data in vectors:
        if len(data) != 4 + 2 * dimensions:
            raise InvalidInput(
                f"A vector of {model} has {len(data)} bytes, not those of {dimensions} dimensions.",
                "Nothing was stored.",
            )
    return [
        (key, scope, writer.model(model, dimensions), part, data)
        for part, (model, dimensions, data) in enumerate(vectors)
    ]


def _take_salt(writer: Writer, bundle: Bundle) -> None:
    """Tombstones are hashes under a secret of their store, so the secret comes with them."""
    if not bundle.tombstones or bundle.salt == writer.salt.hex():
        return
    if writer.one("SELECT 1 FROM tombstones WHERE tenant = %s LIMIT 1", (writer.tenant,)):
        raise StoreError(
            "This database remembers purged memories of its own in another way.",
            "Migrate into an empty database.",
        )
    try:
        if not 16 <= len(bytes.fromhex(bundle.salt)) <= 64:
            raise ValueError
    except ValueError:
        raise InvalidInput(
            "The tombstones come without the secret that they were made with.", "Export them again."
        ) from None
    writer.run("UPDATE tenants SET salt = %s WHERE id = %s", (bundle.salt, writer.tenant))
    writer.salt = bytes.fromhex(bundle.salt)


def _take_records(
    writer: Writer, records: Sequence[Record], expect: Mapping[str, bytes | None]
) -> tuple[str, ...]:
    """Puts memories in, or in the place of what they were. Gives back those that are not what was expected, or may not stand."""
    if not records:
        return ()

    def listed(sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return writer.run(sql, values).fetchall()

    ids = [record.memory.id for record in records]
    known = {
        one.memory.id: one
        for one in records_of(listed, writer.tenant, "m.id = ANY(%s)", (ids,), True)[0]
    }
    keys = dict(
        listed(
            "SELECT id, key FROM memories WHERE tenant = %s AND id = ANY(%s)", (writer.tenant, ids)
        )
    )
    fresh = {record.memory.id: brought(record, known.get(record.memory.id)) for record in records}
    purged = set() if writer.batch.allow_purged else writer.tombstoned(set().union(*fresh.values()))
    scopes = {
        scope: writer.scope(scope)
        for scope in dict.fromkeys(record.memory.scope for record in records)
    }
    living = writer.living(
        {
            (scopes[record.memory.scope], record.memory.content_hash)
            for record in records
            if record.unique
        }
    )
    chosen = dict[str, tuple[Record, Stored]]()
    for record in records:
        memory, current = record.memory, known.get(record.memory.id)
        place = (scopes[memory.scope], memory.content_hash)
        once = record.unique and memory.deleted_at is None
        elsewhere = current is not None and current.memory.scope != memory.scope  # somebody else's
        overtaken = memory.id in expect and expect[memory.id] != (
            version(current) if current else None
        )
        unwanted = bool(fresh[memory.id] & purged)
        if (
            elsewhere
            or overtaken
            or unwanted
            or (once and living.get(place, memory.id) != memory.id)
        ):
            continue
        if current:
            living = {place: id for place, id in living.items() if id != memory.id}
        if once:
            living[place] = memory.id
        same = current and (current.memory.content, current.memory.section) == (
            memory.content,
            memory.section,
        )
        chosen[memory.id] = record, record.vectors or (current.vectors if current and same else ())
    old = [keys[id] for id in chosen if id in keys]
    changing.remove(writer, old)
    writer.run("DELETE FROM history WHERE tenant = %s AND memory = ANY(%s)", (writer.tenant, old))
    _put(
        writer,
        [(keys[id] if id in keys else writer.number(), *given) for id, given in chosen.items()],
        scopes,
    )
    writer.told("take", *chosen)
    return tuple(id for id in ids if id not in chosen)


def _put(
    writer: Writer, chosen: Sequence[tuple[int, Record, Stored]], scopes: Mapping[str, int]
) -> None:
    memories, words, vectors, history = [], [], [], []
    writer.sources(
        (scopes[one.memory.scope], one.memory.source, one.memory.source_type)
        for _, one, _ in chosen
    )
    for key, record, stored in chosen:
        memory, scope = record.memory, scopes[record.memory.scope]
        source = writer.source(scope, memory.source, memory.source_type)
        tags = index_tags(memory.tags, memory.source, memory.source_type)
        worded = writer.worded(scope, memory.content, memory.summary, memory.section, tags)
        memories.append(writer.row(memory, key, scope, source, record.unique, worded))
        words.append({"tenant": 0, "key": key, "lexed": worded.lexed})
        vectors += _numbered(writer, key, scope, stored)
        history += [
            {
                "tenant": 0,
                "number": writer.number(),
                "memory": key,
                "owner": writer.owner(memory.scope),
                "at": rows.stamp(event.at),
                "actor": event.actor,
                "action": event.action,
                "before": _text(event.before),
                "after": _text(event.after),
            }
            for event in record.events
        ]
    writer.put("memories", memories)
    writer.put("words", words)
    writer.entities([(key, record.memory.entities) for key, record, _ in chosen])
    writer.put_vectors(vectors)
    writer.put("history", history)


def _text(value: Mapping[str, Any]) -> str | None:
    return json.dumps(dict(value), ensure_ascii=False) if value else None
