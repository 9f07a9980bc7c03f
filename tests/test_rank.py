"""Features into one sort key: profiles, doubt, jitter, tiers, and that no stage reorders after the ranker."""

import math
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from ranking import NOW, candidate, describe_pool, make_pool, matching

from bethink import plugins
from bethink.embed.hashing import HashingEmbedder
from bethink.errors import InvalidInput
from bethink.hooks.matching import PROMPT
from bethink.hooks.prompt import choose
from bethink.hooks.state import Hook
from bethink.model import TRUST, Passage, Source
from bethink.recall.features import choose_signals, list_features, measure_use, yield_to_statements
from bethink.recall.rank import PROFILES, find_key, find_profile, rank
from bethink.recall.signals import Signal, per_memory

INTENTS = {
    "continuity": (0.3, 0.5, 0.2, 0.02),
    "fact_check": (0.6, 0.1, 0.3, 0.02),
    "frequent": (0.2, 0.2, 0.6, 0.02),
    "associative": (0.7, 0.1, 0.2, 0.05),
    "explore": (0.4, 0.3, 0.3, 0.15),
}


def score(one, relevance, name, chance=0.0):
    """The score of one candidate alone."""
    profile = PROFILES[name]
    features = {"relevance": relevance, "confidence": one.confidence, "chance": chance}
    return find_key(features | measure_use(one, profile, NOW), profile).score


# Profiles


@pytest.mark.parametrize("name", PROFILES)
def test_the_shares_of_a_profile_add_up_to_one(name):
    assert math.isclose(sum(PROFILES[name][:5]), 1)


@pytest.mark.parametrize("name", INTENTS)
def test_an_intent_has_the_weights_of_its_design(name):
    intent = PROFILES[name]
    weights = (intent.relevance, intent.recency, intent.utility, intent.jitter)
    assert weights == INTENTS[name]


def test_custom_weights_are_brought_to_a_sum_of_one():
    custom = find_profile("relevance=0.9 importance=0.6 jitter=0.1")
    assert custom[:6] == pytest.approx((0.6, 0, 0, 0.4, 0, 0.1))


@pytest.mark.parametrize(
    ("profile", "fading"),
    [
        pytest.param(("recency=1",), "days", id="bare-weights"),
        pytest.param(("continuity", ["continuity recency=1"]), "hours", id="a-built-in-name"),
    ],
)
def test_a_custom_profile_fades_like_the_built_in_one_of_its_name(profile, fading):
    assert find_profile(*profile).fading == fading


@pytest.mark.parametrize(
    "text", ["jitter=0.1", "relevance=2", "relevance=", "size=1", "relevance=nan"]
)
def test_weights_that_are_none_are_refused(text):
    with pytest.raises(InvalidInput, match="expected"):
        find_profile(text)


@pytest.mark.parametrize(
    ("hours", "recency"), [(0, 1.0), (1, 0.995), (100, 0.6058), (138.28, 0.5), (-5, 1.0)]
)
def test_recency_fades_by_the_hour_since_the_last_use(hours, recency):
    parts = measure_use(candidate(hours, created_at=0.0), PROFILES["continuity"], NOW)
    assert parts["recency"] == pytest.approx(recency, abs=1e-4)


@pytest.mark.parametrize(
    ("votes", "uses", "utility"),
    [
        (0, 0, 0.5),
        (5, 0, 0.7311),
        (5, 1, 0.7575),
        (-5, 0, 0.2689),
        (0, 99, 0.7153),
        (10, 1, 0.8946),
    ],
)
def test_utility_is_a_sigmoid_of_votes_plus_the_logarithm_of_uses(votes, uses, utility):
    one = candidate(usefulness=votes, access_count=uses)
    parts = measure_use(one, PROFILES["frequent"], NOW)
    assert parts["utility"] == pytest.approx(utility, abs=1e-4)


@pytest.mark.parametrize(
    ("importance", "days", "uses", "expected"),
    [
        pytest.param(10, 0, 99, 0.2 + 0.2 + 0.3 + 0.1, id="important-and-used"),
        pytest.param(5, 30, 9, 0.2 + 0.2 / math.e + 0.15 + 0.05, id="a-month-old"),
        pytest.param(0, 90, 0, 0.2 + 0.2 / math.e**3, id="three-months-old"),
        pytest.param(8, 0, 10_000, 0.2 + 0.2 + 0.24 + 0.1, id="used-very-often"),
    ],
)
def test_the_balanced_profile_weighs_importance_and_fades_over_thirty_days(
    importance, days, uses, expected
):
    one = candidate(hours=24 * days, importance=importance, access_count=uses)
    assert score(one, 0.5, "balanced") == pytest.approx(expected)


