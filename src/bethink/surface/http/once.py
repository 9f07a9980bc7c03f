"""Requests that are sent twice and done once, whichever server process they reach: the answer to an `Idempotency-Key` is kept in the
database and given again.

What a keyed request writes carries a key of its own made from the request's and from what it changes, which the store keeps in the same
transaction. So even where a process dies between its writes and the answer, what was written is not written again. The ids of what is
going to be added are noted before it is: whoever sends the request again then reads that it was added, as the first answer said or
would have said, and not that it was known already.
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from bethink.store.base import Store
from bethink.store.bundle import Bundle, stamp
from bethink.surface.http.problems import Refusal
from bethink.types import Batch, Receipt

if TYPE_CHECKING:
    from bethink.surface.http.operation import Call, Reply

LONGEST_KEY = 200
HEADER = "idempotency-key"
ANSWER, ADDING = "answer:", "answer:adding:"  # before a key, among the facts about the database


class Guarded:
    """A store whose writes are done once for each key."""

    def __init__(self, store: Store, key: str) -> None:
        self._store, self._key = store, key

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, batch: Batch) -> Receipt:
        if batch == Batch(at=batch.at, actor=batch.actor, access=batch.access):
            return self._store.write(batch)  # counting a use
        if batch.add:
            known = noted_ids(self._store, self._key) + [entry.memory.id for entry in batch.add]
            self._store.take(
                Bundle(),
                note=(ADDING + self._key, json.dumps({"at": stamp(batch.at), "ids": known})),
            )
        return self._store.write(batch._replace(once=f"{self._key}:{_changed(batch)}"))


def noted_ids(store: Store, key: str) -> list[str]:
    """The memories that earlier attempts under a key added, or were about to."""
    kept = store.noted(ADDING + key)
    return list(json.loads(kept)["ids"]) if kept else []


def _changed(batch: Batch) -> str:
    """What a batch is about, the same when it is put together again later: new ids and the time do not count."""
    parts = [
        [[entry.memory.scope, entry.memory.content_hash] for entry in batch.add],
        [[change.id, change.action, sorted(change.fields)] for change in batch.change],
        [relation[:3] for relation in (*batch.relate, *batch.unrelate) if not batch.add],
        batch.purge,
        batch.retire,
        batch.vanish,
        batch.move,
        [[scope, source.uri, source.position] for scope, source in batch.sources],
        [id for id, _, _ in batch.place],
        []
        if batch.change
        else sorted(
            batch.vectors
        ),  # a changed text has them only where a model was there to make them
    ]
    return sha256(json.dumps(parts).encode()).hexdigest()[:16]


class Once:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[str] = set()

    def __call__(self, call: Call, request: bytes, work: Callable[[Call], Reply]) -> Reply:
        """The answer to a request: worked out now, or the one that its key got before."""
        key = call.headers.get(HEADER)
        if key is None:
            return work(call)
        if not 1 <= len(key) <= LONGEST_KEY:
            raise Refusal(
                400,
                f"An Idempotency-Key has 1 to {LONGEST_KEY} characters.",
                "A random UUID is a good one.",
            )
        name = sha256(f"{call.caller.id}\0{key}".encode()).hexdigest()[:32]
        with self._lock:
            if name in self._running:
                raise Refusal(
                    409,
                    "The same request is being worked on.",
                    "Wait for its answer, or ask again in a moment.",
                )
            self._running.add(name)
        try:
            return self._answered(call, name, sha256(request).hexdigest(), work)
        finally:
            with self._lock:
                self._running.discard(name)

    def _answered(self, call: Call, name: str, asked: str, work: Callable[[Call], Reply]) -> Reply:
        from bethink.surface.http.operation import Reply

        store = call.memory.store
        if kept := store.noted(ANSWER + name):
            found = json.loads(kept)
            if found["asked"] != asked:
                raise Refusal(
                    422,
                    "This Idempotency-Key was sent with another request before.",
                    "Take a new key for a new request.",
                )
            return Reply(found["value"], found["status"], found["headers"])
        memory = copy.copy(call.memory)
        memory.added_before = frozenset(noted_ids(store, name))
        memory.store = cast(Store, Guarded(store, name))
        reply = work(call._replace(memory=memory))
        self._keep(store, name, asked, stamp(memory.clock()), reply)
        return reply

    def _keep(self, store: Store, name: str, asked: str, at: int | None, reply: Reply) -> None:
        answer = {"at": at, "asked": asked, **reply._asdict(), "headers": dict(reply.headers)}
        store.take(Bundle(), note=(ANSWER + name, json.dumps(answer)))
