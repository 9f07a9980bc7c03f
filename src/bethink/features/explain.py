"""Why something is as it is: the statement about a subject, its reason, what it replaced, and the turn in which it was said."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bethink.api import Bethink
from bethink.ingest.sentences import split_sentences
from bethink.ingest.wording import count_shared_words
from bethink.judge import describe_place
from bethink.language.reasons import find_marked_reason, find_reason, list_second_clauses
from bethink.model import Hit, Memory
from bethink.recall.expand import expand
from bethink.recall.unrelated import NOTHING_FITS

# Kinds that settle something, and the others that may hold a choice which nobody called one. A question or a to-do explains nothing.
SETTLED = ("decision", "preference", "conclusion", "solution")
OTHERS = (
    *("fact", "general", "pattern", "gotcha", "architecture", "component", "domain"),
    *("relationship", "discovery", "problem", "entity"),
)
PASSAGES = ("document",)
LOOKED = 10  # hits among which the statement is chosen; set by hand
CLEARLY = 1.15  # how much better another hit must fit to count before a decision, or before one with a reason; set by hand
AS_WELL = 0.9  # share of its score from which on a newer statement is quoted in place of an older one; set by hand
NEAR = 2  # turns on either side of a statement that may say why
# How probably a second clause is a problem or a gotcha to be the reason for the first: of 28 reasons 12 are found so, of 35 other second
# clauses 2 are taken for one (bench/LOG.md, 2026-11-18).
COMPLAINT = 0.4
SHARED = 2  # telling words that another note shares with a statement whose reason it gives


class Explanation(NamedTuple):
    decision: Memory
    because: str | None  # the reason, without a connective such as "because"
    because_from: Memory | None  # the memory that gives the reason, where it is another one
    replaced: list[Memory]  # the newest first
    may_replace: list[Memory]  # older statements that it perhaps replaced
    newer: list[Memory]  # newer statements that perhaps replaced it
    said: Memory | None  # the turn of a conversation


def explain(memory: Bethink, subject: str) -> Explanation | None:
    """The statement that fits a subject best and why it holds; None where nothing fits."""
    hits = _find_statements(memory, subject, (*SETTLED, *OTHERS))
    hits = hits or _find_statements(memory, subject, PASSAGES)
    if not hits:
        return None
    related = {hit.memory.id: hit for hit in expand(hits, memory.store, memory.filter())}
    hit = _follow_newer(related[_choose(hits).memory.id], related)
    decision = hit.memory
    around = memory.store.around(decision.id, NEAR, NEAR) if decision.session else []
    turns = [one for one in around if one.kind == "context"]
    said = next((one for one in turns if one.lines == decision.lines), None)
    because, because_from = _find_own_reason(memory, decision), None
    if because is None:
        others = [one.memory for one in hits if one.memory.id != decision.id]
        turns.sort(key=lambda turn: turn is not said)
        found = (*_find_told_elsewhere(decision, subject, others), *_find_near(decision, turns))
        because, because_from = next(iter(found), (None, None))
    return Explanation(
        decision,
        because,
        because_from,
        replaced=_list_older(hit, "supersedes"),
        may_replace=_list_older(hit, "may_replace"),
        newer=_list_newer(hit),
        said=said,
    )


def _find_statements(memory: Bethink, subject: str, kinds: Sequence[str]) -> list[Hit]:
    """Find memories of some kinds that fit a subject by their own text, not only by their relations."""
    filter = memory.filter(kinds=tuple(kinds))
    answer = memory.search(subject, filter=filter, limit=LOOKED, related=False)
    return [] if NOTHING_FITS in answer.hints else list(answer.hits)


def _choose(hits: Sequence[Hit]) -> Hit:
    """The best of the decisions and of what gives a reason, unless something else fits clearly better."""

    def weigh(hit: Hit) -> float:
        decided = CLEARLY if hit.memory.kind == "decision" else 1.0
        reasoned = CLEARLY if find_reason(hit.memory.content) else 1.0
        return hit.score * decided * reasoned

    return max(hits, key=weigh)


def _follow_newer(hit: Hit, hits: Mapping[str, Hit]) -> Hit:
    """The newest of the hits that perhaps replaced this one and answer as well, or the hit itself. What fits the subject far worse, or
    gives no reason where this one does, is only mentioned: whether it replaced anything is uncertain."""

    def answers(one: Memory) -> bool:
        fits = one.id in hits and hits[one.id].score >= hit.score * AS_WELL
        return fits and bool(find_reason(one.content) or not find_reason(hit.memory.content))

    newer = [one for one in _list_newer(hit) if answers(one)]
    return hits[max(newer, key=lambda one: one.created_at).id] if newer else hit


def _find_own_reason(memory: Bethink, decision: Memory) -> str | None:
    """The reason that a statement gives itself: by its words, or in a second clause that the judge takes for a complaint."""
    clauses = list_second_clauses(decision.content)
    if (reason := find_reason(decision.content)) or not clauses or memory.judge is None:
        return reason
    readings = memory.judge.read([(describe_place("user"), clause) for clause in clauses])
    complaints = (reading.kinds["problem"] + reading.kinds["gotcha"] for reading in readings)
    pairs = zip(clauses, complaints, strict=True)
    return next((clause for clause, complaint in pairs if complaint >= COMPLAINT), None)


def _find_told_elsewhere(
    decision: Memory, subject: str, others: Sequence[Memory]
) -> Iterator[tuple[str, Memory]]:
    """Reasons that other notes give for a statement: "The reason we left MySQL was licensing"."""
    for other in others:
        shared = count_shared_words(other.content, decision.content)
        needed = 1 if "reason" in other.content.lower() else SHARED
        about = count_shared_words(other.content, subject) > 0
        if shared >= needed and about and (reason := find_reason(other.content)):
            yield reason, other


def _find_near(decision: Memory, turns: Sequence[Memory]) -> Iterator[tuple[str, Memory]]:
    """Reasons that were given in the conversation around a statement, in sentences about the same thing."""
    for turn in turns:
        for sentence in split_sentences(turn.content):
            if count_shared_words(sentence, decision.content) and (
                reason := find_marked_reason(sentence)
            ):
                yield reason, turn


def _list_older(hit: Hit, relation_type: str) -> list[Memory]:
    """Older statements to which this one is so related, the newest first."""
    at = hit.memory.created_at
    older = [
        other
        for relation, other in hit.related
        if relation.type == relation_type and relation.target == other.id and other.created_at <= at
    ]
    return sorted(older, key=lambda other: other.created_at, reverse=True)


def _list_newer(hit: Hit) -> list[Memory]:
    """Valid newer statements that perhaps replaced this one, while nobody has decided."""
    id, at = hit.memory.id, hit.memory.created_at
    newer = [
        other
        for relation, other in hit.related
        if relation.type == "may_replace" and relation.target == id and other.created_at >= at
    ]
    return [other for other in newer if other.superseded_by is None and other.deleted_at is None]
