"""The operations for looking around and for keeping order: conversations, what stands around something, what is to be decided,
how memory is doing, with whom it is shared; and those for other machines of a team.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bethink.errors import InvalidInput
from bethink.features import browse, condition, conversations, inbox, incoming
from bethink.features.sync import StorePeer
from bethink.recall.shape import plain
from bethink.store.bundle import EPOCH, Bundle, bundle_to_json, stamp
from bethink.surface import operations
from bethink.surface.http.api import (
    PAGE,
    Cursor,
    OperationCall,
    operation,
    read_cursor,
    read_page,
)
from bethink.surface.http.projects import NOWHERE, no_personal
from bethink.surface.http.security import Forbidden
from bethink.surface.layout import pick
from bethink.text.when import moment
from bethink.types import PERSONAL, Session, Words

PROMOTING = ("promote", "undo-promote")
MOST_RECORDS, MOST_REMOVED = 200, 1000  # of one request of a sync


# Conversations


@operation("GET /sessions/{id}", "Conversations", "OneSession")
def get_session(call: OperationCall) -> dict[str, Any]:
    """One conversation and what it was about: topics in order, sub-topics after their topics."""
    session = call.memory.find_session(call.path["id"])
    return operations.session_record(session, conversations.topics(call.memory, session))


@operation(
    "GET /timeline",
    "Conversations",
    "Timeline",
    f"""{PAGE} = 20
    --host HOST text ..1000     only conversations with this agent: claude, codex …
    --all-projects              of every project that the token is for
    """,
)
def show_timeline(call: OperationCall) -> dict[str, Any]:
    """Conversations by the day they began on, newest first, with their topics and how much of each they were."""
    memory, asked = call.memory, call.asked
    scopes = memory.every_scope() if asked.all_projects else memory.scopes

    def fetch(number: int, offset: int) -> Sequence[Session]:
        return browse.list_sessions(memory, scopes, asked.host, number, offset)

    shown, following = read_page(asked, fetch)
    days = []
    for day in browse.group_by_day(memory, shown):
        date = day.date.isoformat() if day.date else None
        days.append({"date": date, "sessions": [_conversation(one) for one in day.sessions]})
    return {"days": days, "next": following}


@operation(
    "GET /recent",
    "Conversations",
    "Recent",
    """
    --since TIME = 7d     until now
    --all-projects        of every project that the token is for
    """,
)
def show_recent(call: OperationCall) -> dict[str, Any]:
    """What happened since a time: conversations, what replaced what, what was told; what is open; and how much each day brought."""
    memory, asked = call.memory, call.asked
    scopes = memory.every_scope() if asked.all_projects else memory.scopes
    found = browse.catch_up(memory, scopes, moment(asked.since, memory.clock()))
    sessions = [{**operations.session_record(one), "scope": one.scope} for one in found.sessions]
    return {**found._asdict(), "sessions": sessions}


@operation(
    "GET /sessions/{id}/turns",
    "Conversations",
    "Turns",
    f"""{PAGE} = 50
    --topic ID text ..100     only one topic, with its sub-topics
    """,
)
def list_turns(call: OperationCall) -> dict[str, Any]:
    """What was said in a conversation, in order, with the ideas that were taken from each turn."""
    memory, asked = call.memory, call.asked
    session = memory.find_session(call.path["id"])
    cursor = read_cursor(asked.cursor)
    found, total = browse.list_turns(memory, session, asked.topic, asked.limit, cursor.at)
    at = cursor.at + len(found)
    more = bool(found) and at < total
    items = [{**plain(one.turn), "ideas": one.ideas} for one in found]
    return {"items": items, "next": Cursor(at).write() if more else None, "total": total}


def _conversation(one: browse.Conversation) -> dict[str, Any]:
    topics = [
        {**pick(band.span, "id name summary lines"), "share": round(band.share, 4)}
        for band in one.bands
    ]
    return {**operations.session_record(one.session), "topics": topics}


# Around something


@operation(
    "GET /graph",
    "Find",
    "Graph",
    f"""
    --focus ID text ..1000           the id of a memory, or `about:` and the name of a thing
    --query QUESTION text ..10000    begin with what this finds
    --limit N whole 1..{browse.MOST} = 80
    --depth N whole 1..4 = 2
    """,
    meaning=True,
)
def show_graph(call: OperationCall) -> browse.Graph:
    """Memories, the things they are about and their relations around a focus, nearest first."""
    asked = call.asked
    return browse.draw_graph(
        call.memory, asked.focus, asked.query, limit=asked.limit, depth=asked.depth
    )


@operation("GET /scopes", "Find", "Scopes")
def list_scopes(call: OperationCall) -> dict[str, Any]:
    """The projects and containers that the token is for, and what is personal: how many memories each holds, forgotten ones included,
    and when the last was told. Costs next to nothing, however much there is."""
    projects = call.tools.projects
    store, known = projects.store_of(call.caller), projects.list_visible(call.caller)
    if call.caller.personal:
        known = [*known, (PERSONAL, PERSONAL, None)]
    items = []
    for scope, name, path in known:
        newest = store.list(call.memory.filter(scopes=(scope,)), 1)
        items.append(
            {
                "scope": scope,
                "name": name,
                "path": path,
                "default": scope == call.memory.scope,
                "memories": store.statistics(Words(), (scope,)).memories,
                "last": newest[0].created_at if newest else None,
            }
        )
    return {"items": items}


# Order


@operation(
    "GET /inbox",
    "Care",
    "Inbox",
    f"""
    --queue QUEUE {"|".join(inbox.QUEUES)} = contradictions
    --limit N whole 1..100 = 20
    --start N whole 0..1000000000 = 0     `next` of the look before
    """,
    meaning=True,
)
def show_inbox(call: OperationCall) -> dict[str, Any]:
    """What is to be decided: duplicates, contradictions, what is hardly believed, open questions, what could be a rule."""
    asked = call.asked
    found = inbox.list_queue(call.memory, asked.queue, asked.limit, asked.start)
    acts = [name for name, act in inbox.ACTS.items() if asked.queue in act.queues]
    if not _may_promote(call):
        acts = [name for name in acts if name not in PROMOTING]
    items = [
        {"memories": item.memories, "reason": item.reason, "acts": acts} for item in found.items
    ]
    return {**found._asdict(), "queue": asked.queue, "items": items}


@operation("GET /inbox/counts", "Care", "InboxCounts", meaning=True)
def count_inbox(call: OperationCall) -> dict[str, Any]:
    """How many items wait in each queue of the inbox: of pairs as many as a moment finds."""
    return {"queues": inbox.count_queues(call.memory)}


@operation(
    "POST /inbox",
    "Care",
    "Acted",
    f"""
    act {"|".join(inbox.ACTS)}     `acts` of the item names what there is; the answer says how to take it back
    ids+ text ..200                of the memories of one item or several, in the order of each
    """,
)
def decide(call: OperationCall) -> inbox.Done:
    """Decides about an item of the inbox or about several, or takes a decision back."""
    if call.asked.act in PROMOTING and not _may_promote(call):
        raise Forbidden(
            "Rules are written only by the owner, into a project on this machine: agents obey them.",
            "Use `bethink promote` there.",
        )
    return inbox.decide(call.memory, call.asked.act, call.asked.ids)


def _may_promote(call: OperationCall) -> bool:
    return call.caller.owner and call.memory.project.root != NOWHERE


# How memory is doing


@operation("GET /condition", "Care", "Condition")
def show_condition(call: OperationCall) -> dict[str, Any]:
    """Capture by host, what waits, size and growth, the cost of a language model, how long searches take, what doctor says. What
    takes long is counted in the background; the last answer is given meanwhile. For tokens of every project."""
    if not call.caller.everywhere or call.caller.tenant:
        # One tenant must not learn how many others there are.
        message = "The condition of the whole database is for tokens of every project."
        raise Forbidden(message, "`bethink token create --all-projects`")
    projects, check, searches = call.tools.projects, call.tools.checkup, call.tools.searches
    counted = check.counted.get(lambda: condition.examine(projects.base))
    checked = check.checked.get(lambda: check.run_doctor(projects.home, projects.database))
    quantiles = {f"p{share}": searches.quantile(share / 100) for share in (50, 95)}
    return {
        "condition": counted,
        "doctor": checked,
        "running": check.running,
        "recall": {"searches": searches.number, **quantiles},
    }


@operation("POST /condition", "Care", "Condition")
def check_again(call: OperationCall) -> dict[str, Any]:
    """Counts and checks anew, and says at once what was known before."""
    call.tools.checkup.renew()
    return show_condition(call)


@operation("GET /tokens", "Care", "Shared")
def list_readers(call: OperationCall) -> dict[str, Any]:
    """Who else can read or change memories here: the tokens that work, and what they are for. For the owner."""
    if not call.caller.owner:
        hint = "`bethink token list` on that machine."
        raise Forbidden("Who holds tokens is for the owner to know.", hint)
    now = call.memory.clock()
    items = [
        {
            **pick(token, "name scope personal used expires"),
            "projects": None if token.projects is None else [one.scope for one in token.projects],
        }
        for token in call.tools.tokens.known()
        if token.state(now) == "active"
    ]
    return {"items": items}


# Other machines of a team: the exchange of `bethink sync`.

WHICH = "--personal     what is personal, instead of the project"
WANTED = "--what WHAT* told|conversations|documents"
IDS = f"--ids ID* text ..{MOST_RECORDS}"
HASHES = "--hashes HASH* text ..10000"
GIVEN = """
--bundle BUNDLE object ..8388608
--expect VERSIONS object ..8388608     id → the version that is replaced; null where there must be none
"""
REMOVAL = f"""
--gone ID* text ..{MOST_REMOVED}      ids to remove without a trace
--expect VERSIONS object ..8388608    id → the version that is removed; one that changed meanwhile stays
--purge ID* text ..{MOST_REMOVED}
--unlink LINK* any ..{MOST_REMOVED}   source, target and type of each relation
"""


def _peer(call: OperationCall) -> StorePeer:
    """The database to exchange memories with, and in it the scope that is exchanged."""
    memory, personal = call.memory, call.asked.personal
    if personal and not call.caller.personal:
        raise no_personal()
    scope = PERSONAL if personal else memory.scope
    return StorePeer(memory.store, scope, memory.actor, memory.clock)


@operation("POST /sync/outline", "Team", "Outlined", WANTED, writes=False, where=WHICH)
def outline(call: OperationCall) -> dict[str, Any]:
    """What a project holds, as far as it takes to compare it with another database."""
    found = _peer(call).outline(call.asked.what or ["told"])
    lines = [[id, line.version.hex(), *line[1:]] for id, line in found.lines.items()]
    links = [
        [*link, stamp(relation.created_at or EPOCH), actor]
        for link, (relation, actor) in found.links.items()
    ]
    return {"lines": lines, "links": links}


@operation("POST /sync/records", "Team", "Bundled", IDS, writes=False, where=WHICH)
def give_records(call: OperationCall) -> dict[str, Any]:
    """Memories whole, with their history and vectors."""
    return {"bundle": bundle_to_json(Bundle(records=tuple(_peer(call).fetch(call.asked.ids))))}


@operation("POST /sync/take", "Team", "Left", GIVEN, where=WHICH)
def take_records(call: OperationCall) -> dict[str, Any]:
    """Puts memories of another database down as they are, where they are expected."""
    database = _peer(call)
    longest = call.memory.config.max_characters
    bundle, hidden = incoming.check_bundle(call.asked.bundle, longest)
    expect = {id: None if one is None else _version(one) for id, one in call.asked.expect.items()}
    bundle = bundle._replace(relations=_inside(call, database.scope, bundle.relations))
    return {"left": [*hidden, *database.take(bundle, expect)]}


def _inside(call: OperationCall, scope: str, relations: Any) -> Any:
    """Relations between memories of this scope alone."""
    ids = {id for relation, _ in relations for id in relation[:2]}
    here = {memory.id for memory in call.memory.store.get(sorted(ids)) if memory.scope == scope}
    return tuple(
        (relation, actor)
        for relation, actor in relations
        if relation.source in here and relation.target in here
    )


@operation("POST /sync/remove", "Team", "Removed", REMOVAL, where=WHICH)
def remove_records(call: OperationCall) -> dict[str, Any]:
    """Removes what another database no longer has."""
    database = _peer(call)
    asked = call.asked
    for link in asked.unlink:
        if not (isinstance(link, list) and [*map(type, link)] == [str, str, str]):
            raise InvalidInput("A relation to remove is not of the form [source, target, type].")
    wanted = {*asked.gone, *asked.purge, *(id for link in asked.unlink for id in link[:2])}
    here = {
        memory.id
        for memory in call.memory.store.get(sorted(wanted))
        if memory.scope == database.scope
    }
    gone = {
        id: _version(asked.expect[id]) if id in asked.expect else None
        for id in asked.gone
        if id in here
    }
    purge = [id for id in asked.purge if id in here]
    unlink = [
        (source, target, type)
        for source, target, type in asked.unlink
        if source in here and target in here
    ]
    left = database.remove(gone, purge, unlink)
    return {"removed": len(gone) + len(purge) + len(unlink) - len(left), "left": list(left)}


def _version(text: Any) -> bytes:
    try:
        return bytes.fromhex(text)
    except (ValueError, TypeError):
        return b""  # no version is written so: nothing is changed


@operation("POST /sync/purged", "Team", "Purged", HASHES, where=WHICH)
def list_purged(call: OperationCall) -> dict[str, Any]:
    """Which of these texts, by their hashes, were purged here."""
    return {"purged": sorted(_peer(call).find_purged(call.asked.hashes))}
