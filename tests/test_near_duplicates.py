"""Near duplicates told apart from statements that only look alike: two tables of pairs, (new, old), by the words and through the
front door with the model that is shipped."""

from __future__ import annotations

import pytest
import test_embed
from case_tables import cases

from bethink.api import Bethink
from bethink.ingest.lexicon import say_the_same

model_or_pull, local = test_embed.model_or_pull, test_embed.local

# What adds nothing: articles, inflections, punctuation, spelling, or less than is known.
ALIKE = cases("near-duplicates-alike")
# What says something else in nearly the same words.
DIFFERENT = cases("near-duplicates-different")
DIRECTIONS = [(new, old, True) for new, old in ALIKE] + [
    (new, old, False) for new, old in DIFFERENT
]


@pytest.mark.parametrize(
    ("new", "old", "alike"), DIRECTIONS, ids=[f"{new} / {old}" for new, old, _ in DIRECTIONS]
)
def test_the_words_tell_whether_anything_is_added(new, old, alike):
    assert say_the_same(new, old) is alike


def test_memory_keeps_what_says_something_else_and_not_what_repeats(local, tmp_path, monkeypatch):
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path / "home"))
    status = {}
    for number, (new, old, _) in enumerate(DIRECTIONS):
        (tmp_path / str(number)).mkdir()
        with Bethink(
            tmp_path / "memory.db", directory=tmp_path / str(number), embedder=local
        ) as memory:
            memory.add(old)
            status[new, old] = memory.add(new).status
    assert [pair for pair in DIFFERENT if status[pair] != "added"] == []
    assert [pair for pair in ALIKE if status[pair] == "added"] == []


def test_who_only_thinks_of_something_replaces_nothing(local, tmp_path, monkeypatch):
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path / "home"))
    (tmp_path / "shop").mkdir()
    with Bethink(tmp_path / "memory.db", directory=tmp_path / "shop", embedder=local) as memory:
        known = memory.add("We use Redis for the cache")
        thought = memory.add("We are thinking of Valkey for the cache")
        assert not thought.supersedes and [one.id for one in thought.proposals] == [known.id]
        assert memory.add("The cache runs on Valkey, Redis is gone").supersedes
