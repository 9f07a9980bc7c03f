"""The output of every transcript reader: turns, in pages, with the position from which to go on.

A page and its position are meant to be written in one transaction. A crash in between repeats the page, and because a turn's id is
the identity of the message, the same in forks, resumes and copies, nothing is counted twice. Ids of one reading are compared by the
reader; ids of earlier ones only the store knows. This module knows no agent's format, no project and no store.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple
from zlib import crc32

from bethink.language.words import STOP_WORDS
from bethink.model import NOTHING, Json, ToolEvent, Values
from bethink.text import blake2b, compile_late

# Why a line gives no turn: "no speech" for calls and results of tools, thinking and whatever else hosts write down; or what is worth
# counting by itself, such as a broken line, a prompt of the machine, what Bethink recalled, and what was said while memory was off.
Reason = str
NO_SPEECH: Reason = "no speech"
OFF: Reason = "memory off"
MACHINE: Reason = "machine-made prompt"
UNKNOWN: Reason = "not understood"  # before the kind of an entry that no reader knows
BROKEN: Reason = "broken line"
TOO_LONG: Reason = "too long"
# Reasons that a person should hear about: something may have been said there.
LOSSES = (UNKNOWN, BROKEN, TOO_LONG)

# Of a state: names of places, files and tools. The rest are ids, hashes and numbers.
NAMED = tuple("project cwd branch used calls runs events tasks changed_tasks noted".split())

# Tools of agents whose failures help nobody: searches, questions, plans, other agents, the web.
_KIND = compile_late(r"[A-Za-z][\w.-]{0,30}")  # of an entry, as it can be shown
_WORD = compile_late(r"[^\W_]{2,40}|\d")
_CONTROL = compile_late(r"[\x00-\x1f\x7f]")
_ESCAPE = compile_late(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")


# Roles of the texts that a host, or the model on its behalf, wrote about the conversation: `summary` replaces the context at
# a compaction, `recap` reminds a person who was away.
SUMMARY, RECAP = "summary", "recap"
ABOUT = (SUMMARY, RECAP)


class Fact(NamedTuple):
    """One thing that a tool did."""

    what: str  # commit, push, pull request, merge, edit; of tests and checks: passed, failed
    name: str  # the subject of the commit, number and title of the pull request, the path, the command


class Task(NamedTuple):
    """An item of an agent's own task list, as one of its tools left it."""

    text: (
        str  # the same in every change of an item that has an id in the host; else of this wording
    )
    state: str  # open, doing, done, or dropped: removed, or no longer on the list


class Turn(NamedTuple):
    """One message of a person or an agent, or a summary that the host keeps of the conversation.

    A turn of the role `summary` is the text by which a compaction replaced the conversation so far, without the host's
    words around it; one of the role `recap` is a host's note to a person who was away. Both report what other turns
    say, so neither is speech.
    """

    id: str  # identity of the message
    session: str  # of a sub-agent: the session that it worked for
    role: str  # user, assistant, summary or recap
    text: str
    at: datetime | None  # aware, UTC
    line: int  # from 1; in a database or a single JSON value the number of the message
    cwd: str | None = None
    branch: str | None = None
    tools: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    agent: str | None = None  # which sub-agent, None for the conversation itself
    plan: bool = False  # the agent's own plan: shown for approval, or handed back to it as a prompt
    work: tuple[Fact, ...] = ()  # what tools did since the turn before
    recalled: tuple[str, ...] = ()  # lines that the agent got from Bethink before, by `hash_words`
    asked: tuple[
        str, ...
    ] = ()  # questions of the agent that it answers; the text has each above its answer
    events: tuple[ToolEvent, ...] = ()  # commands and edits since the turn before, in their order
    # Items of the agent's task list that were added or changed state since the turn before, each as it is now.
    tasks: tuple[Task, ...] = ()
    noted: tuple[
        str, ...
    ] = ()  # statements that the agent stored with Bethink since the turn before
    # Actions of the user since the turn before that are no words: "interrupted", "declined: Bash", "declined: plan", "approved: plan".
    marks: tuple[str, ...] = ()

    @property
    def summary(self) -> bool:
        """True if it is about the conversation: context, not new speech."""
        return self.role in ABOUT


Taken = Turn | Reason  # what a line gives: a turn, or why it gives none


