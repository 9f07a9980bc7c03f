"""The contract of sessions, topics and messages, for every backend."""

from __future__ import annotations

import pytest
from stores import HERE, MODEL, NOW, OTHER, day, make, vector, write

from bethink.errors import Overtaken
from bethink.recall.query import parse
from bethink.types import Batch, Entry, Filter, Session, Source, Span


def talk(id="s1", scope=HERE, **fields):
    return Session(
        id,
        scope,
        "claude",
        **{
            "title": "Owls",
            "source": "/t/a.jsonl",
            "started_at": day(1),
            "ended_at": day(2),
            **fields,
        },
    )


def topic(
    id, name, summary="", scope=HERE, session="s1", parent=None, lines=(1, 9), depth=0, **fields
):
    return Span(id, scope, session, parent, name, summary, lines, depth, day(1), **fields)


def put_spans(store, *spans):
    write(
        store,
        spans=tuple((span, [vector(f"{span.name} {span.summary}")]) for span in spans),
        model=MODEL,
    )


def found(store, words, *scopes):
    return [id for id, _ in store.keyword_spans(parse(words, NOW), scopes or (HERE,), 10)]


def near(store, words, *scopes):
    return [id for id, _ in store.nearest_spans(vector(words), MODEL, scopes or (HERE,), 10)]


def test_a_session_is_kept_and_grows(store):
    write(store, sessions=(talk(),))
    assert store.sessions((HERE,)) == [talk()]
    write(
        store, sessions=(talk(title="", started_at=day(5), ended_at=day(6), metadata={"turns": 3}),)
    )
    assert store.sessions((HERE,)) == [talk(ended_at=day(6), metadata={"turns": 3})]
    assert store.sessions((OTHER,)) == store.sessions(()) == []


def test_memories_are_chosen_by_the_host_in_whose_session_they_were_said(store):
    write(store, sessions=(talk("s1"), talk("s2")._replace(host="codex")))
    one, two, told = (
        make("owls at night", session="s1"),
        make("deploy on friday", session="s2"),
        make("redis sessions"),
    )
    write(store, add=tuple(Entry(memory) for memory in (one, two, told)))
    assert [memory.id for memory in store.list(Filter((HERE,), hosts=("claude",), now=NOW))] == [
        one.id
    ]
    assert store.count(Filter((HERE,), hosts=("claude", "codex"), now=NOW)) == 2
    assert store.count(Filter((HERE,), hosts=("gemini",), now=NOW)) == 0


def test_sessions_are_found_by_the_beginning_of_their_id(store):
    write(store, sessions=(talk("ab-1"), talk("ab-2", started_at=day(3)), talk("b-1")))
    assert [session.id for session in store.sessions((HERE,), prefix="ab")] == ["ab-1", "ab-2"]
    assert [session.id for session in store.sessions((HERE,), limit=1, offset=1)] == ["ab-1"]
    assert store.sessions((HERE,), prefix="a%") == []


def test_topics_are_found_by_word_and_by_meaning_and_only_in_their_scope(store):
    put_spans(
        store,
        topic("t1", "Owls at night", "We watched barn owls hunt"),
        topic("t2", "Redis cache", "Sessions move to Redis"),
    )
    put_spans(store, topic("t3", "Owls of others", scope=OTHER, session="s2"))
    assert found(store, "owls") == ["t1"] and set(found(store, "owls", HERE, OTHER)) == {"t1", "t3"}
    assert near(store, "owls at night")[0] == "t1" and "t3" not in near(store, "owls of others")
    assert found(store, "owls", "project:nowhere") == near(store, "owls", "project:nowhere") == []
    assert store.spans_by_id(["t1", "t3", "none"], (HERE,)).keys() == {"t1"}


def test_a_topic_that_changes_is_found_by_what_is_true_now(backend, store):
    put_spans(store, topic("t1", "Owls at night"))
    reader = backend.open()
    assert near(reader, "owls at night") == ["t1"]
    put_spans(store, topic("t1", "Redis cache", "the cache of sessions", lines=(1, 30)))
    assert found(store, "owls") == [] and found(store, "redis") == ["t1"]
    assert [
        round(score, 3)
        for _, score in reader.nearest_spans(
            vector("Redis cache the cache of sessions"), MODEL, (HERE,), 5
        )
    ] == [1.0]
    assert store.spans("s1", (HERE,))[0].lines == (1, 30)
    assert store.check(deep=True) == []


