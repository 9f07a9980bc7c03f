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
    everything,
    ids,
    make,
    pick,
    put,
    seen,
    snapshot,
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
    first = make("We deploy on Fridays")
    put(store, first)
    receipt = put(store, make("We deploy on Fridays"))
    (outcome,) = receipt.outcomes
    assert pick(outcome, "status id duplicate_of similarity") == (
        "duplicate",
        first.id,
        first.id,
        1.0,
    )
    assert receipt.added == 0
    assert store.count(everything()) == 1
    assert len(store.history(first.id)) == 1


def test_duplicates_are_looked_up_by_hash_among_the_living_of_a_scope(store):
    live, gone, passage = make("alive"), make("gone", deleted_at=day(2)), make("passage")
    put(store, live, gone)
    put(store, passage, unique=False)
    hashes = [content_hash(text) for text in ("alive", "gone", "passage", "unknown")]
    assert store.duplicates(hashes, HERE) == {content_hash("alive"): live.id}
    assert store.duplicates(hashes, OTHER) == {}
    assert store.duplicates([], HERE) == {}


def test_a_forgotten_text_may_be_told_again_but_not_brought_back_beside_its_twin(store):
    first, again = make("We deploy on Fridays"), make("We deploy on Fridays")
    put(store, first)
    change(store, first.id, "forget", deleted_at=day(2))
    assert put(store, again).outcomes[0].status == "added"
    with pytest.raises(InvalidInput, match=again.id):
        change(store, first.id, "restore", deleted_at=None)
    with pytest.raises(InvalidInput, match=again.id):
        put(store, third := make("something else"))
        change(
            store,
            third.id,
            content="We deploy on Fridays",
            content_hash=content_hash("We deploy on Fridays"),
        )
    assert store.get([first.id])[0].deleted_at == day(2)


def test_what_was_purged_is_refused_unless_it_is_allowed(store):
    first = make("the wedding is on the 12th of May")
    put(store, first)
    receipt = write(store, purge=(first.id,))
    assert receipt.purged == 1
    assert store.find_purged([first.content_hash, content_hash("else")]) == {first.content_hash}
    again = make("the wedding is on the 12th of May")
    assert put(store, again).outcomes[0].status == "purged"
    assert put(store, again._replace(scope=OTHER)).outcomes[0].status == "purged"
    assert put(store, again, unique=False).outcomes[0].status == "purged"
    assert store.count(everything(HERE, OTHER)) == 0
    assert put(store, again, allow_purged=True).outcomes[0].status == "added"


def test_what_was_not_stored_replaces_nothing(store):
    """A re-import of a purged or known text brings its relations along; they must not point at what is not there."""
    old, new, known = (
        make("We use MySQL"),
        make("We moved from MySQL to PostgreSQL"),
        make("known already"),
    )
    put(store, old, new, known)
    write(store, purge=(new.id,))
    for text in (new.content, known.content):
        copy = make(text)
        put(
            store,
            copy,
            relate=(Relation(copy.id, old.id, "supersedes"),),
            change=(Change(old.id, "supersede", {"superseded_by": copy.id, "valid_to": day(3)}),),
        )
        assert store.get([copy.id]) == []
        assert store.get([old.id])[0].superseded_by is None
        assert store.relations([old.id, copy.id]) == []
    assert old.id in ids(store.list(seen()))


# Changing


def test_a_change_sets_the_fields_and_keeps_before_and_after(store):
    memory = make("The limit is 10", importance=5.0)
    put(store, memory)
    change(
        store,
        memory.id,
        actor="claude",
        at=day(5),
        content="The limit is 20",
        content_hash=content_hash("The limit is 20"),
        importance=8.0,
    )
    (now,) = store.get([memory.id])
    assert pick(now, "content importance updated_at created_at") == (
        "The limit is 20",
        8.0,
        day(5),
        day(1),
    )
    assert now.content_hash == content_hash("The limit is 20")
    added, changed = store.history(memory.id)
    assert (added.action, added.at, dict(added.before), dict(added.after)) == ("add", NOW, {}, {})
    assert (changed.action, changed.at) == ("update", day(5))
    assert changed.actor in ("claude", "claude for user")  # where the store acts for a person
    assert changed.before == {"content": "The limit is 10", "importance": 5.0}
    assert changed.after == {"content": "The limit is 20", "importance": 8.0}
    assert added.number < changed.number
    assert store.check(deep=True) == []


def test_each_field_that_can_change(store):
    for number, fields in enumerate(cases("store-contract-writing-each-field-that-can", globals())):
        memory = make(f"a text {number}")
        put(store, memory)
        change(store, memory.id, **fields)
        (now,) = store.get([memory.id])
        assert {name: getattr(now, name) for name in fields} == fields
        assert [event.action for event in store.history(memory.id)] == ["add", "update"]
    assert store.check(deep=True) == []


