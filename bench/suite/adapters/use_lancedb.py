"""LanceDB: a table per round with vectors and a full-text index, searched by both, fused by its default reranker."""

from __future__ import annotations

from typing import Any

import lancedb
import pyarrow
from embedder import DIMENSIONS, Embedder
from protocol import Adapter, serve


class LanceDB(Adapter):
    package = "lancedb"

    def __init__(self) -> None:
        super().__init__()
        self._database = lancedb.connect(str(self.folder))
        self._embedder = Embedder()
        self._schema = pyarrow.schema(
            [
                pyarrow.field("id", pyarrow.string()),
                pyarrow.field("text", pyarrow.string()),
                pyarrow.field("vector", pyarrow.list_(pyarrow.float32(), DIMENSIONS)),
            ]
        )

    def reset(self) -> None:
        if self.round:
            self._database.drop_table(f"round{self.round}")
        self.round, self._indexed = self.round + 1, False
        self._table = self._database.create_table(f"round{self.round}", schema=self._schema)

    def add(self, text: str, time: str, who: str, source: str, id: str = "") -> None:
        self.load([{"text": text, "id": id}])

    def load(self, items: list[dict[str, Any]]) -> None:
        vectors = self._embedder.documents([item["text"] for item in items])
        rows = [
            {"id": item.get("id", ""), "text": item["text"], "vector": vector}
            for item, vector in zip(items, vectors, strict=True)
        ]
        self._table.add(rows)

    def ask(self, question: str, time: str, k: int) -> list[dict[str, Any]]:
        if not self._indexed:
            self._table.create_fts_index("text")
            self._indexed = True
        query = self._table.search(query_type="hybrid").distance_type("cosine")
        found = query.vector(self._embedder.query(question)).text(question).limit(k).to_list()
        return [{"text": row["text"], "id": row["id"]} for row in found]


serve(LanceDB())
