"""The SQLite file: opening it (permissions, pragmas, waiting for locks, migrations, translated errors), and looking after it (what is
wrong with it, a backup, no page that keeps what was purged).

The file is only ever touched through apsw. Opening it with `open()` or a second SQLite library in the same process would
silently drop SQLite's locks, so permissions are set by path and the file is created before SQLite first sees it.
"""

from __future__ import annotations

import os
import random
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
from apsw import Connection

from bethink.errors import (
    InvalidInput,
    StoreCorrupt,
    StoreError,
    StoreTooNew,
    translate_error,
    unstorable,
)
from bethink.store.base import Problem, Problems

SCHEMA = 6  # the number of the newest migration
APPLICATION = 0x52636F6C  # "Rcol", so that another program's database is never taken for ours
MIGRATIONS = Path(__file__).parent / "migrations" / "sqlite"
REINDEXED = (
    5  # the migration that empties the full-text index, which is then made anew from the texts
)
WAL_LIMIT = 16 * 1024 * 1024
# Among the facts about the database: pages of the file or of its log may still hold what was purged.
SCRUB = "scrub"

# SQLite up to 3.51.2 can corrupt a WAL database that several processes use.
OLDEST_SQLITE = 3_051_003


Rebuild = Callable[[Connection], object]


def connect(path: Path, timeout: float, rebuild: Rebuild) -> Connection:
    """A connection to the database at `path`, made if there is none, brought to the newest schema if it is older."""
    if apsw.SQLITE_VERSION_NUMBER < OLDEST_SQLITE:
        raise StoreError(
            f"SQLite {apsw.sqlite_lib_version()} can corrupt a shared database.",
            "pip install -U apsw",
        )
    _secure(path)
    with translate_errors(path):
        # Nothing can be put beside the file on a read-only file system, or in a folder of somebody else's.
        beside = os.access(path.parent, os.W_OK)
        writable = apsw.SQLITE_OPEN_READWRITE
        connection = Connection(str(path), writable) if beside else _open_unwritable(path)
        connection.set_busy_timeout(int(timeout * 1000))
        try:
            _prepare(connection, path, rebuild)
        except BaseException:
            connection.close()
            raise
        # Owner-only permissions for what proved to be ours. By path: an open and a close of the file itself would drop SQLite's locks.
        with suppress(OSError):  # the log may go while it is looked at
            for file in _list_exposed(path):
                if file.stat().st_uid == os.getuid():
                    file.chmod(0o600)
        return connection


def _open_unwritable(path: Path) -> Connection:
    """A connection for reading where SQLite cannot make the files that it coordinates readers and writers with."""
    log = Path(f"{path}-wal")
    if log.exists() and log.stat().st_size:
        raise StoreError(
            f"{path} was not closed, and what was written last cannot be read where nothing can be written.",
            f"Copy it with {log.name} to a folder of yours, and set `database` to the copy.",
        )
    return Connection(
        f"{path.absolute().as_uri()}?immutable=1",
        flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
    )


def copy_database(path: Path, copy: Path) -> None:
    """Writes all pages of a database into a new file, and nothing to the database."""
    with (
        translate_errors(path),
        closing(_open_foreign(path)) as source,
        closing(Connection(str(copy))) as target,
        target.backup("main", source, "main") as backup,
    ):
        backup.step()


# Other programs' databases


FOREIGN = Path(__file__).parent / "foreign"  # a query for each program whose memories are read


def list_programs() -> list[str]:
    return [file.stem for file in sorted(FOREIGN.glob("*.sql"))]


