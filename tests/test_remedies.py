"""Where a known fix is carried over to another command, wording or name, and where it is not."""

import json

import pytest
from test_failures import backfill, fixes, hook, outcomes, ran, session
from transcripts import claude_call, claude_says

from bethink.ingest.causes import name_causes
from bethink.ingest.commands import name_job
from bethink.ingest.failures import edits_settings, find_error, name_kind, normalise_error

REFUSED = 'connection to server at "localhost" (127.0.0.1), port 5432 failed: Connection refused'
UP = ("docker compose up -d postgres", "Started")
NO_TOKEN = "GraphQL: Resource not accessible by personal access token"
NO_YAML = "ModuleNotFoundError: No module named 'yaml'"
NO_ROLE = 'psql: error: connection on socket "/tmp/.s" failed: FATAL:  role "ada" does not exist'
NO_PACKAGES = "Compilation Error\n  dbt found 2 package(s) specified in packages.yml, but only 0 package(s) installed."
NO_PROJECT = "The required property [project] is not currently set."
NO_MODULE = "ERROR! couldn't resolve module. It is misspelt, or its collection is missing:"
FULL = "no space left on device"
NO_EMULATOR = "FirebaseError: The host and port of the firestore emulator must be specified."
PEERS = "npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree"


def line(answer):
    found = json.loads(answer)["hookSpecificOutput"]["additionalContext"] if answer else ""
    return found.splitlines()[2] if found else ""


def learned(cli, tmp_path, *calls):
    backfill(cli, tmp_path, *session(cli, *calls))


def at(cli, command, error):
    """The line at a failed command of a later session."""
    return line(hook(cli, f"Exit code 1\n{error}", tool_input={"command": command}))


# Causes


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        pytest.param("Error: connect ECONNREFUSED 127.0.0.1:6379", "service:6379", id="node"),
        pytest.param(REFUSED, "service:5432", id="postgres"),
        pytest.param(
            "Error 111 connecting to localhost:6379. Connection refused.",
            "service:6379",
            id="redis",
        ),
        pytest.param(
            "page.goto: net::ERR_CONNECTION_REFUSED at http://localhost:4173/login",
            "service:4173",
            id="browser",
        ),
        pytest.param(
            "Cannot connect to the Docker daemon at unix:///x.sock. Is the docker daemon running?",
            "service:docker",
            id="docker",
        ),
        pytest.param("Error: Port 5173 is already in use", "port:5173", id="vite"),
        pytest.param(
            "listen EADDRINUSE: address already in use :::3000", "port:3000", id="port of node"
        ),
        pytest.param(
            "E   ModuleNotFoundError: No module named 'yaml.x'", "module:yaml", id="python"
        ),
        pytest.param("error TS2307: Cannot find module '@a/b' or its", "module:@a/b", id="tsc"),
        pytest.param("(eval):1: command not found: timeout", "command:timeout", id="zsh"),
        pytest.param("sh: 1: vitest: not found", "command:vitest", id="sh"),
        pytest.param('exec: "gcc": executable file not found in $PATH', "command:gcc", id="go"),
        pytest.param("/usr/bin/ld: cannot find -lpq: No such file", "library:pq", id="linker"),
        pytest.param("Environment variable not found: DB_URL.", "variable:DB_URL", id="prisma"),
        pytest.param("npm error ERESOLVE could not resolve", "code:ERESOLVE", id="npm"),
        pytest.param(
            "ERR_PNPM_ADDING_TO_ROOT Running this", "code:ERR_PNPM_ADDING_TO_ROOT", id="pnpm"
        ),
    ],
)
def test_an_error_names_its_cause(error, cause):
    assert name_causes("x", "", error, normalise_error(error))[0] == cause


