"""GitHub Copilot Chat in VS Code: transcripts in the workspace storage, as Copilot CLI writes them.

VS Code runs the hooks of Claude Code and of Copilot CLI, so `install` adds none here. It reads nested answers, and none at a prompt.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents.agent import (
    COPILOT_CHAT,
    Agent,
    HookDialect,
    InstallFiles,
    TranscriptFiles,
    nest_context,
    nest_denial,
)
from bethink.model import Values

if TYPE_CHECKING:
    from bethink.agents.base import Position
    from bethink.agents.transcript import Transcript

_USERS = (
    ".config/*/User",
    "Library/Application Support/*/User",
    "AppData/Roaming/*/User",
    ".vscode-server/data/User",
)
# The folder of the user's settings on each system.
_SETTINGS = {
    "darwin": "Library/Application Support/Code/User",
    "win32": "${APPDATA:-AppData/Roaming}/Code/User",
}
# Events whose answer adds context.
_CONTEXT = {
    "session-start": "SessionStart",
    "subagent-start": "SubagentStart",
    "tool": "PostToolUse",
}


def read(path: Path, position: "Position") -> "Transcript":
    from bethink.agents.vscode_transcript import VscodeTranscript

    return VscodeTranscript(path, position)


def owns_file(path: Path, head: bytes) -> bool:
    return COPILOT_CHAT in path.parts and path.suffix == ".jsonl" and b'"session.start"' in head


def answer(event: str, context: str) -> Values | None:
    return nest_context(_CONTEXT[event], context) if event in _CONTEXT else None


AGENT = Agent(
    name="vscode",
    title="Copilot Chat in VS Code",
    program="code",
    folder=_SETTINGS.get(sys.platform, "${XDG_CONFIG_HOME:-.config}/Code/User"),
    marks=("COPILOT_AGENT",),
    transcripts=TranscriptFiles(
        read,
        owns_file=owns_file,
        folder=".",
        patterns=tuple(
            f"{user}/workspaceStorage/*/{COPILOT_CHAT}/transcripts/*.jsonl" for user in _USERS
        ),
    ),
    hooks=HookDialect(
        answer,
        events={},
        deny=nest_denial,
        session=("session_id", "sessionId"),
        transcript=("transcript_path", "transcriptPath"),
    ),
    install=InstallFiles(
        servers=("mcp.json",),
        server_path=("servers", "bethink"),
        server={"type": "stdio", "command": "$program", "args": "$args"},
        hooks="",
        note="VS Code runs the hooks of Copilot CLI and Claude Code: `bethink install --copilot` adds them.",
    ),
)
