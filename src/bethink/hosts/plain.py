"""Exported chats of no particular host: Markdown or text with the speakers named, JSON, or JSON lines.

    Markdown    `## User`, `**Assistant:**`, `_**User (12:30)**_`, or lines that begin with `Human:`; the strongest style counts
    JSON        a list of {role, content}, the same under `messages` or `conversations`, OpenAI's export (`mapping`), Claude's
                (`chat_messages`)
    JSON lines  {role, content}

Identity is the message's own id if the export has one, otherwise its session, number and text. An OpenAI export is a tree; what is
given is the branch that was shown last. Text before the first speaker is not speech. Names of speakers in other languages than
English are not known here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bethink.hosts import lines as bytewise
from bethink.hosts.base import (
    CONTEXT,
    EMPTY,
    START,
    THINKING,
    TOOL_RESULT,
    UNKNOWN,
    WHOLE,
    Position,
    Transcript,
    Turn,
    dict_of,
    hashed,
    list_of,
    name_of,
    text_of,
    texts_of,
    time_of,
)
from bethink.hosts.transcript import HostTranscript, LineTranscript, WholeTranscript

NAME = "plain"
ROLES = {
    **dict.fromkeys(("user", "human", "you", "me", "prompt"), "user"),
    **dict.fromkeys(
        (
            "assistant",
            "ai",
            "gpt",
            "chatgpt",
            "claude",
            "gemini",
            "copilot",
            "codex",
            "cursor",
            "agent",
            "bot",
            "model",
            "response",
        ),
        "assistant",
    ),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function", "tool_result", "tool result"), "tool"),
}
UNSPOKEN = {"system": CONTEXT, "tool": TOOL_RESULT}
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
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def read(path: Path, position: Position = START, bound: int = bytewise.BOUND) -> Transcript:
    stream = bytewise.opened(path)
    try:
        head = stream.read(bytewise.FIRST)
    finally:
        stream.close()
    if one_per_line(path, head):
        return JsonLines(path, position, bound)
    return (Exported if is_json(head) else Named)(path, position, max(bound, WHOLE))


def one_per_line(path: Path, head: bytes) -> bool:
    """Whether each line is a value. Names promise little: a list or an object over many lines is also found as `.jsonl`."""
    first, more, _ = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")
    values, whole = bytewise.objects(first)
    if path.suffix in (".jsonl", ".ndjson"):
        chats = [
            value
            for value in values
            if isinstance(value, list) and any(recognises(dict_of(item)) for item in value)
        ]
        return not chats and first.strip() not in (b"[", b"{")
    return bool(more) and whole and len(values) == 1 and recognises(dict_of(values[0]))


def recognises(entry: Mapping[str, Any]) -> bool:
    speaks = text_of(entry.get("role") or entry.get("sender") or entry.get("from")).lower() in ROLES
    return (speaks and bool(entry.keys() & {"content", "text", "value"})) or any(
        isinstance(entry.get(key), dict | list)
        for key in ("mapping", "chat_messages", "messages", "conversations")
    )


def looks_like(path: Path, head: bytes) -> bool:
    """Whether a file that no host claims may be a chat."""
    if is_json(head):
        return any(mark in head for mark in (b'"role"', b'"mapping"', b'"chat_messages"'))
    return path.suffix.lower() in TEXT_SUFFIXES and len(list(speakers(lines_of(head)))) > 1


def locate(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    return iter(())


def is_json(head: bytes) -> bool:
    return decoded(head).lstrip()[:1] in ("{", "[")


def decoded(data: bytes) -> str:
    """Text in the encoding its first bytes name. What is no text in it becomes U+FFFD."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")


def lines_of(data: bytes) -> list[str]:
    return decoded(data).replace("\r\n", "\n").split("\n")


class Chat(HostTranscript):
    host = NAME

    def begin(self, state: Mapping[str, Any]) -> None:
        super().begin(state)
        self.session = self.session or self.path.name.partition(".")[0]
        self.conversation = ""

    def message(self, fields: dict[str, Any], number: int) -> Turn | str:
        """One message of any export."""
        author = (
            fields.get("role")
            or fields.get("sender")
            or fields.get("from")
            or dict_of(fields.get("author")).get("role")
        )
        role = ROLES.get(text_of(author).lower())
        if role not in ("user", "assistant"):
            return UNSPOKEN.get(role or "", UNKNOWN)
        metadata, content = dict_of(fields.get("metadata")), fields.get("content")
        if (
            metadata.get("is_visually_hidden_from_conversation") is True
            or fields.get("recipient", "all") != "all"
        ):
            return CONTEXT
        if dict_of(content).get("content_type", "text") not in ("text", "multimodal_text"):
            return THINKING
        text = (
            "\n\n".join(said for said in _content(content) if said.strip())
            or text_of(fields.get("text"))
            or text_of(fields.get("value"))
        )
        if not text.strip():
            return EMPTY
        at = next(
            (
                at
                for key in ("timestamp", "created_at", "create_time", "time", "date")
                if (at := time_of(fields.get(key)))
            ),
            None,
        )
        session = self.conversation or self.session
        id = (
            name_of(fields.get("id"))
            or name_of(fields.get("uuid"))
            or hashed(session, number, text)
        )
        return self.give(id, role, text, at, number, session=session)