class Position(NamedTuple):
    """Position up to which a transcript was read."""

    identity: str = ""
    offset: int = 0
    line: int = 0
    tail: str = ""
    state: Values = NOTHING  # small, JSON-able, and nothing that was said


class TranscriptPage(NamedTuple):
    """Some turns, and the position behind them. `skipped` and `lines` count this page only."""

    turns: tuple[Turn, ...]
    position: Position
    skipped: Mapping[str, int]
    lines: int


START = Position()


def clean(text: str) -> str:
    """Return the text as it can be stored: no NUL, no terminal colours, no half of a character."""
    plain = _ESCAPE.sub("", text) if "\x1b" in text else text
    plain = plain.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")
    return plain if plain.isascii() else plain.encode("utf-8", "replace").decode()


def digest(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()


def make_id(*parts: object) -> str:
    """Return an identity for a message without one."""
    return digest("\0".join(map(str, parts)).encode("utf-8", "replace"))


def hash_words(text: str) -> frozenset[str]:
    """Hash the words of a text, except stop words, by six letters: enough to compare two texts."""
    words = (word for word in _WORD.findall(text.lower()) if word not in STOP_WORDS)
    return frozenset(f"{crc32(word[:6].encode('utf-8', 'replace')):x}" for word in words)


# JSON of which nothing can be taken for granted


class Fields(Json):
    """A JSON object whose missing or wrongly typed members read as empty values."""

    def text(self, key: str) -> str:
        value = self.get(key)
        return value if isinstance(value, str) else ""

    def object(self, key: str) -> Fields:
        return as_fields(self.get(key))

    def array(self, key: str) -> list[Any]:
        value = self.get(key)
        return value if isinstance(value, list) else []

    def objects(self, key: str) -> list[Fields]:
        return list(map(as_fields, self.array(key)))

    def name(self, *keys: str, length: int = 200) -> str | None:
        """The name under the first key that has one."""
        return next((name for key in keys if (name := as_name(self.get(key), length))), None)

    def time(self, key: str = "timestamp") -> datetime | None:
        return as_time(self.get(key))


def as_fields(value: object) -> Fields:
    return Fields(value) if isinstance(value, dict) else Fields()


_DECODER = json.JSONDecoder(strict=False)


def read_value(data: object) -> Any:
    """Parse a JSON value; None if it is none.

    Invalid UTF-8 becomes U+FFFD; raw tabs and line breaks inside strings are accepted.
    """
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    if not isinstance(text, str):
        return None
    try:
        return _DECODER.decode(text.strip("\ufeff\0 \t\r\n"))
    except (ValueError, RecursionError):
        return None


def read_object(data: object) -> Fields | None:
    """Parse the JSON object of one line; None if it is none."""
    value = read_value(data)
    return Fields(value) if isinstance(value, dict) else None


def name_unknown(kind: object) -> Reason:
    """Return the reason for an entry of a kind that the reader does not know."""
    return f"{UNKNOWN}: {kind}" if isinstance(kind, str) and _KIND.fullmatch(kind) else UNKNOWN


def as_name(value: object, length: int = 200) -> str | None:
    """A short string that can be shown and stored (an id, a path, a branch), or nothing."""
    if not isinstance(value, str) or len(value) >= 2 * length:
        return None
    return _clean_name(value.strip(), length)


@lru_cache(maxsize=1 << 12)  # every line of a transcript names the same few again
def _clean_name(text: str, length: int) -> str | None:
    return clean(text) if text and len(text) <= length and not _CONTROL.search(text) else None


def as_time(value: object) -> datetime | None:
    """An ISO time, or seconds, milliseconds or microseconds since 1970, in UTC. None for anything else."""
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            while abs(value) > 1e11:
                value /= 1000
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def texts_of(content: object, types: tuple[str, ...] = ("text",)) -> list[str]:
    """The texts of a message: itself, or its blocks of those types, without what the model only thought."""
    if isinstance(content, str):
        return [content]
    found = []
    for block in content if isinstance(content, list) else ():
        fields = as_fields(block)
        spoken = fields.get("type", types[0]) in types and not fields.get("thought")
        found.append(block if isinstance(block, str) else fields.text("text") if spoken else "")
    return list(filter(None, found))


# Tools that state the whole list, by the letters of their name; the rest state one item.