@pytest.mark.parametrize(
    "error",
    [
        pytest.param("Cannot find module './cart'", id="a file of the project"),
        pytest.param("npm error code ENOENT", id="a code that says nothing"),
        pytest.param("AssertionError: expected 1 to be 2", id="an expectation"),
    ],
)
def test_an_error_without_a_cause_of_its_own_has_none(error):
    assert name_causes("x", name_kind("x", error), error, normalise_error(error)) == ()


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        pytest.param(
            "error: linking with `cc` failed: exit status: 1\n  = note: /usr/bin/ld: cannot find -lpq: No such file",
            "= note: /usr/bin/ld: cannot find -lpq: No such file",
            id="linker",
        ),
        pytest.param(
            "[ERROR] Failed to execute goal on project api: Could not resolve\n[ERROR] Could not find artifact a:core",
            "[ERROR] Could not find artifact a:core",
            id="maven",
        ),
        pytest.param(
            "error: failed to push some refs to 'x'\nsrc/a.ts(1,2): error TS2322: Type",
            "src/a.ts(1,2): error TS2322: Type",
            id="push",
        ),
        pytest.param(
            "Error: [Cabal-7107]\nCould not resolve dependencies:\n[__1] unknown package: servant",
            "[__1] unknown package: servant",
            id="a code and a heading",
        ),
        pytest.param(
            "error: failed to get `lib` as a dependency\n\nCaused by:\n  failed to authenticate when downloading",
            "failed to authenticate when downloading",
            id="Caused by",
        ),
        pytest.param(
            "There was 1 error:\n1) CartTest::total\nApp\\Encryption\\MissingKeyException: No key was given.",
            "App\\Encryption\\MissingKeyException: No key was given.",
            id="an exception with its namespace",
        ),
    ],
)
def test_a_summary_gives_way_to_the_line_that_says_why(output, expected):
    assert find_error(output) == expected


def test_a_tool_that_is_installed_does_not_say_what_failed():
    assert name_kind("pnpm add -D vitest", "Running this adds it to the root") == "other"


# Outcomes


@pytest.mark.parametrize(
    ("command", "output", "expected"),
    [
        pytest.param("(cd web && npm test)", "", ("npm test", True), id="a group"),
        pytest.param("bash -lc 'npm test'", "", ("npm test", True), id="a shell in a shell"),
        pytest.param(
            "npm test > /tmp/log 2>&1; tail -20 /tmp/log",
            "Tests: 1 failed, 2 passed",
            ("npm test", False),
            id="a log that is shown afterwards",
        ),
        pytest.param(
            "npm test || true",
            "Tests: 1 failed, 2 passed",
            ("npm test", False),
            id="an alternative",
        ),
    ],
)
def test_the_outcome_of_a_wrapped_command_is_read(command, output, expected):
    assert outcomes(command, False, output)[-1] == expected


# Fixes


def test_an_environment_that_is_set_in_one_line_is_one_fix():
    old = 'error shop@1.0.0: The engine "node" is incompatible with this module.'
    events = ran("yarn", True, old), ran("source ~/.nvm/nvm.sh && nvm use 22 && yarn")
    assert fixes(*events) == [("version", "ran `source ~/.nvm/nvm.sh && nvm use 22`")]


def test_a_variable_that_is_dropped_is_a_fix():
    events = ran("gh pr create", True, NO_TOKEN), ran("unset GH_TOKEN && gh pr create")
    assert fixes(*events) == [("permission", "ran `unset GH_TOKEN`")]


def test_a_file_that_echo_writes_is_a_fix():
    error = "SDK location not found. Define a valid SDK location"
    write = 'echo "sdk.dir=/opt/sdk" > local.properties'
    events = ran("./gradlew build", True, error), ran(write), ran("./gradlew build")
    assert fixes(*events)[0][1] == f"ran `{write}`"


def test_a_commit_between_fix_and_push_is_not_the_fix():
    stale = "✗ generated types are out of date (src/types.ts)"
    events = ran("pnpm codegen"), ran("git commit -am x"), ran("git push")
    assert fixes(ran("git push", True, stale), *events) == [("other", "ran `pnpm codegen`")]


def test_an_option_that_was_added_is_a_fix_of_a_check():
    error = 'Error: [worker]: Timeout calling "update"'
    events = ran("npx vitest run", True, error), ran("npx vitest run --pool=forks")
    assert fixes(*events)[0][1] == "ran `npx vitest run --pool=forks` instead"


