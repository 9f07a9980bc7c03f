"""Candidates: the memories worth ranking, found by words, meaning, topic, succession and answers.

`Search.gather` makes a `Pool`: the candidates and everything that signals need to know about them. A superseded memory leaves the pool
and lends its evidence to its successor.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from bethink.model import IDEAS, Candidate, Candidates, Filter, Query, Words, turn_of
from bethink.recall.meaning import Meaning
from bethink.recall.pool import Loan, Pool, join_pools
from bethink.recall.signals import MEANING_SHARE, STRETCH
from bethink.store.base import Store
from bethink.store.words import find_leaves, query_words

# Candidates taken from each signal; words order coarsely, so more of them. 300 of each find no more on four sets (bench/LOG.md, 2026-11-15).
MOST_BY_WORDS, MOST_BY_MEANING = 200, 100
MOST_LISTED = 500  # memories of a kind, an entity or a time; a bound on time, no set has as many
# Topics looked up, topics whose ideas all become candidates, and ideas of each: bounds on time. Topics as such: bench/LOG.md, 2026-11-16,
# "When the clock is silent".
MOST_TOPICS, BEST_TOPICS, IDEAS_OF_TOPIC = 40, 3, 8
# Share of a topic's fit that its sub-topics inherit. By hand; the sets read as conversations have few sub-topics.
PARENT_SHARE = 0.7
# Share of a superseded memory's evidence that its successor inherits. By hand: from 0 to 1 no figure of 25 histories moves.
INHERITED_SHARE = 0.8
# A turn of up to twice the length of the idea taken from it, and ten words, says nothing else. By hand, on the 25 histories.
RESTATING_LENGTH, RESTATING_WORDS = 2, 10


# Filters that a question implies


def apply_syntax(filter: Filter, query: Query) -> Filter:
    """Add the kinds and entities named by `kind:` and `entity:`, unless the caller chose others."""
    return filter._replace(
        kinds=filter.kinds or (query.kinds if query.kinds_only else ()),
        entities=filter.entities or query.entities,
    )


def narrow_filter(filter: Filter, query: Query) -> Filter:
    """Add what the question's own words demand: "open questions" means only those."""
    demanded = query.answered is not None or query.kinds_meant
    filter = apply_syntax(filter, query)
    return filter._replace(
        kinds=filter.kinds or (query.kinds if demanded else ()),
        answered=filter.answered if filter.answered is not None else query.answered,
    )


def _excludes(query: Query) -> bool:
    """Return True if a question asks in one column (`tags:deploy`) or excludes words (NOT)."""
    unwanted = find_leaves(query.expression)[1] if query.expression else ()
    return bool(unwanted) or any(term.column for term in query.terms)


