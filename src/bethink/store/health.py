"""Looking after a SQLite file: what is wrong with it, a backup, and no page that keeps what was purged."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import apsw

from bethink.errors import StoreError
from bethink.store.base import Problem, compare_numbers

# Among the facts about the database: pages of the file or of its log may still hold what was purged.
SCRUB = "scrub"


def _files(path: Path, *suffixes: str) -> list[Path]:
    return [file for suffix in suffixes if (file := Path(f"{path}{suffix}")).exists()]


def size(path: Path) -> int:
    """Bytes on disk, the write-ahead log included."""
    return sum(file.stat().st_size for file in _files(path, "", "-wal"))


def check_permissions(path: Path) -> list[Problem]:
    return [
        Problem(
            "permissions",
            f"{file} can be read by others (mode {stat.S_IMODE(file.stat().st_mode):04o}).",
            "permissions",
        )
        for file in _files(path, "", "-wal", "-shm")
        if stat.S_IMODE(file.stat().st_mode) & 0o077 and os.name == "posix"
    ]


def check_file(connection: apsw.Connection, deep: bool) -> list[Problem]:
    """What is wrong with the pages, all of them if `deep`, and with what is derived from the rows."""
    pragma = "PRAGMA integrity_check(20)" if deep else "PRAGMA quick_check(20)"
    verdict = [line for (line,) in connection.execute(pragma) if line != "ok"]
    return [Problem("database", line, "restore") for line in verdict] + _check_indexes(connection)


def _check_indexes(connection: apsw.Connection) -> list[Problem]:
    """The derived parts must agree with the rows they were made from."""
    run = connection.execute
    problems = []
    for table in ("memories_fts", "spans_fts"):
        try:
            run(f"INSERT INTO {table}({table}, rank) VALUES ('integrity-check', 0)")
        except apsw.ReadOnlyError:
            continue
        except apsw.SQLError as error:
            problems.append(Problem("full-text index", f"{table}: {error}", "rebuild"))
        except apsw.CorruptError:
            problems.append(Problem("full-text index", f"{table} is damaged.", "rebuild"))
    numbers = run(
        "SELECT (SELECT count(*) FROM memories), (SELECT count(*) FROM memories_fts_docsize),"
        " (SELECT coalesce(sum(memories), 0) FROM scopes), (SELECT count(*) FROM spans),"
        " (SELECT count(*) FROM spans_fts_docsize),"
        " (SELECT count(*) FROM vectors v WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.key = v.memory))"
    ).get
    return problems + compare_numbers(*numbers)


def unsound_vectors(connection: apsw.Connection, table: str) -> list[int]:
    """A vector has no hash of its own, but not every row of numbers can be one: see `vectors.sound`."""
    from bethink.store.vectors import sound

    found = connection.execute(
        f"SELECT v.id, CAST(v.data AS BLOB), d.dimensions FROM {table} v JOIN models d ON d.id = v.model"
    )
    return [id for id, data, dimensions in found if not sound(data, dimensions)]


def claim_backup(path: Path) -> Path:
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
    return partial


def backup(connection: apsw.Connection, path: Path) -> int:
    """A complete copy in one file, taken while others go on writing."""
    partial = claim_backup(path)
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        connection.execute("VACUUM INTO ?", (str(partial),))
        copy = apsw.Connection(str(partial), flags=apsw.SQLITE_OPEN_READWRITE)
        # VACUUM does not copy it, and a restored backup must work as the original did.
        copy.pragma("journal_mode", "WAL")
        copy.close()
        partial.replace(path)
    except OSError as error:
        raise StoreError(
            f"The backup {path} cannot be written: {error.strerror}.",
            "Check the folder's permissions and free space.",
        ) from error
    finally:
        partial.unlink(missing_ok=True)
    return path.stat().st_size


def scrub(connection: apsw.Connection, patience: float) -> bool:
    """Where something was purged: brings the pages without it into the file and empties the write-ahead log, which holds the old ones.
    (Freed pages, and words in the index, are overwritten as they are freed.) False when another process still reads an older state:
    then the purge stays noted in `meta`, and each later write, and closing, tries again without waiting."""
    if not connection.execute("SELECT 1 FROM meta WHERE key = ?", (SCRUB,)).get:
        return True
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
