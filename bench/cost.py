"""Processor time, memory and disk that Bethink costs with its default settings.

    python bench/cost.py                         a table; about four minutes
    python bench/cost.py --sizes 200 5000 50000  databases to measure in; the last takes minutes to fill
    python bench/cost.py --only hook             rows whose name holds a word
    python bench/cost.py --write                 also replace the table in docs/concepts/speed.md
    python bench/cost.py --check                 compare with that table, row by row; half a minute at most

Cold rows start a process, as an agent or a shell does, and count its user and system time; its modules are compiled, as after an
installation. Warm rows repeat a call inside a fresh
process. Everything runs in a temporary home with the packaged models. Milliseconds depend on the machine: compare rows within one
run, or with the row `calibration`, a fixed piece of work that uses the processor as Bethink does but none of its code. `--check`
compares the ratio of each row to the calibration next to it with the ratio in the table.
"""

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from common import fill_scope, log, machine, resident, table
from texts import Teller

from bethink.api import Bethink

ROOT = Path(__file__).resolve().parent.parent
SPEED_PAGE = ROOT / "docs" / "concepts" / "speed.md"
BEGIN, END = "<!-- cost -->", "<!-- /cost -->"
COMMAND = [sys.executable, "-m", "bethink"]
# Imports, a model of onnxruntime and a loop of Python, in about the shares of a cold search.
CALIBRATION = f"""
import asyncio, email.message, json, sqlite3, unittest.mock
import numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
model = onnxruntime.InferenceSession({str(ROOT / "src/bethink/judge/data/reader.onnx")!r}, options, providers=["CPUExecutionProvider"])
words = numpy.ones((1, 32, 384), numpy.float32)
for _ in range(4):
    model.run(["kind"], {{"words": words, "present": numpy.ones((1, 32), numpy.int64)}})
json.loads(json.dumps([{{str(number): [number] * 3}} for number in range(20_000)]))
"""
CALIBRATED = "calibration"
LEAST, MOST = 0.5, 1.5  # factors between which a row may differ from the table before --check fails
HELPER_STARTS = 60.0  # seconds at most in which a helper starts on a busy machine
TRIES = 4  # measurements of a row before --check believes that it drifted
CHECKED = (  # rows of --check: each kind of work once
    "bethink --help",
    "search by words, cold",
    "search, cold",
    "add, cold",
    "add, cold, while a helper runs",
    "hook: session start",
    "hook: prompt, something to weigh",
    "add, warm, 200 memories",
    "search, warm, 200 memories",
    "search and rerank, warm, 200 memories",
    "reading a short turn, 200 memories",
)
UNRELATED_PROMPT = "write a haiku about autumn"
RELATED_PROMPT = (
    "why did the nightly cache of the payment service fail, and which gateway retries it?"
)
SHORT_REPLY = "Done: the test passes now."
LONG_REPLY = " ".join(
    f"The {number}th worker keeps its own connection, because the pool of the gateway is shared."
    for number in range(40)
)


class Row(NamedTuple):
    name: str
    milliseconds: float
    note: str = ""


class Setting(NamedTuple):
    """A home, a project and a database of one size to measure in."""

    folder: Path
    project: Path
    environment: dict[str, str]
    memories: int


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 5_000])
    parser.add_argument("--runs", type=int, default=7, help="processes of each cold row")
    parser.add_argument("--calls", type=int, default=30, help="calls of each warm row")
    parser.add_argument("--only", default="", help="only rows whose name holds this")
    parser.add_argument("--write", action="store_true", help="replace the table in the docs")
    parser.add_argument("--check", action="store_true", help="compare with the table in the docs")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--inside", help=argparse.SUPPRESS)  # a warm row, in the child process
    args = parser.parse_args()
    if args.inside:
        print(json.dumps(repeat_call(args.inside, args.sizes[0], args.calls)))
        return
    if args.check:
        drifted = check_page()
        sys.exit("\n".join(drifted) if drifted else None)
    about = machine()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="bethink-cost-") as temporary:
        for size in args.sizes:
            setting = prepare(Path(temporary) / str(size), size)
            measures = [*cold_rows(setting, args.runs)] if size == args.sizes[0] else []
            measures += [*warm_rows(setting, args.calls)]
            for name, measure in measures:
                if args.only in name:
                    log(f"  {name}")
                    rows.append(measure())
    if args.json:
        print(json.dumps({"machine": about, "rows": [row._asdict() for row in rows]}, indent=1))
    else:
        table([("", "ms", ""), *rows])
    if args.write:
        write_page(rows)


