"""The server with the fixtures that the MCP conformance suite asks for, to be run by hand; docs/guides/server.md has the results.

    PYTHONPATH=src python bench/mcp_conformance.py [PORT]
    npx @modelcontextprotocol/conformance@0.2.0-alpha.12 server --url http://127.0.0.1:7399/mcp --requirements 2026-07-28

The suite calls tools, resources and prompts by names of its own. Here they are added to those of the product, on the same server
behind the same gate, on a throw-away database. What the product does not do (ask its user for input, log to its client, tasks,
subscriptions) has no fixture.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from functools import partial
from pathlib import Path

import anyio
import mcp_types as types

from bethink.app.http import app

# The smallest picture and the smallest sound there are: one red pixel, no samples.
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)
SOUND = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="


def text(said):
    return types.TextContent(type="text", text=said)


def resource(uri, said, kind="text/plain"):
    content = types.TextResourceContents(uri=uri, mime_type=kind, text=said)
    return types.EmbeddedResource(type="resource", resource=content)


PICTURE = types.ImageContent(type="image", data=PIXEL, mime_type="image/png")
EMBEDDED = resource("test://embedded-resource", "This is an embedded resource content.")
MIXED = resource("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
TOOLS = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [PICTURE],
    "test_audio_content": [types.AudioContent(type="audio", data=SOUND, mime_type="audio/wav")],
    "test_embedded_resource": [EMBEDDED],
    "test_multiple_content_types": [text("Multiple content types test:"), PICTURE, MIXED],
    "test_error_handling": [text("This tool intentionally returns an error for testing")],
    "test_tool_with_progress": [text("Done in three steps.")],
}
PROMPTS = {
    "test_simple_prompt": lambda given: [text("This is a simple prompt for testing.")],
    "test_prompt_with_arguments": lambda given: [
        text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")
    ],
    "test_prompt_with_embedded_resource": lambda given: [
        resource(given["resourceUri"], "Embedded resource content for testing."),
        text("Please process the embedded resource above."),
    ],
    "test_prompt_with_image": lambda given: [PICTURE, text("Please analyze the image above.")],
}
STATIC = "This is the content of the static text resource."


def with_fixtures(server):
    """The product's server with the suite's names beside its own."""

    async def list_tools(own, context, params):
        found = await own(context, params)
        about = {"description": "For conformance.", "input_schema": {"type": "object"}}
        extra = [types.Tool(name=name, **about) for name in TOOLS]
        return found.model_copy(update={"tools": [*found.tools, *extra]})

    async def call_tool(own, context, params):
        if params.name not in TOOLS:
            return await own(context, params)
        if params.name == "test_tool_with_progress":
            for done in (0, 50, 100):
                await context.session.report_progress(done, 100)
                await anyio.sleep(0.05)
        failed = params.name == "test_error_handling"
        return types.CallToolResult(content=TOOLS[params.name], is_error=failed)

    async def read_resource(own, context, params):
        uri = str(params.uri)
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

    async def get_prompt(own, context, params):
        if params.name not in PROMPTS:
            return await own(context, params)
        contents = PROMPTS[params.name](params.arguments or {})
        messages = [types.PromptMessage(role="user", content=content) for content in contents]
        return types.GetPromptResult(messages=messages)

    handlers = {"tools/list": list_tools, "tools/call": call_tool}
    handlers |= {"resources/read": read_resource, "prompts/get": get_prompt}
    for method, handler in handlers.items():
        entry = server.get_request_handler(method)
        server.add_request_handler(method, entry.params_type, partial(handler, entry.handler))
    return server


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("port", nargs="?", type=int, default=7399)
    port = parser.parse_args().port
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(BETHINK_HOME=folder, BETHINK_EMBEDDING="hashing", BETHINK_OFFLINE="1")
        own, build = app.build_mcp, app.build
        app.build_mcp = lambda projects: with_fixtures(own(projects))

        def build_open(*how):
            built = build(*how)

            async def admit(scope, receive, send):
                """The suite sends no token."""
                if scope["type"] == "http":
                    scope["headers"] = [*scope["headers"], (b"authorization", b"Bearer secret")]
                await built(scope, receive, send)

            return admit

        app.build = build_open
        projects, place = app.Projects(Path(folder)), ("127.0.0.1", port)
        app.serve(projects, place, lambda url: print(f"{url}/mcp"), session="secret")


if __name__ == "__main__":
    main()
