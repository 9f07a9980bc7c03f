"""`install` and `uninstall` through the command line, in a home with blanks and umlauts in its name."""

from __future__ import annotations

import json
import os
import stat
from contextlib import contextmanager, suppress
from itertools import count

import pytest
from agent_files import DOCUMENTS, HOSTS, PROGRAM, TOMLS, home_of, laid, tree

from bethink import skills
from bethink.errors import BethinkError
from bethink.hooks import run
from bethink.hosts import install
from bethink.surface.cli.connect import list_notes
from bethink.surface.mcp.schemas import TOOLS
from bethink.text import textfile

pytest_plugins = ["cli_runner"]

# Every file in which somebody else's entries may stand.
SHARED = {
    "claude": (".claude.json", ".claude/settings.json"),
    "codex": (".codex/config.toml", ".codex/hooks.json"),
    "opencode": (".config/opencode/opencode.json", ".config/opencode/opencode.jsonc"),
    "copilot": (".copilot/mcp-config.json", ".copilot/hooks/bethink.json"),
    "gemini": (".gemini/settings.json",),
    "cursor": (".cursor/mcp.json", ".cursor/hooks.json"),
}
KINDS = ("comments", "CRLF", "other tools' hooks", "empty", "unicode", "one line")


@pytest.fixture
def home(cli, monkeypatch, tmp_path):
    return home_of(monkeypatch, tmp_path)


def statuses(outcome):
    return {one["path"]: one["status"] for one in outcome["files"]}


