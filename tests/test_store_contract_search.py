"""What every store must do when it is searched: by words, by vectors, by entities, and the numbers that scores are made of."""

import numpy as np
import pytest
import stores
from stores import (
    HERE,
    MODEL,
    OTHER,
    by_words,
    day,
    edit,
    make,
    put,
    seen,
    tell,
    term,
    vector,
    write,
)

from bethink.model import Change, Entity, Entry, Query, Session, Span, Term, Words
from bethink.recall.query import parse
from bethink.store.base import Store
from bethink.store.words import query_words
from bethink.text import hash_text

WORDS_FOUND_HOWEVER = [
    ("The deployments were failing", "deployment fails"),
    ("Le café est fermé", "cafe"),
    ("Le cafe est ferme", "café"),
    ("Größe zählt", "grosse zahlt größe"),
    ("我们用数据库存储会话", "数据库"),
    ("我们用数据库存储会话", "存储"),
    ("我们用数据库", "库"),
    ("セッションはデータベースに保存", "データベース"),
    ("데이터베이스에 저장한다", "데이터베이스"),
    ("call parseHttpUrl first", "http"),
    ("call parseHttpUrl first", "parseHttpUrl"),
    ("parse http url", "parseHttpUrl"),
    ("call XMLHttpRequest first", "xml request"),
    ("use max_retry_count", "retry"),
    ("see src/store/rows.py", "rows.py"),
    ("UPPER CASE WORDS", "upper"),
    ("version 3.51.3 is fixed", "3.51.3"),
    ("C++ and C# differ", "C#"),
    ("don't panic", "panic"),
    ("quick brown fox", '"quick brown fox"'),
    ("rollback of the migration", "roll*"),
    ("rollback of the migration", "content:rollback"),
]


def test_words_are_found_in_any_spelling(store):
    wanted, found = {}, {}
    for at, (text, question) in enumerate(WORDS_FOUND_HOWEVER):
        _, memory = tell(store, "nothing of the kind", text, scope=f"project:{at}")
        wanted[text, question] = memory.id
        found[text, question] = by_words(store, question, seen(memory.scope))[0]
    assert found == wanted


GREEK = [
    ("a", "alpha", {}),
    ("ab", "alpha beta", {}),
    ("abc", "beta gamma alpha", {}),
    ("b", "bare", {"section": "Some heading"}),
    ("c", "common", {"tags": ("labelled",), "summary": "abstract"}),
    ("d", "delta", {}),
    ("x", "alpha delta", {"scope": OTHER}),
]


@pytest.fixture(scope="module")
def greek(lasting) -> tuple[Store, dict[str, str]]:
    table = GREEK
    memories = {name: make(text, **fields) for name, text, fields in table}
    store = lasting()
    put(store, *memories.values())
    return store, {memory.id: name for name, memory in memories.items()}


FORMS = [
    (term("alpha"), {"a", "ab", "abc"}),
    (term("alpha beta", phrase=True), {"ab"}),
    (term("beta alpha", phrase=True), set()),
    (term("alp", prefix=True), {"a", "ab", "abc"}),
    (term("alp"), set()),
    (term("heading", column="section"), {"b"}),
    (term("heading", column="content"), set()),
    (term("heading"), {"b"}),
    (term("labelled", column="tags"), {"c"}),
    (term("labelled"), {"c"}),
    (term("abstract", column="summary"), {"c"}),
    (term("abstract"), set()),
    (term("alpha", column="nonsense"), {"a", "ab", "abc"}),
    (Query("", "", (Term("alpha"), Term("delta"))), {"a", "ab", "abc", "d"}),
    (Query("", "", expression=("and", Term("alpha"), Term("gamma"))), {"abc"}),
    (Query("", "", expression=("or", Term("delta"), Term("gamma"))), {"abc", "d"}),
    (Query("", "", expression=("not", Term("alpha"), Term("beta"))), {"a"}),
    (
        Query(
            "",
            "",
            expression=(
                "and",
                ("or", Term("alpha"), Term("delta")),
                ("not", Term("alpha"), Term("gamma")),
            ),
        ),
        {"a", "ab"},
    ),
    (Query("", "", expression=("and", Term("***"), Term("alpha"))), {"a", "ab", "abc"}),
    (Query("", "", expression=("not", Term("alpha"), Term("--"))), {"a", "ab", "abc"}),
    (Query("", ""), set()),
    (term(""), set()),
    (term("-:*"), set()),
]


