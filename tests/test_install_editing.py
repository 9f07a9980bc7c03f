"""Entries into a host's file and out again: every other byte stays, and what it says stays, whatever the file looks like."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from agent_files import DOCUMENTS, TOMLS
from hypothesis import example, given
from hypothesis import strategies as st

from bethink.errors import InvalidInput
from bethink.install import entries, host, jsonc, toml
from bethink.install.entries import Entry, State

PLACE = host.Place(Path("/home/ü ser"), {}, None, ("/opt/my tools/bethink",), tool_hooks=True)


def wanted(name: str, part: str) -> tuple[Entry, ...]:
    return next(
        target.entries
        for target in host.module(name).targets(PLACE)
        if target.part == part and target.entries
    )


HOOKS = {name: wanted(name, "hooks") for name in ("claude", "codex", "copilot", "gemini", "cursor")}
SERVERS = {
    name: wanted(name, "mcp") for name in ("claude", "copilot", "gemini", "cursor", "opencode")
}
JSON_ENTRIES = {f"{name} hooks": (name, found) for name, found in HOOKS.items()} | {
    f"{name} server": (name, found) for name, found in SERVERS.items()
}


def parsed(text: str) -> object:
    return {} if jsonc.empty(text) else jsonc.plain(jsonc.parse(text))


@pytest.mark.parametrize("case", JSON_ENTRIES)
@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_was_put_into_json_can_be_taken_out_to_the_byte(case: str, document: str) -> None:
    name, found = JSON_ENTRIES[case]
    text = DOCUMENTS[document]
    put = entries.put(text, found, name, State())
    assert put.kept == ()
    assert entries.put(put.text, found, name, put.state) == put, "a second time changes nothing"
    assert entries.take(put.text, put.state.entries, name, put.state) == text
    before, after = parsed(text), parsed(put.text)
    for entry in found:
        place = after
        for key in entry.path:
            place = place[key]
        assert entry.value in place if entry.kind == "hook" else place == entry.value
    assert list(before) == [key for key in after if key in before], "the order stays"


@pytest.mark.parametrize(
    "document",
    [
        name
        for name, text in DOCUMENTS.items()
        if "//" not in text and "/*" not in text and ",}" not in text
    ],
)
def test_strict_json_stays_strict_json(document: str) -> None:
    text = DOCUMENTS[document]
    if document == "trailing commas":
        return
    put = entries.put(text, HOOKS["claude"], "claude", State()).text
    assert json.loads(put.lstrip("\ufeff"))["hooks"]["Stop"]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (
            "two blanks",
            '\n  "mcpServers": {\n    "bethink": {\n      "command": "/opt/my tools/bethink",\n      "args": ["mcp"]\n    }\n  }\n}\n',
        ),
        (
            "tabs, no line end at the end",
            '\n\t"mcpServers": {\n\t\t"bethink": {\n\t\t\t"command": "/opt/my tools/bethink",\n\t\t\t"args": ["mcp"]\n\t\t}\n\t}\n}',
        ),
        (
            "one line",
            ',"mcpServers":{"bethink":{"command":"/opt/my tools/bethink","args":["mcp"]}}}',
        ),
        (
            "trailing commas",
            '\n  "mcpServers": {\n    "bethink": {\n      "command": "/opt/my tools/bethink",\n      "args": ["mcp"]\n    }\n  },\n}\n',
        ),
    ],
)
def test_what_is_put_in_looks_like_the_rest(document: str, expected: str) -> None:
    assert entries.put(DOCUMENTS[document], SERVERS["cursor"], "cursor", State()).text.endswith(
        expected
    )


def test_crlf_files_get_no_other_line_ends() -> None:
    text = entries.put(DOCUMENTS["CRLF"], HOOKS["claude"], "claude", State()).text
    assert text.count("\n") == text.count("\r\n")


@pytest.mark.parametrize(
    ("text", "index", "expected"),
    [
        ('{"a": 1, // c\n "b": 2}', 1, '{"a": 1 // c\n}'),
        ('{"a": 1, // c\r\n "b": 2}', 1, '{"a": 1 // c\r\n}'),
        ('{"a": 1, /* c */ "b": 2}', 1, '{"a": 1 /* c */}'),
        ('{"a": 1, "b": 2}', 0, '{"b": 2}'),
        ('{ "a": 1, "b": 2, "c": 3 }', 1, '{ "a": 1, "c": 3 }'),
        (
            '{\n  "a": 1,\n  "b": 2, // about b\n  "c": 3\n}',
            1,
            '{\n  "a": 1, // about b\n  "c": 3\n}',
        ),
        ('{"a": 1, "b": 2,}', 1, '{"a": 1,}'),
        ('{"a": 1 /* one */, "b": 2}', 1, '{"a": 1 /* one */}'),
        ('{\n  // about a\n  "a": 1\n}', 0, "{\n  // about a\n}"),
        ("[1, 2, 3]", 2, "[1, 2]"),
        ("[1]", 0, "[]"),
    ],
)
def test_one_member_is_taken_out_and_its_surroundings_stay_whole(
    text: str, index: int, expected: str
) -> None:
    shorter = jsonc.remove(text, jsonc.parse(text), index)
    assert shorter == expected
    jsonc.parse(shorter)


EDITS = {
    "a value elsewhere": ('"model": "opus"', '"model": "haiku"'),
    "a hook beside ours": (
        '"Stop": [',
        '"Stop": [\n      { "hooks": [{ "type": "command", "command": "mine" }] },',
    ),
    "a member before ours": ("{\n", '{\n  "first": 1,\n', 1),
    "another server": ('"mcpServers": {', '"mcpServers": {\n    "mine": { "command": "x" },'),
    "a comment": ('  "hooks": {', '  // about hooks\n  "hooks": {'),
}


@pytest.mark.parametrize("edit", EDITS)
def test_what_the_user_changed_meanwhile_stays(edit: str) -> None:
    text = DOCUMENTS["other tools' hooks"].replace(
        '{\n  "hooks"', '{\n  "model": "opus",\n  "hooks"'
    )
    found = (*HOOKS["claude"], *SERVERS["claude"])
    put = entries.put(text, found, "claude", State())
    changed = put.text.replace(*EDITS[edit])
    assert changed != put.text
    shorter = entries.take(changed, put.state.entries, "claude", put.state)
    assert shorter == text.replace(*EDITS[edit])
    assert entries.prove_take(changed, shorter, put.state.entries, "claude", put.state)


def test_a_group_that_the_user_shares_with_our_hook_keeps_theirs() -> None:
    put = entries.put("{}\n", HOOKS["claude"], "claude", State())
    document = json.loads(put.text)
    document["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "mine"})
    changed = json.dumps(document, indent=2)
    assert json.loads(entries.take(changed, put.state.entries, "claude", put.state)) == {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}
    }


def test_an_upgrade_changes_our_command_and_nothing_else() -> None:
    text = DOCUMENTS["other tools' hooks"]
    put = entries.put(text, HOOKS["claude"], "claude", State())
    tuned = put.text.replace('"timeout": 10', '"timeout": 33')
    newer = host.module("claude").targets(PLACE._replace(words=("/new/bethink",)))[1].entries
    upgraded = entries.put(tuned, newer, "claude", put.state)
    assert upgraded.text == tuned.replace("/opt/my tools/bethink", "/new/bethink")
    assert entries.take(upgraded.text, upgraded.state.entries, "claude", upgraded.state) == text


def test_hooks_that_are_no_longer_wanted_go() -> None:
    put = entries.put("{}", HOOKS["claude"], "claude", State())
    fewer = tuple(entry for entry in HOOKS["claude"] if entry.path[-1] != "PreToolUse")
    less = entries.put(put.text, fewer, "claude", put.state)
    assert "PreToolUse" in put.text
    assert "PreToolUse" not in less.text
    assert "Stop" in less.text


@pytest.mark.parametrize(
    "value",
    ['{"command": "theirs"}', '{"command": "uvx", "args": ["bethink", "mcp"]}', '"x"', "null"],
)
def test_a_server_of_our_name_that_somebody_else_made_is_kept(value: str) -> None:
    text = '{"mcpServers": {"bethink": %s}}' % value  # noqa: UP031
    put = entries.put(text, SERVERS["claude"], "claude", State())
    assert put.text == text
    assert put.state.entries == ()
    assert len(put.kept) == 1


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "null",
        '"hooks"',
        "{",
        '{"a": }',
        "{'a': 1}",
        '{"a": 1 "b": 2}',
        '{"a": 01}',
        '{"a": "\t"}',
        '{"hooks": []}',
        '{"hooks": {"Stop": {}}}',
        "{} {}",
        "/* open",
        '{"a": "\\x"}',
        "{" * 5000,
        '{"a":' * 500 + "1" + "}" * 500,
        "{,}",
        '{"a": NaN}',
    ],
)
def test_what_cannot_be_understood_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        entries.put(text, HOOKS["claude"], "claude", State())
    assert caught.value.message.endswith(".")
    assert caught.value.hint


# Any document

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inside: (
        st.lists(inside, max_size=4) | st.dictionaries(st.text(max_size=6), inside, max_size=4)
    ),
    max_leaves=20,
)
EVENTS = st.sampled_from(["Stop", "stop", "SessionStart", "sessionStart", "PreCompact", "Other"])
HANDLER = st.fixed_dictionaries({"type": st.just("command"), "command": st.text(max_size=10)})
GROUP = st.fixed_dictionaries(
    {"hooks": st.lists(HANDLER, max_size=2)}, optional={"matcher": st.text(max_size=3)}
)
SETTINGS = st.builds(
    lambda rest, more: rest | more,
    st.dictionaries(
        st.text(max_size=6).filter(
            lambda key: key not in ("hooks", "mcpServers", "version", "mcp")
        ),
        JSON,
        max_size=4,
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "hooks": st.dictionaries(EVENTS, st.lists(GROUP | HANDLER, max_size=3), max_size=3),
            "mcpServers": st.dictionaries(st.text(max_size=5), JSON, max_size=2),
            "mcp": st.just({}),
            "version": st.just(1),
        },
    ),
)
LAYOUTS = st.sampled_from([None, 0, 1, 2, 4, "\t"])
FILLERS = st.sampled_from(["", " ", "\n", "// note\n", "/* a */", " /* b\n */ ", "\n\n  // c\n  "])


def sprinkled(text: str, fillers: list[str]) -> str:
    """The document with comments and blanks between its tokens, and trailing commas."""
    out, at, inside = [], 0, False
    for number, mark in enumerate(text):
        out.append(mark)
        if mark == '"' and text[number - 1] != "\\":
            inside = not inside
        if not inside and mark in "{[,:":
            out.append(fillers[at % len(fillers)])
            at += 1
    return "".join(out)


@given(
    SETTINGS,
    LAYOUTS,
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.lists(FILLERS, min_size=1, max_size=4),
    st.sampled_from(sorted(JSON_ENTRIES)),
)
@example({"a": "\\"}, None, "\n", False, ["// note\n"], "claude hooks")
def test_any_json_document_is_given_back_as_it_was(
    value, indent, end, ascii_only, fillers, case
) -> None:
    name, found = JSON_ENTRIES[case]
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    plain = text.replace("\n", end)
    if "\\" not in text:
        text = sprinkled(text, fillers)
    for document in (plain, text.replace("\n", end)):
        if not document.isascii():
            document = document.encode("utf-8", "replace").decode()
        put = entries.put(document, found, name, State())
        assert entries.take(put.text, put.state.entries, name, put.state) == document
        assert entries.without(parsed(put.text), put.state.entries, name, put.state) == parsed(
            document
        )
        assert entries.put(put.text, found, name, put.state).text == put.text


# TOML

CODEX = wanted("codex", "mcp")


@pytest.mark.parametrize("document", TOMLS)
def test_what_was_put_into_toml_can_be_taken_out_to_the_byte(document: str) -> None:
    text = TOMLS[document]
    put = entries.put(text, CODEX, "codex", State())
    found = toml.parse(put.text)["mcp_servers"]["bethink"]
    assert found == {"command": "/opt/my tools/bethink", "args": ["mcp"]}
    assert put.text.startswith(text)
    assert entries.put(put.text, CODEX, "codex", put.state).text == put.text
    assert entries.take(put.text, put.state.entries, "codex", put.state) == text


@pytest.mark.parametrize("document", [name for name in TOMLS if name != "empty"])
@pytest.mark.parametrize(
    "added",
    [
        '\n[projects."/x"]\ntrust_level = "trusted"\n',
        '[mcp_servers.bethink.tools.search]\napproval_mode = "approve"\n',
    ],
)
def test_what_codex_adds_behind_our_table_is_understood(document: str, added: str) -> None:
    put = entries.put(TOMLS[document], CODEX, "codex", State())
    changed = put.text + added
    shorter = entries.take(changed, put.state.entries, "codex", put.state)
    assert entries.prove_take(changed, shorter, put.state.entries, "codex", put.state)
    assert "bethink" not in json.dumps(toml.parse(shorter).get("mcp_servers", {}))
    assert ("trust_level" in added) == ('projects."/x"' in shorter)
    assert shorter.startswith(TOMLS[document].rstrip("\n"))


def test_a_newer_command_goes_into_the_same_table_and_keeps_what_the_user_set() -> None:
    put = entries.put(TOMLS["a table"], CODEX, "codex", State())
    tuned = put.text + "tool_timeout_sec = 90 # slow\n\n[tui]\nx = 1\n"
    newer = host.module("codex").targets(PLACE._replace(words=("/new/bethink",)))[0].entries
    upgraded = entries.put(tuned, newer, "codex", put.state).text
    assert upgraded == tuned.replace("/opt/my tools/bethink", "/new/bethink")


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { other = { command = "x" } }\n',
        "a = 1\na = 2\n",
        "[",
        "a = \n",
        "mcp_servers = 3\n",
    ],
)
def test_toml_that_cannot_be_extended_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        entries.put(text, CODEX, "codex", State())


TOML_VALUE = st.recursive(
    st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inside: st.lists(inside, max_size=3),
    max_leaves=5,
)
TOML_KEY = st.text("abz_-é .\"[#]'", min_size=1, max_size=5)


@given(
    st.dictionaries(TOML_KEY, TOML_VALUE, max_size=3),
    st.lists(
        st.tuples(
            st.lists(TOML_KEY, min_size=1, max_size=2),
            st.dictionaries(TOML_KEY, TOML_VALUE, max_size=2),
        ),
        max_size=3,
    ),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_any_toml_document_is_given_back_as_it_was(top, tables, end, cut) -> None:
    text = "".join(
        f"{json.dumps(key, ensure_ascii=False)} = {toml._value(value)}{end}"
        for key, value in top.items()
    )
    text += "".join(
        toml.table(("t", str(number), *path), values, end)
        for number, (path, values) in enumerate(tables)
    )
    text = text.rstrip("\r\n") if cut else text
    try:
        before = tomllib.loads(text.replace("\r\n", "\n"))
    except ValueError:
        return
    put = entries.put(text, CODEX, "codex", State())
    assert entries.take(put.text, put.state.entries, "codex", put.state) == text
    after = tomllib.loads(put.text.replace("\r\n", "\n"))
    del after["mcp_servers"]
    assert after == before
