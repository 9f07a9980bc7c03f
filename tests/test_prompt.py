"""At the prompt: an editor, the source of a memory, questions that a terminal is asked, colour, errors as JSON. Through `main(argv)`,
and where a terminal matters in a process at a pseudo-terminal."""

import json
import re
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cli_runner import run_at_terminal

from bethink.app.cli import console

STORE = "sqlite"
DEPLOY = "We deploy from main, never from a branch"
TESTS = {"PYTHONPATH": str(Path(__file__).parent)}


def make_program(path, script):
    path.write_text(script)
    path.chmod(0o755)
    return str(path)


def make_editor(folder, body):
    """An editor of our own: what it was started with goes to `started.json`, and `body` changes the `file`."""
    started = str(folder / "started.json")
    lines = [
        f"#!{sys.executable}\nimport json, pathlib, sys",
        f"pathlib.Path({started!r}).write_text(json.dumps(sys.argv[1:]))",
        f"file = pathlib.Path(sys.argv[-1])\n{body}\n",
    ]
    return make_program(folder / "editor.py", "\n".join(lines))


def kept_file(message):
    return Path(re.search(r"Your text is kept in (\S+)\.(?=\s)", message + " ")[1])


def test_an_edited_memory_is_a_new_version(cli, tmp_path):
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


def test_an_edit_of_a_memory_that_changed_is_kept_in_a_file(cli, tmp_path):
    id = cli.add(DEPLOY, "--importance", "8")
    other = [sys.executable, "-m", "bethink", "update", id, "--content", "We deploy on Fridays"]
    body = f"import subprocess; subprocess.run({other!r}, check=True); file.write_text('Mine')"
    cli.monkeypatch.setenv("EDITOR", make_editor(tmp_path, body))
    assert kept_file(cli("edit", id).err).read_text() == "Mine"
    assert cli.json("get", id)[0]["content"] == "We deploy on Fridays"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(
            "file.write_text('<private>all</private>')",
            "Nothing is left to remember",
            id="file.write_text-private-all-private",
        ),
        pytest.param(
            "file.write_bytes(b'caf\\xe9')", "is not UTF-8 text", id="file.write_bytes-b-caf-xe9"
        ),
        pytest.param(
            "file.write_text('x'); sys.exit(3)", "exited with 3", id="file.write_text-x-sys.exit-3"
        ),
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


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        pytest.param({}, "No editor is set.", id="there-no-editor"),
        pytest.param(
            {"EDITOR": "/no/such/editor"}, "cannot be started", id="editor-no/such/editor"
        ),
        pytest.param({"EDITOR": "false"}, "exited with 1. Nothing was changed.", id="editor-false"),
        pytest.param({"EDITOR": "vi 'unclosed"}, "cannot be started", id="editor-vi-unclosed"),
        pytest.param({"EDITOR": "vi", "CLAUDECODE": "1"}, "bethink edit", id="editor-claudecode"),
    ],
)
def test_a_missing_editor_is_explained(cli, tmp_path, environment, said):
    id = cli.add(DEPLOY)
    for name, value in environment.items():
        cli.monkeypatch.setenv(name, value)
    cli.monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = cli("edit", id)
    assert result.code in (1, 2) and said in result.err and "Traceback" not in result.err
    assert not list(tmp_path.glob("bethink-edit-*"))


@pytest.fixture
def passage(cli):
    (cli.project / "docs").mkdir()
    text = "# Auth\n\nTokens live in Redis.\n\n# Login\n\nBy a magic link.\n"
    (cli.project / "docs/auth.md").write_text(text)
    cli.ok("index")
    return next(one for one in cli.json("list") if "Tokens" in one["content"])


@pytest.mark.parametrize(
    ("program", "given"),
    [
        pytest.param("vim", ["+{line}", "{file}"], id="vim"),
        pytest.param("code", ["-g", "{file}:{line}"], id="code"),
    ],
)
def test_a_source_opens_at_its_line_in_any_editor(cli, passage, tmp_path, program, given):
    place = {"file": cli.project / "docs/auth.md", "line": passage["lines"][0]}
    started = tmp_path / "started"
    editor = make_program(tmp_path / program, f'#!/bin/sh\nprintf "%s\\n" "$@" > {started}\n')
    code, shown = run_at_terminal(cli, "open", passage["id"], EDITOR=editor)
    assert code == 0, shown
    assert started.read_text().split() == [part.format(**place) for part in given]


def test_a_web_source_opens_in_the_browser(cli, tmp_path):
    address = "https://example.org/adr/7"
    id = cli.add(DEPLOY, "--source", address)
    script = f'#!/bin/sh\necho "$1" > {tmp_path}/address\n'
    browser = make_program(tmp_path / "browser", script)
    code, shown = run_at_terminal(cli, "open", id, BROWSER=f"{browser} %s")
    assert (code, (tmp_path / "address").read_text().strip()) == (0, address), shown
    assert cli.ok("open", id) == f"{address}\n"


def test_the_place_of_a_passage_is_printed(cli, passage):
    cli.monkeypatch.setenv("EDITOR", "/no/such/editor")
    file, line = cli.project / "docs/auth.md", passage["lines"][0]
    assert cli.ok("open", passage["id"]) == f"{file}:{line}\n"
    place = {"id": passage["id"], "path": str(file), "line": line, "url": None}
    assert cli.json("open", passage["id"]) == place


