"""The operations on memories: to search and recall, to read them by id and in order, to add and change them, to hand over."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from bethink.api import Bethink
from bethink.errors import BethinkError, InvalidInput, NotFound, Overtaken, StoreError
from bethink.features import conversations, handoffs, knowledge, language, promotion
from bethink.ingest.pipeline import clean_passage
from bethink.ingest.traces import Traces, traces
from bethink.recall.shape import by_topic, dual, iso, plain, plain_hit
from bethink.store.bundle import stamp
from bethink.surface.http import schemas
from bethink.surface.http.operation import (
    Call,
    Cursor,
    Lines,
    Reply,
    operation,
    read_cursor,
    read_page,
    write_cursor,
)
from bethink.surface.http.problems import Refusal
from bethink.surface.http.projects import no_personal, refuse_write
from bethink.text.checks import as_entity
from bethink.text.when import expiry, moment
from bethink.types import PERSONAL, Answer, Event, Filter, Memory, Passage

HIDDEN = ("expired", "deleted", "superseded", "quarantined")
TIMES = {"expires": "expires_at", "valid_from": "valid_from", "valid_to": "valid_to"}
TAKEN = "added changed unchanged memories_added memories_kept memories_retired hints".split()
AS_GIVEN = ("content", "kind", "summary", "importance", "confidence", "metadata")
MOMENTS = ("valid_from", "valid_to", "last_accessed")  # besides those that end in _at
# In the index-and-details form half of the budget is left for details: an index line costs at most about 40 tokens.
TOKENS_PER_LINE, LINES = 80, 50


def make_filter(call: Call, asked: Any, **more: Any) -> Filter:
    """The filter that a request describes."""
    memory, now = call.memory, call.memory.clock()
    if asked.personal and not call.caller.personal:
        raise no_personal()
    scopes = (PERSONAL,) if asked.personal else memory.every_scope() if asked.all_projects else None
    times = {name: getattr(asked, name) for name in ("since", "until", "as_of")}
    wanted: dict[str, Any] = {
        "kinds": tuple(asked.kind),
        "entities": tuple(as_entity(name).name for name in asked.entity),
        "tags": tuple(asked.tag),
        "sources": tuple(asked.source),
        "session": asked.session,
        "hosts": tuple(asked.host),
        "min_importance": asked.min_importance,
        "answered": asked.answered,
        **{name: moment(text, now) if text else None for name, text in times.items()},
        **{f"include_{name}": getattr(asked, f"include_{name}") for name in HIDDEN},
        **more,
    }
    return memory.filter(scopes=scopes or None, **wanted)


# Finding


@operation("Find", "POST", "/search", "Found", body=schemas.Search, meaning=True)
@operation("Find", "GET", "/search", "Found", schemas.SearchQuery, meaning=True)
def search(call: Call) -> dict[str, Any]:
    """The memories that best answer a question, best first. Changes nothing."""
    asked = call.body or call.query
    cursor = read_cursor(call, asked)
    seeds = (cursor.seed, asked.seed, secrets.randbits(32))
    seed = next(one for one in seeds if one is not None)
    limit = asked.limit or min(call.memory.config.limit, schemas.MOST_LISTED)
    answer = _search(call, asked, limit=limit, offset=cursor.at, seed=seed)
    at = cursor.at + len(answer.hits)
    more = bool(answer.hits) and at < answer.total
    return {
        "items": [plain_hit(hit, asked.explain) for hit in answer.hits],
        "next": write_cursor(Cursor(at, "", seed), call, asked) if more else None,
        "total": answer.total,
        "mode": answer.mode,
        "profile": answer.profile,
        "hints": answer.hints,
    }


@operation("Find", "POST", "/recall", "Recalled", body=schemas.Recall, meaning=True)
@operation("Find", "GET", "/recall", "Recalled", schemas.RecallQuery, meaning=True)
def recall(call: Call) -> dict[str, Any]:
    """An answer from memory for reading: an index of the matches, then the best of them in full within a token budget."""
    memory, asked = call.memory, call.body or call.query
    budget = asked.max_tokens or memory.config.max_tokens
    limit = asked.limit or max(5, min(LINES, budget // TOKENS_PER_LINE))
    answer = _search(call, asked, limit=limit, seed=asked.seed)
    both = dual(answer, budget, lambda one: memory.store.around(one.id, 1, 1))
    spoken = [hit.memory for hit in answer.hits if hit.memory.span]
    scopes = tuple({one.scope for one in spoken})
    spans = memory.store.spans_by_id([str(one.span) for one in spoken], scopes) if spoken else {}
    topics = []
    for span, together in by_topic(answer.hits[: len(both.details)], spans):
        if span:
            told = {name: getattr(span, name) for name in ("id", "name", "summary", "session")}
            topics.append({**told, "memories": [hit.memory.id for hit in together]})
    return {**both._asdict(), "topics": topics}


def _search(call: Call, asked: Any, **how: Any) -> Answer:
    find: Callable[..., Answer] = call.memory.search
    if asked.hyde:
        if not call.caller.may_write:
            raise refuse_write()  # the model costs its owner something
        find = partial(language.search, call.memory)
    return find(
        asked.query,
        filter=make_filter(call, asked),
        mode=asked.mode,
        profile=asked.intent,
        threshold=asked.threshold,
        **how,
    )


@operation("Find", "GET", "/memories", "Page", schemas.List)
def list_memories(call: Call) -> dict[str, Any]:
    """Memories in an order, a page at a time."""
    memory, asked, wanted = call.memory, call.query, make_filter(call, call.query)

    def fetch(number: int, offset: int) -> Sequence[Memory]:
        return memory.list(filter=wanted, limit=number, offset=offset, order=asked.order)

    shown, following = read_page(call, asked, fetch)
    total = memory.store.count(wanted)
    return {"items": shown, "next": following, "total": total}


@operation("Find", "GET", "/memories/{id}", "OneMemory", schemas.Get)
def get(call: Call) -> Reply:
    """One memory with what it is related to. Counts as a use of it, unless `count` is false."""
    one = _use(call, [call.path["id"]], call.query.count)[0]
    value = {**plain(one), "related": _related(call.memory, one)}
    return Reply(value, headers={"ETag": etag(one)})


@operation("Find", "POST", "/memories/get", "Memories", body=schemas.GetMany)
def get_many(call: Call) -> dict[str, Any]:
    """Memories by their ids. Counts as a use of each, unless `count` is false."""
    return {"items": _use(call, call.body.ids, call.body.count)}


def _use(call: Call, ids: Sequence[str], count: bool) -> list[Memory]:
    memory = call.memory
    full = list(dict.fromkeys(memory.resolve(id) for id in ids))
    if count:
        with suppress(StoreError):  # a database that cannot be written can still be read
            memory.touch(full)
    return memory.store.get(full)


def etag(one: Memory) -> str:
    """What tells two versions of a memory apart. Being used is no change to it."""
    return f'"{stamp(one.updated_at)}"'


def _related(memory: Bethink, one: Memory) -> list[dict[str, Any]]:
    """What a memory is related to, as far as the caller may see it."""
    relations = memory.store.relations([one.id])
    ends = {end for relation in relations for end in relation[:2]} - {one.id}
    others = {end.id: end for end in memory.store.get(sorted(ends)) if end.scope in memory.scopes}
    return [
        {
            "type": relation.type,
            "direction": "out" if relation.source == one.id else "in",
            "id": end,
            "summary": others[end].summary,
        }
        for relation in relations
        for end in (relation.source, relation.target)
        if end in others
    ]


@operation("Find", "GET", "/memories/{id}/history", "History")
def history(call: Call) -> dict[str, Any]:
    """Every version of a memory, oldest first. The numbers are those that `restore` takes."""
    events = enumerate(call.memory.history(call.path["id"]), start=1)
    return {"items": [_version(number, event) for number, event in events]}


def _version(number: int, event: Event) -> dict[str, Any]:
    told = {"version": number, "at": event.at, "actor": event.actor, "action": event.action}
    for name, state in (("before", event.before), ("after", event.after)):
        told[name] = {field: _readable(field, value) for field, value in (state or {}).items()}
    return told


def _readable(name: str, value: Any) -> Any:
    """A value as history keeps it, in the form that every other answer has."""
    if isinstance(value, int | float) and (name.endswith("_at") or name in MOMENTS):
        return iso(datetime.fromtimestamp(value / 1000, UTC))
    if name in ("tags", "keywords", "metadata") and isinstance(value, str):
        return json.loads(value)
    return bool(value) if name == "answered" and value is not None else value


@operation("Find", "GET", "/memories/{id}/around", "Memories", schemas.Around)
def around(call: Call) -> dict[str, Any]:
    """What stands around a memory where it came from: the turns of a conversation, or the passages of a document."""
    found = conversations.surroundings(call.memory, call.path["id"], call.query.turns)
    return {"items": found}


@operation("Find", "GET", "/export", "", schemas.Export)
def export(call: Call) -> Lines:
    """Memories as lines of JSON, the oldest first, any number of them."""
    everything = call.query.everything and not call.query.as_of
    hidden = {f"include_{name}": True for name in HIDDEN} if everything else {}
    return Lines(map(plain, call.memory.export(make_filter(call, call.query, **hidden))))


@operation("Find", "GET", "/projects", "Projects")
def list_projects(call: Call) -> dict[str, Any]:
    """The projects and containers that the token is for."""
    items = [
        {"scope": scope, "name": name, "path": path, "default": scope == call.memory.scope}
        for scope, name, path in call.tools.projects.listed(call.caller)
    ]
    return {"items": items, "personal": call.caller.personal}


# Changing


@operation(
    "Change",
    "POST",
    "/memories",
    "Added",
    body=schemas.Add,
    scope="write",
    status=201,
    meaning=True,
    also=(200,),
)
def add(call: Call) -> Reply:
    """Remembers statements in one transaction. What is private or looks like a secret is taken out first. Says which were known
    already. With an `Idempotency-Key` a repeated request gets the first answer."""
    request = b"\0".join((call.memory.scope.encode(), call.raw))
    return call.tools.once(call, request, _add)


def _add(call: Call) -> Reply:
    memory, asked = call.memory, call.body
    passages = [_passage(memory, statement, at) for at, statement in enumerate(asked.memories)]
    try:
        receipt = memory.add_many(
            passages,
            personal=asked.personal,
            source=asked.source,
            dedup=asked.dedup,
            allow_purged=asked.force,
        )
    except InvalidInput as error:
        raise _locate(memory, passages, error) from error
    outcomes = [outcome.plain() for outcome in receipt.outcomes]
    value = {"outcomes": outcomes, "added": receipt.added, "hints": receipt.hints}
    return Reply(value, 201 if receipt.added else 200)


def _passage(memory: Bethink, statement: schemas.Statement, at: int) -> Passage:
    try:
        now = memory.clock()
        same = {name: getattr(statement, name) for name in AS_GIVEN}
        return Passage(
            **same,
            tags=tuple(statement.tags),
            entities=tuple(as_entity(name) for name in statement.entities if name.strip()),
            expires_at=expiry(statement.expires, now) if statement.expires else None,
            valid_from=moment(statement.valid_from, now) if statement.valid_from else None,
            supersedes=tuple(memory.resolve(id) for id in statement.supersedes),
        )
    except BethinkError as error:
        raise _nothing_stored(at, error) from error


def _locate(memory: Bethink, passages: Sequence[Passage], error: InvalidInput) -> BethinkError:
    """The error with the place of the statement that it is about."""
    for at, passage in enumerate(passages):
        try:
            clean_passage(passage, memory.config.max_characters)
        except InvalidInput as found:
            return _nothing_stored(at, found)
    return error


def _nothing_stored(at: int, error: BethinkError) -> BethinkError:
    return type(error)(f"memories[{at}]: {error.message} Nothing was stored.", error.hint)


@operation(
    "Change",
    "PATCH",
    "/memories/{id}",
    "Memory",
    body=schemas.Update,
    scope="write",
    meaning=True,
    also=(412,),
)
def update(call: Call) -> Reply:
    """Changes what is given. With `If-Match` only if the memory is still the version of that ETag."""
    memory, id, now = call.memory, call.path["id"], call.memory.clock()
    given = {TIMES.get(name, name): getattr(call.body, name) for name in call.body.model_fields_set}
    empties = (*TIMES.values(), "answered")
    clear = [name for name, value in given.items() if value is None and name in empties]
    fields = {name: value for name, value in given.items() if value is not None}
    for name, read in (("expires_at", expiry), ("valid_from", moment), ("valid_to", moment)):
        if name in fields:
            fields[name] = read(fields[name], now)
    wanted = [part.strip() for part in call.headers.get("if-match", "").split(",") if part.strip()]
    was = memory.one(id) if wanted else None
    try:
        if was and "*" not in wanted and etag(was) not in wanted:
            raise Overtaken(
                f"The memory {id} changed since it was read.",
                "Read it again, and change what it says now.",
            )
        changed = memory.update(id, clear=clear, was=was, **fields)
    except Overtaken as error:
        headers = {"ETag": etag(memory.one(id))}
        raise Refusal(412, error.message, error.hint, headers) from error
    return Reply(changed, headers={"ETag": etag(changed)})


@operation("Change", "DELETE", "/memories/{id}", "Gone", schemas.Delete, scope="write")
def forget(call: Call) -> dict[str, Any]:
    """Hides a memory from every search; `restore` brings it back. With `purge` it is gone for good, and with it what its conversation
    holds in the very same words."""
    done = _forget(call, [call.path["id"]], call.query.purge)
    return {**done.pop("items")[0], **done}


@operation("Change", "POST", "/memories/forget", "Forgotten", body=schemas.Forget, scope="write")
def forget_many(call: Call) -> dict[str, Any]:
    """Hides memories, or with `purge` removes every trace of them."""
    return _forget(call, call.body.ids, call.body.purge)


def _forget(call: Call, ids: list[str], purge: bool) -> dict[str, Any]:
    memory = call.memory
    full = list(dict.fromkeys(memory.resolve(id) for id in ids))
    found = memory.store.get(full) if purge else []
    known = traces(memory.store, found) if purge else Traces()
    hints = promotion.withdraw_rules(memory, [*found, *known.same]) if purge else []
    done = memory.forget(*full, purge=purge)
    ended = [{"id": id, "status": "purged" if purge else "forgotten"} for id in done.ids]
    ended += [{"id": id, "status": "proposed"} for id in done.proposed]
    remains = [one.id for one in known.rest]
    optional = {"remains": remains, "hints": [*hints, *done.hints]}
    return {"items": ended, **{name: value for name, value in optional.items() if value}}


@operation(
    "Change",
    "POST",
    "/memories/{id}/restore",
    "Memory",
    body=schemas.Restore,
    scope="write",
    meaning=True,
)
def restore(call: Call) -> Reply:
    """Brings back a memory that was forgotten or replaced, or an earlier version of its text."""
    restored = call.memory.restore(call.path["id"], call.body.version)
    return Reply(restored, headers={"ETag": etag(restored)})


@operation("Change", "POST", "/memories/{id}/votes", "Memory", body=schemas.Vote, scope="write")
def vote(call: Call) -> Memory:
    """Says that a memory was useful or, below zero, was not. Counts as a use of it."""
    return call.memory.vote(call.path["id"], call.body.value)


@operation(
    "Change",
    "POST",
    "/memories/{id}/relations",
    "Link",
    body=schemas.NewLink,
    scope="write",
    status=201,
)
def link(call: Call) -> Reply:
    """Relates a memory to another. `supersedes` ends the other's validity; `answers` marks a question as answered."""
    relation = call.memory.link(call.path["id"], call.body.target, call.body.type)
    return Reply(_link_fields(relation, "linked"), 201)


