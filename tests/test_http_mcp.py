"""MCP over HTTP, driven by the official client in both eras of the protocol: every tool, resources and prompts, and what tokens allow."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager

import httpx2
import pytest
from http_server import problem, served
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from bethink.surface.http.app import only_reads
from bethink.surface.mcp import schemas

__all__ = ["served"]
ERAS = ["legacy", "2026-07-28"]
BOTH = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@asynccontextmanager
async def connected(served, token, era, where=""):
    http = httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {token}"}, timeout=30, trust_env=False
    )
    async with (
        http,
        Client(
            streamable_http_client(f"{served.address}/mcp{where}", http_client=http), mode=era
        ) as client,
    ):
        yield client


def said(result) -> str:
    assert not result.is_error, result.content
    return result.content[0].text


@pytest.mark.parametrize("era", ERAS)
def test_every_tool_works_in_both_eras(served, era):
    async def talk():
        async with connected(served, served.session, era, f"?container=tools-{era}") as client:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == list(schemas.TOOLS)
            stored = said(
                await client.call_tool(
                    "store_memories",
                    {"memories": [{"content": "Orders live in PostgreSQL", "kind": "decision"}]},
                )
            )
            id = re.search(r"\[(\S+)\]", stored)[1]
            assert "Orders live in PostgreSQL" in said(
                await client.call_tool("search_memories", {"query": "where do orders live?"})
            )
            assert "Orders live in PostgreSQL" in said(
                await client.call_tool("get_memories", {"ids": [id]})
            )
            assert id in said(await client.call_tool("update_memory", {"id": id, "importance": 9}))
            assert "+2" in said(
                await client.call_tool("rate_memories", {"ratings": [{"id": id, "value": 2}]})
            )
            assert "stored" in said(
                await client.call_tool(
                    "store_handoff", {"summary": "All is moved", "memory_ids": [id]}
                )
            )
            assert "All is moved" in said(await client.call_tool("get_handoff", {}))
            assert "memories" in said(await client.call_tool("memory_overview", {}))
            assert "forgotten" in said(await client.call_tool("forget_memories", {"ids": [id]}))

    asyncio.run(talk())


@pytest.mark.parametrize("era", ERAS)
def test_a_token_for_reading_calls_only_tools_that_read(served, era):
    token = served.token(f"reads-{era}", "read", [served.projects.home.root])

    async def talk():
        async with connected(served, token, era) as client:
            for name in schemas.TOOLS:
                if only_reads(name):
                    arguments = {
                        "search_memories": {"query": "x"},
                        "get_memories": {"ids": ["ffff"]},
                    }.get(name, {})
                    await client.call_tool(name, arguments)  # an error of the tool at most
                else:
                    with pytest.raises(MCPError, match="may only read"):
                        await client.call_tool(name, {})
            assert (await client.list_tools()).tools  # it goes on

    asyncio.run(talk())


def call(name, arguments, id=1):
    return {
        "jsonrpc": "2.0",
        "id": id,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }


def test_a_refused_tool_is_a_403_that_says_which_scope_is_needed(served):
    client = served.client(served.token("reader", "read", [served.projects.home.root]))
    response = client.post(
        "/mcp", json=call("store_memories", {"memories": [{"content": "x"}]}, "abc"), headers=BOTH
    )
    assert response.status_code == 403
    assert 'error="insufficient_scope", scope="write"' in response.headers["www-authenticate"]
    assert (response.json()["id"], response.json()["error"]["code"]) == ("abc", -32001)
    many = [call("search_memories", {"query": "x"}), call("forget_memories", {"ids": ["a"]})]
    assert client.post("/mcp", json=many, headers=BOTH).status_code == 403
    sly = b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"search_memories","name":"store_memories"}}'
    assert client.post("/mcp", content=sly, headers=BOTH).status_code == 403


def test_a_batch_with_something_personal_from_whoever_may_not_tell_it_stores_nothing(served):
    client = served.client(served.token("impersonal", "write", [served.projects.home.root]))
    batch = [
        {"content": "A gateway that nobody hears of"},
        {"content": "I prefer tabs everywhere", "personal": True},
    ]
    response = client.post("/mcp", json=call("store_memories", {"memories": batch}), headers=BOTH)
    assert "does not see personal memories" in response.text
    listed = client.get("/api/v1/memories", params={"limit": 100}).json()["items"]
    assert "A gateway that nobody hears of" not in {one["content"] for one in listed}


def test_a_tool_that_writes_under_another_name_is_stopped_by_the_store(served, monkeypatch):
    from bethink.surface.http import app

    monkeypatch.setattr(app, "only_reads", lambda tool: True)
    client = served.client(served.token("sly", "read", [served.projects.home.root]))
    response = client.post(
        "/mcp",
        json=call("store_memories", {"memories": [{"content": "Sneaked past the admission"}]}),
        headers=BOTH,
    )
    assert "may only read" in response.text
    assert '"isError":true' in response.text.replace(" ", "")


@pytest.mark.parametrize("era", ERAS)
def test_a_token_of_another_project_works_there_whatever_the_client_says(served, era):
    other = served.projects.home.root.parent / "other"
    token = served.token(f"other-{era}", "write", [other])

    async def talk():
        async with connected(served, token, era) as client:
            await client.call_tool(
                "store_memories", {"memories": [{"content": f"Kangaroos hop in {era}"}]}
            )
            found = said(await client.call_tool("search_memories", {"query": "kangaroos"}))
            assert "Kangaroos" in found
            refused = await client.call_tool(
                "store_memories", {"memories": [{"content": "I like tea", "personal": True}]}
            )
            assert refused.is_error
        async with connected(served, served.session, era) as client:
            assert "Kangaroos" not in said(
                await client.call_tool("search_memories", {"query": "kangaroos"})
            )
        async with connected(served, served.session, era, "?project=other") as client:
            assert "Kangaroos" in said(
                await client.call_tool("search_memories", {"query": "kangaroos"})
            )
        async with connected(served, token, era, "?project=shop") as client:
            assert (await client.call_tool("search_memories", {"query": "kangaroos"})).is_error

    asyncio.run(talk())


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"5", 400),
        (b'{"jsonrpc": "2.0"}', 400),
        (b"\xff\xff", 400),
        (b'{"jsonrpc":"2.0","id":1,"method":"no/such"}', 200),
    ],
)
def test_what_is_no_call_gets_an_error_of_the_protocol(served, content, status):
    response = served.owner.post("/mcp", content=content, headers=BOTH)
    assert response.status_code == status, response.text
    assert "error" in response.text
    assert (
        served.owner.post("/mcp", json=call("memory_overview", {}), headers=BOTH).status_code == 200
    )


def test_there_is_no_stream_to_listen_to_and_no_session_to_end(served):
    for method in ("GET", "DELETE"):
        response = served.owner.request(method, "/mcp", headers=BOTH)
        problem(response, 405)
        assert response.headers["allow"] == "POST"
    response = served.owner.post(
        "/mcp", json=call("memory_overview", {}), headers={**BOTH, "Mcp-Session-Id": "made-up"}
    )
    assert response.status_code == 200
    assert "mcp-session-id" not in response.headers


def test_the_tools_that_write_are_known_by_their_annotations():
    assert {name for name in schemas.TOOLS if not only_reads(name)} == {
        "store_memories",
        "update_memory",
        "forget_memories",
        "rate_memories",
        "store_handoff",
    }
