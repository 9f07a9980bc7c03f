"""Codex, Copilot CLI, Gemini CLI, and chats of no host: what was said, once, by whom and where."""

import sys

import pytest
from transcripts import CODEX, LINE_FILES, paged, read, stored, table, written

from bethink import agents
from bethink.agents import copilot
from bethink.errors import BethinkError

CURRENT = LINE_FILES["codex"]
OLDER = next(CODEX.rglob("rollout-*-000000000002.jsonl"))


def test_codex_files_come_from_patches():
    turns, transcript = read(CURRENT)
    assert turns[2].tools == ("exec_command", "apply_patch")  # and not the call of Bethink
    assert turns[2].files == ("settings.py", "base.py", "docs/db.md")
    assert (turns[2].cwd, turns[2].branch) == ("/home/ada/shop", "main")
    assert transcript.lines == len(turns) + transcript.skipped.total()


def test_codex_memory_mode_is_obeyed(tmp_path):
    head, *lines = OLDER.read_text().splitlines()
    head = head.replace('"cwd"', '"memory_mode":"disabled","cwd"')
    turns, transcript = read(written(tmp_path / "rollout.jsonl", head, *lines))
    assert turns == [] and transcript.skipped["memory off"] == 3


def test_a_codex_fork_keeps_the_ids_of_its_turns():
    fork, transcript = read(LINE_FILES["codex fork"])
    assert [turn.id for turn in fork[:3]] == [turn.id for turn in read(OLDER)[0]]
    assert fork[3].text.startswith("One database")
    assert {turn.session for turn in fork} == {transcript.session}
    assert transcript.session == "019f0000-0000-7000-8000-000000000003"


def test_a_repeated_codex_turn_has_its_own_id(tmp_path):
    lines = OLDER.read_text().splitlines()
    turns, _ = read(written(tmp_path / "rollout.jsonl", *lines, lines[3]))
    assert len(turns) == len({turn.id for turn in turns}) == 4
    assert turns[3].text == turns[0].text


