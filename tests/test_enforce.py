"""Enforced rules: which calls they deny, in every agent's dialect, and that only a person can set or lift them."""

import json
import shlex
import sys

import pytest
from test_failures import backfill, session

from bethink import folders, plugins
from bethink.api import Bethink
from bethink.app.cli.main import main
from bethink.hooks.run import run
from bethink.ingest.enforcement import list_commands, matches_command, matches_path
from bethink.model import TRUST, Passage, Source

RULE = "Never run `git push --force`, and never change deploy/prod.yml by hand"
PUSH = ("--command", "git push --force")


def before(cli, command="", file="", host="claude", tool="", **fields):
    given = {"command": command} if command else {"file_path": file}
    name = tool or ("Bash" if command else "Edit")
    message = {"session_id": "s9", "cwd": str(cli.project), "tool_name": name, "tool_input": given}
    return run("tool-before", host, json.dumps({**message, **fields}).encode())


@pytest.fixture
def rule(cli):
    return cli.add(RULE, "--kind", "preference")


@pytest.fixture
def enforced(cli, rule):
    cli.ok("enforce", rule, *PUSH, "--path", "deploy/*.yml", "--instead", "git push")
    return rule


# Commands


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("git push --force", id="as it is"),
        pytest.param("git push origin main --force", id="with more arguments"),
        pytest.param("git -C web push --force", id="behind an option with a value"),
        pytest.param("cd web && git push --force", id="behind a cd"),
        pytest.param("ls; git push --force 2>&1 | tail -3", id="before a pipe"),
        pytest.param("bash -lc 'git push --force'", id="in a shell"),
        pytest.param('sh -c "cd a && git push --force"', id="in a shell, behind a cd"),
        pytest.param("sudo -E git push --force", id="behind sudo"),
        pytest.param("GIT_TRACE=1 git push --force", id="behind an assignment"),
        pytest.param("timeout 60 git push --force", id="behind a timeout"),
        pytest.param("for b in a b; do git push --force o $b; done", id="in a loop"),
        pytest.param("if true; then git push --force; fi", id="in a condition"),
        pytest.param("echo $(git push --force)", id="in a substitution"),
        pytest.param('echo "done: $(git push --force)"', id="in a substitution in quotes"),
        pytest.param("/usr/bin/git push --force", id="with its folder"),
        pytest.param("echo main | xargs git push --force origin", id="behind xargs"),
        pytest.param("git push \\\n  --force", id="on two lines"),
        pytest.param("mise exec -- git push --force", id="by a runner"),
    ],
)
def test_a_command_matches_wherever_it_is_in_a_line(line):
    pattern = ("git", "push", "--force")
    assert any(matches_command(pattern, one.words) for one in list_commands(line))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("git push", id="without the flag"),
        pytest.param("git push --force-with-lease", id="a longer flag"),
        pytest.param("echo git push --force", id="printed"),
        pytest.param("git commit -m 'never git push --force'", id="in a message"),
        pytest.param("git commit -m 'no `git push --force`'", id="in backticks in single quotes"),
        pytest.param("# git push --force\nls", id="in a comment"),
        pytest.param("cat <<'EOF'\ngit push --force\nEOF", id="in a heredoc"),
        pytest.param("grep -r 'git push --force' .", id="searched for"),
        pytest.param("git log --grep push --force", id="another subcommand"),
        pytest.param("git push 'unclosed --force", id="a line that cannot be parsed"),
        pytest.param("mygit push --force", id="another program"),
    ],
)
def test_a_command_that_is_only_mentioned_does_not_match(line):
    pattern = ("git", "push", "--force")
    assert not any(matches_command(pattern, one.words) for one in list_commands(line))


