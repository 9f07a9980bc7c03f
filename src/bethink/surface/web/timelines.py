"""The timeline: conversations by day with their topics as bands; and one conversation, turn by turn, with what was taken from it."""

from __future__ import annotations

from typing import Any

from bethink.hosts import HOSTS
from bethink.surface.http import browsing, memories
from bethink.surface.web.visit import EVERY, Answered, Page, Shown, Visit

SESSIONS = 20
TURNS = 50
COLUMNS = 24  # that the bands of a conversation share
COLOURS = 6


def show(visit: Visit) -> Answered:
    host, project = visit.query.get("host", ""), visit.query.get("project", "")
    wanted: dict[str, Any] = {
        "limit": SESSIONS,
        "host": host or None,
        "cursor": visit.query.get("cursor") or None,
    }
    found = visit.ask(browsing.show_timeline, {**wanted, "all_projects": project == EVERY})
    for day in found["days"]:
        for session in day["sessions"]:
            _coloured(session["topics"])
    projects = visit.ask(memories.list_projects)
    following = visit.at("/timeline", host=host, cursor=found["next"]) if found["next"] else ""
    names = {one["scope"]: one["name"] for one in projects["items"]}
    values = {
        "days": found["days"],
        "following": following,
        "projects": projects,
        "hosts": HOSTS,
        "host": host,
        "project": project,
        "scope_names": names if project == EVERY else {},
        "begun": bool(wanted["cursor"]),
    }
    return Shown("timeline.html", values)


def _coloured(topics: list[dict[str, Any]]) -> None:
    """How wide each band is, in columns, and which colour it has."""
    for number, topic in enumerate(topics):
        topic["columns"] = max(1, round(topic["share"] * COLUMNS))
        topic["colour"] = number % COLOURS


def session(visit: Visit) -> Answered:
    path = {"id": visit.path["id"]}
    found = visit.ask(browsing.get_session, path=path)
    topic = visit.query.get("topic") or None
    said = visit.ask(
        browsing.list_turns,
        {"topic": topic, "limit": TURNS, "cursor": visit.query.get("cursor") or None},
        path=path,
    )
    chosen = next((one for one in found["topics"] if one["id"] == topic), None)
    following = (
        visit.at(f"/session/{found['id']}", topic=topic, cursor=said["next"])
        if said["next"]
        else ""
    )
    values = {
        "session": found,
        "turns": said["items"],
        "total": said["total"],
        "following": following,
        "topic": chosen,
    }
    return Shown("session.html", values)


PAGES = (Page("GET", "/timeline", show), Page("GET", "/session/{id}", session))
