"""What goes wrong ends in a sentence, a hint and an exit code: 1 could not be done, 2 wrong usage. Nothing is lost, nothing is traced."""

from __future__ import annotations

import itertools
import os
import pwd
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

import bethink

pytest_plugins = ["cli_runner"]

DEPLOY = "We deploy from main, never from a branch"
SOURCE = str(Path(bethink.__file__).parent.parent)
NOBODY = 65534


def run(*argv, home, stdin=b"", **environment):
    """A real process, for what only a real process has: streams, signals, bytes in arguments."""
    known = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": SOURCE,
        "BETHINK_HOME": str(home),
        "BETHINK_EMBEDDING": "none",
        "LANG": "C.UTF-8",
    }
    return subprocess.run(
        [sys.executable, "-m", "bethink", *argv],
        input=stdin,
        capture_output=True,
        env={**known, **environment},
        cwd=home.parent,
    )


# Wrong usage


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["serch", "x"], "Did you mean 'search'?"),
        (["zzz"], "lists the commands"),
        (["search"], "QUERY"),
        (["search", "x", "--limt", "3"], "Did you mean '--limit'?"),
        (["search", "x", "-x"], "no option -x"),
        (["search", "x", "--limit", "0"], "'0' is not a whole number from 1"),
        (["search", "x", "--limit", "9" * 30], "is not a whole number"),
        (["search", "x", "--offset", "-1"], "'-1' is not a whole number from 0"),
        (["search", "x", "--limit"], "expected one argument"),
        (["search", "x", "--mode", "fuzzy"], "fuzzy"),
        (["search", "x", "--profile", "vibes"], "vibes"),
        (["search", "x", "--threshold", "high"], "'high' is not a number"),
        (["search", "x", "--kind", "guess"], "'guess' is not a kind of memory"),
        (["search", "x", "--since", "someday"], "'someday' is not a time"),
        (["search", "x", "--personal", "--all-projects"], "not allowed with"),
        (["search", "x", "--dual", "--format", "csv"], "cannot be shown as csv"),
        (["purge", "01a1dd89"], "Did you mean 'forget --purge'?"),
        (["add", "x", "--format", "csv"], "csv"),
        (["add", "x", "--kind", "guess"], "One of decision, "),
        (["add", "x", "--importance", "11"], "The importance 11 is outside 0 to 10."),
        (["add", "x", "--importance", "nan"], "'nan' is not a number"),
        (["add", "x", "--importance", "lots"], "'lots' is not a number"),
        (["add", "x", "--confidence", "1.5"], "The confidence 1.5 is outside 0 to 1."),
        (["add", "x", "--expires", "2001-01-01"], "in the past"),
        (["add", "x", "--expires", "soon"], "'soon' is not a time"),
        (["add", "x", "--metadata", "novalue"], "has no key"),
        (["add", "x", "--metadata", "{broken"], "is not a JSON object"),
        (["add", "x", "--metadata", '{"a": NaN}'], "is not a JSON object"),
        (["add", "x", "--file", "y"], "not both"),
        (["add", "--file", "."], "is a directory"),
        (["add", ""], "There is no text to remember."),
        (["add", " \n\t "], "There is no text to remember."),
        (["add", "-"], "There is no text to remember."),
        (["add", "<private>all of it</private>"], "Nothing is left to remember"),
        (["add", "x", "--container", "///"], "cannot name a container"),
        (["vote", "0", "many"], "'many' is not a number"),
        (["link", "a"], "two ids"),
        (["link", "a", "b", "c", "d"], "two ids"),
        (["config", "limt"], "Did you mean 'limit'?"),
        (["config", "limit", "many"], "expected a number"),
        (["config", "mode", "fuzzy"], "expected one of hybrid"),
        (["completion", "tcsh"], "tcsh"),
        (["model", "list", "x"], "takes no name"),
        (["bench", ".", "--mode", "fuzzy"], "'fuzzy' is not a mode"),
        (["--database"], "needs a command"),
        (["--nonsense"], "needs a command"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_was_wrong(cli, argv, said):
    message = cli.fails(*argv, code=2)
    assert said in message
    assert "\nhint: " in message


def test_without_a_command_the_help_goes_to_stderr(cli):
    result = cli()
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("usage: bethink COMMAND")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["get", "ffffffff"], "There is no memory whose id starts with 'ffffffff'."),
        (["get", "not-an-id!"], "is not the id of a memory"),
        (["update", "ffffffff", "--importance", "3"], "There is no memory"),
        (["forget", "ffffffff"], "There is no memory"),
        (["restore", "ffffffff"], "There is no memory"),
        (["vote", "ffffffff"], "There is no memory"),
        (["link", "ffffffff", "eeeeeeee"], "There is no memory"),
        (["history", "ffffffff"], "There is no memory"),
        (["add", "x", "--supersedes", "ffffffff"], "There is no memory"),
        (["add", "--file", "missing.txt"], "There is no file missing.txt."),
        (["list", "--project", "/no/such/directory"], "There is no directory /no/such/directory."),
        (["bench", "/no/such/directory"], "There is no directory"),
        (["bench", "."], "is not an evaluation set"),
        (["config", "--unset", "limit"], "'limit' is not set"),
        (["model", "pull", "no-such-model"], "There is no embedding model called 'no-such-model'."),
        (["model", "verify", "all-MiniLM-L6-v2"], "is not installed"),
        (["model", "pull", "all-MiniLM-L6-v2"], "may not be fetched"),
    ],
)
def test_what_is_not_there_ends_with_1(cli, argv, said):
    assert said in cli.fails(*argv, code=1)


