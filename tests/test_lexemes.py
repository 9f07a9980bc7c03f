"""Texts as the words they are indexed under."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.store import words as lexemes
from bethink.store.words import count_occurrences, hash_word, pack, pair_hash, parts, tokenize


def paired(found):
    """Words that stand side by side, stop words not counted: the cheap form of a phrase."""
    return set(pairwise([word for word in found if word not in lexemes._list_stops()]))


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        pytest.param("parseHttpUrl", ["parse", "Http", "Url"], id="parsehttpurl-parse-http"),
        pytest.param("ParseHTTPUrl", ["Parse", "HTTP", "Url"], id="parsehttpurl-parse-HTTP"),
        pytest.param("XMLHttpRequest", ["XML", "Http", "Request"], id="xmlhttprequest"),
        pytest.param("getV2Api", ["get", "V", "2", "Api"], id="getv2api"),
        pytest.param("HTTPServer", ["HTTP", "Server"], id="httpserver"),
        pytest.param("word", [], id="word"),
        pytest.param("Word", [], id="word-2"),
        pytest.param("WORD", [], id="WORD"),
        pytest.param("iPhone", [], id="iphone"),
        pytest.param("", [], id="empty"),
        pytest.param("snake_case", [], id="snake_case"),
        pytest.param("two words", [], id="two-words"),
        pytest.param("a1", [], id="a1"),
        pytest.param("utf8Text", ["utf", "8", "Text"], id="utf8text"),
    ],
)
def test_an_identifier_is_split_into_parts(identifier, expected):
    assert parts(identifier) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("plain words", "plain words", id="plain-words"),
        pytest.param("", "", id="empty"),
        pytest.param("a\x00b", "a b", id="b"),
        pytest.param(
            "call parseHttpUrl now",
            "call parseHttpUrl now\nparse Http Url",
            id="call-parsehttpurl-now",
        ),
        pytest.param("fooBar and bazQux", "fooBar and bazQux\nfoo Bar baz Qux", id="foobar-bazqux"),
        pytest.param("数据库", " 数据 据库 \n库", id="cjk-cjk"),
        pytest.param("猫", " 猫 ", id="cjk-cjk-2"),
        pytest.param("用Redis存储", " 用 Redis 存储 \n储", id="redis"),
        pytest.param("café", "café", id="cafe"),
        pytest.param("数据 数据", " 数据   数据 \n据", id="cjk-cjk-3"),
    ],
)
def test_a_text_is_prepared_for_the_tokenizer(text, expected):
    assert lexemes.prepare(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", [], id="empty"),
        pytest.param("  \n ", [], id="blank"),
        pytest.param("Hello, World!", ["hello", "world"], id="hello-world"),
        pytest.param("running runs runner", ["run", "run", "runner"], id="running-runs-runner"),
        pytest.param("Café CAFE café", ["cafe"] * 3, id="cafe-CAFE-cafe"),
        pytest.param("Größe", ["groß"], id="groe"),
        pytest.param("parseHttpUrl", ["parsehttpurl", "pars", "http", "url"], id="parsehttpurl"),
        pytest.param("snake_case_name", ["snake", "case", "name"], id="snake_case_name"),
        pytest.param("src/store/rows.py", ["src", "store", "row", "py"], id="src/store/rows.py"),
        pytest.param("数据库", ["数据", "据库", "库"], id="cjk"),
        pytest.param("データ", ["デー", "ータ", "タ"], id="katakana"),
        pytest.param("3.51.3", ["3", "51", "3"], id="3.51.3"),
        pytest.param("don't", ["don", "t"], id="don-t"),
        pytest.param("a\x00b", ["a", "b"], id="b"),
        pytest.param("🦉 owl", ["🦉", "owl"], id="owl"),
        pytest.param("half \ud800 pair", ["half", "pair"], id="half-pair"),
        pytest.param("x\u2028y", ["x", "y"], id="xy"),
    ],
)
def test_a_text_becomes_lexemes(text, expected):
    assert tokenize(text) == expected


def test_pairs_are_of_neighbours_that_say_something():
    found = paired(tokenize("the cache of sessions in Redis"))
    assert found == {("cach", "session"), ("session", "redi")}


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["one"], id="one word"),
        pytest.param([], id="none"),
        pytest.param(tokenize("and of the"), id="words that say nothing"),
    ],
)
def test_too_few_words_make_no_pair(words):
    assert paired(words) == set()


PACKED = tokenize("redis cache redis, cache redis of sessions")


def test_a_packed_text_counts_its_words_and_pairs():
    single = [hash_word(word) for word in "redi cach session of owl".split()]
    asked = "redi cach|cach redi|redi session|session redi|redi of".split("|")
    double = [pair_hash(tuple(pair.split())) for pair in asked]
    together = (True, True, True, False, False)
    assert count_occurrences(pack(PACKED), single, double) == ((3, 2, 1, 1, 0), together)


def test_a_packed_text_holds_each_word_once():
    assert list(lexemes.unpack(pack(PACKED))) == sorted(hash_word(word) for word in set(PACKED))


WORD = st.text(alphabet="abcdeé漢", min_size=1, max_size=3)
WORDS, PAIRS = st.lists(WORD, max_size=40), st.lists(st.tuples(WORD, WORD), max_size=8)


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(WORDS, st.lists(WORD, max_size=8), PAIRS)
def test_occurrences_agree_with_counting(words, asked, pairs):
    counts = Counter(map(hash_word, words))
    beside = {pair_hash(pair) for pair in paired(words)}
    single, double = [hash_word(word) for word in asked], [pair_hash(pair) for pair in pairs]
    found, together = count_occurrences(pack(words), single, double)
    assert found == tuple(counts[word] for word in single)
    assert together == tuple(pair in beside for pair in double)
