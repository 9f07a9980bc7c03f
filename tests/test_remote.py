"""A team's server from the machines of its people: sync over the network, and requests that are done once."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from cli_runner import cli  # noqa: F401
from http_server import problem, running, served
from stores import HERE, NOW, make, put

from bethink import post
from bethink.errors import ConfigError
from bethink.post import Key
from bethink.store.rows import Record
from bethink.store.transfer import Bundle, team_scope
from bethink.surface.cli import transfer
from bethink.surface.cli.transfer import ServerPeer
from bethink.surface.http import api as http_api
from bethink.surface.http import security
from bethink.surface.http.api import OnceStore
from bethink.surface.http.security import Grant
from bethink.types import Batch, Source

__all__ = ["served"]
V1 = "/api/v1"


@pytest.fixture
def store_kind():
    """These tests say themselves which database is meant."""
    return "sqlite"


@pytest.fixture
def anna(served):
    _ = served.projects.base  # opened in the server's own home
    return Person(served, "anna")


class Person:
    """Somebody of the team, with a token and a project of their own."""

    number = 0

    def __init__(self, served, name):
        Person.number += 1
        self.token = served.token(f"{name}-{Person.number}", "write", personal=True)
        self.client = served.client(self.token)
        self.name = f"shop-{Person.number}"
        self.where = {"project": f"team:{self.name}"}
        self.peer = ServerPeer(served.address, Key(self.token, "test"), self.name)

    def store(self, text):
        """Tells the team something, and gives back its id."""
        asked = {"memories": [{"content": text}]}
        answer = self.client.post(f"{V1}/memories", json=asked, params=self.where).json()
        return answer["outcomes"][0]["id"]


def test_a_key_holds_across_server_processes(offline, tmp_path):
    headers = {"Idempotency-Key": "the same"}
    with (
        running(offline, tmp_path / "project") as one,
        running(offline, tmp_path / "project") as other,
    ):
        answers = [
            server.owner.post(
                f"{V1}/memories", json={"memories": [{"content": "Said once"}]}, headers=headers
            )
            for server in (one, other, one)
        ]
        assert [answer.status_code for answer in answers] == [201] * 3
        assert answers[0].json() == answers[1].json() == answers[2].json()
        different = {"memories": [{"content": "Something else"}]}
        problem(other.owner.post(f"{V1}/memories", json=different, headers=headers), 422)


def test_a_request_whose_first_answer_was_lost_is_done_once(offline, tmp_path, monkeypatch):
    with running(offline, tmp_path / "project") as here:
        client = here.client(here.session, **{"Idempotency-Key": "lost"})
        sent = {"memories": [{"content": "We queue with Kafka"}], "dedup": False}
        with monkeypatch.context() as patch:  # the process dies before the answer is kept
            patch.setattr(http_api, "stamp", lambda *_: 1 / 0)
            assert client.post(f"{V1}/memories", json=sent).status_code == 500
        assert client.post(f"{V1}/memories", json=sent).status_code == 201
        assert here.owner.get(f"{V1}/memories").json()["total"] == 1


def test_different_writes_under_one_key_are_all_done(store):
    names = ("a.md", "b.md")
    put(
        store,
        *(make(f"Of {name}", source=name, source_type="markdown") for name in names),
        unique=False,
    )
    for part in ("sources", "vanish"):
        for _ in range(2):  # the second time under the same key
            once = OnceStore(store, part)
            for name in names:
                read = Source(name, "markdown", "hash") if part == "sources" else name
                once.write(Batch(at=NOW, **{part: ((HERE, read),)}))
        known = [store.source(HERE, name) for name in names]
        assert [source and source.hash for source in known] == (
            ["hash"] * 2 if part == "sources" else [None] * 2
        )


# Over the network, too, two databases come in step


def test_a_project_is_synced_through_the_server(anna, served, cli, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setenv("BETHINK_TOKEN", anna.token)
    words = ("sync", "--with", served.address, "--as", anna.name)
    first = cli.add("We deploy from main", "--kind", "decision")
    second = cli.add("Tea at four")
    cli.ok("link", first, second)
    done = cli.json(*words)
    assert (done["pushed"], done["links"]) == (2, 1)
    anna.store("Said by an agent of the team")
    other = ("--project", str(tmp_path), "--database", str(tmp_path / "other.db"))
    assert cli.json(*words, *other)["pulled"] == 3
    cli.ok("update", first, "--content", "We deploy from main, on Mondays", *other)
    cli.ok("forget", second, "--purge", "--yes", *other)
    assert cli.json(*words, *other) == {
        "pushed": 0,
        "pulled": 0,
        "merged": 1,
        "removed_here": 0,
        "removed_there": 1,
        "links": 0,
        "conflicts": [],
        "left": [],
    }
    done = cli.json(*words)
    assert (done["pulled"], done["merged"], done["removed_here"]) == (1, 1, 1)
    assert {one["content"] for one in cli.json("list")} == {
        "We deploy from main, on Mondays",
        "Said by an agent of the team",
    }
    assert [event["action"] for event in cli.json("history", first)] == ["add", "update"]
    assert not any(cli.json(*words).values())


def test_a_laptop_of_0_10_is_understood(anna, served):
    """It says what it wants, and which memories it no longer has. The server forgets these, unless somebody changed them."""
    id, changed = anna.store("Imported by mistake"), anna.store("Of great importance")

    def ask(operation, **body):
        return anna.client.post(f"{V1}/sync/{operation}", json=body, params=anna.where)

    told = problem(ask("outline", what=["told", "conversations"]), 422)
    assert "Conversations and documents are no longer exchanged" in told["detail"]
    lines = ask("outline", what=["told"]).json()["lines"]
    expect = {line[0]: line[1] for line in lines}
    anna.client.patch(f"{V1}/memories/{changed}", json={"importance": 9}, params=anna.where)
    gone = {"gone": [id, changed], "expect": expect}
    assert ask("remove", **gone).json() == {"removed": 1, "left": [changed]}
    assert [one.memory.deleted_at is None for one in anna.peer.fetch([id, changed])] == [
        False,
        True,
    ]
    assert ask("remove", gone=[changed], expect={changed: "no version"}).json()["removed"] == 0


def test_the_outline_of_a_server_of_0_9_is_understood(anna, monkeypatch):
    line = ["01a1", "ab", "hash", True, False, None]
    monkeypatch.setattr(post, "send", lambda *words: {"lines": [line], "links": []})
    assert anna.peer.outline().lines["01a1"] == (b"\xab", "hash", True)


def test_a_memory_that_is_larger_than_a_request_is_sent_alone(monkeypatch):
    monkeypatch.setattr(transfer, "LARGEST_REQUEST", 10)
    records = tuple(Record(make(text), True) for text in ("One", "Two"))
    parts = list(transfer._split_bundle(Bundle(scopes=(("", "shop", ""),), records=records)))
    assert [part.records for part in parts] == [records[:1], records[1:]]


def test_nothing_reaches_another_project_through_a_bundle(anna, served):
    """A token for one project cannot read, change or remove what is in another, by id or by scope."""
    id = anna.store("Secret plans")
    ours, there = {"project": "team:ours"}, anna.where
    secret = served_token(served, "ours", Grant(team_scope("ours"), "", "ours"))
    ben = served.client(secret)
    assert ben.post(f"{V1}/sync/records", json={"ids": [id]}, params=ours).json() == {"bundle": {}}
    problem(ben.post(f"{V1}/sync/records", json={"ids": [id]}, params=there), 404)
    problem(ben.post(f"{V1}/sync/outline", json={}, params={**ours, "personal": "true"}), 403)
    assert ben.post(
        f"{V1}/sync/remove", json={"gone": [id], "purge": [id]}, params=ours
    ).json() == {"removed": 0, "left": []}
    bundle = served.owner.post(f"{V1}/sync/records", json={"ids": [id]}, params=there).json()[
        "bundle"
    ]
    named = json.loads(json.dumps(bundle))
    named["records"][0]["scope"] = team_scope(anna.name)
    problem(ben.post(f"{V1}/sync/take", json={"bundle": named}, params=ours), 422)
    assert ben.post(f"{V1}/sync/take", json={"bundle": bundle}, params=ours).json() == {
        "left": [id]
    }  # an id of another scope
    assert served.owner.get(f"{V1}/memories/{id}", params=there).json()["content"] == "Secret plans"


def served_token(served, name, *grants):
    return security.FileTokens(served.file).create(
        name, "write", grants, personal=False, now=datetime.now(UTC)
    )[0]


def test_a_bundle_that_is_not_in_order_changes_nothing(anna, served):
    id = anna.store("In order")

    def ask(operation, **body):
        return served.owner.post(f"{V1}/sync/{operation}", json=body, params=anna.where)

    good = ask("records", ids=[id]).json()["bundle"]
    fields = {
        "id": "nope",
        "kind": "nonsense",
        "content": 7,
        "created_at": "yesterday",
        "importance": 1e9,
        "trust": 9,
        "content_hash": "0" * 64,
    }
    for name, value in fields.items():
        bundle = json.loads(json.dumps(good))
        bundle["records"][0][name] = value
        problem(ask("take", bundle=bundle), 422)
    for bundle in (
        {"records": [[]]},
        {"records": "x"},
        {"gone": [id]},
        {"tombstones": [["AA==", "2026-11-16T00:00:00Z"]]},
        {"turns": [["", "AA=="]]},
        {"sources": [["", ["docs/a.md"], "2026-11-16T00:00:00Z"]]},
        {"sessions": [["talk", ""]]},
        {"spans": [[["t", "", "talk", None, "a", "b", [1, 2], 0, "2026-11-16T00:00:00Z"], []]]},
        {"scopes": [["project:0123456789abcdef", "mine", ""]]},
        {"records": good["records"] * 1001},
    ):
        problem(ask("take", bundle=bundle), 422)
    secret = json.loads(json.dumps(good))
    secret["records"][0]["tags"] = ["ghp_" + "a1B2" * 9]
    assert ask("take", bundle=secret).json() == {"left": [id]}
    assert ask("records", ids=[id]).json()["bundle"] == good


# What can be wrong with the address or the token


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("ftp://memory.example", "no http or https"),
        ("https://user:pass@memory.example", "user name or password"),
        ("http://memory.example", "Without TLS the token"),
    ],
)
def test_an_address_that_cannot_be_used_is_told(url, told):
    with pytest.raises(ConfigError, match=told) as error:
        ServerPeer(url, Key("rcl_x", "test"), "shop")
    assert "pass" not in error.value.message.replace("password", "")


def test_a_token_comes_from_the_environment_and_is_never_shown(cli, served, monkeypatch):  # noqa: F811
    words = ("sync", "--with", served.address)
    monkeypatch.delenv("BETHINK_TOKEN", raising=False)
    assert "asks for a key" in cli.fails(*words, code=1)
    monkeypatch.setenv("BETHINK_TOKEN", "two words")
    assert "two words" not in cli.fails(*words, code=2)
    monkeypatch.setenv("BETHINK_TOKEN", "rcl_wrong")
    told = cli.fails(*words, code=1)
    assert "refused the key" in told and "rcl_wrong" not in told
