"""GitHub Copilot CLI. With Claude Code's event names it also sends Claude Code's fields.

It reads context at the top level of an answer only, and names the transcript when a turn is over.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents.agent import (
    Agent,
    HookDialect,
    InstallFiles,
    TranscriptFiles,
    find_folder,
    find_vscode,
)
from bethink.model import Values
from bethink.system import WINDOWS

if TYPE_CHECKING:
    from bethink.agents.base import Fields, Position
    from bethink.agents.transcript import Transcript

# Events whose answer adds context.
_CONTEXT = ("session-start", "subagent-start", "prompt", "tool", "tool-failure")
# The key of a command for the system's shell.
_SHELL = {"powershell": "$powershell"} if WINDOWS else {"bash": "$line"}
# Copilot denies a call if a hook before it fails, such as one whose program is gone.
_BEFORE = {"powershell": "$powershell_always"} if WINDOWS else {"bash": "$always"}
_FOLDER = "${COPILOT_HOME:-.copilot}"


def read(path: Path, position: "Position") -> "Transcript":
    from bethink.agents.copilot_transcript import CopilotTranscript

    return CopilotTranscript(path, position)


def owns_line(entry: "Fields") -> bool:
    return "." in entry.text("type") and isinstance(entry.get("data"), dict)


def answer(event: str, context: str) -> Values | None:
    return {"additionalContext": context} if event in _CONTEXT else None


def deny(reason: str) -> Values:
    return {"permissionDecision": "deny", "permissionDecisionReason": reason}


def has_failed(fields: Values, id: str, output: str) -> bool | None:
    """Tell a failed command by the trailer of its output: its result type says success."""
    status = re.search(r"exit code (-?\d{1,5})>\s*\Z", output)
    return int(status[1]) != 0 if status else None


def find_directory(environment: Mapping[str, str], home: Path) -> str:
    """Return the directory of the session that started this process as a plugin's MCP server, or ''.

    Copilot starts such servers in the plugin's folder and names no roots, but it keeps a file about each session.
    """
    session = environment.get("COPILOT_AGENT_SESSION_ID", "")
    is_name = session.strip(".") and not set(session) & {*"/\\"}
    if not environment.get("COPILOT_PLUGIN_ROOT") or not is_name:
        return ""
    import yaml

    folder = find_folder(_FOLDER, environment, home)
    try:
        with (folder / "session-state" / session / "workspace.yaml").open("rb") as stream:
            about = yaml.safe_load(stream.read(64 << 10))
    except (OSError, ValueError, yaml.YAMLError, RecursionError):
        return ""
    directory = about.get("cwd") if isinstance(about, dict) else ""
    return directory if isinstance(directory, str) else ""


AGENT = Agent(
    name="copilot",
    title="Copilot CLI",
    program="copilot",
    folder=_FOLDER,
    marks=("COPILOT_CLI",),
    processes=("copilot", "@github/copilot"),
    transcripts=TranscriptFiles(
        read, owns_line, patterns=("session-state/*/events.jsonl", "session-state/*.jsonl")
    ),
    hooks=HookDialect(
        answer,
        events={
            "SessionStart": "session-start",
            "UserPromptSubmit": "prompt",
            "SubagentStart": "subagent-start",
            "PreToolUse": "tool-before",
            "PostToolUse": "tool",
            "PostToolUseFailure": "tool-failure",
            "Stop": "stop",
            "SubagentStop": "subagent-stop",
            "PreCompact": "pre-compact",
            "SessionEnd": "session-end",
        },
        session=("session_id", "sessionId"),
        transcript=("transcript_path", "transcriptPath"),
        subagent=("agent_type", "agentName"),
        deny=deny,
        has_failed=has_failed,
        names_transcript=False,
        find_runner=find_vscode,
        project_variables=("COPILOT_PROJECT_DIR", "CLAUDE_PROJECT_DIR"),
    ),
    install=InstallFiles(
        servers=("mcp-config.json",),
        server={"type": "local", "command": "$program", "args": "$args", "tools": ["*"]},
        hooks="hooks/bethink.json",
        hook={"type": "command", **_SHELL, "timeoutSec": 10},
        before=_BEFORE,
        grouped=False,
        start='{\n  "version": 1\n}\n',
        strict=("bethink.json",),
        plugins="settings.json",
    ),
)
