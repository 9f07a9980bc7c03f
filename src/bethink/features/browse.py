"""Views for the web pages: recent activity, shown memories, facets, versions, graphs and statistics.

Read-only. A topic's share is its part of the conversation, by lines of the transcript. A graph
grows from a focus outwards, nearest first, up to a limit of nodes. The focus is a memory, a named
entity, or the results of a question; by default, the newest statements. Statistics cover each
agent's conversations, transcripts and memories waiting to be read or embedded, the size and growth
of the database, and the cost of a language model.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from bethink.api import Bethink
from bethink.config import mask_password
from bethink.errors import NotFound
from bethink.features import language
from bethink.hooks import spool, state
from bethink.ingest.reconcile import OPEN
from bethink.llm import DAYS_REPORTED, open_budget
from bethink.model import FILES, KINDS, STATEMENTS, TRUST, Filter, Json, Memory, Session, Span

_MOST_SESSIONS = 5000  # counted by agent
MOST_IDEAS = 1000
_IDEAS = tuple(kind for kind in KINDS if kind != "context")


def measure_topics(memory: Bethink, of: Session) -> list[tuple[Span, float]]:
    """List the topics of a conversation with the share (0–1) of each, including its sub-topics."""
    spans = [span for span in memory.store.spans(of.id, (of.scope,)) if span.depth == 0]
    lengths = [max(1, span.lines[1] - span.lines[0] + 1) for span in spans]
    return [(span, length / sum(lengths)) for span, length in zip(spans, lengths, strict=True)]


def list_turns(
    memory: Bethink, of: Session, topic: str | None, limit: int, offset: int
) -> tuple[list[tuple[Memory, list[Memory]]], int]:
    """List turns of a conversation or topic in order, each with the ideas taken from it.

    A topic includes its sub-topics. Also returns the total number of turns.
    """
    here: Json = {"scopes": (of.scope,), "session": of.id}
    wanted = memory.filter(**here, kinds=("context",), transcribed=True)
    if topic:
        spans = memory.store.spans(of.id, (of.scope,))
        inner = [span.id for span in spans if span.parent == topic]
        wanted = wanted._replace(spans=(topic, *inner))
    found = memory.store.list(wanted, limit, offset, "position")
    taken = memory.filter(**here, kinds=_IDEAS, include_superseded=True, include_expired=True)
    ideas: dict[object, list[Memory]] = {}
    for one in memory.store.list(taken, MOST_IDEAS, 0, "position"):
        ideas.setdefault(one.metadata.get("turn", one.id), []).append(one)
    turns = [(one, ideas.get(one.metadata.get("turn"), [])) for one in found]
    return turns, memory.store.count(wanted)


# What happened

_LOOKED = 200  # newest statements that are searched for changes of mind; by hand
WEEKS = 26  # of the calendar; a bound
MOST_RECENT = 12  # conversations, statements, open items


def catch_up(memory: Bethink, scopes: tuple[str, ...], since: datetime) -> Json:
    """Summarise what happened since a time, newest first, in a readable amount."""
    store = memory.store
    statements = memory.filter(scopes=scopes, kinds=STATEMENTS, since=since)
    found = memory.list(filter=statements, limit=_LOOKED)
    sessions = store.sessions(scopes, MOST_RECENT)
    days = store.count_days(scopes, memory.clock() - timedelta(weeks=WEEKS))
    undone = memory.filter(scopes=scopes, kinds=OPEN, answered=False)
    return {
        "since": since,
        "told": store.count(statements),
        "sessions": [one for one in sessions if (one.ended_at or one.started_at or since) > since],
        "changes": _find_changes(memory, scopes, found),
        # Notes and statements from conversations before those from files and imports.
        "newest": sorted(found, key=_is_from_elsewhere)[:MOST_RECENT],
        # To-dos, questions and problems of any age.
        "open": memory.list(filter=undone, limit=MOST_RECENT),
        "days": {day.isoformat(): days[day] for day in sorted(days)},  # of the calendar
    }


def _is_from_elsewhere(one: Memory) -> bool:
    return one.source_type in FILES or one.trust < TRUST["agent"]


def _find_changes(
    memory: Bethink, scopes: Sequence[str], found: Sequence[Memory]
) -> list[dict[str, Memory]]:
    """Pairs of a statement among these and the one it replaced."""
    new = {one.id: one for one in found}
    relations = memory.store.relations(new)
    links = [link for link in relations if link.type == "supersedes" and link.source in new]
    targets = memory.store.get([link.target for link in links])
    old = {one.id: one for one in targets if one.scope in scopes}
    pairs = sorted((link[:2] for link in links if link.target in old), reverse=True)
    return [{"new": new[source], "old": old[target]} for source, target in pairs[:MOST_RECENT]]


# What agents were shown

MOST_LOOKED_UP = 500  # memories that are looked up


class ShownMemory(NamedTuple):
    """A memory that a hook put into an agent's context, and whether the agent then used it."""

    memory: Memory
    sessions: int  # that got it
    last: datetime


