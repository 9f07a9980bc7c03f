"""Signals on pools made by hand: what each measures, and how they become relevance."""

import math
import random

import pytest
from ranking import candidate, fuse, make_pool, matching

from bethink.model import Words
from bethink.recall import signals
from bethink.recall.rank import PROFILES, find_relevance
from bethink.recall.signals import (
    CLOCK_SKEW,
    FADE_WEEKS,
    LATER_LOSS,
    NEIGHBOUR_WEIGHT,
    PRIOR_MEMORIES,
    RECENT_HOURS,
    RECENT_TIE,
    RECENT_WEEKS,
    STRETCH,
)
from bethink.store.base import Statistics

ONLY_PREFIXES = {"words": Words((), ()), "counts": ()}


def evidence(features):
    """The sum behind a relevance."""
    relevance = features["relevance"]
    return 0.5 + math.log(relevance / (1 - relevance)) / 3.5


def test_a_rare_word_weighs_more_than_a_common_one():
    statistics = Statistics(1000, 10.0, (1, 100, 5000, 0))
    rare, common, everywhere, unknown = signals.weigh_words(statistics)
    assert unknown > rare > common > everywhere > 0


def test_relevance_keeps_the_order_of_evidence():
    curve = [find_relevance(tenth / 10, PROFILES["relevance"]) for tenth in range(-50, 51)]
    assert curve == sorted(set(curve))
    assert 0 < curve[0] < curve[-1] < 1


def test_without_vectors_words_count_whole():
    found = fuse(make_pool(matching(1, 1, 1), matching(2, 1, 0)))
    assert found[1]["words"] == 1.0
    assert "cosine" not in found[1]
    assert evidence(found[1]) == pytest.approx(1.0)


def test_beside_vectors_words_count_by_their_weight():
    found = fuse(make_pool(matching(1, 1, 1), matching(2, 1, 0), mean=0.2))
    assert evidence(found[1]) == pytest.approx(0.3)


def test_words_side_by_side_add_their_share():
    apart = fuse(make_pool(matching(1, 1, 1)))[1]
    together = fuse(make_pool(matching(1, 1, 1, pair=True)))[1]
    assert (apart["pairs"], together["pairs"]) == (0.0, 1.0)
    assert evidence(together) - evidence(apart) == pytest.approx(signals.PAIRS_SIGNAL.weight)


def test_where_no_word_is_counted_the_score_of_the_full_text_engine_holds():
    candidates = [matching(key)._replace(pairs=()) for key in (1, 2, 3)]
    found = fuse(make_pool(*candidates, found={1: 4.0, 2: 2.0}, **ONLY_PREFIXES))
    assert [found[key]["words"] for key in (1, 2, 3)] == [1.0, 0.5, 0.0]


@pytest.mark.parametrize(
    ("count", "floor"),
    [
        pytest.param(29, 0.0, id="fewer-than-30"),
        pytest.param(30, 0.7, id="30"),
        pytest.param(60, 0.7, id="more-than-30"),
    ],
)
def test_words_are_measured_from_the_thirtieth_best_match(count, floor):
    found = fuse(make_pool(*(matching(key, 1, 1) for key in range(count))))
    assert {round(one["words"], 6) for one in found.values()} == {round(1 - floor, 6)}


@pytest.mark.parametrize(
    ("average", "left"),
    [
        pytest.param(10.0, 0.5, id="short-memories"),
        pytest.param(20.0, 0.5, id="20-words"),
        pytest.param(30.0, 0.65, id="half-way"),
        pytest.param(40.0, 0.8, id="40-words"),
        pytest.param(300.0, 0.8, id="long-memories"),
    ],
)
def test_half_a_question_counts_less_where_memories_are_short(average, left):
    pool = make_pool(matching(1, 3, 0), matching(2, 1, 1), average=average)
    part, whole = fuse(pool).values()
    best = max(part["bm25"], whole["bm25"])
    assert part["words"] == pytest.approx(part["bm25"] / best * left)


