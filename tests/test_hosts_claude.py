"""Claude Code's transcripts, 1.0 to 2.1: what is speech in them, whose it is, and what counts once."""

import shutil
from datetime import UTC, datetime

import pytest
from transcripts import CLAUDE, SESSION, claude_line, read, stored, table, written

from bethink import agents
from bethink.agents.base import START

TASK = '{"task_id":"b1","description":"Run the tests","task_type":"local_bash"}'
RECALLED = "<bethink-memory id=7>We use MySQL.</bethink-memory id=7>"


def says(number: int, text: str, **more: object) -> dict:
    return claude_line(number, [{"type": "text", "text": text}], "assistant", **more)


def queue(number: int, operation: str, content: str | None = None, **more: object) -> dict:
    at = {"timestamp": f"2026-05-04T09:{number:02}:00.000Z", "sessionId": "s1"}
    said = {} if content is None else {"content": content}
    return {"type": "queue-operation", "operation": operation, **at, **said, **more}


def attached(number: int, prompt: str) -> dict:
    attachment = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt"}
    return claude_line(number, "", attachment=attachment) | {"type": "attachment"}


def texts(turns):
    return [turn.text for turn in turns]


def test_a_turn_carries_its_place():
    turns, transcript = read(SESSION)
    answer, project = turns[2], "/home/ada/shop"
    assert (answer.id, answer.session, transcript.session) == ("u009", SESSION.stem, SESSION.stem)
    assert answer.at == datetime(2026, 5, 4, 9, 9, tzinfo=UTC)
    assert (answer.cwd, answer.branch, transcript.project) == (project, "main", project)
    assert (answer.tools, turns[7].tools) == (("Read", "Grep"), ("Edit", "Bash"))
    assert answer.files == ("/home/ada/shop/cart.py",)  # a folder that was searched is no file
    assert transcript.title_of(transcript.session) == "Carts in PostgreSQL"


def test_a_fork_repeats_turns_under_the_same_id():
    original, _ = read(CLAUDE / "5e551011-0000-4000-8000-000000000002.jsonl")
    fork, transcript = read(CLAUDE / "5e551011-0000-4000-8000-000000000003.jsonl")
    known = {turn.id for turn in original}
    assert known & {turn.id for turn in fork} == {"cu004", "cu005", "cu006"}
    assert len([turn for turn in fork if turn.id not in known]) == 2
    assert {turn.session for turn in fork} == {transcript.session}


def test_a_sub_agent_belongs_to_its_session():
    inside = CLAUDE / "5e551011-0000-4000-8000-000000000001/subagents/agent-a7f3.jsonl"
    (turn,), transcript = read(inside)
    assert (turn.session, turn.agent) == (SESSION.stem, "a7f3")
    assert (turn.tools, turn.files) == (("Glob", "Read"), ("pay.py",))
    assert transcript.title_of(transcript.session) is None, "what it was for names no session"


def test_a_sub_agent_is_off_while_its_session_is(tmp_path):
    inside = CLAUDE / "0ff00000-0000-4000-8000-000000000006/subagents/agent-5ec.jsonl"
    assert table(inside) == [(3, "assistant@5ec", "brook runs Debian.")], "memory was off before"
    alone = shutil.copy(inside, tmp_path / inside.name)
    assert [text for _, _, text in table(alone)] == ["The salary is high.", "brook runs Debian."]


def test_a_private_block_hides_turns(tmp_path):
    lines = [
        claude_line(1, "Mind the gate. <private> my salary"),
        says(2, "Your salary is high."),
        claude_line(3, "It is 9,000"),
        claude_line(4, "really</private> The gate is green."),
        says(5, "Green it is."),
    ]
    title = {"type": "ai-title", "aiTitle": "salaries", "sessionId": "s1"}
    turns, transcript = read(written(tmp_path / "s1.jsonl", *lines, title))
    shown = ["Mind the gate. <private> my salary", "The gate is green.", "Green it is."]
    assert texts(turns) == shown
    assert transcript.skipped["memory off"] == 2 and transcript.title_of("s1") is None


