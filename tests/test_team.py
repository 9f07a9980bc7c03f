"""A team on PostgreSQL: several real server processes on one database, tokens per person, tenants that do not meet."""

from __future__ import annotations

import json
import os
import signal
import threading
from contextlib import ExitStack
from types import SimpleNamespace

import httpx2
import postgres
import pytest
from cli_runner import cli  # noqa: F401
from http_server import body, problem
from test_http_serve import started

V1 = "/api/v1"
SHOP = {"project": "team:shop"}


@pytest.fixture
def store_kind():
    """These tests say themselves which database is meant."""
    return "sqlite"


class Servers:
    """Two servers of one team, and clients for them."""

    def __init__(self, urls, place, tenant, stack):
        self.urls, self.place, self.tenant, self._stack = urls, place, tenant, stack

    def client(self, number, token):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return self._stack.enter_context(
            httpx2.Client(base_url=self.urls[number], headers=headers, timeout=30, trust_env=False)
        )

    def both(self, token):
        return [self.client(number, token) for number in range(len(self.urls))]


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """Two servers for the whole file. Which tenant a request is about, its token says."""
    place = SimpleNamespace(
        home=tmp_path_factory.mktemp("home"), project=tmp_path_factory.mktemp("served")
    )
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("BETHINK_EMBEDDING", "hashing")
        patch.setenv("BETHINK_OFFLINE", "1")
        tenant = postgres.use(patch)
        running = [stack.enter_context(started(place)) for _ in range(2)]
        yield Servers([url for _, url in running], place, tenant, stack)


@pytest.fixture
def team(servers, cli, monkeypatch):  # noqa: F811
    """The servers, and a tenant of the test's own."""
    postgres.use(monkeypatch)
    return servers


def token(cli, name, *words):  # noqa: F811
    return cli.ok("token", "create", "--name", name, "--person", name, *words).strip()


def test_a_token_holds_on_every_server_until_it_is_revoked(cli, team):  # noqa: F811
    secret = token(cli, "anna", "--scope", "write", "--team", "shop", "--personal")
    one, other = team.both(secret)
    added = body(
        one.post(
            f"{V1}/memories", json={"memories": [{"content": "We deploy from main"}]}, params=SHOP
        ),
        201,
    )
    found = body(other.get(f"{V1}/search", params={"query": "how do we deploy?", **SHOP}))
    assert [hit["id"] for hit in found["items"]] == [added["outcomes"][0]["id"]]
    assert not (cli.home / "tokens.json").exists()
    listed = cli.json("token", "list")
    assert [
        (one["name"], one["person"], one["state"], [project["name"] for project in one["projects"]])
        for one in listed
    ] == [("anna", "anna", "active", ["shop"])]
    assert listed[0]["used"]
    assert "already" in cli.fails("token", "create", "--name", "anna", code=2)
    cli.ok("token", "revoke", "anna")
    for client in (one, other):
        problem(client.get(f"{V1}/memories", params=SHOP), 401)
    assert token(cli, "anna", "--team", "shop") != secret


