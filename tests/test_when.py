"""Moments as people write them."""

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from case_tables import cases

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
