"""Many clients of one HTTP server at once, reading and writing: how fast, and whether anything fails or is lost.

    python bench/serving.py [--clients 16] [--seconds 60] [--memories 2000] [--json]

Starts `bethink serve` in a process of its own with the embedding model of the settings. Each client is a thread with one
connection: 40 of 100 calls add a statement, 30 search, 10 recall, 10 read one memory, 5 vote, 5 update. At the end everything
that the server said it had stored must come out of an export, with the votes and texts of the last answer. Not named `http.py`:
the standard library has a package of that name, and scripts here see this folder first.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
from common import log, machine, percentile, table
from texts import Teller

from bethink.app.http.security import Caller, Tokens
from bethink.config import data_directory

ACTIONS = ("add", "search", "recall", "get", "vote", "update")
WEIGHTS = (40, 30, 10, 10, 5, 5)
V1 = "/api/v1"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--memories", type=int, default=2000, help="stored before it begins")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    found = machine()
    with tempfile.TemporaryDirectory() as folder:
        process, url, token = start(Path(folder))
        try:
            fill(url, token, args.memories)
            result = measure(url, token, args.clients, args.seconds)
            result |= {"server_bytes": resident(process.pid)}
        finally:
            process.send_signal(signal.SIGTERM)
            result_code = process.wait(30)
    shown = {**found, **result, "exit_code": result_code}
    if args.json:
        print(json.dumps(shown, indent=2))
    else:
        show(shown)


def start(folder: Path) -> tuple[subprocess.Popen, str, str]:
    """The server on a database of its own. The model stays where the settings have it."""
    (folder / "project").mkdir()
    command = [
        sys.executable,
        "-m",
        "bethink",
        "serve",
        "--port",
        "0",
        "--json",
        "--quiet",
        "--database",
        str(folder / "memory.db"),
    ]
    process = subprocess.Popen(
        command, cwd=folder / "project", stdout=subprocess.PIPE, text=True, env=os.environ
    )
    url = json.loads(process.stdout.readline())["url"]
    known, now = Tokens(data_directory() / "tokens.json"), datetime.now(UTC)
    about = {"created": now, "expires": now + timedelta(hours=1)}
    return process, url, known.create(Caller("", f"bench-{process.pid}", **about))[0]


def connected(url: str, token: str) -> httpx2.Client:
    return httpx2.Client(
        base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=120, trust_env=False
    )


def fill(url: str, token: str, count: int) -> None:
    teller = Teller(1)
    with connected(url, token) as client:
        for begin in range(0, count, 500):
            statements = [
                {"content": teller.memories(1)[0]} for _ in range(min(500, count - begin))
            ]
            client.post(
                f"{V1}/memories", json={"memories": statements, "dedup": False}
            ).raise_for_status()
    log(f"{count:,} memories stored; now the clients")


class Client(threading.Thread):
    """One client: what it did, how long each call took, and what it must find again."""

    def __init__(self, number: int, url: str, token: str, until: float) -> None:
        super().__init__()
        self.number, self.until = number, until
        self.client = connected(url, token)
        self.chance, self.teller = random.Random(number), Teller(100 + number)
        self.times: dict[str, list[float]] = defaultdict(list)
        self.errors: Counter = Counter()
        self.kept: dict[str, tuple[str, float]] = {}  # id → text, votes

    def run(self) -> None:
        with self.client:
            while time.monotonic() < self.until:
                action = self.chance.choices(ACTIONS, WEIGHTS)[0] if self.kept else "add"
                started = time.perf_counter()
                try:
                    response = getattr(self, action)()
                    if response.status_code >= 300:
                        self.errors[f"{action} {response.status_code}"] += 1
                except httpx2.HTTPError as error:
                    self.errors[f"{action} {type(error).__name__}"] += 1
                self.times[action].append(time.perf_counter() - started)

    def add(self) -> httpx2.Response:
        text = (
            f"{self.teller.memories(1)[0]} (client {self.number}, {self.chance.randrange(10**9)})"
        )
        response = self.client.post(
            f"{V1}/memories", json={"memories": [{"content": text}], "dedup": False}
        )
        if response.status_code == 201:
            self.kept[response.json()["outcomes"][0]["id"]] = (text, 0.0)
        return response

    def search(self) -> httpx2.Response:
        return self.client.get(f"{V1}/search", params={"query": self.teller.questions(1)[0]})

    def recall(self) -> httpx2.Response:
        return self.client.get(f"{V1}/recall", params={"query": self.teller.questions(1)[0]})

    def get(self) -> httpx2.Response:
        return self.client.get(f"{V1}/memories/{self.chance.choice(list(self.kept))}")

    def vote(self) -> httpx2.Response:
        id = self.chance.choice(list(self.kept))
        response = self.client.post(f"{V1}/memories/{id}/votes", json={"value": 1})
        if response.status_code == 200:
            text, votes = self.kept[id]
            self.kept[id] = (text, votes + 1)
        return response

    def update(self) -> httpx2.Response:
        id = self.chance.choice(list(self.kept))
        text = f"{self.teller.memories(1)[0]} (changed by {self.number}, {self.chance.randrange(10**9)})"
        response = self.client.patch(f"{V1}/memories/{id}", json={"content": text})
        if response.status_code == 200:
            self.kept[id] = (text, self.kept[id][1])
        return response


def measure(url: str, token: str, count: int, seconds: float) -> dict:
    until = time.monotonic() + seconds
    clients = [Client(number, url, token, until) for number in range(count)]
    started = time.monotonic()
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    took = time.monotonic() - started
    with connected(url, token) as owner:
        lines = map(json.loads, owner.get(f"{V1}/export").text.splitlines())
        stored = {line["id"]: (line["content"], line["usefulness"]) for line in lines}
    wanted = {id: kept for client in clients for id, kept in client.kept.items()}
    times = {
        action: [one for client in clients for one in client.times[action]] for action in ACTIONS
    }
    return {
        "clients": count,
        "seconds": round(took, 1),
        "calls": sum(map(len, times.values())),
        "calls_per_second": round(sum(map(len, times.values())) / took, 1),
        "errors": dict(sum((client.errors for client in clients), Counter())),
        "acknowledged": len(wanted),
        "lost": sum(id not in stored for id in wanted),
        "different": sum(id in stored and stored[id] != kept for id, kept in wanted.items()),
        "milliseconds": {
            action: {
                "calls": len(found),
                "p50": percentile(found, 0.5) * 1000,
                "p95": percentile(found, 0.95) * 1000,
                "max": max(found) * 1000,
            }
            for action, found in times.items()
            if found
        },
    }


def resident(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf(
            "SC_PAGE_SIZE"
        )
    except OSError:
        return 0


def show(found: dict) -> None:
    table(
        [
            ("call", "number", "p50 ms", "p95 ms", "max ms"),
            *(
                (action, f"{row['calls']:,}", row["p50"], row["p95"], row["max"])
                for action, row in found["milliseconds"].items()
            ),
        ]
    )
    print(
        f"{found['clients']} clients, {found['seconds']} s: {found['calls']:,} calls, {found['calls_per_second']} a second"
    )
    print(f"errors: {found['errors'] or 'none'}")
    print(
        f"acknowledged {found['acknowledged']:,} memories; lost {found['lost']}, different {found['different']}"
    )
    print(f"server: {found['server_bytes'] / 1e6:.0f} MB, exit code {found['exit_code']}")


if __name__ == "__main__":
    main()