@pytest.mark.parametrize(("query", "found"), FORMS)
def test_each_form_of_a_query(greek, query, found):
    store, names = greek
    assert {names[id] for id in by_words(store, query)} == found


def test_the_better_match_comes_first(store):
    filler = "redis " + "and many other words about nothing in particular " * 5
    long, one, both = tell(store, filler, "redis queue", "redis cache")
    tell(store, *(f"filler text number {n}" for n in range(20)))
    assert by_words(store, "redis cache") == [both.id, one.id, long.id]
    ranking = store.keyword(parse("redis cache", stores.NOW), seen(), stores.LIMIT)
    scores = [score for _, score in ranking]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)
    assert by_words(store, "redis cache", limit=2) == [both.id, one.id]


def test_a_passage_is_found_by_the_name_of_its_file(store):
    page = {"source": "docs/walrus.md", "source_type": "markdown"}
    (memory,) = tell(store, "pelicans are large", **page)
    assert by_words(store, "walrus") == by_words(store, "pelicans") == [memory.id]
    stores.edit(store, memory, "herons are slender", summary="herons", tags=("sea",))
    assert [
        word for word in ("walrus", "sea", "herons") if by_words(store, word) != [memory.id]
    ] == []
    assert by_words(store, "pelicans") == by_words(store, term("pelicans", column="summary")) == []


@pytest.fixture(scope="module")
def fortress(lasting) -> Store:
    store = lasting()
    words, secret = make("zq1 zq2 a word b word by an owl"), make("a secret word", scope=OTHER)
    put(store, words, secret, embed=False)
    return store


HOSTILE = [
    '"',
    '""',
    '"""',
    "'",
    "NEAR(",
    "*",
    "a*",
    "**a**",
    ":",
    "a:",
    ":a",
    "content:",
    "content:*",
    "^a",
    "^",
    "-",
    "--a",
    "+a",
    "(",
    ")",
    "((((",
    ")(",
    "(a",
    "OR",
    "NOT",
    "a\x00b",
    "\\",
    "a\\b",
    "%",
    "_",
    "?1",
    ":x",
    "@y",
    "$z",
    "zq1",
    "scope:zq1",
    "🦉",
    "½",
    "²",
    "㉈",
    "Ⅷ",
    "memories_fts",
    "a\"b'c",
    "[a-z]+",
    "<script>",
    "..",
    "...a...",
    "１２３",
    "ａｂｃ",
    "ß",
    "İ",
    "ﬁ",
    "\u0301",
    "a\u0301",
    "🏳️\u200d🌈",
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
    "a AND",
    "AND a",
    "NOT a",
    "a AND OR b",
    "a AND (b OR",
    "{a b}: c",
    "{content}: a",
    "a + b",
    "- {content} : a",
    "'; DROP TABLE memories; --",
    '" OR 1=1 --',
    'scope : "zq2"',
    'a "b',
    'x") OR scope : ("zq2',
    "rank MATCH 'bm25(0)'",
    "a NEAR b",
    "NOT " * 300 + "a",
    "漢" * 3000,
    "é" * 500,
    "a" * 100_000,
    "a " * 20_000,
    "(" * 2000 + "a" + ")" * 2000,
    " AND ".join(["word"] * 500),
    " OR ".join(f"w{n}" for n in range(500)),
    '"unbalanced',
    "((",
    "NEAR(a b, 2",
    "^x",
    "- x",
    "--",
    "AND",
    "OR NOT",
    "x AND",
    "AND x",
    "a NOT",
    '"" ""',
    "{a b}:",
    "x*y*",
    "summary:*",
    ";",
    "\U0001f980",
    "\u6771\u4eac",
    "e\u0301",
    "\ufffe",
    "x:y:z",
    "-x -y",
    "1",
    "''",
    "[]",
    "a" * 10_000,
    "a " * 5_000,
    '"' * 999,
    "(" * 999,
    "NOT " * 200,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:20]))