def test_an_option_that_leaves_tests_out_is_no_fix():
    error = "AssertionError: expected 1 to be 2 in the cart"
    assert fixes(ran("npm test", True, error), ran("npm test --grep login")) == []


@pytest.mark.parametrize(
    ("fix", "expected"),
    [
        pytest.param("edited pyproject.toml (→ strict)", True, id="settings"),
        pytest.param("edited web/vite.config.ts (a → b) and package.json (c → d)", True, id="two"),
        pytest.param("edited src/cart.ts (a → b)", False, id="code"),
        pytest.param("edited src/cart.ts and pyproject.toml", False, id="both"),
        pytest.param("ran `npm ci`", False, id="a command"),
    ],
)
def test_edits_of_settings_are_told_from_edits_of_code(fix, expected):
    assert edits_settings(fix) is expected


# Carried over


@pytest.mark.parametrize(
    ("calls", "command", "error", "expected"),
    [
        pytest.param(
            [("alembic current", REFUSED, True), UP, ("alembic current",)],
            "npm run e2e",
            "Error: connect ECONNREFUSED 127.0.0.1:5432",
            "docker compose up -d postgres",
            id="the same service, by another client",
        ),
        pytest.param(
            [("python gen.py", NO_YAML, True), ("pip install pyyaml",), ("python gen.py",)],
            "pytest -q",
            f"tests/a.py:3: in <module>\n    import yaml\nE   {NO_YAML}",
            "pip install pyyaml",
            id="the same module, in a test run",
        ),
        pytest.param(
            [("psql shop", NO_ROLE, True), ("psql -U postgres shop",)],
            "psql -d shop",
            NO_ROLE.replace("ada", "bo"),
            "-U postgres",
            id="the same wording for another name",
        ),
        pytest.param(
            [("npm install", PEERS, True), ("npm install --legacy-peer-deps",)],
            "npm install -D left",
            "npm error code ERESOLVE\nnpm error ERESOLVE could not resolve",
            "--legacy-peer-deps",
            id="the same code in another wording",
        ),
        pytest.param(
            [("timeout 9 npm test", "zsh: command not found: timeout", True), ("gtimeout 9 npm test",)],
            "timeout 30 cargo test",
            "bash: line 1: timeout: command not found",
            "gtimeout",
            id="the same missing program before another",
        ),
        pytest.param(
            [
                ("gh pr create", f"{NO_TOKEN} (createPullRequest)", True),
                ("unset GH_TOKEN && gh pr create",),
            ],
            "gh pr comment 7 --body x",
            f"{NO_TOKEN} (addComment)",
            "unset GH_TOKEN",
            id="the same refusal of another request",
        ),
        pytest.param(
            [("dbt run", NO_PACKAGES, True), ("dbt deps",), ("dbt run",)],
            "dbt test",
            NO_PACKAGES.replace("2 package", "3 package"),
            "dbt deps",
            id="a program that no list has",
        ),
        pytest.param(
            [("gcloud run deploy", f"ERROR: (gcloud.run.deploy) {NO_PROJECT}", True), ("gcloud config set project shop",), ("gcloud run deploy",)],
            "gcloud builds submit",
            f"ERROR: (gcloud.builds.submit) {NO_PROJECT}",
            "gcloud config set project shop",
            id="the same wording around other names",
        ),
        pytest.param(
            [("ansible-playbook a.yml", f"{NO_MODULE} 'db.one'.", True), ("ansible-galaxy install -r requirements.yml",), ("ansible-playbook a.yml",)],
            "ansible-playbook b.yml",
            f"{NO_MODULE} 'db.two'.",
            "ansible-galaxy install -r requirements.yml",
            id="another part that the same installation brings",
        ),
        pytest.param(
            [("docker build .", f"ERROR: failed to solve: write /var/lib/a: {FULL}", True), ("docker system prune -af",), ("docker build .",)],
            "docker compose build",
            f"failed to copy files: write /var/lib/b/c: {FULL}",
            "docker system prune -af",
            id="the same cause behind other clauses",
        ),
        pytest.param(
            [("ffmpeg -i a.mov a.mp4", "Unknown encoder 'libx265'", True), ("/opt/ffmpeg -i a.mov a.mp4",)],
            "ffmpeg -i b.mov b.mp4",
            "[vost#0:0 @ 0x55] Unknown encoder 'libx265'",
            "/opt/ffmpeg",
            id="the same text behind a label",
        ),
        pytest.param(
            [("npm run rules", NO_EMULATOR, True), ("npx firebase emulators:exec 'npm run rules'",)],
            "npm run rules -- carts",
            NO_EMULATOR,
            "emulators:exec",
            id="inside of another environment",
        ),
        pytest.param(
            [("rsync -a x web:/srv", "ada@web: Permission denied (publickey).", True), ("ssh-add ~/.ssh/deploy",), ("rsync -a x web:/srv",)],
            "scp y web:/srv",
            "ada@web: Permission denied (publickey).",
            "ssh-add ~/.ssh/deploy",
            id="a machine that was not reached",
        ),
    ],
)  # fmt: skip
def test_a_fix_is_carried_over_to(cli, tmp_path, calls, command, error, expected):
    learned(cli, tmp_path, *calls)
    assert expected in at(cli, command, error)


