"""What somebody should decide: statements that say the same or disagree, what is hardly believed, open questions, what could be
a rule. One queue for each, and for each item a few things to do, all of which can be undone.

Pairs are looked for from the newest statement backwards, for as long as there is time; the place where that ended is told, and
the next look goes on from there. So an inbox opens at once however much there is. What was decided is kept in the memories
themselves, as relations, history and a mark in their metadata: nothing is asked twice.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from bethink import consent
from bethink.api import Bethink
from bethink.consent import Phrase
from bethink.errors import InvalidInput, NeedsPerson
from bethink.features import promotion, tending
from bethink.features.tending import COMPARED, Pair
from bethink.ingest.reconcile import BELIEVED, OPEN
from bethink.model import (
    PERSONAL,
    TRUST,
    Change,
    Filter,
    Forgotten,
    Memory,
    fields_of,
    make_passage,
)
from bethink.recall.shape import citation
from bethink.store.transfer import split_pages
from bethink.text import check_choice

QUEUES = tuple("contradictions duplicates doubtful questions preferences promotions".split())
PAIRS = ("contradictions", "duplicates")
SECONDS = 0.06  # for looking at pairs: a few searches' worth
MOST_COUNTED = 99
AT_ONCE = 8  # statements that are read, and if need be embedded, together
NEAREST = 24  # that a statement is compared with: turns and passages stand among them
# Fields that a memory keeps when it is bound to one project. Its metadata describe how the personal one was read.
BOUND = [name for name, info in fields_of(Memory).items() if info.addable and name != "metadata"]
FILTERS: Mapping[str, Mapping[str, Any]] = {
    "questions": {"kinds": OPEN, "answered": False},
    "preferences": {"kinds": ("preference",), "scopes": (PERSONAL,), "transcribed": True},
    "doubtful": {"kinds": COMPARED, "max_trust": TRUST["import"], "include_quarantined": True},
}
KEPT = "looked_at"  # in the metadata of a memory: the queues that it was taken out of as it is


class Item(NamedTuple):
    """One thing to decide about: a memory, or two of which the first would be kept."""

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
    run: Callable[..., object]
    of: int  # memories that it is about
    undo: str  # the name of the act that takes it back


class Done(NamedTuple):
    ids: tuple[str, ...]
    said: str
    undo: str


def list_queue(
    memory: Bethink, queue: str, limit: int = 20, start: int = 0, seconds: float = SECONDS
) -> Queue:
    """The items of a queue, from the statement number `start` on."""
    check_choice("queue", queue, QUEUES)
    if queue in PAIRS:
        return _pairs(memory, queue, limit, start, seconds)
    found = list(_singles(memory, queue, limit + 1, start))
    items = tuple(Item((one,), reason) for one, reason in found[:limit])
    return Queue(items, start + len(items), start + limit if len(found) > limit else None)


def count_queues(memory: Bethink) -> dict[str, dict[str, int]]:
    """What waits in each queue: of single memories up to a hundred, of pairs those that a moment finds; and whether there may be more."""
    found = {name: list_queue(memory, name, MOST_COUNTED, 0, SECONDS / 2) for name in QUEUES}
    return {
        name: {"number": len(queue.items), "more": queue.next is not None}
        for name, queue in found.items()
    }


def _singles(memory: Bethink, queue: str, limit: int, start: int) -> Iterator[tuple[Memory, str]]:
    most, ids = start + limit + 100, set[str]()
    if queue == "preferences" and PERSONAL not in memory.scopes:
        return
    if queue == "promotions":
        found = promotion.candidates(memory, most)
    else:
        listed = memory.list(filter=memory.filter(**FILTERS[queue]), limit=most)
        found = [(one, _why(queue, one)) for one in listed]
        if queue == "doubtful":
            requested = _find_requested(memory)
            ids = {one.id for one, _ in requested}
            found = [*requested, *(item for item in found if item[0].id not in ids)]
    # A request of an agent waits here even if the memory was taken out of the queue before.
    yield from (
        (one, reason)
        for one, reason in found[start:]
        if one.id in ids or queue not in _read_kept(one)
    )


def _find_requested(memory: Bethink) -> list[tuple[Memory, str]]:
    """The memories of this project that an agent asks to forget or purge, each with the reason to decide."""
    requests = {one.id: one for one in consent.list_requests(memory.store)}
    return [
        (one, f"an agent asks to {requests[one.id].action} it")
        for one in memory.store.get(sorted(requests))
        if one.scope in memory.scopes and one.deleted_at is None
    ]


def _read_kept(one: Memory) -> set[str]:
    """The queues that somebody took a memory out of. Metadata may come from elsewhere, and hold anything."""
    found = one.metadata.get(KEPT)
    return set(map(str, found)) if isinstance(found, list | tuple) else set()


def _why(queue: str, one: Memory) -> str:
    if queue == "questions":
        return "still open"
    if queue == "preferences":
        return f"applies in every project; from a conversation: {citation(one)}"
    if one.trust == TRUST["quarantined"]:
        return "quarantined: searches do not show it"
    return f"not confirmed by anyone: read from {one.source}"


# Pairs


def _pairs(memory: Bethink, queue: str, limit: int, start: int, seconds: float) -> Queue:
    find = tending.find_twins if queue == "duplicates" else tending.find_opposites
    seen = memory.filter(kinds=COMPARED)
    # Asked without kinds, the nearest are found among all vectors at once, which is quicker by far.
    near_by = Filter(scopes=memory.scopes, now=memory.clock())
    until = time.thread_time() + seconds  # of work, so that a busy machine looks at no less
    found: dict[tuple[str, ...], Pair] = {}
    done = False
    while not done and (page := memory.list(filter=seen, limit=AT_ONCE, offset=start)):
        for around in tending.survey(memory, page, near_by, NEAREST, quick=True):
            start += 1
            for pair in find(memory, around):
                other = pair.other if pair.keep == around.memory else pair.keep
                types = around.related.get(other.id, set())
                if types.issubset(
                    tending.DISPUTES
                ):  # nobody said how else they stand to each other
                    found.setdefault(tuple(sorted((pair.keep.id, pair.other.id))), pair)
            if len(found) >= limit or time.thread_time() > until:
                done = True
                break
    items = [Item(pair[:2], pair.reason) for pair in found.values()]
    # Of two that say the same the newer first: the older one is what went out of date.
    if queue == "duplicates":
        newest = partial(sorted, key=attrgetter("created_at"), reverse=True)
        items = [item._replace(memories=tuple(newest(item.memories))) for item in items]
    more = done and bool(memory.list(filter=seen, limit=1, offset=start))
    return Queue(tuple(items), start, start if more else None)


# Acts


def grant(memory: Bethink, phrase: Phrase) -> Forgotten:
    """Does what an agent asked for, on the phrase that the user sent. Nothing happens for one that is unknown, used or expired."""
    found = memory.store.get(consent.find_granted(memory.store, phrase, memory.clock()))
    if phrase.action == "purge":
        return promotion.purge(memory, found)
    return memory.forget(*(one.id for one in found))


def decide(memory: Bethink, name: str, ids: Sequence[str]) -> Done:
    """Does something with an item or several, or takes it back."""
    chosen = ACTS[check_choice("act", name, tuple(ACTS))]
    full = tuple(memory.resolve(id) for id in ids)
    if not full or len(full) % chosen.of:
        wanted = "one memory" if chosen.of == 1 else "two memories"
        raise InvalidInput(
            f"'{name}' is for {wanted} an item, and {len(full)} were given.",
            "Give the ids of each item in its order.",
        )
    undo = [chosen.run(memory, *item) for item in split_pages(full, chosen.of)][-1]
    return Done(full, chosen.done, undo if isinstance(undo, str) else chosen.undo)


def bind(memory: Bethink, id: str) -> Memory:
    """Lets what is personal hold in this project alone: it is stored here, and replaces what was told everywhere."""
    one = memory.one(id)
    if one.scope != PERSONAL:
        raise InvalidInput(
            f"The memory {one.id} is not personal; it belongs to a project.",
            "`bethink list --personal` shows what holds in every project.",
        )
    _check_own(memory, one)
    same = {name: getattr(one, name) for name in (*BOUND, "created_at", "lines")}
    passage = make_passage(**same, supersedes=(one.id,))
    return memory.one(memory.add_many([passage], source=one.source, dedup=False).outcomes[0].id)


def unbind(memory: Bethink, id: str) -> Memory:
    """Takes `bind` back: what was personal holds in every project again. What else replaced it stays."""
    one = memory.one(id)
    here = memory.one(one.superseded_by) if one.superseded_by else one
    if here.id != one.id and here.content_hash == one.content_hash:
        memory.unlink(here.id, one.id, "supersedes")
        memory.forget(here.id)
    return memory.one(id)


def _trust(memory: Bethink, id: str) -> None:
    memory.write(change=(Change(id, BELIEVED, {"trust": memory.trust}),))
    consent.close(memory.writer, [id])


def _distrust(memory: Bethink, id: str) -> None:
    before = [event.before.get("trust") for event in memory.history(id) if event.action == BELIEVED]
    trust = before[-1] if before and isinstance(before[-1], int) else TRUST["import"]
    memory.write(change=(Change(id, "doubt", {"trust": trust}),))


def _mark(memory: Bethink, id: str, queue: str, keep: bool) -> None:
    """Takes a memory out of a queue as it is, or lets it be asked about again."""
    one = memory.one(id)
    left = sorted({*_read_kept(one), queue} if keep else _read_kept(one) - {queue})
    others = {name: value for name, value in one.metadata.items() if name != KEPT}
    memory.update(id, metadata={**others, KEPT: left} if left else others)
    if keep and queue == "doubtful":
        consent.close(memory.writer, [id])  # the person decided against a request, too


def _both(memory: Bethink, one: str, other: str) -> str:
    """Both hold. Gives the act that takes it back, which depends on whether they were marked as contradicting."""
    marked = [
        found
        for found in memory.relations(one)
        if {found.source, found.target} == {one, other} and found.type in tending.DISPUTES
    ]
    for found in marked:
        memory.unlink(found.source, found.target, found.type)
    memory.link(one, other, "relates_to")
    return "undo-both-marked" if marked else "undo-both"


def _not_both(memory: Bethink, one: str, other: str) -> None:
    memory.unlink(one, other, "relates_to")
    memory.link(one, other, "contradicts")


Run = Callable[..., object]


def _check_own(memory: Bethink, one: Memory) -> None:
    """Refuses who is trusted less than a memory to decide about it."""
    if memory.trust < one.trust:
        raise NeedsPerson(
            f"The memory {one.id} is the user's own word, about which only the user decides.",
            "Signed in by `bethink ui` on the user's machine, this page does it.",
        )


def _replace(memory: Bethink, other: str, one: str) -> None:
    """The second holds instead of the first."""
    _check_own(memory, memory.one(other))
    memory.link(one, other, "supersedes")


def _forget(memory: Bethink, id: str) -> None:
    _check_own(memory, memory.one(id))
    memory.forget(id)


# The decisions: name, queues, label of the button, key, notice after it was done, notice after it was undone.
_TABLE = """
first  contradictions duplicates  Keep the first  1  Kept the first; it replaces the second.  Both are back.
second  contradictions duplicates  Keep the second  2  Kept the second; it replaces the first.  Both are back.
both  contradictions duplicates  Keep both  b  Kept both; they are not compared again.  They are compared again.
trust  doubtful  Trust  t  Trusted like your own notes from now on.  Its earlier trust is back.
keep-doubtful  doubtful  Dismiss  l  Dismissed; nothing changed.  Back in the inbox.
answered  questions  Close  c  Closed.  Open again.
keep-questions  questions  Keep open  l  Stays open; not asked about again here.  Back in the inbox.
bind  preferences  Only in this project  h  Applies to this project only.  Applies to every project again.
keep-preferences  preferences  Everywhere  l  Applies to every project.  Back in the inbox.
promote  promotions  Make it a rule  p  Agents now read it as a rule at every start.  No longer a rule.
keep-promotions  promotions  Not a rule  l  Stays a memory.  Back in the inbox.
forget  doubtful questions preferences promotions  Forget  f  Forgotten. Searches no longer find it.  Restored.
"""
# What does each, and what takes it back.
_RUNS: dict[str, tuple[Run, Run]] = {
    "first": (
        lambda memory, one, other: _replace(memory, other, one),
        lambda memory, one, other: memory.unlink(one, other, "supersedes"),
    ),
    "second": (_replace, lambda memory, one, other: memory.unlink(other, one, "supersedes")),
    "both": (_both, lambda memory, one, other: memory.unlink(one, other, "relates_to")),
    "trust": (_trust, _distrust),
    "answered": (
        lambda memory, id: memory.update(id, answered=True),
        lambda memory, id: memory.update(id, answered=False),
    ),
    "bind": (bind, unbind),
    "promote": (promotion.promote, promotion.demote),
    "forget": (_forget, Bethink.restore),
}


def _make_acts() -> dict[str, Act]:
    """Each decision, and under its name with "undo-" the one that takes it back."""
    acts = {}
    for line in _TABLE.strip().splitlines():
        name, queues, label, key, done, undone = line.split("  ")
        _, _, kept = name.partition("keep-")
        marks = (partial(_mark, queue=kept, keep=True), partial(_mark, queue=kept, keep=False))
        run, back = marks if kept else _RUNS[name]
        of, undo = 2 if queues.split()[0] in PAIRS else 1, f"undo-{name}"
        acts[name] = Act(tuple(queues.split()), label, key, done, run, of, undo)
        acts[undo] = Act((), "", "", undone, back, of, name)
    again = "Marked as contradicting again."
    acts["undo-both-marked"] = acts["undo-both"]._replace(done=again, run=_not_both)
    return acts


ACTS: Mapping[str, Act] = _make_acts()
