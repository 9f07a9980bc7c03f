"""Features: everything that ranking knows about a candidate, by name.

Signals measure the candidate against the question (`signals.py`). The rest is here: evidence inherited from what it replaced, what the
question prefers by time and kind, what a profile weighs, and how it compares with the other candidates (`yields`, `tier`).
`FEATURES` says of each name what it means; `--explain` and the reference print that.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from bethink.errors import InvalidInput
from bethink.model import (
    ASKED_IMPORTANCE,
    STATEMENTS,
    TRUST,
    Candidate,
    Candidates,
    Hit,
    Query,
)
from bethink.recall.pool import Loan, Pool, merge_words
from bethink.recall.rank import (
    SHARES,
    Features,
    Profile,
    add_evidence,
    find_relevance,
    find_score,
)
from bethink.recall.signals import (
    JUST_BEHIND,
    LENDER_COVERAGE,
    RANK_SIGNALS,
    RANKS_SIGNAL,
    RIVAL_KINDS,
    SIGNALS,
    Signal,
    measure_signals,
    weigh_signals,
)

if TYPE_CHECKING:
    from random import Random

# Tiers: they decide the order before any score.
TIERS = {
    4: "of the kind asked for",
    3: "valid at the time asked about",
    2: "fits",
    1: "fits, but code where nobody asked for code",
    0: "fits badly",
}
# Features that are not signals, with their meaning. Signals declare theirs themselves.
FEATURES = {
    "tier": "; ".join(f"{tier}: {meaning}" for tier, meaning in TIERS.items()),
    "relevance": "how well it answers, from 0 to 1: all signals together",
    "cosine": "similarity of the vectors, from -1 to 1",
    "bm25": "weight of the matching words",
    "coverage": "share of the question's words that it contains, by weight",
    "inherited": "lift from a memory that it replaced, or a question that it answers",
    "preferred": "raised or lowered by the question's words about time, or for being a question or only a turn",
    "standing": "3: of the kind asked for, 2: valid at the time asked about, 0: code where nobody asked for code",
    "yields": "lowered to come behind a statement that fits about as well",
    "again": "lowered to come behind other sessions, where a question asks for all of something",
    "reread": "raised or lowered by the second reading",
    "fits": "how well it answers, read together with the question; only comparable with other hits",
    "moved": "places it rose by the second reading, or fell",
    "referred": "raised to come behind a hit that refers to it",
    "newer": "raised to come before the older statement that it may replace or amend",
    "answers": "raised to come before the question that it answers",
    "disputes": "raised to come before a less trusted or older one that it contradicts",
    "settles": "raised to the turn whose topic it settles",
    "refused": "lowered because the user refused it in the next turn",
    "in_time": "of the time asked for",
    "confidence": "how certain the statement is",
    "chance": "random part of an intent, from -1 to 1",
    "recency": "how recently it was used",
    "utility": "votes and uses",
    "importance": "its importance, from 0 to 1",
    "frequency": "how often it was used",
}
# Features that are shown only where they differ from this, or from 0; and those that are always shown. By definition.
USUAL_VALUES = {"preferred": 1.0, "standing": 1.0}
ALWAYS_SHOWN = ("tier", "relevance", "cosine")

# A memory of the time that the question names: locomo-sessions nDCG .823 → .836 (bench/LOG.md, 2026-11-15).
IN_TIME = 1.25
# A question resembles other questions more than its answer (.7 to 1 moves no set). A turn counts less than what came out of it: .88 is the
# highest at which repetitions do not bury a decision (bench/LOG.md, 2026-11-16, "When the clock is silent").
ASKING_FACTOR, TURN_FACTOR = 0.8, 0.88
MONTH = 30 * 86400.0  # seconds; by definition
HOURLY = 0.995  # share of recency left after an hour; a design, as the intents are
# Where a fit begins: this share of the way from the score of a stranger to the best. By hand, on a project of eight notes and six test files.
STRANGER, FIT_SHARE = 0.15, 0.3
# How much better a turn must fit than a statement with the same question words to come before it, and what only asks than any statement:
# nothing less puts the decision first in six sessions (bench/LOG.md, 2026-11-16).
TURN_OVER_STATEMENT, ASKING_LEAD = 1.4, 2.2
BEHIND = 0.999  # just below another score
# Share of a document's question words by which a statement of the user is about the same. By hand; no set has both.
DISTILLED_SHARE = 0.5
DISTILLED = frozenset(STATEMENTS) - {"question"}

Described = list[tuple[Candidate, Features]]


def list_features(signals: Sequence[Signal]) -> dict[str, str]:
    """Return the meaning of every feature that a search may show, registered signals included."""
    first = {name: FEATURES[name] for name in ("tier", "relevance")}
    declared = {signal.name: signal.help for signal in (*SIGNALS, RANKS_SIGNAL, *signals)}
    return {**first, **declared, **FEATURES}


def choose_signals(fusion: str, registered: Sequence[Signal] = ()) -> tuple[Signal, ...]:
    """Return the signals that count under a `fusion` setting."""
    for signal in registered:
        if signal.name in list_features(()):
            raise InvalidInput(
                f"The ranking signal '{signal.name}' has the name of a feature of Bethink.",
                "Register it under another name.",
            )
    return (*(RANK_SIGNALS if fusion == "rrf" else SIGNALS), *registered)


def complete_profile(profile: Profile, pool: Pool, signals: Sequence[Signal]) -> Profile:
    """Give a profile the weights of the signals, as far as this pool lets them count."""
    weights = {name: weight for name, weight in weigh_signals(pool, signals).items() if weight}
    steepness = 0.0 if RANKS_SIGNAL in signals else profile.steepness
    return profile._replace(weights={**weights, "inherited": 1.0}, steepness=steepness)


def describe(
    pool: Pool,
    profile: Profile,
    signals: Sequence[Signal],
    valid_then: frozenset[int],
    now: datetime,
    rng: "Random | None",
) -> Described:
    """Return every candidate with all features that can be known without its text."""
    described = measure(pool, profile, signals)
    candidates = merge_words(pool)
    for one, features in zip(candidates, described, strict=True):
        features["preferred"] = prefer(one, pool.query)
        features["standing"] = find_standing(one, pool.query, valid_then)
        features["confidence"] = one.confidence
        if profile.relevance < 1:
            features |= measure_use(one, profile, now)
        if rng:
            features["chance"] = rng.random() * 2 - 1
    compare(candidates, described, profile)
    return list(zip(candidates, described, strict=True))


def measure(pool: Pool, profile: Profile, signals: Sequence[Signal]) -> list[Features]:
    """Return the signals of the candidates, with evidence inherited and relevance."""
    own = {one.key for one in pool.candidates}
    lenders = {loan.lender.key: loan.lender for loan in pool.lent if loan.lender.key not in own}
    everyone = [*pool.candidates, *lenders.values()]
    described = measure_signals(pool._replace(candidates=everyone, lenders=len(lenders)), signals)
    evidence = [add_evidence(features, profile.weights) for features in described]
    count = len(pool.candidates)
    if pool.lent:
        inherit(everyone, count, pool.lent, described, evidence)
    for features, value in zip(described[:count], evidence, strict=False):
        features["relevance"] = find_relevance(value, profile)
    return described[:count]


def inherit(
    candidates: Candidates,
    count: int,
    lent: Sequence[Loan],
    described: Sequence[Features],
    evidence: list[float],
) -> None:
    """Add lent evidence to the features of heirs; candidates after the first `count` only lend.

    A question may be about a part of the old text that the new one omits. So inherited evidence puts an heir before no live statement whose
    own words cover more of the question than the heir's, and about as much as the lender's.
    """
    places = {one.key: at for at, one in enumerate(candidates)}
    rivals = sorted(
        (
            (described[at].get("coverage", 0.0), evidence[at])
            for at, one in enumerate(candidates[:count])
            if one.kind in RIVAL_KINDS and described[at].get("coverage")
        ),
        key=lambda rival: -rival[1],
    )
    gains: dict[int, tuple[float, int]] = {}
    for lender, heir, share in lent:
        at, source = places[heir], places[lender.key]
        gain = share * (evidence[source] - evidence[at])
        if share < 1:
            least = LENDER_COVERAGE * described[source].get("coverage", 0.0)
            own = described[at].get("coverage", 0.0)
            ahead = (value for covered, value in rivals if covered >= least and covered > own)
            gain = min(gain, next(ahead, math.inf) - evidence[at] - JUST_BEHIND)
        if gain > gains.get(at, (0.0, 0))[0]:
            gains[at] = gain, source
    for at, (gain, source) in gains.items():
        features, old = described[at], described[source]
        for name in ("cosine", "coverage"):
            values = [one[name] for one in (features, old) if name in one]
            if values:
                features[name] = max(values)
        features["inherited"] = gain
        evidence[at] += gain


def prefer(candidate: Candidate, query: Query) -> float:
    """Return the factor for the question's temporal words, and for memories that only ask or are turns."""
    created, since, until = candidate.created_at, query.since, query.until
    value = 1.0
    if since or until:
        late = since is None or created >= since.timestamp()
        early = until is None or created < until.timestamp()
        value = IN_TIME if late and early else 1.0
    if query.kinds and candidate.kind in query.kinds:
        return value
    if candidate.kind == "context" and candidate.span:
        return value * (
            TURN_FACTOR if candidate.importance > ASKED_IMPORTANCE else TURN_FACTOR * ASKING_FACTOR
        )
    waits = candidate.kind == "question" or (candidate.kind == "todo" and candidate.span)
    return value * ASKING_FACTOR if waits else value


