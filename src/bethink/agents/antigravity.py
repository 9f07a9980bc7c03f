"""Antigravity CLI: `brain/<id>/.system_generated/logs/transcript_full.jsonl`.

Its hooks are in groups with a name, which it reads from a folder of Gemini CLI. Only the hook before each call of the model adds context,
and only to that call; its message has no prompt, but names the transcript. No hook runs at tool calls: an empty answer before a call
denies it, and the message after a call has no result.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents.agent import Agent, HookDialect, InstallFiles, TranscriptFiles
from bethink.model import Values

if TYPE_CHECKING:
    from bethink.agents.base import Fields, Position
    from bethink.agents.transcript import Transcript

TAIL = 400_000  # bytes at the end of a transcript in which the last prompt is looked for


def read(path: Path, position: "Position") -> "Transcript":
    from bethink.agents.antigravity_transcript import AntigravityTranscript

    return AntigravityTranscript(path, position)


def owns_line(entry: "Fields") -> bool:
    return {"step_index", "type", "source", "status"} <= entry.keys()


def find_prompt(fields: Values) -> str:
    """Return the last prompt in the transcript."""
    path = fields.get("transcriptPath")
    if not isinstance(path, str) or not path:
        return ""
    try:
        with Path(path).open("rb") as file:
            file.seek(max(0, Path(path).stat().st_size - TAIL))
            lines = file.read().splitlines()
    except (OSError, ValueError):
        return ""
    for line in reversed(lines):
        text = _read_prompt(line) if b"USER_INPUT" in line else ""
        if text:
            return text
    return ""


def _read_prompt(line: bytes) -> str:
    """Return what the user typed, if a line of a transcript is a prompt of the user."""
    try:
        step = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    is_prompt = isinstance(step, dict) and step.get("type") == "USER_INPUT"
    if not is_prompt or step.get("source") in ("MODEL", "SYSTEM"):
        return ""
    content = step.get("content")
    _, begun, rest = str(content).partition("<USER_REQUEST>")
    typed, ended, _ = rest.partition("</USER_REQUEST>")
    return typed.strip() if begun and ended else ""


def answer(event: str, context: str) -> Values | None:
    if event not in ("session-start", "prompt"):
        return None
    return {"injectSteps": [{"ephemeralMessage": context}]}


AGENT = Agent(
    name="antigravity",
    title="Antigravity CLI",
    program="agy",
    folder=".gemini/antigravity-cli",
    marks=("ANTIGRAVITY_AGENT",),
    processes=("agy",),
    transcripts=TranscriptFiles(
        read,
        owns_line,
        patterns=("brain/*/.system_generated/logs/transcript_full.jsonl",),
    ),
    hooks=HookDialect(
        answer,
        events={"PreInvocation": "prompt", "Stop": "stop"},
        session=("conversationId",),
        transcript=("transcriptPath",),
        directory=("workspacePaths",),
        find_prompt=find_prompt,
        ephemeral=True,
    ),
    install=InstallFiles(
        servers=("mcp_config.json",),
        hooks="hooks.json",
        hooks_folder=".gemini/config",
        hooks_path=("bethink",),
        hook={"type": "command", "command": "$line", "timeout": 10},
        grouped=False,
        strict=("hooks.json", "mcp_config.json"),
        note="Antigravity CLI runs no hooks for a session that is signed in with an API key.",
    ),
)
