"""The first hits, read a second time together with the question: those that answer it come before those that only resemble it.

A model that reads question and passage at once (`judge.fit`) knows what neither words nor vectors do: whether this is an answer.
It learned that from questions to conversations, and only there is it sure of itself. So it reads statements and what was said,
never documents or code, which keep their places; and it is asked a question in a person's words, not a few keywords or the
subject of a commit.

The hits exchange their scores along with their places: what a score means, and what a threshold leaves out, stays as it was.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from bethink.recall.shape import choose_excerpt, find_sought
from bethink.text import STOP_WORDS, is_english
from bethink.types import Candidate, Memory, Query

if TYPE_CHECKING:
    from bethink.judge import Judge

Ranked = Sequence[tuple[float, Candidate]]

# What is read, so that a search stays within 150 ms on two cores: hits, and characters of each (about 64 tokens).
PAIRS, ROOM = 16, 280
WEIGHT = 0.3  # of the second reading against the score: the best of half of locomo's held questions (bench/LOG.md, 2026-11-16)
UNREAD = ("document", "code")
LONGEST = 300  # characters of a question; what is longer was pasted
_ASKS = (
    r"(?:and |so |but )?(?:what|when|where|who|whom|whose|why|which|how|did|do(?! not)|does|is|are|was|were|can|could|may"
    r"|should|would|will|has|have|had)(?:'s|'re)? "
)


def is_question(text: str) -> bool:
    """Whether somebody asks, in English and in words of their own, as the model has learned it."""
    text = text.strip().replace("’", "'").lower()
    words = set(text.rstrip("?").split()) - {"was"}  # with which German asks, too
    spoken = not STOP_WORDS.isdisjoint(words)
    begins = re.match(_ASKS, text) is not None and (spoken or not text.startswith("was "))
    asks = begins or (spoken and text.endswith("?"))
    return asks and len(text) <= LONGEST and is_english(text)


def rerank(
    ranked: Ranked,
    query: Query,
    standing: Callable[[Candidate], int],
    load: Callable[[Sequence[int]], Mapping[int, Memory]],
    judge: Judge,
) -> tuple[Ranked, dict[int, dict[str, float]]]:
    """The hits in their new order, and of each that was read how well it fits and by how many places it rose. Places are exchanged
    among hits of one standing alone: whatever comes first for another reason than relevance still does."""
    groups: dict[int, list[int]] = {}
    for place, (_, one) in enumerate(ranked[:PAIRS]):
        if one.kind not in UNREAD:
            groups.setdefault(standing(one), []).append(place)
    read = [ranked[place][1].key for group in groups.values() for place in group]
    memories = load(read)
    sought = find_sought(query)

    def show(text: str) -> str:
        start, end = choose_excerpt(text, sought, ROOM)
        return text[start:end]

    pairs = [(query.text, show(memories[key].content) if key in memories else "") for key in read]
    fits = dict(zip(read, judge.fit(pairs), strict=True))
    order = list(ranked)
    why: dict[int, dict[str, float]] = {}
    for group in groups.values():
        best = sorted(group, key=lambda place: -_mix(ranked[place][0], fits[ranked[place][1].key]))
        for place, before in zip(group, best, strict=True):
            one = ranked[before][1]
            order[place] = (ranked[place][0], one)
            why[one.key] = {"fits": round(fits[one.key], 4), "moved": before - place}
    return order, why


def _mix(score: float, fit: float) -> float:
    """Both as what they were before they were squeezed between 0 and 1. How far apart two values are then says how sure each is:
    where the model sees no difference, or where one hit stands far out, nothing moves."""
    score = min(max(score, 0.001), 0.999)
    return math.log(score / (1 - score)) + WEIGHT * fit
