"""Names and summaries of topics: what they say, that they say nothing else, and that no text breaks them."""

from __future__ import annotations

import re

import pytest
from case_tables import cases
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.hosts.base import Fact
from bethink.ingest.titles import compose_digest, follow, name, session_title, summarise
from bethink.recall.shape import tokens

NAMES = cases("titles-names")


@pytest.mark.parametrize(("request_text", "expected"), NAMES)
def test_a_name_is_the_request_in_the_users_words_without_politeness_and_reasons(
    request_text, expected
):
    assert name([("user", request_text), ("assistant", "I will look into it.")]) == expected


def test_a_name_comes_from_the_first_request_that_says_something():
    turns = cases("titles-a-name-comes-from-the")
    assert name(turns) == "The checkout page shows prices without tax"


@pytest.mark.parametrize(
    ("turns", "expected"),
    cases("titles-a-session-is-told-by"),
)
def test_a_session_is_told_by_the_first_thing_that_says_what_it_is_about(turns, expected):
    assert (
        session_title(
            turns,
            [Fact("commit", "Round prices once in the formatter")][: turns[0][1] == "ship it"],
        )
        == expected
    )


@pytest.mark.parametrize(
    "pasted",
    cases("titles-code-and-the-output-of"),
)
def test_code_and_the_output_of_programs_give_no_name(pasted):
    turns = [("user", pasted), ("assistant", "It counts attempts per process.")]
    assert name(turns) == "The payment worker never stops retrying"
    assert summarise(turns).startswith("Focus: the payment worker never stops retrying")


def test_where_nobody_asked_the_answer_gives_the_name():
    assert (
        name([("assistant", "The cache is cold after every deployment.")])
        == "The cache is cold after every deployment"
    )
    assert (
        name(
            [
                ("user", "```\nfoo(bar)\n```"),
                ("assistant", "The deployment script calls the linter twice."),
            ]
        )
        == "The deployment script calls the linter twice"
    )
    assert name([("user", "```\nPriceFormatter(rounding=2)\n```")])


def test_nothing_said_gives_nothing():
    for turns in ([], [("user", "")], [("user", "  \n"), ("assistant", "")]):
        assert name(turns) == session_title(turns) == summarise(turns) == ""


def test_a_session_has_a_longer_title_than_its_first_topic():
    turns = [
        (
            "user",
            "migrate the session cache from Redis to PostgreSQL with zero downtime for customers in Europe",
        )
    ]
    assert len(name(turns).split()) <= 10 < len(session_title(turns).split()) <= 12


IDEAS = cases("titles-ideas")
TALK = cases("titles-talk")


def test_a_summary_has_a_line_for_each_thing_that_there_is():
    assert summarise(TALK, IDEAS).splitlines() == cases("titles-a-summary-has-a-line")
    answered = summarise(TALK, [("question", "Who reads the dead letter queue?", False)])
    assert answered.startswith("Focus: ") and "dead letter" not in answered


def test_an_idea_that_another_one_says_already_is_left_out():
    ideas = [
        ("decision", "We use PostgreSQL", False),
        ("decision", "we use postgresql 16 with pgvector", False),
        ("decision", "We use PostgreSQL", False),
    ]
    assert summarise([], ideas) == "Decisions: we use postgresql 16 with pgvector"


def test_of_many_ideas_the_newest_are_kept_whole_and_in_order():
    ideas = [
        (
            "decision",
            f"Rule {number} says that orders of group {number} are shipped from warehouse {number}.",
            False,
        )
        for number in range(40)
    ]
    line = next(
        line
        for line in summarise(TALK, [*ideas, *IDEAS[2:]]).splitlines()
        if line.startswith("Decisions")
    )
    kept = [int(number) for number in re.findall(r"Rule (\d+)", line)]
    assert kept == list(range(kept[0], 40)) and len(kept) >= 2
    assert all(
        f"Rule {number} says that orders of group {number} are shipped from warehouse {number}"
        in line
        for number in kept
    )


def test_a_long_idea_is_cut_at_a_word_and_every_line_keeps_its_place():
    long = "the importer decodes every cell of a spreadsheet " * 30
    found = summarise(
        [("user", long)],
        [
            ("decision", long, False),
            ("conclusion", "so " + long, False),
            ("question", "why " + long, True),
        ],
    )
    assert len(found) <= 600
    assert [line.partition(":")[0] for line in found.splitlines()] == [
        "Focus",
        "Decisions",
        "Conclusions",
        "Open",
    ]
    assert all(line.endswith("…") for line in found.splitlines())


PIECES = st.sampled_from(cases("titles-pieces"))
TEXT = st.lists(PIECES, max_size=25).map(" ".join) | st.text(max_size=80)
TURN = st.tuples(st.sampled_from(["user", "assistant"]), TEXT)


