"""Replay recorded sessions through the hooks: is the right line shown at the moment of the mistake?

    python bench/replay.py FOLDER [--part tuning] [--labels DIR] [--out FILE]
    python bench/replay.py FOLDER … --by words        # a control: words, newest or silent in place of the product

Each FOLDER holds transcripts, with an INDEX.tsv that names the repository of each or without. Sessions are replayed project by project,
in order of time, call by call: the hooks get the messages that the host would send, and at the end of each turn what was said and done
so far is read into memory by the code that the worker runs. Nothing later than a call is known at that call.

A repository belongs to one part by the hash of its name: `tuning`, `held-out`, and of the latter five are `unopened` until the end.

`--out` writes one JSON object a line: every failed call, with the line that was shown, and every other line that was shown. Labels come from reading
those and the transcripts. They stay outside of the repository, because they quote what others said. `--labels DIR` reads:

    failures.tsv   repository, session, line of the call, group, known, why
                   `group` names failures that are the same to a reader; `known` is `yes` where an earlier call of the group, read before this
                   call, had a fix that would work here, `told` where the error itself says the fix, `no` otherwise; `why` says the fix
    lines.tsv      repository, session, line of the call, verdict, why
                   `verdict` is `right` (it applies, and helps), `applies` (true here, but of no help) or `wrong`

Rows with an empty label or without one are not counted.
"""

import argparse
import csv
import hashlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from common import machine, table

PARTS = ("tuning", "held-out", "unopened")
UNOPENED = 5
CONTROLS = ("silent", "words", "newest")
FOLDERS = {
    "claude": ".claude/projects/replay",
    "codex": ".codex/sessions/2026/01/01",
    "copilot": ".copilot/session-state/replay",
}
PROMPTS = ("human", "user", "")
SHELLS = ("bash", "shell", "exec_command", "local_shell", "powershell")


class Session(NamedTuple):
    repository: str
    host: str
    path: Path
    date: str

    @property
    def name(self) -> str:
        return self.path.stem


class Call(NamedTuple):
    """A tool call with its result; `line` is that of the call, `until` that of the result."""

    id: str
    tool: str
    input: dict[str, Any]
    output: str
    failed: bool | None
    line: int
    until: int
    agent: str = ""
    cwd: str = ""


class Prompt(NamedTuple):
    """A message of the user, before which the turn before it has ended."""

    line: int


# Sessions


def find_sessions(folders: list[Path]) -> list[Session]:
    found: list[Session] = []
    for folder in folders:
        index = folder / "INDEX.tsv"
        named: dict[str, tuple[str, str]] = {}
        if index.exists():
            with index.open() as file:
                for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                    named[row["session_file"]] = row["repository"], row["date"]
        for path in sorted(folder.rglob("*.jsonl")):
            if host := detect(path):
                repository, date = named.get(str(path.relative_to(folder)), ("", ""))
                first, cwd = look_at(path)
                found.append(Session(repository or name_project(cwd), host, path, date or first))
    return sorted(found, key=lambda one: (one.repository, one.date))


def detect(path: Path) -> str:
    from bethink import agents

    host = agents.detect(path) or ""
    return host if host in FOLDERS else ""


def look_at(path: Path) -> tuple[str, str]:
    """The first time and the first folder that a transcript names."""
    head = path.read_text("utf-8", "replace")[:400_000]
    times = re.search(r'"timestamp":\s?"([^"]+)"', head)
    places = re.search(r'"cwd":\s?"([^"]+)"', head)
    return times[1] if times else "", places[1] if places else ""


def name_project(cwd: str) -> str:
    parts = [part for part in re.split(r"[/\\]+", cwd) if part]
    name = next((part for part in reversed(parts) if "worktree" not in part), "unknown")
    return re.sub(r"[\W_]", "", name.lower())  # `git-sync` is also cloned as `gitsync`


