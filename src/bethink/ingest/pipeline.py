"""Writing, the recipe: passages → redact → extract → embed → compare → Batch → Receipt.

Everything that becomes a memory comes through here: a note is one passage of one source, a document is many.
Nothing slow happens inside a transaction: the batch is complete before the store is asked to write it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bethink.embed.base import Embedder
from bethink.errors import InvalidInput
from bethink.ingest.compare import Comparison, WriteOptions, compare
from bethink.ingest.extract import extract, keywords
from bethink.ingest.redact import redact, redact_value
from bethink.ingest.reread import Read, Reread
from bethink.ingest.vectors import Recent, start_embedding
from bethink.store.base import Store
from bethink.store.places import content_hash, embedded_text
from bethink.text import new_id
from bethink.types import (
    NOTHING,
    Batch,
    Entry,
    Held,
    Memory,
    Outcome,
    Passage,
    Receipt,
    Relation,
    Source,
)

Group = tuple[Source, Sequence[Passage]]
Vectors = tuple[list[Any], dict[str, Any]]  # of each text, and those made just now by hash


def ingest(
    groups: Sequence[Group],
    options: WriteOptions,
    store: Store,
    embedder: Embedder | None,
    recent: Recent,
    progress: Callable[[int], None] | None = None,
    replace_sources: bool = False,
    moved: Mapping[str, str] = NOTHING,
) -> Receipt:
    """Takes the passages of one or more sources in, all or none. With `replace_sources` they replace what each held before,
    but for what it still holds; `moved` says under which uri a source was known."""
    groups = [(source._replace(uri=redact(source.uri).text), group) for source, group in groups]
    again = Reread(
        _read(groups, options), _load_held(groups, options, store, moved) if replace_sources else {}
    )
    fresh = again.fresh
    waiting = start_vectors(_texts(again), embedder, recent, store, progress)
    memories = [
        make_memory(extract(one.passage), one.source, options, one.position) for one in fresh
    ]
    vectors, made = waiting()
    own = vectors[: len(memories)]
    explicit = [one.passage.supersedes for one in fresh]
    found = compare(memories, own, options, store, embedder, explicit=explicit)
    batch = _batch_of_sources(groups, options, moved, replace_sources)._replace(
        add=make_entries(memories, own, found, options, store),
        change=found.change,
        relate=found.relate,
        model=embedder.model if embedder else None,
        cache=made,
    )
    batch = again.batch(batch, vectors[len(memories) :])
    receipt = store.write(_relate_named(batch, memories, fresh, found))
    outcomes = _outcomes(memories, fresh, found, iter(receipt.outcomes))
    return Receipt(tuple(again.tell_outcomes(outcomes)), retired=receipt.retired)


# Reading


def _read(groups: Sequence[Group], options: WriteOptions) -> list[Read]:
    found = []
    for source, group in groups:
        for position, passage in enumerate(group):
            try:
                cleaned, redactions = clean_passage(passage, options.longest)
            except InvalidInput:
                if not options.lenient:
                    raise
                found.append(Read(passage, source, position, refused=True))
            else:
                found.append(Read(cleaned, source, position, redactions))
    return found


def clean_passage(passage: Passage, longest: int) -> tuple[Passage, int]:
    """The passage without private parts and secrets, and how many were taken out. Refuses what leaves nothing to remember."""
    if not passage.content.strip():
        raise InvalidInput("There is no text to remember.", 'bethink add "We deploy on Fridays"')
    if len(passage.content) > longest:
        size = len(passage.content)
        raise InvalidInput(
            f"The text is {size:,} characters long; one memory holds at most {longest:,}.",
            "Split it, or import it as a document.",
        )
    text = passage.content.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
    redacted = redact(text)
    if redacted.empty:
        raise InvalidInput(
            "Nothing is left to remember once the private parts are taken out.",
            "Say something outside <private>…</private>.",
        )
    metadata, hidden = redact_value(dict(passage.metadata))
    tags, hidden_tags = redact_value(list(passage.tags))
    names = tuple(entity for entity in passage.entities if redact(entity.name).text == entity.name)
    summary, section = redact(passage.summary or ""), redact(passage.section or "")
    found = hidden + hidden_tags + len(passage.entities) - len(names)
    count = found + sum(part.private + part.secrets for part in (redacted, summary, section))
    return passage._replace(
        content=redacted.text.strip(),
        summary=summary.text or None,
        section=section.text or None,
        metadata=metadata,
        tags=tuple(tags),
        entities=names,
    ), count


def _load_held(
    groups: Sequence[Group], options: WriteOptions, store: Store, moved: Mapping[str, str]
) -> dict[str, list[Held]]:
    """What each source held when it was read last."""
    return {
        source.uri: store.list_passages(options.scope, moved.get(source.uri, source.uri))
        for source, _ in groups
    }


def _batch_of_sources(
    groups: Sequence[Group], options: WriteOptions, moved: Mapping[str, str], replace: bool
) -> Batch:
    """What is written of the sources themselves: where they lie now, how they were read, and what they held before."""
    scope = options.scope
    return Batch(
        at=options.now,
        actor=options.actor,
        scopes=options.scopes,
        sources=tuple((scope, source) for source, _ in groups if source.hash or replace),
        retire=tuple((scope, source.uri) for source, _ in groups if replace),
        move=tuple((scope, old, new) for new, old in moved.items()),
        allow_purged=options.allow_purged,
    )


def make_memory(passage: Passage, source: Source, options: WriteOptions, position: int) -> Memory:
    """A passage as the memory that it becomes."""
    created = passage.created_at or options.now
    return Memory(
        id=new_id(),
        scope=options.scope,
        kind=passage.kind or "general",
        content=passage.content,
        summary=passage.summary or "",
        created_at=created,
        updated_at=options.now,
        importance=5.0 if passage.importance is None else passage.importance,
        confidence=1.0 if passage.confidence is None else passage.confidence,
        last_accessed=created,
        valid_from=passage.valid_from,
        expires_at=passage.expires_at,
        answered=False if passage.kind == "question" else None,
        content_hash=content_hash(passage.content),
        source=source.uri,
        source_type=source.type,
        lines=passage.lines,
        position=position if passage.position is None else passage.position,
        section=passage.section,
        span=passage.span,
        session=passage.session,
        tags=passage.tags,
        keywords=keywords(passage.content) if passage.kind != "context" else (),
        entities=passage.entities,
        metadata=passage.metadata if passage.embed else {**passage.metadata, "vector_index": False},
        trust=options.trust,
    )


# Vectors


def _texts(again: Reread) -> list[tuple[str, bool]]:
    """The texts behind the vectors of new memories, then of those under another heading; and whether each is to have some."""
    texts = [(embedded_text(one.passage), one.passage.embed) for one in again.fresh]
    return texts + [
        (embedded_text(memory), "vector_index" not in memory.metadata)
        for memory in again.resectioned
    ]


def make_vectors(
    memories: Sequence[Memory], embedder: Embedder | None, recent: Recent, store: Store
) -> Vectors:
    """The vectors of each memory."""
    texts = [(embedded_text(memory), True) for memory in memories]
    return start_vectors(texts, embedder, recent, store, None)()


def start_vectors(
    texts: Sequence[tuple[str, bool]],
    embedder: Embedder | None,
    recent: Recent,
    store: Store,
    progress: Callable[[int], None] | None,
) -> Callable[[], Vectors]:
    """Lets the model start on each text that is to have vectors, while the rules work; calling the result waits for them."""
    if embedder is None:
        if progress:
            progress(len(texts))
        return lambda: ([()] * len(texts), {})
    made = start_embedding(
        [text for text, wanted in texts if wanted], embedder, recent, store.read_cache, progress
    )

    def finish() -> Vectors:
        found, fresh = made()
        each = iter(found)
        return [next(each) if wanted else () for _, wanted in texts], fresh

    return finish


# Writing


def make_entries(
    memories: Sequence[Memory],
    vectors: Sequence[Any],
    found: Comparison,
    options: WriteOptions,
    store: Store,
) -> tuple[Entry, ...]:
    """The new memories as they are written. A text that was told before and has been replaced since is told anew: it stands
    beside the replaced one."""
    new = [(memories[at], vectors[at]) for at in found.new]
    again: set[str] = set()
    if options.unique and new:
        twins = store.duplicates([memory.content_hash for memory, _ in new], options.scope)
        again = {one.content_hash for one in store.get(list(twins.values())) if one.superseded_by}
    return tuple(
        Entry(memory, own, options.unique and memory.content_hash not in again)
        for memory, own in new
    )


def fold_changes(batch: Batch) -> Batch:
    """The batch with what it changes of its own new memories written at once: what replaces or answers them came with them."""
    new = {entry.memory.id for entry in batch.add}
    fields: dict[str, dict[str, Any]] = {id: {} for id in new}
    for change in batch.change:
        if change.id in new:
            fields[change.id].update(change.fields)
    return batch._replace(
        add=tuple(
            entry._replace(memory=entry.memory._replace(**fields[entry.memory.id]))
            for entry in batch.add
        ),
        change=tuple(change for change in batch.change if change.id not in new),
    )


def _relate_named(
    batch: Batch, memories: Sequence[Memory], fresh: Sequence[Read], found: Comparison
) -> Batch:
    """The batch with the relations of new memories to those that they name, each of which counts as used."""
    named = [(memories[at].id, other) for at in found.new for other in fresh[at].passage.relates_to]
    return batch._replace(
        relate=(*batch.relate, *(Relation(id, other, "relates_to") for id, other in named)),
        access=tuple(other for _, other in named),
    )


def _outcomes(
    memories: Sequence[Memory],
    fresh: Sequence[Read],
    found: Comparison,
    written: Iterator[Outcome],
) -> Iterator[Outcome]:
    """What became of each new passage: what the comparison found, or else what the store says."""
    for memory, one, verdict in zip(memories, fresh, found.verdicts, strict=True):
        if verdict.duplicate is not None:
            known = verdict.duplicate.memory
            exact = known.content_hash == memory.content_hash
            outcome = Outcome(
                known.id,
                "duplicate" if exact else "near_duplicate",
                known.id,
                1.0 if exact else round(verdict.duplicate.similarity, 4),
            )
        else:
            outcome = next(written)
        outcome = outcome._replace(redactions=one.redactions)
        if outcome.status == "added" or verdict.duplicate is not None:
            outcome = outcome._replace(
                supersedes=verdict.supersedes,
                settles=verdict.settles,
                proposals=verdict.proposals,
            )
        yield outcome
