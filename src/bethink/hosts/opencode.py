"""opencode: one SQLite database for all sessions and projects. What `opencode export` prints, and the JSON files of the time before
the database, are not read.

Identity is the id of the text part. A turn's `line` is the row of its part, and rows are read in the order in which they
were added, so a clock that jumps loses nothing. A part whose answer is still being written is looked at again in the next reading.
The numbers of rows may change with VACUUM, and a deleted session frees its own; so the position keeps the id of the last row, and if
that is no longer there, everything is read again under the same identities.

The database is opened read-only and only between pages, never held while a page is being written, so that opencode can checkpoint.
Tables of credentials and accounts are never touched. The tables `session_message`, `event` and `session_input` repeat the same text
and are not read. The prompt of a sub-agent (a session with a parent) is the machine's; its answers belong to the session that it
worked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from bethink.errors import BethinkError
from bethink.hosts.base import (
    NO_SPEECH,
    Position,
    Reason,
    TranscriptPage,
    Turn,
    as_name,
    as_text,
    dict_of,
    name_of,
    text_of,
    time_of,
)
from bethink.hosts.transcript import (
    BOUND,
    PAGE_BYTES,
    PAGE_TURNS,
    Transcript,
    read_object,
)

BUSY = 3_000  # milliseconds to wait for a writer
UNFINISHED = 200  # parts that are looked at again

PARTS = """
SELECT p.rowid, p.id, iif(length(p.data) <= :bound, p.data, NULL), iif(length(m.data) <= :bound, m.data, NULL),
       p.session_id, s.parent_id, s.directory, s.title
FROM part p LEFT JOIN message m ON m.id = p.message_id LEFT JOIN session s ON s.id = p.session_id
"""


class OpencodeTranscript(Transcript):
    host = "opencode"
    kept = Transcript.kept | {"waiting": []}
    waiting: list[int]  # rows of parts that were not finished

    @property
    def channel(self) -> str:
        return self.session

    def take_part(
        self, id: str, message: dict[str, Any], part: dict[str, Any], parent: str | None
    ) -> Turn | Reason:
        if not part:
            return "broken line"
        if not is_finished(message, part):
            return "half-written last line"
        self.locate(dict_of(message, "path").get("cwd"))
        type, role = part.get("type"), message.get("role")
        if type == "tool":
            return self.take_tool(part, part.get("callID") or id)
        if type != "text" or role not in ("user", "assistant"):
            return NO_SPEECH
        by_host = True in (part.get("synthetic"), part.get("ignored"))
        if by_host or (role == "user" and parent):
            return "machine-made prompt"
        self.agent = name_of(message, "agent") or self.session if parent else None
        return self.make_turn(
            name_of(part, "id") or id,
            str(role),
            unquote(text_of(part, "text"), role),
            time_of(dict_of(part, "time"), "start") or time_of(dict_of(message, "time"), "created"),
            session=parent or self.session,
            summary=role == "assistant" and message.get("summary") is True,
        )

    def take_tool(self, part: dict[str, Any], call: Any) -> Reason:
        state = dict_of(part, "state")
        self.add_call(part.get("tool"), state.get("input"), call)
        if state.get("status") in ("completed", "error"):
            code = dict_of(state, "metadata").get("exit")
            failed = state["status"] == "error" or code not in (0, None)
            self.add_result(call, text_of(state, "output"), failed)
        return NO_SPEECH

    def pages(
        self, limit_bytes: int = PAGE_BYTES, limit_turns: int = PAGE_TURNS
    ) -> Iterator[TranscriptPage]:
        known = self.position
        last_row = {"row": known.offset, "id": known.tail}
        if known.offset and not self.rows("p.rowid = :row AND p.id = :id", last_row, 1):
            self.restart()
        waiting, self.waiting = self.waiting, []
        again = [row for at in waiting for row in self.rows("p.rowid = :row", {"row": at}, 1)]
        while True:
            last = self.position
            limits = {"row": last.offset, "rows": limit_turns}
            rows = self.rows("p.rowid > :row ORDER BY p.rowid LIMIT :rows", limits, limit_bytes)
            if not rows and not again:
                return
            results = [self.take_row(row) for row in [*again, *rows]]
            if rows:
                last = Position(self.host, rows[-1][0], rows[-1][0], rows[-1][1])
            again = []
            yield self.end_page(results, last._replace(state=self.state()))

    def take_row(self, values: tuple[Any, ...]) -> Turn | Reason:
        row, id, part, message, session, parent, directory, title = values
        self.lines += 1
        if part is None:
            return "too long"
        self.number, self.session, self.cwd, self.project = row, as_text(session), None, None
        self.set_title(title)
        self.locate(directory)
        about, fields = read_object(message) or {}, read_object(part) or {}
        result = self.take_part(as_text(id), about, fields, as_name(parent))
        if result == "half-written last line":
            self.waiting = [*self.waiting, row][-UNFINISHED:]
        return result

    def rows(self, where: str, values: dict[str, Any], limit_bytes: int) -> list[tuple[Any, ...]]:
        """Some rows, read in one go so that no statement stays open."""
        import apsw

        found: list[tuple[Any, ...]] = []
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        try:
            # As in the writer's own process, a lock of a moment is waited for. A WAL is read along, not copied.
            connection = apsw.Connection(f"{self.path.absolute().as_uri()}?mode=ro", flags)
            try:
                connection.set_busy_timeout(BUSY)
                size = 0
                bound = values | {"bound": BOUND}
                for row in connection.execute(f"{PARTS} WHERE {where}", bound):
                    found.append(row)
                    size += len(row[2] or "")
                    if size >= limit_bytes:
                        break
            finally:
                connection.close(True)
        except apsw.Error as error:
            raise BethinkError(
                f"The opencode database {self.path} cannot be read: {error}.",
                "Close opencode and try again.",
            ) from None
        return found


read = OpencodeTranscript


def unquote(text: str, role: Any) -> str:
    """A text, and a user's without the quotes in which `opencode run` puts each word of its command line that has a blank."""
    inner = re.fullmatch(r'"((?:[^"\\]|\\.)+)"', text, re.DOTALL) if role == "user" else None
    return inner[1].replace('\\"', '"') if inner else text


def is_finished(message: dict[str, Any], part: dict[str, Any]) -> bool:
    """Whether a text will not change any more."""
    written = part.get("type") == "text" and message.get("role") == "assistant"
    ended = "end" in dict_of(part, "time") or "completed" in dict_of(message, "time")
    return not written or ended or bool(message.get("error"))
