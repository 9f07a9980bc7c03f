"""The operations that change memories: add, update, forget, restore, vote, link, documents and handoffs."""

from __future__ import annotations

from typing import Any

from bethink.api import Bethink
from bethink.errors import BethinkError, InvalidInput, NotFound, Overtaken
from bethink.features import handoffs, knowledge, promotion
from bethink.ingest.pipeline import clean
from bethink.ingest.traces import Traces, traces
from bethink.recall.shape import iso, plain
from bethink.surface.http import answers, schemas
from bethink.surface.http.operation import Call, Operation, Reply
from bethink.surface.http.problems import Refusal
from bethink.surface.http.reading import etag
from bethink.text.checks import as_entity
from bethink.text.when import expiry, moment
from bethink.types import Memory, Passage

TIMES = {"expires": "expires_at", "valid_from": "valid_from", "valid_to": "valid_to"}


def add(call: Call) -> Reply:
    """Remembers statements in one transaction. What is private or looks like a secret is taken out first. Says which were known
    already. With an `Idempotency-Key` a repeated request gets the first answer."""
    request = b"\0".join((call.memory.scope.encode(), call.raw))
    return call.tools.once(call, request, _add)


def _add(call: Call) -> Reply:
    memory, asked = call.memory, call.body
    passages = [_passage(memory, statement, at) for at, statement in enumerate(asked.memories)]
    dedup = False if any(passage.supersedes for passage in passages) else asked.dedup
    try:
        receipt = memory.add_many(
            passages,
            personal=asked.personal,
            source=asked.source,
            dedup=dedup,
            allow_purged=asked.force,
        )
    except InvalidInput as error:
        raise _at_fault(memory, passages, error) from error
    outcomes = [outcome.plain() for outcome in receipt.outcomes]
    value = {"outcomes": outcomes, "added": receipt.added, "hints": list(receipt.hints)}
    return Reply(value, 201 if receipt.added else 200)


def _passage(memory: Bethink, statement: schemas.Statement, at: int) -> Passage:
    try:
        now = memory.clock()
        return Passage(
            statement.content,
            kind=statement.kind,
            summary=statement.summary,
            importance=statement.importance,
            confidence=statement.confidence,
            tags=tuple(statement.tags),
            entities=tuple(as_entity(name) for name in statement.entities if name.strip()),
            expires_at=expiry(statement.expires, now) if statement.expires else None,
            valid_from=moment(statement.valid_from, now) if statement.valid_from else None,
            metadata=statement.metadata,
            supersedes=tuple(memory.resolve(id) for id in statement.supersedes),
        )
    except BethinkError as error:
        raise type(error)(
            f"memories[{at}]: {error.message} Nothing was stored.", error.hint
        ) from error


def _at_fault(memory: Bethink, passages: list[Passage], error: InvalidInput) -> InvalidInput:
    """The error with the place of the statement that it is about."""
    for at, passage in enumerate(passages):
        try:
            clean(passage, memory.config.max_characters)
        except InvalidInput as found:
            return InvalidInput(f"memories[{at}]: {found.message} Nothing was stored.", found.hint)
    return error


def update(call: Call) -> Reply:
    """Changes what is given. With `If-Match` only if the memory is still the version of that ETag."""
    memory, asked = call.memory, call.body
    given = {name: getattr(asked, name) for name in asked.model_fields_set}
    clear = [
        TIMES.get(name, name)
        for name, value in given.items()
        if value is None and name in (*TIMES, "answered")
    ]
    now = memory.clock()
    fields = {TIMES.get(name, name): value for name, value in given.items() if value is not None}
    for name, read in (("expires_at", expiry), ("valid_from", moment), ("valid_to", moment)):
        if name in fields:
            fields[name] = read(fields[name], now)
    wanted = call.headers.get("if-match")
    was = (
        _unchanged(memory, call.path["id"], wanted) if wanted else None
    )  # the store looks once more, for all servers
    try:
        changed = memory.update(call.path["id"], clear=clear, was=was, **fields)
    except Overtaken as error:
        raise Refusal(
            412, error.message, error.hint, {"ETag": etag(memory.one(call.path["id"]))}
        ) from error
    return Reply(plain(changed), headers={"ETag": etag(changed)})


def _unchanged(memory: Bethink, id: str, wanted: str) -> Memory:
    """The memory that is going to be changed, if it is the version that was meant."""
    found = memory.one(id)
    current = etag(found)
    if wanted.strip() != "*" and current not in [part.strip() for part in wanted.split(",")]:
        raise Refusal(
            412,
            f"The memory {id} changed since it was read.",
            "Read it again, and change what it says now.",
            {"ETag": current},
        )
    return found


def forget(call: Call) -> dict[str, Any]:
    """Hides a memory from every search; `restore` brings it back. With `purge` it is gone for good, and with it what its conversation
    holds in the very same words."""
    done = _forgotten(call, [call.path["id"]], call.query.purge)
    return {**done.pop("items")[0], **done}


def forget_many(call: Call) -> dict[str, Any]:
    """Hides memories, or with `purge` removes every trace of them."""
    return _forgotten(call, call.body.ids, call.body.purge)


def _forgotten(call: Call, ids: list[str], purge: bool) -> dict[str, Any]:
    memory = call.memory
    full = list(dict.fromkeys(memory.resolve(id) for id in ids))
    found = memory.store.get(full) if purge else []
    known = traces(memory.store, found) if purge else Traces()
    hints = promotion.withdraw_rules(memory, [*found, *known.same]) if purge else []
    done = memory.forget(*full, purge=purge)
    ended = [{"id": id, "status": "purged" if purge else "forgotten"} for id in done.ids]
    remains = [one.id for one in known.rest]
    optional = {"remains": remains, "hints": [*hints, *done.hints]}
    return {"items": ended, **{name: value for name, value in optional.items() if value}}


