"""Relevance into a score: the weights of each intent, what they weigh, doubt and jitter."""

import math
import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from bethink.errors import InvalidInput
from bethink.model import Candidate, Words
from bethink.recall import score as scoring
from bethink.recall.score import DOUBT, PROFILES, RECENT, STRETCH, TODAY, fuse, profile_parts
from bethink.store.base import Statistics

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
INTENTS = {
    "continuity": (0.3, 0.5, 0.2, 0.02),
    "fact_check": (0.6, 0.1, 0.3, 0.02),
    "frequent": (0.2, 0.2, 0.6, 0.02),
    "associative": (0.7, 0.1, 0.2, 0.05),
    "explore": (0.4, 0.3, 0.3, 0.15),
}


class Middle(random.Random):
    """Shakes nothing: the middle of every interval."""

    def random(self):
        return 0.5


def score(one, relevance, profile, chance=None):
    """The score of one candidate alone."""
    weights = PROFILES[profile]
    return scoring.score([(relevance, one)], weights, NOW, chance or Middle())[0][0]


def candidate(hours=0.0, **fields):
    at = (NOW - timedelta(hours=hours)).timestamp()
    usual = {"key": 1, "kind": "fact", "importance": 5.0, "confidence": 1.0, "usefulness": 0.0}
    usual |= {"access_count": 0, "created_at": at, "last_accessed": at, "trust": 3, "source": 1}
    usual |= {"position": 0, "superseded_by": None, "span": None, "length": 10}
    return Candidate(**{**usual, "frequencies": (), "pairs": (), **fields})


BALANCED = [
    (10, 0, 99, 0.4 * 0.5 + 0.2 * 1 + 0.3 * 1 + 0.1 * 1),
    (5, 30, 9, 0.4 * 0.5 + 0.2 / math.e + 0.3 * 0.5 + 0.1 * 0.5),
    (0, 90, 0, 0.4 * 0.5 + 0.2 / math.e**3),
    (8, 0, 10_000, 0.4 * 0.5 + 0.2 + 0.3 * 0.8 + 0.1),
]


def test_profiles_have_the_weights_of_their_design_and_weigh_these_parts():
    weights = ("relevance", "recency", "utility", "importance", "frequency")
    for name, profile in PROFILES.items():
        assert math.isclose(sum(getattr(profile, weight) for weight in weights), 1), name
    for name, weights in INTENTS.items():
        intent = PROFILES[name]
        assert (intent.relevance, intent.recency, intent.utility, intent.jitter) == weights
    # Weights of one's own fade like the profile of that name.
    mine = scoring.find_profile("relevance=0.9 importance=0.6 jitter=0.1")
    assert (mine.relevance, mine.importance, mine.jitter) == pytest.approx((0.6, 0.4, 0.1))
    assert scoring.find_profile("recency=1").fading == "days"
    assert scoring.find_profile("continuity", ["continuity recency=1"]).fading == "hours"
    for wrong in ("jitter=0.1", "relevance=2", "relevance=", "size=1", "relevance=nan"):
        with pytest.raises(InvalidInput, match="expected"):
            scoring.find_profile(wrong)
    # Recency fades by the hour since the last use.
    for hours, recency in {0: 1.0, 1: 0.995, 100: 0.6058, 138.28: 0.5, -5: 1.0}.items():
        parts = profile_parts(candidate(hours, created_at=0.0), PROFILES["continuity"], NOW)
        assert parts["recency"] == pytest.approx(recency, abs=1e-4), hours
    # Utility is a sigmoid of votes and the logarithm of uses.
    known = {(0, 0): 0.5, (5, 0): 0.7311, (5, 1): 0.7575, (-5, 0): 0.2689}
    for (votes, uses), utility in {**known, (0, 99): 0.7153, (10, 1): 0.8946}.items():
        one = candidate(usefulness=votes, access_count=uses)
        parts = profile_parts(one, PROFILES["frequent"], NOW)
        assert parts["utility"] == pytest.approx(utility, abs=1e-4), (votes, uses)
    # The balanced profile weighs importance, and decays over thirty days.
    for importance, days, uses, expected in BALANCED:
        one = candidate(hours=24 * days, importance=importance, access_count=uses)
        assert score(one, 0.5, "balanced", random.Random(1)) == pytest.approx(expected)


