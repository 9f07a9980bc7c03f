"""Redacting and extracting are fast enough not to be noticed, and what makes them fast changes nothing.

The limits are multiples of splitting the same text into words on the same machine, three times what was measured:
they are there to catch a pattern that is tried at every place of every text, not a slow day.
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
from bethink.ingest.redact import redact
from bethink.types import Passage

MESSAGE = (
    "I looked at the retry_policy again and found that the worker in src/jobs/worker.py never gives up. Maria thinks we should "
    "stop after five attempts, because Redis keeps every failed job until someone deletes it by hand. Let's use exponential "
    "backoff for now and move the dead jobs to their own queue. It is not urgent, but it fills the disk within a week or two. "
    "Could you check whether the tests cover it?"
)


def best(action: Callable[[], object], runs: int = 10) -> float:
    """The shortest of many runs in milliseconds of processor time."""
    shortest = float("inf")
    for _ in range(runs):
        begin = time.process_time()
        for _ in range(10):
            action()
        shortest = min(shortest, (time.process_time() - begin) / 10)
    return shortest * 1000


# Measured: 12 and 150 times as long as splitting on the short text, 9 and 80 on the long one.
REDACT, EXTRACT = 36, 450


@pytest.mark.parametrize("repeats", [1, 8])
def test_redacting_and_extracting_cost_little_more_than_reading(repeats):
    text = "\n\n".join([MESSAGE] * repeats)
    splitting = best(lambda: re.findall(r"\w+", text))
    assert best(lambda: redact(text)) < REDACT * splitting
    assert best(lambda: (extract(Passage(text)), keywords(text))) < EXTRACT * splitting


CUES = [cue for own in lexicon.cues().values() for cue in own if cue.literals]


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_every_match_of_a_phrase_holds_one_of_its_literals(data):
    cue = data.draw(st.sampled_from(CUES))
    text = data.draw(st.from_regex(re.compile(cue.pattern, re.ASCII), fullmatch=True))
    assert any(literal in text for literal in cue.literals)
