"""Question → the memories worth scoring: one ranking per signal, then everything scoring needs of each found memory. A question about
a time and nothing else ("what did we do last week?") has no words to look for: `list_period` answers it with all that was told then. `expand` gives hits what they are connected to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bethink.recall.score import MEANING, STRETCH, Pool
from bethink.store.base import Store
from bethink.store.words import query_words
from bethink.types import (
    IDEAS,
    KINDS,
    Candidate,
    Filter,
    Hit,
    Memory,
    Query,
    Relation,
    Words,
    turn_of,
)

# Memories taken from each signal. Words are ordered coarsely, so more of them are looked at. 300 of each find nothing more
# on the four sets tried (bench/LOG.md, 2026-11-15).
BY_WORDS, BY_MEANING = 200, 100
# Topics of conversations looked at, and those whose ideas all become candidates.
TOPICS, BEST_TOPICS = 40, 3
PARENT = 0.7  # how much of a topic's fit its sub-topics share
NAMED = 0.02  # what a memory gains for each entity that the question names, up to two: its words have counted already
# What came out of the work stands for the turns in which it was said; these fill the room that is left.
OUTCOMES = tuple(kind for kind in KINDS if kind not in ("code", "document", "context"))
FILES = ("markdown", "repomap", "analysis")
LOOKED = 500  # memories of each sort that are looked at; of a longer time the newest
Meaning = tuple[Any, str]  # the question as a vector, and the model that made it
NOTHING_THEN = "Nothing is known from that time; `bethink list` shows the newest."


def gather(
    query: Query,
    store: Store,
    filter: Filter,
    vector: Callable[[], Any],
    model: str | None,
    mode: str,
    limit: int,
    gate: float,
) -> Pool:
    """`vector` is called only after everything that words can do is done, so that a model may work meanwhile. What is farther away in
    meaning than `gate` is not found by it."""
    wide = filter._replace(follow=not filter.include_superseded and filter.as_of is None)
    pool = _find_by_words(query, store, wide, mode, limit)
    embedded = vector() if mode != "keyword" and model else None
    meaning = (embedded, model) if embedded is not None and model else None
    if meaning:
        pool = _find_by_meaning(pool, query, store, wide, meaning, limit, gate)
    if any(candidate.span for candidate in pool.candidates):
        pool = _add_topics(pool, query, store, wide, meaning)
    return _follow_successors(pool, store, wide, meaning) if wide.follow else pool


def _find_by_words(query: Query, store: Store, filter: Filter, mode: str, limit: int) -> Pool:
    """What holds words of the question, is about what it names, or is of the kind that it asks for and nothing else."""
    depth = max(BY_MEANING, 2 * limit)
    words, worded, boosts = Words(), dict[int, float](), dict[int, float]()
    if mode != "vector":
        words = query_words(query)
        worded = dict(store.keyword(query, filter, max(BY_WORDS, 2 * limit)).items)
    if query.entities and not query.strict:
        named = store.by_entity(query.entities, filter, depth).items
        boosts = {key: NAMED * min(2.0, count) for key, count in named}
    if query.kinds_meant and filter.kinds:
        newest = store.keys([memory.id for memory in store.list(filter, depth)])
        boosts = {**dict.fromkeys(newest.values(), 0.0), **boosts}
    found = store.candidates(list({**worded, **boosts}), filter, words, worded)
    return Pool(found, words, store.statistics(words, filter.scopes), worded, boosts, {})


def _find_by_meaning(
    pool: Pool,
    query: Query,
    store: Store,
    filter: Filter,
    meaning: Meaning,
    limit: int,
    gate: float,
) -> Pool:
    """The pool with what is near in meaning, and how near everything in it is."""
    near: dict[int, float] = {}
    if not query.strict:
        nearest = store.nearest(*meaning, filter, max(BY_MEANING, 2 * limit)).items
        near = {key: cosine for key, cosine in nearest if cosine >= gate}
    known = {**pool.found, **pool.boosts}
    others = [key for key in known if key not in near]
    cosines, mean = store.cosines(others, *meaning, filter.scopes)
    more = store.candidates([key for key in near if key not in known], filter, pool.words, ())
    return pool._replace(
        candidates=[*pool.candidates, *more],
        cosines=near | cosines,
        statistics=pool.statistics._replace(mean_cosine=mean),
    )


def _add(
    pool: Pool, keys: Iterable[int], store: Store, filter: Filter, meaning: Meaning | None
) -> Pool:
    """The pool with these memories, too, as far as the filter lets them in."""
    known = {candidate.key for candidate in pool.candidates}
    fresh = [key for key in dict.fromkeys(keys) if key not in known]
    added = store.candidates(fresh, filter, pool.words, set(fresh)) if fresh else []
    cosines = dict(pool.cosines)
    if added and meaning:
        cosines |= store.cosines([one.key for one in added], *meaning, filter.scopes)[0]
    return pool._replace(candidates=[*pool.candidates, *added], cosines=cosines)


def _add_topics(
    pool: Pool, query: Query, store: Store, filter: Filter, meaning: Meaning | None
) -> Pool:
    """How well the topics of conversations fit, and what was decided, asked or solved in those that fit best."""
    by_words = store.keyword_spans(query, filter.scopes, TOPICS)
    by_meaning = store.nearest_spans(*meaning, filter.scopes, TOPICS) if meaning else []
    fit = topic_fit(by_words, by_meaning, pool.statistics.mean_cosine)
    best = sorted(fit, key=lambda id: -fit[id])[:BEST_TOPICS]
    if best and not query.strict:
        inside = store.list_in_spans(best, filter, BEST_TOPICS * 8)
        pool = _add(pool, inside, store, filter, meaning)
    spans = list({candidate.span for candidate in pool.candidates if candidate.span})
    for id, span in store.spans_by_id(spans, filter.scopes).items():
        if span.parent in fit:
            fit[id] = max(fit.get(id, 0.0), PARENT * fit[span.parent])
    return pool._replace(topics=fit)


def topic_fit(
    by_words: Sequence[tuple[str, float]],
    by_meaning: Sequence[tuple[str, float]],
    mean: float | None,
) -> dict[str, float]:
    """From 0 up to about 1: meaning from the scope's mean, words from the best topic."""
    most = by_words[0][1] if by_words else 0.0
    share = MEANING if by_meaning else 0.0
    fit = {id: (1 - share) * (score / most if most > 0 else 0.0) for id, score in by_words}
    scale = share * STRETCH / max(1e-6, 1 - (mean or 0.0))
    for id, cosine in by_meaning:
        fit[id] = fit.get(id, 0.0) + scale * max(0.0, cosine - (mean or 0.0))
    return fit


