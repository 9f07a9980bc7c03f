"""The vectors a process holds in memory, caught up from the database before each use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bethink.store.scan import Partition

Run = Callable[..., list[Any]]


class VectorIndex:
    """Those of one table: of memories, or of the topics of conversations."""

    def __init__(self, table: str, owner: str) -> None:
        self._newest = (
            f"SELECT (SELECT coalesce(max(id), 0) FROM {table}), (SELECT coalesce(max(number), 0) FROM {table}_removed),"
            f" (SELECT coalesce(min(number), 0) FROM {table}_removed)"
        )
        self._page = f"SELECT id, {owner}, data FROM {table} WHERE model = ? AND scope = ? AND id > ? ORDER BY id"
        self._removals = f"SELECT vector FROM {table}_removed WHERE number > ? AND number <= ?"
        self._lock = threading.RLock()
        self._parts: dict[tuple[int, int], Partition] = {}
        self._seen = (
            -1,
            -1,
        )  # newest vector and newest removal in the database when the parts were last caught up
        self._fresh: set[tuple[int, int]] = set()

    def search(
        self,
        run: Run,
        vector: Any,
        model: str,
        scopes: Sequence[int],
        limit: int,
        allowed: Sequence[int] | None,
        least: float | None = None,
    ) -> tuple[tuple[int, float], ...]:
        query = np.asarray(vector, np.float32)
        permitted = None if allowed is None else np.asarray(allowed, np.int64)
        best: dict[int, float] = {}
        with self._lock:
            for part in self._current(run, model, scopes):
                found = _best(part, query, limit, permitted, least)
                best.update(
                    {
                        memory: cosine
                        for memory, cosine in found.items()
                        if cosine > best.get(memory, -2.0)
                    }
                )
        return tuple(sorted(best.items(), key=lambda item: (-item[1], item[0]))[:limit])

    def cosines(
        self, run: Run, vector: Any, model: str, scopes: Sequence[int], memories: Sequence[int]
    ) -> tuple[dict[int, float], float]:
        """Cosines of memories that other signals found, and the mean over every vector of the scopes."""
        query, wanted = np.asarray(vector, np.float32), np.asarray(sorted(memories), np.int64)
        found: dict[int, float] = {}
        with self._lock:
            parts = self._current(run, model, scopes)
            for part in parts:
                found.update(part.cosines(query, wanted))
            count = sum(part.live for part in parts)
            return found, sum(
                part.similarity_total(query) for part in parts
            ) / count if count else 0.0

    def ready(self, run: Run, model: str, scopes: Sequence[int]) -> None:
        with self._lock:
            self._current(run, model, scopes)

    def nbytes(self) -> int:
        return sum(part.nbytes for part in self._parts.values())

    def _current(self, run: Run, model: str, scopes: Sequence[int]) -> list[Partition]:
        newest, removed, oldest = run(self._newest)[0]
        found = run("SELECT id, dimensions FROM models WHERE name = ?", (model,))
        if not found:
            return []
        number, dimensions = found[0]
        if (newest, removed) != self._seen:
            self._forget(run, removed, oldest)
            self._seen = (newest, removed)
            self._fresh.clear()
        for scope in scopes:
            key = (number, scope)
            if key not in self._fresh:
                if key not in self._parts or self._parts[key].dimensions != dimensions:
                    self._parts[key] = Partition(dimensions)
                part = self._parts[key]
                part.add(run(self._page, (number, scope, part.last)))
                self._fresh.add(key)
        return [self._parts[number, scope] for scope in scopes]

    def _forget(self, run: Run, removed: int, oldest: int) -> None:
        seen = self._seen[1]
        if seen < 0 or removed == seen:
            return
        if oldest > seen + 1:
            self._parts.clear()  # the log was trimmed past what this process saw
            return
        gone = np.asarray([row[0] for row in run(self._removals, (seen, removed))], np.int64)
        for part in self._parts.values():
            part.remove(gone)


def _best(
    part: Partition, query: Any, limit: int, permitted: Any, least: float | None
) -> dict[int, float]:
    """The best `limit` memories of a partition. Several windows of one text may be near, so more rows are asked for until
    there are enough memories."""
    rows = limit + limit // 2
    while True:
        memories, cosines = part.search(query, rows, permitted, least)
        best: dict[int, float] = {}
        for memory, cosine in zip(memories.tolist(), cosines.tolist(), strict=True):
            best.setdefault(memory, cosine)  # rows come best first
        if len(best) >= limit or len(memories) < rows:
            return best
        rows *= 4
