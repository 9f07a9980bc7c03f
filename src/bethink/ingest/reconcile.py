"""What new memories mean for old ones. Pure: neighbours are given, a plan comes back.

A near duplicate adds nothing. But two statements can be near to an embedding model and still say different things: one
number, one "not", one name or one "before" apart, or the same words in another order. Those are kept: losing a memory is worse
than keeping two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from bethink.ingest.redact import unmarked
from bethink.text.words import STOP_WORDS
from bethink.types import TRUST, Change, Memory, Proposal, Relation, superseded

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_NEGATIONS = frozenset(
    "not no never none without cannot can't don't doesn't didn't won't isn't aren't wasn't shouldn't mustn't couldn't wouldn't nor neither disable disabled stop stopped avoid".split()
)
# A word or a number, without its spelling: "24h" is "24 h". Signs count where they tell something: C is not C++, < is not >.
_TOKEN = re.compile(r"(?:[^\W\d_]+(?:'[^\W\d_]+)?|(?<![\w-])-?\d+|\d+)[+#]*|[<>%$€£]|[!=]=")
_AUXILIARIES = frozenset("am is are be been being do does doing has have having will".split())
# Words that only hold a sentence together. "Was" and "had" are none of them: what was so is not what is so.
_FILLING = _AUXILIARIES | frozenset(
    "a an the that which who and also just please really now currently our".split()
)
# Words that turn what was said before them into something else.
_TURNING = frozenset(
    "after although before but except however if instead nor once only or otherwise rather though unless until when whenever while without".split()
)
# Stop words that make a difference where one of them stands for another.
_TELLING = frozenset(
    "after all any before both can could down few may might more most must off on only over same should since some under until up while".split()
)
# Words by another name that is as common.
_NAMES = {
    "administrator": "admin",
    "application": "app",
    "argument": "arg",
    "authentication": "auth",
    "configuration": "config",
    "database": "db",
    "development": "dev",
    "directory": "folder",
    "documentation": "docs",
    "environment": "env",
    "every": "each",
    "everyone": "everybody",
    "information": "info",
    "inside": "in",
    "into": "in",
    "javascript": "js",
    "kubernetes": "k8s",
    "maximum": "max",
    "minimum": "min",
    "onto": "on",
    "parameter": "param",
    "postgresql": "postgres",
    "production": "prod",
    "repository": "repo",
    "specification": "spec",
    "typescript": "ts",
    "upon": "on",
    "via": "by",
    "were": "was",
    "whenever": "when",
    "with": "by",
    "within": "in",
}
_ENDINGS = (
    ("ies", "y"),
    ("ied", "y"),
    ("es", ""),
    ("s", ""),
    ("ed", ""),
    ("ed", "e"),
    ("ing", ""),
    ("ing", "e"),
)

# What may be called old or new: a part of a clause, in which "3.8" and "next.js" keep their dots. Bounded, because a text
# may hold a hundred thousand words such as "from".
_THING = r"(?:[^,.;]|\.(?=\w)){1,61}"
_NAME = r"[\w.+#-]{1,40}"

# "switched from X to Y", "replaced X with Y", "Y instead of X": X stands before the arrow in each pair of groups.
_CHANGES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:switch(?:ed|ing)?|mov(?:ed|ing|e)|migrat(?:ed|ing|e)|chang(?:ed|ing|e)|convert(?:ed|ing)?|went)\s(?:\w+\s){{0,4}}?from\s(?P<old>{_THING}?)\s(?:over\s)?to\s(?P<new>{_THING})",
        rf"\b(?:replac(?:ed|ing|e)|swap(?:ped|ping)?)\s(?P<old>{_THING}?)\s(?:with|by|for)\s(?P<new>{_THING})",
        rf"\b(?P<new>{_NAME}(?:\s{_NAME})?)\s(?:instead of|rather than|in place of)\s(?P<old>{_THING})",
        rf"\bno longer (?:use|using|need|run|on|support)\s(?P<old>{_THING}?)(?:,|;|\.(?!\w)|\bbut\b|\band\b)(?P<new>(?:{_THING}|,)*)",
    )
)
# How near the old memory must be for a stated change to replace it, and how near if both name what changed: "billing" in "We moved
# billing from A to B" and in "We use A for billing, because …", where the reason leads the model elsewhere.
SUPERSEDED, SUBJECT = 0.4, 0.25
_CHANGING = frozenset(
    "switch switched move moved migrate migrated change changed convert converted replace replaced swap swapped use uses used using longer"
    " instead rather place went now team service project system everything data".split()
)
LESS_TRUSTED, OLDER, UNSURE = "less trusted", "older", "not sure"  # why nothing was replaced
BELIEVED = "believe"  # the word that history keeps when a memory is trusted more than before
LONG = 1000  # words beyond which two texts are not compared place by place


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
    """What is to become of one new memory: the near duplicate it repeats, the memories it replaces, and what it may
    mean for others without anything being changed."""

    duplicate: Neighbour | None = None
    supersedes: tuple[str, ...] = ()
    proposals: tuple[Proposal, ...] = ()


class Effects(NamedTuple):
    """What a verdict changes: parts of a batch."""

    change: tuple[Change, ...] = ()
    relate: tuple[Relation, ...] = ()


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


def weigh(
    new: Memory, verdict: Verdict, explicit: Sequence[str], known: Mapping[str, Memory]
) -> Verdict:
    """The verdict with what may be replaced; what may not becomes a proposal. `explicit` are the ids that whoever told
    the new memory says it replaces, `known` the memories that are spoken of."""
    allowed: list[str] = []
    proposals = list(verdict.proposals)
    for id in dict.fromkeys((*explicit, *verdict.supersedes)):
        reason = why_not(new, known[id], id in explicit) if id in known else ""
        if reason:
            proposals.append(Proposal("replaces", id, reason))
        else:
            allowed.append(id)
    return verdict._replace(supersedes=tuple(allowed), proposals=tuple(proposals))


def effects(new: Memory, verdict: Verdict, waiting: Sequence[Memory] = ()) -> Effects:
    """What a weighed verdict changes. A person who repeats what was believed less before stands up for it: it is believed as
    they are, and replaces what it had been proposed to replace (`waiting`)."""
    if verdict.duplicate is not None:
        known = verdict.duplicate.memory
        if new.trust <= known.trust or evidence(known):
            return Effects()
        lifted = known._replace(trust=new.trust)
        gone = [old for old in waiting if not why_not(lifted, old)]
        return Effects(
            (
                Change(known.id, BELIEVED, {"trust": new.trust}),
                *(superseded(old.id, known) for old in gone),
            ),
            tuple(Relation(known.id, old.id, "supersedes") for old in gone),
        )
    proposed = [
        Relation(new.id, one.id, type)
        for one in verdict.proposals
        for type in (("may_replace",) if one.reason == UNSURE else ("may_replace", "contradicts"))
    ]
    return Effects(
        tuple(superseded(id, new) for id in verdict.supersedes),
        (*(Relation(new.id, id, "supersedes") for id in verdict.supersedes), *proposed),
    )


def evidence(memory: Memory) -> bool:
    """Whether it is a turn of a conversation, kept as it was said: nothing repeats it, and nothing replaces it."""
    return memory.kind == "context" and memory.session is not None


def reconcile(
    memory: Memory, neighbours: Sequence[Neighbour], threshold: float, dedup: bool
) -> Verdict:
    change = changed(memory.content)
    if dedup:
        for neighbour in neighbours:
            repeats = (
                neighbour.similarity >= threshold
                and same(memory, neighbour.memory)
                and not _leaves_with_its_source(memory, neighbour.memory)
            )
            # "We switched from A to B" is near to "We use A" and yet its opposite.
            if repeats and (change is None or changed(neighbour.memory.content) is not None):
                return Verdict(duplicate=neighbour)
    if change is None:
        return Verdict()
    old, new = change
    return Verdict(
        supersedes=tuple(
            neighbour.memory.id
            for neighbour in neighbours
            if neighbour.nearness
            >= (
                SUBJECT
                if _share_subject(memory.content, neighbour.memory.content, change)
                else SUPERSEDED
            )
            and mentions(neighbour.memory.content, old)
            and not (new and mentions(neighbour.memory.content, new))
            and neighbour.memory.superseded_by is None
        )
    )


def _leaves_with_its_source(new: Memory, old: Memory) -> bool:
    """Whether the known one is a passage of a file that is believed less: it goes when the file does, the new one stays."""
    return old.trust < new.trust and old.source_type in ("markdown", "repomap", "analysis", "git")


def same(one: Memory, other: Memory) -> bool:
    """Whether the first of two near texts adds nothing: the second begins with what it says, word for word but for inflections,
    articles and punctuation, and does not turn it into something else. Both ask, or neither does. What was redacted in it may be
    anything, and so adds something."""
    mine, theirs = _said(one.content), _said(other.content)
    return (
        len(mine) <= len(theirs)
        and unmarked(one.content) == one.content
        and all(map(_variant, mine, theirs))  # in order: what calls is not what is called
        and (_TURNING | _NEGATIONS).isdisjoint(theirs[len(mine) :])
        and one.content.rstrip().endswith("?") == other.content.rstrip().endswith("?")
    )


def _said(text: str) -> list[str]:
    """The words of a text in order, without those that only hold it together."""
    found: list[str] = []
    for token in _TOKEN.findall(text.lower().replace("’", "'")):
        word, _, ending = token.partition("'")
        if ending == "t" or word == "cannot":  # doesn't, can't, won't
            found += [{"can": "can", "cannot": "can", "won": "will"}.get(word, word[:-1]), "not"]
        else:
            found.append(word)
    # In front of all others an auxiliary asks, or insists.
    return [
        word
        for at, word in enumerate(found)
        if word not in _FILLING or (not at and word in _AUXILIARIES)
    ]


def contrasts(new: str, old: str) -> bool:
    """Whether each has a word that the other lacks ("Monday" for "Friday"), or much was added.

    Minimal pairs are what embedding models see least, and they are exactly what a change of mind looks like. Variants of
    one word (auth, authentication) are no exchange."""
    mine, theirs = _content(new), _content(old)
    if max(len(mine), len(theirs)) > LONG:
        return not set(mine) <= set(theirs)
    in_mine, in_theirs = (frozenset().union(*map(_bases, words)) for words in (mine, theirs))
    fresh = [word for word in mine if _bases(word).isdisjoint(in_theirs)]
    lost = [word for word in theirs if _bases(word).isdisjoint(in_mine)]
    return bool(fresh and lost) or len(fresh) * 3 > max(3, len(mine))


def _content(text: str) -> list[str]:
    return [
        word
        for word in re.findall(r"\w+", text.lower())
        if word not in STOP_WORDS or word in _TELLING
    ]


def _variant(one: str, other: str) -> bool:
    return one == other or not _bases(one).isdisjoint(_bases(other))


@lru_cache(4096)
def _bases(word: str) -> frozenset[str]:
    """What a word may be an inflection of: retries and retried of retry, cached and caching of cache. A word that only begins like
    another (main, maintenance) is another word."""
    found = {word}
    for ending, restored in _ENDINGS:
        stem = word.removesuffix(ending)
        if (
            stem == word
            or word.endswith(("ss", "eed"))
            or len(stem + restored) < (2 if ending == "s" else 3)
        ):
            continue
        if ending in ("ed", "ing") and not any(map("aeiouy".__contains__, stem)):
            continue  # string, bring
        found.add(stem + restored)
        if ending in ("ed", "ing") and stem[-1:] == stem[-2:-1]:
            found.add(stem[:-1])  # stopped, running
    return frozenset(_NAMES.get(base, base) for base in found)


def negated(one: str, other: str) -> bool:
    """Whether one of two texts denies more than the other."""
    return _negations(one) != _negations(other)


def _negations(text: str) -> int:
    return sum(word.lower().replace("’", "'") in _NEGATIONS for word in _WORD.findall(text))


def changed(text: str) -> tuple[str, str] | None:
    """The old and the new thing of a stated change, or None."""
    spaced = " ".join(text.split())
    for pattern in _CHANGES:
        if found := pattern.search(spaced):
            old, new = found["old"].strip(), found["new"].strip()
            if 0 < len(old) <= 60:
                return old, new[:60]
    return None


def _share_subject(one: str, other: str, change: tuple[str, str]) -> bool:
    """Whether both name something beside the old and the new thing and the changing itself."""
    beside = {*_CHANGING, *_content(" ".join(change))}
    return not {*_content(one)}.isdisjoint({*_content(other)} - beside)


def mentions(text: str, thing: str) -> bool:
    """Whether a text speaks of a thing: all of its words stand there."""
    words = {word.lower() for word in re.findall(r"\w+", text)}
    wanted = [word.lower() for word in re.findall(r"\w+", thing)][:4]
    return bool(wanted) and all(word in words or word.rstrip("s") in words for word in wanted)
