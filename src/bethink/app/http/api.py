"""The operations as routes, which read a request, run the operation in a thread and write the answer; and their description (OpenAPI 3.1).

The table of `surface` has the address of each operation and what it takes and gives, and the function of its name in `operations`
does it. Nothing here knows what an operation does.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import cache, partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import yaml
from pydantic import BaseModel, Field, create_model
from pydantic.json_schema import JsonSchemaMode, models_json_schema
from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Message, Receive

from bethink import __version__, app
from bethink.app.arguments import (
    Argument,
    check_arguments,
    make_asked,
    object_schema,
    parse_arguments,
    parse_value,
    read_section,
    value_schema,
)
from bethink.app.http import operations
from bethink.app.http.projects import Projects, View
from bethink.app.http.security import Caller, as_refusal, read_refusals, refuse
from bethink.errors import InvalidInput
from bethink.model import KINDS, RELATIONS, Batch, Json, Receipt, Values
from bethink.outgoing import clear_line, clear_value
from bethink.recall.shape import to_json
from bethink.store.base import Store
from bethink.store.rows import stamp
from bethink.store.transfer import Bundle

BASE = "/api/v1"
LARGEST_BODY = 8 * 1024 * 1024
BODY_WITHIN = 30.0  # seconds for a body to arrive
LINES_AT_ONCE = 100
JSON, JSON_LINES, PROBLEM = ("application/json", "application/x-ndjson", "application/problem+json")
# What every operation takes in its address.
WHERE = parse_arguments("<where>")

Run = Callable[[View, Any], Any]


class Operation(NamedTuple):
    method: str
    path: str  # below /api/v1
    group: str
    run: Run  # gets the memory as its caller sees it, and what was asked; its docstring describes the operation; in a thread
    takes: tuple[Argument, ...]
    gives: str  # the shape in answers.yaml, or lines of JSON
    # `meaning`: the embedding model is waited for; `created`: an answer has the status 201; `reads`: although it is no GET, it needs
    # no token for writing; `whole`: it carries memories between two databases, and the one that takes them in checks and redacts.
    flags: frozenset[str]

    @property
    def writes(self) -> bool:
        return self.method != "GET" and "reads" not in self.flags

    @property
    def status(self) -> int:
        return 201 if "created" in self.flags else 200

    def place(self, argument: Argument) -> str:
        """Where a request has an argument."""
        if f"{{{argument.name}}}" in self.path:
            return "path"
        has_body = self.method in ("POST", "PATCH") and argument not in WHERE
        return "body" if has_body else "query"

    @property
    def body(self) -> list[Argument]:
        return [one for one in self.takes if self.place(one) == "body"]


def _load_operation(name: str) -> Operation:
    group, _, address, *_ = app.OPERATIONS[name]
    (method, path), parts = address.split(), read_section(f"api {name}")
    word = name.replace("-", "_")  # Python has words of its own: `list_`
    run = getattr(operations, word, None) or getattr(operations, f"{word}_")
    takes = parse_arguments(f"<where>\n{parts['Takes']}", memories="<statement>")
    gives, *flags = parts["Gives"].split()
    return Operation(method, path, group, run, takes, gives, frozenset(flags))


OPERATIONS = {name: _load_operation(name) for name, row in app.OPERATIONS.items() if row[2] != "-"}


def perform(
    operation: Operation,
    caller: Caller,
    projects: Projects,
    given: Values,
    key: str | None = None,
) -> Any:
    """What an operation answers to a caller, over REST or on a page: a JSON value, or any number of them."""
    if operation.writes and not caller.may_write:
        raise refuse("read-only")
    checked = check_arguments(given, operation.takes)
    checked |= {name: None for name, value in given.items() if value is None}
    asked = make_asked(checked, operation.takes)
    if checked.get("hyde") and not caller.may_write:
        raise refuse("read-only")  # a language model costs its owner something
    memory = projects.view(
        caller, asked.project, asked.container, meaning="meaning" in operation.flags
    )
    if operation.writes and key is not None:
        return answer_once(memory, operation.run, asked, key)
    found = operation.run(memory, asked)
    return found if isinstance(found, Iterator) else to_json(found)


# Routes


def routes(projects: Projects) -> list[Route]:
    """One route per address."""
    paths: dict[str, dict[str, Operation]] = {}
    for one in OPERATIONS.values():
        paths.setdefault(one.path, {})[one.method] = one
    return [
        Route(BASE + path, partial(_answer, projects, methods), methods=list(methods))
        for path, methods in paths.items()
    ]


async def _answer(
    projects: Projects, methods: Mapping[str, Operation], request: Request
) -> Response:
    operation = methods["GET" if request.method == "HEAD" else request.method]
    raw = b""
    if operation.body:
        # What a page of another site can post without being asked never says that it is JSON.
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != JSON:
            raise refuse("no-json")
        raw = await request.body()

    def work() -> bytes | Iterator[Any]:
        given = _read_query(request, operation) | _read_json(raw) | request.path_params
        caller, key = request.scope["bethink.caller"], request.headers.get("idempotency-key")
        found = perform(operation, caller, projects, given, key)
        # A token may be an agent's. Only the owner, and a database that takes in copies, get text as it is stored.
        release = _keep if caller.owner or "whole" in operation.flags else clear_value
        return map(release, found) if isinstance(found, Iterator) else encode(release(found))

    content = await projects.run(work)
    if isinstance(content, bytes):
        return Response(content, operation.status, media_type=JSON)
    return StreamingResponse(stream(content, projects.run), media_type=JSON_LINES)


def _keep(value: Any) -> Any:
    return value


def respond(error: Exception) -> Response:
    """The answer to a request that failed."""
    told = as_refusal(error)
    value = {
        "title": read_refusals()["titles"].get(str(told.status), "Not possible"),
        "status": told.status,
        "detail": clear_line(told.message),
        "hint": clear_line(told.hint or ""),
    }
    return Response(encode(value), told.status, told.headers, PROBLEM)


def receive_whole(receive: Receive, headers: Headers) -> Receive:
    """Receives a body at once, when it is asked for, if it is not too large and does not take too long."""
    is_read = False

    async def receive_body() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        body, size, more = bytearray(), int(headers.get("content-length", 0)), True
        try:
            async with asyncio.timeout(BODY_WITHIN):
                while more and size <= LARGEST_BODY:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise refuse("cut-off")
                    body += message.get("body", b"")
                    size, more = max(size, len(body)), message.get("more_body", False)
        except TimeoutError:
            raise refuse("late-body", seconds=BODY_WITHIN) from None
        if size > LARGEST_BODY:
            raise refuse("large-body", megabytes=LARGEST_BODY >> 20)
        return {"type": "http.request", "body": bytes(body), "more_body": False}

    return receive_body


def _read_json(raw: bytes) -> Json:
    try:
        found = from_json(raw or b"{}")
    except ValueError as error:
        raise refuse("broken-json", error=error) from error
    if not isinstance(found, dict):
        raise InvalidInput("The body is no JSON object.", "Send a JSON object in UTF-8.")
    return found


def _read_query(request: Request, operation: Operation) -> Json:
    """The parameters of the address. One that may be repeated is a list; any other that is repeated is wrong."""
    known = {argument.name: argument for argument in operation.takes}
    given: Json = {}
    for name in request.query_params:
        argument, values = known.get(name), request.query_params.getlist(name)
        if argument and argument.many == "*":
            given[name] = values
        elif len(values) > 1:
            raise InvalidInput(f"'{name}' is given {len(values)} times.", "Give it once.")
        else:
            given[name] = parse_value(values[0], argument) if argument else values[0]
    return given


def encode(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


async def stream(
    values: Iterator[Any], run: Callable[..., Awaitable[bytes]]
) -> AsyncIterator[bytes]:
    """A JSON object on each line, any number of them."""

    def encode_some() -> bytes:
        return b"".join(encode(value) + b"\n" for value in islice(values, LINES_AT_ONCE))

    while lines := await run(encode_some):
        yield lines


# Requests that are sent twice and done once

ANSWER = "answer:"  # before a key, among the facts about the database


def answer_once(memory: View, run: Run, asked: Any, key: str) -> Any:
    """The answer to a request with an `Idempotency-Key`: worked out now, or the one that its key got before, whichever server
    process it reached. It is kept in the database.

    What the request writes carries a key of its own, made from the request's and from what it changes, which the store keeps in
    the same transaction. So even where a process dies between its writes and the answer, what was written is not written again.
    """
    name = ANSWER + sha256(f"{memory.caller.id}\0{key}".encode()).hexdigest()[:32]
    sent, store = json.dumps([memory.scope, asked.given], sort_keys=True), memory.writer
    hash = sha256(sent.encode()).hexdigest()
    if kept := store.read_note(name):
        found = json.loads(kept)
        if found["asked"] != hash:
            raise refuse("used-key")
        return found["value"]
    memory.store = cast(Store, OnceStore(store, name))
    value = to_json(run(memory, asked))
    answer = {"at": stamp(memory.clock()), "asked": hash, "value": value}
    store.take(Bundle(), note=(name, json.dumps(answer)))
    return value


class OnceStore:
    """A store whose writes are done once for each key. Everything else is the store's own."""

    def __init__(self, store: Store, key: str) -> None:
        self._store, self._key = store, key

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, batch: Batch) -> Receipt:
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
REFERENCE = "#/components/schemas/{shape}"
FRAME: Json = yaml.safe_load(SHAPES.with_name("openapi.yaml").read_text("utf-8"))


