"""The health page: what the agents brought in, what waits, size and growth, cost, speed, and what `bethink doctor` says."""

from __future__ import annotations

from typing import Any

from bethink.surface.http import browsing
from bethink.surface.web.visit import Answered, Go, Page, Shown, Visit

HEIGHT = 60.0  # of the tallest bar of the chart


def show(visit: Visit) -> Answered:
    found = visit.ask(browsing.show_condition)
    known = found["condition"]
    values = {
        "condition": known,
        "doctor": found["doctor"],
        "running": found["running"],
        "recall": found["recall"],
        "bars": _bars(known["growth"]) if known else [],
        "grown": _grown(known) if known else None,
        "problems": [one for one in found["doctor"]["findings"] if not one["ok"]]
        if found["doctor"]
        else [],
    }
    return Shown("health.html", values)


def _bars(weeks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A bar for each week, as a drawing of its own: where it stands and how high it is."""
    most = max((week["memories"] for week in weeks), default=0) or 1
    return [
        {
            "x": number * 20 + 2,
            "height": (high := round(week["memories"] / most * HEIGHT, 1)),
            "y": round(HEIGHT - high, 1) + 2,
            **week,
        }
        for number, week in enumerate(weeks)
    ]


def _grown(known: dict[str, Any]) -> dict[str, Any]:
    """How fast it grows, from the last four weeks, and what that makes in a year."""
    weekly = sum(week["memories"] for week in known["growth"][-4:]) / 4
    return {"weekly": round(weekly), "yearly_bytes": weekly * 52 * known["bytes_per_memory"]}


def again(visit: Visit) -> Answered:
    visit.ask(browsing.check_again)
    return Go(visit.at("/health"))


PAGES = (Page("GET", "/health", show), Page("POST", "/health", again))
