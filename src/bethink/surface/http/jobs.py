"""Work that takes longer than a request: reading the project's files, its history or its agents' transcripts, embedding.

One job at a time, in a thread of its own. It can be stopped at any moment, at the latest between two groups of passages, and
loses nothing by that: each task goes on where it was.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from bethink.api import Bethink
from bethink.errors import BethinkError
from bethink.features import conversations, knowledge
from bethink.surface.http.problems import Refusal
from bethink.types import path_of

KEPT = 50
Progress = Callable[..., None]
Task = Callable[[Bethink, Progress], dict[str, Any]]

log = logging.getLogger("bethink")


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


def whose(memory: Bethink) -> str:
    """By what a job is known to those who may see it: tenants may call different projects the same."""
    caller = getattr(memory, "caller", None)
    return f"{caller.tenant if caller else ''}/{memory.scope}"


class Jobs:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    def start(self, task: str, memory: Bethink, work: Task) -> Job:
        """Begins a job, unless one is under way."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                running = next(job for job in reversed(self._jobs.values()))
                raise Refusal(
                    409,
                    f"The job {running.id} ({running.task}) is under way.",
                    f"GET /api/v1/jobs/{running.id} shows how far it is.",
                )
            job = Job(secrets.token_hex(6), task, whose(memory), "running", datetime.now(UTC))
            self._jobs[job.id] = job
            while len(self._jobs) > KEPT:
                self._jobs.popitem(last=False)
            self._thread = threading.Thread(
                target=self._run, args=(job.id, memory, work), name="bethink-job", daemon=True
            )
            self._thread.start()
        return job

    def _run(self, id: str, memory: Bethink, work: Task) -> None:
        def progress(done: int, *_: Any) -> None:
            if self._stop.is_set():
                raise Stopped
            self._change(id, done=done)

        try:
            self._change(id, state="done", result=work(memory, progress))
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


def synced(found: Any) -> dict[str, Any]:
    """What a sync did, in numbers and names."""
    return {
        "sources": found.sources,
        "added": [path_of(uri) for uri in found.added],
        "changed": [path_of(uri) for uri in found.changed],
        "moved": [{"from": path_of(old), "to": path_of(new)} for old, new in found.moved],
        "vanished": [path_of(uri) for uri in found.vanished],
        "unchanged": found.unchanged,
        "skipped": [
            {"source": path_of(skipped.uri), "reason": skipped.reason} for skipped in found.skipped
        ],
        "memories": {
            "added": found.memories_added,
            "kept": found.memories_kept,
            "retired": found.memories_retired,
        },
    }


def index(memory: Bethink, progress: Progress) -> dict[str, Any]:
    return synced(knowledge.index(memory, progress=progress))


def map_code(memory: Bethink, progress: Progress) -> dict[str, Any]:
    return synced(knowledge.map_code(memory, progress=progress))


def analyze(memory: Bethink, progress: Progress) -> dict[str, Any]:
    return synced(knowledge.analyze(memory, progress=progress))


def history(memory: Bethink, progress: Progress, since: str | None) -> dict[str, Any]:
    return synced(knowledge.analyze_history(memory, since=since, progress=progress))


def backfill(memory: Bethink, progress: Progress, since: datetime | None) -> dict[str, Any]:
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


def reindex(memory: Bethink, progress: Progress, full: bool) -> dict[str, Any]:
    return {"embedded": memory.reindex(full=full, progress=progress)}
