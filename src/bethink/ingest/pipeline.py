"""Writing, the recipe: passages → redact → extract → embed → compare → Batch → Receipt.

Everything that becomes a memory comes through here: a note is one passage of one source, a document is many.
Nothing slow happens inside a transaction: the batch is complete before the store writes it.

When a source is read again, a passage with unchanged text keeps its memory, with its id, its votes and its history; only
its position is updated. A memory that a person forgot stays forgotten; one that was retired because its passage had gone comes back
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
from bethink.ingest.reconcile import REPEAT, REWORD, STATED_KINDS, holds_one_statement
from bethink.ingest.redact import redact, redact_value
from bethink.judge import Judge, asks, describe_place
from bethink.language.detect import is_english
from bethink.model import (
    NOTHING,
    Batch,
    Change,
    Entry,
    Memory,
    Outcome,
    Passage,
    Receipt,
    Relation,
    Source,
    StoredPassage,
)
from bethink.schema import check_bounds
from bethink.store.base import Store
from bethink.store.places import content_hash, embedded_text, topic_text
from bethink.text import hash_text, new_id

if TYPE_CHECKING:
    from concurrent.futures import Executor

Group = tuple[Source, Sequence[Passage]]


class Read(NamedTuple):
    """One passage after redaction, its position, and the number of redactions."""

    passage: Passage
    source: Source
    position: int
    redactions: int = 0
    refused: bool = False  # nothing was left of it
    stored: StoredPassage | None = None  # the memory that already has its text

    @property
    def is_fresh(self) -> bool:
        return not self.refused and self.stored is None

    @property
    def is_forgotten(self) -> bool:
        """Return True if a person or an agent hid the memory, rather than the source having lost it."""
        stored = self.stored
        return (
            stored is not None
            and stored.memory.deleted_at is not None
            and stored.action != "retire"
        )


def ingest(
    groups: Sequence[Group],
    options: WriteOptions,
    store: Store,
    embedder: Embedder | None,
    recent: Recent,
    replace_sources: bool = False,
    moved: Mapping[str, str] = NOTHING,
) -> Receipt:
    """Write the passages of one or more sources, all or none.

    With `replace_sources` they replace the earlier passages of each source, except unchanged ones; `moved` maps a new uri to the old one.
    """
    groups = [(source._replace(uri=redact(source.uri).text), group) for source, group in groups]
    read = _read(groups, options)
    if replace_sources:
        uris = {source.uri: moved.get(source.uri, source.uri) for source, _ in groups}
        stored = {uri: store.list_passages(options.scope, was) for uri, was in uris.items()}
        read = _match_stored(read, stored)
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
        _inherit_kind(memory, one.passage, verdict.supersedes, store)
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
    batch = embed_reworded(batch, memories, own, found)
    receipt = store.write(_keep_stored(batch, read))
    outcomes = _list_outcomes(read, memories, found, iter(receipt.outcomes))
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
    """Return the passages; each note of one statement gets the kind that the judge and its words suggest."""
    found = [one.passage for one in read]
    notes = [at for at, one in enumerate(read) if judge and _needs_kind(one)]
    texts = [found[at].content for at in notes]
    readings = judge.read([(describe_place("user"), text) for text in texts]) if judge else []
    for at, text, reading in zip(notes, texts, readings, strict=True):
        found[at] = found[at]._replace(kind=choose_kind(text, reading))
    return found


def _needs_kind(one: Read) -> bool:
    """Return True for a note of one statement whose kind is not stated."""
    text = one.passage.content
    return (
        one.source.type == "note"
        and one.passage.kind is None
        and holds_one_statement(text)
        and is_english(text)
        and not find_label(text)
        and not asks(text)
    )


def clean_passage(passage: Passage, longest: int) -> tuple[Passage, int]:
    """Return the passage without private parts and secrets, and their number. Refuse an empty result."""
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


def _match_stored(
    read: Sequence[Read], stored: Mapping[str, Sequence[StoredPassage]]
) -> list[Read]:
    """Match each passage with a memory of the same text: under the same heading first, then under any."""
    free: dict[tuple[str, str], list[StoredPassage]] = {}
    for uri, known in stored.items():
        for twin in known:
            free.setdefault((uri, twin.memory.content_hash), []).append(twin)
    found = list(read)
    for same_section in (True, False):
        for at, one in enumerate(found):
            twins = free.get((one.source.uri, content_hash(one.passage.content)), [])
            for twin in twins if one.is_fresh else ():
                if not same_section or twin.memory.section == one.passage.section:
                    twins.remove(twin)
                    found[at] = one._replace(stored=twin)
                    break
    return found


def _list_texts(fresh: Sequence[Read], resectioned: Sequence[Memory]) -> list[str | None]:
    """List the texts to embed: of new memories, then of those under another heading; None for no vector."""
    texts = [embedded_text(one.passage) if one.passage.embed else None for one in fresh]
    return texts + [
        None if "vector_index" in memory.metadata else embedded_text(memory)
        for memory in resectioned
    ]


def _find_resectioned(read: Sequence[Read]) -> list[Memory]:
    """Return the memories that are under another heading now: the heading is part of the embedded text."""
    return [
        one.stored.memory._replace(section=one.passage.section)
        for one in read
        if one.stored and not one.is_forgotten and one.stored.memory.section != one.passage.section
    ]


def _keep_stored(batch: Batch, read: Sequence[Read]) -> Batch:
    """Add the memories to keep, with their new positions and changes, to the batch."""
    live = [
        (one.stored.memory, passage, position if passage.position is None else passage.position)
        for one in read
        for passage, position in ((one.passage, one.position),)
        if one.stored and not one.is_forgotten
    ]
    changes = (_restate(memory, passage) for memory, passage, _ in live)
    return batch._replace(
        keep=tuple(one.stored.memory.id for one in read if one.stored),
        place=tuple(
            (memory.id, passage.lines, at)
            for memory, passage, at in live
            if (memory.lines, memory.position) != (passage.lines, at)
        ),
        change=(*batch.change, *filter(None, changes)),
    )


def _restate(memory: Memory, passage: Passage) -> Change | None:
    """Return the change of fields that a reader states and that differ. Extracted fields stay."""
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
    """Return the batch of the sources themselves: their locations, hashes and earlier passages."""
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
    """Turn a passage into a memory, dated no later than now: a future date would outrank the present."""
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


def _inherit_kind(
    memory: Memory, passage: Passage, replaced: Sequence[str], store: Store
) -> Memory:
    """Give a statement of unstated kind the kind and importance of the one it replaces.

    A decision made anew stays a decision, for briefings and for `why`.
    """
    vague = passage.kind is None and memory.kind in ("general", "fact")
    for old in store.get(replaced[:1]) if vague and replaced else ():
        if old.kind in STATED_KINDS:
            return memory._replace(kind=old.kind, importance=max(memory.importance, old.importance))
    return memory


def make_entries(
    memories: Sequence[Memory],
    vectors: Sequence[Any],
    found: Comparison,
    options: WriteOptions,
    store: Store,
) -> tuple[Entry, ...]:
    """Return the new memories as entries of a batch.

    A text that was stored before and has been replaced since is stored again, beside the replaced one.
    """
    new = [(memories[at], vectors[at]) for at in found.new]
    again: set[str] = set()
    if options.unique and new:
        twins = store.duplicates([memory.content_hash for memory, _ in new], options.scope)
        again = {one.content_hash for one in store.get(twins.values()) if one.superseded_by}
    return tuple(
        Entry(memory, own, options.unique and memory.content_hash not in again)
        for memory, own in new
    )


def embed_reworded(
    batch: Batch, memories: Sequence[Memory], vectors: Sequence[Any], found: Comparison
) -> Batch:
    """Give known memories that got the words of a new one its vectors as well."""
    reworded = {change.id for change in found.change if change.action == REWORD}
    made = {
        verdict.duplicate.memory.id: (own, embedded_text(memory))
        for memory, own, verdict in zip(memories, vectors, found.verdicts, strict=True)
        if verdict.duplicate and verdict.duplicate.memory.id in reworded and len(own)
    }
    return batch._replace(
        vectors={**batch.vectors, **{id: own for id, (own, _) in made.items()}},
        made_of={**batch.made_of, **{id: text for id, (_, text) in made.items()}},
    )


def fold_changes(batch: Batch) -> Batch:
    """Apply the changes of a batch to its own new memories: their successors and answers came with them."""
    new = {entry.memory.id for entry in batch.add}
    fields: dict[str, dict[str, Any]] = {id: {} for id in new}
    later = [change for change in batch.change if change.action in (REPEAT, REWORD)]
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


def _list_outcomes(
    read: Sequence[Read], memories: Sequence[Memory], found: Comparison, written: Iterator[Outcome]
) -> Iterator[Outcome]:
    """Yield the outcome of each passage: what the comparison found, or else what the store reports."""
    new = zip(memories, found.verdicts, strict=True)
    for one in read:
        if one.stored:
            yield Outcome(one.stored.memory.id, "forgotten" if one.is_forgotten else "kept")
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
            if any(one.id == known.id and one.action == REWORD for one in found.change):
                status = "reworded"
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

_PAGE = 64  # memories that are embedded anew in one write; a bound
RECENT_TEXTS = 2048  # texts whose vectors a process keeps at hand

Vectors = tuple[list[Any], dict[str, Any]]  # of each text, and those made just now by hex hash


class Recent:
    """First level: the vectors this process used last, by the hash of their text and their model."""

    def __init__(self) -> None:
        self.vectors: dict[tuple[bytes, str], Any] = {}
        self._lock = threading.Lock()

    def find(self, keys: Iterable[bytes], model: str) -> dict[bytes, Any]:
        """Return the vectors of known texts. Each is looked up once: another thread may drop it in between."""
        met = ((key, self.vectors.get((key, model))) for key in keys)
        return {key: vectors for key, vectors in met if vectors is not None}

    def keep(self, met: Mapping[tuple[bytes, str], Any]) -> None:
        with self._lock:
            self.vectors |= met
            for oldest in list(self.vectors)[:-RECENT_TEXTS]:
                del self.vectors[oldest]


def embed(
    texts: Sequence[str | None], embedder: Embedder | None, recent: Recent, store: Store
) -> Vectors:
    """Return the vectors of every text, and the new ones, which the batch puts into the second level."""
    return start_embedding(texts, embedder, recent, store)()


def make_batch_parts(
    part: str, texts: Mapping[str, str], embedder: Embedder, recent: Recent, store: Store
) -> dict[str, Any]:
    """Return the parts of a batch that give memories (`vectors`) or topics (`span_vectors`) new vectors.

    `texts` maps each id to the text that its vectors are made of.
    """
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
    """Look into the caches and let the model embed the rest in a thread; the result waits for it.

    Without a text or a model there are no vectors.
    """
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
    """Blend each window of a text half and half with the text's mean.

    The best window then scores as half the best window and half the whole: a long text is found by a detail in it without
    winning merely for having many windows.
    """
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
    keep: Embedder | None = None,
) -> int:
    """Embed memories and topics without a vector of this model; drop vectors of others but `keep`.

    With `full` everything derived is made anew. Returns the number of memories embedded. Each page is a separate write, so it can be
    interrupted and resumed. A memory that is changed while its old text is being embedded is left alone, and comes again if the change
    brought no vector.
    """
    if full:
        store.rebuild()
        store.drop_vectors()
    done, total = 0, store.count_unembedded(embedder.model)
    while page := store.list_unembedded(embedder.model, _PAGE):
        texts = {memory.id: embedded_text(memory) for memory in page}
        write(**make_batch_parts("vectors", texts, embedder, recent, store))
        done += len(page)
        if progress:
            progress(done, total)
    while topics := store.list_unembedded_spans(embedder.model, _PAGE):
        texts = {topic.id: topic_text(topic.name, topic.summary) for topic in topics}
        parts = make_batch_parts("span_vectors", texts, embedder, recent, store)
        # A topic has one, as when it was made.
        one_each = {id: vectors[:1] for id, vectors in parts["span_vectors"].items()}
        write(**parts | {"span_vectors": one_each})
    for model in store.models():
        if model not in (embedder.model, keep.model if keep else ""):
            store.drop_vectors(model)
    return done
