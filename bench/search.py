"""A whole warm search against embedding its question, in turns, in one process.

    python bench/search.py [--memories 10000 100000] [--sets DIR …] [--keep DIR] [--json]

Builds one database per size, all memories in one project, and searches each from a fresh process. Every question is
embedded anew (the embedder's own memory of questions is emptied before each).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from common import embedded, fill, machine, percentile, resident, table, told
from texts import Teller, set_passages, set_questions

from bethink.api import Bethink
from bethink.model import Filter
from bethink.recall.query import parse

SCOPE = "project:bench"
WORDS = 20
STAGES = (
    "keyword",
    "nearest",
    "by_entity",
    "cosines",
    "statistics",
    "candidates",
    "load",
    "relations",
    "get",
)


def build(path: Path, count: int, sets: list[Path], really: int) -> dict:
    """A database of `count` short memories, unless it is there already."""
    notes = path.with_suffix(".json")
    if notes.exists():
        return json.loads(notes.read_text())
    texts = set_passages(sets, count, WORDS) if sets else Teller().memories(count)
    with Bethink(path, directory=path.parent) as memory:
        told(f"{count:,} memories: embedding {min(really, count):,} texts")
        vectors, seconds = embedded(texts, memory.embedder, np.random.default_rng(7), really)
        told(f"{count:,} memories: writing")
        writing = fill(memory.store, SCOPE, texts, vectors, memory.embedder.model)
        memory.store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    made = {
        "memories": len(texts),
        "really_embedded": min(really, len(texts)),
        "words": round(sum(len(text.split()) for text in texts) / len(texts), 1),
        "build_seconds": round(writing, 1),
        "embedding_seconds_per_memory": round(seconds, 4),
        "disk_bytes_per_memory": round(path.stat().st_size / len(texts)),
    }
    notes.write_text(json.dumps(made))
    return made


class Watched:
    """A store that adds up the time spent in each of its methods."""

    def __init__(self, store) -> None:
        self._store, self.spent = store, Counter()

    def __getattr__(self, name: str):
        found = getattr(self._store, name)
        if name not in STAGES:
            return found

        def watched(*args, **keywords):
            started = time.perf_counter()
            try:
                return found(*args, **keywords)
            finally:
                self.spent[name] += time.perf_counter() - started

        return watched


def measure(path: Path, questions: list[str], rounds: int) -> dict:
    """Runs in a process of its own, so that what the search needs can be told from what building needed."""
    with Bethink(path, directory=path.parent) as memory:
        embedder = memory.embedder
        filter = Filter(scopes=(SCOPE, "personal"), now=datetime.now(UTC))
        texts = [parse(question, datetime.now(UTC)).text for question in questions]
        embedder.query("warm up")
        before = resident()
        started = time.perf_counter()
        memory.search(questions[0], filter=filter)
        first, grown = time.perf_counter() - started, resident() - before
        asked = {
            "embedding": lambda at: embedder.query(texts[at]),
            "hybrid": lambda at: memory.search(questions[at], filter=filter),
            "keyword": lambda at: memory.search(questions[at], filter=filter, mode="keyword"),
        }
        for way in asked.values():
            for at in range(8):
                way(at)
        times = {
            name: np.zeros((2, rounds, len(questions))) for name in asked
        }  # by the wall and of the processor
        for turn in range(rounds):
            for at in range(len(questions)):
                for name, way in asked.items():
                    embedder._remembered.cache_clear()
                    started, worked = time.perf_counter(), time.process_time()
                    way(at)
                    times[name][:, turn, at] = (
                        (time.perf_counter() - started) * 1000,
                        (time.process_time() - worked) * 1000,
                    )
        for text in texts:
            embedder.query(
                text
            )  # from here on remembered: what follows is everything but the embedding
        memory.store = watched = Watched(memory.store)
        started = time.perf_counter()
        for at in range(len(questions)):
            asked["hybrid"](at)
        whole = time.perf_counter() - started
    stages = {
        name: round(spent / len(questions) * 1000, 3) for name, spent in watched.spent.most_common()
    }
    return {
        "first_search_ms": first * 1000,
        "ram_bytes_per_memory": grown,
        "ms": {name: each.tolist() for name, each in times.items()},
        "stages_ms": {
            **stages,
            "python": round(whole / len(questions) * 1000 - sum(stages.values()), 3),
        },
    }


def summary(times: np.ndarray) -> dict:
    """Percentiles over the questions: of each one's best round, which leaves out what else the machine does; of every measurement;
    and of the processor time, which no other process can disturb but which counts work done side by side twice."""
    kinds = {"best": times[0].min(axis=0), "all": times[0], "cpu": times[1].min(axis=0)}
    return {
        f"{kind}_{name}": percentile(each, share)
        for kind, each in kinds.items()
        for name, share in (("p50", 0.5), ("p95", 0.95))
    }


def shown(found: dict) -> None:
    print(
        f"{found['memories']:,} memories of {found['words']} words; {found['really_embedded']:,} vectors by the model, the others perturbed"
    )
    base = found["ways"]["embedding"]
    rows: list = [("ms", *(key.replace("_", " ") for key in base))]
    for name, way in found["ways"].items():
        rows.append((name, *way.values()))
        if way is not base:
            rows.append(("  ÷ embedding", *(way[key] / base[key] for key in base)))
    table(rows)
    stages = ", ".join(f"{name} {spent:.2f}" for name, spent in found["stages_ms"].items())
    print(f"stages of a hybrid search without the embedding, mean ms: {stages}")
    print(
        f"per memory: {found['disk_bytes_per_memory']:,} bytes on disk, {found['ram_bytes_per_memory']:,.0f} bytes of RAM;"
        f" first search {found['first_search_ms']:,.0f} ms; built in {found['build_seconds']:,.0f} s without embedding"
        f" ({found['embedding_seconds_per_memory'] * 1000:.1f} ms a memory)\n",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memories", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument(
        "--sets",
        type=Path,
        nargs="+",
        default=[],
        help="evaluation sets to take texts and questions from",
    )
    parser.add_argument("--questions", type=int, default=80)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--embed", type=int, default=3000, help="texts that the model really embeds"
    )
    parser.add_argument(
        "--keep", type=Path, help="folder in which the databases stay for the next run"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    questions = (
        set_questions(args.sets, args.questions)
        if args.sets
        else Teller(seed=11).questions(args.questions)
    )
    if args.measure:
        print(json.dumps(measure(args.measure, questions, args.rounds)))
        return
    result: dict = {"machine": machine(), "sizes": []}
    with tempfile.TemporaryDirectory(prefix="bethink-bench-") as temporary:
        folder = args.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for count in args.memories:
            path = folder / f"{'set' if args.sets else 'made'}-{count}.db"
            found = build(path, count, args.sets, args.embed)
            command = [sys.executable, __file__, *sys.argv[1:], "--measure", str(path)]
            measured = json.loads(
                subprocess.run(
                    command, capture_output=True, text=True, check=True, env=os.environ
                ).stdout
            )
            ways = {name: summary(np.asarray(each)) for name, each in measured.pop("ms").items()}
            found |= measured | {
                "ways": ways,
                "ram_bytes_per_memory": measured["ram_bytes_per_memory"] / found["memories"],
            }
            result["sizes"].append(found)
            if not args.json:
                shown(found)
    if args.json:
        print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
