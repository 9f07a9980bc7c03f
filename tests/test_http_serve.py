"""`bethink serve` and `bethink token` as people run them: what is refused, how it starts, how it ends, and many clients at once."""

from __future__ import annotations

import json
import shutil
import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial

import httpx2
import pytest
from http_server import V1, body, running
from stores import child_environment

from bethink.app.http import app, security


@pytest.fixture
def file(cli):
    return cli.home / "tokens.json"


def test_a_token_is_stored_as_a_hash(cli, file):
    secret = cli.ok("token", "create", "--name", "laptop").strip()
    assert secret.startswith("rcl_")
    assert secret not in file.read_text()
    assert security.hash_token(secret) in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (kept,) = json.loads(file.read_text())["tokens"]
    ((_, root, name),) = kept["projects"]
    assert (name, root) == ("shop", str(cli.project))
    shown = cli.ok("token", "list")
    assert secret not in shown and "+00:00" not in shown, "times are for people"


def test_an_expired_token_is_listed_as_such(cli, file):
    cli.ok("token", "create", "--name", "laptop").strip()
    (kept,) = json.loads(file.read_text())["tokens"]
    kept["expires"] = "2020-01-01"  # by hand
    file.write_text(json.dumps({"version": 1, "tokens": [kept]}))
    assert cli.json("token", "list")[0]["state"] == "expired"


def test_a_token_reads_only_this_project_by_default(cli, tmp_path):
    (tmp_path / "website").mkdir()
    more = {"a": "", "b": "--scope write --expires 90d", "c": "--all-projects --personal"}
    for name, words in {**more, "d": f"--project {tmp_path / 'website'}"}.items():
        cli.ok("token", "create", "--name", name, *words.split())
    found = {one["name"]: one for one in cli.json("token", "list")}
    plain = {"scope": "read", "personal": False, "expires": None}
    assert {**found["a"], **plain} == found["a"]
    assert found["b"]["expires"] > datetime.now(UTC).isoformat()
    assert (found["c"]["projects"], found["c"]["personal"]) == (None, True)
    assert [
        name
        for name, project in (("a", "shop"), ("d", "website"))
        if [one["name"] for one in found[name]["projects"]] != [project]
    ] == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        pytest.param(["token", "create"], 2, "cannot name a token", id="token-create-2"),
        pytest.param(["token", "create", "laptop"], 2, "--name", id="token-create-laptop"),
        pytest.param(
            ["token", "create", "--name", ""],
            2,
            "cannot name a token",
            id="token-create-name-empty",
        ),
        pytest.param(
            ["token", "create", "--name", "a b"], 2, "cannot name", id="token-create-name-b"
        ),
        pytest.param(
            ["token", "create", "--name", "../x"], 2, "cannot name", id="token-create-name-x"
        ),
        pytest.param(
            ["token", "create", "--name", "x" * 61], 2, "cannot name", id="token-create-name-x-2"
        ),
        pytest.param(
            ["token", "create", "--name", "x", "--scope", "admin"],
            2,
            "is not a valid --scope",
            id="token-create-name-x-3",
        ),
        pytest.param(
            ["token", "create", "--name", "x", "--expires", "2020-01-01"],
            2,
            "expiry",
            id="token-create-name-x-4",
        ),
        pytest.param(
            ["token", "create", "--name", "x", "--container", "y"],
            2,
            "whole projects",
            id="token-create-name-x-5",
        ),
        pytest.param(["token", "revoke"], 2, "Missing token", id="token-revoke-2"),
        pytest.param(["token", "revoke", "nobody"], 1, "no token", id="token-revoke-nobody"),
        pytest.param(["token", "list", "--personal"], 2, "`create`", id="token-list"),
        pytest.param(["token", "steal"], 2, "is not a valid action", id="token-steal"),
        pytest.param(["serve", "--host", "0.0.0.0"], 2, "no token yet", id="serve-host-0.0.0.0"),
        pytest.param(["serve", "--host", "::"], 2, "no token yet", id="serve-host-colon"),
        pytest.param(
            ["serve", "--host", "example.com"], 2, "not an address", id="serve-host-example.com"
        ),
        pytest.param(["serve", "--host", ""], 2, "not an address", id="serve-host-empty"),
        pytest.param(
            ["serve", "--host", "203.0.113.7", "--insecure-bind", "--port", "0"],
            1,
            "cannot be listened on",
            id="serve-host-203.0.113.7",
        ),
        pytest.param(
            ["serve", "--allow-host", "https://memory.example/"],
            2,
            "not the name of a host",
            id="serve-allow-host",
        ),
        pytest.param(["serve", "--port", "70000"], 2, "65535", id="serve-port-70000"),
        pytest.param(["serve", "--port", "-1"], 2, "whole number", id="serve-port-1"),
        pytest.param(
            ["serve", "--tls-cert", "cert.pem"],
            2,
            "belong together",
            id="serve-tls-cert-cert.pem-2",
        ),
        pytest.param(
            ["serve", "--tls-cert", "cert.pem", "--tls-key", "key.pem"],
            1,
            "no file",
            id="serve-tls-cert-cert.pem-tls-key",
        ),
        pytest.param(["serve", "--database", "/dev/null/x.db"], 1, "database", id="serve-database"),
    ],
)
def test_a_wrong_token_or_serve_command_is_refused(cli, words, code, said):
    result = cli(*words)
    assert (result.code, result.out) == (code, "") and said in result.err


