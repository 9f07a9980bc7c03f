"""Temporal words, seen from Sunday 15 November 2026, noon UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.recall.temporal import temporal

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)

# text → [since, until), as ISO dates with "" for an open end
RANGES = {
    "what did we do today": ("2026-11-15", "2026-11-16"),
    "this morning": ("2026-11-15", "2026-11-16"),
    "what broke yesterday?": ("2026-11-14", "2026-11-15"),
    "yesterday's meeting": ("2026-11-14", "2026-11-15"),
    "the day before yesterday": ("2026-11-13", "2026-11-14"),
    "yesterday and today": ("2026-11-14", "2026-11-16"),
    "since yesterday": ("2026-11-14", ""),
    "this week": ("2026-11-09", "2026-11-16"),
    "What did we discuss last week about X?": ("2026-11-02", "2026-11-09"),
    "last week's decisions": ("2026-11-02", "2026-11-09"),
    "since last week": ("2026-11-02", ""),
    "in the last week": ("2026-11-08", ""),
    "the past month": ("2026-10-15", ""),
    "last weekend": ("2026-11-07", "2026-11-09"),
    "this month": ("2026-11-01", "2026-12-01"),
    "last month": ("2026-10-01", "2026-11-01"),
    "this quarter": ("2026-10-01", "2027-01-01"),
    "last quarter": ("2026-07-01", "2026-10-01"),
    "this year": ("2026-01-01", "2027-01-01"),
    "last year": ("2025-01-01", "2026-01-01"),
    "last Monday": ("2026-11-09", "2026-11-10"),
    "last Sunday": ("2026-11-08", "2026-11-09"),
    "decided on Friday": ("2026-11-13", "2026-11-14"),
    "until Friday": ("", "2026-11-14"),
    "before Friday": ("", "2026-11-13"),
    "from Monday to Friday": ("2026-11-09", "2026-11-14"),
    "past 3 days": ("2026-11-12", ""),
    "the last two weeks": ("2026-11-01", ""),
    "in the last 6 months": ("2026-05-15", ""),
    "last 24 hours": ("2026-11-14T12:00", ""),
    "past hour": ("2026-11-15T11:00", ""),
    "past few days": ("2026-11-10", ""),
    "3 days ago": ("2026-11-12", "2026-11-13"),
    "a week ago": ("2026-11-02", "2026-11-09"),
    "two months ago": ("2026-09-01", "2026-10-01"),
    "2 hours ago": ("2026-11-15T09:00", "2026-11-15T11:00"),
    "more than 2 weeks ago": ("", "2026-11-01"),
    "over a year ago": ("", "2025-11-15"),
    "less than 3 days ago": ("2026-11-12", ""),
    "recently": ("2026-11-01", ""),
    "what did Nate recently watch on October 6, 2022": ("2022-10-06", "2022-10-07"),
    "on 21.01.2024": ("2024-01-21", "2024-01-22"),
    "on 5.3.2024.": ("2024-03-05", "2024-03-06"),
    "since 21/01/2024": ("2024-01-21", ""),
    "on 12/05/2024": ("2024-05-12", "2024-05-13"),  # the day first
    "what broke on 01/21/2024?": ("2024-01-21", "2024-01-22"),
    "before 2024.01.21": ("", "2024-01-21"),
    "since March": ("2026-03-01", ""),
    "since November": ("2026-11-01", ""),
    "since December": ("2025-12-01", ""),
    "in March": ("2026-03-01", "2026-04-01"),
    "what did we agree in march about caching": ("2026-03-01", "2026-04-01"),
    "in may": ("2026-05-01", "2026-06-01"),
    "last November": ("2025-11-01", "2025-12-01"),
    "in May 2023": ("2023-05-01", "2023-06-01"),
    "jan 2024": ("2024-01-01", "2024-02-01"),
    "before April 2025": ("", "2025-04-01"),
    "until March 2025": ("", "2025-04-01"),
    "after March": ("2026-04-01", ""),
    "in 2024": ("2024-01-01", "2025-01-01"),
    "in 2024 Caroline moved": ("2024-01-01", "2025-01-01"),
    "before 2020": ("", "2020-01-01"),
    "in Q3": ("2026-07-01", "2026-10-01"),
    "Q4 2025": ("2025-10-01", "2026-01-01"),
    "in 2024-05": ("2024-05-01", "2024-06-01"),
    "on 2024-05-01": ("2024-05-01", "2024-05-02"),
    "notes 2024/05/01": ("2024-05-01", "2024-05-02"),
    "since 2024-05-01": ("2024-05-01", ""),
    "since 2024-05-01T10:30:00Z": ("2024-05-01", ""),
    "as of 2024-05-01": ("", "2024-05-02"),
    "what happened on 7 May 2023": ("2023-05-07", "2023-05-08"),
    "on May 5th": ("2026-05-05", "2026-05-06"),
    "on May 5, 2024": ("2024-05-05", "2024-05-06"),
    "on the 5th of May": ("2026-05-05", "2026-05-06"),
    "on December 24": ("2025-12-24", "2025-12-25"),
    "on 29 February": ("2024-02-29", "2024-03-01"),
    "after 3 June": ("2026-06-04", ""),
    "between March and May": ("2026-03-01", "2026-06-01"),
    "between March and May 2023": ("2023-03-01", "2023-06-01"),
    "between November and February": ("2025-11-01", "2026-03-01"),
    "from 2024-01-01 to 2024-02-01": ("2024-01-01", "2024-02-02"),
    "from March until May": ("2026-03-01", "2026-06-01"),
    "since March until May": ("2026-03-01", "2026-06-01"),
    "in March, April and May": ("2026-03-01", "2026-06-01"),
    "May 5, 2024 to May 9, 2024": ("2024-05-05", "2024-05-10"),
    "this week, between the lines": ("2026-11-09", "2026-11-16"),
}

NO_RANGE = """
how does caching work
When did Caroline go to the support group?
it may fail
this may fail
May I ask something
in case it may 5 times fail
they march on
we march through the forest
the second attempt
30 seconds later
last commit
last time we met
the last minute change
before the release
since it failed
after the 3 attempts
in 2024 rows
after 2000 ms
since 2000 requests came
more than 2024 entries
version 2024
today's date function
how to get yesterday's date in Python
the timestamp of last month date
date.today()
call today() first
last_week
the 'yesterday' key
"last week"
logs/2024-05-01/app
report-2024-05-01.md
2024-05-01 10:00:00 ERROR could not connect
the last quarter of the file
least recently used cache
recently used files
by Friday
every Monday
on Mondays
Monday meeting
Q3
March of progress
April's opinion
next month
on the Monday before July 24, 2023
the week before 9 June 2023
two days after 2024-05-01
since 2030
on 2030-01-01
2024-13-45
on February 31
9999 years ago
between March
5 may fail
in dec format
""".strip().splitlines()


def moment(text: str) -> datetime | None:
    return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None


@pytest.mark.parametrize("text", RANGES)
def test_temporal_words_become_a_range(text):
    since, until, span = temporal(text, NOW)
    assert (since, until) == tuple(map(moment, RANGES[text]))
    assert span is not None


@pytest.mark.parametrize("text", NO_RANGE)
def test_words_that_do_not_surely_mean_a_date_give_no_range(text):
    assert temporal(text, NOW) == (None, None, None)


@pytest.mark.parametrize(
    ("text", "matched"),
    [
        ("decisions since March about caching", "since March"),
        ("what happened last week?", "last week"),
        ("notes from May 5 to May 9 on tests", "from May 5 to May 9"),
        ("yesterday and today in brief", "yesterday and today"),
    ],
)
def test_the_span_covers_the_temporal_words_and_no_more(text, matched):
    span = temporal(text, NOW)[2]
    assert span is not None
    assert text[slice(*span)] == matched


def test_a_day_begins_where_the_user_lives():
    now = datetime(2026, 11, 15, 0, 30, tzinfo=timezone(timedelta(hours=9)))
    assert temporal("today", now)[:2] == (
        datetime(2026, 11, 14, 15, tzinfo=UTC),
        datetime(2026, 11, 15, 15, tzinfo=UTC),
    )


def test_a_clock_without_timezone_is_taken_as_utc():
    assert temporal("yesterday", NOW.replace(tzinfo=None)) == temporal("yesterday", NOW)


def test_a_text_with_many_dates_is_a_document_and_gives_no_range():
    assert temporal("2024-05-01, 2024-06-01, 2024-07-01, 2024-08-01 and 2024-09-01", NOW) == (
        None,
        None,
        None,
    )


def test_the_last_month_of_a_long_month_ends_in_a_short_one():
    assert temporal("past month", datetime(2026, 3, 31, 12, tzinfo=UTC))[0] == datetime(
        2026, 2, 28, tzinfo=UTC
    )


PHRASES = st.sampled_from(
    [
        *RANGES,
        *NO_RANGE,
        "and",
        "since",
        "until",
        "before",
        "between",
        "from",
        "to",
        "-",
        "31",
        "9999",
        "days ago",
    ]
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(PHRASES | st.text(max_size=8), max_size=6).map(" ".join),
    st.datetimes(timezones=st.none() | st.just(UTC)),
)
def test_any_text_at_any_time_gives_a_proper_range_or_none(text, now):
    since, until, span = temporal(text, now)
    assert (span is None) == (since is None and until is None)
    if since and until:
        assert since < until
    assert all(value is None or value.tzinfo is UTC for value in (since, until))
