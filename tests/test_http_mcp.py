"""MCP over HTTP, driven by the official client in both eras of the protocol: every tool, resources and prompts, and what tokens allow."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import asynccontextmanager

import httpx2
import pytest
from http_server import V1, problem, served
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from bethink.app.mcp.tools import TOOLS

__all__ = ["served"]
ERAS = ["legacy", "2026-07-28"]
BOTH = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@asynccontextmanager
async def connected(served, token, era, where=""):
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False) as http:
        link = streamable_http_client(f"{served.address}/mcp{where}", http_client=http)
        async with Client(link, mode=era) as client:
            yield client


def said(result) -> str:
    assert not result.is_error, result.content
    return result.content[0].text


# Each tool with what it is given, ID being the memory that the first one stores, and a part of its answer.
CALLS = [
    ("store_memories", {"memories": [{"content": "Orders live in PostgreSQL"}]}, "added ["),
    ("search_memories", {"query": "where do orders live?"}, "Orders live in PostgreSQL"),
    ("get_memories", {"ids": ["ID"]}, "Orders live in PostgreSQL"),
    ("update_memory", {"id": "ID", "importance": 9}, "updated [ID]"),
    ("rate_memories", {"ratings": [{"id": "ID", "value": 2}]}, "+2"),
    ("store_handoff", {"summary": "All is moved", "memory_ids": ["ID"]}, "stored"),
    ("get_handoff", {}, "All is moved"),
    ("memory_overview", {}, "memories"),
    ("forget_memories", {"ids": ["ID"]}, "forgotten"),
]


def filled(arguments, id):
    return json.loads(json.dumps(arguments).replace("ID", id))


@pytest.mark.parametrize("era", ERAS)
def test_every_tool_works_in_both_eras(served, era):
    async def talk():
        async with connected(served, served.session, era, f"?container=tools-{era}") as client:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == list(TOOLS)
            assert {name for name, _, _ in CALLS} == set(TOOLS)
            id = ""
            for name, arguments, told in CALLS:
                answer = said(await client.call_tool(name, filled(arguments, id)))
                id = id or re.search(r"\[(\S+)\]", answer)[1]
                assert told.replace("ID", id) in answer

    asyncio.run(talk())


@pytest.mark.parametrize("era", ERAS)
def test_a_token_for_reading_calls_only_tools_that_read(served, era):
    """Whatever a tool is called and says of itself, the store refuses what it would change."""
    home = [served.projects.home.root]
    token = served.token(f"reads-{era}", "read", home)
    writer = served.client(served.token(f"writes-{era}", "write", home))
    id = served.add(f"Kept in {era}", writer)  # what an agent with a token for writing could change

    async def talk():
        async with connected(served, token, era) as client:
            for name, arguments, _ in CALLS:
                result = await client.call_tool(name, filled(arguments, id))
                refused = result.is_error and "read-only" in result.content[0].text
                assert refused != bool(TOOLS[name].annotations.get("readOnlyHint")), result
            assert (await client.list_tools()).tools  # it goes on

    asyncio.run(talk())
    kept = served.owner.get(f"{V1}/memories/{id}").json()
    assert (kept["usefulness"], kept["importance"], kept["deleted_at"]) == (0, 5, None)


def call(name, arguments):
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def test_a_batch_with_a_forbidden_personal_memory_stores_nothing(served):
    client = served.client(served.token("impersonal", "write", [served.projects.home.root]))
    batch = [{"content": "A gateway of nobody"}, {"content": "I prefer tabs", "personal": True}]
    response = client.post("/mcp", json=call("store_memories", {"memories": batch}), headers=BOTH)
    assert "has no access to personal memories" in response.text
    assert "A gateway of nobody" not in client.get(f"{V1}/export").text


@pytest.mark.parametrize("era", ERAS)
def test_a_token_of_another_project_works_there_whatever_the_client_says(served, era):
    other = served.projects.home.root.parent / "other"
    token = served.token(f"other-{era}", "write", [other])

    def told(**statement):
        return {"memories": [statement]}

    async def talk():
        async with connected(served, token, era) as client:
            await client.call_tool("store_memories", told(content=f"Kangaroos hop in {era}"))
            mine = told(content="I like tea", personal=True)
            assert (await client.call_tool("store_memories", mine)).is_error
        there, here = "?project=other", "?project=shop"
        for secret, where, hears in (
            (token, "", True),
            (served.session, "", False),
            (served.session, there, True),
            (token, here, False),
        ):
            async with connected(served, secret, era, where) as client:
                answer = await client.call_tool("search_memories", {"query": "kangaroos"})
                assert ("Kangaroos" in answer.content[0].text) == hears
                assert bool(answer.is_error) == (where == here)

    asyncio.run(talk())


@pytest.mark.parametrize(
    ("content", "status"),
    [
        pytest.param(b"", 400, id="bytes-400"),
        pytest.param(b"{", 400, id="left-curly-bracket"),
        pytest.param(b"[]", 400, id="left-square-bracket"),
        pytest.param(b"5", 400, id="5"),
        pytest.param(b'{"jsonrpc": "2.0"}', 400, id="jsonrpc-2.0"),
        pytest.param(b"\xff\xff", 400, id="bytes-400-2"),
        pytest.param(
            b'{"jsonrpc":"2.0","id":1,"method":"no/such"}',
            200,
            id="jsonrpc-2.0-id-1-method-no/such",
        ),
    ],
)
def test_a_body_that_is_no_call_is_refused(served, content, status):
    response = served.owner.post("/mcp", content=content, headers=BOTH)
    assert response.status_code == status and "error" in response.text, content


@pytest.mark.parametrize(
    "method",
    [
        pytest.param("GET", id="GET"),
        pytest.param("DELETE", id="delete"),
    ],
)
def test_there_is_no_stream(served, method):
    response = served.owner.request(method, "/mcp", headers=BOTH)
    problem(response, 405)
    assert response.headers["allow"] == "POST"


def test_there_is_no_session(served):
    headers = {**BOTH, "Mcp-Session-Id": "made-up"}
    response = served.owner.post("/mcp", json=call("memory_overview", {}), headers=headers)
    assert response.status_code == 200 and "mcp-session-id" not in response.headers
