"""GitHub Copilot CLI: `session-state/<session>/events.jsonl`, before that `session-state/<session>.jsonl`.

Identity is `messageId` where a message has one, otherwise the `id` of the event. A resume goes on in the same file. The user's words
are `content`; `transformedContent` is what the model got to see, with the date and reminders around it. Messages of a sub-agent name
the tool call that started it; they are given under it, and its prompt is the machine's. The summary of a compaction comes as a
turn that says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bethink.hosts import lines as bytewise
from bethink.hosts.base import (
    BOOKKEEPING,
    CONTEXT,
    EMPTY,
    ERROR,
    MACHINE,
    PROGRESS,
    START,
    TOOL_CALL,
    TOOL_RESULT,
    UNKNOWN,
    Position,
    Turn,
    dict_of,
    list_of,
    name_of,
    text_of,
    time_of,
)
from bethink.hosts.transcript import LineTranscript

NAME = "copilot"
REASONS = {
    "tool.execution_complete": TOOL_RESULT,
    "tool.execution_start": TOOL_CALL,
    "system.message": CONTEXT,
    "abort": ERROR,
    "session.error": ERROR,
    "session.warning": ERROR,
}


def read(path: Path, position: Position = START, bound: int = bytewise.BOUND) -> CopilotTranscript:
    return CopilotTranscript(path, position, bound)


def recognises(entry: Mapping[str, Any]) -> bool:
    return "." in text_of(entry.get("type")) and isinstance(entry.get("data"), dict)


def locate(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    folder = _sessions(environment, home)
    yield from folder.glob("*/events.jsonl")
    yield from folder.glob("*.jsonl")


def directory(environment: Mapping[str, str], home: Path) -> str:
    """The directory of the session that started this process as a plugin's MCP server, '' where none did. Copilot starts those in
    the plugin's own folder and names no roots; what it wrote down about the session tells."""
    session = environment.get("COPILOT_AGENT_SESSION_ID", "")
    if (
        not environment.get("COPILOT_PLUGIN_ROOT")
        or not session
        or session in (".", "..")
        or "/" in session
        or "\\" in session
    ):
        return ""
    import yaml

    try:
        with (_sessions(environment, home) / session / "workspace.yaml").open("rb") as stream:
            told = yaml.safe_load(stream.read(64 << 10))
    except (OSError, ValueError, yaml.YAMLError, RecursionError):
        return ""
    return text_of(dict_of(told).get("cwd"))


def _sessions(environment: Mapping[str, str], home: Path) -> Path:
    return Path(environment.get("COPILOT_HOME") or home / ".copilot") / "session-state"


class CopilotTranscript(LineTranscript):
    host = NAME

    def take(self, entry: dict[str, Any], number: int) -> Iterable[Turn | str]:
        type, data = text_of(entry.get("type")), dict_of(entry.get("data"))
        at = time_of(entry.get("timestamp"))
        if type in ("session.start", "session.resume", "session.context_changed"):
            context = dict_of(data.get("context")) or data
            self.where(context.get("cwd"), context.get("branch"), data.get("sessionId"))
            return (BOOKKEEPING,)
        if type == "session.title_changed":
            self.entitle(data.get("title"))
            return (BOOKKEEPING,)
        id = name_of(data.get("messageId")) or name_of(entry.get("id"))
        agent = name_of(data.get("parentToolCallId"))
        if type == "user.message":
            # What was typed has no source; skills and notices name themselves in it.
            machine = agent or (name_of(data.get("source")) not in (None, "user"))
            return (
                MACHINE
                if machine
                else self.give(id, "user", text_of(data.get("content")), at, number),
            )
        if type == "assistant.message":
            return self.assistant(id, data, at, number, agent)
        if type == "session.compaction_complete":
            text = text_of(data.get("summaryContent"))
            return (
                self.give(id, "assistant", text, at, number, summary=True) if text else BOOKKEEPING,
            )
        if type in REASONS:
            return (REASONS[type],)
        return (PROGRESS if "." in type else UNKNOWN,)

    def assistant(
        self, id: str | None, data: dict[str, Any], at: Any, number: int, agent: str | None
    ) -> Iterator[Turn | str]:
        calls = [dict_of(call) for call in list_of(data.get("toolRequests"))]
        for call in calls:
            self.use(call.get("name"), call.get("arguments"), agent)
        text = text_of(data.get("content"))
        yield (
            self.give(id, "assistant", text, at, number, agent=agent)
            if text.strip()
            else TOOL_CALL
            if calls
            else EMPTY
        )
