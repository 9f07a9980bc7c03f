"""Who may call: the Host and Origin of a request, its token, and how much of a body is read. Closed by default.

A web page that somebody visits can reach a server on their own machine, by a name that its owner lets point to 127.0.0.1 (DNS
rebinding) or by posting to it across sites. So a request has to name a host that is ours, a browser has to come from a page that
is ours, and everything but health and the description of the API needs a token. The web page has a cookie instead (`web`),
which opens nothing else. No CORS headers.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from bethink.errors import (
    Ambiguous,
    BethinkError,
    ConfigError,
    EmbeddingError,
    InvalidInput,
    NotFound,
    OutcomeUnknown,
    Overtaken,
    StoreBusy,
    StoreUnavailable,
    UsageError,
)
from bethink.post import is_address
from bethink.surface.http import tokens
from bethink.surface.http.tokens import Grant, Register
from bethink.text import replace_broken
from bethink.types import PERSONAL, TEAM

LARGEST_BODY = 8 * 1024 * 1024
BODY_WITHIN = 30.0  # seconds for a body to arrive
# Wrong tokens or tickets of one address, and the seconds within which so many are too many. Set by hand: a person mistypes
# a few times, and a program with an old token is told often enough what is wrong with it.
WRONG_TOKENS, WRONG_WITHIN = 20, 60.0
ADDRESSES = 1000  # whose wrong tokens are counted; the one that was wrong longest ago is dropped for a new one
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
PUBLIC = ("/healthz", "/readyz", "/api/v1/openapi.json", "/api/v1/docs")
# With what paths begin that are not for browsers.
PROGRAMS = ("api", "mcp", "healthz", "readyz", ".well-known")
# Where MCP clients look for a sign-in after a 401: there is none, and a 401 there would send them round in circles.
SIGN_IN = "/.well-known/"

_HOST = re.compile(
    r"(?P<name>\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::(?P<port>[0-9]{1,5}))?"
)
_ORIGIN = re.compile(r"(?P<scheme>https?)://(?P<host>[^/?#@\s]{1,300})")

log = logging.getLogger("bethink")

# What goes wrong, as the caller is told: problem details (RFC 9457) with a sentence and a next step. Our own errors say
# what is wrong with a request; what is wrong with the server (its database, its settings) is told in general words.

MEDIA_TYPE = "application/problem+json"
URN = "urn:bethink:problem:"
DOCS = "`/api/v1/docs` shows what each operation takes."
LIST_IDS = "`GET /api/v1/memories` lists ids."
ASK_FOR_TOKEN = {"WWW-Authenticate": 'Bearer realm="bethink"'}

TITLES = {
    400: ("bad-request", "The request cannot be read"),
    401: ("unauthorized", "A token is needed"),
    403: ("forbidden", "Not allowed"),
    404: ("not-found", "Not found"),
    405: ("method-not-allowed", "Not a method of this address"),
    408: ("timeout", "The request took too long to arrive"),
    409: ("conflict", "In conflict with what is there"),
    413: ("too-large", "The request is too large"),
    415: ("unsupported-media-type", "Not a form that is read here"),
    422: ("invalid", "Something in the request is not valid"),
    429: ("too-many", "Too many wrong tokens"),
    500: ("internal", "Something went wrong here"),
    503: ("unavailable", "Not possible right now"),
}


# What is not possible right now: what is said of it, and what to do.
FOR_NOW: dict[type[BethinkError], tuple[str, str]] = {
    StoreBusy: (
        "Another process is writing and did not finish in time.",
        "Try again in a moment.",
    ),
    StoreUnavailable: (
        "The database is out of reach; what was not acknowledged was not changed.",
        "Try again in a moment.",
    ),
    OutcomeUnknown: (
        "The database went away, and it is not known whether this was stored.",
        "Send it again in a moment, with the same Idempotency-Key.",
    ),
    EmbeddingError: (
        "Meaning cannot be searched or stored right now.",
        "Ask with mode=keyword; the server's log says why.",
    ),
}


class Refusal(BethinkError):
    """A request that is answered with a status and a sentence."""

    def __init__(
        self,
        status: int,
        message: str,
        hint: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, hint)
        self.status = status
        self.headers = dict(headers or {})


class Forbidden(Refusal):
    """The caller is known and may not do this. `scope` is what would be needed."""

    def __init__(self, message: str, hint: str | None = None, scope: str = "") -> None:
        needed = f', error="insufficient_scope", scope="{scope}"' if scope else ""
        super().__init__(
            403,
            message,
            hint,
            {"WWW-Authenticate": f'Bearer realm="bethink"{needed}'} if scope else None,
        )


def as_refusal(error: Exception) -> Refusal:
    """What the caller is told of an error. What is wrong with the server is for its log."""
    if isinstance(error, Refusal):
        return error
    message, hint = getattr(error, "message", ""), _over_http(getattr(error, "hint", None))
    if isinstance(error, NotFound):
        return Refusal(404, message, LIST_IDS if "memory" in message else hint)
    if isinstance(error, Ambiguous | Overtaken):
        return Refusal(409, message, hint)
    for kind, (detail, step) in FOR_NOW.items():
        if isinstance(error, kind):
            log.warning("%s", error)
            return Refusal(503, detail, step, {"Retry-After": "1"})
    if isinstance(error, UsageError) and not isinstance(error, ConfigError):
        return Refusal(422, message, hint)
    trace = None if isinstance(error, BethinkError) else error
    log.error("%s: %s", type(error).__name__, error, exc_info=trace)
    step = "Its log says why; `bethink doctor` on that machine checks the rest."
    return Refusal(500, "The server could not do this.", step)


def response(error: Exception) -> Response:
    """The answer to a request that failed."""
    told = as_refusal(error)
    name, title = TITLES.get(told.status, TITLES[400])
    value: dict[str, Any] = {
        "type": URN + name,
        "title": title,
        "status": told.status,
        "detail": replace_broken(told.message),
    }
    if told.hint:
        value["hint"] = replace_broken(told.hint)
    return Response(
        json.dumps(value, ensure_ascii=False).encode(), told.status, told.headers, MEDIA_TYPE
    )


def _over_http(hint: str | None) -> str | None:
    """A hint that names a command or its options is for a shell; a program is sent to the description of what it can call."""
    return DOCS if hint and re.search(r"\bbethink [a-z]|(?<!\w)--[a-z]", hint) else hint


# Who calls


class Caller(NamedTuple):
    """Whoever a request comes from, and what they may see and do."""

    id: str
    name: str
    scope: str = "write"
    projects: tuple[Grant, ...] | None = None  # None: every project
    personal: bool = True
    person: str = ""  # whose token it is, in a database that keeps people apart
    tenant: str = ""  # and whose part of that database it opens
    owner: bool = False  # the person whose memory this is, by the token that the server made for them when it started

    @property
    def may_write(self) -> bool:
        return self.scope == "write"

    @property
    def everywhere(self) -> bool:
        return self.projects is None

    def sees(self, scope: str) -> bool:
        """Whether a project, one of its containers, or what is personal is theirs to see."""
        if scope == PERSONAL:
            return self.personal
        if scope == TEAM:
            return True  # of the tenant that the token opens
        return self.projects is None or any(
            scope == grant.scope
            or scope.startswith(f"container:{grant.scope.removeprefix('project:')}/")
            for grant in self.projects
        )


SESSION = Caller("session", "session", owner=True)


class Access(NamedTuple):
    """What the current request may work on."""

    caller: Caller
    project: str | None = None
    container: str | None = None


ACCESS: ContextVar[Access] = ContextVar("bethink_access")


class WrongToken(Refusal):
    """A token or ticket that nobody made: a guess."""


class GuessLimit:
    """Slows down whoever guesses. A right token passes at any time: others may call from the same address."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wrong: dict[str, list[float]] = {}

    def refuse(self, address: str, error: Refusal) -> Refusal:
        """Counts a wrong token. Returns the error to answer with: after too many, one that says nothing about the token."""
        now = self._clock()
        recent = [at for at in self._wrong.pop(address, ()) if now - at < WRONG_WITHIN]
        while len(self._wrong) >= ADDRESSES:
            self._wrong.pop(next(iter(self._wrong)))
        if len(recent) >= WRONG_TOKENS:
            self._wrong[address] = recent
            return Refusal(
                429,
                "Too many wrong tokens came from this address.",
                "Wait a minute; `bethink token list` shows what there is.",
                {"Retry-After": str(int(WRONG_WITHIN - (now - recent[0])) + 1)},
            )
        self._wrong[address] = [*recent, now]
        return error


