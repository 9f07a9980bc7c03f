"""Memories as lines for people, and as flat records for tables. How they are chosen and ranked is not known here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bethink.recall.shape import Dual, by_topic, citation
from bethink.surface.cli.output import (
    date,
    date_and_time,
    many,
    one_line,
    plain,
    styled,
    width,
    wrapped,
)
from bethink.types import NOTHING

if TYPE_CHECKING:
    from bethink.types import Answer, Hit, Memory, Relation, Span

FIELDS = (
    "id",
    "score",
    "kind",
    "scope",
    "source",
    "path",
    "lines",
    "created_at",
    "summary",
    "content",
)
EXCERPT = 280  # characters of a memory in a list of hits

SIGNALS = {
    "relevance": "how well it answers, all signals together",
    "cosine": "nearness of meaning",
    "meaning": "that nearness against the average of the scope",
    "bm25": "weight of the matching words",
    "words": "that weight against the best match",
    "coverage": "share of the question it holds",
    "pairs": "words of the question that stand side by side here too",
    "topic": "lift from the topic of the conversation",
    "named": "lift for being about what the question names",
    "neighbours": "lift from passages beside it",
    "recent": "lift for being told lately",
    "confidence": "how sure it is",
    "recency": "how lately it was used",
    "utility": "votes and uses",
    "importance": "its importance, from 0 to 1",
    "frequency": "how often it was used",
}
FORWARD = {
    "supersedes": "supersedes",
    "builds_on": "builds on",
    "contradicts": "contradicts",
    "answers": "answers",
    "relates_to": "relates to",
    "may_replace": "may replace",
}
BACKWARD = {
    "supersedes": "superseded by",
    "builds_on": "is built on by",
    "contradicts": "contradicted by",
    "answers": "answered by",
    "relates_to": "relates to",
    "may_replace": "may be replaced by",
}

Short = Mapping[str, str]


def flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object of a memory with its line range as text, for CSV, markdown and XML."""
    lines = record.get("lines")
    return {**record, "lines": f"{lines[0]}-{lines[1]}" if lines else None}


def scope_labels(scopes: Iterable[str], names: Short) -> dict[str, str]:
    """What scopes are called. Two projects may be called the same, and are then told apart by a piece of their scope."""
    told = {scope: names.get(scope) or scope for scope in scopes}
    several = {name for name, number in Counter(told.values()).items() if number > 1}
    return {
        scope: f"{name} [{scope.partition(':')[2][:6]}]" if name in several else name
        for scope, name in told.items()
    }


def belonging(memory: Memory, projects: Short) -> str:
    """Which project a memory is of, where several are shown."""
    return f" [{plain(projects.get(memory.scope, memory.scope))}]" if projects else ""


def state(memory: Memory, short: Short) -> str:
    """What keeps a memory from being found, if anything does."""
    if memory.deleted_at:
        return " (forgotten)"
    if memory.superseded_by:
        return f" (replaced by {short.get(memory.superseded_by, memory.superseded_by)})"
    return ""


def line(memory: Memory, short: Short, projects: Short = NOTHING) -> str:
    """A memory on one line: `01a1dd89  2026-11-15  decision  We use Postgres`."""
    room = max(map(len, short.values()))
    head = f"{short[memory.id]:<{room}}  {date(memory.created_at)}  {memory.kind:<12}  "
    tail = state(memory, short) + belonging(memory, projects)
    return (
        styled(head, "dim")
        + one_line(memory.summary or memory.content, max(20, width() - len(head) - len(tail)))
        + tail
    )


def told(memory: Memory, short: Short) -> str:
    """What was done to which memory: `01a1dd89 decision  We use Postgres`."""
    return f"{short[memory.id]} {memory.kind}  {one_line(memory.summary or memory.content, 80)}"


def excerpt(content: str, terms: Sequence[str]) -> str:
    """The beginning, or where that holds none of the words, the part around the first that occurs."""
    text = " ".join(content.split())
    if len(text) <= EXCERPT:
        return text
    lowered = text.lower()
    places = [at for term in terms if (at := lowered.find(term.lower())) >= 0]
    first = min(places, default=0)
    start = 0 if first < EXCERPT - 40 else text.rfind(" ", 0, first - 60) + 1
    return ("… " if start else "") + one_line(text[start:], EXCERPT)


def related(hit: Hit, short: Short, indent: str) -> list[str]:
    """What a hit replaced, answers or builds on. A chain of replacements reads from the newest to the oldest."""
    return [
        related_line(hit.memory.id, relation, other, short, indent)
        for relation, other in hit.related
    ]


def related_line(id: str, relation: Relation, other: Memory, short: Short, indent: str) -> str:
    if relation.source == id or relation.target != id:  # further back in a chain it is neither
        word = FORWARD[relation.type] if relation.source == id else "which superseded"
    else:
        word = BACKWARD[relation.type]
    head = f"{indent}{word} {short[other.id]} ({date(other.created_at)}): "
    return head + one_line(other.summary or other.content, max(20, width() - len(head)))


def why(hit: Hit, indent: str) -> list[str]:
    known = [name for name in SIGNALS if name in hit.why] + [
        name for name in hit.why if name not in SIGNALS
    ]
    return [
        f"{indent}{name:<12}{hit.why[name]:>8.3f}  {SIGNALS.get(name, '')}".rstrip()
        for name in known
    ]


