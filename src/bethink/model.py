"""The values that flow between the stages. Immutable: a stage returns new ones instead of changing those it was given.

Writing turns a `Source` and its `Passage`s into a `Batch`, which the store answers with a `Receipt`.
Recall turns a `Query` into `Candidate`s, scores them into `Hit`s and returns an `Answer`.
Named tuples rather than dataclasses: every command imports this module, and twenty frozen dataclasses cost 20 ms of it.
This module knows no store, no model and no clock.
"""

# No `from __future__ import annotations` here: of annotations that are texts NamedTuple compiles each, which takes two of the five
# milliseconds that this module costs every command.
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

Strings = tuple[str, ...]
Values = Mapping[str, Any]  # by name
Json = dict[str, Any]  # an object as JSON has it
Lines = tuple[int, int]  # the first and the last
NOTHING: Values = MappingProxyType({})

KINDS = tuple(
    """
    decision conclusion question problem solution todo context fact preference entity relationship architecture component domain
    pattern gotcha discovery document code handoff failure general
    """.split()
)
# Kinds that state one thing: they are compared with each other. The others are passages of a source and repeat themselves; failures are
# known by the signature of their error.
STATEMENTS = tuple(
    kind for kind in KINDS if kind not in ("context", "document", "code", "handoff", "failure")
)
KIND_ALIASES = {
    "self": "preference",
    "note": "general",
    "components": "component",
    "patterns": "pattern",
    "gotchas": "gotcha",
}
RELATIONS = ("supersedes", "builds_on", "contradicts", "answers", "relates_to", "may_replace")
ENTITY_TYPES = ("project", "technology", "concept", "person", "file", "symbol")
MODES = ("hybrid", "vector", "keyword")
AUTOMATIC = ("full", "mark", "off")  # how much a new statement may do to known ones by itself
PERSONAL = "personal"
SAID_IN = "said_in"  # in the metadata of what is personal: the scope of the conversation in which it was said
PUT_OFF = "put_off"  # in the metadata of a to-do: somebody said that it is for another time
TEAM = "team"  # what everybody sees who shares a PostgreSQL database's tenant, in every project

# How far a memory's text is believed. Tool output, imports and what a user pasted from elsewhere stay below what a person
# or their agent said: they never enter a briefing and never count as the user's word.
TRUST = {"user": 3, "agent": 2, "import": 1, "tool": 1, "pasted": 1, "quarantined": 0}
AGENT_ACTORS = ("agent", "token")  # actors that are not a person, or cannot prove that they are


def is_agent(actor: str) -> bool:
    """Whether an actor, such as `agent:claude-code`, is an agent."""
    return actor.partition(":")[0] in AGENT_ACTORS


# One file can be read in several ways, each under a name of its own, so that one reading does not replace another.
BUILTIN = "builtin:"  # what an agent's host puts into its context anyway: found by a search, never told unasked
# Before the source of what an untrusted file brought: it never counts as something that was read or said here.
IMPORTED = "import:"
READINGS = (IMPORTED, "code:", "analysis:", "repo-map:", BUILTIN)


FILES = ("markdown", "repomap", "analysis")  # what sources are that were read from files


def path_of(uri: str) -> str:
    """The file that a uri speaks of. What was imported may have been read in any other way before."""
    for prefix in READINGS:
        uri = uri.removeprefix(prefix)
    return uri


# Ideas stand behind all turns of their transcript, in an order that tells from which turn each came.
IDEAS, IDEAS_PER_TURN = 1_000_000_000, 16
FAILURES = (
    2_000_000_000  # the place of failures, which tools report: behind all ideas, and of no turn
)


ASKED_IMPORTANCE = 2.0  # of a turn that only asks; others count 3


def idea_position(turn: int, number: int) -> int:
    return IDEAS + turn * IDEAS_PER_TURN + min(number, IDEAS_PER_TURN - 1)


def turn_of(position: int) -> int:
    """The place of the turn that a memory is, or came from."""
    return position if position < IDEAS else (position - IDEAS) // IDEAS_PER_TURN


class Source(NamedTuple):
    """Where passages came from. `uri` is the identity under which a later reading replaces an earlier one."""

    uri: str
    type: str = "note"  # note, markdown, repomap, transcript, analysis, git, import
    hash: str | None = None
    position: int = 0
    metadata: Values = NOTHING


