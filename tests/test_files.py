"""Which files a walk finds, and what is read of them. The rules of .gitignore were checked against git itself."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from case_tables import cases
from trees import plant as tree

from bethink.errors import NotFound
from bethink.ingest.files import Found, read_text, walk
from bethink.ingest.sync import Skipped


def uris(start: Path, base: Path, *suffixes: str) -> list[str]:
    found = list(walk(start, base, suffixes or None))
    assert all(isinstance(one, Found) for one in found), found
    return [one.uri for one in found]


def text_of(path: Path, **options: int) -> str | Skipped:
    read = read_text(Found(path, path.name), **options)
    return read if isinstance(read, Skipped) else read[0]


def test_files_come_in_the_same_order_each_time_with_the_path_from_the_root(tmp_path):
    tree(tmp_path, {"b.md": "", "a/z.md": "", "a/b/c.md": "", "a.md": "", "c/é x.md": ""})
    assert uris(tmp_path, tmp_path) == ["a.md", "b.md", "a/z.md", "a/b/c.md", "c/é x.md"]
    assert uris(tmp_path / "a", tmp_path) == ["a/z.md", "a/b/c.md"]


def test_suffixes_choose_files_in_any_case(tmp_path):
    tree(tmp_path, {"a.md": "", "B.MD": "", "c.markdown": "", "d.txt": "", "md": ""})
    assert uris(tmp_path, tmp_path, ".md", ".markdown") == ["B.MD", "a.md", "c.markdown"]


def test_a_file_that_is_named_is_found_whatever_it_is(tmp_path):
    tree(tmp_path, {".gitignore": "*\n", "notes.txt": "", ".hidden.md": ""})
    assert uris(tmp_path / "notes.txt", tmp_path, ".md") == ["notes.txt"]
    assert uris(tmp_path / ".hidden.md", tmp_path, ".md") == [".hidden.md"]


def test_what_lies_outside_the_root_has_its_absolute_path(tmp_path):
    files = dict.fromkeys(("project/a.md", "notes/b.md", "notes/c.md"), "")
    tree(tmp_path, files | {"notes/.gitignore": "c.md\n"})
    place = (tmp_path / "notes" / "b.md").as_posix()
    for start in ("notes", "notes/b.md"):
        assert uris(tmp_path / start, tmp_path / "project") == [place]


@pytest.mark.parametrize("name", ["missing", "a.md/below", "a\0b", "x" * 300])
def test_a_start_that_does_not_exist_is_an_error_before_anything_is_read(tmp_path, name):
    tree(tmp_path, {"a.md": ""})
    with pytest.raises(NotFound) as caught:
        walk(tmp_path / name, tmp_path)
    assert name in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("folder", cases("files-folders-of-others-and"))
def test_folders_of_others_and_hidden_ones_are_left_out(tmp_path, folder):
    tree(tmp_path, {f"{folder}/a.md": "", "b.md": ""})
    assert uris(tmp_path, tmp_path) == ["b.md"]


@pytest.mark.parametrize("marker", ["pyvenv.cfg", "CACHEDIR.TAG"])
def test_folders_that_a_tool_marked_as_its_own_are_left_out_unless_asked_for(tmp_path, marker):
    tree(tmp_path, {f"env/{marker}": "", "env/a.md": "", "b.md": ""})
    assert uris(tmp_path, tmp_path) == ["b.md"]
    assert uris(tmp_path / "env", tmp_path, ".md") == ["env/a.md"]


def test_another_checkout_of_the_repository_is_left_out(tmp_path):
    tree(tmp_path / "fix", {".git": "gitdir: /r/.git/worktrees/fix\n", "a.md": ""})
    tree(tmp_path / "module", {".git": "gitdir: ../.git/modules/m\n", "b.md": ""})
    assert uris(tmp_path, tmp_path) == ["module/b.md"]


def test_hidden_files_and_folders_are_found_as_the_start(tmp_path):
    tree(tmp_path, {".claude/knowledge/a.md": "", ".claude/.cache/b.md": "", ".c.md": ""})
    assert uris(tmp_path, tmp_path) == []
    assert uris(tmp_path / ".claude" / "knowledge", tmp_path) == [".claude/knowledge/a.md"]
    assert uris(tmp_path / ".claude", tmp_path) == [".claude/knowledge/a.md"]


FILES = cases("files-files")
IGNORED = dict(cases("files-ignored"))


@pytest.mark.parametrize("rules", IGNORED)
def test_what_git_ignores_is_left_out(tmp_path, rules):
    tree(tmp_path, dict.fromkeys(FILES, "") | {".gitignore": rules})
    assert sorted(uris(tmp_path, tmp_path)) == sorted(set(FILES) - set(IGNORED[rules]))


def test_a_deeper_file_of_rules_overrules_a_higher_one_also_for_a_start_below_both(tmp_path):
    tree(tmp_path, {".gitignore": "*.log\n/docs/b.md\n", "docs/.gitignore": "!keep.log\n/c.md\n"})
    ignored = ["docs/a.log", "docs/b.md", "docs/c.md", "keep.log"]
    tree(tmp_path, dict.fromkeys([*ignored, "docs/in/c.md", "docs/in/keep.log"], ""))
    assert uris(tmp_path, tmp_path) == ["docs/in/c.md", "docs/in/keep.log"]
    assert uris(tmp_path / "docs" / "in", tmp_path) == ["docs/in/c.md", "docs/in/keep.log"]


def test_a_folder_that_is_asked_for_is_read_even_if_git_ignores_it(tmp_path):
    folder = tmp_path / ".claude" / "knowledge"
    tree(folder, {"a.md": "", "b.md": "", ".gitignore": "b.md\n"})
    tree(tmp_path, {".gitignore": ".claude/\n"})
    assert uris(folder, tmp_path) == [".claude/knowledge/a.md"]
    (tmp_path / ".claude" / ".gitignore").write_text("*\n")  # as tools do in folders of their own
    assert uris(folder, tmp_path) == [".claude/knowledge/a.md"]


def test_the_exclusions_of_the_clone_count_also_in_a_linked_worktree(tmp_path):
    git = {"main/.git/HEAD": "", "main/.git/info/exclude": "private.md\n"}
    git["main/.git/worktrees/w/commondir"] = "../..\n"
    git["main/.git/worktrees/w/gitdir"] = f"{tmp_path}/w/.git\n"
    git["w/.git"] = f"gitdir: {tmp_path}/main/.git/worktrees/w\n"
    notes = ("main/private.md", "main/a.md", "w/private.md", "w/in/private.md", "w/in/a.md")
    tree(tmp_path, git | dict.fromkeys(notes, ""))
    main, linked = tmp_path / "main", tmp_path / "w"
    assert uris(main, main) == ["a.md"]
    assert uris(linked, linked) == uris(linked / "in", linked) == ["in/a.md"]


@pytest.mark.timeout(10)
def test_rules_made_to_take_forever_are_passed_over(tmp_path):
    name = "a" * 200 + ".md"
    rules = "*a*a*a*a*a*a*a*a*a*b\n" + "**/a/" * 30 + "b\n*.log\n"
    tree(tmp_path, {".gitignore": rules, name: "", "x.log": ""})
    assert uris(tmp_path, tmp_path) == [name]


@pytest.mark.timeout(10)
def test_a_pipe_or_folder_in_place_of_the_rules_stops_nothing(tmp_path):
    tree(tmp_path, {"a/x.md": "", "b/.gitignore/y.md": "", "b/x.md": ""})
    os.mkfifo(tmp_path / "a" / ".gitignore")
    assert uris(tmp_path, tmp_path) == ["a/x.md", "b/x.md"]


def test_links_are_not_followed_and_those_out_of_the_project_are_told(tmp_path):
    base = tree(tmp_path / "project", {"real.md": "", "docs/c.md": ""})
    tree(tmp_path, {"secret/key.md": ""})
    for name, target in {
        "alias.md": "real.md",
        "again": "docs",
        "docs/up": base,
        "key.md": tmp_path / "secret" / "key.md",
        "other": tmp_path / "secret",
        "gone.md": "nowhere",
        "gone.so": tmp_path / "nowhere",
        "loop": "loop",
    }.items():
        (base / name).symlink_to(target)
    found = list(walk(base, base, (".md",)))
    assert [one.uri for one in found if isinstance(one, Found)] == ["real.md", "docs/c.md"]
    skipped = {one.uri: one.reason for one in found if isinstance(one, Skipped)}
    assert set(skipped) == {"gone.md", "key.md", "other"}
    why = "symbolic link out of the project or to nothing, which is not followed"
    assert set(skipped.values()) == {why}


def test_a_root_reached_through_a_link_gives_the_same_paths(tmp_path):
    tree(tmp_path, {"real/docs/a.md": ""})
    (tmp_path / "link").symlink_to("real")
    for start in ("real/docs", "link/docs"):
        for base in ("real", "link"):
            assert uris(tmp_path / start, tmp_path / base) == ["docs/a.md"]


@pytest.mark.parametrize(("data", "text"), cases("files-text-is-decoded", {}))
def test_text_is_decoded(tmp_path: Path, data: bytes, text: str) -> None:
    (tmp_path / "a.md").write_bytes(data)
    assert text_of(tmp_path / "a.md") == text


@pytest.mark.parametrize(("data", "reason"), cases("files-what-is-no-text"))
def test_what_is_no_text_is_skipped_with_the_reason(tmp_path, data, reason):
    (tmp_path / "a.md").write_bytes(data)
    skipped = text_of(tmp_path / "a.md")
    assert isinstance(skipped, Skipped) and skipped.reason.startswith(reason)


def test_a_large_file_is_skipped_by_its_size(tmp_path):
    with (tmp_path / "a.md").open("wb") as file:
        file.truncate(50_000_000)
    assert text_of(tmp_path / "a.md") == Skipped("a.md", "50.0 MB, larger than the limit of 10 MB")
    (tmp_path / "b.md").write_bytes(b"x" * 100)
    assert text_of(tmp_path / "b.md", longest=100) == "x" * 100
    assert isinstance(text_of(tmp_path / "b.md", longest=99), Skipped)


@pytest.mark.timeout(10)
def test_what_is_no_file_is_skipped_and_never_waited_for(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.md")
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("socket.md")
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "null.md").symlink_to("/dev/null")
    reasons = {
        name: text_of(tmp_path / name)
        for name in ("pipe.md", "socket.md", "folder.md", "null.md", "gone.md", "a\0b")
    }
    listener.close()
    assert [isinstance(reason, Skipped) for reason in reasons.values()] == [True] * 6
    assert reasons["pipe.md"] == Skipped("pipe.md", "not a regular file")
    assert reasons["gone.md"] == Skipped("gone.md", "cannot be read: No such file or directory")
