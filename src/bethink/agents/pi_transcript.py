"""Pi: a session is a tree of entries, one JSON object per line; the first line is its head.

Identity is the `id` of an entry with its time: ids have eight digits only, and a fork copies both. Every branch is read.
A skill that the user calls is written with its whole text in front of what was typed; the text is left out and the call is
kept as `/skill:name`. A command that the user ran with `!` is a tool event.
"""

from __future__ import annotations

import re

from bethink.agents.base import NO_SPEECH, SUMMARY, Fields, Taken, make_id, name_unknown, texts_of
from bethink.agents.transcript import LineTranscript

_SKILL = re.compile(r"\s*<skill name=\"([\w.:-]{1,80})\"[^>\n]{0,500}>")
_SILENT = ("session", "model_change", "thinking_level_change", "custom", "custom_message", "label")
_ROLES = ("user", "assistant")


class PiTranscript(LineTranscript):
    host = "pi"

    def take(self, entry: Fields) -> Taken:
        kind = entry.text("type")
        if kind == "session":
            self.locate(entry.get("cwd"), session=entry.get("id"))
        if kind == "session_info":
            self.set_title(entry.get("name"))
            return NO_SPEECH
        if kind in ("compaction", "branch_summary"):
            return self.add_message(entry, SUMMARY, entry.text("summary"))
        if kind != "message":
            return NO_SPEECH if kind in _SILENT else name_unknown(kind)
        message = entry.object("message")
        role = message.text("role")
        if role == "toolResult":
            return self.take_result(entry, message)
        if role == "bashExecution":
            return self.take_command(entry, message)
        if role not in _ROLES:
            return NO_SPEECH if message.get("display") is not True else name_unknown(role)
        for item in message.objects("content"):
            if item.get("type") == "toolCall":
                self.add_call(item.get("name"), item.get("arguments"), item.get("id"))
        text = "\n\n".join(texts_of(message.get("content")))
        taken = self.add_message(entry, role, strip_skill(text) if role == "user" else text)
        if message.get("stopReason") == "aborted":
            self.mark("interrupted")
        return taken

    def add_message(self, entry: Fields, role: str, text: str) -> Taken:
        id = entry.name("id")
        known = make_id(id, entry.text("timestamp")) if id else None
        return self.make_turn(known, role, text, entry.time())

    def take_result(self, entry: Fields, message: Fields) -> Taken:
        output = "\n".join(texts_of(message.get("content")))
        self.add_result(
            message.get("toolCallId"), output, message.get("isError") is True, at=entry.time()
        )
        return NO_SPEECH

    def take_command(self, entry: Fields, message: Fields) -> Taken:
        id, code = entry.name("id"), message.get("exitCode")
        self.add_call("bash", {"command": message.get("command")}, id)
        self.add_result(id, message.text("output"), code not in (0, None), at=entry.time())
        return NO_SPEECH


def strip_skill(text: str) -> str:
    """Replace the text of a skill by the call that the user typed."""
    opening, (_, closing, typed) = _SKILL.match(text), text.rpartition("</skill>")
    return f"/skill:{opening[1]} {typed.strip()}".strip() if opening and closing else text
