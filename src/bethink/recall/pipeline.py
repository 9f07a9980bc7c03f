"""Recall, the recipe: question → query → candidates → features → rank → expand → answer. Nothing here writes."""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink.embed import submit_ahead
from bethink.embed.base import Embedder
from bethink.language.words import STOP_WORDS, WORDS
from bethink.model import OPEN_KINDS, Answer, Candidate, Filter, Hit, Query, Strings
from bethink.recall.candidates import Meaning, Search, apply_syntax, narrow_filter
from bethink.recall.expand import expand
from bethink.recall.features import USUAL, choose_signals, complete_profile, describe
from bethink.recall.period import NOTHING_THEN, list_period
from bethink.recall.query import KNOWN, find_event, parse, see_then
from bethink.recall.rank import PROFILES, Features, Profile, rank
from bethink.recall.shape import NONE_OPEN, NOTHING_OPEN, find_sought, title_code
from bethink.recall.shortlist import (
    DISPUTE_HITS,
    SPARE,
    Shortlist,
    drop_restated,
    is_question,
    lift_newer,
    load_shortlist,
    read_again,
    relate_disputed,
)
from bethink.store.base import Store
from bethink.store.rows import is_narrow
from bethink.store.words import as_words

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from bethink.judge import Judge

# How far the nearest hit must stand out of what the model gives to strangers, and what a covered question adds: .3 % of the answered questions of
# six sets fall below, and 74 % of those that belong to another set (bench/LOG.md, 2026-11-15).
LEAST_NEARNESS, COVERAGE_NEARNESS = 0.235, 0.21
# By words alone: share of the question that the best hit must hold. One of 1,000 answered questions of four sets falls below (bench/LOG.md, 2026-11-16).
LEAST_COVERAGE = 0.2
WHOLE = 0.9999  # 1, but for rounding
MOST_UNRELATED = 3  # hits shown where nothing fits: twelve answered questions of 1,000 are that far away (bench/LOG.md, 2026-11-16)
NOTHING_FITS = "Nothing fits this question well."
FEW_SHOWN = "Nothing fits this question well: only a few of the nearest are shown."
MOST_CONTEXT_WORDS = 40  # of the context that a follow-up takes along; a bound, by hand


class Ask(NamedTuple):
    """Everything about a question but its words."""

    filter: Filter
    mode: str = "hybrid"
    fusion: str = "adaptive"
    profile: str = "relevance"  # its name, or the weights as they were written
    weights: Profile = PROFILES["relevance"]
    limit: int = 10
    offset: int = 0
    gate: float = -1.0
    threshold: float = 0.0
    related: bool = True
    hints: Strings = ()
    hypothesis: str = ""  # a guess at the answer, to look near it too
    context: str = ""  # the conversation before the question
    looking_up: bool = False  # the time of an event, for another question
    sift: bool = False  # leave out most of what does not fit, unless a filter says what does
    rerank: bool = False  # let the judge read the first hits again


def recall(
    question: str,
    ask: Ask,
    store: Store,
    embedder: Embedder | None,
    now: datetime,
    rng: random.Random,
    judge: "Judge | None" = None,
) -> Answer:
    """Answer a question."""
    question = complete_question(question, ask.context)
    reader = judge if ask.rerank and is_question(question) else None
    if reader:  # its model is read from disk while candidates are gathered
        submit_ahead(_workers(), reader.prepare)

    # Query
    embedder = embedder if ask.mode != "keyword" else None
    query = parse(question, now)
    meaning = _start_embedding(query.text, embedder, store, ask.hypothesis)
    if not (query.since or query.until or ask.looking_up):
        query = _date_by_event(question, query, ask, store, embedder, now)
    past = see_then(query, ask.filter, question, now)
    if query.recap and not ask.looking_up:
        listed, total = list_period(query, ask.filter, ask.limit, ask.offset, store)
        if total:
            return Answer(query, tuple(listed), total, ask.mode, ask.profile, ask.hints)
        # A memory may speak of that time that was made at another: "On 25 October the forecast was off".
        ask = ask._replace(mode="keyword", hints=(NOTHING_THEN, *ask.hints))
        embedder, meaning = None, _no_meaning

    # Candidates
    search = Search(
        query,
        store,
        ask.filter,
        meaning,
        by_words=ask.mode != "vector",
        limit=ask.limit,
        now=now.timestamp(),
        gate=ask.gate,
        baseline=embedder.baseline if embedder else 0.0,
    )
    pool, valid_then = search.gather_both(past)

    # Features of every candidate, then those that need texts, of the first ones
    signals = choose_signals(ask.fusion)
    profile = complete_profile(ask.weights, pool, signals)
    described = describe(pool, profile, signals, valid_then, now, rng)
    ranked = drop_restated(rank(described, profile, _newest), ask.threshold)
    if reader:
        read_again(ranked, query, store, reader)
        ranked = rank([one[1:] for one in ranked], profile, _newest)
    # From the first on: a turn that repeats one of an earlier page is left out, and what comes first there stays there.
    window = ranked[: ask.offset + ask.limit + SPARE]
    shortlist = load_shortlist(window, store)
    total = len(ranked) - (len(window) - len(shortlist))
    shortlist, total, hints = _sift(shortlist, total, query, ask, embedder)
    if ask.related and not (valid_then or ask.filter.as_of):  # the question is about the present
        if judge:
            first = max(DISPUTE_HITS, ask.limit)
            disputed = relate_disputed(shortlist[:first], query.text, judge, store, now)
            shortlist = [*disputed, *shortlist[first:]]
        lift_newer(shortlist, store)

    # Rank
    shortlist = rank([one[1:] for one in shortlist], profile, lambda one: _newest(one.candidate))

    # Expand and answer
    hits = _make_hits(shortlist[ask.offset : ask.offset + ask.limit], query)
    if ask.related:
        hits = expand(hits, store, apply_syntax(ask.filter, query))
    if not total and query.answered is False:
        hints = (*_explain_none_open(query, ask.filter, store), *hints)
    return Answer(query, tuple(hits), total, ask.mode, ask.profile, hints, profile.weights)