class Shape(BaseModel, extra="forbid"):
    """A shape of answers.yaml, which has no other fields than it says."""


@cache
def describe() -> Json:
    """The API as OpenAPI has it."""
    paths: dict[str, Json] = {}
    for operation in OPERATIONS.values():
        paths.setdefault(BASE + operation.path, {})[operation.method.lower()] = _describe(operation)
    found: Json = FRAME["whole"]
    found["info"]["version"] = __version__
    found["components"]["schemas"] = _answer_shapes()
    return {**found, "paths": paths}


def _answer_shapes() -> Json:
    """The shapes of answers.yaml as JSON Schema."""
    known: Json = {"Any": Any, "Literal": Literal, "Kind": Literal[KINDS]}
    known["RelationType"] = Literal[RELATIONS]
    shapes: list[tuple[type[BaseModel], JsonSchemaMode]] = []
    for head, fields in yaml.safe_load(SHAPES.read_text("utf-8")).items():
        name, _, parent = head.rstrip(")").partition("(")
        typed: Json = {}
        for field, text in fields.items():
            kind, _, about = text.partition(" — ")
            default = None if field.endswith("?") else ...
            typed[field.rstrip("?")] = (kind, Field(default, description=about or None))
        known[name] = create_model(name, __base__=known.get(parent, Shape), **typed)
        shapes.append((known[name], "validation"))
    for shape, _ in shapes:
        shape.model_rebuild(_types_namespace=known)
    _, found = models_json_schema(shapes, ref_template=REFERENCE.format(shape="{model}"))
    described: Json = found["$defs"]
    return described


def _describe(operation: Operation) -> Json:
    about = " ".join((operation.run.__doc__ or "").split())
    need = "writing" if operation.writes else "reading"
    parameters = [
        {
            "name": one.name,
            "in": place,
            "required": one.is_required,
            "description": one.help,
            "schema": value_schema(one._replace(help=""), closed=True),
        }
        for one in operation.takes
        if (place := operation.place(one)) != "body"
    ]
    media, shape = JSON_LINES, {"type": "string"}
    if operation.gives != "lines":
        media, shape = JSON, {"$ref": REFERENCE.format(shape=operation.gives)}
    found: Json = {
        "operationId": operation.run.__name__.strip("_"),
        "summary": about.partition(". ")[0].rstrip("."),
        "description": f"{about} Needs a token for {need}.",
        "tags": [operation.group],
        "parameters": [*parameters, FRAME["once"]] if operation.writes else parameters,
        "responses": {
            str(operation.status): {"description": "Done", "content": {media: {"schema": shape}}},
            "default": FRAME["problem"],
        },
    }
    if operation.body:
        body = object_schema(operation.body, closed=True)
        found["requestBody"] = {"required": True, "content": {JSON: {"schema": body}}}
    return found
