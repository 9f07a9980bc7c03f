"""Moments as people write them."""

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.app.cli.console import LOCAL
from bethink.errors import InvalidInput
from bethink.language.times import expiry, find_period, moment

NOW = datetime(2026, 3, 20, 12, 30, 15, 250_000, tzinfo=UTC)  # a Friday
MIDNIGHT = datetime(2026, 3, 20, tzinfo=UTC)
DAY = timedelta(days=1)
NAMED = {"MIDNIGHT": MIDNIGHT, "NOW": NOW, "UTC": UTC, "datetime": datetime, "timedelta": timedelta}


def utc(*parts):
    return datetime(*parts, tzinfo=UTC)


SPANS = [
    ("30s", 30),
    ("1sec", 1),
    ("2 seconds", 2),
    ("5min", 300),
    ("1 minute", 60),
    ("6h", 6 * 3600),
    ("2 hours", 7200),
    ("0d", 0),
    ("30d", 30 * 86400),
    ("1 day", 86400),
    ("2w", 14 * 86400),
    ("3 weeks", 21 * 86400),
    ("1mo", 30.4375 * 86400),
    ("2 Months", 60.875 * 86400),
    ("1y", 365.25 * 86400),
    ("  10 YEARS ", 3652.5 * 86400),
    ("7 days ago", 7 * 86400),
]

NAMED_DAY = [
    ("now", NOW),
    ("today", MIDNIGHT),
    ("Yesterday", MIDNIGHT - timedelta(days=1)),
    (" tomorrow ", MIDNIGHT + timedelta(days=1)),
    ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
    ("20260301", datetime(2026, 3, 1, tzinfo=UTC)),
    ("01.03.2026", datetime(2026, 3, 1, tzinfo=UTC)),
    ("1.3.2026", datetime(2026, 3, 1, tzinfo=UTC)),
    ("21/01/2026", datetime(2026, 1, 21, tzinfo=UTC)),
    ("01/21/2026", datetime(2026, 1, 21, tzinfo=UTC)),  # it cannot be another
    ("03/04/2026", datetime(2026, 4, 3, tzinfo=UTC)),  # the day first
    ("2026.03.01", datetime(2026, 3, 1, tzinfo=UTC)),
    ("2026/3/1", datetime(2026, 3, 1, tzinfo=UTC)),
    ("1.3.2026 12:00", datetime(2026, 3, 1, 12, tzinfo=UTC)),
    ("2026-03-01T12:00", datetime(2026, 3, 1, 12, tzinfo=UTC)),
    ("2026-03-01 12:00:05", datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)),
    ("2026-03-01T12:00:00Z", datetime(2026, 3, 1, 12, tzinfo=UTC)),
    ("2026-03-01T12:00:00+02:00", datetime(2026, 3, 1, 10, tzinfo=UTC)),
    ("2026-03-01T00:30:00-05:30", datetime(2026, 3, 1, 6, tzinfo=UTC)),
    ("an hour ago", NOW - timedelta(hours=1)),
    ("a week ago", NOW - timedelta(days=7)),
]

DAYS_WEEKS_MONTHS = [
    ("last monday", "2026-03-16"),
    ("last friday", "2026-03-13"),
    ("Last Sunday", "2026-03-15"),
    ("next friday", "2026-03-27"),
    ("next saturday", "2026-03-21"),
    ("this monday", "2026-03-16"),
    ("this sunday", "2026-03-22"),
    ("last  week", "2026-03-09"),
    ("this week", "2026-03-16"),
    ("next week", "2026-03-23"),
    ("last month", "2026-02-01"),
    ("this month", "2026-03-01"),
    ("next month", "2026-04-01"),
    ("last year", "2025-01-01"),
    ("this year", "2026-01-01"),
    ("next year", "2027-01-01"),
    ("2026-11", "2026-11-01"),
    ("2025-02", "2025-02-01"),
]


@pytest.mark.parametrize(("text", "seconds"), SPANS)
def test_a_span_counts_from_now(text, seconds):
    assert moment(text, NOW) == NOW - timedelta(seconds=seconds)
    assert moment(text, NOW, future=True) == NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize("future", [False, True])
@pytest.mark.parametrize(("text", "meant"), NAMED_DAY)
def test_a_named_day_is_the_same_ahead(text, meant, future):
    found = moment(text, NOW, future=future)
    assert found == meant and found.tzinfo is UTC


@pytest.mark.parametrize("future", [False, True])
@pytest.mark.parametrize(("text", "day"), DAYS_WEEKS_MONTHS)
def test_a_day_begins_at_midnight(text, day, future):
    expected = datetime.fromisoformat(f"{day}T00:00+00:00")
    assert moment(text, NOW, future=future) == expected


