"""The operations that only look: search, recall, memories by id and in order, what stands around them, export."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import Any

from bethink.api import Bethink
from bethink.errors import StoreError
from bethink.features import conversations
from bethink.recall.shape import by_topic, dual, iso, plain, plain_hit
from bethink.surface.http import answers, cursors, schemas
from bethink.surface.http.operation import Call, Lines, Operation, Reply
from bethink.surface.http.projects import no_personal, refused
from bethink.surface.http.security import Caller
from bethink.text.checks import as_entity
from bethink.text.when import moment
from bethink.types import PERSONAL, Answer, Event, Filter, Memory

HIDDEN = ("expired", "deleted", "superseded", "quarantined")
VARIES = ("access_count", "last_accessed", "usefulness")  # by use, which is no change to the memory
# In the index-and-details form half of the budget is left for details: an index line costs at most about 40 tokens.
TOKENS_PER_LINE, LINES = 80, 50


def chosen(call: Call, asked: Any, **more: Any) -> Filter:
    """The filter that a request describes."""
    memory, now = call.memory, call.memory.clock()
    if asked.personal and not call.caller.personal:
        raise no_personal()
    scopes = (PERSONAL,) if asked.personal else memory.every_scope() if asked.all_projects else None
    wanted: dict[str, Any] = {
        "kinds": tuple(asked.kind),
        "entities": tuple(as_entity(name).name for name in asked.entity),
        "tags": tuple(asked.tag),
        "sources": tuple(asked.source),
        "session": asked.session,
        "hosts": tuple(asked.host),
        "min_importance": asked.min_importance,
        "answered": asked.answered,
        **{
            name: moment(text, now) if (text := getattr(asked, name)) else None
            for name in ("since", "until", "as_of")
        },
        **{f"include_{name}": getattr(asked, f"include_{name}") for name in HIDDEN},
        **more,
    }
    return memory.filter(scopes=scopes or None, **wanted)


def search(call: Call) -> dict[str, Any]:
    """The memories that best answer a question, best first. Changes nothing."""
    asked = _asked(call)
    question = {**asked.model_dump(), "scopes": call.memory.scopes, "method": "search"}
    cursor = cursors.read(asked.cursor, question)
    seed = (
        cursor.seed
        if cursor.seed is not None
        else asked.seed
        if asked.seed is not None
        else secrets.randbits(32)
    )
    limit = asked.limit or min(call.memory.config.limit, schemas.MOST_LISTED)
    answer = _found(call, asked, limit=limit, offset=cursor.at, seed=seed)
    at = cursor.at + len(answer.hits)
    more = bool(answer.hits) and at < answer.total
    return {
        "items": [plain_hit(hit, asked.explain) for hit in answer.hits],
        "next": cursors.written(cursors.Cursor(at, "", seed), question) if more else None,
        "total": answer.total,
        "mode": answer.mode,
        "profile": answer.profile,
        "hints": list(answer.hints),
    }


def recall(call: Call) -> dict[str, Any]:
    """An answer from memory for reading: an index of the matches, then the best of them in full within a token budget."""
    memory, asked = call.memory, _asked(call)
    budget = asked.max_tokens or memory.config.max_tokens
    limit = asked.limit or max(5, min(LINES, budget // TOKENS_PER_LINE))
    answer = _found(call, asked, limit=limit, seed=asked.seed)
    both = dual(answer, budget, lambda one: memory.store.around(one.id, 1, 1))
    spoken = [hit.memory for hit in answer.hits if hit.memory.span]
    spans = (
        memory.store.spans_by_id(
            [str(one.span) for one in spoken], tuple({one.scope for one in spoken})
        )
        if spoken
        else {}
    )
    topics = [
        {
            "id": span.id,
            "name": span.name,
            "summary": span.summary,
            "session": span.session,
            "memories": [hit.memory.id for hit in together],
        }
        for span, together in by_topic(answer.hits[: len(both.details)], spans)
        if span
    ]
    return {**both._asdict(), "topics": topics}


def _asked(call: Call) -> Any:
    """A question comes in the address or in the body."""
    return call.query if call.body is None else call.body


def _found(call: Call, asked: Any, **how: Any) -> Answer:
    find: Callable[..., Answer] = call.memory.search
    if asked.hyde:
        from bethink.features import language

        if not call.caller.may_write:
            raise refused()  # the model costs its owner something
        find = partial(language.search, call.memory)
    return find(
        asked.query,
        filter=chosen(call, asked),
        mode=asked.mode,
        profile=asked.intent,
        threshold=asked.threshold,
        **how,
    )


def list_memories(call: Call) -> dict[str, Any]:
    """Memories in an order, a page at a time."""
    memory, asked = call.memory, call.query
    question = {**asked.model_dump(), "scopes": memory.scopes, "method": "list"}
    cursor = cursors.read(asked.cursor, question)
    wanted = chosen(call, asked)
    offset, number = cursors.window(cursor, asked.limit)
    found = memory.list(filter=wanted, limit=number, offset=offset, order=asked.order)
    shown, following = cursors.page(found, [one.id for one in found], cursor, asked.limit)
    return {
        "items": [plain(one) for one in shown],
        "next": cursors.written(following, question) if following else None,
        "total": memory.store.count(wanted),
    }


def get(call: Call) -> Reply:
    """One memory with what it is related to. Counts as a use of it, unless `count` is false."""
    one = _used(call, [call.path["id"]], call.query.count)[0]
    return Reply({**plain(one), "related": related(call.memory, one)}, headers={"ETag": etag(one)})


def get_many(call: Call) -> dict[str, Any]:
    """Memories by their ids. Counts as a use of each, unless `count` is false."""
    return {"items": [plain(one) for one in _used(call, call.body.ids, call.body.count)]}


def _used(call: Call, ids: Sequence[str], count: bool) -> list[Memory]:
    memory = call.memory
    full = list(dict.fromkeys(memory.resolve(id) for id in ids))
    if count:
        with suppress(StoreError):  # a database that cannot be written can still be read
            memory.touch(full)
    return memory.store.get(full)


def etag(one: Memory) -> str:
    """What tells two versions of a memory apart."""
    lasting = {name: value for name, value in plain(one).items() if name not in VARIES}
    return f'"{sha256(repr(sorted(lasting.items())).encode("utf-8", "replace")).hexdigest()[:20]}"'


def related(memory: Bethink, one: Memory) -> list[dict[str, Any]]:
    """What a memory is related to, as far as the caller may see it."""
    found = memory.store.relations([one.id])
    ends = {end for relation in found for end in (relation.source, relation.target)} - {one.id}
    others = {
        other.id: other for other in memory.store.get(sorted(ends)) if other.scope in memory.scopes
    }
    return [
        {
            "type": relation.type,
            "direction": "out" if relation.source == one.id else "in",
            "id": end,
            "summary": others[end].summary,
        }
        for relation in found
        for end in (relation.source, relation.target)
        if end in others
    ]


def history(call: Call) -> dict[str, Any]:
    """Every version of a memory, oldest first. The numbers are those that `restore` takes."""
    return {
        "items": [
            _version(number, event)
            for number, event in enumerate(call.memory.history(call.path["id"]), start=1)
        ]
    }


def _version(number: int, event: Event) -> dict[str, Any]:
    before, after = (
        {name: _kept(name, value) for name, value in (side or {}).items()}
        for side in (event.before, event.after)
    )
    return {
        "version": number,
        "at": iso(event.at),
        "actor": event.actor,
        "action": event.action,
        "before": before,
        "after": after,
    }


def _kept(name: str, value: Any) -> Any:
    """A value as history keeps it, in the form that every other answer has."""
    import json
    from datetime import UTC, datetime

    if (
        value is not None
        and (name.endswith("_at") or name in ("valid_from", "valid_to", "last_accessed"))
        and isinstance(value, int | float)
    ):
        return iso(datetime.fromtimestamp(value / 1000, UTC))
    if name in ("tags", "keywords", "metadata") and isinstance(value, str):
        return json.loads(value)
    return bool(value) if name == "answered" and value is not None else value


def around(call: Call) -> dict[str, Any]:
    """What stands around a memory where it came from: the turns of a conversation, or the passages of a document."""
    return {
        "items": [
            plain(one)
            for one in conversations.surroundings(call.memory, call.path["id"], call.query.turns)
        ]
    }


def export(call: Call) -> Lines:
    """Memories as lines of JSON, the oldest first, any number of them."""
    every = (
        {f"include_{name}": True for name in HIDDEN}
        if call.query.everything and not call.query.as_of
        else {}
    )
    return Lines(map(plain, call.memory.export(chosen(call, call.query, **every))))


def list_projects(call: Call) -> dict[str, Any]:
    """The projects and containers that the token is for."""
    caller: Caller = call.caller
    return {
        "items": [
            {"scope": scope, "name": name, "path": path, "default": scope == call.memory.scope}
            for scope, name, path in call.tools.projects.listed(caller)
        ],
        "personal": caller.personal,
    }


OPERATIONS = (
    Operation(
        "GET",
        "/search",
        search,
        answers.Found,
        schemas.SearchQuery,
        group="Find",
        meaning=True,
        also=(503,),
    ),
    Operation(
        "POST",
        "/search",
        search,
        answers.Found,
        body=schemas.Search,
        group="Find",
        meaning=True,
        also=(503,),
    ),
    Operation(
        "GET",
        "/recall",
        recall,
        answers.Recalled,
        schemas.RecallQuery,
        group="Find",
        meaning=True,
        also=(503,),
    ),
    Operation(
        "POST",
        "/recall",
        recall,
        answers.Recalled,
        body=schemas.Recall,
        group="Find",
        meaning=True,
        also=(503,),
    ),
    Operation("GET", "/memories", list_memories, answers.Page, schemas.List, group="Find"),
    Operation(
        "GET", "/memories/{id}", get, answers.OneMemory, schemas.Get, group="Find", also=(404, 409)
    ),
    Operation(
        "POST",
        "/memories/get",
        get_many,
        answers.Memories,
        body=schemas.GetMany,
        group="Find",
        also=(404, 409),
    ),
    Operation(
        "GET", "/memories/{id}/history", history, answers.History, group="Find", also=(404, 409)
    ),
    Operation(
        "GET",
        "/memories/{id}/around",
        around,
        answers.Memories,
        schemas.Around,
        group="Find",
        also=(404, 409),
    ),
    Operation("GET", "/export", export, None, schemas.Export, group="Find"),
    Operation("GET", "/projects", list_projects, answers.Projects, group="Find"),
)
