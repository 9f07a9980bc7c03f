"""The SQLite store: one file, one connection per thread. What is common to all stores is in `base`, `rules` and `transfer`."""

from __future__ import annotations

import array
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
from apsw import Connection

from bethink.errors import StoreError
from bethink.store import connection as database
from bethink.store import rows
from bethink.store.base import Cosines, Problems, Result, Scores, Store
from bethink.store.connection import codes_folder, connect, immediate, translate_errors
from bethink.store.places import MEMORIES, OFTEN, TOPICS, Index, Texts
from bethink.store.rows import Keys, Row, Rows, Scopes, Where, within
from bethink.store.rules import Writer
from bethink.store.words import (
    RANK,
    alternatives,
    expression,
    restrict,
    scope_token,
    span_expression,
)
from bethink.types import Batch, Filter, Query, Ranking, Receipt

if TYPE_CHECKING:
    from bethink.embed.base import Embedder
    from bethink.store.vectors import VectorIndex

PATIENCE = 2.0  # seconds that a purge waits for others to end their reads; set by hand
LINGERING = (
    "The memory is gone from every answer, but another process is still reading, and until it ends the old text stays in the"
    " database file. The next write after that takes it out."
)
UNREADABLE = (StoreError, apsw.CorruptError, apsw.SQLError, apsw.NoMemError, UnicodeDecodeError)
# Tables that have no column `scope` here, where one person has the whole database.
UNSCOPED = frozenset(
    "history entities memory_entities relations tombstones embedding_cache meta".split()
)
SCALARS = (str, int, float, bytes, type(None))
# What puts words into a full-text index, and what takes the same words out of it.
INDEX = {
    MEMORIES: "INSERT INTO memories_fts(rowid, content, summary, section, tags, scope) VALUES (?, ?, ?, ?, ?, ?)",
    TOPICS: "INSERT INTO spans_fts(rowid, name, summary, scope) VALUES (?, ?, ?, ?)",
}
FORGET = {
    MEMORIES: "INSERT INTO memories_fts(memories_fts, rowid, content, summary, section, tags, scope) VALUES ('delete', ?, ?, ?, ?, ?, ?)",
    TOPICS: "INSERT INTO spans_fts(spans_fts, rowid, name, summary, scope) VALUES ('delete', ?, ?, ?, ?)",
}


@cache
def translate(sql: str) -> str:
    return sql.replace("= ANY(?)", "IN (SELECT value FROM carray(?))")


def bindings(values: Sequence[Any]) -> Sequence[Any]:
    """Parameters as apsw takes them: a collection becomes a table."""
    return [value if isinstance(value, SCALARS) else _table(tuple(value)) for value in values]


def _table(values: tuple[Any, ...]) -> Any:
    given = values or (-1,)  # no table is empty, and no row has this number
    return apsw.carray(array.array("q", given) if isinstance(given[0], int) else given)


class SqliteWriter(Writer):
    """A write into SQLite."""

    entity_scope = "0"  # one person has the whole database

    def __init__(self, connection: Connection, batch: Batch) -> None:
        super().__init__(batch, batch.actor)
        self.connection = connection
        self.numbers: dict[str, int] = {}

    def run(self, sql: str, *values: Any) -> list[Any]:
        return list(self.connection.execute(translate(sql), bindings(values)))

    def put(self, table: str, given: Sequence[Row], key: str = "") -> None:
        if not given:
            return
        names = [name for name in given[0] if name != "scope" or table not in UNSCOPED]
        self.connection.executemany(
            _insert(table, tuple(names), key), ([row[name] for name in names] for row in given)
        )

    def number(self, table: str) -> int:
        if table not in self.numbers:
            column = {"memories": "key", "spans": "key", "history": "number"}.get(table, "id")
            self.numbers[table] = self.one(
                f"SELECT max(coalesce((SELECT max({column}) FROM {table}), 0),"
                " coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?), 0))",
                table,
            )[0]
        self.numbers[table] += 1
        return self.numbers[table]

    # Words

    def index_words(self, which: Index, texts: Sequence[Texts]) -> None:
        self._tell_index(INDEX[which], texts)

    def drop_words(self, which: Index, keys: Keys) -> None:
        self._tell_index(FORGET[which], self.texts(which, keys))

    def _tell_index(self, statement: str, texts: Sequence[Texts]) -> None:
        told = [(text.key, *text.columns, scope_token(text.scope)) for text in texts]
        self.connection.executemany(statement, told)

    # Leaving

    def clear_derived(self) -> None:
        for table in ("memories_fts", "spans_fts"):
            self.run(f"INSERT INTO {table}({table}) VALUES ('delete-all')")
        self.run("DELETE FROM vectors WHERE memory NOT IN (SELECT key FROM memories)")
        if self.one("SELECT 1 FROM models LIMIT 1"):
            for which in (MEMORIES, TOPICS):
                unsound = database.unsound_vectors(self.connection, which.table)
                self.run(f"DELETE FROM {which.table} WHERE id = ANY(?)", unsound)

    def note_purge(self) -> None:
        self.note_fact(database.SCRUB, "")