class Entity(NamedTuple):
    name: str
    type: str = "concept"


class Passage(NamedTuple):
    """One thing to remember, as a reader or a person gave it. What is None is worked out by `extract`."""

    content: str
    kind: str | None = None
    summary: str | None = None
    importance: float | None = None
    confidence: float | None = None
    tags: Strings = ()
    entities: tuple[Entity, ...] = ()
    section: str | None = None
    lines: Lines | None = None
    created_at: datetime | None = None
    valid_from: datetime | None = None
    expires_at: datetime | None = None
    metadata: Values = NOTHING
    embed: bool = True
    position: int | None = None
    span: str | None = None
    session: str | None = None
    supersedes: Strings = ()  # ids that this is said to replace
    relates_to: Strings = ()  # ids that this names: each is related to it, and used by it


class Memory(NamedTuple):
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
    lines: Lines | None = None
    position: int = 0
    section: str | None = None
    span: str | None = None
    session: str | None = None
    tags: Strings = ()
    keywords: Strings = ()
    entities: tuple[Entity, ...] = ()
    metadata: Values = NOTHING
    trust: int = TRUST["user"]
    # Ids of live memories that say something newer about the same thing. Derived from relations when a memory is read, never stored.
    newer: Strings = ()

    @property
    def path(self) -> str | None:
        """The file a passage came from, or None for what was told."""
        is_file = self.source_type in (*FILES, "transcript")
        return path_of(self.source) if is_file else None


def is_inferred(memory: Memory) -> bool:
    """Return True for a statement that was read out of a transcript: nobody stored it, so it retires nothing."""
    return memory.source_type == "transcript"


# Who may change each field of a stored memory. Every field of `Memory` has one entry; a test fails for one without.
#   edit    people; agents only on memories that are trusted no further than the agent
#   settle  the same, and an agent may also close or reopen an open item that a person stored
#   count   anyone; on a person's memory an agent may only add to it
#   store   nobody by name: operations such as forget, restore and link set it, under the rule of `edit`
FIELD_RULES = {
    "id": "store",
    "scope": "store",
    "kind": "edit",
    "content": "edit",
    "summary": "edit",
    "created_at": "store",
    "updated_at": "store",
    "importance": "edit",
    "confidence": "edit",
    "usefulness": "count",
    "access_count": "count",
    "last_accessed": "count",
    "valid_from": "edit",
    "valid_to": "edit",
    "expires_at": "edit",
    "deleted_at": "store",
    "superseded_by": "store",
    "answered": "settle",
    "content_hash": "store",
    "source": "store",
    "source_type": "store",
    "lines": "store",
    "position": "store",
    "section": "store",
    "span": "store",
    "session": "store",
    "tags": "edit",
    "keywords": "store",
    "entities": "edit",
    "metadata": "edit",
    "trust": "store",
    "newer": "store",
}
EDITABLE = frozenset(name for name, rule in FIELD_RULES.items() if rule in ("edit", "settle"))
OPEN_KINDS = ("question", "problem", "todo", "failure")  # kinds that can be settled


COMMAND_LENGTH = 1_000  # characters of a command that an event keeps


class ToolEvent(NamedTuple):
    """One run of a shell command, or one change of a file. JSON-able: a position keeps those that no turn has taken yet."""

    command: str = ""  # of a shell, without the bodies of heredocs; cut at `COMMAND_LENGTH`
    file: str = ""  # that was changed
    change: str = ""  # the first line that differs, "old → new"
    failed: bool | None = None  # None where the host does not say for certain
    output: str = ""  # the beginning and the end of what it printed
    line: int = 0
    at: str = ""  # ISO
    directory: str = ""


class Session(NamedTuple):
    """One agent conversation."""

    id: str
    scope: str
    host: str = ""
    title: str = ""
    source: str = ""  # uri of its transcript
    started_at: datetime | None = None
    ended_at: datetime | None = None
    metadata: Values = NOTHING

    @property
    def digest(self) -> Mapping[str, str] | None:
        """What it was asked, what it did and what it left: {asked, done, left}."""
        return self.metadata.get("digest")


class Span(NamedTuple):
    """A topic inside a session; topics form a tree."""

    id: str
    scope: str
    session: str
    parent: str | None
    name: str
    summary: str
    lines: Lines  # of the transcript
    depth: int
    created_at: datetime
    metadata: Values = NOTHING


