"""Nearest vectors, fast.

The rows in the database are the truth. A process that searches holds a compact copy: two signed bytes per dimension and a
one-bit code for each. A search compares codes first (a XOR and a bit count per 64 dimensions) and rescores the best few
hundred from the numbers. The copy is kept per scope, so that a small project never pays for a large one, and is caught up
from the database before every search by the rising id of additions and the log of removals.

The codes of a large scope also lie in a file beside the database, so that a new process need not read every vector: it takes the
codes from there and the numbers of the few that it rescores from the database. Nothing depends on the file. It is checked
against the database before it is believed, it may be lost, old, damaged or another database's, and a purge takes it away.
"""

from __future__ import annotations

import os
import struct
import threading
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

# Below this many vectors the numbers are compared directly: as fast, and exact.
EXACT = 4096
# From this many vectors on, codes are kept in a file: reading 10,000 vectors from the database takes .15 s, and the file as many
# again whenever this share of it has changed.
FILED, CHANGED = 10_000, 0.05
HEADER = struct.Struct(
    "<8sqqqqq"
)  # mark, dimensions, vectors, newest vector, newest removal, how many the centre was taken of
MARK = b"codes001"
SAMPLE = 16  # vectors of a file that are compared with the database
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


Read = Callable[[list[int]], list[tuple[int, int, bytes]]]  # ids → (id, owner, data), by id