def prepare(folder: Path, size: int, really: int = 300) -> Setting:
    """Make a project and fill its database with short notes."""
    project, home = folder / "project", folder / "home"
    (project / ".git").mkdir(parents=True)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    environment = {**os.environ, "BETHINK_HOME": str(home), "HOME": str(folder)}
    environment["BETHINK_HOOK_HELPER"] = "false"
    # As `pip` installs it: compiled. A checkout in which Python may write nothing compiles a third of Bethink at each start.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
    os.environ.update({"BETHINK_HOME": str(home)})
    with Bethink(directory=project) as memory:
        fill_scope(memory, size, really=really)
    return Setting(folder, project, environment, size)


Measure = tuple[str, Callable[[], Row]]


def cold_rows(setting: Setting, runs: int, prompts: int = 12) -> Iterator[Measure]:
    """Processes that a shell or an agent starts."""
    hook = {"cwd": str(setting.project), "session_id": "cost", "transcript_path": ""}
    failed: dict[str, object] = {
        "tool_name": "Bash",
        "tool_input": {"command": "npm run build"},
        "error": "Exit code 1\nError: Cannot find module 'left-pad'",
    }
    ways: list[tuple[str, list[str], object]] = [
        ("python -c pass", [sys.executable, "-c", "pass"], None),
        (CALIBRATED, [sys.executable, "-c", CALIBRATION], None),
        ("bethink --help", [*COMMAND, "--help"], None),
        ("search by words, cold", [*COMMAND, "search", "nightly cache", "--mode", "keyword"], None),
        ("search, cold", [*COMMAND, "search", RELATED_PROMPT], None),
        ("add, cold", [*COMMAND, "add", "The cost script adds note {}"], None),
        (
            "hook: prompt, without the helper",
            hook_command("prompt"),
            {**hook, "prompt": RELATED_PROMPT},
        ),
        ("hook: end of a turn", hook_command("stop"), hook),
    ]
    helped = (
        (
            "hook: prompt, nothing applies",
            hook_command("prompt"),
            {**hook, "prompt": UNRELATED_PROMPT},
        ),
        (
            "hook: prompt, something to weigh",
            hook_command("prompt"),
            {**hook, "prompt": RELATED_PROMPT},
        ),
        ("hook: session start", hook_command("session-start"), {**hook, "source": "startup"}),
        ("hook: failed command, unknown", hook_command("tool-failure"), {**hook, **failed}),
        ("search, cold, while a helper runs", [*COMMAND, "search", RELATED_PROMPT], None),
        (
            "add, cold, while a helper runs",
            [*COMMAND, "add", "The cost script borrows models for note {}"],
            None,
        ),
    )
    for name, command, message in helped:
        yield (
            name,
            lambda name=name, command=command, message=message: Row(
                name,
                run_helped(setting, command, message, max(runs, prompts)),
                "with its share of the helper",
            ),
        )
    for name, command, message in ways:
        yield (
            name,
            lambda name=name, command=command, message=message: Row(
                name, run_cold(setting, command, message, runs)
            ),
        )


def hook_command(event: str) -> list[str]:
    return [*COMMAND, "hook", event, "--host", "claude"]


