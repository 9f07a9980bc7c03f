"""Operations of the HTTP API.

An operation that the command line has in the same form is declared in `app/operations`; a function marked `presents` turns its result into
the response. Every other operation is declared here, with `route`. Each gets the memory as its caller sees it. The return
type is the response type: OpenAPI describes it, and a test compares responses with it.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Annotated, Any, NamedTuple, TypeVar, get_type_hints
from zlib import crc32

from bethink.app import render
from bethink.app.http.projects import NOWHERE, View
from bethink.app.http.security import Grant, refuse
from bethink.app.operation import OPERATIONS as SHARED
from bethink.app.operation import Arg, Operation
from bethink.app.operations import find, overview, write
from bethink.app.operations.fields import (
    EmbeddingText,
    Statement,
    UpdateFields,
    build_passages,
    update_fields,
)
from bethink.app.operations.requests import NO_FILTERS, Filters, Id, Look
from bethink.app.records import version_records
from bethink.app.results import (
    About,
    Added,
    Bundled,
    Condition,
    ConnectedMemory,
    Connection,
    Day,
    Detail,
    ForgetResult,
    Found,
    FoundMemory,
    History,
    Inbox,
    InboxCounts,
    InboxItem,
    IndexLine,
    Inline,
    Link,
    Memories,
    MemoryPage,
    NotTaken,
    Outline,
    ProjectList,
    ProjectSummary,
    Purged,
    QueueSize,
    Recalled,
    RecalledTopic,
    Recent,
    Removed,
    SessionSummary,
    SessionTopics,
    Timeline,
    TimelineSession,
    TokenHolder,
    TokenList,
    Topic,
    TopicShare,
    Turn,
    TurnPage,
    Version,
)
from bethink.errors import InvalidInput, Overtaken
from bethink.features import browse, conversations, enforcing, explain, promotion
from bethink.features import inbox as queues
from bethink.features.failures import KnownFailure
from bethink.features.sync import StorePeer, check_bundle
from bethink.language.times import moment
from bethink.model import (
    AUTOMATIC,
    EVERYTHING,
    NOTHING,
    PERSONAL,
    RELATIONS,
    Event,
    Hit,
    Json,
    Memory,
    Relation,
    Session,
    Strings,
    Values,
    Words,
)
from bethink.recall.shape import iso
from bethink.store.rows import EPOCH, stamp
from bethink.store.transfer import Bundle, bundle_to_json

Function = TypeVar("Function", bound=Callable[..., object])
PROMOTING = ("promote", "undo-promote")


class HttpOperation(NamedTuple):
    """An operation as the HTTP API runs it, and the type of its response."""

    operation: Operation
    returns: Any  # an annotation
    present: Callable[[View, Any], object] | None = None
    prepare: Callable[[View, Json], Json] | None = None

    def run(self, memory: View, arguments: Json) -> object:
        if self.prepare:
            arguments = self.prepare(memory, arguments)
        result = self.operation.function(memory, **arguments)
        return self.present(memory, result) if self.present else result


ROUTES: dict[str, HttpOperation] = {}  # by method and path


def route(address: str, group: str, *traits: str) -> Callable[[Function], Function]:
    """Declare an operation that only the HTTP API has in this form."""

    def register(function: Function) -> Function:
        name = function.__name__.strip("_").replace("_", "-")
        made = Operation(
            name=name,
            function=function,
            group=group,
            cli=False,
            http=address,
            tool="",
            agents="person",
            person_with=(),
            harmless=(),
            opens="",
            lists=(),
            traits=frozenset(traits),
            examples=(),
        )
        ROUTES[address] = HttpOperation(made, get_type_hints(function)["return"])
        return function

    return register


def presents(
    shared: Callable[..., object], prepare: Callable[[View, Json], Json] | None = None
) -> Callable[[Function], Function]:
    """Serve a shared operation: `prepare` changes its arguments, the function turns its result into JSON."""

    def register(function: Function) -> Function:
        known = next(one for one in SHARED.values() if one.function is shared)
        returns = get_type_hints(function)["return"]
        ROUTES[known.http] = HttpOperation(known, returns, function, prepare)
        return function

    return register


# Arguments of several operations

Offset = Annotated[int, Arg("`next` of the previous page", low=0, high=1_000_000_000)]
Limit = Annotated[int, Arg("maximum number of items", low=1, high=100)]
AllProjects = Annotated[bool, Arg("every project that the token is for")]
Target = Annotated[str, Arg("an id or any unique beginning of one", longest=100)]
RelationType = Annotated[str, Arg(choices=RELATIONS)]
Personal = Annotated[bool, Arg("personal memories instead of the project's")]


def find_next(shown: Sequence[object], offset: int, total: int) -> int | None:
    """Return the offset of the next page, if there is one."""
    after = offset + len(shown)
    return after if shown and after < total else None


# Search


def prepare_search(memory: View, arguments: Json) -> Json:
    """Use one random seed per hour for all pages of a search. Keep the default limit within the API's."""
    look: Look = arguments["look"]
    if look.seed is None:
        hour = f"{memory.clock():%Y%m%d%H} {arguments['query']}"
        look = look._replace(seed=crc32(hour.encode("utf-8", "replace")))
    limit = arguments.get("limit") or min(memory.config.limit, 100)
    return {**arguments, "look": look, "limit": limit}


