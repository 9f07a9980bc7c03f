"""`bethink ui` as people run it: it starts a server, and hands a browser over to it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import contextmanager

import httpx2
import pytest
from stores import child_environment

from bethink.api import Bethink
from bethink.surface.cli.main import main


@pytest.fixture
def shop(offline, tmp_path, monkeypatch):
    for variable in (
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "BROWSER",
    ):  # no browser opens on the machine that runs this
        monkeypatch.delenv(variable, raising=False)
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def remember(folder, text):
    with Bethink(directory=folder) as memory:
        memory.add(text)


@contextmanager
def started(folder, *words):
    command = [sys.executable, "-m", "bethink", "ui", "--json", *words]
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=child_environment(),
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
            process.send_signal(signal.SIGINT)
        process.wait(20)
        for stream in (process.stdout, process.stderr):
            stream.close()


def enters(url):
    """What the page that a browser is handed over to shows."""
    with httpx2.Client(trust_env=False, timeout=30) as client:
        first = client.get(url)
        assert first.status_code == 200, first.text[:300]
        landed = client.get(
            httpx2.URL(url).join(
                "/" + first.text.partition("url=/")[2].partition('"')[0].replace("&amp;", "&")
            )
        )
        assert landed.status_code == 200
        return landed.text


def test_it_starts_a_server_hands_over_and_ends_with_the_terminal(offline, shop):
    remember(shop, "We deploy from main")
    with started(shop, "--port", "0", "--no-open") as (process, url):
        assert url.startswith("http://127.0.0.1:")
        assert "We deploy from main" in enters(url)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        said = process.stderr.read()
        assert "web page of shop" in said
        assert url.partition("ticket=")[2] not in said
        assert "Traceback" not in said
    assert not (offline / "servers").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--port", "70000"], "65535"),
        (["--port", "x"], "whole number"),
        (["--project", "/none"], "no directory"),
    ],
)
def test_what_cannot_be_is_said(shop, capsys, words, told):
    assert main(["ui", *words]) in (1, 2)
    said = capsys.readouterr().err
    assert told in said
    assert "Traceback" not in said


def test_a_key_that_cannot_be_trusted_is_named_instead_of_a_page_that_nobody_can_enter(
    offline, shop, capsys
):
    offline.mkdir(exist_ok=True)
    (offline / "web.key").write_text("00" * 32)
    (offline / "web.key").chmod(0o644)
    assert main(["ui", "--port", "0"]) == 2
    assert "web.key" in capsys.readouterr().err