@pytest.mark.parametrize("name", INTENTS)
def test_an_intent_adds_its_parts_by_weight_and_jitter_stays_within_its_share(name):
    one = candidate(hours=100, usefulness=5, access_count=1)
    relevance, recency, utility, _ = INTENTS[name]
    useful = 1 / (1 + math.exp(-(5 + math.log(2)) / 5))
    expected = relevance * 0.8 + recency * 0.995**100 + utility * useful
    assert score(one, 0.8, name) == pytest.approx(expected)
    one, rng, jitter = candidate(hours=10, usefulness=2), random.Random(7), INTENTS[name][3]
    still = score(one, 0.6, name)
    shaken = [score(one, 0.6, name, rng) / still for _ in range(500)]
    assert 1 - jitter <= min(shaken) < 1 - 0.9 * jitter
    assert 1 + 0.9 * jitter < max(shaken) <= 1 + jitter


def test_what_is_doubted_loses_a_little_and_the_users_word_comes_before_a_document():
    for confidence, kept in ((1.0, 1.0), (0.5, 1 - DOUBT / 2), (0.0, 1 - DOUBT)):
        doubted = score(candidate(confidence=confidence), 0.6, "relevance")
        assert doubted == pytest.approx(0.6 * kept)
    for held, fit, first in (
        ((1, 1), 0.6, "statement"),  # both hold what is asked for; the document fits a bit better
        ((1, 1), 0.9, "document"),  # it fits much better
        ((0, 0), 0.6, "document"),  # the statement is about something else
    ):
        own = candidate(frequencies=held)
        read = candidate(key=2, kind="document", trust=1, frequencies=(1, 1))
        (value, _), (other, _) = scoring.put_statements_first([(0.5, own), (fit, read)])
        assert ("statement" if value > other else "document") == first, (held, fit)


@settings(max_examples=50)
@given(
    some.sampled_from(sorted(PROFILES)),
    some.floats(0, 1),
    some.tuples(some.floats(-100, 1e6), some.floats(-1000, 1000), some.integers(0, 10**9)),
    some.tuples(some.floats(0, 10), some.floats(0, 1)),
)
def test_a_score_without_jitter_stays_between_nothing_and_one(name, relevance, use, worth):
    (hours, votes, uses), (importance, confidence) = use, worth
    one = candidate(hours, usefulness=votes, access_count=uses)
    one = one._replace(importance=importance, confidence=confidence)
    assert 0 <= score(one, relevance, name) <= 1 + 1e-9


# Several opinions about relevance into one number, on pools made by hand

LONG_AGO = -1e12  # far enough that recency adds nothing
WORDS = Words(("jwt", "login"), (("jwt", "login"),))


def said(key, *frequencies, pair=False, **fields):
    usual = {"created_at": LONG_AGO, "length": 10, "source": key, "pairs": (pair,)}
    return candidate(key=key, frequencies=frequencies, **{**usual, **fields})


def pool(*candidates, cosines=None, mean=None, counts=(10, 10), memories=1000, **more):
    statistics = Statistics(memories, more.get("average", 10.0), counts, mean)
    given = more.get("words", WORDS), statistics, more.get("found", {})
    return scoring.Pool(candidates, *given, cosines or {})


def unsquashed(relevance):
    return 0.5 + math.log(relevance / (1 - relevance)) / 3.5


def test_words_weigh_by_rarity_less_their_background_and_by_the_part_they_hold():
    known = Statistics(1000, 10.0, (1, 100, 5000, 0))
    rare, common, everywhere, unknown = scoring.word_weights(known)
    assert unknown > rare > common > everywhere > 0
    squashed = [scoring.squash(tenth / 10) for tenth in range(-50, 51)]
    assert squashed == sorted(set(squashed)) and all(0 < value < 1 for value in squashed)
    found = fuse(pool(said(1, 1, 1), said(2, 1, 0)), now=0)
    assert found[1].words == 1.0 and found[1].meaning == 0 and found[1].cosine is None
    assert unsquashed(found[1].relevance) == pytest.approx(1.0)
    shared = fuse(pool(said(1, 1, 1), said(2, 1, 0), mean=0.2), now=0)
    assert unsquashed(shared[1].relevance) == pytest.approx(0.3)
    # Side by side they add their share.
    apart, together = (fuse(pool(said(1, 1, 1, pair=pair)), now=0)[1] for pair in (False, True))
    assert (apart.pairs, together.pairs) == (0.0, 1.0)
    share = unsquashed(together.relevance) - unsquashed(apart.relevance)
    assert share == pytest.approx(scoring.PAIRS)
    # Where no word is counted, the engine's own score stands.
    candidates = [said(key)._replace(pairs=()) for key in (1, 2, 3)]
    only_prefixes = {"words": Words((), ()), "counts": ()}
    found = fuse(pool(*candidates, found={1: 4.0, 2: 2.0}, **only_prefixes), now=0)
    assert [found[key].words for key in (1, 2, 3)] == [1.0, 0.5, 0.0]
    for many, floor in ((29, 0.0), (30, 0.7), (60, 0.7)):
        found = fuse(pool(*(said(key, 1, 1) for key in range(many))), now=0)
        assert {round(one.words, 6) for one in found.values()} == {round(1 - floor, 6)}, many
    for average, left in {10.0: 0.5, 20.0: 0.5, 30.0: 0.65, 40.0: 0.8, 300.0: 0.8}.items():
        part, whole = fuse(pool(said(1, 3, 0), said(2, 1, 1), average=average), now=0).values()
        assert (part.coverage, whole.coverage) == (0.5, 1.0)
        best = max(part.bm25, whole.bm25)
        assert part.words == pytest.approx(part.bm25 / best * left), average


