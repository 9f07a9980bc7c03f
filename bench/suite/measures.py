"""Judge answers: compare texts by words, rate an order, and give intervals. Plain Python, no model."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence

Measures = dict[str, dict[str, float | int]]  # a mean, its interval and the number of cases
RESAMPLES = 1000  # of the cases, for an interval that holds 95 of 100 of their means
DEPTH = 10
STOP = frozenset(
    "the a an and or of to in on for with is are was were be been it its this that these those we you i they he she as at "
    "by from not no do does did so if then than but our your will would can could should have has had there here what which "
    "who when where why how into out up about all any each more most also only just now".split()
)


def content_words(text: str) -> set[str]:
    """Return the words of a text that carry meaning, without their endings."""
    found = re.findall(r"[a-z0-9_]{2,}", text.lower().replace("'", ""))
    return {
        re.sub(r"(ing|ed|es|s)$", "", word) if len(word) > 4 else word
        for word in found
        if word not in STOP
    }


def is_about(text: str, wanted: str) -> bool:
    """Return True if most words of the shorter text, and at least three, are in the other."""
    one, other = content_words(text), content_words(wanted)
    shared = len(one & other)
    return shared >= min(3, len(other)) and shared >= 0.6 * min(len(one), len(other)) > 0


def pick_statement(text: str, statements: dict[str, str]) -> str | None:
    """Return the name of the statement that a returned text contains, by its words, or None.

    A system may store a statement inside a longer text (a heading, a date, a role), so containment counts as equality does.
    """
    plain = " ".join(text.split()).lower()
    for name, statement in sorted(statements.items(), key=lambda pair: -len(pair[1])):
        if " ".join(statement.split()).lower() in plain:
            return name
    found = set(re.findall(r"\w+", plain))
    near = {}
    for name, statement in statements.items():
        words = set(re.findall(r"\w+", statement.lower()))
        near[name] = len(found & words) / max(1, len(found | words))
    best = max(near, key=lambda name: near[name])
    return best if near[best] > 0.5 else None


def ndcg(found: Sequence[str], relevant: Sequence[str]) -> float:
    """Return nDCG@10 of an order of names, each counted once."""
    wanted = set(relevant)
    first = list(dict.fromkeys(found))[:DEPTH]
    gain = sum(1 / math.log2(at + 2) for at, name in enumerate(first) if name in wanted)
    ideal = sum(1 / math.log2(at + 2) for at in range(min(DEPTH, len(wanted))))
    return gain / ideal if ideal else 0.0


def summarise(values: Sequence[float], seed: int = 1) -> dict[str, float | int]:
    """Return a mean with its bootstrap interval and the number of cases."""
    values = [float(value) for value in values]
    if not values:
        return {"mean": 0.0, "low": 0.0, "high": 0.0, "of": 0}
    dice, many = random.Random(seed), len(values)
    means = sorted(sum(dice.choices(values, k=many)) / many for _ in range(RESAMPLES))
    low, high = means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1]
    return {
        "mean": round(sum(values) / many, 4),
        "low": round(low, 4),
        "high": round(high, 4),
        "of": many,
    }


def balance(
    first: Sequence[float], second: Sequence[float], seed: int = 1
) -> dict[str, float | int]:
    """Return the mean of two shares, each over its own cases: always doing the same gets no more than half."""
    if not first or not second:
        return summarise([])
    dice = random.Random(seed)

    def mean(values: Sequence[float]) -> float:
        return sum(values) / len(values)

    means = sorted(
        (mean(dice.choices(first, k=len(first))) + mean(dice.choices(second, k=len(second)))) / 2
        for _ in range(RESAMPLES)
    )
    return {
        "mean": round((mean(first) + mean(second)) / 2, 4),
        "low": round(means[int(0.025 * RESAMPLES)], 4),
        "high": round(means[int(0.975 * RESAMPLES) - 1], 4),
        "of": len(first) + len(second),
    }


def summarise_parts(parts: Sequence[Sequence[float]], seed: int = 1) -> dict[str, float | int]:
    """Return the mean of the means of parts, each of which counts the same."""
    dice = random.Random(seed)

    def mean(drawn: Sequence[Sequence[float]]) -> float:
        return sum(sum(values) / len(values) for values in drawn) / len(drawn)

    means = sorted(
        mean([dice.choices(values, k=len(values)) for values in parts]) for _ in range(RESAMPLES)
    )
    low, high = means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1]
    many = sum(len(values) for values in parts)
    return {"mean": round(mean(parts), 4), "low": round(low, 4), "high": round(high, 4), "of": many}


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text: one for four characters."""
    return -(-len(text) // 4)
