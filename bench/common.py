"""Shared by the benchmark scripts: machine, clocks, percentiles, tables, made-up vectors, filled databases."""

import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from texts import Teller

from bethink.ingest.compare import WriteOptions
from bethink.ingest.extract import extract
from bethink.ingest.pipeline import make_memory
from bethink.model import Batch, Entry, Memory, Passage, Source
from bethink.store.places import content_hash
from bethink.text import hash_text, new_id

BATCH = 2000


def machine() -> dict:
    """Print cores and load first: figures from a busy machine are only good for ratios."""
    load = " ".join(f"{value:.2f}" for value in os.getloadavg())
    found = {"cores": os.cpu_count(), "load_average": load, "python": sys.version.split()[0]}
    print(f"{found['cores']} cores, load average {load}, Python {found['python']}", file=sys.stderr)
    return found


def percentile(times: Sequence[float], share: float) -> float:
    return float(np.percentile(np.asarray(times), share * 100))


def table(rows: Sequence[Sequence[object]]) -> None:
    """Print rows in columns; the first row is the heading."""
    cells = [
        [f"{cell:,.2f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for number, row in enumerate(cells):
        first, *rest = zip(row, widths, strict=True)
        print(
            "  ".join(
                [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]
            ).rstrip()
        )
        if number == 0:
            print("  ".join("-" * width for width in widths))
    print(flush=True)


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def resident() -> int:
    """Resident memory of this process in bytes; 0 where there is no /proc."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def perturbed(
    vectors: np.ndarray, count: int, rng: np.random.Generator, far: float = 0.6
) -> np.ndarray:
    """`count` unit vectors: a given one plus part of the difference of two others, which keeps the real ones' spread."""
    found = np.empty((count, vectors.shape[1]), np.float32)
    for start in range(0, count, 10_000):
        size = min(10_000, count - start)
        base, one, other = (vectors[rng.integers(len(vectors), size=size)] for _ in range(3))
        part = base + np.float32(far) * (one - other)
        found[start : start + size] = part / np.linalg.norm(part, axis=1, keepdims=True)
    return found


def made(
    rows: int, dimensions: int, queries: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Vectors and questions shaped like those of arctic-embed-s: a common direction, topics, a decaying spectrum, one huge dimension.

    Measured on LongMemEval (11,608 windows): two texts have a cosine of .66, a question and a text .49, a question and its
    nearest texts .70 (1st), .645 (10th), .615 (40th); one of the 384 numbers is .40 in every text. The shares give about that."""
    turn = np.linalg.qr(rng.normal(size=(dimensions, dimensions)))[0].astype(np.float32)
    spectrum = (1 / np.sqrt(np.arange(dimensions) + dimensions / 10)).astype(np.float32)
    spectrum /= np.linalg.norm(spectrum)
    huge = np.eye(1, dimensions, dtype=np.float32)[0]
    common, asking = 0.49 * huge + 0.87 * turn[0], 0.25 * huge + 0.97 * turn[1]

    def shaped(count: int) -> np.ndarray:
        return (rng.standard_normal((count, dimensions), np.float32) * spectrum) @ turn

    topics = shaped(min(2000, max(1, rows // 20)))
    found = np.empty((rows, dimensions), np.float32)
    for start in range(0, rows, 10_000):
        size = min(10_000, rows - start)
        own = 0.75 * topics[rng.integers(len(topics), size=size)] + 0.66 * shaped(size)
        found[start : start + size] = unit(0.82 * common + 0.57 * own)
    own = 0.85 * topics[rng.integers(len(topics), size=queries)] + 0.53 * shaped(queries)
    return found, unit(0.52 * common + 0.65 * asking + 0.4 * own)


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def embedded(
    texts: Sequence[str], embedder, rng: np.random.Generator, really: int
) -> tuple[np.ndarray, float]:
    """One vector per text, the first `really` of them by the model, the rest made from those; and the model's seconds a text."""
    started = time.perf_counter()
    real = np.stack([matrix[0] for matrix in embedder.documents(list(texts[:really]))])
    seconds = (time.perf_counter() - started) / len(real)
    if len(texts) <= len(real):
        return real, seconds
    return np.concatenate([real, perturbed(real, len(texts) - len(real), rng)]), seconds


def fill(
    store,
    scope: str,
    texts: Sequence[str],
    vectors: Sequence,
    model: str,
    seed: int = 7,
    really: int = 0,
) -> float:
    """Write notes with ready vectors in large transactions and return the seconds it took.

    With `really`, only that many texts are read for names and kinds; the others reuse those.
    """
    dice, now = random.Random(seed), datetime.now(UTC)
    into, source = (
        WriteOptions(scope=scope, now=now, scopes={scope: ("bench", "")}),
        Source("note:bench", "note"),
    )
    started = time.perf_counter()
    known = []

    def make(text: str) -> Memory:
        at = now - timedelta(minutes=dice.randrange(525_600))
        if really and len(known) == really:
            own = {"id": new_id(), "content": text, "content_hash": content_hash(text)}
            return dice.choice(known)._replace(**own, created_at=at)
        known.append(make_memory(extract(Passage(text, created_at=at)), source, into, 0))
        return known[-1]

    for start in range(0, len(texts), BATCH):
        made = [make(text) for text in texts[start : start + BATCH]]
        own = vectors[start : start + BATCH]
        store.write(
            Batch(
                at=now,
                actor="bench",
                scopes=into.scopes,
                model=model,
                add=tuple(
                    Entry(memory, (vector,)) for memory, vector in zip(made, own, strict=True)
                ),
                cache={
                    hash_text(memory.content).hex(): (vector,)
                    for memory, vector in zip(made, own, strict=True)
                    if not really
                },
            )
        )
        if start % 50_000 == 0 and start:
            log(f"  {start:,} memories written")
    return time.perf_counter() - started


def fill_scope(memory, count: int, scope: str = "", really: int = 300) -> None:
    """Fill a scope with short notes; the vectors of `really` come from the model, the rest are perturbed."""
    log(f"writing {count:,} memories")
    texts = Teller().memories(count)
    vectors, _ = embedded(texts, memory.embedder, np.random.default_rng(7), really)
    model = memory.embedder.model
    fill(memory.writer, scope or memory.scope, texts, vectors, model, really=2_000)
