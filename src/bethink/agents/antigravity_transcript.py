"""Antigravity CLI: a line per step, with its index, kind, author and content.

What the user typed is in a step of the kind `USER_INPUT`, inside `<USER_REQUEST>`; the model answers in `PLANNER_RESPONSE`, which
names its calls. The other steps of the model carry out the calls and do not say which. Identity is the conversation, which
is the name of its folder, and the index of the step. The log names no folder; `history.jsonl` of the program does.
"""

from __future__ import annotations

from pathlib import Path

from bethink.agents.base import (
    MACHINE,
    NO_SPEECH,
    Fields,
    Taken,
    make_id,
    name_unknown,
    read_object,
    texts_of,
)
from bethink.agents.speech import find_block, remove_blocks
from bethink.agents.transcript import LONGEST_LINE, LineTranscript, open_transcript
from bethink.errors import BethinkError
from bethink.model import Values

_BLOCKS = ("ADDITIONAL_METADATA", "USER_SETTINGS_CHANGE", "USER_RULES", "EPHEMERAL_MESSAGE")
_AUTHORS = ("MODEL", "SYSTEM")  # of steps that are no speech


class AntigravityTranscript(LineTranscript):
    host = "antigravity"

    def begin(self, state: Values) -> None:
        super().begin(state)
        brain = next((one for one in self.path.parents if one.parent.name == "brain"), None)
        self.session = self.session or (brain.name if brain else self.path.stem)
        if brain and not self.project:
            self.locate(self.find_project(brain.parent.parent / "history.jsonl"))

    def find_project(self, history: Path) -> str | None:
        """Return the workspace that the list of prompts names for this conversation."""
        try:
            with open_transcript(history) as file:
                lines = file.read(LONGEST_LINE).splitlines()
        except BethinkError:
            return None
        entries = (read_object(line) for line in lines if self.session.encode() in line)
        known = (one.name("workspace", length=1000) for one in entries if one)
        return next(filter(None, known), None)

    def take(self, entry: Fields) -> Taken:
        kind, author = entry.text("type"), entry.text("source")
        text = "\n\n".join(texts_of(entry.get("content")))
        role = "assistant" if kind == "PLANNER_RESPONSE" else "user"
        if kind == "USER_INPUT" and author not in _AUTHORS:
            text = find_block(text, "USER_REQUEST") or remove_blocks(text, _BLOCKS)[0]
        elif kind == "PLANNER_RESPONSE":
            for call in entry.objects("tool_calls"):
                self.add_call(call.get("name"), call.get("args"), call.get("id"))
            if entry.get("status") in ("RUNNING", "GENERATING"):
                return "half-written last line"
        else:
            silent = author in _AUTHORS or not text
            return (
                (MACHINE if kind == "USER_INPUT" else NO_SPEECH) if silent else name_unknown(kind)
            )
        id = make_id(self.session, entry.get("step_index"), role)
        return self.make_turn(id, role, text, entry.time("created_at"))
