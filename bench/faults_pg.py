"""Kills a PostgreSQL server again and again while several processes write to it, then looks for everything that was acknowledged.

    python bench/faults_pg.py                      20 kills, 4 writers
    python bench/faults_pg.py --kills 100 --writers 8 --seed 3

A server of its own is started with fsync on; every process of it is killed with SIGKILL at a random moment and started again. Writers
notice nothing but a pause. Afterwards each acknowledged memory must be there once, be found by its words (GIN) and by its vector (HNSW),
and `check --deep` must find nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import postgres
from stores import NOW, by_words, child_environment, everything, make

from bethink.embed.hashing import HashingEmbedder
from bethink.errors import BethinkError
from bethink.model import Batch, Entry, Relation
from bethink.store.postgres import PostgresStore

EMBEDDER = HashingEmbedder(384)  # of a size that has an index
ALL = everything("project:here")
PATIENCE = 180.0  # seconds for a server to come back on a busy machine


def write(url: str, writer: str, file: str) -> None:
    """Adds memories one after the other; every tenth is related to the one before it in the same transaction."""
    store = PostgresStore(url, tenant="faults", user=f"writer-{writer}", timeout=60)
    number, last = 0, ""
    os.set_blocking(0, False)
    with Path(file).open("w", buffering=1) as log:
        while not _ended():
            memory = make(f"Writer w{writer}x counted to n{writer}x{number}x and saw owls")
            relate = (Relation(memory.id, last, "builds_on"),) if last and number % 10 == 0 else ()
            entry = Entry(memory, EMBEDDER.documents([memory.content])[0], False)
            try:
                store.write(Batch(at=NOW, add=(entry,), model=EMBEDDER.model, relate=relate))
                log.write(f"acknowledged {memory.id}\n")
                last = memory.id
            except BethinkError:
                log.write(f"unknown {memory.id}\n")
            number += 1
    store.close()


def _ended() -> bool:
    """Whether whoever started this closed our stdin."""
    try:
        return os.read(0, 1) == b""
    except BlockingIOError:
        return False


class Result(NamedTuple):
    kills: int
    acknowledged: int
    unknown: int
    lost: int
    doubled: int
    unfound: int  # acknowledged, and not found by their words or their vectors
    problems: list[str]
    longest: float  # seconds from a kill to the next acknowledged write of any writer
    writers: int


def kill_and_look(
    kills: int, writers: int, seed: int, folder: Path, between: tuple[float, float] = (0.4, 1.5)
) -> Result:
    """Writers on a server of their own that is killed again and again; then everything that was acknowledged is looked for."""
    chance, gaps = random.Random(seed), []
    server = postgres.Server(fsync="on", synchronous_commit="on", full_page_writes="on")
    try:
        PostgresStore(server.url, tenant="faults").close()
        running = {
            folder / f"{number}": _start(server.url, folder, number) for number in range(writers)
        }
        for _ in range(kills):
            _wait_for_more(running)
            time.sleep(chance.uniform(*between))
            server.kill()
            killed = time.monotonic()
            server.start()
            _wait_for_more(running)
            gaps.append(time.monotonic() - killed)
        for process in running.values():
            process.stdin.close()
        assert not any(process.wait(120) for process in running.values()), "a writer failed"
        log = [line.split() for file in running for line in file.read_text().splitlines()]
        acknowledged = [id for what, id in log if what == "acknowledged"]
        found = _look(server.url, acknowledged)
        unknown = len(log) - len(acknowledged)
        return Result(kills, len(acknowledged), unknown, *found, max(gaps), writers)
    finally:
        server.stop()


def _start(url: str, folder: Path, number: int) -> subprocess.Popen[bytes]:
    file = folder / f"{number}"
    file.touch()
    command = [sys.executable, __file__, "--write", url, str(number), str(file)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, env=child_environment())


def _wait_for_more(running: dict[Path, subprocess.Popen[bytes]]) -> None:
    """Until each writer was acknowledged something more."""
    before = {file: file.read_text().count("acknowledged") for file in running}
    deadline = time.monotonic() + PATIENCE
    for file, process in running.items():
        while file.read_text().count("acknowledged") <= before[file]:
            assert process.poll() is None, f"writer {file.name} ended"
            assert time.monotonic() < deadline, f"writer {file.name} does not get on"
            time.sleep(0.02)


def _look(url: str, acknowledged: list[str]) -> tuple[int, int, int, list[str]]:
    """How many are lost, doubled and not found, and what the check says."""
    store = PostgresStore(url, tenant="faults")
    try:
        known = {memory.id: memory.content for memory in store.scan(ALL)}
        unfound = 0
        for id in acknowledged[:: max(1, len(acknowledged) // 60)]:
            if id in known:
                near = store.nearest(EMBEDDER.query(known[id]), EMBEDDER.model, ALL, 3).items
                by_vector = store.keys([id])[id] in [key for key, _ in near]
                unfound += not by_vector or by_words(store, known[id].split()[4], ALL) != [id]
        lost = sum(id not in known for id in acknowledged)
        doubled = sum(number > 1 for number in Counter(known.values()).values())
        return lost, doubled, unfound, [problem.message for problem in store.check(deep=True)]
    finally:
        store.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", nargs=3, metavar=("URL", "NUMBER", "FILE"), help="be a writer")
    args = parser.parse_args()
    if args.write:
        write(*args.write)
        return 0
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = kill_and_look(args.kills, args.writers, args.seed, Path(folder))
    print(
        json.dumps(
            {
                **found._asdict(),
                "longest": round(found.longest, 2),
                "seconds": round(time.monotonic() - started, 1),
            },
            indent=1,
        )
    )
    return 1 if found.lost or found.doubled or found.unfound or found.problems else 0


if __name__ == "__main__":
    sys.exit(main())