def test_no_token_is_lost_when_many_are_made_at_once(file):
    def make(number):
        known, now = security.Tokens(file), datetime.now(UTC)
        return known.create(security.Caller("", f"t{number}", "read", created=now))[1].id

    with ThreadPoolExecutor(12) as pool:
        made = set(pool.map(make, range(12)))
    assert {token.id for token in security.Tokens(file).known()} == made and len(made) == 12


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("null", id="null"),
        pytest.param("[]", id="left-square-bracket"),
        pytest.param('{"version": 1}', id="version-1"),
        pytest.param('{"version": 9, "tokens": []}', id="version-9-tokens"),
        pytest.param("\x00", id="u0000"),
        pytest.param("[" * 9999, id="left-square-bracket-9999"),
        pytest.param('{"version": 1, "tokens": [{}]}', id="version-1-tokens"),
    ],
)
def test_a_broken_token_file_is_not_overwritten(cli, file, text):
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    file.chmod(0o600)
    cli.fails("token", "list", code=2)
    cli.fails("token", "create", "--name", "x", code=2)
    assert file.read_text() == text


def test_a_token_file_that_others_can_read_is_not_used(cli, file):
    cli.ok("token", "create", "--name", "x")
    file.chmod(0o666)
    assert "chmod 600" in cli.fails("token", "list", code=2)


def test_tokens_alone_are_not_enough_to_be_reached_from_elsewhere(cli, monkeypatch):
    cli.ok("token", "create", "--name", "laptop")
    assert "without TLS" in cli.fails("serve", "--host", "0.0.0.0", code=2)
    seen = []
    monkeypatch.setattr(app, "serve", lambda *_, session, **__: seen.append(session) or True)
    for host in ("0.0.0.0", "127.0.0.1"):
        cli.ok("serve", "--host", host, "--insecure-bind")
    assert seen[0] == "" and seen[1]  # who can be reached makes nobody a token unasked


def test_a_port_that_is_taken_is_reported(cli):
    with running(cli.home, cli.project) as here:
        port = here.address.rpartition(":")[2]
        assert "Address already in use" in cli.fails("serve", "--port", port, code=1)


@contextmanager
def begun(cli, *command):
    """A server in a process of its own, ended with SIGTERM."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = child_environment(BETHINK_HOME=str(cli.home))
    words = [sys.executable, *command]
    process = subprocess.Popen(words, cwd=cli.project, env=environment, **pipes)
    try:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        yield process, json.loads(line)["url"]
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(20)
        for stream in (process.stdout, process.stderr):
            stream.close()


def started(cli, *words):
    """`bethink serve` as people run it."""
    return begun(cli, "-m", "bethink", "serve", "--port", "0", "--json", *words)


def client_of(url, secret, timeout=30):
    headers = {"Authorization": f"Bearer {secret}"}
    return httpx2.Client(base_url=url, headers=headers, trust_env=False, timeout=timeout)


def test_the_server_ends_after_its_running_requests(cli):
    secret = cli.ok("token", "create", "--name", "laptop").strip()
    ours = cli.ok("token", "create", "--name", "ours", "--scope", "write").strip()
    texts = [f"Statement {n} of a long batch with {n * 7} apples" for n in range(500)]
    told = {"memories": [{"content": text} for text in texts], "dedup": False}
    answers = []
    with started(cli) as (process, url):
        with client_of(url, ours) as owner, client_of(url, secret) as reader:
            assert owner.get("/readyz").json() == {"status": "ready"}
            first = {"memories": [{"content": "We deploy from main"}]}
            assert owner.post(f"{V1}/memories", json=first).status_code == 201
            found = body(reader.get(f"{V1}/search", params={"query": "deploy"}))
            assert found["items"][0]["source"] == "note:token:ours"
            send = partial(owner.post, f"{V1}/memories", json=told)
            sending = threading.Thread(target=lambda: answers.append(send().status_code))
            sending.start()
            while body(reader.get(f"{V1}/memories"))["total"] == 1 and not answers:
                pass
            process.send_signal(signal.SIGTERM)
            sending.join(30)
        assert answers == [201]
        assert process.wait(20) == 0
        said = process.stderr.read()
        assert "Bethink serves shop at http://127.0.0.1:" in said and "Traceback" not in said
        assert not any(one in said for one in ("rcl_", "deploy"))  # stderr is no terminal here
        assert "GET /api/v1/search 200" in said
        left = sorted(path.name for path in cli.home.iterdir())
        assert left == ["memory.db", "projects", "tokens.json"]
    assert len(cli.json("list", "--all")) == 501


def test_a_call_that_never_ends_does_not_keep_the_server_from_ending(cli):
    stuck = """
import sys, time
from bethink.app.cli.main import main
from bethink.app.http import app
from bethink.api import Bethink
app.LAST, app.GRACE = 0.2, 1
Bethink.history = lambda self, id: time.sleep(600)
sys.exit(main(["serve", "--port", "0", "--json"]))
"""
    token = cli.ok("token", "create", "--name", "laptop").strip()
    with begun(cli, "-c", stuck) as (process, url):
        with pytest.raises(httpx2.ReadTimeout), client_of(url, token, 0.5) as client:
            client.get(f"{V1}/memories/x/history")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert "given up" in process.stderr.read()


@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl to make a certificate with")
def test_tls_is_spoken_where_a_certificate_is_given(cli, tmp_path):
    make = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 1 -subj /CN=localhost"
    subprocess.run(make.split(), cwd=tmp_path, capture_output=True, check=True)
    tls = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    with running(cli.home, cli.project, tls=tls) as here:
        assert here.owner.get(f"{V1}/memories").status_code == 200
        assert here.client(None).get(f"{V1}/memories").status_code == 401
