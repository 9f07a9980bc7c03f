"""Scripts of failures: a failed command, its fix, the same failure elsewhere, and look-alikes that must stay silent."""

from __future__ import annotations

from typing import NamedTuple


class Step(NamedTuple):
    """A tool call of a scripted session."""

    command: str = ""
    output: str = ""
    failed: bool = False
    file: str = ""  # an edit instead of a command
    change: str = ""  # of the edit: "old → new"
    folder: str = ""  # below the project
    tool: str = ""  # another tool than a shell
    arguments: tuple[tuple[str, str], ...] = ()


class Case(NamedTuple):
    """A first session, the same failure again, and the words that a right line holds."""

    name: str
    first: tuple[Step, ...]
    again: tuple[Step, ...]  # each in a session of its own
    fix: str = ""  # '' where the first session shows no fix: any line is wrong
    silent: tuple[Step, ...] = ()  # look-alikes, each in a session of its own


def fails(command: str, output: str, folder: str = "") -> Step:
    """A command that ends with 1."""
    return Step(command, output, True, folder=folder)


def hides(command: str, output: str, folder: str = "") -> Step:
    """A command that fails behind a filter, so that its line ends with 0."""
    return Step(command, output, False, folder=folder)


def runs(command: str, output: str = "", folder: str = "") -> Step:
    return Step(command, output, folder=folder)


def edits(file: str, change: str = "") -> Step:
    return Step(file=file, change=change)


def calls(tool: str, output: str = "ok", failed: bool = False, **arguments: str) -> Step:
    return Step(output=output, failed=failed, tool=tool, arguments=tuple(arguments.items()))