@presents(find.search, prepare_search)
def show_found(memory: View, result: find.SearchResult) -> Found:
    answer = result.answer
    return Found(
        [
            FoundMemory(
                hit.memory,
                round(hit.score, 4),
                list_connections(hit.memory.id, hit.related),
                dict(hit.why) if result.explain else {},
            )
            for hit in answer.hits
        ],
        find_next(answer.hits, result.offset, answer.total),
        answer.total,
        answer.mode,
        answer.profile,
        answer.hints,
    )


@presents(find.recall)
def show_recalled(memory: View, result: find.SearchResult) -> Recalled:
    form = render.Form(values=True)
    arranged = render.arrange_answer(memory, result.answer, result.budget or 0, form, result.offset)
    hits = {hit.memory.id: hit for hit in result.answer.hits}
    shown = arranged.both
    return Recalled(
        shown.query,
        [IndexLine(**line) for line in shown.index],
        [_show_detail(hits[one["id"]], one) for one in shown.details],
        shown.total_count,
        shown.has_more,
        shown.next,
        shown.tokens_used,
        shown.hints,
        [
            RecalledTopic(
                span.id,
                span.name,
                span.summary,
                span.session,
                tuple(hit.memory.id for hit in together),
            )
            for span, together in arranged.topics
            if span
        ],
    )


def _show_detail(hit: Hit, shown: Values) -> Detail:
    return Detail(
        hit.memory._replace(content=shown["content"]),
        round(hit.score, 4),
        list_connections(hit.memory.id, hit.related),
        shown.get("truncated", False),
    )


def list_connections(id: str, related: Sequence[tuple[Relation, Memory]]) -> tuple[Connection, ...]:
    """Relations of a memory, as it sees them. What a replaced memory had replaced was replaced by it, too."""
    return tuple(
        Connection(relation.type, "in" if relation.target == id else "out", other.id, other.summary)
        for relation, other in related
    )


# Memories


@presents(find.list_)
def show_page(memory: View, found: find.Listed) -> MemoryPage:
    following = find_next(found.memories, found.offset, found.total)
    return MemoryPage(found.memories, following, found.total)


@presents(find.get)
def show_memory(memory: View, found: find.Shown) -> ConnectedMemory:
    [one] = found.memories
    related = render.related_memories(memory, [one])[one.id]
    return ConnectedMemory(one, list_connections(one.id, related))


@presents(find.history)
def show_history(memory: View, events: Sequence[Event]) -> History:
    records = version_records(events)
    return History([Version(**record) for record in records])


@route("GET /memories/{id}/around", "Everyday")
def around(
    memory: View,
    id: Id,
    turns: Annotated[int, Arg("turns or passages on each side", low=0, high=50)] = 3,
) -> Memories:
    """Show the context of a memory: turns of its conversation, or passages of its document."""
    return Memories(conversations.surroundings(memory, id, turns))


@route("GET /export", "Browse")
def export(
    memory: View,
    filters: Filters = NO_FILTERS,
    everything: Annotated[
        bool, Arg("include forgotten, expired, replaced and quarantined memories")
    ] = True,
) -> Iterator[Memory]:
    """Export memories as JSON lines, the oldest first."""
    hidden = EVERYTHING if everything and not filters.as_of else {}
    return memory.export(find.build_filter(memory, filters, **hidden))


