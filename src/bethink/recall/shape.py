"""Answer → the form its reader wants. Pure: values in, values out; how they are printed is for the surfaces.

`plain` is the stable object of every JSON answer. `dual` is the index-and-details form: a line for every match, then the
full text of the best within a token budget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from bethink.types import Answer, Hit, Memory, Relation, Session, Span

OVERHEAD = 12  # tokens of punctuation and labels around one item


class Dual(NamedTuple):
    index: tuple[dict[str, Any], ...]  # type: ignore[assignment]
    details: tuple[dict[str, Any], ...]
    total_count: int
    has_more: bool
    tokens_used: int
    query: str
    hints: tuple[str, ...] = ()


def tokens(text: str) -> int:
    """About how many tokens a model sees in a text: a token per four Latin characters, and per one and a half of others."""
    wide = sum(character > "\u2e7f" for character in text) if not text.isascii() else 0
    return (len(text) - wide + 3) // 4 + (wide * 2 + 2) // 3


def iso(moment: datetime | None) -> str | None:
    return (
        None
        if moment is None
        else moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


def citation(memory: Memory) -> str:
    """Where a memory came from, for people: `docs/auth.md:12-40`, `session abc:7`, or who told it."""
    place = memory.path or memory.source
    if memory.lines:
        first, last = memory.lines
        return f"{place}:{first}" if first == last else f"{place}:{first}-{last}"
    return place


def digest_lines(session: Session) -> list[str]:
    """What a session was asked, did and left, a line each; what is not known is left out."""
    told = session.digest or {}
    return [f"{name.capitalize()}: {text}" for name, text in told.items() if text]


def plain(memory: Memory) -> dict[str, Any]:
    """A memory as the documented JSON object."""
    return {
        "id": memory.id,
        "kind": memory.kind,
        "scope": memory.scope,
        "content": memory.content,
        "summary": memory.summary,
        "source": memory.source,
        "path": memory.path,
        "lines": list(memory.lines) if memory.lines else None,
        "section": memory.section,
        "session": memory.session,
        "created_at": iso(memory.created_at),
        "updated_at": iso(memory.updated_at),
        "importance": memory.importance,
        "confidence": memory.confidence,
        "usefulness": memory.usefulness,
        "access_count": memory.access_count,
        "last_accessed": iso(memory.last_accessed),
        "valid_from": iso(memory.valid_from),
        "valid_to": iso(memory.valid_to),
        "expires_at": iso(memory.expires_at),
        "deleted_at": iso(memory.deleted_at),
        "superseded_by": memory.superseded_by,
        "answered": memory.answered,
        "tags": list(memory.tags),
        "keywords": list(memory.keywords),
        "entities": [{"name": entity.name, "type": entity.type} for entity in memory.entities],
        "metadata": dict(memory.metadata),
        "trust": memory.trust,
    }


def plain_hit(hit: Hit, explain: bool = False) -> dict[str, Any]:
    memory = plain(hit.memory)
    shaped: dict[str, Any] = {"id": memory.pop("id"), "score": round(hit.score, 4), **memory}
    if hit.related:
        shaped["related"] = plain_relations(hit.memory.id, hit.related)
    if explain:
        shaped["why"] = dict(hit.why)
    return shaped


def plain_relations(id: str, related: Sequence[tuple[Relation, Memory]]) -> list[dict[str, Any]]:
    """What a memory is related to, as it sees it."""
    return [
        {
            "type": relation.type,
            "direction": "out" if relation.source == id else "in",
            "id": other.id,
            "summary": other.summary,
        }
        for relation, other in related
    ]


def dual(
    answer: Answer, max_tokens: int, around: Callable[[Memory], Sequence[Memory]] | None = None
) -> Dual:
    """A line for every hit in at most half the budget, then the texts of the best in the rest; the first is cut rather than missing.
    What room is left goes to the turns beside those that match: `around` gives them."""
    index: list[dict[str, Any]] = []
    used = 0
    for hit in answer.hits:
        summary = hit.memory.summary
        cost = tokens(summary) + OVERHEAD
        if index and used + cost > max_tokens // 2:
            break
        if cost > max_tokens:
            summary = cut(summary, max_tokens - OVERHEAD)
            cost = tokens(summary) + OVERHEAD
        used += cost
        index.append(
            {
                "id": hit.memory.id,
                "summary": summary,
                "kind": hit.memory.kind,
                "score": round(hit.score, 3),
            }
        )
    details: list[dict[str, Any]] = []
    for hit in answer.hits[: len(index)]:
        shaped = plain_hit(hit)
        frame = tokens(citation(hit.memory)) + OVERHEAD
        cost = tokens(hit.memory.content) + frame
        if used + cost > max_tokens:
            room = max_tokens - used - frame
            if details or room < 20:
                continue
            shaped["content"] = cut(hit.memory.content, room)
            shaped["truncated"] = True
            cost = tokens(shaped["content"]) + frame
        used += cost
        details.append(shaped)
    if around:
        used = _beside(answer.hits, details, max_tokens, used, around)
    return Dual(
        tuple(index),
        tuple(details),
        answer.total,
        answer.total > len(index),
        used,
        answer.query.raw,
        answer.hints,
    )


def _beside(
    hits: Sequence[Hit],
    details: list[dict[str, Any]],
    max_tokens: int,
    used: int,
    around: Callable[[Memory], Sequence[Memory]],
) -> int:
    """Puts the turns before and after each turn in the details beside it, as far as the budget goes. Returns the tokens used."""
    shown = {shaped["id"] for shaped in details}
    spoken = {
        hit.memory.id: hit.memory
        for hit in hits
        if hit.memory.kind == "context" and hit.memory.session
    }
    for shaped in details:
        memory = spoken.get(shaped["id"])
        for near in around(memory) if memory else ():
            cost = tokens(near.content) + OVERHEAD
            if near.id in shown or used + cost > max_tokens:
                continue
            shown.add(near.id)
            used += cost
            beside = {
                "id": near.id,
                "role": near.metadata.get("role"),
                "lines": list(near.lines or ()),
                "content": near.content,
            }
            shaped.setdefault("around", []).append(beside)
    return used


def by_topic(hits: Sequence[Hit], spans: Mapping[str, Span]) -> list[tuple[Span | None, list[Hit]]]:
    """Hits of one topic of a conversation together, topics in the order of their best hit; the others stand alone."""
    groups: dict[str, tuple[Span | None, list[Hit]]] = {}
    for hit in hits:
        span = spans.get(hit.memory.span or "")
        groups.setdefault(span.id if span else hit.memory.id, (span, []))[1].append(hit)
    return list(groups.values())


def cut(text: str, room: int) -> str:
    """The start of a text that fits into a number of tokens, ended at a word."""
    part = text[: room * 4]
    while part and tokens(part) > room - 1:
        part = part[: len(part) * 9 // 10]
    return (part.rsplit(None, 1)[0] if " " in part.strip() else part) + " …"
