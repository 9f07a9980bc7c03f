"""What connecting an agent takes: for whom it is done, by which command Bethink is started, which files the agent reads.

Hosts are often started where PATH is not the shell's, so hooks and servers get an absolute path. A link such as
`~/.local/bin/bethink` is kept as it is: it survives an upgrade, and what it points to may not.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bethink import skills
from bethink.errors import BethinkError
from bethink.hosts.edit import SERVER, HostEntry, is_empty, parse_toml, read_value
from bethink.text import textfile

NAME = "bethink"
SECONDS = 10  # that a host waits for a hook. The hook has a shorter limit of its own
# What most hosts call their events, and what ours are called.
USUAL_EVENTS = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "prompt",
    "Stop": "stop",
    "SubagentStop": "subagent-stop",
    "PreCompact": "pre-compact",
    "PostCompact": "post-compact",
    "SessionEnd": "session-end",
}
VERSIONED = '{\n  "version": 1\n}\n'  # without it some hosts read no hooks
# Where programs live that are gone after a while: those of `uvx` and `pipx run`.
PASSING = ("/uv/archive-v", "/uv/builds-v", "/uv/environments-v", "/pipx/.cache/")


class InstallPlace(NamedTuple):
    """For whom a host is connected: its user, or one project."""

    home: Path
    environment: Mapping[str, str]
    root: Path | None = None  # of the project
    words: tuple[str, ...] = ()  # that start Bethink
    warm: bool = False  # whether a prompt is answered by the MCP server instead of a new process
    allow_reads: bool = (
        False  # whether tools that only read need not be asked for, where a host asks
    )

    def folder(self, name: str, variable: str = "") -> Path:
        """A host's folder: in the project, where a variable says, or in the user's home."""
        if self.root is not None:
            return self.root / name
        moved = self.environment.get(variable, "") if variable else ""
        return Path(moved).expanduser() if moved else self.home / name

    def server(self) -> dict[str, Any]:
        """How the MCP server is started, in the words that most hosts use."""
        return {"command": self.words[0], "args": [*self.words[1:], "mcp"]}

    def hook_words(self, event: str, host: str) -> tuple[str, ...]:
        return (*self.words, "hook", event, "--host", host)

    def hook_line(self, event: str, host: str) -> str:
        return shell_line(self.hook_words(event, host))


class HostFile(NamedTuple):
    """One file that a host reads, and what belongs into it: entries, or the whole text. With neither, nothing of ours does."""

    part: str  # mcp, hooks or skills
    path: Path
    entries: tuple[HostEntry, ...] = ()
    text: str | None = None
    strict: bool = False  # whether the host ignores a file with comments or trailing commas
    start: str = ""  # what a file begins with that is not there yet


def server_target(path: Path, value: Mapping[str, Any], strict: bool = False) -> HostFile:
    entry = HostEntry("member", ("mcpServers", SERVER), dict(value))
    return HostFile("mcp", path, (entry,), strict=strict)


def hook_entries(
    events: Mapping[str, str], make: Callable[[str], dict[str, Any]], grouped: bool = True
) -> tuple[HostEntry, ...]:
    """A hook for each event, in the list of that event; most hosts want it in a group."""
    made = {name: make(event) for name, event in events.items()}
    return tuple(
        HostEntry("hook", ("hooks", name), {"hooks": [hook]} if grouped else hook)
        for name, hook in made.items()
    )


def skill_targets(host: str, folder: Path) -> list[HostFile]:
    rendered = skills.render(host)
    return [HostFile("skills", folder / name, text=text) for name, text in rendered.items()]


def why_ignored(target: HostFile, text: str, title: str) -> str:
    """Why a host ignores the whole file although entries can be found in it; '' if it does not."""
    if not target.strict or is_empty(text):
        return ""
    try:
        json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        where = f" in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        return f"{title} ignores {target.path}: it reads no comments and no trailing commas{where}."
    return ""


def read_settings(path: Path) -> dict[str, Any]:
    """The settings in a file of a host; nothing where there are none, or none that can be understood."""
    try:
        found = parse_settings(path, textfile.read(path) or "")
    except BethinkError:
        return {}
    return found if isinstance(found, dict) else {}


def parse_settings(path: Path, text: str) -> Any:
    return parse_toml(text) if path.suffix == ".toml" else read_value(text)


def find_plugin(path: Path) -> str:
    """The name of our plugin, where such settings switch it on: as true, or in a table of its own."""
    settings = read_settings(path)
    plugins = settings.get("plugins" if path.suffix == ".toml" else "enabledPlugins")
    for name, on in plugins.items() if isinstance(plugins, dict) else ():
        if name.partition("@")[0] == NAME and (on.get("enabled") if isinstance(on, dict) else on):
            return str(name)
    return ""


# The command


def running_command() -> tuple[str, ...]:
    """The words that start this very program again."""
    beside = Path(sys.executable).parent / (f"{NAME}.exe" if os.name == "nt" else NAME)
    for candidate in filter(None, (_find_called_path(), str(beside))):
        is_program = os.access(candidate, os.X_OK) and Path(candidate).is_file()
        if is_program and not is_passing(candidate):
            return (candidate,)
    for folder in os.get_exec_path():
        if (found := shutil.which(NAME, path=folder)) and not is_passing(found):
            return (str(Path(found).absolute()),)
    # -P: a folder of that name in the project that a host works in is not its program.
    return (sys.executable, "-P", "-m", NAME)


def portable_command() -> tuple[str, ...]:
    """The words that start it on the machine of everyone who has it: its bare name, where that leads here."""
    found, here = shutil.which(NAME), running_command()
    same = found and len(here) == 1 and Path(found).resolve() == Path(here[0]).resolve()
    return (NAME,) if same else here


def is_passing(program: str) -> bool:
    """Whether a program is in a place that is cleared now and then."""
    return any(part in program.replace("\\", "/") for part in PASSING)


def _find_called_path() -> str:
    """The program as it was called, if it was called by its name."""
    word = sys.argv[0] if sys.argv else ""
    if Path(word).name.removesuffix(".exe") != NAME:
        return ""
    found = word if os.sep in word else shutil.which(word)
    return str(Path(found).absolute()) if found else ""


def shell_line(words: tuple[str, ...]) -> str:
    """The words as one line for the shell that hosts use."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)
