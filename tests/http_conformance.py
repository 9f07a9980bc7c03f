"""The server with the fixtures that the MCP conformance suite asks for, to be run by hand; docs/guides/server.md has the results.

    PYTHONPATH=src:tests python tests/http_conformance.py [PORT]
    npx @modelcontextprotocol/conformance@0.2.0-alpha.12 server --url http://127.0.0.1:7399/mcp --requirements 2026-07-28

The suite calls tools, resources and prompts by names of its own. Here they stand beside those of the product, on the same server
behind the same gate, on a throw-away database. What the product does not do (ask its user for input, log to its client, tasks,
subscriptions) has no fixture.
"""

from __future__ import annotations

import base64
import os
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server

from bethink.surface.http import app, security
from bethink.surface.http.projects import Projects


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


# The smallest picture and the smallest sound there are: one red pixel, no samples.
PIXEL = base64.b64encode(
    b"\x89PNG\r\n\x1a\n"
    + _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    + _chunk(b"IDAT", zlib.compress(b"\x00\xff\x00\x00"))
    + _chunk(b"IEND", b"")
).decode()
SOUND = base64.b64encode(
    b"RIFF"
    + struct.pack("<I", 36)
    + b"WAVEfmt "
    + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
    + b"data"
    + struct.pack("<I", 0)
).decode()


def text(said: str) -> types.TextContent:
    return types.TextContent(type="text", text=said)


def picture() -> types.ImageContent:
    return types.ImageContent(type="image", data=PIXEL, mime_type="image/png")


def resource(uri: str, said: str, kind: str = "text/plain") -> types.EmbeddedResource:
    return types.EmbeddedResource(
        type="resource", resource=types.TextResourceContents(uri=uri, mime_type=kind, text=said)
    )


TOOLS: dict[str, Callable[[], list[Any]]] = {
    "test_simple_text": lambda: [text("This is a simple text response for testing.")],
    "test_image_content": lambda: [picture()],
    "test_audio_content": lambda: [
        types.AudioContent(type="audio", data=SOUND, mime_type="audio/wav")
    ],
    "test_embedded_resource": lambda: [
        resource("test://embedded-resource", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": lambda: [
        text("Multiple content types test:"),
        picture(),
        resource(
            "test://mixed-content-resource", '{"test":"data","value":123}', "application/json"
        ),
    ],
    "test_error_handling": lambda: [text("This tool intentionally returns an error for testing")],
    "test_tool_with_progress": lambda: [text("Done in three steps.")],
}
PROMPTS: dict[str, tuple[tuple[str, ...], Callable[[dict[str, str]], list[Any]]]] = {
    "test_simple_prompt": ((), lambda given: [text("This is a simple prompt for testing.")]),
    "test_prompt_with_arguments": (
        ("arg1", "arg2"),
        lambda given: [
            text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")
        ],
    ),
    "test_prompt_with_embedded_resource": (
        ("resourceUri",),
        lambda given: [
            resource(given["resourceUri"], "Embedded resource content for testing."),
            text("Please process the embedded resource above."),
        ],
    ),
    "test_prompt_with_image": (
        (),
        lambda given: [picture(), text("Please analyze the image above.")],
    ),
}
STATIC = "This is the content of the static text resource."


Handler = Callable[[Any, Any], Any]


def with_fixtures(server: Server[Any]) -> Server[Any]:
    """The product's server with the suite's names beside its own."""

    async def list_tools(own: Handler, context: Any, params: Any) -> Any:
        found = await own(context, params)
        about = {"description": "For conformance.", "input_schema": {"type": "object"}}
        extra = [types.Tool(name=name, **about) for name in TOOLS]
        return found.model_copy(update={"tools": [*found.tools, *extra]})

    async def call_tool(own: Handler, context: Any, params: Any) -> Any:
        if params.name not in TOOLS:
            return await own(context, params)
        if params.name == "test_tool_with_progress":
            for done in (0, 50, 100):
                await context.session.report_progress(done, 100)
                await anyio.sleep(0.05)
        failed = params.name == "test_error_handling"
        return types.CallToolResult(content=TOOLS[params.name](), is_error=failed)

    async def read_resource(own: Handler, context: Any, params: Any) -> Any:
        uri = str(params.uri)
        content: Any
        if uri == "test://static-text":
            content = types.TextResourceContents(uri=uri, mime_type="text/plain", text=STATIC)
        elif uri == "test://static-binary":
            content = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PIXEL)
        elif uri.startswith("test://template/"):
            id = uri.split("/")[3]
            said = f'{{"id":"{id}","templateTest":true,"data":"Data for ID: {id}"}}'
            content = types.TextResourceContents(uri=uri, mime_type="application/json", text=said)
        else:
            return await own(context, params)
        return types.ReadResourceResult(contents=[content])

    async def get_prompt(own: Handler, context: Any, params: Any) -> Any:
        if params.name not in PROMPTS:
            return await own(context, params)
        contents = PROMPTS[params.name][1](params.arguments or {})
        messages = [types.PromptMessage(role="user", content=content) for content in contents]
        return types.GetPromptResult(messages=messages)

    for method, handler in (
        ("tools/list", list_tools),
        ("tools/call", call_tool),
        ("resources/read", read_resource),
        ("prompts/get", get_prompt),
    ):
        entry = server.get_request_handler(method)
        assert entry is not None
        server.add_request_handler(method, entry.params_type, partial(handler, entry.handler))
    return server


def told(address: str) -> None:
    sys.stdout.write(f"{address}/mcp\n")
    sys.stdout.flush()


def main() -> None:
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 7399
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(BETHINK_HOME=folder, BETHINK_EMBEDDING="hashing", BETHINK_OFFLINE="1")
        own = app.build_mcp
        app.build_mcp = lambda projects: with_fixtures(own(projects))  # type: ignore[assignment]
        known = security.FileTokens(Path(folder) / "tokens.json")
        admission = security.make_admission("127.0.0.1", [], known, "secret")
        built = app.build(Projects(Path(folder)), admission)

        async def admitted(scope: Any, receive: Any, send: Any) -> None:
            """The suite sends no token."""
            if scope["type"] == "http":
                scope["headers"] = [*scope["headers"], (b"authorization", b"Bearer secret")]
            await built(scope, receive, send)

        app.run(admitted, app.Serving("127.0.0.1", port), told)


if __name__ == "__main__":
    main()
