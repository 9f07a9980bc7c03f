"""A team's server from the machines of its people: tools through it, an outbox for when it is away, and sync over the network."""

from __future__ import annotations

import json
import re
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from cli_runner import cli  # noqa: F401
from http_server import problem, running, served
from mcp_client import ERAS, talking

from bethink.errors import ConfigError
from bethink.features.sync import team_scope
from bethink.post import Key
from bethink.surface import remote
from bethink.surface.remote import (
    TRIES,
    Client,
    Outbox,
    ServerFailure,
    ServerRefusal,
    Team,
    Unreachable,
    WaitingCall,
    outbox_folder,
)

__all__ = ["served"]
V1 = "/api/v1"
NOBODY = "http://127.0.0.1:9"  # the discard port: nothing listens there


@pytest.fixture
def store_kind():
    """These tests say themselves which database is meant."""
    return "sqlite"


@pytest.fixture
def anna(served, tmp_path):
    _ = served.projects.base  # opened in the server's own home
    return Person(served, "anna", tmp_path)


class Person:
    """Somebody of the team, with a token and an outbox of their own."""

    number = 0

    def __init__(self, served, name, place):
        Person.number += 1
        self.token = served.token(f"{name}-{Person.number}", "write", personal=True)
        self.outbox = Outbox(place / f"outbox-{name}")
        self.address = served.address
        self.name = f"shop-{Person.number}"

    def team(self, address=None, kind=Client) -> Team:
        return Team(
            kind(address or self.address, Key(self.token, "test")), self.name, outbox=self.outbox
        )

    def store(self, text, **how):
        return self.team(**how).call("store_memories", {"memories": [{"content": text}]}, None)

    def found(self, query):
        return self.team().call("search_memories", {"query": query}, None)[0]

    def told(self, text, served):
        """The id of something that was just stored."""
        short = re.search(r"\[(\S+)\]", self.store(text)[0])[1]
        return served.owner.get(f"{V1}/memories/{short}", params=self.where).json()["id"]

    @property
    def where(self):
        return {"project": f"team:{self.name}"}


class Lossy(Client):
    """A connection that breaks after the server did what was asked."""

    def post(self, path, body, **how):
        super().post(path, body, **how)
        raise Unreachable("The answer was lost.")


def test_tools_work_on_the_teams_memory(anna, served):
    told, failed = anna.store("Orders live in PostgreSQL")
    assert (told.startswith("1. stored ["), failed) == (True, False)
    assert "Orders live in PostgreSQL" in anna.found("where do orders live?")
    listed = served.owner.get(f"{V1}/memories", params=anna.where).json()
    assert [one["scope"] for one in listed["items"]] == [team_scope(anna.name)]
    assert [
        one["name"]
        for one in served.owner.get(f"{V1}/projects").json()["items"]
        if one["scope"] == team_scope(anna.name)
    ] == [anna.name]


def test_a_token_for_reading_is_enough_to_search(anna, served, tmp_path):
    anna.store("Orders live in PostgreSQL")
    reading = Team(
        Client(anna.address, Key(served.token(f"reads-{anna.name}"), "test")),
        anna.name,
        outbox=Outbox(tmp_path / "reads"),
    )
    text, failed = reading.call("search_memories", {"query": "where do orders live?"}, None)
    assert ("Orders live in PostgreSQL" in text, failed) == (True, False)
    with pytest.raises(ServerRefusal, match="403"):
        reading.call("store_memories", {"memories": [{"content": "Not theirs to tell"}]}, None)


def test_an_answer_to_a_question_is_not_kept_for_whoever_asks_again(anna, served):
    id = anna.told("The launch is called Pelican", served)
    asked = {"arguments": {"query": "what is the launch called?"}}
    client = served.client(anna.token, **{"Idempotency-Key": "asked"})

    def ask():
        return client.post(f"{V1}/tools/search_memories", json=asked, params=anna.where).json()[
            "text"
        ]

    assert "Pelican" in ask()
    served.owner.delete(f"{V1}/memories/{id}", params={**anna.where, "purge": "true"})
    assert "Pelican" not in ask()


