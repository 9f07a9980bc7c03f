"""Immutable values that flow between the stages: a stage returns new ones.

Writing turns a `Source` and its `Passage`s into a `Batch`, which the store answers with a
`Receipt`. Recall turns a `Query` into `Candidate`s, scores them into `Hit`s and returns an
`Answer`. They are named tuples rather than dataclasses, because every command imports this module,
and twenty frozen dataclasses cost 20 ms. This module knows no store, no model and no clock.
"""

# No `from __future__ import annotations` here: NamedTuple compiles each annotation that is a string, which takes two of the
# five milliseconds that this module costs every command.
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType, NoneType
from typing import Annotated, Any, Literal, NamedTuple

Strings = tuple[str, ...]
Values = Mapping[str, Any]  # by name
Json = dict[str, Any]  # a JSON object
Lines = tuple[int, int]  # the first and the last
NOTHING: Values = MappingProxyType({})

KINDS = tuple(
    """
    decision conclusion question problem solution todo context fact preference entity relationship architecture component domain
    pattern gotcha discovery document code handoff failure general
    """.split()
)
# Kinds that state one thing and are compared with each other. The others are passages of a source and repeat themselves;
# failures are identified by the signature of their error.
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
CONVERSATION_SCOPE = (
    "said_in"  # key in the metadata of a personal memory: the scope of its conversation
)
PUT_OFF = "put_off"  # key in the metadata of a to-do: it was postponed
READ_BY = "read_by"  # key in the metadata of an idea that a language model found: its name
TEAM = "team"  # scope that all members of a PostgreSQL tenant see, in every project

# Trust in a memory's text. Tool output, imports and pasted text rank below the words of a person or their agent: they never
# enter a briefing and never count as the user's word.
TRUST = {"user": 3, "agent": 2, "import": 1, "tool": 1, "pasted": 1, "quarantined": 0}
BACKGROUND = "hook"  # the actor of what is read beside an agent: it is nobody's own change
AGENT_ACTORS = ("agent", "token")  # actors that are not a person, or cannot prove that they are


def is_agent(actor: str) -> bool:
    """Return True if an actor, such as `agent:claude-code`, is an agent."""
    return actor.partition(":")[0] in AGENT_ACTORS


# One file can be read in several ways, each under a separate name, so that one reading does not replace another.
BUILTIN = "builtin:"  # files that the agent itself reads into its context: found by a search, never shown unasked
# Prefix of sources from an untrusted file: they never count as read or said here.
IMPORTED = "import:"
READINGS = (IMPORTED, "code:", "analysis:", "repo-map:", BUILTIN)


FILES = ("markdown", "repomap", "analysis")  # types of sources that were read from files


def path_of(uri: str) -> str:
    """File that a URI refers to. An imported source may have any other prefix as well."""
    for prefix in READINGS:
        uri = uri.removeprefix(prefix)
    return uri


# Positions of ideas follow all turns of their transcript, and encode the turn that each came from.
IDEAS, _IDEAS_PER_TURN = 1_000_000_000, 16
# Position of failures, which tools report: after all ideas, and without a turn.
FAILURES = 2_000_000_000


ASKED_IMPORTANCE = 2.0  # of a turn that only asks; others count 3


def idea_position(turn: int, number: int) -> int:
    return IDEAS + turn * _IDEAS_PER_TURN + min(number, _IDEAS_PER_TURN - 1)


def turn_of(position: int) -> int:
    """Position of the turn that a memory is, or came from."""
    return position if position < IDEAS else (position - IDEAS) // _IDEAS_PER_TURN


# Fields


# Who may change a field of a stored memory.
#   edit    people; agents only on memories that are trusted no further than the agent
#   settle  the same, and an agent may also close or reopen an open item that a person stored
#   count   anyone; on a person's memory an agent may only add to it
#   store   nobody by name: operations such as forget, restore and link set it, under the rule of `edit`
#   fixed   nobody: it says which memory this is, or where it came from, or it is derived
Rule = Literal["edit", "settle", "count", "store", "fixed"]

