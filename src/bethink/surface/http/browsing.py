"""The operations for looking around: days and what was said on them, what stands around something, what is to be decided, how
memory is doing, and with whom it is shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bethink.features import condition, conversations, graph, inbox, timeline
from bethink.features.timeline import Held, Said
from bethink.recall.shape import iso, plain
from bethink.surface.http import answers, checkup, cursors, schemas
from bethink.surface.http.care import session_fields
from bethink.surface.http.operation import Call, Operation
from bethink.surface.http.problems import Forbidden
from bethink.surface.http.projects import NOWHERE
from bethink.types import PERSONAL, Words

RECALLS = ("/", "/api/v1/search", "/api/v1/recall")  # routes that are a recall and nothing else
PROMOTING = ("promote", "undo-promote")


def days(call: Call) -> dict[str, Any]:
    """Conversations by the day they began on, newest first, with their topics and how much of each they were."""
    memory, asked = call.memory, call.query
    scopes = memory.every_scope() if asked.all_projects else memory.scopes
    question = {**asked.model_dump(), "scopes": scopes, "method": "timeline"}
    cursor = cursors.read(asked.cursor, question)
    offset, number = cursors.window(cursor, asked.limit)
    found = timeline.sessions(memory, scopes, asked.host, number, offset)
    shown, following = cursors.page(found, [one.id for one in found], cursor, asked.limit)
    return {
        "days": [
            {
                "date": day.date.isoformat() if day.date else None,
                "sessions": [_held(one) for one in day.sessions],
            }
            for day in timeline.days(memory, shown)
        ],
        "next": cursors.written(following, question) if following else None,
    }


def _held(one: Held) -> dict[str, Any]:
    topics = [
        {
            "id": band.span.id,
            "name": band.span.name,
            "summary": band.span.summary,
            "lines": list(band.span.lines),
            "share": round(band.share, 4),
        }
        for band in one.bands
    ]
    return {**session_fields(one.session), "scope": one.session.scope, "topics": topics}


def turns(call: Call) -> dict[str, Any]:
    """What was said in a conversation, in order, with the ideas that were taken from each turn."""
    memory, asked = call.memory, call.query
    session = conversations.session(memory, call.path["id"])
    question = {**asked.model_dump(), "session": session.id, "method": "turns"}
    cursor = cursors.read(asked.cursor, question)
    found, total = timeline.turns(memory, session, asked.topic, asked.limit, cursor.at)
    at = cursor.at + len(found)
    more = bool(found) and at < total
    return {
        "items": [_said(one) for one in found],
        "next": cursors.written(cursors.Cursor(at), question) if more else None,
        "total": total,
    }


def _said(one: Said) -> dict[str, Any]:
    return {**plain(one.turn), "ideas": [plain(idea) for idea in one.ideas]}


def around_focus(call: Call) -> dict[str, Any]:
    """Memories, the things they are about and their relations around a focus, nearest first."""
    asked = call.query
    found = graph.around(
        call.memory, asked.focus, asked.query, limit=asked.limit, depth=asked.depth
    )
    return {
        "focus": list(found.focus),
        "nodes": [node._asdict() for node in found.nodes],
        "edges": [edge._asdict() for edge in found.edges],
        "more": found.more,
    }


def look_into_inbox(call: Call) -> dict[str, Any]:
    """What is to be decided: duplicates, contradictions, what is hardly believed, open questions, what could be a rule."""
    asked = call.query
    found = inbox.look(call.memory, asked.queue, asked.limit, asked.start)
    acts = [name for name, act in inbox.ACTS.items() if asked.queue in act.queues]
    if not _may_promote(call):
        acts = [name for name in acts if name not in PROMOTING]
    items = [
        {"memories": [plain(one) for one in item.memories], "reason": item.reason, "acts": acts}
        for item in found.items
    ]
    return {"queue": asked.queue, "items": items, "looked": found.looked, "next": found.next}


def act(call: Call) -> dict[str, Any]:
    """Decides about one item of the inbox, or takes a decision back."""
    if call.body.act in PROMOTING and not _may_promote(call):
        raise Forbidden(
            "Rules are written only by the owner, into a project on this machine: agents obey them.",
            "Use `bethink promote` there.",
        )
    done = inbox.act(call.memory, call.body.act, call.body.ids)
    return {"ids": list(done.ids), "said": done.said, "undo": done.undo}


def _may_promote(call: Call) -> bool:
    return call.caller.owner and call.memory.project.root != NOWHERE


def how_it_is(call: Call) -> dict[str, Any]:
    """Capture by host, what waits, size and growth, the cost of a language model, how long searches take, what doctor says. What
    takes long is counted in the background; the last answer is given meanwhile. For tokens of every project."""
    if (
        not call.caller.everywhere or call.caller.tenant
    ):  # one tenant must not learn how many others there are
        raise Forbidden(
            "The condition of the whole database is for tokens of every project.",
            "`bethink token create --all-projects`",
        )
    projects, check, measured = call.tools.projects, call.tools.checkup, call.tools.metrics
    counted = check.counted.get(lambda: condition.examine(projects.base))
    checked = check.checked.get(
        lambda: checkup.doctor(projects.home, projects.database, check.running)
    )
    quantiles = {f"p{share:g}": measured.quantile(RECALLS, share / 100) for share in (50, 95)}
    return {
        "condition": _jsonable(counted._asdict()) if counted else None,
        "doctor": {"at": iso(checked.at), "findings": list(checked.findings)} if checked else None,
        "running": check.counted.running or check.checked.running,
        "recall": {
            "searches": measured.answered(RECALLS),
            **{
                name: None if value is None else round(value * 1000, 1)
                for name, value in quantiles.items()
            },
        },
    }


def check_again(call: Call) -> dict[str, Any]:
    """Counts and checks anew, and says at once what was known before."""
    call.tools.checkup.counted.renew()
    call.tools.checkup.checked.renew()
    return how_it_is(call)


def _jsonable(value: Any) -> Any:
    """Named tuples, times and mappings as JSON has them."""
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _jsonable(value._asdict())
    if isinstance(value, Mapping):
        return {str(name): _jsonable(one) for name, one in value.items()}
    return [_jsonable(one) for one in value] if isinstance(value, list | tuple) else value


def scopes(call: Call) -> dict[str, Any]:
    """The projects and containers that the token is for, and what is personal: how many memories each holds, forgotten ones included,
    and when the last was told. Costs next to nothing, however much there is."""
    store = call.tools.projects.store_of(call.caller)
    listed = call.tools.projects.listed(call.caller)
    known = [*listed, *([(PERSONAL, PERSONAL, None)] if call.caller.personal else [])]
    found = []
    for scope, name, path in known:
        newest = store.list(call.memory.filter(scopes=(scope,)), 1)
        held = store.statistics(Words(), (scope,)).memories
        last = iso(newest[0].created_at) if newest else None
        found.append(
            {
                "scope": scope,
                "name": name,
                "path": path,
                "default": scope == call.memory.scope,
                "memories": held,
                "last": last,
            }
        )
    return {"items": found}


def readers(call: Call) -> dict[str, Any]:
    """Who else can read or change memories here: the tokens that work, and what they are for. For the owner."""
    if not call.caller.owner:
        raise Forbidden(
            "Who holds tokens is for the owner to know.", "`bethink token list` on that machine."
        )
    now = call.memory.clock()
    known = [token for token in call.tools.tokens.known() if token.state(now) == "active"]
    return {
        "items": [
            {
                "name": token.name,
                "scope": token.scope,
                "personal": token.personal,
                "used": token.used,
                "projects": None
                if token.projects is None
                else [grant.scope for grant in token.projects],
                "expires": iso(token.expires),
            }
            for token in known
        ]
    }


OPERATIONS = (
    Operation("GET", "/timeline", days, answers.Timeline, schemas.Timeline, group="Conversations"),
    Operation(
        "GET",
        "/sessions/{id}/turns",
        turns,
        answers.Turns,
        schemas.Turns,
        group="Conversations",
        also=(404,),
    ),
    Operation(
        "GET",
        "/graph",
        around_focus,
        answers.Graph,
        schemas.Graph,
        group="Find",
        meaning=True,
        also=(404, 409),
    ),
    Operation(
        "GET", "/inbox", look_into_inbox, answers.Inbox, schemas.Inbox, group="Care", meaning=True
    ),
    Operation(
        "POST",
        "/inbox",
        act,
        answers.Acted,
        body=schemas.Act,
        scope="write",
        group="Care",
        also=(404, 409),
    ),
    Operation("GET", "/condition", how_it_is, answers.Condition, group="Care"),
    Operation("POST", "/condition", check_again, answers.Condition, scope="write", group="Care"),
    Operation("GET", "/scopes", scopes, answers.Scopes, group="Find"),
    Operation("GET", "/tokens", readers, answers.Shared, group="Care"),
)
