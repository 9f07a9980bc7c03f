"""Claude Code's transcripts, 1.0 to 2.1: what is speech in them, whose it is, and what counts once."""

import shutil
from datetime import UTC, datetime

from case_tables import cases
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


def test_a_turn_knows_where_it_was_said_and_a_fork_repeats_it_under_the_same_identity():
    turns, transcript = read(SESSION)
    answer, project = turns[2], "/home/ada/shop"
    assert (answer.id, answer.session, transcript.session) == ("u009", SESSION.stem, SESSION.stem)
    assert answer.at == datetime(2026, 5, 4, 9, 9, tzinfo=UTC)
    assert (answer.cwd, answer.branch, transcript.project) == (project, "main", project)
    assert (answer.tools, turns[7].tools) == (("Read", "Grep"), ("Edit", "Bash"))
    assert answer.files == ("/home/ada/shop/cart.py",)  # a folder that was searched is no file
    assert transcript.title_of(transcript.session) == "Carts in PostgreSQL"
    original, _ = read(CLAUDE / "5e551011-0000-4000-8000-000000000002.jsonl")
    fork, transcript = read(CLAUDE / "5e551011-0000-4000-8000-000000000003.jsonl")
    known = {turn.id for turn in original}
    assert known & {turn.id for turn in fork} == {"cu004", "cu005", "cu006"}
    assert len([turn for turn in fork if turn.id not in known]) == 2
    assert {turn.session for turn in fork} == {transcript.session}


def test_a_sub_agent_belongs_to_the_session_it_worked_for_and_is_silent_with_it(tmp_path):
    inside = CLAUDE / "5e551011-0000-4000-8000-000000000001/subagents/agent-a7f3.jsonl"
    (turn,), transcript = read(inside)
    assert (turn.session, turn.agent) == (SESSION.stem, "a7f3")
    assert (turn.tools, turn.files) == (("Glob", "Read"), ("pay.py",))
    assert transcript.title_of(transcript.session) is None, "what it was for names no session"
    inside = CLAUDE / "0ff00000-0000-4000-8000-000000000006/subagents/agent-5ec.jsonl"
    assert table(inside) == [(3, "assistant@5ec", "brook runs Debian.")], "memory was off before"
    alone = shutil.copy(inside, tmp_path / inside.name)
    assert [text for _, _, text in table(alone)] == ["The salary is high.", "brook runs Debian."]


def test_a_private_block_hides_turns_and_neither_summary_nor_fork_gives_them_away(tmp_path):
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
    part, transcript = read(written(tmp_path / "s1.jsonl", *lines[:2]))
    rest = agents.read(written(tmp_path / "s1.jsonl", *lines), stored(transcript.position))
    assert [*part, *rest.turns()] == turns
    inside = [says(2, "looked up the salary", agentId="a1"), says(6, "saw the gate", agentId="a1")]
    assert texts(read(written(tmp_path / "agent-a1.jsonl", *inside))[0]) == ["saw the gate"]
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
    lines = [
        {"type": "memory-mode", "mode": mode, "sessionId": "s1", "timestamp": f"2026-05-04T{at}Z"}
        for mode, at in (("off", "09:02:00.000"), ("on", "09:05:00.000"))
    ]
    lines += [claude_line(number, f"word {number}") for number in range(1, 8)]
    turns, _ = read(written(tmp_path / "s2.jsonl", *lines))
    assert texts(turns) == ["word 1", "word 5", "word 6", "word 7"]


def test_only_a_persons_words_are_left_and_calls_of_bethink_leave_no_trace(tmp_path):
    for text, expected in cases("hosts-persons-words", globals()):
        assert texts(read(written(tmp_path / "s.jsonl", claude_line(1, text)))[0]) == [expected]
    for reason, line in cases("hosts-left-out", globals()):
        turns, transcript = read(written(tmp_path / "s.jsonl", line), host="claude")
        assert turns == [] and transcript.skipped == {reason: 1}
    calls = {"mcp__bethink__search_memories": {"query": "x", "path": "/home/ada/mail"}}
    calls |= {"mcp__plugin_bethink_bethink__get_memories": {}}
    calls |= {"Bash": {"command": "uv run bethink search carts"}}
    used = [{"type": "tool_use", "name": name, "input": given} for name, given in calls.items()]
    used += [{"type": "tool_use", "name": "Bash", "input": {"command": "make test"}}]
    answer = claude_line(1, [*used, {"type": "text", "text": "Done."}], "assistant")
    (turn,), _ = read(written(tmp_path / "s.jsonl", answer))
    assert (turn.tools, turn.files) == (("Bash",), ())


def test_what_was_typed_while_the_agent_worked_is_a_turn_once_however_the_file_is_read(tmp_path):
    for rule, expected, lines in cases("hosts-queue", globals()):
        turns, _ = read(written(tmp_path / "s1.jsonl", *lines))
        assert [(turn.line, turn.text) for turn in turns] == expected, rule
        position, grown = START, []
        for number in range(1, len(lines) + 1):
            path = written(tmp_path / "s1.jsonl", *lines[:number], end="\n" * (number % 2))
            some, transcript = read(path, position, "claude")
            position, grown = stored(transcript.position), grown + some
        assert grown == turns, rule
    lines = [queue(2, "enqueue", "not in euros"), queue(4, "remove"), says(5, "cents it is")]
    (turn, _), _ = read(written(tmp_path / "s1.jsonl", *lines))
    assert (turn.role, turn.session, turn.at) == (
        "user",
        "s1",
        datetime(2026, 5, 4, 9, 4, tzinfo=UTC),
    )
