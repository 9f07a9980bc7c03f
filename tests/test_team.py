"""A team on PostgreSQL: the command line, several real server processes on one database, tokens per person, tenants that do not meet."""

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from types import SimpleNamespace
from urllib.parse import urlencode

import httpx2
import postgres
import pytest
import test_web_session
from http_server import V1, body, problem
from test_http_serve import started
from test_web_session import FORM
from trees import git

from bethink import project

STORE = "sqlite"  # these tests say themselves where another is meant
SHOP = {"project": "team:shop"}


class Servers:
    """Two servers of one team, and clients for them."""

    def __init__(self, urls, place, tenant, stack):
        self.urls, self.place, self.tenant, self._stack = urls, place, tenant, stack

    def client(self, number, token, room="", **headers):
        sent = headers | ({"Authorization": f"Bearer {token}"} if token else {})
        how = {"headers": sent, "timeout": 30, "trust_env": False}
        return self._stack.enter_context(httpx2.Client(base_url=self.urls[number] + room, **how))

    def both(self, token):
        return [self.client(number, token) for number in range(len(self.urls))]


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """Two servers for the whole file. Which tenant a request is about, its token says."""
    home, project = (tmp_path_factory.mktemp(name) for name in ("home", "served"))
    place = SimpleNamespace(home=home, project=project)
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("BETHINK_EMBEDDING", "hashing")
        patch.setenv("BETHINK_OFFLINE", "1")
        tenant = postgres.use(patch)
        running = [stack.enter_context(started(place)) for _ in range(2)]
        yield Servers([url for _, url in running], place, tenant, stack)


@pytest.fixture
def team(servers, cli, monkeypatch):
    """The servers, and a tenant of the test's own."""
    postgres.use(monkeypatch)
    return servers


def token(cli, name, *words):
    return cli.ok("token", "create", "--name", name, "--person", name, *words).strip()


def add(client, text, project="team:shop", **more):
    """The id of a memory that a client tells."""
    told = {"memories": [{"content": text}], **more}
    answer = client.post(f"{V1}/memories", json=told, params={"project": project})
    return body(answer, 201)["outcomes"][0]["id"]


def contents(client, path="/memories", **params):
    found = body(client.get(V1 + path, params={**SHOP, **params}))["items"]
    return sorted(one["content"] for one in found)


def test_a_token_holds_on_every_server_until_it_is_revoked(cli, team):
    secret = token(cli, "anna", "--scope", "write", "--team", "shop", "--personal")
    one, other = team.both(secret)
    id = add(one, "We deploy from main")
    found = body(other.get(f"{V1}/search", params={"query": "how do we deploy?", **SHOP}))
    assert [hit["id"] for hit in found["items"]] == [id]
    assert not (cli.home / "tokens.json").exists()
    listed = cli.json("token", "list")
    (told,) = [(one["name"], one["person"], one["state"]) for one in listed]
    assert told == ("anna", "anna", "active")
    assert [project["name"] for project in listed[0]["projects"]] == ["shop"]
    assert "already" in cli.fails("token", "create", "--name", "anna", code=2)
    cli.ok("token", "revoke", "anna")
    for client in (one, other):
        problem(client.get(f"{V1}/memories", params=SHOP), 401)
    assert token(cli, "anna", "--team", "shop") != secret


def sign_in(team, number, secret):
    """A browser that signed in with a token at one of the servers, and the mark of its forms."""
    return test_web_session.sign_in(SimpleNamespace(client=partial(team.client, number)), secret)


def test_a_member_uses_the_web_page_until_the_token_is_revoked(cli, team, monkeypatch):
    anna, ben = (
        token(cli, name, "--scope", scope, "--team", "shop", "--personal")
        for name, scope in (("anna", "write"), ("ben", "read"))
    )
    add(team.client(0, anna), "Anna likes tea", personal=True)
    browser, mark = sign_in(team, 0, anna)
    assert all(text in browser.get("/search").text for text in ("shop", "Anna likes tea"))
    form = urlencode({"mark": mark, "content": "The shop opens at nine"})
    added = browser.post("/add", content=form, headers=FORM)
    assert added.status_code == 303, added.text[:400]
    address = re.search(r"/memory/[\w-]+", added.headers["location"])[0]
    other, _ = sign_in(team, 1, ben)  # at another server of the same database
    assert "Signed in as <bdi>ben</bdi>" in other.get("/").text
    listed = other.get("/search").text
    assert "The shop opens at nine" in listed and "Anna likes tea" not in listed
    assert [
        path
        for path in ("/", "/inbox", "/timeline", "/graph", "/projects", address)
        if other.get(path).status_code != 200
    ] == []
    cli.ok("token", "revoke", "anna")
    gone = browser.get("/")
    assert gone.status_code == 401 and "revoked" in gone.text
    monkeypatch.setenv("BETHINK_TENANT", postgres.new_tenant())
    stranger, _ = sign_in(team, 0, token(cli, "eve", "--scope", "write", "--all-projects"))
    assert "nine" not in stranger.get("/").text and stranger.get(address).status_code == 404


