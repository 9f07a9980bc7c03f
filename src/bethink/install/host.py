"""What all hosts share: where they are looked for, and the shape of what each of them needs."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from bethink.errors import BethinkError
from bethink.install import command, jsonc
from bethink.install.entries import SERVER as SERVER
from bethink.install.entries import Entry
from bethink.text import textfile

HOSTS = ("claude", "codex", "opencode", "copilot", "gemini", "cursor")
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


class Place(NamedTuple):
    """For whom a host is connected: its user, or one project."""

    home: Path
    environment: Mapping[str, str]
    root: Path | None = None  # of the project
    words: tuple[str, ...] = ()  # that start Bethink
    tool_hooks: bool = False
    warm: bool = False  # whether a prompt is answered by the MCP server instead of a new process

    def folder(self, name: str, variable: str = "") -> Path:
        """A host's folder: in the project, where a variable says, or in the user's home."""
        if self.root is not None:
            return self.root / name
        given = self.environment.get(variable, "") if variable else ""
        return Path(given).expanduser() if given else self.home / name


class Target(NamedTuple):
    """One file that a host reads, and what belongs into it."""

    part: str  # mcp, hooks or skills
    path: Path
    entries: tuple[Entry, ...] = ()
    text: str | None = None  # of a file that is ours as a whole
    strict: bool = False  # whether the host reads JSON without comments and trailing commas only


def module(host: str) -> Any:
    """The module of a host: NAME, PROGRAM, folder(place), targets(place), notes(place)."""
    return import_module(f"bethink.install.{host}")


def found(host: str, place: Place) -> bool:
    """Whether a host is here: its folder, or its program."""
    one = module(host)
    folder = one.folder(place._replace(root=None))
    there = os.path.isdir(folder)  # noqa: PTH112  (false, not an error, below an unreadable folder)
    return there or shutil.which(one.PROGRAM, path=place.environment.get("PATH")) is not None


def plugin(host: str, place: Place) -> str:
    """The name of an installed plugin of ours, which does what hooks, server and skills do."""
    known = getattr(module(host), "plugin", None)
    return str(known(place)) if known else ""


def settings_of(path: Path) -> dict[str, Any]:
    """The settings in a JSON file of a host; nothing where there are none, or none that can be understood."""
    try:
        found = jsonc.plain(jsonc.parse(textfile.read(path) or "{}"))
    except BethinkError:
        return {}
    return found if isinstance(found, dict) else {}


def enabled_plugin(path: Path) -> str:
    """Our plugin, where such settings switch it on."""
    enabled = settings_of(path).get("enabledPlugins")
    return (
        next((name for name, on in enabled.items() if on and name.partition("@")[0] == SERVER), "")
        if isinstance(enabled, dict)
        else ""
    )


def ignored(target: Target, text: str, name: str) -> str:
    """Why a host ignores the whole file although its entries can be found in it; '' if it does not."""
    if not target.strict or jsonc.empty(text):
        return ""
    try:
        json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        where = f" in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        return f"{name} ignores {target.path}: it reads no comments and no trailing commas{where}."
    return ""


def blocked(host: str, place: Place) -> str:
    """Why a host runs no hooks, where its settings say so."""
    known = getattr(module(host), "blocked", None)
    return str(known(place)) if known else ""


def server(place: Place) -> dict[str, Any]:
    """How an MCP server is started, in the words that most hosts use."""
    return {"command": place.words[0], "args": [*place.words[1:], "mcp"]}


def hook_words(place: Place, event: str, host: str) -> tuple[str, ...]:
    return (*place.words, "hook", event, "--host", host)


def hook_line(place: Place, event: str, host: str) -> str:
    return command.shell(hook_words(place, event, host))


def skills(host: str, folder: Path) -> list[Target]:
    """The skills, as this host wants them."""
    try:
        rendered = import_module("bethink.skills").render(host)
    except ModuleNotFoundError as error:
        if error.name != "bethink.skills":
            raise
        return []
    return [Target("skills", folder / name, text=text) for name, text in rendered.items()]