def children_time() -> float:
    """Seconds of processor time of all finished child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_cold(setting: Setting, command: Sequence[str], message: object, runs: int) -> float:
    """Median processor time of a process in milliseconds. The first run only fills caches."""
    times = []
    for number in range(runs + 1):
        words = [word.replace("{}", str(number)) for word in command]
        given = b"" if message is None else json.dumps(message).encode()
        before = children_time()
        done = subprocess.run(
            words, input=given, env=setting.environment, cwd=setting.project, capture_output=True
        )
        if done.returncode:
            sys.exit(f"{' '.join(words)} failed: {done.stderr.decode()[:500]}")
        if number:
            times.append((children_time() - before) * 1000)
    return statistics.median(times)


def run_helped(setting: Setting, command: Sequence[str], message: object, runs: int) -> float:
    """Mean processor time of a process, with the share of the helper that it asks."""
    own = setting.environment | {"BETHINK_HOOK_HELPER": "true", "BETHINK_HELPER_IDLE": "60"}
    setting = setting._replace(environment=own)
    starting = {"cwd": str(setting.project), "session_id": "start", "prompt": RELATED_PROMPT}
    run_cold(setting, hook_command("prompt"), starting, 1)
    until = time.monotonic() + HELPER_STARTS
    while not list(setting.folder.glob("home/hooks/*.sock")) and time.monotonic() < until:
        time.sleep(0.1)
    run_cold(setting, hook_command("prompt"), starting, 1)  # it opens its models
    helper = find_helper(setting)
    before = helper_time(helper)
    spent = run_cold(setting, command, message, runs)
    return spent + (helper_time(helper) - before) * 1000 / (runs + 1)


def find_helper(setting: Setting) -> Path | None:
    """Return the folder of the helper's process in /proc."""
    home = f"BETHINK_HOME={setting.environment['BETHINK_HOME']}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if b"helper" in words and home in (folder / "environ").read_bytes().split(b"\0"):
                return folder
        except OSError:
            continue
    return None


def helper_time(folder: Path | None) -> float:
    """Seconds of processor time of the helper so far."""
    if folder is None:
        return 0.0
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


WAYS: dict[str, Callable[[Bethink, str], object]] = {
    "add": lambda memory, text: memory.add(text),
    "search": lambda memory, text: memory.search(text),
    "search by words": lambda memory, text: memory.search(text, mode="keyword"),
    "search and rerank": lambda memory, text: memory.search(text, rerank=True),
}
WARMED = 20  # calls before the first that counts: until then a process still loads and prepares its models


def repeat_call(name: str, size: int, calls: int) -> tuple[float, int]:
    """Median processor time of a call in this process in milliseconds, and the process's resident memory."""
    teller = Teller(seed=size + 1)
    number = WARMED + calls
    texts = teller.memories(number) if name == "add" else teller.questions(number)
    times = []
    with Bethink() as memory:
        for text in texts:
            started = time.process_time()
            WAYS[name](memory, text)
            times.append((time.process_time() - started) * 1000)
        return statistics.median(times[WARMED:]), resident()


def warm_rows(setting: Setting, calls: int) -> Iterator[Measure]:
    """Calls inside a process that has its models open."""
    size = f"{setting.memories:,} memories"

    def repeat(full: str, name: str) -> Row:
        own = [str(Path(__file__)), "--inside", name, "--sizes", str(setting.memories)]
        found = subprocess.run(
            [sys.executable, *own, "--calls", str(calls)],
            env=setting.environment,
            cwd=setting.project,
            capture_output=True,
            check=True,
        )
        milliseconds, memory = json.loads(found.stdout)
        return Row(full, milliseconds, f"{memory / 1e6:.0f} MB resident")

    for name in WAYS:
        full = f"{name}, warm, {size}"
        yield full, lambda full=full, name=name: repeat(full, name)
    for name, reply in (("short", SHORT_REPLY), ("long", LONG_REPLY)):
        full = f"reading a {name} turn, {size}"
        yield full, lambda full=full, reply=reply: Row(full, read_turns(setting, full, reply))
    if setting.memories < 1_000:
        return  # fixed sizes of files would hide that of a memory
    yield (
        f"database, {size}",
        lambda: Row(
            f"database, {size}",
            0.0,
            f"{sum(one.stat().st_size for one in setting.folder.rglob('*.db*')) / setting.memories:,.0f} bytes per memory",
        ),
    )


