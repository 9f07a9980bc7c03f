"""`bethink`: find the command, build only its parser, and report errors with an exit code.

Agents and shells start this often, so nothing is imported here that `--version` and `--help` do not need.
Exit codes: 0 done, 1 failed, 2 wrong usage, 130 stopped by the user.
"""

from __future__ import annotations

import gc
import os
import sys

from bethink.app.cli import COMMAND_ALIASES, VALUED, render_overview, version

_VERSION, HELP = {"--version", "-V"}, {"--help", "-h"}
_STAYING = {"mcp", "serve", "ui"}  # which end their threads themselves
TYPE_CHECKING = False  # nothing is imported before `main` handles Ctrl-C
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    # Loading modules makes no garbage; looking for it takes 7 % of a search.
    gc.set_threshold(50_000)
    # NumPy starts a thread for each core, which takes 15 ms; no product of ours is large enough to gain from them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if argv is None and words[:2] == ["hook", "tool-before"]:
        from bethink import folders

        if not folders.is_enforcing():
            os._exit(0)  # most users enforce no rule, and an agent waits for this at every call
    if argv is None and words[:1] == ["hook"]:
        from bethink.hooks.client import hand_over

        handed = hand_over(words[1:])  # ends the process, unless no helper answers
        from bethink.hooks.run import run_alone

        run_alone(words[1:], *(handed or ()))  # ends the process, unless it is for the parser
    try:
        code = run(words)
        sys.stdout.flush()
        if argv is None and _STAYING.isdisjoint(words):
            # Everything is written and closed; unloading the modules would cost a quarter of a search.
            sys.stderr.flush()
            os._exit(code)
        return code
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        return 130
    except Exception as error:  # noqa: BLE001 - the outermost boundary: nobody should see a traceback
        from bethink.app.cli import console

        for_agent = "--for-agent" in words or console.is_agent_reading()
        return console.report_failure(error, wants_json(words), for_agent)


def run(words: list[str]) -> int:
    name, rest = find_command(words)
    if name == "help":
        name, _ = find_command(rest)
        rest = ["--help", *(word for word in rest if word == "--all" and name is None)]
    if name is None and (text := describe_itself(rest)):
        (sys.stdout if rest else sys.stderr).write(text)
        return 0 if rest else 2
    from bethink.app.cli import console, parser  # not needed above

    console.prepare()
    operation, parsed = console.read_command(COMMAND_ALIASES.get(name or "", name or rest[0]), rest)
    if parsed.common.help or parsed.common.version:
        sys.stdout.write(parser.render_help(operation) if parsed.common.help else version())
        return 0
    return console.run_operation(operation, parsed)


def find_command(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """The command, and all other words in order: common options may come before or after it."""
    value_follows = False
    for at, word in enumerate(words):
        if value_follows:
            value_follows = False
        elif word in VALUED:
            value_follows = True
        elif not word.startswith("-"):
            return word, [*words[:at], *words[at + 1 :]]
    return None, list(words)


def describe_itself(rest: Sequence[str]) -> str:
    """The version or the overview, if the words ask for one or are empty."""
    if not _VERSION.isdisjoint(rest):
        return version()
    return render_overview("--all" in rest) if not rest or not HELP.isdisjoint(rest) else ""


def wants_json(words: Sequence[str]) -> bool:
    """Return True if the words, which may be wrong, ask for JSON."""
    import re

    typed = " ".join(words).partition(" -- ")[0]
    return bool(re.search(r"(?:^| )--(?:json|format[ =]json)(?: |$)", typed))
