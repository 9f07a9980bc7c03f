"""Chats of no particular host: JSON lines of {role, content}, and where they are known: id, timestamp, cwd, branch.

Identity is the message's own id if it has one, otherwise its session, number and text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bethink.hosts.base import Reason, Turn, make_id, name_of, text_of, texts_of, time_of
from bethink.hosts.place import HostFolder
from bethink.hosts.transcript import LineTranscript

TRANSCRIPTS = (HostFolder(""),)  # no place is known for them
ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}
UNSPOKEN: dict[str, Reason] = {"system": "context added by the host", "tool": "tool result"}


def is_message(entry: Mapping[str, Any]) -> bool:
    return text_of(entry, "role").lower() in (*ROLES, *UNSPOKEN) and "content" in entry


class PlainTranscript(LineTranscript):
    host = "plain"

    def take(self, entry: dict[str, Any]) -> Turn | Reason:
        self.session = self.session or self.path.name.partition(".")[0]
        self.locate(entry.get("cwd"), entry.get("branch"))
        named = text_of(entry, "role").lower()
        if named not in ROLES:
            return UNSPOKEN.get(named, "unknown type")
        text = "\n\n".join(text for text in texts_of(entry.get("content")) if text.strip())
        if not text.strip():
            return "empty"
        id = name_of(entry, "id") or make_id(self.session, self.number, text)
        return self.make_turn(id, ROLES[named], text, time_of(entry, "timestamp"))


read = PlainTranscript
