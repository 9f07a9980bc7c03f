"""The operations for looking around and for keeping order: conversations, what stands around something, what is to be decided,
duplicates, how memory is doing, with whom it is shared, and jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bethink.errors import NotFound
from bethink.features import condition, conversations, graph, inbox, tending, timeline
from bethink.recall.shape import plain
from bethink.surface.http import schemas
from bethink.surface.http.background import Job, job_scope
from bethink.surface.http.operation import (
    Call,
    Cursor,
    Reply,
    operation,
    read_cursor,
    read_page,
    write_cursor,
)
from bethink.surface.http.problems import Forbidden
from bethink.surface.http.projects import NOWHERE
from bethink.text.when import moment
from bethink.types import PERSONAL, Session, Span, Words

READER_FIELDS = ("name", "scope", "personal", "used", "expires")
SESSION_FIELDS = ("id", "host", "title", "source", "started_at", "ended_at")
RECALLS = ("/", "/api/v1/search", "/api/v1/recall")  # routes that are a recall and nothing else
PROMOTING = ("promote", "undo-promote")
WHOLE_DATABASE = (
    "entities relations sources sessions spans vectors unembedded database_bytes cached"
).split()
EVERYWHERE = "`bethink token create --all-projects`"


# Conversations


@operation("Conversations", "GET", "/sessions", "Sessions", schemas.Paged)
def list_sessions(call: Call) -> dict[str, Any]:
    """Conversations, newest first."""

    def fetch(number: int, offset: int) -> Sequence[Session]:
        return conversations.sessions(call.memory, number, offset)

    shown, following = read_page(call, call.query, fetch)
    return {"items": [_session_fields(one) for one in shown], "next": following}


@operation("Conversations", "GET", "/sessions/{id}", "OneSession")
def get_session(call: Call) -> dict[str, Any]:
    """One conversation and what it was about: topics in order, sub-topics after their topics."""
    session = conversations.session(call.memory, call.path["id"])
    spans = conversations.topics(call.memory, session)
    topics = [{**_topic_fields(one), "parent": one.parent, "depth": one.depth} for one in spans]
    return {**_session_fields(session), "topics": topics}


@operation("Conversations", "GET", "/timeline", "Timeline", schemas.Timeline)
def show_timeline(call: Call) -> dict[str, Any]:
    """Conversations by the day they began on, newest first, with their topics and how much of each they were."""
    memory, asked = call.memory, call.query
    scopes = memory.every_scope() if asked.all_projects else memory.scopes

    def fetch(number: int, offset: int) -> Sequence[Session]:
        return timeline.sessions(memory, scopes, asked.host, number, offset)

    shown, following = read_page(call, asked, fetch)
    days = []
    for day in timeline.days(memory, shown):
        date = day.date.isoformat() if day.date else None
        days.append({"date": date, "sessions": [_conversation(one) for one in day.sessions]})
    return {"days": days, "next": following}


@operation("Conversations", "GET", "/sessions/{id}/turns", "Turns", schemas.Turns)
def list_turns(call: Call) -> dict[str, Any]:
    """What was said in a conversation, in order, with the ideas that were taken from each turn."""
    memory, asked = call.memory, call.query
    session = conversations.session(memory, call.path["id"])
    cursor = read_cursor(call, asked)
    found, total = timeline.turns(memory, session, asked.topic, asked.limit, cursor.at)
    at = cursor.at + len(found)
    more = bool(found) and at < total
    items = [{**plain(one.turn), "ideas": one.ideas} for one in found]
    following = write_cursor(Cursor(at), call, asked) if more else None
    return {"items": items, "next": following, "total": total}


def _session_fields(session: Session) -> dict[str, Any]:
    return {name: getattr(session, name) for name in SESSION_FIELDS}


def _topic_fields(span: Span) -> dict[str, Any]:
    return {name: getattr(span, name) for name in ("id", "name", "summary", "lines")}


def _conversation(one: timeline.Conversation) -> dict[str, Any]:
    topics = [{**_topic_fields(band.span), "share": round(band.share, 4)} for band in one.bands]
    return {**_session_fields(one.session), "scope": one.session.scope, "topics": topics}


# Around something


@operation("Find", "GET", "/graph", "Graph", schemas.Graph, meaning=True)
def show_graph(call: Call) -> graph.Graph:
    """Memories, the things they are about and their relations around a focus, nearest first."""
    asked = call.query
    return graph.around(call.memory, asked.focus, asked.query, limit=asked.limit, depth=asked.depth)


@operation("Find", "GET", "/scopes", "Scopes")
def list_scopes(call: Call) -> dict[str, Any]:
    """The projects and containers that the token is for, and what is personal: how many memories each holds, forgotten ones included,
    and when the last was told. Costs next to nothing, however much there is."""
    projects = call.tools.projects
    store, known = projects.store_of(call.caller), projects.listed(call.caller)
    if call.caller.personal:
        known = [*known, (PERSONAL, PERSONAL, None)]
    items = []
    for scope, name, path in known:
        newest = store.list(call.memory.filter(scopes=(scope,)), 1)
        items.append(
            {
                "scope": scope,
                "name": name,
                "path": path,
                "default": scope == call.memory.scope,
                "memories": store.statistics(Words(), (scope,)).memories,
                "last": newest[0].created_at if newest else None,
            }
        )
    return {"items": items}


# Order


@operation("Care", "GET", "/duplicates", "Pairs", schemas.Pairs, meaning=True)
def list_duplicates(call: Call) -> dict[str, Any]:
    """Memories that say the same, or nearly so, the surest first: the one to keep, and the other."""
    return _pairs(tending.find_duplicates(call.memory, limit=call.query.limit))


@operation("Care", "GET", "/contradictions", "Pairs", schemas.Pairs, meaning=True)
def list_contradictions(call: Call) -> dict[str, Any]:
    """Memories that disagree, the newer one first."""
    return _pairs(tending.find_contradictions(call.memory, limit=call.query.limit))


def _pairs(found: Sequence[tending.Pair]) -> dict[str, Any]:
    return {"items": [pair._replace(similarity=round(pair.similarity, 4)) for pair in found]}


@operation(
    "Care",
    "POST",
    "/consolidation",
    "Consolidated",
    body=schemas.Consolidate,
    scope="write",
    meaning=True,
)
def consolidate(call: Call) -> dict[str, Any]:
    """Merges what says the same, marks contradictions and answered questions, retires what expired. Only says what it would do,
    unless `dry_run` is false. `restore` undoes each step."""
    steps = tending.plan_consolidation(call.memory)
    done = 0 if call.body.dry_run else tending.apply_steps(call.memory, steps)
    shown = [{**step._asdict(), "memories": [one.id for one in step.memories]} for step in steps]
    return {"steps": shown, "done": done, "dry_run": call.body.dry_run}


@operation("Care", "GET", "/inbox", "Inbox", schemas.Inbox, meaning=True)
def show_inbox(call: Call) -> dict[str, Any]:
    """What is to be decided: duplicates, contradictions, what is hardly believed, open questions, what could be a rule."""
    asked = call.query
    found = inbox.list_queue(call.memory, asked.queue, asked.limit, asked.start)
    acts = [name for name, act in inbox.ACTS.items() if asked.queue in act.queues]
    if not _may_promote(call):
        acts = [name for name in acts if name not in PROMOTING]
    items = [
        {"memories": item.memories, "reason": item.reason, "acts": acts} for item in found.items
    ]
    return {**found._asdict(), "queue": asked.queue, "items": items}


@operation("Care", "POST", "/inbox", "Acted", body=schemas.Act, scope="write")
def decide(call: Call) -> inbox.Done:
    """Decides about one item of the inbox, or takes a decision back."""
    if call.body.act in PROMOTING and not _may_promote(call):
        raise Forbidden(
            "Rules are written only by the owner, into a project on this machine: agents obey them.",
            "Use `bethink promote` there.",
        )
    return inbox.decide(call.memory, call.body.act, call.body.ids)


def _may_promote(call: Call) -> bool:
    return call.caller.owner and call.memory.project.root != NOWHERE


# How memory is doing


@operation("Care", "GET", "/stats", "Stats")
def show_stats(call: Call) -> dict[str, Any]:
    """Memories by kind and by project, of all that the token is for."""
    names = {scope: name for scope, name, _ in call.tools.projects.listed(call.caller)}
    seen = call.memory.stats([*names, *([PERSONAL] if call.caller.personal else [])])
    whole = {name: getattr(seen, name) for name in WHOLE_DATABASE}
    return {
        "memories": seen.memories,
        "deleted": seen.deleted,
        "by_kind": seen.by_kind,
        "by_scope": seen.by_scope,
        "scope_names": {scope: names[scope] for scope in seen.by_scope if scope in names},
        "database": whole if call.caller.everywhere else None,
    }


@operation("Care", "GET", "/health", "Health")
def check_health(call: Call) -> dict[str, Any]:
    """What is wrong with the database, if anything is. For tokens of every project."""
    if not call.caller.everywhere:
        message = "The health of the whole database is for tokens of every project."
        raise Forbidden(message, EVERYWHERE)
    problems = call.memory.check()
    status = "problems" if problems else "ok"
    return {"status": status, "problems": problems, "hints": call.memory.hints}


@operation("Care", "GET", "/condition", "Condition")
def show_condition(call: Call) -> dict[str, Any]:
    """Capture by host, what waits, size and growth, the cost of a language model, how long searches take, what doctor says. What
    takes long is counted in the background; the last answer is given meanwhile. For tokens of every project."""
    if not call.caller.everywhere or call.caller.tenant:
        # One tenant must not learn how many others there are.
        message = "The condition of the whole database is for tokens of every project."
        raise Forbidden(message, EVERYWHERE)
    projects, check, measured = call.tools.projects, call.tools.checkup, call.tools.metrics
    counted = check.counted.get(lambda: condition.examine(projects.base))
    checked = check.checked.get(lambda: check.run_doctor(projects.home, projects.database))
    quantiles = {f"p{share}": measured.quantile(RECALLS, share / 100) for share in (50, 95)}
    milliseconds = {
        name: None if seconds is None else round(seconds * 1000, 1)
        for name, seconds in quantiles.items()
    }
    return {
        "condition": counted,
        "doctor": checked,
        "running": check.running,
        "recall": {"searches": measured.number(RECALLS), **milliseconds},
    }


@operation("Care", "POST", "/condition", "Condition", scope="write")
def check_again(call: Call) -> dict[str, Any]:
    """Counts and checks anew, and says at once what was known before."""
    call.tools.checkup.renew()
    return show_condition(call)


@operation("Care", "GET", "/tokens", "Shared")
def list_readers(call: Call) -> dict[str, Any]:
    """Who else can read or change memories here: the tokens that work, and what they are for. For the owner."""
    if not call.caller.owner:
        hint = "`bethink token list` on that machine."
        raise Forbidden("Who holds tokens is for the owner to know.", hint)
    now = call.memory.clock()
    items = [
        {
            **{name: getattr(token, name) for name in READER_FIELDS},
            "projects": None if token.projects is None else [one.scope for one in token.projects],
        }
        for token in call.tools.tokens.known()
        if token.state(now) == "active"
    ]
    return {"items": items}


# Jobs


@operation("Jobs", "POST", "/jobs", "Job", body=schemas.NewJob, scope="write", status=202)
def start_job(call: Call) -> Reply:
    """Begins work on the server's own project and returns at once; `GET /jobs/{id}` shows how far it is. One job at a time."""
    memory, asked, caller = call.memory, call.body, call.caller
    # By its folder: a project of the same name may be another tenant's.
    if memory.project.root != call.tools.projects.home.root:
        raise Forbidden(
            "Files are read only for the server's own project.",
            "Run the command on the project's own machine.",
        )
    if asked.task == "backfill" and caller.tenant:
        raise Forbidden(
            "Conversations on the server's machine are its owner's, not the team's.",
            "Run `bethink backfill` on your own.",
        )
    if (asked.task == "backfill" or asked.full) and not caller.everywhere:
        message = f"{asked.task} touches every project, and this token is not for all."
        raise Forbidden(message, EVERYWHERE)
    since = moment(asked.since, memory.clock()) if asked.since else None
    return Reply(_job_fields(call.tools.jobs.start(asked.task, memory, since, asked.full)), 202)


@operation("Jobs", "GET", "/jobs", "Jobs")
def list_jobs(call: Call) -> dict[str, Any]:
    """The jobs of this project since the server started, newest first."""
    return {"items": [_job_fields(job) for job in _jobs(call)]}


@operation("Jobs", "GET", "/jobs/{id}", "Job")
def get_job(call: Call) -> dict[str, Any]:
    """How far a job is, and what came of it."""
    for job in _jobs(call):
        if job.id == call.path["id"]:
            return _job_fields(job)
    raise NotFound(f"There is no job '{call.path['id'][:40]}'.", "GET /api/v1/jobs lists them.")


def _jobs(call: Call) -> list[Job]:
    return [job for job in call.tools.jobs.all() if job.scope == job_scope(call.memory)]


def _job_fields(job: Job) -> dict[str, Any]:
    return {name: value for name, value in job._asdict().items() if name != "scope"}
