"""Candidates and pools made by hand, for tests of signals and ranking."""

import random
from datetime import UTC, datetime, timedelta

from bethink.model import Candidate, Words
from bethink.recall.features import choose_signals, complete_profile, describe, measure
from bethink.recall.pool import Pool
from bethink.recall.rank import PROFILES
from bethink.store.base import Statistics

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
LONG_AGO = -1e12  # far enough that recency adds nothing
WORDS = Words(("jwt", "login"), (("jwt", "login"),))


def candidate(hours=0.0, **fields):
    at = (NOW - timedelta(hours=hours)).timestamp()
    usual = {
        "key": 1,
        "kind": "fact",
        "importance": 5.0,
        "confidence": 1.0,
        "usefulness": 0.0,
        "access_count": 0,
        "created_at": at,
        "last_accessed": at,
        "trust": 3,
        "source": 1,
        "position": 0,
        "superseded_by": None,
        "span": None,
        "length": 10,
        "frequencies": (),
        "pairs": (),
    }
    return Candidate(**{**usual, **fields})


def matching(key, *frequencies, pair=False, **fields):
    """A candidate that holds the words of the question so often."""
    usual = {"created_at": LONG_AGO, "source": key, "pairs": (pair,)}
    return candidate(key=key, frequencies=frequencies, **{**usual, **fields})


def make_pool(*candidates, cosines=None, mean=None, counts=(10, 10), memories=1000, **more):
    statistics = Statistics(memories, more.pop("average", 10.0), counts, mean)
    words, found = more.pop("words", WORDS), more.pop("found", {})
    return Pool(candidates, words, statistics, found, cosines or {}, **more)


def fuse(pool, fusion="adaptive"):
    """The signals and the relevance of each candidate, by its key."""
    signals = choose_signals(fusion)
    profile = complete_profile(PROFILES["relevance"], pool, signals)
    described = measure(pool, profile, signals)
    return {one.key: features for one, features in zip(pool.candidates, described, strict=True)}


def describe_pool(pool, profile="relevance", signals=(), seed=0):
    """The candidates with all features, and the profile that ranks them."""
    chosen = choose_signals("adaptive", signals)
    complete = complete_profile(PROFILES[profile], pool, chosen)
    described = describe(pool, complete, chosen, frozenset(), NOW, random.Random(seed))
    return described, complete
