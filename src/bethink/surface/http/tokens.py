"""Bearer tokens: who may call the server, and for what. A file that its owner alone can read keeps their hashes, never themselves.

A token holds 256 random bits, so a plain SHA-256 of it cannot be reversed. The server looks at the file before every request:
what is revoked on the command line is refused from the next request on. This module knows no HTTP.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from bethink.config import data_directory
from bethink.errors import BethinkError, ConfigError, InvalidInput, NotFound
from bethink.text import textfile

SCOPES = ("read", "write")
PREFIX = "rcl_"  # by which people and scanners for leaked secrets know one
BITS = 256
LONGEST = 200  # characters of anything that is offered as a token
ATTEMPTS = 20  # times a change is made again when another process was quicker

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")


class Grant(NamedTuple):
    """A project that a token is for."""

    scope: str
    root: str
    name: str


class Token(NamedTuple):
    id: str
    name: str
    hash: str
    scope: str  # read or write
    projects: tuple[Grant, ...] | None  # None: every project
    personal: bool
    created: datetime
    expires: datetime | None = None
    used: str = ""  # the last day
    revoked: datetime | None = None
    person: str = ""  # whose it is, in a database that keeps people apart
    tenant: str = ""  # whose database it opens there

    def state(self, now: datetime) -> str:
        if self.revoked:
            return "revoked"
        return "expired" if self.expires and self.expires <= now else "active"


def location() -> Path:
    return data_directory() / "tokens.json"


def digest(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(BITS // 8)


def made(
    name: str, scope: str, projects: Sequence[Grant] | None, *, person: str = "", **more: Any
) -> tuple[str, Token]:
    """A new token, and what is to be kept of it."""
    for what, given in (("a token", name), ("a person", person or "x")):
        if not _NAME.fullmatch(given):
            raise InvalidInput(
                f"'{given[:80]}' cannot name {what}.",
                "Up to 60 letters, digits, dots and dashes, such as laptop or ci.example.",
            )
    secret = new_secret()
    granted = None if projects is None else tuple(projects)
    token = Token(
        secrets.token_hex(4),
        name,
        digest(secret),
        scope,
        granted,
        more["personal"],
        more["now"],
        more["expires"],
        person=person,
    )
    return secret, token


def create(
    file: Path,
    name: str,
    scope: str,
    projects: Sequence[Grant] | None,
    *,
    personal: bool,
    now: datetime,
    expires: datetime | None = None,
    person: str = "",
) -> tuple[str, Token]:
    """Makes a token and returns it with what is kept of it. It cannot be had again."""
    secret, token = made(
        name, scope, projects, personal=personal, now=now, expires=expires, person=person
    )

    def added(known: list[Token]) -> list[Token]:
        if any(other.name == name and other.state(now) == "active" for other in known):
            raise InvalidInput(
                f"There is a token named '{name}' already.",
                f"Name it otherwise, or `bethink token revoke {name}`.",
            )
        return [*known, token]

    _change(file, added)
    return secret, token


def revoke(file: Path, name: str, now: datetime) -> Token:
    """Ends a token by its name or id. One that has ended stays as it is."""
    found: list[Token] = []

    def ended(known: list[Token]) -> list[Token]:
        meant = named(known, name)
        found[:] = [meant._replace(revoked=meant.revoked or now)]
        return [found[0] if token.id == meant.id else token for token in known]

    _change(file, ended)
    return found[0]


def named(known: Sequence[Token], name: str) -> Token:
    """A token by its name or id."""
    wanted = [token for token in known if token.id == name or token.name == name]
    if not wanted:
        raise NotFound(f"There is no token '{name[:80]}'.", "`bethink token list` shows them.")
    # An ended name may have been given again: the newest that still works is meant.
    return next((token for token in reversed(wanted) if not token.revoked), wanted[-1])


def mark_used(file: Path, id: str, day: str) -> None:
    """Keeps the day on which a token was last used."""
    _change(
        file,
        lambda known: [
            token._replace(used=day) if token.id == id and token.used < day else token
            for token in known
        ],
    )


def load(file: Path) -> list[Token]:
    """The tokens of a file, oldest first. None where there is no file; a file that others could have written is refused."""
    text = _text(file)
    return [] if text is None else _parsed(text, file)


def _text(file: Path) -> str | None:
    text = textfile.read(file)
    if text is not None and os.name == "posix":
        about = file.stat()
        if stat.S_IMODE(about.st_mode) & 0o022 or about.st_uid not in (0, os.getuid()):
            raise ConfigError(
                f"Others can write to {file}, so its tokens are not trusted.",
                f"Look into it, then: chmod 600 {file}",
            )
    return text


def _parsed(text: str, file: Path) -> list[Token]:
    try:
        value = json.loads(text)
        if value["version"] != 1:
            raise ConfigError(
                f"{file} was written by a newer Bethink.", "Upgrade with `pip install -U bethink`."
            )
        return [_token(one) for one in value["tokens"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"The tokens in {file} cannot be read: {error}.",
            "Mend or remove the file, then create tokens anew.",
        ) from error


def _token(kept: Mapping[str, Any]) -> Token:
    if kept["scope"] not in SCOPES or not re.fullmatch(r"[0-9a-f]{64}", kept["hash"]):
        raise ValueError("a token has a scope or hash that is none")
    projects = kept["projects"]
    granted = (
        None
        if projects is None
        else tuple(Grant(str(one["scope"]), str(one["root"]), str(one["name"])) for one in projects)
    )
    return Token(
        str(kept["id"]),
        str(kept["name"]),
        kept["hash"],
        kept["scope"],
        granted,
        kept["personal"] is True,
        _moment(kept["created"]),
        _moment(kept["expires"]) if kept.get("expires") else None,
        str(kept.get("used") or ""),
        _moment(kept["revoked"]) if kept.get("revoked") else None,
        str(kept.get("person") or ""),
        str(kept.get("tenant") or ""),
    )


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _written(tokens: Sequence[Token]) -> str:
    def shaped(token: Token) -> dict[str, Any]:
        times = {
            name: found.isoformat() if (found := getattr(token, name)) else None
            for name in ("created", "expires", "revoked")
        }
        projects = None if token.projects is None else [grant._asdict() for grant in token.projects]
        return {**token._asdict(), **times, "projects": projects}

    return (
        json.dumps({"version": 1, "tokens": [shaped(token) for token in tokens]}, indent=1) + "\n"
    )


def _change(file: Path, change: Callable[[list[Token]], list[Token]]) -> None:
    """Reads, changes and replaces the file as one step, whoever else does the same."""
    folder = file.parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BethinkError(
            f"The folder {folder} cannot be made: {error.strerror or error}.",
            "Check its permissions.",
        ) from error
    with textfile.alone(folder):
        for _ in range(ATTEMPTS):
            was = _text(file)
            known = [] if was is None else _parsed(was, file)
            text = _written(change(known))
            if text == was or textfile.write(file, text, was, mode=0o600):
                return
    raise BethinkError(f"{file} keeps changing, so nothing was written.", "Try again.")


class Register(Protocol):
    """Where tokens are kept."""

    far: bool  # whether a look takes long enough to be taken in a thread
    file: Path  # of this machine's own tokens; what else a server keeps stands beside it

    def known(self) -> list[Token]: ...

    def find(self, secret: str) -> Token | None: ...

    def create(
        self, name: str, scope: str, projects: Sequence[Grant] | None, **more: Any
    ) -> tuple[str, Token]: ...

    def revoke(self, name: str, now: datetime) -> Token: ...

    def mark_used(self, token: str, tenant: str, day: str) -> None: ...

    def close(self) -> None: ...


class Tokens:
    """The tokens of a file as it is now. It is read again whenever it was replaced."""

    far = False

    def __init__(self, file: Path) -> None:
        self.file = file
        self._seen: tuple[int, ...] | None = None
        self._known: list[Token] = []

    def known(self) -> list[Token]:
        try:
            about = self.file.stat()
            seen: tuple[int, ...] = (about.st_mtime_ns, about.st_size, about.st_ino, about.st_mode)
        except OSError:
            seen = ()  # no file: nobody holds a token
        if seen != self._seen:
            self._known = load(self.file) if seen else []
            self._seen = seen
        return self._known

    def create(
        self, name: str, scope: str, projects: Sequence[Grant] | None, **more: Any
    ) -> tuple[str, Token]:
        return create(self.file, name, scope, projects, **more)

    def revoke(self, name: str, now: datetime) -> Token:
        return revoke(self.file, name, now)

    def mark_used(self, token: str, tenant: str, day: str) -> None:
        mark_used(self.file, token, day)

    def close(self) -> None:
        """There is nothing to close."""

    def find(self, secret: str) -> Token | None:
        """The token that was offered, whatever its state. Every known one is compared, each in constant time."""
        offered, found = digest(secret[:LONGEST]), None
        for token in self.known():
            if hmac.compare_digest(token.hash, offered):
                found = token
        return found
