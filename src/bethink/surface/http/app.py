"""The application put together: watch → gate → routes, agents (MCP) and pages. `serving` binds it to an address and runs it.

One process, one event loop; the work is done in the threads of `projects`. MCP is stateless in both eras of the protocol: no
session can then be taken over with another token, and a restart loses nothing.
"""

from __future__ import annotations

import json
import logging
import math
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bethink.errors import BethinkError
from bethink.project import Project
from bethink.surface.arguments import check_arguments, parse_arguments
from bethink.surface.http import api, operations
from bethink.surface.http.api import WHERE, Tools
from bethink.surface.http.projects import Projects
from bethink.surface.http.security import (
    ACCESS,
    LARGEST_BODY,
    Access,
    Admission,
    Caller,
    Gate,
    Refusal,
    read_body,
    response,
)
from bethink.surface.mcp.server import build as build_mcp
from bethink.surface.web.site import Site

__all__ = ["build", "operations"]  # those are registered by being imported

GRACE = 10.0  # seconds for requests that run to be answered
LAST = 2.0  # seconds after that for calls whose client is gone
SEARCHES = ("/search", "/api/v1/search", "/api/v1/recall")  # routes that are a search and no more
DOCS = Path(__file__).with_name(
    "page.html"
)  # shows the description; nothing in it is from elsewhere
DOCS_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)
POLICY = "default-src 'none'; frame-ancestors 'none'"

log = logging.getLogger("bethink")


def build(projects: Projects, admission: Admission) -> ASGIApp:
    """The whole application."""
    mcp = Agents(projects)
    tools = Tools(projects, SearchTimes(), Checkup(), admission.tokens)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with mcp.manager.run():
            projects.warm_up()
            yield
        quiet = tools.checkup.close(LAST)  # a database that is being counted cannot be closed
        projects.ended = quiet and projects.close(LAST)
        if not projects.ended:
            log.warning("Something was still running and is given up.")

    async def tell_ready(request: Request) -> Response:
        try:
            await projects.run(projects.ready)
        except BethinkError as error:
            log.warning("Not ready: %s", error.message)
            return JSONResponse({"status": "not ready"}, 503)
        return JSONResponse({"status": "ready"})

    simple: dict[str, Callable[[Request], Awaitable[Response]]] = {
        "/healthz": _tell_alive,
        "/readyz": tell_ready,
        f"{api.BASE}/openapi.json": _describe,
        f"{api.BASE}/docs": _show_docs,
    }
    inner = Starlette(
        routes=[
            *(Route(path, endpoint, methods=["GET"]) for path, endpoint in simple.items()),
            Route(MCP_PATH, mcp),
            *api.routes(tools),
        ],
        lifespan=lifespan,
        exception_handlers={HTTPException: _tell_unrouted},
    )
    inner.router.redirect_slashes = False
    return Watch(Gate(inner, admission, Site(tools, admission)), tools)


