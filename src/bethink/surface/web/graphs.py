"""The graph around a focus: drawn by a script, and listed for everybody else. `/graph/data` is what the script asks for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bethink.features.graph import ABOUT, MENTIONS, MOST
from bethink.surface.http import browsing
from bethink.surface.web.render import spelled
from bethink.surface.web.visit import Answered, Page, Sent, Shown, Visit

SIZES = {40: 2, 80: 2, 200: 3, 500: 4}  # nodes at most → steps outwards
USUAL = 80
EXPANDED = 30  # nodes that opening one of them brings


def show(visit: Visit) -> Answered:
    size, asked = _size(visit), _asked(visit)
    found = visit.ask(browsing.show_graph, {**asked, "limit": size, "depth": SIZES[size]})
    listed = _listed(found)
    source = visit.at("/graph/data", **asked, size=str(size))
    focused = (
        next((one for one in listed if one["id"] in found["focus"]), None)
        if asked.get("focus")
        else None
    )
    values = {
        "memories": [one for one in listed if not one["id"].startswith(ABOUT)],
        "things": [one for one in listed if one["id"].startswith(ABOUT)],
        "focus": found["focus"],
        "focused": focused,
        "more": found["more"],
        "query": asked.get("query", ""),
        "size": size,
        "sizes": SIZES,
        "source": source,
        "given": asked.get("focus", ""),
        "edges": found["edges"],
    }
    return Shown("graph.html", values)


def data(visit: Visit) -> Answered:
    """The same as JSON; with `open` the surroundings of one node, more than the `known` ones of them."""
    opened, known = visit.query.get("open"), visit.query.get("known", "")
    if opened:
        room = EXPANDED + (int(known) if known.isdecimal() and len(known) < 5 else 0)
        asked: dict[str, Any] = {"focus": opened, "limit": min(room, MOST), "depth": 1}
    else:
        asked = {**_asked(visit), "limit": _size(visit), "depth": SIZES[_size(visit)]}
    found = visit.ask(browsing.show_graph, asked)
    for node in found["nodes"]:
        node["label"] = spelled(" ".join(node["label"].split()))
    return Sent(
        json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"), "application/json"
    )


def _asked(visit: Visit) -> dict[str, str]:
    return {
        name: value for name in ("focus", "query") if (value := visit.query.get(name, "").strip())
    }


def _size(visit: Visit) -> int:
    return next((size for size in SIZES if str(size) == visit.query.get("size")), USUAL)


def _listed(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each node with what it is connected to, those with most connections first."""
    labels = {node["id"]: node["label"] for node in found["nodes"]}
    ties: dict[str, list[dict[str, str]]] = {id: [] for id in labels}
    for edge in found["edges"]:
        source, target, type = edge["source"], edge["target"], edge["type"]
        ties[source].append(
            {"type": type if type != MENTIONS else "about", "id": target, "label": labels[target]}
        )
        ties[target].append(
            {
                "type": f"← {type}" if type != MENTIONS else "in",
                "id": source,
                "label": labels[source],
            }
        )
    nodes = [{**node, "ties": ties[node["id"]]} for node in found["nodes"]]
    return sorted(nodes, key=lambda node: (node["id"] not in found["focus"], -len(node["ties"])))


PAGES = (Page("GET", "/graph", show), Page("GET", "/graph/data", data))