class ShownMemories(NamedTuple):
    """Memories that agents on this machine were shown, the latest first."""

    sessions: int  # that were shown anything
    items: Sequence[ShownMemory]


def list_shown(memory: Bethink, scopes: Sequence[str]) -> ShownMemories:
    """List what hooks showed to agents on this machine, as far as it is in these scopes."""
    last: dict[str, float] = {}
    times, sessions = Counter[str](), []
    for at, delivery in state.list_deliveries():
        ids = {str(id) for id in delivery.ids}
        times.update(ids)
        last.update({id: max(at, last.get(id, at)) for id in ids})
        sessions.append(ids)
    latest = sorted(last, key=lambda id: -last[id])[:MOST_LOOKED_UP]
    seen = {one.id: one for one in memory.store.get(latest) if one.scope in scopes}
    items = [
        ShownMemory(seen[id], times[id], datetime.fromtimestamp(last[id], UTC))
        for id in latest
        if id in seen and not seen[id].deleted_at
    ]
    return ShownMemories(sum(bool(ids & seen.keys()) for ids in sessions), items)


# Facets

MOST_COUNTED = 1000  # newest memories
FACET_VALUES = 12  # of one facet; a limit on what a page shows
PERIODS = {"1d": 1, "7d": 7, "30d": 30, "365d": 365}  # days, by definition


class Facets(NamedTuple):
    """Numbers of memories by value: for each facet the values that most of them have."""

    counted: int  # memories
    more: bool  # whether there are older ones
    kind: Mapping[str, int]
    since: Mapping[str, int]
    host: Mapping[str, int]
    tag: Mapping[str, int]
    entity: Mapping[str, int]
    source: Mapping[str, int]


def count_facets(memory: Bethink, filter: Filter) -> Facets:
    """Count the newest memories of a filter by each facet."""
    found = memory.list(filter=filter, limit=MOST_COUNTED + 1)
    counted, now = found[:MOST_COUNTED], memory.clock()
    ages = [(now - one.created_at).days for one in counted]

    def count(values: Iterable[object]) -> dict[str, int]:
        numbers = Counter(str(value) for value in values if value)
        return dict(numbers.most_common(FACET_VALUES))

    return Facets(
        len(counted),
        len(found) > len(counted),
        dict(Counter(one.kind for one in counted).most_common()),
        {name: sum(age < days for age in ages) for name, days in PERIODS.items()},
        count(one.metadata.get("host") for one in counted),
        count(tag for one in counted for tag in one.tags),
        count(entity.name for one in counted for entity in one.entities),
        count(one.path for one in counted if not one.session),
    )


# How a statement changed

LONGEST_CHAIN = 20  # of a chain of replacements


def trace_versions(memory: Bethink, id: str) -> list[Memory]:
    """List the statements that a memory replaced and those that replaced it, oldest first."""
    chain, edge = {memory.one(id).id}, [memory.one(id).id]
    while edge and len(chain) < LONGEST_CHAIN:
        relations = memory.store.relations(edge)
        ends = {end for one in relations if one.type == "supersedes" for end in one[:2]}
        edge = sorted(ends - chain)
        chain |= ends
    found = [one for one in memory.store.get(sorted(chain)) if one.scope in memory.scopes]
    return sorted(found, key=lambda one: (one.created_at, one.id))


