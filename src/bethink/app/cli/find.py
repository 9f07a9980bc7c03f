"""Command-line views of the results of `operations/find.py`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bethink.api import Bethink
from bethink.app import render
from bethink.app.cli.console import Console, Result, offer_languages, shows
from bethink.app.operations import find
from bethink.app.operations.find import NO_LIMIT, Day, Listed, SearchResult, Shown
from bethink.app.records import recall_record, version_records
from bethink.app.render import cell, date, date_and_time, one_line
from bethink.errors import UsageError
from bethink.model import Event, Memory
from bethink.recall.shape import plain, plain_hit

if TYPE_CHECKING:
    from bethink.features.explain import Explanation

_BEGIN = (
    '`bethink init` reads this project; `bethink add "We deploy on Fridays"` adds a first memory.'
)
_OTHER = (
    "Try other words, fewer filters, --include-expired, --include-superseded or --all-projects;"
    " `bethink list` shows what there is."
)
_WHOLE = "`bethink get ID` shows whole texts."
AGENT_TOKENS = 4000  # of each memory that an agent gets in full, as by MCP for two
NO_REASON = "No separate reason recorded; this is the full statement."


@shows(find.search)
def show_search(console: Console, memory: Bethink, found: SearchResult) -> Result:
    """A list of hits, or within a token budget the best in full and an index of the others."""
    answer, arranged = found.answer, None
    if found.budget is not None:
        if console.format not in ("text", "json"):
            raise UsageError(
                f"--dual is not available as {console.format}.", "Use --format text or json."
            )
        quoted = console.for_agent and console.format == "text"
        form = render.Form(quoted, console.format != "text", _WHOLE)
        arranged = render.arrange_answer(memory, answer, found.budget, form, found.offset)
    more, (none_open, known) = "", render.split_hints(answer)
    if not answer.total and not none_open:
        more = _OTHER if memory.store.count(memory.filter()) else _BEGIN
    shown = Result(
        notes=["" if answer.hits else render.describe_none(answer)],
        hints=[*known, offer_languages(memory, answer.query.raw), more],
        fields=("why",) if found.explain else (),
        about={"query": answer.query.raw},
    )
    if console.format != "text":
        hits = [plain_hit(hit, found.explain) for hit in answer.hits]
        return shown._replace(value=recall_record(arranged) if arranged else hits)
    if not arranged or not answer.hits:
        return shown._replace(items=render.show_hits(memory, answer, found.explain))
    return shown._replace(notes=arranged.notes[:1], items=arranged.items)


shows(find.recall)(show_search)


@shows(find.why)
def show_why(console: Console, memory: Bethink, found: "tuple[str, Explanation | None]") -> Result:
    subject, explanation = found
    if explanation is None:
        nothing = f"No decision about {one_line(subject, 80)} is known."
        return Result(notes=[nothing], hints=["`bethink recall` looks for anything about it."])
    decision, source = explanation.decision, explanation.because_from
    others = {
        "replaced": explanation.replaced,
        "may replace": explanation.may_replace,
        "newer": explanation.newer,
    }
    listed = [one for memories in others.values() for one in memories]
    names = render.short_ids(memory, [decision, *listed, *([source] if source else ())])

    def cite(one: Memory) -> str:
        return f"{names[one.id]} ({date(one.created_at)})"

    beside = [NO_REASON]
    if explanation.because:
        beside = [f"reason{f', from {cite(source)}' if source else ''}: {explanation.because}"]
    for relation, memories in others.items():
        beside += [f"{relation} {cite(one)}: {one.summary or one.content}" for one in memories]
    if explanation.said:
        speaker = explanation.said.metadata.get("role") or "unknown"
        beside.append(
            f"{speaker} said: {render.quote_around(explanation.said.content, decision.content)}"
        )
    whole = render.quote_memory(decision, names, beside=tuple(beside))
    return Result(explanation._asdict(), items=[whole])


@shows(find.today)
def show_day(console: Console, memory: Bethink, found: Day) -> Result:
    none = f"Nothing was noted {found.when}."
    noted = [one for one in found.memories if one.kind != "context"]
    if console.format != "text" or not (found.sessions or noted):
        other = "" if found.memories else "`bethink sessions` lists what conversations did."
        return memories_result(console, memory, found.memories, none, other)
    items: render.Items = []
    if found.sessions:
        items = [
            f"Sessions ({len(found.sessions)}):",
            *render.quote_digests(memory, found.sessions),
        ]
    if noted:
        items += [f"Noted ({len(noted)}):"] if items else []
        items += render.quote_lines(memory, noted)
    hint = "`bethink sessions` lists older conversations." if found.sessions else ""
    return Result(found.memories, items=items, hints=[hint])


def memories_result(
    console: Console, memory: Bethink, found: Sequence[Memory], none: str, hint: str = ""
) -> Result:
    """Memories on a line each."""
    items = render.quote_lines(memory, found) if console.format == "text" else ()
    return Result(found, notes=["" if found else none], hints=[hint], items=items)


@shows(find.get)
def show_memories(console: Console, memory: Bethink, found: Shown) -> Result:
    budget = AGENT_TOKENS * len(found.memories) if console.for_agent else NO_LIMIT
    items = render.show_memories(memory, found.memories, budget, console.for_agent)
    if found.around is None:
        return Result(found.memories, items=items)
    records: list[Any] = []
    for one in found.memories:
        near = found.around[one.id]
        names = render.short_ids(memory, near)
        items += [f"Around {one.id}:", *(render.quote_memory(each, names) for each in near)]
        records.append({**plain(one), "around": near})
    return Result(records, items=items)


@shows(find.list_)
def show_list(console: Console, memory: Bethink, found: Listed) -> Result:
    shown, total, hint = len(found.memories), found.total, ""
    if total > found.offset + shown:
        hint = f"{shown} of {total:,} are shown; --all shows every one."
    elif not total and not memory.store.count(memory.filter()):
        hint = _BEGIN
    none = render.describe_empty(total) if total else "No memories."
    return memories_result(console, memory, found.memories, none, hint)


@shows(find.todo)
def show_open(console: Console, memory: Bethink, found: Listed) -> Result:
    shown, hint = len(found.memories), ""
    if found.total > shown:
        hint = f"{shown} of {found.total:,} are shown; --limit shows more."
    return memories_result(console, memory, found.memories, "Nothing is open.", hint)


@shows(find.history)
def show_history(console: Console, memory: Bethink, found: Sequence[Event]) -> Result:
    records = version_records(found)
    lines = []
    for record in records:
        at = date_and_time(record["at"])
        lines.append(f"{record['version']}  {at}  {record['actor']}  {record['action']}")
        for name, after in record["after"].items():
            if name != "keywords":  # which follow from the text
                values = (record["before"].get(name), after)
                old, new = (one_line(cell(value)) or "(none)" for value in values)
                lines.append(f"     {name}: {old} → {new}")
    return Result(records, lines, stored=True)
