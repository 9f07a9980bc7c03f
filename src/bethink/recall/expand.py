"""Expand: what hits replaced, answer, contradict or build on, added beside them."""

from collections.abc import Sequence

from bethink.model import Filter, Hit, Memory, Related, Relation
from bethink.store.base import Store

MOST_LINKS = 8  # links followed back through replaced memories; a bound on time
MOST_RELATIONS = 400  # relations looked at for one answer; a bound on time


def expand(hits: Sequence[Hit], store: Store, filter: Filter) -> list[Hit]:
    """Add related memories and the chain of replaced ones to each hit, as far as the filter allows.

    A replaced memory is shown only under its successor.
    """
    related = _find_related([hit.memory.id for hit in hits], store)
    ends = {end for found in related.values() for end in found.values()}
    history = store.select(ends, filter._replace(include_superseded=True))
    current = history
    if not filter.include_superseded and any(_is_over(one, filter) for one in history.values()):
        current = {id: one for id, one in history.items() if not _is_over(one, filter)}

    def show(id: str) -> Related:
        return tuple(
            (relation, seen[end])
            for relation, end in related[id].items()
            for seen in [history if _is_replaced_by(relation, end) else current]
            if end in seen and end != id
        )

    return [hit._replace(related=(*show(hit.memory.id), *hit.related)) for hit in hits]


def _is_replaced_by(relation: Relation, end: str) -> bool:
    """Return True if a relation says that this end of it was replaced by the other."""
    return relation.type == "supersedes" and relation.target == end


def _is_over(memory: Memory, filter: Filter) -> bool:
    """Return True if a memory was replaced, or is no longer valid by the filter's time."""
    now = filter.as_of or filter.now
    ended = memory.valid_to is not None and now is not None and memory.valid_to <= now
    return filter.as_of is None and (memory.superseded_by is not None or ended)


def _find_related(ids: Sequence[str], store: Store) -> dict[str, dict[Relation, str]]:
    """Return the relations of each hit and of its chain of replaced memories, with their other ends."""
    related: dict[str, dict[Relation, str]] = {id: {} for id in ids}
    replaced: dict[str, list[Relation]] = {}
    for one in store.trace_relations(ids, MOST_LINKS)[:MOST_RELATIONS] if ids else ():
        for end, other in ((one.source, one.target), (one.target, one.source)):
            if end in related:
                related[end][one] = other
        if one.type == "supersedes":
            replaced.setdefault(one.source, []).append(one)
    for id in ids:
        reached = [id]
        for _ in range(MOST_LINKS):
            links = [one for source in reached for one in replaced.get(source, ())]
            reached = [one.target for one in links if one not in related[id] or one.source == id]
            related[id].update((one, one.target) for one in links)
    return related
