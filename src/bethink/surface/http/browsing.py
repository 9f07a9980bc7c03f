"""The operations for looking around and for keeping order: conversations, what stands around something, what is to be decided,
duplicates, how memory is doing, with whom it is shared, jobs; and those for other machines of a team.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bethink.errors import InvalidInput, NotFound
from bethink.features import browse, condition, conversations, inbox, incoming, tending
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
from bethink.surface.http.background import TASKS, Job, job_scope
from bethink.surface.http.projects import NOWHERE, no_personal
from bethink.surface.http.security import Forbidden
from bethink.surface.layout import pick
from bethink.text.when import moment
from bethink.types import PERSONAL, Session, Words

RECALLS = (
    "/search",
    "/api/v1/search",
    "/api/v1/recall",
)  # routes that are a recall and nothing else
PROMOTING = ("promote", "undo-promote")
WHOLE_DATABASE = (
    "entities relations sources sessions spans vectors unembedded database_bytes cached"
)
PAIRS = "--limit N whole 1..500 = 20"
MOST_RECORDS, MOST_REMOVED = 200, 1000  # of one request of a sync
EVERYWHERE = "`bethink token create --all-projects`"


# Conversations


@operation(
    "GET /sessions",
    "Conversations",
    "Sessions",
    f"""{PAGE} = 20
    --all-projects              of every project that the token is for
    """,
)
def list_sessions(call: OperationCall) -> dict[str, Any]:
    """Conversations, newest first."""
    scopes = call.memory.every_scope() if call.asked.all_projects else ()

    def fetch(number: int, offset: int) -> Sequence[Session]:
        return conversations.sessions(call.memory, number, offset, scopes)

    shown, following = read_page(call.asked, fetch)
    return {"items": [operations.session_record(one) for one in shown], "next": following}


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


@operation("GET /duplicates", "Care", "Pairs", PAIRS, meaning=True)
def list_duplicates(call: OperationCall) -> dict[str, Any]:
    """Memories that say the same, or nearly so, the surest first: the one to keep, and the other."""
    found = tending.find_duplicates(call.memory, limit=call.asked.limit)
    return {"items": operations.pair_records(found)}


@operation("GET /contradictions", "Care", "Pairs", PAIRS, meaning=True)
def list_contradictions(call: OperationCall) -> dict[str, Any]:
    """Memories that disagree, the newer one first."""
    found = tending.find_contradictions(call.memory, limit=call.asked.limit)
    return {"items": operations.pair_records(found)}


@operation(
    "POST /consolidation",
    "Care",
    "Consolidated",
    "--dry-run = yes     only say what would be done",
    meaning=True,
)
def consolidate(call: OperationCall) -> dict[str, Any]:
    """Merges what says the same, marks contradictions and answered questions, retires what expired. Only says what it would do,
    unless `dry_run` is false. `restore` undoes each step."""
    steps = tending.plan_consolidation(call.memory)
    done = 0 if call.asked.dry_run else tending.apply_steps(call.memory, steps)
    shown = [{"text": "", **operations.step_record(step)} for step in steps]
    return {"steps": shown, "done": done, "dry_run": call.asked.dry_run}


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


@operation("GET /stats", "Care", "Stats")
def show_stats(call: OperationCall) -> dict[str, Any]:
    """Memories by kind and by project, of all that the token is for."""
    names = {scope: name for scope, name, _ in call.tools.projects.list_visible(call.caller)}
    seen = call.memory.stats([*names, *([PERSONAL] if call.caller.personal else [])])
    whole = pick(seen, WHOLE_DATABASE)
    return {
        **pick(seen, "memories deleted by_kind by_scope"),
        "scope_names": {scope: names[scope] for scope in seen.by_scope if scope in names},
        "database": whole if call.caller.everywhere else None,
    }


@operation("GET /health", "Care", "Health")
def check_health(call: OperationCall) -> dict[str, Any]:
    """What is wrong with the database, if anything is. For tokens of every project."""
    if not call.caller.everywhere:
        message = "The health of the whole database is for tokens of every project."
        raise Forbidden(message, EVERYWHERE)
    problems = call.memory.check()
    status = "problems" if problems else "ok"
    return {"status": status, "problems": problems, "hints": call.memory.hints}


@operation("GET /condition", "Care", "Condition")
def show_condition(call: OperationCall) -> dict[str, Any]:
    """Capture by host, what waits, size and growth, the cost of a language model, how long searches take, what doctor says. What
    takes long is counted in the background; the last answer is given meanwhile. For tokens of every project."""
    if not call.caller.everywhere or call.caller.tenant:
        # One tenant must not learn how many others there are.
        message = "The condition of the whole database is for tokens of every project."
        raise Forbidden(message, EVERYWHERE)
    projects, check, measured = call.tools.projects, call.tools.checkup, call.tools.metrics
    counted = check.counted.get(lambda: condition.examine(projects.base))
    checked = check.checked.get(lambda: check.run_doctor(projects.home, projects.database))
    quantiles = {f"p{share}": measured.quantile(RECALLS, share / 100) for share in (50, 95)}
    milliseconds = {
        name: None if seconds is None else round(seconds * 1000, 1)
        for name, seconds in quantiles.items()
    }
    return {
        "condition": counted,
        "doctor": checked,
        "running": check.running,
        "recall": {"searches": measured.number(RECALLS), **milliseconds},
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


# Jobs


@operation(
    "POST /jobs",
    "Jobs",
    "Job",
    f"""
    task {"|".join(TASKS)}
    --since TIME text ..60     of history and backfill
    --full                     of reindex: every vector anew
    """,
    status=(202,),
)
def start_job(call: OperationCall) -> dict[str, Any]:
    """Begins work on the server's own project and returns at once; `GET /jobs/{id}` shows how far it is. One job at a time:
    `index` its knowledge folders, `map` its code, `analyze` its files or their `history`, `backfill` what agents on that machine
    kept, `reindex` what has no vector."""
    memory, asked, caller = call.memory, call.asked, call.caller
    # By its folder: a project of the same name may be another tenant's.
    if memory.project.root != call.tools.projects.home.root:
        raise Forbidden(
            "Files are read only for the server's own project.",
            "Run the command on the project's own machine.",
        )
    if asked.task == "backfill" and caller.tenant:
        raise Forbidden(
            "Conversations on the server's machine are its owner's, not the team's.",
            "Run `bethink backfill` on your own.",
        )
    if (asked.task == "backfill" or asked.full) and not caller.everywhere:
        message = f"{asked.task} touches every project, and this token is not for all."
        raise Forbidden(message, EVERYWHERE)
    since = moment(asked.since, memory.clock()) if asked.since else None
    return _job_fields(call.tools.jobs.start(asked.task, memory, since, asked.full))


@operation("GET /jobs", "Jobs", "Jobs")
def list_jobs(call: OperationCall) -> dict[str, Any]:
    """The jobs of this project since the server started, newest first."""
    return {"items": [_job_fields(job) for job in _jobs(call)]}


@operation("GET /jobs/{id}", "Jobs", "Job")
def get_job(call: OperationCall) -> dict[str, Any]:
    """How far a job is, and what came of it."""
    for job in _jobs(call):
        if job.id == call.path["id"]:
            return _job_fields(job)
    raise NotFound(f"There is no job '{call.path['id'][:40]}'.", "GET /api/v1/jobs lists them.")


def _jobs(call: OperationCall) -> list[Job]:
    return [job for job in call.tools.jobs.all() if job.scope == job_scope(call.memory)]


def _job_fields(job: Job) -> dict[str, Any]:
    return {name: value for name, value in job._asdict().items() if name != "scope"}


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
    lines = [[id, line.version.hex(), line.hash, line.alone] for id, line in found.lines.items()]
    links = [
        [*link, stamp(relation.created_at or EPOCH), actor]
        for link, (relation, actor) in found.links.items()
    ]
    return {"lines": lines, "links": links}


@operation("POST /sync/records", "Team", "Bundled", IDS, writes=False, where=WHICH)
def give_records(call: OperationCall) -> dict[str, Any]:
    """Memories whole, with their history and vectors."""
    return {"bundle": bundle_to_json(Bundle(records=tuple(_peer(call).fetch(call.asked.ids))))}


@operation("POST /sync/places", "Team", "Bundled", WANTED, writes=False, where=WHICH)
def give_places(call: OperationCall) -> dict[str, Any]:
    """Sources, sessions, topics and known messages of a project."""
    return {"bundle": bundle_to_json(_peer(call).places())}


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
