"""Recall, the recipe: question → query → candidates → fuse → score → expand → Answer. Nothing here writes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink.embed.base import Embedder
from bethink.embed.beside import started
from bethink.recall.anchor import KNOWN, Event, event, placed
from bethink.recall.candidates import gather
from bethink.recall.expand import expand, put_newer_first
from bethink.recall.fuse import Signals, fuse
from bethink.recall.query import parse
from bethink.recall.score import score, weighed
from bethink.store.base import Store
from bethink.types import ASKED_IMPORTANCE, IDEAS, Answer, Candidate, Filter, Hit, Query, turn_of

if TYPE_CHECKING:
    from concurrent.futures import Executor

# A question that names a time or a kind prefers such memories without shutting the others out: "problems with the cache"
# may be answered by a decision. Set by hand; the sets in bench/ hold too few such questions to tune on.
IN_TIME = 1.25
OF_KIND = 1.25
# A question resembles other questions more than its answer. And of a conversation, what came out of it counts before what was
# said. Set by hand on stories of a few sessions.
ASKED, SAID = 0.8, 0.88
MORE = 1.2  # how much better a turn must fit than an idea that was taken from it, to stand in its place
# How far the nearest hit must stand out of what the model gives to strangers, and what it counts that it holds the question's words:
# .3 % of the answered questions of six sets fall below, and 74 % of those that belong to another set (bench/LOG.md, 2026-11-15).
FITS, HELD = 0.235, 0.21
STRANGE = "Nothing fits this question well; what is shown is only the nearest."
PLAIN, SYNTAX = (
    400,
    '"“”:()*@-^',
)  # what may change the text that is embedded: a guess, checked against the analysis


class Ask(NamedTuple):
    """How a question is to be answered."""

    filter: Filter
    mode: str = "hybrid"
    fusion: str = "adaptive"
    profile: str = "relevance"
    limit: int = 10
    offset: int = 0
    gate: float = -1.0
    threshold: float = 0.0
    related: bool = True
    hints: tuple[str, ...] = ()
    hypothesis: str = ""  # what an answer might say, to look near it too
    looking_up: bool = False  # the time of an event, for another question


def recall(
    question: str,
    ask: Ask,
    store: Store,
    embedder: Embedder | None,
    now: datetime,
    rng: random.Random,
) -> Answer:
    asked = embedder if ask.mode != "keyword" else None
    # A plain question is embedded as it stands, so the model can start before the question has been analysed.
    plain = (
        " ".join(question.split())
        if len(question) < PLAIN and not any(mark in question for mark in SYNTAX)
        else ""
    )
    early = _vector(plain, asked)
    query = parse(question, now)
    query, then = placed(
        query, ask.filter, question, now, _told_time(question, query, ask, store, embedder, now)
    )
    filter = _narrowed(then, query)
    vector = early if query.text == plain else _vector(query.text, asked)
    if ask.hypothesis and asked:
        vector = _between(vector, ask.hypothesis, asked)
    model = embedder.model if embedder else None
    pool = gather(query, store, filter, vector, model, ask.mode, ask.limit + ask.offset)
    if not pool.candidates and (query.entities or query.kinds_meant or then is not ask.filter):
        # Nothing is known of that name: `@property` in a question about code was no mention of a person. Nor of that time or kind.
        filter = _narrowed(ask.filter, query._replace(entities=(), kinds_meant=False))
        pool = gather(query, store, filter, vector, model, ask.mode, ask.limit + ask.offset)
    signals = fuse(
        pool, now.timestamp(), ask.fusion, ask.gate, embedder.baseline if embedder else 0.0
    )
    relevance = signals.relevance
    if (
        query.since
        or query.until
        or query.kinds
        or any(one.span or one.kind == "question" for one in pool.candidates)
    ):
        relevance = [
            min(1.0, value * _preferred(one, query))
            for value, one in zip(relevance, pool.candidates, strict=True)
        ]
    scored = score(pool.candidates, relevance, ask.profile, now, rng)
    found = _said_once(pool.candidates, scored)
    good = sorted((value for value, _ in found if value >= ask.threshold), reverse=True)
    last = good[min(len(good), ask.offset + ask.limit) - 1] if good and ask.limit else math.inf
    ranked = [(value, candidate) for value, candidate in found if value >= last]
    ranked.sort(key=lambda item: (-item[0], -item[1].created_at, item[1].key))
    chosen = ranked[ask.offset : ask.offset + ask.limit]
    memories = store.load([candidate.key for _, candidate in chosen])
    hits = [
        Hit(
            memories[candidate.key],
            value,
            _why(candidate, signals[candidate.key], query, ask.profile, now),
        )
        for value, candidate in chosen
        if candidate.key in memories
    ]
    expanded = tuple(hits)
    if ask.related:
        expanded = expand(hits, store, filter.scopes, filter.include_deleted)
        if filter.as_of is None:
            expanded = put_newer_first(expanded, ask.limit)
    strange = (
        asked is not None
        and not ask.offset
        and not query.strict
        and not query.kinds
        and _strange(hits, asked.baseline)
    )
    return Answer(
        query,
        expanded,
        len(good),
        ask.mode,
        ask.profile,
        (*((STRANGE,) if strange else ()), *ask.hints),
    )


def _told_time(
    question: str, query: Query, ask: Ask, store: Store, embedder: Embedder | None, now: datetime
) -> tuple[Event, datetime] | None:
    """When the event happened that a question measures its time by ("before we moved to Postgres"), if memory knows it."""
    asked = event(question) if not query.since and not query.until and not ask.looking_up else None
    if asked is None:
        return None
    look = ask._replace(
        limit=1, offset=0, threshold=KNOWN, profile="relevance", related=False, looking_up=True
    )
    hits = recall(asked.text, look, store, embedder, now, random.Random(0)).hits
    return (asked, hits[0].memory.valid_from or hits[0].memory.created_at) if hits else None


def _said_once(
    candidates: Sequence[Candidate], scored: Sequence[float]
) -> list[tuple[float, Candidate]]:
    """An idea stands in the turn it was taken from. It stands for both, unless the turn fits much better."""
    found = list(zip(scored, candidates, strict=True))
    ideas: dict[tuple[int, int], float] = {}
    for value, candidate in found:
        if candidate.position >= IDEAS:
            place = (candidate.source, turn_of(candidate.position))
            ideas[place] = max(ideas.get(place, 0.0), value)
    if not ideas:
        return found
    turns = {
        (candidate.source, candidate.position): value
        for value, candidate in found
        if candidate.position < IDEAS
    }
    return [
        (value, candidate)
        for value, candidate in found
        if (
            value >= turns.get((candidate.source, turn_of(candidate.position)), 0.0) / MORE
            if candidate.position >= IDEAS
            else value > ideas.get((candidate.source, candidate.position), 0.0) * MORE
        )
    ]


def _preferred(candidate: Candidate, query: Query) -> float:
    """By how much a memory is raised because of the question's own words about time and kind, or lowered because it is a
    question itself, or only what somebody said on the way to an answer."""
    value = 1.0
    if (query.since or query.until) and _within(candidate.created_at, query):
        value = IN_TIME
    if query.kinds and candidate.kind in query.kinds:
        return value * OF_KIND
    if candidate.kind == "context" and candidate.span:
        return value * (SAID if candidate.importance > ASKED_IMPORTANCE else SAID * ASKED)
    return (
        value * ASKED if candidate.kind == "question" and "question" not in query.kinds else value
    )


def _narrowed(filter: Filter, query: Query) -> Filter:
    """What the question itself demands, where the caller did not say otherwise: "open questions" means only those."""
    demanded = query.answered is not None or query.kinds_only or query.kinds_meant
    if not demanded and not query.entities:
        return filter
    return filter._replace(
        kinds=filter.kinds or (query.kinds if demanded else ()),
        answered=filter.answered if filter.answered is not None else query.answered,
        entities=filter.entities or query.entities,
    )


def _vector(text: str, embedder: Embedder | None) -> Callable[[], Any]:
    """Starts embedding a question in another thread; the result is waited for when it is needed."""
    if embedder is None or not text.strip():
        return lambda: None
    return started(_workers(), lambda: embedder.query(text)).result


def _between(vector: Callable[[], Any], hypothesis: str, embedder: Embedder) -> Callable[[], Any]:
    """Half way between the question and what an answer might say."""
    import numpy as np

    supposed = embedder.documents([hypothesis])[0].mean(axis=0)

    def blended() -> Any:
        middle = np.asarray(vector()) + supposed / (np.linalg.norm(supposed) or 1.0)
        return middle / (np.linalg.norm(middle) or 1.0)

    return blended


@cache
def _workers() -> Executor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(4, thread_name_prefix="bethink-question")


def _within(created: float, query: Query) -> bool:
    return (query.since is None or created >= query.since.timestamp()) and (
        query.until is None or created < query.until.timestamp()
    )


def _strange(hits: Sequence[Hit], baseline: float) -> bool:
    """Whether even the best of the hits is no nearer to the question than memories about something else are."""
    near = [
        (hit.why["cosine"] - baseline) / (1 - baseline) + HELD * hit.why.get("coverage", 0.0)
        for hit in hits
        if "cosine" in hit.why
    ]
    return len(near) == len(hits) > 0 and max(near) < FITS


def _why(
    candidate: Candidate, signals: Signals, query: Query, profile: str, now: datetime
) -> dict[str, float]:
    """Every signal's part in a score, for `--explain`."""
    parts = {
        **signals._asdict(),
        **weighed(candidate, profile, now),
        "confidence": candidate.confidence,
    }
    why = {
        name: round(value, 4)
        for name, value in parts.items()
        if value is not None and (value or name in ("relevance", "cosine"))
    }
    preferred = _preferred(candidate, query)
    return {**why, "preferred": preferred} if preferred != 1.0 else why
