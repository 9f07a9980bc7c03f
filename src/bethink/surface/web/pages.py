"""The pages: home, search, timeline and conversations, the graph, the inbox, health and projects; one memory with what can be done
with it; and a form for a new one. Everything that is done there can be undone from the page that follows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from math import ceil, log1p
from typing import Any

from bethink.errors import Overtaken, UsageError
from bethink.features.browse import ABOUT, MENTIONS, MOST, WEEKS
from bethink.features.inbox import ACTS, PAIRS, QUEUES
from bethink.recall.query import parse
from bethink.recall.shape import find_sought
from bethink.surface.http import operations
from bethink.surface.web.render import as_words, diff, spell_unseen
from bethink.surface.web.visit import (
    EVERY,
    PERSONAL,
    Go,
    PageAnswer,
    Sent,
    Shown,
    Visit,
    explain,
    page,
    place,
)
from bethink.types import RELATIONS

# Home: what happened since somebody was last here, and what waits for them.

FIRST = "7d"  # what is shown to somebody who was not here before
LEVELS = 4  # of colour in the calendar


@page("GET", "/")
def show_home(visit: Visit) -> PageAnswer:
    chosen, last = visit.parameter("since"), visit.last_visit
    since = chosen or (last.isoformat() if last else FIRST)
    found = visit.ask(operations.show_recent, since=since, **visit.every)
    counts = visit.ask(operations.count_inbox)["queues"]
    empty = not found["days"] and not visit.ask(operations.list_memories, limit=1)["total"]
    values = {
        **found,
        "empty": empty,
        "chosen": chosen,
        "last_visit": last,
        "waiting": {name: counts[name] for name in QUEUES},
        "calendar": _draw_calendar(found["days"], visit.tools.projects.base.clock()),
    }
    return Shown("home.html", values)


def _draw_calendar(days: Mapping[str, int], now: datetime) -> list[dict[str, Any]]:
    """A cell for each day. Days differ by orders of magnitude, so colour goes by the logarithm."""
    today, most = now.date(), log1p(max(days.values(), default=0)) or 1.0
    monday = today - timedelta(days=today.weekday(), weeks=WEEKS - 1)
    cells = []
    for number in range((today - monday).days + 1):
        day = (monday + timedelta(days=number)).isoformat()
        count = days.get(day, 0)
        level = ceil(log1p(count) / most * LEVELS)
        cells.append({"level": level, "day": day, "memories": count})
    return cells


# A new memory: a dialog on every page, and a page of its own where no script runs.


@page("GET", "/add")
def show_form(visit: Visit) -> PageAnswer:
    return Shown("add.html", {"given": {}, "wrong": ""})


@page("POST", "/add")
def add(visit: Visit) -> PageAnswer:
    given = {name: _unix(visit.form.get(name, "")) for name in ("content", "kind", "tags")}
    filled = {name: value for name, value in given.items() if value}
    told = {"memories": [{"content": "", **_body(filled)}]}
    try:
        answer = visit.ask(operations.add, personal=bool(visit.form.get("personal")), **told)
    except UsageError as error:
        return Shown("add.html", {"given": given, "wrong": explain(error)}, 422)
    outcome = answer["outcomes"][0]
    if outcome["status"] == "purged":
        return Shown("add.html", {"given": given, "wrong": WAS_PURGED}, 422)
    done = "added" if outcome["status"] == "added" else "known"
    return Go(visit.at(f"/memory/{outcome.get('duplicate_of') or outcome['id']}", done=done))


@page("GET", "/live")
def send_state(visit: Visit) -> PageAnswer:
    """Something that changes whenever a memory comes or goes, of what the visitor looks at alone."""
    found = visit.ask(operations.list_memories, limit=1, **visit.wide)
    newest = found["items"][0]["id"] if found["items"] else ""
    return Sent(f"{found['total']} {newest}".encode(), "text/plain")


# Search: results while one types, filters, marked words, and why each was found. Without a question, what is newest.

HITS = 20  # on a page
SURE = 3  # hits that are shown however weak they are
WEAK = 0.45  # of the best score: what is below is shown on demand; set by hand
SEVERAL = ("kind", "entity", "source", "host", "tag")  # filters of which there may be several
SINGLE = ("since", "until", "session")
FILTERS = (*SEVERAL, *SINGLE, "hidden")
HIDDEN = ("include_deleted", "include_superseded", "include_quarantined", "include_expired")
NOTHING_FOUND: dict[str, Any] = {"items": [], "next": None, "total": 0, "weaker": 0, "hints": []}


@page("GET", "/search")
def show_search(visit: Visit) -> PageAnswer:
    question = visit.parameter("q")
    chosen = {name: visit.query.get(name, "") for name in FILTERS}
    values: dict[str, Any] = {
        **NOTHING_FOUND,
        "question": question,
        "chosen": chosen,
        "narrowed": any(chosen.values()),
        "wrong": None,
        "sought": None,
    }
    status = 200
    try:
        values |= _search(visit, question)
        if question:
            values["sought"] = find_sought(parse(question, visit.tools.projects.base.clock()))
    except UsageError as error:
        status, values["wrong"] = 422, explain(error)
    part = visit.query.get("part") == "results"
    return Shown("results.html" if part else "search.html", values, status)


def _search(visit: Visit, question: str) -> dict[str, Any]:
    offset = visit.number("offset")
    wanted: dict[str, Any] = {"limit": HITS, "offset": offset, **visit.wide}
    wanted |= {name: one for name in SINGLE if (one := visit.query.get(name))}
    lists = {name: [one for one in visit.query.getlist(name) if one] for name in SEVERAL}
    wanted |= {name: several for name, several in lists.items() if several}
    if visit.query.get("hidden"):
        wanted |= dict.fromkeys(HIDDEN, True)
    asked = {name: value for name in ("q", *FILTERS, "rest") if (value := visit.query.get(name))}
    if not question:
        found = visit.ask(operations.list_memories, **wanted)
    else:
        found = visit.ask(operations.search, query=question, explain=True, **wanted)
        strong = _count_strong([hit["score"] for hit in found["items"]])
        if strong < len(found["items"]) and not (visit.query.get("rest") or offset):
            weaker = {
                "weaker": found["total"] - strong,
                "next": visit.at("/search", **asked, rest="1"),
            }
            return {**found, "items": found["items"][:strong], **weaker}
    following = visit.at("/search", **asked, offset=found["next"]) if found["next"] else None
    return {**found, "next": following}


def _count_strong(scores: Sequence[float]) -> int:
    """How many hits stand before the tail: up to the last one whose score is a good part of the best."""
    least = max(scores, default=0.0) * WEAK
    last = max((at for at, score in enumerate(scores, 1) if score >= least), default=0)
    return max(last, min(SURE, len(scores)))


# The timeline: conversations by day with their topics as bands; and one conversation, turn by turn, with what was taken from it.

SESSIONS = 20  # on a page
TURNS = 50


@page("GET", "/timeline")
def show_timeline(visit: Visit) -> PageAnswer:
    host, offset = visit.query.get("host", ""), visit.number("offset")
    asked = {"limit": SESSIONS, "host": host or None, "offset": offset}
    found = visit.ask(operations.show_timeline, **asked, **visit.every)
    following = visit.at("/timeline", host=host, offset=found["next"]) if found["next"] else ""
    values = {
        "days": found["days"],
        "following": following,
        "host": host,
        "begun": bool(offset),
    }
    return Shown("timeline.html", values)


@page("GET", "/session/{id}")
def show_session(visit: Visit) -> PageAnswer:
    id, topic = visit.path["id"], visit.query.get("topic") or None
    found = visit.ask(operations.get_session, id=id)
    page = {"limit": TURNS, "offset": visit.number("offset")}
    said = visit.ask(operations.list_turns, id=id, topic=topic, **page)
    following = visit.at(f"/session/{found['id']}", topic=topic, offset=said["next"])
    values = {
        "session": found,
        "turns": said["items"],
        "total": said["total"],
        "following": following if said["next"] else "",
        "topic": next((one for one in found["topics"] if one["id"] == topic), None),
    }
    return Shown("session.html", values)


# The graph around a focus: drawn by a script, and listed for everybody else. `/graph/data` is what the script asks for.

SIZES = {40: 2, 80: 2, 200: 3, 500: 4}  # nodes at most → steps outwards
USUAL = 80
EXPANDED = 30  # nodes that opening one of them brings


@page("GET", "/graph")
def show_graph(visit: Visit) -> PageAnswer:
    size, asked = _graph_size(visit), _graph_focus(visit)
    found = visit.ask(operations.show_graph, limit=size, depth=SIZES[size], **asked)
    listed = _list_nodes(found)
    in_focus = (one for one in listed if one["id"] in found["focus"])
    values = {
        "memories": [one for one in listed if not one["id"].startswith(ABOUT)],
        "things": [one for one in listed if one["id"].startswith(ABOUT)],
        "focus": found["focus"],
        "focused": next(in_focus, None) if asked.get("focus") else None,
        "left_out": found["left_out"],
        "query": asked.get("query", ""),
        "size": size,
        "sizes": SIZES,
        "source": visit.at("/graph/data", **asked, size=str(size)),
        "given": asked.get("focus", ""),
        "edges": found["edges"],
    }
    return Shown("graph.html", values)


@page("GET", "/graph/data")
def send_graph(visit: Visit) -> PageAnswer:
    """The same as JSON; with `open` the surroundings of one node, more than the `known` ones of them."""
    opened, size = visit.query.get("open"), _graph_size(visit)
    asked: dict[str, Any] = {**_graph_focus(visit), "limit": size, "depth": SIZES[size]}
    if opened:
        room = min(EXPANDED + visit.number("known"), MOST)
        asked = {"focus": opened, "limit": room, "depth": 1}
    found = visit.ask(operations.show_graph, **asked)
    for node in found["nodes"]:
        node["label"] = spell_unseen(" ".join(node["label"].split()))
    content = json.dumps(found, ensure_ascii=False).encode("utf-8", "replace")
    return Sent(content, "application/json")


def _graph_focus(visit: Visit) -> dict[str, str]:
    return {name: value for name in ("focus", "query") if (value := visit.parameter(name))}


def _graph_size(visit: Visit) -> int:
    return next((size for size in SIZES if str(size) == visit.query.get("size")), USUAL)


def _list_nodes(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each node with what it is connected to, those with most connections first."""
    labels = {node["id"]: node["label"] for node in found["nodes"]}
    ties: dict[str, list[dict[str, str]]] = {id: [] for id in labels}
    for edge in found["edges"]:
        source, target, type = edge["source"], edge["target"], edge["type"]
        there, back = ("about", "in") if type == MENTIONS else (type, f"← {type}")
        ties[source].append({"type": there, "id": target, "label": labels[target]})
        ties[target].append({"type": back, "id": source, "label": labels[source]})
    nodes = [{**node, "ties": ties[node["id"]]} for node in found["nodes"]]
    return sorted(nodes, key=lambda node: (node["id"] not in found["focus"], -len(node["ties"])))


