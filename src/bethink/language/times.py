"""Times as people write them, in options (`30d`, `last monday`) and in questions ("last week").

`moment` reads an option: a moment, or the beginning of the period that it names. `find_period` returns the half-open range
[since, until) in UTC that the temporal words of a question mean. The range is a hint about when a memory was made, not about its
content, so the caller decides whether it filters or only favours. Words that could be a name, a number or a verb ("Monday meeting",
"2024", "it may fail") count only after a word that introduces a time: "on Monday", "in 2024", "since May".

Dates and forms are English; `times.txt` adds the usual words of other languages ("gestern", "la semana pasada"). Days are those of the time zone of `now`; nothing here reads the clock.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bethink.errors import InvalidInput
from bethink.language.detect import find_language, is_english
from bethink.language.pattern import fold_case

WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
NUMBER_WORDS = {
    word: value
    for value, words in enumerate(
        "a/an/one couple/two three four few/five six seven eight nine ten eleven twelve".split(),
        start=1,
    )
    for word in words.split("/")
}
CLOCK_UNITS = {"minute": 60, "hour": 3600}
# First months, in the north; by definition.
SEASONS = {"winter": 12, "spring": 3, "summer": 6, "autumn": 9, "fall": 9}
ORDINALS = {
    word: number
    for number, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth"
        " sixteenth seventeenth eighteenth nineteenth twentieth".split(),
        start=1,
    )
}
# Parts of a month with their first day and the day after the last; 32 is its end.
MONTH_PARTS = {
    **dict.fromkeys(("early", "beginning", "start"), (1, 11)),
    **dict.fromkeys(("mid", "middle"), (10, 21)),
    **dict.fromkeys(("late", "end"), (20, 32)),
}
UNIT_SECONDS = {**CLOCK_UNITS, "day": 86400, "week": 7 * 86400}
UNIT_MONTHS = {"month": 1, "quarter": 3, "year": 12}
RECENT_DAYS = 14  # days
MOST_MOMENTS = 4  # a text with more dates than a question needs is a pasted log or document
TIME_HINT = "Write a span (30min, 2h, 30d, 2 days ago), today, yesterday, last monday, last month, a month (2026-03), a date (2026-03-01 or 1.3.2026, the day first) or a date and time."

# Patterns are texts, compiled when first needed: most commands are given no time.
_SPAN = r"(?P<number>\d{1,6})\s*(?P<unit>s|min|h|d|w|mo|y)(?:ec|econd|ute|our|ay|eek|nth|ear)?s?(?:\s+ago)?"
_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 604800, "mo": 2_629_800, "y": 31_557_600}
# 21.01.2024, 21/01/2024, 2024.01.21, 2024/01/21
NUMERIC_DATE = (
    r"(?:(?:0?[1-9]|[12]\d|3[01])(?P<mark>[./])(?:0?[1-9]|[12]\d|3[01])(?P=mark)(?:19|20)\d\d"
    r"|(?:19|20)\d\d(?P<sign>[./])(?:0?[1-9]|1[0-2])(?P=sign)(?:0?[1-9]|[12]\d|3[01]))"
)
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_YEAR = r"(?:19|20)\d\d"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_COUNT = r"(?:\d{1,4}|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_ORDINAL = rf"(?:{'|'.join(ORDINALS)})"
_SEASON = f"(?:{'|'.join(SEASONS)})"
_WEEKDAY = f"(?:{'|'.join(WEEKDAYS)})"
# The ways to name a time, tried in this order at each place. What a form means is read from its words, so the
# patterns need to say nothing but where a form begins and ends.
FORMS = {
    "ago": rf"(?:{_COUNT}|an?|one|(?:a\s+)?couple(?:\s+of)?)\s+(?:minute|hour|day|week|month|year)s?\s+ago",
    "rolling": rf"(?:last|past|previous)\s+(?:{_COUNT}|few|couple(?:\s+of)?)\s+(?:minute|hour|day|week|month|quarter|year)s",
    "relative": r"(?:the\s+)?(?:(?:this|last|past|previous|next)\s+(?:week|weekend|month|quarter|year)|(?:last|past)\s+hour|past\s+day)",
    "week_of": rf"(?:the\s+)?week\s+of\s+(?:the\s+)?(?:\d{{4}}-\d\d-\d\d|{_DAY}\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?"
    rf"|{_MONTH}\s+(?:the\s+)?{_DAY}(?:,?\s+{_YEAR})?)",
    "month_part": rf"(?:(?:early|mid|late)[\s-]+|(?:the\s+)?(?:beginning|start|middle|end)\s+of\s+){_MONTH}(?:,?\s+(?:of\s+)?{_YEAR})?",
    "season": rf"(?:this|last|past)\s+{_SEASON}|{_SEASON}\s+(?:of\s+)?{_YEAR}",
    "ordinal": rf"(?:the\s+)?{_ORDINAL}\s+of\s+{_MONTH}(?:(?:,\s*|\s+){_YEAR})?",
    "named": rf"(?:this|last|next)\s+{_WEEKDAY}|last\s+{_MONTH}(?!\s+\d)",
    "day": r"(?:the\s+)?day\s+before\s+yesterday|yesterday|today|tomorrow|tonight|this\s+(?:morning|afternoon|evening)",
    "recent": r"(?<!most )(?<!least )recently(?!\s+used)|lately",
    "date": rf"(?:\d{{4}}-\d\d-\d\d|{NUMERIC_DATE})(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?",
    "day_month": rf"{_DAY}\s+(?:of\s+)?{_MONTH}(?:(?:,\s*|\s+){_YEAR})?",
    "month_day": rf"{_MONTH}\s+(?:the\s+)?{_DAY}(?:(?:,\s*|\s+){_YEAR})?",
    "month_year": rf"{_MONTH},?\s+(?:of\s+)?{_YEAR}",
    "year_month": rf"{_YEAR}-(?:0[1-9]|1[0-2])",
    "quarter": rf"q[1-4](?:\s+(?:of\s+)?{_YEAR})?",
    "year": _YEAR,
    "weekday": _WEEKDAY,
    "month": _MONTH,
}
_FORM = "|".join(f"(?P<{name}>{pattern})" for name, pattern in FORMS.items())
# Meaning of the word before a time.
LEADS = {
    word: meaning
    for meaning, words in (
        line.split(": ")
        for line in """
