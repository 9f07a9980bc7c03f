"""MCP over HTTP, driven by the official client in both eras of the protocol: every tool, resources and prompts, and what tokens allow."""

from __future__ import annotations

import asyncio
import itertools
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
NUMBERS = itertools.count()
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


def test_the_calls_are_of_every_tool():
    assert {name for name, _, _ in CALLS} == set(TOOLS)


@pytest.mark.parametrize("era", ERAS)
def test_the_tools_are_listed_in_their_order(served, era):
    async def talk():
        async with connected(served, served.session, era) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    assert asyncio.run(talk()) == list(TOOLS)


@pytest.fixture(params=ERAS, scope="module")
def answers(request, served):
    """What each tool answers in one conversation, with the id of the memory in it."""
    era = request.param

    async def talk():
        found, id = {}, ""
        async with connected(served, served.session, era, f"?container=tools-{era}") as client:
            for name, arguments, _ in CALLS:
                found[name] = said(await client.call_tool(name, filled(arguments, id)))
                id = id or re.search(r"\[(\S+)\]", found[name])[1]
        return found, id

    return asyncio.run(talk())


@pytest.mark.parametrize(
    ("name", "shown"), [pytest.param(name, shown, id=name) for name, _, shown in CALLS]
)
def test_a_tool_works(answers, name, shown):
    found, id = answers
    assert shown.replace("ID", id) in found[name]


@pytest.fixture(params=ERAS, scope="module")
def refusals(request, served):
    """Which calls of tools a token for reading is refused, and the memory that they would change."""
    era, home = request.param, [served.projects.home.root]
    token = served.token(f"reads-{era}", "read", home)
    writer = served.client(served.token(f"writes-{era}", "write", home))
    id = served.add(f"Kept in {era}", writer)  # what an agent with a token for writing could change

    async def talk():
        refused = {}
        async with connected(served, token, era) as client:
            for name, arguments, _ in CALLS:
                result = await client.call_tool(name, filled(arguments, id))
                refused[name] = result.is_error and "read-only" in result.content[0].text
            refused["list"] = not (await client.list_tools()).tools
        return refused

    return asyncio.run(talk()), served.owner.get(f"{V1}/memories/{id}").json()


@pytest.mark.parametrize("name", TOOLS)
def test_a_token_for_reading_calls_only_tools_that_read(refusals, name):
    refused, _ = refusals
    assert refused[name] != bool(TOOLS[name].annotations.get("readOnlyHint"))


def test_a_refused_tool_changes_nothing(refusals):
    """The store refuses, no matter what a tool is called and says about itself."""
    _, kept = refusals
    assert (kept["usefulness"], kept["importance"], kept["deleted_at"]) == (0, 5, None)


def test_a_conversation_goes_on_after_a_refusal(refusals):
    refused, _ = refusals
    assert not refused["list"]


def call(name, arguments):
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def test_a_batch_with_a_forbidden_personal_memory_stores_nothing(served):
    client = served.client(served.token("impersonal", "write", [served.projects.home.root]))
    batch = [{"content": "A gateway of nobody"}, {"content": "I prefer tabs", "personal": True}]
    response = client.post("/mcp", json=call("store_memories", {"memories": batch}), headers=BOTH)
    assert "has no access to personal memories" in response.text
    assert "A gateway of nobody" not in client.get(f"{V1}/export").text


@pytest.fixture(params=ERAS)
def elsewhere(request, served):
    """A protocol era and a token of another project, in which it stored a memory."""
    era = request.param
    other = served.projects.home.root.parent / "other"
    token = served.token(f"other-{era}-{next(NUMBERS)}", "write", [other])
    statement = {"content": f"Kangaroos hop in {era}"}
    assert not call_tool(served, token, era, "store_memories", {"memories": [statement]}).is_error
    return era, token


def call_tool(served, token, era, name, arguments, where=""):
    async def talk():
        async with connected(served, token, era, where) as client:
            return await client.call_tool(name, arguments)

    return asyncio.run(talk())


def test_a_token_of_another_project_stores_nothing_personal(served, elsewhere):
    era, token = elsewhere
    statement = {"content": "I like tea", "personal": True}
    assert call_tool(served, token, era, "store_memories", {"memories": [statement]}).is_error


@pytest.mark.parametrize(
    ("is_owner", "where", "finds"),
    [
        pytest.param(False, "", True, id="its token"),
        pytest.param(True, "", False, id="the owner at home"),
        pytest.param(True, "?project=other", True, id="the owner there"),
    ],
)
def test_a_memory_of_another_project_is_found_there(served, elsewhere, is_owner, where, finds):
    era, token = elsewhere
    secret = served.session if is_owner else token
    answer = call_tool(served, secret, era, "search_memories", {"query": "kangaroos"}, where)
    assert (answer.is_error, "Kangaroos" in answer.content[0].text) == (False, finds)


def test_a_token_of_another_project_is_refused_here(served, elsewhere):
    era, token = elsewhere
    where, query = "?project=shop", {"query": "kangaroos"}
    assert call_tool(served, token, era, "search_memories", query, where).is_error


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
