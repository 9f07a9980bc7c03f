"""Entries into a host's file and out again: what others wrote stays, whatever the file looks like."""

import json
import re
from pathlib import Path

import pytest
from agent_files import DOCUMENTS, TOMLS
from hypothesis import given
from hypothesis import strategies as st

from bethink.agents import edit
from bethink.agents.edit import put_entries, take_entries
from bethink.agents.install import InstallPlace, list_entries
from bethink.errors import InvalidInput

PLACE = InstallPlace(Path("/home/ü ser"), {}, ("/opt/my tools/bethink",), allow=True)


def wanted(name, part, where=PLACE):
    kinds = {"hooks": ("hook",), "mcp": ("server",), "rules": ("item", "rule")}
    entries = list_entries(name, where)
    return tuple(entry for entry in entries if entry.kind in kinds[part])


HOOKS, SERVER = wanted("claude", "hooks"), wanted("cursor", "mcp")
JSON_ENTRIES = {
    "claude": (*HOOKS, *wanted("claude", "mcp"), *wanted("claude", "rules")),
    "copilot": (*wanted("copilot", "hooks"), *wanted("copilot", "mcp")),
    "cursor": (*wanted("cursor", "hooks"), *SERVER),
    "cursor's rules": wanted("cursor", "rules"),
    "opencode": (*wanted("opencode", "mcp"), *wanted("opencode", "rules")),
}
# Where there was no value, or nothing but blanks in brackets, an empty one looks otherwise afterwards.
LOOSE = re.compile(r"\A\s*\Z|[\[{]\s+[\]}]")


@pytest.mark.parametrize("name", JSON_ENTRIES)
@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_was_put_into_json_can_be_taken_out_to_the_byte(name, document):
    entries, text = JSON_ENTRIES[name], DOCUMENTS[document]
    put = put_entries(text, entries, name)
    assert put.kept == ()
    assert put_entries(put.text, entries, name) == put, "a second time changes nothing"
    before, after = edit.parse(text), edit.parse(put.text)
    assert [
        entry
        for entry in entries
        for there in [edit.value_at(after, entry.path)]
        if not (entry.value in there if entry.kind in ("hook", "item") else there == entry.value)
    ] == []
    assert list(before) == [key for key in after if key in before], "the order stays"
    taken = take_entries(put.text, entries, name, text)
    assert edit.parse(taken) == before
    assert taken == text or LOOSE.search(text)
    if not any(mark in text for mark in ("//", "/*", ",}", ",\n}")):
        assert json.loads(put.text)
    if "\r\n" in text:
        assert put.text.count("\n") == put.text.count("\r\n")


BETHINK = (
    '{s}"mcpServers": {{{t}"bethink": {{{u}"command": "/opt/my tools/bethink",{v}"args": [{w}"mcp"'
)


LOOKS_LIKE_REST = [
    ("two blanks", "  ", "\n      ]\n    }\n  }\n}\n"),
    ("tabs, no line end at the end", "\t", "\n\t\t\t]\n\t\t}\n\t}\n}"),
    ("one line", None, "]}}}"),
    ("trailing commas", "  ", "\n      ]\n    }\n  },\n}\n"),
]

MEMBER_TAKEN_OUT = [
    ('{"a": 1, /* c */ "b": 2}', 1, '{"a": 1 /* c */}'),
    ('{"a": 1, "b": 2}', 0, '{"b": 2}'),
    ('{ "a": 1, "b": 2, "c": 3 }', 1, '{ "a": 1, "c": 3 }'),
    ('{\n  "a": 1,\n  "b": 2, // about b\n  "c": 3\n}', 1, '{\n  "a": 1, // about b\n  "c": 3\n}'),
    ('{"a": 1, "b": 2,}', 1, '{"a": 1,}'),
    ('{\n  // about a\n  "a": 1\n}', 0, "{\n  // about a\n}"),
    ("[1, 2, 3]", 2, "[1, 2]"),
    ("[1]", 0, "[]"),
]


@pytest.mark.parametrize(("document", "unit", "end"), LOOKS_LIKE_REST)
def test_what_is_put_in_looks_like_the_rest(document, unit, end):
    first, second, third, fourth = (f"\n{unit * depth}" if unit else "" for depth in (1, 2, 3, 4))
    made = BETHINK.format(s=first, t=second, u=third, v=third or " ", w=fourth)
    assert put_entries(DOCUMENTS[document], SERVER, "cursor").text.endswith(made + end)


