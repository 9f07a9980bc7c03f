"""Claude Code: hooks in its settings, the MCP server beside them (user) or in `.mcp.json` (project), skills in its own folder.

With `warm` a prompt is answered by the MCP server that runs anyway, instead of a process of its own. Never both: they run at the
same time, so neither would know what the other gave.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bethink.install.entries import PROMPT_TOOL, Entry
from bethink.install.host import (
    SECONDS,
    SERVER,
    USUAL_EVENTS,
    Place,
    Target,
    enabled_plugin,
    hook_line,
    server,
    settings_of,
    skills,
)

NAME = "Claude Code"
PROGRAM = "claude"
EVENTS = USUAL_EVENTS
EDITING = (
    "Edit|MultiEdit|Write|NotebookEdit"  # the tools before which gotchas about a file are told
)
# What the MCP tool is told about a prompt.
INPUT = {
    "prompt": "${prompt}",
    "session_id": "${session_id}",
    "cwd": "${cwd}",
    "source": "${source}",
}


def folder(place: Place) -> Path:
    return place.folder(".claude", "CLAUDE_CONFIG_DIR")


def targets(place: Place) -> list[Target]:
    return [
        Target(
            "mcp",
            _servers(place),
            (Entry("member", ("mcpServers", SERVER), {"type": "stdio", **server(place)}),),
            strict=True,
        ),
        Target("hooks", folder(place) / "settings.json", tuple(_hooks(place)), strict=True),
        *skills("claude", folder(place) / "skills"),
    ]


def _servers(place: Place) -> Path:
    if place.root is not None:
        return place.root / ".mcp.json"
    moved = place.environment.get("CLAUDE_CONFIG_DIR")
    return (Path(moved).expanduser() if moved else place.home) / ".claude.json"


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


def _handler(place: Place, event: str) -> dict[str, Any]:
    if event == "prompt" and place.warm:
        return {
            "type": "mcp_tool",
            "server": SERVER,
            "tool": PROMPT_TOOL,
            "input": INPUT,
            "timeout": SECONDS,
        }
    if (
        place.root is not None
    ):  # Copilot CLI reads a project's file as well, and would run the command without its arguments
        return {"type": "command", "command": hook_line(place, event, "claude"), "timeout": SECONDS}
    args = [*place.words[1:], "hook", event, "--host", "claude"]
    return {"type": "command", "command": place.words[0], "args": args, "timeout": SECONDS}


def plugin(place: Place) -> str:
    return enabled_plugin(folder(place._replace(root=None)) / "settings.json")


def blocked(place: Place) -> str:
    off = settings_of(folder(place) / "settings.json").get("disableAllHooks") is True
    return "disableAllHooks is set in the settings, so no hook runs." if off else ""


def notes(place: Place) -> list[str]:
    if place.root is not None:
        return [
            "Claude Code asks once whether it may use the server of .mcp.json. Sessions that run already are not connected."
        ]
    return ["Claude Code sessions that run already are not connected; new ones are."]