@pytest.mark.parametrize(("day", "days"), [("friday", 7), ("thursday", 1)])
def test_a_weekday_is_the_last_one(day, days):
    assert (MIDNIGHT - moment(day, NOW)).days == days


@pytest.mark.parametrize(("day", "days"), [("friday", 7), ("saturday", 1)])
def test_an_expiry_on_a_weekday_is_the_next_one(day, days):
    assert (expiry(day, NOW) - MIDNIGHT).days == days


def test_months_pass_the_end_of_the_year():
    assert moment("last month", NOW.replace(month=1)) == utc(2025, 12, 1)
    assert moment("next month", NOW.replace(month=12)) == utc(2027, 1, 1)


def test_a_day_is_that_of_the_clock():
    east = NOW.astimezone(timezone(timedelta(hours=14)))
    assert moment("today", east) == utc(2026, 3, 20, 10)
    assert moment("2026-03-01T12:00", east) == utc(2026, 2, 28, 22)
    tokyo = datetime(2026, 11, 15, 0, 30, tzinfo=timezone(timedelta(hours=9)))
    assert find_period("today", tokyo)[:2] == (utc(2026, 11, 14, 15), utc(2026, 11, 15, 15))


@pytest.fixture
def berlin(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_local_days_begin_when_they_did_there(berlin):
    after = utc(2026, 3, 29, 21, 30).astimezone(LOCAL)  # 23:30 on the day that lost an hour
    assert after.isoformat() == "2026-03-29T23:30:00+02:00"
    assert moment("today", after) == utc(2026, 3, 28, 23)
    assert moment("tomorrow", after) == utc(2026, 3, 29, 22)
    assert moment("2026-01-10", after) == utc(2026, 1, 9, 23)
    assert moment("1d", after) == utc(2026, 3, 28, 21, 30)
    twice = [utc(2026, 10, 25, hour, 30) for hour in (0, 1)]  # 2:30, before and after it went back
    assert [one.astimezone(LOCAL).astimezone(UTC) for one in twice] == twice
    yesterday = find_period("what did we decide yesterday?", after)[:2]
    assert yesterday == (utc(2026, 3, 27, 23), utc(2026, 3, 28, 23))
    assert moment("9999-12-31", after) == utc(9999, 12, 30, 23)
    with pytest.raises(InvalidInput, match="is not a time"):
        moment("0001-01-01", after)  # UTC has no such day


NO_TIMES = [
    "",
    " ",
    "soon",
    "next",
    "2026-00",
    "30",
    "d",
    "-3d",
    "3.5d",
    "2026-13-01",
    "2026-02-30",
    "31.02.2026",
    "2026.13.01",
    "10 parsecs",
    "1d 2h",
    "0001234d",
    "last day",
    "999999y",
    "9999-12-31T23:59:59-05:00",
    "0001-01-01T00:00+05:00",
]

AN_EXPIRY_LIES_AHEAD = [
    ("30d", 30 * 86400),
    ("1s", 1),
    ("2026-03-21", 11 * 3600 + 29 * 60 + 44.75),
    ("tomorrow", 41384.75),
]


@pytest.mark.parametrize("text", NO_TIMES, ids=lambda text: ascii(text[:20]))
def test_a_text_that_is_no_time_is_refused_with_a_hint(text):
    with pytest.raises(InvalidInput, match="is not a time") as caught:
        moment(text, NOW)
    assert f"'{text}'" in caught.value.message and "30d" in caught.value.hint


@pytest.mark.parametrize(("text", "seconds"), AN_EXPIRY_LIES_AHEAD)
def test_an_expiry_is_in_the_future(text, seconds):
    assert expiry(text, NOW) == NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["now", "0d", "yesterday", "today", "2026-03-20T12:30", "1999-01-01"]
)
def test_an_expiry_in_the_past_is_refused_with_a_hint(text):
    with pytest.raises(InvalidInput, match="is in the past") as caught:
        expiry(text, NOW)
    assert "30d" in caught.value.hint


