"""Questions that need more than one memory, standing rules with a condition, and references from one memory to another."""

import re
from datetime import timedelta

import pytest
from memories import NOW
from stores import make, put, write

from bethink.app.mcp import tools
from bethink.model import Session, Source

DAY = timedelta(days=1)


def call(memory, **given):
    checked = tools.TOOLS["search_memories"].read_arguments(given)
    return tools.call(memory, "search_memories", checked).text


def talk(memory, session, when, *texts):
    """Store the turns of a conversation."""
    source = f"{session}.jsonl"
    place = {"source": source, "source_type": "transcript", "session": session, "kind": "context"}
    write(
        memory.store,
        scopes={memory.scope: ("shop", "")},
        sessions=(Session(session, memory.scope, "claude"),),
        sources=((memory.scope, Source(source, "transcript")),),
    )
    turns = [
        make(text, scope=memory.scope, created_at=when, position=at, lines=(at, at), **place)
        for at, text in enumerate(texts)
    ]
    put(memory.store, *turns, embed=False, unique=False)
    memory.reindex()


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("How many badgers did I photograph?", id="how-many"),
        pytest.param("In what order did I photograph the badgers?", id="order"),
        pytest.param("Summarise the badgers that I photographed", id="summary"),
    ],
)
def test_a_question_for_all_of_something_is_answered_oldest_first(open_memory, question):
    memory = open_memory()
    for number in (2, 0, 1):
        text = f"Today I photographed badger number {number} at the pond."
        talk(memory, f"session{number}", NOW - 30 * DAY + number * DAY, text)
    shown = re.findall(r"badger number (\d)", call(memory, query=question))
    assert shown == ["0", "1", "2"]


def test_a_question_for_all_of_something_says_from_how_many_sessions(open_memory):
    memory = open_memory()
    for number in range(3):
        text = f"Today I photographed badger number {number} at the pond."
        talk(memory, f"session{number}", NOW - 30 * DAY + number * DAY, text)
    answer = call(memory, query="How many badgers did I photograph?")
    assert "Oldest first (3 from 3 places):" in answer


def test_a_question_about_content_is_not_answered_by_the_last_session(open_memory):
    memory = open_memory()
    talk(memory, "earlier", memory.clock() - 30 * DAY, "Evan is reading the novel Middlemarch.")
    talk(memory, "latest", memory.clock(), "What are you reading these days?", "A novel, mostly.")
    first = memory.search("What novel is Evan reading?").hits[0].memory
    assert "Middlemarch" in first.content


def test_a_standing_rule_comes_when_its_condition_is_asked_about(open_memory):
    memory = open_memory()
    rule = memory.add("Always confirm allergies when I ask about snacks", kind="preference")
    for number in range(8):
        memory.add(f"Snack number {number} of the office kitchen is crackers", kind="fact")
    found = [hit.memory.id for hit in memory.search("Which snacks are there?").hits[:3]]
    assert rule.id in found


def test_a_rule_whose_condition_is_not_met_gains_nothing(open_memory):
    memory = open_memory()
    memory.add("Always confirm allergies when I ask about snacks", kind="preference")
    (hit,) = memory.search("Do we confirm orders?").hits
    assert "trigger" not in hit.why


def test_a_hit_that_refers_to_another_brings_it(open_memory):
    memory = open_memory()
    memory.add("We photograph badgers as decided in the review of the otter lens")
    target = memory.add("The review of the otter lens decided: 300 mm, no flash")
    for number in range(6):
        memory.add(f"Kettle number {number} of the kitchen is blue")
    hits = memory.search("How do we photograph badgers?", rerank=True).hits
    assert next(hit for hit in hits if hit.memory.id == target.id).why["referred"] > 0
