"""Memories as text: lines for people, and quoted data for models. How they are chosen and ranked is not known here.

What a model reads stands between the marks of `text/fence.py`, each memory with its origin, within a number of tokens; what
Bethink itself has to say stands behind the marks. What people read is cut to their terminal and carries nothing that it
might obey. Either way a memory stays where it belongs: a name with a line break in it takes one line.
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
from bethink.surface.layout import (
    NARROW,
    date,
    date_and_time,
    hang,
    many,
    one_line,
    style,
    width,
    wrap,
    wrap_if_narrow,
)
from bethink.text.fence import Quote, fence_items, new_marker
from bethink.text.fence import one_line as clean_line
from bethink.types import NOTHING, Answer, Hit, Memory, Outcome, Relation, Span

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
HANDOFF = 1500  # a handoff, without the memories that it names
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


class AnswerText(NamedTuple):
    """An answer as a model reads it, and the offset at which those begin that it leaves out, if it does."""

    text: str
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


# For people


def scope_labels(scopes: Iterable[str], names: Names) -> dict[str, str]:
    """What scopes are called. Two projects may be called the same, and are then told apart by a piece of their scope."""
    called = {scope: names.get(scope) or scope for scope in scopes}
    several = {name for name, number in Counter(called.values()).items() if number > 1}
    return {
        scope: f"{name} [{scope.partition(':')[2][:6]}]" if name in several else name
        for scope, name in called.items()
    }


def _tail(memory: Memory, short: Names, projects: Names) -> str:
    """Behind a memory: its state and, where several projects are shown, its project."""
    state = state_of(memory, short)
    project = f" [{one_line(projects.get(memory.scope, memory.scope))}]" if projects else ""
    return (f" ({state})" if state else "") + project


def memory_line(memory: Memory, short: Names, projects: Names = NOTHING) -> str:
    """A memory on one line: `01a1dd89  2026-11-15  decision  We use Postgres`."""
    room = max(map(len, short.values()))
    head = f"{short[memory.id]:<{room}}  {date(memory.created_at)}  {memory.kind:<12}  "
    tail = _tail(memory, short, projects)
    left = width() - len(head) - len(tail)
    if left < LEAST:  # on two lines
        head, left = f"{head.rstrip()}\n    ", width() - 4 - len(tail)
        if left < LEAST:
            tail, left = f"\n   {tail}", width() - 4
    text = one_line(memory.summary or memory.content, left)
    return style(head, "dim") + text + tail


def memory_label(memory: Memory, short: Names) -> str:
    """Which memory something was done to: `01a1dd89 decision  We use Postgres`."""
    head = f"{short[memory.id]} {memory.kind}  "
    left = 80 if width() >= 100 else max(LEAST, width() - len(head) - len("restored "))
    return head + one_line(memory.summary or memory.content, left)


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


def relation_lines(id: str, related: Related, short: Names, indent: str) -> list[str]:
    """What a memory replaced, answers or builds on. A chain of replacements reads from the newest to the oldest."""
    lines = []
    for relation, other in related:
        word = relation_words(id, relation)
        head = f"{indent}{word} {short[other.id]} ({date(other.created_at)}): "
        left = width() - len(head)
        if left < LEAST:
            lines += wrap(head.strip(), indent)
            head, left = f"{indent}  ", width() - len(indent) - 2
        lines.append(head + one_line(other.summary or other.content, left))
    return lines


def explain_hit(hit: Hit, indent: str) -> list[str]:
    """Each signal's part in a score."""
    known = [name for name in SIGNALS if name in hit.why]
    lines = []
    for name in (*known, *(name for name in hit.why if name not in SIGNALS)):
        head = f"{indent}{name:<12}{hit.why[name]:>8.3f}  "
        lines += hang(SIGNALS.get(name, ""), head, " " * len(head))
    return lines


