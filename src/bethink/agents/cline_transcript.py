"""Cline and Roo Code: a task is a JSON list of what the panel shows.

The first text is the task that the user typed; later words of the user are `user_feedback`. A text of the model is `text`,
its report `completion_result`. Approvals of calls are buttons and leave no entry; a refusal comes with `user_feedback`.
Identity is the task and the time of the entry. The folder is in `api_conversation_history.json` beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from bethink.agents.base import (
    MACHINE,
    NO_SPEECH,
    Fields,
    Taken,
    make_id,
    name_unknown,
    read_object,
)
from bethink.agents.transcript import LONGEST_LINE, JsonTranscript

_FOLDER = re.compile(
    rb"# Current (?:Working|Workspace) Directory \(([^)\"\n]{1,400})\) Files|Current Working Directory: ([^\"\\\n]{1,400})"
)
_SPOKEN = {"user_feedback": "user", "text": "assistant", "completion_result": "assistant"}
_ASKED = {
    **dict.fromkeys(("followup", "plan_mode_respond", "completion_result"), "assistant"),
    **dict.fromkeys(("act_mode_respond",), "assistant"),
}
_EDITS = {"editedExistingFile": "edit", "newFileCreated": "write", "appliedDiff": "edit"}


class ClineTranscript(JsonTranscript):
    host = "cline"

    def take_head(self, document: Fields) -> None:
        self.locate(self.find_project(), session=self.path.parent.name or self.path.stem)
        self.began = False
        self.running = ""

    def find_project(self) -> str | None:
        """Return the folder that the first request to the model names."""
        try:
            with (self.path.parent / "api_conversation_history.json").open("rb") as file:
                found = _FOLDER.search(file.read(LONGEST_LINE))
        except OSError:
            return None
        name = (found[1] or found[2]).decode("utf-8", "replace") if found else ""
        return name.replace("\\\\", "\\") or None

    def take(self, message: Fields) -> Iterable[Taken]:
        kind = message.text("say") or message.text("ask")
        text = message.text("text")
        if message.get("partial") is True or kind not in _KNOWN:
            return [NO_SPEECH if message.get("partial") is True else name_unknown(kind)]
        at = message.time("ts")
        if kind in ("tool", "command", "command_output"):
            return [self.take_tool(kind, text, message)]
        role = (_SPOKEN if "say" in message else _ASKED).get(kind, "")
        if kind in ("text", "task") and not self.began:
            role = "user"
        if not role:
            return [NO_SPEECH]
        self.began = True
        if kind in ("followup", "plan_mode_respond"):
            stated = read_object(text) or Fields()
            text = stated.text("question") or stated.text("response") or text
        elif role == "assistant" and text.lstrip().startswith("<"):
            return [MACHINE]
        return [self.make_turn(make_id(self.session, message.get("ts"), role), role, text, at)]

    def take_tool(self, kind: str, text: str, message: Fields) -> Taken:
        id = f"c{self.number}"
        if kind == "command":
            self.running = id
            self.add_call("execute_command", {"command": text}, id)
        elif kind == "command_output":
            self.add_result(self.running, text, at=message.time("ts"), certain=False)
        elif (stated := read_object(text)) is not None:
            tool = _EDITS.get(stated.text("tool"), stated.text("tool"))
            self.add_call(tool, {"path": stated.get("path")}, id)
            if "say" in message:
                self.add_result(id, "", at=message.time("ts"))
        return NO_SPEECH


# Kinds of entries of the panel.
_KNOWN = frozenset(
    "task text user_feedback user_feedback_diff completion_result tool command command_output followup "
    "plan_mode_respond act_mode_respond reasoning error error_retry api_req_started api_req_finished api_req_failed api_req_retried "
    "api_req_retry_delayed api_req_rate_limit_wait api_req_deleted resume_task resume_completed_task mistake_limit_reached "
    "auto_approval_max_req_reached browser_action browser_action_launch browser_action_result mcp_server_request_started "
    "mcp_server_response use_mcp_server use_mcp_tool checkpoint_created checkpoint_saved load_mcp_documentation deleted_api_reqs info "
    "new_task new_task_started condense condense_context subtask_result shell_integration_warning diff_error clineignore_error "
    "rooignore_error task_progress hook_status hook_output_stream generate_explanation codebase_search_result user_edit_todos "
    "image finishTask browser_session_status command_permission_denied".split()
)
