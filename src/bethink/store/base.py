"""What a store is: the one place memories live, behind one protocol that every backend passes the same tests for.

There is one door for writes, `write(Batch)`, which puts a batch in whole or not at all. Everything else reads.
Reads never change anything. Scopes are part of every filter: a read that names no scope sees nothing.
"""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from bethink.store.bundle import Bundle, Record
from bethink.types import (
    NOTHING,
    Batch,
    Candidate,
    Event,
    Filter,
    Held,
    Memory,
    Query,
    Ranking,
    Receipt,
    Relation,
    Session,
    Source,
    Span,
    Words,
)


class Statistics(NamedTuple):
    """The numbers that word weights are made of, taken inside the searched scopes only."""

    memories: int
    average_length: float
    counts: tuple[int, ...]  # memories that hold each word of the question
    mean_cosine: float | None = (
        None  # of the question against every memory in scope, where it has a vector
    )


class Problem(NamedTuple):
    """Something `check` found. `repair` names what mends it: 'reindex', 'restore', 'permissions' or ''."""

    part: str
    message: str
    repair: str = ""


class Overview(NamedTuple):
    memories: int
    deleted: int
    by_kind: Mapping[str, int]
    by_scope: Mapping[str, int]
    entities: int
    relations: int
    sources: int
    sessions: int
    spans: int
    vectors: Mapping[str, int]  # model → vectors
    unembedded: int
    database_bytes: int
    cached: int
    extra: Mapping[str, Any] = NOTHING


