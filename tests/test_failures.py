"""Failed commands: which outcomes are certain, how errors are recognised, what counts as the fix, and what memory keeps of them."""

import json

import pytest
from transcripts import claude_call, claude_says, written

from bethink import agents
from bethink.api import Bethink
from bethink.hooks.run import run
from bethink.ingest.failures import (
    find_error,
    follow_events,
    name_kind,
    normalise_error,
    read_runs,
    sign_error,
)
from bethink.model import ToolEvent
from bethink.recall.shape import tokens

MISSING = (
    "Exit code 1\nError: Cannot find module 'zod'\n    at Module._load (node:internal:1051:15)"
)


def ran(command, failed=False, output="", directory="/home/ada/shop"):
    return ToolEvent(command=command, failed=failed, output=output, directory=directory)


def edited(file, change=""):
    return ToolEvent(file=file, change=change, failed=False)


def outcomes(command, failed, output=""):
    return [(run.command, run.passed) for run in read_runs(ran(command, failed, output))]


# Outcomes


@pytest.mark.parametrize(
    ("command", "failed", "expected"),
    [
        pytest.param("npm test", True, [("npm test", False)], id="one command failed"),
        pytest.param("npm test", False, [("npm test", True)], id="one command passed"),
        pytest.param(
            "cd web && npm test",
            True,
            [("cd web", None), ("npm test", False)],
            id="a change of directory is not what failed",
        ),
        pytest.param(
            "go build -o x && ./x --bad",
            True,
            [("go build -o x && ./x --bad", False)],
            id="of a build and a run the whole line failed",
        ),
        pytest.param(
            "npm test | tail -5 && npm run lint",
            True,
            [("npm test", None), ("npm run lint", False)],
            id="behind a filter only the next step can have failed",
        ),
        pytest.param(
            "npm test 2>&1 | tail -5", False, [("npm test", None)], id="a filter hides the outcome"
        ),
        pytest.param(
            "npm test; npm run lint",
            False,
            [("npm test", None), ("npm run lint", True)],
            id="the status is that of the last list",
        ),
        pytest.param(
            "npm test || true", False, [("npm test", None)], id="an alternative hides the outcome"
        ),
        pytest.param(
            "set -euo pipefail\nnpm test | tee log\nnpm run lint",
            False,
            [("npm test", True), ("npm run lint", True)],
            id="a strict script passed as a whole",
        ),
        pytest.param(
            "for f in a b; do npm test $f; done",
            True,
            [("for f in a b; do npm test $f; done", None)],
            id="of a script nothing is certain",
        ),
        pytest.param(
            'tmp=$(mktemp -d); cd "$tmp" && npm test',
            True,
            [('cd "$tmp"', None), ("npm test", False)],
            id="a substitution ends where it ends",
        ),
        pytest.param(
            "git commit -m 'fix: a && b'",
            False,
            [("git commit -m 'fix: a && b'", True)],
            id="quotes hold a command together",
        ),
    ],
)
def test_only_what_the_exit_status_proves_is_certain(command, failed, expected):
    assert outcomes(command, failed) == expected


def test_a_filtered_run_passes_if_its_output_says_so():
    assert outcomes("pytest -q | tail -3", False, "12 passed in 0.3s") == [("pytest -q", True)]


def test_a_filtered_run_that_shows_a_failure_is_uncertain():
    output = "1 failed, 12 passed in 0.3s"
    assert outcomes("pytest -q | tail -3", False, output) == [("pytest -q", None)]


# Errors


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(
            "/home/ada/shop/src/a.ts(12,5): error TS2345: Argument of type 'A' is not assignable",
            "src/lib/b.ts(7,61): error TS2345: Argument of type 'A' is not assignable",
            id="paths and positions",
        ),
        pytest.param(
            "Error: listen EADDRINUSE: address already in use 127.0.0.1:3000",
            "Error: listen EADDRINUSE: address already in use 0.0.0.0:8080",
            id="addresses and ports",
        ),
        pytest.param(
            "bash: line 1: ruff: command not found", "zsh: command not found: ruff", id="shells"
        ),
        pytest.param(
            "\x1b[31mTimeout\x1b[0m of 2000ms exceeded in hook",
            "Timeout of 5000ms exceeded in hook",
            id="colours and durations",
        ),
        pytest.param(
            "error: the branch 'fix/cart' is not fully merged",
            "error: the branch 'login' is not fully merged",
            id="branches",
        ),
        pytest.param(
            "fatal: bad object 1a2b3c4d5e6f7 in the tree",
            "fatal: bad object ffee00112233 in the tree",
            id="hashes",
        ),
    ],
)
def test_the_same_error_elsewhere_has_the_same_signature(one, other):
    assert sign_error("npm test", one) == sign_error("pnpm test", other)


