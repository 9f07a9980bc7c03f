"""Codex CLI rollouts: `sessions/YYYY/MM/DD/rollout-….jsonl`, `.jsonl.zst`, `archived_sessions/`.

Identity is the `id` of a message. Older rollouts have none: there it is the thread that the rollout began with, the number of the
message in it, and the text. A fork names the thread it came from and begins with a copy of it, so the copied messages keep
their identity; only a fork of a fork is counted anew.

A rollout has every text twice, as `response_item` and as `event_msg`. Only the former is read. Of the messages with the role `user`,
only those marked `user.text` are a person's; in files without such marks, those that do not begin with one of the blocks Codex adds.
A review and other sub-agents have machine-made prompts and answer in separate threads. A thread of a sub-agent that names no parent is a
conversation: its first prompt is machine-made, and a person goes on in it.

Answers to questions of the agent are the output of its call `request_user_input`. The questions are read again from their line, because a
position keeps nothing that was said.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from bethink.agents.base import (
    MACHINE,
    NO_SPEECH,
    SUMMARY,
    Fact,
    Fields,
    Reason,
    Taken,
    as_name,
    make_id,
    name_unknown,
    read_object,
    texts_of,
)
from bethink.agents.speech import remove_blocks
from bethink.agents.transcript import (
    LineTranscript,
    drop_oldest,
    open_transcript,
    read_line,
)
from bethink.agents.work import describe_change
from bethink.model import ToolEvent

CALLS = (
    "function_call custom_tool_call local_shell_call web_search_call tool_search_call "
    "image_generation_call".split()
)
_SILENT = frozenset(
    "turn_context world_state token_usage_record inter_agent_communication session_state".split()
)
_ITEMS = frozenset(
    "reasoning compaction context_compaction compaction_summary ghost_snapshot other".split()
)
# The tool by which the agent asks the user, what an answer of a person's own begins with, and the choice beside it.
_ASKS, _NOTE, _NOTHING = "request_user_input", "user_note: ", "None of the above"
_MOST_QUESTIONS = 8
_DECLINED = re.compile(r"(?:exec command |patch |command )?rejected by (?:the )?user")
# The app and the editor's extension put what is open or attached in front of what was typed.
REQUEST = "## My request for Codex:\n"
ATTACHED = ("# Context from my IDE setup:", "# Files mentioned by the user:")
PREAMBLES = (
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
    "Another language model started to solve this problem",
)
_OUTPUTS = ("input_text", "output_text", "text")
# How the answer of a command says its exit status, as text or as JSON.
_EXITED = re.compile(r"\b[Ee]xit(?:ed with code |_code\W{1,4}| code: )(-?\d{1,9})")
# By which the app shows what was done: `::git-create-pr{branch="x" url="https://…/pull/7"}`, each on a separate line.
_DIRECTIVE = r"::(git-[a-z-]{2,30}|created-thread)\{([^}\n]{0,1000})\}"
_DIRECTIVES = re.compile(rf"^[ \t]{{0,8}}(?:{_DIRECTIVE}[ \t]{{0,8}}){{1,20}}$\n?", re.MULTILINE)
_NUMBER = re.compile(r"/(?:pull|merge_requests)/(\d{1,9})\b")
PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.{1,500})$", re.MULTILINE)


class CodexTranscript(LineTranscript):
    host = "codex"
    kept = LineTranscript.kept | {
        **{"agent": None, "thread": "", "messages": 0},
        **{"questions": {}, "task_next": False},
    }
    thread: str  # what identities of messages without one are counted in
    messages: int
    questions: dict[str, int]  # where the line of each call begins that asks the user
    task_next: bool  # the next prompt is the task of a sub-agent

    def take(self, entry: Fields) -> Taken:
        type, payload = entry.text("type"), entry.object("payload")
        if type == "response_item":
            return self.take_item(payload, entry)
        if type == "event_msg":
            return self.take_event(payload)
        if type == "session_meta":
            return self.take_head(payload)
        if type == "turn_context":
            self.locate(payload.get("cwd"))
        if type == "compacted":
            text = payload.text("message")
            return self.make_turn(None, SUMMARY, text, entry.time())
        return NO_SPEECH if type in _SILENT else name_unknown(type)

    def take_head(self, payload: Fields) -> Reason:
        """The head of a rollout. A fork may repeat that of the thread it came from; the first one counts."""
        git = payload.object("git")
        self.locate(payload.get("cwd") or git.get("cwd"), git.get("branch"))
        if not self.thread:
            id, parent = payload.name("id") or "", payload.name("parent_thread_id")
            self.thread = payload.name("forked_from_id") or id
            self.session = parent or payload.name("session_id") or id
            aside = payload.get("thread_source") == "subagent"
            self.task_next = aside and not parent
            if parent:
                self.agent = payload.name("agent_nickname", "agent_role") or id
        if payload.get("memory_mode") in ("off", "disabled"):
            self.switch_memory(True, payload.time(), self.session)
        return NO_SPEECH

    def take_item(self, payload: Fields, entry: Fields) -> Taken:
        type = payload.text("type")
        if type == "message":
            return self.take_message(payload, entry)
        if type in CALLS:
            arguments = payload.get("arguments")
            if isinstance(arguments, str):  # JSON inside a string
                arguments = read_object(arguments)
            name = payload.text("namespace") + payload.text("name")
            self.add_call(name or type, arguments, payload.get("call_id"))
            if name == _ASKS and (call := payload.name("call_id")):
                self.questions[call] = self.offset
                drop_oldest(self.questions, _MOST_QUESTIONS)
            patched = find_patched(payload)
            self.add_used((), patched, [Fact("edit", path) for path in patched])
            if patched:
                changed = ToolEvent(file=patched[0], change=describe_patch(find_patch(payload)))
                self.add_run(changed, payload.get("call_id"))
        elif type.endswith("_output"):
            output = payload.get("output")
            text = output if isinstance(output, str) else "\n".join(texts_of(output, _OUTPUTS))
            call, at, output = payload.get("call_id"), entry.time(), find_output(text)
            status = _EXITED.search(text[:400]) or _EXITED.search(text[-400:])
            failed = status is not None and status[1] != "0"
            if _DECLINED.match(output):
                self.decline(call)
            if start := self.questions.pop(as_name(call) or "", None) or 0:
                return self.take_answers(start, text, at, as_name(call))
            self.add_result(call, output, failed, at=at, certain=status is not None)
        elif type not in _ITEMS and not type.endswith("_call"):
            return name_unknown(type)
        return NO_SPEECH

    def take_answers(self, start: int, output: str, at: datetime | None, call: str | None) -> Taken:
        """Return the user's answers to the questions of the call whose line begins at `start`."""
        answers = (read_object(output) or Fields()).object("answers")
        with open_transcript(self.path) as file:
            file.seek(start)
            line = read_object(read_line(file)[0]) or Fields()
        asked = read_object(line.object("payload").get("arguments")) or Fields()
        found: dict[str, str] = {}
        for question in asked.objects("questions"):
            words = texts_of(answers.object(question.text("id")).get("answers"))
            notes = [one.removeprefix(_NOTE) for one in words if one.startswith(_NOTE)]
            chosen = [one for one in words if not one.startswith(_NOTE)]
            answer = [*(chosen if not notes or chosen != [_NOTHING] else []), *notes]
            if answer:
                found[question.text("question")] = ", ".join(answer)
        text = "\n\n".join(f"{question}\n{answer}" for question, answer in found.items())
        id = make_id(self.thread, "answers", call)
        return self.make_turn(id, "user", text, at, asked=tuple(found))

    def take_message(self, payload: Fields, entry: Fields) -> Taken:
        role, texts = payload.text("role"), texts_of(payload.get("content"), _OUTPUTS)
        self.messages += role in ("user", "assistant")
        if role == "user":
            marks = payload.object("internal_chat_message_metadata_passthrough")
            texts = find_typed(texts, marks.array("content_item_kinds"))
        text = "\n\n".join(texts)
        id = payload.name("id") or make_id(self.thread, self.messages, role, text)
        if role == "assistant" and "::" in text:
            text = self.take_directives(text)
        if role == "user" and self.task_next and text.strip():
            self.task_next = False
            return MACHINE
        return self.make_turn(id, role, text, entry.time())

    def take_directives(self, text: str) -> str:
        """Return an answer without the lines for the app, and note the pull requests that they name."""
        opened = [
            Fact("pull request", f"#{number[1]}")
            for name, values in re.findall(_DIRECTIVE, text)
            if name == "git-create-pr" and (number := _NUMBER.search(values))
        ]
        self.add_used((), (), opened)
        return _DIRECTIVES.sub("", text).rstrip()

    def take_event(self, payload: Fields) -> Reason:
        """Events repeat what was said, but know best which files a command read or a patch changed."""
        item = payload.object("item") or payload
        changed = [path for path in item.object("changes") if as_name(path, 1000)]
        reads = [one for one in item.objects("parsed_cmd") if one.get("type") == "read"]
        seen = [path for one in reads if (path := one.name("path", length=1000))]
        self.add_used((), [*changed, *seen])
        if payload.get("type") == "turn_aborted" and payload.get("reason") == "interrupted":
            self.mark("interrupted")
        if payload.get("type") == "thread_name_updated":
            self.set_title(payload.get("thread_name"))
        return NO_SPEECH