# Places that show or take a field.
#   add     arguments of `add`, beside those of `update`
#   json    the JSON object of a memory (command line, HTTP, MCP)
#   text    a memory in full, as text
#   form    the form on the web page of a memory
#   export  a record of an export, a migration or a sync
#   note    the head of a note in a Markdown vault
Surface = Literal["add", "json", "text", "form", "export", "note"]
# Tools for agents that list a field among their arguments. Every session of an agent pays for the list, so by default a tool accepts a
# field without listing it.
ToolList = Literal["add", "update"]

# Type of a field's value, by which rows, JSON, options and forms treat it.
Shape = Literal[
    "text", "number", "whole", "switch", "time", "texts", "object", "entities", "lines", "other"
]
EXACT = 1 << 53  # whole numbers up to here are exact in JSON


class Field(NamedTuple):
    """Declaration of a stored field, in its annotation.

        Annotated[float, Field("0 to 10", low=0, high=10)]

    Columns, JSON, bounds, arguments, schemas, forms, exports and the reference are derived from it
    (`fields_of`). A field is shown everywhere unless `hidden` says otherwise, so that a new one is
    missing nowhere.
    """

    help: str  # meaning, for the reference and schemas
    rule: Rule = "store"
    takes: str = ""  # how people write a value, for the help of an option; `help` where it is empty
    argument: str = ""  # name in every interface, where that is not the field's own
    aliases: Strings = ()  # older names of the argument, still accepted
    label: str = ""  # in text and on the web page, where it is not the argument's name
    low: float | None = None
    high: float | None = None
    longest: int | None = None  # characters of a text
    choices: Strings = ()
    past: bool = False  # a time that cannot lie ahead: an import's is cut at the present
    columns: Strings | None = None  # if it is not one column of the same name
    hashed: bool | None = None  # covered by the row hash; by default if its rule is `edit`
    synced: bool = True  # False: each database has its own value
    hidden: tuple[Surface, ...] = ()
    listed: tuple[ToolList, ...] = ()
    brief: str | None = None  # help in these tools, where it is not `takes`


class FieldInfo(NamedTuple):
    """Declared field of a value, with everything derived from its declaration."""

    name: str
    type: Any  # without `| None`
    optional: bool  # may be None
    required: bool  # has no default
    default: Any
    shape: Shape
    field: Field

    @property
    def argument(self) -> str:
        """Name under which the command line, MCP and HTTP take the field."""
        return self.field.argument or self.name

    @property
    def names(self) -> Strings:
        """Every name that the argument is accepted under."""
        return (self.argument, *self.field.aliases)

    @property
    def label(self) -> str:
        return self.field.label or self.argument.removesuffix("_at").replace("_", " ")

    @property
    def takes(self) -> str:
        """Help of the argument."""
        return self.field.takes or self.field.help

    @property
    def editable(self) -> bool:
        """True if `update` takes the field."""
        return self.field.rule in ("edit", "settle")

    @property
    def addable(self) -> bool:
        """True if `add` takes the field."""
        return self.field.rule == "edit" and "add" not in self.field.hidden

    @property
    def clearable(self) -> bool:
        """True if `update` can empty the field."""
        return self.editable and self.optional

    @property
    def columns(self) -> Strings:
        """Columns of the value's own table."""
        return (self.name,) if self.field.columns is None else self.field.columns

    @property
    def hashed(self) -> bool:
        rule = self.field.rule == "edit" and bool(self.columns)
        return rule if self.field.hashed is None else self.field.hashed

    def is_shown(self, surface: Surface) -> bool:
        return surface not in self.field.hidden


_FIELDS: dict[type, dict[str, FieldInfo]] = {}


def fields_of(kind: type) -> Mapping[str, FieldInfo]:
    """Declared fields of a stored value, such as Memory or Source, in order.

    >>> fields_of(Memory)["importance"].field.high
    10
    """
    if kind not in _FIELDS:
        defaults = getattr(kind, "_field_defaults", {})
        _FIELDS[kind] = {
            name: _describe(name, declared, defaults)
            for name, declared in kind.__annotations__.items()
        }
    return _FIELDS[kind]


