"""The vector stage against sqlite-vec and NumPy on the same vectors, in turns, in one run.

    python bench/vectors.py [--rows 100000] [--dimensions 384] [--real FILE.npz [--queries FILE.npy]] [--json]

Both databases are files on disk opened through apsw: the store's own, and one with sqlite-vec's `vec0` tables.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import apsw
import numpy as np
import sqlite_vec
from common import machine, made, percentile, perturbed, table, told

from bethink.model import Batch, Entry, Filter, Memory
from bethink.store.sqlite import SqliteStore
from bethink.text import new_id

MODEL, K, TENTHS, BATCH = "bench", 40, 10, 10_000
THEIRS = "SELECT rowid FROM {} WHERE vector MATCH ? AND k = ?"
TABLES = "'vectors', 'vectors_scan', 'vectors_memory'"


def fill_ours(store: SqliteStore, vectors: np.ndarray, scopes: int) -> None:
    now = datetime.now(UTC)
    for start in range(0, len(vectors), BATCH):
        part = range(start, min(start + BATCH, len(vectors)))
        entries = (
            Entry(
                Memory(
                    new_id(),
                    scope(at, scopes),
                    "general",
                    f"m{at}",
                    "",
                    now,
                    now,
                    content_hash=str(at),
                ),
                (vectors[at],),
            )
            for at in part
        )
        store.write(Batch(at=now, model=MODEL, add=tuple(entries)))


def scope(at: int, scopes: int) -> str:
    return f"project:{at % scopes}"


def fill_theirs(connection: apsw.Connection, vectors: np.ndarray) -> None:
    size = vectors.shape[1]
    connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
    connection.execute(
        f"CREATE VIRTUAL TABLE whole USING vec0(vector float[{size}] distance_metric=cosine)"
    )
    connection.execute(
        f"CREATE VIRTUAL TABLE split USING vec0(scope integer partition key, vector float[{size}] distance_metric=cosine)"
    )
    with connection:
        connection.executemany(
            "INSERT INTO whole(rowid, vector) VALUES (?, ?)",
            ((at, row.tobytes()) for at, row in enumerate(vectors)),
        )
        connection.executemany(
            "INSERT INTO split(rowid, scope, vector) VALUES (?, ?, ?)",
            ((at, at % TENTHS, row.tobytes()) for at, row in enumerate(vectors)),
        )
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def theirs(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.pragma("mmap_size", 4 << 30)  # its fastest setting: 59 ms instead of 88 at 100,000
    return connection


def nearest(store: SqliteStore, vector: np.ndarray, *scopes: str) -> list[int]:
    return [key for key, _ in store.nearest(vector, MODEL, Filter(scopes=scopes), K)]


def exact(vectors: np.ndarray, query: np.ndarray) -> np.ndarray:
    scores = vectors @ query
    best = np.argpartition(-scores, K)[:K]
    return best[np.argsort(-scores[best])]


def in_turns(
    ways: dict, queries: np.ndarray, rounds: int
) -> tuple[dict[str, np.ndarray], dict[str, list[list[int]]]]:
    """Milliseconds of every way for every question, the best of some rounds. All ways answer a question before the next is asked."""
    times = {name: np.full(len(queries), np.inf) for name in ways}
    answers: dict[str, list[list[int]]] = {name: [[]] * len(queries) for name in ways}
    for _ in range(rounds):
        for at, query in enumerate(queries):
            for name, way in ways.items():
                started = time.perf_counter()
                answers[name][at] = list(way(query))
                times[name][at] = min(times[name][at], (time.perf_counter() - started) * 1000)
    return times, answers


def recall(found: list[list[int]], truth: list[list[int]], at: int = 10) -> float:
    return float(
        np.mean([len(set(a[:at]) & set(b[:at])) / at for a, b in zip(found, truth, strict=True)])
    )


def elsewhere(action: str, path: Path, *rest: str) -> dict:
    """Another process: the first answer of a cold one, or a write while this one goes on searching."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, __file__, "--elsewhere", action, str(path), *rest],
        capture_output=True,
        text=True,
        check=True,
    )
    return {"ms": (time.perf_counter() - started) * 1000, **json.loads(done.stdout)}