@pytest.mark.parametrize(
    ("cosine", "mean", "meaning"),
    [
        pytest.param(0.6, 0.2, 0.5, id="0.6"),
        pytest.param(0.2, 0.2, 0.0, id="0.2"),
        pytest.param(1.0, 0.5, 1.0, id="1.0"),
        pytest.param(0.1, 0.2, -0.125, id="0.1"),
    ],
)
def test_meaning_is_measured_from_the_mean_cosine_up_to_one(cosine, mean, meaning):
    found = fuse(pool(said(1, 0, 0), cosines={1: cosine}, mean=mean, memories=10**9), now=0)
    meant = pytest.approx(STRETCH * meaning, abs=1e-6)
    assert found[1].meaning == meant
    assert unsquashed(found[1].relevance) / scoring.MEANING == meant


def test_meaning_is_measured_from_the_mean_cosine_and_not_scaled_down_where_it_stands_alone():
    one, nothing = said(1)._replace(pairs=()), {"words": Words(), "counts": ()}
    found = fuse(pool(one, cosines={1: 0.6}, mean=0.2, memories=10**9, **nothing), now=0)
    assert unsquashed(found[1].relevance) == pytest.approx(STRETCH * 0.5, abs=1e-6)
    # A scope of few memories trusts the usual mean of the model.
    found = fuse(pool(said(1, 0, 0), cosines={1: 0.9}, mean=0.9, memories=1), now=0, baseline=0.5)
    mean = (0.9 + 0.5 * scoring.PRIOR) / (1 + scoring.PRIOR)
    assert found[1].meaning == pytest.approx((0.9 - mean) * STRETCH / (1 - mean))


@pytest.mark.parametrize(
    ("places", "lifted"),
    [
        pytest.param(
            [(1, 0), (1, 1), (2, 0)], {1}, id="0-1-1"
        ),  # the next passage of the same source
        pytest.param([(1, 1), (1, 0), (2, 0)], {1}, id="1"),  # the one before
        pytest.param([(1, 0), (1, 2), (2, 1)], {1}, id="0-1-2"),  # two away, by half
        pytest.param([(1, 0), (1, 3), (2, 1)], set(), id="0-1-3"),  # three away
        pytest.param([(1, 0), (2, 1), (3, 1)], set(), id="0-2"),  # another source
        pytest.param(
            [(1, 0)] * 3, set(), id="0-3"
        ),  # told memories, which share one source without an order
        pytest.param([(1, 0), (1, 0), (1, 1)], set(), id="0-1-0"),  # a place that two claim
    ],
)
def test_neighbours_lift_only_ordered_passages_of_the_same_source(places, lifted):
    candidates = [candidate(key=0, source=source, position=at) for source, at in places]
    lift = scoring.lift_neighbours(candidates, [0.9, 0.1, 0.1])
    assert {at for at, value in enumerate(lift) if value > 0} == lifted


