"""The values that flow between the stages. Frozen: a stage returns new ones instead of changing those it was given.

Writing turns a `Source` and its `Passage`s into a `Batch`, which the store answers with a `Receipt`.
Recall turns a `Query` into `Candidate`s, scores them into `Hit`s and returns an `Answer`.
This module knows no store, no model and no clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

KINDS = (
    "decision", "conclusion", "question", "problem", "solution", "todo", "context",
    "fact", "preference", "entity", "relationship",
    "architecture", "component", "domain", "pattern", "gotcha", "discovery",
    "document", "code",
    "handoff", "general",
)  # fmt: skip
KIND_ALIASES = {"self": "preference", "note": "general", "components": "component", "patterns": "pattern", "gotchas": "gotcha"}
RELATIONS = ("supersedes", "builds_on", "contradicts", "answers", "relates_to")
ENTITY_TYPES = ("project", "technology", "concept", "person", "file", "symbol")
MODES = ("hybrid", "vector", "keyword")
PERSONAL = "personal"

# How far a memory's text is believed. Tool output and imports stay below what a person or their agent said.
TRUST = {"user": 3, "agent": 2, "import": 1, "tool": 1, "quarantined": 0}


@dataclass(frozen=True, slots=True)
class Source:
    """Where passages came from. `uri` is the identity under which a later reading replaces an earlier one."""

    uri: str
    type: str = "note"  # note, markdown, repomap, transcript, analysis, git, import
    hash: str | None = None
    position: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entity:
    name: str
    type: str = "concept"


@dataclass(frozen=True, slots=True)
class Passage:
    """One thing to remember, as a reader or a person gave it. What is None is worked out by `extract`."""

    content: str
    kind: str | None = None
    summary: str | None = None
    importance: float | None = None
    confidence: float | None = None
    tags: tuple[str, ...] = ()
    entities: tuple[Entity, ...] = ()
    section: str | None = None
    lines: tuple[int, int] | None = None
    created_at: datetime | None = None
    valid_from: datetime | None = None
    expires_at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    embed: bool = True
    position: int | None = None
    span: str | None = None
    session: str | None = None
    embedding_text: str | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    id: str
    scope: str
    kind: str
    content: str
    summary: str
    created_at: datetime
    updated_at: datetime
    importance: float = 5.0
    confidence: float = 1.0
    usefulness: float = 0.0
    access_count: int = 0
    last_accessed: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    expires_at: datetime | None = None
    deleted_at: datetime | None = None
    superseded_by: str | None = None
    answered: bool | None = None
    content_hash: str = ""
    source: str = "note"
    source_type: str = "note"
    lines: tuple[int, int] | None = None
    position: int = 0
    section: str | None = None
    span: str | None = None
    session: str | None = None
    tags: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    entities: tuple[Entity, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    trust: int = TRUST["user"]

    @property
    def path(self) -> str | None:
        """The file a passage came from, or None for what was told."""
        return self.source if self.source_type in ("markdown", "repomap", "transcript", "analysis") else None


@dataclass(frozen=True, slots=True)
class Relation:
    source: str
    target: str
    type: str
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """New values for some fields of one memory; `action` is the word that history keeps."""

    id: str
    action: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory ready to be written. `vectors` holds one unit vector per window of its text, or nothing."""

    memory: Memory
    vectors: Sequence[Any] = ()
    unique: bool = True  # told memories are stored once per scope; passages of a source may repeat


@dataclass(frozen=True, slots=True)
class Batch:
    """Everything one write changes. The store puts it in whole or not at all."""

    at: datetime
    actor: str = "user"
    scopes: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # scope → its name and path, for people to read
    sources: tuple[tuple[str, Source], ...] = ()  # (scope, source) as now read
    retire: tuple[tuple[str, str], ...] = ()  # (scope, uri) of sources whose memories, other than `keep`, are retired
    keep: tuple[str, ...] = ()
    add: tuple[Entry, ...] = ()
    change: tuple[Change, ...] = ()
    relate: tuple[Relation, ...] = ()
    unrelate: tuple[Relation, ...] = ()
    access: tuple[str, ...] = ()
    purge: tuple[str, ...] = ()
    model: str | None = None
    vectors: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # id → new vectors, for changed text
    cache: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # text hash → vectors made while preparing
    allow_purged: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one passage."""

    id: str
    status: str  # added, duplicate, near_duplicate, purged
    duplicate_of: str | None = None
    similarity: float | None = None
    supersedes: tuple[str, ...] = ()
    redactions: int = 0


@dataclass(frozen=True, slots=True)
class Receipt:
    outcomes: tuple[Outcome, ...] = ()
    changed: int = 0
    retired: int = 0
    purged: int = 0
    hints: tuple[str, ...] = ()

    @property
    def added(self) -> int:
        return sum(outcome.status == "added" for outcome in self.outcomes)


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a memory's history."""

    at: datetime
    actor: str
    action: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    number: int = 0


@dataclass(frozen=True, slots=True)
class Filter:
    """Which memories a read may see. Scopes are never optional: an empty tuple sees nothing."""

    scopes: tuple[str, ...]
    kinds: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    session: str | None = None
    min_importance: float | None = None
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None
    answered: bool | None = None
    now: datetime | None = None  # what expiry and validity are measured against; None is the present
    include_expired: bool = False
    include_deleted: bool = False
    include_superseded: bool = False
    include_quarantined: bool = False
    follow: bool = False  # lets superseded memories through, so that they can lead to what replaced them

    @property
    def narrow(self) -> bool:
        """Whether it asks for more than the scope and the usual visibility, so that few memories may pass."""
        return bool(
            self.kinds or self.entities or self.tags or self.sources or self.session or self.min_importance is not None
            or self.since or self.until or self.as_of or self.answered is not None
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Term:
    """One searchable piece of a query: a word, a "quoted phrase" or a prefix*, perhaps in one column."""

    text: str
    phrase: bool = False
    prefix: bool = False
    column: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A question after analysis. `text` is what is embedded; `terms` is what is looked up by word."""

    raw: str
    text: str
    terms: tuple[Term, ...] = ()
    expression: Any = None  # ("and" | "or" | "not", left, right) over Terms when operators were used, else None
    kinds: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    answered: bool | None = None
    identifiers: tuple[str, ...] = ()


class Words(NamedTuple):
    """The words of a question as the index knows them, and which of them stand side by side."""

    lexemes: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()


class Candidate(NamedTuple):
    """What scoring needs of a memory without its text. Loaded by the hundred, so a tuple and not a dataclass."""

    key: int
    kind: str
    importance: float
    confidence: float
    usefulness: float
    access_count: int
    created_at: float  # seconds since the epoch
    last_accessed: float
    trust: int
    source: int
    position: int  # place within its source, which says who its neighbours are
    superseded_by: str | None
    length: int
    frequencies: tuple[int, ...]  # how often each word of the question stands in it
    pairs: tuple[bool, ...]  # whether each two neighbouring words of the question stand side by side in it
    cosine: float | None


@dataclass(frozen=True, slots=True)
class Ranking:
    """One signal's opinion: (key, score) pairs, best first. Scores of different signals are not comparable."""

    signal: str
    items: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Hit:
    memory: Memory
    score: float
    why: Mapping[str, float] = field(default_factory=dict)
    related: tuple[tuple[Relation, Memory], ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    query: Query
    hits: tuple[Hit, ...]
    total: int
    mode: str
    profile: str = "relevance"
    hints: tuple[str, ...] = ()
