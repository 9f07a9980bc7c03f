"""Kilo Code's command line: one database in the form of opencode's. Only its transcripts are read."""

from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents.agent import Agent, TranscriptFiles

if TYPE_CHECKING:
    from bethink.agents.base import Position
    from bethink.agents.transcript import Transcript

DATABASE = b"SQLite format 3\0"


def read(path: Path, position: "Position") -> "Transcript":
    from bethink.agents.opencode_transcript import OpencodeTranscript

    class KiloTranscript(OpencodeTranscript):
        host = "kilo"

    return KiloTranscript(path, position)


def owns_file(path: Path, head: bytes) -> bool:
    return head.startswith(DATABASE) and path.name.startswith("kilo")


AGENT = Agent(
    name="kilo",
    title="Kilo Code",
    folder="${XDG_DATA_HOME:-.local/share}/kilo",
    marks=("KILO_PID",),
    processes=("kilo", "kilocode", "@kilocode/cli"),
    transcripts=TranscriptFiles(
        read, owns_file=owns_file, patterns=("kilo*.db",), variable="KILO_DB"
    ),
)
