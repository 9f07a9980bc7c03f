"""Codex CLI. It discards an answer with an unknown key, and runs a hook only if the user trusts it."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents.agent import (
    USUAL_EVENTS,
    Agent,
    HookDialect,
    InstallFiles,
    PermissionRules,
    TranscriptFiles,
    nest_context,
    nest_denial,
)
from bethink.model import Values

if TYPE_CHECKING:
    from bethink.agents.base import Fields, Position
    from bethink.agents.transcript import Transcript

# Events whose answer adds context.
_CONTEXT = {
    "session-start": "SessionStart",
    "subagent-start": "SubagentStart",
    "prompt": "UserPromptSubmit",
    "tool": "PostToolUse",
}
# Variables that decide which memory is used. A server gets only the variables that its entry names; a hook gets all.
PLACES = (
    *("BETHINK_HOME", "BETHINK_DATABASE", "BETHINK_TENANT", "BETHINK_USER"),
    *("XDG_DATA_HOME", "XDG_CONFIG_HOME"),
)
TAIL = 400_000  # bytes at the end of a transcript in which a call is looked for


def read(path: Path, position: "Position") -> "Transcript":
    from bethink.agents.codex_transcript import CodexTranscript

    return CodexTranscript(path, position)


def owns_line(entry: "Fields") -> bool:
    return isinstance(entry.get("payload"), dict)


def answer(event: str, context: str) -> Values | None:
    return nest_context(_CONTEXT[event], context) if event in _CONTEXT else None


def has_failed(fields: Values, id: str, output: str) -> bool | None:
    """Look up a command's exit code in the transcript: only there does Codex write it before the hook."""
    path = fields.get("transcript_path")
    if not isinstance(path, str) or not id:
        return None
    try:
        with Path(path).open("rb") as file:
            file.seek(max(0, Path(path).stat().st_size - TAIL))
            lines = file.read().splitlines()
    except (OSError, ValueError):
        return None
    mark = f'"{id}"'.encode()
    for line in reversed(lines):
        code = re.search(rb'"exit_code": ?(-?\d+)|Process exited with code (-?\d+)', line)
        if code and mark in line:
            return int(code[1] or code[2]) != 0
    return None


AGENT = Agent(
    name="codex",
    title="Codex",
    program="codex",
    folder="${CODEX_HOME:-.codex}",
    marks=("CODEX_THREAD_ID", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_CI"),
    processes=("codex", "@openai/codex"),
    transcripts=TranscriptFiles(
        read,
        owns_line,
        patterns=("*sessions/**/rollout-*.jsonl", "*sessions/**/rollout-*.jsonl.zst"),
    ),
    hooks=HookDialect(
        answer,
        events={
            **USUAL_EVENTS,
            "SubagentStart": "subagent-start",
            "PreToolUse": "tool-before",
            "PostToolUse": "tool",
        },
        deny=nest_denial,
        has_failed=has_failed,
        project_variables=("CLAUDE_PROJECT_DIR",),
    ),
    install=InstallFiles(
        servers=("config.toml",),
        server_path=("mcp_servers", "bethink"),
        server={"command": "$program", "args": "$args", "env_vars": "$places"},
        places=PLACES,
        hooks="hooks.json",
        hook={"type": "command", "command": "$line", "timeout": 10},
        matchers={"tool-before": "Bash|apply_patch", "tool": "Bash|apply_patch"},
        last={"timeout": 3},  # the longest that Codex allows at the end of a session
        strict=("hooks.json",),
        permission=PermissionRules(
            "{tool}", ("mcp_servers", "bethink", "tools"), {"approval_mode": "approve"}
        ),
        plugins="config.toml",
        note="Codex runs hooks only after you trust them: start it once and say yes when it asks, or type /hooks there.",
    ),
)