def _content(content: Any) -> list[str]:
    parts = dict_of(content).get("parts")
    return (
        [part for part in parts if isinstance(part, str)]
        if isinstance(parts, list)
        else texts_of(content)
    )


class JsonLines(Chat, LineTranscript):
    def take(self, entry: dict[str, Any], number: int) -> Iterable[Turn | str]:
        self.where(entry.get("cwd"), entry.get("branch"))
        return (self.message(entry, number),)


class Exported(Chat, WholeTranscript):
    def everything(self, data: bytes) -> Iterable[Turn | str]:
        value = json.loads(decoded(data), strict=False)
        number = 0
        for fields, messages in conversations(value):
            self.conversation = (
                name_of(fields.get("conversation_id"))
                or name_of(fields.get("uuid"))
                or name_of(fields.get("id"))
                or ""
            )
            self.entitle(
                name_of(fields.get("title"), 500) or fields.get("name"),
                self.conversation or self.session,
            )
            for message in messages:
                number += 1
                yield self.message(message, number)


def conversations(value: Any) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Each conversation of an export, with its messages in order."""
    fields = dict_of(value)
    if isinstance(fields.get("mapping"), dict):
        yield fields, shown_branch(fields)
    elif any(isinstance(fields.get(key), list) for key in ("chat_messages", "messages")):
        yield (
            fields,
            [
                dict_of(message)
                for message in list_of(fields.get("chat_messages"))
                or list_of(fields.get("messages"))
            ],
        )
    elif isinstance(fields.get("conversations"), list):
        yield from conversations(fields["conversations"])
    elif isinstance(value, list):
        items = [dict_of(item) for item in value]
        if any(
            recognises(item) and not item.keys() & {"mapping", "chat_messages", "messages"}
            for item in items
        ):
            yield {}, items
        else:
            for item in items:
                yield from conversations(item)


def shown_branch(conversation: Mapping[str, Any]) -> list[dict[str, Any]]:
    nodes = dict_of(conversation.get("mapping"))
    branch: dict[str, dict[str, Any]] = {}
    at = text_of(conversation.get("current_node"))
    while at in nodes and at not in branch:
        branch[at] = dict_of(nodes[at])
        at = text_of(branch[at].get("parent"))
    messages = [dict_of(node.get("message")) for node in reversed(branch.values())] or [
        dict_of(dict_of(node).get("message")) for node in nodes.values()
    ]
    return [message for message in messages if message]


class Named(Chat, WholeTranscript):
    """Markdown or text in which the speakers are named."""

    def everything(self, data: bytes) -> Iterable[Turn | str]:
        lines = lines_of(data)
        found = list(speakers(lines))
        title = next(
            (
                line.lstrip("# ").strip()
                for line in lines[: found[0][0] if found else 0]
                if line.startswith("# ")
            ),
            None,
        )
        self.entitle(title)
        for (start, role, rest), (end, _, _) in zip(
            found, [*found[1:], (len(lines), "", "")], strict=True
        ):
            text = "\n".join([rest, *lines[start + 1 : end]]).strip().removesuffix("---").strip()
            if role in UNSPOKEN:
                yield UNSPOKEN[role]
            else:
                yield self.give(hashed(self.session, start + 1, text), role, text, None, start + 1)
        if not found:
            yield UNKNOWN


def speakers(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    """Where somebody begins to speak: the line from 0, the role, and what is said on that line. Not inside fenced code."""
    marks: list[list[tuple[int, str, str]]] = [[] for _ in STYLES]
    fence = ""
    for number, line in enumerate(lines):
        opening = _FENCE.match(line)
        if opening and (not fence or opening[1].startswith(fence)):
            fence = "" if fence else opening[1]
        if fence or len(line) > 20_000:
            continue
        for style, pattern in enumerate(STYLES):
            if match := pattern.match(line):
                marks[style].append(
                    (number, ROLES[match["name"].lower()], match.groupdict().get("rest") or "")
                )
                break
    for found in marks:
        if len(found) > 1 and "user" in {role for _, role, _ in found}:
            yield from found
            return
