"""Is a rule of the user shown at the first call that it is about, and at no other?

    python bench/rules/measure.py            rules that were looked at while the code was written
    python bench/rules/measure.py --fresh    rules kept for final runs
    python bench/rules/measure.py --words    a control: without the judge

All rules of a set are in one memory, stored as the user's word. Each call comes in a session of its own, as the message of a hook.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from case import UNRELATED  # noqa: E402
from common import machine, table  # noqa: E402
from replay import read_line  # noqa: E402


def make_call(text: str, project: Path) -> dict:
    tool, _, file = text.partition(": ")
    if tool in ("Read", "Edit", "Write"):
        return {"tool_name": tool, "tool_input": {"file_path": str(project / file)}}
    return {"tool_name": "Bash", "tool_input": {"command": text}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--words", action="store_true")
    parser.add_argument("--quiet", action="store_true", help="totals only")
    args = parser.parse_args()
    machine()
    from fresh import RULES as FRESH
    from seen import RULES as SEEN

    cases = FRESH if args.fresh else SEEN
    with tempfile.TemporaryDirectory(prefix="bethink-rules-") as name:
        project = Path(name) / "shop"
        project.mkdir()
        os.environ |= {"HOME": name, "BETHINK_HOME": f"{name}/bethink", "BETHINK_HOOKS": "on"}
        os.environ |= {"BETHINK_OFFLINE": "1", "BETHINK_EMBEDDING": "none", "CLAUDECODE": "1"}
        from bethink.api import Bethink
        from bethink.hooks import rules, spool
        from bethink.hooks.run import run

        spool.wake = lambda *_: None
        with Bethink(directory=project, actor="user") as memory:
            for case in cases:
                memory.add(case.text, kind=case.kind)
            if args.words:
                rules.BAR = 0.0
            rules.refresh(memory)
        asked = 0

        def ask(text: str) -> str:
            nonlocal asked
            asked += 1
            call = {**make_call(text, project), "tool_use_id": "t1", "tool_response": "ok"}
            message = {"session_id": f"s{asked}", "cwd": str(project), "tool_calls": [call]}
            answer = run("tool", "claude", json.dumps(message).encode())
            return read_line(answer) if answer else ""

        about = shown = lines = wrong = 0
        for case in cases:
            for text in case.about:
                line = ask(text)
                good = case.text[:60] in line
                about, shown, lines = about + 1, shown + good, lines + bool(line)
                others = [one for one in cases if one is not case and text in one.about]
                fits = any(one.text[:60] in line for one in others)
                wrong += bool(line) and not good and not fits
                if not good and not fits and not args.quiet:
                    print(f"{'WRONG' if line else 'missed'}  {text!r} · {case.text} · {line}")
            for text in case.other:
                line = ask(text)
                own = case.text[:60] in line
                lines, wrong = lines + bool(line and own), wrong + own
                if own and not args.quiet:
                    print(f"WRONG  {text!r} · {line}")
        for text in UNRELATED:
            line = ask(text)
            lines, wrong = lines + bool(line), wrong + bool(line)
            if line and not args.quiet:
                print(f"WRONG  {text!r} · {line}")
        table(
            [
                ["rules", "calls about one", "shown", "lines", "wrong"],
                [len(cases), about, shown, lines, wrong],
            ]
        )


if __name__ == "__main__":
    main()
