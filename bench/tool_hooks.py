"""Processor time of the hooks at tool calls, as processes, beside `python -c pass`.

    python bench/tool_hooks.py [--runs 15]

A project with 200 memories, one failure with its fix and a few rules of a user. Each run is a session of its own, so that every line is said
again. Ratios within one run are what counts.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "remedies")]

from case import Case, fails, runs  # noqa: E402
from common import machine, table  # noqa: E402
from cost import Setting, hook_command, run_cold  # noqa: E402
from measure import Project  # noqa: E402
from texts import Teller  # noqa: E402

MISSING = "Error: Cannot find module 'zod'\n    at Module._load (node:internal:1051:15)"
OTHER = "Error: Cannot find module 'left-pad'\n    at Module._load (node:internal:1051:15)"
RULES = (
    "Use pnpm, not npm",
    "Never force-push to main",
    "Don't edit generated files under gen/",
    "Run the formatter before committing",
)


def call(tool: str, output: str, **given: str) -> dict:
    return {"tool_name": tool, "tool_input": given, "tool_use_id": "t1", "tool_response": output}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=15)
    args = parser.parse_args()
    machine()
    with tempfile.TemporaryDirectory(prefix="bethink-hooks-", ignore_cleanup_errors=True) as name:
        project = Project(Path(name))
        os.environ["BETHINK_EMBEDDING"] = "none"
        project.learn(
            Case("", (fails("cargo test", MISSING), runs("cargo fetch"), runs("cargo test")), ())
        )
        from bethink.api import Bethink
        from bethink.hooks import rules
        from bethink.judge import Judge
        from bethink.model import Passage

        with Bethink(directory=project.folder, actor="user") as memory:
            memory.add_many([Passage(text) for text in Teller(seed=1).memories(200)])
            for text in RULES:
                memory.add(text, kind="preference")
            memory.judge = Judge(2)
            rules.refresh(memory)
        setting = Setting(Path(name), project.folder, dict(os.environ), 200)
        ask = [sys.executable, "-c", "pass"]
        base = run_cold(setting, ask, None, args.runs)
        rows = [["hook", "ms", "ratio"], ["python -c pass", base, 1.0]]

        def measure(title: str, one: dict) -> None:
            session = iter(range(10_000))

            def message() -> dict:
                return {
                    "cwd": str(project.folder),
                    "session_id": f"{title}{next(session)}",
                    "tool_calls": [one],
                }

            times = sorted(
                run_cold(setting, hook_command("tool"), message(), 1) for _ in range(args.runs)
            )
            spent = times[len(times) // 2]
            rows.append([title, spent, spent / base])

        measure("a file is read, nothing applies", call("Read", "x", file_path="src/cart.ts"))
        measure("a command passed, nothing applies", call("Bash", "ok", command="ls -la src"))
        measure(
            "its program has a rule that does not apply", call("Bash", "ok", command="git push")
        )
        measure(
            "a failure that is not known",
            call("Bash", f"Exit code 1\n{OTHER}", command="cargo test"),
        )
        measure(
            "a known failure: its fix",
            call("Bash", f"Exit code 1\n{MISSING}", command="cargo test"),
        )
        measure("a rule is shown", call("Bash", "ok", command="git push --force"))
        measure("a rule about a folder is shown", call("Edit", "ok", file_path="gen/a.ts"))
        table(rows)


if __name__ == "__main__":
    main()