def _describe(name: str, declared: Any, defaults: Values) -> FieldInfo:
    if not hasattr(declared, "__metadata__"):
        raise TypeError(f"The field {name} is declared without Annotated[…, Field(…)].")
    inner = declared.__origin__
    parts: tuple[Any, ...] = getattr(inner, "__args__", ())
    optional = NoneType in parts
    kind = parts[0] if optional else inner
    shape = _SHAPES.get(kind, "other")
    field = declared.__metadata__[0]
    default = defaults.get(name)
    return FieldInfo(name, kind, optional, name not in defaults, default, shape, field)


class Source(NamedTuple):
    """Origin of passages. A later reading with the same `uri` replaces an earlier one."""

    uri: Annotated[str, Field("A file, a transcript, or the name that a note was added under")]
    type: Annotated[str, Field("note, markdown, repomap, transcript, analysis, git or import")] = (
        "note"
    )
    hash: Annotated[str | None, Field("Hash of what was read")] = None
    position: Annotated[int, Field("How far it was read")] = 0
    metadata: Annotated[Values, Field("State that its reader continues from")] = NOTHING


class Entity(NamedTuple):
    """Thing that memories are about."""

    name: Annotated[str, Field("As it was first written")]
    type: Annotated[str, Field("project, technology, concept, person, file or symbol")] = "concept"


_SHAPES: dict[Any, Shape] = {
    str: "text",
    float: "number",
    int: "whole",
    bool: "switch",
    datetime: "time",
    Strings: "texts",
    Values: "object",
    tuple[Entity, ...]: "entities",
    Lines: "lines",
}


class Passage(NamedTuple):
    """Text to remember from a reader or a person; `extract` fills in what is None.

    `make_passage` builds one from the fields of a memory.
    """

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
    supersedes: Strings = ()  # ids that this replaces
    relates_to: Strings = ()  # ids that this mentions: each is related to it, and counts as used
    more: Values = NOTHING  # other fields of the memory, by name


def make_passage(**values: Any) -> Passage:
    """Build a passage; memory fields without an attribute go into `more`, and None is left out."""
    present = {name: value for name, value in values.items() if value is not None}
    own = {name: present.pop(name) for name in Passage._fields if name in present}
    return Passage(**own, more=present)


