"""What one operation of the API is: an address, what it takes, what it gives, who may ask, and the function that does it.

A function becomes an operation by the decorator `operation`; `OPERATIONS` is then the whole API, from which `api` makes
routes and their description. Here are also the two things that several operations share: pages that lead on by a cursor,
and requests that are sent twice and done once.
"""

from __future__ import annotations

import base64
import copy
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

from pydantic import BaseModel

from bethink.recall.shape import iso, plain
from bethink.store.base import Store
from bethink.store.bundle import Bundle, stamp
from bethink.surface.http.problems import Refusal
from bethink.surface.http.projects import Projects, View, only_counts
from bethink.surface.http.schemas import Where
from bethink.types import NOTHING, Batch, Memory, Receipt

if TYPE_CHECKING:
    from bethink.surface.http.background import Checkup, Jobs
    from bethink.surface.http.metrics import Metrics
    from bethink.surface.http.security import Caller
    from bethink.surface.http.tokens import Register


class Tools(NamedTuple):
    """What operations share besides the memory."""

    projects: Projects
    jobs: Jobs
    once: Once
    metrics: Metrics
    checkup: Checkup
    tokens: Register


class Call(NamedTuple):
    """One request, checked."""

    memory: View
    caller: Caller
    tools: Tools
    path: Mapping[str, str]
    query: Any
    body: Any = None
    headers: Mapping[str, str] = NOTHING
    raw: bytes = b""


class Reply(NamedTuple):
    value: Any  # whatever `to_json` takes
    status: int = 200
    headers: Mapping[str, str] = NOTHING


class Lines(NamedTuple):
    """An answer of any length: a JSON object on each line."""

    values: Iterator[Any]


def to_json(value: Any) -> Any:
    """A value as JSON has it: memories and hits in their one form, named tuples as objects, times as text."""
    if isinstance(value, Memory):
        return plain(value)
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return to_json(value._asdict())
    if isinstance(value, Mapping):
        return {str(name): to_json(one) for name, one in value.items()}
    return [to_json(one) for one in value] if isinstance(value, list | tuple) else value


Run = Callable[[Call], Any]
AnyRun = TypeVar("AnyRun", bound=Run)


class Operation(NamedTuple):
    group: str
    method: str
    path: str  # below /api/v1
    run: Run  # its docstring describes the operation; in a thread
    answer: str  # the shape in answers.yaml; "" for lines of JSON
    query: type[BaseModel]
    body: type[BaseModel] | None
    scope: str  # read or write
    status: int
    meaning: bool  # whether the embedding model is waited for
    also: tuple[int, ...]  # other statuses than the usual ones


OPERATIONS: list[Operation] = []


def operation(
    group: str,
    method: str,
    path: str,
    answer: str,
    query: type[BaseModel] = Where,
    body: type[BaseModel] | None = None,
    *,
    scope: str = "read",
    status: int = 200,
    meaning: bool = False,
    also: tuple[int, ...] = (),
) -> Callable[[AnyRun], AnyRun]:
    """Makes a function an operation of the API."""

    def register(run: AnyRun) -> AnyRun:
        OPERATIONS.append(
            Operation(group, method, path, run, answer, query, body, scope, status, meaning, also)
        )
        return run

    return register


# Pages

FURTHEST = 1_000_000_000
OVERLAP = 100  # places by which what was last seen may have moved while somebody pages; set by hand


class HasId(Protocol):
    @property
    def id(self) -> str: ...


Item = TypeVar("Item", bound=HasId)


class Cursor(NamedTuple):
    """Where a page ends. It gives nobody anything they could not ask for anyway, so it is checked and not signed."""

    at: int = 0  # how many came before
    last: str = ""  # id of the last of them
    seed: int | None = None


def _fingerprint(call: Call, asked: BaseModel) -> str:
    """What a question is known by: everything in it but the page that is asked for."""
    question = [asked.model_dump(exclude={"cursor", "limit"}), call.memory.scopes, dict(call.path)]
    text = json.dumps(question, sort_keys=True, default=str)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def write_cursor(cursor: Cursor, call: Call, asked: BaseModel) -> str:
    value = json.dumps([*cursor, _fingerprint(call, asked)], separators=(",", ":"))
    return base64.urlsafe_b64encode(value.encode()).decode().rstrip("=")