def test_topics_come_in_the_order_of_the_conversation_parents_first(store):
    put_spans(
        store,
        topic("c", "third", lines=(20, 29)),
        topic("b", "second", parent="a", lines=(1, 5), depth=1),
        topic("a", "first", lines=(1, 19)),
    )
    assert [span.id for span in store.spans("s1", (HERE,))] == ["a", "b", "c"]
    assert store.spans("s1", (OTHER,)) == []


def test_a_message_is_taken_in_once_also_when_it_was_purged_or_forgotten(store):
    turn = b"0123456789abcdef"

    def say():
        memory = make("An owl flew by")
        return memory.id, write(store, add=(Entry(memory, unique=False, turn=turn),)).outcomes[
            0
        ].status

    id, status = say()
    assert status == "added" and say()[1] == "known"
    write(store, purge=(id,))
    assert say()[1] in ("known", "purged")
    assert store.find_known_turns(HERE, [turn, b"another identity"]) == {turn}
    assert store.find_known_turns(OTHER, [turn]) == set() == store.find_known_turns(HERE, [])


def test_who_was_overtaken_writes_nothing(store):
    def read_on(expected, position):
        source = Source("/t/a.jsonl", "transcript", position=position)
        batch = Batch(
            at=NOW,
            expect=((HERE, source.uri, expected),),
            sources=((HERE, source),),
            add=(Entry(make(f"at {position}"), unique=False),),
        )
        return store.write(batch)

    read_on(0, 100)
    read_on(100, 250)
    with pytest.raises(Overtaken, match="read on to 250"):
        read_on(100, 180)
    assert store.source(HERE, "/t/a.jsonl").position == 250
    assert sorted(memory.content for memory in store.list(Filter(scopes=(HERE,)))) == [
        "at 100",
        "at 250",
    ]


def test_a_purge_takes_the_words_of_its_topics_along(store):
    put_spans(
        store,
        topic("t1", "The vault code", "the code is 4711"),
        topic("t2", "Part of it", "4711 again", parent="t1", depth=1),
    )
    write(store, sessions=(talk(title="The vault code"),))
    memory = make("the code is 4711", span="t2", session="s1")
    write(store, add=(Entry(memory),))
    write(store, purge=(memory.id,))
    assert found(store, "vault") == found(store, "4711") == near(store, "vault code") == []
    assert {(span.name, span.summary) for span in store.spans("s1", (HERE,))} == {("", "")}
    assert store.sessions((HERE,))[0].title == ""
    assert store.check(deep=True) == []


def test_rebuilding_the_indexes_keeps_topics_searchable(store):
    put_spans(store, topic("t1", "Owls at night"))
    store.rebuild()
    assert found(store, "owls") == ["t1"]


def test_topics_without_a_vector_are_listed_and_get_one_unless_they_changed_meanwhile(store):
    gone = make("the vault code", span="purged", session="s1")
    topics = (
        topic("plain", "Owls at night"),
        topic("changed", "Redis cache"),
        topic("purged", "The vault"),
        topic("none", ""),
    )
    write(store, spans=tuple((one, ()) for one in topics), add=(Entry(gone),))
    put_spans(store, topic("embedded", "Herons"))
    write(store, purge=(gone.id,))
    found = store.list_unembedded_spans(MODEL, 10)
    assert [span.id for span in found] == ["plain", "changed"]
    assert [span.id for span in store.list_unembedded_spans(MODEL, 1)] == ["plain"] and len(
        store.list_unembedded_spans("another", 10)
    ) == 3
    write(store, spans=((topic("changed", "Deploying"), ()),))
    texts = {span.id: f"{span.name}\n{span.summary}" for span in found}
    vectors = {span.id: [vector(span.name)] for span in found}
    write(store, span_vectors=vectors | {"nobody": [vector("x")]}, made_of=texts, model=MODEL)
    assert [span.id for span in store.list_unembedded_spans(MODEL, 10)] == ["changed"]
    assert near(store, "Owls at night")[0] == "plain" and "changed" not in near(
        store, "Redis cache"
    )
    assert store.check(deep=True) == []