@pytest.mark.parametrize(("text", "index", "expected"), MEMBER_TAKEN_OUT)
def test_one_member_is_taken_out_alone(text, index, expected):
    value = edit.parse(text)
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


UPGRADES = [
    ("claude", "hooks", DOCUMENTS["other tools' hooks"], '"timeout": 10', '"timeout": 33'),
    ("codex", "mcp", TOMLS["a table"], '["mcp"]\n', '["mcp"]\ntool_timeout_sec = 90 # slow\n'),
]


@pytest.mark.parametrize("made", EDITS)
def test_what_the_user_changed_meanwhile_stays(made):
    model = ('{\n  "hooks"', '{\n  "model": "opus",\n  "hooks"')
    text, entries = DOCUMENTS["other tools' hooks"].replace(*model), JSON_ENTRIES["claude"]
    put = put_entries(text, entries, "claude").text
    changed = put.replace(*EDITS[made])
    assert changed != put
    assert take_entries(changed, entries, "claude", text) == text.replace(*EDITS[made])


@pytest.mark.parametrize(
    ("name", "part", "text", "mine", "tuned"), UPGRADES, ids=[row[0] for row in UPGRADES]
)
def test_an_upgrade_changes_our_command_alone(name, part, text, mine, tuned):
    toml = name == "codex"
    put = put_entries(text, wanted(name, part), name, toml).text.replace(mine, tuned)
    newer = wanted(name, part, PLACE._replace(words=("/new/bethink",)))
    upgraded = put_entries(put, newer, name, toml).text
    assert tuned in upgraded
    assert upgraded == put.replace("/opt/my tools/bethink", "/new/bethink")
    assert take_entries(upgraded, newer, name, text, toml) == text


NO_JSON = (
    '\ufeff{} { {"a":} {\'a\':1} {"a":1"b":2} {"a":01} {"a":"\t"} {}{} {,} /* {"a":"\\x"} {"a":NaN}'
)
TOO_DEEP = ("{" * 5000, '{"a":' * 5000 + "1" + "}" * 5000)
OTHERWISE = ("[]", "null", '"hooks"', '{"hooks": []}', '{"hooks": {"Stop": {}}}')


@pytest.mark.parametrize("text", [*NO_JSON.split(" "), *TOO_DEEP, *OTHERWISE])
def test_what_cannot_be_understood_is_refused_with_a_sentence(text):
    with pytest.raises(InvalidInput) as caught:
        put_entries(text, HOOKS, "claude")
    assert caught.value.message.endswith(".") and caught.value.hint


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=8,
)
HANDLER = st.fixed_dictionaries({"type": st.just("command"), "command": st.text(max_size=10)})
HANDLERS = {"hooks": st.lists(HANDLER, max_size=2)}
GROUP = st.fixed_dictionaries(HANDLERS, optional={"matcher": st.text(max_size=3)})
EVENTS = st.sampled_from(["Stop", "stop", "SessionStart", "sessionStart", "Other"])
THEIRS = {
    "hooks": st.dictionaries(EVENTS, st.lists(GROUP | HANDLER, max_size=3), max_size=3),
    "mcpServers": st.dictionaries(st.text(max_size=5), JSON, max_size=2),
}
SETTINGS = st.fixed_dictionaries({"model": JSON}, optional=THEIRS)
FILLERS = st.sampled_from(["", " ", "\n", "// note\n", "/* a */", " /* b\n */ ", "\n\n  // c\n  "])


@given(
    value=SETTINGS,
    indent=st.sampled_from([None, 0, 2, "\t"]),
    end=st.sampled_from(["\n", "\r\n"]),
    filler=FILLERS,
    name=st.sampled_from(sorted(JSON_ENTRIES)),
)
def test_any_json_document_says_afterwards_what_it_said(value, indent, end, filler, name):
    text = json.dumps(value, indent=indent).replace("{", "{" + filler, 1).replace("\n", end)
    put = put_entries(text, JSON_ENTRIES[name], name).text
    taken = take_entries(put, JSON_ENTRIES[name], name, text)
    assert edit.parse(taken) == edit.parse(text)
    assert put_entries(put, JSON_ENTRIES[name], name).text == put
    assert filler.strip().replace("\n", end) in taken