def test_a_request_that_reaches_both_servers_is_done_once(cli, team):
    secret = token(cli, "anna", "--scope", "write", "--team", "shop")
    one, other = team.both(secret)

    def post(client, key):
        told = {"memories": [{"content": f"Said under {key}"}], "dedup": False}
        headers = {"Idempotency-Key": key}
        answer = client.post(f"{V1}/memories", params=SHOP, headers=headers, json=told)
        return body(answer, 201)["outcomes"][0]["id"]

    keys = ("a", "b", "c")
    with ThreadPoolExecutor(4) as pool:
        given = {key: set(pool.map(post, (one, other) * 2, [key] * 4)) for key in keys}
    assert contents(one) == [f"Said under {key}" for key in keys]
    assert {key: {post(other, key)} for key in keys} == given


def test_a_server_for_one_tenant_shows_nothing_of_another(cli, team, monkeypatch):
    mine = team.client(0, token(cli, "anna", "--scope", "write", "--all-projects"))
    id = add(mine, "Our secret plans")
    monkeypatch.setenv("BETHINK_TENANT", postgres.new_tenant())
    # A token of another tenant, on the same server.
    other = team.client(0, token(cli, "anna", "--scope", "write", "--all-projects"))
    assert contents(other) == contents(other, "/search", query="secret plans") == []
    problem(other.get(f"{V1}/memories/{id}", params=SHOP), 404)
    assert "shop" not in {one["name"] for one in body(other.get(f"{V1}/projects"))["items"]}
    assert body(other.post(f"{V1}/sync/outline", json={}, params=SHOP))["lines"] == []
    add(other, "Theirs")
    assert contents(mine) == ["Our secret plans"]
    assert [one["name"] for one in cli.json("token", "list")] == ["anna"]


def plan(client, **query):
    """The server's answer to an agent that reads a knowledge file."""
    params = {"uri": "memory://plan.md"}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params}
    accept = "application/json, text/event-stream"
    headers = {"Accept": accept, "MCP-Protocol-Version": "2025-06-18"}
    return client.post("/mcp", params=query, json=asked, headers=headers).text


def test_files_of_the_server_are_visible_to_its_own_tenant_only(cli, team, tmp_path, monkeypatch):
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
        for name in (served, other):  # known by name here, as it is to the server by folder
            told = {"memories": [{"content": "Known here now"}]}
            client.post(f"{V1}/memories", params={"project": f"team:{name.name}"}, json=told)
            assert "sea" not in plan(client, project=str(name)), (what, name)
        assert "sea" not in plan(client), what
    everything = team.client(0, foreign["everything"])
    found = body(everything.get(f"{V1}/projects"))["items"]
    assert {one["path"] for one in found} == {None}
    monkeypatch.setenv("BETHINK_TENANT", team.tenant)
    own = team.client(0, token(cli, "anna", "--scope", "write", "--all-projects"))
    assert "sea" in plan(own)
    add(own, "Known here now", "team:other")
    # The server was started for one project of its machine.
    assert "sea" not in plan(own, project=str(other))


def test_a_laptop_syncs_by_address_or_database(cli, team, tmp_path, monkeypatch):
    monkeypatch.setenv("BETHINK_TOKEN", token(cli, "anna", "--scope", "write", "--team", "shop"))
    monkeypatch.delenv("BETHINK_DATABASE")
    told = cli.add("Told on the laptop")
    assert cli.json("sync", "--with", team.urls[0], "--as", "shop")["pushed"] == 1
    again = cli.json("sync", "--with", team.urls[0])
    assert (again["pushed"], again["pulled"]) == (0, 0)
    here = postgres.shared().act_as(os.environ["BETHINK_TENANT"], "")
    with postgres.transaction(here) as connection:
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


@pytest.fixture
def act(cli, monkeypatch, tmp_path):
    """Runs a command as a person, in a folder of theirs."""
    postgres.use(monkeypatch)

    def run(person: str, *words: str, folder: str = "shop"):
        place = tmp_path / person / folder
        place.mkdir(parents=True, exist_ok=True)
        monkeypatch.setenv("BETHINK_USER", person)
        return cli.json(*words, "--project", str(place))

    return run


def find_contents(hits):
    return {hit["content"] for hit in hits}


