"""Tending memory: what is said twice, what disagrees, what has been answered, what has served its time.

`duplicates` and `contradictions` list candidates for somebody to decide. `plan` works out what `consolidate` would do, and
`apply` does it: everything through history, so that `restore` undoes each step. Documents, code and the turns of
conversations repeat themselves by nature and are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from bethink.api import Bethink
from bethink.features import language
from bethink.ingest.reconcile import OPPOSED, Neighbour, opposed, rule, why_not
from bethink.ingest.wording import same_words, shared
from bethink.llm.base import Model
from bethink.types import STATEMENTS, Batch, Change, Filter, Memory, Relation

COMPARED = STATEMENTS
ALIKE = 0.6  # nearness from which two statements are worth a look
PAGE = 256
NEAREST = 8  # that a statement is compared with
ASKED = 20  # pairs that a language model is asked about in one run
SAME, MARKED, PROPOSED = "says the same", "marked as contradicting", "may replace the other"
DISPUTES = ("contradicts", "may_replace")  # relations that wait for somebody to decide

Progress = Callable[[int, int], None]


class Pair(NamedTuple):
    """Two memories that somebody should look at: the one to keep first."""

    keep: Memory
    other: Memory
    similarity: float
    reason: str


class Step(NamedTuple):
    """One thing that consolidation would do, and why."""

    action: str  # merge, contradict, answer, expire, retire
    memories: tuple[Memory, ...]
    reason: str
    text: str = ""  # what the first of merged memories says from then on, where it changes


def duplicates(memory: Bethink, *, limit: int = 50, progress: Progress | None = None) -> list[Pair]:
    """Statements that say the same or nearly so, the surest first."""
    found = [
        pair for one, near in _neighbourhoods(memory, progress) for pair in twins(memory, one, near)
    ]
    found.sort(key=lambda pair: (pair.reason != SAME, -pair.similarity))
    return found[:limit]


def twins(memory: Bethink, one: Memory, near: Sequence[Neighbour]) -> list[Pair]:
    """Those older ones of its neighbours that say the same as a statement, or nearly so, and are not related to it."""
    found = []
    for neighbour in near:
        other = neighbour.memory
        if neighbour.nearness < ALIKE or other.id >= one.id or _related(memory, one, other):
            continue
        keep, drop = _ordered(one, other)
        sure = neighbour.similarity >= memory.config.dedup_threshold and same_words(
            drop.content, keep.content
        )
        found.append(
            Pair(
                keep,
                drop,
                neighbour.similarity,
                SAME if sure else "much alike, but something differs",
            )
        )
    return found


def contradictions(
    memory: Bethink, *, limit: int = 50, progress: Progress | None = None
) -> list[Pair]:
    """Statements that disagree: those known to, and those that look so. The more trusted stands first, then the newer."""
    found: dict[tuple[str, str], Pair] = {}
    for one, near in _neighbourhoods(memory, progress):
        for pair in opposites(memory, one, near):
            if pair.reason in (MARKED, PROPOSED):
                found[_key(pair.keep, pair.other)] = pair
            else:
                found.setdefault(_key(pair.keep, pair.other), pair)
    known = (MARKED, PROPOSED)
    return sorted(found.values(), key=lambda pair: (pair.reason not in known, -pair.similarity))[
        :limit
    ]


def opposites(memory: Bethink, one: Memory, near: Sequence[Neighbour]) -> list[Pair]:
    """What is known to contradict a statement or was proposed in its place, and those of its neighbours that seem to."""
    known = {
        end: MARKED if relation.type == "contradicts" else PROPOSED
        for relation in sorted(
            memory.store.relations([one.id]), key=lambda each: each.type, reverse=True
        )
        if relation.type in DISPUTES
        for end in (relation.source, relation.target)
    }
    found = [
        Pair(*_preferred(one, other), 1.0, known[other.id])
        for other in memory.store.get(sorted(known.keys() - {one.id}))
        if other.deleted_at is None and other.superseded_by is None and other.scope in memory.scopes
    ]
    return found + [
        Pair(*_preferred(one, neighbour.memory), neighbour.similarity, "seems to say otherwise")
        for neighbour in near
        if neighbour.memory.id not in known
        and neighbour.nearness >= OPPOSED
        and opposed(one, neighbour.memory)
    ]


def plan(memory: Bethink, *, progress: Progress | None = None) -> list[Step]:
    """What consolidation would do. Changes nothing."""
    steps: list[Step] = []
    merged: set[str] = set()
    alike = duplicates(memory, limit=10_000, progress=progress)
    for pair in alike:
        if pair.reason == SAME and not {pair.keep.id, pair.other.id} & merged:
            merged.add(pair.other.id)
            steps.append(
                Step("merge", (pair.keep, pair.other), f"{pair.reason} ({pair.similarity:.2f})")
            )
    for step in _joined(
        memory, [pair for pair in alike if not {pair.keep.id, pair.other.id} & merged]
    ):
        if not {one.id for one in step.memories} & merged:
            merged.update(one.id for one in step.memories)
            steps.append(step)
    doubtful = [
        pair
        for pair in contradictions(memory, limit=10_000)
        if pair.reason not in (MARKED, PROPOSED) and not {pair.keep.id, pair.other.id} & merged
    ]
    steps += _judged(memory, doubtful)
    steps += [step for step in _answered(memory) if not {one.id for one in step.memories} & merged]
    return steps + _expired(memory) + _unused(memory)


def apply(memory: Bethink, steps: Sequence[Step]) -> int:
    """Does what was planned; but for texts that change, in one transaction. What changed meanwhile is left alone. Returns the number of
    steps done."""
    now = memory.clock()
    current = {
        one.id: one for one in memory.store.get([one.id for step in steps for one in step.memories])
    }
    change: list[Change] = []
    relate: list[Relation] = []
    done = 0
    for step in steps:
        if any(
            one.id not in current or current[one.id].updated_at != one.updated_at
            for one in step.memories
        ):
            continue
        done += 1
        first, *rest = step.memories
        if step.action == "merge":
            if step.text:
                memory.update(first.id, content=step.text)
            change.append(Change(rest[0].id, "merge", {"superseded_by": first.id, "valid_to": now}))
            relate.append(Relation(first.id, rest[0].id, "supersedes"))
        elif step.action == "contradict":
            relate.append(Relation(first.id, rest[0].id, "contradicts"))
        elif step.action == "answer":
            relate.append(Relation(first.id, rest[0].id, "answers"))
            change.append(Change(rest[0].id, "answer", {"answered": True}))
        else:
            change += [Change(one.id, step.action, {"deleted_at": now}) for one in step.memories]
    if change or relate:
        memory.store.write(
            Batch(at=now, actor=memory.actor, change=tuple(change), relate=tuple(relate))
        )
    return done


def _joined(memory: Bethink, pairs: Sequence[Pair]) -> list[Step]:
    """Statements that say nearly the same put into one text, where a language model is set and finds one that loses nothing. What is
    trusted differently is kept apart: a merged text would lend one's trust to the other."""
    model = language.opened(memory) if memory.config.llm and pairs else None
    if model is None:
        return []
    fit = [
        pair
        for pair in pairs
        if pair.keep.trust == pair.other.trust and pair.keep.scope == pair.other.scope
    ]
    asked = [pair for pair in fit if not opposed(pair.keep, pair.other)][:ASKED]
    return [step for pair in asked if (step := _one_text(model, pair))]