CODEX = wanted("codex", "mcp")
CODEX_ALLOWED = (*CODEX, *wanted("codex", "rules"))


@pytest.mark.parametrize("document", TOMLS)
def test_rules_of_codex_can_be_taken_out_to_the_byte(document):
    text = TOMLS[document]
    put = put_entries(text, CODEX_ALLOWED, "codex", toml=True)
    tools = edit.parse(put.text, toml=True)["mcp_servers"]["bethink"]["tools"]
    assert tools["store_memories"] == {"approval_mode": "approve"}
    assert put_entries(put.text, CODEX_ALLOWED, "codex", toml=True) == put
    assert take_entries(put.text, CODEX_ALLOWED, "codex", text, toml=True).strip() == text.strip()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        pytest.param('{"permission": "ask"}', "ask", id="one-rule-for-all"),
        pytest.param(
            '{"permission": {"bethink_store_memories": "deny"}}', "deny", id="the-users-own-rule"
        ),
    ],
)
def test_permissions_of_the_user_win(text, kept):
    put = put_entries(text, wanted("opencode", "rules"), "opencode").text
    found = json.loads(put)["permission"]
    assert (found if isinstance(found, str) else found["bethink_store_memories"]) == kept
    assert take_entries(put, wanted("opencode", "rules"), "opencode", text) == text


@pytest.mark.parametrize("document", TOMLS)
def test_what_was_put_into_toml_can_be_taken_out_to_the_byte(document):
    text = TOMLS[document]
    put = put_entries(text, CODEX, "codex", toml=True)
    found = edit.parse(put.text, toml=True)["mcp_servers"]["bethink"]
    assert found.pop("env_vars")[0] == "BETHINK_HOME"
    assert found == {"command": "/opt/my tools/bethink", "args": ["mcp"]}
    assert put.text.startswith(text)
    assert put_entries(put.text, CODEX, "codex", toml=True) == put
    assert take_entries(put.text, CODEX, "codex", text, toml=True).strip() == text.strip()
    cases = ['\n[projects."/x"]\ntrust = 1\n', "[mcp_servers.bethink.tools.a]\nmode = 1\n"]
    assert [
        added
        for added in cases
        for shorter in [take_entries(put.text + added, CODEX, "codex", text, toml=True)]
        if "bethink" in edit.parse(shorter, toml=True).get("mcp_servers", {})
        or ("trust" in added) != ('projects."/x"' in shorter)
        or (not shorter.startswith(text.rstrip("\n")))
    ] == []


def test_a_hook_of_somebody_else_in_our_group_is_kept():
    document = json.loads(put_entries("{}\n", HOOKS, "claude").text)
    mine = {"type": "command", "command": "mine"}
    document["hooks"]["Stop"][0]["hooks"].append(mine)
    left = take_entries(json.dumps(document), HOOKS, "claude", "{}\n")
    assert json.loads(left) == {"hooks": {"Stop": [{"hooks": [mine]}]}}


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"command": "theirs"}, id="a command"),
        pytest.param({"command": "uvx", "args": ["other", "mcp"]}, id="a command with arguments"),
        pytest.param("x", id="a text"),
        pytest.param(None, id="null"),
    ],
)
def test_a_server_of_our_name_by_somebody_else_is_kept(value):
    text = json.dumps({"mcpServers": {"bethink": value}})
    put = put_entries(text, SERVER, "cursor")
    assert put.text == text and len(put.kept) == 1
    assert take_entries(text, SERVER, "cursor", text) == text
    forced = put_entries(text, SERVER, "cursor", force=True).text
    assert edit.parse(forced)["mcpServers"]["bethink"] == SERVER[0].value
    if value is not None:
        assert edit.parse(take_entries(forced, SERVER, "cursor", text)) == edit.parse(text)


@pytest.mark.parametrize("text", ["a = 1\na = 2\n", "[", "a = \n", "mcp_servers = 3\n"])
def test_a_broken_table_is_refused(text):
    with pytest.raises(InvalidInput):
        put_entries(text, CODEX, "codex", toml=True)


def test_an_inline_table_of_servers_is_extended():
    inline = 'mcp_servers = { other = { command = "x" } }\n'
    put = put_entries(inline, CODEX, "codex", toml=True).text
    assert put.startswith(inline[:-4]) and "bethink" in put
    assert take_entries(put, CODEX, "codex", inline, toml=True) == inline