@route("GET /projects", "Browse")
def projects(memory: View) -> ProjectList:
    """List the projects and containers that the token is for, and personal memories.

    Each comes with its number of memories, forgotten ones included, and the time of the newest.
    """
    server, caller = memory.server, memory.caller
    listed, store = server.list_visible(caller), server.store_of(caller)
    folders = server.list_folders(caller)
    if caller.personal:
        listed.append(Grant(PERSONAL, "", PERSONAL))
    items = []
    for one in listed:
        newest = store.list(memory.filter(scopes=(one.scope,)), 1)
        items.append(
            ProjectSummary(
                one.scope,
                one.name,
                one.root or folders.get(one.scope) or None,
                one.scope == memory.scope,
                store.statistics(Words(), (one.scope,)).memories,
                newest[0].created_at if newest else None,
            )
        )
    return ProjectList(items)


# Changes


@route("POST /memories", "Everyday", "meaning", "created")
def add(
    memory: View,
    memories: Annotated[
        tuple[Statement, ...],
        Arg("stored together: all of them, or none if one is invalid", longest=1000),
    ],
    personal: Annotated[bool, Arg("available to their owner in every project")] = False,
    source: Annotated[str | None, Arg("where they come from", longest=1000)] = None,
    dedup: Annotated[
        bool | None,
        Arg("add a text as a version of a memory that says the same; default: the setting"),
    ] = None,
    automatic: Annotated[
        str | None,
        Arg("effect on known memories without asking; default: the setting", choices=AUTOMATIC),
    ] = None,
    force: Annotated[bool, Arg("store even texts that were purged before")] = False,
) -> Added:
    """Store memories in one transaction.

    Private text and secrets are removed first. The response says which statements were already known. If a statement replaces a memory,
    none of them is compared with known memories by meaning.
    """
    receipt = memory.add_many(
        build_passages(memory, memories),
        personal=personal,
        source=source,
        dedup=dedup,
        automatic=automatic,
        allow_purged=force,
    )
    return Added(receipt.outcomes, receipt.added, receipt.hints)


@route("PATCH /memories/{id}", "Everyday", "meaning")
def update(
    memory: View,
    id: Id,
    fields: UpdateFields,
    embedding_text: EmbeddingText = None,
    updated_at: Annotated[
        str | None, Arg("refuse if the memory changed since this version was read")
    ] = None,
) -> Memory:
    """Change a memory. Null empties a time or `answered`.

    The old version stays in the history.
    """
    was = memory.one(id) if updated_at else None
    if was and iso(was.updated_at) != updated_at:
        raise Overtaken(
            f"Memory {id} was changed by someone else after you read it.",
            "Read it again and repeat your change.",
        )
    return update_fields(memory, id, fields, embedding_text, was)


@route("DELETE /memories/{id}", "Everyday")
def forget(
    memory: View,
    id: Id,
    purge: Annotated[
        bool, Arg("remove every trace for good; the same text is refused afterwards")
    ] = False,
) -> ForgetResult:
    """Hide a memory from every search; `restore` brings it back.

    With `purge` it is removed for good, with memories of its conversation that have identical text. A token can hide memories that agents
    stored. Forgetting a user's own statement, and every purge, waits for the owner: the status is `proposed`.
    """
    found = memory.get(id, count=False)
    full = found[0].id
    remains = memory.find_traces(found).rest if purge else ()
    done = promotion.purge(memory, found) if purge else memory.forget(full)
    return ForgetResult(
        full,
        "proposed" if done.proposed else "purged" if purge else "forgotten",
        tuple(other for other in done.ids if other != full),
        tuple(one.id for one in remains),
        (*render.describe_request(done), *done.hints),
    )


@presents(write.restore)
@presents(write.vote)
def show_changed(memory: View, changed: write.Changed) -> Memory:
    return changed.memory


@route("POST /memories/{id}/relations", "Everyday", "created")
def link(memory: View, id: Id, target: Target, type: RelationType = "relates_to") -> Link:
    """Relate a memory to another.

    `supersedes` ends the validity of the target; `answers` marks a question as answered.
    """
    made = memory.link(id, target, type)
    return Link(made.source, made.type, made.target, "linked")


@route("DELETE /memories/{id}/relations", "Everyday")
def unlink(memory: View, id: Id, target: Target, type: RelationType = "relates_to") -> Link:
    """Remove a relation and its effects."""
    removed = memory.unlink(id, target, type)
    return Link(removed.source, removed.type, removed.target, "removed")


