"""Cursor's agent transcripts: `~/.cursor/projects/<dashed path>/agent-transcripts/….jsonl`.

The format is not published. A line has a `role` and a `message` with `content` blocks; there are no ids, no times, no tool output. So
identity is the session (the name of the file), the number of the message and its text. Typed text is in `<user_query>`.
The chats of the editor (`state.vscdb`) and of the command line (`store.db`) are databases without any documented schema and are not read.
"""

from __future__ import annotations

from bethink.agents.base import Fields, Taken, make_id, name_unknown, texts_of
from bethink.agents.speech import find_block, remove_blocks
from bethink.agents.transcript import LineTranscript
from bethink.model import Values

# Blocks that the editor puts around what was typed.
ADDED = tuple(
    "attached_files open_and_recently_viewed_files additional_data user_info rules git_status agent_skills".split()
)
_SILENT = ("turn_ended", "status", "metadata", "")


class CursorTranscript(LineTranscript):
    host = "cursor"

    def begin(self, state: Values) -> None:
        super().begin(state)
        self.session = self.session or self.path.stem
        folders = [folder.name for folder in self.path.parents[:4]]
        if "subagents" in folders:
            above = self.path.parents[folders.index("subagents") + 1].name
            self.agent = self.path.stem
            self.session = self.path.stem if above == "agent-transcripts" else above

    def take(self, entry: Fields) -> Taken:
        role, message = entry.text("role"), entry.object("message")
        if not message and entry.text("type") not in _SILENT:
            return name_unknown(entry.get("type"))
        for item in message.objects("content"):
            if item.get("type") == "tool_use":
                self.add_call(item.get("name"), item.get("input"))
        text = "\n\n".join(texts_of(message.get("content")))
        if role == "user":
            text = find_block(text, "user_query") or remove_blocks(text, ADDED)[0]
        id = make_id(self.session, self.agent, self.number, role, text)
        return self.make_turn(id, role, text, entry.time())
