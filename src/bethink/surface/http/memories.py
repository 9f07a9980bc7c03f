"""The operations on memories: to search and recall, to read them by id and in order, to add and change them."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from bethink.errors import Overtaken, StoreError
from bethink.features import conversations, promotion
from bethink.ingest.traces import Traces, traces
from bethink.recall.shape import iso, plain, plain_hit, plain_relations
from bethink.surface import operations, render
from bethink.surface.http.api import (
    PAGE,
    Cursor,
    Lines,
    OperationCall,
    operation,
    read_cursor,
    read_page,
)
from bethink.surface.http.projects import no_personal, refuse_write
from bethink.surface.layout import pick
from bethink.surface.mcp.tools import make_passage
from bethink.surface.operations import ORDERS, STATES
from bethink.text.when import expiry, moment
from bethink.types import RELATIONS, Answer, Filter, Memory

TIMES = {"expires": "expires_at", "valid_from": "valid_from", "valid_to": "valid_to"}

FILTERS = f"{operations.FILTERS}\n--answered = null     of questions"
RANKED = f"""
query text ..10000       a question, words, "a phrase", prefix*, AND OR NOT
{operations.RANKING}
--rerank = null          whether the judge reads the first hits again: slower, and better for questions; else only `/recall` does
{FILTERS}
"""
SEARCH = f"""
{RANKED}
{PAGE}
--explain                each signal's part in a score
"""
RECALL = f"""
{RANKED}
--limit N whole 1..100
--max-tokens N whole 50..1000000
"""
VALUES = """
--content TEXT
--kind KIND
--summary TEXT text ..1000
--importance N number 0..10
--confidence N number 0..1
--tags TAG*
--entities NAME*         what it is about: Redis, person:Ada
--expires TIME text ..60
--valid-from TIME text ..60
--metadata VALUES object
--embedding-text TEXT    embedded in place of the content
"""
STATEMENT = f"""
content                  one thing to remember; what is left out is found by rules
{VALUES}
--supersedes ID*         what it replaces
"""
LINK = f"""
target text 1..100       an id or any unique beginning of one
--type TYPE {"|".join(RELATIONS)} = relates_to
"""


def make_filter(call: OperationCall, **more: Any) -> Filter:
    """The filter that a request describes."""
    if call.asked.personal and not call.caller.personal:
        raise no_personal()
    return operations.make_filter(call.memory, call.asked, answered=call.asked.answered, **more)


# Finding


@operation("GET /search", "Find", "Found", SEARCH, meaning=True)
def search(call: OperationCall) -> dict[str, Any]:
    """The memories that best answer a question, best first. Changes nothing."""
    asked, cursor = call.asked, read_cursor(call.asked.cursor)
    seeds = (cursor.seed, asked.seed, secrets.randbits(32))
    seed = next(one for one in seeds if one is not None)
    limit = asked.limit or min(call.memory.config.limit, 100)
    answer = _search(call, limit=limit, offset=cursor.at, seed=seed, rerank=bool(asked.rerank))
    at = cursor.at + len(answer.hits)
    more = bool(answer.hits) and at < answer.total
    return {
        "items": [plain_hit(hit, asked.explain) for hit in answer.hits],
        "next": Cursor(at, "", seed).write() if more else None,
        **pick(answer, "total mode profile hints"),
    }


@operation("GET /recall", "Find", "Recalled", RECALL, meaning=True)
def recall(call: OperationCall) -> dict[str, Any]:
    """An answer from memory for reading: an index of the matches, then the best of them in full within a token budget."""
    memory, asked = call.memory, call.asked
    budget = asked.max_tokens or memory.config.max_tokens
    limit = asked.limit or operations.count_lines(budget)
    answer = _search(call, limit=limit, seed=asked.seed, rerank=asked.rerank is not False)
    return operations.recall_record(render.arrange_answer(memory, answer, budget))


def _search(call: OperationCall, **how: Any) -> Answer:
    if call.asked.hyde and not call.caller.may_write:
        raise refuse_write()  # the model costs its owner something
    asked = call.asked
    return operations.search(call.memory, asked.query, asked, make_filter(call), **how)


@operation(
    "GET /memories",
    "Find",
    "Page",
    f"{FILTERS}\n--order ORDER {ORDERS} = created{PAGE} = 50",
)
def list_memories(call: OperationCall) -> dict[str, Any]:
    """Memories in an order, a page at a time."""
    memory, asked, wanted = call.memory, call.asked, make_filter(call)

    def fetch(number: int, offset: int) -> Sequence[Memory]:
        return memory.list(filter=wanted, limit=number, offset=offset, order=asked.order)

    shown, following = read_page(asked, fetch)
    return {"items": shown, "next": following, "total": memory.store.count(wanted)}


@operation(
    "GET /memories/{id}",
    "Find",
    "OneMemory",
    "--count = yes     whether this counts as a use",
)
def get(call: OperationCall) -> dict[str, Any]:
    """One memory with what it is related to. Counts as a use of it, unless `count` is false."""
    memory, id = call.memory, call.memory.resolve(call.path["id"])
    if call.asked.count:
        with suppress(StoreError):  # a database that cannot be written can still be read
            memory.touch([id])
    one = memory.store.get([id])[0]
    related = render.related_memories(memory, [one])[id]
    return {**plain(one), "related": plain_relations(id, related)}


@operation("GET /memories/{id}/history", "Find", "History")
def history(call: OperationCall) -> dict[str, Any]:
    """Every version of a memory, oldest first. The numbers are those that `restore` takes."""
    return {"items": operations.version_records(call.memory.history(call.path["id"]))}


@operation("GET /memories/{id}/around", "Find", "Memories", "--turns N whole 0..50 = 3")
def around(call: OperationCall) -> dict[str, Any]:
    """What stands around a memory where it came from: the turns of a conversation, or the passages of a document."""
    return {"items": conversations.surroundings(call.memory, call.path["id"], call.asked.turns)}


@operation(
    "GET /export",
    "Find",
    "",
    f"{FILTERS}\n--everything = yes     forgotten, expired, replaced and quarantined ones too",
)
def export(call: OperationCall) -> Lines:
    """Memories as lines of JSON, the oldest first, any number of them."""
    everything = call.asked.everything and not call.asked.as_of
    hidden = {f"include_{name}": True for name in STATES} if everything else {}
    return Lines(map(plain, call.memory.export(make_filter(call, **hidden))))


@operation("GET /projects", "Find", "Projects")
def list_projects(call: OperationCall) -> dict[str, Any]:
    """The projects and containers that the token is for."""
    items = [
        {"scope": scope, "name": name, "path": path, "default": scope == call.memory.scope}
        for scope, name, path in call.tools.projects.list_visible(call.caller)
    ]
    return {"items": items, "personal": call.caller.personal}


# Changing


@operation(
    "POST /memories",
    "Change",
    "Added",
    """
    memories+ objects ..1000     remembered together: all of them or, if one is wrong, none
    --personal                   follows its owner into every project
    --source NAME text ..1000    where they come from
    --dedup = null               whether what is much like something known is left out; a setting by default
    --force                      even if such a text was purged before
    """,
    memories=STATEMENT,
    status=201,
    meaning=True,
)
def add(call: OperationCall) -> dict[str, Any]:
    """Remembers statements in one transaction. What is private or looks like a secret is taken out first. Says which were known
    already. Where one replaces a memory, none of them is compared with what is known by meaning."""
    memory, asked = call.memory, call.asked
    passages = [
        make_passage(memory, statement, f"memories[{at}]")
        for at, statement in enumerate(asked.memories)
    ]
    receipt = memory.add_many(
        passages,
        personal=asked.personal,
        source=asked.source,
        dedup=asked.dedup,
        allow_purged=asked.force,
    )
    outcomes = [outcome.plain() for outcome in receipt.outcomes]
    return {"outcomes": outcomes, "added": receipt.added, "hints": receipt.hints}


@operation(
    "PATCH /memories/{id}",
    "Change",
    "Memory",
    f"""
    {VALUES}
    --valid-to TIME text ..60
    --answered = null
    --updated-at TIME            of the version that is to be changed, as it was read
    """,
    meaning=True,
)
def update(call: OperationCall) -> Memory:
    """Changes what is given; null empties a time or `answered`. The old version stays in the history. With `updated_at` nothing is
    changed if somebody else was quicker."""
    memory, id, now = call.memory, call.path["id"], call.memory.clock()
    given = {TIMES.get(name, name): value for name, value in call.given.items()}
    for name in ("project", "container"):
        given.pop(name, None)
    seen = given.pop("updated_at", None)
    empties = (*TIMES.values(), "answered")
    clear = [name for name, value in given.items() if value is None and name in empties]
    fields = {name: value for name, value in given.items() if value is not None}
    for name, read in (("expires_at", expiry), ("valid_from", moment), ("valid_to", moment)):
        if name in fields:
            fields[name] = read(fields[name], now)
    was = memory.one(id) if seen else None
    if was and iso(was.updated_at) != seen:
        raise Overtaken(
            f"The memory {id} changed since it was read.",
            "Read it again, and change what it says now.",
        )
    return memory.update(id, clear=clear, was=was, **fields)


@operation(
    "DELETE /memories/{id}",
    "Change",
    "Gone",
    "--purge     remove every trace, for good; the text is not taken in again",
)
def forget(call: OperationCall) -> dict[str, Any]:
    """Hides a memory from every search; `restore` brings it back. With `purge` it is gone for good, and with it what its conversation
    holds in the very same words."""
    memory, purge, id = call.memory, call.asked.purge, call.memory.resolve(call.path["id"])
    found = memory.store.get([id]) if purge else []
    known = traces(memory.store, found) if purge else Traces()
    hints = promotion.withdraw_rules(memory, [*found, *known.same]) if purge else []
    done = memory.forget(id, purge=purge)
    status = "proposed" if done.proposed else "purged" if purge else "forgotten"
    return {
        "id": id,
        "status": status,
        "also": [other for other in done.ids if other != id],
        "remains": [one.id for one in known.rest],
        "hints": [*hints, *done.hints],
    }


@operation(
    "POST /memories/{id}/restore",
    "Change",
    "Memory",
    "--version N whole 1..1000000     a version as the history numbers them",
    meaning=True,
)
def restore(call: OperationCall) -> Memory:
    """Brings back a memory that was forgotten or replaced, or an earlier version of its text."""
    return call.memory.restore(call.path["id"], call.asked.version)


@operation("POST /memories/{id}/votes", "Change", "Memory", "--value N number -100..100 = 1")
def vote(call: OperationCall) -> Memory:
    """Says that a memory was useful or, below zero, was not. Counts as a use of it."""
    return call.memory.vote(call.path["id"], call.asked.value)


@operation("POST /memories/{id}/relations", "Change", "Link", LINK, status=201)
def link(call: OperationCall) -> dict[str, Any]:
    """Relates a memory to another. `supersedes` ends the other's validity; `answers` marks a question as answered."""
    relation = call.memory.link(call.path["id"], call.asked.target, call.asked.type)
    return {**pick(relation, "source type target"), "status": "linked"}


@operation("DELETE /memories/{id}/relations", "Change", "Link", LINK)
def unlink(call: OperationCall) -> dict[str, Any]:
    """Takes a relation back, and what it had changed."""
    relation = call.memory.unlink(call.path["id"], call.asked.target, call.asked.type)
    return {**pick(relation, "source type target"), "status": "removed"}