def test_an_ambiguous_beginning_names_the_candidates(cli):
    one, _ = cli.add(DEPLOY), cli.add("Users sign in with a link")
    message = cli.fails("get", "0", code=1)
    assert "'0' fits 2 memories" in message
    assert one[:8] in message
    assert "more characters" in message


def test_a_terminal_without_text_is_not_waited_for(cli):
    assert 'bethink add "We deploy on Fridays"' in cli.fails("add", terminal=True, code=2)


def test_purge_and_reset_need_a_yes_where_nobody_can_be_asked(cli):
    id = cli.add(DEPLOY)
    assert "--yes" in cli("forget", id, "--purge").err
    assert cli("forget", id, "--purge").code == 2
    assert cli("reset").code == 2
    assert len(cli.json("list")) == 1


def test_an_update_must_change_something(cli):
    id = cli.add(DEPLOY)
    assert "Nothing to change was given." in cli.fails("update", id, code=2)
    assert "The importance 11 is outside" in cli.fails("update", id, "--importance", "11", code=2)
    assert "in the past" in cli.fails("update", id, "--expires", "2001-01-01", code=2)
    assert "no text" in cli.fails("update", id, "--content", "", code=2)
    assert "Nothing is left" in cli.fails("update", id, "--content", "<private>x</private>", code=2)
    assert "'likes' is not a relation" in cli.fails("link", id, "likes", id, code=2)
    assert "related to itself" in cli.fails("link", id, id, code=2)
    assert "outside -100 to 100" in cli.fails("vote", id, "1000", code=2)
    assert [version["action"] for version in cli.json("history", id)] == ["add"]


# Texts that are none


def test_five_megabytes_are_refused_with_the_limit(cli):
    message = cli.fails("add", stdin=b"word " * 1_000_000, code=2)
    assert "5,000,000 characters" in message.replace("4,999,999", "5,000,000")
    assert "200,000" in message


def test_more_than_any_setting_allows_is_not_even_read(cli):
    assert "20.0 MB" in cli.fails("add", stdin=b"x" * 20_000_002, code=2)


def test_nul_bytes_look_binary(cli):
    assert "looks binary: byte 3 is NUL" in cli.fails("add", stdin=b"abc\x00def", code=2)
    (cli.project / "image.png").write_bytes(b"\x89PNG\x00\x00")
    assert "image.png looks binary" in cli.fails("add", "--file", "image.png", code=2)


