"""What connecting an agent takes: which files it reads, what belongs into them, and by which command Bethink is started.

An `Agent` is the description that each agent's module gives of itself; `Agent.list_files` turns it into files with entries, the same
way for all of them. Agents are often started where PATH is not the shell's, so hooks and servers get an absolute path. A link such as
`~/.local/bin/bethink` is kept as it is: it survives an upgrade, and what it points to may not.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bethink import skills
from bethink.errors import BethinkError
from bethink.hosts.edit import SERVER, HostEntry, is_empty, parse
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
PARTS = ("mcp", "hooks", "skills")


class InstallPlace(NamedTuple):
    """Whose agents are connected, and with what command."""

    home: Path
    environment: Mapping[str, str]
    words: tuple[str, ...] = ()  # that start Bethink
    warm: bool = False  # whether a prompt is answered by the MCP server instead of a new process
    allow_reads: bool = False  # whether the agent need not ask before tools that only read

    def server(self) -> dict[str, Any]:
        """How the MCP server is started, in the words that most hosts use."""
        return {"command": self.words[0], "args": [*self.words[1:], "mcp"]}

    def hook_words(self, event: str, host: str) -> tuple[str, ...]:
        return (*self.words, "hook", event, "--host", host)

    def hook_line(self, event: str, host: str) -> str:
        """The same as one line for the shell that hosts use."""
        words = self.hook_words(event, host)
        return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


class HostFile(NamedTuple):
    """One file that a host reads, and what belongs into it: entries, or the whole text. With neither, nothing of ours does."""

    path: Path
    entries: tuple[HostEntry, ...] = ()
    text: str | None = None
    part: str = ""  # what it is for; empty for several parts
    strict: bool = False  # whether the host ignores a file with comments or trailing commas
    start: str = ""  # what a file begins with that is not there yet


class HostFolder(NamedTuple):
    """A folder of a host: in the user's home, or where a variable of the environment says."""

    default: str
    variable: str = ""
    inside: str = ""

    def find(self, environment: Mapping[str, str], home: Path) -> Path:
        moved = environment.get(self.variable)
        return (Path(moved).expanduser() if moved else home / self.default) / self.inside


SHARED_SKILLS = HostFolder(".agents/skills")  # where several agents look for them


class Agent(NamedTuple):
    """Where an agent keeps what, and how it calls us. Files are below its folder."""

    name: str
    program: str
    folder: HostFolder
    servers: Sequence[str]  # files of MCP servers: the first that is there, else the last
    server: Callable[[InstallPlace], dict[str, Any]]
    hooks: str  # the file of hooks, or of a plugin that calls us
    hook: Callable[[InstallPlace, str], dict[str, Any]]
    skills: HostFolder = SHARED_SKILLS
    events: Mapping[str, str] = USUAL_EVENTS  # its name of each event → ours; none with a plugin
    grouped: bool = True  # whether a hook stands in a group of hooks
    server_path: tuple[str, str] = ("mcpServers", SERVER)
    server_folder: HostFolder | None = None  # where it is another one
    start: str = ""  # of a new file of hooks
    strict: Sequence[str] = ()  # files in which it reads no comments
    reads: Sequence[str] = ()  # rules by which it does not ask before what only reads
    plugins: str = ""  # the file in which plugins are switched on
    notes: Sequence[str] = ()  # what the user should know after an installation

    def find_folder(self, where: InstallPlace) -> Path:
        return self.folder.find(where.environment, where.home)

    def list_entries(self, where: InstallPlace) -> list[HostEntry]:
        """What belongs into its files."""
        entries = [HostEntry("member", self.server_path, self.server(where))]
        for name, event in self.events.items():
            hook = self.hook(where, event)
            value = {"hooks": [hook]} if self.grouped else hook
            entries.append(HostEntry("hook", ("hooks", name), value))
        rules = self.reads if where.allow_reads else ()
        return [*entries, *(HostEntry("item", ("permissions", "allow"), rule) for rule in rules)]

    def list_files(self, where: InstallPlace, parts: Sequence[str] = PARTS) -> list[HostFile]:
        """The files of these parts, no two of them the same one."""
        above = (self.server_folder or self.folder).find(where.environment, where.home)
        there = [name for name in self.servers if os.path.lexists(above / name)]
        servers = above / (*there, self.servers[-1])[0]
        hooks = self.find_folder(where) / self.hooks
        files: dict[Path, HostFile] = {}
        for entry in self.list_entries(where):
            part = "hooks" if entry.kind == "hook" else "mcp"
            path = servers if entry.kind == "member" else hooks
            if part in parts:
                start = self.start if path == hooks else ""
                fresh = HostFile(path, part=part, strict=path.name in self.strict, start=start)
                known = files.get(path, fresh)
                both = part if known.part == part else ""
                files[path] = known._replace(entries=(*known.entries, entry), part=both)
        if not self.events and "hooks" in parts:
            plugin = skills.opencode_plugin(where.words)
            files[hooks] = HostFile(hooks, text=plugin, part="hooks")
        folder = self.skills.find(where.environment, where.home)
        for name, text in skills.render(self.name).items() if "skills" in parts else ():
            files[folder / name] = HostFile(folder / name, text=text, part="skills")
        return list(files.values())


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


def is_toml(path: Path) -> bool:
    return path.suffix == ".toml"


def read_settings(path: Path) -> dict[str, Any]:
    """The settings in a file of a host; nothing where there are none, or none that can be understood."""
    try:
        found = parse(textfile.read(path) or "", is_toml(path))
    except BethinkError:
        return {}
    return found if isinstance(found, dict) else {}


def find_plugin(agent: Agent, where: InstallPlace) -> str:
    """The name of our plugin, where an agent's settings switch it on: it does what hooks, server and skills do."""
    settings = read_settings(agent.find_folder(where) / agent.plugins) if agent.plugins else {}
    plugins = settings.get("enabledPlugins", settings.get("plugins"))  # the latter in TOML
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
