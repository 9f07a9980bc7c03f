"""What the pages look at: what happened since somebody was last here; conversations by the day they were held on, with their topics as
bands and what was said turn by turn; and what stands around something, as a graph.

Only looks. A band's share tells how much of the conversation a topic was, by the lines of its transcript. A graph grows from a focus
outwards, nearest first, until it has as many nodes as were asked for. The focus is a memory, a named thing, or whatever a question
finds; without one it is what was told last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import NamedTuple

from bethink.api import Bethink
from bethink.errors import NotFound
from bethink.ingest.reconcile import OPEN
from bethink.types import KINDS, NOTHING, STATEMENTS, Memory, Session, Span

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


def list_sessions(
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


def group_by_day(memory: Bethink, held: Sequence[Session]) -> list[Day]:
    """Conversations, newest first, put together by day (UTC), each with its topics."""
    found = []
    for day, together in groupby(held, lambda one: one.started_at and one.started_at.date()):
        spans = ((one, memory.store.spans(one.id, (one.scope,))) for one in together)
        found.append(Day(day, tuple(Conversation(one, measure_topics(of)) for one, of in spans)))
    return found


def measure_topics(spans: Sequence[Span]) -> tuple[Band, ...]:
    """The topics of a conversation in order; sub-topics are part of theirs."""
    top = [span for span in spans if span.depth == 0]
    lengths = [max(1, span.lines[1] - span.lines[0] + 1) for span in top]
    return tuple(
        Band(span, length / sum(lengths)) for span, length in zip(top, lengths, strict=True)
    )


def list_turns(
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


# What happened

LOOKED = 200  # of the newest statements that are looked through for changes of mind
WEEKS = 26  # of the calendar
MOST_RECENT = 12  # conversations, statements, open ones


class ChangeOfMind(NamedTuple):
    new: Memory
    old: Memory


class RecentWork(NamedTuple):
    since: datetime
    told: int  # statements
    sessions: tuple[Session, ...]
    changes: tuple[ChangeOfMind, ...]
    newest: tuple[Memory, ...]
    open: tuple[Memory, ...]  # what is to be done, asked or broken, whenever it was told
    days: Mapping[str, int]  # of the calendar: date → memories


def catch_up(memory: Bethink, scopes: tuple[str, ...], since: datetime) -> RecentWork:
    """What happened since a time, newest first: only so much that it can be read."""
    store = memory.store
    statements = memory.filter(scopes=scopes, kinds=STATEMENTS, since=since)
    found = memory.list(filter=statements, limit=LOOKED)
    sessions = store.sessions(scopes, MOST_RECENT)
    days = store.count_days(scopes, memory.clock() - timedelta(weeks=WEEKS))
    undone = memory.filter(scopes=scopes, kinds=OPEN, answered=False)
    return RecentWork(
        since,
        store.count(statements),
        tuple(one for one in sessions if (one.ended_at or one.started_at or since) > since),
        tuple(_find_changes(memory, scopes, found))[:MOST_RECENT],
        tuple(found[:MOST_RECENT]),
        tuple(memory.list(filter=undone, limit=MOST_RECENT)),
        {day.isoformat(): days[day] for day in sorted(days)},
    )


def _find_changes(
    memory: Bethink, scopes: Sequence[str], found: Sequence[Memory]
) -> Iterator[ChangeOfMind]:
    """Which of these statements replaced another, and which one."""
    known = {one.id: one for one in found}
    pairs = [
        (relation.source, relation.target)
        for relation in memory.store.relations(list(known))
        if relation.type == "supersedes" and relation.source in known
    ]
    old = {one.id: one for one in memory.store.get([target for _, target in pairs])}
    for source, target in sorted(pairs, reverse=True):
        if target in old and old[target].scope in scopes:
            yield ChangeOfMind(known[source], old[target])


# Graphs

ABOUT = "about:"  # before the name of a thing, where an id of a memory could stand
MENTIONS = "mentions"  # what connects a memory to a thing it is about
MOST = 500  # nodes that can still be read
THINGS = 8  # named things of one memory
BEST = 5  # of what a question finds that count as its focus
LEAST_SHARE = 12  # memories that one thing may bring in at least, however small the graph


class GraphNode(NamedTuple):
    id: str  # of a memory, or `about:` and the folded name of a thing
    label: str
    type: str  # a kind of memory, or a type of entity
    scope: str = ""  # of a memory
    distance: int = 0  # steps from the focus


class GraphEdge(NamedTuple):
    source: str
    target: str
    type: str  # a relation, or mentions


class Graph(NamedTuple):
    focus: tuple[str, ...]
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    more: bool = False  # whether something was left out
    left_out: Mapping[str, int] = (
        NOTHING  # thing → memories about it; under "" what else had no room
    )


def draw_graph(
    memory: Bethink,
    focus: str | None = None,
    query: str | None = None,
    *,
    limit: int = 80,
    depth: int = 2,
) -> Graph:
    """The graph around a memory (its id), a thing (`about:` and its name), what a question finds, or what was told last."""
    builder = _GraphBuilder(memory, min(limit, MOST))
    seeds = max(1, limit // 2)
    begin: tuple[str, ...]
    if focus and focus.casefold().startswith(ABOUT):
        begin = (builder.begin_with_thing(focus[len(ABOUT) :].strip()),)
    else:
        if focus:
            found = [memory.one(focus)]
        elif query:
            hits = memory.search(query, limit=min(seeds, 100), related=False).hits
            found = [hit.memory for hit in hits]
        else:
            statements = memory.filter(kinds=STATEMENTS)
            found = memory.list(filter=statements, limit=seeds) or memory.list(limit=seeds)
        builder.add_memories(found, 0)
        begin = tuple(one.id for one in found[:BEST]) if focus or query else ()
    for distance in range(1, depth + 1):
        builder.grow(distance)
    return builder.finish(begin)


class _GraphBuilder:
    """Builds a graph from its focus outwards, until it has as many nodes as it may."""

    def __init__(self, memory: Bethink, limit: int) -> None:
        self._memory, self._limit = memory, limit
        self._memories: dict[str, Memory] = {}
        self._nodes: dict[str, GraphNode] = {}
        self._totals: dict[str, int] = {}  # thing → memories about it
        self._refused: set[str] = set()  # nodes for which there was no room

    def _add(self, node: GraphNode) -> bool:
        """Whether a node is in the graph, now or from before."""
        if node.id not in self._nodes and len(self._nodes) >= self._limit:
            self._refused.add(node.id)
            return False
        self._nodes.setdefault(node.id, node)
        return True

    def add_memories(self, found: Iterable[Memory], distance: int) -> None:
        for one in found:
            if self._add(GraphNode(one.id, one.summary, one.kind, one.scope, distance)):
                self._memories.setdefault(one.id, one)

    def begin_with_thing(self, name: str) -> str:
        """Puts a named thing into the focus, however it is written. Returns the id of its node."""
        known = self._list_about(name, 1)
        if not known:
            raise NotFound(
                f"Nothing is known about '{name[:80]}'.",
                "Search for it, and take a name from what is found.",
            )
        id = ABOUT + name.casefold()
        entity = next(one for one in known[0].entities if ABOUT + one.name.casefold() == id)
        self._add(GraphNode(id, entity.name, entity.type))
        return id

    def _list_about(self, name: str, limit: int) -> list[Memory]:
        wanted = self._memory.filter(entities=(name,), include_superseded=True)
        self._totals[name] = self._memory.store.count(wanted)
        return self._memory.list(filter=wanted, limit=limit)

    def grow(self, distance: int) -> None:
        """One step outwards: what is related to the memories, what else the things are about, then the things of the memories."""
        fresh = [node for node in self._nodes.values() if node.distance == distance - 1]
        memories = [self._memories[node.id] for node in fresh if node.id in self._memories]
        relations = self._memory.store.relations([one.id for one in memories])
        ends = {end for relation in relations for end in relation[:2]}
        related = self._memory.store.get(sorted(ends - self._memories.keys()))
        seen = (one for one in related if one.scope in self._memory.scopes and not one.deleted_at)
        self.add_memories(seen, distance)
        share = max(LEAST_SHARE, self._limit // 2)
        for node in fresh:
            if node.id.startswith(ABOUT) and len(self._nodes) < self._limit:
                self.add_memories(self._list_about(node.label, share), distance)
        self._add_things(memories, distance)

    def _add_things(self, memories: Sequence[Memory], distance: int) -> None:
        """The things that memories are about."""
        every = (entity for one in self._memories.values() for entity in one.entities)
        shared = Counter(entity.name.casefold() for entity in every)
        for one in memories:
            # Things that several memories are about connect; the rest would only hang there.
            for entity in sorted(one.entities, key=lambda e: -shared[e.name.casefold()])[:THINGS]:
                name = entity.name.casefold()
                if shared[name] > 1 or len(memories) == 1:
                    self._add(GraphNode(ABOUT + name, entity.name, entity.type, "", distance))

    def finish(self, focus: tuple[str, ...]) -> Graph:
        relations = self._memory.store.relations(list(self._memories))
        found = [GraphEdge(*relation[:3]) for relation in relations]
        found += [
            GraphEdge(one.id, ABOUT + entity.name.casefold(), MENTIONS)
            for one in self._memories.values()
            for entity in one.entities
        ]
        edges = {edge: None for edge in found if {edge.source, edge.target} <= self._nodes.keys()}
        here = Counter(edge.target for edge in edges if edge.type == MENTIONS)
        left_out = {
            name: left
            for name, total in self._totals.items()
            if (left := total - here[ABOUT + name.casefold()]) > 0
        }
        if self._refused:
            left_out[""] = len(self._refused)
        return Graph(focus, tuple(self._nodes.values()), tuple(edges), bool(left_out), left_out)
