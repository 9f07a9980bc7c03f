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
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    from killing import kill_and_look

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