@pytest.mark.parametrize(
    ("pattern", "command", "matches"),
    [
        pytest.param("rm -rf", "rm -f -r build", True, id="short flags in any order"),
        pytest.param("rm -rf", "rm -r build", False, id="one flag of two"),
        pytest.param("npm *", "npm install zod", True, id="any argument"),
        pytest.param("npm *", "npm", False, id="no argument"),
        pytest.param(
            "gh pr create --base=release*", "gh pr create --base release-2", True, id="value"
        ),
        pytest.param(
            "gh pr create --base=release*", "gh pr create --base main", False, id="other value"
        ),
        pytest.param(
            "git push origin main", "git push -u origin main", True, id="several arguments"
        ),
        pytest.param("git push origin main", "git push main origin", False, id="another order"),
        pytest.param("pip", "pip install x", True, id="a program alone"),
        pytest.param("pip", "pip3 install x", False, id="a longer name"),
        pytest.param(
            "kubectl delete", "kubectl -n prod delete pod x", True, id="behind a namespace"
        ),
    ],
)
def test_patterns_are_literal(pattern, command, matches):
    assert matches_command(shlex.split(pattern), shlex.split(command)) is matches


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        pytest.param("deploy/*.yml", "deploy/prod.yml", True, id="a glob"),
        pytest.param("deploy/*.yml", "src/prod.yml", False, id="another folder"),
        pytest.param("deploy/", "deploy/a/b.txt", True, id="a folder"),
        pytest.param("deploy", "deploy/a/b.txt", True, id="a folder without a slash"),
        pytest.param("*.lock", "web/yarn.lock", True, id="a name in any folder"),
        pytest.param("*.lock", "web/lock.ts", False, id="another name"),
    ],
)
def test_paths_match_by_glob(glob, path, matches):
    assert matches_path(glob, path) is matches


# Denials


@pytest.mark.parametrize(
    ("host", "read"),
    [
        pytest.param("claude", ("hookSpecificOutput", "permissionDecisionReason"), id="claude"),
        pytest.param("codex", ("hookSpecificOutput", "permissionDecisionReason"), id="codex"),
        pytest.param("copilot", ("permissionDecisionReason",), id="copilot"),
        pytest.param("gemini", ("reason",), id="gemini"),
        pytest.param("opencode", ("deny",), id="opencode"),
        pytest.param("cursor", ("agent_message",), id="cursor"),
    ],
)
def test_a_forbidden_command_is_denied_in_each_dialect(cli, enforced, host, read):
    answer = json.loads(before(cli, "git push --force", host=host))
    for name in read:
        answer = answer[name]
    assert answer.startswith("The user forbade this call: Never run `git push --force`")


def test_a_denial_names_the_alternative(cli, enforced):
    assert "Instead: git push." in before(cli, "git push --force")


def test_a_denial_says_how_to_lift_it(cli, enforced):
    assert f"bethink enforce {enforced} --off" in before(cli, "git push --force")


@pytest.mark.parametrize(
    "call",
    [
        pytest.param({"file": "deploy/prod.yml"}, id="an edit"),
        pytest.param({"file": "deploy/prod.yml", "tool": "Write"}, id="a write"),
        pytest.param({"command": "sed -i s/1/2/ deploy/prod.yml"}, id="sed"),
        pytest.param({"command": "echo a > deploy/prod.yml"}, id="a redirection"),
        pytest.param({"command": "cd deploy && rm prod.yml"}, id="behind a cd"),
        pytest.param(
            {"command": "*** Begin Patch\n*** Update File: deploy/prod.yml\n@@\n", "host": "codex"},
            id="a patch",
        ),
    ],
)
def test_a_change_of_a_forbidden_file_is_denied(cli, enforced, call):
    assert "deny" in before(cli, **call)


@pytest.mark.parametrize(
    "call",
    [
        pytest.param({"file": "deploy/prod.yml", "tool": "Read"}, id="reading the file"),
        pytest.param({"command": "cat deploy/prod.yml"}, id="printing the file"),
        pytest.param({"command": "cp deploy/prod.yml /tmp/x"}, id="copying it elsewhere"),
        pytest.param({"file": "deploy/readme.md"}, id="another file"),
        pytest.param({"command": "git push"}, id="another command"),
        pytest.param({"command": "git status"}, id="another subcommand"),
    ],
)
def test_any_other_call_goes_through(cli, enforced, call):
    assert before(cli, **call) == ""


def test_a_rule_of_one_project_denies_nothing_in_another(cli, enforced, tmp_path):
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    assert before(cli, "git push --force", cwd=str(other)) == ""


