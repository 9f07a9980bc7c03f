"""Several opinions about relevance into one number, on pools made by hand."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from test_score import candidate

from bethink.recall.score import (
    FADE,
    LATER,
    MEANING,
    NEIGHBOUR,
    PAIRS,
    PRIOR,
    RECENT,
    SKEW,
    STRETCH,
    TODAY,
    Pool,
    fuse,
    lift_neighbours,
    squash,
    word_weights,
)
from bethink.store.base import Statistics
from bethink.types import Words

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
