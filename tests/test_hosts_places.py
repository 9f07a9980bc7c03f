"""Whose transcript a file is, what was said in it, and where hosts keep theirs."""

import json
import os
import shutil

import pytest
from transcripts import FIXTURES, LINE_FILES, table

from bethink import agents
from bethink.errors import InvalidInput, NotFound

FILES = sorted(path for path in FIXTURES.rglob("*.json*") if ".meta." not in path.name)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_transcript_gives_the_expected_turns(path, tmp_path):
    """`turns.txt` names each file, then its turns: the line, who spoke, the words."""
    words = [(line, who, json.dumps(text, ensure_ascii=False)) for line, who, text in table(path)]
    turns = "".join(f"  {line} {who} {text}\n" for line, who, text in words)
    expected = f"\n{path.relative_to(FIXTURES)}\n{turns}"
    said = "\n" + (FIXTURES / "turns.txt").read_text("utf-8")
    assert expected in said
    assert not said.partition(expected)[2].startswith(" ")
    other = shutil.copy(path, tmp_path / "download.jsonl")  # the name does not matter
    assert agents.detect(path) == agents.read(other).host == path.relative_to(FIXTURES).parts[0]


@pytest.mark.parametrize(
    ("host", "variable", "folder", "fixtures"),
    [
        pytest.param(
            "claude",
            "CLAUDE_CONFIG_DIR",
            ".claude/projects/-home-ada-shop",
            "claude/-home-ada-shop",
            id="claude",
        ),
        pytest.param("codex", "CODEX_HOME", ".codex", "codex", id="codex"),
        pytest.param("copilot", "COPILOT_HOME", ".copilot", "copilot", id="copilot"),
        pytest.param("gemini", "GEMINI_CLI_HOME", ".gemini", "gemini", id="gemini"),
        pytest.param("cursor", None, ".cursor", "cursor", id="cursor"),
    ],
)
def test_transcripts_are_found_where_they_are(tmp_path, host, variable, folder, fixtures):
    home, expected = tmp_path / "home", FIXTURES / fixtures
    shutil.copytree(expected, home / folder)
    wanted = {path.name for path in expected.rglob("*.json*") if ".meta." not in path.name}
    found = list(agents.locate(host, {}, home))
    assert {path.name for path in found} == wanted
    assert len(found) == len(wanted)
    if variable:
        moved = home if host == "gemini" else home / folder.partition("/")[0]
        assert list(agents.locate(host, {variable: str(moved)}, tmp_path / "elsewhere")) == found
    assert list(agents.locate(host, {}, tmp_path / "elsewhere")) == []


def test_the_newest_transcript_comes_first(tmp_path):
    folder = tmp_path / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    for name, age in (("old", 100), ("new", 300), ("middle", 200)):
        (folder / f"{name}.jsonl").touch()
        os.utime(folder / f"{name}.jsonl", (age, age))
    (folder / "journal.jsonl").touch()
    assert [path.stem for path in agents.locate("claude", {}, tmp_path)] == ["new", "middle", "old"]


@pytest.mark.parametrize(
    ("environment", "more"),
    [
        pytest.param({}, [], id="no-variable"),
        pytest.param({"OPENCODE_DB": "mine.db"}, ["mine.db"], id="opencode-db"),
    ],
)
def test_opencode_databases_are_located(tmp_path, environment, more):
    folder = tmp_path / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    for name in ("opencode.db", "opencode-beta.db", "mine.db", "opencode.db-wal"):
        (folder / name).touch()
    found = agents.locate("opencode", environment, tmp_path)
    assert sorted(path.name for path in found) == [*more, "opencode-beta.db", "opencode.db"]


def test_a_missing_transcript_is_refused(tmp_path):
    with pytest.raises(NotFound, match="There is no transcript"):
        agents.read(tmp_path / "gone.jsonl")


def test_an_unknown_agent_is_refused():
    with pytest.raises(InvalidInput, match="no agent 'emacs'"):
        agents.read(LINE_FILES["claude"], host="emacs")


def test_a_file_of_no_known_agent_is_refused(tmp_path):
    (tmp_path / "x.bin").write_bytes(b"\0\1\2")
    with pytest.raises(InvalidInput, match="not a transcript of a known agent"):
        agents.read(tmp_path / "x.bin")


@pytest.mark.parametrize(
    "host,path,kept",
    [
        pytest.param("claude", ".claude/projects/-p/a.jsonl", True, id="claude"),
        pytest.param(
            "claude", ".claude/projects/-p/a/subagents/b.jsonl", True, id="claude's agents"
        ),
        pytest.param("claude", ".claude/a.jsonl", False, id="another folder of claude"),
        pytest.param("claude", ".claude/projects/-p/../../a.jsonl", False, id="a way out"),
        pytest.param("claude", "Downloads/.claude/projects/-p/a.jsonl", False, id="a like folder"),
        pytest.param("claude", ".codex/sessions/rollout-1.jsonl", False, id="another host's"),
        pytest.param("codex", ".codex/sessions/2026/01/rollout-1.jsonl", True, id="codex"),
        pytest.param("codex", ".codex/archived_sessions/rollout-1.jsonl.zst", True, id="archived"),
        pytest.param("copilot", ".copilot/session-state/a/events.jsonl", True, id="copilot"),
        pytest.param("gemini", ".gemini/tmp/p/chats/a.jsonl", True, id="gemini"),
        pytest.param("cursor", ".cursor/projects/p/agent-transcripts/a.jsonl", True, id="cursor"),
        pytest.param("opencode", ".local/share/opencode/opencode.db", True, id="opencode"),
        pytest.param("plain", "chat.md", False, id="no host keeps chats"),
    ],
)
def test_a_transcript_is_an_agents_own_where_that_keeps_them(tmp_path, host, path, kept):
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).touch()
    assert agents.is_kept(host, tmp_path / path, {}, tmp_path) == kept


def test_an_agents_folder_may_be_a_link(tmp_path):
    (tmp_path / "disk" / "-p").mkdir(parents=True)
    (tmp_path / "disk" / "-p" / "a.jsonl").touch()
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "projects").symlink_to(tmp_path / "disk")
    file = tmp_path / ".claude" / "projects" / "-p" / "a.jsonl"
    assert agents.is_kept("claude", file, {}, tmp_path)


def test_a_link_to_a_file_elsewhere_is_not_an_agents_own(tmp_path):
    (tmp_path / "download.jsonl").touch()
    file = tmp_path / ".claude" / "projects" / "-p" / "a.jsonl"
    file.parent.mkdir(parents=True)
    file.symlink_to(tmp_path / "download.jsonl")
    assert not agents.is_kept("claude", file, {}, tmp_path)
