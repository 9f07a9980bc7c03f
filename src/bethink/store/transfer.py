"""SQLite's side of moving memories between stores: whole records out, whole records in, one page and one transaction at a time.

What comes in is put down as it is. Which of two versions is the right one is decided before, by `exchange`, `migration` and `sync`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw

from bethink.errors import InvalidInput, StoreError
from bethink.store import leaving, rows, spans
from bethink.store.bundle import Bundle, Record, Stored, texts, version
from bethink.store.connection import immediate, translated
from bethink.store.writer import Worded, Writer, content_hash, index_tags
from bethink.types import Batch, Event, Relation, Source

Run = Callable[..., list[Any]]
NOTE = "note:"  # before the names of notes among the other facts about the database


class Transfers:
    """What `SqliteStore` can do for other stores."""

    path: Path
    timeout: float

    @property
    def connection(self) -> apsw.Connection:
        raise NotImplementedError

    def _run(self, sql: str, values: Any = ()) -> list[Any]:
        raise NotImplementedError

    def _scopes(self, keys: Sequence[str]) -> list[int]:
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
        return EXPORTS[part](self._run, after, limit, inside, vectors)

    def records(self, ids: Sequence[str], vectors: bool = True) -> list[Record]:
        return records_of(
            self._run, "m.id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),), vectors
        )[0]

    def take(
        self,
        bundle: Bundle,
        *,
        expect: Mapping[str, bytes | None] | None = None,
        allow_purged: bool = False,
        note: tuple[str, str] | None = None,
    ) -> tuple[str, ...]:
        with translated(self.path), immediate(self.connection, self.timeout):
            writer = Writer(self.connection, Batch(at=datetime.now(UTC), allow_purged=allow_purged))
            left = _take(writer, bundle, expect or {})
            if note is not None:
                writer.run(
                    "INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)",
                    (NOTE + note[0], note[1]),
                )
            return left

    def noted(self, name: str) -> str | None:
        found = self._run("SELECT value FROM meta WHERE key = ?", (NOTE + name,))
        return str(found[0][0]) if found else None


# Out: each gives one page behind a cursor, and the cursor behind the page.


def _within(column: str, scopes: Sequence[int] | None) -> str:
    return "1" if scopes is None else f"{column} IN ({','.join(map(str, scopes)) or 'NULL'})"


def _scopes_out(
    run: Run, after: str, limit: int, scopes: Sequence[int] | None, vectors: bool
) -> tuple[Bundle, str]:
    sql = f"SELECT id, key, name, path FROM scopes WHERE id > ? AND {_within('id', scopes)} ORDER BY id LIMIT ?"
    found = run(sql, (int(after or 0), limit))
    return Bundle(scopes=tuple((key, name, path) for _, key, name, path in found)), rows.last(found)


def _sources_out(
    run: Run, after: str, limit: int, scopes: Sequence[int] | None, vectors: bool
) -> tuple[Bundle, str]:
    found = run(
        "SELECT o.id, s.key, o.uri, o.type, o.hash, o.position, o.metadata, o.read_at FROM sources o JOIN scopes s ON s.id = o.scope"
        f" WHERE o.id > ? AND {_within('o.scope', scopes)} ORDER BY o.id LIMIT ?",
        (int(after or 0), limit),
    )
    given = tuple(
        (scope, Source(uri, type, hash, position, json.loads(metadata)), rows.instant(read))
        for _, scope, uri, type, hash, position, metadata, read in found
    )
    return Bundle(sources=given), rows.last(found)


def _sessions_out(
    run: Run, after: str, limit: int, scopes: Sequence[int] | None, vectors: bool
) -> tuple[Bundle, str]:
    found = run(
        f"{spans.SESSION} WHERE n.id > ? AND {_within('n.scope', scopes)} ORDER BY n.id LIMIT ?",
        (after, limit),
    )
    return Bundle(sessions=tuple(spans.session(row) for row in found)), rows.last(found)


def _spans_out(
    run: Run, after: str, limit: int, scopes: Sequence[int] | None, vectors: bool
) -> tuple[Bundle, str]:
    found = run(
        f"{spans.SPAN} WHERE p.key > ? AND {_within('p.scope', scopes)} ORDER BY p.key LIMIT ?",
        (int(after or 0), limit),
    )
    keys = [row[11] for row in found]
    kept = _vectors(run, "span_vectors", "span", keys) if vectors else {}
    return Bundle(spans=tuple((spans.span(row), kept.get(row[11], ())) for row in found)), str(
        keys[-1]
    ) if keys else ""


def _records_out(
    run: Run, after: str, limit: int, scopes: Sequence[int] | None, vectors: bool
) -> tuple[Bundle, str]:
    where = f"m.key > ? AND {_within('m.scope', scopes)} ORDER BY m.key LIMIT ?"
    found, last = records_of(run, where, (int(after or 0), limit), vectors)
    return Bundle(records=tuple(found)), last


def records_of(
    run: Run, where: str, values: Sequence[Any], vectors: bool
) -> tuple[list[Record], str]:
    """Records by a condition, and the key of the last one."""
    found = run(f"SELECT {rows.COLUMNS}, m.dedup FROM {rows.JOINS} WHERE {where}", values)
    keys = [row[0] for row in found]
    kept = _vectors(run, "vectors", "memory", keys) if vectors else {}
    events = _events(run, keys)
    given = [
        Record(
            rows.memory(row),
            row[-1] is not None,
            tuple(events.get(row[0], ())),
            kept.get(row[0], ()),
        )
        for row in found
    ]
    return given, str(keys[-1]) if keys else ""


def _vectors(run: Run, table: str, owner: str, keys: Sequence[int]) -> dict[int, Stored]:
    found: dict[int, list[tuple[str, int, bytes]]] = defaultdict(list)
    sql = (
        f"SELECT v.{owner}, d.name, d.dimensions, v.data FROM {table} v JOIN models d ON d.id = v.model"
        f" WHERE v.{owner} IN (SELECT value FROM json_each(?)) ORDER BY v.id"
    )
    for key, model, dimensions, data in run(sql, (json.dumps(keys),)):
        found[key].append((model, dimensions, data))
    return {key: tuple(given) for key, given in found.items()}


def _events(run: Run, keys: Sequence[int]) -> dict[int, list[Event]]:
    found: dict[int, list[Event]] = defaultdict(list)
    sql = (
        "SELECT memory, at, actor, action, before, after, number FROM history"
        " WHERE memory IN (SELECT value FROM json_each(?)) ORDER BY memory, number"
    )
    for key, at, actor, action, before, after, number in run(sql, (json.dumps(keys),)):
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
    run: Run, after: str, limit: int, scopes: Sequence[int] | None, vectors: bool
) -> tuple[Bundle, str]:
    inside = (
        "1"
        if scopes is None
        else f"source IN (SELECT id FROM memories WHERE {_within('scope', scopes)})"
    )
    source, target, type = json.loads(after) if after else ("", "", "")
    found = run(
        f"SELECT source, target, type, created_at, actor FROM relations WHERE (source, target, type) > (?, ?, ?) AND {inside}"
        " ORDER BY source, target, type LIMIT ?",
        (source, target, type, limit),
    )
    given = tuple(
        (Relation(source, target, type, rows.instant(at)), actor)
        for source, target, type, at, actor in found
    )
    return Bundle(relations=given), json.dumps(found[-1][:3]) if found else ""


def _turns_out(
    run: Run, after: str, limit: int, scopes: Sequence[int] | None, vectors: bool
) -> tuple[Bundle, str]:
    scope, identity = json.loads(after) if after else (0, "")
    found = run(
        "SELECT t.scope, s.key, t.identity FROM turns t JOIN scopes s ON s.id = t.scope"
        f" WHERE (t.scope, t.identity) > (?, ?) AND {_within('t.scope', scopes)} ORDER BY t.scope, t.identity LIMIT ?",
        (scope, bytes.fromhex(identity), limit),
    )
    last = json.dumps((found[-1][0], found[-1][2].hex())) if found else ""
    return Bundle(turns=tuple((key, identity) for _, key, identity in found)), last


def _tombstones_out(
    run: Run, after: str, limit: int, scopes: Sequence[int] | None, vectors: bool
) -> tuple[Bundle, str]:
    found = run(
        "SELECT hash, at FROM tombstones WHERE hash > ? ORDER BY hash LIMIT ?",
        (bytes.fromhex(after), limit),
    )
    salt = run("SELECT value FROM meta WHERE key = 'salt'")[0][0]
    return Bundle(
        tombstones=tuple((hash, rows.instant(at)) for hash, at in found), salt=salt
    ), found[-1][0].hex() if found else ""


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
    _take_places(writer, bundle)
    _take_salt(writer, bundle)
    left = tuple(id for id in bundle.gone if not _remove(writer, id, expect))
    left += tuple(
        record.memory.id for record in bundle.records if not _take_record(writer, record, expect)
    )
    writer.many(
        "INSERT OR IGNORE INTO relations(source, target, type, created_at, actor) VALUES (?, ?, ?, ?, ?)",
        (
            (one.source, one.target, one.type, rows.stamp(one.created_at), actor)
            for one, actor in bundle.relations
        ),
    )
    writer.many(
        "INSERT OR IGNORE INTO turns(scope, identity) VALUES (?, ?)",
        ((writer.scope(scope), identity) for scope, identity in bundle.turns),
    )
    writer.many(
        "INSERT OR IGNORE INTO tombstones(hash, at) VALUES (?, ?)",
        ((hash, rows.stamp(at)) for hash, at in bundle.tombstones),
    )
    writer.settle()
    return left


def _remove(writer: Writer, id: str, expect: Mapping[str, bytes | None]) -> bool:
    """Takes a memory out. False where it is not what was expected."""
    if id in expect and [
        version(one) for one in records_of(_listed(writer), "m.id = ?", (id,), False)[0]
    ] not in ([], [expect[id]]):
        return False
    key = writer.run("SELECT key FROM memories WHERE id = ?", (id,)).get
    if key is not None:
        writer.remove(key)
        writer.run("DELETE FROM history WHERE memory = ?", (key,))
        leaving.release(writer, [id])
    return True


def _take_places(writer: Writer, bundle: Bundle) -> None:
    """What memories belong to: scopes, sources, sessions, topics."""
    writer.many(
        "INSERT INTO scopes(key, name, path) VALUES (?, ?, ?) ON CONFLICT(key) DO UPDATE SET"
        " name = iif(name = '', excluded.name, name), path = iif(path = '', excluded.path, path)",
        bundle.scopes,
    )
    for scope, source, read in bundle.sources:
        writer.run(
            "INSERT INTO sources(scope, uri, type, hash, position, read_at, metadata) VALUES (?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT(scope, uri) DO UPDATE SET type = excluded.type, hash = excluded.hash, position = excluded.position,"
            " read_at = excluded.read_at, metadata = excluded.metadata WHERE excluded.read_at >= read_at",
            (
                writer.scope(scope),
                source.uri,
                source.type,
                source.hash,
                source.position,
                rows.stamp(read),
                rows.stored("metadata", source.metadata),
            ),
        )
    for session in bundle.sessions:
        if _elsewhere(writer, "sessions", session.id, session.scope):
            continue
        writer.run("DELETE FROM sessions WHERE id = ?", (session.id,))
        spans.put_session(writer, session)
    for span, vectors in bundle.spans:
        if _elsewhere(writer, "spans", span.id, span.scope):
            continue
        key = writer.run("SELECT key FROM spans WHERE id = ?", (span.id,)).get
        kept = vectors or (
            _vectors(_listed(writer), "span_vectors", "span", [key]).get(key, ()) if key else ()
        )
        spans.put_span(writer, span, ())
        key = writer.run("SELECT key FROM spans WHERE id = ?", (span.id,)).get
        _put_vectors(writer, "span_vectors", "span", key, writer.scope(span.scope), kept)


def _elsewhere(writer: Writer, table: str, id: str, scope: str) -> bool:
    """Whether an id is somebody else's: what another scope holds is not taken over."""
    return bool(
        writer.run(
            f"SELECT 1 FROM {table} WHERE id = ? AND scope <> ?", (id, writer.scope(scope))
        ).get
    )


