"""Moments as people write them."""

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from case_tables import cases
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


def test_spans_days_and_dates_mean_what_people_mean_by_the_clock_that_is_given():
    for text, seconds in cases("when-spans", {}):
        assert moment(text, NOW) == NOW - timedelta(seconds=seconds), text
        assert moment(text, NOW, future=True) == NOW + timedelta(seconds=seconds), text
    for future in [False, True]:
        for text, meant in cases("when-a-named-day-and-a", NAMED):
            found = moment(text, NOW, future=future)
            assert found == meant and found.tzinfo is UTC, text
    for future in [False, True]:
        for text, day in cases("when-days-weeks-months-and"):
            expected = datetime.fromisoformat(f"{day}T00:00+00:00")
            assert moment(text, NOW, future=future) == expected, text
    before = {"friday": 7, "thursday": 1}
    assert {day: (MIDNIGHT - moment(day, NOW)).days for day in before} == before
    ahead = {"friday": 7, "saturday": 1}
    assert {day: (expiry(day, NOW) - MIDNIGHT).days for day in ahead} == ahead
    assert moment("last month", NOW.replace(month=1)) == utc(2025, 12, 1)
    assert moment("next month", NOW.replace(month=12)) == utc(2027, 1, 1)
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


def test_what_is_no_time_or_no_expiry_is_refused_in_a_sentence():
    for text in cases("when-no_times"):
        with pytest.raises(InvalidInput, match="is not a time") as caught:
            moment(text, NOW)
        assert f"'{text}'" in caught.value.message and "30d" in caught.value.hint
    # An expiry lies ahead.
    for text, seconds in cases("when-an-expiry-lies-ahead", {}):
        assert expiry(text, NOW) == NOW + timedelta(seconds=seconds), text
    for text in ("now", "0d", "yesterday", "today", "2026-03-20T12:30", "1999-01-01"):
        with pytest.raises(InvalidInput, match="is in the past") as caught:
            expiry(text, NOW)
        assert "30d" in caught.value.hint


SUNDAY = utc(2026, 11, 15, 12)
NOTHING = (None, None, None)
RANGES = cases("temporal-ranges")  # text, since, until: ISO dates with "" for an open end
NO_RANGE = cases("temporal-no-range")


def test_temporal_words_become_a_range_and_those_that_do_not_surely_mean_a_date_give_none():
    for text, since, until in RANGES:
        *found, span = find_period(text, SUNDAY)
        ends = [
            datetime.fromisoformat(one).replace(tzinfo=UTC) if one else None
            for one in (since, until)
        ]
        assert found == ends and span is not None
    for text in NO_RANGE:
        assert find_period(text, SUNDAY) == NOTHING
    # The span covers the temporal words and no more.
    for text in cases("temporal-spans"):
        start, end = text.index("["), text.index("]") - 1
        assert find_period(text.translate({91: None, 93: None}), SUNDAY)[2] == (start, end)
    # A clock without a timezone is UTC, and many dates are a document.
    assert find_period("yesterday", SUNDAY.replace(tzinfo=None)) == find_period("yesterday", SUNDAY)
    dates = "2024-05-01, 2024-06-01, 2024-07-01, 2024-08-01 and 2024-09-01"
    assert find_period(dates, SUNDAY) == NOTHING
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
