"""Copilot CLI, Gemini CLI and Cursor: what was said, once, by whom and where."""

from __future__ import annotations

import pytest
from transcripts import LINE_FILES, read, written

from bethink.hosts import copilot


@pytest.mark.parametrize(
    ("told", "environment", "directory"),
    [
        ("id: s1\ncwd: /home/ada/shop\n", {}, "/home/ada/shop"),
        ('cwd: "/home/ada lovelace/caf\\xE9"\n', {}, "/home/ada lovelace/café"),
        (
            "cwd: /home/ada/shop\n",
            {"COPILOT_PLUGIN_ROOT": ""},
            "",
        ),  # a server that the user registered starts in the right place
        ("cwd: /home/ada/shop\n", {"COPILOT_AGENT_SESSION_ID": ""}, ""),
        ("cwd: /home/ada/shop\n", {"COPILOT_AGENT_SESSION_ID": "../session-state/s1"}, ""),
        ("cwd: 7\n", {}, ""),
        ("- a\n", {}, ""),
        ("cwd: [", {}, ""),
        ("\0\xff", {}, ""),
        (None, {}, ""),
    ],
)
def test_copilot_tells_a_plugins_server_where_its_session_works(
    tmp_path, told, environment, directory
):
    folder = tmp_path / "session-state" / "s1"
    folder.mkdir(parents=True)
    if told is not None:
        (folder / "workspace.yaml").write_bytes(told.encode("latin-1"))
    given = {
        "COPILOT_HOME": str(tmp_path),
        "COPILOT_PLUGIN_ROOT": "/plugin",
        "COPILOT_AGENT_SESSION_ID": "s1",
        **environment,
    }
    assert copilot.find_directory(given, tmp_path / "home") == directory


def test_copilot_follows_the_session_into_another_folder():
    turns, transcript = read(LINE_FILES["copilot"])
    assert (turns[1].tools, turns[1].files) == (("view",), ("/home/ada/shop/pyproject.toml",))
    assert (turns[0].id, turns[0].cwd, turns[0].branch) == ("mu1", "/home/ada/shop", "main")
    assert (turns[-1].cwd, turns[-1].branch, transcript.project) == (
        "/home/ada/shop/api",
        "feature",
        "/home/ada/shop",
    )


def test_gemini_finds_its_project_beside_the_chats():
    turns, _ = read(LINE_FILES["gemini"])
    assert {turn.cwd for turn in turns} == {"/home/ada/shop"}
    assert turns[2].files == ("logging.ini",)
    assert turns[2].at.minute == 4  # when it was said, not when a resume copied it


def test_gemini_does_not_count_the_tools_of_a_copy(tmp_path):
    used = {
        "id": "a",
        "type": "gemini",
        "content": "",
        "toolCalls": [{"name": "write_file", "args": {"file_path": "a.py"}}],
    }
    done = {"id": "b", "type": "gemini", "content": "Written."}
    more = {"id": "c", "type": "user", "content": "Thanks."}
    path = written(
        tmp_path / "chat.jsonl",
        {"sessionId": "s", "projectHash": "h"},
        used,
        done,
        {"$set": {"messages": [used, done]}},
        more,
    )
    assert [(turn.text, turn.files) for turn in read(path)[0]] == [
        ("Written.", ("a.py",)),
        ("Thanks.", ()),
    ]
