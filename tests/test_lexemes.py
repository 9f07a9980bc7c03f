"""Texts as the words they are indexed under."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from case_tables import cases
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


@pytest.mark.parametrize(("identifier", "expected"), cases("lexemes-identifiers-fall-into-parts"))
def test_identifiers_fall_into_parts(identifier, expected):
    assert parts(identifier) == expected


@pytest.mark.parametrize(("text", "expected"), cases("lexemes-a-text-is-prepared"))
def test_a_text_is_prepared_for_the_index(text, expected):
    assert prepare(text) == expected


@pytest.mark.parametrize(("text", "expected"), cases("lexemes-a-text-becomes-lexemes", globals()))
def test_a_text_becomes_lexemes(text, expected):
    assert tokenize(text) == expected


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
