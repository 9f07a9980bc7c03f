"""Claude Code, 1.0 to 2.1: `projects/<slug>/<session>.jsonl`, sub-agents in files of their own beside or below it.

Identity is the `uuid` of the line. A fork copies lines into a new file under the same uuids, a resume goes on in the same file, and
compaction leaves everything before it where it was; its summary comes as a turn that says so. One answer of the model is several
lines, one per content block, each with its own uuid: each text among them is one turn.

Not every word of a person is in a `user` line with text. Taken as the user's are also: prompts typed while the agent was busy
(`queued_command`, and in 2.0 and early 2.1 only a `queue-operation`), arguments of slash commands, answers to the agent's questions and
the reason given when a tool call was refused, which both are hidden in tool results. A plan presented for approval is the agent's
word, though it is written as a tool call. The prompt of a sub-agent is not the user's: it is machine-made, only what
the sub-agent answers is given.

`memory-mode` lines are obeyed, in a sub-agent's file those of its session. Which lines form the live branch of a conversation is not
worked out: what was said on an abandoned one was said too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bethink.hosts import lines as bytewise
from bethink.hosts.base import (
    BOOKKEEPING,
    COMMAND,
    CONTEXT,
    EMPTY,
    ERROR,
    INJECTED,
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
from bethink.hosts.speech import block, memory_mode, notice, split_private, without_blocks
from bethink.hosts.transcript import LineTranscript
from bethink.text.fence import TAG

NAME = "claude"

BOOKKEEPING_TYPES = frozenset(
    "mode permission-mode last-prompt tag agent-name agent-color agent-setting file-history-snapshot file-history-delta pr-link frame-link "
    "attribution-snapshot content-replacement worktree-state relocated bridge-session cost-state tools-used continued-in derived-from "
    "fork-context-ref ended-by-model history-suppression api-request api-request-shape api-request-blob atis-latch isolation-latch "
    "session-owner started result".split()
)
# Our skill that answers from memory, in a sub-agent of its own: what it says is known already, and must not confirm itself.
RECALLING = ("remember", "bethink:remember")
TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
# Commands whose arguments set something up and say nothing.
SETTINGS = frozenset(
    "add-dir agents clear compact config context copy cost doctor effort exit export fast feedback help hooks ide init install-github-app "
    "keybindings login logout mcp memory mobile model output-style permissions plugin plugins privacy-settings quit release-notes "
    "reload-plugins remote-control rename resume rewind sandbox stats status statusline tasks terminal-setup theme todos upgrade usage "
    "vim".split()
)
OWN_COMMANDS = frozenset(
    "remember memory-stats memory-topics memory-backfill memory-add memory-search resolve-duplicates resolve-contradictions".split()
)
REFUSED = "The user doesn't want to proceed with this tool use."
REASONS = ("the user said:\n", "The user provided the following reason for the rejection:")
ANSWERED = ("User has answered your questions:", "Your questions have been answered:")
NOTE = "\n\nNote: The user's next message may contain a correction or preference."
QUEUED = 16


def read(path: Path, position: Position = START, bound: int = bytewise.BOUND) -> ClaudeTranscript:
    return ClaudeTranscript(path, position, bound)


def recognises(entry: Mapping[str, Any]) -> bool:
    """Whether a line is one of Claude Code's."""
    type = text_of(entry.get("type"))
    if type in ("user", "assistant", "system", "attachment", "progress"):
        return "uuid" in entry or "parentUuid" in entry or "sessionId" in entry
    return type in TITLES or type in BOOKKEEPING_TYPES or type in ("queue-operation", "memory-mode")


