"""Claude Code, 1.0 to 2.1: `projects/<slug>/<session>.jsonl`, sub-agents in files of their own beside or below it.

Identity is the `uuid` of the line. A fork copies lines into a new file under the same uuids, a resume goes on in the same file, and
compaction leaves everything before it where it was; its summary comes as a turn that says so. One answer of the model is several
lines, one per content block, each with its own uuid: each text among them is one turn.

Not every word of a person is in a `user` line with text. Taken as the user's are also: prompts typed while the agent was busy
(`queued_command`; what 2.0 and early 2.1 wrote only as a `queue-operation` is passed over), arguments of slash commands, answers to the agent's questions and
the reason given when a tool call was refused, which both are hidden in tool results. A plan presented for approval is the agent's
word, though it is written as a tool call, and so is the one that a fresh context is told to implement. The prompt of a sub-agent is not the user's: it is machine-made, only what
the sub-agent answers is given.

`memory-mode` lines are obeyed, in a sub-agent's file those of its session. Which lines form the live branch of a conversation is not
worked out: what was said on an abandoned one was said too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bethink.hosts.base import (
    Reason,
    Turn,
    as_time,
    dict_of,
    dicts_of,
    find_block,
    find_reason,
    is_notice,
    name_of,
    remove_blocks,
    text_of,
    texts_of,
    time_of,
)
from bethink.hosts.transcript import (
    PLAN,
    LineTranscript,
    open_transcript,
    read_lines,
)
from bethink.skills import NAMES as OWN_COMMANDS
from bethink.text.fence import TAG

TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
# Our skill that answers from memory, in a sub-agent of its own: what it says is known already, and must not confirm itself.
RECALLING = ("remember", "bethink:remember")
# Commands whose arguments set something up and say nothing.
SETTINGS = frozenset(
    "add-dir agents clear compact config context copy cost doctor effort exit export fast feedback help hooks ide init install-github-app "
    "keybindings login logout mcp memory mobile model output-style permissions plugin plugins privacy-settings quit release-notes "
    "reload-plugins remote-control rename resume rewind sandbox stats status statusline tasks terminal-setup theme todos upgrade usage "
    "vim".split()
)
PLANS = ("exitplanmode", "exit_plan_mode")
REFUSED = "The user doesn't want to proceed with this tool use."
REASONS = ("the user said:\n", "The user provided the following reason for the rejection:")
ANSWERED = ("User has answered your questions:", "Your questions have been answered:")
NOTE = "\n\nNote: The user's next message may contain a correction or preference."


class ClaudeTranscript(LineTranscript):
    host = "claude"
    kept = LineTranscript.kept | {"idle": []}
    idle: list[str]  # sub-agents that were only warmed up

    def begin(self, state: Mapping[str, Any]) -> None:
        super().begin(state)
        self.parents: set[str] = set()

    def take(self, entry: dict[str, Any]) -> Turn | Reason:
        type, session = text_of(entry, "type"), name_of(entry, "sessionId")
        self.locate(entry.get("cwd"), entry.get("gitBranch"), session)
        self.agent = agent_of(entry)
        take = {
            "assistant": self.take_assistant,
            "user": self.take_user,
            "attachment": self.take_attachment,
            "system": self.take_system,
        }.get(type)
        if take:
            return take(entry)
        if type == "memory-mode":
            off, at = entry.get("mode") == "off", time_of(entry, "timestamp")
            self.switch_memory(off, at, session or self.session)
            return "bookkeeping"
        if type in TITLES:
            self.set_title(entry.get(TITLES[type]), session)
            return "bookkeeping"
        return "progress" if type == "progress" else find_reason(type)

    def say(
        self, entry: dict[str, Any], role: str, texts: list[str], **what: bool
    ) -> Turn | Reason:
        session = name_of(entry, "sessionId") or self.session
        if self.agent and session and session not in self.parents:
            self.parents.add(session)
            self.obey_parent(session)
        text, at = "\n\n".join(texts), time_of(entry, "timestamp")
        return self.make_turn(name_of(entry, "uuid"), role, text, at, session=session, **what)

    def take_assistant(self, entry: dict[str, Any]) -> Turn | Reason:
        message = dict_of(entry, "message")
        if entry.get("isApiErrorMessage") is True or message.get("model") == "<synthetic>":
            return "error or interruption"
        texts, plan = texts_of(message.get("content")), ""
        reason: Reason = "empty"
        for item in dicts_of(message, "content"):
            if item.get("type") in ("tool_use", "server_tool_use"):
                self.add_call(item.get("name"), item.get("input"), item.get("id"))
                if text_of(item, "name").lower() in PLANS:
                    plan = text_of(dict_of(item, "input"), "plan")
                reason = "tool call"
            elif item.get("type") in ("thinking", "redacted_thinking"):
                reason = "thinking"
        if self.agent and (self.agent in self.idle or entry.get("parentUuid", "") is None):
            # Warmed up: an answer to "Warmup", or to nothing at all. The first line of real work is the prompt.
            return "machine-made prompt"
        if self.agent and entry.get("attributionSkill") in RECALLING:
            return "injected by Bethink"
        if not texts and not plan:
            return reason
        return self.say(entry, "assistant", [*texts, plan] if plan else texts, plan=bool(plan))

    def take_user(self, entry: dict[str, Any]) -> Turn | Reason:
        message = dict_of(entry, "message")
        texts = texts_of(message.get("content"))
        results = [one for one in dicts_of(message, "content") if one.get("type") == "tool_result"]
        for item in results:
            output = "\n".join(texts_of(item.get("content")))
            self.add_result(item.get("tool_use_id"), output, item.get("is_error") is True)
        if entry.get("isCompactSummary") is True:
            return self.say(entry, "assistant", texts, summary=True)
        if is_made_by_machine(entry):
            return "machine-made prompt"
        if self.agent:
            if any(text.strip() == "Warmup" for text in texts):
                self.idle.append(self.agent)
            return "machine-made prompt" if texts else "tool result"
        texts, reason = find_typed(texts)
        texts += find_answers(dict_of(entry, "toolUseResult"), results)
        if not texts:
            return reason or ("tool result" if results else "empty")
        if (planned := text_of(entry, "planContent")) and not texts[0].startswith(PLAN):
            texts = [f"{PLAN}\n\n{planned}"]
        return self.say(entry, "user", texts)

    def take_attachment(self, entry: dict[str, Any]) -> Turn | Reason:
        attachment = dict_of(entry, "attachment")
        kind = text_of(attachment, "type")
        typed = attachment.get("commandMode", "prompt") == "prompt" and not self.agent
        if kind == "queued_command" and typed:
            texts, reason = find_typed(texts_of(attachment.get("prompt")))
            return self.say(entry, "user", texts) if texts else reason or "machine-made prompt"
        given = attachment.get("content")
        content = "\n".join(texts_of(given)) or str(given)
        if not kind.startswith("hook_") or f"<{TAG}" not in content:
            return "context added by the host"
        self.hear_memory(content)
        return "injected by Bethink"

    def take_system(self, entry: dict[str, Any]) -> Turn | Reason:
        kind = entry.get("subtype")
        if kind == "away_summary":
            text = text_of(entry, "content").removesuffix("(disable recaps in /config)")
            return self.say(entry, "assistant", [text], summary=True)
        if kind == "api_error":
            return "error or interruption"
        return "local command" if kind == "local_command" else "bookkeeping"

    def obey_parent(self, session: str) -> None:
        """A sub-agent works in a file of its own, while memory is switched in that of its session."""
        for folder in self.path.parents[:5]:
            parent = folder / f"{session}.jsonl"
            if "/" not in session and parent != self.path and parent.is_file():
                # Only the times count here: what the session's file says last may be later than what stands in this one.
                for whose, at, mode in find_switches(parent):
                    self.switch_memory(mode == "off", as_time(at), whose)
                self.off = [one for one in self.off if one != self.rename(session)]
                return


def find_switches(path: Path) -> list[Any]:
    """When memory was switched in a session. Few are read for it: those in which the words occur."""
    with open_transcript(path) as file:
        lines = (line.data or b"" for line in read_lines(file))
        if not any(b"memory-mode" in line or b"rivate>" in line for line in lines):
            return []
    parent = ClaudeTranscript(path)
    deque(parent.pages(), maxlen=0)
    return parent.stamps


read = ClaudeTranscript


def agent_of(entry: Mapping[str, Any]) -> str | None:
    """Which sub-agent a line belongs to. Before 2.0.28 they had no id and stood in the file of the session."""
    return name_of(entry, "agentId") or ("sidechain" if entry.get("isSidechain") is True else None)


def is_made_by_machine(entry: Mapping[str, Any]) -> bool:
    origin = dict_of(entry, "origin").get("kind")
    return (
        entry.get("isMeta") is True
        or entry.get("isVisibleInTranscriptOnly") is True
        or entry.get("promptSource") == "system"
        or (isinstance(origin, str) and origin not in ("human", "user"))
    )


def find_typed(texts: list[str]) -> tuple[list[str], Reason | None]:
    """What a person typed: slash commands become their arguments. With it the reason if a command leaves nothing."""
    found: list[str] = []
    reason: Reason | None = None
    for text in texts:
        start = text.lstrip()
        if start.startswith("<user-memory-input>"):
            found.append(find_block(text, "user-memory-input") or "")
        elif start.startswith(("<command-name>", "<command-message>")):
            words, reason = read_command(text)
            found.append(words)
        elif is_notice(text):
            reason = "error or interruption" if text.startswith("[") else "machine-made prompt"
        else:
            words, removed = remove_blocks(text) if "<" in text else (text, 0)
            if removed and not words.strip():
                reason = (
                    "local command"
                    if start.startswith(("<local-command", "<bash-"))
                    else "machine-made prompt"
                )
            found.append(words)
    return [text for text in found if text.strip()], reason


def read_command(text: str) -> tuple[str, Reason]:
    """What was typed behind a slash command, and the reason if that is nothing."""
    plugin, _, name = (find_block(text, "command-name") or "").lstrip("/").rpartition(":")
    if name in OWN_COMMANDS or "bethink" in plugin:
        return "", "injected by Bethink"
    return "" if name in SETTINGS else find_block(text, "command-args") or "", "local command"


def find_answers(result: dict[str, Any], results: list[dict[str, Any]]) -> list[str]:
    """What the user said in tool results: answers to questions, and why a call was refused."""
    answers = dict_of(result, "answers")
    if answers and "questions" in result:
        said = {asked: ", ".join(texts_of(answer)) or answer for asked, answer in answers.items()}
        return [f"{asked}\n{answer}" for asked, answer in said.items()]
    found = []
    for item in results:
        text = "\n".join(texts_of(item.get("content")))
        if text.startswith(REFUSED):
            given = [text.partition(reason)[2] for reason in REASONS if reason in text]
            found += [one.partition(NOTE)[0].strip() for one in given[:1]]
        elif text.startswith(ANSWERED):
            found.append(text.partition(":")[2].partition(" You can now continue")[0].strip())
    return [text for text in found if text]