class ForeignDatabase:
    """Another program's database, of which nothing is changed: which tables it has, and what a query of ours finds in them.

    A query runs over a copy in memory. Views and virtual tables are not copied, because what they run is somebody else's code; nor
    are blobs, because texts are never in them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.columns: dict[str, list[str]] = {}
        with self._translate():
            self._connection = _open_foreign(path)
            self._connection.set_busy_timeout(5000)
            self._connection.pragma("trusted_schema", False)
            found = self._connection.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
                " AND sql NOT LIKE 'CREATE VIRTUAL%'"
            )
            for (name,) in list(found):
                about = self._connection.execute(f"PRAGMA table_info({_quote(name)})")
                self.columns[name] = [row[1] for row in about]

    def find_program(self) -> str | None:
        """The program whose query finds all the columns that it names."""
        for program in list_programs():
            with suppress(apsw.SQLError):
                list(self._query(program, filled=False))
                return program
        return None

    def read_program(self, program: str) -> Iterator[dict[str, Any]]:
        with self._translate():
            yield from self._query(program, filled=True)

    def _query(self, program: str, filled: bool) -> Iterator[dict[str, Any]]:
        script = (FOREIGN / f"{program}.sql").read_text("utf-8")
        with closing(Connection(":memory:")) as copy:
            for table, names in self.columns.items():
                copy.execute(f"CREATE TABLE {_quote(table)} ({', '.join(map(_quote, names))})")
                if filled and table in script:
                    marks = ", ".join("?" * len(names))
                    insert = f"INSERT INTO {_quote(table)} VALUES ({marks})"
                    copy.executemany(insert, self._read_table(table))
            cursor = copy.execute(script)
            for row in cursor:
                found = (column[0] for column in cursor.get_description())
                yield dict(zip(found, row, strict=True))

    def _read_table(self, table: str) -> Iterator[list[Any]]:
        """The rows of a table in their order. What is no text in the database's encoding becomes U+FFFD."""
        wanted = (
            f"CASE typeof({one}) WHEN 'text' THEN CAST({one} AS BLOB) WHEN 'blob' THEN NULL ELSE {one} END"
            for one in map(_quote, self.columns[table])
        )
        encoding = self._connection.pragma("encoding")
        for row in self._connection.execute(f"SELECT {', '.join(wanted)} FROM {_quote(table)}"):
            yield [
                one.decode(encoding, "replace") if isinstance(one, bytes) else one for one in row
            ]

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _translate(self) -> Iterator[None]:
        try:
            yield
        except apsw.Error as error:
            raise InvalidInput(
                f"The database {self.path} cannot be read: {error}. Nothing was taken in.",
                f"Mend a damaged one with `sqlite3 {self.path.name} .recover`; close the program that uses a busy one.",
            ) from error


def _open_foreign(path: Path) -> Connection:
    """A connection that writes nothing, not even beside the file: to read a database in WAL mode SQLite makes files there, unless it
    is told that nobody writes to it, which a missing log says."""
    with path.open("rb") as stream:
        header = stream.read(20)
    log = Path(f"{path}-wal")
    if header[18:19] == b"\x02" and not (log.exists() and log.stat().st_size):
        return _open_unwritable(path)
    return Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _prepare(connection: Connection, path: Path, rebuild: Rebuild) -> None:
    # First whether there is anything: another process may be making it, and puts its name on it in the same transaction.
    filled = connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").get
    version, owner = connection.pragma("user_version"), connection.pragma("application_id")
    if owner != APPLICATION and (filled or version or owner):
        raise StoreCorrupt(
            f"{path} is a database of another program.",
            "Choose another path with the `database` setting.",
        )
    # These hold for this connection only and write nothing.
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
        migrate(connection, migrations(), rebuild)


def migrations() -> list[str]:
    # By path and not by importlib.resources, whose import alone costs several milliseconds of every command.
    return [path.read_text("utf-8") for path in sorted(MIGRATIONS.glob("*.sql"))]


def migrate(connection: Connection, scripts: list[str], rebuild: Rebuild) -> None:
    """Applies what is missing, each script in a transaction of its own. Two processes may do this at once."""
    if connection.pragma("user_version") == 0:
        retry(lambda: connection.pragma("journal_mode", "WAL"))
    for number, script in enumerate(scripts, start=1):
        with immediate(connection):
            if connection.pragma("user_version") >= number:
                continue
            connection.execute(script)
            if number == REINDEXED:
                rebuild(connection)
            connection.pragma("application_id", APPLICATION)
            connection.pragma("user_version", number)


def _secure(path: Path) -> None:
    """Makes folder and file with owner-only permissions before SQLite first opens them."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.is_symlink() and path.exists() and path.stat().st_uid != os.getuid():
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
    """A write transaction that holds the lock from its first moment, so that it cannot fail half way for being late."""
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
    """Calls until no other process is in the way. SQLite's own waiting is not fair, so late-comers retry with jitter."""
    deadline = time.monotonic() + patience
    while True:
        try:
            action()
        except (apsw.BusyError, apsw.LockedError):
            if time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(0.005, 0.05))
        else:
            return


