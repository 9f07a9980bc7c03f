"""How long a cold `bethink` takes, against the least that a Python program can: `python3 -c "import argparse"`.

    python bench/startup.py [--install] [--runs 15] [--memories 10000] [--json]

With `--install` the package is installed into a fresh virtual environment and its console script is started, as a user
would; without it `python -m bethink` of this interpreter is, which is a little slower.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import numpy as np
from common import embedded, fill, machine, table, told
from texts import Teller

from bethink.api import Bethink

QUESTION = "why did the nightly cache of the payment service fail?"
REALLY_EMBEDDED = 300
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


def filled(folder: Path, count: int) -> Path:
    told(
        f"writing {count:,} memories, the vectors of {REALLY_EMBEDDED} by the model and the others perturbed from those"
    )
    path = folder / "memory.db"
    texts = Teller().memories(count)
    with Bethink(path, directory=folder) as memory:
        vectors, _ = embedded(texts, memory.embedder, np.random.default_rng(7), REALLY_EMBEDDED)
        fill(memory.store, memory.scope, texts, vectors, memory.embedder.model)
    return path


def started(command: list[str], environment: dict[str, str]) -> float:
    begun = time.perf_counter()
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    spent = (time.perf_counter() - begun) * 1000
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed: {done.stderr.decode()}")
    return spent


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--install",
        action="store_true",
        help="measure a real install in a temporary virtual environment",
    )
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--memories", type=int, default=10_000)
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
        project = folder / "project"
        project.mkdir()
        asked = [
            "--database",
            str(filled(project, args.memories)),
            "--project",
            str(project),
            "--quiet",
            "--json",
        ]
        ways = {
            "import argparse": [python, "-c", "import argparse"],
            "--version": [*bethink, "--version"],
            "--help": [*bethink, "--help"],
            "search --help": [*bethink, "search", "--help"],
            "keyword search": [*bethink, "search", "--mode", "keyword", *asked, QUESTION],
            "hybrid search": [*bethink, "search", *asked, QUESTION],
        }
        for command in ways.values():
            started(command, environment)  # fills the file cache and writes bytecode
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(args.runs):
            for name, command in ways.items():
                times[name].append(started(command, environment))
        run_module = [python, "-m", "bethink", *ways["keyword search"][len(bethink) :]]
        result["imports"] = imports(run_module, environment)
    base = times["import argparse"]
    result["ways"] = {
        name: {
            "best_ms": min(each),
            "median_ms": statistics.median(each),
            "best_ratio": min(each) / min(base),
            "median_ratio": statistics.median(each) / statistics.median(base),
        }
        for name, each in times.items()
    }
    if args.json:
        print(json.dumps(result, indent=1))
        return
    head = (
        "installed" if args.install else "python -m bethink",
        "best ms",
        "median ms",
        "best ÷",
        "median ÷",
    )
    table([head, *((name, *way.values()) for name, way in result["ways"].items())])
    table(
        [
            ("imports of the keyword search", "own ms", "with its imports"),
            *(tuple(each.values()) for each in result["imports"]),
        ]
    )


if __name__ == "__main__":
    main()
