"""Is a rule of the user shown at the first call that it is about, and at no other?

    python bench/rules/measure.py            rules that were looked at while the code was written
    python bench/rules/measure.py --fresh    rules kept for final runs
    python bench/rules/measure.py --other    other tools and wordings, kept for final runs
    python bench/rules/measure.py --words    a control: without the judge

Each rule is in a memory of its own, stored as the user's word. Each call comes in a session of its own, as the message of a hook.
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
    parser.add_argument("--other", action="store_true")
    parser.add_argument("--words", action="store_true")
    parser.add_argument("--quiet", action="store_true", help="totals only")
    args = parser.parse_args()
    machine()
    from fresh import RULES as FRESH
    from other import RULES as OTHER
    from seen import RULES as SEEN

    cases = FRESH if args.fresh else OTHER if args.other else SEEN
    os.environ |= {"BETHINK_OFFLINE": "1", "BETHINK_EMBEDDING": "none", "CLAUDECODE": "1"}
    os.environ["BETHINK_HOOKS"] = "on"
    from bethink.api import Bethink
    from bethink.hooks import rules, spool
    from bethink.hooks.run import run
    from bethink.judge import Judge

    spool.wake = lambda *_: None
    judge = Judge(2)
    if args.words:
        rules.BAR = rules.DIRECTED_BAR = 0.0
    about = shown = lines = wrong = asked = 0
    with tempfile.TemporaryDirectory(prefix="bethink-rules-") as name:
        for number, case in enumerate(cases):
            project = Path(name) / str(number) / "shop"
            project.mkdir(parents=True)
            os.environ |= {"HOME": name, "BETHINK_HOME": f"{project}-home"}
            with Bethink(directory=project, actor="user") as memory:
                memory.add(case.text, kind=case.kind)
                memory.judge = judge
                rules.refresh(memory)
            labelled = [(text, True) for text in case.about]
            labelled += [(text, False) for text in (*case.other, *UNRELATED)]
            for text, wanted in labelled:
                asked += 1
                call = {**make_call(text, project), "tool_use_id": "t1", "tool_response": "ok"}
                message = {"session_id": f"s{asked}", "cwd": str(project), "tool_calls": [call]}
                answer = run("tool", "claude", json.dumps(message).encode())
                line = read_line(answer) if answer else ""
                about, shown = about + wanted, shown + bool(wanted and line)
                lines, wrong = lines + bool(line), wrong + bool(line and not wanted)
                if bool(line) != wanted and not args.quiet:
                    print(f"{'WRONG' if line else 'missed'}  {text!r} · {case.text}")
    table(
        [
            ["rules", "calls", "about the rule", "shown", "lines", "wrong"],
            [len(cases), asked, about, shown, lines, wrong],
        ]
    )


if __name__ == "__main__":
    main()
