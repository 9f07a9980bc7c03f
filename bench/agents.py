"""What the MCP server adds: its cold start against an empty server of the same SDK, and a warm search over stdio against the library's.

    python bench/agents.py [--starts 12] [--memories 10000] [--questions 40] [--rounds 5] [--json]

A start is measured from the birth of the process to the answer to `tools/list`, as a host waits for it, with the empty server and
ours in turns. A search is asked over stdio and of the library in turns, in two processes on one database; each question's best
round counts, and what is told is the difference.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# The SDK is also called mcp, and a script finds its neighbours first: this file must not be found in its place.
HERE = str(Path(__file__).resolve().parent)
sys.path.remove(HERE)
sys.path.append(HERE)

import numpy as np  # noqa: E402
from common import embedded, fill, machine, percentile, table, told  # noqa: E402
from texts import Teller  # noqa: E402

from bethink.api import Bethink  # noqa: E402

EMPTY = "from mcp.server.mcpserver import MCPServer; MCPServer('empty').run()"
REALLY_EMBEDDED = 300
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Server:
    """A server process and a client that is as thin as can be."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.number = 0

    def ask(self, method: str, **params) -> dict:
        self.number += 1
        message = {
            "jsonrpc": "2.0",
            "id": self.number,
            "method": method,
            "params": {**params, "_meta": META},
        }
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["result"]

    def close(self) -> float:
        """Seconds until the process is gone after its input has ended."""
        started = time.perf_counter()
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        return time.perf_counter() - started


def started(command: list[str], folder: Path) -> tuple[float, float]:
    """Milliseconds to the first answer to `tools/list`, and to the end afterwards."""
    begun = time.perf_counter()
    server = Server(command, folder)
    server.ask("server/discover")
    server.ask("tools/list")
    ready = time.perf_counter() - begun
    return ready * 1000, server.close() * 1000


def starts(ours: list[str], folder: Path, rounds: int) -> dict:
    ways = {"empty server": [sys.executable, "-c", EMPTY], "bethink mcp": ours}
    for command in ways.values():
        started(command, folder)  # fills the file cache and writes bytecode
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, command in ways.items():
            times[name].append(started(command, folder))
    first = {name: [ready for ready, _ in each] for name, each in times.items()}
    base = first["empty server"]
    return {
        name: {
            "best_ms": min(each),
            "median_ms": statistics.median(each),
            "best_ratio": min(each) / min(base),
            "median_ratio": statistics.median(each) / statistics.median(base),
            "end_ms": statistics.median(end for _, end in times[name]),
        }
        for name, each in first.items()
    }


def searches(
    ours: list[str], database: Path, folder: Path, questions: list[str], rounds: int
) -> dict:
    server = Server(ours, folder)
    with Bethink(database, directory=folder) as memory:
        for question in questions[:5]:
            memory.search(question, limit=10)
            server.ask("tools/call", name="search_memories", arguments={"query": question})
        library, wire = np.zeros((rounds, len(questions))), np.zeros((rounds, len(questions)))
        sizes = []
        for turn in range(rounds):
            for at, question in enumerate(questions):
                begun = time.perf_counter()
                memory.search(question, limit=10)
                library[turn, at] = time.perf_counter() - begun
                begun = time.perf_counter()
                answer = server.ask(
                    "tools/call", name="search_memories", arguments={"query": question}
                )
                wire[turn, at] = time.perf_counter() - begun
                sizes.append(len(answer["content"][0]["text"]) / 4)
    server.close()
    best = {"library": library.min(axis=0) * 1000, "over stdio": wire.min(axis=0) * 1000}
    best["difference"] = best["over stdio"] - best["library"]
    found = {
        name: {"p50_ms": percentile(each, 0.5), "p95_ms": percentile(each, 0.95)}
        for name, each in best.items()
    }
    return {"ways": found, "median_tokens": statistics.median(sizes), "most_tokens": max(sizes)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=12)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    result: dict = {"machine": machine()}
    with tempfile.TemporaryDirectory(prefix="bethink-bench-") as temporary:
        folder = Path(temporary) / "project"
        folder.mkdir()
        database = Path(temporary) / "memory.db"
        told(
            f"writing {args.memories:,} memories, the vectors of {REALLY_EMBEDDED} by the model and the others perturbed from those"
        )
        texts = Teller().memories(args.memories)
        with Bethink(database, directory=folder) as memory:
            vectors, _ = embedded(texts, memory.embedder, np.random.default_rng(7), REALLY_EMBEDDED)
            fill(memory.store, memory.scope, texts, vectors, memory.embedder.model)
        ours = [sys.executable, "-m", "bethink", "mcp", "--database", str(database)]
        os.environ.pop("CLAUDE_PROJECT_DIR", None)
        if paths := os.environ.get("PYTHONPATH"):  # the servers start elsewhere
            os.environ["PYTHONPATH"] = os.pathsep.join(
                str(Path(path).resolve()) for path in paths.split(os.pathsep)
            )
        result["starts"] = starts(ours, folder, args.starts)
        result["searches"] = searches(
            ours, database, folder, Teller(seed=11).questions(args.questions), args.rounds
        )
    if args.json:
        print(json.dumps(result, indent=1))
        return
    head = ("from start to tools/list", "best ms", "median ms", "best ÷", "median ÷", "ends in ms")
    table([head, *((name, *way.values()) for name, way in result["starts"].items())])
    found = result["searches"]
    table(
        [
            ("warm search, best round", "p50 ms", "p95 ms"),
            *((name, *way.values()) for name, way in found["ways"].items()),
        ]
    )
    print(
        f"an answer has about {found['median_tokens']:,.0f} tokens, at most {found['most_tokens']:,.0f}"
    )


if __name__ == "__main__":
    main()