def read_cursor(call: Call, asked: Any) -> Cursor:
    """The cursor of a request; the beginning where there is none. It holds for the question it came from and no other."""
    text = asked.cursor
    if text is None:
        return Cursor()
    try:
        padded = text + "=" * (-len(text) % 4)
        at, last, seed, question = json.loads(base64.b64decode(padded, b"-_", validate=True))
        sound = type(at) is int and 0 <= at <= FURTHEST and type(last) is str
        sound = sound and (seed is None or type(seed) is int)
    except (ValueError, TypeError, RecursionError):
        sound = False
    if not sound:
        hint = "Take `next` of the page before, or leave it out to begin."
        raise Refusal(400, "This is no cursor.", hint)
    if question != _fingerprint(call, asked):
        hint = "Keep all parameters but the limit, or leave the cursor out."
        raise Refusal(400, "This cursor belongs to another question.", hint)
    return Cursor(at, last, seed)


def read_page(
    call: Call, asked: Any, fetch: Callable[[int, int], Sequence[Item]]
) -> tuple[Sequence[Item], str | None]:
    """A page of what `fetch(number, offset)` gives, and the cursor of the next. Where the item that was seen last stands
    elsewhere by now, the page begins behind it: nothing is passed over because something before it was forgotten or added."""
    cursor, limit = read_cursor(call, asked), asked.limit
    start = max(0, cursor.at - OVERLAP)
    number = cursor.at - start + limit + 1
    found = fetch(number, start)
    ids = [one.id for one in found]
    begin = ids.index(cursor.last) + 1 if cursor.last in ids else cursor.at - start
    shown = found[begin : begin + limit]
    more = begin + limit < len(found) or (len(shown) < limit and len(found) == number)
    if not shown or not more:
        return shown, None
    following = Cursor(start + begin + len(shown), shown[-1].id, cursor.seed)
    return shown, write_cursor(following, call, asked)


# Requests that are sent twice and done once

LONGEST_KEY = 200
HEADER = "idempotency-key"
ANSWER, ADDING = "answer:", "answer:adding:"  # before a key, among the facts about the database


class Once:
    """Does a request with an `Idempotency-Key` once, whichever server process it reaches: its answer is kept in the database
    and given again.

    What it writes carries a key of its own, made from the request's and from what it changes, which the store keeps in the
    same transaction. So even where a process dies between its writes and the answer, what was written is not written again.
    The ids of what is going to be added are noted before it is: whoever sends the request again then reads that it was added,
    as the first answer said or would have said, and not that it was known already.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[str] = set()

    def __call__(self, call: Call, request: bytes, work: Callable[[Call], Reply]) -> Reply:
        """The answer to a request: worked out now, or the one that its key got before."""
        key = call.headers.get(HEADER)
        if key is None:
            return work(call)
        if not 1 <= len(key) <= LONGEST_KEY:
            message = f"An Idempotency-Key has 1 to {LONGEST_KEY} characters."
            raise Refusal(400, message, "A random UUID is a good one.")
        name = sha256(f"{call.caller.id}\0{key}".encode()).hexdigest()[:32]
        with self._lock:
            if name in self._running:
                hint = "Wait for its answer, or ask again in a moment."
                raise Refusal(409, "The same request is being worked on.", hint)
            self._running.add(name)
        try:
            return self._answer(call, name, sha256(request).hexdigest(), work)
        finally:
            with self._lock:
                self._running.discard(name)

    def _answer(self, call: Call, name: str, asked: str, work: Callable[[Call], Reply]) -> Reply:
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
        memory.store = cast(Store, OnceStore(store, name))
        done = work(call._replace(memory=memory))
        reply = done._replace(value=to_json(done.value))
        self._keep(store, name, asked, stamp(memory.clock()), reply)
        return reply

    def _keep(self, store: Store, name: str, asked: str, at: int | None, reply: Reply) -> None:
        answer = {"at": at, "asked": asked, **reply._asdict(), "headers": dict(reply.headers)}
        store.take(Bundle(), note=(ANSWER + name, json.dumps(answer)))


class OnceStore:
    """A store whose writes are done once for each key."""

    def __init__(self, store: Store, key: str) -> None:
        self._store, self._key = store, key

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, batch: Batch) -> Receipt:
        if only_counts(batch):
            return self._store.write(batch)
        if batch.add:
            ids = noted_ids(self._store, self._key) + [entry.memory.id for entry in batch.add]
            note = json.dumps({"at": stamp(batch.at), "ids": ids})
            self._store.take(Bundle(), note=(ADDING + self._key, note))
        return self._store.write(batch._replace(once=f"{self._key}:{_hash_changes(batch)}"))


def noted_ids(store: Store, key: str) -> list[str]:
    """The memories that earlier attempts under a key added, or were about to."""
    kept = store.noted(ADDING + key)
    return list(json.loads(kept)["ids"]) if kept else []


def _hash_changes(batch: Batch) -> str:
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
        # A changed text has vectors only where a model was there to make them.
        [] if batch.change else sorted(batch.vectors),
    ]
    return sha256(json.dumps(parts).encode()).hexdigest()[:16]
