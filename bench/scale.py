"""How recall, adding and the size on disk grow with the number of memories and tenants, on SQLite and on PostgreSQL.

    python bench/scale.py --store postgres --sizes 10000 100000            memories in all; a hundredth to a thousandth of them per tenant
    python bench/scale.py --store sqlite --sizes 10000 1000000 --tenants 1000
    python bench/scale.py --store postgres --url postgresql://…/empty      on a server of yours instead of one that is started here

A tenant of PostgreSQL is a project of SQLite: nobody searches more than their own. Texts and vectors are made up (384 dimensions), so that
no embedding model takes part. Questions go through the whole recall, from random tenants; `first` is the first question to a tenant in a
process, `again` any later one, and `cpu` what that costs this process alone, which a busy machine does not change. Writers are processes that add
one statement at a time, near duplicates looked for, for some seconds.
"""

import argparse
import json
import multiprocessing
import random
import sys
import tempfile
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import numpy as np
from common import log, machine, made, percentile, table
from texts import Teller

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from bethink.api import Bethink
from bethink.config import Config
from bethink.model import Batch, Entry, Memory
from bethink.text import new_id

DIMENSIONS = 384
AT_ONCE = 1000  # memories of one transaction
LARGE = 200_000  # memories of a load that is indexed afterwards
NEAR = f"vectors_near_{DIMENSIONS}"
VARIETY = 20_000  # different texts and vectors, from which the others are made


class Ready:
    """An embedding model whose answers are there already."""

    model, dimensions, baseline, unrelated = "made-384", DIMENSIONS, 0.0, 0.0

    def __init__(self, vectors: np.ndarray) -> None:
        self._vectors = vectors

    def query(self, text: str):
        return self._vectors[int(sha256(text.encode()).hexdigest()[:8], 16) % len(self._vectors)]

    def documents(self, texts):
        return [self.query(text)[None, :] for text in texts]


class Place:
    """Where a run keeps its memories: stores for its tenants, by number."""

    def __init__(self, kind: str, where: str) -> None:
        self.kind, self.where = kind, where
        if kind == "postgres":
            from bethink.store.postgres import PostgresStore

            self.base = PostgresStore(where, tenant="bench")
        else:
            from bethink.store.sqlite import SqliteStore

            self.base = SqliteStore(Path(where))
        self._acting = {}

    def store(self, tenant: int):
        if self.kind == "sqlite":
            return self.base
        if tenant not in self._acting:
            self._acting[tenant] = self.base.act_as(f"tenant-{tenant}", "")
        return self._acting[tenant]

    def memory(self, tenant: int, embedder: Ready) -> Bethink:
        memory = Bethink(config=Config(), store=self.store(tenant), embedder=embedder)
        memory.project = memory.project._replace(identity=scope(tenant).removeprefix("project:"))
        return memory

    def size(self) -> int:
        if self.kind == "postgres":
            return int(
                self.base.database.read(
                    self.base.who, "SELECT pg_database_size(current_database())"
                )[0][0]
            )
        return self.base.overview(()).database_bytes

    def close(self) -> None:
        self.base.close()


def scope(tenant: int) -> str:
    return f"project:{tenant:016x}"


@contextmanager
def place(args, folder: Path):
    if args.store == "sqlite":
        yield str(folder / "scale.db")
        return
    if args.url:
        yield args.url
        return
    import postgres

    settings = {
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "shared_buffers": "2GB",
        "maintenance_work_mem": "512MB",
        "max_wal_size": "8GB",
    }
    server = postgres.Server(**settings)
    try:
        yield server.url
    finally:
        server.stop()


def grow(
    where: Place, texts: list[str], vectors: np.ndarray, tenants: int, before: int, after: int
) -> float:
    """Adds memories evenly over the tenants until there are `after` in all. Returns how many went in each second."""
    dice, now = random.Random(before), datetime.now(UTC)
    started = time.perf_counter()
    first, last = before // tenants, after // tenants
    for tenant in range(tenants):
        for start in range(first, last, AT_ONCE):
            entries = []
            for number in range(start, min(start + AT_ONCE, last)):
                text = f"{dice.choice(texts)} Case {tenant}-{number}."
                at = now - timedelta(minutes=dice.randrange(525_600))
                digest = sha256(text.encode()).hexdigest()
                memory = Memory(
                    new_id(),
                    scope(tenant),
                    "fact",
                    text,
                    text[:80],
                    at,
                    at,
                    content_hash=digest,
                    source="note:bench",
                )
                entries.append(Entry(memory, (vectors[dice.randrange(len(vectors))],)))
            where.store(tenant).write(
                Batch(at=now, actor="bench", add=tuple(entries), model=Ready.model)
            )
        if tenant % 100 == 99:
            log(
                f"  tenant {tenant + 1} of {tenants}, {(tenant + 1) * (last - first) / (time.perf_counter() - started):,.0f} memories a second"
            )
    return (after - before) / (time.perf_counter() - started)


def ask(
    where: Place, embedder: Ready, tenants: int, questions: list[str]
) -> tuple[list[float], list[float], list[float]]:
    """Milliseconds of a tenant's first question, of later ones, and of this process's own work for those."""
    dice, first, again, own = random.Random(3), [], [], []
    for number, question in enumerate(questions):
        memory = where.memory(dice.randrange(tenants), embedder)
        for times in (first, again, again):
            started, worked = time.perf_counter(), time.process_time()
            answer = memory.search(question, limit=10, seed=number)
            times.append((time.perf_counter() - started) * 1000)
            if times is again:
                own.append((time.process_time() - worked) * 1000)
            assert answer.hits
    return first, again, own


