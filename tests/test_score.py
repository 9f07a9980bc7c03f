"""Relevance into a score: the weights of each intent, what they weigh, doubt and jitter."""

import math
import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from bethink.errors import InvalidInput
from bethink.recall import score as scoring
from bethink.recall.score import (
    DOUBT,
    FADE,
    LATER,
    MEANING,
    NEIGHBOUR,
    PAIRS,
    PRIOR,
    PROFILES,
    RECENT,
    SKEW,
    STRETCH,
    TODAY,
    Pool,
    fuse,
    lift_neighbours,
    profile_parts,
    squash,
    word_weights,
)
from bethink.store.base import Statistics
from bethink.types import Candidate, Words

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


def test_weights_of_ones_own_make_one_and_fade_like_the_profile_of_that_name():
    mine = scoring.find_profile("relevance=0.9 importance=0.6 jitter=0.1")
    assert (mine.relevance, mine.importance, mine.jitter) == pytest.approx((0.6, 0.4, 0.1))
    assert scoring.find_profile("recency=1").fading == "days"
    assert scoring.find_profile("continuity", ["continuity recency=1"]).fading == "hours"
    for wrong in ("jitter=0.1", "relevance=2", "relevance=", "size=1", "relevance=nan"):
        with pytest.raises(InvalidInput, match="expected"):
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


# Several opinions about relevance into one number, on pools made by hand

LONG_AGO = -1e12  # far enough that recency adds nothing
WORDS = Words(("jwt", "login"), (("jwt", "login"),))


def said(key, *frequencies, pair=False, **fields):
    usual = {"created_at": LONG_AGO, "length": 10, "source": key, "pairs": (pair,)}
    return candidate(key=key, frequencies=frequencies, **{**usual, **fields})


def pool(*candidates, cosines=None, mean=None, counts=(10, 10), memories=1000, **more):
    statistics = Statistics(memories, more.get("average", 10.0), counts, mean)
    found, boosts = more.get("found", {}), more.get("boosts", {})
    return Pool(candidates, more.get("words", WORDS), statistics, found, boosts, cosines or {})


def unsquashed(relevance):
    return 0.5 + math.log(relevance / (1 - relevance)) / 3.5


def test_a_rare_word_is_more_telling_than_a_common_one():
    rare, common, everywhere, unknown = word_weights(Statistics(1000, 10.0, (1, 100, 5000, 0)))
    assert unknown > rare > common > everywhere > 0


def test_words_stand_alone_where_there_are_no_vectors():
    found = fuse(pool(said(1, 1, 1), said(2, 1, 0)), now=0)
    assert found[1].words == 1.0 and found[1].meaning == 0 and found[1].cosine is None
    assert unsquashed(found[1].relevance) == pytest.approx(1.0)
    shared = fuse(pool(said(1, 1, 1), said(2, 1, 0), mean=0.2), now=0)
    assert unsquashed(shared[1].relevance) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("cosine", "mean", "meaning"),
    [(0.6, 0.2, 0.5), (0.2, 0.2, 0.0), (1.0, 0.5, 1.0), (0.1, 0.2, -0.125)],
)
def test_meaning_is_measured_from_the_mean_cosine_up_to_one(cosine, mean, meaning):
    found = fuse(pool(said(1, 0, 0), cosines={1: cosine}, mean=mean, memories=10**9), now=0)
    assert found[1].meaning == pytest.approx(STRETCH * meaning, abs=1e-6)
    assert unsquashed(found[1].relevance) == pytest.approx(MEANING * STRETCH * meaning, abs=1e-6)


def test_meaning_alone_is_not_scaled_down():
    one = said(1, 0, 0)._replace(frequencies=(), pairs=())
    alone = pool(one, cosines={1: 0.6}, mean=0.2, memories=10**9, words=Words(), counts=())
    found = fuse(alone, now=0)
    assert unsquashed(found[1].relevance) == pytest.approx(STRETCH * 0.5, abs=1e-6)


