"""Temporal words in a question → the half-open range [since, until) in UTC.

A range is a hint about when a memory was made, not about what it tells: "what happened on 7 May 2023" gets the range
of that day although the memory may have been made later. Whether a range filters or only favours is for the caller
to decide. Words that do not surely mean a date ("it may fail", "last commit", "before the release") give no range.

Questions about a past state ("what did we use in March?") ask for what held then, though it has been replaced since; some name their
time by an event that only memory knows ("before we moved to Kubernetes"), which has to be looked up first.

This module knows English only, and neither the clock (`now` is an argument, and its timezone decides when a day
begins) nor anything about memories.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from bethink.text.when import NUMERIC_DATE, WEEKDAYS, order_date
from bethink.types import Filter, Query

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
NUMBERS = {
    word: value
    for value, words in enumerate(
        "a/an/one couple/two three four few/five six seven eight nine ten eleven twelve".split(),
        start=1,
    )
    for word in words.split("/")
}
CLOCK_UNITS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1)}
UNIT_DAYS = {"day": 1, "week": 7}
UNIT_MONTHS = {"month": 1, "quarter": 3, "year": 12}
RECENT = timedelta(days=14)
MOST_MOMENTS = 4  # a text with more dates than a question needs is a pasted log or document

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_YEAR = r"(?:19|20)\d\d"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_COUNT = r"(?:\d{1,4}|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_WEEKDAY = f"(?:{'|'.join(WEEKDAYS)})"

# The ways to name a moment, tried in this order at each place. What a form means is read from its words, so the
# patterns need to say nothing but where a form begins and ends.
FORMS = {
    "ago": rf"(?:{_COUNT}|an?|one|(?:a\s+)?couple(?:\s+of)?)\s+(?:minute|hour|day|week|month|year)s?\s+ago",
    "rolling": rf"(?:last|past|previous)\s+(?:{_COUNT}|few|couple(?:\s+of)?)\s+(?:minute|hour|day|week|month|quarter|year)s",
    "relative": r"(?:the\s+)?(?:(?:this|last|past|previous)\s+(?:week|weekend|month|quarter|year)|(?:last|past)\s+hour|past\s+day)",
    "named": rf"(?:this|last)\s+(?:{_WEEKDAY}|{_MONTH}(?!\s+\d))",
    "day": r"(?:the\s+)?day\s+before\s+yesterday|yesterday|today|tonight|this\s+(?:morning|afternoon|evening)",
    "recent": r"recently|lately",
    "numeric": NUMERIC_DATE,
    "date": r"\d{4}(?:-\d\d-\d\d|/\d\d/\d\d)(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?",
    "day_month": rf"{_DAY}\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?",
    "month_day": rf"{_MONTH}\s+(?:the\s+)?{_DAY}(?:,?\s+{_YEAR})?",
    "month_year": rf"{_MONTH},?\s+(?:of\s+)?{_YEAR}",
    "year_month": rf"{_YEAR}-(?:0[1-9]|1[0-2])",
    "quarter": rf"q[1-4](?:\s+(?:of\s+)?{_YEAR})?",
    "year": _YEAR,
    "weekday": _WEEKDAY,
    "month": _MONTH,
}
# What the word before a moment makes of it. "by Friday" and "every Monday" say nothing about the past.
LEADS = {
    word: meaning
    for meaning, words in (
        line.split(": ")
        for line in """
