"""From a conversation to the ideas worth keeping, and how surely sentences are told apart.

Precision is measured on sentences that were written after the training ones and never tuned on. Floors stand a few points
below what was measured (bench/LOG.md); 0.85 is what decisions, problems, solutions, to-dos and questions must have.
"""

import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.ingest import intents
from bethink.ingest.ideas import ANSWERS, VALUE, content_words, ideas, read_ideas
from bethink.ingest.intents import FIRM, LABELS, judge, strength
from bethink.judge import TrainedJudge

HELD_OUT = Path(__file__).parent / "fixtures" / "ideas-held-out.tsv"
PRECISION = {
    "decision": 0.8,
    "problem": 0.8,
    "solution": 0.85,
    "todo": 0.9,
    "question": 0.88,
    "conclusion": 0.85,
    "context": 0.65,
}


def rows(path):
    return [tuple(line.split("\t")) for line in path.read_text("utf-8").splitlines()]


@cache
def held_out():
    return rows(HELD_OUT)


@pytest.fixture(scope="module")
def measured():
    given = [judged.kind for judged in judge([text for *_, text in held_out()])]
    found = {}
    for label in LABELS:
        right = sum(kind == label == row[0] for kind, row in zip(given, held_out(), strict=True))
        found[label] = right / max(1, given.count(label))
    return found


@pytest.mark.parametrize(
    ("path", "least", "each"), [(intents.TRAINING, 1600, 150), (HELD_OUT, 500, 40)]
)
def test_labelled_sentences_are_well_formed(path, least, each):
    found = rows(path)
    assert len(found) >= least
    assert all(
        len(row) == 4
        and row[0] in LABELS
        and row[1] in ("user", "assistant")
        and row[2] in ("firm", "tentative")
        for row in found
    )
    assert all(sum(row[0] == label for row in found) >= each for label in LABELS)
    assert len({row[3].lower() for row in found}) == len(found)


def test_held_out_sentences_were_never_trained_on():
    assert not {row[3].lower() for row in rows(intents.TRAINING)} & {
        row[3].lower() for row in held_out()
    }


def test_the_weights_belong_to_the_training_sentences_and_the_cues():
    """After a change of either: `python bench/ideas.py --train`."""
    with np.load(intents.WEIGHTS, allow_pickle=False) as stored:
        assert stored["digest"].tobytes() == intents.digest()
        features = len(intents.features("", ())) + len(intents.known_grams())
        assert stored["cues"].shape == (features + 1, len(LABELS))
    assert intents.WEIGHTS.stat().st_size < 100_000


@pytest.mark.parametrize("label", PRECISION)
def test_precision_on_held_out_sentences_stays_above_its_floor(measured, label):
    assert measured[label] >= PRECISION[label]


def test_firm_and_tentative_are_told_apart():
    said = [row for row in held_out() if row[0] != "none"]
    right = sum((strength(row[3]) >= FIRM) == (row[2] == "firm") for row in said)
    tentative = [row for row in said if row[2] == "tentative"]
    assert right / len(said) >= 0.92
    assert sum(strength(row[3]) < FIRM for row in tentative) / len(tentative) >= 0.75


def test_judging_many_at_once_is_judging_each():
    texts = [row[3] for row in held_out()]
    one_by_one = [judge([text])[0].kind for text in texts[::25]]
    assert [judged.kind for judged in judge(texts * 2)][: len(texts) : 25] == one_by_one
    assert judge([]) == []


# What a hurried reader takes for something else.
HARD = [
    ("we decided nothing yet", "decision"),
    ("should we use Redis for the sessions?", "decision"),
    ("if we used Redis we would need another server", "decision"),
    ("the problem is solved", "problem"),
    ("no problem, take your time", "problem"),
    ("TODO comments are banned in this code base", "todo"),
    ("who doesn't love a segfault on friday?", "question"),
    ("can you fix this?", "question"),
    ("Would you like me to open a pull request?", "question"),
    ('the slide says "we decided to use Kafka", ignore it', "decision"),
    ("fix the failing test", "todo"),
    ("I'll now run the tests.", "todo"),
    ("Let me look at the file first.", "todo"),
]


