"""The server as a process: what no good client sends, how it ends, what it leaves behind and what it loads."""

import json
import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("mcp")

from mcp_client import META, Bare, environment
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from bethink import Bethink, embed
from bethink.errors import EmbeddingError
from bethink.surface.mcp import HANDSHAKES
from bethink.surface.mcp import keeper as keeping
from bethink.surface.mcp.keeper import Keeper, open_model

RUN = "from bethink.surface.cli.main import main; main(['mcp'])"
STORE = {
    "name": "store_memories",
    "arguments": {"memories": [{"content": "Deploys happen on Fridays"}]},
}
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "old", "version": "1"},
}


@pytest.fixture
def place(tmp_path):
    (tmp_path / "shop").mkdir()
    return tmp_path / "shop", tmp_path / "home"


@pytest.fixture
def bare(place):
    with Bare(*place) as bare:
        yield bare


def close_input(bare):
    """The host is done: how the server ends then."""
    bare.process.stdin.close()
    bare.process.stdin = open(os.devnull, "wb")  # noqa: PTH123, SIM115
    return bare.ends()


def said_by(bare, name="memory_overview", **more):
    """The text that a tool answers."""
    return bare.ask("tools/call", name=name, **more)["result"]["content"][0]["text"]


def changed(place, tool):
    """The server with one tool in its place that does something else."""
    program = f"""
import os, sys, time
from bethink.surface.mcp import tools
def other(memory, given):
    {tool}
tools.TOOLS["memory_overview"] = other
from bethink.surface.cli.main import main
main(["mcp"])
"""
    return Bare(*place, program=("-c", program))


# What no good client sends


def test_what_is_no_message_is_answered_as_such_and_the_server_lives_on(bare):
    for line, code in (
        ("{not json", -32700),
        (b"\xff\xfe\x00", -32700),
        ("", -32700),
        ("[]", -32600),
        ('"text"', -32600),
        ('{"jsonrpc": "1.0", "id": 1, "method": "ping"}', -32600),
        ('{"id": 7}', -32600),
        ("[" * 100_000, -32700),
        *(
            (f'{{"jsonrpc": "2.0", "params": {{"id": 1, "odd": {value}}}, "id": 7}}', -32700)
            for value in (r'"\ud800"', "[" * 5000 + "]" * 5000, "9" * 5000)
        ),
    ):
        bare.send(line)
        answer = bare.read()
        # Half a character, great depth and a huge number are answered under their id: whoever sent them does not wait for another.
        known = 7 if "odd" in str(line) else None
        assert (answer["id"], answer["error"]["code"]) == (known, code), line
    assert len(bare.ask("tools/list")["result"]["tools"]) == 9


def test_half_a_handshake_is_refused_and_not_welcomed_first(bare):
    for client in (None, 5, {"name": "half"}):
        half = {**INITIALIZE, "clientInfo": client}
        bare.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": half})
    assert [bare.read()["error"]["code"] for _ in range(3)] == [-32602] * 3


def test_wrong_requests_get_the_errors_of_the_protocol(bare):
    for method, params, code in (
        ("nothing/like/this", {}, -32601),
        ("tools/call", {}, -32602),
        ("tools/call", {"name": "memory_overview", "arguments": [1]}, -32602),
        ("tools/call", {"name": 5}, -32602),
        ("resources/read", {"uri": 5}, -32602),
        ("resources/list", {"cursor": "2"}, -32602),
        ("initialize", INITIALIZE, -32022),
    ):
        assert bare.ask(method, **params)["error"]["code"] == code, method
    bare.send({"jsonrpc": "2.0", "method": "notifications/nothing"})
    bare.send({"jsonrpc": "2.0", "id": 99, "result": {}})
    assert bare.ask("tools/call", name="memory_overview")["result"]["isError"] is False


