"""Near duplicates told apart from statements that only look alike: two tables of pairs, (new, old), by the words and through the
front door with the model that is shipped."""

import pytest
from case_tables import cases

from bethink.api import Bethink
from bethink.config import Config
from bethink.ingest.lexicon import say_the_same
from bethink.judge import Judge
from bethink.store.sqlite import SqliteStore

# What adds nothing: articles, inflections, punctuation, spelling, or less than is known.
ALIKE = cases("near-duplicates-alike")
# What says something else in nearly the same words.
DIFFERENT = cases("near-duplicates-different")


@pytest.fixture
def open_memory(local, tmp_path):
    """Opens memories of a project of that name, with one database and one judge for all."""
    store, config = SqliteStore(tmp_path / "memory.db"), Config()
    judge = Judge()

    def open_(name):
        (tmp_path / name).mkdir()
        place = {"directory": tmp_path / name, "config": config, "store": store}
        return Bethink(**place, embedder=local, judge=judge)

    yield open_
    store.close()


# The same in another order, which the judge is believed about; and notes of which some want something done.
REWORDED, NOTES = cases("near-duplicates-reworded"), cases("near-duplicates-notes")


def test_memory_keeps_what_says_something_else_and_not_what_repeats(open_memory):
    assert [pair for pair in ALIKE if not say_the_same(*pair)] == []
    assert [pair for pair in DIFFERENT if say_the_same(*pair)] == []
    status = {}
    for number, (new, old) in enumerate((*ALIKE, *DIFFERENT)):
        memory = open_memory(str(number))
        memory.add(old)
        status[new, old] = memory.add(new).status
    assert [pair for pair in DIFFERENT if status[pair] != "added"] == []
    assert [pair for pair in ALIKE if status[pair] == "added"] == []
    for number, (new, old) in enumerate(REWORDED):
        memory = open_memory(f"reworded-{number}")
        known = memory.add(old)
        assert memory.add(new).duplicate_of == known.id


def test_who_only_thinks_replaces_nothing_and_who_wants_something_done_leaves_a_todo(open_memory):
    memory = open_memory("shop")
    known = memory.add("We use Redis for the cache")
    thought = memory.add("We are thinking of Valkey for the cache")
    assert not thought.supersedes and [one.id for one in thought.proposals] == [known.id]
    assert not memory.add("The cache runs on Valkey, I think.").supersedes
    assert memory.add("The cache runs on Valkey, Redis is gone").supersedes
    memory = open_memory("notes")
    for text, is_todo in NOTES:
        assert (memory.one(memory.add(text).id).kind == "todo") == is_todo, text
    assert memory.one(memory.add("Ask Ben about the logo", kind="fact").id).kind == "fact"
