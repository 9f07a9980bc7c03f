"""Every operation of the REST API: it does what it says, and answers in the form that the OpenAPI page promises."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from http_server import body, conforms, problem, served

from bethink.store.places import content_hash
from bethink.surface.http import api as http_api
from bethink.surface.http.api import OPERATIONS
from bethink.text.ids import new_id
from bethink.types import Batch, Entry, Memory, Session, Source, Span, idea_position

__all__ = ["served"]
V1 = "/api/v1"


class Api:
    """Calls the API in a container of its own and holds each answer against its description."""

    def __init__(self, served, container):
        self.served, self.container = served, container
        self.client = served.owner

    def send(self, method, path, params=None, headers=None, **fields):
        where = {"container": self.container, **(params or {})}
        response = self.client.request(
            method, V1 + path, params=where, json=fields or None, headers=headers
        )
        operation = next(
            one
            for one in OPERATIONS
            if one.method == method and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", one.path), path)
        )
        if response.status_code < 300 and operation.answer:
            conforms(operation, response)
            assert (
                str(response.status_code)
                in http_api.describe()["paths"][V1 + operation.path][method.lower()]["responses"]
            )
        return response

    def ok(self, method, path, status=200, **fields):
        return body(self.send(method, path, **fields), status)

    def fails(self, method, path, status, **fields):
        return problem(self.send(method, path, **fields), status)

    def add(self, *texts, status=201, **more):
        found = self.ok(
            "POST",
            "/memories",
            status=status,
            memories=[{"content": text} for text in texts],
            **more,
        )
        return [outcome["id"] for outcome in found["outcomes"]]

    def list(self, **params):
        return self.ok("GET", "/memories", params=params)["items"]


@pytest.fixture
def api(served, request):
    return Api(served, re.sub(r"\W+", "-", request.node.name)[:60])


def test_what_is_added_is_found_by_search_in_both_forms(api):
    api.add("We deploy from main, never from a branch", "The orders service uses PostgreSQL")
    asked = {"query": "how do we deploy?"}
    by_address = api.ok("GET", "/search", params=asked)
    by_body = api.ok("POST", "/search", **asked)
    assert by_address["items"][0]["content"] == "We deploy from main, never from a branch"
    assert [hit["id"] for hit in by_address["items"]] == [hit["id"] for hit in by_body["items"]]
    assert "why" not in by_address["items"][0]
    assert (
        api.ok("GET", "/search", params={**asked, "explain": "true", "mode": "keyword"})["items"][
            0
        ]["why"]["relevance"]
        > 0
    )


def test_a_search_has_pages_that_never_repeat_a_memory(api):
    api.add(
        *(
            f"Build number {number} uses a cache of its own, kind {number * 7}"
            for number in range(25)
        ),
        dedup=False,
    )
    seen, cursor = [], None
    while True:
        found = api.ok(
            "GET",
            "/search",
            params={
                "query": "cache build",
                "limit": 10,
                "intent": "explore",
                **({"cursor": cursor} if cursor else {}),
            },
        )
        seen += [hit["id"] for hit in found["items"]]
        if not (cursor := found["next"]):
            break
    assert len(seen) == len(set(seen)) == found["total"] == 25


def test_recall_answers_within_its_budget(api):
    api.add(
        "The orders service moved from MySQL to PostgreSQL because of jsonb",
        "Invoices are sent at night",
        "Deployments wait for two reviews",
    )
    found = api.ok("POST", "/recall", query="which database do orders use?", max_tokens=120)
    assert found["tokens_used"] <= 120
    assert "PostgreSQL" in found["details"][0]["content"]
    same = api.ok(
        "GET", "/recall", params={"query": "which database do orders use?", "max_tokens": 120}
    )
    assert [line["id"] for line in same["index"]] == [line["id"] for line in found["index"]]


def test_a_batch_says_what_became_of_each_and_takes_secrets_out(api):
    (first,) = api.add("Staging runs on port 8443")
    batch = [
        "Staging runs on port 8443",
        "The key is <private>hunter2</private>, ask Ada for it",
        "Invoices are sent at night",
    ]
    found = api.ok("POST", "/memories", status=201, memories=[{"content": text} for text in batch])
    assert [outcome["status"] for outcome in found["outcomes"]] == ["duplicate", "added", "added"]
    assert found["outcomes"][0]["duplicate_of"] == first
    assert found["outcomes"][1]["redactions"] == 1
    assert found["added"] == 2
    assert api.ok("POST", "/memories", status=200, memories=[{"content": batch[0]}])["added"] == 0
    assert not any("hunter2" in one["content"] for one in api.list())


def test_a_batch_with_a_wrong_statement_stores_nothing(api):
    texts = ["This one is fine", "<private>all of it</private>"]
    found = api.fails("POST", "/memories", 422, memories=[{"content": text} for text in texts])
    assert found["detail"].startswith("memories[1]: ")
    assert api.list() == []


def test_a_repeated_request_with_the_same_key_is_done_once(api):
    def send(text, key):
        return api.send(
            "POST",
            "/memories",
            memories=[{"content": text}],
            dedup=False,
            headers={"Idempotency-Key": key},
        )

    first, again = (
        send("The cache is warm after a minute", "k1"),
        send("The cache is warm after a minute", "k1"),
    )
    assert body(first, 201) == body(again, 201)
    assert "another request" in problem(send("Something else", "k1"), 422)["detail"]
    assert body(send("Something else entirely", "k2"), 201)["added"] == 1
    assert len(api.list()) == 2


def test_a_failed_request_leaves_its_key_free(api):
    def send(text):
        return api.send(
            "POST",
            "/memories",
            memories=[{"content": text}],
            headers={"Idempotency-Key": "once more"},
        )

    problem(send("   "), 422)
    assert body(send("Now with words"), 201)["added"] == 1


def test_personal_memories_are_seen_from_every_project(api):
    (id,) = api.add("I prefer short commit messages in the imperative", personal=True)
    found = api.ok(
        "GET",
        "/search",
        params={"query": "commit messages", "personal": "true", "container": "elsewhere"},
    )
    assert [(hit["id"], hit["scope"]) for hit in found["items"]] == [(id, "personal")]
    api.ok("DELETE", f"/memories/{id}", params={"purge": "true"})


def test_a_new_statement_replaces_an_old_one(api):
    (old,) = api.add("We review every change by two people")
    found = api.ok(
        "POST",
        "/memories",
        status=201,
        memories=[{"content": "We review every change by one person", "supersedes": [old[:20]]}],
    )
    new = found["outcomes"][0]
    assert new["supersedes"] == [old]
    assert [one["id"] for one in api.list()] == [new["id"]]
    related = api.ok("GET", f"/memories/{new['id']}")["related"]
    assert [(one["type"], one["direction"], one["id"]) for one in related] == [
        ("supersedes", "out", old)
    ]


def test_a_memory_counts_its_uses_unless_asked_not_to(api):
    (id,) = api.add("Uses are counted")
    api.ok("GET", f"/memories/{id}", params={"count": "false"})
    assert api.ok("GET", f"/memories/{id}")["access_count"] == 1
    assert api.ok("POST", "/memories/get", ids=[id, id[:20]])["items"][0]["access_count"] == 2
    assert api.ok("POST", "/memories/get", ids=[id], count=False)["items"][0]["access_count"] == 2


def test_an_update_changes_what_is_given_and_null_empties_a_time(api):
    (id,) = api.add("We deploy on Fridays")
    changed = api.ok(
        "PATCH",
        f"/memories/{id}",
        content="We deploy on Mondays",
        importance=8,
        expires="30d",
        tags=["release"],
    )
    assert (changed["content"], changed["importance"], changed["tags"]) == (
        "We deploy on Mondays",
        8.0,
        ["release"],
    )
    assert changed["expires_at"]
    assert api.ok("PATCH", f"/memories/{id}", expires=None)["expires_at"] is None
    assert (
        "Nothing to change"
        in problem(
            api.client.patch(f"{V1}/memories/{id}", params={"container": api.container}, json={}),
            422,
        )["detail"]
    )


def test_an_update_of_a_version_that_is_gone_is_refused(api):
    (id,) = api.add("The limit is ten requests a second")
    path = f"/memories/{id}"
    seen = api.ok("GET", path)["updated_at"]
    assert api.ok("GET", path)["updated_at"] == seen  # a use is no change
    first = api.ok("PATCH", path, content="The limit is twenty requests a second", updated_at=seen)
    late = api.fails("PATCH", path, 409, content="The limit is five a second", updated_at=seen)
    assert "changed since" in late["detail"]
    assert api.ok("PATCH", path, importance=3, updated_at=first["updated_at"])["importance"] == 3


def test_what_is_forgotten_can_be_restored_and_what_is_purged_cannot(api):
    one, two, three = api.add(
        "Alpha rollout is paused", "Beta testers come from Norway", "Gamma values are cached"
    )
    assert api.ok("DELETE", f"/memories/{one}") == {"id": one, "status": "forgotten"}
    assert api.ok("POST", "/memories/forget", ids=[two])["items"] == [
        {"id": two, "status": "forgotten"}
    ]
    assert {one["id"] for one in api.list()} == {three}
    assert api.ok("POST", f"/memories/{one}/restore", **{"version": None})["deleted_at"] is None
    assert api.ok("DELETE", f"/memories/{three}", params={"purge": "true"})["status"] == "purged"
    api.fails("GET", f"/memories/{three}", 404)
    assert (
        api.ok("POST", "/memories", status=200, memories=[{"content": "Gamma values are cached"}])[
            "outcomes"
        ][0]["status"]
        == "purged"
    )
    assert (
        api.ok(
            "POST",
            "/memories",
            status=201,
            force=True,
            memories=[{"content": "Gamma values are cached"}],
        )["added"]
        == 1
    )


def test_a_purge_says_where_a_conversation_still_says_it(api, served):
    """An idea goes with the turn of the same words; a turn that says more is named."""
    scope, now = served.projects.home.container(api.container), datetime.now(UTC)

    def said(content, position):
        hash = content_hash(content)
        return Memory(
            new_id(),
            scope,
            "fact",
            content,
            content,
            now,
            now,
            content_hash=hash,
            source="/t/a",
            session="s",
            position=position,
        )

    turn, more, idea, part = (
        said("Tea", 0),
        said("Tea. Milk", 1),
        said("Tea", idea_position(0, 0)),
        said("Milk", idea_position(1, 0)),
    )
    add = tuple(Entry(memory, unique=False) for memory in (turn, more, idea, part))
    served.projects.base.store.write(
        Batch(at=now, sources=((scope, Source("/t/a", "transcript")),), add=add)
    )
    found = api.ok("POST", "/memories/forget", ids=[idea.id], purge=True)
    assert found == {"items": [{"id": id, "status": "purged"} for id in (idea.id, turn.id)]}
    found = api.ok("DELETE", f"/memories/{part.id}", params={"purge": "true"})
    assert found == {"id": part.id, "status": "purged", "remains": [more.id]}


def test_history_numbers_versions_and_restore_goes_back_to_one(api):
    (id,) = api.add("The port is 80")
    api.ok("PATCH", f"/memories/{id}", content="The port is 443", tags=["net"])
    events = api.ok("GET", f"/memories/{id}/history")["items"]
    assert [(event["version"], event["action"], event["actor"]) for event in events] == [
        (1, "add", "user"),
        (2, "update", "user"),
    ]
    assert events[1]["after"]["tags"] == ["net"]
    assert api.ok("POST", f"/memories/{id}/restore", version=1)["content"] == "The port is 80"
    assert "no version 9" in api.fails("POST", f"/memories/{id}/restore", 404, version=9)["detail"]


def test_votes_add_up(api):
    (id,) = api.add("Votes are kept")
    api.ok("POST", f"/memories/{id}/votes", value=3)
    assert api.ok("POST", f"/memories/{id}/votes", value=-1)["usefulness"] == 2


def test_memories_are_linked_and_unlinked(api):
    question, answer = api.add("Which queue do we use?", "RabbitMQ is our queue")
    made = api.ok(
        "POST", f"/memories/{answer}/relations", status=201, target=question, type="answers"
    )
    assert made == {"source": answer, "type": "answers", "target": question, "status": "linked"}
    assert api.ok("GET", f"/memories/{question}")["answered"] is True
    removed = api.ok(
        "DELETE", f"/memories/{answer}/relations", params={"target": question, "type": "answers"}
    )
    assert removed["status"] == "removed"
    api.fails(
        "DELETE",
        f"/memories/{answer}/relations",
        404,
        params={"target": question, "type": "answers"},
    )


def test_a_list_has_pages_that_lose_nothing_when_memories_come_and_go(api):
    ids = api.add(
        *(f"Note number {number} about topic {number * 13}" for number in range(30)), dedup=False
    )
    first = api.ok("GET", "/memories", params={"limit": 10})
    assert first["total"] == 30
    api.ok("POST", "/memories/forget", ids=[one["id"] for one in first["items"][:4]])
    api.add("A memory that came in between")
    seen = [one["id"] for one in first["items"]]
    cursor = first["next"]
    while cursor:
        page = api.ok("GET", "/memories", params={"limit": 10, "cursor": cursor})
        seen += [one["id"] for one in page["items"]]
        cursor = page["next"]
    assert seen == list(reversed(ids))


def test_an_export_streams_every_memory_as_lines(api):
    ids = api.add(*(f"Line {number}: {number * 31}" for number in range(250)), dedup=False)
    api.ok("DELETE", f"/memories/{ids[0]}")
    response = api.send("GET", "/export")
    assert response.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line)["id"] for line in response.text.splitlines()] == ids
    few = api.send("GET", "/export", params={"everything": "false"})
    assert len(few.text.splitlines()) == 249


def test_a_handoff_is_left_and_read_and_replaces_the_last(api):
    (id,) = api.add("Reads go to the replica")
    api.fails("GET", "/handoff", 404)
    saved = api.ok(
        "POST",
        "/handoff",
        summary="The cache is moved",
        next_steps=["delete Redis"],
        memory_ids=[id[:20]],
        branch="main",
    )
    assert saved["status"] == "saved"
    given = {"summary": "The cache is gone", "branch": "main", "metadata": {"ticket": 12}}
    again = api.ok("POST", "/handoff", **given)
    assert again["supersedes"] == [saved["id"]]
    found = api.ok("GET", "/handoff", params={"branch": "main"})
    assert {**found, **given, "exact": True} == found
    assert api.ok("GET", "/handoff", params={"branch": "other"})["exact"] is False
    assert api.ok("GET", f"/memories/{id}", params={"count": "false"})["access_count"] == 1


def test_documents_are_taken_in_cited_and_replaced_under_their_path(api):
    deploy = {
        "path": "docs/deploy.md",
        "content": "# Deploy\n\nWe ship on Tuesdays with the blue script.\n",
    }
    notes = {
        "path": "notes/caches.md",
        "content": "# Caches\n\nThe walrus cache is warmed at night.\n",
    }
    taken = api.ok("POST", "/documents", documents=[deploy, notes])
    assert (taken["added"], taken["memories_added"]) == (["docs/deploy.md", "notes/caches.md"], 2)
    assert api.ok("POST", "/documents", documents=[deploy])["unchanged"] == 1
    (hit,) = api.ok("GET", "/search", params={"query": "walrus", "mode": "keyword"})["items"]
    assert (hit["source"], hit["lines"]) == ("notes/caches.md", [1, 3])
    changed = api.ok("POST", "/documents", documents=[{**notes, "content": ""}])
    assert (changed["changed"], changed["memories_retired"]) == (["notes/caches.md"], 1)
    assert api.ok("GET", "/search", params={"query": "walrus", "mode": "keyword"})["items"] == []


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../up.md", "a/../../b.md", "code:main.py", "C:\\x.md", "a\x00b", " "]
)
def test_a_document_may_not_lie_outside_its_project(api, path):
    api.fails("POST", "/documents", 422, documents=[{"path": path, "content": "# A\n\nb"}])


def test_sessions_and_their_topics_are_listed(api, served):
    scope = served.projects.home.container(api.container)
    now = datetime.now(UTC)
    sessions = tuple(
        Session(f"s{number:02}", scope, "claude", f"Talk {number}", started_at=now)
        for number in range(3)
    )
    span = Span("t1", scope, "s01", None, "Moving the cache", "Redis goes", (1, 9), 0, now)
    served.projects.base.store.write(Batch(at=now, sessions=sessions, spans=((span, ()),)))
    first = api.ok("GET", "/sessions", params={"limit": 2})
    rest = api.ok("GET", "/sessions", params={"limit": 2, "cursor": first["next"]})
    assert len({one["id"] for one in first["items"] + rest["items"]}) == 3
    assert rest["next"] is None
    assert [topic["name"] for topic in api.ok("GET", "/sessions/s01")["topics"]] == [
        "Moving the cache"
    ]
    api.fails("GET", "/sessions/zz", 404)
    elsewhere = Session("far", "project:elsewhere", "claude", "Far", started_at=now)
    served.projects.base.store.write(Batch(at=now, sessions=(elsewhere,)))
    every = api.ok("GET", "/sessions", params={"all_projects": True, "limit": 50})["items"]
    assert {"s01", "far"} <= {one["id"] for one in every}
    assert all(one["scope"] for one in every)
    for path, asked in (
        ("/sessions/s0", {}),
        ("/memories", {"session": "s0"}),
        ("/search", {"query": "x", "session": "s0"}),
    ):
        told = api.send("GET", path, params=asked)
        assert told.status_code == 409 and "s00, s01, s02" in told.text, told.text
    assert api.ok("GET", "/memories", params={"session": "s01"})["items"] == []


def test_what_stands_around_a_memory_is_shown(api):
    (id,) = api.add("Alone in its source")
    assert [one["id"] for one in api.ok("GET", f"/memories/{id}/around")["items"]] == [id]


def test_duplicates_and_contradictions_are_listed_and_consolidated(api):
    texts = ("The nightly build takes forty minutes", "The nightly build takes about forty minutes")
    one, two = api.add(*texts, dedup=False)
    api.ok("POST", f"/memories/{one}/relations", status=201, target=two, type="contradicts")
    assert {pair["reason"] for pair in api.ok("GET", "/contradictions")["items"]} == {
        "marked as contradicting"
    }
    api.ok("DELETE", f"/memories/{one}/relations", params={"target": two, "type": "contradicts"})
    assert len(api.ok("GET", "/duplicates")["items"]) == 1
    plan = api.ok("POST", "/consolidation", dry_run=True)
    assert plan["done"] == 0
    done = api.ok("POST", "/consolidation", dry_run=False)
    assert done["done"] == len(plan["steps"])


def test_numbers_health_and_projects_are_told(api):
    api.add("Counted")
    scope = api.served.projects.home.container(api.container)
    found = api.ok("GET", "/stats")
    assert found["by_scope"][scope] == 1
    assert found["database"]["database_bytes"] > 0
    assert api.ok("GET", "/health")["status"] == "ok"
    listed = api.ok("GET", "/projects")
    assert scope in {one["scope"] for one in listed["items"]}
    assert listed["personal"] is True


def test_a_job_runs_in_the_background_and_tells_what_it_did(api, served):
    folder = served.projects.home.root / ".claude" / "knowledge"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "deploy.md").write_text("# Deploying\n\nWe deploy from main, after two reviews.\n")
    job = api.ok("POST", "/jobs", status=202, task="index")
    until = time.monotonic() + 20
    while (found := api.ok("GET", f"/jobs/{job['id']}"))["state"] == "running":
        assert time.monotonic() < until
    assert (found["state"], found["error"]) == ("done", None), found
    assert found["result"]["memories"]["added"] == 1
    assert [one["id"] for one in api.ok("GET", "/jobs")["items"]] == [job["id"]]
    api.fails("GET", "/jobs/nope", 404)


def test_other_machines_of_a_team_exchange_whole_memories(api):
    api.ok("POST", "/memories", status=201, memories=[{"content": "Owls hunt at night"}])
    ((id, version, hash, alone),) = api.ok("POST", "/sync/outline", what=["told"])["lines"]
    assert alone
    bundle = api.ok("POST", "/sync/records", ids=[id])["bundle"]
    assert api.ok("POST", "/sync/take", bundle=bundle, expect={id: version}) == {"left": []}
    assert api.ok("POST", "/sync/take", bundle=bundle, expect={id: None}) == {"left": [id]}
    assert "sources" in api.ok("POST", "/sync/places", what=["told"])["bundle"]
    assert api.ok("POST", "/sync/purged", hashes=[hash]) == {"purged": []}
    assert api.ok("POST", "/sync/remove", gone=[id]) == {"removed": 1, "left": []}
    assert api.ok("POST", "/sync/outline", what=["told"])["lines"] == []


def test_every_operation_is_described_once_and_has_a_sentence():
    described = http_api.describe()["paths"]
    names = [about["operationId"] for methods in described.values() for about in methods.values()]
    assert len(names) == len(set(names)) == len(OPERATIONS)
    assert all(
        about["summary"] and about["tags"][0]
        for methods in described.values()
        for about in methods.values()
    )


def test_every_operation_is_tried_by_a_test():
    text = "".join(
        Path(__file__).with_name(name).read_text("utf-8")
        for name in ("test_http_api.py", "test_browsing.py")
    )
    for operation in OPERATIONS:
        pattern = re.sub(r"\{\w+\}", r"[^/\"]+", operation.path)
        assert re.search(rf'"{operation.method}", f?"{pattern}"', text), operation


def test_the_page_needs_nothing_from_elsewhere(served):
    response = served.client(None).get(f"{V1}/docs")
    assert response.status_code == 200
    policy = response.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.search(r"(?:src|href)=\"(?!openapi\.json)|https?://|@import|url\(", response.text)
    assert served.client(None).get(f"{V1}/openapi.json").json()["openapi"] == "3.1.0"


def test_metrics_count_requests_by_route_and_never_by_what_was_sent(api):
    api.add("Counted by Prometheus")
    api.ok("GET", "/search", params={"query": "zebra"})
    response = api.client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = response.text
    assert re.search(
        r'bethink_requests_total\{method="GET",route="/api/v1/search",status="200"\} [1-9]', text
    )
    assert re.search(
        r'bethink_request_seconds_bucket\{route="/api/v1/search",le="\+Inf"\} [1-9]', text
    )
    assert re.search(r"^bethink_memories [1-9]", text, re.MULTILINE)
    assert "zebra" not in text
    assert re.search(r"^bethink_database_bytes [1-9]", text, re.MULTILINE)
