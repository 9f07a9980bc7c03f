"""Relevance → score, by what the question is for. Pure: `now` and the random generator are arguments.

`relevance` ranks by relevance alone. The five intents weigh relevance, recency and utility, and shake the order a little
so that the same few memories do not always win; `balanced` weighs importance and frequency too.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass

from recollect.types import Candidate


@dataclass(frozen=True, slots=True)
class Profile:
    relevance: float
    recency: float = 0.0
    utility: float = 0.0
    importance: float = 0.0
    frequency: float = 0.0
    jitter: float = 0.0
    half_life: str = "hours"  # how recency fades: 0.995 an hour, or e-folding in 30 days


PROFILES: Mapping[str, Profile] = {
    "relevance": Profile(1.0),
    "continuity": Profile(0.3, 0.5, 0.2, jitter=0.02),
    "fact_check": Profile(0.6, 0.1, 0.3, jitter=0.02),
    "frequent": Profile(0.2, 0.2, 0.6, jitter=0.02),
    "associative": Profile(0.7, 0.1, 0.2, jitter=0.05),
    "explore": Profile(0.4, 0.3, 0.3, jitter=0.15),
    "balanced": Profile(0.4, 0.2, importance=0.3, frequency=0.1, half_life="days"),
}

# How much a fully doubted memory loses against a firm one of the same relevance.
DOUBT = 0.15


def score(candidate: Candidate, relevance: float, profile: Profile, now: float, rng: random.Random) -> dict[str, float]:
    """The parts of a score and, under `score`, their weighted sum."""
    age = max(0.0, now - candidate.last_accessed)
    recency = 0.995 ** (age / 3600) if profile.half_life == "hours" else math.exp(-age / (30 * 86400))
    utility = 1 / (1 + math.exp(-(candidate.usefulness + math.log(candidate.access_count + 1)) / 5))
    frequency = min(1.0, math.log10(candidate.access_count + 1) / 2)
    importance = candidate.importance / 10
    total = (
        profile.relevance * relevance
        + profile.recency * recency
        + profile.utility * utility
        + profile.importance * importance
        + profile.frequency * frequency
    )
    total *= 1 - DOUBT * (1 - candidate.confidence)
    if profile.jitter:
        total *= 1 + (rng.random() * 2 - 1) * profile.jitter
    parts = {"score": total, "relevance": relevance, "confidence": candidate.confidence}
    if profile.recency:
        parts["recency"] = recency
    if profile.utility:
        parts["utility"] = utility
    if profile.importance:
        parts["importance"] = importance
    if profile.frequency:
        parts["frequency"] = frequency
    return parts