def test_what_a_tool_cannot_do_is_told_in_its_own_words(anna):
    text, failed = anna.team().call("get_memories", {"ids": ["ffff"]}, None)
    assert failed
    assert "no memory whose id starts with" in text


def test_a_write_waits_while_the_server_is_away_and_is_delivered_once(anna):
    told, failed = anna.store("Kept for later", address=NOBODY)
    assert not failed
    assert told.startswith("Kept on this machine: Nothing answers at http://127.0.0.1:9")
    assert "(1 waiting)" in told
    anna.store("And this", address=NOBODY)
    assert len(anna.outbox.list_waiting()) == 2
    assert anna.team().deliver() == 2
    assert anna.team().deliver() == 0
    assert "Kept for later" in anna.found("later")
    assert "And this" in anna.found("and this")


def test_an_answer_that_is_lost_does_not_make_it_happen_twice(anna, served):
    id = anna.told("Voted for", served)
    rating = {"ratings": [{"id": id, "value": 2}]}
    told, _ = anna.team(kind=Lossy).call("rate_memories", rating, None)
    assert "waiting" in told
    for _ in range(2):
        assert anna.team(kind=Lossy).deliver() == 0
    assert anna.team().deliver() == 1
    found = served.owner.get(f"{V1}/memories/{id}", params=anna.where).json()
    assert found["usefulness"] == 2.0


def test_a_write_with_a_secret_whose_answer_was_lost_is_not_done_twice_or_refused(anna):
    told, _ = anna.store("Quokka uses Postgres, password = hunter2Xy99!", kind=Lossy)
    assert "waiting" in told
    assert anna.team().deliver() == 1
    assert anna.outbox.aside() == []
    assert "Quokka uses Postgres" in anna.found("quokka")
    told, _ = anna.store("Numbat uses Redis, password = hunter2Xy98!")
    assert "1 private or secret part(s) taken out" in told


class Breaking(Client):
    """A server that is there, and breaks over one of the things that it is asked."""

    def post(self, path, body, **how):
        if "unlucky" in json.dumps(body):
            raise ServerFailure("The endpoint is busy or failed (500).")
        return super().post(path, body, **how)


class Down(Client):
    """A server that breaks over everything, because its database is away."""

    def post(self, path, body, **how):
        raise ServerFailure("The endpoint is busy or failed (500).")


def test_what_the_server_breaks_over_again_and_again_does_not_keep_the_rest_from_being_delivered(
    anna,
):
    for text in ("An unlucky one", "Behind it", "And this"):
        anna.store(text, address=NOBODY)
    down, team = anna.team(kind=Down), anna.team(kind=Breaking)
    assert [down.deliver() for _ in range(TRIES + 2)] == [0] * (TRIES + 2)
    assert len(anna.outbox.list_waiting()) == 3  # nothing is refused while nothing is done
    assert team.deliver() == 2
    assert (len(anna.outbox.list_waiting()), len(anna.outbox.aside())) == (0, 1)
    assert "And this" in anna.found("and this")
    assert "refused 1 write(s)" in anna.found("behind")


def test_an_internal_error_of_the_server_is_told_from_one_that_is_away(served, monkeypatch):
    from bethink.surface.mcp import tools

    monkeypatch.setitem(tools.TOOLS, "search_memories", lambda memory, given: 1 / 0)
    token = served.token(f"breaks-{time.monotonic_ns()}", "write", personal=True)
    with pytest.raises(ServerFailure, match="500"):
        Client(served.address, Key(token, "test")).post(
            "/tools/search_memories", {"arguments": {"query": "x"}}
        )