def test_another_module_is_another_error():
    assert normalise_error("Cannot find module 'zod'") != normalise_error(
        "Cannot find module '@scope/zod'"
    )


def test_an_error_that_says_little_counts_for_its_command_only():
    assert sign_error("npm test", "Error: 1") != sign_error("git push", "Error: 1")


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        pytest.param(MISSING, "Error: Cannot find module 'zod'", id="behind the status"),
        pytest.param(
            "> shop@1.0.0 build\n> tsc\n\nsrc/a.ts(1,2): error TS2304: Cannot find name 'x'.\n"
            "npm error code 2\nnpm error command failed",
            "src/a.ts(1,2): error TS2304: Cannot find name 'x'.",
            id="between banners",
        ),
        pytest.param(
            'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n'
            "ModuleNotFoundError: No module named 'yaml'",
            "ModuleNotFoundError: No module named 'yaml'",
            id="at the end of a traceback",
        ),
        pytest.param(
            "# shop/cart\n./cart.go:7:2: undefined: total\nFAIL\tshop/cart [build failed]",
            "./cart.go:7:2: undefined: total",
            id="of a compiler",
        ),
        pytest.param("Exit code 1", "", id="none"),
    ],
)
def test_the_line_that_says_why_is_found(output, expected):
    assert find_error(output) == expected


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        pytest.param("Cannot find module 'zod'", "missing dependency", id="module"),
        pytest.param("unknown flag: --stat", "wrong flag", id="flag"),
        pytest.param("fatal: pathspec 'a' did not match any files", "other", id="path"),
        pytest.param("error: DATABASE_URL is not set", "environment variable", id="variable"),
        pytest.param("go.mod requires go >= 1.25.7", "version", id="version"),
        pytest.param("open /etc/x: permission denied", "permission", id="permission"),
        pytest.param("error TS2345: not assignable", "type or lint rule", id="type"),
        pytest.param("AssertionError: 1 == 2", "test expectation", id="expectation"),
        pytest.param("listen EADDRINUSE :::3000", "port in use", id="port"),
        pytest.param("connect ECONNREFUSED", "service not running", id="service"),
        pytest.param("! [rejected] main -> main (fetch first)", "conflict", id="conflict"),
    ],
)
def test_kinds_of_failures(error, kind):
    assert name_kind("git push", error) == kind


# Fixes


def fixes(*events):
    return [(one.kind, one.fix) for one in follow_events(events)[0]]


def test_the_install_before_the_pass_is_the_fix():
    events = ran("npm test", True, MISSING), ran("ls"), ran("npm ci"), ran("npm test")
    assert fixes(*events) == [("missing dependency", "ran `npm ci`")]


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        pytest.param("npm install  'my  zod'", "npm install 'my  zod'", id="blanks"),
        pytest.param("npm install 'zod@> 3'", "npm install 'zod@> 3'", id="an arrow"),
        pytest.param('npm install "zod\npino"', 'npm install "zod …', id="several lines"),
    ],
)
def test_a_fix_is_shown_as_it_was_quoted(command, shown):
    events = ran("npm test", True, MISSING), ran(command), ran("npm test")
    assert fixes(*events) == [("missing dependency", f"ran `{shown}`")]


def test_an_install_in_the_same_line_as_the_pass_is_the_fix():
    events = ran("npm test", True, MISSING), ran("npm ci && npm test")
    assert fixes(*events) == [("missing dependency", "ran `npm ci`")]


def test_a_build_between_changes_of_directory_is_the_fix():
    missing = "error: Cannot find module '@shop/core' from 'cart.ts'"
    events = ran("bun test", True, missing), ran("cd .. && bun run build"), ran("cd web")
    assert fixes(*events, ran("bun test")) == [("missing dependency", "ran `bun run build`")]