@pytest.mark.parametrize(
    ("raw", "at"), [(b"ok \xff", 3), (b"\xef\xbb\xbfok \xff", 6), (b"caf\xe9", 3)]
)
def test_invalid_utf8_on_stdin_names_the_byte(cli, raw, at):
    assert f"not valid UTF-8: byte {at} " in cli.fails("add", stdin=raw, code=2)
    assert cli.json("list") == []


def test_invalid_utf8_in_an_argument(cli, tmp_path):
    broken = b"caf\xe9".decode("utf-8", "surrogateescape")
    assert "text is not valid UTF-8: byte 3" in cli.fails("add", broken, code=2)
    assert "tag is not valid UTF-8" in cli.fails("add", "x", "--tag", broken, code=2)
    assert cli("search", broken).code == 0


# Queries: no input makes a search fail

QUERIES = [
    '"',
    '"unbalanced',
    "'",
    "(",
    ")",
    "((",
    "NEAR(",
    "NEAR(a b, 2",
    "*",
    "* *",
    ":",
    "content:",
    ":x",
    "^",
    "^x",
    "- x",
    "--",
    "AND",
    "OR NOT",
    "NOT",
    "x AND",
    "AND x",
    "a NOT",
    '""',
    '"" ""',
    "{a b}:",
    "a + b",
    "x*y*",
    "summary:*",
    ";",
    "'; DROP TABLE memories; --",
    "\\",
    "%",
    "_",
    "🦀",
    "東京",
    "e\u0301",
    "\ufffe",
    "x:y:z",
    "-x -y",
    "\u202e",
    "1",
    "''",
    "[]",
    "a" * 10_000,
    "a " * 5_000,
    '"' * 999,
    "(" * 999,
    "NOT " * 200,
]


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_no_query_makes_a_search_fail(cli, mode):
    cli.add(DEPLOY)
    for query in QUERIES:
        result = cli("search", "--mode", mode, "--json", "--", query)
        assert result.code == 0, (query, result)


@pytest.mark.parametrize(
    "words",
    [["search", ""], ["recall", " "], ["search", "-"], ["search", "", "--since", "7d"]],
    ids=" ".join,
)
def test_an_empty_question_is_wrong_usage(cli, words):
    cli.add(DEPLOY)
    told = cli.fails(*words, code=2)
    assert "The question is empty." in told and "hint: " in told


# Databases that cannot be used


def test_a_file_that_is_no_database(cli, tmp_path):
    (tmp_path / "notes.txt").write_text("not a database " * 100)
    for command in (["list"], ["add", "x"], ["search", "x"], ["stats"], ["reset", "--yes"]):
        assert "is not a Bethink database" in cli.fails(
            *command, "--database", tmp_path / "notes.txt", code=1
        )
    assert (tmp_path / "notes.txt").read_text() == "not a database " * 100


def test_a_database_of_another_program(cli, tmp_path):
    connection = apsw.Connection(str(tmp_path / "other.db"))
    connection.execute("CREATE TABLE things(a)")
    connection.close()
    assert "another program" in cli.fails("list", "--database", tmp_path / "other.db", code=1)


def test_a_database_of_a_newer_version(cli):
    cli.add(DEPLOY)
    connection = apsw.Connection(str(cli.home / "memory.db"))
    connection.pragma("user_version", 999)
    connection.close()
    message = cli.fails("list", code=1)
    assert "newer Bethink (schema 999" in message
    assert "pip install -U bethink" in message


def test_a_directory_and_a_file_in_the_way(cli, tmp_path):
    assert "is a directory" in cli.fails("list", "--database", tmp_path, code=1)
    (tmp_path / "file").write_text("")
    assert "cannot be created" in cli.fails(
        "add", DEPLOY, "--database", tmp_path / "file" / "memory.db", code=1
    )
    assert "cannot be created" in cli.fails(
        "add", DEPLOY, "--database", "/proc/nowhere/memory.db", code=1
    )


READING = (
    ["search", "deploy"],
    ["recall", "deploy"],
    ["list"],
    ["export"],
    ["stats"],
    ["topics"],
    ["reset", "--yes"],
    ["reindex"],
    ["handoff", "show"],
    ["duplicates"],
    ["consolidate"],
    ["get", "01a1dd89"],
    ["vote", "01a1dd89"],
    ["forget", "01a1dd89"],
    ["promote", "--suggest"],
)