# Graphs

_ABOUT = "about:"  # prefix for the name of an entity, where the id of a memory is possible
MENTIONS = "mentions"  # edge from a memory to an entity it is about
THINGS = 8  # entities of one memory; by hand
BEST = 5  # results of a question that count as its focus; by hand
WEAK = 0.45  # of the best score: results below it are hardly about the question; set by hand
LEAST_OF_ENTITY = 12  # memories that one entity may add, even in a small graph; by hand


class GraphNode(NamedTuple):
    id: str  # of a memory, or `about:` and the folded name of an entity
    label: str
    type: str  # a kind of memory, or a type of entity
    scope: str = ""  # of a memory
    distance: int = 0  # steps from the focus
    at: datetime | None = None  # when a memory was recorded
    replaced: bool = False  # by a newer memory


class GraphEdge(NamedTuple):
    source: str
    target: str
    type: str  # a relation, or mentions


class Graph(NamedTuple):
    focus: Sequence[str]
    nodes: Sequence[GraphNode]
    edges: Sequence[GraphEdge]
    more: bool = False  # whether some nodes were left out


def draw_graph(
    memory: Bethink, focus: str | None, query: str | None, limit: int, depth: int
) -> Graph:
    """Build the graph around a memory id, an entity (`about:NAME`), a question, or recent statements."""
    graph = _GraphBuilder(memory, limit)
    seeds = max(1, limit // 2)
    if focus and focus.casefold().startswith(_ABOUT):
        begin = [graph.begin_with_thing(focus[len(_ABOUT) :].strip())]
    else:
        if focus:
            found = [memory.one(focus)]
        elif query:
            found = _find_subject(memory, query, min(seeds, 100))
        else:
            statements = memory.filter(kinds=STATEMENTS)
            found = memory.list(filter=statements, limit=seeds) or memory.list(limit=seeds)
        graph.add_memories(found, 0)
        begin = [one.id for one in found[:BEST]] if focus or query else []
    for distance in range(1, depth + 1):
        graph.grow(distance)
    return graph.finish(begin)


def _find_subject(memory: Bethink, query: str, limit: int) -> list[Memory]:
    """Statements about a subject, or turns and passages if no statement is."""
    for kinds in (STATEMENTS, ()):
        wanted = memory.filter(kinds=kinds)
        hits = memory.search(query, limit=limit, related=False, filter=wanted).hits
        if hits:
            least = hits[0].score * WEAK
            return [hit.memory for at, hit in enumerate(hits) if at < BEST or hit.score >= least]
    return []


class _GraphBuilder:
    """Build a graph from its focus outwards, up to a limit of nodes."""

    def __init__(self, memory: Bethink, limit: int) -> None:
        self._memory, self._limit = memory, limit
        self._memories: dict[str, Memory] = {}
        self._nodes: dict[str, GraphNode] = {}
        self._has_more = False  # memories about an entity than were listed

    def _is_full(self) -> bool:
        return len(self._nodes) >= self._limit

    def _add(self, node: GraphNode) -> None:
        if not self._is_full():
            self._nodes.setdefault(node.id, node)

    def add_memories(self, found: Iterable[Memory], distance: int) -> None:
        for one in found:
            replaced = one.superseded_by is not None
            node = GraphNode(
                one.id, one.summary, one.kind, one.scope, distance, one.created_at, replaced
            )
            self._add(node)
            if one.id in self._nodes:
                self._memories[one.id] = one

    def begin_with_thing(self, name: str) -> str:
        """Put a named entity into the focus, ignoring case. Returns the id of its node."""
        id = _ABOUT + name.casefold()
        entities = (entity for one in self._list_about(name) for entity in one.entities)
        same = (one for one in entities if _ABOUT + one.name.casefold() == id)
        if (entity := next(same, None)) is None:
            raise NotFound(
                f"Nothing is known about '{name[:80]}'.",
                "Search for it, and take a name from what is found.",
            )
        self._add(GraphNode(id, *entity))
        return id

    def _list_about(self, name: str) -> list[Memory]:
        share = max(LEAST_OF_ENTITY, self._limit // 2)
        about = {"entities": (name,), "include_superseded": True}
        found = self._memory.list(
            filter=self._memory.filter(kinds=STATEMENTS, **about), limit=share + 1
        )
        if not found:  # named in turns and files alone
            found = self._memory.list(filter=self._memory.filter(**about), limit=share + 1)
        self._has_more = self._has_more or len(found) > share
        return found[:share]

    def grow(self, distance: int) -> None:
        """Take one step outwards: related memories, memories about the entities, then their entities."""
        fresh = [node for node in self._nodes.values() if node.distance == distance - 1]
        memories = [self._memories[node.id] for node in fresh if node.id in self._memories]
        relations = self._memory.store.relations([one.id for one in memories])
        ends = {end for relation in relations for end in relation[:2]}
        related = self._memory.store.get(sorted(ends - self._memories.keys()))
        seen = (one for one in related if one.scope in self._memory.scopes and not one.deleted_at)
        self.add_memories(seen, distance)
        for node in fresh:
            if node.id.startswith(_ABOUT) and not self._is_full():
                self.add_memories(self._list_about(node.label), distance)
        self._add_things(memories, distance)

    def _add_things(self, memories: Sequence[Memory], distance: int) -> None:
        """Add the entities that memories are about."""
        every = (entity for one in self._memories.values() for entity in one.entities)
        shared = Counter(entity.name.casefold() for entity in every)
        for one in memories:
            # Only entities shared by several memories connect anything.
            for entity in sorted(one.entities, key=lambda e: -shared[e.name.casefold()])[:THINGS]:
                name = entity.name.casefold()
                if shared[name] > 1 or len(memories) == 1:
                    self._add(GraphNode(_ABOUT + name, *entity, distance=distance))

    def finish(self, focus: Sequence[str]) -> Graph:
        relations = self._memory.store.relations(self._memories)
        found = [GraphEdge(*relation[:3]) for relation in relations]
        found += [
            GraphEdge(one.id, _ABOUT + entity.name.casefold(), MENTIONS)
            for one in self._memories.values()
            for entity in one.entities
        ]
        edges = [edge for edge in dict.fromkeys(found) if {*edge[:2]} <= self._nodes.keys()]
        return Graph(focus, list(self._nodes.values()), edges, self._has_more or self._is_full())


# Statistics. Counting takes a moment, so a server counts in the background and shows the latest result
# (`app/http/projects.py`).

GROWTH_WEEKS = 12  # a bound


def examine(memory: Bethink) -> Json:
    """Count everything in the database; takes a moment if it is large."""
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
    """Count sessions, captures, waiting transcripts and failures of every known agent."""
    sessions = memory.store.sessions(memory.every_scope(), _MOST_SESSIONS)
    captured = {host: datetime.fromtimestamp(at, UTC) for host, at in spool.read_captures().items()}
    waiting = Counter(entry.host for entry in spool.list_waiting() if entry.host)
    failed = Counter[str]()
    for failure in state.read_failures():
        failed[failure.host] += failure.count
    found = []
    for host in sorted({*(one.host for one in sessions), *captured, *waiting, *failed} - {""}):
        own = [one for one in sessions if one.host == host]
        last = max((at for one in own if (at := one.ended_at or one.started_at)), default=None)
        found.append(
            {
                "host": host,
                "sessions": len(own),
                "last": last,  # newest activity in a known session
                "captured": captured.get(host),  # last capture by a hook
                "waiting": waiting[host],  # transcripts that wait to be read
                "failures": failed[host],
            }
        )
    return found


def _count_growth(memory: Bethink) -> list[Json]:
    """Count new memories per week, oldest first; the last week ends now."""
    begin, week = memory.clock() - timedelta(weeks=GROWTH_WEEKS), timedelta(weeks=1)
    weeks = Counter[int]()
    for day, count in memory.store.count_days(memory.every_scope(), begin).items():
        weeks[min((day - begin.date()) // week, GROWTH_WEEKS - 1)] += count
    return [
        {"begin": begin + number * week, "memories": weeks[number]}
        for number in range(GROWTH_WEEKS)
    ]
