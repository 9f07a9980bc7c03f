"""Routes of the HTTP API and their description (OpenAPI 3.1), generated from the operations.

A route reads a request, checks it against the signature of its operation, runs the operation in a thread and writes its result. Nothing here
knows what an operation does.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import cache, partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast, get_origin

import yaml
from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Message, Receive

from bethink import __version__
from bethink.app.http.operations import ROUTES, HttpOperation
from bethink.app.http.projects import Projects, View
from bethink.app.http.security import Caller, as_refusal, read_refusals, refuse
from bethink.app.operation import (
    Arg,
    Parameter,
    bind,
    check_values,
    object_schema,
    parse_text,
    read_fields,
    value_schema,
)
from bethink.app.results import Problem, describe_results, describe_type, write_json
from bethink.errors import InvalidInput
from bethink.model import Batch, Json, Receipt, Values
from bethink.outgoing import clear_line, clear_value
from bethink.store.base import Store
from bethink.store.rows import stamp
from bethink.store.transfer import Bundle

BASE = "/api/v1"
LARGEST_BODY = 8 * 1024 * 1024
BODY_WITHIN = 30.0  # seconds for a body to arrive
LINES_AT_ONCE = 100
JSON, JSON_LINES, PROBLEM = ("application/json", "application/x-ndjson", "application/problem+json")


class Place(NamedTuple):
    """The project that a request is about: arguments of every operation, in the address."""

    project: Annotated[
        str | None,
        Arg("a project by name or scope; default: the token's, or the server's own", longest=1000),
    ] = None
    container: Annotated[str | None, Arg("a container of the project", longest=200)] = None


PLACE = read_fields(Place)


class Endpoint(NamedTuple):
    """An operation with the arguments that a request may have."""

    method: str
    path: str  # below /api/v1
    http: HttpOperation
    parameters: tuple[Parameter, ...]

    @property
    def name(self) -> str:
        return self.http.operation.name

    @property
    def takes(self) -> tuple[Parameter, ...]:
        return (*PLACE, *self.parameters)

    @property
    def traits(self) -> frozenset[str]:
        """`meaning`: wait for the embedding model. `created`: answer with status 201.

        `reads`: a POST that needs no token for writing. `whole`: memories travel between two databases; the receiver checks and redacts them.
        """
        return self.http.operation.traits

    @property
    def writes(self) -> bool:
        return self.method != "GET" and "reads" not in self.traits

    @property
    def status(self) -> int:
        return 201 if "created" in self.traits else 200

    def in_path(self, parameter: Parameter) -> str:
        """The name of a parameter in the path, or nothing."""
        return next((name for name in parameter.names if f"{{{name}}}" in self.path), "")

    @property
    def body(self) -> list[Parameter]:
        """Parameters that a request has in its body."""
        if self.method not in ("POST", "PATCH"):
            return []
        return [one for one in self.parameters if not self.in_path(one)]


def _make_endpoint(address: str, http: HttpOperation) -> Endpoint:
    method, path = address.split()
    return Endpoint(method, path, http, http.operation.parameters("http"))


ENDPOINTS = {
    endpoint.name: endpoint
    for endpoint in (_make_endpoint(address, http) for address, http in ROUTES.items())
}


def perform(
    endpoint: Endpoint,
    caller: Caller,
    projects: Projects,
    values: Values,
    key: str | None = None,
) -> Any:
    """Run an operation for a caller, over REST or on a page. Returns a JSON value, or an iterator of them."""
    if endpoint.writes and not caller.may_write:
        raise refuse("read-only")
    checked = check_values(values, endpoint.takes)
    if checked.get("hyde") and not caller.may_write:
        raise refuse("read-only")  # a language model costs its owner something
    memory = projects.view(
        caller,
        checked.get("project"),
        checked.get("container"),
        meaning="meaning" in endpoint.traits,
    )
    arguments = bind(endpoint.http.operation.function, endpoint.parameters, checked)

    def run() -> object:
        return endpoint.http.run(memory, arguments)

    if endpoint.writes and key is not None:
        return answer_once(memory, run, checked, key)
    found = run()
    return map(write_json, found) if isinstance(found, Iterator) else write_json(found)


# Routes


def routes(projects: Projects) -> list[Route]:
    """One route per address."""
    paths: dict[str, dict[str, Endpoint]] = {}
    for one in ENDPOINTS.values():
        paths.setdefault(one.path, {})[one.method] = one
    return [
        Route(BASE + path, partial(_answer, projects, methods), methods=list(methods))
        for path, methods in paths.items()
    ]


async def _answer(
    projects: Projects, methods: Mapping[str, Endpoint], request: Request
) -> Response:
    endpoint = methods["GET" if request.method == "HEAD" else request.method]
    raw = b""
    if endpoint.body:
        # A page of another site can post without asking, but not as JSON.
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != JSON:
            raise refuse("no-json")
        raw = await request.body()

    def work() -> bytes | Iterator[object]:
        values = _read_query(request, endpoint) | _read_json(raw) | _read_path(request, endpoint)
        caller, key = request.scope["bethink.caller"], request.headers.get("idempotency-key")
        found = perform(endpoint, caller, projects, values, key)
        # A token may be an agent's. Only the owner, and a database that receives copies, get text as it is stored.
        release = _keep if caller.owner or "whole" in endpoint.traits else clear_value
        return map(release, found) if isinstance(found, Iterator) else encode(release(found))

    content = await projects.run(work)
    if isinstance(content, bytes):
        return Response(content, endpoint.status, media_type=JSON)
    return StreamingResponse(stream(content, projects.run), media_type=JSON_LINES)


def _keep(value: object) -> object:
    return value


def respond(error: Exception) -> Response:
    """Return the response to a request that failed."""
    refusal = as_refusal(error)
    value = {
        "title": read_refusals()["titles"].get(str(refusal.status), "Error"),
        "status": refusal.status,
        "detail": clear_line(refusal.message),
        "hint": clear_line(refusal.hint or ""),
    }
    return Response(encode(value), refusal.status, refusal.headers, PROBLEM)


def receive_whole(receive: Receive, headers: Headers) -> Receive:
    """Receive a body in one piece when it is needed. Refuse one that is too large or too slow."""
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
        raise InvalidInput("The body is not a JSON object.", "Send a JSON object in UTF-8.")
    return found


def _read_path(request: Request, endpoint: Endpoint) -> Json:
    many = {name for one in endpoint.parameters if one.many for name in one.names}
    values = request.path_params.items()
    return {name: [value] if name in many else value for name, value in values}


def _read_query(request: Request, endpoint: Endpoint) -> Json:
    """Parameters of the address. A list may be repeated; anything else may not."""
    known = {name: parameter for parameter in endpoint.takes for name in parameter.names}
    found: Json = {}
    for name in request.query_params:
        parameter, values = known.get(name), request.query_params.getlist(name)
        if parameter and parameter.many:
            found[name] = values
        elif len(values) > 1:
            raise InvalidInput(f"'{name}' is given {len(values)} times.", "Give it once.")
        else:
            found[name] = parse_text(values[0], parameter) if parameter else values[0]
    return found


def encode(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


async def stream(
    values: Iterator[object], run: Callable[..., Awaitable[bytes]]
) -> AsyncIterator[bytes]:
    """Stream values as one JSON object per line."""

    def encode_some() -> bytes:
        return b"".join(encode(value) + b"\n" for value in islice(values, LINES_AT_ONCE))

    while lines := await run(encode_some):
        yield lines


# Requests that are sent twice and done once

ANSWER = "answer:"  # before a key, among the facts about the database


def answer_once(memory: View, run: Callable[[], object], values: Values, key: str) -> Any:
    """Run a request with an `Idempotency-Key` once: return the stored answer if it ran before.

    Each write of the request has a key too, made from the request's key and the changes, which the store keeps in the same transaction.
    So nothing is written twice, even if the process dies between the writes and the answer.
    """
    name = ANSWER + sha256(f"{memory.caller.id}\0{key}".encode()).hexdigest()[:32]
    sent, store = json.dumps([memory.scope, values], sort_keys=True, default=str), memory.writer
    hash = sha256(sent.encode()).hexdigest()
    if kept := store.read_note(name):
        found = json.loads(kept)
        if found["asked"] != hash:
            raise refuse("used-key")
        return found["value"]
    memory.store = cast(Store, OnceStore(store, name))
    value = write_json(run())
    answer = {"at": stamp(memory.clock()), "asked": hash, "value": value}
    store.take(Bundle(), note=(name, json.dumps(answer)))
    return value


class OnceStore:
    """A store whose writes run once per key. Everything else is passed on."""

    def __init__(self, store: Store, key: str) -> None:
        self._store, self._key = store, key

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, batch: Batch) -> Receipt:
        return self._store.write(batch._replace(once=f"{self._key}:{_hash_changes(batch)}"))


def _hash_changes(batch: Batch) -> str:
    """Hash the changes of a batch, without new ids and times, so that a repeat has the same hash."""
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

FRAME: Json = yaml.safe_load(Path(__file__).with_name("openapi.yaml").read_text("utf-8"))


@cache
def describe() -> Json:
    """Describe the API in OpenAPI's form."""
    paths: dict[str, Json] = {}
    for endpoint in ENDPOINTS.values():
        paths.setdefault(BASE + endpoint.path, {})[endpoint.method.lower()] = _describe(endpoint)
    found: Json = FRAME["whole"]
    found["info"]["version"] = __version__
    results = [one.http.returns for one in ENDPOINTS.values() if not returns_lines(one)]
    found["components"]["schemas"] = describe_results([*results, Problem])
    return {**found, "paths": paths}


