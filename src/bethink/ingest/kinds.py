"""The kind of a note, from its wording and from the judge's reading of it.

The judge was trained on statements of conversations, most of which are facts in passing or nothing at all. A note was written down on
purpose, so the judge's probabilities are weighed by `SHARES`: how much more often a kind occurs among notes than the judge expects.
Cue phrases speak beside it, and alone for the kinds that the judge does not know.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from bethink.ingest.extract import classify, score_kinds
from bethink.judge import StatementReading
from bethink.language.kinds import RECURS

# Chosen with CUE on the notes of `TUNING` in tests/note_kinds.py, near what a multinomial regression gives there (bench/LOG.md, 2026-11-18).
KIND_SHARES = {
    "decision": 1.5,
    "preference": 3.0,
    "gotcha": 2.0,
    "fact": 0.25,
    "problem": 0.5,
    "solution": 1.1,
    "pattern": 4.0,
    "question": 1.0,
    "todo": 0.3,
}
CUE_WEIGHT = 0.5  # what a cue's weight adds to the logarithm of a probability
LEAST_PROBABILITY = 0.001  # a probability that is as good as none
NOTHING_STATED = 0.5  # how probably a text states nothing for its words alone to decide; by hand
# Kinds that only cues tell: to the judge they are facts.
SORTS_OF_FACT = (
    *("architecture", "component", "domain", "relationship"),
    *("conclusion", "discovery"),
)
# Kinds that follow from the form of a text, whatever the judge makes of it.
BY_FORM = ("code", "document", "context")
# How probably a note is a to-do to be one, and how improbably for its words not to count. Of 50 written to-dos 47 are found (27 by
# their words), of 620 other notes 3 are taken for one (9) (bench/LOG.md, 2026-11-16).
TODO_BAR, NO_TODO_BAR = 0.75, 0.25


def choose_kind(text: str, reading: StatementReading) -> str:
    """The most probable kind of a note that nobody gave a kind or a label."""
    wanted = reading.kinds["todo"]
    if wanted >= TODO_BAR and not RECURS.holds(text):
        return "todo"
    by_words = classify(text)[0]
    if by_words in BY_FORM or reading.kinds["none"] >= NOTHING_STATED:
        return by_words if by_words != "todo" or wanted >= NO_TODO_BAR else "fact"
    chances = weigh_kinds(reading.kinds, score_kinds(text))
    if wanted < NO_TODO_BAR or wanted >= TODO_BAR:
        del chances["todo"]
    return max(chances, key=chances.__getitem__)


def weigh_kinds(probabilities: Mapping[str, float], cues: Mapping[str, float]) -> dict[str, float]:
    """For each kind how much speaks for it, as a logarithm."""
    chances = {
        kind: math.log(share * max(probabilities[kind], LEAST_PROBABILITY))
        for kind, share in KIND_SHARES.items()
    }
    chances |= dict.fromkeys((kind for kind in SORTS_OF_FACT if kind in cues), chances["fact"])
    return {kind: chance + CUE_WEIGHT * cues.get(kind, 0.0) for kind, chance in chances.items()}
