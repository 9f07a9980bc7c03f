"""Effects of a new statement on a known one, as probabilities from the judge and the words of both.

The judge sees two texts alone, and many notes about one component look like a change of each other. Here its opinion is weighed
together with everything else that is known about the pair: how near the two are, how much nearer than other notes, which words they
share, which numbers and negations differ, and whether the new note changes another one more clearly. The weights are a multinomial
logistic regression over named features (`data/effects.json`), fitted by `bench/judge/effects.py` on written project histories in which
most notes are true together. Pure: texts and numbers in, probabilities out.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from bethink.ingest.wording import (
    are_distinct,
    count_separators,
    count_shared_words,
    count_telling_words,
    differ_in_denial,
    other_number,
    other_part,
)
from bethink.judge import RELATED, Judgement
from bethink.language.change import SPEAKS_OF_CHANGE, find_change
from bethink.language.hedging import is_tentative

# Effects of a new statement: the known one still holds (keep), is over (replaces), changes in part (changes), says the same (same), is
# answered (answers) or done (completes).
EFFECTS = ("keep", "replaces", "changes", "same", "answers", "completes")
EFFECT_WEIGHTS = Path(__file__).with_name("data") / "effects.json"
EXTENDS = "extends"  # beside them, by the judge alone: it adds to the known one, which still holds
_LEAST = 0.001  # the smallest probability that is distinguished from zero
MOST_SHARED = 4  # shared words beyond this number say nothing more
# Pairs of one new statement that the judge reads, and the chance of any effect, by words and nearness alone, from which it reads one. Of
# 807 effects in histories that the regression did not see 99.8 % are read, with 2.0 pairs for each note instead of 4.4 (2026-11-18).
MOST_JUDGED, LEAST_CHANCE = 4, 0.01


class Position(NamedTuple):
    """Place of a known statement among those that a new one is compared with."""

    nearness: float  # 0 for strangers, 1 for the same text
    lead: float  # over the nearest of the others
    follows: bool = False  # the new one was written right after it


class Side(NamedTuple):
    """One of two statements: its text, its kind, and the names of its entities."""

    text: str
    kind: str
    entities: frozenset[str] = frozenset()


class Weights(NamedTuple):
    """A regression: a row of coefficients for each outcome, over features of mean 0 and spread 1."""

    features: tuple[str, ...]
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    coefficients: Mapping[str, tuple[float, ...]]
    intercepts: Mapping[str, float]

    def score(self, features: Mapping[str, float]) -> dict[str, float]:
        """Return the score of each outcome for the features of one pair."""
        values = [
            (features[name] - mean) / scale
            for name, mean, scale in zip(self.features, self.mean, self.scale, strict=True)
        ]
        return {
            name: self.intercepts[name] + sum(map(operator.mul, values, coefficients))
            for name, coefficients in self.coefficients.items()
        }


Effect = Mapping[str, float]  # probability of each of EFFECTS, and perhaps of EXTENDS


def find_rivals(judgements: Sequence[Judgement]) -> list[float]:
    """Return, for each pair of one new statement, the largest change share among its other pairs."""
    shares = [
        max(one.probabilities[name] for name in ("replaces", "same", "answers", "completes"))
        for one in judgements
    ]
    return [
        max((share for at, share in enumerate(shares) if at != own), default=0.0)
        for own in range(len(shares))
    ]


def collect_features(
    words: Mapping[str, float], judgement: Judgement, rival: float
) -> dict[str, float]:
    """Named evidence about one pair, the input of the regression: its words and the judge's opinion."""
    odds = {name: log_odds(judgement.probabilities[name]) for name in RELATED}
    return {
        **{f"judge_{name}": value for name, value in odds.items()},
        **words,
        "rival": log_odds(rival),
        "replaces_unshared": odds["replaces"] * words["nothing_shared"],
        "replaces_near": odds["replaces"] * words["nearness"],
    }


def collect_words(old: Side, new: Side, position: Position) -> dict[str, float]:
    """Named evidence about one pair that needs no model."""
    shared = count_shared_words(old.text, new.text)
    return {
        "nearness": position.nearness,
        "nearness_squared": position.nearness**2,
        "shared_near": min(shared, MOST_SHARED) * position.nearness,
        "lead": position.lead,
        "shared": float(min(shared, MOST_SHARED)),
        "nothing_shared": float(not shared),
        "follows": float(position.follows),
        "shared_of_old": shared / max(1, count_telling_words(old.text)),
        "shared_of_new": shared / max(1, count_telling_words(new.text)),
        "old_length": len(old.text) / 100,
        "new_length": len(new.text) / 100,
        "length_ratio": math.log(max(1, len(new.text)) / max(1, len(old.text))),
        "told_apart": float(are_distinct(new.text, old.text)),
        "other_number": float(other_number(new.text, old.text)),
        "other_part": float(other_part(new.text, old.text)),
        "states_change": float(find_change(new.text) is not None),
        "denial_differs": float(differ_in_denial(new.text, old.text)),
        "new_speaks_of_change": float(SPEAKS_OF_CHANGE.holds(new.text)),
        "old_speaks_of_change": float(SPEAKS_OF_CHANGE.holds(old.text)),
        "old_question": float(old.kind == "question"),
        "old_todo": float(old.kind == "todo"),
        "old_problem": float(old.kind == "problem"),
        "new_open": float(new.kind in ("todo", "question")),
        "tentative": float(is_tentative(new.text)),
        "shared_entities": float(len(old.entities & new.entities)),
        "old_separators": float(count_separators(old.text)),
        "new_separators": float(count_separators(new.text)),
    }


def weigh_effect(features: Mapping[str, float]) -> Effect:
    """Return the probability of each effect for the features of one pair."""
    scores = read_weights("effects").score(features)
    highest = max(scores.values())
    raised = {name: math.exp(score - highest) for name, score in scores.items()}
    total = sum(raised.values())
    return {name: value / total for name, value in raised.items()}


def choose_judged(words: Sequence[Mapping[str, float]]) -> list[int]:
    """Return the positions of the pairs that the judge should read: the few that may have an effect."""
    weights = read_weights("prior")
    chances = [1 / (1 + math.exp(-weights.score(one)["any"])) for one in words]
    ordered = sorted(range(len(words)), key=lambda at: -chances[at])
    return sorted(at for at in ordered[:MOST_JUDGED] if chances[at] >= LEAST_CHANCE)


@cache
def read_weights(name: str) -> Weights:
    return load_weights(EFFECT_WEIGHTS, name)


def load_weights(file: Path, name: str) -> Weights:
    """Read one regression of a file."""
    stored: dict[str, Any] = json.loads(file.read_text("utf-8"))[name]
    return Weights(
        tuple(stored["features"]),
        tuple(stored["mean"]),
        tuple(stored["scale"]),
        {name: tuple(values) for name, values in stored["coefficients"].items()},
        stored["intercepts"],
    )


def log_odds(share: float) -> float:
    kept = min(max(share, _LEAST), 1 - _LEAST)
    return math.log(kept / (1 - kept))
