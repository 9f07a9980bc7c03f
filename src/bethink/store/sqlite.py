"""The SQLite store: one file, one connection per thread.

`base`, `rules` and `transfer` contain the code shared by all stores. This module adds the word
index and the vectors of SQLite, opening the file (permissions, pragmas, locks, migrations,
translated errors) and maintaining it (checks, backups, and removing purged text from its pages).

The file is only ever touched through apsw. Opening it with `open()` or a second SQLite library in
the same process would silently drop SQLite's locks, so permissions are set by path and the file is
created before SQLite first sees it.
"""

from __future__ import annotations

import array
import os
import stat
import time
from _thread import _local, allocate_lock  # `threading` and `weakref` take 0.7 ms of a search
from _weakrefset import WeakSet
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
from apsw import Connection

from bethink import system
from bethink.errors import StoreCorrupt, StoreError, StoreTooNew, translate_error, unstorable
from bethink.model import Batch, Filter, Query, Ranking, Receipt
from bethink.store import rows
from bethink.store.base import Problem, Problems, Result, Scores, Store, now
from bethink.store.places import MEMORIES, OFTEN, TOPICS, Index, Texts
from bethink.store.rows import Cosines, Keys, Row, Rows, Scopes, Where, within
from bethink.store.rules import Writer
from bethink.store.words import (
    RANK,
    alternatives,
    expression,
    restrict,
    scope_token,
    span_expression,
)

if TYPE_CHECKING:
    from bethink.embed.base import Embedder
    from bethink.store.vectors import VectorIndex

WITHOUT_LOCKS = "unix-none" if os.name == "posix" else "win32-none"  # a VFS of SQLite
APPLICATION = 0x52636F6C  # "Rcol", to recognise our own databases
MIGRATIONS = Path(__file__).parent / "migrations" / "sqlite"
SCHEMA = len(list(MIGRATIONS.iterdir()))  # the number of the newest migration
# The migration that empties the full-text index, which is then rebuilt from the texts.
REINDEXED = 5
WAL_LIMIT = 16 * 1024 * 1024
# Key in `meta`: pages of the file or its log may still contain purged text.
SCRUB = "scrub"

