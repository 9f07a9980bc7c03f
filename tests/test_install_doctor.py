"""`doctor` proves for every connected agent that its files, its hooks and its MCP server work, and `init` offers to connect them."""

import json
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from agent_files import HOSTS, laid, tree
from capturing import eventually

from bethink.agents import install
from bethink.app.cli import connect
from bethink.hooks import spool
from bethink.hooks.state import Hook

SOURCE = Path(__file__).parent.parent / "src"


@pytest.fixture
def program(cli, home, monkeypatch, tmp_path):
    """Bethink as it would be installed, in a place with a blank in its name."""
    script = f'#!/bin/sh\nPYTHONPATH="{SOURCE}" exec "{sys.executable}" -m bethink "$@"\n'
    path = laid(tmp_path, "my tools/bethink", script, 0o755)
    monkeypatch.setattr(install, "find_command", lambda: (str(path),))
    monkeypatch.setenv("PATH", os.defpath)
    return path


def findings(cli, *options):
    """Of the agents, by name. The last one of a name counts."""
    found = json.loads(cli("doctor", "--json", *options).out)
    ours = (*HOSTS, "agents", "pause")
    return {one["check"]: one for one in found if one["check"].startswith(ours)}


def edit_json(path, change):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


CHAIN = ("config", "hooks", "MCP", "permission", "capture")


@pytest.mark.parametrize("name", ["claude", "codex", "opencode"])
def test_the_whole_chain_of_a_host_is_proven(cli, program, name):
    cli.ok("install", f"--{name}")
    found = findings(cli)
    assert list(found) == [f"{name} {part}" for part in CHAIN]
    assert all(one["ok"] for one in found.values()), found
    assert found[f"{name} hooks"]["message"].startswith("session-start, prompt, stop run")
    assert "tools in" in found[f"{name} MCP"]["message"]
    assert found[f"{name} capture"]["message"].startswith("nothing was captured yet")
    assert spool.list_waiting() == [], "what doctor tries leaves nothing behind"


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        pytest.param("--allow", "may use search_memories, store_memories", id="allowed"),
        pytest.param("--no-allow", "asks before it uses memory, as chosen", id="declined"),
    ],
)
def test_doctor_says_whether_an_agent_asks(cli, program, flag, message):
    cli.ok("install", "--claude", flag)
    assert findings(cli)["claude permission"]["message"].startswith(message)


def test_a_missing_permission_rule_is_a_problem(cli, program, home):
    cli.ok("install", "--gemini")
    (home / ".gemini/policies/bethink.toml").unlink()
    assert not findings(cli)["gemini config"]["ok"]


def test_no_connected_agent_is_no_problem(cli, program, home):
    (found,) = findings(cli).values()
    assert found["ok"] and found["message"] == "none is connected; `bethink install` does it"


def test_a_read_only_settings_file_is_no_problem(cli, home, program):
    cli.ok("install", "--claude", "--no-skills")
    paths = [home / ".claude.json", home / ".claude/settings.json"]
    paths[1].chmod(0o444)
    before = tree(home)
    assert all(one["ok"] for one in findings(cli, "--fix").values())
    assert tree(home) == before, "and no part is added that was left out"


def test_a_broken_settings_file_is_named(cli, home, program):
    cli.ok("install", "--claude", "--no-skills")
    paths = [home / ".claude.json", home / ".claude/settings.json"]
    for path in paths:
        path.chmod(0o644)
        path.write_text("{")
    found = findings(cli)["claude config"]
    assert not found["ok"] and all(f"{path}: Line 1" in found["message"] for path in paths)


def test_the_doctor_reminds_to_trust_codex_hooks(cli, home):
    assert "Codex runs hooks only after you trust them" in connect.check_capture("codex").message


