"""The Anthropic memory tool over a scope: the same answers, to the letter, as the file backend of the vendor's SDK gives."""

import json

import pytest
from anthropic.lib.tools import ToolError
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memories import clock, open_memory, texts  # noqa: F401

from bethink import MemoryTool
from bethink.errors import BethinkError, InvalidInput
from bethink.features import knowledge


@pytest.fixture
def memory(open_memory):  # noqa: F811
    return open_memory()


@pytest.fixture
def tool(memory):
    return MemoryTool(memory)


def create(path, text="one\ntwo\n"):
    return {"command": "create", "path": path, "file_text": text}


def view(path, *range):
    return {"command": "view", "path": path} | ({"view_range": list(range)} if range else {})


def replace(path, old, new):
    return {"command": "str_replace", "path": path, "old_str": old, "new_str": new}


def insert(path, line, text):
    return {"command": "insert", "path": path, "insert_line": line, "insert_text": text}


def delete(path):
    return {"command": "delete", "path": path}


def rename(old, new):
    return {"command": "rename", "old_path": old, "new_path": new}


def answers(tool, commands, error=BethinkError):
    found = []
    for command in commands:
        try:
            found.append(tool.call(command))
        except error as failure:
            found.append(f"ERROR {failure}")
    return found


# The strings


def test_the_strings_are_those_that_models_know(tool):
    commands = [
        view("/memories"),
        create("/memories/a.md", "one\ntwo\nthree\nfour\nfive\nsix\n"),
        create("/memories/a.md"),
        create("/memories/deep/er/b.txt", "x" * 1536),
        create("/memories/.hidden", "h"),
        view("/memories"),
        view("/memories/a.md"),
        view("/memories/a.md", 2, 3),
        view("/memories/a.md", 5, -1),
        replace("/memories/a.md", "four", "4\n4b"),
        replace("/memories/a.md", "seven", "7"),
        replace("/memories/a.md", "o", "0"),
        insert("/memories/a.md", 0, "zero"),
        insert("/memories/a.md", 99, "x"),
        rename("/memories/a.md", "/memories/c.md"),
        rename("/memories/a.md", "/memories/d.md"),
        rename("/memories/c.md", "/memories/deep"),
        delete("/memories/c.md"),
        delete("/memories/c.md"),
        delete("/memories"),
        view("/memories/c.md"),
        view("/etc/passwd"),
        view("/memories/../etc/passwd"),
    ]
    assert answers(tool, commands) == [
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:\n0B\t/memories",
        "File created successfully at: /memories/a.md",
        "ERROR File /memories/a.md already exists",
        "File created successfully at: /memories/deep/er/b.txt",
        "File created successfully at: /memories/.hidden",
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:\n"
        "1.5K\t/memories\n28B\t/memories/a.md\n1.5K\t/memories/deep/\n1.5K\t/memories/deep/er/",
        "Here's the content of /memories/a.md with line numbers:\n"
        "     1\tone\n     2\ttwo\n     3\tthree\n     4\tfour\n     5\tfive\n     6\tsix\n     7\t",
        "Here's the content of /memories/a.md with line numbers:\n     2\ttwo\n     3\tthree",
        "Here's the content of /memories/a.md with line numbers:\n     5\tfive\n     6\tsix\n     7\t",
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        "     2\ttwo\n     3\tthree\n     4\t4\n     5\t4b\n     6\tfive",
        "ERROR No replacement was performed, old_str `seven` did not appear verbatim in /memories/a.md.",
        "ERROR No replacement was performed. Multiple occurrences of old_str `o` in lines: 1, 2. Please ensure it is unique",
        "The file /memories/a.md has been edited.",
        "ERROR Invalid `insert_line` parameter: 99. It should be within the range [0, 8].",
        "Successfully renamed /memories/a.md to /memories/c.md",
        "ERROR The path /memories/a.md does not exist",
        "ERROR The destination /memories/deep already exists",
        "Successfully deleted /memories/c.md",
        "ERROR The path /memories/c.md does not exist",
        "ERROR Cannot delete the /memories directory itself",
        "ERROR The path /memories/c.md does not exist. Please provide a valid path.",
        "ERROR Path must start with /memories, got: /etc/passwd",
        "ERROR Path /memories/../etc/passwd would escape /memories directory",
    ]


