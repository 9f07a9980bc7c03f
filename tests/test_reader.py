"""The background reader: choosing it, reading a session once after its end, and failures that every process knows."""

import json
import os
import stat
import sys

import pytest
from capturing import Desk
from fake_llm import answers, serving, status

from bethink.features import conversations, reading

TALK = (
    ("user", "Which queue should the mailer use?"),
    ("assistant", "RabbitMQ runs already, so it needs no new server."),
    ("user", "Then use RabbitMQ for the mailer, because it runs already."),
)
IDEA = {
    "kind": "decision",
    "text": "The mailer uses RabbitMQ, because it runs already.",
    "firm": True,
    "entities": [{"name": "RabbitMQ", "type": "technology"}],
    "turns": [2],
}
DIGEST = {"asked": "which queue the mailer uses", "done": "nothing", "left": "nothing"}
READ = {"ideas": [IDEA], "digest": DIGEST}
REPLY = (
    f"{{'ready' in asked and 'Read the word' in asked: {{'word': 'ready'}}}}.get(True, {READ!r})"
)
HEAD = f"#!{sys.executable} -IS\nimport json, os, sys\nasked = sys.stdin.read() + ' '.join(sys.argv)\nreply = json.dumps({REPLY})\n"
PROGRAMS = {
    "claude": "print(json.dumps({'type': 'result', 'subtype': 'success', 'result': reply, 'usage': {'input_tokens': 90, 'output_tokens': 10}}))",
    "codex": "print(json.dumps({'type': 'item.completed', 'item': {'type': 'agent_message', 'text': reply}}))\n"
    "print(json.dumps({'type': 'turn.completed', 'usage': {'input_tokens': 90, 'output_tokens': 10}}))",
    "gemini": "print(json.dumps({'response': reply, 'stats': {'models': {'m': {'tokens': {'prompt': 90, 'candidates': 10}}}}}))",
}
# What each program prints when nobody is signed in, as the released ones did on 2026-11-19.
SIGNED_OUT_AS = {
    "claude": "print(json.dumps({'type': 'result', 'subtype': 'success', 'is_error': True, 'api_error_status': None, 'result': 'Not logged in · Please run /login', 'usage': {'input_tokens': 0, 'output_tokens': 0}}))",
    "codex": "print(json.dumps({'type': 'turn.failed', 'error': {'message': 'unexpected status 401 Unauthorized: Missing bearer authentication'}})); sys.exit(1)",
    "gemini": "print(json.dumps({'error': {'type': 'Error', 'message': 'Please set an Auth method in your settings.json or specify one of the following environment variables before running: GEMINI_API_KEY', 'code': 41}})); sys.exit(41)",
}
SIGNED_OUT = "print('Not logged in: run login first.', file=sys.stderr); sys.exit(1)"
every = pytest.mark.parametrize("name", PROGRAMS)


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Puts a program on the path; `calls` counts its runs, and `seen` is what the last one got."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    class Program:
        log = tmp_path / "calls.jsonl"

        def write(self, name, body=""):
            note = f"seen = dict(asked=asked, hooks=os.environ.get('BETHINK_HOOKS'), folder=os.getcwd())\nopen({str(self.log)!r}, 'a').write(json.dumps(seen) + '\\n')\n"
            path = folder / name
            path.write_text(HEAD + note + (body or PROGRAMS[name]) + "\n")
            path.chmod(stat.S_IRWXU)

        @property
        def seen(self):
            lines = self.log.read_text().splitlines() if self.log.exists() else []
            return [json.loads(line) for line in lines]

    return Program()


