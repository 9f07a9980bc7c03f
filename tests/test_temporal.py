"""Temporal words, seen from Sunday 15 November 2026, noon UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from case_tables import cases
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.text.when import find_period

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)

RANGES = cases("temporal-ranges")  # text, since, until: ISO dates with "" for an open end
NO_RANGE = cases("temporal-no-range")


def moment(text: str) -> datetime | None:
    return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None


@pytest.mark.parametrize(("text", "since", "until"), RANGES)
def test_temporal_words_become_a_range(text, since, until):
    *found, span = find_period(text, NOW)
    assert found == [moment(since), moment(until)]
    assert span is not None


@pytest.mark.parametrize("text", NO_RANGE)
def test_words_that_do_not_surely_mean_a_date_give_no_range(text):
    assert find_period(text, NOW) == (None, None, None)


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
    span = find_period(text, NOW)[2]
    assert span is not None
    assert text[slice(*span)] == matched


def test_a_day_begins_where_the_user_lives():
    now = datetime(2026, 11, 15, 0, 30, tzinfo=timezone(timedelta(hours=9)))
    assert find_period("today", now)[:2] == (
        datetime(2026, 11, 14, 15, tzinfo=UTC),
        datetime(2026, 11, 15, 15, tzinfo=UTC),
    )


def test_a_clock_without_timezone_is_taken_as_utc():
    assert find_period("yesterday", NOW.replace(tzinfo=None)) == find_period("yesterday", NOW)


def test_a_text_with_many_dates_is_a_document_and_gives_no_range():
    dates = "2024-05-01, 2024-06-01, 2024-07-01, 2024-08-01 and 2024-09-01"
    assert find_period(dates, NOW) == (None, None, None)


def test_the_last_month_of_a_long_month_ends_in_a_short_one():
    now = datetime(2026, 3, 31, 12, tzinfo=UTC)
    assert find_period("past month", now)[0] == datetime(2026, 2, 28, tzinfo=UTC)


WORDS = "and since until before between from to - 31 9999".split()
PHRASES = st.sampled_from([*(text for text, *_ in RANGES), *NO_RANGE, *WORDS, "days ago"])


@settings(max_examples=200, deadline=None)
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