names = st.sampled_from(
    [
        "/memories/a",
        "/memories/b.md",
        "/memories/d/a",
        "/memories/d/x.md",
        "/memories/d",
        "/memories",
        "/memories/e/f/g",
    ]
)
words = st.text(st.sampled_from("ab \n\t\réß日"), max_size=12)
steps = st.one_of(
    st.builds(create, names, words),
    st.builds(view, names),
    st.builds(view, names, st.integers(-1, 4), st.integers(-1, 6)),
    st.builds(replace, names, words.filter(bool), words),
    st.builds(insert, names, st.integers(-1, 4), words),
    st.builds(rename, names, names),
)


def comparable(command, answer):
    """Directories have no size of their own here; the rest of a listing is the same."""
    if command["command"] == "view" and answer.startswith("Here're"):
        head, *rows = answer.split("\n")
        return [
            head,
            *(row.split("\t") if not row.endswith("/") else row.split("\t")[1] for row in rows[1:]),
        ]
    return answer


@given(st.lists(steps, max_size=12))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_commands_are_answered_as_by_the_file_backend(memory, tmp_path_factory, commands):
    folder = tmp_path_factory.mktemp("files")
    ours, theirs = MemoryTool(memory), BetaLocalFilesystemMemoryTool(str(folder))
    ours.clear()
    for command in commands:
        (mine,), (other,) = (
            answers(ours, [command]),
            answers(theirs, [command], (ToolError, OSError)),
        )
        for inner in sorted((folder / "memories").glob("**/*"), reverse=True):
            if inner.is_dir() and not list(inner.iterdir()):
                inner.rmdir()  # here a directory is only what paths have in common
        if other.startswith("ERROR [Errno"):
            assert mine.startswith("ERROR"), command
        else:
            assert comparable(command, mine) == comparable(command, other), command


# Paths


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "memories/x",
        "/memoriesx",
        "/memories/..",
        "/memories/../x",
        "/memories/a/../../x",
        "/memories/./../x",
        "/Memories/x",
        "/memories/" + "../" * 50 + "etc/passwd",
        "/memories\\..\\x",
        "file:///memories/x",
        "/memories/a\x00b",
        "/memories/a\nb",
        "/memories/" + "a" * 2000,
        "~/memories/x",
    ],
)
def test_no_path_leads_out(tool, path):
    for command in (
        view(path),
        create(path),
        replace(path, "a", "b"),
        insert(path, 0, "a"),
        delete(path),
        rename(path, "/memories/y"),
    ):
        with pytest.raises(InvalidInput):
            tool.call(command)
    tool.call(create("/memories/x"))
    with pytest.raises(InvalidInput):
        tool.call(rename("/memories/x", path))
    assert tool.call(view("/memories/x")).endswith("     1\tone\n     2\ttwo\n     3\t")


@pytest.mark.parametrize(
    "path",
    ["/memories/a/../b", "/memories//b", "/memories/./b", "/memories/b/", "/memories/c/d/../../b"],
)
def test_ways_to_write_a_path_lead_to_one_file(tool, path):
    assert tool.call(create(path)) == f"File created successfully at: {path}"
    assert tool.call(view("/memories/b")).startswith("Here's the content of /memories/b ")
    with pytest.raises(InvalidInput, match="already exists"):
        tool.call(create("/memories/b"))


def test_a_file_is_no_directory(tool):
    tool.call(create("/memories/a"))
    for command in (create("/memories/a/b"), rename("/memories/a", "/memories/a/b")):
        with pytest.raises(InvalidInput):
            tool.call(command)
    tool.call(create("/memories/d/b"))
    with pytest.raises(InvalidInput, match=r"^The path /memories/d is not a file\.$"):
        tool.call(insert("/memories/d", 0, "x"))


# Texts


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "  \n\t",
        "x",
        "x\n",
        "\n\nx\n\n",
        "a\r\nb\r\n",
        "日本\u3000\n",
        "\tcode\n  more  ",
        "a\n" * 3000,
        "tab\there\x0b",
    ],
)
def test_a_text_comes_back_as_it_was_written(tool, text):
    tool.call(create("/memories/t", text))
    rows = tool.call(view("/memories/t")).split("\n", 1)[1]
    assert "\n".join(row.split("\t", 1)[1] for row in rows.split("\n")) == text
    tool.call(insert("/memories/t", 0, "first"))
    assert tool.call(view("/memories/t", 1, 1)).endswith("     1\tfirst")


