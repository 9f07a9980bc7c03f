"""aider's chat history: Markdown that is appended to, with all chats of a project.

    # aider chat started at 2026-04-22 22:40:47     a chat begins, in local time
    #### the user's words                           each line of them, with two blanks at its end
    > Applied edit to shop.py                       the program's own words, and what it ran

Everything else is the answer of the model. Answers may contain headings of the same level and code with fences of any depth. A prompt has the
two blanks and an empty line above, and the program, which counts tokens behind each answer, spoke since the answer before. Behind an
answer that the user cut short there are two empty lines instead. What the user chose in a question of the program is no prompt. Identity is the
time at which the chat began, the number of the message in it and its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from bethink.agents.base import NO_SPEECH, Fact, Taken, make_id
from bethink.agents.plain_transcript import split_lines
from bethink.agents.speech import remove_blocks
from bethink.agents.transcript import WholeTranscript
from bethink.model import ToolEvent, Values

HISTORY_FILE = ".aider.chat.history.md"
_BEGUN = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$")
_CHOICE = re.compile(r"\(Y\)es/\(N\)o")
_EDITED = re.compile(r"> Applied edit to (\S.{0,300}?)\s*$")
_COMMITTED = re.compile(r"> Commit [0-9a-f]{7,40} (\S.{0,300}?)\s*$")
_RAN = re.compile(r"> Running (\S.{0,300}?)\s*$")
_INTERRUPTED = "^C KeyboardInterrupt"
_THOUGHTS = re.compile(r"<(thinking-content-[0-9a-f]{8,64})>")
# How the model's thoughts and its answer begin where the program marks them with words.
_THINKING, _ANSWER = "► **THINKING**", "► **ANSWER**"


class AiderTranscript(WholeTranscript):
    host = "aider"

    def begin(self, state: Values) -> None:
        super().begin(state)
        self.at: datetime | None = None
        self.count = 0
        if self.path.name == HISTORY_FILE:
            self.locate(str(self.path.resolve().parent))

    def take_whole(self, data: bytes) -> Iterator[Taken]:
        lines = split_lines(data)
        marked = any(line.startswith("#### ") and line.endswith("  ") for line in lines)
        prompt: list[str] = []
        answer: list[str] = []
        start = 0
        before = ""
        ended = True  # the program spoke since the last words of the model
        for number, line in enumerate(lines, 1):
            cut = number > 2 and not before.strip() and not lines[number - 3].strip()
            free = prompt or cut or (ended and not before.strip())
            words = find_prompt(line, marked) if free else None
            if prompt and words is None:
                yield self.add_message(start, "user", prompt)
                prompt, start = [], number
            if words is not None:
                if not prompt:
                    yield from self.end_answer(start, answer)
                    answer, start = [], number
                prompt.append(words)
            elif begun := _BEGUN.match(line):
                yield from self.end_answer(start, answer)
                answer, start = [], number + 1
                self.begin_chat(begun[1])
                ended = True
            elif line.startswith(">"):
                self.note(line)
                ended = ended or line.endswith("  ")
            else:
                answer.append(line)
                ended = ended and not line.strip()
            before = line
        if prompt:
            yield self.add_message(start, "user", prompt)
        yield from self.end_answer(start, answer)

    def begin_chat(self, stamp: str) -> None:
        self.at = datetime.fromisoformat(stamp).astimezone(UTC)
        self.count = 0
        self.session = f"aider-{make_id(self.cwd or self.path.resolve(), stamp)}"

    def end_answer(self, start: int, answer: list[str]) -> Iterator[Taken]:
        if any(map(str.strip, answer)):
            yield self.add_message(start, "assistant", answer)

    def add_message(self, start: int, role: str, lines: list[str]) -> Taken:
        text = "\n".join(lines).strip()
        self.number, self.count = start, self.count + 1
        if role == "user" and _CHOICE.search(text):
            return NO_SPEECH
        id = make_id(self.host, self.session, self.count, role, text)
        if role == "assistant":
            text = strip_thoughts(text)
        return self.make_turn(id, role, text, self.at)

    def note(self, line: str) -> None:
        """Keep what the program says that it did, and that the user stopped it."""
        if edited := _EDITED.match(line):
            self.add_used((), [edited[1]], [Fact("edit", edited[1])])
            self.add_event(ToolEvent(file=edited[1], failed=False))
        if committed := _COMMITTED.match(line):
            self.add_used((), (), [Fact("commit", committed[1])])
        if ran := _RAN.match(line):
            self.add_event(ToolEvent(command=ran[1]))
        if _INTERRUPTED in line:
            self.mark("interrupted")

    def add_event(self, event: ToolEvent) -> None:
        id = f"a{self.number}-{self.count}"
        self.add_run(event, id)
        self.end_run(id, "", event.failed, self.at)


def find_prompt(line: str, marked: bool) -> str | None:
    """Return the user's words on a line, or None. `marked`: the file still has its blanks."""
    if line == "####":
        return ""
    if not line.startswith("#### "):
        return None
    if line.endswith("  "):  # a line break in Markdown, by which aider marks a prompt
        return line[5:].rstrip(" ")
    return None if marked else line[5:]


def strip_thoughts(text: str) -> str:
    """Remove what the model only thought."""
    tags = tuple(dict.fromkeys(_THOUGHTS.findall(text)))
    text = remove_blocks(text, tags)[0] if tags else text
    if tags and (left := _THOUGHTS.search(text)):  # cut short: no end of it
        text = text[: left.start()]
    if _THINKING in text:
        head, _, rest = text.partition(_THINKING)
        text = head + rest.partition(_ANSWER)[2]
    return text.strip()
