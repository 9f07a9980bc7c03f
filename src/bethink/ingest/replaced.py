"""What a memory goes back to when what replaced it does not any more. Reads only: a change comes back."""

from __future__ import annotations

from collections.abc import Iterable

from bethink.store.base import Store
from bethink.store.bundle import EPOCH
from bethink.types import Change, Memory, Relation, superseded


def replaced_before(store: Store, id: str, others: Iterable[Relation]) -> Change:
    """Gives a memory back to the newest of what else replaces it, or to nobody."""
    newest = sorted(others, key=lambda one: one.created_at or EPOCH, reverse=True)
    for new in store.get([one.source for one in newest]):
        if not _leads_to(store, new, id):
            return superseded(id, new)
    return Change(id, "restore", {"superseded_by": None})


def _leads_to(store: Store, memory: Memory, id: str) -> bool:
    seen, at = set[str](), memory.superseded_by
    while at and at != id and at not in seen:
        seen.add(at)
        found = store.get([at])
        at = found[0].superseded_by if found else None
    return at == id
