"""A team's server from the machines of its people: sync over the network, and requests that are done once."""

import copy
from datetime import UTC, datetime

import pytest
from http_server import problem, running, served
from stores import HERE, NOW, make, source_of, tell

from bethink.app.cli import transfer
from bethink.app.cli.transfer import ServerPeer
from bethink.app.http import api as http_api
from bethink.app.http import security
from bethink.app.http.security import Caller, Grant
from bethink.errors import ConfigError
from bethink.model import Batch, Source
from bethink.store.rows import Record
from bethink.store.transfer import Bundle, team_scope

__all__ = ["served"]
STORE = "sqlite"  # these tests say themselves where another is meant
V1 = "/api/v1"


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

    def store(self, text):
        """Tells the team something, and gives back its id."""
        asked = {"memories": [{"content": text}]}
        answer = self.client.post(f"{V1}/memories", json=asked, params=self.where).json()
        return answer["outcomes"][0]["id"]

    def ask(self, operation, client=None, **body):
        return (client or self.client).post(f"{V1}/sync/{operation}", json=body, params=self.where)


def tell_server(client, text, **headers):
    asked = {"memories": [{"content": text}], "dedup": False}
    return client.post(f"{V1}/memories", json=asked, headers=headers)


def test_a_request_under_a_key_is_done_once_by_any_server(offline, tmp_path, monkeypatch):
    key = {"Idempotency-Key": "the same"}
    project = tmp_path / "project"
    with running(offline, project) as one, running(offline, project) as other:
        with monkeypatch.context() as patch:  # the process dies before the answer is kept
            patch.setattr(http_api, "stamp", lambda *_: 1 / 0)
            assert tell_server(one.owner, "Said once", **key).status_code == 500
        answers = [tell_server(each.owner, "Said once", **key) for each in (one, other, one)]
        assert [answer.status_code for answer in answers] == [201] * 3
        assert answers[0].json() == answers[1].json() == answers[2].json()
        problem(tell_server(other.owner, "Something else", **key), 422)
        key = {"Idempotency-Key": "failed"}  # which leaves it free
        problem(tell_server(one.owner, "   ", **key), 422)
        vote = f"{V1}/memories/{tell_server(one.owner, 'Said', **key).json()['outcomes'][0]['id']}/votes"
        key = {"Idempotency-Key": "vote"}
        voted = [one.owner.post(vote, json={"value": 2}, headers=key).json() for _ in range(2)]
        assert voted[0] == voted[1] and voted[0]["usefulness"] == 2
        assert one.owner.get(f"{V1}/memories").json()["total"] == 2


@pytest.mark.parametrize(
    ("part", "hash"),
    [
        pytest.param("sources", "hash", id="sources"),
        pytest.param("vanish", None, id="vanish"),
    ],
)
def test_different_writes_under_one_key_are_all_done(store, part, hash):
    names = ("a.md", "b.md")
    for name in names:
        tell(store, f"Of {name}", source=name, source_type="markdown")
    for _ in range(2):  # the second time under the same key
        once = http_api.OnceStore(store, part)
        for name in names:
            read = Source(name, "markdown", "hash") if part == "sources" else name
            once.write(Batch(at=NOW, **{part: ((HERE, read),)}))
    known = [source_of(store, HERE, name) for name in names]
    assert [source and source.hash for source in known] == [hash, hash]


def test_a_project_is_synced_through_the_server(anna, served, cli, tmp_path, monkeypatch):
    monkeypatch.setenv("BETHINK_TOKEN", anna.token)
    words = ("sync", "--with", served.address, "--as", anna.name)
    first = cli.add("We deploy from main", "--kind", "decision")
    second = cli.add("Tea at four")
    cli.ok("link", first, second)

    def sync(*where):
        return {name: number for name, number in cli.json(*words, *where).items() if number}

    assert sync() == {"pushed": 2, "links": 1}
    anna.store("Said by an agent of the team")
    other = ("--project", str(tmp_path), "--database", str(tmp_path / "other.db"))
    assert sync(*other)["pulled"] == 3
    cli.ok("update", first, "--content", "We deploy from main, on Mondays", *other)
    cli.ok("forget", second, "--purge", "--yes", *other)
    assert sync(*other) == {"merged": 1, "removed_there": 1}
    done = sync()
    assert (done["pulled"], done["merged"], done["removed_here"]) == (1, 1, 1)
    found = {one["content"] for one in cli.json("list")}
    assert found == {"We deploy from main, on Mondays", "Said by an agent of the team"}
    assert [event["action"] for event in cli.json("history", first)] == ["add", "update"]
    assert sync() == {} and "already in sync" in cli(*words).err


