"""Names and summaries of topics: what they say, that they say nothing else, and that no text breaks them."""

import json
import re

from case_tables import cases, each, rules
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.agents.base import Fact
from bethink.ingest.digest import compose_digest, follow
from bethink.ingest.titles import make_session_title as session_title
from bethink.ingest.titles import make_title as name
from bethink.ingest.titles import name_picks, only_asks, summarise
from bethink.recall.shape import tokens

REPORT = "I added a retry with backoff to the payment worker. All 40 tests pass."
COMMIT = Fact("commit", "Retry failed charges with backoff")
SHIPPED = Fact("commit", "Round prices once in the formatter")
IDEAS = cases("titles-ideas")
TALK = cases("titles-talk")


@rules(
    {
        "titles-names": lambda asked: name([("user", asked), ("assistant", "I look into it.")]),
        "titles-a-name-comes-from-the": name,
        "titles-a-session-is-told-by": lambda turns: session_title(
            turns, [SHIPPED] if turns[0][1] == "ship it" else []
        ),
        "titles-what-a-user-picks-is": lambda listed, said: name_picks(
            "user", said, [("assistant", listed)]
        ),
    }
)
def test_topics_and_sessions_are_named_in_the_users_words(function, given, expected):
    assert function(*given) == expected


def test_code_gives_no_name_nothing_said_gives_nothing_and_a_session_has_the_longer_title():
    for pasted in cases("titles-code-and-the-output-of"):
        turns = [("user", pasted), ("assistant", "It counts attempts per process.")]
        assert name(turns) == "The payment worker never stops retrying"
        # What may be pasted names a topic, but is not told as what the user asked.
        assert summarise(turns) == "Focus: It counts attempts per process"
    for turns in ([], [("user", "")], [("user", "  \n"), ("assistant", "")]):
        assert name(turns) == session_title(turns) == summarise(turns) == ""
    assert name([("user", "```\nPriceFormatter(rounding=2)\n```")])
    said = "migrate the session cache from Redis to PostgreSQL with zero downtime for customers in Europe"
    turns = [("user", said)]
    assert len(name(turns).split()) <= 10 < len(session_title(turns).split()) <= 12


def test_a_summary_says_each_thing_once_and_keeps_the_newest_of_many_ideas():
    assert summarise(TALK, IDEAS).splitlines() == cases("titles-a-summary-has-a-line")
    answered = summarise(TALK, [("question", "Who reads the dead letter queue?", False)])
    assert answered.startswith("Focus: ") and "dead letter" not in answered
    said = ("We use PostgreSQL", "We use pgvector", "We use  PostgreSQL")
    told = summarise([], [("decision", text, False) for text in said])
    assert told == "Decisions: We use PostgreSQL; We use pgvector"
    rule = "Rule {0} says that orders of group {0} are shipped from warehouse {0}"
    ideas = [("decision", f"{rule.format(number)}.", False) for number in range(40)]
    lines = summarise(TALK, [*ideas, *IDEAS[2:]]).splitlines()
    (line,) = [line for line in lines if line.startswith("Decisions")]
    kept = [int(number) for number in re.findall(r"Rule (\d+)", line)]
    assert kept == list(range(kept[0], 40)) and len(kept) >= 2
    assert all(rule.format(number) in line for number in kept)
    long = "the importer decodes every cell of a spreadsheet " * 30
    ideas = [("decision", long, False), ("conclusion", f"so {long}", False)]
    found = summarise(
        [("user", f"please speed it up: {long}")], [*ideas, ("question", f"why {long}", True)]
    )
    assert len(found) <= 600
    heads = [line.partition(":")[0] for line in found.splitlines()]
    assert heads == ["Focus", "Decisions", "Conclusions", "Open"]
    assert all(line.endswith("…") for line in found.splitlines())


TEXT = st.lists(st.sampled_from(cases("titles-pieces")), max_size=25).map(" ".join)
TEXT |= st.text(max_size=80)
TURNS = st.lists(st.tuples(st.sampled_from(["user", "assistant"]), TEXT), max_size=8)
KINDS = st.sampled_from(["decision", "solution", "question", "todo", "odd"])
HEADS = r"(?m)^(Focus|Done|Decisions|Conclusions|Open): "


@given(TURNS, st.lists(st.tuples(KINDS, TEXT, st.booleans()), max_size=6))
@settings(max_examples=100, deadline=None)
def test_names_and_summaries_are_short_and_hold_only_words_that_were_said(turns, ideas):
    said = " ".join([text for _, text in turns] + [text for _, text, _ in ideas]).lower()
    title, summary = name(turns), summarise(turns, ideas)
    assert len(title.split()) <= 10 and len(title) <= 72 and "\n" not in title
    assert len(summary) <= 600 and len(summary.splitlines()) <= 5
    assert all(re.match(HEADS + r"\S", line) for line in summary.split("\n") if line)
    told = f"{title} {re.sub(HEADS, '', summary)}".lower()
    assert not {word for word in re.findall(r"\w+", told) if word not in said}
    assert (name(turns), summarise(turns, ideas)) == (title, summary)


def digest(*turns, work=(), **more):
    """The lines of a digest; what tools did, they did before the last turn."""
    return tuple(
        compose_digest(follow({}, turns, [*[()] * (len(turns) - 1), work], **more)).values()
    )


