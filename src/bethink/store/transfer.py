"""Moving memories between stores: whole records out, whole records in, one page and one transaction at a time.

What comes in is put down as it is. Which of two versions is the right one is decided before, by `features/exchange.py`, `migration.py` and `sync.py`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from bethink.errors import InvalidInput, StoreError
from bethink.store import rows
from bethink.store.base import Store
from bethink.store.bundle import Bundle, Record, Stored, texts, version
from bethink.store.places import MEMORIES, TOPICS, Vectors, Window, content_hash
from bethink.store.rules import Writer
from bethink.types import Batch, Event, Relation, Session, Span

NOTE = "note:"  # before the names of notes among the other facts about the database
Result = TypeVar("Result")


class Transfers(Store):
    """What a store can do for other stores."""

    def _written(self, batch: Batch, action: Callable[[Writer], Result]) -> Result:
        """Does something in one transaction."""
        raise NotImplementedError

    def _stored_vectors(self, which: Vectors, keys: Sequence[int]) -> dict[int, Stored]:
        """The vectors of memories or topics, byte for byte."""
        raise NotImplementedError

    def export(
        self,
        part: str,
        after: str,
        limit: int,
        scopes: Sequence[str] | None = None,
        vectors: bool = True,
    ) -> tuple[Bundle, str]:
        """One page of a part, behind the cursor `after`, and the cursor behind the page."""
        keys, select, scope = SELECTS[part]
        inside = None if scopes is None else self._scopes(scopes)
        where = rows.within(scope, inside) if scope else "1 = 1"
        if part == "relations" and inside is not None:
            own = f"SELECT id FROM memories WHERE {rows.within('scope', inside)}"
            where = f"source IN ({own})"
        begin = _cursor_values(after)
        if begin:
            where += f" AND ({keys}) > ({', '.join('?' * len(begin))})"
        select = select.replace("{columns}", self.columns).replace("SELECT", f"SELECT {keys},", 1)
        sql = f"{select} WHERE {where} ORDER BY {keys} LIMIT ?"
        found = self._run(sql, (*begin, limit))
        width = len(keys.split(", "))
        bundle = self._bundle(
            part, [row[:width] for row in found], [row[width:] for row in found], vectors
        )
        return bundle, _cursor(found[-1][:width]) if found else ""

    def records(self, ids: Sequence[str], vectors: bool = True) -> list[Record]:
        sql = f"SELECT {self.columns}, m.dedup FROM {rows.JOINS} WHERE m.id = ANY(?)"
        found = self._run(sql, (list(ids),)) if ids else []
        return self._build_records([row[0] for row in found], found, vectors)

    def take(
        self,
        bundle: Bundle,
        *,
        expect: Mapping[str, bytes | None] | None = None,
        allow_purged: bool = False,
        note: tuple[str, str] | None = None,
    ) -> tuple[str, ...]:
        def taken(writer: Writer) -> tuple[str, ...]:
            left = self._take(writer, bundle, expect or {})
            if note is not None:
                writer.note_fact(NOTE + note[0], note[1])
            return left

        return self._written(Batch(at=datetime.now(UTC), allow_purged=allow_purged), taken)

    def noted(self, name: str) -> str | None:
        found = self._run("SELECT value FROM meta WHERE key = ?", (NOTE + name,))
        return str(found[0][0]) if found else None

    # Out

    def _bundle(
        self, part: str, keys: Sequence[Any], found: Sequence[Any], vectors: bool
    ) -> Bundle:
        items: Any
        if part == "records":
            items = self._build_records([key for (key,) in keys], found, vectors)
        elif part == "spans":
            kept = self._stored_vectors(TOPICS, [key for (key,) in keys]) if vectors else {}
            items = (
                (rows.span(row), kept.get(key, ())) for (key,), row in zip(keys, found, strict=True)
            )
        else:
            items = map(ITEMS[part], found)
        bundle = Bundle(**{part: tuple(items)})  # type: ignore[arg-type]
        if part == "tombstones":
            salt = self._run("SELECT value FROM meta WHERE key = 'salt'")
            bundle = bundle._replace(salt=salt[0][0] if salt else "")
        return bundle

    def _build_records(
        self, keys: Sequence[int], found: Sequence[Any], vectors: bool
    ) -> list[Record]:
        kept = self._stored_vectors(MEMORIES, keys) if vectors else {}
        events: defaultdict[int, list[Event]] = defaultdict(list)
        asked = (
            "SELECT memory, at, actor, action, before, after, number FROM history"
            " WHERE memory = ANY(?) ORDER BY memory, number"
        )
        for key, *event in self._run(asked, (list(keys),)) if keys else ():
            events[key].append(rows.event(*event))
        return [
            Record(rows.memory(row), row[-1] is not None, tuple(events[key]), kept.get(key, ()))
            for key, row in zip(keys, found, strict=True)
        ]

    # In

    def _take(
        self, writer: Writer, bundle: Bundle, expect: Mapping[str, bytes | None]
    ) -> tuple[str, ...]:
        for key, name, path in bundle.scopes:
            writer.run(
                "UPDATE scopes SET name = CASE name WHEN '' THEN ? ELSE name END,"
                " path = CASE path WHEN '' THEN ? ELSE path END WHERE id = ?",
                (name, path, writer.scope(key)),
            )
        _take_sources(writer, bundle)
        elsewhere = _elsewhere(writer, "sessions", bundle.sessions)
        for session in bundle.sessions:
            if session.id not in elsewhere:
                writer.run("DELETE FROM sessions WHERE id = ?", (session.id,))
                writer.put_session(session)
        _take_spans(writer, bundle)
        _take_salt(writer, bundle)
        left = self._take_away(writer, bundle.gone, expect)
        left += self._take_records(writer, bundle.records, expect)
        writer.put_relations(
            [(one, rows.stamp(one.created_at) or 0, actor) for one, actor in bundle.relations]
        )
        turns = [(writer.scope(scope), identity) for scope, identity in bundle.turns]
        writer.put("turns", [{"scope": scope, "identity": identity} for scope, identity in turns])
        writer.put(
            "tombstones",
            [{"scope": 0, "hash": hash, "at": rows.stamp(at)} for hash, at in bundle.tombstones],
        )
        for part in ("relations", "turns", "tombstones"):
            if number := len(getattr(bundle, part)):
                writer.audit(f"take {part}", number)
        writer.settle()
        return left

    def _take_away(
        self, writer: Writer, gone: Sequence[str], expect: Mapping[str, bytes | None]
    ) -> tuple[str, ...]:
        """Takes memories out. Gives back those that are not what was expected."""
        if not gone:
            return ()
        known = self._known([id for id in gone if id in expect], vectors=False)
        left = {id for id, one in known.items() if version(one) != expect[id]}
        ids = [id for id in gone if id not in left]
        found = writer.run("SELECT key FROM memories WHERE id = ANY(?)", (ids,))
        writer.remove([key for (key,) in found])
        writer.release(ids)
        writer.audit("remove", *ids)
        return tuple(id for id in gone if id in left)

    def _known(self, ids: Sequence[str], vectors: bool) -> dict[str, Record]:
        """What is there under these ids. Inside a write this sees what the write sees."""
        return {one.memory.id: one for one in self.records(ids, vectors)}

    def _take_records(
        self, writer: Writer, records: Sequence[Record], expect: Mapping[str, bytes | None]
    ) -> tuple[str, ...]:
        """Puts memories in, or in the place of what they were. Gives back those that are not what was expected, or may not stand."""
        if not records:
            return ()
        ids = [record.memory.id for record in records]
        known = self._known(ids, vectors=True)
        keys = dict(writer.run("SELECT id, key FROM memories WHERE id = ANY(?)", (ids,)))
        fresh = {one.memory.id: _brought(one, known.get(one.memory.id)) for one in records}
        every = set[str]().union(*fresh.values())
        purged = set() if writer.batch.allow_purged else writer.tombstoned(every)
        places = {one.memory.id: writer.scope(one.memory.scope) for one in records}
        living = writer.living(
            {(places[one.memory.id], one.memory.content_hash) for one in records if one.unique}
        )
        chosen = dict[str, tuple[Record, Stored]]()
        for record in records:
            memory, current = record.memory, known.get(record.memory.id)
            place = (places[memory.id], memory.content_hash)
            once = record.unique and memory.deleted_at is None
            elsewhere = current is not None and current.memory.scope != memory.scope
            found = version(current) if current else None
            overtaken = memory.id in expect and expect[memory.id] != found
            doubled = once and living.get(place, memory.id) != memory.id
            if elsewhere or overtaken or doubled or fresh[memory.id] & purged:
                continue
            if current and living.get(was := (place[0], current.memory.content_hash)) == memory.id:
                del living[was]
            if once:
                living[place] = memory.id
            same = current and _text(current) == _text(record)
            kept = current.vectors if current and same else ()
            chosen[memory.id] = record, record.vectors or kept
        writer.remove([keys[id] for id in chosen if id in keys])
        for id in chosen:
            keys.setdefault(id, writer.number("memories"))
        writer.insert(
            [(keys[id], places[id], one.memory, one.unique) for id, (one, _) in chosen.items()]
        )
        windows = [
            window
            for id, (_, stored) in chosen.items()
            for window in _windows(writer, keys[id], places[id], stored)
        ]
        writer.put_vectors(MEMORIES, windows)
        writer.put(
            "history",
            [
                {
                    "number": writer.number("history"),
                    "memory": keys[id],
                    "scope": places[id],
                    "at": rows.stamp(event.at),
                    "actor": event.actor,
                    "action": event.action,
                    "before": rows.json_text(event.before or None),
                    "after": rows.json_text(event.after or None),
                }
                for id, (record, _) in chosen.items()
                for event in record.events
            ],
        )
        writer.audit("take", *chosen)
        return tuple(id for id in ids if id not in chosen)


# Of each part: the columns that it is ordered by, what is selected, and the column that tells its scope.
SELECTS = {
    "scopes": ("id", "SELECT key, name, path FROM scopes", "id"),
    "sources": ("o.id", rows.SOURCE.replace("SELECT", "SELECT o.read_at,"), "o.scope"),
    "sessions": ("n.id", rows.SESSION, "n.scope"),
    "spans": ("p.key", rows.SPAN, "p.scope"),
    "records": ("m.key", f"SELECT {{columns}}, m.dedup FROM {rows.JOINS}", "m.scope"),
    "relations": (
        "source, target, type",
        "SELECT source, target, type, created_at, actor FROM relations",
        "",
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
    "sources": lambda row: (row[6], rows.source(row[1:]), rows.instant(row[0])),
    "sessions": rows.session,
    "relations": lambda row: (Relation(row[0], row[1], row[2], rows.instant(row[3])), row[4]),
    "turns": lambda row: (row[0], bytes(row[1])),
    "tombstones": lambda row: (bytes(row[0]), rows.instant(row[1])),
}


def _cursor(keys: Sequence[Any]) -> str:
    """The keys of a row as text."""
    return json.dumps(
        [one if isinstance(one, int | str) else {"hex": bytes(one).hex()} for one in keys]
    )


def _cursor_values(after: str) -> list[Any]:
    keys = json.loads(after) if after else []
    return [bytes.fromhex(one["hex"]) if isinstance(one, dict) else one for one in keys]


def _text(record: Record) -> tuple[str, str | None]:
    return record.memory.content, record.memory.section


def _brought(record: Record, current: Record | None) -> set[str]:
    """The hashes of the texts that a memory would bring in, those of its history included."""
    known = set(map(content_hash, texts(current))) if current else set()
    return {record.memory.content_hash, *map(content_hash, texts(record))} - known


def _take_sources(writer: Writer, bundle: Bundle) -> None:
    """Sources as they were last read; one that was read later here stays."""
    for scope, source, read in bundle.sources:
        place, at = writer.scope(scope), rows.stamp(read) or 0
        known = writer.one(
            "SELECT read_at FROM sources WHERE scope = ? AND uri = ?", (place, source.uri)
        )
        if known is None or known[0] <= at:
            writer.read_source(place, source, at)


def _take_spans(writer: Writer, bundle: Bundle) -> None:
    elsewhere = _elsewhere(writer, "spans", [one for one, _ in bundle.spans])
    given = [(one, vectors) for one, vectors in bundle.spans if one.id not in elsewhere]
    if not given:
        return
    keys = writer.put_span_rows([one for one, _ in given])
    embedded = [
        (keys[one.id], writer.scope(one.scope), vectors) for one, vectors in given if vectors
    ]
    writer.drop_vectors(TOPICS, [key for key, _, _ in embedded])
    writer.put_vectors(TOPICS, [window for one in embedded for window in _windows(writer, *one)])


def _elsewhere(writer: Writer, table: str, given: Sequence[Session | Span]) -> set[str]:
    """The ids that are somebody else's: what another scope holds is not taken over."""
    ids = [one.id for one in given]
    known = (
        dict(writer.run(f"SELECT id, scope FROM {table} WHERE id = ANY(?)", (ids,))) if ids else {}
    )
    return {one.id for one in given if one.id in known and known[one.id] != writer.scope(one.scope)}


def _windows(writer: Writer, key: int, scope: int, vectors: Stored) -> list[Window]:
    for model, dimensions, data in vectors:
        if len(data) != 4 + 2 * dimensions:
            raise InvalidInput(
                f"A vector of {model} has {len(data)} bytes, not those of {dimensions} dimensions.",
                "Nothing was stored.",
            )
    return [
        (key, scope, writer.model(model, dimensions), data) for model, dimensions, data in vectors
    ]


def _take_salt(writer: Writer, bundle: Bundle) -> None:
    """Tombstones are hashes under a secret of their store, so the secret comes with them."""
    if not bundle.tombstones or bundle.salt == writer.salt():
        return
    if writer.one("SELECT 1 FROM tombstones LIMIT 1"):
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
