"""Duplicates, contradictions and consolidation, through the command line and on small memories."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cli_runner import cli  # noqa: F401

from bethink.api import Bethink
from bethink.embed import HashingEmbedder
from bethink.features import knowledge, tending
from bethink.types import Passage, Source

NOW = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture
def clock():
    return [NOW - timedelta(days=10)]


@pytest.fixture
def memory(tmp_path, clock, monkeypatch):
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(
        "bethink.judge.load", lambda config: None
    )  # test_compare has what a judge makes of it
    with Bethink(
        tmp_path / "memory.db",
        directory=tmp_path,
        embedder=HashingEmbedder(),
        clock=lambda: clock[0],
    ) as memory:
        yield memory


def told(memory, clock, *texts, **fields):
    ids = []
    for text in texts:
        clock[0] += timedelta(hours=1)
        ids.append(memory.add(text, dedup=False, **fields).id)
    return ids


SAME = (
    "We deploy the shop on Fridays from the main branch",
    "We deploy the shop on Fridays, from the main branch.",
)
OTHER = "Invoices are rounded to full cents"


def test_what_says_the_same_is_listed_with_the_one_to_keep(memory, clock):
    first, second = told(memory, clock, *SAME, kind="fact")
    told(memory, clock, OTHER, kind="fact")
    memory.vote(first, 1)
    (pair,) = tending.find_duplicates(memory)
    assert (pair.keep.id, pair.other.id, pair.reason) == (first, second, tending.SAME)


def test_alike_but_different_is_listed_after_and_never_merged(memory, clock):
    told(
        memory,
        clock,
        "We deploy the shop on Fridays from the main branch",
        "We deploy the shop on Mondays from the main branch",
        kind="fact",
    )
    (pair,) = tending.find_duplicates(memory)
    assert pair.reason != tending.SAME
    assert [
        step.action for step in tending.plan_consolidation(memory) if step.action == "merge"
    ] == []


def test_what_two_files_say_is_not_compared_and_what_a_person_says_is(memory, clock):
    folder = memory.project.worktree / ".claude/knowledge/patterns"
    folder.mkdir(parents=True)
    for name, text in zip("ab", SAME, strict=True):
        (folder / f"{name}.md").write_text(text)
    assert knowledge.index(memory).memories_added == 2
    assert tending.find_duplicates(memory) == tending.find_contradictions(memory) == []
    (mine,) = told(memory, clock, SAME[0], kind="pattern")
    assert {pair.keep.id for pair in tending.find_duplicates(memory)} == {mine}


def test_statements_that_exchange_a_word_or_a_denial_disagree(memory, clock):
    told(
        memory,
        clock,
        "We deploy the shop on Fridays from the main branch",
        "We do not deploy the shop on Fridays from the main branch",
        kind="decision",
    )
    told(memory, clock, OTHER, kind="decision")
    (pair,) = tending.find_contradictions(memory)
    assert pair.keep.content.startswith("We do not"), "the newer one stands first"
    assert pair.reason == "seems to say otherwise"


def test_what_was_marked_as_contradicting_is_listed_first_until_one_is_replaced(memory, clock):
    one, other = told(memory, clock, "Owls hunt at night", "The barn has no owls", kind="fact")
    memory.link(one, other, "contradicts")
    assert [pair.reason for pair in tending.find_contradictions(memory)] == [tending.MARKED]
    memory.forget(other)
    assert tending.find_contradictions(memory) == []


def test_consolidation_merges_answers_expires_and_retires_and_everything_can_be_undone(
    memory, clock
):
    first, second = told(memory, clock, *SAME, kind="fact")
    (question,) = told(
        memory, clock, "Which cache keeps the sessions of the shop?", kind="question"
    )
    (answer,) = told(
        memory, clock, "The cache that keeps the sessions of the shop is Redis", kind="decision"
    )
    (brief,) = told(
        memory, clock, "The staging password rotates this week", expires_at=NOW - timedelta(days=1)
    )
    clock[0] = NOW
    steps = tending.plan_consolidation(memory)
    assert {step.action for step in steps} == {"merge", "answer", "expire"}
    assert tending.plan_consolidation(memory) == steps, "planning changes nothing"
    assert tending.apply_steps(memory, steps) == len(steps)
    seen = {one.id for one in memory.list(limit=50)}
    kept, merged = (first, second) if first in seen else (second, first)
    assert merged not in seen and brief not in seen
    assert memory.store.get([question])[0].answered is True
    assert (answer, question, "answers") in {
        (r.source, r.target, r.type) for r in memory.relations(question)
    }
    assert [step.action for step in tending.plan_consolidation(memory)] == []
    memory.restore(merged)
    memory.restore(brief)
    assert {merged, kept} <= {one.id for one in memory.list(limit=50)}
    assert "merge" in [event.action for event in memory.history(merged)]
    assert not memory.check(deep=True)


def test_a_memory_that_changed_since_the_plan_is_left_alone(memory, clock):
    first, second = told(memory, clock, *SAME, kind="fact")
    steps = tending.plan_consolidation(memory)
    clock[0] += timedelta(minutes=1)
    memory.update(first, content="Something else altogether")
    memory.update(second, content="And this as well")
    assert tending.apply_steps(memory, steps) == 0


def test_old_turns_that_nothing_was_taken_from_are_retired_by_policy(memory, clock):
    old = [
        Passage(
            f"turn {number} about owls",
            kind="context",
            session="s1",
            position=number,
            created_at=NOW - timedelta(days=500),
            metadata={"turn": f"t{number}"},
        )
        for number in range(3)
    ]
    idea = Passage(
        "We keep owls in the barn",
        kind="decision",
        session="s1",
        created_at=NOW - timedelta(days=500),
        metadata={"turn": "t1"},
    )
    memory.ingest([(Source("/t/a.jsonl", "transcript"), [*old, idea])], replace_sources=False)
    clock[0] = NOW
    (step,) = [step for step in tending.plan_consolidation(memory) if step.action == "retire"]
    assert {one.metadata["turn"] for one in step.memories} == {"t0", "t2"}
    memory.config = memory.config._replace(keep_context_days=0)
    assert tending.plan_consolidation(memory) == []


def test_without_a_model_words_decide(tmp_path, clock, monkeypatch):
    monkeypatch.setenv("BETHINK_EMBEDDING", "none")
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path / "home"))
    with Bethink(tmp_path / "memory.db", directory=tmp_path, clock=lambda: clock[0]) as memory:
        told(memory, clock, *SAME, OTHER, kind="fact")
        assert len(tending.find_duplicates(memory)) == 1


def test_what_was_redacted_makes_no_two_alike(memory, clock):
    told(
        memory,
        clock,
        *(f"{text} The deploy token is [REDACTED:github-token]." for text in SAME),
        kind="fact",
    )
    assert tending.find_duplicates(memory)[0].reason != tending.SAME
    assert [step for step in tending.plan_consolidation(memory) if step.action == "merge"] == []


def test_the_commands_show_plan_and_do(cli):  # noqa: F811
    for text in (*SAME, OTHER):
        cli.ok("add", text, "--no-dedup", "--kind", "fact")
    assert "says the same" in cli.ok("duplicates")
    assert cli.json("contradictions") == []
    assert "1 step would be done" in cli("consolidate", "--dry-run").err
    assert "There is no terminal" in cli("consolidate").err
    assert len(cli.json("list")) == 3
    assert cli.json("consolidate", "--yes")["done"] == 1
    assert len(cli.json("list")) == 2
    assert "Nothing to tidy up" in cli("consolidate", "--yes").err
