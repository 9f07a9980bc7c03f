"""The plugins: what they hold is what the package says, and their launcher is a good guest in every host and on every machine."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bethink import __version__
from bethink.agents.install import InstallPlace
from bethink.hooks.state import EVENTS

ROOT = Path(__file__).parent.parent
PLUGIN, NEUTRAL = ROOT / "plugins" / "bethink", ROOT / "plugins" / "neutral"
LAUNCHER = PLUGIN / "bin" / "bethink-hook"
# Beside CLAUDE_PLUGIN_ROOT, which all of them set.
HOSTS = {
    "claude": {"CLAUDECODE": "1"},
    "codex": {"PLUGIN_ROOT": "/p", "CLAUDECODE": "1"},
    "copilot": {"PLUGIN_ROOT": "/p", "COPILOT_PLUGIN_ROOT": "/p", "COPILOT_CLI": "1"},
    "cursor": {"CURSOR_VERSION": "3.20"},
}


def loaded(path):
    return json.loads(path.read_text("utf-8"))


def test_manifests_are_of_this_version():
    script = [sys.executable, ROOT / "plugins" / "render.py", "--check"]
    assert subprocess.run(script, timeout=30).returncode == 0, "what is rendered is up to date"
    marketplace = loaded(ROOT / ".claude-plugin" / "marketplace.json")
    (entry,) = marketplace["plugins"]
    files = (PLUGIN / ".claude-plugin" / "plugin.json", NEUTRAL / "plugin.json")
    manifests = [*map(loaded, files), entry]
    assert {one["version"] for one in (*manifests, marketplace["metadata"])} == {__version__}
    assert {one["name"] for one in manifests} == {"bethink"}
    assert (ROOT / entry["source"]).resolve() == PLUGIN
    # Codex and Copilot would then load no hooks.
    assert "plugin.json" not in {path.name for path in PLUGIN.iterdir()}
    allowed = "$schema name version description author homepage repository license keywords"
    assert set(loaded(NEUTRAL / "plugin.json")) <= {*allowed.split(), "extensions"}
    (server,) = loaded(NEUTRAL / "mcp.json")["mcpServers"].values()
    assert server["type"] == "stdio" and "/" not in server["command"]
    assert [
        folder
        for folder, forks in ((NEUTRAL, False), (PLUGIN, True))
        if ("context: fork" in (folder / "skills" / "remember" / "SKILL.md").read_text("utf-8"))
        != forks
    ] == []
    assert os.access(LAUNCHER, os.X_OK)


def plugin_hooks():
    """The hooks of the plugin: the event's name, the matcher, the words behind the launcher, the hook."""
    for name, groups in loaded(PLUGIN / "hooks" / "hooks.json")["hooks"].items():
        for group in groups:
            (hook,) = group["hooks"]
            launcher, event, *hosts = shlex.split(hook["command"])
            assert launcher == "${CLAUDE_PLUGIN_ROOT}/bin/bethink-hook"
            yield name, group.get("matcher"), event, hosts, hook


def installed_hooks(cli, home, host):
    """The hooks that `bethink install` writes for an agent: the event's name, the matcher, our event."""
    cli.ok("install", f"--{host}", "--no-mcp", "--no-skills")
    place = InstallPlace(home, {})
    for name, groups in loaded(place.hooks_file(host))["hooks"].items():
        for group in groups:
            (called,) = re.findall(r"hook\W+([a-z-]+)\W+--host", json.dumps(group))
            yield name, group.get("matcher"), called


@pytest.mark.parametrize("host", ["claude", "codex", "copilot"])
def test_the_plugin_has_the_hooks_that_install_writes(cli, home, host):
    ours = [one[:3] for one in plugin_hooks() if host in (one[3] or [host])]
    assert sorted(ours, key=str) == sorted(installed_hooks(cli, home, host), key=str)


def test_the_hooks_of_the_plugin_have_time_limits():
    limits = {event: hook["timeout"] for _, _, event, _, hook in plugin_hooks()}
    assert limits.pop("session-end") <= 3, "Codex takes no more"
    assert max(limits.values()) <= 10


@pytest.mark.parametrize("host", HOSTS)
def test_the_launcher_runs_a_hook_only_for_the_agents_named(machine, host):
    installed(machine.tools)
    assert bool(machine("tool", host, words=("codex", "copilot"))) == (host in ("codex", "copilot"))


