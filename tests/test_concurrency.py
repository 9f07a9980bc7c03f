"""Several processes and threads on one database, and processes killed while they write.

The numbers are small by default. The promise is 8 processes for 30 seconds and 50 kills:

    BETHINK_TEST_PROCESSES=8 BETHINK_TEST_SECONDS=30 BETHINK_TEST_KILLS=50 pytest tests/test_concurrency.py
"""

from __future__ import annotations

import multiprocessing
import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import store_worker
from stores import everything

SECONDS = float(os.environ.get("BETHINK_TEST_SECONDS", "1.0"))
PROCESSES = int(os.environ.get("BETHINK_TEST_PROCESSES", "4"))
KILLS = int(os.environ.get("BETHINK_TEST_KILLS", "4"))
# Processes start from a clean one that has only imported what they need, not as copies of this one and its open files.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["store_worker"])


@pytest.fixture
def database(offline, tmp_path) -> str:
    return str(tmp_path / "memory.db")


class Worker:
    """A process and what it tells."""

    def __init__(self, action, database: str, *arguments) -> None:
        self.ear, mouth = CONTEXT.Pipe(duplex=False)
        self.process = CONTEXT.Process(
            target=action, args=(database, *arguments, mouth), daemon=True
        )
        self.process.start()
        mouth.close()

    def hear(self):
        assert self.ear.poll(60), "the process said nothing for a minute"
        return self.ear.recv()

    def rest(self) -> list:
        """All that it still tells, up to its end."""
        heard = []
        with suppress(EOFError):
            while self.ear.poll(SECONDS + 90):
                heard.append(self.ear.recv())
        self.process.join(30)
        assert self.process.exitcode is not None
        self.process.close()
        self.ear.close()
        return heard


def integrity(database: str, acknowledged: set[str]) -> None:
    """Nothing lost, and every part agrees with every other."""
    with store_worker.opened(database) as memory:
        stored = {found.id for found in memory.store.scan(everything(*memory.every_scope()))}
        assert not acknowledged - stored, "acknowledged memories are lost"
        rows, indexed, embedded, counted = memory.store.connection.execute(
            "SELECT (SELECT count(*) FROM memories), (SELECT count(*) FROM memories_fts_docsize),"
            " (SELECT count(DISTINCT memory) FROM vectors), (SELECT sum(memories) FROM scopes)"
        ).get
        assert rows == indexed == embedded == counted == len(stored)
        assert memory.check(deep=True) == []


@pytest.mark.timeout(120 + 3 * SECONDS)
def test_processes_that_add_and_search_lose_nothing(database):
    workers = [
        Worker(store_worker.add_and_search, database, seed, SECONDS) for seed in range(PROCESSES)
    ]
    heard = [worker.rest() for worker in workers]
    assert [message for messages in heard for message in messages if message[0] == "error"] == []
    assert all(messages[-1][0] == "done" for messages in heard)
    each = [{id for what, id in messages if what == "added"} for messages in heard]
    assert all(each), "every process got its turn"
    acknowledged = set().union(*each)
    assert len(acknowledged) == sum(map(len, each))
    integrity(database, acknowledged)
    assert Path(f"{database}-wal").exists() is False  # the last to close cleans up


def test_processes_that_create_the_database_at_once(database):
    go = CONTEXT.Event()
    workers = [Worker(store_worker.create, database, seed, go) for seed in range(max(4, PROCESSES))]
    for worker in workers:
        assert worker.hear() == "ready"
    go.set()
    heard = [message for worker in workers for message in worker.rest()]
    assert {what for what, _ in heard} == {"added"}, heard
    integrity(database, {id for _, id in heard})


@pytest.mark.timeout(60 + 5 * KILLS)
def test_a_process_killed_while_writing_loses_nothing_it_acknowledged(database):
    rng = random.Random(11)
    acknowledged: set[str] = set()
    for kill in range(KILLS):
        worker = Worker(store_worker.add_until_killed, database, kill)
        assert worker.hear() == "ready"
        wanted = rng.randrange(0, 12)
        heard = [worker.hear() for _ in range(wanted)]
        worker.ear.poll(rng.uniform(0, 0.01))  # then somewhere inside the next write
        worker.process.kill()
        acknowledged |= {*heard, *worker.rest()}
    assert len(acknowledged) >= KILLS
    integrity(database, acknowledged)


def test_one_memory_used_by_eight_threads(database):
    start = threading.Barrier(8)
    with store_worker.opened(database) as memory, ThreadPoolExecutor(8) as pool:

        def work(seed: int) -> set[str]:
            rng, kept = random.Random(seed), set()
            start.wait()
            for n in range(12):
                words = store_worker.text(rng, f"thread{seed}n{n}")
                id = memory.add(words).id
                mode = ("hybrid", "vector", "keyword")[n % 3]
                assert memory.search(words, mode=mode, limit=1).hits[0].memory.id == id, mode
                if n % 4 == 1:
                    memory.vote(id)
                    memory.get(id)
                if n % 6 == 5:
                    memory.forget(id, purge=True)
                else:
                    kept.add(id)
            return kept

        acknowledged = set().union(*pool.map(work, range(8)))
    assert len(acknowledged) == 80
    integrity(database, acknowledged)
