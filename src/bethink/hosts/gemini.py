"""Gemini CLI: `~/.gemini/tmp/<project>/chats/session-….jsonl`, before that one `.json` object per session; sub-agents below `chats/`.

Identity is the `id` of a message. A message is written again when its tool calls are known, and a resume writes the whole history
again: by its id each is given once. If the words of a message changed, the newer ones are given too, under an identity of their own.
A rewind takes nothing back; what was said was said. The path of the project stands in `.project_root` beside `chats/`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bethink.hosts import lines as bytewise
from bethink.hosts.base import (
    BOOKKEEPING,
    EMPTY,
    ERROR,
    MACHINE,
    REPEATED,
    START,
    TOOL_CALL,
    TOOL_RESULT,
    UNKNOWN,
    WHOLE,
    Position,
    Turn,
    dict_of,
    hashed,
    list_of,
    name_of,
    text_of,
    time_of,
)
from bethink.hosts.transcript import HostTranscript, LineTranscript, WholeTranscript

NAME = "gemini"
KNOWN, RECENT = 50_000, 32
SNAPSHOT = "<state_snapshot>"
# What follows a compression: the machine speaks for the model.
ACKNOWLEDGED = "Got it. Thanks for the additional context!"


def read(
    path: Path, position: Position = START, bound: int = bytewise.BOUND
) -> GeminiTranscript | GeminiObject:
    return (
        GeminiObject(path, position, max(bound, WHOLE))
        if single(path)
        else GeminiTranscript(path, position, bound)
    )


def recognises(entry: Mapping[str, Any]) -> bool:
    if "sessionId" in entry and "projectHash" in entry:
        return True
    return (
        "$set" in entry
        or "$rewindTo" in entry
        or (entry.get("type") in ("user", "gemini") and "content" in entry and "id" in entry)
    )


def locate(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    folder = Path(environment.get("GEMINI_CLI_HOME") or home) / ".gemini" / "tmp"
    for ending in ("jsonl", "json"):
        yield from folder.glob(f"*/chats/**/*.{ending}")


def single(path: Path) -> bool:
    """Whether a file is one object over many lines, whatever its name says."""
    stream = bytewise.opened(path)
    try:
        first = (
            stream.read(bytewise.FIRST).lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0].strip()
        )
    finally:
        stream.close()
    return first == b"{" or (path.suffix == ".json" and first.startswith(b"{"))


class Messages(HostTranscript):
    """What both forms share: messages, and where the project is."""

    host = NAME

    def begin(self, state: Mapping[str, Any]) -> None:
        super().begin(state)
        self.words = {
            id: text_of(words) for id, words in dict_of(state.get("words")).items()
        }  # what messages said, hashed
        if not self.project:
            self.where(project_root(self.path))
        self.agent = name_of(state.get("agent"))

    def state(self) -> dict[str, Any]:
        # Of the newest ones also the next reading must know: a message is written again when its tools are done.
        kept = {"agent": self.agent, "words": dict(list(self.words.items())[-RECENT:])}
        return super().state() | {key: value for key, value in kept.items() if value}

    def head(self, fields: dict[str, Any]) -> None:
        folders = list_of(fields.get("directories"))
        self.where(None if self.cwd or not folders else folders[0], None, fields.get("sessionId"))
        if fields.get("kind") == "subagent":
            self.agent = name_of(fields.get("sessionId")) or "subagent"
            parent = self.path.parent.name
            self.session = self.session if parent == "chats" else parent
        self.entitle(fields.get("summary"))

    def message(self, fields: dict[str, Any], number: int, copied: bool = False) -> Turn | str:
        type, id = fields.get("type"), name_of(fields.get("id"))
        if type not in ("user", "gemini"):
            return (
                ERROR
                if type in ("error", "warning")
                else BOOKKEEPING
                if isinstance(type, str)
                else UNKNOWN
            )
        content = fields.get("content")
        parts = [content] if isinstance(content, str) else list_of(content) or [content]
        texts = [
            part if isinstance(part, str) else text_of(dict_of(part).get("text"))
            for part in parts
            if not thought(part)
        ]
        text = "\n\n".join(text for text in texts if text.strip())
        calls = [dict_of(call) for call in list_of(fields.get("toolCalls"))]
        for call in () if copied else calls:
            self.use(call.get("name"), call.get("args"), self.agent)
        if not text:
            results = any("functionResponse" in dict_of(part) for part in parts)
            return TOOL_RESULT if results else TOOL_CALL if calls else EMPTY
        if text == ACKNOWLEDGED or (type == "user" and self.agent):
            return MACHINE
        words, known = hashed(text), id in self.words
        if id and self.words.setdefault(id, words) != words:
            id = hashed(id, words)
            self.words.setdefault(id, words)
        elif id and known:
            return REPEATED
        while len(self.words) > KNOWN:
            del self.words[next(iter(self.words))]
        summary = text.lstrip().startswith(SNAPSHOT)
        role = "user" if type == "user" and not summary else "assistant"
        return self.give(
            id,
            role,
            text,
            time_of(fields.get("timestamp")),
            number,
            agent=self.agent,
            summary=summary,
        )


class GeminiTranscript(Messages, LineTranscript):
    def take(self, entry: dict[str, Any], number: int) -> Iterable[Turn | str]:
        update = dict_of(entry.get("$set"))
        if update or "sessionId" in entry:
            self.head(update or entry)
            replaced = [dict_of(message) for message in list_of(update.get("messages"))]
            return [self.message(message, number, copied=True) for message in replaced] or (
                BOOKKEEPING,
            )
        if "$rewindTo" in entry or "$set" in entry:
            return (BOOKKEEPING,)
        return (self.message(entry, number),)


class GeminiObject(Messages, WholeTranscript):
    def everything(self, data: bytes) -> Iterable[Turn | str]:
        value = json.loads(data.decode("utf-8-sig", "replace"), strict=False)
        if not isinstance(value, dict):
            raise ValueError("no session")
        self.head(value)
        return [
            self.message(dict_of(message), number)
            for number, message in enumerate(list_of(value.get("messages")), 1)
        ]


def thought(part: Any) -> bool:
    return dict_of(part).get("thought") is True


def project_root(path: Path) -> str | None:
    for folder in path.parents[:4]:
        if folder.name == "chats":
            try:
                return (
                    (folder.parent / ".project_root").read_text("utf-8", "replace").strip()[:1000]
                )
            except (OSError, ValueError):
                return None
    return None