def test_the_doctor_shows_the_last_capture(cli, home, monkeypatch):
    monkeypatch.setattr(spool, "read_captures", lambda: {"claude": time.time() - 42})
    told = connect.check_capture("claude").message
    assert re.fullmatch("last capture 4[2-9] seconds ago; waiting: 0 transcripts", told)
    spool.note(Hook("stop", "claude", "a", "/talks/a.jsonl"), "/x.db")
    assert connect.check_capture("claude").message.endswith("; waiting: 1 transcript")
    assert connect.check_capture("claude").ok


def test_the_doctor_reports_transcripts_that_wait_too_long(cli, home, monkeypatch):
    monkeypatch.setattr(spool, "read_captures", lambda: {"claude": time.time() - 42})
    spool.note(Hook("stop", "claude", "a", "/talks/a.jsonl"), "/x.db")
    monkeypatch.setattr(connect, "LONGEST_WAIT", -1.0)
    assert not connect.check_capture("claude").ok


def test_a_slow_command_leaves_no_process(cli, home, monkeypatch, tmp_path):
    number = tmp_path / "number"
    line = f"sleep 60 & echo $! > '{number}'; wait"
    monkeypatch.setenv("PATH", os.defpath)
    _, trouble, _ = connect.run_command(["sh", "-c", line], "", 1)
    assert "did not end or answer within" in trouble

    def has_ended():
        try:
            return "zombie" in Path(f"/proc/{number.read_text().strip()}/status").read_text()
        except OSError:
            return True

    assert eventually(has_ended), "who is killed ends when it is next given a moment"


def test_entries_of_another_program_are_not_run(cli, program, monkeypatch, home):
    cli.ok("install", "--claude", "--no-skills")
    newer = program.parent.rename(program.parent.with_name("newer tools")) / program.name
    monkeypatch.setattr(install, "find_command", lambda: (str(newer),))
    found = findings(cli)
    assert "is not as `install` writes it" in found["claude config"]["message"]
    assert not found["claude config"]["ok"]
    assert {"claude hooks", "claude MCP"}.isdisjoint(found)


def test_the_doctor_fixes_entries_of_another_program(cli, home, program, monkeypatch):
    cli.ok("install", "--claude", "--no-skills")
    newer = program.parent.rename(program.parent.with_name("newer tools")) / program.name
    monkeypatch.setattr(install, "find_command", lambda: (str(newer),))
    found = findings(cli, "--fix")
    assert all(one["ok"] for one in found.values()), found
    assert str(newer) in (home / ".claude.json").read_text()
    cli.ok("uninstall")
    assert tree(home) == {}


@pytest.mark.parametrize(
    ("part", "script", "message"),
    [
        pytest.param(
            "hooks", "echo oh >&2; exit 1", "it ended with 1: oh", id="hooks-echo-oh-2-exit-1"
        ),
        pytest.param("hooks", "echo [1]", "its answer is not a JSON object", id="hooks-echo-1"),
        pytest.param("hooks", "sleep 60", "it did not end or answer within", id="hooks-sleep-60"),
        pytest.param("MCP", "echo oh >&2; exit 1", "oh", id="MCP-echo-oh-2-exit-1"),
        pytest.param("MCP", "echo hello", "without", id="MCP-echo-hello"),
        pytest.param("MCP", "sleep 60", "within", id="MCP-sleep-60"),
    ],
)
def test_what_misbehaves_is_a_problem(cli, home, program, monkeypatch, part, script, message):
    for limit in ("PROOF_SECONDS", "SERVER_SECONDS"):
        monkeypatch.setattr(connect, limit, 0.2 if script.startswith("sleep") else 20.0)
    cli.ok("install", "--gemini", "--no-skills", "--no-mcp" if part == "hooks" else "--no-hooks")
    program.write_text(f"#!/bin/sh\n{script}\n")
    found = findings(cli)[f"gemini {part}"]
    assert not found["ok"]
    assert message in found["message"]
    assert found["fix"] == "bethink install --gemini"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    library = "pip install 'bethink[mcp]'"
    assert findings(cli)[f"gemini {part}"]["fix"] == (library if part == "MCP" else found["fix"])


