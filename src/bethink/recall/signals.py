"""Signals: what speaks for a candidate, one declaration each.

To add a signal, write a function that gives a number from 0 to 1 for each candidate of a pool, and a `Signal` in `SIGNALS` below. It then
counts in every search, and `--explain` and the reference show it. Plugins declare theirs the same way (`plugins.register_signal`).

Scores are kept and not reduced to ranks: how far apart they are says how much a signal knows about this question. So each is measured from
its own background: cosines from the mean of the scope, BM25 from the thirtieth best. Where all texts look alike, the differences are
small by themselves, and the other signals decide. `--explain` shows every value.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence, Set
from itertools import compress
from typing import NamedTuple

from bethink.language.questions import TRIGGER
from bethink.language.words import STOP_WORDS
from bethink.model import KINDS, RULE_KINDS, Candidates, Memory, Query
from bethink.recall.pool import Pool
from bethink.recall.rank import Features, add_evidence
from bethink.store.base import Statistics
from bethink.store.words import tokenize

Measure = Callable[[Pool, Sequence[Features]], Sequence[float]]


class Signal(NamedTuple):
    """A named reason to rank a candidate higher, and what it counts."""

    name: str  # in `why` of JSON and in `--explain`
    help: str
    weight: float  # what a value of 1 adds to the evidence
    # One number per candidate, in their order, from the pool and from the values of the signals declared before.
    measure: Measure


# BM25's usual constants; k1 = .9, b = .5 is better on locomo-turns and worse on two other sets (bench/LOG.md, 2026-11-15).
K1, B = 1.2, 0.75
# Weight of meaning against words, and what brings the span of cosines to that of word scores: best of .6 to .8 and of 1.4 to 2.2 over six
# sets (bench/LOG.md, 2026-11-16).
MEANING_SHARE, STRETCH = 0.7, 1.6
# Share of the score at that rank which counts as background: best of .4 to 1 and of 10 to 100 (bench/LOG.md, 2026-11-15).
BACKGROUND_SHARE, BACKGROUND_RANK = 0.7, 30
# Share of a word score that full coverage of the question is worth, where the average memory has `LONG_MEMORY` words or more, and where it
# has `SHORT_MEMORY` or fewer: short statements that share one word are mostly about something else (bench/LOG.md, 2026-11-15).
COVERAGE_LONG, COVERAGE_SHORT = 0.4, 1.0
SHORT_MEMORY, LONG_MEMORY = 20.0, 40.0
PAIRS_WEIGHT = 0.1  # scifact falls without it, cosqa above .15 (bench/LOG.md, 2026-11-15)
# What a strong neighbour adds: locomo-turns nDCG .571 → .588 (bench/LOG.md, 2026-11-15). Two places away it counts half.
NEIGHBOUR_WEIGHT = 0.25
NEIGHBOUR_PLACES = ((-1, 1.0), (1, 1.0), (-2, 0.5), (2, 0.5))
# What being recent adds, and the seconds after which a third of it is left; the second pair is for turns of conversations: most questions
# are about the work at hand. git-sync any@5 .908 → .966 (bench/LOG.md, 2026-11-15).
RECENT_WEEKS, FADE_WEEKS = 0.1, 21 * 86400.0
RECENT_HOURS, FADE_HOURS = 0.25, 24 * 3600.0
# Share of it that is left unless a question is about the latest work, for what answers best; none for the average candidate. By hand.
RECENT_TIE = 0.5
# What a turn said after the question loses, and seconds by which clocks may differ: cipher-box hit@1 .752 → .802 (bench/LOG.md, 2026-11-15).
LATER_LOSS, CLOCK_SKEW = 0.1, 60.0
TOPIC_WEIGHT = 0.15  # best of 0 to .4 on two sets read as conversations (bench/LOG.md, 2026-11-16)
# Memories' worth of belief in the model's usual mean cosine. By hand, for scopes of a few memories, which no set has.
PRIOR_MEMORIES = 8
# How many rules are read, characters of each, and the least share of the condition that the question has to hold: bounds, by hand.
MOST_RULES, LONGEST_RULE, LEAST_TRIGGER = 40, 600, 0.5
RRF_K = 60  # the constant of the method's authors
# Share of the lender's question words by which another memory is about the same thing, and the least step by which one comes behind another.
# By hand: from 0 to 1 no figure of 25 histories moves.
LENDER_COVERAGE, JUST_BEHIND = 0.5, 1e-4
# Kinds before which inherited evidence alone puts nothing: all but what is only said or asked on the way.
RIVAL_KINDS = frozenset(KINDS) - {"context", "question"}


def per_memory(function: Callable[[Memory, Query], float]) -> Measure:
    """Make a measure from a function of one memory and the question, called for every candidate."""

    def measure(pool: Pool, described: Sequence[Features]) -> list[float]:
        memories = pool.load([one.key for one in pool.candidates]) if pool.load else {}
        return [
            min(1.0, max(0.0, function(memories[one.key], pool.query)))
            if one.key in memories
            else 0.0
            for one in pool.candidates
        ]

    return measure


def observe(pool: Pool) -> list[Features]:
    """Return the raw values behind words and meaning: cosine, BM25 and the covered share of the question."""
    observed = [Features() for _ in pool.candidates]
    if pool.statistics.mean_cosine is not None:
        for one, features in zip(pool.candidates, observed, strict=True):
            cosine = pool.cosines.get(one.key, -math.inf)
            if cosine >= pool.gate and cosine > -math.inf:
                features["cosine"] = cosine
    weights = weigh_words(pool.statistics)
    mass = sum(weights)
    average = pool.statistics.average_length or 1.0
    fixed, slope = K1 * (1 - B), K1 * B / average
    for one, features in zip(pool.candidates, observed, strict=True):
        if not weights:
            # Only prefixes or other columns were asked for: their words are not counted, so the engine's score holds.
            if any(pool.found.values()):
                features["bm25"], features["coverage"] = pool.found.get(one.key, 0.0), 1.0
            continue
        score = covered = 0.0
        norm = fixed + slope * one.length
        for weight, count in zip(weights, one.frequencies, strict=True):
            if count:
                score += weight * count * (K1 + 1) / (count + norm)
                covered += weight
        if covered:
            features["bm25"], features["coverage"] = score, covered / mass
    return observed


def weigh_words(statistics: Statistics) -> list[float]:
    """Return how telling each word of the question is inside the scope (inverse document frequency)."""
    total = statistics.memories
    counts = statistics.counts
    return [math.log(1 + (total - min(count, total) + 0.5) / (count + 0.5)) for count in counts]


def measure_meaning(pool: Pool, described: Sequence[Features]) -> list[float]:
    """Measure cosines from the mean of the scope: 0 there, `STRETCH` at a cosine of 1."""
    own, count = pool.statistics.mean_cosine, pool.statistics.memories
    mean = ((own or 0.0) * count + pool.baseline * PRIOR_MEMORIES) / (count + PRIOR_MEMORIES)
    scale = STRETCH / max(1e-6, 1.0 - mean)
    return [(one["cosine"] - mean) * scale if "cosine" in one else 0.0 for one in described]


def measure_words(pool: Pool, described: Sequence[Features]) -> list[float]:
    """Measure BM25 from the background up to the best, damped by the uncovered share of the question."""
    scores = sorted((one["bm25"] for one in described if "bm25" in one), reverse=True)
    best = scores[0] if scores else 0.0
    if best <= 0:
        return [0.0] * len(described)
    ranked = len(scores) >= BACKGROUND_RANK
    floor = BACKGROUND_SHARE * scores[BACKGROUND_RANK - 1] if ranked else 0.0
    average = pool.statistics.average_length or 1.0
    brief = (LONG_MEMORY - average) / (LONG_MEMORY - SHORT_MEMORY)
    worth = COVERAGE_LONG + (COVERAGE_SHORT - COVERAGE_LONG) * min(1.0, max(0.0, brief))
    return [
        max(0.0, one["bm25"] - floor) / best * (1 - worth + worth * one["coverage"])
        if "bm25" in one
        else 0.0
        for one in described
    ]


def measure_pairs(pool: Pool, described: Sequence[Features]) -> list[float]:
    """Measure the share of the question's neighbouring words that are adjacent in the memory."""
    lexemes = pool.words.lexemes
    weight = dict(zip(lexemes, weigh_words(pool.statistics), strict=True))
    weights = [min(weight[one], weight[other]) for one, other in pool.words.pairs]
    mass = sum(weights)
    if not mass:
        return [0.0] * len(described)
    return [sum(compress(weights, one.pairs)) / mass for one in pool.candidates]