class UndoneStep(NamedTuple):
    """A change that was undone, and its effect on the memory."""

    memory: Annotated[Memory, Inline]
    action: str
    effect: str


class Undone(NamedTuple):
    items: Sequence[UndoneStep]


@route("POST /undo", "Everyday", "meaning")
def undo(memory: View) -> Undone:
    """Undo your last change: everything that one call wrote.

    Called again, it goes one change further back.
    """
    return Undone([UndoneStep(*step) for step in memory.undo()])


# Conversations


@route("GET /sessions/{id}", "Browse")
def topics(memory: View, id: Id) -> SessionTopics:
    """Show a conversation and its topics in order, sub-topics after their topic."""
    session = memory.find_session(id)
    spans = conversations.topics(memory, session)
    found = [
        Topic(span.id, span.parent, span.name, span.summary, span.lines, span.depth)
        for span in spans
    ]
    return SessionTopics(summarize_session(session), found)


@route("GET /timeline", "Browse")
def timeline(
    memory: View,
    offset: Offset = 0,
    limit: Limit = 20,
    host: Annotated[
        str | None, Arg("only conversations with this agent: claude, codex …", longest=1000)
    ] = None,
    all_projects: AllProjects = False,
) -> Timeline:
    """List conversations by day, newest first, with their topics and the share of each."""
    scopes = memory.every_scope() if all_projects else memory.scopes
    # One more than is shown tells whether there is a next page.
    found = memory.store.sessions(scopes, limit + 1, offset, host=host)
    shown = found[:limit]
    days = [
        Day(day, [_show_session(memory, one) for one in together])
        for day, together in groupby(shown, _day_of)
    ]
    return Timeline(days, find_next(shown, offset, offset + len(found)))


@route("GET /recent", "Browse")
def recent(
    memory: View,
    since: Annotated[str, Arg("start of the period: 7d, yesterday, 2026-03-01")] = "7d",
    all_projects: AllProjects = False,
) -> Recent:
    """Show recent activity: conversations, replacements, new memories, open items, memories per day."""
    scopes = memory.every_scope() if all_projects else memory.scopes
    found = browse.catch_up(memory, scopes, moment(since, memory.clock()))
    return Recent(**{**found, "sessions": list(map(summarize_session, found["sessions"]))})


@route("GET /shown", "Browse")
def shown(memory: View, all_projects: AllProjects = False) -> browse.ShownMemories:
    """List memories that hooks showed to agents on the server's machine, the latest first.

    `access_count` says whether an agent then used one. Empty for all but the owner.
    """
    if not memory.caller.owner:
        return browse.ShownMemories(0, [])
    scopes = memory.every_scope() if all_projects else memory.scopes
    return browse.list_shown(memory, scopes)


@route("GET /facets", "Browse")
def facets(memory: View, filters: Filters = NO_FILTERS) -> browse.Facets:
    """Count the newest memories by kind, time, agent, tag, entity and file."""
    return browse.count_facets(memory, find.build_filter(memory, filters))


@route("GET /memories/{id}/versions", "Everyday")
def versions(memory: View, id: Id) -> Memories:
    """Show how a statement changed: what it replaced and what replaced it, oldest first."""
    return Memories(browse.trace_versions(memory, id))


class Reason(NamedTuple):
    """The reason for a statement, as far as anybody gave one."""

    because: str | None
    memory: Annotated[Memory | None, About("what gives the reason, if it is another memory")]


@route("GET /memories/{id}/reason", "Everyday")
def reason(memory: View, id: Id) -> Reason:
    """Say why something was decided: the reason in the statement, or in the turns beside it."""
    return Reason(*explain.find_why(memory, memory.one(id)))


@route("GET /sessions/{id}/turns", "Browse")
def turns(
    memory: View,
    id: Id,
    offset: Offset = 0,
    limit: Limit = 50,
    topic: Annotated[
        str | None, Arg("id of a topic: only its turns, and those of its sub-topics", longest=100)
    ] = None,
) -> TurnPage:
    """List the turns of a conversation in order, each with the memories that were taken from it."""
    session = memory.find_session(id)
    found, total = browse.list_turns(memory, session, topic, limit, offset)
    return TurnPage(
        [Turn(turn, ideas) for turn, ideas in found], find_next(found, offset, total), total
    )


