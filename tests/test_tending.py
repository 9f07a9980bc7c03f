"""Duplicates, contradictions and consolidation, through the command line and on small memories."""

from datetime import timedelta

import pytest
from memories import NOW

from bethink.features import knowledge, tending
from bethink.model import Passage, Source

FRIDAY = "We deploy the shop on Fridays from the main branch"
SAME = (FRIDAY, "We deploy the shop on Fridays, from the main branch.")
OTHER = "Invoices are rounded to full cents"


@pytest.fixture
def memory(open_memory):
    return open_memory(judge=None)  # test_compare has what a judge makes of it


@pytest.fixture
def tell(memory, clock):
    def tell(*texts, kind="fact", **fields):
        ids = []
        for text in texts:
            clock.move(hours=1)
            ids.append(memory.add(text, dedup=False, kind=kind, **fields).id)
        return ids

    return tell


def planned(memory):
    return [step.action for step in tending.plan_consolidation(memory)]


def test_what_says_the_same_is_listed(memory, tell):
    first, second, _ = tell(*SAME, OTHER)
    memory.vote(first, 1)
    (pair,) = tending.find_duplicates(memory)
    assert (pair.keep.id, pair.other.id, pair.reason) == (first, second, tending.SAME_MEANING)


def test_what_changed_since_the_plan_is_left_alone(memory, tell, clock):
    first, second, _ = tell(*SAME, OTHER)
    steps = tending.plan_consolidation(memory)
    clock.move(minutes=1)
    memory.update(first, content="Something else altogether")
    memory.update(second, content="And this as well")
    assert tending.apply_steps(memory, steps) == 0


REDACTED = " The deploy token is [REDACTED:github-token]."


@pytest.mark.parametrize(
    "texts",
    [(FRIDAY, FRIDAY.replace("Fri", "Mon")), [text + REDACTED for text in SAME]],
    ids=["another day", "what was redacted may differ"],
)
def test_alike_but_different_is_no_duplicate(memory, tell, texts):
    tell(*texts)
    assert tending.find_duplicates(memory) == []
    assert "merge" not in planned(memory)


@pytest.fixture
def two_files(memory):
    """Two files that say the same."""
    folder = memory.project.worktree / ".claude/knowledge/patterns"
    folder.mkdir(parents=True)
    for name, text in zip("ab", SAME, strict=True):
        (folder / f"{name}.md").write_text(text)
    assert knowledge.index(memory).memories_added == 2


@pytest.mark.usefixtures("two_files")
@pytest.mark.parametrize("find", [tending.find_duplicates, tending.find_contradictions])
def test_what_two_files_say_is_not_compared(memory, find):
    assert find(memory) == []


@pytest.mark.usefixtures("two_files")
def test_what_a_person_says_is_compared_with_files(memory, tell):
    (mine,) = tell(SAME[0], kind="pattern")
    assert {pair.keep.id for pair in tending.find_duplicates(memory)} == {mine}


def test_without_a_judge_words_make_no_contradiction(memory, tell):
    tell(FRIDAY, FRIDAY.replace("deploy", "do not deploy"), OTHER, kind="decision")
    assert tending.find_contradictions(memory) == []


def test_without_a_judge_consolidation_closes_no_question(memory, tell):
    tell("Which cache keeps the sessions of the shop?", kind="question")
    tell("The cache that keeps the sessions of the shop is Redis", kind="decision")
    assert planned(memory) == []


def test_what_analyze_inferred_is_compared_with_nothing(memory, tell):
    tell(FRIDAY)
    inferred = [Passage(text, kind="fact") for text in SAME]
    memory.ingest([(Source("analysis:README.md", "analysis"), inferred)], replace_sources=False)
    assert tending.find_duplicates(memory) == tending.find_contradictions(memory) == []


