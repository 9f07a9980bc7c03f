"""The SQLite store: reads here, writes in `writer.py`, care in `health.py`. Only `store/` knows SQL."""

from __future__ import annotations

import array
import builtins
import json
import threading
import weakref
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from bethink.errors import StoreCorrupt
from bethink.store import health, lexemes, match, rows, spans
from bethink.store import prefix as prefixes
from bethink.store.base import Overview, Problem, Statistics
from bethink.store.connection import connect, immediate, translated
from bethink.store.prefix import shortened
from bethink.store.transfer import Transfers
from bethink.store.writer import Writer
from bethink.types import (
    Batch,
    Candidate,
    Event,
    Filter,
    Held,
    Memory,
    Query,
    Ranking,
    Receipt,
    Relation,
    Session,
    Source,
    Span,
    Words,
    turn_of,
)

if TYPE_CHECKING:
    from bethink.store.vectors import Vectors

BARE = "NOT EXISTS (SELECT 1 FROM vectors v WHERE v.memory = m.key AND v.model = (SELECT id FROM models WHERE name = ?))"
UNEMBEDDED = f"json_extract(m.metadata, '$.vector_index') IS NOT 0 AND {BARE}"


PATIENCE = 2.0  # seconds that a purge waits for others to end their reads; set by hand
LINGERING = (
    "The memory is gone from every answer, but another process is still reading, and until it ends the old text stays in the"
    " database file. The next write after that takes it out."
)


