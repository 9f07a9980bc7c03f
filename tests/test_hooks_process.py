"""`bethink hook` as hosts start it: whatever is broken, it ends with 0, in time, with a valid answer or none, and leaves no process."""

import json
import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
from mcp_client import environment

from bethink import Bethink

ASKED = {"prompt": "how do we deploy?"}
# Holds the database until its input ends.
HOLDER = """
import apsw, sys
connection = apsw.Connection(sys.argv[1])
connection.pragma('locking_mode', 'exclusive')
connection.execute('BEGIN EXCLUSIVE; DELETE FROM meta')
print('held', flush=True)
sys.stdin.read()
"""
HEAVY = set(
    "numpy onnxruntime tokenizers mcp pydantic argparse asyncio dataclasses inspect logging subprocess "
    "concurrent.futures urllib.request tomllib starlette jinja2 psycopg".split()
)
# Runs a hook, tells at its end which of these modules it loaded, and dies.
WATCHED = """
import os, sys
def tell(code):
    sys.stderr.write(' '.join(sorted(set(sys.modules) & {heavy!r})))
    sys.stderr.flush()
    os.kill(os.getpid(), 9)
os._exit = tell
sys.argv = ['bethink', 'hook', {name!r}, '--host', 'claude']
from bethink.app.cli.main import main
main()
"""


Ended = namedtuple("Ended", "code out err")
NOTHING = Ended(0, b"", b"")


class Machine:
    """A home, a project with a decision, and the command."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project = folder / "data", folder / "project"
        (self.project / ".git").mkdir(parents=True)
        (self.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        own = {"HOME": str(folder), "BETHINK_EMBEDDING": "none", "LC_ALL": "C"}
        self.environment = environment(self.home, **own)
        with Bethink(self.home / "memory.db", directory=self.project) as memory:
            memory.add("We deploy from main", kind="decision")

    def hook(self, event: str, host: str = "claude", said: Any = ASKED, **options: Any) -> Ended:
        return self.run("-m", "bethink", "hook", event, "--host", host, said=said, **options)

    def run(self, *words: str, said: Any, **options: Any) -> Ended:
        told = {"cwd": str(self.project), "session_id": "s"}
        data = said if isinstance(said, bytes) else json.dumps(told | said).encode()
        given = {"input": data, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        given["env"] = self.environment | given.get("env", {})
        if "stdin" in given:
            del given["input"]
        done = subprocess.run([sys.executable, *words], timeout=60, **given)
        return Ended(done.returncode, done.stdout, done.stderr)

    def failures(self) -> list[dict[str, Any]]:
        path = self.home / "hooks" / "failures.json"
        return list(json.loads(path.read_text())) if path.exists() else []


@pytest.fixture
def machine(tmp_path, monkeypatch):
    monkeypatch.setenv("BETHINK_EMBEDDING", "none")
    monkeypatch.delenv("BETHINK_HOME", raising=False)
    return Machine(tmp_path)


@pytest.mark.parametrize("host", ["claude", "cursor"])
def test_a_host_gets_one_line_of_json_in_its_dialect(machine, host):
    ended = machine.hook("prompt", host, ASKED | {"session_id": host})
    assert (ended.code, ended.err, machine.failures()) == (0, b"", [])
    assert b"We deploy from main" in ended.out and ended.out.count(b"\n") == 1
    json.loads(ended.out)


def test_a_prompt_that_nothing_fits_gets_nothing(machine):
    assert machine.hook("prompt", said={"prompt": "hello"}) == NOTHING


def test_a_host_that_does_not_listen_is_no_failure(machine):
    reading, writing = os.pipe()
    os.close(reading)
    ended = machine.hook("prompt", stdout=writing)
    os.close(writing)
    assert (ended.code, ended.err, machine.failures()) == (0, b"", [])


def test_a_folder_that_is_gone_gets_the_briefing_of_the_project_around_it(machine):
    ended = machine.hook("session-start", said={"cwd": str(machine.project / "gone")})
    assert (ended.code, ended.err) == (0, b"") and b"We deploy" in ended.out


def test_a_hook_that_starts_in_a_folder_that_is_gone_says_nothing(machine):
    gone = machine.project / "gone"
    gone.mkdir()
    hook = [sys.executable, "-m", "bethink", "hook", "stop", "--host", "claude"]
    leave = f"os.chdir({str(gone)!r}); os.rmdir({str(gone)!r})"
    code = f"import os; {leave}; os.execv(*{(hook[0], hook)})"
    assert machine.run("-c", code, said=b"{}") == NOTHING


@pytest.mark.parametrize("event", ["session-start", "prompt", "stop"])
def test_a_file_where_the_data_folder_should_be_makes_a_hook_say_nothing(machine, event):
    file = machine.project / "a file where the folder should be"
    file.write_text("")
    said = ASKED | {"transcript_path": "/t.jsonl"}
    assert machine.hook(event, said=said, env={"BETHINK_HOME": str(file)}) == NOTHING


@pytest.mark.parametrize(
    ("event", "host", "said"),
    [
        pytest.param("prompt", "claude", b"\xff{not json", id="no JSON"),
        pytest.param("explode", "vim", b"{}", id="an unknown event and host"),
    ],
)
def test_nothing_that_a_host_says_makes_a_hook_fail(machine, event, host, said):
    assert machine.hook(event, host, said) == NOTHING
    assert [failure["count"] for failure in machine.failures()] == [1]


@pytest.mark.parametrize(
    ("event", "more"),
    [
        pytest.param("session-start", (), id="session-start"),
        pytest.param("prompt", (), id="prompt"),
        pytest.param("stop", ("apsw", "bethink.api"), id="stop"),
    ],
)
def test_a_hook_imports_next_to_nothing(machine, event, more):
    watched = WATCHED.format(heavy=HEAVY.union(more), name=event)
    ended = machine.run("-c", watched, said=ASKED)
    assert (ended.code, ended.err) == (-9, b"")


def test_a_locked_database_is_not_waited_for(machine):
    command = [sys.executable, "-c", HOLDER, str(machine.home / "memory.db")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as held:
        assert held.stdout.readline() == b"held\n"
        assert machine.hook("prompt") == NOTHING
        held.stdin.close()
    (failure,) = machine.failures()
    assert failure["event"] == "prompt" and "StoreBusy" in failure["message"]
    assert b"We deploy" in machine.hook("prompt").out


def test_a_host_that_never_ends_its_message_is_left_in_time(machine):
    reading, writing = os.pipe()
    limit = {"BETHINK_HOOK_SECONDS": "0.4"}
    assert machine.hook("prompt", stdin=reading, env=limit) == NOTHING
    os.close(reading)
    os.close(writing)
    (failure,) = machine.failures()
    assert "longer than 0.4 seconds" in failure["message"]
