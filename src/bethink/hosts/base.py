"""What every reader of transcripts gives: turns, in pages, with the position from which to go on.

A page and its position are meant to be written in one transaction. A crash in between repeats the page, and because a turn's id is the
identity of the message, the same in forks, resumes and copies, nothing is counted twice. Ids of one reading are compared by the
reader; ids of earlier ones only the store knows.

The small accessors below are for JSON of which nothing can be taken for granted. This module knows no host's format, no project
and no store.
"""

from __future__ import annotations

import hashlib
import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from bethink.types import NOTHING

PAGE_BYTES = 2 << 20
PAGE_TURNS = 200
WHOLE = 128 << 20

BROKEN = "broken line"
HALF = "half-written last line"
LONG = "too long"
EMPTY = "empty"
TOOL_CALL = "tool call"
TOOL_RESULT = "tool result"
THINKING = "thinking"
MACHINE = "machine-made prompt"
COMMAND = "local command"
CONTEXT = "context added by the host"
PROGRESS = "progress"
BOOKKEEPING = "bookkeeping"
ERROR = "error or interruption"
INJECTED = "injected by Bethink"
OFF = "memory off"
REPEATED = "repeated"
UNKNOWN = "unknown type"

NAMED = (
    "project",
    "cwd",
    "branch",
    "used",
)  # of a state: names of places, files and tools. The rest are ids, hashes and numbers.

# Where tools name the files they work on. A folder to search in is no file.
_PATHS = (
    "file_path",
    "filePath",
    "notebook_path",
    "absolute_path",
    "target_file",
    "path",
    "filename",
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPE = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_SEARCHES = ("grep", "glob", "ls", "list", "search", "find")


class Turn(NamedTuple):
    """One thing that was said."""

    id: str  # identity of the message
    session: str  # of a sub-agent: the session that it worked for
    role: str  # user or assistant
    text: str
    at: datetime | None  # aware, UTC
    line: int  # from 1; in a database or a single JSON value the number of the message
    cwd: str | None = None
    branch: str | None = None
    tools: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    agent: str | None = None  # which sub-agent, None for the conversation itself
    summary: bool = False  # written by the host about the conversation: context, not new speech


class Position(NamedTuple):
    """How far a transcript was read."""

    identity: str = ""
    offset: int = 0
    line: int = 0
    tail: str = ""
    state: Mapping[str, Any] = (
        NOTHING  # small, JSON-able, and nothing that was said; of what it holds only `NAMED` is redacted
    )


class Page(NamedTuple):
    """Some turns, and the position behind them. `skipped` and `lines` count this page only."""

    turns: tuple[Turn, ...]
    position: Position
    skipped: Mapping[str, int]
    lines: int


START = Position()


def clean(text: str) -> str:
    """The text as it can be stored: no NUL, no colours of a terminal, no half of a character."""
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if "\0" in text:
        text = text.replace("\0", "")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            text = text.encode("utf-8", "replace").decode()
    return text


def digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def dict_of(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def name_of(value: Any, length: int = 200) -> str | None:
    """A short string that can be shown and stored (an id, a path, a branch), or nothing."""
    return (
        _named(value.strip(), length)
        if isinstance(value, str) and len(value) < 2 * length
        else None
    )


@lru_cache(maxsize=1 << 12)  # every line of a transcript names the same few again
def _named(text: str, length: int) -> str | None:
    return clean(text) if text and len(text) <= length and not _CONTROL.search(text) else None


def time_of(value: Any) -> datetime | None:
    """An ISO time, or seconds or milliseconds since 1970, in UTC. What is no time is None."""
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return datetime.fromtimestamp(value / 1000 if abs(value) > 1e11 else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def texts_of(content: Any, types: tuple[str, ...] = ("text",)) -> list[str]:
    """The texts of a message: itself, or its blocks of those types."""
    if isinstance(content, str):
        return [content]
    found = [
        block if isinstance(block, str) else _block_text(block, types) for block in list_of(content)
    ]
    return [text for text in found if text]


def _block_text(block: Any, types: tuple[str, ...]) -> str:
    fields = dict_of(block)
    return text_of(fields.get("text")) if fields.get("type", types[0]) in types else ""


def hashed(*parts: object) -> str:
    """An identity for a message that its host gave none."""
    return digest("\0".join(map(str, parts)).encode("utf-8", "replace"))


def paths_of(tool: str, arguments: Any) -> list[str]:
    if tool.lower().startswith(_SEARCHES):
        return []
    fields = dict_of(arguments)
    return [path for key in _PATHS if (path := name_of(fields.get(key), 1000))]


def ours(tool: str, arguments: Any = None) -> bool:
    """Whether a tool call is one of Bethink: its MCP tools under any host's prefix, or its command in a shell."""
    if "bethink" in tool.lower():
        return True
    fields = dict_of(arguments)
    command = fields.get("command") or fields.get("cmd")
    words = (" ".join(map(str, command)) if isinstance(command, list) else text_of(command))[
        :200
    ].split()
    return any(word.strip("'\"").rpartition("/")[2] == "bethink" for word in words[:4])


class Transcript(ABC):
    """One file of a host. `pages` reads on from `position`; afterwards `position` is where it stands now."""

    host = ""
    path: Path
    position: Position
    skipped: Counter[str]  # by reason, in all pages
    lines: int
    restarted: (
        str  # why it was read from its start again: replaced, truncated, rewritten; or nothing
    )
    end: int | None = (
        None  # the byte from which on no line is read that begins there; only of transcripts in lines
    )
    rename: Callable[[str], str] = str  # takes secrets out of the ids that hosts give
    session: str
    project: str | None  # the directory in which the session began
    cwd: str | None
    branch: str | None

    @abstractmethod
    def pages(self, limit_bytes: int = PAGE_BYTES, limit_turns: int = PAGE_TURNS) -> Iterator[Page]:
        """What is new, in pieces of about so many bytes of the file or so many turns."""

    @abstractmethod
    def title_of(self, session: str) -> str | None:
        """What the host calls a session, if this reading met it and nothing of the session was kept from memory."""

    @property
    def title(self) -> str | None:
        return self.title_of(self.session)

    def turns(self) -> Iterator[Turn]:
        for page in self.pages():
            yield from page.turns

    __iter__ = turns
