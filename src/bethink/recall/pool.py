"""Pool: everything that was gathered about one question, for signals to read."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bethink.model import NOTHING, Candidate, Candidates, Memory, Query, Words
from bethink.store.base import Statistics


class Loan(NamedTuple):
    """Evidence lent to another memory: by a superseded one to its successor, by a question to its answer."""

    lender: Candidate
    heir: int  # key of the borrower
    share: float  # of the lender's lead over the heir


class Pool(NamedTuple):
    """Everything that was gathered about one question."""

    candidates: Candidates
    words: Words
    statistics: Statistics
    found: Mapping[int, float]  # the full-text engine's own score of what it found
    cosines: Mapping[int, float]
    topics: Mapping[str, float] = NOTHING  # how well each topic of a conversation fits, by its id
    lent: Sequence[Loan] = ()
    query: Query = Query("", "")
    now: float = 0.0  # seconds since the epoch
    gate: float = -1.0  # cosines below it count as no match
    baseline: float = 0.0  # mean cosine that the model usually gives
    lenders: int = 0  # candidates at the end that only lend their evidence
    load: Callable[[Sequence[int]], Mapping[int, Memory]] | None = None  # memories by their keys


def join_pools(one: Pool, other: Pool) -> Pool:
    """Combine two pools; a candidate in both is taken from the first."""
    known = {candidate.key for candidate in one.candidates}
    return other._replace(
        candidates=[*one.candidates, *(new for new in other.candidates if new.key not in known)],
        found={**other.found, **one.found},
        cosines={**other.cosines, **one.cosines},
        topics={**other.topics, **one.topics},
        lent=[*one.lent, *other.lent],
    )


def merge_words(pool: Pool) -> Candidates:
    """Return the candidates, heirs with the question words of their lenders added."""
    merged = {one.key: one for one in pool.candidates}
    for lender, heir, _ in pool.lent:
        one = merged[heir]
        merged[heir] = one._replace(
            frequencies=tuple(map(max, one.frequencies, lender.frequencies)),
            pairs=tuple(map(max, one.pairs, lender.pairs)),
        )
    return list(merged.values())
