"""Memories as text. How they are chosen and ranked is not known here.

An answer is made once, as items: a memory in full or on one line (`Quote`), or a heading. `quote_items` writes them for models: between
the marks of `text/fence.py`, each memory with its origin, within a number of tokens, and behind the marks what Bethink itself has to
say. `item_lines` writes them for people: cut to their terminal, without anything that it might obey. Either way a memory stays
where it belongs: a name with a line break in it takes one line.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink.recall.shape import (
    OVERHEAD,
    Dual,
    Sought,
    by_topic,
    choose_excerpt,
    citation,
    cut,
    dual,
    find_sought,
    tokens,
)
from bethink.surface.layout import date, indent, one_line, style, unstyle, width
from bethink.text.fence import Quote, fence_items, new_marker
from bethink.types import NOTHING, PERSONAL, Answer, Hit, Memory, Outcome, Relation, Span

if TYPE_CHECKING:
    from bethink.api import Bethink
    from bethink.features.handoffs import LatestHandoff as Latest

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
LEAST = 24  # columns that are too few for a statement: then it gets a line of its own
EXCERPT = 280  # characters of a memory in a list of hits; set by hand: three lines of a terminal

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
    "preferred": "raised or lowered by the question's words about time, or for being a question or only said",
    "standing": "3, 2: of the kind, of the time asked for, before all others; 0: code, after what fits",
    "fits": "how well it answers, read together with the question: to compare with other hits",
    "moved": "places it rose for that, or fell",
    "in_time": "of the time asked for",
    "confidence": "how sure it is",
    "recency": "how lately it was used",
    "utility": "votes and uses",
    "importance": "its importance, from 0 to 1",
    "frequency": "how often it was used",
}
# A relation as its source sees it, and as its target does.
RELATION_WORDS = {
    "supersedes": ("supersedes", "superseded by"),
    "builds_on": ("builds on", "basis of"),
    "contradicts": ("contradicts", "contradicted by"),
    "answers": ("answers", "answered by"),
    "relates_to": ("relates to", "relates to"),
    "may_replace": ("may replace", "may be replaced by"),
}

# What to do where a new memory may mean something for a known one, by relation: for a person, and for an agent, which has no
# `link` but may store the same text again and say so.
PERSON_STEPS = {
    "replaces": "bethink link {new} supersedes {old}",
    "answers": "bethink link {new} answers {old}",
    "completes": "bethink link {new} answers {old}",
    "same": "bethink forget {new}",
}
AGENT_STEPS = {
    "replaces": "if so, store the same content with supersedes [{old}]",
    "answers": "if so, update_memory [{old}] with answered true",
    "completes": "if so, update_memory [{old}] with answered true",
    "same": "if so, forget_memories [{new}]",
}
PROPOSED = {
    "replaces": "replace",
    "answers": "answer",
    "completes": "complete",
    "same": "be the same as",
}
WAITS = "it stays until the user confirms: bethink link {new} supersedes {old}"

# Tokens of what a model reads, counted on real answers.
FRAME = 85  # the marks, the notice and the totals
LISTED = 30  # what stands behind a list
HEAD = OVERHEAD + 9  # the head of a memory: its id, kind, origin and day
BRIEF, BESIDE, DONE, METADATA = (
    40,
    60,
    20,
    200,
)  # a memory without a summary, a turn beside a turn, work done, metadata
RELATED, RELATED_WORDS = 3, 18  # relations that a hit shows, and words of each
SHORTEST = 200  # characters: no answer is cut below the marks and a word or two

Names = Mapping[str, str]  # full id → short id, or scope → project
Related = Sequence[tuple[Relation, Memory]]


class Arranged(NamedTuple):
    """An answer in the index-and-details form: what is told in full, by topic, and what is told on one line."""

    both: Dual
    topics: list[tuple[Span | None, list[Hit]]]
    rest: list[Hit]
    details: Mapping[str, Mapping[str, Any]]  # by the id of the memory


class ShownMemories(NamedTuple):
    """Memories as they are to be shown, what Bethink says of them, and the offset at which the rest begins, if there is a rest."""

    items: list[Quote | str]
    notes: list[str]
    following: int | None = None


def arrange_answer(
    memory: "Bethink", answer: Answer, budget: int, overhead: int = OVERHEAD
) -> Arranged:
    both = dual(answer, budget, lambda one: memory.store.around(one.id, 1, 1), overhead)
    details = {shaped["id"]: shaped for shaped in both.details}
    listed = answer.hits[: len(both.index)]
    full = [hit for hit in listed if hit.memory.id in details]
    spoken = [hit.memory for hit in full if hit.memory.span]
    scopes = tuple({one.scope for one in spoken})
    ids = [str(one.span) for one in spoken]
    spans = memory.store.spans_by_id(ids, scopes) if spoken else {}
    rest = [hit for hit in listed if hit.memory.id not in details]
    return Arranged(both, by_topic(full, spans), rest, details)


def short_ids(memory: "Bethink", found: Iterable[Memory], related: Iterable[str] = ()) -> Names:
    """Ids as short as they can be told: of memories, of what replaced them, and of what else is named."""
    found = list(found)
    replaced = [one.superseded_by for one in found if one.superseded_by]
    return memory.store.abbreviate([*(one.id for one in found), *replaced, *related])


def short_id(memory: "Bethink", id: str) -> str:
    """An id as short as it can be told."""
    return memory.store.abbreviate([id])[id]


def short_ids_of_hits(memory: "Bethink", hits: Sequence[Hit]) -> Names:
    related = [other.id for hit in hits for _, other in hit.related]
    return short_ids(memory, [hit.memory for hit in hits], related)


def related_memories(memory: "Bethink", found: Sequence[Memory]) -> dict[str, Related]:
    """What each memory is related to, as far as the reader may see it."""
    relations = memory.store.relations([one.id for one in found])
    ends = {end for relation in relations for end in (relation.source, relation.target)}
    others = {
        other.id: other
        for other in memory.store.get(sorted(ends))
        if memory.everywhere or other.scope in memory.scopes
    }
    return {
        one.id: [
            (relation, others[end])
            for relation in relations
            if one.id in (relation.source, relation.target)
            for end in (relation.source, relation.target)
            if end != one.id and end in others
        ]
        for one in found
    }


def state_of(memory: Memory, short: Names) -> str:
    """What keeps a memory from being believed, if anything does."""
    if memory.deleted_at:
        return "forgotten"
    if memory.superseded_by:
        return f"replaced by {short.get(memory.superseded_by, memory.superseded_by)}"
    return "answered" if memory.answered else ""


def relation_words(id: str, relation: Relation) -> str:
    forward, backward = RELATION_WORDS[relation.type]
    if relation.source == id:
        return forward
    return backward if relation.target == id else "which superseded"  # further back in a chain


# Names


def scope_labels(scopes: Iterable[str], names: Names) -> dict[str, str]:
    """What scopes are called. Two projects may be called the same, and are then told apart by a piece of their scope."""
    called = {scope: names.get(scope) or scope for scope in scopes}
    several = {name for name, number in Counter(called.values()).items() if number > 1}
    return {
        scope: f"{name} [{scope.partition(':')[2][:6]}]" if name in several else name
        for scope, name in called.items()
    }


def item_lines(items: Sequence[Quote | str]) -> list[str]:
    """Items for people: `01a1dd89  2026-11-15  decision  We use Postgres`, or a memory's head and below it its text."""
    room = max((len(item.id) for item in items if isinstance(item, Quote)), default=0)
    lines: list[str] = []
    for item in items:
        if isinstance(item, str):
            lines.append(style(one_line(item), "bold"))
            continue
        head = style(f"{item.id:<{room}}  {date(item.date)}  {item.kind:<12}  ", "dim")
        note = f" ({one_line(item.note)})" if item.note else ""
        if item.brief:
            left = max(LEAST, width() - len(unstyle(head)) - len(note))
            lines.append(head + one_line(item.text, left) + note)
        else:
            beside = (f"  {one_line(line)}" for line in item.beside)
            lines += [head + one_line(item.origin) + note, *indent(item.text, "  "), *beside, ""]
    return lines if lines[-1:] != [""] else lines[:-1]


