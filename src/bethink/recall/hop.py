"""Hop: a hit that only refers to something ("the book you recommended") brings what it refers to."""

from collections.abc import Callable

from bethink.language.questions import REFERS
from bethink.model import Answer, Filter, Memory, Words
from bethink.recall.rank import Features, Ranked
from bethink.recall.shortlist import STEP, Entry, Shortlist
from bethink.store.base import Store

# Best hits that are read for a reference, characters of each, and how well something has to fit the reference. By hand.
READ_FOR_REFERENCES, REFERENCE_CHARACTERS, LEAST_FIT = 3, 1000, 0.5
MOST_TARGETS = 2


def find_reference(memory: Memory) -> str:
    """Return the words by which a memory refers to another one, or nothing."""
    found = REFERS.find(memory.content[:REFERENCE_CHARACTERS])
    return next((text for text in found.groups() if text), "") if found else ""


def follow_reference(
    shortlist: Shortlist, look_up: Callable[[str], Answer], filter: Filter, store: Store
) -> Shortlist:
    """Lift what the best hit with a reference refers to behind it; it may be new to the shortlist."""
    referring, words = next(
        (
            (one, reference)
            for one in shortlist[:READ_FOR_REFERENCES]
            if (reference := find_reference(one.item.memory))
        ),
        (None, ""),
    )
    if referring is None:
        return shortlist
    own = referring.item.memory
    found = [
        hit
        for hit in look_up(words).hits
        if hit.score >= LEAST_FIT and hit.memory.id != own.id and not _is_same_turn(hit.memory, own)
    ]
    targets = [hit.memory for hit in found[:MOST_TARGETS]]
    known = {one.item.memory.id: one for one in shortlist}
    for steps, memory in enumerate(targets, 1):
        score = referring.key.score - steps * STEP
        if (one := known.get(memory.id)) is None:
            keys = list(store.keys([memory.id]).values())
            candidates = store.candidates(keys, filter, Words(), keys)
            if not candidates:
                continue
            features = Features(relevance=0.0, standing=1.0, confidence=1.0, tier=0.0)
            one = Ranked(referring.key._replace(score=0.0), Entry(memory, candidates[0]), features)
            shortlist = [*shortlist, one]
        if one.key < referring.key:
            one.features["referred"] = score - one.key.score
            one.features["tier"] = referring.key.tier
    return shortlist


def _is_same_turn(one: Memory, other: Memory) -> bool:
    """Return True for a turn and a statement taken from it."""
    return one.session is not None and (one.session, one.lines) == (other.session, other.lines)