class Memory(NamedTuple):
    """One stored statement, passage or turn.

    Each field is declared here and nowhere else. A new one goes to the end: hashes cover the fields up to `newer` by their
    order, and later ones by name where they differ from their default, so that hashes of older rows stay valid.
    """

    id: Annotated[
        str,
        Field("UUID version 7; sorts by time of creation", "fixed", hashed=True, hidden=("text",)),
    ]
    scope: Annotated[
        str,
        Field(
            "`personal`, `team`, `project:…` or `container:…/name`",
            "fixed",
            label="of",
            synced=False,
        ),
    ]
    kind: Annotated[
        str,
        Field(
            "One of the kinds in the guide to writing",
            "edit",
            takes="decision, fact, preference, question, todo, gotcha …",
            choices=KINDS,
            hidden=("text",),
            listed=("add",),
            brief="decision, fact, preference, gotcha, question, todo …",
        ),
    ]
    content: Annotated[
        str,
        Field(
            "The whole text, as stored",
            "edit",
            takes="the text",
            hidden=("text", "note"),
            listed=("add", "update"),
            brief="",
        ),
    ]
    summary: Annotated[
        str,
        Field(
            "One line of at most 20 words",
            "edit",
            takes="one line; made by rules if not given",
            hidden=("text",),
        ),
    ]
    created_at: Annotated[
        datetime,
        Field(
            "When it was stored. All times are UTC, ISO 8601, with milliseconds and `Z`",
            past=True,
            hashed=True,
            hidden=("text",),
        ),
    ]
    updated_at: Annotated[datetime, Field("When it was last changed", past=True, hidden=("text",))]
    importance: Annotated[
        float, Field("0 to 10", "edit", low=0, high=10, listed=("add",), brief="")
    ] = 5.0
    confidence: Annotated[
        float, Field("0 to 1: how firmly it was said", "edit", low=0, high=1, hidden=("form",))
    ] = 1.0
    usefulness: Annotated[
        float, Field("Sum of the votes", "count", label="votes", low=-1e9, high=1e9)
    ] = 0.0
    access_count: Annotated[
        int,
        Field(
            "How often it was shown by `get` or voted on",
            "count",
            low=0,
            high=EXACT,
            synced=False,
            hidden=("text",),
        ),
    ] = 0
    last_accessed: Annotated[
        datetime | None,
        Field(
            "When that last was; at first the time it was stored",
            "count",
            past=True,
            synced=False,
            hidden=("text", "note"),
        ),
    ] = None
    valid_from: Annotated[
        datetime | None,
        Field(
            "From when it holds, or null for since it was stored",
            "edit",
            takes="from when it holds: a date",
            past=True,
            hidden=("text", "form", "note"),
        ),
    ] = None
    valid_to: Annotated[
        datetime | None,
        Field(
            "Until when it held, or null. Set when it is superseded",
            "edit",
            takes="until when it held: a date",
            label="valid until",
            hidden=("add", "form", "note"),
        ),
    ] = None
    expires_at: Annotated[
        datetime | None,
        Field(
            "When it stops being found, or null",
            "edit",
            takes="30d, or a date",
            argument="expires",
            listed=("add",),
        ),
    ] = None
    deleted_at: Annotated[
        datetime | None,
        Field("When it was forgotten, or null", past=True, hidden=("text", "note")),
    ] = None
    superseded_by: Annotated[
        str | None, Field("Id of its replacement, or null", hidden=("text", "note"))
    ] = None
    answered: Annotated[
        bool | None,
        Field(
            "For questions: true if they have an answer; else null",
            "settle",
            takes="a question that has its answer",
            hidden=("text", "form"),
            listed=("update",),
        ),
    ] = None
    content_hash: Annotated[str, Field("SHA-256 of the text", hidden=("json", "text", "note"))] = ""
    source: Annotated[
        str,
        Field(
            "Where it came from: `note:user`, a file, a name given with `--source`",
            "fixed",
            hidden=("text",),
        ),
    ] = "note"
    source_type: Annotated[
        str,
        Field("How the source was read", "fixed", columns=(), hidden=("json", "text", "note")),
    ] = "note"
    lines: Annotated[
        Lines | None,
        Field(
            "`[first, last]` in its file, or null",
            "fixed",
            low=0,
            high=EXACT,
            columns=("line_start", "line_end"),
            hashed=True,
            hidden=("text", "note"),
        ),
    ] = None
    position: Annotated[
        int,
        Field("Place in its source", "fixed", low=0, high=EXACT, hidden=("json", "text", "note")),
    ] = 0
    section: Annotated[str | None, Field("The heading it stood under, or null", hashed=True)] = None
    span: Annotated[
        str | None, Field("Topic of its conversation", hidden=("json", "text", "note"))
    ] = None
    session: Annotated[
        str | None, Field("The conversation it came from, or null", hidden=("text", "note"))
    ] = None
    tags: Annotated[
        Strings,
        Field(
            "Array of strings", "edit", takes="may be repeated or a comma list", aliases=("tag",)
        ),
    ] = ()
    keywords: Annotated[
        Strings, Field("Array of strings, found by rules", hidden=("text", "note"))
    ] = ()
    entities: Annotated[
        tuple[Entity, ...],
        Field(
            'Array of `{"name", "type"}`',
            "edit",
            takes="what it is about: Redis, person:Ada; may be repeated or a comma list",
            aliases=("entity",),
            columns=(),
        ),
    ] = ()
    metadata: Annotated[
        Values,
        Field(
            "The object given with `--metadata`",
            "edit",
            takes="KEY=VALUE or a JSON object; may be repeated",
            hidden=("form",),
        ),
    ] = NOTHING
    trust: Annotated[
        int,
        Field(
            "3 said by a person, 2 by an agent, 1 imported, 0 quarantined",
            low=min(TRUST.values()),
            high=max(TRUST.values()),
            hidden=("text",),
        ),
    ] = TRUST["user"]
    newer: Annotated[
        Strings,
        Field(
            "Ids of memories that say something newer about the same thing; it still holds, and comes after them",
            "fixed",
            columns=(),
            hidden=("text", "export", "note"),
        ),
    ] = ()

    @property
    def path(self) -> str | None:
        """The file, if it came from one that was imported; else null."""
        is_file = self.source_type in (*FILES, "transcript")
        return path_of(self.source) if is_file else None


