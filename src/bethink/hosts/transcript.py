"""What the readers of all hosts have in common: from a file's lines, or from its one value, to pages of turns.

One turn is one message of the host's file, so that it can be cited by its line. `tools` and `files` of a turn are those used since the
turn before it: what an answer reports on, or what a correction corrects. That way nothing waits for what may come next, and a file that
is read in steps gives the same turns as one that is read at once.

From `memory-mode: off`, as a line of the host or as a line that the user typed, nothing of the session is given until `on`. Every line
gives a turn or is counted in `skipped` under one reason. This module knows no host's format and no store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from bethink.hosts import lines as bytewise
from bethink.hosts.base import (
    BROKEN,
    COMMAND,
    EMPTY,
    HALF,
    INJECTED,
    LONG,
    MACHINE,
    OFF,
    PAGE_BYTES,
    PAGE_TURNS,
    REPEATED,
    START,
    UNKNOWN,
    WHOLE,
    Page,
    Position,
    Transcript,
    Turn,
    dict_of,
    digest,
    hashed,
    list_of,
    name_of,
    ours,
    paths_of,
    text_of,
    texts_of,
)
from bethink.hosts.speech import memory_mode, shortened, split_private, spoken
from bethink.types import NOTHING

_TOOLS, _FILES, _SEEN, _STAMPS, _THREADS = 32, 64, 50_000, 64, 16


class HostTranscript(Transcript):
    """Who says what, where, with which tools, and whether it may be remembered. Hosts find the messages."""

    def __init__(self, path: Path, position: Position = START, bound: int = bytewise.BOUND) -> None:
        self.path = path
        self.position = position
        self.bound = bound
        self.skipped: Counter[str] = Counter()
        self.lines = 0
        self.restarted = ""  # why it is read from its start again: replaced, truncated, rewritten
        self.begin(position.state)

    def begin(self, state: Mapping[str, Any]) -> None:
        """Takes up what `state` kept; hosts add their own."""
        self.seen: dict[str, None] = {}
        self.session = name_of(state.get("session")) or ""
        self.titles: dict[
            str, str
        ] = {}  # of sessions, as lines of this reading say; under "" where they do not say of which
        self.project = name_of(state.get("project"), 1000)  # where the session began
        self.cwd = name_of(state.get("cwd"), 1000)
        self.branch = name_of(state.get("branch"))
        self.off = set(texts_of(list_of(state.get("off"))))
        self.private = set(
            texts_of(list_of(state.get("private")))
        )  # sessions that were off at any time
        self.hiding = set(
            texts_of(list_of(state.get("hiding")))
        )  # sessions in which the user opened `<private>` and did not close it yet
        stamps = [
            stamp
            for stamp in list_of(state.get("stamps"))
            if isinstance(stamp, list) and len(stamp) == 3
        ]
        self.stamps = [
            (text_of(session), text_of(at), mode == "off") for session, at, mode in stamps
        ]
        used = {thread: list_of(pair) for thread, pair in dict_of(state.get("used")).items()}
        self.used = {
            thread: (texts_of(pair[0]), texts_of(pair[1]))
            for thread, pair in used.items()
            if len(pair) == 2
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
            "used": {thread: [tools, files] for thread, (tools, files) in self.used.items()},
        }
        return {key: value for key, value in kept.items() if value}

    def restart(self, why: str) -> None:
        """Nothing of the position holds any more."""
        self.restarted = why
        self.position = START
        self.begin(NOTHING)

    def where(self, cwd: Any = None, branch: Any = None, session: Any = None) -> None:
        """Takes note of what a line says about its place. What it does not say stays as it was."""
        self.session = self.session or name_of(session) or ""
        self.cwd = name_of(cwd, 1000) or self.cwd
        self.project = self.project or self.cwd
        if isinstance(branch, str):
            self.branch = None if branch == "HEAD" else name_of(branch)

    def entitle(self, title: Any, session: str | None = None) -> None:
        """Takes note of what the host calls a session."""
        if name := name_of(title, 500):
            self.titles[self.rename(self.session if session is None else session)] = name

    def title_of(self, session: str) -> str | None:
        # A title is made of all that was said, also of what was said while memory was off.
        return None if session in self.private else self.titles.get(session) or self.titles.get("")

    def use(self, tool: Any, arguments: Any = None, thread: str | None = None) -> None:
        """Keeps a tool call for the next turn of its thread."""
        name = name_of(tool)
        if name and not ours(name, arguments):
            self.keep([name], paths_of(name, arguments), thread)

    def keep(self, tools: Iterable[str], files: Iterable[str], thread: str | None = None) -> None:
        if self.rename(self.session) in self.off or thread in self.off:
            return
        known, touched = self.used.pop(thread or "", ([], []))
        self.used[thread or ""] = (_added(known, tools, _TOOLS), _added(touched, files, _FILES))
        while len(self.used) > _THREADS:
            del self.used[next(iter(self.used))]

    def give(
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
    ) -> Turn | str:
        """The turn, or the reason why there is none. All turns of all hosts come through here."""
        session = self.rename(session or self.session or self.path.name.partition(".")[0])
        said = spoken(text)
        if not said.text:
            return INJECTED if said.recalled else MACHINE if said.wrapped else EMPTY
        if said.recalled:
            self.skipped[INJECTED] += 1
        typed = role == "user" and not summary
        mode, text = memory_mode(said.text) if typed else (None, said.text)
        if mode:
            self.remember(mode == "off", at, session)
        opened = False
        if typed:
            text, opened = self.unhide(text, at, session)
        # A summary may tell what was said while memory was off, also when it is on again.
        if self.paused(at, session) or (summary and session in self.private):
            self.used.pop(thread or agent or "", None)
            return OFF
        if not text:
            return COMMAND
        # The text is shortened as it always was: an identity must not change.
        id = self.rename(id) if id else hashed(session, role, at, shortened(text))
        if id in self.seen:
            return REPEATED
        self.seen[id] = None
        if len(self.seen) > _SEEN:
            del self.seen[next(iter(self.seen))]
        if opened:
            self.hiding.add(session)
            self.remember(True, at, session)
        tools, files = ([], []) if summary else self.used.pop(thread or agent or "", ([], []))
        return Turn(
            id,
            session,
            role,
            text,
            at,
            line,
            self.cwd,
            self.branch,
            tuple(tools),
            tuple(files),
            agent,
            summary,
        )

    def unhide(self, text: str, at: datetime | None, session: str) -> tuple[str, bool]:
        """What of the user's turn may be given, and whether it opens a `<private>` that hides what follows. The tag switches memory
        off as `memory-mode: off` does, and its end switches it on again."""
        hidden = session in self.hiding
        text, opened = split_private(text, hidden)
        if hidden and opened and not text:
            return "", False
        if hidden:
            self.hiding.discard(session)
            self.remember(False, at, session)
        return text, opened

    def remember(self, off: bool, at: datetime | None, session: str) -> None:
        """Memory was switched, from this line on and from that time on."""
        session = self.rename(session)
        self.off = self.off | {session} if off else self.off - {session}
        self.private |= self.off
        if at:
            stamps = dict.fromkeys([*self.stamps, (session, at.isoformat(), off)])
            self.stamps = sorted(stamps, key=lambda stamp: stamp[1])[-_STAMPS:]

    def paused(self, at: datetime | None, session: str) -> bool:
        """Whether memory was off when this was said, by the order of lines or by the time. A fork repeats, behind the newest mode,
        what was said before it, so the time counts too."""
        if session in self.off:
            return True
        before = [
            off
            for whose, since, off in self.stamps
            if at and whose == session and since <= at.isoformat()
        ]
        return bool(before) and before[-1]


def _added(known: list[str], new: Iterable[str], most: int) -> list[str]:
    return list(dict.fromkeys([*known, *new]))[:most]


class LineTranscript(HostTranscript):
    """A transcript with one JSON object per line. Hosts say what a line is in `take`."""

    start = 0  # the offset of the line that is being taken

    def take(self, entry: dict[str, Any], number: int) -> Iterable[Turn | str]:
        """The turns of a line, or the reasons why there are none."""
        raise NotImplementedError

    def pages(self, limit_bytes: int = PAGE_BYTES, limit_turns: int = PAGE_TURNS) -> Iterator[Page]:
        stream = bytewise.opened(self.path)
        self.restarted = ""
        try:
            known = self.position
            if known.offset and (
                why := bytewise.misfit(stream, known.offset, (known.identity, known.tail))
            ):
                stream.close()
                self.restart(why)
                stream = bytewise.opened(self.path)
            yield from self.walk(stream, limit_bytes, limit_turns)
        finally:
            stream.close()

    def walk(self, stream: bytewise.Stream, limit_bytes: int, limit_turns: int) -> Iterator[Page]:
        offset, number = self.position.offset, self.position.line
        # A last line that was whole without its line break was consumed. The break, when it comes, is not one line more.
        joined = offset > 0 and stream.piece(offset - 1, 1) not in (b"\n", b"")
        turns: list[Turn] = []
        before, counted, start = Counter(self.skipped), self.lines, offset
        for line in bytewise.lines(stream, offset, number - joined, self.bound):
            if self.end is not None and offset >= self.end:
                break
            if joined and line.data is not None and not line.data.strip():
                joined, offset = False, line.end
                continue
            joined = False
            found, whole = bytewise.objects(line.data) if line.data is not None else ([], False)
            if not line.ended and not (whole and len(found) == 1 and isinstance(found[0], dict)):
                self.skipped[HALF] += 1
                break
            self.lines, self.start = self.lines + 1, offset
            turns += self.counted(line, found, whole)
            offset, number = line.end, line.number
            if offset - start >= limit_bytes or len(turns) >= limit_turns:
                self.position = self.at(stream, offset, number)
                yield Page(tuple(turns), self.position, self.skipped - before, self.lines - counted)
                turns, before, counted, start = [], Counter(self.skipped), self.lines, offset
        if offset != self.position.offset or self.restarted:
            self.position = self.at(stream, offset, number)
            yield Page(tuple(turns), self.position, self.skipped - before, self.lines - counted)

    def entry_at(self, offset: int) -> dict[str, Any]:
        """The object on the line at an offset."""
        stream = bytewise.opened(self.path)
        try:
            line = (
                next(bytewise.lines(stream, bound=self.bound), None)
                if stream.move(offset)
                else None
            )
        finally:
            stream.close()
        found = bytewise.objects(line.data)[0] if line and line.data else []
        return dict_of(found[0]) if found else {}

    def at(self, stream: bytewise.Stream, offset: int, number: int) -> Position:
        return Position(
            bytewise.identity(stream), offset, number, bytewise.tail(stream, offset), self.state()
        )

    def counted(self, line: bytewise.Line, found: list[Any], whole: bool) -> list[Turn]:
        """The turns of a line. A line that gives none is counted under one reason."""
        if line.data is None:
            self.skipped[LONG] += 1
            return []
        given: list[Turn] = []
        reasons: list[str] = [] if whole else [BROKEN]
        for entry in found:
            for result in self.take(entry, line.number) if isinstance(entry, dict) else (UNKNOWN,):
                if isinstance(result, Turn):
                    given.append(result)
                else:
                    reasons.append(result)
        if not whole or not given:
            self.skipped[reasons[0] if reasons else UNKNOWN if found else EMPTY] += 1
        return given


class WholeTranscript(HostTranscript):
    """A transcript that is one value, read whole each time it changed. What was given before is not given again, as long as the
    turns before it are the same."""

    def __init__(self, path: Path, position: Position = START, bound: int = WHOLE) -> None:
        super().__init__(path, position, bound)

    def everything(self, data: bytes) -> Iterable[Turn | str]:
        """All turns, and for each message without one the reason. ValueError if the file is no such transcript."""
        raise NotImplementedError

    def contents(self) -> bytes:
        """What is read and compared; hosts that keep a session in many files put them together."""
        stream = bytewise.opened(self.path)
        try:
            pieces: list[bytes] = []
            while sum(map(len, pieces)) <= self.bound and (piece := stream.read(bytewise.BLOCK)):
                pieces.append(piece)
        finally:
            stream.close()
        return b"".join(pieces)

    def pages(self, limit_bytes: int = PAGE_BYTES, limit_turns: int = PAGE_TURNS) -> Iterator[Page]:
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
            results = list(self.everything(data))
        except (ValueError, RecursionError):
            # Perhaps it is being written at this moment. Nothing is consumed, so it is tried again.
            self.skipped[BROKEN] += 1
            return
        self.lines = len(results)
        self.skipped.update(result for result in results if isinstance(result, str))
        turns = [result for result in results if isinstance(result, Turn)]
        given = known.line if known.tail == _ids(turns[: known.line]) else 0
        self.restarted = "rewritten" if known.line and not given else ""
        while True:
            page, given = (
                tuple(turns[given : given + limit_turns]),
                min(given + limit_turns, len(turns)),
            )
            done = given >= len(turns)
            # Until the last page is written, the file counts as changed.
            self.position = Position(
                identity if done else "",
                len(data) if done else 0,
                given,
                _ids(turns[:given]),
                self.state(),
            )
            yield Page(
                page,
                self.position,
                self.skipped - before if done else {},
                len(results) if done else 0,
            )
            if done:
                return


def _ids(turns: list[Turn]) -> str:
    return hashed(*(turn.id for turn in turns))
