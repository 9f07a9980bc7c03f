"""`bethink hook` as hosts start it: whatever is broken, it ends with 0, in time, with a valid answer or none, and leaves no process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bethink import Bethink
from bethink.hooks.state import HOSTS

SOURCE = Path(__file__).parent.parent / "src"


class Ended(NamedTuple):
    code: int
    out: bytes
    err: bytes


NOTHING = Ended(0, b"", b"")


class Machine:
    """A home, a project and the command."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home, self.project = folder, folder / "data", folder / "project"
        self.project.mkdir(parents=True)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": str(SOURCE),
            "BETHINK_HOME": str(self.home),
            "BETHINK_EMBEDDING": "none",
            "BETHINK_OFFLINE": "1",
            "LC_ALL": "C",
        }

    def add(self, content: str) -> None:
        with Bethink(self.home / "memory.db", directory=self.project) as memory:
            memory.add(content, kind="decision")

    def hook(self, *words: str, said: Any = None, **options: Any) -> Ended:
        return self.run("-m", "bethink", "hook", *words, said=said, **options)

    def ask(self, **said: Any) -> Ended:
        return self.hook("prompt", "--host", "claude", said={"prompt": "how do we deploy?", **said})

    def run(self, *words: str, said: Any = None, **options: Any) -> Ended:
        told = {"cwd": str(self.project), "session_id": "s"}
        data = said if isinstance(said, bytes) else json.dumps(told | (said or {})).encode()
        given = {"input": data, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        given["env"] = self.environment | given.get("env", {})
        if "stdin" in given:
            del given["input"]
        done = subprocess.run([sys.executable, *words], timeout=60, **given)
        return Ended(done.returncode, done.stdout, done.stderr)

    def start(self, **options: Any) -> str:
        ended = self.hook("session-start", "--host", "copilot", **options)
        assert (ended.code, ended.err) == (0, b"")
        return str(json.loads(ended.out)["additionalContext"]) if ended.out else ""

    def failures(self) -> list[dict[str, Any]]:
        path = self.home / "hooks" / "failures.json"
        return list(json.loads(path.read_text())) if path.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("BETHINK_EMBEDDING", "none")
    monkeypatch.delenv("BETHINK_HOME", raising=False)
    return Machine(tmp_path)


def test_a_host_gets_one_line_of_json_in_its_dialect(machine: Machine) -> None:
    machine.add("We deploy from main")
    for host in HOSTS:
        ended = machine.hook(
            "prompt", "--host", host, said={"prompt": "how do we deploy?", "session_id": host}
        )
        assert (ended.code, ended.err) == (0, b"")
        assert b"We deploy from main" in ended.out and ended.out.count(b"\n") == 1, (
            machine.failures()
        )
        json.loads(ended.out)
    assert machine.hook("prompt", f"--host={HOSTS[0]}", said={"prompt": "hello"}) == NOTHING


@pytest.mark.parametrize(
    ("words", "data"),
    [
        (["prompt", "--host", "claude"], b"\xff{not json"),
        (["stop", "--host", "claude"], b"[]"),
        (["explode", "--host", "claude"], b"{}"),
        (["stop", "--host", "vim"], b"{}"),
    ],
)
def test_nothing_a_host_says_makes_it_fail(machine: Machine, words: list[str], data: bytes) -> None:
    assert machine.hook(*words, said=data) == NOTHING
    assert [failure["count"] for failure in machine.failures()] == [1]


def test_a_directory_that_vanished_still_belongs_to_its_project(machine: Machine) -> None:
    (machine.project / ".git").mkdir()
    (machine.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    machine.add("We deploy from main")
    gone = machine.project / "gone"
    assert "We deploy" in machine.start(said={"cwd": str(gone)})
    gone.mkdir()
    hook = [sys.executable, "-m", "bethink", "hook", "stop", "--host", "claude"]
    code = (
        f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); os.execv(*{(hook[0], hook)})"
    )
    assert machine.run("-c", code, said=b"{}") == NOTHING


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are another thing there")
def test_a_home_that_cannot_be_written_keeps_nothing_back(machine: Machine) -> None:
    machine.home.write_text("a file where the folder should be")
    said = {"prompt": "how do we deploy?", "transcript_path": "/t.jsonl"}
    for name in ("session-start", "prompt", "stop"):
        assert machine.hook(name, "--host", "claude", said=said) == NOTHING


def test_a_locked_database_is_not_waited_for(machine: Machine) -> None:
    machine.add("We deploy from main")
    holder = (
        "import apsw, sys; c = apsw.Connection(sys.argv[1]); c.pragma('locking_mode', 'exclusive'); c.execute('BEGIN EXCLUSIVE; DELETE FROM meta')\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(machine.home / "memory.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as held:
        assert held.stdout and held.stdout.readline() == b"held\n"
        ended = machine.ask()
        assert held.stdin
        held.stdin.close()
    assert ended == NOTHING
    (failure,) = machine.failures()
    assert failure["event"] == "prompt" and "StoreBusy" in failure["message"]
    assert b"We deploy" in machine.ask().out


def test_a_host_that_never_ends_its_message_is_left_in_time(machine: Machine) -> None:
    reading, writing = os.pipe()
    try:
        limit = {"BETHINK_HOOK_SECONDS": "0.4"}
        ended = machine.hook("prompt", "--host", "claude", stdin=reading, env=limit)
    finally:
        os.close(reading)
        os.close(writing)
    assert ended == NOTHING
    (failure,) = machine.failures()
    assert "longer than 0.4 seconds" in failure["message"]


def test_a_host_that_does_not_listen_is_no_failure(machine: Machine) -> None:
    machine.add("We deploy from main")
    reading, writing = os.pipe()
    os.close(reading)
    said = {"prompt": "how do we deploy?"}
    ended = machine.hook("prompt", "--host", "claude", said=said, stdout=writing)
    os.close(writing)
    assert (ended.code, ended.err) == (0, b"")
    assert machine.failures() == []


def test_hooks_import_next_to_nothing(machine: Machine) -> None:
    machine.add("We deploy from main")
    heavy = set(
        "numpy onnxruntime tokenizers mcp pydantic argparse asyncio dataclasses inspect logging subprocess "
        "concurrent.futures urllib.request tomllib starlette jinja2 psycopg".split()
    )
    for name, more in (
        ("session-start", set()),
        ("prompt", set()),
        ("stop", {"apsw", "bethink.api"}),
    ):
        code = (
            "import os, sys\n"
            f"os._exit = lambda code: (sys.stderr.write(' '.join(sorted(set(sys.modules) & {heavy | more!r}))), sys.stderr.flush(), os.kill(os.getpid(), 9))\n"
            f"sys.argv = ['bethink', 'hook', '{name}', '--host', 'claude']\n"
            "from bethink.surface.cli.main import main\nmain()"
        )
        assert machine.run("-c", code, said={"prompt": "how do we deploy?"})[::2] == (-9, b"")
