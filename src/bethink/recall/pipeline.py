"""Recall, the recipe: question → query → candidates → features → rank → expand → answer. Never writes."""

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink.model import Answer, Candidate, Filter, Hit, Query, Strings
from bethink.recall.candidates import Search, apply_syntax
from bethink.recall.expand import expand
from bethink.recall.features import choose_signals, complete_profile, describe, explain
from bethink.recall.hop import follow_reference
from bethink.recall.meaning import choose_reader, read_question
from bethink.recall.period import NOTHING_THEN, list_period
from bethink.recall.query import EVENT_FIT, find_event, parse, resolve_as_of
from bethink.recall.question import complete_question, no_meaning, prepare_ahead, start_embedding
from bethink.recall.rank import PROFILES, Profile, rank
from bethink.recall.resume import resume
from bethink.recall.settled import follow_topics
from bethink.recall.shape import find_sought, title_code
from bethink.recall.shortlist import (
    SPARE,
    Entry,
    Shortlist,
    drop_restated,
    is_question,
    lift_related,
    load_shortlist,
    read_again,
    spread_sessions,
)
from bethink.recall.signals import Signal
from bethink.recall.unrelated import (
    FEW_SHOWN,
    MOST_UNRELATED,
    NOTHING_FITS,
    are_unrelated,
    explain_none_open,
)
from bethink.store.base import Store
from bethink.store.rows import is_narrow

if TYPE_CHECKING:
    from random import Random

    from bethink.embed.base import Embedder
    from bethink.judge import Judge


class Ask(NamedTuple):
    """Everything about a question but its words."""

    filter: Filter
    mode: str = "hybrid"
    fusion: str = "adaptive"
    profile: str = "relevance"  # its name, or the weights as they were written
    weights: Profile = PROFILES["relevance"]
    signals: tuple[Signal, ...] = ()  # registered beside our own
    limit: int = 10
    offset: int = 0
    gate: float = -1.0
    threshold: float = 0.0
    related: bool = True
    hints: Strings = ()
    hypothesis: str = ""  # a guess at the answer, to look near it too
    context: str = ""  # the conversation before the question
    looking_up: bool = False  # the time of an event, for another question
    sift: bool = False  # leave out most of what does not fit, unless a filter says what does
    rerank: bool = False  # let the judge read the first hits again


def recall(
    question: str,
    ask: Ask,
    store: Store,
    embedder: "Embedder | None",
    now: datetime,
    rng: "Random | None" = None,  # for a profile with jitter
    judge: "Judge | None" = None,
    other: "Embedder | None" = None,  # the model for texts that are not in English
) -> Answer:
    """Answer a question."""
    question = complete_question(question, ask.context)
    reader = judge if ask.rerank and is_question(question) else None
    if reader:  # its model is read from disk while candidates are gathered
        prepare_ahead(reader.prepare)

    # Query
    embedder = embedder if ask.mode != "keyword" else None
    query = parse(question, now)
    other = other if embedder else None
    meaning = start_embedding(query.text, embedder, store, ask.hypothesis)
    meaning = read_question(query.text, meaning, other, store, ask.filter.scopes)
    reading_model = choose_reader(query.text, embedder, other)
    if not (query.since or query.until or ask.looking_up):
        query = _date_by_event(question, query, ask, store, embedder, now)
    past = resolve_as_of(query, ask.filter, question, now)
    if not ask.looking_up and (known := _answer_from_record(question, query, ask, store)):
        return known
    if query.recap and not ask.looking_up:
        # A memory about that time may have been made at another: "On 25 October the forecast was off".
        ask = ask._replace(mode="keyword", hints=(NOTHING_THEN, *ask.hints))
        reading_model, meaning = None, no_meaning

    # Candidates
    baseline = reading_model.baseline if reading_model else 0.0
    words = ask.mode != "vector"
    search = Search(
        query, store, ask.filter, meaning, words, ask.limit, now.timestamp(), ask.gate, baseline
    )
    pool, valid_then = search.gather_both(past)

    # Features of every candidate
    signals = choose_signals(ask.fusion, ask.signals)
    profile = complete_profile(ask.weights, pool, signals)
    described = describe(pool, profile, signals, valid_then, now, rng)
    ranked = drop_restated(rank(described, profile, _newest), ask.threshold)
    if reader:
        read_again(ranked, query, store, reader)
        ranked = rank([one[1:] for one in ranked], profile, _newest)

    # Features of the first ones, which need their texts
    # From the first on: a turn that repeats one of an earlier page is left out, and what comes first there stays there.
    window = ranked[: ask.offset + ask.limit + SPARE]
    shortlist = load_shortlist(window, store)
    total = len(ranked) - (len(window) - len(shortlist))
    if query.asks_set:
        spread_sessions(shortlist)
        shortlist = _rank_entries(shortlist, profile)
    if ask.rerank and not (ask.looking_up or query.strict):
        shortlist = _rank_entries(_look_further(shortlist, ask, store, embedder, now), profile)
    shortlist, total, hints = _leave_unrelated(shortlist, total, query, ask, reading_model)
    if ask.related and not (valid_then or ask.filter.as_of):  # the question is about the present
        shortlist = lift_related(shortlist, query, judge, store, now, ask.limit)
        if not query.kinds:  # a question that says which kind it wants gets that
            found = len(shortlist)
            shortlist = follow_topics(shortlist, store, apply_syntax(ask.filter, query))
            total += len(shortlist) - found

    # Rank, expand and answer
    page = _rank_entries(shortlist, profile)[ask.offset : ask.offset + ask.limit]
    hits = _make_hits(page, query, ask, store)
    if not total and query.answered is False:
        hints = (*explain_none_open(query, ask.filter, store), *hints)
    return Answer(query, hits, total, ask.mode, ask.profile, hints, profile.weights)


