"""What every store must do when it is searched: by words, by vectors, by entities, and the numbers that scores are made of."""

from __future__ import annotations

import numpy as np
import pytest
from case_tables import cases
from stores import (
    EMBEDDER,
    HERE,
    LIMIT,
    MODEL,
    NOW,
    OTHER,
    by_meaning,
    by_words,
    change,
    content_hash,
    day,
    everything,
    make,
    pick,
    put,
    seen,
    term,
    vector,
    vectors_of,
    write,
)

from bethink.errors import Overtaken
from bethink.recall.query import parse
from bethink.store.base import Store
from bethink.store.words import query_words
from bethink.types import (
    Batch,
    Change,
    Entity,
    Entry,
    Filter,
    Query,
    Session,
    Source,
    Span,
    Term,
    Words,
)

# Words


def test_words_are_found_however_they_are_written(store):
    asked = cases("store-contract-search-words-are-found-however")
    told = [(make(text, scope=f"project:{at}"), how) for at, (text, how) in enumerate(asked)]
    put(store, *(make("nothing of the kind", scope=memory.scope) for memory, _ in told))
    put(store, *(memory for memory, _ in told))
    for memory, question in told:
        assert by_words(store, question, seen(memory.scope))[0] == memory.id, question


@pytest.fixture(scope="module")
def greek(lasting) -> tuple[Store, dict[str, str]]:
    memories = {
        "a": make("alpha"),
        "ab": make("alpha beta"),
        "abc": make("beta gamma alpha"),
        "b": make("bare", section="Some heading"),
        "c": make("common", tags=("labelled",), summary="abstract"),
        "d": make("delta"),
        "x": make("alpha delta", scope=OTHER),
    }
    store = lasting()
    put(store, *memories.values())
    return store, {memory.id: name for name, memory in memories.items()}


@pytest.mark.parametrize(
    ("query", "found"), cases("store-contract-search-each-form-of-a", globals())
)
def test_each_form_of_a_query(greek, query, found):
    store, names = greek
    assert {names[id] for id in by_words(store, query)} == found


def test_the_better_match_comes_first_and_scores_fall(store):
    both, one, long = (
        make("redis cache"),
        make("redis queue"),
        make("redis " + "and many other words about nothing in particular " * 5),
    )
    put(store, long, one, both, *(make(f"filler text number {n}") for n in range(20)))
    ranking = store.keyword(parse("redis cache", NOW), seen(), LIMIT)
    found = store.load([key for key, _ in ranking.items])
    assert [found[key].id for key, _ in ranking.items] == [both.id, one.id, long.id]
    scores = [score for _, score in ranking.items]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)
    assert len(store.keyword(parse("redis cache", NOW), seen(), 2).items) == 2


def test_the_file_of_a_passage_is_a_word_of_it_also_after_an_edit(store):
    memory = make("Ships are built here", source="docs/walrus.md", source_type="markdown")
    put(store, memory, unique=False)
    assert by_words(store, "walrus") == [memory.id]
    change(store, memory.id, tags=("sea",))
    assert by_words(store, "walrus") == by_words(store, "sea") == [memory.id]


def test_a_changed_text_is_found_by_its_new_words_only(store):
    memory = make("pelicans are large")
    put(store, memory)
    change(
        store,
        memory.id,
        content="herons are slender",
        content_hash=content_hash("herons are slender"),
        summary="herons",
    )
    assert by_words(store, "herons") == [memory.id]
    assert by_words(store, "pelicans") == []
    assert by_words(store, term("pelicans", column="summary")) == []


