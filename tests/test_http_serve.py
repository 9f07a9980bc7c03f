"""`bethink serve` and `bethink token` as people run them: what is refused, how it starts, how it ends, and many clients at once."""

from __future__ import annotations

import json
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import httpx2
import pytest
from cli_runner import cli
from http_server import body, running
from stores import child_environment

from bethink.errors import BethinkError
from bethink.surface.http import tokens
from bethink.surface.http.background import TASKS, Jobs

__all__ = ["cli"]
V1 = "/api/v1"
SOME = 1.5  # seconds that many clients keep the server busy


@pytest.fixture
def file(cli):
    return cli.home / "tokens.json"


# Tokens


def test_a_token_is_shown_once_and_kept_as_a_hash_that_only_its_owner_can_read(cli, file):
    secret = cli.ok("token", "create", "--name", "laptop").strip()
    assert secret.startswith("rcl_")
    assert secret not in file.read_text()
    assert tokens.digest(secret) in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert secret not in cli.ok("token", "list")


def test_a_token_is_for_this_project_for_reading_and_nothing_personal_unless_more_is_said(
    cli, tmp_path
):
    (tmp_path / "website").mkdir()
    cli.ok("token", "create", "--name", "a")
    cli.ok(
        "token",
        "create",
        "--name",
        "b",
        "--scope",
        "write",
        "--also",
        str(tmp_path / "website"),
        "--expires",
        "90d",
    )
    cli.ok("token", "create", "--name", "c", "--all-projects", "--personal")
    cli.ok("token", "create", "--name", "d", "--project", str(tmp_path / "website"))
    found = {one["name"]: one for one in cli.json("token", "list")}
    assert [one["name"] for one in found["a"]["projects"]] == ["shop"]
    assert (found["a"]["scope"], found["a"]["personal"], found["a"]["expires"]) == (
        "read",
        False,
        None,
    )
    assert [one["name"] for one in found["b"]["projects"]] == ["shop", "website"]
    assert found["b"]["expires"] > datetime.now(UTC).isoformat()
    assert (found["c"]["projects"], found["c"]["personal"]) == (None, True)
    assert [one["name"] for one in found["d"]["projects"]] == ["website"]


def test_a_revoked_token_stays_in_the_list_and_its_name_can_be_used_again(cli):
    cli.ok("token", "create", "--name", "ci")
    assert "already" in cli.fails("token", "create", "--name", "ci", code=2)
    assert cli.ok("token", "revoke", "ci").startswith("revoked ci")
    cli.ok("token", "create", "--name", "ci", "--scope", "write")
    assert [one["state"] for one in cli.json("token", "list")] == ["revoked", "active"]
    cli.ok("token", "revoke", cli.json("token", "list")[1]["id"])
    assert [one["state"] for one in cli.json("token", "list")] == ["revoked", "revoked"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["create"], 2, "needs a name"),
        (["create", "laptop"], 2, "--name"),
        (["create", "--name", ""], 2, "needs a name"),
        (["create", "--name", "a b"], 2, "cannot name"),
        (["create", "--name", "../x"], 2, "cannot name"),
        (["create", "--name", "x" * 61], 2, "cannot name"),
        (["create", "--name", "x", "--scope", "admin"], 2, "is no --scope"),
        (["create", "--name", "x", "--expires", "2020-01-01"], 2, "expiry"),
        (["create", "--name", "x", "--also", "/nowhere/at/all"], 1, "no directory"),
        (["create", "--name", "x", "--also", ".", "--all-projects"], 2, "--all-projects"),
        (["create", "--name", "x", "--container", "y"], 2, "whole projects"),
        (["revoke"], 2, "Which token"),
        (["revoke", "nobody"], 1, "no token"),
        (["list", "x"], 2, "takes no name"),
        (["list", "--personal"], 2, "token create"),
        (["steal"], 2, "is no action"),
    ],
)
def test_what_is_no_token_command_is_explained(cli, words, code, said):
    assert said in cli.fails("token", *words, code=code)


