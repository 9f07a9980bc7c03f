"""Settlements: from a matching turn of a conversation to the answer that settled its topic.

A problem is described in the words of its symptom, and the next report of it has those words, too. The rule that solved it was settled
turns later, in other words. So a hit from a conversation leads to the last answer after it that sums up what was agreed and that the
user did not refuse. A newer settlement that amends an older one about the same subject takes its place. A proposal that the user refused
leads nowhere.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bethink.language.reports import ANNOUNCES_STEP, OF_THE_MOMENT
from bethink.language.settling import ACKNOWLEDGES_RULE, AMENDS, REFUSES, SUMS_UP
from bethink.language.words import STOP_WORDS
from bethink.model import Filter, Memory
from bethink.recall.query import parse
from bethink.recall.rank import LIFTS, SHARES, Ranked
from bethink.recall.shortlist import STEP, Entry, Shortlist
from bethink.store.base import Store
from bethink.store.words import as_words, tokenize

# Settlements for which an amendment is looked for, by how many characters of their words, among how many turns: bounds on time.
MOST_AMENDED, SOUGHT, NEIGHBOURS = 2, 300, 12
FAR = 24  # turns after a hit among which its settlement is looked for; a bound on time
LONGEST_SETTLEMENT = 1200  # characters of a settlement; a longer answer is a report
LOOKED_AT = 8  # first hits of a search that are followed; a bound on time
CHOICES = ("decision", "preference")
LATE_LIFTS = ("newer", "answers", "disputes", "refused", "settles")  # added since the last sort
SCORING = (*LIFTS, *SHARES, "relevance", "preferred", "confidence", "chance", "tier")
REFUSED_SHARE = 0.5  # share of its score that a refused proposal keeps; refused ones shown 2 → 0 (bench/LOG.md, 2026-11-18)
# Words that a settlement shares with what leads to it, so that it is about that; and the share of the shorter of two settlements from
# which they are about the same subject. By hand, on nine tasks (bench/LOG.md, 2026-11-18).
SHARED_WORDS, SAME_SUBJECT_SHARE = 2, 0.3


class Settlement(NamedTuple):
    """An answer that sums up what was agreed, and the hits that lead to it."""

    memory: Memory
    from_ids: tuple[str, ...]

    @property
    def amends(self) -> bool:
        return bool(AMENDS.holds(self.memory.content))


def find_settlements(hits: Sequence[Memory], store: Store) -> list[Settlement]:
    """Return the settlements that hits lead to, in their order; an amendment replaces older ones."""
    found: dict[str, Settlement] = {}
    for one in hits:
        settled = _find_settled(one, store)
        if settled:
            known = found.get(settled.id)
            from_ids = (*(known.from_ids if known else ()), one.id)
            found[settled.id] = Settlement(settled, from_ids)
    settlements = [*found.values()]
    first = settlements[:MOST_AMENDED]
    newer = [other for one in first for other in _find_amendments(one, store)]
    return _put_amendments_first(settlements, newer)


def _find_amendments(one: Settlement, store: Store) -> list[Settlement]:
    """Return later settlements in the words of this one that amend something."""
    memory = one.memory
    query = parse(as_words(memory.content[:SOUGHT]), memory.created_at)
    filter = Filter(scopes=(memory.scope,), kinds=("context",), since=memory.created_at)
    keys = [key for key, _ in store.keyword(query, filter, NEIGHBOURS)]
    later = [
        other
        for other in store.load(keys).values()
        if other.session != memory.session and SUMS_UP.holds(other.content)
    ]
    settled = (_find_settled(other, store) for other in later)
    return [Settlement(other, ()) for other in settled if other]


def _find_settled(one: Memory, store: Store) -> Memory | None:
    """Return the answer that settled what a memory of a conversation begins."""
    if one.source_type != "transcript" or not one.session:
        return None
    turns = [
        turn
        for turn in store.around(one.id, 0, FAR)
        if turn.session == one.session and "agent" not in turn.metadata and turn.kind == "context"
    ]
    spoken = [
        (turn, turns[at + 1] if at + 1 < len(turns) else None) for at, turn in enumerate(turns)
    ]
    answers = [turn for turn, next_ in spoken if _settles(turn, next_)]
    summed = [turn for turn in answers if SUMS_UP.holds(turn.content)]
    settled = (summed or answers)[-1:]
    if not settled or not _is_about(settled[0], one, turns):
        return None
    return settled[0]


def _settles(turn: Memory, following: Memory | None) -> bool:
    """Return True for an answer of the agent that sums up a rule, and that the user did not refuse."""
    text = turn.content
    if not _is_answer(turn) or len(text) > LONGEST_SETTLEMENT or text.rstrip().endswith("?"):
        return False
    if ANNOUNCES_STEP.holds(text) or is_refused(turn, following):
        return False
    repeats = ACKNOWLEDGES_RULE.holds(text) and not OF_THE_MOMENT.holds(text)
    return bool(SUMS_UP.holds(text) or repeats)


def _is_about(settled: Memory, one: Memory, turns: Sequence[Memory]) -> bool:
    """Return True if a settlement is of the topic of a hit, or shares words with its exchange."""
    if settled.id == one.id or (settled.span and settled.span == one.span):
        return True
    words = _find_words(one.content, *(turn.content for turn in turns[:3]))
    return len(words & _find_words(settled.content)) >= SHARED_WORDS


def is_refused(turn: Memory, following: Memory | None) -> bool:
    """Return True for an answer of the agent that the user's next words refuse."""
    if following is None or not _is_answer(turn):
        return False
    return following.metadata.get("role") == "user" and bool(REFUSES.holds(following.content))


