"""Droid: a line per message, with the blocks of Claude Code in it, behind a line about the session.

A sub-agent has a separate session, whose title begins with a fixed phrase; its prompt is machine-made.
"""

from __future__ import annotations

from bethink.agents.base import NO_SPEECH, Fields, Taken, name_unknown, texts_of
from bethink.agents.claude_transcript import find_typed
from bethink.agents.transcript import LineTranscript

_SUBAGENT = "# Task Tool Invocation"
_SILENT = ("session_end", "todo_state", "settings", "compaction_state")


class DroidTranscript(LineTranscript):
    host = "droid"
    kept = LineTranscript.kept | {"agent": None}

    def take(self, entry: Fields) -> Taken:
        kind = entry.text("type")
        if kind == "session_start":
            self.locate(entry.get("cwd"), session=entry.get("id"))
            title = entry.text("title")
            if title.startswith(_SUBAGENT):
                self.agent = entry.name("id") or "subagent"
            else:
                self.set_title(entry.get("sessionTitle") or title)
            return NO_SPEECH
        if kind != "message":
            return NO_SPEECH if kind in _SILENT else name_unknown(kind)
        message = entry.object("message")
        for item in message.objects("content"):
            if item.get("type") == "tool_use":
                self.add_call(item.get("name"), item.get("input"), item.get("id"))
            elif item.get("type") == "tool_result":
                output = "\n".join(texts_of(item.get("content")))
                failed = item.get("is_error") is True
                self.add_result(item.get("tool_use_id"), output, failed, at=entry.time())
        texts, role = texts_of(message.get("content")), message.text("role")
        texts = find_typed(texts) if role == "user" else texts
        return self.make_turn(entry.name("id"), role, "\n\n".join(texts), entry.time())
