"""Results of operations, as types. Their JSON, its schema and the reference are derived from them.

`write_json` writes a result, `describe_results` returns the JSON Schema of a set of results. A field with `Inline` adds its own fields to
the object around it: a hit is a memory with a score. A type marked `sparse` leaves a field out while it has its default.
"""

# No `from __future__ import annotations`: `get_type_hints` would have to compile each annotation.
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from bethink.model import RELATIONS, FieldInfo, Json, Memory, Outcome, Strings
from bethink.recall.shape import iso, plain
from bethink.schema import json_fields, value_schema

Type = TypeVar("Type", bound=type)
SPARSE: set[type] = set()


class About(NamedTuple):
    """Description of a field, for the schema."""

    text: str


class Inline:
    """Marks a field whose own fields are written into the object around it."""


def sparse(type: Type) -> Type:
    """Leave a field of this type out of its JSON while it has its default."""
    SPARSE.add(type)
    return type


class Problem(NamedTuple):
    title: str
    status: int
    detail: str
    hint: Annotated[str, About("the next step, or empty")]


sparse(Outcome)


# Memories


class Connection(NamedTuple):
    """A relation of a memory, as that memory sees it."""

    type: Literal[RELATIONS]  # type: ignore[valid-type]
    direction: Literal["in", "out"]
    id: str
    summary: str


@sparse
class FoundMemory(NamedTuple):
    memory: Annotated[Memory, Inline]
    score: float
    related: Sequence[Connection] = ()
    why: Annotated[Mapping[str, float], About("each signal's share of the score")] = {}


class Found(NamedTuple):
    items: Sequence[FoundMemory]
    next: Annotated[int | None, About("offset of the next page")]
    total: int
    mode: str
    profile: str
    hints: Strings


class IndexLine(NamedTuple):
    id: str
    summary: str
    kind: str
    score: float


@sparse
class Detail(NamedTuple):
    memory: Annotated[Memory, Inline]
    score: float
    related: Sequence[Connection] = ()
    truncated: Annotated[bool, About("the text was cut to the token budget")] = False


class RecalledTopic(NamedTuple):
    id: str
    name: str
    summary: str
    session: str
    memories: Strings


class Recalled(NamedTuple):
    """The index-and-details form of an answer."""

    query: str
    index: Sequence[IndexLine]  # type: ignore[assignment]
    details: Sequence[Detail]
    total_count: int
    has_more: bool
    next: int | None
    tokens_used: int
    hints: Strings
    topics: Sequence[RecalledTopic]


class Memories(NamedTuple):
    items: Sequence[Memory]


class MemoryPage(NamedTuple):
    items: Sequence[Memory]
    next: int | None
    total: int


class ConnectedMemory(NamedTuple):
    memory: Annotated[Memory, Inline]
    related: Sequence[Connection]


class Version(NamedTuple):
    version: int
    at: datetime
    actor: str
    action: str
    before: Json
    after: Json


class History(NamedTuple):
    items: Sequence[Version]


class ProjectSummary(NamedTuple):
    scope: str
    name: str
    path: str | None
    default: bool
    memories: Annotated[int, About("forgotten ones included")]
    last: datetime | None


class ProjectList(NamedTuple):
    items: Sequence[ProjectSummary]


# Changes


class Added(NamedTuple):
    outcomes: Annotated[Sequence[Outcome], About("in the order of the request")]
    added: int
    hints: Strings


class ForgetResult(NamedTuple):
    id: str
    status: Literal["forgotten", "purged", "proposed"]
    also: Annotated[
        Strings, About("after a purge: memories of the same conversation with identical text")
    ]
    remains: Annotated[
        Strings,
        About(
            "ids of the turns it was taken from, and of what was taken from it; they may still contain it"
        ),
    ]
    hints: Annotated[
        Strings,
        About("rules files that contained a purged memory; how the owner confirms a proposal"),
    ]


class Link(NamedTuple):
    source: str
    type: str
    target: str
    status: Literal["linked", "removed"]


