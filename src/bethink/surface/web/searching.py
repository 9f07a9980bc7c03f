"""The search page: results while one types, filters, marked words, and why each was found. Without a question, what is newest."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from bethink.errors import UsageError
from bethink.hosts import HOSTS
from bethink.recall.excerpt import sought
from bethink.surface.http import memories
from bethink.surface.web.visit import EVERY, Answered, Page, Shown, Visit
from bethink.types import KINDS

SHOWN = 20
LISTED = ("kind", "entity", "source", "host", "tag")  # filters of which there may be several
SINGLE = ("since", "until", "session", "cursor")
FEWER = ("kind", "entity", "source", "host", "tag", "since", "until", "session", "hidden")
HIDDEN = ("include_deleted", "include_superseded", "include_quarantined", "include_expired")
TIMES = (
    ("1d", "since yesterday"),
    ("7d", "in the last week"),
    ("30d", "in the last month"),
    ("365d", "in the last year"),
)
# The signals of a search in the order of their weight, and what each says.
SIGNALS = (
    ("meaning", "meaning"),
    ("words", "words"),
    ("pairs", "words side by side"),
    ("topic", "topic"),
    ("neighbours", "neighbours"),
    ("recent", "told lately"),
    ("named", "named thing"),
)
PART = "results.html"


def search(visit: Visit) -> Answered:
    question = visit.query.get("q", "").strip()
    chosen = {name: visit.query.get(name, "") for name in FEWER}
    values: dict[str, Any] = {
        "question": question,
        "chosen": chosen,
        "narrowed": any(chosen.values()),
        "kinds": KINDS,
        "hosts": HOSTS,
        "times": TIMES,
        "signals": SIGNALS,
        "wrong": None,
        "items": [],
        "next": None,
        "total": 0,
        "hints": [],
        "sought": None,
        "scope_names": {},
    }
    status = 200
    try:
        found = _found(visit, question)
    except (UsageError, ValidationError) as error:
        status, values["wrong"] = 422, _said(error)
    else:
        values |= {**found, "next": _more(visit, found["next"])}
        values["sought"] = sought(question, visit.tools.projects.base.clock()) if question else None
    projects = visit.ask(memories.list_projects)
    values["projects"] = projects
    if visit.query.get("project") == EVERY:
        values["scope_names"] = {one["scope"]: one["name"] for one in projects["items"]}
    if visit.query.get("part") == "results":
        return Shown(PART, values, status)
    return Shown("search.html", values, status)


def _found(visit: Visit, question: str) -> dict[str, Any]:
    wanted: dict[str, Any] = {name: given for name in SINGLE if (given := visit.query.get(name))}
    wanted |= {
        name: several
        for name in LISTED
        if (several := [one for one in visit.query.getlist(name) if one])
    }
    if visit.query.get("hidden"):
        wanted |= dict.fromkeys(HIDDEN, True)
    wanted |= {"limit": SHOWN, **visit.wide}
    found: dict[str, Any]
    if question:
        found = visit.ask(memories.search, {**wanted, "query": question, "explain": True})
    else:
        found = visit.ask(memories.list_memories, wanted)
    return {"hints": [], **found}


def _more(visit: Visit, cursor: str | None) -> str | None:
    """The address of the next page of results."""
    if cursor is None:
        return None
    asked = {name: value for name in ("q", *FEWER) if (value := visit.query.get(name))}
    return visit.at("/", **asked, cursor=cursor)


def _said(error: UsageError | ValidationError) -> str:
    if isinstance(error, UsageError):
        return f"{error.message} {error.hint or ''}".strip()
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(str(part) for part in first['loc'])[:60]}: {first['msg'][:200]}."


PAGES = (Page("GET", "/", search),)