def test_secrets_and_private_parts_are_taken_out(tool, memory):
    tool.call(
        create(
            "/memories/t",
            "the key is <private>hunter2</private> and token ghp_abcdefghijklmnopqrstuvwxyz0123456789\n",
        )
    )
    shown = tool.call(view("/memories/t"))
    assert "hunter2" not in shown and "ghp_abc" not in shown
    assert all("hunter2" not in text for text in texts(memory.list()))
    with pytest.raises(InvalidInput):
        tool.call(create("/memories/u", "<private>all of it</private>"))
    with pytest.raises(InvalidInput, match="at most 200,000"):
        tool.call(create("/memories/u", "x" * 200_001))
    with pytest.raises(InvalidInput):
        tool.call(view("/memories/u"))


def test_no_path_holds_a_secret(tool, memory):
    secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    tool.call(create("/memories/t"))
    for command in (
        create(f"/memories/{secret}/u"),
        rename("/memories/t", f"/memories/{secret}.md"),
        rename("/memories/t", "/memories/<private>x</private>"),
    ):
        with pytest.raises(InvalidInput, match="choose another path"):
            tool.call(command)
    assert [one.section for one in memory.export()] == ["/memories/t"]


@pytest.mark.parametrize(
    "command",
    [
        {},
        {"command": "explode"},
        {"command": None},
        {"command": "view"},
        {"command": "view", "path": 3},
        {"command": "view", "path": None},
        {"command": "create", "path": "/memories/x"},
        {"command": "create", "path": "/memories/x", "file_text": ["a"]},
        {"command": "insert", "path": "/memories/there", "insert_line": "1", "insert_text": "x"},
        {"command": "insert", "path": "/memories/there", "insert_line": True, "insert_text": "x"},
        {"command": "insert", "path": "/memories/there", "insert_line": None, "insert_text": "x"},
        {"command": "str_replace", "path": "/memories/there", "old_str": "", "new_str": "x"},
        {"command": "str_replace", "path": "/memories/there", "new_str": "x"},
        {"command": "__init__", "path": "/memories"},
        {"command": "rename", "old_path": "/memories/there"},
    ],
)
def test_a_wrong_command_is_an_error_in_words(tool, command):
    tool.call(create("/memories/there"))
    with pytest.raises(InvalidInput):
        tool.call(command)
    said = answers(tool, [command])[0].removeprefix("ERROR ")
    assert tool.result({"id": "t0", "input": "no command"})["is_error"]
    assert tool.result({"id": "t1", "input": command}) == {
        "type": "tool_result",
        "tool_use_id": "t1",
        "content": said,
        "is_error": True,
    }


def test_a_replacement_without_a_new_text_removes(tool):
    tool.call(create("/memories/a", "one two three"))
    tool.call({"command": "str_replace", "path": "/memories/a", "old_str": "two "})
    assert tool.call(view("/memories/a")).endswith("     1\tone three")


# Memories


def test_a_file_is_a_memory_that_searches_find_and_history_keeps(tool, memory):
    tool.call(create("/memories/deploy.md", "We deploy from main, never from a branch.\n"))
    found = memory.search("how do we deploy").hits[0].memory
    assert (found.section, found.source, found.trust) == ("/memories/deploy.md", "memory-tool", 2)
    tool.call(replace("/memories/deploy.md", "main", "release branches"))
    assert [event.action for event in memory.history(found.id)] == ["add", "update"]
    tool.call(rename("/memories/deploy.md", "/memories/old/deploy.md"))
    assert memory.one(found.id).section == "/memories/old/deploy.md"
    tool.call(delete("/memories/old"))
    assert memory.search("how do we deploy").hits == ()
    memory.restore(found.id)
    assert "release branches" in tool.call(view("/memories/old/deploy.md"))


def test_a_file_that_was_deleted_can_be_made_again(tool):
    for _ in range(2):
        tool.call(create("/memories/a", "the same text"))
        tool.call(delete("/memories/a"))
    tool.call(create("/memories/a", "the same text"))
    tool.call(create("/memories/b", "the same text"))
    assert tool.call(view("/memories")).count("13B") == 2


def test_a_purged_text_is_not_taken_in_again(tool, memory):
    tool.call(create("/memories/a", "a text that somebody wants gone"))
    memory.forget(memory.search("somebody wants gone").hits[0].memory.id, purge=True)
    with pytest.raises(InvalidInput, match="purged"):
        tool.call(create("/memories/a", "a text that somebody wants gone"))


