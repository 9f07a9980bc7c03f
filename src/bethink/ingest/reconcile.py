"""Effects of a new memory on known ones: it repeats, replaces, marks, answers or completes them. Pure.

A guess may change an order and add a remark; only a certain signal retires, merges or closes. Certain are: an explicit word
(`supersedes`), a text that itself says the old value is over, and the judge at a measured precision (`RETIRES`). Everything
less certain leaves both statements valid and marks the older one (`may_replace`): it is shown after the newer one, with a remark.
Trust has the last word: a statement that is less trusted, or older, changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bethink.ingest.effects import EXTENDS, Effect
from bethink.ingest.wording import (
    adds_nothing,
    are_equivalent,
    count_shared_words,
    differ_in_denial,
    ends_old_value,
    find_quantities,
    find_tickets,
    is_correction,
    makes_one_claim,
    other_number,
    other_part,
    other_tickets,
    states_change_of,
)
from bethink.judge import asks
from bethink.language.change import find_change
from bethink.language.detect import is_english
from bethink.language.hedging import is_tentative
from bethink.language.reports import REPORTS_WORK
from bethink.model import (
    FILES,
    OPEN_KINDS,
    READ_BY,
    TRUST,
    Change,
    Memory,
    Proposal,
    Relation,
    is_inferred,
    supersede,
)

# Probabilities from which an effect counts, chosen on 114 written histories and 2,674 single pairs, each weighed by a regression that
# never saw it (bench/LOG.md, 2026-11-18; `python bench/judge/effects.py fit`):
RETIRES = 0.95  # replaces, where the old text makes one claim: 109 right, 1 wrong
MARKS = 0.4  # replaces or changes: precision .79, recall .81
ORDERS = 0.07  # the same, enough to show the newer one first: recall .93
# The same, with no detail lost: in histories 52 right, 2 wrong; of single pairs, many of them opposites, 176 right, 12 wrong. The second
# where one of two texts denies something and the other does not.
SAME, SAME_DENIED = 0.88, 0.97
ANSWERS = 0.5  # of a question that it names or follows: precision .93, recall .90
COMPLETES = 0.7  # of a to-do that it names: precision .93, recall .77
CONTRADICTS = 0.8  # replaces or changes, to list the pair for a person: precision .92
BUILDS_ON = 0.75  # the judge alone, for a relation that changes nothing: set by hand
ALWAYS, NEVER = 0.0, 1.01  # by definition
REDACTED = "[REDACTED:"
# Characters of one statement. Of the pairs that the judge learned 99.9 % are shorter.
LONGEST_COMPARED = 320

STATED_KINDS = (
    "decision",
    "conclusion",
    "solution",
    "fact",
    "preference",
    "pattern",
    "architecture",
    "gotcha",
)
# Kinds that a statement can close: a failure is closed by a fix that was seen to work.
OPEN = tuple(kind for kind in OPEN_KINDS if kind != "failure")
LESS_TRUSTED, OLDER, UNSURE = "less trusted", "older", "not sure"  # reasons for a proposal
BELIEVED = "believe"  # action in history: a memory is trusted more than before
REPEAT = "repeat"  # action in history: the same statement in other words, kept as a version
REWORD = "reword"  # action in history: a better reader's words for the same statement


class Neighbour(NamedTuple):
    """A known memory and its cosine. `unrelated` is the cosine that the model gives to strangers."""

    memory: Memory
    similarity: float
    unrelated: float = 0.0

    @property
    def nearness(self) -> float:
        """0 for strangers, 1 for the same text."""
        return (self.similarity - self.unrelated) / (1 - self.unrelated)


class Verdict(NamedTuple):
    """Effects of one new memory: the known one it repeats, or those it retires, closes, marks, relates."""

    duplicate: Neighbour | None = None
    supersedes: tuple[str, ...] = ()
    settles: tuple[str, ...] = ()  # questions answered, problems solved, to-dos done
    marks: tuple[str, ...] = ()  # older statements about the same thing, still valid
    marked_by: tuple[str, ...] = ()  # later statements that it, read after them, cannot change
    relations: tuple[tuple[str, str], ...] = ()  # (type, id of the known memory)
    proposals: tuple[Proposal, ...] = ()
    similar: Neighbour | None = None  # much like it, and not the same


class BatchParts(NamedTuple):
    """The changes of a verdict, as parts of a batch."""

    change: tuple[Change, ...] = ()
    relate: tuple[Relation, ...] = ()


# One statement


def holds_one_statement(text: str, longest: int = LONGEST_COMPARED) -> bool:
    """Return True if a text can be one statement. A long text holds many, and nobody knows which is meant."""
    return len(text) <= longest and "\n" not in text.strip()


def take_headline(text: str) -> str:
    """Return a statement whole, of a longer text its first sentence."""
    if holds_one_statement(text):
        return text
    first = text.strip()[:LONGEST_COMPARED].split("\n")[0]
    end = re.search(r"[.!?](?=\s)", first)
    return first[: end.end()] if end else first


def is_readable(new: Memory, old: Memory) -> bool:
    """Return True if the judge, which learned English alone, can be sure about two statements.

    Outside of English it may mark, at a precision of .77, and nothing more (bench/LOG.md, 2026-11-18).
    """
    return is_english(new.content) and is_english(old.content)


# Trust: the one rule of who may replace whom. Every way in goes through it.


def why_not(new: Memory, old: Memory, explicit: bool = False) -> str:
    """Return the reason why a new statement may not replace a known one, or "".

    A less trusted statement never replaces. Neither does an earlier one, unless the caller asks for it. Handoffs are the state of
    work, not statements: each agent leaves the next one.
    """
    believed = old.trust
    if new.kind == old.kind == "handoff":
        believed = min(believed, TRUST["agent"])
    if new.trust < believed:
        return LESS_TRUSTED
    return OLDER if new.created_at < old.created_at and not explicit else ""


def may_settle(new: Memory, old: Memory) -> bool:
    """Return True if a statement may close an open item: an agent's report may, a document may not.

    Pasted text may not either.
    """
    return new.trust >= min(old.trust, TRUST["agent"]) and new.created_at >= old.created_at


def needed_to_complete(todo: str, report: str, agent: bool = False) -> float:
    """Return the probability from which a report closes a to-do: never if the report does not name it."""
    if not count_shared_words(todo, report) or other_tickets(todo, report):
        return NEVER
    if agent and not REPORTS_WORK.holds(report):
        return NEVER
    wanted = find_tickets(todo)
    if wanted and wanted <= find_tickets(report):
        return ALWAYS
    return COMPLETES


# The verdict


def reconcile(
    new: Memory,
    neighbours: Sequence[Neighbour],
    *,
    threshold: float | None,
    effects: Mapping[str, Effect] | None = None,
    explicit: Sequence[Memory] = (),
    last: str | None = None,
    automatic: str = "full",
) -> Verdict:
    """Return the effects of a new memory on its neighbours, nearest first.

    `threshold` is the cosine from which the same words are a duplicate, None if duplicates are wanted. `effects` are the probabilities for
    each neighbour that was judged, the earlier statement as the old one. `explicit` are the memories that the author says it replaces,
    `last` is the id of the statement right before it. `automatic` limits what may happen (`model.AUTOMATIC`)."""
    effects = effects or {}
    if automatic != "off" and threshold is not None and not explicit:
        for neighbour in neighbours:
            readable = automatic == "full" and is_readable(new, neighbour.memory)
            judged = effects.get(neighbour.memory.id) if readable else None
            if _repeats(new, neighbour, threshold, judged):
                return Verdict(duplicate=neighbour)
    found = _Found(new, last, automatic)
    for old in explicit:
        found.replace(old, explicit=True)
    for neighbour in neighbours if automatic != "off" else ():
        old = neighbour.memory
        if old.superseded_by or old.id == new.id or is_evidence(old):
            continue
        found.weigh(neighbour, effects.get(old.id))
    return found.verdict(neighbours)


class _Found:
    """The verdict as it grows; no memory is affected twice."""

    def __init__(self, new: Memory, last: str | None, automatic: str) -> None:
        self.new, self.last, self.acts = new, last, automatic == "full"
        self.is_by_agent = new.metadata.get("role") == "assistant"
        self.supersedes: list[str] = []
        self.settles: list[str] = []
        self.marks: list[str] = []
        self.marked_by: list[str] = []
        self.relations: list[tuple[str, str]] = []
        self.proposals: list[Proposal] = []

    def is_known(self, id: str) -> bool:
        others = [*(other for _, other in self.relations), *(one.id for one in self.proposals)]
        return id in (*self.supersedes, *self.settles, *self.marks, *self.marked_by, *others)

    def weigh(self, neighbour: Neighbour, effect: Effect | None) -> None:
        """Take in what the new memory does to one neighbour."""
        old = neighbour.memory
        if self.is_known(old.id) or other_part(self.new.content, old.content):
            return
        stated = self._states_end(old)
        if effect is None:
            if stated:
                self.replace(old)
            elif self._states_change(old):
                self.mark(old)
            return
        if old.created_at > self.new.created_at:
            return
        changed = effect["replaces"] + effect["changes"]
        marks = changed >= (ORDERS if self._states_change(old) else MARKS)
        if old.kind in OPEN and (relation := self._closes(old, effect)):
            self.settle(old, relation)
        elif stated or self._surely_replaces(old, effect):
            self.replace(old)
        elif marks or is_correction(self.new.content, old.content):
            self.mark(old)
        elif changed >= ORDERS or effect["same"] >= SAME:
            self.relations.append(("relates_to", old.id))
        elif effect.get(EXTENDS, 0.0) >= BUILDS_ON:
            self.relations.append(("builds_on", old.id))

    def _states_end(self, old: Memory) -> bool:
        """Return True if the new text says that the old value is over, and the old text claims nothing else."""
        if self.new.kind == "context" or not holds_one_statement(old.content):
            return False
        return makes_one_claim(old.content) and ends_old_value(
            take_headline(self.new.content), old.content
        )

    def _states_change(self, old: Memory) -> bool:
        """Return True if the new text states a change of something that the old text mentions."""
        if self.new.kind == "context" or not holds_one_statement(old.content):
            return False
        return states_change_of(take_headline(self.new.content), old.content)

    def _surely_replaces(self, old: Memory, effect: Effect) -> bool:
        """Return True if the judge is certain: the same attribute of the same thing has another value."""
        new = self.new
        return (
            effect["replaces"] >= RETIRES
            and is_readable(new, old)
            and makes_one_claim(old.content)
            and _gives_other_quantity(new.content, old.content)
            and not is_tentative(new.content)
            and not other_number(old.content, new.content)
            and not _keeps_trap(new, old)
        )

    def _closes(self, old: Memory, effect: Effect) -> str:
        """Return how an open item is closed by a statement that names it, or ""."""
        new = self.new
        if old.answered or asks(new.content) or new.kind in ("question", "todo"):
            return ""
        if old.kind == "question":
            named = count_shared_words(old.content, new.content) or old.id == self.last
            return "answers" if named and effect["answers"] >= ANSWERS else ""
        # A report in the words of a to-do looks like a repetition of it.
        done = effect["completes"] + effect["same" if old.kind == "todo" else "answers"]
        needed = needed_to_complete(old.content, new.content, self.is_by_agent)
        return "completes" if done >= max(needed, ORDERS) else ""

    def replace(self, old: Memory, explicit: bool = False) -> None:
        """Retire a known memory, or mark it or propose to where that is not allowed."""
        if self.is_known(old.id):
            return
        reason, new = why_not(self.new, old, explicit), self.new
        deliberate = explicit or (new.trust >= TRUST["agent"] and not is_inferred(new))
        if not reason and deliberate and (explicit or self.acts):
            self.supersedes.append(old.id)
        elif reason == LESS_TRUSTED and deliberate:
            self.proposals.append(Proposal("replaces", old.id, reason))
        else:
            self.mark(old)

    def mark(self, old: Memory) -> None:
        """Mark a known memory as older than this one. Text of unknown origin marks nothing."""
        if self.new.trust < TRUST["agent"]:
            return
        if self.new.created_at < old.created_at:
            self.marked_by.append(old.id)
            return
        if is_tentative(self.new.content) or _keeps_trap(self.new, old):
            self.relations.append(("relates_to", old.id))
        elif is_inferred(self.new) and self.new.trust < old.trust:
            # Not shown as newer: the relation keeps it behind what is trusted more.
            self.relations.append(("may_replace", old.id))
        elif not self.is_known(old.id):
            self.marks.append(old.id)

    def settle(self, old: Memory, relation: str) -> None:
        """Close a question, a problem or a to-do, or propose to."""
        if self.acts and is_readable(self.new, old) and may_settle(self.new, old):
            self.settles.append(old.id)
        elif self.new.trust >= TRUST["agent"]:
            self.proposals.append(Proposal(relation, old.id, UNSURE))

    def verdict(self, neighbours: Sequence[Neighbour]) -> Verdict:
        similar = next((one for one in neighbours if _is_much_like(self.new, one)), None)
        return Verdict(
            None,
            tuple(self.supersedes),
            tuple(self.settles),
            tuple(self.marks),
            tuple(self.marked_by),
            tuple(self.relations),
            tuple(self.proposals),
            similar,
        )


def _gives_other_quantity(new: str, old: str) -> bool:
    """Return True if the old text gives no quantity, or the new one another ("five hundred" is 500)."""
    known = find_quantities(old)
    return not known or not find_quantities(new) <= known


def _keeps_trap(new: Memory, old: Memory) -> bool:
    """Return True if a conversation found a trap and this is its solution: the trap remains worth knowing."""
    mended = old.kind == "gotcha" and new.kind in ("solution", "decision")
    return mended and are_of_one_session(new, old)


def _repeats(new: Memory, neighbour: Neighbour, threshold: float, effect: Effect | None) -> bool:
    """Return True if a known memory says the same with no detail lost, and with the same trust."""
    old = neighbour.memory
    if new.content_hash and new.content_hash == old.content_hash:
        return not _leaves_with_its_source(new, old)
    if new.trust != old.trust or old.kind in OPEN or REDACTED in new.content:
        return (
            old.kind in OPEN and new.kind == old.kind and _is_duplicate(new, neighbour, threshold)
        )
    if _is_duplicate(new, neighbour, threshold):
        return True
    return (
        effect is not None
        and effect["same"] >= needed_to_merge(new.content, old.content)
        and asks(new.content) == asks(old.content)
        and adds_nothing(new.content, old.content)
    )


def needed_to_merge(one: str, other: str) -> float:
    """Return how probably two texts must say the same for one to become a version of the other."""
    return SAME_DENIED if differ_in_denial(one, other) else SAME


def _is_duplicate(new: Memory, neighbour: Neighbour, threshold: float) -> bool:
    """Return True if the texts are the same words. "We switched from A to B" only resembles "We use A"."""
    old = neighbour.memory
    return (
        new.trust == old.trust
        and neighbour.similarity >= threshold
        and are_equivalent(new.content, old.content)
        and (find_change(new.content) is None or find_change(old.content) is not None)
    )


# Nearness from which the answer to a write names the known statement: 2 % of unrelated pairs about one project are above (pairs of 2026-11).
LIKE = 0.75


def _is_much_like(new: Memory, neighbour: Neighbour) -> bool:
    old = neighbour.memory
    asks = (
        "question" in (new.kind, old.kind) and new.kind != old.kind
    )  # the answer repeats its words
    return neighbour.nearness >= LIKE and old.id != new.id and not asks


def _leaves_with_its_source(new: Memory, old: Memory) -> bool:
    """Return True if the known one is a less trusted passage of a file: it goes with its file."""
    return old.trust < new.trust and old.source_type in (*FILES, "git")


def is_evidence(memory: Memory) -> bool:
    """Return True for a turn of a conversation, kept word for word: nothing repeats or replaces it."""
    return memory.kind == "context" and memory.session is not None


def are_of_one_session(one: Memory, other: Memory) -> bool:
    """Return True if both are of one conversation."""
    return one.session is not None and one.session == other.session


# Whose words stay


def rate_reader(memory: Memory) -> int:
    """Return how well the author of a wording understood it: offline reader, language model, or a note."""
    return 2 if memory.source_type == "note" else int(READ_BY in memory.metadata)


def _words_better(new: Memory, old: Memory) -> bool:
    """Return True if a better reader says exactly what an idea of a conversation says, in other words."""
    return (
        new.content != old.content
        and new.trust == old.trust
        and old.source_type == "transcript"
        and not is_evidence(old)
        and rate_reader(new) > rate_reader(old)
        and adds_nothing(old.content, new.content)
    )


def _take_words(new: Memory, old: Memory) -> dict[str, object]:
    """Return the fields of an idea that come with new words. It goes on citing its turn."""
    fields: dict[str, object] = {
        "content": new.content,
        "content_hash": new.content_hash,
        "summary": new.summary,
        "keywords": new.keywords,
        "entities": tuple(dict.fromkeys((*new.entities, *old.entities))),
        "importance": max(new.importance, old.importance),
        "confidence": max(new.confidence, old.confidence),
    }
    if new.kind in STATED_KINDS and old.kind in STATED_KINDS:
        fields["kind"] = new.kind
    return fields


# The parts of a batch


def apply_verdict(new: Memory, verdict: Verdict, waiting: Sequence[Memory] = ()) -> BatchParts:
    """Return the changes of a verdict.

    A known memory stays in place of one that repeats it; other words are kept in its history. A person who repeats a less trusted text
    word for word vouches for it: it is trusted as they are, and retires the memories it was proposed to retire (`waiting`)."""
    remains, gone, changes = new, list(verdict.supersedes), list[Change]()
    if verdict.duplicate is not None:
        remains = verdict.duplicate.memory
        if new.trust > remains.trust and not is_evidence(remains):
            changes.append(Change(remains.id, BELIEVED, {"trust": new.trust}))
            remains = remains._replace(trust=new.trust)
            gone += [old.id for old in waiting if not why_not(remains, old)]
        if _words_better(new, remains):
            changes.append(Change(remains.id, REWORD, _take_words(new, remains)))
        elif new.content != remains.content:
            changes.append(Change(remains.id, REPEAT, {"content": new.content}))
    disputed = [
        Relation(remains.id, one.id, type)
        for one in verdict.proposals
        if one.relation == "replaces"
        for type in ("may_replace", "contradicts")
    ]
    return BatchParts(
        (
            *changes,
            *(supersede(id, remains) for id in gone),
            *(Change(id, "answer", {"answered": True}) for id in verdict.settles),
        ),
        (
            *(Relation(remains.id, id, "supersedes") for id in gone),
            *(Relation(remains.id, id, "answers") for id in verdict.settles),
            *(Relation(remains.id, id, "may_replace") for id in verdict.marks),
            *(Relation(id, remains.id, "may_replace") for id in verdict.marked_by),
            *(Relation(remains.id, id, type) for type, id in verdict.relations),
            *disputed,
        ),
    )
