"""Differences between operating systems: what Windows does, as far as it can be tried on another system."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace

import pytest
from source_tree import SOURCE

from bethink import folders, system
from bethink.agents import edit, install
from bethink.agents.agent import find_folder
from bethink.text import textfile

# What only some systems have; `system` alone may name it.
PARTICULAR = frozenset("fcntl msvcrt fork setsid getuid geteuid killpg SIGALRM setpriority".split())
PROGRAM = r"C:\Users\Ada Lovelace\.local\bin\bethink.exe"


def list_names(path):
    """The names of modules, functions and attributes in a file."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.Attribute):
            yield node.attr


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=str(path.relative_to(SOURCE)))
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name != "system.py"
    ],
)
def test_only_one_module_names_what_some_systems_lack(path):
    assert PARTICULAR.isdisjoint(list_names(path))


# Quoting


@pytest.mark.parametrize(
    ("words", "line"),
    [
        pytest.param(["bethink", "hook"], "bethink hook", id="plain"),
        pytest.param([PROGRAM, "hook"], f'"{PROGRAM}" hook', id="a-blank"),
        pytest.param(["a", 'say "x"'], 'a "say \\"x\\""', id="quotes"),
    ],
)
def test_a_command_is_quoted_for_windows(words, line):
    assert system.quote(words, windows=True) == line


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param("code --wait", ["code", "--wait"], id="plain"),
        pytest.param(r"C:\bin\vim.exe -f", [r"C:\bin\vim.exe", "-f"], id="backslashes"),
        pytest.param(f'"{PROGRAM}" -g', [PROGRAM, "-g"], id="quotes"),
    ],
)
def test_an_editor_on_windows_keeps_its_backslashes(line, words):
    assert system.split(line, windows=True) == words


def test_an_editor_on_windows_may_have_blanks_without_quotes(tmp_path):
    editor = tmp_path / "my editor.exe"
    editor.touch()
    assert system.split(str(editor), windows=True) == [str(editor)]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        pytest.param([r"C:\bin\bethink.exe", "hook"], r"& C:\bin\bethink.exe hook", id="plain"),
        pytest.param([PROGRAM, "hook"], f"& '{PROGRAM}' hook", id="a-blank"),
        pytest.param(["it's", "x"], "& 'it''s' x", id="an-apostrophe"),
        pytest.param(["a;b", "$x"], "& 'a;b' '$x'", id="signs"),
    ],
)
def test_a_command_is_quoted_for_powershell(words, line):
    assert system.quote_powershell(words) == line


WORDS = [PROGRAM, "hook", "stop", "--host", "copilot"]


@pytest.mark.parametrize(
    "hook",
    [
        pytest.param({"command": system.quote(WORDS, windows=True)}, id="cmd"),
        pytest.param({"powershell": system.quote_powershell(WORDS)}, id="powershell"),
        pytest.param({"command": WORDS[0], "args": WORDS[1:]}, id="a-list"),
    ],
)
def test_a_hook_on_windows_is_known_as_ours(hook):
    assert edit.is_hook_of(hook, "copilot")


def test_a_server_on_windows_is_known_as_ours():
    assert edit.is_our_server({"command": PROGRAM, "args": ["mcp"]})


# Paths


@pytest.mark.parametrize(
    ("path", "name"),
    [
        pytest.param(PROGRAM, "bethink", id="windows"),
        pytest.param(r"C:\x\BETHINK.EXE", "BETHINK", id="capitals"),
        pytest.param("/usr/bin/bethink", "bethink", id="posix"),
    ],
)
def test_a_program_has_a_name_without_its_ending(path, name):
    assert system.name_program(path) == name


def test_a_program_of_uvx_on_windows_is_in_a_passing_place():
    path = PureWindowsPath("C:/Users/ada/AppData/Local/uv/archive-v0/x/Scripts/bethink.exe")
    assert install.is_passing(str(path))


