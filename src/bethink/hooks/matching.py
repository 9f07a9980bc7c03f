"""Matching: the features of a memory beside a prompt, and the profile that ranks by them.

A search always finds something; a hook must know when that is nothing. So the evidence is in log-odds: what speaks for mentioning a memory
less what speaks against it, and a relevance of a half is even odds.

The evidence of words is how unlikely it is that a memory has the prompt's words by chance. A word in one of a hundred memories is worth the
logarithm of a hundred. Words that any prompt may have count little, and alone they count nothing. Words that no memory of the scope
knows speak against it: the prompt is about something else. A statement that the judge has read is ranked by its reading instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from bethink.language.questions import ASKS_MEMORY, GENERAL_QUESTION
from bethink.language.words import COMMON_WORDS, STOP_WORDS
from bethink.recall.rank import Features, Profile, find_key
from bethink.store.words import space_out, tokenize

if TYPE_CHECKING:
    from bethink.model import Words
    from bethink.store.base import Statistics

# Weights in log-odds. By words: set on two sets of coding sessions with 218 unrelated prompts; each rule taken away by itself tells up to 12 right
# memories fewer of 362, or breaks the silence up to twice more (bench/LOG.md, 2026-11-15 and 2026-11-16). By the judge: set on projects
# that no model had seen (2026-11-16 to 2026-11-18).
PROMPT = Profile(
    weights={
        "telling": 0.5,  # worth of the telling words that it holds
        "common": 0.5,  # worth of the common words that it holds, up to `MOST_COMMON`
        "foreign": -0.5,  # worth of the telling words that no memory of the scope holds
        "pairs": 1.5,  # share of the prompt's word pairs that it holds
        "coverage": 2.0,  # share of the telling words that it holds, by worth
        "identifier": 3.0,  # it holds an identifier of the prompt
        "answerable": 2.25,  # the prompt asks something, and all telling words are there
        "single": -1.5,  # it holds one telling word, and that is not all that was asked
        "general": -1.5,  # the prompt could be asked anywhere
        "by_words": -5.5,  # nobody has read it
        "judge": 1.0,  # log-odds that it applies, by the judge
        "worded": 2.5,  # relevance by words, where the prompt asks something
        "by_judge": 0.2,  # the silence that small edits leave over
        "few": 0.5,  # in a small project there is less that could be shown wrongly
        "small_edit": -1.0,  # the prompt describes a small edit in full: few rules apply to it
    },
    middle=0.0,
    steepness=1.0,
    doubt=0.0,
)
# Share of texts about software with a telling and with a common word, and the memories' worth of belief in that: matters where a scope has few
# memories. Fixed with the weights above (bench/LOG.md, 2026-11-15).
USUAL_SHARE, USUAL_SHARE_COMMON, BELIEF = 0.003, 0.1, 1000
# Of one word, a typing mistake at worst; and of all common words together: two of them. A cap of 5 adds .01 on both sets (bench/LOG.md, 2026-11-15).
MOST_WORTH, MOST_COMMON = 5.0, 4.6
# Memories at which words that none of them holds count half. By hand, for small projects: no difference on the sets (bench/LOG.md, 2026-11-16).
HALF_FOREIGN = 300
# Worth of a word that makes an identifier telling: `README.md` tells nothing. Without identifiers 7 of 31 questions by name are missed,
# with them 4 (bench/LOG.md, 2026-11-16).
TELLING_NAME = 4.0
# Statements of a project from which on their number counts no more: the judge's bar was set on projects of 40 to 80. And the fewest that
# count: between these, the weight `few` shows more at the same silence (bench/LOG.md, 2026-11-19).
MANY_STATEMENTS, FEWEST = 40, 5
ALL_WORDS = 0.99  # a coverage of 1, but for rounding
CERTAIN = 1e-6  # what is left of doubt, so that log-odds are finite


class PromptWords(NamedTuple):
    """A prompt's words, each with its worth, in a scope."""

    telling: Mapping[str, float]
    common: Mapping[str, float]
    foreign: float  # worth of the telling words that no memory of the scope holds
    asks: bool
    general: bool = False  # could be asked anywhere
    identifiers: tuple[frozenset[str], ...] = ()  # telling ones, by their lexemes


def read_prompt(
    text: str, identifiers: Sequence[str], words: Words, statistics: Statistics
) -> PromptWords:
    """Weigh the words of a prompt by how rare they are in the scope, and in texts about software."""
    telling, common, foreign = dict[str, float](), dict[str, float](), 0.0
    for word, count in zip(words.lexemes, statistics.counts, strict=True):
        plain = len(word) == 1 or word in common_lexemes() or (word.isdigit() and len(word) < 3)
        usual = BELIEF * (USUAL_SHARE_COMMON if plain else USUAL_SHARE)
        worth = min(MOST_WORTH, math.log((statistics.memories + BELIEF) / (count + usual)))
        (common if plain else telling)[word] = worth
        if not plain and not count:
            foreign += worth
    foreign *= statistics.memories / (statistics.memories + HALF_FOREIGN)
    named = [frozenset(tokenize(space_out(name), prepared=True)) for name in identifiers]
    rare = {word for word, worth in telling.items() if worth >= TELLING_NAME}
    names = tuple(name for name in named if name & rare)
    general = GENERAL_QUESTION.holds(text)
    asks = ASKS_MEMORY.holds(text) and not general
    return PromptWords(telling, common, foreign, asks, general, names)


def match_words(prompt: PromptWords, lexemes: AbstractSet[str], pairs: float) -> Features:
    """Return the features of a memory with these lexemes; `pairs` is its share of the prompt's word pairs."""
    matched = [worth for word, worth in prompt.telling.items() if word in lexemes]
    if not matched:
        return {"relevance": 0.0}
    coverage = sum(matched) / sum(prompt.telling.values())
    common = sum(worth for word, worth in prompt.common.items() if word in lexemes)
    identifier = any(name <= lexemes for name in prompt.identifiers)
    answerable = prompt.asks and coverage > ALL_WORDS
    single = len(matched) < 2 and not identifier and not answerable
    return {
        "by_words": 1.0,
        "telling": sum(matched),
        "common": min(MOST_COMMON, common),
        "foreign": prompt.foreign,
        "pairs": pairs,
        "coverage": coverage,
        "identifier": float(identifier),
        "answerable": float(answerable),
        "single": float(single),
        "general": float(prompt.general),
    }


def match_judge(
    probability: float, worded: float, small_edit: bool = False, statements: int = 0
) -> Features:
    """Return the features of one of so many statements that the judge has read beside the prompt."""
    probability = min(max(probability, CERTAIN), 1 - CERTAIN)
    odds = math.log(probability / (1 - probability))
    few = math.log(MANY_STATEMENTS / max(FEWEST, min(statements, MANY_STATEMENTS)))
    found = {"by_judge": 1.0, "judge": odds, "worded": worded, "small_edit": float(small_edit)}
    return {**found, "few": few if statements else 0.0}


def score_match(features: Features) -> float:
    """Return how surely a memory fits a prompt, from 0 to 1."""
    return find_key(features, PROMPT).score


def find_telling_words(text: str) -> set[str]:
    """Return the words of a text that not every text has."""
    return set(tokenize(text)) - common_lexemes()


@cache
def common_lexemes() -> frozenset[str]:
    """Return the words that any prompt may hold, as the index knows them."""
    return frozenset(tokenize(" ".join((*COMMON_WORDS, *STOP_WORDS))))