def _one_text(model: Model, pair: Pair) -> Step | None:
    text = language.merged(model, pair.keep, pair.other)
    return (
        Step("merge", (pair.keep, pair.other), f"one text for both: {text}", text) if text else None
    )


def _judged(memory: Bethink, pairs: Sequence[Pair]) -> list[Step]:
    """What becomes of statements that seem to disagree: marked, unless a language model that is set knows better."""
    model = language.opened(memory) if memory.config.llm and pairs else None
    steps = []
    for number, pair in enumerate(pairs):
        verdict = (
            language.verdict(model, pair.keep, pair.other) if model and number < ASKED else None
        )
        reason = f"{pair.reason} ({pair.similarity:.2f})"
        if verdict is None or verdict.relation == "contradicts":
            steps.append(
                Step("contradict", (pair.keep, pair.other), verdict.why if verdict else reason)
            )
        elif verdict.relation == "supersedes":
            keep, gone = (
                (pair.other, pair.keep) if verdict.newer == "second" else (pair.keep, pair.other)
            )
            action = "contradict" if why_not(keep, gone, explicit=True) else "merge"
            steps.append(Step(action, (keep, gone), verdict.why or reason))
        elif verdict.relation == "same" and model and pair.keep.trust == pair.other.trust:
            steps += [step] if (step := _one_text(model, pair)) else []
    return steps


def _answered(memory: Bethink) -> list[Step]:
    steps = []
    for one, near in _neighbourhoods(memory, None, ("question", "problem")):
        if one.answered:
            continue
        for neighbour in near:
            other = neighbour.memory
            if (
                other.created_at > one.created_at
                and rule(other, neighbour._replace(memory=one)) == "answers"
            ):
                steps.append(
                    Step("answer", (other, one), f"answered later ({neighbour.similarity:.2f})")
                )
                break
    return steps


