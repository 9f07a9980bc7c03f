"""Help, completion, start-up, and the commands that look after the database: doctor, config, model, reindex, backup, reset, bench, demo."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest
import test_embed
from hypothesis import given, settings
from hypothesis import strategies as st

import bethink
from bethink.embed import models
from bethink.surface import layout
from bethink.surface.cli import COMMANDS, console
from bethink.surface.cli import settings as settings_commands
from bethink.surface.cli.console import Bar
from bethink.surface.cli.main import find_command
from bethink.surface.render import SIGNALS

pytest_plugins = ["cli_runner"]

model_or_pull = test_embed.model_or_pull
DEPLOY = "We deploy from main, never from a branch"
SOURCE = str(Path(bethink.__file__).parent.parent)
HEAVY = [
    "numpy",
    "onnxruntime",
    "tokenizers",
    "huggingface_hub",
    "mcp",
    "hypothesis",
    "urllib.request",
    "http.client",
    "asyncio",
    "starlette",
]


# Help


def test_help_names_every_command(cli):
    shown = cli.ok("--help")
    for name, (_, about) in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(about)}$", shown, re.MULTILINE)
    assert cli.ok("help") == cli.ok("-h") == shown
    assert (
        cli.ok("--version") == cli.ok("search", "--version") == f"bethink {bethink.__version__}\n"
    )


def examples(text):
    return [line.strip() for line in text.partition("examples:\n")[2].strip().splitlines()]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_examples(cli, name):
    shown = cli.ok(name, "--help")
    assert shown.startswith(f"usage: bethink {name} ")
    assert 2 <= len(examples(shown)) <= 5
    assert cli.ok("help", name) == shown


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_of_a_command_are_accepted(cli, name):
    for line in examples(cli.ok(name, "--help")):
        for part in re.split(r"\| |&& |<\(|\)$| > ", line):
            words = shlex.split(part) if part.startswith("bethink ") else []
            if words[:1] == ["bethink"]:
                command, rest = find_command(words[1:])
                console.parse(console.load(command), rest)


# Start-up


def modules_after(*argv, home, project):
    """The modules that one command leaves loaded in a fresh process."""
    code = "import sys; from bethink.surface.cli.main import main; code = main(sys.argv[1:]); loaded = sorted(sys.modules)"
    code += "; import json; sys.stderr.write('\\n' + json.dumps([code, loaded]))"
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": SOURCE,
        "BETHINK_HOME": str(home),
        "BETHINK_EMBEDDING": "hashing",
    }
    done = subprocess.run(
        [sys.executable, "-c", code, *argv],
        capture_output=True,
        text=True,
        env=environment,
        cwd=project,
    )
    exit_code, modules = json.loads(done.stderr.splitlines()[-1])
    assert exit_code == 0, done.stderr
    return set(modules)


@pytest.mark.parametrize("argv", [["--version"], ["--help"]])
def test_version_and_help_load_next_to_nothing(argv, tmp_path):
    loaded = modules_after(*argv, home=tmp_path / "home", project=tmp_path)
    assert {name for name in loaded if name.startswith("bethink")} == {
        "bethink",
        "bethink.surface",
        "bethink.surface.cli",
        "bethink.surface.cli.main",
    }
    assert not loaded & {"argparse", "dataclasses", "pathlib", "json", "apsw", *HEAVY}


def test_reading_by_words_loads_no_model_and_no_numbers(cli):
    id = cli.add(DEPLOY)
    commands = [
        ["search", "deploy", "--mode", "keyword", "--explain"],
        ["list"],
        ["get", id],
        ["history", id],
        ["stats"],
        ["export"],
        ["vote", id],
    ]
    for command in commands:
        loaded = modules_after(*command, home=cli.home, project=cli.project)
        assert not loaded & set(HEAVY), command


# Completion


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("bethink sea", ["search"]),
        ("bethink ", list(COMMANDS)),
        ("bethink search x --mo", ["--mode"]),
        ("bethink search x --mode ", ["hybrid", "vector", "keyword"]),
        ("bethink --database x.db add --kind dec", ["decision"]),
        ("bethink model p", ["pull"]),
        ("bethink list --format ", list(layout.FORMATS)),
        ("bethink nonsense --f", []),
    ],
)
def test_what_may_follow_is_completed(cli, line, found):
    assert list(cli.json("completion", "words", line)) == found


@pytest.mark.parametrize(
    ("shell", "check"),
    [
        ("bash", ["bash", "-n"]),
        ("zsh", ["zsh", "-n"]),
        ("fish", ["fish", "--no-execute"]),
        ("powershell", ["pwsh", "-NoProfile", "-File"]),
    ],
)
def test_a_shells_script_is_valid_and_completes(cli, tmp_path, shell, check):
    script = tmp_path / "bethink.ps1"
    script.write_text(cli.json("completion", shell)["script"])
    assert "bethink completion words " in script.read_text()
    if shutil.which(check[0]):
        subprocess.run([*check, str(script)], check=True)
    if shell == "bash":
        line = "bethink search x --mo"
        code = f"""bethink() {{ "{sys.executable}" -m bethink "$@"; }}; source {script}
            COMP_LINE="{line}"; COMP_POINT={len(line)}; _bethink; echo "${{COMPREPLY[@]}}" """
        done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["--mode"]


# Doctor


def findings(cli, *options):
    result = cli("doctor", "--json", *options)
    found = json.loads(result.out)
    assert all(set(finding) == {"check", "ok", "message", "fix"} for finding in found)
    assert (result.code == 0) == all(finding["ok"] for finding in found)
    return {finding["check"]: finding for finding in found if not finding["ok"]}


def test_the_doctor_works_before_anything_was_added(cli):
    assert findings(cli) == {}
    cli.monkeypatch.setenv("BETHINK_EMBEDDING", "none")
    assert findings(cli) == {}


def test_a_missing_model_is_a_problem(cli):
    cli.monkeypatch.setenv("BETHINK_EMBEDDING", "snowflake-arctic-embed-s")
    problem = findings(cli)["model"]
    assert "not installed" in problem["message"]
    assert "bethink model pull" in problem["fix"]
    assert "mend: Run `bethink model pull`" in cli("doctor").out


def test_a_damaged_model_is_found_when_looking_deep(cli):
    folder = cli.home / "models" / "snowflake-arctic-embed-s"
    folder.mkdir(parents=True, mode=0o700)
    for file in ("model.onnx", "tokenizer.json"):
        (folder / file).write_text("not a model")
    cli.monkeypatch.setenv("BETHINK_EMBEDDING", "snowflake-arctic-embed-s")
    assert "damaged" in findings(cli, "--deep")["model"]["message"]


def test_vectors_of_another_model_are_a_problem_that_can_be_fixed(cli):
    cli.monkeypatch.setenv("BETHINK_EMBEDDING", "none")
    cli.add(DEPLOY)
    cli.monkeypatch.setenv("BETHINK_EMBEDDING", "hashing")
    problem = findings(cli)["vectors of the model"]
    assert "1 memory without a vector of hashing" in problem["message"]
    assert problem["fix"] == "bethink reindex"
    result = cli("doctor", "--fix")
    assert result.code == 0, result
    assert "fixed: embedded what had no vector" in result.err
    assert findings(cli) == {}


def test_a_broken_index_is_mended(cli):
    cli.add(DEPLOY)
    connection = apsw.Connection(str(cli.home / "memory.db"))
    connection.execute("INSERT INTO memories_fts(memories_fts) VALUES ('delete-all')")
    connection.close()
    assert findings(cli)["full-text index"]["fix"] == "bethink doctor --fix"
    assert cli.json("search", "deploy", "--mode", "keyword") == []
    assert cli("doctor", "--fix").code == 0
    assert len(cli.json("search", "deploy", "--mode", "keyword")) == 1


def test_open_permissions_are_mended(cli):
    cli.add(DEPLOY)
    cli.home.chmod(0o755)
    hooks = cli.home / "hooks"
    hooks.mkdir(mode=0o755, exist_ok=True)
    hooks.chmod(0o755)
    assert "others can look into" in findings(cli)["hooks folder"]["message"]
    problem = findings(cli)["folder"]
    assert "0755" in problem["message"]
    assert cli("doctor", "--fix").code == 0
    assert {path.stat().st_mode & 0o777 for path in (cli.home, hooks)} == {0o700}
    cli.home.chmod(0o777)
    assert "folder" in findings(cli)


def test_a_folder_of_others_must_only_not_be_open_to_changes(cli, tmp_path):
    (tmp_path / "data").mkdir(mode=0o755)
    cli.ok("add", DEPLOY, "--database", str(tmp_path / "data" / "memory.db"))
    assert findings(cli, "--database", str(tmp_path / "data" / "memory.db")) == {}
    (tmp_path / "data").chmod(0o777)
    assert (
        "others can change"
        in findings(cli, "--database", str(tmp_path / "data" / "memory.db"))["folder"]["message"]
    )


def test_a_changed_text_is_found_when_looking_deep(cli):
    cli.add(DEPLOY)
    connection = apsw.Connection(str(cli.home / "memory.db"))
    connection.execute("UPDATE memories SET content = 'We deploy from anywhere'")
    connection.close()
    assert "not what was written" in findings(cli, "--deep")["memory"]["message"]


@pytest.mark.parametrize(
    ("text", "check"), [("limt = 3", "settings"), ("database = '/proc/nowhere/x.db'", "database")]
)
def test_settings_that_cannot_be_used_are_findings(cli, text, check):
    cli.home.mkdir(mode=0o700)
    (cli.home / "config.toml").write_text(text)
    assert check in findings(cli)
    assert cli("doctor", "--fix").code == 1


def test_odd_environment_values_are_findings(cli):
    cli.monkeypatch.setenv("BETHINK_LIMIT", "many")
    assert "BETHINK_LIMIT" in findings(cli)["settings"]["message"]


# Settings


def test_config_writes_your_file_for_you_alone(cli):
    cli.ok("config", "limit", "5")
    file = cli.home / "config.toml"
    assert file.read_text() == "limit = 5\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert cli.home.stat().st_mode & 0o777 == 0o700
    assert cli.ok("config", "limit") == "5\n"


def test_config_keeps_comments_and_other_lines(cli):
    cli.home.mkdir()
    before = '# mine\nmode = "keyword"  # faster\n\nknowledge = [\n  "docs",  # ours\n  "notes",\n]\nlimit=3'
    file = cli.home / "config.toml"
    file.write_text(before)
    cli.ok("config", "mode", "vector")
    assert file.read_text() == before.replace('"keyword"', '"vector"')
    cli.ok("config", "knowledge", "a, b#c")
    assert (
        file.read_text() == '# mine\nmode = "vector"  # faster\n\nknowledge = ["a", "b#c"]\nlimit=3'
    )
    cli.ok("config", "threshold", "0.25")
    assert file.read_text().endswith("limit=3\nthreshold = 0.25\n")
    cli.ok("config", "min_similarity", "-0.5")
    cli.ok("config", "--unset", "mode")
    assert (
        file.read_text()
        == '# mine\n\nknowledge = ["a", "b#c"]\nlimit=3\nthreshold = 0.25\nmin_similarity = -0.5\n'
    )
    assert cli.json("config", "knowledge")["value"] == ["a", "b#c"]


def test_config_keeps_links_and_line_ends(cli):
    cli.home.mkdir()
    file, link = cli.project / "dotfiles.toml", cli.home / "config.toml"
    file.write_bytes(b'limit = 5  # five\r\nmode = "keyword"\r\n')
    link.symlink_to(file)
    cli.ok("config", "limit", "7")
    cli.ok("config", "threshold", "0.25")
    assert link.is_symlink()
    assert file.read_bytes() == b'limit = 7  # five\r\nmode = "keyword"\r\nthreshold = 0.25\r\n'


def test_config_writes_through_no_link_out_of_the_project(cli):
    (cli.project / ".bethink").mkdir()
    for outside in (cli.home / "config.toml", cli.home / "missing.toml"):
        link = cli.project / ".bethink" / "config.toml"
        link.unlink(missing_ok=True)
        link.symlink_to(outside)
        assert "leads out of the project" in cli.fails(
            "config", "limit", "5", "--project-file", code=2
        )
    assert not cli.home.exists()


@pytest.mark.parametrize("value", ['["""\nmode = x\n"""]', '[\n"""\n[mode]\n""",\n]'])
def test_config_takes_no_line_of_a_value_for_a_setting(cli, value):
    cli.home.mkdir()
    file = cli.home / "config.toml"
    file.write_text(f"knowledge = {value}\n")
    cli.ok("config", "mode", "keyword")
    assert file.read_text() == f'knowledge = {value}\nmode = "keyword"\n'
    cli.ok("config", "--unset", "mode")
    assert file.read_text() == f"knowledge = {value}\n"


@pytest.mark.parametrize(
    "value", ['quo"te', "back\\slash", "new\nline", "ümlaut 東京", "del\x7f", "# no comment", "'''"]
)
def test_any_text_can_be_a_value(cli, value):
    cli.ok("config", "embedding_model", value)
    assert cli.json("config", "embedding_model")["value"] == value
    cli.ok("config", "embedding_model", "plain")
    assert (cli.home / "config.toml").read_text() == 'embedding_model = "plain"\n'


def test_the_project_file_wins_over_yours_and_says_so(cli):
    cli.ok("config", "limit", "4", "--project-file")
    assert (cli.project / ".bethink" / "config.toml").read_text() == "limit = 4\n"
    result = cli("config", "limit", "7")
    assert result.code == 0
    assert "sets limit too, and wins: it is still 4" in result.err
    assert cli.ok("config", "limit") == "4\n"
    cli.ok("config", "--unset", "limit", "--project-file")
    assert cli.ok("config", "limit") == "7\n"


def test_a_key_that_nobody_knows_can_still_be_taken_out(cli):
    cli.home.mkdir()
    (cli.home / "config.toml").write_text("limt = 3\nlimit = 4\n")
    assert cli("config").code == 2
    cli.ok("config", "--unset", "limt")
    assert cli.ok("config", "limit") == "4\n"
    (cli.home / "config.toml").write_text("limit = = 3\n")
    assert "cannot be read" in cli.fails("config", "limit", "4", code=2)
    assert (cli.home / "config.toml").read_text() == "limit = = 3\n"


# Models


def test_a_model_in_place_is_not_fetched_again(cli):
    folder = cli.home / "mine"
    folder.mkdir(parents=True)
    for file in ("model.onnx", "tokenizer.json"):
        (folder / file).write_text("x")
    assert cli.json("model", "pull", str(folder))["path"] == str(folder)
    assert "is sound" in cli.ok("model", "verify", str(folder))


# Care


def test_a_backup_is_a_database(cli, tmp_path):
    cli.add(DEPLOY)
    copy = tmp_path / "copy.db"
    written = cli.json("backup", copy)
    assert written == {"path": str(copy), "bytes": copy.stat().st_size}
    assert copy.stat().st_mode & 0o777 == 0o600
    assert cli.json("list", "--database", copy)[0]["content"] == DEPLOY
    assert "does not overwrite" in cli.fails("backup", copy, code=1)
    assert "does not exist" in cli.fails("backup", tmp_path / "no" / "copy.db", code=1)


def test_reset_asks_and_takes_only_its_scope(cli):
    cli.add(DEPLOY)
    cli.add("I prefer small pull requests", "--personal")
    asked = cli("reset", stdin="no\n", terminal=True)
    assert asked.code == 1
    assert "removes 1 memory of the project shop for good" in asked.err
    assert "bethink backup" in asked.err
    assert len(cli.json("list")) == 2
    assert (
        cli("reset", stdin="yes\n", terminal=True).out == "removed 1 memory of the project shop\n"
    )
    assert [one["scope"] for one in cli.json("list")] == ["personal"]
    assert cli.json("reset", "--scope", "personal", "--yes") == {"removed": 1, "scope": "personal"}
    cli.add(DEPLOY)
    assert cli.json("reset", "--scope", "all", "--yes")["removed"] == 1
    assert cli.json("stats")["memories"] == 0
    assert findings(cli, "--deep") == {}


def test_bench_measures_every_mode(cli, tmp_path):
    folder = tmp_path / "tiny"
    folder.mkdir()
    documents = [
        {"id": "a", "text": "ships sail the sea"},
        {"id": "b", "text": "trains run on rails"},
    ]
    (folder / "corpus.jsonl").write_text(
        "".join(json.dumps(document) + "\n" for document in documents)
    )
    (folder / "queries.jsonl").write_text(
        json.dumps({"id": "q", "query": "what sails the sea?", "relevant": ["a"]}) + "\n"
    )
    (folder / "meta.json").write_text(json.dumps({"name": "tiny"}))
    rows = cli.json("bench", folder)
    modes = ["hybrid", "vector", "keyword", "newest", "bm25", "convex", "rrf"]
    assert [(row["set"], row["mode"]) for row in rows] == [("tiny", mode) for mode in modes]
    assert all(row["any@5"] == 1.0 for row in rows if row["mode"] != "newest")
    table = cli.ok("bench", folder, "--mode", "keyword", "--asked", "day,month").splitlines()
    assert table[0].split()[:4] == ["set", "asked", "mode", "hit@1"]
    assert table[2].split()[:4] == ["tiny", "month", "keyword", "1.000"]
    assert "is not a time to ask at" in cli.fails("bench", folder, "--asked", "year", code=2)
    assert (
        ElementTree.fromstring(cli.ok("bench", folder, "--mode", "keyword", "--format", "xml"))[
            0
        ].findtext("any_5")
        == "1.0"
    )


KNOWN = "Users sign in with a magic link that is valid for 15 minutes"
# What the demo says, and what then must be seen, as patterns over all that follows up to the next sentence.
PROMISES = {
    "Meaning comes from .*, on this machine": (),
    "There is no embedding model, so this demo finds memories by their words only": (),
    "A kind that is not given is found by rules: the last one is a question": (
        r'add "[^"]+"\nadded \S+ question  Should the invoice[^$]*$',
    ),
    "The same again is noticed, and so is nearly the same": (
        rf"\nduplicate of (\S+): {KNOWN}\n[^#]*\nmuch like \1 \(0\.9\d\): {KNOWN}\nhint: Nothing was added",
    ),
    "The same again is noticed: it is not added": (rf"\nduplicate of \S+: {KNOWN}",),
    "Ask in other words": (
        rf"--mode hybrid [^$]*\n1\. [^$]*{KNOWN}[^#]*--mode vector [^$]*\n1\. [^$]*{KNOWN}",
        r"--mode keyword --limit 2\nNo memories match\.",
    ),
    "Ask by words": (rf"\n1\. [^\n]*\n   {KNOWN}",),
    "what proved useful comes first": (
        r"votes \+5 for (\S+) gotcha [^#]*\n1\. \[[\d.]+\] gotcha  \S+  \1\n",
    ),
    "A decision that changes replaces the old one. The answer is the new one": (
        r"(?:replaces|supersedes) \S+(?:: The orders service)?[^#]*recall [^#]*\n1\. Orders moved from MySQL to PostgreSQL[^#]*\n   supersedes ",
    ),
    "What is private, and what looks like a secret, is taken out": (
        r"added \S+ fact  The staging login is \[REDACTED\] and the token is \[REDACTED:github-token\]\n",
        r"search [^#]*\[REDACTED\]",
    ),
    "Every score can be taken apart": (
        r"\n     relevance +0\.\d{3}  how well",
        r"\n     (?:cosine|bm25) +\d",
    ),
    "Seven memories are kept": (r"\n7 memories\n",),
}


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
    kept = []
    real = settings_commands.play

    def look(args, folder):
        steps = real(args, folder)
        kept.append(b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file()))
        return steps

    monkeypatch.setattr(settings_commands, "play", look)
    shown = cli.ok("demo")
    sentences = re.findall(r"^# (.+)$", shown, re.MULTILINE)
    parts = dict(zip(sentences, re.split(r"^# .+$", shown, flags=re.MULTILINE)[1:], strict=True))
    for sentence, part in parts.items():
        [promise] = [one for one in PROMISES if re.search(one, sentence)] or [sentence]
        for pattern in PROMISES[promise]:
            assert re.search(pattern, part), (sentence, pattern, part)
    assert ("nearly the same" in shown) == by_meaning
    assert b"staging login" in kept[0] and not re.search(rb"hunter2|a1B2a1B2", kept[0])
    assert "which is gone" in shown and not list(tmp_path.glob("bethink-demo-*"))
    assert not (cli.home / "memory.db").exists()


def test_the_demo_as_json_ends_every_step_well(cli):
    assert all(step["exit"] == 0 for step in cli.json("demo"))


# Looks


def test_every_signal_is_explained_in_words():
    from bethink.recall.fuse import Signals

    assert set(Signals._fields) <= set(SIGNALS)


def test_colour_only_on_a_terminal_that_wants_it(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert layout.style("x", "bold") == "x"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert layout.style("x", "bold") == "\x1b[1mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert layout.style("x", "bold") == "x"
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("TERM", "dumb")
    assert layout.style("x", "bold") == "x"


class Arguments:
    quiet, format = False, "text"


@pytest.mark.parametrize(
    ("zone", "midnight"), [("<+14>-14", "T10:00:00.000Z"), ("<-12>12", "T12:00:00.000Z")]
)
def test_a_day_is_a_day_where_the_user_is(cli, monkeypatch, zone, midnight):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        for day in ("tomorrow", "2099-05-01"):
            id = cli.add(f"True until {day}", "--expires", day)
            assert cli.json("get", id)[0]["expires_at"].endswith(midnight)
            assert cli.json("list", "--since", "today", "--until", "tomorrow")[0]["id"] == id
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()


HOSTILE = "evil \x1b]52;c;ZXZpbA==\x07 and \x9b31m text"


@pytest.mark.parametrize("command", ["list", "export", "search evil", "get"])
@pytest.mark.parametrize("format", ["text", "json", "csv", "md", "xml"])
def test_a_terminal_is_given_nothing_that_it_obeys(cli, monkeypatch, command, format):
    id = cli.add(HOSTILE)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    shown = cli.ok(*command.split(), *((id,) if command == "get" else ()), "--format", format)
    assert "evil" in shown
    assert layout.plain(shown) == shown
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    assert cli.json("get", id)[0]["content"] == HOSTILE


def test_progress_is_a_bar_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with Bar(Arguments, "reading") as bar:
        bar(1, 2)
        bar(2, 2)
    assert (
        capsys.readouterr().err
        == f"\r\x1b[Kreading [{'#' * 12}{'.' * 12}] 1 of 2\r\x1b[Kreading [{'#' * 24}] 2 of 2\r\x1b[K"
    )
    with Bar(Arguments, "fetching", layout.size) as bar:
        bar(1_500_000, None)
    assert "fetching 1.5 MB" in capsys.readouterr().err
    bar = Bar(Arguments, "mapping", "files")
    assert bar.line(0, None) == "mapping …"
    assert bar.line(1500.5, 6000, elapsed=60.0).endswith("] 1,500 of 6,000 files, 3 min left")
    assert bar.line(5900, 6000, elapsed=60.0).endswith(", 5 s left")
    assert "left" not in bar.line(1, 6000, elapsed=1.0) + bar.line(6000, 6000, elapsed=60.0)
    for columns in (20, 40, 60):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert len(bar.line(1500, 6000, "reading a-long-transcript-name.jsonl", 60.0)) < columns


@pytest.mark.parametrize(("quiet", "format"), [(False, "text"), (True, "text"), (False, "json")])
def test_progress_is_a_line_every_so_often_elsewhere(capsys, monkeypatch, quiet, format):
    arguments = SimpleNamespace(quiet=quiet, format=format)
    clock = [100.0]
    monkeypatch.setattr("bethink.surface.cli.console.time.monotonic", lambda: clock[0])
    with Bar(arguments, "reading", "files") as bar:
        for done in range(31):
            bar(done, 30)
            clock[0] += 1
    told = capsys.readouterr().err.splitlines()
    wanted = [
        "reading 10 of 30 files, 20 s left",
        "reading 20 of 30 files, 10 s left",
        "reading 30 of 30 files",
    ]
    assert told == (wanted if not quiet and format == "text" else [])


@pytest.mark.parametrize(
    "command", ["init", "index docs", "analyze", "import --markdown docs", "reindex --full"]
)
def test_long_commands_tell_how_far_they_are_of_how_much(cli, monkeypatch, command):
    (cli.project / "docs").mkdir()
    for number in range(3):
        (cli.project / f"docs/{number}.md").write_text(
            f"# Part {number}\n\nThis part is about {number}.\n"
        )
    (cli.project / "pyproject.toml").write_text(
        '[project]\nname = "shop"\ndescription = "Sells things."\n'
    )
    cli.add(DEPLOY)
    monkeypatch.setattr("bethink.surface.cli.console.LINE_EVERY", 0.0)
    told = cli(*command.split())
    assert told.code == 0 and re.search(r"^\w+ [1-9]\d* of [1-9]\d*", told.err, re.MULTILINE), told
    assert " of " not in cli(*command.split(), "--json").err + cli(*command.split(), "--quiet").err


def test_a_fast_loop_is_not_slowed_by_its_bar(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    with Bar(Arguments, "reading") as bar:
        for done in range(1000):
            bar(done, 1001)
    assert capsys.readouterr().err.count("reading") == 1


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries({"id": TEXTS, "content": TEXTS, "lines": st.none() | st.just("1-2")}),
        max_size=4,
    ),
    TEXTS,
)
def test_formats_give_back_what_they_were_given(records, query):
    fields = ("id", "content", "lines")

    def shown(format):
        return "".join(layout.format_records(format, records, fields, "found", "one", query=query))

    assert json.loads(shown("json")) == records
    assert [json.loads(line) for line in shown("jsonl").split("\n") if line] == records
    rows = list(csv.reader(io.StringIO(shown("csv"), newline="")))
    assert rows[1:] == [
        [record["id"], record["content"], record["lines"] or ""] for record in records
    ]
    root = ElementTree.fromstring(shown("xml"))
    assert [one.findtext("content") for one in root] == [
        re.sub(layout._NOT_XML, "", record["content"]) for record in records
    ]
    assert len(shown("md").splitlines()) == len(records) + 2


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=300), st.integers(41, 120))
def test_wrapping_loses_no_word(text, width):
    output_lines = layout.wrap(text, "  ")
    assert "".join(" ".join(output_lines).split()) == "".join(layout.plain(text).split())
    assert len(layout.one_line(text, width)) <= width