@pytest.mark.parametrize(
    ("calls", "command", "error"),
    [
        pytest.param(
            [("node a.js", "Error: connect ECONNREFUSED 127.0.0.1:5432", True), UP, ("node a.js",)],
            "python b.py",
            "Error: connect ECONNREFUSED 127.0.0.1:9200",
            id="another service",
        ),
        pytest.param(
            [("python gen.py", NO_YAML, True), ("pip install pyyaml",), ("python gen.py",)],
            "python gen.py",
            "ModuleNotFoundError: No module named 'toml'",
            id="another module",
        ),
        pytest.param(
            [
                ("gh issue create --label infra", "could not add label: 'infra' not found", True),
                ("gh label create infra",),
                ("gh issue create --label infra",),
            ],
            "gh pr create --label urgent",
            "could not add label: 'urgent' not found",
            id="a name that the fix is about",
        ),
        pytest.param(
            [("pytest -q", "E   ConnectionResetError: reset by peer", True), ("pytest -q",)],
            "pytest -q",
            "E   ConnectionResetError: reset by peer",
            id="an error that passed once by itself",
        ),
        pytest.param(
            [
                ("nim c a.nim", "a.nim(4, 7) Error: undeclared identifier: 'rate'", True),
                ("nim c --path:lib a.nim",),
            ],
            "nim c b.nim",
            "b.nim(9, 1) Error: undeclared identifier: 'seats'",
            id="another name in code",
        ),
        pytest.param(
            [
                ("ansible-playbook a.yml", f"{NO_MODULE} 'db.one'.", True),
                ("ansible-galaxy install db",),
                ("ansible-playbook a.yml",),
            ],
            "ansible-playbook b.yml",
            f"{NO_MODULE} 'mail.two'.",
            id="a part that this installation does not bring",
        ),
        pytest.param(
            [("cat a", "cat: a: No such file or directory", True), ("touch a",), ("./run a", "x")],
            "./run b",
            "open b: No such file or directory",
            id="an ending that any command may have",
        ),
    ],
)
def test_a_fix_is_not_carried_over_to(cli, tmp_path, calls, command, error):
    learned(cli, tmp_path, *calls)
    assert at(cli, command, error) == ""


def test_a_check_that_passed_unchanged_twice_is_called_flaky(cli, tmp_path):
    reset = "E   ConnectionResetError: reset by peer"
    flaky = [("pytest -q", reset, True), ("pytest -q", "3 passed")]
    learned(cli, tmp_path, *flaky, ("touch other.txt",), *flaky)
    assert at(cli, "pytest -q", reset) == (
        "Flaky: the same command passed unchanged after this error (2 times, last 2026-05-01, session s1)"
    )


IGNORED = "The following paths are ignored by one of your .gitignore files:\nNOTES.md"
UNMATCHED = "fatal: pathspec 'docs/old.md' did not match any files"
NO_SERVER = 'server "sandman" not found'


