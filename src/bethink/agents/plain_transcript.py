"""Chats of no particular host: Markdown or text with the speakers named, or JSON lines.

    Markdown    `## User`, `**Assistant:**`, `_**User (12:30)**_`, or lines that begin with `Human:`; the strongest style counts
    JSON lines  {role, content}, and where they are known: id, timestamp, cwd, branch

Identity is the message's own id if it has one, otherwise the name of its file, its number and text. A session is one file: two
projects may each have a `1.md`, so its id is made of the name and the path. Text before the first speaker is not
speech. Names of speakers in other languages than English are not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from bethink.agents.base import (
    FENCE,
    NO_SPEECH,
    START,
    Fields,
    Position,
    Taken,
    TranscriptPage,
    digest,
    make_id,
    texts_of,
)
from bethink.agents.transcript import LineTranscript, Transcript, read_head
from bethink.model import Values

ROLES = {
    name: role
    for role, names in {
        "user": "user human you me prompt",
        "assistant": "assistant ai gpt chatgpt claude gemini copilot codex cursor agent bot model response",
        "system": "system developer",
        "tool": "tool function tool_result",
    }.items()
    for name in names.split()
}
_WHOLE = 128 << 20  # bytes of a text
_LONGEST_LINE = 20_000  # characters; a longer one names no speaker
TEXT_SUFFIXES = (".md", ".markdown", ".txt", ".text")
_NAME = rf"(?P<name>{'|'.join(sorted(ROLES, key=len, reverse=True))})(?:[ ]said)?"
_NOTE = r"(?:[ ]{0,2}[(\[—–-][^\n]{0,80}?)?"
# Strongest first: a file whose speakers are headings may well quote "User: …" in between.
STYLES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"[ ]{{0,3}}#{{1,6}}[ ]+\W{{0,6}}{_NAME}{_NOTE}[ ]{{0,2}}[:*_]{{0,4}}[ ]{{0,4}}#{{0,6}}$",
        rf"[ ]{{0,3}}_?\*\*{_NAME}{_NOTE}[ ]?:?\*\*_?[ ]?:?(?P<rest>.*)$",
        rf"{_NAME}[ ]?:(?P<rest>(?:[ \t].*)?)$",
    )
)


def open_chat(path: Path, position: Position = START) -> Transcript:
    """Return the reader for a chat in text or in JSON lines, by the suffix of its file."""
    is_text = path.suffix.lower() in TEXT_SUFFIXES
    return (ChatText if is_text else ChatLines)(path, position)


def is_message(entry: Fields) -> bool:
    return entry.text("role").lower() in ROLES and "content" in entry


def is_likely(path: Path, head: bytes) -> bool:
    """Return True for a text that may be a chat."""
    return path.suffix.lower() in TEXT_SUFFIXES and len(find_speakers(split_lines(head))) > 1


def split_lines(data: bytes) -> list[str]:
    """The lines of a text in the encoding that its first bytes name. What is no text in it becomes U+FFFD."""
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    text = data.decode("utf-16" if wide else "utf-8-sig", "replace")
    return text.replace("\r\n", "\n").split("\n")


class Chat(Transcript):
    host = "plain"

    def begin(self, state: Values) -> None:
        super().begin(state)
        self.name = self.path.name.partition(".")[0]
        self.session = self.session or f"{self.name}-{make_id(self.path.resolve())}"


class ChatLines(Chat, LineTranscript):
    def take(self, entry: Fields) -> Taken:
        self.locate(entry.get("cwd"), entry.get("branch"))
        role = ROLES.get(entry.text("role").lower(), "")
        text = "\n\n".join(text for text in texts_of(entry.get("content")) if text.strip())
        id = entry.name("id") or make_id(self.name, self.number, text)
        return self.make_turn(id, role, text, entry.time())


class ChatText(Chat):
    """Markdown or text with named speakers. It is read whole when it changed; identities stay the same."""

    def pages(self) -> Iterator[TranscriptPage]:
        data = read_head(self.path, _WHOLE + 1)
        identity = digest(data)
        if identity == self.position.identity:
            return
        self.restart()
        results = list(self.take_all(data)) if len(data) <= _WHOLE else ["too long"]
        for start in range(0, len(results), self.page_turns):
            end = start + self.page_turns
            self.keep(*results[start:end])
            self.lines += len(results[start:end])
            # Until the last page is written, the file counts as changed.
            known = identity if end >= len(results) else ""
            yield self.end_page(Position(known, end, state=self.state()))

    def take_all(self, data: bytes) -> Iterator[Taken]:
        """All turns, and for each message without one the reason."""
        text_lines = split_lines(data)
        found = find_speakers(text_lines)
        ends = [*(start for start, _, _ in found[1:]), len(text_lines)]
        for (start, role, rest), end in zip(found, ends, strict=False):
            text = "\n".join([rest, *text_lines[start + 1 : end]])
            text = text.strip().removesuffix("---").strip()
            self.number = start + 1
            yield self.make_turn(make_id(self.name, self.number, text), role, text, None)
        if not found:
            yield NO_SPEECH


def find_speakers(text_lines: list[str]) -> list[tuple[int, str, str]]:
    """Find where each speaker begins: line from 0, role, and words on that line. Skips fenced code."""
    marks: list[list[tuple[int, str, str]]] = [[] for _ in STYLES]
    fence = ""
    for number, line in enumerate(text_lines):
        opening = FENCE.match(line)
        if opening and (not fence or opening[1].startswith(fence)):
            fence = "" if fence else opening[1]
        if fence or len(line) > _LONGEST_LINE:
            continue
        for found, pattern in zip(marks, STYLES, strict=True):
            if match := pattern.match(line):
                rest = match.groupdict().get("rest") or ""
                found.append((number, ROLES[match["name"].lower()], rest))
                break
    spoken = [found if "user" in {one[1] for one in found} else [] for found in marks]
    # Under a heading there may be a single message without a reply.
    return next((found for found in spoken if len(found) > 1), spoken[0])