def test_a_request_that_reaches_both_servers_is_done_once(cli, team):  # noqa: F811
    secret = token(cli, "anna", "--scope", "write", "--team", "shop")
    answers: list[httpx2.Response] = []

    def post(client, key):
        answers.append(
            client.post(
                f"{V1}/memories",
                params=SHOP,
                headers={"Idempotency-Key": key},
                json={"memories": [{"content": f"Said under {key}"}], "dedup": False},
            )
        )

    for key in ("a", "b", "c"):
        threads = [
            threading.Thread(target=post, args=(client, key))
            for client in team.both(secret)
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert {answer.status_code for answer in answers} <= {
        200,
        201,
        409,
    }  # 409: the same server is at it
    listed = body(team.client(0, secret).get(f"{V1}/memories", params=SHOP))["items"]
    assert sorted(one["content"] for one in listed) == [
        "Said under a",
        "Said under b",
        "Said under c",
    ]
    again = team.client(1, secret)
    for key in ("a", "b", "c"):
        post(again, key)
        assert answers[-1].status_code == 201
        assert answers[-1].json()["outcomes"][0]["id"] in {one["id"] for one in listed}


def test_people_share_a_project_and_keep_what_is_personal_to_themselves(cli, team):  # noqa: F811
    anna, ben = (
        team.client(number, token(cli, name, "--scope", "write", "--team", "shop", "--personal"))
        for number, name in enumerate(("anna", "ben"))
    )
    anna.post(
        f"{V1}/memories",
        json={"memories": [{"content": "Anna likes tea"}], "personal": True},
        params=SHOP,
    )
    anna.post(f"{V1}/memories", json={"memories": [{"content": "The shop sells tea"}]}, params=SHOP)
    assert {one["content"] for one in body(anna.get(f"{V1}/memories", params=SHOP))["items"]} == {
        "Anna likes tea",
        "The shop sells tea",
    }
    (shared,) = body(ben.get(f"{V1}/memories", params=SHOP))["items"]
    assert shared["content"] == "The shop sells tea"
    assert [
        hit["content"]
        for hit in body(ben.get(f"{V1}/search", params={"query": "tea", **SHOP}))["items"]
    ] == ["The shop sells tea"]
    actors = [
        event["actor"]
        for event in body(ben.get(f"{V1}/memories/{shared['id']}/history", params=SHOP))["items"]
    ]
    assert actors and all("anna" in actor for actor in actors)


def test_a_token_for_personal_memories_says_whose(cli, team):  # noqa: F811
    told = cli.fails("token", "create", "--name", "anna", "--team", "shop", "--personal", code=2)
    assert "Whose personal memories" in told
    assert "--person NAME" in told
    assert cli.json("token", "list") == []
    cli.ok("token", "create", "--name", "ci", "--team", "shop")  # a machine needs no person


def test_a_server_for_one_tenant_shows_nothing_of_another(cli, team, monkeypatch):  # noqa: F811
    mine = team.client(0, token(cli, "anna", "--scope", "write", "--all-projects"))
    id = body(
        mine.post(
            f"{V1}/memories", json={"memories": [{"content": "Our secret plans"}]}, params=SHOP
        ),
        201,
    )["outcomes"][0]["id"]
    monkeypatch.setenv("BETHINK_TENANT", postgres.new_tenant())
    other = team.client(
        0, token(cli, "anna", "--scope", "write", "--all-projects")
    )  # a token of another tenant, on the same server
    assert body(other.get(f"{V1}/memories", params=SHOP))["items"] == []
    assert body(other.get(f"{V1}/search", params={"query": "secret plans", **SHOP}))["items"] == []
    problem(other.get(f"{V1}/memories/{id}", params=SHOP), 404)
    assert "shop" not in {one["name"] for one in body(other.get(f"{V1}/projects"))["items"]}
    assert body(other.post(f"{V1}/sync/outline", json={}, params=SHOP))["lines"] == []
    assert "bethink_memories 0" in other.get("/metrics").text
    other.post(f"{V1}/memories", json={"memories": [{"content": "Theirs"}]}, params=SHOP)
    assert [one["content"] for one in body(mine.get(f"{V1}/memories", params=SHOP))["items"]] == [
        "Our secret plans"
    ]
    assert [one["name"] for one in cli.json("token", "list")] == ["anna"]


def plan(client, **query):
    """The server's answer to an agent that reads a knowledge file."""
    asked = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "resources/read",
        "params": {"uri": "memory://plan.md"},
    }
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-06-18",
    }
    return client.post("/mcp", params=query, json=asked, headers=headers).text


def test_files_of_a_servers_machine_are_its_own_tenants_and_conversations_its_owners(
    cli,  # noqa: F811
    team,
    tmp_path,
    monkeypatch,
):
    served, other = team.place.project, tmp_path / "other"
    for folder in (served, other):
        (folder / ".claude" / "knowledge").mkdir(parents=True)
        (folder / ".claude" / "knowledge" / "plan.md").write_text("# Plan\n\nMove to the sea\n")
    foreign = {
        "everything": token(cli, "eve", "--scope", "write", "--all-projects"),
        "the same folder": token(cli, "mallory", "--scope", "write", "--project", str(served)),
    }
    for what, secret in foreign.items():
        client = team.client(0, secret)
        for task in ("index", "backfill", "analyze"):
            assert client.post(f"{V1}/jobs", json={"task": task}).status_code == 403, (what, task)
        for name in (
            served,
            other,
        ):  # known by name in this tenant, as it is to the server by folder
            client.post(
                f"{V1}/memories",
                params={"project": f"team:{name.name}"},
                json={"memories": [{"content": "Known here now"}]},
            )
            assert "sea" not in plan(client, project=str(name)), (what, name)
        assert "sea" not in plan(client), what
    for address in ("projects", "scopes"):
        paths = {
            one["path"]
            for one in body(team.client(0, foreign["everything"]).get(f"{V1}/{address}"))["items"]
        }
        assert paths == {None}
    monkeypatch.setenv("BETHINK_TENANT", team.tenant)
    own = team.client(0, token(cli, "anna", "--scope", "write", "--all-projects"))
    assert "sea" in plan(own)
    body(own.post(f"{V1}/jobs", json={"task": "index"}), 202)
    assert "owner" in problem(own.post(f"{V1}/jobs", json={"task": "backfill"}), 403)["detail"]
    own.post(
        f"{V1}/memories",
        params={"project": "team:other"},
        json={"memories": [{"content": "Known here now"}]},
    )
    assert "sea" not in plan(
        own, project=str(other)
    )  # the server was started for one project of its machine


