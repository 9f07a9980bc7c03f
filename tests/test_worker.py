"""The worker: what was noted becomes memory, once, whatever happens in between."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest
from capturing import MORE, MORE_TEXTS, SAID, TEXTS, Desk
from test_hosts_opencode import AGENT, DONE, USER, Opencode

from bethink import Bethink
from bethink.agents.agent import ToolCall
from bethink.config import Config
from bethink.embed import models
from bethink.embed.hashing import HashingEmbedder
from bethink.errors import BethinkError, EmbeddingError, InvalidInput
from bethink.features import conversations
from bethink.hooks import spool, state, worker
from bethink.hooks.prompt import is_own
from bethink.hooks.state import Hook
from bethink.hooks.tool import refresh_index
from bethink.model import TRUST
from bethink.project import locate


def test_a_spooled_transcript_becomes_memories(desk):
    desk.note(desk.talk("a", *SAID))
    assert desk.work() == 1
    assert desk.turns() == TEXTS
    assert spool.list_waiting() == []
    with desk.memory() as memory:
        decisions = memory.list(filter=memory.filter(kinds=("decision",)))
        assert any("RabbitMQ" in one.content for one in decisions)
        assert {one.session for one in decisions} == {"a"}
        assert memory.search("durable exchange for outgoing mail", mode="vector").hits
    assert state.read_failures() == []


def test_a_second_capture_adds_only_new_turns(desk):
    desk.note(desk.talk("a", *SAID))
    assert desk.work() == 1
    desk.note(desk.talk("a", *MORE, append=True))
    desk.note(desk.talk("a", append=True), "session-end")
    desk.work()
    assert desk.turns() == TEXTS + MORE_TEXTS


@pytest.mark.parametrize("event", spool.UNDER_WAY)
def test_what_is_read_in_the_middle_of_a_turn_is_read_on_when_its_agent_was_killed(
    desk, monkeypatch, event
):
    desk.note(desk.talk("a", *SAID[:1]), event)
    desk.work()  # for another session
    assert desk.turns() == TEXTS[:1]
    talk = desk.talk("a", *SAID[1:], append=True)
    desk.work()
    assert desk.turns() == TEXTS
    desk.note(talk)
    desk.work()
    assert spool.list_waiting() == [], "the turn is over"
    desk.note(talk, event)
    monkeypatch.setattr(worker, "TURN", 0.0)
    desk.work()
    assert spool.list_waiting() == [], "no turn is that long"


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        pytest.param("gone", "gone.jsonl", id="gone"),
        pytest.param("bug", "bug.jsonl was not read: ZeroDivisionError: a bug", id="bug"),
    ],
)
def test_an_unreadable_transcript_is_retried_then_reported(desk, monkeypatch, trouble, told):
    reading, begun = conversations.read_on, []

    def fragile(memory, path, *args, **more):
        begun.append(path.stem)
        if path.stem == "bug":
            raise ZeroDivisionError("a bug")
        return reading(memory, path, *args, **more)

    monkeypatch.setattr(conversations, "read_on", fragile)
    desk.note(desk.folder / "gone.jsonl" if trouble == "gone" else desk.talk(trouble, *MORE))
    desk.note(desk.talk("a", *SAID))
    for _ in range(worker.ATTEMPTS):
        assert not state.read_failures()
        desk.work()
    assert begun.count(trouble) == worker.ATTEMPTS
    assert desk.turns() == TEXTS, "the others are read"
    assert spool.list_waiting() == []
    (failure,) = state.read_failures()
    assert (failure.host, failure.event, failure.count) == ("claude", "stop", 1)
    assert told in failure.message


def test_secrets_in_names_are_not_stored(offline, tmp_path):
    secret = "ghp_" + "a1B2" * 9
    folder = tmp_path / secret
    folder.mkdir()
    desk = Desk(folder, offline, f"key-of-{secret}"[7:])
    talk = desk.talk(secret, *SAID)
    told = {"session_id": secret, "transcript_path": str(talk), "cwd": str(desk.project)}
    hook = state.from_fields("stop", "claude", told)
    spool.note(hook, desk.database)
    desk.work()
    assert desk.turns() == TEXTS
    with desk.memory() as memory:
        assert len(list(memory.store.sessions(memory.scopes, 9, 0))) == 1
        prompt = state.from_fields("prompt", "claude", told | {"prompt": "RabbitMQ?"})
        assert all(is_own(prompt, one) for one in memory.list(limit=9))
    talk.unlink()
    desk.note(talk)
    for _ in range(worker.ATTEMPTS):
        desk.work()
    assert state.read_failures()
    files = [path for path in offline.rglob("*") if path.is_file()]
    assert [path for path in files if secret.encode() in path.read_bytes()] == []
    desk.talk(secret, *SAID, *MORE)
    desk.note(talk)
    desk.work()
    assert desk.turns() == TEXTS + MORE_TEXTS, "it is read on under the same name"
    with pytest.raises(InvalidInput, match="container"):
        Bethink(desk.database, container=secret)


def test_an_entry_that_kills_its_worker_is_given_up(desk):
    desk.note(desk.talk("a", *SAID))
    for attempt in range(1, worker.ATTEMPTS + 1):
        (path,) = spool.list_entries(desk.database)
        # The process is gone before anything was read: the entry is still there.
        assert spool.take(path)[1].attempts == attempt
    desk.work()
    assert (spool.list_waiting(), desk.turns()) == ([], [])
    assert "never got anywhere" in state.read_failures()[0].message
    desk.note(desk.talk("a", *MORE, append=True))
    desk.work()
    assert desk.turns() == TEXTS + MORE_TEXTS


def test_out_of_time_the_rest_stays_for_the_next_worker(desk):
    desk.note(desk.talk("a", *SAID))
    desk.note(desk.talk("b", *MORE))
    assert worker.run(desk.database, seconds=0) == 0
    assert len(spool.list_waiting()) == 2
    desk.work()
    assert (len(desk.turns()), spool.list_waiting()) == (6, [])


@pytest.mark.parametrize("blocked", [False, True])
def test_what_is_noted_after_the_last_look_is_read(desk, tmp_path, monkeypatch, blocked):
    if blocked:  # something else has to wait
        other = Desk(tmp_path, desk.home, "bakery")
        (other.project / ".bethink").mkdir()
        (other.project / ".bethink" / "config.toml").write_text("this is = = nothing")
        other.note(other.talk("b", *MORE))
    draining, late = worker._drain, [desk.talk("a", *SAID)]

    def slow(*arguments):
        found = draining(*arguments)
        if late:
            desk.note(late.pop())  # by a hook that sees the lock held, and starts no worker
            spool.wake(desk.database, Config())
        return found

    monkeypatch.setattr(worker, "_drain", slow)
    assert desk.work() == 1
    assert desk.turns() == TEXTS
    assert [entry.session for entry in spool.list_waiting()] == ["b"] * blocked


def test_a_locked_database_loses_nothing(desk, monkeypatch):
    monkeypatch.setenv("BETHINK_BUSY_TIMEOUT", "0.1")
    with desk.memory():
        pass
    writer = apsw.Connection(desk.database)
    writer.execute("BEGIN IMMEDIATE")
    desk.note(desk.talk("a", *SAID))
    desk.work()
    assert "Another process is writing" in state.read_failures()[0].message
    assert len(spool.list_waiting()) == 1
    writer.close()
    desk.work()
    assert (desk.turns(), spool.list_waiting()) == (TEXTS, [])


@pytest.mark.parametrize("damage", ["no database at all", "settings"])
def test_entries_wait_while_the_database_is_broken(desk, damage):
    desk.note(desk.talk("a", *SAID))
    broken = Path(desk.database) if damage != "settings" else desk.home / "config.toml"
    broken.write_text("this is = = nothing " * 100)
    for _ in range(worker.ATTEMPTS + 2):
        assert desk.work() == 0
    assert len(spool.list_waiting()) == 1
    assert state.read_failures()[0].count == worker.ATTEMPTS + 2
    broken.unlink()
    assert desk.work() == 1
    assert desk.turns() == TEXTS


@pytest.mark.parametrize("model", ["not installed", "failing"])
def test_a_worker_without_a_model_fetches_nothing(desk, monkeypatch, model):
    def fails(*_, **__):
        raise EmbeddingError("The endpoint is down.")

    monkeypatch.setattr(HashingEmbedder, "documents", fails)
    monkeypatch.setattr(models, "pull", lambda *_, **__: pytest.fail("a worker fetches nothing"))
    if model == "not installed":
        monkeypatch.setenv("BETHINK_EMBEDDING", "snowflake-arctic-embed-s")
        monkeypatch.delenv("BETHINK_OFFLINE")
    desk.note(desk.talk("a", *SAID))
    assert desk.work() == 1
    with desk.memory() as memory:
        assert memory.search("RabbitMQ mailer", mode="keyword").hits
        assert memory.store.models() == []


def test_two_databases_do_not_mix(desk, tmp_path):
    other = Desk(tmp_path, desk.home, "bakery")
    other.database = str(tmp_path / "bakery.db")
    desk.note(desk.talk("a", *SAID))
    other.note(other.talk("b", *MORE))
    assert desk.work() == 1
    assert len(spool.list_waiting()) == 1
    assert other.work() == 1
    assert (desk.turns(), other.turns()) == (TEXTS, MORE_TEXTS)


def test_a_host_that_names_no_transcript_is_asked_for_that_of_the_session(desk, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(desk.folder))
    (desk.folder / "opencode").mkdir()
    opencode = Opencode(desk.folder / "opencode").session()
    opencode.say("msg_1", USER, {"type": "text", "text": "Which cache?"})
    opencode.say("msg_2", AGENT, {"type": "text", "text": "Redis, for an hour.", "time": DONE})
    told = Hook("stop", "opencode", session="ses_1", directory=str(desk.project))
    spool.note(told, desk.database)
    assert desk.work() == 1
    opencode.connection.close()
    with desk.memory() as memory:
        (session,) = memory.store.sessions(memory.every_scope(), 5, 0)
    assert (session.id, session.host) == ("ses_1", "opencode")
    assert (spool.list_waiting(), state.read_failures()) == ([], [])
    assert list(spool.read_captures()) == ["opencode"]
    desk.talk("a", *SAID)
    spool.note(Hook("stop", "claude", session="a", directory=str(desk.project)), desk.database)
    assert desk.work() == 1
    assert desk.turns() == TEXTS
    # An agent that was ended before it wrote anything is no failure.
    gone = {"transcript": str(desk.folder / "gone.jsonl")}
    for event, told in (("prompt", {"session": "b"}), ("pre-compact", gone)):
        hook = Hook(event, "claude", directory=str(desk.project), **told)
        spool.note(hook, desk.database)
    for _ in range(worker.ATTEMPTS):
        desk.work()
    assert (spool.list_waiting(), state.read_failures()) == ([], [])


def test_a_note_is_one_private_file_in_a_home_that_can_be_written(desk, tmp_path, monkeypatch):
    desk.note("/talks/a.jsonl")
    (file,) = (path for path in spool.folder().iterdir() if path.is_file())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    spool.note_capture("claude")
    folders = [path for path in desk.home.rglob("*") if path.is_dir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}
    state.folder().chmod(0o755)
    spool.note_capture("claude")
    assert stat.S_IMODE(state.folder().stat().st_mode) == 0o700
    for event in ("stop", "session-end"):  # noted again it is one entry, another one is another
        desk.note("/talks/a.jsonl", event)
    desk.note("/talks/b.jsonl")
    noted = {(entry.transcript, entry.event) for entry in spool.list_waiting()}
    assert noted == {("/talks/a.jsonl", "session-end"), ("/talks/b.jsonl", "stop")}
    assert len(spool.list_waiting()) == 2
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(BethinkError, match="cannot be written"):
        desk.note("/talks/a.jsonl")


def test_a_database_has_one_key_for_all_its_names(tmp_path, monkeypatch, desk):
    monkeypatch.chdir(tmp_path)
    names = ("team.db", tmp_path / "team.db", tmp_path / "x" / ".." / "team.db")
    assert len({spool.key_of(str(name)) for name in names}) == 1
    assert spool.full_name("postgresql://ada@db/team") == "postgresql://ada@db/team"


def test_each_tenant_has_its_own_entries(desk, monkeypatch):
    desk.database = "postgresql://ada@db/team"
    desk.note("/talks/a.jsonl")
    monkeypatch.setenv("BETHINK_TENANT", "bakery")
    assert spool.list_entries(desk.database) == []
    desk.note("/talks/a.jsonl")
    assert (len(spool.list_entries(desk.database)), len(spool.list_waiting())) == (1, 2)


def test_an_entry_made_while_the_worker_reads_is_kept(desk):
    desk.note("/talks/a.jsonl")
    for _ in range(2):
        (path,) = spool.list_entries(desk.database)
        spool.take(path)
    desk.note("/talks/a.jsonl")
    newest = next(path for path in spool.list_entries(desk.database) if path.suffix == spool.NEW)
    taken, entry = spool.take(newest)
    assert entry.attempts == 3
    assert len(spool.list_entries(desk.database)) == 1
    desk.note("/talks/a.jsonl")
    taken.unlink()
    assert len(spool.list_entries(desk.database)) == 1


BROKEN_ENTRIES = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff\x00",
    b'{"host": 1}',
    b"[" * 100_000,
    b'{"host": "claude"}',
]


def test_broken_entries_do_not_block_others(desk):
    odd = (b"", b"\x00\xff" * 1000, b"not a transcript\n", b"{}\n", b'{"type": "user"')
    for number, content in enumerate(odd):
        (desk.folder / f"odd{number}.jsonl").write_bytes(content)
        desk.note(desk.folder / f"odd{number}.jsonl")
    desk.note(desk.talk("a", *SAID))
    broken = BROKEN_ENTRIES
    for number, content in enumerate(broken):
        name = f"{spool.key_of(desk.database)}-broken{number}.json"
        (spool.folder() / name).write_bytes(content)
    assert len(spool.list_waiting()) == len(odd) + 1
    desk.work()
    assert spool.list_entries(desk.database) == []
    assert "was damaged" in state.read_failures()[0].message
    assert state.read_failures()[0].count == len(broken)
    assert desk.turns() == TEXTS


LOCKING = """
import sys
from bethink.hooks import spool
with spool.lock(sys.argv[1]) as held:
    print(held, flush=True)
    sys.stdin.read()
