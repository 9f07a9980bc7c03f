"""Writers on a PostgreSQL server that is killed under them, and the look at what is there afterwards.

python killing.py URL TENANT NUMBER     one writer: adds until its stdin ends, and tells each id once it is acknowledged
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import postgres
from stores import NOW, by_words, child_environment, everything, make

from bethink.embed import HashingEmbedder
from bethink.errors import BethinkError
from bethink.store.postgres import PostgresStore
from bethink.types import Batch, Entry, Relation

EMBEDDER = HashingEmbedder(384)  # of a size that has an index
SCOPE = "project:here"
PATIENCE = 180.0  # seconds for a server to come back on a busy machine


def text(writer: int, number: int) -> str:
    return f"Writer w{writer}x counted to n{writer}x{number}x and saw owls"


def write(url: str, tenant: str, writer: int) -> None:
    """Adds memories one after the other; every tenth replaces the one before it in the same transaction."""
    store = PostgresStore(url, tenant=tenant, user=f"writer-{writer}", timeout=60)
    number, last = 0, ""
    os.set_blocking(0, False)
    while not _ended():
        memory = make(text(writer, number))
        relate = (Relation(memory.id, last, "builds_on"),) if last and number % 10 == 0 else ()
        batch = Batch(
            at=NOW,
            add=(Entry(memory, EMBEDDER.documents([memory.content])[0], False),),
            model=EMBEDDER.model,
            relate=relate,
        )
        try:
            store.write(batch)
        except BethinkError as error:
            tell(unknown=memory.id, why=error.message)
        else:
            tell(acknowledged=memory.id, number=number)
            last = memory.id
        number += 1
    tell(ended=number)
    store.close()


def _ended() -> bool:
    """Whether whoever started this closed our stdin."""
    try:
        return os.read(0, 1) == b""
    except BlockingIOError:
        return False


def tell(**said: Any) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


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
    chance = random.Random(seed)
    server = postgres.Server(fsync="on", synchronous_commit="on", full_page_writes="on")
    try:
        PostgresStore(server.url, tenant="faults").close()
        running = [_started(server.url, number, folder) for number in range(writers)]
        gaps = []
        for _ in range(kills):
            _wait_for_more(running, folder)
            time.sleep(chance.uniform(*between))
            server.kill()
            killed = time.monotonic()
            server.start()
            _wait_for_more(running, folder)
            gaps.append(time.monotonic() - killed)
        for process in running:
            process.stdin.close()
        assert [process.wait(120) for process in running] == [0] * writers, "a writer failed"
        return _looked(server.url, kills, writers, folder, max(gaps))
    finally:
        server.stop()


def _started(url: str, number: int, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(Path(__file__)), url, "faults", str(number)]
    paths = os.pathsep.join((str(Path(__file__).parent), child_environment()["PYTHONPATH"]))
    with (folder / f"writer-{number}").open("wb") as out:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=out, env=child_environment(PYTHONPATH=paths)
        )


def _told(folder: Path, writers: int) -> list[dict[str, Any]]:
    lines = [
        line
        for number in range(writers)
        for line in (folder / f"writer-{number}").read_text().split("\n")[:-1]
    ]
    return [json.loads(line) for line in lines]


def _wait_for_more(running: list[subprocess.Popen[bytes]], folder: Path) -> None:
    """Until each writer was acknowledged something more."""
    before = [
        (folder / f"writer-{number}").read_text().count("acknowledged")
        for number in range(len(running))
    ]
    deadline = time.monotonic() + PATIENCE
    for number, process in enumerate(running):
        while (folder / f"writer-{number}").read_text().count("acknowledged") <= before[number]:
            assert process.poll() is None, f"writer {number} ended"
            assert time.monotonic() < deadline, f"writer {number} does not get on"
            time.sleep(0.02)


def _looked(url: str, kills: int, writers: int, folder: Path, longest: float) -> Result:
    told = _told(folder, writers)
    acknowledged = [said["acknowledged"] for said in told if "acknowledged" in said]
    unknown = [said["unknown"] for said in told if "unknown" in said]
    store = PostgresStore(url, tenant="faults")
    try:
        memories = list(store.scan(everything(SCOPE)))
        there = Counter(memory.content for memory in memories)
        known = {memory.id: memory.content for memory in memories}
        lost = [id for id in acknowledged if id not in known]
        doubled = [content for content, number in there.items() if number > 1]
        unfound = 0
        for id in acknowledged[:: max(1, len(acknowledged) // 60)]:
            if id in known:
                word = known[id].split()[4]
                near = store.nearest(
                    EMBEDDER.query(known[id]), EMBEDDER.model, everything(SCOPE), 3
                )
                keys = store.keys([id])
                unfound += by_words(store, word, everything(SCOPE)) != [id] or keys[id] not in [
                    key for key, _ in near.items
                ]
        problems = [problem.message for problem in store.check(deep=True)]
        return Result(
            kills,
            len(acknowledged),
            len(unknown),
            len(lost),
            len(doubled),
            unfound,
            problems,
            longest,
            writers,
        )
    finally:
        store.close()


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2], int(sys.argv[3]))