# The inbox: what somebody should decide, one key for each decision, and the way back after it.

DECISIONS, LINES = 10, 50  # pairs on a page, and single memories
TOGETHER = {"duplicates": ("first", "apart")}  # what can be done with several pairs at once


@page("GET", "/inbox")
def show_inbox(visit: Visit, wrong: str = "", status: int = 200) -> PageAnswer:
    queue, begin = visit.query.get("queue", ""), visit.number("start")
    queue = queue if queue in QUEUES else QUEUES[0]
    limit = DECISIONS if queue in PAIRS else LINES
    found = visit.ask(operations.show_inbox, queue=queue, limit=limit, start=begin)
    counts = visit.ask(operations.count_inbox)["queues"]
    acts: list[dict[str, str]] = []
    for item in found["items"]:
        acts = [
            {"name": name, "label": ACTS[name].label, "key": ACTS[name].key}
            for name in item["acts"]
        ]
        if queue in PAIRS:
            # What differs is what has to be decided about; two texts that share next to nothing are shown as they are.
            first, second = (one["content"] for one in item["memories"])
            pieces = diff(first, second)
            item["pieces"] = pieces if any(piece.change == "kept" for piece in pieces) else []
    following = visit.at("/inbox", queue=queue, start=found["next"])
    several = TOGETHER.get(queue, () if queue in PAIRS else tuple(ACTS))
    values = {
        "queue": queue,
        "waiting": {name: counts[name] for name in QUEUES},
        "acts": acts if visit.caller.may_write else [],
        "bulk": [act for act in acts if act["name"] in several],
        "items": found["items"],
        "looked": found["looked"],
        "start": begin,
        "pairs": queue in PAIRS,
        "done": _describe_decision(visit),
        "following": following if found["next"] is not None else "",
        "wrong": wrong,
        "narrow": visit.query.get("project") in (EVERY, PERSONAL),
        "here": visit.at("/inbox", queue=queue, start=begin),
    }
    return Shown("inbox.html", values, status)


