"""The description of the API (OpenAPI 3.1), made from the operations, and the page that shows it.

The page is one file without anything from elsewhere: it works offline, and its policy lets nothing else run.
"""

from __future__ import annotations

import base64
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from bethink import __version__
from bethink.surface.http import answers
from bethink.surface.http.api import BASE, JSON, JSON_LINES, OPERATIONS
from bethink.surface.http.operation import Operation
from bethink.surface.http.problems import MEDIA_TYPE, TITLES

PAGE = Path(__file__).parent / "page.html"
REFERENCE = "#/components/schemas/{model}"
ALWAYS = (400, 401, 403, 404, 422, 503)
WITH_BODY = (408, 413, 415)
HEADERS = {
    ("PATCH", "/memories/{id}"): ("If-Match", "the ETag of the version that is to be changed"),
    ("POST", "/memories"): (
        "Idempotency-Key",
        "repeated with the same key, a request is done once",
    ),
}


@cache
def description() -> dict[str, Any]:
    models: dict[type[BaseModel], None] = {answers.Problem: None}
    for operation in OPERATIONS:
        models.update(dict.fromkeys(model for model in (operation.body, operation.answer) if model))
    # Requests and answers have names in common, such as Handoff; what differs is told apart by pydantic.
    references, defined = models_json_schema(
        [(model, "validation") for model in models], ref_template=REFERENCE
    )
    named = {model: references[model, "validation"] for model in models}
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(BASE + operation.path, {})[operation.method.lower()] = _described(
            operation, named
        )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Bethink",
            "version": __version__,
            "description": "Long-term memory for coding agents and the people who work with them. Agents use MCP at /mcp.",
        },
        "paths": paths,
        "components": {
            "schemas": defined["$defs"],
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "`bethink token create` makes one.",
                }
            },
        },
        "security": [{"token": []}],
    }


def _described(
    operation: Operation, named: dict[type[BaseModel], dict[str, Any]]
) -> dict[str, Any]:
    about = " ".join((operation.run.__doc__ or "").split())
    found: dict[str, Any] = {
        "operationId": operation.run.__name__
        + ("_by_body" if operation.path in ("/search", "/recall") and operation.body else ""),
        "summary": about.partition(". ")[0].rstrip("."),
        "description": f"{about} Needs a token for {'writing' if operation.scope == 'write' else 'reading'}.",
        "tags": [operation.group],
        "parameters": _parameters(operation),
        "responses": _responses(operation, named),
    }
    if operation.body is not None:
        found["requestBody"] = {
            "required": True,
            "content": {JSON: {"schema": named[operation.body]}},
        }
    return found


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    path = [
        {
            "name": part[1:-1],
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1, "maxLength": 100},
        }
        for part in operation.path.split("/")
        if part.startswith("{")
    ]
    schema = operation.query.model_json_schema(ref_template=REFERENCE)
    required = schema.get("required", ())
    query = []
    for name, about in schema["properties"].items():
        shape = {key: value for key, value in about.items() if key not in ("title", "description")}
        query.append(
            {
                "name": name,
                "in": "query",
                "required": name in required,
                "description": about.get("description", ""),
                "schema": shape,
            }
        )
    header = HEADERS.get((operation.method, operation.path))
    sent = (
        [
            {
                "name": header[0],
                "in": "header",
                "required": False,
                "description": header[1],
                "schema": {"type": "string"},
            }
        ]
        if header
        else []
    )
    return [*path, *[_without_null(one) for one in query], *sent]


def _without_null(parameter: dict[str, Any]) -> dict[str, Any]:
    """An address cannot hold a null: what may be left out is just left out."""
    shape = parameter["schema"]
    if "anyOf" in shape:
        (only,) = [option for option in shape["anyOf"] if option != {"type": "null"}]
        shape = {
            **{key: value for key, value in shape.items() if key not in ("anyOf", "default")},
            **only,
        }
    return {
        **parameter,
        "schema": {key: value for key, value in shape.items() if key != "description"},
    }


def _responses(
    operation: Operation, named: dict[type[BaseModel], dict[str, Any]]
) -> dict[str, Any]:
    problem = {"description": "", "content": {MEDIA_TYPE: {"schema": named[answers.Problem]}}}
    failed = {*ALWAYS, *operation.also, *(WITH_BODY if operation.body else ())}
    good: dict[str, Any] = {JSON_LINES: {"schema": {"type": "string"}}}
    if operation.answer is not None:
        good = {JSON: {"schema": named[operation.answer]}}
    statuses = {operation.status, *(status for status in operation.also if status < 300)}
    return {
        **{str(status): {"description": "Done", "content": good} for status in sorted(statuses)},
        **{
            str(status): {**problem, "description": TITLES[status][1]}
            for status in sorted(failed)
            if status >= 400
        },
    }


@cache
def page() -> tuple[bytes, str]:
    """The page and its content security policy: only its own script and style, calls only to this server."""
    text = PAGE.read_text("utf-8")
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
