"""Shortlist: the first candidates with their texts, and the features that need them.

The judge's second reading, disputes and newer statements each cost a look at texts or relations, so only the first candidates get them.
They are features like all others: each names a lift, and the one sort by `rank` does the rest.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from bethink.language.change import find_change
from bethink.language.detect import is_english
from bethink.language.questions import QUESTION_START
from bethink.language.words import STOP_WORDS
from bethink.model import (
    IDEAS,
    PERSONAL,
    STATEMENTS,
    TEAM,
    TRUST,
    Candidate,
    Memory,
    Query,
    Related,
    Relation,
    path_of,
    turn_of,
)
from bethink.recall.features import DISTILLED
from bethink.recall.rank import Key, Ranked
from bethink.recall.shape import choose_excerpt, choose_sentence, find_sought
from bethink.store.base import Store

if TYPE_CHECKING:
    from bethink.judge import Judge

# Candidates loaded beyond the page, in place of repeated turns; two hits farther apart do not change places. A bound on time, by hand.
SPARE = 20
# How much better a turn must fit than an idea taken from it to be shown in its place. By hand, on six sessions (bench/LOG.md, 2026-11-16).
TURN_LEAD = 1.2
# The second reading: hits and characters of each, so that a search stays within 150 ms on two cores; and the weight of the judge's reading
# against the score, the best of half of locomo's held questions (bench/LOG.md, 2026-11-16).
READ_HITS, READ_CHARACTERS, READ_WEIGHT = 16, 280, 0.3
UNREAD_KINDS = ("document", "code")  # the judge learned from conversations, and helps only there
LONGEST_QUESTION = (
    300  # characters; a longer one is pasted text, which the judge never saw in training
)
# Passages and statements set against each other, and the probability from which two dispute each other: the judge knows 16 of 20 pairs of which one ends
# the other, and takes 2 of 86 others for such (bench/LOG.md, 2026-11-17). Looked for in no fewer hits than a usual page.
DISPUTING, DISPUTED, DISPUTE_HITS = 3, 0.55, 10
# Relations by which one hit comes before another, and the feature that says so.
LEADING = {
    "answers": "answers",
    "may_replace": "newer",
    "contradicts": "disputes",
    "builds_on": "newer",
    "relates_to": "newer",
}
WEAK_RELATIONS = (
    "builds_on",
    "relates_to",
)  # they order only two hits that are ahead of the rest together
# Lead of two hits over the next: with 1.1 the answer is first .858 and new before old .867, without .851 and .893 (bench/LOG.md, 2026-11-18).
OUTSTANDING = 1.1
# Share of the older statement's score that a newer one needs to come before it; the second where the older makes several claims, of which
# the question may be about another. At most two come before one, so that a wrong mark never pushes the answer out of the first three.
# On 25 histories: answer first .856, new before old .893; at .35/.35 .841 and .893, at .35/.7 .861 and .813 (bench/LOG.md, 2026-11-18).
AS_FITTING, PARTLY_FITTING, MOST_BEFORE = 0.35, 0.5, 2
# The same where the judge guessed in a language that it does not know, unless the newer text states a change. English questions on German,
# Russian, Portuguese and Spanish notes: .79 → .86 first, on their own notes .88 → .94; 179 questions on 12 foreign histories: 126 → 126
# first (.35 → .8; bench/LOG.md, 2026-11-19).
FITTING_ABROAD = 0.8
GUESSED_RELATIONS = ("may_replace", "builds_on", "relates_to")
# Share of its score that each further hit of a session loses, and hits after which it loses no more, where many sessions are asked for.
AGAIN_LOSS, MOST_AGAIN = 0.1, 3
STEP = 1e-9  # by which one score comes before another
# Two clauses of two words or more: "Okay, we use MySQL" is one.
_SEVERAL_CLAIMS = re.compile(r"\S\s+[^\s,;.!?]+(?:[,;]|[.!?](?=\s))\s*\S+\s+\S")
LONGEST_CLAIMS = 1000  # characters looked at; a bound on time


class Entry(NamedTuple):
    """A shortlisted memory, with what the judge relates it to."""

    memory: Memory
    candidate: Candidate
    related: Related = ()


Shortlist = list[Ranked[Entry]]


def drop_restated(ranked: Sequence[Ranked[Candidate]], threshold: float) -> list[Ranked[Candidate]]:
    """Leave out what is below the threshold, and one of each turn and idea taken from it.

    The idea counts for both, unless the turn fits much better."""
    best: dict[tuple[int, int, bool], Key] = {}
    for key, one, _ in ranked:
        place = (one.source, turn_of(one.position), one.position >= IDEAS)
        best.setdefault(place, key)  # the best comes first

    def is_kept(key: Key, one: Candidate) -> bool:
        is_idea = one.position >= IDEAS
        other = best.get((one.source, turn_of(one.position), not is_idea))
        if other is None:
            return True
        if key.tier != other.tier and key.tier and other.tier:
            return key.tier > other.tier
        if is_idea:
            return key.score >= other.score / TURN_LEAD
        return key.score > other.score * TURN_LEAD

    return [one for one in ranked if one.key.score >= threshold and is_kept(one.key, one.item)]


def load_shortlist(chosen: Sequence[Ranked[Candidate]], store: Store) -> Shortlist:
    """Load the memories of candidates, without repetitions.

    Of turns in the very same words, and of what two readers found in a file, the first is kept."""
    memories = store.load([one.item.key for one in chosen])
    kept: dict[str, Ranked[Entry]] = {}
    of_file: dict[str, list[Memory]] = {}
    for key, candidate, features in chosen:
        memory = memories.get(candidate.key)
        if memory is None:
            continue
        beside = of_file.setdefault(path_of(memory.source), []) if memory.lines else []
        identity = memory.content_hash if memory.kind == "context" else memory.id
        if identity not in kept and not any(_repeats(memory, other) for other in beside):
            kept[identity] = Ranked(key, Entry(memory, candidate), features)
            beside.append(memory)
    return list(kept.values())


def _repeats(memory: Memory, other: Memory) -> bool:
    """Return True if two readers of a file found the same words."""
    if memory.source == other.source:
        return False
    words = (set(re.findall(r"\w+", one.content.casefold())) for one in (memory, other))
    fewer, more = sorted(words, key=len)
    return fewer <= more


# The second reading


def is_question(text: str) -> bool:
    """Return True for a question in English and in a person's words, as the judge has learned it."""
    text = text.strip().replace("’", "'").lower()
    spoken = not STOP_WORDS.isdisjoint(text.rstrip("?").split())
    asks = spoken and (text.endswith("?") or QUESTION_START.holds(text))
    return asks and len(text) <= LONGEST_QUESTION and is_english(text)