SUNDAY = utc(2026, 11, 15, 12)
NOTHING = (None, None, None)
RANGES = [
    ("what did we do today", "2026-11-15", "2026-11-16"),
    ("this morning", "2026-11-15", "2026-11-16"),
    ("what broke yesterday?", "2026-11-14", "2026-11-15"),
    ("yesterday's meeting", "2026-11-14", "2026-11-15"),
    ("the day before yesterday", "2026-11-13", "2026-11-14"),
    ("yesterday and today", "2026-11-14", "2026-11-16"),
    ("since yesterday", "2026-11-14", ""),
    ("this week", "2026-11-09", "2026-11-16"),
    ("What did we discuss last week about X?", "2026-11-02", "2026-11-09"),
    ("last week's decisions", "2026-11-02", "2026-11-09"),
    ("since last week", "2026-11-02", ""),
    ("in the last week", "2026-11-08", ""),
    ("the past month", "2026-10-15", ""),
    ("last weekend", "2026-11-07", "2026-11-09"),
    ("this month", "2026-11-01", "2026-12-01"),
    ("last month", "2026-10-01", "2026-11-01"),
    ("this quarter", "2026-10-01", "2027-01-01"),
    ("last quarter", "2026-07-01", "2026-10-01"),
    ("this year", "2026-01-01", "2027-01-01"),
    ("last year", "2025-01-01", "2026-01-01"),
    ("last Monday", "2026-11-09", "2026-11-10"),
    ("last Sunday", "2026-11-08", "2026-11-09"),
    ("decided on Friday", "2026-11-13", "2026-11-14"),
    ("until Friday", "", "2026-11-14"),
    ("before Friday", "", "2026-11-13"),
    ("from Monday to Friday", "2026-11-09", "2026-11-14"),
    ("past 3 days", "2026-11-12", ""),
    ("the last two weeks", "2026-11-01", ""),
    ("in the last 6 months", "2026-05-15", ""),
    ("last 24 hours", "2026-11-14T12:00", ""),
    ("past hour", "2026-11-15T11:00", ""),
    ("past few days", "2026-11-10", ""),
    ("3 days ago", "2026-11-12", "2026-11-13"),
    ("a week ago", "2026-11-02", "2026-11-09"),
    ("two months ago", "2026-09-01", "2026-10-01"),
    ("2 hours ago", "2026-11-15T09:00", "2026-11-15T11:00"),
    ("recently", "2026-11-01", ""),
    ("what did Nate recently watch on October 6, 2022", "2022-10-06", "2022-10-07"),
    ("on 21.01.2024", "2024-01-21", "2024-01-22"),
    ("on 5.3.2024.", "2024-03-05", "2024-03-06"),
    ("since 21/01/2024", "2024-01-21", ""),
    ("on 12/05/2024", "2024-05-12", "2024-05-13"),
    ("what broke on 01/21/2024?", "2024-01-21", "2024-01-22"),
    ("before 2024.01.21", "", "2024-01-21"),
    ("since March", "2026-03-01", ""),
    ("since November", "2026-11-01", ""),
    ("since December", "2025-12-01", ""),
    ("in March", "2026-03-01", "2026-04-01"),
    ("what did we agree in march about caching", "2026-03-01", "2026-04-01"),
    ("in may", "2026-05-01", "2026-06-01"),
    ("last November", "2025-11-01", "2025-12-01"),
    ("in May 2023", "2023-05-01", "2023-06-01"),
    ("jan 2024", "2024-01-01", "2024-02-01"),
    ("before April 2025", "", "2025-04-01"),
    ("until March 2025", "", "2025-04-01"),
    ("after March", "2026-04-01", ""),
    ("in 2024", "2024-01-01", "2025-01-01"),
    ("in 2024 Caroline moved", "2024-01-01", "2025-01-01"),
    ("before 2020", "", "2020-01-01"),
    ("in Q3", "2026-07-01", "2026-10-01"),
    ("Q4 2025", "2025-10-01", "2026-01-01"),
    ("in 2024-05", "2024-05-01", "2024-06-01"),
    ("on 2024-05-01", "2024-05-01", "2024-05-02"),
    ("notes 2024/05/01", "2024-05-01", "2024-05-02"),
    ("since 2024-05-01", "2024-05-01", ""),
    ("since 2024-05-01T10:30:00Z", "2024-05-01", ""),
    ("as of 2024-05-01", "", "2024-05-02"),
    ("what happened on 7 May 2023", "2023-05-07", "2023-05-08"),
    ("on May 5th", "2026-05-05", "2026-05-06"),
    ("on May 5, 2024", "2024-05-05", "2024-05-06"),
    ("on the 5th of May", "2026-05-05", "2026-05-06"),
    ("on December 24", "2025-12-24", "2025-12-25"),
    ("after 3 June", "2026-06-04", ""),
    ("between March and May", "2026-03-01", "2026-06-01"),
    ("between March and May 2023", "2023-03-01", "2023-06-01"),
    ("between November and February", "2025-11-01", "2026-03-01"),
    ("from 2024-01-01 to 2024-02-01", "2024-01-01", "2024-02-02"),
    ("from March until May", "2026-03-01", "2026-06-01"),
    ("since March until May", "2026-03-01", "2026-06-01"),
    ("in March, April and May", "2026-03-01", "2026-06-01"),
    ("May 5, 2024 to May 9, 2024", "2024-05-05", "2024-05-10"),
    ("this week, between the lines", "2026-11-09", "2026-11-16"),
    ("what did we decide yesterday after the standup?", "2026-11-14", "2026-11-15"),
    ("last week before the release", "2026-11-02", "2026-11-09"),
    ("in May 2023 after the launch", "2023-05-01", "2023-06-01"),
    ("over the past weekend", "2026-11-07", "2026-11-09"),
    ("the last weekend", "2026-11-07", "2026-11-09"),
    ("the previous week", "2026-11-02", "2026-11-09"),
    ("since dec 24", "2025-12-24", ""),
    ("on the Monday before July 24, 2023", "2023-07-17", "2023-07-24"),
    ("the week before 9 June 2023", "2023-06-09", "2023-06-10"),
    ("last Friday on 23 January, 2022", "2022-01-21", "2022-01-24"),
    ("on December 1,2023", "2023-12-01", "2023-12-02"),
]  # text, since, until: ISO dates with "" for an open end
NO_RANGE = [
    "how does caching work",
    "When did Caroline go to the support group?",
    "it may fail",
    "this may fail",
    "May I ask something",
    "in case it may 5 times fail",
    "they march on",
    "we march through the forest",
    "the second attempt",
    "30 seconds later",
    "last commit",
    "last time we met",
    "the last minute change",
    "before the release",
    "since it failed",
    "after the 3 attempts",
    "after 2000 ms",
    "more than 2024 entries",
    "version 2024",
    "today's date function",
    "how to get yesterday's date in Python",
    "the timestamp of last month date",
    "date.today()",
    "call today() first",
    "last_week",
    "the 'yesterday' key",
    '"last week"',
    "logs/2024-05-01/app",
    "report-2024-05-01.md",
    "the last quarter of the file",
    "least recently used cache",
    "recently used files",
    "by Friday",
    "every Monday",
    "on Mondays",
    "Monday meeting",
    "Q3",
    "March of progress",
    "April's opinion",
    "next month",
    "since 2030",
    "on 2030-01-01",
    "2024-13-45",
    "on February 31",
    "9999 years ago",
    "5 may fail",
    "today's date in Python",
    "the Monday after the release",
]


