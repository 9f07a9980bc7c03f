"""Explain a subject: the statement about it, its reason, what it replaced, and its original turn."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from bethink.api import Bethink
from bethink.errors import BethinkError
from bethink.ingest.sentences import split_sentences
from bethink.ingest.wording import count_shared_words
from bethink.judge import describe_place
from bethink.language.reasons import find_marked_reason, find_reason, list_second_clauses
from bethink.model import Hit, Memory
from bethink.recall.expand import expand
from bethink.recall.unrelated import NOTHING_FITS
from bethink.store.base import looks_like_id

# Kinds that settle something, and others that may contain an implicit choice. Questions and to-dos explain nothing.
SETTLED = ("decision", "preference", "conclusion", "solution")
OTHERS = (
    *("fact", "general", "pattern", "gotcha", "architecture", "component", "domain"),
    *("relationship", "discovery", "problem", "entity"),
)
PASSAGES = ("document",)
_LOOKED = 10  # hits considered; set by hand
CLEARLY = (
    1.15  # factor by which another hit must beat a decision, or one with a reason; set by hand
)
AS_WELL = 0.9  # share of the score from which a newer statement is quoted instead of an older one; set by hand
_NEAR = 2  # turns on either side of a statement that may give the reason; by hand
# Least probability that a second clause is a problem or a gotcha, to count as the reason for the first: finds 12 of 28 reasons,
# with 2 false positives in 35 other clauses (bench/LOG.md, 2026-11-18).
COMPLAINT = 0.4
# Significant words that another note must share with a statement to give its reason. By hand.
REASON_WORDS = 2


class Explanation(NamedTuple):
    decision: Memory
    because: str | None  # the reason, without a connective such as "because"
    because_from: Memory | None  # the memory that gives the reason, if it is another one
    replaced: list[Memory]  # newest first
    may_replace: list[Memory]  # older statements that it perhaps replaced
    newer: list[Memory]  # newer statements that perhaps replaced it
    said: Memory | None  # the turn of a conversation


def _find_by_id(memory: Bethink, subject: str) -> Sequence[Hit]:
    """Return the memory that a subject names by its id, as other commands print it."""
    if not looks_like_id(subject):
        return ()
    with suppress(BethinkError):
        return [Hit(memory.one(subject), 1.0, {})]
    return ()


def explain(memory: Bethink, subject: str) -> Explanation | None:
    """Find the statement that fits a subject best, and its reason; None if nothing fits."""
    hits = _find_by_id(memory, subject) or _find_statements(memory, subject, (*SETTLED, *OTHERS))
    hits = hits or _find_statements(memory, subject, PASSAGES)
    if not hits:
        return None
    related = {hit.memory.id: hit for hit in expand(hits, memory.store, memory.filter())}
    hit = _follow_newer(related[_choose(hits).memory.id], related)
    decision = hit.memory
    around = memory.store.around(decision.id, _NEAR, _NEAR) if decision.session else []
    turns = [one for one in around if one.kind == "context"]
    original = next((one for one in turns if one.lines == decision.lines), None)
    because, because_from = _find_own_reason(memory, decision), None
    if because is None:
        others = [one.memory for one in hits if one.memory.id != decision.id]
        turns.sort(key=lambda turn: turn is not original)
        found = (*_find_reason_elsewhere(decision, subject, others), *_find_near(decision, turns))
        because, because_from = next(iter(found), (None, None))
    return Explanation(
        decision,
        because,
        because_from,
        replaced=_list_older(hit, "supersedes"),
        may_replace=_list_older(hit, "may_replace"),
        newer=_list_newer(hit),
        said=original,
    )


def find_why(memory: Bethink, decision: Memory) -> tuple[str | None, Memory | None]:
    """Find the reason for a statement, in its words or in a turn beside it. Returns that turn."""
    if because := find_reason(decision.content):
        return because, None
    if not decision.session or decision.kind not in SETTLED:
        return None, None
    around = memory.store.around(decision.id, _NEAR, _NEAR)
    turns = [one for one in around if one.kind == "context"]
    turns.sort(key=lambda turn: turn.lines != decision.lines)
    return next(_find_near(decision, turns), (None, None))


def _find_statements(memory: Bethink, subject: str, kinds: Sequence[str]) -> list[Hit]:
    """Find memories of some kinds that fit a subject by their own text, not only by their relations."""
    filter = memory.filter(kinds=tuple(kinds))
    answer = memory.search(subject, filter=filter, limit=_LOOKED, related=False)
    return [] if NOTHING_FITS in answer.hints else list(answer.hits)


def _choose(hits: Sequence[Hit]) -> Hit:
    """Best hit, preferring decisions and statements with a reason unless another is clearly better."""

    def weigh(hit: Hit) -> float:
        decided = CLEARLY if hit.memory.kind == "decision" else 1.0
        reasoned = CLEARLY if find_reason(hit.memory.content) else 1.0
        return hit.score * decided * reasoned

    return max(hits, key=weigh)


def _follow_newer(hit: Hit, hits: Mapping[str, Hit]) -> Hit:
    """Newest hit that perhaps replaced this one and answers as well, or the hit itself.

    A newer one that fits much worse, or lacks a reason where this one has it, is only mentioned: it
    is uncertain whether it replaced anything.
    """

    def answers(one: Memory) -> bool:
        fits = one.id in hits and hits[one.id].score >= hit.score * AS_WELL
        return fits and bool(find_reason(one.content) or not find_reason(hit.memory.content))

    newer = [one for one in _list_newer(hit) if answers(one)]
    return hits[max(newer, key=lambda one: one.created_at).id] if newer else hit


def _find_own_reason(memory: Bethink, decision: Memory) -> str | None:
    """Reason in the statement itself: by its wording, or a second clause that the judge calls a problem."""
    clauses = list_second_clauses(decision.content)
    if (reason := find_reason(decision.content)) or not clauses or memory.judge is None:
        return reason
    readings = memory.judge.read([(describe_place("user"), clause) for clause in clauses])
    complaints = (reading.kinds["problem"] + reading.kinds["gotcha"] for reading in readings)
    pairs = zip(clauses, complaints, strict=True)
    return next((clause for clause, complaint in pairs if complaint >= COMPLAINT), None)


def _find_reason_elsewhere(
    decision: Memory, subject: str, others: Sequence[Memory]
) -> Iterator[tuple[str, Memory]]:
    """Reasons that other notes give for a statement: "The reason we left MySQL was licensing"."""
    for other in others:
        shared = count_shared_words(other.content, decision.content)
        needed = 1 if "reason" in other.content.lower() else REASON_WORDS
        about = count_shared_words(other.content, subject) > 0
        if shared >= needed and about and (reason := find_reason(other.content)):
            yield reason, other


def _find_near(decision: Memory, turns: Sequence[Memory]) -> Iterator[tuple[str, Memory]]:
    """Reasons in the conversation around a statement, from sentences about the same subject."""
    for turn in turns:
        for sentence in split_sentences(turn.content):
            if count_shared_words(sentence, decision.content) and (
                reason := find_marked_reason(sentence)
            ):
                yield reason, turn


def _list_older(hit: Hit, relation_type: str) -> list[Memory]:
    """Older statements with this relation, newest first."""
    at = hit.memory.created_at
    older = [
        other
        for relation, other in hit.related
        if relation.type == relation_type and relation.target == other.id and other.created_at <= at
    ]
    return sorted(older, key=lambda other: other.created_at, reverse=True)


def _list_newer(hit: Hit) -> list[Memory]:
    """Valid newer statements that may have replaced this one, as long as this is undecided."""
    id, at = hit.memory.id, hit.memory.created_at
    newer = [
        other
        for relation, other in hit.related
        if relation.type == "may_replace" and relation.target == id and other.created_at >= at
    ]
    return [other for other in newer if other.superseded_by is None and other.deleted_at is None]
