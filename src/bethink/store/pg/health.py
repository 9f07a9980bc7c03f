"""Looking after one tenant of a PostgreSQL database: numbers about it, checks, rebuilding what is derived, backup, reset."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bethink.errors import StoreError
from bethink.store import rows
from bethink.store.base import Overview, Problem
from bethink.store.pg import audit, changing, spans
from bethink.store.pg import rows as own
from bethink.types import Batch

if TYPE_CHECKING:
    from bethink.store.pg.writer import Writer
    from bethink.store.postgres import PostgresStore

Run = Callable[..., list[Any]]
SKEW = 5.0  # seconds that clocks of writers may differ before it is a problem
# What belongs to a scope that this person sees: row-level security shows no other row of `scopes`.
SEEN = "tenant = %s AND scope IN (SELECT id FROM scopes WHERE tenant = %s)"
TABLES = (
    "memories",
    "words",
    "vectors",
    "span_vectors",
    "history",
    "lexeme_counts",
    "sources",
    "embedding_cache",
)


def NOW() -> Batch:
    """A write that says nothing of its own."""
    return Batch(at=datetime.now(UTC))


def overview(run: Run, tenant: int, scopes: Sequence[int] | None) -> Overview:
    inside, values = (
        ("m.tenant = %s", [tenant])
        if scopes is None
        else ("m.tenant = %s AND m.scope = ANY(%s)", [tenant, list(scopes)])
    )
    by_scope = run(
        "SELECT s.key, count(*) FROM memories m JOIN scopes s ON s.tenant = m.tenant AND s.id = m.scope"
        f" WHERE {inside} AND m.deleted_at IS NULL GROUP BY s.key ORDER BY 2 DESC, 1",
        values,
    )
    kinds = run(
        f"SELECT m.kind, count(*) FROM memories m WHERE {inside} AND m.deleted_at IS NULL GROUP BY 1 ORDER BY 2 DESC, 1",
        values,
    )
    deleted = run(
        f"SELECT count(*) FROM memories m WHERE {inside} AND m.deleted_at IS NOT NULL", values
    )[0][0]
    tables = ("entities", "relations", "sources", "sessions", "spans", "embedding_cache")
    numbers = run(
        f"SELECT {', '.join(f'(SELECT count(*) FROM {table} WHERE tenant = %s)' for table in tables)}",
        [tenant] * len(tables),
    )[0]
    unembedded = run(
        f"SELECT count(*) FROM memories m WHERE m.tenant = %s AND m.deleted_at IS NULL AND coalesce({own.json_of('m.metadata')} ->> 'vector_index', '') NOT IN ('false', '0')"
        " AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.tenant = m.tenant AND v.memory = m.key)",
        (tenant,),
    )[0][0]
    vectors = run(
        "SELECT d.name, sum(t.vectors)::bigint FROM vector_totals t JOIN models d ON d.tenant = t.tenant AND d.id = t.model"
        f" WHERE t.{SEEN} GROUP BY d.name, d.id HAVING sum(t.vectors) > 0 ORDER BY d.id",
        (tenant, tenant),
    )
    names = run("SELECT key, name FROM scopes WHERE tenant = %s", (tenant,))
    entities, relations, sources, sessions, topics, cached = numbers
    return Overview(
        memories=sum(count for _, count in by_scope),
        deleted=deleted,
        by_kind=dict(kinds),
        by_scope=dict(by_scope),
        entities=entities,
        relations=relations,
        sources=sources,
        sessions=sessions,
        spans=topics,
        vectors=dict(vectors),
        unembedded=unembedded,
        database_bytes=size(run, tenant),
        cached=cached,
        extra={"scope_names": dict(names)},
    )


def size(run: Run, tenant: int) -> int:
    """Bytes of this tenant's rows, without indexes: the size of the whole database would tell about the others."""
    parts = " + ".join(
        f"coalesce((SELECT sum(pg_column_size(t.*)) FROM {table} t WHERE t.tenant = %s), 0)"
        for table in TABLES
    )
    return int(run(f"SELECT {parts}", [tenant] * len(TABLES))[0][0])


def tombstoned(run: Run, tenant: int, hashes: Sequence[str]) -> set[str]:
    salt = bytes.fromhex(run("SELECT salt FROM tenants WHERE id = %s", (tenant,))[0][0])
    marks = {blake2b(hash.encode(), key=salt, digest_size=16).digest(): hash for hash in hashes}
    found = run(
        "SELECT hash FROM tombstones WHERE tenant = %s AND hash = ANY(%s)", (tenant, list(marks))
    )
    return {marks[bytes(row[0])] for row in found}


# Checks


def check(run: Run, tenant: int, deep: bool) -> list[Problem]:
    """What is wrong. `deep` reads every row and the whole audit trail; otherwise only what is quick."""
    return [
        *_clock(run),
        *_walls(run),
        *_indexes(run, tenant),
        *([*_rows(run, tenant), *audit.check(run, tenant)] if deep else ()),
    ]


