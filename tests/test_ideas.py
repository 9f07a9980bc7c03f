"""From a conversation to the ideas worth keeping, by the packaged judge."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.ingest.ideas import LASTING, read_ideas
from bethink.judge import Judge

REPLY = ("assistant", "Understood.")
PLAIN = [
    ("Watch out: staging is wiped every Sunday night.", "gotcha"),
    ("Careful, the importer drops rows without an id.", "gotcha"),
    ("We switch from the ESP32 to the STM32 because the WiFi stack resets under load.", "decision"),
    ("Always run the linter before you commit.", "preference"),
    ("I prefer small commits with a reason.", "preference"),
    ("We use Jest for unit tests.", "fact"),
    ("Tickets are in Jira under the key SHOP.", "fact"),
    ("We decided to keep the monorepo because releases go together.", "decision"),
    ("We moved billing from PostgreSQL to CockroachDB.", "decision"),
    ("Which database do we use for the orders service?", "question"),
    ("TODO: rotate the signing key before March", "todo"),
]


@pytest.fixture(scope="module")
def reader():
    return Judge(threads=2)


def kinds(reader, *turns):
    return [(idea.kind, idea.text) for idea in read_ideas(turns, reader)]


KEPT = [
    ([("user", "Let's move on to the billing page."), ("assistant", "Understood.")], []),
    ([("user", "ok, thanks"), ("assistant", "Understood.")], []),
    ([("user", "Go ahead."), ("assistant", "Understood.")], []),
    ([("user", "That fixed it."), ("assistant", "Understood.")], []),
    ([("user", "It works now!"), ("assistant", "Understood.")], []),
    ([("user", "Show me the diff."), ("assistant", "Understood.")], []),
    ([("user", "Perhaps Redis, not sure yet."), ("assistant", "Understood.")], []),
    (
        [
            ("user", "hi, can you fix the failing test?"),
            ("assistant", "Sure! Let me look at the file first."),
            ("assistant", "Now let me run the tests."),
            ("assistant", "I'm updating the fixture, since the message has changed."),
            ("assistant", "I changed the fixture. All 41 tests pass. Want me to commit?"),
            ("user", "yes please"),
            ("assistant", "Committed as `f5cbb41`."),
            ("user", "thanks!"),
        ],
        [],
    ),
    (
        [
            (
                "user",
                "> We decided to use Kafka.\n\n```\n# we decided to use RabbitMQ\n```\n2025-01-01 12:00:00 ERROR we decided to use NATS\n",
            ),
            ("system", "We decided to use Kafka."),
            ("tool", "We decided to use Kafka."),
        ],
        [],
    ),
    (
        [
            ("user", "Please write the lifetime down in the docs later."),
            ("assistant", "Understood."),
        ],
        [("todo", "Please write the lifetime down in the docs later.")],
    ),
    (
        [
            (
                "user",
                "## Next steps\n- Rotate the keys of the gateway\n- [x] Write the changelog\n\n**Root cause:** the lock is per connection.\n\nDecision: we keep SQLite.",
            )
        ],
        [],
    ),
    (
        [
            (
                "assistant",
                "## Next steps\n- Rotate the keys of the gateway\n- [x] Write the changelog\n\n**Root cause:** the lock is per connection.\n\nDecision: we keep SQLite.",
            )
        ],
        [
            ("todo", "Rotate the keys of the gateway"),
            ("fact", "Root cause: the lock is per connection."),
            ("decision", "Decision: we keep SQLite."),
        ],
    ),
    (
        [
            (
                "user",
                "Ok, we keep the sessions in Redis for 12 hours. Never log session ids, they are credentials.",
            ),
            ("assistant", "Understood."),
        ],
        [
            ("decision", "Ok, we keep the sessions in Redis for 12 hours."),
            ("preference", "Never log session ids, they are credentials."),
        ],
    ),
    (
        [
            (
                "user",
                "Back to the control board: I changed my mind. We switch from the ESP32 to the STM32 because the WiFi stack resets under load.",
            ),
            ("assistant", "Understood."),
        ],
        [
            (
                "decision",
                "We switch from the ESP32 to the STM32 because the WiFi stack resets under load.",
            )
        ],
    ),
    (
        [
            ("user", "We still have to write the migration for the sessions table."),
            ("assistant", "Understood."),
        ],
        [("todo", "We still have to write the migration for the sessions table.")],
    ),
    (
        [
            (
                "user",
                "Let's settle where the sessions live. We will keep sessions in Valkey instead of Redis, because Redis changed its licence. Please add the client to requirements.txt.",
            ),
            (
                "assistant",
                "Done: I added valkey==6.1 to requirements.txt, and sessions go to Valkey.",
            ),
        ],
        [
            (
                "decision",
                "We will keep sessions in Valkey instead of Redis, because Redis changed its licence.",
            )
        ],
    ),
    (
        [
            ("user", "Put the footer on the to-do list, we do it in the next session."),
            ("assistant", "Understood."),
        ],
        [("todo", "Put the footer on the to-do list, we do it in the next session.")],
    ),
    (
        [("user", "From now on answer in German and keep it short."), ("assistant", "Understood.")],
        [("preference", "From now on answer in German and keep it short.")],
    ),
    (
        [
            (
                "user",
                "We decided to ship on Tuesdays only, because support is thin on Fridays. Remind me to update the runbook.",
            ),
            ("assistant", "Understood."),
        ],
        [
            (
                "decision",
                "We decided to ship on Tuesdays only, because support is thin on Fridays.",
            ),
            ("todo", "Remind me to update the runbook."),
        ],
    ),
    (
        [("user", "We go with MySQL for reporting. We stay with Postgres for orders.")],
        [
            ("decision", "We go with MySQL for reporting."),
            ("decision", "We stay with Postgres for orders."),
        ],
    ),
    (
        [
            ("user", "Use Redis for sessions. Remind me to rotate the signing keys next week."),
            ("assistant", "Sessions are stored in Redis now. They live for 30 minutes."),
        ],
        [
            ("decision", "Use Redis for sessions."),
            ("todo", "Remind me to rotate the signing keys next week."),
        ],
    ),
    (
        [
            ("user", "Will this be removed next month? Add a filter to the backlog page."),
            (
                "assistant",
                "The page has a filter for the status now. I added an index on the status column.",
            ),
        ],
        [],
    ),
    (
        [
            ("user", "Go ahead."),
            (
                "assistant",
                "I've switched the queue from RabbitMQ to SQS because RabbitMQ lost messages on restart.",
            ),
        ],
        [
            (
                "decision",
                "I've switched the queue from RabbitMQ to SQS because RabbitMQ lost messages on restart.",
            )
        ],
    ),
    (
        [("user", "The tiers are Solo, Crew and Fleet. Marketing signed it off today.")],
        [("fact", "The tiers are Solo, Crew and Fleet. Marketing signed it off today.")],
    ),
]


def test_what_lasts_is_kept_as_what_it_is_and_talk_of_the_moment_leaves_nothing(reader):
    for said, kind in PLAIN:
        (idea,) = read_ideas([("user", said), REPLY], reader)
        assert (idea.kind, idea.text, idea.firm) == (kind, said, True)
        assert 0 < idea.confidence <= 1
    for turns, expected in KEPT:
        assert kinds(reader, *turns) == expected
    (idea,) = read_ideas([("user", "we decided to use PostgreSQL for the `OrderService`")], reader)
    named = {(entity.name, entity.type) for entity in idea.entities}
    assert named == {("PostgreSQL", "technology"), ("OrderService", "symbol")}
    turns = [("user", "We use Jest for unit tests."), REPLY] * 2
    turns[2] = ("user", "Tickets are in Jira under the key SHOP.")
    assert [idea.turn for idea in read_ideas(turns, reader, first=2)] == [2]


# What a conversation holds, the kinds that are asked for, and a word of each idea that is kept of them.
OPEN = [
    (
        [
            ("user", "How long do sessions live?"),
            ("assistant", "Sessions live thirty minutes. The limit stands in config/session.rb."),
            ("user", "Add a test for the refund path."),
            ("assistant", "I added three cases to the refund tests. All of them pass now."),
        ],
        ("question", "todo"),
        [],
    ),
    (
        [
            ("user", "we decided to use port 8080 for the api"),
            ("assistant", "Noted."),
            ("user", "so we decided to use port 8080 for the api"),
            ("user", "we decided to use port 9090 for the metrics"),
        ],
        (),
        ["8080", "9090"],
    ),
    (
        [
            ("user", "Which to-dos do we have?"),
            (
                "assistant",
                "**Pending to-dos:**\n\n| # | Title | Area | Age |\n|---|---|---|---|\n| 1 | Move the invoice numbering into the database | api | 14d |\n| 2 | Add a dark theme to the admin pages | ui | today |\n\n| Column | Meaning |\n|---|---|\n| area | the part of the shop that a to-do belongs to |\n",
            ),
            ("user", "Thanks. How long do sessions live?"),
            (
                "assistant",
                "Next steps:\n\n- read the session store\n\nSessions live thirty minutes.",
            ),
            ("user", "Fine."),
        ],
        ("todo",),
        ["Move the invoice numbering into the database", "Add a dark theme to the admin pages"],
    ),
    (
        [
            (
                "user",
                "Can you answer this issue?\n\n## Steps\n\n> We decided to drop PostgreSQL.\n\n- The team uses Oracle.\n- Always deploy on Fridays.",
            ),
            ("assistant", "Understood."),
        ],
        ("fact", "preference", "decision"),
        [],
    ),
    ([("user", "Could we drop the old queue on Friday?"), ("assistant", "ok")], ("todo",), []),
    (
        [
            ("user", "Where do the carts live? I think about moving them into the database."),
            ("assistant", "Let me look."),
        ],
        ("todo", "decision"),
        [],
    ),
]

LAST_REPORT_LEAVES = [
    ("Branch is 3 ahead of origin — push it when you're ready.", True),
    ("The migration still needs to run on staging.", True),
    ("The migration of the carts is still to do.", True),
    ("Want me to commit this as well?", False),
    ("The pending request limit is counted per user.", False),
    ("Now amending the commit, which is not pushed.", False),
    ("Open points: the retry helper needs a test.", True),
    ("The admin page is not done yet.", True),
]


def test_what_was_answered_done_or_said_by_others_is_no_idea_and_what_waits_is_one(reader):
    for turns, asked, expected in OPEN:
        found = [text for kind, text in kinds(reader, *turns) if not asked or kind in asked]
        assert len(found) == len(expected), found
        assert all(word in text for word, text in zip(expected, found, strict=True)), found
    for said, left in LAST_REPORT_LEAVES:
        report = f"I cached the carts in Redis. {said}"
        turns = [("user", "Cache the carts."), ("assistant", report)]
        assert any(said in text for kind, text in kinds(reader, *turns) if kind == "todo") == left


PIECES = [said for said, _ in PLAIN] + [
    "yes",
    "no",
    "go with 2",
    "\x00\ud800",
    "我们决定使用PostgreSQL。为什么？",
    "why?",
    "It works now.",
    "## Next steps\n- rotate the keys\n- [ ] write docs",
    "Options:\n\n1. use Redis\n2. use Kafka",
    "Root cause: the lock is per connection. That fixed it.",
    "```\ncode\n```",
    "Want me to switch the ids to random ones?",
]
ROLES = st.sampled_from(["user", "assistant", "assistant", "system"])
SAID = st.lists(st.sampled_from(PIECES) | st.text(max_size=12), max_size=4).map("\n\n".join)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(ROLES, SAID), max_size=8))
def test_ideas_are_few_different_and_in_the_words_of_their_turns(reader, turns):
    found = read_ideas(turns, reader)
    assert [idea.turn for idea in found] == sorted(idea.turn for idea in found)
    assert len({idea.text for idea in found}) == len(found)
    for idea in found:
        role, text = turns[idea.turn]
        assert role in ("user", "assistant") and idea.kind in (*LASTING, "question", "todo")
        assert len(idea.text) <= 400
        assert set(re.findall(r"\w+", idea.text)) <= set(re.findall(r"\w+", text))
