"""Questions as people ask them, through the front door: what must come first, and what must not be hidden."""

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from case_tables import FOLDER, cases
from memories import texts

from bethink.api import Bethink
from bethink.embed import HashingEmbedder
from bethink.language.words import is_english
from bethink.model import Passage, Source
from bethink.recall.query import find_event

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)  # a Wednesday
TOLD = dict(cases("questions-statements"))
CODE = (FOLDER / "questions-code.txt").read_text("utf-8")


@contextmanager
def opened(folder):
    """A memory and what sets its clock."""
    times = [NOW]
    how = {"embedder": HashingEmbedder(), "clock": lambda: times[-1]}
    with Bethink(folder / "memory.db", directory=folder, **how) as memory:
        yield memory, times.append


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    """For the tests that only ask."""
    with opened(tmp_path_factory.mktemp("asked")) as (memory, set_clock):
        for days, kind, text in cases("questions-told", TOLD):
            set_clock(NOW - timedelta(days=days))
            memory.add(text, kind=kind, dedup=False)
        symbols = {"symbols": ["open_report", "runner", "RetryPolicy"], "path": "tests/runner.py"}
        title = {"summary": "tests/runner.py: open_report", "section": "tests/runner.py"}
        code = Passage(content=CODE, kind="code", metadata=symbols, **title)
        for name in ("tests/runner.py", "tests/other.py"):
            memory.ingest([(Source(name, "repomap"), [code])])
        yield memory


def test_a_question_gets_first_what_it_asks_for_also_when_it_only_points(memory):
    for question, context, first in cases("questions-follow-ups", TOLD):
        assert texts(memory.search(question, context=context))[0] == first
        assert memory.search("why?").query.terms[0].text == "why"
    for question, first in cases("questions-what-is-asked-for", TOLD):
        assert texts(memory.search(question))[0] == first
    for question, title in cases("questions-code-comes-first"):
        best = memory.search(question).hits[0].memory
        assert (best.kind, best.summary) == ("code", title.format(best.path))
    for question, expected in cases("questions-about-a-time", TOLD):
        answer = memory.search(question)
        assert texts(answer) == expected
        assert answer.query.recap and answer.total == len(expected)
        assert bool(answer.hints) == (not expected)


@pytest.mark.parametrize(
    "question",
    [
        "which decisions did we make on Friday?",
        "what did we decide on Friday?",
        "show me the decisions we took last Friday",
        "what did the team agree on last Friday?",
        "what did we settle on on Friday?",
        "what choices did we make on Friday?",
        "Which decisions were made between Thursday and Saturday?",
    ],
)
def test_a_question_for_the_decisions_of_a_day_lists_all_of_them(tmp_path, question):
    decided = [
        "Invoices are numbered per year from now on.",
        "Going with Redis over Memcached.",
        "The API stays on v1 until March.",
        "Switched CI to GitHub Actions.",
        "We won't support IE11.",
    ]
    with opened(tmp_path) as (memory, set_clock):
        set_clock(NOW - timedelta(days=9))
        memory.add("Dropped support for Python 3.9.", dedup=False)
        for minute, text in enumerate(decided):
            set_clock(NOW - timedelta(days=5, minutes=-minute))
            memory.add(text, dedup=False)
        memory.add("The staging database has 4 GB of RAM.", dedup=False)
        set_clock(NOW)
        memory.add("Moved error tracking to Sentry.", dedup=False)
        assert set(texts(memory.search(question))) == set(decided)


def test_where_nothing_was_told_then_what_speaks_of_that_day_is_found(tmp_path):
    with opened(tmp_path) as (memory, _):
        forecast = "Forecast on 25 October was off by an hour"
        memory.add(forecast, kind="fact")
        memory.add("Bread rises", kind="fact")
        answer = memory.search("what happened on 25 October?")
        assert texts(answer) == [forecast] and answer.hints
        assert not memory.search("what happened last week?").hits


def test_a_period_keeps_what_matters_most_where_there_is_more_than_fits(tmp_path):
    with opened(tmp_path) as (memory, _):
        for text, importance in (
            ("Never deploy on a Friday", 9),
            ("Backups run at night", 5),
            *((text, 1) for text in ("Owls sleep by day", "Trains run on rails", "Bread rises")),
        ):
            memory.add(text, kind="fact", importance=importance, dedup=False)
        answer = memory.search("what did we do today?", limit=2)
    assert texts(answer) == ["Never deploy on a Friday", "Backups run at night"]
    assert answer.total == 5


def test_why_tells_what_fits_the_words_best_whichever_way_it_is_asked(cli):
    institute = "no W&B, data must not leave the institute"
    chosen = cli.add(institute, "--kind", "decision")
    left = cli.add("ok. what's left: retrain, and a model card", "--kind", "decision")
    cli.ok("link", left, "contradicts", chosen)
    cli.add("not Celery, these are tills with 2 GB RAM", "--kind", "fact")
    assert cli.json("why", "no W&B")["decision"]["content"] == institute
    assert "2 GB RAM" in cli.ok("why", "why not Celery")
    assert "No decision about purple elephants" in cli("why", "no purple elephants").err


@pytest.mark.parametrize("command", ["search", "recall", "add"])
def test_a_model_for_other_languages_is_offered_once(cli, command):
    offer = "multilingual-e5-small"
    cli.add("We use pnpm, never npm")
    assert offer not in cli(command, "Warum nutzen wir pnpm und nicht npm?").err  # hashing
    cli.monkeypatch.setenv("BETHINK_EMBEDDING", "all-MiniLM-L6-v2")
    assert offer not in cli(command, "why do we use pnpm?").err
    assert offer in cli(command, "Wir nutzen pnpm, weil npm nicht richtig hebt").err
    assert offer not in cli(command, "Wir nutzen pnpm und nie yarn").err


# Past states, by a date or by an event that only memory knows

HELD = dict(cases("questions-moved"))


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("moved")) as (memory, set_clock):
        set_clock(datetime(2026, 1, 10, tzinfo=UTC))
        old = memory.add(HELD["OLD"], kind="decision").id
        set_clock(datetime(2026, 4, 2, tzinfo=UTC))
        memory.add(HELD["NEW"], kind="decision", supersedes=[old])
        set_clock(datetime(2026, 6, 1, tzinfo=UTC))
        memory.add(HELD["OTHER"])
        set_clock(datetime(2026, 11, 1, tzinfo=UTC))
        yield memory


def test_what_held_at_the_time_that_was_asked_about_comes_first_and_no_time_hides_all(moved):
    for question, best in cases("questions-what-held-then", HELD):
        assert texts(moved.search(question))[0] == best
    after = moved.search("which backups of Postgres did we run after we moved to Postgres?")
    (other,) = [hit for hit in after.hits if hit.memory.content == HELD["OTHER"]]
    assert other.why["preferred"] > 1
    assert moved.search("what did we use for the orders database in 2019?").hits
    # The question about the event is not asked without end.
    assert moved.search("before we moved before we moved before we moved").total >= 0
    for question, expected in cases("questions-events"):
        assert find_event(question) == expected, question
    for text, english in cases("questions-english"):
        assert is_english(text) is english, text