def _expired(memory: Bethink) -> list[Step]:
    now = memory.clock()
    gone = [
        one
        for one in memory.export(memory.filter(include_expired=True))
        if one.expires_at and one.expires_at <= now
    ]
    return [Step("expire", (one,), f"expired on {one.expires_at:%Y-%m-%d}") for one in gone]


def _unused(memory: Bethink) -> list[Step]:
    """Turns of conversations that are old, were never used and hold nothing that an idea cites."""
    days = memory.config.keep_context_days
    if not days:
        return []
    until = memory.clock() - timedelta(days=days)
    cited = {
        one.metadata.get("turn")
        for one in memory.export(
            memory.filter(kinds=tuple(kind for kind in COMPARED), include_superseded=True)
        )
        if one.session
    }
    old = memory.export(memory.filter(kinds=("context",), until=until))
    idle = [
        one
        for one in old
        if one.session
        and not one.access_count
        and not one.usefulness
        and one.metadata.get("turn") not in cited
    ]
    return [
        Step(
            "retire",
            tuple(idle[at : at + PAGE]),
            f"turns older than {days} days that nothing was taken from",
        )
        for at in range(0, len(idle), PAGE)
    ]


def _neighbourhoods(
    memory: Bethink, progress: Progress | None, kinds: Sequence[str] = COMPARED
) -> Iterator[tuple[Memory, list[Neighbour]]]:
    """Each statement with those nearest to it. Vectors come out of the cache; without a model, words have to do."""
    everything = list(memory.export(memory.filter(kinds=tuple(kinds))))
    filter = Filter(scopes=memory.scopes, kinds=COMPARED, now=memory.clock())
    for start in range(0, len(everything), PAGE):
        page = everything[start : start + PAGE]
        yield from neighbourhoods(memory, page, filter)
        if progress:
            progress(start + len(page), len(everything))


def neighbourhoods(
    memory: Bethink,
    page: Sequence[Memory],
    filter: Filter,
    number: int = NEAREST,
    quick: bool = False,
) -> Iterator[tuple[Memory, list[Neighbour]]]:
    """Each of these statements with those that are nearest to it among what the filter shows; with `quick` only those that are near
    enough to say the same or to disagree."""
    embedder = memory.embedder
    vectors: dict[str, Any] = memory.vectors_of(page).get("vectors", {})
    least = (
        embedder.unrelated + min(ALIKE, OPPOSED) * (1 - embedder.unrelated)
        if quick and embedder
        else None
    )
    for one in page:
        if embedder and one.id in vectors:
            ranking = memory.store.nearest(
                vectors[one.id][0], embedder.model, filter, number, least
            )
            known = memory.store.load([key for key, _ in ranking.items])
            near = [
                Neighbour(known[key], min(1.0, similarity), embedder.unrelated)
                for key, similarity in ranking.items
                if key in known
            ]
        else:
            near = _by_words(memory, one, filter)
        yield one, [neighbour for neighbour in near if neighbour.memory.id != one.id]


def _by_words(memory: Bethink, one: Memory, filter: Filter) -> list[Neighbour]:
    """Nearness where there is no model: the share of telling words that two statements have in common."""
    hits = memory.search(
        one.content[:300], filter=filter, mode="keyword", limit=8, related=False
    ).hits
    return [Neighbour(hit.memory, _overlap(one, hit.memory)) for hit in hits]


def _overlap(one: Memory, other: Memory) -> float:
    common = shared(one.content, other.content)
    return common / max(
        1, max(shared(one.content, one.content), shared(other.content, other.content))
    )


def _related(memory: Bethink, one: Memory, other: Memory) -> bool:
    return any(
        other.id in (relation.source, relation.target)
        for relation in memory.store.relations([one.id])
    )


def _ordered(one: Memory, other: Memory) -> tuple[Memory, Memory]:
    """The one to keep first: the more trusted, then the more used, then the fuller, then the newer."""
    return (one, other) if _worth(one) >= _worth(other) else (other, one)


def _worth(memory: Memory) -> tuple[float, ...]:
    return (
        memory.trust,
        memory.usefulness + memory.access_count,
        len(memory.content),
        memory.created_at.timestamp(),
    )


def _preferred(one: Memory, other: Memory) -> tuple[Memory, Memory]:
    """The more trusted first, of two on the same word the newer."""
    mine, theirs = (one.trust, one.created_at), (other.trust, other.created_at)
    return (one, other) if mine >= theirs else (other, one)


def _key(one: Memory, other: Memory) -> tuple[str, str]:
    return (one.id, other.id) if one.id < other.id else (other.id, one.id)