class Admission(NamedTuple):
    """What the server lets in."""

    hosts: frozenset[str]  # names by which it may be called
    tokens: Register
    guesses: GuessLimit
    session: str = ""  # hash of the token made at start
    addresses: bool = False  # any literal address will do: bound to all of them, and no name is pointed at an address by it

    def caller(self, headers: Headers) -> Caller:
        given = headers.getlist("authorization")
        if not given:
            raise Refusal(
                401,
                "This needs a token.",
                "Send `Authorization: Bearer TOKEN`; `bethink token create` makes one.",
                ASK_FOR_TOKEN,
            )
        scheme, _, secret = given[0].partition(" ")
        if len(given) > 1 or scheme.lower() != "bearer" or not secret.strip():
            raise _refuse_token("The Authorization header is not of the form `Bearer TOKEN`.")
        return self.identify(tokens.digest(secret.strip()))

    async def look_up(self, find: Callable[..., Caller], *given: Any) -> Caller:
        """What `caller` or `identify` finds. Tokens in a database are looked up in a thread, so that the others do not wait."""
        return await asyncio.to_thread(find, *given) if self.tokens.far else find(*given)

    def identify(self, hash: str) -> Caller:
        """Whose token has this hash. Raises where it is nobody's, or has ended."""
        mine = bool(self.session) and hmac.compare_digest(self.session, hash)
        found = self.tokens.find(hash)
        if mine:
            return SESSION
        state = found.state(datetime.now(UTC)) if found else "unknown"
        if found is None or state != "active":
            wrong = WrongToken if found is None else Refusal
            raise _refuse_token(
                "The token is not known." if found is None else f"The token is {state}.", wrong
            )
        return Caller(
            found.id,
            found.name,
            found.scope,
            found.projects,
            found.personal,
            found.person,
            found.tenant,
        )

    def admits(self, host: str) -> bool:
        found = _HOST.fullmatch(host)
        if not found:
            return False
        name = found["name"].lower().strip("[]")
        return name in self.hosts or (self.addresses and is_address(name))


