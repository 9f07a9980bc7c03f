"""GitHub Copilot Chat in VS Code: transcripts in the workspace storage, as Copilot CLI writes them."""

from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents.agent import Agent, TranscriptFiles

if TYPE_CHECKING:
    from bethink.agents.base import Position
    from bethink.agents.transcript import Transcript

_FOLDER = "GitHub.copilot-chat"
_USERS = (
    ".config/*/User",
    "Library/Application Support/*/User",
    "AppData/Roaming/*/User",
    ".vscode-server/data/User",
)


def read(path: Path, position: "Position") -> "Transcript":
    from bethink.agents.vscode_transcript import VscodeTranscript

    return VscodeTranscript(path, position)


def owns_file(path: Path, head: bytes) -> bool:
    return _FOLDER in path.parts and path.suffix == ".jsonl" and b'"session.start"' in head


AGENT = Agent(
    name="vscode",
    title="Copilot Chat in VS Code",
    folder=".",
    transcripts=TranscriptFiles(
        read,
        owns_file=owns_file,
        patterns=tuple(
            f"{user}/workspaceStorage/*/{_FOLDER}/transcripts/*.jsonl" for user in _USERS
        ),
    ),
)
