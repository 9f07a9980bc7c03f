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

from bethink.hosts.base import (
    CONTEXT,
    EMPTY,
    START,
    THINKING,
    TOOL_RESULT,
    UNKNOWN,
    Position,
    Turn,
    as_dict,
    as_text,
    dict_of,
    dicts_of,
    make_id,
    name_of,
    text_of,
    texts_of,
    time_of,
)
from bethink.hosts.transcript import (
    BOUND,
    LineTranscript,
    Transcript,
    WholeTranscript,
    read_head,
    read_objects,
)

# No folder is known for them.
TRANSCRIPTS = ("", "")
ROLES = {
    name: role
    for role, names in {
        "user": "user human you me prompt",
        "assistant": "assistant ai gpt chatgpt claude gemini copilot codex cursor agent bot model response",
        "system": "system developer",
        "tool": "tool function tool_result",
    }.items()
    for name in names.split()
} | {"tool result": "tool"}
UNSPOKEN = {"system": CONTEXT, "tool": TOOL_RESULT}
# Where exports keep their messages, and lists of conversations.
HOLDERS = ("mapping", "chat_messages", "messages", "conversations")
LONGEST_LINE = 20_000  # characters; a longer one names no speaker
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


def read(path: Path, position: Position = START, bound: int = BOUND) -> Transcript:
    head = read_head(path)
    if is_one_per_line(path, head):
        return ChatLines(path, position, bound)
    return (ChatExport if is_json(head) else ChatText)(path, position)


def is_one_per_line(path: Path, head: bytes) -> bool:
    """Whether each line is a value. Names promise little: a list or an object over many lines is also found as `.jsonl`."""
    first, more, _ = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")
    values, whole = read_objects(first)
    if path.suffix in (".jsonl", ".ndjson"):
        items = (item for value in values if isinstance(value, list) for item in value)
        is_list = any(is_chat(as_dict(item)) for item in items)
        return not is_list and first.strip() not in (b"[", b"{")
    return bool(more) and whole and len(values) == 1 and is_chat(as_dict(values[0]))


def is_chat(entry: Mapping[str, Any]) -> bool:
    speaks = find_role(entry) and not entry.keys().isdisjoint(("content", "text", "value"))
    return bool(speaks) or any(isinstance(entry.get(key), dict | list) for key in HOLDERS)


def find_role(fields: Mapping[str, Any]) -> str | None:
    author = fields.get("role") or fields.get("sender") or fields.get("from")
    return ROLES.get(as_text(author or dict_of(fields, "author").get("role")).lower())


def is_likely(path: Path, head: bytes) -> bool:
    """Whether a file that no host claims may be a chat."""
    if is_json(head):
        return any(mark in head for mark in (b'"role"', b'"mapping"', b'"chat_messages"'))
    return path.suffix.lower() in TEXT_SUFFIXES and len(find_speakers(split_lines(head))) > 1


def is_json(head: bytes) -> bool:
    return decode(head).lstrip()[:1] in ("{", "[")


def decode(data: bytes) -> str:
    """Text in the encoding its first bytes name. What is no text in it becomes U+FFFD."""
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    return data.decode("utf-16" if wide else "utf-8-sig", "replace")


def split_lines(data: bytes) -> list[str]:
    return decode(data).replace("\r\n", "\n").split("\n")


class Chat(Transcript):
    host = "plain"

    def begin(self, state: Mapping[str, Any]) -> None:
        super().begin(state)
        self.session = self.session or self.path.name.partition(".")[0]
        self.conversation = ""

    def take_message(self, fields: dict[str, Any], number: int) -> Turn | str:
        """One message of any export."""
        role = find_role(fields)
        if role not in ("user", "assistant"):
            return UNSPOKEN.get(role or "", UNKNOWN)
        hidden = dict_of(fields, "metadata").get("is_visually_hidden_from_conversation") is True
        if hidden or fields.get("recipient", "all") != "all":
            return CONTEXT
        content = dict_of(fields, "content")
        if content.get("content_type", "text") not in ("text", "multimodal_text"):
            return THINKING
        texts = texts_of(content.get("parts", fields.get("content")))
        text = "\n\n".join(text for text in texts if text.strip())
        text = text or text_of(fields, "text") or text_of(fields, "value")
        if not text.strip():
            return EMPTY
        session = self.conversation or self.session
        id = name_of(fields, "id", "uuid") or make_id(session, number, text)
        at = time_of(fields, "timestamp", "created_at", "create_time", "time", "date")
        return self.make_turn(id, role, text, at, number, session=session)