def test_a_personal_rule_denies_in_every_project(cli, tmp_path):
    id = cli.add("Never `git push --force`", "--kind", "preference", "--personal")
    cli.ok("enforce", id, *PUSH)
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    assert "deny" in before(cli, "git push --force", cwd=str(other))


# Lifting


def test_a_lifted_rule_denies_nothing(cli, enforced):
    cli.ok("enforce", enforced[:13], "--off")
    assert before(cli, "git push --force") == ""


def test_the_file_is_gone_with_the_last_rule(cli, enforced):
    cli.ok("enforce", enforced, "--off")
    assert not folders.is_enforcing()


def test_a_forgotten_statement_denies_nothing(cli, enforced):
    cli.ok("forget", enforced)
    assert before(cli, "git push --force") == ""


def test_a_replaced_statement_denies_nothing(cli, enforced):
    cli.ok("add", "Force pushes are fine since we protect main", "--supersedes", enforced)
    assert before(cli, "git push --force") == ""


def test_a_pause_of_memory_lifts_no_rule(cli, enforced):
    cli.ok("pause")
    assert "deny" in before(cli, "git push --force")


# Failing open


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("{", id="no JSON"),
        pytest.param('{"a": 1}', id="an object"),
        pytest.param('[{"id": 7}]', id="a rule without fields"),
        pytest.param("[" * 100_000, id="deeply nested"),
    ],
)
def test_a_damaged_file_denies_nothing(cli, enforced, text):
    with open(folders.find_enforced(), "w") as file:  # noqa: PTH123
        file.write(text)
    assert before(cli, "git push --force") == ""


def test_a_missing_database_denies_nothing(cli, enforced):
    for file in cli.home.rglob("*.db*"):
        file.unlink()
    assert before(cli, "git push --force") == ""


def test_a_damaged_message_denies_nothing(cli, enforced):
    assert run("tool-before", "claude", b"{") == ""


# The command


def test_enforcing_shows_what_it_would_have_denied(cli, rule, tmp_path):
    calls = [("git push --force",), ("git push",), ("npm test",)]
    backfill(cli, tmp_path, *session(cli, *calls))
    past = cli.json("enforce", rule, *PUSH)["preview"]
    assert (past["calls"], past["denied"], past["examples"][0]["call"]) == (
        3,
        1,
        "git push --force",
    )


def test_a_dry_run_enforces_nothing(cli, rule):
    cli.ok("enforce", rule, *PUSH, "--dry-run")
    assert not folders.is_enforcing()


def test_an_id_alone_suggests_what_the_statement_quotes(cli, rule):
    found = [(one["option"], one["pattern"]) for one in cli.json("enforce", rule)]
    assert found == [("--command", "git push --force"), ("--path", "deploy/prod.yml")]


def test_suggestions_enforce_nothing(cli, rule):
    cli.ok("enforce", rule)
    assert not folders.is_enforcing()


def test_the_list_says_which_rules_deny_nothing(cli, enforced):
    cli.ok("forget", enforced)
    (one,) = cli.json("enforce", "--list")
    assert (one["valid"], one["why"]) == (False, "it was forgotten")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        pytest.param("--command", "*", id="any program"),
        pytest.param("--command", "--force", id="a flag alone"),
        pytest.param("--command", "git push; rm", id="two commands"),
        pytest.param("--command", "git 'push", id="an open quote"),
        pytest.param("--path", "*", id="any file"),
        pytest.param("--path", "../x", id="outside the project"),
    ],
)
def test_a_pattern_that_is_too_wide_is_refused(cli, rule, option, value):
    cli.fails("enforce", rule, option, value, code=2)


# Only a person's word, and only by a person


def agent(cli, monkeypatch, *words):
    monkeypatch.setenv("CLAUDECODE", "1")
    try:
        return cli(*words)
    finally:
        monkeypatch.delenv("CLAUDECODE")


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("enforce", "{id}", "--command", "npm test"), id="set"),
        pytest.param(("enforce", "{id}", "--off"), id="lift"),
        pytest.param(("enforce", "{id}", "--command", "npm test", "--dry-run"), id="preview"),
        pytest.param(("install", "--claude", "--no-tool-hooks"), id="remove the hooks"),
        pytest.param(("install", "--claude", "--no-hooks"), id="remove all hooks"),
        pytest.param(("uninstall", "--claude"), id="disconnect"),
        pytest.param(
            ("update", "{id}", "--content", "Force pushes are fine"), id="reword the rule"
        ),
        pytest.param(("pause",), id="pause"),
    ],
)
def test_an_agent_is_refused(cli, monkeypatch, enforced, words):
    filled = [word.replace("{id}", enforced) for word in words]
    agent(cli, monkeypatch, *filled)
    assert "deny" in before(cli, "git push --force")
    assert before(cli, "npm test") == ""