def _describe_decision(visit: Visit) -> dict[str, Any] | None:
    """What was just decided, in words, and how to take it back."""
    name, undo = visit.query.get("done", ""), visit.query.get("undo", "")
    if name not in ACTS:
        return None
    ids = visit.query.get("ids", "")
    items = (ids.count(",") + 1) // ACTS[name].of
    text = ACTS[name].done if items < 2 else f"{items} items: {ACTS[name].done}"
    back = undo if undo in ACTS and not name.startswith("undo-") else ""
    return {"text": text, "undo": back, "ids": ids}


@page("POST", "/inbox")
def decide(visit: Visit) -> PageAnswer:
    name = visit.form.get("act", "")
    ids = [id for id in visit.form.get("ids", "").split(",") if id]
    try:
        done = visit.ask(operations.decide, act=name, ids=ids)
    except UsageError as error:
        return show_inbox(visit, explain(error), 422)
    place = {"queue": visit.query.get("queue"), "start": visit.query.get("start")}
    way_back = {"undo": done["undo"], "ids": ",".join(done["ids"])}
    return Go(visit.at("/inbox", **place, done=name, **way_back))


# Health: what the agents brought in, what waits, size and growth, cost, speed, and what `bethink doctor` says.


@page("GET", "/health")
def show_health(visit: Visit) -> PageAnswer:
    found = visit.ask(operations.show_condition)
    known, doctor = found["condition"], found["doctor"]
    problems = [one for one in doctor["findings"] if not one["ok"]] if doctor else []
    # How fast it grows, from the last four weeks, and what that makes in a year.
    weekly = sum(week["memories"] for week in known["growth"][-4:]) / 4 if known else 0.0
    yearly = weekly * 52 * known["bytes_per_memory"] if known else 0.0
    values = {**found, "problems": problems, "weekly": round(weekly), "yearly_bytes": yearly}
    return Shown("health.html", values)