def _follow_successors(pool: Pool, store: Store, filter: Filter, meaning: Meaning | None) -> Pool:
    """A superseded memory is not an answer, but what fits it fits its successor; and what fits a question that was answered
    fits its answer. Both hand their evidence on; the superseded one leaves, and so does the turn in which it was said."""
    heirs = _find_heirs(pool.candidates, store)
    if not heirs:
        return pool
    stale = {
        (old.source, turn_of(old.position)): old
        for old, _ in heirs
        if old.superseded_by and old.position >= IDEAS
    }
    kept = [
        one
        for one in pool.candidates
        if not one.superseded_by and not _restates(one, stale.get((one.source, one.position)))
    ]
    wanted = [heir for _, heir in heirs if heir is not None]
    now = filter._replace(follow=False)
    pool = _add(pool._replace(candidates=kept), wanted, store, now, meaning)
    live, cosines = {one.key: one for one in pool.candidates}, dict(pool.cosines)
    for old, heir in heirs:
        if heir is None or heir not in live:
            continue
        new = live[heir]
        live[heir] = new._replace(
            frequencies=tuple(map(max, new.frequencies, old.frequencies)),
            pairs=tuple(map(max, new.pairs, old.pairs)),
        )
        if old.key in cosines:
            cosines[heir] = max(cosines.get(heir, -1.0), cosines[old.key])
    return pool._replace(candidates=list(live.values()), cosines=cosines)


def _restates(turn: Candidate, idea: Candidate | None) -> bool:
    """Whether a turn says little more than the idea that was taken from it."""
    return idea is not None and turn.position < IDEAS and turn.length <= 2 * idea.length + 10


def _find_heirs(
    candidates: Sequence[Candidate], store: Store
) -> list[tuple[Candidate, int | None]]:
    """Who hands evidence on to whom: superseded memories to their last successors, answered questions to their answers."""
    heirs = [(old, old.superseded_by) for old in candidates if old.superseded_by]
    asked = {
        one.key: one
        for one in candidates
        if one.kind in ("question", "problem", "todo") and not one.superseded_by
    }
    if asked:
        heirs += [(asked[key], answer) for key, answer in store.answers(list(asked))]
    return [(old, _find_successor(id, store)) for old, id in heirs]


def _find_successor(id: str | None, store: Store) -> int | None:
    """The last of a chain of memories that replaced one another."""
    seen = set[str]()
    while id and id not in seen:
        seen.add(id)
        memories = store.get([id])
        if memories and memories[0].superseded_by is None:
            return store.keys([id]).get(id)
        id = memories[0].superseded_by if memories else None
    return None