def test_the_data_lies_in_the_local_folder_of_a_windows_user(monkeypatch):
    monkeypatch.delenv("BETHINK_HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("LOCALAPPDATA", "/users/ada/AppData/Local")
    monkeypatch.setattr(folders, "WINDOWS", True)
    assert folders.find_data() == "/users/ada/AppData/Local/bethink"


def test_a_folder_of_an_agent_may_be_an_absolute_one():
    found = find_folder("${APPDATA:-AppData/Roaming}/Code", {"APPDATA": "/r"}, Path("/home/ada"))
    assert found == Path("/r/Code")


# Locks


@pytest.fixture
def windows(monkeypatch):
    """The locks of Windows: one byte of a file, which a second handle cannot lock."""
    held = {}

    def locking(descriptor, mode, number):
        where = (os.fstat(descriptor).st_ino, os.lseek(descriptor, 0, os.SEEK_CUR))
        if held.setdefault(where, descriptor) != descriptor:
            raise PermissionError(13, "locked")

    fake = SimpleNamespace(LK_LOCK=1, LK_NBLCK=2, locking=locking)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", fake)
    monkeypatch.setattr(system, "WINDOWS", True)
    return held


@pytest.fixture
def opened(tmp_path):
    """Two handles of one file."""
    files = [(tmp_path / "x.lock").open("w+b") for _ in range(2)]
    yield [file.fileno() for file in files]
    for file in files:
        file.close()


def test_a_file_that_is_locked_on_windows_cannot_be_locked_again(windows, opened):
    assert [system.lock(one, wait=False) for one in opened] == [True, False]


def test_a_file_that_is_locked_here_cannot_be_locked_again(opened):
    assert [system.lock(one, wait=False) for one in opened] == [True, False]


def test_a_folder_is_locked_on_windows_by_a_file_in_it(windows, tmp_path):
    with textfile.alone(tmp_path):
        assert len(windows) == 1
    assert (tmp_path / ".lock").exists()


# A machine without what only Linux and macOS have

MACHINE = """
import json, os, signal, subprocess, sys, types
for name in "fork setsid getuid geteuid killpg setpriority getpriority sysconf".split():
    if hasattr(os, name):
        delattr(os, name)
del signal.SIGALRM, signal.SIGKILL
sys.modules["fcntl"] = None
fake = types.SimpleNamespace(LK_LOCK=1, LK_NBLCK=2, locking=lambda *about: None)
sys.modules["msvcrt"] = fake
import socket
del socket.AF_UNIX
from bethink import system
system.WINDOWS = True
import runpy
sys.argv = ["bethink", *json.loads(sys.argv[1])]
runpy.run_module("bethink", run_name="__main__")
"""


@pytest.fixture
def machine(cli, tmp_path, monkeypatch):
    """Runs commands in a process without forks, user ids, process groups and Unix sockets."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(SOURCE.parent),
        "USERPROFILE": str(tmp_path),
        "BETHINK_EMBEDDING": "none",
    }

    def run(*words, stdin=""):
        command = [sys.executable, "-c", MACHINE, json.dumps(words)]
        done = subprocess.run(
            command,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            cwd=cli.project,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return run


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("install", "--all"), id="install"),
        pytest.param(("config", "limit", "5"), id="config"),
        pytest.param(("init",), id="init"),
        pytest.param(("add", "We deploy from main"), id="add"),
        pytest.param(("list",), id="list"),
        pytest.param(("export",), id="export"),
        pytest.param(("analyze",), id="analyze"),
        pytest.param(("pause",), id="pause"),
    ],
)
def test_a_command_runs_without_what_windows_lacks(machine, words):
    machine("add", "The API listens on port 8080")
    done = machine(*words)
    assert done.returncode == 0, done.stderr


def test_a_hook_answers_without_what_windows_lacks(machine, cli):
    machine("add", "We deploy on Tuesdays only", "--kind", "decision")
    message = json.dumps({"cwd": str(cli.project), "session_id": "s", "source": "startup"})
    done = machine("hook", "session-start", "--host", "claude", stdin=message)
    assert "We deploy on Tuesdays only" in done.stdout


def test_a_worker_starts_without_a_fork(monkeypatch, tmp_path):
    monkeypatch.setattr(system, "INHERITS_LOCKS", False)
    with (tmp_path / "x.lock").open("w+b") as lock:
        file = tmp_path / "done"
        os.mkfifo(file)
        script = f"open({str(file)!r}, 'w').write('started')"
        system.detach([sys.executable, "-c", script], os.environ, lock.fileno())
    assert file.read_text() == "started"
