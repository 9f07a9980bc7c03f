"""Turns beyond plain speech: summaries of hosts, task lists, and what a user did without words."""

import json

import pytest
from transcripts import claude_line, read, stored, written

from bethink import agents
from bethink.agents.base import Task

CONTINUED = "This session is being continued from a previous conversation that ran out of context."


def uses(number: int, tool: str, arguments: dict, call: str = "") -> dict:
    """A line of Claude Code with one tool call."""
    block = {"type": "tool_use", "id": call or f"t{number}", "name": tool, "input": arguments}
    return claude_line(number, [block], "assistant")


def returns(number: int, call: str, output: str, **more: object) -> dict:
    """A line of Claude Code with the result of a tool call."""
    return claude_line(
        number, [{"type": "tool_result", "tool_use_id": call, "content": output}], **more
    )


def says(number: int, text: str, **more: object) -> dict:
    return claude_line(number, [{"type": "text", "text": text}], "assistant", **more)


def codex(*payloads: dict) -> list[dict]:
    """Lines of a Codex rollout."""
    head = {"type": "session_meta", "payload": {"id": "c1", "cwd": "/home/ada/shop"}}
    items = [
        {"type": "response_item", "timestamp": f"2026-05-04T09:{number:02}:00Z", "payload": one}
        for number, one in enumerate(payloads)
    ]
    return [head, *items]


def codex_call(name: str, arguments: dict, call: str = "k1") -> dict:
    text = json.dumps(arguments)
    return {"type": "function_call", "name": name, "arguments": text, "call_id": call}


def codex_says(role: str, text: str) -> dict:
    kind = "input_text" if role == "user" else "output_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


# Summaries


def test_a_compaction_summary_is_a_turn_without_the_words_of_the_host(tmp_path):
    text = (
        f"{CONTINUED} The summary below covers the earlier portion of the conversation.\n\n"
        "<analysis>I look back.</analysis>\nSummary:\n1. Primary Request:\n   Move carts.\n\n"
        "If you need specific details from before compaction, read the full transcript at: x.jsonl"
    )
    line = claude_line(1, text, isCompactSummary=True, isVisibleInTranscriptOnly=True)
    ((turn,), _) = read(written(tmp_path / "s1.jsonl", line))
    assert (turn.role, turn.text) == ("summary", "1. Primary Request:\n   Move carts.")


def test_a_codex_summary_has_no_preamble(tmp_path):
    message = (
        "Another language model started to solve this problem and produced a summary of its "
        "thinking process. Here is the summary produced by the other language model:\nCarts moved."
    )
    line = {"type": "compacted", "payload": {"message": message}}
    ((turn,), _) = read(written(tmp_path / "r.jsonl", *codex(), line))
    assert (turn.role, turn.text) == ("summary", "Carts moved.")


def test_an_away_summary_is_a_recap(tmp_path):
    line = {
        **{"type": "system", "subtype": "away_summary", "uuid": "a1", "sessionId": "s1"},
        "content": "You move carts. (disable recaps in /config)",
    }
    turns, _ = read(written(tmp_path / "s1.jsonl", claude_line(1, "Move the carts."), line))
    assert [(turn.role, turn.summary) for turn in turns] == [("user", False), ("recap", True)]


# Task lists


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        pytest.param(
            "TodoWrite",
            {
                "todos": [
                    {"content": "Add the table", "status": "completed", "activeForm": "Adding"},
                    {"content": "Move the carts", "status": "in_progress"},
                    {"content": "Drop Redis", "status": "pending"},
                ]
            },
            id="TodoWrite",
        ),
        pytest.param(
            "update_plan",
            {
                "plan": [
                    {"step": "Add the table", "status": "completed"},
                    {"step": "Move the carts", "status": "in_progress"},
                    {"step": "Drop Redis", "status": "pending"},
                ]
            },
            id="update_plan",
        ),
        pytest.param(
            "write_todos",
            {
                "todos": [
                    {"description": "Add the table", "status": "completed"},
                    {"description": "Move the carts", "status": "in_progress"},
                    {"description": "Drop Redis", "status": "pending"},
                ]
            },
            id="write_todos",
        ),
        pytest.param(
            "update_todo",
            {"todos": "- [x] Add the table\n- [-] Move the carts\n- [ ] Drop Redis"},
            id="checklist",
        ),
        pytest.param(
            "sql",
            {
                "query": "INSERT INTO todos (id, title, status) VALUES ('a', 'Add the table', 'done'), "
                "('b', 'Move the carts', 'pending'), ('c', 'Drop Redis', 'pending');\n"
                "UPDATE todos SET status = 'in_progress' WHERE id = 'b';"
            },
            id="sql",
        ),
    ],
)
def test_a_task_list_comes_with_the_next_turn(tmp_path, tool, arguments):
    path = written(tmp_path / "s1.jsonl", uses(1, tool, arguments), says(2, "On it."))
    ((turn,), _) = read(path)
    assert set(turn.tasks) == {
        Task("Add the table", "done"),
        Task("Move the carts", "doing"),
        Task("Drop Redis", "open"),
    }


