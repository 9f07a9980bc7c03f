"""What a team's database keeps beside memories: the audit trail, and the tokens of its people.

The audit trail says who changed what, in order, each line sealed together with the one before it by the database itself. The application
can add lines and read them, not change them. Whoever changes a row behind its back breaks the chain, and whoever cuts its end off is given
away by the last seal, which the tenant's row keeps. What a token means, the server knows; here it is a row of a tenant, looked up by hash.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg import errors

from bethink.errors import InvalidInput, StoreError
from bethink.store.base import Problem
from bethink.store.pg.connection import Who, translate_errors

if TYPE_CHECKING:
    from bethink.store.postgres import PostgresStore

Run = Callable[..., list[Any]]
PAGE = 1_000


class AuditLine(NamedTuple):
    """One write: when by the server's clock, on whose behalf, by which agent, and what it did to which ids."""

    number: int
    at: datetime
    person: str
    actor: str
    changes: dict[str, Any]


def audit_lines(run: Run, limit: int) -> list[AuditLine]:
    """The newest lines, newest first."""
    found = run(
        "SELECT number, at, person, actor, changes FROM audit ORDER BY number DESC LIMIT ?",
        (limit,),
    )
    return [
        AuditLine(number, at, person, actor, json.loads(changes))
        for number, at, person, actor, changes in found
    ]


def check_audit(run: Run, tenant: int) -> list[Problem]:
    """Goes along the whole chain. One problem at most: behind the first broken link nothing can be said."""
    sealed, last = run("SELECT sealed, seal FROM tenants")[0]
    seal, reached = b"", 0
    for number, given, text in _chain(run, tenant):
        if number > sealed:
            break  # written since
        if number != reached + 1:
            return [Problem("audit trail", f"Line {reached + 1} is missing.", "")]
        seal, reached = sha256(seal + text.encode()).digest(), number
        if seal != given:
            return [Problem("audit trail", f"Line {number} is not what was written.", "")]
    if reached != sealed or (sealed and seal != bytes(last)):
        return [
            Problem(
                "audit trail",
                f"It ends at line {reached}; line {sealed} was the last that was written.",
                "",
            )
        ]
    return []


def _chain(run: Run, tenant: int) -> Iterator[tuple[int, bytes, str]]:
    last = 0
    while page := run(
        "SELECT number, hash, (extract(epoch FROM at) * 1000000)::bigint, person, actor, mark, changes FROM audit"
        " WHERE number > ? ORDER BY number LIMIT ?",
        (last, PAGE),
    ):
        last = page[-1][0]
        for number, hash, at, person, actor, mark, changes in page:
            yield (
                number,
                bytes(hash),
                "\x1f".join(map(str, (tenant, number, at, person, actor, mark, changes))),
            )


# Tokens

TOKEN = (
    "id",
    "name",
    "hash",
    "scope",
    "projects",
    "personal",
    "person",
    "created",
    "expires",
    "used",  # by an earlier version
    "revoked",
)

Row = dict[str, Any]


def find_token(store: PostgresStore, hash: str) -> Row | None:
    """The token of this hash, of whichever tenant, with the tenant's name."""
    found = store.database.read(Who(), "SELECT * FROM token(%s)", (hash,))
    return dict(zip(("tenant", *TOKEN), found[0], strict=True)) if found else None


def list_tokens(store: PostgresStore) -> list[Row]:
    """The tokens of the store's tenant, oldest first."""
    found = store.database.read(
        store.who, f"SELECT {', '.join(TOKEN)} FROM tokens ORDER BY created, id"
    )
    return [{"tenant": store.name, **dict(zip(TOKEN, row, strict=True))} for row in found]


def add_token(store: PostgresStore, row: Row) -> None:
    try:
        _change(
            store,
            f"INSERT INTO tokens ({', '.join(TOKEN)}) VALUES ({', '.join(['%s'] * len(TOKEN))}) ON CONFLICT (tenant, id) DO NOTHING",
            [row.get(name, "") for name in TOKEN],
        )
    except StoreError as error:
        if isinstance(error.__cause__, errors.UniqueViolation):
            name = row["name"]
            raise InvalidInput(
                f"There is a token named '{name}' already.",
                f"Name it otherwise, or `bethink token revoke {name}`.",
            ) from error
        raise


def revoke_token(store: PostgresStore, id: str, at: int) -> None:
    _change(store, "UPDATE tokens SET revoked = coalesce(revoked, %s) WHERE id = %s", (at, id))


def _change(store: PostgresStore, sql: str, values: Sequence[Any]) -> None:
    """One statement that does no harm when it is done twice: a server that fails over is waited for."""

    def once() -> None:
        with store.database.transaction(store.who) as connection:
            connection.execute(sql.encode(), values)

    with translate_errors(store.path):
        store.database.retry(once)