# Conversations


class Digest(NamedTuple):
    asked: str
    done: str
    left: str


class SessionSummary(NamedTuple):
    id: str
    scope: str
    host: str
    title: str
    source: str
    started_at: datetime | None
    ended_at: datetime | None
    digest: Annotated[Digest | None, About("what was asked, done and left")]


class Topic(NamedTuple):
    id: str
    parent: str | None
    name: str
    summary: str
    lines: tuple[int, int]
    depth: int


class SessionTopics(NamedTuple):
    session: Annotated[SessionSummary, Inline]
    topics: Sequence[Topic]


class TopicShare(NamedTuple):
    id: str
    name: str
    summary: str
    lines: tuple[int, int]
    share: Annotated[float, About("share of the conversation, from 0 to 1")]


class TimelineSession(NamedTuple):
    session: Annotated[SessionSummary, Inline]
    topics: Sequence[TopicShare]


class Day(NamedTuple):
    date: Annotated[str | None, About("day on which the sessions began, in UTC")]
    sessions: Sequence[TimelineSession]


class Timeline(NamedTuple):
    days: Sequence[Day]
    next: int | None


class Turn(NamedTuple):
    memory: Annotated[Memory, Inline]
    ideas: Sequence[Memory]


class TurnPage(NamedTuple):
    items: Sequence[Turn]
    next: int | None
    total: int


class Replacement(NamedTuple):
    new: Memory
    old: Memory


class Recent(NamedTuple):
    since: datetime
    told: Annotated[int, About("number of new statements")]
    sessions: Sequence[SessionSummary]
    changes: Annotated[
        Sequence[Replacement], About("statements that replaced others, newest first")
    ]
    newest: Sequence[Memory]
    open: Annotated[Sequence[Memory], About("open to-dos, questions and problems of any age")]
    days: Annotated[Mapping[str, int], About("memories per day of the last half year")]


# The inbox


class QueueSize(NamedTuple):
    number: int
    more: Annotated[bool, About("more memories have to be compared")]


class InboxCounts(NamedTuple):
    queues: Annotated[Mapping[str, QueueSize], About("by name")]


class InboxItem(NamedTuple):
    memories: Sequence[Memory]
    reason: str
    acts: Annotated[Strings, About("decisions that POST /inbox accepts for it")]


class Inbox(NamedTuple):
    queue: str
    items: Sequence[InboxItem]
    looked: Annotated[int, About("statements compared so far")]
    next: Annotated[int | None, About("`start` of the next page")]


# The server


class Finding(NamedTuple):
    check: str
    ok: bool
    message: str
    fix: str


class Condition(NamedTuple):
    condition: Annotated[Json | None, About("null until the first count is done")]
    doctor: Annotated[Sequence[Finding] | None, About("null until the first check is done")]
    running: Annotated[bool, About("a count or check is running")]


class TokenHolder(NamedTuple):
    name: str
    scope: str
    projects: Annotated[Strings | None, About("null: every project")]
    personal: bool
    expires: datetime | None


class TokenList(NamedTuple):
    items: Sequence[TokenHolder]


# Sync between machines of a team


class Outline(NamedTuple):
    lines: Annotated[
        Sequence[list[Any]],
        About("id, version, hash of the text, whether no other visible memory may hold this text"),
    ]
    links: Annotated[
        Sequence[list[Any]], About("source, target, type, time in milliseconds, who made it")
    ]


class Bundled(NamedTuple):
    bundle: Json


class NotTaken(NamedTuple):
    left: Annotated[
        Strings,
        About(
            "ids that were not taken: changed meanwhile, purged, known by another id, or holding a secret"
        ),
    ]


class Removed(NamedTuple):
    removed: int


class Purged(NamedTuple):
    purged: Strings


# JSON of a result


class ResultField(NamedTuple):
    name: str
    type: Any  # an annotation, or the declaration of a memory's field
    about: str
    inline: bool
    optional: bool  # left out while it has its default


