"""The worker: reads the transcripts that hooks noted, with the code of `bethink backfill`, and ends.

It is detached: it has a lock, a low priority and a time limit, and starts no download. It may be killed at any moment. A page of a
transcript is stored together with its position, and an entry leaves the spool only after its transcript was read to the end. An entry
noted in the middle of a turn stays until the turn is over: if the agent is killed, nothing else notes the rest.
A transcript that cannot be read, or never ends, is tried by a few workers and then counted for `doctor`: it is still there for
`bethink backfill`. If only the time is wrong (a locked or broken database, unreadable settings), the entry stays for the next worker.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from bethink import agents, config, project, system
from bethink.api import Bethink
from bethink.embed import open_embedder
from bethink.errors import (
    BethinkError,
    ConfigError,
    EmbeddingError,
    JudgeError,
    NotFound,
    StoreError,
)
from bethink.features import conversations, reading, share
from bethink.hooks import rules, spool, state
from bethink.hooks.spool import SpoolEntry
from bethink.model import BACKGROUND

TURN = 86_400.0  # seconds for which a turn may go on: set by hand
ATTEMPTS = 3  # times that an entry is begun without getting any further
_SECONDS = 600.0  # after which a worker ends; the next one goes on
_GRACE = 60  # seconds beyond the limit after which a worker that hangs is ended


def main() -> None:
    """Read what waits for the database that the environment names, under the inherited lock."""
    patience = config.Config().model_timeout
    with suppress(BethinkError):
        patience = config.load().model_timeout
    # A language model that is asked right before the end may still answer: its program would outlive a worker that is ended.
    system.end_after(int(_SECONDS + patience) + _GRACE)
    try:
        inherited = system.INHERITED if system.INHERITS_LOCKS else None
        run(os.environ["BETHINK_DATABASE"], inherited)
    except (OSError, BethinkError) as error:  # nobody reads what this process prints
        state.note_failure("", "", str(error))


def run(database: str, lock: int | None = None, seconds: float = _SECONDS) -> int:
    """Read the entries of a database, unless another worker does. Return the number of finished ones."""
    done = 0
    until = time.monotonic() + seconds
    while True:
        with spool.lock(database, lock) as locked:
            if not locked:
                return done
            number = _drain(database, until)
        done, lock = done + number, None
        # A process that found the lock taken relies on this look after its release. Unfinished entries are claimed, so they are not new.
        if time.monotonic() >= until or not any(
            path.suffix == spool.NEW for path in spool.list_entries(database)
        ):
            return done


def _drain(database: str, until: float) -> int:
    """Goes through the entries once. Returns how many are done with; the others stay for the next worker."""
    done = 0
    for path in spool.list_entries(database):
        if time.monotonic() < until:
            done += _work(database, path, until)
    return done


def _open(database: str, directory: str) -> Bethink:
    """The memory seen from where a session works, or worked: the directory may be gone."""
    where, embedder = Path(directory or "/"), None
    own = config.load(project.locate(where).root, {"database": database})
    own = own._replace(threads=own.threads or 1)  # nobody waits for this work
    with suppress(EmbeddingError):  # a download is for people to start
        embedder = open_embedder(own)
    if embedder is None:
        own = own._replace(embedding="none")  # or `Bethink` would fetch a model
    return Bethink(directory=where, config=own, embedder=embedder, actor=BACKGROUND)


def _work(database: str, path: Path, until: float) -> bool:
    """Return True if an entry is done: read to the end with its turn over, or unreadable."""
    taken = spool.take(path)
    if taken is None:
        return True
    path, entry = taken
    try:
        if entry.attempts > ATTEMPTS:
            raise BethinkError(f"It was begun {ATTEMPTS} times and never got anywhere.")
        with _open(database, entry.directory) as memory:
            if entry.event == spool.SHARED_EVENT:
                if share.has_changed(memory.project.worktree):
                    share.read_shared(memory)
            elif not _read(memory, path, entry, until):
                return False
            # Memories from before the project had texts in another language.
            memory.complete_languages(
                memory.scopes, most=None, goes_on=lambda: time.monotonic() < until
            )
            with suppress(JudgeError):  # the index of rules waits for a judge
                rules.refresh(memory)
            if memory.config.llm:
                ended = [entry.session] if entry.event == "session-end" else []
                reading.read_ended(memory, ended, lambda: time.monotonic() < until)
        if _may_go_on(entry):
            spool.write(path, entry._replace(attempts=0))
            return False
        path.unlink(missing_ok=True)
        return True
    except (StoreError, ConfigError) as error:  # what only has to wait
        spool.write(path, entry._replace(attempts=entry.attempts - 1))
        state.note_failure(entry.host, entry.event, error.message)
        return False
    except Exception as error:  # noqa: BLE001 - the outermost boundary: one transcript must not keep the others from being read
        if entry.attempts < ATTEMPTS:
            return False
        path.unlink(missing_ok=True)
        ended_early = entry.event in spool.UNDER_WAY and isinstance(error, NotFound)
        if not ended_early:  # or its agent was ended before it wrote anything that its host keeps
            name = "" if isinstance(error, BethinkError) else f"{type(error).__name__}: "
            unread = f"{entry.transcript or entry.session} was not read: {name}{error}"
            state.note_failure(entry.host, entry.event, unread)
        return True


def _may_go_on(entry: SpoolEntry) -> bool:
    """Return True if more of an entry's turn may follow. After a pause, nothing follows."""
    young = time.time() < entry.noted_at + TURN
    return entry.event in spool.UNDER_WAY and young and not entry.silent


def _read(memory: Bethink, path: Path, entry: SpoolEntry, until: float) -> bool:
    """Read on in a transcript to its end, or as far as the time allows."""
    transcript = _find_transcript(entry)
    # Without times nobody can tell what was said while memory was paused, so all that is unread is passed over.
    silent = entry.silent or (
        not agents.find(entry.host).transcripts.timed and project.has_pause_turned(entry.noted_at)
    )
    for embed in (True, False):
        try:
            parts = conversations.read_on(
                memory,
                transcript,
                entry.host,
                embed=embed,
                silent=silent,
                named=False,
                advised=False,  # a language model reads the session when it is over
                environment={**os.environ, **entry.places},
            )
            for number, _ in enumerate(parts):
                if not number and entry.attempts > 1:
                    spool.write(path, entry._replace(attempts=0))  # it does get further
                if time.monotonic() >= until:
                    return False
            break
        except EmbeddingError:  # by words for now: `bethink reindex` makes up for it
            if not embed:
                raise
    spool.note_capture(entry.host)
    return True


def _find_transcript(entry: SpoolEntry) -> Path:
    """The file to read. A host that names none is asked for the one of the session."""
    if entry.transcript:
        return Path(entry.transcript)
    for path in agents.locate(entry.host, {**os.environ, **entry.places}, Path.home()):
        if entry.session in str(path) or path.suffix == ".db":
            return path
    raise NotFound(
        f"There is no transcript of session '{entry.session}' where {entry.host} keeps them.",
        "bethink backfill --all",
    )


if __name__ == "__main__":
    main()
