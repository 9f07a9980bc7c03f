"""What every reader of transcripts gives: turns, in pages, with the position from which to go on.

A page and its position are meant to be written in one transaction. A crash in between repeats the page, and because a turn's id is
the identity of the message, the same in forks, resumes and copies, nothing is counted twice. Ids of one reading are compared by the
reader; ids of earlier ones only the store knows.

The accessors below are for JSON of which nothing can be taken for granted: `text_of(entry, "type")` is the string under that key,
and "" where there is none. This module knows no host's format, no project and no store.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from bethink.types import NOTHING

# Why a line gives no turn.
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

# Of a state: names of places, files and tools. The rest are ids, hashes and numbers.
NAMED = ("project", "cwd", "branch", "used", "calls")

# Where tools name the files they work on. A folder to search in is no file.
_PATHS = "file_path filePath notebook_path absolute_path target_file path filename".split()
_SEARCHES = ("grep", "glob", "ls", "list", "search", "find")
_EDITS = tuple("edit multiedit write notebookedit replace create str_replace apply_patch".split())
# What a shell command does that a colleague would tell: a commit with its subject, a pull request, a run of tests or checks.
_COMMIT = re.compile(r"\bgit\b[^\n]{0,80}?\bcommit\b([^\n]{0,300}(?:\n[^\n]{0,200})?)")
_SUBJECT = re.compile(
    r"<<-?[ ]?['\"]?\w{1,20}['\"]?[^\n]{0,20}\n([^\n]{1,200})|m[ =](?:\"([^\"$\n]{1,200})|'([^'\n]{1,200}))"
)
_COMMITTED = re.compile(r"^\[[^\]\n]{1,200} [0-9a-f]{7,40}\] ([^\n]{1,200})$", re.MULTILINE)
_PULL = re.compile(
    r"https://[^\s/]{1,100}(?:/[^\s/]{1,100}){2,4}/(?:pull|merge_requests)/(\d{1,9})\b"
)
_TASK = r"[\w:.-]{0,40}(?:test|lint|check|e2e|build)(?![\w/\"'@])"
_CHECK = re.compile(
    r"(?<![^\s;&|(])(?:pytest|jest|vitest|tox|ruff|mypy|tsc|eslint|rspec|phpunit|golangci-lint|go (?:test|vet|build)|playwright test"
    rf"|(?:cargo|npm|pnpm|yarn|bun|mise|make|just|gradle|\./gradlew|mvn|dotnet|mix|swift)(?: [^\s;&|]{{1,60}}){{0,3}}? {_TASK})"
)
_FAILURES = re.compile(
    r"^(?:--- )?FAIL\b|\b[1-9]\d{0,6} (?:failed|failing|failures?|errors?)\b|\berror TS\d|^npm ERR!",
    re.MULTILINE,
)
_OUTPUT = 8_000  # characters of a tool's output that are looked at, at either end
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPE = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")


class Fact(NamedTuple):
    """One thing that a tool did."""

    what: str  # commit, pull request, edit; of tests and checks: passed, failed
    name: str  # the subject of the commit, the number of the pull request, the path, the command


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
    plan: bool = False  # the agent's own plan: shown for approval, or handed back to it as a prompt
    work: tuple[Fact, ...] = ()  # what tools did since the turn before


class Position(NamedTuple):
    """How far a transcript was read."""

    identity: str = ""
    offset: int = 0
    line: int = 0
    tail: str = ""
    state: Mapping[str, Any] = NOTHING  # small, JSON-able, and nothing that was said


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
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def make_id(*parts: object) -> str:
    """An identity for a message that its host gave none."""
    return digest("\0".join(map(str, parts)).encode("utf-8", "replace"))


# JSON of which nothing can be taken for granted


def as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def as_name(value: Any, length: int = 200) -> str | None:
    """A short string that can be shown and stored (an id, a path, a branch), or nothing."""
    short = isinstance(value, str) and len(value) < 2 * length
    return _clean_name(value.strip(), length) if short else None


@lru_cache(maxsize=1 << 12)  # every line of a transcript names the same few again
def _clean_name(text: str, length: int) -> str | None:
    return clean(text) if text and len(text) <= length and not _CONTROL.search(text) else None


def as_time(value: Any) -> datetime | None:
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


def text_of(fields: Mapping[str, Any], key: str) -> str:
    return as_text(fields.get(key))


def dict_of(fields: Mapping[str, Any], key: str) -> dict[str, Any]:
    return as_dict(fields.get(key))


def list_of(fields: Mapping[str, Any], key: str) -> list[Any]:
    value = fields.get(key)
    return value if isinstance(value, list) else []


def dicts_of(fields: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """The items of a list as objects; what is none is an empty one."""
    return list(map(as_dict, list_of(fields, key)))


def name_of(fields: Mapping[str, Any], *keys: str, length: int = 200) -> str | None:
    """The name under the first key that has one."""
    return next((name for key in keys if (name := as_name(fields.get(key), length))), None)


def time_of(fields: Mapping[str, Any], *keys: str) -> datetime | None:
    return next((time for key in keys if (time := as_time(fields.get(key)))), None)


def texts_of(content: Any, types: tuple[str, ...] = ("text",)) -> list[str]:
    """The texts of a message: itself, or its blocks of those types."""
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    texts = [one if isinstance(one, str) else _block_text(as_dict(one), types) for one in blocks]
    return [text for text in texts if text]


def _block_text(block: dict[str, Any], types: tuple[str, ...]) -> str:
    return text_of(block, "text") if block.get("type", types[0]) in types else ""


# Tools


def find_paths(tool: str, arguments: Any) -> list[str]:
    if tool.lower().startswith(_SEARCHES):
        return []
    fields = as_dict(arguments)
    return [path for key in _PATHS if (path := name_of(fields, key, length=1000))]


def find_command(arguments: Any) -> str:
    """The command line of a call of a shell, '' of any other."""
    fields = as_dict(arguments)
    command = fields.get("command") or fields.get("cmd")
    return " ".join(map(str, command)) if isinstance(command, list) else as_text(command)


def is_our_tool(tool: str, arguments: Any = None) -> bool:
    """Whether a tool call is one of Bethink: its MCP tools under any host's prefix, or its command in a shell."""
    if "bethink" in tool.lower():
        return True
    line = find_command(arguments)
    programs = (word.strip("'\"").rpartition("/")[2] for word in line[:200].split()[:4])
    return "bethink" in programs