def test_a_call_does_not_wait_for_a_queue_that_another_process_delivers(anna, monkeypatch):
    from bethink.surface import remote as outbox
    from bethink.text.textfile import alone

    anna.store("First", address=NOBODY)
    with monkeypatch.context() as patch, alone(anna.outbox.place):  # which has much to do
        patch.setattr(outbox, "EARLIER", 0.2)
        told, failed = anna.store("Second")
    assert told.startswith("Kept on this machine: Earlier writes still wait") and not failed
    monkeypatch.setattr(outbox, "EARLIER", 60.0)
    assert anna.store("Third")[0].startswith("1. stored [")
    assert anna.outbox.list_waiting() == []


def test_a_call_delivers_for_a_while_and_leaves_the_rest(anna, monkeypatch):
    from bethink.surface import remote as outbox

    for number in range(3):
        anna.store(f"Number {number}", address=NOBODY)
    monkeypatch.setattr(outbox, "EARLIER", 0.0)
    assert "(4 waiting)" in anna.store("Number 3")[0]
    assert anna.team().deliver() == 4


def test_what_was_asked_for_first_is_delivered_first(anna):
    anna.store("First", address=NOBODY)
    told, _ = anna.store("Second")  # the server is back: both go, in order
    assert told.startswith("1. stored [")
    assert anna.outbox.list_waiting() == []
    listed = [
        one for one in anna.found("first second").splitlines() if "First" in one or "Second" in one
    ]
    assert len(listed) == 2


def test_what_the_server_refuses_is_set_aside_and_told(anna):
    anna.team(address=NOBODY).call("update_memory", {"id": "ffffffff", "importance": 3}, None)
    anna.store("Behind it", address=NOBODY)
    anna.outbox.place.joinpath("0-broken.json").write_text("{")
    assert anna.team().deliver() == 1
    assert len(anna.outbox.aside()) == 2
    assert "refused 2 write(s)" in anna.found("behind")
    reasons = [path.read_text() for path in anna.outbox.place.glob("*.reason")]
    assert any("no memory whose id starts with" in reason for reason in reasons)


def test_reads_say_that_the_server_is_away(anna):
    with pytest.raises(Unreachable, match="Nothing answers"):
        anna.team(address=NOBODY).call("search_memories", {"query": "x"}, None)


def test_secrets_do_not_wait_on_disk(anna):
    anna.store("The key is ghp_" + "a1B2" * 9, address=NOBODY)
    (file,) = anna.outbox.list_waiting()
    assert "ghp_" not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0


def test_an_outbox_does_not_grow_without_end(anna, monkeypatch):
    from bethink.errors import BethinkError
    from bethink.surface import remote as outbox

    monkeypatch.setattr(outbox, "MOST", 2)
    for number in range(2):
        anna.store(f"Number {number}", address=NOBODY)
    with pytest.raises(BethinkError, match="wait for the server already"):
        anna.store("Number 3", address=NOBODY)


