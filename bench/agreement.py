"""How far PostgreSQL and SQLite agree: the same memories, the same questions, the same first five?

    python bench/agreement.py postgresql://postgres@127.0.0.1/bench ../shared/bench/scifact ../shared/bench/cosqa [--keep DIR] [--queries N]

Each set goes into SQLite through the ordinary write path and is then poured into a new tenant of the PostgreSQL database, vectors
byte for byte. Every question is asked of both by `Bethink.search`. Printed per set and mode: the share of questions with the same
first five in the same order, with the same five in any order, the same first one, and the milliseconds of both.
"""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime
from pathlib import Path

from common import machine, percentile, table, told

from bethink.api import Bethink
from bethink.bench import _enter, load, read
from bethink.config import Config
from bethink.config import load as settings
from bethink.embed import open_embedder
from bethink.model import Filter
from bethink.store.postgres import PostgresStore
from bethink.store.sqlite import SqliteStore
from bethink.store.transfer import PARTS
from bethink.text import new_id

DEPTH = 5


class Memory:
    """An embedder that makes the vector of a question once."""

    def __init__(self, inner) -> None:
        self._inner, self._known = inner, {}

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def query(self, text):
        if text not in self._known:
            self._known[text] = self._inner.query(text)
        return self._known[text]


def poured(source, target) -> None:
    for part in PARTS:
        for bundle in source.export(part):
            target.take(bundle, allow_purged=True)


def compared(name: str, mode: str, queries, one: Bethink, other: Bethink) -> list:
    exact = same = first = 0
    times: tuple[list[float], list[float]] = ([], [])
    asked = datetime.now(UTC)
    for query in queries:
        found = []
        for memory, spent in zip((one, other), times, strict=True):
            memory.clock = lambda: asked
            started = time.perf_counter()
            answer = memory.search(
                query["query"],
                mode=mode,
                limit=DEPTH,
                filter=Filter(scopes=(_enter(memory, query),)),
                related=False,
            )
            spent.append((time.perf_counter() - started) * 1000)
            found.append([hit.memory.id for hit in answer.hits])
        exact += found[0] == found[1]
        same += set(found[0]) == set(found[1])
        first += found[0][:1] == found[1][:1]
    total = len(queries)
    speeds = [percentile(spent, share) for spent in times for share in (0.5, 0.95)]
    return [name, mode, total, exact / total, same / total, first / total, *speeds]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("url")
    parser.add_argument("sets", nargs="+", type=Path)
    parser.add_argument(
        "--keep",
        type=Path,
        default=Path("/tmp/bethink-agreement"),
        help="where the SQLite databases stay for the next run",
    )
    parser.add_argument("--queries", type=int, default=10**9)
    parser.add_argument("--modes", default="hybrid,keyword,vector")
    args = parser.parse_args()
    machine()
    args.keep.mkdir(parents=True, exist_ok=True)
    config: Config = settings(None)
    embedder = Memory(open_embedder(config))
    rows = [
        [
            "set",
            "mode",
            "questions",
            "same order",
            "same five",
            "same first",
            "SQLite p50",
            "p95",
            "PostgreSQL p50",
            "p95",
        ]
    ]
    for folder in args.sets:
        dataset = read(folder)
        path = args.keep / f"{folder.name}.db"
        fresh = not path.exists()
        local = Bethink(
            config=config, store=SqliteStore(path), embedder=embedder, directory=args.keep
        )
        if fresh:
            load(local, dataset, folder, lambda label, done, total: told(f"{label} {done}/{total}"))
        server = PostgresStore(args.url, tenant=f"agreement {folder.name} {new_id()}")
        started = time.perf_counter()
        poured(local.store, server)
        told(f"{folder.name}: poured in {time.perf_counter() - started:.1f} s")
        remote = Bethink(config=config, store=server, embedder=embedder, directory=args.keep)
        queries = dataset.queries[: args.queries]
        for query in queries:
            embedder.query(" ".join(query["query"].split()))
        rows += [
            compared(folder.name, mode, queries, local, remote) for mode in args.modes.split(",")
        ]
        table([rows[0], *rows[-len(args.modes.split(",")) :]])
        local.close()
        remote.close()
    table(rows)


if __name__ == "__main__":
    main()
