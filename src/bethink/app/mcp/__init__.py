"""The Model Context Protocol server: the same memory for agents. `server` speaks the protocol through the official SDK, which is
the package `mcp`; this one is always named in full, `bethink.app.mcp`.

tools.json says what a server offers its clients: tools, prompts and the templates of resources, and what each takes in the language of
`app/arguments.py`; with `meaning` the embedding model is waited for. Annotations are for hosts that ask their user before a tool does
harm; tools that only read say so, and nothing else about themselves. Every host puts the texts of tools into every conversation, so they
are short: all of them together stay under 1,500 tokens, which a test holds. `tools` does what they say and reads resources, `keeper`
owns the memories that calls work on.

Here are the table and the beginning on stdin and stdout. A host lists the tools before its first turn and some do not wait for them,
while the SDK takes most of a second to load. So the handshake and the lists are answered from the table alone (in JSON: one in TOML would
cost 6 ms), the rest is loaded beside it, and then `server` hears every line from the first on as if it had been there; what was answered already it does not say again.
Whatever is not plainly one of these requests is left to the SDK, and so is every error.
"""

import json
import os
import queue
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, NoReturn

from bethink import __version__
from bethink.app.arguments import (
    Argument,
    check_arguments,
    make_asked,
    object_schema,
    parse_arguments,
)
from bethink.model import Json, Values

SERVER: Json = {"name": "bethink", "title": "Bethink", "version": __version__}
# What a host calls by itself, as a hook, and no model needs to know of: not in the list of tools.
HOOK = "bethink_prompt"
FILE, MEMORY = "memory://", "bethink://memory/"  # what the names of resources begin with

_TABLE = json.loads(Path(__file__).with_name("tools.json").read_text("utf-8"))
WELCOME: Json = {name: _TABLE[name] for name in ("capabilities", "instructions")}
# Milliseconds that a client may keep what it was told: lists change with the version only, but that may be any moment.
KEPT: dict[str, int] = _TABLE["kept"]
TEXTS = {name: "\n".join(lines) for name, lines in _TABLE["texts"].items()}  # of prompts
_OBJECTS = {name: "\n".join(lines) for name, lines in _TABLE["objects"].items()}  # in lists


class Offer(NamedTuple):
    """A tool or a prompt."""

    told: Values  # what a client hears of it, besides what it accepts
    arguments: tuple[Argument, ...]
    meaning: bool  # whether the embedding model is waited for


def _load_offer(name: str, takes: list[str], meaning: bool = False, **told: Any) -> Offer:
    return Offer({"name": name, **told}, parse_arguments("\n".join(takes), **_OBJECTS), meaning)


TOOLS = {name: _load_offer(name, **about) for name, about in _TABLE["tools"].items()}
PROMPTS = {name: _load_offer(name, **about) for name, about in _TABLE["prompts"].items()}
OFFERS = TOOLS | PROMPTS


def read_call(name: str, given: Values | None) -> SimpleNamespace:
    """What a tool or prompt is asked, if it accepts that."""
    arguments = OFFERS[name].arguments
    return make_asked(check_arguments(given or {}, arguments), arguments)


# What a server answers to a request for a list.
LISTS: dict[str, Json] = {
    "tools/list": {
        "tools": [
            {**one.told, "inputSchema": object_schema(one.arguments)} for one in TOOLS.values()
        ]
    },
    "prompts/list": {
        "prompts": [
            {
                **one.told,
                "arguments": [
                    {"name": each.name, "description": each.help, "required": each.is_required}
                    for each in one.arguments
                ],
            }
            for one in PROMPTS.values()
        ]
    },
    "resources/templates/list": {"resourceTemplates": _TABLE["templates"]},
}


# The greeting

