"""What every store must do when it is written to: duplicates, changes, relations, sources, and all of a batch or nothing."""

from __future__ import annotations

import pytest
from case_tables import cases
from stores import (
    HERE,
    MODEL,
    NOW,
    OTHER,
    by_meaning,
    by_words,
    change,
    content_hash,
    day,
    edit,
    everything,
    forget,
    ids,
    make,
    pick,
    purge,
    put,
    replace,
    seen,
    snapshot,
    tell,
    vector,
    vectors_of,
    write,
)

from bethink.errors import BethinkError, InvalidInput
from bethink.store.places import cache_key
from bethink.store.transfer import Bundle
from bethink.types import Change, Entity, Entry, Relation, Session, Source

# Duplicates and tombstones


def test_the_same_text_is_stored_once_per_scope(store):
    (first,) = tell(store, "We deploy on Fridays")
    receipt = put(store, make("We deploy on Fridays"))
    (outcome,) = receipt.outcomes
    assert (outcome.status, outcome.id, outcome.duplicate_of) == ("duplicate", first.id, first.id)
    assert (outcome.similarity, receipt.added) == (1.0, 0)
    assert store.count(everything()) == len(store.history(first.id)) == 1


def test_duplicates_are_looked_up_by_hash_among_the_living_of_a_scope(store):
    (live,) = tell(store, "alive")
    tell(store, "gone", deleted_at=day(2))
    put(store, make("passage"), unique=False)
    hashes = [content_hash(text) for text in ("alive", "gone", "passage", "unknown")]
    assert store.duplicates(hashes, HERE) == {content_hash("alive"): live.id}
    assert store.duplicates(hashes, OTHER) == store.duplicates([], HERE) == {}


def test_a_forgotten_text_may_be_told_again_but_not_brought_back_beside_its_twin(store):
    (first,) = tell(store, "We deploy on Fridays")
    forget(store, first)
    again, third = tell(store, "We deploy on Fridays", "something else")
    with pytest.raises(InvalidInput, match=again.id):
        change(store, first.id, "restore", deleted_at=None)
    with pytest.raises(InvalidInput, match=again.id):
        edit(store, third, "We deploy on Fridays")
    assert store.get([first.id])[0].deleted_at == NOW
    assert store.get([again.id])


def test_what_was_purged_is_refused_unless_it_is_allowed(store):
    first, other = tell(store, "the salary is 12345", "something else")
    assert purge(store, first).purged == 1
    assert store.find_purged([first.content_hash, content_hash("else")]) == {first.content_hash}
    again = make(first.content)
    for memory, unique in ((again, True), (again._replace(scope=OTHER), True), (again, False)):
        assert put(store, memory, unique=unique).outcomes[0].status == "purged"
    fields = {"content": again.content, "content_hash": again.content_hash}
    with pytest.raises(InvalidInput, match="was purged"):
        change(store, other.id, **fields)
    assert [memory.content for memory in store.scan(everything(HERE, OTHER))] == ["something else"]
    write(store, change=(Change(other.id, "update", fields),), allow_purged=True)
    for text in ("something else", again.content, "something else"):  # to which it may go back
        edit(store, other, text)
    assert put(store, again, allow_purged=True).outcomes[0].status == "added"


def test_what_was_not_stored_replaces_nothing(store):
    """A re-import of a purged or known text brings its relations along; they must not point at what is not there."""
    old, new, known = tell(store, "We use MySQL", "We moved to PostgreSQL", "known already")
    purge(store, new)
    for text in (new.content, known.content):
        copy = make(text)
        changes = (Change(old.id, "supersede", {"superseded_by": copy.id, "valid_to": day(3)}),)
        put(store, copy, relate=(Relation(copy.id, old.id, "supersedes"),), change=changes)
        assert store.get([copy.id]) == store.relations([old.id, copy.id]) == []
        assert store.get([old.id])[0].superseded_by is None
    assert old.id in ids(store.list(seen()))


# Changing


