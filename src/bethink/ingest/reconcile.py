"""What a new memory means for known ones: it repeats, replaces, answers, completes, contradicts or extends them. Pure.

Words speak first (the same statement, a stated change), then the judge where there is one, and trust has the last word: what
is less trusted, or older, changes nothing. What is not sure changes nothing either: it is told as a proposal, and waits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from bethink.ingest.lexicon import (
    contrasts,
    count_shared_words,
    differ_in_denial,
    find_change,
    find_tickets,
    is_tentative,
    mentions,
    other_number,
    other_part,
    other_tickets,
    say_the_same,
    share_subject,
    tell_apart,
    tells_of_work,
)
from bethink.judge import Judgement, asks
from bethink.types import TRUST, Change, Memory, Proposal, Relation, supersede

# How probably a relation must hold, as the judge says it in view of nearness and of what else stands near (`judge.weigh`), for something to be
# done at once. Chosen on 99 written histories that the judge did not learn from (`bench/histories.py`; bench/LOG.md, 2026-11-17).
REPLACES, SAME, ANSWERS, COMPLETES, RELATES = 0.55, 0.6, 0.35, 0.4, 0.75
MAYBE = 0.15  # and to be told at all
STRANGE = 0.95  # and for two to be strangers though one plainly states a change: set by hand
# Of an answer that names nothing of a question before others: with the weights of 0.14 from .35 on 38 of 86 are right, from
# here on 13 of 23.
UNNAMED = 0.6
# Of a report that does a to-do, where nothing else stands beside it: by what an agent says, and of a commit that shares one word with it.
# Set by hand on the commits of 27 real sessions (bench/LOG.md, 2026-11-17).
BY_AGENT, ONE_SHARED = 0.8, 0.9
ALWAYS, NEVER = 0.0, 1.01
REDACTED = "[REDACTED:"
# Characters of what can be one statement. Of the pairs that the judge learned .999 are shorter; among whole turns of
# conversations, most of them longer, .04 were taken for replaced by others that only spoke of a change (bench/LOG.md, 2026-11-16).
LONGEST = 320

# How near the old memory must be for a stated change to replace it, and how near if both name what changed: "billing" in "We moved
# billing from A to B" and in "We use A for billing, because …", where the reason leads the model elsewhere.
SUPERSEDED, SUBJECT = 0.4, 0.25
# How near two statements must be, from 0 (strangers) to 1 (the same), to answer or oppose one another by their words. Set by hand
# on stories.
ANSWERED, OPPOSED = 0.35, 0.55
FIRM = 0.6  # confidence of a statement that may contradict another: a guess contradicts nothing

STATED = (
    "decision",
    "conclusion",
    "solution",
    "fact",
    "preference",
    "pattern",
    "architecture",
    "gotcha",
)
OPEN = ("question", "problem", "todo")  # what can be answered, solved, done
LESS_TRUSTED, OLDER, UNSURE = "less trusted", "older", "not sure"  # why nothing was done
BELIEVED = "believe"  # the word that history keeps when a memory is trusted more than before


class Neighbour(NamedTuple):
    """A known memory and its cosine. What a cosine means depends on the model: `unrelated` is what it gives to strangers."""

    memory: Memory
    similarity: float
    unrelated: float = 0.0

    @property
    def nearness(self) -> float:
        """0 for strangers, 1 for the same text."""
        return (self.similarity - self.unrelated) / (1 - self.unrelated)


class Verdict(NamedTuple):
    """What is to become of one new memory: the known one that it repeats, or those that it replaces, settles and is related
    to, and what it may mean for others without anything being changed."""

    duplicate: Neighbour | None = None
    supersedes: tuple[str, ...] = ()
    settles: tuple[str, ...] = ()  # questions answered, problems solved, to-dos done
    relations: tuple[tuple[str, str], ...] = ()  # (type, id of the known memory)
    proposals: tuple[Proposal, ...] = ()


class Effects(NamedTuple):
    """What a verdict changes: parts of a batch."""

    change: tuple[Change, ...] = ()
    relate: tuple[Relation, ...] = ()


# One statement


def holds_one_statement(text: str, longest: int = LONGEST) -> bool:
    """Whether a text can be one statement. A long text holds many, and which of them is meant nobody knows."""
    return len(text) <= longest and "\n" not in text.strip()


def take_headline(text: str) -> str:
    """What a text says first and foremost: all of a statement, the first sentence of more."""
    if holds_one_statement(text):
        return text
    first = text.strip()[:LONGEST].split("\n")[0]
    end = re.search(r"[.!?](?=\s)", first)
    return first[: end.end()] if end else first


# Trust: the one rule of who may replace whom. Every way in goes through it.


def why_not(new: Memory, old: Memory, explicit: bool = False) -> str:
    """Why a new statement may not replace a known one; nothing if it may.

    What is less trusted never replaces. Neither does what was said earlier, unless somebody says so outright. Handoffs
    are no statements but the state of work: an agent that works on leaves the next one, whoever left the last."""
    believed = old.trust
    if new.kind == old.kind == "handoff":
        believed = min(believed, TRUST["agent"])
    if new.trust < believed:
        return LESS_TRUSTED
    return OLDER if new.created_at < old.created_at and not explicit else ""


def may_settle(new: Memory, old: Memory) -> bool:
    """Whether a statement may close what is open: an agent may report what was done; what is on nobody's word may not."""
    return new.trust >= min(old.trust, TRUST["agent"]) and new.created_at >= old.created_at


