"""What goes wrong, as the caller is told: problem details (RFC 9457) with a sentence and a next step.

Our own errors say what is wrong with a request. What is wrong with the server (its database, its settings) is told in general
words: paths and causes are for the log.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from starlette.responses import Response

from bethink.errors import (
    Ambiguous,
    BethinkError,
    ConfigError,
    EmbeddingError,
    NotFound,
    OutcomeUnknown,
    Overtaken,
    StoreBusy,
    StoreUnavailable,
    UsageError,
)

MEDIA_TYPE = "application/problem+json"
URN = "urn:bethink:problem:"
SHOWN = 20  # wrong fields that are named one by one
DOCS = "`/api/v1/docs` shows what each operation takes."
RETRY = {"Retry-After": "1"}
ASK_FOR_TOKEN = {"WWW-Authenticate": 'Bearer realm="bethink"'}

log = logging.getLogger("bethink")

TITLES = {
    400: ("bad-request", "The request cannot be read"),
    401: ("unauthorized", "A token is needed"),
    403: ("forbidden", "Not allowed"),
    404: ("not-found", "Not found"),
    405: ("method-not-allowed", "Not a method of this address"),
    408: ("timeout", "The request took too long to arrive"),
    409: ("conflict", "In conflict with what is there"),
    412: ("precondition-failed", "It changed meanwhile"),
    413: ("too-large", "The request is too large"),
    415: ("unsupported-media-type", "Not a form that is read here"),
    422: ("invalid", "Something in the request is not valid"),
    429: ("too-many", "Too many wrong tokens"),
    500: ("internal", "Something went wrong here"),
    503: ("unavailable", "Not possible right now"),
}


# What is not possible right now: what is said of it, and what to do.
FOR_NOW: dict[type[BethinkError], tuple[str, str]] = {
    StoreBusy: (
        "Another process is writing and did not finish in time.",
        "Try again in a moment.",
    ),
    StoreUnavailable: (
        "The database is out of reach; what was not acknowledged was not changed.",
        "Try again in a moment.",
    ),
    OutcomeUnknown: (
        "The database went away, and it is not known whether this was stored.",
        "Send it again in a moment, with the same Idempotency-Key.",
    ),
    EmbeddingError: (
        "Meaning cannot be searched or stored right now.",
        "Ask with mode=keyword; the server's log says why.",
    ),
}


class Refusal(BethinkError):
    """A request that is answered with a status and a sentence."""

    def __init__(
        self,
        status: int,
        message: str,
        hint: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, hint)
        self.status = status
        self.headers = dict(headers or {})


class Forbidden(Refusal):
    """The caller is known and may not do this. `scope` is what would be needed."""

    def __init__(self, message: str, hint: str | None = None, scope: str = "") -> None:
        needed = f', error="insufficient_scope", scope="{scope}"' if scope else ""
        super().__init__(
            403,
            message,
            hint,
            {"WWW-Authenticate": f'Bearer realm="bethink"{needed}'} if scope else None,
        )


def response(error: Exception) -> Response:
    """The answer to a request that failed."""
    if isinstance(error, ValidationError):
        return _invalid(error)
    if isinstance(error, Refusal):
        return problem(error.status, error.message, error.hint, error.headers)
    if isinstance(error, NotFound):
        return problem(
            404,
            error.message,
            "`GET /api/v1/memories` lists ids."
            if "memory" in error.message
            else _over_http(error.hint),
        )
    if isinstance(error, Ambiguous | Overtaken):
        return problem(409, error.message, _over_http(error.hint))
    for kind, (detail, hint) in FOR_NOW.items():
        if isinstance(error, kind):
            log.warning("%s", error)
            return problem(503, detail, hint, RETRY)
    if isinstance(error, UsageError) and not isinstance(error, ConfigError):
        return problem(422, error.message, _over_http(error.hint))
    log.error(
        "%s: %s",
        type(error).__name__,
        error,
        exc_info=None if isinstance(error, BethinkError) else error,
    )
    return problem(
        500,
        "The server could not do this.",
        "Its log says why; `bethink doctor` on that machine checks the rest.",
    )


def problem(
    status: int,
    detail: str,
    hint: str | None = None,
    headers: Mapping[str, str] | None = None,
    errors: Sequence[Mapping[str, str]] = (),
) -> Response:
    name, title = TITLES.get(status, (f"status-{status}", "The request could not be answered"))
    value: dict[str, Any] = {
        "type": URN + name,
        "title": title,
        "status": status,
        "detail": _sendable(detail),
    }
    if hint:
        value["hint"] = _sendable(hint)
    if errors:
        value["errors"] = list(errors)
    return Response(
        json.dumps(value, ensure_ascii=False).encode(), status, dict(headers or {}), MEDIA_TYPE
    )


def _over_http(hint: str | None) -> str | None:
    """A hint that names a command or its options is for a shell; a program is sent to the description of what it can call."""
    return DOCS if hint and re.search(r"\bbethink [a-z]|(?<!\w)--[a-z]", hint) else hint


def _sendable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _invalid(error: ValidationError) -> Response:
    """Which values are wrong. They are named by their place and not repeated: they may be a megabyte long, or a secret."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    if any(one["type"] == "json_invalid" for one in found):
        return problem(
            400, f"The body is no JSON: {found[0]['msg']}.", "Send a JSON object in UTF-8."
        )
    errors = [
        {"place": _place(one["loc"]), "message": _sendable(one["msg"])[:200]}
        for one in found[:SHOWN]
    ]
    first = (
        f"{errors[0]['place']}: {errors[0]['message']}"
        if errors[0]["place"]
        else errors[0]["message"]
    )
    rest = f" ({len(found) - 1:,} more)" if len(found) > 1 else ""
    return problem(422, f"{first}{rest}.", DOCS, errors=errors)


def _place(parts: Sequence[int | str]) -> str:
    text = ""
    for part in parts:
        text += (
            f"[{part}]"
            if isinstance(part, int)
            else f"{'.' * bool(text)}{_sendable(str(part))[:60]}"
        )
    return text