def test_any_query_stays_in_its_scope(fortress, text):
    how = ({}, {"phrase": True}, {"prefix": True}, {"column": text}, {"column": "tags"})
    forms = [("and", Term("word"), Term(text)), ("not", Term("word"), Term(text))]
    asked = [parse(text, stores.NOW), *(term(text, **one) for one in how)]
    asked += [Query(text, text, expression=form) for form in forms]
    asked.append(Query(text, text, (Term("word"), Term(text), Term("b"))))
    filters = [*((query, seen()) for query in asked), (asked[0], seen(kinds=("fact",)))]
    for query, filter in (*filters, (asked[0], seen()._replace(scopes=()))):
        keys = [key for key, _ in fortress.keyword(query, filter, 10)]
        words = query_words(query)
        fortress.statistics(words, filter.scopes)
        fortress.candidates(keys, filter, words, keys)
        assert {memory.scope for memory in fortress.load(keys).values()} <= set(filter.scopes)


def test_a_text_of_several_windows_is_found_once(store):
    def find(part):
        (first, cosine), (_, lower) = store.nearest(vector(part), MODEL, seen(), 10)
        return store.load([first])[first].id, round(cosine, 1), lower < cosine

    long, parts = make("a text of several windows"), ("redis sessions", "on friday", "owls")
    write(store, add=(Entry(long, [vector(part) for part in parts]),), model=MODEL)
    tell(store, "something else")
    assert [find(part) for part in parts] == [(long.id, 1.0, True)] * 3


def test_cached_vectors_are_found_by_another_connection(store, backend):
    one, two = stores.EMBEDDER.documents(["a text", "words " * 1000])
    keys = [bytes(range(16)), bytes(range(16, 32))]
    write(store, model=MODEL, cache={keys[0].hex(): one, keys[1].hex(): two})
    found = backend.open().read_cache([*keys, bytes(16)], MODEL)
    assert set(found) == set(keys)
    for key, matrix in zip(keys, (one, two), strict=True):
        np.testing.assert_allclose(np.stack(found[key]), matrix, atol=0.005)
    assert store.read_cache(keys, "another-model") == store.read_cache([], MODEL) == {}


def test_vectors_are_found_by_the_text_they_are_made_of(store, backend):
    text = "words " * 1000
    (matrix,) = stores.EMBEDDER.documents([text])
    key = hash_text(text.strip())
    entry = Entry(make(text.strip()), matrix)
    write(store, add=(entry,), model=MODEL, cache={key.hex(): matrix})
    assert store.overview().cached == 0, "no second copy"
    np.testing.assert_allclose(
        np.stack(backend.open().read_cache([key], MODEL)[key]), matrix, atol=0.005
    )


def test_vectors_of_a_changed_text_are_not_found_by_the_old_one(store):
    (memory,) = tell(store, "the heron stands in the reeds")
    edit(store, memory, "the owl sits in the oak")
    assert store.read_cache([hash_text(memory.content)], MODEL) == {}


def test_vectors_of_a_passage_that_left_are_kept_for_its_return(store):
    page = make("the heron stands in the reeds", source="docs/a.md", source_type="markdown")
    entry = Entry(page, [vector(page.content)])
    write(store, add=(entry,), model=MODEL)
    write(store, retire=((page.scope, page.source),))
    assert set(store.read_cache([hash_text(page.content)], MODEL)) == {hash_text(page.content)}


def test_every_reader_sees_changed_vectors_at_once(backend, store):
    """Found right after its commit, gone right after its delete: also in a store that had already searched before."""
    second = backend.open()
    readers = (store, second)
    tell(store, "an unrelated text about boats")
    memory, new = make("the heron stands in the reeds"), "a lighthouse blinks at the coast"

    def is_found(text, filter=None) -> bool:
        found = {memory.id in stores.by_meaning(reader, text, filter)[:1] for reader in readers}
        assert len(found) == 1, "readers disagree"
        return found.pop()

    assert not is_found(memory.content)
    put(store, memory)
    assert is_found(memory.content)
    stores.forget(second, memory)
    assert not is_found(memory.content)
    stores.change(second, memory.id, "restore", deleted_at=None)
    assert is_found(memory.content)
    text = {"content": new, "content_hash": stores.content_hash(new)}
    made = {memory.id: [vector(new)]}
    write(second, change=(Change(memory.id, "update", text),), vectors=made, model=MODEL)
    for reader in readers:
        assert reader.nearest(vector(memory.content), MODEL, seen(), 1)[0][1] < 0.6
        assert reader.nearest(vector(new), MODEL, seen(), 1)[0][1] > 0.98
    stores.purge(store, memory)
    assert not is_found(new, stores.everything())
    assert [
        reader
        for reader in readers
        if len(reader.nearest(vector(new), MODEL, stores.everything(), 10)) != 1
    ] == []