def returns_lines(endpoint: Endpoint) -> bool:
    """True if the response is a JSON object per line."""
    return get_origin(endpoint.http.returns) is Iterator


def _describe(endpoint: Endpoint) -> Json:
    operation = endpoint.http.operation
    body = {one.name for one in endpoint.body}
    parameters = [
        _describe_parameter(endpoint, one) for one in endpoint.takes if one.name not in body
    ]
    media, shape = JSON_LINES, {"type": "string"}
    if not returns_lines(endpoint):
        media, shape = JSON, describe_type(endpoint.http.returns)
    need = "writing" if endpoint.writes else "reading"
    found: Json = {
        "operationId": endpoint.name.replace("-", "_"),
        "summary": operation.help,
        "description": f"{operation.description} Needs a token for {need}.",
        "tags": [operation.group],
        "parameters": [*parameters, FRAME["once"]] if endpoint.writes else parameters,
        "responses": {
            str(endpoint.status): {"description": "Done", "content": {media: {"schema": shape}}},
            "default": FRAME["problem"],
        },
    }
    if endpoint.body:
        schema = object_schema(endpoint.body, closed=True)
        found["requestBody"] = {"required": True, "content": {JSON: {"schema": schema}}}
    return found


def _describe_parameter(endpoint: Endpoint, parameter: Parameter) -> Json:
    in_path = endpoint.in_path(parameter)
    bare = parameter._replace(
        arg=parameter.arg._replace(help=""), many=parameter.many and not in_path
    )
    return {
        "name": in_path or parameter.name,
        "in": "path" if in_path else "query",
        "required": bool(in_path) or parameter.required,
        "description": parameter.arg.help,
        "schema": value_schema(bare, closed=True),
    }
