"""Keeping memories in step with sources that change: files, a repo map, findings, commits.

Each source is known by its uri and the hash of how it was last read. `sync` passes over what is unchanged without reading it
again; what changed replaces its own memories and nobody else's; what moved keeps its ids; what vanished retires its
memories. One group of sources goes in per transaction, so that a stop at any moment leaves every source either as it was
or as it is. This module knows no file system: readers hand it documents.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bethink.errors import InvalidInput
from bethink.ingest.redact import redact, redact_name
from bethink.model import NOTHING, Passage, Receipt, Source

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


Uris = tuple[str, ...]


class Synced(NamedTuple):
    """The outcome of a sync: sources by what became of them, and memories in number."""

    added: Uris = ()
    changed: Uris = ()
    moved: tuple[tuple[str, str], ...] = ()
    vanished: Uris = ()
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
    """One source to be written with its passages."""

    source: Source
    passages: Sequence[Passage]
    became: str  # added, changed, moved or empty
    moved_from: str = ""  # the uri it was known by


class Collection(NamedTuple):
    """Sources that are kept in step together, and how that is done."""

    name: str
    type: str
    known: Mapping[str, Source]  # every source of the scope, whichever collection it belongs to
    write: Callable[[Sequence[SourceUpdate]], Receipt]
    retire: Callable[[Sequence[str]], int]
    exists: Callable[[str], bool]  # True if the target of a uri still exists

    def holds(self, source: Source) -> bool:
        return source.metadata.get("collection") == self.name


def sync(
    documents: Iterable[Document | Skipped],
    collection: Collection,
    looked: Callable[[str], bool],
    progress: Callable[[int], None] | None,
) -> Synced:
    """Update the memories of a collection to its documents.

    Known sources without a document have vanished if `looked` says that they would have been found; those that could not be read have not.
    `progress` gets the number of documents done.
    """
    seen: dict[str, bool] = {}  # uri → its source is unchanged
    skipped: list[Skipped] = []
    became: defaultdict[str, list[Any]] = defaultdict(list)
    counts: Counter[str] = Counter()
    hints: dict[str, None] = {}
    for group in _group(_find_updates(documents, collection, seen, skipped)):
        receipt = collection.write(group)
        for one in group:
            uri = one.source.uri
            became[one.became].append((one.moved_from, uri) if one.moved_from else uri)
        kept = sum(one.status == "kept" for one in receipt.outcomes)
        counts.update(added=receipt.added, kept=kept, retired=receipt.retired)
        hints |= dict.fromkeys(receipt.hints)
        if progress:
            progress(len(seen))
    accounted = {*seen, *(old for old, _ in became["moved"])}
    ours = [uri for uri, source in collection.known.items() if collection.holds(source)]
    vanished = [uri for uri in ours if uri not in accounted and looked(uri)]
    if vanished:
        counts["retired"] += collection.retire(vanished)
    return Synced(
        tuple(became["added"]),
        tuple(became["changed"]),
        tuple(became["moved"]),
        tuple(vanished),
        sum(seen.values()),
        len(became["empty"]),
        tuple(skipped),
        counts["added"],
        counts["kept"],
        counts["retired"],
        tuple(hints),
    )


def _find_updates(
    documents: Iterable[Document | Skipped],
    collection: Collection,
    seen: dict[str, bool],
    skipped: list[Skipped],
) -> Iterator[SourceUpdate]:
    """Yield the documents that are new, changed or moved; note those seen and those that cannot be read."""
    by_hash = {
        source.hash: uri
        for uri, source in collection.known.items()
        if source.hash and collection.holds(source)
    }
    for document in documents:
        # A uri under which a source is stored was redacted when it was stored.
        if document.uri not in collection.known:
            document = document._replace(uri=redact_name(document.uri))
        uri = document.uri
        if uri in seen:
            continue
        seen[uri] = False
        if isinstance(document, Skipped):
            skipped.append(document._replace(reason=redact(document.reason).text))
            continue
        known = collection.known.get(uri)
        if known and collection.holds(known) and known.hash == document.hash:
            seen[uri] = True
            continue
        try:
            passages = document.passages()
        except InvalidInput as error:
            skipped.append(Skipped(uri, error.message.rstrip(".")))
            continue
        metadata = {**document.metadata, "collection": collection.name}
        source = Source(uri, collection.type, document.hash, metadata=metadata)
        if known and known.hash:
            yield SourceUpdate(source, passages, "changed")
        elif (origin := by_hash.get(document.hash, "")) and _is_gone(origin, seen, collection):
            del by_hash[document.hash]  # it serves once
            yield SourceUpdate(source, passages, "moved", origin)
        else:
            yield SourceUpdate(source, passages, "added" if passages else "empty")


def _is_gone(uri: str, seen: Mapping[str, bool], collection: Collection) -> bool:
    """Return True if the source no longer exists. A redacted name cannot be looked up, so it exists."""
    return uri not in seen and "[REDACTED" not in uri and not collection.exists(uri)


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