def test_the_old_era_wants_its_handshake_first(bare):
    bare.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert bare.read()["error"]["code"] == -32602
    bare.send({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": INITIALIZE})
    answer = bare.read()["result"]
    assert (answer["protocolVersion"], answer["serverInfo"]["name"]) == ("2025-06-18", "bethink")
    assert set(answer["capabilities"]) == {"tools", "resources", "prompts"}
    bare.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    bare.send({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": STORE})
    assert bare.read()["result"]["content"][0]["text"].startswith("1. stored [")
    assert bare.ask("tools/list")["error"]["code"] == -32600, "the other era is not served any more"


# How it ends


def test_it_ends_with_its_input_and_closes_the_database(bare, place):
    assert "stored" in bare.ask("tools/call", **STORE)["result"]["content"][0]["text"]
    assert close_input(bare) == (0, b"", "")
    assert [file.name for file in place[1].glob("memory.db*")] == ["memory.db"], (
        "no write-ahead log is left"
    )
    with Bethink(place[1] / "memory.db", directory=place[0]) as memory:
        assert [one.content for one in memory.list()] == ["Deploys happen on Fridays"]


@pytest.mark.parametrize(
    ("number", "code", "first"),
    [
        (signal.SIGTERM, 0, {"method": "tools/call", **STORE}),
        (signal.SIGHUP, 0, {"method": "server/discover"}),
        (signal.SIGINT, 130, {"method": "tools/call", **STORE}),
    ],
)
def test_it_ends_when_it_is_told_to_also_if_it_only_greeted(bare, number, code, first):
    bare.ask(**first)
    bare.process.send_signal(number)
    assert bare.ends() == (code, b"", "")


def test_it_ends_with_its_parent_even_if_its_input_stays_open(place):
    """A host that was killed, while another of its children still holds the pipe."""
    start = "import signal, subprocess, sys; subprocess.Popen([sys.executable, '-m', 'bethink', 'mcp'], stdout=sys.stderr); signal.pause()"
    reading, writing = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", start],
        cwd=place[0],
        env=environment(place[1]),
        stdin=reading,
        stderr=subprocess.PIPE,
        text=True,
    ) as parent:
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
        os.write(writing, json.dumps(request).encode() + b"\n")
        assert parent.stderr.readline().startswith("{"), "it has started"
        parent.kill()
        assert parent.stderr.read() == "", "and has ended: nobody holds its output any more"
    os.close(reading)
    os.close(writing)


def test_a_client_that_goes_away_in_the_middle_of_a_call_takes_the_server_with_it(place, tmp_path):
    os.mkfifo(tmp_path / "wait")
    begun, wait = str(tmp_path / "begun"), str(tmp_path / "wait")
    waits = f"open({begun!r}, 'w').close(); return open({wait!r}).read()"
    with changed(place, waits) as bare:
        params = {"name": "memory_overview", "_meta": META}
        bare.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        while not (tmp_path / "begun").exists():
            assert bare.process.poll() is None
        bare.process.stdin.close()
        bare.process.stdout.close()
        assert bare.process.wait(20) == 0
        assert b"Traceback" not in bare.process.stderr.read()


def test_a_call_that_fails_is_told_and_what_is_printed_never_gets_between_the_messages(place):
    noise = (
        "print('noise'); os.write(1, b'raw noise\\n'); os.system('echo noise of a child'); 1 / 0"
    )
    with changed(place, noise) as bare:
        answer = bare.ask("tools/call", name="memory_overview")["result"]
        assert answer["isError"] is True
        assert "memory_overview failed: ZeroDivisionError" in answer["content"][0]["text"]
        assert "stored" in said_by(bare, **STORE)
        code, out, err = close_input(bare)
    assert (code, out) == (0, b"")
    assert {"noise", "noise of a child", "raw noise"} <= set(err.split("\n"))


# Trouble around it


def test_a_database_that_is_none_is_told_and_mended_without_a_restart(place):
    place[1].mkdir()
    (place[1] / "memory.db").write_text("this is no database, but long enough to look at: " * 100)
    with Bare(*place) as bare:
        assert "not a Bethink database" in said_by(bare)
        (place[1] / "memory.db").unlink()
        assert bare.ask("tools/call", name="memory_overview")["result"]["isError"] is False


def test_the_log_goes_to_stderr_at_the_level_that_is_asked_for(place):
    asked = {"query": "x", "reason_for_search": "to see ghp_" + "a1B2" * 9}
    with Bare(*place, BETHINK_LOG="debug") as bare:
        bare.ask("tools/call", name="search_memories", arguments=asked)
        bare.process.terminate()
        assert "search_memories: to see [REDACTED" in bare.ends()[2]


def test_without_the_sdk_the_command_says_what_to_install(place):
    program = "import sys; sys.modules['mcp'] = None; from bethink.surface.cli.main import main; sys.exit(main(['mcp']))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=place[0],
        env=environment(place[1]),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "hint: pip install 'bethink[mcp]'" in done.stderr


LEGACY = {"capabilities": {"sampling": {}}, "clientInfo": {"name": "old", "version": "1"}}
LISTS = ("tools/list", "prompts/list", "resources/templates/list")
HEAVY = {"mcp", "pydantic", "asyncio", "numpy", "apsw", "bethink.api", "bethink.surface.mcp.server"}


def begin(bare):
    """The first messages of a client: all that it is answered."""
    hello = {"method": "initialize", "params": {"protocolVersion": HANDSHAKES[-1], **LEGACY}}
    bare.send({"jsonrpc": "2.0", "id": "a", **hello})
    answers = [bare.read()["result"]]
    bare.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    for method in ("ping", *LISTS):
        bare.send({"jsonrpc": "2.0", "id": method, "method": method})
        answers.append(bare.read()["result"])
    return answers


def test_a_client_is_greeted_in_the_words_of_the_whole_server(place):
    whole = "import bethink.surface.mcp as greeting; greeting.LONGEST = 0"  # it answers no line
    with Bare(*place) as bare, Bare(*place, program=("-c", f"{whole}; {RUN}")) as full:
        assert begin(bare) == begin(full)
        # And it goes on as if it had been there from the start: nothing is told twice, and the state is the same.
        call = {"method": "tools/call", "params": STORE}
        bare.send({"jsonrpc": "2.0", "id": "next", **call})
        answer = bare.read()
        assert answer["id"] == "next"
        assert "stored" in answer["result"]["content"][0]["text"]
    assert HANDSHAKES == HANDSHAKE_PROTOCOL_VERSIONS


def test_who_asks_what_the_server_is_may_go_on_in_either_version(place):
    whole = "import bethink.surface.mcp as greeting; greeting.LONGEST = 0"
    with Bare(*place) as bare, Bare(*place, program=("-c", f"{whole}; {RUN}")) as full:
        told = bare.ask("server/discover")["result"]
        assert told == full.ask("server/discover")["result"]
        assert "stored" in bare.ask("tools/call", **STORE)["result"]["content"][0]["text"]
    with Bare(*place) as late:
        half = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
        late.send({"jsonrpc": "2.0", "id": 0, "method": "server/discover", "params": half})
        assert late.read()["error"]["code"] == -32602, "what is not whole is left to the SDK"
    with Bare(*place) as late:  # which did not wait for the answer
        late.ask("server/discover")
        begin(late)
        late.send({"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": STORE})
        assert late.read()["result"]["isError"] is False


def test_the_greeting_loads_nothing_heavy(place):
    with Bare(*place, program=("-X", "importtime", "-m", "bethink", "mcp")) as bare:
        begin(bare)
        code, _, loaded = close_input(bare)
    names = {line.rpartition("|")[2].strip() for line in loaded.splitlines()}
    assert (code, "bethink.surface.mcp.schemas" in names, HEAVY & names) == (0, True, set())


def test_lists_are_answered_before_what_has_to_be_loaded(place):
    """Hosts ask for several things at once: resources need the database, tools do not."""
    with Bare(*place) as bare:
        begin(bare)
        for id, method in enumerate(("resources/list", *LISTS)):
            bare.send({"jsonrpc": "2.0", "id": id, "method": method})
        assert [bare.read()["id"] for _ in range(4)] == [1, 2, 3, 0]


# The keeper


@pytest.fixture
def keeper(place, monkeypatch):
    monkeypatch.setenv("BETHINK_HOME", str(place[1]))
    monkeypatch.setenv("BETHINK_EMBEDDING", "hashing")
    keeper = Keeper(place[0])
    yield keeper
    assert keeper.close(10)


def test_a_model_that_takes_too_long_is_not_waited_for(keeper, monkeypatch):
    monkeypatch.setattr(keeping, "open_model", lambda memory, ready: None)  # never ready
    monkeypatch.setattr(keeping, "PATIENCE", 0)
    memory = keeper.memory(None, "agent:x", meaning=True)
    assert memory.add("Deploys happen on Fridays").status == "added"
    answer = memory.search("deploys")
    assert (answer.mode, len(answer.hits)) == ("keyword", 1)
    assert "still being fetched" in answer.hints[0]
    assert memory.stats().unembedded == 1


def test_a_model_that_failed_is_tried_again_beside_the_calls(keeper, monkeypatch):
    first = keeper.memory(None, "agent:x", meaning=True)
    first._model.rest(EmbeddingError("The endpoint is down."))
    assert keeper.memory(None, "agent:x", meaning=True).embedder is None
    opening = []
    monkeypatch.setattr(keeping, "open_model", lambda *those: opening.append(those))
    monkeypatch.setattr(embed, "ASK_AGAIN", -1)
    assert not keeper.has_model(None), "a hook does not wait for it"
    [(memory, ready)] = opening
    assert keeper.has_model(None) is False and len(opening) == 1, "once"
    open_model(memory, ready)
    again = keeper.memory(None, "agent:x", meaning=True)
    assert keeper.has_model(None) and again.embedder is not None and again.store is first.store


def test_getting_ready_ahead_of_time_happens_once_and_never_fails_loudly(keeper, place, caplog):
    keeper.warm_up()
    thread = keeper._warm
    keeper.warm_up()
    assert keeper._warm is thread
    assert keeper.close(10)
    assert (place[1] / "memory.db").exists()
    broken = Keeper(database=str(place[0]))
    broken.warm_up()
    assert broken.close(10)
    assert "Traceback" not in caplog.text


def test_folders_of_one_checkout_share_a_store_and_a_model(keeper, place):
    project = place[0]
    (project / ".git").mkdir(exist_ok=True)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    opened = set()
    for folder in (project, project / "src", project / "src" / "deep"):
        folder.mkdir(exist_ok=True)
        memory = keeper.memory(folder, "agent:test", meaning=True)
        opened.add((id(memory.store), id(memory.embedder)))
    assert len(opened) == 1
