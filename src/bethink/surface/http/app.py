"""The application put together: watch → gate → routes, agents (MCP) and pages. `serving` binds it to an address and runs it.

One process, one event loop; the work is done in the threads of `projects`. MCP is stateless in both eras of the protocol: no
session can then be taken over with another token, and a restart loses nothing.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bethink.errors import BethinkError
from bethink.surface.http import agents, api, browsing, memories, metrics, tokens
from bethink.surface.http.api import Once, Tools
from bethink.surface.http.background import Checkup, Jobs
from bethink.surface.http.metrics import Metrics
from bethink.surface.http.projects import Projects
from bethink.surface.http.security import Caller, Door, Gate, problem, response
from bethink.surface.web.site import Site
from bethink.types import PERSONAL

__all__ = ["browsing", "build", "memories"]  # the operations are registered by being imported

GRACE = 10.0  # seconds for requests that run to be answered
LAST = 2.0  # seconds after that for jobs, and for calls whose client is gone
METHODS = ("GET", "HEAD", "POST", "PATCH", "DELETE", "PUT", "OPTIONS")
POLICY = "default-src 'none'; frame-ancestors 'none'"

log = logging.getLogger("bethink")


def build(projects: Projects, door: Door) -> ASGIApp:
    """The whole application."""
    measured, jobs, mcp = Metrics(), Jobs(), agents.Agents(projects)
    tools = Tools(projects, jobs, Once(), measured, Checkup(), door.tokens)

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
        return Response(measured.text(gauges), media_type=metrics.MEDIA_TYPE)

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
            Route(agents.PATH, mcp),
            *api.routes(tools),
        ],
        lifespan=lifespan,
        exception_handlers={HTTPException: _tell_unrouted},
    )
    inner.router.redirect_slashes = False
    return Watch(Gate(inner, door, Marks(door.tokens, projects), Site(tools, door)), measured)


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

        async def sending(message: Message) -> None:
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
            await self.app(scope, receive, sending)
        except Exception:
            log.exception("A request failed")
            if status:
                raise
            failed = problem(500, "The server could not do this.", "Its log says why.")
            await failed(scope, receive, sending)
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
