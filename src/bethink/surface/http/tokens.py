"""Bearer tokens: who may call the server, and for what. Their hashes are kept, never themselves: in a file that its owner alone
can read, or in a database that a team shares.

A token holds 256 random bits, so a plain SHA-256 of it cannot be reversed. The server looks before every request: what is revoked
on the command line is refused from the next request on, by every server. This module knows no HTTP.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from bethink.config import data_directory
from bethink.errors import BethinkError, ConfigError, InvalidInput, NotFound
from bethink.store import open_store
from bethink.store.rows import stamp
from bethink.text import textfile

if TYPE_CHECKING:
    from bethink.config import Config
    from bethink.project import Project
    from bethink.store.base import Store
    from bethink.store.postgres import PostgresStore

SCOPES = ("read", "write")
PREFIX = "rcl_"  # by which people and scanners for leaked secrets know one
BITS = 256
LONGEST = 200  # characters of anything that is offered as a token
TIMES = ("created", "expires", "revoked")
TEXTS = ("id", "name", "hash", "scope", "person", "tenant")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")


class Grant(NamedTuple):
    """A project that a token is for."""

    scope: str
    root: str
    name: str


class AccessToken(NamedTuple):
    id: str
    name: str
    hash: str
    scope: str  # read or write
    projects: tuple[Grant, ...] | None  # None: every project
    personal: bool
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None
    person: str = ""  # whose it is, in a database that keeps people apart
    tenant: str = ""  # whose database it opens there

    def state(self, now: datetime) -> str:
        if self.revoked:
            return "revoked"
        return "expired" if self.expires and self.expires <= now else "active"


def open_register(config: Config, project: Project) -> Register:
    """Where the tokens for the database of the settings are: in it, if people share it, else in a file of this machine."""
    if not config.shared:
        return FileTokens(location())
    return register_of(open_store(config, project))


def register_of(store: Store) -> Register:
    if hasattr(store, "act_as"):
        return SharedTokens(cast("PostgresStore", store))
    return FileTokens(location())


def location() -> Path:
    return data_directory() / "tokens.json"


def digest(secret: str) -> str:
    return sha256(secret[:LONGEST].encode("utf-8", "surrogatepass")).hexdigest()


def new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(BITS // 8)


def _find_named(known: Sequence[AccessToken], name: str) -> AccessToken:
    """A token by its name or id."""
    wanted = [token for token in known if token.id == name or token.name == name]
    if not wanted:
        raise NotFound(f"There is no token '{name[:80]}'.", "`bethink token list` shows them.")
    # An ended name may have been given again: the newest that still works is meant.
    return next((token for token in reversed(wanted) if not token.revoked), wanted[-1])


def _token(row: Mapping[str, Any], read_time: Callable[[Any], datetime]) -> AccessToken:
    """The token of a row. A ValueError, KeyError or TypeError where it is none."""
    texts = {name: str(row.get(name) or "") for name in TEXTS}
    if texts["scope"] not in SCOPES or not re.fullmatch(r"[0-9a-f]{64}", texts["hash"]):
        raise ValueError("a token has a scope or hash that is none")
    times = {name: read_time(row[name]) if row.get(name) else None for name in TIMES}
    granted = row["projects"]
    if granted is not None:
        granted = tuple(Grant(*(str(one[name]) for name in Grant._fields)) for one in granted)
    personal = row["personal"] is True
    return AccessToken(projects=granted, personal=personal, **texts, **times)  # type: ignore[arg-type]


def _row(token: AccessToken, write_time: Callable[[datetime], Any]) -> dict[str, Any]:
    times = {name: write_time(at) if (at := getattr(token, name)) else None for name in TIMES}
    granted = None if token.projects is None else [grant._asdict() for grant in token.projects]
    return {**token._asdict(), **times, "projects": granted}


class Tokens:
    """Where tokens are kept."""

    far = False  # whether a look takes long enough to be taken in a thread
    file: Path  # of this machine's own tokens; what else a server keeps stands beside it

    def create(
        self,
        name: str,
        scope: str,
        projects: Sequence[Grant] | None,
        *,
        personal: bool,
        now: datetime,
        expires: datetime | None = None,
        person: str = "",
    ) -> tuple[str, AccessToken]:
        """Makes a token and returns it with what is kept of it. It cannot be had again."""
        for what, given in (("a token", name), ("a person", person or "x")):
            if not _NAME.fullmatch(given):
                raise InvalidInput(
                    f"'{given[:80]}' cannot name {what}.",
                    "Up to 60 letters, digits, dots and dashes, such as laptop or ci.example.",
                )
        secret, id = new_secret(), secrets.token_hex(4)
        granted = None if projects is None else tuple(projects)
        token = AccessToken(id, name, digest(secret), scope, granted, personal, now, expires)
        return secret, self._add(token._replace(person=person))

    def find(self, hash: str) -> AccessToken | None:
        """The token with this hash, whatever its state."""
        raise NotImplementedError

    def _add(self, token: AccessToken) -> AccessToken:
        raise NotImplementedError

    def close(self) -> None:
        """A file needs none."""


class FileTokens(Tokens):
    """The tokens of a file as it is now. It is read again whenever it was replaced."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._seen: tuple[int, ...] | None = None
        self._known: list[AccessToken] = []

    def known(self) -> list[AccessToken]:
        """The tokens, oldest first. None where there is no file; a file that others could have written is refused."""
        try:
            about = self.file.stat()
            seen: tuple[int, ...] = (about.st_mtime_ns, about.st_size, about.st_ino, about.st_mode)
        except OSError:
            seen = ()  # no file: nobody holds a token
        if seen != self._seen:
            self._known = self._parse(self._text()) if seen else []
            self._seen = seen
        return self._known

    def find(self, hash: str) -> AccessToken | None:
        found = None
        for token in self.known():  # every one, each in constant time
            if hmac.compare_digest(token.hash, hash):
                found = token
        return found

    def _add(self, token: AccessToken) -> AccessToken:
        def add(known: list[AccessToken]) -> list[AccessToken]:
            name, now = token.name, token.created
            if any(other.name == name and other.state(now) == "active" for other in known):
                raise InvalidInput(
                    f"There is a token named '{name}' already.",
                    f"Name it otherwise, or `bethink token revoke {name}`.",
                )
            return [*known, token]

        self._change(add)
        return token

    def revoke(self, name: str, now: datetime) -> AccessToken:
        ended: list[AccessToken] = []

        def end(known: list[AccessToken]) -> list[AccessToken]:
            meant = _find_named(known, name)
            ended[:] = [meant._replace(revoked=meant.revoked or now)]
            return [ended[0] if token.id == meant.id else token for token in known]

        self._change(end)
        return ended[0]

    def _text(self) -> str | None:
        text = textfile.read(self.file)
        if text is not None and textfile.may_others(self.file, 0o022):
            raise ConfigError(
                f"Others can write to {self.file}, so its tokens are not trusted.",
                f"Look into it, then: chmod 600 {self.file}",
            )
        return text

    def _parse(self, text: str | None) -> list[AccessToken]:
        if text is None:
            return []
        try:
            value = json.loads(text)
            if value["version"] != 1:
                raise ConfigError(
                    f"{self.file} was written by a newer Bethink.",
                    "Upgrade with `pip install -U bethink`.",
                )
            return [_token(one, _read_time) for one in value["tokens"]]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ConfigError(
                f"The tokens in {self.file} cannot be read: {error}.",
                "Mend or remove the file, then create tokens anew.",
            ) from error

    def _change(self, change: Callable[[list[AccessToken]], list[AccessToken]]) -> None:
        """Reads, changes and replaces the file as one step, whoever else does the same."""
        with textfile.alone(self.file.parent):
            was = self._text()
            rows = [_row(one, datetime.isoformat) for one in change(self._parse(was))]
            text = json.dumps({"version": 1, "tokens": rows}, indent=1) + "\n"
            if text != was and not textfile.write(self.file, text, was, mode=0o600):
                message = f"{self.file} was changed by something else at the same moment."
                raise BethinkError(message, "Try again.")