@pytest.mark.parametrize("name", INTENTS)
def test_an_intent_adds_its_parts_by_weight(name):
    one = candidate(hours=100, usefulness=5, access_count=1)
    relevance, recency, utility, _ = INTENTS[name]
    useful = 1 / (1 + math.exp(-(5 + math.log(2)) / 5))
    expected = relevance * 0.8 + recency * 0.995**100 + utility * useful
    assert score(one, 0.8, name) == pytest.approx(expected)


@pytest.mark.parametrize("name", INTENTS)
def test_jitter_stays_within_its_share(name):
    jitter = INTENTS[name][3]
    one = matching(1, 1, 1)
    shaken = []
    for seed in range(300):
        ((_, features),), profile = describe_pool(make_pool(one), name, seed=seed)
        still = find_key({**features, "chance": 0.0}, profile).score
        shaken.append(find_key(features, profile).score / still)
    assert 1 - jitter <= min(shaken) < 1 - 0.9 * jitter
    assert 1 + 0.9 * jitter < max(shaken) <= 1 + jitter


@pytest.mark.parametrize(("confidence", "kept"), [(1.0, 1.0), (0.5, 0.95), (0.0, 0.9)])
def test_what_is_doubted_loses_up_to_a_tenth(confidence, kept):
    doubted = score(candidate(confidence=confidence), 0.6, "relevance")
    assert doubted == pytest.approx(0.6 * kept)


@settings(max_examples=50)
@given(
    some.sampled_from(sorted(PROFILES)),
    some.floats(0, 1),
    some.tuples(some.floats(-100, 1e6), some.floats(-1000, 1000), some.integers(0, 10**9)),
    some.tuples(some.floats(0, 10), some.floats(0, 1)),
)
def test_a_score_without_jitter_stays_from_0_to_1(name, relevance, use, worth):
    (hours, votes, uses), (importance, confidence) = use, worth
    one = candidate(hours, usefulness=votes, access_count=uses)
    one = one._replace(importance=importance, confidence=confidence)
    assert 0 <= score(one, relevance, name) <= 1 + 1e-9


# Comparing candidates


@pytest.mark.parametrize(
    ("held", "fit", "yields"),
    [
        pytest.param((1, 1), 0.6, True, id="both-hold-the-question"),
        pytest.param((1, 1), 0.9, False, id="the-document-fits-much-better"),
        pytest.param((0, 0), 0.6, False, id="the-statement-is-about-something-else"),
    ],
)
def test_a_document_yields_to_a_statement_of_the_user_that_fits_nearly_as_well(held, fit, yields):
    own = candidate(frequencies=held)
    read = candidate(key=2, kind="document", trust=TRUST["import"], frequencies=(1, 1))
    lowered = dict(yield_to_statements([own, read], [0.5, fit]))
    assert (lowered.get(1, fit) < 0.5) == yields


def test_a_higher_tier_comes_before_a_better_score():
    low = {"tier": 2, "relevance": 0.9}
    high = {"tier": 4, "relevance": 0.4}
    ranked = rank([("low", low), ("high", high)], PROFILES["relevance"])
    assert [one.item for one in ranked] == ["high", "low"]


def test_a_lift_puts_one_candidate_before_another():
    first = {"relevance": 0.6}
    newer = {"relevance": 0.4, "newer": 0.2001}
    ranked = rank([("first", first), ("newer", newer)], PROFILES["relevance"])
    assert [one.item for one in ranked] == ["newer", "first"]


# Through the front door

QUESTIONS = (
    "which database does the orders service use?",
    "what did we decide about the database of the orders service?",
    "where do orders go?",
    "postgres orders",
)


@pytest.fixture
def orders(open_memory):
    """Notes, turns, code and a document about one thing; some amend, contradict or answer others."""
    memory = open_memory(embedder=HashingEmbedder())
    texts = [
        ("The orders service uses MySQL", "decision"),
        ("Which database should the orders service use?", "question"),
        ("The orders service has a cache", "fact"),
        ("Orders are exported to the warehouse every night", "fact"),
        ("The database of the orders service is backed up", "gotcha"),
    ]
    memory.add_many([Passage(text, kind) for text, kind in texts], dedup=False)
    old, question, *_ = (one.id for one in memory.list(order="oldest"))
    clock = memory.clock() + timedelta(hours=1)
    memory.clock = lambda: clock
    new = memory.add("The database that orders use from now on is Postgres", dedup=False).id
    memory.link(new, old, "may_replace")
    memory.link(new, question, "relates_to")
    code = [Passage("def orders_service(): use_database('orders')", "code")]
    page = [Passage("The orders service uses a database called Oracle", "document")]
    memory.ingest([(Source("orders.py", "code"), code), (Source("README.md", "markdown"), page)])
    return memory


