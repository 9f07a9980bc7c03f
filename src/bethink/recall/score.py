"""Signals → relevance → score → order: the three steps that decide which memory comes first. Pure: no store, no clock; the judge reads
what it is given.

**Relevance** (`fuse`): several opinions become one number per memory. The strong signals are kept as scores and not reduced to ranks, because how far apart the scores are says how much a
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

**Score**: what the question is for. `relevance` ranks by relevance alone. The five intents weigh relevance, recency and utility, and
shake the order a little so that the same few memories do not always win; `balanced` weighs importance and frequency too. Statements
come before what was only said or asked on the way to them.

**Rerank**: the first hits, read a second time together with the question: those that answer it come before those that only resemble it.

A model that reads question and passage at once (`judge.fit`) knows what neither words nor vectors do: whether this is an answer.
It learned that from questions to conversations, and only there is it sure of itself. So it reads statements and what was said,
never documents or code, which keep their places; and it is asked a question in a person's words, not a few keywords or the
subject of a commit.

The hits exchange their scores along with their places: what a score means, and what a threshold leaves out, stays as it was.
"""

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

from bethink.config import read_profiles, read_weights
from bethink.errors import InvalidInput
from bethink.language.words import STOP_WORDS, is_english
from bethink.model import (
    ASKED_IMPORTANCE,
    IDEAS,
    KINDS,
    NOTHING,
    STATEMENTS,
    TRUST,
    Candidate,
    Candidates,
    Memory,
    Query,
    Words,
    turn_of,
)
from bethink.recall.shape import choose_excerpt, find_sought
from bethink.store.base import Statistics
from bethink.text import check_choice

if TYPE_CHECKING:
    from bethink.judge import Judge

# Relevance

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
# Share of a superseded memory's fit that its successor is given, the share of its words of the question by which another memory is about
# the same, and the least step by which one comes behind another. By hand: from 0 to 1 neither `found` nor `current` of 25 histories moves.
INHERITED, ABOUT, JUST = 0.8, 0.5, 1e-4
# What is not only said or asked on the way.
RIVALS = frozenset(KINDS) - {"context", "question"}


class Loan(NamedTuple):
    """Evidence that one memory lends to another: a superseded one to its successor, a question to its answer."""

    lender: Candidate
    heir: int  # the key of the one that gets it
    share: float  # of what the lender fits better than the heir


class Pool(NamedTuple):
    """Everything that was gathered about one question."""

    candidates: Candidates
    words: Words
    statistics: Statistics
    found: Mapping[int, float]  # the full-text engine's own score of what it found
    cosines: Mapping[int, float]
    topics: Mapping[str, float] = NOTHING  # how well the topic of a conversation fits, by its id
    lent: Sequence[Loan] = ()