def expect_work(tool: str, arguments: Any) -> list[Fact]:
    """What a tool call does if it succeeds. A run of tests is a "check" until its outcome is known."""
    if tool.lower().startswith(_EDITS):
        return [Fact("edit", path) for path in find_paths(tool, arguments)]
    line = find_command(arguments)[:_OUTPUT]
    commit, check = _COMMIT.search(line), _CHECK.search(line)
    subject = _SUBJECT.search(commit[1]) if commit else None
    found = [Fact("commit", (subject[subject.lastindex or 1] if subject else ""))] if commit else []
    found += [Fact("pull request", "")] if "pr create" in line or "mr create" in line else []
    return found + ([Fact("check", check[0])] if check else [])


def confirm_work(expected: Iterable[Fact], output: str, failed: bool) -> list[Fact]:
    """What of it happened, by what the tool answered. A commit that git reports was made, whatever failed after it."""
    if len(output) > 2 * _OUTPUT:
        output = f"{output[:_OUTPUT]}\n{output[-_OUTPUT:]}"
    found: list[Fact] = []
    for what, name in expected:
        names = [] if failed else [name]
        if what == "check":
            what, names = "failed" if failed or _FAILURES.search(output) else "passed", [name]
        elif what == "commit":
            names = _COMMITTED.findall(output) or names
        elif what == "pull request":
            names = [f"#{number}" for number in _PULL.findall(output)[-1:]]
        found += [Fact(what, one) for text in names if (one := as_name(text, 1000))]
    return found
