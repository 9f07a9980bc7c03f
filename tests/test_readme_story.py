"""The picture at the top of the README: what the first session leaves, and what the second one is shown."""

import json

import pytest
from transcripts import claude_line, written

from bethink.hooks.run import run

FAILED = "ERR_PNPM_OUTDATED_LOCKFILE  Cannot install with frozen-lockfile because pnpm-lock.yaml is not up to date"
TALK = (
    ("user", "NATS or Kafka for invoices?"),
    ("assistant", "Kafka needs a cluster; NATS fits."),
    ("user", "NATS then. And never npm here, use pnpm."),
    ("pnpm test", FAILED, True),
    ("pnpm install --no-frozen-lockfile", "Done in 4.1s", False),
    ("pnpm test", "Tests  214 passed (214)", False),
    (
        "assistant",
        "All 214 tests pass, and invoices are published to NATS. The retry policy is still open.",
    ),
)


@pytest.fixture
def monday(cli, with_model, tmp_path):
    """A project after the session on the left of the picture."""
    place = {"cwd": str(cli.project)}
    lines = []
    for said in TALK:
        if len(said) == 2:
            lines.append(claude_line(len(lines), said[1], said[0], **place))
            continue
        command, output, failed = said
        call = {"type": "tool_use", "id": f"c{len(lines)}", "name": "Bash"}
        call["input"] = {"command": command}
        result = {"type": "tool_result", "tool_use_id": call["id"], "is_error": failed}
        result["content"] = f"Exit code 1\n{output}" if failed else output
        lines.append(claude_line(len(lines), [call], "assistant", **place))
        lines.append(claude_line(len(lines), [result], "user", **place))
    cli.ok("backfill", written(tmp_path / "monday.jsonl", *lines), "--trusted")
    return cli


def answer(cli, event, **fields):
    """The text that Codex gets from a hook."""
    given = {"session_id": "wednesday", "cwd": str(cli.project), **fields}
    text = run(event, "codex", json.dumps(given).encode())
    return json.loads(text)["hookSpecificOutput"]["additionalContext"] if text else ""


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("invoices are published to NATS", id="done"),
        pytest.param("Left: The retry policy is still open", id="left"),
        pytest.param("Never npm here, use pnpm", id="decided"),
    ],
)
def test_the_second_session_is_briefed(monday, line):
    assert line in answer(monday, "session-start", source="startup")


def test_the_known_failure_gets_its_fix(monday, tmp_path):
    item = {"type": "CommandExecution", "id": "call-1", "exit_code": 1}
    event = {"type": "event_msg", "payload": {"type": "item_completed", "item": item}}
    rollout = written(tmp_path / "rollout.jsonl", event)
    call = {"tool_name": "Bash", "tool_input": {"command": "pnpm test"}, "tool_use_id": "call-1"}
    shown = answer(monday, "tool", tool_response=FAILED, transcript_path=str(rollout), **call)
    assert "ran `pnpm install --no-frozen-lockfile`" in shown