class SqliteStore(Transfers):
    """One database file. A connection per thread, since SQLite's are not shared; one set of vectors per process."""

    def __init__(self, path: Path, timeout: float = 30.0) -> None:
        self.path = path
        self.timeout = timeout
        self._local = threading.local()
        # Weak, so that the connection of a thread is closed when the thread ends.
        self._connections = weakref.WeakSet[apsw.Connection]()
        self._lock = threading.Lock()
        self._vectors: Vectors | None = None
        self._span_vectors: Vectors | None = None
        self._scope_ids: dict[str, int] = {}
        _ = (
            self.connection
        )  # errors about the file come when it is opened, not at the first question

    @property
    def connection(self) -> apsw.Connection:
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = connect(self.path, self.timeout, health.rebuild)
            self._local.connection = connection
            with self._lock:
                self._connections.add(connection)
        return connection

    def close(self) -> None:
        with self._lock:
            connections = list(self._connections)
            self._connections.clear()
        with suppress(
            apsw.Error
        ):  # closed already, damaged or read-only: then there is nothing to scrub
            if connections and health.scrub_due(connections[0]):
                health.scrub(connections[0], 0.0)
        for connection in connections:
            connection.close()
        self._local = threading.local()

    def _run(self, sql: str, values: Any = ()) -> list[Any]:
        with translated(self.path):
            return list(self.connection.execute(sql, values))

    def _scopes(self, keys: Sequence[str]) -> list[int]:
        """The numbers of these scopes. A scope never changes its number, so they are asked for once."""
        for key in keys:
            if key not in self._scope_ids and (
                found := self._run("SELECT id FROM scopes WHERE key = ?", (key,))
            ):
                self._scope_ids[key] = found[0][0]
        return [self._scope_ids[key] for key in dict.fromkeys(keys) if key in self._scope_ids]

    # Writing

    def write(self, batch: Batch) -> Receipt:
        with translated(self.path):
            with immediate(self.connection, self.timeout):
                receipt = Writer(self.connection, batch).apply()
            if not self._scrubbed(PATIENCE if batch.purge else 0.0) and batch.purge:
                receipt = receipt._replace(hints=(LINGERING,))
        return receipt

    def _scrubbed(self, patience: float) -> bool:
        """Whether nothing that was purged is left in the file and its log; if something is, tries to get it out."""
        return not health.scrub_due(self.connection) or health.scrub(self.connection, patience)

    # One memory at a time

    def resolve(self, prefix: str, scopes: Sequence[str] | None = None) -> str:
        text = prefixes.spelled(prefix)
        seen = (
            "1"
            if scopes is None
            else f"+scope IN ({','.join(map(str, self._scopes(scopes))) or 'NULL'})"
        )  # few ids, many in a scope
        found = self._run(
            f"SELECT id FROM memories WHERE id >= ? AND id < ? AND {seen} ORDER BY id LIMIT {prefixes.MOST}",
            (text, text + "g"),
        )
        return prefixes.only(prefix, [row[0] for row in found], self.abbreviate)

    def get(self, ids: Sequence[str]) -> list[Memory]:
        found = {
            row[1]: rows.memory(row)
            for row in self._run(
                f"SELECT {rows.COLUMNS} FROM {rows.JOINS} WHERE m.id IN (SELECT value FROM json_each(?))",
                (json.dumps(list(ids)),),
            )
        }
        return [found[id] for id in ids if id in found]

    def history(self, id: str) -> list[Event]:
        found = self._run(
            "SELECT h.at, h.actor, h.action, h.before, h.after, h.number FROM history h JOIN memories m ON m.key = h.memory WHERE m.id = ? ORDER BY h.number",
            (id,),
        )
        return [
            Event(
                rows.moment(at),  # type: ignore[arg-type]
                actor,
                action,
                json.loads(before) if before else {},
                json.loads(after) if after else {},
                number,
            )
            for at, actor, action, before, after, number in found
        ]

    def relations(self, ids: Sequence[str]) -> list[Relation]:
        wanted = json.dumps(list(ids))
        found = self._run(
            "SELECT source, target, type, created_at FROM relations WHERE source IN (SELECT value FROM json_each(?1))"
            " UNION SELECT source, target, type, created_at FROM relations WHERE target IN (SELECT value FROM json_each(?1)) ORDER BY 4, 1, 2",
            (wanted,),
        )
        return [
            Relation(source, target, type, rows.moment(at)) for source, target, type, at in found
        ]

    def abbreviate(self, ids: Sequence[str]) -> dict[str, str]:
        near = "SELECT (SELECT max(id) FROM memories WHERE id < ?1), (SELECT min(id) FROM memories WHERE id > ?1)"
        return {id: shortened(id, self._run(near, (id,))[0]) for id in ids}

    # Many memories

    def list(
        self, filter: Filter, limit: int = 50, offset: int = 0, order: str = "created"
    ) -> builtins.list[Memory]:
        orders = {
            "created": "m.created_at DESC, m.key DESC",
            "oldest": "m.created_at, m.key",
            "importance": "m.importance DESC, m.key DESC",
            "used": "m.access_count DESC, m.key DESC",
            "useful": "m.usefulness DESC, m.key DESC",
            "updated": "m.updated_at DESC, m.key DESC",
            "position": "m.position, m.key",
        }
        sql, values = rows.where(filter, self._scopes(filter.scopes))
        if filter.entities and self._seldom(filter.entities):
            sql = sql.replace(
                "m.scope IN", "+m.scope IN", 1
            )  # by what few memories name, not through the whole scope in order
        return [
            rows.memory(row)
            for row in self._run(
                f"SELECT {rows.COLUMNS} FROM {rows.JOINS} WHERE {sql} ORDER BY {orders[order]} LIMIT ? OFFSET ?",
                (*values, limit, offset),
            )
        ]

    def _seldom(self, names: Sequence[str], most: int = 2000) -> bool:
        asked = f"SELECT 1 FROM entities e CROSS JOIN memory_entities me ON me.entity = e.id WHERE e.folded IN {rows.LISTED} LIMIT ?"
        return len(self._run(asked, (rows.listed(name.casefold() for name in names), most))) < most

    def count(self, filter: Filter) -> int:
        scopes = self._scopes(filter.scopes)
        sql, values = rows.where(filter, scopes)
        if filter.narrow:
            return int(self._run(f"SELECT count(*) FROM memories m WHERE {sql}", values)[0][0])
        # Everything but the few that are hidden: both numbers are there without reading every memory.
        marks = ",".join("?" * len(scopes))
        total = self._run(
            f"SELECT coalesce(sum(memories), 0) FROM scopes WHERE id IN ({marks})", scopes
        )[0][0]
        hidden = f"SELECT count(*) FROM memories m WHERE m.scope IN ({marks}) AND ({rows.HIDDEN}) AND NOT ({sql})"
        return int(total - self._run(hidden, (*scopes, *values))[0][0])

    def scan(self, filter: Filter, lost: builtins.list[str] | None = None) -> Iterator[Memory]:
        sql, values = rows.where(filter, self._scopes(filter.scopes))
        page = f"SELECT {rows.COLUMNS} FROM {rows.JOINS} WHERE {sql} AND m.key BETWEEN ? AND ? ORDER BY m.key LIMIT 500"
        first, last = 1, self._last_key()
        while first <= last:
            try:
                memories = [
                    (row[0], rows.memory(row)) for row in self._run(page, (*values, first, last))
                ]
            except StoreCorrupt:
                if lost is None:
                    raise
                yield from self._readable(page, values, first, min(first + 499, last), lost)
                first += 500
                continue
            yield from (memory for _, memory in memories)
            first = memories[-1][0] + 1 if memories else last + 1

    def _last_key(self) -> int:
        """The highest key that a memory may have. Read from a page of its own, so that damage elsewhere does not hide it."""
        found = self._run("SELECT seq FROM sqlite_sequence WHERE name = 'memories'")
        return int(found[0][0]) if found else 0

    def _readable(
        self, page: str, values: Sequence[Any], first: int, last: int, lost: builtins.list[str]
    ) -> Iterator[Memory]:
        """What can be read of these keys: in halves, so that one page that is damaged costs its own memories alone."""
        try:
            yield from builtins.list(map(rows.memory, self._run(page, (*values, first, last))))
        except StoreCorrupt:
            if first == last:
                lost.append(f"number {first}")
                return
            middle = (first + last) // 2
            yield from self._readable(page, values, first, middle, lost)
            yield from self._readable(page, values, middle + 1, last, lost)

    def duplicates(self, hashes: Sequence[str], scope: str) -> dict[str, str]:
        found = self._run(
            "SELECT dedup, id FROM memories WHERE scope = (SELECT id FROM scopes WHERE key = ?) AND deleted_at IS NULL AND dedup IN (SELECT value FROM json_each(?))",
            (scope, json.dumps(list(hashes))),
        )
        return dict(found)

    def tombstoned(self, hashes: Sequence[str]) -> set[str]:
        from bethink.types import Batch

        with translated(self.path):
            writer = Writer(self.connection, Batch(at=rows.moment(0)))  # type: ignore[arg-type]
            return {hash for hash in hashes if writer.tombstoned(hash)}

    def source(self, scope: str, uri: str) -> Source | None:
        found = self._run(
            "SELECT uri, type, hash, position, metadata FROM sources WHERE scope = (SELECT id FROM scopes WHERE key = ?) AND uri = ?",
            (scope, uri),
        )
        if not found:
            return None
        uri, type, hash, position, metadata = found[0]
        return Source(uri, type, hash, position, json.loads(metadata))

    def find_source(self, uri: str) -> tuple[str, Source] | None:
        found = self._run(
            "SELECT s.key FROM sources o JOIN scopes s ON s.id = o.scope WHERE o.uri = ? ORDER BY o.position DESC, o.id LIMIT 1",
            (uri,),
        )
        if not found:
            return None
        source = self.source(found[0][0], uri)
        return (found[0][0], source) if source else None

    def sources(self, scope: str, collection: str | None = None) -> builtins.list[Source]:
        found = self._run(
            "SELECT uri, type, hash, position, metadata FROM sources WHERE scope = (SELECT id FROM scopes WHERE key = ?1)"
            " AND (?2 IS NULL OR json_extract(metadata, '$.collection') = ?2) ORDER BY id",
            (scope, collection),
        )
        return [
            Source(uri, type, hash, position, json.loads(metadata))
            for uri, type, hash, position, metadata in found
        ]

    def held(self, scope: str, uri: str) -> builtins.list[Held]:
        found = self._run(
            f"SELECT {rows.COLUMNS}, (SELECT action FROM history h WHERE h.memory = m.key ORDER BY number DESC LIMIT 1) FROM {rows.JOINS}"
            f" WHERE s.key = ? AND o.uri = ? AND NOT {rows.TOLD} ORDER BY m.position, m.key",
            (scope, uri),
        )
        return [Held(rows.memory(row), row[-1] or "") for row in found]

    def around(self, id: str, before: int, after: int) -> builtins.list[Memory]:
        found = self._run(
            f"SELECT m.source, m.position, {rows.TYPE} FROM {rows.JOINS} WHERE m.id = ?", (id,)
        )
        if not found or found[0][2] == "note":  # what was told has no place: thousands may share it
            return [one for one in self.get([id]) if one.deleted_at is None]
        source, position, _ = found[0]
        place = turn_of(position)
        return [
            rows.memory(row)
            for row in self._run(
                f"SELECT {rows.COLUMNS} FROM {rows.JOINS} WHERE m.source = ? AND m.position BETWEEN ? AND ? AND m.deleted_at IS NULL"
                f" AND NOT {rows.TOLD} ORDER BY m.position, m.key LIMIT 200",
                (source, place - before, place + after),
            )
        ]

    # Conversations

    def sessions(
        self, scopes: Sequence[str], limit: int = 50, offset: int = 0, prefix: str | None = None
    ) -> builtins.list[Session]:
        return spans.sessions(self._run, self._scopes(scopes), limit, offset, prefix)

    def spans(self, session: str, scopes: Sequence[str]) -> builtins.list[Span]:
        return spans.of_session(self._run, session, self._scopes(scopes))

    def spans_by_id(self, ids: Sequence[str], scopes: Sequence[str]) -> dict[str, Span]:
        return spans.by_id(self._run, ids, self._scopes(scopes))

    def known_turns(self, scope: str, identities: Sequence[bytes]) -> set[bytes]:
        found: set[bytes] = set()
        for number in self._scopes([scope]):
            for at in range(0, len(identities), 500):
                page = identities[at : at + 500]
                sql = f"SELECT identity FROM turns WHERE scope = ? AND identity IN ({','.join('?' * len(page))})"
                found.update(row[0] for row in self._run(sql, (number, *page)))
        return found

    def keyword_spans(
        self, query: Query, scopes: Sequence[str], limit: int
    ) -> builtins.list[tuple[str, float]]:
        numbers = self._scopes(scopes)
        return spans.keyword(self._run, match.span_expression(query, numbers), numbers, limit)

    def in_spans(self, ids: Sequence[str], filter: Filter, limit: int) -> builtins.list[int]:
        sql, values = rows.where(filter, self._scopes(filter.scopes))
        found = self._run(
            f"SELECT m.key FROM memories m WHERE m.span IN {rows.LISTED} AND m.kind <> 'context' AND {sql} ORDER BY m.importance DESC, m.key LIMIT ?",
            (rows.listed(ids), *values, limit),
        )
        return [row[0] for row in found]

    def nearest_spans(
        self, vector: Any, model: str, scopes: Sequence[str], limit: int
    ) -> builtins.list[tuple[str, float]]:
        if self._span_vectors is None:
            from bethink.store.vectors import Vectors

            self._span_vectors = Vectors("span_vectors", "span")
        found = self._span_vectors.search(
            self._run, vector, model, self._scopes(scopes), limit, None
        )
        ids = (
            dict(
                self._run(
                    "SELECT key, id FROM spans WHERE key IN (SELECT value FROM carray(?))",
                    (apsw.carray(array.array("q", [key for key, _ in found])),),
                )
            )
            if found
            else {}
        )
        return [(ids[key], cosine) for key, cosine in found if key in ids]

    # The signals of a search

    def keyword(self, query: Query, filter: Filter, limit: int) -> Ranking:
        scopes = self._scopes(filter.scopes)
        if not scopes:
            return Ranking("keyword", ())
        sql, values = rows.where(filter, scopes)
        if not filter.narrow and not query.strict and len(query.terms) > 1:
            found = self._by_words(query, scopes, limit, sql, values)
            if found:
                return Ranking("keyword", tuple(found))
        expression = match.expression(query, scopes)
        found = (
            []
            if expression is None
            else self._run(
                "SELECT f.rowid, -f.rank FROM memories_fts f CROSS JOIN memories m ON m.key = f.rowid"
                f" WHERE f.memories_fts MATCH ? AND f.rank MATCH '{match.RANK}' AND {sql} ORDER BY f.rank LIMIT ?",
                (expression, *values, limit),
            )
        )
        return Ranking("keyword", tuple(found))

    def _by_words(
        self, query: Query, scopes: Sequence[int], limit: int, sql: str, values: Sequence[Any]
    ) -> builtins.list[tuple[int, float]]:
        """Memories by the weight of the words they hold, each word looked up on its own.

        FTS5's own rank reads every posting of every word to weigh it, which in a large database takes longer than all the
        rest of a search. Frequencies and lengths come in when the candidates are scored, so the weights are enough here."""
        marks = ",".join("?" * len(scopes))
        inside, total = self._run(
            f"SELECT coalesce(sum(iif(id IN ({marks}), memories, 0)), 0), coalesce(sum(memories), 0) FROM scopes",
            scopes,
        )[0]
        # Walking the list of a scope that is most of the database costs more than dropping the few rows of others.
        within = () if inside * 2 >= total else scopes
        rare, pairs = match.alternatives(
            query, lambda words: self._document_counts(words, scopes), inside
        )
        weight: dict[int, float] = {}
        for group in (rare, pairs):
            for asked, value in group:
                for (key,) in self._run(
                    "SELECT rowid FROM memories_fts WHERE memories_fts MATCH ?",
                    (match.inside(asked, within),),
                ):
                    weight[key] = weight.get(key, 0.0) + value
            if len(weight) >= limit:
                break
        # Among equals the newest come first: keys rise, and the sort keeps the order it is given.
        best = [
            (key, weight[key])
            for key in sorted(sorted(weight, reverse=True), key=weight.__getitem__, reverse=True)[
                : limit * 2
            ]
        ]
        if inside == total and not self._hides(scopes):
            return best[:limit]
        seen = self._visible(best, sql, values)
        if len(seen) * 2 < min(len(best), limit):
            return []  # forgotten ones crowd out the rest: the slow way looks behind them
        return [row for row in best if row[0] in seen][:limit]

    def _visible(
        self, found: Sequence[tuple[int, float]], sql: str, values: Sequence[Any]
    ) -> set[int]:
        """Those of the found memories that the filter shows: forgotten ones and those of other scopes may stand among them."""
        if not found:
            return set()
        keys = apsw.carray(array.array("q", [key for key, _ in found]))
        return {
            row[0]
            for row in self._run(
                f"SELECT m.key FROM carray(?) w CROSS JOIN memories m ON m.key = w.value WHERE {sql}",
                (keys, *values),
            )
        }

    def nearest(
        self, vector: Any, model: str, filter: Filter, limit: int, least: float | None = None
    ) -> Ranking:
        scopes = self._scopes(filter.scopes)
        sql, values = rows.where(filter, scopes)
        if not filter.narrow:
            found = self.vectors.search(self._run, vector, model, scopes, limit, None, least)
            if not found or not self._hides(scopes):
                return Ranking("vector", found)
            seen = self._visible(found, sql, values)
            if len(seen) * 2 >= len(found):
                return Ranking("vector", tuple(row for row in found if row[0] in seen))
        allowed = [row[0] for row in self._run(f"SELECT m.key FROM memories m WHERE {sql}", values)]
        return Ranking(
            "vector", self.vectors.search(self._run, vector, model, scopes, limit, allowed, least)
        )

    def ready(self, model: str, scopes: Sequence[str]) -> None:
        self.vectors.ready(self._run, model, self._scopes(scopes))

    def _hides(self, scopes: Sequence[int]) -> bool:
        """Whether any memory of these scopes is forgotten, replaced, bound to a time or quarantined."""
        marks = ",".join("?" * len(scopes))
        return bool(
            self._run(
                f"SELECT 1 FROM memories WHERE scope IN ({marks}) AND ({rows.HIDDEN}) LIMIT 1",
                scopes,
            )
        )

    def by_entity(self, names: Sequence[str], filter: Filter, limit: int) -> Ranking:
        sql, values = rows.where(filter, self._scopes(filter.scopes))
        found = self._run(
            f"SELECT m.key, count(*) AS n FROM entities e CROSS JOIN memory_entities me ON me.entity = e.id CROSS JOIN memories m ON m.key = me.memory"
            f" WHERE e.folded IN {rows.LISTED} AND {sql} GROUP BY m.key ORDER BY n DESC, m.created_at DESC LIMIT ?",
            (rows.listed(name.casefold() for name in names), *values, limit),
        )
        return Ranking("entity", tuple((key, float(count)) for key, count in found))

    def statistics(self, words: Words, scopes: Sequence[str]) -> Statistics:
        ids = self._scopes(scopes)
        memories, length = self._run(
            f"SELECT coalesce(sum(memories), 0), coalesce(sum(words), 0) FROM scopes WHERE id IN ({','.join('?' * len(ids))})",
            ids,
        )[0]
        counts = self._document_counts(words.lexemes, ids)
        return Statistics(memories, length / memories if memories else 0.0, tuple(counts))

    def _document_counts(self, words: Sequence[str], scopes: Sequence[int]) -> builtins.list[int]:
        hashes = [lexemes.hashed(word) for word in words]
        marks = ",".join("?" * len(scopes))
        found = dict(
            self._run(
                f"SELECT hash, sum(memories) FROM lexeme_counts WHERE scope IN ({marks}) AND hash IN ({','.join('?' * len(hashes))}) GROUP BY hash",
                (*scopes, *hashes),
            )
        )
        return [found.get(hash, 0) for hash in hashes]

    def candidates(
        self, keys: Sequence[int], filter: Filter, words: Words, worded: Collection[int]
    ) -> builtins.list[Candidate]:
        if not keys:
            return []
        sql, values = rows.where(filter, self._scopes(filter.scopes))
        found = self._run(
            "SELECT m.key, m.kind, m.importance, m.confidence, m.usefulness, m.access_count, m.created_at / 1000.0,"
            " coalesce(m.last_accessed, m.created_at) / 1000.0, m.trust, m.source, m.position, m.superseded_by, m.span, m.length, m.lexemes"
            f" FROM carray(?) w CROSS JOIN memories m ON m.key = w.value WHERE {sql}",
            (apsw.carray(array.array("q", keys)), *values),
        )
        single = [lexemes.hashed(word) for word in words.lexemes]
        double = [lexemes.pair_hash(pair) for pair in words.pairs]
        nothing = lexemes.occurrences(None, single, double)
        return [
            Candidate._make(
                (
                    *row[:14],
                    *(
                        lexemes.occurrences(row[14], single, double)
                        if row[0] in worded
                        else nothing
                    ),
                )
            )
            for row in found
        ]

    def cosines(
        self, keys: Sequence[int], vector: Any, model: str, scopes: Sequence[str]
    ) -> tuple[dict[int, float], float]:
        return self.vectors.cosines(self._run, vector, model, self._scopes(scopes), keys)

    def answers(self, keys: Sequence[int]) -> builtins.list[tuple[int, str]]:
        return self._run(
            "SELECT m.key, r.source FROM carray(?) w CROSS JOIN memories m ON m.key = w.value"
            " CROSS JOIN relations r ON r.target = m.id AND r.type = 'answers'",
            (apsw.carray(array.array("q", keys)),),
        )

    def keys(self, ids: Sequence[str]) -> dict[str, int]:
        return dict(
            self._run(
                "SELECT id, key FROM memories WHERE id IN (SELECT value FROM json_each(?))",
                (json.dumps(list(ids)),),
            )
        )

    def load(self, keys: Sequence[int]) -> dict[int, Memory]:
        found = (
            self._run(
                f"SELECT {rows.COLUMNS} FROM {rows.JOINS} WHERE m.key IN (SELECT value FROM carray(?))",
                (apsw.carray(array.array("q", keys)),),
            )
            if keys
            else []
        )
        return {row[0]: rows.memory(row) for row in found}

    # Vectors

    @property
    def vectors(self) -> Vectors:
        if self._vectors is None:
            from bethink.store.vectors import Vectors

            self._vectors = Vectors()
        return self._vectors

    def models(self) -> builtins.list[str]:
        return [
            row[0]
            for row in self._run(
                "SELECT name FROM models d WHERE EXISTS (SELECT 1 FROM vectors v WHERE v.model = d.id)"
            )
        ]

    def cached(self, hashes: Sequence[bytes], model: str) -> dict[bytes, Any]:
        from bethink.store.scan import decode, encoded_size

        found = self._run(
            f"SELECT c.hash, c.data, m.dimensions FROM embedding_cache c JOIN models m ON m.id = c.model WHERE m.name = ? AND c.hash IN ({','.join('?' * len(hashes))})",
            (model, *hashes),
        )
        return {
            hash: [
                decode(data[at : at + encoded_size(size)])
                for at in range(0, len(data), encoded_size(size))
            ]
            for hash, data, size in found
            if len(data) % encoded_size(size) == 0
        }

    def unembedded(self, model: str, limit: int) -> builtins.list[Memory]:
        return [
            rows.memory(row)
            for row in self._run(
                f"SELECT {rows.COLUMNS} FROM {rows.JOINS} WHERE {UNEMBEDDED} ORDER BY m.key LIMIT ?",
                (model, limit),
            )
        ]

    def count_unembedded(self, model: str) -> int:
        sql = (
            f"SELECT (SELECT count(*) FROM memories m INDEXED BY memories_kind WHERE {BARE})"
            f" - (SELECT count(*) FROM memories m WHERE {health.UNWANTED} AND {BARE})"
        )
        return int(self._run(sql, (model, model))[0][0])

    def unembedded_spans(self, model: str, limit: int) -> builtins.list[Span]:
        return spans.unembedded(self._run, model, limit)

    # Care

    def scopes(self) -> builtins.list[str]:
        return [row[0] for row in self._run("SELECT key FROM scopes ORDER BY key")]

    def overview(self, scopes: Sequence[str] | None = None) -> Overview:
        return health.overview(
            self._run, self.path, None if scopes is None else self._scopes(scopes)
        )

    def check(self, deep: bool = False) -> builtins.list[Problem]:
        with translated(self.path):
            return health.check(self.connection, self.path, deep)

    def rebuild(self) -> int:
        with translated(self.path), immediate(self.connection, self.timeout):
            return health.rebuild(self.connection)

    def drop_vectors(self, model: str | None = None) -> int:
        with translated(self.path), immediate(self.connection, self.timeout):
            return health.drop_vectors(self.connection, model)

    def backup(self, path: str) -> int:
        with translated(self.path):
            return health.backup(self.connection, Path(path))

    def reset(self, scopes: Sequence[str] | None = None) -> int:
        ids = None if scopes is None else self._scopes(scopes)
        with translated(self.path):
            with immediate(self.connection, self.timeout):
                removed = health.reset(self.connection, ids)
            self._scrubbed(PATIENCE)
        return removed