def test_memories_without_a_vector_are_listed(store):
    bare, also = make("bare"), make("also bare")
    never = make("never to be embedded", metadata={"vector_index": False})
    put(store, bare, also, never, embed=False)
    tell(store, "embedded")
    assert [memory.id for memory in store.list_unembedded(MODEL, 10)] == [bare.id, also.id]
    assert [memory.id for memory in store.list_unembedded(MODEL, 1)] == [bare.id]
    assert store.count_unembedded(MODEL) == store.overview().unembedded == 2
    assert store.count_unembedded("another-model") == 3
    made = {one.id: stores.vectors_of(one) for one in (bare, also)}
    write(store, vectors=made, model=MODEL)
    assert store.count_unembedded(MODEL) == 0
    assert stores.by_meaning(store, "bare")[0] == bare.id


def test_a_vector_of_an_older_text_is_not_stored(store):
    texts = ("kangaroos live in Australia", "wombats dig", "the numbat eats ants")
    every = edited, bare, same = [make(text) for text in texts]
    put(store, *every, embed=False)
    new = "invoices go through Kafka"
    stores.edit(store, edited, new)
    write(store, vectors={edited.id: [vector(new)]}, model=MODEL)
    stores.edit(store, bare, "queues are read in order")
    made = {memory.id: stores.vectors_of(memory) for memory in every}
    write(store, vectors=made, made_of={one.id: one.content for one in every}, model=MODEL)
    keys = store.keys([edited.id])
    cosines, _ = store.cosines(list(keys.values()), vector(new), MODEL, (HERE,))
    assert cosines[keys[edited.id]] == pytest.approx(1, abs=0.01)
    assert [memory.id for memory in store.list_unembedded(MODEL, 10)] == [bare.id]
    assert stores.by_meaning(store, same.content)[0] == same.id


def test_vectors_of_a_model_can_be_dropped(backend, store):
    (memory,), reader = tell(store, "the heron stands in the reeds"), backend.open()
    assert stores.by_meaning(reader, memory.content) == [memory.id]
    eighth = [np.ones(8, np.float32) / 8**0.5]
    write(store, vectors={memory.id: eighth}, model="tiny", cache={"00" * 16: eighth})
    assert sorted(store.models()) == sorted([MODEL, "tiny"])
    assert store.drop_vectors("tiny") == 1
    assert store.models() == [MODEL]
    assert store.read_cache([bytes(16)], "tiny") == {}
    assert store.drop_vectors() == 1
    assert store.models() == stores.by_meaning(store, memory.content) == []


def test_dropped_vectors_can_be_written_again(backend, store):
    (memory,), reader = tell(store, "the heron stands in the reeds"), backend.open()
    assert store.drop_vectors() == 1
    write(store, vectors={memory.id: stores.vectors_of(memory)}, model=MODEL)
    assert [
        one for one in (store, reader) if stores.by_meaning(one, memory.content) != [memory.id]
    ] == []


def test_statistics_count_words_per_scope(store):
    words = Words(("owl", "night", "nowher"))
    tell(store, "owl owl owl", "owl night", "four words of text")
    tell(store, "owl night night", scope=OTHER)
    here = store.statistics(words, (HERE,))
    numbers = stores.pick(here, "memories average_length counts mean_cosine")
    assert numbers == (3, 3.0, (2, 1, 0), None)
    both = store.statistics(words, (HERE, OTHER))
    assert (both.memories, both.counts) == (4, (3, 2, 0))
    assert store.statistics(Words(), (HERE,)).counts == ()


@pytest.mark.parametrize(
    "nowhere",
    [
        pytest.param((), id="no-scope"),
        pytest.param(("project:unknown",), id="project-unknown"),
    ],
)
def test_an_unknown_scope_has_no_statistics(store, nowhere):
    words = Words(("owl", "night", "nowher"))
    tell(store, "owl owl owl", "owl night", "four words of text")
    here = store.statistics(words, (HERE,))
    assert store.statistics(words, nowhere) == type(here)(0, 0.0, (0, 0, 0))
    assert store.cosines([], vector("owl"), MODEL, nowhere) == ({}, 0.0)