def test_a_server_that_could_not_start_is_not_registered(cli, home, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    before = tree(home)
    refused = cli.fails("install", "--claude", code=1)
    assert "pip install 'bethink[mcp]'" in refused and "--no-mcp" in refused
    assert tree(home) == before
    cli.ok("install", "--claude", "--no-mcp")
    assert tree(home) != before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", HOSTS)
def test_install_and_uninstall_leave_every_file_as_it_was(cli, home, name, kind):
    table = TOMLS["CRLF" if kind == "CRLF" else "a table"]
    for file in SHARED[name]:
        text = table if file.endswith(".toml") else DOCUMENTS[kind]
        laid(home, file, text, 0o600 if kind == "unicode" else 0o644)
    before = tree(home)
    installed = cli.json("install", f"--{name}", "--no-skills")
    assert {"made", "changed"} >= set(statuses(installed).values()) > set()
    there = tree(home)
    assert set(statuses(cli.json("install", f"--{name}", "--no-skills")).values()) == {"unchanged"}
    assert tree(home) == there != before
    assert cli("uninstall", "--json").code == 0
    assert tree(home) == before


@pytest.mark.parametrize("name", HOSTS)
def test_a_dry_run_shows_all_and_changes_nothing(cli, home, name):
    laid(home, SHARED[name][0], "" if name == "codex" else DOCUMENTS["two blanks"])
    before = tree(home)
    dry = cli.json("install", f"--{name}", "--dry-run")
    assert tree(home) == before
    assert not (cli.home / "install.json").exists() and not (cli.home / "backups").exists()
    real = cli.json("install", f"--{name}")
    for one in (*dry["files"], *real["files"]):
        one["backup"] = bool(one["backup"])
    assert dry["files"] == real["files"]
    for backup in (cli.home / "backups" / "agents").iterdir():
        assert backup.read_bytes() == before[SHARED[name][0]][1]
        assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    there = tree(home)
    planned = statuses(cli.json("uninstall", "--dry-run"))
    assert tree(home) == there
    assert statuses(cli.json("uninstall")) == planned
    assert tree(home) == before, "what was made is gone, folders too"
    assert not (cli.home / "install.json").exists()


def test_all_hosts_at_once_share_their_skills_until_the_last_one_goes(cli, home):
    cli.ok("install", "--all")
    shared = home / ".agents/skills/remember/SKILL.md"
    assert shared.exists()
    cli.ok("uninstall", "--codex", "--gemini", "--opencode")
    assert shared.exists(), "Copilot still needs it"
    assert not (home / ".codex").exists()
    cli.ok("uninstall", "--copilot")
    assert not shared.exists()
    assert (home / ".claude/skills/remember/SKILL.md").exists()
    cli.ok("uninstall")
    assert tree(home) == {}


def test_what_the_user_edits_between_install_and_uninstall_stays(cli, home):
    text, edit = DOCUMENTS["comments"], ('"opus", // for now', '"haiku", // since today')
    added = '\n# mine\n[projects."/x"]\ntrust_level = "trusted"\n'
    settings = laid(home, ".claude/settings.json", text)
    config = laid(home, ".codex/config.toml", TOMLS["a table"])
    hooks = home / ".cursor/hooks.json"
    cli.ok("install", "--claude", "--codex", "--cursor")
    settings.write_text(settings.read_text().replace(*edit))
    config.write_text(config.read_text() + added)
    mine = json.loads(hooks.read_text())
    mine["hooks"]["stop"].append({"command": "./mine.sh"})
    hooks.write_text(json.dumps(mine, indent=4))
    result = statuses(cli.json("uninstall"))
    assert {result[str(path)] for path in (settings, config, hooks)} == {"cleaned"}
    assert settings.read_text() == text.replace(*edit)
    assert config.read_text() == TOMLS["a table"] + added
    theirs = {"version": 1, "hooks": {"stop": [{"command": "./mine.sh"}]}}
    assert json.loads(hooks.read_text()) == theirs


def test_an_upgrade_after_an_edit_still_gives_back_what_was_there(cli, home, monkeypatch):
    text = DOCUMENTS["two blanks"]
    files = [laid(home, name, text) for name in SHARED["claude"]]
    cli.ok("install", "--claude")
    for file in files:
        file.write_text(file.read_text().replace('"opus"', '"haiku"'))
    monkeypatch.setattr(install, "find_command", lambda: ("/new/bethink",))
    cli.ok("install", "--claude")
    assert [file.read_text().count("/new/bethink") for file in files] == [1, 7]
    assert not any(PROGRAM in file.read_text() for file in files)
    cli.ok("uninstall")
    assert [file.read_text() for file in files] == [text.replace('"opus"', '"haiku"')] * 2


def test_what_the_last_version_installed_is_brought_up_to_date_and_given_back(
    cli, home, monkeypatch
):
    laid(home, ".claude/settings.json", DOCUMENTS["comments"])
    before = tree(home)
    cli.ok("install", "--claude", "--opencode")
    record = cli.home / "install.json"
    files = json.loads(record.read_text())["files"]
    rows = {}
    for path, row in files.items():
        hosts = {host: [["text", []]] if row["whole"] else [] for host in row["hosts"]}
        digests = {"after": row["after"][-1], "before": "", "folders": row["folders"]}
        known = {"existed": row["original"] is not None, "original": row["original"] or ""}
        rows[path] = {"hosts": hosts, **known, **digests}
    record.write_text(json.dumps({"version": 2, "files": rows}))
    monkeypatch.setattr(install, "find_command", lambda: ("/new/bethink",))
    cli.ok("install", "--claude", "--opencode")
    assert PROGRAM not in (home / ".claude.json").read_text()
    cli.ok("uninstall")
    assert tree(home) == before


@pytest.mark.parametrize(
    ("data", "mode", "told"),
    [
        (b'{"model": "opus"\n', 0o644, "Line 2 is no JSON"),
        (b"\xff\xfe{\x00}\x00", 0o644, "is no UTF-8 text"),
        (b"[]", 0o644, "is of type list, where an object is needed"),
        (DOCUMENTS["two blanks"].encode(), 0o444, "is read-only"),
    ],
)
def test_a_file_that_cannot_be_changed_is_left_alone_and_the_others_go_on(
    cli, home, data, mode, told
):
    path = laid(home, ".claude/settings.json", "")
    path.write_bytes(data)
    path.chmod(mode)
    result = cli("install", "--claude", "--json")
    found = {one["path"]: one for one in json.loads(result.out)["files"]}
    assert result.code == 1 and found[str(path)]["status"] == "failed"
    assert told in found[str(path)]["reasons"][0]
    assert found[str(home / ".claude.json")]["status"] == "made"
    assert path.read_bytes() == data


def test_a_link_stays_a_link_and_its_target_is_edited(cli, home):
    target = laid(home, "dotfiles/claude.json", DOCUMENTS["comments"], 0o640)
    (home / ".claude").mkdir()
    (home / ".claude/settings.json").symlink_to(target)
    before = tree(home)
    cli.ok("install", "--claude")
    assert (home / ".claude/settings.json").is_symlink()
    assert "session-start" in target.read_text()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    cli.ok("uninstall")
    assert tree(home) == before


class Killed(BaseException):
    pass


@pytest.fixture
def intercept(monkeypatch):
    """Calls something before each writing of a file, as long as the context holds."""

    @contextmanager
    def intercepting(act):
        write = textfile.write

        def watched(place, *arguments):
            act(place)
            return write(place, *arguments)

        with monkeypatch.context() as patched:
            patched.setattr(textfile, "write", watched)
            yield

    return intercepting


def test_a_file_that_changes_at_the_same_moment_is_not_overwritten(cli, home, intercept):
    path = laid(home, ".claude/settings.json", DOCUMENTS["two blanks"])
    theirs = '{"model": "somebody else\'s"}'
    with intercept(lambda place: path.write_text(theirs) if place == path else None):
        assert cli("install", "--claude").code == 1
    assert path.read_text() == theirs
    cli.ok("uninstall")
    assert path.read_text() == theirs


@pytest.mark.parametrize("at", range(1, 10))  # three backups, the record twice, four files
def test_killed_at_any_write_everything_can_be_taken_back(cli, home, intercept, at):
    for name in (".claude.json", ".claude/settings.json", ".codex/hooks.json"):
        laid(home, name, DOCUMENTS["comments"])
    before, calls = tree(home), count(1)

    def kill(place):
        if next(calls) == at:
            raise Killed

    with intercept(kill), pytest.raises(Killed):
        cli("install", "--claude", "--codex", "--no-skills")
    if at % 2:  # or without going on
        cli.ok("install", "--claude", "--codex", "--no-skills")
    cli.ok("uninstall")
    assert tree(home) == before


@pytest.mark.parametrize("trouble", [BethinkError("No space left on device."), Killed()])
@pytest.mark.parametrize("again", [True, False])
def test_a_skill_whose_new_text_could_not_be_written_is_still_ours(
    cli, home, monkeypatch, intercept, trouble, again
):
    before, words = tree(home), ("install", "--codex", "--copilot", "--no-mcp", "--no-hooks")
    cli.ok(*words)
    path = home / ".agents/skills/remember/SKILL.md"
    render = skills.render

    def fail(place):
        if place == path:
            raise trouble

    for version in ("newer", "newest"):
        newer = {at: f"{text}\n{version}\n" for at, text in render("codex").items()}
        monkeypatch.setattr(skills, "render", lambda name, newer=newer: newer)
        with intercept(fail), suppress(Killed):
            assert cli(*words).code == 1
    if again:
        cli.ok(*words)
        assert path.read_text().endswith("newest\n")
    cli.ok("uninstall")
    assert tree(home) == before


@pytest.mark.parametrize("first", [True, False])
def test_a_skill_of_our_name_that_is_somebody_elses_is_kept(cli, home, first):
    def write():
        return laid(home, ".claude/skills/remember/SKILL.md", "---\nname: remember\n---\nmine\n")

    theirs = write() if first else None
    printed = cli.ok("install", "--claude")
    theirs = theirs or write()  # the user made something else of ours
    assert "it was kept" in printed or "it was kept" in cli.ok("install", "--claude")
    cli.ok("uninstall")
    assert theirs.read_text().endswith("mine\n")
    assert list((home / ".claude/skills").iterdir()) == [theirs.parent]


@pytest.mark.parametrize(
    ("words", "answer", "allowed"),
    [
        ((), "\n", True),
        ((), "n\n", False),
        ((), "", False),
        (("--no-mcp",), "\n", False),
        (("--allow-reads",), None, True),
        ((), None, False),
    ],
)
@pytest.mark.parametrize("kind", ["comments", "empty"])
def test_tools_that_only_read_are_offered_an_allow_rule(cli, home, kind, words, answer, allowed):
    path = laid(home, ".claude/settings.json", DOCUMENTS[kind])
    before = tree(home)
    asked = cli("install", "--claude", *words, stdin=answer or "", terminal=answer is not None)
    assert ("[Y/n]" in asked.err) == (answer is not None and not words)
    assert ("--allow-reads" in asked.err) == (answer is None and not words)
    rules = set(install.AGENTS["claude"].reads)
    assert all((f'"{rule}"' in path.read_text()) == allowed for rule in rules)
    installed = tree(home)
    cli.ok("install", "--claude", *(word for word in words if word != "--allow-reads"))
    assert tree(home) == installed, "what was decided holds"
    path.write_text(path.read_text().replace("opus", "haiku"))
    cli.ok("uninstall")
    assert path.read_text() == DOCUMENTS[kind].replace("opus", "haiku")
    path.write_text(DOCUMENTS[kind])
    assert tree(home) == before


OFFER = "at most 50,000 tokens of your plan a day"


@pytest.mark.parametrize(
    ("words", "answer", "settings", "offered", "chosen"),
    [
        ((), "n\ny\n", "", True, "claude"),
        ((), "n\n\n", "", True, ""),
        ((), None, "", True, ""),
        (("--dry-run",), "n\ny\n", "", True, ""),
        (("--no-hooks",), None, "", False, ""),
        ((), None, 'llm = "none"\n', False, "none"),
        ((), None, "llm_daily_tokens = 0\n", False, ""),
    ],
)
def test_the_users_own_claude_is_offered_with_what_it_takes_a_day(
    cli, home, monkeypatch, tmp_path, words, answer, settings, offered, chosen
):
    program = laid(tmp_path, "programs/claude", "#!/bin/sh\n", 0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    laid(cli.home, "config.toml", settings)
    asked = cli("install", "--claude", *words, stdin=answer or "", terminal=answer is not None)
    said = [line for line in asked.err.splitlines() if OFFER in line]
    assert len(said) == offered
    by_command = "`bethink config llm claude`" in "".join(said)
    assert by_command == (offered and (answer is None or "--dry-run" in words))
    assert cli.json("config", "llm")["value"] == chosen
    if chosen == "claude":
        assert OFFER not in cli("install", "--claude").err, "it is offered once"


def test_a_rule_that_the_user_had_stays(cli, home):
    rule = install.AGENTS["claude"].reads[0]
    text = json.dumps({"permissions": {"allow": [rule, "Bash(ls:*)"]}}, indent=2)
    path = laid(home, ".claude/settings.json", text)
    cli.ok("install", "--claude", "--allow-reads")
    path.write_text(path.read_text().replace('"hooks": {', '"env": {},\n  "hooks": {'))
    cli.ok("uninstall")
    assert json.loads(path.read_text()) == {**json.loads(text), "env": {}}


def test_the_rules_name_every_tool_that_only_reads():
    reading = [name for name, tool in TOOLS.items() if tool.hints.get("readOnlyHint")]
    named = [rule.rpartition("__")[2] for rule in install.AGENTS["claude"].reads if "__" in rule]
    assert named == reading


def test_a_plugin_that_the_user_changed_is_kept_and_disarmed(cli, home):
    cli.ok("install", "--opencode")
    plugin = home / ".config/opencode/plugins/bethink.js"
    edited = plugin.read_text().replace("const LIMIT = 8000", "const LIMIT = 4000")
    plugin.write_text(edited)
    assert "it was kept" in cli.ok("uninstall")
    assert plugin.read_text() == edited.replace(f'["{PROGRAM}"]', "[]") != edited
    plugin.write_text(edited.replace(f'const COMMAND = ["{PROGRAM}"]', "let COMMAND"))
    cli.ok("install", "--opencode")
    assert plugin.read_text().count("let COMMAND") == 1, "it is the user's now"


@pytest.mark.parametrize("name", HOSTS)
def test_a_part_that_is_left_out_later_goes(cli, home, name):
    for file in SHARED[name]:
        laid(home, file, TOMLS["a table"] if file.endswith(".toml") else DOCUMENTS["comments"])
    before = tree(home)
    cli.ok("install", f"--{name}", "--no-hooks", "--no-skills")
    server_alone = tree(home)
    cli.ok("install", f"--{name}")
    dry = cli.json("install", f"--{name}", "--no-hooks", "--no-skills", "--dry-run")
    real = cli.json("install", f"--{name}", "--no-hooks", "--no-skills")
    assert statuses(dry) == statuses(real)
    assert tree(home) == server_alone
    cli.ok("uninstall")
    assert tree(home) == before


def test_without_a_name_the_hosts_that_are_here_are_connected(cli, home, monkeypatch, tmp_path):
    assert "None of the agents" in cli.fails("install", code=1)
    (home / ".gemini").mkdir()
    programs = tmp_path / "programs"
    programs.mkdir()
    laid(programs, "codex", "#!/bin/sh\n", 0o755)
    monkeypatch.setenv("PATH", str(programs))
    result = cli("install")
    assert "found: Codex, Gemini CLI" in result.err
    assert (home / ".codex/hooks.json").exists()
    assert not (home / ".claude.json").exists()


MOVED = """
CLAUDE_CONFIG_DIR/.claude.json CLAUDE_CONFIG_DIR/settings.json CODEX_HOME/config.toml CODEX_HOME/hooks.json
COPILOT_HOME/hooks/bethink.json COPILOT_HOME/mcp-config.json GEMINI_CLI_HOME/.gemini/settings.json XDG_CONFIG_HOME/opencode/opencode.json
XDG_CONFIG_HOME/opencode/plugins/bethink.js
"""


def test_variables_of_the_hosts_move_their_files(cli, home, monkeypatch, tmp_path):
    for variable in {path.partition("/")[0] for path in MOVED.split()}:
        monkeypatch.setenv(variable, str(tmp_path / "moved" / variable))
    names = ("--claude", "--codex", "--copilot", "--gemini", "--opencode")
    cli.ok("install", *names, "--no-skills")
    made = [path for path in (tmp_path / "moved").rglob("*") if path.is_file()]
    assert sorted(str(path.relative_to(tmp_path / "moved")) for path in made) == MOVED.split()
    assert tree(home) == {}


ENABLED = '{"enabledPlugins": {"other@x": true, "bethink@bethink": true}}'


@pytest.mark.parametrize(
    ("name", "file", "text"),
    [
        ("claude", ".claude/settings.json", ENABLED),
        ("copilot", ".copilot/settings.json", ENABLED),
        ("codex", ".codex/config.toml", '[plugins."bethink@bethink"]\nenabled = true\n'),
    ],
)
def test_an_installed_plugin_is_not_doubled(cli, home, name, file, text):
    path = laid(home, file, text)
    before = tree(home)
    assert "has the plugin bethink@bethink" in cli("install", f"--{name}").err
    assert tree(home) == before
    path.write_text(text.replace("true", "false"))
    assert cli("install", f"--{name}", "--dry-run", "--json").out.count("made") > 0


def test_a_damaged_record_is_told_and_force_finds_the_entries(cli, home):
    laid(home, ".claude/settings.json", DOCUMENTS["other tools' hooks"])
    cli.ok("install", "--claude", "--cursor", "--no-skills")
    record = cli.home / "install.json"
    record.write_text("{")
    assert "is damaged" in cli.fails("uninstall", code=1)
    record.unlink()
    settings = home / ".claude/settings.json"
    assert "--force" in cli("uninstall").err and "session-start" in settings.read_text()
    cli.ok("uninstall", "--force")
    assert "bethink" not in settings.read_text() and "say done" in settings.read_text()
    assert "bethink" not in (home / ".cursor/hooks.json").read_text()


def test_a_server_that_the_user_registered_is_kept_and_survives(cli, home):
    text = '{"mcpServers": {"bethink": {"type": "stdio", "command": "uvx", "args": ["bethink", "mcp"], "env": {}}}}'
    path = laid(home, ".claude.json", text)
    assert "from somebody else, and was kept" in cli.ok("install", "--claude")
    cli.ok("uninstall")
    assert path.read_text() == text
    cli.ok("install", "--claude", "--force")
    assert PROGRAM in path.read_text()
    cli.ok("uninstall")
    assert path.read_text() == text


def test_secrets_beside_a_change_are_not_printed(cli, home):
    key = "sk-ant-api03-" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z" * 2
    laid(home, ".claude.json", json.dumps({"apiKey": key}, indent=2))
    assert key not in cli.ok("install", "--claude")
    assert key in (home / ".claude.json").read_text()


def test_hooks_of_a_program_with_blanks_in_its_path_are_quoted_for_the_shell(cli, home):
    cli.ok("install", "--codex", "--claude")
    files = (".codex/hooks.json", ".claude/settings.json")
    settings = [json.loads((home / file).read_text()) for file in files]
    codex, claude = (one["hooks"]["Stop"][0]["hooks"][0] for one in settings)
    assert codex["command"] == "'/opt/my tools/bethink' hook stop --host codex"
    assert (claude["command"], claude["args"]) == (PROGRAM, ["hook", "stop", "--host", "claude"])


def test_warm_prompts_are_answered_by_the_server_and_never_twice(cli, home):
    def prompts():
        return json.loads((home / ".claude/settings.json").read_text())["hooks"]["UserPromptSubmit"]

    cli.ok("install", "--claude", "--warm")
    assert [one["hooks"][0]["type"] for one in prompts()] == ["mcp_tool"]
    cli.ok("install", "--claude")
    assert [one["hooks"][0]["type"] for one in prompts()] == ["command"]
    cli.ok("uninstall")
    assert tree(home) == {}


def test_a_program_of_a_passing_environment_is_passed_over_or_told(
    cli, home, monkeypatch, tmp_path
):
    monkeypatch.undo()
    passing = laid(tmp_path, ".cache/uv/archive-v0/x/bin/bethink", "#!/bin/sh\n", 0o755)
    lasting = laid(tmp_path, "bin/bethink", "#!/bin/sh\n", 0o755)
    monkeypatch.setattr("sys.argv", [str(passing)])
    monkeypatch.setattr("sys.executable", str(passing.parent / "python"))
    monkeypatch.setenv("PATH", f"{passing.parent}{os.pathsep}{lasting.parent}")
    assert install.find_command() == (str(lasting),)
    monkeypatch.setenv("PATH", str(passing.parent))
    assert install.find_command() == (str(passing.parent / "python"), "-P", "-m", "bethink")
    where = install.InstallPlace(home, {}, install.find_command())
    assert "uv tool install" in list_notes(where, {})[0]


@pytest.mark.parametrize("variable", ["COPILOT_CLI", "CURSOR_VERSION"])
def test_a_projects_hooks_for_claude_are_silent_in_hosts_that_run_them_too(
    cli, monkeypatch, variable
):
    monkeypatch.delenv("CLAUDECODE", raising=False)
    assert run.run("pre-compact", "claude", b"{}")
    monkeypatch.setenv(variable, "1")
    assert run.run("pre-compact", "claude", b"{}") == ""
    monkeypatch.setenv("CLAUDECODE", "1")  # Claude Code, started by such a host
    assert run.run("pre-compact", "claude", b"{}")
