"""Goose: one database for all sessions, `sessions/sessions.db`. Only its transcripts are read."""

from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents.agent import Agent, TranscriptFiles

if TYPE_CHECKING:
    from bethink.agents.base import Position
    from bethink.agents.transcript import Transcript

DATABASE = b"SQLite format 3\0"


def read(path: Path, position: "Position") -> "Transcript":
    from bethink.agents.goose_transcript import GooseTranscript

    return GooseTranscript(path, position)


def owns_file(path: Path, head: bytes) -> bool:
    return head.startswith(DATABASE) and path.name == "sessions.db"


AGENT = Agent(
    name="goose",
    title="Goose",
    folder="${XDG_DATA_HOME:-.local/share}/goose",
    marks=("GOOSE_TERMINAL",),
    processes=("goose",),
    transcripts=TranscriptFiles(read, owns_file=owns_file, patterns=("sessions/sessions.db",)),
)
