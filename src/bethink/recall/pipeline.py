"""Recall, the recipe: question → query → candidates → fuse → score → rerank → expand → Answer. Nothing here writes.

Candidates are the memories worth scoring: one ranking per signal, then everything that scoring needs of each found memory. A question
about a time and nothing else ("what did we do last week?") has no words to look for: `list_period` answers it with all that was told
then. `expand` gives hits what they are connected to.
"""

import random
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink.embed import submit_ahead
from bethink.embed.base import Embedder
from bethink.language.words import STOP_WORDS, WORDS
from bethink.model import (
    ASKED_IMPORTANCE,
    FILES,
    IDEAS,
    KINDS,
    OPEN_KINDS,
    PERSONAL,
    STATEMENTS,
    TEAM,
    TRUST,
    Answer,
    Candidate,
    Candidates,
    Filter,
    Hit,
    Memory,
    Query,
    Related,
    Relation,
    Strings,
    Words,
    path_of,
    turn_of,
)
from bethink.recall.query import KNOWN, find_event, parse, see_then
from bethink.recall.score import (
    DISTILLED,
    INHERITED,
    MEANING,
    PROFILES,
    STRETCH,
    Loan,
    Pool,
    Profile,
    Ranked,
    Signals,
    Weights,
    fuse,
    is_question,
    join_pools,
    merge_words,
    profile_parts,
    put_first,
    put_statements_first,
    rank,
    rerank,
    score,
)
from bethink.recall.shape import NONE_OPEN, NOTHING_OPEN, choose_sentence, find_sought, title_code
from bethink.store.base import Store
from bethink.store.rows import is_narrow
from bethink.store.words import as_words, find_leaves, query_words

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from bethink.judge import Judge

# A question that names a time prefers memories of that time without shutting the others out. Set by hand; the sets in bench/ hold
# too few such questions to tune on.
IN_TIME = 1.25
# A question resembles other questions more than its answer, and a to-do of a conversation the work more than the report of it. And of a
# conversation, what came out of it counts before what was said: measured 30 days later, when the clock is silent (bench/LOG.md, 2026-11-16
# and 2026-11-17).
ASKED, SAID = 0.8, 0.88
USUAL = 1  # how a memory stands of which the question says nothing
# memories that are loaded beyond those asked for, in place of turns that are the same words
SPARE = 20
# How far the nearest hit must stand out of what the model gives to strangers, and what it counts that it holds the question's words:
# .3 % of the answered questions of six sets fall below, and 74 % of those that belong to another set (bench/LOG.md, 2026-11-15).
FITS, HELD = 0.235, 0.21
# By words alone: how much of the question the best must hold, weighed by how rare its words are. One of 1,000 answered questions of
# four sets falls below (bench/LOG.md, 2026-11-16).
THIN = 0.2
FEW = 3  # hits that are shown then; by words alone, if they hold a word of the question at all
UNFIT = "Nothing fits this question well."
# Hits of each side that are held against each other, and how probably two must dispute each other, either way round in the mean. Of 20 pairs
# of which one ends the other the judge knows 16, of 86 that both hold it takes 2 for such (bench/LOG.md, 2026-11-17). They are looked for
# in the first page, and in no fewer than the usual number of hits: the order does not depend on how few are asked for.
DISPUTING, DISPUTED, JUDGED = 3, 0.55, 10
STRANGE = "Nothing fits this question well: only a few of the nearest are shown."
# words of what was said before that a follow-up takes along
WORDS_BEFORE = 40


Meaning = tuple[Any, str]  # the question as a vector, and the model that made it
Hits = list[Hit]


class Ask(NamedTuple):
    """How a question is to be answered."""

    filter: Filter
    mode: str = "hybrid"
    fusion: str = "adaptive"
    profile: str = "relevance"  # its name, or the weights that were given
    weights: Profile = PROFILES["relevance"]
    limit: int = 10
    offset: int = 0
    gate: float = -1.0
    threshold: float = 0.0
    related: bool = True
    hints: Strings = ()
    hypothesis: str = ""  # what an answer might say, to look near it too
    context: str = ""  # what was said before the question
    looking_up: bool = False  # the time of an event, for another question
    sift: bool = False  # leave out most of what does not fit, unless a filter says what does
    rerank: bool = False  # let the judge read the first hits again


