"""A client of an MCP server on stdin and stdout, as small as can be: it starts the server and calls its tools."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


class Client:
    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sys.stderr,
            env=environment,
            text=True,
        )
        self._number = 0
        who = {"name": "suite", "version": "1"}
        self._request(
            "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": who}
        )
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, **arguments: Any) -> str:
        """The text that a tool answers with."""
        result = self._request("tools/call", {"name": tool, "arguments": arguments})
        text = "\n".join(part.get("text", "") for part in result["content"])
        if result.get("isError"):
            raise RuntimeError(f"{tool}: {text[:500]}")
        return text

    def _request(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": parameters})
        assert self._process.stdout
        for line in self._process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
        raise RuntimeError(f"The server ended at {method}.")

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def close(self) -> None:
        """End the server by closing its input."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(10)