@page("POST", "/health")
def check_again(visit: Visit) -> PageAnswer:
    visit.ask(operations.check_again)
    return Go(visit.at("/health"))


# Projects: what each scope and container holds, who else can see it, and a copy of it to take away.

CONTAINER = "container:"


@page("GET", "/projects")
def show_projects(visit: Visit) -> PageAnswer:
    listed = visit.ask(operations.list_scopes)["items"]
    readers = visit.ask(operations.list_readers)["items"] if visit.caller.owner else []
    known: dict[str, dict[str, Any]] = {}
    # Projects before what is inside them.
    for one in sorted(listed, key=lambda one: one["scope"].startswith(CONTAINER)):
        identity, _, name = one["scope"].partition(":")[2].partition("/")
        if one["scope"].startswith(CONTAINER):
            project = known.setdefault(identity, _unknown_project(identity))
            project["containers"].append({**_describe_scope(one, []), "name": name})
        elif one["scope"] != PERSONAL:
            known[identity] = _describe_scope(one, readers)
    personal = [_describe_scope(one, readers) for one in listed if one["scope"] == PERSONAL]
    values = {
        "found": list(known.values()),
        "personal": next(iter(personal), None),
        "readers": readers,
        "owner": visit.caller.owner,
    }
    return Shown("projects.html", values)


def _describe_scope(one: dict[str, Any], readers: list[dict[str, Any]]) -> dict[str, Any]:
    scope = one["scope"]
    where = {"project": PERSONAL} if scope == PERSONAL else place(scope)
    reading = [reader for reader in readers if _reads(reader, scope)]
    return {**one, "containers": [], "where": where, "readers": reading}


def _unknown_project(identity: str) -> dict[str, Any]:
    """A project of which only a container is known."""
    nothing = {"path": None, "default": False, "memories": 0, "last": None}
    return _describe_scope({"scope": f"project:{identity}", "name": identity[:8], **nothing}, [])


def _reads(reader: dict[str, Any], scope: str) -> bool:
    if scope == PERSONAL:
        return bool(reader["personal"])
    return reader["projects"] is None or scope in reader["projects"]


@page("GET", "/projects/export")
def export(visit: Visit) -> PageAnswer:
    """Everything of a project as lines of JSON, forgotten and replaced memories included, however much that is."""
    chosen = visit.query.get("project", "")
    lines = visit.ask(operations.export, **visit.wide)
    name = chosen if chosen in (PERSONAL, EVERY) else visit.query.get("container") or "project"
    letters = [one if one.isascii() and (one.isalnum() or one in "-_") else "-" for one in name]
    return Sent(lines.values, "application/x-ndjson", f"bethink-{''.join(letters)[:60]}.jsonl")


# One memory: what it says, where it came from and what stands around it there, how it changed, what it is related to.

BESIDE = 2  # turns or passages before and after
VERSIONS = 50  # of its history that are shown
FIELDS = ("content", "summary", "kind", "importance", "tags", "entities", "expires")
WAS_PURGED = "This very text was purged before, so it is not taken in again."
UNTOLD = ("row_hash", "content_hash", "updated_at", "keywords")
MEANWHILE = "It was changed meanwhile, by somebody else or in another window. Above is what it says now; below is what you typed."


