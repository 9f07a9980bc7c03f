"""The base of all transcript readers: from the lines of a file to pages of turns.

One turn is one message of the host's file, so that it can be cited by its line. `tools`, `files` and `work` of a turn are those of the
time since the turn before it: what an answer reports on, or what a correction corrects. That way nothing waits for what may come next, and a file that
is read in steps gives the same turns as one that is read at once.

From `memory-mode: off`, as a line of the host or as a line that the user typed, nothing of the session is given until `on`; the same
holds for a `<private>` that the user opened, until it is closed. Every line gives a turn or is counted in `skipped` under one reason.

A file is read in bounded memory. A line longer than the bound is never held: its bytes are passed over and it comes without data. The
last line of a file may still be in the writing; only what was consumed moves the position. A position fits when the first line and the
last bytes before the offset are what they were, whatever became of device, inode and times. Otherwise the file was cut, replaced or
rewritten, and is read from its start. Of compressed transcripts (`.zst`) what was packed is read, and offsets count in that.
This module knows no agent's format and no store.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from copy import deepcopy
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, ClassVar

from bethink.agents.base import (
    ABOUT,
    BROKEN,
    MACHINE,
    NO_SPEECH,
    OFF,
    START,
    TOO_LONG,
    Fact,
    Fields,
    Position,
    Taken,
    Task,
    TranscriptPage,
    Turn,
    as_fields,
    as_name,
    digest,
    hash_words,
    make_id,
    read_object,
    read_value,
)
from bethink.agents.speech import (
    CONTINUED,
    extract_speech,
    extract_summary,
    find_memory_mode,
    shorten,
    split_private,
)
from bethink.agents.tasks import find_created, read_task_call
from bethink.agents.work import (
    confirm_work,
    expect_event,
    expect_work,
    find_paths,
    find_stored,
    finish_event,
    is_our_tool,
)
from bethink.errors import BethinkError, NotFound
from bethink.model import NOTHING, Json, ToolEvent, Values
from bethink.skills import NAMES
from bethink.text import TAG

# How much is remembered: tools, files and work of a turn, switches of memory, threads with tools, calls under way.
_TOOLS, _FILES, _WORK, _SWITCHES, _THREADS, _CALLS = 32, 64, 24, 64, 16, 32
_EVENTS = 48  # commands and edits between two turns
_AFTER = 6  # calls of another tool that are kept after its failure
_TASKS = 64  # items of a task list
_NOTES = 32  # statements that the agent stored between two turns
# Limits for recalled text: lines, words of a line, characters of one recall.
_RECALLED, _RECALLED_WORDS, _RECALLED_LENGTH = 24, 40, 20_000
# One of our skills, called by name, if the host records it as typed: `/remember why …`, `$remember`.
OWN_COMMAND = re.compile(rf"[/$](?:bethink:)?(?:{'|'.join(NAMES)})(?:\s|$)")
# How a prompt begins by which hosts hand an agent's plan back to it, and what one of them adds behind it.
PLAN = "Implement the following plan:"
BEHIND_PLAN = "\n\nIf you need specific details from before exiting plan mode"

_TOOL = re.compile(r"[\w.:-]{1,60}")  # a name that can be shown
LONGEST_FILE = 128 << 20  # bytes of a file that is read whole
LONGEST_LINE = 8 << 20  # bytes of a line; the longest that a host was seen to write has 7 MB
_PIECE = 1 << 16  # bytes that are passed over at once
_FIRST, _LAST = 4096, 1024


# Bytes of a growing file


def open_transcript(path: Path) -> IO[bytes]:
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise NotFound(f"There is no transcript {path}.", "bethink backfill PATH") from None
    except (OSError, ValueError) as error:
        raise BethinkError(
            f"The transcript {path} cannot be read: {error}.",
            "Give another path, or the right to read this one.",
        ) from None
    return _unpack(file, path) if path.suffix == ".zst" else file


def _unpack(packed: IO[bytes], path: Path) -> IO[bytes]:
    """Return the content of a compressed file, as far as it can be unpacked."""
    with packed:
        try:
            import zstandard
        except ImportError:
            raise BethinkError(
                f"The transcript {path} is compressed, and the package zstandard is not installed.",
                "pip install 'bethink[zstd]'",
            ) from None
        file = TemporaryFile()  # noqa: SIM115 - the caller closes it
        reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
        with suppress(zstandard.ZstdError):
            # What is unpacked before damage in the same piece is lost with it, so pieces are small.
            shutil.copyfileobj(reader, file, _FIRST)
    file.seek(0)
    return file


def read_head(path: Path, size: int) -> bytes:
    with open_transcript(path) as file:
        return file.read(size)


def read_line(file: IO[bytes]) -> tuple[bytes | None, bool]:
    """The next line, None when it is longer than the bound; and whether its line break is there."""
    data = last = file.readline(LONGEST_LINE + 1)
    while len(data) > LONGEST_LINE and last and not last.endswith(b"\n"):
        last = file.readline(_PIECE)
    return data if len(data) <= LONGEST_LINE else None, last.endswith(b"\n")


def take_marks(file: IO[bytes], offset: int) -> tuple[str, str]:
    """Return marks that identify a file read up to an offset: its first line, and the last bytes."""
    here, start = file.tell(), max(0, offset - _LAST)
    file.seek(0)
    first = file.read(_FIRST).partition(b"\n")[0].rstrip(b"\r")
    file.seek(start)
    last = file.read(offset - start)
    file.seek(here)
    return digest(first), digest(last)


def drop_oldest(kept: Json, most: int) -> None:
    while len(kept) > most:
        del kept[next(iter(kept))]


# Turns


class Transcript:
    """One file of a host: speakers, words, tools, and the switches of memory.

    `pages` reads on from `position` and updates it. Hosts find the messages, and set `number` and `agent` for each.
    """

    host = ""
    page_bytes, page_turns = 2 << 20, 200
    rename: Callable[[str], str] = str  # takes secrets out of the ids that hosts give
    # What a position keeps of a reading, and how each begins. JSON, and nothing that was said.
    kept: ClassVar[Json] = {
        **{"session": "", "project": None, "cwd": None, "branch": None, "used": {}, "calls": {}},
        **{"runs": {}, "events": {}, "tripped": {}, "tasks": {}, "changed_tasks": {}, "marked": {}},
        **{"named": {}, "prompts": {}, "noted": {}},
        **{"off": [], "private": [], "hiding": [], "stamps": [], "told": []},
    }
    session: str
    project: str | None  # where the session began
    cwd: str | None
    branch: str | None
    off: list[str]  # sessions in which memory is off
    private: list[str]  # those in which it was off at any time
    hiding: list[str]  # those with an open `<private>`
    stamps: list[list[str]]  # switches of memory: session, time, "on" or "off"
    used: dict[str, list[Any]]  # of each thread: its tools, its files, then each fact of its work
    noted: dict[str, list[str]]  # of each thread: statements it stored since its last turn
    told: list[str]  # recalled lines that the agent got, by `hash_words`; a stored name
    calls: dict[str, list[Any]]  # without an outcome: the thread of each, then what it should do
    runs: dict[
        str, list[Any]
    ]  # without an outcome: the thread of each command or edit, then its event
    events: dict[str, list[Any]]  # of each thread: its commands and edits since its last turn
    tripped: dict[str, int]  # of each other tool that failed: how many more calls are kept
    tasks: dict[str, dict[str, list[str]]]  # of each thread: its task list, key → text and state
    changed_tasks: dict[str, dict[str, str]]  # of each thread, since its last turn: text → state
    marked: dict[str, list[str]]  # of each thread: what the user did since its last turn
    named: dict[str, str]  # the tool of each of the last calls
    prompts: dict[
        str, list[Any]
    ]  # of each thread: hash of its last prompt, whether it was answered

    def __init__(self, path: Path, position: Position = START) -> None:
        self.path, self.position = path, position
        # Since the last page: turns, lines without any by reason, and how many lines.
        self.found: list[Turn] = []
        self.skipped: Counter[str] = Counter()
        self.lines = 0
        self.number = self.offset = 0  # of the line or message that is being read; where it begins
        self.agent: str | None = None  # the sub-agent that it belongs to
        self.begin(position.state)

    def pages(self) -> Iterator[TranscriptPage]:
        """Yield what is new, in pages of about `page_bytes` of the file or `page_turns` turns."""
        raise NotImplementedError

    def keep(self, *results: Taken) -> None:
        """Keep turns and reasons for the page."""
        for one in results:
            if isinstance(one, Turn):
                self.found.append(one)
            else:
                self.skipped[one] += 1

    def end_page(self, position: Position) -> TranscriptPage:
        """Return what was read since the last page, up to a position."""
        page = TranscriptPage(tuple(self.found), position, self.skipped, self.lines)
        self.position, self.found, self.skipped, self.lines = position, [], Counter(), 0
        return page

    def turns(self) -> Iterator[Turn]:
        for page in self.pages():
            yield from page.turns

    def begin(self, state: Values) -> None:
        """Restore the values that `state` kept."""
        self.seen: dict[str, None] = {}
        # Titles of sessions, as lines of this reading say; under "" where they do not say of which.
        self.titles: dict[str, str] = {}
        for name, empty in self.kept.items():
            setattr(self, name, deepcopy(state.get(name, empty)))

    def state(self) -> Json:
        kept = {name: deepcopy(getattr(self, name)) for name in self.kept}
        kept["session"] = self.rename(self.session)
        return {name: value for name, value in kept.items() if value}

    def restart(self) -> None:
        """Nothing of the position holds any more."""
        self.position = START
        self.begin(NOTHING)

    def locate(self, cwd: object = None, branch: object = None, session: object = None) -> None:
        """Note the place that a line names. Values that it lacks stay as they were."""
        self.session = self.session or as_name(session) or ""
        self.cwd = as_name(cwd, 1000) or self.cwd
        self.project = self.project or self.cwd
        if isinstance(branch, str):
            self.branch = None if branch == "HEAD" else as_name(branch)

    def set_title(self, title: object, session: str | None = None) -> None:
        """Note the host's title of a session."""
        if name := as_name(title, 500):
            self.titles[self.rename(self.session if session is None else session)] = name

    def title_of(self, session: str) -> str | None:
        """Return the host's title of a session, unless a part of it is private: titles summarize all of it."""
        return None if session in self.private else self.titles.get(session) or self.titles.get("")

    @property
    def channel(self) -> str:
        """Thread of the tool calls before a turn: a sub-agent works beside its session."""
        return self.agent or ""

    @property
    def speakers(self) -> tuple[str, ...]:
        """Roles whose words count: the prompt of a sub-agent is machine-made."""
        return ("assistant",) if self.agent else ("user", "assistant")

    def add_call(self, tool: object, arguments: object = None, call: object = None) -> None:
        """Keep a tool call for the next turn of its thread. `add_result` adds its outcome."""
        name, fields = as_name(tool), as_fields(arguments)
        self.note_answer()
        if not name or is_our_tool(name, fields):
            self.add_notes(find_stored(name or "", fields))
            return
        self.add_used([name], find_paths(name, fields))
        if id := as_name(call):
            self.named[id] = name
            drop_oldest(self.named, _CALLS)
        self.add_run(expect_event(name, fields), call)
        self.change_tasks(name, fields, as_name(call))
        expected = expect_work(name, fields)
        if expected and id:
            self.calls[id] = [self.channel, *map(list, expected)]
            drop_oldest(self.calls, _CALLS)

    def add_notes(self, texts: Iterable[str]) -> None:
        """Keep the statements that the agent stored for the next turn of its thread."""
        if texts and self.rename(self.session) not in self.off:
            known = self.noted.pop(self.channel, [])
            self.noted[self.channel] = list(dict.fromkeys([*known, *texts]))[-_NOTES:]
            drop_oldest(self.noted, _THREADS)

    def change_tasks(self, tool: str, arguments: Fields, call: str | None) -> None:
        """Follow the agent's task list. An open item that is missing in a new list is dropped."""
        stated = read_task_call(tool, arguments, call)
        if stated is None or self.rename(self.session) in self.off:
            return
        changes, whole = stated
        known = self.tasks.pop(self.channel, {})
        now = {} if whole else dict(known)
        news = self.changed_tasks.pop(self.channel, {})
        for key, text, state in changes:
            before, was = now.get(key) or known.get(key) or ["", ""]
            text, state = text or before, state or was
            if not text or not state:
                continue
            now[key] = [text, state]
            if [text, state] != [before, was]:
                news.pop(text, None)
                news[text] = state
        listed = {text for text, _ in now.values()}
        for text, state in known.values():
            if whole and text not in listed and state in ("open", "doing"):
                news[text] = "dropped"
        drop_oldest(now, _TASKS)
        drop_oldest(news, _TASKS)
        self.tasks[self.channel], self.changed_tasks[self.channel] = now, news
        drop_oldest(self.tasks, _THREADS)
        drop_oldest(self.changed_tasks, _THREADS)

    def name_task(self, call: str, output: str) -> None:
        """Note the id of a new item, by which later calls name it."""
        for known in self.tasks.values():
            if call in known and (id := find_created(output)):
                known[id] = known.pop(call)

    def decline(self, call: object) -> None:
        """Note that the user did not let the agent make a call."""
        tool = self.named.get(as_name(call) or "", "")
        self.mark(f"declined: {tool if _TOOL.fullmatch(tool) else 'tool'}")

    def mark(self, what: str) -> None:
        """Keep what the user did for the next turn of its thread."""
        marks = self.marked.pop(self.channel, [])
        self.marked[self.channel] = list(dict.fromkeys([*marks, what]))
        drop_oldest(self.marked, _THREADS)

    def add_run(self, event: ToolEvent | None, call: object) -> None:
        """Keep a command or an edit until its outcome is known."""
        id = as_name(call)
        if event and id and self.rename(self.session) not in self.off:
            event = event._replace(line=self.number, directory=event.directory or self.cwd or "")
            self.runs[id] = [self.channel, *event]
            drop_oldest(self.runs, _CALLS)

    def end_run(
        self, call: object, output: str, failed: bool | None, at: datetime | None = None
    ) -> None:
        """Keep the outcome of a command or an edit for the next turn of its thread."""
        thread, *values = self.runs.pop(as_name(call) or "", [""])
        if values and self.rename(self.session) not in self.off:
            event = finish_event(ToolEvent(*values), output, failed)
            event = event._replace(line=self.number, at=at.isoformat() if at else "")
            if event.tool and not event.file and not self.is_telling(event):
                return
            self.events[thread] = [*self.events.pop(thread, []), list(event)][-_EVENTS:]
            drop_oldest(self.events, _THREADS)

    def is_telling(self, event: ToolEvent) -> bool:
        """Return True for the failure of a tool that is no shell, and for its next few calls."""
        left = _AFTER if event.failed else self.tripped.get(event.tool, 0)
        self.tripped[event.tool] = left - 1
        return event.failed is not None and left > 0

    def add_result(
        self,
        call: object,
        output: str,
        failed: bool = False,
        *,
        at: datetime | None = None,
        certain: bool = True,
    ) -> None:
        """Keep the outcome of a tool call for the next turn. Not `certain`: the host does not report failures."""
        self.note_recalled(output)
        self.name_task(as_name(call) or "", output)
        self.end_run(call, output, failed if certain else None, at)
        thread, *expected = self.calls.pop(as_name(call) or "", [""])
        if expected:
            self.add_used(work=confirm_work(expected, output, failed), thread=thread)

    def note_recalled(self, text: str) -> None:
        """Note the lines that the agent got from Bethink, so that its repeats are not learned again."""
        at = text.find(f"<{TAG}")
        if at >= 0:
            found = map(hash_words, text[at : at + _RECALLED_LENGTH].splitlines())
            lines = [" ".join(sorted(words)[:_RECALLED_WORDS]) for words in found if len(words) > 1]
            self.told = [*self.told, *lines][-_RECALLED:]

    def add_used(
        self,
        tools: Iterable[str] = (),
        files: Iterable[str] = (),
        work: Iterable[Fact] = (),
        thread: str | None = None,
    ) -> None:
        if self.rename(self.session) in self.off:
            return
        thread = self.channel if thread is None else thread
        known, touched, *done = self.used.pop(thread, [[], []])
        known = list(dict.fromkeys([*known, *tools]))[:_TOOLS]
        touched = list(dict.fromkeys([*touched, *files]))[:_FILES]
        # The outcome that came last counts.
        latest = [list(one) for one in dict.fromkeys(reversed([*map(tuple, done), *work]))]
        self.used[thread] = [known, touched, *reversed(latest[:_WORK])]
        drop_oldest(self.used, _THREADS)

    def make_turn(
        self,
        id: str | None,
        role: str,
        text: str,
        at: datetime | None,
        *,
        session: str | None = None,
        plan: bool = False,
        asked: tuple[str, ...] = (),
    ) -> Taken:
        """The turn, or the reason why there is none. All turns of all hosts come through here."""
        if role == "user" and text.lstrip().startswith(PLAN):
            text, plan = text.partition(BEHIND_PLAN)[0], True
        if role == "user" and text.lstrip().startswith(CONTINUED):
            return MACHINE
        summary = role in ABOUT
        if summary:
            text = extract_summary(text)
        session = self.rename(session or self.session or self.path.name.partition(".")[0])
        speech = extract_speech(text)
        if not speech.text or role not in (*self.speakers, *ABOUT):
            return speech.reason
        if speech.recalled:
            self.note_recalled(text)
            self.skipped["injected by Bethink"] += 1
        text, opens_private = speech.text, False
        if role == "user":
            text, opens_private = self.obey_user(text, at, session)
        if self.is_off(at, session, summary):
            for kept in (self.used, self.events, self.changed_tasks, self.marked, self.noted):
                kept.pop(self.channel, None)
            return OFF
        if not text:
            return NO_SPEECH
        # The text is shortened as it always was: an identity must not change.
        id = self.rename(id) if id else make_id(session, role, at, shorten(text))
        if id in self.seen:
            return "repeated"
        self.seen[id] = None
        if self.is_sent_again(role, text):
            return "repeated"
        if opens_private:
            self.hiding.append(session)
            self.switch_memory(True, at, session)
        nothing: list[Any] = [[], []]
        taken: Json = {}
        if not summary:  # it reports on nothing that happened since the turn before
            since = ("used", "events", "changed_tasks", "marked", "noted")
            taken = {name: getattr(self, name).pop(self.channel, None) for name in since}
        tools, files, *work = taken.get("used") or nothing
        return Turn(
            *(id, session, role, text, at, self.number, self.cwd, self.branch),
            tools=tuple(tools),
            files=tuple(files),
            agent=self.agent,
            plan=plan,
            work=tuple(Fact(*fact) for fact in work),
            recalled=tuple(self.told),
            asked=asked,
            events=tuple(ToolEvent(*event) for event in taken.get("events") or ()),
            tasks=tuple(Task(*one) for one in (taken.get("changed_tasks") or {}).items()),
            noted=tuple(taken.get("noted") or ()),
            marks=tuple(taken.get("marked") or ()),
        )

    def note_answer(self) -> None:
        """Note that the agent spoke or acted since the last prompt."""
        if self.channel in self.prompts:
            self.prompts[self.channel][1] = True

    def is_sent_again(self, role: str, text: str) -> bool:
        """Return True for a prompt that was interrupted, or not answered, and sent once more."""
        if role != "user":
            self.note_answer()
            return False
        known, answered = self.prompts.pop(self.channel, ["", True])
        interrupted = "interrupted" in self.marked.get(self.channel, [])
        self.prompts[self.channel] = [digest(text.encode("utf-8", "replace")), False]
        drop_oldest(self.prompts, _THREADS)
        return known == self.prompts[self.channel][0] and (interrupted or not answered)

    def obey_user(self, text: str, at: datetime | None, session: str) -> tuple[str, bool]:
        """Return the visible part of the user's turn, and True if it opens a `<private>`.

        The tag switches memory off as `memory-mode: off` does, and its end switches it on again.
        """
        if OWN_COMMAND.match(text):
            return "", False
        mode, text = find_memory_mode(text)
        if mode:
            self.switch_memory(mode == "off", at, session)
        hidden = session in self.hiding
        text, opened = split_private(text, hidden)
        if hidden:
            if opened and not text:
                return "", False
            self.hiding.remove(session)
            self.switch_memory(False, at, session)
        return text, opened

    def switch_memory(self, off: bool, at: datetime | None, session: str) -> None:
        """Memory was switched, from this line on and from that time on."""
        session = self.rename(session)
        self.off = [one for one in self.off if one != session] + [session] * off
        self.private = list(dict.fromkeys([*self.private, *self.off]))
        stamp = [session, at.isoformat(), "off" if off else "on"] if at else []
        if stamp and stamp not in self.stamps:
            by_time = sorted([*self.stamps, stamp], key=lambda stamp: stamp[1])
            self.stamps = by_time[-_SWITCHES:]

    def is_off(self, at: datetime | None, session: str, summary: bool) -> bool:
        """Return True if memory was off, by the order of lines or by the time.

        A fork repeats earlier turns after the newest switch, so the time counts too. A summary may contain what was said while memory was off,
        also when it is on again.
        """
        if summary and session in self.private:
            return True
        when = at.isoformat() if at else ""
        before = [mode for whose, since, mode in self.stamps if whose == session and since <= when]
        return session in self.off or before[-1:] == ["off"]


