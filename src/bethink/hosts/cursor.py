"""Cursor's agent transcripts: `~/.cursor/projects/<dashed path>/agent-transcripts/….jsonl`.

The format is not published. A line has a `role` and a `message` with `content` blocks; there are no ids, no times, no tool output. So
identity is the session (the name of the file), the number of the message and its text. What was typed stands in `<user_query>`.
The chats of the editor (`state.vscdb`) and of the command line (`store.db`) are databases without any documented schema and are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bethink.hosts import lines as bytewise
from bethink.hosts.base import (
    CONTEXT,
    EMPTY,
    MACHINE,
    START,
    TOOL_CALL,
    UNKNOWN,
    Position,
    Turn,
    dict_of,
    hashed,
    list_of,
    texts_of,
    time_of,
)
from bethink.hosts.speech import block, without_blocks
from bethink.hosts.transcript import LineTranscript

NAME = "cursor"
ADDED = (
    "attached_files",
    "open_and_recently_viewed_files",
    "additional_data",
    "user_info",
    "rules",
    "git_status",
    "agent_skills",
)


def read(path: Path, position: Position = START, bound: int = bytewise.BOUND) -> CursorTranscript:
    return CursorTranscript(path, position, bound)


def recognises(entry: Mapping[str, Any]) -> bool:
    return (
        entry.get("role") in ("user", "assistant")
        and isinstance(entry.get("message"), dict)
        and "type" not in entry
    )


def locate(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    yield from (home / ".cursor" / "projects").glob("*/agent-transcripts/**/*.jsonl")


class CursorTranscript(LineTranscript):
    host = NAME

    def begin(self, state: Mapping[str, Any]) -> None:
        super().begin(state)
        self.session = self.session or self.path.stem
        folders = [folder.name for folder in self.path.parents[:4]]
        self.agent = None
        if "subagents" in folders:
            above = self.path.parents[folders.index("subagents") + 1].name
            self.session, self.agent = (
                (self.path.stem if above == "agent-transcripts" else above),
                self.path.stem,
            )

    def take(self, entry: dict[str, Any], number: int) -> Iterable[Turn | str]:
        role, content = entry.get("role"), dict_of(entry.get("message")).get("content")
        if role not in ("user", "assistant"):
            return (CONTEXT if role in ("system", "tool") else UNKNOWN,)
        calls = [
            dict_of(item) for item in list_of(content) if dict_of(item).get("type") == "tool_use"
        ]
        for call in calls:
            self.use(call.get("name"), call.get("input"), self.agent)
        text = "\n\n".join(texts_of(content))
        if role == "user":
            if self.agent:
                return (MACHINE,)
            text = block(text, "user_query") or without_blocks(text, ADDED)[0]
        if not text.strip():
            return (TOOL_CALL if calls else EMPTY,)
        id = hashed(self.session, self.agent, number, role, text)
        return (
            self.give(
                id, str(role), text, time_of(entry.get("timestamp")), number, agent=self.agent
            ),
        )
