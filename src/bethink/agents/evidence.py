"""Results of tools in a conversation, against which a report of the agent can be checked.

`gather_evidence` reads the tool events and the work of turns, in their order. The last outcome counts: a check that failed and then passed
passed, and a command that failed is open until it passes. The values are facts of the host's records, never words of anybody.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from bethink.agents.base import Fact, Turn
from bethink.model import ToolEvent


class Evidence(NamedTuple):
    """Results of tools over some turns, each list in the order of its last change."""

    passed: tuple[str, ...] = ()  # tests and checks whose last run passed
    failed: tuple[str, ...] = ()  # those whose last run failed
    commits: tuple[str, ...] = ()  # subjects
    delivered: tuple[Fact, ...] = ()  # pushes, pull requests and merges
    files: tuple[str, ...] = ()  # changed
    failing: tuple[ToolEvent, ...] = ()  # the last run of each command that has not passed since
    declined: int = 0  # calls and plans that the user refused
    interrupted: int = 0  # times that the user stopped the agent

    @property
    def verified(self) -> bool | None:
        """True if every check passed at last, False if one failed, None if none ran."""
        return False if self.failed else True if self.passed else None


def gather_evidence(turns: Iterable[Turn]) -> Evidence:
    """Return what the tools of these turns showed. Those of sub-agents count."""
    checks: dict[str, str] = {}
    commits: dict[str, None] = {}
    delivered: dict[Fact, None] = {}
    files: dict[str, None] = {}
    runs: dict[tuple[str, str], ToolEvent] = {}
    declined = interrupted = 0
    for turn in turns:
        for fact in turn.work:
            if fact.what in ("passed", "failed"):
                checks.pop(fact.name, None)
                checks[fact.name] = fact.what
            elif fact.what == "commit":
                commits[fact.name] = None
            elif fact.what == "edit":
                files[fact.name] = None
            else:
                delivered[fact] = None
        for event in turn.events:
            if event.file and event.failed is not True:
                files[event.file] = None
            if event.command and event.failed is not None:
                key = (event.directory, event.command)
                runs.pop(key, None)
                runs[key] = event
        declined += sum(mark.startswith("declined") for mark in turn.marks)
        interrupted += turn.marks.count("interrupted")
    return Evidence(
        passed=tuple(name for name, outcome in checks.items() if outcome == "passed"),
        failed=tuple(name for name, outcome in checks.items() if outcome == "failed"),
        commits=tuple(commits),
        delivered=tuple(delivered),
        files=tuple(files),
        failing=tuple(event for event in runs.values() if event.failed),
        declined=declined,
        interrupted=interrupted,
    )
