"""The operations about conversations, order and health: sessions, duplicates, contradictions, consolidation, numbers, jobs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from bethink.errors import NotFound
from bethink.features import conversations, tending
from bethink.features.tending import Pair
from bethink.recall.shape import iso, plain
from bethink.surface.http import answers, cursors, jobs, schemas
from bethink.surface.http.operation import Call, Operation, Reply
from bethink.surface.http.problems import Forbidden
from bethink.text.when import moment
from bethink.types import Session

WHOLE = (
    "entities",
    "relations",
    "sources",
    "sessions",
    "spans",
    "vectors",
    "unembedded",
    "database_bytes",
    "cached",
)


def list_sessions(call: Call) -> dict[str, Any]:
    """Conversations, newest first."""
    question = {**call.query.model_dump(), "scopes": call.memory.scopes, "method": "sessions"}
    cursor = cursors.read(call.query.cursor, question)
    offset, number = cursors.window(cursor, call.query.limit)
    found = conversations.sessions(call.memory, number, offset)
    shown, following = cursors.page(found, [one.id for one in found], cursor, call.query.limit)
    return {
        "items": [session_fields(one) for one in shown],
        "next": cursors.written(following, question) if following else None,
    }


def get_session(call: Call) -> dict[str, Any]:
    """One conversation and what it was about: topics in order, sub-topics after their topics."""
    session = conversations.session(call.memory, call.path["id"])
    topics = [
        {
            "id": span.id,
            "parent": span.parent,
            "name": span.name,
            "summary": span.summary,
            "lines": list(span.lines),
            "depth": span.depth,
        }
        for span in conversations.topics(call.memory, session)
    ]
    return {**session_fields(session), "topics": topics}


def session_fields(session: Session) -> dict[str, Any]:
    return {
        "id": session.id,
        "host": session.host,
        "title": session.title,
        "source": session.source,
        "started_at": iso(session.started_at),
        "ended_at": iso(session.ended_at),
    }


def duplicates(call: Call) -> dict[str, Any]:
    """Memories that say the same, or nearly so, the surest first: the one to keep, and the other."""
    return _pairs(tending.duplicates(call.memory, limit=call.query.limit))


def contradictions(call: Call) -> dict[str, Any]:
    """Memories that disagree, the newer one first."""
    return _pairs(tending.contradictions(call.memory, limit=call.query.limit))


def _pairs(found: Sequence[Pair]) -> dict[str, Any]:
    return {
        "items": [
            {
                "keep": plain(pair.keep),
                "other": plain(pair.other),
                "similarity": round(pair.similarity, 4),
                "reason": pair.reason,
            }
            for pair in found
        ]
    }


def consolidate(call: Call) -> dict[str, Any]:
    """Merges what says the same, marks contradictions and answered questions, retires what expired. Only says what it would do,
    unless `dry_run` is false. `restore` undoes each step."""
    steps = tending.plan(call.memory)
    done = 0 if call.body.dry_run else tending.apply(call.memory, steps)
    shown = [
        {
            "action": step.action,
            "memories": [one.id for one in step.memories],
            "reason": step.reason,
            "text": step.text,
        }
        for step in steps
    ]
    return {"steps": shown, "done": done, "dry_run": call.body.dry_run}


def stats(call: Call) -> dict[str, Any]:
    """Memories by kind and by project, of all that the token is for."""
    scopes = [scope for scope, *_ in call.tools.projects.listed(call.caller)] + [
        "personal"
    ] * call.caller.personal
    seen = call.memory.stats(scopes)
    names = {scope: name for scope, name, _ in call.tools.projects.listed(call.caller)}
    whole = {name: getattr(seen, name) for name in WHOLE} if call.caller.everywhere else None
    return {
        "memories": seen.memories,
        "deleted": seen.deleted,
        "by_kind": dict(seen.by_kind),
        "by_scope": dict(seen.by_scope),
        "scope_names": {scope: names[scope] for scope in seen.by_scope if scope in names},
        "database": whole,
    }


def health(call: Call) -> dict[str, Any]:
    """What is wrong with the database, if anything is. For tokens of every project."""
    if not call.caller.everywhere:
        raise Forbidden(
            "The health of the whole database is for tokens of every project.",
            "`bethink token create --all-projects`",
        )
    found = call.memory.check()
    problems = [
        {"part": problem.part, "message": problem.message, "repair": problem.repair}
        for problem in found
    ]
    return {
        "status": "problems" if problems else "ok",
        "problems": problems,
        "hints": list(call.memory.hints),
    }


def start_job(call: Call) -> Reply:
    """Begins work on the server's own project and returns at once; `GET /jobs/{id}` shows how far it is. One job at a time."""
    memory, asked, projects = call.memory, call.body, call.tools.projects
    if (
        memory.project.root != projects.home.root
    ):  # a project of the same name may be another tenant's
        raise Forbidden(
            "Files are read only for the server's own project.",
            "Run the command on the project's own machine.",
        )
    if asked.task == "backfill" and call.caller.tenant:
        raise Forbidden(
            "Conversations on the server's machine are its owner's, not the team's.",
            "Run `bethink backfill` on your own.",
        )
    if (asked.task == "backfill" or asked.full) and not call.caller.everywhere:
        raise Forbidden(
            f"{asked.task} touches every project, and this token is not for all.",
            "`bethink token create --all-projects`",
        )
    since = moment(asked.since, memory.clock()) if asked.since else None
    tasks: dict[str, jobs.Task] = {
        "index": jobs.index,
        "map": jobs.map_code,
        "analyze": jobs.analyze,
        "history": partial(jobs.history, since=since.date().isoformat() if since else None),
        "backfill": partial(jobs.backfill, since=since),
        "reindex": partial(jobs.reindex, full=asked.full),
    }
    return Reply(_job(call.tools.jobs.start(asked.task, memory, tasks[asked.task])), 202)