def test_memories_are_found_by_entity(store):
    redis = Entity("Redis", "technology")
    both = make("both", entities=(redis, Entity("cache")))
    one = make("one", entities=(Entity("redis", "concept"),), created_at=day(3))
    newer = make("newer", entities=(Entity("CACHE"),), created_at=day(4))
    put(store, both, one, newer, make("none"), make("theirs", scope=OTHER, entities=(redis,)))
    ranking = store.by_entity(["REDIS", "Cache"], seen(), 10)
    found = store.load([key for key, _ in ranking])
    expected = [(both.id, 2.0), (newer.id, 1.0), (one.id, 1.0)]
    assert [(found[key].id, score) for key, score in ranking] == expected


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([], id="empty"),
        pytest.param(["unknown"], id="unknown"),
    ],
)
def test_unknown_entities_find_nothing(store, names):
    assert store.by_entity(names, seen(), 10) == ()


def test_candidates_hold_the_fields_that_scoring_needs(store):
    words = query_words(parse("redis cache sessions", stores.NOW))
    fields = {"kind": "decision", "importance": 7.0, "confidence": 0.5, "usefulness": 1.0}
    fields |= {"access_count": 2, "trust": 2, "position": 6}
    memory = make("redis redis cache", **fields, created_at=day(2), last_accessed=day(3))
    apart, wordless = make("cache of sessions in redis"), make("owls", created_at=day(5))
    put(store, memory, apart, wordless)
    keys = list(store.keys([memory.id, apart.id, wordless.id]).values())
    found = {one.key: one for one in store.candidates(keys, seen(), words, set(keys[:2]))}
    first, second, third = (found[key] for key in keys)
    assert {name: getattr(first, name) for name in fields} == fields
    assert (first.length, first.created_at) == (3, day(2).timestamp())
    assert (first.last_accessed, third.last_accessed) == (day(3).timestamp(), day(5).timestamp())
    assert (words.lexemes, first.frequencies) == (("redi", "cach", "session"), (2, 1, 0))
    assert (words.pairs, first.pairs) == ((("redi", "cach"), ("cach", "session")), (True, False))
    assert (second.frequencies, third.frequencies) == ((1, 1, 1), (0, 0, 0))
    assert second.pairs == (False, True)  # "of" does not stand between


def test_candidates_obey_the_filter(store):
    words = query_words(parse("redis cache sessions", stores.NOW))
    fields = {"kind": "decision", "importance": 7.0, "confidence": 0.5, "usefulness": 1.0}
    fields |= {"access_count": 2, "trust": 2, "position": 6}
    memory = make("redis redis cache", **fields, created_at=day(2), last_accessed=day(3))
    apart, wordless = make("cache of sessions in redis"), make("owls", created_at=day(5))
    put(store, memory, apart, wordless)
    keys = list(store.keys([memory.id, apart.id, wordless.id]).values())
    assert store.candidates([], seen(), words, ()) == []
    assert store.candidates(keys, seen(OTHER), words, ()) == []
    (decision,) = store.candidates(keys, seen(kinds=("decision",)), words, ())
    assert (decision.key, decision.frequencies) == (keys[0], (0, 0, 0))


def talk(id="s1", host="claude", **fields):
    usual = {"title": "Owls", "source": "/t/a.jsonl", "started_at": day(1), "ended_at": day(2)}
    return Session(id, HERE, host, **usual | fields)


def topic(id, name, summary="", scope=HERE, parent=None, lines=(1, 9), depth=0):
    return Span(id, scope, "s1", parent, name, summary, lines, depth, day(1))


def put_spans(store, *spans):
    made = tuple((span, [vector(f"{span.name} {span.summary}")]) for span in spans)
    write(store, spans=made, model=MODEL)


def found(store, words, *scopes):
    return [id for id, _ in store.keyword_spans(parse(words, stores.NOW), scopes or (HERE,), 10)]


def near(store, words, *scopes):
    return [id for id, _ in store.nearest_spans(vector(words), MODEL, scopes or (HERE,), 10)]