def read_again(
    ranked: Sequence[Ranked[Candidate]], query: Query, store: Store, judge: "Judge"
) -> None:
    """Let the judge read the first candidates with the question, and add the results to their features.

    A model that reads both at once knows whether this is an answer. Candidates swap places only within one standing: the scores of an
    answer stay the same, and what comes first for another reason still does.
    """
    groups: dict[float, list[Ranked[Candidate]]] = {}
    for one in ranked[:READ_HITS]:
        if one.item.kind not in UNREAD_KINDS:
            groups.setdefault(one.features["standing"], []).append(one)
    keys = [one.item.key for group in groups.values() for one in group]
    memories = store.load(keys)
    sought = find_sought(query)

    def show(text: str) -> str:
        start, end = choose_excerpt(text, sought, READ_CHARACTERS)
        return text[start:end]

    pairs = [(query.text, show(memories[key].content) if key in memories else "") for key in keys]
    fits = dict(zip(keys, judge.fit(pairs), strict=True))
    places = {one.item.key: place for place, one in enumerate(ranked[:READ_HITS])}
    for group in groups.values():
        earned = sorted(group, key=lambda one: -_mix(one.key.score, fits[one.item.key]))
        for place, one in zip(group, earned, strict=True):
            one.features["fits"] = round(fits[one.item.key], 4)
            one.features["moved"] = places[one.item.key] - places[place.item.key]
            one.features["reread"] = place.key.score - one.key.score
            one.features["tier"] = place.key.tier