class LineTranscript(Transcript):
    """A transcript with one JSON object per line. Hosts say what a line is in `take`."""

    def take(self, entry: Fields) -> Taken:
        """The turn of a line or the reason why there is none."""
        raise NotImplementedError

    def pages(self) -> Iterator[TranscriptPage]:
        with open_transcript(self.path) as file:
            identity, start, number, tail, _ = self.position
            changed = start > 0 and take_marks(file, start) != (identity, tail)
            if changed:
                self.restart()
                start = number = 0
            file.seek(max(0, start - 1))
            if start and file.read(1) != b"\n":
                file.readline()  # the break of a last line that was taken without it
            self.number, end = number, start
            for data, ended in iter(partial(read_line, file), (b"", False)):
                entry = read_object(data)
                if not ended and entry is None:
                    self.skipped["half-written last line"] += 1
                    break
                self.lines, self.number, end = self.lines + 1, self.number + 1, file.tell()
                self.offset = end - len(data or b"")
                if entry is None:
                    self.keep(TOO_LONG if data is None else BROKEN)
                else:
                    self.keep(*self.take_all(entry))
                if end - start >= self.page_bytes or len(self.found) >= self.page_turns:
                    yield self.end_page(self.stand(file, end))
                    start = end
            if end != start or changed:
                yield self.end_page(self.stand(file, end))

    def take_all(self, entry: Fields) -> list[Taken]:
        """The turns of a line, or one reason why it gives none."""
        return [self.take(entry)]

    def stand(self, file: IO[bytes], offset: int) -> Position:
        identity, tail = take_marks(file, offset)
        return Position(identity, offset, self.number, tail, self.state())


