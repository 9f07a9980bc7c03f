"""Moments as people write them: `30d`, `2 weeks`, `2026-03-01`, `2026-03-01T12:00`, `yesterday`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from recollect.errors import InvalidInput

_SPAN = re.compile(
    r"(?P<number>\d{1,6})\s*(?P<unit>s|sec|second|min|minute|h|hour|d|day|w|week|mo|month|y|year)s?(?:\s+ago)?", re.IGNORECASE
)
_SECONDS = {"s": 1, "sec": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600, "d": 86400, "day": 86400, "w": 604800, "week": 604800,
            "mo": 2_629_800, "month": 2_629_800, "y": 31_557_600, "year": 31_557_600}  # fmt: skip


def moment(text: str, now: datetime, future: bool = False) -> datetime:
    """The moment meant by `text`. A bare span of time lies in the past, or with `future` ahead."""
    plain = text.strip()
    if found := _SPAN.fullmatch(plain):
        seconds = int(found["number"]) * _SECONDS[found["unit"].lower()]
        try:
            return now + timedelta(seconds=seconds if future else -seconds)
        except OverflowError:
            raise InvalidInput(f"'{text}' is too far away.", "Use a shorter span, such as 30d or 2y.") from None
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    named = {"now": now, "today": today, "yesterday": today - timedelta(days=1), "tomorrow": today + timedelta(days=1)}
    if plain.lower() in named:
        return named[plain.lower()]
    try:
        found_moment = datetime.fromisoformat(plain.replace("Z", "+00:00"))
        return found_moment.replace(tzinfo=UTC) if found_moment.tzinfo is None else found_moment.astimezone(UTC)
    except (ValueError, OverflowError):  # the latter where UTC has no such year any more
        raise InvalidInput(f"'{text}' is not a time.", "Write a span (30d, 2w, 6mo), a date (2026-03-01) or a date and time.") from None


def expiry(text: str, now: datetime) -> datetime:
    at = moment(text, now, future=True)
    if at <= now:
        raise InvalidInput(f"The expiry '{text}' is in the past.", "Write a span from now (30d) or a later date.")
    return at