def locate(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    folder = Path(environment.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "projects"
    for path in folder.glob("*/**/*.jsonl"):
        if path.name != "journal.jsonl":
            yield path


class Queued(NamedTuple):
    hash: str
    at: str
    line: int
    offset: int
    left: bool = False


def _queued(value: Any) -> Queued | None:
    item = list_of(value)
    if [type(part) for part in item] != [str, str, int, int, bool]:
        return None
    return Queued(*item)


class ClaudeTranscript(LineTranscript):
    host = NAME

    def begin(self, state: Mapping[str, Any]) -> None:
        super().begin(state)
        # Prompts typed while the agent was busy: hash of the text, time, line, its offset, whether they left the queue. The text itself
        # is not kept with the position, which is stored as it is: it is read again where it stands.
        self.queue = [item for item in map(_queued, list_of(state.get("queue"))) if item]
        self.texts: dict[int, str] = {}
        self.idle = set(texts_of(state.get("idle")))  # sub-agents that were only warmed up
        self.parents: set[str] = set()
        self.entitle(task_of(self.path), "")

    def state(self) -> dict[str, Any]:
        kept = {"queue": [list(item) for item in self.queue], "idle": sorted(self.idle)}
        return super().state() | {key: value for key, value in kept.items() if value}

    def take(self, entry: dict[str, Any], number: int) -> Iterable[Turn | str]:
        type = text_of(entry.get("type"))
        self.where(entry.get("cwd"), entry.get("gitBranch"), entry.get("sessionId"))
        if type == "assistant":
            return self.assistant(entry, number)
        if type == "user":
            return self.user(entry, number)
        if type == "attachment":
            return self.attachment(entry, number)
        if type == "system":
            return self.system(entry, number)
        if type == "queue-operation":
            return self.queued(entry, number)
        if type == "memory-mode":
            session = name_of(entry.get("sessionId")) or self.session
            self.remember(entry.get("mode") == "off", time_of(entry.get("timestamp")), session)
            return (BOOKKEEPING,)
        if type in TITLES:
            self.entitle(entry.get(TITLES[type]), name_of(entry.get("sessionId")))
            return (BOOKKEEPING,)
        return (
            PROGRESS
            if type == "progress"
            else BOOKKEEPING
            if type in BOOKKEEPING_TYPES
            else UNKNOWN,
        )

    def said(
        self, entry: dict[str, Any], role: str, text: str, number: int, summary: bool = False
    ) -> Turn | str:
        session = name_of(entry.get("sessionId")) or self.session
        agent = agent_of(entry)
        if agent and session and session not in self.parents:
            self.parents.add(session)
            self.obey_parent(session)
        return self.give(
            name_of(entry.get("uuid")),
            role,
            text,
            time_of(entry.get("timestamp")),
            number,
            session=session,
            agent=agent,
            summary=summary,
        )

    def assistant(self, entry: dict[str, Any], number: int) -> Iterator[Turn | str]:
        message, agent = dict_of(entry.get("message")), agent_of(entry)
        if entry.get("isApiErrorMessage") is True or message.get("model") == "<synthetic>":
            yield ERROR
            return
        yield from self.delivered()
        texts, reason = texts_of(message.get("content")), EMPTY
        for item in list_of(message.get("content")):
            fields = dict_of(item)
            if fields.get("type") in ("tool_use", "server_tool_use"):
                self.use(fields.get("name"), fields.get("input"), agent)
                texts += plan_of(fields)
                reason = TOOL_CALL
            elif fields.get("type") in ("thinking", "redacted_thinking"):
                reason = THINKING
        if agent and (agent in self.idle or entry.get("parentUuid", "") is None):
            # Warmed up: an answer to "Warmup", or to nothing at all. The first line of real work is the prompt.
            yield MACHINE
        elif agent and entry.get("attributionSkill") in RECALLING:
            yield INJECTED
        elif texts:
            yield self.said(entry, "assistant", "\n\n".join(texts), number)
        else:
            yield reason

    def user(self, entry: dict[str, Any], number: int) -> Iterator[Turn | str]:
        message, agent = dict_of(entry.get("message")), agent_of(entry)
        content = message.get("content")
        texts = texts_of(content)
        if entry.get("isCompactSummary") is True:
            yield self.said(entry, "assistant", "\n\n".join(texts), number, summary=True)
        elif made_by_machine(entry):
            yield MACHINE
        elif agent:
            if any(text.strip() == "Warmup" for text in texts):
                self.idle.add(agent)
            yield TOOL_RESULT if not texts else MACHINE
        else:
            reason = (
                TOOL_RESULT
                if any(dict_of(item).get("type") == "tool_result" for item in list_of(content))
                else EMPTY
            )
            texts, commands = typed(texts)
            texts += answers_of(entry, content)
            self.unqueue("\n\n".join(texts))
            if reason != TOOL_RESULT:
                yield from self.delivered()
            if texts:
                yield self.said(
                    entry,
                    "user",
                    "\n\n".join(texts),
                    number,
                    summary=bool(text_of(entry.get("planContent"))),
                )
            else:
                yield commands or reason

    def attachment(self, entry: dict[str, Any], number: int) -> Iterator[Turn | str]:
        attachment = dict_of(entry.get("attachment"))
        kind = text_of(attachment.get("type"))
        if (
            kind == "queued_command"
            and attachment.get("commandMode", "prompt") == "prompt"
            and not agent_of(entry)
        ):
            texts, commands = typed(texts_of(attachment.get("prompt")))
            self.unqueue("\n\n".join(texts))
            yield (
                self.said(entry, "user", "\n\n".join(texts), number)
                if texts
                else commands or MACHINE
            )
        elif kind.startswith("hook_") and f"<{TAG}" in str(attachment.get("content")):
            yield INJECTED
        else:
            yield CONTEXT

    def system(self, entry: dict[str, Any], number: int) -> Iterator[Turn | str]:
        kind = entry.get("subtype")
        if kind == "away_summary":
            text = text_of(entry.get("content")).removesuffix("(disable recaps in /config)")
            yield self.said(entry, "assistant", text, number, summary=True)
        else:
            yield (
                ERROR
                if kind == "api_error"
                else COMMAND
                if kind == "local_command"
                else BOOKKEEPING
            )

    def queued(self, entry: dict[str, Any], number: int) -> Iterator[str]:
        """Follows the queue of prompts. One that is dequeued becomes a `user` line. One that is removed went to the model in the middle
        of its work: newer versions write it as an attachment, older ones nowhere else, so it is given by `delivered`."""
        operation = entry.get("operation")
        text = prompt_of(entry)
        if operation == "enqueue" and text and not text.startswith(("<", '{"task_id"', "/")):
            item = Queued(hashed(text), text_of(entry.get("timestamp")), number, self.start)
            self.queue = [*self.queue, item][-QUEUED:]
            self.texts = {
                kept.line: self.texts[kept.line] for kept in self.queue if kept.line in self.texts
            } | {number: text}
        elif operation == "remove":
            waiting = next(
                (place for place, item in enumerate(self.queue) if not item.left), len(self.queue)
            )
            left = [item._replace(left=True) for item in self.queue[waiting : waiting + 1]]
            self.queue = [*self.queue[:waiting], *left, *self.queue[waiting + 1 :]]
        elif operation == "popAll":
            self.queue = [item for item in self.queue if item.left]
        yield BOOKKEEPING

    def unqueue(self, text: str) -> None:
        """What stands in a line of its own is given under that line's identity."""
        self.queue = [item for item in self.queue if item.hash != hashed(text.strip())]

    def delivered(self) -> Iterator[Turn]:
        """Prompts that left the queue and have no line of their own, now that the model speaks again."""
        left, self.queue = (
            [item for item in self.queue if item.left],
            [item for item in self.queue if not item.left],
        )
        for item in left:
            text = self.texts.pop(item.line, "") or prompt_of(self.entry_at(item.offset))
            turn = self.give(
                hashed(self.session, "queued", item.at, item.hash),
                "user",
                text,
                time_of(item.at),
                item.line,
            )
            if isinstance(turn, Turn):
                yield turn

    def obey_parent(self, session: str) -> None:
        """A sub-agent works in a file of its own, while memory is switched in that of its session."""
        for folder in self.path.parents[:5]:
            parent = folder / f"{session}.jsonl"
            if "/" not in session and parent != self.path and parent.is_file():
                for at, off in switches(parent, self.bound):
                    self.remember(off, time_of(at), session)
                # Only the times count here: what the session's file says last may be later than what stands in this one.
                self.off.discard(self.rename(session))
                return


def agent_of(entry: Mapping[str, Any]) -> str | None:
    """Which sub-agent a line belongs to. Before 2.0.28 they had no id and stood in the file of the session."""
    return name_of(entry.get("agentId")) or (
        "sidechain" if entry.get("isSidechain") is True else None
    )


def task_of(path: Path) -> str | None:
    """What a sub-agent was started for, as the file beside its transcript says."""
    try:
        found, _ = (
            bytewise.objects(path.with_suffix(".meta.json").read_bytes())
            if path.name.startswith("agent-")
            else ([], True)
        )
    except OSError:
        return None
    return name_of(dict_of(found[0]).get("description"), 500) if found else None


def made_by_machine(entry: Mapping[str, Any]) -> bool:
    origin = dict_of(entry.get("origin")).get("kind")
    return (
        entry.get("isMeta") is True
        or entry.get("isVisibleInTranscriptOnly") is True
        or entry.get("promptSource") == "system"
        or (isinstance(origin, str) and origin not in ("human", "user"))
    )


def typed(texts: list[str]) -> tuple[list[str], str]:
    """What a person typed: slash commands become their arguments. With it the reason if a command leaves nothing."""
    found, reason = [], ""
    for text in texts:
        if text.lstrip().startswith("<user-memory-input>"):
            found.append(block(text, "user-memory-input") or "")
        elif text.lstrip().startswith(("<command-name>", "<command-message>")):
            name = (block(text, "command-name") or "").lstrip("/").rpartition(":")
            if name[2] in OWN_COMMANDS or "bethink" in name[0]:
                reason = INJECTED
            else:
                reason = COMMAND
                found.append("" if name[2] in SETTINGS else block(text, "command-args") or "")
        elif notice(text):
            reason = ERROR if text.startswith("[") else MACHINE
        elif "<" in text:
            words, removed = without_blocks(text)
            if not words.strip() and removed:
                reason = (
                    COMMAND if text.lstrip().startswith(("<local-command", "<bash-")) else MACHINE
                )
            found.append(words)
        else:
            found.append(text)
    return [text for text in found if text.strip()], reason


def prompt_of(entry: Mapping[str, Any]) -> str:
    """The prompt of a `queue-operation`."""
    return "\n\n".join(typed(texts_of(entry.get("content")))[0]).strip()


def plan_of(call: Mapping[str, Any]) -> list[str]:
    plan = text_of(dict_of(call.get("input")).get("plan"))
    return (
        [plan]
        if plan and text_of(call.get("name")).lower() in ("exitplanmode", "exit_plan_mode")
        else []
    )


def answers_of(entry: Mapping[str, Any], content: Any) -> list[str]:
    """What the user said in a tool result: answers to questions, and why a call was refused."""
    result = dict_of(entry.get("toolUseResult"))
    answers = dict_of(result.get("answers"))
    if answers and "questions" in result:
        return [
            f"{question}\n{', '.join(texts_of(answer)) or answer}"
            for question, answer in answers.items()
        ]
    found = []
    for item in list_of(content):
        fields = dict_of(item)
        text = (
            "\n".join(texts_of(fields.get("content")))
            if fields.get("type") == "tool_result"
            else ""
        )
        if text.startswith(REFUSED):
            found += [
                text.partition(reason)[2].partition(NOTE)[0].strip()
                for reason in REASONS
                if reason in text
            ][:1]
        elif text.startswith(ANSWERED):
            found.append(text.partition(":")[2].partition(" You can now continue")[0].strip())
    return [text for text in found if text]


def switches(path: Path, bound: int) -> Iterator[tuple[Any, bool]]:
    """When memory was switched in a session: (time, whether off)."""
    stream = bytewise.opened(path)
    hidden = False  # by a `<private>` that is not closed yet
    try:
        for line in bytewise.lines(stream, bound=bound):
            if not line.data or not (b"memory-mode" in line.data or b"rivate>" in line.data):
                continue
            for entry in map(dict_of, bytewise.objects(line.data)[0]):
                mode = entry.get("mode") if entry.get("type") == "memory-mode" else None
                if entry.get("type") == "user" and not made_by_machine(entry):
                    text = "\n".join(texts_of(dict_of(entry.get("message")).get("content")))
                    mode, text = memory_mode(text)
                    was, (_, hidden) = hidden, split_private(text, hidden)
                    mode = mode or (("off" if hidden else "on") if hidden != was else None)
                if mode:
                    yield entry.get("timestamp"), mode == "off"
    finally:
        stream.close()