def memory_label(memory: Memory, short: Names) -> str:
    """Which memory something was done to: `01a1dd89 decision  We use Postgres`."""
    return f"{short[memory.id]} {memory.kind}  {one_line(memory.summary or memory.content, 80)}"


def excerpt(content: str, sought: Sought) -> str:
    """The part of a text that holds most of what was looked for, on one line."""
    text = " ".join(content.split())
    start, end = choose_excerpt(text, sought, EXCERPT)
    return "… " * (start > 0) + text[start:end] + "…" * (end < len(text))


def outcome_ids(outcome: Outcome) -> list[str]:
    """The known memories that an outcome speaks of."""
    return [*outcome.supersedes, *outcome.settles, *(one.id for one in outcome.proposals)]


def outcome_lines(
    outcome: Outcome,
    short: Names,
    indent: str,
    steps: Mapping[str, str] = PERSON_STEPS,
    about: Mapping[str, str] = NOTHING,
) -> list[str]:
    """What a new memory did to known ones, and what it may mean for others with the next step for each. `about` says in a
    few words what each known one tells, for people; models get it quoted."""

    def name_memory(id: str) -> str:
        return f"{short[id]}: {about[id]}" if id in about else f"[{short[id]}]"

    lines = [f"{indent}replaces {name_memory(id)}" for id in outcome.supersedes]
    lines += [f"{indent}settles {name_memory(id)}" for id in outcome.settles]
    for one in outcome.proposals:
        word = PROPOSED[one.relation]
        waits = one.reason == "less trusted" and steps is not PERSON_STEPS
        step = (WAITS if waits else steps[one.relation]).format(
            new=short[outcome.id], old=short[one.id]
        )
        lines.append(f"{indent}may {word} {name_memory(one.id)} ({one.reason}; {step})")
    return lines


