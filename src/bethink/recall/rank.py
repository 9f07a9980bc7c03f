"""Rank: the named features of a candidate become one sort key, `(tier, score)`.

Search, recall and hooks share it.

    evidence  = Σ weight · feature
    relevance = evidence on a curve from 0 to 1
    score     = what the profile makes of relevance, recency, utility, importance and frequency, plus lifts
    key       = (tier, score), the highest first

A profile is data: weights, the curve, and bars. A lift is a feature in units of the score: by how much a candidate rises or falls because
of another one. The tier is a feature, too: it decides what comes first, however well the rest fits. Nothing reorders after `rank`.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from bethink.config import read_profiles, read_weights
from bethink.errors import InvalidInput
from bethink.model import NOTHING
from bethink.text import check_choice

Item = TypeVar("Item")
Features = dict[str, float]  # what is known about one candidate, by name


class Key(NamedTuple):
    """The place of a candidate: higher comes first."""

    tier: int
    score: float


class Ranked(NamedTuple, Generic[Item]):
    """A candidate with its features and the key made of them."""

    key: Key
    item: Item
    features: Features


class Profile(NamedTuple):
    """The data by which features become a key."""

    # Shares of the score.
    relevance: float = 1.0
    recency: float = 0.0
    utility: float = 0.0
    importance: float = 0.0
    frequency: float = 0.0
    jitter: float = 0.0  # share of the score by which chance may change it
    fading: str = "hours"  # recency fades by 0.5 % an hour, or to a third in 30 days
    # What each feature adds to the evidence, the evidence that is half a relevance, and how fast relevance rises there.
    # A steepness of 0 takes the evidence as the relevance.
    weights: Mapping[str, float] = NOTHING
    middle: float = 0.5
    steepness: float = 3.5  # evidence of 0 becomes .15 and of 1 .85: the scale of scores since 0.1
    doubt: float = 0.1  # share that a memory without any confidence loses; set by hand, no set has doubted memories


SHARES = ("recency", "utility", "importance", "frequency")  # of a score, beside relevance
# Features that are added to a score; a negative one puts a candidate behind another.
LIFTS = (
    *("yields", "again", "reread", "referred", "newer", "answers", "disputes"),
    *("settles", "refused"),
)

# The intents of a search. Their shares are a design and not a measurement: what people ask for differs.
PROFILES: Mapping[str, Profile] = {
    "relevance": Profile(1.0),
    "continuity": Profile(0.3, 0.5, 0.2, jitter=0.02),
    "fact_check": Profile(0.6, 0.1, 0.3, jitter=0.02),
    "frequent": Profile(0.2, 0.2, 0.6, jitter=0.02),
    "associative": Profile(0.7, 0.1, 0.2, jitter=0.05),
    "explore": Profile(0.4, 0.3, 0.3, jitter=0.15),
    "balanced": Profile(0.4, 0.2, importance=0.3, frequency=0.1, fading="days"),
}


def find_profile(text: str, custom: Sequence[str] = ()) -> Profile:
    """Return the profile of a name, custom or built in, or of weights such as `relevance=0.6 recency=0.4`.

    A custom profile with a built-in name fades like that one; all others fade in days."""
    try:
        weights = {text: read_weights(text)} if "=" in text else read_profiles(custom)
    except ValueError as error:
        raise InvalidInput(f"{error}.", "relevance=0.6 recency=0.4") from None
    if text in weights:
        similar = PROFILES.get(text, PROFILES["balanced"])
        shares: dict[str, Any] = {"relevance": 0.0, **weights[text]}
        return Profile(**shares, fading=similar.fading)
    return PROFILES[check_choice("profile", text, list({**PROFILES, **weights}))]


def add_evidence(features: Features, weights: Mapping[str, float]) -> float:
    """Sum up the weighted features."""
    return sum([weight * features.get(name, 0.0) for name, weight in weights.items()])


def find_relevance(evidence: float, profile: Profile) -> float:
    """Bring evidence to 0–1 by the curve of a profile, order kept."""
    if not profile.steepness:
        return evidence
    odds = profile.steepness * (profile.middle - evidence)
    return 1 / (1 + math.exp(min(50.0, max(-50.0, odds))))


def find_score(features: Features, profile: Profile) -> float:
    """Return the score that features have under a profile; `relevance` must be among them."""
    value = min(1.0, features["relevance"] * features.get("preferred", 1.0))
    if profile.relevance != 1:
        shares = [getattr(profile, name) * features.get(name, 0.0) for name in SHARES]
        value = profile.relevance * value + sum(shares)
    value *= 1 - profile.doubt * (1 - features.get("confidence", 1.0))
    value *= 1 + profile.jitter * features.get("chance", 0.0)
    for name in LIFTS:
        if name in features:
            value += features[name]
    return value


def find_key(features: Features, profile: Profile) -> Key:
    """Turn the features of one candidate into its sort key."""
    if "relevance" not in features:
        evidence = add_evidence(features, profile.weights)
        features["relevance"] = find_relevance(evidence, profile)
    # Rounded, so that candidates that exchange their places exchange their scores exactly.
    return Key(int(features.get("tier", 0)), round(find_score(features, profile), 12))


def rank(
    described: Iterable[tuple[Item, Features]],
    profile: Profile,
    tie: Callable[[Item], Any] = lambda item: 0,
) -> list[Ranked[Item]]:
    """Sort candidates by their keys, the best first; `tie` orders those with the same key."""
    ranked = [Ranked(find_key(features, profile), item, features) for item, features in described]
    ranked.sort(key=lambda one: (-one.key.tier, -one.key.score, tie(one.item)))
    return ranked