def recall(
    question: str,
    ask: Ask,
    store: Store,
    embedder: Embedder | None,
    now: datetime,
    rng: random.Random,
    judge: "Judge | None" = None,
) -> Answer:
    """The answer to a question. The judge, where there is one, says which hits dispute each other, and reads the first ones a second
    time if that is asked for."""
    question = complete_question(question, ask.context)
    reader = judge if ask.rerank and is_question(question) else None
    if reader:  # its model is read from disk while memories are looked for
        submit_ahead(_workers(), reader.prepare)
    embedder = embedder if ask.mode != "keyword" else None
    query = parse(question, now)
    meaning = _start_embedding(query.text, embedder, store, ask.hypothesis)
    if not (query.since or query.until or ask.looking_up):
        query = _date_by_event(question, query, ask, store, embedder, now)
    then = see_then(query, ask.filter, question, now)
    if query.recap and not ask.looking_up:
        told, total = list_period(query, ask, store)
        if total:
            return Answer(query, tuple(told), total, ask.mode, ask.profile, ask.hints)
        # A memory may speak of that time that was told at another: "On 25 October the forecast was off".
        ask = ask._replace(mode="keyword", hints=(NOTHING_THEN, *ask.hints))
        embedder, meaning = None, _mean_nothing
    pool, held = Search(query, ask, store, meaning, ask.filter).gather_both(then)
    signals = fuse(
        pool, now.timestamp(), ask.fusion, ask.gate, embedder.baseline if embedder else 0.0
    )
    standing = {one.key: _standing(one, query, held) for one in pool.candidates}
    ranked = _rank(merge_words(pool), signals, query, ask, standing, now, rng)
    read: Mapping[int, Weights] = {}
    if reader:
        ranked, read = rerank(ranked, query, standing, store.load, reader)

    def explain(one: Candidate) -> Weights:
        why = _explain(one, signals[one.key], query, ask.weights, now)
        if standing[one.key] != USUAL:
            why["standing"] = standing[one.key]
        return why | read.get(one.key, {})

    # From the first on: a turn that repeats one of an earlier page is left out, and what is put first there stays there.
    window = ranked[: ask.offset + ask.limit + SPARE]
    hits = _load_hits(window, query, store, explain)
    matches = len(ranked) - (len(window) - len(hits))
    hits, total, hints = _sift(hits, matches, query, ask, embedder)
    if ask.related and not (held or ask.filter.as_of):  # the question is about the present
        if judge:
            first = max(JUDGED, ask.limit)
            hits = mark_disputed(hits[:first], query.text, judge, store, now) + hits[first:]
        hits = put_newer_first(hits, store)
    page = hits[ask.offset : ask.offset + ask.limit]
    if ask.related:
        page = expand(page, store, _hold_to_syntax(ask.filter, query))
    if not total and query.answered is False:
        hints = (*_say_none_open(query, ask.filter, store), *hints)
    return Answer(query, tuple(page), total, ask.mode, ask.profile, hints)


def _say_none_open(query: Query, filter: Filter, store: Store) -> Strings:
    """The hint for a question that asks for what is open where nothing of the kind is."""
    wanted = _narrow_filter(filter, query)
    if store.count(wanted):
        return ()
    if len(query.kinds) == 1 and store.count(wanted._replace(kinds=OPEN_KINDS)):
        return (NONE_OPEN.get(query.kinds[0], NOTHING_OPEN),)
    return (NOTHING_OPEN,)


def _load_hits(
    chosen: Ranked, query: Query, store: Store, explain: Callable[[Candidate], Weights]
) -> Hits:
    """The memories behind candidates; of turns that are the very same words, and of what two readers of a file tell, the best."""
    memories = store.load([one.key for _, one in chosen])
    sought = find_sought(query)
    kept: dict[str, Hit] = {}
    of_file: dict[str, list[Memory]] = {}
    for value, one in chosen:
        memory = memories.get(one.key)
        if memory is None:
            continue
        beside = of_file.setdefault(path_of(memory.source), []) if memory.lines else []
        said = memory.content_hash if memory.kind == "context" else memory.id
        if said not in kept and not any(_tells_again(memory, other) for other in beside):
            kept[said] = Hit(title_code(memory, sought), value, explain(one))
            beside.append(memory)
    return list(kept.values())


