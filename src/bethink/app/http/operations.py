"""The operations of the HTTP API: to search and recall, to read memories by id and in order, to add and change them; conversations,
what stands around something, what is to be decided, how memory is doing, with whom it is shared; and those for other machines of
a team. Each is named as in the table of `surface`, which says what it takes and gives. It gets the memory as its caller
sees it and what was asked, and gives a value for JSON; what several surfaces do alike is in `app/operations.py`.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any
from zlib import crc32

from bethink.app import operations, render
from bethink.app.http.projects import NOWHERE, View
from bethink.app.http.security import Grant, refuse
from bethink.app.operations import make_filter
from bethink.app.render import pick
from bethink.errors import InvalidInput, Overtaken
from bethink.features import browse, conversations, promotion
from bethink.features import inbox as queues
from bethink.features.sync import StorePeer, check_bundle
from bethink.language.times import moment
from bethink.model import EVERYTHING, PERSONAL, Json, Memory, Session, Words
from bethink.recall.shape import iso, plain, plain_hit, plain_relations
from bethink.store.rows import EPOCH, stamp
from bethink.store.transfer import Bundle, bundle_to_json

BESIDE = ("id", "project", "container", "updated_at")  # of a change: what is no value of a memory
PROMOTING = ("promote", "undo-promote")


def make_page(asked: Any, shown: Sequence[Any], total: int) -> Json:
    """What is shown of a number of items, and where the next page begins, if there is one."""
    at = asked.offset + len(shown)
    return {"items": shown, "next": at if shown and at < total else None, "total": total}


# Finding


def search(memory: View, asked: Any) -> Json:
    """The memories that best answer a question, best first. Changes nothing."""
    limit, seed = asked.limit or min(memory.config.limit, 100), asked.seed
    if seed is None:  # the same for all pages of a question, and another one after a while
        seed = crc32(f"{memory.clock():%Y%m%d%H} {asked.query}".encode("utf-8", "replace"))
    how = {"limit": limit, "offset": asked.offset, "seed": seed, "rerank": bool(asked.rerank)}
    answer = operations.search(memory, asked.query, asked, **how)
    hits = [plain_hit(hit, asked.explain) for hit in answer.hits]
    return {**make_page(asked, hits, answer.total), **pick(answer, "mode profile hints")}


def recall(memory: View, asked: Any) -> Json:
    """An answer from memory for reading: an index of the matches, then the best of them in full within a token budget."""
    how = {"seed": asked.seed, "rerank": asked.rerank is not False}
    form = render.Form(values=True)
    return operations.recall_record(operations.recall(memory, asked.query, asked, form, **how))


def list_(memory: View, asked: Any) -> Json:
    """Memories in an order, a page at a time."""
    wanted = make_filter(memory, asked)
    shown = memory.list(filter=wanted, **pick(asked, "limit offset order"))
    return make_page(asked, shown, memory.store.count(wanted))


def get(memory: View, asked: Any) -> Json:
    """One memory with what it is related to. Counts as a use of it, unless `count` is false."""
    [one] = memory.get(asked.id, count=asked.count)
    related = render.related_memories(memory, [one])[one.id]
    return {**plain(one), "related": plain_relations(one.id, related)}


def history(memory: View, asked: Any) -> Json:
    """Every version of a memory, oldest first. The numbers are those that `restore` takes."""
    return {"items": operations.version_records(memory.history(asked.id))}


def around(memory: View, asked: Any) -> Json:
    """What stands around a memory where it came from: the turns of a conversation, or the passages of a document."""
    return {"items": conversations.surroundings(memory, asked.id, asked.turns)}


def export(memory: View, asked: Any) -> Iterator[Json]:
    """Memories as lines of JSON, the oldest first, any number of them."""
    hidden = EVERYTHING if asked.everything and not asked.as_of else {}
    return map(plain, memory.export(make_filter(memory, asked, **hidden)))


def projects(memory: View, asked: Any) -> Json:
    """The projects and containers that the token is for, and what is personal: how many memories each holds, forgotten ones included,
    and when the last was told. Costs next to nothing, however much there is."""
    server, caller = memory.server, memory.caller
    listed, store = server.list_visible(caller), server.store_of(caller)
    if caller.personal:
        listed.append(Grant(PERSONAL, "", PERSONAL))
    items = []
    for one in listed:
        newest = store.list(memory.filter(scopes=(one.scope,)), 1)
        items.append(
            {
                **pick(one, "scope name"),
                "path": one.root or None,
                "default": one.scope == memory.scope,
                "memories": store.statistics(Words(), (one.scope,)).memories,
                "last": newest[0].created_at if newest else None,
            }
        )
    return {"items": items}


# Changing


def add(memory: View, asked: Any) -> Json:
    """Remembers statements in one transaction. What is private or looks like a secret is taken out first. Says which were known
    already. Where one replaces a memory, none of them is compared with what is known by meaning."""
    receipt = memory.add_many(
        operations.make_passages(memory, asked.memories),
        personal=asked.personal,
        source=asked.source,
        dedup=asked.dedup,
        automatic=asked.automatic,
        allow_purged=asked.force,
    )
    outcomes = list(map(render.plain_outcome, receipt.outcomes))
    return {"outcomes": outcomes, "added": receipt.added, "hints": receipt.hints}


def update(memory: View, asked: Any) -> Memory:
    """Changes what is given; null empties a time or `answered`. The old version stays in the history. With `updated_at` nothing is
    changed if somebody else was quicker."""
    given = {name: value for name, value in asked.given.items() if name not in BESIDE}
    was = memory.one(asked.id) if asked.updated_at else None
    if was and iso(was.updated_at) != asked.updated_at:
        raise Overtaken(
            f"The memory {asked.id} changed since it was read.",
            "Read it again, and change what it says now.",
        )
    return operations.update(memory, asked.id, given, was)


def forget(memory: View, asked: Any) -> Json:
    """Hides a memory from every search; `restore` brings it back. With `purge` it is gone for good, and with it what its conversation
    holds in the very same words. A token hides what agents stored; the user's own word, and every purge, waits for its owner:
    `status` is `proposed`."""
    found = memory.get(asked.id, count=False)
    id = found[0].id
    remains = memory.find_traces(found).rest if asked.purge else ()
    done = promotion.purge(memory, found) if asked.purge else memory.forget(id)
    status = "proposed" if done.proposed else "purged" if asked.purge else "forgotten"
    return {
        "id": id,
        "status": status,
        "also": [other for other in done.ids if other != id],
        "remains": [one.id for one in remains],
        "hints": [*render.describe_request(done), *done.hints],
    }


def restore(memory: View, asked: Any) -> Memory:
    """Brings back a memory that was forgotten or replaced, or an earlier version of its text."""
    return memory.restore(asked.id, asked.version)


def vote(memory: View, asked: Any) -> Memory:
    """Says that a memory was useful or, below zero, was not. Counts as a use of it."""
    return memory.vote(asked.id, asked.value)


def link(memory: View, asked: Any) -> Json:
    """Relates a memory to another. `supersedes` ends the other's validity; `answers` marks a question as answered."""
    made = memory.link(asked.id, asked.target, asked.type)
    return {**pick(made, "source type target"), "status": "linked"}


