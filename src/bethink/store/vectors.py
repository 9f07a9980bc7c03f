"""Nearest vectors, fast.

The rows in the database are the truth. A process that searches holds a compact copy: a one-bit code for each dimension, and the
numbers of the vectors that it came across. A search compares codes first (a XOR and a bit count per 64 dimensions) and rescores the
best few hundred from the numbers. The copy is kept per scope, so that a small project never pays for a large one, and is caught up
from the database before every search by the rising id of additions and the log of removals.

The codes of a large scope also lie in a file beside the database, so that a new process need not read every vector: it takes the
codes from there and the numbers of the few that it rescores from the database. Nothing depends on the file. It is checked
against the database before it is believed, it may be lost, old, damaged or another database's, and a purge takes it away.
"""

from __future__ import annotations

import io
import os
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bethink.embed.base import Embedder
from bethink.store.rows import Cosines, Keys, Run
from bethink.text import hash_text

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]
Part = tuple[int, int]  # model and scope

# Below this many vectors the numbers are compared directly: as fast, and exact.
COMPARED_DIRECTLY = 4096
# From this many vectors on, codes are kept in a file: reading 10,000 vectors from the database takes .15 s, and the file as many
# again whenever this share of it has changed. By hand.
FILED, CHANGED = 10_000, 0.05
QUESTIONS = 256  # number of questions whose vectors are cached in files; set by hand
_SAMPLE = 16  # vectors of a file that are compared with the database
# Vectors processed at a time: as many as fit in a processor's cache.
CHUNK = 1024

# One byte a dimension was tried: recall@10 of .973 on real texts, because one dimension of the default model is large in
# every text and takes the range. Two bytes give 1.0 and are as fast. (bench/LOG.md, 2026-11-15)
_LARGEST = 32767
# Lengths that a stored vector may have. Rounding moves it by a tenth of a percent, and the windows of a long text, each of which is
# blended with the text's mean (`pool_windows`), are shorter: .86 and more were seen. By hand.
SHORTEST_LENGTH, LONGEST_LENGTH = 0.5, 1.01


def encode(vector: object, scale: float = 0.0) -> bytes:
    """Encode a float vector as scale and integers; encoding a decoded vector gives the same bytes."""
    values = np.asarray(vector, dtype=np.float32)
    peak = float(np.abs(values).max(initial=0.0))
    size = np.float32(scale or peak / _LARGEST or 1.0)
    return bytes(size.tobytes() + np.rint(values / size).astype(np.int16).tobytes())


def encoded_size(dimensions: int) -> int:
    return 4 + 2 * dimensions


def scale_of(data: bytes) -> float:
    return float(np.frombuffer(data, np.float32, 1)[0])


def decode(data: bytes) -> Floats:
    numbers = np.frombuffer(data, np.int16, offset=4)
    return np.asarray(numbers * np.float32(scale_of(data)), np.float32)


def sound(data: bytes, dimensions: int) -> bool:
    """Return True if these bytes can be an encoded vector of about length one, or of zeros.

    A text without any word has a vector of zeros.
    """
    if len(data) != encoded_size(dimensions):
        return False
    with np.errstate(all="ignore"):  # a damaged scale may be no number
        values = decode(data)
        length = float(np.linalg.norm(values))
        fitting = not length or SHORTEST_LENGTH < length < LONGEST_LENGTH
        return encode(values) == data and fitting


Read = Callable[[list[int]], list[tuple[int, int, bytes]]]  # ids → (id, owner, data), by id