def _tells_again(memory: Memory, other: Memory) -> bool:
    """Whether one reader of a file tells what another tells of it in the same words."""
    if memory.source == other.source:
        return False
    words = (set(re.findall(r"\w+", one.content.casefold())) for one in (memory, other))
    fewer, more = sorted(words, key=len)
    return fewer <= more


# Understanding the question


def complete_question(question: str, context: str) -> str:
    """A follow-up that names nothing to look for ("and the other one?") with the last words of what was said before; any other question
    as it is."""
    words = re.findall(r"[\w'’]+", question.lower())
    if not context.strip() or not words or not (STOP_WORDS | WORDS["pointing"]).issuperset(words):
        return question
    return " ".join([*as_words(context).split()[-WORDS_BEFORE:], question])


def _date_by_event(
    question: str, query: Query, ask: Ask, store: Store, embedder: Embedder | None, now: datetime
) -> Query:
    """The question with the time of the event that it measures by ("before we moved to Postgres"), if memory knows it."""
    if (event := find_event(question)) is None:
        return query
    side, text = event
    look = Ask(ask.filter, ask.mode, ask.fusion, limit=1, gate=ask.gate, threshold=KNOWN)
    look = look._replace(related=False, looking_up=True)
    hits = recall(text, look, store, embedder, now, random.Random(0)).hits
    known: list[Any] = [hit.memory.valid_from or hit.memory.created_at for hit in hits]
    return query._replace(**{side: known[0]}) if known else query


def _mean_nothing() -> Meaning | None:
    return None


def _start_embedding(
    text: str, embedder: Embedder | None, store: Store, hypothesis: str
) -> Callable[[], Meaning | None]:
    """Starts embedding a question in another thread; the result is waited for when it is needed. With a hypothesis of the answer it is
    half way between the two."""
    if embedder is None or not text.strip():
        return _mean_nothing
    model = embedder.model
    vector = submit_ahead(_workers(), lambda: store.embed_question(text, embedder)).result
    if not hypothesis:
        return lambda: (vector(), model)
    import numpy as np

    supposed = embedder.documents([hypothesis])[0].mean(axis=0)

    def blend() -> Meaning:
        middle = np.asarray(vector()) + supposed / (np.linalg.norm(supposed) or 1.0)
        return middle / (np.linalg.norm(middle) or 1.0), model

    return blend


@cache
def _workers() -> "Executor":
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(4, thread_name_prefix="bethink-question")


# Finding and weighing


def _hold_to_syntax(filter: Filter, query: Query) -> Filter:
    """The filter with the kinds and entities that the question names by `kind:` and `entity:`, unless the caller chose others."""
    return filter._replace(
        kinds=filter.kinds or (query.kinds if query.kinds_only else ()),
        entities=filter.entities or query.entities,
    )


def _narrow_filter(filter: Filter, query: Query) -> Filter:
    """The filter for hits, with what the question's own words demand as well: "open questions" means only those."""
    demanded = query.answered is not None or query.kinds_meant
    filter = _hold_to_syntax(filter, query)
    return filter._replace(
        kinds=filter.kinds or (query.kinds if demanded else ()),
        answered=filter.answered if filter.answered is not None else query.answered,
    )


def _excludes(query: Query) -> bool:
    """Whether a question asks in one column (`tags:deploy`) or excludes words (NOT): then only what it found itself may answer."""
    unwanted = find_leaves(query.expression)[1] if query.expression else ()
    return bool(unwanted) or any(term.column for term in query.terms)


def _preference(candidate: Candidate, query: Query) -> float:
    """By how much a memory is raised because of the question's own words about time, or lowered because it only asks for something, or
    is only what somebody said on the way to an answer."""
    created, since, until = candidate.created_at, query.since, query.until
    late = since is None or created >= since.timestamp()
    early = until is None or created < until.timestamp()
    value = IN_TIME if (since or until) and late and early else 1.0
    if query.kinds and candidate.kind in query.kinds:
        return value
    if candidate.kind == "context" and candidate.span:
        return value * (SAID if candidate.importance > ASKED_IMPORTANCE else SAID * ASKED)
    waits = candidate.kind == "question" or (candidate.kind == "todo" and candidate.span)
    return value * ASKED if waits else value


