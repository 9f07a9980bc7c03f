"""Claude Code, 1.0 to 2.1: `projects/<slug>/<session>.jsonl`, with separate files for sub-agents.

Identity is the `uuid` of the line. A fork copies lines into a new file under the same uuids, a resume goes on in the same file, and
compaction leaves everything before it where it was; its summary is marked as such. One answer of the model is several lines, one per
content block, each with its own uuid: each text among them is one turn.

Some words of the user are not in a `user` line with text: prompts typed while the agent was busy, slash commands, which are kept as typed,
and, inside tool results, answers to the agent's questions and reasons for refusing a tool call. What the user did without words is marked
at the next turn: interruptions, refused calls, and whether a plan was approved. A plan presented for approval is the agent's, though
it is written as a tool call, and so is the plan that a fresh context has to implement. The prompt of a sub-agent is machine-made; only the
sub-agent's answers are turns.

Prompts typed while the agent is busy wait in a queue. `queue-operation` lines have their text (`enqueue`) and their outcome: after
`dequeue` it becomes a prompt with a separate line, after `popAll` it is back in the editor, and after `remove` the model gets it within its
turn. For the last case, newer versions write a `queued_command`, and a file that has any needs nothing else. Older versions (2.1.49, not
2.1.114) write no more, so it becomes a turn when the model speaks next: at the line of its text, with the time of its removal. The file does
not say which one was removed. It is the first that was typed, because slash commands and notices of background tasks wait for the end of
the turn. One that the model never answered is not a turn.

`memory-mode` lines are obeyed, in a sub-agent's file those of its session. Abandoned branches of a conversation are read like any other.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from bethink.agents.base import (
    MACHINE,
    NO_SPEECH,
    RECAP,
    SUMMARY,
    Fields,
    Taken,
    as_name,
    as_time,
    name_unknown,
    read_object,
    texts_of,
)
from bethink.agents.speech import find_block, is_notice, remove_blocks
from bethink.agents.transcript import PLAN, LineTranscript, open_transcript, read_line
from bethink.model import Values
from bethink.skills import NAMES as OWN_COMMANDS
from bethink.text import TAG

TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
# Our skill that answers from memory, in a separate sub-agent: its words are known already, and must not confirm themselves.
RECALLING = ("remember", "bethink:remember")
# Commands that set something up or show something, and ask the agent for nothing.
_SETTINGS = frozenset(
    "add-dir agents clear compact config context copy cost doctor effort exit export fast feedback help hooks ide init install-github-app "
    "keybindings login logout mcp memory mobile model output-style permissions plugin plugins privacy-settings quit release-notes "
    "reload-plugins remote-control rename resume rewind sandbox stats status statusline tasks terminal-setup theme todos upgrade usage "
    "vim".split()
)
# What nobody said, and slash commands, which wait for the end of the turn; how much that waits is remembered.
REPORT, COMMAND = re.compile(r"<(?!/?private)[a-z]"), re.compile(r"\s*/[\w:-]{1,80}(?:\s|$)")
QUEUED, DEQUEUED = 32, -1
PLANS = ("exitplanmode", "exit_plan_mode")
# Lines that are no speech though they may have texts; and where a line of a kind that is not known would have them.
_SILENT = frozenset(
    "system progress attachment queue-operation summary file-history-snapshot file-history-delta last-prompt started result hook".split()
)
_SPOKEN = frozenset(("message", "content", "text"))
_REFUSED = (
    "The user doesn't want to proceed with this",
    "The user doesn't want to take this action",
)
_APPROVED = "User has approved your plan"
_INTERRUPTED = "[Request interrupted by user"
_REASONS = ("the user said:\n", "The user provided the following reason for the rejection:")
_NOTE = "\n\nNote: The user's next message may contain a correction or preference."


class ClaudeTranscript(LineTranscript):
    host = "claude"
    kept = LineTranscript.kept | {"idle": [], "queued": [], "given": [], "attached": False}
    idle: list[str]  # sub-agents that were only warmed up
    queued: list[list[Any]]  # what waits: where its line begins, its number; 0 of a slash command
    given: list[list[Any]]  # what of it the model was given, and when
    attached: bool  # whether this version writes down what it gives the model

    def begin(self, state: Values) -> None:
        super().begin(state)
        self.parents: set[str] = set()

    def take_all(self, entry: Fields) -> list[Taken]:
        return [*self.take_delivered(entry), self.take(entry)]

    def take(self, entry: Fields) -> Taken:
        type, session = entry.text("type"), entry.name("sessionId")
        self.locate(entry.get("cwd"), entry.get("gitBranch"), session)
        # Before 2.0.28 sub-agents had no id and were in the file of the session.
        aside = "sidechain" if entry.get("isSidechain") is True else None
        self.agent = entry.name("agentId") or aside
        if type == "assistant":
            return self.take_assistant(entry)
        if type == "user":
            return self.take_user(entry)
        if type == "attachment":
            return self.take_attachment(entry)
        if type == "queue-operation":
            self.follow_queue(entry)
        if type == "system" and entry.get("subtype") == "away_summary":
            text = entry.text("content").removesuffix("(disable recaps in /config)")
            return self.add_message(entry, RECAP, [text])
        if type == "memory-mode":
            off, at = entry.get("mode") == "off", entry.time()
            self.switch_memory(off, at, session or self.session)
        elif type in TITLES:
            self.set_title(entry.get(TITLES[type]), session)
        elif type not in _SILENT and entry.keys() & _SPOKEN:
            return name_unknown(type)
        return NO_SPEECH

    def add_message(
        self,
        entry: Fields,
        role: str,
        texts: list[str],
        *,
        plan: bool = False,
        asked: tuple[str, ...] = (),
    ) -> Taken:
        session = entry.name("sessionId") or self.session
        if self.agent and session and session not in self.parents:
            self.parents.add(session)
            self.obey_parent(session)
        text, at = "\n\n".join(texts), entry.time()
        id = entry.name("uuid")
        return self.make_turn(id, role, text, at, session=session, plan=plan, asked=asked)

    def take_assistant(self, entry: Fields) -> Taken:
        message = entry.object("message")
        if entry.get("isApiErrorMessage") is True or message.get("model") == "<synthetic>":
            return NO_SPEECH
        texts, plan = texts_of(message.get("content")), ""
        for item in message.objects("content"):
            if item.get("type") in ("tool_use", "server_tool_use"):
                self.add_call(item.get("name"), item.get("input"), item.get("id"))
                if item.text("name").lower() in PLANS:
                    plan = item.object("input").text("plan")
        if self.agent and (self.agent in self.idle or entry.get("parentUuid", "") is None):
            # Warmed up: an answer to "Warmup", or to nothing at all. The first line of real work is the prompt.
            return MACHINE
        if self.agent and entry.get("attributionSkill") in RECALLING:
            return "injected by Bethink"
        return self.add_message(
            entry, "assistant", [*texts, plan] if plan else texts, plan=bool(plan)
        )

    def take_user(self, entry: Fields) -> Taken:
        message = entry.object("message")
        texts = texts_of(message.get("content"))
        results = [one for one in message.objects("content") if one.get("type") == "tool_result"]
        for item in results:
            output = "\n".join(texts_of(item.get("content")))
            failed = item.get("is_error") is True
            self.mark_decision(item.get("tool_use_id"), output)
            self.add_result(item.get("tool_use_id"), output, failed, at=entry.time())
        if any(text.lstrip().startswith(_INTERRUPTED) for text in texts):
            self.mark("interrupted")
        if entry.get("isCompactSummary") is True:
            return self.add_message(entry, SUMMARY, texts)
        if is_made_by_machine(entry):
            return MACHINE
        if self.agent and "Warmup" in map(str.strip, texts):
            self.idle.append(self.agent)
        result = entry.object("toolUseResult")
        texts = find_typed(texts) + find_answers(result, results)
        planned = entry.text("planContent")
        if texts and not results and not self.agent:
            self.begin_prompt(texts)
        if texts and planned and not texts[0].startswith(PLAN):
            texts = [f"{PLAN}\n\n{planned}"]
        return self.add_message(entry, "user", texts, asked=find_questions(result))

    def mark_decision(self, call: object, output: str) -> None:
        """Note what the user decided about a call: declined it, or approved the plan that it shows."""
        plan = self.named.get(as_name(call) or "", "").lower() in PLANS
        if output.startswith(_REFUSED):
            self.mark("declined: plan") if plan else self.decline(call)
        elif output.startswith(_APPROVED):
            self.mark("approved: plan")

    def take_attachment(self, entry: Fields) -> Taken:
        attachment = entry.object("attachment")
        kind = attachment.text("type")
        if kind == "queued_command":
            self.attached, self.queued, self.given = True, [], []
        if kind == "queued_command" and attachment.get("commandMode", "prompt") == "prompt":
            return self.add_message(entry, "user", find_typed(texts_of(attachment.get("prompt"))))
        injected = attachment.get("content")
        content = "\n".join(texts_of(injected)) or str(injected)
        if not kind.startswith("hook_") or f"<{TAG}" not in content:
            return NO_SPEECH
        self.note_recalled(content)
        return "injected by Bethink"

    def follow_queue(self, entry: Fields) -> None:
        """Track the prompts that wait, and those that were passed to the model."""
        operation, spoken = entry.text("operation"), [one for one in self.queued if one[1] > 0]
        if operation == "enqueue" and not self.attached:
            text = "\n\n".join(find_typed(texts_of(entry.get("content"))))
            if text and not REPORT.match(text) and "task_id" not in (read_object(text) or ()):
                number = 0 if COMMAND.match(text) else self.number
                self.queued = [*self.queued, [self.offset, number]][-QUEUED:]
        elif operation == "remove" and spoken:
            self.queued.remove(spoken[0])
            if entry.text("reason") in ("", "absorbed_mid_turn"):
                self.given.append([*spoken[0], entry.text("timestamp")])
        elif operation == "popAll":
            (self.queued or self.given).clear()
        elif operation == "dequeue":
            for one in [one for one in self.queued if one[1] != DEQUEUED][:1]:
                one[1] = DEQUEUED

    def begin_prompt(self, texts: list[str]) -> None:
        """Update the queue when a prompt begins.

        A prompt begins only when nothing waits, or with one that waited; any others belong to an interrupted session. A text that comes as
        a prompt was not passed to the model before: what was removed then was a notice.
        """
        left = [one for one in self.queued if one[1] != DEQUEUED]
        self.queued = left if len(left) < len(self.queued) else []
        self.given = [one for one in self.given if self.read_queued(one)[1] != texts]

    def take_delivered(self, entry: Fields) -> list[Taken]:
        """Return what was typed and passed to the model before it said this."""
        aside = entry.get("isSidechain") is True or entry.name("agentId")
        if entry.get("type") != "assistant" or aside:
            return []
        now, here, self.agent = entry.text("timestamp"), self.number, None
        before = [one for one in self.given if one[2] < now]
        self.given = [one for one in self.given if one not in before]
        found: list[Taken] = []
        for one in before:
            self.number = one[1]
            line, texts = self.read_queued(one)
            found.append(self.add_message(line, "user", texts))
        self.number = here
        return found

    def read_queued(self, one: list[Any]) -> tuple[Fields, list[str]]:
        """Return the line of a queued prompt, with the time of its delivery, and its words.

        A position stores only the offset of the line.
        """
        offset, _, at = one
        with open_transcript(self.path) as file:
            file.seek(offset)
            line = Fields(read_object(read_line(file)[0]) or (), timestamp=at)
        return line, find_typed(texts_of(line.get("content")))

    def obey_parent(self, session: str) -> None:
        """Apply the memory switches of the session, which are not in a sub-agent's file."""
        for folder in self.path.parents[:5]:
            parent = folder / f"{session}.jsonl"
            if "/" not in session and parent != self.path and parent.is_file():
                # Only the times count here: the session's last switch may be later than the lines of this file.
                for whose, at, mode in find_switches(parent):
                    self.switch_memory(mode == "off", as_time(at), whose)
                self.off = [one for one in self.off if one != self.rename(session)]
                return


