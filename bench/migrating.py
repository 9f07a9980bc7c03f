"""Moves a memory from SQLite to PostgreSQL and back into another SQLite file, and compares the three by number and digest.

python bench/migrating.py --memories 100000
python bench/migrating.py --from memory.db --url postgresql://…/empty
"""

import argparse
import json
import random
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import scale
from common import log, machine, made
from texts import Teller

from bethink.model import Batch, Change, Filter, Relation
from bethink.store import transfer as migration
from bethink.store.postgres import PostgresStore
from bethink.store.sqlite import SqliteStore


def filled(path: Path, memories: int) -> None:
    """A database with memories of a hundred projects, some of which were changed, voted for, forgotten and replaced."""
    place = scale.Place("sqlite", str(path))
    teller = Teller()
    scale.grow(
        place,
        teller.memories(scale.VARIETY),
        made(scale.VARIETY, scale.DIMENSIONS, 1, np.random.default_rng(7))[0],
        100,
        0,
        memories,
    )
    dice, now = random.Random(5), datetime.now(UTC)
    ids = [
        memory.id for memory in place.base.scan(Filter(scopes=tuple(map(scale.scope, range(100)))))
    ]
    for id in dice.sample(ids, len(ids) // 20):
        other = dice.choice(ids)
        changes = (
            Change(id, "update", {"importance": dice.random() * 10}),
            Change(id, "vote", {"vote": 1.0}),
        )
        relate = (Relation(id, other, "relates_to"),) if id != other else ()
        place.base.write(Batch(at=now, actor="bench", change=changes, relate=relate, access=(id,)))
    place.base.write(
        Batch(
            at=now,
            actor="bench",
            change=tuple(
                Change(id, "forget", {"deleted_at": now}) for id in dice.sample(ids, len(ids) // 50)
            ),
        )
    )
    place.base.write(Batch(at=now, actor="bench", purge=tuple(dice.sample(ids, 20))))
    place.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument(
        "--from", dest="source", help="a database to move, instead of a made-up one"
    )
    parser.add_argument("--url", help="an empty PostgreSQL database; otherwise a server is started")
    args = parser.parse_args()
    machine()
    args.store = "postgres"
    with tempfile.TemporaryDirectory() as folder, scale.place(args, Path(folder)) as url:
        path = Path(args.source or Path(folder) / "source.db")
        if not args.source:
            filled(path, args.memories)
            log("filled")
        source, there, back = (
            SqliteStore(path),
            PostgresStore(url, tenant="moved"),
            SqliteStore(Path(folder) / "back.db"),
        )
        seconds, found = [], []
        for one, other, name in ((source, there, "there"), (there, back, "back")):
            started = time.perf_counter()
            found.append(
                migration.migrate(
                    one,
                    other,
                    name,
                    progress=lambda done, total: log(f"  {done:,}") if done % 20_000 == 0 else None,
                )
            )
            seconds.append(time.perf_counter() - started)
            log(f"{name}: {seconds[-1]:.0f} s")
        # Each migration ends with a round that finds both sides the same.
        whole = found[1].parts
        same = {part: tally.number for part, tally in whole.items()} == {
            part: tally.number for part, tally in found[0].parts.items()
        }
        problems = [problem.message for problem in back.check(deep=True)]
        for store in (source, there, back):
            store.close()
    parts = {part: [tally.number, tally.digest] for part, tally in whole.items()}
    print(
        json.dumps(
            {
                "identical": same,
                "problems": problems,
                "there_seconds": round(seconds[0]),
                "back_seconds": round(seconds[1]),
                "parts": parts,
            },
            indent=1,
        )
    )
    return 0 if same and not problems else 1


if __name__ == "__main__":
    sys.exit(main())