def name_part(repository: str, repositories: set[str]) -> str:
    def rank(name: str) -> str:
        return hashlib.sha256(f"replay {name.lower()}".encode()).hexdigest()

    held = sorted((name for name in repositories if rank(name) >= "8"), key=rank)
    if repository not in held:
        return "tuning"
    return "unopened" if repository in held[:UNOPENED] else "held-out"


# Calls


def read_steps(session: Session, lines: list[str]) -> list[Call | Prompt]:
    reader = {"claude": read_claude, "codex": read_codex, "copilot": read_copilot}[session.host]
    steps: list[Call | Prompt] = []
    for number, text in enumerate(lines, 1):
        try:
            entry = json.loads(text)
        except ValueError:
            continue
        if isinstance(entry, dict):
            steps += reader(entry, number, lines)
    return steps


def as_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(str(one.get("text") or "") for one in blocks if isinstance(one, dict))


OPEN: dict[str, tuple[str, dict[str, Any], int]] = {}


def read_claude(entry: dict[str, Any], number: int, _: list[str]) -> Iterator[Call | Prompt]:
    message = entry.get("message") if isinstance(entry.get("message"), dict) else {}
    content = message.get("content")
    blocks = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
    if entry.get("type") == "assistant":
        for one in blocks:
            if one.get("type") == "tool_use":
                OPEN[str(one.get("id"))] = (str(one.get("name")), one.get("input") or {}, number)
    if entry.get("type") != "user":
        return
    results = [one for one in blocks if one.get("type") == "tool_result"]
    for one in results:
        tool, given, line = OPEN.pop(str(one.get("tool_use_id")), ("", {}, 0))
        if tool:
            agent = str(entry.get("agentId") or ("side" if entry.get("isSidechain") else ""))
            yield Call(
                str(one.get("tool_use_id")),
                tool,
                given,
                as_text(one.get("content")),
                one.get("is_error") is True,
                line,
                number,
                agent,
                str(entry.get("cwd") or ""),
            )
    if not results and not entry.get("isMeta") and not entry.get("isSidechain"):
        yield Prompt(number)


def read_codex(entry: dict[str, Any], number: int, _: list[str]) -> Iterator[Call | Prompt]:
    payload = entry.get("payload") if isinstance(entry.get("payload"), dict) else {}
    kind = payload.get("type")
    if kind == "function_call":
        try:
            given = json.loads(payload.get("arguments") or "{}")
        except ValueError:
            given = {}
        name = str(payload.get("name"))
        OPEN[str(payload.get("call_id"))] = (name, given if isinstance(given, dict) else {}, number)
    elif kind == "function_call_output":
        tool, given, line = OPEN.pop(str(payload.get("call_id")), ("", {}, 0))
        output = payload.get("output")
        output = output if isinstance(output, str) else as_text(output)
        code = re.search(r"(?:Process exited with code|Exit code:|\"exit_code\":) ?(-?\d+)", output)
        if tool:
            failed = int(code[1]) != 0 if code else None
            yield Call(
                str(payload.get("call_id")), tool, given, output, failed, line, number, "", ""
            )
    elif kind == "user_message":
        yield Prompt(number)


def read_copilot(entry: dict[str, Any], number: int, _: list[str]) -> Iterator[Call | Prompt]:
    data = entry.get("data") if isinstance(entry.get("data"), dict) else {}
    if entry.get("type") == "assistant.message":
        for one in data.get("toolRequests") or ():
            given = one.get("arguments")
            OPEN[str(one.get("toolCallId"))] = (
                str(one.get("name")),
                given if isinstance(given, dict) else {},
                number,
            )
    elif entry.get("type") == "tool.execution_complete":
        tool, given, line = OPEN.pop(str(data.get("toolCallId")), ("", {}, 0))
        result = data.get("result") if isinstance(data.get("result"), dict) else {}
        output = str(result.get("content") or (data.get("error") or {}).get("message") or "")
        code = re.search(r"exit code (-?\d+)>", output)
        failed = int(code[1]) != 0 if code else data.get("success") is False
        if tool:
            yield Call(str(data.get("toolCallId")), tool, given, output, failed, line, number)
    elif entry.get("type") == "user.message":
        yield Prompt(number)


