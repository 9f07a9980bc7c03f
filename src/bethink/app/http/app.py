"""The running server: a gate in front of REST, MCP and pages; its socket, start, log and end.

One process, one event loop; the work is done in the threads of `projects`. MCP is stateless in both versions of the protocol: no
session can be taken over with another token, and a restart loses nothing. On SIGTERM or Ctrl-C the server finishes running requests,
within a time limit, and closes the databases.
"""

import asyncio
import ipaddress
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, cast

import h11
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from bethink.app.http import api
from bethink.app.http.api import LARGEST_BODY, receive_whole, respond
from bethink.app.http.projects import ACCESS, Projects
from bethink.app.http.security import Admission, Refusal, make_admission, refuse, register_of
from bethink.app.mcp.server import build as build_mcp
from bethink.app.operation import check_values
from bethink.app.web import site
from bethink.errors import BethinkError

GRACE = 10.0  # seconds for requests that run to be answered
LAST = 2.0  # seconds after that for calls whose client is gone
PUBLIC = ("/healthz", "/readyz", "/api/v1/openapi.json", "/api/v1/docs")
MCP_PATH = "/mcp"
# What is not for people begins with one of these.
_PROGRAMS = ("/api/", MCP_PATH, "/healthz", "/readyz")
_PAGE = Path(__file__).with_name("page.html")  # shows the description
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

log = logging.getLogger("bethink")


def build(
    projects: Projects, admission: Admission, started: Callable[[], None] = lambda: None
) -> ASGIApp:
    """Build the whole application. `started` is called once it accepts requests."""
    mcp = Agents(projects)
    projects.tokens = admission.tokens

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        async with mcp.manager.run():
            projects.warm_up()
            started()
            yield
        if not projects.close(LAST):
            log.warning("Something was still running and is given up.")

    async def report_readiness(request: Request) -> Response:
        try:
            await projects.run(lambda: projects.base.store.scopes())
        except BethinkError as error:
            log.warning("Not ready: %s", error.message)
            return JSONResponse({"status": "not ready"}, 503)
        return JSONResponse({"status": "ready"})

    async def describe(request: Request) -> Response:
        return JSONResponse(api.describe())

    alive = JSONResponse({"status": "ok"})
    page = HTMLResponse(_PAGE.read_text("utf-8"), headers=site.HEADERS)
    public: tuple[Callable[..., Any], ...] = (alive, report_readiness, describe, page)
    pages = site.Site(projects, admission)
    routes = [
        *(
            Route(path, endpoint, methods=["GET"])
            for path, endpoint in zip(PUBLIC, public, strict=True)
        ),
        Route(MCP_PATH, mcp, methods=["POST"]),  # no session to end, and nothing to listen to
        *api.routes(projects),
        *pages.routes(),
    ]
    inner = Router(routes, redirect_slashes=False, lifespan=lifespan)
    return Gate(inner, admission, pages)


class Gate:
    """The outermost layer: checks host, origin and token, records the caller, and logs the request.

    It adds the common headers to every answer, and answers even after an unexpected failure. The log contains neither the query nor the
    token. The pages themselves decide who may see them.
    """

    def __init__(self, app: ASGIApp, admission: Admission, pages: site.Site) -> None:
        self.app, self.admission, self.pages = app, admission, pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0
        is_page = not scope["path"].startswith(_PROGRAMS)

        async def send_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                for name, value in {**_HEADERS, **(site.HEADERS if is_page else {})}.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._admit(scope, receive, send_headers)
        except Exception as error:
            if status:
                raise
            if isinstance(error, Refusal) and error.guess:
                error = self.admission.guesses.refuse(scope["client"][0], error)
            if isinstance(error, HTTPException):
                error = _name_unrouted(error, scope)
            shown = self.pages.show_trouble(Request(scope), error) if is_page else respond(error)
            await shown(scope, receive, send_headers)
        finally:
            _log_request(scope, status, time.perf_counter() - started)

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, path = Headers(scope=scope), scope["path"]
        self.admission.check_origin(headers)
        if path.startswith(_PROGRAMS) and path not in PUBLIC:
            # Tokens may be in a database: the others do not wait for it.
            caller = await asyncio.to_thread(self.admission.find_caller, headers)
            scope["bethink.caller"] = caller
        scope["app"] = self.app  # by which a route knows that it may raise
        await self.app(scope, receive_whole(receive, headers), send)


