"""The Model Context Protocol server: the same memory for agents. `server` speaks the protocol through the official SDK, which is
the package `mcp`; this one is always named in full, `bethink.surface.mcp`.

tools.json, which `schemas` reads, says what tools and prompts take; `tools` does what they say and reads resources, `keeper` owns the memories that calls
work on.

Here is the beginning on stdin and stdout. A host lists the tools before its first turn and some do not wait for them, while the SDK
takes most of a second to load. So the handshake and the lists are answered from the tables of `schemas` alone, the rest is loaded beside
it, and then `server` hears every line from the first on as if it had been there; what was answered already it does not say again.
Whatever is not plainly one of these requests is left to the SDK, and so is every error.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

from bethink.surface.mcp import schemas

# Versions of the protocol that begin with a handshake, and the stateless one, of which only the first question is answered here: those
# of the SDK, which a test holds.
HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = "2026-07-28"
DISCOVER, ENVELOPE = "server/discover", "io.modelcontextprotocol/"
ENDS = {"SIGTERM": 0, "SIGHUP": 0, "SIGINT": 130}  # signals, and the exit code after each
# Seconds without a message after which the rest is loaded: as long as tools were not listed, and from then on.
UNLISTED, LISTED = 1.0, 0.1
LOOK = 0.02  # seconds between two looks at whether it is loaded
AHEAD = 100  # lines that are read ahead of their answers
LONGEST = 20_000  # characters of a line that is answered here


def serve_stdio(load: Callable[[], object], serve: Callable[[Wire], None]) -> NoReturn:
    """Greets the client. When it is silent or wants more, `load` runs in a thread; then `serve` goes on."""
    for name, code in ENDS.items():
        if number := getattr(signal, name, None):
            signal.signal(number, lambda *_, code=code: os._exit(code))
    wire = Wire()
    greeting = Greeting(wire)
    loading = threading.Thread(target=load, name="bethink-load", daemon=True)
    ended = False
    while not ended and (loading.ident is None or loading.is_alive()):
        silence = LISTED if greeting.has_listed else UNLISTED
        try:
            line = wire.receive(silence if loading.ident is None else LOOK)
            ended = line is None
            has_answered = greeting.hear(line)
        except queue.Empty:
            has_answered = False
        except OSError:  # nobody reads the answer
            os._exit(0)
        if not has_answered and not ended and loading.ident is None:
            loading.start()
    if ended and not greeting.left_open:
        os._exit(0)
    serve(wire)
    os._exit(0)


class Wire:
    """stdin and stdout, for messages alone: what else reads or prints in this process finds nothing there and goes to stderr."""

    def __init__(self) -> None:
        self.parent = os.getppid()  # when it is another one, the host is gone
        self.kept: deque[str | None] = deque()  # lines that were received and are to be read
        self.told: set[int | str] = set()  # ids of those among them that were answered
        self._input, self._output = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        self._lines: queue.Queue[str | None] = queue.Queue(AHEAD)
        threading.Thread(target=self._listen, name="bethink-stdin", daemon=True).start()

    def _listen(self) -> None:
        with suppress(OSError):
            for line in self._input:
                self._lines.put(line.decode("utf-8", "replace"))
        self._lines.put(None)

    def receive(self, seconds: float | None = None) -> str | None:
        """The next line, or None at the end. Raises `queue.Empty` if none comes in time."""
        return self._lines.get(timeout=seconds)

    def read(self) -> str | None:
        """The next line for the server, from the very first on, or None at the end."""
        return self.kept.popleft() if self.kept else self.receive()

    def write(self, line: str) -> None:
        """Writes a line, unless it answers what was answered before."""
        if self.told:
            message = json.loads(line)
            if "method" not in message and message.get("id") in self.told:
                self.told.remove(message["id"])
                return
        self._output.write(line.encode("utf-8", "replace"))
        self._output.flush()


class Greeting:
    """Answers what clients ask first."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._has_begun = False
        self.has_listed = False  # the tools
        self.left_open = False  # whether something was left for the server

    def hear(self, line: str | None) -> bool:
        """Keeps a line for the server. Returns whether it needs no other answer."""
        self._wire.kept.append(line)
        message = _parse(line)
        method = message.get("method")
        if self._has_begun and method == "notifications/initialized":
            return True
        result = self._find_result(method, message.get("params", {})) if "id" in message else None
        if result is None:
            self.left_open = self.left_open or line is not None
            return False
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        self._wire.write(json.dumps(answer, ensure_ascii=False) + "\n")
        self._wire.told.add(message["id"])
        self.has_listed = self.has_listed or method == "tools/list"
        return True

    def _find_result(self, method: Any, params: dict[str, Any]) -> dict[str, Any] | None:
        if not self._has_begun:
            version = params.get("protocolVersion")
            if method == DISCOVER:
                return self._describe_server(params.get("_meta"))
            # Who does not say all that a handshake needs is refused by the SDK, and must not hear a welcome before.
            abilities, client = params.get("capabilities"), params.get("clientInfo")
            is_named = isinstance(client, dict) and {"name", "version"} <= set(client)
            is_whole = is_named and isinstance(abilities, dict)
            if method != "initialize" or version not in HANDSHAKES or not is_whole:
                return None
            self._has_begun = True
            self._forget_discovery()
            return {**schemas.WELCOME, "protocolVersion": version, "serverInfo": schemas.SERVER}
        if params:
            return None
        return {} if method == "ping" else schemas.list_offers(method)

    def _describe_server(self, meta: Any) -> dict[str, Any] | None:
        """What a client of the stateless version asks first. Some go on by a handshake where that is not told in three seconds."""
        told = meta if isinstance(meta, dict) else {}
        abilities = told.get(f"{ENVELOPE}clientCapabilities")
        if told.get(f"{ENVELOPE}protocolVersion") != STATELESS or not isinstance(abilities, dict):
            return None
        return {
            **schemas.WELCOME,
            "_meta": {f"{ENVELOPE}serverInfo": schemas.SERVER},
            "cacheScope": "private",
            "resultType": "complete",
            "supportedVersions": [STATELESS],
            "ttlMs": schemas.KEPT[DISCOVER],
        }

    def _forget_discovery(self) -> None:
        """A client that begins by a handshake after all speaks that version: what it asked before must not bind the server."""
        kept = self._wire.kept
        for line in [line for line in kept if _parse(line).get("method") == DISCOVER]:
            kept.remove(line)
            self._wire.told.discard(_parse(line).get("id", ""))


def _parse(line: str | None) -> dict[str, Any]:
    """A request or notification as clients send it; nothing for every other line."""
    with suppress(ValueError, RecursionError):
        message = json.loads((line or "")[:LONGEST])
        if isinstance(message, dict) and message.get("jsonrpc") == "2.0":
            has_id = isinstance(message.get("id", 0), int | str)
            return message if has_id and isinstance(message.get("params", {}), dict) else {}
    return {}
