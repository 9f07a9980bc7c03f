"""`install` and `uninstall` through the command line, in a home with blanks and umlauts in its name."""

import json
import os
import re
import stat
import subprocess
import tomllib
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import pytest
from agent_files import DOCUMENTS, HOSTS, PROGRAM, TOMLS, laid, statuses, tree

from bethink import skills
from bethink.agents import install
from bethink.agents.agent import InstallFiles, find_folder
from bethink.app.cli.connect import list_notes
from bethink.errors import BethinkError
from bethink.hooks import run
from bethink.plugins import AGENTS
from bethink.text import textfile


def list_shared(name: str) -> list[str]:
    """Return every file of an agent that may hold entries of somebody else."""
    agent = AGENTS.find(name)
    files = agent.install
    places = [(files.server_folder or agent.folder, one) for one in files.servers]
    if files.hooks and not files.script:
        places.append((files.hooks_folder or agent.folder, files.hooks))
    found = (find_folder(folder, {}, Path()) / one for folder, one in places)
    return list(dict.fromkeys(map(str, found)))


def lay_shared(home, name, kind, mode=0o644):
    table = TOMLS["CRLF" if kind == "CRLF" else "a table"]
    for file in list_shared(name):
        laid(home, file, table if file.endswith(".toml") else DOCUMENTS[kind], mode)
    return tree(home)