def summarize_session(session: Session) -> SessionSummary:
    return SessionSummary(*(getattr(session, name) for name in SessionSummary._fields))


def _day_of(session: Session) -> str | None:
    return session.started_at.date().isoformat() if session.started_at else None


def _show_session(memory: View, session: Session) -> TimelineSession:
    topics = [
        TopicShare(span.id, span.name, span.summary, span.lines, round(share, 4))
        for span, share in browse.measure_topics(memory, session)
    ]
    return TimelineSession(summarize_session(session), topics)


class FailureList(NamedTuple):
    items: Sequence[KnownFailure]


@presents(overview.failures)
def show_failures(memory: View, found: overview.Failures) -> FailureList:
    return FailureList(found.failures)


class EnforcedList(NamedTuple):
    """Rules of people that deny tool calls on the server's machine."""

    items: Sequence[enforcing.EnforcedMemory]


@route("GET /enforced", "Browse")
def enforced(memory: View) -> EnforcedList:
    """List the rules that deny tool calls on this machine.

    Only `bethink enforce` sets and lifts them.
    """
    visible = enforcing.list_enforced(memory)
    return EnforcedList([one for one in visible if one.content])


@route("GET /graph", "Browse", "meaning")
def graph(
    memory: View,
    focus: Annotated[
        str | None, Arg("id of a memory, or `about:` and the name of an entity", longest=1000)
    ] = None,
    query: Annotated[
        str | None, Arg("start from the matches of this query", longest=10_000)
    ] = None,
    limit: Annotated[int, Arg("maximum number of nodes", low=1, high=500)] = 80,
    depth: Annotated[int, Arg("steps from the focus", low=1, high=4)] = 2,
) -> browse.Graph:
    """Show memories, entities and relations around a focus, nearest first."""
    return browse.draw_graph(memory, focus, query, limit, depth)


# The inbox


@route("GET /inbox", "Browse", "meaning")
def inbox(
    memory: View,
    queue: Annotated[str, Arg(choices=queues.QUEUES)] = queues.QUEUES[0],
    limit: Limit = 20,
    start: Annotated[int, Arg("`next` of the previous page", low=0, high=1_000_000_000)] = 0,
) -> Inbox:
    """List items that need a decision, such as contradictions, duplicates and unverified memories."""
    found = queues.list_queue(memory, queue, limit, start)
    closed = () if _may_promote(memory) else PROMOTING
    acts = tuple(
        name for name, act in queues.ACTS.items() if queue in act.queues and name not in closed
    )
    items = [InboxItem(item.memories, item.reason, acts) for item in found.items]
    return Inbox(queue, items, found.looked, found.next)


@route("GET /inbox/counts", "Browse", "meaning")
def inbox_counts(memory: View) -> InboxCounts:
    """Count the items in each queue of the inbox. Pairs are counted as far as a moment allows."""
    found = queues.count_queues(memory)
    return InboxCounts(
        {name: QueueSize(size["number"], bool(size["more"])) for name, size in found.items()}
    )


@route("POST /inbox", "Browse")
def decide(
    memory: View,
    act: Annotated[
        str,
        Arg(
            "one of the item's `acts`; the response names the act that undoes it",
            choices=tuple(queues.ACTS),
        ),
    ],
    ids: Annotated[
        Strings, Arg("memories of one or more items, in the order of each item", longest=200)
    ],
) -> queues.Done:
    """Decide about items of the inbox, or undo a decision."""
    if act in PROMOTING and not _may_promote(memory):
        raise refuse("rules")
    return queues.decide(memory, act, ids)


def _may_promote(memory: View) -> bool:
    return memory.caller.owner and memory.project.root != NOWHERE


# The server


@route("GET /condition", "Maintenance")
def condition(memory: View) -> Condition:
    """Show the health of the database: capture, backlog, size, growth, cost, `bethink doctor` findings.

    Counting runs in the background; meanwhile the last result is returned. Needs a token for all projects.
    """
    if memory.caller.projects is not None or memory.caller.tenant:
        # One tenant must not learn how many others there are.
        raise refuse("whole-database")
    return memory.server.checkup.look()


