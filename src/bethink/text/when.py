"""Moments as people write them: `30d`, `2 weeks`, `2026-03-01`, `1.3.2026`, `2026-03-01T12:00`, `yesterday`. A day is one of the time
zone of `now`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from bethink.errors import InvalidInput

# Compiled when first needed: most commands are given no time.
_SPAN = r"(?i)(?P<number>\d{1,6})\s*(?P<unit>s|min|h|d|w|mo|y)(?:ec|econd|ute|our|ay|eek|nth|ear)?s?(?:\s+ago)?"
_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 604800, "mo": 2_629_800, "y": 31_557_600}


# 21.01.2024, 21/01/2024, 2024.01.21, 2024/01/21
NUMERIC_DATE = (
    r"(?:(?:0?[1-9]|[12]\d|3[01])(?P<mark>[./])(?:0?[1-9]|[12]\d|3[01])(?P=mark)(?:19|20)\d\d"
    r"|(?:19|20)\d\d(?P<sign>[./])(?:0?[1-9]|1[0-2])(?P=sign)(?:0?[1-9]|[12]\d|3[01]))"
)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
HINT = "Write a span (30d, 2 days ago), today, yesterday, last monday, last month, a month (2026-03), a date (2026-03-01 or 1.3.2026, the day first) or a date and time."


class Local(tzinfo):
    """The time zone of this machine, with the offset that each day had: `astimezone()` alone would give all of them today's."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return _here(moment).utcoffset() if moment else None

    def dst(self, moment: datetime | None) -> timedelta | None:
        return None

    def tzname(self, moment: datetime | None) -> str | None:
        return _here(moment).tzname() if moment else None

    def fromutc(self, moment: datetime) -> datetime:
        there = moment.replace(tzinfo=UTC).astimezone()
        wall = there.replace(tzinfo=self)
        return (
            wall if wall.utcoffset() == there.utcoffset() else wall.replace(fold=1)
        )  # the hour that an autumn night has twice


def _here(moment: datetime) -> datetime:
    wall = moment.replace(tzinfo=None)
    try:
        return wall.astimezone()
    except (
        ValueError,
        OverflowError,
    ):  # at an end of the calendar some versions of Python look beyond it
        return (wall + timedelta(days=2 if wall.year < 5000 else -2)).astimezone()


LOCAL = Local()


def moment(text: str, now: datetime, future: bool = False) -> datetime:
    """The moment meant by `text`, in UTC. A bare span of time lies in the past, or with `future` ahead."""
    plain = text.strip()
    if found := re.fullmatch(_SPAN, plain):
        seconds = int(found["number"]) * _SECONDS[found["unit"].lower()]
        try:
            return now.astimezone(UTC) + timedelta(seconds=seconds if future else -seconds)
        except OverflowError:
            raise InvalidInput(
                f"'{text}' is too far away.", "Use a shorter span, such as 30d or 2y."
            ) from None
    if found := re.match(rf"{NUMERIC_DATE}(?!\d)", plain):
        year, month, day = order_date([int(part) for part in re.split("[./]", found[0])])
        plain = f"{year}-{month:02}-{day:02}{plain[found.end() :]}"
    today = now.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    named = {
        "now": now,
        "today": today,
        "yesterday": today - timedelta(days=1),
        "tomorrow": today + timedelta(days=1),
    }
    if plain.lower() in named:
        return named[plain.lower()].astimezone(UTC)
    try:
        found_moment = _calendar(plain.lower(), today, future) or datetime.fromisoformat(
            plain.replace("Z", "+00:00")
        )
        return (
            found_moment if found_moment.tzinfo else found_moment.replace(tzinfo=now.tzinfo)
        ).astimezone(UTC)
    except (ValueError, OverflowError):  # the latter where UTC has no such year any more
        raise InvalidInput(f"'{text}' is not a time.", HINT) from None


def order_date(numbers: Sequence[int]) -> tuple[int, int, int]:
    """Year, month and day of the numbers of a date. The day stands before the month, as in most countries: 03/04/2024 is 3 April; only
    where it cannot be the month is the second number the day."""
    year, month, day = numbers if numbers[0] > 31 else numbers[::-1]
    return (year, day, month) if month > 12 else (year, month, day)


def _calendar(text: str, today: datetime, future: bool) -> datetime | None:
    """When a month (2026-03) begins, or what "last", "this" or "next" is said of: a weekday, a week, a month, a year. A weekday alone is
    the one before today, or with `future` the one after."""
    if found := re.fullmatch(r"(\d{4})-(\d{2})", text):
        return today.replace(int(found[1]), int(found[2]), 1)
    word, _, name = text.rpartition(" ")
    word, step = word.strip(), {"last": -1, "this": 0, "next": 1}.get(word.strip())
    if name in WEEKDAYS and (not word or step is not None):
        if step == 0:
            return today + timedelta(days=WEEKDAYS.index(name) - today.weekday())
        ahead = step == 1 or (step is None and future)
        days = (WEEKDAYS.index(name) - today.weekday() - 1) % 7 + 1  # to the next one: 1 to 7
        return today + timedelta(days=days if ahead else (days % 7) - 7)
    if step is None or name not in ("week", "month", "year"):
        return None
    if name == "week":
        return today + timedelta(days=7 * step - today.weekday())
    months = today.year * 12 + (today.month - 1 + step if name == "month" else 12 * step)
    return today.replace(months // 12, months % 12 + 1, 1)


def expiry(text: str, now: datetime) -> datetime:
    at = moment(text, now, future=True)
    if at <= now:
        raise InvalidInput(
            f"The expiry '{text}' is in the past.", "Write a span from now (30d) or a later date."
        )
    return at


# Times of a statement as they are given → as they are kept, and how each is read.
STATEMENT_TIMES: dict[str, tuple[str, Callable[..., datetime]]] = {
    "expires": ("expires_at", expiry),
    "valid_from": ("valid_from", moment),
    "valid_to": ("valid_to", moment),
}


def read_times(given: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """The values of a statement or of a change with their times read. What is None was not given."""
    values = {}
    for name, value in given.items():
        field, read = STATEMENT_TIMES.get(name, (name, None))
        if value is not None:
            values[field] = read(value, now) if read else value
    return values
