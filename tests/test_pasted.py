"""What a user pasted is not the user's word: where it begins, and on whose word its ideas are kept."""

from __future__ import annotations

import memories
import pytest
from case_tables import cases
from test_conversations import transcript

from bethink.features import conversations
from bethink.ingest.ideas import is_said
from bethink.ingest.sentences import find_pasted, is_mostly_pasted

clock, open_memory, hashing = memories.clock, memories.open_memory, memories.hashing

PASTED = cases("pasted-pasted")
OWN = cases("pasted-own")


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