class Relation(NamedTuple):
    source: str
    target: str
    type: str
    created_at: datetime | None = None


class Change(NamedTuple):
    """New values for some fields of one memory; `action` is the word that history keeps."""

    id: str
    action: str
    fields: Values


def supersede(id: str, by: Memory) -> Change:
    """Ends a memory's validity where that of its successor begins."""
    return Change(
        id, "supersede", {"superseded_by": by.id, "valid_to": by.valid_from or by.created_at}
    )


class Entry(NamedTuple):
    """A memory ready to be written. `vectors` holds one unit vector per window of its text, or nothing."""

    memory: Memory
    vectors: Sequence[Any] = ()
    unique: bool = True  # told memories are stored once per scope; passages of a source may repeat
    # hash of a message's identity: what was taken in once is not taken in again
    turn: bytes | None = None


class Batch(NamedTuple):
    """Everything one write changes. The store puts it in whole or not at all."""

    at: datetime
    actor: str = "user"
    scopes: Mapping[str, tuple[str, str]] = NOTHING  # scope → its name and path, for people to read
    # (scope, uri, position): refused if somebody read on meanwhile
    expect: tuple[tuple[str, str, int], ...] = ()
    sources: tuple[tuple[str, Source], ...] = ()  # (scope, source) as now read
    sessions: tuple[Session, ...] = ()
    spans: tuple[tuple[Span, Sequence[Any]], ...] = ()  # topics with the vectors of their summaries
    # (scope, old uri, new uri): a source that is found elsewhere now
    move: tuple[tuple[str, str, str], ...] = ()
    # (scope, uri) of sources whose memories, other than `keep`, are retired
    retire: tuple[tuple[str, str], ...] = ()
    vanish: tuple[tuple[str, str], ...] = ()  # (scope, uri) of sources that are no more
    keep: Strings = ()
    # (id, lines, position) of kept memories that stand elsewhere now
    place: tuple[tuple[str, Lines | None, int], ...] = ()
    add: tuple[Entry, ...] = ()
    change: tuple[Change, ...] = ()
    relate: tuple[Relation, ...] = ()
    unrelate: tuple[Relation, ...] = ()
    access: Strings = ()
    purge: Strings = ()
    model: str | None = None
    vectors: Mapping[str, Sequence[Any]] = NOTHING  # id → new vectors, for changed text
    span_vectors: Mapping[str, Sequence[Any]] = NOTHING  # the same of topics
    # id → the text behind its new vectors: what says something else by now does not get them
    made_of: Mapping[str, str] = NOTHING
    cache: Mapping[str, Sequence[Any]] = NOTHING  # text hash → vectors made while preparing
    allow_purged: bool = False
    # (id, when it was last changed): refused if somebody changed it meanwhile
    unchanged: tuple[tuple[str, datetime], ...] = ()
    # a second write under the same key changes nothing and gets the receipt of the first
    once: str = ""


class Proposal(NamedTuple):
    """What a new memory may mean for a known one. Nothing was changed by it: a person, or better evidence, decides."""

    relation: str  # replaces, answers, completes, same
    id: str  # of the known memory
    reason: str  # less trusted, older, not sure
    probability: float = 1.0


class Outcome(NamedTuple):
    """What became of one passage."""

    id: str
    status: str  # added, duplicate, near_duplicate, purged; of a source read again: kept, forgotten, refused, known
    duplicate_of: str | None = None
    similarity: float | None = None
    supersedes: Strings = ()
    redactions: int = 0
    proposals: tuple[Proposal, ...] = ()
    settles: Strings = ()  # questions answered, problems solved, to-dos done by it
    marks: Strings = ()  # older statements about the same thing, which stay valid and come after it
    similar: str | None = None  # the known memory that is most like it, if one is much like it


class Receipt(NamedTuple):
    outcomes: tuple[Outcome, ...] = ()
    changed: int = 0
    retired: int = 0
    purged: int = 0
    hints: Strings = ()

    @property
    def added(self) -> int:
        return sum(outcome.status == "added" for outcome in self.outcomes)


class Forgotten(NamedTuple):
    """Result of forgetting or purging: the ids that went, and those that wait for a person because an agent asked for it."""

    ids: Strings
    hints: Strings = ()
    proposed: Strings = ()
    phrase: str = ""  # that the user can send as a message to confirm what is proposed


