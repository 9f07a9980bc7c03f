"""Skills: valid in every host, and each command that they name works as it stands there."""

import json
import re
import shlex
import shutil
import subprocess

import pytest
import yaml
from transcripts import claude_line, written

from bethink import skills
from bethink.hooks.state import HOSTS

pytest_plugins = ["cli_runner"]

# The open format: https://agentskills.io
FORMAT = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
CLAUDE = FORMAT | {"argument-hint", "context", "background"}
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(bethink [^`]+)`")
HEREDOC = re.compile(r"(.+) <<'([A-Z]+)'\n(.*)\n\2\n", re.DOTALL)
NAMES = sorted(skills.NAMES)


def parts(text):
    _, front, body = text.split("---\n", 2)
    return yaml.safe_load(front), body


def skill(name, host="codex"):
    return parts(skills.render(host)[f"{name}/SKILL.md"])


# The format


def test_every_host_gets_every_skill_and_each_file_here_is_one():
    expected = set(
        "remember memory-stats memory-topics memory-backfill memory-add memory-search "
        "resolve-duplicates resolve-contradictions handoff".split()
    )
    assert set(skills.NAMES) == expected == {file.stem for file in skills.FOLDER.glob("*.md")}
    for host in HOSTS:
        assert set(skills.render(host)) == {f"{name}/SKILL.md" for name in expected}


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", NAMES)
def test_a_skill_keeps_the_rules_of_the_format(name, host):
    front, body = skill(name, host)
    assert set(front) <= (CLAUDE if host == "claude" else FORMAT - {"allowed-tools"})
    assert front["name"] == name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) and len(name) <= 64
    assert 1 <= len(front["description"]) <= 1024
    assert re.search(r"\. Use (when|at) ", front["description"]), "it says when to use it"
    assert all(isinstance(value, str) for key, value in front.items() if key != "background")
    assert len(front["compatibility"]) <= 500
    assert body.count("\n") < 200
    assert max(map(len, body.splitlines())) <= 300


@pytest.mark.parametrize("name", NAMES)
def test_only_claude_code_is_told_what_only_it_understands(name):
    plain, claude = (
        skills.render("codex")[f"{name}/SKILL.md"],
        skills.render("claude")[f"{name}/SKILL.md"],
    )
    assert parts(plain)[1] == parts(claude)[1]
    assert set(parts(claude)[0]) > set(parts(plain)[0])
    assert "!`" not in claude, "it would be run before anybody saw it"
    assert not re.search(r"\$[A-Z\d{]", claude), "Claude Code would put something in its place"


# The commands


@pytest.fixture
def store_kind():
    return "sqlite"  # a folder that is put back before each command


@pytest.fixture
def shop(cli, tmp_path):
    """A small database in which everything that skills speak of is there, and what stands for it in their commands."""
    cli.project.joinpath(".git").mkdir()
    cli.project.joinpath(".git", "HEAD").write_text("ref: refs/heads/main\n")
    said = [
        ("Why did we leave MySQL?", "user"),
        ("We left MySQL because of row level security.", "assistant"),
    ]
    lines = [
        claude_line(number, text, role, cwd=str(cli.project))
        for number, (text, role) in enumerate(said)
    ]
    transcript = written(tmp_path / "talk.jsonl", *lines)
    cli.ok("backfill", transcript)
    told = ("--kind", "decision", "--for-agent")  # what an agent told, an agent may change
    keep = cli.add("We deploy from main, never from a branch", *told)
    other = cli.add("We deploy from main and never from a branch", *told, "--no-dedup")
    cli.ok("link", keep, "contradicts", other)
    for text in ("The export runs at two in the morning", "The export runs at two, in the morning"):
        cli.ok("add", text, "--kind", "decision", "--no-dedup")
    cli.ok("handoff", "save", "--summary", "All is well")
    session = cli.json("topics")[0]["id"]
    words = {
        "KEEP": keep,
        "NEWER": keep,
        "ID": keep,
        "OTHER": other,
        "OLDER": other,
        "SESSION": session,
        "PATH": str(transcript),
    }
    return cli, words


def commands(name):
    """Each command of a skill, with what it reads on stdin."""
    _, body = skill(name)
    body = body.split("## When it fails")[0]
    found = []
    for block in SHELL.findall(body):
        heredoc = HEREDOC.fullmatch(block)
        found += (
            [(heredoc[1], heredoc[3] + "\n")]
            if heredoc
            else [(line, "") for line in block.splitlines()]
        )
    without = SHELL.sub("", body)
    return found + [(line, "some text\n") for line in INLINE.findall(without)]


@pytest.mark.parametrize("name", NAMES)
def test_every_command_that_a_skill_names_works(shop, name, tmp_path):
    cli, words = shop
    found = commands(name)
    assert found
    shutil.copytree(cli.home, tmp_path / "before")
    for line, stdin in found:
        # Each on its own: some of them are alternatives.
        shutil.rmtree(cli.home)
        shutil.copytree(tmp_path / "before", cli.home)
        given = [words.get(word, word) for word in shlex.split(line)]
        assert given[0] == "bethink", line
        if given[1] == "restore":
            cli.ok("forget", given[2])
        result = cli(*given[1:], stdin=stdin)
        # `doctor` ends with 1 where it finds something to mend, `backfill` alone where nothing was said yet.
        may_end = (0, 1) if given[1] == "doctor" or given[1:] == ["backfill"] else (0,)
        assert result.code in may_end, (line, result)
        assert "Traceback" not in result.err


@pytest.mark.parametrize("name", NAMES)
def test_options_that_a_skill_names_in_passing_exist(cli, name):
    _, body = skill(name)
    helps = "".join(
        cli.ok(command, "--help")
        for command in sorted({line.split()[1] for line, _ in commands(name)})
    )
    named = set(re.findall(r"`(--[a-z-]+)", body))
    assert {option for option in named if option not in helps} == set()


def test_no_command_puts_text_of_the_user_on_the_command_line():
    """A question may hold quotes, `$(…)` and backticks; every place for one is between quoted marks."""
    for name in ("remember", "memory-search", "memory-add", "handoff", "resolve-duplicates"):
        assert [line for line, stdin in commands(name) if stdin and "<<" not in line], name
    hostile = "'; touch stolen; echo \"$(touch stolen)`touch stolen`\n"
    block = next(block for block in SHELL.findall(skill("remember")[1]) if "<<" in block)
    told = HEREDOC.fullmatch(block)
    script = f"bethink() {{ cat; }}\n{told[1]} <<'{told[2]}'\n{hostile}{told[2]}\n"
    out = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, cwd="/")
    assert out.stdout == hostile


