"""Redacting and extracting are fast enough not to be noticed, and what makes them fast changes nothing.

The limits are about ten times what a busy two-core machine takes at its best: they are there to catch a
pattern that is tried at every place of every text, not a slow day.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bethink.ingest import lexicon
from bethink.ingest.extract import extract, keywords
from bethink.ingest.lookup import cue_scores, firmness
from bethink.ingest.redact import redact
from bethink.types import Passage

MESSAGE = (
    "I looked at the retry_policy again and found that the worker in src/jobs/worker.py never gives up. Maria thinks we should "
    "stop after five attempts, because Redis keeps every failed job until someone deletes it by hand. Let's use exponential "
    "backoff for now and move the dead jobs to their own queue. It is not urgent, but it fills the disk within a week or two. "
    "Could you check whether the tests cover it?"
)


def best(action: Callable[[], object], runs: int = 30) -> float:
    """The shortest of many runs in milliseconds of processor time."""
    shortest = float("inf")
    for _ in range(runs):
        begin = time.process_time()
        for _ in range(10):
            action()
        shortest = min(shortest, (time.process_time() - begin) / 10)
    return shortest * 1000


@pytest.mark.parametrize(
    ("text", "limit"), [("billing worker", 0.05), (MESSAGE, 0.5), (MESSAGE * 8, 5)]
)
def test_redacting_a_text_without_secrets_costs_next_to_nothing(text, limit):
    assert best(lambda: redact(text)) < limit


@pytest.mark.parametrize(("text", "limit"), [(MESSAGE, 4), ("\n\n".join([MESSAGE] * 8), 20)])
def test_extracting_costs_a_fraction_of_a_millisecond(text, limit):
    assert best(lambda: (extract(Passage(text)), keywords(text))) < limit


def searched_scores(text: str) -> dict[str, float]:
    """What `cue_scores` says, by searching the text for every pattern."""
    text = text.lower().replace("’", "'")
    scores = {}
    for kind, cues in lexicon.CUES.items():
        matches = [(weight, re.search(pattern, text, re.MULTILINE)) for weight, pattern in cues]
        found = [
            weight if match.start() < 300 else weight / 2 for weight, match in matches if match
        ]
        if found:
            scores[kind] = max(found) + 0.15 * min(sum(found) - max(found), 4)
    return scores


def searched_firmness(text: str, value: float) -> float:
    text = text.lower().replace("’", "'")
    for cost, pattern in lexicon.HEDGES:
        value -= cost * min(len(re.findall(pattern, text, re.MULTILINE)), 2)
    return value + 0.05 * min(len(re.findall(lexicon.FIRM, text, re.MULTILINE)), 3)


PATTERNS = (
    [pattern for cues in lexicon.CUES.values() for _, pattern in cues]
    + [pattern for _, pattern in lexicon.HEDGES]
    + [lexicon.FIRM]
)
PHRASES = st.sampled_from(PATTERNS).flatmap(
    lambda pattern: st.from_regex(re.compile(pattern, re.MULTILINE | re.ASCII))
)


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.one_of(PHRASES, st.sampled_from([" ", ". ", "\n", "The worker ", "x " * 149])),
        max_size=5,
    ).map("".join)
)
def test_looking_only_where_a_phrase_can_begin_finds_what_searching_everywhere_finds(text):
    assert cue_scores(text) == searched_scores(text)
    assert firmness(text, 0.8) == searched_firmness(text, 0.8)
