"""Skills: what agents are told about using Bethink, one source for every host. `render` gives the files of one host.

Each Markdown file here is a skill in the open agent-skills format: two lines of front matter, then what to do. Claude Code
understands more front matter, which is in the table below. All other hosts get the plain form, with nothing that the format does
not know. What was typed behind the name of a skill is told by the hosts themselves.

`opencode_plugin` is the same for hooks: opencode has no command hooks, and this file makes it call ours. Nothing here knows
where a host looks for its files; the installer does.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
COMPATIBILITY = "Needs the bethink command (Python 3.11 or newer); works offline"
INSTALL = "uv tool install 'bethink[mcp]'"


class Claude(NamedTuple):
    """What Claude Code is told beyond the format: which commands need no permission, and what may be typed behind the name."""

    commands: tuple[str, ...]
    argument: str = ""
    fork: bool = (
        False  # in a context of its own, so that what is read there does not fill the conversation
    )


CLAUDE = {
    "remember": Claude(("recall", "get", "search"), "[question]", fork=True),
    "memory-search": Claude(("search", "get", "list"), "[what to look for]"),
    "memory-add": Claude(("add", "search", "get", "update"), "[what to remember]"),
    "memory-stats": Claude(("stats", "doctor")),
    "memory-topics": Claude(("topics", "list", "get"), "[session]"),
    "memory-backfill": Claude(("backfill", "topics"), "[path]"),
    "resolve-duplicates": Claude(("duplicates", "get", "history")),
    "resolve-contradictions": Claude(("contradictions", "get", "history")),
    "handoff": Claude(("handoff",), "[save or show]"),
}
NAMES = tuple(CLAUDE)

FAILING = f"""\
## When it fails

- `command not found`: if there are tools such as `search_memories`, `store_memories` and `get_handoff`, use those, they reach the same
  memory. Otherwise try `~/.local/bin/bethink`. If that is not there either, tell the user that Bethink is not installed, or not on
  PATH, and that `{INSTALL}` installs it (`pipx install 'bethink[mcp]'` does, too). Do not install it unasked.
- Otherwise the line that begins with `error:` says what is wrong, and the one that begins with `hint:` what to do. Do that once. If it
  fails again, run `bethink doctor` and show the user what it says.
"""


def render(host: str) -> dict[str, str]:
    """The files of all skills for a host: path, such as `remember/SKILL.md` → text."""
    return {f"{name}/SKILL.md": _render_skill(name, host) for name in NAMES}


def opencode_plugin(command: Sequence[str]) -> str:
    """The plugin by which opencode calls the hooks; `command` is how Bethink is started, such as `["bethink"]`."""
    return (
        (FOLDER / "opencode.js")
        .read_text("utf-8")
        .replace('["bethink"]', json.dumps(list(command)), 1)
    )


def _render_skill(name: str, host: str) -> str:
    _, front, body = (FOLDER / f"{name}.md").read_text("utf-8").split("---\n", 2)
    front += f"compatibility: {COMPATIBILITY}\n"
    if host != "claude":
        return f"---\n{front}---\n{body}\n{FAILING}"
    told = CLAUDE[name]
    front += (
        "allowed-tools: "
        + ", ".join(f"Bash(bethink {command} *)" for command in told.commands)
        + "\n"
    )
    if told.argument:
        front += f'argument-hint: "{told.argument}"\n'
    if told.fork:
        front += "context: fork\nbackground: false\n"
    return f"---\n{front}---\n{body}\n{FAILING}"