HOSTILE = [
    *(
        '" "" """ \' NEAR( * a* **a** : a: :a content: content:* ^a ^ - --a +a ( ) (((( )( (a OR NOT a\x00b \\ a\\b % _ ?1 :x @y'
    ).split(),
    *"$z zq1 scope:zq1 🦉 ½ ² ㉈ Ⅷ memories_fts a\"b'c [a-z]+ <script> .. ...a... １２３ ａｂｃ ß İ ﬁ \u0301 a\u0301 🏳️‍🌈".split(),
    *(
        "",
        " ",
        "\n\t\r",
        "\x00",
        "\ud800",
        "a\udcffb",
        "\ufeff",
        "\u202e",
        "NEAR(a b, 5)",
        "* *",
        "- a",
    ),
    *("a AND", "AND a", "NOT a", "a AND OR b", "a AND (b OR", "{a b}: c", "{content}: a", "a + b"),
    *("- {content} : a", "'; DROP TABLE memories; --", '" OR 1=1 --', 'scope : "zq2"', 'a "b'),
    *('x") OR scope : ("zq2', "rank MATCH 'bm25(0)'", "a NEAR b", "NOT " * 300 + "a", "漢" * 3000),
    *("é" * 500, "a" * 100_000, "a " * 20_000, "(" * 2000 + "a" + ")" * 2000),
    *(" AND ".join(["word"] * 500), " OR ".join(f"w{n}" for n in range(500))),
]


@pytest.fixture(scope="module")
def fortress(lasting) -> Store:
    store = lasting()
    put(
        store,
        make("zq1 zq2 a word b word by an owl"),
        make("a secret word", scope=OTHER),
        embed=False,
    )
    return store


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:20]))
def test_no_query_is_an_error_and_none_leaves_its_scope(fortress, text):
    asked = (
        parse(text, NOW),
        term(text),
        term(text, phrase=True),
        term(text, prefix=True),
        term(text, column=text),
        term(text, column="tags"),
        Query(text, text, (Term("word"), Term(text), Term("b"))),
        Query(text, text, expression=("and", Term("word"), Term(text))),
        Query(text, text, expression=("not", Term("word"), Term(text))),
    )
    for query in asked:
        for filter in (seen(), seen(kinds=("fact",)), seen()._replace(scopes=())):
            keys = [key for key, _ in fortress.keyword(query, filter, 10).items]
            words = query_words(query)
            fortress.statistics(words, filter.scopes)
            fortress.candidates(keys, filter, words, keys)
            assert {memory.scope for memory in fortress.load(keys).values()} <= set(filter.scopes)


# Vectors


def test_a_text_of_several_windows_counts_once_with_its_best(store):
    long = make("a text of several windows")
    parts = ["redis sessions", "deploy on friday", "owls at night"]
    entry = Entry(long, [vector(part) for part in parts])
    write(store, add=(entry,), model=MODEL)
    put(store, make("something else"))
    for part in parts:
        (first, cosine), (_, lower) = store.nearest(vector(part), MODEL, seen(), 10).items
        assert store.load([first])[first].id == long.id
        assert cosine == pytest.approx(1.0, abs=0.02)
        assert lower < cosine


def test_vectors_follow_their_memories_at_once_and_for_every_reader(backend, store):
    """Found right after its commit, gone right after its delete: also in a store that had already searched before."""
    second = backend.open()
    put(store, make("an unrelated text about boats"))
    memory = make("the heron stands in the reeds")
    text = memory.content
    for reader in (store, second):
        assert memory.id not in by_meaning(reader, text)
    put(store, memory)
    for reader in (second, store):
        assert by_meaning(reader, text)[0] == memory.id
    change(second, memory.id, "forget", deleted_at=NOW)
    for reader in (store, second):
        assert memory.id not in by_meaning(reader, text)
    change(second, memory.id, "restore", deleted_at=None)
    for reader in (store, second):
        assert by_meaning(reader, text)[0] == memory.id
    new = "a lighthouse blinks at the coast"
    write(
        second,
        change=(Change(memory.id, "update", {"content": new, "content_hash": content_hash(new)}),),
        vectors={memory.id: [vector(new)]},
        model=MODEL,
    )
    for reader in (store, second):
        assert reader.nearest(vector(text), MODEL, seen(), 1).items[0][1] < 0.6
        assert reader.nearest(vector(new), MODEL, seen(), 1).items[0][1] > 0.98
    write(store, purge=(memory.id,))
    for reader in (second, store):
        assert memory.id not in by_meaning(reader, new, everything())
        assert len(reader.nearest(vector(new), MODEL, everything(), 10).items) == 1


