"""`bethink ui` as people run it: it starts a server, and hands a browser over to it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import httpx2
from stores import child_environment

from bethink.api import Bethink
from bethink.surface.cli.main import main


def test_it_starts_a_server_hands_over_and_ends_with_the_terminal(offline, tmp_path):
    with Bethink(directory=tmp_path) as memory:
        memory.add("We deploy from main")
    command = [sys.executable, "-m", "bethink", "ui", "--json", "--port", "0", "--no-open"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, env=child_environment(), **pipes) as process:
        url = json.loads(process.stdout.readline())["url"]
        with httpx2.Client(trust_env=False, timeout=30) as client:
            first = client.get(url)
            on = first.text.partition("url=")[2].partition('"')[0]
            assert "We deploy from main" in client.get(httpx2.URL(url).join(on)).text
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        said = process.stderr.read()
    assert f"web page of {tmp_path.name}" in said and "Traceback" not in said
    assert url.startswith("http://127.0.0.1:") and url.partition("ticket=")[2] not in said
    assert not (offline / "servers").exists()


def test_a_key_that_cannot_be_trusted_is_named_instead_of_a_page_that_nobody_can_enter(
    offline, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    offline.mkdir(exist_ok=True)
    (offline / "web.key").write_text("00" * 32)
    (offline / "web.key").chmod(0o644)
    assert main(["ui", "--port", "0"]) == 2
    assert "web.key" in capsys.readouterr().err