def _log_request(scope: Scope, status: int, seconds: float) -> None:
    route = getattr(scope.get("route"), "path", "other")  # a pattern, never what was sent
    who = scope["bethink.caller"].name if "bethink.caller" in scope else "-"
    method = scope["method"] if scope["method"].isalpha() else "other"
    log.info("%s %s %s %.1fms %s", method[:10], route, status, seconds * 1000, who)


def _name_unrouted(error: HTTPException, scope: Scope) -> Refusal:
    """Return our own error for an unknown address or method, or a form that cannot be read."""
    if error.status_code not in (404, 405):
        return Refusal(error.status_code, error.detail)
    refusal = refuse(str(error.status_code), method=scope["method"])
    refusal.headers |= error.headers or {}
    return refusal


class Agents:
    """MCP over streamable HTTP: the same server as on stdin, without state between requests.

    With a read-only token, tools that change something are refused.
    """

    def __init__(self, projects: Projects) -> None:
        self.manager = StreamableHTTPSessionManager(
            app=build_mcp(projects), stateless=True, max_request_body_size=LARGEST_BODY
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        where = check_values(dict(QueryParams(scope["query_string"])), api.PLACE)
        ACCESS.set((scope["bethink.caller"], where.get("project"), where.get("container")))
        await self.manager.handle_request(scope, receive, send)


# On an address

CONNECTIONS = 512  # clients at once; set by hand, half of the files that a process may usually open
# Of one address at once, also such as have not finished the TLS handshake. Set by hand: no address fills the server, and a proxy has room.
PER_ADDRESS = CONNECTIONS // 2
NETWORK = 64  # leading bits of an IPv6 address by which it counts: its holder has all that begin so
HEADERS_WITHIN = 10.0  # seconds to say what one wants; set by hand, a slow phone needs about one
FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def serve(
    projects: Projects,
    place: tuple[str, int],
    started: Callable[[str], None],
    *,
    session: str = "",
    tls: tuple[str | None, str | None] = (None, None),
    allow: Sequence[str] = (),
) -> bool:
    """Serve projects at a host and port until stopped. Return True if all calls had ended.

    `started` is called with the address once requests are accepted; `session` is a token for the user who started the server; `allow` lists
    other host names of the server.
    """
    # An error in opening the database is raised here and not logged.
    known = register_of(projects.base.store)
    host, certificate = place[0], tls[0]
    admission = make_admission(host, allow, known, session)
    bound = listen(*place)
    scheme = "https" if certificate else "http"
    shown = f"[{host}]" if ":" in host else host
    address = f"{scheme}://{shown}:{bound.getsockname()[1]}"
    built = build(projects, admission, lambda: started(address))
    configured = configure(built, bound, *tls)
    try:
        configured.load()
    except (OSError, ValueError) as error:  # ssl's errors are among them
        raise BethinkError(
            f"The certificate {certificate} cannot be used: {error}.",
            "Give it and its key in PEM form.",
        ) from error
    server = uvicorn.Server(configured)
    # A signal ends the server in good order, and that is no failure: uvicorn raises it again at the end, and nobody is hurt by it.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    server.run([bound])
    if not server.started:
        raise BethinkError("The server could not start.", "The lines above say why.")
    return projects.ended


def configure(
    built: ASGIApp, door: "Door", certificate: str | None = None, key: str | None = None
) -> uvicorn.Config:
    """Configure uvicorn: no server header, no trust in proxy headers, a limited shutdown time."""
    return uvicorn.Config(
        built,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        loop="asyncio",  # others do not accept through `Door`
        http=cast(type[asyncio.Protocol], partial(BoundedProtocol, door)),
        timeout_graceful_shutdown=int(GRACE),
        timeout_keep_alive=15,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )


class Door(socket.socket):
    """A listening socket with a limit on connections per address, so that none can fill the server.

    Over the limit, it closes the connection of that address that has been idle for longest, or the new one if all others are
    answering a request. It counts sockets as they are accepted: a client that never finishes the TLS handshake counts too.
    """

    def __init__(self, family: int, type: int, protocol: int) -> None:
        super().__init__(family, type, protocol)
        self.protocols: dict[int, BoundedProtocol] = {}  # by the number of the socket
        self._accepted: dict[int, tuple[str, socket.socket]] = {}  # by the same, oldest first

    def accept(self) -> tuple[socket.socket, Any]:
        connection, address = super().accept()
        owner = find_owner(address[0])
        own = [number for number, (who, _) in self.accepted.items() if who == owner]
        if len(own) >= PER_ADDRESS and not self._hang_up(own):
            connection.close()
            raise ConnectionAbortedError  # which asyncio passes over
        self._accepted[connection.fileno()] = (owner, connection)
        return connection, address

    @property
    def accepted(self) -> dict[int, tuple[str, socket.socket]]:
        """The connections that are open and were not hung up on, by the number of the socket."""
        self._accepted = {
            number: one for number, one in self._accepted.items() if one[1].fileno() == number
        }
        return self._accepted

    def _hang_up(self, numbers: Sequence[int]) -> bool:
        """End the first of these connections that is idle. Return True if there was one."""
        for number in numbers:
            protocol = self.protocols.get(number)
            if protocol is None or protocol.idle:
                _, connection = self._accepted.pop(number)
                with suppress(OSError):  # it has ended already
                    connection.shutdown(socket.SHUT_RDWR)
                return True
        return False


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP protocol with limits on connected clients and on the time to send a request head.

    Without them, a few hundred clients that send nothing lock everyone else out.
    """

    _head_due: asyncio.TimerHandle | None = None
    _number = -1

    def __init__(
        self,
        door: Door,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._door = door

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._number = transport.get_extra_info("socket").fileno()
        self._door.protocols[self._number] = self
        accepted = list(self._door.accepted)  # perhaps some that came after this one
        if self._number not in accepted:  # hung up on before it came here
            transport.abort()
        elif accepted.index(self._number) >= CONNECTIONS:
            transport.write(FULL)
            transport.close()
        else:
            self._expect_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._head_due is None:
            self._expect_head()

    @property
    def idle(self) -> bool:
        """True if no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_lost(self, exc: Exception | None) -> None:
        if self._door.protocols.get(self._number) is self:
            del self._door.protocols[self._number]
        self._stop_waiting()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        self._head_due = self.loop.call_later(HEADERS_WITHIN, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None


def find_owner(host: str) -> str:
    """The address, or the network of an IPv6 address, under which connections are counted."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, NETWORK), strict=False))


def listen(host: str, port: int) -> Door:
    """A socket bound to the address, or a sentence about why there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio knows that it may send small answers at once.
    bound = Door(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen()  # a client may connect before uvicorn listens
    except OSError as error:
        bound.close()
        hint = "Another server may be there; give another --port, or 0 for any that is free."
        message = f"{host}:{port} cannot be listened on: {error.strerror or error}."
        raise BethinkError(message, hint) from error
    return bound


def free_port(host: str, port: int) -> int:
    """Return the usual port, or 0 (any) if another program uses it."""
    try:
        listen(host, port).close()
    except BethinkError:
        return 0
    return port


def leave() -> NoReturn:
    """End the process although a call still runs; its thread might never end. The database survives that."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def prepare_log(quiet: bool) -> None:
    """Log requests and problems to stderr; if `quiet`, only problems. Libraries log only warnings."""
    logging.Formatter.converter = time.gmtime
    line, moment = "%(asctime)sZ %(levelname)s: %(message)s", "%Y-%m-%dT%H:%M:%S"
    logging.basicConfig(format=line, datefmt=moment, level=logging.WARNING)
    log.setLevel(logging.WARNING if quiet else logging.INFO)