@page("GET", "/memory/{id}")
def show_memory(
    visit: Visit, given: Mapping[str, str] | None = None, wrong: str = "", status: int = 200
) -> PageAnswer:
    """The page; with what was given to a form that could not be followed, so that nothing typed is lost."""
    id = visit.path["id"]
    memory = visit.ask(operations.get, id=id, count=False)
    events = visit.ask(operations.history, id=id)["items"]
    versions = [_version(event, last=event is events[-1]) for event in events[-VERSIONS:]]
    values = {
        "memory": memory,
        "versions": versions[::-1],
        "earlier": len(events) - len(versions),
        "relations": RELATIONS,
        "wrong": wrong,
        "around": visit.ask(operations.around, id=id, turns=BESIDE)["items"],
        "form": {**_form(memory), **(given or {})},
        "belongs": _scope_name(visit, memory["scope"]),
        "done": _describe_action(visit, memory, len(events)),
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
    listed = visit.ask(operations.list_projects)["items"]
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


def _version(event: Mapping[str, Any], last: bool) -> dict[str, Any]:
    """One line of a memory's history, for people: the pieces of its text, where that changed, and other fields before and after."""
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
    return {**event, "number": number, "pieces": pieces, "fields": changed, "restorable": not last}


def _in_words(value: Any) -> str:
    if value is None or value == []:
        return "nothing"
    if isinstance(value, float):
        return f"{value:g}"
    texts = isinstance(value, list) and all(isinstance(one, str) for one in value)
    return as_words(value) if texts else str(value)


def _describe_action(
    visit: Visit, memory: Mapping[str, Any], versions: int
) -> dict[str, Any] | None:
    """What was just done, and how to undo it."""
    what = visit.parameter("done")
    relation = {"target": visit.parameter("target"), "type": visit.parameter("type")}
    again = ("link", {**relation, "direction": "in"}) if relation["target"] else ("forget", {})
    undo: dict[str, tuple[str, dict[str, Any]]] = {
        "added": ("forget", {}),
        "known": ("", {}),
        "saved": ("restore", {"version": versions - 1}),
        "forgotten": ("restore", {}),
        "restored": again,
        "voted": ("vote", {"value": "1" if visit.parameter("value").startswith("-") else "-1"}),
        "linked": ("unlink", relation),
        "unlinked": ("link", relation),
    }
    if what not in undo:
        return None
    possible = (what != "saved" or versions > 1) and (what != "forgotten" or memory["deleted_at"])
    action, fields = undo[what]
    return {"what": what, "action": action if possible else "", "fields": fields}


@page("POST", "/memory/{id}/edit")
def edit(visit: Visit) -> PageAnswer:
    """Changes what differs from what is there, if nobody else changed it meanwhile."""
    id = visit.path["id"]
    given = {name: _unix(visit.form[name]) for name in FIELDS if name in visit.form}
    try:
        known = _form(visit.ask(operations.get, id=id, count=False))
        changed = {name: value for name, value in given.items() if value != _unix(known[name])}
        if changed:
            seen = visit.form.get("updated_at")
            visit.ask(operations.update, id=id, updated_at=seen, **_body(changed))
    except Overtaken:
        return show_memory(visit, given, MEANWHILE, 409)
    except (UsageError, ValueError) as error:
        return show_memory(visit, given, explain(error), 422)
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
    visit.ask(operations.forget, id=visit.path["id"])
    return _back(visit, "forgotten")


@page("POST", "/memory/{id}/restore")
def restore(visit: Visit) -> PageAnswer:
    id, version = visit.path["id"], visit.form.get("version", "")
    before = visit.ask(operations.get, id=id, count=False)
    number = int(version) if version.isdecimal() else None
    visit.ask(operations.restore, id=id, version=number)
    if version:
        return _back(visit, "saved")
    # What was replaced is undone by replacing it again, and not by forgetting it.
    replaced = before["superseded_by"] if not before["deleted_at"] else None
    relation = {"target": replaced, "type": "supersedes"} if replaced else {}
    return _back(visit, "restored", **relation)


@page("POST", "/memory/{id}/vote")
def vote(visit: Visit) -> PageAnswer:
    value = -1 if visit.form.get("value", "1").startswith("-") else 1
    visit.ask(operations.vote, id=visit.path["id"], value=value)
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
        run = operations.link if what == "linked" else operations.unlink
        visit.ask(run, id=source, **relation)
    except (UsageError, ValueError) as error:
        return show_memory(visit, None, explain(error), 422)
    return _back(visit, what if source == id else "", **relation)


def _back(visit: Visit, done: str, **more: str) -> Go:
    return Go(visit.at(f"/memory/{visit.path['id']}", done=done, **more))