class Event(NamedTuple):
    """One line of a memory's history."""

    at: datetime
    actor: str
    action: str
    before: Values
    after: Values
    number: int = 0


class Held(NamedTuple):
    """A memory of a source, hidden ones included, and the last word of its history."""

    memory: Memory
    action: str


class Filter(NamedTuple):
    """Which memories a read may see. Scopes are never optional: an empty tuple sees nothing."""

    scopes: Strings
    kinds: Strings = ()
    entities: Strings = ()
    tags: Strings = ()
    sources: Strings = ()
    session: str | None = None
    spans: Strings = ()  # topics of a conversation
    min_importance: float | None = None
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None
    answered: bool | None = None
    # what expiry and validity are measured against; None is the present
    now: datetime | None = None
    include_expired: bool = False
    include_deleted: bool = False
    include_superseded: bool = False
    include_quarantined: bool = False
    # lets superseded memories through, so that they can lead to what replaced them
    follow: bool = False
    hosts: Strings = ()  # agents in whose conversations it was said
    max_trust: int | None = None  # only what is believed no further
    min_trust: int | None = None  # only what is believed at least as far
    used: bool = False  # only what was voted for or against, or used
    transcribed: bool = False  # only what was read from a transcript, not what was told of a conversation, such as a summary


# What lets a filter see all that it would hide.
EVERYTHING: Values = {name: True for name in Filter._fields if name.startswith("include_")}


class Term(NamedTuple):
    """One searchable piece of a query: a word, a "quoted phrase" or a prefix*, perhaps in one column."""

    text: str
    phrase: bool = False
    prefix: bool = False
    column: str | None = None


class Query(NamedTuple):
    """A question after analysis. `text` is what is embedded; `terms` is what is looked up by word."""

    raw: str
    text: str
    terms: tuple[Term, ...] = ()
    # ("and" | "or" | "not", left, right) over Terms when operators were used, else None
    expression: Any = None
    kinds: Strings = ()
    entities: Strings = ()
    since: datetime | None = None
    until: datetime | None = None
    answered: bool | None = None
    identifiers: Strings = ()
    # `kind:x` was written: other kinds are not wanted, where a cue phrase only prefers
    kinds_only: bool = False
    kinds_meant: bool = False  # nothing but the kind was asked for, as in "what did we decide?"
    recap: bool = False  # nothing but a time was asked about, as in "what did we do last week?"
    about_code: bool = False  # "where is", "which function": code may come before notes

    @property
    def strict(self) -> bool:
        """Whether only what holds the asked words may answer: operators, phrases, prefixes or columns were used throughout."""
        return self.expression is not None or (
            bool(self.terms)
            and all(term.phrase or term.prefix or term.column for term in self.terms)
        )


class Words(NamedTuple):
    """The words of a question as the index knows them, and which of them stand side by side."""

    lexemes: Strings = ()
    pairs: tuple[tuple[str, str], ...] = ()


class Candidate(NamedTuple):
    """What scoring needs of a memory without its text. Loaded by the hundred."""

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
    span: str | None  # the topic of a conversation that it belongs to
    length: int
    frequencies: tuple[int, ...]  # how often each word of the question stands in it
    # whether each two neighbouring words of the question stand side by side in it
    pairs: tuple[bool, ...]


Candidates = Sequence[Candidate]
# One signal's opinion: keys with scores, best first. Scores of different signals are not comparable.
Ranking = tuple[tuple[int, float], ...]


# Relations of a memory, each with the memory at its other end.
Related = tuple[tuple[Relation, Memory], ...]


class Hit(NamedTuple):
    memory: Memory
    score: float
    why: Mapping[str, float] = NOTHING
    related: Related = ()


class Answer(NamedTuple):
    query: Query
    hits: tuple[Hit, ...]
    total: int
    mode: str
    profile: str = "relevance"
    hints: Strings = ()
    weights: Mapping[str, float] = NOTHING  # what each signal counted


def is_untrusted_import(memory: Memory) -> bool:
    """Return True for what a file brought that nobody vouched for (`import` without `--trusted`)."""
    source = f"{memory.source}:"  # a note has the bare word
    return memory.trust <= TRUST["import"] and source.startswith(IMPORTED)


def is_remote(model: object) -> bool:
    """Return True unless a model declares, by `remote = False`, that no text leaves this process through it."""
    return getattr(model, "remote", True) is not False
