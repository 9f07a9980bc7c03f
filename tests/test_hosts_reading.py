"""What holds for every reader: steps equal one go, files that change under it, bad input, bounds, what of a message counts as said."""

import json
import tracemalloc
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transcripts import LINE_FILES, SESSION, claude_line, paged, read, stored, written

from bethink import agents
from bethink.agents import base, speech, transcript
from bethink.agents.base import ABOUT, Fact
from bethink.agents.speech import find_memory_mode, shorten, split_private

EVERY = pytest.mark.parametrize("name", LINE_FILES)
RELAXED = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
KEYS = st.sampled_from(["type", "text", "id", "kind"])
SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
JSON = st.recursive(
    SCALAR | st.just("x" * 300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=5,
)


def host_of(name):
    return name.partition(" ")[0]


def distinct(turns):
    return {turn.id: turn for turn in reversed(turns)}


@EVERY
@RELAXED
@given(data=st.data())
def test_a_file_read_while_it_grows_gives_what_one_reading_gives(name, data, tmp_path):
    whole = LINE_FILES[name].read_bytes()
    # Anywhere: in a line, in a character.
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    path = tmp_path / LINE_FILES[name].name
    expected, _ = read(LINE_FILES[name], host=host_of(name))
    position, turns, counted = base.START, [], 0
    for cut in [*cuts, len(whole)]:
        path.write_bytes(whole[:cut])
        given, transcript = read(path, stored(position), host_of(name))
        position, turns, counted = transcript.position, turns + given, counted + transcript.lines
    assert counted == position.line == whole.count(b"\n")
    assert position.offset >= len(whole) - 1  # a last line break that came alone is passed over
    # A copy of a chat has no project beside it, and is a session of its own.
    blind = [
        [turn._replace(cwd=None, session=turn.session.partition("-")[0]) for turn in some]
        for some in (turns, expected)
    ]
    assert distinct(blind[0]) == distinct(blind[1])


@EVERY
@pytest.mark.parametrize(
    "limits", [{"page_turns": 1}, {"page_bytes": 1}, {"page_bytes": 700, "page_turns": 2}]
)
def test_pages_of_any_size_give_the_same_turns(name, limits):
    path, host = LINE_FILES[name], host_of(name)
    expected, transcript = read(path, host=host)
    pages = list(paged(agents.read(path, host=host), **limits))
    assert [turn for page in pages for turn in page.turns] == expected
    assert sum(page.lines for page in pages) == transcript.lines
    assert sum((Counter(page.skipped) for page in pages), Counter()) == transcript.skipped


@EVERY
def test_reading_goes_on_behind_every_page(name):
    path, host = LINE_FILES[name], host_of(name)
    pages = list(paged(agents.read(path, host=host), page_turns=1))
    rest = [distinct(read(path, stored(page.position), host)[0]).keys() for page in pages]
    after = [
        distinct([turn for later in pages[number:] for turn in later.turns]).keys()
        for number in range(1, len(pages) + 1)
    ]
    assert [number for number, keys in enumerate(after) if not rest[number] >= keys] == []


def test_a_half_written_last_line_waits(tmp_path):
    first, second = json.dumps(claude_line(1, "naïve")), json.dumps(claude_line(2, "second"))
    path = written(tmp_path / "s.jsonl", first, second[:50], end="")
    turns, transcript = read(path)
    assert [turn.text for turn in turns] == ["naïve"]
    assert transcript.skipped == {"half-written last line": 1}
    assert transcript.position.offset == len(first.encode()) + 1
    written(path, first, second, end="")
    turns, transcript = read(path, stored(transcript.position))
    assert ([turn.line for turn in turns], transcript.skipped) == ([2], {})
    with path.open("a") as file:
        file.write("\r\n" + json.dumps(claude_line(3, "third")) + "\n")
    turns, transcript = read(path, stored(transcript.position))
    assert [(turn.line, turn.text) for turn in turns] == [(3, "third")]
    assert transcript.position.line == 3


CHANGES = {
    "cut": lambda data: data[: len(data) // 2],
    "emptied": lambda data: b"",
    "rewritten": lambda data: data.replace(b'"u999"', b'"u998"'),
    "replaced": lambda data: data.replace(b"2026-05-04T09:00:00", b"2027-05-04T09:00:00"),
    "moved": lambda data: b"\n".join(data.split(b"\n")[1:]) + data,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_is_not_the_same_any_more_is_read_from_its_start(tmp_path, change):
    data = SESSION.read_bytes()
    path = tmp_path / SESSION.name
    # Only the end is compared, so the changed words stand there.
    first = data[data.index(b'{"parentUuid":null') :].split(b"\n")[0]
    data += first.replace(b'"u001"', b'"u999"') + b"\n"
    path.write_bytes(data)
    _, transcript = read(path)
    path.write_bytes(CHANGES[change](data))
    position = stored(transcript.position)
    turns, transcript = read(path, position, "claude")
    assert turns == read(path, host="claude")[0]
    assert read(path, stored(transcript.position), "claude")[0] == []


@EVERY
@RELAXED
@given(data=st.data())
def test_wrong_types_never_raise(name, data, tmp_path):
    entries = [json.loads(line) for line in LINE_FILES[name].read_text("utf-8").splitlines()]
    for _ in range(4):
        spoil(entries, data)
    path = tmp_path / LINE_FILES[name].name
    written(path, *map(json.dumps, entries))
    assert agents.detect(path) in (*agents.names(), None)
    turns, transcript = read(path, host=host_of(name))
    assert transcript.lines == len(entries)
    assert [
        turn
        for turn in turns
        if (not turn.text.strip() or not turn.text.encode() or (not turn.session) or (not turn.id))
        or turn.role not in ("user", "assistant", *ABOUT)
    ] == []
    assert read(path, stored(transcript.position), host_of(name))[0] == []


def spoil(value, data):
    """Puts something else in the place of one value, at any depth."""
    while True:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = data.draw(st.sampled_from(list(keys)))
        inner = value[key]
        if isinstance(inner, dict | list) and inner and data.draw(st.integers(0, 3)):
            value = inner
            continue
        value[key] = data.draw(JSON)
        return


def said(number: int, text: str) -> bytes:
    return json.dumps(claude_line(number, text)).encode()


BAD_LINES = [
    (b'{"type":"user","mess', [], "broken line"),
    (b'{"type":"user","mess' + said(5, "behind a torn one"), [], "broken line"),
    (b"\x00\x00\x00" + said(5, "behind zeros"), ["behind zeros"], None),
    (b"\xef\xbb\xbf" + said(5, "behind a mark"), ["behind a mark"], None),
    (said(5, "caf@").replace(b"@", b"\xe9"), ["caf�"], None),
    (said(5, "half \ud83d of a smile"), ["half ? of a smile"], None),
    (said(5, "a\ttab").replace(b"\\t", b"\t"), ["a\ttab"], None),
    (b"\x00" * 500, [], "broken line"),
    (b"[1, 2]", [], "broken line"),
    (b'{"a":' * 5000, [], "broken line"),
    (b'{"type":"user","n":' + b"9" * 6000 + b"}", [], "broken line"),
]


@pytest.mark.parametrize(("line", "heard", "reason"), BAD_LINES)
def test_a_bad_line_is_skipped_alone(tmp_path, line, heard, reason):
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"\n".join([said(1, "word 1"), line, said(2, "word 2"), b""]))
    turns, reader = read(path, host="claude")
    assert [turn.text for turn in turns] == ["word 1", *heard, "word 2"]
    assert reader.skipped == ({reason: 1} if reason else {})
    assert turns[-1].line == reader.lines == 3


def test_an_endless_line_takes_little_memory(tmp_path, monkeypatch):
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"\n".join([said(1, "before"), b"x" * (8 << 20), said(3, "behind"), b""]))
    tracemalloc.start()
    monkeypatch.setattr(transcript, "LONGEST_LINE", 1 << 20)
    turns, reader = read(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [(turn.line, turn.text) for turn in turns] == [(1, "before"), (3, "behind")]
    assert reader.skipped == {"too long": 1} and most < 4 << 20


@EVERY
def test_a_position_holds_no_text(name):
    pages = list(paged(agents.read(LINE_FILES[name], host=host_of(name)), page_bytes=1))
    states = [json.dumps(dict(page.position.state), ensure_ascii=False) for page in pages]
    texts = [turn.text for page in pages for turn in page.turns]
    assert [(text, state) for text in texts for state in states if text[:15] in state] == []


COMMIT = "git commit -qm 'Cache the carts'"
PUSHED = "[main 1a2b3c4] Cache carts\nrejected"


# Host → the lines that it writes about a command, its output and its end.
WORK = {
    "claude": lambda command, output, failed: [
        claude_line(
            1,
            [{"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": command}}],
            "assistant",
        ),
        claude_line(
            2, [{"type": "tool_result", "tool_use_id": "c1", "content": output, "is_error": failed}]
        ),
        claude_line(3, "Done."),
    ],
    "codex": lambda command, output, failed: [
        {"type": "response_item", "payload": one}
        for one in (
            {
                "type": "function_call",
                "call_id": "c1",
                "name": "exec_command",
                "arguments": json.dumps({"cmd": command}),
            },
            {
                "type": "function_call_output",
                "call_id": "c1",
                "output": f"Process exited with code {int(failed)}\nOutput:\n{output}",
            },
            {"type": "message", "role": "assistant", "content": "Done."},
        )
    ],
    "copilot": lambda command, output, failed: [
        {
            "type": "assistant.message",
            "id": "1",
            "data": {
                "toolRequests": [
                    {"toolCallId": "c1", "name": "bash", "arguments": {"command": command}}
                ]
            },
        },
        {
            "type": "tool.execution_complete",
            "id": "2",
            "data": {"toolCallId": "c1", "success": not failed, "result": {"content": output}},
        },
        {"type": "assistant.message", "id": "3", "data": {"content": "Done."}},
    ],
    "gemini": lambda command, output, failed: [
        {
            "id": "1",
            "type": "gemini",
            "content": "",
            "toolCalls": [
                {
                    "id": "c1",
                    "name": "run_shell_command",
                    "args": {"command": command},
                    "result": [{"functionResponse": {"response": {"output": output}}}],
                    "status": "error" if failed else "success",
                }
            ],
        },
        {"id": "2", "type": "gemini", "content": "Done."},
    ],
}


@pytest.mark.parametrize("host", WORK)
@pytest.mark.parametrize(
    ("command", "output", "failed", "work"),
    [
        pytest.param(COMMIT, "", False, [Fact("commit", "Cache the carts")], id="commit-empty"),
        pytest.param(
            "git commit -F note && git push",
            PUSHED,
            True,
            [Fact("commit", "Cache carts")],
            id="git-commit-F-note-git-push",
        ),
        pytest.param(COMMIT, "nothing to commit", True, [], id="commit-nothing-commit"),
        pytest.param(
            "go test ./... | tail -3",
            "--- FAIL: TestCart\nFAIL",
            False,
            [Fact("failed", "go test")],
            id="go-test-tail-3",
        ),
        pytest.param(
            "cd shop && npm run lint",
            "",
            False,
            [Fact("passed", "npm run lint")],
            id="cd-shop-npm-run-lint",
        ),
        pytest.param(
            "pytest -q",
            "1 failed, 3 passed",
            False,
            [Fact("failed", "pytest")],
            id="pytest-q-1-failed-3-passed",
        ),
        pytest.param(
            "pytest -q",
            "0 failed, 3 passed",
            False,
            [Fact("passed", "pytest")],
            id="pytest-q-0-failed-3-passed",
        ),
        pytest.param(
            "gh pr create",
            "https://git.example/a/b/pull/7\n",
            False,
            [Fact("pull request", "#7")],
            id="gh-pr-create",
        ),
        pytest.param(
            'gh pr create --title "Cache carts" --body "x"',
            "https://git.example/a/b/pull/7\n",
            False,
            [Fact("pull request", "#7: Cache carts")],
            id="gh-pr-create-title-cache-carts-body-x",
        ),
        pytest.param(
            "git push -u origin carts",
            "",
            False,
            [Fact("push", "git push")],
            id="git-push-u-origin-carts",
        ),
        pytest.param("git push", "rejected", True, [], id="git-push"),
        pytest.param("gh pr merge 7", "", False, [Fact("merge", "pr merge")], id="gh-pr-merge-7"),
        pytest.param(
            "cat test.log; ls build", "[x 1a2b3c4] no", False, [], id="cat-test.log-ls-build"
        ),
    ],
)
def test_work_comes_with_the_next_turn(tmp_path, host, command, output, failed, work):
    path = written(tmp_path / "session.jsonl", *WORK[host](command, output, failed))
    assert [list(turn.work) for turn in read(path, host=host)[0]] == [work]


def test_work_comes_with_the_next_turn_of_a_later_reading(tmp_path):
    lines, position = WORK["claude"](COMMIT, "", False), base.START
    for number in (1, 2, 3):
        path = written(tmp_path / "s1.jsonl", *lines[:number])
        turns, reader = read(path, stored(position))
        position = reader.position
    assert [list(turn.work) for turn in turns] == [[Fact("commit", "Cache the carts")]]


PLAN = "Implement the following plan:\n\n# Cache the carts"


DETAILS = "\n\nIf you need specific details from before exiting plan mode, read x"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(claude_line(1, PLAN + DETAILS), id="claude_line-1-PLAN"),
        pytest.param(claude_line(1, "go", planContent="# Cache the carts"), id="claude_line-1-go"),
        pytest.param({"role": "user", "content": PLAN}, id="role"),
    ],
)
def test_a_plan_is_kept_as_a_plan(tmp_path, line):
    (turn,), _ = read(written(tmp_path / "s1.jsonl", line))
    assert (turn.plan, turn.summary, turn.role, turn.text) == (True, False, "user", PLAN), line


