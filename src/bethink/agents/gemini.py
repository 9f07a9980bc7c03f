"""Gemini CLI. It counts time in milliseconds, and has no event for sub-agents."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents.agent import (
    Agent,
    HookDialect,
    InstallFiles,
    PermissionRules,
    TranscriptFiles,
    nest_context,
)
from bethink.model import Values

if TYPE_CHECKING:
    from bethink.agents.base import Fields, Position
    from bethink.agents.transcript import Transcript

FORM_BYTES = 16 << 10  # bytes of a file that show its form
# Events whose answer adds context.
_CONTEXT = {"session-start": "SessionStart", "prompt": "BeforeAgent", "tool": "AfterTool"}
# The tools that Gemini CLI may use without asking.
POLICY = """\
[[rule]]
mcpName = "bethink"
toolName = {tools}
decision = "allow"
priority = 100
"""


def read(path: Path, position: "Position") -> "Transcript":
    from bethink.agents.gemini_transcript import GeminiDocument, GeminiTranscript
    from bethink.agents.transcript import is_document, read_head

    head = read_head(path, FORM_BYTES)
    document = path.suffix == ".json" or (b'"messages"' in head and is_document(head))
    return (GeminiDocument if document else GeminiTranscript)(path, position)


def owns_file(path: Path, head: bytes) -> bool:
    from bethink.agents.transcript import is_document

    named = head[:FORM_BYTES]
    return b'"sessionId"' in named and b'"projectHash"' in named and is_document(head)


def owns_line(entry: "Fields") -> bool:
    keys = entry.keys()
    is_message = entry.text("type") in ("user", "gemini") and {"content", "id"} <= keys
    is_head = {"sessionId", "projectHash"} <= keys
    return is_message or is_head or bool({"$set", "$rewindTo"} & keys)


def answer(event: str, context: str) -> Values | None:
    return nest_context(_CONTEXT[event], context) if event in _CONTEXT else None


def deny(reason: str) -> Values:
    return {"decision": "deny", "reason": reason}


def has_failed(fields: Values, id: str, output: str) -> bool | None:
    """Tell a failed command by the line with its exit code, which is missing if that is 0."""
    status = re.search(r"^Exit Code: (-?\d{1,5})\s*$", output, re.MULTILINE)
    return int(status[1]) != 0 if status else False


AGENT = Agent(
    name="gemini",
    title="Gemini CLI",
    program="gemini",
    folder="${GEMINI_CLI_HOME:-.}/.gemini",
    marks=("GEMINI_CLI",),
    processes=("gemini", "@google/gemini-cli"),
    transcripts=TranscriptFiles(
        read,
        owns_line,
        owns_file,
        patterns=("tmp/*/chats/**/*.jsonl", "tmp/*/chats/session-*.json"),
    ),
    hooks=HookDialect(
        answer,
        events={
            "SessionStart": "session-start",
            "BeforeAgent": "prompt",
            "BeforeTool": "tool-before",
            "AfterTool": "tool",
            "AfterAgent": "stop",
            "PreCompress": "pre-compact",
            "SessionEnd": "session-end",
        },
        deny=deny,
        has_failed=has_failed,
        project_variables=("GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR"),
    ),
    install=InstallFiles(
        servers=("settings.json",),
        hooks="settings.json",
        matchers={
            "tool-before": "run_shell_command|replace|write_file",
            "tool": "run_shell_command|read_file|replace|write_file",
        },
        hook={"type": "command", "name": "$name", "command": "$line", "timeout": 10_000},
        permission=PermissionRules(file="policies/bethink.toml", text=POLICY),
    ),
)
