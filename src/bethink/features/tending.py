"""Maintenance: duplicates, contradictions, answered questions and expired memories.

`duplicates` and `contradictions` list pairs for a person to decide, only where nine in ten are
right (bench/LOG.md, 2026-11-18). `plan_consolidation` plans the steps of `consolidate`, and
`apply_steps` applies them through history, so that `restore` undoes each step. Documents, code and
turns of conversations repeat themselves by nature and are not compared. Nor are statements of two
files, or those inferred by `analyze`; statements of one conversation were compared when it was
read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from operator import attrgetter
from typing import Any, NamedTuple

from bethink.api import Bethink
from bethink.ingest.compare import is_one_statement, nearest, weigh_neighbours
from bethink.ingest.effects import Effect
from bethink.ingest.reconcile import (
    CONTRADICTS,
    OPEN,
    Neighbour,
    are_of_one_session,
    needed_to_merge,
    reconcile,
)
from bethink.ingest.wording import adds_nothing, are_equivalent
from bethink.judge import asks
from bethink.model import FILES, STATEMENTS, Change, Filter, Memory, Relation, supersede
from bethink.store.transfer import split_pages

COMPARED = STATEMENTS
_READ = FILES  # each describes its own part of a project
ALIKE = 0.55  # least nearness of statements to compare when time is short; by hand
JUDGED = 0.4  # least nearness to ask the judge: one in ten duplicates is below (measured on pairs, 2026-11)
_NEAREST = 8  # neighbours of a statement; by hand
SAME_MEANING, MARKED_CONTRADICTING, MAY_REPLACE = (
    "says the same",
    "marked as contradicting",
    "may replace the other",
)
_SURE = (SAME_MEANING, MARKED_CONTRADICTING)
DISPUTES = ("contradicts", "may_replace")  # relations of a dispute
INFERRED = (
    "analysis"  # source of statements that `analyze` inferred: never set against a person's note
)

Progress = Callable[[int, int], None]


class Pair(NamedTuple):
    """Two memories for a person to review, the one to keep first."""

    keep: Memory
    other: Memory
    similarity: float
    reason: str


class Step(NamedTuple):
    """Planned step of consolidation, with its reason."""

    action: str  # merge, replace, contradict, answer, expire, retire, move
    memories: tuple[Memory, ...]
    reason: str
    content: str = ""  # of a memory that cites a renamed file, with its place now


class Surroundings(NamedTuple):
    """Statement with its neighbours, and the relations and judged effects by the neighbour's id."""

    memory: Memory
    near: Sequence[Neighbour]
    related: Mapping[str, set[str]]
    judged: Mapping[str, Effect]

    def chance(self, id: str, *effects: str) -> float:
        """Probability that the later of this statement and another has one of these effects on the earlier."""
        found = self.judged.get(id)
        return sum(found[name] for name in effects) if found else 0.0


# What to look at


def find_duplicates(
    memory: Bethink, *, limit: int = 50, progress: Progress | None = None
) -> list[Pair]:
    """List statements that say the same or nearly so, surest first."""
    return _list_pairs(memory, find_twins, _survey(memory, progress))[:limit]


def find_contradictions(
    memory: Bethink, *, limit: int = 50, progress: Progress | None = None
) -> list[Pair]:
    """List statements that disagree, known or likely; in each pair the more trusted, then newer, first."""
    return _list_pairs(memory, find_opposites, _survey(memory, progress))[:limit]


def _list_pairs(
    memory: Bethink,
    find: Callable[[Bethink, Surroundings], list[Pair]],
    survey: Iterable[Surroundings],
) -> list[Pair]:
    """List each pair once, surest first."""
    found = {}
    for around in survey:
        for pair in find(memory, around):
            key = frozenset((pair.keep.id, pair.other.id))
            if key not in found or pair.reason in _SURE:
                found[key] = pair
    return sorted(found.values(), key=lambda pair: (pair.reason not in _SURE, -pair.similarity))


def find_twins(memory: Bethink, around: Surroundings) -> list[Pair]:
    """Return the older neighbours that say the same as a statement and are not related to it."""
    found = []
    for neighbour in around.near:
        other = neighbour.memory
        if other.id >= around.memory.id or other.id in around.related:
            continue
        if not _are_comparable(around.memory, other):
            continue
        keep, drop = sorted((around.memory, other), key=_worth, reverse=True)
        same_words = neighbour.similarity >= memory.config.dedup_threshold and are_equivalent(
            drop.content, keep.content
        )
        same_meaning = around.chance(other.id, "same") >= needed_to_merge(
            drop.content, keep.content
        ) and adds_nothing(drop.content, keep.content)
        if same_words or same_meaning:
            found.append(Pair(keep, drop, neighbour.similarity, SAME_MEANING))
    return found