def test_a_compressed_rollout_reads_like_the_file_it_was(tmp_path, monkeypatch):
    zstandard = pytest.importorskip("zstandard")
    data = CURRENT.read_bytes()
    packed = tmp_path / f"{CURRENT.name}.zst"
    half = data.index(b"\n", len(data) // 2) + 1
    # Two frames, as appending makes them.
    packed.write_bytes(zstandard.compress(data[:half]) + zstandard.compress(data[half:]))
    assert agents.detect(packed) == "codex"
    turns, transcript = read(packed)
    assert turns == read(CURRENT)[0]
    assert read(packed, transcript.position)[0] == []
    middle = next(iter(paged(agents.read(packed), page_turns=2))).position
    assert read(packed, middle)[0] == turns[2:]
    # Of a damaged archive comes what can be unpacked.
    packed.write_bytes(zstandard.compress(data) + b"no frame at all")
    given = read(packed, host="codex")[0]
    assert given and given == turns[: len(given)]
    packed.write_bytes(b"\x28\xb5\x2f\xfd broken")
    assert read(packed, host="codex")[0] == []
    monkeypatch.setitem(sys.modules, "zstandard", None)
    packed = tmp_path / "rollout-x.jsonl.zst"
    packed.write_bytes(b"x")
    with pytest.raises(BethinkError, match="zstandard is not installed") as refused:
        read(packed, host="codex")
    assert "bethink[zstd]" in refused.value.hint


@pytest.mark.parametrize(
    ("told", "environment", "directory"),
    [
        pytest.param(
            b"id: s1\ncwd: /home/ada/shop\n", {}, "/home/ada/shop", id="id-s1-cwd-home/ada/shop"
        ),
        pytest.param(
            b"cwd: /home/ada/shop\n",
            {"COPILOT_PLUGIN_ROOT": ""},
            "",
            id="cwd-home/ada/shop-copilot_plugin_root",
        ),  # A server that the user registered starts in the right place.
        pytest.param(
            b"cwd: /home/ada/shop\n",
            {"COPILOT_AGENT_SESSION_ID": "../session-state/s1"},
            "",
            id="cwd-home/ada/shop-copilot_agent_session_id",
        ),
        pytest.param(b"cwd: 7\n", {}, "", id="cwd-7"),
        pytest.param(b"cwd: [", {}, "", id="cwd"),
        pytest.param(b"\x00\xff", {}, "", id="bytes"),
        pytest.param(None, {}, "", id="none"),
    ],
)
def test_the_directory_of_a_copilot_session_is_found(tmp_path, told, environment, directory):
    folder = tmp_path / "session-state" / "s1"
    folder.mkdir(parents=True)
    if told is not None:
        (folder / "workspace.yaml").write_bytes(told)
    given = {"COPILOT_PLUGIN_ROOT": "/plugin", "COPILOT_AGENT_SESSION_ID": "s1", **environment}
    place = {"COPILOT_HOME": str(tmp_path)}
    assert copilot.find_directory(given | place, tmp_path / "home") == directory


def test_a_copilot_turn_carries_its_place():
    turns, transcript = read(LINE_FILES["copilot"])
    assert (turns[1].tools, turns[1].files) == (("view",), ("/home/ada/shop/pyproject.toml",))
    assert (turns[0].id, turns[0].cwd, turns[0].branch) == ("mu1", "/home/ada/shop", "main")
    assert (turns[-1].cwd, turns[-1].branch) == ("/home/ada/shop/api", "feature")
    assert transcript.project == "/home/ada/shop"


def test_a_gemini_turn_carries_its_place():
    turns, _ = read(LINE_FILES["gemini"])
    assert {turn.cwd for turn in turns} == {"/home/ada/shop"}
    assert turns[2].files == ("logging.ini",)
    assert turns[2].at.minute == 4  # when it was said, not when a resume copied it


def test_a_resumed_gemini_session_repeats_nothing(tmp_path):
    call = {"name": "write_file", "args": {"file_path": "a.py"}}
    used = {"id": "a", "type": "gemini", "content": "", "toolCalls": [call]}
    done = {"id": "b", "type": "gemini", "content": "Written."}
    more = {"id": "c", "type": "user", "content": "Thanks."}
    copied = {"$set": {"messages": [used, done]}}
    head = {"sessionId": "s", "projectHash": "h"}
    turns, _ = read(written(tmp_path / "chat.jsonl", head, used, done, copied, more))
    assert [(one.text, one.files) for one in turns] == [("Written.", ("a.py",)), ("Thanks.", ())]


TALK = [("user", "What is the port?"), ("assistant", "8443, behind TLS.")]
NAMES = "Human: What is the port?\n\nAI: 8443, behind TLS.\n"


def said(path):
    return [(role, text) for _, role, text in table(path)]


PLAIN_STYLES_CASES = [
    "# A chat\n\n## User\n\nWhat is the port?\n\n## Assistant\n\n8443, behind TLS.\n",  # headings
    "### 🧑 User (12:30)\nWhat is the port?\n\n---\n\n### 🤖 ChatGPT:\n8443, behind TLS.\n\n---\n",  # headings with times
    "**User:** What is the port?\n\n**Assistant:** 8443, behind TLS.\n",  # bold
    "_**User (2026-05-04 09:00Z)**_\n\nWhat is the port?\n\n---\n\n_**Agent (model x)**_\n\n8443, behind TLS.\n",  # bold lines
    "Human: What is the port?\n\nAI: 8443, behind TLS.\n",  # names
    "You said:\nWhat is the port?\nChatGPT said:\n8443, behind TLS.\n",  # names that said
    "User:\r\nWhat is the port?\r\nAssistant:\r\n8443, behind TLS.\r\n",  # Windows
]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "# A chat\n\n## User\n\nWhat is the port?\n\n## Assistant\n\n8443, behind TLS.\n",
            id="chat-user-what-port-assistant-8443",
        ),
        pytest.param(
            "### 🧑 User (12:30)\nWhat is the port?\n\n---\n\n### 🤖 ChatGPT:\n8443, behind TLS.\n\n---\n",
            id="user-12-30-what-port-chatgpt-8443-behind",
        ),
        pytest.param(
            "**User:** What is the port?\n\n**Assistant:** 8443, behind TLS.\n",
            id="user-what-is-the-port-assistant-8443-behind-TLS",
        ),
        pytest.param(
            "_**User (2026-05-04 09:00Z)**_\n\nWhat is the port?\n\n---\n\n_**Agent (model x)**_\n\n8443, behind TLS.\n",
            id="user-2026-05-04-09-00Z-what-port-agent",
        ),
        pytest.param(
            "Human: What is the port?\n\nAI: 8443, behind TLS.\n",
            id="human-what-port-AI-8443-behind-TLS",
        ),
        pytest.param(
            "You said:\nWhat is the port?\nChatGPT said:\n8443, behind TLS.\n",
            id="said-what-port-chatgpt-said-8443-behind",
        ),
        pytest.param(
            "User:\r\nWhat is the port?\r\nAssistant:\r\n8443, behind TLS.\r\n",
            id="user-what-is-the-port-assistant-8443-behind-TLS-2",
        ),
    ],
)
def test_speakers_are_found_in_markdown(tmp_path, text):
    path = tmp_path / "chat.md"
    path.write_bytes(text.encode())
    assert agents.detect(path) == "plain"
    assert said(path) == TALK


