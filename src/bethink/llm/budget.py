"""How many tokens a day may take, and how many it took: a ceiling that several processes keep together.

One file of JSON lines per day, only ever appended to, each line by one write. A call first writes down what it may take at
most, then reads the file: the lines before its own are what others hold or spent, and if there is no room it takes its
line back. The order of the lines settles who was first, so no lock is needed and a process that dies leaves its hold,
which counts as spent. It is no part of the memory database: a count must last when a transaction is rolled back, and
must not wait for one.

Only counts and purposes stand here, never text. This module knows no provider.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from bethink.llm.base import ModelError, Usage

DAYS_KEPT = 92
DAYS_REPORTED = 30


class CallRecord(NamedTuple):
    """One call of one day, as its lines tell it."""

    held: int = 0
    purpose: str = ""
    usage: Usage | None = None  # None: it has not ended, or its process died
    failure: str = ""

    @property
    def tokens(self) -> int:
        return self.held if self.usage is None else self.usage.tokens

    @property
    def made(self) -> bool:
        """Whether a call was made at all."""
        return self.failure not in ("ceiling", "empty", "given up")


class Hold(NamedTuple):
    """Room that a call has taken. It ends in the file of the day on which it began, also after midnight."""

    day: date
    name: str
    purpose: str


class Count(NamedTuple):
    calls: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class UsageReport(NamedTuple):
    """What `stats` shows. `purposes`, `failures` and `unfinished` are of the last `days` days."""

    ceiling: int
    today: int  # tokens spent or held
    days: int
    tokens: int
    purposes: Mapping[str, Count]
    failures: Mapping[str, int]  # reason → how often
    unfinished: int  # calls whose end was never told; their holds count as spent


class Budget:
    def __init__(
        self, directory: Path, ceiling: int, today: Callable[[], date] = date.today
    ) -> None:
        self.ceiling = ceiling
        self._directory = directory
        self._today = today

    def spent(self, day: date | None = None) -> int:
        return sum(entry.tokens for entry in self._entries(day or self._today()).values())

    def allow(self, purpose: str, estimate: int) -> Hold:
        """Holds room for a call, until `note` tells what it took. Raises ModelError if there is none."""
        hold = Hold(self._today(), os.urandom(8).hex(), purpose)
        taken = self.spent(hold.day)
        if taken + estimate <= self.ceiling:
            self._append(hold.day, {"id": hold.name, "purpose": purpose, "hold": estimate})
            earlier = takewhile(lambda one: one[0] != hold.name, self._entries(hold.day).items())
            taken = sum(entry.tokens for _, entry in earlier)
        if taken + estimate > self.ceiling:
            self.note(hold, Usage(), "ceiling")
            raise ModelError(
                f"Today's ceiling of {self.ceiling:,} tokens is reached: {taken:,} are spent or held, and this question may take {estimate:,}.",
                f"Raise it: `bethink config llm_daily_tokens {max(200_000, 4 * self.ceiling)}`. Until then offline rules do the work.",
                "ceiling",
            )
        return hold

    def note(self, hold: Hold, usage: Usage, failure: str = "") -> None:
        """What became of a held call. If it cannot be written, the hold goes on counting, so nothing is lost."""
        line = {
            "id": hold.name,
            "purpose": hold.purpose,
            "in": usage.input_tokens,
            "out": usage.output_tokens,
            "failure": failure,
        }
        with contextlib.suppress(ModelError):
            self._append(hold.day, line)

    def skip(self, purpose: str, failure: str) -> None:
        """A question for which no call was made."""
        self.note(Hold(self._today(), os.urandom(8).hex(), purpose), Usage(), failure)

    def report(self, days: int = DAYS_REPORTED) -> UsageReport:
        today = self._today()
        past = [self._entries(today - timedelta(days=back)).values() for back in range(days)]
        entries = [entry for day in past for entry in day]
        purposes: dict[str, Count] = {}
        for entry in entries:
            if entry.made:
                usage = entry.usage or Usage(entry.held)
                own = (1, bool(entry.failure), usage.input_tokens, usage.output_tokens)
                sums = zip(purposes.get(entry.purpose, Count()), own, strict=True)
                purposes[entry.purpose] = Count(*map(sum, sums))
        return UsageReport(
            self.ceiling,
            self.spent(today),
            days,
            sum(entry.tokens for entry in entries),
            dict(sorted(purposes.items())),
            Counter(entry.failure for entry in entries if entry.failure),
            sum(entry.usage is None for entry in entries),
        )

    def _file(self, day: date) -> Path:
        return self._directory / f"{day.isoformat()}.jsonl"

    def _append(self, day: date, line: Mapping[str, Any]) -> None:
        path = self._file(day)
        # It begins a line of its own, because the line before may have been torn by a full disk.
        data = b"\n" + json.dumps(line, separators=(",", ":")).encode() + b"\n"
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                fresh = os.fstat(file).st_size == 0
                if os.write(file, data) != len(data):
                    raise OSError("the line was written in part")
            finally:
                os.close(file)
        except OSError as error:
            message = f"The tokens that a model takes cannot be counted in {path}: {error}."
            raise ModelError(message, "Make the folder writable.", "budget") from error
        if fresh:
            self._prune(self._file(day - timedelta(days=DAYS_KEPT)).name)

    def _prune(self, oldest: str) -> None:
        for path in self._directory.glob("????-??-??.jsonl"):
            if path.name < oldest:
                with contextlib.suppress(OSError):
                    path.unlink()

    def _entries(self, day: date) -> dict[str, CallRecord]:
        """The calls of a day in the order of their first lines."""
        entries: dict[str, CallRecord] = {}
        for line in self._lines(day):
            texts = [line.get("id"), line.get("purpose", ""), line.get("failure", "")]
            if not all(isinstance(text, str) for text in texts):
                continue
            name, purpose, failure = texts
            if "hold" in line:
                entries[name] = CallRecord(_number(line["hold"]), purpose)
            else:
                held = entries.get(name, CallRecord()).held
                usage = Usage(_number(line.get("in")), _number(line.get("out")))
                entries[name] = CallRecord(held, purpose, usage, failure)
        return entries

    def _lines(self, day: date) -> Iterator[dict[str, Any]]:
        path = self._file(day)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            message = f"The count of tokens in {path} cannot be read: {error}."
            raise ModelError(message, "Make it readable.", "budget") from error
        for raw in data.splitlines():
            try:
                line = json.loads(raw)
            except (ValueError, RecursionError):
                continue  # torn or meddled with
            if isinstance(line, dict):
                yield line


def _number(value: Any) -> int:
    return value if type(value) is int and 0 <= value <= 100_000_000 else 0