def test_a_server_that_could_not_start_is_not_registered(cli, home, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    before = tree(home)
    refused = cli.fails("install", "--claude", code=1)
    assert "pip install 'bethink[mcp]'" in refused and "--no-mcp" in refused
    assert tree(home) == before
    cli.ok("install", "--claude", "--no-mcp")
    assert tree(home) != before


@pytest.mark.parametrize("kind", ["comments", "CRLF", "other tools' hooks", "empty"])
@pytest.mark.parametrize("name", HOSTS)
def test_uninstall_leaves_every_file_as_it_was(cli, home, name, kind):
    before = lay_shared(home, name, kind, 0o600 if kind == "comments" else 0o644)
    words = ("install", f"--{name}", *(() if kind == "comments" else ("--no-skills",)))
    dry = cli.json(*words, "--dry-run")
    assert tree(home) == before, "a dry run changes nothing"
    assert not (cli.home / "install.json").exists() and not (cli.home / "backups").exists()
    installed = cli.json(*words)
    assert {"made", "changed"} >= set(statuses(installed).values()) > set()
    for one in (*dry["files"], *installed["files"]):
        one["backup"] = bool(one["backup"])
    assert dry["files"] == installed["files"], "and shows all"
    assert [
        backup
        for backup in (cli.home / "backups" / "agents").iterdir()
        if backup.read_bytes() not in {before[file][1] for file in list_shared(name)}
        or stat.S_IMODE(backup.stat().st_mode) != 0o600
    ] == []
    there = tree(home)
    assert set(statuses(cli.json(*words)).values()) == {"unchanged"}
    planned = statuses(cli.json("uninstall", "--dry-run"))
    assert tree(home) == there != before
    assert statuses(cli.json("uninstall")) == planned
    assert tree(home) == before, "what was made is gone, folders too"
    assert not (cli.home / "install.json").exists()


def test_shared_skills_stay_until_the_last_agent_is_disconnected(cli, home):
    cli.ok("install", "--all")
    shared = home / ".agents/skills/remember/SKILL.md"
    assert shared.exists()
    sharing = [
        one for one in HOSTS if AGENTS.find(one).install.skills == InstallFiles([], "").skills
    ]
    cli.ok("uninstall", *(f"--{one}" for one in sharing if one != "copilot"))
    assert shared.exists(), "Copilot still needs it"
    assert not (home / ".codex").exists()
    cli.ok("uninstall", "--copilot")
    assert not shared.exists()
    assert (home / ".claude/skills/remember/SKILL.md").exists()
    cli.ok("uninstall")
    assert tree(home) == {}


def test_a_hook_command_is_quoted(cli, home):
    def hooks(event, host="claude/settings"):
        groups = json.loads((home / f".{host}.json").read_text())["hooks"][event]
        return [one["hooks"][0] for one in groups]

    cli.ok("install", "--codex", "--claude", "--warm")
    (codex,), (claude,) = hooks("Stop", "codex/hooks"), hooks("Stop")
    assert codex["command"] == "'/opt/my tools/bethink' hook stop --host codex"
    assert (claude["command"], claude["args"]) == (PROGRAM, ["hook", "stop", "--host", "claude"])


def test_the_prompt_hook_is_an_mcp_tool_only_if_warm(cli, home):
    def hooks(event, host="claude/settings"):
        groups = json.loads((home / f".{host}.json").read_text())["hooks"][event]
        return [one["hooks"][0] for one in groups]

    cli.ok("install", "--codex", "--claude", "--warm")
    assert [one["type"] for one in hooks("UserPromptSubmit")] == ["mcp_tool"]
    cli.ok("install", "--claude")
    assert [one["type"] for one in hooks("UserPromptSubmit")] == ["command"]
    cli.ok("uninstall")
    assert tree(home) == {}


def test_claude_code_reports_failed_calls_of_shells_reads_and_mcp_tools(cli, home):
    cli.ok("install", "--claude")
    settings = json.loads((home / ".claude/settings.json").read_text())
    (group,) = settings["hooks"]["PostToolUseFailure"]
    assert group["matcher"] == "Bash|Read|mcp__.*"
    assert group["hooks"][0]["args"] == ["hook", "tool-failure", "--host", "claude"]


def test_copilot_goes_on_if_the_program_of_a_hook_is_gone(cli, home):
    cli.ok("install", "--copilot")
    (hook,) = json.loads((home / ".copilot/hooks/bethink.json").read_text())["hooks"]["PreToolUse"]
    gone = re.sub(r"^.*(?= hook )", "/nowhere/bethink", hook["bash"])
    done = subprocess.run(["/bin/sh", "-c", gone], check=False, capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"")


# What an agent's file of hooks holds only if hooks run at tool calls.
TOOL_HOOKS = [
    pytest.param("claude", ".claude/settings.json", "PostTool", id="claude"),
    pytest.param("codex", ".codex/hooks.json", "PostTool", id="codex"),
    pytest.param("opencode", ".config/opencode/plugins/bethink.js", '"read"', id="opencode"),
    pytest.param("copilot", ".copilot/hooks/bethink.json", "PostTool", id="copilot"),
    pytest.param("gemini", ".gemini/settings.json", "AfterTool", id="gemini"),
    pytest.param("cursor", ".cursor/hooks.json", "postTool", id="cursor"),
]


@pytest.mark.parametrize(("name", "file", "mark"), TOOL_HOOKS)
def test_hooks_at_tool_calls_can_be_declined(cli, home, name, file, mark):
    cli.ok("install", f"--{name}", "--no-tool-hooks")
    text = (home / file).read_text()
    assert "session-start" in text
    assert mark not in text


@pytest.mark.parametrize(("name", "file", "mark"), TOOL_HOOKS)
def test_declining_hooks_at_tool_calls_removes_them(cli, home, name, file, mark):
    cli.ok("install", f"--{name}")
    assert mark in (home / file).read_text()
    cli.ok("install", f"--{name}", "--no-tool-hooks")
    assert mark not in (home / file).read_text()


def test_a_dry_run_shows_that_hooks_at_tool_calls_are_left_out(cli, home):
    assert "PostToolBatch" in cli.ok("install", "--claude", "--dry-run")
    declined = cli.ok("install", "--claude", "--dry-run", "--no-tool-hooks")
    assert "SubagentStart" in declined
    assert "PostTool" not in declined


def test_edits_made_after_installing_survive_an_uninstall(cli, home):
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
    files = [laid(home, name, text) for name in list_shared("claude")]
    cli.ok("install", "--claude")
    for file in files:
        file.write_text(file.read_text().replace('"opus"', '"haiku"'))
    monkeypatch.setattr(install, "find_command", lambda: ("/new/bethink",))
    cli.ok("install", "--claude")
    assert [file.read_text().count("/new/bethink") for file in files] == [1, 11]
    assert not any(PROGRAM in file.read_text() for file in files)
    cli.ok("uninstall")
    assert [file.read_text() for file in files] == [text.replace('"opus"', '"haiku"')] * 2


@pytest.mark.parametrize(
    ("data", "mode", "told"),
    [
        pytest.param(b'{"model": "opus"\n', 0o644, "Line 2 is not valid JSON", id="model-opus"),
        pytest.param(b"\xff\xfe{\x00}\x00", 0o644, "is no UTF-8 text", id="replacement-character"),
        pytest.param(
            b"[]", 0o644, "is of type list, where an object is needed", id="left-square-bracket"
        ),
        pytest.param(DOCUMENTS["two blanks"].encode(), 0o444, "is read-only", id="documents"),
    ],
)
def test_a_file_that_cannot_be_changed_is_left_alone(cli, home, data, mode, told):
    path = laid(home, ".claude/settings.json", "")
    path.write_bytes(data)
    path.chmod(mode)
    result = cli("install", "--claude", "--json")
    found = {one["path"]: one for one in json.loads(result.out)["files"]}
    assert result.code == 1 and found[str(path)]["status"] == "failed"
    assert told in found[str(path)]["reasons"][0]
    assert found[str(home / ".claude.json")]["status"] == "made"
    assert path.read_bytes() == data


def test_a_linked_settings_file_stays_a_link(cli, home):
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


@contextmanager
def intercept(act):
    """Calls something before each writing of a file."""
    write = textfile.write
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            textfile, "write", lambda place, *more: (act(place), write(place, *more))[1]
        )
        yield


