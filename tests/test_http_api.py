"""Every operation of the REST API: it does what it says, and answers in the form that the OpenAPI page promises."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

from http_server import OPERATIONS, V1, api, body, problem, running, served

from bethink import Bethink, surface
from bethink.features import promotion
from bethink.surface.http import api as http_api
from bethink.types import Batch, Session, Span

__all__ = ["api", "served"]


def test_a_search_has_pages_that_never_repeat_a_memory(api):
    texts = [f"Build number {n} uses a cache of its own, kind {n * 7}" for n in range(25)]
    api.add(*texts, dedup=False)
    pages = api.page("GET /search", query="cache build", limit=10, intent="explore")
    seen = [hit["id"] for page in pages for hit in page["items"]]
    assert len(seen) == len(set(seen)) == pages[0]["total"] == 25


def test_a_purge_that_is_only_proposed_leaves_the_rule(tmp_path, offline):
    shop = tmp_path / "shop"
    shop.mkdir()
    with Bethink(offline / "memory.db", directory=shop) as memory:
        id = memory.add("Never push on Fridays", kind="gotcha").id
        rule = shop / promotion.promote(memory, id, None).path
    with running(offline, shop) as here:
        agent = here.client(here.token("agent", "write", [shop]))
        purged = agent.delete(f"{V1}/memories/{id}", params={"purge": "true"})
        assert body(purged)["status"] == "proposed" and "Never push" in rule.read_text()
        assert body(here.owner.delete(f"{V1}/memories/{id}", params={"purge": "true"}))["hints"]
        assert not rule.exists()


def test_a_list_has_pages_and_an_export_streams_every_memory_as_lines(api):
    ids = api.add(*(f"Line {number}: {number * 31}" for number in range(250)), dedup=False)
    first = api("GET /memories", limit=100)
    assert (first["total"], first["next"]) == (250, 100)
    pages = api.page("GET /memories", limit=100)
    assert [one["id"] for page in pages for one in page["items"]] == list(reversed(ids))
    api(f"DELETE /memories/{ids[0]}")
    response = api.send("GET /export")
    assert response.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line)["id"] for line in response.text.splitlines()] == ids
    assert len(api.send("GET /export", everything="false").text.splitlines()) == 249


def test_a_session_is_found_by_the_beginning_of_its_id_with_its_topics(api, served):
    scope, now = served.projects.home.container(api.container), datetime.now(UTC)
    made = [Session(f"s0{n}", scope, "claude", f"Talk {n}", started_at=now) for n in range(3)]
    span = Span("t1", scope, "s01", None, "Moving the cache", "Redis goes", (1, 9), 0, now)
    batch = Batch(at=now, sessions=tuple(made), spans=((span, ()),))
    served.projects.base.store.write(batch)
    assert [one["name"] for one in api("GET /sessions/s01")["topics"]] == ["Moving the cache"]
    api.fails("GET /sessions/zz", 404)
    s0 = {"session": "s0"}
    asked = {"GET /sessions/s0": {}, "GET /memories": s0, "GET /search": {"query": "x", **s0}}
    for address, given in asked.items():
        assert "s00, s01, s02" in str(problem(api.send(address, **given), 409))
    assert api.list(session="s01") == []


def test_other_machines_of_a_team_exchange_whole_memories(api):
    api.add("Owls hunt at night")
    ((id, version, hash, *rest),) = api("POST /sync/outline")["lines"]
    assert rest == [True]
    bundle = api("POST /sync/records", ids=[id])["bundle"]
    assert api("POST /sync/take", bundle=bundle, expect={id: version}) == {"left": []}
    assert api("POST /sync/take", bundle=bundle, expect={id: None}) == {"left": [id]}
    assert api("POST /sync/purged", hashes=[hash]) == {"purged": []}
    assert api("POST /sync/remove", purge=[id]) == {"removed": 1}
    assert api("POST /sync/outline")["lines"] == []


def test_every_operation_is_described_once_has_a_sentence_and_is_tried_by_a_test():
    tabled = {route for _, _, route, _, _ in surface.OPERATIONS.values()} - {"-"}
    assert tabled == {f"{one.method} {one.path}" for one in OPERATIONS}
    described = http_api.describe()["paths"].values()
    found = [about for methods in described for about in methods.values()]
    assert len({about["operationId"] for about in found}) == len(found) == len(OPERATIONS)
    assert all(about["summary"] and about["tags"][0] for about in found)
    here = Path(__file__).parent
    files = ("test_http_api.py", "test_browsing.py", "golden/requests.txt")
    text = "".join((here / name).read_text("utf-8") for name in files)
    for operation in OPERATIONS:
        pattern = re.sub(r"\{\w+\}", r"[^/\"\\s?]+", operation.path)
        assert re.search(rf'{operation.method} {pattern}["?\s]', text), operation


def test_the_page_needs_nothing_from_elsewhere(served):
    response = served.client(None).get(f"{V1}/docs")
    assert response.status_code == 200
    policy = response.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy
    files = re.findall(r"/static/[\w.]+", response.text)
    text = "".join(served.client(None).get(file).text for file in files) + response.text
    elsewhere = r"(?:src|href)=\"(?!openapi\.json|/static/)|https?://|@import|url\("
    assert len(files) == 2 and not re.search(elsewhere, text)
    assert served.client(None).get(f"{V1}/openapi.json").json()["openapi"] == "3.1.0"
