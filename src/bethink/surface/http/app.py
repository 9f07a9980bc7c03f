"""The application put together: watch → gate → routes, agents (MCP) and pages. `serving` binds it to an address and runs it.

One process, one event loop; the work is done in the threads of `projects`. MCP is stateless in both eras of the protocol: no
session can then be taken over with another token, and a restart loses nothing.
"""

from __future__ import annotations

import json
import logging
import re
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic_core import from_json
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bethink.errors import BethinkError
from bethink.surface.arguments import check_arguments, parse_arguments
from bethink.surface.http import api, browsing, memories, tokens
from bethink.surface.http.api import WHERE, Once, Tools
from bethink.surface.http.background import Checkup, Jobs
from bethink.surface.http.projects import Projects
from bethink.surface.http.security import (
    ACCESS,
    LARGEST_BODY,
    Access,
    Admission,
    Caller,
    Forbidden,
    Gate,
    Refusal,
    problem,
    read_body,
    response,
)
from bethink.surface.mcp import schemas
from bethink.surface.mcp.server import build as build_mcp
from bethink.surface.web.site import Site
from bethink.types import PERSONAL

__all__ = ["browsing", "build", "memories"]  # the operations are registered by being imported

GRACE = 10.0  # seconds for requests that run to be answered
LAST = 2.0  # seconds after that for jobs, and for calls whose client is gone
METHODS = ("GET", "HEAD", "POST", "PATCH", "DELETE", "PUT", "OPTIONS")
POLICY = "default-src 'none'; frame-ancestors 'none'"

log = logging.getLogger("bethink")


def build(projects: Projects, admission: Admission) -> ASGIApp:
    """The whole application."""
    measured, jobs, mcp = Metrics(), Jobs(), Agents(projects)
    tools = Tools(projects, jobs, Once(), measured, Checkup(), admission.tokens)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with mcp.manager.run():
            projects.warm_up()
            yield
        quiet = tools.checkup.close(LAST)  # a database that is being counted cannot be closed
        projects.ended = all([jobs.close(LAST), quiet and projects.close(LAST)])
        if not projects.ended:
            log.warning("Something was still running and is given up.")

    async def tell_ready(request: Request) -> Response:
        try:
            await projects.run(projects.ready)
        except BethinkError as error:
            log.warning("Not ready: %s", error.message)
            return JSONResponse({"status": "not ready"}, 503)
        return JSONResponse({"status": "ready"})

    async def tell_numbers(request: Request) -> Response:
        caller: Caller = request.scope["bethink.caller"]
        try:
            gauges = await projects.run(_gauges, projects, caller)
        except BethinkError as error:
            return response(error)
        return Response(measured.text(gauges), media_type=METRICS_TYPE)

    simple = {
        "/healthz": _tell_alive,
        "/readyz": tell_ready,
        "/metrics": tell_numbers,
        f"{api.BASE}/openapi.json": _describe,
        f"{api.BASE}/docs": _show_docs,
    }
    inner = Starlette(
        routes=[
            *(_named_route(path, endpoint) for path, endpoint in simple.items()),
            Route(MCP_PATH, mcp),
            *api.routes(tools),
        ],
        lifespan=lifespan,
        exception_handlers={HTTPException: _tell_unrouted},
    )
    inner.router.redirect_slashes = False
    return Watch(
        Gate(inner, admission, Marks(admission.tokens, projects), Site(tools, admission)), measured
    )


def _named_route(path: str, endpoint: Callable[[Request], Awaitable[Response]]) -> Route:
    async def named(request: Request) -> Response:
        request.scope["bethink.route"] = path
        return await endpoint(request)

    return Route(path, named, methods=["GET"])