def test_made_vectors_are_kept_by_text_and_model(backend, store):
    one, two = EMBEDDER.documents(["a text", "words " * 1000])
    keys = [bytes(range(16)), bytes(range(16, 32))]
    write(store, model=MODEL, cache={keys[0].hex(): one, keys[1].hex(): two})
    found = backend.open().read_cache([*keys, bytes(16)], MODEL)
    assert set(found) == set(keys)
    for key, matrix in zip(keys, (one, two), strict=True):
        np.testing.assert_allclose(np.stack(found[key]), matrix, atol=0.005)
    assert store.read_cache(keys, "another-model") == store.read_cache([], MODEL) == {}


def test_what_has_no_vector_of_a_model_is_listed_oldest_first(store):
    bare, also, embedded = make("bare"), make("also bare"), make("embedded")
    never = make("never to be embedded", metadata={"vector_index": False})
    put(store, bare, also, never, embed=False)
    put(store, embedded)
    assert [memory.id for memory in store.list_unembedded(MODEL, 10)] == [bare.id, also.id]
    assert [memory.id for memory in store.list_unembedded(MODEL, 1)] == [bare.id]
    assert store.count_unembedded(MODEL) == store.overview().unembedded == 2
    assert store.count_unembedded("another-model") == 3
    assert store.models() == [MODEL]
    write(store, vectors={bare.id: vectors_of(bare), also.id: vectors_of(also)}, model=MODEL)
    assert store.count_unembedded(MODEL) == 0
    assert by_meaning(store, "bare")[0] == bare.id


def test_vectors_of_a_model_can_be_dropped_and_given_anew(backend, store):
    memory, reader = make("the heron stands in the reeds"), backend.open()
    put(store, memory)
    assert by_meaning(reader, memory.content) == [memory.id]
    write(
        store,
        vectors={memory.id: [np.ones(8, np.float32) / 8**0.5]},
        model="tiny",
        cache={"00" * 16: [np.ones(8, np.float32)]},
    )
    assert sorted(store.models()) == sorted([MODEL, "tiny"])
    assert store.drop_vectors("tiny") == 1
    assert store.models() == [MODEL]
    assert store.read_cache([bytes(16)], "tiny") == {}
    assert store.drop_vectors() == 1
    assert store.models() == []
    assert by_meaning(store, memory.content) == []
    write(store, vectors={memory.id: vectors_of(memory)}, model=MODEL)
    assert by_meaning(store, memory.content) == by_meaning(reader, memory.content) == [memory.id]


def test_a_text_that_changed_while_its_old_one_was_embedded_keeps_the_vectors_of_its_own(store):
    edited, bare, same = (
        make("kangaroos live in Australia"),
        make("wombats dig"),
        make("the numbat eats ants"),
    )
    put(store, edited, bare, same, embed=False)
    made = {memory.id: vectors_of(memory) for memory in (edited, bare, same)}
    for memory, new in ((edited, "invoices go through Kafka"), (bare, "queues are read in order")):
        vectors = {memory.id: EMBEDDER.documents([new])[0]} if memory is edited else {}
        text = {"content": new, "content_hash": content_hash(new)}
        write(store, change=(Change(memory.id, "update", text),), vectors=vectors, model=MODEL)
    texts = {memory.id: memory.content for memory in (edited, bare, same)}
    write(store, vectors=made, made_of=texts, model=MODEL)
    keys = store.keys([edited.id, bare.id, same.id])
    cosines = store.cosines(
        list(keys.values()), vector("invoices go through Kafka"), MODEL, (HERE,)
    )[0]
    assert cosines[keys[edited.id]] == pytest.approx(1, abs=0.01)
    assert [memory.id for memory in store.list_unembedded(MODEL, 10)] == [bare.id]
    assert by_meaning(store, same.content)[0] == same.id


