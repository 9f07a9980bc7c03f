"""Relevance into a score: the weights of each intent, what they weigh, doubt and jitter."""

import math
import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from bethink.errors import InvalidInput
from bethink.recall import score as scoring
from bethink.recall.score import DOUBT, PROFILES, profile_parts
from bethink.types import Candidate

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
INTENTS = {
    "continuity": (0.3, 0.5, 0.2, 0.02),
    "fact_check": (0.6, 0.1, 0.3, 0.02),
    "frequent": (0.2, 0.2, 0.6, 0.02),
    "associative": (0.7, 0.1, 0.2, 0.05),
    "explore": (0.4, 0.3, 0.3, 0.15),
}


def score(one, relevance, profile, now, rng):
    """The score of one candidate alone."""
    return scoring.score([one], [relevance], PROFILES[profile], now, rng)[0]


class Middle(random.Random):
    """Shakes nothing: the middle of every interval."""

    def random(self):
        return 0.5


def candidate(hours=0.0, **fields):
    at = (NOW - timedelta(hours=hours)).timestamp()
    usual = Candidate(
        key=1,
        kind="fact",
        importance=5.0,
        confidence=1.0,
        usefulness=0.0,
        access_count=0,
        created_at=at,
        last_accessed=at,
        trust=3,
        source=1,
        position=0,
        superseded_by=None,
        span=None,
        length=10,
        frequencies=(),
        pairs=(),
    )
    return usual._replace(**fields)


def test_every_profile_that_may_be_chosen_has_weights_that_make_one():
    for name, profile in PROFILES.items():
        assert math.isclose(
            sum(
                (
                    profile.relevance,
                    profile.recency,
                    profile.utility,
                    profile.importance,
                    profile.frequency,
                )
            ),
            1,
        ), name


def test_weights_of_ones_own_make_one():
    mine = scoring.find_profile("relevance=0.9 importance=0.6 jitter=0.1")
    assert (mine.relevance, mine.importance, mine.jitter) == pytest.approx((0.6, 0.4, 0.1))
    assert scoring.find_profile("recency=1").fading == "days"
    for wrong in ("jitter=0.1", "relevance=2", "relevance=", "size=1", "relevance=nan"):
        with pytest.raises(InvalidInput, match="no weights"):
            scoring.find_profile(wrong)


@pytest.mark.parametrize("name", INTENTS)
def test_an_intent_has_the_weights_and_the_jitter_of_its_design(name):
    profile = PROFILES[name]
    assert (profile.relevance, profile.recency, profile.utility, profile.jitter) == INTENTS[name]


@pytest.mark.parametrize(
    ("hours", "recency"), [(0, 1.0), (1, 0.995), (100, 0.6058), (138.28, 0.5), (-5, 1.0)]
)
def test_recency_of_an_intent_fades_by_the_hour_since_the_last_use(hours, recency):
    parts = profile_parts(
        candidate(created_at=0.0, last_accessed=(NOW - timedelta(hours=hours)).timestamp()),
        PROFILES["continuity"],
        NOW,
    )
    assert parts["recency"] == pytest.approx(recency, abs=1e-4)


@pytest.mark.parametrize(
    ("usefulness", "uses", "utility"),
    [
        (0, 0, 0.5),
        (5, 0, 0.7311),
        (5, 1, 0.7575),
        (-5, 0, 0.2689),
        (0, 99, 0.7153),
        (10, 1, 0.8946),
    ],
)
def test_utility_is_a_sigmoid_of_votes_and_the_logarithm_of_uses(usefulness, uses, utility):
    parts = profile_parts(
        candidate(usefulness=usefulness, access_count=uses), PROFILES["frequent"], NOW
    )
    assert parts["utility"] == pytest.approx(utility, abs=1e-4)


@pytest.mark.parametrize("name", INTENTS)
def test_an_intent_adds_relevance_recency_and_utility_by_weight(name):
    one = candidate(hours=100, usefulness=5, access_count=1)
    relevance, recency, utility, _ = INTENTS[name]
    expected = (
        relevance * 0.8 + recency * 0.995**100 + utility / (1 + math.exp(-(5 + math.log(2)) / 5))
    )
    assert score(one, 0.8, name, NOW, Middle()) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("importance", "days", "uses", "expected"),
    [
        (10, 0, 99, 0.4 * 0.5 + 0.2 * 1 + 0.3 * 1 + 0.1 * 1),
        (5, 30, 9, 0.4 * 0.5 + 0.2 / math.e + 0.3 * 0.5 + 0.1 * 0.5),
        (0, 90, 0, 0.4 * 0.5 + 0.2 / math.e**3),
        (8, 0, 10_000, 0.4 * 0.5 + 0.2 + 0.3 * 0.8 + 0.1),
    ],
)
def test_balanced_weighs_importance_a_decay_of_thirty_days_and_the_logarithm_of_uses(
    importance, days, uses, expected
):
    one = candidate(hours=24 * days, importance=importance, access_count=uses)
    assert score(one, 0.5, "balanced", NOW, random.Random(1)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("confidence", "kept"), [(1.0, 1.0), (0.5, 1 - DOUBT / 2), (0.0, 1 - DOUBT)]
)
def test_a_doubted_memory_loses_a_little(confidence, kept):
    assert score(
        candidate(confidence=confidence), 0.6, "relevance", NOW, Middle()
    ) == pytest.approx(0.6 * kept)


@pytest.mark.parametrize("name", INTENTS)
def test_jitter_stays_within_its_share_and_uses_it(name):
    one, rng, jitter = candidate(hours=10, usefulness=2), random.Random(7), INTENTS[name][3]
    still = score(one, 0.6, name, NOW, Middle())
    shaken = [score(one, 0.6, name, NOW, rng) / still for _ in range(500)]
    assert 1 - jitter <= min(shaken) < 1 - 0.9 * jitter
    assert 1 + 0.9 * jitter < max(shaken) <= 1 + jitter


@settings(deadline=None, derandomize=True)
@given(
    name=some.sampled_from(sorted(PROFILES)),
    relevance=some.floats(0, 1),
    hours=some.floats(-100, 1e6),
    usefulness=some.floats(-1000, 1000),
    uses=some.integers(0, 10**9),
    importance=some.floats(0, 10),
    confidence=some.floats(0, 1),
)
def test_a_score_without_jitter_stays_between_nothing_and_one(
    name, relevance, hours, usefulness, uses, importance, confidence
):
    one = candidate(
        hours,
        usefulness=usefulness,
        access_count=uses,
        importance=importance,
        confidence=confidence,
    )
    assert 0 <= score(one, relevance, name, NOW, Middle()) <= 1 + 1e-9


@pytest.mark.parametrize(
    ("held", "fit", "first"),
    [
        (
            (1, 1),
            0.6,
            "statement",
        ),  # both hold what is asked for, and the document fits a little better
        ((1, 1), 0.9, "document"),  # it fits much better
        ((0, 0), 0.6, "document"),  # the statement is about something else
    ],
)
def test_the_user_s_word_comes_before_a_document_about_the_same(held, fit, first):
    own = candidate(frequencies=held)
    read = candidate(key=2, kind="document", trust=1, frequencies=(1, 1))
    value, other = scoring.put_statements_first([own, read], [0.5, fit])
    assert ("statement" if value > other else "document") == first
