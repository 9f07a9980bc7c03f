"""What a source that is read again still holds. Pure: the held memories are given, the parts of a batch come back.

A passage whose text did not change keeps its memory, with its id, its votes and its history; only where it stands is
brought up to date. What a person forgot stays forgotten; what was retired because the passage had gone comes back with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bethink.store.places import content_hash, vector_text
from bethink.types import Batch, Change, Held, Memory, Passage, Source


class Read(NamedTuple):
    """One passage after redaction; None where nothing was left of it. Where it stands, and how many parts were taken out."""

    passage: Passage | None
    source: Source
    position: int
    redactions: int

    @property
    def supersedes(self) -> tuple[str, ...]:
        return self.passage.supersedes if self.passage else ()


def match_existing(
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
        if left := list(held.get(source.uri, ())):
            _match(at, passages, left, found)
    return found


def _match(
    places: Sequence[int],
    passages: Sequence[Passage | None],
    left: list[Held],
    found: list[Held | None],
) -> None:
    for same_section in (True, False):
        waiting: dict[tuple[str, str | None], list[Held]] = {}
        for known in left:
            section = known.memory.section if same_section else None
            waiting.setdefault((known.memory.content_hash, section), []).append(known)
        for at in places:
            passage = passages[at]
            if passage is None or found[at] is not None:
                continue
            section = passage.section if same_section else None
            if same := waiting.get((content_hash(passage.content), section)):
                found[at] = same.pop(0)
        left = [known for several in waiting.values() for known in several]


def was_forgotten(held: Held) -> bool:
    """Whether somebody hid it, as against the source having lost it."""
    return held.memory.deleted_at is not None and held.action != "retire"


class Reread:
    """Passages and the memories that already hold them."""

    def __init__(self, read: Sequence[Read], known: Sequence[Held | None]) -> None:
        self.kept = [
            (one.passage, there, one.position)
            for one, there in zip(read, known, strict=True)
            if one.passage and there
        ]
        # Those that stand under another heading now: the heading is part of what is embedded.
        self.resectioned = [
            there.memory._replace(section=passage.section)
            for passage, there, _ in self.kept
            if not was_forgotten(there) and there.memory.section != passage.section
        ]

    def batch(self, batch: Batch, vectors: Sequence[Any]) -> Batch:
        """The batch with what keeps that which is still there; `vectors` are those of what stands under another heading."""
        live = [
            (there.memory, passage, position)
            for passage, there, position in self.kept
            if not was_forgotten(there)
        ]
        changes = (_changed(memory, passage) for memory, passage, _ in live)
        return batch._replace(
            keep=tuple(there.memory.id for _, there, _ in self.kept),
            place=tuple(
                (memory.id, passage.lines, at)
                for memory, passage, position in live
                for at in (position if passage.position is None else passage.position,)
                if (memory.lines, memory.position) != (passage.lines, at)
            ),
            change=(*batch.change, *filter(None, changes)),
            vectors={
                memory.id: own
                for memory, own in zip(self.resectioned, vectors, strict=True)
                if len(own)
            },
            made_of={
                memory.id: vector_text(memory.section, memory.content)
                for memory in self.resectioned
            },
        )


def _changed(memory: Memory, passage: Passage) -> Change | None:
    """What a reader states outright and is not so any more. What `extract` worked out is left alone."""
    stated = {
        "section": passage.section,
        "kind": passage.kind or memory.kind,
        "tags": passage.tags or memory.tags,
        "importance": memory.importance if passage.importance is None else passage.importance,
    }
    fields = {name: value for name, value in stated.items() if getattr(memory, name) != value}
    if memory.deleted_at is not None:
        return Change(memory.id, "restore", {**fields, "deleted_at": None})
    return Change(memory.id, "reread", fields) if fields else None
