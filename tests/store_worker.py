"""What the processes of test_faults.py do. Not a test file: it is imported by them, and early, so that each starts fast."""

import os
import random
import resource
import signal
import tempfile
import time
from pathlib import Path

import apsw

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from bethink.api import Bethink
from bethink.errors import BethinkError, StoreError
from bethink.model import Filter

NOBODY = 65534


def opened(database: str) -> Bethink:
    """A Bethink on the database, with the settings of nobody."""
    folder = Path(database).parent
    os.environ.update(BETHINK_HOME=f"{folder}/home", BETHINK_EMBEDDING="hashing")
    os.environ["BETHINK_OFFLINE"] = "1"
    return Bethink(database, directory=folder)


def text(rng: random.Random, mark: str, words: int = 12) -> str:
    """Words that are near to no other text."""
    parts = ["".join(rng.choices("bcdfgklmnprst", k=3)) for _ in range(2 * words)]
    return " ".join([mark, *map("a".join, zip(parts[::2], parts[1::2], strict=True))])


def use(memory: Bethink, rng: random.Random, mark: str, number: int) -> str:
    """Adds something, looks for it, and now and then votes for it or changes it."""
    words = text(rng, f"{mark}n{number}")
    outcome = memory.add(words)
    assert outcome.status == "added", outcome
    if number % 3 == 0:
        mode = ("hybrid", "vector", "keyword")[number // 3 % 3]
        found = [hit.memory.id for hit in memory.search(words, mode=mode, limit=3).hits]
        assert found[0] == outcome.id, (mode, found)
    if number % 7 == 3:
        memory.vote(outcome.id)
        memory.get(outcome.id)
    if number % 11 == 5:
        memory.update(outcome.id, content=text(rng, f"changed{mark}n{number}"))
    return outcome.id


def add_and_search(database: str, seed: int, seconds: float, go, told) -> None:
    """Opens a database that does not exist yet at the same moment as others, adds for some time, and tells each id once it is durable."""
    rng, number = random.Random(seed), 0
    told.send("ready")
    go.wait()
    try:
        with opened(database) as memory:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                told.send(("added", use(memory, rng, f"worker{seed}", number)))
                number += 1
        told.send(("done", number))
    except BaseException as error:  # noqa: BLE001 - told to the test, which fails with it
        told.send(("error", f"{type(error).__name__}: {error}"))


def add_until_killed(database: str, seed: int, told) -> None:
    rng = random.Random(seed)
    memory = opened(database)
    told.send("ready")
    while True:
        told.send(memory.add(text(rng, f"life{seed}")).id)


def hold_the_lock(database: str, go, told) -> None:
    """Holds the write lock until told to let go."""
    connection = apsw.Connection(database)
    connection.execute("BEGIN IMMEDIATE")
    told.send("held")
    go.wait()
    connection.execute("ROLLBACK")
    connection.close()
    told.send("released")


def fill_the_disk(database: str, told) -> None:
    """Adds until no file may grow any more, and once more when they may."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    rng, acknowledged, said = random.Random(1), set(), []
    with opened(database) as memory:
        early = memory.add("an early memory about owls")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        room = max(Path(f"{database}{suffix}").stat().st_size for suffix in ("", "-wal")) + 200_000
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
        for number in range(200):
            try:
                added = memory.add(text(rng, f"later{number}", 300), dedup=False)
                acknowledged.add(added.id)
            except StoreError as error:
                said.append((type(error).__name__, error.message, error.hint))
                if len(said) == 3:
                    break
        found = memory.search("an early memory about owls").hits
        inside = {memory.id for memory in memory.export()} - {early.id}
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        again = memory.add("there is room again").status
        problems = [problem.message for problem in memory.check(deep=True)]
    parts = {"found": len(found), "again": again, "problems": problems, "said": said}
    parts |= {"lost": list(acknowledged - inside), "extra": list(inside - acknowledged)}
    told.send(parts)


def use_as_nobody(database: str, told) -> None:
    """Reads and writes a database of somebody else's."""
    with tempfile.TemporaryDirectory() as folder, opened(f"{folder}/warm.db") as memory:
        memory.add("all modules are loaded before the rights are given up")
        memory.search("modules"), memory.list(), memory.check(True), memory.stats()
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    said = {}

    def attempt(name, action):
        try:
            said[name] = ["ok", action()]
        except BethinkError as error:
            said[name] = [type(error).__name__, error.message, error.hint]

    try:
        memory = Bethink(database, directory="/")
    except BethinkError as error:
        said["open"] = [type(error).__name__, error.message, error.hint]
    else:
        all = Filter(scopes=tuple(memory.store.scopes()))
        attempt("list", lambda: [found.content for found in memory.list(filter=all)])
        hits = lambda: memory.search("owl", filter=all).hits  # noqa: E731
        attempt("search", lambda: [hit.memory.content for hit in hits()])
        attempt("check", lambda: [problem.message for problem in memory.check(True)])
        attempt("add", lambda: memory.add("something new").status)
        memory.close()
    told.send(said)
