"""Claude Code. Its project hooks are also run by Copilot CLI and Cursor, which have their own from us."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents.agent import (
    USUAL_EVENTS,
    Agent,
    HookDialect,
    InstallFiles,
    PermissionRules,
    TranscriptFiles,
    find_vscode,
    nest_context,
    nest_denial,
)
from bethink.model import Values

if TYPE_CHECKING:
    from bethink.agents.base import Fields, Position
    from bethink.agents.transcript import Transcript

# Events whose answer adds context. An answer to any other would do something else: after Stop, the agent would go on.
_CONTEXT = {
    "session-start": "SessionStart",
    "prompt": "UserPromptSubmit",
    "subagent-start": "SubagentStart",
    "tool": "PostToolBatch",
    "tool-failure": "PostToolUseFailure",
}
BORROWERS = ("COPILOT_CLI", "CURSOR_VERSION")  # variables of the agents that run its hooks
# Keys of its lines.
KEYS = {"uuid", "parentUuid", "leafUuid", "sessionId", "snapshot"}


def read(path: Path, position: "Position") -> "Transcript":
    from bethink.agents.claude_transcript import ClaudeTranscript

    return ClaudeTranscript(path, position)


def owns_line(entry: "Fields") -> bool:
    type, keys = entry.text("type"), entry.keys()
    # Lines of Codex, Gemini CLI and Copilot CLI may have some of these keys, too.
    others = isinstance(entry.get("payload"), dict) or "projectHash" in keys or "." in type
    return bool(type) and not others and bool(KEYS & keys)


def answer(event: str, context: str) -> Values | str | None:
    if event == "pre-compact":
        return context  # it goes into the prompt of the summary
    return nest_context(_CONTEXT[event], context) if event in _CONTEXT else None


def has_failed(fields: Values, id: str, output: str) -> bool | None:
    """Tell a failed call by its output, the only place where a batch of calls says so."""
    status = re.match(r"Exit code (\d{1,5})\b", output)
    return int(status[1]) != 0 if status else output.startswith("<tool_use_error>")


def is_borrowed(environment: Mapping[str, str]) -> bool:
    return not environment.get("CLAUDECODE") and any(map(environment.get, BORROWERS))


AGENT = Agent(
    name="claude",
    title="Claude Code",
    program="claude",
    folder="${CLAUDE_CONFIG_DIR:-.claude}",
    marks=("CLAUDECODE",),
    processes=("claude", "claude/versions", "@anthropic-ai/claude-code"),
    transcripts=TranscriptFiles(
        read,
        owns_line,
        patterns=("projects/*/**/*.jsonl",),
        ignored=("journal.jsonl",),  # about the work of its sub-agents
    ),
    hooks=HookDialect(
        answer,
        events={
            **USUAL_EVENTS,
            "SubagentStart": "subagent-start",
            "PreToolUse": "tool-before",
            "PostToolUseFailure": "tool-failure",
            "PostToolBatch": "tool",
        },
        deny=nest_denial,
        has_failed=has_failed,
        find_runner=find_vscode,
        project_variables=("CLAUDE_PROJECT_DIR",),
        is_borrowed=is_borrowed,
    ),
    install=InstallFiles(
        servers=(".claude.json",),
        server_folder="${CLAUDE_CONFIG_DIR:-.}",
        server={"type": "stdio", "command": "$program", "args": "$args"},
        hooks="settings.json",
        hook={"type": "command", "command": "$program", "args": "$args", "timeout": 10},
        matchers={
            "tool-before": "Bash|Edit|MultiEdit|Write|NotebookEdit",
            "tool-failure": "Bash|Read|mcp__.*",
        },
        warm={
            "type": "mcp_tool",
            "server": "bethink",
            "tool": "bethink_prompt",
            "input": {
                "prompt": "${prompt}",
                "session_id": "${session_id}",
                "transcript_path": "${transcript_path}",
                "cwd": "${cwd}",
                "source": "${source}",
            },
            "timeout": 10,
        },
        skills="${CLAUDE_CONFIG_DIR:-.claude}/skills",
        skill_fields=(),
        strict=(".claude.json", "settings.json"),
        plugins="settings.json",
        note="Claude Code sessions that run already are not connected; new ones are.",
        permission=PermissionRules(
            "mcp__bethink__{tool}",
            ("permissions", "allow"),
            file="settings.json",
            others=("Bash(bethink recall *)",),
        ),
    ),
)
