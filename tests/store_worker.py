"""What the processes of test_concurrency.py do. Not a test file: it is imported by them, and early, so that each starts fast."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from bethink.api import Bethink


def opened(database: str) -> Bethink:
    """A Bethink on the database, with the settings of nobody."""
    folder = Path(database).parent
    os.environ.update(
        BETHINK_HOME=str(folder / "home"), BETHINK_EMBEDDING="hashing", BETHINK_OFFLINE="1"
    )
    return Bethink(database, directory=folder)


def text(rng: random.Random, mark: str) -> str:
    """Words that are near to no other text."""
    return f"{mark} " + " ".join(
        "".join(rng.choices("bcdfghklmnprstvwz", k=3))
        + "a"
        + "".join(rng.choices("bcdfgklmnprst", k=3))
        for _ in range(12)
    )


def add_and_search(database: str, seed: int, seconds: float, told) -> None:
    """Adds for some time, tells each id once it is durable, and looks for what was just added."""
    rng = random.Random(seed)
    number = 0
    try:
        with opened(database) as memory:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                words = text(rng, f"worker{seed}n{number}")
                outcome = memory.add(words)
                assert outcome.status == "added", outcome
                told.send(("added", outcome.id))
                if number % 3 == 0:
                    mode = ("hybrid", "vector", "keyword")[number // 3 % 3]
                    found = [hit.memory.id for hit in memory.search(words, mode=mode, limit=3).hits]
                    assert found[0] == outcome.id, (mode, found)
                if number % 7 == 3:
                    memory.vote(outcome.id)
                if number % 11 == 5:
                    memory.update(outcome.id, content=text(rng, f"changed{seed}n{number}"))
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


def create(database: str, seed: int, go, told) -> None:
    """Opens a database that does not exist yet at the same moment as others."""
    told.send("ready")
    go.wait()
    try:
        with opened(database) as memory:
            told.send(("added", memory.add(text(random.Random(seed), f"first{seed}")).id))
    except BaseException as error:  # noqa: BLE001
        told.send(("error", f"{type(error).__name__}: {error}"))


def hold_the_lock(database: str, go, told) -> None:
    """Holds the write lock until told to let go."""
    import apsw

    connection = apsw.Connection(database)
    connection.execute("BEGIN IMMEDIATE")
    told.send("held")
    go.wait()
    connection.execute("ROLLBACK")
    connection.close()
    told.send("released")
