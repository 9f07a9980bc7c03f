"""`bethink serve` and `bethink token` as people run them: what is refused, how it starts, how it ends, and many clients at once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from contextlib import contextmanager
from datetime import UTC, datetime

import httpx2
import pytest
from case_tables import cases
from cli_runner import cli
from http_server import V1, body, running
from stores import child_environment

from bethink.surface.http import security

__all__ = ["cli"]
SOME = 1.5  # seconds that many clients keep the server busy


@pytest.fixture
def file(cli):
    return cli.home / "tokens.json"


# Tokens


def test_a_token_is_shown_once_and_kept_as_a_hash_that_only_its_owner_can_read(cli, file):
    secret = cli.ok("token", "create", "--name", "laptop").strip()
    assert secret.startswith("rcl_")
    assert secret not in file.read_text()
    assert security.hash_token(secret) in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert secret not in cli.ok("token", "list")


def test_a_token_is_for_this_project_for_reading_and_nothing_personal_unless_more_is_said(
    cli, tmp_path
):
    (tmp_path / "website").mkdir()
    website = str(tmp_path / "website")
    for words in (
        "a",
        f"b --scope write --also {website} --expires 90d",
        "c --all-projects --personal",
        f"d --project {website}",
    ):
        cli.ok("token", "create", "--name", *words.split())
    found = {one["name"]: one for one in cli.json("token", "list")}
    assert [one["name"] for one in found["a"]["projects"]] == ["shop"]
    plain = {"scope": "read", "personal": False, "expires": None}
    assert {**found["a"], **plain} == found["a"]
    assert [one["name"] for one in found["b"]["projects"]] == ["shop", "website"]
    assert found["b"]["expires"] > datetime.now(UTC).isoformat()
    assert (found["c"]["projects"], found["c"]["personal"]) == (None, True)
    assert [one["name"] for one in found["d"]["projects"]] == ["website"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    cases("http-serve-what-is-no-token-command", {}),
)
def test_what_is_no_token_command_is_explained(cli, words, code, said):
    assert said in cli.fails("token", *words, code=code)


def test_no_token_is_lost_when_many_are_made_at_once(cli, file):
    made = []

    def make(number):
        name, now = f"t{number}", datetime.now(UTC)
        made.append(
            security.FileTokens(file).create(name, "read", None, personal=False, now=now)[1].id
        )

    threads = [threading.Thread(target=make, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {token.id for token in security.FileTokens(file).known()} == set(made)
    assert len(made) == 12


@pytest.mark.parametrize(
    "text",
    [
        *("", "null", "[]", '{"version": 1}', '{"version": 9, "tokens": []}'),
        *('{"version": 1, "tokens": [{}]}', "\x00", "[" * 9999),
    ],
)
def test_a_file_of_tokens_that_is_none_is_said_to_be_so_and_is_not_overwritten(cli, file, text):
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    file.chmod(0o600)
    cli.fails("token", "list", code=2)
    cli.fails("token", "create", "--name", "x", code=2)
    assert file.read_text() == text


@pytest.mark.skipif(os.name != "posix", reason="permissions")
def test_tokens_that_others_could_have_written_are_not_trusted(cli, file):
    cli.ok("token", "create", "--name", "x")
    file.chmod(0o666)
    assert "chmod 600" in cli.fails("token", "list", code=2)


# What is refused


@pytest.mark.parametrize(
    ("words", "code", "said"),
    cases("http-serve-a-server-that-would-be"),
)
def test_a_server_that_would_be_unsafe_or_impossible_does_not_start(cli, words, code, said):
    result = cli("serve", *words)
    assert said in result.err and result.code == code


def keys(tmp_path):
    return "--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")


def test_tokens_alone_are_not_enough_to_be_reached_from_elsewhere(cli):
    cli.ok("token", "create", "--name", "laptop")
    assert "without TLS" in cli.fails("serve", "--host", "0.0.0.0", code=2)


def test_a_port_that_is_taken_is_said_to_be_so(cli, tmp_path):
    (cli.home).mkdir(exist_ok=True)
    with running(cli.home, cli.project) as here:
        port = here.address.rpartition(":")[2]
        assert "Address already in use" in cli.fails("serve", "--port", port, code=1)


# Running


@contextmanager
def begun(cli, *command):
    """A server in a process of its own, ended with SIGTERM."""
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=cli.project,
        env=child_environment(BETHINK_HOME=str(cli.home)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
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


def owner_of(cli, url, timeout=30):
    """Whoever started a server, as its note for them says."""
    note = json.loads((cli.home / "servers" / f"{url.rpartition(':')[2]}.json").read_text())
    headers = {"Authorization": f"Bearer {note['token']}"}
    return httpx2.Client(base_url=url, headers=headers, trust_env=False, timeout=timeout)


def end(process, number=signal.SIGTERM):
    """What a server said on stderr that was told to end."""
    process.send_signal(number)
    assert process.wait(20) == 0
    said = process.stderr.read()
    assert "Traceback" not in said
    return said


def test_it_starts_serves_its_owner_and_ends_with_nothing_left_behind(cli):
    secret = cli.ok("token", "create", "--name", "laptop", "--scope", "write").strip()
    with started(cli) as (process, url):
        kept = cli.home / "servers" / f"{url.rpartition(':')[2]}.json"
        note = json.loads(kept.read_text())
        assert (note["url"], note["pid"]) == (url, process.pid)
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        with httpx2.Client(base_url=url, trust_env=False) as client:
            assert client.get("/readyz").json() == {"status": "ready"}
            assert client.get(f"{V1}/memories").status_code == 401
            owner = {"Authorization": f"Bearer {note['token']}"}
            told = {"memories": [{"content": "We deploy from main"}]}
            assert client.post(f"{V1}/memories", json=told, headers=owner).status_code == 201
            reader = {"Authorization": f"Bearer {secret}"}
            found = client.get(f"{V1}/search", params={"query": "deploy"}, headers=reader)
            assert body(found)["items"][0]["source"] == "note:user"
        said = end(process)
        assert "Bethink serves shop at http://127.0.0.1:" in said
        assert note["token"] not in said  # stderr is no terminal here
        assert secret not in said
        assert "deploy" not in said
        assert "GET /api/v1/search 200" in said
        assert not kept.exists()
        assert sorted(path.name for path in cli.home.iterdir()) == ["memory.db", "tokens.json"]
    assert cli.json("search", "deploy")[0]["content"] == "We deploy from main"


def test_what_runs_is_finished_before_it_ends(cli):
    with started(cli) as (process, url), owner_of(cli, url) as client:
        texts = [f"Statement {n} of a long batch with {n * 7} apples" for n in range(800)]
        told = {"memories": [{"content": text} for text in texts], "dedup": False}
        answers = []
        sending = threading.Thread(
            target=lambda: answers.append(client.post(f"{V1}/memories", json=told).status_code)
        )
        with owner_of(cli, url) as other:
            sending.start()
            while not body(other.get(f"{V1}/memories"))["total"] and not answers:
                pass
        process.send_signal(signal.SIGTERM)
        sending.join(30)
        assert answers == [201]
        assert process.wait(20) == 0
    assert len(cli.json("list", "--all")) == 800


def test_a_call_that_never_ends_does_not_keep_the_server_from_ending(cli):
    stuck = """
