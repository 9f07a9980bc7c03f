"""The operations, and what is made of them: routes that read a request, run the operation in a thread and write the answer; and
their description (OpenAPI 3.1).

A function becomes an operation by the decorator `operation`, which says what it takes (in the language of `surface/arguments.py`),
what it gives (a shape of answers.yaml) and who may ask; its address is in the table of `surface`. Nothing here knows what an operation does.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import yaml
from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Message, Receive

from bethink import __version__, surface
from bethink.errors import InvalidInput, NotFound
from bethink.recall.shape import to_json
from bethink.store.base import Store
from bethink.store.rows import stamp
from bethink.store.transfer import Bundle
from bethink.surface.arguments import (
    Argument,
    check_arguments,
    make_asked,
    object_schema,
    parse_arguments,
    parse_value,
    value_schema,
)
from bethink.surface.http.projects import ACCESS, Access, Json, Projects, View, only_counts
from bethink.surface.http.security import (
    TITLES,
    Caller,
    Refusal,
    Tokens,
    as_refusal,
    refuse_write,
)
from bethink.text import replace_broken
from bethink.types import KINDS, NOTHING, RELATIONS, TRUST, Batch, Receipt

if TYPE_CHECKING:
    from bethink.surface.http.app import Checkup

BASE = "/api/v1"
LONGEST_ID = 200
LARGEST_BODY = 8 * 1024 * 1024
BODY_WITHIN = 30.0  # seconds for a body to arrive
LINES_AT_ONCE = 100
JSON, JSON_LINES, PROBLEM = (
    "application/json",
    "application/x-ndjson",
    "application/problem+json",
)
# What every operation takes in its address.
WHERE = """
--project NAME text ..1000     a project by name or scope; by default the token's or the server's own
--container NAME text 1..200   a named container inside the project
"""


class Tools(NamedTuple):
    """What operations share besides the memory."""

    projects: Projects
    checkup: Checkup
    tokens: Tokens


class Lines(NamedTuple):
    """An answer of any length: a JSON object on each line."""

    values: Iterator[Any]


Run = Callable[[View, Any], Any]
AnyRun = TypeVar("AnyRun", bound=Run)


class Operation(NamedTuple):
    method: str
    path: str  # below /api/v1
    group: str
    run: Run  # gets the memory as its caller sees it, and what was asked; its docstring describes the operation; in a thread
    answer: str  # the shape in answers.yaml; "" for lines of JSON
    query: tuple[Argument, ...]
    body: tuple[Argument, ...] | None
    writes: bool
    status: int  # of an answer
    meaning: bool  # whether the embedding model is waited for


OPERATIONS: list[Operation] = []


def operation(
    name: str,
    answer: str,
    takes: str = "",
    *,
    where: str = "",
    writes: bool | None = None,
    status: int = 200,
    meaning: bool = False,
    **inner: str,
) -> Callable[[AnyRun], AnyRun]:
    """Makes a function the operation of that name, which has its address in the table of `surface`. What it takes is in the body of a POST or PATCH, else in the
    address; `where` is in the address in any case. Whatever is no GET needs a token for writing, unless `writes` says otherwise."""
    group, _, address, *_ = surface.OPERATIONS[name]
    method, path = address.split()
    has_body = method in ("POST", "PATCH") and bool(takes)
    query = parse_arguments(WHERE + where + ("" if has_body else takes))
    body = parse_arguments(takes, **inner) if has_body else None
    changes = method != "GET" if writes is None else writes

    def register(run: AnyRun) -> AnyRun:
        OPERATIONS.append(
            Operation(method, path, group, run, answer, query, body, changes, status, meaning)
        )
        return run

    return register


def perform(
    operation: Operation,
    caller: Caller,
    tools: Tools,
    path: Mapping[str, str],
    query: Mapping[str, Any],
    body: Any = NOTHING,
    key: str | None = None,
) -> Any:
    """What an operation answers to a caller, over REST or on a page: a JSON value or lines of them."""
    if operation.writes and not caller.may_write:
        raise refuse_write()
    if any(len(value) > LONGEST_ID for value in path.values()):
        raise NotFound("There is no memory with so long an id.")
    given = check_arguments(query, operation.query)
    if operation.body is not None:
        given |= check_arguments(body, operation.body)
        given |= {name: None for name, value in body.items() if value is None}
    asked = make_asked(given, (*operation.query, *(operation.body or ())), **path)
    if given.get("hyde") and not caller.may_write:
        raise refuse_write()  # a language model costs its owner something
    access = Access(caller, asked.project, asked.container)
    ACCESS.set(access)
    actor = "user" if caller.owner else f"token:{caller.name}"
    trust = TRUST["user" if caller.owner else "agent"]
    memory = tools.projects.view(access, actor, trust, operation.meaning)
    memory.tools = tools
    if operation.writes and key is not None:
        return answer_once(memory, operation.run, asked, [path, given], key)
    found = operation.run(memory, asked)
    return found if isinstance(found, Lines) else to_json(found)


# Routes


def routes(tools: Tools) -> list[Route]:
    """One route per address. Those with a fixed word come before those with an id in its place."""
    paths: dict[str, dict[str, Operation]] = {}
    for one in sorted(OPERATIONS, key=lambda one: one.path.count("{")):
        paths.setdefault(one.path, {})[one.method] = one
    return [_route(path, operations, tools) for path, operations in paths.items()]


def _route(path: str, operations: dict[str, Operation], tools: Tools) -> Route:
    async def endpoint(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await _answer(request, operations[method], tools)

    return Route(BASE + path, endpoint, methods=list(operations))


async def _answer(request: Request, operation: Operation, tools: Tools) -> Response:
    raw = b""
    if operation.body is not None:
        check_json(request.headers)
        raw = await request.body()

    def work() -> bytes | Iterator[Any]:
        caller, key = request.scope["bethink.caller"], request.headers.get("idempotency-key")
        query = _read_query(request, operation.query)
        path = dict(request.path_params)
        found = perform(operation, caller, tools, path, query, _read_json(raw), key)
        return found.values if isinstance(found, Lines) else _encode(found)

    content = await tools.projects.run(work)
    if isinstance(content, bytes):
        return Response(content, operation.status, media_type=JSON)
    return StreamingResponse(stream(content, tools.projects.run), media_type=JSON_LINES)


def respond(error: Exception) -> Response:
    """The answer to a request that failed."""
    told = as_refusal(error)
    value = {
        "title": TITLES.get(told.status, TITLES[400]),
        "status": told.status,
        "detail": replace_broken(told.message),
        "hint": replace_broken(told.hint or ""),
    }
    return Response(_encode(value), told.status, told.headers, PROBLEM)


def receive_whole(receive: Receive, headers: Headers) -> Receive:
    """Receives a body at once, when it is asked for."""
    is_read = False

    async def receive_body() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        body = await _read_body(receive, headers)
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_body


async def _read_body(receive: Receive, headers: Headers) -> bytes:
    """The whole body, if it is not too large and does not take too long."""
    parts = bytearray()
    size, more = int(headers.get("content-length", 0)), True
    try:
        async with asyncio.timeout(BODY_WITHIN):
            while more and size <= LARGEST_BODY:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refusal(400, "The request ended before its body did.")
                parts += message.get("body", b"")
                size, more = max(size, len(parts)), message.get("more_body", False)
    except TimeoutError:
        raise Refusal(
            408, f"The body did not arrive within {BODY_WITHIN:g} seconds.", "Send it again."
        ) from None
    if size > LARGEST_BODY:
        raise Refusal(
            413,
            f"The body is larger than {LARGEST_BODY >> 20} MB.",
            "Split it over several requests.",
            {"Connection": "close"},
        )
    return bytes(parts)


def check_json(headers: Headers) -> None:
    """A body has to say that it is JSON: what a page of another site can post without being asked never does."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise Refusal(415, "The body has to be JSON.", f"Send `Content-Type: {JSON}`.")


