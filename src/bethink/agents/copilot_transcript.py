"""GitHub Copilot CLI: `session-state/<session>/events.jsonl`, or `session-state/<session>.jsonl`.

The second is the older form. Identity is `messageId` if a message has one, otherwise the `id` of the event. A resume goes on in the same
file. The user's words are `content`; `transformedContent` is what the model got, with the date and reminders around it. Messages of a
sub-agent name the tool call that started it and are attributed to it; its prompt is machine-made. The summary of a compaction is marked
as such.
"""

from __future__ import annotations

import re

from bethink.agents.base import MACHINE, NO_SPEECH, SUMMARY, Fields, Taken, name_unknown
from bethink.agents.transcript import LineTranscript

_EXITED = re.compile(
    r"<(?:shellId: \S{1,80} completed|exited|command completed) with exit code (-?\d{1,9})>"
)
# Beginnings of the kinds of events that are known.
_KINDS = frozenset(
    "session user assistant tool hook system subagent permission abort skill mcp command model exit_plan_mode "
    "external_tool elicitation sampling user_input capabilities commands".split()
)


class CopilotTranscript(LineTranscript):
    host = "copilot"

    def take(self, entry: Fields) -> Taken:
        type, data = entry.text("type"), entry.object("data")
        id, at = data.name("messageId") or entry.name("id"), entry.time()
        self.agent = data.name("parentToolCallId") or entry.name("agentId")
        if type == "user.message":
            # What was typed has no source; skills and notices name themselves in it.
            if data.name("source") not in (None, "user"):
                return MACHINE
            return self.make_turn(id, "user", data.text("content"), at)
        if type == "assistant.message":
            for call in data.objects("toolRequests"):
                self.add_call(call.get("name"), call.get("arguments"), call.get("toolCallId"))
            return self.make_turn(id, "assistant", data.text("content"), at)
        if type == "tool.execution_complete":
            output = data.object("result").text("content") or data.object("error").text("message")
            # A command that fails is a success of the tool: its exit status counts.
            status = data.object("shellExecution").get("exitCode", find_status(output))
            failed = data.get("success") is False or bool(status)
            self.add_result(data.get("toolCallId"), output, failed, at=at)
        if type in ("session.start", "session.resume", "session.context_changed"):
            context = data.object("context") or data
            self.locate(context.get("cwd"), context.get("branch"), data.get("sessionId"))
        if type == "session.title_changed":
            self.set_title(data.get("title"))
        if type == "session.compaction_complete":
            text = data.text("summaryContent")
            return self.make_turn(id, SUMMARY, text, at)
        if type == "abort":
            self.mark("interrupted")
        return NO_SPEECH if type.partition(".")[0] in _KINDS else name_unknown(type)


def find_status(output: str) -> int:
    """The exit status of a command, by the last line of its output; 0 where that names none."""
    found = _EXITED.search(output[-200:])
    return int(found[1]) if found else 0
