"""The spool: what hooks note, what a worker takes away, and that nothing between the two is lost."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from capturing import SAID, Desk

from bethink.errors import BethinkError
from bethink.hooks import spool, state
from bethink.hooks.state import Hook


@pytest.fixture
def desk(offline: Path, tmp_path: Path) -> Desk:
    return Desk(tmp_path, offline)


def test_a_note_is_one_private_file_that_says_what_to_read(desk: Desk) -> None:
    desk.note("/talks/a.jsonl")
    (entry,) = spool.list_waiting()
    assert entry[:5] == ("claude", "/talks/a.jsonl", "a", str(desk.project), "stop")
    assert entry.database == desk.database
    (file,) = (path for path in spool.folder().iterdir() if path.is_file())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    spool.note_capture("claude")
    folders = [path for path in desk.home.rglob("*") if path.is_dir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}
    state.folder().chmod(0o755)
    spool.note_capture("claude")
    assert stat.S_IMODE(state.folder().stat().st_mode) == 0o700


def test_a_transcript_noted_again_is_one_entry_and_another_one_is_another(desk: Desk) -> None:
    for _ in range(3):
        desk.note("/talks/a.jsonl")
    desk.note("/talks/a.jsonl", "session-end")
    desk.note("/talks/b.jsonl")
    assert sorted((entry.transcript, entry.event) for entry in spool.list_waiting()) == [
        ("/talks/a.jsonl", "session-end"),
        ("/talks/b.jsonl", "stop"),
    ]


def test_the_same_database_has_one_name_wherever_it_is_named_from(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert (
        spool.key_of("team.db")
        == spool.key_of(str(tmp_path / "team.db"))
        == spool.key_of(str(tmp_path / "x" / ".." / "team.db"))
    )
    assert spool.full_name("postgresql://ada@db/team") == "postgresql://ada@db/team"


def test_tenants_of_one_database_have_entries_of_their_own(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.database = "postgresql://ada@db/team"
    desk.note("/talks/a.jsonl")
    monkeypatch.setenv("BETHINK_TENANT", "bakery")
    assert spool.list_entries(desk.database) == []
    desk.note("/talks/a.jsonl")
    assert (len(spool.list_entries(desk.database)), len(spool.list_waiting())) == (1, 2)


@pytest.mark.parametrize(
    "hook",
    [
        pytest.param(Hook("stop", "claude"), id="neither a transcript nor a session"),
        pytest.param(Hook("subagent-stop", "claude", "s", "/a.jsonl"), id="of the host's own"),
    ],
)
def test_what_cannot_be_read_is_not_noted(desk: Desk, hook: Hook) -> None:
    spool.note(hook, desk.database)
    assert spool.list_waiting() == []


def test_a_home_that_cannot_be_written_is_an_error_that_says_so(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(BethinkError, match="cannot be written"):
        desk.note("/talks/a.jsonl")


def test_a_note_made_while_the_worker_reads_is_kept(desk: Desk) -> None:
    desk.note("/talks/a.jsonl")
    (path,) = spool.list_entries(desk.database)
    taken, _ = spool.take(path)
    desk.note("/talks/a.jsonl")
    taken.unlink()
    assert len(spool.list_entries(desk.database)) == 1


def test_an_entry_that_a_killed_worker_had_in_hand_is_still_there_and_its_attempts_are_counted(
    desk: Desk,
) -> None:
    desk.note("/talks/a.jsonl")
    for attempt in (1, 2):
        (path,) = spool.list_entries(desk.database)
        assert spool.take(path)[1].attempts == attempt
    desk.note("/talks/a.jsonl")
    newest = next(path for path in spool.list_entries(desk.database) if path.suffix == spool.NEW)
    assert spool.take(newest)[1].attempts == 3
    assert len(spool.list_entries(desk.database)) == 1


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"\xff\x00", b'{"host": 1}', b"[" * 100_000, b'{"host": "claude"}'],
)
def test_a_broken_entry_is_set_aside_and_counted(desk: Desk, content: bytes) -> None:
    file = desk.talk("a", *SAID)
    desk.note(file)
    (path,) = spool.list_entries(desk.database)
    broken = path.with_name(f"{spool.key_of(desk.database)}-broken.json")
    broken.write_bytes(content)
    assert len(spool.list_waiting()) == 1
    desk.work()
    assert spool.list_entries(desk.database) == []
    assert [kept.read_bytes() for kept in spool.list_aside()] == [content]
    assert "set aside" in state.read_failures()[0].message
    assert len(desk.turns()) == len(SAID)


def test_only_one_process_holds_the_lock_and_it_is_let_go_when_its_holder_is_killed(
    desk: Desk,
) -> None:
    code = "import sys\nfrom bethink.hooks import spool\nwith spool.lock(sys.argv[1]) as held:\n  print(held, flush=True)\n  sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, desk.database],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout.readline() == "True\n"
        with spool.lock(desk.database) as held:
            assert not held
        with spool.lock(desk.database + "2") as held:
            assert held
        other.kill()
        other.wait()
        with spool.lock(desk.database) as held:
            assert held


def test_a_worker_keeps_settings_and_keys_of_the_environment_and_nothing_of_the_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = {"BETHINK_LIMIT", "CODEX_HOME", "OPENAI_API_KEY", "LC_ALL"}
    left = {"CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_ENV_FILE", "AWS_SECRET_ACCESS_KEY"}
    for name in kept | left | {"LD_PRELOAD"}:
        monkeypatch.setenv(name, "kept" if name in kept else "left")
    monkeypatch.setenv("PYTHONPATH", "relative")
    found = spool.worker_environment()
    assert "left" not in found.values()
    assert {name for name, value in found.items() if value == "kept"} == kept
    assert found["BETHINK_HOOKS"] == "off"
    assert all(Path(part).is_absolute() for part in found["PYTHONPATH"].split(os.pathsep))
