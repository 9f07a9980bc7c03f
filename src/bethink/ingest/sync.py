"""Keeping memories in step with sources that change: files, a repo map, findings, commits.

Each source is known by its uri and the hash of how it was last read. `sync` passes over what is unchanged without reading it
again; what changed replaces its own memories and nobody else's; what moved keeps its ids; what vanished retires its
memories. One group of sources goes in per transaction, so that a stop at any moment leaves every source either as it was
or as it is. This module knows no file system: readers hand it documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bethink.errors import InvalidInput
from bethink.ingest.redact import redact, redact_name
from bethink.types import NOTHING, Passage, Receipt, Source

# Passages written together: enough for full batches of the model, few enough to lose little when stopped. Set by hand.
GROUP = 256
EMBEDDED = 0.9  # of the work on a group, set by hand; the rest is to write it


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


class SourceUpdate(NamedTuple):
    """One source to be written with its passages; `moved_from` is the uri it was known by, if it was another."""

    source: Source
    passages: Sequence[Passage]
    moved_from: str | None = None
    is_new: bool = False


class Collection(NamedTuple):
    """The sources that are kept in step together, and what `sync` may do to them."""

    name: str
    type: str
    known: Mapping[str, Source]
    find: Callable[
        [str], Source | None
    ]  # any source by its uri, whichever collection it belongs to
    write: Callable[
        [Sequence[SourceUpdate], Callable[[int], None] | None], Receipt
    ]  # telling how many passages are embedded
    retire: Callable[[Sequence[str]], int]
    exists: Callable[[str], bool]  # whether what a uri names is still there


class SyncTally:
    """What one run did so far. Lists, because copying tuples for every source makes a run quadratic."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.gone: set[str] = set()  # uris from which a source moved away
        self.added: list[str] = []
        self.changed: list[str] = []
        self.moved: list[tuple[str, str]] = []
        self.skipped: list[Skipped] = []
        self.counts: Counter[str] = Counter()
        self.hints: dict[str, None] = {}

    def add(self, group: Sequence[SourceUpdate], receipt: Receipt) -> None:
        for (uri, *_), _, moved_from, is_new in group:
            if moved_from:
                self.moved.append((moved_from, uri))
            else:
                (self.added if is_new else self.changed).append(uri)
        self.counts["memories_added"] += receipt.added
        self.counts["memories_kept"] += sum(one.status == "kept" for one in receipt.outcomes)
        self.counts["memories_retired"] += receipt.retired
        self.hints |= dict.fromkeys(receipt.hints)

    def result(self, vanished: Sequence[str]) -> Synced:
        return Synced(
            tuple(self.added),
            tuple(self.changed),
            tuple(self.moved),
            tuple(vanished),
            skipped=tuple(self.skipped),
            hints=tuple(self.hints),
            **self.counts,
        )


def sync(
    documents: Iterable[Document | Skipped],
    collection: Collection,
    *,
    looked: Callable[[str], bool] = lambda uri: True,
    progress: Callable[[float], None] | None = None,
) -> Synced:
    """Brings the memories of a collection in step with its documents. Known sources that no document spoke of have vanished
    if `looked` says that they would have been found; those that could not be read have not. `progress` is told how many
    documents are done; those that are being embedded count in part."""
    tally = SyncTally()
    for group in _group(_find_updates(documents, collection, tally, progress)):
        tally.add(group, collection.write(group, _count_part(group, tally, progress)))
    if progress:
        progress(len(tally.seen))
    accounted = tally.seen | tally.gone
    vanished = [uri for uri in collection.known if uri not in accounted and looked(uri)]
    if vanished:
        tally.counts["memories_retired"] += collection.retire(vanished)
    return tally.result(vanished)


def _count_part(
    group: Sequence[SourceUpdate], tally: SyncTally, progress: Callable[[float], None] | None
) -> Callable[[int], None] | None:
    """What tells how far a sync is while some passages of a group are embedded and others are not."""
    if progress is None:
        return None
    passages = sum(len(update.passages) for update in group) or 1
    before = len(tally.seen) - len(group)
    most = len(group) * EMBEDDED
    return lambda embedded: progress(before + most * min(1.0, embedded / passages))


def _find_updates(
    documents: Iterable[Document | Skipped],
    collection: Collection,
    tally: SyncTally,
    progress: Callable[[float], None] | None,
) -> Iterator[SourceUpdate]:
    """The documents that are new, changed or moved, with their passages; notes the others in the tally."""
    by_hash = {source.hash: source for source in collection.known.values() if source.hash}
    for document in documents:
        # A uri under which a source is stored was redacted when it was stored.
        if document.uri not in collection.known:
            document = document._replace(uri=redact_name(document.uri))
        if document.uri in tally.seen:
            continue
        tally.seen.add(document.uri)
        if isinstance(document, Skipped):
            tally.skipped.append(document._replace(reason=redact(document.reason).text))
            continue
        known = collection.known.get(document.uri) or collection.find(document.uri)
        ours = known and known.metadata.get("collection") == collection.name
        if known and ours and known.hash == document.hash:
            tally.counts["unchanged"] += 1
            if progress and not tally.counts["unchanged"] % GROUP:
                progress(len(tally.seen))
            continue
        try:
            passages = document.passages()
        except InvalidInput as error:
            tally.skipped.append(Skipped(document.uri, error.message.rstrip(".")))
            continue
        is_new = known is None or known.hash is None
        moved_from = _origin(by_hash.get(document.hash), collection, tally) if is_new else None
        if moved_from:
            tally.gone.add(moved_from)
        metadata = {**document.metadata, "collection": collection.name}
        source = Source(document.uri, collection.type, document.hash, metadata=metadata)
        yield SourceUpdate(source, passages, moved_from, is_new)


def _origin(source: Source | None, collection: Collection, tally: SyncTally) -> str | None:
    """The uri a document with the same content was known by, if nothing is there any more."""
    if source is None or source.uri in tally.seen or source.uri in tally.gone:
        return None
    # What a redacted name stood for cannot be looked up, so it counts as existing.
    if "[REDACTED" in source.uri or collection.exists(source.uri):
        return None
    return source.uri


def _group(updates: Iterator[SourceUpdate]) -> Iterator[list[SourceUpdate]]:
    group: list[SourceUpdate] = []
    size = 0
    for update in updates:
        group.append(update)
        size += len(update.passages)
        if size >= GROUP or update.moved_from:
            yield group
            group, size = [], 0
    if group:
        yield group
