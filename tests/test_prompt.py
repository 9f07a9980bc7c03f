"""At the prompt: an editor, the source of a memory, questions that a terminal is asked, colour, errors as JSON. Through `main(argv)`,
and where a terminal matters in a process at a pseudo-terminal."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from case_tables import cases
from cli_runner import run_at_terminal

pytest_plugins = ["cli_runner"]

DEPLOY = "We deploy from main, never from a branch"


@pytest.fixture
def store_kind():
    return "sqlite"


def make_editor(folder, body):
    """An editor of our own: what it was started with goes to `started.json`, and `body` changes the `file`."""
    script = folder / "editor.py"
    script.write_text(
        "import json, pathlib, sys\n"
        f"pathlib.Path({str(folder / 'started.json')!r}).write_text(json.dumps(sys.argv[1:]))\n"
        f"file = pathlib.Path(sys.argv[-1])\n{body}\n"
    )
    return f"{sys.executable} {script}"


def kept_file(message):
    return Path(re.search(r"Your text is kept in (\S+)\.(?=\s)", message + " ")[1])


# edit


def test_what_is_edited_is_a_new_version(cli, tmp_path):
    id = cli.add(DEPLOY, "--importance", "8")
    cli.monkeypatch.setenv("EDITOR", "/no/such/editor")
    body = "file.write_text('We deploy from main, after two reviews\\r\\n')"
    cli.monkeypatch.setenv("VISUAL", make_editor(tmp_path, body))
    assert cli.ok("edit", id).startswith("updated ")
    [now] = cli.json("get", id)
    assert (now["content"], now["importance"]) == ("We deploy from main, after two reviews", 8)
    assert len(cli.json("history", id)) == 2 and DEPLOY in cli.ok("restore", id, "--to", "1")
    [draft] = json.loads((tmp_path / "started.json").read_text())
    assert not Path(draft).exists() and draft.endswith(".md")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("file.write_text('<private>all</private>')", "Nothing is left to remember"),
        ("file.write_bytes(b'caf\\xe9')", "is no text in UTF-8"),
        ("file.write_text('x'); sys.exit(3)", "ended with 3"),
    ],
)
def test_a_text_that_is_not_taken_is_kept_in_a_file(cli, tmp_path, body, said):
    id = cli.add(DEPLOY)
    cli.monkeypatch.setenv("EDITOR", make_editor(tmp_path, body))
    result = cli("edit", id)
    assert result.code in (1, 2) and said in result.err
    draft = kept_file(result.err)
    assert draft.read_bytes() and draft.parent.stat().st_mode & 0o77 == 0
    assert cli.json("get", id)[0]["content"] == DEPLOY


def test_what_somebody_else_changed_meanwhile_is_not_overwritten(cli, tmp_path):
    id = cli.add(DEPLOY)
    other = [sys.executable, "-m", "bethink", "update", id, "--content", "We deploy on Fridays"]
    body = f"import subprocess; subprocess.run({other!r}, check=True); file.write_text('Mine')"
    cli.monkeypatch.setenv("EDITOR", make_editor(tmp_path, body))
    assert kept_file(cli("edit", id).err).read_text() == "Mine"
    assert cli.json("get", id)[0]["content"] == "We deploy on Fridays"


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "There is no editor."),
        ({"EDITOR": "/no/such/editor"}, "cannot be started"),
        ({"EDITOR": "false"}, "ended with 1. Nothing was changed."),
        ({"EDITOR": "vi 'unclosed"}, "cannot be read"),
        ({"EDITOR": "vi", "CLAUDECODE": "1"}, "bethink update"),
    ],
)
def test_without_an_editor_it_is_said_how_to_name_one(cli, tmp_path, environment, said):
    id = cli.add(DEPLOY)
    for name, value in environment.items():
        cli.monkeypatch.setenv(name, value)
    cli.monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = cli("edit", id)
    assert result.code in (1, 2) and said in result.err and "Traceback" not in result.err
    assert not list(tmp_path.glob("bethink-edit-*"))


# open


@pytest.fixture
def passage(cli):
    (cli.project / "docs").mkdir()
    (cli.project / "docs/auth.md").write_text(
        "# Auth\n\nTokens live in Redis.\n\n# Login\n\nBy a magic link.\n"
    )
    cli.ok("index", "docs")
    return next(one for one in cli.json("list") if "Tokens" in one["content"])


@pytest.mark.parametrize(("program", "given"), cases("prompt-editors"))
def test_a_source_opens_at_its_line_in_the_way_of_the_editor(
    cli, passage, tmp_path, program, given
):
    place = {"file": cli.project / "docs/auth.md", "line": passage["lines"][0]}
    started = tmp_path / "started"
    editor = tmp_path / program
    editor.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {started}\n')
    editor.chmod(0o755)
    code, shown = run_at_terminal(cli, "open", passage["id"], EDITOR=str(editor))
    assert code == 0, shown
    assert started.read_text().split() == [part.format(**place) for part in given]


def test_without_a_terminal_the_place_is_printed(cli, passage):
    cli.monkeypatch.setenv("EDITOR", "/no/such/editor")
    file, line = str(cli.project / "docs/auth.md"), passage["lines"][0]
    assert cli.ok("open", passage["id"]) == f"{file}:{line}\n"
    place = {"id": passage["id"], "path": file, "line": line, "url": None}
    assert cli.json("open", passage["id"]) == place


def test_a_page_opens_in_the_browser(cli, tmp_path):
    address = "https://example.org/adr/7"
    id = cli.add(DEPLOY, "--source", address)
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/address\n')
    browser.chmod(0o755)
    code, shown = run_at_terminal(cli, "open", id, BROWSER=f"{browser} %s")
    assert (code, (tmp_path / "address").read_text().strip()) == (0, address), shown
    assert cli.ok("open", id) == f"{address}\n"


def test_what_has_no_source_says_so(cli, passage):
    told = cli.add(DEPLOY)
    assert "There is no file to open" in cli.fails("open", told, code=1)
    (cli.project / "docs/auth.md").unlink()
    assert "--source" in cli.fails("open", passage["id"], code=1)


# What a terminal is asked


def test_nearly_the_same_is_named_with_how_much_it_is_alike(cli):
    id = cli.add("Users sign in with a magic link that is valid for 15 minutes")
    again = cli("add", "The users sign in with a magic link that is valid for 15 minutes")
    assert re.match(rf"much like {id[:8]}\S* \(0\.9\d\): Users sign in", again.out), again
    assert "Nothing was added." in again.err and f"bethink edit {id[:8]}" in again.err
    assert len(cli.json("list")) == 1


UNSURE = """
import sys
from bethink import judge
from bethink.judge import KINDS, Judgement, StatementReading
from bethink.surface.cli.main import main

