"""Gemini CLI: hooks and the MCP server in its settings, skills where several agents look for them. It counts time in milliseconds."""

from __future__ import annotations

from pathlib import Path

from bethink.install.entries import Entry
from bethink.install.host import SECONDS, SERVER, Place, Target, hook_line, server, skills

NAME = "Gemini CLI"
PROGRAM = "gemini"
EVENTS = {
    "SessionStart": "session-start",
    "BeforeAgent": "prompt",
    "AfterAgent": "stop",
    "PreCompress": "pre-compact",
    "SessionEnd": "session-end",
}


def folder(place: Place) -> Path:
    return place.folder(".gemini")


def targets(place: Place) -> list[Target]:
    settings = folder(place) / "settings.json"
    return [
        Target("mcp", settings, (Entry("member", ("mcpServers", SERVER), server(place)),)),
        Target(
            "hooks",
            settings,
            tuple(
                Entry("hook", ("hooks", name), _group(place, event))
                for name, event in EVENTS.items()
            ),
        ),
        *skills("gemini", place.folder(".agents") / "skills"),
    ]


def _group(place: Place, event: str) -> dict[str, object]:
    line = hook_line(place, event, "gemini")
    return {
        "hooks": [
            {
                "type": "command",
                "name": f"bethink-{event}",
                "command": line,
                "timeout": SECONDS * 1000,
            }
        ]
    }


def notes(place: Place) -> list[str]:
    return (
        ["Gemini CLI runs hooks of a project only in folders that you trust."]
        if place.root is not None
        else []
    )