def _standing(candidate: Candidate, query: Query, held: frozenset[int]) -> int:
    """What comes first of what fits: the kind that is asked for, what held at the time that is asked about; and code last, unless the
    question is about code. A function named like a word of the question says less than what somebody decided."""
    if candidate.kind in query.kinds:
        return USUAL + 2
    if candidate.key in held:
        return USUAL + 1
    behind = candidate.kind == "code" and not query.about_code and not query.identifiers
    return USUAL - behind


def _rank(
    candidates: Candidates,
    signals: Mapping[int, Signals],
    query: Query,
    ask: Ask,
    standing: Mapping[int, int],
    now: datetime,
    rng: random.Random,
) -> Ranked:
    """The candidates by how well they fit, by the profile, and by what the question asks for first."""
    fitting = [
        (min(1.0, signals[one.key].relevance * _preference(one, query)), one) for one in candidates
    ]
    scored = put_statements_first(score(fitting, ask.weights, now, rng))
    return rank(put_first(scored, standing), ask.threshold)


# Telling


def _sift(
    hits: Hits, total: int, query: Query, ask: Ask, embedder: Embedder | None
) -> tuple[Hits, int, Strings]:
    """What is shown, of how many, and what is said of it. Where nothing fits it is the nearest few, without a model only such that hold a word of
    the question. By meaning none is left out for its words: of short statements, asked for in other words, a quarter are as far away
    as strangers. Whoever narrows the search, or says what an answer looks like, gets all."""
    meant = query.strict or query.kinds or query.entities
    if meant or not _is_strange(hits[: ask.limit], embedder):
        return hits, total, ask.hints
    if not ask.sift or ask.mode == "vector" or ask.hypothesis or is_narrow(ask.filter):
        return hits, total, (UNFIT, *ask.hints)
    few = [hit for hit in hits if embedder or hit.why.get("coverage")][:FEW]
    return few, len(few), (STRANGE, *ask.hints)


def _is_strange(hits: Sequence[Hit], embedder: Embedder | None) -> bool:
    """Whether even the best of the hits is no nearer to the question than memories about something else are, and none holds all its words.
    Without a model, whether it holds next to nothing of the question, and is not there for its topic either."""
    if any(hit.why.get("coverage") == 1 for hit in hits):
        return False
    if embedder is None:
        held = [hit.why.get("coverage", 0.0) for hit in hits]
        return bool(held) and max(held) < THIN and not any("topic" in hit.why for hit in hits)
    baseline = embedder.baseline
    near = [
        (hit.why["cosine"] - baseline) / (1 - baseline) + HELD * hit.why.get("coverage", 0.0)
        for hit in hits
        if "cosine" in hit.why
    ]
    return len(near) == len(hits) > 0 and max(near) < FITS


def _explain(
    candidate: Candidate,
    signals: Signals,
    query: Query,
    profile: Profile,
    now: datetime,
) -> Weights:
    """Every signal's part in a score, for `--explain`."""
    parts = {
        **signals._asdict(),
        **profile_parts(candidate, profile, now),
        "confidence": candidate.confidence,
    }
    why = {
        name: round(value, 4)
        for name, value in parts.items()
        if value is not None and (value or name in ("relevance", "cosine"))
    }
    if (preferred := _preference(candidate, query)) != 1.0:
        why["preferred"] = preferred
    return why


# Candidates

# Memories taken from each signal. Words are ordered coarsely, so more of them are looked at. 300 of each find nothing more
# on the four sets tried (bench/LOG.md, 2026-11-15).
BY_WORDS, BY_MEANING = 200, 100
# Topics of conversations looked at, and those whose ideas all become candidates.
TOPICS, BEST_TOPICS = 40, 3
PARENT = 0.7  # how much of a topic's fit its sub-topics share
# What came out of the work stands for the turns in which it was said; these fill the room that is left.
OUTCOMES = tuple(kind for kind in KINDS if kind not in ("code", "document", "context", "failure"))
LOOKED = 500  # memories of each sort that are looked at; of a longer time the newest
NOTHING_THEN = "Nothing is known from that time; `bethink list` shows the newest."


