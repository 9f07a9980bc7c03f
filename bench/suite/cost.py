"""What memory costs: processor time of a write, of a search and of a start, disk and memory per memory, and the tokens an agent pays.

Processor time, not seconds: other work on the machine hardly disturbs it. It is read from /proc for the adapter and everything it started,
so a system that works in a second process pays for it. Vectors are not remembered here: whoever embeds, embeds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measures import count_tokens
from tasks import BEGAN, HERE, MONTH, Setting, ask, read_lines, tell

WRITES, SEARCHES, ANSWERED = 200, 100, 5
MCP_SECONDS = 120


def list_family(pid: int) -> list[int]:
    """A process and all that it started."""
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
    """Seconds of processor time of a process and all that it started, those that ended included."""
    ticks = 0
    for one in list_family(pid):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def read_memory(pid: int) -> int:
    """Resident bytes of a process and all that it started."""
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
    """Short statements and questions about them: those of the change task."""
    rows = read_lines(HERE / "data" / "change.jsonl") + read_lines(
        HERE / "data" / "change-fresh.jsonl"
    )
    statements = list(dict.fromkeys(row[key] for row in rows for key in ("old", "new")))
    return statements, [row["question"] for row in rows]


def measure_cost(start: Callable[[], Any], process: Any, setting: Setting) -> dict[str, Any]:
    if sys.platform != "linux":
        return {
            "unsupported": "Processor time of several processes is read from /proc, which is Linux's."
        }
    writes, searches = (60, 30) if setting.quick else (WRITES, SEARCHES)
    statements, questions = collect_statements()
    later = BEGAN + MONTH
    tell(process, statements[-1], BEGAN)
    ask(process, questions[-1], later)  # so that all is loaded
    folder = Path(process.call("stats")["folder"])
    memory, before = read_memory(process.pid), read_processor_time(process.pid)
    for text in statements[:writes]:
        tell(process, text, BEGAN)
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
        "start ms": 1000 * measure_start(start, questions[0], later),
    }
    server = process.call("stats").get("mcp")
    process.close()  # which settles what is on disk
    costs["disk bytes a memory"] = read_disk(folder) / (writes + 1)
    if server:
        costs["tool tokens"] = measure_tools(server)
    many = {"search ms": searches, "answer tokens": len(answers), "start ms": 1, "tool tokens": 1}
    return {
        "measures": {
            name: {"mean": round(value, 2), "of": many.get(name, writes)}
            for name, value in costs.items()
        }
    }


def measure_start(start: Callable[[], Any], question: str, later: Any) -> float:
    """Processor seconds of a new process until it has answered its first question, over one memory."""
    best = float("inf")
    for _ in range(2):
        process = start()
        try:
            process.call("reset")
            tell(process, "Deploys go out from the main branch.", BEGAN)
            ask(process, question, later)
            best = min(best, read_processor_time(process.pid))
        finally:
            process.close()
    return best


def measure_tools(server: dict[str, Any]) -> int:
    """Tokens of a server's instructions and of its list of tools, which an agent reads at every start."""
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