since: since, ever since, starting, starting in, starting from
after: after, later than, newer than
before: before, prior to, earlier than, older than
until: until, till, up to, up until, through, as of
in: in, during, within, throughout
on: on
from: from
between: between
more: over, more than
less: less than
never: by, due, next, every, each, least, most
""".strip().splitlines()
    )
    for word in words.split(", ")
}
# A form that alone could be a name or a number ("Monday meeting", "2024 rows") needs one of these before it.
_OPENERS = frozenset({"since", "after", "before", "until", "from", "between"})
LEADS_NEEDED = {
    "weekday": _OPENERS | {"on"},
    **dict.fromkeys(("month", "year", "year_month", "quarter"), _OPENERS | {"in"}),
}
# Patterns are compiled only for text in which one of these stands: most questions have no date in them.
HINTS = (
    *"today tonight day week month quarter year hour minute recently lately".split(),
    "this ",
    *MONTHS,
)
# The guards keep out `today()`, `date.today`, "2024.1", 'yesterday' in quotes, and parts of file names.
_GUARD_BEFORE = r"""(?<![\w.@#/\\'"`$-])"""
_GUARD_AFTER = r"""(?![\w@(="`]|'(?!s\b)|[-/.]\w)"""
_MOMENT = f"{_GUARD_BEFORE}(?:{'|'.join(f'(?P<{name}>{pattern})' for name, pattern in FORMS.items())}){_GUARD_AFTER}"
_LEAD = rf"(?<![\w-])({'|'.join(sorted(LEADS, key=len, reverse=True))})(?:\s+(?:the|early|late|about|around))*\s+$"
_LIST = r"\s*(,|and|or|to|until|till|through|-|–|\.\.)\s*"
_OFFSET = (
    rf"\b(?:(?:day|night|morning|evening|week|weekend|month|year|hour|minute)s?|{_WEEKDAY})\s+$"
)
# What follows a form that means something else: "yesterday's date in Python", "the last quarter of the file", "recently used".
_DENIED_ALWAYS = r"(?:['’]s)?\s+(?:date|timestamp|datetime)s?\b"
_DENIED = {
    form: rf"{_DENIED_ALWAYS}|\s+(?:{words})\b"
    for form, words in {
        "weekday": "before|after",
        "relative": "of",
        "rolling": "of",
        "recent": "used",
    }.items()
}
_VERBS = r"\s+(?:be|not|have|also|cause|fail|need|break|happen|through|past|over|into|on|toward)\b"


class Moment(NamedTuple):
    """A date expression where it stands in the text, with the word before it that says how it is meant."""

    form: str
    words: tuple[str, ...]
    start: int
    end: int
    lead: str
    range_end: bool = False  # the second half of "from A to B" or "between A and B"


Period = tuple[datetime, datetime | None]
Range = tuple[datetime | None, datetime | None]


def temporal(
    text: str, now: datetime
) -> tuple[datetime | None, datetime | None, tuple[int, int] | None]:
    """The range that the temporal words of a text surely mean, and where they stand; three times None if there are none."""
    lowered = text.lower()
    if not any(hint in lowered for hint in HINTS) and not any(
        character.isdigit() for character in text
    ):
        return None, None, None
    if now.tzinfo is None:
        now = now.replace(tzinfo=UTC)
    moments = _moments(text)
    dated = _ranges(moments, now) if len(moments) <= MOST_MOMENTS else []
    since, until = _merge([found for _, found in dated])
    # What lies wholly ahead of now cannot be when a memory was made.
    if not (since or until) or (since and (since > now or (until and since >= until))):
        return None, None, None
    return since, until, (dated[0][0].start, dated[-1][0].end)


def _moments(text: str) -> list[Moment]:
    """The expressions that mean a date where they stand, in order."""
    found: list[Moment] = []
    for match in re.finditer(_MOMENT, text, re.IGNORECASE):
        moment = _read_moment(text, match, found[-1] if found else None)
        if moment is not None:
            found.append(moment)
    # "what did he recently watch, on 6 October 2022"
    found = [one for one in found if one.form != "recent"] or found
    # A "between" without its second half is about something other than dates.
    continued = {place for place, follower in enumerate(found[1:]) if follower.range_end}
    return [
        one
        for place, one in enumerate(found)
        if place in continued or one.range_end or one.lead != "between"
    ]


def _read_moment(text: str, match: re.Match[str], previous: Moment | None) -> Moment | None:
    """A date expression with the word that leads it, its own or that of the one it is listed with; None if it means no date."""
    lead, start = _lead(text, match.start())
    link, opened = "", False
    if previous and (joined := re.fullmatch(_LIST, text[previous.end : match.start()], re.I)):
        link, opened = joined[1], previous.lead in ("from", "between")
        if opened or not lead:  # "in March and May", "from March until May"
            lead, start = previous.lead, match.start()
    before, after = text[max(0, start - 12) : start], text[match.end() : match.end() + 24]
    if lead in ("before", "after") and re.search(_OFFSET, before, re.I):
        return None  # "the week before 9 June" is not all the time before it
    form = str(match.lastgroup)
    if lead == "never" or not _means_date(form, match.group(), lead, after):
        return None
    words = tuple(re.findall(r"[a-z]+|\d+", match.group().lower()))
    range_end = opened or link not in ("", ",", "and", "or")
    return Moment(form, words, start, match.end(), lead, range_end)


def _lead(text: str, start: int) -> tuple[str, int]:
    """The meaning of the word before a place, and where that word begins."""
    before = text[max(0, start - 40) : start]
    match = re.search(_LEAD, before, re.IGNORECASE)
    if not match:
        return "", start
    return LEADS[" ".join(match[1].lower().split())], start - len(before) + match.start()


def _means_date(form: str, matched: str, lead: str, after: str) -> bool:
    """Whether a form is a date where it stands, rather than a name, a number, a verb or the subject of the question."""
    has_year = re.search(_YEAR, matched) is not None
    named_quarter = form == "quarter" and has_year
    if lead not in LEADS_NEEDED.get(form, (lead,)) and not named_quarter:
        return False
    if re.match(_DENIED.get(form, _DENIED_ALWAYS), after) or (lead == "less" and form != "ago"):
        return False
    if form == "date" and ":" in matched:
        return bool(lead)  # without a word before it, a time stamp is the start of a log line
    if form == "day":
        return matched.lower() != "today" or not after.startswith(("'", "’"))
    if form == "year":
        return not _counts_things(after)
    if form in ("month", "named", "day_month", "month_day") and not has_year:
        return _is_month(form, matched, lead, after)
    return True


def _counts_things(after: str) -> bool:
    """Whether a number is followed by what it counts: "in 2024 rows", "after 2000 ms"."""
    if re.match(r"\s*(?:%|(?:ms|sec|kb|mb|gb|px|percent)\b)", after, re.IGNORECASE):
        return True
    noun = re.match(r"\s+([a-z]+s)\b", after)
    return noun is not None and noun[1] not in ("is", "was", "has", "does", "this", "its", "us")


def _is_month(form: str, matched: str, lead: str, after: str) -> bool:
    """Whether a month's name is one: "may" and "march" are verbs too, "dec" and "mar" are many things."""
    found = re.search(_MONTH, matched, re.IGNORECASE)
    if found is None:
        return True  # a weekday: no other sense
    name = found.group().rstrip(".")
    if form == "month" and after.startswith(("'s", "’s")):  # April's opinion
        return False
    if name[0].isupper():
        return True
    verb = name in ("may", "march")
    if verb and re.match(_VERBS, after):
        return False
    if form in ("named", "month"):
        return form == "month" if verb else len(name) > 3
    return bool(lead)


def _ranges(moments: list[Moment], now: datetime) -> list[tuple[Moment, Range]]:
    """What each moment means, last one first: in "between March and May 2023" the year stands at the end."""
    local, found, anchor = now.replace(tzinfo=None), [], None
    for moment in reversed(moments):
        try:
            start, end = _period(moment, anchor or local)
            since, until = (
                value and value.replace(tzinfo=now.tzinfo).astimezone(UTC)
                for value in _bounds(moment, start, end)
            )
        except (OverflowError, ValueError):  # 31 February, or "9999 years ago"
            continue
        found.append((moment, (since, until)))
        anchor = start if moment.range_end else None
    return found[::-1]


def _bounds(moment: Moment, start: datetime, end: datetime | None) -> Range:
    """A period as its lead word means it. "until March" includes March: a hint should rather let in too much."""
    meant: dict[str, Range] = {
        "since": (start, None),
        "after": (end or start, None),
        "before": (None, start),
        "until": (None, end),
    }
    if moment.form == "ago":
        meant |= {"more": (None, start), "less": (start, None)}
    return meant.get(moment.lead, (start, end))


def _merge(ranges: list[Range]) -> Range:
    """One range of several: "since A … until B" closes it, and otherwise it covers them all."""
    if not ranges:
        return None, None
    lower = [since for since, until in ranges if since and not until]
    upper = [until for since, until in ranges if until and not since]
    if len(lower) == len(upper) == 1 and len(ranges) == 2:
        return lower[0], upper[0]
    starts, ends = [since for since, _ in ranges if since], [until for _, until in ranges if until]
    return (
        min(starts) if len(starts) == len(ranges) else None,
        max(ends) if len(ends) == len(ranges) else None,
    )


def _period(moment: Moment, now: datetime) -> Period:
    """The time a moment names, seen from `now`, in the time zone of `now`."""
    words, today = moment.words, _floor(now, "day")
    if moment.form == "ago":
        return _ago(words, moment.lead, now)
    if moment.form == "rolling":
        return _back(now, words[-1].removesuffix("s"), _number(words[1])), None
    if moment.form == "recent":
        return today - RECENT, None
    if moment.form == "day":
        days = (words[-1] == "yesterday") + ("before" in words)
        return _whole(today - timedelta(days=days), "day")
    if moment.form == "relative":
        return _relative(words, now)
    if moment.form in ("named", "weekday"):
        return _name_period(words, now)
    return _calendar(moment.form, words, now)


def _ago(words: tuple[str, ...], lead: str, now: datetime) -> Period:
    """The whole unit that lies so far back; for hours and minutes, one to either side. "More than" counts from now."""
    unit, count = words[-2].removesuffix("s"), max(_number(word) for word in words[:-2])
    if lead in ("more", "less"):
        return _back(now, unit, count), None
    if unit in CLOCK_UNITS:
        step = CLOCK_UNITS[unit]
        return now - step * (count + 1), now - step * (count - 1)
    return _whole(_floor(_back(now, unit, count), unit), unit)


def _relative(words: tuple[str, ...], now: datetime) -> Period:
    """ "last week" is the one from Monday to Sunday; "past week" and "the last week" are the seven days up to now."""
    which, unit = words[-2:]
    if unit in ("hour", "day") or (
        unit != "weekend" and (which == "past" or words[:2] == ("the", "last"))
    ):
        return _back(now, unit, 1), None
    if unit == "weekend":
        saturday = _floor(now, "week") + timedelta(days=5 if which == "this" else -2)
        return saturday, saturday + timedelta(days=2)
    current = _floor(now, unit)
    return _whole(current if which == "this" else _step(current, unit, -1), unit)


def _name_period(words: tuple[str, ...], now: datetime) -> Period:
    """A weekday or month by name: "last" and no word at all mean one that is past, "this" the one of this week or year."""
    this, name, today = words[0] == "this", words[-1], _floor(now, "day")
    if name in WEEKDAYS:
        ago = today.weekday() - WEEKDAYS.index(name)
        return _whole(today - timedelta(days=ago if this else (ago - 1) % 7 + 1), "day")
    month = _month_number(words)
    year = now.year if this or month < now.month else now.year - 1
    return _whole(datetime(year, month, 1), "month")


def _calendar(form: str, words: tuple[str, ...], now: datetime) -> Period:
    """A date, month, quarter or year; where the year is left out, the latest one not after now."""
    numbers = [int(word) for word in words if word.isdigit()]
    if form in ("date", "numeric"):
        return _whole(datetime(*order_date(numbers[:3])), "day")
    if form == "year":
        return _whole(datetime(numbers[0], 1, 1), "year")
    if form == "year_month":
        return _whole(datetime(numbers[0], numbers[1], 1), "month")
    day, unit = 1, "month"
    if form == "quarter":
        month, unit = numbers.pop(0) * 3 - 2, "quarter"
    else:
        month = _month_number(words)
    if form in ("day_month", "month_day"):
        day, unit = numbers.pop(0), "day"
    year = numbers[0] if numbers else now.year - ((month, day) > (now.month, now.day))
    while not numbers and (month, day) == (2, 29) and year % 4:
        year -= 1
    return _whole(datetime(year, month, day), unit)


def _month_number(words: tuple[str, ...]) -> int:
    return next(MONTHS.index(word[:3]) + 1 for word in words if word[:3] in MONTHS)


def _number(word: str) -> int:
    return int(word) if word.isdigit() else NUMBERS.get(word, 0)


def _floor(moment: datetime, unit: str) -> datetime:
    """Where the unit that holds a moment begins. Weeks begin on Monday."""
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "week":
        return day - timedelta(days=day.weekday())
    if unit in UNIT_MONTHS:
        months = UNIT_MONTHS[unit]
        return day.replace(month=(day.month - 1) // months * months + 1, day=1)
    return day


def _step(start: datetime, unit: str, count: int) -> datetime:
    """The beginning of a unit, moved by so many of them."""
    if unit in UNIT_DAYS:
        return start + timedelta(days=UNIT_DAYS[unit] * count)
    month = start.month - 1 + UNIT_MONTHS[unit] * count
    return start.replace(year=start.year + month // 12, month=month % 12 + 1)


def _whole(start: datetime, unit: str) -> Period:
    return start, _step(start, unit, 1)


def _back(now: datetime, unit: str, count: int) -> datetime:
    """So many units before now. From days on, the whole first day counts: nobody means the time of day."""
    if unit in CLOCK_UNITS:
        return now - CLOCK_UNITS[unit] * count
    today = _floor(now, "day")
    if unit in UNIT_DAYS:
        return today - timedelta(days=UNIT_DAYS[unit] * count)
    first = _step(today.replace(day=1), unit, -count)
    last_day = (_step(first, "month", 1) - timedelta(days=1)).day
    return first.replace(day=min(today.day, last_day))


# Questions about a past state

# Kept as text and compiled when a question has such a word: compiling costs a cold search more than looking.
_SIDES = ("before", "after", "since", "until", "prior to")
_EVENT = r"(?i)\b(?P<side>before|after|since|until|prior to)\s+(?:that\s+)?(?P<event>(?:we|the|our)\s[^?.!,;]{3,120})"
_PAST = r"(?i)\b(?:did|were|had|was)\s+(?:we|our|the (?:team|project|app|service|system))\b|\bwe (?:used to|were using|had)\b"
KNOWN = 0.52  # how well a memory must fit the event to tell its time
INSTANT = timedelta(milliseconds=1)


class NamedEvent(NamedTuple):
    side: str  # before or after
    text: str


def find_event(question: str) -> NamedEvent | None:
    """The event that a question about the work measures its time by, if it names one instead of a date. What happened in
    somebody's life before or after something else is told later as often as not, so only "did we …" is meant."""
    asked = question[:1000]
    if not any(side in asked.lower() for side in _SIDES):
        return None
    found = re.search(_EVENT, asked)
    if found is None or not re.search(_PAST, asked):
        return None
    return NamedEvent(
        "before" if found["side"].lower() in ("before", "until", "prior to") else "after",
        found["event"].strip(),
    )


def apply_event_time(
    query: Query,
    filter: Filter,
    question: str,
    now: datetime,
    when: tuple[NamedEvent, datetime] | None,
) -> tuple[Query, Filter]:
    """The question with the time of its event, and the filter that sees what held at the time it asks about."""
    if when and when[0].side == "after":
        return query._replace(since=query.since or when[1]), filter
    if when:
        query = query._replace(until=query.until or when[1])
    if (
        not query.until
        or query.until >= now
        or filter.as_of is not None
        or filter.include_superseded
    ):
        return query, filter
    if when is not None or re.search(_PAST, question[:1000]):
        return query, filter._replace(as_of=query.until - INSTANT)
    return query, filter