def _read_json(raw: bytes) -> Any:
    try:
        return from_json(raw or b"{}")
    except ValueError as error:
        raise Refusal(
            400, f"The body is no JSON: {error}.", "Send a JSON object in UTF-8."
        ) from error


def _read_query(request: Request, arguments: Sequence[Argument]) -> Json:
    """The parameters of the address. One that may be repeated is a list; any other that is repeated is wrong."""
    known = {argument.name: argument for argument in arguments}
    given: Json = {}
    for name in request.query_params:
        values: list[Any] = request.query_params.getlist(name)
        if argument := known.get(name):
            values = [parse_value(text, argument) for text in values]
            if argument.many != "*" and len(values) > 1:
                raise InvalidInput(f"'{name}' is given {len(values)} times.", "Give it once.")
        given[name] = values if argument and argument.many == "*" else values[0]
    return given


def _encode(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


async def stream(
    values: Iterator[Any], run: Callable[..., Awaitable[bytes]]
) -> AsyncIterator[bytes]:
    def encode_some() -> bytes:
        return b"".join(_encode(value) + b"\n" for value in islice(values, LINES_AT_ONCE))

    while lines := await run(encode_some):
        yield lines


# Pages

PAGE = """
--offset N whole 0..1000000000 = 0     `next` of the page before
--limit N whole 1..100"""


def next_page(asked: Any, shown: Sequence[Any], total: int) -> int | None:
    """Where the page after one that is shown begins, if there is one."""
    at = asked.offset + len(shown)
    return at if shown and at < total else None


# Requests that are sent twice and done once

ANSWER = "answer:"  # before a key, among the facts about the database


def answer_once(memory: View, run: Run, asked: Any, request: list[Any], key: str) -> Any:
    """The answer to a request with an `Idempotency-Key`: worked out now, or the one that its key got before, whichever server
    process it reached. It is kept in the database.

    What the request writes carries a key of its own, made from the request's and from what it changes, which the store keeps in
    the same transaction. So even where a process dies between its writes and the answer, what was written is not written again.
    """
    name = ANSWER + sha256(f"{memory.caller.id}\0{key}".encode()).hexdigest()[:32]
    sent, store = json.dumps([memory.scope, *request], sort_keys=True), memory.store
    hash = sha256(sent.encode()).hexdigest()
    if kept := store.read_note(name):
        found = json.loads(kept)
        if found["asked"] != hash:
            raise Refusal(
                422,
                "This Idempotency-Key was sent with another request before.",
                "Take a new key for a new request.",
            )
        return found["value"]
    memory.store = cast(Store, OnceStore(store, name))
    value = to_json(run(memory, asked))
    answer = {"at": stamp(memory.clock()), "asked": hash, "value": value}
    store.take(Bundle(), note=(name, json.dumps(answer)))
    return value


class OnceStore:
    """A store whose writes are done once for each key."""

    def __init__(self, store: Store, key: str) -> None:
        self._store, self._key = store, key

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, batch: Batch) -> Receipt:
        if only_counts(batch):
            return self._store.write(batch)
        return self._store.write(batch._replace(once=f"{self._key}:{_hash_changes(batch)}"))


