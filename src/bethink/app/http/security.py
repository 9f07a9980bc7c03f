"""Access control: bearer tokens, allowed hosts and origins, a limit on guesses, and refusals.

A token has 256 random bits; only its hash is stored, in a file that only its owner can read, or in the team's database. The server
checks it before every request, so a revoked token is refused from the next request on, by every server. This module knows no web
framework: `bethink token` and `bethink mcp` load it.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import logging
import re
import secrets
import time
from collections import deque
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from bethink.config import data_directory
from bethink.errors import BethinkError, ConfigError, InvalidInput, NotFound
from bethink.model import NOTHING, PERSONAL, TEAM, Json, Values
from bethink.post import is_address
from bethink.store.rows import stamp
from bethink.text import textfile

if TYPE_CHECKING:
    from starlette.datastructures import Headers

    from bethink.store.base import Store
    from bethink.store.postgres import PostgresStore

_SCOPES = ("read", "write")
PREFIX = "rcl_"  # by which people and scanners for leaked secrets know one
BITS = 256
_LONGEST = 200  # characters of anything that is offered as a token
TIMES = ("created", "expires", "revoked")
_TEXTS = ("id", "name", "hash", "scope", "person", "tenant")
# Wrong tokens or tickets of one address, and the seconds within which so many are too many. Set by hand: a person mistypes
# a few times, and a program with an old token still gets enough useful errors.
WRONG_TOKENS, WRONG_WITHIN = 20, 60.0
ADDRESSES = 1000  # whose wrong tokens are counted; the oldest is dropped for a new one
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
_HOST = re.compile(
    r"(?P<name>\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::(?P<port>[0-9]{1,5}))?"
)

log = logging.getLogger("bethink")


# Error responses, with the texts of refusals.toml

DOCS = "`/api/v1/docs` shows what each operation takes."
LIST_IDS = "`GET /api/v1/memories` lists ids."


class Refusal(BethinkError):
    """An error response with a status. A `guess` is counted per address."""

    def __init__(
        self,
        status: int,
        message: str,
        hint: str | None = None,
        headers: Mapping[str, str] = NOTHING,
        guess: bool = False,
    ) -> None:
        super().__init__(message, hint)
        self.status, self.headers, self.guess = status, dict(headers), guess


@cache
def read_refusals() -> dict[str, Json]:
    import tomllib  # not for a server that greets its client

    return tomllib.loads(Path(__file__).with_name("refusals.toml").read_text("utf-8"))


def refuse(name: str, **values: object) -> Refusal:
    """Return the error response of that name, filled with these values."""
    about = {**read_refusals()[name]}
    return Refusal(message=about.pop("message").format(**values), **about)


def as_refusal(error: Exception) -> Refusal:
    """Convert an error into a response. Details of a server error go to the log alone."""
    if isinstance(error, Refusal):
        return error
    known = read_refusals()
    kind = next(one.__name__ for one in type(error).__mro__ if one.__name__ in known)
    about = known[kind]
    if isinstance(error, BethinkError) and "message" not in about:
        hint = error.hint or ""
        if kind == "NotFound" and "memory" in error.message:
            hint = LIST_IDS
        elif re.search(r"\bbethink [a-z]|(?<!\w)--[a-z]", hint):
            hint = DOCS  # it names a command or its options, which are for a shell
        return Refusal(about["status"], error.message, hint)
    trace = None if isinstance(error, BethinkError) else error
    log.error("%s: %s", type(error).__name__, error, exc_info=trace)
    return refuse(kind)


# Who


class Grant(NamedTuple):
    """A project that a token is for."""

    scope: str
    root: str
    name: str


class Caller(NamedTuple):
    """The holder of a token, and their access."""

    id: str
    name: str
    scope: str = "write"  # or read
    projects: tuple[Grant, ...] | None = None  # None: every project
    personal: bool = True
    hash: str = ""  # of the token; of the owner's none is kept
    created: datetime | None = None
    expires: datetime | None = None
    revoked: datetime | None = None
    person: str = ""  # whose it is, in a database that keeps people apart
    tenant: str = ""  # and whose part of that database it opens

    @property
    def owner(self) -> bool:
        """True for the person whose memory this is: they hold the token that the server made at its start."""
        return not self.hash

    @property
    def may_write(self) -> bool:
        return self.scope == "write"

    def sees(self, scope: str) -> bool:
        """Return True if the caller may see a scope: a project, one of its containers, or personal memories."""
        if scope == PERSONAL:
            return self.personal
        if scope == TEAM:
            return True  # of the tenant that the token opens
        return self.projects is None or any(
            scope == grant.scope
            or scope.startswith(f"container:{grant.scope.removeprefix('project:')}/")
            for grant in self.projects
        )

    def state(self, now: datetime) -> str:
        if self.revoked:
            return "revoked"
        return "expired" if self.expires and self.expires <= now else "active"


SESSION_CALLER = Caller("session", "session")


def hash_token(secret: str) -> str:
    return sha256(secret[:_LONGEST].encode("utf-8", "surrogatepass")).hexdigest()


def new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(BITS // 8)


def register_of(store: Store | None) -> Tokens:
    """Return the token store: the shared database if there is one, else a file on this machine."""
    if hasattr(store, "act_as"):
        return SharedTokens(cast("PostgresStore", store))
    return Tokens(data_directory() / "tokens.json")


class Tokens:
    """Tokens in a file, read for every request. A file that others could have written is refused."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def create(self, wanted: Caller) -> tuple[str, Caller]:
        """Create a token with these permissions. Return the secret, which is not stored, and its record."""
        for what, name in (("a token", wanted.name), ("a person", wanted.person or "x")):
            if not _NAME.fullmatch(name):
                raise InvalidInput(
                    f"'{name[:80]}' cannot name {what}.",
                    "Up to 60 letters, digits, dots and dashes, such as --name laptop or --person ada.",
                )
        secret = new_secret()
        made = wanted._replace(id=secrets.token_hex(4), hash=hash_token(secret))
        return secret, self._put(made)

    def revoke(self, name: str, now: datetime) -> Caller:
        """Revoke a token by its name or id."""
        wanted = [token for token in self.known() if name in (token.id, token.name)]
        if not wanted:
            raise NotFound(f"There is no token '{name[:80]}'.", "`bethink token list` shows them.")
        # An ended name may have been given again: the newest that still works is meant.
        meant = next((token for token in reversed(wanted) if not token.revoked), wanted[-1])
        return self._put(meant._replace(revoked=meant.revoked or now))

    def known(self) -> list[Caller]:
        """The tokens, oldest first."""
        return self._parse(self._read())

    def find(self, hash: str) -> Caller | None:
        """The token with this hash, whatever its state."""
        # Every one is compared, each in constant time.
        found = [token for token in self.known() if hmac.compare_digest(token.hash, hash)]
        return found[-1] if found else None

    def _put(self, token: Caller) -> Caller:
        """Save a new or revoked token: read, change and replace the file in one step, under a lock."""
        with textfile.alone(self.file.parent):
            was = self._read()
            known = {one.id: one for one in self._parse(was)}
            at = token.created or datetime.now(UTC)
            rivals = {one.name for one in known.values() if one.state(at) == "active"}
            if token.id not in known and token.name in rivals:
                raise InvalidInput(
                    f"There is a token named '{token.name}' already.",
                    f"Name it otherwise, or `bethink token revoke {token.name}`.",
                )
            rows = [one._asdict() for one in (known | {token.id: token}).values()]
            value = {"version": 1, "tokens": rows}
            text = json.dumps(value, indent=1, default=datetime.isoformat) + "\n"
            if not textfile.write(self.file, text, was, mode=0o600):
                message = f"{self.file} was changed by something else at the same moment."
                raise BethinkError(message, "Try again.")
        return token

    def close(self) -> None:
        """A file needs none."""

    def _read(self) -> str | None:
        text = textfile.read(self.file)
        if text is not None and textfile.may_others(self.file, 0o022):
            raise ConfigError(
                f"Others can write to {self.file}, so its tokens are not trusted.",
                f"Look into it, then: chmod 600 {self.file}",
            )
        return text

    def _parse(self, text: str | None) -> list[Caller]:
        if text is None:
            return []
        try:
            value = json.loads(text)
            if value["version"] != 1:
                raise ValueError("they are of a newer version; `pip install -U bethink`")
            return list(map(_read_row, value["tokens"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ConfigError(
                f"The tokens in {self.file} cannot be read: {error}.",
                "Fix or remove the file, then create new tokens.",
            ) from error


class SharedTokens(Tokens):
    """The same in a team's database, for any number of servers."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    def known(self) -> list[Caller]:
        """Those of the store's own tenant."""
        return list(map(_read_row, self._store.list_tokens()))

    def find(self, hash: str) -> Caller | None:
        row = self._store.find_token(hash)  # of whichever tenant
        return _read_row(row) if row else None

    def _put(self, token: Caller) -> Caller:
        if token.revoked:
            self._store.revoke_token(token.id, stamp(token.revoked))
            return token
        if token.personal and not token.person:
            raise InvalidInput(
                "A token for personal memories needs a person; otherwise all such tokens would share them.",
                f"bethink token create --name {token.name} --person NAME --personal",
            )
        times = {name: stamp(at) if (at := getattr(token, name)) else None for name in TIMES}
        granted = None if token.projects is None else json.dumps(token.projects)
        self._store.add_token({**token._asdict(), **times, "projects": granted})
        return token._replace(tenant=self._store.name)

    def close(self) -> None:
        self._store.close()


def _read_row(row: Values) -> Caller:
    """The token of a row, of a file or a database. A ValueError, KeyError or TypeError where it is none."""
    texts = {name: str(row.get(name) or "") for name in _TEXTS}
    if texts["scope"] not in _SCOPES or not re.fullmatch(r"[0-9a-f]{64}", texts["hash"]):
        raise ValueError("a token has a scope or hash that is none")
    times = {name: _read_time(row[name]) if row.get(name) else None for name in TIMES}
    granted = row["projects"]
    if granted is not None:
        granted = json.loads(granted) if isinstance(granted, str) else granted
        # A file of 0.15 and before names the parts of each.
        named = (one.values() if isinstance(one, dict) else one for one in granted)
        granted = tuple(Grant(*map(str, one)) for one in named)
    personal = row["personal"] is True
    return Caller(projects=granted, personal=personal, **texts, **times)  # type: ignore[arg-type]


def _read_time(value: str | int) -> datetime:
    if isinstance(value, int):
        return datetime.fromtimestamp(value / 1000, UTC)
    found = datetime.fromisoformat(value)
    return found.replace(tzinfo=found.tzinfo or UTC)  # a date that was edited by hand


# How


class GuessLimit:
    """Slows down guessing. A valid token passes at any time: others may call from the same address."""

    def __init__(self) -> None:
        self._wrong: dict[str, deque[float]] = {}  # when each address was wrong last

    def refuse(self, address: str, error: Refusal) -> Refusal:
        """Count a wrong token. Return the error to answer with; after too many, one without details."""
        now, times = time.monotonic(), self._wrong.pop(address, deque(maxlen=WRONG_TOKENS))
        if len(self._wrong) >= ADDRESSES:
            self._wrong.pop(next(iter(self._wrong)))
        self._wrong[address] = times
        left = WRONG_WITHIN - (now - times[0]) if len(times) == WRONG_TOKENS else 0
        if left <= 0:
            times.append(now)
            return error
        refusal = refuse("too-many-guesses")
        refusal.headers["Retry-After"] = str(int(left) + 1)
        return refusal


class Admission(NamedTuple):
    """Check host, origin and token of a request.

    Any web page in the user's browser can reach a server on the same machine, by a name that points to 127.0.0.1 (DNS rebinding) or by a
    cross-site post. So a request must name one of our hosts, a browser must come from one of our pages, and everything but health and the
    description of the API needs a token. The web page has a cookie instead (`web`), which opens nothing else. No CORS headers.
    """

    hosts: frozenset[str]  # names by which it may be called
    tokens: Tokens
    guesses: GuessLimit
    session: str = ""  # hash of the token made at start
    addresses: bool = False  # any literal address will do: bound to all of them, and no name is pointed at an address by it

    def find_caller(self, headers: Headers) -> Caller:
        scheme, _, secret = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            raise refuse("no-token")
        return self.identify(hash_token(secret.strip()))

    def identify(self, hash: str) -> Caller:
        """Return the caller with this token hash. Raises if it is unknown, expired or revoked."""
        found = self.tokens.find(hash)
        if self.session and hmac.compare_digest(self.session, hash):
            return SESSION_CALLER
        if found is None:
            raise refuse("unknown-token")
        state = found.state(datetime.now(UTC))
        if state != "active":
            raise refuse("ended-token", state=state)
        return found

    def admits(self, host: str) -> bool:
        found = _HOST.fullmatch(host)
        if not found:
            return False
        name = found["name"].lower().strip("[]")
        return name in self.hosts or (self.addresses and is_address(name))

    def check_origin(self, headers: Headers) -> None:
        """Refuse a request for a foreign host, or from a browser on a foreign page."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.admits(hosts[0]):
            raise refuse("foreign-host", host=hosts[0][:100] if hosts else "")
        ours = {f"{scheme}://{hosts[0]}".lower() for scheme in ("http", "https")}
        foreign = [origin for origin in headers.getlist("origin") if origin.lower() not in ours]
        if (
            headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
            and headers.get("sec-fetch-mode") != "navigate"
        ):
            foreign.append("other sites")
        if foreign:
            raise refuse("foreign-page", origin=foreign[0][:100])


def make_admission(host: str, extra: Iterable[str], known: Tokens, session: str = "") -> Admission:
    """Build the admission of a server on a host. `extra` lists more host names, with or without a port."""
    names = {*LOCAL_NAMES, host.lower()}
    for text in extra:
        found = _HOST.fullmatch(text.strip())
        if not found:
            raise InvalidInput(
                f"'{text}' is not the name of a host.",
                "Give it as memory.example, without https:// and a path.",
            )
        names.add(found["name"].lower().strip("[]"))
    anywhere = is_address(host) and ipaddress.ip_address(host).is_unspecified
    hashed = hash_token(session) if session else ""
    return Admission(frozenset(names), known, GuessLimit(), hashed, anywhere)