def is_inferred(memory: Memory) -> bool:
    """Return True for a statement inferred from a transcript, which retires nothing by itself."""
    return memory.source_type == "transcript"


EDITABLE = frozenset(name for name, info in fields_of(Memory).items() if info.editable)
# Fields added after the formats of row hashes and versions were fixed.
LATER = Memory._fields[Memory._fields.index("newer") + 1 :]
OPEN_KINDS = ("question", "problem", "todo", "failure")  # kinds that can be settled
RULE_KINDS = ("decision", "preference", "gotcha", "pattern")  # kinds that may be standing rules


COMMAND_LENGTH = 1_000  # characters of a command that an event keeps


class ToolEvent(NamedTuple):
    """Run of a shell command, change of a file, or call of another tool that failed or got past a failure.

    It can be written as JSON: a position keeps those that no turn has used yet.
    """

    command: str = ""  # shell command without the bodies of heredocs; cut at `COMMAND_LENGTH`
    file: str = ""  # changed file
    change: str = ""  # the first line that differs, "old → new"
    failed: bool | None = None  # None if the agent does not record it
    output: str = ""  # start and end of the output
    line: int = 0
    at: str = ""  # ISO
    directory: str = ""
    escalated: bool = False  # whether it ran outside of the agent's sandbox
    tool: str = ""  # of a call that is no command; a change of a file may have one too
    arguments: str = ""  # of that call, the short ones: `base=main; draft=true`
    changes: bool = False  # whether that call changes a file


class Session(NamedTuple):
    """One agent conversation."""

    id: Annotated[str, Field("Given by the agent")]
    scope: Annotated[str, Field("The project that it was held in")]
    host: Annotated[str, Field("The agent: claude, codex …")] = ""
    title: Annotated[str, Field("What it was about")] = ""
    source: Annotated[str, Field("Its transcript")] = ""
    started_at: Annotated[datetime | None, Field("Time of its first message")] = None
    ended_at: Annotated[datetime | None, Field("Time of its last message")] = None
    metadata: Annotated[Values, Field("Its digest, and facts noted by its reader")] = NOTHING

    @property
    def digest(self) -> Mapping[str, str] | None:
        """Digest of the session: {asked, done, left}."""
        return self.metadata.get("digest")


class Span(NamedTuple):
    """A topic inside a session; topics form a tree."""

    id: Annotated[str, Field("UUID")]
    scope: Annotated[str, Field("The scope of its conversation")]
    session: Annotated[str, Field("Its conversation")]
    parent: Annotated[str | None, Field("The topic that it is part of, or null")]
    name: Annotated[str, Field("A few words")]
    summary: Annotated[str, Field("A line or two")]
    lines: Annotated[
        Lines, Field("`[first, last]` of the transcript", columns=("line_start", "line_end"))
    ]
    depth: Annotated[int, Field("How deep it lies in the tree")]
    created_at: Annotated[datetime, Field("Time of its first message")]
    metadata: Annotated[Values, Field("Facts noted by its reader")] = NOTHING


