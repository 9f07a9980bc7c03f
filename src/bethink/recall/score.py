"""Relevance → score, by what the question is for. Pure: `now` and the random generator are arguments.

`relevance` ranks by relevance alone. The five intents weigh relevance, recency and utility, and shake the order a little
so that the same few memories do not always win; `balanced` weighs importance and frequency too.
"""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from bethink.types import ASKED_IMPORTANCE, IDEAS, STATEMENTS, TRUST, Candidate, turn_of


class Profile(NamedTuple):
    relevance: float
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


def make_profile(name: str, weights: Mapping[str, float]) -> Profile:
    """A profile of the user's own; recency fades as in the one of that name, or in days."""
    fading = PROFILES[name].fading if name in PROFILES else "days"
    return Profile(**weights, fading=fading)


# How much a fully doubted memory loses against a firm one of the same relevance.
DOUBT = 0.1


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


def score(
    candidates: Sequence[Candidate],
    relevance: Sequence[float],
    chosen: Profile,
    now: datetime,
    rng: random.Random,
) -> list[float]:
    """The score of each candidate, in their order."""
    scores = []
    for value, candidate in zip(relevance, candidates, strict=True):
        value *= chosen.relevance
        if chosen.relevance < 1:
            parts = profile_parts(candidate, chosen, now)
            value += sum(getattr(chosen, name) * part for name, part in parts.items())
        scores.append(value * (1 - DOUBT * (1 - candidate.confidence)))
    if not chosen.jitter:
        return scores
    return [value * (1 + (rng.random() * 2 - 1) * chosen.jitter) for value in scores]


def put_first(relevance: Sequence[float], standings: Sequence[int]) -> list[float]:
    """The relevance of each candidate, so that what stands higher and fits comes before all that stands lower. Whatever does not fit
    stays where it is; the order inside a standing is kept."""
    values = list(relevance)
    bar = UNFIT + FIT * (max(values, default=0.0) - UNFIT)
    least = math.inf
    for standing in sorted(set(standings), reverse=True):
        here = [at for at, one in enumerate(standings) if one == standing]
        most = max(values[at] for at in here)
        factor = min(1.0, 0.999 * least / most) if most > 0 else 1.0
        least = min([least, *(values[at] * factor for at in here if relevance[at] >= bar)])
        for at in here:
            values[at] *= factor
    return values


def rank(
    candidates: Sequence[Candidate], scored: Sequence[float], threshold: float
) -> list[tuple[float, Candidate]]:
    """All that reach the threshold with their scores, best first."""
    found = [one for one in _keep_one_of_turn_and_idea(candidates, scored) if one[0] >= threshold]
    return sorted(found, key=lambda one: (-one[0], -one[1].created_at, one[1].key))


def _keep_one_of_turn_and_idea(
    candidates: Sequence[Candidate], scored: Sequence[float]
) -> list[tuple[float, Candidate]]:
    """An idea stands in the turn it was taken from. It stands for both, unless the turn fits much better."""
    found = list(zip(scored, candidates, strict=True))
    ideas: dict[tuple[int, int], float] = {}
    turns: dict[tuple[int, int], float] = {}
    for value, one in found:
        place = (one.source, turn_of(one.position))
        if one.position >= IDEAS:
            ideas[place] = max(ideas.get(place, 0.0), value)
        else:
            turns[place] = value
    if not ideas:
        return found

    def stands(value: float, one: Candidate) -> bool:
        place = (one.source, turn_of(one.position))
        if one.position >= IDEAS:
            return value >= turns.get(place, 0.0) / MORE
        return value > ideas.get(place, 0.0) * MORE

    return [(value, one) for value, one in found if stands(value, one)]


def put_statements_first(candidates: Sequence[Candidate], scored: Sequence[float]) -> list[float]:
    """What was said on the way comes behind a statement that holds the same words of the question and fits nearly as well: whoever
    repeats a decision often must not bury it. And what was only asked comes behind a statement that holds most of those words: it
    resembles the question, whatever the answer is. Likewise what stands on nobody's word, such as a document or an import, comes
    behind a statement of the user that holds the same words: of two claims the user's is the one to hear first."""
    stated = [
        (value, one) for value, one in zip(scored, candidates, strict=True) if one.kind in DISTILLED
    ]
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

    return list(map(lower, scored, candidates))


def _find_rival(best: Mapping[int, float], words: int, share: float = 1.0) -> float:
    """The best score of a statement that holds these words of the question, or a share of them."""
    enough = share * words.bit_count()
    return max(
        (most for held, most in best.items() if (held & words).bit_count() >= enough), default=0.0
    )


def _put_behind(value: float, rival: float, factor: float) -> float:
    """A score, just below that of a rival which fits nearly as well."""
    return min(value, rival * BEHIND) if value <= rival * factor else value


def _find_best(scored: Iterable[tuple[float, Candidate]]) -> dict[int, float]:
    """The best score of those that hold each combination of the question's words."""
    best: dict[int, float] = {}
    for value, one in scored:
        words = _find_words(one)
        best[words] = max(best.get(words, 0.0), value)
    return best


def _find_words(candidate: Candidate) -> int:
    """Which words of the question a memory holds, a bit each."""
    return sum(1 << at for at, count in enumerate(candidate.frequencies) if count)


def profile_parts(candidate: Candidate, chosen: Profile, now: datetime) -> dict[str, float]:
    """What a profile weighs beside relevance, each from 0 to 1."""
    parts: dict[str, float] = {}
    if chosen.recency:
        age = max(0.0, now.timestamp() - candidate.last_accessed)
        parts["recency"] = (
            0.995 ** (age / 3600) if chosen.fading == "hours" else math.exp(-age / (30 * 86400))
        )
    if chosen.utility:
        parts["utility"] = 1 / (
            1 + math.exp(-(candidate.usefulness + math.log(candidate.access_count + 1)) / 5)
        )
    if chosen.importance:
        parts["importance"] = candidate.importance / 10
    if chosen.frequency:
        parts["frequency"] = min(1.0, math.log10(candidate.access_count + 1) / 2)
    return parts
