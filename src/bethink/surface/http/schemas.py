"""What requests may hold: every field with its type and bounds, and nothing else. The OpenAPI page is made from these.

Times are texts as people write them (`7d`, `yesterday`, `2026-03-01`); they are read where the clock is known.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from bethink.config import PROFILES
from bethink.features.graph import MOST as MOST_NODES
from bethink.features.inbox import ACTS, QUEUES
from bethink.text.checks import check_choice, check_kind
from bethink.types import KIND_ALIASES, KINDS, MODES, RELATIONS

LONGEST_QUERY = 10_000
LONGEST_METADATA = 100_000
LONGEST_TEXT = 5_000_000  # of one memory; the setting `max_characters` may allow less
MOST_ADDED, MOST_IDS, MOST_LISTED = 1000, 100, 100
ORDERS = ("created", "oldest", "importance", "used", "useful", "updated")
TASKS = ("index", "map", "analyze", "history", "backfill", "reindex")


def _one_of(name: str, choices: Sequence[str]) -> AfterValidator:
    return AfterValidator(lambda value: check_choice(name, value, choices))


def _shown(choices: Sequence[str]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "enum": list(choices)})


Kind = Annotated[
    str, AfterValidator(lambda value: check_kind(value)), _shown([*KINDS, *KIND_ALIASES])
]
Mode = Annotated[str, _one_of("mode", MODES), _shown(MODES)]
Intent = Annotated[str, _one_of("intent", PROFILES), _shown(PROFILES)]
Order = Annotated[str, _one_of("order", ORDERS), _shown(ORDERS)]
Relation = Annotated[str, _one_of("relation", RELATIONS), _shown(RELATIONS)]
Task = Annotated[str, _one_of("task", TASKS), _shown(TASKS)]
Queue = Annotated[str, _one_of("queue", QUEUES), _shown(QUEUES)]
Done = Annotated[str, _one_of("act", tuple(ACTS)), _shown(tuple(ACTS))]
Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
Word = Annotated[str, Field(max_length=1000)]
Id = Annotated[
    str, Field(min_length=1, max_length=100, description="an id or any unique beginning of one")
]
Moment = Annotated[
    str, Field(min_length=1, max_length=60, examples=["7d", "2026-03-01", "yesterday"])
]
Later = Annotated[str, Field(min_length=1, max_length=60, examples=["30d", "2030-03-01"])]
Importance = Annotated[float, Field(ge=0, le=10)]
Share = Annotated[float, Field(ge=0, le=1)]
Words = Annotated[list[Word], Field(max_length=100)]


def _storable(value: dict[str, Any]) -> dict[str, Any]:
    """Metadata that is JSON through and through, and no document of its own."""
    try:
        size = len(json.dumps(value, allow_nan=False))
    except (ValueError, RecursionError):
        raise ValueError(
            "a number in it is none that JSON has, or it is nested too deeply"
        ) from None
    if size > LONGEST_METADATA:
        raise ValueError(f"it has {size:,} characters as JSON; {LONGEST_METADATA:,} are the most")
    return value


Metadata = Annotated[dict[str, Any], AfterValidator(_storable)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Where(Strict):
    """Which project a request is about."""

    project: Word | None = Field(
        None,
        description="a project by name, scope or folder; by default the token's or the server's own",
    )
    container: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None, description="a named container inside the project"
    )


class Filters(Strict):
    """Which memories."""

    kind: Annotated[list[Kind], Field(max_length=100)] = []
    entity: Words = []
    tag: Words = []
    source: Words = []
    session: Word | None = None
    host: Words = Field(
        [], description="agents in whose conversations it was said: claude, codex …"
    )
    since: Moment | None = Field(None, description="made at or after")
    until: Moment | None = Field(None, description="made before")
    as_of: Moment | None = Field(None, description="what was valid then")
    min_importance: Importance | None = None
    answered: bool | None = Field(None, description="of questions")
    include_expired: bool = False
    include_deleted: bool = False
    include_superseded: bool = False
    include_quarantined: bool = False
    all_projects: bool = Field(False, description="of every project that the token is for")
    personal: bool = Field(False, description="only personal ones")


Cursor = Annotated[
    str,
    Field(
        min_length=1,
        max_length=500,
        description="`next` of the page before; the other parameters stay the same",
    ),
]


class Ranked(Filters):
    query: Annotated[str, Field(max_length=LONGEST_QUERY)] = Field(
        description='a question, words, "a phrase", prefix*, AND OR NOT',
        examples=["how do we deploy?"],
    )
    mode: Mode | None = None
    intent: Intent | None = Field(None, description="weigh recency and use too")
    threshold: Share | None = Field(None, description="only scores from here on")
    seed: Annotated[int, Field(ge=0, le=2**32)] | None = Field(
        None, description="makes the chance in an intent repeatable"
    )
    hyde: bool = Field(
        False,
        description="look near what the language model supposes the answer to be, too; needs a token for writing",
    )


class Search(Ranked):
    limit: Annotated[int, Field(ge=1, le=MOST_LISTED)] | None = None
    cursor: Cursor | None = None
    explain: bool = Field(False, description="each signal's part in a score")


class SearchQuery(Search, Where):
    pass


class Recall(Ranked):
    limit: Annotated[int, Field(ge=1, le=MOST_LISTED)] | None = None
    max_tokens: Annotated[int, Field(ge=50, le=1_000_000)] | None = None


class RecallQuery(Recall, Where):
    pass


class List(Filters, Where):
    order: Order = "created"
    limit: Annotated[int, Field(ge=1, le=MOST_LISTED)] = 50
    cursor: Cursor | None = None


class Export(Filters, Where):
    everything: bool = Field(
        True, description="forgotten, expired, replaced and quarantined ones too"
    )


class Get(Where):
    count: bool = Field(True, description="whether this counts as a use")


class Around(Where):
    turns: Annotated[int, Field(ge=0, le=50)] = 3


class Delete(Where):
    purge: bool = Field(
        False, description="remove every trace, for good; the text is not taken in again"
    )


class Unlink(Where):
    target: Id
    type: Relation = "relates_to"


class Paged(Where):
    limit: Annotated[int, Field(ge=1, le=MOST_LISTED)] = 20
    cursor: Cursor | None = None


class Pairs(Where):
    limit: Annotated[int, Field(ge=1, le=500)] = 20


class HandoffPlace(Where):
    part: Word | None = Field(
        None, description="a part of the project that has handoffs of its own"
    )
    branch: Word | None = Field(None, description="by default the one that is checked out")


class Timeline(Paged):
    host: Word | None = Field(
        None, description="only conversations with this agent: claude, codex …"
    )
    all_projects: bool = Field(False, description="of every project that the token is for")


class Turns(Where):
    topic: Annotated[str, Field(max_length=100)] | None = Field(
        None, description="only one topic, with its sub-topics"
    )
    limit: Annotated[int, Field(ge=1, le=MOST_LISTED)] = 50
    cursor: Cursor | None = None


class Graph(Where):
    focus: Word | None = Field(
        None,
        description="the id of a memory, or `about:` and the name of a thing",
        examples=["about:Redis"],
    )
    query: Annotated[str, Field(max_length=LONGEST_QUERY)] | None = Field(
        None, description="begin with what this finds"
    )
    limit: Annotated[int, Field(ge=1, le=MOST_NODES)] = 80
    depth: Annotated[int, Field(ge=1, le=4)] = 2


class Inbox(Where):
    queue: Queue = "contradictions"
    limit: Annotated[int, Field(ge=1, le=MOST_LISTED)] = 20
    start: Annotated[int, Field(ge=0, le=1_000_000_000)] = Field(
        0, description="`next` of the look before"
    )


# Bodies


class Act(Strict):
    """What to do with one item of the inbox; `acts` of the item names what there is, and the answer how to take it back."""

    act: Done
    ids: Annotated[list[Id], Field(min_length=1, max_length=2)] = Field(
        description="of the item's memories, in its order"
    )


class Statement(Strict):
    """One thing to remember. What is left out is found by rules."""

    content: Text
    kind: Kind | None = None
    summary: Word | None = None
    importance: Importance | None = None
    confidence: Share | None = None
    tags: Words = []
    entities: Words = Field([], description="what it is about: Redis, person:Ada")
    expires: Later | None = None
    valid_from: Moment | None = None
    metadata: Metadata = {}
    supersedes: Annotated[list[Id], Field(max_length=MOST_IDS)] = Field(
        [], description="what it replaces"
    )


class Add(Strict):
    """Statements that are remembered together: all of them or, if one is wrong, none. Where one replaces a memory, none of
    them is compared with what is known by meaning."""

    memories: Annotated[list[Statement], Field(min_length=1, max_length=MOST_ADDED)]
    personal: bool = Field(False, description="follows its owner into every project")
    source: Word | None = Field(None, description="where they come from")
    dedup: bool | None = Field(
        None,
        description="whether what is much like something known is left out; a setting by default",
    )
    force: bool = Field(False, description="even if such a text was purged before")


class Update(Strict):
    """What changes; null empties a time or `answered`. The old version stays in the history."""

    content: Text | None = None
    kind: Kind | None = None
    summary: Word | None = None
    importance: Importance | None = None
    confidence: Share | None = None
    tags: Words | None = None
    entities: Words | None = None
    expires: Later | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    answered: bool | None = None
    metadata: Metadata | None = None


class Ids(Strict):
    ids: Annotated[list[Id], Field(min_length=1, max_length=MOST_IDS)]


class GetMany(Ids):
    count: bool = Field(True, description="whether this counts as a use of each")


class Forget(Ids):
    purge: bool = False


class Restore(Strict):
    version: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        None, description="a version as the history numbers them"
    )


class Vote(Strict):
    value: Annotated[float, Field(ge=-100, le=100)] = 1


class NewLink(Strict):
    target: Id
    type: Relation = "relates_to"


class NewHandoff(Strict):
    summary: Annotated[str, Field(min_length=1, max_length=4000)]
    completed: Annotated[list[Word], Field(max_length=50)] = []
    in_progress_blocked: Annotated[list[Word], Field(max_length=50)] = []
    key_decisions: Annotated[list[Word], Field(max_length=50)] = []
    next_steps: Annotated[list[Word], Field(max_length=50)] = []
    memory_ids: Annotated[list[Id], Field(max_length=MOST_IDS)] = Field(
        [], description="memories that were used; counts as a use"
    )
    part: Annotated[str, Field(max_length=200)] = ""
    branch: Annotated[str, Field(max_length=200)] = ""


class Paper(Strict):
    path: Annotated[str, Field(min_length=1, max_length=500)] = Field(
        description="relative, such as docs/deploy.md; a later text replaces it"
    )
    content: Text = Field(description="Markdown; empty takes the document away")


class NewDocuments(Strict):
    documents: Annotated[list[Paper], Field(min_length=1, max_length=100)]


class Consolidate(Strict):
    dry_run: bool = Field(True, description="only say what would be done")


class NewJob(Strict):
    """Work on the server's own project: `index` its knowledge folders, `map` its code, `analyze` its files or their `history`,
    `backfill` what agents on that machine kept, `reindex` what has no vector."""

    task: Task
    since: Moment | None = Field(None, description="of history and backfill")
    full: bool = Field(False, description="of reindex: every vector anew")