class Relation(NamedTuple):
    """A named link from one memory to another."""

    source: Annotated[str, Field("Id of the memory that it starts from")]
    target: Annotated[str, Field("Id of the memory that it points to")]
    type: Annotated[
        str,
        Field("supersedes, builds_on, contradicts, answers, relates_to or may_replace"),
    ]
    created_at: Annotated[datetime | None, Field("When it was made")] = None


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
    """Memory ready to be written, with one unit vector per window of its text, or none."""

    memory: Memory
    vectors: Sequence[Any] = ()
    unique: bool = True  # a note is stored once per scope; passages of a source may repeat
    # hash of a message's identity: a message is ingested only once
    turn: bytes | None = None


class Batch(NamedTuple):
    """Everything that one write changes. The store applies it completely or not at all."""

    at: datetime
    actor: str = "user"
    scopes: Mapping[str, tuple[str, str]] = NOTHING  # scope → display name and path
    # (scope, uri, position): refused if another process has read on
    expect: tuple[tuple[str, str, int], ...] = ()
    sources: tuple[tuple[str, Source], ...] = ()  # (scope, source) as read now
    sessions: tuple[Session, ...] = ()
    spans: tuple[tuple[Span, Sequence[Any]], ...] = ()  # topics with the vectors of their summaries
    # (scope, old uri, new uri) of a source that was moved
    move: tuple[tuple[str, str, str], ...] = ()
    # (scope, uri) of sources whose memories, other than `keep`, are retired
    retire: tuple[tuple[str, str], ...] = ()
    vanish: tuple[tuple[str, str], ...] = ()  # (scope, uri) of sources that no longer exist
    keep: Strings = ()
    # (id, lines, position) of kept memories whose position changed
    place: tuple[tuple[str, Lines | None, int], ...] = ()
    add: tuple[Entry, ...] = ()
    change: tuple[Change, ...] = ()
    relate: tuple[Relation, ...] = ()
    unrelate: tuple[Relation, ...] = ()
    access: Strings = ()
    purge: Strings = ()
    model: str | None = None
    vectors: Mapping[str, Sequence[Any]] = NOTHING  # id → new vectors, for changed text
    span_vectors: Mapping[str, Sequence[Any]] = NOTHING  # the same for topics
    # id → the text of its new vectors: they are dropped if the text has changed
    made_of: Mapping[str, str] = NOTHING
    cache: Mapping[str, Sequence[Any]] = NOTHING  # text hash → vectors computed while preparing
    allow_purged: bool = False
    # (id, time of its last change): refused if it changed meanwhile
    unchanged: tuple[tuple[str, datetime], ...] = ()
    # a second write under the same key changes nothing and gets the receipt of the first
    once: str = ""


class Proposal(NamedTuple):
    """Possible effect of a new memory on a known one, for a person or better evidence to decide."""

    relation: str  # replaces, answers, completes, same
    id: str  # of the known memory
    reason: str  # less trusted, older, not sure
    probability: float = 1.0


class Outcome(NamedTuple):
    """Result for one passage."""

    id: str
    status: str  # added, duplicate, near_duplicate, reworded, purged; of a source read again: kept, forgotten, refused, known
    duplicate_of: str | None = None
    similarity: float | None = None
    supersedes: Strings = ()
    redactions: int = 0
    proposals: tuple[Proposal, ...] = ()
    settles: Strings = ()  # questions, problems and to-dos that it settles
    marks: Strings = ()  # older statements on the same subject, which stay valid but rank after it
    similar: str | None = None  # the most similar known memory, if it is similar enough


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
    """Result of forgetting or purging: affected ids, and ids that an agent asked for and a person decides."""

    ids: Strings
    hints: Strings = ()
    proposed: Strings = ()
    phrase: str = ""  # message by which the user confirms the proposed ones


class Event(NamedTuple):
    """Event in a memory's history."""

    at: Annotated[datetime, Field("When it happened")]
    actor: Annotated[str, Field("Who did it: `user`, `agent:…`")]
    action: Annotated[str, Field("add, update, forget, restore, supersede …")]
    before: Annotated[Values, Field("Values of the changed fields before, as columns hold them")]
    after: Annotated[Values, Field("Values of the changed fields afterwards")]
    number: Annotated[int, Field("Place in the history of the database")] = 0