@pytest.mark.parametrize(("text", "kind"), HARD)
def test_lookalikes_are_not_taken_for_ideas(text, kind):
    assert kind not in [idea.kind for idea in ideas([("user", text)])]


def kinds(turns, **options):
    return [(idea.kind, idea.text) for idea in ideas(turns, most=2, **options)]


PROPOSAL = "There is one thing to settle.\n\nI'd suggest keeping the sessions in Redis with a 30 minute expiry."


@pytest.mark.parametrize(
    "reply",
    [
        "yes",
        "yes, do that",
        "Sounds good!",
        "ok",
        "go ahead",
        "ok, let's do it",
        "👍",
        "agreed, thanks",
    ],
)
def test_a_proposal_that_is_accepted_is_a_firm_decision_in_its_own_words(reply):
    (idea,) = ideas([("assistant", PROPOSAL), ("user", reply)])
    assert (idea.kind, idea.firm, idea.turn, idea.accepted, idea.line) == (
        "decision",
        True,
        0,
        1,
        2,
    )
    assert idea.text == "I'd suggest keeping the sessions in Redis with a 30 minute expiry."


@pytest.mark.parametrize(
    "reply",
    [
        "no",
        "nope, too expensive",
        "rather not",
        "not that one",
        "don't",
        "hmm, no",
        "actually wait",
    ],
)
def test_a_proposal_that_is_turned_down_is_nothing(reply):
    assert not [
        idea
        for idea in ideas([("assistant", PROPOSAL), ("user", reply)], most=2)
        if "Redis" in idea.text
    ]


@pytest.mark.parametrize(
    "reply",
    [
        "ok now fix the header please",
        "yes but use postgres instead",
        "what does that cost?",
        "the tests are red again",
    ],
)
def test_a_reply_that_goes_on_to_something_else_decides_nothing(reply):
    assert all(
        idea.accepted is None for idea in ideas([("assistant", PROPOSAL), ("user", reply)], most=2)
    )


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("go with 2", "Run a separate Qdrant server"),
        ("1", "Store the vectors in SQLite"),
        ("the second one", "Run a separate Qdrant server"),
    ],
)
def test_an_option_is_chosen_by_its_number(reply, text):
    turns = [
        (
            "assistant",
            "Two options:\n\n1. Store the vectors in SQLite\n2. Run a separate Qdrant server",
        ),
        ("user", reply),
    ]
    assert kinds(turns) == [("decision", text)]


def test_options_that_nobody_chose_are_nothing():
    turns = [
        (
            "assistant",
            "Two options:\n\n1. Store the vectors in SQLite\n2. Run a separate Qdrant server",
        ),
        ("user", "neither"),
    ]
    assert kinds(turns) == []


def test_an_accepted_offer_to_note_something_is_a_todo_and_one_to_commit_is_nothing():
    offer = "Want me to capture this as a todo: rotate the signing key before the launch?"
    assert kinds([("assistant", offer), ("user", "yes please")]) == [
        ("todo", "capture this as a todo: rotate the signing key before the launch")
    ]
    assert (
        kinds(
            [
                ("assistant", "The branch is ready. Want me to commit and push it?"),
                ("user", "yes please"),
            ]
        )
        == []
    )


def test_the_users_own_words_stand_when_they_say_it_all():
    reply = "yes, keep the sessions in Redis but expire them after ten minutes and log every eviction, that's final"
    (idea,) = ideas([("assistant", PROPOSAL), ("user", reply)], most=0.5)
    assert (idea.kind, idea.turn) == ("decision", 1)


def test_a_solution_is_tied_to_its_problem():
    turns = [
        ("user", "the import crashes with a KeyError when the header is missing"),
        ("assistant", "Let me look at the importer."),
        (
            "assistant",
            "Fixed by checking for the header before the rows are read; a missing one no longer crashes the import.",
        ),
    ]
    problem, solution = ideas(turns, most=2)
    assert (problem.kind, problem.turn, problem.answers) == ("problem", 0, None)
    assert (solution.kind, solution.turn, solution.answers) == ("solution", 2, 0)