def test_no_token_is_lost_when_many_are_made_at_once(cli, file):
    made = []

    def make(number):
        made.append(
            tokens.FileTokens(file)
            .create(f"t{number}", "read", None, personal=False, now=datetime.now(UTC))[1]
            .id
        )

    threads = [threading.Thread(target=make, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {token.id for token in tokens.FileTokens(file).known()} == set(made)
    assert len(made) == 12


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        '{"version": 1}',
        '{"version": 9, "tokens": []}',
        '{"version": 1, "tokens": [{}]}',
        "\x00",
        "[" * 9999,
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


def test_an_expired_token_says_so(file):
    now = datetime.now(UTC)
    file.parent.mkdir()
    _, made = tokens.FileTokens(file).create(
        "old",
        "read",
        None,
        personal=False,
        now=now - timedelta(days=9),
        expires=now - timedelta(days=1),
    )
    assert made.state(now) == "expired"
    assert made.state(now - timedelta(days=2)) == "active"


# What is refused


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--host", "0.0.0.0"], 2, "no token yet"),
        (["--host", "::"], 2, "no token yet"),
        (["--host", "0.0.0.0", "--no-auth"], 2, "everybody who reaches"),
        (["--host", "0.0.0.0", "--no-auth", "--insecure-bind"], 2, "everybody who reaches"),
        (["--host", "example.com"], 2, "not an address"),
        (["--host", ""], 2, "not an address"),
        (["--host", "203.0.113.7", "--insecure-bind", "--port", "0"], 1, "cannot be listened on"),
        (["--allow-host", "https://memory.example/"], 2, "not the name of a host"),
        (["--port", "70000"], 2, "65535"),
        (["--port", "-1"], 2, "whole number"),
        (["--tls-cert", "cert.pem"], 2, "belong together"),
        (["--tls-cert", "cert.pem", "--tls-key", "key.pem"], 1, "no file"),
        (["--database", "/dev/null/x.db"], 1, "database"),
    ],
)
def test_a_server_that_would_be_unsafe_or_impossible_does_not_start(cli, words, code, said):
    assert said in cli("serve", *words).err
    assert cli("serve", *words).code == code


