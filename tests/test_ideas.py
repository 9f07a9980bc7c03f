"""From a conversation to the ideas worth keeping, by the packaged judge."""

import re

import pytest
from case_tables import cases
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.ingest.ideas import LASTING, read_ideas
from bethink.judge import Judge

REPLY = ("assistant", "Understood.")
PLAIN = cases("ideas-plain")


@pytest.fixture(scope="module")
def reader():
    return Judge(threads=2)


def kinds(reader, *turns):
    return [(idea.kind, idea.text) for idea in read_ideas(turns, reader)]


def test_what_lasts_is_kept_as_what_it_is_and_talk_of_the_moment_leaves_nothing(reader):
    for said, kind in PLAIN:
        (idea,) = read_ideas([("user", said), REPLY], reader)
        assert (idea.kind, idea.text, idea.firm) == (kind, said, True)
        assert 0 < idea.confidence <= 1
    for turns, expected in cases("ideas-kept"):
        assert kinds(reader, *turns) == expected
    (idea,) = read_ideas([("user", "we decided to use PostgreSQL for the `OrderService`")], reader)
    named = {(entity.name, entity.type) for entity in idea.entities}
    assert named == {("PostgreSQL", "technology"), ("OrderService", "symbol")}
    turns = [("user", "We use Jest for unit tests."), REPLY] * 2
    turns[2] = ("user", "Tickets are in Jira under the key SHOP.")
    assert [idea.turn for idea in read_ideas(turns, reader, first=2)] == [2]


# What a conversation holds, the kinds that are asked for, and a word of each idea that is kept of them.
def test_what_was_answered_done_or_said_by_others_is_no_idea_and_what_waits_is_one(reader):
    for turns, asked, expected in cases("ideas-open"):
        found = [text for kind, text in kinds(reader, *turns) if not asked or kind in asked]
        assert len(found) == len(expected), found
        assert all(word in text for word, text in zip(expected, found, strict=True)), found
    for said, left in cases("ideas-what-the-last-report-leaves"):
        report = f"I cached the carts in Redis. {said}"
        turns = [("user", "Cache the carts."), ("assistant", report)]
        assert any(said in text for kind, text in kinds(reader, *turns) if kind == "todo") == left


PIECES = [said for said, _ in PLAIN] + cases("ideas-pieces")
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