def test_a_change_sets_the_fields_and_keeps_before_and_after(store):
    (memory,) = tell(store, "The limit is 10", importance=5.0)
    new = {"content": "The limit is 20", "importance": 8.0}
    edit(store, memory, new["content"], actor="claude", at=day(5), importance=8.0)
    (now,) = store.get([memory.id])
    assert {name: getattr(now, name) for name in new} == new
    assert (now.updated_at, now.created_at) == (day(5), day(1))
    assert now.content_hash == content_hash(new["content"])
    added, changed = store.history(memory.id)
    assert (added.action, added.at, dict(added.before), dict(added.after)) == ("add", NOW, {}, {})
    assert (changed.action, changed.at) == ("update", day(5))
    assert changed.actor in ("claude", "claude for user")  # where the store acts for a person
    assert changed.before == {"content": "The limit is 10", "importance": 5.0}
    assert changed.after == new
    assert added.number < changed.number
    assert store.check(deep=True) == []


def test_each_field_that_can_change(store):
    for number, fields in enumerate(cases("store-contract-writing-each-field-that-can", globals())):
        (memory,) = tell(store, f"a text {number}")
        change(store, memory.id, **fields)
        (now,) = store.get([memory.id])
        assert {name: getattr(now, name) for name in fields} == fields
        assert [event.action for event in store.history(memory.id)] == ["add", "update"]
    assert store.check(deep=True) == []


def test_a_use_is_counted_and_leaves_no_history(store):
    memory, other = tell(store, "a text", "another")
    write(store, at=day(21), access=(memory.id,))
    write(store, at=day(22), access=(memory.id, make("unknown").id))
    used, unused = store.get([memory.id, other.id])
    assert pick(used, "access_count last_accessed updated_at") == (2, day(22), memory.updated_at)
    assert (unused.access_count, unused.last_accessed) == (0, None)
    assert [event.action for event in store.history(memory.id)] == ["add"]
    change(store, memory.id, "vote", usefulness=1.0)  # is kept in history but is no edit
    (now,) = store.get([memory.id])
    assert (now.usefulness, now.updated_at) == (1.0, memory.updated_at)
    assert store.history(memory.id)[-1].after == {"usefulness": 1.0}


def test_relations_are_seen_from_both_ends_once_and_can_be_taken_back(store):
    a, b, c = (memory.id for memory in tell(store, *"abc"))
    builds, contradicts = Relation(a, b, "builds_on"), Relation(c, a, "contradicts")
    write(store, relate=(builds, builds, contradicts))
    for id, expected in ((a, {builds, contradicts}), (b, {builds}), (c, {contradicts})):
        found = store.relations([id])
        assert {relation[:3] for relation in found} == {relation[:3] for relation in expected}
        assert {relation.created_at for relation in found} == {NOW}
    assert len(store.relations([a, b, c])) == 2
    write(store, unrelate=(builds._replace(type="relates_to"), builds))
    assert store.relations([b]) == []
    assert len(store.relations([a])) == 1


# Sources


def test_a_source_is_kept_with_how_far_it_was_read(store):
    source = Source("docs/a.md", "markdown", "hash-1", 42, {"title": "A"})
    for now in (source, source._replace(hash="hash-2", position=50)):
        write(store, sources=((HERE, now),))
        assert store.source(HERE, "docs/a.md") == now
    assert store.source(OTHER, "docs/a.md") is store.source(HERE, "docs/b.md") is None


PAGE = {"source": "docs/a.md", "source_type": "markdown"}


def test_a_source_that_is_read_anew_replaces_its_own_memories_and_nothing_else(store):
    named = {**PAGE, "entities": (Entity("Thing"),)}
    own = tell(store, *"plain used voted linked kept edited believed reread".split(), **named)
    plain, used, voted, linked, kept, edited, believed, reread = own
    (note,) = tell(store, "a note")
    others = (note, *tell(store, "other", **{**named, "source": "docs/b.md"}))
    others += tuple(tell(store, "far", **named, scope=OTHER))
    vote = Change(voted.id, "vote", {"usefulness": 1.0})
    link = Relation(note.id, linked.id, "builds_on")
    write(store, access=(used.id,), change=(vote,), relate=(link,))
    edit(store, edited, "edited, said Anna")
    change(store, believed.id, "believe", trust=3)
    change(store, reread.id, "reread", section="Elsewhere")
    fresh = make("new", **named)
    gone = ((HERE, "docs/a.md"), (HERE, "never/read.md"))
    assert put(store, fresh, retire=gone, keep=(kept.id,)).retired == 7
    living = ids([kept, fresh, *others])
    assert ids(store.list(seen(HERE, OTHER))) == living
    hidden = ids([used, voted, linked, edited, believed])
    assert ids(store.scan(everything(HERE, OTHER))) == living | hidden
    assert store.get([plain.id]) == store.history(plain.id) == []
    assert [event.action for event in store.history(used.id)] == ["add", "retire"]
    assert [event.action for event in store.history(edited.id)] == ["add", "update", "retire"]
    assert store.get([used.id])[0].deleted_at == NOW
    assert plain.id not in by_words(store, "plain", everything())
    assert plain.id not in by_meaning(store, plain.content, everything())
    assert store.check(deep=True) == []


