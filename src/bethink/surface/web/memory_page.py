"""One memory: what it says, where it came from and what stands around it there, how it changed, what it is related to; and
what can be done with it. Everything that is done can be undone from the page that follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bethink.errors import Overtaken, UsageError
from bethink.surface.http import memories
from bethink.surface.web.render import diff, worded
from bethink.surface.web.visit import Go, PageAnswer, Shown, Visit, explain, page
from bethink.types import KINDS, RELATIONS

BESIDE = 2  # turns or passages before and after
VERSIONS = 50  # of its history that are shown
FIELDS = ("content", "summary", "kind", "importance", "tags", "entities", "expires")
DONE = {
    "saved": "Saved.",
    "forgotten": "Forgotten: no search finds it any more.",
    "restored": "Brought back.",
    "voted": "Your vote counts.",
    "linked": "Related.",
    "unlinked": "No longer related.",
}
UNTOLD = ("row_hash", "content_hash", "updated_at", "keywords")
MEANWHILE = "It was changed meanwhile, by somebody else or in another window. Above is what it says now; below is what you typed."


class Version(NamedTuple):
    """One line of a memory's history, for people."""

    number: int
    at: str
    actor: str
    action: str
    pieces: Sequence[Any]  # of its text, where that changed
    fields: Sequence[tuple[str, str, str]]  # name, before, after
    restorable: bool


@page("GET", "/memory/{id}")
def show(visit: Visit) -> PageAnswer:
    return _show(visit)


def _show(
    visit: Visit, given: Mapping[str, str] | None = None, wrong: str = "", status: int = 200
) -> Shown:
    """The page; with what was given to a form that could not be followed, so that nothing typed is lost."""
    id = {"id": visit.path["id"]}
    memory = visit.ask(memories.get, {"count": False}, path=id)
    events = visit.ask(memories.history, path=id)["items"]
    versions = [_version(event, last=event is events[-1]) for event in events[-VERSIONS:]]
    values = {
        "memory": memory,
        "versions": versions[::-1],
        "earlier": len(events) - len(versions),
        "kinds": KINDS,
        "relations": RELATIONS,
        "wrong": wrong,
        "around": visit.ask(memories.around, {"turns": BESIDE}, path=id)["items"],
        "form": {**_form(memory), **(given or {})},
        "belongs": _scope_name(visit, memory["scope"]),
        "done": _done(visit, memory, len(events)),
        "editing": given is not None,
        "base": visit.at(f"/memory/{memory['id']}"),
        "here": lambda action: visit.at(f"/memory/{memory['id']}/{action}"),
    }
    return Shown("memory.html", values, status)


def _scope_name(visit: Visit, scope: str) -> str:
    """What people call a scope."""
    kind, _, rest = scope.partition(":")
    if kind not in ("project", "container"):
        return scope
    project, _, container = rest.partition("/")
    listed = visit.ask(memories.list_projects)["items"]
    names = {one["scope"]: one["name"] for one in listed}
    name = names.get(f"project:{project}") or scope
    return f"{name}, container {container}" if container else name


def _form(memory: Mapping[str, Any]) -> dict[str, str]:
    """What the form for changes holds."""
    return {
        "content": memory["content"],
        "summary": memory["summary"],
        "kind": memory["kind"],
        "importance": f"{memory['importance']:g}",
        "tags": ", ".join(memory["tags"]),
        "entities": ", ".join(f"{one['type']}:{one['name']}" for one in memory["entities"]),
        "expires": (memory["expires_at"] or "")[:10],
    }


def _version(event: Mapping[str, Any], last: bool) -> Version:
    before, after, number = event["before"], event["after"], event["version"]
    old, new = before.get("content"), after.get("content")
    pieces = diff(old, new) if isinstance(old, str) and isinstance(new, str) else []
    # A summary follows its text, so it is told only where it changed alone.
    untold = (*UNTOLD, "content", *(("summary",) if pieces else ()))
    changed = [
        (name, _in_words(before.get(name)), _in_words(value))
        for name, value in after.items()
        if name not in untold and number > 1 and before.get(name) != value
    ]
    return Version(number, event["at"], event["actor"], event["action"], pieces, changed, not last)


def _in_words(value: Any) -> str:
    if value is None or value == []:
        return "nothing"
    if isinstance(value, float):
        return f"{value:g}"
    texts = isinstance(value, list) and all(isinstance(one, str) for one in value)
    return worded(value) if texts else str(value)