# A time and nothing else


def list_period(
    query: Query, wanted: Filter, store: Store, offset: int, limit: int
) -> tuple[list[Hit], int]:
    """What was said, decided and done in a time: the hits of a page, the newest first, and how many there are. Where there is more
    than fits, what matters most is kept. What was read from files is left out: the day a file was read on says nothing about the work."""
    then = wanted._replace(
        since=max(filter(None, (wanted.since, query.since)), default=None),
        until=min(filter(None, (wanted.until, query.until)), default=None),
        answered=query.answered if wanted.answered is None else wanted.answered,
    )

    def look(*kinds: str) -> list[Memory]:
        found = store.list(then._replace(kinds=kinds), LOOKED)
        return [one for one in found if one.source_type not in FILES]

    kinds = wanted.kinds or query.kinds
    outcomes = look(*(kinds or OUTCOMES))
    if not kinds:
        places = {(one.source, turn_of(one.position)) for one in outcomes if one.session}
        outcomes += [one for one in look("context") if (one.source, one.position) not in places]
    outcomes.sort(key=lambda one: (one.kind != "context", one.importance, one.created_at))
    page = outcomes[::-1][offset : offset + limit]
    page.sort(key=lambda one: one.created_at, reverse=True)
    return [Hit(one, 1.0, {"in_time": 1.0}) for one in page], len(outcomes)


# What hits replaced, answer, contradict or build on

CHAIN = 8  # links followed back through replaced memories
MOST_RELATIONS = 400  # relations looked at for one answer


def expand(
    hits: Sequence[Hit], store: Store, scopes: Sequence[str], include_deleted: bool = False
) -> list[Hit]:
    """Relations of every hit, and the whole chain of memories that a hit replaced. Never leaves the scopes."""
    related = _find_related([hit.memory.id for hit in hits], store)
    ends = {end for found in related.values() for end in found.values()}
    visible = {
        memory.id: memory
        for memory in store.get(list(ends))
        if memory.scope in scopes and (include_deleted or memory.deleted_at is None)
    }

    def show(id: str) -> tuple[tuple[Relation, Memory], ...]:
        found = related[id].items()
        return tuple((one, visible[end]) for one, end in found if end in visible and end != id)

    return [hit._replace(related=show(hit.memory.id)) for hit in hits]


def _find_related(ids: Sequence[str], store: Store) -> dict[str, dict[Relation, str]]:
    """By id of a hit its relations, each with the other end. Chains of what was replaced are followed for all hits at once."""
    related: dict[str, dict[Relation, str]] = {id: {} for id in ids}
    reached = {id: {id} for id in ids}  # a memory, and the hits whose chain has come to it
    for step in range(CHAIN):
        further: dict[str, set[str]] = {}
        for one in store.relations(list(reached))[:MOST_RELATIONS] if reached else ():
            for hit in reached.get(one.source, ()):
                if one.type == "supersedes":
                    further.setdefault(one.target, set()).add(hit)
                if step == 0 or one.type == "supersedes":
                    related[hit].setdefault(one, one.target)
            if step == 0 and one.target in related:
                related[one.target].setdefault(one, one.source)
        reached = further
    return related


def put_newer_first(hits: Sequence[Hit], limit: int) -> list[Hit]:
    """Of two statements about the same thing that cannot both hold, the more trusted and newer one comes first, even while nobody has
    decided: it takes the place of the other, which follows it."""
    ordered: dict[str, Hit] = {}
    there = {hit.memory.id: hit for hit in hits}
    for hit in hits:
        for relation, other in hit.related:
            if relation.type in ("may_replace", "contradicts") and _outranks(other, hit.memory):
                first = there.get(other.id) or Hit(
                    other, hit.score, hit.why, _reverse_relations(hit, other)
                )
                ordered.setdefault(other.id, first)
        ordered.setdefault(hit.memory.id, hit)
    return list(ordered.values())[: max(limit, len(hits))]


def _outranks(one: Memory, other: Memory) -> bool:
    live = one.superseded_by is None and one.deleted_at is None
    return live and (one.trust, one.created_at) > (other.trust, other.created_at)


def _reverse_relations(hit: Hit, other: Memory) -> tuple[tuple[Relation, Memory], ...]:
    """The relations between a hit and another memory, as the other sees them."""
    return tuple(
        (relation, hit.memory)
        for relation, end in hit.related
        if end.id == other.id and other.id in (relation.source, relation.target)
    )