def _take_salt(writer: Writer, bundle: Bundle) -> None:
    """Tombstones are hashes under a secret of their store, so the secret comes with them."""
    if (
        not bundle.tombstones
        or bundle.salt == writer.run("SELECT value FROM meta WHERE key = 'salt'").get
    ):
        return
    if writer.run("SELECT 1 FROM tombstones LIMIT 1").get:
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
    writer.run("UPDATE meta SET value = ? WHERE key = 'salt'", (bundle.salt,))


def brought(record: Record, current: Record | None) -> set[str]:
    """The hashes of the texts that a memory would bring in, those of its history included."""
    known = set(map(content_hash, texts(current))) if current else set()
    return {record.memory.content_hash, *map(content_hash, texts(record))} - known


def _take_record(writer: Writer, record: Record, expect: Mapping[str, bytes | None]) -> bool:
    """Puts a memory in, or in the place of what it was. False where that is not what was expected, or where it may not stand."""
    memory = record.memory
    known = records_of(_listed(writer), "m.id = ?", (memory.id,), True)[0]
    current = known[0] if known else None
    if current and current.memory.scope != memory.scope:
        return False  # somebody else's
    if memory.id in expect and expect[memory.id] != (version(current) if current else None):
        return False
    if not writer.batch.allow_purged and any(map(writer.tombstoned, brought(record, current))):
        return False
    scope = writer.scope(memory.scope)
    dedup = memory.content_hash if record.unique else None
    if dedup and memory.deleted_at is None:
        twin = "SELECT 1 FROM memories WHERE scope = ? AND dedup = ? AND deleted_at IS NULL AND id <> ?"
        if writer.run(twin, (scope, dedup, memory.id)).get:
            return False
    vectors = record.vectors
    if (
        current
        and not vectors
        and (current.memory.content, current.memory.section) == (memory.content, memory.section)
    ):
        vectors = current.vectors
    _put(writer, record, scope, dedup, vectors, current is not None)
    return True