def test_nothing_reaches_another_project_and_a_bad_bundle_changes_nothing(anna, served):
    """A token for one project cannot read, change or remove what is in another, by id or by scope."""
    id = anna.store("Secret plans")
    ours = {"project": "team:ours"}
    grant, now = Grant(team_scope("ours"), "", "ours"), datetime.now(UTC)
    tokens = security.Tokens(served.file)
    secret, *_ = tokens.create(Caller("", "ours", "write", (grant,), False, created=now))
    ben = served.client(secret)

    def ask(operation, params=ours, **body):
        return ben.post(f"{V1}/sync/{operation}", json=body, params=params)

    assert ask("records", ids=[id]).json() == {"bundle": {}}
    problem(ask("records", anna.where, ids=[id]), 404)
    problem(ask("outline", {**ours, "personal": "true"}), 403)
    assert ask("remove", purge=[id]).json() == {"removed": 0}
    bundle = anna.ask("records", served.owner, ids=[id]).json()["bundle"]
    named = copy.deepcopy(bundle)
    named["records"][0]["scope"] = team_scope(anna.name)
    problem(ask("take", bundle=named), 422)
    assert ask("take", bundle=bundle).json() == {"left": [id]}  # an id of another scope
    found = served.owner.get(f"{V1}/memories/{id}", params=anna.where).json()
    assert found["content"] == "Secret plans"
    id = anna.store("In order")
    good = anna.ask("records", served.owner, ids=[id]).json()["bundle"]

    def change(**fields):
        return {**good, "records": [good["records"][0] | fields]}

    bundles = [
        change(id="nope"),
        change(kind="nonsense"),
        change(content=7),
        change(created_at="yesterday"),
        change(importance=1e9),
        change(trust=9),
        change(content_hash="0" * 64),
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
    ]
    for bundle in bundles:
        problem(anna.ask("take", served.owner, bundle=bundle), 422)
    secret = change(tags=["ghp_" + "a1B2" * 9])
    assert anna.ask("take", served.owner, bundle=secret).json() == {"left": [id]}
    assert anna.ask("records", served.owner, ids=[id]).json()["bundle"] == good


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("ftp://memory.example", "no http or https"),
        ("https://user:pass@memory.example", "user name or password"),
        ("http://memory.example", "Without TLS the token"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(monkeypatch, url, told):
    monkeypatch.setenv("BETHINK_TOKEN", "rcl_x")
    with pytest.raises(ConfigError, match=told) as error:
        ServerPeer(url, "shop")
    assert "pass" not in error.value.message.replace("password", "")


def test_a_large_memory_is_sent_alone(monkeypatch):
    monkeypatch.setattr(transfer, "LARGEST_REQUEST", 10)
    records = tuple(Record(make(text), True) for text in ("One", "Two"))
    parts = list(transfer._split_bundle(Bundle(scopes=(("", "shop", ""),), records=records)))
    assert [part.records for part in parts] == [records[:1], records[1:]]


@pytest.mark.parametrize(
    ("token", "code", "said"),
    [
        pytest.param("", 1, "asks for a key", id="asks-for-a-key"),
        pytest.param("two words", 2, "", id="two-words"),
        pytest.param("rcl_wrong", 1, "refused the key", id="rcl-wrong"),
    ],
)
def test_a_token_comes_from_the_environment_and_is_never_shown(
    cli, served, monkeypatch, token, code, said
):
    monkeypatch.delenv("BETHINK_TOKEN", raising=False)
    if token:
        monkeypatch.setenv("BETHINK_TOKEN", token)
    told = cli.fails("sync", "--with", served.address, "--as", "shop", code=code)
    assert said in told and (not token or token not in told)