def hit_lines(
    answer: Answer, short: Names, first: int, explain: bool, projects: Names = NOTHING
) -> list[str]:
    """A numbered list: where each hit stands, an excerpt, what it is connected to and, if asked for, why it is there. What happened
    in a time is a list of dates."""
    if answer.query.recap:
        return [memory_line(hit.memory, short, projects) for hit in answer.hits]
    lines, sought = [], find_sought(answer.query)
    for number, hit in enumerate(answer.hits, start=first):
        memory = hit.memory
        head = style(f"{number}. [{hit.score:.2f}] ", "green") + style(memory.kind, "bold")
        place = f"{one_line(citation(memory))}  {short[memory.id]}"
        wide = width() >= NARROW or len(f"{number}. [0.00] {memory.kind}  {place}") <= width()
        place = place.removesuffix(short[memory.id]) + style(short[memory.id], "dim")
        lines += [
            head + ("  " if wide else "\n   ") + place + _tail(memory, short, projects),
            *(wrap(memory.summary, "   ") if memory.kind == "code" else ()),
            *wrap(excerpt(memory.content, sought), "   "),
            *relation_lines(memory.id, hit.related, short, "   "),
            *(explain_hit(hit, "     ") if explain else ()),
            "",
        ]
    return lines[:-1]


def answer_lines(arranged: Arranged, short: Names, projects: Names = NOTHING) -> list[str]:
    """The answer for reading: details of the best, those of one topic together, an index of the others, totals."""
    lines: list[str] = []
    number = 0
    for span, together in arranged.topics:
        if span and span.name:
            lines.append(style(f"Topic: {one_line(span.name, width() - 8)}", "bold"))
            lines += [one_line(one, width() - 2) for one in done_lines(span)]
        for hit in together:
            number += 1
            around = arranged.details[hit.memory.id].get("around", ())
            lines += [*_detail_lines(number, hit, around, short, projects), ""]
    if arranged.rest:
        lines.append("Also:" if number else "Matches:")
        lines += [
            f"  [{hit.score:.2f}] {memory_line(hit.memory, short, projects)}"
            for hit in arranged.rest
        ]
        lines.append("")
    both = arranged.both
    counts = f"{number} in full, {len(arranged.rest)} as a line, about {both.tokens_used:,} tokens"
    return [*lines, *wrap(f"{many(both.total_count, 'match')}, {counts}.", "")]


def done_lines(span: Span) -> list[str]:
    """What a topic's summary says was done, as "Done: …"."""
    return [line for line in span.summary.splitlines() if line.startswith("Done: ")]


def _detail_lines(
    number: int, hit: Hit, around: Iterable[Mapping[str, Any]], short: Names, projects: Names
) -> list[str]:
    memory = hit.memory
    title = one_line(memory.summary or memory.content, width() - 4)
    facts = (
        memory.kind,
        one_line(citation(memory)),
        date(memory.created_at),
        f"confidence {memory.confidence:.0%}",
        short[memory.id],
    )
    lines = [
        style(f"{number}. ", "green") + style(title, "bold"),
        *wrap_if_narrow(" · ".join(facts) + _tail(memory, short, projects), "   "),
    ]
    if memory.content.strip() != memory.summary.strip():
        lines += wrap(memory.content, "   ")
    for near in around:
        lines += wrap(f"{near['role']}: {one_line(near['content'], 400)}", "   | ")
    return lines + relation_lines(memory.id, hit.related, short, "   ")