class Search(NamedTuple):
    """One question while its candidates are gathered.

    `meaning` is awaited only after everything that words can do is done, so that a model may work meanwhile."""

    query: Query
    store: Store
    filter: Filter
    meaning: Callable[[], Meaning | None]
    by_words: bool = True  # False in mode `vector`
    limit: int = 10
    now: float = 0.0
    gate: float = -1.0
    baseline: float = 0.0

    def gather_both(self, past: Filter) -> tuple[Pool, frozenset[int]]:
        """Return the pool, and the keys of memories valid at the past time that the question means."""
        pool = self.gather(self.query)
        if not pool.candidates and self.query.kinds_meant:  # there is nothing of that kind
            pool = self.gather(self.query._replace(kinds_meant=False))
        if past is self.filter:
            return pool, frozenset()
        valid_then = self._replace(filter=past).gather(self.query)
        return join_pools(valid_then, pool), frozenset(one.key for one in valid_then.candidates)

    def gather(self, demanding: Query) -> Pool:
        """Return the candidates that pass the filter and the demands of a question."""
        filter = narrow_filter(self.filter, demanding)
        follow = not filter.include_superseded and filter.as_of is None
        search = self._replace(filter=filter._replace(follow=follow))
        pool = search._find_by_words()
        if meaning := self.meaning():
            pool = search._find_by_meaning(pool, meaning)
        if any(candidate.span for candidate in pool.candidates):
            pool = search._add_topics(pool)
        return search._follow_successors(pool) if follow else pool

    def _find_by_words(self) -> Pool:
        """Find memories by words of the question, by an entity it names, or by the one kind it asks for."""
        query, store, most = self.query, self.store, max(MOST_BY_WORDS, 2 * self.limit)
        words, worded, others = Words(), dict[int, float](), dict[str, int]()
        if self.by_words:
            words = query_words(query)
            worded = dict(store.keyword(query, self.filter, most))
        if (query.kinds_meant and self.filter.kinds) or (query.entities and not query.strict):
            listed = store.list(self.filter, max(MOST_LISTED, 2 * self.limit))
            others = store.keys([memory.id for memory in listed])
        keys = list(dict.fromkeys([*worded, *others.values()]))
        found = store.candidates(keys, self.filter, words, worded)
        if _are_crowded(found, most):
            live = dict(store.keyword(query, self._leave_replaced(), most))
            fresh = [key for key in live if key not in worded]
            found = [*found, *store.candidates(fresh, self.filter, words, fresh)]
            worded |= live
        return Pool(
            found,
            words,
            store.statistics(words, self.filter.scopes),
            worded,
            {},
            query=query,
            now=self.now,
            gate=self.gate,
            baseline=self.baseline,
            load=store.load,
        )

    def _find_by_meaning(self, pool: Pool, meaning: Meaning) -> Pool:
        """Add the nearest memories in meaning, and the cosine of every candidate."""
        store, near = self.store, dict[int, float]()
        most = max(MOST_BY_MEANING, 2 * self.limit)
        if not self.query.strict:
            nearest = meaning.nearest(store, self.filter, most)
            near = {key: cosine for key, cosine in nearest if cosine >= self.gate}
        known = {one.key for one in pool.candidates}
        fresh = [key for key in near if key not in known]
        more = list(store.candidates(fresh, self.filter, pool.words, ()))
        if not self.query.strict and _are_crowded([*pool.candidates, *more], most, near):
            nearest = meaning.nearest(store, self._leave_replaced(), most)
            live = {key: cosine for key, cosine in nearest if cosine >= self.gate}
            fresh = [key for key in live if key not in known and key not in near]
            more += store.candidates(fresh, self.filter, pool.words, ())
            near |= live
        others = [key for key in known if key not in near]
        cosines, mean = meaning.cosines(store, others, self.filter.scopes)
        return pool._replace(
            candidates=[*pool.candidates, *more],
            cosines=near | cosines,
            statistics=pool.statistics._replace(mean_cosine=mean),
        )

    def _add(self, pool: Pool, keys: Iterable[int]) -> Pool:
        """Add these memories, as far as the filter lets them in."""
        known = {candidate.key for candidate in pool.candidates}
        fresh = [key for key in dict.fromkeys(keys) if key not in known]
        added = self.store.candidates(fresh, self.filter, pool.words, set(fresh)) if fresh else []
        cosines = dict(pool.cosines)
        if added and (meaning := self.meaning()):
            new = [one.key for one in added]
            cosines |= meaning.cosines(self.store, new, self.filter.scopes)[0]
        return pool._replace(candidates=[*pool.candidates, *added], cosines=cosines)

    def _add_topics(self, pool: Pool) -> Pool:
        """Add how well topics of conversations fit, and the ideas of those that fit best."""
        store, scopes, meaning = self.store, self.filter.scopes, self.meaning()
        by_words = store.keyword_spans(self.query, scopes, MOST_TOPICS)
        by_meaning = meaning.nearest_spans(store, scopes, MOST_TOPICS) if meaning else []
        fit = fit_topics(by_words, by_meaning, pool.statistics.mean_cosine)
        best = sorted(fit, key=lambda id: -fit[id])[:BEST_TOPICS]
        if best and not self.query.strict:
            most = BEST_TOPICS * IDEAS_OF_TOPIC
            pool = self._add(pool, store.list_in_spans(best, self.filter, most))
        spans = {candidate.span for candidate in pool.candidates if candidate.span}
        for id, span in store.spans_by_id(spans, scopes).items():
            if span.parent in fit:
                fit[id] = max(fit.get(id, 0.0), PARENT_SHARE * fit[span.parent])
        return pool._replace(topics=fit)

    def _leave_replaced(self) -> Filter:
        return self.filter._replace(follow=False)

    def _follow_successors(self, pool: Pool) -> Pool:
        """Put successors in the place of superseded memories, and answers beside their questions.

        Each borrows the evidence of the memory that led to it. The turn in which a superseded idea was said leaves with it."""
        heirs = _find_heirs(pool.candidates, self.store)
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
        pool = pool._replace(candidates=kept)
        if not _excludes(self.query):
            live_only = self._replace(filter=self._leave_replaced())
            pool = live_only._add(pool, [heir for _, heir in heirs])
        live = {one.key for one in pool.candidates}
        lent = [
            Loan(old, heir, INHERITED_SHARE if old.superseded_by else 1.0)
            for old, heir in heirs
            if heir in live
        ]
        return pool._replace(lent=lent)


def _are_crowded(candidates: Candidates, most: int, among: Collection[int] | None = None) -> bool:
    """Return True if a full page of matches is mostly superseded: live ones may be missing then."""
    found = [one for one in candidates if among is None or one.key in among]
    replaced = sum(one.superseded_by is not None for one in found)
    return len(found) >= most and 2 * replaced > len(found)


def _restates(turn: Candidate, idea: Candidate | None) -> bool:
    """Return True if a turn says little more than the idea that was taken from it."""
    if idea is None or turn.position >= IDEAS:
        return False
    return turn.length <= RESTATING_LENGTH * idea.length + RESTATING_WORDS


def _find_heirs(candidates: Candidates, store: Store) -> list[tuple[Candidate, int]]:
    """Pair superseded memories with their last successors, and answered ones with their answers."""
    heirs = [(old, old.superseded_by) for old in candidates if old.superseded_by]
    asked = {
        one.key: one
        for one in candidates
        if one.kind in ("question", "problem", "todo") and not one.superseded_by
    }
    if asked:
        heirs += [(asked[key], answer) for key, answer in store.answers(asked)]
    ends = store.find_successors(dict.fromkeys(id for _, id in heirs))
    return [(old, ends[id]) for old, id in heirs if id in ends]


def fit_topics(
    by_words: Sequence[tuple[str, float]],
    by_meaning: Sequence[tuple[str, float]],
    mean: float | None,
) -> dict[str, float]:
    """Return the fit of each topic, from 0 to about 1.

    Meaning counts from the scope's mean, words from the best topic.
    """
    most = by_words[0][1] if by_words else 0.0
    share = MEANING_SHARE if by_meaning else 0.0
    fit = {id: (1 - share) * (score / most if most > 0 else 0.0) for id, score in by_words}
    scale = share * STRETCH / max(1e-6, 1 - (mean or 0.0))
    for id, cosine in by_meaning:
        fit[id] = fit.get(id, 0.0) + scale * max(0.0, cosine - (mean or 0.0))
    return fit