@route("GET /tokens", "Serve")
def token(memory: View) -> TokenList:
    """List active tokens and their access. Only for the owner."""
    if not memory.caller.owner:
        raise refuse("owner-only")
    now = memory.clock()
    return TokenList(
        [
            TokenHolder(
                one.name,
                one.scope,
                None if one.projects is None else tuple(grant.scope for grant in one.projects),
                one.personal,
                one.expires,
            )
            for one in memory.server.tokens.known()
            if one.state(now) == "active"
        ]
    )


# Sync between machines of a team


def _peer(memory: View, personal: bool) -> StorePeer:
    """The database to exchange memories with, limited to one scope."""
    if personal and not memory.caller.personal:
        raise refuse("personal")
    scope = PERSONAL if personal else memory.scope
    return StorePeer(memory.store, scope, memory.actor, memory.clock)


@route("POST /sync/outline", "Maintenance", "reads", "whole")
def sync_outline(memory: View, personal: Personal = False) -> Outline:
    """List what a project contains, to compare it with another database."""
    found = _peer(memory, personal).outline()
    lines = [[id, line.version.hex(), *line[1:]] for id, line in found.lines.items()]
    links = [
        [*link, stamp(relation.created_at or EPOCH), actor]
        for link, (relation, actor) in found.links.items()
    ]
    return Outline(lines, links)


@route("POST /sync/records", "Maintenance", "reads", "whole")
def sync_records(
    memory: View,
    personal: Personal = False,
    ids: Annotated[Strings, Arg(longest=200)] = (),
) -> Bundled:
    """Fetch whole memories with their history and vectors."""
    records = tuple(_peer(memory, personal).fetch(ids))
    return Bundled(bundle_to_json(Bundle(records=records)))


BundleJson = Annotated[Values, Arg(longest=8 * 1024 * 1024)]


@route("POST /sync/take", "Maintenance", "whole")
def sync_take(
    memory: View,
    personal: Personal = False,
    bundle: BundleJson = NOTHING,
    expect: Annotated[
        BundleJson, Arg("id → version that is replaced; null if there must be none")
    ] = NOTHING,
) -> NotTaken:
    """Store memories of another database unchanged, unless their versions here are not the expected ones."""
    database = _peer(memory, personal)
    checked, hidden = check_bundle(bundle, memory.config.max_characters)
    versions = {id: _read_version(one) for id, one in expect.items()}
    ids = {id for relation, _ in checked.relations for id in relation[:2]}
    here = _find_inside(memory, database.scope, ids)
    inside = tuple(one for one in checked.relations if here.issuperset(one[0][:2]))
    left = database.take(checked._replace(relations=inside), versions)
    return NotTaken((*hidden, *left))


def _find_inside(memory: View, scope: str, ids: set[str]) -> set[str]:
    """Those of these memories that are in a scope."""
    return {one.id for one in memory.store.get(sorted(ids)) if one.scope == scope}


@route("POST /sync/remove", "Maintenance", "whole")
def sync_remove(
    memory: View,
    personal: Personal = False,
    purge: Annotated[Strings, Arg(longest=1000)] = (),
    unlink: Annotated[
        tuple[Any, ...], Arg("source, target and type of each relation", longest=1000)
    ] = (),
) -> Removed:
    """Purge memories and remove relations, as another database did."""
    database = _peer(memory, personal)
    for link in unlink:
        if not (isinstance(link, list) and [*map(type, link)] == [str, str, str]):
            raise InvalidInput(
                "A relation to remove is not of the form [source, target, type].",
                "Give three strings for each relation.",
            )
    linked = [id for link in unlink for id in link[:2]]
    here = _find_inside(memory, database.scope, {*purge, *linked})
    purged = [id for id in purge if id in here]
    unlinked = [(one[0], one[1], one[2]) for one in unlink if here.issuperset(one[:2])]
    database.remove(purged, unlinked)
    return Removed(len(purged) + len(unlinked))


def _read_version(text: object) -> bytes | None:
    """Read a version; None stays None, and what cannot be read becomes b"", which no memory has."""
    try:
        return None if text is None else bytes.fromhex(str(text))
    except ValueError:
        return b""


@route("POST /sync/purged", "Maintenance", "whole")
def sync_purged(
    memory: View,
    personal: Personal = False,
    hashes: Annotated[Strings, Arg(longest=10_000)] = (),
) -> Purged:
    """Return those of these text hashes whose texts were purged here."""
    return Purged(tuple(sorted(_peer(memory, personal).find_purged(hashes))))