def test_a_private_block_spans_readings(tmp_path):
    lines = [
        claude_line(1, "Mind the gate. <private> my salary"),
        says(2, "Your salary is high."),
        claude_line(3, "It is 9,000"),
        claude_line(4, "really</private> The gate is green."),
        says(5, "Green it is."),
    ]
    title = {"type": "ai-title", "aiTitle": "salaries", "sessionId": "s1"}
    turns, transcript = read(written(tmp_path / "s1.jsonl", *lines, title))
    part, transcript = read(written(tmp_path / "s1.jsonl", *lines[:2]))
    rest = agents.read(written(tmp_path / "s1.jsonl", *lines), stored(transcript.position))
    assert [*part, *rest.turns()] == turns


def test_a_sub_agent_does_not_reveal_a_private_block(tmp_path):
    lines = [
        claude_line(1, "Mind the gate. <private> my salary"),
        says(2, "Your salary is high."),
        claude_line(3, "It is 9,000"),
        claude_line(4, "really</private> The gate is green."),
        says(5, "Green it is."),
    ]
    title = {"type": "ai-title", "aiTitle": "salaries", "sessionId": "s1"}
    _turns, _transcript = read(written(tmp_path / "s1.jsonl", *lines, title))
    inside = [says(2, "looked up the salary", agentId="a1"), says(6, "saw the gate", agentId="a1")]
    assert texts(read(written(tmp_path / "agent-a1.jsonl", *inside))[0]) == ["saw the gate"]


def test_memory_mode_off_hides_turns(tmp_path):
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
    assert texts(turns) == ["Now the release.", "Released."]
    assert not any(turn.files for turn in turns) and transcript.skipped["memory off"] == 2


def test_a_memory_mode_line_hides_turns_by_time(tmp_path):
    lines = [
        {"type": "memory-mode", "mode": mode, "sessionId": "s1", "timestamp": f"2026-05-04T{at}Z"}
        for mode, at in (("off", "09:02:00.000"), ("on", "09:05:00.000"))
    ]
    lines += [claude_line(number, f"word {number}") for number in range(1, 8)]
    turns, _ = read(written(tmp_path / "s2.jsonl", *lines))
    assert texts(turns) == ["word 1", "word 5", "word 6", "word 7"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"{RECALLED}\nWhat do we use?", "What do we use?", id="recalled-what-use"),
        pytest.param(
            "a <bethink-memory a1>x </bethink-memory> y</bethink-memory a1> b",
            "a  b",
            id="bethink-memory-a1-x-bethink-memory-y",
        ),
        pytest.param(
            "before <bethink-memory a1>never closed, never learned",
            "before",
            id="before-bethink-memory-a1-never-closed",
        ),
        pytest.param(
            "<system-reminder>be brief</system-reminder>Why?<system-reminder>be brief</system-reminder>",
            "Why?",
            id="system-reminder-brief-system-reminder",
        ),
        pytest.param(
            "the tag <system-reminder> is opened here",
            "the tag <system-reminder> is opened here",
            id="tag-system-reminder-opened-here",
        ),
        pytest.param(
            "a < b and <command-names> is no command",
            "a < b and <command-names> is no command",
            id="b-command-names-no-command",
        ),
        pytest.param(
            "<command-name>/review</command-name><command-args>  #12 for speed </command-args>",
            "/review #12 for speed",
            id="command-name-review-command-name-command",
        ),
        pytest.param(
            "colours \x1b[31mred\x1b[0m and a NUL \x00 go",
            "colours red and a NUL  go",
            id="colours-31mred-0m-NUL-go",
        ),
    ],
)
def test_only_the_words_of_a_person_are_kept(tmp_path, text, expected):
    assert texts(read(written(tmp_path / "s.jsonl", claude_line(1, text)))[0]) == [expected]