def test_a_missing_file_cannot_be_opened(cli, passage):
    file, _line = cli.project / "docs/auth.md", passage["lines"][0]
    file.unlink()
    assert "--source" in cli.fails("open", passage["id"], code=1)


def test_a_note_has_no_file_to_open(cli):
    assert "There is no file to open" in cli.fails("open", cli.add("Tea at four"), code=1)


def test_a_near_duplicate_is_named(cli):
    id = cli.add("Users sign in with a magic link that is valid for 15 minutes")
    again = cli("add", "The users sign in with a magic link that is valid for 15 minutes")
    assert re.match(rf"same as {id[:8]}\S*: Users sign in", again.out), again
    assert "these words are kept as a version of it" in again.out and "--no-dedup" in again.err
    assert len(cli.json("list")) == 1


def test_a_question_at_the_terminal_has_no_colour(cli):
    class Later(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(days=3)

    cli.add("We ship on Mondays", "--expires", "1d")
    cli.monkeypatch.setattr(console, "datetime", Later)
    cli.monkeypatch.setenv("FORCE_COLOR", "1")
    asked = cli("consolidate", stdin="n\n", terminal=True).err
    assert "We ship on Mondays" in asked and "[y/N]" in asked
    assert "\ufffd" not in asked and "\x1b" not in asked.partition("[y/N]")[0]


UNSURE = """
import sys
from bethink import Bethink
from bethink.app.cli.main import main
from memories import Verdict
Bethink.judge = Verdict("replaces", 0.5)
sys.exit(main())
"""


@pytest.mark.parametrize(("answer", "held"), [("y", ["45"]), ("", ["45", "30"])])
def test_what_may_replace_is_asked_on_a_terminal(cli, answer, held):
    old = cli.add("The session timeout is 30 minutes", "--kind", "fact")
    new = ("add", "The session timeout is 45 minutes", "--kind", "fact")
    typed = [(f"this may replace {old[:8]}", f"{answer}\n")]
    code, shown = run_at_terminal(cli, *new, typed=typed, program=("-c", UNSURE), **TESTS)
    asked, _, done = shown.partition("[y/N]")
    assert code == 0 and "this may replace" in asked and "timeout is 30 minutes" in asked, shown
    assert ("\n  replaces " in done, "\n  newer than " in done) == (answer == "y", answer == "")
    assert [one["content"].split()[4] for one in cli.json("list")] == held


@pytest.mark.parametrize(
    ("argv", "type", "code"),
    [
        pytest.param(["serch", "x", "--json"], "UsageError", 2, id="serch"),
        pytest.param(["--json"], "UsageError", 2, id="json-usageerror"),
        pytest.param(
            ["get", "ffffffff", "--format", "json"], "NotFound", 1, id="get-ffffffff-format"
        ),
        pytest.param(
            ["get", "ffffffff", "--format=json"], "NotFound", 1, id="get-ffffffff-format-json"
        ),
        pytest.param(["--json", "add", "x", "--kind", "decison"], "InvalidInput", 2, id="json-add"),
        pytest.param(["list", "--json", "--database", "/no/such.db"], "NotFound", 1, id="list"),
        pytest.param(["backup", "/proc/no/such.db", "--json"], "StoreError", 1, id="backup"),
    ],
)
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


COMMANDS = """
    list|list --include-superseded|search orders service|search orders service --explain|get {id}|history {id}|handoff|stats
    recall which database does the orders service use|today|why orders|config|model list|sessions|search --help
"""


@pytest.mark.parametrize("columns", [40, 60])
def test_a_narrow_terminal_breaks_no_line(cli, columns):
    first = cli.add("The orders service stores its data in MySQL, in the orders schema")
    login = "Users sign in with a magic link that is valid for 15 minutes"
    cli.add(login, "--kind", "decision", "--tag", "auth,login,web")
    id = cli.add("The orders service stores its data in PostgreSQL", "--supersedes", first)
    cli.add("Should the invoice PDF be made on the server?")
    summary = "The cache is moved, the tests are not"
    cli.ok("handoff", "save", "--summary", summary, "--next", "delete Redis")
    cli.monkeypatch.setenv("COLUMNS", str(columns))
    commands = COMMANDS.format(id=id).strip().replace("\n", "|").split("|")
    shown = {one: cli.ok(*one.split()).partition("xamples:")[0] for one in commands}
    assert [
        (command, line)
        for command, text in shown.items()
        for line in text.splitlines()
        # A path cannot be broken.
        if len(line) > columns and max(map(len, line.split()), default=0) <= columns - 16
    ] == []


def test_edit_takes_the_new_text_as_an_argument(cli):
    id = cli.add("We deploy on Fridays")
    assert cli.ok("edit", id, "We deploy on Mondays").startswith("updated ")
    assert cli.json("get", id)[0]["content"] == "We deploy on Mondays"


def test_an_edit_to_an_empty_text_is_refused(cli):
    id = cli.add("We deploy on Fridays")
    assert "no text" in cli.fails("edit", id, "", code=2)