def test_turns_of_markdown_carry_their_lines(tmp_path):
    path = tmp_path / "chat.md"
    path.write_text(PLAIN_STYLES_CASES[0])
    assert [turn.line for turn in read(path)[0]] == [3, 7]


def test_plain_json_lines_are_read():
    turns, transcript = read(LINE_FILES["plain"])
    assert (turns[0].at.hour, turns[1].id, turns[0].session[:5]) == (9, "m3", "chat-")
    assert transcript.skipped == {"no speech": 2}


@pytest.mark.parametrize(
    ("asks", "answers", "code"),
    [
        pytest.param(
            "## User\n",
            "## Assistant\n",
            "```\nUser: root\nAssistant: no\n```\n\n**User:** a field",
            id="user",
        ),
        pytest.param("Human: ", "AI: ", "~~~\nUser: root\nAssistant: none\n~~~", id="human"),
    ],
)
def test_speaker_names_in_code_are_text(tmp_path, asks, answers, code):
    path = tmp_path / "chat.md"
    path = tmp_path / "chat.md"
    path.write_text(f"{asks}What does it print?\n{answers}Names:\n{code}\n")
    assert said(path) == [("user", "What does it print?"), ("assistant", f"Names:\n{code}")]


def test_a_chat_that_changed_is_read_again_under_the_same_identities(tmp_path):
    path = tmp_path / "chat.md"
    path.write_text(NAMES)
    before, transcript = read(path)
    assert read(path, stored(transcript.position))[0] == []
    path.write_text(f"{NAMES}\nHuman: And the host?\n")
    turns, transcript = read(path, stored(transcript.position))
    assert turns[:2] == before and [turn.line for turn in turns] == [1, 3, 5]
    assert read(path, stored(transcript.position))[0] == []
    pages = list(paged(agents.read(path), page_turns=2))
    assert [len(page.turns) for page in pages] == [2, 1]
    assert len(read(path, stored(pages[0].position))[0]) == 3, "until the last page is written"


NO_CHAT = [
    ("notes.md", b"# Notes\n\nThe user and the assistant talk.\n"),
    ("notes.txt", b"User: only one speaker\n"),
    ("package.json", b'{"name": "shop", "version": "1.0.0"}'),
    ("numbers.json", b"[1, 2, 3]"),
    ("picture.png", b"\x89PNG\r\n\x1a\n\x00\x00"),
    ("empty.jsonl", b""),
]


@pytest.mark.parametrize(("name", "data"), NO_CHAT)
def test_what_is_no_chat_is_not_taken_for_one(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    assert agents.detect(path) is None
    assert read(path, host="plain")[0] == []


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "latin-1"])
def test_another_encoding_loses_no_turn(tmp_path, encoding):
    path = tmp_path / "chat.txt"
    path.write_bytes("User: Où est la clé?\n\nAssistant: À côté.\n".encode(encoding))
    turns, _ = read(path)
    assert [turn.role for turn in turns] == ["user", "assistant"]
    expected = "O\ufffd est la cl\ufffd?" if encoding == "latin-1" else "Où est la clé?"
    assert turns[0].text == expected
