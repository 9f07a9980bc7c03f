"""Codex CLI. It discards an answer with an unknown key, and runs a hook only after the user has trusted it."""

from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents.agent import Agent, HookDialect, InstallFiles, TranscriptFiles, nest_context
from bethink.model import Values

if TYPE_CHECKING:
    from bethink.agents.base import Fields, Position
    from bethink.agents.transcript import Transcript

# Events whose answer adds context.
CONTEXT = {"session-start": "SessionStart", "prompt": "UserPromptSubmit"}


def read(path: Path, position: "Position") -> "Transcript":
    from bethink.agents.codex_transcript import CodexTranscript

    return CodexTranscript(path, position)


def owns_line(entry: "Fields") -> bool:
    return isinstance(entry.get("payload"), dict)


def answer(event: str, context: str) -> Values | None:
    return nest_context(CONTEXT[event], context) if event in CONTEXT else None


AGENT = Agent(
    name="codex",
    title="Codex",
    program="codex",
    folder="${CODEX_HOME:-.codex}",
    transcripts=TranscriptFiles(
        read,
        owns_line,
        patterns=("*sessions/**/rollout-*.jsonl", "*sessions/**/rollout-*.jsonl.zst"),
    ),
    hooks=HookDialect(answer, project_variables=("CLAUDE_PROJECT_DIR",)),
    install=InstallFiles(
        servers=("config.toml",),
        server_path=("mcp_servers", "bethink"),
        hooks="hooks.json",
        hook={"type": "command", "command": "$line", "timeout": 10},
        last={"timeout": 3},  # the longest that Codex allows at the end of a session
        strict=("hooks.json",),
        plugins="config.toml",
        note="Codex runs hooks only after you trust them: start it once and say yes when it asks, or type /hooks there.",
    ),
)