def test_an_update_that_somebody_overtook_on_the_other_server_is_refused(cli, team):  # noqa: F811
    one, other = team.both(token(cli, "anna", "--scope", "write", "--team", "shop"))
    id = body(
        one.post(f"{V1}/memories", json={"memories": [{"content": "Tea at four"}]}, params=SHOP),
        201,
    )["outcomes"][0]["id"]
    seen = body(one.get(f"{V1}/memories/{id}", params=SHOP))["updated_at"]
    answers = []

    def change(client, text):
        answers.append(
            client.patch(
                f"{V1}/memories/{id}", json={"content": text, "updated_at": seen}, params=SHOP
            ).status_code
        )

    threads = [
        threading.Thread(target=change, args=(client, f"Tea at {number}"))
        for number, client in enumerate((one, other) * 3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200, 409, 409, 409, 409, 409]


def test_a_server_that_is_killed_takes_nothing_with_it(cli, team):  # noqa: F811
    secret = token(cli, "anna", "--scope", "write", "--team", "shop")
    with started(team.place) as (process, url):
        with httpx2.Client(
            base_url=url, headers={"Authorization": f"Bearer {secret}"}, timeout=30, trust_env=False
        ) as client:
            told = body(
                client.post(
                    f"{V1}/memories",
                    json={"memories": [{"content": "Told to another"}]},
                    params=SHOP,
                ),
                201,
            )
        process.send_signal(signal.SIGKILL)
        process.wait(20)
    assert (
        body(team.client(0, secret).get(f"{V1}/memories/{told['outcomes'][0]['id']}", params=SHOP))[
            "content"
        ]
        == "Told to another"
    )


def test_a_laptop_is_brought_in_step_with_the_team_by_address_and_by_database(
    cli,  # noqa: F811
    team,
    tmp_path,
    monkeypatch,
):
    monkeypatch.setenv("BETHINK_TOKEN", token(cli, "anna", "--scope", "write", "--team", "shop"))
    monkeypatch.delenv("BETHINK_DATABASE")
    told = cli.add("Told on the laptop")
    assert cli.json("sync", "--with", team.urls[0])["pushed"] == 1
    again = cli.json("sync", "--with", team.urls[0])
    assert (again["pushed"], again["pulled"]) == (0, 0)
    with postgres.shared().act_as(os.environ["BETHINK_TENANT"], "").transaction() as connection:
        found = connection.execute("SELECT actor FROM history").fetchall()
    assert found == [("anna",)], "the team reads who told it"
    assert [event["actor"] for event in cli.json("history", told)] == ["user"]
    other = ("--database", str(tmp_path / "other.db"))
    assert cli.json("sync", "--with", postgres.database_url(), *other)["pulled"] == 1
    cli.ok("add", "Told on another", *other)
    result = cli("sync", "--with", postgres.database_url(), "--json", *other)
    assert json.loads(result.out)["pushed"] == 1
    assert postgres.PASSWORD not in result.out + result.err
    assert cli.json("sync", "--with", team.urls[1])["pulled"] == 1
    assert {one["content"] for one in cli.json("list")} == {"Told on the laptop", "Told on another"}


def test_a_memory_moves_to_the_teams_database_and_back(cli, tmp_path, monkeypatch):  # noqa: F811
    id = cli.add("We deploy from main")
    cli.ok("vote", id)
    monkeypatch.setenv("BETHINK_TENANT", postgres.new_tenant())
    there = cli.json("migrate", "--to", postgres.database_url())
    assert there["verified"]
    assert postgres.PASSWORD not in json.dumps(there)
    assert (
        cli.json("list", "--database", postgres.database_url())[0]["content"]
        == "We deploy from main"
    )
    back = cli.json(
        "migrate", "--database", postgres.database_url(), "--to", str(tmp_path / "back.db")
    )
    assert back["parts"] == cli.json("migrate", "--to", str(tmp_path / "copy.db"))["parts"]
    assert {part: one["number"] for part, one in back["parts"].items()} == {
        part: one["number"] for part, one in there["parts"].items()
    }
    assert [
        event["action"]
        for event in cli.json("history", id, "--database", str(tmp_path / "back.db"))
    ] == ["add", "vote"]
