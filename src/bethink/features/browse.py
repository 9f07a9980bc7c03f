"""What the pages look at: what happened since somebody was last here; conversations with their topics and what was said turn by
turn; what stands around something, as a graph; and how memory is doing: what each agent's conversations brought in, what waits to
be read or embedded, how large the database is and how it grows, what a language model cost.

Only looks. A topic's share tells how much of its conversation it was, by the lines of the transcript. A graph grows from a focus
outwards, nearest first, until it has as many nodes as were asked for. The focus is a memory, a named thing, or whatever a question
finds; without one it is what was told last.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from bethink.api import Bethink
from bethink.config import mask_password
from bethink.errors import NotFound
from bethink.features import language
from bethink.hooks import spool, state
from bethink.ingest.reconcile import OPEN
from bethink.llm import DAYS_REPORTED, open_budget
from bethink.model import KINDS, STATEMENTS, Json, Memory, Session, Span

MOST_SESSIONS = 5000  # that are counted by host
MOST_IDEAS = 1000
IDEAS = tuple(kind for kind in KINDS if kind != "context")


def measure_topics(memory: Bethink, of: Session) -> list[tuple[Span, float]]:
    """The topics of a conversation in order, and the share of it (0–1) that each was; sub-topics are part of theirs."""
    spans = [span for span in memory.store.spans(of.id, (of.scope,)) if span.depth == 0]
    lengths = [max(1, span.lines[1] - span.lines[0] + 1) for span in spans]
    return [(span, length / sum(lengths)) for span, length in zip(spans, lengths, strict=True)]


def list_turns(
    memory: Bethink, of: Session, topic: str | None, limit: int, offset: int
) -> tuple[list[tuple[Memory, list[Memory]]], int]:
    """What was said in a conversation, or in one of its topics with its sub-topics, in order, each turn with the ideas that were taken
    from it; and how many turns that are."""
    here: Json = {"scopes": (of.scope,), "session": of.id}
    wanted = memory.filter(**here, kinds=("context",), transcribed=True)
    if topic:
        spans = memory.store.spans(of.id, (of.scope,))
        inner = [span.id for span in spans if span.parent == topic]
        wanted = wanted._replace(spans=(topic, *inner))
    found = memory.store.list(wanted, limit, offset, "position")
    taken = memory.filter(**here, kinds=IDEAS, include_superseded=True, include_expired=True)
    ideas: dict[object, list[Memory]] = {}
    for one in memory.store.list(taken, MOST_IDEAS, 0, "position"):
        ideas.setdefault(one.metadata.get("turn", one.id), []).append(one)
    turns = [(one, ideas.get(one.metadata.get("turn"), [])) for one in found]
    return turns, memory.store.count(wanted)


# What happened

LOOKED = 200  # of the newest statements that are looked through for changes of mind
WEEKS = 26  # of the calendar
MOST_RECENT = 12  # conversations, statements, open ones


def catch_up(memory: Bethink, scopes: tuple[str, ...], since: datetime) -> Json:
    """What happened since a time, newest first: only so much that it can be read."""
    store = memory.store
    statements = memory.filter(scopes=scopes, kinds=STATEMENTS, since=since)
    found = memory.list(filter=statements, limit=LOOKED)
    sessions = store.sessions(scopes, MOST_RECENT)
    days = store.count_days(scopes, memory.clock() - timedelta(weeks=WEEKS))
    undone = memory.filter(scopes=scopes, kinds=OPEN, answered=False)
    return {
        "since": since,
        "told": store.count(statements),
        "sessions": [one for one in sessions if (one.ended_at or one.started_at or since) > since],
        "changes": _find_changes(memory, scopes, found),
        "newest": found[:MOST_RECENT],
        # What is to be done, asked or broken, whenever it was told.
        "open": memory.list(filter=undone, limit=MOST_RECENT),
        "days": {day.isoformat(): days[day] for day in sorted(days)},  # of the calendar
    }


def _find_changes(
    memory: Bethink, scopes: Sequence[str], found: Sequence[Memory]
) -> list[dict[str, Memory]]:
    """Which of these statements replaced another, and which one."""
    new = {one.id: one for one in found}
    relations = memory.store.relations(new)
    links = [link for link in relations if link.type == "supersedes" and link.source in new]
    targets = memory.store.get([link.target for link in links])
    old = {one.id: one for one in targets if one.scope in scopes}
    pairs = sorted((link[:2] for link in links if link.target in old), reverse=True)
    return [{"new": new[source], "old": old[target]} for source, target in pairs[:MOST_RECENT]]


# Graphs

ABOUT = "about:"  # before the name of a thing, where an id of a memory could stand
MENTIONS = "mentions"  # what connects a memory to a thing it is about
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
    focus: Sequence[str]
    nodes: Sequence[GraphNode]
    edges: Sequence[GraphEdge]
    more: bool = False  # whether something else had no room


def draw_graph(
    memory: Bethink, focus: str | None, query: str | None, limit: int, depth: int
) -> Graph:
    """The graph around a memory (its id), a thing (`about:` and its name), what a question finds, or what was told last."""
    graph = _GraphBuilder(memory, limit)
    seeds = max(1, limit // 2)
    if focus and focus.casefold().startswith(ABOUT):
        begin = [graph.begin_with_thing(focus[len(ABOUT) :].strip())]
    else:
        if focus:
            found = [memory.one(focus)]
        elif query:
            hits = memory.search(query, limit=min(seeds, 100), related=False).hits
            found = [hit.memory for hit in hits]
        else:
            statements = memory.filter(kinds=STATEMENTS)
            found = memory.list(filter=statements, limit=seeds) or memory.list(limit=seeds)
        graph.add_memories(found, 0)
        begin = [one.id for one in found[:BEST]] if focus or query else []
    for distance in range(1, depth + 1):
        graph.grow(distance)
    return graph.finish(begin)


class _GraphBuilder:
    """Builds a graph from its focus outwards, until it has as many nodes as it may."""

    def __init__(self, memory: Bethink, limit: int) -> None:
        self._memory, self._limit = memory, limit
        self._memories: dict[str, Memory] = {}
        self._nodes: dict[str, GraphNode] = {}
        self._has_more = False  # about a thing than was listed

    def _is_full(self) -> bool:
        return len(self._nodes) >= self._limit

    def _add(self, node: GraphNode) -> None:
        if not self._is_full():
            self._nodes.setdefault(node.id, node)

    def add_memories(self, found: Iterable[Memory], distance: int) -> None:
        for one in found:
            self._add(GraphNode(one.id, one.summary, one.kind, one.scope, distance))
            if one.id in self._nodes:
                self._memories[one.id] = one

    def begin_with_thing(self, name: str) -> str:
        """Puts a named thing into the focus, however it is written. Returns the id of its node."""
        id = ABOUT + name.casefold()
        entities = (entity for one in self._list_about(name) for entity in one.entities)
        same = (one for one in entities if ABOUT + one.name.casefold() == id)
        if (entity := next(same, None)) is None:
            raise NotFound(
                f"Nothing is known about '{name[:80]}'.",
                "Search for it, and take a name from what is found.",
            )
        self._add(GraphNode(id, *entity))
        return id

    def _list_about(self, name: str) -> list[Memory]:
        share = max(LEAST_SHARE, self._limit // 2)
        wanted = self._memory.filter(entities=(name,), include_superseded=True)
        found = self._memory.list(filter=wanted, limit=share + 1)
        self._has_more = self._has_more or len(found) > share
        return found[:share]

    def grow(self, distance: int) -> None:
        """One step outwards: what is related to the memories, what else the things are about, then the things of the memories."""
        fresh = [node for node in self._nodes.values() if node.distance == distance - 1]
        memories = [self._memories[node.id] for node in fresh if node.id in self._memories]
        relations = self._memory.store.relations([one.id for one in memories])
        ends = {end for relation in relations for end in relation[:2]}
        related = self._memory.store.get(sorted(ends - self._memories.keys()))
        seen = (one for one in related if one.scope in self._memory.scopes and not one.deleted_at)
        self.add_memories(seen, distance)
        for node in fresh:
            if node.id.startswith(ABOUT) and not self._is_full():
                self.add_memories(self._list_about(node.label), distance)
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
                    self._add(GraphNode(ABOUT + name, *entity, distance=distance))

    def finish(self, focus: Sequence[str]) -> Graph:
        relations = self._memory.store.relations(self._memories)
        found = [GraphEdge(*relation[:3]) for relation in relations]
        found += [
            GraphEdge(one.id, ABOUT + entity.name.casefold(), MENTIONS)
            for one in self._memories.values()
            for entity in one.entities
        ]
        edges = [edge for edge in dict.fromkeys(found) if {*edge[:2]} <= self._nodes.keys()]
        return Graph(focus, list(self._nodes.values()), edges, self._has_more or self._is_full())


# How memory is doing. It takes a moment to count: where it is served, the server counts in the background and shows what was counted
# last (`app/http/projects.py`).

GROWTH_WEEKS = 12


def examine(memory: Bethink) -> Json:
    """Counts everything of the database. Takes a moment where there is much."""
    overview = memory.stats()
    budget, today = open_budget(memory.config), memory.clock().date()
    days = [today - timedelta(days=back) for back in range(DAYS_REPORTED - 1, -1, -1)]
    daily = {day.isoformat(): budget.spent(day) for day in days}
    return {
        "at": memory.clock(),
        "memories": overview.memories,
        "forgotten": overview.deleted,
        "captures": _count_captures(memory),
        "unembedded": overview.unembedded,
        "vectors": overview.vectors,  # model → how many
        "database": str(getattr(memory.store, "path", mask_password(memory.config.database))),
        "bytes": overview.database_bytes,
        "bytes_per_memory": overview.database_bytes // max(1, overview.memories + overview.deleted),
        "growth": _count_growth(memory),
        "language_model": {**language.report_usage(memory), "daily": daily},
    }


def _count_captures(memory: Bethink) -> list[Json]:
    """What the conversations of every agent that anything is known of brought in."""
    sessions = memory.store.sessions(memory.every_scope(), MOST_SESSIONS)
    captured = {host: datetime.fromtimestamp(at, UTC) for host, at in spool.read_captures().items()}
    waiting = Counter(entry.host for entry in spool.list_waiting())
    failed = Counter[str]()
    for failure in state.read_failures():
        failed[failure.host] += failure.count
    found = []
    for host in sorted({*(one.host for one in sessions), *captured, *waiting, *failed} - {""}):
        held = [one for one in sessions if one.host == host]
        last = max((at for one in held if (at := one.ended_at or one.started_at)), default=None)
        found.append(
            {
                "host": host,
                "sessions": len(held),
                "last": last,  # when something was said in one that is known
                "captured": captured.get(host),  # when a hook last brought something in
                "waiting": waiting[host],  # transcripts that wait to be read
                "failures": failed[host],
            }
        )
    return found


def _count_growth(memory: Bethink) -> list[Json]:
    """How many memories each of the last weeks brought, the oldest first; the last is the week that ends now."""
    begin, week = memory.clock() - timedelta(weeks=GROWTH_WEEKS), timedelta(weeks=1)
    weeks = Counter[int]()
    for day, count in memory.store.count_days(memory.every_scope(), begin).items():
        weeks[min((day - begin.date()) // week, GROWTH_WEEKS - 1)] += count
    return [
        {"begin": begin + number * week, "memories": weeks[number]}
        for number in range(GROWTH_WEEKS)
    ]
