"""Bringing a PostgreSQL database to the newest schema, and refusing what cannot be one: server, extension, versions, roles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors
from psycopg.sql import SQL, Identifier

from bethink.errors import StoreError, StoreTooNew
from bethink.store.pg.connection import Database, translated

OLDEST_SERVER, OLDEST_VECTOR = 160_000, (0, 8)
MIGRATIONS = Path(__file__).parent.parent / "migrations" / "postgres"
LOCK = 0x5265636F6C  # "Recol": who migrates holds it to the end of the transaction


def prepare(database: Database) -> None:
    """Opens the database for the first time in this process: versions are checked, missing migrations applied. Where one of several
    servers is to take over from another, that is waited for; a single one that is down is told at once."""
    with translated(database.shown):
        if database.several:
            database.retried(lambda: _prepared(database))
        else:
            _prepared(database)


def _prepared(database: Database) -> None:
    with database.connection() as connection:
        version = connection.info.server_version
        if version < OLDEST_SERVER:
            raise StoreError(
                f"{database.shown} is PostgreSQL {version // 10_000}; 16 is the oldest that will do.",
                "Upgrade the server.",
            )
        scripts = migrations()
        applied = _applied(connection, database.shown)
        if applied > len(scripts):
            raise StoreTooNew(
                f"{database.shown} was written by a newer Bethink (schema {applied}; this one knows {len(scripts)}).",
                "Upgrade with `pip install -U bethink`.",
            )
        if applied < len(scripts):
            _migrate(connection, scripts, database.shown)
        database.path = f"bethink, {_extension_schema(connection, database.shown)}"


def migrations() -> list[str]:
    return [path.read_text("utf-8") for path in sorted(MIGRATIONS.glob("*.sql"))]


def _applied(connection: psycopg.Connection[Any], name: str) -> int:
    """How many migrations the database has seen. Asked of the catalogue first, which everybody may read."""
    found = connection.execute(
        "SELECT has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') FROM pg_class c"
        " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'bethink' AND c.relname = 'migrations'"
    ).fetchone()
    if found is None:
        return 0
    if not found[0]:
        raise StoreError(
            f"The role that opens {name} may not use what is in it.",
            "As the owner of the database: GRANT bethink_app TO that role;",
        )
    row = connection.execute("SELECT coalesce(max(number), 0) FROM bethink.migrations").fetchone()
    return int(row[0]) if row else 0


def _extension_schema(connection: psycopg.Connection[Any], name: str) -> str:
    """Where the types of pgvector live."""
    row = connection.execute(
        "SELECT quote_ident(n.nspname), e.extversion FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'"
    ).fetchone()
    if row is None:
        raise _missing(name)
    if tuple(int(part) for part in row[1].split(".")[:2]) < OLDEST_VECTOR:
        raise StoreError(
            f"{name} has pgvector {row[1]}; 0.8 is the oldest that will do.",
            "As the owner: ALTER EXTENSION vector UPDATE;",
        )
    return str(row[0])


def _missing(name: str) -> StoreError:
    return StoreError(
        f"{name} lacks the extension pgvector.",
        "Install pgvector 0.8 or later on the server, then: CREATE EXTENSION vector;",
    )


def _migrate(connection: psycopg.Connection[Any], scripts: list[str], name: str) -> None:
    """Each script in a transaction of its own together with its number: what is interrupted has not happened. One process at a time."""
    for number, script in enumerate(scripts, start=1):
        try:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
                if _applied(connection, name) >= number:
                    continue
                if number == 1:
                    _found(connection, name)
                where = _extension_schema(connection, name)
                connection.execute(SQL("SET LOCAL search_path = pg_catalog, ") + SQL(where))
                connection.execute(script.encode())
                connection.execute("INSERT INTO bethink.migrations(number) VALUES (%s)", (number,))
        except errors.InsufficientPrivilege as error:
            raise StoreError(
                f"{name} needs schema {len(scripts)}, and the role that opens it may not make it: {str(error).splitlines()[0]}.",
                "Open it once as the owner of the database (who may create roles): bethink doctor --database postgresql://OWNER@…",
            ) from error


def _found(connection: psycopg.Connection[Any], name: str) -> None:
    row = connection.execute("SELECT current_setting('server_encoding')").fetchone()
    if row and row[0] != "UTF8":
        raise StoreError(
            f"{name} is encoded as {row[0]}, not as UTF8.",
            "createdb --encoding=UTF8 --template=template0 NAME",
        )
    try:
        if not connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone():
            connection.execute("CREATE EXTENSION vector")
    except (errors.FeatureNotSupported, errors.UndefinedFile) as error:
        raise _missing(name) from error
    except errors.InsufficientPrivilege as error:
        raise StoreError(
            f"{name} lacks the extension pgvector, and this role may not add it.",
            "As a superuser: CREATE EXTENSION vector;",
        ) from error
    if connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'bethink'").fetchone():
        raise StoreError(
            f"{name} has a schema `bethink` that is not ours.", "Use another database."
        )
    connection.execute(SQL("CREATE SCHEMA {}").format(Identifier("bethink")))
    connection.execute(
        "CREATE TABLE bethink.migrations (number integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp())"
    )
