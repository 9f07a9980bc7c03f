"""LangGraph's long-term memory: an InMemoryStore with an index, a namespace per round."""

from __future__ import annotations

from typing import Any

from embedder import DIMENSIONS, Embedder
from langchain_core.embeddings import Embeddings
from langgraph.store.memory import InMemoryStore
from protocol import Adapter, serve


class Shared(Embeddings):
    def __init__(self) -> None:
        self._embedder = Embedder()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._embedder.documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self._embedder.query(text)


class LangGraph(Adapter):
    package = "langgraph"

    def __init__(self) -> None:
        super().__init__()
        self._embeddings = Shared()

    def reset(self) -> None:
        self._store = InMemoryStore(
            index={"dims": DIMENSIONS, "embed": self._embeddings, "fields": ["text"]}
        )
        self._count = 0

    def add(self, text: str, time: str, who: str, source: str, id: str = "") -> None:
        self.load([{"text": text, "time": time, "who": who, "source": source, "id": id}])

    def load(self, items: list[dict[str, Any]]) -> None:
        for item in items:  # a batch with the same text twice is refused
            self._store.put(("memories", "user"), str(self._count), item)
            self._count += 1

    def ask(self, question: str, time: str, k: int) -> list[dict[str, Any]]:
        found = self._store.search(("memories", "user"), query=question, limit=k)
        return [{"text": one.value["text"], "id": one.value.get("id", "")} for one in found]


serve(LangGraph())
