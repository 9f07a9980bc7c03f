"""What goes wrong ends in a sentence, a hint and an exit code: 1 could not be done, 2 wrong usage. Nothing is lost, nothing is traced."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        pytest.param(["serch", "x"], "Did you mean 'search'?", id="serch"),
        pytest.param(["doen", "x"], "Did you mean 'done'?", id="doen"),
        pytest.param(["zzz"], "lists the commands", id="zzz"),
        pytest.param(["search"], "QUERY", id="search-QUERY"),
        pytest.param(["search", "x", "--limt", "3"], "Did you mean '--limit'?", id="search-x-limt"),
        pytest.param(["search", "x", "-x"], "option -x", id="search-x-x"),
        pytest.param(
            ["search", "x", "--limit", "0"],
            "'--limit' is 0, which is not a whole number of at least 1",
            id="search-x-limit-0",
        ),
        pytest.param(
            ["search", "x", "--limit", "999999999999999999999999999999"],
            "is not a whole number",
            id="search-x-limit-999999999999999999999999999999",
        ),
        pytest.param(
            ["search", "x", "--offset", "-1"],
            "'--offset' is -1, which is not a whole number of at least 0",
            id="search-x-offset",
        ),
        pytest.param(
            ["search", "x", "--limit"],
            "expected one argument",
            id="search-x-limit-expected-one-argument",
        ),
        pytest.param(["search", "x", "--mode", "fuzzy"], "fuzzy", id="search-x-mode-fuzzy"),
        pytest.param(["search", "x", "--profile", "vibes"], "vibes", id="search-x-profile"),
        pytest.param(
            ["search", "x", "--threshold", "high"], "which is not a number", id="search-x-threshold"
        ),
        pytest.param(
            ["search", "x", "--kind", "guess"],
            "'guess' is not a kind of memory",
            id="search-x-kind",
        ),
        pytest.param(
            ["search", "x", "--since", "someday"], "'someday' is not a time", id="search-x-since"
        ),
        pytest.param(
            ["search", "x", "--personal", "--all-projects"],
            "not allowed with",
            id="search-x-personal",
        ),
        pytest.param(
            ["search", "x", "--dual", "--format", "csv"], "not available as csv", id="search-x-dual"
        ),
        pytest.param(["add", "x", "--format", "csv"], "csv", id="add-x-format"),
        pytest.param(["add", "x", "--kind", "guess"], "One of decision, ", id="add-x-kind-guess"),
        pytest.param(
            ["add", "x", "--importance", "11"],
            "'--importance' is 11, which is not a number from 0 to 10.",
            id="add-x-importance-11",
        ),
        pytest.param(
            ["add", "x", "--importance", "nan"], "which is not a number", id="add-x-importance-nan"
        ),
        pytest.param(
            ["add", "x", "--importance", "lots"],
            "which is not a number",
            id="add-x-importance-lots",
        ),
        pytest.param(
            ["add", "x", "--confidence", "1.5"],
            "'--confidence' is 1.5, which is not a number from 0 to 1.",
            id="add-x-confidence",
        ),
        pytest.param(
            ["add", "x", "--expires", "2001-01-01"], "in the past", id="add-x-expires-2001-01-01"
        ),
        pytest.param(
            ["add", "x", "--expires", "soon"], "'soon' is not a time", id="add-x-expires-soon"
        ),
        pytest.param(
            ["add", "x", "--metadata", "novalue"], "has no key", id="add-x-metadata-novalue"
        ),
        pytest.param(
            ["add", "x", "--metadata", "{broken"], "cannot be read", id="add-x-metadata-broken"
        ),
        pytest.param(
            ["add", "x", "--metadata", '{"a": NaN}'], "cannot be read", id="add-x-metadata-nan"
        ),
        pytest.param(["add", "x", "--file", "y"], "not both", id="add-x-file"),
        pytest.param(["add", ""], "There is no text to remember.", id="add-empty"),
        pytest.param(["add", " \n\t "], "There is no text to remember.", id="add-blank"),
        pytest.param(["add", "-"], "There is no text to remember.", id="add-hyphen-minus"),
        pytest.param(
            ["add", "<private>all of it</private>"],
            "Nothing is left to remember",
            id="add-private-all-private",
        ),
        pytest.param(
            ["add", "x", "--container", "///"], "cannot name a container", id="add-x-container"
        ),
        pytest.param(["vote", "0", "many"], "which is not a number", id="vote-0"),
        pytest.param(["link", "a"], "TYPE", id="link-a-TYPE"),
        pytest.param(["link", "a", "b", "c", "d"], "Unrecognized", id="link-a-b"),
        pytest.param(["config", "limt"], "Did you mean 'limit'?", id="config-limt"),
        pytest.param(["config", "limit", "many"], "expected a whole number", id="config-limit"),
        pytest.param(["config", "mode", "fuzzy"], "expected one of hybrid", id="config-mode"),
        pytest.param(["completion", "tcsh"], "tcsh", id="completion"),
        pytest.param(
            ["bench", ".", "--mode", "fuzzy"], "'fuzzy' is not a valid --mode", id="bench"
        ),
        pytest.param(["--database"], "is not a command", id="database"),
        pytest.param(["--nonsense"], "is not a command", id="nonsense"),
        pytest.param(["help", "serch"], "Did you mean 'search'?", id="help"),
        pytest.param(
            ["search", "x", "-limit", "3"], "Did you mean '--limit'?", id="search-x-limit-3"
        ),
        pytest.param(
            ["vote", "x", "--down"],
            "Unknown option --down.\nhint: `bethink vote --help`",
            id="vote-x",
        ),
        pytest.param(
            ["add", "x", "--kind", "decison"], "Did you mean 'decision'?", id="add-x-kind-decison"
        ),
        pytest.param(
            ["list", "--kind", "gotchas,questoin"], "Did you mean 'question'?", id="list-kind"
        ),
        pytest.param(["list", "--order", "creatd"], "Did you mean 'created'?", id="list-order"),
        pytest.param(
            ["search", "x", "--mode", "hybird"], "Did you mean 'hybrid'?", id="search-x-mode-hybird"
        ),
        pytest.param(["handoff", "shwo"], "Did you mean 'show'?", id="handoff"),
        pytest.param(
            ["backfill", "--all", "--host", "cladue"], "Did you mean 'claude'?", id="backfill-all"
        ),
        pytest.param(["search", ""], "The question is empty.", id="search-empty-question-empty"),
        pytest.param(["recall", " "], "The question is empty.", id="recall"),
        pytest.param(["search", "-"], "The question is empty.", id="search-hyphen-minus"),
        pytest.param(
            ["search", "", "--since", "7d"], "The question is empty.", id="search-empty-since"
        ),
        pytest.param(
            ["backfill", "/etc/passwd"],
            "or import a document with `bethink import`",
            id="backfill-etc/passwd-take-document-bethink-import",
        ),
        pytest.param(
            ["backfill", "/etc/passwd", "--host", "cladue"],
            "Did you mean 'claude'?",
            id="backfill-etc/passwd-host",
        ),
    ],
)
def test_wrong_usage_exits_with_2_naming_the_mistake(cli, argv, said):
    message = cli.fails(*argv, code=2)
    assert said in message and "\nhint: " in message


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        pytest.param(
            ["get", "ffffffff"],
            "There is no memory whose id starts with 'ffffffff'.",
            id="get-ffffffff",
        ),
        pytest.param(["get", "not-an-id!"], "is not the id of a memory", id="get-not-id"),
        pytest.param(
            ["update", "ffffffff", "--importance", "3"], "There is no memory", id="update"
        ),
        pytest.param(["forget", "ffffffff"], "There is no memory", id="forget"),
        pytest.param(["restore", "ffffffff"], "There is no memory", id="restore"),
        pytest.param(["vote", "ffffffff"], "There is no memory", id="vote"),
        pytest.param(["link", "ffffffff", "eeeeeeee"], "There is no memory", id="link"),
        pytest.param(["history", "ffffffff"], "There is no memory", id="history"),
        pytest.param(["add", "x", "--supersedes", "ffffffff"], "There is no memory", id="add-x"),
        pytest.param(
            ["add", "--file", "missing.txt"],
            "No such file or directory: missing.txt",
            id="add-file-missing.txt",
        ),
        pytest.param(["add", "--file", "."], "Is a directory", id="add-file-full-stop"),
        pytest.param(
            ["list", "--project", "/no/such/directory"],
            "There is no directory /no/such/directory.",
            id="list",
        ),
        pytest.param(
            ["bench", "/no/such/directory"], "There is no directory", id="bench-no/such/directory"
        ),
        pytest.param(["bench", "."], "is not an evaluation set", id="bench-full-stop"),
        pytest.param(
            ["model", "pull", "no-such-model"],
            "There is no embedding model called 'no-such-model'.",
            id="model-pull-no-such-model",
        ),
        pytest.param(
            ["model", "pull", "all-MiniLM-L6-v2"],
            "may not be fetched",
            id="model-pull-all-minilm-L6-v2",
        ),
        pytest.param(
            ["config", "embedding", "snowflake-artic-embed-s"],
            "Did you mean 'snowflake-arctic-embed-s'?",
            id="config",
        ),
    ],
)
def test_what_is_not_there_ends_with_1(cli, argv, said):
    assert said in cli.fails(*argv, code=1)


AN_UPDATE_MUST_CHANGE_SOMETHING = [
    ("update {id}", "Nothing to change."),
    ("update {id} --importance 11", "'--importance' is 11, which is not"),
    ("update {id} --expires 2001-01-01", "in the past"),
    ("update {id} --content=", "no text"),
    ("update {id} --content <private>x</private>", "Nothing is left"),
    ("link {id} likes {id}", "'likes' is not a relation"),
    ("link {id} {id}", "related to itself"),
    ("vote {id} 1000", "not a number from -100 to 100"),
    ("forget {id} --purge", "--yes"),
    ("reset", "--yes"),
]


def test_a_refused_change_leaves_the_memory_as_it_was(cli):
    id = cli.add(DEPLOY)
    assert [
        argv
        for argv, said in AN_UPDATE_MUST_CHANGE_SOMETHING
        for refused in [cli(*argv.format(id=id).split())]
        if refused.code != 2 or said not in refused.err
    ] == []
    assert [version["action"] for version in cli.json("history", id)] == ["add"]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        pytest.param(b"word " * 1_000_000, "200,000", id="word"),
        pytest.param(b"x" * 20_000_002, "20.0 MB", id="x"),
        pytest.param(b"abc\x00def", "byte 3 is NUL", id="abc-def"),
        pytest.param(b"ok \xff", "byte 0xff in position 3", id="ok"),
        pytest.param(b"\xef\xbb\xbfcaf\xe9 au lait", "byte 0xe9 in position", id="caf-au-lait"),
    ],
)
def test_an_unusable_text_is_refused_with_the_reason(cli, raw, said):
    assert said in cli.fails("add", stdin=raw, code=2)
    (cli.project / "file").write_bytes(raw)
    assert said in cli.fails("add", "--file", "file", code=2)


def test_a_text_that_is_not_utf8_is_refused(cli):
    broken = b"caf\xe9".decode("utf-8", "surrogateescape")
    assert "'content' is not valid UTF-8" in cli.fails("add", broken, code=2)
    assert "'tags' is not valid UTF-8" in cli.fails("add", "x", "--tag", broken, code=2)
    assert cli.json("list") == []


def test_a_question_that_is_not_utf8_is_searched(cli):
    broken = b"caf\xe9".decode("utf-8", "surrogateescape")
    assert cli("search", broken).code == 0


def test_a_database_is_created_where_the_option_says(cli, tmp_path):
    cli.ok("add", DEPLOY, "--database", tmp_path / "made.db")


@pytest.mark.parametrize(
    ("command", "database", "said"),
    [
        pytest.param("list", "", "is a directory", id="list-empty"),
        pytest.param(
            "add Something",
            "file/memory.db",
            "cannot be created",
            id="add-something-file/memory.db",
        ),
        pytest.param(
            "add Something",
            "/proc/nowhere/memory.db",
            "cannot be created",
            id="add-something-proc/nowhere/memory.db",
        ),
        pytest.param(
            "list",
            "postgresql://127.0.0.1:1/x",
            "PostgreSQL server",
            id="list-postgresql-127.0.0.1-1/x",
        ),
        pytest.param(
            "list",
            "mysql://anna:secret@db/x",
            "Unsupported database URL: mysql://",
            id="list-mysql-anna-secret-db/x",
        ),
        pytest.param(
            "migrate --to nowhere://x",
            "made.db",
            "Unsupported database URL: nowhere://",
            id="migrate-nowhere-x",
        ),
    ],
)
def test_an_unusable_database_path_is_refused(cli, tmp_path, command, database, said):
    (tmp_path / "file").write_text("")
    cli.ok("add", DEPLOY, "--database", tmp_path / "made.db")
    place = database if "://" in database else tmp_path / database
    assert said in cli.fails(*command.split(), "--database", place, code=1)


def test_a_refused_database_url_creates_no_folder(cli):
    cli.ok("add", DEPLOY)
    cli.fails("migrate", "--to", "nowhere://x", code=1)
    assert not (cli.project / "nowhere:").exists()


READING = """
search deploy|recall deploy|list|export|stats|topics|reset --yes|reindex|handoff show|duplicates|consolidate|get 01a1dd89
vote 01a1dd89|forget 01a1dd89|promote --suggest|backup {copy}|migrate --to {copy}
"""


def test_a_reading_command_creates_no_database(cli, tmp_path):
    typed = tmp_path / "typo" / "x.db"
    assert [
        command
        for command in re.split(r"[|\n]", READING.strip().format(copy=tmp_path / "copy.db"))
        for told in [cli.fails(*command.split(), "--database", typed, code=1)]
        if f"There is no database at {typed}." not in told or "--database" not in told
    ] == []
    assert f"There is no database at {typed}." in cli("doctor", "--database", typed).out
    assert not typed.parent.exists() and not (tmp_path / "copy.db").exists()


def test_a_missing_database_of_the_environment_is_named(cli, tmp_path, monkeypatch):
    typed = tmp_path / "typo" / "x.db"
    monkeypatch.setenv("BETHINK_DATABASE", str(typed))
    assert "$BETHINK_DATABASE" in cli.fails("list", code=1)


def test_a_writing_command_creates_the_named_database(cli, tmp_path, monkeypatch):
    typed = tmp_path / "typo" / "x.db"
    monkeypatch.setenv("BETHINK_DATABASE", str(typed))
    cli.ok("add", DEPLOY)
    assert DEPLOY in cli.ok("list", "--database", typed)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        pytest.param(StoreReadOnly, DEPLOY, id="storereadonly"),
        pytest.param(StoreBusy, DEPLOY, id="storebusy"),
        pytest.param(StoreCorrupt, "Not now.", id="storecorrupt"),
    ],
)
def test_a_failure_to_count_a_use_hides_no_memory(cli, monkeypatch, kind, told):
    id = cli.add(DEPLOY)
    monkeypatch.setattr("bethink.api.Bethink.touch", fail_with(kind("Not now.")))
    found = cli("get", id)
    assert told in found.out + found.err and found.code == (kind is StoreCorrupt)


def test_an_unexpected_error_is_one_line(cli, monkeypatch):
    monkeypatch.setattr("bethink.api.Bethink.search", fail_with(RuntimeError("boom")))
    result = cli("search", "x")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: unexpected RuntimeError: boom\nhint: Set BETHINK_DEBUG=1")


def test_an_unexpected_error_shows_its_traceback_for_debugging(cli, monkeypatch):
    monkeypatch.setattr("bethink.api.Bethink.search", fail_with(RuntimeError("boom")))
    monkeypatch.setenv("BETHINK_DEBUG", "1")
    assert "Traceback" in cli("search", "x").err


def test_an_interrupt_ends_with_130(cli, monkeypatch):
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


KEY = "The key is AKIAIOSFODNN7EXAMPLE, for staging"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "unbuffered", [pytest.param("", id="buffered"), pytest.param("1", id="unbuffered")]
)
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["stats"], id="reading"),
        pytest.param(["add", DEPLOY], id="writing"),
        pytest.param(["add", KEY], id="writing-with-a-hint"),
    ],
)
def test_a_full_disk_behind_stdout_is_reported(tmp_path, command, unbuffered):
    (tmp_path / ".bethink").mkdir()
    said = b"error: The output could not be written: No space left on device. What the command changed stays changed.\n"
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
