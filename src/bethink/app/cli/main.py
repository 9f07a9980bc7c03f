"""`bethink`: finds the command that was asked for, builds only its parser, and ends every error as a sentence and an exit code.

Agents and shells start this often, so nothing is imported here that `--version` and `--help` can do without; the commands
import what they need. Exit codes: 0 done, 1 could not be done, 2 wrong usage, 130 stopped by the user.
"""

from __future__ import annotations

import gc
import os
import sys

from bethink.app.cli import COMMANDS, VALUED, render_overview, version

VERSION, HELP = {"--version", "-V"}, {"--help", "-h"}
STAYING = {"mcp", "serve", "ui"}  # which end threads of their own
TYPE_CHECKING = False  # nothing is imported before `main` answers for a Ctrl-C
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    # To load modules makes no garbage; to look for it takes 7 % of a search.
    gc.set_threshold(50_000)
    if argv is None and words[:1] == ["hook"]:
        from bethink.hooks.run import run_alone

        run_alone(words[1:])  # ends the process, unless it is for the parser
    try:
        code = run(words)
        sys.stdout.flush()
        if argv is None and STAYING.isdisjoint(words):
            # All is written and closed; to take the modules apart would cost a quarter of a search.
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
        name, rest = rest[0] if rest else None, ["--help"]
    if name is None and (told := describe_itself(rest)):
        (sys.stdout if rest else sys.stderr).write(told)
        return 0 if rest else 2
    from bethink.app.cli import console, parser  # not for what is answered above

    console.prepare()
    command = name or rest[0]
    if COMMANDS.get(command, ("",))[0].startswith("@"):
        operation = console.load_operation(command)
        parsed = parser.parse(operation, rest)
        if parsed.common.help or parsed.common.version:
            text = console.render_help(command) if parsed.common.help else version()
            sys.stdout.write(text)
            return 0
        return console.run_operation(operation, parsed)
    args = console.parse(command, rest)
    if args.help or args.version:
        sys.stdout.write(console.render_help(command) if args.help else version())
        return 0
    console.refuse_agent(command, args)
    do, opens = console.load(command)
    if not opens:
        return console.present(args, do(args))
    with console.open_memory(args, make=opens == "make") as memory:
        return console.present(args, do(args, memory))


def find_command(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """The command, and everything else in order: global options may stand before it or after it."""
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
    """The version or the overview, if that was asked for, or nothing was."""
    if not VERSION.isdisjoint(rest):
        return version()
    return render_overview() if not rest or not HELP.isdisjoint(rest) else ""


def wants_json(words: Sequence[str]) -> bool:
    """Whether what was typed asks for JSON, as far as that can be told of words that may be wrong."""
    import re

    typed = " ".join(words).partition(" -- ")[0]
    return bool(re.search(r"(?:^| )--(?:json|format[ =]json)(?: |$)", typed))