def restore(call: Call) -> Reply:
    """Brings back a memory that was forgotten or replaced, or an earlier version of its text."""
    restored = call.memory.restore(call.path["id"], call.body.version)
    return Reply(plain(restored), headers={"ETag": etag(restored)})


def vote(call: Call) -> dict[str, Any]:
    """Says that a memory was useful or, below zero, was not. Counts as a use of it."""
    return plain(call.memory.vote(call.path["id"], call.body.value))


def link(call: Call) -> Reply:
    """Relates a memory to another. `supersedes` ends the other's validity; `answers` marks a question as answered."""
    relation = call.memory.link(call.path["id"], call.body.target, call.body.type)
    return Reply(
        {
            "source": relation.source,
            "type": relation.type,
            "target": relation.target,
            "status": "linked",
        },
        201,
    )


def unlink(call: Call) -> dict[str, Any]:
    """Takes a relation back, and what it had changed."""
    relation = call.memory.unlink(call.path["id"], call.query.target, call.query.type)
    return {
        "source": relation.source,
        "type": relation.type,
        "target": relation.target,
        "status": "removed",
    }


def take_documents(call: Call) -> dict[str, Any]:
    """Takes in Markdown documents, cut into passages that cite their lines. A document under a known path is replaced, and only its
    changed passages are embedded."""
    given = {document.path: document.content for document in call.body.documents}
    if len(given) < len(call.body.documents):
        raise InvalidInput(
            "Two of the documents have the same path.", "Give each document a path of its own."
        )
    synced = knowledge.import_texts(call.memory, given)
    return {
        "added": list(synced.added),
        "changed": list(synced.changed),
        "unchanged": synced.unchanged,
        "skipped": [{"path": uri, "reason": reason} for uri, reason in synced.skipped],
        "memories_added": synced.memories_added,
        "memories_kept": synced.memories_kept,
        "memories_retired": synced.memories_retired,
        "hints": list(synced.hints),
    }


def show_handoff(call: Call) -> dict[str, Any]:
    """The newest handoff of a branch, or of any where that has none."""
    found = handoffs.latest(call.memory, call.query.part, call.query.branch)
    if found is None:
        raise NotFound(
            "There is no handoff for this project yet.", "POST /api/v1/handoff leaves one."
        )
    told = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in found.handoff._asdict().items()
    }
    return {
        "id": found.memory.id,
        "created_at": iso(found.memory.created_at),
        **told,
        "exact": found.exact,
        "content": found.memory.content,
    }


def save_handoff(call: Call) -> dict[str, Any]:
    """Leaves word for whoever works here next, in place of the branch's last handoff."""
    given = call.body.model_dump()
    given["project"] = given.pop("part")
    saved = handoffs.save(call.memory, handoffs.from_fields(given))
    stored = handoffs.read(saved.memory)
    return {
        "id": saved.memory.id,
        "status": "saved" if saved.new else "unchanged",
        "supersedes": list(saved.supersedes),
        "project": stored.project,
        "branch": stored.branch,
    }


OPERATIONS = (
    Operation(
        "POST",
        "/memories",
        add,
        answers.Added,
        body=schemas.Add,
        scope="write",
        group="Change",
        status=201,
        meaning=True,
        also=(200, 404, 409, 503),
    ),
    Operation(
        "PATCH",
        "/memories/{id}",
        update,
        answers.Memory,
        body=schemas.Update,
        scope="write",
        group="Change",
        meaning=True,
        also=(404, 409, 412),
    ),
    Operation(
        "DELETE",
        "/memories/{id}",
        forget,
        answers.Gone,
        schemas.Delete,
        scope="write",
        group="Change",
        also=(404, 409),
    ),
    Operation(
        "POST",
        "/memories/forget",
        forget_many,
        answers.Forgotten,
        body=schemas.Forget,
        scope="write",
        group="Change",
        also=(404, 409),
    ),
    Operation(
        "POST",
        "/memories/{id}/restore",
        restore,
        answers.Memory,
        body=schemas.Restore,
        scope="write",
        group="Change",
        meaning=True,
        also=(404, 409),
    ),
    Operation(
        "POST",
        "/memories/{id}/votes",
        vote,
        answers.Memory,
        body=schemas.Vote,
        scope="write",
        group="Change",
        also=(404, 409),
    ),
    Operation(
        "POST",
        "/memories/{id}/relations",
        link,
        answers.Link,
        body=schemas.NewLink,
        scope="write",
        group="Change",
        status=201,
        also=(404, 409),
    ),
    Operation(
        "DELETE",
        "/memories/{id}/relations",
        unlink,
        answers.Link,
        schemas.Unlink,
        scope="write",
        group="Change",
        also=(404, 409),
    ),
    Operation(
        "POST",
        "/documents",
        take_documents,
        answers.Taken,
        body=schemas.NewDocuments,
        scope="write",
        group="Change",
        meaning=True,
    ),
    Operation(
        "GET",
        "/handoff",
        show_handoff,
        answers.Handoff,
        schemas.HandoffPlace,
        group="Hand over",
        also=(404,),
    ),
    Operation(
        "POST",
        "/handoff",
        save_handoff,
        answers.SavedHandoff,
        body=schemas.NewHandoff,
        scope="write",
        group="Hand over",
        meaning=True,
        also=(404, 409),
    ),
)