"""


def test_one_process_holds_the_lock(desk):
    def is_free(database):
        with spool.lock(database) as held:
            return held

    command = [sys.executable, "-c", LOCKING, desk.database]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as other:
        assert other.stdout.readline() == "True\n"
        assert not is_free(desk.database) and is_free(desk.database + "2")
        other.kill()
        other.wait()
        assert is_free(desk.database)


def test_a_worker_inherits_no_secrets(monkeypatch, desk):
    kept = {"BETHINK_LIMIT", "OPENAI_API_KEY", "LC_ALL"}
    left = {"CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_ENV_FILE", "AWS_SECRET_ACCESS_KEY"}
    for name in kept | left | {"CODEX_HOME", "LD_PRELOAD"}:
        monkeypatch.setenv(name, "kept" if name in kept else "left")
    monkeypatch.setenv("PYTHONPATH", "relative")
    found = spool.worker_environment(Config(embedding="http"))
    assert "left" not in found.values()
    assert {name for name, value in found.items() if value == "kept"} == kept
    assert found["BETHINK_HOOKS"] == "off"
    assert all(Path(part).is_absolute() for part in found["PYTHONPATH"].split(os.pathsep))


def test_a_worker_that_a_tool_call_wakes_gets_the_keys_of_the_models(monkeypatch, desk):
    started = []
    monkeypatch.setattr(
        "bethink.system.detach", lambda words, environment, descriptor: started.append(environment)
    )
    monkeypatch.setenv("OPENAI_API_KEY", "k1")
    call = ToolCall("Bash", "make test", output="Error: no rule", failed=True)
    hook = Hook("tool", "claude", session="a", directory=str(desk.project), calls=(call,))
    hook = hook._replace(transcript=str(desk.talk("a", *SAID)))
    config = Config(embedding="http", database=desk.database)
    refresh_index(hook, config, locate(desk.project))
    assert started[0]["OPENAI_API_KEY"] == "k1"


def test_a_transcript_that_a_hook_names_elsewhere_is_nobodys_word(desk):
    file = desk.talk("a", *SAID)
    desk.note(file.rename(desk.folder / "a.jsonl"))
    desk.work()
    with desk.memory() as memory:
        assert {one.trust for one in memory.list(limit=100)} == {TRUST["import"]}


def test_a_link_in_the_agents_folder_counts_for_what_it_leads_to(desk):
    file = desk.talk("a", *SAID)
    elsewhere = file.rename(desk.folder / "a.jsonl")
    file.symlink_to(elsewhere)
    desk.note(file)
    desk.work()
    with desk.memory() as memory:
        assert {one.trust for one in memory.list(limit=100)} == {TRUST["import"]}


def test_a_worker_finds_transcripts_where_their_session_keeps_them(desk, monkeypatch):
    """It may have been started by a session of which the environment names another folder."""
    desk.note(desk.talk("a", *SAID))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(desk.folder / "another"))
    desk.work()
    with desk.memory() as memory:
        assert TRUST["user"] in {one.trust for one in memory.list(limit=100)}