def needed_to_complete(todo: str, report: str, agent: bool = False) -> float:
    """How probably a report must complete a to-do for it to be done. What an agent says is often no report; what a to-do calls by
    their numbers ("H-01", "#73") is done by a report of these, and not by one of others."""
    shared = count_shared_words(todo, report)
    idle = agent and not tells_of_work(report.lower())
    if idle or not shared or other_tickets(todo, report):
        return NEVER
    wanted = find_tickets(todo)
    if wanted and wanted <= find_tickets(report):
        return ALWAYS
    if agent:
        return BY_AGENT
    return COMPLETES if shared > 1 else ONE_SHARED


# The verdict


def reconcile(
    new: Memory,
    neighbours: Sequence[Neighbour],
    *,
    threshold: float | None,
    judged: Mapping[str, Judgement] | None = None,
    explicit: Sequence[Memory] = (),
    last: str | None = None,
) -> Verdict:
    """What a new memory means for its neighbours, nearest first. `threshold` is the cosine from which the same words are a
    duplicate, None if duplicates are wanted; `judged` what the judge says of each neighbour it was asked about, the earlier of the two
    first; `explicit` what whoever told it says that it replaces; `last` the id of what was told right before it, if that is known."""
    judged = judged or {}
    for neighbour in neighbours if threshold is not None else ():
        if _repeats(new, neighbour, threshold or 0.0, judged.get(neighbour.memory.id)):
            return Verdict(duplicate=neighbour)
    found = _Found(new, last)
    for old in explicit:
        found.replace(old, explicit=True)
    for neighbour in neighbours:
        old = neighbour.memory
        if old.superseded_by or old.id == new.id or is_evidence(old):
            continue
        judgement = judged.get(old.id)
        if found.stands(judgement) and found.changes(neighbour):
            found.replace(old)
        elif judgement is not None and old.created_at <= new.created_at:
            found.judge(old, judgement)
    return found.verdict()


