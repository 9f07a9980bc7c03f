"""What new memories mean for old ones. Pure: neighbours are given, a plan comes back.

A near duplicate adds nothing. But two statements can be near to an embedding model and still say different things: one
number, one "not" or one name apart. Those are kept: losing a memory is worse than keeping two.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from recollect.types import Entity, Memory

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_NEGATIONS = frozenset(
    "not no never none without cannot can't don't doesn't didn't won't isn't aren't wasn't shouldn't mustn't couldn't wouldn't nor neither disable disabled stop stopped avoid".split()
)
_NAMING = ("technology", "person", "file", "symbol", "project")

# "switched from X to Y", "replaced X with Y", "Y instead of X": X stands before the arrow in each pair of groups.
_CHANGES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:switch(?:ed|ing)?|mov(?:ed|ing|e)|migrat(?:ed|ing|e)|chang(?:ed|ing|e)|convert(?:ed|ing)?|went)\s+(?:\w+\s+){0,4}?from\s+(?P<old>[^,.;]+?)\s+(?:over\s+)?to\s+(?P<new>[^,.;]+)",
        r"\b(?:replac(?:ed|ing|e)|swap(?:ped|ping)?)\s+(?P<old>[^,.;]+?)\s+(?:with|by|for)\s+(?P<new>[^,.;]+)",
        r"\b(?P<new>[\w.+#-]+(?:\s[\w.+#-]+)?)\s+(?:instead of|rather than|in place of)\s+(?P<old>[^,.;]+)",
        r"\bno longer (?:use|using|need|run|on|support)\s+(?P<old>[^,.;]+?)(?:,|;|\.|\bbut\b|\band\b)(?P<new>[^.;]*)",
    )
)
SUPERSEDED = 0.55  # how near the old memory must be for a stated change to replace it


@dataclass(frozen=True, slots=True)
class Neighbour:
    memory: Memory
    similarity: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to become of one new memory: the near duplicate it repeats, and the memories it replaces."""

    duplicate: Neighbour | None = None
    supersedes: tuple[str, ...] = ()


def reconcile(memory: Memory, neighbours: Sequence[Neighbour], threshold: float, dedup: bool) -> Verdict:
    change = changed(memory.content)
    if dedup:
        for neighbour in neighbours:
            repeats = neighbour.similarity >= threshold and same(memory, neighbour.memory)
            # "We switched from A to B" is near to "We use A" and yet its opposite.
            if repeats and (change is None or changed(neighbour.memory.content) is not None):
                return Verdict(duplicate=neighbour)
    if change is None:
        return Verdict()
    old, new = change
    return Verdict(supersedes=tuple(
        neighbour.memory.id for neighbour in neighbours
        if neighbour.similarity >= SUPERSEDED and mentions(neighbour.memory.content, old) and not (new and mentions(neighbour.memory.content, new))
        and neighbour.memory.superseded_by is None
    ))  # fmt: skip


def same(one: Memory, other: Memory) -> bool:
    """Whether the first of two near texts adds nothing: no other number, no other name, as many negations."""
    return (
        set(_NUMBER.findall(one.content)) <= set(_NUMBER.findall(other.content))
        and _names(one.entities) <= _names(other.entities)
        and _negations(one.content) == _negations(other.content)
    )


def _negations(text: str) -> int:
    return sum(word.lower().replace("’", "'") in _NEGATIONS for word in _WORD.findall(text))


def _names(entities: Sequence[Entity]) -> set[str]:
    return {entity.name.casefold() for entity in entities if entity.type in _NAMING}


def changed(text: str) -> tuple[str, str] | None:
    """The old and the new thing of a stated change, or None."""
    for pattern in _CHANGES:
        if found := pattern.search(text):
            old, new = found["old"].strip(), found["new"].strip()
            if 0 < len(old) <= 60:
                return old, new[:60]
    return None


def mentions(text: str, thing: str) -> bool:
    """Whether a text speaks of a thing: all of its words stand there."""
    words = {word.lower() for word in re.findall(r"\w+", text)}
    wanted = [word.lower() for word in re.findall(r"\w+", thing)][:4]
    return bool(wanted) and all(word in words or word.rstrip("s") in words for word in wanted)