def _refuse_token(message: str, kind: type[Refusal] = WrongToken) -> Refusal:
    headers = {"WWW-Authenticate": 'Bearer realm="bethink", error="invalid_token"'}
    return kind(
        401,
        message,
        "`bethink token list` shows what there is; `bethink token create` makes a new one.",
        headers,
    )


def host_name(text: str) -> str:
    """The name in a host as people write it, with a port or without."""
    found = _HOST.fullmatch(text.strip())
    if not found:
        raise InvalidInput(
            f"'{text}' is not the name of a host.",
            "Give it as memory.example, without https:// and a path.",
        )
    return found["name"].lower().strip("[]")


def make_admission(
    host: str, extra: Iterable[str], known: Register, session: str = ""
) -> Admission:
    """The admission of a server that is bound to a host."""
    anywhere = is_address(host) and ipaddress.ip_address(host).is_unspecified
    names = {*LOCAL_NAMES, host.lower(), *map(host_name, extra)}
    hashed = tokens.digest(session) if session else ""
    return Admission(frozenset(names), known, GuessLimit(), hashed, anywhere)


class Pages(Protocol):
    """What is for browsers, and looks after itself who may see it."""

    def owns(self, path: str) -> bool: ...
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class Gate:
    """In front of everything: lets a request in only where host, origin and token are right, and notes whose it is."""

    def __init__(
        self,
        app: ASGIApp,
        admission: Admission,
        pages: Pages,
    ) -> None:
        self.app, self.admission, self.pages = app, admission, pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = Headers(scope=scope)
        try:
            check_origin(headers, self.admission)
            if self.pages.owns(scope["path"]) or _browses(scope, headers):
                await self.pages(scope, receive, send)
                return
            if scope["path"] not in PUBLIC and not scope["path"].startswith(SIGN_IN):
                caller = await self.admission.look_up(self.admission.caller, headers)
                scope["bethink.caller"] = caller
        except WrongToken as error:
            answer = response(self.admission.guesses.refuse(client_address(scope), error))
            await answer(scope, receive, send)
            return
        except BethinkError as error:
            await response(error)(scope, receive, send)
            return
        await self.app(scope, receive, send)


