"""The projects: what each scope and container holds, who else can see it, and a copy of it to take away."""

from __future__ import annotations

from typing import Any

from bethink.surface.http import browsing, memories
from bethink.surface.http.operation import Lines
from bethink.surface.web.visit import EVERY, PERSONAL, Answered, Page, Shown, Streamed, Visit, place

CONTAINER = "container:"


def show(visit: Visit) -> Answered:
    listed = visit.ask(browsing.list_scopes)["items"]
    readers = visit.ask(browsing.list_readers)["items"] if visit.caller.owner else []
    known: dict[str, dict[str, Any]] = {}
    for one in sorted(
        listed, key=lambda one: one["scope"].startswith(CONTAINER)
    ):  # projects before what is inside them
        identity, _, name = one["scope"].partition(":")[2].partition("/")
        if one["scope"].startswith(CONTAINER):
            known.setdefault(identity, _unknown(identity))["containers"].append(
                {**_described(one, []), "name": name}
            )
        elif one["scope"] != PERSONAL:
            known[identity] = _described(one, readers)
    personal = next((_described(one, readers) for one in listed if one["scope"] == PERSONAL), None)
    values = {
        "found": list(known.values()),
        "personal": personal,
        "readers": readers,
        "owner": visit.caller.owner,
    }
    return Shown("projects.html", values)


def _described(one: dict[str, Any], readers: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        **one,
        "containers": [],
        "where": _where(one["scope"]),
        "readers": [reader for reader in readers if _reads(reader, one["scope"])],
    }


def _unknown(identity: str) -> dict[str, Any]:
    """A project of which only a container is known."""
    one = {
        "scope": f"project:{identity}",
        "name": identity[:8],
        "path": None,
        "default": False,
        "memories": 0,
        "last": None,
    }
    return _described(one, [])


def _reads(reader: dict[str, Any], scope: str) -> bool:
    if scope == PERSONAL:
        return bool(reader["personal"])
    return reader["projects"] is None or scope in reader["projects"]


def _where(scope: str) -> dict[str, str]:
    return {"project": PERSONAL} if scope == PERSONAL else place(scope)


def export(visit: Visit) -> Answered:
    """Everything of a project as lines of JSON, forgotten and replaced memories included, however much that is."""
    chosen = visit.query.get("project", "")
    wide = (
        {"personal": True}
        if chosen == PERSONAL
        else {"all_projects": True}
        if chosen == EVERY
        else {}
    )
    lines = visit.ask(memories.export, wide)
    assert isinstance(lines, Lines)
    name = (
        {PERSONAL: PERSONAL, EVERY: EVERY}.get(chosen) or visit.query.get("container") or "project"
    )
    plain = "".join(
        character if character.isascii() and (character.isalnum() or character in "-_") else "-"
        for character in name
    )[:60]
    return Streamed(lines.values, "application/x-ndjson", f"bethink-{plain}.jsonl")


PAGES = (Page("GET", "/projects", show), Page("GET", "/projects/export", export))
