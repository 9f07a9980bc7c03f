"""Chats of no host: Markdown and text with the speakers named, JSON lines."""

from __future__ import annotations

import pytest
from transcripts import LINE_FILES, read, stored, table

from bethink import hosts

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


def said(path):
    return [(role, text) for _, role, text in table(path)]


@pytest.mark.parametrize("style", MARKDOWN)
def test_speakers_are_found_in_markdown(tmp_path, style):
    path = tmp_path / "chat.md"
    path.write_bytes(MARKDOWN[style].encode())
    assert hosts.detect(path) == "plain"
    assert said(path) == TALK


def test_json_lines_with_roles_are_a_chat():
    turns, transcript = read(LINE_FILES["plain"])
    assert table(LINE_FILES["plain"]) == [
        (2, "user", "What is the port?"),
        (3, "assistant", "8443."),
    ]
    assert (turns[0].at.hour, turns[1].id, turns[0].session) == (9, "m3", "chat")
    assert transcript.skipped == {"no speech": 2}


def test_a_turn_cites_the_line_of_its_speaker(tmp_path):
    path = tmp_path / "chat.md"
    path.write_text(MARKDOWN["headings"])
    turns, transcript = read(path)
    assert [turn.line for turn in turns] == [3, 7]
    assert transcript.title_of(transcript.session) == "A chat"


@pytest.mark.parametrize(
    ("name", "asks", "answers", "code"),
    [
        (
            "chat.md",
            "## User\n",
            "## Assistant\n",
            "```\nUser: root\nAssistant: none\n```\n\nand **User:** is a field.",
        ),
        ("chat.txt", "Human: ", "AI: ", "~~~\nUser: root\nAssistant: none\n~~~"),
    ],
)
def test_names_in_code_and_weaker_styles_are_text(tmp_path, name, asks, answers, code):
    path = tmp_path / name
    path.write_text(f"{asks}What does it print?\n{answers}Names:\n{code}\n")
    assert said(path) == [("user", "What does it print?"), ("assistant", f"Names:\n{code}")]


def test_a_chat_that_changed_is_read_again_under_the_same_identities(tmp_path):
    path = tmp_path / "chat.md"
    path.write_text(MARKDOWN["names"])
    before, transcript = read(path)
    assert read(path, stored(transcript.position))[0] == []
    path.write_text(MARKDOWN["names"] + "\nHuman: And the host?\n")
    turns, transcript = read(path, stored(transcript.position))
    assert turns[:2] == before and [turn.line for turn in turns] == [1, 3, 5]
    assert read(path, stored(transcript.position))[0] == []
    pages = list(hosts.read(path).pages(limit_turns=2))
    assert [len(page.turns) for page in pages] == [2, 1]
    assert len(read(path, stored(pages[0].position))[0]) == 3, "until the last page is written"


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
