"""agentmemory: its MCP server without the engine (`agentmemory mcp`), a process per round; `memory_save` and `memory_smart_search`.

Without the engine its search finds memories that hold every word of a query, unranked. So it is asked as an agent would ask it: the whole
question first, then word by word, and memories that hold more of the words come first.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from mcp_client import Client
from protocol import Adapter, describe_server, pick_words, serve

PACKAGE = Path(os.environ["SUITE_PEER"]) / "node_modules/@agentmemory/agentmemory"


class AgentMemory(Adapter):
    _client: Any = None

    def reset(self) -> None:
        self.round += 1
        if self._client:
            self._client.close()
        home = self.folder / str(self.round)
        home.mkdir()
        self._environment = {"HOME": str(home), "AGENTMEMORY_FORCE_PROXY": "0"}
        self._client = Client(
            ["node", str(PACKAGE / "dist/standalone.mjs")], {**os.environ, **self._environment}
        )
        self._ids: dict[str, str] = {}

    def add(self, text: str, time: str, who: str, source: str, id: str = "") -> None:
        if not text.strip():
            return
        answer = json.loads(self._client.call("memory_save", content=text))
        self._ids[answer["saved"]] = id

    def ask(self, question: str, time: str, k: int) -> list[dict[str, Any]]:
        score: dict[str, int] = {}
        texts: dict[str, str] = {}
        for weight, query in ((1000, question), *((1, word) for word in pick_words(question))):
            answer = self._client.call("memory_smart_search", query=query, limit=1000)
            for one in json.loads(answer)["results"]:
                score[one["id"]] = score.get(one["id"], 0) + weight
                texts[one["id"]] = one["content"]
        best = sorted(score, key=lambda id: -score[id])[:k]
        return [{"text": texts[id], "id": self._ids.get(id, "")} for id in best]

    def stats(self) -> dict[str, Any]:
        version = json.loads((PACKAGE / "package.json").read_text())["version"]
        command = describe_server("node", str(PACKAGE / "dist/standalone.mjs"), **self._environment)
        return {"version": version, "folder": str(self.folder), "mcp": command}


serve(AgentMemory())