class Search(NamedTuple):
    """A question while memories are looked for. Its `meaning` is waited for only after everything that words can do is done, so that a
    model may work meanwhile; what is farther away in meaning than the gate is not found by it."""

    query: Query
    ask: Ask
    store: Store
    meaning: Callable[[], Meaning | None]
    filter: Filter

    def gather_both(self, then: Filter) -> tuple[Pool, frozenset[int]]:
        """The candidates, and those of them that held at the time which a question about the past means, by what it sees `then`."""
        pool = self.gather(self.query)
        if not pool.candidates and self.query.kinds_meant:  # nothing is known of that kind
            pool = self.gather(self.query._replace(kinds_meant=False))
        if then is self.filter:
            return pool, frozenset()
        past = self._replace(filter=then).gather(self.query)
        return join_pools(past, pool), frozenset(one.key for one in past.candidates)

    def gather(self, demanding: Query) -> Pool:
        """The candidates that pass the filter, and what a question demands beside it."""
        filter = _narrow_filter(self.filter, demanding)
        follow = not filter.include_superseded and filter.as_of is None
        search = self._replace(filter=filter._replace(follow=follow))
        pool = search._find_by_words()
        if meaning := self.meaning():
            pool = search._find_by_meaning(pool, meaning)
        if any(candidate.span for candidate in pool.candidates):
            pool = search._add_topics(pool)
        return search._follow_successors(pool) if follow else pool

    def _find_by_words(self) -> Pool:
        """What holds words of the question, is about what it names, or is of the kind that it asks for and nothing else."""
        query, store, most = self.query, self.store, max(BY_WORDS, 2 * self.ask.limit)
        words, worded, others = Words(), dict[int, float](), dict[str, int]()
        if self.ask.mode != "vector":
            words = query_words(query)
            worded = dict(store.keyword(query, self.filter, most))
        if (query.kinds_meant and self.filter.kinds) or (query.entities and not query.strict):
            listed = store.list(self.filter, max(LOOKED, 2 * self.ask.limit))
            others = store.keys([memory.id for memory in listed])
        keys = list(dict.fromkeys([*worded, *others.values()]))
        found = store.candidates(keys, self.filter, words, worded)
        if _are_crowded(found, most):
            live = dict(store.keyword(query, self._leave_replaced(), most))
            fresh = [key for key in live if key not in worded]
            found = [*found, *store.candidates(fresh, self.filter, words, fresh)]
            worded |= live
        return Pool(found, words, store.statistics(words, self.filter.scopes), worded, {})

    def _find_by_meaning(self, pool: Pool, meaning: Meaning) -> Pool:
        """The pool with what is near in meaning, and how near everything in it is."""
        store, ask, near = self.store, self.ask, dict[int, float]()
        if not self.query.strict:
            most = max(BY_MEANING, 2 * ask.limit)
            nearest = store.nearest(*meaning, self.filter, most)
            near = {key: cosine for key, cosine in nearest if cosine >= ask.gate}
        known = {one.key for one in pool.candidates}
        fresh = [key for key in near if key not in known]
        more = list(store.candidates(fresh, self.filter, pool.words, ()))
        if not self.query.strict and _are_crowded([*pool.candidates, *more], most, near):
            nearest = store.nearest(*meaning, self._leave_replaced(), most)
            live = {key: cosine for key, cosine in nearest if cosine >= ask.gate}
            fresh = [key for key in live if key not in known and key not in near]
            more += store.candidates(fresh, self.filter, pool.words, ())
            near |= live
        others = [key for key in known if key not in near]
        cosines, mean = store.cosines(others, *meaning, self.filter.scopes)
        return pool._replace(
            candidates=[*pool.candidates, *more],
            cosines=near | cosines,
            statistics=pool.statistics._replace(mean_cosine=mean),
        )

    def _add(self, pool: Pool, keys: Iterable[int]) -> Pool:
        """The pool with these memories, too, as far as the filter lets them in."""
        known = {candidate.key for candidate in pool.candidates}
        fresh = [key for key in dict.fromkeys(keys) if key not in known]
        added = self.store.candidates(fresh, self.filter, pool.words, set(fresh)) if fresh else []
        cosines = dict(pool.cosines)
        if added and (meaning := self.meaning()):
            new = [one.key for one in added]
            cosines |= self.store.cosines(new, *meaning, self.filter.scopes)[0]
        return pool._replace(candidates=[*pool.candidates, *added], cosines=cosines)

    def _add_topics(self, pool: Pool) -> Pool:
        """How well the topics of conversations fit, and what was decided, asked or solved in those that fit best."""
        store, scopes, meaning = self.store, self.filter.scopes, self.meaning()
        by_words = store.keyword_spans(self.query, scopes, TOPICS)
        by_meaning = store.nearest_spans(*meaning, scopes, TOPICS) if meaning else []
        fit = topic_fit(by_words, by_meaning, pool.statistics.mean_cosine)
        best = sorted(fit, key=lambda id: -fit[id])[:BEST_TOPICS]
        if best and not self.query.strict:
            pool = self._add(pool, store.list_in_spans(best, self.filter, BEST_TOPICS * 8))
        spans = {candidate.span for candidate in pool.candidates if candidate.span}
        for id, span in store.spans_by_id(spans, scopes).items():
            if span.parent in fit:
                fit[id] = max(fit.get(id, 0.0), PARENT * fit[span.parent])
        return pool._replace(topics=fit)

    def _leave_replaced(self) -> Filter:
        return self.filter._replace(follow=False)

    def _follow_successors(self, pool: Pool) -> Pool:
        """Put the last successors of superseded memories into the pool in their place, and the answers of questions beside them. Each
        is lent the evidence of the one that led to it. The turn in which a superseded idea was said leaves with it."""
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
            now = self._replace(filter=self._leave_replaced())
            pool = now._add(pool, [heir for _, heir in heirs])
        live = {one.key for one in pool.candidates}
        lent = [
            Loan(old, heir, INHERITED if old.superseded_by else 1.0)
            for old, heir in heirs
            if heir in live
        ]
        return pool._replace(lent=lent)