def test_a_solution_may_repeat_the_words_of_its_problem():
    turns = [
        ("user", "the upload crashes when the file name is missing"),
        ("assistant", "Fixed: the upload no longer crashes when the file name is missing."),
    ]
    assert [(idea.kind, idea.answers) for idea in ideas(turns, most=2)] == [
        ("problem", None),
        ("solution", 0),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "I still need to add rate limiting to the public endpoints.",
        "Upload limit — renamed to `max_bytes`, so the wrong unit can no longer be taken for the right one.",
        "If we moved to Kafka, the queue would no longer block the importer.",
        "I'm moving the check into the loader, so a missing header no longer crashes the import.",
    ],
)
def test_what_an_assistant_is_about_to_do_or_imagines_is_nothing(text):
    assert judge([text])[0].kind != "none", "no example: it would be nothing anyway"
    assert kinds([("assistant", text)]) == []


def test_an_answer_is_tied_to_its_question_whoever_asks():
    asked, answer = ideas(
        [
            ("user", "why does the gateway retry on 503?"),
            (
                "assistant",
                "The gateway retries on 503 because the load balancer answers with it while a node is draining.",
            ),
        ],
        most=2,
    )
    assert (asked.kind, answer.answers) == ("question", 0)
    assert answer.kind in ANSWERS
    turns = [
        ("assistant", "Should the export include archived users?"),
        ("user", "archived users are not part of the export, we decided that with legal"),
    ]
    asked, answer = ideas(turns, most=2)
    assert (asked.kind, answer.kind, answer.answers) == ("question", "decision", 0)


def test_a_question_that_nobody_answers_stays_open():
    turns = [
        ("user", "who owns the staging bucket?"),
        ("assistant", "Let me check the build first."),
        ("user", "we decided to use Terraform for it"),
    ]
    found = ideas(turns, most=2)
    assert [(idea.kind, idea.answers) for idea in found] == [("question", None), ("decision", None)]


def test_labels_and_headings_are_believed():
    turn = "## Next steps\n- Rotate the keys of the gateway\n- [x] Write the changelog\n\n**Root cause:** the lock is per connection.\n\nDecision: we keep SQLite."
    assert kinds([("assistant", turn)] * 3) == [
        ("todo", "Rotate the keys of the gateway"),
        ("conclusion", "Root cause: the lock is per connection."),
        ("decision", "Decision: we keep SQLite."),
    ]


def test_code_quotes_and_logs_say_nothing():
    turn = "> We decided to use Kafka.\n\n```\n# we decided to use RabbitMQ\n```\n2025-01-01 12:00:00 ERROR we decided to use NATS\n"
    assert kinds([("user", turn)]) == []


def test_what_says_the_same_is_kept_once_and_a_small_difference_is_kept():
    turns = [
        ("user", "we decided to use port 8080 for the api"),
        ("assistant", "Noted."),
        ("user", "so we decided to use port 8080 for the api"),
        ("user", "we decided to use port 9090 for the metrics"),
    ]
    assert [text for _, text in kinds(turns)] == [
        "we decided to use port 8080 for the api",
        "we decided to use port 9090 for the metrics",
    ]


def test_talk_of_the_moment_leaves_nothing():
    turns = [
        ("user", "hi, can you fix the failing test?"),
        ("assistant", "Sure! Let me look at the file first."),
        ("assistant", "Now let me run the tests."),
        ("assistant", "I'm updating the fixture, since the message has changed."),
        ("assistant", "All 41 tests pass. Want me to commit?"),
        ("user", "yes please"),
        ("assistant", "Committed as `f5cbb41`."),
        ("user", "thanks!"),
    ]
    assert kinds(turns) == []


def test_other_roles_are_not_heard():
    assert (
        kinds([("system", "We decided to use Kafka."), ("tool", "We decided to use Kafka.")]) == []
    )


def test_names_are_found():
    (idea,) = ideas([("user", "we decided to use PostgreSQL for the `OrderService`")])
    assert {(entity.name, entity.type) for entity in idea.entities} == {
        ("PostgreSQL", "technology"),
        ("OrderService", "symbol"),
    }