def writer(kind: str, where: str, tenants: int, number: int, seconds: float, out) -> None:
    dice = random.Random(number)
    here = Place(kind, where)
    embedder = Ready(made(2000, DIMENSIONS, 1, np.random.default_rng(number))[0])
    texts = Teller(seed=100 + number).memories(2000)
    run, times, done = new_id()[-6:], [], 0
    until = time.perf_counter() + seconds
    while (started := time.perf_counter()) < until:
        memory = here.memory(dice.randrange(tenants), embedder)
        done += (
            memory.add(
                f"{dice.choice(texts)} Written {run}-{number}-{len(times)}.", dedup=True
            ).status
            == "added"
        )
        times.append((time.perf_counter() - started) * 1000)
    here.close()
    out.put((done, times))


def add(kind: str, where: str, tenants: int, writers: int, seconds: float) -> tuple[float, float]:
    """Memories a second by all writers together, and the 95th percentile of one add in milliseconds."""
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    running = [
        context.Process(target=writer, args=(kind, where, tenants, number, seconds, out))
        for number in range(writers)
    ]
    for process in running:
        process.start()
    found = [
        out.get(timeout=seconds + 120) for _ in running
    ]  # a writer that failed has said why, and the run ends
    for process in running:
        process.join()
    return sum(done for done, _ in found) / seconds, percentile(
        [one for _, times in found for one in times], 0.95
    )


@contextmanager
def indexed_afterwards(kind: str, where: str, count: int):
    """A large load goes in before the index of vectors is made, as an administrator would do it."""
    if kind == "sqlite" or count < LARGE:
        yield
        return
    import psycopg

    with psycopg.connect(where, autocommit=True) as connection:
        found = connection.execute(
            "SELECT indexdef FROM pg_indexes WHERE schemaname = 'bethink' AND indexname = %s",
            (NEAR,),
        ).fetchone()
        connection.execute(f"DROP INDEX bethink.{NEAR}")
        yield
        started = time.perf_counter()
        connection.execute("SET maintenance_work_mem = '2GB'")
        connection.execute("SET max_parallel_maintenance_workers = 2")
        connection.execute(found[0].replace(" ON ONLY ", " ON "))
        connection.execute("ANALYZE")
        log(f"  the index of vectors in {time.perf_counter() - started:,.0f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", choices=("sqlite", "postgres"), required=True)
    parser.add_argument("--url", help="an empty PostgreSQL database; otherwise a server is started")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[10_000, 100_000], help="memories in all, rising"
    )
    parser.add_argument(
        "--tenants", type=int, default=0, help="default: 10 memories per 10,000, at most 1,000"
    )
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10.0, help="that writers write")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    about = machine()
    tenants = args.tenants or max(10, min(1000, args.sizes[-1] // 1000))
    teller = Teller()
    texts, questions = teller.memories(VARIETY), teller.questions(args.questions)
    vectors, asked = made(VARIETY, DIMENSIONS, 1000, np.random.default_rng(7))
    results, before = [], 0
    with tempfile.TemporaryDirectory() as folder, place(args, Path(folder)) as where:
        for size in args.sizes:
            here = Place(args.store, where)
            with indexed_afterwards(args.store, where, size - before):
                rate = grow(here, texts, vectors, tenants, before, size)
            first, again, own = ask(here, Ready(asked), tenants, questions)
            held = here.size()
            here.close()
            adds, add95 = (
                add(args.store, where, tenants, args.writers, args.seconds)
                if args.writers
                else (0.0, 0.0)
            )
            results.append(
                {
                    "memories": size,
                    "tenants": tenants,
                    "load_per_second": round(rate),
                    "first_p50": percentile(first, 0.5),
                    "first_p95": percentile(first, 0.95),
                    "again_p50": percentile(again, 0.5),
                    "again_p95": percentile(again, 0.95),
                    "cpu_p50": percentile(own, 0.5),
                    "cpu_p95": percentile(own, 0.95),
                    "adds_per_second": round(adds, 1),
                    "add_p95": add95,
                    "bytes_per_memory": round(held / size),
                }
            )
            log(json.dumps(results[-1]))
            before = size
    if args.json:
        print(json.dumps({"store": args.store, "machine": about, "results": results}, indent=1))
        return
    names = (
        "memories",
        "tenants",
        "load/s",
        "first p50 ms",
        "first p95 ms",
        "again p50 ms",
        "again p95 ms",
        "cpu p50 ms",
        "cpu p95 ms",
        f"adds/s ({args.writers} writers)",
        "add p95 ms",
        "bytes/memory",
    )
    table([names, *(tuple(row.values()) for row in results)])
    base = results[0]
    for row in results[1:]:
        ratio = row["again_p95"] / base["again_p95"]
        print(
            f"{row['memories'] / base['memories']:g} times the memories: p95 of a recall × {ratio:.2f}, of a tenant's first × {row['first_p95'] / base['first_p95']:.2f}"
        )


if __name__ == "__main__":
    main()
