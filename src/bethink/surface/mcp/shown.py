"""Memories as a model reads them: between the marks of `fence`, each with its origin, within a number of tokens.

Half of what a search gives is a line each, so that a model sees what else there is; the best are there in full. What the
server itself has to say stands behind the marks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bethink.recall.shape import by_topic, citation, cut, dual, tokens
from bethink.text.fence import Quote, fenced, new_marker

if TYPE_CHECKING:
    from bethink.api import Bethink
    from bethink.types import Answer, Memory, Relation

FRAME = 75  # tokens of the marks, the notice and the totals
ORIGIN = 9  # tokens by which the head of a memory is longer than `shape` counts it
CONNECTED = 3  # relations that a hit shows
CONNECTED_WORDS = 18
BESIDE, BRIEF = 60, 40  # tokens of a turn beside a turn, and of a memory without a summary
METADATA = 200  # tokens
LEAST = 200  # characters: no answer is cut below the marks and a word or two

FORWARD = {
    "supersedes": "replaced",
    "builds_on": "builds on",
    "contradicts": "contradicts",
    "answers": "answers",
    "may_replace": "may replace",
}
BACKWARD = {
    "supersedes": "replaced by",
    "builds_on": "basis of",
    "contradicts": "contradicted by",
    "answers": "answered by",
    "may_replace": "may be replaced by",
}

Short = Mapping[str, str]


def quoted(
    items: Iterable[Quote | str], said: Sequence[str] = (), budget: int | None = None
) -> str:
    """An answer: what is quoted, then what the server says. Over budget it loses relations first, and then its end."""
    items, marker = list(items), new_marker()
    behind = "".join(f"\n{line}" for line in said)
    text = fenced(items, marker)
    if budget is None or tokens(text + behind) <= budget:
        return text + behind
    items = [item._replace(beside=()) if isinstance(item, Quote) else item for item in items]
    text = fenced(items, marker)
    longest = len(text)
    while tokens(text + behind) > budget and longest > LEAST:
        longest = longest * 9 // 10
        text = fenced(items, marker, longest)
    return text + behind


def quote(memory: Memory, short: Short, text: str | None = None, **more: Any) -> Quote:
    return Quote(
        short.get(memory.id, memory.id),
        memory.kind,
        memory.trust,
        citation(memory),
        memory.created_at,
        memory.content if text is None else text,
        state(memory, short),
        **more,
    )


def brief(memory: Memory, short: Short) -> Quote:
    """A memory on one line."""
    return quote(memory, short, memory.summary or within(memory.content, BRIEF), brief=True)


def within(text: str, room: int) -> str:
    return text if tokens(text) <= room else cut(text, room)


def state(memory: Memory, short: Short) -> str:
    """What keeps a memory from being believed, if anything does."""
    if memory.deleted_at:
        return "forgotten"
    if memory.superseded_by:
        return f"replaced by {short.get(memory.superseded_by, memory.superseded_by)}"
    return "answered" if memory.answered else ""


def answered(memory: Bethink, answer: Answer, budget: int) -> str:
    """The index-and-details form of an answer: the best in full, those of one topic together, a line for each of the others."""
    if not answer.hits:
        return "\n".join(
            [
                "No memories match. Try other words, another mode, or no filters.",
                *notes(answer.hints),
            ]
        )
    both = dual(answer, max(50, budget - FRAME - ORIGIN * len(answer.hits)), _around(memory))
    full = {shaped["id"]: shaped for shaped in both.details}
    hits = answer.hits[: len(both.index)]
    others = {other.id for hit in hits for _, other in hit.related}
    short = abbreviated(memory, [hit.memory for hit in hits], others)
    spoken = [hit.memory for hit in hits if hit.memory.span and hit.memory.id in full]
    spans = (
        memory.store.spans_by_id([str(one.span) for one in spoken], memory.scopes) if spoken else {}
    )
    items: list[Quote | str] = []
    for span, together in by_topic([hit for hit in hits if hit.memory.id in full], spans):
        if span and span.name:
            items.append(f"Topic: {span.name}")
        for hit in together:
            shaped = full[hit.memory.id]
            beside = [
                f"{near['role'] or 'near'}: {within(near['content'], BESIDE)}"
                for near in shaped.get("around", ())
            ]
            items.append(
                quote(
                    hit.memory,
                    short,
                    shaped["content"],
                    beside=(*beside, *connected(hit.memory, hit.related, short)),
                )
            )
    rest = [brief(hit.memory, short) for hit in hits if hit.memory.id not in full]
    if rest:
        items += [f"Also ({len(rest)}):" if full else f"Matches ({len(rest)}):", *rest]
    totals = f"{len(full)} in full, {len(rest)} as a line, {answer.total:,} found." + (
        " get_memories gives whole texts." if rest else ""
    )
    return quoted(items, [totals, *notes(answer.hints)], budget)


def _around(memory: Bethink) -> Callable[[Memory], Sequence[Memory]]:
    return lambda one: memory.store.around(one.id, 1, 1)


def whole(memory: Bethink, found: Sequence[Memory], budget: int) -> list[Quote]:
    """Memories in full with what they are connected to, each within its share of the budget."""
    relations = memory.store.relations([one.id for one in found])
    ends = {end for relation in relations for end in (relation.source, relation.target)}
    others = {
        other.id: other for other in memory.store.get(sorted(ends)) if other.scope in memory.scopes
    }
    short = abbreviated(memory, found, set(others))
    items, left = [], budget - FRAME
    for number, one in enumerate(found):
        pairs = [
            (relation, others[end])
            for relation in relations
            if one.id in (relation.source, relation.target)
            for end in (relation.source, relation.target)
            if end != one.id and end in others
        ]
        facts = _facts(one)
        beside = (*((facts,) if facts else ()), *connected(one, pairs, short, most=20))
        frame = sum(map(tokens, beside)) + tokens(citation(one)) + ORIGIN + 12
        room = max(50, left // (len(found) - number) - frame)
        text = one.content
        if tokens(text) > room:
            text = f"{cut(text, room - 20)}\n[{len(one.content):,} characters in all; ask for it alone or with more max_tokens]"
        left -= tokens(text) + frame
        items.append(quote(one, short, text, beside=beside))
    return items


def _facts(one: Memory) -> str:
    facts = {
        "importance": f"{one.importance:g}" if one.importance != 5 else "",
        "confidence": f"{one.confidence:.0%}" if one.confidence < 1 else "",
        "votes": f"{one.usefulness:+g}" if one.usefulness else "",
        "expires": f"{one.expires_at:%Y-%m-%d}" if one.expires_at else "",
        "section": one.section or "",
        "tags": ", ".join(one.tags),
        "entities": ", ".join(entity.name for entity in one.entities),
        "metadata": _metadata(one),
    }
    return "; ".join(f"{name}: {value}" for name, value in facts.items() if value)


def _metadata(one: Memory) -> str:
    """What its teller added. Of a handoff it is the text again, of a passage it is bookkeeping."""
    if one.kind == "handoff" or one.source_type != "note" or not one.metadata:
        return ""
    return within(json.dumps(dict(one.metadata), ensure_ascii=False, default=str), METADATA)


def connected(
    one: Memory, related: Sequence[tuple[Relation, Memory]], short: Short, most: int = CONNECTED
) -> list[str]:
    """What a memory replaced, answers or contradicts, a line each."""
    lines = []
    for relation, other in related:
        word = (
            FORWARD.get(relation.type) if relation.source == one.id else BACKWARD.get(relation.type)
        )
        if one.id not in (relation.source, relation.target):
            word = "before that"  # further back in a chain of replacements
        summary = " ".join((other.summary or other.content[:400]).split()[:CONNECTED_WORDS])
        lines.append(
            f"{word or 'see also'} [{short.get(other.id, other.id)}] {other.created_at:%Y-%m-%d}: {summary}"
        )
    return lines[:most]


def abbreviated(memory: Bethink, found: Sequence[Memory], more: Iterable[str] = ()) -> Short:
    successors = [one.superseded_by for one in found if one.superseded_by]
    return memory.store.abbreviate([*(one.id for one in found), *successors, *more])


def notes(hints: Sequence[str]) -> list[str]:
    return [f"Note: {hint}" for hint in hints]