class _Found:
    """The verdict as it grows: at most one relation of a kind but for answers, none to the same memory twice."""

    def __init__(self, new: Memory, last: str | None) -> None:
        self.new, self.last = new, last
        self.on_the_way = new.metadata.get("role") == "assistant"  # an agent said it as it worked
        self.change = find_change(take_headline(new.content))
        self.supersedes: list[str] = []
        self.settles: list[str] = []
        self.relations: list[tuple[str, str]] = []
        self.proposals: list[Proposal] = []

    def is_known(self, id: str) -> bool:
        others = [*(other for _, other in self.relations), *(one.id for one in self.proposals)]
        return id in (*self.supersedes, *self.settles, *others)

    def stands(self, judgement: Judgement | None) -> bool:
        """Whether a stated change ("from A to B", and the known one speaks of A) counts. A judge that is sure that the known one goes on
        to hold, or speaks of something else, is heard against it; for the nearest that speaks of A it must be surer."""
        if judgement is None:
            return True
        strange = RELATES if self.supersedes else STRANGE
        needed = {"same": RELATES, "refines": RELATES, "unrelated": strange}
        return judgement.probability < needed.get(judgement.relation, 2.0)

    def changes(self, neighbour: Neighbour) -> bool:
        """Whether the new memory states a change from one thing to another, and a known one speaks of the former."""
        if self.change is None or self.new.kind == "context":  # what is only told on the way
            return False
        known, (before, after) = neighbour.memory.content, self.change
        if not holds_one_statement(known, 2 * LONGEST):
            return False
        near = SUBJECT if share_subject(self.new.content, known, self.change) else SUPERSEDED
        return (
            neighbour.nearness >= near
            and mentions(known, before)
            and not (after and mentions(known, after))
        )

    def replace(self, old: Memory, explicit: bool = False, probability: float = 1.0) -> None:
        if self.is_known(old.id):
            return
        if reason := why_not(self.new, old, explicit):
            self.propose("replaces", old, reason, probability)
        else:
            self.supersedes.append(old.id)

    def settle(self, old: Memory, relation: str, probability: float = 1.0) -> None:
        """A question, a problem or a to-do is closed. What stands open without being of such a kind is replaced; an agent that carries
        out what a user decided does not dispute it."""
        if old.kind not in OPEN:
            if why_not(self.new, old) != LESS_TRUSTED:
                self.replace(old, probability=probability)
        elif old.answered or asks(self.new.content) or self.is_known(old.id):
            return
        elif may_settle(self.new, old):
            self.settles.append(old.id)
        else:
            self.propose(relation, old, LESS_TRUSTED, probability)

    def propose(self, relation: str, old: Memory, reason: str, probability: float) -> None:
        """Tells what may be meant and is not done. What an agent says on its way carries out what the user said in the same conversation, and
        is meant for little that it resembles: of 90 such proposals of 38 conversations 16 were right (bench/LOG.md, 2026-11-17)."""
        if not (self.on_the_way and (reason == UNSURE or are_told_together(self.new, old))):
            self.proposals.append(Proposal(relation, old.id, reason, round(probability, 3)))

    def judge(self, old: Memory, judgement: Judgement) -> None:
        if self.is_known(old.id) or other_part(self.new.content, old.content):
            return
        relation, probability = self._name_change(old, judgement)
        if probability < MAYBE:
            self._beside(old, judgement.relation, judgement.probability)
        elif probability < self._needed_for(relation, old):
            self.propose(relation, old, UNSURE, probability)
        elif relation == "replaces":
            self.replace(old, probability=probability)
        else:
            self.settle(old, relation, probability)

    def _name_change(self, old: Memory, judgement: Judgement) -> tuple[str, float]:
        """The change of an old memory that is most probable. What answers or does closes what is open by both together, and a plan that is
        dropped need not be done any more; what the judge calls the same though the words tell it apart may replace it."""
        shares = judgement.probabilities
        apart = judgement.relation == "same" and tell_apart(self.new.content, old.content)
        replaced = max(shares["replaces"], MAYBE if apart else 0.0)
        settled = shares["completes"] + (shares["answers"] if old.kind in OPEN else 0.0)
        if old.kind == "question":
            return "answers", settled
        if old.kind == "todo":
            dropped = 0.0 if is_tentative(self.new.content) else shares["replaces"]
            return "completes", settled + dropped
        return max(("replaces", replaced), ("completes", settled), key=itemgetter(1))

    def _needed_for(self, relation: str, old: Memory) -> float:
        """How sure the judge must be. What is only thought, or speaks of a thing of another number, replaces nothing, nor does what a
        conversation made of a trap end what it found out about it; what is to be done itself completes nothing."""
        mended = old.kind == "gotcha" and self.new.kind in ("solution", "decision")
        if mended and are_told_together(self.new, old):
            return NEVER
        if relation == "replaces":
            apart = other_number(old.content, self.new.content)
            return NEVER if apart or is_tentative(self.new.content) else REPLACES
        if relation == "answers":
            named = count_shared_words(old.content, self.new.content) or old.id == self.last
            listed = self.on_the_way and self.new.kind == "todo"  # an item of an agent's list
            return NEVER if listed else ANSWERS if named else UNNAMED
        if self.new.kind in ("todo", "question") or other_tickets(old.content, self.new.content):
            return NEVER
        agent = self.on_the_way and old.kind in ("todo", "problem")
        return needed_to_complete(old.content, self.new.content, True) if agent else COMPLETES

    def _beside(self, old: Memory, relation: str, probability: float) -> None:
        """What stands beside the old one: it contradicts it, adds to it, or says the same and was kept all the same."""
        if probability < RELATES:
            if relation == "same":
                self.propose("same", old, UNSURE, probability)
        elif relation == "contradicts" and why_not(self.new, old):
            self.replace(old, probability=probability)
        elif relation == "contradicts" and not self.on_the_way:
            self.relations.append(("contradicts", old.id))
        elif relation == "refines":
            self.relations.append(("builds_on", old.id))
        elif relation == "same" and old.trust < self.new.trust:
            self.replace(old)  # the user's own words instead of an agent's

    def verdict(self) -> Verdict:
        return Verdict(
            None,
            tuple(self.supersedes),
            tuple(self.settles),
            tuple(self.relations),
            tuple(self.proposals),
        )


