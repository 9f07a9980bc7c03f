"""MemPalace: statements are drawers, a wing per round; its MCP tools are called in this process, as its server calls them.

The shared model stands in for its OpenAI-compatible endpoint. Conversations are read by its rules for decisions, preferences, milestones
and problems (`mine --mode convos --extract general`), which need no language model.
"""

from __future__ import annotations

import os
from typing import Any

from embedder import Embedder
from protocol import Adapter, describe_server, serve


class MemPalace(Adapter):
    package = "mempalace"

    def __init__(self) -> None:
        super().__init__()
        self._settings = {
            "MEMPALACE_CONFIG_DIR": str(self.folder / "config"),
            "MEMPALACE_PALACE_PATH": str(self.folder / "palace"),
            "MEMPALACE_EMBEDDING_MODEL": "openai-compat",
            "MEMPALACE_EMBEDDING_API_URL": "http://127.0.0.1:9",
            "MEMPALACE_EMBEDDING_API_MODEL": "suite",
        }
        os.environ.update(self._settings)
        from mempalace import embedding, mcp_server

        shared = Embedder()
        function = embedding.OpenAICompatEmbeddingFunction
        function.__call__ = lambda self, input: shared.documents(list(input))
        function.embed_query = lambda self, input: [shared.query(text) for text in input]
        self._file, self._search = mcp_server.tool_add_drawer, mcp_server.tool_search
        self._ids: dict[str, str] = {}

    def reset(self) -> None:
        self.round += 1
        self._ids = {}

    def add(self, text: str, time: str, who: str, source: str, id: str = "") -> None:
        if not text.strip():
            return
        name = f"{len(self._ids)}-{source}"
        self._ids[name] = id
        answer = self._file(
            wing=f"wing{self.round}", room="notes", content=text, source_file=name, added_by=who
        )
        if not answer.get("success"):
            raise RuntimeError(str(answer))

    def ask(self, question: str, time: str, k: int) -> list[dict[str, Any]]:
        answer = self._search(query=question, limit=k, wing=f"wing{self.round}")
        if "error" in answer:
            raise RuntimeError(str(answer))
        return [
            {"text": one["text"], "id": self._ids.get(one.get("source_file") or "", "")}
            for one in answer["results"]
        ]

    def talk(self, turns: list[dict[str, str]], **rest: Any) -> list[dict[str, str]]:
        from mempalace.general_extractor import extract_memories

        marks = {"user": "> ", "assistant": ""}
        text = "\n\n".join(marks[turn["role"]] + turn["text"] for turn in turns)
        return [{"text": one["content"]} for one in extract_memories(text)]

    def stats(self) -> dict[str, Any]:
        return {**super().stats(), "mcp": describe_server("mempalace-mcp", **self._settings)}


serve(MemPalace())
