"""Two copies of a memory made one again: the longer history is right, the later word stands, nothing is lost."""

from __future__ import annotations

import itertools
import random

import pytest
from case_tables import cases
from stores import day, make

from bethink.features.sync import apply_fields, merge
from bethink.store.rows import Record, stamp
from bethink.store.transfer import version
from bethink.types import Entity, Event

MEMORY = make("Tea at four", id="0" * 36, importance=5.0)
ADDED = Event(day(1), "user", "add", {}, {})


def base(*events: Event, **fields) -> Record:
    memory = MEMORY
    for event in events:
        memory = apply_fields(memory, event.after)._replace(updated_at=event.at)
    return Record(memory._replace(**fields), True, (ADDED, *events))


def said(number: int, action: str = "update", actor: str = "user", before=None, **after) -> Event:
    return Event(day(number), actor, action, before or {}, after)


FORGOTTEN = said(2, "forget", deleted_at=stamp(day(2)))
NOT_USEFUL = said(2, "vote", "anna", before={"usefulness": 0.0}, usefulness=-1.0)
USEFUL = [
    said(2, "vote", before={"usefulness": 0.0}, usefulness=2.0),
    said(3, "vote", before={"usefulness": 2.0}, usefulness=3.0),
]
CASES = cases("merging-what-stands", {**globals(), "Entity": Entity})


@pytest.mark.parametrize(("mine", "theirs", "expected", "conflicts"), CASES)
def test_each_field_keeps_what_was_last_said_of_it(mine, theirs, expected, conflicts):
    one, other = base(*mine), base(*theirs)
    for first, second in ((one, other), (other, one)):
        merged = merge(first, second)
        assert {name: getattr(merged.record.memory, name) for name in expected} == expected
        assert merged.conflicts == conflicts
        actions = {event.action for event in merged.record.events}
        assert actions >= {event.action for event in (*mine, *theirs)}
    assert version(merge(one, other).record) == version(merge(other, one).record)


def test_any_order_of_merging_three_ends_the_same():
    chance = random.Random(7)
    for _ in range(50):
        copies = []
        for who in ("a", "b", "c"):
            days = sorted(chance.sample(range(2, 20), chance.randint(1, 3)))
            copies.append(base(*(said(at, actor=who, **_field(chance)) for at in days)))
        ends = set()
        for first, second, third in itertools.permutations(copies):
            ends.add(version(merge(merge(first, second).record, third).record))
        assert len(ends) == 1


def _field(chance: random.Random) -> dict:
    number = chance.randint(0, 9)
    text, summary = {"content": f"Text {number}"}, {"summary": f"Summary {number}"}
    return chance.choice([{"importance": float(number)}, text, summary, text | summary])


def test_uses_of_both_are_kept_and_do_not_make_a_difference():
    one = base(access_count=3, last_accessed=day(4))
    other = base(access_count=5, last_accessed=day(2))
    assert version(one) == version(other)
    merged = merge(one, other).record.memory
    assert (merged.access_count, merged.last_accessed) == (5, day(4))


def test_vectors_of_the_text_that_stands_stay_with_it():
    vectors = (("m", 2, b"12345678"),)
    one = base(said(2, importance=7.0))._replace(vectors=vectors)
    other = base(said(3, content="Tea at six"))
    assert merge(one, other).record.vectors == ()
    assert merge(one, base(said(3, kind="gotcha"))).record.vectors in (vectors, ())
    assert merge(one, other._replace(vectors=vectors)).record.vectors == vectors
