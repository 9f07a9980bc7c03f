"""opencode: one SQLite database for all sessions and projects; or the output of `opencode export`.

The JSON files of versions before 2026 are not read. An export has the same parts under the same ids as the database.

Identity is the id of the text part. A turn's `line` is the row of its part, and rows are read in the order in which they
were added, so a clock that jumps loses nothing. A part whose answer is still being written is looked at again in the next reading.
The numbers of rows may change with VACUUM, and a deleted session frees its own; so the position keeps the id of the last row, and if
that is no longer there, everything is read again under the same identities.

The database is opened read-only and only between pages, never while a page is being written, so that opencode can checkpoint.
Tables of credentials and accounts are never touched. The tables `session_message`, `event` and `session_input` repeat the same text
and are not read. The prompt of a sub-agent (a session with a parent) is machine-made; its answers belong to the session that it
worked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from bethink.agents.base import (
    BROKEN,
    MACHINE,
    NO_SPEECH,
    SUMMARY,
    TOO_LONG,
    Fields,
    Position,
    Reason,
    Taken,
    TranscriptPage,
    as_name,
    make_id,
    name_unknown,
    read_object,
)
from bethink.agents.database import Row, read_rows
from bethink.agents.transcript import LONGEST_LINE, JsonTranscript, Transcript

UNFINISHED = 200  # parts that are looked at again

_PARTS = """
SELECT p.rowid, p.id, iif(length(p.data) <= :bound, p.data, NULL), iif(length(m.data) <= :bound, m.data, NULL),
       p.session_id, s.parent_id, s.directory, s.title
FROM part p LEFT JOIN message m ON m.id = p.message_id LEFT JOIN session s ON s.id = p.session_id
"""


_PART = "prt_"  # how the id of a part begins
# Parts that are no speech.
_SILENT = frozenset(
    "step-start step-finish reasoning file patch agent subtask retry compaction snapshot".split()
)


class OpencodeParts(Transcript):
    """The parts of opencode's messages, wherever they are stored."""

    host = "opencode"

    @property
    def channel(self) -> str:
        return self.session

    def take_part(self, part: Fields, message: Fields, id: str, parent: str | None) -> Taken:
        if part.get("type") == "tool":
            return self.take_tool(part, part.get("callID") or id)
        return self.take_text(part, message, id, parent)

    def take_text(self, part: Fields, message: Fields, id: str, parent: str | None) -> Taken:
        role = message.text("role")
        if (kind := part.text("type")) != "text":
            return NO_SPEECH if kind in _SILENT else name_unknown(kind)
        if True in (part.get("synthetic"), part.get("ignored")):
            return MACHINE
        self.agent = message.name("agent") or self.session if parent else None
        text = part.text("text") if role == "assistant" else unquote(part.text("text"))
        at = part.object("time").time("start") or message.object("time").time("created")
        if role == "assistant" and message.get("summary") is True:
            role = SUMMARY
        own, session = part.name("id") or id, parent or self.session
        return self.make_turn(own, role, text, at, session=session)

    def take_tool(self, part: Fields, call: object) -> Reason:
        state = part.object("state")
        self.add_call(part.get("tool"), state.get("input"), call)
        if state.get("status") in ("completed", "error"):
            code = state.object("metadata").get("exit")
            failed = state["status"] == "error" or code not in (0, None)
            output = state.text("output") or state.text("error")
            self.add_result(call, output, failed, at=state.object("time").time("end"))
        return NO_SPEECH


class OpencodeTranscript(OpencodeParts):
    kept = Transcript.kept | {"waiting": []}
    waiting: list[int]  # rows of parts that were not finished

    def pages(self) -> Iterator[TranscriptPage]:
        last = self.position
        if last.offset and not self.rows("p.rowid = :row AND p.id = :id", last.offset, last.tail):
            self.restart()
        waiting, self.waiting = self.waiting, []
        again = [row for at in waiting for row in self.rows("p.rowid = :row", at)]
        while True:
            last = self.position
            rows = self.rows("p.rowid > :row ORDER BY p.rowid LIMIT :most", last.offset)
            if not rows and not again:
                return
            for row in (*again, *rows):
                self.keep(self.take_row(row))
            if rows:
                last = Position(self.host, rows[-1][0], rows[-1][0], rows[-1][1])
            again = []
            yield self.end_page(last._replace(state=self.state()))

    def rows(self, where: str, row: int, id: str = "") -> list[Row]:
        """Some rows, read in one go so that no statement stays open."""
        values = {"row": row, "id": id, "most": self.page_turns, "bound": LONGEST_LINE}
        used = {name: value for name, value in values.items() if f":{name}" in _PARTS + where}
        return read_rows(self.path, f"{_PARTS} WHERE {where}", used, self.page_bytes, self.host)

    def take_row(self, found: Row) -> Taken:
        row, id, data, about, session, parent, directory, title = found
        self.lines += 1
        if data is None:
            return TOO_LONG
        self.number, self.session, self.cwd, self.project = row, str(session or ""), None, None
        self.set_title(title)
        self.locate(directory)
        part, message = read_object(data), read_object(about) or Fields()
        if part is None:
            return BROKEN
        if not is_finished(message, part):
            self.waiting = [*self.waiting, row][-UNFINISHED:]
            return "half-written last line"
        self.locate(message.object("path").get("cwd"))
        return self.take_part(part, message, id, as_name(parent))


class OpencodeExport(OpencodeParts, JsonTranscript):
    """The output of `opencode export`."""

    def take_head(self, document: Fields) -> None:
        about = document.object("info")
        self.locate(about.get("directory"), session=about.get("id"))
        self.set_title(about.get("title"))
        self.parent = about.name("parentID")

    def take(self, message: Fields) -> Iterable[Taken]:
        about = message.object("info")
        self.locate(about.object("path").get("cwd"))
        taken: list[Taken] = []
        for place, part in enumerate(message.objects("parts")):
            if not part.text("id").startswith(_PART):  # masked before it was shared
                part = Fields(part, id=make_id(self.session, self.number, place))
            if is_finished(about, part):
                taken.append(self.take_part(part, about, part.text("id"), self.parent))
            else:
                taken.append("half-written last line")
        if about.object("error").get("name") == "MessageAbortedError":
            self.mark("interrupted")
        return taken


def unquote(text: str) -> str:
    """Remove the quotes that `opencode run` puts around words with a blank."""
    inner = re.fullmatch(r'"((?:[^"\\]|\\.)+)"', text, re.DOTALL)
    return inner[1].replace('\\"', '"') if inner else text


def is_finished(message: Fields, part: Fields) -> bool:
    """Return True if a text will not change any more."""
    written = part.get("type") == "text" and message.get("role") == "assistant"
    ended = "end" in part.object("time") or "completed" in message.object("time")
    return not written or ended or bool(message.get("error"))
