"""Conversations by the day they were held on, each with its topics as bands; and what was said in one of them, turn by turn.

Only looks. A band's share tells how much of the conversation a topic was, by the lines of its transcript.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from itertools import groupby
from typing import NamedTuple

from bethink.api import Bethink
from bethink.types import KINDS, Memory, Session, Span

PAGE = 200  # sessions that are read at once when only some of them are wanted
MOST_TURNS = 5000  # of one conversation that are looked through for a topic
MOST_IDEAS = 1000
IDEAS = tuple(kind for kind in KINDS if kind != "context")


class Band(NamedTuple):
    """A topic as a part of its conversation."""

    span: Span
    share: float  # of the lines of all topics, 0–1


class Conversation(NamedTuple):
    """One conversation of a day."""

    session: Session
    bands: tuple[Band, ...]


class Day(NamedTuple):
    date: date | None  # None: nobody knows when
    sessions: tuple[Conversation, ...]


class TurnWithIdeas(NamedTuple):
    """One turn of a conversation, and the ideas that were taken from it."""

    turn: Memory
    ideas: tuple[Memory, ...] = ()


def sessions(
    memory: Bethink,
    scopes: Sequence[str],
    host: str | None = None,
    limit: int = 20,
    offset: int = 0,
) -> list[Session]:
    """Conversations, newest first; those of one host, if it is named."""
    if not host:
        return memory.store.sessions(scopes, limit, offset)
    found: list[Session] = []
    start = 0
    while len(found) < offset + limit and (page := memory.store.sessions(scopes, PAGE, start)):
        found += [one for one in page if one.host == host]
        start += len(page)
    return found[offset : offset + limit]


def days(memory: Bethink, held: Sequence[Session]) -> list[Day]:
    """Conversations, newest first, put together by day (UTC), each with its topics."""
    found = []
    for day, together in groupby(held, lambda one: one.started_at and one.started_at.date()):
        spans = ((one, memory.store.spans(one.id, (one.scope,))) for one in together)
        found.append(Day(day, tuple(Conversation(one, bands(of)) for one, of in spans)))
    return found


def bands(spans: Sequence[Span]) -> tuple[Band, ...]:
    """The topics of a conversation in order; sub-topics are part of theirs."""
    top = [span for span in spans if span.depth == 0]
    lengths = [max(1, span.lines[1] - span.lines[0] + 1) for span in top]
    return tuple(
        Band(span, length / sum(lengths)) for span, length in zip(top, lengths, strict=True)
    )


def turns(
    memory: Bethink, of: Session, topic: str | None = None, limit: int = 50, offset: int = 0
) -> tuple[list[TurnWithIdeas], int]:
    """What was said in a conversation, or in one of its topics with its sub-topics, in order; and how many turns that are."""
    wanted = memory.filter(scopes=(of.scope,), session=of.id, kinds=("context",), transcribed=True)
    if topic is None:
        found = memory.store.list(wanted, limit, offset, "position")
        return _add_ideas(memory, of, found), memory.store.count(wanted)
    inside = {topic}
    for span in memory.store.spans(of.id, (of.scope,)):  # parents come before their children
        if span.parent in inside:
            inside.add(span.id)
    every = memory.store.list(wanted, MOST_TURNS, 0, "position")
    found = [one for one in every if one.span in inside]
    return _add_ideas(memory, of, found[offset : offset + limit]), len(found)


def _add_ideas(memory: Bethink, of: Session, found: Sequence[Memory]) -> list[TurnWithIdeas]:
    wanted = memory.filter(
        scopes=(of.scope,),
        session=of.id,
        kinds=IDEAS,
        include_superseded=True,
        include_expired=True,
    )
    ideas: dict[object, list[Memory]] = {}
    for one in memory.store.list(wanted, MOST_IDEAS, 0, "position"):
        ideas.setdefault(one.metadata.get("turn", one.id), []).append(one)
    return [TurnWithIdeas(one, tuple(ideas.get(one.metadata.get("turn"), ()))) for one in found]