def test_a_session_grows(store):
    first = talk("ab-1", ended_at=day(2))
    write(store, sessions=(first,))
    assert store.sessions((HERE,)) == [first]
    more = {"ended_at": day(6), "metadata": {"turns": 3}}
    write(store, sessions=(talk("ab-1", title="", started_at=day(5), **more),))
    assert store.sessions((HERE,)) == [talk("ab-1", **more)]
    assert store.sessions((OTHER,)) == store.sessions(()) == []


def test_sessions_are_found_by_prefix_or_host(store):
    first = talk("ab-1", ended_at=day(2))
    write(store, sessions=(first,))
    more = {"ended_at": day(6), "metadata": {"turns": 3}}
    write(store, sessions=(talk("ab-1", title="", started_at=day(5), **more),))
    write(store, sessions=(talk("ab-2", "codex", started_at=day(3)), talk("b-1")))
    assert [session.id for session in store.sessions((HERE,), prefix="ab")] == ["ab-1", "ab-2"]
    assert [session.id for session in store.sessions((HERE,), limit=1, offset=1)] == ["ab-1"]
    assert store.sessions((HERE,), prefix="a%") == store.sessions((HERE,), host="nobody") == []
    assert len(store.sessions((HERE,), host="claude")) == 2


def test_memories_are_filtered_by_the_host_of_their_session(store):
    first = talk("ab-1", ended_at=day(2))
    write(store, sessions=(first,))
    write(store, sessions=(talk("ab-2", "codex", started_at=day(3)), talk("b-1")))
    (one,) = tell(store, "owls at night", session="ab-1")
    tell(store, "deploy on friday", session="ab-2")
    tell(store, "redis sessions")
    assert [memory.id for memory in store.list(seen(hosts=("claude",)))] == [one.id]
    assert store.count(seen(hosts=("claude", "codex"))) == 2
    assert store.count(seen(hosts=("gemini",))) == 0


def test_a_topic_that_changes_is_found_by_what_is_true_now(backend, store):
    put_spans(store, topic("t1", "Owls at night"))
    reader = backend.open()
    assert near(reader, "owls at night") == ["t1"]
    put_spans(store, topic("t1", "Redis cache", "the cache of sessions", lines=(1, 30)))
    assert found(store, "owls") == [] and found(store, "redis") == ["t1"]
    asked = vector("Redis cache the cache of sessions")
    ((_, score),) = reader.nearest_spans(asked, MODEL, (HERE,), 5)
    assert score == pytest.approx(1, abs=0.001)
    assert store.spans("s1", (HERE,))[0].lines == (1, 30)


def test_topics_come_in_order(store):
    first, third = topic("a", "first", lines=(1, 19)), topic("c", "third", lines=(20, 29))
    put_spans(store, third, topic("b", "second", parent="a", lines=(1, 5), depth=1), first)
    assert [span.id for span in store.spans("s1", (HERE,))] == ["a", "b", "c"]
    assert store.spans("s1", (OTHER,)) == []


def test_topics_are_found_in_their_scope(store):
    owls = topic("t1", "Owls at night", "We watched barn owls hunt")
    put_spans(store, owls, topic("t2", "Redis cache", "Sessions move to Redis"))
    put_spans(store, topic("t3", "Owls of others", scope=OTHER))
    for _ in range(2):
        assert found(store, "owls") == ["t1"]
        assert set(found(store, "owls", HERE, OTHER)) == {"t1", "t3"}
        assert near(store, "owls at night")[0] == "t1" and "t3" not in near(store, "owls of others")
        for how in (found, near):
            assert how(store, "owls", "project:nowhere") == []
        assert store.spans_by_id(["t1", "t3", "none"], (HERE,)).keys() == {"t1"}
        store.rebuild()


def test_a_message_is_stored_once(store):
    turn = b"0123456789abcdef"

    def say():
        memory = make("An owl flew by")
        receipt = write(store, add=(Entry(memory, unique=False, turn=turn),))
        return memory, receipt.outcomes[0].status

    memory, status = say()
    assert status == "added" and say()[1] == "known"
    stores.purge(store, memory)
    assert say()[1] in ("known", "purged")
    assert store.find_known_turns(HERE, [turn, b"another identity"]) == {turn}
    assert store.find_known_turns(OTHER, [turn]) == set() == store.find_known_turns(HERE, [])