def _newest(candidate: Candidate) -> tuple[float, int]:
    """Order candidates with the same key."""
    return -candidate.created_at, candidate.key


def _make_hits(shortlist: Shortlist, query: Query) -> list[Hit]:
    sought = find_sought(query)
    return [
        Hit(title_code(one.memory, sought), key.score, explain(features), one.related)
        for key, one, features in shortlist
    ]


def explain(features: Features) -> Features:
    """Return the features that say something, rounded, for `why`."""
    return {
        name: round(value, 4)
        for name, value in features.items()
        if name in ("relevance", "cosine", "tier")
        or (value and value != USUAL.get(name))
        or (name in USUAL and value != USUAL[name])
    }


# Understanding the question


def complete_question(question: str, context: str) -> str:
    """Put the last words of the context before a follow-up that names nothing to look for ("and the other one?")."""
    words = re.findall(r"[\w'’]+", question.lower())
    if not context.strip() or not words or not (STOP_WORDS | WORDS["pointing"]).issuperset(words):
        return question
    return " ".join([*as_words(context).split()[-MOST_CONTEXT_WORDS:], question])


def _date_by_event(
    question: str, query: Query, ask: Ask, store: Store, embedder: Embedder | None, now: datetime
) -> Query:
    """Add the time of the event that a question measures by ("before we moved to Postgres"), if memory knows it."""
    if (event := find_event(question)) is None:
        return query
    side, text = event
    look = Ask(ask.filter, ask.mode, ask.fusion, limit=1, gate=ask.gate, threshold=KNOWN)
    look = look._replace(related=False, looking_up=True)
    hits = recall(text, look, store, embedder, now, random.Random(0)).hits
    known: list[Any] = [hit.memory.valid_from or hit.memory.created_at for hit in hits]
    return query._replace(**{side: known[0]}) if known else query


def _no_meaning() -> Meaning | None:
    return None


def _start_embedding(
    text: str, embedder: Embedder | None, store: Store, hypothesis: str
) -> Callable[[], Meaning | None]:
    """Start embedding a question in another thread; calling the result waits for it.

    With a hypothesis of the answer the vector is half way between the two."""
    if embedder is None or not text.strip():
        return _no_meaning
    model = embedder.model
    vector = submit_ahead(_workers(), lambda: store.embed_question(text, embedder)).result
    if not hypothesis:
        return lambda: (vector(), model)
    import numpy as np

    supposed = embedder.documents([hypothesis])[0].mean(axis=0)

    def blend() -> Meaning:
        middle = np.asarray(vector()) + supposed / (np.linalg.norm(supposed) or 1.0)
        return middle / (np.linalg.norm(middle) or 1.0), model

    return blend


@cache
def _workers() -> "Executor":
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(4, thread_name_prefix="bethink-question")


# Knowing when nothing fits


def _sift(
    shortlist: Shortlist, total: int, query: Query, ask: Ask, embedder: Embedder | None
) -> tuple[Shortlist, int, Strings]:
    """Return the hits to show, the number of all, and hints. Where nothing fits, only the nearest few are left.

    Without a model they must hold a word of the question. By meaning none is left out for its words: a quarter of short statements that are asked
    for in other words are as far away as strangers. A search that is narrowed, or says what an answer looks like, gets all."""
    narrowed = query.strict or query.kinds or query.entities
    first = [one.features for one in shortlist[: ask.limit]]
    if narrowed or not _is_unrelated(first, embedder):
        return shortlist, total, ask.hints
    if not ask.sift or ask.mode == "vector" or ask.hypothesis or is_narrow(ask.filter):
        return shortlist, total, (NOTHING_FITS, *ask.hints)
    few = [one for one in shortlist if embedder or one.features.get("coverage")][:MOST_UNRELATED]
    return few, len(few), (FEW_SHOWN, *ask.hints)


def _is_unrelated(hits: Sequence[Mapping[str, float]], embedder: Embedder | None) -> bool:
    """Return True if even the best hit is no nearer to the question than strangers are, and none holds all its words.

    Without a model: if it holds next to nothing of the question, and is not there for its topic either."""
    if any(hit.get("coverage", 0.0) > WHOLE for hit in hits):
        return False
    if embedder is None:
        covered = [hit.get("coverage", 0.0) for hit in hits]
        by_topic = any(hit.get("topic") for hit in hits)
        return bool(covered) and max(covered) < LEAST_COVERAGE and not by_topic
    baseline = embedder.baseline
    near = [
        (hit["cosine"] - baseline) / (1 - baseline) + COVERAGE_NEARNESS * hit.get("coverage", 0.0)
        for hit in hits
        if "cosine" in hit
    ]
    return len(near) == len(hits) > 0 and max(near) < LEAST_NEARNESS


def _explain_none_open(query: Query, filter: Filter, store: Store) -> Strings:
    """Return the hint for a question that asks for open items of a kind of which none is open."""
    wanted = narrow_filter(filter, query)
    if store.count(wanted):
        return ()
    if len(query.kinds) == 1 and store.count(wanted._replace(kinds=OPEN_KINDS)):
        return (NONE_OPEN.get(query.kinds[0], NOTHING_OPEN),)
    return (NOTHING_OPEN,)
