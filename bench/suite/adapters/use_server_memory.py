"""The reference MCP server for memory: a graph in one file. Each statement is an entity with the text as its observation.

Its search looks for the query as it stands inside names and observations and knows no order. So it is asked as an agent would ask it: the
whole question first, then word by word, and what holds more of the words comes first.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from mcp_client import Client
from protocol import Adapter, describe_server, pick_words, serve


class ServerMemory(Adapter):
    def __init__(self) -> None:
        super().__init__()
        self._command = ["mcp-server-memory"]
        self._environment = {**os.environ, "MEMORY_FILE_PATH": str(self.folder / "memory.jsonl")}
        self._client = Client(self._command, self._environment)
        self._names: list[str] = []

    def reset(self) -> None:
        if self._names:
            self._client.call("delete_entities", entityNames=self._names)
        self._names = []

    def add(self, text: str, time: str, who: str, source: str, id: str = "") -> None:
        self.load([{"text": text, "who": who, "source": source, "id": id}])

    def load(self, items: list[dict[str, Any]]) -> None:
        entities = []
        for item in items:
            name = f"{item['source']} by {item['who']}, {len(self._names)}|{item.get('id', '')}"
            self._names.append(name)
            entities.append(
                {"name": name, "entityType": "statement", "observations": [item["text"]]}
            )
        self._client.call("create_entities", entities=entities)

    def ask(self, question: str, time: str, k: int) -> list[dict[str, Any]]:
        score: dict[str, int] = {}
        texts: dict[str, str] = {}
        for weight, query in ((1000, question), *((1, word) for word in pick_words(question))):
            for entity in json.loads(self._client.call("search_nodes", query=query))["entities"]:
                score[entity["name"]] = score.get(entity["name"], 0) + weight
                texts[entity["name"]] = "\n".join(entity["observations"])
        best = sorted(score, key=lambda name: -score[name])[:k]
        return [{"text": texts[name], "id": name.rpartition("|")[2]} for name in best]

    def stats(self) -> dict[str, Any]:
        package = (
            Path(os.environ["SUITE_PEER"])
            / "node_modules/@modelcontextprotocol/server-memory/package.json"
        )
        return {
            "version": json.loads(package.read_text())["version"],
            "folder": str(self.folder),
            "mcp": describe_server(*self._command),
        }


serve(ServerMemory())
