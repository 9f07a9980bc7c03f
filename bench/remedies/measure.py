"""Is the right fix shown when a scripted failure happens again, and nothing for an error that only looks like it?

    python bench/remedies/measure.py            the cases that were looked at while the code was written
    python bench/remedies/measure.py --fresh    recorded runs of real tools (record.py), kept for final runs
    python bench/remedies/measure.py --wider    many tools, written before it was known what is shown; half 1 was opened last
    python bench/remedies/measure.py --further  written later, in the same way; opened after its first run
    python bench/remedies/measure.py --last     written when the rules were finished; never opened
    python bench/remedies/measure.py --other    other ecosystems, written by somebody who had not read the rules; half of them never fixed
    python bench/remedies/measure.py --closed   a second such set, never opened
    python bench/remedies/measure.py --alone    each case in a memory of its own

All first sessions are read into the memory of one project, by the code that the worker runs. Then each later failure comes as the message
of a hook, in a session of its own. A line is right if it names the fix of its own case.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from case import Case, Step  # noqa: E402
from closed import CASES as CLOSED  # noqa: E402
from common import machine, table  # noqa: E402
from further import CASES as FURTHER  # noqa: E402
from last import CASES as LAST  # noqa: E402
from other import CASES as OTHER  # noqa: E402
from replay import read_line  # noqa: E402
from seen import CASES  # noqa: E402
from wider import CASES as WIDER  # noqa: E402


def read_recorded(path: Path) -> list[Case]:
    def read(steps: list[dict]) -> tuple[Step, ...]:
        return tuple(Step(**step) for step in steps)

    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [
        Case(row["name"], read(row["first"]), read(row["again"]), row["fix"], read(row["silent"]))
        for row in rows
    ]


class Project:
    """A folder with a memory of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "shop"
        self.home = folder / "home"
        self.folder.mkdir(parents=True)
        self.home.mkdir()
        os.environ |= {"HOME": str(self.home), "BETHINK_HOME": str(self.home / "bethink")}
        os.environ |= {"BETHINK_HOOKS": "on", "BETHINK_OFFLINE": "1", "BETHINK_JUDGE": "off"}
        os.environ |= {"CLAUDECODE": "1"}
        from bethink.hooks import spool

        spool.wake = lambda *_: None
        self.sessions = 0

    def name_session(self) -> str:
        self.sessions += 1
        return f"{self.sessions:08d}-0000-4000-8000-000000000000"

    def place(self, step: Step) -> str:
        return str(self.folder / step.folder) if step.folder else str(self.folder)

    def learn(self, case: Case) -> None:
        from bethink.api import Bethink
        from bethink.features import conversations

        session = self.name_session()
        lines = [json.dumps(line) for line in self.write(session, case.first)]
        path = self.home / ".claude" / "projects" / "x" / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
        with Bethink(directory=self.folder, actor="hook") as memory:
            for _ in conversations.read_on(memory, path, "claude", embed=False, named=False):
                pass

    def write(self, session: str, steps: tuple[Step, ...]) -> Iterator[dict]:
        """The lines of a transcript of Claude Code."""
        for number, step in enumerate(steps):
            at = f"2026-05-{1 + self.sessions % 27:02}T09:{number:02}:00.000Z"
            common = {"sessionId": session, "cwd": self.place(step), "timestamp": at}
            id = f"t{session[:8]}-{number}"
            tool, given = self.call(step)
            if tool == "Read" and not step.failed:  # a place is named only while it exists
                Path(given["file_path"]).parent.mkdir(parents=True, exist_ok=True)
                Path(given["file_path"]).touch()
            use = {"type": "tool_use", "id": id, "name": tool, "input": given}
            said = [{"type": "text", "text": "Next."}, use]
            yield {"type": "assistant", "uuid": f"a{id}", **common, "message": {"role": "assistant", "content": said}}  # fmt: skip
            output = self.localise(step)
            result = {"type": "tool_result", "tool_use_id": id, "content": output, "is_error": step.failed}  # fmt: skip
            yield {"type": "user", "uuid": f"u{id}", **common, "message": {"role": "user", "content": [result]}}  # fmt: skip
        end = {"sessionId": session, "cwd": str(self.folder), "timestamp": "2026-05-28T10:00:00.000Z"}  # fmt: skip
        yield {"type": "assistant", "uuid": f"e{session}", **end, "message": {"role": "assistant", "content": "Done."}}  # fmt: skip

    def localise(self, step: Step) -> str:
        text = step.output.replace("{project}", str(self.folder))
        return f"Exit code 1\n{text}" if step.failed and step.command else text

    def call(self, step: Step) -> tuple[str, dict]:
        tool, given = name_call(step)
        return tool, {k: v.replace("{project}", str(self.folder)) for k, v in given.items()}

    def ask(self, step: Step) -> str:
        from bethink.hooks.run import run

        tool, given = self.call(step)
        message = {"session_id": self.name_session(), "cwd": self.place(step)}
        if step.tool and step.failed:
            message |= {"tool_name": tool, "tool_input": given, "error": self.localise(step)}
            answer = run("tool-failure", "claude", json.dumps(message).encode())
            return read_line(answer) if answer else ""
        call = {"tool_name": tool, "tool_input": given, "tool_use_id": "t1"}
        call["tool_response"] = self.localise(step)
        answer = run("tool", "claude", json.dumps({**message, "tool_calls": [call]}).encode())
        return read_line(answer) if answer else ""