def test_a_hook_that_hides_its_failure_is_found_out(cli, home, program, monkeypatch):
    cli.ok("install", "--copilot", "--no-skills", "--no-mcp")
    (cli.home / "config.toml").write_text("limit = 'many'\n")
    assert not findings(cli)["copilot failures"]["ok"], "it is counted"
    (cli.home / "config.toml").unlink()
    with monkeypatch.context() as later:
        later.setattr(connect, "RECENT_FAILURE", 0.0)
        assert findings(cli)["copilot failures"]["ok"], "what is old is history"
    assert "copilot failures" not in findings(cli, "--fix")


def test_the_doctor_puts_back_removed_entries(cli, home, program):
    cli.ok("install", "--gemini", "--no-skills", "--no-mcp")
    path = home / ".gemini/settings.json"

    def mend():
        before, after = findings(cli), findings(cli, "--fix")
        oks = before["gemini config"]["ok"], after["gemini config"]["ok"]
        return oks, list(json.loads(path.read_text()))

    edit_json(path, lambda document: document["hooks"].pop("AfterAgent"))
    assert mend() == ((False, True), ["hooks"]), "what was left out stays out"
    path.write_text("{}")
    assert mend() == ((False, True), ["hooks"])


@pytest.mark.parametrize("name", ["claude", "opencode"])
def test_declined_hooks_at_tool_calls_are_no_problem(cli, home, program, name):
    cli.ok("install", f"--{name}", "--no-skills", "--no-tool-hooks")
    before = tree(home)
    found = findings(cli, "--fix")[f"{name} config"]
    assert found["ok"] and "without hooks at tool calls, as chosen" in found["message"]
    assert tree(home) == before, "and they are not added"


@pytest.mark.parametrize(
    ("name", "file", "read"),
    [
        pytest.param("claude", ".claude/settings.json", False, id="claude"),
        pytest.param("codex", ".codex/hooks.json", False, id="codex"),
        pytest.param("gemini", ".gemini/settings.json", True, id="gemini"),
    ],
)
def test_settings_are_read_as_the_host_reads_them(cli, home, program, name, file, read):
    cli.ok("install", f"--{name}", "--no-skills")
    path = home / file
    path.write_text(path.read_text().replace("{", "{ // mine", 1))
    all_found = findings(cli)
    found = all_found[f"{name} config"]
    assert found["ok"] is read
    assert read or f"ignores {path}: it reads no comments" in found["message"]
    assert (f"{name} hooks" in all_found) is read
    again = cli("install", f"--{name}", "--no-skills", "--json")
    reasons = [reason for one in json.loads(again.out)["files"] for reason in one["reasons"]]
    assert read or any("reads no comments" in reason for reason in reasons)


def test_a_host_that_only_the_plugin_connects_is_proven_too(cli, home, program, monkeypatch):
    laid(home, ".claude/settings.json", '{"enabledPlugins": {"bethink@bethink": true}}')
    found = findings(cli)
    assert "was not found" in found["claude config"]["message"]
    assert "uv tool install" in found["claude config"]["fix"]
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.defpath}")
    found = findings(cli)
    assert "bethink@bethink" in found["claude config"]["message"]
    assert all(one["ok"] for one in found.values()), found
    assert list(found) == [f"claude {part}" for part in CHAIN if part != "permission"]


@pytest.mark.parametrize(
    ("change", "said", "fix"),
    [
        pytest.param(
            {"enabledPlugins": {"bethink@tools": True}},
            "both connect Claude Code",
            "Keep one: bethink uninstall --claude",
            id="enabledplugins",
        ),
        pytest.param(
            {"disableAllHooks": True},
            "disableAllHooks",
            "Switch them on again",
            id="disableallhooks",
        ),
    ],
)
def test_settings_that_disable_or_double_the_hooks_are_reported(
    cli, home, program, change, said, fix
):
    cli.ok("install", "--claude", "--no-skills", "--no-mcp")
    path = home / ".claude/settings.json"
    edit_json(path, lambda document: document.update(change))
    found = findings(cli)["claude config"]
    assert not found["ok"] and said in found["message"] and fix in found["fix"]
    path.write_text(json.dumps(change))
    assert fix in findings(cli, "--fix")["claude config"]["fix"]
    put_back = json.loads(path.read_text()) != change
    assert put_back != ("enabledPlugins" in change), "beside a plugin nothing is put back"