@given(
    st.lists(TURN, max_size=8),
    st.lists(
        st.tuples(
            st.sampled_from(["decision", "solution", "question", "todo", "odd"]),
            TEXT,
            st.booleans(),
        ),
        max_size=6,
    ),
)
@settings(max_examples=200, deadline=None)
def test_names_and_summaries_are_short_and_hold_only_words_that_were_said(turns, ideas):
    said = " ".join([text for _, text in turns] + [text for _, text, _ in ideas]).lower()
    title, summary = name(turns), summarise(turns, ideas)
    assert len(title.split()) <= 10 and len(title) <= 72 and "\n" not in title
    assert len(summary) <= 600
    assert len(summary.splitlines()) <= 5
    assert all(
        re.match(r"(Focus|Done|Decisions|Conclusions|Open): \S", line)
        for line in summary.split("\n")
        if line
    )
    told = re.sub(r"^(Focus|Done|Decisions|Conclusions|Open):", "", summary, flags=re.MULTILINE)
    invented = {word for word in re.findall(r"\w+", f"{title} {told}".lower()) if word not in said}
    assert not invented
    assert (name(turns), summarise(turns, ideas)) == (title, summary)


# The digest of a session

REPORT = "I added a retry with backoff to the payment worker. All 40 tests pass."
COMMIT = Fact("commit", "Retry failed charges with backoff")


def digest(*turns, work=(), **more):
    return tuple(compose_digest(follow({}, turns, work, **more)).values())


ASKED = ("user", "hey, can you add retry logic to the payment worker? It drops messages.")
ASKED_FOR = "add retry logic to the payment worker?"


@pytest.mark.parametrize(
    ("answer", "work", "done", "left"),
    cases("titles-a-digest-tells-what-was", globals()),
)
def test_a_digest_tells_what_was_asked_done_and_left(answer, work, done, left):
    assert digest(ASKED, ("assistant", answer), work=work) == (ASKED_FOR, done, left)


def test_what_is_asked_again_at_greater_length_is_told_once():
    first = "add retry logic to the payment worker, please"
    again = "add retry logic to the payment worker with a backoff"
    assert digest(("user", first), ("assistant", REPORT), ("user", again))[0] == again


def test_what_nobody_answered_and_a_plan_that_nobody_took_up_are_left():
    later = ("user", "now move the dead letter queue to Redis")
    assert (
        digest(ASKED, ("assistant", REPORT), later)[2] == "now move the dead letter queue to Redis"
    )
    for last in ("Ok.", "thanks!", "👍"):
        assert (
            digest(ASKED, ("assistant", REPORT), ("user", last))[2]
            == digest(ASKED, ("assistant", REPORT))[2]
        )
    plan = ("assistant", "# Plan: Retry with backoff\n\n## Context\n\nThe worker was changed.")
    assert digest(ASKED, plan, plan=True)[2] == "Retry with backoff"


def test_the_recap_of_a_host_speaks_for_the_whole_session():
    recap = "Goal: retries. Done: the worker retries and PR #9 was opened. Next: rotate the key."
    assert digest(ASKED, ("assistant", "Ok."), work=[COMMIT], recap=recap) == (
        ASKED_FOR,
        "the worker retries and PR #9 was opened",
        "rotate the key",
    )


def test_a_digest_goes_on_from_page_to_page():
    first = follow({}, [("user", "hi"), ("assistant", "Hello!")])
    second = follow(first._asdict(), [ASKED, ("assistant", REPORT)], [COMMIT])
    third = follow(
        second._asdict(),
        [("user", "thanks"), ("assistant", "Now checking the logs of the worker.")],
    )
    assert compose_digest(second)["asked"] == ASKED_FOR
    assert tuple(compose_digest(third).values()) == (
        ASKED_FOR,
        COMMIT.name,
        "Now checking the logs of the worker",
    )
    assert follow(third._asdict(), [], [Fact("commit", "Log retries")]).commits[-1] == "Log retries"


@given(
    st.lists(TURN, max_size=6),
    st.lists(
        st.builds(Fact, st.sampled_from(["commit", "edit", "failed"]), TEXT),
        max_size=6,
    ),
    TEXT,
)
@settings(max_examples=100, deadline=None)
def test_a_digest_has_at_most_sixty_tokens(turns, work, recap):
    told = compose_digest(follow({}, turns, work, recap))
    assert list(told) == ["asked", "done", "left"] and told["left"]
    assert tokens("\n".join(f"{name.capitalize()}: {text}" for name, text in told.items())) <= 60
    assert all("\n" not in text for text in told.values())
