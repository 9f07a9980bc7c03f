"""GitHub Copilot CLI: `session-state/<session>/events.jsonl`, before that `session-state/<session>.jsonl`.

Identity is `messageId` where a message has one, otherwise the `id` of the event. A resume goes on in the same file. The user's words
are `content`; `transformedContent` is what the model got to see, with the date and reminders around it. Messages of a sub-agent name
the tool call that started it; they are given under it, and its prompt is the machine's. The summary of a compaction comes as a
turn that says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bethink.hosts.base import (
    NO_SPEECH,
    Reason,
    Turn,
    as_dict,
    dict_of,
    dicts_of,
    load_agents,
    name_of,
    text_of,
    time_of,
)
from bethink.hosts.transcript import LineTranscript


def find_directory(environment: Mapping[str, str], home: Path) -> str:
    """The directory of the session that started this process as a plugin's MCP server, '' where none did. Copilot starts those in
    the plugin's own folder and names no roots; what it wrote down about the session tells."""
    session = environment.get("COPILOT_AGENT_SESSION_ID", "")
    if (
        not environment.get("COPILOT_PLUGIN_ROOT")
        or not session.strip(".")
        or set(session) & {*"/\\"}
    ):
        return ""
    import yaml

    try:
        about = (
            load_agents()["copilot"].folder.find(environment, home)
            / "session-state"
            / session
            / "workspace.yaml"
        )
        with about.open("rb") as stream:
            return text_of(as_dict(yaml.safe_load(stream.read(64 << 10))), "cwd")
    except (OSError, ValueError, yaml.YAMLError, RecursionError):
        return ""


class CopilotTranscript(LineTranscript):
    host = "copilot"

    def take(self, entry: dict[str, Any]) -> Turn | Reason:
        type, data = text_of(entry, "type"), dict_of(entry, "data")
        id, at = name_of(data, "messageId") or name_of(entry, "id"), time_of(entry, "timestamp")
        self.agent = name_of(data, "parentToolCallId")
        if type == "user.message":
            # What was typed has no source; skills and notices name themselves in it.
            if self.agent or name_of(data, "source") not in (None, "user"):
                return "machine-made prompt"
            return self.make_turn(id, "user", text_of(data, "content"), at)
        if type == "assistant.message":
            calls = dicts_of(data, "toolRequests")
            for call in calls:
                self.add_call(call.get("name"), call.get("arguments"), call.get("toolCallId"))
            text = text_of(data, "content")
            if text.strip():
                return self.make_turn(id, "assistant", text, at)
            return NO_SPEECH
        if type == "tool.execution_complete":
            output = text_of(dict_of(data, "result"), "content")
            self.add_result(data.get("toolCallId"), output, data.get("success") is False)
        if type in ("session.start", "session.resume", "session.context_changed"):
            context = dict_of(data, "context") or data
            self.locate(context.get("cwd"), context.get("branch"), data.get("sessionId"))
        if type == "session.title_changed":
            self.set_title(data.get("title"))
        if type == "session.compaction_complete":
            text = text_of(data, "summaryContent")
            return self.make_turn(id, "assistant", text, at, summary=True)
        return NO_SPEECH


read = CopilotTranscript
