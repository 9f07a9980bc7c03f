"""Agents: one file declares each (`claude.py`), and `claude_transcript.py` reads its transcripts.

agent               what an agent declares
base, transcript    shared by the readers of transcripts
install, edit       connecting agents: their files, and the text in them

This package finds agents by name, and tells which agent wrote a transcript. Hooks load it, so readers are imported late.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from bethink import plugins
from bethink.agents.agent import Agent, find_folder
from bethink.errors import InvalidInput

if TYPE_CHECKING:
    from bethink.agents.base import Position
    from bethink.agents.transcript import Transcript

PEEK = 64 << 10  # bytes of a file in which an agent is recognised
_TRIED = 40  # lines of it
BLANK = b"\xef\xbb\xbf \t\r\n"


def find(name: str) -> Agent:
    """Return an agent by name."""
    if agent := plugins.AGENTS.find(name):
        return agent
    from bethink.text import suggest_one_of

    raise InvalidInput(f"There is no agent '{name}'.", suggest_one_of(name, names()))


def names() -> list[str]:
    """Return the names of all agents, in the order of registration."""
    return [agent.name for agent in plugins.AGENTS.all()]


# Transcripts


def read(path: Path, position: Position | None = None, host: str | None = None) -> Transcript:
    """Open a transcript. Without a host, the agent that wrote it is recognised by its first lines."""
    from bethink.agents.base import START

    name = host or detect(path)
    if not name:
        from bethink.agents.transcript import read_head

        if not read_head(path, PEEK).strip(BLANK):
            raise InvalidInput(
                f"{path} is empty.", "Give another file, or a folder of transcripts."
            )
        raise InvalidInput(
            f"{path} is not a transcript of a known agent.",
            f"Name the agent with --host {'|'.join(names())}, or import a document with `bethink import`.",
        )
    return find(name).transcripts.read(path, position or START)


def detect(path: Path) -> str | None:
    """Return the name of the agent that wrote a transcript, by the first lines of the file."""
    from bethink.agents.base import read_object
    from bethink.agents.transcript import open_transcript, read_line

    with open_transcript(path) as file:
        head = file.read(PEEK)
        if len(head) == PEEK and b"\n" not in head:  # an image in the first message
            file.seek(0)
            head = read_line(file)[0] or head
    every = plugins.AGENTS.all()
    own = [agent for agent in every if agent.folder or agent.transcripts.project_patterns]
    if host := _first(own, lambda agent: agent.transcripts.owns_file(path, head)):
        return host
    # Plain chats come last: they have no fixed location, and anything with a role looks like one.
    by_place = sorted(every, key=lambda agent: not agent.folder)
    for entry in filter(None, map(read_object, head.lstrip(BLANK).splitlines()[:_TRIED])):
        if host := _first(by_place, lambda agent: agent.transcripts.owns_line(entry)):  # noqa: B023
            return host
    return _first(every, lambda agent: agent.transcripts.owns_file(path, head)) or None


def _first(every: Iterable[Agent], owns: Callable[[Agent], bool]) -> str:
    """Return the name of the first agent that recognises a transcript, '' if none does."""
    names = (agent.name for agent in every if plugins.AGENTS.ask(agent, owns, default=False))
    return next(names, "")


def locate(host: str, environment: Mapping[str, str], home: Path) -> list[Path]:
    """Return the transcripts that an agent keeps on this machine, newest first."""
    agent = find(host)
    folder, patterns = _place(agent, environment, home)
    paths = {path for pattern in patterns for path in folder.glob(pattern)}
    if named := environment.get(agent.transcripts.variable):
        paths.add(folder / named)
    found: dict[Path, float] = {}
    for path in paths:
        with suppress(OSError):
            if path.name not in agent.transcripts.ignored:
                found[path] = path.stat().st_mtime
    return sorted(found, key=lambda path: (-found[path], path))


def locate_in(folder: Path) -> list[tuple[str, Path]]:
    """Return the transcripts that agents keep in a project's folder, each with its agent."""
    found = []
    for agent in plugins.AGENTS.all():
        for pattern in agent.transcripts.project_patterns:
            with suppress(OSError):
                found += [(agent.name, path) for path in sorted(folder.glob(pattern))]
    return [(name, path) for name, path in found if path.is_file()]


def is_kept(host: str, path: Path, environment: Mapping[str, str], home: Path) -> bool:
    """Return True if a file lies where an agent keeps its transcripts. Links are resolved."""
    agent = plugins.AGENTS.find(host)
    if agent is None:
        return False
    named = environment.get(agent.transcripts.variable)
    for places in (environment, {}):
        folder, patterns = _place(agent, places, home)
        if any(_matches(path, folder, one) for one in (*patterns, *([named] if named else []))):
            return True
    return False


def _place(
    agent: Agent, environment: Mapping[str, str], home: Path
) -> tuple[Path, tuple[str, ...]]:
    """Return the folder of an agent's transcripts and the patterns of their names."""
    folder = find_folder(agent.transcripts.folder or agent.folder, environment, home)
    return folder, tuple(agent.transcripts.patterns)


def _matches(path: Path, folder: Path, pattern: str) -> bool:
    """Return True if a pattern in a folder names a file, after links are resolved."""
    parts = pattern.split("/")
    fixed = list(takewhile(lambda part: "*" not in part, parts[:-1]))
    try:
        real, top = path.resolve(), folder.joinpath(*fixed).resolve()
        below = real.relative_to(top).as_posix()
    except (OSError, ValueError, RuntimeError):
        return False
    pieces = re.split(r"(\*\*/|\*)", "/".join(parts[len(fixed) :]))
    wild = {"**/": "(?:.*/)?", "*": "[^/]*"}
    return (
        re.fullmatch("".join(wild.get(one) or re.escape(one) for one in pieces), below) is not None
    )