# As items


def quote_items(
    items: Iterable[Quote | str], notes: Sequence[str] = (), budget: int | None = None
) -> str:
    """What is quoted, between marks, and behind them what Bethink says. Over budget it loses relations first, and then its end."""
    items, marker = list(items), new_marker()
    if not items:
        return "\n".join(notes)
    behind = "".join(f"\n{line}" for line in notes)
    text = fence_items(items, marker)
    if budget is None or tokens(text + behind) <= budget:
        return text + behind
    items = [item._replace(beside=()) if isinstance(item, Quote) else item for item in items]
    text = fence_items(items, marker)
    longest = len(text)
    while tokens(text + behind) > budget and longest > SHORTEST:
        longest = longest * 9 // 10
        text = fence_items(items, marker, longest)
    return text + behind


def quote_memory(
    memory: Memory, short: Names, text: str | None = None, projects: Names = NOTHING, **more: Any
) -> Quote:
    """A memory as an item; where those of several `projects` are shown, with its own."""
    project = f"in {projects[memory.scope]}" if memory.scope in projects else ""
    return Quote(
        short.get(memory.id, memory.id),
        memory.kind,
        memory.trust,
        citation(memory),
        memory.created_at,
        memory.content if text is None else text,
        ", ".join(filter(None, [state_of(memory, short), project])),
        **more,
    )


def quote_line(memory: Memory, short: Names, projects: Names = NOTHING) -> Quote:
    """A memory on one line."""
    text = memory.summary or cut_to(memory.content, BRIEF)
    return quote_memory(memory, short, text, projects, brief=True)


def cut_to(text: str, room: int) -> str:
    return text if tokens(text) <= room else cut(text, room)


def show_hits(
    memory: "Bethink", answer: Answer, explain: bool, projects: Names = NOTHING
) -> list[Quote | str]:
    """A ranked list: of each hit an excerpt, what it is connected to and, if asked for, why it is there. What happened in a time is a
    list of dates."""
    short, sought = short_ids_of_hits(memory, answer.hits), find_sought(answer.query)
    items: list[Quote | str] = []
    for hit in answer.hits:
        one = quote_line(hit.memory, short, projects)
        if not answer.query.recap:
            head = [hit.memory.summary] if hit.memory.kind == "code" else []
            text = "\n".join([*head, excerpt(hit.memory.content, sought)])
            note = ", ".join(filter(None, [f"score {hit.score:.2f}", one.note]))
            beside = (*_quote_relations(hit.memory, hit.related, short), *explain_hit(hit, explain))
            one = one._replace(text=text, note=note, beside=beside, brief=False)
        items.append(one)
    return items


def explain_hit(hit: Hit, explain: bool) -> list[str]:
    """Each signal's part in a score."""
    known = [(name, about) for name, about in SIGNALS.items() if explain and name in hit.why]
    return [f"{name} {hit.why[name]:.3f}: {about}" for name, about in known]


def show_answer(
    memory: "Bethink",
    answer: Answer,
    arranged: Arranged,
    more: str,
    explain: bool = False,
    offset: int = 0,
    projects: Names = NOTHING,
) -> ShownMemories:
    """An answer in the index-and-details form. `more` says how the reader gets whole texts; `offset` is where it begins."""
    if not answer.hits:
        none = "No memories match. Try other words, another mode, or no filters."
        return ShownMemories([], [none, *note_lines(answer.hints)])
    short = short_ids_of_hits(memory, answer.hits)
    items: list[Quote | str] = []
    for span, together in arranged.topics:
        if span and span.name:
            done = [line for line in span.summary.splitlines() if line.startswith("Done: ")]
            items += [f"Topic: {span.name}", *(cut_to(line, DONE) for line in done)]
        for hit in together:
            detail = arranged.details[hit.memory.id]
            around = [
                f"{near['role'] or 'near'}: {cut_to(near['content'], BESIDE)}"
                for near in detail.get("around", ())
            ]
            related = _quote_relations(hit.memory, hit.related, short)
            beside = (*around, *related, *explain_hit(hit, explain))
            items.append(
                quote_memory(hit.memory, short, detail["content"], projects, beside=beside)
            )
    rest = [quote_line(hit.memory, short, projects) for hit in arranged.rest]
    full = len(arranged.details)
    if rest:
        items += [f"Also ({len(rest)}):" if full else f"Matches ({len(rest)}):", *rest]
    totals = f"{full} in full, {len(rest)} as a line, {answer.total:,} found."
    shown = _page(
        items, f"{totals} {more}" if rest else totals, offset + full + len(rest), answer.total
    )
    return shown._replace(notes=[*shown.notes, *note_lines(answer.hints)])


