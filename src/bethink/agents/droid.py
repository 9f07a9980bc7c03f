"""Droid (Factory): `~/.factory/sessions/<path>/<id>.jsonl`. Only its transcripts are read."""

from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents.agent import Agent, TranscriptFiles

if TYPE_CHECKING:
    from bethink.agents.base import Fields, Position
    from bethink.agents.transcript import Transcript


def read(path: Path, position: "Position") -> "Transcript":
    from bethink.agents.droid_transcript import DroidTranscript

    return DroidTranscript(path, position)


def owns_line(entry: "Fields") -> bool:
    if entry.get("type") == "session_start":
        return "id" in entry
    message = entry.object("message")
    is_message = entry.get("type") == "message" and {"role", "content"} <= message.keys()
    return is_message and "timestamp" not in message


AGENT = Agent(
    name="droid",
    title="Droid",
    folder=".factory",
    processes=("droid",),
    transcripts=TranscriptFiles(read, owns_line, patterns=("sessions/**/*.jsonl",)),
)