class ChatLines(Chat, LineTranscript):
    def take(self, entry: dict[str, Any], number: int) -> Iterable[Turn | str]:
        self.locate(entry.get("cwd"), entry.get("branch"))
        return (self.take_message(entry, number),)


class ChatExport(Chat, WholeTranscript):
    def take_all(self, data: bytes) -> Iterable[Turn | str]:
        number = 0
        for fields, messages in find_conversations(json.loads(decode(data), strict=False)):
            self.conversation = name_of(fields, "conversation_id", "uuid", "id") or ""
            title = name_of(fields, "title", "name", length=500)
            self.set_title(title, self.conversation or self.session)
            for message in messages:
                number += 1
                yield self.take_message(message, number)


def find_conversations(value: Any) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Each conversation of an export, with its messages in order."""
    fields = as_dict(value)
    if isinstance(fields.get("mapping"), dict):
        yield fields, find_shown_branch(fields)
    elif any(isinstance(fields.get(key), list) for key in ("chat_messages", "messages")):
        yield fields, dicts_of(fields, "chat_messages") or dicts_of(fields, "messages")
    elif isinstance(fields.get("conversations"), list):
        yield from find_conversations(fields["conversations"])
    elif isinstance(value, list):
        items = list(map(as_dict, value))
        if any(is_chat(item) and item.keys().isdisjoint(HOLDERS[:3]) for item in items):
            yield {}, items
        else:
            for item in items:
                yield from find_conversations(item)


def find_shown_branch(conversation: Mapping[str, Any]) -> list[dict[str, Any]]:
    nodes = dict_of(conversation, "mapping")
    branch: dict[str, dict[str, Any]] = {}
    at = text_of(conversation, "current_node")
    while at in nodes and at not in branch:
        branch[at] = dict_of(nodes, at)
        at = text_of(branch[at], "parent")
    shown = reversed(branch.values()) if branch else map(as_dict, nodes.values())
    return [message for node in shown if (message := dict_of(node, "message"))]


class ChatText(Chat, WholeTranscript):
    """Markdown or text in which the speakers are named."""

    def take_all(self, data: bytes) -> Iterable[Turn | str]:
        text_lines = split_lines(data)
        found = find_speakers(text_lines)
        preface = text_lines[: found[0][0] if found else 0]
        titles = [line.lstrip("# ").strip() for line in preface if line.startswith("# ")]
        self.set_title(titles[0] if titles else None)
        ends = [*(start for start, _, _ in found[1:]), len(text_lines)]
        for (start, role, rest), end in zip(found, ends, strict=True) if found else ():
            text = "\n".join([rest, *text_lines[start + 1 : end]])
            text = text.strip().removesuffix("---").strip()
            id = make_id(self.session, start + 1, text)
            yield UNSPOKEN.get(role) or self.make_turn(id, role, text, None, start + 1)
        if not found:
            yield UNKNOWN


def find_speakers(text_lines: list[str]) -> list[tuple[int, str, str]]:
    """Where somebody begins to speak: the line from 0, the role, and what is said on that line. Not inside fenced code."""
    marks: list[list[tuple[int, str, str]]] = [[] for _ in STYLES]
    fence = ""
    for number, line in enumerate(text_lines):
        opening = _FENCE.match(line)
        if opening and (not fence or opening[1].startswith(fence)):
            fence = "" if fence else opening[1]
        if fence or len(line) > LONGEST_LINE:
            continue
        matches = ((style, pattern.match(line)) for style, pattern in enumerate(STYLES))
        for style, match in matches:
            if match:
                role, rest = ROLES[match["name"].lower()], match.groupdict().get("rest") or ""
                marks[style].append((number, role, rest))
                break
    styles = (found for found in marks if len(found) > 1 and "user" in {one[1] for one in found})
    return next(styles, [])
