"""Questions about a past state, by a date or by an event that only memory knows."""

from datetime import UTC, datetime

import pytest

from bethink.api import Bethink
from bethink.embed.hashing import HashingEmbedder
from bethink.recall.query import NamedEvent, find_event

OLD, NEW, OTHER = (
    "We use MySQL for the orders database",
    "We moved from MySQL to Postgres for the orders database",
    "Backups of Postgres run every night",
)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (
            "what did we use before we moved to Postgres?",
            NamedEvent("before", "we moved to Postgres"),
        ),
        ("What did we change after the release of 2.0?", NamedEvent("after", "the release of 2")),
        ("how did we do it prior to the migration", NamedEvent("before", "the migration")),
        (
            "what did the team learn since our switch to Go, and why?",
            NamedEvent("after", "our switch to Go"),
        ),
        ("what did I buy before I moved to Rome?", None),
        ("how many days after the meeting did Ada call?", None),
        ("before lunch", None),
        ("look before you leap", None),
        ("", None),
    ],
)
def test_the_event_that_a_question_measures_its_time_by(question, expected):
    assert find_event(question) == expected


@pytest.fixture
def memory(tmp_path):
    clock = [datetime(2026, 1, 10, tzinfo=UTC)]
    with Bethink(
        tmp_path / "memory.db",
        directory=tmp_path,
        embedder=HashingEmbedder(),
        clock=lambda: clock[0],
    ) as memory:
        memory.add(OLD, kind="decision")
        clock[0] = datetime(2026, 4, 2, tzinfo=UTC)
        memory.add(NEW, kind="decision", supersedes=[memory.list()[0].id])
        clock[0] = datetime(2026, 6, 1, tzinfo=UTC)
        memory.add(OTHER)
        clock[0] = datetime(2026, 11, 1, tzinfo=UTC)
        yield memory


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("what do we use for the orders database?", NEW),
        ("what did we use for the orders database in March?", OLD),
        ("what did we use for the orders database before we moved to Postgres?", OLD),
        ("what did we use for the orders database in May 2026?", NEW),
        ("which database did we use before the moon landing?", NEW),
    ],
)
def test_what_held_at_the_time_that_was_asked_about_comes_first(memory, question, best):
    assert memory.search(question).hits[0].memory.content == best


def test_what_came_after_an_event_is_preferred(memory):
    hits = {
        hit.memory.content: hit
        for hit in memory.search(
            "which backups of Postgres did we run after we moved to Postgres?"
        ).hits
    }
    assert hits[OTHER].why["preferred"] > 1


def test_a_time_at_which_nothing_was_known_does_not_hide_everything(memory):
    assert memory.search("what did we use for the orders database in 2019?").hits


def test_the_question_about_the_event_is_not_asked_without_end(memory):
    assert memory.search("before we moved before we moved before we moved").total >= 0