def test_a_vote_is_kept_in_history_but_is_no_edit(store):
    memory = make("a text")
    put(store, memory)
    change(store, memory.id, "vote", usefulness=1.0)
    (now,) = store.get([memory.id])
    assert (now.usefulness, now.updated_at) == (1.0, memory.updated_at)
    assert store.history(memory.id)[-1].after == {"usefulness": 1.0}


def test_a_use_is_counted_and_leaves_no_history(store):
    memory, other = make("a text"), make("another")
    put(store, memory, other)
    write(store, at=day(21), access=(memory.id,))
    write(store, at=day(22), access=(memory.id, make("unknown").id))
    used, unused = store.get([memory.id, other.id])
    assert pick(used, "access_count last_accessed updated_at") == (2, day(22), memory.updated_at)
    assert (unused.access_count, unused.last_accessed) == (0, None)
    assert [event.action for event in store.history(memory.id)] == ["add"]


def test_relations_are_seen_from_both_ends_once_and_can_be_taken_back(store):
    a, b, c = (make(text) for text in "abc")
    put(
        store,
        a,
        b,
        c,
        relate=(
            Relation(a.id, b.id, "builds_on"),
            Relation(a.id, b.id, "builds_on"),
            Relation(c.id, a.id, "contradicts"),
        ),
    )
    seen_from = {
        name: {(r.source, r.target, r.type) for r in store.relations([memory.id])}
        for name, memory in zip("abc", (a, b, c), strict=True)
    }
    builds, contradicts = (a.id, b.id, "builds_on"), (c.id, a.id, "contradicts")
    assert seen_from == {"a": {builds, contradicts}, "b": {builds}, "c": {contradicts}}
    assert all(relation.created_at == NOW for relation in store.relations([a.id]))
    assert len(store.relations([a.id, b.id, c.id])) == 2
    write(store, unrelate=(Relation(a.id, b.id, "relates_to"), Relation(a.id, b.id, "builds_on")))
    assert store.relations([b.id]) == []
    assert len(store.relations([a.id])) == 1


# Sources


def test_a_source_is_kept_with_how_far_it_was_read(store):
    source = Source("docs/a.md", "markdown", "hash-1", 42, {"title": "A"})
    write(store, sources=((HERE, source),))
    assert store.source(HERE, "docs/a.md") == source
    assert store.source(OTHER, "docs/a.md") is None
    assert store.source(HERE, "docs/b.md") is None
    write(store, sources=((HERE, source._replace(hash="hash-2", position=50)),))
    assert store.source(HERE, "docs/a.md").hash == "hash-2"


def test_a_source_that_is_read_anew_replaces_its_own_memories_and_nothing_else(store):
    def passage(name: str, source: str = "docs/a.md", **fields):
        text, named = f"the {name} passage", (Entity("Thing"),)
        return make(text, source=source, source_type="markdown", entities=named, **fields)

    own = plain, used, voted, linked, kept = [
        passage(name) for name in "plain used voted linked kept".split()
    ]
    others = (passage("other", "docs/b.md"), note := make("a note"), passage("far", scope=OTHER))
    link = Relation(note.id, linked.id, "builds_on")
    put(store, *own, *others, unique=False, relate=(link,))
    vote = Change(voted.id, "vote", {"usefulness": 1.0})
    write(store, access=(used.id,), change=(vote,))
    fresh = passage("new")
    gone = ((HERE, "docs/a.md"), (HERE, "never/read.md"))
    assert put(store, fresh, unique=False, retire=gone, keep=(kept.id,)).retired == 4
    living = ids([kept, fresh, *others])
    assert ids(store.list(seen(HERE, OTHER))) == living
    assert ids(store.scan(everything(HERE, OTHER))) == living | ids([used, voted, linked])
    assert store.get([plain.id]) == store.history(plain.id) == []
    assert [event.action for event in store.history(used.id)] == ["add", "retire"]
    assert store.get([used.id])[0].deleted_at == NOW
    assert plain.id not in by_words(store, "plain", everything())
    assert plain.id not in by_meaning(store, plain.content, everything())
    assert store.check(deep=True) == []