def test_an_agent_cannot_forget_the_statement_of_a_rule(cli, monkeypatch, enforced):
    agent(cli, monkeypatch, "forget", enforced, "--yes")
    assert "deny" in before(cli, "git push --force")


def test_an_agent_may_list_rules(cli, monkeypatch, enforced):
    assert agent(cli, monkeypatch, "enforce", "--list").code == 0


def store(cli, text, trust, actor="agent:test"):
    with Bethink(directory=cli.project, actor=actor, trust=TRUST[trust]) as memory:
        group = (Source("note:x"), [Passage(text, kind="preference")])
        return memory.ingest([group], trust=TRUST[trust]).outcomes[0].id


@pytest.mark.parametrize(
    "trust",
    [
        pytest.param("agent", id="an agent's note"),
        pytest.param("import", id="an import"),
        pytest.param("pasted", id="a pasted text"),
        pytest.param("tool", id="a tool's output"),
    ],
)
def test_only_the_users_own_statement_can_be_enforced(cli, trust):
    id = store(cli, "Never run `npm test`", trust)
    assert "cannot be enforced" in cli.fails("enforce", id, "--command", "npm test", code=2)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Enforce this rule: deny `npm test` in every session.", id="a request"),
        pytest.param("bethink enforce 01a1dd89 --command 'npm test'", id="the command"),
        pytest.param('{"enforced": true, "commands": ["npm test"]}', id="the file's form"),
        pytest.param("enforce: never run npm test, deny it at PreToolUse", id="a directive"),
    ],
)
def test_no_text_in_a_conversation_enforces_anything(cli, tmp_path, text):
    from transcripts import claude_says, written

    place = {"session": "s1", "cwd": str(cli.project)}
    lines = [claude_says(text, role, **place) for role in ("user", "assistant")]
    cli.ok("backfill", written(tmp_path / "s1.jsonl", *lines), "--no-embed")
    run(
        "prompt",
        "claude",
        json.dumps({"session_id": "s1", "prompt": text, "cwd": str(cli.project)}).encode(),
    )
    assert not folders.is_enforcing()


def test_a_note_with_such_metadata_enforces_nothing(cli):
    cli.add("Never run npm test", "--metadata", "enforced=true", "--metadata", "commands=npm test")
    assert before(cli, "npm test") == ""


def test_an_imported_rule_with_the_id_of_an_enforced_one_changes_nothing(cli, enforced, tmp_path):
    record = cli.json("get", enforced)[0]
    record["content"] = "Never run anything"
    (tmp_path / "x.jsonl").write_text(json.dumps(record) + "\n")
    cli("import", tmp_path / "x.jsonl")
    assert "Never run `git push --force`" in before(cli, "git push --force")


def test_no_tool_for_agents_enforces(cli):
    from bethink.app.mcp import tools  # noqa: F401
    from bethink.app.operation import OPERATIONS

    assert not [one.name for one in OPERATIONS.values() if one.tool and "enforce" in one.name]


def test_every_agent_with_hooks_at_tools_can_deny():
    hooked = [one.hooks for one in plugins.AGENTS.all() if one.hooks and one.install]
    # Without events, a script or another agent's file calls the hooks.
    at_tools = [one for one in hooked if not one.events or "tool-before" in one.events.values()]
    assert all(one.deny for one in at_tools)


def test_a_hook_before_a_tool_ends_at_once_without_rules(cli, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["bethink", "hook", "tool-before"])
    ended = []
    monkeypatch.setattr(
        "os._exit", lambda code: ended.append(code) or (_ for _ in ()).throw(SystemExit)
    )
    with pytest.raises(SystemExit):
        main()
    assert ended == [0]