def test_what_reads_makes_no_database_that_was_named_and_is_not_there(cli, tmp_path, monkeypatch):
    typed = tmp_path / "typo" / "x.db"
    for command in (
        *READING,
        ["backup", tmp_path / "copy.db"],
        ["migrate", "--to", tmp_path / "copy.db"],
    ):
        told = cli.fails(*command, "--database", typed, code=1)
        assert f"There is no database at {typed}." in told and "--database" in told
    doctor = cli("doctor", "--database", typed)
    assert doctor.code == 1 and f"There is no database at {typed}." in doctor.out
    monkeypatch.setenv("BETHINK_DATABASE", str(typed))
    assert "$BETHINK_DATABASE" in cli.fails("list", code=1)
    assert not typed.parent.exists() and not (tmp_path / "copy.db").exists()
    cli.ok("add", DEPLOY)
    assert DEPLOY in cli.ok("list", "--database", typed)


def test_the_usual_database_needs_no_making(cli):
    assert cli("list").code == 0 and cli("doctor").code == 0


def test_a_database_that_is_elsewhere_by_name(cli):
    assert "PostgreSQL server" in cli.fails(
        "list", "--database", "postgresql://127.0.0.1:1/x", code=1
    )


def test_an_address_of_an_unknown_kind_is_no_path(cli):
    assert "by mysql://" in cli.fails("list", "--database", "mysql://anna:secret@db/x", code=1)
    told = cli.fails("migrate", "--to", "nowhere://x", code=1)
    assert "by nowhere://" in told and not (cli.project / "nowhere:").exists()


