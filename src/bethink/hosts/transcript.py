"""What the readers of all hosts have in common: from a file's lines, or from its one value, to pages of turns.

One turn is one message of the host's file, so that it can be cited by its line. `tools`, `files` and `work` of a turn are those of the
time since the turn before it: what an answer reports on, or what a correction corrects. That way nothing waits for what may come next, and a file that
is read in steps gives the same turns as one that is read at once.

From `memory-mode: off`, as a line of the host or as a line that the user typed, nothing of the session is given until `on`; the same
holds for a `<private>` that the user opened, until it is closed. Every line gives a turn or is counted in `skipped` under one reason.

A file is read in bounded memory. A line longer than the bound is never held: its bytes are passed over and it comes without data. The
last line of a file may still be in the writing; only what was consumed moves the position. A position fits when the first line and the
last bytes before the offset are what they were, whatever became of device, inode and times. Otherwise the file was cut, replaced or
rewritten, and is read from its start. Compressed transcripts (`.zst`) look the same from outside; their offsets count what was packed.
This module knows no host's format and no store.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

from bethink.errors import BethinkError, NotFound
from bethink.hosts.base import (
    BROKEN,
    COMMAND,
    EMPTY,
    HALF,
    INJECTED,
    LONG,
    OFF,
    REPEATED,
    START,
    UNKNOWN,
    Fact,
    Position,
    TranscriptPage,
    Turn,
    as_dict,
    as_name,
    as_text,
    confirm_work,
    dict_of,
    digest,
    expect_work,
    extract_speech,
    find_memory_mode,
    find_paths,
    hash_words,
    is_our_tool,
    list_of,
    make_id,
    name_of,
    shorten,
    split_private,
    texts_of,
)
from bethink.skills import NAMES
from bethink.text.fence import TAG
from bethink.types import NOTHING

PAGE_BYTES = 2 << 20
PAGE_TURNS = 200
WHOLE = 128 << 20  # bytes of a transcript that is one value
# How much is remembered: tools, files and work of a turn, ids of a reading, switches of memory, threads with tools, calls under way.
_TOOLS, _FILES, _WORK, _SEEN, _SWITCHES, _THREADS, _CALLS = 32, 64, 24, 50_000, 64, 16, 32
# Lines of what memory told an agent, words of each, and characters of one telling.
_TOLD, _TOLD_WORDS, _TOLD_LENGTH = 24, 40, 20_000
# A skill of ours that somebody calls by name, where the host gives it as it was typed: `/remember why …`, `$remember`.
OWN_COMMAND = re.compile(rf"[/$](?:bethink:)?(?:{'|'.join(NAMES)})(?:\s|$)")
_Used = tuple[list[str], list[str], list[Fact]]  # tools, files and work of a thread
# How a prompt begins by which hosts hand an agent's plan back to it, and what one of them adds behind it.
PLAN = "Implement the following plan:"
BEHIND_PLAN = "\n\nIf you need specific details from before exiting plan mode"

DATABASE = b"SQLite format 3\0"  # how a transcript begins that is a database
BLOCK = 1 << 20
BOUND = 16 << 20  # bytes of a line; the longest that a host was seen to write has 7 MB
PIECE = 1 << 16
FIRST, LAST = 4096, 1024
# Raw tabs and line breaks inside strings are read as they are.
_DECODER = json.JSONDecoder(strict=False)
# An object that begins where no value can stand: a whole line written right behind a torn one.
_BEHIND_TORN = re.compile(r"[^\s:,\[{\\](?=\{\")")
_KEY = re.compile(r"[\s,]*(\"[^\"\\]{0,100}\")\s*:\s*")
_ATTEMPTS = 16


# Bytes of a growing file


class FileLine(NamedTuple):
    number: int
    end: int  # the offset behind it, line break included
    data: bytes | None  # without the line break; None when it is longer than the bound
    ended: bool = True  # whether its line break is there


class Stream:
    """Bytes of a file in order. `piece` looks elsewhere without moving; `move` goes forward and says whether there was so much."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self.file, self.path = file, path

    def read(self, size: int) -> bytes:
        try:
            return self.file.read(size)
        except OSError as error:
            raise _unreadable(self.path, error) from None

    def piece(self, start: int, size: int) -> bytes:
        here = self.file.tell()
        self.file.seek(start)
        found = self.read(size)
        self.file.seek(here)
        return found

    def move(self, offset: int) -> bool:
        reached = offset <= self.file.seek(0, 2)
        self.file.seek(offset)
        return reached


