"""What new memories mean for old ones. Pure: neighbours are given, a plan comes back.

A near duplicate adds nothing. But two statements can be near to an embedding model and still say different things: one
number, one "not" or one name apart. Those are kept: losing a memory is worse than keeping two.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from recollect.types import Entity, Memory
from recollect.words import STOP_WORDS

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_NEGATIONS = frozenset(
    "not no never none without cannot can't don't doesn't didn't won't isn't aren't wasn't shouldn't mustn't couldn't wouldn't nor neither disable disabled stop stopped avoid".split()
)
_NAMING = ("technology", "person", "file", "symbol", "project")

# What may be called old or new: a part of a clause, in which "3.8" and "next.js" keep their dots. Bounded, because a text
# may hold a hundred thousand words such as "from".
_THING = r"(?:[^,.;]|\.(?=\w)){1,61}"
_NAME = r"[\w.+#-]{1,40}"

# "switched from X to Y", "replaced X with Y", "Y instead of X": X stands before the arrow in each pair of groups.
_CHANGES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:switch(?:ed|ing)?|mov(?:ed|ing|e)|migrat(?:ed|ing|e)|chang(?:ed|ing|e)|convert(?:ed|ing)?|went)\s(?:\w+\s){{0,4}}?from\s(?P<old>{_THING}?)\s(?:over\s)?to\s(?P<new>{_THING})",
        rf"\b(?:replac(?:ed|ing|e)|swap(?:ped|ping)?)\s(?P<old>{_THING}?)\s(?:with|by|for)\s(?P<new>{_THING})",
        rf"\b(?P<new>{_NAME}(?:\s{_NAME})?)\s(?:instead of|rather than|in place of)\s(?P<old>{_THING})",
        rf"\bno longer (?:use|using|need|run|on|support)\s(?P<old>{_THING}?)(?:,|;|\.(?!\w)|\bbut\b|\band\b)(?P<new>(?:{_THING}|,)*)",
    )
)
SUPERSEDED = 0.4  # how near the old memory must be for a stated change to replace it
LONG = 1000  # words beyond which two texts are not compared place by place


class Neighbour(NamedTuple):
    """A known memory and its cosine. What a cosine means depends on the model: `unrelated` is what it gives to strangers."""

    memory: Memory
    similarity: float
    unrelated: float = 0.0

    @property
    def nearness(self) -> float:
        """0 for strangers, 1 for the same text."""
        return (self.similarity - self.unrelated) / (1 - self.unrelated)


class Verdict(NamedTuple):
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
        if neighbour.nearness >= SUPERSEDED and mentions(neighbour.memory.content, old) and not (new and mentions(neighbour.memory.content, new))
        and neighbour.memory.superseded_by is None
    ))  # fmt: skip


def same(one: Memory, other: Memory) -> bool:
    """Whether the first of two near texts adds nothing: no other number, name or contrast, as many negations, both or
    neither a question."""
    return (
        _adds_no_number(_NUMBER.findall(one.content), _NUMBER.findall(other.content))
        and _names(one.entities) <= _names(other.entities)
        and _negations(one.content) == _negations(other.content)
        and one.content.rstrip().endswith("?") == other.content.rstrip().endswith("?")
        and not contrasts(one.content, other.content)
    )


def _adds_no_number(mine: Sequence[str], theirs: Sequence[str]) -> bool:
    """Numbers of the first all stand in the second, and in the same order: 80 to 8080 is not 8080 to 80."""
    rest = iter(theirs)
    return all(number in rest for number in mine)


def contrasts(new: str, old: str) -> bool:
    """Whether each has a word that the other lacks ("Monday" for "Friday"), or much was added.

    Minimal pairs are what embedding models see least, and they are exactly what a change of mind looks like. Variants of
    one word (auth, authentication) are no exchange."""
    mine, theirs = _content(new), _content(old)
    if max(len(mine), len(theirs)) > LONG:
        return not set(mine) <= set(theirs)
    in_mine, in_theirs = _beginnings(mine), _beginnings(theirs)
    fresh = [word for word in mine if not any(_variant(word, known) for known in in_theirs.get(word[:2], ()))]
    lost = [word for word in theirs if not any(_variant(word, kept) for kept in in_mine.get(word[:2], ()))]
    return bool(fresh and lost) or len(fresh) * 3 > max(3, len(mine))


def _content(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text.lower()) if word not in STOP_WORDS]


def _beginnings(words: Sequence[str]) -> dict[str, set[str]]:
    """Words by their first two letters, which all variants of a word share."""
    found: dict[str, set[str]] = {}
    for word in words:
        found.setdefault(word[:2], set()).add(word)
    return found


def _variant(one: str, other: str) -> bool:
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    if len(short) >= 2 and (long.startswith(short) and (len(short) >= 3 or short.isdigit())):
        return True
    shared = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(short))
    return shared >= 4 and shared >= 0.7 * len(short)


def negated(one: str, other: str) -> bool:
    """Whether one of two texts denies more than the other."""
    return _negations(one) != _negations(other)


def _negations(text: str) -> int:
    return sum(word.lower().replace("’", "'") in _NEGATIONS for word in _WORD.findall(text))


def _names(entities: Sequence[Entity]) -> set[str]:
    return {entity.name.casefold() for entity in entities if entity.type in _NAMING}


def changed(text: str) -> tuple[str, str] | None:
    """The old and the new thing of a stated change, or None."""
    spaced = " ".join(text.split())
    for pattern in _CHANGES:
        if found := pattern.search(spaced):
            old, new = found["old"].strip(), found["new"].strip()
            if 0 < len(old) <= 60:
                return old, new[:60]
    return None


def mentions(text: str, thing: str) -> bool:
    """Whether a text speaks of a thing: all of its words stand there."""
    words = {word.lower() for word in re.findall(r"\w+", text)}
    wanted = [word.lower() for word in re.findall(r"\w+", thing)][:4]
    return bool(wanted) and all(word in words or word.rstrip("s") in words for word in wanted)
