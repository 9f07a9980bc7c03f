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

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
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
# Where a neighbour may stand, and how much of it counts.
NEAR = ((-1, 1.0), (1, 1.0), (-2, 0.5), (2, 0.5))
# What being told lately adds, and the seconds after which a third of it is left; and what being said just now adds in a conversation:
# most questions are about the work at hand.
RECENT, FADE = 0.1, 21 * 86400.0
TODAY, DAY_FADE = 0.25, 24 * 3600.0
# What was said after the question was asked is not what it asks about. That happens where an old question is asked again, and by
# clocks that differ, for which a minute is allowed.
LATER, SKEW = 0.1, 60.0
TOPIC = 0.15  # what the topic of a conversation that fits adds to what was said in it
# Memories' worth of belief in the model's usual mean cosine, for scopes of a few memories.
PRIOR = 8
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


def join_pools(one: Pool, other: Pool) -> Pool:
    """What two ways of looking found. A candidate that both found is taken from the first."""
    known = {candidate.key for candidate in one.candidates}
    return other._replace(
        candidates=[*one.candidates, *(new for new in other.candidates if new.key not in known)],
        found={**other.found, **one.found},
        boosts={**other.boosts, **one.boosts},
        cosines={**other.cosines, **one.cosines},
        topics={**other.topics, **one.topics},
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
    relevance: float = 0.0


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
    """What every signal says of each candidate, and its relevance, in their order. `gate` drops weak cosines; `baseline` is the mean
    cosine that the model usually gives."""
    candidates, by_words = pool.candidates, score_words(pool)
    measure = _make_measure(pool.statistics, gate, baseline)
    recent = _measure_recency(candidates, now)
    signals, added = [], (0.0, 0.0, 0.0)
    for one, late in zip(candidates, recent, strict=True):
        if method != "rrf":
            topic = TOPIC * pool.topics.get(one.span or "", 0.0)
            added = late, pool.boosts.get(one.key, 0.0), topic
        meaning, words = measure(pool.cosines.get(one.key)), by_words.get(one.key, SILENT)
        signals.append(Signals(*meaning, *words, 0.0, *added))
    if method == "rrf":
        lift, relevance = [0.0] * len(signals), _fuse_ranks(signals)
    else:
        values = _weigh_signals(pool, signals)
        lift = lift_neighbours(candidates, values)
        sums = zip(values, lift, recent, strict=True)
        relevance = [squash(value + near + late) for value, near, late in sums]
    return {
        one.key: heard._replace(neighbours=near, relevance=value)
        for one, heard, near, value in zip(candidates, signals, lift, relevance, strict=True)
    }


def _weigh_signals(pool: Pool, signals: Sequence[Signals]) -> list[float]:
    """Meaning and words by their weights, and what is added to them."""
    # Without any vector the words stand alone instead of being scaled down, and without words the meaning.
    alone = not pool.words.lexemes and not pool.found
    share = 0.0 if pool.statistics.mean_cosine is None else 1.0 if alone else MEANING
    return [
        share * one.meaning + (1 - share) * one.words + PAIRS * one.pairs + one.named + one.topic
        for one in signals
    ]


def _make_measure(
    statistics: Statistics, gate: float, baseline: float
) -> Callable[[float | None], tuple[float | None, float]]:
    """What makes of a cosine how far it stands out of the scope; nothing of one that does not pass the gate."""
    count, own = statistics.memories, statistics.mean_cosine
    mean = ((own or 0.0) * count + baseline * PRIOR) / (count + PRIOR)
    scale = STRETCH / max(1e-6, 1.0 - mean)

    def measure(cosine: float | None) -> tuple[float | None, float]:
        if own is None or cosine is None or cosine < gate:
            return None, 0.0
        return cosine, (cosine - mean) * scale

    return measure


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
    # Told memories share one source without an order; only ordered passages have neighbours.
    places = Counter((one.source, one.position) for one in candidates)
    middle = sorted(values)[len(values) // 2] if values else 0.0
    strong = {
        (one.source, one.position): value - middle
        for one, value in zip(candidates, values, strict=True)
        if value > middle and places[one.source, one.position] == 1
    }
    return [
        NEIGHBOUR
        * max(
            strong.get((one.source, one.position + offset), 0.0) * weight for offset, weight in NEAR
        )
        for one in candidates
    ]


def _fuse_ranks(signals: Sequence[Signals]) -> list[float]:
    """Reciprocal rank fusion, k = 60, brought to 0–1 by three cases: in both lists, only in words, only in meaning."""
    by_meaning = _rank([one.cosine for one in signals])
    by_words = _rank([one.bm25 if one.bm25 > 0 else None for one in signals])
    fused = []
    for at, one in enumerate(signals):
        if at in by_meaning and at in by_words:
            shares = 1 / (RRF_K + by_meaning[at]) + 1 / (RRF_K + by_words[at])
            fused.append(min(1.0, shares / (2 / RRF_K)))
        elif at in by_words:
            fused.append(RRF_K / (RRF_K + by_words[at]))
        else:
            fused.append(max(0.0, one.cosine or 0.0))
    return fused


def _rank(scores: Sequence[float | None]) -> dict[int, int]:
    """The rank of each place that has a score."""
    present = [(-score, at) for at, score in enumerate(scores) if score is not None]
    return {at: rank for rank, (_, at) in enumerate(sorted(present))}
