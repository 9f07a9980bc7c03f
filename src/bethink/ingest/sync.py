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
GROUP = 128


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
    empty: int = 0  # new sources that hold nothing to remember, or ask to be left out
    skipped: tuple[Skipped, ...] = ()
    memories_added: int = 0
    memories_kept: int = 0
    memories_retired: int = 0
    hints: tuple[str, ...] = ()

    @property
    def sources(self) -> int:
        return sum(map(len, (self.added, self.changed, self.moved))) + self.unchanged + self.empty


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
    # Any source by its uri, whichever collection it belongs to.
    find: Callable[[str], Source | None]
    # Told how many passages are embedded.
    write: Callable[[Sequence[SourceUpdate]], Receipt]
    retire: Callable[[Sequence[str]], int]
    exists: Callable[[str], bool]  # whether what a uri names is still there


def sync(
    documents: Iterable[Document | Skipped],
    collection: Collection,
    *,
    looked: Callable[[str], bool] = lambda uri: True,
    progress: Callable[[int], None] | None = None,
) -> Synced:
    """Brings the memories of a collection in step with its documents. Known sources that no document spoke of have vanished
    if `looked` says that they would have been found; those that could not be read have not. `progress` is told how many
    documents are done."""
    seen: dict[str, bool] = {}  # uri → whether its source is unchanged
    skipped: list[Skipped] = []
    moved: list[tuple[str, str]] = []
    added: list[str] = []
    changed: list[str] = []
    empty: list[str] = []
    counts: Counter[str] = Counter()
    hints: dict[str, None] = {}
    for group in _group(_find_updates(documents, collection, seen, skipped)):
        receipt = collection.write(group)
        for one in group:
            if one.moved_from:
                moved.append((one.moved_from, one.source.uri))
            else:
                became = changed if not one.is_new else added if one.passages else empty
                became.append(one.source.uri)
        kept = sum(one.status == "kept" for one in receipt.outcomes)
        counts.update(added=receipt.added, kept=kept, retired=receipt.retired)
        hints |= dict.fromkeys(receipt.hints)
        if progress:
            progress(len(seen))
    accounted = {*seen, *(old for old, _ in moved)}
    vanished = [uri for uri in collection.known if uri not in accounted and looked(uri)]
    retired = collection.retire(vanished) if vanished else 0
    return Synced(
        tuple(added),
        tuple(changed),
        tuple(moved),
        tuple(vanished),
        sum(seen.values()),
        len(empty),
        tuple(skipped),
        counts["added"],
        counts["kept"],
        retired + counts["retired"],
        tuple(hints),
    )


def _find_updates(
    documents: Iterable[Document | Skipped],
    collection: Collection,
    seen: dict[str, bool],
    skipped: list[Skipped],
) -> Iterator[SourceUpdate]:
    """The documents that are new, changed or moved, with their passages; notes what was seen and what could not be read."""
    by_hash = {source.hash: source.uri for source in collection.known.values() if source.hash}
    for document in documents:
        # A uri under which a source is stored was redacted when it was stored.
        if document.uri not in collection.known:
            document = document._replace(uri=redact_name(document.uri))
        if document.uri in seen:
            continue
        seen[document.uri] = False
        if isinstance(document, Skipped):
            skipped.append(document._replace(reason=redact(document.reason).text))
            continue
        known = collection.known.get(document.uri) or collection.find(document.uri)
        ours = known and known.metadata.get("collection") == collection.name
        if known and ours and known.hash == document.hash:
            seen[document.uri] = True
            continue
        try:
            passages = document.passages()
        except InvalidInput as error:
            skipped.append(Skipped(document.uri, error.message.rstrip(".")))
            continue
        is_new = known is None or known.hash is None
        origin = _find_origin(document.hash, by_hash, seen, collection) if is_new else None
        metadata = {**document.metadata, "collection": collection.name}
        source = Source(document.uri, collection.type, document.hash, metadata=metadata)
        yield SourceUpdate(source, passages, origin, is_new)


def _find_origin(
    hash: str, by_hash: dict[str, str], seen: Mapping[str, bool], collection: Collection
) -> str | None:
    """The uri that a document with the same content was known by, if nothing is there any more; it serves once."""
    origin = by_hash.get(hash)
    # What a redacted name stood for cannot be looked up, so it counts as existing.
    if not origin or origin in seen or "[REDACTED" in origin or collection.exists(origin):
        return None
    return by_hash.pop(hash)


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
