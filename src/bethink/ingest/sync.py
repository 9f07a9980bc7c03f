"""Keeping memories in step with sources that change: files, a repo map, findings, commits.

Each source is known by its uri and the hash of how it was last read. What is unchanged is passed over without reading it
again; what changed replaces its own memories and nobody else's; what moved keeps its ids; what vanished retires its
memories. One group of sources goes in per transaction, so that a stop at any moment leaves every source either as it was
or as it is. This module knows no file system: readers hand it documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from bethink.errors import InvalidInput
from bethink.ingest.redact import redact
from bethink.types import NOTHING, Passage, Receipt, Source

GROUP = 256  # passages that go in together: enough for full batches of the model, few enough to lose little when stopped


class Document(NamedTuple):
    """One source as a reader found it. `passages` is called only when the hash says that it changed."""

    uri: str
    hash: str  # of the bytes and of everything else that decides what becomes of them
    passages: Callable[[], Sequence[Passage]]
    metadata: Mapping[str, Any] = NOTHING


class Skipped(NamedTuple):
    """A source that could not be read, and why."""

    uri: str
    reason: str


class Synced(NamedTuple):
    """What a sync found and did: sources by what became of them, and memories in number."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()
    vanished: tuple[str, ...] = ()
    unchanged: int = 0
    skipped: tuple[Skipped, ...] = ()
    memories_added: int = 0
    memories_kept: int = 0
    memories_retired: int = 0
    hints: tuple[str, ...] = ()

    @property
    def sources(self) -> int:
        return len(self.added) + len(self.changed) + len(self.moved) + self.unchanged

    def plus(self, other: Synced) -> Synced:
        """Both together: every field is a number or a row of things."""
        both: list[tuple[Any, Any]] = list(zip(self, other, strict=True))
        return Synced(*(mine + theirs for mine, theirs in both))


class Step(NamedTuple):
    """One document to be written: what it was, if anything, and what it is."""

    source: Source
    passages: Sequence[Passage]
    moved_from: str | None = None
    fresh: bool = False


class Door(NamedTuple):
    """What a sync may do to the world: know the sources of a collection, write some, and say which uris still exist."""

    known: Mapping[str, Source]  # of this collection
    other: Callable[
        [str], Source | None
    ]  # any source by its uri, whichever collection it belongs to
    write: Callable[[Sequence[Step]], Receipt]
    vanish: Callable[[Sequence[str]], int]
    alive: Callable[[str], bool]


def sync(
    documents: Iterable[Document | Skipped],
    door: Door,
    *,
    collection: str,
    type: str,
    looked: Callable[[str], bool] = lambda uri: True,
    progress: Callable[[int, int], None] | None = None,
) -> Synced:
    """Brings the memories of a collection in step with its documents. Known sources that no document spoke of have vanished
    if `looked` says that they would have been found; those that could not be read have not."""
    found = Synced()
    seen: set[str] = set()
    by_hash = {source.hash: source for source in door.known.values() if source.hash}
    gone: set[str] = set()

    def steps() -> Iterator[Step]:
        nonlocal found
        for document in documents:
            document = document._replace(uri=storable(document.uri))
            if document.uri in seen:
                continue
            seen.add(document.uri)
            if isinstance(document, Skipped):
                found = found._replace(skipped=(*found.skipped, document))
                continue
            known = door.known.get(document.uri) or door.other(document.uri)
            if (
                known
                and known.hash == document.hash
                and known.metadata.get("collection") == collection
            ):
                found = found._replace(unchanged=found.unchanged + 1)
                continue
            try:
                passages = document.passages()
            except InvalidInput as error:
                found = found._replace(
                    skipped=(*found.skipped, Skipped(document.uri, error.message.rstrip(".")))
                )
                continue
            origin = None if known and known.hash else by_hash.get(document.hash)
            moved = (
                origin.uri
                if origin
                and origin.uri not in seen
                and origin.uri not in gone
                and not _alive(door, origin.uri)
                else None
            )
            if moved:
                gone.add(moved)
            source = Source(
                document.uri,
                type,
                document.hash,
                metadata={**document.metadata, "collection": collection},
            )
            yield Step(source, passages, moved, fresh=known is None or known.hash is None)

    done = 0
    for group in _grouped(steps()):
        receipt = door.write(group)
        found = _noted(found, group, receipt)
        done += sum(len(step.passages) for step in group)
        if progress:
            progress(done, found.sources)
    vanished = [uri for uri in door.known if uri not in seen and uri not in gone and looked(uri)]
    if vanished:
        retired = door.vanish(vanished)
        found = found._replace(
            vanished=tuple(vanished), memories_retired=found.memories_retired + retired
        )
    return found


def storable(uri: str) -> str:
    """A uri without the secrets that something is named by. What differs only in them stays apart."""
    kept = redact(uri).text
    return (
        uri if kept == uri else f"{kept}~{sha256(uri.encode('utf-8', 'replace')).hexdigest()[:6]}"
    )


def _alive(door: Door, uri: str) -> bool:
    return "[REDACTED" in uri or door.alive(
        uri
    )  # what a redacted name stood for cannot be looked up


def _grouped(steps: Iterator[Step]) -> Iterator[list[Step]]:
    group: list[Step] = []
    size = 0
    for step in steps:
        group.append(step)
        size += len(step.passages)
        if size >= GROUP or step.moved_from:
            yield group
            group, size = [], 0
    if group:
        yield group


def _noted(found: Synced, group: Sequence[Step], receipt: Receipt) -> Synced:
    plain = [step for step in group if not step.moved_from]
    return found._replace(
        added=(*found.added, *(step.source.uri for step in plain if step.fresh)),
        changed=(*found.changed, *(step.source.uri for step in plain if not step.fresh)),
        moved=(
            *found.moved,
            *((step.moved_from, step.source.uri) for step in group if step.moved_from),
        ),
        memories_added=found.memories_added + receipt.added,
        memories_kept=found.memories_kept
        + sum(outcome.status == "kept" for outcome in receipt.outcomes),
        memories_retired=found.memories_retired + receipt.retired,
        hints=tuple(dict.fromkeys((*found.hints, *receipt.hints))),
    )
