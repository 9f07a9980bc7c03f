"""Codex rollouts: current, older without ids, forked, of sub-agents, and compressed."""

from __future__ import annotations

import sys

import pytest
from transcripts import CODEX, LINE_FILES, read, written

from bethink import hosts
from bethink.errors import BethinkError

DAY = CODEX / "sessions/2026/05/04"
CURRENT = LINE_FILES["codex"]
OLDER = DAY / "rollout-2026-05-04T10-00-00-019f0000-0000-7000-8000-000000000002.jsonl"
REVIEW = DAY / "rollout-2026-05-04T12-00-00-019f0000-0000-7000-8000-000000000004.jsonl"


def test_files_come_from_patches_and_from_the_commands_that_read_them():
    turns, transcript = read(CURRENT)
    assert turns[2].tools == ("exec_command", "apply_patch")  # and not the call of Bethink
    assert turns[2].files == ("settings.py", "base.py", "docs/db.md")
    assert (turns[2].cwd, turns[2].branch) == ("/home/ada/shop", "main")
    assert transcript.lines == len(turns) + transcript.skipped.total()


def test_a_fork_keeps_the_identity_of_what_it_copied():
    original, _ = read(OLDER)
    fork, transcript = read(LINE_FILES["codex fork"])
    assert [turn.id for turn in fork[:3]] == [turn.id for turn in original]
    assert fork[3].text.startswith("One database")
    assert (
        {turn.session for turn in fork}
        == {"019f0000-0000-7000-8000-000000000003"}
        == {transcript.session}
    )


def test_the_same_words_twice_are_two_turns(tmp_path):
    lines = OLDER.read_text().splitlines()
    turns, _ = read(written(tmp_path / "rollout.jsonl", *lines, lines[3]))
    assert [turn.text for turn in turns] == [
        "Why is the build slow?",
        "Every test starts its own database.",
        "Share one.",
        turns[0].text,
    ]
    assert len({turn.id for turn in turns}) == 4


def test_a_session_with_memory_off_gives_nothing(tmp_path):
    lines = OLDER.read_text().splitlines()
    turns, transcript = read(
        written(
            tmp_path / "rollout.jsonl",
            lines[0].replace('"cwd"', '"memory_mode":"disabled","cwd"'),
            *lines[1:],
        )
    )
    assert turns == []
    assert transcript.skipped["memory off"] == 3


def test_a_compressed_rollout_reads_like_the_file_it_was(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    data = CURRENT.read_bytes()
    packed = tmp_path / f"{CURRENT.name}.zst"
    half = data.index(b"\n", len(data) // 2) + 1
    packed.write_bytes(
        zstandard.compress(data[:half]) + zstandard.compress(data[half:])
    )  # two frames, as appending makes them
    assert hosts.detect(packed) == "codex"
    turns, transcript = read(packed)
    expected, plain = read(CURRENT)
    assert turns == expected
    assert transcript.position.offset == plain.position.offset
    assert read(packed, transcript.position)[0] == []
    middle = next(iter(hosts.read(packed).pages(limit_turns=2))).position
    assert read(packed, middle)[0] == expected[2:]


def test_a_damaged_archive_gives_what_can_be_unpacked(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    packed = tmp_path / "rollout-x.jsonl.zst"
    packed.write_bytes(zstandard.compress(CURRENT.read_bytes()) + b"no frame at all")
    given = read(packed, host="codex")[0]
    assert given
    assert given == read(CURRENT)[0][: len(given)]
    packed.write_bytes(b"\x28\xb5\x2f\xfd broken")
    assert read(packed, host="codex")[0] == []


def test_without_the_package_a_compressed_rollout_is_refused_with_a_hint(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    packed = tmp_path / "rollout-x.jsonl.zst"
    packed.write_bytes(b"x")
    with pytest.raises(BethinkError, match="zstandard is not installed") as refused:
        read(packed, host="codex")
    assert "bethink[zstd]" in refused.value.hint