def memory_lines(
    memory: Memory, related: Related, short: Names, projects: Names = NOTHING
) -> list[str]:
    """Everything about one memory."""
    changed = memory.updated_at != memory.created_at
    valid = filter(None, (date_and_time(memory.valid_from), date_and_time(memory.valid_to)))
    used = memory.access_count or memory.usefulness
    facts = {
        "kind": memory.kind,
        "source": citation(memory),
        "section": memory.section,
        "created": date_and_time(memory.created_at),
        "updated": date_and_time(memory.updated_at) if changed else "",
        "expires": date_and_time(memory.expires_at),
        "valid": " to ".join(valid),
        "importance": f"{memory.importance:g} of 10",
        "confidence": f"{memory.confidence:.0%}",
        "used": f"{many(memory.access_count, 'time')}, votes {memory.usefulness:+g}"
        if used
        else "",
        "answered": {True: "yes", False: "not yet", None: ""}[memory.answered],
        "tags": ", ".join(memory.tags),
        "entities": ", ".join(f"{entity.name} ({entity.type})" for entity in memory.entities),
        "metadata": ", ".join(f"{name}={value}" for name, value in memory.metadata.items()),
        "scope": memory.scope + (f" [{projects[memory.scope]}]" if projects else ""),
    }
    state = state_of(memory, short)
    return [
        style(memory.id, "bold") + (f" ({state})" if state else ""),
        *(
            line
            for name, value in facts.items()
            if value
            for line in hang(one_line(value), f"  {name}:", " " * 14)
        ),
        *relation_lines(memory.id, related, short, "  "),
        "",
        *wrap(memory.content, "  "),
    ]


def around_lines(memory: Memory, around: Sequence[Memory]) -> list[str]:
    """What stands around a memory where it came from."""
    if not around:
        return ["", "  Nothing else of its source is kept."]
    lines = ["", "  Around it:"]
    turn = memory.metadata.get("turn")
    for near in around:
        same = near.id == memory.id or (turn is not None and near.metadata.get("turn") == turn)
        who = f"{near.metadata['role']}: " if near.metadata.get("role") else ""
        lines.append(f"  {'>' if same else ' '} {one_line(citation(near))}")
        lines += wrap(who + near.content, "      ")
    return lines


# For models


def quote_items(
    items: Iterable[Quote | str], notes: Sequence[str] = (), budget: int | None = None
) -> str:
    """What is quoted, between marks, and behind them what Bethink says. Over budget it loses relations first, and then its end."""
    items, marker = list(items), new_marker()
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


def quote_memory(memory: Memory, short: Names, text: str | None = None, **more: Any) -> Quote:
    return Quote(
        short.get(memory.id, memory.id),
        memory.kind,
        memory.trust,
        citation(memory),
        memory.created_at,
        memory.content if text is None else text,
        state_of(memory, short),
        **more,
    )


def quote_line(memory: Memory, short: Names) -> Quote:
    """A memory on one line."""
    text = memory.summary or cut_to(memory.content, BRIEF)
    return quote_memory(memory, short, text, brief=True)


def cut_to(text: str, room: int) -> str:
    return text if tokens(text) <= room else cut(text, room)


def quote_answer(
    memory: "Bethink",
    answer: Answer,
    budget: int,
    more: str = "get_memories gives whole texts.",
    explain: bool = False,
    offset: int = 0,
) -> AnswerText:
    """An answer in the index-and-details form. `more` says how the reader gets whole texts; `offset` is where it begins."""
    if not answer.hits:
        none = "No memories match. Try other words, another mode, or no filters."
        return AnswerText("\n".join([none, *note_lines(answer.hints)]))
    arranged = arrange_answer(memory, answer, max(50, budget - FRAME), HEAD)
    short = short_ids_of_hits(memory, answer.hits)
    items: list[Quote | str] = []
    for span, together in arranged.topics:
        if span and span.name:
            items += [f"Topic: {span.name}", *(cut_to(one, DONE) for one in done_lines(span))]
        for hit in together:
            detail = arranged.details[hit.memory.id]
            around = [
                f"{near['role'] or 'near'}: {cut_to(near['content'], BESIDE)}"
                for near in detail.get("around", ())
            ]
            why = explain_hit(hit, "") if explain else ()
            beside = (*around, *_quote_relations(hit.memory, hit.related, short), *why)
            items.append(quote_memory(hit.memory, short, detail["content"], beside=beside))
    rest = [quote_line(hit.memory, short) for hit in arranged.rest]
    full = len(arranged.details)
    if rest:
        items += [f"Also ({len(rest)}):" if full else f"Matches ({len(rest)}):", *rest]
    following = find_following(offset + full + len(rest), answer.total)
    totals = f"{full} in full, {len(rest)} as a line, {answer.total:,} found."
    notes = [
        " ".join([totals, *([more] if rest else []), *following_line(following)]),
        *note_lines(answer.hints),
    ]
    return AnswerText(quote_items(items, notes, budget), following)


