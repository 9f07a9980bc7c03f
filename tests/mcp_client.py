"""The MCP server as its clients meet it: the official client over stdio, in either era, and bare lines for what no good client sends."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters

import bethink
from bethink.app.mcp.tools import TOOLS

SOURCE = Path(bethink.__file__).parent.parent
SERVER = ("-m", "bethink", "mcp")
ERAS = ("2026-07-28", "legacy")
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bare", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    ours = {
        "BETHINK_EMBEDDING": "hashing",
        "BETHINK_HOOK_HELPER": "false",
        "BETHINK_OFFLINE": "1",
        "PYTHONPATH": str(SOURCE),
    }
    return kept | ours | {"BETHINK_HOME": str(home)} | more


class Talk:
    """A client whose calls are plain functions. Tools are methods: `talk.search_memories(query="tea")` gives the text."""

    def __init__(self, portal: Any, client: Client) -> None:
        self._portal, self.client = portal, client

    def __call__(self, method: str, *arguments: Any, **named: Any) -> Any:
        async def run() -> Any:
            return await getattr(self.client, method)(*arguments, **named)

        return self._portal.call(run)

    def __getattr__(self, tool: str) -> Any:
        assert tool in TOOLS, tool

        def call(**arguments: Any) -> str:
            result = self("call_tool", tool, arguments)
            assert not result.is_error, result
            return text_of(result)

        return call

    def refused(self, tool: str, **arguments: Any) -> str:
        result = self("call_tool", tool, arguments)
        assert result.is_error, result
        return text_of(result)

    def store(self, content: str, **more: Any) -> str:
        """Stores one memory and gives its id."""
        told = self.store_memories(memories=[{"content": content, **more}])
        _, added, rest = told.partition("1. added [")
        assert added, told
        return rest.partition("]")[0]


def text_of(result: Any) -> str:
    [content] = result.content
    return content.text


@contextlib.contextmanager
def talking(era: str, project: Path, home: Path, *words: str, **options: Any) -> Iterator[Talk]:
    """The real server in a process of its own, and a client of that era."""
    how = {"cwd": project, "env": environment(home, **options.pop("env", {}))}
    command = StdioServerParameters(command=sys.executable, args=[*SERVER, *words], **how)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(command, mode=era, **options)) as client,
    ):
        yield Talk(portal, client)


class Bare:
    """A server process and the lines that go in and come out."""

    def __init__(
        self, project: Path, home: Path, *words: str, program: Any = SERVER, **env: str
    ) -> None:
        how = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        how |= {"cwd": project, "env": environment(home, **env)}
        self.process = subprocess.Popen([sys.executable, *program, *words], **how)
        self.number = 0

    def send(self, line: str | bytes | dict[str, Any]) -> None:
        raw = json.dumps(line) if isinstance(line, dict) else line
        self.process.stdin.write((raw.encode() if isinstance(raw, str) else raw) + b"\n")
        self.process.stdin.flush()

    def tell(self, method: str, id: Any = None, **params: Any) -> None:
        """Sends a request of the old era, or without an id a notification."""
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        self.send(message if id is None else message | {"id": id})

    def ask(self, method: str, meta: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
        """Asks in the stateless era and gives the whole answer."""
        self.number += 1
        self.tell(method, self.number, **params, _meta=META | (meta or {}))
        return self.read()

    def say(self, name: str = "memory_overview", **more: Any) -> str:
        """The text that a tool answers."""
        return self.ask("tools/call", name=name, **more)["result"]["content"][0]["text"]

    def read(self) -> dict[str, Any]:
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read().decode()
        return json.loads(line)

    def ends(self) -> tuple[int, bytes, str]:
        """Waits for the end of the process: its exit code and what else it wrote."""
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out, err.decode()

    def close_input(self) -> tuple[int, bytes, str]:
        """The host is done: how the server ends then."""
        self.process.stdin.close()
        self.process.stdin = open(os.devnull, "wb")  # noqa: PTH123, SIM115
        return self.ends()

    def __enter__(self) -> Bare:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        self.process.wait()