@pytest.mark.parametrize(
    ("reason", "line"),
    [
        pytest.param(
            "injected by Bethink", claude_line(1, RECALLED), id="injected-by-bethink-claude_line"
        ),
        pytest.param(
            "injected by Bethink",
            says(1, "In Redis.", agentId="a1", attributionSkill="bethink:remember"),
            id="injected-by-bethink-says",
        ),
        pytest.param(
            "machine-made prompt",
            claude_line(1, "hello", promptSource="system"),
            id="machine-made-prompt",
        ),
        pytest.param(
            "no speech",
            claude_line(1, "<task-notification>done</task-notification>\nRead the output file"),
            id="no-speech-claude_line-1",
        ),
        pytest.param(
            "no speech",
            claude_line(1, '<teammate-message teammate_id="bob">hi</teammate-message>'),
            id="no-speech-claude_line-1-teammate-message-teammate_id-bob-hi",
        ),
        pytest.param(
            "no speech",
            claude_line(
                1, "<command-name>/bethink:remember</command-name><command-args>x</command-args>"
            ),
            id="no-speech-claude_line-1-2",
        ),
        pytest.param(
            "no speech",
            claude_line(1, "<command-name>/clear</command-name><command-args></command-args>"),
            id="no-speech-claude_line-1-3",
        ),
        pytest.param(
            "no speech",
            claude_line(1, "<bash-input>ls</bash-input>"),
            id="no-speech-claude_line-1-bash-input-ls-bash-input",
        ),
        pytest.param(
            "no speech",
            claude_line(1, [{"type": "text", "text": "[Request interrupted by user]"}]),
            id="no-speech-claude_line-1-type",
        ),
        pytest.param(
            "no speech",
            claude_line(1, [{"type": "image", "source": {"type": "base64", "data": "aGk="}}]),
            id="no-speech-claude_line-1-type-2",
        ),
        pytest.param("no speech", says(1, "\n\n"), id="no-speech-says"),
        pytest.param(
            "no speech",
            claude_line(1, [{"type": "redacted_thinking", "data": "x"}], "assistant"),
            id="no-speech-claude_line-1-type-3",
        ),
        pytest.param("no speech", {"type": 7, "uuid": "x", "sessionId": "s"}, id="no-speech-type"),
    ],
)
def test_lines_without_speech_are_skipped(tmp_path, reason, line):
    turns, transcript = read(written(tmp_path / "s.jsonl", line), host="claude")
    assert turns == [] and transcript.skipped == {reason: 1}


def test_calls_of_bethink_are_left_out(tmp_path):
    calls = {"mcp__bethink__search_memories": {"query": "x", "path": "/home/ada/mail"}}
    calls |= {"mcp__plugin_bethink_bethink__get_memories": {}}
    calls |= {"Bash": {"command": "uv run bethink search carts"}}
    used = [{"type": "tool_use", "name": name, "input": given} for name, given in calls.items()]
    used += [{"type": "tool_use", "name": "Bash", "input": {"command": "make test"}}]
    answer = claude_line(1, [*used, {"type": "text", "text": "Done."}], "assistant")
    (turn,), _ = read(written(tmp_path / "s.jsonl", answer))
    assert (turn.tools, turn.files) == (("Bash",), ())