def _are_crowded(candidates: Candidates, most: int, among: Collection[int] | None = None) -> bool:
    """Whether a signal found as many as were asked for, and most of them were replaced: live ones may be missing then."""
    found = [one for one in candidates if among is None or one.key in among]
    replaced = sum(one.superseded_by is not None for one in found)
    return len(found) >= most and 2 * replaced > len(found)


def _restates(turn: Candidate, idea: Candidate | None) -> bool:
    """Whether a turn says little more than the idea that was taken from it."""
    return idea is not None and turn.position < IDEAS and turn.length <= 2 * idea.length + 10


def _find_heirs(candidates: Candidates, store: Store) -> list[tuple[Candidate, int]]:
    """Who hands evidence on to whom: superseded memories to their last successors, answered questions to their answers."""
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


# A time and nothing else


def list_period(query: Query, ask: Ask, store: Store) -> tuple[Hits, int]:
    """What was said, decided and done in a time: the hits of a page, the newest first, and how many there are. Where there is more
    than fits, what matters most is kept. What was read from files is left out: the day a file was read on says nothing about the work."""
    wanted = ask.filter
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
    page = outcomes[::-1][ask.offset : ask.offset + ask.limit]
    page.sort(key=lambda one: one.created_at, reverse=True)
    return [Hit(one, 1.0, {"in_time": 1.0}) for one in page], len(outcomes)


# What hits replaced, answer, contradict or build on