def command_of(call: Call) -> str:
    given = call.input.get("command") or call.input.get("cmd") or ""
    return " ".join(map(str, given)) if isinstance(given, list) else str(given)


# Replay


class Replay:
    """One project with a memory of its own, in which sessions happen again."""

    def __init__(self, repository: str, folder: Path, by: str, embed: bool) -> None:
        self.repository, self.by, self.embed = repository, by, embed
        self.home = folder / "home"
        self.project = folder / re.sub(r"\W+", "-", repository)
        self.home.mkdir(parents=True)
        self.project.mkdir()
        subprocess.run(["git", "init", "-q", str(self.project)], check=True)
        os.environ["HOME"] = str(self.home)
        os.environ["BETHINK_HOME"] = str(self.home / "bethink")
        os.environ["BETHINK_HOOKS"] = "on"
        os.environ["BETHINK_OFFLINE"] = "1"
        os.environ["CLAUDECODE"] = "1"
        from bethink.hooks import spool

        spool.wake = lambda database: None  # `capture` is the worker
        self.rows: list[dict[str, Any]] = []
        self.calls = 0
        self.shown = 0
        self.seconds: list[float] = []
        self.seen: list[dict[str, Any]] = []  # earlier failures with their fixes, for the controls
        self.given: set[tuple[str, str]] = set()
        if not embed:
            from bethink import config

            self.settings = config
        self.memory: Any = None

    def capture(self, path: Path, host: str) -> None:
        """Read on, as the worker does at the end of a turn."""
        from bethink.api import Bethink
        from bethink.features import conversations
        from bethink.hooks import rules

        if self.memory is None:
            self.memory = Bethink(directory=self.project, actor="hook")
        for _ in conversations.read_on(self.memory, path, host, embed=self.embed, named=False):
            pass
        rules.refresh(self.memory)

    def play(self, session: Session) -> None:
        text = session.path.read_text("utf-8", "replace")
        lines = self.localise(text).splitlines(keepends=True)
        folder = self.home / FOLDERS[session.host]
        if session.host == "copilot":
            folder = folder.parent / session.name
        folder.mkdir(parents=True, exist_ok=True)
        names = {"codex": f"rollout-{session.name}.jsonl", "copilot": "events.jsonl"}
        path = folder / names.get(session.host, f"{session.name}.jsonl")
        OPEN.clear()
        written = 0

        def write(until: int) -> None:
            nonlocal written
            with path.open("a", encoding="utf-8") as file:
                file.writelines(lines[written:until])
            written = max(written, until)

        for step in read_steps(session, lines):
            if isinstance(step, Prompt):
                write(step.line - 1)
                if written and path.stat().st_size:
                    self.capture(path, session.host)
                continue
            write(step.until)
            self.call(session, step, path)
        write(len(lines))
        self.capture(path, session.host)

    def localise(self, text: str) -> str:
        """The transcript with the project's folder in place of the one that it was recorded in, so that memory finds its project."""
        places = Counter(re.findall(r'"cwd":\s?"((?:[^"\\]|\\.)+)"', text))
        if not places:
            return text
        root = min((place for place, _ in places.most_common(3)), key=len)
        root = re.sub(r"/(?:\.claude/worktrees|\.worktrees)/.*", "", root)
        return text.replace(root, str(self.project))

    def call(self, session: Session, call: Call, path: Path) -> None:
        from bethink.hooks.run import run

        self.calls += 1
        shown: list[str] = []
        for event, message in self.messages(session, call, path):
            started = time.process_time()
            answer = (
                run(event, session.host, json.dumps(message).encode())
                if self.by == "product"
                else ""
            )
            self.seconds.append(time.process_time() - started)
            shown += [read_line(answer)] if answer else []
        failure = self.read_failure(call)
        if self.by in ("words", "newest") and failure:
            shown = self.ask_control(session, failure)
        if failure or shown:
            row = {
                "repository": self.repository,
                "session": session.name,
                "line": call.line,
                "tool": call.tool,
                "call": command_of(call) or json.dumps(call.input)[:300],
                "failed": call.failed,
                "error": failure.error if failure else "",
                "signature": failure.signature if failure else "",
                "kind": failure.kind if failure else "",
                "output": call.output[:600] if call.failed else "",
                "shown": shown,
            }
            self.rows.append(row)
        elif call.failed:
            row = {
                "repository": self.repository,
                "session": session.name,
                "line": call.line,
                "tool": call.tool,
                "call": command_of(call) or json.dumps(call.input)[:300],
                "failed": True,
                "error": "",
                "signature": "",
                "kind": "",
                "output": call.output[:600],
                "shown": [],
            }
            self.rows.append(row)
        self.shown += len(shown)

    def messages(
        self, session: Session, call: Call, path: Path
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """What the host sends around a call."""
        place = self.place(call)
        common = {
            "session_id": session.name.rpartition("_")[2],  # files begin with their date
            "transcript_path": str(path),
            "cwd": place,
            "tool_name": call.tool,
            "tool_input": call.input,
            "tool_use_id": call.id,
        }
        if session.host == "claude" and call.failed and call.tool == "Bash":
            yield (
                "tool-failure",
                {**common, "hook_event_name": "PostToolUseFailure", "error": call.output},
            )
        if session.host == "claude":
            answered = {**common, "tool_response": call.output}
            calls = [
                {
                    key: answered[key]
                    for key in ("tool_name", "tool_input", "tool_use_id", "tool_response")
                }
            ]
            yield "tool", {**common, "hook_event_name": "PostToolBatch", "tool_calls": calls}
        elif session.host == "codex":
            message = {**common, "hook_event_name": "PostToolUse", "tool_response": call.output}
            if call.tool in ("exec_command", "shell", "local_shell"):
                message |= {"tool_name": "Bash", "tool_input": {"command": command_of(call)}}
            yield "tool", message
        else:
            result = {"result_type": "success", "text_result_for_llm": call.output}
            yield "tool", {**common, "hook_event_name": "PostToolUse", "tool_result": result}

    def place(self, call: Call) -> str:
        given = call.cwd or str(call.input.get("workdir") or "")
        return given if given.startswith(str(self.project)) else str(self.project)

    def read_failure(self, call: Call) -> Any:
        from bethink.agents.agent import ToolCall
        from bethink.hooks.state import Hook
        from bethink.hooks.tool import find_failure

        command, place = command_of(call), self.place(call)
        made = ToolCall(call.tool, command, output=call.output, failed=bool(call.failed))
        return find_failure(Hook("tool", "claude", directory=place), made)

    # Controls, which know the same memory

    def ask_control(self, session: Session, failure: Any) -> list[str]:
        from bethink.features.failures import list_failures

        if self.memory is None:
            return []
        known = [one for one in list_failures(self.memory, limit=1000) if one.fix]
        if self.by == "words":
            words = set(re.findall(r"\w{3,}", failure.error.lower()))

            def near(one: Any) -> float:
                other = set(re.findall(r"\w{3,}", one.error.lower()))
                return len(words & other) / max(1, len(words | other))

            known = sorted((one for one in known if near(one) >= 0.3), key=near, reverse=True)
        for one in known[:1]:
            if (session.name, one.id) not in self.given:
                self.given.add((session.name, one.id))
                return [one.fix]
        return []


def read_line(answer: str) -> str:
    """The line inside of an answer, without its marks."""
    found = re.search(
        r'"(?:additionalContext|additional_context|context)":\s?("(?:[^"\\]|\\.)*")', answer
    )
    text = json.loads(found[1]) if found else answer
    kept = [line for line in text.splitlines() if line.strip() and not line.startswith("<")]
    return kept[-1] if kept else text


# Measures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--part", choices=(*PARTS, "all"), default="tuning")
    parser.add_argument("--only", default="", help="repositories whose name holds this")
    parser.add_argument("--by", choices=("product", *CONTROLS), default="product")
    parser.add_argument("--embed", action="store_true", help="with the models, as the worker reads")
    parser.add_argument(
        "--quick", action="store_true", help="failures alone: no judge reads what was said"
    )
    parser.add_argument("--labels", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument(
        "--list", action="store_true", help="list repositories and their parts, and end"
    )
    args = parser.parse_args()
    machine()
    if args.quick:
        os.environ["BETHINK_JUDGE"] = "off"
    sessions = find_sessions(args.folders)
    repositories = {one.repository for one in sessions}
    by_repository: dict[str, list[Session]] = defaultdict(list)
    for one in sessions:
        by_repository[one.repository].append(one)
    rows: list[dict[str, Any]] = []
    counts: list[list[object]] = [
        ["repository", "part", "sessions", "calls", "failed", "named", "shown"]
    ]
    total = Counter[str]()
    seconds: list[float] = []
    for name, own in sorted(by_repository.items()):
        part = name_part(name, repositories)
        if args.list:
            print(part, name, len(own), sep="\t")
            continue
        if (args.part != "all" and part != args.part) or args.only not in name:
            continue
        with tempfile.TemporaryDirectory(prefix="bethink-replay-") as folder:
            replay = Replay(name, Path(folder), args.by, args.embed)
            for session in own:
                replay.play(session)
            rows += replay.rows
            seconds += replay.seconds
            failed = [row for row in replay.rows if row["failed"]]
            named = [row for row in failed if row["error"]]
            counts.append(
                [name, part, len(own), replay.calls, len(failed), len(named), replay.shown]
            )
            total["calls"] += replay.calls
            total["shown"] += replay.shown
            kinds = dict(replay.memory.store.overview().by_kind) if replay.memory else {}
            print(f"{name}: {replay.calls} calls, {replay.shown} lines, {kinds}", file=sys.stderr)
    if args.list:
        return
    table(counts)
    if args.out:
        args.out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    print(f"{total['shown']} lines in {total['calls']} calls")
    if seconds:
        ordered = sorted(seconds)
        at = ordered[int(len(ordered) * 0.99)]
        print(
            f"processor time in this process: median {1000 * statistics.median(ordered):.1f} ms, p99 {1000 * at:.1f} ms"
        )
    if args.labels:
        measure(rows, args.labels)


def read_labels(path: Path) -> dict[tuple[str, str, str], list[str]]:
    if not path.exists():
        return {}
    with path.open() as file:
        rows = [
            line.rstrip("\n").split("\t")
            for line in file
            if line.strip() and not line.startswith("#")
        ]
    return {(row[0], row[1], row[2]): row[3:] for row in rows if len(row) > 3 and row[3]}


def measure(rows: list[dict[str, Any]], folder: Path) -> None:
    """Compare what was shown with what a reader says."""
    failures, lines = read_labels(folder / "failures.tsv"), read_labels(folder / "lines.tsv")
    known = right = 0
    verdicts = Counter[str]()
    for row in rows:
        place = (row["repository"], row["session"], str(row["line"]))
        verdict = lines.get(place, [""])[0] if row["shown"] else ""
        verdicts[verdict or "unlabelled"] += bool(row["shown"])
        if place in failures and failures[place][1:2] == ["yes"]:
            known += 1
            right += verdict == "right"
    print(f"right fix shown at {right} of {known} failures whose fix was known")
    applying = verdicts["right"] + verdicts["applies"]
    print(f"{applying} of {sum(verdicts.values())} lines shown apply: {dict(verdicts)}")


if __name__ == "__main__":
    main()