import sys, time
from bethink.surface.cli.main import main
from bethink.surface.http import app
from bethink.api import Bethink
app.LAST = 0.2
Bethink.history = lambda self, id: time.sleep(600)

app.GRACE = 1
sys.exit(main(["serve", "--port", "0", "--json"]))
"""
    with begun(cli, "-c", stuck) as (process, url):
        with pytest.raises(httpx2.ReadTimeout), owner_of(cli, url, 0.5) as client:
            client.get(f"{V1}/memories/x/history")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert "given up" in process.stderr.read()


@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl to make a certificate with")
def test_tls_is_spoken_where_a_certificate_is_given(cli, tmp_path):
    make = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 1 -subj /CN=localhost"
    subprocess.run(make.split(), cwd=tmp_path, capture_output=True, check=True)
    secret = cli.ok("token", "create", "--name", "laptop").strip()
    with (
        started(cli, "--host", "0.0.0.0", *keys(tmp_path)) as (_, url),
        httpx2.Client(verify=False, trust_env=False) as client,
    ):
        assert url.startswith("https://0.0.0.0:")
        there = url.replace("0.0.0.0", "127.0.0.1") + f"{V1}/memories"
        owner = {"Authorization": f"Bearer {secret}"}
        assert client.get(there, headers=owner).status_code == 200
        assert client.get(there).status_code == 401
        assert not (cli.home / "servers").exists()  # nobody gets a token without asking for one
