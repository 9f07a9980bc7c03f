"""Rows of tokens in PostgreSQL. What a token means, `http.tokens` knows; here it is a row of a tenant, looked up by its hash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from psycopg import errors

from bethink.errors import InvalidInput, StoreError
from bethink.store.pg.connection import Who, translated

if TYPE_CHECKING:
    from bethink.store.postgres import PostgresStore

COLUMNS = (
    "id",
    "name",
    "hash",
    "scope",
    "projects",
    "personal",
    "person",
    "created",
    "expires",
    "used",
    "revoked",
)

Row = dict[str, Any]


def find(store: PostgresStore, hash: str) -> Row | None:
    """The token of this hash, of whichever tenant, with the tenant's name."""
    found = store.database.read(Who(None), "SELECT * FROM token(%s)", (hash,))
    return dict(zip(("tenant", *COLUMNS), found[0], strict=True)) if found else None


def all_of(store: PostgresStore) -> list[Row]:
    """The tokens of the store's tenant, oldest first."""
    found = store.database.read(
        store.who, f"SELECT {', '.join(COLUMNS)} FROM tokens ORDER BY created, id"
    )
    return [{"tenant": store.name, **dict(zip(COLUMNS, row, strict=True))} for row in found]


def add(store: PostgresStore, row: Row) -> None:
    try:
        _change(
            store,
            f"INSERT INTO tokens ({', '.join(COLUMNS)}) VALUES ({', '.join(['%s'] * len(COLUMNS))}) ON CONFLICT (tenant, id) DO NOTHING",
            [row[name] for name in COLUMNS],
        )
    except StoreError as error:
        if isinstance(error.__cause__, errors.UniqueViolation):
            name = row["name"]
            raise InvalidInput(
                f"There is a token named '{name}' already.",
                f"Name it otherwise, or `bethink token revoke {name}`.",
            ) from error
        raise


def revoke(store: PostgresStore, id: str, at: int) -> None:
    _change(store, "UPDATE tokens SET revoked = coalesce(revoked, %s) WHERE id = %s", (at, id))


def mark_used(store: PostgresStore, id: str, day: str) -> None:
    _change(store, "UPDATE tokens SET used = %s WHERE id = %s AND used < %s", (day, id, day))


def _change(store: PostgresStore, sql: str, values: Sequence[Any]) -> None:
    """One statement that does no harm when it is done twice: a server that fails over is waited for."""

    def once() -> None:
        with store.database.transaction(store.who) as connection:
            connection.execute(sql.encode(), values)

    with translated(store.path):
        store.database.retried(once)