def _hash_changes(batch: Batch) -> str:
    """What a batch is about, the same when it is put together again later: new ids and the time do not count."""
    parts = [
        [[entry.memory.scope, entry.memory.content_hash] for entry in batch.add],
        [[change.id, change.action, sorted(change.fields)] for change in batch.change],
        [relation[:3] for relation in (*batch.relate, *batch.unrelate) if not batch.add],
        batch.purge,
        batch.retire,
        batch.vanish,
        [[scope, source.uri, source.position] for scope, source in batch.sources],
        # A changed text has vectors only where a model was there to make them.
        [] if batch.change else sorted(batch.vectors),
    ]
    return sha256(json.dumps(parts).encode()).hexdigest()[:16]


# The description

SHAPES = Path(__file__).with_name("answers.yaml")
ONCE = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "repeated with the same key, a request is done once",
    "schema": {"type": "string"},
}
ABOUT = (
    "Long-term memory for coding agents and the people who work with them. Agents use MCP at /mcp."
)
PLAIN_TYPES: dict[str, Json] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "num": {"type": "number"},
    "bool": {"type": "boolean"},
    "object": {"type": "object"},
    "any": {},
    "kind": {"type": "string", "enum": list(KINDS)},
    "relation": {"type": "string", "enum": list(RELATIONS)},
}