@pytest.mark.parametrize(
    ("cosine", "mean", "meaning"),
    [
        pytest.param(0.6, 0.2, 0.5, id="half-way-to-1"),
        pytest.param(0.2, 0.2, 0.0, id="the-mean"),
        pytest.param(1.0, 0.5, 1.0, id="the-same"),
        pytest.param(0.1, 0.2, -0.125, id="below-the-mean"),
    ],
)
def test_meaning_is_measured_from_the_mean_cosine_up_to_one(cosine, mean, meaning):
    pool = make_pool(matching(1, 0, 0), cosines={1: cosine}, mean=mean, memories=10**9)
    found = fuse(pool)[1]
    assert found["meaning"] == pytest.approx(STRETCH * meaning, abs=1e-6)
    assert evidence(found) == pytest.approx(
        signals.MEANING_SIGNAL.weight * found["meaning"], abs=1e-6
    )


def test_without_words_meaning_counts_whole():
    one = matching(1)._replace(pairs=())
    pool = make_pool(one, cosines={1: 0.6}, mean=0.2, memories=10**9, words=Words(), counts=())
    assert evidence(fuse(pool)[1]) == pytest.approx(STRETCH * 0.5, abs=1e-6)


def test_a_scope_of_few_memories_trusts_the_usual_mean_of_the_model():
    pool = make_pool(matching(1, 0, 0), cosines={1: 0.9}, mean=0.9, memories=1, baseline=0.5)
    mean = (0.9 + 0.5 * PRIOR_MEMORIES) / (1 + PRIOR_MEMORIES)
    assert fuse(pool)[1]["meaning"] == pytest.approx((0.9 - mean) * STRETCH / (1 - mean))


@pytest.mark.parametrize(
    ("places", "lifted"),
    [
        pytest.param([(1, 0), (1, 1), (2, 0)], {1}, id="the-next-passage-of-the-source"),
        pytest.param([(1, 1), (1, 0), (2, 0)], {1}, id="the-one-before"),
        pytest.param([(1, 0), (1, 2), (2, 1)], {1}, id="two-away"),
        pytest.param([(1, 0), (1, 3), (2, 1)], set(), id="three-away"),
        pytest.param([(1, 0), (2, 1), (3, 1)], set(), id="another-source"),
        pytest.param([(1, 0)] * 3, set(), id="notes-without-an-order"),
        pytest.param([(1, 0), (1, 0), (1, 1)], set(), id="a-place-that-two-have"),
    ],
)
def test_neighbours_lift_only_ordered_passages_of_the_same_source(places, lifted):
    candidates = [candidate(key=0, source=source, position=at) for source, at in places]
    lift = signals.lift_neighbours(candidates, [0.9, 0.1, 0.1])
    assert {at for at, value in enumerate(lift) if value > 0} == lifted


def test_a_neighbour_lifts_by_how_far_it_is_above_the_median():
    candidates = [candidate(key=at, source=1, position=at) for at in range(5)]
    lift = signals.lift_neighbours(candidates, [1.0, 0.2, 0.2, 0.2, 0.2])
    assert lift == pytest.approx([0.0, NEIGHBOUR_WEIGHT * 0.8, NEIGHBOUR_WEIGHT * 0.4, 0.0, 0.0])


def test_rank_fusion_knows_neither_neighbours_nor_recency():
    first = matching(1, 1, 1, source=1, position=0, created_at=0.0)
    second = matching(2, 0, 1, source=1, position=1)
    pool = make_pool(first, second, matching(3, 0, 0, source=1, position=9))
    adaptive, ranks = fuse(pool), fuse(pool, "rrf")
    assert adaptive[2]["neighbours"] > 0
    assert adaptive[1]["recent"] == RECENT_WEEKS * RECENT_TIE
    assert not {"neighbours", "recent"} & (ranks[1].keys() | ranks[2].keys())


