"""Probability that a statement of a conversation lasts and is not only a step of the task.

Rules, choices, limits, corrections and facts last. The judge's reading is weighed together with the form of the statement. The weights are a logistic regression over named features
(`data/lasting.json`), one for what a user says and one for what an assistant says, fitted by `bench/judge/lasting.py`. Pure: a statement
and its reading in, a probability out. Nothing about the reply to it is counted.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bethink.ingest.effects import Weights, load_weights, log_odds
from bethink.ingest.wording import count_telling_words
from bethink.judge import STATEMENT_KINDS, StatementReading, asks
from bethink.language.hedging import is_tentative
from bethink.language.lasting import (
    CHOOSES,
    REPORTS_TROUBLE,
    RESTRICTS,
    STANDING,
    STARTS_STEP,
    STATES_BEING,
)
from bethink.language.pointing import SPEAKS_FOR_ONESELF
from bethink.language.reasons import find_marked_reason
from bethink.language.reports import DELIVERS
from bethink.language.requests import ASKS_FOR_WORK
from bethink.language.rules import binds, reports

LASTING_WEIGHTS = Path(__file__).with_name("data") / "lasting.json"
FURTHEST = 6  # a statement further down in its turn counts like this one; by hand
WIDE_FROM = "\u2e7f"  # the last character before scripts without spaces


class Form(NamedTuple):
    """A statement as it is written in its turn."""

    text: str
    position: int  # in its turn, from 0
    width: int  # characters of its turn
    label: str | None = None  # the kind that a heading or a label announces
    heading: bool = False
    working: bool = False  # an assistant that goes on by itself
    doubtful: bool = False  # in a user's turn: most likely the user's word, but not evidently


def weigh_lasting(form: Form, reading: StatementReading, user: bool) -> float:
    """Return the probability that a statement is worth keeping for later conversations."""
    weights = read_lasting("user" if user else "assistant")
    score = weights.score(collect_evidence(form, reading))["lasts"]
    return 1 / (1 + math.exp(-score))


def collect_evidence(form: Form, reading: StatementReading) -> dict[str, float]:
    """Named evidence about one statement, the input of the regression."""
    text = form.text
    return {
        **{f"judge_{kind}": log_odds(reading.kinds[kind]) for kind in STATEMENT_KINDS},
        "judge_worth": log_odds(reading.worth),
        "telling_words": math.log1p(count_telling_words(text)),
        "turn_width": math.log1p(form.width),
        "position": float(min(form.position, FURTHEST)),
        "wide_script": float(sum(one > WIDE_FROM for one in text) > 3),
        "code": float("`" in text),
        "number": float(any(map(str.isdigit, text))),
        "asks": float(asks(text)),
        "exclaims": float("!" in text),
        "binds": float(binds(text)),
        "reports": float(reports(text)),
        "restricts": float(RESTRICTS.holds(text)),
        "trouble": float(REPORTS_TROUBLE.holds(text)),
        "standing": float(STANDING.holds(text)),
        "delivers": float(DELIVERS.holds(text)),
        "states_being": float(STATES_BEING.holds(text)),
        "gives_reason": float(find_marked_reason(text) is not None),
        "tentative": float(is_tentative(text)),
        "labelled": float(form.label is not None),
        "below_heading": float(form.heading),
        "working": float(form.working),
        "doubtful": float(form.doubtful),
        "judge_open": log_odds(reading.open),
        "chooses": float(CHOOSES.holds(text)),
        "asks_for_work": float(ASKS_FOR_WORK.holds(text)),
        "starts_step": float(STARTS_STEP.holds(text)),
        "speaks_for_oneself": float(SPEAKS_FOR_ONESELF.holds(text)),
    }


@cache
def read_lasting(speaker: str) -> Weights:
    return load_weights(LASTING_WEIGHTS, speaker)