@operation("Change", "DELETE", "/memories/{id}/relations", "Link", schemas.Unlink, scope="write")
def unlink(call: Call) -> dict[str, Any]:
    """Takes a relation back, and what it had changed."""
    relation = call.memory.unlink(call.path["id"], call.query.target, call.query.type)
    return _link_fields(relation, "removed")


def _link_fields(relation: Any, status: str) -> dict[str, Any]:
    source, target, type = relation.source, relation.target, relation.type
    return {"source": source, "type": type, "target": target, "status": status}


@operation(
    "Change",
    "POST",
    "/documents",
    "Taken",
    body=schemas.NewDocuments,
    scope="write",
    meaning=True,
)
def take_documents(call: Call) -> dict[str, Any]:
    """Takes in Markdown documents, cut into passages that cite their lines. A document under a known path is replaced, and only its
    changed passages are embedded."""
    given = {document.path: document.content for document in call.body.documents}
    if len(given) < len(call.body.documents):
        hint = "Give each document a path of its own."
        raise InvalidInput("Two of the documents have the same path.", hint)
    synced = knowledge.import_texts(call.memory, given)
    skipped = [{"path": uri, "reason": reason} for uri, reason in synced.skipped]
    return {**{name: getattr(synced, name) for name in TAKEN}, "skipped": skipped}