def _page(items: list[Quote | str], totals: str, after: int, total: int) -> ShownMemories:
    """Items of which the rest begins at the offset `after`, if there is a rest."""
    if after >= total:
        return ShownMemories(items, [totals])
    return ShownMemories(items, [f"{totals} The next begin at offset {after}."], after)


def show_list(
    memory: "Bethink", found: Sequence[Memory], total: int, budget: int, offset: int
) -> ShownMemories:
    """Memories on a line each, as many as fit."""
    if not found:
        return ShownMemories([], ["No memories match."])
    short = short_ids(memory, found)
    items: list[Quote | str] = [quote_line(one, short) for one in found]
    while len(items) > 1 and tokens(fence_items(items, new_marker())) > budget - LISTED:
        items.pop()
    totals = f"{len(items)} of {total:,}. get_memories gives whole texts."
    return _page(items, totals, offset + len(items), total)


def show_memories(
    memory: "Bethink", found: Sequence[Memory], budget: int, projects: Names = NOTHING
) -> list[Quote | str]:
    """Memories in full with what they are connected to, each within its share of the budget."""
    related = related_memories(memory, found)
    others = {other.id for pairs in related.values() for _, other in pairs}
    short = short_ids(memory, found, others)
    items: list[Quote | str] = []
    left = budget - FRAME
    for number, one in enumerate(found):
        facts = _quote_facts(one)
        connected = _quote_relations(one, related[one.id], short, most=20)
        beside = (*((facts,) if facts else ()), *connected)
        frame = sum(map(tokens, beside)) + tokens(citation(one)) + HEAD
        room = max(50, left // (len(found) - number) - frame)
        text = one.content
        if tokens(text) > room:
            whole = f"{len(text):,} characters in all; ask for it alone or with more max_tokens"
            text = f"{cut(text, room - 20)}\n[{whole}]"
        left -= tokens(text) + frame
        items.append(quote_memory(one, short, text, projects, beside=beside))
    return items


def show_handoff(memory: "Bethink", found: "Latest") -> list[Quote | str]:
    """The last handoff with the memories that it names."""
    named = [
        one
        for one in memory.store.get(found.handoff.memory_ids)
        if one.scope in memory.scopes and not one.deleted_at
    ]
    short = short_ids(memory, [found.memory, *named])
    facts = _quote_object(found.handoff.metadata)
    whole = quote_memory(found.memory, short, beside=(f"metadata: {facts}",) if facts else ())
    return [whole, *(quote_line(one, short) for one in named)]


def _quote_facts(one: Memory) -> str:
    facts = {
        "importance": f"{one.importance:g}" if one.importance != 5 else "",
        "confidence": f"{one.confidence:.0%}" if one.confidence < 1 else "",
        "votes": f"{one.usefulness:+g}" if one.usefulness else "",
        "expires": f"{one.expires_at:%Y-%m-%d}" if one.expires_at else "",
        "section": one.section or "",
        "tags": ", ".join(one.tags),
        "entities": ", ".join(entity.name for entity in one.entities),
        "of": PERSONAL if one.scope == PERSONAL else "",
        "valid until": f"{one.valid_to:%Y-%m-%d}" if one.valid_to else "",
        "metadata": _quote_metadata(one),
    }
    return "; ".join(f"{name}: {value}" for name, value in facts.items() if value)


def _quote_metadata(one: Memory) -> str:
    """What its teller added. Of a handoff it is the text again, of a passage it is bookkeeping."""
    plain = one.kind != "handoff" and one.source_type == "note"
    return _quote_object(one.metadata) if plain else ""


def _quote_object(values: Mapping[str, Any]) -> str:
    if not values:
        return ""
    import json

    return cut_to(json.dumps(dict(values), ensure_ascii=False, default=str), METADATA)


def _quote_relations(one: Memory, related: Related, short: Names, most: int = RELATED) -> list[str]:
    lines = []
    for relation, other in related[:most]:
        summary = " ".join((other.summary or other.content[:400]).split()[:RELATED_WORDS])
        head = f"{relation_words(one.id, relation)} [{short.get(other.id, other.id)}]"
        lines.append(f"{head} {other.created_at:%Y-%m-%d}: {summary}")
    return lines


def note_lines(hints: Sequence[str]) -> list[str]:
    return [f"Note: {hint}" for hint in hints]