def test_the_edit_before_the_pass_is_the_fix():
    error = "src/a.ts(1,2): error TS2304: Cannot find name 'x'."
    events = ran("tsc", True, error), edited("/p/src/a.ts", "x → y"), ran("tsc")
    assert fixes(*events) == [("type or lint rule", "edited src/a.ts (x → y)")]


def test_a_fix_that_did_not_help_is_none():
    events = [ran("npm test", True, MISSING), ran("npm install"), ran("npm test", True, MISSING)]
    assert fixes(*events, ran("npm ci"), ran("npm test")) == [
        ("missing dependency", "ran `npm ci`")
    ]


def test_another_error_of_the_command_ends_the_first_one():
    expected = "AssertionError: expected 1 to be 2 in the cart"
    events = [ran("npm test", True, MISSING), ran("npm ci"), ran("npm test", True, expected)]
    assert fixes(*events, edited("/p/src/cart.ts", "1 → 2"), ran("npm test")) == [
        ("missing dependency", "ran `npm ci`"),
        ("test expectation", "edited src/cart.ts (1 → 2)"),
    ]


def test_edits_of_many_files_are_no_fix_that_can_be_named():
    error = "AssertionError: expected 1 to be 2 in the cart"
    files = [edited(f"/p/{name}.ts") for name in "abcd"]
    assert fixes(ran("npm test", True, error), *files, ran("npm test")) == []


def test_a_corrected_option_is_the_fix():
    events = ran("gh pr diff 7 --stat", True, "unknown flag: --stat"), ran("gh pr diff 7 --patch")
    assert fixes(*events) == [("wrong flag", "ran `gh pr diff 7 --patch` instead")]


def test_the_right_directory_is_the_fix():
    error = "fatal: pathspec 'web/a.ts' did not match any files"
    inside = ran("git add web/a.ts", True, error, directory="/home/ada/shop/web")
    assert fixes(inside, ran("cd .. && git add web/a.ts", directory="/home/ada/shop/web")) == [
        ("wrong directory", "ran it in shop")
    ]


def test_a_variable_in_front_of_the_command_is_the_fix():
    events = ran("npm test", True, "Error: DATABASE_URL is not set"), ran("DATABASE_URL=x npm test")
    assert fixes(*events) == [("environment variable", "ran `DATABASE_URL=x npm test` instead")]


def test_another_wording_behind_a_change_is_not_the_fix():
    error = "could not find any workflows named Deploy"
    events = ran("gh workflow run Deploy --ref x", True, error), ran("git merge x")
    assert fixes(*events, ran("gh workflow run Deploy")) == []


def test_of_several_edits_the_one_that_speaks_of_the_error_is_named():
    error = "AssertionError: expected total to be rounded"
    edits = (
        edited("/p/cart.ts", "import a → import b"),
        edited("/p/cart.ts", "total → round(total)"),
    )
    assert fixes(ran("npm test", True, error), *edits, ran("npm test")) == [
        ("test expectation", "edited p/cart.ts (total → round(total))")
    ]


def test_an_edit_of_code_does_not_fix_what_git_refuses():
    error = "error: gpg failed to sign the data"
    events = ran("git commit -m x", True, error), edited("/p/src/a.ts"), ran("git commit -m x")
    assert fixes(*events) == []


def test_the_rest_of_a_line_is_no_fix_of_it():
    error = "rm: a.lock: No such file or directory"
    assert fixes(ran("rm a.lock && git pull", True, error), ran("git pull")) == []


def test_another_test_that_passes_is_no_fix():
    error = "AssertionError: expected 1 to be 2 in the cart"
    assert fixes(ran("npm test -- cart", True, error), ran("npm test -- login")) == []


def test_the_same_command_in_another_directory_is_no_fix():
    events = ran("npm test", True, MISSING, "/p/server"), ran("npm test", directory="/p/client")
    assert fixes(*events) == []


def test_a_command_that_passes_when_run_again_is_flaky():
    events = ran("npm test", True, "Error: socket hang up while fetching"), ran("npm test")
    assert fixes(*events) == [("flaky", "passed when run again")]