def test_edited_entries_are_reported_without_running_them(cli, home, program, tmp_path):
    cli.ok("install", "--claude", "--opencode", "--no-skills")
    ran = tmp_path / "ran"
    files = (".claude/settings.json", ".claude.json", ".config/opencode/plugins/bethink.js")
    for path in (home / name for name in files):
        path.write_text(path.read_text().replace(str(program), f"touch {ran}; bethink"))
    found = findings(cli)
    assert not ran.exists()
    assert not found["claude config"]["ok"] and not found["opencode config"]["ok"]
    assert {"claude hooks", "claude MCP", "opencode hooks"}.isdisjoint(found)


@pytest.mark.parametrize(("answer", "connected"), [("y\n", True), ("\n", False), ("", False)])
def test_init_asks_at_a_terminal(cli, home, answer, connected):
    (home / ".claude").mkdir()
    (home / ".codex").mkdir()
    result = cli("init", "--skip-map", "--skip-analyze", stdin=answer, terminal=True)
    assert result.code == 0
    assert "Connect Claude Code and Codex to this memory?" in result.err
    assert (home / ".claude/settings.json").exists() == connected


def test_init_connects_the_named_agents(cli, home):
    told = cli.json("init", "--agent", "claude,codex")
    assert {one["host"] for one in told["agents"]["files"]} == {"claude", "codex"}
    assert (home / ".codex/config.toml").exists() and not (home / ".gemini").exists()


def test_init_refuses_an_unknown_agent(cli, home):
    assert "Did you mean 'gemini'?" in cli.fails("init", "--agent", "gemni", code=2)


def test_init_names_the_connected_agent(cli, home):
    assert "Claude Code\n" in cli.ok("init", "--agent", "claude")


def test_doctor_reports_a_server_that_does_not_get_the_folder_of_the_memory(cli, program, home):
    cli.ok("install", "--codex")
    config = home / ".codex/config.toml"
    config.write_text(config.read_text().replace('"BETHINK_HOME"', '"BETHINK_OTHER"'))
    found = findings(cli)["codex memory"]
    assert not found["ok"]
    assert "does not get BETHINK_HOME" in found["message"]


def test_doctor_reports_a_server_with_another_folder_of_the_memory(cli, program, home):
    cli.ok("install", "--codex")
    with (home / ".codex/config.toml").open("a") as file:
        file.write('\n[mcp_servers.bethink.env]\nBETHINK_HOME = "/elsewhere"\n')
    assert "BETHINK_HOME=/elsewhere" in findings(cli)["codex memory"]["message"]


def test_the_server_of_codex_stores_notes_in_the_memory_of_this_shell(cli, program, home):
    cli.ok("install", "--codex")
    entry = tomllib.loads((home / ".codex/config.toml").read_text())["mcp_servers"]["bethink"]
    usual = ("HOME", "PATH", *entry["env_vars"])  # all that Codex passes on
    environment = {name: os.environ[name] for name in usual if name in os.environ}
    words = [entry["command"], "config", "database"]
    shown = subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=60, cwd=cli.project
    )
    assert shown.stdout == cli.ok("config", "database")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        pytest.param("antigravity", ["config", "hooks", "MCP", "capture"], id="antigravity"),
        pytest.param("vscode", ["config", "MCP", "capture"], id="vscode"),
    ],
)
def test_an_agent_without_rules_of_permission_is_proven(cli, program, name, parts):
    cli.ok("install", f"--{name}")
    found = findings(cli)
    assert list(found) == [f"{name} {part}" for part in parts]
    assert all(one["ok"] for one in found.values()), found