def read_turns(setting: Setting, name: str, reply: str, turns: int = 20) -> float:
    """Processor time per turn of reading a conversation, with its embeddings, in milliseconds."""
    lines = []
    for number in range(turns):
        prompt = f"We keep the {number}th report in the archive, because auditors ask for it."
        for role, text in (("user", prompt), ("assistant", reply)):
            lines.append(
                json.dumps(
                    {
                        "type": role,
                        "uuid": f"{name}-{role}-{number}",
                        "sessionId": name.replace(" ", "-"),
                        "cwd": str(setting.project),
                        "timestamp": f"2026-11-01T10:{number:02}:00.000Z",
                        "message": {"role": role, "content": text},
                    }
                )
            )
    file = setting.folder / f"{name.replace(' ', '-').replace(',', '')}.jsonl"
    file.write_text("\n".join(lines) + "\n")
    idle = run_cold(setting, [*COMMAND, "stats", "--json"], None, 1)
    before = children_time()
    subprocess.run(
        [*COMMAND, "backfill", str(file), "--json"],
        env=setting.environment,
        cwd=setting.project,
        capture_output=True,
        check=True,
    )
    spent = children_time() - before
    return max(0.0, spent * 1000 - idle) / (2 * turns)


def read_page() -> dict[str, float]:
    """Milliseconds of each row of the table in the docs."""
    table = SPEED_PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]
    cells = [[cell.strip() for cell in line.split("|")] for line in table.splitlines()]
    return {
        row[1]: float(row[2].removesuffix(" ms").replace(",", ""))
        for row in cells
        if len(row) > 3 and row[2].endswith(" ms")
    }


def check_page(names: Sequence[str] = CHECKED) -> list[str]:
    """Name the rows of the table whose ratio to the calibration is no longer true."""
    documented = read_page()
    with tempfile.TemporaryDirectory(prefix="bethink-cost-") as temporary:
        setting = prepare(Path(temporary) / "200", 200, really=20)
        measures = dict((*cold_rows(setting, 1, prompts=4), *warm_rows(setting, 8)))
        faults = [check_row(name, measures, documented) for name in names]
    return [fault for fault in faults if fault]


def check_row(
    name: str, measures: dict[str, Callable[[], Row]], documented: dict[str, float]
) -> str:
    """Describe the drift of a row, or return "" if any of a few measurements agrees with the table."""
    expected = documented[name] / documented[CALIBRATED]
    closest = 0.0
    for _ in range(TRIES):
        cost, calibrated = (measures[one]().milliseconds for one in (name, CALIBRATED))
        factor = cost / calibrated / expected
        log(f"  {name}: {cost:.0f} ms, {factor:.2f} of the documented ratio")
        if LEAST <= factor <= MOST:
            return ""
        closest = min(closest or factor, factor, key=lambda one: abs(math.log(one)))
    return f"{name} costs {closest:.2f} times what docs/concepts/speed.md says; run bench/cost.py --write."


def write_page(rows: Sequence[Row]) -> None:
    """Replace the table between the marks of the speed page."""
    lines = ["| | processor time | |", "|---|---|---|"]
    lines += [
        f"| {row.name} | {f'{row.milliseconds:.0f} ms' if row.milliseconds else ''} | {row.note} |"
        for row in rows
    ]
    text = SPEED_PAGE.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    SPEED_PAGE.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