@pytest.mark.parametrize(
    "typed",
    [
        pytest.param("/remember why redis?", id="remember-why-redis"),
        pytest.param("$remember why redis?", id="remember-why-redis-2"),
        pytest.param("/bethink:remember x", id="bethink-remember-x"),
    ],
)
def test_a_call_of_our_skills_is_no_speech(tmp_path, typed):
    turns, transcript = read(written(tmp_path / "s1.jsonl", {"role": "user", "content": typed}))
    assert not turns and transcript.skipped == {"no speech": 1}, typed


def test_a_longer_command_is_speech(tmp_path):
    turns, _ = read(written(tmp_path / "s1.jsonl", {"role": "user", "content": "/rememberance"}))
    assert len(turns) == 1


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("memory-mode: off", ("off", ""), id="memory-mode-off"),
        pytest.param("  Memory-Mode:  ON ", ("on", ""), id="memory-mode"),
        pytest.param(
            "<!-- memory-mode: off -->\nhello", ("off", "hello"), id="memory-mode-off-hello"
        ),
        pytest.param(
            "memory-mode: off\nx\nmemory-mode: on", ("on", "x"), id="memory-mode-off-x-memory-mode"
        ),
        pytest.param(
            "what does memory-mode: off do?",
            (None, "what does memory-mode: off do?"),
            id="what-memory-mode-off",
        ),
        pytest.param(
            "memory-mode: offline", (None, "memory-mode: offline"), id="memory-mode-offline"
        ),
    ],
)
def test_a_line_switches_memory_on_or_off(line, expected):
    assert find_memory_mode(line) == expected


