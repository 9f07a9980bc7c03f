"""What every store must do when something leaves it: no trace of what was purged, and nothing hidden by what is no more."""

from __future__ import annotations

import pytest
from stores import (
    HERE,
    MODEL,
    NOW,
    OTHER,
    change,
    content_hash,
    day,
    everything,
    ids,
    make,
    put,
    seen,
    vector,
    write,
)

from bethink.errors import InvalidInput
from bethink.store.places import cache_key
from bethink.store.transfer import Bundle
from bethink.types import Change, Relation, Session, Source


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