@pytest.mark.parametrize(
    ("rule", "expected", "lines"),
    [
        pytest.param(
            "given within a turn, before what the model said later than that",
            [(1, "prices?"), (4, "in cents"), (2, "not in euros"), (5, "cents it is")],
            [
                claude_line(1, "prices?"),
                queue(2, "enqueue", "not in euros"),
                queue(4, "remove"),
                says(3, "in cents"),
                says(5, "cents it is"),
            ],
            id="given-within-turn-before-what-model-said",
        ),
        pytest.param(
            "two at once, among what nobody said and what waits for the end",
            [(3, "keep the tests"), (5, "and the docs"), (8, "kept")],
            [
                queue(1, "enqueue", TASK),
                queue(1, "enqueue", "/compact"),
                queue(2, "enqueue", "keep the tests"),
                queue(3, "enqueue", "<task-notification>done</task-notification>"),
                queue(4, "enqueue", "and the docs"),
                queue(5, "remove"),
                queue(5, "remove"),
                says(6, "kept"),
                queue(7, "remove"),
            ],
            id="two-once-among-what-nobody-said-what",
        ),
        pytest.param(
            "it became a prompt, also where notices were removed before",
            [(3, "push it"), (4, "pushed")],
            [
                queue(1, "enqueue", "push it"),
                queue(2, "dequeue"),
                claude_line(3, "push it"),
                says(4, "pushed"),
            ],
            id="it-became-a-prompt-also-where-notices-were-removed-before-3",
        ),
        pytest.param(
            "it became a prompt, also where notices were removed before",
            [(5, "push it"), (6, "pushed")],
            [
                queue(1, "enqueue", TASK),
                queue(1, "enqueue", "push it"),
                queue(2, "remove"),
                queue(2, "dequeue"),
                claude_line(3, "push it"),
                says(4, "pushed"),
            ],
            id="it-became-a-prompt-also-where-notices-were-removed-before-5",
        ),
        pytest.param(
            "the second waits on, and is given within the turn of the first",
            [(4, "push it"), (2, "to main"), (6, "pushed")],
            [
                queue(1, "enqueue", "push it"),
                queue(1, "enqueue", "to main"),
                queue(2, "dequeue"),
                claude_line(3, "push it"),
                queue(4, "remove"),
                says(5, "pushed"),
            ],
            id="second-waits-given-within-turn-first",
        ),
        pytest.param(
            "it went back into the editor, or was taken back",
            [(3, "push it all"), (4, "pushed")],
            [
                queue(1, "enqueue", "push it"),
                queue(2, "popAll", "push it"),
                claude_line(3, "push it all"),
                says(4, "pushed"),
            ],
            id="it-went-back-into-the-editor-or-was-taken-back-3-push-all",
        ),
        pytest.param(
            "it went back into the editor, or was taken back",
            [(4, "stopped")],
            [
                queue(1, "enqueue", TASK),
                queue(1, "enqueue", "push it"),
                queue(2, "popAll", "push it"),
                says(4, "stopped"),
            ],
            id="it-went-back-into-the-editor-or-was-taken-back-4",
        ),
        pytest.param(
            "it went back into the editor, or was taken back",
            [(3, "stopped")],
            [
                queue(1, "enqueue", "push it"),
                queue(2, "remove", reason="cancelled"),
                says(4, "stopped"),
            ],
            id="it-went-back-into-the-editor-or-was-taken-back-3-stopped",
        ),
        pytest.param(
            "the host tells what it gave, whichever comes first",
            [(3, "mind the gap"), (4, "minded"), (8, "the gap"), (9, "gone")],
            [
                queue(1, "enqueue", "mind the gap"),
                queue(2, "remove"),
                attached(2, "mind the gap"),
                says(3, "minded"),
                queue(4, "enqueue", "the gap"),
                queue(4, "enqueue", "code ."),
                queue(5, "remove"),
                attached(5, "the gap"),
                says(6, "gone"),
            ],
            id="the-host-tells-what-it-gave-whichever-comes-first-3",
        ),
        pytest.param(
            "the host tells what it gave, whichever comes first",
            [(2, "mind the gap"), (4, "minded")],
            [
                queue(1, "enqueue", "mind the gap"),
                attached(2, "mind the gap"),
                queue(2, "remove"),
                says(3, "minded"),
            ],
            id="the-host-tells-what-it-gave-whichever-comes-first-2",
        ),
        pytest.param(
            "what a session left that was broken off is nobody's any more",
            [(2, "again"), (3, "done"), (6, "done twice")],
            [
                queue(1, "enqueue", "code ."),
                claude_line(2, "again"),
                says(3, "done"),
                queue(4, "enqueue", TASK),
                queue(5, "remove"),
                says(6, "done twice"),
            ],
            id="what-session-left-broken-off-nobody-s",
        ),
        pytest.param(
            "a sub-agent's word is no answer to it",
            [(3, "inside"), (1, "no mocks"), (4, "none")],
            [
                queue(1, "enqueue", "no mocks"),
                queue(2, "remove"),
                says(3, "inside", isSidechain=True),
                says(4, "none"),
            ],
            id="sub-agent-s-word-no-answer",
        ),
        pytest.param(
            "what is private stays so",
            [],
            [queue(1, "enqueue", "memory-mode: off"), queue(2, "remove"), says(3, "off it is")],
            id="what-private-stays-so",
        ),
    ],
)
def test_a_queued_message_is_one_turn(tmp_path, rule, expected, lines):
    turns, _ = read(written(tmp_path / "s1.jsonl", *lines))
    assert [(turn.line, turn.text) for turn in turns] == expected, rule
    position, grown = START, []
    for number in range(1, len(lines) + 1):
        path = written(tmp_path / "s1.jsonl", *lines[:number], end="\n" * (number % 2))
        some, transcript = read(path, position, "claude")
        position, grown = stored(transcript.position), grown + some
    assert grown == turns, rule


def test_a_queued_message_carries_its_time(tmp_path):
    lines = [queue(2, "enqueue", "not in euros"), queue(4, "remove"), says(5, "cents it is")]
    (turn, _), _ = read(written(tmp_path / "s1.jsonl", *lines))
    assert (turn.role, turn.session, turn.at) == (
        "user",
        "s1",
        datetime(2026, 5, 4, 9, 4, tzinfo=UTC),
    )
