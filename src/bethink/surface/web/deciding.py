"""The inbox: what somebody should decide, one key for each decision, and the way back after it."""

from __future__ import annotations

from typing import Any

from bethink.errors import UsageError
from bethink.features.inbox import ACTS, PAIRS, QUEUES
from bethink.surface.http import browsing, memories
from bethink.surface.web.diffs import diff
from bethink.surface.web.visit import EVERY, PERSONAL, Answered, Go, Page, Shown, Visit

SHOWN = 10
TITLES = {
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


def show(visit: Visit) -> Answered:
    return _page(visit)


def _page(visit: Visit, wrong: str = "", status: int = 200) -> Shown:
    queue = visit.query.get("queue", "")
    queue = queue if queue in QUEUES else QUEUES[0]
    start = visit.query.get("start", "")
    asked = {
        "queue": queue,
        "limit": SHOWN,
        "start": int(start) if start.isdecimal() and len(start) < 10 else 0,
    }
    found = visit.ask(browsing.show_inbox, asked)
    for item in found["items"]:
        item["acts"] = [
            {"name": name, "label": ACTS[name].label, "key": ACTS[name].key}
            for name in item["acts"]
        ]
        if queue in PAIRS:
            # What differs is what has to be decided about; two texts that share next to nothing are shown as they are.
            pieces = diff(item["memories"][0]["content"], item["memories"][1]["content"])
            item["pieces"] = pieces if any(piece.change == "kept" for piece in pieces) else []
    project = visit.query.get("project", "")
    values = {
        "queue": queue,
        "queues": [(name, TITLES[name][0]) for name in QUEUES],
        "about": TITLES[queue][1],
        "title": TITLES[queue][0],
        "items": found["items"],
        "looked": found["looked"],
        "start": asked["start"],
        "pairs": queue in PAIRS,
        "done": _done(visit),
        "following": visit.at("/inbox", queue=queue, start=str(found["next"]))
        if found["next"] is not None
        else "",
        "wrong": wrong,
        "projects": visit.ask(memories.list_projects),
        "project": project,
        "narrow": project in (EVERY, PERSONAL),
        "here": visit.at("/inbox", queue=queue, start=start),
    }
    return Shown("inbox.html", values, status)


def _done(visit: Visit) -> dict[str, Any] | None:
    """What was just decided, in words, and how to take it back."""
    name, ids = visit.query.get("done", ""), visit.query.get("ids", "")
    if name not in ACTS:
        return None
    undo = visit.query.get("undo", "")
    back = undo if undo in ACTS and not name.startswith("undo-") else ""
    return {"text": ACTS[name].done, "undo": back, "ids": ids}


def decide(visit: Visit) -> Answered:
    name = visit.form.get("act", "")
    ids = [id for id in visit.form.get("ids", "").split(",") if id]
    try:
        done = visit.ask(browsing.decide, body={"act": name, "ids": ids})
    except UsageError as error:
        return _page(visit, f"{error.message} {error.hint or ''}".strip(), 422)
    queue, start = visit.query.get("queue"), visit.query.get("start")
    return Go(
        visit.at(
            "/inbox",
            queue=queue,
            start=start,
            done=name,
            undo=done["undo"],
            ids=",".join(done["ids"]),
        )
    )


PAGES = (Page("GET", "/inbox", show), Page("POST", "/inbox", decide))