@pytest.fixture
def desk(tmp_path, offline, cli, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return Desk(tmp_path, offline)


def read(desk, event="session-end"):
    desk.note(desk.talk("one", *TALK), event)
    return desk.work()


def statements(desk):
    with desk.memory() as memory:
        return [one for one in memory.list(limit=50) if one.kind != "context"]


@every
def test_a_reader_is_chosen_in_one_step(cli, program, name):
    program.write(name)
    chosen = cli.json("config", "reader", name)
    assert chosen["llm"] == name
    assert cli.json("config", "llm")["value"] == name


def test_choosing_a_reader_names_its_cost(cli, desk, program):
    program.write("claude")
    read(desk)
    printed = cli.ok("config", "reader", "claude")
    assert "tokens a session, by your last 1" in printed
    assert "at most 50,000 a day" in printed


def test_a_reader_that_cannot_answer_is_not_chosen(cli, program):
    program.write("codex", SIGNED_OUT)
    assert "Not logged in" in cli.fails("config", "reader", "codex", code=1)
    assert cli.json("config", "llm")["value"] == ""


def test_a_missing_program_is_not_chosen(cli, program, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "is not on the path" in cli.fails("config", "reader", "gemini", code=1)


def test_the_next_step_without_ollama_is_to_start_it(cli):
    with serving() as server:
        url = server.url
    assert "Run `ollama serve`" in cli.fails("config", "reader", "ollama:qwen3", url, code=1)


def test_the_next_step_without_a_model_is_to_pull_it(cli):
    with serving() as server:
        server.script[:] = [status(404, "model not found, try pulling it first")]
        printed = cli.fails("config", "reader", "ollama:qwen3", server.url, code=1)
    assert "Run `ollama pull qwen3`" in printed


@pytest.mark.parametrize(
    "name", [pytest.param("ollama:qwen3", id="here"), pytest.param("openai", id="by address")]
)
def test_choosing_a_reader_says_where_text_goes(cli, name):
    with serving() as server:
        server.script[:] = [answers({"word": "ready"})]
        printed = cli.ok("config", "reader", name, server.url)
    assert "which is this machine" in printed


def test_choosing_a_program_says_that_text_is_sent(cli, program):
    program.write("codex")
    assert "sent to the provider of codex" in cli.ok("config", "reader", "codex")


def test_an_unknown_reader_is_refused(cli):
    assert "There is no reader 'oracle'" in cli.fails("config", "reader", "oracle", code=2)


def test_an_endpoint_is_chosen_by_its_address(cli):
    with serving() as server:
        server.script[:] = [answers({"word": "ready"})]
        cli.ok("config", "reader", "openai", server.url)
    assert cli.json("config", "llm_url")["value"] == server.url


def test_the_reader_is_switched_off(cli, program):
    program.write("claude")
    cli.ok("config", "reader", "claude")
    cli.ok("config", "reader", "off")
    assert cli.json("config", "reader")["reader"] is None


@every
def test_a_session_is_read_after_its_end(cli, desk, program, name):
    program.write(name)
    cli.ok("config", "reader", name)
    read(desk)
    (found,) = [one for one in statements(desk) if one.content == IDEA["text"]]
    assert (found.session, found.lines) == ("one", (3, 3))


def test_a_session_is_not_read_before_its_end(cli, desk, program):
    program.write("claude")
    cli.ok("config", "reader", "claude")
    read(desk, "stop")
    assert len(program.seen) == 1  # the check


def test_a_session_is_read_once(cli, desk, program):
    program.write("claude")
    cli.ok("config", "reader", "claude")
    read(desk)
    calls = len(program.seen)
    with desk.memory() as memory:
        assert reading.read_ended(memory, ["one"]) == []
    assert len(program.seen) == calls


def test_the_readers_digest_replaces_the_derived_one(cli, desk, program):
    program.write("claude")
    cli.ok("config", "reader", "claude")
    read(desk)
    with desk.memory() as memory:
        (session,) = conversations.sessions(memory)
    assert session.digest["asked"] == DIGEST["asked"]


def test_no_hook_answers_a_reader(cli, desk, program):
    program.write("codex")
    cli.ok("config", "reader", "codex")
    read(desk)
    assert {one["hooks"] for one in program.seen} == {"off"}


def test_a_request_of_the_reader_is_not_stored_as_a_conversation(cli, desk, program):
    program.write("gemini")
    cli.ok("config", "reader", "gemini")
    read(desk)
    asked = program.seen[-1]["asked"]
    file = desk.talk("gemini-run", ("user", asked), ("assistant", json.dumps(READ)))
    with desk.memory() as memory:
        conversations.backfill(memory, [("claude", file)])
        assert [one.id for one in conversations.sessions(memory)] == ["one"]


def test_a_failing_reader_is_left_alone_by_every_process(cli, desk, program):
    program.write("claude")
    cli.ok("config", "reader", "claude")
    program.write("claude", SIGNED_OUT)
    calls = len(program.seen)
    for name in ("one", "two", "three", "four", "five"):
        desk.note(desk.talk(name, *TALK), "session-end")
        desk.work()
    assert len(program.seen) - calls == 3


@every
def test_a_signed_out_reader_costs_no_tokens(cli, desk, program, name):
    program.write(name)
    cli.ok("config", "reader", name)
    before = cli.json("stats")["language_model"]["today"]
    program.write(name, SIGNED_OUT_AS[name])
    read(desk)
    assert cli.json("stats")["language_model"]["today"] == before


def test_doctor_names_a_failing_reader_and_the_next_step(cli, desk, program):
    program.write("codex")
    cli.ok("config", "reader", "codex")
    program.write("codex", SIGNED_OUT)
    read(desk)
    (found,) = [
        one for one in json.loads(cli("--json", "doctor").out) if one["check"] == "language model"
    ]
    assert not found["ok"]
    assert "`codex login` signs in. Then `bethink config reader codex`" in found["fix"]


def test_choosing_the_reader_again_forgets_its_failures(cli, desk, program):
    program.write("codex")
    cli.ok("config", "reader", "codex")
    program.write("codex", SIGNED_OUT)
    read(desk)
    program.write("codex")
    cli.ok("config", "reader", "codex")
    (found,) = [
        one for one in json.loads(cli("--json", "doctor").out) if one["check"] == "language model"
    ]
    assert found["ok"]


@pytest.fixture
def long_session(cli, desk, program):
    """A session of two portions, of which the model reads the first and fails at the second."""
    program.write("claude")
    cli.ok("config", "reader", "claude")
    calls = f"open({str(program.log)!r}).readlines()"
    program.write("claude", f"sys.exit(1) if len({calls}) == 3 else {PROGRAMS['claude']}")
    filler = ("assistant", "The mailer sends letters. " * 400)
    desk.note(desk.talk("one", *TALK, filler, filler), "session-end")
    desk.work()
    return program


def test_what_a_model_read_before_it_failed_is_kept(desk, long_session):
    assert IDEA["text"] in {one.content for one in statements(desk)}


def test_a_session_is_read_on_where_the_model_failed(desk, long_session):
    calls = len(long_session.seen)
    with desk.memory() as memory:
        reading.read_ended(memory, ["one"])
    again = long_session.seen[calls:]
    assert "Which queue should the mailer use?" not in "".join(one["asked"] for one in again)


def test_the_digest_of_a_session_that_was_read_in_part_is_not_replaced(desk, long_session):
    with desk.memory() as memory:
        (session,) = conversations.sessions(memory)
    assert session.digest["asked"] != DIGEST["asked"]


def test_codex_reads_without_the_users_servers(cli, program, monkeypatch, tmp_path):
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    (tmp_path / "config.toml").write_text('[mcp_servers.bethink]\ncommand = "bethink"\n')
    program.write("codex")
    cli.ok("config", "reader", "codex")
    assert "-c mcp_servers.bethink.enabled=false" in program.seen[0]["asked"]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param({"type": "item.completed", "item": ["x"]}, id="an item that is a list"),
        pytest.param({"type": "error", "error": "out of credit"}, id="an error that is a text"),
    ],
)
def test_an_answer_of_another_form_is_a_failure_that_is_named(cli, program, line):
    program.write("codex", f"print({json.dumps(line)!r})")
    assert "ended with code 0 and without an answer" in cli.fails(
        "config", "reader", "codex", code=1
    )