DECISIONS = [
    f"we decided to use {name} for {purpose}"
    for name, purpose in zip(
        ["PostgreSQL", "Redis", "Kafka", "Terraform", "Rust", "protobuf"],
        ["billing", "sessions", "events", "staging", "the parser", "telemetry"],
        strict=True,
    )
]


def test_firm_decisions_of_the_user_are_kept_whatever_the_limit():
    assert [
        text
        for _, text in [
            (idea.kind, idea.text) for idea in ideas([("user", "\n\n".join(DECISIONS))], most=0)
        ]
    ] == DECISIONS


def test_a_tentative_decision_is_not_firm():
    (idea,) = ideas([("user", "for now let's go with Redis for the sessions")], most=2)
    assert (idea.kind, idea.firm) == ("decision", False)
    assert idea.confidence < 0.7


HOSTILE = [
    [],
    [("user", "")],
    [("user", "\n" * 500)],
    [("user", "\x00\ud800\uffff")],
    [("assistant", "我们决定使用PostgreSQL。为什么？")],
    [("user", "a" * 50_000)],
    [("user", "we decided " * 5000)],
    [("user", "?" * 5000)],
    [("user", "yes")] * 50,
    [("user", "2"), ("user", "no")],
    [("", "x"), ("USER", "we decided to use x")],
    [("assistant", "1. " * 3000), ("user", "2")],
    [("assistant", "Want me to " + "switch " * 500 + "?"), ("user", "yes")],
]


@pytest.mark.parametrize("turns", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_conversations_do_no_harm(turns):
    assert ideas(turns) == ideas(turns)


PIECES = [row[3] for row in rows(intents.TRAINING)[::23]] + [
    "yes",
    "no",
    "ok",
    "go with 2",
    "rather not",
    "yes, do that",
    PROPOSAL,
    "## Next steps\n- rotate the keys\n- [ ] write docs",
    "Options:\n\n1. use Redis\n2. use Kafka",
    "Root cause: the lock is per connection. That fixed it.",
    "```\ncode\n```",
    "Want me to switch the ids to random ones?",
    "maybe",
    "why?",
    "It works now.",
]
TURNS = st.lists(
    st.tuples(
        st.sampled_from(["user", "assistant", "assistant", "system"]),
        st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=12)), max_size=4).map(
            "\n\n".join
        ),
    ),
    max_size=8,
)


@settings(max_examples=40, deadline=None)
@given(TURNS, st.sampled_from([0.0, 0.5, 1.0, 3.0]))
def test_ideas_are_few_different_and_in_the_words_of_their_turns(turns, most):
    found = ideas(turns, most=most)
    assert ideas(turns, most=most) == found
    certain = [idea for idea in found if idea.kind == "decision" and idea.firm]
    assert len(found) <= max(math.ceil(most * len(turns)), len(certain))
    assert [idea.turn for idea in found] == sorted(idea.turn for idea in found)
    assert len({idea.text for idea in found}) == len(found)
    for at, idea in enumerate(found):
        role, text = turns[idea.turn]
        assert role in ("user", "assistant")
        assert idea.kind in VALUE
        assert 0 < idea.confidence <= 1
        assert len(idea.text) <= 400
        assert set(re.findall(r"\w+", idea.text)) <= set(re.findall(r"\w+", text)), (
            "an idea's words are those of its turn"
        )
        if idea.answers is not None:
            asked = found[idea.answers]
            assert idea.answers < at
            assert (asked.kind, idea.kind) == ("problem", "solution") or (
                asked.kind == "question" and idea.kind in ANSWERS
            )
        if idea.accepted is not None:
            assert role == "assistant"
            assert turns[idea.accepted][0] == "user"
            assert idea.firm
    for one in found:
        for other in found:
            same_kind = one is not other and one.kind == other.kind
            assert not (
                same_kind
                and content_words(one.text) == content_words(other.text)
                and re.sub(r"\W", "", one.text) == re.sub(r"\W", "", other.text)
            )


# With a judge each statement is read in its place.