def measure_topic(pool: Pool, described: Sequence[Features]) -> list[float]:
    """Measure how well the topic of a candidate's conversation fits."""
    topics = pool.topics
    if not topics:
        return [0.0] * len(described)
    return [TOPIC_WEIGHT * topics.get(one.span or "", 0.0) for one in pool.candidates]


def measure_trigger(pool: Pool, described: Sequence[Features]) -> list[float]:
    """Measure whether the question is what a standing rule waits for ("… when I ask about snacks")."""
    asked = set(pool.words.lexemes)
    rules = [one.key for one in pool.candidates if one.kind in RULE_KINDS][:MOST_RULES]
    if not (asked and rules and pool.load):
        return [0.0] * len(described)
    fit = {key: fit_trigger(one.content, asked) for key, one in pool.load(rules).items()}
    return [fit.get(one.key, 0.0) for one in pool.candidates]


def fit_trigger(rule: str, asked: Set[str]) -> float:
    """Return the share of a rule's condition that a question holds; 0 if it has none, or less than half."""
    found = TRIGGER.find(rule[:LONGEST_RULE])
    if found is None:
        return 0.0
    condition = found["clause"] or found["event"]
    clause = [word for word in condition.split() if word.strip(",.;:") not in STOP_WORDS]
    wanted = set(tokenize(" ".join(clause)))
    share = len(wanted & asked) / len(wanted) if wanted else 0.0
    return share if share >= LEAST_TRIGGER else 0.0


