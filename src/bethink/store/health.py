"""Looking after a SQLite database: numbers about it, checks, rebuilding what is derived, backup, reset."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw

from bethink.errors import StoreError
from bethink.store import leaving, rows, spans
from bethink.store.base import Overview, Problem
from bethink.store.writer import Writer, index_tags
from bethink.types import Batch

Run = Callable[..., list[Any]]

# In the words of the indexes `memories_hidden` and `memories_unvectored`, so that these are used.
FORGOTTEN = f"({rows.HIDDEN}) AND m.deleted_at IS NOT NULL"
UNWANTED = (
    "instr(m.metadata, '\"vector_index\"') > 0 AND json_extract(m.metadata, '$.vector_index') IS 0"
)
BARE = "NOT EXISTS (SELECT 1 FROM vectors v WHERE v.memory = m.key)"


def overview(run: Run, path: Path, scopes: Sequence[int] | None) -> Overview:
    """Numbers about the database. They are counted in indexes; only rows of hidden memories, which are few, are read."""
    inside = "1" if scopes is None else f"m.scope IN ({','.join(map(str, scopes)) or 'NULL'})"
    each = f"SELECT s.key, m.kind, count(*) FROM memories m {{}} JOIN scopes s ON s.id = m.scope WHERE {inside}"
    by_scope, by_kind, deleted = Counter[str](), Counter[str](), 0
    for scope, kind, number in run(each.format("INDEXED BY memories_kind") + " GROUP BY 1, 2"):
        by_scope[scope] += number
        by_kind[kind] += number
    for scope, kind, number in run(each.format("") + f" AND {FORGOTTEN} GROUP BY 1, 2"):
        by_scope[scope] -= number
        by_kind[kind] -= number
        deleted += number
    tables = ("entities", "relations", "sources", "sessions", "spans")
    entities, relations, sources, sessions, spans, cached, bare = run(
        f"SELECT {', '.join(f'(SELECT count(*) FROM {table})' for table in tables)},"
        " (SELECT count(*) FROM embedding_cache INDEXED BY embedding_cache_model),"
        f" (SELECT count(*) FROM memories m INDEXED BY memories_kind WHERE {BARE})"
        f" - (SELECT count(*) FROM memories m WHERE {FORGOTTEN} AND {BARE})"
        f" - (SELECT count(*) FROM memories m WHERE {UNWANTED} AND m.deleted_at IS NULL AND {BARE})"
    )[0]
    vectors = run(
        "SELECT d.name, (SELECT count(*) FROM vectors v WHERE v.model = d.id) AS n FROM models d WHERE n > 0"
    )
    return Overview(
        memories=by_scope.total(),
        deleted=deleted,
        by_kind=_ordered(by_kind),
        by_scope=_ordered(by_scope),
        entities=entities,
        relations=relations,
        sources=sources,
        sessions=sessions,
        spans=spans,
        vectors=dict(vectors),
        unembedded=bare,
        database_bytes=size(path),
        cached=cached,
        extra={"scope_names": dict(run("SELECT key, name FROM scopes"))},
    )


def _ordered(counts: Counter[str]) -> dict[str, int]:
    """The most first, and of as many the first in the alphabet."""
    return {name: -number for number, name in sorted((-n, name) for name, n in counts.items() if n)}


def size(path: Path) -> int:
    """Bytes on disk, the write-ahead log included."""
    return sum(
        file.stat().st_size for suffix in ("", "-wal") if (file := Path(f"{path}{suffix}")).exists()
    )


def check(connection: apsw.Connection, path: Path, deep: bool) -> list[Problem]:
    """What is wrong. `deep` reads every page and every row; otherwise only what is quick."""
    problems = [
        Problem(
            "permissions",
            f"{file} can be read by others (mode {stat.S_IMODE(file.stat().st_mode):04o}).",
            "permissions",
        )
        for suffix in ("", "-wal", "-shm")
        if (file := Path(f"{path}{suffix}")).exists()
        and stat.S_IMODE(file.stat().st_mode) & 0o077
        and os.name == "posix"
    ]
    run = connection.execute
    try:
        verdict = [
            row[0]
            for row in run("PRAGMA integrity_check(20)" if deep else "PRAGMA quick_check(20)")
        ]
        if verdict != ["ok"]:
            problems += [Problem("database", line, "restore") for line in verdict]
        problems += _indexes(connection)
        if deep:
            problems += _rows(connection)
    except (apsw.CorruptError, apsw.SQLError, apsw.NoMemError, UnicodeDecodeError) as error:
        problems.append(Problem("database", f"A page cannot be read: {error}", "restore"))
    return problems


def _indexes(connection: apsw.Connection) -> list[Problem]:
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
    memories, indexed = run(
        "SELECT (SELECT count(*) FROM memories), (SELECT count(*) FROM memories_fts_docsize)"
    ).get
    if memories != indexed:
        problems.append(
            Problem(
                "full-text index", f"{memories} memories, but {indexed} are indexed.", "rebuild"
            )
        )
    counted = run("SELECT coalesce(sum(memories), 0) FROM scopes").get
    if counted != memories:
        problems.append(
            Problem("word counts", f"{memories} memories, but {counted} are counted.", "rebuild")
        )
    topics, indexed = run(
        "SELECT (SELECT count(*) FROM spans), (SELECT count(*) FROM spans_fts_docsize)"
    ).get
    if topics != indexed:
        problems.append(
            Problem("full-text index", f"{topics} topics, but {indexed} are indexed.", "rebuild")
        )
    orphans = run(
        "SELECT count(*) FROM vectors v WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.key = v.memory)"
    ).get
    if orphans:
        problems.append(Problem("vectors", f"{orphans} vectors belong to no memory.", "reindex"))
    return problems


def _rows(connection: apsw.Connection) -> list[Problem]:
    """Each row by itself, so that one that cannot be read does not hide the others."""
    run = connection.execute
    bad = []
    for (key,) in list(run("SELECT key FROM memories")):
        try:
            row = run(f"SELECT {rows.COLUMNS} FROM {rows.JOINS} WHERE m.key = ?", (key,)).get
            if row is None or rows.row_hash(rows.guarded(row)) != row[31]:
                bad.append(row[1] if row else f"number {key}")
        except (apsw.CorruptError, UnicodeDecodeError):
            bad.append(f"number {key}")
    problems = [
        Problem("memory", f"The stored text of {id} is not what was written.", "restore")
        for id in bad
    ]
    return problems + _vectors(connection)


def _vectors(connection: apsw.Connection) -> list[Problem]:
    """A vector has no hash of its own, but not every row of numbers can be one: see `scan.sound`."""
    damaged = sum(len(_unsound(connection, table)) for table in ("vectors", "span_vectors"))
    if not damaged:
        return []
    return [Problem("vectors", f"{damaged} vectors are not what was written.", "reindex")]


def _unsound(connection: apsw.Connection, table: str) -> list[int]:
    from bethink.store.scan import sound

    found = connection.execute(
        f"SELECT v.id, CAST(v.data AS BLOB), d.dimensions FROM {table} v JOIN models d ON d.id = v.model"
    )
    return [id for id, data, dimensions in found if not sound(data, dimensions)]


def rebuild(connection: apsw.Connection) -> int:
    """Full-text index and word counts anew from the texts: they are derived and may always be thrown away."""
    run = connection.execute
    run("INSERT INTO memories_fts(memories_fts) VALUES ('delete-all')")
    run("DELETE FROM lexeme_counts")
    run("UPDATE scopes SET memories = 0, words = 0")
    run(
        "DELETE FROM vectors WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.key = vectors.memory)"
    )
    if run("SELECT 1 FROM models LIMIT 1").get:
        for table in ("vectors", "span_vectors"):
            unsound = [(id,) for id in _unsound(connection, table)]
            connection.executemany(f"DELETE FROM {table} WHERE id = ?", unsound)
    writer = Writer(connection, Batch(at=rows.moment(0)))  # type: ignore[arg-type]
    done, last = 0, 0
    while page := list(
        run(
            f"SELECT {rows.COLUMNS}, m.scope FROM {rows.JOINS} WHERE m.key > ? ORDER BY m.key LIMIT 500",
            (last,),
        )
    ):
        last = page[-1][0]
        for row in page:
            memory = rows.memory(row)
            writer.index(
                row[0],
                row[-1],
                memory.content,
                memory.summary,
                memory.section,
                index_tags(memory.tags, memory.source, memory.source_type),
            )
        done += len(page)
    spans.rebuild(writer)
    writer.settle()
    return done


def drop_vectors(connection: apsw.Connection, model: str | None) -> int:
    where = "" if model is None else " WHERE model = (SELECT id FROM models WHERE name = ?)"
    values = () if model is None else (model,)
    connection.execute(f"DELETE FROM vectors{where}", values)
    removed = connection.changes()
    for table in ("span_vectors", "embedding_cache"):
        connection.execute(f"DELETE FROM {table}{where}", values)
    return removed


def backup(connection: apsw.Connection, path: Path) -> int:
    """A complete copy in one file, taken while others go on writing. Never half a file under the final name."""
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
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        connection.execute("VACUUM INTO ?", (str(partial),))
        copy = apsw.Connection(str(partial), flags=apsw.SQLITE_OPEN_READWRITE)
        copy.pragma(
            "journal_mode", "WAL"
        )  # VACUUM does not copy it, and a restored backup must work as the original did
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


def reset(connection: apsw.Connection, scopes: Sequence[int] | None) -> int:
    run = connection.execute
    inside = "1" if scopes is None else f"scope IN ({','.join(map(str, scopes)) or 'NULL'})"
    gone = list(run(f"SELECT key, id FROM memories WHERE {inside}"))
    writer = Writer(connection, Batch(at=datetime.now(UTC)))
    run("INSERT OR IGNORE INTO meta(key, value) VALUES (?, '')", (leaving.SCRUB,))
    for key, _ in gone:
        writer.remove(key)
        run("DELETE FROM history WHERE memory = ?", (key,))
    leaving.release(writer, [id for _, id in gone])
    writer.settle()
    spans.remove(writer, inside)
    run(f"DELETE FROM sources WHERE {inside}")
    run(
        "DELETE FROM entities WHERE NOT EXISTS (SELECT 1 FROM memory_entities WHERE entity = entities.id)"
    )
    # The cache is keyed by text, not by scope, and kept answers quote any: after a reset they may hold what is gone.
    run("DELETE FROM embedding_cache")
    writer.drop_answers()
    if scopes is None:
        run("DELETE FROM history")
        run("DELETE FROM tombstones")
    return len(gone)


def scrub(connection: apsw.Connection, patience: float) -> bool:
    """After a purge: brings the pages without the purged text into the file and empties the write-ahead log, which holds the old
    ones. (Freed pages, and words in the index, are overwritten as they are freed.) False when another process still reads an older
    state: then the purge stays noted in `meta`, and each later write, and closing, tries again without waiting."""
    before = connection.pragma("busy_timeout")
    connection.set_busy_timeout(int(patience * 1000))
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        connection.execute("DELETE FROM meta WHERE key = ?", (leaving.SCRUB,))
    except (apsw.BusyError, apsw.LockedError):
        return False
    finally:
        connection.set_busy_timeout(before)
    return True


def scrub_due(connection: apsw.Connection) -> bool:
    return bool(connection.execute("SELECT 1 FROM meta WHERE key = ?", (leaving.SCRUB,)).get)
