"""Runs the command line in this process, with a home, a project and a stdin of its own."""

import io
import json
import sys
from contextlib import suppress
from typing import Any, NamedTuple

import pytest

from bethink import caller
from bethink.app.cli.main import main
from bethink.caller import list_marks


class Result(NamedTuple):
    code: int
    out: str
    err: str


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


class Cli:
    def __init__(self, capsys, monkeypatch, home, project):
        self.capsys, self.monkeypatch, self.home, self.project = capsys, monkeypatch, home, project

    def __call__(self, *argv: str, stdin: bytes | str = b"", terminal: bool = False) -> Result:
        raw = io.BytesIO(stdin.encode() if isinstance(stdin, str) else stdin)
        typed = (Terminal if terminal else io.TextIOWrapper)(raw, encoding="utf-8")
        self.monkeypatch.setattr(sys, "stdin", typed)
        self.capsys.readouterr()
        code = main([str(word) for word in argv])
        return Result(code, *self.capsys.readouterr())

    def ok(self, *argv: str, **options: Any) -> str:
        """What a command that must succeed prints."""
        result = self(*argv, **options)
        assert result.code == 0, result
        return result.out

    def json(self, *argv: str, **options: Any) -> Any:
        return json.loads(self.ok("--json", *argv, **options))

    def fails(self, *argv: str, code: int, **options: Any) -> str:
        """What a command that must fail says: on stderr, in sentences, without a traceback, and with nothing on stdout."""
        result = self(*argv, **options)
        assert result.code == code, result
        assert result.out == ""
        if result.err.startswith("{"):
            error = json.loads(result.err)["error"]
            return f"error: {error['message']}\nhint: {error['hint']}\n"
        assert result.err.startswith("error: "), result.err
        assert "Traceback" not in result.err
        assert "unexpected" not in result.err
        return result.err

    def add(self, text: str, *options: str) -> str:
        return self.json("add", text, *options)["id"]


def run_at_terminal(cli, *argv, typed=(), columns=100, program=("-m", "bethink"), **environment):
    """Runs a command in a process of its own at a pseudo-terminal, and types each answer when its question is there. Gives
    the exit code and what was shown."""
    import fcntl
    import os
    import pty
    import struct
    import subprocess
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    words = [sys.executable, *program, *argv]
    env = {"TERM": "xterm", "NO_COLOR": "1", **os.environ, **environment}
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), slave)
    process = subprocess.Popen(words, cwd=cli.project, env=env, start_new_session=True, **streams)
    os.close(slave)
    shown, waiting = "", list(typed)
    with suppress(OSError):  # by which Linux says that nobody is at the other end any more
        while part := os.read(master, 4096):
            shown += part.decode("utf-8", "replace")
            if waiting and waiting[0][0] in shown:
                os.write(master, waiting.pop(0)[1].encode())
    os.close(master)
    assert not waiting, shown
    return process.wait(timeout=60), shown.replace("\r\n", "\n")


@pytest.fixture
def cli(capsys, monkeypatch, tmp_path, store_kind):
    home, project = tmp_path / "home", tmp_path / "shop"
    project.mkdir()
    unset = "NO_COLOR FORCE_COLOR VISUAL EDITOR COLUMNS BETHINK_DATABASE BETHINK_DEBUG"
    for variable in (*list_marks(), *unset.split(), "BETHINK_MODEL_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(caller, "list_ancestors", list)  # who runs the tests may be an agent
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("BETHINK_HOME", str(home))
    monkeypatch.setenv("BETHINK_EMBEDDING", "hashing")
    monkeypatch.setenv("BETHINK_OFFLINE", "1")
    if store_kind == "postgres":
        import postgres

        postgres.use(monkeypatch)
        monkeypatch.setenv("BETHINK_USER", "ada")  # whose personal memories are
    monkeypatch.chdir(project)
    return Cli(capsys, monkeypatch, home, project)