def name_call(step: Step) -> tuple[str, dict]:
    if step.file:
        old, _, new = step.change.partition(" → ")
        return "Edit", {"file_path": step.file, "old_string": old, "new_string": new}
    if step.tool:
        return step.tool, dict(step.arguments)
    return "Bash", {"command": step.command}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--wider", action="store_true")
    parser.add_argument("--further", action="store_true")
    parser.add_argument("--last", action="store_true")
    parser.add_argument("--other", action="store_true")
    parser.add_argument("--closed", action="store_true")
    parser.add_argument("--half", type=int, choices=(0, 1), help="of the cases, by number")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--quiet", action="store_true", help="totals only")
    args = parser.parse_args()
    machine()
    sets = ((args.wider, WIDER), (args.further, FURTHER), (args.last, LAST))
    sets += ((args.other, OTHER), (args.closed, CLOSED))
    cases = list(next((found for wanted, found in sets if wanted), CASES))
    if args.fresh:
        cases = read_recorded(HERE / "recorded.jsonl")
    cases = cases if args.half is None else cases[args.half :: 2]
    wanted = right = wrong = looked = spoken = 0
    with tempfile.TemporaryDirectory(prefix="bethink-remedies-") as name:
        shared = None if args.alone else Project(Path(name))
        for case in cases if shared else ():
            shared.learn(case)
        for at, case in enumerate(cases):
            project = shared or Project(Path(name) / str(at))
            if not shared:
                project.learn(case)
            for step in case.again:
                if not step.failed and not step.output:
                    continue
                line = project.ask(step)
                good = bool(case.fix) and case.fix in line
                wanted += bool(case.fix)
                right += good
                wrong += bool(line) and not good
                spoken += bool(line)
                if not args.quiet and not good and (case.fix or line):
                    print(f"{'WRONG' if line else 'missed'}  {case.name}: {line}")
            for step in case.silent:
                line = project.ask(step)
                looked += 1
                wrong += bool(line)
                spoken += bool(line)
                if line and not args.quiet:
                    print(f"WRONG  {case.name} (look-alike {step.command!r}): {line}")
    table(
        [
            ["cases", "again with a fix", "right", "look-alikes", "lines", "wrong"],
            [len(cases), wanted, right, looked, spoken, wrong],
        ]
    )


if __name__ == "__main__":
    main()
