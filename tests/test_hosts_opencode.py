"""opencode's database."""

import json
from pathlib import Path

import apsw
import pytest
from transcripts import paged, read, stored, who

from bethink import agents
from bethink.agents import base
from bethink.agents.base import Fact
from bethink.errors import BethinkError

SCHEMA = (Path(__file__).with_name("fixtures") / "transcripts" / "opencode.sql").read_text("utf-8")
START = 1_777_885_200_000  # 2026-05-04T09:00Z
DONE = {"start": START + 60_000, "end": START + 61_000}
USER = {"role": "user", "time": {"created": START}, "agent": "build"}
AGENT = USER | {"role": "assistant", "path": {"cwd": "/home/ada/shop/api"}}
AGENT["time"] = {"created": START, "completed": START + 9}
# What is said in the session of the tests, part by part.
SESSION = [
    ("msg_1", USER, {"type": "text", "text": '"Which cache?"'}),
    ("msg_1", USER, {"type": "text", "text": "Called the Read tool with …", "synthetic": True}),
    ("msg_2", AGENT, {"type": "step-start"}),
    ("msg_2", AGENT, {"type": "reasoning", "text": "hm", "time": DONE}),
    (
        "msg_2",
        AGENT,
        {
            "type": "tool",
            "tool": "read",
            "state": {"status": "completed", "input": {"filePath": "cache.py"}, "output": "Redis"},
        },
    ),
    (
        "msg_2",
        AGENT,
        {
            "type": "tool",
            "tool": "bethink_search_memories",
            "state": {"input": {}, "output": "secret"},
        },
    ),
    ("msg_2", AGENT, {"type": "text", "text": "Redis, with an hour to live.", "time": DONE}),
    ("msg_3", USER, {"type": "compaction", "auto": True}),
    (
        "msg_4",
        AGENT | {"summary": True, "mode": "compaction"},
        {"type": "text", "text": "They cache in Redis.", "time": DONE},
    ),
]
SAID = [
    ("user", "Which cache?"),
    ("assistant", "Redis, with an hour to live."),
    ("summary", "They cache in Redis."),
]


class Opencode:
    """A database as opencode writes it, still open."""

    def __init__(self, folder):
        self.path = folder / "opencode.db"
        self.connection = apsw.Connection(str(self.path))
        self.connection.pragma("journal_mode", "wal")
        self.connection.execute(SCHEMA)
        self.parts = 0

    def session(self, id="ses_1", parent=None):
        row = (id, parent, "/home/ada/shop", "Caches")
        self.connection.execute("INSERT INTO session VALUES (?, 'p', ?, ?, ?, 0, 0)", row)
        return self

    def say(self, message, about, part, session="ses_1"):
        self.parts += 1
        row = (message, session, json.dumps(about))
        self.connection.execute("INSERT OR REPLACE INTO message VALUES (?, ?, 0, 0, ?)", row)
        data = part if isinstance(part, str) else json.dumps(part)
        row = (f"prt_{self.parts:03}", message, session, data)
        self.connection.execute("INSERT INTO part VALUES (?, ?, ?, 0, 0, ?)", row)

    def change(self, id, part):
        self.connection.execute("UPDATE part SET data = ? WHERE id = ?", (json.dumps(part), id))


@pytest.fixture
def opencode(tmp_path):
    opencode = Opencode(tmp_path).session()
    for message, about, part in SESSION:
        opencode.say(message, about, part)
    yield opencode
    opencode.connection.close()


def test_an_opencode_database_in_use_is_read(opencode):
    assert agents.detect(opencode.path) == "opencode"
    turns, transcript = read(opencode.path)
    assert [(who(turn), turn.text) for turn in turns] == SAID
    answer = turns[1]
    assert (answer.id, answer.line, answer.session) == ("prt_007", 7, "ses_1")
    assert (answer.tools, answer.files) == (("read",), ("cache.py",))
    assert answer.at.isoformat() == "2026-05-04T09:01:00+00:00"
    assert (answer.cwd, transcript.project) == ("/home/ada/shop/api", "/home/ada/shop")
    assert transcript.title_of(transcript.session) == "Caches"
    assert transcript.lines == len(turns) + transcript.skipped.total()


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param({"page_turns": 1}, id="page-turns"),
        pytest.param({"page_bytes": 1}, id="page-bytes"),
        pytest.param({"page_turns": 3, "page_bytes": 100}, id="page-turns-3"),
    ],
)
def test_an_opencode_database_is_read_in_pages(opencode, limits):
    turns, _transcript = read(opencode.path)
    expected, _ = read(opencode.path)
    position, turns = base.START, []
    while page := next(paged(agents.read(opencode.path, position), **limits), None):
        turns += page.turns
        position = stored(page.position)
    assert turns == expected


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        pytest.param(0, "passed", id="passed"),
        pytest.param(1, "failed", id="failed"),
    ],
)
def test_the_outcome_of_a_tool_is_read(opencode, code, outcome):
    state = {"status": "completed", "input": {"command": "pytest"}, "metadata": {"exit": code}}
    call = {"type": "tool", "tool": "bash", "callID": "c1", "state": state}
    opencode.say(f"msg_5{code}", AGENT, call)
    opencode.say(f"msg_5{code}", AGENT, {"type": "text", "text": "Done.", "time": DONE})
    assert read(opencode.path)[0][-1].work == (Fact(outcome, "pytest"),)