class Partition:
    """Vectors of one model in one scope. Missing data is read from the database when needed."""

    def __init__(self, dimensions: int, read: Read = lambda ids: []) -> None:
        self.dimensions = dimensions
        self.last = 0  # highest vector id seen here
        # Newest vector and newest removal in the database at the last update.
        self.newest, self.removed = -1, -1
        self.ids = np.empty(0, np.int64)  # ascending
        self.owners = np.empty(0, np.int64)  # keys of memories or topics
        # One row per 64 dimensions, so that a scan reads straight on.
        self.codes = np.empty(((dimensions + 63) // 64, 0), np.uint64)
        self.data = np.empty(0, object)  # encoded vectors; b"" where they are not loaded
        self.total = np.zeros(dimensions, np.float64)
        self.centre = np.zeros(dimensions, np.float32)
        self.centred = 0  # number of vectors that the centre was computed from
        self.filed = 0  # vectors in the file; below, the changes since it was written
        self.changed = 0
        self._read = read
        self._layout = np.dtype([("scale", np.float32), ("numbers", np.int16, (dimensions,))])

    def add(self, rows: list[tuple[int, int, bytes]]) -> None:
        if rows:
            self.last = rows[-1][0]
        # A vector of the wrong size is damaged, or its model changed under the same name; `check` reports it.
        rows = [row for row in rows if len(row[2]) == self._layout.itemsize]
        if not rows:
            return
        ids, owners, data = zip(*rows, strict=True)
        self.ids = np.concatenate([self.ids, ids])
        self.owners = np.concatenate([self.owners, owners])
        self.data = np.concatenate([self.data, np.array(data, object)])
        fresh = np.arange(len(self.ids) - len(rows), len(self.ids))
        self.total += self._sum(fresh)
        self.changed += len(rows)
        # Codes are signs relative to the centre of the data, which separates best. The centre moves little once there are
        # many vectors, so it is recomputed only when their number has grown fourfold.
        if len(self.ids) == len(rows) or len(self.ids) > 4 * self.centred:
            self.centred = len(self.ids)
            self.centre = (self.total / len(self.ids)).astype(np.float32)
            self.codes = self._encode(np.arange(len(self.ids)))
        else:
            self.codes = np.concatenate([self.codes, self._encode(fresh)], axis=1)

    def remove(self, ids: Ids | list[int]) -> None:
        if not len(ids) or not len(self.ids):
            return  # `isin` first loads a part of NumPy for 4 ms
        gone = np.isin(self.ids, ids)  # the log names vectors of every scope
        number = int(gone.sum())
        if not number:
            return
        known = np.flatnonzero(gone & self.data.astype(bool))
        # A vector that was never loaded is gone from the database, too; subtract the mean instead.
        guessed = self.total * ((number - len(known)) / len(self.ids))
        self.total -= self._sum(known) + guessed
        self.ids, self.owners, self.data = self.ids[~gone], self.owners[~gone], self.data[~gone]
        self.codes = self.codes[:, ~gone]
        self.changed += number

    def _numbers(self, rows: Ids) -> Floats:
        """Vectors, one per row. A vector deleted meanwhile is all zeros, and so are its cosines."""
        size = self._layout.itemsize
        missing = rows[~self.data[rows].astype(bool)]
        for id, _, found in self._read(self.ids[missing].tolist()) if len(missing) else ():
            if len(found) == size:
                self.data[np.searchsorted(self.ids, id)] = found
        data = b"".join(encoded or bytes(size) for encoded in self.data[rows].tolist())
        stored = np.frombuffer(data, self._layout)
        # Converted first: NumPy multiplies integers by floats ten times slower than floats by floats.
        numbers: Floats = stored["numbers"].astype(np.float32)
        numbers *= stored["scale"][:, None]
        return numbers

    def _chunks(self, rows: Ids) -> Iterator[Floats]:
        for at in range(0, len(rows), CHUNK):
            yield self._numbers(rows[at : at + CHUNK])

    def _sum(self, rows: Ids) -> Any:
        return sum(numbers.sum(axis=0, dtype=np.float64) for numbers in self._chunks(rows))

    def _encode(self, rows: Ids) -> NDArray[np.uint64]:
        codes = [self._pack(numbers > self.centre) for numbers in self._chunks(rows)]
        return np.concatenate(codes, axis=1)

    def _pack(self, signs: NDArray[np.bool_]) -> NDArray[np.uint64]:
        """Pack signs, one vector per row, into codes, one vector per column."""
        packed = np.packbits(signs, axis=-1)
        spare = len(self.codes) * 8 - packed.shape[-1]
        return np.ascontiguousarray(np.pad(packed, [(0, 0), (0, spare)])).view(np.uint64).T

    # The file

    def save(self, path: Path) -> None:
        facts = np.array([self.dimensions, self.last, self.removed, self.centred])
        save_arrays(path, facts, self.ids, self.owners, self.codes, self.total, self.centre)
        self.filed, self.changed = len(self.ids), 0

    def load(self, path: Path) -> bool:
        """Load ids, owners and codes from a file, if it matches the dimensions."""
        facts, *arrays = load_arrays(path) or [np.zeros(4, np.int64)]
        dimensions, self.last, self.removed, self.centred = facts.tolist()
        if dimensions != self.dimensions:
            return False
        self.ids, self.owners, self.codes, self.total, self.centre = arrays
        self.data = np.full(len(self.ids), b"", object)
        self.filed = len(self.ids)
        return True

    def agrees(self, count: int) -> bool:
        """Return True if the file matches the database in count and in a sample of owners and codes."""
        if len(self.ids) != count or not count:
            return False
        rows = np.unique(np.linspace(0, count - 1, _SAMPLE).astype(np.int64))
        ids, owners = self.ids[rows].tolist(), self.owners[rows].tolist()
        found = [(id, owner) for id, owner, _ in self._read(ids)]
        same = found == list(zip(ids, owners, strict=True))
        return same and bool((self._encode(rows) == self.codes[:, rows]).all())

    # Searching

    def search(self, query: Floats, limit: int, allowed: Ids | None) -> tuple[Ids, Floats]:
        """Owners and cosines of the best `limit` vectors, best first; an owner may come more than once."""
        rows = np.arange(len(self.ids))
        if allowed is not None:
            rows = np.flatnonzero(np.isin(self.owners, allowed))
        if len(rows) > COMPARED_DIRECTLY:
            rows = self._shortlist(query, rows, count_rescored(len(rows), limit))
        scores = self._cosines(query, rows)
        best = np.argsort(-scores, kind="stable")[:limit]
        return self.owners[rows[best]], scores[best]

    def _shortlist(self, query: Floats, rows: Ids, wanted: int) -> Ids:
        """Rows whose codes differ least from that of the question: at least `wanted`."""
        code = self._pack(query[None, :] > self.centre * float(np.linalg.norm(query)))[:, 0]
        distance = np.zeros(len(self.ids), np.uint16)
        for column, own in zip(self.codes, code, strict=True):
            distance += np.bitwise_count(column ^ own)
        distance = distance[rows]
        # Distances are small whole numbers: counting them finds the cut faster than sorting.
        reached = np.cumsum(np.bincount(distance))
        return rows[distance <= np.searchsorted(reached, min(len(rows), wanted))]

    def _cosines(self, query: Floats, rows: Ids) -> Floats:
        # With einsum: `@` splits even such a small product among threads, which takes ten times longer on a busy machine.
        found = [np.einsum("ij,j->i", part, query) for part in self._chunks(rows)]
        return np.concatenate([np.empty(0, np.float32), *found])

    def cosines(self, query: Floats, owners: Ids) -> dict[int, float]:
        """Best cosine of each of these memories that has a vector here."""
        rows = np.flatnonzero(np.isin(self.owners, owners))
        pairs = zip(self.owners[rows].tolist(), self._cosines(query, rows).tolist(), strict=True)
        return dict(sorted(pairs, key=lambda pair: pair[1]))  # of several, the last is the best


def count_rescored(count: int, limit: int) -> int:
    """Number of vectors to rescore: recall@10 of .98 or more on real texts (bench/LOG.md, 2026-11-15)."""
    return max(1024, 4 * limit, min(count // 12, 32_768))


# The vectors loaded by a process, updated from the database before each use


class VectorIndex:
    """Vectors of memories, or of topics. Codes of large scopes are stored in the `folder`."""

    def __init__(self, run: Run, table: str, owner: str, folder: Path) -> None:
        self._newest = (
            f"SELECT (SELECT coalesce(max(id), 0) FROM {table}), (SELECT coalesce(max(number), 0) FROM {table}_removed),"
            f" (SELECT coalesce(min(number), 0) FROM {table}_removed)"
        )
        self._page = f"SELECT id, {owner}, data FROM {table} WHERE model = ? AND scope = ? AND id > ? ORDER BY id"
        self._some = f"SELECT id, {owner}, data FROM {table} WHERE id = ANY(?) ORDER BY id"
        self._count = f"SELECT count(*) FROM {table} WHERE model = ? AND scope = ?"
        self._removals = f"SELECT vector FROM {table}_removed WHERE number > ? AND number <= ?"
        self._run, self._table, self._folder = run, table, folder
        self._lock = threading.RLock()
        self._parts: dict[Part, Partition] = {}

    def search(
        self, vector: object, model: str, scopes: Keys, limit: int, allowed: Keys | None = None
    ) -> tuple[tuple[int, float], ...]:
        query = np.asarray(vector, np.float32)
        permitted = None if allowed is None else np.asarray(allowed, np.int64)
        best: dict[int, float] = {}
        with self._lock:
            for part in self._current(model, scopes):
                best |= _find_best(part, query, limit, permitted)
        return tuple(sorted(best.items(), key=lambda item: (-item[1], item[0]))[:limit])

    def cosines(self, vector: object, model: str, scopes: Keys, owners: Keys) -> Cosines:
        """Cosines of memories found by other signals, and the mean over all vectors of the scopes."""
        query, wanted = np.asarray(vector, np.float32), np.asarray(owners, np.int64)
        found: dict[int, float] = {}
        with self._lock:
            parts = self._current(model, scopes)
            for part in parts:
                found |= part.cosines(query, wanted)
            count = sum(len(part.ids) for part in parts)
            total = sum(float(part.total @ query) for part in parts)
        return found, total / count if count else 0.0

    def _current(self, model: str, scopes: Keys) -> list[Partition]:
        newest, removed, oldest = self._run(self._newest)[0]
        parts = []
        for number, dimensions in self._run(
            "SELECT id, dimensions FROM models WHERE name = ?", model
        ):
            for scope in scopes:
                key = (number, scope)
                part = self._parts.get(key)
                # Read everything again if the size changed, or the log of removals no longer reaches back to the last update.
                if not part or part.dimensions != dimensions or part.removed + 1 < oldest:
                    part = self._parts[key] = self._open(key, dimensions, removed, oldest)
                if (part.newest, part.removed) != (newest, removed):
                    self._catch_up(key, part, removed)
                    part.newest = newest
                    self._file(key, part)
                parts.append(part)
        return parts

    def _catch_up(self, key: Part, part: Partition, removed: int) -> None:
        part.remove([id for (id,) in self._run(self._removals, part.removed, removed)])
        part.add(self._run(self._page, *key, part.last))
        part.removed = removed

    def _open(self, key: Part, dimensions: int, removed: int, oldest: int) -> Partition:
        """Load the vectors of a scope from its file and update them; empty if the file is not valid."""

        def read(ids: list[int]) -> list[tuple[int, int, bytes]]:
            return self._run(self._some, ids)

        part = Partition(dimensions, read)
        if part.load(self._path(key)) and oldest - 1 <= part.removed <= removed:
            self._catch_up(key, part, removed)
            if part.agrees(self._run(self._count, *key)[0][0]):
                return part
        part = Partition(dimensions, read)
        part.removed = removed
        return part

    def _file(self, key: Part, part: Partition) -> None:
        """Write the codes of a large scope to its file when enough has changed.

        A vector removed while the file is written may have been purged, so the file is deleted at
        once.
        """
        if len(part.ids) < FILED or part.changed <= CHANGED * part.filed:
            return
        part.save(self._path(key))
        if self._run(self._newest)[0][1] != part.removed:
            with suppress(OSError):
                self._path(key).unlink()

    def _path(self, key: Part) -> Path:
        return self._folder / f"{self._table}-{key[0]}-{key[1]}.npz"


def _find_best(part: Partition, query: Any, limit: int, permitted: Any) -> dict[int, float]:
    """Best `limit` memories of a partition.

    Several windows of one text may match, so more rows are fetched until there are enough memories.
    """
    rows = limit + limit // 2
    while True:
        owners, cosines = part.search(query, rows, permitted)
        best: dict[int, float] = {}
        for owner, cosine in zip(owners.tolist(), cosines.tolist(), strict=True):
            best.setdefault(owner, cosine)  # rows come best first
        if len(best) >= limit or len(owners) < rows:
            return best
        rows *= 4


# Files beside the database


def ask_once(folder: Path, text: str, embedder: Embedder) -> Any:
    """Embed a question, or load its vector from a file, which saves loading the model.

    The files contain no text, may be lost or damaged at any time, and a purge deletes them.
    """
    asked = f"{embedder.model}\0{text}"
    path = folder / f"question-{hash_text(asked).hex()}"
    if known := load_arrays(path):
        return known[0]
    vector = embedder.query(text)
    save_arrays(path, np.asarray(vector, np.float32))
    with suppress(OSError):
        kept = sorted(folder.glob("question-*"), key=lambda file: file.stat().st_mtime_ns)
        for old in kept[:-QUESTIONS]:
            old.unlink()
    return vector


def save_arrays(path: Path, *arrays: Any) -> None:
    """Write a file atomically for its owner only; errors such as a full disk are ignored."""
    body = io.BytesIO()
    np.savez(body, *arrays)
    data = body.getvalue()
    fresh = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}")
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            fresh.touch(0o600, exist_ok=False)
            fresh.write_bytes(data + _sum(data))
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)


def load_arrays(path: Path) -> list[Any]:
    """Load the arrays of `save_arrays`; empty if the file is missing or damaged."""
    try:
        data = path.read_bytes()
        whole = data[-4:] == _sum(data[:-4])
        return list(np.load(io.BytesIO(data[:-4])).values()) if whole else []
    except (OSError, ValueError, AttributeError, EOFError):
        return []


def _sum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "little")
