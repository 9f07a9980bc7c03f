"""Skills: valid in every host, and each command that they name works as it stands there."""

import json
import re
import shlex
import subprocess

import pytest
import yaml
from transcripts import claude_line, written

from bethink import skills
from bethink.agents import opencode
from bethink.agents.install import find_connectable, list_connectable
from bethink.recall.shape import tokens

STORE = "sqlite"  # a folder that is put back before each command
# The open format: https://agentskills.io
FORMAT = {"name", "description", "compatibility"}
CLAUDE = FORMAT | {"allowed-tools", "argument-hint", "context", "background"}
USERS_WORDS = ("search", "add", "handoff", "duplicates")
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(bethink [^`]+)`")
HEREDOC = re.compile(r"(.+) <<'([A-Z]+)'\n(.*)\n\2\n", re.DOTALL)
SKILLS = ("memory", "remember")
REFERENCES = "add backfill contradictions duplicates handoff search stats topics".split()
EXPECTED = (*SKILLS, *(f"references/{name}" for name in REFERENCES))


def fields_of(host):
    return find_connectable(host).files.skill_fields


def skill(name, host="codex"):
    """The front matter and the body of a skill, or of a file that belongs to one."""
    if name not in SKILLS:
        return {}, skills.render(fields_of(host))[f"memory/{name}.md"]
    _, front, body = skills.render(fields_of(host))[f"{name}/SKILL.md"].split("---\n", 2)
    return yaml.safe_load(front), body


@pytest.mark.parametrize("host", list_connectable())
def test_every_host_gets_every_skill(host):
    skills_files = (f"{name}/SKILL.md" for name in SKILLS)
    references = (f"memory/{name}.md" for name in EXPECTED[2:])
    assert set(skills.render(fields_of(host))) == {*skills_files, *references}


@pytest.mark.parametrize("name", SKILLS)
@pytest.mark.parametrize("host", list_connectable())
class TestSkill:
    def test_its_front_matter_has_the_fields_of_the_format(self, host, name):
        front, _ = skill(name, host)
        assert (FORMAT if host == "claude" else set()) < set(front) <= CLAUDE
        assert host == "claude" or set(front) == FORMAT

    def test_its_name_is_that_of_its_folder(self, host, name):
        assert skill(name, host)[0]["name"] == name

    def test_its_texts_have_the_length_of_the_format(self, host, name):
        front, body = skill(name, host)
        assert 1 <= len(front["description"]) <= 1024
        assert len(front["compatibility"]) <= 500
        assert body.count("\n") < 200 and max(map(len, body.splitlines())) <= 300

    def test_it_says_when_to_use_it(self, host, name):
        assert re.search(r"\. Use (when|at) ", skill(name, host)[0]["description"])

    def test_every_host_gets_the_same_text(self, host, name):
        assert skill(name, host)[1] == skill(name)[1]

    def test_claude_code_runs_and_replaces_nothing_in_it(self, host, name):
        assert re.search(r"!`|\$[A-Z\d{]", skill(name, host)[1]) is None


@pytest.fixture
def shop(cli, tmp_path):
    """A small database in which everything that skills speak of is there, and what stands for it in their commands."""
    cli.project.joinpath(".git").mkdir()
    cli.project.joinpath(".git", "HEAD").write_text("ref: refs/heads/main\n")
    place = {"cwd": str(cli.project)}
    asked = claude_line(0, "Why did we leave MySQL?", **place)
    answer = "We left MySQL because of row level security."
    said = (asked, claude_line(1, answer, "assistant", **place))
    transcript = written(tmp_path / "talk.jsonl", *said)
    cli.ok("backfill", transcript)
    told = ("--kind", "decision", "--for-agent")  # what an agent told, an agent may change
    keep = cli.add("We deploy from main, never from a branch", *told)
    other = cli.add("We deploy from main and never from a branch", *told, "--no-dedup")
    cli.ok("link", keep, "contradicts", other)
    for text in ("The export runs at two in the morning", "The export runs at two, in the morning"):
        cli.ok("add", text, "--kind", "decision", "--no-dedup")
    cli.ok("handoff", "save", "--summary", "All is well")
    words = dict.fromkeys(("KEEP", "NEWER", "ID"), keep) | dict.fromkeys(("OTHER", "OLDER"), other)
    return cli, words | {"SESSION": cli.json("topics")[0]["id"], "PATH": str(transcript)}


def commands(name):
    """Each command of a skill, with what it reads on stdin."""
    body = skill(name)[1].split("## When it fails")[0]
    found = []
    for block in SHELL.findall(body):
        heredoc = HEREDOC.fullmatch(block)
        lines = [(line, "") for line in block.splitlines()]
        found += [(heredoc[1], heredoc[3] + "\n")] if heredoc else lines
    return found + [(line, "some text\n") for line in INLINE.findall(SHELL.sub("", body))]


@pytest.mark.parametrize(
    "name", ["remember", "memory", *(f"references/{one}" for one in USERS_WORDS)]
)
def test_a_skill_puts_text_of_the_user_between_quoted_marks(name):
    """A question may hold quotes, `$(…)` and backticks."""
    assert [line for line, stdin in commands(name) if stdin and "<<" not in line]


def test_hostile_text_between_the_marks_is_not_run():
    hostile = "'; touch stolen; echo \"$(touch stolen)`touch stolen`\n"
    block = next(block for block in SHELL.findall(skill("remember")[1]) if "<<" in block)
    found = HEREDOC.fullmatch(block)
    script = f"bethink() {{ cat; }}\n{found[1]} <<'{found[2]}'\n{hostile}{found[2]}\n"
    out = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, cwd="/")
    assert out.stdout == hostile


def test_remember_has_its_own_context_in_claude_code():
    front, _ = skill("remember", "claude")
    assert (front["context"], front["background"]) == ("fork", False)
    assert front["argument-hint"] == "[question]"


def test_remember_may_run_its_command_in_claude_code():
    front, body = skill("remember", "claude")
    assert "Bash(bethink recall *)" in front["allowed-tools"] and "bethink recall -" in body


def test_the_plugin_of_opencode_starts_the_installed_command():
    command = ["/home/ada lovelace/é/python", "-m", "bethink"]
    text = opencode.render_script(command)
    (line,) = (line for line in text.splitlines() if line.startswith("const COMMAND"))
    assert json.loads(line.partition("=")[2]) == command
    assert '"opencode"' in text and text.count("const COMMAND") == 1


OUTPUTS = [
    (
        ("recall", "deploy"),
        r"^[0-9a-f-]{13,} +\d{4}-\d\d-\d\d  decision      note:\S+\n  We deploy",
    ),
    (
        ("search", "deploy from main"),
        r"^[0-9a-f-]{13,} +\d{4}-\d\d-\d\d  .+ \(score .+\)\n  We deploy",
    ),
    (("topics",), r"^\d{4}-\d\d-\d\d \d\d:\d\d  claude  .+\n  \S+\n  - .+  \(lines \d+-\d+\)$"),
    (("contradictions",), r"^.+ \(\d\.\d\d\)\n[0-9a-f-]{13,} +\d{4}-\d\d-\d\d  decision"),
    (("duplicates",), r"^says the same \(\d\.\d\d\)\n[0-9a-f-]{13,} +\d{4}-\d\d-\d\d  decision"),
    (("add", "Something new"), "^added "),
    (("add", "The export runs at two in the morning"), "^already stored as "),
    (("handoff", "save", "--summary", "Other"), "^saved "),
]


@pytest.mark.parametrize(("words", "shape"), OUTPUTS)
def test_a_command_of_a_skill_prints_what_the_skill_says(shop, words, shape):
    assert re.search(shape, shop[0].ok(*words), re.MULTILINE)


@pytest.mark.parametrize("name", EXPECTED)
def test_every_option_of_a_skill_is_one_of_its_commands(cli, name):
    used = sorted({line.split()[1] for line, _ in commands(name)})
    helps = "".join(cli.ok(command, "--help") for command in used)
    named = set(re.findall(r"`(--[a-z-]+)", skill(name)[1]))
    assert used and {option for option in named if option not in helps} == set()


@pytest.mark.parametrize(
    ("line", "stdin"),
    dict.fromkeys(one for name in EXPECTED for one in commands(name)),
    ids=lambda one: one,
)
def test_every_command_of_a_skill_works(shop, line, stdin):
    cli, words = shop
    given = [words.get(word, word) for word in shlex.split(line)]
    assert given[0] == "bethink"
    if given[1] == "restore":
        cli.ok("forget", given[2])
    result = cli(*given[1:], stdin=stdin)
    # `doctor` ends with 1 where it finds something to mend, `backfill` alone where nothing was said yet.
    may_end = (0, 1) if given[1] == "doctor" or given[1:] == ["backfill"] else (0,)
    assert result.code in may_end and "Traceback" not in result.err


@pytest.mark.parametrize("name", REFERENCES)
def test_a_skill_names_each_file_that_belongs_to_it(name):
    assert f"`references/{name}.md`" in skill("memory")[1]


def test_the_descriptions_of_all_skills_cost_a_session_little():
    fronts = [skill(name)[0] for name in SKILLS]
    assert sum(tokens(f"{one['name']}{one['description']}") for one in fronts) <= 220
