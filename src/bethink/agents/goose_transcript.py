"""Goose: one SQLite database, with a row per message and its content as a list of blocks in JSON.

Identity is the session and the row of the message; rows are read in the order in which they were added. Sessions of sub-agents
and of recipes that run on a schedule have machine-made prompts. Only the tables of sessions and messages are read.
"""

from __future__ import annotations

from collections.abc import Iterator

from bethink.agents.base import (
    BROKEN,
    MACHINE,
    Fields,
    Position,
    Taken,
    TranscriptPage,
    as_fields,
    as_name,
    make_id,
    read_value,
    texts_of,
)
from bethink.agents.database import Row, read_rows
from bethink.agents.transcript import LONGEST_LINE, Transcript

_MESSAGES = """
SELECT m.id, m.session_id, m.role, m.content_json, m.created_timestamp, s.*
FROM messages m JOIN sessions s ON s.id = m.session_id WHERE m.id > :row ORDER BY m.id LIMIT :most
"""
_COLUMNS = "SELECT name FROM pragma_table_info('sessions') ORDER BY cid"
_LAST = "SELECT session_id FROM messages WHERE id = :row"
_MACHINES = ("sub_agent", "subagent", "scheduled", "hidden")


class GooseTranscript(Transcript):
    host = "goose"

    @property
    def channel(self) -> str:
        return self.session

    def pages(self) -> Iterator[TranscriptPage]:
        last = self.position
        if last.offset and self.rows(_LAST, last.offset) != [(last.tail,)]:
            self.restart()
        columns = [str(name) for (name,) in self.rows(_COLUMNS, 0, LONGEST_LINE)]
        while rows := self.rows(_MESSAGES, self.position.offset):
            for row in rows:
                self.keep(self.take_row(row, Fields(zip(columns, row[5:], strict=False))))
            yield self.end_page(
                Position(self.host, rows[-1][0], rows[-1][0], rows[-1][1], self.state())
            )

    def rows(self, query: str, row: int, most_bytes: int | None = None) -> list[Row]:
        values = {"row": row, "most": self.page_turns}
        used = {name: value for name, value in values.items() if f":{name}" in query}
        return read_rows(self.path, query, used, most_bytes or self.page_bytes, "Goose")

    def take_row(self, row: Row, session: Fields) -> Taken:
        self.lines += 1
        self.number, self.session, self.cwd, self.project = row[0], str(row[1]), None, None
        self.locate(session.get("working_dir"))
        self.set_title(session.get("description") or session.get("name"))
        machine = session.text("session_type") in _MACHINES
        self.agent = as_name(row[1]) if machine else None
        content = read_value(row[3])
        if not isinstance(content, list):
            return BROKEN
        message, at = Fields(content=content), Fields(at=row[4]).time("at")
        for item in message.objects("content"):
            if item.get("type") == "toolRequest":
                call = item.object("toolCall").object("value")
                self.add_call(call.get("name"), call.get("arguments"), item.get("id"))
            elif item.get("type") == "toolResponse":
                result = item.object("toolResult")
                value = result.get("value")
                blocks = as_fields(value).get("content") if isinstance(value, dict) else value
                failed = result.get("status") == "error" or as_fields(value).get("isError") is True
                output = "\n".join(texts_of(blocks)) or result.text("error")
                self.add_result(item.get("id"), output, failed, at=at)
        text = "\n\n".join(texts_of(content))
        if machine and row[2] == "user":
            return MACHINE
        return self.make_turn(make_id(row[1], row[0]), str(row[2]), text, at)
