"""Decisions for a person: duplicates, contradictions, doubtful memories, open questions, rules.

There is one queue for each, and a few acts for each item, all of which can be undone.

Pairs are searched from the newest statement backwards within a time limit; the result tells where
to continue. So an inbox opens at once, whatever the size of the memory. Decisions are stored in the
memories themselves, as relations, history and a mark in their metadata: nothing is asked twice.
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
    FILES,
    PERSONAL,
    TRUST,
    Change,
    Filter,
    Forgotten,
    Memory,
    fields_of,
    is_inferred,
    make_passage,
)
from bethink.recall.shape import citation
from bethink.store.transfer import split_pages
from bethink.text import check_choice

QUEUES = tuple("contradictions duplicates doubtful questions preferences promotions".split())
PAIRS = ("contradictions", "duplicates")
_SECONDS = 0.06  # time limit for comparing pairs: a few searches' worth
MOST_PENDING = 99
_LISTED_AT_ONCE, _MOST_LISTED = 500, 10_000  # memories of a page and in all; bounds on time
AT_ONCE = 8  # statements that are read, and embedded if necessary, together; a bound
_NEAREST = 24  # neighbours of a statement, including turns and passages; by hand
# Fields that a memory keeps when it is bound to one project. Its metadata describes how the personal one was read.
_BOUND_FIELDS = [
    name for name, info in fields_of(Memory).items() if info.addable and name != "metadata"
]
FILTERS: Mapping[str, Mapping[str, Any]] = {
    "questions": {"kinds": OPEN, "answered": False},
    "preferences": {"kinds": ("preference",), "scopes": (PERSONAL,), "transcribed": True},
    "doubtful": {"kinds": COMPARED, "max_trust": TRUST["import"], "include_quarantined": True},
}
_DISMISSED = "looked_at"  # key in the metadata of a memory: the queues it was dismissed from


class Item(NamedTuple):
    """Memory to decide about, or a pair of which the first would be kept."""

    memories: tuple[Memory, ...]
    reason: str


class Queue(NamedTuple):
    items: tuple[Item, ...]
    looked: int  # statements examined
    next: int | None = None  # where to continue, if not everything was examined


class Act(NamedTuple):
    """Decision on an item, and its inverse."""

    queues: tuple[str, ...]
    label: str  # on a button
    key: str  # that does it
    done: str  # notice afterwards
    run: Callable[..., object]
    of: int  # number of memories in an item
    undo: str  # the name of the inverse act


class Done(NamedTuple):
    ids: tuple[str, ...]
    said: str
    undo: str


def list_queue(
    memory: Bethink, queue: str, limit: int = 20, start: int = 0, seconds: float = _SECONDS
) -> Queue:
    """List the items of a queue, starting with statement number `start`."""
    check_choice("queue", queue, QUEUES)
    if queue in PAIRS:
        return _pairs(memory, queue, limit, start, seconds)
    found = list(_singles(memory, queue, limit + 1, start))
    items = tuple(Item((one,), reason) for one, reason in found[:limit])
    return Queue(items, start + len(items), start + limit if len(found) > limit else None)


def count_queues(memory: Bethink) -> dict[str, dict[str, int]]:
    """Count each queue up to a limit, pairs within a time limit, and tell if there may be more."""
    found = {name: list_queue(memory, name, MOST_PENDING, 0, _SECONDS / 2) for name in QUEUES}
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
        listed = _list_matching(memory, queue, most)
        found = [(one, _why(queue, one)) for one in listed]
        if queue == "doubtful":
            requested = _find_requested(memory)
            ids = {one.id for one, _ in requested}
            found = [*requested, *(item for item in found if item[0].id not in ids)]
    # A request of an agent waits here even if the memory was dismissed before.
    yield from (
        (one, reason)
        for one, reason in found[start:]
        if one.id in ids or queue not in _read_kept(one)
    )


def _list_matching(memory: Bethink, queue: str, most: int) -> list[Memory]:
    """Memories of a queue, newest first, without facts from project files and possibly pasted statements."""
    wanted, found = memory.filter(**FILTERS[queue]), list[Memory]()
    for offset in range(0, _MOST_LISTED, _LISTED_AT_ONCE):
        page = memory.list(filter=wanted, limit=_LISTED_AT_ONCE, offset=offset)
        found += (
            one
            for one in page
            if one.trust == TRUST["quarantined"]
            or (one.source_type not in FILES and one.metadata.get("origin") != "pasted")
        )
        if len(found) >= most or len(page) < _LISTED_AT_ONCE:
            break
    return found[:most]


def _find_requested(memory: Bethink) -> list[tuple[Memory, str]]:
    """Memories of this project that an agent asks to forget or purge, each with the reason."""
    requests = {one.id: one for one in consent.list_requests(memory.store)}
    return [
        (one, f"an agent asks to {requests[one.id].action} it")
        for one in memory.store.get(sorted(requests))
        if one.scope in memory.scopes and one.deleted_at is None
    ]


def _read_kept(one: Memory) -> set[str]:
    """Queues that a memory was dismissed from. Imported metadata may contain anything."""
    found = one.metadata.get(_DISMISSED)
    return set(map(str, found)) if isinstance(found, list | tuple) else set()


def _why(queue: str, one: Memory) -> str:
    if queue == "questions":
        return "still open"
    if queue == "preferences":
        return f"from a conversation ({citation(one)}); applies in every project"
    if one.trust == TRUST["quarantined"]:
        return "quarantined: searches do not show it"
    return f"unverified: read from {one.source}"


# Pairs


def _pairs(memory: Bethink, queue: str, limit: int, start: int, seconds: float) -> Queue:
    find = tending.find_twins if queue == "duplicates" else tending.find_opposites
    seen = memory.filter(kinds=COMPARED)
    # Without a filter on kinds, the nearest are found among all vectors at once, which is much faster.
    near_by = Filter(scopes=memory.scopes, now=memory.clock())
    until = time.thread_time() + seconds  # processor time, so that a busy machine examines no less
    found: dict[tuple[str, ...], Pair] = {}
    done = False
    while not done and (page := memory.list(filter=seen, limit=AT_ONCE, offset=start)):
        for around in tending.survey(memory, page, near_by, _NEAREST, quick=True):
            start += 1
            for pair in find(memory, around):
                other = pair.other if pair.keep == around.memory else pair.keep
                types = around.related.get(other.id, set())
                # Another relation between them means that the pair is settled.
                if types.issubset(tending.DISPUTES) and not _is_guess(pair):
                    found.setdefault(tuple(sorted((pair.keep.id, pair.other.id))), pair)
            if len(found) >= limit or time.thread_time() > until:
                done = True
                break
    items = [Item(pair[:2], pair.reason) for pair in found.values()]
    # The newer of two duplicates comes first: the older one went out of date.
    if queue == "duplicates":
        newest = partial(sorted, key=attrgetter("created_at"), reverse=True)
        items = [item._replace(memories=tuple(newest(item.memories))) for item in items]
    more = done and bool(memory.list(filter=seen, limit=1, offset=start))
    return Queue(tuple(items), start, start if more else None)


def _is_guess(pair: Pair) -> bool:
    """Return True if a statement inferred from a transcript only seems to disagree."""
    seems = pair.reason == tending.MAY_REPLACE
    return seems and (is_inferred(pair.keep) or is_inferred(pair.other))


# Acts


def grant(memory: Bethink, phrase: Phrase) -> Forgotten:
    """Do what an agent asked for, given the phrase that the user sent.

    An unknown, used or expired phrase does nothing.
    """
    found = memory.store.get(consent.find_granted(memory.store, phrase, memory.clock()))
    if phrase.action == "purge":
        return promotion.purge(memory, found)
    return memory.forget(*(one.id for one in found))


def decide(memory: Bethink, name: str, ids: Sequence[str]) -> Done:
    """Apply an act, or its inverse, to one or more items."""
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
    """Limit a personal memory to this project: a copy here replaces the personal one."""
    one = memory.one(id)
    if one.scope != PERSONAL:
        raise InvalidInput(
            f"The memory {one.id} is not personal; it belongs to a project.",
            "`bethink list --personal` shows what holds in every project.",
        )
    _check_own(memory, one)
    same = {name: getattr(one, name) for name in (*_BOUND_FIELDS, "created_at", "lines")}
    passage = make_passage(**same, supersedes=(one.id,))
    return memory.one(memory.add_many([passage], source=one.source, dedup=False).outcomes[0].id)


def unbind(memory: Bethink, id: str) -> Memory:
    """Undo `bind`: the personal memory applies in every project again. Other replacements stay."""
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
    """Dismiss a memory from a queue, or let it be asked about again."""
    one = memory.one(id)
    left = sorted({*_read_kept(one), queue} if keep else _read_kept(one) - {queue})
    others = {name: value for name, value in one.metadata.items() if name != _DISMISSED}
    memory.update(id, metadata={**others, _DISMISSED: left} if left else others)
    if keep and queue == "doubtful":
        consent.close(memory.writer, [id])  # the person decided against a request, too


def _both(memory: Bethink, one: str, other: str) -> str:
    """Keep both memories. Returns the inverse act, which depends on an earlier mark as contradicting."""
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
    """Refuse a caller who is trusted less than the memory."""
    if memory.trust < one.trust:
        raise NeedsPerson(
            f"The memory {one.id} is the user's own word, about which only the user decides.",
            "Signed in by `bethink ui` on the user's machine, this page does it.",
        )


def _replace(memory: Bethink, other: str, one: str) -> None:
    """Replace the first memory by the second."""
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
# The function for each decision, and its inverse.
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
    """Each decision, and its inverse under the same name with "undo-"."""
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
