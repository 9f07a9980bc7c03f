"""Moments as people write them."""

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from case_tables import cases
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.errors import InvalidInput
from bethink.text.when import LOCAL, expiry, find_period, moment

NOW = datetime(2026, 3, 20, 12, 30, 15, 250_000, tzinfo=UTC)
MIDNIGHT = datetime(2026, 3, 20, tzinfo=UTC)
SPANS = cases("when-spans", {})


@pytest.mark.parametrize(("text", "seconds"), SPANS)
def test_a_span_lies_in_the_past_or_where_asked_ahead(text, seconds):
    assert moment(text, NOW) == NOW - timedelta(seconds=seconds)
    assert moment(text, NOW, future=True) == NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "meant"),
    cases(
        "when-a-named-day-and-a",
        {
            "MIDNIGHT": MIDNIGHT,
            "NOW": NOW,
            "UTC": UTC,
            "datetime": datetime,
            "timedelta": timedelta,
        },
    ),
)
@pytest.mark.parametrize("future", [False, True])
def test_a_named_day_and_a_date_mean_the_same_both_ways(text, meant, future):
    found = moment(text, NOW, future=future)
    assert found == meant
    assert found.tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "day"),  # 20 March 2026 is a Friday
    cases("when-days-weeks-months-and"),
)
@pytest.mark.parametrize("future", [False, True])
def test_days_weeks_months_and_years_by_name_begin_when_the_calendar_says(text, day, future):
    assert moment(text, NOW, future=future) == datetime.fromisoformat(f"{day}T00:00+00:00")


def test_a_weekday_alone_is_the_one_before_or_where_asked_the_one_after():
    assert (moment("friday", NOW), moment("thursday", NOW)) == (
        MIDNIGHT - timedelta(days=7),
        MIDNIGHT - timedelta(days=1),
    )
    assert (expiry("friday", NOW), expiry("saturday", NOW)) == (
        MIDNIGHT + timedelta(days=7),
        MIDNIGHT + timedelta(days=1),
    )
    assert moment("last month", NOW.replace(month=1)) == datetime(2025, 12, 1, tzinfo=UTC)
    assert moment("next month", NOW.replace(month=12)) == datetime(2027, 1, 1, tzinfo=UTC)


def test_days_are_those_of_the_clock_that_is_given():
    east = NOW.astimezone(timezone(timedelta(hours=14)))
    assert moment("today", east) == datetime(2026, 3, 20, 10, tzinfo=UTC)
    assert moment("2026-03-01T12:00", east) == datetime(2026, 2, 28, 22, tzinfo=UTC)


@pytest.fixture
def berlin(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_local_days_begin_when_they_did_there(berlin):
    after = datetime(2026, 3, 29, 21, 30, tzinfo=UTC).astimezone(
        LOCAL
    )  # 23:30 on the day that lost an hour
    assert after.isoformat() == "2026-03-29T23:30:00+02:00"
    assert moment("today", after) == datetime(2026, 3, 28, 23, tzinfo=UTC)
    assert moment("tomorrow", after) == datetime(2026, 3, 29, 22, tzinfo=UTC)
    assert moment("2026-01-10", after) == datetime(2026, 1, 9, 23, tzinfo=UTC)
    assert moment("1d", after) == datetime(2026, 3, 28, 21, 30, tzinfo=UTC)
    twice = [
        datetime(2026, 10, 25, hour, 30, tzinfo=UTC) for hour in (0, 1)
    ]  # 2:30, before and after clocks went back
    assert [one.astimezone(LOCAL).astimezone(UTC) for one in twice] == twice
    assert find_period("what did we decide yesterday?", after)[:2] == (
        datetime(2026, 3, 27, 23, tzinfo=UTC),
        datetime(2026, 3, 28, 23, tzinfo=UTC),
    )
    assert moment("9999-12-31", after) == datetime(9999, 12, 30, 23, tzinfo=UTC)
    with pytest.raises(InvalidInput, match="is not a time"):
        moment("0001-01-01", after)  # UTC has no such day


NO_TIMES = cases("when-no_times")


@pytest.mark.parametrize(
    "text",
    [*NO_TIMES, "last day", "999999y", "9999-12-31T23:59:59-05:00", "0001-01-01T00:00+05:00"],
)
def test_what_is_no_time_is_refused_in_a_sentence(text):
    with pytest.raises(InvalidInput, match="is not a time") as caught:
        moment(text, NOW)
    assert f"'{text}'" in caught.value.message
    assert "30d" in caught.value.hint


@pytest.mark.parametrize(("text", "seconds"), cases("when-an-expiry-lies-ahead", {}))
def test_an_expiry_lies_ahead(text, seconds):
    assert expiry(text, NOW) == NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["now", "0d", "yesterday", "today", "2026-03-20T12:30", "1999-01-01"]
)
def test_an_expiry_in_the_past_is_refused(text):
    with pytest.raises(InvalidInput, match="is in the past") as caught:
        expiry(text, NOW)
    assert "30d" in caught.value.hint


# Questions, seen from Sunday 15 November 2026, noon UTC

SUNDAY = datetime(2026, 11, 15, 12, tzinfo=UTC)

RANGES = cases("temporal-ranges")  # text, since, until: ISO dates with "" for an open end
NO_RANGE = cases("temporal-no-range")


def at(text: str) -> datetime | None:
    return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None


@pytest.mark.parametrize(("text", "since", "until"), RANGES)
def test_temporal_words_become_a_range(text, since, until):
    *found, span = find_period(text, SUNDAY)
    assert found == [at(since), at(until)]
    assert span is not None


@pytest.mark.parametrize("text", NO_RANGE)
def test_words_that_do_not_surely_mean_a_date_give_no_range(text):
    assert find_period(text, SUNDAY) == (None, None, None)


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
    span = find_period(text, SUNDAY)[2]
    assert span is not None
    assert text[slice(*span)] == matched


def test_a_day_begins_where_the_user_lives():
    now = datetime(2026, 11, 15, 0, 30, tzinfo=timezone(timedelta(hours=9)))
    assert find_period("today", now)[:2] == (
        datetime(2026, 11, 14, 15, tzinfo=UTC),
        datetime(2026, 11, 15, 15, tzinfo=UTC),
    )


def test_a_clock_without_timezone_is_taken_as_utc():
    assert find_period("yesterday", SUNDAY.replace(tzinfo=None)) == find_period("yesterday", SUNDAY)


def test_a_text_with_many_dates_is_a_document_and_gives_no_range():
    dates = "2024-05-01, 2024-06-01, 2024-07-01, 2024-08-01 and 2024-09-01"
    assert find_period(dates, SUNDAY) == (None, None, None)


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
