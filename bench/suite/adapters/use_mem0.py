"""mem0, open source, without a language model: `infer=False` stores what it is given. A user id per round."""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("MEM0_TELEMETRY", "False")
from embedder import DIMENSIONS, Embedder
from mem0 import Memory
from protocol import Adapter, serve


class Shared:
    """In the place of mem0's embedding client, with its two methods."""

    def __init__(self) -> None:
        self._embedder = Embedder()

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return (
            self._embedder.query(text)
            if memory_action == "search"
            else self._embedder.documents([text])[0]
        )

    def embed_batch(self, texts: list[str], memory_action: str = "add") -> list[list[float]]:
        return [self.embed(text, memory_action) for text in texts]


class Mem0(Adapter):
    package = "mem0ai"

    def __init__(self) -> None:
        super().__init__()
        os.environ["MEM0_DIR"] = str(self.folder)
        store = {
            "collection_name": "suite",
            "path": str(self.folder / "qdrant"),
            "on_disk": True,
            "embedding_model_dims": DIMENSIONS,
        }
        unused = {"provider": "openai", "config": {"api_key": "none"}}
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "llm": unused,
                "embedder": unused,
                "history_db_path": str(self.folder / "history.db"),
            }
        )
        self._memory.embedding_model = Shared()

    def reset(self) -> None:
        if self.round:
            self._memory.delete_all(user_id=f"user-{self.round}")
        self.round += 1

    def add(self, text: str, time: str, who: str, source: str, id: str = "") -> None:
        role = "user" if who == "user" else "assistant"
        self._memory.add(
            [{"role": role, "content": text}],
            user_id=f"user-{self.round}",
            metadata={"source": source, "said_by": who, "time": time, "name": id},
            infer=False,
        )

    def ask(self, question: str, time: str, k: int) -> list[dict[str, Any]]:
        found = self._memory.search(question, filters={"user_id": f"user-{self.round}"}, top_k=k)
        return [
            {"text": one["memory"], "id": (one.get("metadata") or {}).get("name", "")}
            for one in found["results"]
        ]

    def talk(self, turns: list[dict[str, str]], **rest: Any) -> list[dict[str, str]]:
        messages = [{"role": turn["role"], "content": turn["text"]} for turn in turns]
        self._memory.add(messages, user_id=f"user-{self.round}", infer=False)
        kept = self._memory.get_all(filters={"user_id": f"user-{self.round}"}, top_k=10_000)
        return [{"text": one["memory"]} for one in kept["results"]]


serve(Mem0())
