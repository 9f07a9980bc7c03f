"""basic-memory through its MCP server: a project per round, a note per statement, its default search (words and meaning).

Its embeddings come from the shared model by its LiteLLM provider, with the model's prefix for questions. They lie in an extension of
SQLite; where Python cannot load one, it searches by words.
"""

from __future__ import annotations

import json
import os
import sqlite3
from typing import Any

from embedder import DIMENSIONS, QUERY
from mcp_client import Client
from protocol import Adapter, describe_server, pick_words, serve
from serve_embeddings import serve_embeddings


class BasicMemory(Adapter):
    package = "basic-memory"

    def __init__(self) -> None:
        super().__init__()
        settings = {
            "CONFIG_DIR": str(self.folder / "config"),
            "HOME": str(self.folder / "main"),
            "SEMANTIC_SEARCH_ENABLED": str(hasattr(sqlite3.Connection, "enable_load_extension")),
            "SEMANTIC_EMBEDDING_PROVIDER": "litellm",
            "SEMANTIC_EMBEDDING_MODEL": "openai/suite",
            "SEMANTIC_EMBEDDING_API_BASE": serve_embeddings(),
            "SEMANTIC_EMBEDDING_API_KEY": "none",
            "SEMANTIC_EMBEDDING_DIMENSIONS": str(DIMENSIONS),
            "SEMANTIC_EMBEDDING_QUERY_PREFIX": QUERY,
        }
        self._settings = {f"BASIC_MEMORY_{key}": value for key, value in settings.items()}
        self._command = ["basic-memory", "mcp"]
        self._client = Client(
            self._command, {**os.environ, **self._settings, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        )
        self._notes: list[dict[str, str]] = []

    def reset(self) -> None:
        self.round, self._notes = self.round + 1, []
        self._project = f"round-{self.round}"
        path = str(self.folder / self._project)
        self._client.call("create_memory_project", project_name=self._project, project_path=path)

    def add(self, text: str, time: str, who: str, source: str, id: str = "") -> None:
        title = f"{' '.join(text.split()[:6])[:60]} {len(self._notes)}"
        title = "".join(letter for letter in title if letter.isalnum() or letter == " ")
        self._notes.append({"title": title, "text": text, "id": id})
        self._client.call(
            "write_note",
            title=title,
            content=text,
            directory="notes",
            project=self._project,
            metadata={"said_by": who, "said_in": source, "said_at": time},
        )

    def ask(self, question: str, time: str, k: int) -> list[dict[str, Any]]:
        titles = self._search(question, k)
        if len(titles) < k and (words := pick_words(question)):  # it wanted every word
            titles |= self._search(" OR ".join(words), k)
        by_title = {note["title"]: note for note in self._notes}
        return [by_title[title] for title in titles if title in by_title][:k]

    def _search(self, query: str, k: int) -> dict[str, None]:
        asked = {"query": query, "project": self._project, "page_size": k, "output_format": "json"}
        answer = self._client.call("search_notes", **asked)
        if not answer.startswith("{"):
            raise RuntimeError(answer)
        return dict.fromkeys(one["title"] for one in json.loads(answer)["results"])

    def stats(self) -> dict[str, Any]:
        return {**super().stats(), "mcp": describe_server(*self._command, **self._settings)}


serve(BasicMemory())