class WholeTranscript(Transcript):
    """A transcript that is read whole when it changed; identities stay the same."""

    def take_whole(self, data: bytes) -> Iterator[Taken]:
        """All turns of a file, and for each message without one the reason."""
        raise NotImplementedError

    def pages(self) -> Iterator[TranscriptPage]:
        data = read_head(self.path, LONGEST_FILE + 1)
        identity = digest(data)
        if identity == self.position.identity:
            return
        self.restart()
        fits = len(data) <= LONGEST_FILE
        results = list(self.take_whole(data)) or [NO_SPEECH] if fits else [TOO_LONG]
        for start in range(0, len(results), self.page_turns):
            end = start + self.page_turns
            self.keep(*results[start:end])
            self.lines += len(results[start:end])
            # Until the last page is written, the file counts as changed.
            known = identity if end >= len(results) else ""
            yield self.end_page(Position(known, end, state=self.state()))


class JsonTranscript(WholeTranscript):
    """A transcript that is a single JSON value with a list of messages. Hosts take each in `take`."""

    def take_head(self, document: Fields) -> None:
        """Note the place and the session that the document names."""

    def list_messages(self, document: Fields) -> list[Fields]:
        """Return the messages of the document."""
        return document.objects("messages")

    def take(self, message: Fields) -> Iterable[Taken]:
        """The turns of a message, or the reasons why it gives none."""
        raise NotImplementedError

    def take_whole(self, data: bytes) -> Iterator[Taken]:
        value = read_value(data)
        document = Fields(messages=value) if isinstance(value, list) else as_fields(value)
        if not document:
            yield BROKEN
            return
        self.take_head(document)
        for number, message in enumerate(self.list_messages(document), 1):
            self.number = number
            yield from self.take(message)


def is_document(head: bytes) -> bool:
    """Return True if a file begins as one JSON value, and not as one object per line."""
    first = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0].rstrip()
    entry = read_object(first)
    return first[:1] in (b"{", b"[") and (entry is None or isinstance(entry.get("messages"), list))
