"""Writing, the recipe: passages → redact → extract → embed → compare → Batch → Receipt.

Everything that becomes a memory comes through here: a note is one passage of one source, a document is many.
Nothing slow happens inside a transaction: the batch is complete before the store is asked to write it.

Of a source that is read again, a passage whose text did not change keeps its memory, with its id, its votes and its history; only
where it stands is brought up to date. What a person forgot stays forgotten; what was retired because the passage had gone comes back
with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink.embed import submit_ahead
from bethink.embed.base import Embedder
from bethink.errors import InvalidInput
from bethink.ingest.compare import Comparison, WriteOptions, compare
from bethink.ingest.extract import extract, find_label, keywords
from bethink.ingest.kinds import choose_kind
from bethink.ingest.reconcile import REPEATED, STATED, holds_one_statement
from bethink.ingest.redact import redact, redact_value
from bethink.judge import Judge, asks, describe_place
from bethink.model import (
    NOTHING,
    Batch,
    Change,
    Entry,
    Held,
    Memory,
    Outcome,
    Passage,
    Receipt,
    Relation,
    Source,
)
from bethink.schema import check_bounds
from bethink.store.base import Store
from bethink.store.places import content_hash, embedded_text, topic_text
from bethink.text import hash_text, new_id

if TYPE_CHECKING:
    from concurrent.futures import Executor

Group = tuple[Source, Sequence[Passage]]


class Read(NamedTuple):
    """One passage after redaction, where it stands, and how many parts were taken out."""

    passage: Passage
    source: Source
    position: int
    redactions: int = 0
    refused: bool = False  # nothing was left of it
    held: Held | None = None  # the memory that already holds it

    @property
    def is_fresh(self) -> bool:
        return not self.refused and self.held is None

    @property
    def is_forgotten(self) -> bool:
        """Whether somebody hid the memory, as against the source having lost it."""
        held = self.held
        return held is not None and held.memory.deleted_at is not None and held.action != "retire"


def ingest(
    groups: Sequence[Group],
    options: WriteOptions,
    store: Store,
    embedder: Embedder | None,
    recent: Recent,
    replace_sources: bool = False,
    moved: Mapping[str, str] = NOTHING,
) -> Receipt:
    """Takes the passages of one or more sources in, all or none. With `replace_sources` they replace what each held before,
    but for what it still holds; `moved` says under which uri a source was known."""
    groups = [(source._replace(uri=redact(source.uri).text), group) for source, group in groups]
    read = _read(groups, options)
    if replace_sources:
        uris = {source.uri: moved.get(source.uri, source.uri) for source, _ in groups}
        held = {uri: store.list_passages(options.scope, was) for uri, was in uris.items()}
        read = _match_held(read, held)
    fresh = [one for one in read if one.is_fresh]
    resectioned = _find_resectioned(read)
    texts = _list_texts(fresh, resectioned)
    waiting = start_embedding(texts, embedder, recent, store)
    memories = _make_memories(fresh, options, options.judge() if embedder else None)
    vectors, made = waiting()
    own, anew = vectors[: len(fresh)], vectors[len(fresh) :]
    explicit = [one.passage.supersedes for one in fresh]
    found = compare(memories, own, options, store, embedder, explicit=explicit)
    memories = [
        _take_over_kind(memory, one.passage, verdict.supersedes, store)
        for memory, one, verdict in zip(memories, fresh, found.verdicts, strict=True)
    ]
    # Memories that new ones name count as used.
    named = [(memories[at].id, other) for at in found.new for other in fresh[at].passage.relates_to]
    batch = _batch_of_sources(groups, options, moved, replace_sources)._replace(
        add=make_entries(memories, own, found, options, store),
        change=found.change,
        relate=(*found.relate, *(Relation(id, other, "relates_to") for id, other in named)),
        access=tuple(other for _, other in named),
        model=embedder.model if embedder else None,
        cache=made,
        vectors={one.id: new for one, new in zip(resectioned, anew, strict=True) if len(new)},
        made_of={one.id: embedded_text(one) for one in resectioned},
    )
    receipt = store.write(_keep_held(batch, read))
    outcomes = _tell_outcomes(read, memories, found, iter(receipt.outcomes))
    return Receipt(tuple(outcomes), retired=receipt.retired)


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


def _make_memories(
    fresh: Sequence[Read], options: WriteOptions, judge: Judge | None
) -> list[Memory]:
    return [
        make_memory(extract(passage), one.source, options, one.position)
        for one, passage in zip(fresh, _recognise_kinds(fresh, judge), strict=True)
    ]


def _recognise_kinds(read: Sequence[Read], judge: Judge | None) -> list[Passage]:
    """The passages, each note of one statement with the kind that the judge and its words speak for."""
    found = [one.passage for one in read]
    notes = [at for at, one in enumerate(read) if judge and _needs_kind(one)]
    texts = [found[at].content for at in notes]
    readings = judge.read([(describe_place("user"), text) for text in texts]) if judge else []
    for at, text, reading in zip(notes, texts, readings, strict=True):
        found[at] = found[at]._replace(kind=choose_kind(text, reading))
    return found


def _needs_kind(one: Read) -> bool:
    """Whether it is a note of one statement whose kind nothing says outright."""
    text = one.passage.content
    return (
        one.source.type == "note"
        and one.passage.kind is None
        and holds_one_statement(text)
        and not find_label(text)
        and not asks(text)
    )


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
    check_bounds(
        {"importance": passage.importance, "confidence": passage.confidence, **passage.more}
    )
    metadata, hidden = redact_value(dict(passage.metadata))
    more, hidden_more = redact_value(dict(passage.more))
    tags, hidden_tags = redact_value(list(passage.tags))
    names = tuple(entity for entity in passage.entities if redact(entity.name).text == entity.name)
    summary, section = redact(passage.summary or ""), redact(passage.section or "")
    found = hidden + hidden_more + hidden_tags + len(passage.entities) - len(names)
    count = found + sum(part.private + part.secrets for part in (redacted, summary, section))
    return passage._replace(
        content=redacted.text.strip(),
        summary=summary.text or None,
        section=section.text or None,
        metadata=metadata,
        more=more,
        tags=tuple(tags),
        entities=names,
    ), count


def _match_held(read: Sequence[Read], held: Mapping[str, Sequence[Held]]) -> list[Read]:
    """Each passage with the memory that already holds its text: under the same heading first, then under any."""
    free: dict[tuple[str, str], list[Held]] = {}
    for uri, known in held.items():
        for twin in known:
            free.setdefault((uri, twin.memory.content_hash), []).append(twin)
    found = list(read)
    for same_section in (True, False):
        for at, one in enumerate(found):
            twins = free.get((one.source.uri, content_hash(one.passage.content)), [])
            for twin in twins if one.is_fresh else ():
                if not same_section or twin.memory.section == one.passage.section:
                    twins.remove(twin)
                    found[at] = one._replace(held=twin)
                    break
    return found


def _list_texts(fresh: Sequence[Read], resectioned: Sequence[Memory]) -> list[str | None]:
    """The texts behind the vectors of new memories, then of those under another heading; None for what is to have none."""
    texts = [embedded_text(one.passage) if one.passage.embed else None for one in fresh]
    return texts + [
        None if "vector_index" in memory.metadata else embedded_text(memory)
        for memory in resectioned
    ]


def _find_resectioned(read: Sequence[Read]) -> list[Memory]:
    """The memories that stand under another heading now: the heading is part of what is embedded."""
    return [
        one.held.memory._replace(section=one.passage.section)
        for one in read
        if one.held and not one.is_forgotten and one.held.memory.section != one.passage.section
    ]


def _keep_held(batch: Batch, read: Sequence[Read]) -> Batch:
    """The batch with what keeps that which is still there."""
    live = [
        (one.held.memory, passage, position if passage.position is None else passage.position)
        for one in read
        for passage, position in ((one.passage, one.position),)
        if one.held and not one.is_forgotten
    ]
    changes = (_restate(memory, passage) for memory, passage, _ in live)
    return batch._replace(
        keep=tuple(one.held.memory.id for one in read if one.held),
        place=tuple(
            (memory.id, passage.lines, at)
            for memory, passage, at in live
            if (memory.lines, memory.position) != (passage.lines, at)
        ),
        change=(*batch.change, *filter(None, changes)),
    )


def _restate(memory: Memory, passage: Passage) -> Change | None:
    """What a reader states outright and is not so any more. What `extract` worked out is left alone."""
    stated = {
        "section": passage.section,
        "kind": passage.kind or memory.kind,
        "tags": passage.tags or memory.tags,
        "importance": memory.importance if passage.importance is None else passage.importance,
        **passage.more,
    }
    fields = {name: value for name, value in stated.items() if getattr(memory, name) != value}
    if memory.deleted_at is not None:
        return Change(memory.id, "restore", {**fields, "deleted_at": None})
    return Change(memory.id, "reread", fields) if fields else None


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
    """A passage as the memory that it becomes, of no later date than now: a date ahead of time would outrank what is said today."""
    created = min(passage.created_at or options.now, options.now)
    memory = Memory(
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
    return memory._replace(**passage.more)


# Writing


def _take_over_kind(
    memory: Memory, passage: Passage, replaced: Sequence[str], store: Store
) -> Memory:
    """A statement of which nobody said what kind it is has that of the one it replaces, and its weight: what is decided anew stays a
    decision, for briefings and for `why`."""
    vague = passage.kind is None and memory.kind in ("general", "fact")
    for old in store.get(replaced[:1]) if vague and replaced else ():
        if old.kind in STATED:
            return memory._replace(kind=old.kind, importance=max(memory.importance, old.importance))
    return memory


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
        again = {one.content_hash for one in store.get(twins.values()) if one.superseded_by}
    return tuple(
        Entry(memory, own, options.unique and memory.content_hash not in again)
        for memory, own in new
    )


def fold_changes(batch: Batch) -> Batch:
    """The batch with what it changes of its own new memories written at once: what replaces or answers them came with them."""
    new = {entry.memory.id for entry in batch.add}
    fields: dict[str, dict[str, Any]] = {id: {} for id in new}
    later = [change for change in batch.change if change.action == REPEATED]
    for change in batch.change:
        if change.id in new and change not in later:
            fields[change.id].update(change.fields)
    return batch._replace(
        add=tuple(
            entry._replace(memory=entry.memory._replace(**fields[entry.memory.id]))
            for entry in batch.add
        ),
        change=tuple(change for change in batch.change if change.id not in new or change in later),
    )


def _tell_outcomes(
    read: Sequence[Read], memories: Sequence[Memory], found: Comparison, written: Iterator[Outcome]
) -> Iterator[Outcome]:
    """What became of each passage: of a new one what the comparison found, or else what the store says."""
    new = zip(memories, found.verdicts, strict=True)
    for one in read:
        if one.held:
            yield Outcome(one.held.memory.id, "forgotten" if one.is_forgotten else "kept")
            continue
        if one.refused:
            yield Outcome("", "refused")
            continue
        memory, verdict = next(new)
        if verdict.duplicate is None:
            outcome = next(written)
        else:
            known, similarity, _ = verdict.duplicate
            status, near = "near_duplicate", round(similarity, 4)
            if known.content_hash == memory.content_hash:
                status, near = "duplicate", 1.0
            outcome = Outcome(known.id, status, known.id, near)
        if outcome.status == "added" or verdict.duplicate is not None:
            outcome = outcome._replace(
                supersedes=verdict.supersedes,
                settles=verdict.settles,
                proposals=verdict.proposals,
                marks=verdict.marks,
                similar=verdict.similar.memory.id if verdict.similar else None,
            )
        yield outcome._replace(redactions=one.redactions)


# Vectors: through two levels of cache, so that the same text is never embedded twice for a model

PAGE = 64  # memories that are embedded anew in one write
HELD = 2048  # texts whose vectors a process keeps at hand

Vectors = tuple[list[Any], dict[str, Any]]  # of each text, and those made just now by hex hash


class Recent:
    """The first level: the vectors this process made or met last, by the hash of their text and their model."""

    def __init__(self) -> None:
        self.held: dict[tuple[bytes, str], Any] = {}
        self._lock = threading.Lock()

    def find(self, keys: Iterable[bytes], model: str) -> dict[bytes, Any]:
        """Those of the texts that are held. Each is asked for once: another thread may let go of it in between."""
        met = ((key, self.held.get((key, model))) for key in keys)
        return {key: vectors for key, vectors in met if vectors is not None}

    def keep(self, met: Mapping[tuple[bytes, str], Any]) -> None:
        with self._lock:
            self.held |= met
            for oldest in list(self.held)[:-HELD]:
                del self.held[oldest]


def embed(
    texts: Sequence[str | None], embedder: Embedder | None, recent: Recent, store: Store
) -> Vectors:
    """Vectors of every text, and those made just now, which the batch puts into the second level."""
    return start_embedding(texts, embedder, recent, store)()


def make_batch_parts(
    part: str, texts: Mapping[str, str], embedder: Embedder, recent: Recent, store: Store
) -> dict[str, Any]:
    """The parts of a batch that give memories (`vectors`) or topics (`span_vectors`) new vectors: id → text that they are made of."""
    vectors, fresh = embed(list(texts.values()), embedder, recent, store)
    return {
        part: dict(zip(texts, vectors, strict=True)),
        "made_of": texts,
        "cache": fresh,
        "model": embedder.model,
    }


def start_embedding(
    texts: Sequence[str | None],
    embedder: Embedder | None,
    recent: Recent,
    store: Store,
) -> Callable[[], Vectors]:
    """Looks into the caches and lets the model start on the rest in another thread; what comes back waits for it. Where there is no
    text, or no model, there are no vectors."""
    if embedder is None:
        return lambda: ([()] * len(texts), {})
    model = embedder.model
    keys = [None if text is None else hash_text(text) for text in texts]
    text_of = {hash_text(text): text for text in texts if text is not None}
    known = recent.find(text_of, model)
    known |= store.read_cache([key for key in text_of if key not in known], model)
    missing = [key for key in text_of if key not in known]
    wanted = [text_of[key] for key in missing]
    made = submit_ahead(_worker(), lambda: embedder.documents(wanted)) if missing else None

    def finish() -> Vectors:
        matrices = made.result() if made else ()
        fresh = dict(zip(missing, map(pool_windows, matrices), strict=True))
        known.update(fresh)
        recent.keep({(key, model): known[key] for key in text_of})
        return [known[key] if key else () for key in keys], {
            key.hex(): vectors for key, vectors in fresh.items()
        }

    return finish


@cache
def _worker() -> Executor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(2, thread_name_prefix="bethink-texts")


def pool_windows(matrix: Any) -> Any:
    """Windows of one text, each blended half and half with the text's mean.

    The best window then scores as half the best window and half the whole: a long text is found by a detail in it without
    winning merely for having many windows."""
    if len(matrix) == 1:
        return matrix
    import numpy as np

    mean = matrix.mean(axis=0)
    mean /= np.linalg.norm(mean) or 1.0
    return (matrix + mean) / 2


def reindex(
    store: Store,
    embedder: Embedder,
    recent: Recent,
    write: Callable[..., Any],
    full: bool,
    progress: Callable[[int, int], None] | None,
) -> int:
    """Embeds the memories and topics that have no vector of this model, and drops the vectors of others; with `full` everything derived is
    made anew. Returns how many memories it embedded.

    Page by page, each a write of its own, so it may be stopped at any moment and goes on where it was. What somebody changes
    while its old text is being embedded is left alone, and comes again if the change brought no vector."""
    if full:
        store.rebuild()
        store.drop_vectors()
    done, total = 0, store.count_unembedded(embedder.model)
    while page := store.list_unembedded(embedder.model, PAGE):
        texts = {memory.id: embedded_text(memory) for memory in page}
        write(**make_batch_parts("vectors", texts, embedder, recent, store))
        done += len(page)
        if progress:
            progress(done, total)
    while topics := store.list_unembedded_spans(embedder.model, PAGE):
        texts = {topic.id: topic_text(topic.name, topic.summary) for topic in topics}
        parts = make_batch_parts("span_vectors", texts, embedder, recent, store)
        # A topic has one, as when it was made.
        one_each = {id: vectors[:1] for id, vectors in parts["span_vectors"].items()}
        write(**parts | {"span_vectors": one_each})
    for model in store.models():
        if model != embedder.model:
            store.drop_vectors(model)
    return done
