"""Help, completion, start-up, and the commands that look after the database: doctor, config, model, reindex, backup, reset, bench, demo."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bethink
from bethink.app import render as layout
from bethink.app.cli import COMMAND_ALIASES, COMMANDS, EVERYDAY, console, parser, shell, story
from bethink.app.cli.console import Bar
from bethink.app.cli.main import find_command
from bethink.embed import models

DEPLOY = "We deploy from main, never from a branch"
SOURCE = str(Path(bethink.__file__).parent.parent)
HEAVY = """
numpy onnxruntime tokenizers huggingface_hub mcp hypothesis urllib.request http.client asyncio starlette
""".split()
WRITING = {"hashlib", "tomlkit", "yaml", "bethink.ingest.redact", "bethink.judge"}


def listed(shown):
    """The commands of an overview with their help."""
    return dict(re.findall(r"^  ([a-z]+)  +(\S.*)$", shown.partition("\nOptions")[0], re.MULTILINE))


def test_help_all_lists_every_command(cli):
    shown = listed(cli.ok("help", "--all"))
    assert shown == {name: about for name, (_, _, about) in COMMANDS.items()}


def test_help_lists_everyday_commands(cli):
    assert list(listed(cli.ok("--help"))) == " ".join(EVERYDAY.values()).split()


@pytest.mark.parametrize("argv", [["help"], ["-h"]])
def test_every_form_of_help_prints_the_overview(cli, argv):
    assert cli.ok(*argv) == cli.ok("--help")


@pytest.mark.parametrize(("name", "command"), COMMAND_ALIASES.items())
def test_a_name_that_other_programs_use_runs_the_command(cli, name, command):
    assert cli.ok(name, "--help") == cli.ok(command, "--help")


@pytest.mark.parametrize(
    ("word", "command"),
    [
        pytest.param("unset", "bethink config --unset", id="unset"),
        pytest.param("upgrade", "pip install --upgrade bethink", id="upgrade"),
        pytest.param("status", "bethink doctor", id="status"),
    ],
)
def test_a_word_that_is_no_command_points_to_the_one_that_helps(cli, word, command):
    assert command in cli(word).err


def test_an_export_is_written_to_the_named_file(cli, tmp_path):
    cli.add("We deploy from main")
    cli.ok("export", tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text())[0]["content"] == "We deploy from main"


def test_two_files_for_one_export_are_refused(cli, tmp_path):
    assert "Two files are named" in cli.fails("export", "a.json", "-o", "b.json", code=2)


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(["--version"], id="version"),
        pytest.param(["search", "--version"], id="search"),
        pytest.param(["-V"], id="V"),
        pytest.param(["add", "-V"], id="add"),
        pytest.param(["--quiet", "-V"], id="quiet"),
    ],
)
def test_every_form_of_version_prints_the_version(cli, asked):
    version = f"bethink {bethink.__version__}\n"
    assert cli.ok(*asked) == version


def examples(text):
    return [line.strip() for line in text.partition("examples:\n")[2].strip().splitlines()]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_examples_that_are_accepted(cli, name):
    shown = cli.ok(name, "--help")
    assert shown.startswith(f"usage: bethink {name} ")
    assert cli.ok("help", name) == shown and 2 <= len(examples(shown)) <= 5
    for line in examples(shown):
        for part in re.split(r"\| |&& |<\(|\)$| > ", line):
            words = shlex.split(part) if part.startswith("bethink ") else []
            if words[:1] == ["bethink"]:
                command, rest = find_command(words[1:])
                parser.parse(console.load_operation(command), rest)


def modules_after(*argv, home, project):
    """The modules that one command leaves loaded in a fresh process."""
    code = "import sys; from bethink.app.cli.main import main; code = main(sys.argv[1:]); loaded = sorted(sys.modules)"
    code += "; import json; sys.stderr.write('\\n' + json.dumps([code, loaded]))"
    known = {"BETHINK_HOME": str(home), "BETHINK_EMBEDDING": "hashing", "PYTHONPATH": SOURCE}
    program = [sys.executable, "-c", code, *argv]
    environment = {"PATH": os.environ["PATH"], **known}
    done = subprocess.run(program, capture_output=True, text=True, env=environment, cwd=project)
    exit_code, modules = json.loads(done.stderr.splitlines()[-1])
    assert exit_code == 0, done.stderr
    return set(modules)


@pytest.mark.parametrize("argv", [["--version"], ["--help"]])
def test_version_or_help_imports_next_to_nothing(argv, tmp_path):
    loaded = modules_after(*argv, home=tmp_path / "home", project=tmp_path)
    ours = {
        f"bethink{name}" for name in ("", ".app", ".app.cli", ".app.cli.index", ".app.cli.main")
    }
    assert {name for name in loaded if name.startswith("bethink")} == ours
    assert not loaded & {"argparse", "dataclasses", "pathlib", "json", "apsw", *HEAVY}


@pytest.fixture
def stored(cli):
    """The id of a memory."""
    return cli.add(DEPLOY)


KEYWORD_SEARCH = "search deploy --mode keyword --explain"


@pytest.mark.parametrize(
    "command",
    [KEYWORD_SEARCH, "list", "get ID", "history ID", "stats", "export", "vote ID"],
)
def test_a_command_by_words_imports_neither_model_nor_numpy(cli, stored, command):
    words = command.replace("ID", stored).split()
    assert not modules_after(*words, home=cli.home, project=cli.project) & {*HEAVY}


@pytest.fixture
def searched(cli, stored):
    """The modules that a search by words leaves loaded."""
    return modules_after(*KEYWORD_SEARCH.split(), home=cli.home, project=cli.project)


def test_a_search_by_words_imports_nothing_for_writing(searched):
    assert not searched & {*WRITING}


def test_a_search_by_words_compiles_no_annotations_of_named_tuples(searched):
    """Each annotation that is a text is compiled, which made a tenth of a cold search."""
    files = [Path(SOURCE, *name.split(".")).with_suffix(".py") for name in searched]
    texts = {file: file.read_text("utf-8") for file in files if file.exists()}
    late = "\nfrom __future__ import annotations\n"
    assert [file for file, text in texts.items() if late in text and "(NamedTuple)" in text] == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_a_shells_script_completes(cli, tmp_path, shell):
    script = tmp_path / "bethink.sh"
    script.write_text(cli.json("completion", shell)["script"])
    assert "bethink completion words " in script.read_text()
    if shell == "bash":
        line = "bethink search x --mo"
        code = f"""bethink() {{ "{sys.executable}" -m bethink "$@"; }}; source {script}
            COMP_LINE="{line}"; COMP_POINT={len(line)}; _bethink; echo "${{COMPREPLY[@]}}" """
        done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["--mode"]


def findings(cli, *options):
    result = cli("doctor", "--json", *options)
    found = json.loads(result.out)
    assert all(set(finding) == {"check", "ok", "message", "fix"} for finding in found)
    assert (result.code == 0) == all(finding["ok"] for finding in found)
    return {finding["check"]: finding for finding in found if not finding["ok"]}


def test_the_doctor_finds_nothing_wrong_with_an_empty_home(cli):
    assert findings(cli) == {}
    cli.monkeypatch.setenv("BETHINK_EMBEDDING", "none")
    assert findings(cli) == {}


def test_the_doctor_names_a_missing_model(cli):
    cli.monkeypatch.setenv("BETHINK_EMBEDDING", "snowflake-arctic-embed-s")
    problem = findings(cli)["model"]
    assert "not installed" in problem["message"] and "bethink model pull" in problem["fix"]
    assert "fix: Run `bethink model pull`" in cli("doctor").out


def test_the_doctor_names_a_damaged_model(cli):
    cli.monkeypatch.setenv("BETHINK_EMBEDDING", "snowflake-arctic-embed-s")
    folder = cli.home / "models" / "snowflake-arctic-embed-s"
    folder.mkdir(parents=True, mode=0o700)
    for file in ("model.onnx", "tokenizer.json"):
        (folder / file).write_text("not a model")
    assert "damaged" in findings(cli, "--deep")["model"]["message"]


@pytest.mark.parametrize("store_kind", ["sqlite", "postgres"], indirect=True)
def test_the_doctor_finds_nothing_wrong_with_a_long_memory(cli):
    cli.add(" ".join([*["harbour"] * 400, *"???", *["seven"] * 400]))
    assert "vectors" not in findings(cli, "--deep")


@pytest.mark.parametrize(
    ("words", "out", "err"),
    [
        pytest.param("recall tea", "", "bethink init", id="recall-tea"),
        pytest.param("list", "", "bethink init", id="list"),
        pytest.param("list --offset 1", "", "No memories.", id="list-offset-1"),
        pytest.param("map", "", "Nothing to remember was found here.", id="map"),
        pytest.param("uninstall", "", "Nothing was installed", id="uninstall"),
        pytest.param("stats", "memories        none", "", id="stats"),
        pytest.param(
            "analyze --git",
            "skipped  source git, reason not a git repository",
            "",
            id="analyze-git",
        ),
    ],
)
def test_a_command_on_an_empty_database_prints_a_hint(cli, words, out, err):
    told = cli(*words.split())
    assert (told.code, told.out[: len(out) or None]) == (0, out) and err in told.err


def test_the_doctor_fixes_a_broken_index(cli):
    cli.monkeypatch.setenv("BETHINK_EMBEDDING", "none")
    cli.add(DEPLOY)
    connection = apsw.Connection(str(cli.home / "memory.db"))
    connection.execute("INSERT INTO memories_fts(memories_fts) VALUES ('delete-all')")
    connection.close()
    cli.monkeypatch.setenv("BETHINK_EMBEDDING", "hashing")
    found = findings(cli)
    assert found["full-text index"]["fix"] == "bethink doctor --fix"
    assert "1 memory without a vector of hashing" in found["vectors of the model"]["message"]
    assert found["vectors of the model"]["fix"] == "bethink reindex"
    assert cli.json("search", "deploy", "--mode", "keyword") == []
    result = cli("doctor", "--fix")
    assert result.code == 0 and "fixed: made missing vectors" in result.err, result
    assert findings(cli) == {}
    assert len(cli.json("search", "deploy", "--mode", "keyword")) == 1


def test_the_doctor_fixes_open_permissions(cli):
    cli.add(DEPLOY)
    folders = [cli.home, cli.home / "hooks"]
    for folder in folders:
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
    found = findings(cli)
    assert [
        name
        for name in ("hooks folder", "folder")
        if "other users can read" not in found[name]["message"]
    ] == []
    assert cli("doctor", "--fix").code == 0
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}


@pytest.mark.parametrize(
    ("text", "check"),
    [
        pytest.param("limt = 3", "settings", id="limt-3"),
        pytest.param(
            "database = '/proc/nowhere/x.db'", "database", id="database-proc/nowhere/x.db"
        ),
    ],
)
def test_a_settings_file_that_cannot_be_used_is_a_finding(cli, file, text, check):
    file.write_text(text)
    assert check in findings(cli)
    assert cli("doctor", "--fix").code == 1


def test_a_setting_of_the_environment_that_cannot_be_used_is_a_finding(cli):
    cli.monkeypatch.setenv("BETHINK_LIMIT", "many")
    assert "BETHINK_LIMIT" in findings(cli)["settings"]["message"]


@pytest.fixture
def file(cli):
    """Your settings file, in a folder that is there."""
    cli.home.mkdir(mode=0o700)
    return cli.home / "config.toml"


@pytest.mark.parametrize(
    ("before", "commands", "after"),
    [
        pytest.param(
            '# mine\nmode = "keyword"  # faster\n\nknowledge = [\n  "docs",  # ours\n  "notes",\n]\nlimit=3',
            "mode vector|knowledge a,b#c",
            '# mine\nmode = "vector"  # faster\n\nknowledge = ["a", "b#c"]\nlimit=3',
            id="mine-mode-keyword-faster-knowledge-docs",
        ),
        pytest.param(
            'mode = "vector"  # faster\nlimit=3',
            "threshold 0.25|min_similarity -0.5",
            'mode = "vector"  # faster\nlimit=3\nthreshold = 0.25\nmin_similarity = -0.5\n',
            id="mode-vector-faster-limit-3",
        ),
        pytest.param(
            'limit = 5  # five\r\nmode = "keyword"\r\n',
            "limit 7|threshold 0.25",
            'limit = 7  # five\r\nmode = "keyword"\r\nthreshold = 0.25\r\n',
            id="limit-5-five-mode-keyword",
        ),
    ],
)
def test_config_keeps_everything_but_its_line(cli, file, before, commands, after):
    target = cli.project / "dotfiles.toml"
    file.symlink_to(target)
    target.write_bytes(before.encode())
    for words in commands.split("|"):
        cli.ok("config", *words.split())
    assert target.read_bytes().decode() == after


def test_config_creates_a_private_file(cli, file):
    cli.ok("config", "limit", "5")
    assert [path.stat().st_mode & 0o777 for path in (file, cli.home)] == [0o600, 0o700]


def test_config_refuses_to_change_a_broken_file(cli, file):
    file.write_text("limit = = 3\n")
    assert "cannot be read" in cli.fails("config", "limit", "4", code=2)
    assert file.read_text() == "limit = = 3\n"


@pytest.mark.parametrize("outside", ["config.toml", "missing.toml"])
def test_config_follows_no_link_out_of_the_project(cli, outside):
    (cli.project / ".bethink").mkdir()
    (cli.project / ".bethink" / "config.toml").symlink_to(cli.home / outside)
    told = cli.fails("config", "limit", "5", "--project-file", code=2)
    assert "leads out of the project" in told
    assert not cli.home.exists()


def test_reset_asks_first(cli):
    cli.add(DEPLOY)
    cli.add("I prefer small pull requests", "--personal")
    asked = cli("reset", stdin="no\n", terminal=True)
    assert asked.code == 1 and "bethink backup" in asked.err
    assert "removes 1 memory of the project shop for good" in asked.err
    assert len(cli.json("list")) == 2


def test_reset_removes_one_scope(cli):
    cli.add(DEPLOY)
    cli.add("I prefer small pull requests", "--personal")
    done = cli("reset", stdin="yes\n", terminal=True)
    assert done.out.split() == ["removed", "1", "scope", "this"]
    assert [one["scope"] for one in cli.json("list")] == ["personal"]
    assert cli.json("reset", "--scope", "personal", "--yes") == {"removed": 1, "scope": "personal"}


def test_reset_all_leaves_nothing(cli):
    cli.add(DEPLOY)
    assert cli.json("reset", "--scope", "all", "--yes")["removed"] == 1
    assert cli.json("stats")["memories"] == 0 and findings(cli, "--deep") == {}


# What the demo says, and what then must be seen, as patterns over all that follows up to the next sentence.
PROMISES = {
    "Meaning comes from .*, on this machine": (),
    "There is no embedding model, so this demo finds memories by their words only": (),
    "A kind that is not given is detected: the last one is a question": (
        'add "[^"]+"\\nadded \\S+ question  Should the invoice[^$]*$',
    ),
    "The same statement, or nearly the same, is not added again": (
        "\\nalready stored as (\\S+): Users sign in with a magic link that is valid for 15 minutes\\n[^#]*\\nsame as \\1: Users sign in with a magic link that is valid for 15 minutes\\n  these words are kept as a version of it",
    ),
    "The same statement is not added again": (
        "\\nalready stored as \\S+: Users sign in with a magic link that is valid for 15 minutes",
    ),
    "Ask in other words": (
        "--mode hybrid [^$]*\\n01\\S+ [^$]*Users sign in with a magic link that is valid for 15 minutes[^#]*--mode vector [^$]*\\n01\\S+ [^$]*Users sign in with a magic link that is valid for 15 minutes",
        "--mode keyword --limit 2\\nNo memories match\\.",
    ),
    "Ask by words": (
        "\\n01\\S+ [^\\n]*\\n  Users sign in with a magic link that is valid for 15 minutes",
    ),
    "useful memories come first": (
        "votes \\+5 for (\\S+) gotcha [^#]*--seed 1\\n\\1 +\\S+ +gotcha ",
    ),
    "A changed decision replaces the old one. The answer is the new one": (
        "(?:replaces|supersedes) \\S+(?:: The orders service)?[^#]*recall [^#]*\\n01\\S+ [^\\n]*\\n  Orders moved from MySQL to PostgreSQL[^#]*\\n  supersedes ",
    ),
    "Private text, and text that looks like a secret, is removed": (
        "added \\S+ fact  The staging login is \\[REDACTED\\] and the token is \\[REDACTED:github-token\\]\\n",
        "search [^#]*\\[REDACTED\\]",
    ),
    "Every score can be explained": (
        "\\n  relevance 0\\.\\d{3}: how well",
        "\\n  (?:cosine|bm25) \\d",
    ),
    "Seven memories are stored": ("\\nmemories +7\\n",),
}


@pytest.fixture
def played(cli, with_model, tmp_path, monkeypatch):
    """The parts of the demo's story, by name."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return {part["part"]: part for part in cli.json("demo")}


