"""opencode: one SQLite database for all sessions and projects; before 2026 the same objects as JSON files below `storage/`; and
what `opencode export` prints.

Identity is the id of the text part. In the database a turn's `line` is the row of its part, and rows are read in the order in which they
were added, so a clock that jumps loses nothing. A part whose answer is still being written is looked at again in the next reading.
The numbers of rows may change with VACUUM, and a deleted session frees its own; so the position keeps the id of the last row, and if
that is no longer there, everything is read again under the same identities.

The database is opened read-only and only between pages, never held while a page is being written, so that opencode can checkpoint.
Tables of credentials and accounts are never touched. The tables `session_message`, `event` and `session_input` repeat the same text
and are not read. The prompt of a sub-agent (a session with a parent) is the machine's; its answers belong to the session that it
worked for.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bethink.errors import BethinkError
from bethink.hosts import lines as bytewise
from bethink.hosts.base import (
    BOOKKEEPING,
    BROKEN,
    HALF,
    LONG,
    MACHINE,
    PAGE_BYTES,
    PAGE_TURNS,
    START,
    THINKING,
    TOOL_CALL,
    UNKNOWN,
    WHOLE,
    Page,
    Position,
    Turn,
    dict_of,
    list_of,
    name_of,
    text_of,
    time_of,
)
from bethink.hosts.transcript import HostTranscript, WholeTranscript

NAME = "opencode"
HEADER = b"SQLite format 3\0"
BUSY = 3_000  # milliseconds to wait for a writer
UNFINISHED = 200

PARTS = """
SELECT p.rowid, p.id, iif(length(p.data) <= :bound, p.data, NULL), m.id, iif(length(m.data) <= :bound, m.data, NULL),
       p.session_id, s.parent_id, s.directory, s.title