def test_a_purge_takes_the_words_of_its_topics(store):
    part = topic("t2", "Part of it", "4711 again", parent="t1", depth=1)
    put_spans(store, topic("t1", "The vault code", "the code is 4711"), part)
    write(store, sessions=(talk(title="The vault code"),))
    stores.purge(store, *tell(store, "the code is 4711", span="t2", session="s1"))
    assert found(store, "vault") == found(store, "4711") == near(store, "vault code") == []
    assert {(span.name, span.summary) for span in store.spans("s1", (HERE,))} == {("", "")}
    assert store.sessions((HERE,))[0].title == ""


def test_topics_without_a_vector_are_listed(store):
    def bare(model=MODEL, limit=10):
        return [span.id for span in store.list_unembedded_spans(model, limit)]

    names = {"plain": "Owls at night", "changed": "Redis cache", "purged": "The vault", "none": ""}
    write(store, spans=tuple((topic(id, name), ()) for id, name in names.items()))
    put_spans(store, topic("embedded", "Herons"))
    stores.purge(store, *tell(store, "the vault code", span="purged", session="s1"))
    assert bare() == ["plain", "changed"]
    assert bare(limit=1) == ["plain"] and len(bare("another")) == 3


def test_a_topic_that_changed_meanwhile_gets_no_vector(store):
    def bare(model=MODEL, limit=10):
        return [span.id for span in store.list_unembedded_spans(model, limit)]

    names = {"plain": "Owls at night", "changed": "Redis cache", "purged": "The vault", "none": ""}
    write(store, spans=tuple((topic(id, name), ()) for id, name in names.items()))
    put_spans(store, topic("embedded", "Herons"))
    stores.purge(store, *tell(store, "the vault code", span="purged", session="s1"))
    write(store, spans=((topic("changed", "Deploying"), ()),))
    vectors = {id: [vector(names[id])] for id in ("plain", "changed")} | {"nobody": [vector("x")]}
    texts = {id: f"{names[id]}\n" for id in ("plain", "changed")}
    write(store, span_vectors=vectors, made_of=texts, model=MODEL)
    assert bare() == ["changed"]
    assert near(store, "Owls at night")[0] == "plain"
    assert "changed" not in near(store, "Redis cache")


def test_a_failure_is_found_by_the_signature_of_its_error(store):
    tell(store, "`npm test` failed", kind="failure", metadata={"signature": "a1"})
    tell(store, "`make` failed", kind="failure", metadata={"signature": "b2"})
    tell(store, "a note with a signature", metadata={"signature": "a1"})
    found = store.find_failures(["a1", "c3"], seen())
    assert [one.content for one in found] == ["`npm test` failed"]


def test_a_failure_is_found_by_its_cause(store):
    tell(store, "`a` failed", kind="failure", metadata={"causes": ["port:1", "port of a"]})
    tell(store, "`b` failed", kind="failure", metadata={"causes": ["port:2"]})
    tell(store, "`c` failed", kind="failure", metadata={"causes": "port:1"})
    tell(store, "`d` failed", kind="failure")
    found = store.find_failures_by_cause(["port:2", "port of a"], seen())
    assert sorted(one.content for one in found) == ["`a` failed", "`b` failed"]


def test_only_scopes_with_a_vector_of_a_model_have_vectors(store):
    tell(store, "embedded", scope=HERE)
    assert [store.has_vectors(MODEL, (scope,)) for scope in (HERE, OTHER)] == [True, False]


def test_memories_without_a_vector_are_listed_for_some_scopes_newest_first(store):
    old, other, new = make("a"), make("b", scope=OTHER), make("c")
    put(store, old, other, new)
    assert [one.id for one in store.list_unembedded("third", 9, (HERE,))] == [new.id, old.id]


def test_memories_without_a_vector_are_counted_for_some_scopes(store):
    put(store, make("a"), make("b", scope=OTHER), make("c"))
    assert store.count_unembedded("third", (HERE,)) == 2


def test_topics_without_a_vector_are_listed_for_some_scopes(store):
    put_spans(store, topic("t", "Owls at night"))
    assert [len(store.list_unembedded_spans("third", 9, (one,))) for one in (HERE, OTHER)] == [1, 0]