def test_a_neighbour_lifts_by_how_far_it_stands_above_the_middle_but_in_no_rank_fusion():
    candidates = [candidate(key=at, source=1, position=at) for at in range(5)]
    lift = scoring.lift_neighbours(candidates, [1.0, 0.2, 0.2, 0.2, 0.2])
    assert lift == pytest.approx([0.0, scoring.NEIGHBOUR * 0.8, scoring.NEIGHBOUR * 0.4, 0.0, 0.0])
    assert scoring.lift_neighbours([], []) == []
    first = said(1, 1, 1, source=1, position=0, created_at=0.0)
    turns = [first, said(2, 0, 1, source=1, position=1), said(3, 0, 0, source=1, position=9)]
    adaptive, ranks = (fuse(pool(*turns), now=0, method=method) for method in ("adaptive", "rrf"))
    assert adaptive[2].neighbours > 0 and adaptive[1].recent == RECENT
    assert ranks[2].neighbours == 0 and ranks[1].recent == 0


RECENCY = [
    (0, RECENT, RECENT + TODAY),
    (-scoring.SKEW / 2, RECENT, RECENT + TODAY),
    (scoring.FADE, RECENT / math.e, RECENT / math.e),
    (100 * scoring.FADE, 0, 0),
    (-2 * scoring.SKEW, 0, -scoring.LATER),
]


def test_recency_fades_and_turns_that_follow_each_other_are_a_conversation():
    for age, told, spoken in RECENCY:
        one = said(1, 1, 1, created_at=-age)
        found = [fuse(pool(one._replace(span=span)), now=0)[1].recent for span in (None, "s")]
        assert found == pytest.approx([told, spoken], abs=1e-3), age

    def recent(*candidates):
        return [one.recent for one in fuse(pool(*candidates), now=0).values()]

    spoken = {"kind": "context", "source": 7, "created_at": 0.0}
    turns = [said(key, 1, 1, position=key - 1, **spoken) for key in (1, 2)]
    assert recent(*turns) == pytest.approx([RECENT + TODAY] * 2)
    assert recent(turns[0]) == pytest.approx([RECENT])
    assert recent(*(one._replace(kind="fact") for one in turns)) == pytest.approx([RECENT] * 2)


def test_reciprocal_ranks_give_the_numbers_of_the_worked_example_and_are_added():
    auth, postgres, login = said(1, 2, 1), said(2, 0, 0), said(3, 1, 0)
    three = pool(auth, postgres, login, cosines={1: 0.85, 2: 0.62, 3: 0.55}, mean=0.3)
    found = fuse(three, now=0, method="rrf", gate=0.6)
    assert [round(found[key].relevance, 3) for key in (1, 3, 2)] == [1.000, 0.984, 0.620]
    assert found[3].cosine is None
    two = pool(said(1, 1, 1), said(2, 1, 0), cosines={1: 0.5, 2: 0.9}, mean=0.1)
    found = fuse(two, now=0, method="rrf")
    assert found[1].relevance == found[2].relevance == pytest.approx((1 / 60 + 1 / 61) / (2 / 60))
    far = pool(said(1, 0, 0), cosines={1: -0.4}, mean=0.1)
    assert fuse(far, now=0, method="rrf")[1].relevance == 0.0


@pytest.mark.parametrize("method", ["adaptive", "rrf"])
def test_the_gate_drops_weak_cosines_and_keeps_the_words(method):
    weak = pool(said(1, 1, 1), said(2, 1, 0), cosines={1: 0.3, 2: 0.8}, mean=0.4)
    closed, open_ = fuse(weak, now=0, method=method, gate=0.6), fuse(weak, now=0, method=method)
    assert (closed[1].cosine, closed[1].meaning) == (None, 0.0) and closed[2].cosine == 0.8
    assert open_[1].cosine == 0.3 and open_[1].meaning < 0
    assert closed[1].bm25 == open_[1].bm25 > 0


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_candidates_changes_nothing(seed):
    chance = random.Random(seed)
    candidates = []
    for key in range(chance.randint(1, 40)):
        place = {"source": chance.randint(1, 3), "position": chance.randint(0, 9)}
        about = {"length": chance.randint(1, 300), "created_at": chance.uniform(0, 1e8), **place}
        held = chance.choices(range(6), k=2)
        candidates.append(said(key, *held, pair=chance.random() < 0.5, **about))
    keys = [one.key for one in candidates if chance.random() < 0.5]
    cosines = {key: chance.uniform(-1, 1) for key in keys}
    mean = chance.choice([None, chance.uniform(-0.5, 0.9)])
    first = pool(*candidates, cosines=cosines, mean=mean)
    found = fuse(first, 1e8)
    chance.shuffle(candidates)
    assert fuse(first._replace(candidates=tuple(candidates)), 1e8) == found
    assert all(0 < signals.relevance < 1 for signals in found.values())
