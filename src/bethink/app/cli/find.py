"""`search`, `recall`, `why`, `today`, `get`, `list`, `history`, `sessions`, `topics`, `failures` and `stats`: what memory holds."""

import re
from collections.abc import Sequence
from types import SimpleNamespace as Namespace
from typing import Any

from bethink.api import Bethink
from bethink.app import operations, render
from bethink.app.cli.console import Result, offer_languages, read_text
from bethink.app.render import cell, date, date_and_time, describe_value, one_line
from bethink.errors import UsageError
from bethink.model import OPEN_KINDS, Memory
from bethink.recall.shape import plain, plain_hit
from bethink.text import replace_broken

NO_LIMIT = 2**62
BEGIN = (
    '`bethink init` reads this project; `bethink add "We deploy on Fridays"` tells it something.'
)
OTHER = (
    "Try other words, fewer filters, --include-expired, --include-superseded or --all-projects;"
    " `bethink list` shows what there is."
)
WHOLE = "`bethink get ID` gives whole texts."
AROUND = 3  # turns or passages on either side of a memory
AGENT_TOKENS = 4000  # of each memory that an agent gets in full, as by MCP for two


# A question


def search(args: Namespace, memory: Bethink) -> Result:
    query = read_text(args.query, None, 'bethink search "how do we deploy?"')
    dual = args.dual or args.max_tokens is not None
    if dual and args.format not in ("text", "json"):
        raise UsageError(f"--dual has no form as {args.format}.", "Use --format text or json.")
    return ask(args, memory, query, dual, args.rerank, args.explain)


def recall(args: Namespace, memory: Bethink) -> Result:
    question = read_text(args.question, None, 'bethink recall "why did we leave MySQL?"')
    return ask(args, memory, question, True, not args.no_rerank)


def ask(
    args: Namespace, memory: Bethink, question: str, dual: bool, rerank: bool, explain: bool = False
) -> Result:
    """The answer to a question: a list of hits, or in the `dual` form the best in full and an index of the others."""
    # What a terminal gives may be no UTF-8, and a search takes any input.
    query = replace_broken(question)
    how = {"seed": args.seed, "rerank": rerank}
    arranged = None
    if dual:
        quoted = args.for_agent and args.format == "text"
        form = render.Form(quoted, args.format != "text", WHOLE)
        arranged = operations.recall(memory, query, args, form, **how)
        answer = arranged.answer
    else:
        how |= {"limit": args.limit, "offset": args.offset}
        answer = operations.search(memory, query, args, **how)
    more, (none_open, known) = "", render.split_hints(answer)
    if not answer.total and not none_open:
        more = OTHER if memory.store.count(memory.filter()) else BEGIN
    hints = [*known, offer_languages(memory, answer.query.raw), more]
    told = Result(notes=["" if answer.hits else render.say_none(answer)], hints=hints)
    if args.format != "text":
        hits = [plain_hit(hit, explain) for hit in answer.hits]
        return told._replace(value=operations.recall_record(arranged) if arranged else hits)
    if not arranged or not answer.hits:
        return told._replace(items=render.show_hits(memory, answer, explain))
    return told._replace(notes=arranged.notes[:1], items=arranged.items)


# Why something is as it is

NO_REASON = "No separate reason recorded; this is the full statement."


def why(args: Namespace, memory: Bethink) -> Result:
    from bethink.features.explain import explain

    asked = " ".join(args.subject)
    subject = re.sub(r"(?i)^(?:(?:why|not|no)\b\s*)+", "", asked) or asked
    found = explain(memory, subject)
    if found is None:
        nothing = f"No decision about {one_line(subject, 80)} is known."
        return Result(notes=[nothing], hints=["`bethink recall` looks for anything about it."])
    decision, source = found.decision, found.because_from
    others = [*found.replaced, *found.may_replace, *found.newer, *([source] if source else ())]
    names = render.short_ids(memory, [decision, *others])

    def cite(one: Memory) -> str:
        return f"{names[one.id]} ({date(one.created_at)})"

    beside = [NO_REASON]
    if found.because:
        beside = [f"reason{f', from {cite(source)}' if source else ''}: {found.because}"]
    for word in ("replaced", "may_replace", "newer"):
        for one in getattr(found, word):
            beside.append(f"{word.replace('_', ' ')} {cite(one)}: {one.summary or one.content}")
    if found.said:
        speaker = found.said.metadata.get("role") or "somebody"
        beside.append(f"{speaker} said: {found.said.content}")
    whole = render.quote_memory(decision, names, beside=tuple(beside))
    return Result(found._asdict(), items=[whole])


# By id and by time


def today(args: Namespace, memory: Bethink) -> Result:
    when = args.when or "today"
    answer = memory.search(f"what did we do {when}", limit=args.limit)
    if not answer.query.recap:
        example = "Write a day or a span: yesterday, 'last week', 'since monday', 2026-03-01."
        raise UsageError(f"'{when}' is not a time.", example)
    found = [hit.memory for hit in answer.hits if "in_time" in hit.why]
    return memories_result(args, memory, found, f"Nothing was noted {when}.")


def memories_result(
    args: Namespace, memory: Bethink, found: Sequence[Memory], none: str, hint: str = ""
) -> Result:
    """Memories on a line each."""
    items = render.quote_lines(memory, found) if args.format == "text" else ()
    return Result(found, notes=["" if found else none], hints=[hint], items=items)