def _put(
    writer: Writer, record: Record, scope: int, dedup: str | None, vectors: Stored, known: bool
) -> None:
    memory = record.memory
    was = writer.run("SELECT key FROM memories WHERE id = ?", (memory.id,)).get if known else None
    if was is not None:
        writer.remove(was)
        writer.run("DELETE FROM history WHERE memory = ?", (was,))
    source = writer.source(scope, memory.source, memory.source_type)
    worded = Worded.of(
        memory.content,
        memory.summary,
        memory.section,
        index_tags(memory.tags, memory.source, memory.source_type),
    )
    key = writer.insert(memory, scope, source, dedup, worded)
    if was is not None:
        writer.run("UPDATE memories SET key = ? WHERE key = ?", (was, key))
        key = was
    writer.index_words(key, scope, worded)
    writer.entities(key, memory.entities)
    _put_vectors(writer, "vectors", "memory", key, scope, vectors)
    writer.many(
        "INSERT INTO history(memory, at, actor, action, before, after) VALUES (?, ?, ?, ?, ?, ?)",
        (
            (key, rows.stamp(one.at), one.actor, one.action, _text(one.before), _text(one.after))
            for one in record.events
        ),
    )


def _put_vectors(
    writer: Writer, table: str, owner: str, key: int, scope: int, vectors: Stored
) -> None:
    for model, dimensions, data in vectors:
        if len(data) != 4 + 2 * dimensions:
            raise InvalidInput(
                f"A vector of {model} has {len(data)} bytes, not those of {dimensions} dimensions.",
                "Nothing was stored.",
            )
    writer.many(
        f"INSERT INTO {table}(model, scope, {owner}, data) VALUES (?, ?, ?, ?)",
        (
            (writer.model(model, dimensions), scope, key, data)
            for model, dimensions, data in vectors
        ),
    )


def _text(value: Mapping[str, Any]) -> str | None:
    return json.dumps(dict(value), ensure_ascii=False) if value else None


def _listed(writer: Writer) -> Run:
    return lambda sql, values=(): list(writer.run(sql, values))