def join_pools(one: Pool, other: Pool) -> Pool:
    """What two ways of looking found. A candidate that both found is taken from the first."""
    known = {candidate.key for candidate in one.candidates}
    return other._replace(
        candidates=[*one.candidates, *(new for new in other.candidates if new.key not in known)],
        found={**other.found, **one.found},
        cosines={**other.cosines, **one.cosines},
        topics={**other.topics, **one.topics},
        lent=[*one.lent, *other.lent],
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
    topic: float
    inherited: float = 0.0
    relevance: float = 0.0


def fuse(
    pool: Pool, now: float, method: str = "adaptive", gate: float = -1.0, baseline: float = 0.0
) -> dict[int, Signals]:
    """What every signal says of each candidate, and its relevance, in their order. `gate` drops weak cosines; `baseline` is the mean
    cosine that the model usually gives."""
    own = {one.key for one in pool.candidates}
    lenders = {loan.lender.key: loan.lender for loan in pool.lent if loan.lender.key not in own}
    everyone = [*pool.candidates, *lenders.values()]
    signals = _hear_signals(pool._replace(candidates=everyone), now, method, gate, baseline)
    if method == "rrf":
        values = _fuse_ranks(signals)
    else:
        # Without any vector the words stand alone instead of being scaled down, and without words the meaning.
        alone = not pool.words.lexemes and not pool.found
        share = 0.0 if pool.statistics.mean_cosine is None else 1.0 if alone else MEANING
        values = [
            share * one.meaning + (1 - share) * one.words + PAIRS * one.pairs + one.topic
            for one in signals
        ]
        near = lift_neighbours(pool.candidates, values[: len(pool.candidates)])
        near += [0.0] * len(lenders)
        signals = [one._replace(neighbours=lift) for one, lift in zip(signals, near, strict=True)]
        added = zip(values, signals, strict=True)
        values = [value + one.neighbours + one.recent for value, one in added]
    fused = {
        one.key: heard._replace(relevance=value)
        for one, heard, value in zip(everyone, signals, values, strict=True)
    }
    fused = _inherit(pool, fused)
    if method == "rrf":
        return fused
    return {key: one._replace(relevance=squash(one.relevance)) for key, one in fused.items()}


def _inherit(pool: Pool, fused: Mapping[int, Signals]) -> dict[int, Signals]:
    """The signals of the candidates, those of heirs with what was lent to them. A question may be about a part of the old text of which
    the new one says nothing. So evidence that is only inherited puts nothing before the best live statement that holds, in its own
    words, more of the question than the heir, and about as much as the lender."""
    heard = {one.key: fused[one.key] for one in pool.candidates}
    rivals = sorted(
        (
            (fused[one.key].coverage, fused[one.key].relevance)
            for one in pool.candidates
            if one.kind in RIVALS and fused[one.key].coverage
        ),
        key=lambda rival: -rival[1],
    )
    for lender, heir, share in pool.lent:
        own, old = fused[heir], fused[lender.key]
        gain = share * (old.relevance - own.relevance)
        if share < 1:
            least = ABOUT * old.coverage
            ahead = (value for held, value in rivals if held >= least and held > own.coverage)
            gain = min(gain, next(ahead, math.inf) - own.relevance - JUST)
        if gain <= heard[heir].inherited:
            continue
        heard[heir] = own._replace(
            cosine=max((one.cosine for one in (own, old) if one.cosine is not None), default=None),
            coverage=max(own.coverage, old.coverage),
            inherited=gain,
            relevance=own.relevance + gain,
        )
    return heard


def merge_words(pool: Pool) -> Candidates:
    """The candidates, heirs with the words of the question that their lenders hold."""
    found = {one.key: one for one in pool.candidates}
    for lender, heir, _ in pool.lent:
        one = found[heir]
        found[heir] = one._replace(
            frequencies=tuple(map(max, one.frequencies, lender.frequencies)),
            pairs=tuple(map(max, one.pairs, lender.pairs)),
        )
    return list(found.values())


def _hear_signals(
    pool: Pool, now: float, method: str, gate: float, baseline: float
) -> list[Signals]:
    candidates, statistics, by_words = pool.candidates, pool.statistics, score_words(pool)
    count, own = statistics.memories, statistics.mean_cosine
    mean = ((own or 0.0) * count + baseline * PRIOR) / (count + PRIOR)
    scale = STRETCH / max(1e-6, 1.0 - mean)
    # Turns that follow others are a conversation, though no topics were found in it.
    talks = {one.source for one in candidates if one.position and one.kind == "context"}
    signals, added = [], (0.0, 0.0)
    for one in candidates:
        cosine = -math.inf if own is None else pool.cosines.get(one.key, -math.inf)
        near = cosine >= gate
        meaning = (cosine - mean) * scale if near else 0.0
        if method != "rrf":
            spoken = one.span is not None or (one.source in talks and one.kind == "context")
            topic = TOPIC * pool.topics.get(one.span or "", 0.0)
            added = recency(now - one.created_at, spoken), topic
        words = by_words.get(one.key, (0.0, 0.0, 0.0, 0.0))
        signals.append(Signals(cosine if near else None, meaning, *words, 0.0, *added))
    return signals


def word_weights(statistics: Statistics) -> list[float]:
    """How telling each word of the question is inside the scope."""
    total = statistics.memories
    counts = statistics.counts
    return [math.log(1 + (total - min(count, total) + 0.5) / (count + 0.5)) for count in counts]


def score_words(pool: Pool) -> dict[int, tuple[float, float, float, float]]:
    """What words say of each candidate that holds any: BM25, the covered share of the question, the score of the words and of their
    pairs."""
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
        key: (
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


def lift_neighbours(candidates: Candidates, values: Sequence[float]) -> list[float]:
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
    by_meaning = _rank_places([one.cosine for one in signals])
    by_words = _rank_places([one.bm25 if one.bm25 > 0 else None for one in signals])
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


def _rank_places(scores: Sequence[float | None]) -> dict[int, int]:
    """The rank of each place that has a score."""
    present = [(-score, at) for at, score in enumerate(scores) if score is not None]
    return {at: rank for rank, (_, at) in enumerate(sorted(present))}


# Score

Ranked = Sequence[tuple[float, Candidate]]  # candidates, each behind its score
Weights = dict[str, float]  # what each part of a score says or counts, by its name


class Profile(NamedTuple):
    relevance: float = 0.0
    recency: float = 0.0
    utility: float = 0.0
    importance: float = 0.0
    frequency: float = 0.0
    jitter: float = 0.0
    fading: str = "hours"  # how recency fades: 0.995 an hour, or e-folding in 30 days


PROFILES: Mapping[str, Profile] = {
    "relevance": Profile(1.0),
    "continuity": Profile(0.3, 0.5, 0.2, jitter=0.02),
    "fact_check": Profile(0.6, 0.1, 0.3, jitter=0.02),
    "frequent": Profile(0.2, 0.2, 0.6, jitter=0.02),
    "associative": Profile(0.7, 0.1, 0.2, jitter=0.05),
    "explore": Profile(0.4, 0.3, 0.3, jitter=0.15),
    "balanced": Profile(0.4, 0.2, importance=0.3, frequency=0.1, fading="days"),
}


def find_profile(text: str, own: Sequence[str] = ()) -> Profile:
    """A profile by its name, one of the user's own or ours, or of weights as they are given. One of the user's own has the fading of ours of
    that name; all others fade in days."""
    try:
        weights = {text: read_weights(text)} if "=" in text else read_profiles(own)
    except ValueError as error:
        raise InvalidInput(f"{error}.", "relevance=0.6 recency=0.4") from None
    if text in weights:
        ours = PROFILES.get(text, PROFILES["balanced"])
        return Profile(**weights[text], fading=ours.fading)
    return PROFILES[check_choice("profile", text, list({**PROFILES, **weights}))]


# How much a fully doubted memory loses against a firm one of the same relevance.
DOUBT = 0.1
MONTH = 30 * 86400.0  # seconds
# Where what fits begins: this share of the way from the relevance of a stranger to that of the best. Set by hand on a project of
# eight notes and six test files.
UNFIT, FIT = 0.15, 0.3
# How much better a turn must fit than an idea that was taken from it, to stand in its place; and than any statement that holds as many
# of the question's words, to stand before it. By hand, on six sessions in which an agent told a decision again and again.
MORE, REPEATED = 1.2, 1.4
FITS = 2.2  # how much better than the best statement a question may fit before that statement is about something else
MOST, BEHIND = 0.6, 0.999
SUBJECT = 0.5  # share of a document's words of the question by which a statement is about the same, by hand
DISTILLED = frozenset(STATEMENTS) - {"question"}


def score(found: Ranked, chosen: Profile, now: datetime, rng: random.Random) -> Ranked:
    """The candidates, each with its score in place of its relevance."""
    scored = []
    for value, one in found:
        value *= chosen.relevance
        if chosen.relevance < 1:
            parts = profile_parts(one, chosen, now)
            value += sum(getattr(chosen, name) * part for name, part in parts.items())
        value *= 1 - DOUBT * (1 - one.confidence)
        if chosen.jitter:
            value *= 1 + (rng.random() * 2 - 1) * chosen.jitter
        scored.append((value, one))
    return scored


def put_first(found: Ranked, standing: Mapping[int, int]) -> Ranked:
    """The candidates, scored so that what stands higher and fits comes before all that stands lower. Whatever does not fit stays where
    it is; the order inside a standing is kept."""
    bar = UNFIT + FIT * (max((value for value, _ in found), default=0.0) - UNFIT)
    least, factors = math.inf, dict[int, float]()
    for level in sorted(set(standing.values()), reverse=True):
        here = [value for value, one in found if standing[one.key] == level]
        most = max(here)
        factor = min(1.0, 0.999 * least / most) if most > 0 else 1.0
        least = min([least, *(value * factor for value in here if value >= bar)])
        factors[level] = factor
    return [(value * factors[standing[one.key]], one) for value, one in found]


def rank(found: Ranked, threshold: float) -> Ranked:
    """All that reach the threshold with their scores, best first. An idea stands in the turn it was taken from: it stands for both,
    unless the turn fits much better."""
    best: dict[tuple[int, int, bool], float] = {}
    for value, one in found:
        place = (one.source, turn_of(one.position), one.position >= IDEAS)
        best[place] = max(best.get(place, 0.0), value)

    def stands(value: float, one: Candidate) -> bool:
        is_idea = one.position >= IDEAS
        other = best.get((one.source, turn_of(one.position), not is_idea), 0.0)
        return value >= other / MORE if is_idea else value > other * MORE or not other

    kept = [(value, one) for value, one in found if value >= threshold and stands(value, one)]
    return sorted(kept, key=lambda one: (-one[0], -one[1].created_at, one[1].key))


def put_statements_first(found: Ranked) -> Ranked:
    """What was said on the way comes behind a statement that holds the same words of the question and fits nearly as well: whoever
    repeats a decision often must not bury it. And what was only asked comes behind a statement that holds most of those words: it
    resembles the question, whatever the answer is. Likewise what stands on nobody's word, such as a document or an import, comes
    behind a statement of the user that holds the same words: of two claims the user's is the one to hear first."""
    stated = [(value, one) for value, one in found if one.kind in DISTILLED]
    best = _find_best(stated)
    own = _find_best([(value, one) for value, one in stated if one.trust >= TRUST["user"]])

    def lower(value: float, one: Candidate) -> float:
        if one.kind in ("context", "question") and one.span:
            asks = one.kind == "question" or one.importance <= ASKED_IMPORTANCE
            words = 0 if asks else _find_words(one)
            return _put_behind(value, _find_rival(best, words), FITS if asks else REPEATED)
        if one.trust <= TRUST["import"] and (words := _find_words(one)):
            return _put_behind(value, _find_rival(own, words, SUBJECT), REPEATED)
        return value

    return [(lower(value, one), one) for value, one in found]


def _find_rival(best: Mapping[int, float], words: int, share: float = 1.0) -> float:
    """The best score of a statement that holds these words of the question, or a share of them."""
    enough = share * words.bit_count()
    return max(
        (most for held, most in best.items() if (held & words).bit_count() >= enough), default=0.0
    )


def _put_behind(value: float, rival: float, factor: float) -> float:
    """A score, just below that of a rival which fits nearly as well."""
    return min(value, rival * BEHIND) if value <= rival * factor else value


def _find_best(found: Ranked) -> dict[int, float]:
    """The best score of those that hold each combination of the question's words."""
    best: dict[int, float] = {}
    for value, one in found:
        words = _find_words(one)
        best[words] = max(best.get(words, 0.0), value)
    return best


def _find_words(candidate: Candidate) -> int:
    """Which words of the question a memory holds, a bit each."""
    return sum(1 << at for at, count in enumerate(candidate.frequencies) if count)


def profile_parts(candidate: Candidate, chosen: Profile, now: datetime) -> Weights:
    """What a profile weighs beside relevance, each from 0 to 1."""
    age = max(0.0, now.timestamp() - candidate.last_accessed)
    uses = candidate.access_count + 1
    parts = {
        "recency": 0.995 ** (age / 3600) if chosen.fading == "hours" else math.exp(-age / MONTH),
        "utility": (1 + math.tanh((candidate.usefulness + math.log(uses)) / 10)) / 2,
        "importance": candidate.importance / 10,
        "frequency": min(1.0, math.log10(uses) / 2),
    }
    return {name: part for name, part in parts.items() if getattr(chosen, name)}


# Reading the first hits again

# What is read, so that a search stays within 150 ms on two cores: hits, and characters of each (about 64 tokens).
READ_HITS, READ_ROOM = 16, 280
READ_WEIGHT = 0.3  # of the second reading against the score: the best of half of locomo's held questions (bench/LOG.md, 2026-11-16)
UNREAD = ("document", "code")
LONGEST_QUESTION = 300  # characters of a question; what is longer was pasted
_ASKS = (
    r"(?:and |so |but )?(?:what|when|where|who|whom|whose|why|which|how|did|do(?! not)|does|is|are|was|were|can|could|may"
    r"|should|would|will|has|have|had)(?:'s|'re)? "
)


def is_question(text: str) -> bool:
    """Whether somebody asks, in English and in words of their own, as the model has learned it."""
    text = text.strip().replace("’", "'").lower()
    spoken = not STOP_WORDS.isdisjoint(text.rstrip("?").split())
    asks = spoken and (text.endswith("?") or re.match(_ASKS, text) is not None)
    return asks and len(text) <= LONGEST_QUESTION and is_english(text)


def rerank(
    ranked: Ranked,
    query: Query,
    standing: Mapping[int, int],
    load: Callable[[Sequence[int]], Mapping[int, Memory]],
    judge: "Judge",
) -> tuple[Ranked, dict[int, Weights]]:
    """The hits in their new order, and of each that was read how well it fits and by how many places it rose. Places are exchanged
    among hits of one standing alone: whatever comes first for another reason than relevance still does."""
    groups: dict[int, list[int]] = {}
    for place, (_, one) in enumerate(ranked[:READ_HITS]):
        if one.kind not in UNREAD:
            groups.setdefault(standing[one.key], []).append(place)
    read = [ranked[place][1].key for group in groups.values() for place in group]
    memories = load(read)
    sought = find_sought(query)

    def show(text: str) -> str:
        start, end = choose_excerpt(text, sought, READ_ROOM)
        return text[start:end]

    pairs = [(query.text, show(memories[key].content) if key in memories else "") for key in read]
    fits = dict(zip(read, judge.fit(pairs), strict=True))
    order = list(ranked)
    why: dict[int, Weights] = {}
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
    return math.log(score / (1 - score)) + READ_WEIGHT * fit
