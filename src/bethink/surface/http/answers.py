"""What answers hold, for their description: the same objects as `--json` of the command line. Nothing is checked against these
while serving; the tests do that.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bethink.types import KINDS, RELATIONS


class Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class NamedThing(Shape):
    name: str
    type: str


class Memory(Shape):
    id: str
    kind: str = Field(json_schema_extra={"enum": list(KINDS)})
    scope: str
    content: str
    summary: str
    source: str
    path: str | None
    lines: list[int] | None
    section: str | None
    session: str | None
    created_at: str
    updated_at: str
    importance: float
    confidence: float
    usefulness: float
    access_count: int
    last_accessed: str | None
    valid_from: str | None
    valid_to: str | None
    expires_at: str | None
    deleted_at: str | None
    superseded_by: str | None
    answered: bool | None
    tags: list[str]
    keywords: list[str]
    entities: list[NamedThing]
    metadata: dict[str, Any]
    trust: int


class Connected(Shape):
    type: str = Field(json_schema_extra={"enum": list(RELATIONS)})
    direction: Literal["in", "out"]
    id: str
    summary: str


class OneMemory(Memory):
    related: list[Connected]


class Beside(Shape):
    id: str
    role: str | None
    lines: list[int]
    content: str


class Hit(Memory):
    score: float
    related: list[Connected] | None = None
    why: dict[str, float] | None = None


class Detail(Hit):
    truncated: bool | None = None
    around: list[Beside] | None = None


class Found(Shape):
    items: list[Hit]
    next: str | None = Field(description="cursor of the next page")
    total: int
    mode: str
    profile: str
    hints: list[str]


class Line(Shape):
    id: str
    summary: str
    kind: str
    score: float


class TopicOf(Shape):
    id: str
    name: str
    summary: str
    session: str
    memories: list[str]


class Recalled(Shape):
    query: str
    index: list[Line]
    details: list[Detail]
    total_count: int
    has_more: bool
    tokens_used: int
    hints: list[str]
    topics: list[TopicOf]


class Memories(Shape):
    items: list[Memory]


class Page(Memories):
    next: str | None
    total: int


class Proposal(Shape):
    """What the new memory may mean for a known one; nothing was changed by it."""

    relation: Literal["replaces", "answers", "completes"]
    id: str
    reason: Literal["less trusted", "older", "not sure"]
    probability: float


class Outcome(Shape):
    id: str
    status: Literal["added", "duplicate", "near_duplicate", "purged"]
    duplicate_of: str | None = None
    similarity: float | None = None
    supersedes: list[str] | None = None
    redactions: int | None = None
    proposals: list[Proposal] | None = None


class Added(Shape):
    outcomes: list[Outcome] = Field(description="in the order of the request")
    added: int
    hints: list[str]


class Ended(Shape):
    id: str
    status: Literal["forgotten", "purged"]


REMAINS = Field(
    None,
    description="ids of the turns that it was taken from, and of what was taken from it: they may still say it",
)


HINTS = Field(None, description="which rules files held a purged memory, and which still may")


class Gone(Ended):
    remains: list[str] | None = REMAINS
    hints: list[str] | None = HINTS


class Forgotten(Shape):
    items: list[Ended] = Field(
        description="after a purge also what a conversation held in the very same words"
    )
    remains: list[str] | None = REMAINS
    hints: list[str] | None = HINTS


class Version(Shape):
    version: int
    at: str
    actor: str
    action: str
    before: dict[str, Any]
    after: dict[str, Any]


class History(Shape):
    items: list[Version]


class Link(Shape):
    source: str
    type: str
    target: str
    status: Literal["linked", "removed"]


class Handoff(Shape):
    id: str
    created_at: str
    summary: str
    completed: list[str]
    in_progress_blocked: list[str]
    key_decisions: list[str]
    next_steps: list[str]
    memory_ids: list[str]
    project: str
    branch: str
    exact: bool = Field(description="whether it is of the branch that was asked for")
    content: str


class SavedHandoff(Shape):
    id: str
    status: Literal["saved", "unchanged"]
    supersedes: list[str]
    project: str
    branch: str


class Session(Shape):
    id: str
    host: str
    title: str
    source: str
    started_at: str | None
    ended_at: str | None


class Sessions(Shape):
    items: list[Session]
    next: str | None


class Topic(Shape):
    id: str
    parent: str | None
    name: str
    summary: str
    lines: list[int]
    depth: int


class OneSession(Session):
    topics: list[Topic]


class Pair(Shape):
    keep: Memory
    other: Memory
    similarity: float
    reason: str


class Pairs(Shape):
    items: list[Pair]


class Step(Shape):
    action: Literal["merge", "contradict", "answer", "expire", "retire"]
    memories: list[str]
    reason: str
    text: str = Field(description="what the first says from then on, where it changes")


class Taken(Shape):
    added: list[str]
    changed: list[str]
    unchanged: int
    skipped: list[dict[str, str]]
    memories_added: int
    memories_kept: int
    memories_retired: int
    hints: list[str]


class Consolidated(Shape):
    steps: list[Step]
    done: int
    dry_run: bool


class Stats(Shape):
    memories: int
    deleted: int
    by_kind: dict[str, int]
    by_scope: dict[str, int]
    scope_names: dict[str, str]
    database: dict[str, Any] | None = Field(
        description="numbers about all of it, for tokens of every project"
    )


class Project(Shape):
    scope: str
    name: str
    path: str | None
    default: bool


class Projects(Shape):
    items: list[Project]
    personal: bool


class Trouble(Shape):
    part: str
    message: str
    repair: str


class Health(Shape):
    status: Literal["ok", "problems"]
    problems: list[Trouble]
    hints: list[str]


class Job(Shape):
    id: str
    task: str
    state: Literal["running", "done", "failed", "stopped"]
    started_at: str
    ended_at: str | None
    done: int = Field(description="passages, files or memories so far")
    result: dict[str, Any] | None
    error: str | None


class Jobs(Shape):
    items: list[Job]


class Band(Shape):
    id: str
    name: str
    summary: str
    lines: list[int]
    share: float = Field(description="of the conversation, 0–1")


class Held(Session):
    scope: str
    topics: list[Band]


class Day(Shape):
    date: str | None = Field(description="of its beginning, in UTC")
    sessions: list[Held]


class Timeline(Shape):
    days: list[Day]
    next: str | None


class Said(Memory):
    ideas: list[Memory]


class Turns(Shape):
    items: list[Said]
    next: str | None
    total: int


class Node(Shape):
    id: str
    label: str
    type: str
    scope: str
    distance: int


class Edge(Shape):
    source: str
    target: str
    type: str


class Graph(Shape):
    focus: list[str]
    nodes: list[Node]
    edges: list[Edge]
    more: bool = Field(description="whether something was left out")


class Item(Shape):
    memories: list[Memory]
    reason: str
    acts: list[str] = Field(description="what POST /inbox takes for it")


class Inbox(Shape):
    queue: str
    items: list[Item]
    looked: int = Field(description="statements that were looked at")
    next: int | None = Field(description="`start` of the next look")


class Acted(Shape):
    ids: list[str]
    said: str
    undo: str = Field(description="the act that takes it back")


class Finding(Shape):
    check: str
    ok: bool
    message: str
    fix: str


class Checked(Shape):
    at: str
    findings: list[Finding]


class Condition(Shape):
    condition: dict[str, Any] | None = Field(
        description="null while it is counted for the first time"
    )
    doctor: Checked | None = Field(description="null while it looks for the first time")
    running: bool = Field(description="whether something is being counted or checked right now")
    recall: dict[str, Any] = Field(
        description="how long searches took since the server started, in milliseconds"
    )


class Scope(Project):
    memories: int = Field(description="forgotten ones included")
    last: str | None


class Scopes(Shape):
    items: list[Scope]


class Reader(Shape):
    name: str
    scope: str
    projects: list[str] | None = Field(description="null: every project")
    personal: bool
    used: str
    expires: str | None


class Shared(Shape):
    items: list[Reader]


class Problem(Shape):
    """What went wrong (RFC 9457): `detail` says it in a sentence, `hint` names a next step."""

    type: str
    title: str
    status: int
    detail: str
    hint: str | None = None
    errors: list[dict[str, str]] | None = None
