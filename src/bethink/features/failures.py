"""Failed commands of a project, and what fixed them."""

from __future__ import annotations

from typing import NamedTuple

from bethink.api import Bethink
from bethink.ingest.failures import as_count
from bethink.model import TRUST, Memory

LOOKED = 500  # failures of a project that a lookup reads, the newest


class KnownFailure(NamedTuple):
    """A stored failure, as lists and hooks show it."""

    id: str
    command: str
    error: str
    cause: str  # the kind of failure: missing dependency, wrong flag …
    times: int
    last: str  # ISO time, '' where the agent recorded none
    fix: str  # '' while it is unsolved
    held: int  # how often this fix helped
    confidence: float
    session: str
    source: str
    lines: tuple[int, int] | None


def list_failures(memory: Bethink, unsolved: bool = False, limit: int = 20) -> list[KnownFailure]:
    """The failures of this project, the one that happened last first; with `unsolved` those that nothing fixed yet."""
    answered = False if unsolved else None
    wanted = memory.filter(kinds=("failure",), answered=answered, scopes=memory.named_scopes)
    found = [as_failure(one) for one in memory.list(filter=wanted, limit=max(limit, LOOKED))]
    return sorted(found, key=lambda one: one.last, reverse=True)[:limit]


def find_by_signature(memory: Bethink, signature: str) -> KnownFailure | None:
    """The failure of this project that has the signature, if it has a fix and comes from this user's own sessions."""
    wanted = memory.filter(kinds=("failure",), answered=True, min_trust=TRUST["agent"])
    for one in memory.list(filter=wanted, limit=LOOKED):
        if one.metadata.get("signature") == signature and one.metadata.get("fix"):
            return as_failure(one)
    return None


def as_failure(one: Memory) -> KnownFailure:
    said = one.metadata
    return KnownFailure(
        one.id,
        str(said.get("command") or one.summary),
        str(said.get("error") or ""),
        str(said.get("cause") or "other"),
        as_count(said.get("times"), 1),
        str(said.get("last") or one.created_at.isoformat()),
        str(said.get("fix") or ""),
        as_count(said.get("held")),
        one.confidence,
        one.session or "",
        one.source,
        one.lines,
    )