# SQLite's errors, ours for each, what is said of it and what to do next. The first that fits counts.
TRANSLATIONS = """
BusyError LockedError | StoreBusy | Another process is writing to {path} and did not finish in time. | Try again, or raise `busy_timeout`.
NotADBError | StoreCorrupt | {path} is not a Bethink database. | Choose another `database`, or move the file away.
CorruptError | StoreCorrupt | The database {path} is damaged: {error}. | `bethink doctor --fix` mends what is derived; else save what can be read with `bethink export -o FILE` and restore a backup.
FullError | StoreError | The disk that holds {path} is full; nothing was changed. | Free some space and try again.
ReadOnlyError | StoreError | The database {path} cannot be written: it is read-only. | Check the permissions of the file and its folder.
CantOpenError PermissionsError AuthError | StoreError | The database {path} cannot be opened: {error}. | Check that its folder exists and is yours.
IOError | StoreError | Reading or writing {path} failed: {error}; nothing was changed. | Check the disk and free space.
Error | StoreError | The database {path} could not do what was asked: {error}. | Run `bethink doctor --deep`.
"""


@contextmanager
def translate_errors(path: Path | str) -> Iterator[None]:
    """SQLite's errors as ours, each with what to do next."""
    try:
        yield
    except apsw.Error as error:
        raise translate_error(TRANSLATIONS, apsw, error, path=path, error=error) from error
    except UnicodeDecodeError as error:
        raise StoreCorrupt(
            f"The database {path} is damaged: it holds text that is none.",
            "Run `bethink doctor --deep`.",
        ) from error
    except UnicodeEncodeError as error:
        raise unstorable(error) from error


# Looking after it


def _files(path: Path, *suffixes: str) -> list[Path]:
    return [file for suffix in suffixes if (file := Path(f"{path}{suffix}")).exists()]


def size(path: Path) -> int:
    """Bytes on disk, the write-ahead log included."""
    return sum(file.stat().st_size for file in _files(path, "", "-wal"))


def _list_exposed(path: Path) -> list[Path]:
    """Those files of a database that others than their owner can read."""
    found = _files(path, "", "-wal", "-shm") if os.name == "posix" else []
    return [file for file in found if stat.S_IMODE(file.stat().st_mode) & 0o077]


def check_permissions(path: Path) -> Problems:
    said = "{} can be read by others (mode {:04o})."
    return [
        Problem("permissions", said.format(file, stat.S_IMODE(file.stat().st_mode)), "permissions")
        for file in _list_exposed(path)
    ]


def check_file(connection: Connection, deep: bool) -> Problems:
    """What is wrong with the pages, all of them if `deep`, and with the word indexes."""
    pragma = "PRAGMA integrity_check(20)" if deep else "PRAGMA quick_check(20)"
    verdict = [line for (line,) in connection.execute(pragma) if line != "ok"]
    problems = [Problem("database", line, "restore") for line in verdict]
    for table in ("memories_fts", "spans_fts"):
        try:
            connection.execute(f"INSERT INTO {table}({table}, rank) VALUES ('integrity-check', 0)")
        except apsw.ReadOnlyError:
            continue
        except (apsw.SQLError, apsw.CorruptError) as error:
            problems.append(Problem("full-text index", f"{table}: {error}.", "rebuild"))
    return problems


def unsound_vectors(connection: Connection, table: str) -> list[int]:
    """A vector has no hash of its own, but not every row of numbers can be one: see `vectors.sound`."""
    from bethink.store.vectors import sound

    found = connection.execute(
        f"SELECT v.id, CAST(v.data AS BLOB), d.dimensions FROM {table} v JOIN models d ON d.id = v.model"
    )
    return [id for id, data, dimensions in found if not sound(data, dimensions)]


@contextmanager
def claim_backup(path: Path) -> Iterator[Path]:
    """Where a backup is written until it is whole: never half a file under the final name."""
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


def backup(connection: Connection, path: Path) -> int:
    """A complete copy in one file, taken while others go on writing."""
    with claim_backup(path) as partial:
        partial.touch(0o600, exist_ok=False)
        connection.execute("VACUUM INTO ?", (str(partial),))
        # VACUUM does not copy it, and a restored backup must work as the original did.
        with closing(Connection(str(partial), apsw.SQLITE_OPEN_READWRITE)) as copy:
            copy.pragma("journal_mode", "WAL")
    return path.stat().st_size


def codes_folder(path: Path) -> Path:
    """Where the codes of a database's vectors lie, which a new process takes from there."""
    return Path(f"{path}.codes")


def scrub(connection: Connection, patience: float) -> bool:
    """Where something was purged: brings the pages without it into the file and empties the write-ahead log, which holds the old ones.
    (Freed pages, and words in the index, are overwritten as they are freed.) False when another process still reads an older state:
    then the purge stays noted in `meta`, and each later write, and closing, tries again without waiting."""
    if not connection.execute("SELECT 1 FROM meta WHERE key = ?", (SCRUB,)).get:
        return True
    with suppress(OSError):  # they are made anew when they are missed
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
