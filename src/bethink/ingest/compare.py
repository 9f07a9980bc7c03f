"""Comparison of a new statement with the few known ones about its subject: find, weigh, decide.

Bounded work: at most `KNOWN` known statements for each new one, `MOST_PAIRS` pairs for the judge in one batch, and no text that is
longer than a statement. Nothing here writes, and nothing runs inside a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from bethink.embed.base import Embedder
from bethink.ingest.effects import (
    EXTENDS,
    Effect,
    Position,
    Side,
    choose_judged,
    collect_features,
    collect_words,
    find_rivals,
    weigh_effect,
)
from bethink.ingest.reconcile import (
    OPEN,
    STATED_KINDS,
    BatchParts,
    Neighbour,
    Verdict,
    apply_verdict,
    holds_one_statement,
    is_evidence,
    reconcile,
    take_headline,
)
from bethink.judge import Judge
from bethink.language.change import find_change
from bethink.language.waiting import TODO_LABEL
from bethink.model import NOTHING, STATEMENTS, Change, Filter, Memory, Relation
from bethink.store.base import Store

MOST_KNOWN = 12  # known statements that a new one is compared with
# Of them that only share a name with it, and that wait for an answer. By hand.
_BY_NAME, MOST_WAITING = 3, 4
# Nearness below which two statements are about something else: of 60 that replace another none is below .17. An answer need not
# resemble its question at all (half are below .16), so the nearest that wait are asked about in any case, and so are the few
# nearest of all, which may say it in another language (pairs of 2026-11).
_NEAR, _NEAREST = 0.15, 3
MOST_PAIRS = 512  # that the judge is asked about in one write: some seconds of one core
# Words and letters of what can be a statement. By hand: "a b" says nothing about anything.
FEWEST_WORDS, FEWEST_LETTERS = 2, 6
# Nearness from which a text that states a change is compared with a known one, where no judge is at hand. By hand.
SUBJECT = 0.25
SPOKEN_SOURCES = ("note", "transcript")  # sources in which one thing replies to another


class WriteOptions(NamedTuple):
    """Options of a write: scope, author, trust, and the treatment of known passages."""

    scope: str
    now: datetime
    actor: str = "user"
    trust: int = 3
    dedup: bool = True
    automatic: str = "full"  # what may happen to known memories: one of model.AUTOMATIC
    threshold: float = 0.9
    unique: bool = True  # stored once per scope; passages of a source may repeat
    longest: int = 200_000
    allow_purged: bool = False
    lenient: bool = (
        False  # a passage that is empty after redaction is left out instead of refusing all
    )
    scopes: Mapping[str, tuple[str, str]] = NOTHING
    personal: bool = False  # a user's wishes for any work go to the user's personal scope
    # Ids of what the same author stored in this session: they would say what replaces it. None if that is unknown.
    own: Collection[str] | None = None
    judge: Callable[[], Judge | None] = lambda: None  # opened when there is something to judge
    reader: Callable[[], Judge | None] = lambda: None  # and this when a conversation is read


class Comparison(NamedTuple):
    """The verdict on each new memory, and all that the verdicts change."""

    verdicts: list[Verdict]
    change: tuple[Change, ...] = ()
    relate: tuple[Relation, ...] = ()

    @property
    def new(self) -> list[int]:
        """Return the positions of memories that are not known already."""
        return [at for at, verdict in enumerate(self.verdicts) if verdict.duplicate is None]


def compare(
    memories: Sequence[Memory],
    vectors: Sequence[Any],
    options: WriteOptions,
    store: Store,
    embedder: Embedder | None,
    *,
    explicit: Sequence[Sequence[str]] = (),
    tellings: Sequence[int] = (),
) -> Comparison:
    """Compare each memory with those stored and with those before it in the batch.

    Memories of the same telling are not compared: their author knew of each. `explicit` are the ids that each is stated to replace.
    """
    judging = embedder and options.automatic != "off" and any(map(is_one_statement, memories))
    judge = options.judge() if judging else None
    near = [
        _neighbours(memory, own, options, store, embedder, judge is not None)
        for memory, own in zip(memories, vectors, strict=True)
    ]
    if embedder:
        tellings = tellings or range(len(memories))
        near = list(_add_earlier(memories, vectors, near, options, embedder, tellings))
    last = _find_last(memories, options, store) if judge else [None] * len(memories)
    judged = _ask(judge, memories, near, last) if judge else [{}] * len(memories)
    verdicts = _judge_each(memories, near, judged, last, options, store, explicit)
    parts = [
        apply_verdict(memory, verdict, _load_proposed(verdict, memory, store))
        for memory, verdict in zip(memories, verdicts, strict=True)
    ]
    for at, memory in enumerate(memories):
        if verdicts[at].duplicate is None:
            parts += _apply_later(memory, near[at], judged[at], options.automatic)
    return Comparison(
        verdicts,
        tuple(change for part in parts for change in part.change),
        tuple(dict.fromkeys(relation for part in parts for relation in part.relate)),
    )


def _judge_each(
    memories: Sequence[Memory],
    near: Sequence[Sequence[Neighbour]],
    judged: Sequence[Mapping[str, Effect]],
    last: Sequence[str | None],
    options: WriteOptions,
    store: Store,
    explicit: Sequence[Sequence[str]],
) -> list[Verdict]:
    """Return the verdict on each memory, without neighbours that an earlier one repeats or replaces."""
    known = {one.id: one for one in store.get(sorted({id for ids in explicit for id in ids}))}
    verbatim = _find_verbatim(memories, options, store) if known else {}
    threshold = options.threshold if options.dedup and options.unique else None
    own = () if options.own is None else {*options.own, *(memory.id for memory in memories)}
    verdicts: list[Verdict] = []
    gone: set[str] = set()
    for at, memory in enumerate(memories):
        # A stated successor of a memory is near to it by nature, and no duplicate of it.
        replaced = [known[id] for id in explicit[at] if id in known] if known else []
        verdict = reconcile(
            memory,
            [one for one in near[at] if one.memory.id not in gone],
            threshold=None if replaced else threshold,
            effects=judged[at],
            explicit=replaced,
            last=last[at],
            automatic=options.automatic,
            own=own,
        )
        if replaced and memory.content_hash in verbatim:
            # A text that is stored already now replaces something.
            verdict = verdict._replace(duplicate=verbatim[memory.content_hash])
        verdicts.append(verdict)
        gone |= {memory.id} if verdict.duplicate else set(verdict.supersedes)
    return verdicts


def _apply_later(
    memory: Memory, near: Sequence[Neighbour], judged: Mapping[str, Effect], automatic: str
) -> Iterator[BatchParts]:
    """Yield the effects of known later statements on an earlier one, which was read after them."""
    for one in near:
        later = one.memory
        if later.created_at > memory.created_at and later.id in judged:
            verdict = reconcile(
                later,
                [one._replace(memory=memory)],
                threshold=None,
                effects={memory.id: judged[later.id]},
                automatic=automatic,
            )
            yield apply_verdict(later, verdict)
            if verdict.supersedes:
                return


def _find_verbatim(
    memories: Sequence[Memory], options: WriteOptions, store: Store
) -> dict[str, Neighbour]:
    """Return the known memories that have one of the texts word for word and are still valid."""
    twins = store.duplicates([memory.content_hash for memory in memories], options.scope)
    known = store.get(twins.values())
    return {one.content_hash: Neighbour(one, 1.0) for one in known if not one.superseded_by}


def _load_proposed(verdict: Verdict, memory: Memory, store: Store) -> list[Memory]:
    """Return the memories that a repeated proposal would replace, if its repetition is trusted more."""
    if verdict.duplicate is None or memory.trust <= verdict.duplicate.memory.trust:
        return []
    id = verdict.duplicate.memory.id
    proposed = [
        one.target for one in store.relations([id]) if (one.source, one.type) == (id, "may_replace")
    ]
    return [
        old for old in store.get(proposed) if old.superseded_by is None and old.deleted_at is None
    ]


# The few about the same subject


def _neighbours(
    memory: Memory,
    own: Sequence[Collection[float]],
    options: WriteOptions,
    store: Store,
    embedder: Embedder | None,
    judging: bool,
) -> list[Neighbour]:
    if embedder is None or not len(own):
        return []
    filter = Filter(scopes=(options.scope,), now=options.now, include_quarantined=True)
    strange = embedder.unrelated
    if judging and is_one_statement(memory):
        stated = filter._replace(kinds=STATEMENTS)
        found = nearest(own[0], stated, store, embedder, MOST_KNOWN)
        waiting = filter._replace(kinds=OPEN, answered=False)
        more = nearest(own[0], waiting, store, embedder, MOST_WAITING)
        more += _nearest_by_name(memory, own[0], stated, store, embedder)
        there = {one.memory.id for one in found}
        fresh = {one.memory.id: one for one in more if one.memory.id not in there}
        return [*found[: MOST_KNOWN - len(fresh)], *fresh.values()]
    if not options.unique:
        return []
    # Only what may be a duplicate, or may be replaced by a stated change, is worth reading. Turns may be among them.
    bar = options.threshold
    if find_change(take_headline(memory.content)) is not None:
        bar = min(options.threshold, strange + SUBJECT * (1 - strange))
    return nearest(own[0], filter, store, embedder, 4 * MOST_KNOWN, bar)[:MOST_KNOWN]


def nearest(
    vector: Collection[float],
    filter: Filter,
    store: Store,
    embedder: Embedder,
    number: int,
    least: float = -1.0,
) -> list[Neighbour]:
    """Return the memories nearest to a vector, of at least some cosine, except turns of conversations."""
    found = store.nearest(vector, embedder.model, filter, number)
    return _load([item for item in found if item[1] >= least], store, embedder)


def _load(items: Sequence[tuple[int, float]], store: Store, embedder: Embedder) -> list[Neighbour]:
    known = store.load([key for key, _ in items]) if items else {}
    return [
        Neighbour(known[key], min(1.0, similarity), embedder.unrelated)
        for key, similarity in items
        if key in known and known[key].deleted_at is None and not is_evidence(known[key])
    ]


def _nearest_by_name(
    memory: Memory, vector: Collection[float], filter: Filter, store: Store, embedder: Embedder
) -> list[Neighbour]:
    """Return a few memories that name the same things."""
    if not memory.entities:
        return []
    names = [entity.name for entity in memory.entities][:8]
    keys = [key for key, _ in store.by_entity(names, filter, _BY_NAME)]
    cosines = store.cosines(keys, vector, embedder.model, filter.scopes)[0] if keys else {}
    return _load(list(cosines.items()), store, embedder)


def _add_earlier(
    memories: Sequence[Memory],
    vectors: Sequence[Any],
    near: Sequence[Sequence[Neighbour]],
    options: WriteOptions,
    embedder: Embedder,
    tellings: Sequence[int],
) -> Iterator[list[Neighbour]]:
    """Yield the neighbours of each memory, with those before it from other tellings, nearest first."""
    embedded = [at for at, own in enumerate(vectors) if len(own)]
    if len(embedded) < 2:
        yield from map(list, near)
        return
    import numpy as np

    known = np.stack([vectors[at][0] for at in embedded])
    earlier = 0  # of the embedded ones, those before this one
    for at, own in enumerate(vectors):
        found = list(near[at])
        if len(own):
            if earlier and (found or options.unique):
                cosines = known[:earlier] @ own[0]
                first = np.argsort(-cosines, kind="stable")[: 4 * MOST_KNOWN].tolist()
                found += [
                    Neighbour(memories[embedded[place]], float(cosines[place]), embedder.unrelated)
                    for place in first
                    if tellings[embedded[place]] != tellings[at]
                ]
                found = sorted(found, key=lambda one: -one.similarity)[: 4 * MOST_KNOWN]
            earlier += 1
        yield found


# The judge


def is_one_statement(memory: Memory) -> bool:
    """Return True if it can be one statement. A long text holds many, a single word none."""
    return (
        memory.kind in STATEMENTS
        and holds_one_statement(memory.content)
        and len(memory.content.split()) >= FEWEST_WORDS
        and sum(map(str.isalnum, memory.content)) >= FEWEST_LETTERS
        and (memory.source_type in SPOKEN_SOURCES or memory.kind in STATED_KINDS)
    )


def _find_last(memories: Sequence[Memory], options: WriteOptions, store: Store) -> list[str | None]:
    """Return for each spoken statement the id of the one before it, outside of its turn, else None.

    A reply need not name what it replies to.
    """
    if not any(memory.source_type in SPOKEN_SOURCES for memory in memories):
        return [None] * len(memories)
    wanted = Filter(scopes=(options.scope,), now=options.now, kinds=STATEMENTS)
    newest = store.list(wanted, 1)
    before = newest[0].id if newest else None
    found: list[str | None] = []
    for memory, last in zip(memories, (None, *memories), strict=False):
        if last and (memory.lines is None or memory.lines != last.lines):
            before = last.id
        found.append(before if memory.source_type in SPOKEN_SOURCES else None)
    return found


def _ask(
    judge: Judge,
    memories: Sequence[Memory],
    near: Sequence[Sequence[Neighbour]],
    last: Sequence[str | None],
) -> list[dict[str, Effect]]:
    """Return the effects of each new memory on its neighbours, by their ids. The nearest are judged first."""
    known = [
        _same_subject(memory, near[at])[:MOST_KNOWN] if is_one_statement(memory) else []
        for at, memory in enumerate(memories)
    ]
    wanted = [(number, at) for at, found in enumerate(known) for number in range(len(found))]
    for _, at in sorted(wanted)[MOST_PAIRS:]:
        known[at].pop()
    return [
        weigh_neighbours(judge, memory, found, before) if found else {}
        for memory, found, before in zip(memories, known, last, strict=True)
    ]


def weigh_neighbours(
    judge: Judge, memory: Memory, near: Sequence[Neighbour], last: str | None = None
) -> dict[str, Effect]:
    """Return the effects between a memory and its neighbours, later on earlier, by the neighbour's id.

    A neighbour that the judge need not read is left out: it has none.
    """
    pairs = [sorted((one.memory, memory), key=lambda each: each.created_at) for one in near]
    sides = [(_make_side(old), _make_side(new)) for old, new in pairs]
    positions = find_positions(near, last)
    words = [
        collect_words(old, new, position)
        for (old, new), position in zip(sides, positions, strict=True)
    ]
    chosen = choose_judged(words)
    judged = judge.relate([(sides[at][0].text, sides[at][1].text) for at in chosen])
    return {
        near[at].memory.id: {
            **weigh_effect(collect_features(words[at], judgement, rival)),
            EXTENDS: judgement.probabilities["refines"],
        }
        for at, judgement, rival in zip(chosen, judged, find_rivals(judged), strict=True)
    }


def _make_side(memory: Memory) -> Side:
    names = frozenset(entity.name for entity in memory.entities)
    return Side(leave_label_out(memory), memory.kind, names)


def leave_label_out(memory: Memory) -> str:
    """Return a to-do without its label: reports are compared with the work itself."""
    return TODO_LABEL.sub("", memory.content) if memory.kind == "todo" else memory.content


def find_positions(near: Sequence[Neighbour], last: str | None = None) -> list[Position]:
    """Return the position of each neighbour among all; `last` is the statement before the new one."""
    nearest = [*sorted((one.nearness for one in near), reverse=True), 0.0]
    return [
        Position(
            one.nearness,
            one.nearness - nearest[one.nearness == nearest[0]],
            one.memory.id == last,
        )
        for one in near
    ]


def _same_subject(new: Memory, near: Sequence[Neighbour]) -> list[Neighbour]:
    """Return the neighbours that a statement may be about."""
    return [
        one
        for rank, one in enumerate(near)
        if is_one_statement(one.memory)
        and (
            rank < _NEAREST
            or one.nearness >= _NEAR
            or (one.memory.kind in OPEN and not one.memory.answered)
            or not set(new.entities).isdisjoint(one.memory.entities)
        )
    ]
