"""What goes wrong ends in a sentence, a hint and an exit code: 1 could not be done, 2 wrong usage. Nothing is lost, nothing is traced."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from case_tables import cases, each

import bethink
from bethink.errors import StoreBusy, StoreCorrupt, StoreReadOnly

DEPLOY = "We deploy from main, never from a branch"
SOURCE = str(Path(bethink.__file__).parent.parent)


def run(*argv, home, program=(), stdin=b"", stdout=subprocess.PIPE, **environment):
    """A real process, for what only a real process has: streams, signals, bytes in arguments."""
    known = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "LANG": "C.UTF-8"}
    known |= {"BETHINK_HOME": str(home), "BETHINK_EMBEDDING": "none", **environment}
    words = program or [sys.executable, "-m", "bethink", *argv]
    streams = {"input": stdin, "stdout": stdout, "stderr": subprocess.PIPE}
    return subprocess.run(words, env=known, cwd=home.parent, **streams)


@each("argv,said", "cli-wrong-usage")
def test_wrong_usage_ends_with_2_and_says_what_was_wrong(cli, argv, said):
    message = cli.fails(*argv, code=2)
    assert said in message and "\nhint: " in message


@each("argv,said", "cli-not-there")
def test_what_is_not_there_ends_with_1(cli, argv, said):
    assert said in cli.fails(*argv, code=1)


def test_a_change_that_cannot_be_or_was_not_confirmed_leaves_the_memory_as_it_was(cli):
    id = cli.add(DEPLOY)
    for argv, said in cases("cli-bad-input-an-update-must-change-something"):
        refused = cli(*argv.format(id=id).split())
        assert refused.code == 2 and said in refused.err, argv
    assert [version["action"] for version in cli.json("history", id)] == ["add"]


TEXTS = dict(cases("cli-bad-input-no-texts", {}))


def test_a_text_that_is_none_is_refused_with_the_reason(cli):
    for raw, said in TEXTS.items():
        assert said in cli.fails("add", stdin=raw, code=2)
        (cli.project / "file").write_bytes(raw)
        assert said in cli.fails("add", "--file", "file", code=2)
    broken = b"caf\xe9".decode("utf-8", "surrogateescape")
    assert "text is not valid UTF-8" in cli.fails("add", broken, code=2)
    assert "tag is not valid UTF-8" in cli.fails("add", "x", "--tag", broken, code=2)
    assert cli("search", broken).code == 0
    assert cli.json("list") == []


def test_a_place_where_no_database_can_be(cli, tmp_path):
    (tmp_path / "file").write_text("")
    cli.ok("add", DEPLOY, "--database", tmp_path / "made.db")
    for command, database, said in cases("cli-bad-input-no-place-for-a-database"):
        place = database if "://" in database else tmp_path / database
        assert said in cli.fails(*command.split(), "--database", place, code=1)
    assert not (cli.project / "nowhere:").exists()


READING = """
search deploy|recall deploy|list|export|stats|topics|reset --yes|reindex|handoff show|duplicates|consolidate|get 01a1dd89
vote 01a1dd89|forget 01a1dd89|promote --suggest|backup {copy}|migrate --to {copy}
"""


def test_what_reads_makes_no_database_that_was_named_and_is_not_there(cli, tmp_path, monkeypatch):
    typed = tmp_path / "typo" / "x.db"
    for command in re.split(r"[|\n]", READING.strip().format(copy=tmp_path / "copy.db")):
        told = cli.fails(*command.split(), "--database", typed, code=1)
        assert f"There is no database at {typed}." in told and "--database" in told
    assert f"There is no database at {typed}." in cli("doctor", "--database", typed).out
    monkeypatch.setenv("BETHINK_DATABASE", str(typed))
    assert "$BETHINK_DATABASE" in cli.fails("list", code=1)
    assert not typed.parent.exists() and not (tmp_path / "copy.db").exists()
    cli.ok("add", DEPLOY)
    assert DEPLOY in cli.ok("list", "--database", typed)


def test_a_use_that_is_not_counted_hides_nothing_and_the_unexpected_is_one_line(cli, monkeypatch):
    id = cli.add(DEPLOY)
    for kind, told in ((StoreReadOnly, DEPLOY), (StoreBusy, DEPLOY), (StoreCorrupt, "Not now.")):
        monkeypatch.setattr("bethink.api.Bethink.touch", fail_with(kind("Not now.")))
        found = cli("get", id)
        assert told in found.out + found.err and found.code == (kind is StoreCorrupt)
    monkeypatch.setattr("bethink.api.Bethink.search", fail_with(RuntimeError("boom")))
    result = cli("search", "x")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: unexpected RuntimeError: boom\nhint: Set BETHINK_DEBUG=1")
    monkeypatch.setenv("BETHINK_DEBUG", "1")
    assert "Traceback" in cli("search", "x").err
    monkeypatch.setattr("bethink.api.Bethink.search", fail_with(KeyboardInterrupt()))
    assert cli("search", "x") == (130, "", "stopped\n")


def fail_with(error):
    def fail(*_, **__):
        raise error

    return fail


def test_a_reader_that_leaves_early_is_no_error(tmp_path):
    run("add", DEPLOY, home=tmp_path / "home")
    command = f'{sys.executable} -m bethink export --jsonl | true; echo "${{PIPESTATUS[0]}}"'
    done = run(home=tmp_path / "home", program=["bash", "-c", command])
    assert (done.stdout, done.stderr) == (b"0\n", b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_told(tmp_path):
    (tmp_path / ".bethink").mkdir()
    key = "The key is AKIAIOSFODNN7EXAMPLE, for staging"  # told with a hint
    commands = (["stats"], ["add", DEPLOY], ["add", key])
    said = b"error: The output could not be written: No space left on device. What the command changed stays changed.\n"
    for command, unbuffered in itertools.product(commands, ("", "1")):
        with Path("/dev/full").open("w") as full:
            home = tmp_path / "home"
            done = run(*command, home=home, stdout=full, PYTHONUNBUFFERED=unbuffered)
        assert (done.returncode, done.stderr) == (1, said)


def test_a_real_process_speaks_on_the_right_streams(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / ".bethink").mkdir()
    added = run("add", stdin="größer 東京".encode(), home=home)
    assert (added.returncode, added.stderr) == (0, b""), added
    missing = run("get", "ffffffff", home=home)
    assert (missing.returncode, missing.stdout) == (1, b"")
    assert missing.stderr.startswith(b"error: ")
    shown = run("list", home=home, LANG="C", PYTHONIOENCODING="ascii")
    assert shown.returncode == 0 and b"gr\\xf6\\xdfer" in shown.stdout, shown
