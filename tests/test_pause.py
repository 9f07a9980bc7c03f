"""Pausing: what is said while memory is paused is neither told, nor captured, nor learned later."""

import json
import time
from datetime import UTC, datetime, timedelta

import pytest
from capturing import MORE, MORE_TEXTS, SAID, TEXTS, Desk

from bethink import project
from bethink.api import Bethink
from bethink.errors import BethinkError
from bethink.hooks import spool, state
from bethink.hooks.run import run
from bethink.hooks.state import Hook
from bethink.project import find


def ago(**span: float) -> datetime:
    return datetime.now(UTC) - timedelta(**span)


def keep(*pauses: project.Pause) -> None:
    project.pauses_file().parent.mkdir(parents=True, exist_ok=True)
    project.pauses_file().write_text(json.dumps([one._asdict() for one in pauses]))


def paused(*paths):
    return [project.is_paused(str(path)) for path in paths]


def test_a_project_or_everything_is_paused_until_resumed_or_for_a_time(cli, tmp_path, monkeypatch):
    (cli.project / ".git").mkdir()
    (cli.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (cli.project / "deep" / "down").mkdir(parents=True)
    (tmp_path / "bakery").mkdir()
    places = (cli.project, cli.project / "deep" / "down", tmp_path / "bakery")
    assert paused(*places) == [False] * 3
    assert cli.ok("pause") == "paused shop\n"
    assert paused(*places) == [True, True, False]
    assert cli.ok("resume") == "resumed shop\n"
    assert paused(*places) == [False] * 3
    cli.ok("pause", "--everywhere")
    assert all(paused(cli.project, tmp_path, "/nowhere"))
    result = cli("resume")
    assert "Nothing was paused" in result.out and "resume --everywhere" in result.err
    assert paused(cli.project) == [True]
    cli.ok("pause")
    told = cli.json("resume", "--everywhere")
    scopes = [one["scope"] for one in told["resumed"]]
    assert (scopes, told["still_paused"]) == (["everywhere", find(cli.project).scope], [])
    assert paused(cli.project) == [False]
    assert cli.ok("resume", "--everywhere") == "Nothing was paused.\n"
    assert cli.ok("pause") == "paused shop\n"
    assert cli.ok("pause", "--for", "2099-01-02 03:04") == "paused shop until 2099-01-02 03:04\n"
    told = cli.json("pause", "--for", "2h")["paused"]
    since, until = (datetime.fromisoformat(told[name]) for name in ("since", "until"))
    assert timedelta(hours=1.99) < until - since < timedelta(hours=2.01)
    assert [one.until is None for one in project.read_pauses() if one.holds(time.time())] == [False]
    assert paused(cli.project) == [True]
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 7300)
    assert paused(cli.project) == [False]


def test_a_chat_without_times_is_warned_of(cli, tmp_path):
    chat = tmp_path / "chat.jsonl"
    chat.write_text('{"role": "user", "content": "We decided to use PostgreSQL for the orders."}\n')
    cli.ok("pause")
    warned = cli("backfill", chat)
    assert warned.code == 0 and "without a time" in warned.err
    assert "warning: Memory is paused (shop)" in warned.err
    cli.ok("resume")
    assert "paused" not in cli("backfill", chat).err


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty"),
        pytest.param("{", id="no JSON"),
        pytest.param("[1]", id="numbers"),
        pytest.param('[{"scope": "x"}]', id="no times"),
        pytest.param('{"a": 1}', id="an object"),
        pytest.param('[{"scope": "x", "since": "then", "until": null}]', id="a time that is none"),
        pytest.param("\x00", id="a zero byte"),
    ],
)
def test_a_broken_file_counts_as_a_pause(cli, content):
    cli.ok("pause")
    project.pauses_file().write_text(content)
    assert paused(cli.project) == [True]
    with pytest.raises(BethinkError, match="counts as paused"):
        project.read_pauses()
    assert "pauses.json" in cli.fails("resume", "--everywhere", code=1)


@pytest.mark.parametrize("scope", ["project", "everywhere"])
def test_what_was_said_meanwhile_is_not_captured_by_the_next_stop(desk, scope):
    # Four turns, a minute apart, from twenty minutes ago; the two in the middle fall into a pause.
    began = ago(minutes=20)
    at = began.timestamp()
    where = project.EVERYWHERE if scope == "everywhere" else find(desk.project).scope
    keep(project.Pause(where, at + 30, at + 150))
    desk.note(desk.talk("a", *SAID, began=began))
    desk.work()
    assert desk.turns() == [TEXTS[0], TEXTS[3]]
    with desk.memory() as memory:
        assert all("RabbitMQ" not in one.content for one in memory.list(limit=100))


@pytest.mark.parametrize("works_there", [False, True])
def test_another_projects_pause_holds_only_for_what_was_said_there(desk, tmp_path, works_there):
    (tmp_path / "bakery").mkdir()
    keep(project.Pause(find(tmp_path / "bakery").scope, ago(hours=2).timestamp()))
    file = desk.talk("a", *SAID, began=ago(minutes=20))
    if works_there:
        lines = file.read_text().splitlines()
        lines[2] = lines[2].replace(str(desk.project), str(tmp_path / "bakery"))
        file.write_text("\n".join(lines) + "\n")
    desk.note(file)
    desk.work()
    assert desk.turns() == (TEXTS[:2] + TEXTS[3:] if works_there else TEXTS)