def test_a_scope_of_few_memories_trusts_the_usual_mean_of_the_model():
    found = fuse(pool(said(1, 0, 0), cosines={1: 0.9}, mean=0.9, memories=1), now=0, baseline=0.5)
    mean = (0.9 + 0.5 * PRIOR) / (1 + PRIOR)
    assert found[1].meaning == pytest.approx((0.9 - mean) * STRETCH / (1 - mean))


@pytest.mark.parametrize(("many", "floor"), [(29, 0.0), (30, 0.7), (60, 0.7)])
def test_a_background_is_taken_off_only_where_thirty_candidates_show_one(many, floor):
    found = fuse(pool(*(said(key, 1, 1) for key in range(many))), now=0)
    assert {round(signals.words, 6) for signals in found.values()} == {round(1 - floor, 6)}


@pytest.mark.parametrize(
    ("average", "left"), [(10.0, 0.5), (20.0, 0.5), (30.0, 0.65), (40.0, 0.8), (300.0, 0.8)]
)
def test_a_memory_that_holds_a_part_of_the_question_is_damped_most_among_short_ones(average, left):
    one_word_often, both_words = said(1, 3, 0), said(2, 1, 1)
    found = fuse(pool(one_word_often, both_words, average=average), now=0)
    assert (found[1].coverage, found[2].coverage) == (0.5, 1.0)
    assert found[1].words == pytest.approx(found[1].bm25 / max(found[1].bm25, found[2].bm25) * left)


def test_words_side_by_side_add_their_share():
    apart, together = (fuse(pool(said(1, 1, 1, pair=pair)), now=0)[1] for pair in (False, True))
    assert (apart.pairs, together.pairs) == (0.0, 1.0)
    assert unsquashed(together.relevance) - unsquashed(apart.relevance) == pytest.approx(PAIRS)


def test_the_engines_own_score_stands_where_no_word_is_counted():
    only_prefixes = Words((), ())
    candidates = [candidate(key=key, created_at=LONG_AGO, source=key) for key in (1, 2, 3)]
    found = fuse(pool(*candidates, words=only_prefixes, counts=(), found={1: 4.0, 2: 2.0}), now=0)
    assert [found[key].words for key in (1, 2, 3)] == [1.0, 0.5, 0.0]


def test_a_named_entity_adds_what_it_was_worth():
    found = fuse(pool(said(1, 1, 1), said(2, 1, 1), boosts={1: 0.04}), now=0)
    assert unsquashed(found[1].relevance) - unsquashed(found[2].relevance) == pytest.approx(0.04)
    assert found[1].named == 0.04


NEIGHBOURS = {
    "the next passage of the same source": ([(1, 0), (1, 1), (2, 0)], {1}),
    "the one before": ([(1, 1), (1, 0), (2, 0)], {1}),
    "two away, by half": ([(1, 0), (1, 2), (2, 1)], {1}),
    "three away": ([(1, 0), (1, 3), (2, 1)], set()),
    "another source": ([(1, 0), (2, 1), (3, 1)], set()),
    "told memories, which share one source without an order": ([(1, 0)] * 3, set()),
    "a place that two claim": ([(1, 0), (1, 0), (1, 1)], set()),
}


@pytest.mark.parametrize(("places", "lifted"), NEIGHBOURS.values(), ids=NEIGHBOURS)
def test_neighbours_lift_only_ordered_passages_of_the_same_source(places, lifted):
    candidates = [candidate(key=0, source=source, position=at) for source, at in places]
    lift = lift_neighbours(candidates, [0.9, 0.1, 0.1])
    assert {at for at, value in enumerate(lift) if value > 0} == lifted


def test_a_neighbour_lifts_by_how_far_it_stands_above_the_middle():
    candidates = [candidate(key=at, source=1, position=at) for at in range(5)]
    lift = lift_neighbours(candidates, [1.0, 0.2, 0.2, 0.2, 0.2])
    assert lift == pytest.approx([0.0, NEIGHBOUR * 0.8, NEIGHBOUR * 0.4, 0.0, 0.0])
    assert lift_neighbours([], []) == []