@cache
def describe() -> Json:
    """The API as OpenAPI has it."""
    paths: dict[str, Json] = {}
    for operation in OPERATIONS:
        paths.setdefault(BASE + operation.path, {})[operation.method.lower()] = _describe(operation)
    token = {"type": "http", "scheme": "bearer", "description": "`bethink token create` makes one."}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Bethink", "version": __version__, "description": ABOUT},
        "paths": paths,
        "components": {"schemas": _answer_shapes(), "securitySchemes": {"token": token}},
        "security": [{"token": []}],
    }


def _answer_shapes() -> Json:
    """The shapes of answers.yaml as JSON Schema."""
    shapes: Json = {}
    for head, fields in yaml.safe_load(SHAPES.read_text("utf-8")).items():
        name, _, parent = head.rstrip(")").partition("(")
        inherited = shapes[parent] if parent else {"properties": {}, "required": []}
        own = {field.rstrip("?"): _type_of(text) for field, text in fields.items()}
        required = [field for field in fields if not field.endswith("?")]
        shapes[name] = {
            "type": "object",
            "properties": {**inherited["properties"], **own},
            "required": [*inherited["required"], *required],
            "additionalProperties": False,
        }
    return shapes


def _type_of(text: str) -> Json:
    written, _, about = text.partition(" — ")
    if about:
        return {**_type_of(written), "description": about}
    if written.endswith("?"):
        return {"anyOf": [_type_of(written[:-1]), {"type": "null"}]}
    if written.endswith("[]"):
        return {"type": "array", "items": _type_of(written[:-2])}
    if written.endswith("{}"):
        return {"type": "object", "additionalProperties": _type_of(written[:-2])}
    if "|" in written:
        return {"type": "string", "enum": written.split("|")}
    return PLAIN_TYPES.get(written, {"$ref": f"#/components/schemas/{written}"})


def _describe(operation: Operation) -> Json:
    about = " ".join((operation.run.__doc__ or "").split())
    need = "writing" if operation.writes else "reading"
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    id = {"type": "string", "minLength": 1, "maxLength": 100}
    parameters = [{"name": name, "in": "path", "required": True, "schema": id} for name in names]
    parameters += [
        {
            "name": one.name,
            "in": "query",
            "required": one.is_required,
            "description": one.help,
            "schema": value_schema(one._replace(help=""), closed=True),
        }
        for one in operation.query
    ]
    media, shape = (JSON, operation.answer) if operation.answer else (JSON_LINES, "str")
    found: Json = {
        "operationId": operation.run.__name__,
        "summary": about.partition(". ")[0].rstrip("."),
        "description": f"{about} Needs a token for {need}.",
        "tags": [operation.group],
        "parameters": [*parameters, ONCE] if operation.writes else parameters,
        "responses": {
            str(operation.status): _content("Done", media, _type_of(shape)),
            "default": _content("A problem", PROBLEM, _type_of("Problem")),
        },
    }
    if operation.body is not None:
        body = object_schema(operation.body, closed=True)
        found["requestBody"] = {"required": True, "content": {JSON: {"schema": body}}}
    return found


def _content(about: str, media: str, schema: Json) -> Json:
    return {"description": about, "content": {media: {"schema": schema}}}