def test_two_processes_that_deliver_at_once_deliver_once(anna, served):
    for number in range(10):
        anna.store(f"Number {number} of ten", address=NOBODY)
    threads = [threading.Thread(target=lambda: anna.team().deliver()) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert anna.outbox.list_waiting() == []
    listed = served.owner.get(
        f"{V1}/memories", params={"project": f"team:{anna.name}", "limit": 100}
    ).json()["items"]
    assert len(listed) == 10


def test_a_key_holds_across_server_processes(offline, tmp_path):
    headers = {"Idempotency-Key": "the same"}
    with (
        running(offline, tmp_path / "project", open=True) as one,
        running(offline, tmp_path / "project", open=True) as other,
    ):
        answers = [
            server.client(None).post(
                f"{V1}/memories", json={"memories": [{"content": "Said once"}]}, headers=headers
            )
            for server in (one, other, one)
        ]
        assert [answer.status_code for answer in answers] == [201] * 3
        assert answers[0].json() == answers[1].json() == answers[2].json()
        different = {"memories": [{"content": "Something else"}]}
        problem(other.client(None).post(f"{V1}/memories", json=different, headers=headers), 422)


def test_a_write_whose_answer_was_never_kept_is_not_done_again(offline, tmp_path, monkeypatch):
    from bethink.surface.http.api import Once

    with running(offline, tmp_path / "project", open=True) as here:
        client = here.client(None)
        id = client.post(f"{V1}/memories", json={"memories": [{"content": "Voted for"}]}).json()[
            "outcomes"
        ][0]["id"]
        body = {"arguments": {"ratings": [{"id": id, "value": 2}]}}
        with monkeypatch.context() as patch:  # the process dies after the write
            patch.setattr(Once, "_keep", lambda *_: 1 / 0)
            assert (
                client.post(
                    f"{V1}/tools/rate_memories", json=body, headers={"Idempotency-Key": "k"}
                ).status_code
                == 500
            )
        assert (
            client.post(
                f"{V1}/tools/rate_memories", json=body, headers={"Idempotency-Key": "k"}
            ).status_code
            == 200
        )
        assert client.get(f"{V1}/memories/{id}").json()["usefulness"] == 2.0


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        (
            "/memories",
            {"memories": [{"content": "We queue with Kafka"}, {"content": "It is slow"}]},
        ),
        ("/memories", {"memories": [{"content": "Key AKIAIOSFODNN7EXAMPLQ is old"}]}),
        ("/memories", {"memories": [{"content": "We cache in Valkey", "supersedes": ["ID"]}]}),
        ("/tools/store_memories", {"arguments": {"memories": [{"content": "Told by a tool"}]}}),
    ],
)
def test_a_request_whose_first_answer_was_lost_gets_that_answer(
    offline, tmp_path, monkeypatch, path, sent
):
    def answers(place, lose):
        (tmp_path / place).mkdir()
        with running(offline, tmp_path / place, open=True) as here:
            client = here.client(None, **{"Idempotency-Key": place})
            old = {"memories": [{"content": "We cache in Redis"}]}
            told = here.client(None).post(f"{V1}/memories", json=old).json()
            id = told["outcomes"][0]["id"]
            body = json.loads(json.dumps(sent).replace("ID", id))
            if lose:
                with monkeypatch.context() as patch:  # the process dies before the answer is kept
                    patch.setattr(Once, "_keep", lambda *_: 1 / 0)
                    assert client.post(V1 + path, json=body).status_code == 500
            got = client.post(V1 + path, json=body)
            return got.status_code, re.sub(r"[0-9a-f]{8}-[0-9a-f-]+", "ID", got.text)

    from bethink.surface.http.api import Once

    assert answers("lost", True) == answers("kept", False)


def test_different_writes_under_one_key_are_all_done(store):
    from stores import HERE, NOW, make, put

    from bethink.surface.http.api import OnceStore
    from bethink.types import Batch, Source

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


@pytest.mark.parametrize("era", ERAS)
def test_an_agent_talks_to_the_team_through_its_own_server(anna, served, tmp_path, era):
    project, home = tmp_path / anna.name, tmp_path / "home"
    project.mkdir()
    with talking(
        era, project, home, "--remote", served.address, env={"BETHINK_TOKEN": anna.token}
    ) as talk:
        talk.store("We deploy from main", kind="decision")
        assert "We deploy from main" in talk.search_memories(query="how do we deploy?")
        assert "no memory" in talk.refused("get_memories", ids=["ffff"])
    assert (
        "We deploy from main" in anna.team().call("search_memories", {"query": "deploy"}, None)[0]
    )


