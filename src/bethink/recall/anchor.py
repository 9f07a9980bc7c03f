"""Questions about a past state: "what did we use in March?", "how did we deploy before we moved to Kubernetes?".

The first asks for what held then, though it has been replaced since. The second names its time by an event that only memory
knows, which has to be looked up first. Pure: what was found is given.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import NamedTuple

from bethink.types import Filter, Query

# Kept as text and compiled when a question has such a word: compiling costs a cold search more than looking.
_SIDES = ("before", "after", "since", "until", "prior to")
_EVENT = r"(?i)\b(?P<side>before|after|since|until|prior to)\s+(?:that\s+)?(?P<event>(?:we|the|our)\s[^?.!,;]{3,120})"
_PAST = r"(?i)\b(?:did|were|had|was)\s+(?:we|our|the (?:team|project|app|service|system))\b|\bwe (?:used to|were using|had)\b"
KNOWN = 0.52  # how well a memory must fit the event to tell its time
INSTANT = timedelta(milliseconds=1)


class Event(NamedTuple):
    side: str  # before or after
    text: str


def event(question: str) -> Event | None:
    """The event that a question about the work measures its time by, if it names one instead of a date. What happened in
    somebody's life before or after something else is told later as often as not, so only "did we …" is meant."""
    asked = question[:1000]
    if not any(side in asked.lower() for side in _SIDES):
        return None
    found = re.search(_EVENT, asked)
    if found is None or not re.search(_PAST, asked):
        return None
    return Event(
        "before" if found["side"].lower() in ("before", "until", "prior to") else "after",
        found["event"].strip(),
    )


def placed(
    query: Query, filter: Filter, question: str, now: datetime, when: tuple[Event, datetime] | None
) -> tuple[Query, Filter]:
    """The question with the time of its event, and the filter that sees what held at the time it asks about."""
    if when and when[0].side == "after":
        return query._replace(since=query.since or when[1]), filter
    if when:
        query = query._replace(until=query.until or when[1])
    if (
        not query.until
        or query.until >= now
        or filter.as_of is not None
        or filter.include_superseded
    ):
        return query, filter
    if when is not None or re.search(_PAST, question[:1000]):
        return query, filter._replace(as_of=query.until - INSTANT)
    return query, filter
