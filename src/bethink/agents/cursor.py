"""Cursor. It never names its transcripts, and they carry no times."""

from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents.agent import (
    Agent,
    HookDialect,
    InstallFiles,
    PermissionRules,
    TranscriptFiles,
)
from bethink.model import Values

if TYPE_CHECKING:
    from bethink.agents.base import Fields, Position
    from bethink.agents.transcript import Transcript


# Events whose answer adds context.
_CONTEXT = ("session-start", "tool", "tool-failure")


def read(path: Path, position: "Position") -> "Transcript":
    from bethink.agents.cursor_transcript import CursorTranscript

    return CursorTranscript(path, position)


def owns_line(entry: "Fields") -> bool:
    speaks = entry.get("role") in ("user", "assistant") and not entry.text("type")
    return speaks and isinstance(entry.get("message"), dict)


def answer(event: str, context: str) -> Values | None:
    if event == "prompt":
        return {"additional_context": context, "continue": True}
    return {"additional_context": context} if event in _CONTEXT else None


def deny(reason: str) -> Values:
    return {"permission": "deny", "user_message": reason, "agent_message": reason}


def has_failed(fields: Values, id: str, output: str) -> bool | None:
    status = fields.get("exit_code", fields.get("exitCode"))
    return status != 0 if isinstance(status, int) else None


AGENT = Agent(
    name="cursor",
    title="Cursor",
    program="cursor-agent",
    folder=".cursor",
    marks=("CURSOR_AGENT",),
    processes=("cursor-agent", "cursor-agent/versions"),
    transcripts=TranscriptFiles(
        read, owns_line, patterns=("projects/*/agent-transcripts/**/*.jsonl",), timed=False
    ),
    hooks=HookDialect(
        answer,
        events={
            "sessionStart": "session-start",
            "beforeSubmitPrompt": "prompt",
            "preToolUse": "tool-before",
            "postToolUse": "tool",
            "postToolUseFailure": "tool-failure",
            "stop": "stop",
            "subagentStop": "subagent-stop",
            "preCompact": "pre-compact",
            "sessionEnd": "session-end",
        },
        session=("session_id", "conversation_id"),
        directory=("cwd", "workspace_roots"),
        subagent=("agent_type", "subagent_type"),
        deny=deny,
        has_failed=has_failed,
        names_transcript=False,
        project_variables=("CURSOR_PROJECT_DIR", "CLAUDE_PROJECT_DIR"),
    ),
    install=InstallFiles(
        servers=("mcp.json",),
        hooks="hooks.json",
        hook={"command": "$line", "timeout": 10},
        grouped=False,
        skills=".cursor/skills",
        start='{\n  "version": 1\n}\n',
        # Cursor makes this file. A list in `permissions.json` would replace the one in its window.
        permission=PermissionRules(
            "Mcp(bethink:{tool})", ("permissions", "allow"), file="cli-config.json", optional=True
        ),
        note="Cursor reads its hooks and servers when it starts.",
    ),
)
