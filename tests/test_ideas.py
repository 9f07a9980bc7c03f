"""From a conversation to the ideas worth keeping, by the packaged judge."""

import re

import pytest
from case_tables import cases
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.ingest.ideas import LASTING, read_ideas
from bethink.judge import TrainedJudge

REPLY = ("assistant", "Understood.")
PLAIN = cases("ideas-plain")
NOTHING = cases("ideas-nothing")


@pytest.fixture(scope="module")
def reader():
    return TrainedJudge(threads=2)


def kinds(reader, *turns):
    return [(idea.kind, idea.text) for idea in read_ideas(turns, reader)]


@pytest.mark.parametrize(("said", "kind"), PLAIN)
def test_a_plain_statement_is_kept_as_what_it_is(reader, said, kind):
    (idea,) = read_ideas([("user", said), REPLY], reader)
    assert (idea.kind, idea.text, idea.firm) == (kind, said, True)
    assert 0 < idea.confidence <= 1


@pytest.mark.parametrize("said", NOTHING)
def test_transitions_and_thoughts_leave_nothing(reader, said):
    assert kinds(reader, ("user", said), REPLY) == []


def test_two_sentences_of_a_paragraph_are_two_ideas_where_they_are_of_two_kinds(reader):
    said = "Ok, we keep the sessions in Redis for 12 hours. Never log session ids, they are credentials."
    asked = ("assistant", "I suggest Redis for the sessions, they expire by themselves there.")
    first, then = said.split(". ", 1)
    # What the assistant proposed is decided in the user's words.
    assert kinds(reader, asked, ("user", said), REPLY) == [
        ("decision", f"{first}."),
        ("preference", then),
    ]
    more = f"{said} We decided to keep the invoices in Postgres."
    assert not any("suggest" in text for _, text in kinds(reader, asked, ("user", more), REPLY))


def test_what_is_asked_for_later_is_to_do(reader):
    turns = [("user", "Please write the lifetime down in the docs later."), REPLY]
    assert kinds(reader, *turns) == [("todo", turns[0][1])]


def test_talk_of_the_moment_leaves_nothing(reader):
    turns = cases("ideas-talk-of-the-moment-leaves")
    assert kinds(reader, *turns) == []


def test_code_quotes_logs_and_other_roles_say_nothing(reader):
    turn = "> We decided to use Kafka.\n\n```\n# we decided to use RabbitMQ\n```\n2025-01-01 12:00:00 ERROR we decided to use NATS\n"
    other = "We decided to use Kafka."
    assert kinds(reader, ("user", turn), ("system", other), ("tool", other)) == []


def test_what_says_the_same_is_kept_once_and_a_small_difference_is_kept(reader):
    turns = [
        ("user", "we decided to use port 8080 for the api"),
        ("assistant", "Noted."),
        ("user", "so we decided to use port 8080 for the api"),
        ("user", "we decided to use port 9090 for the metrics"),
    ]
    texts = [text for _, text in kinds(reader, *turns)]
    assert len(texts) == 2 and "8080" in texts[0] and "9090" in texts[1]


def test_labels_and_headings_are_believed(reader):
    turn = "## Next steps\n- Rotate the keys of the gateway\n- [x] Write the changelog\n\n**Root cause:** the lock is per connection.\n\nDecision: we keep SQLite."
    assert kinds(reader, ("user", turn)) == [
        ("todo", "Rotate the keys of the gateway"),
        ("fact", "Root cause: the lock is per connection."),
        ("decision", "Decision: we keep SQLite."),
    ]


def test_names_are_found(reader):
    said = "we decided to use PostgreSQL for the `OrderService`"
    (idea,) = read_ideas([("user", said)], reader)
    assert {(entity.name, entity.type) for entity in idea.entities} == {
        ("PostgreSQL", "technology"),
        ("OrderService", "symbol"),
    }


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
    cases("ideas-what-the-last-report-leaves"),
)
def test_what_the_last_report_leaves_to_do_is_open(reader, said, left):
    turns = [("user", "Cache the carts."), ("assistant", f"I cached the carts in Redis. {said}")]
    assert (
        any(said in idea.text for idea in read_ideas(turns, reader) if idea.kind == "todo") == left
    )


PIECES = [said for said, _ in PLAIN] + [
    *(
        "yes",
        "no",
        "go with 2",
        "\x00\ud800",
        "我们决定使用PostgreSQL。为什么？",
        "why?",
        "It works now.",
    ),
    "## Next steps\n- rotate the keys\n- [ ] write docs",
    "Options:\n\n1. use Redis\n2. use Kafka",
    "Root cause: the lock is per connection. That fixed it.",
    "```\ncode\n```",
    "Want me to switch the ids to random ones?",
]
TURNS = st.lists(
    st.tuples(
        st.sampled_from(["user", "assistant", "assistant", "system"]),
        st.lists(st.sampled_from(PIECES) | st.text(max_size=12), max_size=4).map("\n\n".join),
    ),
    max_size=8,
)


@settings(max_examples=25, deadline=None)
@given(TURNS)
def test_ideas_are_few_different_and_in_the_words_of_their_turns(reader, turns):
    found = read_ideas(turns, reader)
    assert [idea.turn for idea in found] == sorted(idea.turn for idea in found)
    assert len({idea.text for idea in found}) == len(found)
    for idea in found:
        role, text = turns[idea.turn]
        assert role in ("user", "assistant")
        assert idea.kind in (*LASTING, "question", "todo")
        assert len(idea.text) <= 400
        assert set(re.findall(r"\w+", idea.text)) <= set(re.findall(r"\w+", text))