class Partition:
    """The vectors of one model in one scope. Numbers that are not `held` yet are read when they are needed."""

    def __init__(self, dimensions: int, read: Read = lambda ids: []) -> None:
        self.dimensions = dimensions
        self.last = 0  # highest vector id seen
        self.size = 0
        self.dead = 0
        self.ids = np.empty(0, np.int64)
        self.memories = np.empty(0, np.int64)
        self.scales = np.empty(0, np.float32)
        self.values = np.empty((0, dimensions), np.int16)
        self.slots = np.empty(
            0, np.int32
        )  # where the numbers of a row stand among the values; -1 if they are not held
        self.filled = 0  # values that are held
        # One row per 64 dimensions, so that a scan reads straight on.
        self.codes = np.empty(((dimensions + 63) // 64, 0), np.uint64)
        self.total = np.zeros(dimensions, np.float64)
        self.centre = np.zeros(dimensions, np.float32)
        self.filed = 0  # vectors that the file holds, and below how many changes there were since
        self.changed = 0
        self._read = read
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
        self.ids[part] = [row[0] for row in rows]
        self.memories[part] = [row[1] for row in rows]
        self._put(np.arange(part.start, part.stop), [row[2] for row in rows])
        self.total += self._sum(np.arange(part.start, part.stop))
        first = self.size == 0
        self.size += count
        self.changed += count
        if first or self.size > 4 * self._centred:
            self._recentre()
        else:
            self.codes[:, part] = self._encode(part)
        self._order = None

    _centred = 0

    def _put(self, at: NDArray[np.int64], data: Sequence[bytes]) -> None:
        """The numbers of some rows, as they are stored, behind those that are held."""
        raw = np.frombuffer(b"".join(data), np.uint8).reshape(len(data), -1)
        end = self.filled + len(data)
        if end > len(self.values):
            room = end if not self.filled else max(end, len(self.values) * 3 // 2, 256)
            values = np.empty((room, self.dimensions), np.int16)
            values[: self.filled] = self.values[: self.filled]
            self.values = values
        self.scales[at] = raw[:, :4].copy().view(np.float32)[:, 0]
        self.values[self.filled : end] = raw[:, 4:].copy().view(np.int16)
        self.slots[at] = np.arange(self.filled, end)
        self.filled = end

    def _hold(self, rows: NDArray[np.int64]) -> None:
        """Reads the numbers of rows that only the file gave so far. One that is gone meanwhile has a cosine of 0."""
        missing = rows[self.slots[rows] < 0]
        for start in range(0, len(missing), 8192):
            at = missing[start : start + 8192]
            wanted = self.ids[at]
            found = [
                row
                for row in self._read(wanted.tolist())
                if len(row[2]) == encoded_size(self.dimensions)
            ]
            if found:
                place = np.searchsorted(wanted, [row[0] for row in found])
                self._put(at[place], [row[2] for row in found])

    def _recentre(self) -> None:
        # Codes are signs, which say most when they are taken around the middle of the data. The middle moves little
        # once there are many vectors, so it is taken again only when they have grown fourfold.
        self._centred = self.size
        self._hold(np.arange(self.size))
        self.centre = (self.total / max(1, self.size - self.dead)).astype(np.float32)
        for start in range(0, self.size, 16384):
            part = slice(start, min(start + 16384, self.size))
            self.codes[:, part] = self._encode(part)

    def _sum(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        numbers = self.values[self.slots[rows]].astype(np.float64)
        total: NDArray[np.float64] = self.scales[rows].astype(np.float64) @ numbers
        return total

    def _encode(self, rows: slice | NDArray[np.int64]) -> NDArray[np.uint64]:
        signs = self.values[self.slots[rows]] * self.scales[rows, None] > self.centre
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
        self._move(np.arange(self.size), capacity)

    def _move(self, rows: NDArray[np.int64], capacity: int) -> None:
        """Brings rows into arrays of their own."""
        if len(rows) < self.size:
            places = np.flatnonzero(self.slots[rows] >= 0)
            self.values = self.values[self.slots[rows[places]]]
            self.slots[rows[places]] = np.arange(len(places))
            self.filled = len(places)
        for name in ("ids", "memories", "scales", "slots"):
            old = getattr(self, name)
            new = np.full(capacity, 0 if name == "scales" else -1, old.dtype)
            new[: len(rows)] = old[rows]
            setattr(self, name, new)
        codes = np.zeros((len(self.codes), capacity), np.uint64)
        codes[:, : len(rows)] = self.codes[:, rows]
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
        # What was never held is gone from the database, too; the mean stands for it.
        known = at[self.slots[at] >= 0]
        self.total -= self._sum(known) + self.total * ((len(at) - len(known)) / max(1, self.live))
        self.memories[at] = -1
        self.dead += len(at)
        self.changed += len(at)
        self._order = None
        if self.dead * 4 > self.size:
            alive = np.flatnonzero(self.memories[: self.size] >= 0)
            self._move(alive, len(alive))
            self.size, self.dead = len(alive), 0

    # The file

    def save(self, path: Path, removed: int) -> None:
        """Writes the codes of what is alive for its owner alone, whole or not at all."""
        alive = np.flatnonzero(self.memories[: self.size] >= 0)
        head = (MARK, self.dimensions, len(alive), self.last, removed, self._centred)
        parts = (
            self.ids[alive],
            self.memories[alive],
            self.codes[:, alive],
            self.total,
            self.centre,
        )
        body = HEADER.pack(*head) + b"".join(part.tobytes() for part in parts)
        write_whole(path, body + zlib.crc32(body).to_bytes(4, "little"))
        self.filed, self.changed = len(alive), 0

    def load(self, path: Path) -> int | None:
        """Takes ids, owners and codes from a file and gives the newest removal that it knows; None if it is no such file."""
        try:
            data = path.read_bytes()
        except OSError:
            return None
        words = len(self.codes)
        if len(data) < HEADER.size or zlib.crc32(data[:-4]) != _number(data[-4:]):
            return None
        mark, dimensions, count, last, removed, centred = HEADER.unpack_from(data)
        whole = HEADER.size + count * 8 * (2 + words) + dimensions * 12 + 4
        if mark != MARK or dimensions != self.dimensions or len(data) != whole:
            return None
        at = HEADER.size

        def take(type: Any, number: int) -> Any:
            nonlocal at
            found = np.frombuffer(data, type, number, at)
            at += found.nbytes
            return found

        self._grow(count + count // 4)
        self.size = self.filed = count
        self.ids[:count], self.memories[:count] = take(np.int64, count), take(np.int64, count)
        self.codes[:, :count] = take(np.uint64, words * count).reshape(words, count)
        self.total = take(np.float64, dimensions).copy()
        self.centre = take(np.float32, dimensions).copy()
        self.last, self._centred = last, centred
        return int(removed)

    def agrees(self, count: int) -> bool:
        """Whether what the file said holds: as many vectors as the database has, and of some of them the same owner and code."""
        if self.live != count or not count:
            return False
        alive = np.flatnonzero(self.memories[: self.size] >= 0)
        rows = alive[np.unique(np.linspace(0, len(alive) - 1, SAMPLE).astype(np.int64))]
        found = self._read(self.ids[rows].tolist())
        if [(id, owner) for id, owner, _ in found] != list(
            zip(self.ids[rows].tolist(), self.memories[rows].tolist(), strict=True)
        ):
            return False
        self._hold(rows)
        held = bool((self.slots[rows] >= 0).all())
        return held and bool((self._encode(rows) == self.codes[:, rows]).all())

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
        chosen = np.arange(self.size) if rows is None else rows
        self._hold(chosen)
        if not self.filled:
            return np.zeros(len(chosen), np.float32)
        found: Floats = (
            np.einsum("ij,j->i", self.values[self.slots[chosen]].astype(np.float32), query)
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
    """Those of one table: of memories, or of the topics of conversations. Codes of large scopes lie in the `folder`, if there is one."""

    def __init__(self, table: str, owner: str, folder: Path | None = None) -> None:
        self._newest = (
            f"SELECT (SELECT coalesce(max(id), 0) FROM {table}), (SELECT coalesce(max(number), 0) FROM {table}_removed),"
            f" (SELECT coalesce(min(number), 0) FROM {table}_removed)"
        )
        self._page = f"SELECT id, {owner}, data FROM {table} WHERE model = ? AND scope = ? AND id > ? ORDER BY id"
        self._some = f"SELECT id, {owner}, data FROM {table} WHERE id = ANY(?) ORDER BY id"
        self._count = f"SELECT count(*) FROM {table} WHERE model = ? AND scope = ?"
        self._removals = f"SELECT vector FROM {table}_removed WHERE number > ? AND number <= ?"
        self._table, self._folder = table, folder
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
                    self._parts[key] = self._open(run, key, dimensions)
                part = self._parts[key]
                part.add(run(self._page, (*key, part.last)))
                self._file(run, key, part)
                self._fresh.add(key)
        return [self._parts[number, scope] for scope in scopes]

    def _open(self, run: Run, key: tuple[int, int], dimensions: int) -> Partition:
        """The vectors of a scope as its file has them, caught up; an empty partition where there is no file that can be believed."""

        def read(ids: list[int]) -> list[tuple[int, int, bytes]]:
            return run(self._some, (ids,))

        part = Partition(dimensions, read)
        known = part.load(self._path(key)) if self._folder else None
        if known is None:
            return part
        newest, removed, oldest = run(self._newest)[0]
        if known <= removed and oldest <= known + 1:
            part.remove(
                np.asarray([row[0] for row in run(self._removals, (known, removed))], np.int64)
            )
            part.add(run(self._page, (*key, part.last)))
            if part.agrees(run(self._count, key)[0][0]) or run(self._newest)[0][:2] != (
                newest,
                removed,
            ):
                return part
        return Partition(dimensions, read)

    def _file(self, run: Run, key: tuple[int, int], part: Partition) -> None:
        """Keeps the codes of a large scope in its file, when enough has changed since it was written. What is removed while it is
        written may have been purged: then the file goes at once."""
        if not self._folder or part.live < FILED or part.changed <= CHANGED * part.filed:
            return
        path = self._path(key)
        part.save(path, self._seen[1])
        if run(self._newest)[0][1] != self._seen[1]:
            with suppress(OSError):
                path.unlink()

    def _path(self, key: tuple[int, int]) -> Path:
        assert self._folder
        return self._folder / f"{self._table}-{key[0]}-{key[1]}"

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


# The vectors of questions that were asked before


QUESTIONS = 256  # that are kept for a model; then the older half goes


class Questions:
    """Vectors of questions in a file beside the database, by a hash, so that a new process that is asked the same need not load the
    model. It holds no text, may be lost or damaged at any time, and a purge takes it away."""

    def __init__(self, folder: Path, model: str) -> None:
        self._path = folder / f"questions-{blake2b(model.encode(), digest_size=8).hexdigest()}"

    def find(self, text: str) -> Floats | None:
        key = self._key(text)
        for record in reversed(self._records()):
            if record.startswith(key) and zlib.crc32(record[:-4]) == _number(record[-4:]):
                return np.frombuffer(record[16:-4], np.float32)
        return None

    def keep(self, text: str, vector: Floats) -> None:
        record = self._key(text) + np.asarray(vector, np.float32).tobytes()
        record += zlib.crc32(record).to_bytes(4, "little")
        known = [one for one in self._records() if len(one) == len(record)]
        kept = known[-QUESTIONS // 2 :] if len(known) >= QUESTIONS else known
        write_whole(self._path, b"".join([len(record).to_bytes(4, "little"), *kept, record]))

    def _records(self) -> list[bytes]:
        """Each a hash, a vector and a checksum; their length stands first."""
        try:
            data = self._path.read_bytes()
        except OSError:
            return []
        length = max(24, _number(data[:4]))
        return [data[at : at + length] for at in range(4, len(data), length)]

    @staticmethod
    def _key(text: str) -> bytes:
        return blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def write_whole(path: Path, data: bytes) -> bool:
    """Writes a file for its owner alone, whole or not at all. False where it cannot be: a full disk, a folder that only root may write."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}")
    flags = os.O_CREAT | os.O_WRONLY | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with os.fdopen(os.open(fresh, flags, 0o600), "wb") as stream:
            stream.write(data)
        fresh.replace(path)
    except OSError:
        with suppress(OSError):
            fresh.unlink()
        return False
    return True