def _read_time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


class SharedTokens(Tokens):
    """Tokens in a team's database, for any number of servers."""

    far = True

    def __init__(self, store: PostgresStore) -> None:
        from bethink.store.pg import team

        self._store, self._rows = store, team
        self.file = location()

    def known(self) -> list[AccessToken]:
        """The tokens of the store's own tenant."""
        return [_shared_token(row) for row in self._rows.list_tokens(self._store)]

    def find(self, hash: str) -> AccessToken | None:
        row = self._rows.find_token(self._store, hash)  # of whichever tenant
        return _shared_token(row) if row and hmac.compare_digest(row["hash"], hash) else None

    def _add(self, token: AccessToken) -> AccessToken:
        if token.personal and not token.person.strip():
            raise InvalidInput(
                "Whose personal memories the token is for is not said; without a person all such tokens would share them.",
                f"bethink token create --name {token.name} --person NAME --personal",
            )
        token = token._replace(tenant=self._store.name)
        granted = None if token.projects is None else json.dumps(token.projects)
        self._rows.add_token(self._store, {**_row(token, stamp), "projects": granted})
        return token

    def revoke(self, name: str, now: datetime) -> AccessToken:
        meant = _find_named(self.known(), name)
        self._rows.revoke_token(self._store, meant.id, stamp(now))
        return meant._replace(revoked=meant.revoked or now)

    def close(self) -> None:
        self._store.close()


def _shared_token(row: Mapping[str, Any]) -> AccessToken:
    granted = row["projects"]
    if granted is not None:
        granted = [Grant(*one)._asdict() for one in json.loads(granted)]
    return _token(
        {**row, "projects": granted}, lambda value: datetime.fromtimestamp(value / 1000, UTC)
    )


Register = FileTokens | SharedTokens
