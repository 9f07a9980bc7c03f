"""One memory: what it says, where it came from and what stands around it there, how it changed, what it is related to; and
what can be done with it. Everything that is done can be undone from the page that follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from bethink.errors import UsageError
from bethink.surface.http import memories
from bethink.surface.http.problems import Refusal
from bethink.surface.web.diffs import diff
from bethink.surface.web.render import worded
from bethink.surface.web.visit import Answered, Go, Page, Shown, Visit
from bethink.types import KINDS, RELATIONS

BESIDE = 2  # turns or passages before and after
VERSIONS = 50  # of its history that are shown
FIELDS = ("content", "summary", "kind", "importance", "tags", "entities", "expires")
HOW = {
    "saved": "Saved.",
    "forgotten": "Forgotten: no search finds it any more.",
    "restored": "Brought back.",
    "voted": "Your vote counts.",
    "linked": "Related.",
    "unlinked": "No longer related.",
}
UNTOLD = ("row_hash", "content_hash", "updated_at", "keywords")


class Version(NamedTuple):
    """One line of a memory's history, for people."""

    number: int
    at: str
    actor: str
    action: str
    pieces: Sequence[Any]  # of its text, where that changed
    fields: Sequence[tuple[str, str, str]]  # name, before, after
    restorable: bool


def show(visit: Visit) -> Answered:
    return _page(visit)


def _page(
    visit: Visit, given: Mapping[str, str] | None = None, wrong: str = "", status: int = 200
) -> Shown:
    """The page; with what was given to a form that could not be followed, so that nothing typed is lost."""
    id = {"id": visit.path["id"]}
    reply = visit.reply(memories.get, {"count": False}, path=id)
    memory = reply.value
    events = visit.ask(memories.history, path=id)["items"]
    versions = [_version(event, last=event is events[-1]) for event in events[-VERSIONS:]]
    values = {
        "memory": memory,
        "etag": reply.headers["ETag"],
        "versions": versions[::-1],
        "earlier": len(events) - len(versions),
        "kinds": KINDS,
        "relations": RELATIONS,
        "wrong": wrong,
        "around": visit.ask(memories.around, {"turns": BESIDE}, path=id)["items"],
        "form": {**_form(memory), **(given or {})},
        "belongs": _belongs(visit, memory["scope"]),
        "done": _done(visit, memory, len(events)),
        "editing": given is not None,
        "base": visit.at(f"/memory/{memory['id']}"),
        "here": lambda action: visit.at(f"/memory/{memory['id']}/{action}"),
    }
    return Shown("memory.html", values, status)


def _belongs(visit: Visit, scope: str) -> str:
    """What people call a scope."""
    kind, _, rest = scope.partition(":")
    if kind not in ("project", "container"):
        return scope
    project, _, container = rest.partition("/")
    names = {one["scope"]: one["name"] for one in visit.ask(memories.list_projects)["items"]}
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
    before, after = event["before"], event["after"]
    old, new = before.get("content"), after.get("content")
    pieces = diff(old, new) if isinstance(old, str) and isinstance(new, str) else []
    # A summary follows its text, so it is told only where it changed alone.
    untold = (*UNTOLD, "content", *(("summary",) if pieces else ()))
    changed = [
        (name, _said(before.get(name)), _said(value))
        for name, value in after.items()
        if name not in untold and event["version"] > 1 and before.get(name) != value
    ]
    return Version(
        event["version"], event["at"], event["actor"], event["action"], pieces, changed, not last
    )


def _said(value: Any) -> str:
    """A value of history in words."""
    if value is None or value == []:
        return "nothing"
    if isinstance(value, float):
        return f"{value:g}"
    return (
        worded(value)
        if isinstance(value, list) and all(isinstance(one, str) for one in value)
        else str(value)
    )


def _done(visit: Visit, memory: Mapping[str, Any], versions: int) -> dict[str, Any] | None:
    """What was just done, in words, and how to undo it."""
    what = visit.query.get("done", "")
    if what not in HOW:
        return None
    asked = visit.query
    relation = {"target": asked.get("target", ""), "type": asked.get("type", "")}
    undo: dict[str, tuple[str, dict[str, Any]]] = {
        "saved": ("restore", {"version": versions - 1}),
        "forgotten": ("restore", {}),
        "restored": ("link", {**relation, "direction": "in"})
        if relation["target"]
        else ("forget", {}),
        "voted": ("vote", {"value": "1" if asked.get("value", "").startswith("-") else "-1"}),
        "linked": ("unlink", relation),
        "unlinked": ("link", relation),
    }
    possible = (what != "saved" or versions > 1) and (what != "forgotten" or memory["deleted_at"])
    action, fields = undo[what]
    return {"text": HOW[what], "action": action if possible else "", "fields": fields}