def test_the_story_is_told_from_memory(cli, played):
    fix = "ran `pnpm install --no-frozen-lockfile`"
    found = [
        any("NATS" in text for text in played["record"]["memories"]),
        "NATS" in played["brief"]["shown"],
        "ledger service" in played["recall"]["shown"],
        fix in played["failure"]["shown"],
        "newer" in played["add"]["output"] or "replaces" in played["add"]["output"],
        played["undo"]["output"].startswith("removed "),
    ]
    assert found == [True] * 6, played


def test_the_story_leaves_nothing_behind(cli, played, tmp_path):
    assert list(tmp_path.glob("bethink-demo-*")) == []
    assert not (cli.home / "memory.db").exists()


@pytest.mark.parametrize("embedding", ["none", "hashing"])
def test_the_demo_keeps_every_promise_that_it_makes(cli, tmp_path, monkeypatch, embedding):
    monkeypatch.setenv("BETHINK_EMBEDDING", embedding)
    check_promises(cli, tmp_path, monkeypatch, by_meaning=False)


def test_the_demo_keeps_every_promise_about_meaning(cli, model_or_pull, tmp_path, monkeypatch):
    monkeypatch.delenv("BETHINK_EMBEDDING")
    monkeypatch.setenv("BETHINK_MODEL_DIR", str(tmp_path / "models"))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / models.DEFAULT).symlink_to(model_or_pull)
    check_promises(cli, tmp_path, monkeypatch, by_meaning=True)