# Versions of the protocol that begin with a handshake: those of the SDK, which a test holds. Who speaks the stateless one is answered by
# the SDK.
HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
DISCOVER = "server/discover"
ENDS = {"SIGTERM": 0, "SIGHUP": 0, "SIGINT": 130}  # signals, and the exit code after each
# Seconds without a message after which the rest is loaded: as long as tools were not listed, and from then on.
UNLISTED, LISTED = 1.0, 0.1
LOOK = 0.02  # seconds between two looks at whether it is loaded
AHEAD = 100  # lines that are read ahead of their answers
LONGEST = 20_000  # characters of a line that is answered here


def serve_stdio(load: Callable[[], object], serve: "Callable[[Wire], None]") -> NoReturn:
    """Greets the client. When it is silent or wants more, `load` runs in a thread; then `serve` goes on."""
    for name, code in ENDS.items():
        if number := getattr(signal, name, None):
            signal.signal(number, lambda *_, code=code: os._exit(code))
    wire = Wire()
    loading = threading.Thread(target=load, name="bethink-load", daemon=True)
    ended = False
    while not ended and (loading.ident is None or loading.is_alive()):
        silence = LISTED if wire.has_listed else UNLISTED
        try:
            line = wire.receive(silence if loading.ident is None else LOOK)
            ended = line is None
            has_answered = wire.greet(line)
        except queue.Empty:
            has_answered = False
        except OSError:  # nobody reads the answer
            os._exit(0)
        if not has_answered and not ended and loading.ident is None:
            loading.start()
    if ended and not wire.left_open:
        os._exit(0)
    serve(wire)
    os._exit(0)


class Wire:
    """stdin and stdout, for messages alone: what else reads or prints in this process finds nothing there and goes to stderr. Answers what
    clients ask first, and keeps every line for the server."""

    def __init__(self) -> None:
        self.parent = os.getppid()  # when it is another one, the host is gone
        self.kept: deque[str | None] = deque()  # lines that were received and are to be read
        self.told: set[int | str] = set()  # ids of those among them that were answered
        self.has_listed = False  # the tools
        self.left_open = False  # whether something was left for the server
        self._has_begun = False
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

    def greet(self, line: str | None) -> bool:
        """Keeps a line for the server. Returns whether it needs no other answer."""
        self.kept.append(line)
        message = _parse(line)
        method = str(message.get("method"))
        if self._has_begun and method == "notifications/initialized":
            return True
        result = self._find_result(method, message.get("params", {})) if "id" in message else None
        if result is None:
            self.left_open = self.left_open or line is not None
            return False
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        self.write(json.dumps(answer, ensure_ascii=False) + "\n")
        self.told.add(message["id"])
        self.has_listed = self.has_listed or method == "tools/list"
        return True

    def _find_result(self, method: str, params: Json) -> Json | None:
        if not self._has_begun:
            version = params.get("protocolVersion")
            # Who does not say all that a handshake needs is refused by the SDK, and must not hear a welcome before.
            abilities, client = params.get("capabilities"), params.get("clientInfo")
            is_named = isinstance(client, dict) and {"name", "version"} <= set(client)
            is_whole = is_named and isinstance(abilities, dict)
            if method != "initialize" or version not in HANDSHAKES or not is_whole:
                return None
            self._has_begun = True
            # A client that asked what the server is and did not wait for it speaks this version after all: its question must not bind
            # the server to the stateless one.
            kept = [line for line in self.kept if _parse(line).get("method") != DISCOVER]
            self.kept = deque(kept)
            return {**WELCOME, "protocolVersion": version, "serverInfo": SERVER}
        if params:
            return None
        return {} if method == "ping" else LISTS.get(method)


def _parse(line: str | None) -> Json:
    """A request or notification as clients send it; nothing for every other line."""
    with suppress(ValueError, RecursionError):
        message = json.loads((line or "")[:LONGEST])
        if isinstance(message, dict) and message.get("jsonrpc") == "2.0":
            has_id = isinstance(message.get("id", 0), int | str)
            return message if has_id and isinstance(message.get("params", {}), dict) else {}
    return {}