since: since, ever since, starting, starting in, starting from
after: after, later than, newer than
before: before, prior to, earlier than, older than
until: until, till, up to, up until, through, as of
in: in, during, within, throughout, on, from, between
""".strip().splitlines()
    )
    for word in words.split(", ")
}
# Forms that without a year could be a name or a number ("Monday meeting", "2024 rows", "5 may fail").
UNSURE_FORMS = ("weekday", "month", "day_month", "month_day", "quarter", "year")
# Patterns are compiled only for text with a digit or one of these words: most questions contain no date.
TIME_HINTS = (
    *"day week month quarter year hour minute night this recently lately".split(),
    *MONTHS,
    *"spring summer autumn winter".split(),
)
# The guards keep out `today()`, `date.today`, "2024.1", 'yesterday' in quotes, parts of file names, and of what follows a time "yesterday's
# date in Python", "the last quarter of the file", "after 2000 ms". "The week before 9 June" is not all the time before it.
_WORDS = "|".join(sorted(LEADS, key=len, reverse=True))
_LEAD = rf"(?P<lead>(?<!the day )(?<!days )(?<!the week )(?<!weeks )(?<!the weekend )(?:{_WORDS}))(?:\s+(?:the|early|late|about|around))*?\s+"
_OTHER = r"(?:['’]s)?\s+(?:date|timestamp|datetime)s?\b|\s+of\b|\s*(?:%|(?:ms|kb|mb|gb|px)\b)"
_MOMENT = rf"""(?<![\w.@#/\\'"`$-])(?:{_LEAD})?(?:{_FORM})(?![\w@(="`]|'(?!s\b)|[-/.]\w|{_OTHER})"""
_BETWEEN = r"\s*+(?:,|and|or|to|-|–|\.\.)?\s*+"  # two times that belong together

Period = tuple[datetime, datetime | None]
Range = tuple[datetime | None, datetime | None]


# Options


def moment(text: str, now: datetime, future: bool = False) -> datetime:
    """Return the moment meant by `text`, in UTC. A bare span or weekday is past, or future with `future`."""
    try:
        return _read_option(text.strip(), now, future).astimezone(UTC)
    except (ValueError, OverflowError):  # the latter where the calendar or UTC has no such year
        raise InvalidInput(f"'{text}' is not a time.", TIME_HINT) from None


def _read_option(text: str, now: datetime, future: bool) -> datetime:
    if found := re.fullmatch(_SPAN, text, re.IGNORECASE):
        seconds = int(found["number"]) * _SECONDS[found["unit"].lower()]
        return now.astimezone(UTC) + timedelta(seconds=seconds if future else -seconds)
    if text.lower() == "now":
        return now
    found = re.fullmatch(_FORM, text, re.IGNORECASE)
    if found and found.lastgroup != "date":
        words = _split_words(text)
        if found.lastgroup == "ago":  # a moment, as "1 hour ago" is
            return _shift(now, words[-2].removesuffix("s"), -_count(words))
        start, _ = _read_period(str(found.lastgroup), words, _drop_zone(now), future)
        return start.replace(tzinfo=now.tzinfo)
    if numeric := re.match(rf"{NUMERIC_DATE}(?!\d)", text):
        year, month, day = order_date([int(part) for part in re.split("[./]", numeric[0])])
        text = f"{year}-{month:02}-{day:02}{text[numeric.end() :]}"
    exact = datetime.fromisoformat(text.upper())
    return exact if exact.tzinfo else exact.replace(tzinfo=now.tzinfo)


def order_date(numbers: Sequence[int]) -> tuple[int, int, int]:
    """Return year, month and day from the numbers of a date.

    The day comes before the month, as in most countries: 03/04/2024 is 3 April. The order is swapped only if the month would exceed 12.
    """
    year, month, day = numbers if numbers[0] > 31 else numbers[::-1]
    return (year, day, month) if month > 12 else (year, month, day)


def expiry(text: str, now: datetime) -> datetime:
    at = moment(text, now, future=True)
    if at <= now:
        raise InvalidInput(
            f"The expiry '{text}' is in the past.", "Write a span from now (30d) or a later date."
        )
    return at


# Questions


class Moment(NamedTuple):
    """A time expression in a question, with its position and the effect of the word before it."""

    form: str
    words: list[str]
    start: int
    end: int
    lead: str
    joined: bool  # to the one before: "from A to B", "in A and B"


def find_period(
    text: str, now: datetime
) -> tuple[datetime | None, datetime | None, tuple[int, int] | None]:
    """Return the range that the temporal words of a text mean, and their position; each None if absent."""
    lowered = text.lower()
    hinted = any(hint in lowered for hint in TIME_HINTS) or re.search(r"\d", text)
    now = now if now.tzinfo else now.replace(tzinfo=UTC)
    if (abroad := _find_abroad(text)) is not None:
        english, span = abroad
        since, until, _ = find_period(english, now)
        return since, until, span if since or until else None
    moments = _find_moments(text) if hinted else []
    dated = _date_moments(moments, now) if len(moments) <= MOST_MOMENTS else []
    since, until = _merge([found for _, found in dated])
    # A memory cannot have been made in the future.
    if not (since or until) or (since and (since > now or (until and since >= until))):
        return None, None, None
    return since, until, (dated[0][0].start, dated[-1][0].end)


@cache
def _read_abroad() -> dict[str, tuple[re.Pattern[str], dict[str, str]]]:
    """Return for each language the pattern of its words for times, and the English of each."""
    meanings: dict[str, dict[str, str]] = {}
    for line in Path(__file__).with_name("times.txt").read_text("utf-8").splitlines():
        language, _, rest = line.partition(": ")
        english, equals, words = rest.partition(" = ")
        if equals and not line.startswith("# "):
            meanings.setdefault(language, {}).update(dict.fromkeys(words.split(", "), english))
    return {language: (_compile_abroad(own), own) for language, own in meanings.items()}


def _compile_abroad(words: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(words, key=len, reverse=True)
    # A word in letters with spaces between words is no part of another; "昨天" may be anywhere.
    forms = (
        re.escape(word).replace(re.escape("#"), r"\d{1,3}")
        if word[-1] >= "\u0e00"
        else rf"(?<!\w){re.escape(word).replace(re.escape('#'), chr(92) + 'd{1,3}')}(?!\w)"
        for word in longest_first
    )
    return re.compile("|".join(forms))


def _find_abroad(text: str) -> tuple[str, tuple[int, int]] | None:
    """Return the English of the first word for a time in another language, and its position."""
    if is_english(text):
        return None
    known = _read_abroad().get(find_language(text))
    found = known and known[0].search(fold_case(text))
    if not known or not found:
        return None
    form = re.sub(r"\d+", "#", found[0])
    number = re.search(r"\d+", found[0])
    english = known[1].get(form)
    if english is None:
        return None
    return english.replace("#", number[0] if number else ""), found.span()


def _find_moments(text: str) -> list[Moment]:
    """Find the expressions that mean a date, in order. A joined one takes the lead word of the other."""
    found: list[Moment] = []
    for match in re.finditer(_MOMENT, text, re.IGNORECASE):
        form, expression = next((name, match[name]) for name in FORMS if match[name])
        lead = LEADS[" ".join(match["lead"].lower().split())] if match["lead"] else ""
        joined = found and re.fullmatch(_BETWEEN, text[found[-1].end : match.start()]) is not None
        if joined and not lead:
            lead = found[-1].lead
        is_sure = form not in UNSURE_FORMS or (form != "year" and re.search(_YEAR, expression))
        if lead or is_sure:
            found.append(Moment(form, _split_words(expression), *match.span(), lead, bool(joined)))
    return found


def _date_moments(moments: Sequence[Moment], now: datetime) -> list[tuple[Moment, Range]]:
    """Return the range of each moment, read backwards: "between March and May 2023" has its year last."""
    found, seen_from = [], _drop_zone(now)
    for moment in reversed(moments):
        try:
            start, end = _read_period(moment.form, moment.words, seen_from)
            since, until = (
                value and value.replace(tzinfo=now.tzinfo).astimezone(UTC)
                for value in _bound(moment.lead, start, end)
            )
        except (OverflowError, ValueError):  # 31 February, or "9999 years ago"
            continue
        found.append((moment, (since, until)))
        seen_from = start if moment.joined else _drop_zone(now)
    return found[::-1]


def _bound(lead: str, start: datetime, end: datetime | None) -> Range:
    """Apply the lead word to a period. "until March" includes March: a hint should rather let in too much."""
    meant: dict[str, Range] = {
        "since": (start, None),
        "after": (end or start, None),
        "before": (None, start),
        "until": (None, end),
    }
    return meant.get(lead, (start, end))


def _merge(ranges: Sequence[Range]) -> Range:
    """Merge ranges from the start of the first to the end of the last: "since A until B", "in A, B and C"."""
    starts = [since for since, _ in ranges if since]
    ends = [until for _, until in ranges if until]
    return (
        min(starts) if ranges and ranges[0][0] else None,
        max(ends) if ranges and ranges[-1][1] else None,
    )


# Meaning of the forms, seen from a `now` without a time zone


def _read_period(form: str, words: list[str], now: datetime, future: bool = False) -> Period:
    """Return the period that an expression names, open-ended if it lasts until now.

    `form` is a key of `FORMS`. A weekday alone is the latest one before today, or the next one with `future`.
    """
    today = _floor(now, "day")
    which = words[-2] if len(words) > 1 else ""  # "last", "next", "this" …
    if form == "ago":
        unit = which.removesuffix("s")
        then = _shift(now, unit, -_count(words))
        if unit in CLOCK_UNITS:
            return _shift(then, unit, -1), _shift(then, unit, 1)
        return _make_period(_floor(then, unit), unit)
    if form == "recent":
        return _shift(today, "day", -RECENT_DAYS), None
    if form == "day":
        days = {"yesterday": -1, "tomorrow": 1}.get(words[-1], 0)
        days -= 1 if "before" in words else 0  # "the day before yesterday"
        return _make_period(_shift(today, "day", days), "day")
    if form in ("rolling", "relative"):
        return _read_relative(form, words, which, now)
    if form == "season":
        return _read_season(words, now)
    if words[-1] in WEEKDAYS:
        return _read_weekday(words[-1], which, today, future)
    return _read_date(form, words, which, now)


def _read_weekday(name: str, which: str, today: datetime, future: bool) -> Period:
    """Read a weekday: of this week, the next one after today, or else the latest one before."""
    days = WEEKDAYS.index(name) - today.weekday()
    if which == "next" or (future and not which):
        days = (days - 1) % 7 + 1  # from 1 to 7
    elif which != "this":
        days = days % 7 - 7  # from -7 to -1
    return _make_period(_shift(today, "day", days), "day")


def _read_relative(form: str, words: list[str], which: str, now: datetime) -> Period:
    """Read a relative period: "last week" is Monday to Sunday, "past week" the seven days up to now.

    "The last week" means the same as "past week".
    """
    unit = words[-1].removesuffix("s")
    up_to_now = which == "past" or words[:2] == ["the", "last"]
    if form == "rolling" or unit in ("hour", "day") or (up_to_now and unit != "weekend"):
        since = now if unit in CLOCK_UNITS else _floor(now, "day")
        return _shift(since, unit, -_count(words) or -1), None
    count = {"this": 0, "next": 1}.get(which, -1)
    if unit == "weekend":
        saturday = _shift(_floor(now, "week"), "day", 7 * count + 5)
        return saturday, _shift(saturday, "day", 2)
    return _make_period(_shift(_floor(now, unit), unit, count), unit)


def _read_season(words: list[str], now: datetime) -> Period:
    """Read a season of the northern half: with a year, this one, or the last that is over."""
    month = next(SEASONS[word] for word in words if word in SEASONS)
    numbers = [int(word) for word in words if word.isdigit()]
    if numbers:
        return _make_period(datetime(numbers[0], month, 1), "quarter")
    start = datetime(now.year + 1, month, 1)
    while start > now or (words[0] != "this" and _shift(start, "quarter", 1) > now):
        start = _shift(start, "year", -1)
    return _make_period(start, "quarter")


def _read_date(form: str, words: list[str], which: str, now: datetime) -> Period:
    """Return a date, month, quarter or year. Without a year it is the latest one that is not after now.

    "Last March" in March is the one a year ago.
    """
    numbers = [int(word) for word in words if word.isdigit()]
    if form == "week_of":
        by_name = any(word[:3] in MONTHS for word in words)
        named, _ = _read_date("month_day" if by_name else "date", words, which, now)
        return _make_period(_floor(named, "week"), "week")
    if form == "date":
        return _make_period(datetime(*order_date(numbers[:3])), "day")
    if form in ("year", "year_month"):
        year, month = (*numbers, 1)[:2]
        return _make_period(datetime(year, month, 1), form.rpartition("_")[2])
    day, unit = 1, "month"
    if form == "quarter":
        month, unit = numbers.pop(0) * 3 - 2, "quarter"
    else:
        month = next(MONTHS.index(word[:3]) + 1 for word in words if word[:3] in MONTHS)
    if form in ("day_month", "month_day"):
        day, unit = numbers.pop(0), "day"
    elif form == "ordinal":
        day, unit = next(ORDINALS[word] for word in words if word in ORDINALS), "day"
    passed = (month, day) > (now.month, now.day) or (which == "last" and month == now.month)
    year = numbers[0] if numbers else now.year - passed
    if form == "month_part":
        first, after = next(MONTH_PARTS[word] for word in words if word in MONTH_PARTS)
        start, end = _make_period(datetime(year, month, 1), "month")
        return datetime(year, month, first), min(start + timedelta(days=after - 1), end or start)
    return _make_period(datetime(year, month, day), unit)


def _split_words(text: str) -> list[str]:
    return re.findall(r"[a-z]+|\d+", text.lower())


def _count(words: Sequence[str]) -> int:
    return max(int(word) if word.isdigit() else NUMBER_WORDS.get(word, 0) for word in words)


def _drop_zone(now: datetime) -> datetime:
    return now.replace(tzinfo=None, fold=0)


def _floor(moment: datetime, unit: str) -> datetime:
    """Return the start of the unit that contains a moment. Weeks begin on Monday."""
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit in ("week", "weekend"):
        return day - timedelta(days=day.weekday())
    if months := UNIT_MONTHS.get(unit):
        return day.replace(month=(day.month - 1) // months * months + 1, day=1)
    return day


def _shift(start: datetime, unit: str, count: int) -> datetime:
    """Move a moment by a number of units, to the last day of a month that is too short."""
    if unit in UNIT_SECONDS:
        return start + timedelta(seconds=UNIT_SECONDS[unit] * count)
    from calendar import monthrange  # most commands are given no time

    year, month = divmod(start.year * 12 + start.month - 1 + UNIT_MONTHS[unit] * count, 12)
    last = monthrange(year, month + 1)[1]
    return start.replace(year, month + 1, min(start.day, last))


def _make_period(start: datetime, unit: str) -> Period:
    return start, _shift(start, unit, 1)
