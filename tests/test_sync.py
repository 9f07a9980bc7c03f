"""Sources that are read again: skipped, replaced, moved, retired; through `Bethink.sync` on a real database."""

import pytest
from memories import Counting

from bethink.api import Bethink
from bethink.errors import InvalidInput
from bethink.ingest.sync import Document, Skipped, Synced
from bethink.model import Passage


@pytest.fixture
def memory(tmp_path):
    with Bethink(tmp_path / "memory.db", directory=tmp_path, embedder=Counting()) as memory:
        yield memory


def document(uri: str, *texts: str, hash: str | None = None, **fields) -> Document:
    passages = [
        Passage(text, section=f"Part {at}", lines=(at * 10 + 1, at * 10 + 9), **fields)
        for at, text in enumerate(texts)
    ]
    return Document(uri, hash or f"{uri}:{hash or '|'.join(texts)}", lambda: passages)


def sync(memory: Bethink, *documents: Document | Skipped, **options) -> Synced:
    options = {"collection": "docs", "type": "markdown", **options}
    return memory.sync(documents, **options)


def held(memory: Bethink) -> dict[str, str]:
    return {found.content: found.id for found in memory.list(limit=1000)}


OWLS = "Owls hunt at night over the long meadow."
BATS = "Bats sleep in the bell tower all winter."
CATS = "Cats keep the granary free of mice."


def test_a_changed_source_replaces_only_changed_passages(memory):
    other = document("b.md", CATS)
    sync(memory, document("a.md", OWLS, BATS), other)
    before = held(memory)
    memory.embedder.texts = 0
    changed = sync(memory, document("a.md", OWLS, "Bats leave the tower in spring."), other)
    after = held(memory)
    assert (changed.changed, changed.unchanged) == (("a.md",), 1)
    assert (changed.memories_added, changed.memories_kept, changed.memories_retired) == (1, 1, 1)
    assert after[OWLS] == before[OWLS] and after[CATS] == before[CATS] and BATS not in after
    assert memory.embedder.texts == 1
    assert not memory.check(deep=True)


@pytest.fixture
def moved(memory):
    """Ids of a passage that was kept under a new heading."""
    sync(memory, document("a.md", OWLS, BATS))
    id = held(memory)[BATS]
    passages = [Passage("New first."), Passage(BATS, section="Nocturnal mammals", lines=(40, 44))]
    sync(memory, Document("a.md", "moved", lambda: passages))
    return id


def test_a_kept_passage_has_its_new_place(memory, moved):
    (found,) = memory.get(moved)
    assert (found.section, found.lines, found.position) == ("Nocturnal mammals", (40, 44), 1)


@pytest.mark.parametrize(
    ("section", "events"),
    [
        pytest.param("Part 1", 1, id="another line"),
        pytest.param("Nocturnal mammals", 2, id="another heading"),
    ],
)
def test_only_a_new_heading_is_in_the_history_of_a_kept_passage(memory, section, events):
    first = [Passage(OWLS), Passage(BATS, section="Part 1", lines=(1, 5))]
    sync(memory, Document("a.md", "1", lambda: first))
    id = held(memory)[BATS]
    passages = [Passage("New first."), Passage(BATS, section=section, lines=(40, 44))]
    sync(memory, Document("a.md", "2", lambda: passages))
    assert len(memory.history(id)) == events


@pytest.mark.parametrize("mode", ["keyword", "vector"])
def test_a_kept_passage_is_found_by_its_new_heading(memory, moved, mode):
    assert memory.search("nocturnal mammals", mode=mode).hits[0].memory.id == moved


@pytest.mark.usefixtures("moved")
def test_a_kept_passage_leaves_no_damage(memory):
    assert memory.check(deep=True) == []


def test_a_vanished_source_is_read_anew_when_it_returns_but_not_what_a_person_forgot(memory):
    sync(memory, document("a.md", OWLS), document("b.md", CATS))
    used = held(memory)[OWLS]
    memory.vote(used, 1)
    gone = sync(memory, document("b.md", CATS))
    assert (gone.vanished, gone.memories_retired) == (("a.md",), 1)
    assert list(held(memory)) == [CATS]
    assert used not in [hit.memory.id for hit in memory.search("owls").hits]
    back = sync(memory, document("a.md", OWLS), document("b.md", CATS))
    assert back.added == ("a.md",)
    assert held(memory)[OWLS] == used, "a memory that was used comes back with its id and votes"
    assert memory.get(used)[0].usefulness == 1
    sync(memory, document("a.md", OWLS, BATS))
    memory.forget(held(memory)[BATS])
    sync(memory, document("a.md", OWLS, BATS, CATS))
    assert set(held(memory)) == {OWLS, CATS}


def test_a_moved_source_keeps_its_ids(memory):
    sync(memory, document("guides/a.md", OWLS, BATS, hash="h"))
    before = held(memory)
    memory.embedder.texts = 0
    there = document("manual/birds.md", OWLS, BATS, hash="h")
    moved = sync(memory, there, alive=lambda uri: uri != "guides/a.md")
    assert moved.moved == (("guides/a.md", "manual/birds.md"),)
    assert moved.added == moved.vanished == ()
    assert held(memory) == before and memory.embedder.texts == 0
    assert {found.path for found in memory.list()} == {"manual/birds.md"}
    assert memory.search("manual", mode="keyword").hits
    assert not memory.search("guides", mode="keyword").hits
    assert sync(memory, there) == Synced(unchanged=1)
    assert not memory.check(deep=True)


def test_a_source_moved_onto_an_earlier_one_takes_its_place(memory):
    first, copy = document("a.md", OWLS, hash="h"), document("b.md", OWLS, hash="h")
    sync(memory, first, document("b.md", CATS))
    memory.vote(held(memory)[CATS], 1)
    sync(memory, first)
    moved = sync(memory, copy, alive=lambda uri: uri != "a.md")
    assert moved.moved == (("a.md", "b.md"),) and list(held(memory)) == [OWLS]
    assert not memory.check(deep=True)


def test_a_copy_is_no_move(memory):
    first, copy = document("a.md", OWLS, hash="h"), document("b.md", OWLS, hash="h")
    sync(memory, first, document("b.md", CATS))
    sync(memory, first)
    sync(memory, copy, alive=lambda uri: uri != "a.md")
    both = sync(memory, first, copy)
    assert (both.moved, both.added, both.unchanged) == ((), ("a.md",), 1)
    assert len(memory.list()) == 2


def test_an_unreadable_source_keeps_its_memories(memory):
    def broken() -> list[Passage]:
        raise InvalidInput("The table on line 3 has no end.", "Close it.")

    sync(memory, document("a.md", OWLS), document("b.md", CATS))
    unread = (Skipped("a.md", "permission denied"), Document("b.md", "2", broken))
    result = sync(memory, *unread, document("c.md", "<private>the vault code</private>", BATS))
    told = (unread[0], Skipped("b.md", "The table on line 3 has no end"))
    assert (result.skipped, result.vanished) == (told, ())
    assert (result.added, result.memories_added) == (("c.md",), 1)
    assert set(held(memory)) == {OWLS, CATS, BATS}


def test_collections_do_not_retire_each_others_sources(memory):
    sync(memory, document("a.md", OWLS))
    other = sync(memory, document("b.md", CATS), collection="import:b")
    assert other.vanished == () and len(memory.list()) == 2
    taken = sync(memory, document("a.md", OWLS), collection="import:b", looked=lambda _: False)
    assert (taken.changed, taken.memories_kept) == (("a.md",), 1)  # its last reader owns it
    assert sync(memory) == Synced() and len(memory.list()) == 2