class Late(MemoryTool):
    """A tool of another process, which looked at the files just before this one changed them."""

    def look(self):
        self.seen = [self._list_files()]
        return self

    def _list_files(self):
        return self.seen.pop() if getattr(self, "seen", ()) else super()._list_files()


def test_edits_of_two_processes_both_count(tool, memory, clock):  # noqa: F811
    tool.call(create("/memories/a", "one\ntwo\nthree\n"))
    for number, command in enumerate(
        (
            replace("/memories/a", "two", "TWO"),
            insert("/memories/a", 0, "zero"),
            rename("/memories/a", "/memories/b"),
        )
    ):
        late = Late(memory).look()
        clock.move(seconds=1)
        tool.call(
            replace("/memories/a", "one" if number == 0 else "ONE" * number, "ONE" * (number + 1))
        )
        clock.move(seconds=1)
        late.call(command)
    assert tool.call(view("/memories/b")).split("\n")[1:] == [
        "     1\tzero",
        "     2\tONEONEONE",
        "     3\tTWO",
        "     4\tthree",
        "     5\t",
    ]


def test_a_file_that_two_processes_made_at_once_is_deleted_and_renamed_whole(tool, memory, clock):  # noqa: F811
    late = Late(memory).look()
    tool.call(create("/memories/a", "from one"))
    clock.move(seconds=1)
    late.call(create("/memories/a", "from the other"))
    tool.call(rename("/memories/a", "/memories/b"))
    assert "from the other" in tool.call(view("/memories/b"))
    tool.call(delete("/memories/b"))
    for path in ("/memories/a", "/memories/b"):
        with pytest.raises(InvalidInput, match="does not exist"):
            tool.call(view(path))


def test_no_document_takes_the_place_of_the_files(tool, memory):
    tool.call(create("/memories/a"))
    for path in ("memory-tool", "./memory-tool/"):
        with pytest.raises(InvalidInput, match="no path for a document"):
            knowledge.import_texts(memory, {path: "# A document"})


def test_scopes_do_not_see_each_other(memory, open_memory, tmp_path):  # noqa: F811
    mine, personal = MemoryTool(memory), MemoryTool(memory, personal=True)
    (tmp_path / "elsewhere").mkdir()
    other = MemoryTool(open_memory(directory=tmp_path / "elsewhere"))
    mine.call(create("/memories/a", "of the project"))
    personal.call(create("/memories/a", "of the person"))
    assert "of the project" in mine.call(view("/memories/a"))
    assert "of the person" in personal.call(view("/memories/a"))
    with pytest.raises(InvalidInput):
        other.call(view("/memories/a"))
    personal.call(delete("/memories/a"))
    assert "of the project" in mine.call(view("/memories/a"))


def test_what_replaces_a_file_in_searches_leaves_it_to_its_keeper(tool, memory):
    tool.call(create("/memories/a", "We use Redis for sessions"))
    old = memory.search("sessions").hits[0].memory
    memory.add("We use Valkey for sessions", supersedes=[old.id])
    assert "Redis" in tool.call(view("/memories/a"))
    tool.call(insert("/memories/a", 1, "more"))
    assert "more" in tool.call(view("/memories/a"))


# The SDK


def test_the_sdk_runs_it(tool):
    runnable = tool.runnable()
    assert runnable.to_dict() == tool.to_dict() == {"type": "memory_20250818", "name": "memory"}
    assert runnable.name == "memory"
    assert runnable.call(create("/memories/a")) == "File created successfully at: /memories/a"
    assert (
        runnable.call(view("/memories/a", 1, 1))
        == "Here's the content of /memories/a with line numbers:\n     1\tone"
    )
    with pytest.raises(ToolError, match="already exists"):
        runnable.call(create("/memories/a"))
    assert runnable.clear_all_memory() == "All memory cleared"
    assert "a" not in tool.call(view("/memories")).split("\n")[-1].removeprefix("0B\t/memories")


def test_a_block_of_the_sdk_is_answered(tool):
    from anthropic.types.beta import BetaToolUseBlock

    block = BetaToolUseBlock(
        id="toolu_1", name="memory", type="tool_use", input=create("/memories/a")
    )
    assert tool.result(block) == {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": "File created successfully at: /memories/a",
    }
    assert json.dumps(tool.result(block))
    assert tool.result(block)["is_error"] is True
