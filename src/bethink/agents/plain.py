"""Chats of no particular agent, in Markdown, text or JSON lines. Nothing to connect."""

from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents.agent import Agent, TranscriptFiles

if TYPE_CHECKING:
    from bethink.agents.base import Fields, Position
    from bethink.agents.transcript import Transcript


def read(path: Path, position: "Position") -> "Transcript":
    from bethink.agents.plain_transcript import open_chat

    return open_chat(path, position)


def owns_line(entry: "Fields") -> bool:
    from bethink.agents.plain_transcript import is_message

    return is_message(entry)


def owns_file(path: Path, head: bytes) -> bool:
    from bethink.agents.plain_transcript import is_likely

    return is_likely(path, head)


AGENT = Agent(name="plain", title="a chat", transcripts=TranscriptFiles(read, owns_line, owns_file))