def be_elsewhere(action: str, path: Path, vector: Path, *rest: str) -> dict:
    query = np.load(vector)
    if action == "theirs":
        theirs(path).execute(THEIRS.format("whole"), (query.tobytes(), K)).fetchall()
        return {}
    store, now = SqliteStore(path), datetime.now(UTC)
    if action == "add":
        memory = Memory(
            new_id(), "project:0", "general", "fresh", "", now, now, content_hash="fresh"
        )
        store.write(Batch(at=now, model=MODEL, add=(Entry(memory, (query,)),)))
        return {"id": memory.id, "key": store.keys([memory.id])[memory.id]}
    if action == "purge":
        store.write(Batch(at=now, purge=(rest[0],)))
        return {}
    started = time.perf_counter()
    nearest(store, query, "project:0")
    return {"load_ms": (time.perf_counter() - started) * 1000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--asked", type=int, default=60, help="questions")
    parser.add_argument(
        "--rounds", type=int, default=3, help="the best of this many counts for each question"
    )
    parser.add_argument(
        "--real",
        type=Path,
        help=".npz whose array V holds real vectors, to be perturbed to as many as --rows",
    )
    parser.add_argument("--queries", type=Path, help=".npy of real question vectors, for --real")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--elsewhere", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.elsewhere:
        action, path, vector, *rest = args.elsewhere
        print(json.dumps(be_elsewhere(action, Path(path), Path(vector), *rest)))
        return
    result: dict = {"machine": machine(), "rows": args.rows, "ways": {}}
    rng = np.random.default_rng(7)
    if args.real:
        real = np.load(args.real)["V"]
        vectors = perturbed(real, args.rows, rng)
        queries = (
            np.load(args.queries).astype(np.float32)
            if args.queries
            else perturbed(real, args.asked, rng)
        )
        queries = queries[rng.permutation(len(queries))[: args.asked]]
    else:
        vectors, queries = made(args.rows, args.dimensions, args.asked, rng)
    with tempfile.TemporaryDirectory(prefix="bethink-bench-") as folder:
        run(args, Path(folder), vectors, queries, result)
    if args.json:
        print(json.dumps(result, indent=1))


def run(
    args: argparse.Namespace, folder: Path, vectors: np.ndarray, queries: np.ndarray, result: dict
) -> None:
    shape = np.sort(queries @ vectors.T, axis=1)
    result["cosines"] = {
        "mean": round(float(shape.mean()), 3),
        **{f"nearest {k}": round(float(np.median(shape[:, -k])), 3) for k in (1, 10, 40)},
    }
    told(
        f"writing {len(vectors):,} × {vectors.shape[1]} vectors, four times; a question's cosines: {result['cosines']}"
    )
    np.save(folder / "query.npy", queries[0])
    one, ten, other = (
        SqliteStore(folder / "one.db"),
        SqliteStore(folder / "ten.db"),
        theirs(folder / "vec.db"),
    )
    fill_ours(one, vectors, 1)
    fill_ours(ten, vectors, TENTHS)
    fill_theirs(other, vectors)
    key = dict(one.run("SELECT key, cast(substr(content, 2) AS integer) FROM memories"))
    key_ten = dict(ten.run("SELECT key, cast(substr(content, 2) AS integer) FROM memories"))
    tenth = np.ascontiguousarray(vectors[3::TENTHS])
    every = [scope(at, TENTHS) for at in range(TENTHS)]
    ways = {
        "ours": lambda q: [key[found] for found in nearest(one, q, "project:0")],
        "ours, a tenth": lambda q: [key_ten[found] for found in nearest(ten, q, "project:3")],
        "ours, all of ten scopes": lambda q: [key_ten[found] for found in nearest(ten, q, *every)],
        "sqlite-vec": lambda q: [
            row[0] for row in other.execute(THEIRS.format("whole"), (q.tobytes(), K))
        ],
        "sqlite-vec, a tenth": lambda q: [
            row[0]
            for row in other.execute(THEIRS.format("split") + " AND scope = 3", (q.tobytes(), K))
        ],
        "numpy float32": lambda q: exact(vectors, q),
        "numpy float32, a tenth": lambda q: exact(tenth, q) * TENTHS + 3,
    }
    times, answers = in_turns(ways, queries, args.rounds)
    for name in ways:
        part = ", a tenth" if name.endswith("a tenth") else ""
        truth = answers["numpy float32" + part]
        result["ways"][name] = {
            "p50_ms": percentile(times[name], 0.5),
            "p95_ms": percentile(times[name], 0.95),
            "recall@10": recall(answers[name], truth),
            "recall@40": recall(answers[name], truth, K),
            "times_faster": percentile(times["sqlite-vec" + part], 0.5)
            / percentile(times[name], 0.5),
        }
    head = ("k = 40", "p50 ms", "p95 ms", "recall@10", "recall@40", "× sqlite-vec")
    table(
        [
            head,
            *(
                (name, *(f"{value:.3f}" if "@" in key else value for key, value in each.items()))
                for name, each in result["ways"].items()
            ),
        ]
    )
    # In turns with the others each finds its numbers far away in memory. Alone, as whoever searches one project again and again.
    alone = percentile(
        in_turns({"a tenth": lambda q: nearest(ten, q, "project:3")}, queries, 3)[0]["a tenth"], 0.5
    )
    found = fresh(folder, one, queries)
    result["more"] = {
        **cost(folder, one, len(vectors)),
        **found,
        "p50_alone_a_tenth_ms": alone,
        "a_tenth_of_the_whole": alone / found["p50_alone_ms"],
    }
    table(
        [("more", ""), *((name.replace("_", " "), value) for name, value in result["more"].items())]
    )


def cost(folder: Path, store: SqliteStore, count: int) -> dict:
    cold = [elsewhere("cold", folder / "one.db", str(folder / "query.npy")) for _ in range(3)]
    other = [elsewhere("theirs", folder / "vec.db", str(folder / "query.npy")) for _ in range(3)]
    return {
        "cold_process_to_first_answer_ms": min(each["ms"] for each in cold),
        "of_that_loading_vectors_ms": min(each["load_ms"] for each in cold),
        "sqlite_vec_cold_process_to_first_answer_ms": min(each["ms"] for each in other),
        "ram_bytes_per_vector": store.vectors.nbytes() / count,
        "disk_bytes_per_vector": store.run(
            f"SELECT sum(pgsize) FROM dbstat WHERE name IN ({TABLES})"
        )[0][0]
        / count,
        "sqlite_vec_disk_bytes_per_vector": theirs(folder / "vec.db")
        .execute("SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'whole%'")
        .get
        / count,
    }


def fresh(folder: Path, store: SqliteStore, queries: np.ndarray) -> dict:
    """Another process adds a vector equal to the question, then purges it; this one must see both in its next search."""

    def ask() -> tuple[list[int], float]:
        started = time.perf_counter()
        return nearest(store, queries[0], "project:0"), (time.perf_counter() - started) * 1000

    def usual() -> float:
        return percentile(
            in_turns({"ours": lambda q: nearest(store, q, "project:0")}, queries, 3)[0]["ours"], 0.5
        )

    before = usual()
    added = elsewhere("add", folder / "one.db", str(folder / "query.npy"))
    with_it, catching_up = ask()
    elsewhere("purge", folder / "one.db", str(folder / "query.npy"), added["id"])
    without_it, letting_go = ask()
    return {
        "added_elsewhere_is_found": with_it[0] == added["key"],
        "first_search_after_it_ms": catching_up,
        "purged_elsewhere_is_gone": added["key"] not in without_it,
        "first_search_after_that_ms": letting_go,
        "p50_alone_ms": before,
        "p50_alone_with_one_removed_ms": usual(),
    }


if __name__ == "__main__":
    main()
