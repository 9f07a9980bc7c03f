"""Entries into a host's file and out again: every other byte stays, and what it says stays, whatever the file looks like."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from agent_files import DOCUMENTS, TOMLS
from hypothesis import example, given
from hypothesis import strategies as st

from bethink.errors import InvalidInput
from bethink.hosts import agent, edit
from bethink.hosts.edit import HostEntry, put_entries, take_entries
from bethink.hosts.place import InstallPlace

PLACE = InstallPlace(Path("/home/ü ser"), {}, ("/opt/my tools/bethink",))


def wanted(name: str, part: str, where: InstallPlace = PLACE) -> tuple[HostEntry, ...]:
    return agent(name).AGENT.list_files(where, [part])[0].entries


HOOKS = {name: wanted(name, "hooks") for name in ("claude", "codex", "copilot", "gemini", "cursor")}
SERVERS = {
    name: wanted(name, "mcp") for name in ("claude", "copilot", "gemini", "cursor", "opencode")
}
JSON_ENTRIES = {f"{name} hooks": (name, found) for name, found in HOOKS.items()} | {
    f"{name} server": (name, found) for name, found in SERVERS.items()
}
JSON_ENTRIES["claude rules"] = (
    "claude",
    agent("claude").AGENT.list_files(PLACE._replace(allow_reads=True), ["mcp"])[1].entries,
)


# Where there was no value, there is an empty one afterwards.
NO_VALUE = ("empty", "one line end", "only a comment", "a comment without a line end")


@pytest.mark.parametrize("case", JSON_ENTRIES)
@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_was_put_into_json_can_be_taken_out_to_the_byte(case: str, document: str) -> None:
    name, found = JSON_ENTRIES[case]
    text = DOCUMENTS[document]
    put = put_entries(text, found, name)
    assert put.kept == ()
    assert put_entries(put.text, found, name, put.keys) == put, "a second time changes nothing"
    taken = take_entries(put.text, put.keys, name, text)
    assert taken == text or (document in NO_VALUE and edit.read_value(taken) == {})
    before, after = edit.read_value(text), edit.read_value(put.text)
    for entry in found:
        if entry.kind == "member":
            assert edit.value_at(after, entry.path) == entry.value
        else:
            assert entry.value in edit.value_at(after, edit._holder_path(entry.key))
    assert list(before) == [key for key in after if key in before], "the order stays"


STRICT = [
    name
    for name, text in DOCUMENTS.items()
    if not any(mark in text for mark in ("//", "/*", ",}")) and name != "trailing commas"
]


@pytest.mark.parametrize("document", STRICT)
def test_strict_json_stays_strict_json(document: str) -> None:
    put = put_entries(DOCUMENTS[document], HOOKS["claude"], "claude").text
    assert json.loads(put.lstrip("\ufeff"))["hooks"]["Stop"]


SERVER = (
    '{s}"mcpServers": {{{t}"bethink": {{{u}"command": "/opt/my tools/bethink",{v}"args": ["mcp"]'
)


@pytest.mark.parametrize(
    ("document", "unit", "end"),
    [
        ("two blanks", "  ", "\n    }\n  }\n}\n"),
        ("tabs, no line end at the end", "\t", "\n\t\t}\n\t}\n}"),
        ("one line", None, "}}}"),
        ("trailing commas", "  ", "\n    }\n  },\n}\n"),
    ],
)
def test_what_is_put_in_looks_like_the_rest(document: str, unit: str | None, end: str) -> None:
    gaps = [f"\n{unit * depth}" if unit else "" for depth in (1, 2, 3)]
    middle = SERVER.format(s=gaps[0], t=gaps[1], u=gaps[2], v=gaps[2] or " ")
    put = put_entries(DOCUMENTS[document], SERVERS["cursor"], "cursor").text
    assert put.endswith(middle + end)


def test_crlf_files_get_no_other_line_ends() -> None:
    text = put_entries(DOCUMENTS["CRLF"], HOOKS["claude"], "claude").text
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
    value = edit.read_value(text)
    del value[list(value)[index] if isinstance(value, dict) else index]
    assert edit.rewrite_json(text, value) == expected


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


@pytest.mark.parametrize("made", EDITS)
def test_what_the_user_changed_meanwhile_stays(made: str) -> None:
    text = DOCUMENTS["other tools' hooks"].replace(
        '{\n  "hooks"', '{\n  "model": "opus",\n  "hooks"'
    )
    found = (*HOOKS["claude"], *SERVERS["claude"])
    put = put_entries(text, found, "claude")
    changed = put.text.replace(*EDITS[made])
    assert changed != put.text
    assert take_entries(changed, put.keys, "claude", text) == text.replace(*EDITS[made])


def test_a_group_that_the_user_shares_with_our_hook_keeps_theirs() -> None:
    put = put_entries("{}\n", HOOKS["claude"], "claude")
    document = json.loads(put.text)
    document["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "mine"})
    changed = json.dumps(document, indent=2)
    assert json.loads(take_entries(changed, put.keys, "claude", "{}\n")) == {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}
    }


def test_an_upgrade_changes_our_command_and_nothing_else() -> None:
    text = DOCUMENTS["other tools' hooks"]
    put = put_entries(text, HOOKS["claude"], "claude")
    tuned = put.text.replace('"timeout": 10', '"timeout": 33')
    newer = wanted("claude", "hooks", PLACE._replace(words=("/new/bethink",)))
    upgraded = put_entries(tuned, newer, "claude", put.keys)
    assert upgraded.text == tuned.replace("/opt/my tools/bethink", "/new/bethink")
    assert take_entries(upgraded.text, upgraded.keys, "claude", text) == text


@pytest.mark.parametrize(
    "value",
    ['{"command": "theirs"}', '{"command": "uvx", "args": ["bethink", "mcp"]}', '"x"', "null"],
)
def test_a_server_of_our_name_that_somebody_else_made_is_kept(value: str) -> None:
    text = '{"mcpServers": {"bethink": %s}}' % value  # noqa: UP031
    put = put_entries(text, SERVERS["claude"], "claude")
    assert (put.text, put.keys, len(put.kept)) == (text, (), 1)
    forced = put_entries(text, SERVERS["claude"], "claude", force=True)
    assert edit.read_value(forced.text)["mcpServers"]["bethink"] == SERVERS["claude"][0].value


NO_JSON = (
    "{",
    '{"a": }',
    "{'a': 1}",
    '{"a": 1 "b": 2}',
    '{"a": 01}',
    '{"a": "\t"}',
    "{} {}",
    "{,}",
)
TOO_DEEP = ("{" * 5000, '{"a":' * 5000 + "1" + "}" * 5000)
OTHERWISE = ("[]", "null", '"hooks"', '{"hooks": []}', '{"hooks": {"Stop": {}}}')


@pytest.mark.parametrize(
    "text", [*NO_JSON, *TOO_DEEP, *OTHERWISE, "/* open", '{"a": "\\x"}', '{"a": NaN}']
)
def test_what_cannot_be_understood_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        put_entries(text, HOOKS["claude"], "claude")
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
        put = put_entries(document, found, name)
        assert take_entries(put.text, put.keys, name, document) == document
        assert put_entries(put.text, found, name, put.keys).text == put.text


# TOML

CODEX = wanted("codex", "mcp")


@pytest.mark.parametrize("document", TOMLS)
def test_what_was_put_into_toml_can_be_taken_out_to_the_byte(document: str) -> None:
    text = TOMLS[document]
    put = put_entries(text, CODEX, "codex")
    found = edit.parse_toml(put.text)["mcp_servers"]["bethink"]
    assert found == {"command": "/opt/my tools/bethink", "args": ["mcp"]}
    assert put.text.startswith(text)
    assert put_entries(put.text, CODEX, "codex", put.keys) == put
    assert take_entries(put.text, put.keys, "codex", text) == text


@pytest.mark.parametrize("document", [name for name in TOMLS if name != "empty"])
@pytest.mark.parametrize(
    "added",
    [
        '\n[projects."/x"]\ntrust_level = "trusted"\n',
        '[mcp_servers.bethink.tools.search]\napproval_mode = "approve"\n',
    ],
)
def test_what_codex_adds_behind_our_table_is_understood(document: str, added: str) -> None:
    put = put_entries(TOMLS[document], CODEX, "codex")
    shorter = take_entries(put.text + added, put.keys, "codex", TOMLS[document])
    assert "bethink" not in json.dumps(edit.parse_toml(shorter).get("mcp_servers", {}))
    assert ("trust_level" in added) == ('projects."/x"' in shorter)
    assert shorter.startswith(TOMLS[document].rstrip("\n"))


def test_a_newer_command_goes_into_the_same_table_and_keeps_what_the_user_set() -> None:
    put = put_entries(TOMLS["a table"], CODEX, "codex")
    tuned = put.text + "tool_timeout_sec = 90 # slow\n\n[tui]\nx = 1\n"
    newer = wanted("codex", "mcp", PLACE._replace(words=("/new/bethink",)))
    upgraded = put_entries(tuned, newer, "codex", put.keys).text
    assert upgraded == tuned.replace("/opt/my tools/bethink", "/new/bethink")


INLINE = 'mcp_servers = { other = { command = "x" } }\n'


@pytest.mark.parametrize("text", [INLINE, "a = 1\na = 2\n", "[", "a = \n", "mcp_servers = 3\n"])
def test_toml_that_cannot_be_extended_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        put_entries(text, CODEX, "codex")