def _answer_from_record(question: str, query: Query, ask: Ask, store: Store) -> Answer | None:
    """Answer a question about the last session or a time from the record; None for any other."""
    if resumed := resume(question, query, ask.filter, store):
        page = tuple(resumed.hits[ask.offset : ask.offset + ask.limit])
        hints = (*resumed.hints, *ask.hints)
        return Answer(query, page, len(resumed.hits), ask.mode, ask.profile, hints)
    if query.recap:
        listed, total = list_period(query, ask.filter, ask.limit, ask.offset, store)
        if total:
            return Answer(query, tuple(listed), total, ask.mode, ask.profile, ask.hints)
    return None


def _look_further(
    shortlist: Shortlist, ask: Ask, store: Store, embedder: "Embedder | None", now: datetime
) -> Shortlist:
    """Add the memories that the first hits refer to, found by a search in the same places."""

    def look_up(words: str) -> Answer:
        aside = ask._replace(limit=3, offset=0, looking_up=True, rerank=False, related=False)
        return recall(words, aside, store, embedder, now)

    return follow_reference(shortlist, look_up, ask.filter, store)


def _make_hits(page: Shortlist, query: Query, ask: Ask, store: Store) -> tuple[Hit, ...]:
    """Return the entries of a page as hits, with their relations."""
    sought = find_sought(query)
    hits = [
        Hit(title_code(one.memory, sought), key.score, explain(features), one.related)
        for key, one, features in page
    ]
    if ask.related:
        hits = expand(hits, store, apply_syntax(ask.filter, query))
    return tuple(hits)


def _rank_entries(shortlist: Shortlist, profile: Profile) -> Shortlist:
    """Order a shortlist by its features."""
    return rank([one[1:] for one in shortlist], profile, _newest_entry)


def _newest(candidate: Candidate) -> tuple[float, int]:
    """Order candidates with the same key."""
    return -candidate.created_at, candidate.key


def _newest_entry(entry: Entry) -> tuple[float, int]:
    return _newest(entry.candidate)


def _date_by_event(
    question: str, query: Query, ask: Ask, store: Store, embedder: "Embedder | None", now: datetime
) -> Query:
    """Add the time of an event that a question refers to ("before we moved to Postgres"), if known."""
    if (event := find_event(question)) is None:
        return query
    side, text = event
    look = Ask(ask.filter, ask.mode, ask.fusion, limit=1, gate=ask.gate, threshold=EVENT_FIT)
    look = look._replace(related=False, looking_up=True)
    hits = recall(text, look, store, embedder, now).hits
    known: list[Any] = [hit.memory.valid_from or hit.memory.created_at for hit in hits]
    return query._replace(**{side: known[0]}) if known else query


def _leave_unrelated(
    shortlist: Shortlist, total: int, query: Query, ask: Ask, embedder: "Embedder | None"
) -> tuple[Shortlist, int, Strings]:
    """Return the hits to show, the total and hints. If nothing fits, only the nearest few remain.

    Without a model they must contain a word of the question. With one, no hit is dropped for its words: a quarter of short statements that
    are asked for in other words are as far away as unrelated ones. A search that is narrowed, or describes its answer, gets all hits.
    """
    narrowed = query.strict or query.kinds or query.entities
    first = [one.features for one in shortlist[: ask.limit]]
    if narrowed or not are_unrelated(first, embedder):
        return shortlist, total, ask.hints
    if not ask.sift or ask.mode == "vector" or ask.hypothesis or is_narrow(ask.filter):
        return shortlist, total, (NOTHING_FITS, *ask.hints)
    few = [one for one in shortlist if embedder or one.features.get("coverage")][:MOST_UNRELATED]
    return few, len(few), (FEW_SHOWN, *ask.hints)
