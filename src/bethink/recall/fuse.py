"""Several opinions about relevance → one number per memory. Pure: no store, no model, no clock.

The strong signals are kept as scores and not reduced to ranks, because how far apart the scores are says how much a
signal knows about this question. Each is measured from its own background:

- **meaning**: the cosine, from the mean cosine of the whole scope up to 1. Where all texts look alike to the model (long
  sessions about everything) the differences are small by themselves and words decide; no weight has to be told.
- **words**: BM25 with the word weights of the searched scope, from the thirtieth best score up to the best. A question
  whose words stand everywhere has thirty equally good matches and so little to say. Memories that hold only a part of the
  question are damped (coverage).
- **pairs**: words of the question that stand side by side here too.
- **topic**: the conversation's topic, by its name and summary, fits the question.
- **neighbours**: the turns before and after fit as well. **nearness in time**, by weeks and by hours, breaks ties towards what is recent.

Measured on eight sets in bench/LOG.md (2026-11-15), where it is above the cosine alone and BM25 alone on every measure.
Reciprocal rank fusion is kept as a choice; it loses to its better half wherever the halves differ in strength.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import NamedTuple

from bethink.store.base import Statistics
from bethink.types import NOTHING, Candidate, Words

K1, B = 1.2, 0.75
MEANING = 0.7  # weight of meaning against words
STRETCH = 1.6  # brings the cosine's span to that of the words (bench/LOG.md, 2026-11-16)
BACKGROUND, BACKGROUND_RANK = 0.7, 30  # share of the score at that rank which counts as background
# Share of a word score that full coverage of the question is worth. In long passages one rare word is evidence; among
# statements of a few words a memory that shares one word with the question is mostly about something else.
COVERAGE, COVERAGE_SHORT = 0.4, 1.0
SHORT, LONG = 20.0, 40.0  # words of the average memory between which the one becomes the other
PAIRS = 0.1
NEIGHBOUR = 0.25  # what a strong neighbour adds
NEAR = (
    (-1, 1.0),
    (1, 1.0),
    (-2, 0.5),
    (2, 0.5),
)  # where a neighbour may stand, and how much of it counts
RECENT, FADE = (
    0.1,
    21 * 86400.0,
)  # what being told lately adds, and the seconds after which a third of it is left
TODAY, DAY_FADE = (
    0.25,
    24 * 3600.0,
)  # and what being said just now adds in a conversation: most questions are about the work at hand
# What was said after the question was asked is not what it asks about. That happens where an old question is asked again, and by
# clocks that differ, for which a minute is allowed.
LATER, SKEW = 0.1, 60.0
TOPIC = 0.15  # what the topic of a conversation that fits adds to what was said in it
PRIOR = (
    8  # memories' worth of belief in the model's usual mean cosine, for scopes of a few memories
)
RRF_K = 60


class Spoken(NamedTuple):
    """What words say of one candidate: BM25, the covered share of the question, the score of the words and of their pairs."""

    bm25: float = 0.0
    coverage: float = 0.0
    words: float = 0.0
    pairs: float = 0.0


SILENT = Spoken()


class Pool(NamedTuple):
    """Everything that was gathered about one question."""

    candidates: Sequence[Candidate]
    words: Words
    statistics: Statistics
    found: Mapping[int, float]  # the full-text engine's own score of what it found
    boosts: Mapping[int, float]  # additions for named entities
    cosines: Mapping[int, float]
    topics: Mapping[str, float] = NOTHING  # how well the topic of a conversation fits, by its id
    said: Mapping[int, Spoken] | None = (
        None  # what `said` gives, where it was worked out while the model was busy
    )


def join_pools(one: Pool, other: Pool) -> Pool:
    """What two ways of looking found. A candidate that both found is taken from the first."""
    known = {candidate.key for candidate in one.candidates}
    return other._replace(
        candidates=[*one.candidates, *(new for new in other.candidates if new.key not in known)],
        found={**other.found, **one.found},
        boosts={**other.boosts, **one.boosts},
        cosines={**other.cosines, **one.cosines},
        topics={**other.topics, **one.topics},
        said=None,
    )


class Signals(NamedTuple):
    """What each signal said of one candidate, kept for `--explain`."""

    cosine: float | None
    meaning: float
    bm25: float
    coverage: float
    words: float
    pairs: float
    neighbours: float
    recent: float
    named: float
    topic: float
    relevance: float


def word_weights(statistics: Statistics) -> list[float]:
    """How telling each word of the question is inside the scope."""
    total = statistics.memories
    return [
        math.log(1 + (total - min(count, total) + 0.5) / (count + 0.5))
        for count in statistics.counts
    ]


def fuse(
    pool: Pool, now: float, method: str = "adaptive", gate: float = -1.0, baseline: float = 0.0
) -> dict[int, Signals]:
    """What every signal says of each candidate, and its relevance, in their order. `gate` drops weak cosines; `baseline` is the mean cosine that the model usually gives."""
    candidates = pool.candidates
    keys = [candidate.key for candidate in candidates]
    by_words = score_words(pool) if pool.said is None else pool.said
    spoken = [by_words.get(key, SILENT) for key in keys]
    cosines, meanings = _measure_meaning(pool, keys, gate, baseline)
    if method == "rrf":
        relevance = _fuse_ranks(cosines, [words.bm25 for words in spoken])
        named = inside = lift = recent = [0.0] * len(keys)
    else:
        named = [pool.boosts.get(key, 0.0) for key in keys]
        inside = [TOPIC * pool.topics.get(candidate.span or "", 0.0) for candidate in candidates]
        values = _weigh_signals(pool, meanings, spoken, named, inside)
        lift, recent = lift_neighbours(candidates, values), _measure_recency(candidates, now)
        relevance = [
            squash(value + near + late)
            for value, near, late in zip(values, lift, recent, strict=True)
        ]

    rows = zip(cosines, meanings, spoken, lift, recent, named, inside, relevance, strict=True)
    return {
        key: Signals(cosine, meaning, *words, *more)
        for key, (cosine, meaning, words, *more) in zip(keys, rows, strict=True)
    }


def _weigh_signals(
    pool: Pool,
    meanings: Sequence[float],
    spoken: Sequence[Spoken],
    named: Sequence[float],
    inside: Sequence[float],
) -> list[float]:
    """Meaning and words by their weights, and what is added to them."""
    # Without any vector the words stand alone instead of being scaled down, and without words the meaning.
    alone = not pool.words.lexemes and not pool.found
    share = 0.0 if pool.statistics.mean_cosine is None else 1.0 if alone else MEANING
    return [
        share * meaning + (1 - share) * words.words + PAIRS * words.pairs + name + topic
        for meaning, words, name, topic in zip(meanings, spoken, named, inside, strict=True)
    ]


def _measure_recency(candidates: Sequence[Candidate], now: float) -> list[float]:
    # Turns that follow others are a conversation, though no topics were found in it.
    talks = {one.source for one in candidates if one.position and one.kind == "context"}
    return [
        recency(
            now - one.created_at,
            one.span is not None or (one.source in talks and one.kind == "context"),
        )
        for one in candidates
    ]


def score_words(pool: Pool) -> dict[int, Spoken]:
    """What words say of each candidate that holds any."""
    words = pool.words
    idf = word_weights(pool.statistics)
    mass = sum(idf) or 1.0
    weight = dict(zip(words.lexemes, idf, strict=True))
    pair_weights = [min(weight[one], weight[other]) for one, other in words.pairs]
    pair_mass = sum(pair_weights) or 1.0
    average = pool.statistics.average_length or 1.0
    fixed, slope = K1 * (1 - B), K1 * B / average
    raw = []
    for candidate in pool.candidates:
        if not idf:
            # Only prefixes or other columns were asked for; their words are not counted, so the engine's score stands.
            raw.append((candidate.key, pool.found.get(candidate.key, 0.0), mass, 0.0))
            continue
        score = covered = 0.0
        norm = fixed + slope * candidate.length
        for value, count in zip(idf, candidate.frequencies, strict=True):
            if count:
                score += value * count * (K1 + 1) / (count + norm)
                covered += value
        if covered:
            pairs = sum(compress(pair_weights, candidate.pairs))
            raw.append((candidate.key, score, covered, pairs))
    ordered = sorted((score for _, score, _, _ in raw), reverse=True)
    best = ordered[0] if ordered else 0.0
    if best <= 0:
        return {}
    floor = BACKGROUND * ordered[BACKGROUND_RANK - 1] if len(ordered) >= BACKGROUND_RANK else 0.0
    brief = min(1.0, max(0.0, (LONG - average) / (LONG - SHORT)))
    worth = COVERAGE + (COVERAGE_SHORT - COVERAGE) * brief
    return {
        key: Spoken(
            score,
            covered / mass,
            max(0.0, score - floor) / best * (1 - worth + worth * covered / mass),
            pairs / pair_mass,
        )
        for key, score, covered, pairs in raw
    }


def _measure_meaning(
    pool: Pool, keys: Sequence[int], gate: float, baseline: float
) -> tuple[list[float | None], list[float]]:
    """The cosine of each candidate that passes the gate, and how far each stands out of the scope."""
    statistics = pool.statistics
    if statistics.mean_cosine is None:
        return [None] * len(keys), [0.0] * len(keys)
    mean = (statistics.mean_cosine * statistics.memories + baseline * PRIOR) / (
        statistics.memories + PRIOR
    )
    scale = STRETCH / max(1e-6, 1.0 - mean)
    known = [pool.cosines.get(key, -2.0) for key in keys]
    cosines = [cosine if cosine >= gate else None for cosine in known]
    return cosines, [(cosine - mean) * scale if cosine >= gate else 0.0 for cosine in known]


def squash(value: float) -> float:
    """Any fused value into 0–1, order kept: 0 → 0.15, 0.5 → 0.5, 1 → 0.85."""
    return 1 / (1 + math.exp(-3.5 * (value - 0.5)))


def recency(age: float, spoken: bool) -> float:
    """What being recent adds: by weeks to all, and by hours to what was said in a conversation."""
    if age < -SKEW:
        return -LATER if spoken else 0.0
    age = abs(age)
    return RECENT * math.exp(-age / FADE) + (TODAY * math.exp(-age / DAY_FADE) if spoken else 0.0)


def lift_neighbours(candidates: Sequence[Candidate], values: Sequence[float]) -> list[float]:
    """A turn whose neighbours also fit the question is more likely the place: answers stand beside their questions."""
    sources: dict[int, dict[int, float | None]] = {}
    for candidate, value in zip(candidates, values, strict=True):
        held = sources.get(candidate.source)
        if held is None:
            sources[candidate.source] = {candidate.position: value}
        else:
            # Told memories share one source without an order; only ordered passages have neighbours.
            held[candidate.position] = None if candidate.position in held else value
    middle = sorted(values)[len(values) // 2] if values else 0.0
    lift = []
    for candidate in candidates:
        held = sources[candidate.source]
        best = middle
        if len(held) > 1:
            for offset, weight in NEAR:
                near = held.get(candidate.position + offset)
                if near is not None and near > middle:
                    best = max(best, middle + (near - middle) * weight)
        lift.append(NEIGHBOUR * (best - middle))
    return lift


def _fuse_ranks(cosines: Sequence[float | None], scores: Sequence[float]) -> list[float]:
    """Reciprocal rank fusion, k = 60, brought to 0–1 by three cases: in both lists, only in words, only in meaning."""
    by_meaning = _rank_scores(cosines)
    by_words = _rank_scores([score if score > 0 else None for score in scores])
    fused = []
    for cosine, meaning, words in zip(cosines, by_meaning, by_words, strict=True):
        if meaning is not None and words is not None:
            fused.append(min(1.0, (1 / (RRF_K + meaning) + 1 / (RRF_K + words)) / (2 / RRF_K)))
        elif words is not None:
            fused.append(RRF_K / (RRF_K + words))
        else:
            fused.append(max(0.0, cosine or 0.0))
    return fused


def _rank_scores(scores: Sequence[float | None]) -> list[int | None]:
    ranks: list[int | None] = [None] * len(scores)
    present = sorted(
        (at for at, score in enumerate(scores) if score is not None),
        key=lambda at: -(scores[at] or 0.0),
    )
    for rank, at in enumerate(present):
        ranks[at] = rank
    return ranks