def test_what_was_told_under_the_name_of_a_document_is_none_of_its_passages(store):
    uri = "docs/a.md"
    told, linked = tell(store, "told of the document", "told of it and linked", source=uri)
    write(store, relate=(Relation(linked.id, told.id, "builds_on"),))
    for hash in ("one", "two"):
        passage, read = make(f"passage {hash}", **PAGE), (HERE, Source(uri, "markdown", hash))
        receipt = put(store, passage, sources=(read,), retire=((HERE, uri),))
    assert receipt.retired == 1
    types = {told.id: "note", linked.id: "note", passage.id: "markdown"}
    assert {memory.id: memory.source_type for memory in store.list(seen())} == types
    assert [held.memory.id for held in store.list_passages(HERE, uri)] == [passage.id]
    for id in (passage.id, told.id):
        assert [memory.id for memory in store.around(id, 9, 9)] == [id]
    change(store, told.id, tags=["edited"])
    moved = write(store, move=((HERE, uri, "docs/b.md"),), vanish=((HERE, "docs/b.md"),))
    assert moved.retired == 1
    sources = {memory.id: memory.source for memory in store.list(seen())}
    assert sources == dict.fromkeys((told.id, linked.id), "docs/b.md")
    before = snapshot(store)
    store.rebuild()
    assert snapshot(store) == before
    assert store.check(deep=True) == []


# All or nothing


GHOST = make("an owl that must not stay", source="docs/ghost.md", source_type="markdown")
ADDING = {
    "add": (Entry(GHOST._replace(entities=(Entity("Ghost"),)), vectors_of(GHOST)),),
    "model": MODEL,
    "cache": {"77" * 16: [vector("ghost")]},
}


def change_to(which: str, **fields) -> Change:
    return Change(which, "update", fields)


TWIN = {"content": "a thing", "content_hash": content_hash("a thing")}
TAKEN = Entry(make("twin", id="taken"))
# What goes wrong after other parts of the batch went in, by the ids of known memories.
FAILING = dict(cases("store-contract-writing-failing-batches", {**globals(), "make": make}))


@pytest.mark.parametrize("batch", FAILING.values(), ids=FAILING)
def test_a_batch_that_fails_half_way_changes_nothing_at_all(backend, store, batch):
    known = tell(store, "an owl", "redis text", "a thing", "fourth of a kind", source="kept")
    write(store, relate=(Relation(known[0].id, known[1].id, "builds_on"),))
    before = snapshot(store)
    with pytest.raises((BethinkError, ValueError)):
        write(store, **ADDING | batch([memory.id for memory in known]))
    assert snapshot(store) == snapshot(backend.open()) == before
    assert store.check(deep=True) == []
    assert put(store, make("an owl that may stay")).added == 1


# No trace


def test_the_last_memory_of_a_conversation_can_be_purged_and_its_transcript_is_read_on(store):
    uri, state = "/t/a.jsonl", {"turns": 1, "scope": HERE, "open": {"asked": "a vector"}}
    said = make("Kumquats for lunch", source=uri, source_type="transcript", session="s1")
    metadata = {"sessions": {"s1": state, "s2": state}, "host": "claude"}
    source = Source(uri, "transcript", position=7, metadata=metadata)
    talk = Session("s1", HERE, "claude", "Lunch", uri)
    put(store, said, unique=False, sessions=(talk,), sources=((HERE, source),))
    purge(store, said)
    assert store.list(everything()) == []
    (session,) = store.sessions((HERE,))
    assert (session.title, session.source) == ("", uri)
    left = store.source(HERE, uri)
    assert left.position == 7
    assert left.metadata["sessions"] == {"s1": {"turns": 1, "scope": HERE}, "s2": state}
    write(store, vanish=((HERE, uri),))
    assert store.sessions((HERE,))[0].source == uri
    assert store.check(deep=True) == []