async def _tell_alive(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _describe(request: Request) -> Response:
    return JSONResponse(api.describe())


async def _show_docs(request: Request) -> Response:
    headers = {"Content-Security-Policy": DOCS_POLICY}
    return FileResponse(DOCS, headers=headers, media_type="text/html")


async def _tell_unrouted(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = "There is nothing at this address."
    if error.status_code == 405:
        message = f"{request.method} is not a method of this address."
    hint = "`/api/v1/docs` lists what there is."
    return response(Refusal(error.status_code, message, hint, error.headers))


class Watch:
    """Around everything: one line in the log for each request, the headers that all answers carry, and an answer
    even where something unforeseen failed. What was asked and with which token stays out of the log."""

    def __init__(self, app: ASGIApp, tools: Tools) -> None:
        self.app, self.searches = app, tools.searches

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

        try:
            await self.app(scope, receive, send_headers)
        except Exception as error:
            if status:
                raise
            await response(error)(scope, receive, send_headers)
        finally:
            self._note(scope, status, time.perf_counter() - started)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")  # a pattern, never what was sent
        if route in SEARCHES:
            self.searches.add(seconds)
        who = scope["bethink.caller"].name if "bethink.caller" in scope else "-"
        method = scope["method"] if scope["method"].isalpha() else "other"
        log.info("%s %s %s %.1fms %s", method[:10], route, status, seconds * 1000, who)


# MCP over streamable HTTP: the same server as on stdin, one request at a time and nothing kept for a client in between. With a token
# for reading, the store refuses what a tool would change.

MCP_PATH = "/mcp"
PLACE = parse_arguments(WHERE)


class Agents:
    """The address that agents speak to."""

    def __init__(self, projects: Projects) -> None:
        self.manager = StreamableHTTPSessionManager(
            app=build_mcp(projects), stateless=True, max_request_body_size=LARGEST_BODY
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            where = check_arguments(dict(QueryParams(scope["query_string"])), PLACE)
            caller: Caller = scope["bethink.caller"]
            ACCESS.set(Access(caller, where.get("project"), where.get("container")))
            if scope["method"] != "POST":
                # There is no session to end, and nothing that would be sent without being asked.
                message = f"{scope['method']} is not a method of {MCP_PATH}."
                raise Refusal(405, message, "Agents post to it.", {"Allow": "POST"})
            body = await read_body(receive, Headers(scope=scope))
        except BethinkError as error:
            await response(error)(scope, receive, send)
            return
        await self.manager.handle_request(scope, _repeat(body, receive), send)


def _repeat(body: bytes, receive: Receive) -> Receive:
    """The request again, after its body was read."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


TIMED = 1000  # searches, the last ones, whose times are told


class SearchTimes:
    """How long searches took since the server started."""

    def __init__(self) -> None:
        self.number = 0
        self._seconds: deque[float] = deque(maxlen=TIMED)

    def add(self, seconds: float) -> None:
        self.number += 1
        self._seconds.append(seconds)

    def quantile(self, share: float) -> float | None:
        """The milliseconds within which this share of the last searches was answered."""
        ordered = sorted(self._seconds)
        return round(ordered[int(len(ordered) * share)] * 1000, 1) if ordered else None


PATIENCE = 0.05  # seconds that the first to look waits: enough for a small database
DOCTOR_WITHIN = 120.0  # set by hand
SILENT = {"check": "doctor", "ok": False, "message": "did not answer", "fix": "bethink doctor"}


class Checked(NamedTuple):
    at: datetime
    findings: tuple[dict[str, Any], ...]


class Checkup:
    """What takes too long for a page: counting the whole database, and `bethink doctor`. Both are done in the background when somebody
    looks and the last result is old; whoever looks meanwhile gets that one. `doctor` runs as the command that it is, in a process of
    its own: it tries programs and reads every page of the database, and what it says here is then what it says there."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="bethink-checkup")
        self._lock = threading.Lock()
        self._last: dict[str, tuple[float, Any]] = {}  # when, and what came of it
        self._running: dict[str, Future[None]] = {}
        self._doctor: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return not all(one.done() for one in self._running.values())

    def look(self, name: str, work: Callable[[], Any], lasts: float) -> Any:
        """The last result of a piece of work, None while there is none. Begins anew where that is old; never twice at once."""
        with self._lock:
            since, value = self._last.get(name, (-math.inf, None))
            running = self._running.get(name)
            if time.monotonic() - since > lasts and (running is None or running.done()):
                running = self._running[name] = self._pool.submit(self._keep, name, work)
        if value is None and running is not None:
            wait([running], PATIENCE)
            value = self._last.get(name, (0.0, None))[1]
        return value

    def _keep(self, name: str, work: Callable[[], Any]) -> None:
        try:
            value = work()
        except BethinkError as error:
            log.warning("Could not be counted: %s", error.message)
            return
        self._last[name] = (time.monotonic(), value)

    def renew(self) -> None:
        """Whoever looks next begins anew; until then the last results stand."""
        self._last = {name: (-math.inf, value) for name, (_, value) in self._last.items()}

    def close(self, patience: float) -> bool:
        """Ends what runs. False where the database is still being counted."""
        if self._doctor:
            self._doctor.kill()
        self._pool.shutdown(wait=False, cancel_futures=True)
        return not wait(self._running.values(), patience).not_done

    def run_doctor(self, home: Project, database: str | None) -> Checked:
        """What `bethink doctor` says about the server's own project."""
        # -P: the project's own folder must not be where Python looks for us.
        command = [sys.executable, "-P", "-m", "bethink", "doctor", "--json"]
        command += ["--database", database] if database else []
        # The very code that runs here is to be found.
        code = str(Path(__file__).parents[3])
        path = os.pathsep.join(filter(None, (code, os.environ.get("PYTHONPATH"))))
        try:
            with subprocess.Popen(
                command,
                cwd=home.worktree if home.worktree.is_dir() else Path.home(),
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            ) as self._doctor:
                try:
                    output, _ = self._doctor.communicate(timeout=DOCTOR_WITHIN)
                finally:
                    self._doctor.kill()
            findings = json.loads(output)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            log.warning("doctor did not answer: %s", error)
            findings = [SILENT]
        self._doctor = None
        told = ({**one, "fix": one["fix"] or ""} for one in findings)
        return Checked(datetime.now(UTC), tuple(told))