def test_a_file_that_changes_at_the_same_moment_is_not_overwritten(cli, home):
    path = laid(home, ".claude/settings.json", DOCUMENTS["two blanks"])
    theirs = '{"model": "somebody else\'s"}'
    with intercept(lambda place: path.write_text(theirs) if place == path else None):
        assert cli("install", "--claude").code == 1
    assert path.read_text() == theirs
    cli.ok("uninstall")
    assert path.read_text() == theirs


@pytest.mark.parametrize("at", range(1, 12))  # three backups, and four files, each after the record
def test_killed_at_any_write_everything_can_be_taken_back(cli, home, at):
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
def test_a_skill_that_could_not_be_written_is_ours(cli, home, monkeypatch, trouble, again):
    before, words = tree(home), ("install", "--codex", "--copilot", "--no-mcp", "--no-hooks")
    cli.ok(*words)
    path = home / ".agents/skills/remember/SKILL.md"
    render = skills.render

    def fail(place):
        if place == path:
            raise trouble

    def install_version(version):
        newer = {at: f"{text}\n{version}\n" for at, text in render(()).items()}
        monkeypatch.setattr(skills, "render", lambda name: newer)
        with intercept(fail), suppress(Killed):
            return cli(*words).code
        return "killed"

    expected = "killed" if isinstance(trouble, Killed) else 1
    assert [install_version("newer"), install_version("newest")] == [expected, expected]
    if again:
        cli.ok(*words)
        assert path.read_text().endswith("newest\n")
    cli.ok("uninstall")
    assert tree(home) == before


@pytest.mark.parametrize("first", [True, False])
def test_a_foreign_skill_of_our_name_is_kept(cli, home, first):
    file = (".claude/skills/remember/SKILL.md", "---\nname: remember\n---\nmine\n")
    if first:
        laid(home, *file)
    printed = cli.ok("install", "--claude")
    theirs = laid(home, *file)  # or the user made something else of ours
    assert "it was kept" in (printed if first else cli.ok("install", "--claude"))
    cli.ok("uninstall")
    assert theirs.read_text().endswith("mine\n")
    assert list((home / ".claude/skills").iterdir()) == [theirs.parent]


