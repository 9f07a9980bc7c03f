"""Find out who started this process: a person, a command of an agent, or the agent itself.

Agents set variables for the commands they run. A command may unset them, so the parent processes
are checked as well. Both are evidence, not proof: a program that runs with the user's rights can do
whatever the user can.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.plugins import AGENTS
from bethink.text import compile_late

if TYPE_CHECKING:
    from bethink.agents.agent import Agent

# Variables that several agents set: any value of the first, the name of an agent in the second.
ANY_AGENT, NAMED_AGENT = "AI_AGENT", "AGENT"
_RUNTIMES = compile_late(r"(?:^|[/\\])(?:node|bun|deno|python[\d.]*)(?:\.exe)?$")
_EXTENSION = compile_late(r"\.(?:exe|cmd|[cm]?js)$")
_COMPOSED = compile_late(r"[|<;&\n`]|\$\(")
MOST_ANCESTORS = 64


def find_agent(thorough: bool = True, packages: bool = False) -> str:
    """Return the variable or program that shows that an agent runs this command; '' for a person.

    Only a `thorough` look at the parent processes finds an agent that unset its variables. Without
    /proc that takes some milliseconds. `packages` asks for the agents of installed packages, too.
    """
    if mark := find_mark(packages):
        return mark
    if not thorough:
        return ""
    agents = list(_list_agents(packages))
    return next((words[0] for words in list_ancestors() if is_agent_program(words, agents)), "")


def find_mark(packages: bool = False) -> str:
    """Return the environment variable that shows that an agent runs this command, or ''."""
    if os.environ.get(ANY_AGENT):
        return ANY_AGENT
    named = os.environ.get(NAMED_AGENT, "")
    if named and AGENTS.knows(named):
        return NAMED_AGENT
    marks = (mark for agent in _list_agents(packages) for mark in agent.marks)
    return next((mark for mark in marks if os.environ.get(mark)), "")


def list_marks() -> list[str]:
    """Return the environment variables of all agents, and those that several set."""
    return [ANY_AGENT, NAMED_AGENT, *(mark for agent in AGENTS.all() for mark in agent.marks)]


def _list_agents(packages: bool) -> Iterator[Agent]:
    """Yield our agents one after the other, so that none is loaded after a match."""
    yield from filter(None, map(AGENTS.find, AGENTS.names()))
    yield from (one for one in AGENTS.all() if not AGENTS.is_ours(one.name)) if packages else ()


def is_hook_forged() -> bool:
    """Return True if a command of an agent, not the agent itself, started this hook or MCP server.

    Agents start hooks directly, or through a shell that does nothing else. To impersonate the user,
    an agent would run the hook from a script or a composed command, or run another agent and send
    it a message.
    """
    lines, known = list(list_ancestors()), list(_list_agents(packages=True))
    agents = [at for at, words in enumerate(lines) if is_agent_program(words, known)]
    if not agents:
        return bool(lines) and bool(find_mark(packages=True))
    is_nested = agents[-1] - agents[0] >= len(agents)  # something else runs between two agents
    return is_nested or not all(map(_is_launcher, lines[: agents[0]]))


def is_agent_program(words: Sequence[str], agents: Sequence[Agent]) -> bool:
    """Return True if a command line is that of one of these agents."""
    is_script = len(words) > 1 and _RUNTIMES.search(
        words[0]
    )  # that a runtime such as node executes
    programs = [word.replace("\\", "/") for word in words[: 2 if is_script else 1]]
    names = {_EXTENSION.sub("", program.rpartition("/")[2]) for program in programs}
    return any(
        process in names or ("/" in process and any(f"/{process}/" in one for one in programs))
        for agent in agents
        for process in agent.processes
    )


def _is_launcher(words: Sequence[str]) -> bool:
    """Return True if a command line only starts a hook or the MCP server, without writing to its stdin."""
    text = " ".join(words)
    starts = "bethink" in text and ("hook" in text or "mcp" in text)
    return starts and not _COMPOSED.search(text)


def list_ancestors() -> Iterator[list[str]]:
    """Yield the command lines of the parent processes, nearest first; nothing if unavailable."""
    read = _read_proc if Path("/proc/self/stat").exists() else _ask_ps
    process = os.getppid()
    for _ in range(MOST_ANCESTORS):
        if process <= 0 or sys.platform == "win32":
            return
        parent, words = read(process)
        if words:
            yield words
        process = parent


def _read_proc(process: int) -> tuple[int, list[str]]:
    """Parent and command line of a process, on Linux."""
    folder = Path("/proc") / str(process)
    try:
        # The name of the program is in parentheses, and may contain some itself.
        parent = int((folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1])
        words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except (OSError, ValueError, IndexError):
        return 0, []
    return parent, [word for word in words if word]


def _ask_ps(process: int) -> tuple[int, list[str]]:
    """Parent and command line of a process, on other systems."""
    import subprocess

    try:
        asked = ["ps", "-o", "ppid=,args=", "-p", str(process)]
        found = subprocess.run(asked, capture_output=True, text=True, timeout=2, check=True).stdout
        parent, _, line = found.strip().partition(" ")
        return int(parent), line.split()
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0, []
