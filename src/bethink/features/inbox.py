"""What somebody should decide: statements that say the same or disagree, what is hardly believed, open questions, what could be
a rule. One queue for each, and for each item a few things to do, all of which can be undone.

Pairs are looked for from the newest statement backwards, for as long as there is time; the place where that ended is told, and
the next look goes on from there. So an inbox opens at once however much there is. What was decided is kept in the memories
themselves, as relations, history and a mark in their metadata: nothing is asked twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from bethink.api import Bethink
from bethink.errors import InvalidInput
from bethink.features import promotion, tending
from bethink.features.tending import COMPARED, Pair
from bethink.ingest.reconcile import BELIEVED
from bethink.text.checks import check_choice
from bethink.types import TRUST, Batch, Change, Filter, Memory

QUEUES = ("contradictions", "duplicates", "doubtful", "questions", "promotions")
PAIRS = ("contradictions", "duplicates")
SECONDS = 0.06  # for looking at pairs: a few searches' worth
AT_ONCE = 8  # statements that are read, and if need be embedded, together
NEAREST = 24  # that a statement is compared with: turns and passages stand among them
KEPT = "looked_at"  # in the metadata of a memory: the queues that it was taken out of as it is


class Item(NamedTuple):
    """One thing to decide about: a memory, or two of which the first would be kept."""

    queue: str
    memories: tuple[Memory, ...]
    reason: str


class Queue(NamedTuple):
    items: tuple[Item, ...]
    looked: int  # statements that were looked at
    next: int | None = None  # where to go on, if not everything was looked at


class Act(NamedTuple):
    """Something that can be done with an item, and what takes it back."""

    queues: tuple[str, ...]
    label: str  # on a button
    key: str  # that does it
    done: str  # what is said afterwards
    undo: str  # the name of the act that takes it back
    run: Callable[..., str | None]  # may name another act that takes it back
    of: int = 1  # memories that it is about


class Done(NamedTuple):
    ids: tuple[str, ...]
    said: str
    undo: str


def look(
    memory: Bethink, queue: str, limit: int = 20, start: int = 0, seconds: float | None = None
) -> Queue:
    """The items of a queue, from the statement number `start` on."""
    check_choice("queue", queue, QUEUES)
    if queue in PAIRS:
        return _pairs(memory, queue, limit, start, SECONDS if seconds is None else seconds)
    found = list(_singles(memory, queue, limit + 1, start))
    items = tuple(Item(queue, (one,), reason) for one, reason in found[:limit])
    return Queue(items, start + len(items), start + limit if len(found) > limit else None)


def _singles(memory: Bethink, queue: str, limit: int, start: int) -> Iterator[tuple[Memory, str]]:
    if queue == "promotions":
        for one, reason in promotion.candidates(memory, start + limit + 100)[start:]:
            if queue not in _kept(one):
                yield one, reason
        return
    for one in memory.list(filter=_wanted(memory, queue), limit=limit + 100, offset=start):
        if queue not in _kept(one):
            yield one, _why(queue, one)


def _kept(one: Memory) -> set[str]:
    """The queues that somebody took a memory out of. Metadata may come from elsewhere, and hold anything."""
    found = one.metadata.get(KEPT)
    return (
        {name for name in found if isinstance(name, str)}
        if isinstance(found, list | tuple)
        else set()
    )


def _wanted(memory: Bethink, queue: str) -> Filter:
    if queue == "questions":
        return memory.filter(kinds=("question", "problem"), answered=False)
    return memory.filter(kinds=COMPARED, max_trust=TRUST["import"], include_quarantined=True)


def _why(queue: str, one: Memory) -> str:
    if queue == "questions":
        return "not answered yet" if one.kind == "question" else "not solved yet"
    return (
        "quarantined: no search shows it"
        if one.trust == TRUST["quarantined"]
        else f"on nobody's word: read from {one.source}"
    )


# Pairs


def _pairs(memory: Bethink, queue: str, limit: int, start: int, seconds: float) -> Queue:
    find = tending.twins if queue == "duplicates" else tending.opposites
    seen = memory.filter(kinds=COMPARED)
    # Asked without kinds, the nearest are found among all vectors at once, which is quicker by far.
    near_by = Filter(scopes=memory.scopes, now=memory.clock())
    until = time.thread_time() + seconds  # of work, so that a busy machine looks at no less
    found: dict[tuple[str, ...], Pair] = {}
    done = False
    while not done and (page := memory.list(filter=seen, limit=AT_ONCE, offset=start)):
        for one, near in tending.neighbourhoods(memory, page, near_by, NEAREST, quick=True):
            start += 1
            for pair in find(
                memory, one, [neighbour for neighbour in near if neighbour.memory.kind in COMPARED]
            ):
                if not (queue == "contradictions" and _settled(memory, pair)):
                    found.setdefault(tuple(sorted((pair.keep.id, pair.other.id))), pair)
            if len(found) >= limit or time.thread_time() > until:
                done = True
                break
    items = [Item(queue, (pair.keep, pair.other), _said(pair)) for pair in found.values()]
    more = done and bool(memory.list(filter=seen, limit=1, offset=start))
    return Queue(tuple(items), start, start if more else None)


def _settled(memory: Bethink, pair: Pair) -> bool:
    """Whether somebody said how the two stand to each other, other than that they disagree."""
    ends = {pair.keep.id, pair.other.id}
    return any(
        {one.source, one.target} == ends and one.type not in tending.DISPUTES
        for one in memory.store.relations([pair.keep.id])
    )


def _said(pair: Pair) -> str:
    known = pair.reason in (tending.MARKED, tending.PROPOSED)
    return pair.reason if known else f"{pair.reason} ({pair.similarity:.2f})"


# Acts


def act(memory: Bethink, name: str, ids: Sequence[str]) -> Done:
    """Does something with an item, or takes it back."""
    chosen = ACTS[check_choice("act", name, tuple(ACTS))]
    full = tuple(memory.resolve(id) for id in ids)
    if len(full) != chosen.of:
        wanted = "one memory" if chosen.of == 1 else "two memories"
        raise InvalidInput(
            f"'{name}' is for {wanted}, and {len(full)} were given.", "Give the ids of one item."
        )
    return Done(full, chosen.done, chosen.run(memory, *full) or chosen.undo)


def _trust(memory: Bethink, id: str) -> None:
    memory.store.write(
        Batch(
            at=memory.clock(),
            actor=memory.actor,
            change=(Change(id, BELIEVED, {"trust": memory.trust}),),
        )
    )


def _distrust(memory: Bethink, id: str) -> None:
    before = [event.before.get("trust") for event in memory.history(id) if event.action == BELIEVED]
    trust = before[-1] if before and isinstance(before[-1], int) else TRUST["import"]
    memory.store.write(
        Batch(
            at=memory.clock(), actor=memory.actor, change=(Change(id, "doubt", {"trust": trust}),)
        )
    )


def _keep(queue: str) -> Callable[[Bethink, str], None]:
    def keep(memory: Bethink, id: str) -> None:
        one = memory.one(id)
        memory.update(id, metadata={**one.metadata, KEPT: sorted({*_kept(one), queue})})

    return keep


def _ask_again(queue: str) -> Callable[[Bethink, str], None]:
    def ask_again(memory: Bethink, id: str) -> None:
        one = memory.one(id)
        left = sorted(_kept(one) - {queue})
        others = {name: value for name, value in one.metadata.items() if name != KEPT}
        memory.update(id, metadata={**others, KEPT: left} if left else others)

    return ask_again


def _both(memory: Bethink, one: str, other: str) -> str:
    marked = [
        found
        for found in memory.relations(one)
        if {found.source, found.target} == {one, other} and found.type in tending.DISPUTES
    ]
    for found in marked:
        memory.unlink(found.source, found.target, found.type)
    memory.link(one, other, "relates_to")
    return "undo-both-marked" if marked else "undo-apart"


def _not_both(memory: Bethink, one: str, other: str) -> None:
    memory.unlink(one, other, "relates_to")
    memory.link(one, other, "contradicts")


def _first(memory: Bethink, one: str, other: str) -> None:
    memory.link(one, other, "supersedes")


def _undo_first(memory: Bethink, one: str, other: str) -> None:
    memory.unlink(one, other, "supersedes")


def _second(memory: Bethink, one: str, other: str) -> None:
    memory.link(other, one, "supersedes")


def _undo_second(memory: Bethink, one: str, other: str) -> None:
    memory.unlink(other, one, "supersedes")


def _apart(memory: Bethink, one: str, other: str) -> None:
    memory.link(one, other, "relates_to")


def _not_apart(memory: Bethink, one: str, other: str) -> None:
    memory.unlink(one, other, "relates_to")


def _forget(memory: Bethink, id: str) -> None:
    memory.forget(id)


def _restore(memory: Bethink, id: str) -> None:
    memory.restore(id)


def _answer(memory: Bethink, id: str) -> None:
    memory.update(id, answered=True)


def _reopen(memory: Bethink, id: str) -> None:
    memory.update(id, answered=False)


def _promote(memory: Bethink, id: str) -> None:
    promotion.promote(memory, id)


def _demote(memory: Bethink, id: str) -> None:
    promotion.demote(memory, id)


ONE = ("doubtful", "questions", "promotions")
ACTS: Mapping[str, Act] = {
    "first": Act(
        PAIRS,
        "Keep the first",
        "1",
        "The first stays, the second is replaced by it.",
        "undo-first",
        _first,
        2,
    ),
    "second": Act(
        PAIRS,
        "Keep the second",
        "2",
        "The second stays, the first is replaced by it.",
        "undo-second",
        _second,
        2,
    ),
    "apart": Act(
        ("duplicates",),
        "Keep both",
        "b",
        "Both stay, and are not compared again.",
        "undo-apart",
        _apart,
        2,
    ),
    "both": Act(
        ("contradictions",),
        "Both hold",
        "b",
        "Both hold, and are not compared again.",
        "undo-apart",
        _both,
        2,
    ),
    "trust": Act(
        ("doubtful",),
        "Believe it",
        "t",
        "It counts as your word from now on.",
        "undo-trust",
        _trust,
    ),
    "keep-doubtful": Act(
        ("doubtful",),
        "Leave it",
        "l",
        "It stays as it is.",
        "undo-keep-doubtful",
        _keep("doubtful"),
    ),
    "answered": Act(
        ("questions",), "Settled", "a", "It counts as settled.", "undo-answered", _answer
    ),
    "keep-questions": Act(
        ("questions",),
        "Still open",
        "l",
        "It stays open and is not asked again here.",
        "undo-keep-questions",
        _keep("questions"),
    ),
    "promote": Act(
        ("promotions",),
        "Make it a rule",
        "p",
        "It is a rule now that agents read at every start.",
        "undo-promote",
        _promote,
    ),
    "keep-promotions": Act(
        ("promotions",),
        "Not a rule",
        "l",
        "It stays a memory.",
        "undo-keep-promotions",
        _keep("promotions"),
    ),
    "forget": Act(
        ONE, "Forget", "f", "Forgotten: no search finds it any more.", "undo-forget", _forget
    ),
    "undo-first": Act((), "", "", "Both are there again.", "first", _undo_first, 2),
    "undo-second": Act((), "", "", "Both are there again.", "second", _undo_second, 2),
    "undo-apart": Act((), "", "", "They are compared again.", "apart", _not_apart, 2),
    "undo-both-marked": Act((), "", "", "They contradict each other again.", "both", _not_both, 2),
    "undo-trust": Act((), "", "", "It is believed no more than before.", "trust", _distrust),
    "undo-keep-doubtful": Act(
        (), "", "", "It is asked about again.", "keep-doubtful", _ask_again("doubtful")
    ),
    "undo-answered": Act((), "", "", "It is open again.", "answered", _reopen),
    "undo-keep-questions": Act(
        (), "", "", "It is asked about again.", "keep-questions", _ask_again("questions")
    ),
    "undo-promote": Act((), "", "", "It is no rule any more.", "promote", _demote),
    "undo-keep-promotions": Act(
        (), "", "", "It is asked about again.", "keep-promotions", _ask_again("promotions")
    ),
    "undo-forget": Act((), "", "", "Brought back.", "forget", _restore),
}