# Handing over


@operation("Hand over", "GET", "/handoff", "Handoff", schemas.HandoffPlace)
def show_handoff(call: Call) -> dict[str, Any]:
    """The newest handoff of a branch, or of any where that has none."""
    found = handoffs.find_latest(call.memory, call.query.part, call.query.branch)
    if found is None:
        hint = "POST /api/v1/handoff leaves one."
        raise NotFound("There is no handoff for this project yet.", hint)
    one = found.memory
    told = {"id": one.id, "created_at": one.created_at, "content": one.content}
    return {**told, **found.handoff._asdict(), "exact": found.exact}


@operation(
    "Hand over",
    "POST",
    "/handoff",
    "SavedHandoff",
    body=schemas.NewHandoff,
    scope="write",
    meaning=True,
)
def save_handoff(call: Call) -> dict[str, Any]:
    """Leaves word for whoever works here next, in place of the branch's last handoff."""
    given = call.body.model_dump()
    given["project"] = given.pop("part")
    saved = handoffs.save_handoff(call.memory, handoffs.handoff_from_fields(given))
    stored = handoffs.read_handoff(saved.memory)
    status = "saved" if saved.new else "unchanged"
    where = {"project": stored.project, "branch": stored.branch}
    return {"id": saved.memory.id, "status": status, "supersedes": saved.supersedes, **where}