def find_switches(path: Path) -> list[list[str]]:
    """List the memory switches of a session. Reads only files that contain the words."""
    with path.open("rb") as file:
        if not any(b"memory-mode" in line or b"rivate>" in line for line in file):
            return []
    parent = ClaudeTranscript(path)
    for _ in parent.pages():
        pass
    return parent.stamps


def is_made_by_machine(entry: Fields) -> bool:
    marked = True in (entry.get("isMeta"), entry.get("isVisibleInTranscriptOnly"))
    by_system = entry.get("promptSource") == "system"
    return marked or by_system or entry.object("origin").text("kind") not in ("", "human", "user")


def find_typed(texts: list[str]) -> list[str]:
    """Return what a person typed, slash commands as they were typed."""
    found: list[str] = []
    for text in texts:
        start = text.lstrip()
        if start.startswith("<user-memory-input>"):
            found.append(find_block(text, "user-memory-input") or "")
        elif start.startswith(("<command-name>", "<command-message>")):
            found.append(find_slash_command(text))
        elif not is_notice(text):
            found.append(remove_blocks(text)[0] if "<" in text else text)
    return [text for text in found if text.strip()]


def find_slash_command(text: str) -> str:
    """Return a slash command as it was typed, '' for those that configure something or are ours."""
    command = (find_block(text, "command-name") or "").lstrip("/")
    plugin, _, name = command.rpartition(":")
    if not name or name in OWN_COMMANDS or "bethink" in plugin or name in _SETTINGS:
        return ""
    return f"/{command} {find_block(text, 'command-args') or ''}".strip()


def find_questions(result: Fields) -> tuple[str, ...]:
    """The questions of the agent that a tool result answers."""
    return tuple(result.object("answers")) if "questions" in result else ()


def find_answers(result: Fields, results: list[Fields]) -> list[str]:
    """Return the user's words in tool results: answers to questions, and reasons for refusing a call."""
    answers = result.object("answers")
    if find_questions(result):
        texts = {asked: ", ".join(texts_of(answer)) or answer for asked, answer in answers.items()}
        return [f"{asked}\n{answer}" for asked, answer in texts.items()]
    found: list[str] = []
    for item in results:
        text = "\n".join(texts_of(item.get("content")))
        if text.startswith(_REFUSED):
            reasons = [text.partition(reason)[2] for reason in _REASONS if reason in text]
            found += [one.partition(_NOTE)[0].strip() for one in reasons[:1]]
    return [text for text in found if text]
