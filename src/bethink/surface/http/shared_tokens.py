"""Tokens in a team's database, for any number of servers: the same `Register` as that of a file. What is revoked is refused from the next
request on, by every server."""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from bethink.errors import InvalidInput
from bethink.store.bundle import stamp
from bethink.surface.http.tokens import (
    LONGEST,
    Grant,
    Register,
    Token,
    Tokens,
    digest,
    location,
    made,
    named,
)

if TYPE_CHECKING:
    from bethink.config import Config
    from bethink.project import Project
    from bethink.store.base import Store
    from bethink.store.postgres import PostgresStore


class SharedTokens:
    far = True

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self.file = location()

    def known(self) -> list[Token]:
        """The tokens of the store's own tenant."""
        from bethink.store.pg import tokens

        return [_token(row) for row in tokens.all_of(self._store)]

    def find(self, secret: str) -> Token | None:
        """The token that was offered, of whichever tenant."""
        from bethink.store.pg import tokens

        offered = digest(secret[:LONGEST])
        found = tokens.find(self._store, offered)
        return _token(found) if found and hmac.compare_digest(found["hash"], offered) else None

    def create(
        self, name: str, scope: str, projects: Sequence[Grant] | None, **more: Any
    ) -> tuple[str, Token]:
        from bethink.store.pg import tokens

        if more.get("personal") and not str(more.get("person") or "").strip():
            raise InvalidInput(
                "Whose personal memories the token is for is not said; without a person all such tokens would share them.",
                f"bethink token create --name {name} --person NAME --personal",
            )
        secret, token = made(name, scope, projects, **{"expires": None, **more})
        token = token._replace(tenant=self._store.name)
        tokens.add(self._store, _row(token))
        return secret, token

    def revoke(self, name: str, now: datetime) -> Token:
        from bethink.store.pg import tokens

        meant = named(self.known(), name)
        tokens.revoke(self._store, meant.id, stamp(now))
        return meant._replace(revoked=meant.revoked or now)

    def mark_used(self, token: str, tenant: str, day: str) -> None:
        from bethink.store.pg import tokens

        store = self._store if tenant in ("", self._store.name) else self._store.acting(tenant, "")
        tokens.mark_used(store, token, day)

    def close(self) -> None:
        self._store.close()


def register(config: Config, project: Project) -> Register:
    """Where the tokens for the database of the settings are: in it, if people share it, else in a file of this machine."""
    if not config.shared:
        return Tokens(location())
    from bethink.store import open_store

    return register_of(open_store(config, project))


def register_of(store: Store) -> Register:
    return (
        SharedTokens(cast("PostgresStore", store))
        if hasattr(store, "acting")
        else Tokens(location())
    )


def _token(row: dict[str, Any]) -> Token:
    projects = (
        None
        if row["projects"] is None
        else tuple(Grant(*grant) for grant in json.loads(row["projects"]))
    )
    return Token(
        row["id"],
        row["name"],
        row["hash"],
        row["scope"],
        projects,
        row["personal"],
        _moment(row["created"]),
        None if row["expires"] is None else _moment(row["expires"]),
        row["used"],
        None if row["revoked"] is None else _moment(row["revoked"]),
        row["person"],
        row["tenant"],
    )


def _row(token: Token) -> dict[str, Any]:
    times = {
        name: None if (found := getattr(token, name)) is None else stamp(found)
        for name in ("created", "expires", "revoked")
    }
    projects = (
        None if token.projects is None else json.dumps([list(grant) for grant in token.projects])
    )
    return {**token._asdict(), **times, "projects": projects}


def _moment(value: int) -> datetime:
    return datetime.fromtimestamp(value / 1000, UTC)
