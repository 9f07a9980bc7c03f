"""What stands around something: memories, the things they are about, and how all of it is connected.

A graph grows from a focus outwards, nearest first, until it has as many nodes as were asked for. The focus is a memory, a named
thing, or whatever a question finds; without one it is what was told last. Only looks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bethink.api import Bethink
from bethink.errors import NotFound
from bethink.types import KINDS, Memory, Relation

ABOUT = "about:"  # before the name of a thing, where an id of a memory could stand
MENTIONS = "mentions"  # what connects a memory to a thing it is about
MOST = 500  # nodes that can still be read
STATEMENTS = tuple(kind for kind in KINDS if kind not in ("context", "document", "code", "handoff"))
THINGS = 8  # named things of one memory
BEST = 5  # of what a question finds that count as its focus
OPENED = 20  # named things that are looked into in one step outwards


class Node(NamedTuple):
    id: str  # of a memory, or `about:` and the folded name of a thing
    label: str
    type: str  # a kind of memory, or a type of entity
    scope: str = ""  # of a memory
    distance: int = 0  # steps from the focus


class Edge(NamedTuple):
    source: str
    target: str
    type: str  # a relation, or mentions


class Graph(NamedTuple):
    focus: tuple[str, ...]
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    more: bool = False  # whether something was left out


def around(
    memory: Bethink,
    focus: str | None = None,
    query: str | None = None,
    *,
    limit: int = 80,
    depth: int = 2,
) -> Graph:
    """The graph around a memory (its id), a thing (`about:` and its name), what a question finds, or what was told last."""
    growing = _Growing(memory, min(limit, MOST), depth)
    named = _begin(growing, focus, query)
    for distance in range(1, depth + 1):
        if growing.full:
            break
        growing.grow(distance)
    return growing.graph(named)


def _begin(growing: _Growing, focus: str | None, query: str | None) -> tuple[str, ...]:
    memory = growing.memory
    if focus and focus.casefold().startswith(ABOUT):
        name = focus[len(ABOUT) :].strip()
        if not memory.list(
            filter=memory.filter(entities=(name,), include_superseded=True), limit=1
        ):
            raise NotFound(
                f"Nothing is known about '{name[:80]}'.",
                "Search for it, and take a name from what is found.",
            )
        thing = growing.thing(name, "concept", 0)
        return (thing,) if thing else ()
    if focus:
        one = memory.one(focus)
        growing.remember([one], 0)
        return (one.id,)
    if query:
        found = [
            hit.memory
            for hit in memory.search(query, limit=min(growing.seeds, 100), related=False).hits
        ]
    else:
        found = memory.list(filter=memory.filter(kinds=STATEMENTS), limit=growing.seeds)
        found = found or memory.list(limit=growing.seeds)
    growing.remember(found, 0)
    return tuple(one.id for one in found[:BEST]) if query else ()


class _Growing:
    """A graph while it grows."""

    def __init__(self, memory: Bethink, limit: int, depth: int) -> None:
        self.memory, self.limit, self.depth = memory, limit, depth
        self.seeds = max(1, limit // 2)  # memories that a graph without a focus begins with
        self.share = max(12, limit // 6)  # memories that one named thing brings in
        self.left_out = False
        self._memories: dict[str, Memory] = {}
        self._nodes: dict[str, Node] = {}
        self._names: dict[str, str] = {}  # id of a thing → its name as written
        self._grown: set[str] = set()

    @property
    def full(self) -> bool:
        return len(self._nodes) >= self.limit

    def remember(self, found: Iterable[Memory], distance: int) -> None:
        for one in found:
            if one.id in self._nodes:
                continue
            if self.full:
                self.left_out = True
                return
            self._memories[one.id] = one
            self._nodes[one.id] = Node(one.id, one.summary, one.kind, one.scope, distance)

    def thing(self, name: str, type: str, distance: int) -> str:
        """A named thing by its name, whatever its type; nothing where there is no room."""
        id = ABOUT + name.casefold()
        if id not in self._nodes:
            if self.full:
                self.left_out = True
                return ""
            self._names[id] = name
            self._nodes[id] = Node(id, name, type, "", distance)
        return id

    def grow(self, distance: int) -> None:
        """One step outwards: what is related to the memories, then the things they are about, then what else is about these."""
        fresh = [id for id in self._nodes if id not in self._grown]
        self._grown.update(fresh)
        memories = [self._memories[id] for id in fresh if id in self._memories]
        self.remember(self._related([one.id for one in memories]), distance)
        # The thing that everything is about may bring in more than one of many, all of it where nothing comes after.
        share = (
            self.share
            if len(self._nodes) > 1
            else self.limit
            if self.depth == 1
            else max(self.share, self.limit // 2)
        )
        for name in [self._names[id] for id in fresh if id in self._names][:OPENED]:
            self.remember(self._about(name, share), distance)
        shared = Counter(
            entity.name.casefold() for one in self._memories.values() for entity in one.entities
        )
        for one in memories:
            # Things that several memories are about connect; the rest only hang there, and come last.
            for entity in sorted(one.entities, key=lambda entity: -shared[entity.name.casefold()])[
                :THINGS
            ]:
                if shared[entity.name.casefold()] > 1 or len(memories) == 1:
                    self.thing(entity.name, entity.type, distance)

    def _related(self, ids: Sequence[str]) -> list[Memory]:
        ends = {
            end for relation in self._relations(ids) for end in (relation.source, relation.target)
        } - set(self._memories)
        return [
            one
            for one in self.memory.store.get(sorted(ends))
            if one.scope in self.memory.scopes and one.deleted_at is None
        ]

    def _relations(self, ids: Sequence[str]) -> list[Relation]:
        return self.memory.store.relations(ids) if ids else []

    def _about(self, name: str, share: int) -> list[Memory]:
        found = self.memory.list(
            filter=self.memory.filter(entities=(name,), include_superseded=True), limit=share + 1
        )
        self.left_out |= len(found) > share
        return found[:share]

    def graph(self, focus: tuple[str, ...]) -> Graph:
        edges = [
            Edge(relation.source, relation.target, relation.type)
            for relation in self._relations(list(self._memories))
            if relation.source in self._nodes and relation.target in self._nodes
        ]
        for one in self._memories.values():
            for entity in one.entities:
                id = ABOUT + entity.name.casefold()
                if id in self._nodes:
                    if self._nodes[id].type == "concept" and entity.type != "concept":
                        self._nodes[id] = self._nodes[id]._replace(
                            type=entity.type, label=entity.name
                        )
                    edges.append(Edge(one.id, id, MENTIONS))
        return Graph(focus, tuple(self._nodes.values()), tuple(dict.fromkeys(edges)), self.left_out)
