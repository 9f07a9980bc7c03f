"""Nearest vectors, fast, without a side file.

The rows in the database are the truth. A process that searches holds a compact copy: two signed bytes per dimension and a
one-bit code for each. A search compares codes first (a XOR and a bit count per 64 dimensions) and rescores the best few
hundred from the numbers. The copy is kept per scope, so that a small project never pays for a large one, and is caught up
from the database before every search by the rising id of additions and the log of removals.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

# Below this many vectors the numbers are compared directly: as fast, and exact.
EXACT = 4096
ROUGH = 192  # vectors rescored for who looks for near duplicates: their codes stand far in front

# One byte a dimension was tried: recall@10 of .973 on real texts, because one dimension of the default model is large in
# every text and takes the range. Two bytes give 1.0 and are as fast. (bench/LOG.md, 2026-11-15)
LARGEST = 32767
LENGTH = (
    0.01  # how far a stored vector may be from length one: rounding moves it by a tenth of that
)


def encode(vector: Any) -> bytes:
    """Float vector → scale and whole numbers. Encoding a decoded vector gives the same bytes again."""
    values = np.asarray(vector, dtype=np.float32)
    peak = float(np.abs(values).max()) if values.size else 0.0
    scale = np.float32(peak / LARGEST if peak > 0 else 1.0)
    return bytes(scale.tobytes() + np.rint(values / scale).astype(np.int16).tobytes())


def encoded_size(dimensions: int) -> int:
    return 4 + 2 * dimensions


def decode(data: bytes) -> Floats:
    scale = np.frombuffer(data, np.float32, 1)[0]
    return np.asarray(
        np.frombuffer(data, np.int16, offset=4).astype(np.float32) * scale, np.float32
    )


def sound(data: bytes, dimensions: int) -> bool:
    """Whether these bytes can be what `encode` made: the largest number fills its range, and models make vectors of length one.
    (A text without any word has a vector of zeros.)"""
    if len(data) != encoded_size(dimensions):
        return False
    scale = float(np.frombuffer(data, np.float32, 1)[0])
    numbers = np.frombuffer(data, np.int16, offset=4).astype(np.float64)
    if not numbers.any():
        return scale == 1.0
    if not np.isfinite(scale) or int(np.abs(numbers).max()) != LARGEST:
        return False
    return abs(scale * float(np.linalg.norm(numbers)) - 1.0) < LENGTH


class Partition:
    """The vectors of one model in one scope."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.last = 0  # highest vector id seen
        self.size = 0
        self.dead = 0
        self.ids = np.empty(0, np.int64)
        self.memories = np.empty(0, np.int64)
        self.scales = np.empty(0, np.float32)
        self.values = np.empty((0, dimensions), np.int16)
        self.codes = np.empty(
            ((dimensions + 63) // 64, 0), np.uint64
        )  # one row per 64 dimensions, so that a scan reads straight on
        self.total = np.zeros(dimensions, np.float64)
        self.centre = np.zeros(dimensions, np.float32)
        self._order: tuple[NDArray[np.int64], NDArray[np.int64]] | None = (
            None  # rows by memory, and those memories
        )

    def add(self, rows: Iterable[tuple[int, int, bytes]]) -> None:
        rows = list(rows)
        if not rows:
            return
        self.last = rows[-1][0]
        # A vector of the wrong size is damaged, or of a model that changed under its name; `check` tells of it.
        rows = [row for row in rows if len(row[2]) == encoded_size(self.dimensions)]
        if not rows:
            return
        count = len(rows)
        self._grow(self.size + count)
        part = slice(self.size, self.size + count)
        raw = np.frombuffer(b"".join(row[2] for row in rows), np.uint8).reshape(
            count, encoded_size(self.dimensions)
        )
        self.ids[part] = [row[0] for row in rows]
        self.memories[part] = [row[1] for row in rows]
        self.scales[part] = raw[:, :4].copy().view(np.float32)[:, 0]
        self.values[part] = raw[:, 4:].copy().view(np.int16)
        self.total += self.scales[part].astype(np.float64) @ self.values[part].astype(np.float64)
        first = self.size == 0
        self.size += count
        if first or self.size > 4 * self._centred:
            self._recentre()
        else:
            self.codes[:, part] = self._encode(part)
        self._order = None

    _centred = 0

    def _recentre(self) -> None:
        # Codes are signs, which say most when they are taken around the middle of the data. The middle moves little
        # once there are many vectors, so it is taken again only when they have grown fourfold.
        self._centred = self.size
        self.centre = (self.total / max(1, self.size - self.dead)).astype(np.float32)
        for start in range(0, self.size, 16384):
            part = slice(start, min(start + 16384, self.size))
            self.codes[:, part] = self._encode(part)

    def _encode(self, part: slice) -> NDArray[np.uint64]:
        signs = self.values[part] * self.scales[part, None] > self.centre
        return self._pack(signs)

    def _pack(self, signs: NDArray[np.bool_]) -> NDArray[np.uint64]:
        """Signs of one vector a row → codes, one vector a column."""
        packed = np.packbits(signs, axis=-1)
        spare = len(self.codes) * 8 - packed.shape[-1]
        if spare:
            packed = np.pad(packed, [(0, 0), (0, spare)])
        return np.ascontiguousarray(packed).view(np.uint64).T

    def _grow(self, size: int) -> None:
        capacity = len(self.ids)
        if size <= capacity:
            return
        # The first load is taken as it comes; after that room is made by half as much again.
        capacity = size if capacity == 0 else max(size, capacity + capacity // 2, 256)
        for name in ("ids", "memories", "scales", "values"):
            old = getattr(self, name)
            new = np.zeros((capacity, *old.shape[1:]), old.dtype)
            new[: self.size] = old[: self.size]
            setattr(self, name, new)
        codes = np.zeros((len(self.codes), capacity), np.uint64)
        codes[:, : self.size] = self.codes[:, : self.size]
        self.codes = codes

    def remove(self, ids: NDArray[np.int64]) -> None:
        if not self.size:
            return
        at = np.searchsorted(self.ids[: self.size], ids)
        inside = at < self.size
        at, ids = at[inside], ids[inside]
        at = at[self.ids[at] == ids]  # the log names vectors of every scope
        at = at[self.memories[at] >= 0]
        if not len(at):
            return
        self.total -= self.scales[at].astype(np.float64) @ self.values[at].astype(np.float64)
        self.memories[at] = -1
        self.dead += len(at)
        self._order = None
        if self.dead * 4 > self.size:
            alive = self.memories[: self.size] >= 0
            for name in ("ids", "memories", "scales", "values"):
                setattr(self, name, getattr(self, name)[: self.size][alive])
            self.codes = np.ascontiguousarray(self.codes[:, : self.size][:, alive])
            self.size, self.dead = len(self.ids), 0

    @property
    def live(self) -> int:
        return self.size - self.dead

    def similarity_total(self, query: Floats) -> float:
        return float(self.total @ query)

    def search(
        self,
        query: Floats,
        limit: int,
        allowed: NDArray[np.int64] | None,
        least: float | None = None,
    ) -> tuple[NDArray[np.int64], Floats]:
        """Memories and cosines of the best `limit` vectors, best first; a memory may come more than once. What is as near as the
        `least` that is asked for stands among the best codes, so fewer are looked at."""
        rows: NDArray[np.int64] | None = None
        if allowed is not None:
            rows = np.flatnonzero(np.isin(self.memories[: self.size], allowed))
        elif self.dead:
            rows = np.flatnonzero(self.memories[: self.size] >= 0)
        count = self.size if rows is None else len(rows)
        if count > EXACT:
            rows = self._shortlist(
                query,
                rows,
                count,
                count_rescored(count, limit) if least is None else max(ROUGH, 4 * limit),
            )
        scores = self._cosines(query, rows)
        if least is not None:
            near = np.flatnonzero(scores >= least)
            rows, scores = near if rows is None else rows[near], scores[near]
        if len(scores) > limit:
            best = np.argpartition(-scores, limit - 1)[:limit]
            best = best[np.argsort(-scores[best], kind="stable")]
        else:
            best = np.argsort(-scores, kind="stable")
        memories = self.memories[: self.size] if rows is None else self.memories[rows]
        return memories[best], scores[best]

    def _shortlist(
        self, query: Floats, rows: NDArray[np.int64] | None, count: int, wanted: int
    ) -> NDArray[np.int64]:
        """The rows whose codes differ least from the question's: at least as many as are to be rescored."""
        code = self._pack(query[None, :] > self.centre * float(np.linalg.norm(query)))[:, 0]
        codes = self.codes[:, : self.size] if rows is None else self.codes[:, rows]
        distance = np.zeros(codes.shape[1], np.uint16)
        for column, own in zip(codes, code, strict=True):
            distance += np.bitwise_count(column ^ own)
        # Distances are small whole numbers: counting them finds the cut faster than sorting.
        reached = np.cumsum(np.bincount(distance))
        cut = int(np.searchsorted(reached, min(count, wanted)))
        best = np.flatnonzero(distance <= cut)
        return best if rows is None else rows[best]

    def _cosines(self, query: Floats, rows: NDArray[np.int64] | None) -> Floats:
        # Made floats first: NumPy multiplies whole numbers with floats ten times slower than floats with floats. And by einsum: `@`
        # shares such a small product among threads, whose waiting for each other takes ten times longer on a busy machine.
        chosen = slice(0, self.size) if rows is None else rows
        found: Floats = (
            np.einsum("ij,j->i", self.values[chosen].astype(np.float32), query)
            * self.scales[chosen]
        )
        return found

    def cosines(self, query: Floats, memories: NDArray[np.int64]) -> dict[int, float]:
        """The best cosine of each of these memories that has a vector here."""
        if not self.size or not len(memories):
            return {}
        if self._order is None:
            order = np.argsort(self.memories[: self.size], kind="stable")
            self._order = order, self.memories[order]
        order, ordered = self._order
        start = np.searchsorted(ordered, memories, "left")
        stop = np.searchsorted(ordered, memories, "right")
        single = stop - start == 1
        several = [
            np.arange(first, last)
            for first, last in zip(start[~single], stop[~single], strict=True)
            if last > first
        ]
        rows = order[np.concatenate([start[single], *several])] if several else order[start[single]]
        if not len(rows):
            return {}
        scores = self._cosines(query, rows)
        best: dict[int, float] = {}
        for memory, score in zip(self.memories[rows].tolist(), scores.tolist(), strict=True):
            if score > best.get(memory, -2.0):
                best[memory] = score
        return best

    @property
    def nbytes(self) -> int:
        return sum(
            getattr(self, name).nbytes for name in ("ids", "memories", "scales", "values", "codes")
        )


def count_rescored(count: int, limit: int) -> int:
    """How many vectors are rescored after the codes: recall@10 of .98 and more on real texts (bench/LOG.md, 2026-11-15)."""
    return max(1024, 4 * limit, min(count // 12, 32_768))


# The vectors a process holds, caught up from the database before each use

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
