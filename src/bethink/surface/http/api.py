"""Operations → routes: reads a request, checks it against what the operation takes, runs it in a thread, writes the answer.

Nothing here knows what an operation does. The answer is made into JSON in the thread too, since it may be large.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import islice
from typing import Any

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from bethink.errors import NotFound
from bethink.surface.http import browsing, care, reading, team, writing
from bethink.surface.http.operation import Call, Lines, Operation, Reply, Tools
from bethink.surface.http.problems import response
from bethink.surface.http.projects import refused
from bethink.surface.http.security import ACCESS, Access, Caller, check_json, read_body
from bethink.types import TRUST

BASE = "/api/v1"
LONGEST_ID = 200
LINES_AT_ONCE = 100
JSON, JSON_LINES = "application/json", "application/x-ndjson"

OPERATIONS: tuple[Operation, ...] = (
    *reading.OPERATIONS,
    *writing.OPERATIONS,
    *care.OPERATIONS,
    *browsing.OPERATIONS,
    *team.OPERATIONS,
)


def routes(tools: Tools) -> list[Route]:
    """One route per address. Those with a fixed word come before those with an id in its place."""
    ordered = sorted(OPERATIONS, key=lambda operation: operation.path.count("{"))
    addresses = list(dict.fromkeys(operation.path for operation in ordered))
    return [
        _route(path, {one.method: one for one in ordered if one.path == path}, tools)
        for path in addresses
    ]


def _route(path: str, operations: dict[str, Operation], tools: Tools) -> Route:
    listed = {method: _list_fields(operation.query) for method, operation in operations.items()}

    async def endpoint(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        request.scope["bethink.route"] = BASE + path
        try:
            return await _answer(request, operations[method], listed[method], tools)
        except Exception as error:  # noqa: BLE001 - the boundary of the API: whatever fails is a problem with a sentence
            return response(error)

    return Route(BASE + path, endpoint, methods=list(operations))


def _list_fields(model: type[BaseModel]) -> frozenset[str]:
    properties = model.model_json_schema()["properties"]
    return frozenset(name for name, about in properties.items() if about.get("type") == "array")


async def _answer(
    request: Request, operation: Operation, lists: frozenset[str], tools: Tools
) -> Response:
    caller: Caller = request.scope["bethink.caller"]
    if operation.scope == "write" and not caller.may_write:
        raise refused()
    query: Any = _query(request, operation.query, lists)
    raw, body = b"", None
    if operation.body is not None:
        check_json(request.headers)
        raw = await read_body(request.receive, request.headers)
        body = operation.body.model_validate_json(raw or b"{}")
    path = {name: str(value) for name, value in request.path_params.items()}
    if any(len(value) > LONGEST_ID for value in path.values()):
        raise NotFound("There is no memory with so long an id.")
    access = Access(caller, query.project, query.container)
    ACCESS.set(access)

    def work() -> tuple[Any, int, dict[str, str]]:
        memory = tools.projects.view(
            access, _actor(caller), TRUST["user" if caller.owner else "agent"], operation.meaning
        )
        found = operation.run(Call(memory, caller, tools, path, query, body, request.headers, raw))
        if isinstance(found, Lines):
            return found.values, operation.status, {}
        reply = found if isinstance(found, Reply) else Reply(found, operation.status)
        return _encoded(reply.value), reply.status, dict(reply.headers)

    content, status, headers = await tools.projects.run(work)
    if isinstance(content, bytes):
        return Response(content, status, headers, JSON)
    return StreamingResponse(streamed(content, tools.projects.run), status, headers, JSON_LINES)


def _actor(caller: Caller) -> str:
    return "user" if caller.owner else f"token:{caller.name}"


def _query(request: Request, model: type[BaseModel], lists: frozenset[str]) -> BaseModel:
    """The parameters of the address. One that may be repeated is a list; any other that is repeated is wrong."""
    given: dict[str, Any] = {}
    for name in request.query_params:
        values = request.query_params.getlist(name)
        given[name] = values if name in lists or len(values) > 1 else values[0]
    return model.model_validate(given, strict=False)


def _encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


async def streamed(
    values: Iterator[Any], run: Callable[..., Awaitable[bytes]]
) -> AsyncIterator[bytes]:
    def part() -> bytes:
        return b"".join(_encoded(value) + b"\n" for value in islice(values, LINES_AT_ONCE))

    while lines := await run(part):
        yield lines