def test_what_was_marked_as_contradicting_is_listed_until_one_is_replaced(memory, tell):
    one, other = tell("Owls hunt at night", "The barn has no owls")
    memory.link(one, other, "contradicts")
    assert [pair.reason for pair in tending.find_contradictions(memory)] == [
        tending.MARKED_CONTRADICTING
    ]
    memory.forget(other)
    assert tending.find_contradictions(memory) == []


def test_consolidation_merges_nothing_across_scopes(memory, tell):
    tell(SAME[0])
    memory.add(SAME[1], personal=True)
    assert planned(memory) == []


def test_consolidation_merges_no_open_item_into_a_statement(memory, tell):
    tell(SAME[0], kind="todo")
    tell(SAME[1], kind="decision")
    assert planned(memory) == []


def test_consolidation_merges_no_open_item_into_a_closed_one(memory, tell):
    (closed,) = tell(SAME[0], kind="todo")
    memory.update(closed, answered=True)
    tell(SAME[1], kind="todo")
    assert planned(memory) == []


def test_consolidation_merges_nothing_across_trust(memory, tell):
    tell(SAME[0])
    agent = Source("note:agent", "note")
    memory.ingest([(agent, [Passage(SAME[1], kind="fact")])], trust=2, replace_sources=False)
    assert planned(memory) == []


@pytest.fixture
def planned_steps(memory, tell, clock):
    """A plan that merges two memories and hides an expired one; the ids of all three."""
    first, second = tell(*SAME)
    (brief,) = tell("The staging password rotates this week", expires_at=NOW + timedelta(days=1))
    clock.move(days=10)
    return tending.plan_consolidation(memory), (first, second, brief)


def test_consolidation_merges_and_expires(planned_steps):
    steps, _ = planned_steps
    assert {step.action for step in steps} == {"merge", "expire"}


def test_planning_changes_nothing(memory, planned_steps):
    steps, _ = planned_steps
    assert tending.plan_consolidation(memory) == steps


@pytest.fixture
def consolidated(memory, planned_steps):
    """Ids of the memory that was kept, the one that was merged, and the expired one."""
    steps, (first, second, brief) = planned_steps
    assert tending.apply_steps(memory, steps) == len(steps)
    seen = {one.id for one in memory.list(limit=50)}
    kept, merged = (first, second) if first in seen else (second, first)
    return kept, merged, brief


def test_what_was_merged_or_expired_is_hidden(memory, consolidated):
    kept, merged, brief = consolidated
    assert {kept, merged, brief} & {one.id for one in memory.list(limit=50)} == {kept}


@pytest.mark.usefixtures("consolidated")
def test_nothing_is_left_to_consolidate(memory):
    assert planned(memory) == []


def test_consolidation_can_be_undone(memory, consolidated):
    kept, merged, brief = consolidated
    memory.restore(merged)
    memory.restore(brief)
    assert {kept, merged} <= {one.id for one in memory.list(limit=50)}


def test_a_merge_is_in_the_history(memory, consolidated):
    _, merged, _ = consolidated
    assert "merge" in [event.action for event in memory.history(merged)]


@pytest.mark.usefixtures("consolidated")
def test_consolidation_leaves_no_damage(memory):
    assert memory.check(deep=True) == []


def test_old_turns_that_nothing_was_taken_from_are_retired_by_policy(memory):
    usual = Passage("", session="s1", created_at=NOW - timedelta(days=500))
    said = [("context", f"turn {at} about owls", f"t{at}") for at in range(3)]
    said.append(("decision", "We keep owls in the barn", "t1"))
    passages = [
        usual._replace(kind=kind, content=text, metadata={"turn": turn})
        for kind, text, turn in said
    ]
    memory.ingest([(Source("/t/a.jsonl", "transcript"), passages)], replace_sources=False)
    (step,) = [step for step in tending.plan_consolidation(memory) if step.action == "retire"]
    assert {one.metadata["turn"] for one in step.memories} == {"t0", "t2"}
    memory.config = memory.config._replace(keep_context_days=0)
    assert planned(memory) == []