def test_people_who_joined_a_project_share_it(cli, act):
    """Each acts in a folder of their own; history and audit trail name the person."""
    act("anna", "join", "shop")
    act("ben", "join", "shop", folder="work")
    id = act("anna", "add", "We deploy on Fridays")["id"]
    act("ben", "update", id, "--importance", "9", folder="work")
    assert [event["actor"] for event in act("anna", "history", id)] == ["anna", "ben"]
    told = [(line["person"], line["changes"]) for line in cli.json("audit")]
    assert told == [("ben", {"update": [id]}), ("anna", {"add": [id]})]
    assert f"add {id}" in cli.ok("audit", "--limit", "5")


def test_a_folder_does_not_join_a_project_by_its_name(cli, act, tmp_path):
    act("anna", "join", "shop")
    act("anna", "add", "We deploy on Fridays")
    assert act("ben", "search", "fridays") == []
    act("ben", "add", "Unpacked: deploy on Mondays")
    assert find_contents(act("anna", "list")) == {"We deploy on Fridays"}
    warning = cli("list", "--project", str(tmp_path / "ben" / "shop")).err
    assert "`bethink join shop` joins it" in warning


def test_doctor_says_that_a_folder_was_not_joined(cli, act, tmp_path):
    act("anna", "join", "shop")
    act("anna", "add", "We deploy on Fridays")
    act("ben", "list")
    found = json.loads(cli("doctor", "--json", "--project", str(tmp_path / "ben" / "shop")).out)
    (about,) = [one for one in found if one["check"] == "project"]
    assert (about["ok"], about["fix"]) == (False, "bethink join shop")


def test_a_folder_that_version_0_18_used_by_its_name_stays_joined(act, monkeypatch):
    with monkeypatch.context() as patch:  # as it was found and registered then
        patch.setattr(
            project,
            "recognise_team",
            lambda one, *_: one._replace(identity=project.team_identity(one.name)),
        )
        act("anna", "add", "We deployed with 0.18")
    assert find_contents(act("anna", "list")) == {"We deployed with 0.18"}
    assert act("ben", "list") == []


def test_the_same_path_on_another_machine_is_another_project(act, cli, monkeypatch, tmp_path):
    act("anna", "add", "We deploy on Fridays")
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path / "machine of ben"))
    monkeypatch.setenv("BETHINK_USER", "ben")
    assert cli.json("list", "--project", str(tmp_path / "anna" / "shop")) == []


def test_a_moved_repository_stays_in_the_team(act, tmp_path):
    (tmp_path / "anna" / "shop").mkdir(parents=True)
    git(tmp_path / "anna" / "shop", "init")
    act("anna", "join", "shop")
    act("anna", "add", "We deploy on Fridays")
    (tmp_path / "anna" / "shop").rename(tmp_path / "anna" / "work")
    assert find_contents(act("anna", "list", folder="work")) == {"We deploy on Fridays"}
    act("anna", "add", "We deploy on Mondays", folder="work")
    assert len(act("anna", "list", folder="work")) == 2


def test_what_is_personal_is_not_shared(act):
    act("anna", "join", "shop")
    act("ben", "join", "shop")
    act("anna", "add", "We deploy on Fridays")
    act("anna", "add", "I like tea on Fridays", "--personal")
    act("anna", "add", "The office is closed on Fridays", "--team")
    act("anna", "add", "Another project's Fridays", folder="other")
    everybodys = {"The office is closed on Fridays"}
    shared = everybodys | {"We deploy on Fridays"}
    assert find_contents(act("anna", "search", "fridays")) == shared | {"I like tea on Fridays"}
    assert find_contents(act("ben", "search", "fridays")) == shared
    assert find_contents(act("ben", "search", "fridays", folder="elsewhere")) == everybodys
    assert act("ben", "stats")["by_scope"].get("personal") is None


def test_the_name_of_a_project_in_the_team_is_given_once(cli, team, monkeypatch):
    monkeypatch.setenv("BETHINK_TOKEN", token(cli, "anna", "--scope", "write", "--team", "shop"))
    monkeypatch.delenv("BETHINK_DATABASE")
    cli.add("Told on the laptop")
    where = ("sync", "--with", team.urls[0])
    assert "bethink sync --as shop" in cli.fails(*where, code=2)
    assert "is for people" in cli.fails(*where, "--as", "shop", "--for-agent", code=2)
    assert cli.json(*where, "--as", "shop")["pushed"] == 1
    assert cli.json(*where)["pushed"] == 0


def test_a_personal_database_has_no_team(cli):
    assert "no team" in cli.fails("add", "We deploy on Fridays", "--team", code=2)
    assert "audit trail" in cli.fails("audit", code=2)