@pytest.mark.parametrize(
    ("text", "open_block", "expected"),
    [
        pytest.param("a <private> b", False, ("a <private> b", True), id="private-b"),
        pytest.param(
            "a <private> b </private> c",
            False,
            ("a <private> b </private> c", False),
            id="private-b-private-c",
        ),
        pytest.param(
            "what does `<private>` do?",
            False,
            ("what does `<private>` do?", False),
            id="what-private",
        ),
        pytest.param("still hidden", True, ("", True), id="still-hidden"),
        pytest.param("so `</private>` ends it?", True, ("", True), id="so-private-ends"),
        pytest.param("hidden </Private> seen", True, ("seen", False), id="hidden-private-seen"),
        pytest.param(
            "hidden </private> seen <private > more",
            True,
            ("seen <private > more", True),
            id="hidden-private-seen-private-more",
        ),
        pytest.param("</private>", True, ("", False), id="private"),
    ],
)
def test_a_private_block_is_cut_out(text, open_block, expected):
    assert split_private(text, open_block) == expected


def test_long_texts_lose_their_middle():
    block = "\n".join(f"line {number}" for number in range(352))
    text = shorten(f"It fails:\n```text\n{block}\n```\nWhy?")
    assert "[… 316 lines left out]" in text
    assert text.startswith("It fails:\n```text\nline 0\n")
    assert text.endswith("line 351\n```\nWhy?")
    assert text.count("\n") < speech.FENCE_LINES + 5
    never_closed = "```\n" + "x\n" * 500
    assert shorten(never_closed).count("x") < speech.FENCE_LINES
    nested = "````md\n```\n" + "x\n" * 20 + "```\n````\nend"
    assert shorten(nested) == nested, "a short one stays, a fence inside it too"
    lines = [f"{number:05} " + "word " * 10 for number in range(2000)]
    text = shorten("\n".join(lines))
    assert len(text) < speech.TEXT_LENGTH
    head, _, tail = text.partition("\n[… ")
    assert all(line.rstrip() in text for line in (lines[0], lines[-1]))
    assert head.split("\n")[-1].startswith(("00", "01"))
    assert "characters left out]" in tail
    assert len(shorten("x" * 100_000)) < speech.TEXT_LENGTH
