"""The user's `claude` program, played by small scripts on the path: what it is given, and that nothing of it stays."""

import json
import os
import stat
import sys
from pathlib import Path

import pytest
from capturing import eventually
from fake_llm import FORM, GOOD, TASK

from bethink.config import Config
from bethink.ingest.redact import redact
from bethink.llm import open_budget, open_model
from bethink.llm.base import ModelError

(RESULT,) = [
    {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": json.dumps(GOOD),
        "structured_output": GOOD,
        "session_id": "1",
        "num_turns": 2,
        "stop_reason": "tool_use",
        "api_error_status": None,
        "usage": {
            "input_tokens": 90,
            "cache_creation_input_tokens": 10,
            "cache_read_input_tokens": 20,
            "output_tokens": 30,
        },
    },
]
SETTINGS = Config(llm="claude", model_timeout=20.0)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Makes `claude` out of a few lines of Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def write(body):
        path, head = folder / "claude", f"#!{sys.executable} -IS\nimport json, os, sys\nhere = "
        path.write_text(body if body.startswith("#!") else f"{head}{str(tmp_path)!r}\n{body}\n")
        path.chmod(stat.S_IRWXU)

    return write


def ask(task=TASK, **changes):
    return open_model(SETTINGS._replace(**changes), lambda words: redact(words).text).ask(task)


def failing(reason, **changes):
    with pytest.raises(ModelError) as caught:
        ask(**changes)
    assert caught.value.reason == reason and caught.value.message.endswith(".")
    return caught.value


TELL = """
told = {"arguments": sys.argv[1:], "input": sys.stdin.read(), "environment": dict(os.environ)}
told |= {"folder": os.getcwd(), "files": os.listdir("."), "leader": os.getsid(0) == os.getpid()}
open(here + "/told.json", "w").write(json.dumps(told))
"""


def prints(result):
    return f"sys.stdin.read(); print({json.dumps(result)!r})"


def alive(pid):
    """Whether a process runs. One that ended and waits to be fetched does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_an_answer_of_the_program_is_counted(program):
    program(prints(RESULT))
    assert ask() == GOOD
    assert open_budget(SETTINGS).report()["tokens"] == 150
    program(prints({**RESULT, "structured_output": None}))
    assert ask() == GOOD


def test_file_mentions_are_taken_out_of_a_request(program, tmp_path):
    note = {**GOOD, "note": "ask \uff20me"}
    program(f"{TELL}\n{prints({**RESULT, 'structured_output': note})}")
    said = "look at @/etc/passwd and @~/.ssh/id_rsa, mail me@example.org"
    assert ask(TASK._replace(parts=(("turn 1", said),)))["note"] == "ask @me"
    assert "@" not in json.loads((tmp_path / "told.json").read_text())["input"]


def test_a_program_that_cannot_be_run_is_named(program, tmp_path):
    program("")
    (tmp_path / "bin" / "claude").write_text("#!/no/such/interpreter\n")
    assert "cannot be run" in failing("missing").message


def test_a_program_without_a_result_is_named(program):
    program("print('Out of memory.'); sys.exit(1)")
    assert "without a result: Out of memory." in failing("refused").message


def test_a_missing_program_is_named(tmp_path, monkeypatch, program):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "Install Claude Code" in failing("missing").hint


def test_it_is_run_headless_without_tools_settings_or_traces(program, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "outer")
    program(f"{TELL}\n{prints(RESULT)}")
    ask(llm_model="sonnet")
    told = json.loads((tmp_path / "told.json").read_text())
    arguments, environment = told["arguments"], told["environment"]
    options = dict(zip(arguments, [*arguments[1:], None], strict=True))
    flags = {"-p", "--strict-mcp-config", "--no-session-persistence", "--disable-slash-commands"}
    assert flags <= set(arguments)
    given = {"--output-format": "json", "--model": "sonnet", "--tools": "", "--setting-sources": ""}
    assert {name: options[name] for name in given} == given
    assert json.loads(options["--json-schema"])["required"] == list(FORM)
    assert options["--system-prompt"].startswith("Say what it is.")
    assert "A red thing" not in " ".join(arguments)
    assert "A red thing of sizes 1 and 2." in told["input"]
    given = {"BETHINK_HOOKS": "off", "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1"}
    given |= {"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1", "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "500"}
    assert {name: environment[name] for name in given} == given
    assert not {"CLAUDECODE", "CLAUDE_CODE_SESSION_ID"} & set(environment)
    assert told["files"] == [] and told["leader"]
    assert not Path(told["folder"]).exists() and list((tmp_path / "temporary").iterdir()) == []


ENDLESS = "for _ in range(60): sys.stdout.write('x' * 65536); sys.stderr.write('x' * 65536)"


FAILURES = [
    (body, "garbage")
    for body in (
        *[
            "print('Welcome to Claude!')",
            "pass",
            "print(json.dumps([1]))",
            "sys.stdout.buffer.write(b'\\xff\\xfe')",
            "print('[' * 100000)",
        ],
        ENDLESS,
    )
]
IT_COULD_NOT = [
    (
        {
            "is_error": True,
            "api_error_status": 401,
            "result": "Invalid API key · Please run /login",
        },
        "key",
    ),
    ({"is_error": True, "api_error_status": 529, "result": "Overloaded"}, "busy"),
    ({"subtype": "error_during_execution", "is_error": True}, "refused"),
]


for changed, reason in IT_COULD_NOT:
    FAILURES.append((prints(RESULT | changed) + "\nsys.exit(1)", reason))


@pytest.mark.parametrize(("body", "reason"), FAILURES)
def test_an_unusable_answer_is_counted_as_a_failure(program, body, reason):
    program(body)
    assert failing(reason).message
    report = open_budget(SETTINGS).report()
    assert report["failures"] == {reason: 1}
    # It may have been paid for, unless nobody was signed in.
    assert (report["tokens"] > 100) == (reason != "key")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
@pytest.mark.parametrize("ending", ["hangs", "answers"])
def test_nothing_of_it_is_left_running_whether_it_hangs_or_answers(program, tmp_path, ending):
    """The child keeps the pipe open as well: who waits for its end waits ten minutes."""
    (tmp_path / "result.json").write_text(json.dumps(RESULT))
    last = "wait" if ending == "hangs" else f"cat {tmp_path}/result.json"
    program(f"#!/bin/sh\n(trap '' TERM; sleep 600) &\necho $$ $! > {tmp_path}/pids\n{last}\n")
    if ending == "hangs":
        error = failing("unreachable", model_timeout=0.6)
        assert "did not answer within 0.6 seconds" in error.message
        assert open_budget(SETTINGS).report()["tokens"] > 100
    else:
        assert ask() == GOOD
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 2 and all(eventually(lambda pid=pid: not alive(pid)) for pid in pids)