def _clock(run: Run) -> list[Problem]:
    """History is ordered by numbers, not by clocks; but times are told by the writers' clocks."""
    before = time.time()
    there = float(run("SELECT extract(epoch FROM clock_timestamp())::float8")[0][0])
    apart = there - (before + time.time()) / 2
    if abs(apart) <= SKEW:
        return []
    return [
        Problem(
            "clock",
            f"This machine's clock is {abs(apart):.0f} s {'behind' if apart > 0 else 'ahead of'} the server's; times of memories will be off.",
            "",
        )
    ]


def _walls(run: Run) -> list[Problem]:
    """What keeps tenants apart must stand: row-level security on every table, and a role that cannot pass it."""
    bare = run(
        "SELECT relname FROM pg_class WHERE relnamespace = 'bethink'::regnamespace AND relkind IN ('r', 'p') AND relname <> 'migrations'"
        " AND NOT (relrowsecurity AND relforcerowsecurity) ORDER BY 1"
    )
    problems = [
        Problem("tenants", f"Row-level security is off on the table {name}.", "")
        for (name,) in bare
    ]
    role = run("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user")
    if not role or role[0][0]:
        problems.append(
            Problem("tenants", "The role that reads and writes may pass row-level security.", "")
        )
    return problems


def _indexes(run: Run, tenant: int) -> list[Problem]:
    """The derived parts must agree with the rows they were made from."""
    memories, indexed, counted, topics, named, orphans, kept, summed = run(
        "SELECT (SELECT count(*) FROM memories WHERE tenant = %s), (SELECT count(*) FROM words w JOIN memories m ON m.tenant = w.tenant AND m.key = w.key WHERE w.tenant = %s),"
        " (SELECT coalesce(sum(memories), 0) FROM scopes WHERE tenant = %s), (SELECT count(*) FROM spans WHERE tenant = %s),"
        " (SELECT count(*) FROM span_words WHERE tenant = %s),"
        " (SELECT count(*) FROM vectors v WHERE v.tenant = %s AND NOT EXISTS (SELECT 1 FROM words w WHERE w.tenant = v.tenant AND w.key = v.memory)),"
        " (SELECT count(*) FROM vectors WHERE tenant = %s), (SELECT coalesce(sum(vectors), 0) FROM vector_totals WHERE tenant = %s)",
        [tenant] * 8,
    )[0]
    problems = []
    if memories != indexed:
        problems.append(
            Problem(
                "full-text index", f"{memories} memories, but {indexed} are indexed.", "rebuild"
            )
        )
    if counted != memories:
        problems.append(
            Problem("word counts", f"{memories} memories, but {counted} are counted.", "rebuild")
        )
    if topics != named:
        problems.append(
            Problem("full-text index", f"{topics} topics, but {named} are indexed.", "rebuild")
        )
    if orphans:
        problems.append(Problem("vectors", f"{orphans} vectors belong to no memory.", "reindex"))
    if kept != summed:
        problems.append(Problem("vectors", f"{kept} vectors, but {summed} are counted.", "rebuild"))
    return problems


def _rows(run: Run, tenant: int) -> list[Problem]:
    problems, last = [], 0
    while page := run(
        f"SELECT {own.COLUMNS} FROM {own.JOINS} WHERE m.tenant = %s AND m.key > %s ORDER BY m.key LIMIT 500",
        (tenant, last),
    ):
        last = page[-1][0]
        bad = [
            row[1]
            for row in map(own.readable, page)
            if rows.row_hash(rows.guarded(row)) != bytes(row[31])
        ]
        problems += [
            Problem("memory", f"The stored text of {id} is not what was written.", "restore")
            for id in bad
        ]
    odd = run(
        "SELECT count(*) FROM vectors v JOIN models d ON d.tenant = v.tenant AND d.id = v.model"
        " WHERE v.tenant = %s AND (v.dimensions <> d.dimensions OR vector_dims(v.data) <> d.dimensions)",
        (tenant,),
    )[0][0]
    if odd:
        problems.append(
            Problem("vectors", f"{odd} vectors are not of their model's size.", "reindex")
        )
    return problems


# Care


