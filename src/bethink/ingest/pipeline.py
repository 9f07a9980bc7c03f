"""Writing, the recipe: passages → redact → extract → embed → neighbours → reconcile → Batch → Receipt.

Everything that becomes a memory comes through here: a note is one passage of one source, a document is many.
Nothing slow happens inside a transaction: the batch is complete before the store is asked to write it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from bethink.embed.base import Embedder
from bethink.errors import InvalidInput
from bethink.ingest.extract import extract, keywords
from bethink.ingest.keep import forgotten, keeping, matched, resectioned
from bethink.ingest.reconcile import (
    SUBJECT,
    Neighbour,
    Verdict,
    changed,
    effects,
    evidence,
    reconcile,
    weigh,
)
from bethink.ingest.redact import redact, redact_value
from bethink.ingest.vectors import Recent, begun
from bethink.store.base import Store
from bethink.store.writer import content_hash, vector_text
from bethink.text.ids import new_id
from bethink.types import (
    NOTHING,
    Batch,
    Entry,
    Filter,
    Held,
    Memory,
    Outcome,
    Passage,
    Receipt,
    Relation,
    Source,
)

NEIGHBOURS = 8


class Into(NamedTuple):
    """Where passages go and on whose word."""

    scope: str
    now: datetime
    actor: str = "user"
    trust: int = 3
    dedup: bool = True
    threshold: float = 0.9
    unique: bool = True  # told once per scope; passages of a source may repeat
    longest: int = 200_000
    allow_purged: bool = False
    lenient: bool = (
        False  # a passage that leaves nothing to remember is left out instead of refusing all
    )
    scopes: Mapping[str, tuple[str, str]] = NOTHING


Group = tuple[Source, Sequence[Passage]]


def ingest(
    groups: Sequence[Group],
    into: Into,
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
    places = [(source, position) for source, group in groups for position in range(len(group))]
    cleaned = [_cleaned(passage, into) for _, group in groups for passage in group]
    passages = [passage for passage, _ in cleaned]
    held = (
        {
            source.uri: store.held(into.scope, moved.get(source.uri, source.uri))
            for source, _ in groups
        }
        if replace_sources
        else {}
    )
    known = matched(groups, passages, held)
    fresh = [(at, passage) for at, passage in enumerate(passages) if passage and known[at] is None]

    turned = resectioned(passages, known)
    wanted = [
        (vector_text(passage.section, passage.content), passage.embed) for _, passage in fresh
    ]
    wanted += [
        (vector_text(memory.section, memory.content), "vector_index" not in memory.metadata)
        for memory in turned
    ]
    waiting = vectors_begun(
        wanted, embedder, recent, store, progress
    )  # the model works while the rules do
    memories = [
        remembered(extract(passage), places[at][0], into, places[at][1]) for at, passage in fresh
    ]
    if embedder and into.unique and fresh:
        store.ready(embedder.model, (into.scope,))
    vectors, cache = waiting()
    own, other = vectors[: len(memories)], vectors[len(memories) :]
    verdicts = (
        verdicts_of(memories, own, into, store, embedder)
        if into.unique
        else [Verdict()] * len(memories)
    )
    said = [passage.supersedes for _, passage in fresh]
    verdicts = weighed(memories, verdicts, said, store)

    batch = _batch(
        [source for source, _ in groups],
        memories,
        own,
        verdicts,
        cache,
        into,
        embedder,
        replace_sources,
        store,
    )
    named = [
        (memory.id, other)
        for memory, verdict, (_, passage) in zip(memories, verdicts, fresh, strict=True)
        if verdict.duplicate is None
        for other in passage.relates_to
    ]
    keep, place, change = keeping(passages, known, [position for _, position in places])
    batch = batch._replace(
        move=tuple((into.scope, old, new) for new, old in moved.items()),
        keep=keep,
        place=place,
        change=(*batch.change, *change),
        relate=(*batch.relate, *(Relation(id, other, "relates_to") for id, other in named)),
        access=tuple(other for _, other in named),
        vectors={
            memory.id: vectors
            for memory, vectors in zip(turned, other, strict=True)
            if len(vectors)
        },
        made_of={memory.id: vector_text(memory.section, memory.content) for memory in turned},
    )
    receipt = store.write(batch)
    written = iter(receipt.outcomes)
    made = {
        at: _outcome(verdict, memory, cleaned[at][1], written)
        for (at, _), verdict, memory in zip(fresh, verdicts, memories, strict=True)
    }
    outcomes = tuple(made[at] if at in made else _known(held) for at, held in enumerate(known))
    return Receipt(outcomes=outcomes, retired=receipt.retired)


def _cleaned(passage: Passage, into: Into) -> tuple[Passage | None, int]:
    try:
        return clean(passage, into.longest)
    except InvalidInput:
        if not into.lenient:
            raise
        return None, 0


def clean(passage: Passage, longest: int) -> tuple[Passage, int]:
    """The passage without private parts and secrets, and how many were taken out. Refuses what leaves nothing to remember."""
    if not passage.content.strip():
        raise InvalidInput("There is no text to remember.", 'bethink add "We deploy on Fridays"')
    if len(passage.content) > longest:
        size = len(passage.content)
        raise InvalidInput(
            f"The text is {size:,} characters long; one memory holds at most {longest:,}.",
            "Split it, raise `max_characters`, or import it as a document.",
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


def remembered(passage: Passage, source: Source, into: Into, position: int) -> Memory:
    created = passage.created_at or into.now
    return Memory(
        id=new_id(),
        scope=into.scope,
        kind=passage.kind or "general",
        content=passage.content,
        summary=passage.summary or "",
        created_at=created,
        updated_at=into.now,
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
        trust=into.trust,
    )


def vectors_of(
    memories: Sequence[tuple[Memory, bool]],
    embedder: Embedder | None,
    recent: Recent,
    store: Store,
    progress: Callable[[int], None] | None,
) -> tuple[list[Any], dict[str, Any]]:
    """The vectors of each memory that is to have some."""
    texts = [(vector_text(memory.section, memory.content), wanted) for memory, wanted in memories]
    return vectors_begun(texts, embedder, recent, store, progress)()


def vectors_begun(
    texts: Sequence[tuple[str, bool]],
    embedder: Embedder | None,
    recent: Recent,
    store: Store,
    progress: Callable[[int], None] | None,
) -> Callable[[], tuple[list[Any], dict[str, Any]]]:
    """Starts on the vectors of each text that is to have some; calling the result waits for them."""
    if embedder is None:
        if progress:
            progress(len(texts))
        return lambda: ([()] * len(texts), {})
    made = begun(
        [text for text, wanted in texts if wanted], embedder, recent, store.cached, progress
    )

    def finished() -> tuple[list[Any], dict[str, Any]]:
        found, fresh = made()
        each = iter(found)
        return [next(each) if wanted else () for _, wanted in texts], fresh

    return finished


def verdicts_of(
    memories: Sequence[Memory],
    vectors: Sequence[Any],
    into: Into,
    store: Store,
    embedder: Embedder | None,
) -> list[Verdict]:
    """Each memory against what is stored and against those before it in the same batch."""
    if embedder is None:
        return [Verdict()] * len(memories)
    filter = Filter(scopes=(into.scope,), now=into.now, include_quarantined=True)
    verdicts: list[Verdict] = []
    for at, (memory, own) in enumerate(zip(memories, vectors, strict=True)):
        neighbours = []
        if len(own):
            # Only what may be a duplicate, or may be replaced by a stated change, is worth reading.
            strange = embedder.unrelated
            bar = (
                into.threshold
                if changed(memory.content) is None
                else min(into.threshold, strange + SUBJECT * (1 - strange))
            )
            # Turns of conversations may stand among them.
            ranking = store.nearest(own[0], embedder.model, filter, 4 * NEIGHBOURS, bar)
            known = store.load([key for key, _ in ranking.items]) if ranking.items else {}
            neighbours = [
                Neighbour(known[key], min(1.0, similarity), strange)
                for key, similarity in ranking.items
                if key in known and known[key].deleted_at is None and not evidence(known[key])
            ][:NEIGHBOURS]
            neighbours += [
                Neighbour(earlier, float(own[0] @ other[0]), strange)
                for earlier, other, verdict in zip(
                    memories[:at], vectors[:at], verdicts, strict=True
                )
                if len(other) and verdict.duplicate is None
            ]
            neighbours.sort(key=lambda neighbour: -neighbour.similarity)
        verdicts.append(reconcile(memory, neighbours, into.threshold, into.dedup))
    return verdicts


def weighed(
    memories: Sequence[Memory],
    verdicts: Sequence[Verdict],
    said: Sequence[Sequence[str]],
    store: Store,
) -> list[Verdict]:
    """The verdicts after the rule of trust; `said` are the ids that each memory is said outright to replace."""
    ids = {id for told in said for id in told}
    ids |= {id for verdict in verdicts for id in verdict.supersedes}
    known = {memory.id: memory for memory in (*store.get(sorted(ids)), *memories)} if ids else {}
    return [
        weigh(memory, verdict, told, known)
        for memory, verdict, told in zip(memories, verdicts, said, strict=True)
    ]


def waiting(verdict: Verdict, memory: Memory, store: Store) -> list[Memory]:
    """What the known memory that a verdict found repeated was proposed to replace, if who repeats it is trusted more."""
    if verdict.duplicate is None or memory.trust <= verdict.duplicate.memory.trust:
        return []
    id = verdict.duplicate.memory.id
    proposed = [
        one.target for one in store.relations([id]) if (one.source, one.type) == (id, "may_replace")
    ]
    return [
        old for old in store.get(proposed) if old.superseded_by is None and old.deleted_at is None
    ]


def _batch(
    sources: Sequence[Source],
    memories: Sequence[Memory],
    vectors: Sequence[Any],
    verdicts: Sequence[Verdict],
    fresh: dict[str, Any],
    into: Into,
    embedder: Embedder | None,
    replace_sources: bool,
    store: Store,
) -> Batch:
    parts = [
        effects(memory, verdict, waiting(verdict, memory, store))
        for memory, verdict in zip(memories, verdicts, strict=True)
    ]
    new = [
        (memory, own, verdict)
        for memory, own, verdict in zip(memories, vectors, verdicts, strict=True)
        if verdict.duplicate is None
    ]
    return Batch(
        at=into.now,
        actor=into.actor,
        scopes=into.scopes,
        sources=tuple((into.scope, source) for source in sources if source.hash or replace_sources),
        retire=tuple((into.scope, source.uri) for source in sources) if replace_sources else (),
        add=tuple(Entry(memory, own, into.unique) for memory, own, _ in new),
        change=tuple(change for part in parts for change in part.change),
        relate=tuple(relation for part in parts for relation in part.relate),
        model=embedder.model if embedder else None,
        cache=fresh,
        allow_purged=into.allow_purged,
    )


def _known(held: Held | None) -> Outcome:
    if held is None:
        return Outcome("", "refused")
    return Outcome(held.memory.id, "forgotten" if forgotten(held) else "kept")


def _outcome(verdict: Verdict, memory: Memory, redactions: int, written: Any) -> Outcome:
    if verdict.duplicate is not None:
        known = verdict.duplicate
        exact = known.memory.content_hash == memory.content_hash
        return Outcome(
            known.memory.id,
            "duplicate" if exact else "near_duplicate",
            known.memory.id,
            1.0 if exact else round(known.similarity, 4),
            redactions=redactions,
        )
    outcome: Outcome = next(written)
    return outcome._replace(
        redactions=redactions,
        supersedes=verdict.supersedes if outcome.status == "added" else (),
        proposals=verdict.proposals if outcome.status == "added" else (),
    )