def get(args: Namespace, memory: Bethink) -> Result:
    found = memory.get(*args.id)
    budget = AGENT_TOKENS * len(found) if args.for_agent else NO_LIMIT
    items = render.show_memories(memory, found, budget, args.for_agent)
    records: list[Any] = []
    for one in found if args.source else ():
        near = memory.store.around(one.id, AROUND, AROUND) if one.path else []
        names = render.short_ids(memory, near)
        items += [f"Around {one.id}:", *(render.quote_memory(each, names) for each in near)]
        records.append({**plain(one), "around": near})
    return Result(records or found, items=items)


def list_(args: Namespace, memory: Bethink) -> Result:
    wanted = operations.make_filter(memory, args)
    limit = NO_LIMIT if args.all else args.limit
    found = memory.list(filter=wanted, limit=limit, offset=args.offset, order=args.order)
    total, hint = memory.store.count(wanted), ""
    if total > args.offset + len(found):
        hint = f"{len(found)} of {total:,} are shown; --all shows every one."
    elif not total and not memory.store.count(memory.filter()):
        hint = BEGIN
    none = render.say_empty(total) if total else "No memories."
    return memories_result(args, memory, found, none, hint)


def todo(args: Namespace, memory: Bethink) -> Result:
    scopes = memory.every_scope() if args.all_projects else ()
    wanted = memory.filter(kinds=OPEN_KINDS, answered=False, scopes=scopes)
    found = memory.list(filter=wanted, limit=args.limit)
    total = memory.store.count(wanted)
    more = f"{len(found)} of {total:,} are shown; --limit shows more." if total > len(found) else ""
    return memories_result(args, memory, found, "Nothing is open.", more)


def history(args: Namespace, memory: Bethink) -> Result:
    records = operations.version_records(memory.history(args.id))
    lines = []
    for record in records:
        at = date_and_time(record["at"])
        lines.append(f"{record['version']}  {at}  {record['actor']}  {record['action']}")
        for name, after in record["after"].items():
            if name != "keywords":  # which follow from the text
                old, new = (
                    one_line(cell(it)) or "(none)" for it in (record["before"].get(name), after)
                )
                lines.append(f"     {name}: {old} → {new}")
    return Result(records, lines, stored=True)


# Conversations


def sessions(args: Namespace, memory: Bethink) -> Result:
    return talks_result(args, memory)


def topics(args: Namespace, memory: Bethink) -> Result:
    return talks_result(args, memory, topics=True)


def talks_result(args: Namespace, memory: Bethink, topics: bool = False) -> Result:
    """The conversations that are asked for, each with its topics or with its digest."""
    from bethink.features import conversations

    chosen = [memory.find_session(args.session)] if args.session else []
    chosen = chosen or conversations.sessions(memory, args.limit)
    if not chosen:
        more = "`bethink backfill --all` reads what the agents on this machine keep."
        return Result([], notes=["No conversations are known here."], hints=[more])
    labels = render.label_scopes(memory) if args.all_projects else {}
    records, lines = [], []
    for session in chosen:
        spans = conversations.topics(memory, session) if topics else None
        records.append(operations.session_record(session, spans))
        project = f"  [{one_line(labels[session.scope])}]" if labels else ""
        full = topics and bool(args.tree or args.session)
        lines += render.talk_lines(session, spans, project, full)
    return Result(records, lines, stored=True)


def failures(args: Namespace, memory: Bethink) -> Result:
    from bethink.features.failures import list_failures

    found = list_failures(memory, args.open, args.limit)
    if not found:
        none = "No unsolved failures." if args.open else "No failed commands are known here."
        more = "" if args.open else "`bethink backfill` reads them from the agents' transcripts."
        return Result([], notes=[none], hints=[more])
    short = memory.store.abbreviate([one.id for one in found])
    lines: list[str] = []
    for one in found:
        times = "once" if one.times == 1 else f"{one.times} times"
        lines += [
            f"{short[one.id]}  {one.cause}, {times}, last {one.last[:10]}",
            f"  `{one_line(one.command, 160)}`: {one_line(one.error, 160)}",
            f"  fix: {one_line(one.fix, 300)}" if one.fix else "  unsolved",
        ]
    return Result([one._asdict() for one in found], lines, stored=True)


# Numbers


def stats(args: Namespace, memory: Bethink) -> Result:
    from bethink.features import language

    value = memory.stats(memory.scopes if args.this_project else None)._asdict()
    known = memory.store.scopes()
    every, usage = value["memories"] + value["deleted"], language.report_usage(memory)
    value |= {
        "database": str(memory.store.path),
        "bytes_per_memory": round(value["database_bytes"] / every) if every else 0,
        "scope_names": {scope: known[scope] for scope in value["by_scope"] if known[scope]},
        "language_model": usage,
    }
    labels = render.label_scopes(memory)
    told = {
        **value,
        "by_scope": {labels[scope]: number for scope, number in value["by_scope"].items()},
        "scope_names": None,
        "language_model": usage if usage["model"] or usage["tokens"] else None,
    }
    return Result(value, describe_value(told | ({} if every else {"memories": "none"})))