def _mix(score: float, fit: float) -> float:
    """Add both as log-odds: if the judge sees no difference, or one hit is far ahead, nothing moves."""
    score = min(max(score, 0.001), 0.999)
    return math.log(score / (1 - score)) + READ_WEIGHT * fit


# Questions for all of something


def spread_sessions(shortlist: Shortlist) -> None:
    """Lower further hits of a session behind the first hits of others."""
    seen: Counter[str] = Counter()
    for one in shortlist:
        place = one.item.memory.session or one.item.memory.source
        if one.item.memory.session and seen[place]:
            one.features["again"] = -AGAIN_LOSS * min(seen[place], MOST_AGAIN) * one.key.score
        seen[place] += 1


# Hits that come before others because of a relation


def lift_related(
    shortlist: Shortlist,
    query: Query,
    judge: "Judge | None",
    store: Store,
    now: datetime,
    limit: int,
) -> Shortlist:
    """Lift statements above passages they dispute, newer ones above older, answers above questions."""
    if judge:
        first = max(DISPUTE_HITS, limit)
        disputed = _relate_disputed(shortlist[:first], query.text, judge, store, now)
        shortlist = [*disputed, *shortlist[first:]]
    _lift_leads(shortlist, store)
    return shortlist


def _relate_disputed(
    shortlist: Shortlist, question: str, judge: "Judge", store: Store, now: datetime
) -> Shortlist:
    """Relate imported passages to the lower-ranked statements of the user that contradict them.

    A README is not read again after every decision. Existing relations stay as they are.
    """
    wanted = _find_disputable([one.item.memory for one in shortlist], store, now)
    pairs = [(shortlist[at].item.memory, shortlist[own].item.memory) for at, own in wanted]
    marked = list(shortlist)
    judged = dispute(question, pairs, judge)
    for (at, _), (claim, own), disputed in zip(wanted, pairs, judged, strict=True):
        if disputed:
            entry = marked[at].item
            found = (Relation(own.id, claim.id, "contradicts"), own)
            marked[at] = marked[at]._replace(item=entry._replace(related=(*entry.related, found)))
    return marked


def _find_disputable(
    memories: Sequence[Memory], store: Store, now: datetime
) -> list[tuple[int, int]]:
    """Return the places of passages, each with that of a statement behind it to which nothing relates it."""
    stated = [at for at, one in enumerate(memories) if is_users_statement(one)][:DISPUTING]
    claimed = [at for at, one in enumerate(memories) if is_unvouched(one)][:DISPUTING]
    pairs = [
        (at, own)
        for at in claimed
        for own in stated
        if own > at and _may_dispute(memories[own], memories[at], now)
    ]
    known = store.relations([memories[at].id for at in claimed]) if pairs else ()
    related = {frozenset((one.source, one.target)) for one in known}
    return [pair for pair in pairs if frozenset(memories[at].id for at in pair) not in related]


def _may_dispute(own: Memory, claim: Memory, now: datetime) -> bool:
    """Return True if a statement is valid now and in the scope of a passage. Projects do not share truth."""
    ended = any(end and end <= now for end in (own.valid_to, own.expires_at))
    return own.scope in (claim.scope, PERSONAL, TEAM) and outranks(own, claim) and not ended


def is_users_statement(memory: Memory) -> bool:
    return memory.kind in DISTILLED and memory.trust >= TRUST["user"]


def is_unvouched(memory: Memory) -> bool:
    return memory.kind in ("document", "context") and memory.trust <= TRUST["import"]


def dispute(question: str, pairs: Sequence[tuple[Memory, Memory]], judge: "Judge") -> list[bool]:
    """Return True for each passage and statement that cannot both hold.

    The judge sees the sentence of the passage that the question is about; either text may be the older one."""
    if not pairs:
        return []
    texts = [
        (choose_sentence(claim.content, question, own.content), own.content) for claim, own in pairs
    ]
    judged = judge.relate([pair for one, other in texts for pair in ((one, other), (other, one))])
    both = zip(judged[::2], judged[1::2], strict=True)
    differing = ("replaces", "contradicts")
    return [
        sum(one.probabilities[name] for one in readings for name in differing) / 2 >= DISPUTED
        for readings in both
    ]


