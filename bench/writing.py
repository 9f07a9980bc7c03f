"""What a write costs beyond embedding its text and making one commit durable.

    python bench/writing.py [--adds 200] [--passages 2000] [--memories 10000] [--sets DIR …] [--json]

`add` is measured in turns with embedding the same text and committing it to a bare table with `synchronous=FULL`; a bulk
load in turns with embedding the same passages, 100 at a time.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path

import apsw
import numpy as np
from common import embedded, fill, machine, percentile, table, timed, told
from texts import Teller, set_passages

from bethink.api import Bethink
from bethink.ingest import pipeline
from bethink.model import Passage, Source

REALLY_EMBEDDED = 300
CHUNK = 100
# Stage → the function of the recipe that does it. The model works meanwhile: waiting for it is part of "the rest".
STAGES = {
    "redact": "clean",
    "extract": "extract",
    "keywords": "keywords",
    "cache": "begun",
    "neighbours": "verdicts_of",
}


class Stages:
    """Wraps the stages of the writing recipe in clocks while it is entered."""

    def __init__(self, memory: Bethink) -> None:
        self.memory, self.spent, self.kept = memory, Counter(), {}

    def __enter__(self) -> Counter:
        self.kept = {function: getattr(pipeline, function) for function in STAGES.values()}
        for stage, function in STAGES.items():
            setattr(pipeline, function, self.clocked(stage, self.kept[function]))
        self.memory.store.write = self.clocked("write", self.memory.store.write)
        return self.spent

    def clocked(self, stage: str, function):
        def run(*args, **keywords):
            started = time.perf_counter()
            try:
                return function(*args, **keywords)
            finally:
                self.spent[stage] += time.perf_counter() - started

        return run

    def __exit__(self, *_: object) -> None:
        for function, kept in self.kept.items():
            setattr(pipeline, function, kept)
        del self.memory.store.write


def bare(folder: Path):
    """The least a durable write can be: one row in one table, one fsync."""
    connection = apsw.Connection(str(folder / "bare.db"))
    connection.pragma("journal_mode", "WAL")
    connection.pragma("synchronous", "FULL")
    connection.execute("CREATE TABLE memories(key INTEGER PRIMARY KEY, content TEXT)")

    def commit(text: str) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO memories(content) VALUES (?)", (text,))
        connection.execute("COMMIT")

    return commit


def adding(memory: Bethink, texts: list[str], folder: Path) -> dict:
    commit, embedder = bare(folder), memory.embedder
    for text in texts[:10]:
        memory.add(text)
        commit(text)
        embedder.documents([text])
    texts = texts[10:]
    ours, theirs, fsync, statuses = [], [], [], Counter()
    with Stages(memory) as spent:
        for at, text in enumerate(texts):
            for which in (0, 1) if at % 2 else (1, 0):
                if which:
                    theirs.append(timed(lambda: embedder.documents([text])))  # noqa: B023 - called at once
                    fsync.append(timed(lambda: commit(text)))  # noqa: B023
                else:
                    started = time.perf_counter()
                    statuses[memory.add(text).status] += 1
                    ours.append(time.perf_counter() - started)
    both = [one + other for one, other in zip(theirs, fsync, strict=True)]
    return {
        "texts": len(texts),
        **statuses,
        "add_ms": summary(ours),
        "embedding_and_commit_ms": summary(both),
        "commit_ms": summary(fsync),
        "ratio_p50": percentile(ours, 0.5) / percentile(both, 0.5),
        "ratio_p95": percentile(ours, 0.95) / percentile(both, 0.95),
        "ratio_of_pairs": statistics.median(
            one / other for one, other in zip(ours, both, strict=True)
        ),
        "stages_ms": stages(spent, sum(ours), len(texts)),
    }


def loading(memory: Bethink, texts: list[str]) -> dict:
    """The ordinary way in for a document's passages, 100 at a time, in turns with the embedder on its own."""
    passages = [Passage(text, position=at) for at, text in enumerate(texts)]
    ours, theirs = [], []
    with Stages(memory) as spent:
        for at, start in enumerate(range(0, len(texts), CHUNK)):
            part = slice(start, start + CHUNK)
            for which in (0, 1) if at % 2 else (1, 0):
                if which:
                    theirs.append(timed(lambda: memory.embedder.documents(texts[part])))  # noqa: B023
                else:
                    ours.append(
                        timed(
                            lambda: memory.ingest(
                                [(Source(f"doc-{at}.md", "markdown"), passages[part])]  # noqa: B023
                            )
                        )
                    )
    return {
        "passages": len(texts),
        "words": round(statistics.mean(len(text.split()) for text in texts), 1),
        "per_second": len(texts) / sum(ours),
        "embedder_alone_per_second": len(texts) / sum(theirs),
        "ratio": sum(ours) / sum(theirs),
        "ratio_of_pairs": statistics.median(
            one / other for one, other in zip(ours, theirs, strict=True)
        ),
        "stages_ms": stages(spent, sum(ours), len(texts)),
    }


