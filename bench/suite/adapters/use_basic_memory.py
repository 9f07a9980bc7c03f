"""basic-memory: a project per round, a note per statement, its default search (words and meaning). The tools of its MCP server are called
in this process, and what they leave to be done in the background is waited for.

Its embeddings come from the shared model by its LiteLLM provider, with the model's prefix for questions. They lie in an extension of
SQLite; the SQLite of pysqlite3 stands in for Python's own, which often cannot load one. Many notes at once are Markdown files in a
folder of which a project is made: its own way to take in a folder that is there.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import pysqlite3
from embedder import DIMENSIONS, QUERY
from protocol import Adapter, describe_server, serve
from serve_embeddings import serve_embeddings


class BasicMemory(Adapter):
    package = "basic-memory"

    def __init__(self) -> None:
        super().__init__()
        settings = {
            "CONFIG_DIR": str(self.folder / "config"),
            "HOME": str(self.folder / "main"),
            "SEMANTIC_EMBEDDING_PROVIDER": "litellm",
            "SEMANTIC_EMBEDDING_MODEL": "openai/suite",
            "SEMANTIC_EMBEDDING_API_BASE": serve_embeddings(),
            "SEMANTIC_EMBEDDING_API_KEY": "none",
            "SEMANTIC_EMBEDDING_DIMENSIONS": str(DIMENSIONS),
            "SEMANTIC_EMBEDDING_QUERY_PREFIX": QUERY,
        }
        self._settings = {f"BASIC_MEMORY_{key}": value for key, value in settings.items()}
        os.environ |= {**self._settings, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        sys.modules |= {"sqlite3": pysqlite3, "sqlite3.dbapi2": pysqlite3.dbapi2}
        from basic_memory.config import init_mcp_logging
        from basic_memory.index.local_schedulers import drain_background_tasks
        from basic_memory.mcp import tools  # noqa: F401 - which registers them
        from basic_memory.mcp.server import mcp
        from fastmcp import Client

        init_mcp_logging()
        self._loop, self._settle = asyncio.Runner(), drain_background_tasks
        self._client = self._loop.run(Client(mcp).__aenter__())
        self._notes: list[dict[str, str]] = []

    def _call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        async def call() -> Any:
            answer = await self._client.call_tool(tool, {**arguments, "output_format": "json"})
            await self._settle()
            return answer

        answer = self._loop.run(call()).structured_content["result"]
        if not isinstance(answer, dict) or answer.get("error"):
            raise RuntimeError(f"{tool}: {answer}")
        return answer

    def reset(self) -> None:
        self.round, self._notes = self.round + 1, []
        self._project = f"round-{self.round}"
        (self.folder / self._project / "notes").mkdir(parents=True)
        self.load([])

    def add(self, text: str, time: str, who: str, source: str, id: str = "") -> None:
        title = f"{' '.join(text.split()[:6])[:60]} {len(self._notes)}"
        title = "".join(letter for letter in title if letter.isalnum() or letter == " ").strip()
        self._notes.append({"title": title, "text": text, "id": id})
        note = {"title": title, "content": text, "directory": "notes"}
        note["metadata"] = {"said_by": who, "said_in": source, "said_at": time}
        self._call("write_note", project=self._project, **note)

    def load(self, items: list[dict[str, Any]]) -> None:
        folder = self.folder / self._project
        for item in items:  # a title is embedded with the text: first words would count thrice
            title = f"Note {len(self._notes)}"
            self._notes.append({"title": title, "text": item["text"], "id": item["id"]})
            head = f"---\ntitle: {title}\ntype: note\nsaid_at: {item['time']}\n---\n\n"
            (folder / "notes" / f"{title}.md").write_text(head + item["text"], "utf-8")
        self._call("create_memory_project", project_name=folder.name, project_path=str(folder))

    def ask(self, question: str, time: str, k: int) -> list[dict[str, Any]]:
        answer = self._call("search_notes", query=question, project=self._project, page_size=k)
        by_title = {note["title"]: note for note in self._notes}
        titles = dict.fromkeys(one["title"] for one in answer["results"])
        return [by_title[title] for title in titles if title in by_title]

    def stats(self) -> dict[str, Any]:
        return {**super().stats(), "mcp": describe_server("basic-memory", "mcp", **self._settings)}


serve(BasicMemory())
os._exit(0)  # its threads wait for more
