"""The pages for finding and looking around: search, timeline and conversations, the graph, the inbox, health and projects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bethink.errors import UsageError
from bethink.features.browse import ABOUT, MENTIONS, MOST
from bethink.features.inbox import ACTS, PAIRS, QUEUES
from bethink.hosts import HOSTS
from bethink.recall.excerpt import find_sought
from bethink.surface.http import browsing, memories
from bethink.surface.web.render import diff, spelled
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
from bethink.types import KINDS

# Search: results while one types, filters, marked words, and why each was found. Without a question, what is newest.

HITS = 20  # on a page
SEVERAL = ("kind", "entity", "source", "host", "tag")  # filters of which there may be several
SINGLE = ("since", "until", "session")
FILTERS = (*SEVERAL, *SINGLE, "hidden")
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


@page("GET", "/")
def show_search(visit: Visit) -> PageAnswer:
    question = visit.asked("q")
    chosen = {name: visit.query.get(name, "") for name in FILTERS}
    projects = visit.ask(memories.list_projects)
    names = {one["scope"]: one["name"] for one in projects["items"]}
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
        "projects": projects,
        "scope_names": names if visit.asked("project") == EVERY else {},
    }
    status = 200
    try:
        values |= _search(visit, question)
    except UsageError as error:
        status, values["wrong"] = 422, explain(error)
    else:
        values["sought"] = (
            find_sought(question, visit.tools.projects.base.clock()) if question else None
        )
    part = visit.query.get("part") == "results"
    return Shown("results.html" if part else "search.html", values, status)


def _search(visit: Visit, question: str) -> dict[str, Any]:
    wanted: dict[str, Any] = {"limit": HITS, **visit.wide}
    wanted |= {name: one for name in (*SINGLE, "cursor") if (one := visit.query.get(name))}
    lists = {name: [one for one in visit.query.getlist(name) if one] for name in SEVERAL}
    wanted |= {name: several for name, several in lists.items() if several}
    if visit.query.get("hidden"):
        wanted |= dict.fromkeys(HIDDEN, True)
    if question:
        found = visit.ask(memories.search, {**wanted, "query": question, "explain": True})
    else:
        found = visit.ask(memories.list_memories, wanted)
    asked = {name: value for name in ("q", *FILTERS) if (value := visit.query.get(name))}
    following = visit.at("/", **asked, cursor=found["next"]) if found["next"] else None
    return {**found, "next": following}


# The timeline: conversations by day with their topics as bands; and one conversation, turn by turn, with what was taken from it.

SESSIONS = 20  # on a page
TURNS = 50
COLUMNS = 24  # that the bands of a conversation share
COLOURS = 6


@page("GET", "/timeline")
def show_timeline(visit: Visit) -> PageAnswer:
    host, project = visit.query.get("host", ""), visit.query.get("project", "")
    cursor = visit.query.get("cursor") or None
    asked = {"limit": SESSIONS, "host": host or None, "cursor": cursor}
    found = visit.ask(browsing.show_timeline, {**asked, "all_projects": project == EVERY})
    for day in found["days"]:
        for session in day["sessions"]:
            for number, topic in enumerate(session["topics"]):
                topic["columns"] = max(1, round(topic["share"] * COLUMNS))
                topic["colour"] = number % COLOURS
    projects = visit.ask(memories.list_projects)
    names = {one["scope"]: one["name"] for one in projects["items"]}
    following = visit.at("/timeline", host=host, cursor=found["next"]) if found["next"] else ""
    values = {
        "days": found["days"],
        "following": following,
        "projects": projects,
        "hosts": HOSTS,
        "host": host,
        "project": project,
        "scope_names": names if project == EVERY else {},
        "begun": bool(cursor),
    }
    return Shown("timeline.html", values)


@page("GET", "/session/{id}")
def show_session(visit: Visit) -> PageAnswer:
    path, topic = {"id": visit.path["id"]}, visit.query.get("topic") or None
    found = visit.ask(browsing.get_session, path=path)
    asked = {"topic": topic, "limit": TURNS, "cursor": visit.query.get("cursor") or None}
    said = visit.ask(browsing.list_turns, asked, path=path)
    following = visit.at(f"/session/{found['id']}", topic=topic, cursor=said["next"])
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
    found = visit.ask(browsing.show_graph, {**asked, "limit": size, "depth": SIZES[size]})
    listed = _list_nodes(found)
    in_focus = (one for one in listed if one["id"] in found["focus"])
    values = {
        "memories": [one for one in listed if not one["id"].startswith(ABOUT)],
        "things": [one for one in listed if one["id"].startswith(ABOUT)],
        "focus": found["focus"],
        "focused": next(in_focus, None) if asked.get("focus") else None,
        "more": found["more"],
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
    opened, known, size = visit.query.get("open"), visit.query.get("known", ""), _graph_size(visit)
    asked: dict[str, Any] = {**_graph_focus(visit), "limit": size, "depth": SIZES[size]}
    if opened:
        room = EXPANDED + (int(known) if known.isdecimal() and len(known) < 5 else 0)
        asked = {"focus": opened, "limit": min(room, MOST), "depth": 1}
    found = visit.ask(browsing.show_graph, asked)
    for node in found["nodes"]:
        node["label"] = spelled(" ".join(node["label"].split()))
    content = json.dumps(found, ensure_ascii=False).encode("utf-8", "replace")
    return Sent(content, "application/json")


def _graph_focus(visit: Visit) -> dict[str, str]:
    return {name: value for name in ("focus", "query") if (value := visit.asked(name))}


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

DECISIONS = 10  # on a page
QUEUE_TITLES = {
    "contradictions": ("Contradictions", "Statements that disagree, the newer one first."),
    "duplicates": (
        "Duplicates",
        "Statements that say the same, or nearly so; the one to keep first.",
    ),
    "doubtful": ("Doubtful", "What nobody vouches for: imported, said by a tool, or quarantined."),
    "questions": ("Open questions", "What was asked, or broke, and has no answer yet."),
    "promotions": (
        "Could be rules",
        "What proved useful often enough to stand where agents read it at every start.",
    ),
}


@page("GET", "/inbox")
def show_inbox(visit: Visit) -> PageAnswer:
    return _show_inbox(visit)


def _show_inbox(visit: Visit, wrong: str = "", status: int = 200) -> Shown:
    queue, start = visit.query.get("queue", ""), visit.query.get("start", "")
    queue = queue if queue in QUEUES else QUEUES[0]
    begin = int(start) if start.isdecimal() and len(start) < 10 else 0
    found = visit.ask(browsing.show_inbox, {"queue": queue, "limit": DECISIONS, "start": begin})
    for item in found["items"]:
        acts = {name: ACTS[name] for name in item["acts"]}
        item["acts"] = [
            {"name": name, "label": act.label, "key": act.key} for name, act in acts.items()
        ]
        if queue in PAIRS:
            # What differs is what has to be decided about; two texts that share next to nothing are shown as they are.
            first, second = (one["content"] for one in item["memories"])
            pieces = diff(first, second)
            item["pieces"] = pieces if any(piece.change == "kept" for piece in pieces) else []
    following = visit.at("/inbox", queue=queue, start=str(found["next"]))
    project = visit.query.get("project", "")
    values = {
        "queue": queue,
        "queues": [(name, QUEUE_TITLES[name][0]) for name in QUEUES],
        "title": QUEUE_TITLES[queue][0],
        "about": QUEUE_TITLES[queue][1],
        "items": found["items"],
        "looked": found["looked"],
        "start": begin,
        "pairs": queue in PAIRS,
        "done": _decided(visit),
        "following": following if found["next"] is not None else "",
        "wrong": wrong,
        "projects": visit.ask(memories.list_projects),
        "project": project,
        "narrow": project in (EVERY, PERSONAL),
        "here": visit.at("/inbox", queue=queue, start=start),
    }
    return Shown("inbox.html", values, status)


def _decided(visit: Visit) -> dict[str, Any] | None:
    """What was just decided, in words, and how to take it back."""
    name, undo = visit.query.get("done", ""), visit.query.get("undo", "")
    if name not in ACTS:
        return None
    back = undo if undo in ACTS and not name.startswith("undo-") else ""
    return {"text": ACTS[name].done, "undo": back, "ids": visit.query.get("ids", "")}


@page("POST", "/inbox")
def decide(visit: Visit) -> PageAnswer:
    name = visit.form.get("act", "")
    ids = [id for id in visit.form.get("ids", "").split(",") if id]
    try:
        done = visit.ask(browsing.decide, body={"act": name, "ids": ids})
    except UsageError as error:
        return _show_inbox(visit, explain(error), 422)
    place = {"queue": visit.query.get("queue"), "start": visit.query.get("start")}
    way_back = {"undo": done["undo"], "ids": ",".join(done["ids"])}
    return Go(visit.at("/inbox", **place, done=name, **way_back))


# Health: what the agents brought in, what waits, size and growth, cost, speed, and what `bethink doctor` says.

TALLEST = 60.0  # bar of the chart


@page("GET", "/health")
def show_health(visit: Visit) -> PageAnswer:
    found = visit.ask(browsing.show_condition)
    known, doctor = found["condition"], found["doctor"]
    values = {
        **found,
        "bars": _bars(known["growth"]) if known else [],
        "grown": _growth(known) if known else None,
        "problems": [one for one in doctor["findings"] if not one["ok"]] if doctor else [],
    }
    return Shown("health.html", values)


def _bars(weeks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A bar for each week, as a drawing of its own: where it stands and how high it is."""
    most = max((week["memories"] for week in weeks), default=0) or 1
    bars = []
    for number, week in enumerate(weeks):
        height = round(week["memories"] / most * TALLEST, 1)
        drawn = {"x": number * 20 + 2, "y": round(TALLEST - height, 1) + 2, "height": height}
        bars.append({**drawn, **week})
    return bars


def _growth(known: dict[str, Any]) -> dict[str, Any]:
    """How fast it grows, from the last four weeks, and what that makes in a year."""
    weekly = sum(week["memories"] for week in known["growth"][-4:]) / 4
    return {"weekly": round(weekly), "yearly_bytes": weekly * 52 * known["bytes_per_memory"]}


@page("POST", "/health")
def check_again(visit: Visit) -> PageAnswer:
    visit.ask(browsing.check_again)
    return Go(visit.at("/health"))


# Projects: what each scope and container holds, who else can see it, and a copy of it to take away.

CONTAINER = "container:"


@page("GET", "/projects")
def show_projects(visit: Visit) -> PageAnswer:
    listed = visit.ask(browsing.list_scopes)["items"]
    readers = visit.ask(browsing.list_readers)["items"] if visit.caller.owner else []
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
    lines = visit.ask(memories.export, visit.wide)
    name = chosen if chosen in (PERSONAL, EVERY) else visit.query.get("container") or "project"
    letters = [one if one.isascii() and (one.isalnum() or one in "-_") else "-" for one in name]
    return Sent(lines, "application/x-ndjson", f"bethink-{''.join(letters)[:60]}.jsonl")