def test_a_task_keeps_its_text_when_only_its_state_changes(tmp_path):
    lines = [
        uses(1, "TaskCreate", {"subject": "Drop Redis", "description": "x"}, "call1"),
        returns(2, "call1", "Task #7 created successfully: Drop Redis"),
        says(3, "Listed."),
        uses(4, "TaskUpdate", {"taskId": "7", "status": "completed"}),
        says(5, "Dropped."),
    ]
    turns, _ = read(written(tmp_path / "s1.jsonl", *lines))
    assert [turn.tasks for turn in turns] == [
        (Task("Drop Redis", "open"),),
        (Task("Drop Redis", "done"),),
    ]


def test_an_open_task_that_leaves_the_list_is_dropped(tmp_path):
    first = {"todos": [{"content": "Drop Redis", "status": "pending"}]}
    then = {"todos": [{"content": "Keep Redis", "status": "pending"}]}
    lines = [
        uses(1, "TodoWrite", first),
        says(2, "Planned."),
        uses(3, "TodoWrite", then),
        says(4, "Changed."),
    ]
    turns, _ = read(written(tmp_path / "s1.jsonl", *lines))
    assert turns[1].tasks == (Task("Keep Redis", "open"), Task("Drop Redis", "dropped"))


def test_a_task_list_goes_on_in_the_next_reading(tmp_path):
    lines = [
        uses(1, "TaskCreate", {"subject": "Drop Redis"}, "call1"),
        returns(2, "call1", "Task #7 created successfully: Drop Redis"),
        says(3, "Listed."),
        uses(4, "TaskUpdate", {"taskId": "7", "status": "completed"}),
        says(5, "Dropped."),
    ]
    _, before = read(written(tmp_path / "s1.jsonl", *lines[:3]))
    rest = agents.read(written(tmp_path / "s1.jsonl", *lines), stored(before.position))
    assert [turn.tasks for turn in rest.turns()] == [(Task("Drop Redis", "done"),)]


def test_a_codex_plan_is_a_task_list(tmp_path):
    plan = {"plan": [{"step": "Drop Redis", "status": "pending"}]}
    lines = codex(codex_call("update_plan", plan), codex_says("assistant", "Planned."))
    ((turn,), _) = read(written(tmp_path / "r.jsonl", *lines))
    assert turn.tasks == (Task("Drop Redis", "open"),)


def test_no_task_is_read_while_memory_is_off(tmp_path):
    lines = [
        claude_line(1, "memory-mode: off"),
        uses(2, "TodoWrite", {"todos": [{"content": "Raise the salary", "status": "pending"}]}),
        says(3, "Listed."),
        claude_line(4, "memory-mode: on\nNow the release."),
    ]
    turns, _ = read(written(tmp_path / "s1.jsonl", *lines))
    assert [turn.tasks for turn in turns] == [()]


DIRECTIVES = (
    '::git-push{cwd="/home/ada/shop" branch="carts"}\n'
    '::git-create-pr{branch="carts" url="https://github.com/acme/shop/pull/17" isDraft=false}'
)


def test_lines_of_the_codex_app_are_no_text(tmp_path):
    lines = codex(codex_says("assistant", f"The carts are in Redis.\n\n{DIRECTIVES}"))
    ((turn,), _) = read(written(tmp_path / "r.jsonl", *lines))
    assert turn.text == "The carts are in Redis."


def test_a_pull_request_of_the_codex_app_counts_as_work(tmp_path):
    lines = codex(codex_says("assistant", f"The carts are in Redis.\n\n{DIRECTIVES}"))
    ((turn,), _) = read(written(tmp_path / "r.jsonl", *lines))
    assert turn.work == (("pull request", "#17"),)


def test_a_review_comment_of_the_codex_app_is_kept(tmp_path):
    comment = '::code-comment{title="Close the file" body="It leaks." file="a.py" start=1 end=2}'
    lines = codex(codex_says("assistant", f"One finding.\n\n{comment}"))
    ((turn,), _) = read(written(tmp_path / "r.jsonl", *lines))
    assert "It leaks." in turn.text