@pytest.mark.parametrize(
    ("calls", "command", "error"),
    [
        pytest.param(
            [("git add a.rb NOTES.md", IGNORED, True), ("git stash pop",), ("git add b.rb",)],
            "git add TODO.md",
            IGNORED,
            id="other paths were added later",
        ),
        pytest.param(
            [
                ("sandcastle create foo", "ada@web: Permission denied (publickey).", True),
                ("ssh web \"sudo rails runner 'puts Sandbox.find(3).status'\"",),
                ("sandcastle start bar",),
            ],
            "sandcastle create baz",
            "ada@web: Permission denied (publickey).",
            id="a look at another machine",
        ),
        pytest.param(
            [
                ("sandcastle create foo", "boom: the pool has no room", True),
                ("ssh web 'sudo systemctl restart pool'",),
                ("sandcastle create foo",),
            ],
            "sandcastle create foo",
            "boom: the pool has no room",
            id="a command on another machine",
        ),
        pytest.param(
            [("sandcastle use sandman", NO_SERVER, True), ("sandcastle use l2",)],
            "sandcastle use sandman",
            NO_SERVER,
            id="another server than the one that was not found",
        ),
        pytest.param(
            [("npm whoami", "npm error 401 Unauthorized - GET /-/whoami", True), ("npm whoami", "ada")] * 2,
            "npm whoami",
            "npm error 401 Unauthorized - GET /-/whoami",
            id="an unrecorded login",
        ),
        pytest.param(
            [
                ("fleetctl status web", "boom: fleet web has no members", True),
                ("psql -c 'select count(*) from members'",),
                ("fleetctl status web",),
            ],
            "fleetctl status web",
            "boom: fleet web has no members",
            id="a query",
        ),
    ],
)  # fmt: skip
def test_no_fix_is_learned_from(cli, tmp_path, calls, command, error):
    learned(cli, tmp_path, *calls)
    assert at(cli, command, error) == ""


def test_a_pass_behind_words_of_the_user_is_no_luck(cli, tmp_path):
    reset = "E   ConnectionResetError: reset by peer"
    place = {"cwd": str(cli.project)}
    fails, passes = (
        claude_call("pytest -q", reset, True, **place),
        claude_call("pytest -q", "3 passed", **place),
    )
    said = claude_says("Okay, I started the proxy for you. Please go on.", "user", **place)
    one = [*fails, claude_says("The peer resets the connection.", **place), said, *passes]
    backfill(cli, tmp_path, *one, claude_says("It passes.", **place))
    assert cli.json("failures") == []


def test_files_that_git_does_not_know_are_no_wrong_directory(cli, tmp_path):
    learned(cli, tmp_path, *[("git rm docs/old.md", UNMATCHED, True), ("ls docs",)] * 2)
    causes = [one["cause"] for one in cli.json("failures")]
    assert "wrong directory" not in causes


def test_the_same_words_of_different_commands_are_two_failures(cli, tmp_path):
    learned(
        cli, tmp_path, ("git add docs/old.md", UNMATCHED, True), ("cd .. && git add docs/old.md",)
    )
    assert at(cli, "git rm docs/old.md", UNMATCHED) == ""


def test_luck_does_not_replace_a_fix(cli, tmp_path):
    missing = "Error: Cannot find module 'zod'"
    learned(cli, tmp_path, ("npm test", missing, True), ("npm ci",), ("npm test",))
    again = [("npm test", missing, True), ("npm test", "3 passing")]
    backfill(cli, tmp_path, *session(cli, *again, session="s2", day=2), session="s2")
    assert [one["fix"] for one in cli.json("failures")] == ["ran `npm ci`"]


def test_a_failure_of_an_unknown_program_is_kept_only_with_its_fix(cli, tmp_path):
    learned(cli, tmp_path, ("./deploy.sh", "boom: permission denied by the server", True))
    assert cli.json("failures") == []


def test_the_job_of_a_compiler_has_no_argument():
    assert name_job("javac A.java -d out") == name_job("javac B.java")


def test_other_tests_that_pass_are_no_fix_of_the_failed_ones():
    events = (
        ran("go test ./sync -run TestPrune", True, "sync_test.go:9: cannot auto-sign commit"),
        ran("go test ./sync -run TestFetch"),
    )
    assert fixes(*events) == []