class ZstdStream(Stream):
    """A compressed file as what is in it. What cannot be unpacked ends the stream. Cold files do not change, so `piece` knows
    only their beginning."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        super().__init__(file, path)
        try:
            import zstandard
        except ImportError:
            raise BethinkError(
                f"The transcript {path} is compressed, and the package zstandard is not installed.",
                "pip install 'bethink[zstd]'",
            ) from None
        self.failure = zstandard.ZstdError
        self.reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        self.first = self.waiting = self.unpack(FIRST)

    def unpack(self, size: int) -> bytes:
        try:
            # What was unpacked before damage in the same piece is lost with it, so pieces are small.
            return self.reader.read(min(size, PIECE))
        except self.failure:
            return b""

    def read(self, size: int) -> bytes:
        found, self.waiting = self.waiting[:size], self.waiting[size:]
        return found or self.unpack(size)

    def piece(self, start: int, size: int) -> bytes:
        return self.first[:size] if not start else b""

    def move(self, offset: int) -> bool:
        while offset > 0 and (block := self.read(min(offset, BLOCK))):
            offset -= len(block)
        return offset <= 0


@contextmanager
def open_stream(path: Path) -> Iterator[Stream]:
    try:
        file = path.open("rb", buffering=0)
    except FileNotFoundError:
        raise NotFound(f"There is no transcript {path}.", "bethink backfill PATH") from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    with file:
        yield ZstdStream(file, path) if path.suffix == ".zst" else Stream(file, path)


def read_head(path: Path, size: int = FIRST) -> bytes:
    with open_stream(path) as stream:
        return stream.read(size)


def _unreadable(path: Path, error: Exception) -> BethinkError:
    return BethinkError(
        f"The transcript {path} cannot be read: {error}.",
        "Give another path, or the right to read this one.",
    )


def read_lines(
    stream: Stream, offset: int = 0, number: int = 0, bound: int = BOUND
) -> Iterator[FileLine]:
    """The lines from where the stream stands, which is at `offset`, behind line `number`."""
    pieces: list[bytes] = []
    size, at = 0, offset
    while block := stream.read(BLOCK):
        start = 0
        while (end := block.find(b"\n", start)) >= 0:
            number += 1
            size += end - start
            data = None if size > bound else b"".join([*pieces, block[start:end]])
            yield FileLine(number, at + end + 1, data)
            pieces, size, start = [], 0, end + 1
        size += len(block) - start
        pieces = [] if size > bound else [*pieces, block[start:]]
        at += len(block)
    if size:
        yield FileLine(number + 1, at, None if size > bound else b"".join(pieces), ended=False)


def identify(stream: Stream) -> str:
    return digest(stream.piece(0, FIRST).partition(b"\n")[0].rstrip(b"\r"))


def digest_tail(stream: Stream, offset: int) -> str:
    start = max(0, offset - LAST)
    return digest(stream.piece(start, offset - start))


def find_misfit(stream: Stream, offset: int, identity: str, tail: str) -> str:
    """Why reading cannot go on at an offset, or nothing; then the stream stands there."""
    if not stream.piece(0, 1):
        return "truncated"
    if identify(stream) != identity:
        return "replaced"
    if not stream.move(offset):
        return "truncated"
    return "" if digest_tail(stream, offset) == tail else "rewritten"


def read_objects(data: bytes) -> tuple[list[Any], bool]:
    """The JSON values of one line, and whether all of it could be read.

    Bytes that are no UTF-8 become U+FFFD, everything else stays. A crash can leave half a line with the next one behind it, and two
    writers can join theirs: what is whole is given. A value inside the torn half is not mistaken for a line of its own.
    """
    text = data.decode("utf-8", "replace").strip("\ufeff\0 \t\r")
    found: list[Any] = []
    at = attempts = 0
    while at < len(text):
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            attempts += 1
            behind = _BEHIND_TORN.search(text, at) if attempts <= _ATTEMPTS else None
            if not behind:
                return found, False
            at = behind.end()
            continue
        found.append(value)
        at = len(text) - len(text[end:].lstrip("\0 \t\r"))
    return found, not attempts


def read_object(data: Any) -> dict[str, Any]:
    """The JSON object at the beginning of some bytes or of a text, {} where there is none."""
    raw = data.encode("utf-8", "replace") if isinstance(data, str) else data
    found = read_objects(raw)[0] if isinstance(raw, bytes) else []
    return as_dict(found[0]) if found else {}


def read_outline(head: bytes) -> dict[str, Any]:
    """The top-level keys of a JSON object of which only the beginning is at hand; values that are not scalars become empty ones."""
    text = head.decode("utf-8", "ignore").lstrip("\ufeff\0 \t\r\n")
    found: dict[str, Any] = {}
    at = 1 if text.startswith("{") else len(text)
    try:
        while match := _KEY.match(text, at):
            key, _ = _DECODER.raw_decode(text, match.start(1))
            empty: Any = {"{": {}, "[": []}.get(text[match.end() : match.end() + 1])
            found[str(key)] = empty
            value, at = _DECODER.raw_decode(text, match.end())
            found[str(key)] = value if empty is None else empty
    except (ValueError, RecursionError):
        pass
    return found


# Turns


class Transcript:
    """One file of a host: who says what, where, with which tools, and whether it may be remembered. `pages` reads on from `position`;
    afterwards `position` is where it stands now. Hosts find the messages."""

    host = ""
    rename: Callable[[str], str] = str  # takes secrets out of the ids that hosts give

    def __init__(self, path: Path, position: Position = START, bound: int = BOUND) -> None:
        self.path = path
        self.position = position
        self.bound = bound
        self.skipped: Counter[str] = Counter()  # by reason, in all pages
        self.lines = 0
        self.paged: tuple[Counter[str], int] = (
            Counter(),
            0,
        )  # these two at the end of the last page
        self.restarted = ""  # why it is read from its start again: replaced, truncated, rewritten
        self.begin(position.state)

    def pages(
        self, limit_bytes: int = PAGE_BYTES, limit_turns: int = PAGE_TURNS
    ) -> Iterator[TranscriptPage]:
        """What is new, in pieces of about so many bytes of the file or so many turns."""
        raise NotImplementedError

    def end_page(self, turns: Iterable[Turn], position: Position) -> TranscriptPage:
        """What was read since the last page, up to a position."""
        skipped, lines = self.skipped - self.paged[0], self.lines - self.paged[1]
        self.paged, self.position = (Counter(self.skipped), self.lines), position
        return TranscriptPage(tuple(turns), position, skipped, lines)

    def turns(self) -> Iterator[Turn]:
        for page in self.pages():
            yield from page.turns

    __iter__ = turns

    def begin(self, state: Mapping[str, Any]) -> None:
        """Takes up what `state` kept; hosts add their own."""
        self.seen: dict[str, None] = {}
        self.session = name_of(state, "session") or ""
        self.told = texts_of(state.get("told"))
        # Titles of sessions, as lines of this reading say; under "" where they do not say of which.
        self.titles: dict[str, str] = {}
        self.project = name_of(state, "project", length=1000)  # where the session began
        self.cwd = name_of(state, "cwd", length=1000)
        self.branch = name_of(state, "branch")
        self.off = set(texts_of(state.get("off")))
        self.private = set(texts_of(state.get("private")))  # sessions that were off at any time
        self.hiding = set(texts_of(state.get("hiding")))  # those with an open `<private>`
        self.stamps = [
            (as_text(stamp[0]), as_text(stamp[1]), stamp[2] == "off")
            for stamp in list_of(state, "stamps")
            if isinstance(stamp, list) and len(stamp) == 3
        ]
        self.used: dict[str, _Used] = {
            thread: (texts_of(kept[0]), texts_of(kept[1]), _read_facts(kept[2:]))
            for thread, kept in dict_of(state, "used").items()
            if isinstance(kept, list) and len(kept) > 1
        }
        # Calls whose outcome is not known yet: of which thread, and what each is expected to do.
        self.calls = {
            call: (as_text(kept[0]), _read_facts(kept[1:]))
            for call, kept in dict_of(state, "calls").items()
            if isinstance(kept, list) and kept
        }

    def state(self) -> dict[str, Any]:
        kept = {
            "session": self.rename(self.session),
            "project": self.project,
            "cwd": self.cwd,
            "branch": self.branch,
            "off": sorted(self.off),
            "private": sorted(self.private),
            "hiding": sorted(self.hiding),
            "stamps": [[session, at, "off" if off else "on"] for session, at, off in self.stamps],
            "used": {
                thread: [tools, files, *map(list, work)]
                for thread, (tools, files, work) in self.used.items()
            },
            "told": self.told,
            "calls": {
                call: [thread, *map(list, work)] for call, (thread, work) in self.calls.items()
            },
        } | self.own_state()
        return {key: value for key, value in kept.items() if value}

    def own_state(self) -> dict[str, Any]:
        """What a host keeps beyond that; what is empty is left out."""
        return {}

    def restart(self, why: str) -> None:
        """Nothing of the position holds any more."""
        self.restarted = why
        self.position = START
        self.begin(NOTHING)

    def locate(self, cwd: Any = None, branch: Any = None, session: Any = None) -> None:
        """Takes note of what a line says about its place. What it does not say stays as it was."""
        self.session = self.session or as_name(session) or ""
        self.cwd = as_name(cwd, 1000) or self.cwd
        self.project = self.project or self.cwd
        if isinstance(branch, str):
            self.branch = None if branch == "HEAD" else as_name(branch)

    def set_title(self, title: Any, session: str | None = None) -> None:
        """Takes note of what the host calls a session."""
        if name := as_name(title, 500):
            self.titles[self.rename(self.session if session is None else session)] = name

    def title_of(self, session: str) -> str | None:
        """What the host calls a session, if this reading met it and nothing of the session was kept from memory: a title is made of
        all that was said."""
        return None if session in self.private else self.titles.get(session) or self.titles.get("")

    @property
    def title(self) -> str | None:
        return self.title_of(self.session)

    def add_call(
        self, tool: Any, arguments: Any = None, thread: str | None = None, call: Any = None
    ) -> None:
        """Keeps a tool call for the next turn of its thread; what it did is known when `add_result` tells of it."""
        name = as_name(tool)
        if not name or is_our_tool(name, arguments):
            return
        self.add_used([name], find_paths(name, arguments), thread)
        expected, id = expect_work(name, arguments), as_name(call)
        if expected and id:
            self.calls[id] = (thread or "", expected)
            while len(self.calls) > _CALLS:
                del self.calls[next(iter(self.calls))]

    def add_result(self, call: Any, output: str, failed: bool = False) -> None:
        """Keeps what a tool call did for the next turn of its thread."""
        self.hear_memory(output)
        thread, expected = self.calls.pop(as_name(call) or "", ("", []))
        if expected:
            self.add_used((), (), thread, confirm_work(expected, output, failed))

    def hear_memory(self, text: str) -> None:
        """Takes note of what Bethink told the agent, line by line: what the agent says in the same words is not learned again."""
        at = text.find(f"<{TAG}")
        if at >= 0:
            told = map(hash_words, text[at : at + _TOLD_LENGTH].splitlines())
            kept = [" ".join(sorted(words)[:_TOLD_WORDS]) for words in told if len(words) > 1]
            self.told = [*self.told, *kept][-_TOLD:]

    def add_used(
        self,
        tools: Iterable[str],
        files: Iterable[str],
        thread: str | None = None,
        work: Iterable[Fact] = (),
    ) -> None:
        if self.rename(self.session) in self.off or thread in self.off:
            return
        known, touched, done = self.used.pop(thread or "", ([], [], []))
        self.used[thread or ""] = (
            list(dict.fromkeys([*known, *tools]))[:_TOOLS],
            list(dict.fromkeys([*touched, *files]))[:_FILES],
            # The outcome that came last counts.
            list(reversed(dict.fromkeys(reversed([*done, *work]))))[-_WORK:],
        )
        while len(self.used) > _THREADS:
            del self.used[next(iter(self.used))]

    def make_turn(
        self,
        id: str | None,
        role: str,
        text: str,
        at: datetime | None,
        line: int,
        *,
        session: str | None = None,
        agent: str | None = None,
        thread: str | None = None,
        summary: bool = False,
        plan: bool = False,
    ) -> Turn | str:
        """The turn, or the reason why there is none. All turns of all hosts come through here."""
        if role == "user" and text.lstrip().startswith(PLAN):
            text, plan = text.partition(BEHIND_PLAN)[0], True
        session = self.rename(session or self.session or self.path.name.partition(".")[0])
        thread = thread or agent or ""
        speech = extract_speech(text)
        if not speech.text:
            return speech.reason
        if speech.recalled:
            self.hear_memory(text)
            self.skipped[INJECTED] += 1
        text, opens_private = speech.text, False
        if role == "user" and not summary:
            text, opens_private = self.obey_user(text, at, session)
        if self.is_off(at, session, summary):
            self.used.pop(thread, None)
            return OFF
        if not text:
            return COMMAND
        # The text is shortened as it always was: an identity must not change.
        id = self.rename(id) if id else make_id(session, role, at, shorten(text))
        if not self.is_new(id):
            return REPEATED
        if opens_private:
            self.hiding.add(session)
            self.switch_memory(True, at, session)
        nothing: _Used = ([], [], [])
        used = nothing if summary else self.used.pop(thread, nothing)
        return Turn(
            id,
            session,
            role,
            text,
            at,
            line,
            self.cwd,
            self.branch,
            tuple(used[0]),
            tuple(used[1]),
            agent,
            summary,
            plan,
            tuple(used[2]),
            tuple(self.told),
        )

    def is_new(self, id: str) -> bool:
        """Whether this reading meets a message for the first time."""
        known = id in self.seen
        self.seen[id] = None
        if len(self.seen) > _SEEN:
            del self.seen[next(iter(self.seen))]
        return not known

    def obey_user(self, text: str, at: datetime | None, session: str) -> tuple[str, bool]:
        """What of the user's turn may be given, and whether it opens a `<private>` that hides what follows. The tag switches memory
        off as `memory-mode: off` does, and its end switches it on again."""
        if OWN_COMMAND.match(text):
            return "", False
        mode, text = find_memory_mode(text)
        if mode:
            self.switch_memory(mode == "off", at, session)
        hidden = session in self.hiding
        text, opened = split_private(text, hidden)
        if hidden and opened and not text:
            return "", False
        if hidden:
            self.hiding.discard(session)
            self.switch_memory(False, at, session)
        return text, opened

    def switch_memory(self, off: bool, at: datetime | None, session: str) -> None:
        """Memory was switched, from this line on and from that time on."""
        session = self.rename(session)
        self.off = self.off | {session} if off else self.off - {session}
        self.private |= self.off
        if at:
            stamps = dict.fromkeys([*self.stamps, (session, at.isoformat(), off)])
            self.stamps = sorted(stamps, key=lambda stamp: stamp[1])[-_SWITCHES:]

    def is_off(self, at: datetime | None, session: str, summary: bool) -> bool:
        """Whether memory was off when this was said, by the order of lines or by the time. A fork repeats, behind the newest mode,
        what was said before it, so the time counts too. A summary may tell what was said while memory was off, also when it is on
        again."""
        if summary and session in self.private:
            return True
        when = at.isoformat() if at else ""
        before = [off for whose, since, off in self.stamps if whose == session and since <= when]
        return session in self.off or (bool(before) and before[-1])


class LineTranscript(Transcript):
    """A transcript with one JSON object per line. Hosts say what a line is in `take`."""

    def take(self, entry: dict[str, Any], number: int) -> Iterable[Turn | str]:
        """The turns of a line, or the reasons why there are none."""
        raise NotImplementedError

    def pages(
        self, limit_bytes: int = PAGE_BYTES, limit_turns: int = PAGE_TURNS
    ) -> Iterator[TranscriptPage]:
        self.restarted, known = "", self.position
        with open_stream(self.path) as stream:
            why = known.offset and find_misfit(stream, known.offset, known.identity, known.tail)
            if not why:
                yield from self.walk(stream, limit_bytes, limit_turns)
                return
        self.restart(str(why))
        with open_stream(self.path) as stream:
            yield from self.walk(stream, limit_bytes, limit_turns)

    def walk(self, stream: Stream, limit_bytes: int, limit_turns: int) -> Iterator[TranscriptPage]:
        offset, number = self.position.offset, self.position.line
        # A last line that was whole without its line break was consumed. The break, when it comes, is not one line more.
        joined = offset > 0 and stream.piece(offset - 1, 1) not in (b"\n", b"")
        turns: list[Turn] = []
        start, self.paged = offset, (Counter(self.skipped), self.lines)
        for line in read_lines(stream, offset, number - joined, self.bound):
            if joined and line.data is not None and not line.data.strip():
                joined, offset = False, line.end
                continue
            joined = False
            found, whole = read_objects(line.data) if line.data is not None else ([], False)
            if not line.ended and not (whole and len(found) == 1 and isinstance(found[0], dict)):
                self.skipped[HALF] += 1
                break
            self.lines += 1
            turns += self.take_line(line, found, whole)
            offset, number = line.end, line.number
            if offset - start >= limit_bytes or len(turns) >= limit_turns:
                yield self.end_page(turns, self.at(stream, offset, number))
                turns, start = [], offset
        if offset != self.position.offset or self.restarted:
            yield self.end_page(turns, self.at(stream, offset, number))

    def at(self, stream: Stream, offset: int, number: int) -> Position:
        tail = digest_tail(stream, offset)
        return Position(identify(stream), offset, number, tail, self.state())

    def take_line(self, line: FileLine, found: list[Any], whole: bool) -> list[Turn]:
        """The turns of a line. A line that gives none is counted under one reason."""
        turns: list[Turn] = []
        reasons: list[str] = [] if whole else [LONG if line.data is None else BROKEN]
        for entry in found:
            for result in self.take(entry, line.number) if isinstance(entry, dict) else (UNKNOWN,):
                if isinstance(result, Turn):
                    turns.append(result)
                else:
                    reasons.append(result)
        if not whole or not turns:
            self.skipped[reasons[0] if reasons else UNKNOWN if found else EMPTY] += 1
        return turns


class WholeTranscript(Transcript):
    """A transcript that is one value, read whole each time it changed. What was given before is not given again, as long as the
    turns before it are the same."""

    def __init__(self, path: Path, position: Position = START) -> None:
        super().__init__(path, position, WHOLE)

    def take_all(self, data: bytes) -> Iterable[Turn | str]:
        """All turns, and for each message without one the reason. ValueError if the file is no such transcript."""
        raise NotImplementedError

    def contents(self) -> bytes:
        """What is read and compared; hosts that keep a session in many files put them together."""
        pieces: list[bytes] = []
        with open_stream(self.path) as stream:
            while sum(map(len, pieces)) <= self.bound and (piece := stream.read(BLOCK)):
                pieces.append(piece)
        return b"".join(pieces)

    def pages(
        self, limit_bytes: int = PAGE_BYTES, limit_turns: int = PAGE_TURNS
    ) -> Iterator[TranscriptPage]:
        data = self.contents()
        identity, known = digest(data), self.position
        if identity == known.identity:
            return
        if len(data) > self.bound:
            self.skipped[LONG] += 1
            return
        self.begin(NOTHING)
        before = Counter(self.skipped)
        try:
            results = list(self.take_all(data))
        except (ValueError, RecursionError):
            # Perhaps it is being written at this moment. Nothing is consumed, so it is tried again.
            self.skipped[BROKEN] += 1
            return
        self.lines = len(results)
        self.skipped.update(result for result in results if isinstance(result, str))
        turns = [result for result in results if isinstance(result, Turn)]
        given = known.line if known.tail == _digest_ids(turns[: known.line]) else 0
        self.restarted = "rewritten" if known.line and not given else ""
        done = False
        while not done:
            page, given = turns[given : given + limit_turns], min(given + limit_turns, len(turns))
            done = given >= len(turns)
            # Until the last page is written, the file counts as changed.
            here = (identity, len(data)) if done else ("", 0)
            self.position = Position(*here, given, _digest_ids(turns[:given]), self.state())
            counts = (self.skipped - before, len(results)) if done else (NOTHING, 0)
            yield TranscriptPage(tuple(page), self.position, *counts)


def _digest_ids(turns: list[Turn]) -> str:
    return make_id(*(turn.id for turn in turns))


def _read_facts(kept: list[Any]) -> list[Fact]:
    """Facts as `state` kept them."""
    return [Fact(*texts_of(one)) for one in kept if len(texts_of(one)) == 2]
