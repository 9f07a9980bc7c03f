"""Codex CLI rollouts: `sessions/YYYY/MM/DD/rollout-….jsonl`, cold ones as `.jsonl.zst`, archived ones under `archived_sessions/`.

Identity is the `id` of a message. Older rollouts have none: there it is the thread that the rollout began with, the number of the
message in it, and the text. A fork names the thread it came from and begins with a copy of it, so the copied messages keep
their identity; only a fork of a fork is counted anew.

Every text stands in a rollout twice, as `response_item` and as `event_msg`. Only the former is read. Of the messages with the role
`user` only those are a person's whose content is marked `user.text`; in files without such marks, those that do not begin with
one of the blocks Codex adds. A review and other sub-agents have prompts of the machine and answer in threads of their own; the
JSON of a review is given as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bethink.hosts import lines as bytewise
from bethink.hosts.base import (
    BOOKKEEPING,
    CONTEXT,
    MACHINE,
    PROGRESS,
    START,
    THINKING,
    TOOL_CALL,
    TOOL_RESULT,
    UNKNOWN,
    Position,
    Turn,
    dict_of,
    hashed,
    list_of,
    name_of,
    text_of,
    texts_of,
    time_of,
)
from bethink.hosts.speech import without_blocks
from bethink.hosts.transcript import LineTranscript

NAME = "codex"
TYPES = (
    "session_meta",
    "turn_context",
    "response_item",
    "event_msg",
    "compacted",
    "world_state",
    "token_usage_record",
)
CALLS = (
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "web_search_call",
    "tool_search_call",
    "image_generation_call",
)
# The editor's extension puts what is open in front of what was typed.
REQUEST = "## My request for Codex:\n"
EDITOR = "# Context from my IDE setup:"
PREAMBLES = (
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
    "Another language model started to solve this problem",
)
PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.{1,500})$", re.MULTILINE)


def read(path: Path, position: Position = START, bound: int = bytewise.BOUND) -> CodexTranscript:
    return CodexTranscript(path, position, bound)


def recognises(entry: Mapping[str, Any]) -> bool:
    return (entry.get("type") in TYPES and isinstance(entry.get("payload"), dict)) or (
        "instructions" in entry and "timestamp" in entry
    )


def locate(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    folder = Path(environment.get("CODEX_HOME") or home / ".codex")
    for place in ("sessions", "archived_sessions"):
        for ending in ("jsonl", "jsonl.zst"):
            yield from (folder / place).rglob(f"rollout-*.{ending}")


class CodexTranscript(LineTranscript):
    host = NAME

    def begin(self, state: Mapping[str, Any]) -> None:
        super().begin(state)
        self.agent = name_of(state.get("agent"))
        self.thread = (
            name_of(state.get("thread")) or ""
        )  # what identities of messages without one are counted in
        count = state.get("messages")
        self.messages = count if isinstance(count, int) else 0

    def state(self) -> dict[str, Any]:
        kept = {"agent": self.agent, "thread": self.thread, "messages": self.messages}
        return super().state() | {key: value for key, value in kept.items() if value}

    def take(self, entry: dict[str, Any], number: int) -> Iterable[Turn | str]:
        type, payload = text_of(entry.get("type")), dict_of(entry.get("payload"))
        if "payload" not in entry and type != "compacted":
            # The first rollouts had items without an envelope, behind a line with the session's id.
            if "instructions" in entry or entry.get("record_type") == "state":
                return self.meta(entry)
            type, payload = "response_item", entry
        if type == "response_item":
            return self.item(payload, entry, number)
        if type == "event_msg":
            return self.event(payload)
        if type == "session_meta":
            return self.meta(payload)
        if type == "turn_context":
            self.where(payload.get("cwd"))
            return (BOOKKEEPING,)
        if type == "compacted":
            text = text_of(payload.get("message"))
            at = time_of(entry.get("timestamp"))
            return (
                self.give(None, "assistant", text, at, number, agent=self.agent, summary=True)
                if text
                else BOOKKEEPING,
            )
        return (BOOKKEEPING if type in TYPES or type else UNKNOWN,)

    def meta(self, payload: dict[str, Any]) -> Iterable[str]:
        """The head of a rollout. A fork may repeat that of the thread it came from; the first one counts."""
        git = dict_of(payload.get("git"))
        self.where(payload.get("cwd") or git.get("cwd"), git.get("branch"))
        if not self.thread:
            id = name_of(payload.get("id")) or ""
            parent = name_of(payload.get("parent_thread_id"))
            self.thread = name_of(payload.get("forked_from_id")) or id
            self.session = parent or name_of(payload.get("session_id")) or id
            if parent or payload.get("thread_source") == "subagent":
                self.agent = agent_of(payload) or id
        if payload.get("memory_mode") in ("off", "disabled"):
            self.remember(True, time_of(payload.get("timestamp")), self.session)
        return (BOOKKEEPING,)

    def item(
        self, payload: dict[str, Any], entry: dict[str, Any], number: int
    ) -> Iterator[Turn | str]:
        type = text_of(payload.get("type"))
        if type == "message":
            yield self.message(payload, entry, number)
        elif type in CALLS:
            self.use(
                text_of(payload.get("namespace")) + text_of(payload.get("name")) or type,
                called(payload),
                self.agent,
            )
            self.keep((), patched(payload), self.agent)
            yield TOOL_CALL
        elif type.endswith("_output"):
            yield TOOL_RESULT
        else:
            yield THINKING if type == "reasoning" else BOOKKEEPING if type else UNKNOWN

    def message(self, payload: dict[str, Any], entry: dict[str, Any], number: int) -> Turn | str:
        role = payload.get("role")
        if role not in ("user", "assistant"):
            return CONTEXT
        texts = texts_of(payload.get("content"), ("input_text", "output_text", "text"))
        self.messages += 1
        if role == "user":
            if self.agent:
                return MACHINE
            texts = typed(
                texts,
                list_of(
                    dict_of(payload.get("internal_chat_message_metadata_passthrough")).get(
                        "content_item_kinds"
                    )
                ),
            )
            if not texts:
                return CONTEXT
        text = "\n\n".join(map(reviewed, texts) if self.agent else texts)
        at = time_of(entry.get("timestamp") or payload.get("timestamp"))
        id = name_of(payload.get("id")) or hashed(self.thread, self.messages, role, text)
        return self.give(id, str(role), text, at, number, agent=self.agent)

    def event(self, payload: dict[str, Any]) -> Iterator[str]:
        """Events repeat what was said, but know best which files a command read or a patch changed."""
        item = dict_of(payload.get("item")) or payload
        changed = [path for path in dict_of(item.get("changes")) if name_of(path, 1000)]
        commands = [dict_of(command) for command in list_of(item.get("parsed_cmd"))]
        seen = [
            path
            for command in commands
            if command.get("type") == "read" and (path := name_of(command.get("path"), 1000))
        ]
        if changed or seen:
            self.keep((), [*changed, *seen], self.agent)
        if payload.get("type") == "thread_name_updated":
            self.entitle(payload.get("thread_name"))
        yield PROGRESS


def agent_of(payload: Mapping[str, Any]) -> str | None:
    source = dict_of(payload.get("source")).get("subagent")
    kind = source if isinstance(source, str) else next(iter(dict_of(source)), None)
    return (
        name_of(payload.get("agent_nickname"))
        or name_of(payload.get("agent_role"))
        or name_of(kind)
    )


def typed(texts: list[str], kinds: list[Any]) -> list[str]:
    """Which texts of a `user` message a person typed."""
    if kinds:
        texts = [
            text
            for text, kind in zip(texts, kinds, strict=False)
            if isinstance(kind, str) and kind.startswith("user.")
        ]
    found = []
    for text in texts:
        if text.startswith(EDITOR) and REQUEST in text:
            text = text.partition(REQUEST)[2]
        if "<" in text:
            text = without_blocks(text, ("skill", "INSTRUCTIONS", "user_action"))[0]
        if text.strip() and not text.lstrip().startswith(PREAMBLES):
            found.append(text)
    return found


def reviewed(text: str) -> str:
    """A review as its reader sees it; the reviewer answers in JSON."""
    if not text.lstrip().startswith("{") or '"overall_correctness"' not in text:
        return text
    found, _ = bytewise.objects(text.encode("utf-8", "replace"))
    review = dict_of(found[0]) if found else {}
    findings = [dict_of(finding) for finding in list_of(review.get("findings"))]
    parts = [
        f"**{text_of(finding.get('title'))}**\n{text_of(finding.get('body'))}"
        for finding in findings
    ]
    verdict = [text_of(review.get(key)) for key in ("overall_correctness", "overall_explanation")]
    return "\n\n".join([*parts, ": ".join(part for part in verdict if part)]).strip() or text


def called(payload: Mapping[str, Any]) -> Any:
    """The arguments of a call, which are JSON inside a string."""
    arguments = payload.get("arguments")
    values, _ = (
        bytewise.objects(arguments.encode("utf-8", "replace"))
        if isinstance(arguments, str)
        else ([arguments], True)
    )
    return values[0] if values else None


def patched(payload: Mapping[str, Any]) -> list[str]:
    text = text_of(payload.get("input")) or text_of(payload.get("arguments")).replace("\\n", "\n")
    return [path.strip() for path in PATCHED.findall(text)] if "*** Begin Patch" in text else []
