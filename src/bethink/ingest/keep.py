"""What a source that is read again still holds. Pure: the held memories are given, the parts of a batch come back.

A passage whose text did not change keeps its memory, with its id, its votes and its history; only where it stands is
brought up to date. What a person forgot stays forgotten; what was retired because the passage had gone comes back with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bethink.store.writer import content_hash
from bethink.types import Change, Held, Memory, Passage, Source

Place = tuple[str, tuple[int, int] | None, int]


def matched(
    groups: Sequence[tuple[Source, Sequence[Passage]]],
    passages: Sequence[Passage | None],
    held: Mapping[str, Sequence[Held]],
) -> list[Held | None]:
    """For each passage the memory that already holds its text: under the same heading first, then under any."""
    found: list[Held | None] = [None] * len(passages)
    start = 0
    for source, group in groups:
        at = range(start, start + len(group))
        start += len(group)
        left = list(held.get(source.uri, ()))
        if not left:
            continue
        hashes = {
            index: content_hash(passage.content)
            for index in at
            if (passage := passages[index]) is not None
        }
        for same_section in (True, False):
            waiting: dict[tuple[str, str | None], list[Held]] = {}
            for known in left:
                waiting.setdefault(
                    (known.memory.content_hash, known.memory.section if same_section else None), []
                ).append(known)
            for index, hash in hashes.items():
                passage = passages[index]
                if (
                    found[index] is None
                    and passage
                    and (same := waiting.get((hash, passage.section if same_section else None)))
                ):
                    found[index] = same.pop(0)
            taken = {known.memory.id for known in found if known}
            left = [known for known in left if known.memory.id not in taken]
    return found


def forgotten(held: Held) -> bool:
    """Whether somebody hid it, as against the source having lost it."""
    return held.memory.deleted_at is not None and held.action != "retire"


def resectioned(passages: Sequence[Passage | None], known: Sequence[Held | None]) -> list[Memory]:
    """Kept memories that stand under another heading now: the heading is part of what is embedded."""
    return [
        held.memory._replace(section=passage.section)
        for passage, held in zip(passages, known, strict=True)
        if passage and held and not forgotten(held) and held.memory.section != passage.section
    ]


def keeping(
    passages: Sequence[Passage | None], known: Sequence[Held | None], positions: Sequence[int]
) -> tuple[tuple[str, ...], tuple[Place, ...], tuple[Change, ...]]:
    """What keeps that which is still there: the ids, where they stand now, and what the reader says anew of them."""
    keep: list[str] = []
    place: list[Place] = []
    change: list[Change] = []
    for passage, held, position in zip(passages, known, positions, strict=True):
        if passage is None or held is None:
            continue
        memory = held.memory
        keep.append(memory.id)
        if forgotten(held):
            continue
        position = position if passage.position is None else passage.position
        if (memory.lines, memory.position) != (passage.lines, position):
            place.append((memory.id, passage.lines, position))
        fields = _said_anew(memory, passage)
        if memory.deleted_at is not None:
            change.append(Change(memory.id, "restore", {**fields, "deleted_at": None}))
        elif fields:
            change.append(Change(memory.id, "reread", fields))
    return tuple(keep), tuple(place), tuple(change)


def _said_anew(memory: Memory, passage: Passage) -> dict[str, Any]:
    """What a reader stated outright and is not so any more. What `extract` worked out is left alone."""
    said = {
        "section": passage.section,
        "kind": passage.kind or memory.kind,
        "tags": passage.tags or memory.tags,
        "importance": memory.importance if passage.importance is None else passage.importance,
    }
    return {name: value for name, value in said.items() if getattr(memory, name) != value}
