"""claude-mem: its worker, a project per round, notes by `POST /api/memory/save`, found by `GET /api/search`.

What it keeps of conversations is written by a language model, so it takes part in the tasks about notes only. Its vectors come from Chroma
with a model from a hub; without it, the search looks for the query as a phrase. So it is asked as an agent would ask it: the whole question
first, then word by word, and notes that hold more of the words come first.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import time as clock
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from protocol import Adapter, describe_server, pick_words, serve

PACKAGE = Path(os.environ["SUITE_PEER"]) / "node_modules/claude-mem"
START = 120  # seconds until the worker answers


def find_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class ClaudeMem(Adapter):
    def __init__(self) -> None:
        super().__init__()
        port = find_port()
        self._address = f"http://127.0.0.1:{port}/api"
        self._environment = {
            "CLAUDE_MEM_DATA_DIR": str(self.folder),
            "CLAUDE_MEM_WORKER_PORT": str(port),
            "CLAUDE_MEM_CHROMA_ENABLED": "false",
        }
        worker = subprocess.Popen(
            ["bun", str(PACKAGE / "plugin/scripts/worker-service.cjs"), "--daemon"],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            env={**os.environ, **self._environment},
        )
        atexit.register(worker.terminate)
        until = clock.monotonic() + START
        while not self._is_ready() and clock.monotonic() < until:
            clock.sleep(0.2)
        self._ids: dict[int, str] = {}

    def _is_ready(self) -> bool:
        try:
            return self._call("readiness")["status"] == "ready"
        except (OSError, KeyError):
            return False

    def _call(self, path: str, body: dict[str, Any] | None = None) -> Any:
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(f"{self._address}/{path}", data)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def reset(self) -> None:
        self.round += 1
        self._ids = {}

    def add(self, text: str, time: str, who: str, source: str, id: str = "") -> None:
        if text.strip():
            saved = self._call("memory/save", {"text": text, "project": f"round-{self.round}"})
            self._ids[saved["id"]] = id

    def ask(self, question: str, time: str, k: int) -> list[dict[str, Any]]:
        score: dict[int, int] = {}
        texts: dict[int, str] = {}
        asked = {"project": f"round-{self.round}", "format": "json", "limit": 100}
        for weight, query in ((1000, question), *((1, word) for word in pick_words(question))):
            parameters = urllib.parse.urlencode({**asked, "query": query})
            for one in self._call(f"search?{parameters}")["observations"]:
                score[one["id"]] = score.get(one["id"], 0) + weight
                texts[one["id"]] = one["narrative"]
        best = sorted(score, key=lambda id: -score[id])[:k]
        return [{"text": texts[id], "id": self._ids.get(id, "")} for id in best]

    def stats(self) -> dict[str, Any]:
        version = json.loads((PACKAGE / "package.json").read_text())["version"]
        server = str(PACKAGE / "plugin/scripts/mcp-server.cjs")
        command = describe_server("node", server, **self._environment)
        return {"version": version, "folder": str(self.folder), "mcp": command}


serve(ClaudeMem())