def summary(times: list[float]) -> dict:
    return {"p50": percentile(times, 0.5) * 1000, "p95": percentile(times, 0.95) * 1000}


def stages(spent: Counter, whole: float, count: int) -> dict:
    found = {name: spent[name] / count * 1000 for name in (*STAGES, "write")}
    return {**found, "the rest": whole / count * 1000 - sum(found.values())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--adds", type=int, default=200)
    parser.add_argument("--passages", type=int, default=2000)
    parser.add_argument("--memories", type=int, default=10_000, help="how many are there before")
    parser.add_argument(
        "--sets", type=Path, nargs="+", default=[], help="evaluation sets to take the texts from"
    )
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    result: dict = {"machine": machine()}
    if args.sets:
        before, short = (
            set_passages(args.sets, args.memories, 20),
            set_passages(args.sets, args.adds + 10, 20, seed=11),
        )
        long = set_passages(args.sets, args.passages, 150, seed=13)
    else:
        before, short = Teller().memories(args.memories), Teller(seed=11).memories(args.adds + 10)
        long = Teller(seed=13).passages(args.passages)
    with tempfile.TemporaryDirectory(prefix="bethink-bench-") as temporary:
        folder = Path(temporary)
        with Bethink(folder / "memory.db", directory=folder) as memory:
            if before:
                told(
                    f"writing {len(before):,} memories first; {REALLY_EMBEDDED} vectors by the model, the others perturbed"
                )
                vectors, _ = embedded(
                    before, memory.embedder, np.random.default_rng(7), REALLY_EMBEDDED
                )
                fill(memory.store, memory.scope, before, vectors, memory.embedder.model)
            result["add"] = adding(memory, short, folder)
            told(f"loading {len(long):,} passages")
            result["bulk"] = loading(memory, long)
    if args.json:
        print(json.dumps(result, indent=1))
        return
    add, bulk = result["add"], result["bulk"]
    names = {
        "add_ms": "add",
        "embedding_and_commit_ms": "embedding and one commit",
        "commit_ms": "of that the commit",
    }
    rows = [
        (f"ms, {add['texts']} texts, {add.get('added', 0)} added", "p50", "p95"),
        *((name, *add[key].values()) for key, name in names.items()),
    ]
    table(
        [
            *rows,
            ("ratio", add["ratio_p50"], add["ratio_p95"]),
            ("ratio, median of pairs", add["ratio_of_pairs"], ""),
        ]
    )
    speeds = ("ingest", bulk["per_second"]), ("embedder alone", bulk["embedder_alone_per_second"])
    ratios = ("ratio of times", bulk["ratio"]), ("ratio, median of chunks", bulk["ratio_of_pairs"])
    table(
        [(f"{bulk['passages']:,} passages of {bulk['words']} words", "a second"), *speeds, *ratios]
    )
    table(
        [
            ("ms a text", "add", "bulk"),
            *((name, each, bulk["stages_ms"][name]) for name, each in add["stages_ms"].items()),
        ]
    )


if __name__ == "__main__":
    main()