TEMPORAL_SPANS = [
    "decisions [since March] about caching",
    "what happened [last week]?",
    "notes [from May 5 to May 9] on tests",
    "[yesterday and today] in brief",
]


def at_midnight(day):
    return datetime.fromisoformat(day).replace(tzinfo=UTC) if day else None


@pytest.mark.parametrize(("text", "since", "until"), RANGES)
def test_temporal_words_become_a_range(text, since, until):
    *found, span = find_period(text, SUNDAY)
    assert found == [at_midnight(since), at_midnight(until)]
    assert span is not None


@pytest.mark.parametrize("text", NO_RANGE)
def test_words_that_do_not_surely_mean_a_date_give_no_range(text):
    assert find_period(text, SUNDAY) == NOTHING


@pytest.mark.parametrize("text", TEMPORAL_SPANS)
def test_the_span_covers_the_temporal_words_alone(text):
    start, end = text.index("["), text.index("]") - 1
    assert find_period(text.translate({91: None, 93: None}), SUNDAY)[2] == (start, end)


def test_a_clock_without_a_timezone_is_utc():
    assert find_period("yesterday", SUNDAY.replace(tzinfo=None)) == find_period("yesterday", SUNDAY)


def test_a_list_of_dates_is_no_range():
    dates = "2024-05-01, 2024-06-01, 2024-07-01, 2024-08-01 and 2024-09-01"
    assert find_period(dates, SUNDAY) == NOTHING


def test_the_last_month_ends_in_a_shorter_one():
    assert find_period("past month", utc(2026, 3, 31, 12))[0] == utc(2026, 2, 28)


WORDS = "and since until before between from to - 31 9999".split()
PHRASES = st.sampled_from([*(text for text, *_ in RANGES), *NO_RANGE, *WORDS, "days ago"])


@settings(max_examples=100)
@given(
    st.lists(PHRASES | st.text(max_size=8), max_size=6).map(" ".join),
    st.datetimes(timezones=st.none() | st.just(UTC)),
)
def test_any_text_at_any_time_gives_a_proper_range_or_none(text, now):
    since, until, span = find_period(text, now)
    assert (span is None) == (since is None and until is None)
    if since and until:
        assert since < until
    assert all(value is None or value.tzinfo is UTC for value in (since, until))
