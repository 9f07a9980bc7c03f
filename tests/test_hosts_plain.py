"""Chats of no host: JSON lines with roles."""

from __future__ import annotations

import pytest
from transcripts import LINE_FILES, read, table

from bethink import hosts


def test_json_lines_with_roles_are_a_chat():
    turns, transcript = read(LINE_FILES["plain"])
    assert table(LINE_FILES["plain"]) == [
        (2, "user", "What is the port?"),
        (3, "assistant", "8443."),
    ]
    assert (turns[0].at.hour, turns[1].id, turns[0].session) == (9, "m3", "chat")
    assert transcript.skipped == {"context added by the host": 1, "tool result": 1}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("notes.md", b"# Notes\n\nThe user and the assistant talk.\n"),
        ("package.json", b'{"name": "shop", "version": "1.0.0"}'),
        ("numbers.json", b"[1, 2, 3]"),
        ("picture.png", b"\x89PNG\r\n\x1a\n\0\0"),
        ("empty.jsonl", b""),
    ],
)
def test_what_is_no_chat_is_not_taken_for_one(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    assert hosts.detect(path) is None
    assert read(path, host="plain")[0] == []