def test_an_agent_goes_on_while_the_server_is_away(offline, tmp_path):
    place = tmp_path / "shop"
    place.mkdir()
    machine = tmp_path / "machine"
    with running(offline, tmp_path / "project") as here:
        token, address = here.token("anna", "write", personal=True), here.address
    environment = {"BETHINK_TOKEN": token}
    with talking(ERAS[0], place, machine, "--remote", address, env=environment) as talk:
        told = talk.store_memories(memories=[{"content": "Told while it was away"}])
        assert told.startswith("Kept on this machine")
        result = talk("call_tool", "search_memories", {"query": "away"})
        assert result.content[0].text.startswith(
            "The team's memory is out of reach: Nothing answers at"
        )
        assert not result.is_error
    assert list((machine / "outbox").rglob("*.json"))
    with listening(offline, tmp_path / "project", int(address.rpartition(":")[2])) as here:
        with talking(ERAS[0], place, machine, "--remote", address, env=environment) as talk:
            until = time.monotonic() + 120  # however busy the machine is
            while "Told while it was away" not in talk.search_memories(query="away"):
                assert time.monotonic() < until
        found = here.owner.get(f"{V1}/memories", params={"project": "team:shop"}).json()["items"]
        assert [one["content"] for one in found] == ["Told while it was away"]
    assert not list((machine / "outbox").rglob("*.json"))


@contextmanager
def listening(home, directory, port):
    """The server again, at the address it had."""
    from bethink.surface.http import serving

    bind = serving.listen
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serving, "listen", lambda host, _: bind(host, port))
        with running(home, directory) as here:
            yield here


# Over the network, too, two databases come in step