def client_address(scope: Scope) -> str:
    return str((scope.get("client") or ("",))[0])


def _browses(scope: Scope, headers: Headers) -> bool:
    """Whether a person looks for a page at an address that is none. Whoever is signed in is told so in a page, and not asked for a token."""
    wants_page = (
        scope["method"] in ("GET", "HEAD")
        and "text/html" in headers.get("accept", "")
        and "authorization" not in headers
    )
    return wants_page and not scope["path"].removeprefix("/").startswith(PROGRAMS)


def check_origin(headers: Headers, admission: Admission) -> None:
    """Refuses a request that names a foreign host, or that a browser sends for a foreign page."""
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not admission.admits(hosts[0]):
        shown = hosts[0][:100] if hosts else ""
        raise Forbidden(
            f"This server is not called '{shown}'.",
            "`bethink serve --allow-host NAME` lets a name in.",
        )
    for origin in headers.getlist("origin"):
        found = _ORIGIN.fullmatch(origin)
        if not found or _with_port(found["host"], found["scheme"]) != _with_port(
            hosts[0], found["scheme"]
        ):
            raise Forbidden(
                f"Pages of '{origin[:100]}' may not call this server.",
                "Call it from a program, or from its own pages.",
            )
    if (
        headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        and headers.get("sec-fetch-mode") != "navigate"
    ):
        raise Forbidden(
            "Pages of other sites may not call this server.",
            "Call it from a program, or from its own pages.",
        )


def _with_port(host: str, scheme: str) -> str:
    found = _HOST.fullmatch(host)
    return (
        f"{found['name'].lower()}:{found['port'] or {'http': '80', 'https': '443'}[scheme]}"
        if found
        else host
    )


async def read_body(receive: Receive, headers: Headers, largest: int = LARGEST_BODY) -> bytes:
    """The whole body, if it is not too large and does not take too long."""
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > largest:
        raise _too_large(largest)
    parts = bytearray()
    try:
        async with asyncio.timeout(BODY_WITHIN):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refusal(400, "The request ended before its body did.")
                parts += message.get("body", b"")
                if len(parts) > largest:
                    raise _too_large(largest)
                if not message.get("more_body", False):
                    return bytes(parts)
    except TimeoutError:
        raise Refusal(
            408, f"The body did not arrive within {BODY_WITHIN:g} seconds.", "Send it again."
        ) from None


def _too_large(largest: int) -> Refusal:
    return Refusal(
        413,
        f"The body is larger than {largest // 1024 // 1024} MB.",
        "Split it over several requests.",
        {"Connection": "close"},
    )


def check_json(headers: Headers) -> None:
    """A body has to say that it is JSON: what a page of another site can post without being asked never does."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if (
        kind != "application/json"
        or headers.get("content-encoding", "identity").lower() != "identity"
    ):
        raise Refusal(
            415,
            "The body has to be JSON.",
            "Send `Content-Type: application/json`, not compressed.",
        )