ASKED = ("user", "hey, can you add retry logic to the payment worker? It drops messages.")
ASKED_FOR = "add retry logic to the payment worker?"
ANSWERED = ("assistant", REPORT)


def test_a_digest_tells_what_was_asked_done_and_left_from_page_to_page():
    for answer, work, done, left in cases("titles-a-digest-tells-what-was", globals()):
        assert digest(ASKED, ("assistant", answer), work=work) == (ASKED_FOR, done, left)
    # A request is told once, and what nobody answered or took up is left.
    assert digest(ASKED, ANSWERED, ASKED)[0] == ASKED_FOR
    later = "now move the dead letter queue to Redis"
    assert digest(ASKED, ANSWERED, ("user", later))[2] == later
    for last in ("Ok.", "thanks!", "👍"):
        assert digest(ASKED, ANSWERED, ("user", last))[2] == digest(ASKED, ANSWERED)[2]
    assert digest(("user", "morning"), ("assistant", "Hi."), ASKED, ANSWERED)[0] == ASKED_FOR
    which = ("assistant", "I could not reproduce it; which editor do you use?")
    assert digest(ASKED, which, ("user", "vim"))[2] == digest(ASKED)[2]
    plan = ("assistant", "# Plan: Retry with backoff\n\n## Context\n\nThe worker was changed.")
    assert digest(ASKED, plan, plan=True)[1:] == ("", "planned: Retry with backoff")
    # It goes on from page to page, and a recap speaks for the whole session.
    done = "the worker retries and PR #9 was opened"
    recap = f"Goal: retries. Done: {done}. Next: rotate the key."
    told = digest(ASKED, ("assistant", "Ok."), work=[COMMIT], recap=recap)
    assert told == (ASKED_FOR, f"{done}; {COMMIT.name}", "rotate the key")
    first = follow({}, [("user", "hi"), ("assistant", "Hello!")])
    second = follow(first._asdict(), [ASKED, ANSWERED], [(), [COMMIT]])
    now = "Now checking the logs of the worker"
    third = follow(second._asdict(), [("user", "thanks"), ("assistant", f"{now}.")])
    assert compose_digest(second)["asked"] == ASKED_FOR
    left = f"announced: {now.removeprefix('Now ')}; not pushed"
    assert tuple(compose_digest(third).values()) == (ASKED_FOR, COMMIT.name, left)
    log = Fact("commit", "Log retries")
    assert follow(third._asdict(), [], [[log]]).commits[-1] == log.name
    # What was kept by an earlier version is read.
    old = {**json.loads(json.dumps(third._asdict())), "asked": [ASKED[1]]}
    assert compose_digest(follow(old, [("user", "thanks")]))["asked"].startswith("add retry")


def test_of_several_requests_those_are_told_that_led_to_work_and_of_commits_those_of_the_product():
    asks = ("how do I list the queues?", "round the prices once", "what is a dead letter?")
    asks += ("move the carts to Redis",)
    turns = [turn for text in asks for turn in (("user", text), ("assistant", "Ok."))]
    edit, books = Fact("edit", "a.py"), Fact("commit", "docs: tick off a to-do")
    work = [(), (), (), [edit], (), (), (), [edit, SHIPPED, books], ()]
    told = compose_digest(follow({}, turns, work))
    assert told["asked"] == "; ".join((*asks[:2], asks[3]))
    assert told["done"] == SHIPPED.name and told["left"] == "not pushed"
    reported = [*turns[:-1], ("assistant", REPORT)]
    for commits, done in (([books], REPORT.partition(".")[0]), ([books, SHIPPED], SHIPPED.name)):
        course = follow({}, reported, [*work[:7], commits])
        assert compose_digest(course)["done"] == done
    for opened, done in (
        (
            ("#7: Round prices", "#8: docs: list the queues"),
            "PR #7: Round prices; PR #8: docs: list",
        ),
        (("#8",), f"PR #8: {SHIPPED.name}"),
    ):
        pulls = [Fact("pull request", one) for one in opened]
        told = compose_digest(follow({}, turns, [*work[:7], [SHIPPED, *pulls]]))
        assert done in told["done"] and told["left"] == "PR #8 open"


def test_a_turn_that_asks_or_thinks_tells_nothing():
    thought = "I think about moving them into the database."
    assert only_asks(f"Where do we keep the carts? {thought}") and only_asks("Please move them.")
    assert not only_asks(f"We keep the carts in Redis. {thought}")


@each("work,said,left", "titles-work-that-was-not-pushed")
def test_work_is_left_until_it_is_pushed_and_merged(work, said, left):
    facts = [Fact(what.strip(), "#7") for what in work.split(",")]
    course = follow({}, [ASKED, ANSWERED], [(), facts])
    assert compose_digest(follow(course._asdict(), [("assistant", said)]))["left"] == left


FACTS = st.builds(Fact, st.sampled_from(["commit", "edit", "failed"]), TEXT)


@given(TURNS, st.lists(FACTS, max_size=6), TEXT)
@settings(max_examples=60, deadline=None)
def test_a_digest_has_at_most_sixty_tokens(turns, work, recap):
    told = compose_digest(follow({}, turns, [work], recap))
    assert list(told) == ["asked", "done", "left"]
    assert tokens("\n".join(f"{name.capitalize()}: {text}" for name, text in told.items())) <= 60
    assert all("\n" not in text for text in told.values())