DATED, ID = r"\d{4}-\d\d-\d\d", r"[0-9a-f-]{13,}"


@pytest.mark.parametrize(
    ("words", "shape"),
    [
        (("recall", "deploy"), rf"^{ID} +{DATED}  decision      note:\S+\n  We deploy"),
        (("search", "deploy from main"), rf"^{ID} +{DATED}  .+ \(score .+\)\n  We deploy"),
        (("topics",), rf"^{DATED} \d\d:\d\d  claude  .+\n  \S+\n  - .+  \(lines \d+-\d+\)$"),
        (("contradictions",), rf"^.+ \(\d\.\d\d\)\n{ID} +{DATED}  decision"),
        (("duplicates",), rf"^says the same \(\d\.\d\d\)\n{ID} +{DATED}  decision"),
        (("add", "Something new"), "^added "),
        (("add", "The export runs at two in the morning"), "^duplicate of "),
        (("handoff", "save", "--summary", "Other"), "^saved "),
    ],
)
def test_what_outputs_look_like_is_what_they_look_like(shop, words, shape):
    cli, _ = shop
    assert re.search(shape, cli.ok(*words), re.MULTILINE)


# opencode


def test_the_opencode_plugin_starts_the_installed_command():
    text = skills.opencode_plugin(["/home/ada lovelace/é/python", "-m", "bethink"])
    line = next(line for line in text.splitlines() if line.startswith("const COMMAND"))
    assert json.loads(line.partition("=")[2]) == ["/home/ada lovelace/é/python", "-m", "bethink"]
    assert '"opencode"' in text and text.count("const COMMAND") == 1


def test_remember_runs_in_a_context_of_its_own_and_is_waited_for():
    front, body = skill("remember", "claude")
    assert (front["context"], front["background"], front["argument-hint"]) == (
        "fork",
        False,
        "[question]",
    )
    assert "Bash(bethink recall *)" in front["allowed-tools"]
    assert "bethink recall -" in body