def unlink(memory: View, asked: Any) -> Json:
    """Takes a relation back, and what it had changed."""
    taken = memory.unlink(asked.id, asked.target, asked.type)
    return {**pick(taken, "source type target"), "status": "removed"}


# Conversations


def topics(memory: View, asked: Any) -> Json:
    """One conversation and what it was about: topics in order, sub-topics after their topics."""
    session = memory.find_session(asked.id)
    return operations.session_record(session, conversations.topics(memory, session))


def timeline(memory: View, asked: Any) -> Json:
    """Conversations by the day they began on, newest first, with their topics and how much of each they were."""
    scopes = memory.every_scope() if asked.all_projects else memory.scopes
    # One more than is shown tells whether there are more.
    found = memory.store.sessions(scopes, asked.limit + 1, asked.offset, host=asked.host)
    shown = found[: asked.limit]
    days = [
        {"date": day, "sessions": [_conversation(memory, one) for one in together]}
        for day, together in groupby(shown, _day_of)
    ]
    return {"days": days, "next": make_page(asked, shown, asked.offset + len(found))["next"]}


def recent(memory: View, asked: Any) -> Json:
    """What happened since a time: conversations, what replaced what, what was told; what is open; and how much each day brought."""
    scopes = memory.every_scope() if asked.all_projects else memory.scopes
    found = browse.catch_up(memory, scopes, moment(asked.since, memory.clock()))
    return {**found, "sessions": list(map(operations.session_record, found["sessions"]))}


def turns(memory: View, asked: Any) -> Json:
    """What was said in a conversation, in order, with the ideas that were taken from each turn."""
    session = memory.find_session(asked.id)
    found, total = browse.list_turns(memory, session, asked.topic, asked.limit, asked.offset)
    items = [{**plain(turn), "ideas": ideas} for turn, ideas in found]
    return make_page(asked, items, total)


def _day_of(one: Session) -> str | None:
    return one.started_at.date().isoformat() if one.started_at else None


def _conversation(memory: View, one: Session) -> Json:
    topics = [
        {**pick(span, "id name summary lines"), "share": round(share, 4)}
        for span, share in browse.measure_topics(memory, one)
    ]
    return {**operations.session_record(one), "topics": topics}


# Around something


def graph(memory: View, asked: Any) -> browse.Graph:
    """Memories, the things they are about and their relations around a focus, nearest first."""
    return browse.draw_graph(memory, asked.focus, asked.query, asked.limit, asked.depth)


# Order


