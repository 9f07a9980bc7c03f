"""Texts as the words they are indexed under."""

from __future__ import annotations

import time
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.store import words as lexemes
from bethink.store.words import (
    count_occurrences,
    hash_word,
    pack,
    pair_hash,
    parts,
    prepare,
    tokenize,
    unpack,
)

FIXED = settings(max_examples=150, deadline=None, derandomize=True, database=None)


def paired(found):
    """Words that stand side by side, stop words not counted: the cheap form of a phrase."""
    return set(pairwise(lexemes._drop_stops(found)))


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        ("parseHttpUrl", ["parse", "Http", "Url"]),
        ("ParseHTTPUrl", ["Parse", "HTTP", "Url"]),
        ("XMLHttpRequest", ["XML", "Http", "Request"]),
        ("getV2Api", ["get", "V", "2", "Api"]),
        ("HTTPServer", ["HTTP", "Server"]),
        ("word", []),
        ("Word", []),
        ("WORD", []),
        ("iPhone", []),
        ("", []),
        ("snake_case", []),
        ("two words", []),
        ("a1", []),
        ("utf8Text", ["utf", "8", "Text"]),
    ],
)
def test_identifiers_fall_into_parts(identifier, expected):
    assert parts(identifier) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain words", "plain words"),
        ("", ""),
        ("a\x00b", "a b"),
        ("call parseHttpUrl now", "call parseHttpUrl now\nparse Http Url"),
        ("fooBar and bazQux", "fooBar and bazQux\nfoo Bar baz Qux"),
        ("数据库", " 数据 据库 \n库"),
        ("猫", " 猫 "),
        ("用Redis存储", " 用 Redis 存储 \n储"),
        ("café", "café"),
        ("数据 数据", " 数据   数据 \n据"),
    ],
)
def test_a_text_is_prepared_for_the_index(text, expected):
    assert prepare(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  \n ", []),
        ("Hello, World!", ["hello", "world"]),
        ("running runs runner", ["run", "run", "runner"]),
        ("Café CAFE cafe\u0301", ["cafe"] * 3),
        ("Größe", ["groß"]),
        ("parseHttpUrl", ["parsehttpurl", "pars", "http", "url"]),
        ("snake_case_name", ["snake", "case", "name"]),
        ("src/store/rows.py", ["src", "store", "row", "py"]),
        ("数据库", ["数据", "据库", "库"]),
        ("データ", ["デー", "ータ", "タ"]),
        ("3.51.3", ["3", "51", "3"]),
        ("don't", ["don", "t"]),
        ("a\x00b", ["a", "b"]),
        ("🦉 owl", ["🦉", "owl"]),
        ("half \ud800 pair", ["half", "pair"]),
        ("x\u2028y", ["x", "y"]),
    ],
)
def test_a_text_becomes_lexemes(text, expected):
    assert tokenize(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a" * 200_000,
        "A" * 200_000,
        "a1" * 100_000,
        "aB" * 100_000,
        "f3" * 100_000,
        "漢" * 200_000,
        "Ab" * 100_000,
        "ABc" * 60_000,
        "_" * 200_000,
    ],
)
def test_a_text_without_spaces_costs_no_more_than_another(text):
    started = time.process_time()
    prepare(text)
    assert (
        time.process_time() - started < 3
    )  # it was four minutes when each letter was tried to the end


def test_pairs_are_of_neighbours_that_say_something():
    assert paired(tokenize("the cache of sessions in Redis")) == {
        ("cach", "session"),
        ("session", "redi"),
    }
    assert paired(["one"]) == paired([]) == paired(tokenize("and of the")) == set()


def test_a_packed_text_answers_for_its_words():
    words = tokenize("redis cache redis, cache redis of sessions")
    blob = pack(words)
    single = [hash_word(word) for word in ("redi", "cach", "session", "of", "owl")]
    double = [
        pair_hash(pair)
        for pair in (
            ("redi", "cach"),
            ("cach", "redi"),
            ("redi", "session"),
            ("session", "redi"),
            ("redi", "of"),
        )
    ]
    assert count_occurrences(blob, single, double) == (
        (3, 2, 1, 1, 0),
        (True, True, True, False, False),
    )
    assert list(unpack(blob)) == sorted(hash_word(word) for word in set(words))


def test_a_damaged_blob_counts_as_no_words():
    whole = pack(["owl", "heron", "crow"])
    for damaged in (
        b"\xff\xff\xff\xff",
        b"\xff\xff\xff\xff" + whole[4:],
        whole[:7],
        whole + b"x",
        b"\x01",
    ):
        assert count_occurrences(damaged, [hash_word("owl")], [1])[0][0] in (0, 1)
        list(unpack(damaged))


WORD = st.text(alphabet="abcdeé漢", min_size=1, max_size=3)


@FIXED
@given(
    st.lists(WORD, max_size=40),
    st.lists(WORD, max_size=8),
    st.lists(st.tuples(WORD, WORD), max_size=8),
)
def test_occurrences_agree_with_counting(words, asked, pairs):
    counts = Counter(map(hash_word, words))
    beside = {pair_hash(pair) for pair in paired(words)}
    found, together = count_occurrences(
        pack(words), [hash_word(word) for word in asked], [pair_hash(pair) for pair in pairs]
    )
    assert found == tuple(counts[hash_word(word)] for word in asked)
    assert together == tuple(pair_hash(pair) in beside for pair in pairs)
