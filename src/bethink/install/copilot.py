"""GitHub Copilot CLI: a file of MCP servers, a hooks file of our own, skills where several agents look for them.

Event names as Claude Code writes them make Copilot send what Claude Code sends.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from bethink.install.entries import Entry
from bethink.install.host import (
    SECONDS,
    SERVER,
    USUAL_EVENTS,
    Place,
    Target,
    enabled_plugin,
    hook_line,
    hook_words,
    server,
    skills,
)

NAME = "Copilot CLI"
PROGRAM = "copilot"
EVENTS = {
    name: event for name, event in USUAL_EVENTS.items() if name != "PostCompact"
}  # which it does not have


def folder(place: Place) -> Path:
    return place.folder(".github" if place.root is not None else ".copilot", "COPILOT_HOME")


def targets(place: Place) -> list[Target]:
    servers = folder(place) / ("mcp.json" if place.root is not None else "mcp-config.json")
    value = {"type": "local", **server(place), "tools": ["*"]}
    hooks = [
        Entry("hook", ("hooks", name), _handler(place, event)) for name, event in EVENTS.items()
    ]
    return [
        Target("mcp", servers, (Entry("member", ("mcpServers", SERVER), value),)),
        Target(
            "hooks",
            folder(place) / "hooks" / "bethink.json",
            (Entry("frame", ("version",), 1), *hooks),
            strict=True,
        ),
        *skills("copilot", place.folder(".agents") / "skills"),
    ]


def _handler(place: Place, event: str) -> dict[str, Any]:
    if os.name == "nt":
        line = "& " + " ".join(
            "'" + word.replace("'", "''") + "'" for word in hook_words(place, event, "copilot")
        )
        return {"type": "command", "powershell": line, "timeoutSec": SECONDS}
    return {"type": "command", "bash": hook_line(place, event, "copilot"), "timeoutSec": SECONDS}


def plugin(place: Place) -> str:
    return enabled_plugin(folder(place._replace(root=None)) / "settings.json")


def notes(place: Place) -> list[str]:
    return (
        ["Copilot CLI runs hooks of a project only in folders that you trust."]
        if place.root is not None
        else []
    )