@cache
def list_fields(type: type) -> tuple[ResultField, ...]:
    """Fields of a named tuple with their types and descriptions."""
    hints = get_type_hints(type, include_extras=True)
    defaults: Mapping[str, Any] = type._field_defaults  # type: ignore[attr-defined]
    found = []
    for name in type._fields:  # type: ignore[attr-defined]
        inner, notes = split_annotation(hints[name])
        about = next((note.text for note in notes if isinstance(note, About)), "")
        optional = type in SPARSE and name in defaults
        found.append(ResultField(name, inner, about, Inline in notes, optional))
    return tuple(found)


def split_annotation(annotation: object) -> tuple[Any, tuple[Any, ...]]:
    """Return a type and the notes that `Annotated` adds to it."""
    if get_origin(annotation) is Annotated:
        inner, *notes = get_args(annotation)
        return inner, tuple(notes)
    return annotation, ()


def write_json(value: object) -> Any:
    """Convert a result to JSON: named tuples become objects, times become text in UTC."""
    if isinstance(value, Memory):
        return plain(value)
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(_write_fields(value))
    if isinstance(value, Mapping):
        return {str(name): write_json(one) for name, one in value.items()}
    return [write_json(one) for one in value] if isinstance(value, list | tuple) else value


def _write_fields(value: Any) -> Iterator[tuple[str, Any]]:
    kind: Any = type(value)
    for field in list_fields(kind):
        inner = getattr(value, field.name)
        if field.inline:
            yield from write_json(inner).items()
        elif not field.optional or inner != value._field_defaults[field.name]:
            yield field.name, write_json(inner)


# JSON Schema

REFERENCE = "#/components/schemas/{}"
SIMPLE: dict[Any, Json] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    NoneType: {"type": "null"},
    datetime: {"type": "string"},
    Any: {},
}


def describe_results(results: Sequence[type]) -> dict[str, Json]:
    """JSON Schema of these named tuples and of all that they contain, by name."""
    found: dict[str, Json] = {}
    waiting = list(results)
    while waiting:
        one = waiting.pop(0)
        if one.__name__ not in found:
            found[one.__name__] = _describe_object(one, waiting)
    return dict(sorted(found.items()))


def _describe_object(type: type, used: list[type]) -> Json:
    properties = {}
    required = []
    for field in _spread_fields(type):
        schema = describe_type(field.type, used)
        properties[field.name] = schema | ({"description": field.about} if field.about else {})
        if not field.optional:
            required.append(field.name)
    schema = {"type": "object", "properties": properties, "required": required}
    return {**schema, "additionalProperties": False}


def _spread_fields(type: type) -> Iterator[ResultField]:
    """Fields as the JSON object has them: those of inline fields among the others."""
    if type is Memory:
        yield from (
            ResultField(name, info, "", False, False) for name, info in json_fields().items()
        )
        return
    for field in list_fields(type):
        if field.inline:
            yield from _spread_fields(field.type)
        else:
            yield field


def describe_type(annotation: Any, used: list[type] | None = None) -> Json:
    """JSON Schema of a type. Named tuples are references, and are added to `used`."""
    used = [] if used is None else used
    if isinstance(annotation, FieldInfo):
        return value_schema(annotation)
    annotation, _ = split_annotation(annotation)
    if annotation in SIMPLE:
        return dict(SIMPLE[annotation])
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return {"type": "string", "enum": list(inner)}
    if origin in (Union, UnionType):
        return {"anyOf": [describe_type(one, used) for one in inner]}
    if hasattr(annotation, "_fields"):
        used.append(annotation)
        return {"$ref": REFERENCE.format(annotation.__name__)}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        values = describe_type(inner[1], used)
        return {"type": "object", **({"additionalProperties": values} if values else {})}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return {"type": "array", "items": describe_type(inner[0], used)}
    raise TypeError(f"No JSON Schema for {annotation!r}.")