def test_a_failure_on_another_machine_is_not_kept():
    events = [ran("ssh web 'docker ps && git pull'", True, "bash: docker: command not found")]
    assert follow_events(events) == ([], [])


# Readers


def events_of(path):
    return [event for turn in agents.read(path).turns() for event in turn.events]


@pytest.mark.parametrize(
    ("output", "failed", "expected"),
    [
        pytest.param("Exit code 1\nboom", True, True, id="failed"),
        pytest.param("fine", False, False, id="passed"),
        pytest.param(
            "<tool_use_error>Sibling tool call errored</tool_use_error>", True, None, id="sibling"
        ),
        pytest.param(
            "The user doesn't want to proceed with this tool use. The tool use was rejected",
            True,
            None,
            id="refused",
        ),
        pytest.param("Hook PreToolUse:Bash denied this tool", True, None, id="denied by a hook"),
    ],
)
def test_claude_code_tells_certain_outcomes(tmp_path, output, failed, expected):
    lines = [*claude_call("npm test", output, failed), claude_says("Done.")]
    (event,) = events_of(written(tmp_path / "s1.jsonl", *lines))
    assert (event.command, event.failed) == ("npm test", expected)


def codex_lines(command, output):
    arguments = json.dumps({"cmd": command, "workdir": "/home/ada/shop"})
    call = {"type": "function_call", "name": "exec_command", "arguments": arguments}
    yield {"type": "session_meta", "payload": {"id": "c1", "cwd": "/home/ada"}}
    yield {"type": "response_item", "payload": {**call, "call_id": "c1"}}
    answer = {"type": "function_call_output", "call_id": "c1", "output": output}
    yield {"type": "response_item", "payload": answer}
    said = [{"type": "output_text", "text": "Done."}]
    message = {"type": "message", "role": "assistant", "content": said}
    yield {"type": "response_item", "payload": message}


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        pytest.param(
            "Chunk ID: ab\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\nboom",
            (True, "boom"),
            id="failed",
        ),
        pytest.param("Exit code: 0\nWall time: 1 s\nOutput:\nfine", (False, "fine"), id="passed"),
        pytest.param(
            "Process running with session ID 7\nOutput:\n", (None, ""), id="still running"
        ),
    ],
)
def test_codex_tells_the_exit_code_in_its_text(tmp_path, output, expected):
    (event,) = events_of(written(tmp_path / "rollout-1.jsonl", *codex_lines("make", output)))
    assert (event.failed, event.output) == expected
    assert event.directory == "/home/ada/shop"


def test_a_copilot_command_fails_by_its_exit_code(tmp_path):
    start = {"sessionId": "p1", "context": {"cwd": "/home/ada/shop"}}
    call = {"name": "bash", "arguments": {"command": "make"}, "toolCallId": "c1"}
    result = {"content": "boom\n<shellId: 0 completed with exit code 2>"}
    done = {"toolCallId": "c1", "success": True, "shellExecution": {"exitCode": 2}}
    lines = [
        {"type": "session.start", "id": "e1", "data": start},
        {"type": "assistant.message", "id": "e2", "data": {"content": "", "toolRequests": [call]}},
        {"type": "tool.execution_complete", "id": "e3", "data": {**done, "result": result}},
        {"type": "assistant.message", "id": "e4", "data": {"content": "It failed."}},
    ]
    (event,) = events_of(written(tmp_path / "events.jsonl", *lines))
    assert (event.command, event.failed) == ("make", True)


def test_an_edit_keeps_the_line_that_it_changed(tmp_path):
    values = {"file_path": "/p/a.ts", "old_string": "a\nb = 1", "new_string": "a\nb = 2"}
    call = {"type": "tool_use", "id": "t1", "name": "Edit", "input": values}
    lines = [
        claude_says([call]),
        claude_says([{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}], "user"),
        claude_says("Done."),
    ]
    (event,) = events_of(written(tmp_path / "s1.jsonl", *lines))
    assert (event.file, event.change, event.failed) == ("/p/a.ts", "b = 1 → b = 2", False)


def test_nothing_is_kept_while_memory_is_off(tmp_path):
    lines = [
        claude_says("memory-mode: off", "user"),
        *claude_call("npm test", MISSING, True),
        claude_says("It failed."),
    ]
    assert events_of(written(tmp_path / "s1.jsonl", *lines)) == []