async def _tell_alive(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _describe(request: Request) -> Response:
    return JSONResponse(api.describe())


async def _show_docs(request: Request) -> Response:
    content, policy = api.page()
    return Response(content, headers={"Content-Security-Policy": policy}, media_type="text/html")


async def _tell_unrouted(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = "There is nothing at this address."
    if error.status_code == 405:
        message = f"{request.method} is not a method of this address."
    hint = "`/api/v1/docs` lists what there is."
    return problem(error.status_code, message, hint, error.headers)


def _gauges(projects: Projects, caller: Caller) -> dict[str, tuple[str, float]]:
    """Numbers of what the caller may see."""
    store = projects.store_of(caller)
    scopes = [scope for scope in store.scopes() if caller.sees(scope)]
    found = projects.base.filter(scopes=tuple(scopes) or (PERSONAL,))
    number = store.count(found) if scopes else 0
    gauges: dict[str, tuple[str, float]] = {
        "bethink_memories": ("Memories that can be found.", number)
    }
    path = getattr(store, "path", None)
    if caller.everywhere and path is not None:
        files = [Path(f"{path}{suffix}") for suffix in ("", "-wal")]
        size = sum(file.stat().st_size for file in files if file.exists())
        gauges["bethink_database_bytes"] = ("Bytes of the database on disk.", size)
    return gauges


class Marks:
    """Notes the day on which each token was used, once a day, in a thread."""

    def __init__(self, known: tokens.Register, projects: Projects) -> None:
        self._known, self._projects = known, projects
        self._noted: dict[str, str] = {}

    async def __call__(self, caller: Caller) -> None:
        day = datetime.now(UTC).date().isoformat()
        if caller.id in ("local", "session") or self._noted.get(caller.id) == day:
            return
        self._noted[caller.id] = day
        try:
            await self._projects.run(self._known.mark_used, caller.id, caller.tenant, day)
        except BethinkError as error:
            log.warning("The use of a token was not noted: %s", error.message)


class Watch:
    """Around everything: one line in the log and a count for each request, the headers that all answers carry, and an answer
    even where something unforeseen failed. What was asked and with which token stays out of the log."""

    def __init__(self, app: ASGIApp, measured: Metrics) -> None:
        self.app, self.measured = app, measured

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0

        async def send_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                headers.setdefault("Cache-Control", "no-store")
                headers.setdefault("Content-Security-Policy", POLICY)
                headers["X-Content-Type-Options"] = "nosniff"
                headers.setdefault("Referrer-Policy", "no-referrer")
            await send(message)

        self.measured.running += 1
        try:
            await self.app(scope, receive, send_headers)
        except Exception:
            log.exception("A request failed")
            if status:
                raise
            failed = problem(500, "The server could not do this.", "Its log says why.")
            await failed(scope, receive, send_headers)
        finally:
            self.measured.running -= 1
            self._note(scope, status, time.perf_counter() - started)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route, detail = scope.get("bethink.route", "other"), scope.get("bethink.detail", "")
        method = scope["method"] if scope["method"] in METHODS else "other"
        self.measured.count(method, route, status, seconds)
        who = scope["bethink.caller"].name if "bethink.caller" in scope else "-"
        what = f"{route} {_plain(detail)}" if detail else route
        log.info("%s %s %s %.1fms %s", method, what, status, seconds * 1000, who)


def _plain(text: str) -> str:
    return re.sub(r"[^\w/.:-]", "?", text.replace(" ", ":"))


# MCP over streamable HTTP: the same server as on stdin, one request at a time and nothing kept for a client in between. A token
# for reading is refused by the name of the tool here, and by the store whatever the name.

MCP_PATH = "/mcp"
PLACE = parse_arguments(WHERE)
FORBIDDEN = -32001  # of JSON-RPC, in the range that is left to implementations


def only_reads(tool: str) -> bool:
    """Whether a tool changes nothing. One that does not exist changes nothing either."""
    known = schemas.TOOLS.get(tool)
    return known is None or bool(known.hints.get("readOnlyHint"))


class WritingTool(Forbidden):
    """A call of a tool that changes memories, with a token that may only read."""

    def __init__(self, tool: str, id: Any) -> None:
        message = f"The tool {tool} changes memories, and this token may only read."
        super().__init__(message, "Use a token of scope write.", "write")
        self.id = id if isinstance(id, str | int) else None


class Agents:
    """The address that agents speak to."""

    def __init__(self, projects: Projects) -> None:
        self.manager = StreamableHTTPSessionManager(
            app=build_mcp(projects), stateless=True, max_request_body_size=LARGEST_BODY
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["bethink.route"] = MCP_PATH
        caller: Caller = scope["bethink.caller"]
        try:
            where = check_arguments(dict(QueryParams(scope["query_string"])), PLACE)
            ACCESS.set(Access(caller, where.get("project"), where.get("container")))
            if scope["method"] != "POST":
                # There is no session to end, and nothing that would be sent without being asked.
                message = f"{scope['method']} is not a method of {MCP_PATH}."
                raise Refusal(405, message, "Agents post to it.", {"Allow": "POST"})
            body = await read_body(receive, Headers(scope=scope))
            _check_tools(scope, body, caller)
        except WritingTool as error:
            await _refuse_tool(error, scope, receive, send)
            return
        except BethinkError as error:
            await response(error)(scope, receive, send)
            return
        await self.manager.handle_request(scope, _repeat(body, receive), send)


def _check_tools(scope: Scope, body: bytes, caller: Caller) -> None:
    """Notes for the log which tools a request calls, and refuses those that its token may not call."""
    try:
        value = from_json(body)  # as the SDK reads it
    except ValueError:
        return  # what is no JSON is left for the SDK to answer
    messages = value if isinstance(value, list) else [value]
    for message in messages:
        if not isinstance(message, dict):
            continue
        method, params = message.get("method"), message.get("params")
        tool = params.get("name") if isinstance(params, dict) else None
        name = tool if isinstance(tool, str) else ""
        if isinstance(method, str):
            known = f" {name}" if name in schemas.TOOLS else ""
            scope["bethink.detail"] = f"{method[:60]}{known}"
        if method == "tools/call" and not caller.may_write and not only_reads(name):
            raise WritingTool(name, message.get("id"))


def _repeat(body: bytes, receive: Receive) -> Receive:
    """The request again, after its body was read."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


async def _refuse_tool(error: WritingTool, scope: Scope, receive: Receive, send: Send) -> None:
    """An error that both a client of the protocol and a person with curl understand."""
    answer = problem(error.status, error.message, error.hint, error.headers)
    if error.id is not None:
        said = {"code": FORBIDDEN, "message": f"{error.message} {error.hint}"}
        answer.body = json.dumps({"jsonrpc": "2.0", "id": error.id, "error": said}).encode()
        answer.headers["content-type"] = "application/json"
        answer.headers["content-length"] = str(len(answer.body))
    await answer(scope, receive, send)


# Numbers for Prometheus: requests by route and status, how long they took, memories, bytes. Only the event loop counts, so nothing
# is locked. A route is a pattern such as `/api/v1/memories/{id}`: no label ever holds what a caller sent.

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class Metrics:
    def __init__(self) -> None:
        self.started = time.time()
        self.running = 0
        self._requests: Counter[tuple[str, str, int]] = Counter()  # method, route, status
        self._buckets: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests[method, route, status] += 1
        buckets = self._buckets.setdefault(route, [0] * (len(BUCKETS) + 1))
        buckets[bisect_left(BUCKETS, seconds)] += 1
        self._seconds[route] = self._seconds.get(route, 0.0) + seconds

    def quantile(self, routes: Iterable[str], share: float) -> float | None:
        """The seconds within which this share of the requests of some routes was answered, as nearly as the buckets tell."""
        known = [self._buckets[route] for route in routes if route in self._buckets]
        counts: list[int] = [sum(column) for column in zip(*known, strict=True)]
        wanted, before, lower = sum(counts) * share, 0, 0.0
        for bound, number in zip((*BUCKETS, BUCKETS[-1]), counts, strict=False):
            if number and before + number >= wanted:
                return lower + (bound - lower) * (wanted - before) / number
            before, lower = before + number, bound
        return None

    def number(self, routes: Iterable[str]) -> int:
        """How many requests of some routes there were."""
        return sum(sum(self._buckets.get(route, ())) for route in routes)

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """Everything in Prometheus' text form; `gauges` are name → what it is, value."""
        name = "bethink_requests_total"
        lines = [f"# HELP {name} Requests answered.", f"# TYPE {name} counter"]
        for (method, route, status), number in sorted(self._requests.items()):
            lines.append(f'{name}{{method="{method}",route="{route}",status="{status}"}} {number}')
        name = "bethink_request_seconds"
        lines += [f"# HELP {name} How long requests took.", f"# TYPE {name} histogram"]
        for route, counts in sorted(self._buckets.items()):
            total = 0
            for bound, number in zip((*BUCKETS, "+Inf"), counts, strict=True):
                total += number
                lines.append(f'{name}_bucket{{route="{route}",le="{bound}"}} {total}')
            lines.append(f'{name}_sum{{route="{route}"}} {self._seconds[route]:.10g}')
            lines.append(f'{name}_count{{route="{route}"}} {total}')
        own = {
            "bethink_requests_running": ("Requests being answered.", self.running),
            "bethink_start_time_seconds": ("When the server started.", self.started),
        }
        for name, (about, value) in {**own, **gauges}.items():
            lines += [f"# HELP {name} {about}", f"# TYPE {name} gauge", f"{name} {value:.10g}"]
        return "\n".join(lines) + "\n"