@pytest.mark.parametrize(
    ("age", "note", "turn"),
    [
        pytest.param(0, RECENT_WEEKS, RECENT_WEEKS + RECENT_HOURS, id="now"),
        pytest.param(-CLOCK_SKEW / 2, RECENT_WEEKS, RECENT_WEEKS + RECENT_HOURS, id="clock-skew"),
        pytest.param(FADE_WEEKS, RECENT_WEEKS / math.e, RECENT_WEEKS / math.e, id="three-weeks"),
        pytest.param(100 * FADE_WEEKS, 0, 0, id="long-ago"),
        pytest.param(-2 * CLOCK_SKEW, 0, -LATER_LOSS, id="after-the-question"),
    ],
)
def test_recency_fades_by_weeks_and_in_conversations_by_hours(age, note, turn):
    one = matching(1, 1, 1, created_at=-age)
    found = [fuse(make_pool(one._replace(span=span)))[1]["recent"] for span in (None, "s")]
    assert found == pytest.approx([note, turn], abs=1e-3)


@pytest.mark.parametrize(
    ("kind", "positions", "recent"),
    [
        pytest.param("context", (0, 1), RECENT_WEEKS + RECENT_HOURS, id="turns-in-a-row"),
        pytest.param("context", (0,), RECENT_WEEKS, id="a-single-turn"),
        pytest.param("fact", (0, 1), RECENT_WEEKS, id="notes"),
    ],
)
def test_turns_that_follow_each_other_are_a_conversation(kind, positions, recent):
    turns = [
        matching(at + 1, 1, 1, position=at, kind=kind, source=7, created_at=0.0) for at in positions
    ]
    assert [one["recent"] for one in fuse(make_pool(*turns)).values()] == pytest.approx(
        [recent] * len(positions)
    )


def test_reciprocal_ranks_give_the_numbers_of_the_worked_example():
    auth, postgres, login = matching(1, 2, 1), matching(2, 0, 0), matching(3, 1, 0)
    cosines = {1: 0.85, 2: 0.62, 3: 0.55}
    found = fuse(make_pool(auth, postgres, login, cosines=cosines, mean=0.3, gate=0.6), "rrf")
    assert [round(found[key]["relevance"], 3) for key in (1, 3, 2)] == [1.000, 0.984, 0.620]
    assert "cosine" not in found[3]


def test_reciprocal_ranks_of_both_lists_are_added():
    pool = make_pool(matching(1, 1, 1), matching(2, 1, 0), cosines={1: 0.5, 2: 0.9}, mean=0.1)
    found = fuse(pool, "rrf")
    both = pytest.approx((1 / 60 + 1 / 61) / (2 / 60))
    assert found[1]["relevance"] == found[2]["relevance"] == both


@pytest.mark.parametrize("fusion", ["adaptive", "rrf"])
def test_the_gate_drops_weak_cosines_and_keeps_the_words(fusion):
    weak = make_pool(matching(1, 1, 1), matching(2, 1, 0), cosines={1: 0.3, 2: 0.8}, mean=0.4)
    closed, open_ = fuse(weak._replace(gate=0.6), fusion), fuse(weak, fusion)
    assert "cosine" not in closed[1]
    assert closed[1]["meaning"] == 0.0 > open_[1]["meaning"]
    assert (closed[2]["cosine"], open_[1]["cosine"]) == (0.8, 0.3)
    assert closed[1]["bm25"] == open_[1]["bm25"] > 0


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_candidates_changes_no_signal(seed):
    chance = random.Random(seed)
    candidates = [
        matching(
            key,
            *chance.choices(range(6), k=2),
            pair=chance.random() < 0.5,
            source=chance.randint(1, 3),
            position=chance.randint(0, 9),
            length=chance.randint(1, 300),
            created_at=chance.uniform(0, 1e8),
        )
        for key in range(chance.randint(1, 40))
    ]
    cosines = {one.key: chance.uniform(-1, 1) for one in candidates if chance.random() < 0.5}
    mean = chance.choice([None, chance.uniform(-0.5, 0.9)])
    pool = make_pool(*candidates, cosines=cosines, mean=mean, now=1e8)
    shuffled = tuple(chance.sample(candidates, len(candidates)))
    assert fuse(pool._replace(candidates=shuffled)) == fuse(pool)