# Memory


def backfill(cli, tmp_path, *lines, session="s1"):
    path = written(tmp_path / f"{session}.jsonl", *lines)
    cli.ok("backfill", path, "--no-embed")


def session(cli, *calls, session="s1", day=1):
    """A session of a project with these (command, output, failed) calls, and a turn before and behind them."""
    place = {"session": session, "day": day, "cwd": str(cli.project)}
    yield claude_says("Run the tests of the shop please.", "user", **place)
    for call in calls:
        yield from claude_call(*call, **place)
    yield claude_says("The tests of the shop were run.", **place)


FIXED = [("npm test", MISSING, True), ("npm ci",), ("npm test", "12 passing")]
OPEN = [("npm test", MISSING, True)]


def test_a_failure_is_kept_with_its_fix(cli, tmp_path):
    backfill(cli, tmp_path, *session(cli, *FIXED))
    (one,) = cli.json("failures")
    assert (one["command"], one["cause"], one["fix"]) == (
        "npm test",
        "missing dependency",
        "ran `npm ci`",
    )
    assert (one["times"], one["held"], one["session"]) == (1, 1, "s1")


def test_the_statement_says_what_failed_and_what_fixed_it(cli, tmp_path):
    backfill(cli, tmp_path, *session(cli, *FIXED))
    (memory,) = cli.json("list", "--kind", "failure")
    assert memory["content"] == (
        "`npm test` failed: Error: Cannot find module 'zod'. Fixed: ran `npm ci`."
    )


def test_search_finds_a_failure(cli, tmp_path):
    backfill(cli, tmp_path, *session(cli, *FIXED))
    hits = cli.json("search", "why does npm test fail with zod?")
    assert "failure" in [hit["kind"] for hit in hits]


def test_the_same_error_in_another_session_is_one_memory(cli, tmp_path):
    backfill(cli, tmp_path, *session(cli, *FIXED))
    backfill(cli, tmp_path, *session(cli, *FIXED, session="s2", day=2), session="s2")
    (one,) = cli.json("failures")
    assert (one["times"], one["held"]) == (2, 2)


def test_a_fix_that_helps_again_is_more_certain(cli, tmp_path):
    backfill(cli, tmp_path, *session(cli, *FIXED))
    (before,) = cli.json("failures")
    backfill(cli, tmp_path, *session(cli, *FIXED, session="s2", day=2), session="s2")
    (after,) = cli.json("failures")
    assert after["confidence"] > before["confidence"]


def correct(cli, tmp_path):
    """Correct the fix of the only failure, as a person does."""
    backfill(cli, tmp_path, *session(cli, *FIXED))
    (one,) = cli.json("failures")
    with Bethink(directory=cli.project, actor="user") as memory:
        text = memory.get(one["id"])[0].content.replace("ran `npm ci`", "use pnpm")
        memory.update(one["id"], content=text)


def test_a_corrected_fix_is_shown(cli, tmp_path):
    correct(cli, tmp_path)
    assert "use pnpm" in hook(cli)


def test_a_corrected_fix_is_not_replaced_by_another_session(cli, tmp_path):
    correct(cli, tmp_path)
    other = [("npm test", MISSING, True), ("npm install zod",), ("npm test", "12 passing")]
    backfill(cli, tmp_path, *session(cli, *other, session="s2", day=2), session="s2")
    assert [one["fix"] for one in cli.json("failures")] == ["use pnpm"]


def test_the_same_correction_for_another_file_is_more_certain(cli, tmp_path):
    error = "npm error Override for tsx@^4.19.4 conflicts with direct dependency"
    for number in (1, 2):
        calls = [(f"npx vitest run core/tests/{number}.ts", error, True)]
        calls += [(f"pnpm vitest run core/tests/{number}.ts", "1 passed")]
        lines = session(cli, *calls, session=f"s{number}", day=number)
        backfill(cli, tmp_path, *lines, session=f"s{number}")
    assert [one["held"] for one in cli.json("failures")] == [2]


def test_a_failure_without_a_fix_is_open(cli, tmp_path):
    backfill(cli, tmp_path, *session(cli, *OPEN))
    assert [one["fix"] for one in cli.json("failures", "--open")] == [""]
    assert "unsolved" in cli.ok("failures")


