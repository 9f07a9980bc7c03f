"""What a new idea has to do with what is known: it answers, replaces, contradicts, extends or touches it. Pure.

Few relations that hold beat many that might: each rule wants nearness of meaning and a shared word or name besides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bethink.ingest.reconcile import Neighbour, contrasts, negated, same, why_not
from bethink.ingest.redact import unmarked
from bethink.text.words import STOP_WORDS
from bethink.types import TRUST, Memory

STATED = (
    "decision",
    "conclusion",
    "solution",
    "fact",
    "preference",
    "pattern",
    "architecture",
    "gotcha",
)
# How near two statements must be, from 0 (strangers) to 1 (the same), for each relation. Set by hand on stories.
FIRM = 0.6  # a guess contradicts nothing
ANSWERED, REPLACED, OPPOSED, EXTENDED, RELATED = 0.35, 0.35, 0.55, 0.4, 0.65

_TURNING = re.compile(
    r"\b(?:instead|no longer|any ?more|from now on|switch(?:ed|ing)? (?:over )?to|mov(?:e|ed|ing) (?:over )?to|chang(?:e|ed|ing) (?:it )?to"
    r"|migrat(?:e|ed|ing) to|replac(?:e|ed|ing)|revert(?:ed|ing)? to|back to|drop(?:ped|ping)?)\b",
    re.IGNORECASE,
)
_ADDING = re.compile(
    r"\b(?:also|additionally|in addition|on top of|building on|as well|furthermore|extend(?:s|ed|ing)?)\b",
    re.IGNORECASE,
)


def relations(
    new: Memory, neighbours: Sequence[Neighbour], taken: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """(type, id of the known memory) pairs, at most one of a kind but for answers. Neighbours come nearest first; those in
    `taken` are related already."""
    found: list[tuple[str, str]] = []
    for neighbour in neighbours:
        old = neighbour.memory
        if (
            old.id in taken
            or old.id == new.id
            or old.superseded_by
            or old.deleted_at
            or old.kind == "context"
        ):
            continue
        type = _type(new, neighbour)
        if type and (type == "answers" or type not in dict(found)):
            found.append((type, old.id))
            if type == "supersedes" and why_not(new, old):
                found[-1:] = [("may_replace", old.id), ("contradicts", old.id)]
    return found


def _type(new: Memory, neighbour: Neighbour) -> str | None:
    old, near = neighbour.memory, neighbour.nearness
    common = shared(new, old)
    if not common:
        return None
    if answers(new, old) and near >= ANSWERED:
        return "answers"
    if new.kind not in STATED or old.kind not in STATED or new.created_at < old.created_at:
        return None
    differs = _differs(new, old)
    if (
        near >= REPLACED
        and new.kind == old.kind == "decision"
        and differs
        and _TURNING.search(new.content)
        and common >= 1
    ):
        return "supersedes"
    if near >= OPPOSED and opposed(new, old):
        return "contradicts"
    if near >= EXTENDED and _ADDING.search(new.content):
        return "builds_on"
    return "relates_to" if near >= RELATED else None


def opposed(one: Memory, other: Memory) -> bool:
    """Whether two near statements of one kind exchange a word or a denial."""
    firm = min(one.confidence, other.confidence) >= FIRM
    return (
        firm
        and one.kind == other.kind
        and one.kind in STATED
        and shared(one, other) > 0
        and _differs(one, other)
        and not same(one, other)
    )


def _differs(one: Memory, other: Memory) -> bool:
    return contrasts(one.content, other.content) or negated(one.content, other.content)


def answers(new: Memory, old: Memory) -> bool:
    """Whether one kind of statement can settle the other. What is on nobody's word settles nothing."""
    if new.trust < TRUST["agent"]:
        return False
    if old.kind == "question":
        return not old.answered and new.kind in ("decision", "conclusion", "solution", "fact")
    return old.kind == "problem" and not old.answered and new.kind == "solution"


def shared(one: Memory, other: Memory) -> int:
    """Telling words that both hold."""
    return len(_telling(one.content) & _telling(other.content))


def _telling(text: str) -> set[str]:
    words = {
        word[:6]
        for word in re.findall(r"[^\W\d_]{3,}", unmarked(text).lower())
        if word not in STOP_WORDS
    }
    return words - _ANYTHING


# Words of every such statement, by their first six letters: they make no two of them alike.
_ANYTHING = {
    word[:6]
    for word in "use used using should need want decided decision going will can let make made still now issue problem fix fixed question".split()
}
