"""What a cold `bethink` costs, by processor time: against the least that a Python program can (`python3 -c "import argparse"`), in small
and large databases, and as an MCP server until its tools are listed.

    python bench/startup.py [--install] [--runs 15] [--memories 10000 100000 500000] [--keep FOLDER] [--beside "node server.js"] [--json]

With `--install` the package is installed into a fresh virtual environment and its console script is started, as a user
would; without it `python -m bethink` of this interpreter is, which is a little slower. `--beside` names another MCP server, which is
started in turns with ours. `--keep` keeps the databases for the next run: 500,000 memories take minutes to write.
"""

import argparse
import itertools
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path

import numpy as np
from common import embedded, fill, machine, table, told
from texts import Teller

from bethink.api import Bethink

QUESTION = "why did the nightly cache of the payment service fail?"
REALLY_EMBEDDED, READ = 300, 2000
HANDSHAKE: list[dict] = [
    {
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 1, "method": "tools/list"},
]
LINE = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \| (\s*)(\S+)")


def installed(folder: Path) -> tuple[Path, list[str]]:
    """A virtual environment with the package in it: its interpreter, and the command."""
    told("installing into a fresh virtual environment")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    source = Path(__file__).resolve().parent.parent
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(source)],
        check=True,
    )
    return python, [str(folder / "bin" / "bethink")]


def fill_database(folder: Path, count: int, project: Path) -> Path:
    path = folder / f"memories-{count}.db"
    if path.exists():
        return path
    told(
        f"writing {count:,} memories, the vectors of {REALLY_EMBEDDED} by the model and the others perturbed from those"
    )
    texts = Teller().memories(count)
    with Bethink(path, directory=project) as memory:
        vectors, _ = embedded(texts, memory.embedder, np.random.default_rng(7), REALLY_EMBEDDED)
        fill(memory.store, memory.scope, texts, vectors, memory.embedder.model, really=READ)
    return path


def measure_command(command: list[str], environment: dict[str, str]) -> float:
    """Milliseconds of processor time of a command and of what it started and waited for."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed: {process.returncode}")
    return (used.ru_utime + used.ru_stime) * 1000


def measure_listing(command: list[str], environment: dict[str, str]) -> float:
    """Milliseconds of processor time of an MCP server until its tools are listed."""
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        for message in HANDSHAKE:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            process.stdin.flush()
            if "id" in message and b'"result"' not in process.stdout.readline():
                sys.exit(f"{' '.join(command)} did not answer {message['method']}")
        threads = Path(f"/proc/{process.pid}/task").glob("*/schedstat")
        spent = sum(int(thread.read_text().split()[0]) for thread in threads)
        process.kill()
    return spent / 1e6


def imports(command: list[str], environment: dict[str, str], most: int = 15) -> list[dict]:
    """The modules whose own code costs most, best of three runs, those that a bare interpreter also loads left out."""
    bare = {
        name
        for name, *_ in _imported(
            [command[0], "-X", "importtime", "-c", "import argparse"], environment
        )
    }
    best: dict[str, list[float]] = {}
    for _ in range(3):
        for name, own, whole in _imported(
            [command[0], "-X", "importtime", *command[1:]], environment
        ):
            kept = best.setdefault(name, [own, whole])
            kept[:] = [min(kept[0], own), min(kept[1], whole)]
    found = [
        {"module": name, "own_ms": own / 1000, "all_ms": whole / 1000}
        for name, (own, whole) in best.items()
        if name not in bare
    ]
    told(
        f"{len(found)} modules are imported beyond argparse, {sum(each['own_ms'] for each in found):.1f} ms together"
    )
    return sorted(found, key=lambda each: -each["own_ms"])[:most]


def _imported(command: list[str], environment: dict[str, str]) -> list[tuple[str, int, int]]:
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return [(name, int(own), int(whole)) for own, whole, _, name in LINE.findall(done.stderr)]


def measure_in_turns(ways: dict[str, Callable[[], float]], runs: int) -> dict[str, list[float]]:
    for way in ways.values():
        way()  # fills the file cache and writes bytecode
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(runs):
        for name, way in ways.items():
            times[name].append(way())
    return times


def compare(times: dict[str, list[float]], base: str) -> dict[str, dict[str, float]]:
    return {
        name: {
            "best_ms": min(each),
            "median_ms": statistics.median(each),
            "best_ratio": min(each) / min(times[base]),
            "median_ratio": statistics.median(each) / statistics.median(times[base]),
        }
        for name, each in times.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--install",
        action="store_true",
        help="measure a real install in a temporary virtual environment",
    )
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--memories", type=int, nargs="+", default=[10_000])
    parser.add_argument("--keep", type=Path, help="the folder of the databases")
    parser.add_argument("--beside", type=shlex.split, help="the command of another MCP server")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    result: dict = {"machine": machine(), "installed": args.install}
    with tempfile.TemporaryDirectory(prefix="bethink-bench-") as temporary:
        folder = Path(temporary)
        python, bethink, environment = (
            sys.executable,
            [sys.executable, "-m", "bethink"],
            dict(os.environ),
        )
        if args.install:
            found, bethink = installed(folder / "venv")
            python = str(found)
            environment.pop("PYTHONPATH", None)
        project = (args.keep or folder) / "project"
        project.mkdir(parents=True, exist_ok=True)
        numbers = itertools.count(time.time_ns())

        def run(*words: str) -> Callable[[], float]:
            return lambda: measure_command([*bethink, *words], environment)

        def add(asked: list[str]) -> Callable[[], float]:
            text = "Request {} of the nightly billing job must be sent again by hand"
            return lambda: run("add", *asked, text.format(next(numbers)))()

        bare = [python, "-c", "import argparse"]
        ways = {
            "import argparse": lambda: measure_command(bare, environment),
            "--version": run("--version"),
            "--help": run("--help"),
            "search --help": run("search", "--help"),
        }
        sized: dict[str, Callable[[], float]] = {}
        for count in args.memories:
            database = fill_database(args.keep or folder, count, project)
            asked = ["--database", str(database), "--project", str(project), "--quiet", "--json"]
            sized |= {
                f"keyword search, {count:,}": run("search", "--mode", "keyword", *asked, QUESTION),
                f"hybrid search, {count:,}": run("search", *asked, QUESTION),
                f"add, {count:,}": add(asked),
            }
        result["ways"] = compare(measure_in_turns(ways | sized, args.runs), "import argparse")
        if args.beside:
            servers = {
                "another server": lambda: measure_listing(args.beside, environment),
                "bethink mcp": lambda: measure_listing([*bethink, "mcp"], environment),
            }
            result["mcp"] = compare(measure_in_turns(servers, args.runs), "another server")
        keyword = ["search", "--mode", "keyword", *asked, QUESTION]
        result["imports"] = imports([python, "-m", "bethink", *keyword], environment)
    if args.json:
        print(json.dumps(result, indent=1))
        return
    columns = ("best ms", "median ms", "best ÷", "median ÷")
    title = "installed" if args.install else "python -m bethink"
    for head, part in ((title, "ways"), ("until tools are listed", "mcp")):
        if part in result:
            table(
                [(head, *columns), *((name, *way.values()) for name, way in result[part].items())]
            )
    table(
        [
            ("imports of the keyword search", "own ms", "with its imports"),
            *(tuple(each.values()) for each in result["imports"]),
        ]
    )


if __name__ == "__main__":
    main()