FROM part p LEFT JOIN message m ON m.id = p.message_id LEFT JOIN session s ON s.id = p.session_id
"""


def read(path: Path, position: Position = START, bound: int = bytewise.BOUND) -> Database | Session:
    return (
        Database(path, position, bound)
        if database(path)
        else Session(path, position, max(bound, WHOLE))
    )


def database(path: Path) -> bool:
    stream = bytewise.opened(path)
    try:
        return stream.read(len(HEADER)) == HEADER
    finally:
        stream.close()


def recognises(entry: Mapping[str, Any]) -> bool:
    return text_of(entry.get("id")).startswith("ses_") or (
        "info" in entry and isinstance(entry.get("messages"), list)
    )


def locate(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    folder = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share") / "opencode"
    named = environment.get("OPENCODE_DB")
    if named and named != ":memory:" and (folder / named).is_file():
        yield folder / named
    yield from folder.glob("opencode*.db")
    yield from (folder / "storage" / "session").glob("*/ses_*.json")


class Parts(HostTranscript):
    """What all forms share: a part of a message of a session."""

    host = NAME

    def part(
        self,
        id: str,
        message: dict[str, Any],
        part: dict[str, Any],
        number: int,
        session: str,
        parent: str | None,
    ) -> Turn | str:
        self.where(dict_of(message.get("path")).get("cwd"))
        type, role = part.get("type"), message.get("role")
        if type == "tool":
            self.use(part.get("tool"), dict_of(part.get("state")).get("input"), session)
            return TOOL_CALL
        if type != "text":
            return (
                THINKING
                if type == "reasoning"
                else BOOKKEEPING
                if isinstance(type, str)
                else UNKNOWN
            )
        if role not in ("user", "assistant"):
            return UNKNOWN
        if (
            part.get("synthetic") is True
            or part.get("ignored") is True
            or (role == "user" and parent)
        ):
            return MACHINE
        at = time_of(
            dict_of(part.get("time")).get("start") or dict_of(message.get("time")).get("created")
        )
        agent = (name_of(message.get("agent")) or session) if parent else None
        return self.give(
            name_of(part.get("id")) or id,
            str(role),
            text_of(part.get("text")),
            at,
            number,
            session=parent or session,
            agent=agent,
            thread=session,
            summary=role == "assistant" and message.get("summary") is True,
        )


def finished(message: dict[str, Any], part: dict[str, Any]) -> bool:
    """Whether a text will not change any more."""
    if part.get("type") != "text" or message.get("role") != "assistant":
        return True
    return (
        "end" in dict_of(part.get("time"))
        or "completed" in dict_of(message.get("time"))
        or bool(message.get("error"))
    )


class Database(Parts):
    def begin(self, state: Mapping[str, Any]) -> None:
        super().begin(state)
        self.waiting = [row for row in list_of(state.get("waiting")) if isinstance(row, int)]
        self.message: tuple[Any, dict[str, Any]] = (None, {})  # the one whose parts are being read

    def state(self) -> dict[str, Any]:
        return super().state() | ({"waiting": self.waiting} if self.waiting else {})

    def pages(self, limit_bytes: int = PAGE_BYTES, limit_turns: int = PAGE_TURNS) -> Iterator[Page]:
        known, self.restarted = self.position, ""
        if known.offset and not self.rows(
            "p.rowid = :row AND p.id = :id", {"row": known.offset, "id": known.tail}, 1
        ):
            self.restart("rewritten")
        waiting, self.waiting = self.waiting, []
        again = [
            row for number in waiting for row in self.rows("p.rowid = :row", {"row": number}, 1)
        ]
        while True:
            last = self.position
            rows = self.rows(
                "p.rowid > :row ORDER BY p.rowid LIMIT :rows",
                {"row": last.offset, "rows": limit_turns},
                limit_bytes,
            )
            if not rows and not again:
                return
            before, counted = Counter(self.skipped), self.lines
            turns = [turn for row in [*again, *rows] for turn in self.row(*row)]
            if rows:
                last = Position(NAME, rows[-1][0], rows[-1][0], rows[-1][1])
            again = []
            self.position = last._replace(state=self.state())
            yield Page(tuple(turns), self.position, self.skipped - before, self.lines - counted)

    def row(
        self,
        row: int,
        id: Any,
        part: Any,
        message: Any,
        about: Any,
        session: Any,
        parent: Any,
        directory: Any,
        title: Any,
    ) -> Iterator[Turn]:
        self.lines += 1
        if part is None:
            self.skipped[LONG] += 1
            return
        if message != self.message[0] or message is None:
            self.message = (message, parsed(about))
        fields = parsed(part)
        self.session, self.cwd, self.project = text_of(session), None, None
        self.entitle(title)
        self.where(directory)
        if not finished(self.message[1], fields):
            self.waiting = [*self.waiting, row][-UNFINISHED:]
            result: Turn | str = HALF
        elif not fields:
            result = BROKEN
        else:
            result = self.part(
                text_of(id), self.message[1], fields, row, self.session, name_of(parent)
            )
        if isinstance(result, Turn):
            yield result
        else:
            self.skipped[result] += 1

    def rows(self, where: str, values: dict[str, Any], limit_bytes: int) -> list[tuple[Any, ...]]:
        """Some rows, read in one go so that no statement stays open."""
        import apsw

        found: list[tuple[Any, ...]] = []
        try:
            # As in the writer's own process, a lock of a moment is waited for. A WAL is read along, not copied.
            connection = apsw.Connection(
                f"{self.path.absolute().as_uri()}?mode=ro",
                apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
            )
            try:
                connection.set_busy_timeout(BUSY)
                size = 0
                for row in connection.execute(
                    f"{PARTS} WHERE {where}", values | {"bound": self.bound}
                ):
                    found.append(row)
                    size += len(row[2] or "")
                    if size >= limit_bytes:
                        break
            finally:
                connection.close(True)
        except apsw.Error as error:
            raise BethinkError(
                f"The opencode database {self.path} cannot be read: {error}.",
                "Close opencode and try again, or give an export of a session.",
            ) from None
        return found


class Session(Parts, WholeTranscript):
    """One session: exported, or in the files of the time before the database."""

    def contents(self) -> bytes:
        data = super().contents()
        info = parsed(data.decode("utf-8-sig", "replace"))
        id = name_of(info.get("id"))
        if not id or "messages" in info or "/" in id:
            return data
        storage = self.path.parent.parent.parent
        messages = [
            {
                "info": stored(message),
                "parts": [
                    stored(part)
                    for part in sorted((storage / "part" / message.stem).glob("*.json"))
                ],
            }
            for message in sorted((storage / "message" / id).glob("*.json"))
        ]
        return json.dumps({"info": info, "messages": messages}).encode("utf-8", "replace")

    def everything(self, data: bytes) -> Iterable[Turn | str]:
        value = json.loads(data.decode("utf-8-sig", "replace"), strict=False)
        info = dict_of(dict_of(value).get("info"))
        if not info:
            raise ValueError("no session")
        self.session = name_of(info.get("id")) or ""
        self.entitle(info.get("title"))
        self.where(info.get("directory"))
        number = 0
        for message in map(dict_of, list_of(value.get("messages"))):
            about = dict_of(message.get("info"))
            for part in list_of(message.get("parts")):
                number += 1
                fields = dict_of(part)
                if not fields:
                    yield BROKEN
                elif not finished(about, fields):
                    yield HALF
                else:
                    id = f"{about.get('id')}/{number}"
                    yield self.part(
                        id, about, fields, number, self.session, name_of(info.get("parentID"))
                    )


def parsed(data: Any) -> dict[str, Any]:
    found, _ = (
        bytewise.objects(data.encode("utf-8", "replace")) if isinstance(data, str) else ([], True)
    )
    return dict_of(found[0]) if found else {}


def stored(path: Path) -> dict[str, Any]:
    try:
        return (
            parsed(path.read_text("utf-8", "replace"))
            if path.stat().st_size <= bytewise.BOUND
            else {}
        )
    except (OSError, ValueError):
        return {}
