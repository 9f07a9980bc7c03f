"""Work that takes longer than a request: jobs that somebody starts, and what is counted and checked when somebody looks.

A job reads the project's files, its history or its agents' transcripts, or embeds. One runs at a time, in a thread of its own.
It can be stopped between any two groups of passages and loses nothing by that: each task goes on where it was.

Counting the whole database and `bethink doctor` take too long for a page. They are done in the background when somebody looks
and the last result is old; whoever looks meanwhile gets that one. `doctor` runs as the command that it is, in a process of its
own: it tries programs and reads every page of the database, and what it says here is then what it says there.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from bethink.api import Bethink
from bethink.errors import BethinkError
from bethink.features import conversations, knowledge
from bethink.project import Project
from bethink.surface.http.security import Refusal
from bethink.surface.operations import sync_record

JOBS_KEPT = 50
PATIENCE = 0.05  # seconds that the first to look waits: enough for a small database
COUNTED_FOR = 30.0  # seconds for which numbers will do; set by hand, as the next two
CHECKED_FOR = 600.0
DOCTOR_WITHIN = 120.0
LONGEST_FINDING = 500  # characters

Value = TypeVar("Value")
Progress = Callable[..., None]
Task = Callable[[Bethink, Progress, datetime | None, bool], dict[str, Any]]

log = logging.getLogger("bethink")


# Jobs


class Stopped(Exception):
    """The server ends."""


class Job(NamedTuple):
    id: str
    task: str
    scope: str
    state: str
    started_at: datetime
    ended_at: datetime | None = None
    done: int = 0
    result: dict[str, Any] | None = None
    error: str | None = None


def job_scope(memory: Bethink) -> str:
    """By what a job is known to those who may see it: tenants may call different projects the same."""
    caller = getattr(memory, "caller", None)
    return f"{caller.tenant if caller else ''}/{memory.scope}"


class Jobs:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    def start(
        self, task: str, memory: Bethink, since: datetime | None = None, full: bool = False
    ) -> Job:
        """Begins a job, unless one is under way."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                running = next(reversed(self._jobs.values()))
                raise Refusal(
                    409,
                    f"The job {running.id} ({running.task}) is under way.",
                    f"GET /api/v1/jobs/{running.id} shows how far it is.",
                )
            now = datetime.now(UTC)
            job = Job(secrets.token_hex(6), task, job_scope(memory), "running", now)
            self._jobs[job.id] = job
            while len(self._jobs) > JOBS_KEPT:
                self._jobs.popitem(last=False)
            work = (job.id, TASKS[task], memory, since, full)
            self._thread = threading.Thread(target=self._run, args=work, daemon=True)
            self._thread.start()
        return job

    def _run(
        self, id: str, task: Task, memory: Bethink, since: datetime | None, full: bool
    ) -> None:
        def progress(done: float, *_: Any) -> None:
            if self._stop.is_set():
                raise Stopped
            self._change(id, done=int(done))

        try:
            self._change(id, state="done", result=task(memory, progress, since, full))
        except Stopped:
            self._change(id, state="stopped")
        except BethinkError as error:
            log.warning("The job %s failed: %s", id, error.message)
            self._change(id, state="failed", error=f"{error.message} {error.hint or ''}".strip())
        except Exception:
            log.exception("The job %s failed", id)
            self._change(id, state="failed", error="The server's log says why.")

    def _change(self, id: str, **values: Any) -> None:
        with self._lock:
            if "state" in values:
                values["ended_at"] = datetime.now(UTC)
            if id in self._jobs:
                self._jobs[id] = self._jobs[id]._replace(**values)

    def all(self) -> list[Job]:
        with self._lock:
            return list(reversed(self._jobs.values()))

    def close(self, patience: float) -> bool:
        """Stops what runs. Returns whether it ended in time."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(patience)
            return not self._thread.is_alive()
        return True


def _sync_task(sync: Callable[..., Any]) -> Task:
    return lambda memory, progress, since, full: sync_record(sync(memory, progress=progress))


def _read_history(
    memory: Bethink, progress: Progress, since: datetime | None, full: bool
) -> dict[str, Any]:
    day = since.date().isoformat() if since else None
    return sync_record(knowledge.analyze_history(memory, since=day, progress=progress))


def _backfill(
    memory: Bethink, progress: Progress, since: datetime | None, full: bool
) -> dict[str, Any]:
    total = conversations.Indexed()

    def look(*_: Any) -> None:
        progress(total.transcripts + total.unchanged)

    for pair in conversations.find(None, None, since):
        look()
        total = total.plus(conversations.backfill(memory, [pair], progress=look))
    return {
        "new": total.transcripts,
        "unchanged": total.unchanged,
        "turns": total.turns,
        "ideas": total.ideas,
        "topics": total.topics,
        "sessions": len(total.sessions),
        "failed": len(total.failed),
    }


def _reindex(
    memory: Bethink, progress: Progress, since: datetime | None, full: bool
) -> dict[str, Any]:
    return {"embedded": memory.reindex(full=full, progress=progress)}


TASKS: dict[str, Task] = {
    "index": _sync_task(knowledge.index),
    "map": _sync_task(knowledge.map_code),
    "analyze": _sync_task(knowledge.analyze),
    "history": _read_history,
    "backfill": _backfill,
    "reindex": _reindex,
}


# What is counted and checked


class Background(Generic[Value]):
    """One piece of work whose last result is kept. Never runs twice at once."""

    def __init__(self, lasts: float) -> None:
        self._lasts = lasts
        self._lock = threading.Lock()
        self._done = threading.Event()
        self.running = False
        self._value: Value | None = None
        self._since = 0.0

    def get(self, work: Callable[[], Value], patience: float = PATIENCE) -> Value | None:
        """The last result; None while there is none. Begins anew where that is old."""
        with self._lock:
            due = self._value is None or time.monotonic() - self._since > self._lasts
            if due and not self.running:
                self.running = True
                self._done.clear()
                threading.Thread(target=self._run, args=(work,), daemon=True).start()
        if self._value is None:
            self._done.wait(patience)
        return self._value

    def renew(self) -> None:
        """Whoever looks next begins anew; until then the last result stands."""
        self._since = -self._lasts

    def close(self, patience: float) -> bool:
        """Whether nothing runs any more, after waiting for it a while."""
        return not self.running or self._done.wait(patience)

    def _run(self, work: Callable[[], Value]) -> None:
        try:
            value = work()
            with self._lock:
                self._value, self._since = value, time.monotonic()
        except BethinkError as error:
            log.warning("Could not be counted: %s", error.message)
        finally:
            self.running = False
            self._done.set()


class Checked(NamedTuple):
    at: datetime
    findings: tuple[dict[str, Any], ...]


class Checkup:
    """What is known of the server's health."""

    def __init__(self) -> None:
        self.counted: Background[Any] = Background(COUNTED_FOR)
        self.checked: Background[Checked] = Background(CHECKED_FOR)
        self.doctors: list[subprocess.Popen[bytes]] = []  # that are at work

    @property
    def running(self) -> bool:
        return self.counted.running or self.checked.running

    def renew(self) -> None:
        self.counted.renew()
        self.checked.renew()

    def close(self, patience: float) -> bool:
        """Ends what runs. False where the database is still being counted."""
        for process in list(self.doctors):
            process.kill()
        return all([self.counted.close(patience), self.checked.close(patience)])

    def run_doctor(self, home: Project, database: str | None) -> Checked:
        """What `bethink doctor` says about the server's own project."""
        # -P: the project's own folder must not be where Python looks for us.
        command = [sys.executable, "-P", "-m", "bethink", "doctor", "--json"]
        command += ["--database", database] if database else []
        # The very code that runs here is to be found.
        code = str(Path(__file__).parents[3])
        path = os.pathsep.join(filter(None, (code, os.environ.get("PYTHONPATH"))))
        try:
            with subprocess.Popen(
                command,
                cwd=home.worktree if home.worktree.is_dir() else Path.home(),
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            ) as process:
                self.doctors.append(process)
                try:
                    output, _ = process.communicate(timeout=DOCTOR_WITHIN)
                finally:
                    process.kill()
                    self.doctors.remove(process)
            findings = [_describe_finding(one) for one in json.loads(output)]
        except (OSError, ValueError, TypeError, KeyError, subprocess.TimeoutExpired) as error:
            log.warning("doctor did not answer: %s", error)
            silent = {"check": "doctor", "message": "did not answer", "fix": "bethink doctor"}
            findings = [_describe_finding({**silent, "ok": False})]
        return Checked(datetime.now(UTC), tuple(findings))


def _describe_finding(one: dict[str, Any]) -> dict[str, Any]:
    texts = {
        name: str(one.get(name) or "")[:LONGEST_FINDING] for name in ("check", "message", "fix")
    }
    return {**texts, "ok": one["ok"] is True}
