"""What a source that is read again still holds. Pure: the held memories are given, the parts of a batch come back.

A passage whose text did not change keeps its memory, with its id, its votes and its history; only where it stands is
brought up to date. What a person forgot stays forgotten; what was retired because the passage had gone comes back with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bethink.store.places import content_hash, embedded_text
from bethink.types import Batch, Change, Held, Memory, Outcome, Passage, Source


class Read(NamedTuple):
    """One passage after redaction, where it stands, and how many parts were taken out; `refused` if nothing was left of it."""

    passage: Passage
    source: Source
    position: int
    redactions: int = 0
    refused: bool = False


def match_existing(read: Sequence[Read], held: Mapping[str, Sequence[Held]]) -> list[Held | None]:
    """For each passage the memory that already holds its text: under the same heading first, then under any."""
    places: dict[str, list[int]] = {}
    for at, one in enumerate(read):
        if not one.refused:
            places.setdefault(one.source.uri, []).append(at)
    found: list[Held | None] = [None] * len(read)
    for uri, known in held.items():
        left = list(known)
        for same_section in (True, False):
            left = _match(places.get(uri, ()), read, left, found, same_section)
    return found


def _match(
    places: Sequence[int],
    read: Sequence[Read],
    left: Sequence[Held],
    found: list[Held | None],
    same_section: bool,
) -> list[Held]:
    """Gives each place that has none a memory of the same text; returns the memories that nobody took."""
    waiting: dict[tuple[str, str | None], list[Held]] = {}
    for known in left:
        section = known.memory.section if same_section else None
        waiting.setdefault((known.memory.content_hash, section), []).append(known)
    for at in places:
        passage = read[at].passage
        section = passage.section if same_section else None
        if found[at] is None and (same := waiting.get((content_hash(passage.content), section))):
            found[at] = same.pop(0)
    return [known for several in waiting.values() for known in several]


def was_forgotten(held: Held) -> bool:
    """Whether somebody hid it, as against the source having lost it."""
    return held.memory.deleted_at is not None and held.action != "retire"


class Reread:
    """Passages and the memories that already hold them."""

    def __init__(self, read: Sequence[Read], held: Mapping[str, Sequence[Held]]) -> None:
        self._known = list(zip(read, match_existing(read, held), strict=True))
        self.fresh = [one for one, there in self._known if there is None and not one.refused]
        self.kept = [(one.passage, there, one.position) for one, there in self._known if there]
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
        changes = (_restate(memory, passage) for memory, passage, _ in live)
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
            made_of={memory.id: embedded_text(memory) for memory in self.resectioned},
        )

    def tell_outcomes(self, fresh: Iterator[Outcome]) -> Iterator[Outcome]:
        """What became of every passage, given what became of the fresh ones."""
        for one, there in self._known:
            if there is not None:
                status = "forgotten" if was_forgotten(there) else "kept"
                yield Outcome(there.memory.id, status)
            else:
                yield Outcome("", "refused") if one.refused else next(fresh)


def _restate(memory: Memory, passage: Passage) -> Change | None:
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