@contextmanager
def powerless(*paths):
    """As somebody who may not override permissions. Root becomes nobody for a while; the paths go with them."""
    if os.geteuid() != 0:
        yield
        return
    for path in paths:
        os.chown(path, NOBODY, NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        for path in paths:
            os.chown(path, 0, 0)


@pytest.fixture
def shared_folder(cli, monkeypatch):
    """A folder that another user can reach too: pytest's own are for the owner alone."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setenv("BETHINK_HOME", folder)
        monkeypatch.chdir(folder)
        yield Path(folder)
        monkeypatch.chdir("/")


def test_a_read_only_database_is_shown_but_not_changed(cli, shared_folder):
    database = shared_folder / "memory.db"
    id = cli.json("add", DEPLOY, "--database", database)["id"]
    cli.ok("get", id, "--database", database)
    database.chmod(0o400)
    with powerless(shared_folder, database):
        shown = cli("get", id, "--database", database)
        refused = cli("add", "One more", "--database", database)
        listed = cli("list", "--database", database)
    assert shown.code == 0, shown
    assert DEPLOY in shown.out
    assert "warning: This use is not counted" in shown.err
    assert refused.code == 1
    assert "read-only" in refused.err
    assert listed.code == 0
    assert DEPLOY in listed.out


def test_a_folder_that_cannot_be_written(cli, shared_folder):
    shared_folder.chmod(0o500)
    with powerless(shared_folder):
        message = cli.fails("add", "x", "--database", shared_folder / "memory.db", code=1)
    shared_folder.chmod(0o700)
    assert "cannot be created: Permission denied" in message
    assert "hint: " in message


def test_a_damaged_page_is_told_and_found_by_the_doctor(cli):
    for number in range(40):
        cli.add(f"Statement {number} " + chr(97 + number % 26) * 300, "--no-dedup")
    database = cli.home / "memory.db"
    raw = bytearray(database.read_bytes())
    raw[4096 * 3 :] = b"\xa5" * (len(raw) - 4096 * 3)
    database.write_bytes(raw)
    result = cli("doctor")
    assert result.code == 1
    assert "PROBLEM" in result.out
    assert "Traceback" not in result.err + result.out
    assert "unexpected" not in result.err
    cli.fails("search", "statement", "--mode", "keyword", code=1)
    cli.fails("add", "one more", code=1)


# Settings


def test_a_bad_value_in_the_environment_warns_and_goes_on(cli):
    cli.monkeypatch.setenv("BETHINK_LIMIT", "many")
    result = cli("list")
    assert result.code == 0
    assert "warning: BETHINK_LIMIT='many' is ignored" in result.err
    assert "BETHINK_LIMIT" not in cli("list", "--quiet").err


def test_a_bad_settings_file_is_named(cli):
    cli.home.mkdir()
    (cli.home / "config.toml").write_text("limt = 3\n")
    message = cli.fails("list", code=2)
    assert "Unknown setting 'limt'" in message
    assert "Did you mean 'limit'?" in message


# The outermost boundary


def test_the_unexpected_is_one_line_and_a_way_to_see_more(cli, monkeypatch):
    def explode(*_, **__):
        raise RuntimeError("boom")

    monkeypatch.setattr("bethink.api.Bethink.search", explode)
    result = cli("search", "x")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: unexpected RuntimeError: boom\nhint: Set BETHINK_DEBUG=1")
    monkeypatch.setenv("BETHINK_DEBUG", "1")
    assert "Traceback" in cli("search", "x").err


def test_an_interrupt_ends_with_130(cli, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("bethink.api.Bethink.search", interrupt)
    result = cli("search", "x")
    assert (result.code, result.err) == (130, "stopped\n")


def test_a_reader_that_leaves_early_is_no_error(tmp_path):
    run("add", DEPLOY, home=tmp_path / "home")
    command = f'{sys.executable} -m bethink export --jsonl | true; echo "${{PIPESTATUS[0]}}"'
    environment = {
        **os.environ,
        "PYTHONPATH": SOURCE,
        "BETHINK_HOME": str(tmp_path / "home"),
        "BETHINK_EMBEDDING": "none",
    }
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment)
    assert done.stdout == "0\n"
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_told(tmp_path):
    environment = {
        **os.environ,
        "PYTHONPATH": SOURCE,
        "BETHINK_HOME": str(tmp_path),
        "BETHINK_EMBEDDING": "none",
    }
    (tmp_path / ".bethink").mkdir()
    commands = (
        ["stats"],
        ["add", DEPLOY],
        ["add", "The key is AKIAIOSFODNN7EXAMPLE, for staging"],
    )  # the last with a hint
    for command, unbuffered in itertools.product(commands, ("", "1")):
        environment["PYTHONUNBUFFERED"] = unbuffered
        with Path("/dev/full").open("w") as full:
            words = [sys.executable, "-m", "bethink", *command]
            done = subprocess.run(
                words, stdout=full, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
            )
        said = "error: The output could not be written: No space left on device. What the command changed stays changed.\n"
        assert (done.returncode, done.stderr) == (1, said)


def test_an_empty_home_is_none_and_not_the_root_of_all(tmp_path):
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "HOME": ""}
    words = [sys.executable, "-m", "bethink", "config", "--path"]
    shown = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert shown.returncode == 0 and not shown.stdout.startswith("/.config")
    assert shown.stdout.startswith(pwd.getpwuid(os.getuid()).pw_dir)


def test_nothing_is_imported_before_the_command_can_be_stopped():
    code = "import os, sys; before = set(sys.modules); import bethink.surface.cli.main; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )
    assert set(loaded.stdout.split()) <= {
        "__future__",
        "gc",  # built in
        "bethink",
        "bethink.surface",
        "bethink.surface.cli",
        "bethink.surface.cli.main",
    }


def test_a_real_process_speaks_on_the_right_streams(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / ".bethink").mkdir()
    added = run("add", stdin="größer 東京".encode(), home=home)
    assert added.returncode == 0, added
    assert added.stderr == b""
    missing = run("get", "ffffffff", home=home)
    assert (missing.returncode, missing.stdout) == (1, b"")
    assert missing.stderr.startswith(b"error: ")
    shown = run("list", home=home, LANG="C", PYTHONIOENCODING="ascii")
    assert shown.returncode == 0, shown
    assert b"gr\\xf6\\xdfer" in shown.stdout