RULES = [entry.value for entry in install.list_rules("claude")]


@pytest.mark.parametrize(
    ("kind", "words", "answer", "allowed"),
    [
        pytest.param("comments", (), "\n", True, id="asked-and-entered"),
        pytest.param("comments", (), "n\n", False, id="asked-and-declined"),
        pytest.param("comments", (), "", False, id="asked-and-unanswered"),
        pytest.param("comments", ("--no-mcp",), "\n", False, id="without-the-server"),
        pytest.param("comments", ("--no-allow",), None, False, id="declined-by-flag"),
        pytest.param("comments", ("--allow",), None, True, id="allowed-by-flag"),
        pytest.param("comments", (), None, True, id="no-terminal"),
        pytest.param("empty", (), "\n", True, id="a-new-file"),
    ],
)
def test_tools_that_read_or_add_are_offered_an_allow_rule(cli, home, kind, words, answer, allowed):
    path = laid(home, ".claude/settings.json", DOCUMENTS[kind])
    before = tree(home)
    asked = cli("install", "--claude", *words, stdin=answer or "", terminal=answer is not None)
    assert ("[Y/n]" in asked.err) == (answer is not None and not words)
    assert ("--no-allow" in asked.err) == (answer is None and not words)
    assert {f'"{rule}"' in path.read_text() for rule in RULES} == {allowed}
    installed = tree(home)
    cli.ok("install", "--claude", *(word for word in words if word == "--no-mcp"))
    assert tree(home) == installed, "what was decided holds"
    path.write_text(path.read_text().replace("opus", "haiku"))
    cli.ok("uninstall")
    assert path.read_text() == DOCUMENTS[kind].replace("opus", "haiku")
    path.write_text(DOCUMENTS[kind])
    assert tree(home) == before


def test_a_choice_about_permission_can_be_changed(cli, home):
    path = home / ".claude/settings.json"
    cli.ok("install", "--claude", "--no-allow")
    without = path.read_text()
    cli.ok("install", "--claude", "--allow")
    assert RULES[0] in path.read_text()
    cli.ok("install", "--claude", "--no-allow")
    assert json.loads(path.read_text()) == json.loads(without)


def test_a_declined_agent_stays_declined_when_another_is_connected(cli, home):
    cli.ok("install", "--claude", "--no-allow")
    cli.ok("install", "--claude", "--codex")
    assert "permissions" not in (home / ".claude/settings.json").read_text()
    assert "approval_mode" in (home / ".codex/config.toml").read_text()


def test_a_command_of_an_agent_grants_nothing(cli, home, monkeypatch):
    monkeypatch.setenv("CLAUDECODE", "1")
    printed = cli("install", "--claude")
    assert "permissions" not in (home / ".claude/settings.json").read_text()
    assert "A person can do it: `bethink install --allow`" in printed.err


@pytest.mark.parametrize(
    ("host", "file", "rule"),
    [
        pytest.param(
            "claude", ".claude/settings.json", "mcp__bethink__store_memories", id="claude"
        ),
        pytest.param("codex", ".codex/config.toml", "tools.store_memories]", id="codex"),
        pytest.param(
            "opencode", ".config/opencode/opencode.json", "bethink_store_memories", id="opencode"
        ),
        pytest.param("gemini", ".gemini/policies/bethink.toml", '"store_memories"', id="gemini"),
        pytest.param(
            "cursor", ".cursor/cli-config.json", "Mcp(bethink:store_memories)", id="cursor"
        ),
    ],
)
def test_rules_go_where_the_agent_keeps_its_own(cli, home, host, file, rule):
    if host == "cursor":  # which makes this file itself
        laid(home, file, '{"version": 1, "permissions": {"allow": ["Shell(ls)"], "deny": []}}')
    before = tree(home)
    cli.ok("install", f"--{host}")
    text = (home / file).read_text()
    assert rule in text
    assert "forget_memories" not in text
    cli.ok("uninstall")
    assert tree(home) == before


