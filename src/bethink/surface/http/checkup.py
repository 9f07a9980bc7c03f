"""What takes too long for a page: counting the whole database, and what `bethink doctor` says. Done in the background when
somebody looks and the last answer is old; whoever looks meanwhile gets that one.

`doctor` runs as the command that it is, in a process of its own: it tries programs and reads every page of the database, and
what it says here is then what it says there.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from bethink.errors import BethinkError
from bethink.project import Project

PATIENCE = 0.05  # seconds that the first to look waits: enough for a small database
COUNTED_FOR = 30.0  # seconds for which numbers will do
CHECKED_FOR = 600.0
DOCTOR_WITHIN = 120.0
LONGEST = 500  # characters of what a finding says

Value = TypeVar("Value")
log = logging.getLogger("bethink")


class Background(Generic[Value]):
    """One piece of work whose last result is kept. Never runs twice at once."""

    def __init__(self, lasts: float) -> None:
        self._lasts = lasts
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._running = False
        self._value: Value | None = None
        self._since = 0.0

    @property
    def running(self) -> bool:
        return self._running

    def get(self, work: Callable[[], Value], patience: float = PATIENCE) -> Value | None:
        """The last result; None while there is none. Begins anew where that is old."""
        with self._lock:
            due = self._value is None or time.monotonic() - self._since > self._lasts
            if due and not self._running:
                self._running = True
                self._done.clear()
                threading.Thread(
                    target=self._run, args=(work,), name="bethink-checkup", daemon=True
                ).start()
        if self._value is None:
            self._done.wait(patience)
        return self._value

    def renew(self) -> None:
        """Whoever looks next begins anew; until then the last result stands."""
        self._since = -self._lasts

    def close(self, patience: float) -> bool:
        """Whether nothing runs any more, after waiting for it a while."""
        return not self._running or self._done.wait(patience)

    def _run(self, work: Callable[[], Value]) -> None:
        try:
            value = work()
            with self._lock:
                self._value, self._since = value, time.monotonic()
        except BethinkError as error:
            log.warning("Could not be counted: %s", error.message)
        finally:
            self._running = False
            self._done.set()


class Checked(NamedTuple):
    at: datetime
    findings: tuple[dict[str, Any], ...]


def doctor(home: Project, database: str | None, running: list[subprocess.Popen[bytes]]) -> Checked:
    """What `bethink doctor` says about the server's own project. While it runs it stands in `running`."""
    # -P: the project's own folder must not be where Python looks for us.
    command = [
        sys.executable,
        "-P",
        "-m",
        "bethink",
        "doctor",
        "--json",
        *(["--database", database] if database else []),
    ]
    folder = home.worktree if home.worktree.is_dir() else Path.home()
    try:
        with subprocess.Popen(
            command,
            cwd=folder,
            env=_surroundings(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            running.append(process)
            try:
                said, _ = process.communicate(timeout=DOCTOR_WITHIN)
            finally:
                process.kill()
                running.remove(process)
        findings = [_finding(one) for one in json.loads(said)]
    except (OSError, ValueError, TypeError, KeyError, subprocess.TimeoutExpired) as error:
        log.warning("doctor did not answer: %s", error)
        findings = [
            _finding(
                {
                    "check": "doctor",
                    "ok": False,
                    "message": "did not answer",
                    "fix": "bethink doctor",
                }
            )
        ]
    return Checked(datetime.now(UTC), tuple(findings))


def _surroundings() -> dict[str, str]:
    """The same environment, in which the very code that runs here is found."""
    code = str(Path(__file__).parents[2])
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (code, os.environ.get("PYTHONPATH")))),
    }


def _finding(one: dict[str, Any]) -> dict[str, Any]:
    told = {name: str(one.get(name) or "")[:LONGEST] for name in ("check", "message", "fix")}
    return {
        "check": told["check"],
        "ok": one["ok"] is True,
        "message": told["message"],
        "fix": told["fix"],
    }


class Checkup(NamedTuple):
    """What is known of the server's health."""

    counted: Background[Any]
    checked: Background[Checked]
    running: list[subprocess.Popen[bytes]]  # doctors that are at work

    def close(self, patience: float) -> bool:
        """Ends what runs. False where the database is still being counted."""
        for process in list(self.running):
            process.kill()
        return all([self.counted.close(patience), self.checked.close(patience)])


def new() -> Checkup:
    return Checkup(Background(COUNTED_FOR), Background(CHECKED_FOR), [])
