"""Skills: how agents use Bethink, one source for every agent.

There are two, because every skill costs each session its description: `remember` answers a question, `memory` does the rest. Each
Markdown file here is a skill: front matter, then instructions. The files in `references` belong to `memory`, and an agent reads
them when it needs them. Claude Code gets all of the front matter: which commands need no
permission, the arguments, and whether the skill runs in a separate context. The other agents get the fields of the open agent-skills
format. An agent's declaration says which fields it understands and where it looks for the files.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

_FOLDER = Path(__file__).parent
_REFERENCES = _FOLDER / "references"
_INSTALL = "uv tool install 'bethink[mcp]'"


NAMES = tuple(sorted(file.stem for file in _FOLDER.glob("*.md")))

# The moments at which an agent stores notes: the best of five wordings on 46 recorded situations (bench/LOG.md, 2026-11-18 and 19).
WHEN_TO_STORE = (
    "When the user settles something (a pick, a correction, a rule, a limit), and before your final answer or a compaction, call store_memories"
    " once: who chose what over what and why, with full names; what you learned that code and commits do not show (causes, traps, remedies,"
    " services); work left. Ids of what is closed: `done`."
)

FAILING = f"""\
## When it fails

- `command not found`: if there are tools such as `search_memories`, `store_memories` and `get_handoff`, use those, they reach the same
  memory. Otherwise try `~/.local/bin/bethink`. If that is not there either, tell the user that Bethink is not installed, or not on
  PATH, and that `{_INSTALL}` installs it (`pipx install 'bethink[mcp]'` does, too). Do not install it unasked.
- Otherwise the line that begins with `error:` says what is wrong, and the one that begins with `hint:` what to do. Do that once. If it
  fails again, run `bethink doctor` and show the user what it says.
"""


def render(fields: Collection[str]) -> dict[str, str]:
    """Return the files of all skills by path, with these fields of the front matter; () for all."""
    files = {}
    for name in NAMES:
        _, front, body = (_FOLDER / f"{name}.md").read_text("utf-8").split("---\n", 2)
        lines = front.splitlines(keepends=True)
        kept = [line for line in lines if not fields or line.partition(":")[0] in fields]
        files[f"{name}/SKILL.md"] = f"---\n{''.join(kept)}---\n{body}\n{FAILING}"
    for file in sorted(_REFERENCES.glob("*.md")):
        files[f"memory/references/{file.name}"] = file.read_text("utf-8")
    return files
