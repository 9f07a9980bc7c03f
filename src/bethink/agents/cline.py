"""Cline, Roo Code and the older extension of Kilo Code: `tasks/<id>/ui_messages.json`.

Only their transcripts are read. VS Code, its variants and its server keep global storage in different folders.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents.agent import Agent, TranscriptFiles

if TYPE_CHECKING:
    from bethink.agents.base import Position
    from bethink.agents.transcript import Transcript

_EXTENSIONS = ("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline", "kilocode.kilo-code")
_USERS = (
    ".config/*/User",
    "Library/Application Support/*/User",
    "AppData/Roaming/*/User",
    ".vscode-server/data/User",
)


def read(path: Path, position: "Position") -> "Transcript":
    from bethink.agents.cline_transcript import ClineTranscript

    return ClineTranscript(path, position)


def owns_file(path: Path, head: bytes) -> bool:
    says = b'"say"' in head or b'"ask"' in head
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[") and says and b'"ts"' in head


AGENT = Agent(
    name="cline",
    title="Cline, Roo Code",
    folder=".",
    marks=("CLINE_ACTIVE",),
    transcripts=TranscriptFiles(
        read,
        owns_file=owns_file,
        patterns=tuple(
            f"{user}/globalStorage/{extension}/tasks/*/ui_messages.json"
            for user in _USERS
            for extension in _EXTENSIONS
        ),
    ),
)