class Judge:
    def relate(self, pairs):
        return [Judgement("replaces", 0.5, {"replaces": 0.5}) for _ in pairs]
    def read(self, pairs):
        return [StatementReading(dict.fromkeys(KINDS, 0.0), 1.0, 0.0) for _ in pairs]

judge.load = lambda config: Judge()
sys.exit(main())
"""


@pytest.mark.parametrize(("answer", "held"), [("y", ["45"]), ("", ["45", "30"])])
def test_what_may_replace_is_asked_on_a_terminal(cli, answer, held):
    old = cli.add("The session timeout is 30 minutes", "--kind", "fact")
    new = ("add", "The session timeout is 45 minutes", "--kind", "fact")
    typed = [(f"this may replace {old[:8]}", f"{answer}\n")]
    code, shown = run_at_terminal(cli, *new, typed=typed, program=("-c", UNSURE))
    asked, _, done = shown.partition("[y/N]")
    assert code == 0 and "this may replace" in asked and "timeout is 30 minutes" in asked, shown
    assert ("\n  replaces " in done, "\n  may replace " in done) == (answer == "y", answer == "")
    assert [one["content"].split()[4] for one in cli.json("list")] == held


# Looks, and errors for programs


@pytest.mark.parametrize(("argv", "type", "code"), cases("prompt-errors"))
def test_an_error_is_one_line_of_json_where_json_was_asked_for(cli, argv, type, code):
    cli.add(DEPLOY)
    result = cli(*argv)
    assert (result.code, result.out) == (code, "")
    *_, last = result.err.splitlines()
    error = json.loads(last)["error"]
    assert set(error) == {"type", "message", "hint", "exit_code"}
    assert (error["type"], error["exit_code"]) == (type, code) and error["message"].endswith(".")
    text = cli(*(word for word in argv if not word.endswith("json") and word != "--format"))
    assert f"error: {error['message']}" in text.err or argv == ["--json"]


FUTURE = """
from bethink.surface.cli.main import main
from bethink.text import when

class Later(real):
    @classmethod
    def now(cls, tz=None):
        return real.now(tz) + d.timedelta(days=3)

console.datetime = Later
sys.exit(main())
"""

# Narrow terminals


@pytest.fixture
def full(cli):
    """A project in which every listing has something to show."""
    first = cli.add("The orders service stores its data in MySQL, in the orders schema")
    login = "Users sign in with a magic link that is valid for 15 minutes"
    cli.add(login, "--kind", "decision", "--tag", "auth,login,web")
    second = cli.add("The orders service stores its data in PostgreSQL", "--supersedes", first)
    cli.add("Should the invoice PDF be made on the server?")
    summary = "The cache is moved, the tests are not"
    cli.ok("handoff", "save", "--summary", summary, "--next", "delete Redis")
    return cli, second


@pytest.mark.parametrize("columns", [40, 60])
@pytest.mark.parametrize(
    "command",
    """
    list|list --include-superseded|search orders service|search orders service --explain|get {id}|history {id}|handoff|stats
    recall which database does the orders service use|today|why orders|config|model list|sessions|search --help
    """.strip()
    .replace("\n", "|")
    .split("|"),
)
def test_a_narrow_terminal_breaks_no_line_and_no_table(full, command, columns):
    cli, id = full
    cli.monkeypatch.setenv("COLUMNS", str(columns))
    shown = cli.ok(*command.format(id=id).split())
    for line in shown.partition("xamples:")[0].splitlines():
        longest = max(map(len, line.split()), default=0)  # a path cannot be broken
        assert len(line) <= columns or longest > columns - 16, line


def test_what_is_asked_about_on_a_terminal_carries_no_marks_of_colour(cli):
    for text in ("We ship on Mondays", "We ship on Mondays, always"):
        cli.add(text, "--no-dedup", "--expires", "1d")
    cli.monkeypatch.setenv("NO_COLOR", "")
    typed = [("[y/N]", "n\n")]
    later = "import sys, datetime as d; from bethink import api; from bethink.surface.cli import console; real = d.datetime\n"
    program = ("-c", later + FUTURE)
    _, shown = run_at_terminal(cli, "consolidate", typed=typed, program=program, NO_COLOR="")
    assert "We ship on Mondays" in shown and "\ufffd" not in shown