# Entities and the numbers behind scores


def test_by_entity_counts_how_many_of_the_names_a_memory_has(store):
    both = make("both", entities=(Entity("Redis", "technology"), Entity("cache")))
    one = make("one", entities=(Entity("redis", "concept"),), created_at=day(3))
    newer = make("newer", entities=(Entity("CACHE"),), created_at=day(4))
    put(
        store,
        both,
        one,
        newer,
        make("none"),
        make("theirs", scope=OTHER, entities=(Entity("Redis", "technology"),)),
    )
    ranking = store.by_entity(["REDIS", "Cache"], seen(), 10)
    found = store.load([key for key, _ in ranking.items])
    assert [(found[key].id, score) for key, score in ranking.items] == [
        (both.id, 2.0),
        (newer.id, 1.0),
        (one.id, 1.0),
    ]
    assert (
        store.by_entity([], seen(), 10).items
        == store.by_entity(["unknown"], seen(), 10).items
        == ()
    )


def test_statistics_count_inside_the_scopes_asked_for(store):
    words = Words(("owl", "night", "nowher"))
    put(
        store,
        make("owl owl owl"),
        make("owl night"),
        make("four words of text"),
        make("owl night night", scope=OTHER),
    )
    here = store.statistics(words, (HERE,))
    assert pick(here, "memories average_length counts mean_cosine") == (3, 3.0, (2, 1, 0), None)
    both = store.statistics(words, (HERE, OTHER))
    assert (both.memories, both.counts) == (4, (3, 2, 0))
    for nowhere in ((), ("project:unknown",)):
        assert store.statistics(words, nowhere) == type(here)(0, 0.0, (0, 0, 0))
        assert store.cosines([], vector("owl"), MODEL, nowhere) == ({}, 0.0)
    assert store.statistics(Words(), (HERE,)).counts == ()


def test_candidates_carry_what_scoring_needs(store):
    query = parse("redis cache sessions", NOW)
    words = query_words(query)
    memory = make(
        "redis redis cache",
        importance=7.0,
        confidence=0.5,
        usefulness=1.0,
        access_count=2,
        last_accessed=day(3),
        trust=2,
        position=6,
        created_at=day(2),
        kind="decision",
    )
    apart, wordless = make("cache of sessions in redis"), make("owls", created_at=day(5))
    put(store, memory, apart, wordless)
    keys = store.keys([memory.id, apart.id, wordless.id])
    worded = {keys[memory.id], keys[apart.id]}
    found = {
        candidate.key: candidate
        for candidate in store.candidates(list(keys.values()), seen(), words, worded)
    }
    first, second, third = (found[key] for key in keys.values())
    assert pick(first, "kind importance confidence usefulness") == ("decision", 7.0, 0.5, 1.0)
    assert pick(first, "access_count trust position length") == (2, 2, 6, 3)
    assert (first.created_at, first.last_accessed) == (day(2).timestamp(), day(3).timestamp())
    assert third.last_accessed == day(5).timestamp()
    assert (words.lexemes, first.frequencies) == (("redi", "cach", "session"), (2, 1, 0))
    assert (words.pairs, first.pairs) == ((("redi", "cach"), ("cach", "session")), (True, False))
    assert second.frequencies == (1, 1, 1)
    assert second.pairs == (False, True)  # "of" does not stand between
    assert third.frequencies == (0, 0, 0)
    assert store.candidates([], seen(), words, ()) == []
    assert store.candidates(list(keys.values()), seen(OTHER), words, ()) == []
    (decision,) = store.candidates(list(keys.values()), seen(kinds=("decision",)), words, ())
    assert (decision.key, decision.frequencies) == (keys[memory.id], (0, 0, 0))


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
