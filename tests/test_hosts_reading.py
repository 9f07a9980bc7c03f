"""What holds for every reader: steps equal one go, files that change under it, bad input, bounds and speed."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transcripts import LINE_FILES, SESSION, claude_line, read, stored, written

from bethink import hosts
from bethink.hosts import base, transcript
from bethink.hosts.base import Fact

EVERY = pytest.mark.parametrize("name", LINE_FILES)
RELAXED = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
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


# growing, in steps


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
    # A copy of a chat has no project beside it.
    blind = [[turn._replace(cwd=None) for turn in some] for some in (turns, expected)]
    assert distinct(blind[0]) == distinct(blind[1])


@EVERY
@pytest.mark.parametrize(
    "limits", [{"limit_turns": 1}, {"limit_bytes": 1}, {"limit_bytes": 700, "limit_turns": 2}]
)
def test_pages_of_any_size_give_the_same_turns_and_each_can_be_gone_on_from(name, limits):
    path, host = LINE_FILES[name], host_of(name)
    expected, transcript = read(path, host=host)
    pages = list(hosts.read(path, host=host).pages(**limits))
    assert [turn for page in pages for turn in page.turns] == expected
    assert sum(page.lines for page in pages) == transcript.lines
    assert sum((Counter(page.skipped) for page in pages), Counter()) == transcript.skipped
    for number, page in enumerate(pages):
        rest, _ = read(path, stored(page.position), host)
        after = [turn for later in pages[number + 1 :] for turn in later.turns]
        assert distinct(rest).keys() >= distinct(after).keys()


def test_a_half_written_last_line_waits(tmp_path):
    first, second = json.dumps(claude_line(1, "naïve")), json.dumps(claude_line(2, "second"))
    path = written(tmp_path / "s.jsonl", first, second[:50], end="")
    turns, transcript = read(path)
    assert [turn.text for turn in turns] == ["naïve"]
    assert transcript.skipped == {"half-written last line": 1}
    assert transcript.position.offset == len(first.encode()) + 1
    written(path, first, second)
    turns, transcript = read(path, stored(transcript.position))
    assert ([turn.line for turn in turns], transcript.skipped) == ([2], {})


def test_a_last_line_that_only_lacks_its_line_break_is_given_at_once(tmp_path):
    path = written(tmp_path / "s.jsonl", claude_line(1, "one"), end="")
    turns, transcript = read(path)
    assert [turn.text for turn in turns] == ["one"]
    with path.open("a") as file:
        file.write("\r\n" + json.dumps(claude_line(2, "two")) + "\n")
    turns, transcript = read(path, stored(transcript.position))
    assert [(turn.line, turn.text) for turn in turns] == [(2, "two")]
    assert transcript.position.line == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: data.replace(b'"u999"', b'"u998"'),
        lambda data: data.replace(b"2026-05-04T09:00:00.000Z", b"2027-05-04T09:00:00.000Z"),
        lambda data: b"\n".join(data.split(b"\n")[1:]) + data,
    ],
    ids="cut emptied rewritten replaced moved".split(),
)
def test_a_file_that_is_not_the_same_any_more_is_read_from_its_start(tmp_path, change):
    data = SESSION.read_bytes()
    path = tmp_path / SESSION.name
    # Only the end is compared, so the changed words stand there.
    first = data[data.index(b'{"parentUuid":null') :].split(b"\n")[0]
    data += first.replace(b'"u001"', b'"u999"') + b"\n"
    path.write_bytes(data)
    _, transcript = read(path)
    path.write_bytes(change(data))
    position = stored(transcript.position)
    turns, transcript = read(path, position, "claude")
    assert turns == read(path, host="claude")[0]
    assert read(path, stored(transcript.position), "claude")[0] == []


# bad input


@EVERY
@RELAXED
@given(data=st.data())
def test_wrong_types_anywhere_never_raise(name, data, tmp_path):
    entries = [json.loads(line) for line in LINE_FILES[name].read_text("utf-8").splitlines()]
    for _ in range(4):
        spoil(entries, data)
    path = tmp_path / LINE_FILES[name].name
    written(path, *map(json.dumps, entries))
    assert hosts.detect(path) in (*hosts.HOSTS, None)
    turns, transcript = read(path, host=host_of(name))
    assert transcript.lines == len(entries)
    for turn in turns:
        assert turn.text.strip() and turn.text.encode() and turn.session and turn.id
        assert turn.role in ("user", "assistant")
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


@pytest.mark.parametrize(
    ("line", "given", "reason"),
    [
        (b'{"type":"user","mess', [], "broken line"),
        (b'{"type":"user","mess' + said(5, "behind a torn one"), [], "broken line"),
        (b"\0\0\0" + said(5, "behind zeros"), ["behind zeros"], None),
        (b"\xef\xbb\xbf" + said(5, "behind a mark"), ["behind a mark"], None),
        (said(5, "caf@").replace(b"@", b"\xe9"), ["caf\ufffd"], None),
        (said(5, "half \ud83d of a smile"), ["half ? of a smile"], None),
        (said(5, "a\ttab").replace(b"\\t", b"\t"), ["a\ttab"], None),
        (b"\0" * 500, [], "broken line"),
        (b"[1, 2]", [], "broken line"),
        (b'{"a":' * 5000, [], "broken line"),
        (b'{"type":"user","n":' + b"9" * 6000 + b"}", [], "broken line"),
    ],
)
def test_a_bad_line_costs_only_itself(tmp_path, line, given, reason):
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"\n".join([said(1, "word 1"), line, said(2, "word 2"), b""]))
    turns, transcript = read(path, host="claude")
    assert [turn.text for turn in turns] == ["word 1", *given, "word 2"]
    assert transcript.skipped == ({reason: 1} if reason else {})
    assert turns[-1].line == transcript.lines == 3


# bounds and speed


def test_a_line_beyond_the_bound_is_passed_over_in_little_memory(tmp_path, monkeypatch):
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"\n".join([said(1, "before"), b"x" * (32 << 20), said(3, "behind"), b""]))
    tracemalloc.start()
    monkeypatch.setattr(transcript, "BOUND", 4 << 20)
    turns, reader = read(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [(turn.line, turn.text) for turn in turns] == [(1, "before"), (3, "behind")]
    assert reader.skipped == {"too long": 1}
    assert most < 10 << 20


# the edges of reading bytes


@EVERY
def test_a_position_keeps_nothing_that_was_said(name):
    pages = list(hosts.read(LINE_FILES[name], host=host_of(name)).pages(limit_bytes=1))
    states = [json.dumps(dict(page.position.state), ensure_ascii=False) for page in pages]
    texts = [turn.text for page in pages for turn in page.turns]
    assert [(text, state) for text in texts for state in states if text[:15] in state] == []


# what tools did

COMMIT = "git commit -qm 'Cache the carts'"
PUSHED = "[main 1a2b3c4] Cache carts\nrejected"


def claude_work(command, output, failed):
    call = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": command}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": output, "is_error": failed}
    return [claude_line(1, [call], "assistant"), claude_line(2, [result]), claude_line(3, "Done.")]


def codex_work(command, output, failed):
    asked = {"name": "exec_command", "arguments": json.dumps({"cmd": command})}
    text = f"Process exited with code {int(failed)}\nOutput:\n{output}"
    items = [
        {"type": "function_call", "call_id": "c1", **asked},
        {"type": "function_call_output", "call_id": "c1", "output": text},
        {"type": "message", "role": "assistant", "content": "Done."},
    ]
    return [{"type": "response_item", "payload": one} for one in items]


def copilot_work(command, output, failed):
    call = {"toolCallId": "c1", "name": "bash", "arguments": {"command": command}}
    result = {"toolCallId": "c1", "success": not failed, "result": {"content": output}}
    return [
        {"type": "assistant.message", "id": "1", "data": {"toolRequests": [call]}},
        {"type": "tool.execution_complete", "id": "2", "data": result},
        {"type": "assistant.message", "id": "3", "data": {"content": "Done."}},
    ]


def gemini_work(command, output, failed):
    answer = [{"functionResponse": {"response": {"output": output}}}]
    call = {"id": "c1", "name": "run_shell_command", "args": {"command": command}}
    call |= {"result": answer, "status": "error" if failed else "success"}
    return [
        {"id": "1", "type": "gemini", "content": "", "toolCalls": [call]},
        {"id": "2", "type": "gemini", "content": "Done."},
    ]


@pytest.mark.parametrize("lines_of", [claude_work, codex_work, copilot_work, gemini_work])
@pytest.mark.parametrize(
    ("command", "output", "failed", "work"),
    [
        (COMMIT, "", False, [Fact("commit", "Cache the carts")]),
        # What git reports counts: it may be another subject, and it stands whatever failed behind it.
        ("git commit -F note && git push", PUSHED, True, [Fact("commit", "Cache carts")]),
        (COMMIT, "nothing to commit", True, []),
        ("go test ./... | tail -3", "--- FAIL: TestCart\nFAIL", False, [Fact("failed", "go test")]),
        ("cd shop && npm run lint", "", False, [Fact("passed", "npm run lint")]),
        ("pytest -q", "1 failed, 3 passed", False, [Fact("failed", "pytest")]),
        ("pytest -q", "0 failed, 3 passed", False, [Fact("passed", "pytest")]),
        ("gh pr create", "https://git.example/a/b/pull/7\n", False, [Fact("pull request", "#7")]),
        ("cat test.log; ls build", "[x 1a2b3c4] no", False, []),
    ],
)
def test_commits_checks_and_pull_requests_come_with_the_next_turn(
    tmp_path, lines_of, command, output, failed, work
):
    host = lines_of.__name__.partition("_")[0]
    path = written(tmp_path / "session.jsonl", *lines_of(command, output, failed))
    turns, _ = read(path, host=host)
    assert [list(turn.work) for turn in turns] == [work]


def test_what_a_call_did_is_known_also_when_its_result_comes_in_the_next_reading(tmp_path):
    call, result, said = claude_work(COMMIT, "", False)
    path = written(tmp_path / "s1.jsonl", call)
    _, first = read(path)
    written(path, call, result)
    _, second = read(path, stored(first.position))
    written(path, call, result, said)
    turns, _ = read(path, stored(second.position))
    assert [list(turn.work) for turn in turns] == [[Fact("commit", "Cache the carts")]]


PLAN = "Implement the following plan:\n\n# Cache the carts"
DETAILS = "\n\nIf you need specific details from before exiting plan mode, read x"


@pytest.mark.parametrize(
    "line",
    [
        claude_line(1, PLAN + DETAILS),
        claude_line(1, "go", planContent="# Cache the carts"),
        {"role": "user", "content": PLAN},
    ],
)
def test_a_plan_that_is_handed_back_is_kept_as_a_plan(tmp_path, line):
    (turn,), _ = read(written(tmp_path / "s1.jsonl", line))
    assert (turn.plan, turn.summary, turn.role, turn.text) == (True, False, "user", PLAN)


@pytest.mark.parametrize(
    "typed", ["/remember why redis?", "$remember why redis?", "/bethink:remember x"]
)
def test_a_call_of_our_skills_is_nothing_that_was_said(tmp_path, typed):
    turns, transcript = read(written(tmp_path / "s1.jsonl", {"role": "user", "content": typed}))
    assert not turns and transcript.skipped == {"no speech": 1}
    turns, _ = read(written(tmp_path / "s1.jsonl", {"role": "user", "content": "/rememberance"}))
    assert len(turns) == 1
