"""Cursor: a file of MCP servers, a file of hooks, a folder of skills."""

from __future__ import annotations

from pathlib import Path

from bethink.install.entries import Entry
from bethink.install.host import SECONDS, SERVER, Place, Target, hook_line, server, skills

NAME = "Cursor"
PROGRAM = "cursor-agent"
EVENTS = {
    "sessionStart": "session-start",
    "beforeSubmitPrompt": "prompt",
    "stop": "stop",
    "subagentStop": "subagent-stop",
    "preCompact": "pre-compact",
    "sessionEnd": "session-end",
}


def folder(place: Place) -> Path:
    return place.folder(".cursor")


def targets(place: Place) -> list[Target]:
    hooks = [
        Entry(
            "hook",
            ("hooks", name),
            {"command": hook_line(place, event, "cursor"), "timeout": SECONDS},
        )
        for name, event in EVENTS.items()
    ]
    return [
        Target(
            "mcp",
            folder(place) / "mcp.json",
            (Entry("member", ("mcpServers", SERVER), server(place)),),
        ),
        Target("hooks", folder(place) / "hooks.json", (Entry("frame", ("version",), 1), *hooks)),
        *skills("cursor", folder(place) / "skills"),
    ]


def notes(place: Place) -> list[str]:
    return ["Cursor reads its hooks and servers when it starts."]