def test_no_command_prints_a_database_password(cli):
    url = f"postgresql://anna:hunter2@127.0.0.1:{postgres.free_port()}/team?sslpassword=hunter2"
    told = f"config database {url}|config|config database|config --json|add x|doctor|stats"
    assert [
        result
        for result in (cli(*words.split()) for words in f"{told}|init --dry-run".split("|"))
        if "hunter2" in result.out + result.err
    ] == []
    assert "cannot be reached" in cli.fails("search", "tea", code=1)
    assert "hunter2" in (cli.home / "config.toml").read_text()


def test_a_memory_moves_only_with_a_name_for_what_is_personal(cli, tmp_path, monkeypatch):
    own, target = ["--database", str(tmp_path / "own.db")], postgres.migrated()
    cli.ok("add", "We deploy on Fridays", *own)
    cli.ok("add", "I like tea", "--personal", *own)
    monkeypatch.delenv("BETHINK_USER", raising=False)
    said = cli.fails("migrate", "--to", target, *own, code=2)
    assert "need an owner" in said and "`user`" in said
    assert postgres.run(target, "SELECT count(*) FROM bethink.memories") == [(0,)]
    monkeypatch.setenv("BETHINK_USER", "anna")
    shown = cli.ok("migrate", "--to", target, *own)
    assert "verified  true" in shown and "2 records" in shown and "digest" not in shown
    again = cli.json("migrate", "--to", target, *own)
    assert again["verified"] and again["resumed"] and again["parts"]["records"]["number"] == 2
    owners = postgres.run(target, "SELECT owner FROM bethink.scopes WHERE key = 'personal'")
    assert owners == [("anna",)]


@pytest.fixture
def elsewhere(cli, tmp_path):
    """A team's database in a file, with one memory in its project shop."""
    other = ("--database", str(tmp_path / "own.db"), "--project", str(tmp_path / "home"))
    (tmp_path / "home").mkdir(exist_ok=True)
    cli.ok("add", "Tea is at four", *other)
    cli.ok("sync", "--with", str(tmp_path / "team.db"), "--as", "shop", *other)
    return str(tmp_path / "team.db")


def test_a_sync_from_a_shared_database_keeps_the_project_of_the_folder(cli, act, elsewhere):
    act("anna", "add", "Shipping is on Friday")
    assert act("anna", "sync", "--with", elsewhere, "--as", "shop")["pulled"] == 1
    act("anna", "add", "Lunch is at noon")
    both = {"Shipping is on Friday", "Tea is at four"}
    assert find_contents(act("anna", "list")) == both | {"Lunch is at noon"}
    assert act("anna", "sync", "--with", elsewhere)["pushed"] == 1


def test_another_person_of_a_shared_database_syncs_by_the_same_name(cli, act, elsewhere):
    act("anna", "join", "goods")
    act("ben", "join", "goods")
    act("anna", "add", "Shipping is on Friday")
    act("anna", "sync", "--with", elsewhere, "--as", "shop")
    act("ben", "add", "Lunch is at noon")
    assert act("ben", "sync", "--with", elsewhere)["pushed"] == 1


@pytest.fixture
def hidden(cli, act, elsewhere, tmp_path):
    """Anna's folder, as version 0.22 left it behind after a sync from PostgreSQL."""
    act("anna", "add", "Shipping is on Friday")
    act("anna", "sync", "--with", elsewhere, "--as", "shop")
    here = project.find(tmp_path / "anna" / "shop")
    project.join(here, here.identity, "shop")
    return here


def test_doctor_names_the_project_that_an_earlier_sync_hid(cli, act, hidden, tmp_path):
    assert act("anna", "list") == []
    found = json.loads(cli("doctor", "--json", "--project", str(hidden.root)).out)
    (about,) = [one for one in found if one["check"] == "project"]
    assert (about["ok"], about["fix"]) == (False, f"bethink join {hidden.scope}")


@pytest.mark.parametrize("how", ["scope", "--leave"])
def test_join_goes_back_to_the_project_that_an_earlier_sync_hid(cli, act, hidden, how):
    result = act("anna", "join", hidden.scope if how == "scope" else how)
    assert (result["scope"], result["memories"]) == (hidden.scope, 2)
    assert find_contents(act("anna", "list")) == {"Shipping is on Friday", "Tea is at four"}


def test_join_names_the_way_back_to_a_team(cli, act, hidden):
    act("anna", "add", "Lunch is at noon")
    assert (
        "`bethink join shop` goes back" in cli("join", "--leave", "--project", str(hidden.root)).err
    )
    act("anna", "join", "shop")
    assert find_contents(act("anna", "list")) == {"Lunch is at noon"}