def _lift_leads(shortlist: Shortlist, store: Store) -> None:
    """Lift the newer, more trusted of two related statements above the other, and answers above questions.

    A memory that the question did not find never joins.
    """
    entries = {one.item.memory.id: one for one in shortlist}
    leads = _find_leads(shortlist, store)
    placed: set[str] = set()
    for one in shortlist:
        id = one.item.memory.id
        if id in placed:
            continue
        before = [
            entries[other]
            for other, relation in leads.get(id, {}).items()
            if other not in placed
            and _comes_before(entries[other], one, relation)
            and (relation not in WEAK_RELATIONS or _leads_rest(entries[other], one, shortlist))
        ]
        before.sort(key=lambda lead: lead.key.score, reverse=True)
        before = before[:MOST_BEFORE]
        # The newest of several comes first: each is newer than the one behind it.
        before.sort(key=lambda lead: lead.item.memory.created_at)
        for steps, lead in enumerate(before, 1):
            relation = leads[id][lead.item.memory.id]
            lead.features[LEADING[relation]] = one.key.score + steps * STEP - lead.key.score
            lead.features["tier"] = one.key.tier
        placed |= {id, *(lead.item.memory.id for lead in before)}


def _comes_before(one: Ranked[Entry], other: Ranked[Entry], relation: str) -> bool:
    memory, older = one.item.memory, other.item.memory
    if relation == "answers":
        return True
    if relation in WEAK_RELATIONS and not are_statements(memory, older):
        return False
    if relation == "builds_on" and memory.kind != older.kind:
        return False  # an amendment is of the kind that it amends; a fact about a decision is not
    # A statement with several claims changed in one of them: the question may be about another.
    partly = _SEVERAL_CLAIMS.search(older.content[:LONGEST_CLAIMS]) is not None
    least = PARTLY_FITTING if partly else AS_FITTING
    if relation in GUESSED_RELATIONS and _is_doubtful(memory, older):
        least = FITTING_ABROAD
    fitting = relation == "contradicts" or one.key.score >= least * other.key.score
    return fitting and outranks(memory, older)


def _is_doubtful(newer: Memory, older: Memory) -> bool:
    """Return True if a relation is the judge's guess about texts in a language that it does not know."""
    readable = is_english(newer.content) and is_english(older.content)
    return not readable and find_change(newer.content[:LONGEST_CLAIMS]) is None


def _leads_rest(one: Ranked[Entry], other: Ranked[Entry], shortlist: Shortlist) -> bool:
    """Return True if a hit directly follows another and scores well above the next one.

    Then both are about the question, and the rest is not.
    """
    place = next(at for at, hit in enumerate(shortlist) if hit is one)
    following = shortlist[place + 1].key.score if place + 1 < len(shortlist) else 0.0
    return place > 0 and shortlist[place - 1] is other and one.key.score >= OUTSTANDING * following


def are_statements(*memories: Memory) -> bool:
    return all(memory.kind in STATEMENTS and memory.trust >= TRUST["agent"] for memory in memories)


def _find_leads(shortlist: Shortlist, store: Store) -> Mapping[str, Mapping[str, str]]:
    """Return for each hit the other hits that may come before it, with the relation."""
    places = {one.item.memory.id: place for place, one in enumerate(shortlist)}
    found = store.relations(sorted(places)) if shortlist else []
    found += [relation for one in shortlist for relation, _ in one.item.related]
    leads: dict[str, dict[str, str]] = {}
    for one in found:
        if not places.keys() >= {one.source, one.target} or one.type not in LEADING:
            continue
        # Each page loads so many hits beyond its own: from farther below one would rise on some pages and not on others.
        if abs(places[one.source] - places[one.target]) > SPARE:
            continue
        leads.setdefault(one.target, {}).setdefault(one.source, one.type)
        if one.type == "contradicts":
            leads.setdefault(one.source, {}).setdefault(one.target, one.type)
    return leads


def outranks(one: Memory, other: Memory) -> bool:
    """Return True if a memory is live, and more trusted than another or as trusted and newer."""
    live = one.superseded_by is None and one.deleted_at is None
    return live and (one.trust, one.created_at) > (other.trust, other.created_at)
