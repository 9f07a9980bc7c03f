"""Gemini CLI: `~/.gemini/tmp/<project>/chats/session-….jsonl`; sub-agents below `chats/`.

Older versions write one JSON object, `session-….json`. Identity is the `id` of a message. A message is written again when its tool calls are
known, and a resume writes the whole history again: the id removes such repeats. A rewind removes nothing; the words were said. The path of
the project is in `.project_root` beside `chats/`.
"""

from __future__ import annotations

import re
from pathlib import Path

from bethink.agents.base import (
    MACHINE,
    NO_SPEECH,
    SUMMARY,
    Fields,
    Taken,
    Turn,
    name_unknown,
    texts_of,
)
from bethink.agents.speech import find_block
from bethink.agents.transcript import JsonTranscript, LineTranscript, Transcript
from bethink.model import Json, Values

_RECENT = 32
SNAPSHOT = "<state_snapshot>"
FAILED = re.compile(r"^Exit Code: [1-9]", re.MULTILINE)  # a command that fails is a "success"
# What follows a compression: the machine speaks for the model.
ACKNOWLEDGED = "Got it. Thanks for the additional context!"


# Messages of the program to the person, and lines that change others.
_SILENT = ("info", "error", "warning", "")


class GeminiMessages(Transcript):
    """The messages of Gemini CLI, in either form of its files."""

    host = "gemini"

    def begin(self, state: Values) -> None:
        super().begin(state)
        if not self.project:
            self.locate(find_project(self.path))

    def take_head(self, fields: Fields) -> None:
        folders = fields.array("directories")
        self.locate(None if self.cwd or not folders else folders[0], None, fields.get("sessionId"))
        if fields.get("kind") == "subagent":
            self.agent = fields.name("sessionId") or "subagent"
            parent = self.path.parent.name
            self.session = self.session if parent == "chats" else parent
        self.set_title(fields.get("summary"))

    def take_message(self, fields: Fields, copied: bool = False) -> Taken:
        type = fields.get("type")
        if type not in ("user", "gemini"):
            return NO_SPEECH if type in _SILENT or type is None else name_unknown(type)
        parts = texts_of(fields.array("content") or [fields.get("content")])
        text = "\n\n".join(part for part in parts if part.strip())
        for call in () if copied else fields.objects("toolCalls"):
            self.add_call(call.get("name"), call.get("args"), call.get("id"))
            if "status" in call:
                output = find_output(call)
                failed = call["status"] != "success" or FAILED.search(output) is not None
                self.add_result(call.get("id"), output, failed, at=fields.time())
        if text == ACKNOWLEDGED or (type == "user" and self.agent):
            return MACHINE
        role = "user" if type == "user" else "assistant"
        if text.lstrip().startswith(SNAPSHOT):
            role, text = SUMMARY, find_block(text, "state_snapshot") or text
        return self.make_turn(fields.name("id"), role, text, fields.time())


class GeminiTranscript(GeminiMessages, LineTranscript):
    kept = LineTranscript.kept | {"agent": None, "recent": []}
    recent: list[str]  # the messages that the reading before met last

    def begin(self, state: Values) -> None:
        super().begin(state)
        self.seen = dict.fromkeys(self.recent)

    def state(self) -> Json:
        # A message that is written again when its tools are done must not take them for itself.
        return super().state() | {"recent": list(self.seen)[-_RECENT:]}

    def take_all(self, entry: Fields) -> list[Taken]:
        update = entry.object("$set")
        if not update and "sessionId" not in entry:
            return [self.take_message(entry)]
        self.take_head(update or entry)
        copies = [self.take_message(one, copied=True) for one in update.objects("messages")]
        return [one for one in copies if isinstance(one, Turn)] or copies[:1] or [NO_SPEECH]


class GeminiDocument(GeminiMessages, JsonTranscript):
    """A session as one JSON object."""

    kept = JsonTranscript.kept | {"agent": None}

    def take(self, message: Fields) -> list[Taken]:
        return [self.take_message(message)]


def find_output(call: Fields) -> str:
    """Return the answer of a tool."""
    answers = (one.object("functionResponse") for one in call.objects("result"))
    responses = [one.object("response") for one in answers]
    return "\n".join(one.text("output") or one.text("error") for one in responses)


def find_project(path: Path) -> str | None:
    for above in path.parents[:4]:
        if above.name == "chats":
            try:
                return (above.parent / ".project_root").read_text("utf-8", "replace").strip()[:1000]
            except (OSError, ValueError):
                return None
    return None