def test_a_later_session_closes_an_open_failure(cli, tmp_path):
    backfill(cli, tmp_path, *session(cli, *OPEN))
    backfill(cli, tmp_path, *session(cli, *FIXED, session="s2", day=2), session="s2")
    assert cli.json("failures", "--open") == []
    assert [one["fix"] for one in cli.json("failures")] == ["ran `npm ci`"]


def test_a_fix_in_a_later_reading_of_the_session_is_found(cli, tmp_path):
    lines = [*session(cli, *OPEN)]
    backfill(cli, tmp_path, *lines)
    more = [*session(cli, ("npm ci",), ("npm test", "12 passing"))]
    backfill(cli, tmp_path, *lines, *more)
    (one,) = cli.json("failures")
    assert (one["fix"], one["times"]) == ("ran `npm ci`", 1)


def test_a_forgotten_failure_does_not_come_back(cli, tmp_path):
    backfill(cli, tmp_path, *session(cli, *FIXED))
    cli.ok("forget", cli.json("failures")[0]["id"])
    backfill(cli, tmp_path, *session(cli, *FIXED, session="s2", day=2), session="s2")
    assert cli.json("failures") == []


def test_secrets_in_a_command_or_an_error_are_redacted(cli, tmp_path):
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    error = f"Exit code 1\nError: Cannot find module 'zod' for {secret}"
    calls = [(f"npm test --token={secret}", error, True), (f"npm install --token={secret}",)]
    calls.append((f"npm test --token={secret}", "12 passing"))
    backfill(cli, tmp_path, *session(cli, *calls))
    assert secret not in cli.ok("export")
    assert len(cli.json("failures")) == 1


def test_private_parts_of_an_output_are_not_kept(cli, tmp_path):
    error = "Exit code 1\nError: Cannot find module 'zod' <private>of the bank</private>"
    calls = [("npm test", error, True), ("npm ci <private>--key bank</private>",), ("npm test",)]
    backfill(cli, tmp_path, *session(cli, *calls))
    assert len(cli.json("failures")) == 1
    assert "bank" not in cli.ok("export")


def test_a_secret_in_the_name_of_what_is_missing_is_redacted(cli, tmp_path):
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    error = f"Exit code 127\nbash: {secret}: command not found"
    backfill(cli, tmp_path, *session(cli, (f"npx {secret}", error, True), ("npm test",)))
    assert secret not in cli.ok("export")


def test_an_unsolved_failure_is_an_open_item(cli, tmp_path):
    backfill(cli, tmp_path, *session(cli, *OPEN))
    assert [one["kind"] for one in cli.json("todo")] == ["failure"]


def test_a_check_that_fails_at_the_end_is_left_in_the_digest(cli, tmp_path):
    backfill(cli, tmp_path, *session(cli, *OPEN))
    assert "npm test fails" in cli.ok("sessions")


def test_a_test_that_failed_once_is_no_open_item(cli, tmp_path):
    error = "AssertionError: expected 1 to be 2 in the cart"
    backfill(cli, tmp_path, *session(cli, ("npm test", error, True)))
    assert cli.json("failures") == []


def test_one_session_keeps_few_failures(cli, tmp_path):
    calls = [
        (f"npm run job{number}", f"Error: Cannot find module 'package-{name}'", True)
        for number, name in enumerate("abcdefghijkl")
    ]
    backfill(cli, tmp_path, *session(cli, *calls))
    assert len(cli.json("failures")) == 4


# The hook after a failed call


CALL = {"tool_name": "Bash", "tool_input": {"command": "npm test"}, "tool_use_id": "t1"}


def hook(cli, error=MISSING, session="s9", **said):
    """What the hook of Claude Code prints for a failed command."""
    message = {"session_id": session, "cwd": str(cli.project), **CALL, "error": error, **said}
    return run("tool-failure", "claude", json.dumps(message).encode())


def test_a_known_failure_gets_its_fix_in_one_line(cli, tmp_path):
    backfill(cli, tmp_path, *session(cli, *FIXED))
    answer = json.loads(hook(cli))["hookSpecificOutput"]
    assert answer["hookEventName"] == "PostToolUseFailure"
    line = answer["additionalContext"].splitlines()[2]
    assert line == "This error was fixed before (2026-05-01, session s1): ran `npm ci`"


