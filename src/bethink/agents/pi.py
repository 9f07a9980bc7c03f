"""Pi: `~/.pi/agent/sessions/--<path>--/<time>_<id>.jsonl`. Only its transcripts are read."""

from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents.agent import Agent, TranscriptFiles

if TYPE_CHECKING:
    from bethink.agents.base import Fields, Position
    from bethink.agents.transcript import Transcript

_SETTINGS = ("model_change", "thinking_level_change")


def read(path: Path, position: "Position") -> "Transcript":
    from bethink.agents.pi_transcript import PiTranscript

    return PiTranscript(path, position)


def owns_line(entry: "Fields") -> bool:
    kind = entry.get("type")
    if kind == "session":
        return {"id", "cwd", "version"} <= entry.keys()
    if kind == "message":
        message = entry.object("message")
        return "parentId" in entry and {"role", "timestamp"} <= message.keys()
    return kind in _SETTINGS and "parentId" in entry


AGENT = Agent(
    name="pi",
    title="Pi",
    folder="${PI_CODING_AGENT_DIR:-.pi/agent}",
    marks=("PI_CODING_AGENT",),
    processes=("pi", "@mariozechner/pi-coding-agent"),
    transcripts=TranscriptFiles(read, owns_line, patterns=("sessions/**/*.jsonl",)),
)
