"""aider: `.aider.chat.history.md` in each project. Only this is read.

The file lies in a project, and a project may come from anybody: it is read as an import unless its owner names it.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents.agent import Agent, TranscriptFiles

if TYPE_CHECKING:
    from bethink.agents.base import Position
    from bethink.agents.transcript import Transcript

HISTORY_FILE = ".aider.chat.history.md"
_HEAD = re.compile(rb"^# aider chat started at \d{4}-\d\d-\d\d", re.MULTILINE)


def read(path: Path, position: "Position") -> "Transcript":
    from bethink.agents.aider_transcript import AiderTranscript

    return AiderTranscript(path, position)


def owns_file(path: Path, head: bytes) -> bool:
    return path.suffix in (".md", ".txt") and _HEAD.search(head[:2000]) is not None


AGENT = Agent(
    name="aider",
    title="aider",
    processes=("aider",),
    transcripts=TranscriptFiles(read, owns_file=owns_file, project_patterns=(HISTORY_FILE,)),
)
