"""An answer in the form its reader wants: the plain object, the index with details, citations and token counts."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from stores import NOW, make

from bethink.model import Answer, Entity, Hit, Query, Relation
from bethink.recall import shape
from bethink.recall.query import parse
from bethink.recall.shape import choose_excerpt, dual, find_places, find_sought, plain_hit, tokens

KEYS = (
    "id kind scope content summary source path lines section session created_at updated_at importance confidence usefulness access_count"
    " last_accessed valid_from valid_to expires_at deleted_at superseded_by newer answered tags keywords entities metadata trust"
).split()


def answer(*texts, total=None, **fields):
    hits = tuple(Hit(make(text, **fields), 1 - at / 100) for at, text in enumerate(texts))
    count = len(hits) if total is None else total
    return Answer(Query("how?", "how?"), hits, count, "hybrid", hints=("a hint",))


def test_a_plain_memory_has_the_documented_keys():
    read = {"lines": (3, 9), "source": "docs/a.md", "source_type": "markdown", "tags": ("cache",)}
    about = {"expires_at": NOW, "answered": False, "metadata": {"by": "Maria"}}
    memory = make("We chose Redis", entities=(Entity("Redis", "technology"),), **read, **about)
    shaped = json.loads(json.dumps(shape.plain(memory)))
    assert list(shaped) == KEYS
    expected = {"lines": [3, 9], "path": "docs/a.md", "tags": ["cache"], "answered": False}
    expected |= {"expires_at": "2026-03-20T12:00:00.000Z", "deleted_at": None}
    expected |= {"entities": [{"name": "Redis", "type": "technology"}], "metadata": {"by": "Maria"}}
    assert {name: shaped[name] for name in expected} == expected


def test_a_hit_begins_with_id_then_score():
    one, other = make("new"), make("old")
    out, back = Relation(one.id, other.id, "supersedes"), Relation(other.id, one.id, "answers")
    hit = Hit(one, 0.123456, {"cosine": 0.5}, ((out, other), (back, other)))
    shaped = plain_hit(hit)
    assert list(shaped) == ["id", "score", *KEYS[1:], "related"]
    assert shaped["score"] == 0.1235
    related = [(link["type"], link["direction"], link["id"]) for link in shaped["related"]]
    assert related == [("supersedes", "out", other.id), ("answers", "in", other.id)]
    assert plain_hit(hit, explain=True)["why"] == {"cosine": 0.5}
    assert "related" not in plain_hit(hit._replace(related=()))


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        pytest.param({"source": "note:user"}, "note:user", id="note-user"),
        pytest.param(
            {"source": "docs/auth.md", "source_type": "markdown", "lines": (12, 40)},
            "docs/auth.md:12-40",
            id="source_type-lines-docs/auth.md-markdown",
        ),
        pytest.param(
            {"source": "docs/auth.md", "source_type": "markdown", "lines": (12, 12)},
            "docs/auth.md:12",
            id="source_type-lines-docs/auth.md-markdown-2",
        ),
        pytest.param(
            {"source": "docs/auth.md", "source_type": "markdown"},
            "docs/auth.md",
            id="source_type-docs/auth.md",
        ),
        pytest.param(
            {"source": "session abc", "source_type": "transcript", "lines": (7, 7)},
            "session abc:7",
            id="source_type-lines-session-abc",
        ),
    ],
)
def test_a_citation_names_file_then_lines(fields, place):
    assert shape.citation(make("text", **fields)) == place


def test_tokens_are_counted():
    assert {text: tokens(text) for text in COUNTS} == COUNTS


COUNTS = {"": 0, "a": 1, "four": 1, "fives": 2, "word " * 8: 10, "é" * 8: 2}
COUNTS |= {"数据库": 2, "数" * 30: 20, "用 Redis 缓存": 4, "한국어": 2}


def test_an_answer_that_fits_is_shown_in_full():
    texts = ["We chose Redis for the cache.", "We deploy on Fridays."]
    shaped = dual(answer(*texts), 1000)
    assert [line["summary"] for line in shaped.index] == texts
    assert list(shaped.index[0]) == ["id", "summary", "kind", "score"]
    assert [detail["content"] for detail in shaped.details] == texts
    assert (shaped.total_count, shaped.has_more, shaped.query) == (2, False, "how?")
    assert shaped.hints == ("a hint",)
    assert not any("truncated" in detail for detail in shaped.details)


def test_the_first_detail_is_cut_to_the_budget():
    # The first detail is cut; a later one that is too long makes room for a shorter one.
    cut = dual(answer("We chose Redis because " + "it is fast " * 500, "second " * 300), 150)
    (first,) = cut.details
    assert first["truncated"] and first["content"].endswith(" …")
    assert first["content"].startswith("We chose Redis because it is fast")
    assert cut.tokens_used <= 150


def test_a_long_detail_is_an_excerpt_that_leaves_room_for_a_short_one():
    shaped = dual(answer("short one", "long " * 400, "short two"), 200)
    assert [detail["content"][:9] for detail in shaped.details] == [
        "short one",
        "long long",
        "short two",
    ]
    assert [detail.get("truncated", False) for detail in shaped.details] == [False, True, False]


def test_a_cut_index_says_that_there_is_more():
    # More is told of when the index or the page ends.
    many = answer(*(f"memory number {number} of a long list of memories" for number in range(50)))
    assert dual(many, 100).has_more and len(dual(many, 100).index) < 50
    assert not dual(many, 100_000).has_more
    assert dual(answer("one", total=7), 1000).has_more


def test_a_line_is_paid_for_only_without_its_detail():
    # A line is paid for only where the text is not shown.
    shaped = dual(answer(*(f"memory number {number}" for number in range(32))), 300)
    assert len(shaped.index) >= 15, "five lines, paid for twice, left 27 out"
    assert shaped.tokens_used <= 300 and shaped.has_more
    paid = [12 + tokens(line["summary"]) for line in shaped.index]
    assert shaped.tokens_used == sum(paid) + len(shaped.details) * tokens("note")
    long = dual(answer(*(f"{number} " + "word " * 300 for number in range(32))), 300)
    assert 1 <= len(long.details) < len(long.index)


@settings(max_examples=50)
@given(
    some.lists(some.text(some.sampled_from("ab  \n数é.")).map(lambda text: text * 20), max_size=12),
    some.sampled_from(["short", "word " * 48, "数" * 240, "x" * 5000, " " * 5000]),
    some.integers(50, 2000),
)
def test_an_answer_stays_within_its_budget(texts, summary, max_tokens):
    shaped = dual(answer(*texts, summary=summary), max_tokens)
    whole = {detail["id"] for detail in shaped.details}
    spent = sum(tokens(line["summary"]) for line in shaped.index if line["id"] not in whole)
    spent += sum(tokens(detail["content"]) for detail in shaped.details)
    assert spent <= shaped.tokens_used <= max_tokens
    assert bool(shaped.index) == bool(texts)


def test_an_excerpt_holds_the_sentences_that_the_question_is_about():
    filler = "Nothing of interest happened here, and nobody minded. " * 20
    text = f"{filler}The backup runs at four. {filler}It writes to the attic disk. {filler}"
    found = make(text, summary="notes")
    asked = Answer(
        parse("when does the backup write to the attic?", NOW), (Hit(found, 1.0),), 1, "hybrid"
    )
    (detail,) = dual(asked, 150).details
    assert "The backup runs at four." in detail["content"]
    assert "It writes to the attic disk." in detail["content"]


def test_what_is_left_of_a_budget_lengthens_the_excerpts():
    long = answer("word " * 300)
    assert dual(long, 1000).details[0]["content"] == "word " * 300


# What a text holds of what was looked for


def excerpt(text, question, length):
    return choose_excerpt(text, find_sought(parse(question, NOW)), length)


@pytest.mark.parametrize(
    ("question", "text", "words"),
    [
        pytest.param(
            "deploy",
            "We deployed it; deploying takes a minute",
            ["deployed", "deploying"],
            id="deploy",
        ),
        pytest.param("how do we deploy?", "How we do it: we deploy", ["deploy"], id="how-deploy"),
        pytest.param("cafe", "The Café and the CAFÉ", ["Café", "CAFÉ"], id="cafe"),
        pytest.param(
            '"rate limit"',
            "The rate limit and its rates",
            ["rate", "limit", "rates"],
            id="rate-limit",
        ),
        pytest.param(
            "depl*", "deployment, depletion, replay", ["deployment", "depletion"], id="depl"
        ),
        pytest.param(
            "redis AND NOT memcached", "Redis and memcached", ["Redis"], id="redis-NOT-memcached"
        ),
        pytest.param("http url", "parseHttpUrl and HTTP", ["parseHttpUrl", "HTTP"], id="http-url"),
        pytest.param("snake_case", "a snake_case name", ["snake", "case"], id="snake_case"),
        pytest.param("東京", "私は東京タワーに行く。京都", ["私は東京タワーに行く"], id="cjk"),
        pytest.param("the", "the fact", ["the"], id="the"),
        pytest.param("", "nothing is asked", [], id="empty"),
        pytest.param("<script>", "a <script> tag", ["script"], id="script"),
        pytest.param("zzz", "nothing of that", [], id="zzz"),
    ],
)
def test_words_of_the_question_are_marked(question, text, words):
    places = find_places(text, find_sought(parse(question, NOW)))
    assert [text[start:end] for start, end in places] == words, question


def test_an_excerpt_shows_the_best_part():
    wanted = "The cart lives in Redis for seven days. "
    text = f"Redis is here. {'Something else entirely. ' * 60}{wanted}{'And more. ' * 60}"
    start, end = excerpt(text, "redis cart seven days", 120)
    assert text[start:end].startswith("The cart lives in Redis")
    assert end - start <= 120


def test_a_short_text_is_its_own_excerpt():
    assert excerpt("short", "x", 100) == (0, 5)
    assert excerpt("x" * 5000, "y", 100) == (0, 100)


def test_a_huge_text_is_marked_within_bounds():
    huge = "word redis " * 500_000
    assert len(find_places(huge, find_sought(parse("redis", NOW)))) <= 2001 + 1
    assert excerpt(huge, "redis", 300)[1] <= 300
