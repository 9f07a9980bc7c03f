"""The server on stdin and stdout, as agents start it: from the first message to the end of its host.

It ends when stdin does, when its parent is gone, or when it is told to. A thread waits in a read of stdin and cannot be called
back, so the last act is to leave the process, after the calls that still run and with the databases closed. stdout belongs to the protocol:
whatever else is printed goes to stderr, and so does the log.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

import anyio
import mcp_types as types
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from bethink.hosts import copilot
from bethink.surface.mcp.keeper import Keeper
from bethink.surface.mcp.server import Handlers, Places, build

LEVELS = ("debug", "info", "warning", "error")
# A client that closes stdin waits about two seconds before it kills.
GRACE = 1.5
LOOK_AROUND = 1.0  # seconds between two looks at whether the parent is still there

# The strings, brackets and other pieces of a line of JSON. Nothing here looks at a character twice.
_PIECES = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[{}\[\],:]|[^\s{}\[\],:"]++')

log = logging.getLogger("bethink")


Make = Callable[[Keeper, Places], Handlers]


def serve(
    directory: Path | None = None,
    database: str | None = None,
    container: str | None = None,
    make: Make | None = None,
) -> NoReturn:
    """Speaks the protocol until the client is gone, and ends the process. `make` gives other handlers than the usual ones."""
    _prepare_log()
    home = os.environ.get("CLAUDE_PROJECT_DIR", "") or copilot.find_directory(
        os.environ, Path.home()
    )
    keeper = Keeper(
        directory or (Path(home) if home and Path(home).is_dir() else None), database, container
    )
    keeper.hooked = True
    try:
        asyncio.run(_serve(keeper, make))
    except KeyboardInterrupt:
        leave(keeper, 130)
    leave(keeper, 0)


async def _serve(keeper: Keeper, make: Make | None = None) -> None:
    server = build(keeper, ask_roots=keeper.directory is None, make=make)
    _end_on_signals(lambda code: leave(keeper, code))
    watching = asyncio.create_task(_follow_parent(keeper, os.getppid()))
    try:
        async with stdio_server() as (heard, say):
            sys.stdout = sys.stderr
            await server.run(Heard(heard, say), say, server.create_initialization_options())
    except* (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as gone:
        log.debug("The client went away: %s", gone.exceptions)
    watching.cancel()


def leave(keeper: Keeper, code: int) -> NoReturn:
    if not keeper.close(GRACE):
        log.debug("A call was still running and is given up.")
    for stream in (sys.stderr, sys.__stderr__):
        if stream is not None and not stream.closed:
            stream.flush()
    os._exit(code)


def _end_on_signals(end: Callable[[int], None]) -> None:
    loop = asyncio.get_running_loop()
    for name, code in (("SIGTERM", 0), ("SIGHUP", 0), ("SIGINT", 130)):
        if number := getattr(signal, name, None):
            try:
                loop.add_signal_handler(number, end, code)
            except (NotImplementedError, RuntimeError):  # Windows: the host ends the process there
                return


async def _follow_parent(keeper: Keeper, parent: int) -> None:
    """A host that was killed may leave stdin open in another of its children."""
    while os.getppid() == parent:
        await asyncio.sleep(LOOK_AROUND)
    leave(keeper, 0)


class Heard:
    """The messages of a client. A line that is none is answered as such, where the SDK would only drop it."""

    def __init__(self, stream: Any, say: Any) -> None:
        self._stream, self._say = stream, say

    @property
    def last_context(self) -> Any:
        return self._stream.last_context

    async def receive(self) -> Any:
        while isinstance(item := await self._stream.receive(), Exception):
            await self._say.send(SessionMessage(_not_understood(item)))
        return item

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


def _not_understood(error: Exception) -> types.JSONRPCError:
    """The answer to a line that is no message, under the id that it has, so that its sender does not wait for another."""
    problems = error.errors() if isinstance(error, ValidationError) else []
    line = next((each["input"] for each in problems if isinstance(each["input"], str)), "")
    bad = next((each for each in problems if each["type"] == "json_invalid"), None)
    if bad is None:
        code, message = types.INVALID_REQUEST, "This is no JSON-RPC message."
    else:
        why = str(bad.get("ctx", {}).get("error", ""))[:200]
        code, message = types.PARSE_ERROR, f"This line cannot be read as JSON: {why}."
    return types.JSONRPCError(
        jsonrpc="2.0", id=_id_in(line), error=types.ErrorData(code=code, message=message)
    )


def _id_in(line: str) -> int | str | None:
    """The id of a message, found without reading the rest of it, which may be no JSON."""
    depth, before = 0, ("", "")
    for found in _PIECES.finditer(line):
        piece = found[0]
        if piece in "{[":
            depth += 1
        elif piece in "}]":
            depth -= 1
        elif depth == 1 and before == ('"id"', ":"):
            return _as_id(piece)
        before = (before[1], piece)
    return None


def _as_id(piece: str) -> int | str | None:
    if re.fullmatch(r"-?[0-9]{1,18}", piece):
        return int(piece)
    try:
        text = json.loads(piece)
        return text if isinstance(text, str) and text.encode("utf-8") else None
    except ValueError:  # no JSON, or half a character that no answer can carry
        return None


def _prepare_log() -> None:
    """To stderr, from the level that BETHINK_LOG names. The SDK's own log may repeat messages, so it stays at warnings."""
    wanted = os.environ.get("BETHINK_LOG", "").strip().lower()
    level = wanted if wanted in LEVELS else "warning"
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="bethink %(levelname)s: %(message)s"
    )
    log.setLevel(level.upper())
    if wanted != level and wanted:
        log.warning(
            "BETHINK_LOG=%r is ignored: expected one of %s.", wanted[:40], ", ".join(LEVELS)
        )