CHAIN = 8  # links followed back through replaced memories
MOST_RELATIONS = 400  # relations looked at for one answer
# Relations by which one hit comes before another.
LEADING = ("answers", "may_replace", "contradicts", "builds_on", "relates_to")
WEAK = ("builds_on", "relates_to")  # they order only two hits that stand out together
OUTSTANDING = 1.1  # of the next score; with it the answer is first .858 and new before old .867, without .851 and .893 (25 histories)
# Share of the older statement's score that a newer one about the same thing needs to come before it, and the share it needs where the
# older one makes several claims, of which the question may be about another. At most two come before one, so that a wrong mark never pushes
# the answer out of the first three. On 25 written histories: answer first .856, new before old .893; at .35/.35 .841 and .893, at .35/.7 .861 and
# .813 (bench/LOG.md, 2026-11-18).
AS_FITTING, PARTLY_FITTING, MOST_BEFORE = 0.35, 0.5, 2
# Two clauses of two words or more: "Okay, we use MySQL" is one.
_SEVERAL_CLAIMS = re.compile(r"\S\s+[^\s,;.!?]+(?:[,;]|[.!?](?=\s))\s*\S+\s+\S")
LONGEST_CLAIMS = 1000


def expand(hits: Sequence[Hit], store: Store, filter: Filter) -> Hits:
    """Add what each hit is related to, and the chain of memories that it replaced, as far as the filter lets them through. A memory that
    was replaced is shown under its successor, where being replaced is the point, and nowhere else."""
    related = _find_related([hit.memory.id for hit in hits], store)
    ends = {end for found in related.values() for end in found.values()}
    history = store.select(ends, filter._replace(include_superseded=True))
    current = history
    if not filter.include_superseded and any(_is_over(one, filter) for one in history.values()):
        current = {id: one for id, one in history.items() if not _is_over(one, filter)}

    def show(id: str) -> Related:
        return tuple(
            (relation, seen[end])
            for relation, end in related[id].items()
            for seen in [history if _is_replaced_by(relation, end) else current]
            if end in seen and end != id
        )

    return [hit._replace(related=(*show(hit.memory.id), *hit.related)) for hit in hits]


def _is_replaced_by(relation: Relation, end: str) -> bool:
    """Whether a relation says that this end of it was replaced by the other."""
    return relation.type == "supersedes" and relation.target == end


def _is_over(memory: Memory, filter: Filter) -> bool:
    """Whether a memory was replaced, or is no longer valid by the filter's time."""
    now = filter.as_of or filter.now
    ended = memory.valid_to is not None and now is not None and memory.valid_to <= now
    return filter.as_of is None and (memory.superseded_by is not None or ended)


def _find_related(ids: Sequence[str], store: Store) -> dict[str, dict[Relation, str]]:
    """The relations of each hit with their other ends, and those of the chain of memories that it replaced."""
    related: dict[str, dict[Relation, str]] = {id: {} for id in ids}
    replaced: dict[str, list[Relation]] = {}
    for one in store.trace_relations(ids, CHAIN)[:MOST_RELATIONS] if ids else ():
        for end, other in ((one.source, one.target), (one.target, one.source)):
            if end in related:
                related[end][one] = other
        if one.type == "supersedes":
            replaced.setdefault(one.source, []).append(one)
    for id in ids:
        reached = [id]
        for _ in range(CHAIN):
            links = [one for source in reached for one in replaced.get(source, ())]
            reached = [one.target for one in links if one not in related[id] or one.source == id]
            related[id].update((one, one.target) for one in links)
    return related


def mark_disputed(
    hits: Sequence[Hit], question: str, judge: "Judge", store: Store, now: datetime
) -> Hits:
    """Relate hits that are nobody's word (a document, what was pasted) to the user's statements behind them that say otherwise: a README
    is not read again whenever somebody decides something. What was related already is as it is."""
    wanted = _find_disputable([hit.memory for hit in hits], store, now)
    pairs = [(hits[at].memory, hits[own].memory) for at, own in wanted]
    marked = list(hits)
    judged = dispute(question, pairs, judge)
    for (at, _), (claim, own), disputed in zip(wanted, pairs, judged, strict=True):
        if disputed:
            found = (Relation(own.id, claim.id, "contradicts"), own)
            marked[at] = marked[at]._replace(related=(*marked[at].related, found))
    return marked


def _find_disputable(
    memories: Sequence[Memory], store: Store, now: datetime
) -> list[tuple[int, int]]:
    """The places of passages, each with that of a statement behind it, of whose relation nothing is known."""
    stated = [at for at, one in enumerate(memories) if is_users_word(one)][:DISPUTING]
    claimed = [at for at, one in enumerate(memories) if is_nobodys_word(one)][:DISPUTING]
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
    """Whether a statement holds now, and of what a passage speaks of: another project has its own truth."""
    ended = any(end and end <= now for end in (own.valid_to, own.expires_at))
    return own.scope in (claim.scope, PERSONAL, TEAM) and outranks(own, claim) and not ended


