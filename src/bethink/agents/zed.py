"""Zed: threads of its agent, in `threads.db`. Other agents in Zed keep separate transcripts."""

from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents.agent import Agent, TranscriptFiles

if TYPE_CHECKING:
    from bethink.agents.base import Position
    from bethink.agents.transcript import Transcript

DATABASE = b"SQLite format 3\0"


def read(path: Path, position: "Position") -> "Transcript":
    from bethink.agents.zed_transcript import ZedTranscript

    return ZedTranscript(path, position)


def owns_file(path: Path, head: bytes) -> bool:
    return head.startswith(DATABASE) and path.name == "threads.db"


AGENT = Agent(
    name="zed",
    title="Zed",
    folder=".",
    transcripts=TranscriptFiles(
        read,
        owns_file=owns_file,
        patterns=(
            ".local/share/zed/threads/threads.db",
            "Library/Application Support/Zed/threads/threads.db",
            "AppData/Local/Zed/threads/threads.db",
        ),
    ),
)
