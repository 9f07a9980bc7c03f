"""Antigravity CLI: `brain/<id>/.system_generated/logs/transcript_full.jsonl`.

Only its transcripts are read.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents.agent import Agent, TranscriptFiles

if TYPE_CHECKING:
    from bethink.agents.base import Fields, Position
    from bethink.agents.transcript import Transcript


def read(path: Path, position: "Position") -> "Transcript":
    from bethink.agents.antigravity_transcript import AntigravityTranscript

    return AntigravityTranscript(path, position)


def owns_line(entry: "Fields") -> bool:
    return {"step_index", "type", "source", "status"} <= entry.keys()


AGENT = Agent(
    name="antigravity",
    title="Antigravity CLI",
    folder=".gemini/antigravity-cli",
    transcripts=TranscriptFiles(
        read,
        owns_line,
        patterns=("brain/*/.system_generated/logs/transcript_full.jsonl",),
    ),
)