def test_what_was_told_under_the_name_of_a_document_is_none_of_its_passages(store):
    uri = "docs/a.md"
    told, linked = (
        make("told of the document", source=uri),
        make("told of it and linked", source=uri),
    )
    put(store, told, linked, relate=(Relation(linked.id, told.id, "builds_on"),))
    for hash in ("one", "two"):
        passage = make(f"passage {hash}", source=uri, source_type="markdown")
        receipt = put(
            store, passage, sources=((HERE, Source(uri, "markdown", hash)),), retire=((HERE, uri),)
        )
    assert receipt.retired == 1
    assert ids(store.list(seen())) == {told.id, linked.id, passage.id}
    assert {memory.id: memory.source_type for memory in store.list(seen())} == {
        told.id: "note",
        linked.id: "note",
        passage.id: "markdown",
    }
    assert [held.memory.id for held in store.list_passages(HERE, uri)] == [passage.id]
    assert [memory.id for memory in store.around(passage.id, 9, 9)] == [passage.id]
    assert [memory.id for memory in store.around(told.id, 9, 9)] == [told.id]
    change(store, told.id, tags=["edited"])
    assert (
        write(store, move=((HERE, uri, "docs/b.md"),), vanish=((HERE, "docs/b.md"),)).retired == 1
    )
    assert {(memory.id, memory.source) for memory in store.list(seen())} == {
        (told.id, "docs/b.md"),
        (linked.id, "docs/b.md"),
    }
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


def edit(which: str, **fields) -> Change:
    return Change(which, "update", fields)


def failing_batches():
    """What goes wrong after other parts of the batch went in, by the ids of known memories."""
    twin = {"content": "a thing", "content_hash": content_hash("a thing")}
    taken = Entry(make("twin", id="taken"))
    yield "an unknown id", lambda known: {"change": (edit(known[1], importance=1.0), edit("x"))}
    yield "a fixed field", lambda known: {"purge": known[:1], "change": (edit(known[1], id="x"),)}
    yield "no text", lambda known: {"access": known[:1], "change": (edit(known[1], kind="\udcff"),)}
    yield "a taken id", lambda known: {"add": (*ADDING["add"], taken, taken._replace(unique=False))}
    yield "no vector", lambda known: {"add": (*ADDING["add"], Entry(make("another"), ["none"]))}
    small = Entry(make("another"), [vector("another")[:8]])
    yield "a vector of another size", lambda known: {"add": (*ADDING["add"], small)}
    yield "a twin", lambda known: {"keep": tuple(known), "change": (edit(known[3], **twin),)}


