"""Hits → hits with what they are connected to: what they replaced, answer, contradict or build on."""

from __future__ import annotations

from collections.abc import Sequence

from bethink.store.base import Store
from bethink.types import Hit, Memory, Relation

CHAIN = 8  # links followed back through replaced memories
MOST = 400  # relations looked at for one answer


def expand(
    hits: Sequence[Hit], store: Store, scopes: Sequence[str], include_deleted: bool = False
) -> tuple[Hit, ...]:
    """Relations of every hit, and the whole chain of memories that a hit replaced. Never leaves the scopes."""
    relations = _collect_relations([hit.memory.id for hit in hits], store)
    ends = {end for one in relations for end in (one.source, one.target)}
    visible = {
        memory.id: memory
        for memory in store.get(list(ends))
        if memory.scope in scopes and (include_deleted or memory.deleted_at is None)
    }
    return tuple(
        hit._replace(related=_relations_of(hit.memory.id, relations, visible)) for hit in hits
    )


def _collect_relations(ids: list[str], store: Store) -> list[Relation]:
    """The relations of these memories, and those of what they replaced, back to the first."""
    relations: dict[tuple[str, str, str], Relation] = {}
    frontier = ids
    for _ in range(CHAIN if ids else 0):
        fresh = {
            (one.source, one.target, one.type): one for one in store.relations(frontier)[:MOST]
        }
        fresh = {key: one for key, one in fresh.items() if key not in relations}
        relations |= fresh
        replaced = (one for one in fresh.values() if one.type == "supersedes")
        frontier = [one.target for one in replaced if one.source in frontier]
        if not frontier or len(relations) > MOST:
            break
    return list(relations.values())


def put_newer_first(hits: Sequence[Hit], limit: int) -> tuple[Hit, ...]:
    """Of two statements about the same thing that cannot both hold, the more trusted and newer one comes first, even while nobody has
    decided: it takes the place of the other, which follows it."""
    ordered: dict[str, Hit] = {}
    there = {hit.memory.id: hit for hit in hits}
    for hit in hits:
        for relation, other in hit.related:
            if relation.type in ("may_replace", "contradicts") and _outranks(other, hit.memory):
                first = there.get(other.id) or Hit(
                    other, hit.score, hit.why, _reverse_relations(hit, other)
                )
                ordered.setdefault(other.id, first)
        ordered.setdefault(hit.memory.id, hit)
    return tuple(ordered.values())[: max(limit, len(hits))]


def _outranks(one: Memory, other: Memory) -> bool:
    live = one.superseded_by is None and one.deleted_at is None
    return live and (one.trust, one.created_at) > (other.trust, other.created_at)


def _reverse_relations(hit: Hit, other: Memory) -> tuple[tuple[Relation, Memory], ...]:
    """The relations between a hit and another memory, as the other sees them."""
    return tuple(
        (relation, hit.memory)
        for relation, end in hit.related
        if end.id == other.id and other.id in (relation.source, relation.target)
    )


def _relations_of(
    id: str, relations: Sequence[Relation], visible: dict[str, Memory]
) -> tuple[tuple[Relation, Memory], ...]:
    direct = [one for one in relations if id in (one.source, one.target)]
    chain = [one for one in direct if one.type == "supersedes" and one.source == id]
    for link in chain:  # it grows while it is walked
        older = [one for one in relations if one.type == "supersedes" and one.source == link.target]
        chain += [one for one in older if one not in chain]
    ends = {one: one.source if one.target == id else one.target for one in (*direct, *chain)}
    return tuple((one, visible[end]) for one, end in ends.items() if end in visible and end != id)