def _is_answer(turn: Memory) -> bool:
    return turn.metadata.get("role") == "assistant"


def is_choice(one: Memory) -> bool:
    """Return True for a decision or preference of the user, which no answer of the agent precedes."""
    return one.kind in CHOICES and one.metadata.get("role") == "user"


def find_refused(memories: Iterable[Memory], store: Store) -> set[str]:
    """Return the ids of an agent's turns and statements that the user refused in the next turn."""
    refused = set()
    for one in memories:
        if one.source_type != "transcript" or not _is_answer(one):
            continue
        turns = [turn for turn in store.around(one.id, 0, 1) if turn.session == one.session]
        if len(turns) > 1 and is_refused(one, turns[-1]):
            refused.add(one.id)
    return refused


def _put_amendments_first(
    found: Sequence[Settlement], others: Sequence[Settlement]
) -> list[Settlement]:
    """Put an amendment in the place of the older settlements about the same subject, and leave those out."""
    gone: set[str] = set()
    placed: list[Settlement] = []
    for one in found:
        newer = [
            other
            for other in (*found, *others)
            if other.amends
            and other.memory.created_at > one.memory.created_at
            and _are_alike(one.memory, other.memory)
        ]
        best = max(newer, key=lambda other: other.memory.created_at, default=one)
        if best.memory.id not in gone:
            gone.add(best.memory.id)
            # It goes where the first of both would be.
            placed.append(best._replace(from_ids=(*one.from_ids, *best.from_ids)))
    return placed


def _are_alike(one: Memory, other: Memory) -> bool:
    words, others = _find_words(one.content), _find_words(other.content)
    return len(words & others) >= SAME_SUBJECT_SHARE * min(len(words), len(others))


def _find_words(*texts: str) -> set[str]:
    return set(tokenize("\n".join(texts))) - set(tokenize(" ".join(STOP_WORDS)))


# In a search


def follow_topics(shortlist: Shortlist, store: Store, filter: Filter) -> Shortlist:
    """Lift the settlements of the first hits to them, and lower proposals that the user refused.

    A settlement that the question did not find joins if it passes the filter.
    """
    first = sorted(shortlist, key=lambda one: -_find_score(one))[:LOOKED_AT]
    memories = [one.item.memory for one in first]
    scores = {one.item.memory.id: _find_score(one) for one in first}
    for one in first:
        if one.item.memory.id in find_refused([one.item.memory], store):
            one.features["refused"] = (REFUSED_SHARE - 1) * _find_score(one)
    present = {one.item.memory.id: one for one in shortlist}
    found = find_settlements(memories, store)
    visible = store.select([one.memory.id for one in found], filter) if found else {}
    joined: Shortlist = []
    for memory, from_ids in found:
        leading = next(one for one in first if one.item.memory.id in from_ids)
        own = present.get(memory.id)
        if memory.id not in visible or own is leading:
            continue
        behind = is_choice(leading.item.memory)
        place = scores[leading.item.memory.id] + (-STEP if behind else STEP)
        if own is None:
            joined.append(_join(memory, leading, place, store))
        elif _find_score(own) < place:
            own.features["settles"] = place - _find_score(own)
            own.features["tier"] = leading.key.tier
    return [*shortlist, *joined]


def _find_score(one: Ranked[Entry]) -> float:
    """Return the score of a hit with the lifts that it got since it was ranked."""
    return one.key.score + sum(one.features.get(name, 0.0) for name in LATE_LIFTS)


def _join(memory: Memory, leading: Ranked[Entry], place: float, store: Store) -> Ranked[Entry]:
    """Return a settlement as a hit: it fits as well as the hit that leads to it."""
    key = store.keys([memory.id])[memory.id]
    candidate = leading.item.candidate._replace(key=key, created_at=memory.created_at.timestamp())
    features = {name: value for name, value in leading.features.items() if name in SCORING}
    unlifted = _find_score(leading) - features.pop("refused", 0.0) - features.get("settles", 0.0)
    features["settles"] = place - unlifted
    return Ranked(leading.key._replace(score=place), Entry(memory, candidate), features)
