"""What a purge and `stats` cost in a large SQLite database: processor time, how long the write lock is held, how far the
write-ahead log grows. Makes the database where there is none.

    python bench/large.py /tmp/big.db --memories 500000
"""

import argparse
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any

from bethink.embed import HashingEmbedder
from bethink.model import KINDS, Batch, Entity, Entry, Memory
from bethink.store import sqlite
from bethink.store.sqlite import SqliteStore
from bethink.text import new_id

AT_ONCE = 5000
LETTERS = "abcdefghijklmnoprstuvwz"


def fill(store: SqliteStore, memories: int) -> None:
    chance, embedder = random.Random(7), HashingEmbedder()
    words = ["".join(chance.choices(LETTERS, k=chance.randint(3, 10))) for _ in range(60_000)]
    weights = list(accumulate(1 / (rank + 10) for rank in range(len(words))))
    names = [f"Name{number}" for number in range(20_000)]
    for first in range(0, memories, AT_ONCE):
        size = min(AT_ONCE, memories - first)
        lengths = [chance.randint(12, 60) for _ in range(size)]
        texts = [" ".join(chance.choices(words, cum_weights=weights, k=n)) for n in lengths]
        entries = []
        for number, (text, vectors) in enumerate(
            zip(texts, embedder.documents(texts), strict=True), first
        ):
            at = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(seconds=number)
            passage = chance.random() < 0.5
            memory = Memory(
                id=new_id(),
                scope=f"project:{chance.randint(0, 19):016x}",
                kind="document" if passage else chance.choice(KINDS[:7]),
                content=text,
                summary=text[:80],
                created_at=at,
                updated_at=at,
                content_hash=sha256(text.encode()).hexdigest(),
                source=f"docs/{number // 20}.md" if passage else "note:user",
                source_type="markdown" if passage else "note",
                entities=tuple(map(Entity, chance.sample(names, chance.randint(0, 3)))),
            )
            entries.append(Entry(memory, vectors, not passage))
        store.write(Batch(at=datetime.now(UTC), add=tuple(entries), model=embedder.model))
        print(f"{first + size:,} memories", end="\r", flush=True)


def measure(name: str, action: Callable[[], Any]) -> None:
    began, spent = time.perf_counter(), time.process_time()
    action()
    spent, took = time.process_time() - spent, time.perf_counter() - began
    print(f"{name}: {spent:.3f} s of processor, {took:.3f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", type=Path)
    parser.add_argument("--memories", type=int, default=500_000)
    asked = parser.parse_args()
    fresh = not asked.database.exists()
    store = SqliteStore(asked.database)
    if fresh:
        fill(store, asked.memories)
    measure("stats", store.overview)
    measure("stats of one project", lambda: store.overview([*store.scopes()][:1]))
    log = Path(f"{asked.database}-wal")
    begin, scrub = sqlite.immediate, sqlite.scrub

    @contextmanager
    def watch(*how: Any) -> Iterator[None]:
        with begin(*how):
            began = time.perf_counter()
            yield
            print(f"  write lock {time.perf_counter() - began:.3f} s")

    def look(*how: Any) -> bool:
        print(f"  write-ahead log {log.stat().st_size:,} bytes")
        return scrub(*how)

    sqlite.immediate, sqlite.scrub = watch, look  # type: ignore[assignment]
    chance = random.Random()
    for number in (1, 1, 1, 100):
        keys = chance.sample(range(1, store._last_key()), number)
        ids = tuple(memory.id for memory in store.load(keys).values())
        batch = Batch(at=datetime.now(UTC), purge=ids)
        measure(f"purge of {number}", lambda batch=batch: store.write(batch))
        print(f"  write-ahead log afterwards {log.stat().st_size:,} bytes")
    store.close()


if __name__ == "__main__":
    main()