REPLY = ("assistant", "Understood.")
PLAIN = [
    ("Watch out: staging is wiped every Sunday night.", "gotcha"),
    ("Careful, the importer drops rows without an id.", "gotcha"),
    ("Always run the linter before you commit.", "preference"),
    ("I prefer small commits with a reason.", "preference"),
    ("We use Jest for unit tests.", "fact"),
    ("Tickets are in Jira under the key SHOP.", "fact"),
    ("We decided to keep the monorepo because releases go together.", "decision"),
    ("We moved billing from PostgreSQL to CockroachDB.", "decision"),
    ("Which database do we use for the orders service?", "question"),
    ("TODO: rotate the signing key before March", "todo"),
]
NOTHING = [
    "Let's move on to the billing page.",
    "ok, thanks",
    "Go ahead.",
    "Show me the diff.",
    "Perhaps Redis, not sure yet.",
]


@pytest.fixture(scope="module")
def reader():
    return TrainedJudge(threads=2)


@pytest.mark.parametrize(("said", "kind"), PLAIN)
def test_a_plain_statement_is_kept_as_what_it_is(reader, said, kind):
    assert [(idea.kind, idea.text) for idea in read_ideas([("user", said), REPLY], reader)] == [
        (kind, said)
    ]


@pytest.mark.parametrize("said", NOTHING)
def test_transitions_and_thoughts_leave_nothing(reader, said):
    assert read_ideas([("user", said), REPLY], reader) == []


def test_a_question_that_was_answered_and_work_that_was_done_leave_no_open_end(reader):
    turns = [
        ("user", "How long do sessions live?"),
        ("assistant", "Sessions live thirty minutes. The limit stands in config/session.rb."),
        ("user", "Add a test for the refund path."),
        ("assistant", "I added three cases to the refund tests. All of them pass now."),
    ]
    assert not {"question", "todo"} & {idea.kind for idea in read_ideas(turns, reader)}


def test_what_somebody_else_wrote_is_no_idea_of_the_user(reader):
    issue = "Can you answer this issue?\n\n## Steps\n\n> We decided to drop PostgreSQL.\n\n- The team uses Oracle.\n- Always deploy on Fridays."
    assert not [
        idea for idea in read_ideas([("user", issue), REPLY], reader) if "Oracle" in idea.text
    ]


def test_only_turns_from_the_first_are_read(reader):
    turns = [("user", "We use Jest for unit tests."), REPLY] * 2
    turns[2] = ("user", "Tickets are in Jira under the key SHOP.")
    assert [idea.turn for idea in read_ideas(turns, reader, first=2)] == [2]


BACKLOG = """**Pending to-dos:**

| # | Title | Area | Age |
|---|---|---|---|
| 1 | Move the invoice numbering into the database | api | 14d |
| 2 | Add a dark theme to the admin pages | ui | today |

| Column | Meaning |
|---|---|
| area | the part of the shop that a to-do belongs to |
"""


def test_the_rows_of_a_list_of_what_waits_are_to_dos_though_the_talk_goes_on(reader):
    turns = [
        ("user", "Which to-dos do we have?"),
        ("assistant", BACKLOG),
        ("user", "Thanks. How long do sessions live?"),
        ("assistant", "Next steps:\n\n- read the session store\n\nSessions live thirty minutes."),
        ("user", "Fine."),
    ]
    assert [idea.text for idea in read_ideas(turns, reader) if idea.kind == "todo"] == [
        "Move the invoice numbering into the database",
        "Add a dark theme to the admin pages",
    ]


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("Branch is 3 ahead of origin — push it when you're ready.", True),
        ("The migration still needs to run on staging.", True),
        ("Want me to commit this as well?", False),
        ("The pending request limit is counted per user.", False),
        ("Now amending the commit, which is not pushed.", False),
    ],
)
def test_what_the_last_report_leaves_to_do_is_open(reader, said, left):
    turns = [("user", "Cache the carts."), ("assistant", f"I cached the carts in Redis. {said}")]
    assert (
        any(said in idea.text for idea in read_ideas(turns, reader) if idea.kind == "todo") == left
    )
