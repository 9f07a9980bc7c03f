"""SpecStory's Markdown: a line with the speaker, an empty line, the words, and `---` at the end.

    _**User (2026-02-20 21:04:48Z)**_
    _**Agent (model 2026-02-20 21:04:55Z)**_
    _**Agent - sidechain (2026-02-20 21:05:01Z)**_

Answers contain code with fences inside of fences, so fences tell nothing about where a message ends. A line names a speaker if it has exactly
this form between empty lines; in a file with times only with a time that is not before the one of the user's message before, so that a pasted
conversation stays a part of the message. A sidechain is a sub-agent; without a model it is its prompt. Calls of tools are blocks and no
speech. Identity is the session, the number of the message and its time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from bethink.agents.base import MACHINE, NO_SPEECH, Taken, as_time, make_id, name_unknown
from bethink.agents.claude_transcript import find_typed
from bethink.agents.plain_transcript import split_lines
from bethink.agents.speech import remove_blocks
from bethink.agents.transcript import WholeTranscript
from bethink.model import Values

_SPEAKER = re.compile(
    r"_\*\*(User|Assistant|Agent|System|Tool)( - sidechain)?(?: \(([^)\n]{0,120})\))?\*\*_\s*$"
)
_STAMP = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)?(?: ?Z|[+-]\d\d:?\d\d)?")
_SESSION = re.compile(r"<!-- ([\w .-]{1,40}?) Session ([\w-]{8,64}) ")
_TITLE = re.compile(r"#{1,2} (?!SpecStory)(.{1,200}?)(?: {0,4}\(([^()]{8,40})\))?$")
_BLOCKS = ("tool-use", "thinking", "think")
_INTERRUPTED = "[Request interrupted by user"
_HEAD = 20  # lines in which the file names its session


class Message(NamedTuple):
    line: int  # of the speaker, from 0
    role: str
    aside: bool  # of a sub-agent
    about: str  # what is in the brackets
    at: datetime | None


class SpecstoryTranscript(WholeTranscript):
    host = "specstory"

    def begin(self, state: Values) -> None:
        super().begin(state)
        self.session = self.session or f"specstory-{make_id(self.path.stem)}"
        folders = self.path.resolve().parents
        if len(folders) > 2 and folders[0].name == "history" and folders[1].name == ".specstory":
            self.locate(str(folders[2]))

    def take_whole(self, data: bytes) -> Iterator[Taken]:
        lines = split_lines(data)
        began = self.take_head(lines[:_HEAD])
        found = find_messages(lines)
        ends = [*(one.line for one in found), len(lines)][1:]
        for count, (message, end) in enumerate(zip(found, ends, strict=True), 1):
            self.number, self.agent = message.line + 1, "sidechain" if message.aside else None
            text = "\n".join(lines[message.line + 1 : end]).strip()
            yield self.take(message, text.removesuffix("---").strip(), count, began)
        if not found:
            yield name_unknown("speakers")

    def take_head(self, lines: list[str]) -> datetime | None:
        """Note the session and the title, and return the time at which it began."""
        began = None
        for line in lines:
            if named := _SESSION.match(line):
                self.session = f"specstory-{named[2]}"
            elif titled := _TITLE.match(line.rstrip()):
                self.set_title(titled[1])
                began = began or read_stamp(line)
        return began

    def take(self, message: Message, text: str, count: int, began: datetime | None) -> Taken:
        role = {"User": "user", "System": "", "Tool": ""}.get(message.role, "assistant")
        if not role:
            return NO_SPEECH
        if message.aside and not _STAMP.sub("", message.about).strip():
            return MACHINE
        if role == "user" and _INTERRUPTED in text:
            text = text.partition(_INTERRUPTED)[0]
            self.mark("interrupted")
        text = (
            "\n\n".join(find_typed([text])) if role == "user" else remove_blocks(text, _BLOCKS)[0]
        )
        id = make_id(self.session, count, role, message.about, text)
        return self.make_turn(id, role, text, message.at or began)


def read_stamp(text: str) -> datetime | None:
    found = _STAMP.search(text)
    return as_time(found[0].replace(" Z", "Z")) if found else None


def find_messages(lines: list[str]) -> list[Message]:
    """Find the lines that name a speaker."""
    found: list[Message] = []
    for number, line in enumerate(lines):
        speaker = _SPEAKER.match(line) if line.startswith("_**") else None
        above = lines[number - 1].strip() if number else ""
        below = lines[number + 1].strip() if number + 1 < len(lines) else ""
        if speaker and not above and not below:
            role, aside, about = speaker[1], bool(speaker[2]), speaker[3] or ""
            found.append(Message(number, role, aside, about, read_stamp(about)))
    if not any(one.at for one in found):
        return found
    kept: list[Message] = []
    latest = None
    # Cursor's exports give a time to what the user says alone, and a mode to an answer.
    untimed = not any(one.at for one in found if one.role != "User")
    for one in found:
        if one.role != "User" or one.aside:
            kept += [one] if one.at or (untimed and one.about) else []
        elif one.at and (latest is None or one.at >= latest):
            kept.append(one)
            latest = one.at
    return kept
