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

from bethink.text import compile_late

# Variables of Claude Code, Codex, Gemini CLI, opencode, Cursor and Copilot CLI, and a common one of other agents.
MARKERS = (
    "CLAUDECODE",
    "CODEX_THREAD_ID",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_CI",
    "GEMINI_CLI",
    "OPENCODE",
    "CURSOR_AGENT",
    "COPILOT_CLI",
    "AI_AGENT",
)
# The program of an agent, or the script of one that a runtime such as node executes.
_PROGRAM = compile_late(
    r"(?:^|[/\\])(?:claude|codex|gemini|opencode|copilot|cursor-agent)(?:\.(?:exe|cmd|[cm]?js))?$"
    r"|[/\\](?:claude|cursor-agent)[/\\]versions[/\\]"
    r"|[/\\](?:@anthropic-ai[/\\]claude-code|@openai[/\\]codex|@google[/\\]gemini-cli|@github[/\\]copilot|opencode-ai)[/\\]"
)
_RUNTIMES = compile_late(r"(?:^|[/\\])(?:node|bun|deno)(?:\.exe)?$")
_COMPOSED = compile_late(r"[|<;&\n`]|\$\(")
MOST_ANCESTORS = 64


def find_agent(thorough: bool = True) -> str:
    """Return the variable or program that shows that an agent runs this command; '' for a person.

    Only a `thorough` look at the parent processes finds an agent that unset its variables. Without
    /proc that takes some milliseconds.
    """
    for name in MARKERS:
        if os.environ.get(name):
            return name
    if not thorough:
        return ""
    return next((words[0] for words in list_ancestors() if is_agent_program(words)), "")


def is_hook_forged() -> bool:
    """Return True if a command of an agent, not the agent itself, started this hook or MCP server.

    Agents start hooks directly, or through a shell that does nothing else. To impersonate the user,
    an agent would run the hook from a script or a composed command, or run another agent and send
    it a message.
    """
    lines = list(list_ancestors())
    agents = [at for at, words in enumerate(lines) if is_agent_program(words)]
    if not agents:
        return bool(lines) and any(os.environ.get(name) for name in MARKERS)
    is_nested = agents[-1] - agents[0] >= len(agents)  # something else runs between two agents
    return is_nested or not all(map(_is_launcher, lines[: agents[0]]))


def is_agent_program(words: Sequence[str]) -> bool:
    """Return True if a command line is that of an agent."""
    is_script = len(words) > 1 and _RUNTIMES.search(words[0])
    return any(_PROGRAM.search(word) for word in words[: 2 if is_script else 1])


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