def find_standing(candidate: Candidate, query: Query, valid_then: frozenset[int]) -> int:
    """Return 3 for the kind asked for, 2 for a memory valid at the time asked about, 0 for code, else 1.

    Code is 0 only where nobody asked for it: a function named like a word of the question is a weaker answer than a decision.
    """
    if candidate.kind in query.kinds:
        return 3
    if candidate.key in valid_then:
        return 2
    unasked = candidate.kind == "code" and not query.about_code and not query.identifiers
    return 0 if unasked else 1


def measure_use(candidate: Candidate, profile: Profile, now: datetime) -> Features:
    """Return what a profile weighs beside relevance, each from 0 to 1."""
    age = max(0.0, now.timestamp() - candidate.last_accessed)
    uses = candidate.access_count + 1
    by_hours = profile.fading == "hours"
    parts = {
        "recency": HOURLY ** (age / 3600) if by_hours else math.exp(-age / MONTH),
        "utility": (1 + math.tanh((candidate.usefulness + math.log(uses)) / 10)) / 2,
        "importance": candidate.importance / 10,
        "frequency": min(1.0, math.log10(uses) / 2),
    }
    return {name: parts[name] for name in SHARES if getattr(profile, name)}


def explain(features: Features) -> Features:
    """Return the features that say something, rounded, for `why`."""
    return {
        name: round(value, 4)
        for name, value in features.items()
        if name in ALWAYS_SHOWN or value != USUAL_VALUES.get(name, 0.0)
    }