@cache
def _insert(table: str, names: tuple[str, ...], key: str) -> str:
    values = f"({', '.join(names)}) VALUES ({rows.marks(names)})"
    again = rows.on_conflict(table, key, names) if key else ""
    return f"INSERT{' OR IGNORE' * (table in OFTEN)} INTO {table}{values}{again}"


def rebuild(connection: Connection) -> None:
    """After a migration that emptied the index."""
    SqliteWriter(connection, Batch(at=datetime.now(UTC))).rebuild()


WIDE = 1000  # memories among which those that pass a filter are looked for first


class SqliteStore(Store):
    """One database file. A connection per thread, since SQLite's are not shared; one set of vectors per process."""

    columns = rows.COLUMNS.format("json_group_array(json_array(e.name, e.type))")
    stored, order = "v.data", "v.id"
    derived = (
        ("full-text index", "memories", "indexed", "count(*) FROM memories_fts_docsize"),
        ("full-text index", "spans", "indexed", "count(*) FROM spans_fts_docsize"),
    )
    unreadable = UNREADABLE

    def __init__(self, path: Path, timeout: float = 30.0) -> None:
        super().__init__()
        self.path = path
        self.timeout = timeout
        self._local = threading.local()
        # Weak, so that the connection of a thread is closed when the thread ends.
        self._connections = weakref.WeakSet[Connection]()
        self._lock = threading.Lock()
        self._held: dict[Index, VectorIndex] = {}
        _ = (
            self.connection
        )  # errors about the file come when it is opened, not at the first question

    @property
    def connection(self) -> Connection:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = connect(self.path, self.timeout, rebuild)
            self._local.connection = connection
            with self._lock:
                self._connections.add(connection)
        return connection

    def close(self) -> None:
        with self._lock:
            connections = list(self._connections)
            self._connections.clear()
        # Closed already, damaged or read-only: then there is nothing to scrub.
        with suppress(apsw.Error):
            if connections:
                database.scrub(connections[0], 0.0)
        for connection in connections:
            connection.close()
        self._local = threading.local()

    def _run(self, sql: str, *values: Any) -> list[Any]:
        with translate_errors(self.path):
            return list(self.connection.execute(translate(sql), bindings(values)))

    def _last_key(self) -> int:
        # From a table of its own, so that damage among the memories does not hide it.
        found = self._run("SELECT seq FROM sqlite_sequence WHERE name = 'memories'")
        return int(found[0][0]) if found else 0

    # Writing

    def _write_in(self, batch: Batch, action: Callable[[Writer], Result]) -> Result:
        with translate_errors(self.path), immediate(self.connection, self.timeout):
            return action(SqliteWriter(self.connection, batch))

    def write(self, batch: Batch) -> Receipt:
        receipt = super().write(batch)
        if not self._scrub(PATIENCE if batch.purge else 0.0) and batch.purge:
            receipt = receipt._replace(hints=(LINGERING,))
        return receipt

    def reset(self, scopes: Scopes | None = None) -> int:
        removed = super().reset(scopes)
        self._scrub(PATIENCE)
        return removed

    def _scrub(self, patience: float) -> bool:
        with translate_errors(self.path):
            return database.scrub(self.connection, patience)

    # The signals of a search

    def _find_by_expression(self, query: Query, scopes: Keys, where: Where, limit: int) -> Rows:
        asked = expression(query, scopes)
        sql = (
            "SELECT f.rowid, -f.rank FROM memories_fts f CROSS JOIN memories m ON m.key = f.rowid"
            f" WHERE f.memories_fts MATCH ? AND f.rank MATCH '{RANK}' AND {where[0]} ORDER BY f.rank LIMIT ?"
        )
        return self._run(sql, asked, *where[1], limit) if asked else []

    def _find_by_words(self, query: Query, scopes: Keys, where: Where, limit: int) -> Rows:
        """FTS5's own rank reads every posting of every word to weigh it, which in a large database takes longer than all the
        rest of a search. Frequencies and lengths come in when the candidates are scored, so the weights are enough here."""
        inside, total = self._run(
            f"SELECT coalesce(sum(iif({within('id', scopes)}, memories, 0)), 0), coalesce(sum(memories), 0) FROM scopes"
        )[0]
        # Walking the list of a scope that is most of the database costs more than dropping the few rows of others.
        searched = () if inside * 2 >= total else scopes
        rare, pairs = alternatives(
            query, lambda words: self._document_counts(words, scopes), inside
        )
        weight: dict[int, float] = {}
        for group in (rare, pairs):
            for term, value in group:
                for (key,) in self._run(
                    "SELECT rowid FROM memories_fts WHERE memories_fts MATCH ?",
                    restrict(term, searched),
                ):
                    weight[key] = weight.get(key, 0.0) + value
            if len(weight) >= limit:
                break
        # Among equals the newest come first: keys rise, and the sort keeps the order it is given.
        ordered = sorted(sorted(weight, reverse=True), key=weight.__getitem__, reverse=True)
        best = [(key, weight[key]) for key in ordered[: limit * 2]]
        if inside == total and not self._hides(scopes):
            return best[:limit]
        seen = self._visible(best, where)
        if len(seen) * 2 < min(len(best), limit):
            return []  # forgotten ones crowd out the rest: the slow way looks behind them
        return [row for row in best if row[0] in seen][:limit]

    def _visible(self, found: Sequence[tuple[int, float]], where: Where) -> set[int]:
        """Those of the found memories that the filter shows: forgotten ones and those of other scopes may stand among them."""
        asked = f"SELECT m.key FROM memories m WHERE m.key = ANY(?) AND {where[0]}"
        return set(self._column(asked, [key for key, _ in found], *where[1]))

    def _hides(self, scopes: Keys) -> bool:
        """Whether any memory of these scopes is forgotten, replaced, bound to a time or quarantined."""
        sql = f"SELECT 1 FROM memories WHERE {within('scope', scopes)} AND ({rows.HIDDEN}) LIMIT 1"
        return bool(self._run(sql))

    def keyword_spans(self, query: Query, scopes: Scopes, limit: int) -> Scores:
        inside = self._scopes(scopes)
        asked = span_expression(query, inside)
        sql = (
            "SELECT p.id, -f.rank FROM spans_fts f CROSS JOIN spans p ON p.key = f.rowid"
            " WHERE f.spans_fts MATCH ? AND f.rank MATCH 'bm25(3.0, 1.0, 0.0)' ORDER BY f.rank LIMIT ?"
        )
        return self._run(sql, asked, limit) if asked and inside else []

    # Vectors

    def _vectors(self, which: Index = MEMORIES) -> VectorIndex:
        if which not in self._held:
            from bethink.store.vectors import VectorIndex  # brings NumPy; words do without

            self._held[which] = VectorIndex(self._run, *which[:2], codes_folder(self.path))
        return self._held[which]

    def embed_question(self, text: str, embedder: Embedder) -> Any:
        if embedder.model.startswith("hashing"):  # quicker made than read
            return embedder.query(text)
        from bethink.store.vectors import ask_once

        return ask_once(codes_folder(self.path), text, embedder)

    def nearest(self, vector: Any, model: str, filter: Filter, limit: int) -> Ranking:
        scopes = self._scopes(filter.scopes)
        held = self._vectors()
        looked = max(limit, WIDE) if filter.narrow else limit
        found = held.search(vector, model, scopes, looked)
        if not found or not (filter.narrow or self._hides(scopes)):
            return Ranking("vector", found)
        # What a filter lets through is mostly among the nearest; only otherwise is every memory of the scope asked about.
        seen = self._visible(found, rows.where(filter, scopes, by_key=True))
        enough = limit if filter.narrow else len(found) / 2
        if len(seen) >= enough or len(found) < looked:
            return Ranking("vector", tuple(row for row in found if row[0] in seen)[:limit])
        sql, values = rows.where(filter, scopes)
        allowed = self._column(f"SELECT m.key FROM memories m WHERE {sql}", *values)
        return Ranking("vector", held.search(vector, model, scopes, limit, allowed))

    def nearest_spans(self, vector: Any, model: str, scopes: Scopes, limit: int) -> Scores:
        found = self._vectors(TOPICS).search(vector, model, self._scopes(scopes), limit)
        sql = "SELECT key, id FROM spans WHERE key = ANY(?)"
        ids = dict(self._run(sql, [key for key, _ in found]))
        return [(ids[key], cosine) for key, cosine in found if key in ids]

    def cosines(self, keys: Keys, vector: Any, model: str, scopes: Scopes) -> Cosines:
        return self._vectors().cosines(vector, model, self._scopes(scopes), keys)

    # Care

    def _size(self) -> int:
        return database.size(self.path)

    def _check_database(self, deep: bool) -> Problems:
        return database.check_permissions(self.path) + database.check_file(self.connection, deep)

    def _count_damaged_vectors(self) -> int:
        unsound = (database.unsound_vectors(self.connection, which.table) for which in INDEX)
        return sum(map(len, unsound))

    def backup(self, path: str) -> int:
        with translate_errors(self.path):
            return database.backup(self.connection, Path(path))


@contextmanager
def open_copy(path: Path) -> Iterator[Store]:
    """A copy of a database file of this or an older version, brought to the newest schema. The file itself is only read."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="bethink-") as folder:
        copy = Path(folder) / "copy.db"
        database.copy_database(path, copy)
        with closing(SqliteStore(copy)) as store:
            yield store
