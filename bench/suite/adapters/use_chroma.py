"""Chroma: a persistent collection per round, cosine distance."""

from __future__ import annotations

from typing import Any

import chromadb
from chromadb.api.types import Documents, EmbeddingFunction, Embeddings
from embedder import Embedder
from protocol import Adapter, serve

BATCH = 500


class Shared(EmbeddingFunction[Documents]):
    def __init__(self) -> None:
        self._embedder = Embedder()

    def __call__(self, input: Documents) -> Embeddings:
        return self._embedder.documents(list(input))

    def embed_query(self, input: Documents) -> Embeddings:
        return [self._embedder.query(text) for text in input]

    @staticmethod
    def name() -> str:
        return "suite"

    def get_config(self) -> dict[str, Any]:
        return {}

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> Shared:
        return Shared()


class Chroma(Adapter):
    package = "chromadb"

    def __init__(self) -> None:
        super().__init__()
        self._client = chromadb.PersistentClient(path=str(self.folder))
        self._function = Shared()
        self._collection: Any = None

    def reset(self) -> None:
        if self._collection:
            self._client.delete_collection(self._collection.name)
        self.round, self._count = self.round + 1, 0
        self._collection = self._client.create_collection(
            f"round-{self.round}",
            embedding_function=self._function,
            configuration={"hnsw": {"space": "cosine"}},
        )

    def add(self, text: str, time: str, who: str, source: str, id: str = "") -> None:
        self.load([{"text": text, "time": time, "who": who, "source": source, "id": id}])

    def load(self, items: list[dict[str, Any]]) -> None:
        for start in range(0, len(items), BATCH):
            part = items[start : start + BATCH]
            self._collection.add(
                ids=[f"{self._count + at}" for at in range(len(part))],
                documents=[item["text"] for item in part],
                metadatas=[
                    {key: item.get(key, "") for key in ("time", "who", "source", "id")}
                    for item in part
                ],
            )
            self._count += len(part)

    def ask(self, question: str, time: str, k: int) -> list[dict[str, Any]]:
        found = self._collection.query(query_texts=[question], n_results=min(k, self._count))
        pairs = zip(found["documents"][0], found["metadatas"][0], strict=True)
        return [{"text": text, "id": metadata["id"]} for text, metadata in pairs]


serve(Chroma())