def explain_lines(hit: Hit, weights: Mapping[str, float], signals: Sequence[Signal]) -> list[str]:
    """Return the key of a hit, its features and their weights as lines for people."""
    lines = []
    if "tier" in hit.why:
        tier = int(hit.why["tier"])
        lines.append(f"key: tier {tier} ({TIERS[tier]}), score {hit.score:.3f}")
    for name, meaning in list_features(signals).items():
        if name in hit.why and name != "tier":
            weight = weights.get(name, 1.0)
            by = f" × {weight:g}" if weight != 1 else ""
            lines.append(f"{name} {hit.why[name]:.3f}{by}: {meaning}")
    return lines


# Comparing candidates with each other


def compare(candidates: Candidates, described: Sequence[Features], profile: Profile) -> None:
    """Add `yields` and `tier`, which depend on the scores of the others."""
    scores = [find_score(features, profile) for features in described]
    for at, lower in yield_to_statements(candidates, scores):
        described[at]["yields"] = lower - scores[at]
        scores[at] = lower
    bar = STRANGER + FIT_SHARE * (max(scores, default=0.0) - STRANGER)
    for features, score in zip(described, scores, strict=True):
        features["tier"] = features["standing"] + 1 if score >= bar else 0


def yield_to_statements(
    candidates: Candidates, scores: Sequence[float]
) -> Iterable[tuple[int, float]]:
    """Yield the positions of candidates that rank below a statement, with their lower scores.

    A turn yields to a statement with the same question words that fits nearly as well: repeating a decision often must not bury it. A
    question yields to any such statement. A document or an import yields to a statement of the user with half of the same words: the
    user's claim comes first.
    """
    stated = [
        (score, one) for score, one in zip(scores, candidates, strict=True) if one.kind in DISTILLED
    ]
    if not stated:
        return
    best = _find_best(stated)
    users = _find_best([(score, one) for score, one in stated if one.trust >= TRUST["user"]])
    for at, (score, one) in enumerate(zip(scores, candidates, strict=True)):
        rival = lead = 0.0
        if one.kind in ("context", "question") and one.span:
            asks = one.kind == "question" or one.importance <= ASKED_IMPORTANCE
            rival = _find_rival(best, 0 if asks else _find_words(one))
            lead = ASKING_LEAD if asks else TURN_OVER_STATEMENT
        elif one.trust <= TRUST["import"] and (words := _find_words(one)):
            rival, lead = _find_rival(users, words, DISTILLED_SHARE), TURN_OVER_STATEMENT
        if rival * BEHIND < score <= rival * lead:
            yield at, rival * BEHIND


def _find_rival(best: Mapping[int, float], words: int, share: float = 1.0) -> float:
    """Return the best score of a statement that holds these words of the question, or a share of them."""
    enough = share * words.bit_count()
    return max(
        (most for covered, most in best.items() if (covered & words).bit_count() >= enough),
        default=0.0,
    )


def _find_best(found: Iterable[tuple[float, Candidate]]) -> dict[int, float]:
    """Return the best score for each combination of the question's words."""
    best: dict[int, float] = {}
    for score, one in found:
        words = _find_words(one)
        best[words] = max(best.get(words, 0.0), score)
    return best


def _find_words(candidate: Candidate) -> int:
    """Return which words of the question a memory holds, a bit each."""
    return sum([1 << at for at, count in enumerate(candidate.frequencies) if count])
