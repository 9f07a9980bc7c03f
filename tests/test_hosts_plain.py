"""Chats as people export them: Markdown, text, JSON in the shapes of several products."""

from __future__ import annotations

import json

import pytest
from transcripts import LINE_FILES, read, stored, table

from bethink import hosts
from bethink.hosts import base

TALK = [("user", "What is the port?"), ("assistant", "8443, behind TLS.")]
MARKDOWN = {
    "headings": "# A chat\n\n## User\n\nWhat is the port?\n\n## Assistant\n\n8443, behind TLS.\n",
    "headings with times": "### 🧑 User (12:30)\nWhat is the port?\n\n---\n\n### 🤖 ChatGPT:\n8443, behind TLS.\n\n---\n",
    "bold": "**User:** What is the port?\n\n**Assistant:** 8443, behind TLS.\n",
    "bold lines": "_**User (2026-05-04 09:00Z)**_\n\nWhat is the port?\n\n---\n\n_**Agent (model x)**_\n\n8443, behind TLS.\n",
    "names": "Human: What is the port?\n\nAI: 8443, behind TLS.\n",
    "names that said": "You said:\nWhat is the port?\nChatGPT said:\n8443, behind TLS.\n",
    "windows": "User:\r\nWhat is the port?\r\nAssistant:\r\n8443, behind TLS.\r\n",
}
ASKED, TOLD = "What is the port?", "8443, behind TLS."


def node(
    parent: str, id: str, role: str, *parts: object, kind: str = "text", **more: object
) -> dict:
    content = {"content_type": kind, "parts": list(parts)}
    return {
        "parent": parent,
        "message": {"id": id, "author": {"role": role}, "content": content, **more},
    }


ASSET = {"asset_pointer": "x"}
NODES = {
    "root": {"message": None, "parent": None},
    "n1": node("root", "a", "system", ""),
    "n2": node("n1", "b", "user", ASSET, ASKED, kind="multimodal_text", create_time=1777885200.5),
    "n3": node("n2", "c", "assistant", kind="thoughts"),
    "other": node("n2", "d", "assistant", "80."),
    "n4": node("n3", "e", "assistant", TOLD),
}
MESSAGES = [
    {"role": "user", "content": ASKED},
    {"role": "assistant", "content": [{"type": "text", "text": TOLD}]},
]
CHAT_MESSAGES = [
    {"uuid": "m1", "sender": "human", "text": ASKED, "created_at": "2026-05-04T09:00:00Z"},
    {"uuid": "m2", "sender": "assistant", "text": "", "content": [{"type": "text", "text": TOLD}]},
]
SYSTEM = {"role": "system", "content": "be brief"}
EXPORTS = {
    "list": MESSAGES,
    "messages": {"title": "Ports", "messages": [SYSTEM, *MESSAGES]},
    "mapping": [
        {"title": "Ports", "conversation_id": "k1", "current_node": "n4", "mapping": NODES}
    ],
    "chat_messages": [{"uuid": "k2", "name": "Ports", "chat_messages": CHAT_MESSAGES}],
    "sharegpt": {
        "conversations": [{"from": "human", "value": ASKED}, {"from": "gpt", "value": TOLD}]
    },
}


def said(path):
    return [(role, text) for _, role, text in table(path)]


@pytest.mark.parametrize("style", MARKDOWN)
def test_speakers_are_found_in_markdown(tmp_path, style):
    path = tmp_path / "chat.md"
    path.write_bytes(MARKDOWN[style].encode())
    assert hosts.detect(path) == "plain"
    assert said(path) == TALK


@pytest.mark.parametrize("shape", EXPORTS)
@pytest.mark.parametrize("indent", [None, 2])
def test_speakers_are_found_in_json(tmp_path, shape, indent):
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(EXPORTS[shape], indent=indent))
    assert hosts.detect(path) == "plain"
    assert said(path) == TALK


def test_json_lines_with_roles_are_a_chat():
    turns, transcript = read(LINE_FILES["plain"])
    assert table(LINE_FILES["plain"]) == [
        (2, "user", "What is the port?"),
        (3, "assistant", "8443."),
    ]
    assert (turns[0].at.hour, turns[1].id, turns[0].session) == (9, "m3", "chat")
    assert transcript.skipped == {base.CONTEXT: 1, base.TOOL_RESULT: 1}


def test_an_export_keeps_the_ids_and_times_it_has(tmp_path):
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(EXPORTS["mapping"]))
    turns, transcript = read(path)
    assert [(turn.id, turn.session, turn.at and turn.at.year) for turn in turns] == [
        ("b", "k1", 2026),
        ("e", "k1", None),
    ]
    assert transcript.title_of("k1") == "Ports"


def test_a_turn_cites_the_line_of_its_speaker(tmp_path):
    path = tmp_path / "chat.md"
    path.write_text(MARKDOWN["headings"])
    turns, transcript = read(path)
    assert [turn.line for turn in turns] == [3, 7]
    assert transcript.title == "A chat"


def test_names_in_code_and_weaker_styles_are_text(tmp_path):
    answer = "It prints\n\n```\nUser: root\nAssistant: none\n```\n\nand **User:** is a field."
    path = tmp_path / "chat.md"
    path.write_text(f"## User\nWhat does it print?\n## Assistant\n{answer}\n")
    assert said(path) == [("user", "What does it print?"), ("assistant", answer)]


def test_names_in_code_are_no_speakers(tmp_path):
    path = tmp_path / "chat.txt"
    path.write_text(
        "Human: What does it print?\n~~~\nUser: root\nAssistant: none\n~~~\nAI: Names.\n"
    )
    assert said(path) == [
        ("user", "What does it print?\n~~~\nUser: root\nAssistant: none\n~~~"),
        ("assistant", "Names."),
    ]


def test_a_chat_that_grows_gives_what_is_new(tmp_path):
    path = tmp_path / "chat.md"
    path.write_text(MARKDOWN["names"])
    _, transcript = read(path)
    path.write_text(MARKDOWN["names"] + "\nHuman: And the host?\n")
    turns, transcript = read(path, stored(transcript.position))
    assert [(turn.line, turn.text) for turn in turns] == [(5, "And the host?")]
    assert read(path, stored(transcript.position))[0] == []


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("notes.md", b"# Notes\n\nThe user and the assistant talk.\n"),
        ("notes.txt", b"User: only one speaker\n"),
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
    turns, _ = read(path, host="plain")
    assert turns == []


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "latin-1"])
def test_other_encodings_lose_no_turn(tmp_path, encoding):
    path = tmp_path / "chat.txt"
    path.write_bytes("User: Où est la clé?\n\nAssistant: À côté.\n".encode(encoding))
    turns, _ = read(path)
    assert [turn.role for turn in turns] == ["user", "assistant"]
    assert turns[0].text == (
        "Où est la clé?" if encoding != "latin-1" else "O\ufffd est la cl\ufffd?"
    )
