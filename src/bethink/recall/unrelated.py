"""Unrelated: noticing that nothing fits a question, and saying so."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bethink.model import OPEN_KINDS, Filter, Query, Strings
from bethink.recall.candidates import narrow_filter
from bethink.recall.rank import Features
from bethink.recall.shape import NONE_OPEN, NOTHING_OPEN
from bethink.store.base import Store

if TYPE_CHECKING:
    from bethink.embed.base import Embedder

# Least nearness of the best hit above that of unrelated texts, and what a covered question adds: .3 % of the answered questions
# of six sets fall below, and 74 % of those that belong to another set (bench/LOG.md, 2026-11-15).
LEAST_NEARNESS, COVERAGE_NEARNESS = 0.235, 0.21
# By words alone: share of the question that the best hit must hold. One of 1,000 answered questions of four sets falls below
# (bench/LOG.md, 2026-11-16).
LEAST_COVERAGE = 0.2
MOST_UNRELATED = 3  # hits shown where nothing fits: 17 of 20 nonsense questions get no more (bench/LOG.md, 2026-11-16)
WHOLE_QUESTION = 0.9999  # a coverage of 1, but for rounding
NOTHING_FITS = "Nothing fits this question well."
FEW_SHOWN = "Nothing fits this question well: only a few of the nearest are shown."


def are_unrelated(hits: Sequence[Features], embedder: "Embedder | None") -> bool:
    """Return True if the best hit is no nearer than unrelated texts, and no hit covers the whole question.

    Without a model: if it has next to no words of the question, and was not found by its topic either.
    """
    covered = [hit.get("coverage", 0.0) for hit in hits]
    if not covered or max(covered) > WHOLE_QUESTION:
        return False
    if embedder is None:
        return max(covered) < LEAST_COVERAGE and not any(hit.get("topic") for hit in hits)
    if not all("cosine" in hit for hit in hits):
        return False
    baseline = embedder.baseline
    nearness = [
        (hit["cosine"] - baseline) / (1 - baseline) + COVERAGE_NEARNESS * share
        for hit, share in zip(hits, covered, strict=True)
    ]
    return max(nearness) < LEAST_NEARNESS


def explain_none_open(query: Query, filter: Filter, store: Store) -> Strings:
    """Return the hint for a question that asks for open items of a kind of which none is open."""
    wanted = narrow_filter(filter, query)
    if store.count(wanted):
        return ()
    if len(query.kinds) == 1 and store.count(wanted._replace(kinds=OPEN_KINDS)):
        return (NONE_OPEN.get(query.kinds[0], NOTHING_OPEN),)
    return (NOTHING_OPEN,)