def test_a_purge_takes_the_names_that_a_memory_had_earlier(store):
    bird, marsupial = Entity("Zebrafinch"), Entity("Quokka")
    memory = make("Owls", entities=(bird, marsupial))
    put(store, memory, make("Mice", entities=(marsupial,)))
    change(store, memory.id, entities=())
    purge(store, memory)
    assert store._column("SELECT name FROM entities") == ["Quokka"]


def test_a_purge_takes_the_vectors_of_every_text_under_every_heading(store):
    text, edited, other = "the secret plan", "the secret plan of May", "something else"
    under = [f"{heading}\n{each}" for heading in ("Old", "New") for each in (text, edited)]
    every = {each: cache_key(each) for each in (text, edited, *under, other)}

    def cached() -> set[str]:
        found = store.read_cache(list(every.values()), MODEL)
        return {each for each, key in every.items() if key in found}

    memory = make(text, section="Old", **PAGE)
    put(store, memory, cache={key.hex(): [vector(each)] for each, key in every.items()})
    change(store, memory.id, "reread", section="New")
    edit(store, memory, edited)
    assert cached() == set(every)
    purge(store, memory)
    assert cached() == {other}


# What something that is gone had replaced or answered


@pytest.mark.parametrize("end", ["purge", "reset", "gone"])
def test_what_it_replaced_is_valid_again_as_before_and_what_it_answered_is_open(store, end):
    (old,) = tell(store, "We use MySQL", valid_to=day(90))
    open_, twice = tell(store, "Which queue?", "Which cache?", kind="question")
    (new,) = tell(store, "We use PostgreSQL", scope=OTHER, created_at=day(4))
    (other,) = tell(store, "Redis it is")
    replace(store, new, old, day(4))
    for answer, asked in ((new, open_), (new, twice), (other, twice)):
        answered = (Change(asked.id, "answer", {"answered": True}),)
        write(store, change=answered, relate=(Relation(answer.id, asked.id, "answers"),))
    if end == "purge":
        purge(store, new)
    elif end == "reset":
        assert store.reset([OTHER]) == 1
    else:
        assert store.take(Bundle(gone=(new.id,))) == ()
    assert store.get([new.id]) == store.relations([new.id]) == []
    back, unanswered, answered = store.get([old.id, open_.id, twice.id])
    assert (back.superseded_by, back.valid_to) == (None, day(90))
    assert (unanswered.answered, answered.answered) == (False, True)
    assert ids(store.list(seen())) == ids([old, open_, twice, other])
    assert store.history(old.id)[-1].action == "restore"
    assert store.check(deep=True) == []


def test_what_two_replaced_goes_back_to_the_other_when_one_is_purged(store):
    old, new, newest = (make(f"{at}", created_at=day(at)) for at in (1, 4, 5))
    put(store, old, new, newest)
    replace(store, new, old, day(4))
    for each in (old, new):
        replace(store, newest, each, day(5))
    purge(store, newest)
    assert ids(store.list(seen())) == {new.id}
    (back,) = store.get([old.id])
    assert (back.superseded_by, back.valid_to) == (new.id, day(4))
    purge(store, new)
    assert ids(store.list(seen())) == {old.id}
    assert store.check(deep=True) == []


def test_the_end_that_a_memory_had_comes_back_with_it(store):
    chain, since = tell(store, "one", "two", valid_to=day(90))
    (never,) = tell(store, "three")
    new, newer = tell(store, "four", "five", created_at=day(4))
    for old in (chain, since, never):
        replace(store, new, old)
    replace(store, newer, chain)
    change(store, since.id, valid_to=day(60))
    for old in (chain, since, never, chain):
        change(store, old.id, "restore", superseded_by=None)
    ends = [memory.valid_to for memory in store.get([chain.id, since.id, never.id])]
    assert ends == [day(90), day(60), None]


def test_no_write_makes_what_replaces_it_replaced_by_it(store):
    one, two, three = tell(store, "one", "two", "three")
    replace(store, two, one)
    replace(store, three, two)
    for old in (two, three):
        with pytest.raises(InvalidInput, match="circle"):
            replace(store, one, old)
    assert ids(store.list(seen())) == {three.id}
    change(store, one.id, "restore", superseded_by=None)
    replace(store, one, three)
    assert ids(store.list(seen())) == {one.id}
