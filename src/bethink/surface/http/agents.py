"""MCP over streamable HTTP: the same server as on stdin, one request at a time and nothing kept for a client in between.

Stateless in both eras of the protocol: no session can then be taken over with another token, and a restart loses nothing. A token
for reading is refused by the name of the tool here, and by the store whatever the name.
"""

from __future__ import annotations

import json
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic_core import from_json
from starlette.datastructures import Headers, QueryParams
from starlette.types import Message, Receive, Scope, Send

from bethink.errors import BethinkError
from bethink.surface.arguments import check_arguments, parse_arguments
from bethink.surface.http.api import WHERE
from bethink.surface.http.projects import Projects
from bethink.surface.http.security import (
    ACCESS,
    LARGEST_BODY,
    Access,
    Caller,
    Forbidden,
    Refusal,
    problem,
    read_body,
    response,
)
from bethink.surface.mcp import schemas
from bethink.surface.mcp.server import build

PATH = "/mcp"
PLACE = parse_arguments(WHERE)
FORBIDDEN = -32001  # of JSON-RPC, in the range that is left to implementations


def only_reads(tool: str) -> bool:
    """Whether a tool changes nothing. One that does not exist changes nothing either."""
    known = schemas.TOOLS.get(tool)
    return known is None or bool(known.hints.get("readOnlyHint"))


class WritingTool(Forbidden):
    """A call of a tool that changes memories, with a token that may only read."""

    def __init__(self, tool: str, id: Any) -> None:
        message = f"The tool {tool} changes memories, and this token may only read."
        super().__init__(message, "Use a token of scope write.", "write")
        self.id = id if isinstance(id, str | int) else None


class Agents:
    """The address that agents speak to."""

    def __init__(self, projects: Projects) -> None:
        self.manager = StreamableHTTPSessionManager(
            app=build(projects), stateless=True, max_request_body_size=LARGEST_BODY
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["bethink.route"] = PATH
        caller: Caller = scope["bethink.caller"]
        try:
            where = check_arguments(dict(QueryParams(scope["query_string"])), PLACE)
            ACCESS.set(Access(caller, where.get("project"), where.get("container")))
            if scope["method"] != "POST":
                # There is no session to end, and nothing that would be sent without being asked.
                message = f"{scope['method']} is not a method of {PATH}."
                raise Refusal(405, message, "Agents post to it.", {"Allow": "POST"})
            body = await read_body(receive, Headers(scope=scope))
            _check_tools(scope, body, caller)
        except WritingTool as error:
            await _refuse(error, scope, receive, send)
            return
        except BethinkError as error:
            await response(error)(scope, receive, send)
            return
        await self.manager.handle_request(scope, _repeat(body, receive), send)


def _check_tools(scope: Scope, body: bytes, caller: Caller) -> None:
    """Notes for the log which tools a request calls, and refuses those that its token may not call."""
    try:
        value = from_json(body)  # as the SDK reads it
    except ValueError:
        return  # what is no JSON is left for the SDK to answer
    messages = value if isinstance(value, list) else [value]
    for message in messages:
        if not isinstance(message, dict):
            continue
        method, params = message.get("method"), message.get("params")
        tool = params.get("name") if isinstance(params, dict) else None
        name = tool if isinstance(tool, str) else ""
        if isinstance(method, str):
            known = f" {name}" if name in schemas.TOOLS else ""
            scope["bethink.detail"] = f"{method[:60]}{known}"
        if method == "tools/call" and not caller.may_write and not only_reads(name):
            raise WritingTool(name, message.get("id"))


def _repeat(body: bytes, receive: Receive) -> Receive:
    """The request again, after its body was read."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


async def _refuse(error: WritingTool, scope: Scope, receive: Receive, send: Send) -> None:
    """An error that both a client of the protocol and a person with curl understand."""
    answer = problem(error.status, error.message, error.hint, error.headers)
    if error.id is not None:
        said = {"code": FORBIDDEN, "message": f"{error.message} {error.hint}"}
        answer.body = json.dumps({"jsonrpc": "2.0", "id": error.id, "error": said}).encode()
        answer.headers["content-type"] = "application/json"
        answer.headers["content-length"] = str(len(answer.body))
    await answer(scope, receive, send)