def edit(visit: Visit) -> Answered:
    """Changes what differs from what is there, if nobody else changed it meanwhile."""
    id = {"id": visit.path["id"]}
    given = {
        name: visit.form.get(name, "").replace("\r\n", "\n").strip()
        for name in FIELDS
        if name in visit.form
    }
    try:
        known = _form(visit.ask(memories.get, {"count": False}, path=id))
        changed = {
            name: value
            for name, value in given.items()
            if value != known[name].replace("\r\n", "\n").strip()
        }
        if changed:
            visit.ask(
                memories.update,
                path=id,
                body=_body(changed),
                headers={"if-match": visit.form.get("etag", "*")},
            )
    except Refusal as error:
        if error.status != 412:
            raise
        wrong = "It was changed meanwhile, by somebody else or in another window. Above is what it says now; below is what you typed."
        return _page(visit, given, wrong, 409)
    except (UsageError, ValidationError, ValueError) as error:
        wrong = (
            f"{error.message} {error.hint or ''}"
            if isinstance(error, UsageError)
            else _first(error)
        )
        return _page(visit, given, wrong.strip(), 422)
    return _back(visit, "saved") if changed else Go(visit.at(f"/memory/{visit.path['id']}"))


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


def _first(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        found = error.errors(include_url=False, include_context=False, include_input=False)[0]
        return f"{'.'.join(str(part) for part in found['loc'])[:60]}: {found['msg'][:200]}."
    return "Importance is a number from 0 to 10."


def forget(visit: Visit) -> Answered:
    visit.ask(memories.forget, path={"id": visit.path["id"]})
    return _back(visit, "forgotten")


def restore(visit: Visit) -> Answered:
    id, version = {"id": visit.path["id"]}, visit.form.get("version", "")
    before = visit.ask(memories.get, {"count": False}, path=id)
    visit.ask(
        memories.restore, path=id, body={"version": int(version) if version.isdecimal() else None}
    )
    if version:
        return _back(visit, "saved")
    # What was replaced is undone by replacing it again, and not by forgetting it.
    replaced = before["superseded_by"] if not before["deleted_at"] else None
    return _back(
        visit, "restored", **({"target": replaced, "type": "supersedes"} if replaced else {})
    )


def vote(visit: Visit) -> Answered:
    value = -1 if visit.form.get("value", "1").startswith("-") else 1
    visit.ask(memories.vote, path={"id": visit.path["id"]}, body={"value": value})
    return _back(visit, "voted", value=str(value))


def link(visit: Visit) -> Answered:
    return _linked(visit, "linked")


def unlink(visit: Visit) -> Answered:
    return _linked(visit, "unlinked")


def _linked(visit: Visit, what: str) -> Answered:
    """`direction` in says that the other memory is the one that the relation starts from."""
    id, other, type = (
        visit.path["id"],
        visit.form.get("target", "").strip(),
        visit.form.get("type", "relates_to"),
    )
    source, target = (other, id) if visit.form.get("direction") == "in" else (id, other)
    try:
        if what == "linked":
            visit.ask(memories.link, path={"id": source}, body={"target": target, "type": type})
        else:
            visit.ask(memories.unlink, {"target": target, "type": type}, path={"id": source})
    except (UsageError, ValidationError) as error:
        return _page(
            visit,
            None,
            f"{error.message} {error.hint or ''}".strip()
            if isinstance(error, UsageError)
            else _first(error),
            422,
        )
    return _back(visit, what if source == id else "", target=target, type=type)


def _back(visit: Visit, done: str, **more: str) -> Go:
    return Go(visit.at(f"/memory/{visit.path['id']}", done=done, **more))


PAGES = (
    Page("GET", "/memory/{id}", show),
    Page("POST", "/memory/{id}/edit", edit),
    Page("POST", "/memory/{id}/forget", forget),
    Page("POST", "/memory/{id}/restore", restore),
    Page("POST", "/memory/{id}/vote", vote),
    Page("POST", "/memory/{id}/link", link),
    Page("POST", "/memory/{id}/unlink", unlink),
)
