"""Claude Code's transcripts, 1.0 to 2.1: what is speech in them, whose it is, and what counts once."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime

import pytest
from transcripts import CLAUDE, SESSION, claude_line, read, stored, table, written

from bethink import hosts


def says(number: int, text: str, **more: object) -> dict:
    return claude_line(number, [{"type": "text", "text": text}], "assistant", **more)


def switch(mode: str, minute: str = "") -> dict:
    at = {"timestamp": f"2026-05-04T09:{minute}:00.000Z"} if minute else {}
    return {"type": "memory-mode", "mode": mode, "sessionId": "s1", **at}


def test_a_turn_knows_where_and_when_it_was_said_and_what_was_done_before_it():
    turns, transcript = read(SESSION)
    answer, project = turns[2], "/home/ada/shop"
    assert (answer.id, answer.session, transcript.session) == ("u009", SESSION.stem, SESSION.stem)
    assert answer.at == datetime(2026, 5, 4, 9, 9, tzinfo=UTC)
    assert (answer.cwd, answer.branch, transcript.project) == (project, "main", project)
    assert (answer.tools, turns[7].tools) == (("Read", "Grep"), ("Edit", "Bash"))
    assert answer.files == ("/home/ada/shop/cart.py",)  # a folder that was searched is no file
    assert transcript.title_of(transcript.session) == "Carts in PostgreSQL"


def test_a_fork_repeats_turns_under_the_same_identity():
    original, _ = read(CLAUDE / "5e551011-0000-4000-8000-000000000002.jsonl")
    fork, transcript = read(CLAUDE / "5e551011-0000-4000-8000-000000000003.jsonl")
    known = {turn.id for turn in original}
    assert known & {turn.id for turn in fork} == {"cu004", "cu005", "cu006"}
    assert len([turn for turn in fork if turn.id not in known]) == 2
    assert {turn.session for turn in fork} == {transcript.session}


def test_a_sub_agent_belongs_to_the_session_it_worked_for():
    inside = CLAUDE / "5e551011-0000-4000-8000-000000000001/subagents/agent-a7f3.jsonl"
    (turn,), transcript = read(inside)
    assert (turn.session, turn.agent) == (SESSION.stem, "a7f3")
    assert (turn.tools, turn.files) == (("Glob", "Read"), ("pay.py",))
    assert transcript.title_of(transcript.session) is None, (
        "what it was started for names no session"
    )


def test_a_sub_agent_is_silent_while_memory_is_off_in_its_session(tmp_path):
    inside = CLAUDE / "0ff00000-0000-4000-8000-000000000006/subagents/agent-5ec.jsonl"
    assert table(inside) == [(3, "assistant@5ec", "brook runs Debian.")]
    alone = tmp_path / inside.name
    shutil.copy(inside, alone)
    assert [text for _, _, text in table(alone)] == ["The salary is high.", "brook runs Debian."]


def test_a_private_block_hides_the_turns_until_it_is_closed(tmp_path):
    lines = [
        claude_line(1, "Mind the gate. <private> my salary"),
        says(2, "Your salary is high."),
        claude_line(3, "It is 9,000"),
        claude_line(4, "really</private> The gate is green."),
        says(5, "Green it is."),
    ]
    title = {"type": "ai-title", "aiTitle": "salaries", "sessionId": "s1"}
    texts = {2: "looked up the salary", 6: "looked at the gate"}
    inside = [says(number, text, agentId="a1") for number, text in texts.items()]
    turns, transcript = read(written(tmp_path / "s1.jsonl", *lines, title))
    shown = ["Mind the gate. <private> my salary", "The gate is green.", "Green it is."]
    assert [turn.text for turn in turns] == shown
    assert transcript.skipped["memory off"] == 2 and transcript.title_of("s1") is None
    part, transcript = read(written(tmp_path / "s1.jsonl", *lines[:2]))
    rest = hosts.read(written(tmp_path / "s1.jsonl", *lines), stored(transcript.position))
    assert [*part, *rest.turns()] == turns
    (seen,), _ = read(written(tmp_path / "agent-a1.jsonl", *inside))
    assert seen.text == "looked at the gate"


def test_a_summary_of_a_session_that_was_private_for_a_while_is_not_given(tmp_path):
    read_file = {"type": "tool_use", "name": "Read", "input": {"file_path": "/home/ada/salary.ods"}}
    path = written(
        tmp_path / "s1.jsonl",
        claude_line(1, "memory-mode: off"),
        claude_line(2, [read_file], "assistant"),
        claude_line(3, "memory-mode: on\nNow the release."),
        claude_line(4, "Ada earns a lot and wants a release.", isCompactSummary=True),
        says(5, "Released."),
    )
    turns, transcript = read(path)
    assert [turn.text for turn in turns] == ["Now the release.", "Released."]
    assert not any(turn.files for turn in turns)
    assert transcript.skipped["memory off"] == 2


def test_a_fork_of_a_private_session_stays_private(tmp_path):
    lines = [claude_line(number, f"word {number}") for number in range(1, 8)]
    turns, _ = read(written(tmp_path / "s1.jsonl", switch("off", "02"), switch("on", "05"), *lines))
    assert [turn.text for turn in turns] == ["word 1", "word 5", "word 6", "word 7"]


RECALLED = "<bethink-memory id=7>We use MySQL.</bethink-memory id=7>"
REVIEW = "<command-name>/review</command-name><command-args>  #12 for speed </command-args>"
REMIND = "<system-reminder>be brief</system-reminder>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{RECALLED}\nWhat do we use?", "What do we use?"),
        ("a <bethink-memory a1>x </bethink-memory> y</bethink-memory a1> b", "a  b"),
        ("before <bethink-memory a1>never closed, never learned", "before"),
        (f"{REMIND}Why?{REMIND}", "Why?"),
        ("the tag <system-reminder> is opened here", "the tag <system-reminder> is opened here"),
        ("a < b and <command-names> is no command", "a < b and <command-names> is no command"),
        (REVIEW, "#12 for speed"),
        ("colours \x1b[31mred\x1b[0m and a NUL \0 go", "colours red and a NUL  go"),
    ],
)
def test_only_the_persons_words_are_left(tmp_path, text, expected):
    turns, _ = read(written(tmp_path / "s.jsonl", claude_line(1, text)))
    assert [turn.text for turn in turns] == [expected]


COMMAND = "<command-name>/{}</command-name><command-args>{}</command-args>"
IMAGE = {"type": "image", "source": {"type": "base64", "data": "aGk="}}
NOTIFICATION = "<task-notification>done</task-notification>\nRead the output file"
TEAMMATE = '<teammate-message teammate_id="bob">hi</teammate-message>'
STOPPED = {"type": "text", "text": "[Request interrupted by user]"}
ASKED = {"agentId": "a1", "attributionSkill": "bethink:remember"}


@pytest.mark.parametrize(
    ("reason", "line"),
    [
        ("injected by Bethink", claude_line(1, RECALLED)),
        ("injected by Bethink", says(1, "In Redis.", **ASKED)),
        ("machine-made prompt", claude_line(1, "hello", promptSource="system")),
        ("no speech", claude_line(1, NOTIFICATION)),
        ("no speech", claude_line(1, TEAMMATE)),
        ("no speech", claude_line(1, COMMAND.format("bethink:remember", "x"))),
        ("no speech", claude_line(1, COMMAND.format("clear", ""))),
        ("no speech", claude_line(1, "<bash-input>ls</bash-input>")),
        ("no speech", claude_line(1, [STOPPED])),
        ("no speech", claude_line(1, [IMAGE])),
        ("no speech", says(1, "\n\n")),
        ("no speech", claude_line(1, [{"type": "redacted_thinking", "data": "x"}], "assistant")),
        ("no speech", {"type": 7, "uuid": "x", "sessionId": "s"}),
    ],
)
def test_what_no_person_said_is_left_out_and_counted(tmp_path, reason, line):
    turns, transcript = read(written(tmp_path / "s.jsonl", line), host="claude")
    assert turns == [] and transcript.skipped == {reason: 1}


def test_calls_of_bethink_leave_no_trace(tmp_path):
    def call(name, **arguments):
        return {"type": "tool_use", "name": name, "input": arguments}

    calls = [
        call("mcp__bethink__search_memories", query="x", path="/home/ada/mail"),
        call("mcp__plugin_bethink_bethink__get_memories"),
        call("Bash", command="uv run bethink search carts"),
        call("Bash", command="make test"),
    ]
    answer = claude_line(1, [*calls, {"type": "text", "text": "Done."}], "assistant")
    (turn,), _ = read(written(tmp_path / "s.jsonl", answer))
    assert (turn.tools, turn.files) == (("Bash",), ())