def _are_comparable(one: Memory, other: Memory) -> bool:
    """Return True if memories share scope and state: both open or closed, both questions or neither."""
    return (
        one.scope == other.scope
        and (one.kind == other.kind or not {one.kind, other.kind} & set(OPEN))
        and bool(one.answered) == bool(other.answered)
        and asks(one.content) == asks(other.content)
    )


def find_opposites(memory: Bethink, around: Surroundings) -> list[Pair]:
    """Return known contradictions of a statement, and neighbours that surely cannot hold beside it."""
    one = around.memory
    known = [id for id, types in around.related.items() if "contradicts" in types]
    found = [
        _dispute(one, other, 1.0, MARKED_CONTRADICTING)
        for other in memory.store.get(sorted(known))
        if other.deleted_at is None and other.superseded_by is None and other.scope in memory.scopes
        if not (one.answered or other.answered)  # an open item that was closed disputes nothing
    ]
    return found + [
        _dispute(one, neighbour.memory, neighbour.similarity, MAY_REPLACE)
        for neighbour in around.near
        if neighbour.memory.id not in known and not are_of_one_session(one, neighbour.memory)
        if _seems_opposed(around, neighbour)
    ]


def _seems_opposed(around: Surroundings, neighbour: Neighbour) -> bool:
    """Return True if the judge is sure that a statement changes its neighbour.

    Words alone say too little, so without a judge it is False.
    """
    other = neighbour.memory
    if not around.related.get(other.id, set()).issubset(DISPUTES):
        return False
    open_items = {around.memory.kind, other.kind} & set(OPEN)
    return not open_items and around.chance(other.id, "replaces", "changes") >= CONTRADICTS


# Consolidation


def plan_consolidation(memory: Bethink, *, progress: Progress | None = None) -> list[Step]:
    """Plan the steps of a consolidation, without changing anything."""
    survey = list(_survey(memory, progress))
    twins = _list_pairs(memory, find_twins, survey)
    same = [pair for pair in twins if pair.keep.trust == pair.other.trust]
    opposed = _list_pairs(memory, find_opposites, survey)
    disputes = [pair for pair in opposed if pair.reason not in _SURE]
    steps: list[Step] = []
    # Memories that another step replaces or settles; the kept ones may absorb several.
    gone: set[str] = set()
    for step in (
        *(_make_step("merge", pair) for pair in same),
        *_find_changed(survey),
        *(_make_step("contradict", pair) for pair in disputes),
    ):
        ids = [one.id for one in step.memories]
        if not gone.intersection(ids):
            steps.append(step)
            gone.update(ids[1:] if step.action != "contradict" else ())
    return [*steps, *_find_moved(memory, gone), *_find_expired(memory), *_find_unused(memory)]


def _make_step(action: str, pair: Pair) -> Step:
    return Step(action, (pair.keep, pair.other), f"{pair.reason} ({pair.similarity:.2f})")


def apply_steps(memory: Bethink, steps: Sequence[Step]) -> int:
    """Apply planned steps in one transaction, except for memories changed meanwhile. Returns their number."""
    now = memory.clock()
    ids = [one.id for step in steps for one in step.memories]
    current = {one.id: one.updated_at for one in memory.store.get(ids)}
    change: list[Change] = []
    relate: list[Relation] = []
    done = 0
    for step in steps:
        if any(current.get(one.id) != one.updated_at for one in step.memories):
            continue
        done += 1
        first, *rest = step.memories
        if step.action == "move":
            memory.update(first.id, was=first, content=step.content)
            continue
        if step.action in _RELATIONS:
            relate.append(Relation(first.id, rest[0].id, _RELATIONS[step.action]))
        fields: dict[str, dict[str, Any]] = {
            "merge": {"superseded_by": first.id, "valid_to": now},
            "answer": {"answered": True},
            "expire": {"deleted_at": now},
            "retire": {"deleted_at": now},
        }
        if step.action == "replace":
            change.append(supersede(rest[0].id, first))
        elif step.action in fields:
            changed = rest if step.action in _RELATIONS else step.memories
            change += [Change(one.id, step.action, fields[step.action]) for one in changed]
    if change or relate:
        memory.write(change=tuple(change), relate=tuple(relate))
    return done


_RELATIONS = {
    "merge": "supersedes",
    "replace": "supersedes",
    "contradict": "contradicts",
    "answer": "answers",
}


def _find_changed(survey: Sequence[Surroundings]) -> Iterator[Step]:
    """Yield steps for memories that a later statement surely replaces or answers; none without a judge."""
    for around in survey:
        for neighbour in around.near:
            effect = around.judged.get(neighbour.memory.id)
            types = around.related.get(neighbour.memory.id, set())
            if effect is None or not types.issubset(DISPUTES):
                continue  # a person said how they are related
            if neighbour.memory.scope != around.memory.scope:
                continue
            old, new = sorted((around.memory, neighbour.memory), key=attrgetter("created_at"))
            known = neighbour._replace(memory=old)
            verdict = reconcile(new, [known], threshold=None, effects={old.id: effect})
            if verdict.supersedes:
                yield Step("replace", (new, old), "replaced later")
            elif verdict.settles:
                yield Step("answer", (new, old), f"answered later ({neighbour.similarity:.2f})")