def list_jobs(call: Call) -> dict[str, Any]:
    """The jobs of this project since the server started, newest first."""
    return {
        "items": [
            _job(job) for job in call.tools.jobs.all() if job.scope == jobs.whose(call.memory)
        ]
    }


def get_job(call: Call) -> dict[str, Any]:
    """How far a job is, and what came of it."""
    for job in call.tools.jobs.all():
        if job.id == call.path["id"] and job.scope == jobs.whose(call.memory):
            return _job(job)
    raise NotFound(f"There is no job '{call.path['id'][:40]}'.", "GET /api/v1/jobs lists them.")


def _job(job: jobs.Job) -> dict[str, Any]:
    value = {name: found for name, found in job._asdict().items() if name != "scope"}
    return {**value, "started_at": iso(job.started_at), "ended_at": iso(job.ended_at)}


OPERATIONS = (
    Operation(
        "GET", "/sessions", list_sessions, answers.Sessions, schemas.Paged, group="Conversations"
    ),
    Operation(
        "GET", "/sessions/{id}", get_session, answers.OneSession, group="Conversations", also=(404,)
    ),
    Operation(
        "GET", "/duplicates", duplicates, answers.Pairs, schemas.Pairs, group="Care", meaning=True
    ),
    Operation(
        "GET",
        "/contradictions",
        contradictions,
        answers.Pairs,
        schemas.Pairs,
        group="Care",
        meaning=True,
    ),
    Operation(
        "POST",
        "/consolidation",
        consolidate,
        answers.Consolidated,
        body=schemas.Consolidate,
        scope="write",
        group="Care",
        meaning=True,
    ),
    Operation("GET", "/stats", stats, answers.Stats, group="Care"),
    Operation("GET", "/health", health, answers.Health, group="Care"),
    Operation(
        "POST",
        "/jobs",
        start_job,
        answers.Job,
        body=schemas.NewJob,
        scope="write",
        group="Jobs",
        status=202,
        also=(409,),
    ),
    Operation("GET", "/jobs", list_jobs, answers.Jobs, group="Jobs"),
    Operation("GET", "/jobs/{id}", get_job, answers.Job, group="Jobs", also=(404,)),
)