def _repeats(
    new: Memory, neighbour: Neighbour, threshold: float, judgement: Judgement | None
) -> bool:
    old = neighbour.memory
    if _leaves_with_its_source(new, old):
        return False
    if neighbour.similarity >= threshold and say_the_same(new.content, old.content):
        # "We switched from A to B" is near to "We use A" and yet its opposite.
        return find_change(new.content) is None or find_change(old.content) is not None
    return (
        judgement is not None
        and judgement.relation == "same"
        and judgement.probability >= SAME
        and new.trust <= old.trust
        and asks(new.content) == asks(old.content)
        and not tell_apart(new.content, old.content)
        and REDACTED not in new.content  # nobody knows whether the same stood there
    )


def _leaves_with_its_source(new: Memory, old: Memory) -> bool:
    """Whether the known one is a passage of a file that is believed less: it goes when the file does, the new one stays."""
    return old.trust < new.trust and old.source_type in ("markdown", "repomap", "analysis", "git")


def is_evidence(memory: Memory) -> bool:
    """Whether it is a turn of a conversation, kept as it was said: nothing repeats it, and nothing replaces it."""
    return memory.kind == "context" and memory.session is not None


def are_told_together(one: Memory, other: Memory) -> bool:
    """Whether both are of one conversation, in which each hears the other."""
    return one.session is not None and one.session == other.session


# By the words alone, where no judge is at hand


def is_answered(old: Memory, new: Neighbour) -> bool:
    """Whether a later statement near to a question or a problem settles it, by their kinds and words. What is on nobody's word
    settles nothing."""
    settling = {"question": ("decision", "solution", "fact"), "problem": ("solution",)}
    return (
        new.memory.trust >= TRUST["agent"]
        and not old.answered
        and new.memory.kind in settling.get(old.kind, ())
        and new.nearness >= ANSWERED
        and count_shared_words(new.memory.content, old.content) > 0
    )


def are_opposed(one: Memory, other: Memory) -> bool:
    """Whether two near statements of one kind exchange a word or a denial."""
    return (
        min(one.confidence, other.confidence) >= FIRM
        and one.kind == other.kind
        and one.kind in STATED
        and count_shared_words(one.content, other.content) > 0
        and (contrasts(one.content, other.content) or differ_in_denial(one.content, other.content))
        and not say_the_same(one.content, other.content)
    )


# What a verdict changes


def apply_verdict(new: Memory, verdict: Verdict, waiting: Sequence[Memory] = ()) -> Effects:
    """What a verdict changes. What is known already stands for what repeats it; a person who repeats what was believed less
    before stands up for it: it is believed as they are, and replaces what it had been proposed to replace (`waiting`)."""
    stands, gone, lifted = new, list(verdict.supersedes), []
    if verdict.duplicate is not None:
        stands = verdict.duplicate.memory
        if new.trust > stands.trust and not is_evidence(stands):
            lifted = [Change(stands.id, BELIEVED, {"trust": new.trust})]
            stands = stands._replace(trust=new.trust)
            gone += [old.id for old in waiting if not why_not(stands, old)]
    proposed = [
        Relation(stands.id, one.id, type)
        for one in verdict.proposals
        if one.relation != "same"
        for type in (("may_replace",) if one.reason == UNSURE else ("may_replace", "contradicts"))
    ]
    return Effects(
        (
            *lifted,
            *(supersede(id, stands) for id in gone),
            *(Change(id, "answer", {"answered": True}) for id in verdict.settles),
        ),
        (
            *(Relation(stands.id, id, "supersedes") for id in gone),
            *(Relation(stands.id, id, "answers") for id in verdict.settles),
            *(Relation(stands.id, id, type) for type, id in verdict.relations),
            *proposed,
        ),
    )