def _find_moved(memory: Bethink, gone: set[str]) -> list[Step]:
    """Steps for memories that cite a file which git has renamed; files of a project are read again anyway."""
    from bethink.features.citations import find_renamed

    if not memory.reads_files:
        return []
    return [
        Step("move", (one,), "cites a file that was renamed", text)
        for one, text in find_renamed(memory)
        if one.id not in gone and one.source_type not in (*_READ, INFERRED)
    ]


def _find_expired(memory: Bethink) -> list[Step]:
    now = memory.clock()
    return [
        Step("expire", (one,), f"expired on {one.expires_at:%Y-%m-%d}")
        for one in memory.export(memory.filter(include_expired=True))
        if one.expires_at and one.expires_at <= now
    ]


def _find_unused(memory: Bethink) -> list[Step]:
    """Steps for old turns of conversations that were never used and that no idea cites."""
    days = memory.config.keep_context_days
    if not days:
        return []
    until = memory.clock() - timedelta(days=days)
    ideas = memory.export(memory.filter(kinds=COMPARED, include_superseded=True))
    cited = {one.metadata.get("turn") for one in ideas if one.session}
    idle = [
        one
        for one in memory.export(memory.filter(kinds=("context",), until=until))
        if one.session
        and not one.access_count
        and not one.usefulness
        and one.metadata.get("turn") not in cited
    ]
    reason = f"turns older than {days} days that nothing was taken from"
    return [Step("retire", tuple(page), reason) for page in split_pages(idle)]


# Neighbours of statements


def _survey(memory: Bethink, progress: Progress | None) -> Iterator[Surroundings]:
    """Yield each statement with its neighbours, by cached vectors; without a model nothing is near."""
    everything = list(memory.export(memory.filter(kinds=COMPARED)))
    filter = Filter(scopes=memory.scopes, kinds=COMPARED, now=memory.clock())
    done = 0
    for page in split_pages(everything):
        yield from survey(memory, page, filter)
        done += len(page)
        if progress:
            progress(done, len(everything))


def survey(
    memory: Bethink,
    page: Sequence[Memory],
    filter: Filter,
    number: int = _NEAREST,
    quick: bool = False,
) -> Iterator[Surroundings]:
    """Yield each of these statements with its nearest neighbours that pass the filter.

    With `quick` only those near enough to be a duplicate or a contradiction.
    """
    vectors: dict[str, Any] = memory.vectors_of(page).get("vectors", {})
    embedder = memory.embedder
    strange = embedder.unrelated if embedder else 0.0
    least = strange + ALIKE * (1 - strange) if quick else -1.0
    related: dict[str, dict[str, set[str]]] = {one.id: {} for one in page}
    for source, target, type, *_ in memory.store.relations(related):
        for one_end, other_end in ((source, target), (target, source)):
            related.setdefault(one_end, {}).setdefault(other_end, set()).add(type)
    for one in page:
        found: list[Neighbour] = []
        if embedder and one.id in vectors:
            found = nearest(vectors[one.id][0], filter, memory.store, embedder, number, least)
        near = [
            neighbour
            for neighbour in found
            if neighbour.memory.id != one.id
            and neighbour.memory.kind in COMPARED
            and not (one.source_type in _READ and neighbour.memory.source_type in _READ)
            and INFERRED not in (one.source_type, neighbour.memory.source_type)
        ]
        yield Surroundings(one, near, related[one.id], _ask(memory, one, near))


def _ask(memory: Bethink, one: Memory, near: Sequence[Neighbour]) -> dict[str, Effect]:
    """Return the judged effect between a statement and each neighbour, by the neighbour's id."""
    wanted = [
        neighbour
        for neighbour in near
        if is_one_statement(neighbour.memory)
        and (neighbour.nearness >= JUDGED or {one.kind, neighbour.memory.kind} & set(OPEN))
    ]
    if not wanted or not is_one_statement(one) or memory.judge is None:
        return {}
    return weigh_neighbours(memory.judge, one, wanted)


def _worth(memory: Memory) -> tuple[float, ...]:
    """Sort key for the memory to keep: trust, then use, then length, then age."""
    return (
        memory.trust,
        memory.usefulness + memory.access_count,
        len(memory.content),
        memory.created_at.timestamp(),
    )


def _dispute(one: Memory, other: Memory, similarity: float, reason: str) -> Pair:
    """Pair of memories that disagree: the more trusted first, else the newer."""
    pair = sorted((one, other), key=attrgetter("trust", "created_at"), reverse=True)
    return Pair(pair[0], pair[1], similarity, reason)
