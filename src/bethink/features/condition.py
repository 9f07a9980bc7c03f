"""How memory is doing, in numbers that take a moment to count: what each agent's conversations brought in, what waits to be
read or embedded, how large the database is and how it grows, what a language model cost.

Only looks. Where it is served, the server counts in the background and shows what was counted last (`surface/http/app.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from bethink.api import Bethink
from bethink.config import mask_password
from bethink.features import language
from bethink.hooks import spool, state
from bethink.llm import DAYS_REPORTED, open_budget

WEEKS = 12
MOST_SESSIONS = 5000


class Capture(NamedTuple):
    """What an agent's conversations brought in."""

    host: str
    sessions: int
    last: datetime | None  # when something was last said in one that is known
    captured: datetime | None  # when a hook last brought something in
    waiting: int  # transcripts that wait to be read
    failures: int


class Week(NamedTuple):
    begin: datetime
    memories: int


class Condition(NamedTuple):
    at: datetime
    memories: int
    forgotten: int
    captures: tuple[Capture, ...]
    unembedded: int
    vectors: Mapping[str, int]  # model → vectors
    database: str
    bytes: int
    bytes_per_memory: int
    growth: tuple[Week, ...]  # oldest first; the last is the week that ends now
    language_model: Mapping[str, Any]


def examine(memory: Bethink) -> Condition:
    """Counts everything of the database. Takes a moment where there is much."""
    overview = memory.stats()
    every = overview.memories + overview.deleted
    return Condition(
        at=memory.clock(),
        memories=overview.memories,
        forgotten=overview.deleted,
        captures=captures(memory),
        unembedded=overview.unembedded,
        vectors=overview.vectors,
        database=str(getattr(memory.store, "path", mask_password(memory.config.database))),
        bytes=overview.database_bytes,
        bytes_per_memory=round(overview.database_bytes / every) if every else 0,
        growth=growth(memory),
        language_model={**language.report_usage(memory), "daily": _list_daily_tokens(memory)},
    )


def _list_daily_tokens(memory: Bethink) -> dict[str, int]:
    """What the language model took on each of the last days, oldest first."""
    budget, today = open_budget(memory.config), memory.clock().date()
    days = (today - timedelta(days=back) for back in range(DAYS_REPORTED - 1, -1, -1))
    return {day.isoformat(): budget.spent(day) for day in days}


def captures(memory: Bethink) -> tuple[Capture, ...]:
    """One line for every agent that anything is known of, those that spoke last first."""
    sessions = memory.store.sessions(memory.every_scope(), MOST_SESSIONS)
    counts = Counter(one.host for one in sessions)
    last: dict[str, datetime] = {}
    for one in sessions:
        if at := one.ended_at or one.started_at:
            last[one.host] = max(at, last.get(one.host, at))
    captured = {host: datetime.fromtimestamp(at, UTC) for host, at in spool.read_captures().items()}
    waiting = Counter(entry.host for entry in spool.list_waiting())
    failed = Counter[str]()
    for failure in state.read_failures():
        failed[failure.host] += failure.count
    found = [
        Capture(host, counts[host], last.get(host), captured.get(host), waiting[host], failed[host])
        for host in sorted({*counts, *captured, *waiting, *failed} - {""})
    ]
    long_ago = datetime.min.replace(tzinfo=UTC)
    return tuple(sorted(found, key=lambda one: one.last or one.captured or long_ago, reverse=True))


def growth(memory: Bethink) -> tuple[Week, ...]:
    """How many memories each of the last weeks brought."""
    now, scopes, week = memory.clock(), memory.every_scope(), timedelta(weeks=1)
    found = []
    for begin in (now - back * week for back in range(WEEKS, 0, -1)):
        wanted = memory.filter(
            scopes=scopes,
            include_superseded=True,
            include_expired=True,
            since=begin,
            until=begin + week,
        )
        found.append(Week(begin, memory.store.count(wanted) if scopes else 0))
    return tuple(found)
