"""Skills: what agents are told about using Bethink, one source for every host. `render` gives the files of one host.

Each Markdown file here is a skill: front matter, then what to do. Claude Code gets all of it: which commands need no permission, what
may be typed behind the name, and whether it runs in a context of its own, so that what is read there does not fill the conversation.
All other hosts get what the open agent-skills format knows. What was typed behind the name of a skill is told by the hosts themselves.

`opencode_plugin` is the same for hooks: opencode has no command hooks, and this file makes it call ours. Nothing here knows
where a host looks for its files; the installer does.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parent
INSTALL = "uv tool install 'bethink[mcp]'"


NAMES = tuple(sorted(file.stem for file in FOLDER.glob("*.md")))
# The front matter that every host understands.
OPEN_FORMAT = ("name:", "description:", "compatibility:")

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
    files = {}
    for name in NAMES:
        _, front, body = (FOLDER / f"{name}.md").read_text("utf-8").split("---\n", 2)
        lines = front.splitlines(keepends=True)
        told = [line for line in lines if host == "claude" or line.startswith(OPEN_FORMAT)]
        files[f"{name}/SKILL.md"] = f"---\n{''.join(told)}---\n{body}\n{FAILING}"
    return files


def opencode_plugin(command: Sequence[str]) -> str:
    """The plugin by which opencode calls the hooks; `command` is how Bethink is started, such as `["bethink"]`."""
    return (
        (FOLDER / "opencode.js")
        .read_text("utf-8")
        .replace('["bethink"]', json.dumps(list(command)), 1)
    )
