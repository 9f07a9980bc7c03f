"""Codex, Copilot CLI and Gemini CLI: what was said, once, by whom and where."""

from __future__ import annotations

import sys

import pytest
from transcripts import CODEX, LINE_FILES, read, written

from bethink import hosts
from bethink.errors import BethinkError
from bethink.hosts import copilot

# Codex

CURRENT = LINE_FILES["codex"]
OLDER = CODEX / (
    "sessions/2026/05/04/rollout-2026-05-04T10-00-00-019f0000-0000-7000-8000-000000000002.jsonl"
)


def test_files_come_from_patches_and_from_the_commands_that_read_them():
    turns, transcript = read(CURRENT)
    assert turns[2].tools == ("exec_command", "apply_patch")  # and not the call of Bethink
    assert turns[2].files == ("settings.py", "base.py", "docs/db.md")
    assert (turns[2].cwd, turns[2].branch) == ("/home/ada/shop", "main")
    assert transcript.lines == len(turns) + transcript.skipped.total()


def test_a_fork_keeps_the_identity_of_what_it_copied():
    fork, transcript = read(LINE_FILES["codex fork"])
    assert [turn.id for turn in fork[:3]] == [turn.id for turn in read(OLDER)[0]]
    assert fork[3].text.startswith("One database")
    assert {turn.session for turn in fork} == {transcript.session}
    assert transcript.session == "019f0000-0000-7000-8000-000000000003"


def test_the_same_words_twice_are_two_turns(tmp_path):
    lines = OLDER.read_text().splitlines()
    turns, _ = read(written(tmp_path / "rollout.jsonl", *lines, lines[3]))
    assert len(turns) == len({turn.id for turn in turns}) == 4
    assert turns[3].text == turns[0].text


def test_a_session_with_memory_off_gives_nothing(tmp_path):
    head, *lines = OLDER.read_text().splitlines()
    head = head.replace('"cwd"', '"memory_mode":"disabled","cwd"')
    turns, transcript = read(written(tmp_path / "rollout.jsonl", head, *lines))
    assert turns == [] and transcript.skipped["memory off"] == 3


def test_a_compressed_rollout_reads_like_the_file_it_was(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    data = CURRENT.read_bytes()
    packed = tmp_path / f"{CURRENT.name}.zst"
    half = data.index(b"\n", len(data) // 2) + 1
    # Two frames, as appending makes them.
    packed.write_bytes(zstandard.compress(data[:half]) + zstandard.compress(data[half:]))
    assert hosts.detect(packed) == "codex"
    turns, transcript = read(packed)
    assert turns == read(CURRENT)[0]
    assert read(packed, transcript.position)[0] == []
    middle = next(iter(hosts.read(packed).pages(limit_turns=2))).position
    assert read(packed, middle)[0] == turns[2:]
    # Of a damaged archive comes what can be unpacked.
    packed.write_bytes(zstandard.compress(data) + b"no frame at all")
    given = read(packed, host="codex")[0]
    assert given and given == turns[: len(given)]
    packed.write_bytes(b"\x28\xb5\x2f\xfd broken")
    assert read(packed, host="codex")[0] == []


def test_without_the_package_a_compressed_rollout_is_refused_with_a_hint(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    packed = tmp_path / "rollout-x.jsonl.zst"
    packed.write_bytes(b"x")
    with pytest.raises(BethinkError, match="zstandard is not installed") as refused:
        read(packed, host="codex")
    assert "bethink[zstd]" in refused.value.hint


# Copilot CLI


@pytest.mark.parametrize(
    ("told", "environment", "directory"),
    [
        (b"id: s1\ncwd: /home/ada/shop\n", {}, "/home/ada/shop"),
        # A server that the user registered starts in the right place.
        (b"cwd: /home/ada/shop\n", {"COPILOT_PLUGIN_ROOT": ""}, ""),
        (b"cwd: /home/ada/shop\n", {"COPILOT_AGENT_SESSION_ID": "../session-state/s1"}, ""),
        (b"cwd: 7\n", {}, ""),
        (b"cwd: [", {}, ""),
        (b"\0\xff", {}, ""),
        (None, {}, ""),
    ],
)
def test_copilot_tells_a_plugins_server_where_its_session_works(
    tmp_path, told, environment, directory
):
    folder = tmp_path / "session-state" / "s1"
    folder.mkdir(parents=True)
    if told is not None:
        (folder / "workspace.yaml").write_bytes(told)
    given = {"COPILOT_PLUGIN_ROOT": "/plugin", "COPILOT_AGENT_SESSION_ID": "s1", **environment}
    place = {"COPILOT_HOME": str(tmp_path)}
    assert copilot.find_directory(given | place, tmp_path / "home") == directory


def test_copilot_follows_the_session_into_another_folder():
    turns, transcript = read(LINE_FILES["copilot"])
    assert (turns[1].tools, turns[1].files) == (("view",), ("/home/ada/shop/pyproject.toml",))
    assert (turns[0].id, turns[0].cwd, turns[0].branch) == ("mu1", "/home/ada/shop", "main")
    assert (turns[-1].cwd, turns[-1].branch) == ("/home/ada/shop/api", "feature")
    assert transcript.project == "/home/ada/shop"


# Gemini CLI


def test_gemini_finds_its_project_beside_the_chats():
    turns, _ = read(LINE_FILES["gemini"])
    assert {turn.cwd for turn in turns} == {"/home/ada/shop"}
    assert turns[2].files == ("logging.ini",)
    assert turns[2].at.minute == 4  # when it was said, not when a resume copied it


def test_gemini_does_not_count_the_tools_of_a_copy(tmp_path):
    call = {"name": "write_file", "args": {"file_path": "a.py"}}
    used = {"id": "a", "type": "gemini", "content": "", "toolCalls": [call]}
    done = {"id": "b", "type": "gemini", "content": "Written."}
    more = {"id": "c", "type": "user", "content": "Thanks."}
    copied = {"$set": {"messages": [used, done]}}
    head = {"sessionId": "s", "projectHash": "h"}
    turns, _ = read(written(tmp_path / "chat.jsonl", head, used, done, copied, more))
    assert [(one.text, one.files) for one in turns] == [("Written.", ("a.py",)), ("Thanks.", ())]