def hits(
    answer: Answer, short: Short, first: int, explain: bool, projects: Short = NOTHING
) -> list[str]:
    """A numbered list: where each hit stands, an excerpt, what it is connected to and, if asked for, why it is there."""
    terms = [term.text for term in answer.query.terms]
    lines = []
    for number, hit in enumerate(answer.hits, start=first):
        memory = hit.memory
        head = f"{number}. [{hit.score:.2f}] "
        lines += [
            styled(head, "green")
            + styled(memory.kind, "bold")
            + f"  {plain(citation(memory))}  {styled(short[memory.id], 'dim')}{state(memory, short)}{belonging(memory, projects)}",
            *wrapped(excerpt(memory.content, terms), "   "),
            *related(hit, short, "   "),
            *(why(hit, "     ") if explain else ()),
            "",
        ]
    return lines[:-1]


def dual(
    answer: Answer, both: Dual, short: Short, spans: Mapping[str, Span], projects: Short = NOTHING
) -> list[str]:
    """The answer for reading: details of the best, those of one topic together, an index of the others, totals."""
    beside = {shaped["id"]: shaped.get("around", ()) for shaped in both.details}
    full = [hit for hit in answer.hits if hit.memory.id in beside]
    lines: list[str] = []
    number = 0
    for span, together in by_topic(full, spans):
        if span and span.name:
            lines.append(styled(f"Topic: {one_line(span.name, width() - 8)}", "bold"))
        for hit in together:
            number += 1
            lines += [*detail(number, hit, beside.get(hit.memory.id, ()), short, projects), ""]
    listed = {line["id"] for line in both.index} - beside.keys()
    others = [hit for hit in answer.hits if hit.memory.id in listed]
    if others:
        lines.append("Also:" if full else "Matches:")
        lines += [f"  [{hit.score:.2f}] {line(hit.memory, short, projects)}" for hit in others]
        lines.append("")
    counts = (
        f"{len(full)} in full, {len(both.index)} in the index, about {both.tokens_used:,} tokens"
    )
    lines.append(f"{many(both.total_count, 'match', 'matches')}, {counts}.")
    return lines


def detail(
    number: int,
    hit: Hit,
    beside: Sequence[Mapping[str, Any]],
    short: Short,
    projects: Short = NOTHING,
) -> list[str]:
    memory = hit.memory
    about = [
        memory.kind,
        plain(citation(memory)),
        date(memory.created_at),
        f"confidence {memory.confidence:.0%}",
        short[memory.id],
    ]
    return [
        styled(f"{number}. ", "green")
        + styled(one_line(memory.summary or memory.content, width() - 4), "bold"),
        "   " + " · ".join(about) + state(memory, short) + belonging(memory, projects),
        *(
            wrapped(memory.content, "   ")
            if memory.content.strip() != memory.summary.strip()
            else ()
        ),
        *(
            row
            for near in beside
            for row in wrapped(f"{near['role']}: {one_line(near['content'], 400)}", "   | ")
        ),
        *related(hit, short, "   "),
    ]


def surroundings(memory: Memory, beside: Sequence[Memory]) -> list[str]:
    """What stands around a memory where it came from."""
    if not beside:
        return ["", "  Nothing else of its source is kept."]
    lines = ["", "  Around it:"]
    for near in beside:
        mark = (
            ">"
            if near.id == memory.id
            or near.metadata.get("turn") == memory.metadata.get("turn") is not None
            else " "
        )
        who = f"{near.metadata['role']}: " if near.metadata.get("role") else ""
        lines += [f"  {mark} {plain(citation(near))}", *wrapped(who + near.content, "      ")]
    return lines


def whole(
    memory: Memory,
    relations: Sequence[tuple[Relation, Memory]],
    short: Short,
    projects: Short = NOTHING,
) -> list[str]:
    """Everything about one memory."""
    facts = {
        "kind": memory.kind,
        "source": citation(memory),
        "section": memory.section,
        "created": date_and_time(memory.created_at),
        "updated": date_and_time(memory.updated_at)
        if memory.updated_at != memory.created_at
        else "",
        "expires": date_and_time(memory.expires_at),
        "valid": " to ".join(
            filter(None, (date_and_time(memory.valid_from), date_and_time(memory.valid_to)))
        )
        if memory.valid_from or memory.valid_to
        else "",
        "importance": f"{memory.importance:g} of 10",
        "confidence": f"{memory.confidence:.0%}",
        "used": f"{many(memory.access_count, 'time')}, votes {memory.usefulness:+g}"
        if memory.access_count or memory.usefulness
        else "",
        "answered": {True: "yes", False: "not yet"}.get(memory.answered)
        if memory.answered is not None
        else "",
        "tags": ", ".join(memory.tags),
        "entities": ", ".join(f"{entity.name} ({entity.type})" for entity in memory.entities),
        "metadata": ", ".join(f"{name}={value}" for name, value in memory.metadata.items()),
        "scope": memory.scope + belonging(memory, projects),
    }
    return [
        styled(memory.id, "bold") + state(memory, short),
        *(f"  {name + ':':<12}{one_line(value)}" for name, value in facts.items() if value),
        *(related_line(memory.id, relation, other, short, "  ") for relation, other in relations),
        "",
        *wrapped(memory.content, "  "),
    ]
