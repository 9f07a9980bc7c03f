"""Gemini CLI. It counts time in milliseconds, and has no event for sub-agents."""

from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents.agent import Agent, HookDialect, InstallFiles, TranscriptFiles, nest_context
from bethink.model import Values

if TYPE_CHECKING:
    from bethink.agents.base import Fields, Position
    from bethink.agents.transcript import Transcript

# Events whose answer adds context.
CONTEXT = {"session-start": "SessionStart", "prompt": "BeforeAgent"}


def read(path: Path, position: "Position") -> "Transcript":
    from bethink.agents.gemini_transcript import GeminiTranscript

    return GeminiTranscript(path, position)


def owns_line(entry: "Fields") -> bool:
    keys = entry.keys()
    is_message = entry.text("type") in ("user", "gemini") and {"content", "id"} <= keys
    is_head = {"sessionId", "projectHash"} <= keys
    return is_message or is_head or bool({"$set", "$rewindTo"} & keys)


def answer(event: str, context: str) -> Values | None:
    return nest_context(CONTEXT[event], context) if event in CONTEXT else None


AGENT = Agent(
    name="gemini",
    title="Gemini CLI",
    program="gemini",
    folder="${GEMINI_CLI_HOME:-.}/.gemini",
    transcripts=TranscriptFiles(read, owns_line, patterns=("tmp/*/chats/**/*.jsonl",)),
    hooks=HookDialect(
        answer,
        events={
            "SessionStart": "session-start",
            "BeforeAgent": "prompt",
            "AfterAgent": "stop",
            "PreCompress": "pre-compact",
            "SessionEnd": "session-end",
        },
        project_variables=("GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR"),
    ),
    install=InstallFiles(
        servers=("settings.json",),
        hooks="settings.json",
        hook={"type": "command", "name": "$name", "command": "$line", "timeout": 10_000},
    ),
)