def quote_list(
    memory: "Bethink", found: Sequence[Memory], total: int, budget: int, offset: int
) -> AnswerText:
    """Memories on a line each, as many as fit."""
    if not found:
        return AnswerText("No memories match.")
    short = short_ids(memory, found)
    items = [quote_line(one, short) for one in found]
    while len(items) > 1 and tokens(fence_items(items, new_marker())) > budget - LISTED:
        items.pop()
    following = find_following(offset + len(items), total)
    totals = f"{len(items)} of {total:,}. get_memories gives whole texts."
    notes = [" ".join([totals, *following_line(following)])]
    return AnswerText(quote_items(items, notes, budget), following)


def find_following(after: int, total: int) -> int | None:
    """The offset at which the rest begins, if there is a rest."""
    return after if after < total else None


def following_line(following: int | None) -> list[str]:
    return [] if following is None else [f"The next begin at offset {following}."]


def quote_memories(memory: "Bethink", found: Sequence[Memory], budget: int) -> list[Quote]:
    """Memories in full with what they are connected to, each within its share of the budget."""
    related = related_memories(memory, found)
    others = {other.id for pairs in related.values() for _, other in pairs}
    short = short_ids(memory, found, others)
    items, left = [], budget - FRAME
    for number, one in enumerate(found):
        facts = _quote_facts(one)
        connected = _quote_relations(one, related[one.id], short, most=20)
        beside = (*((facts,) if facts else ()), *connected)
        frame = sum(map(tokens, beside)) + tokens(citation(one)) + HEAD
        room = max(50, left // (len(found) - number) - frame)
        text = one.content
        if tokens(text) > room:
            all_of_it = (
                f"{len(one.content):,} characters in all; ask for it alone or with more max_tokens"
            )
            text = f"{cut(text, room - 20)}\n[{all_of_it}]"
        left -= tokens(text) + frame
        items.append(quote_memory(one, short, text, beside=beside))
    return items


def quote_handoff(memory: "Bethink", found: "Latest") -> str:
    """The last handoff with the memories that it names."""
    notes, items = [], []
    if not found.exact:
        wanted = f"branch {clean_line(found.asked)}" if found.asked else "a place outside git"
        notes.append(f"There is none for {wanted}; this is the newest of another.")
        branch = found.handoff.branch
        items.append(f"Of branch {branch}:" if branch else "Of no branch:")
    if age := found.age(memory.clock()):
        notes.append(f"It is {age}.")
    named = [
        one
        for one in memory.store.get(found.handoff.memory_ids)
        if one.scope in memory.scopes and not one.deleted_at
    ]
    short = short_ids(memory, [found.memory, *named])
    lines = [quote_line(one, short) for one in named]
    budget = HANDOFF + 60 * len(named)
    facts = _quote_object(found.handoff.metadata)
    whole = quote_memory(found.memory, short, beside=(f"metadata: {facts}",) if facts else ())
    return quote_items([*items, whole, *lines], notes, budget)


def _quote_facts(one: Memory) -> str:
    facts = {
        "importance": f"{one.importance:g}" if one.importance != 5 else "",
        "confidence": f"{one.confidence:.0%}" if one.confidence < 1 else "",
        "votes": f"{one.usefulness:+g}" if one.usefulness else "",
        "expires": f"{one.expires_at:%Y-%m-%d}" if one.expires_at else "",
        "section": one.section or "",
        "tags": ", ".join(one.tags),
        "entities": ", ".join(entity.name for entity in one.entities),
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