def explained_keys(answer):
    return [(hit.why["tier"], hit.score) for hit in answer.hits]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword"])
def test_hits_are_in_the_order_of_their_explained_keys(orders, question, mode):
    keys = explained_keys(orders.search(question, mode=mode))
    assert len(keys) > 1
    assert keys == sorted(keys, reverse=True)


@pytest.mark.parametrize("profile", ["balanced", "continuity", "recency=1"])
def test_hits_of_a_profile_are_in_the_order_of_their_explained_keys(orders, profile):
    keys = explained_keys(orders.search(QUESTIONS[0], profile=profile, seed=1))
    assert keys == sorted(keys, reverse=True)


def test_a_newer_statement_says_that_it_was_raised(orders):
    hits = {hit.memory.content: hit for hit in orders.search(QUESTIONS[0]).hits}
    old = hits["The orders service uses MySQL"]
    new = hits["The database that orders use from now on is Postgres"]
    assert new.why["newer"] > 0
    assert new.score > old.score


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_shown_feature_is_declared(orders, question):
    shown = {name for hit in orders.search(question, profile="balanced").hits for name in hit.why}
    assert shown <= list_features(()).keys()


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_score_follows_from_the_explained_features(orders, question):
    hits = orders.search(question).hits
    keys = [find_key(dict(hit.why), PROFILES["relevance"]) for hit in hits]
    assert [key.tier for key in keys] == [hit.why["tier"] for hit in hits]
    assert [key.score for key in keys] == pytest.approx([hit.score for hit in hits], abs=5e-4)


# Signals of plugins


@pytest.fixture
def pinned(monkeypatch):
    """A signal for pinned memories, registered as a plugin would."""
    registry = plugins.SIGNALS
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(registry, "_loaded", {})
    measure = per_memory(lambda memory, query: "pinned" in memory.tags)
    signal = Signal("pinned", "tagged as pinned", 0.5, measure)
    plugins.register_signal(signal)
    return signal


def test_a_registered_signal_counts_in_a_search(open_memory, pinned):
    memory = open_memory(embedder=HashingEmbedder())
    memory.add("The orders service keeps its carts in Redis", dedup=False)
    wanted = memory.add("The orders service keeps carts for a day", tags=["pinned"], dedup=False)
    first, second = memory.search("orders service keeps its carts in Redis").hits
    assert first.memory.id == wanted.id
    assert (first.why["pinned"], "pinned" in second.why) == (1.0, False)


def test_a_registered_signal_is_explained_with_its_weight(cli, pinned):
    cli.ok("add", "Carts are kept in Redis", "--tag", "pinned")
    shown = cli.ok("search", "carts in Redis", "--explain", "--mode", "keyword")
    assert "pinned 1.000 × 0.5: tagged as pinned" in shown


def test_a_signal_with_the_name_of_a_feature_is_refused(pinned):
    with pytest.raises(InvalidInput, match="has the name of a feature"):
        choose_signals("adaptive", [pinned._replace(name="words")])


def test_explain_prints_every_feature_of_a_hit(cli):
    cli.ok("add", "Carts are kept in Redis")
    (hit,) = cli.json("search", "carts in Redis", "--explain", "--mode", "keyword")
    shown = cli.ok("search", "carts in Redis", "--explain", "--mode", "keyword")
    printed = {line.split()[0] for line in shown.splitlines() if ": " in line}
    assert f"key: tier {hit['why'].pop('tier')} (" in shown
    assert hit["why"].keys() <= printed


# Prompts


def test_memories_for_a_prompt_are_in_the_order_of_their_keys(open_memory):
    memory = open_memory()
    texts = [
        "The Valkey cluster has three replicas",
        "A replica of the Valkey cluster is in Oslo",
        "The Valkey cluster is restarted on Mondays",
    ]
    memory.add_many([Passage(text, "fact") for text in texts], dedup=False)
    hook = Hook("prompt", "claude", prompt="replica of the Valkey cluster in Oslo")
    chosen, _ = choose(hook, memory, hook.prompt, meaning=False, bar=0.1)
    keys = [one.key for one in chosen]
    assert len(keys) > 1
    assert keys == sorted(keys, reverse=True)
    assert keys == [find_key(dict(one.features), PROMPT) for one in chosen]
