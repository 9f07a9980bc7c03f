"""The worker: reads the transcripts that hooks noted, with the same code as `bethink backfill FILE`, and ends.

It belongs to nobody: it has a lock, a low priority and a time limit, and starts no download. It may be killed at any moment. A page of a
transcript goes in whole with how far it was read, and an entry leaves the spool only after its transcript was read to the end.
What cannot be read is tried a few times, counted where `doctor` shows it, and set aside; what only has to wait (a locked or broken
database, settings that cannot be read) stays for the next worker.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.errors import (
    BethinkError,
    ConfigError,
    EmbeddingError,
    Overtaken,
    StoreBusy,
    StoreError,
    UsageError,
)
from bethink.hooks import pause, spool
from bethink.hooks.spool import Waiting
from bethink.hooks.state import note_failure

if TYPE_CHECKING:
    from bethink.api import Bethink
    from bethink.config import Config
    from bethink.embed.base import Embedder

ATTEMPTS = 5  # times that an entry is begun without getting any further
SLOW_ATTEMPTS = 2  # the same, if it took too long each time
ROUNDS = 8  # times that a worker goes through entries that have to wait
FIRST_WAIT, LONGEST_WAIT = 0.2, 5.0  # seconds between them
GRACE = 60  # seconds beyond the limit after which a worker that hangs is ended

PAGE_SECONDS = 120.0  # of processor time for one page; the slowest page of real transcripts took 15

DONE, AGAIN, LEFT = "done", "again", "left"


class SlowText(BethinkError):
    """One page took so long that something in it must be hostile to a pattern."""


@contextmanager
def bounded(entry: Waiting) -> Iterator[Callable[[], None]]:
    """Ends the work on a transcript whose page takes too much processor time, so that the others get their turn. The function that it
    gives begins a new page. Patterns look for signals while they work; what does not is ended by the alarm of `main`."""
    if (
        not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield lambda: None
        return

    def give_up(*_: object) -> None:
        raise SlowText(
            f"A page of {entry.transcript} took more than {PAGE_SECONDS:g} seconds of work."
        )

    def begin_page() -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, PAGE_SECONDS)

    before = signal.signal(signal.SIGVTALRM, give_up)
    begin_page()
    try:
        yield begin_page
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def main(words: Sequence[str]) -> int:
    """`bethink hook work --database X`: a process of its own, unless another one is at it."""
    options = dict(zip(words[::2], words[1::2], strict=False))
    database = options.get("--database") or os.environ.get("BETHINK_DATABASE", "")
    if not database or not set(options) <= {"--database", "--lock"} or len(words) % 2:
        raise UsageError(
            "`bethink hook work` needs --database and takes nothing else.",
            "bethink hook work --database PATH",
        )
    spool.yield_to_others()
    seconds = limit()
    if hasattr(signal, "alarm"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, whatever it is stuck in
        signal.alarm(int(seconds) + GRACE)
    lock = options.get("--lock", "")
    try:
        run(database, int(lock) if lock.isdecimal() else None, seconds)
    except (OSError, BethinkError) as error:
        note_failure("", "", str(error))  # nobody reads what this process prints
        raise
    return 0


def limit() -> float:
    from bethink import config

    try:
        return config.load().worker_seconds
    except ConfigError:
        return config.Config().worker_seconds


def run(database: str, lock: int | None = None, seconds: float = 600.0) -> int:
    """Reads what waits for a database; returns how many entries were done with. Another worker that is at it already is left alone."""
    done = 0
    until = time.monotonic() + seconds
    while True:
        with spool.lock(database, lock) as held:
            if not held:
                return done
            number = _drain(database, until)
        done, lock = done + number, None
        # Somebody who saw the lock held relies on this look after it was let go. What stays has been taken in hand, so it is no new one.
        if time.monotonic() >= until or not any(
            path.suffix == spool.NEW for path in spool.entries(database)
        ):
            return done


def _drain(database: str, until: float) -> int:
    """Goes through the entries until none is left, or none can be finished now. Returns how many were."""
    done, wait = 0, FIRST_WAIT
    opened = OpenMemory(database)
    try:
        for _ in range(ROUNDS):
            outcomes: list[str] = []
            for path in spool.entries(database):
                if time.monotonic() >= until:
                    return done + outcomes.count(DONE)
                outcomes.append(_work(opened, path, until))
            done += outcomes.count(DONE)
            if LEFT in outcomes or AGAIN not in outcomes or time.monotonic() + wait >= until:
                return done
            time.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT)
        return done
    finally:
        opened.close()


class OpenMemory:
    """Owns the database and the embedding model for as long as the work lasts. Both are opened when first needed."""

    def __init__(self, database: str) -> None:
        self.database = database
        self.looked_at: set[str] = set()  # projects whose built-in memory was read
        self._first: Bethink | None = None
        self._embedder: Embedder | None = None

    def memory(self, directory: str) -> Bethink:
        """The memory seen from where a session works, or worked: the directory may be gone."""
        from bethink import config
        from bethink.api import Bethink
        from bethink.project import find

        where = Path(directory or "/")
        own = config.load(find(where).root, {"database": self.database})
        own = own._replace(threads=own.threads or 1)  # nobody waits for this work
        if self._first is None:
            self._embedder = _installed(own)
        if self._embedder is None:
            own = own._replace(embedding="none")  # or `Bethink` would fetch a model
        store = self._first.store if self._first else None
        memory = Bethink(
            directory=where, config=own, store=store, embedder=self._embedder, actor="hook"
        )
        self._first = self._first or memory
        return memory

    def close(self) -> None:
        if self._first is not None:
            self._first.close()


def _installed(config: Config) -> Embedder | None:
    """The embedding model, if it is there: a download is for people to start."""
    from bethink.embed import open_embedder
    from bethink.embed.base import WINDOW

    try:
        return open_embedder(config, allow_pull=False, window=WINDOW)
    except EmbeddingError:
        return None


def _work(opened: OpenMemory, path: Path, until: float) -> str:
    """One entry: DONE with, to be tried AGAIN, or LEFT for the next worker."""
    taken = spool.take(path)
    if taken is None:
        return DONE
    path, entry = taken
    try:
        if entry.attempts > ATTEMPTS:
            raise BethinkError(
                f"Reading {entry.transcript or entry.session} was begun {ATTEMPTS} times and never got anywhere."
            )
        with bounded(entry) as begin_page:
            finished = _read(opened, path, entry, until, begin_page)
            if finished and entry.summary:
                _keep_summary(opened, entry)
        if finished:
            path.unlink(missing_ok=True)
        return DONE if finished else LEFT
    except (StoreBusy, Overtaken) as error:
        spool.write(path, entry._replace(attempts=entry.attempts - 1))
        note_failure(entry.host, entry.event, error.message)
        return AGAIN
    except (StoreError, ConfigError) as error:
        spool.write(path, entry._replace(attempts=entry.attempts - 1))
        note_failure(entry.host, entry.event, error.message)
        return LEFT
    except Exception as error:  # noqa: BLE001 - the outermost boundary: one transcript must not keep the others from being read
        if entry.attempts < (SLOW_ATTEMPTS if isinstance(error, SlowText) else ATTEMPTS):
            return AGAIN
        said = (
            error.message if isinstance(error, BethinkError) else f"{type(error).__name__}: {error}"
        )
        note_failure(entry.host, entry.event, said)
        spool.put_aside(path)
        return DONE


def _read(
    opened: OpenMemory, path: Path, entry: Waiting, until: float, begin_page: Callable[[], None]
) -> bool:
    """Reads a transcript on to its end, or as far as the time allows."""
    from bethink.features import conversations

    transcript = _transcript(entry)
    memory = opened.memory(entry.directory)
    for end, silent in _stretches(entry, transcript):
        for embed in (True, False):
            try:
                parts = conversations.read_on(
                    memory, transcript, entry.host, embed=embed, silent=silent, end=end
                )
                for number, _ in enumerate(parts):
                    begin_page()
                    if not number and entry.attempts > 1:
                        spool.write(path, entry._replace(attempts=0))  # it does get further
                    if time.monotonic() >= until:
                        return False
                break
            except EmbeddingError:
                if not embed:
                    raise
                # By words for now: `bethink reindex` makes up for it.
    _captured(memory, entry.host, transcript)
    _builtin(opened, memory, entry)
    return True


def _stretches(entry: Waiting, transcript: Path) -> list[tuple[int | None, bool]]:
    """How far to read, and whether that is to be passed over. What came after the last note is like what came before it only if memory
    was neither paused nor resumed since."""
    if not entry.ends:
        return [(None, entry.host in spool.UNTIMED and pause.has_turned(entry.noted_at))]
    length = spool.size_of(
        str(transcript)
    )  # before the look at pauses, so that nothing said after it counts
    *earlier, (end, silent) = entry.ends
    return [*earlier, (end if pause.has_turned(entry.noted_at) else max(end, length), silent)]


def _transcript(entry: Waiting) -> Path:
    """The file to read. A host that names none is asked for the one of the session."""
    if entry.transcript:
        return Path(entry.transcript)
    from bethink import hosts
    from bethink.errors import NotFound

    found = list(hosts.locate(entry.host, os.environ, Path.home()))
    for part in (
        entry.session,
        entry.session[:8] if entry.host == "gemini" else entry.session,
    ):  # which cuts it short
        for path in found:
            if part in str(path) or path.suffix == ".db":
                return path
    raise NotFound(
        f"There is no transcript of session '{entry.session}' where {entry.host} keeps them.",
        "bethink backfill --all",
    )


def _captured(memory: Bethink, host: str, transcript: Path) -> None:
    from bethink.features.conversations import uri_of

    known = memory.store.find_source(uri_of(transcript))
    left = known[1].metadata.get("position") if known else None
    if left:
        spool.note_capture(host, str(transcript), int(left["offset"]), int(left["line"]))


def _builtin(opened: OpenMemory, memory: Bethink, entry: Waiting) -> None:
    """What the agent remembers by itself may have grown with the conversation."""
    from bethink.features import builtin

    if (
        memory.project.scope in opened.looked_at
        or not entry.directory
        or not memory.project.worktree.is_dir()
        or pause.is_paused(entry.directory)
    ):
        return
    opened.looked_at.add(memory.project.scope)
    try:
        builtin.sync(memory)
    except (OSError, BethinkError) as error:
        note_failure(entry.host, entry.event, str(error))


def _keep_summary(opened: OpenMemory, entry: Waiting) -> None:
    """The summary that a compaction made, as one memory of its session; the next one replaces it. Nothing is derived from it: every
    turn that it sums up is kept already, with what was decided in it, and would count twice. Like them it belongs to the project that
    the session began in, wherever the agent stands."""
    from bethink.features.conversations import uri_of
    from bethink.hosts.speech import shortened, spoken, without_blocks
    from bethink.ingest.redact import redact
    from bethink.types import TRUST, Passage, Source

    memory = opened.memory(entry.directory)
    # Without what Bethink itself had told the session, and without the draft that a host's model wrote first.
    text = shortened(redact(spoken(without_blocks(entry.summary, ("analysis",))[0]).text).text)
    scope = _scope(memory, entry)
    if not text or scope is None:
        return
    passage = Passage(
        text,
        kind="context",
        importance=2.0,
        tags=("compaction",),
        session=entry.session or None,
        metadata={"host": entry.host},
    )
    about = entry.session or uri_of(Path(entry.transcript))
    source = Source(f"compaction:{entry.host}:{about}", "note")
    memory.ingest([(source, [passage])], scope=scope, trust=TRUST["agent"])


def _scope(memory: Bethink, entry: Waiting) -> str | None:
    """Where the turns of a session went, as its transcript was read. None if that cannot be told, or if something of the session was not
    for memory: its summary may tell it."""
    from bethink.features.conversations import uri_of
    from bethink.project import find

    known = memory.store.find_source(uri_of(_transcript(entry)))
    about = known[1].metadata if known else {}
    states = about.get("sessions") or {}
    mine = [states[entry.session]] if entry.session in states else list(states.values())
    scopes = {str(state["scope"]) for state in mine}
    if (
        len(scopes) != 1
        or about.get("position", {}).get("state", {}).get("private")
        or any(state.get("quiet") for state in mine)
    ):
        return None
    scope = scopes.pop()
    session = (
        next(iter(memory.store.sessions((scope,), 1, 0, entry.session)), None)
        if entry.session
        else None
    )
    began = session.started_at.timestamp() if session and session.started_at else 0.0
    paused = (scope, find(Path(entry.directory or "/")).scope, pause.EVERYWHERE)
    return (
        None
        if any(
            one.scope in paused and (one.until is None or one.until >= began)
            for one in pause.read()
        )
        else scope
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
