"""What a user pasted is not the user's word: where it begins, and on whose word its ideas are kept."""

from __future__ import annotations

import memories
import pytest
from test_conversations import transcript

from bethink.features import conversations
from bethink.ingest.ideas import is_said
from bethink.ingest.sentences import find_pasted, is_mostly_pasted

clock, open_memory, hashing = memories.clock, memories.open_memory, memories.hashing

PASTED = [
    ("Can you answer this?\n\n# Issue 4711: what changed\n\n- We use MySQL", 2),
    ("look at this:\n- use MySQL\n- drop Redis", 1),
    ("Look at this\n\nWe decided to use MySQL.", 2),
    ("What do you think of this?\n\n> quoted", 2),
    ("# Issue 12: broken\n\n## Description\n\nWe use MySQL now.", 0),
    ("Fix the bug below.\n\n## Steps to reproduce\n\n1. start", 2),
    ("Fix this issue.\n\nWe use MySQL now.", 2),
    ("Here is the email from Bob:\n\nWe decided to drop Postgres.", 2),
    ("The README says: we use MySQL from now on.", 0),
    ("Bob wrote:\nlet's use MySQL", 0),
    ("From: bob@shop.test\nSubject: DB\n\nWe use MySQL.", 0),
    ("[10:32] bob: we use mysql\n[10:33] al: ok, decided", 0),
    ("bob opened this issue 3 days ago\n\n## Description\nUse MySQL", 0),
    ("what does this mean?\n\nTypeError: x", 2),
    ("Review the following report.\n\nSummary: use MySQL.", 2),
    ("here's the log\nerror 1", 1),
    ("schau dir das an\n\nWir nehmen MySQL", 2),
]
OWN = [
    "We decided to use PostgreSQL, not MySQL.",
    "Let's use Redis for the cache.\n\n- keep the TTL at 60 s\n- no persistence",
    "# Task\n\nWe use PostgreSQL. Never use MySQL.",
    "Please fix the login bug. Use argon2 from now on.",
    "Please fix this.\n\nUse argon2 from now on.",
    "Can you check it?\n\nWe use argon2 now.",
    "Here is the plan:\n- use Redis\n- drop memcached",
    "Look at the code and fix it",
    "I looked at this yesterday. We go with Redis.\nAlso drop memcached.",
    "Add tests.\n\nWe keep the API stable.",
    "please summarize it for me",
]


@pytest.mark.parametrize(("text", "line"), PASTED)
def test_pasted_text_begins_where_it_is_announced_or_looks_like_a_document(text, line):
    assert find_pasted(text) == line


@pytest.mark.parametrize("text", OWN)
def test_what_the_user_writes_is_the_users(text):
    assert find_pasted(text) is None and not is_mostly_pasted(text)


def test_an_idea_is_said_by_the_user_if_its_words_stand_before_what_was_pasted():
    turn = "We stay with PostgreSQL. What do you make of this?\n\nThe team moves to MySQL soon."
    assert is_said("We stay with PostgreSQL", turn)
    assert not is_said("The team moves to MySQL", turn)


def test_what_a_user_pasted_is_no_idea(hashing, tmp_path):
    project = hashing.project.root
    said = "We decided to keep PostgreSQL for all orders. Look at this:\n\nWe decided to move every invoice to MySQL."
    turns = ("user", said), ("assistant", "I see.")
    file = transcript(tmp_path / "talk.jsonl", "talk", project, *turns)
    list(conversations.read_on(hashing, file, "claude"))
    kept = {one.kind: one for one in hashing.list()}
    assert kept["context"].content == said
    assert "PostgreSQL" in kept["decision"].content and "MySQL" not in kept["decision"].content
