"""Chats of no particular host: Markdown or text with the speakers named, or JSON lines.

    Markdown    `## User`, `**Assistant:**`, `_**User (12:30)**_`, or lines that begin with `Human:`; the strongest style counts
    JSON lines  {role, content}, and where they are known: id, timestamp, cwd, branch

Identity is the message's own id if it has one, otherwise the name of its file, its number and text. A session is one file: two
projects may each have a `1.md`, so its id is made of the name and the path. Text before the first speaker is not
speech.

Speakers may have any names (`Evan: …`), if at least two of them take turns. One person who talks to an agent is the user; where several
people talk, each message keeps the name of its author.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from bethink.agents.base import NO_SPEECH, START, Fields, Position, Taken, make_id, texts_of
from bethink.agents.speech import FENCE
from bethink.agents.transcript import LineTranscript, Transcript, WholeTranscript
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


# A line of a talk between people, who may have any names.
_ANY = r"(?P<name>[^\W\d_a-z][\w.'-]{0,30}(?: [^\W\d_a-z][\w.'-]{0,30}){0,2})"
SPEAKER_LINES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"[ ]{{0,3}}\*\*{_ANY}{_NOTE}[ ]?(?::\*\*|\*\*[ ]?:)(?P<rest>.*)$",
        rf"{_ANY}[ ]?[:：](?P<rest>[ \t].*)$",
    )
)
# Labels that begin a line of a document, a mail or a log.
NO_NAMES = frozenset(
    "note notes summary todo fixme example examples warning error errors output input result results step steps fix date time subject "
    "from to cc bcc title status author authors usage returns return args arguments raises why what how when where who answer "
    "question decision context goal goals problem solution cause impact important tip info hint see also version name type "
    "description default required optional command file files path url tested fixes closes refs reviewed signed before after "
    "expected actual background motivation rationale consequences pros cons option options risk risks owner deadline "
    "priority agenda attendees participants location topic re fwd ps edit update".split()
)
_PREFACE = 12  # lines above the first speaker of a talk


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
    """The lines of a text in the encoding that its first bytes name. Bytes that are no text become U+FFFD."""
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


class ChatText(Chat, WholeTranscript):
    """Markdown or text with named speakers."""

    def take_whole(self, data: bytes) -> Iterator[Taken]:
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


class Speaker(NamedTuple):
    """A line that names who speaks."""

    line: int  # from 0
    name: str
    role: str
    rest: str  # words on that line


def find_speakers(text_lines: list[str]) -> list[tuple[int, str, str]]:
    """Find where each speaker begins: line from 0, role, and words on that line. Skips fenced code."""
    marks: list[list[Speaker]] = [[] for _ in STYLES]
    people: list[list[Speaker]] = [[] for _ in SPEAKER_LINES]
    fence = ""
    for number, line in enumerate(text_lines):
        opening = FENCE.match(line)
        if opening and (not fence or opening[1].startswith(fence)):
            fence = "" if fence else opening[1]
        if fence or len(line) > _LONGEST_LINE:
            continue
        if speaker := match_speaker(line, STYLES, number):
            marks[speaker[0]].append(speaker[1])
        if speaker := match_speaker(line, SPEAKER_LINES, number):
            people[speaker[0]].append(speaker[1])
    spoken = [found if "user" in {one.role for one in found} else [] for found in marks]
    if not any(len(found) > 1 for found in spoken):
        talk = next(filter(None, (name_people(found, text_lines) for found in people)), [])
        spoken = [talk, *spoken] if talk else spoken
    # Under a heading there may be a single message without a reply.
    best = next((found for found in spoken if len(found) > 1), spoken[0])
    return [(one.line, one.role, one.rest) for one in best]


def match_speaker(
    line: str, styles: Sequence[re.Pattern[str]], number: int
) -> tuple[int, Speaker] | None:
    """Return the speaker that a line names, with the style in which it does."""
    for style, pattern in enumerate(styles):
        if match := pattern.match(line):
            name, rest = match["name"], match.groupdict().get("rest") or ""
            return style, Speaker(number, name, ROLES.get(name.lower(), ""), rest)
    return None


def name_people(found: list[Speaker], text_lines: list[str]) -> list[Speaker]:
    """Return the speakers of a talk between people, or with an agent; [] if it is no talk.

    One person who talks to an agent is the user. Where several people talk, each message keeps the name of its author, so
    that nobody's words count as those of the user.
    """
    counts = Counter(one.name for one in found if one.name.lower() not in NO_NAMES)
    agents = [name for name in counts if ROLES.get(name.lower()) == "assistant"]
    humans = [name for name, count in counts.items() if name not in agents and count > 1]
    talk = [one for one in found if one.name in (*agents, *humans)]
    changes = sum(one.name != other.name for one, other in pairwise(talk))
    first = next((at for at, line in enumerate(text_lines) if line.strip()), 0)
    if not humans or len(humans) + len(agents) < 2 or 2 * changes < len(talk) - 1:
        return []
    if talk[0].line - first > _PREFACE:
        return []
    if len(humans) == 1:
        return [one._replace(role=one.role or "user") for one in talk]
    return [
        one
        if one.name in agents
        else one._replace(role="user", rest=f"{one.name}: {one.rest.strip()}")
        for one in talk
    ]
