"""Recall, the recipe: question → query → candidates → fuse → score → expand → Answer. Nothing here writes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from recollect.embed.base import Embedder
from recollect.recall.candidates import gather
from recollect.recall.expand import expand
from recollect.recall.fuse import Signals, fuse
from recollect.recall.query import parse
from recollect.recall.score import PROFILES, score
from recollect.store.base import Store
from recollect.types import Answer, Filter, Hit, Query

# A question that names a time or a kind prefers such memories without shutting the others out: "problems with the cache"
# may be answered by a decision. Set by hand; the sets in bench/ hold too few such questions to tune on.
IN_TIME = 1.25
OF_KIND = 1.25


@dataclass(frozen=True, slots=True)
class Ask:
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
    hints: tuple[str, ...] = field(default=())


def recall(question: str, ask: Ask, store: Store, embedder: Embedder | None, now: datetime, rng: random.Random) -> Answer:
    query = parse(question, now)
    filter = _narrowed(ask.filter, query)
    vector = _vector(query, embedder) if ask.mode != "keyword" else (lambda: None)
    pool = gather(query, store, filter, vector, embedder.model if embedder else None, ask.mode, ask.limit + ask.offset)
    signals = fuse(pool, now.timestamp(), ask.fusion, ask.gate, embedder.baseline if embedder else 0.0)
    profile = PROFILES[ask.profile]
    ranked = []
    for candidate in pool.candidates:
        relevance = signals[candidate.key].relevance
        if (query.since or query.until) and _within(candidate.created_at, query):
            relevance = min(1.0, relevance * IN_TIME)
        if candidate.kind in query.kinds:
            relevance = min(1.0, relevance * OF_KIND)
        parts = score(candidate, relevance, profile, now.timestamp(), rng)
        if parts["score"] >= ask.threshold:
            ranked.append((parts, candidate))
    ranked.sort(key=lambda item: (-item[0]["score"], -item[1].created_at, item[1].key))
    chosen = ranked[ask.offset : ask.offset + ask.limit]
    memories = store.load([candidate.key for _, candidate in chosen])
    hits = [
        Hit(memories[candidate.key], parts["score"], _why(parts, signals[candidate.key]))
        for parts, candidate in chosen
        if candidate.key in memories
    ]
    expanded = expand(hits, store, filter.scopes, filter.include_deleted) if ask.related else tuple(hits)
    return Answer(query, expanded, len(ranked), ask.mode, ask.profile, ask.hints)


def _narrowed(filter: Filter, query: Query) -> Filter:
    """What the question itself demands, where the caller did not say otherwise: "open questions" means only those."""
    if query.answered is None and not query.entities:
        return filter
    return replace(
        filter,
        kinds=filter.kinds or (query.kinds if query.answered is not None else ()),
        answered=filter.answered if filter.answered is not None else query.answered,
        entities=filter.entities or query.entities,
    )


def _vector(query: Query, embedder: Embedder | None) -> Callable[[], Any]:
    """Starts embedding the question in another thread; the result is waited for when it is needed."""
    if embedder is None or not query.text.strip():
        return lambda: None
    from concurrent.futures import ThreadPoolExecutor

    executor = ThreadPoolExecutor(1)
    future = executor.submit(embedder.query, query.text)
    executor.shutdown(wait=False)
    return future.result


def _within(created: float, query: Query) -> bool:
    return (query.since is None or created >= query.since.timestamp()) and (query.until is None or created < query.until.timestamp())


def _why(parts: dict[str, float], signals: Signals) -> dict[str, float]:
    """Every signal's part in a score, for `--explain`."""
    why = {name: round(value, 4) for name, value in parts.items() if name != "score"}
    if signals.cosine is not None:
        why["cosine"] = round(signals.cosine, 4)
    for name, value in signals._asdict().items():
        if name not in ("cosine", "relevance") and value:
            why[name] = round(value, 4)
    return why
