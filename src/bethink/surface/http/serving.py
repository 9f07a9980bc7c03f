"""The application on an address: how it is bound, started, logged and ended.

Ends on SIGTERM or Ctrl-C after the requests that run, within a bound, with the databases closed and nothing left behind.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, NoReturn

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from bethink.config import data_directory
from bethink.errors import BethinkError
from bethink.surface.http import app, security, tokens
from bethink.surface.http.app import GRACE
from bethink.surface.http.projects import Projects

CONNECTIONS = (
    512  # clients at once; set by hand, half of the 1,024 files that a process may usually open
)
HEADERS_WITHIN = (
    10.0  # seconds for a client to say what it wants; set by hand, a slow phone needs about one
)
FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

log = logging.getLogger("bethink")


class Serving(NamedTuple):
    """How the server is to be bound."""

    host: str
    port: int
    certificate: str | None = None
    key: str | None = None
    session: str = ""  # a token for the person who started it


def run(built: ASGIApp, serving: Serving, started: Callable[[str], None]) -> None:
    """Serves until told to end. `started` is called with the address once requests are taken."""
    configured = settings(built, serving.certificate, serving.key)
    try:
        configured.load()
    except (OSError, ValueError) as error:  # ssl's errors are among them
        raise BethinkError(
            f"The certificate {serving.certificate} cannot be used: {error}.",
            "Give it and its key in PEM form.",
        ) from error
    bound = listen(serving.host, serving.port)
    scheme = "https" if serving.certificate else "http"
    port = bound.getsockname()[1]
    shown = f"[{serving.host}]" if ":" in serving.host else serving.host
    address = f"{scheme}://{shown}:{port}"
    server = Server(configured, lambda: started(address))
    with keep_note(address, port, serving.session), handle_signals():
        server.run([bound])
    if not server.began:
        raise BethinkError("The server could not start.", "The lines above say why.")


def serve(
    place: tuple[Path, str | None, str | None],
    bound: Serving,
    allow: Sequence[str],
    started: Callable[[str], None],
) -> bool:
    """Serves the project of a directory, database and container until told to end. Says whether all calls had ended then."""
    projects = Projects(*place)
    # A database that cannot be opened is told here and not in the log.
    known = tokens.register_of(projects.base.store)
    admission = security.make_admission(bound.host, allow, known, bound.session)
    run(app.build(projects, admission), bound, started)
    return projects.ended


def settings(
    built: ASGIApp, certificate: str | None = None, key: str | None = None
) -> uvicorn.Config:
    """How uvicorn is to serve: nothing about itself in answers, no trust in what proxies say, an end that does not take forever."""
    return uvicorn.Config(
        built,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        http=BoundedProtocol,
        timeout_graceful_shutdown=int(GRACE),
        timeout_keep_alive=15,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP with two bounds that it lacks: on how many clients are connected, and on how long one of them may
    take to send the head of its request. Without them, a few hundred clients that send nothing keep everybody else out."""

    _head_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
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

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        self._head_due = self.loop.call_later(HEADERS_WITHIN, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None


class Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self.began = False
        self._tell = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and not self.should_exit:
            self.began = True
            self._tell()


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to the address, or a sentence about why there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio knows that it may send small answers at once.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except (OSError, OverflowError) as error:
        bound.close()
        reason = getattr(error, "strerror", None) or error
        hint = "Another server may be there; give another --port, or 0 for any that is free."
        raise BethinkError(f"{host}:{port} cannot be listened on: {reason}.", hint) from error
    return bound


@contextmanager
def handle_signals() -> Iterator[None]:
    """A signal ends the server in good order, and that is no failure. uvicorn raises it again at the end; nobody is hurt by it."""
    try:
        before = {
            number: signal.signal(number, lambda *_: None)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
    except ValueError:  # not the main thread: whoever runs this ends it
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def leave() -> NoReturn:
    """Ends the process although a call still runs: waiting for its thread might take forever. The database survives that."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)


def session_file(port: int) -> Path:
    """Where other commands of the same user find the server and its token."""
    return data_directory() / "servers" / f"{port}.json"


@contextmanager
def keep_note(address: str, port: int, session: str) -> Iterator[None]:
    """Keeps the address and the session's token for the user's own commands while the server runs."""
    if not session:
        yield
        return
    file = session_file(port)
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.unlink(missing_ok=True)  # of a server that was killed
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump({"url": address, "token": session, "pid": os.getpid()}, stream)
    except OSError as error:
        raise BethinkError(
            f"{file} cannot be written: {error.strerror or error}.",
            "Check the folder's permissions.",
        ) from error
    try:
        yield
    finally:
        with suppress(OSError):  # another server's note may be in the folder
            file.unlink()
            file.parent.rmdir()


def free_port(host: str, port: int) -> int:
    """The usual port, or any if another program has it."""
    try:
        listen(host, port).close()
    except BethinkError:
        return 0
    return port


def prepare_log(quiet: bool) -> None:
    """To stderr: requests and trouble, or with `quiet` only trouble. The libraries' own logs stay at warnings."""
    handler = logging.StreamHandler(sys.stderr)
    written = logging.Formatter("%(asctime)sZ %(levelname)s: %(message)s", "%Y-%m-%dT%H:%M:%S")
    written.converter = time.gmtime
    handler.setFormatter(written)
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    log.setLevel(logging.WARNING if quiet else logging.INFO)
