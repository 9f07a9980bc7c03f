"""Command-line views of the results of `operations/overview.py`."""

from bethink.api import Bethink
from bethink.app import render
from bethink.app.cli.console import Console, Result, shows
from bethink.app.operations import overview
from bethink.app.operations.overview import Conversations, Failures, Stats
from bethink.app.records import session_record
from bethink.app.render import describe_value, one_line
from bethink.features.failures import KnownFailure


@shows(overview.sessions)
def show_sessions(console: Console, memory: Bethink, found: Conversations) -> Result:
    if not found.conversations:
        more = "`bethink backfill --all` reads the transcripts that agents keep on this machine."
        return Result([], notes=["No conversations are known here."], hints=[more])
    labels = render.label_scopes(memory) if memory.everywhere else {}
    records, lines = [], []
    for session, spans in found.conversations:
        records.append(session_record(session, spans))
        project = f"  [{one_line(labels[session.scope])}]" if labels else ""
        lines += render.talk_lines(session, spans, project, found.full)
    return Result(records, lines, stored=True)


shows(overview.topics)(show_sessions)


@shows(overview.failures)
def show_failures(console: Console, memory: Bethink, found: Failures) -> Result:
    if not found.failures:
        none, more = "No unsolved failures.", ""
        if not found.unsolved:
            none = "No failed commands are known here."
            more = "`bethink backfill` reads them from the agents' transcripts."
        return Result([], notes=[none], hints=[more])
    short = memory.store.abbreviate([one.id for one in found.failures])
    lines: list[str] = []
    for one in found.failures:
        times = "once" if one.times == 1 else f"{one.times} times"
        lines += [
            f"{short[one.id]}  {f'{one.cause}, ' if one.cause != 'other' else ''}{times}, last {one.last[:10]}",
            f"  `{one_line(one.command, 160)}`: {one_line(one.error, 160)}",
            f"  {describe_state(one)}",
        ]
    return Result([one._asdict() for one in found.failures], lines, stored=True)


def describe_state(one: KnownFailure) -> str:
    """Return the fix of a failure and how it did since, or that there is none."""
    if not one.fix:
        return "unsolved" if one.open else "closed without a known fix"
    helped = f" (helped {one.held} times)" if one.held > 1 else ""
    failed = "once" if one.did_not_help == 1 else f"{one.did_not_help} times"
    vain = f" (did not help {failed})" if one.did_not_help else ""
    return f"fix: {one_line(one.fix, 300)}{helped}{vain}"


@shows(overview.stats)
def show_stats(console: Console, memory: Bethink, found: Stats) -> Result:
    usage = found.language_model
    value = {
        **found.numbers._asdict(),
        "database": found.database,
        "bytes_per_memory": found.bytes_per_memory,
        "scope_names": found.scope_names,
        "language_model": usage,
    }
    labels = render.label_scopes(memory)
    shown = {
        **value,
        "by_scope": {labels[scope]: number for scope, number in value["by_scope"].items()},
        "scope_names": None,
        "language_model": usage if usage["model"] or usage["tokens"] else None,
    }
    return Result(value, describe_value(shown | ({} if found.every else {"memories": "none"})))