@pytest.mark.parametrize(
    ("name", "batch"),
    list(failing_batches()),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_batch_that_fails_half_way_changes_nothing_at_all(backend, store, name, batch):
    known = [
        make(text, source="kept")
        for text in ("an owl", "redis text", "a thing", "fourth of a kind")
    ]
    put(store, *known, relate=(Relation(known[0].id, known[1].id, "builds_on"),))
    before = snapshot(store)
    with pytest.raises((BethinkError, ValueError)):
        write(store, **ADDING | batch([memory.id for memory in known]))
    assert snapshot(store) == before
    assert snapshot(backend.open()) == before
    assert store.check(deep=True) == []
    assert put(store, make("an owl that may stay")).added == 1


def purge(store, *purged) -> int:
    return write(store, purge=tuple(memory.id for memory in purged)).purged


def replace(store, new, old, at=NOW) -> None:
    changes = (Change(old.id, "supersede", {"superseded_by": new.id, "valid_to": new.created_at}),)
    write(store, at=at, change=changes, relate=(Relation(new.id, old.id, "supersedes"),))


def answer(store, answer, question) -> None:
    changes = (Change(question.id, "answer", {"answered": True}),)
    write(store, change=changes, relate=(Relation(answer.id, question.id, "answers"),))


def cached(store, *texts) -> set[str]:
    """Those of these texts whose vectors are kept."""
    found = store.read_cache([cache_key(text) for text in texts], MODEL)
    return {text for text in texts if cache_key(text) in found}


def caching(*texts) -> dict[str, object]:
    return {cache_key(text).hex(): [vector(text)] for text in texts}


# No trace


def test_the_last_memory_of_a_conversation_can_be_purged_and_its_transcript_is_read_on(store):
    uri, said = (
        "/t/a.jsonl",
        make("Kumquats for lunch", source="/t/a.jsonl", source_type="transcript", session="s1"),
    )
    state = {"turns": 1, "scope": HERE, "open": {"asked": "the vector of a question"}}
    source = Source(
        uri,
        "transcript",
        position=7,
        metadata={"sessions": {"s1": state, "s2": state}, "host": "claude"},
    )
    put(
        store,
        said,
        unique=False,
        sessions=(Session("s1", HERE, "claude", "Lunch", uri),),
        sources=((HERE, source),),
    )
    assert purge(store, said) == 1
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
    text, edited = "the secret plan", "the secret plan of May"
    under = [f"{heading}\n{each}" for heading in ("Old", "New") for each in (text, edited)]
    memory = make(text, section="Old", source="docs/a.md", source_type="markdown")
    put(store, memory, cache=caching(text, edited, *under, "something else"))
    change(store, memory.id, "reread", section="New")
    change(store, memory.id, content=edited, content_hash=content_hash(edited))
    assert len(cached(store, text, edited, *under)) == 6
    purge(store, memory)
    assert cached(store, text, edited, *under, "something else") == {"something else"}


def test_an_edit_does_not_bring_a_purged_text_back(store):
    gone, other = make("the salary is 12345"), make("something else")
    put(store, gone, other)
    purge(store, gone)
    fields = {"content": gone.content, "content_hash": gone.content_hash}
    with pytest.raises(InvalidInput, match="was purged"):
        change(store, other.id, **fields)
    assert store.get([other.id])[0].content == "something else"
    write(store, change=(Change(other.id, "update", fields),), allow_purged=True)
    for text in ("something else", gone.content):  # to which it may go back, then
        change(store, other.id, content=text, content_hash=content_hash(text))
    assert store.get([other.id])[0].content == gone.content


# What was edited


def test_an_edited_passage_is_only_hidden_when_its_source_changes(store):
    edited, believed, reread, plain = (
        make(text, source="docs/a.md", source_type="markdown")
        for text in ("one", "two", "three", "four")
    )
    put(store, edited, believed, reread, plain)
    change(store, edited.id, content="one, said Anna", content_hash=content_hash("one, said Anna"))
    change(store, believed.id, "believe", trust=3)
    change(store, reread.id, "reread", section="Elsewhere")
    assert write(store, retire=((HERE, "docs/a.md"),)).retired == 4
    assert {memory.content for memory in store.scan(everything())} == {"one, said Anna", "two"}
    assert [event.action for event in store.history(edited.id)] == ["add", "update", "retire"]
    assert store.list(seen()) == []


# What something that is gone had replaced or answered


@pytest.mark.parametrize("end", ["purge", "reset", "gone"])
def test_what_it_replaced_is_valid_again_as_before_and_what_it_answered_is_open(store, end):
    old, open_, twice = (
        make("We use MySQL", valid_to=day(90)),
        make("Which queue?", kind="question"),
        make("Which cache?", kind="question"),
    )
    new, other = make("We use PostgreSQL", scope=OTHER, created_at=day(4)), make("Redis it is")
    put(store, old, open_, twice, new, other)
    replace(store, new, old, day(4))
    for asked in (open_, twice):
        answer(store, new, asked)
    answer(store, other, twice)
    if end == "purge":
        purge(store, new)
    elif end == "reset":
        assert store.reset([OTHER]) == 1
    else:
        assert store.take(Bundle(gone=(new.id,))) == ()
    assert store.get([new.id]) == []
    back, unanswered, answered = store.get([old.id, open_.id, twice.id])
    assert (back.superseded_by, back.valid_to) == (None, day(90))
    assert (unanswered.answered, answered.answered) == (False, True)
    assert ids(store.list(seen())) == {old.id, open_.id, twice.id, other.id}
    assert store.history(old.id)[-1].action == "restore"
    assert store.relations([new.id]) == []
    assert store.check(deep=True) == []


def test_what_two_replaced_goes_back_to_the_other_when_one_is_purged(store):
    old, new, newest = (
        make("MySQL"),
        make("PostgreSQL", created_at=day(4)),
        make("CockroachDB", created_at=day(5)),
    )
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
    chain, since, never = (
        make("one", valid_to=day(90)),
        make("two", valid_to=day(90)),
        make("three"),
    )
    new, newer = make("four", created_at=day(4)), make("five", created_at=day(5))
    put(store, chain, since, never, new, newer)
    for old in (chain, since, never):
        replace(store, new, old)
    replace(store, newer, chain)
    change(store, since.id, valid_to=day(60))
    for old in (chain, since, never):
        change(store, old.id, "restore", superseded_by=None)
    assert [memory.valid_to for memory in store.get([chain.id, since.id, never.id])] == [
        day(90),
        day(60),
        None,
    ]
    change(store, chain.id, "restore", superseded_by=None)
    assert store.get([chain.id])[0].valid_to == day(90)


def test_no_write_makes_what_replaces_it_replaced_by_it(store):
    one, two, three = make("one"), make("two"), make("three")
    put(store, one, two, three)
    replace(store, two, one)
    replace(store, three, two)
    for old in (two, three):
        with pytest.raises(InvalidInput, match="circle"):
            replace(store, one, old)
    assert ids(store.list(seen())) == {three.id}
    change(store, one.id, "restore", superseded_by=None)
    replace(store, one, three)
    assert ids(store.list(seen())) == {one.id}