def test_a_certificate_that_is_none_is_said_to_be_so(cli, tmp_path):
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).write_text("not a certificate")
    words = (
        "--port",
        "0",
        "--tls-cert",
        str(tmp_path / "cert.pem"),
        "--tls-key",
        str(tmp_path / "key.pem"),
    )
    assert "cannot be used" in cli.fails("serve", *words, code=1)


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
def started(cli, *words):
    """`bethink serve` in a process of its own, ended with SIGTERM."""
    command = [sys.executable, "-m", "bethink", "serve", "--port", "0", "--json", *words]
    process = subprocess.Popen(
        command,
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
            added = client.post(
                f"{V1}/memories",
                json={"memories": [{"content": "We deploy from main"}]},
                headers=owner,
            )
            assert body(added, 201)["added"] == 1
            found = client.get(
                f"{V1}/search",
                params={"query": "deploy"},
                headers={"Authorization": f"Bearer {secret}"},
            )
            assert body(found)["items"][0]["source"] == "note:user"
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        said = process.stderr.read()
        assert "Bethink serves shop at http://127.0.0.1:" in said
        assert note["token"] not in said  # stderr is no terminal here
        assert secret not in said
        assert "deploy" not in said
        assert "GET /api/v1/search 200" in said
        assert "Traceback" not in said
        assert not kept.exists()
        assert sorted(path.name for path in cli.home.iterdir()) == ["memory.db", "tokens.json"]
    assert cli.json("search", "deploy")[0]["content"] == "We deploy from main"


def test_what_runs_is_finished_before_it_ends(cli):
    with (
        started(cli, "--no-auth") as (process, url),
        httpx2.Client(base_url=url, trust_env=False, timeout=30) as client,
    ):
        statements = [
            {"content": f"Statement {number} of a long batch with {number * 7} apples"}
            for number in range(800)
        ]
        answers = []
        sending = threading.Thread(
            target=lambda: answers.append(
                client.post(
                    f"{V1}/memories", json={"memories": statements, "dedup": False}
                ).status_code
            )
        )
        with httpx2.Client(base_url=url, trust_env=False) as other:
            sending.start()
            while "bethink_requests_running 2" not in other.get("/metrics").text and not answers:
                pass
        process.send_signal(signal.SIGTERM)
        sending.join(30)
        assert answers == [201]
        assert process.wait(20) == 0
    assert len(cli.json("list", "--all")) == 800


def test_a_call_that_never_ends_does_not_keep_the_server_from_ending(cli):
    stuck = f"""
import sys, time
from bethink.surface.cli.main import main
from bethink.surface.http import app
from bethink.api import Bethink
app.LAST = 0.2
Bethink.history = lambda self, id: time.sleep(600)
from bethink.surface.http import serving
serving.GRACE = 1
sys.exit(main(["serve", "--port", "0", "--json", "--no-auth", "--project", {str(cli.project)!r}]))
"""
    process = subprocess.Popen(
        [sys.executable, "-c", stuck],
        env=child_environment(BETHINK_HOME=str(cli.home)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        url = json.loads(process.stdout.readline())["url"]
        with pytest.raises(httpx2.ReadTimeout):
            httpx2.get(f"{url}{V1}/memories/x/history", timeout=0.5, trust_env=False)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert "given up" in process.stderr.read()
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            stream.close()


def test_a_job_that_runs_is_stopped_when_the_server_ends(monkeypatch):
    jobs, under_way = Jobs(), threading.Event()

    def work(memory, progress, since, full):
        for done in range(10**9):
            progress(done)
            under_way.set()

    monkeypatch.setitem(TASKS, "index", work)
    started_job = jobs.start("index", SimpleNamespace(scope="project:x"))
    assert under_way.wait(10)
    with pytest.raises(BethinkError, match="under way"):
        jobs.start("map", SimpleNamespace(scope="project:x"))
    assert jobs.close(10)
    (ended,) = jobs.all()
    assert (ended.id, ended.state) == (started_job.id, "stopped")
    assert ended.ended_at


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (BethinkError("No git here.", "Install git."), "No git here. Install git."),
        (ZeroDivisionError("x"), "log"),
    ],
)
def test_a_job_that_fails_says_why(error, told, monkeypatch):
    jobs = Jobs()

    def work(memory, progress, since, full):
        raise error

    monkeypatch.setitem(TASKS, "history", work)
    jobs.start("history", SimpleNamespace(scope="project:x"))
    while (job := jobs.all()[0]).state == "running":
        pass
    assert job.state == "failed"
    assert told in job.error


def test_ctrl_c_is_a_good_end_too(cli):
    with started(cli, "--no-auth") as (process, url):
        assert httpx2.get(f"{url}/healthz", trust_env=False).status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        said = process.stderr.read()
        assert "every program on this machine" in said
        assert "Traceback" not in said


def test_tls_is_spoken_where_a_certificate_is_given(cli, tmp_path):
    made = (
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-keyout",
                "key.pem",
                "-out",
                "cert.pem",
                "-days",
                "1",
                "-subj",
                "/CN=localhost",
            ],
            cwd=tmp_path,
            capture_output=True,
            check=False,
        )
        if _has_openssl()
        else None
    )
    if made is None or made.returncode:
        pytest.skip("no openssl to make a certificate with")
    secret = cli.ok("token", "create", "--name", "laptop").strip()
    words = (
        "--host",
        "0.0.0.0",
        "--tls-cert",
        str(tmp_path / "cert.pem"),
        "--tls-key",
        str(tmp_path / "key.pem"),
    )
    with started(cli, *words) as (_, url), httpx2.Client(verify=False, trust_env=False) as client:
        assert url.startswith("https://0.0.0.0:")
        there = url.replace("0.0.0.0", "127.0.0.1")
        assert (
            client.get(
                f"{there}{V1}/memories", headers={"Authorization": f"Bearer {secret}"}
            ).status_code
            == 200
        )
        assert client.get(f"{there}{V1}/memories").status_code == 401
        assert not (cli.home / "servers").exists()  # nobody gets a token without asking for one


def _has_openssl() -> bool:
    import shutil

    return shutil.which("openssl") is not None


def test_sixteen_clients_reading_and_writing_at_once_meet_no_error_and_lose_nothing(
    offline, tmp_path
):
    with running(offline, tmp_path / "project", open=True) as here:
        told: list[str] = []
        failed: list[str] = []
        until = time.monotonic() + SOME

        def work(number: int) -> None:
            chance = random.Random(number)
            client = here.client(None)
            mine: list[str] = []
            while time.monotonic() < until:
                act = chance.random()
                if act < 0.4 or not mine:
                    text = f"Client {number} counted {chance.randrange(10**9)} apples"
                    response = client.post(
                        f"{V1}/memories", json={"memories": [{"content": text}], "dedup": False}
                    )
                    if response.status_code == 201:
                        mine.append(response.json()["outcomes"][0]["id"])
                elif act < 0.7:
                    response = client.get(
                        f"{V1}/search", params={"query": f"client {number} apples"}
                    )
                elif act < 0.85:
                    response = client.get(f"{V1}/memories/{chance.choice(mine)}")
                else:
                    response = client.post(
                        f"{V1}/memories/{chance.choice(mine)}/votes", json={"value": 1}
                    )
                if response.status_code not in (200, 201):
                    failed.append(response.text)
            told.extend(mine)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        kept = {
            json.loads(line)["id"]
            for line in here.client(None).get(f"{V1}/export").text.splitlines()
        }
        assert kept == set(told)
        assert len(told) > 16
