"""Questions as people ask them, through the front door: what must come first, and what must not be hidden."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from bethink.api import Bethink
from bethink.embed.hashing import HashingEmbedder
from bethink.recall.query import NamedEvent, find_event
from bethink.text import is_english

pytest_plugins = ("cli_runner",)

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)  # a Wednesday
RUNNER = "Our test runner is pytest, because unittest has no fixtures"
CACHE = "We moved the cache from Memcached to Redis because of persistence"
WARM = "The cache must be warm before the first deploy, or the health check fails"
TTL = "The cache keeps an entry for five minutes"
CODE = """tests/runner.py [python] 90 lines
2: def open_report()
9: def runner() which test runner do we use
30: class RetryPolicy
In words: open report, runner, retry policy, cache"""
TOLD = [  # days ago, kind, text
    (40, "decision", "Invoices are kept in MySQL"),
    (9, "decision", RUNNER),
    (8, "gotcha", WARM),
    (1, "decision", CACHE),
    (0, "fact", TTL),
]


@pytest.fixture
def memory(tmp_path):
    clock = [NOW]
    with Bethink(
        tmp_path / "memory.db",
        directory=tmp_path,
        embedder=HashingEmbedder(),
        clock=lambda: clock[0],
    ) as memory:
        for days, kind, text in TOLD:
            clock[0] = NOW - timedelta(days=days)
            memory.add(text, kind=kind, dedup=False)
        clock[0] = NOW
        yield memory


@pytest.fixture
def with_code(memory):
    from bethink.types import Passage, Source

    code = Passage(
        content=CODE,
        kind="code",
        summary="tests/runner.py: open_report",
        section="tests/runner.py",
        metadata={"symbols": ["open_report", "runner", "RetryPolicy"], "path": "tests/runner.py"},
    )
    for name in ("tests/runner.py", "tests/other.py"):
        memory.ingest([(Source(name, "repomap"), [code])])
    return memory


def texts(answer):
    return [hit.memory.content for hit in answer.hits]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("what did we do today?", [TTL]),
        ("What happened yesterday", [CACHE]),
        ("what did we do last week?", [WARM, RUNNER]),
        ("what changed since yesterday?", [TTL, CACHE]),
        ("what did we work on in the last two weeks", [TTL, CACHE, WARM, RUNNER]),
        ("which decisions did we make last week?", [RUNNER]),
        ("what did we do on 09.11.2026?", [RUNNER]),
        ("today", [TTL]),
        ("what did we do in 2019?", []),
    ],
)
def test_a_question_about_a_time_lists_what_was_told_then(with_code, question, expected):
    answer = with_code.search(question)
    assert texts(answer) == expected
    assert answer.query.recap and answer.total == len(expected)
    assert bool(answer.hints) == (not expected)


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("decisions about the cache", CACHE),
        ("gotchas with the cache", WARM),
        ("what did we decide about the cache last week?", CACHE),  # later than asked, not hidden
        ("what did we do about the health check last week?", WARM),
        ("which test runner do we use", RUNNER),
    ],
)
def test_what_is_asked_for_comes_first(with_code, question, first):
    assert texts(with_code.search(question))[0] == first


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("where is the runner defined?", "def runner() which test runner do we use in {}:9"),
        ("which class is the retry policy", "class RetryPolicy in {}:30"),
        ("RetryPolicy", "class RetryPolicy in {}:30"),
        ("open_report", "tests/runner.py: open_report"),
    ],
)
def test_code_comes_first_when_it_is_asked_for_under_the_symbol_that_matched(
    with_code, question, title
):
    best = with_code.search(question).hits[0].memory
    assert (best.kind, best.summary) == ("code", title.format(best.path))


def test_a_period_keeps_what_matters_most_where_there_is_more_than_fits(memory):
    memory.add("Never deploy on a Friday", kind="preference", importance=9)
    for text in ("Owls sleep by day", "Trains run on rails", "Bread rises overnight"):
        memory.add(text, kind="fact", importance=1, dedup=False)
    answer = memory.search("what did we do today?", limit=2)
    assert texts(answer) == ["Never deploy on a Friday", TTL]
    assert answer.total == 5


# Follow-ups


BEFORE = "How long does the cache keep an entry? It keeps it for five minutes."


@pytest.mark.parametrize(
    ("question", "context", "first"),
    [
        ("why?", BEFORE, TTL),
        ("And the other one?", f"{BEFORE} NOT (Redis", TTL),
        ("what about the second?", BEFORE, TTL),
        ("which test runner do we use?", BEFORE, RUNNER),  # names what it asks about
        ("and the runner?", BEFORE, RUNNER),
    ],
)
def test_a_question_that_only_points_takes_along_what_was_said(memory, question, context, first):
    assert texts(memory.search(question, context=context))[0] == first
    assert memory.search("why?").query.terms[0].text == "why"


# Commands


def test_today_is_a_dated_list(cli):
    id = cli.add("We deploy from main, never from a branch", "--kind", "decision")
    line = cli.ok("today")
    assert f"{datetime.now(UTC):%Y-%m-%d}  decision" in line and line.startswith(id[:8])
    assert [one["id"] for one in cli.json("today")] == [id]
    assert cli.json("today", "last year") == []
    assert "Nothing was noted last year." in cli("today", "last year").err
    assert "is not a time" in cli.fails("today", "the cache", code=2)


def test_why_tells_the_decision_its_reason_and_what_it_replaced(cli):
    old = cli.add("We use npm for packages", "--kind", "decision")
    new = cli.add(
        "We use pnpm for packages, because npm hoists wrongly.",
        *("--kind", "decision", "--supersedes", old),
    )
    cli.add("I prefer packages of pnpm that are small", "--kind", "preference")
    told = cli.json("why", "pnpm", "packages")
    assert (told["decision"]["id"], told["because"]) == (new, "npm hoists wrongly")
    assert [one["id"] for one in told["replaced"]] == [old] and told["said"] is None
    lines = cli.ok("why", "pnpm", "packages").splitlines()
    assert lines[0].endswith("  note:user") and lines[2] == "  because npm hoists wrongly"
    assert lines[1] == "  We use pnpm for packages, because npm hoists wrongly."
    assert lines[3].startswith("  replaced ") and "We use npm for packages" in lines[3]


def test_why_names_the_line_where_it_was_said(cli, tmp_path):
    turns = [
        ("user", "What shall we take for the queue of jobs?"),
        ("assistant", "Redis streams or RabbitMQ would both do for the queue of jobs."),
        ("user", "We decided to use RabbitMQ for the queue, because Redis loses jobs on restart."),
    ]
    file = tmp_path / "talk.jsonl"
    file.write_text(
        "".join(json.dumps({"role": who, "content": text}) + "\n" for who, text in turns)
    )
    cli.ok("backfill", file)
    told = cli.json("why", "RabbitMQ")
    assert told["because"] == "Redis loses jobs on restart"
    assert told["said"]["lines"] == [3, 3] and told["said"]["content"] == turns[2][1]
    assert "talk.jsonl:3" in cli.ok("why", "RabbitMQ")


def test_why_of_what_nobody_decided_says_so(cli):
    cli.add("We flash boards over WiFi, because they hang high", "--kind", "decision")
    assert cli.json("why", "the moon") is None
    assert "No decision about the moon is known." in cli("why", "the", "moon").err


# Other languages


@pytest.mark.parametrize(
    ("text", "english"),
    [
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
    ],
)
def test_what_is_not_english_is_seen(text, english):
    assert is_english(text) is english


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
def moved(tmp_path):
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
def test_what_held_at_the_time_that_was_asked_about_comes_first(moved, question, best):
    assert moved.search(question).hits[0].memory.content == best


def test_what_came_after_an_event_is_preferred(moved):
    hits = {
        hit.memory.content: hit
        for hit in moved.search(
            "which backups of Postgres did we run after we moved to Postgres?"
        ).hits
    }
    assert hits[OTHER].why["preferred"] > 1


def test_a_time_at_which_nothing_was_known_does_not_hide_everything(moved):
    assert moved.search("what did we use for the orders database in 2019?").hits


def test_the_question_about_the_event_is_not_asked_without_end(moved):
    assert moved.search("before we moved before we moved before we moved").total >= 0