# SQLite up to 3.51.2 can corrupt a WAL database that several processes use.
OLDEST_SQLITE = 3_051_003
PURGE_PATIENCE = 2.0  # seconds that a purge waits for other readers; set by hand
LINGERING = (
    "The memory is gone from every answer, but another process is still reading, and until it ends the old text stays in the"
    " database file. The next write after that takes it out."
)
_UNREADABLE = (StoreError, apsw.CorruptError, apsw.SQLError, apsw.NoMemError, UnicodeDecodeError)
# Tables without a column `scope` in SQLite, where one person owns the whole database
UNSCOPED = frozenset(
    "history entities memory_entities relations tombstones embedding_cache meta".split()
)
FULL_TEXT = ("memories_fts", "spans_fts")
SCALARS = (str, int, float, bytes, type(None))
# Statements that add words to a full-text index and remove the same words.
_INDEX = {
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
    """Convert parameters for apsw: a collection becomes a table."""
    return [value if isinstance(value, SCALARS) else _table(tuple(value)) for value in values]


def _table(values: tuple[Any, ...]) -> Any:
    filled = values or (-1,)  # a table must not be empty, and no row has this number
    return apsw.carray(array.array("q", filled) if isinstance(filled[0], int) else filled)


class SqliteWriter(Writer):
    """Write to SQLite."""

    entity_scope = "0"  # one person owns the whole database

    def __init__(self, connection: Connection, batch: Batch) -> None:
        super().__init__(batch, batch.actor)
        self.connection = connection
        self.numbers: dict[str, int] = {}
        self.purged = False

    def run(self, sql: str, *values: object) -> Rows:
        return list(self.connection.execute(translate(sql), bindings(values)))

    def put(self, table: str, new: Sequence[Row], key: str = "") -> None:
        if not new:
            return
        names = [name for name in new[0] if name != "scope" or table not in UNSCOPED]
        self.connection.executemany(
            _insert(table, tuple(names), key), ([row[name] for name in names] for row in new)
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
        self._update_index(_INDEX[which], texts)

    def drop_words(self, which: Index, keys: Keys) -> None:
        self._update_index(FORGET[which], self.texts(which, keys))

    def _update_index(self, statement: str, texts: Sequence[Texts]) -> None:
        indexed = [(text.key, *text.columns, scope_token(text.scope)) for text in texts]
        self.connection.executemany(statement, indexed)

    # Leaving

    def clear_derived(self) -> None:
        for table in FULL_TEXT:
            self.run(f"INSERT INTO {table}({table}) VALUES ('delete-all')")
        if self.one("SELECT 1 FROM models LIMIT 1"):
            for which in (MEMORIES, TOPICS):
                unsound = unsound_vectors(self.connection, which.table)
                self.run(f"DELETE FROM {which.table} WHERE id = ANY(?)", unsound)

    def note_purge(self) -> None:
        self.note_fact(SCRUB, "")
        self.purged = True


@cache
def _insert(table: str, names: tuple[str, ...], key: str) -> str:
    values = f"({', '.join(names)}) VALUES ({rows.marks(names)})"
    again = rows.on_conflict(table, key, names) if key else ""
    return f"INSERT{' OR IGNORE' * (table in OFTEN)} INTO {table}{values}{again}"


# Nearest memories that a filter is applied to first, and then before every memory of the scope is looked at. An `add` to 5,000
# memories: bench/LOG.md, 2026-11-19.
CLOSE, WIDE = 64, 1000


class SqliteStore(Store):
    """One database file, with a connection per thread and one set of vectors per process."""

    columns = rows.COLUMNS.format("json_group_array(json_array(e.name, e.type))")
    signature = "m.metadata ->> 'signature'"
    causes = "json_each(m.metadata, '$.causes')"
    checks = """
full-text index | rebuild | {} memories, but {} are indexed. | SELECT a.n, b.n FROM (SELECT count(*) AS n FROM memories) a, (SELECT count(*) AS n FROM memories_fts_docsize) b WHERE a.n <> b.n
full-text index | rebuild | {} spans, but {} are indexed. | SELECT a.n, b.n FROM (SELECT count(*) AS n FROM spans) a, (SELECT count(*) AS n FROM spans_fts_docsize) b WHERE a.n <> b.n
"""
    unreadable = _UNREADABLE

    def __init__(self, path: Path, timeout: float = 30.0) -> None:
        super().__init__()
        self.path = path
        self.timeout = timeout
        self._local = _local()
        # Weak, so that the connection of a thread is closed when the thread ends.
        self._connections = WeakSet[Connection]()
        self._lock = allocate_lock()
        self._indexes: dict[Index, VectorIndex] = {}
        # Raise errors about the file on opening, not at the first question.
        self.run("SELECT 1")

    @property
    def connection(self) -> Connection:
        if not hasattr(self._local, "connection"):
            self._local.connection = connect(self.path, self.timeout)
            with self._lock:
                self._connections.add(self._local.connection)
        connection: Connection = self._local.connection
        return connection

    def close(self) -> None:
        with self._lock:
            connections = list(self._connections)
            self._connections.clear()
        # There is nothing to scrub in a closed, damaged or read-only database.
        with suppress(apsw.Error):
            if connections:
                scrub(connections[0], 0.0)
        for connection in connections:
            connection.close()
        self._local = _local()

    def run(self, sql: str, *values: object) -> Rows:
        with translate_errors(self.path):
            return list(self.connection.execute(translate(sql), bindings(values)))

    def _last_key(self) -> int:
        # From a separate table, so that damage to the memories does not hide it.
        found = self.run("SELECT seq FROM sqlite_sequence WHERE name = 'memories'")
        return int(found[0][0]) if found else 0

    # Writing

    def _write_in(self, batch: Batch, action: Callable[[Writer], Result]) -> Result:
        with translate_errors(self.path):
            with immediate(self.connection, self.timeout):
                writer = SqliteWriter(self.connection, batch)
                result = action(writer)
            scrub(self.connection, PURGE_PATIENCE if writer.purged else 0.0)
        return result

    def write(self, batch: Batch) -> Receipt:
        receipt = super().write(batch)
        if batch.purge and not scrub(self.connection, 0.0):
            receipt = receipt._replace(hints=(LINGERING,))
        return receipt

    # The signals of a search

    def _find_by_expression(self, query: Query, scopes: Keys, where: Where, limit: int) -> Rows:
        asked = expression(query, scopes)
        sql = (
            "SELECT f.rowid, -f.rank FROM memories_fts f CROSS JOIN memories m ON m.key = f.rowid"
            f" WHERE f.memories_fts MATCH ? AND f.rank MATCH '{RANK}' AND {where[0]} ORDER BY f.rank LIMIT ?"
        )
        return self.run(sql, asked, *where[1], limit) if asked else []

    def _find_by_words(self, query: Query, scopes: Keys, where: Where, limit: int) -> Rows:
        """Rank by word weights alone, without frequencies and lengths.

        FTS5's own rank reads every posting of every word, which in a large database takes longer
        than the rest of a search. Frequencies and lengths are added when the candidates are scored.
        """
        inside, total = self.run(
            f"SELECT coalesce(sum(iif({within('id', scopes)}, memories, 0)), 0), coalesce(sum(memories), 0) FROM scopes"
        )[0]
        # Walking the list of a scope that is most of the database costs more than dropping the few rows of others.
        searched = () if inside * 2 >= total else scopes
        rare, pairs = alternatives(
            query, lambda words: self._document_counts(words, scopes), inside
        )
        weight = defaultdict[int, float](float)
        holding = "SELECT rowid FROM memories_fts WHERE memories_fts MATCH ?"
        for group in (rare, pairs):
            for term, value in group:
                for key in self.column(holding, restrict(term, searched)):
                    weight[key] += value
            if len(weight) >= limit:
                break
        # Among equals the newest come first: keys grow with time, and the sort is stable.
        ordered = sorted(sorted(weight, reverse=True), key=weight.__getitem__, reverse=True)
        best = [(key, weight[key]) for key in ordered[: limit * 2]]
        if inside == total and not self._hides(scopes):
            return best[:limit]
        seen = self._visible(best, where)
        if len(seen) * 2 < min(len(best), limit):
            return []  # hidden memories crowd out the rest: use the slow way, which skips them
        return [row for row in best if row[0] in seen][:limit]

    def _visible(self, found: Sequence[tuple[int, float]], where: Where) -> set[int]:
        """Return those of the found memories that pass the filter."""
        asked = f"SELECT m.key FROM memories m WHERE m.key = ANY(?) AND {where[0]}"
        return set(self.column(asked, [key for key, _ in found], *where[1]))

    def _hides(self, scopes: Keys) -> bool:
        """Return True if any memory of these scopes is forgotten, replaced, time-limited or quarantined."""
        sql = f"SELECT 1 FROM memories WHERE {within('scope', scopes)} AND ({rows.HIDDEN}) LIMIT 1"
        return bool(self.run(sql))

    def keyword_spans(self, query: Query, scopes: Scopes, limit: int) -> Scores:
        inside = self._scopes(scopes)
        asked = span_expression(query, inside)
        sql = (
            "SELECT p.id, -f.rank FROM spans_fts f CROSS JOIN spans p ON p.key = f.rowid"
            " WHERE f.spans_fts MATCH ? AND f.rank MATCH 'bm25(3.0, 1.0, 0.0)' ORDER BY f.rank LIMIT ?"
        )
        return self.run(sql, asked, limit) if asked and inside else []

    # Vectors

    def _vectors(self, which: Index = MEMORIES) -> VectorIndex:
        if which not in self._indexes:
            # Imported late: keyword search does not need NumPy.
            from bethink.store.vectors import VectorIndex

            self._indexes[which] = VectorIndex(self.run, *which[:2], codes_folder(self.path))
        return self._indexes[which]

    def embed_question(self, text: str, embedder: Embedder) -> Any:
        if getattr(embedder, "quick", False):  # faster to compute than to read
            return embedder.query(text)
        from bethink.store.vectors import ask_once

        return ask_once(codes_folder(self.path), text, embedder)

    def nearest(self, vector: Collection[float], model: str, filter: Filter, limit: int) -> Ranking:
        scopes = self._scopes(filter.scopes)
        vectors = self._vectors()
        narrow = rows.is_narrow(filter)
        if not narrow and not self._hides(scopes):
            return vectors.search(vector, model, scopes, limit)
        # Matching memories are mostly among the nearest. Only otherwise are more looked at, or every memory of the scope.
        for looked in (max(limit, CLOSE), max(limit, WIDE)) if narrow else (limit,):
            found = vectors.search(vector, model, scopes, looked)
            seen = self._visible(found, rows.where(filter, scopes, by_key=True))
            enough = limit if narrow else len(found) / 2
            if len(seen) >= enough or len(found) < looked:
                return tuple(row for row in found if row[0] in seen)[:limit]
        sql, values = rows.where(filter, scopes)
        allowed = self.column(f"SELECT m.key FROM memories m WHERE {sql}", *values)
        return vectors.search(vector, model, scopes, limit, allowed)

    def nearest_spans(
        self, vector: Collection[float], model: str, scopes: Scopes, limit: int
    ) -> Scores:
        found = self._vectors(TOPICS).search(vector, model, self._scopes(scopes), limit)
        sql = "SELECT key, id FROM spans WHERE key = ANY(?)"
        ids = dict(self.run(sql, [key for key, _ in found]))
        return [(ids[key], cosine) for key, cosine in found if key in ids]

    def cosines(self, keys: Keys, vector: Collection[float], model: str, scopes: Scopes) -> Cosines:
        return self._vectors().cosines(vector, model, self._scopes(scopes), keys)

    # Care

    def _size(self) -> int:
        """Bytes on disk, including the write-ahead log."""
        return sum(file.stat().st_size for file in _files(self.path, "", "-wal"))

    def _check_database(self, deep: bool) -> Problems:
        """Check permissions, pages (all of them if `deep`) and the word indexes of the file."""
        problems = [
            Problem("permissions", f"{file} can be read by others.", "permissions")
            for file in _list_exposed(self.path)
        ]
        pragma = "PRAGMA integrity_check(20)" if deep else "PRAGMA quick_check(20)"
        verdict = [line for (line,) in self.connection.execute(pragma) if line != "ok"]
        problems += [Problem("database", line, "restore") for line in verdict]
        for table in FULL_TEXT:
            ask = f"INSERT INTO {table}({table}, rank) VALUES ('integrity-check', 0)"
            try:
                with suppress(apsw.ReadOnlyError):
                    self.connection.execute(ask)
            except (apsw.SQLError, apsw.CorruptError) as error:
                problems.append(Problem("full-text index", f"{table}: {error}.", "rebuild"))
        unsound = [unsound_vectors(self.connection, which.table) for which in _INDEX if deep]
        if number := sum(map(len, unsound)):
            message = f"{number} vectors are damaged."
            problems.append(Problem("vectors", message, "reindex"))
        return problems

    def backup(self, path: str) -> int:
        """Write a complete copy to one file while others go on writing."""
        target = Path(path)
        with translate_errors(target), claim_backup(target) as partial:
            partial.touch(0o600, exist_ok=False)
            self.connection.execute("VACUUM INTO ?", (str(partial),))
            # VACUUM does not copy the journal mode, and a restored backup must work like the original.
            with closing(Connection(str(partial), apsw.SQLITE_OPEN_READWRITE)) as copy:
                copy.pragma("journal_mode", "WAL")
        return target.stat().st_size


# Opening the file


def connect(path: Path, timeout: float) -> Connection:
    """Connect to the database at `path`; create it if necessary and migrate it to the newest schema."""
    if apsw.SQLITE_VERSION_NUMBER < OLDEST_SQLITE:
        raise StoreError(
            f"SQLite {apsw.sqlite_lib_version()} can corrupt a shared database.",
            "pip install -U apsw",
        )
    _secure(path)
    with translate_errors(path):
        # No files can be created next to it on a read-only file system or in another user's folder.
        beside = os.access(path.parent, os.W_OK)
        writable = apsw.SQLITE_OPEN_READWRITE
        connection = Connection(str(path), writable) if beside else _open_unwritable(path)
        connection.set_busy_timeout(int(timeout * 1000))
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
        # Owner-only permissions for our own files. By path: opening and closing the file itself would drop SQLite's locks.
        with suppress(OSError):  # the log may disappear meanwhile
            for file in _list_exposed(path):
                if system.is_mine(file.stat().st_uid):
                    file.chmod(0o600)
        return connection


def _open_unwritable(path: Path) -> Connection:
    """Open a connection for reading where SQLite cannot create its -wal and -shm files.

    If a process did not close the database, its last writes are in the log. While the shared index
    of the log exists, another process may still write, and SQLite reads through that index. Without
    it no process has the database open: no lock is needed, and with an exclusive connection SQLite
    keeps an index of the log in memory.
    """
    address, flags = path.absolute().as_uri(), apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    if not _has_log(path):
        return Connection(f"{address}?immutable=1", flags=flags)
    if Path(f"{path}-shm").exists():
        return Connection(address, flags=flags)
    connection = Connection(f"{address}?vfs={WITHOUT_LOCKS}", flags=flags)
    connection.pragma("locking_mode", "EXCLUSIVE")
    return connection


def _has_log(path: Path) -> bool:
    """Return True if the write-ahead log may contain data that is not in the file."""
    log = Path(f"{path}-wal")
    return log.exists() and log.stat().st_size > 0


def open_unchanged(path: Path) -> Connection:
    """Open a connection that writes nothing, not even files next to the database.

    In WAL mode SQLite creates such files even for reading, unless it is opened as immutable, which
    is safe without a log, or the folder is not writable.
    """
    with path.open("rb") as stream:
        header = stream.read(20)
    in_wal_mode = header[18:19] == b"\x02"
    if in_wal_mode and not (_has_log(path) and os.access(path.parent, os.W_OK)):
        return _open_unwritable(path)
    return Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)


def _prepare(connection: Connection, path: Path) -> None:
    # Check for tables first: a process that is creating the database sets the application id in the same transaction.
    filled = connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").get
    version, owner = connection.pragma("user_version"), connection.pragma("application_id")
    if owner != APPLICATION and (filled or version or owner):
        raise StoreCorrupt(
            f"{path} is a database of another program.",
            "Choose another path with the `database` setting.",
        )
    # These apply to this connection only and write nothing.
    connection.pragma("synchronous", "FULL")
    connection.pragma("foreign_keys", True)
    connection.pragma("secure_delete", True)
    connection.pragma("journal_size_limit", WAL_LIMIT)
    connection.pragma("temp_store", "MEMORY")
    connection.pragma("cache_size", -64_000)
    if version > SCHEMA:
        raise StoreTooNew(
            f"{path} was written by a newer Bethink (schema {version}; this one knows {SCHEMA}).",
            "Upgrade with `pip install -U bethink`.",
        )
    if version < SCHEMA:
        migrate(connection)


def migrations() -> list[str]:
    # By path and not by importlib.resources, whose import alone costs several milliseconds of every command.
    return [path.read_text("utf-8") for path in sorted(MIGRATIONS.glob("*.sql"))]


def migrate(connection: Connection) -> None:
    """Apply missing migrations, each in a separate transaction. Two processes may do this at once."""
    if connection.pragma("user_version") == 0:
        retry(lambda: connection.pragma("journal_mode", "WAL"))
    for number, script in enumerate(migrations(), start=1):
        with immediate(connection):
            if connection.pragma("user_version") >= number:
                continue
            connection.execute(script)
            if number == REINDEXED:
                SqliteWriter(connection, now()).rebuild()
            connection.pragma("application_id", APPLICATION)
            connection.pragma("user_version", number)


def _secure(path: Path) -> None:
    """Create folder and file with owner-only permissions before SQLite first opens them."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.is_symlink() and path.exists() and not system.is_mine(path.stat().st_uid):
            raise StoreError(
                f"{path} is a link to a file of another user.",
                "Remove the link, or choose another `database`.",
            )
        if path.is_dir():
            raise StoreError(
                f"{path} is a directory, not a database.", "Point the `database` setting at a file."
            )
        if not path.exists():
            with suppress(FileExistsError):  # another process was first
                path.touch(0o600, exist_ok=False)
    except OSError as error:
        raise StoreError(
            f"The database {path} cannot be created: {error.strerror or error}.",
            "Check the folder's permissions and free space.",
        ) from error


@contextmanager
def immediate(connection: Connection, patience: float = 30.0) -> Iterator[None]:
    """Run a write transaction that takes the lock at its start, so that it cannot fail half way."""
    retry(lambda: connection.execute("BEGIN IMMEDIATE"), patience)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A full disk makes SQLite roll back by itself; a second ROLLBACK would hide the reason.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def retry(action: Callable[[], object], patience: float = 30.0) -> None:
    """Repeat an action until no other process holds a lock.

    SQLite's own waiting is not fair, so late-comers retry with jitter.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            action()
        except (apsw.BusyError, apsw.LockedError):
            if time.monotonic() > deadline:
                raise
            from random import uniform

            time.sleep(uniform(0.005, 0.05))
        else:
            return


_ROOM_TO_READ = 100_000  # bytes; the index begins with 32 KB

# SQLite errors, our error, its message and its hint. The first match counts.
_TRANSLATIONS = """
BusyError LockedError | StoreBusy | Another process is writing to {path} and did not finish in time. | Try again, or raise `busy_timeout`.
NotADBError | StoreCorrupt | {path} is not a Bethink database. | Choose another `database`, or move the file away.
CorruptError | StoreCorrupt | The database {path} is damaged: {error}. | `bethink doctor --fix` repairs indexes; if that fails, save what can be read with `bethink export -o FILE` and restore a backup.
FullError | StoreError | The disk that holds {path} is full; nothing was changed. | Free some space and try again.
ReadOnlyError | StoreReadOnly | The database {path} cannot be written: it is read-only. | Check the permissions of the file and its folder.
CantOpenError PermissionsError AuthError | StoreError | The database {path} cannot be opened: {error}. | Check that its folder exists and is yours.
IOError | StoreError | Reading or writing {path} failed: {error}; nothing was changed. | Check the disk and free space.
Error | StoreError | The database {path} failed: {error}. | Run `bethink doctor --deep`.
"""


@contextmanager
def translate_errors(path: Path | str) -> Iterator[None]:
    """Translate SQLite errors into ours, each with a hint."""
    try:
        yield
    except apsw.Error as error:
        found = error
        if isinstance(error, apsw.IOError) and _is_disk_full(path):
            found = apsw.FullError(str(error))
        raise translate_error(_TRANSLATIONS, apsw, found, path=path, error=error) from error
    except UnicodeDecodeError as error:
        raise StoreCorrupt(
            f"The database {path} is damaged: it contains invalid text.",
            "Run `bethink doctor --deep`.",
        ) from error
    except UnicodeEncodeError as error:
        raise unstorable(error) from error


def _is_disk_full(path: Path | str) -> bool:
    """Return True if the disk has no room for the index of the write-ahead log, which reading needs too."""
    from shutil import disk_usage

    with suppress(OSError):
        return disk_usage(Path(path).parent).free < _ROOM_TO_READ
    return False


# Looking after the file


def _files(path: Path, *suffixes: str) -> list[Path]:
    return [file for suffix in suffixes if (file := Path(f"{path}{suffix}")).exists()]


def _list_exposed(path: Path) -> list[Path]:
    """Files of a database that others than their owner can read."""
    found = _files(path, "", "-wal", "-shm") if os.name == "posix" else []
    return [file for file in found if stat.S_IMODE(file.stat().st_mode) & 0o077]


def unsound_vectors(connection: Connection, table: str) -> list[int]:
    """Find damaged vectors. They have no hash, but not every row of numbers is a vector.

    See `vectors.sound`.
    """
    from bethink.store.vectors import sound

    found = connection.execute(
        f"SELECT v.id, CAST(v.data AS BLOB), d.dimensions FROM {table} v JOIN models d ON d.id = v.model"
    )
    return [id for id, data, dimensions in found if not sound(data, dimensions)]


@contextmanager
def claim_backup(path: Path) -> Iterator[Path]:
    """Yield a temporary path for a backup, and rename the finished file to `path`."""
    if path.exists():
        raise StoreError(
            f"{path} exists already; a backup does not overwrite.",
            "Name another file, or remove that one.",
        )
    if not path.parent.is_dir():
        raise StoreError(f"The folder {path.parent} does not exist.", f"mkdir -p {path.parent}")
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    try:
        yield partial
        partial.replace(path)
    except OSError as error:
        raise StoreError(
            f"The backup {path} cannot be written: {error.strerror}.",
            "Check the folder's permissions and free space.",
        ) from error
    finally:
        for file in _files(partial, "", "-wal", "-shm"):
            file.unlink()


def codes_folder(path: Path) -> Path:
    """Folder with the codes of a database's vectors, for new processes to load."""
    return Path(f"{path}.codes")


def scrub(connection: Connection, patience: float) -> bool:
    """Remove purged text from the file and its write-ahead log.

    A checkpoint writes the new pages to the file and empties the log, which contains the old ones.
    SQLite overwrites freed pages and index entries by itself. Returns False if another process
    still reads an older state. The purge then stays noted in `meta`, and each later write, and
    closing, tries again without waiting.
    """
    if not connection.execute("SELECT 1 FROM meta WHERE key = ?", (SCRUB,)).get:
        return True
    with suppress(OSError):  # they are rebuilt when needed
        for file in codes_folder(Path(connection.filename)).iterdir():
            file.unlink(missing_ok=True)
    before = connection.pragma("busy_timeout")
    connection.set_busy_timeout(int(patience * 1000))
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        connection.execute("DELETE FROM meta WHERE key = ?", (SCRUB,))
    except (apsw.BusyError, apsw.LockedError):
        return False
    finally:
        connection.set_busy_timeout(before)
    return True


@contextmanager
def open_copy(path: Path) -> Iterator[Store]:
    """Open a copy of a database file, migrated to the newest schema. The file itself is only read."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="bethink-") as folder:
        copy = Path(folder) / "copy.db"
        with (
            translate_errors(path),
            closing(open_unchanged(path)) as source,
            closing(Connection(str(copy))) as target,
            target.backup("main", source, "main") as backup,
        ):
            backup.step()
        with closing(SqliteStore(copy)) as store:
            yield store