def measure_neighbours(pool: Pool, described: Sequence[Features]) -> list[float]:
    """Measure how well the turns before and after fit: answers are next to their questions."""
    weights = weigh_signals(pool, SIGNALS)
    count = len(pool.candidates) - pool.lenders
    values = [add_evidence(one, weights) for one in described[:count]]
    return [*lift_neighbours(pool.candidates[:count], values), *[0.0] * pool.lenders]


def lift_neighbours(candidates: Candidates, values: Sequence[float]) -> list[float]:
    """Return what neighbours add to each candidate, by how far they are above the median."""
    # Notes share one source without an order; only ordered passages have neighbours.
    places = Counter((one.source, one.position) for one in candidates)
    middle = sorted(values)[len(values) // 2] if values else 0.0
    strong = {
        (one.source, one.position): value - middle
        for one, value in zip(candidates, values, strict=True)
        if value > middle and places[one.source, one.position] == 1
    }
    if not strong:
        return [0.0] * len(values)
    return [
        NEIGHBOUR_WEIGHT
        * max(
            [
                strong.get((one.source, one.position + offset), 0.0) * weight
                for offset, weight in NEIGHBOUR_PLACES
            ]
        )
        for one in candidates
    ]


def measure_recent(pool: Pool, described: Sequence[Features]) -> list[float]:
    """Measure what being recent adds: by weeks to all, by hours to turns of conversations.

    For a question it breaks ties between what answers about equally well, unless it asks for the latest work. Other text, such as a
    prompt or the subject of a commit, is mostly about the work at hand."""
    # Turns that follow others are a conversation, though no topics were found in it.
    talks = {one.source for one in pool.candidates if one.position and one.kind == "context"}
    gains = [
        _measure_age(
            pool.now - one.created_at,
            one.span is not None or (one.kind == "context" and one.source in talks),
        )
        for one in pool.candidates
    ]
    if pool.query.about_latest:
        return gains
    weights = weigh_signals(pool, SIGNALS)
    values = [add_evidence(one, weights) for one in described]
    middle = sorted(values)[len(values) // 2] if values else 0.0
    span = max(values, default=0.0) - middle
    return [
        gain if gain < 0 or span <= 0 else gain * RECENT_TIE * max(0.0, (value - middle) / span)
        for gain, value in zip(gains, values, strict=True)
    ]


def _measure_age(age: float, spoken: bool) -> float:
    if age < -CLOCK_SKEW:
        return -LATER_LOSS if spoken else 0.0
    age = abs(age)
    by_hours = RECENT_HOURS * math.exp(-age / FADE_HOURS) if spoken else 0.0
    return RECENT_WEEKS * math.exp(-age / FADE_WEEKS) + by_hours


def measure_ranks(pool: Pool, described: Sequence[Features]) -> list[float]:
    """Fuse reciprocal ranks, brought to 0–1 by three cases: in both lists, only in words, only in meaning."""
    by_meaning = _list_ranks([one.get("cosine") for one in described])
    by_words = _list_ranks([one.get("bm25") or None for one in described])
    fused = []
    for at, one in enumerate(described):
        if at in by_meaning and at in by_words:
            shares = 1 / (RRF_K + by_meaning[at]) + 1 / (RRF_K + by_words[at])
            fused.append(min(1.0, shares / (2 / RRF_K)))
        elif at in by_words:
            fused.append(RRF_K / (RRF_K + by_words[at]))
        else:
            fused.append(max(0.0, one.get("cosine", 0.0)))
    return fused


def _list_ranks(scores: Sequence[float | None]) -> dict[int, int]:
    """Return the rank of each place that has a score."""
    present = [(-score, at) for at, score in enumerate(scores) if score is not None]
    return {at: rank for rank, (_, at) in enumerate(sorted(present))}


MEANING_SIGNAL = Signal(
    "meaning",
    "closeness in meaning, compared with the average of the scope",
    MEANING_SHARE,
    measure_meaning,
)
WORDS_SIGNAL = Signal(
    "words", "matching words, relative to the best match", 1 - MEANING_SHARE, measure_words
)
PAIRS_SIGNAL = Signal(
    "pairs", "words of the question that are adjacent here too", PAIRS_WEIGHT, measure_pairs
)
# The lifts are in units of evidence, as JSON has had them since 0.2; the others are from 0 to 1.
TOPIC_SIGNAL = Signal("topic", "lift from the topic of the conversation", 1.0, measure_topic)
TRIGGER_SIGNAL = Signal(
    "trigger", "the condition of a standing rule that the question meets", 0.5, measure_trigger
)
NEIGHBOURS_SIGNAL = Signal("neighbours", "lift from passages beside it", 1.0, measure_neighbours)
RECENT_SIGNAL = Signal("recent", "lift for being recent", 1.0, measure_recent)
RANKS_SIGNAL = Signal("ranks", "ranks by words and by meaning, fused", 1.0, measure_ranks)

SIGNALS = (
    MEANING_SIGNAL,
    WORDS_SIGNAL,
    PAIRS_SIGNAL,
    TOPIC_SIGNAL,
    NEIGHBOURS_SIGNAL,
    TRIGGER_SIGNAL,
    RECENT_SIGNAL,
)
# With `fusion = "rrf"`. It falls below its better half wherever the halves differ in strength (bench/LOG.md, 2026-11-15).
RANK_SIGNALS = (
    MEANING_SIGNAL._replace(weight=0.0),
    WORDS_SIGNAL._replace(weight=0.0),
    PAIRS_SIGNAL._replace(weight=0.0),
    RANKS_SIGNAL,
)


def weigh_signals(pool: Pool, signals: Sequence[Signal]) -> dict[str, float]:
    """Return the weight of each signal. Words keep their weight without vectors, meaning without words."""
    weights = {signal.name: signal.weight for signal in signals}
    if RANKS_SIGNAL in signals:
        return weights
    if pool.statistics.mean_cosine is None:
        weights |= {"meaning": 0.0, "words": 1.0}
    elif not pool.words.lexemes and not pool.found:
        weights |= {"meaning": 1.0, "words": 0.0}
    return weights


def measure_signals(pool: Pool, signals: Sequence[Signal]) -> list[Features]:
    """Return what every signal says of each candidate, with the raw values behind it."""
    described = observe(pool)
    for signal in signals:
        values = signal.measure(pool, described)
        for features, value in zip(described, values, strict=True):
            features[signal.name] = value
    return described