def find_typed(texts: list[str], kinds: list[Any]) -> list[str]:
    """Return the texts of a `user` message that a person typed."""
    if kinds:
        marked = zip(texts, kinds, strict=False)
        texts = [text for text, kind in marked if str(kind).startswith("user.")]
    found = []
    for text in texts:
        if text.startswith(ATTACHED) and REQUEST in text:
            text = text.partition(REQUEST)[2]
        if "<" in text:
            text = remove_blocks(text, ("skill", "INSTRUCTIONS", "user_action", "image"))[0]
        if text.strip() and not text.lstrip().startswith(PREAMBLES):
            found.append(text)
    return found


def find_patch(payload: Fields) -> str:
    text = payload.text("input") or payload.text("arguments").replace("\\n", "\n")
    return text if "*** Begin Patch" in text else ""


def find_patched(payload: Fields) -> list[str]:
    return [path.strip() for path in PATCHED.findall(find_patch(payload))]


def describe_patch(patch: str) -> str:
    """The first line of a patch that is replaced or added, as "old → new"."""
    lines = patch[:20_000].splitlines()
    removed = next((line[1:].strip() for line in lines if line.startswith("-")), "")
    added = next((line[1:].strip() for line in lines if line.startswith("+")), "")
    return describe_change(Fields(old_string=removed, new_string=added))


def find_output(text: str) -> str:
    """The output of a command without the lines that Codex puts above it."""
    if text.startswith("{") and (answer := read_object(text)) and "output" in answer:
        return answer.text("output")
    head, mark, output = text.partition("Output:\n")
    return output if mark and len(head) < 400 else text