def test_a_session_hears_of_a_fix_once(cli, tmp_path):
    backfill(cli, tmp_path, *session(cli, *FIXED))
    assert hook(cli)
    assert hook(cli) == ""


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"error": "Exit code 1\nError: Cannot find module 'yup'"}, id="new error"),
        pytest.param({"error": "Exit code 1"}, id="no error"),
        pytest.param({"is_interrupt": True}, id="interrupted"),
        pytest.param({"tool_input": {"file_path": "/a"}}, id="no command"),
        pytest.param({"tool_input": "npm test"}, id="malformed input"),
    ],
)
def test_the_hook_is_silent_about(cli, tmp_path, said):
    backfill(cli, tmp_path, *session(cli, *FIXED))
    assert hook(cli, **said) == ""


def test_the_hook_is_silent_about_an_unsolved_failure(cli, tmp_path):
    backfill(cli, tmp_path, *session(cli, *OPEN))
    assert hook(cli) == ""


def test_prompts_are_not_told_failures(cli, tmp_path):
    backfill(cli, tmp_path, *session(cli, *FIXED))
    message = {"session_id": "s9", "cwd": str(cli.project), "prompt": "why does npm test fail?"}
    told = run("prompt", "claude", json.dumps(message).encode())
    assert "npm ci" not in told


def test_the_line_of_a_long_fix_has_at_most_sixty_tokens(cli, tmp_path):
    install = "npm install " + " ".join(f"package-number-{number}" for number in range(60))
    calls = [("npm test", MISSING, True), (install,), ("npm test", "12 passing")]
    backfill(cli, tmp_path, *session(cli, *calls))
    line = json.loads(hook(cli))["hookSpecificOutput"]["additionalContext"].splitlines()[2]
    assert tokens(line) <= 60


def test_failures_of_every_project_can_be_listed(cli, tmp_path):
    backfill(cli, tmp_path, *session(cli, *FIXED))
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    assert cli.json("failures", "--project", other) == []
    assert len(cli.json("failures", "--project", other, "--all-projects")) == 1


# Later additions to what counts as a fix


def test_a_folder_that_the_shell_is_in_already_is_named():
    error = "bash: line 1: cd: web: No such file or directory"
    inside = ran("cd web && npm test", True, error, directory="/home/ada/shop/web")
    after = ran("npm test", directory="/home/ada/shop/web")
    assert fixes(inside, after) == [
        ("wrong directory", "the shell was in web already: run it without `cd web`")
    ]


def test_another_runner_that_gets_past_the_error_is_the_fix():
    error = "npm error Override for tsx@4 conflicts with direct dependency"
    events = [
        ran("npx vitest run web/cart.test.ts", True, error),
        ran("cd web && pnpm vitest run cart.test.ts", True, "AssertionError: expected 1 to be 2"),
    ]
    assert fixes(*events) == [("version", "ran `pnpm vitest run cart.test.ts` in web instead")]


def test_a_command_that_does_the_work_of_a_missing_program_is_the_fix():
    events = [
        ran("golangci-lint run ./...", True, "bash: golangci-lint: command not found"),
        ran("make lint-go"),
    ]
    assert fixes(*events) == [("missing dependency", "ran `make lint-go` instead")]


def test_a_run_outside_of_the_sandbox_is_the_fix():
    error = "error: open /var/cache: operation not permitted"
    events = ran("go test ./...", True, error), ran("go test ./...")._replace(escalated=True)
    assert fixes(*events) == [
        ("permission", "ran it outside of the sandbox, with escalated permissions")
    ]


@pytest.mark.parametrize(
    ("command", "output", "expected"),
    [
        pytest.param("go test ./... | tail -5", "--- FAIL: TestCart (0.1s)", False, id="filter"),
        pytest.param('npm test; echo "exit $?"', "boom\nexit 1", False, id="printed status"),
        pytest.param('npm test; echo "exit $?"', "fine\nexit 0", True, id="printed success"),
        pytest.param("cat log | tail -5", "error: boom", None, id="no program's verdict"),
    ],
)
def test_a_program_that_reports_its_failure_failed(command, output, expected):
    assert outcomes(command, False, output)[-1][1] is expected
