"""Rules of a user, each with calls that it is about and calls that only look like it."""

from __future__ import annotations

from typing import NamedTuple


class RuleCase(NamedTuple):
    """A statement, and calls: a shell line, or `tool: file`."""

    text: str
    about: tuple[str, ...]
    other: tuple[str, ...] = ()
    kind: str = "preference"


# Calls that none of the rules is about.
UNRELATED = (
    "ls -la",
    "git status --short",
    "git diff --stat",
    "cat README.md",
    "wc -l src/*.py",
    "python3 --version",
    "Read: src/index.ts",
    "Read: docs/guide.md",
    "Edit: src/cart/total.ts",
    "Write: notes/today.md",
    "rg -n total src",
    "find . -name '*.ts' -newer package.json",
    "echo done",
    "gh run list --limit 3",
    "node -e 'console.log(1)'",
    "date -u",
)