def test_an_answer_that_is_being_written_is_given_when_it_is_done(opencode):
    busy = AGENT | {"time": {"created": START}}
    opencode.say("msg_6", busy, {"type": "text", "text": "One giga", "time": {"start": START}})
    opencode.say("msg_7", USER, {"type": "text", "text": "Hurry."})
    turns, transcript = read(opencode.path)
    assert [turn.text for turn in turns][3:] == ["Hurry."]
    assert transcript.skipped["half-written last line"] == 1
    position = stored(transcript.position)
    assert read(opencode.path, position)[0] == []
    opencode.change("prt_010", {"type": "text", "text": "One gigabyte.", "time": DONE})
    turns, transcript = read(opencode.path, position)
    assert [turn.text for turn in turns] == ["One gigabyte."]
    assert read(opencode.path, stored(transcript.position))[0] == []


def test_numbers_of_deleted_rows_that_are_used_again_are_noticed(opencode):
    turns, transcript = read(opencode.path)
    opencode.connection.execute("DELETE FROM part WHERE rowid > 7")
    for text in ("And how large?", "In bytes."):
        opencode.say("msg_5", USER, {"type": "text", "text": text})
    again, transcript = read(opencode.path, stored(transcript.position))
    assert [turn.id for turn in again[:2]] == [turn.id for turn in turns[:2]]
    assert [turn.text for turn in again[2:]] == ["And how large?", "In bytes."]


def test_opencode_sessions_do_not_mix(opencode):
    opencode.session("ses_2", parent="ses_1").session("ses_3")
    edit = {"type": "tool", "tool": "edit", "state": {"input": {"filePath": "a.py"}}}
    found = {"type": "text", "text": "It is in cache.py.", "time": DONE}
    opencode.say("msg_8", AGENT, edit, "ses_3")
    opencode.say("msg_9", USER, {"type": "text", "text": "Find the cache."}, "ses_2")
    opencode.say("msg_10", AGENT | {"agent": "explore"}, found, "ses_2")
    opencode.say("msg_8", AGENT, {"type": "text", "text": "Edited.", "time": DONE}, "ses_3")
    *_, helper, other = read(opencode.path)[0]
    assert helper.text == "It is in cache.py."
    assert (helper.agent, helper.session, helper.files) == ("explore", "ses_1", ())
    assert (other.text, other.session, other.files) == ("Edited.", "ses_3", ("a.py",))


def test_memory_off_holds_for_one_session_only(opencode):
    opencode.session("ses_2")
    opencode.say("msg_11", USER, {"type": "text", "text": "memory-mode: off"})
    opencode.say("msg_12", USER, {"type": "text", "text": "a secret"})
    opencode.say("msg_13", USER, {"type": "text", "text": "no secret"}, "ses_2")
    turns, transcript = read(opencode.path)
    assert [turn.text for turn in turns][3:] == ["no secret"]
    assert transcript.skipped["memory off"] == 2
    opencode.say("msg_14", USER, {"type": "text", "text": "still a secret"})
    assert read(opencode.path, stored(transcript.position))[0] == []


def test_broken_rows_are_counted(opencode, monkeypatch):
    wrong = ("{", "null", "[1]", '{"type":5}', '{"type":"text","text":7,"time":{"end":1}}')
    for part in (*wrong, "x" * 3000):
        opencode.say("msg_2", AGENT, part)
    lost = '{"type":"text","text":"lost"}'
    opencode.connection.execute(f"INSERT INTO part VALUES ('p', 'gone', 'gone', 0, 0, '{lost}')")
    monkeypatch.setattr("bethink.agents.opencode_transcript.LONGEST_LINE", 2000)
    turns, transcript = read(opencode.path)
    assert [turn.text for turn in turns] == [text for _, text in SAID]
    assert (transcript.skipped["broken line"], transcript.skipped["too long"]) == (3, 1)


def test_a_database_without_sessions_is_refused(opencode):
    opencode.connection.execute("DROP TABLE session; DROP TABLE message; DROP TABLE part")
    with pytest.raises(BethinkError, match=r"cannot be read: .*no such table"):
        list(agents.read(opencode.path).turns())