def rebuild(writer: Writer) -> int:
    """Words, counts and sums anew from the rows: they are derived and may always be thrown away. But only those of what this person
    sees, since what is personal to others could not be read here to make them anew."""
    tenant = writer.tenant
    writer.run(
        "DELETE FROM words w USING memories m WHERE w.tenant = %s AND m.tenant = w.tenant AND m.key = w.key",
        (tenant,),
    )
    writer.run(f"DELETE FROM lexeme_counts WHERE {SEEN}", (tenant, tenant))
    writer.run("UPDATE scopes SET memories = 0, words = 0 WHERE tenant = %s", (tenant,))
    writer.run(
        f"DELETE FROM vectors v WHERE {SEEN} AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.tenant = v.tenant AND m.key = v.memory)",
        (tenant, tenant),
    )
    done, last = 0, 0
    sql = f"SELECT {own.COLUMNS}, m.scope FROM {own.JOINS} WHERE m.tenant = %s AND m.key > %s ORDER BY m.key LIMIT 500"
    while page := writer.run(sql, (tenant, last)).fetchall():
        last = page[-1][0]
        changing.index(
            writer,
            (
                (row[0], row[-1], row[4], row[5], row[24], row[27], row[20], row[21])
                for row in map(own.readable, page)
            ),
        )
        done += len(page)
    # A sum that is right but for its last digits stays as it is.
    writer.run(
        "WITH fresh AS (SELECT model, scope, count(*) AS vectors, sum(data) AS total FROM vectors WHERE tenant = %s GROUP BY model, scope),"
        " gone AS (DELETE FROM vector_totals t WHERE t.tenant = %s AND NOT EXISTS (SELECT 1 FROM fresh f WHERE f.model = t.model AND f.scope = t.scope))"
        " INSERT INTO vector_totals(tenant, model, scope, vectors, total) SELECT %s, model, scope, vectors, total FROM fresh"
        " ON CONFLICT (tenant, model, scope) DO UPDATE SET vectors = excluded.vectors, total = excluded.total"
        " WHERE vector_totals.vectors <> excluded.vectors OR vector_totals.total <-> excluded.total > 0.001",
        (tenant, tenant, tenant),
    )
    spans.rebuild(writer)
    writer.settle()
    return done


def drop_vectors(writer: Writer, model: str | None) -> int:
    """The vectors of what this person sees. The row of their model stays: every process keeps its number."""
    of, values = "", [writer.tenant, writer.tenant]
    if model is not None:
        known = writer.one(
            "SELECT id FROM models WHERE tenant = %s AND name = %s", (writer.tenant, model)
        )
        of, values = " AND model = %s", [*values, known[0] if known else -1]
    removed = writer.run(f"DELETE FROM vectors WHERE {SEEN}{of}", values).rowcount
    for table in ("span_vectors", "vector_totals"):
        writer.run(f"DELETE FROM {table} WHERE {SEEN}{of}", values)
    writer.run(
        f"DELETE FROM embedding_cache WHERE tenant = %s{of}", values[1:]
    )  # which knows texts, not scopes
    if removed:
        writer.told("drop_vectors", model or "all")
    return removed


def backup(store: PostgresStore, path: str) -> int:
    """Everything of this tenant in one file: a SQLite database that opens anywhere. Never half a file under the final name."""
    from bethink.store.bundle import PARTS
    from bethink.store.sqlite import SqliteStore

    target = Path(path)
    if target.exists():
        raise StoreError(
            f"{path} exists already; a backup does not overwrite.",
            "Name another file, or remove that one.",
        )
    if not target.parent.is_dir():
        raise StoreError(f"The folder {target.parent} does not exist.", f"mkdir -p {target.parent}")
    partial = target.with_name(target.name + ".partial")
    partial.unlink(missing_ok=True)
    try:
        copy = SqliteStore(partial)
        try:
            for part in PARTS:
                after = ""
                while True:
                    bundle, after = store.export(part, after, 500)
                    if not getattr(bundle, part):
                        break
                    copy.take(bundle, allow_purged=True)
        finally:
            copy.close()
        partial.replace(target)
    finally:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{partial}{suffix}").unlink(missing_ok=True)
    return target.stat().st_size


def reset(writer: Writer, scopes: Sequence[int] | None) -> int:
    tenant = writer.tenant
    if scopes is None:
        inside = [
            row[0] for row in writer.run("SELECT id FROM scopes WHERE tenant = %s", (tenant,))
        ]
    else:
        inside = list(scopes)
    found = writer.run(
        "SELECT key, id FROM memories WHERE tenant = %s AND scope = ANY(%s)", (tenant, inside)
    ).fetchall()
    keys, ids = [key for key, _ in found], [id for _, id in found]
    changing.remove(writer, keys)
    writer.run("DELETE FROM history WHERE tenant = %s AND memory = ANY(%s)", (tenant, keys))
    changing.release(writer, ids)
    spans.remove(writer, inside)
    writer.run("DELETE FROM sources WHERE tenant = %s AND scope = ANY(%s)", (tenant, inside))
    changing.drop_entities(writer)
    # The cache is keyed by text, not by scope, and kept answers quote any: after a reset they may hold what is gone.
    writer.run("DELETE FROM embedding_cache WHERE tenant = %s", (tenant,))
    changing.drop_answers(writer)
    if scopes is None:
        for table in ("history", "tombstones"):
            writer.run(f"DELETE FROM {table} WHERE tenant = %s", (tenant,))
    writer.settle()
    if keys:
        writer.told("reset", len(keys))
    return len(keys)
