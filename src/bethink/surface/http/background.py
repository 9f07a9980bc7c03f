"""What takes too long for a page: counting the whole database, and `bethink doctor`. Both are done in the background when somebody
looks and the last result is old; whoever looks meanwhile gets that one. `doctor` runs as the command that it is, in a process of
its own: it tries programs and reads every page of the database, and what it says here is then what it says there.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from bethink.errors import BethinkError
from bethink.project import Project

PATIENCE = 0.05  # seconds that the first to look waits: enough for a small database
COUNTED_FOR = 30.0  # seconds for which numbers will do; set by hand, as the next two
CHECKED_FOR = 600.0
DOCTOR_WITHIN = 120.0
TIMED = 1000  # searches, the last ones, whose times are told
SILENT = {"check": "doctor", "ok": False, "message": "did not answer", "fix": "bethink doctor"}

Value = TypeVar("Value")

log = logging.getLogger("bethink")


class SearchTimes:
    """How long searches took since the server started."""

    def __init__(self) -> None:
        self.number = 0
        self._seconds: deque[float] = deque(maxlen=TIMED)

    def add(self, seconds: float) -> None:
        self.number += 1
        self._seconds.append(seconds)

    def quantile(self, share: float) -> float | None:
        """The milliseconds within which this share of the last searches was answered."""
        ordered = sorted(self._seconds)
        return round(ordered[int(len(ordered) * share)] * 1000, 1) if ordered else None


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
        self.doctor: subprocess.Popen[bytes] | None = None  # at work

    @property
    def running(self) -> bool:
        return self.counted.running or self.checked.running

    def renew(self) -> None:
        self.counted.renew()
        self.checked.renew()

    def close(self, patience: float) -> bool:
        """Ends what runs. False where the database is still being counted."""
        if self.doctor:
            self.doctor.kill()
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
            ) as self.doctor:
                try:
                    output, _ = self.doctor.communicate(timeout=DOCTOR_WITHIN)
                finally:
                    self.doctor.kill()
            findings = json.loads(output)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            log.warning("doctor did not answer: %s", error)
            findings = [SILENT]
        self.doctor = None
        told = ({**one, "fix": one["fix"] or ""} for one in findings)
        return Checked(datetime.now(UTC), tuple(told))