def _done(visit: Visit, memory: Mapping[str, Any], versions: int) -> dict[str, Any] | None:
    """What was just done, in words, and how to undo it."""
    what = visit.asked("done")
    if what not in DONE:
        return None
    relation = {"target": visit.asked("target"), "type": visit.asked("type")}
    again = ("link", {**relation, "direction": "in"}) if relation["target"] else ("forget", {})
    undo: dict[str, tuple[str, dict[str, Any]]] = {
        "saved": ("restore", {"version": versions - 1}),
        "forgotten": ("restore", {}),
        "restored": again,
        "voted": ("vote", {"value": "1" if visit.asked("value").startswith("-") else "-1"}),
        "linked": ("unlink", relation),
        "unlinked": ("link", relation),
    }
    possible = (what != "saved" or versions > 1) and (what != "forgotten" or memory["deleted_at"])
    action, fields = undo[what]
    return {"text": DONE[what], "action": action if possible else "", "fields": fields}


@page("POST", "/memory/{id}/edit")
def edit(visit: Visit) -> PageAnswer:
    """Changes what differs from what is there, if nobody else changed it meanwhile."""
    id = {"id": visit.path["id"]}
    given = {name: _unix(visit.form[name]) for name in FIELDS if name in visit.form}
    try:
        known = _form(visit.ask(memories.get, {"count": False}, path=id))
        changed = {name: value for name, value in given.items() if value != _unix(known[name])}
        if changed:
            seen = {"updated_at": visit.form.get("updated_at")}
            visit.ask(memories.update, path=id, body={**_body(changed), **seen})
    except Overtaken:
        return _show(visit, given, MEANWHILE, 409)
    except (UsageError, ValueError) as error:
        return _show(visit, given, explain(error), 422)
    return _back(visit, "saved" if changed else "")


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def _body(changed: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a form as the API takes them."""
    body: dict[str, Any] = dict(changed)
    for name in ("tags", "entities"):
        if name in body:
            body[name] = [part for one in body[name].split(",") if (part := one.strip())]
    if "importance" in body:
        body["importance"] = float(body["importance"])
    if "expires" in body:
        body["expires"] = body["expires"] or None
    return body


@page("POST", "/memory/{id}/forget")
def forget(visit: Visit) -> PageAnswer:
    visit.ask(memories.forget, path={"id": visit.path["id"]})
    return _back(visit, "forgotten")


@page("POST", "/memory/{id}/restore")
def restore(visit: Visit) -> PageAnswer:
    id, version = {"id": visit.path["id"]}, visit.form.get("version", "")
    before = visit.ask(memories.get, {"count": False}, path=id)
    number = int(version) if version.isdecimal() else None
    visit.ask(memories.restore, path=id, body={"version": number})
    if version:
        return _back(visit, "saved")
    # What was replaced is undone by replacing it again, and not by forgetting it.
    replaced = before["superseded_by"] if not before["deleted_at"] else None
    relation = {"target": replaced, "type": "supersedes"} if replaced else {}
    return _back(visit, "restored", **relation)


@page("POST", "/memory/{id}/vote")
def vote(visit: Visit) -> PageAnswer:
    value = -1 if visit.form.get("value", "1").startswith("-") else 1
    visit.ask(memories.vote, path={"id": visit.path["id"]}, body={"value": value})
    return _back(visit, "voted", value=str(value))


@page("POST", "/memory/{id}/link")
def link(visit: Visit) -> PageAnswer:
    return _relate(visit, "linked")


@page("POST", "/memory/{id}/unlink")
def unlink(visit: Visit) -> PageAnswer:
    return _relate(visit, "unlinked")


def _relate(visit: Visit, what: str) -> PageAnswer:
    """`direction` in says that the other memory is the one that the relation starts from."""
    id, other = visit.path["id"], visit.form.get("target", "").strip()
    source, target = (other, id) if visit.form.get("direction") == "in" else (id, other)
    relation = {"target": target, "type": visit.form.get("type", "relates_to")}
    try:
        if what == "linked":
            visit.ask(memories.link, path={"id": source}, body=relation)
        else:
            visit.ask(memories.unlink, relation, path={"id": source})
    except (UsageError, ValueError) as error:
        return _show(visit, None, explain(error), 422)
    return _back(visit, what if source == id else "", **relation)


def _back(visit: Visit, done: str, **more: str) -> Go:
    return Go(visit.at(f"/memory/{visit.path['id']}", done=done, **more))
