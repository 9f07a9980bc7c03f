"""Operations → routes and their description (OpenAPI 3.1): reads a request, checks it against what the operation takes, runs it
in a thread, writes the answer.

Nothing here knows what an operation does. The answer is made into JSON in the thread too, since it may be large. The page that
shows the description is one file without anything from elsewhere: it works offline, and its policy lets nothing else run.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from bethink import __version__
from bethink.errors import NotFound
from bethink.surface.http import browsing, memories, team
from bethink.surface.http.operation import OPERATIONS, Call, Lines, Operation, Reply, Tools, to_json
from bethink.surface.http.problems import MEDIA_TYPE, TITLES, response
from bethink.surface.http.projects import refuse_write
from bethink.surface.http.security import ACCESS, Access, Caller, check_json, read_body
from bethink.types import KINDS, RELATIONS, TRUST

__all__ = ["OPERATIONS", "browsing", "describe", "memories", "routes", "team"]

BASE = "/api/v1"
LONGEST_ID = 200
LINES_AT_ONCE = 100
JSON, JSON_LINES = "application/json", "application/x-ndjson"


def routes(tools: Tools) -> list[Route]:
    """One route per address. Those with a fixed word come before those with an id in its place."""
    ordered = sorted(OPERATIONS, key=lambda operation: operation.path.count("{"))
    addresses = dict.fromkeys(operation.path for operation in ordered)
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
    check_scope(operation, caller)
    query: Any = _read_query(request, operation.query, lists)
    raw, body = b"", None
    if operation.body is not None:
        check_json(request.headers)
        raw = await read_body(request.receive, request.headers)
        body = operation.body.model_validate_json(raw or b"{}")
    path = {name: str(value) for name, value in request.path_params.items()}
    check_ids(path)

    def work() -> tuple[Any, int, dict[str, str]]:
        found = perform(operation, caller, tools, path, query, body, request.headers, raw)
        if isinstance(found, Lines):
            return found.values, operation.status, {}
        return _encode(found.value), found.status, dict(found.headers)

    content, status, headers = await tools.projects.run(work)
    if isinstance(content, bytes):
        return Response(content, status, headers, JSON)
    return StreamingResponse(stream(content, tools.projects.run), status, headers, JSON_LINES)


def perform(
    operation: Operation,
    caller: Caller,
    tools: Tools,
    path: Mapping[str, str],
    query: Any,
    body: Any,
    headers: Mapping[str, str],
    raw: bytes = b"",
) -> Reply | Lines:
    """Runs an operation for a caller, over REST or for a page."""
    access = Access(caller, query.project, query.container)
    ACCESS.set(access)
    actor = "user" if caller.owner else f"token:{caller.name}"
    trust = TRUST["user" if caller.owner else "agent"]
    memory = tools.projects.view(access, actor, trust, operation.meaning)
    found = operation.run(Call(memory, caller, tools, path, query, body, headers, raw))
    if isinstance(found, Lines):
        return found
    reply = found if isinstance(found, Reply) else Reply(found, operation.status)
    return reply._replace(value=to_json(reply.value))


def check_scope(operation: Operation, caller: Caller) -> None:
    if operation.scope == "write" and not caller.may_write:
        raise refuse_write()


def check_ids(path: Mapping[str, str]) -> None:
    if any(len(value) > LONGEST_ID for value in path.values()):
        raise NotFound("There is no memory with so long an id.")


def _read_query(request: Request, model: type[BaseModel], lists: frozenset[str]) -> BaseModel:
    """The parameters of the address. One that may be repeated is a list; any other that is repeated is wrong."""
    given: dict[str, Any] = {}
    for name in request.query_params:
        values = request.query_params.getlist(name)
        given[name] = values if name in lists or len(values) > 1 else values[0]
    return model.model_validate(given, strict=False)


def _encode(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


async def stream(
    values: Iterator[Any], run: Callable[..., Awaitable[bytes]]
) -> AsyncIterator[bytes]:
    def encode_some() -> bytes:
        return b"".join(_encode(value) + b"\n" for value in islice(values, LINES_AT_ONCE))

    while lines := await run(encode_some):
        yield lines


# The description

FOLDER = Path(__file__).parent
REFERENCE = "#/components/schemas/{model}"
ALWAYS = (400, 401, 403, 404, 409, 422, 429, 503)
WITH_BODY = (408, 413, 415)
HEADERS = {
    ("PATCH", "/memories/{id}"): ("If-Match", "the ETag of the version that is to be changed"),
    ("POST", "/memories"): (
        "Idempotency-Key",
        "repeated with the same key, a request is done once",
    ),
}
ABOUT = (
    "Long-term memory for coding agents and the people who work with them. Agents use MCP at /mcp."
)
PLAIN_TYPES: dict[str, dict[str, Any]] = {
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
def describe() -> dict[str, Any]:
    """The API as OpenAPI has it."""
    bodies = {one.body: None for one in OPERATIONS if one.body}
    references, defined = models_json_schema(
        [(model, "validation") for model in bodies], ref_template=REFERENCE
    )
    named = {model: references[model, "validation"] for model in bodies}
    shapes, requests = _answer_shapes(), defined["$defs"]
    assert not shapes.keys() & requests.keys(), shapes.keys() & requests.keys()
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        described = _describe(operation, named)
        paths.setdefault(BASE + operation.path, {})[operation.method.lower()] = described
    token = {"type": "http", "scheme": "bearer", "description": "`bethink token create` makes one."}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Bethink", "version": __version__, "description": ABOUT},
        "paths": paths,
        "components": {"schemas": {**requests, **shapes}, "securitySchemes": {"token": token}},
        "security": [{"token": []}],
    }


def _answer_shapes() -> dict[str, Any]:
    """The shapes of answers.yaml as JSON Schema."""
    shapes: dict[str, Any] = {}
    for head, fields in yaml.safe_load((FOLDER / "answers.yaml").read_text("utf-8")).items():
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


def _type_of(text: str) -> dict[str, Any]:
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
    reference = {"$ref": REFERENCE.format(model=written)}
    return PLAIN_TYPES.get(written, reference)


def _describe(operation: Operation, named: Mapping[type[BaseModel], Any]) -> dict[str, Any]:
    about = " ".join((operation.run.__doc__ or "").split())
    twice = operation.path in ("/search", "/recall") and operation.body
    need = "writing" if operation.scope == "write" else "reading"
    found: dict[str, Any] = {
        "operationId": operation.run.__name__ + ("_by_body" if twice else ""),
        "summary": about.partition(". ")[0].rstrip("."),
        "description": f"{about} Needs a token for {need}.",
        "tags": [operation.group],
        "parameters": _parameters(operation),
        "responses": _responses(operation),
    }
    if operation.body is not None:
        content = {JSON: {"schema": named[operation.body]}}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    text = {"type": "string", "minLength": 1, "maxLength": 100}
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    found = [{"name": name, "in": "path", "required": True, "schema": text} for name in names]
    schema = operation.query.model_json_schema(ref_template=REFERENCE)
    for name, about in schema["properties"].items():
        required = name in schema.get("required", ())
        place = {"name": name, "in": "query", "required": required}
        told = about.get("description", "")
        found.append({**place, "description": told, "schema": _without_null(about)})
    if header := HEADERS.get((operation.method, operation.path)):
        place = {"name": header[0], "in": "header", "required": False, "description": header[1]}
        found.append({**place, "schema": {"type": "string"}})
    return found


def _without_null(about: Mapping[str, Any]) -> dict[str, Any]:
    """The form of a parameter. An address cannot hold a null: what may be left out is just left out."""
    shape = {key: value for key, value in about.items() if key not in ("title", "description")}
    if "anyOf" in shape:
        (only,) = [option for option in shape.pop("anyOf") if option != {"type": "null"}]
        shape.pop("default", None)
        shape |= {key: value for key, value in only.items() if key != "description"}
    return shape


def _responses(operation: Operation) -> dict[str, Any]:
    problem = {MEDIA_TYPE: {"schema": {"$ref": REFERENCE.format(model="Problem")}}}
    good: dict[str, Any] = {JSON_LINES: {"schema": {"type": "string"}}}
    if operation.answer:
        good = {JSON: {"schema": {"$ref": REFERENCE.format(model=operation.answer)}}}
    statuses = {operation.status, *ALWAYS, *operation.also, *(WITH_BODY if operation.body else ())}
    return {
        str(status): {"description": "Done", "content": good}
        if status < 300
        else {"description": TITLES[status][1], "content": problem}
        for status in sorted(statuses)
    }


@cache
def page() -> tuple[bytes, str]:
    """The page and its content security policy: only its own script and style, calls only to this server."""
    text = (FOLDER / "page.html").read_text("utf-8")
    hashes = [
        f"'sha256-{base64.b64encode(sha256(_between(text, tag).encode()).digest()).decode()}'"
        for tag in ("script", "style")
    ]
    policy = (
        f"default-src 'none'; script-src {hashes[0]}; style-src {hashes[1]}; connect-src 'self'; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'none'"
    )
    return text.encode(), policy


def _between(text: str, tag: str) -> str:
    return text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