class StoredPassage(NamedTuple):
    """Memory of a source, including hidden ones, with the last action of its history."""

    memory: Memory
    action: str


class Filter(NamedTuple):
    """Memories that a read may see. Scopes are never optional: an empty tuple sees nothing."""

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
    # time for expiry and validity; None is the present
    now: datetime | None = None
    include_expired: bool = False
    include_deleted: bool = False
    include_superseded: bool = False
    include_quarantined: bool = False
    # includes superseded memories, so that they can lead to their replacement
    follow: bool = False
    hosts: Strings = ()  # agents of the conversations
    max_trust: int | None = None  # only memories with at most this trust
    min_trust: int | None = None  # only memories with at least this trust
    used: bool = False  # only memories with votes or uses
    transcribed: bool = False  # only memories read from a transcript, not notes about a conversation, such as a summary


# Options that make a filter hide nothing.
EVERYTHING: Values = {name: True for name in Filter._fields if name.startswith("include_")}


class Term(NamedTuple):
    """Searchable piece of a query: a word, a "quoted phrase" or a prefix*, optionally in one column."""

    text: str
    phrase: bool = False
    prefix: bool = False
    column: str | None = None


# A word, or ("and" | "or" | "not", left, right).
Expression = Term | tuple[str, "Expression", "Expression"]


class Query(NamedTuple):
    """Analysed question. `text` is embedded; `terms` are searched by word."""

    raw: str
    text: str
    terms: tuple[Term, ...] = ()
    # what operators form, else None
    expression: Expression | None = None
    kinds: Strings = ()
    entities: Strings = ()
    since: datetime | None = None
    until: datetime | None = None
    answered: bool | None = None
    identifiers: Strings = ()
    # `kind:x` was written: excludes other kinds, where a cue phrase only prefers
    kinds_only: bool = False
    kinds_meant: bool = False  # asks only for a kind, as in "what did we decide?"
    recap: bool = False  # asks only about a time, as in "what did we do last week?"
    about_code: bool = False  # "where is", "which function": code may come before notes
    about_latest: bool = False  # "what did we just do?", or no question: the clock says much
    asks_reply: bool = False  # "which book did you recommend?": the answer is in a long reply
    asks_set: bool = False  # "how many", "in what order": answered by many sessions together

    @property
    def strict(self) -> bool:
        """True if operators, phrases, prefixes or columns were used throughout, so words must match."""
        return self.expression is not None or (
            bool(self.terms)
            and all(term.phrase or term.prefix or term.column for term in self.terms)
        )


class Words(NamedTuple):
    """Lexemes of a question, and pairs of adjacent ones."""

    lexemes: Strings = ()
    pairs: tuple[tuple[str, str], ...] = ()


class Candidate(NamedTuple):
    """Values of a memory that scoring needs, without its text. Loaded by the hundred."""

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
    position: int  # position in its source, which determines its neighbours
    superseded_by: str | None
    span: str | None  # its topic in a conversation
    length: int
    frequencies: tuple[int, ...]  # occurrences of each word of the question
    # whether each pair of adjacent words of the question is adjacent here
    pairs: tuple[bool, ...]


Candidates = Sequence[Candidate]
# Result of one signal: keys with scores, best first. Scores of different signals are not comparable.
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
    weights: Mapping[str, float] = NOTHING  # weight of each signal


def is_untrusted_import(memory: Memory) -> bool:
    """Return True for memories from a file that nobody vouched for (`import` without `--trusted`)."""
    source = f"{memory.source}:"  # the source of a note is the bare word
    return memory.trust <= TRUST["import"] and source.startswith(IMPORTED)


def is_remote(model: object) -> bool:
    """Return True unless a model declares, with `remote = False`, that no text leaves this process."""
    return getattr(model, "remote", True) is not False
