"""Texts as the words they are indexed under."""

from collections import Counter
from itertools import pairwise

from case_tables import rules
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.store import words as lexemes
from bethink.store.words import count_occurrences, hash_word, pack, pair_hash, parts, tokenize


def paired(found):
    """Words that stand side by side, stop words not counted: the cheap form of a phrase."""
    return set(pairwise([word for word in found if word not in lexemes._list_stops()]))


@rules(
    {
        "lexemes-identifiers-fall-into-parts": parts,
        "lexemes-a-text-is-prepared": lexemes.prepare,
        "lexemes-a-text-becomes-lexemes": tokenize,
    },
    globals(),
)
def test_a_text_is_prepared_and_becomes_lexemes(function, given, expected):
    assert function(*given) == expected


def test_pairs_are_of_neighbours_that_say_something_and_a_packed_text_answers_for_its_words():
    found = paired(tokenize("the cache of sessions in Redis"))
    assert found == {("cach", "session"), ("session", "redi")}
    assert paired(["one"]) == paired([]) == paired(tokenize("and of the")) == set()
    words = tokenize("redis cache redis, cache redis of sessions")
    single = [hash_word(word) for word in "redi cach session of owl".split()]
    asked = "redi cach|cach redi|redi session|session redi|redi of".split("|")
    double = [pair_hash(tuple(pair.split())) for pair in asked]
    together = (True, True, True, False, False)
    assert count_occurrences(pack(words), single, double) == ((3, 2, 1, 1, 0), together)
    assert list(lexemes.unpack(pack(words))) == sorted(hash_word(word) for word in set(words))


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
