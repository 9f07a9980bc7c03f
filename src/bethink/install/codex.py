"""Codex: the MCP server in `config.toml`, hooks in `hooks.json` beside it, skills where several agents look for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bethink.errors import BethinkError
from bethink.install import toml
from bethink.install.entries import Entry
from bethink.install.host import (
    SECONDS,
    SERVER,
    USUAL_EVENTS,
    Place,
    Target,
    hook_line,
    server,
    skills,
)
from bethink.text import textfile

NAME = "Codex"
PROGRAM = "codex"
EVENTS = USUAL_EVENTS
LAST_SECONDS = 3  # the most that Codex gives a hook at the end of a session
EDITING = "apply_patch|Edit|Write"


def folder(place: Place) -> Path:
    return place.folder(".codex", "CODEX_HOME")


def targets(place: Place) -> list[Target]:
    return [
        Target(
            "mcp",
            folder(place) / "config.toml",
            (Entry("table", ("mcp_servers", SERVER), server(place)),),
        ),
        Target("hooks", folder(place) / "hooks.json", tuple(_hooks(place)), strict=True),
        *skills("codex", place.folder(".agents") / "skills"),
    ]


def _hooks(place: Place) -> list[Entry]:
    found = [
        Entry("hook", ("hooks", name), {"hooks": [_handler(place, event)]})
        for name, event in EVENTS.items()
    ]
    if place.tool_hooks:
        found.append(
            Entry(
                "hook",
                ("hooks", "PreToolUse"),
                {"matcher": EDITING, "hooks": [_handler(place, "pre-tool")]},
            )
        )
    return found


def _handler(place: Place, event: str) -> dict[str, object]:
    seconds = LAST_SECONDS if event == "session-end" else SECONDS
    return {"type": "command", "command": hook_line(place, event, "codex"), "timeout": seconds}


def plugin(place: Place) -> str:
    """Our plugin, where the configuration switches it on."""
    known = _configuration(place._replace(root=None)).get("plugins")
    named = known.items() if isinstance(known, dict) else ()
    return next(
        (
            name
            for name, one in named
            if name.partition("@")[0] == SERVER
            and isinstance(one, dict)
            and one.get("enabled") is True
        ),
        "",
    )


def _configuration(place: Place) -> dict[str, Any]:
    try:
        return toml.parse(textfile.read(folder(place) / "config.toml") or "")
    except BethinkError:
        return {}


def notes(place: Place) -> list[str]:
    trust = (
        ["Codex reads a project's files only if you trust the project."]
        if place.root is not None
        else []
    )
    hooks = _configuration(place).get("hooks")
    if isinstance(hooks, dict) and any(isinstance(one, list) for one in hooks.values()):
        trust.append(
            "Codex has hooks in config.toml as well; it warns about two places and runs those of both."
        )
    return [
        *trust,
        "Codex runs hooks only after you trust them: start it once and say yes when it asks, or type /hooks there.",
    ]