def test_a_project_is_synced_through_the_server(anna, served, cli, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setenv("BETHINK_TOKEN", anna.token)
    words = ("sync", "--with", served.address, "--as", anna.name)
    first = cli.add("We deploy from main", "--kind", "decision")
    second = cli.add("Tea at four")
    cli.ok("link", first, second)
    done = cli.json(*words)
    assert (done["pushed"], done["links"]) == (2, 1)
    assert "We deploy from main" in anna.found("deploy")
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


def test_what_changed_on_the_server_meanwhile_is_not_removed_there(anna, served):
    from bethink.surface.remote import ServerPeer

    id = anna.told("Of great importance", served)
    far = ServerPeer(Client(served.address, Key(anna.token, "test")), anna.name)
    was = far.outline(["told"]).lines[id].version
    anna.team().call("update_memory", {"id": id, "importance": 9}, None)
    assert far.remove({id: was}, (), ()) == (id,)
    asked = {"gone": [id], "expect": {id: "no version"}}
    assert served.owner.post(f"{V1}/sync/remove", json=asked, params=anna.where).json() == {
        "removed": 0,
        "left": [id],
    }
    assert far.remove({id: far.outline(["told"]).lines[id].version}, (), ()) == ()
    assert far.outline(["told"]).lines == {}


def test_conversations_travel_through_the_server_when_asked_for(anna, served, tmp_path):
    from stores import HERE, NOW, everything
    from travel import fill

    from bethink.features.sync import CONVERSATIONS, DOCUMENTS, TOLD, Shared, StorePeer, Sync
    from bethink.store.sqlite import SqliteStore
    from bethink.surface.remote import ServerPeer

    stores = [SqliteStore(tmp_path / f"{name}.db", timeout=5) for name in ("one", "two")]
    fill(stores[0])
    for store in stores:
        far = ServerPeer(Client(served.address, Key(anna.token, "test")), anna.name)
        near = StorePeer(store, HERE, "anna", lambda: NOW)
        run = Sync(near, far, anna.name, (TOLD, CONVERSATIONS, DOCUMENTS))
        report, _ = run.run(Shared({}, frozenset()))
        assert report.left == ()
    assert stores[1].sessions([HERE]) == stores[0].sessions([HERE]) != []
    assert stores[1].find_known_turns(HERE, [b"\x01" * 16])
    ids = [memory.id for memory in stores[1].list(everything(HERE))]
    assert len(stores[1].relations(ids)) == 2
    for store in stores:
        store.close()


def test_nothing_reaches_another_project_through_a_bundle(anna, served):
    """A token for one project cannot read, change or remove what is in another, by id or by scope."""
    id = anna.told("Secret plans", served)
    ours, there = {"project": "team:ours"}, anna.where
    from bethink.surface.http.tokens import Grant

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


def test_a_bundle_takes_over_no_conversation_of_another_project_and_brings_no_secret(anna, served):
    from bethink.store.bundle import Bundle, bundle_to_json
    from bethink.surface.http.tokens import Grant
    from bethink.types import Session, Source, Span

    now, secret = datetime.now(UTC), "ghp_" + "a1B2c3D4e5" * 3 + "a1B2c3"

    def brought(client, name, title):
        mark = f"{name}-{Person.number}"
        session = Session("talk", "", "claude", title, "", now, now)
        named = Span("topic", "", "talk", None, title, title, (1, 2), 0, now, {})
        own = session._replace(id=f"talk {mark}", metadata={"cwd": title})
        source = (
            "",
            Source(f"talk {mark}.jsonl", "transcript", metadata={"sessions": {"a": title}}),
            now,
        )
        bundle = Bundle(
            sources=(source,),
            sessions=(session, own),
            spans=((named, ()), (named._replace(id=mark, session=own.id), ())),
        )
        assert client.post(
            f"{V1}/sync/take",
            json={"bundle": bundle_to_json(bundle)},
            params={"project": f"team:{name}"},
        ).json() == {"left": []}
        return served.owner.post(
            f"{V1}/sync/places", json={}, params={"project": f"team:{name}"}
        ).json()["bundle"]

    before = brought(served.owner, anna.name, "Planning")
    ben = served.client(
        served_token(served, f"ben-{anna.name}", Grant(team_scope("ours"), "", "ours"))
    )
    found = brought(ben, "ours", f"Deploys with {secret}")
    assert (
        served.owner.post(f"{V1}/sync/places", json={}, params=anna.where).json()["bundle"]
        == before
    )
    assert [one[0] for one in found["sessions"]] == [f"talk ours-{Person.number}"]
    assert "Deploys with [REDACTED:" in json.dumps(found)
    assert secret not in json.dumps(found)


def served_token(served, name, *grants):
    from bethink.surface.http import tokens

    return tokens.FileTokens(served.file).create(
        name, "write", grants, personal=False, now=datetime.now(UTC)
    )[0]


def test_a_bundle_that_is_not_in_order_changes_nothing(anna, served):
    id = anna.told("In order", served)

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
        {"tombstones": [["AA==", 1]]},
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
        Client(url, Key("rcl_x", "test"))
    assert "pass" not in error.value.message.replace("password", "")


def test_a_token_comes_from_a_file_or_the_environment_and_is_never_shown(
    served, tmp_path, monkeypatch
):
    monkeypatch.delenv("BETHINK_TOKEN", raising=False)
    assert remote.read_token() is None
    monkeypatch.setenv("BETHINK_TOKEN", "rcl_environment")
    assert remote.read_token().value == "rcl_environment"
    file = tmp_path / "token"
    file.write_text("rcl_file\n")
    assert remote.read_token(str(file)).value == "rcl_file"
    for wrong in (b"", b"two words", b"\xff\xfe", b"x" * 2000):
        file.write_bytes(wrong)
        with pytest.raises(ConfigError):
            remote.read_token(str(file))
    with pytest.raises(ConfigError, match="cannot be read"):
        remote.read_token(str(tmp_path / "nothing"))
    with pytest.raises(ServerRefusal, match="refused the key") as error:
        Client(served.address, Key("rcl_wrong", "test")).post("/sync/outline", {})
    assert "rcl_wrong" not in str(error.value.message)


def test_the_commands_say_what_is_missing(cli, served, monkeypatch):  # noqa: F811
    monkeypatch.delenv("BETHINK_TOKEN", raising=False)
    assert "asks for a key" in cli.fails("sync", "--with", served.address, code=1)
    assert "Nothing answers" in cli.fails("sync", "--with", NOBODY, code=1)
    assert "Which server is not said" in cli.fails("mcp", "--remote", code=2)


def test_each_server_has_an_outbox_of_its_own():
    assert outbox_folder("https://one.example") != outbox_folder("https://two.example")
    assert WaitingCall("k", "t", {}, "p").container is None
