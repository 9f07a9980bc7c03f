"""The server as a process: what no good client sends, how it ends, what it leaves behind and what it loads."""

import json
import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("mcp")

from capturing import eventually
from mcp_client import META, Bare, environment
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from bethink import Bethink, embed
from bethink.app.mcp import HANDSHAKES
from bethink.app.mcp import keeper as keeping
from bethink.app.mcp.keeper import Keeper, open_model
from bethink.errors import EmbeddingError

MEMORIES = {"memories": [{"content": "Deploys happen on Fridays"}]}
STORE = {"name": "store_memories", "arguments": MEMORIES}
CLIENT = {"capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
INITIALIZE = CLIENT | {"protocolVersion": "2025-06-18"}
LISTS = ("tools/list", "prompts/list", "resources/templates/list")
HEAVY = {"mcp", "pydantic", "asyncio", "numpy", "apsw", "bethink.api", "bethink.app.mcp.server"}
RUN = "import sys; from bethink.app.cli.main import main; sys.exit(main(['mcp']))"
# The server that never takes a slow client for a silent one, and does not load the rest ahead of time.
PATIENT = f"import bethink.app.mcp as greeting; greeting.PAUSE_AFTER_LIST = greeting.PAUSE_BEFORE_LIST = 99; {RUN}"
# The server without its quick greeting: it answers no line by itself.
WHOLE = f"import bethink.app.mcp as greeting; greeting._LONGEST = 0; {RUN}"
# The server with one tool in its place that does something else.
CHANGED = """
import os, sys, time
from bethink.app.mcp import tools
@tools.tool()
def memory_overview(memory):
    {tool}
from bethink.app.cli.main import main
main(["mcp"])
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "shop").mkdir()
    return tmp_path / "shop", tmp_path / "home"


@pytest.fixture
def bare(place):
    with Bare(*place) as bare:
        yield bare


def begin(bare):
    """The first messages of a client: all that it is answered."""
    bare.tell("initialize", "a", protocolVersion=HANDSHAKES[-1], **CLIENT)
    answers = [bare.read()["result"]]
    bare.tell("notifications/initialized")
    for method in ("ping", *LISTS):
        bare.tell(method, method)
        answers.append(bare.read()["result"])
    return answers


NO_MESSAGES = [
    ("{not json", -32700),
    (b"\xff\xfe\x00", -32700),
    ("", -32700),
    ("[]", -32600),
    ('"text"', -32600),
    ('{"jsonrpc": "1.0", "id": 1, "method": "ping"}', -32600),
    ('{"id": 7}', -32600),
    ("[" * 100000, -32700),
    ('{"jsonrpc": "2.0", "params": {"id": 1, "odd": "\\ud800"}, "id": 7}', -32700),
    (
        '{"jsonrpc": "2.0", "params": {"id": 1, "odd": ' + "[" * 5000 + "]" * 5000 + '}, "id": 7}',
        -32700,
    ),
    ('{"jsonrpc": "2.0", "params": {"id": 1, "odd": ' + "9" * 5000 + '}, "id": 7}', -32700),
]

WRONG_REQUESTS = [
    ("nothing/like/this", {}, -32601),
    ("tools/call", {}, -32602),
    ("tools/call", {"name": "memory_overview", "arguments": [1]}, -32602),
    ("tools/call", {"name": 5}, -32602),
    ("resources/read", {"uri": 5}, -32602),
]


@pytest.mark.parametrize(("line", "code"), NO_MESSAGES)
def test_a_broken_message_gets_an_error(bare, line, code):
    bare.send(line)
    answer = bare.read()
    # What only a parser cannot take is answered under its id: its sender does not wait for another answer.
    known = 7 if code == -32700 and '"id": 7' in str(line) else None
    assert (answer["id"], answer["error"]["code"]) == (known, code), str(line)[:200]


@pytest.mark.parametrize(("method", "params", "code"), WRONG_REQUESTS)
def test_a_wrong_request_gets_an_error(bare, method, params, code):
    assert bare.ask(method, **params)["error"]["code"] == code, method


def test_the_old_handshake_is_refused_after_a_request_of_the_new_protocol(bare):
    bare.ask("tools/list")
    assert bare.ask("initialize", **INITIALIZE)["error"]["code"] == -32022


def test_the_server_continues_after_broken_messages(bare):
    bare.tell("notifications/nothing")
    bare.send({"jsonrpc": "2.0", "id": 99, "result": {}})
    assert bare.ask("tools/call", name="memory_overview")["result"]["isError"] is False
    assert len(bare.ask("tools/list")["result"]["tools"]) == 9


@pytest.mark.parametrize(
    ("line", "id"),
    [
        pytest.param('{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":DEEP}}', 7, id="deep"),
        pytest.param('{"params":{"id":3,"a":DEEP},"id":"z"}', "z", id="deep-id-last"),
        pytest.param('{"id":7,"params":{"a":CUT', 7, id="deep-and-cut-off"),
        pytest.param('{"id":-8,"params":{"a":LONG}}', -8, id="long-number"),
        pytest.param('{"method":"id","id" : "q\\"1","a":LONG}', 'q"1', id="quoted-id"),
        pytest.param('{"id":LONG}', None, id="long-id"),
        pytest.param('{"id":"\\x","a":DEEP}', None, id="broken-id"),
        pytest.param('{"params":{"id":3,"a":DEEP}}', None, id="id-of-something-else"),
        pytest.param("DEEP", None, id="no-object"),
    ],
)
def test_a_line_that_no_parser_takes_is_answered_under_its_id(bare, line, id):
    parts = {"DEEP": "[" * 100_000 + "]" * 100_000, "CUT": "[" * 100_000, "LONG": "9" * 5000}
    for name, part in parts.items():
        line = line.replace(name, part)
    bare.send(line)
    answer = bare.read()
    assert (answer["id"], answer["error"]["code"]) == (id, -32700)
    assert "result" in bare.ask("tools/list")


def test_half_a_handshake_is_refused(bare):
    for client in (None, 5, {"name": "half"}):  # half a handshake is refused, not welcomed first
        bare.tell("initialize", 1, **(INITIALIZE | {"clientInfo": client}))
    assert [bare.read()["error"]["code"] for _ in range(3)] == [-32602] * 3
    bare.tell("tools/list", 1)
    assert bare.read()["error"]["code"] == -32602


def test_the_old_protocol_starts_with_a_handshake(bare):
    bare.tell("initialize", 2, **INITIALIZE)
    answer = bare.read()["result"]
    assert (answer["protocolVersion"], answer["serverInfo"]["name"]) == ("2025-06-18", "bethink")
    assert set(answer["capabilities"]) == {"tools", "resources", "prompts"}
    bare.tell("notifications/initialized")
    bare.tell("tools/call", 3, **STORE)
    assert bare.read()["result"]["content"][0]["text"].startswith("1. added [")
    assert bare.ask("tools/list")["error"]["code"] == -32600, "the other era is not served any more"


def test_the_server_ends_with_its_input(bare, place):
    bare.tell("initialize", 2, **INITIALIZE)
    bare.read()["result"]
    bare.tell("notifications/initialized")
    bare.tell("tools/call", 3, **STORE)
    assert bare.read()["result"]["content"][0]["text"].startswith("1. added [")
    assert bare.close_input() == (0, b"", "")
    left = [file.name for file in place[1].glob("memory.db*")]
    assert left == ["memory.db"], "no write-ahead log is left"
    with Bethink(place[1] / "memory.db", directory=place[0]) as memory:
        assert [one.content for one in memory.list()] == ["Deploys happen on Fridays"]


@pytest.mark.parametrize(("name", "code", "given"), [("SIGHUP", 0, {}), ("SIGINT", 130, STORE)])
def test_a_signal_ends_the_server(bare, name, code, given):
    bare.ask("tools/call", **given) if given else begin(bare)
    bare.process.send_signal(signal.Signals[name])
    assert bare.ends() == (code, b"", "")


def test_the_log_goes_to_stderr_at_the_level_that_is_asked_for(place):
    asked = {"query": "x", "reason_for_search": "to see ghp_" + "a1B2" * 9}
    with Bare(*place, BETHINK_LOG="debug") as bare:
        bare.say("search_memories", arguments=asked)
        bare.process.terminate()
        code, out, log = bare.ends()
    assert (code, out) == (0, b"") and "search_memories: to see [REDACTED" in log


def test_it_ends_with_its_parent_even_if_its_input_stays_open(place):
    """A host that was killed, while another of its children still holds the pipe."""
    server = "subprocess.Popen([sys.executable, '-m', 'bethink', 'mcp'], stdout=sys.stderr)"
    start = [sys.executable, "-c", f"import signal, subprocess, sys; {server}; signal.pause()"]
    options = {"cwd": place[0], "env": environment(place[1]), "stderr": subprocess.PIPE}
    reading, writing = os.pipe()
    with subprocess.Popen(start, stdin=reading, text=True, **options) as parent:
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
    with Bare(*place, program=("-c", CHANGED.format(tool=waits))) as bare:
        bare.tell("tools/call", 1, name="memory_overview", _meta=META)
        assert eventually((tmp_path / "begun").exists)
        bare.process.stdin.close()
        bare.process.stdout.close()
        assert bare.process.wait(20) == 0
        assert b"Traceback" not in bare.process.stderr.read()


def test_a_failing_call_is_reported_as_an_error(place):
    noise = (
        "print('noise'); os.write(1, b'raw noise\\n'); os.system('echo noise of a child'); 1 / 0"
    )
    place[1].mkdir()
    database = place[1] / "memory.db"
    database.write_text("this is no database, but long enough to look at: " * 100)
    with Bare(*place, program=("-c", CHANGED.format(tool=noise))) as bare:
        assert "not a Bethink database" in bare.say(**STORE)
        database.unlink()  # it is mended without a restart
        answer = bare.ask("tools/call", name="memory_overview")["result"]
        assert answer["isError"] is True
        assert "memory_overview failed: ZeroDivisionError" in answer["content"][0]["text"]
        assert "added" in bare.say(**STORE)
        code, out, err = bare.close_input()
    assert (code, out) == (0, b"")
    assert {"noise", "noise of a child", "raw noise"} <= set(err.split("\n"))


def test_a_missing_sdk_is_reported_with_a_hint(place):
    with Bare(*place, program=("-c", f"import sys; sys.modules['mcp'] = None; {RUN}")) as bare:
        code, out, err = bare.ends()
    assert (code, out) == (1, b"") and "hint: pip install 'bethink[mcp]'" in err


def test_the_greeting_imports_nothing_heavy(place):
    with Bare(*place, program=("-c", f"import sys; sys.modules['mcp'] = None; {RUN}")) as bare:
        code, _out, _err = bare.ends()
    with Bare(*place, program=("-X", "importtime", "-c", PATIENT)) as bare:
        begin(bare)
        code, _, loaded = bare.close_input()
    names = {line.rpartition("|")[2].strip() for line in loaded.splitlines()}
    assert (code, "bethink.app.mcp" in names, HEAVY & names) == (0, True, set())


def test_the_quick_greeting_equals_that_of_the_whole_server(place):
    programs = [Bare(*place, program=("-c", code)) for code in (PATIENT, WHOLE)]
    with programs[0] as bare, programs[1] as full:
        greeted = begin(bare)
        # Hosts ask for several things at once: resources need the database, tools do not.
        asked = enumerate(("resources/list", *LISTS))
        lines = [f'{{"jsonrpc": "2.0", "id": {id}, "method": "{method}"}}' for id, method in asked]
        bare.send("\n".join(lines))
        assert [bare.read()["id"] for _ in range(4)] == [1, 2, 3, 0]
        assert begin(full) == greeted
        # And it goes on as if it had been there from the start: nothing is told twice, and the state is the same.
        bare.tell("tools/call", "next", **STORE)
        answer = bare.read()
        assert answer["id"] == "next"
        assert "added" in answer["result"]["content"][0]["text"]
    assert HANDSHAKES == HANDSHAKE_PROTOCOL_VERSIONS


def test_who_asks_what_the_server_is_may_go_on_in_either_version(place):
    with Bare(*place) as bare:
        assert bare.ask("server/discover")["result"]["supportedVersions"] == ["2026-07-28"]
        assert "added" in bare.say(**STORE)
    with Bare(*place) as late:  # which did not wait for the answer
        late.tell("server/discover", 0, _meta=META)
        begin(late)
        late.tell("tools/call", "x", **STORE)
        assert late.read()["result"]["isError"] is False


@pytest.fixture
def keeper(place, monkeypatch):
    monkeypatch.setenv("BETHINK_HOME", str(place[1]))
    monkeypatch.setenv("BETHINK_EMBEDDING", "hashing")
    keeper = Keeper(place[0])
    yield keeper
    assert keeper.close(10)


def test_a_model_that_takes_too_long_is_not_waited_for(keeper, monkeypatch):
    monkeypatch.setattr(keeping, "open_model", lambda memory, ready: None)  # never ready
    monkeypatch.setattr(keeping, "MODEL_PATIENCE", 0)
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


def test_the_keeper_warms_up_once(keeper, place):
    keeper.warm_up()
    thread = keeper._warm
    keeper.warm_up()
    assert keeper._warm is thread
    assert keeper.close(10)
    assert (place[1] / "memory.db").exists()


def test_a_failing_warm_up_is_silent(place, caplog):
    broken = Keeper(database=str(place[0]))
    broken.warm_up()
    assert broken.close(10)
    assert "Traceback" not in caplog.text


def test_folders_of_one_checkout_share_their_store(keeper, place):
    (place[0] / ".git").mkdir()
    (place[0] / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (place[0] / "src" / "deep").mkdir(parents=True)
    folders = (place[0], place[0] / "src", place[0] / "src" / "deep")
    opened = [keeper.memory(folder, "agent:test", meaning=True) for folder in folders]
    assert len({(id(memory.store), id(memory.embedder)) for memory in opened}) == 1