def is_users_word(memory: Memory) -> bool:
    return memory.kind in DISTILLED and memory.trust >= TRUST["user"]


def is_nobodys_word(memory: Memory) -> bool:
    return memory.kind in ("document", "context") and memory.trust <= TRUST["import"]


def dispute(question: str, pairs: Sequence[tuple[Memory, Memory]], judge: "Judge") -> list[bool]:
    """Whether each passage and statement cannot both hold. Of the passage the judge sees the sentence that the question is about, and
    either may be the older one."""
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


def put_newer_first(hits: Sequence[Hit], store: Store) -> Hits:
    """Put the more trusted and newer of two statements about the same thing directly before the other, and an answer before its question.

    Only hits change places: a memory that the question did not find never joins them."""
    there = {hit.memory.id: hit for hit in hits}
    leads = _find_leads(hits, store)
    ordered: dict[str, Hit] = {}
    for hit in hits:
        if hit.memory.id in ordered:
            continue
        before = [
            there[id]
            for id, relation in leads.get(hit.memory.id, {}).items()
            if id not in ordered
            and _comes_before(there[id], hit, relation)
            and (relation not in WEAK or _stands_out(there[id], hit, hits))
        ]
        before.sort(key=lambda one: one.score, reverse=True)
        # Of several the newest first: each is newer than the one behind it.
        for one in sorted(
            before[:MOST_BEFORE], key=lambda one: one.memory.created_at, reverse=True
        ):
            ordered[one.memory.id] = one
        ordered[hit.memory.id] = hit
    return list(ordered.values())


def _comes_before(one: Hit, other: Hit, relation: str) -> bool:
    if relation == "answers":
        return True
    if relation in WEAK and not are_statements(one.memory, other.memory):
        return False
    if relation == "builds_on" and one.memory.kind != other.memory.kind:
        return False  # an amendment is of the kind that it amends; a fact about a decision is not
    # A statement with several claims changed in one of them: the question may be about another.
    partly = _SEVERAL_CLAIMS.search(other.memory.content[:LONGEST_CLAIMS]) is not None
    least = PARTLY_FITTING if partly else AS_FITTING
    fitting = relation == "contradicts" or one.score >= least * other.score
    return fitting and outranks(one.memory, other.memory)


def _stands_out(one: Hit, other: Hit, hits: Sequence[Hit]) -> bool:
    """Return True if a hit follows another directly and fits better than the next: both are about the question, the rest is not."""
    place = next(at for at, hit in enumerate(hits) if hit is one)
    following = hits[place + 1].score if place + 1 < len(hits) else 0.0
    return place > 0 and hits[place - 1] is other and one.score >= OUTSTANDING * following


def are_statements(*memories: Memory) -> bool:
    return all(memory.kind in STATEMENTS and memory.trust >= TRUST["agent"] for memory in memories)


def _find_leads(hits: Sequence[Hit], store: Store) -> dict[str, dict[str, str]]:
    """For each hit the other hits that may come before it, with the relation."""
    there = {hit.memory.id: place for place, hit in enumerate(hits)}
    found = store.relations(sorted(there)) if hits else []
    found += [relation for hit in hits for relation, _ in hit.related]
    leads: dict[str, dict[str, str]] = {}
    for one in found:
        if not there.keys() >= {one.source, one.target} or one.type not in LEADING:
            continue
        # Each page loads so many hits beyond its own: from farther below one would rise on some pages and not on others.
        if abs(there[one.source] - there[one.target]) > SPARE:
            continue
        leads.setdefault(one.target, {}).setdefault(one.source, one.type)
        if one.type == "contradicts":
            leads.setdefault(one.source, {}).setdefault(one.target, one.type)
    return leads


def outranks(one: Memory, other: Memory) -> bool:
    live = one.superseded_by is None and one.deleted_at is None
    return live and (one.trust, one.created_at) > (other.trust, other.created_at)