def inbox(memory: View, asked: Any) -> Json:
    """What is to be decided: duplicates, contradictions, what is hardly believed, open questions, what could be a rule."""
    found = queues.list_queue(memory, asked.queue, asked.limit, asked.start)
    closed = () if _may_promote(memory) else PROMOTING
    acts = [
        name
        for name, act in queues.ACTS.items()
        if asked.queue in act.queues and name not in closed
    ]
    items = [{**pick(item, "memories reason"), "acts": acts} for item in found.items]
    return {**found._asdict(), "queue": asked.queue, "items": items}


def inbox_counts(memory: View, asked: Any) -> Json:
    """How many items wait in each queue of the inbox: of pairs as many as a moment finds."""
    return {"queues": queues.count_queues(memory)}


def decide(memory: View, asked: Any) -> queues.Done:
    """Decides about an item of the inbox or about several, or takes a decision back."""
    if asked.act in PROMOTING and not _may_promote(memory):
        raise refuse("rules")
    return queues.decide(memory, asked.act, asked.ids)


def _may_promote(memory: View) -> bool:
    return memory.caller.owner and memory.project.root != NOWHERE


# How memory is doing


def condition(memory: View, asked: Any) -> Json:
    """Capture by host, what waits, size and growth, the cost of a language model, what doctor says. What takes long is counted in the background; the last answer is given meanwhile. For tokens of every project."""
    if memory.caller.projects is not None or memory.caller.tenant:
        # One tenant must not learn how many others there are.
        raise refuse("whole-database")
    return memory.server.checkup.look()


def token(memory: View, asked: Any) -> Json:
    """Who else can read or change memories here: the tokens that work, and what they are for. For the owner."""
    if not memory.caller.owner:
        raise refuse("owner-only")
    now = memory.clock()
    items = [
        {
            **pick(one, "name scope personal expires"),
            "projects": None if one.projects is None else [grant.scope for grant in one.projects],
        }
        for one in memory.server.tokens.known()
        if one.state(now) == "active"
    ]
    return {"items": items}


# Other machines of a team: the exchange of `bethink sync`.


def _peer(memory: View, asked: Any) -> StorePeer:
    """The database to exchange memories with, and in it the scope that is exchanged."""
    if asked.personal and not memory.caller.personal:
        raise refuse("personal")
    scope = PERSONAL if asked.personal else memory.scope
    return StorePeer(memory.store, scope, memory.actor, memory.clock)


def sync_outline(memory: View, asked: Any) -> Json:
    """What a project holds, as far as it takes to compare it with another database."""
    found = _peer(memory, asked).outline()
    lines = [[id, line.version.hex(), *line[1:]] for id, line in found.lines.items()]
    links = [
        [*link, stamp(relation.created_at or EPOCH), actor]
        for link, (relation, actor) in found.links.items()
    ]
    return {"lines": lines, "links": links}


def sync_records(memory: View, asked: Any) -> Json:
    """Memories whole, with their history and vectors."""
    return {"bundle": bundle_to_json(Bundle(records=tuple(_peer(memory, asked).fetch(asked.ids))))}


def sync_take(memory: View, asked: Any) -> Json:
    """Puts memories of another database down as they are, where they are expected."""
    database = _peer(memory, asked)
    longest = memory.config.max_characters
    bundle, hidden = check_bundle(asked.bundle, longest)
    expect = {id: _version(one) for id, one in asked.expect.items()}
    ids = {id for relation, _ in bundle.relations for id in relation[:2]}
    here = _find_inside(memory, database.scope, ids)
    inside = tuple(one for one in bundle.relations if here.issuperset(one[0][:2]))
    bundle = bundle._replace(relations=inside)
    return {"left": [*hidden, *database.take(bundle, expect)]}


def _find_inside(memory: View, scope: str, ids: set[str]) -> set[str]:
    """Those of these memories that are of a scope."""
    return {one.id for one in memory.store.get(sorted(ids)) if one.scope == scope}


def sync_remove(memory: View, asked: Any) -> Json:
    """Purges memories, and ends relations, as another database did."""
    database = _peer(memory, asked)
    for link in asked.unlink:
        if not (isinstance(link, list) and [*map(type, link)] == [str, str, str]):
            raise InvalidInput("A relation to remove is not of the form [source, target, type].")
    linked = [id for link in asked.unlink for id in link[:2]]
    here = _find_inside(memory, database.scope, {*asked.purge, *linked})
    purge = [id for id in asked.purge if id in here]
    unlink = [(one[0], one[1], one[2]) for one in asked.unlink if here.issuperset(one[:2])]
    database.remove(purge, unlink)
    return {"removed": len(purge) + len(unlink)}


def _version(text: Any) -> bytes | None:
    """A version as it was sent; None where there must be none, and b"", which is no version, where it cannot be read."""
    try:
        return None if text is None else bytes.fromhex(text)
    except (ValueError, TypeError):
        return b""


def sync_purged(memory: View, asked: Any) -> Json:
    """Which of these texts, by their hashes, were purged here."""
    return {"purged": sorted(_peer(memory, asked).find_purged(asked.hashes))}