def check_promises(cli, tmp_path, monkeypatch, by_meaning):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    kept, real = [], shell.play

    def look(args, folder):
        steps = real(args, folder)
        kept.append(b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file()))
        return steps

    monkeypatch.setattr(story, "play", look)
    shown = cli.ok("demo", "--tour")
    sentences = re.findall(r"^# (.+)$", shown, re.MULTILINE)
    parts = dict(zip(sentences, re.split(r"^# .+$", shown, flags=re.MULTILINE)[1:], strict=True))
    for sentence, part in parts.items():
        [promise] = [one for one in PROMISES if re.search(one, sentence)] or [sentence]
        for pattern in PROMISES[promise]:
            assert re.search(pattern, part), (sentence, pattern, part)
    assert ("nearly the same" in shown) == by_meaning
    assert b"staging login" in kept[0] and not re.search(rb"hunter2|a1B2a1B2", kept[0])
    assert "which is deleted" in shown and not list(tmp_path.glob("bethink-demo-*"))
    assert not (cli.home / "memory.db").exists()


@pytest.mark.parametrize(
    ("environment", "terminal", "coloured"),
    [
        pytest.param({}, False, False, id="false"),
        pytest.param({}, True, True, id="true"),
        pytest.param({"NO_COLOR": "1"}, True, False, id="no_color-1"),
        pytest.param({"NO_COLOR": "", "TERM": "dumb"}, True, False, id="no_color-TERM"),
        pytest.param({"FORCE_COLOR": "1"}, False, True, id="force_color-1"),
        pytest.param({"FORCE_COLOR": "1", "TERM": "dumb"}, False, True, id="force_color-TERM"),
        pytest.param(
            {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False, id="force_color-no_color"
        ),
        pytest.param({"FORCE_COLOR": "0"}, True, False, id="force_color-0"),
        pytest.param({"FORCE_COLOR": ""}, False, False, id="force_color-empty"),
    ],
)
def test_colour_depends_on_the_terminal_or_the_environment(
    cli, monkeypatch, environment, terminal, coloured
):
    cli.add(DEPLOY)
    with monkeypatch.context() as patch:
        for name, value in {"TERM": "xterm", **environment}.items():
            patch.setenv(name, value)
        patch.setattr(sys.stdout, "isatty", lambda terminal=terminal: terminal)
        assert ("\x1b[" in cli.ok("list")) == coloured, environment
        assert "\x1b" not in cli.ok("list", "--json") + cli.ok("list", "--for-agent")


def test_a_day_is_a_day_where_the_user_is(cli, monkeypatch):
    monkeypatch.setenv("TZ", "<+14>-14")
    time.tzset()
    try:
        id = cli.add("True until tomorrow", "--expires", "tomorrow")
        assert cli.json("get", id)[0]["expires_at"].endswith("T10:00:00.000Z")
        assert cli.json("list", "--since", "today", "--until", "tomorrow")[0]["id"] == id
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()


HOSTILE = "evil \x1b]52;c;ZXZpbA==\x07 and \x9b31m text"


def test_output_to_a_terminal_has_no_control_characters(cli, monkeypatch):
    id = cli.add(HOSTILE)
    monkeypatch.setenv("NO_COLOR", "1")
    with monkeypatch.context() as patch:
        patch.setattr(sys.stdout, "isatty", lambda: True)
        assert [
            (format, command)
            for format in ("text", "json", "csv", "md", "xml")
            for command in ("list", "export", "search evil", f"get {id}")
            for shown in [cli.ok(*command.split(), "--format", format)]
            if "evil" not in shown or layout.plain(shown) != shown
        ] == []
    assert cli.json("get", id)[0]["content"] == HOSTILE


def show_progress(monkeypatch):
    """All of it, as on a terminal."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(console, "REPORT_INTERVAL", 0.0)


TEXT = SimpleNamespace(quiet=False, format="text")


def test_progress_is_one_line_on_a_terminal(capsys, monkeypatch):
    show_progress(monkeypatch)
    lengths = {30: "30 seconds", 7200: "2 hours", 3 * 86400: "3 days"}
    assert {length: layout.span(length) for length in lengths} == lengths
    with Bar(TEXT, "fetching", count=layout.size) as bar:
        bar(1_500_000, None, "f" * 100)
        assert capsys.readouterr().err == f"\r\x1b[K{'f' * 59}"
    assert bar.line(1_500_000, 3_000_000) == "fetching 1.5 MB of 3.0 MB"
    bar = Bar(TEXT, "mapping", "files")
    assert bar.line(0, None) == "mapping …"
    assert bar.line(1500.5, 6000) == "mapping 1,500 of 6,000 files"


LONG = ["init", "index", "analyze", "import --markdown docs", "reindex --full"]


@pytest.mark.parametrize("command", LONG)
def test_a_long_command_shows_its_progress(cli, monkeypatch, command):
    files = {f"docs/{n}.md": f"# Part {n}\n\nThis part is about {n}.\n" for n in range(3)}
    files["pyproject.toml"] = '[project]\nname = "shop"\ndependencies = ["flask"]\n'
    (cli.project / "docs").mkdir()
    for name, text in files.items():
        (cli.project / name).write_text(text)
    cli.add(DEPLOY)
    show_progress(monkeypatch)
    told = cli(*command.split())
    assert told.code == 0 and re.search(r"\w+ [1-9]\d* of [1-9]\d*", told.err), told


@pytest.mark.parametrize("command", LONG)
@pytest.mark.parametrize(
    "more",
    [
        pytest.param("--json", id="json"),
        pytest.param("--quiet", id="quiet"),
    ],
)
def test_progress_is_not_shown_in_quiet_or_json_output(cli, monkeypatch, command, more):
    files = {f"docs/{n}.md": f"# Part {n}\n\nThis part is about {n}.\n" for n in range(3)}
    files["pyproject.toml"] = '[project]\nname = "shop"\ndependencies = ["flask"]\n'
    (cli.project / "docs").mkdir()
    for name, text in files.items():
        (cli.project / name).write_text(text)
    cli.add(DEPLOY)
    show_progress(monkeypatch)
    (cli.project / "docs/0.md").write_text(f"# Part 0\n\nThis part has changed: {more}.\n")
    assert " of " not in cli(*command.split(), more).err


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
LINES = st.none() | st.just([1, 2])
RECORDS = st.fixed_dictionaries({"id": TEXTS, "content": TEXTS, "lines": LINES})


@settings(max_examples=30)
@given(st.lists(RECORDS, max_size=4), TEXTS)
def test_formats_give_back_what_they_were_given(records, query):
    fields = ("id", "content", "lines")

    def shown(format):
        return "".join(layout.format_records(format, records, fields, "found", "one", query=query))

    assert json.loads(shown("json")) == records
    assert [json.loads(line) for line in shown("jsonl").split("\n") if line] == records
    _, *rows = csv.reader(io.StringIO(shown("csv"), newline=""))
    assert rows == [[one["id"], one["content"], "1-2" * bool(one["lines"])] for one in records]
    told = [one.findtext("content") for one in ElementTree.fromstring(shown("xml"))]
    assert told == [re.sub(layout._NOT_XML, "", one["content"]) for one in records]
    assert len(shown("md").splitlines()) == len(records) + 2


@settings(max_examples=30)
@given(st.text(max_size=300), st.integers(41, 120))
def test_folding_loses_no_word(text, width):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "50")
        folded = "\n".join(map(layout.fold, layout.indent(text, "  ")))
    assert "".join(folded.split()) == "".join(layout.plain(text).split())
    assert len(layout.one_line(text, width)) <= width