def test_rank_fusion_knows_no_neighbours_and_no_time():
    turns = [
        said(1, 1, 1, source=1, position=0, created_at=0.0),
        said(2, 0, 1, source=1, position=1),
        said(3, 0, 0, source=1, position=9),
    ]
    adaptive, ranks = (fuse(pool(*turns), now=0, method=method) for method in ("adaptive", "rrf"))
    assert adaptive[2].neighbours > 0 and adaptive[1].recent == RECENT
    assert ranks[2].neighbours == 0 and ranks[1].recent == 0


@pytest.mark.parametrize(
    ("age", "left"), [(0, 1.0), (-SKEW / 2, 1.0), (FADE, 1 / math.e), (100 * FADE, 0.0)]
)
def test_recency_fades(age, left):
    one = said(1, 1, 1, created_at=-age)
    told, spoken = (fuse(pool(one._replace(span=span)), now=0)[1].recent for span in (None, "s"))
    assert told == pytest.approx(RECENT * left, abs=1e-4)
    assert spoken == pytest.approx(RECENT * left + (TODAY if age <= 0 else 0), abs=1e-3)


def test_what_was_said_after_the_question_was_asked_is_not_what_it_asks_about():
    later = {"created_at": 2 * SKEW}
    found = fuse(pool(said(1, 1, 1, **later), said(2, 1, 1, span="s", **later)), now=0)
    assert (found[1].recent, found[2].recent) == (0.0, -LATER)


def test_turns_that_follow_each_other_are_a_conversation_though_no_topic_was_found():
    def recent(*candidates):
        return [one.recent for one in fuse(pool(*candidates), now=0).values()]

    turns = [
        said(key, 1, 1, kind="context", source=7, position=key - 1, created_at=0.0)
        for key in (1, 2)
    ]
    assert recent(*turns) == pytest.approx([RECENT + TODAY] * 2)
    assert recent(turns[0]) == pytest.approx([RECENT])
    assert recent(*(one._replace(kind="fact") for one in turns)) == pytest.approx([RECENT] * 2)


def test_reciprocal_ranks_give_the_numbers_of_the_worked_example():
    auth, postgres, login = said(1, 2, 1), said(2, 0, 0), said(3, 1, 0)
    three = pool(auth, postgres, login, cosines={1: 0.85, 2: 0.62, 3: 0.55}, mean=0.3)
    found = fuse(three, now=0, method="rrf", gate=0.6)
    assert [round(found[key].relevance, 3) for key in (1, 3, 2)] == [1.000, 0.984, 0.620]
    assert found[3].cosine is None


def test_reciprocal_ranks_in_both_lists_are_added():
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


@settings(deadline=None, derandomize=True)
@given(some.lists(some.floats(-5, 5), min_size=2, max_size=20))
def test_squash_keeps_the_order_and_stays_between_nothing_and_one(values):
    squashed = [squash(value) for value in sorted(values)]
    assert squashed == sorted(squashed)
    assert all(0 < value < 1 for value in squashed)


@some.composite
def pools(draw):
    size = draw(some.integers(1, 40))
    count, place = some.integers(0, 5), some.tuples(some.integers(1, 3), some.integers(0, 9))
    candidates = []
    for key in range(size):
        one = said(key, draw(count), draw(count), pair=draw(some.booleans()))
        source, position = draw(place)
        length, created = draw(some.integers(1, 300)), draw(some.floats(0, 1e8))
        one = one._replace(source=source, position=position, length=length, created_at=created)
        candidates.append(one)
    cosines = {key: draw(some.floats(-1, 1)) for key in range(size) if draw(some.booleans())}
    boosts = {key: 0.02 for key in range(size) if draw(some.booleans())}
    mean = draw(some.one_of(some.none(), some.floats(-0.5, 0.9)))
    made = pool(*candidates, cosines=cosines, mean=mean, boosts=boosts)
    return made, draw(some.permutations(candidates))


@settings(deadline=None, derandomize=True)
@given(case=pools())
def test_the_order_of_candidates_changes_nothing(case):
    first, shuffled = case
    one = fuse(first, 1e8)
    other = fuse(first._replace(candidates=shuffled), 1e8)
    assert other == one
    assert all(0 < signals.relevance < 1 for signals in one.values())
