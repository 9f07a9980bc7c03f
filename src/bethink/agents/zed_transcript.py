"""Zed: one SQLite database with a row per thread, and the thread in it as JSON, compressed or not.

A thread is read again when it changed; identity is the thread and the `id` of the message, or its number. Threads with a parent are
those of sub-agents. Both forms of messages are read: `{"User": …}` and `{"Agent": …}`, and the older `{"role": …, "segments": …}`.
"""

from __future__ import annotations

from collections.abc import Iterator

from bethink.agents.base import (
    BROKEN,
    NO_SPEECH,
    START,
    Fields,
    Position,
    Taken,
    TranscriptPage,
    as_fields,
    as_name,
    as_time,
    digest,
    make_id,
    name_unknown,
    read_object,
)
from bethink.agents.database import Row, read_rows
from bethink.agents.transcript import LONGEST_FILE, Transcript
from bethink.errors import BethinkError

_COLUMNS = "SELECT name FROM pragma_table_info('threads')"
_LIST = "SELECT id, updated_at FROM threads ORDER BY updated_at, id"
_THREAD = "SELECT id, summary, updated_at, data_type, data, {parent}, {folders} FROM threads WHERE id = :id"
_SILENT = ("Resume", "system")


class ZedTranscript(Transcript):
    host = "zed"

    @property
    def channel(self) -> str:
        return self.session

    def pages(self) -> Iterator[TranscriptPage]:
        listed = self.rows(_LIST)
        identity = digest(repr(listed).encode())
        if identity == self.position.identity:
            return
        since = self.position.tail
        if since > max((str(at) for _, at in listed), default=""):
            self.restart()
            since = START.tail
        columns = {str(name) for (name,) in self.rows(_COLUMNS)}
        query = _THREAD.format(
            parent="parent_id" if "parent_id" in columns else "NULL",
            folders="folder_paths" if "folder_paths" in columns else "NULL",
        )
        for id, changed in listed:
            if str(changed) <= since:
                continue
            for row in self.rows(query, str(id)):
                self.keep(*self.take_thread(row))
            yield self.end_page(
                self.position._replace(offset=1, tail=str(changed), state=self.state())
            )
        yield self.end_page(Position(identity, 1, 0, self.position.tail, self.state()))

    def rows(self, query: str, id: str = "") -> list[Row]:
        values = {"id": id} if ":id" in query else {}
        return read_rows(self.path, query, values, LONGEST_FILE, "Zed")

    def take_thread(self, row: Row) -> Iterator[Taken]:
        id, summary, changed, kind, data, parent, folders = row
        self.session, self.cwd, self.project = str(parent or id), None, None
        self.agent = as_name(id) if parent else None
        self.at = as_time(changed)
        thread = read_object(unpack(data) if kind == "zstd" else data)
        if thread is None:
            yield BROKEN
            return
        trees = thread.object("initial_project_snapshot").objects("worktree_snapshots")
        named = trees[0].get("worktree_path") if trees else None
        self.locate(named or str(folders or "").split("\n")[0])
        self.set_title(summary)
        for number, message in enumerate(thread.array("messages"), 1):
            self.lines += 1
            self.number = number
            unmarked = isinstance(message, str) and message in _SILENT
            yield NO_SPEECH if unmarked else self.take_message(str(id), as_fields(message))

    def take_message(self, thread: str, message: Fields) -> Taken:
        kind = next((one for one in ("User", "Agent") if one in message), "")
        body = message.object(kind) if kind else message
        role = {"User": "user", "Agent": "assistant"}.get(kind) or body.text("role")
        if role not in ("user", "assistant"):
            name = next(iter(message), "")
            return NO_SPEECH if name in _SILENT or role in _SILENT else name_unknown(name)
        for one in body.objects("content"):
            if call := one.object("ToolUse"):
                self.add_call(call.get("name"), call.get("input"), call.get("id"))
        for call_id, result in body.object("tool_results").items():
            stated = Fields(result if isinstance(result, dict) else {})
            output = stated.object("content").text("Text") or stated.text("content")
            self.add_result(call_id, output, stated.get("is_error") is True)
        parts = [one.text("Text") for one in body.objects("content")]
        parts += [one.text("text") for one in body.objects("segments") if one.get("type") == "text"]
        text = "\n\n".join(filter(str.strip, parts))
        own = body.get("id")
        turn = make_id(thread, own if isinstance(own, str | int) else self.number, role)
        return self.make_turn(turn, role, text, self.at)


def unpack(data: object) -> bytes | None:
    """Return what a compressed thread contains, None if it cannot be unpacked or is too large."""
    if not isinstance(data, bytes):
        return None
    try:
        import zstandard
    except ImportError:
        raise BethinkError(
            "The threads of Zed are compressed, and the package zstandard is not installed.",
            "pip install 'bethink[zstd]'",
        ) from None
    try:
        found = zstandard.ZstdDecompressor().stream_reader(data).read(LONGEST_FILE + 1)
    except zstandard.ZstdError:
        return None
    return found if len(found) <= LONGEST_FILE else None
