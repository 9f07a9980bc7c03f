"""Facts about the work of a session: changed files, and the last outcome of each check."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from bethink.ingest.commands import strip_command
from bethink.ingest.failures import JOINT, is_check, read_runs
from bethink.model import ToolEvent


class Check(NamedTuple):
    """A test, build or lint command with its last certain outcome."""

    command: str
    place: str  # the directory, '' where it is not known
    passed: bool
    at: str  # ISO, '' where the agent recorded none
    files_since: int = 0  # files changed after it ran: with more than none it may be outdated


class Outcomes(NamedTuple):
    """Facts that digests and to-dos can rely on; each in order of its last event."""

    files: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()

    @property
    def passing(self) -> tuple[Check, ...]:
        return tuple(one for one in self.checks if one.passed)

    @property
    def failing(self) -> tuple[Check, ...]:
        return tuple(one for one in self.checks if not one.passed)


def find_outcomes(events: Iterable[ToolEvent]) -> Outcomes:
    """Collect the changed files and the last certain outcome of each check."""
    files: dict[str, int] = {}
    checks: dict[tuple[str, str], tuple[Check, int]] = {}
    for number, event in enumerate(events):
        if event.file and event.failed is not True:
            files.pop(event.file, None)
            files[event.file] = number
        for run in read_runs(event) if event.command else ():
            if run.passed is None or JOINT in run.command or not is_check(run.command):
                continue
            key = (strip_command(run.command), run.place)
            checks.pop(key, None)
            checks[key] = (Check(run.command, run.place, run.passed, event.at), number)
    dated = (
        one._replace(files_since=sum(changed > number for changed in files.values()))
        for one, number in checks.values()
    )
    return Outcomes(tuple(files), tuple(dated))
