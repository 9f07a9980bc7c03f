"""Amp: threads on this machine, `~/.local/share/amp/threads/T-<id>.json`. Only these are read."""

from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents.agent import Agent, TranscriptFiles

if TYPE_CHECKING:
    from bethink.agents.base import Position
    from bethink.agents.transcript import Transcript


def read(path: Path, position: "Position") -> "Transcript":
    from bethink.agents.amp_transcript import AmpTranscript

    return AmpTranscript(path, position)


def owns_file(path: Path, head: bytes) -> bool:
    from bethink.agents.transcript import is_document

    return is_document(head) and b'"T-' in head and b'"messages"' in head


AGENT = Agent(
    name="amp",
    title="Amp",
    folder="${XDG_DATA_HOME:-.local/share}/amp",
    marks=("AMP_CURRENT_THREAD_ID",),
    processes=("amp", "@sourcegraph/amp"),
    transcripts=TranscriptFiles(read, owns_file=owns_file, patterns=("threads/T-*.json",)),
)