def test_a_backfill_long_after_leaves_it_out_too(cli, tmp_path):
    began = ago(days=40)
    keep(project.Pause(find(cli.project).scope, began.timestamp() - 60, began.timestamp() + 3600))
    desk = Desk(tmp_path, cli.home, "shop")
    told = cli.json("backfill", desk.talk("a", *SAID, began=began))
    assert (told["turns"], told["skipped"]) == (0, {"memory off": 4})
    file = desk.talk("a", *MORE, began=began + timedelta(hours=2), append=True)
    assert cli.json("backfill", file)["turns"] == 2
    assert {one["content"] for one in cli.json("list", "--kind", "context")} == set(MORE_TEXTS)
    assert cli.json("topics")[0]["id"] == "a"


@pytest.mark.parametrize("folder", ["", "deep"])
def test_outside_git_a_pause_holds_where_the_session_began(offline, tmp_path, monkeypatch, folder):
    shop = tmp_path / "shop"
    (shop / "deep").mkdir(parents=True)
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(shop))
    monkeypatch.setattr(spool, "wake", lambda database, config: None)
    with Bethink(directory=shop) as memory:
        memory.add("The Valkey cluster gets a third replica", kind="decision")

    def told(event: str, session: str, **more: str) -> str:
        place = {"cwd": str(shop / "deep"), "transcript_path": str(tmp_path / "a.jsonl")}
        return run(event, "claude", json.dumps({"session_id": session, **place, **more}).encode())

    asked = "does the Valkey cluster get a replica?"
    assert "third replica" in told("prompt", "before", prompt=asked)
    state.pause_memory(find(shop / folder).scope)
    assert told("prompt", "a", prompt=asked) == ""
    assert told("session-start", "b") == told("pre-compact", "a") == ""
    told("stop", "a")
    assert [entry.session for entry in spool.list_waiting()] == ["before"]
    state.resume_memory(project.EVERYWHERE)
    told("stop", "a")
    assert [entry.directory for entry in spool.list_waiting()] == [str(shop)]


class Cursor:
    """A conversation of a host that tells no times, and in some versions not where it keeps it."""

    def __init__(self, desk, file="cursor.jsonl", named=True):
        self.desk, self.file = desk, desk.folder / file
        self.named = str(self.file) if named else ""
        self.file.parent.mkdir(parents=True, exist_ok=True)

    def say(self, *pairs: tuple[str, str]) -> None:
        with self.file.open("a") as stream:
            for role, text in pairs:
                message = {"content": [{"type": "text", "text": text}]}
                stream.write(json.dumps({"role": role, "message": message}) + "\n")

    def note(self, event: str = "stop") -> None:
        hook = Hook(event, "cursor", "cursor", self.named, str(self.desk.project))
        spool.note(hook, self.desk.database)


@pytest.mark.parametrize("worker", ["at once", "at the end", "killed"])
def test_a_host_that_tells_no_times_is_read_past_what_was_said_meanwhile(desk, worker):
    cursor = Cursor(desk)

    def step(*pairs: tuple[str, str]) -> None:
        cursor.say(*pairs)
        cursor.note()
        if worker == "at once":
            desk.work()
        elif worker == "killed":
            spool.take(spool.list_entries(desk.database)[-1])  # and then it was gone

    step(*SAID[:2])
    state.pause_memory(find(desk.project).scope)
    step(*SAID[2:3])
    step(*SAID[3:])
    state.resume_memory(find(desk.project).scope)
    step(*MORE)
    desk.work()
    # Without a worker in between, nobody can tell apart what was said before, meanwhile and after.
    assert desk.turns() == (TEXTS[:2] + MORE_TEXTS if worker == "at once" else [])
    assert spool.list_waiting() == []
    step(("user", "We go on with Kafka then."))
    desk.work()
    assert desk.turns()[-1] == "We go on with Kafka then."


def test_a_host_that_names_no_file_teaches_nothing_said_meanwhile(desk, monkeypatch):
    monkeypatch.setenv("HOME", str(desk.folder))
    cursor = Cursor(desk, ".cursor/projects/shop/agent-transcripts/cursor.jsonl", named=False)
    cursor.say(*SAID[:2])
    cursor.note()
    desk.work()
    state.pause_memory(find(desk.project).scope)
    cursor.say(*SAID[2:])
    cursor.note()
    state.resume_memory(find(desk.project).scope)
    for said in ((), MORE):
        cursor.say(*said)
        cursor.note()
        desk.work()
    assert desk.turns() == TEXTS[:2] + MORE_TEXTS


def test_a_prompt_that_is_passed_over_keeps_nothing_back_that_is_said_later(desk):
    cursor = Cursor(desk)
    state.pause_memory(project.EVERYWHERE)
    cursor.say(*SAID)
    cursor.note("prompt")
    desk.work()
    state.resume_memory(project.EVERYWHERE)
    cursor.note("prompt")
    cursor.say(*MORE)
    desk.work()
    assert desk.turns() == MORE_TEXTS