def test_cursor_gets_no_file_that_it_did_not_make(cli, home):
    cli.ok("install", "--cursor")
    assert not (home / ".cursor/cli-config.json").exists()


OFFER = "at most 50,000 tokens of your plan a day"


@pytest.mark.parametrize(
    ("words", "answer", "settings", "offered", "chosen"),
    [
        pytest.param((), "n\ny\n", "", True, "claude", id="n-y"),
        pytest.param((), "n\n\n", "", True, "", id="n"),
        pytest.param((), None, "", True, "", id="none-empty"),
        pytest.param(("--dry-run",), "n\ny\n", "", True, "", id="dry-run"),
        pytest.param(("--no-hooks",), None, "", False, "", id="no-hooks"),
        pytest.param((), None, 'llm = "none"\n', False, "none", id="none-llm-none"),
        pytest.param((), None, "llm_daily_tokens = 0\n", False, "", id="none-llm_daily_tokens-0"),
    ],
)
def test_the_users_own_claude_is_offered_with_its_cost_a_day(
    cli, home, monkeypatch, tmp_path, words, answer, settings, offered, chosen
):
    program = laid(tmp_path, "programs/claude", "#!/bin/sh\n", 0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    laid(cli.home, "config.toml", settings)
    asked = cli("install", "--claude", *words, stdin=answer or "", terminal=answer is not None)
    said = [line for line in asked.err.splitlines() if OFFER in line]
    assert len(said) == offered
    by_command = "`bethink config reader claude`" in "".join(said)
    assert by_command == (offered and (answer is None or "--dry-run" in words))
    assert cli.json("config", "llm")["value"] == chosen
    if chosen == "claude":
        assert OFFER not in cli("install", "--claude").err, "it is offered once"


def test_only_tools_that_read_or_add_are_allowed(home):
    assert install.list_allowed() == [
        "search_memories",
        "store_memories",
        "get_memories",
        "get_handoff",
        "memory_overview",
    ]


def test_an_existing_permission_rule_survives_an_uninstall(cli, home):
    text = json.dumps({"permissions": {"allow": [RULES[0], "Bash(ls:*)"]}}, indent=2)
    path = laid(home, ".claude/settings.json", text)
    cli.ok("install", "--claude", "--allow")
    path.write_text(path.read_text().replace('"hooks": {', '"env": {},\n  "hooks": {'))
    cli.ok("uninstall")
    assert json.loads(path.read_text()) == {**json.loads(text), "env": {}}


def test_an_existing_server_entry_is_updated_then_restored(cli, home):
    entry = {"type": "stdio", "command": "uvx", "args": ["bethink", "mcp"], "env": {}}
    text = json.dumps({"mcpServers": {"bethink": entry}})
    path = laid(home, ".claude.json", text)
    cli.ok("install", "--claude")
    server = json.loads(path.read_text())["mcpServers"]["bethink"]
    assert server == entry | {"command": PROGRAM, "args": ["mcp"]}
    cli.ok("uninstall")
    assert path.read_text() == text


def test_a_foreign_server_entry_is_kept(cli, home):
    entry = {"type": "stdio", "command": "uvx", "args": ["bethink", "mcp"], "env": {}}
    text = json.dumps({"mcpServers": {"bethink": entry}})
    path = laid(home, ".claude.json", text)
    path.write_text(text.replace('"bethink", "mcp"', '"other", "mcp"'))
    assert "is not ours, so it was kept" in cli.ok("install", "--claude")


def test_an_edited_plugin_is_kept_without_its_command(cli, home):
    cli.ok("install", "--opencode")
    plugin = home / ".config/opencode/plugins/bethink.js"
    edited = plugin.read_text().replace("const LIMIT = 8000", "const LIMIT = 4000")
    plugin.write_text(edited)
    assert "it was kept" in cli.ok("uninstall")
    assert plugin.read_text() == edited.replace(f'["{PROGRAM}"]', "[]") != edited


def test_a_rewritten_plugin_is_left_alone(cli, home):
    cli.ok("install", "--opencode")
    plugin = home / ".config/opencode/plugins/bethink.js"
    edited = plugin.read_text().replace("const LIMIT = 8000", "const LIMIT = 4000")
    plugin.write_text(edited)
    plugin.write_text(edited.replace(f'const COMMAND = ["{PROGRAM}"]', "let COMMAND"))
    cli.ok("install", "--opencode")
    assert plugin.read_text().count("let COMMAND") == 1, "it is the user's now"


@pytest.mark.parametrize("name", HOSTS)
def test_a_part_that_is_left_out_later_goes(cli, home, name):
    before = lay_shared(home, name, "comments")
    less = ("install", f"--{name}", "--no-hooks", "--no-skills")
    cli.ok(*less)
    server_alone = tree(home)
    cli.ok("install", f"--{name}")
    dry = cli.json(*less, "--dry-run")
    assert statuses(dry) == statuses(cli.json(*less))
    assert tree(home) == server_alone
    cli.ok("uninstall")
    assert tree(home) == before


def test_without_a_name_the_hosts_that_are_here_are_connected(cli, home, monkeypatch, tmp_path):
    assert "None of the agents" in cli.fails("install", code=1)
    (home / ".gemini").mkdir()
    program = laid(tmp_path, "programs/codex", "#!/bin/sh\n", 0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    assert "found: Codex, Gemini CLI" in cli("install").err
    assert (home / ".codex/hooks.json").exists()
    assert not (home / ".claude.json").exists()


MOVED = """
CLAUDE_CONFIG_DIR/.claude.json CLAUDE_CONFIG_DIR/settings.json CODEX_HOME/config.toml CODEX_HOME/hooks.json
COPILOT_HOME/hooks/bethink.json COPILOT_HOME/mcp-config.json GEMINI_CLI_HOME/.gemini/policies/bethink.toml
GEMINI_CLI_HOME/.gemini/settings.json XDG_CONFIG_HOME/opencode/opencode.json
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


@pytest.mark.parametrize(
    ("name", "file", "text"),
    [
        pytest.param(
            "claude",
            ".claude/settings.json",
            '{"enabledPlugins": {"other@x": true, "bethink@bethink": true}}',
            id="claude",
        ),
        pytest.param(
            "copilot",
            ".copilot/settings.json",
            '{"enabledPlugins": {"other@x": true, "bethink@bethink": true}}',
            id="copilot",
        ),
        pytest.param(
            "codex",
            ".codex/config.toml",
            '[plugins."bethink@bethink"]\nenabled = true\n',
            id="codex",
        ),
    ],
)
def test_an_installed_plugin_is_not_doubled(cli, home, name, file, text):
    path = laid(home, file, text)
    before = tree(home)
    assert "has the plugin bethink@bethink" in cli("install", f"--{name}").err
    assert tree(home) == before
    path.write_text(text.replace("true", "false"))
    assert cli("install", f"--{name}", "--dry-run", "--json").out.count("made") > 0


def test_a_damaged_record_is_reported(cli, home):
    laid(home, ".claude/settings.json", DOCUMENTS["other tools' hooks"])
    cli.ok("install", "--claude", "--cursor", "--no-skills")
    record = cli.home / "install.json"
    record.write_text("{")
    assert "is damaged" in cli.fails("uninstall", code=1)


def test_force_uninstalls_without_a_record(cli, home):
    settings = laid(home, ".claude/settings.json", DOCUMENTS["other tools' hooks"])
    cli.ok("install", "--claude", "--cursor", "--no-skills")
    record = cli.home / "install.json"
    record.unlink()
    assert "--force" in cli("uninstall").err and "session-start" in settings.read_text()
    cli.ok("uninstall", "--force")
    assert "bethink" not in settings.read_text() and "say done" in settings.read_text()
    assert "bethink" not in (home / ".cursor/hooks.json").read_text()


def test_secrets_beside_a_change_are_not_printed(cli, home):
    key = "sk-ant-api03-" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z" * 2
    laid(home, ".claude.json", json.dumps({"apiKey": key}, indent=2))
    assert key not in cli.ok("install", "--claude")
    assert key in (home / ".claude.json").read_text()


def test_a_program_in_a_cache_is_not_installed(cli, home, monkeypatch, tmp_path):
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
def test_hooks_for_claude_are_silent_in_hosts_that_run_them_too(cli, monkeypatch, variable):
    monkeypatch.delenv("CLAUDECODE", raising=False)
    assert run.run("pre-compact", "claude", b"{}")
    monkeypatch.setenv(variable, "1")
    assert run.run("pre-compact", "claude", b"{}") == ""
    monkeypatch.setenv("CLAUDECODE", "1")  # Claude Code, started by such a host
    assert run.run("pre-compact", "claude", b"{}")


def test_antigravity_gets_a_named_group_of_hooks_without_those_at_tool_calls(cli, home):
    cli.ok("install", "--antigravity")
    (name,) = groups = json.loads((home / ".gemini/config/hooks.json").read_text())
    assert name == "bethink"
    assert list(groups["bethink"]) == ["PreInvocation", "Stop"]


def test_hooks_of_antigravity_are_in_a_flat_list(cli, home):
    cli.ok("install", "--antigravity")
    groups = json.loads((home / ".gemini/config/hooks.json").read_text())
    line = f"'{PROGRAM}' hook stop --host antigravity"
    assert groups["bethink"]["Stop"] == [{"type": "command", "command": line, "timeout": 10}]


def test_vs_code_gets_its_server_in_the_settings_of_the_user(cli, home):
    cli.ok("install", "--vscode")
    servers = json.loads((home / ".config/Code/User/mcp.json").read_text())["servers"]
    assert servers["bethink"] == {"type": "stdio", "command": PROGRAM, "args": ["mcp"]}


def test_the_server_of_codex_gets_the_variables_that_choose_the_memory(cli, home):
    cli.ok("install", "--codex")
    config = tomllib.loads((home / ".codex/config.toml").read_text())
    assert "BETHINK_HOME" in config["mcp_servers"]["bethink"]["env_vars"]


NINE = (
    "handoff memory-add memory-backfill memory-search memory-stats memory-topics remember".split()
)


@pytest.fixture
def nine(cli, home, monkeypatch):
    """A home with the skills of an earlier version, each in a folder."""
    with monkeypatch.context() as patched:
        files = {f"{name}/SKILL.md": f"---\nname: {name}\n---\nold\n" for name in NINE}
        patched.setattr(skills, "render", lambda fields: files)
        cli.ok("install", "--claude", "--codex")
    return home / ".claude" / "skills"


def test_installing_again_leaves_only_the_two_skills(cli, nine):
    cli.ok("install", "--claude", "--codex")
    assert sorted(path.name for path in nine.iterdir()) == ["memory", "remember"]


def test_a_skill_of_an_earlier_version_that_the_user_changed_stays(cli, nine):
    (nine / "handoff" / "SKILL.md").write_text("mine\n")
    cli.ok("install", "--claude")
    assert (nine / "handoff" / "SKILL.md").read_text() == "mine\n"


def test_uninstalling_removes_the_skills_of_an_earlier_version(cli, home, nine):
    cli.ok("uninstall")
    assert tree(home) == {}


def test_the_skills_are_shown_as_one_folder(cli, home):
    printed = cli.ok("install", "--claude", "--no-mcp", "--no-hooks")
    assert printed.count("skills in ") == 1