@pytest.fixture
def machine(tmp_path):
    """A machine on which nothing is installed but what a shell needs, with a HOME that is hard to quote."""
    home, tools = tmp_path / "häuser & co", tmp_path / "tools"
    home.mkdir()
    tools.mkdir()
    for name in ("sh", "mkdir", "cat"):
        (tools / name).symlink_to(shutil.which(name))
    base = {"HOME": str(home), "PATH": str(tools)}

    def start(command, cwd=tmp_path, told="{}", **more):
        options = {"capture_output": True, "text": True, "timeout": 30}
        return subprocess.run(command, env=base | more, input=told, cwd=cwd, **options)

    def run(event, host="claude", words=(), **more):
        plugin = {"CLAUDE_PLUGIN_ROOT": "/p", "CLAUDE_PLUGIN_DATA": str(home / "data")}
        told = '{"session_id": "s"}'
        done = start([LAUNCHER, event, *words], told=told, **plugin, **HOSTS[host], **more)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    run.home, run.tools, run.start = home, tools, start
    return run


def installed(folder, body='printf "%s|" "$@"; cat\n'):
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "bethink"
    program.write_text(f"#!/bin/sh\n{body}")
    program.chmod(0o755)


@pytest.mark.parametrize("host", HOSTS)
def test_the_program_is_called_in_the_dialect_of_the_host(machine, host):
    installed(machine.home / ".local" / "bin" if host == "codex" else machine.tools)
    assert machine("prompt", host) == f'hook|prompt|--host|{host}|{{"session_id": "s"}}'


@pytest.mark.parametrize(
    "body", ["echo usage >&2; exit 2", "exit 1", "kill -9 $$", "exec /nowhere"]
)
def test_a_program_that_fails_does_not_stop_the_agent(machine, body):
    installed(machine.tools, body + "\n")
    assert {machine(event) for event in EVENTS} == {""}


def test_hooks_can_be_switched_off(machine):
    assert machine("session-start", BETHINK_HOOKS="off") == ""
    installed(machine.tools)
    assert machine("session-start", BETHINK_HOOKS="off") == ""


@pytest.mark.parametrize("host", HOSTS)
def test_a_machine_without_the_program_is_told_once_how_to_get_it(machine, host):
    assert {machine(event, host) for event in EVENTS if event != "session-start"} == {""}
    said = json.loads(machine("session-start", host))
    flat = said.get("additionalContext") or said.get("additional_context")
    flat = flat or said["hookSpecificOutput"]["additionalContext"]
    assert "uv tool install 'bethink[mcp]'" in flat
    assert (host == "copilot") == ("additionalContext" in said)
    if host in ("claude", "codex"):
        assert set(said) == {"systemMessage", "hookSpecificOutput"}
    assert machine("session-start", host) == ""


def server_command(file):
    (server,) = loaded(file)["mcpServers"].values()
    return [server["command"], *server["args"]]


@pytest.mark.parametrize("file", [PLUGIN / ".mcp.json", NEUTRAL / "mcp.json"])
def test_the_server_starts_or_says_what_is_missing(machine, file):
    missing = machine.start(server_command(file))
    assert (missing.returncode, missing.stdout) == (127, "")
    assert "uv tool install 'bethink[mcp]'" in missing.stderr
    installed(machine.home / ".local" / "bin")
    found = machine.start(server_command(file))
    assert (found.returncode, found.stdout) == (0, "mcp|{}")


def test_a_server_started_in_the_plugins_folder_goes_to_the_project(machine, tmp_path, monkeypatch):
    """Hosts of the neutral format start it there and have no way to say where else."""
    project, plugin = tmp_path / "prøject 1", tmp_path / "plugin"
    project.mkdir()
    plugin.mkdir()
    installed(machine.tools, "pwd\n")
    monkeypatch.chdir(project)
    assert [
        folder
        for folder, expected in ((plugin, project), (tmp_path, tmp_path))
        if machine.start(
            server_command(NEUTRAL / "mcp.json"), folder, PLUGIN_ROOT=str(plugin)
        ).stdout.strip()
        != str(expected)
    ] == []