class Store(Protocol):
    def write(self, batch: Batch) -> Receipt: ...

    # One memory at a time

    def resolve(self, prefix: str, scopes: Sequence[str] | None = None) -> str:
        """The one id that starts with `prefix`. NotFound and Ambiguous otherwise."""
        ...

    def get(self, ids: Sequence[str]) -> list[Memory]:
        """The memories of these ids that exist, in the order asked for."""
        ...

    def history(self, id: str) -> list[Event]: ...

    def relations(self, ids: Sequence[str]) -> list[Relation]: ...

    def abbreviate(self, ids: Sequence[str]) -> dict[str, str]:
        """The shortest prefix of each id that no other memory shares, never so short that the next memory spoils it."""
        ...

    # Many memories

    def list(
        self, filter: Filter, limit: int = 50, offset: int = 0, order: str = "created"
    ) -> builtins.list[Memory]: ...

    def count(self, filter: Filter) -> int: ...

    def scan(self, filter: Filter, lost: builtins.list[str] | None = None) -> Iterator[Memory]:
        """Every memory that passes, oldest first, without holding them all in memory. Damage is an error; with `lost` the memories
        that cannot be read are named there, and the others come."""
        ...

    def duplicates(self, hashes: Sequence[str], scope: str) -> dict[str, str]:
        """Content hash → id of the live memory in that scope that holds the same text."""
        ...

    def tombstoned(self, hashes: Sequence[str]) -> set[str]: ...

    def source(self, scope: str, uri: str) -> Source | None: ...

    def find_source(self, uri: str) -> tuple[str, Source] | None:
        """A source by its uri, and the scope that keeps how far it was read: conversations of several projects may share a file."""
        ...

    def sources(self, scope: str, collection: str | None = None) -> builtins.list[Source]:
        """The sources of a scope in the order they were first read, or those of one collection (`metadata["collection"]`)."""
        ...

    def held(self, scope: str, uri: str) -> builtins.list[Held]:
        """The passages of one source in their order, forgotten and retired ones included; not what was told under its name."""
        ...

    def around(self, id: str, before: int, after: int) -> builtins.list[Memory]:
        """The memories that stand beside this one in its source, in order, itself included; around an idea the turns it came from."""
        ...

    # Conversations

    def sessions(
        self, scopes: Sequence[str], limit: int = 50, offset: int = 0, prefix: str | None = None
    ) -> builtins.list[Session]:
        """Newest first; or those whose id starts with `prefix`."""
        ...

    def spans(self, session: str, scopes: Sequence[str]) -> builtins.list[Span]:
        """The topics of a session in the order of the conversation, parents before their children."""
        ...

    def spans_by_id(self, ids: Sequence[str], scopes: Sequence[str]) -> dict[str, Span]: ...

    def known_turns(self, scope: str, identities: Sequence[bytes]) -> set[bytes]:
        """Those of these messages that were taken in before, forgotten and purged ones included."""
        ...

    def keyword_spans(
        self, query: Query, scopes: Sequence[str], limit: int
    ) -> builtins.list[tuple[str, float]]: ...

    def in_spans(self, ids: Sequence[str], filter: Filter, limit: int) -> builtins.list[int]:
        """Keys of what was said in these topics beyond the turns themselves: decisions, questions, solutions."""
        ...

    def nearest_spans(
        self, vector: Any, model: str, scopes: Sequence[str], limit: int
    ) -> builtins.list[tuple[str, float]]: ...

    # The signals of a search

    def keyword(self, query: Query, filter: Filter, limit: int) -> Ranking: ...

    def nearest(
        self, vector: Any, model: str, filter: Filter, limit: int, least: float | None = None
    ) -> Ranking:
        """The memories nearest to a vector. With `least`, for who looks for what is almost the same, those of at least that cosine."""
        ...

    def ready(self, model: str, scopes: Sequence[str]) -> None:
        """Takes up what was written since the last search, so that the next `nearest` need not: for who waits for a vector anyway."""
        ...

    def by_entity(self, names: Sequence[str], filter: Filter, limit: int) -> Ranking: ...

    def statistics(self, words: Words, scopes: Sequence[str]) -> Statistics: ...

    def candidates(
        self, keys: Sequence[int], filter: Filter, words: Words, worded: Collection[int]
    ) -> builtins.list[Candidate]:
        """What scoring needs of these keys; those that the filter hides are left out. Words are counted only in the `worded`."""
        ...

    def cosines(
        self, keys: Sequence[int], vector: Any, model: str, scopes: Sequence[str]
    ) -> tuple[dict[int, float], float]:
        """The cosine of each of these memories that has a vector of this model, and the mean over all that the scopes hold."""
        ...

    def answers(self, keys: Sequence[int]) -> builtins.list[tuple[int, str]]:
        """(key of a question or problem, id of what answers it) for those of these memories that have an answer."""
        ...

    def keys(self, ids: Sequence[str]) -> dict[str, int]: ...

    def load(self, keys: Sequence[int]) -> dict[int, Memory]: ...

    # Vectors

    def models(self) -> builtins.list[str]:
        """The models that any vector is of."""
        ...

    def cached(self, hashes: Sequence[bytes], model: str) -> dict[bytes, Any]: ...

    def unembedded(self, model: str, limit: int) -> builtins.list[Memory]:
        """Memories that should have a vector of this model and have none, oldest first."""
        ...

    def count_unembedded(self, model: str) -> int: ...

    def unembedded_spans(self, model: str, limit: int) -> builtins.list[Span]:
        """Topics that should have a vector of this model and have none. Those whose words were purged need none."""
        ...

    # Between stores

    def export(
        self,
        part: str,
        after: str,
        limit: int,
        scopes: Sequence[str] | None = None,
        vectors: bool = True,
    ) -> tuple[Bundle, str]:
        """One page of a part (`records.PARTS`) behind the cursor `after`, and the cursor behind it. A page with nothing in it is the end."""
        ...

    def records(self, ids: Sequence[str], vectors: bool = True) -> builtins.list[Record]:
        """Those of these memories that exist, whole and in no order."""
        ...

    def take(
        self,
        bundle: Bundle,
        *,
        expect: Mapping[str, bytes | None] | None = None,
        allow_purged: bool = False,
        note: tuple[str, str] | None = None,
    ) -> tuple[str, ...]:
        """Puts a bundle down as it is, in one transaction with a note. Returns the ids of memories that were not taken, or not removed:
        whose `version` is not the expected one (None: there is none), whose text another memory of the scope holds, or that would bring
        back a text that was purged, if only in their history."""
        ...

    def noted(self, name: str) -> str | None:
        """A note that came with a bundle."""
        ...

    # Care

    def scopes(self) -> builtins.list[str]: ...

    def overview(self, scopes: Sequence[str] | None = None) -> Overview: ...

    def check(self, deep: bool = False) -> builtins.list[Problem]: ...

    def rebuild(self) -> int:
        """Makes the full-text index and the word counts anew from the texts."""
        ...

    def drop_vectors(self, model: str | None = None) -> int: ...

    def backup(self, path: str) -> int: ...

    def reset(self, scopes: Sequence[str] | None = None) -> int:
        """Forgets everything, or everything in some scopes, beyond recovery."""
        ...

    def close(self) -> None: ...
