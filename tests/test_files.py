"""Which files a walk finds, and what is read of them. The rules of .gitignore were checked against git itself."""

import os
import socket
from pathlib import Path

import pytest
from case_tables import cases, each
from trees import plant as tree

from bethink.errors import NotFound
from bethink.ingest.files import Found, read_text, walk
from bethink.ingest.sync import Skipped


def uris(start: Path, base: Path, *suffixes: str) -> list[str]:
    found = list(walk(start, base, suffixes or ("",)))
    assert all(isinstance(one, Found) for one in found), found
    return [one.uri for one in found]


def text_of(path: Path, **options: int) -> str | Skipped:
    read = read_text(Found(path, path.name), **options)
    return read if isinstance(read, Skipped) else read[0]


@each("rule,files,start,suffixes,expected", "files-walked")
def test_a_walk_finds_what_people_wrote(tmp_path, rule, files, start, suffixes, expected):
    tree(tmp_path, files)
    assert uris(tmp_path / start, tmp_path, *suffixes) == expected, rule


def test_a_start_that_does_not_exist_is_an_error_and_exclusions_of_the_clone_count(tmp_path):
    for name in ["missing", "a.md/below", "a\0b", "x" * 300]:
        tree(tmp_path, {"a.md": ""})
        with pytest.raises(NotFound) as caught:
            walk(tmp_path / name, tmp_path)
        assert name in caught.value.message
        assert caught.value.hint
    git = {"main/.git/HEAD": "", "main/.git/info/exclude": "private.md\n"}
    git["main/.git/objects/info/packs"] = ""
    git["main/.git/worktrees/w/commondir"] = "../..\n"
    git["main/.git/worktrees/w/gitdir"] = f"{tmp_path}/w/.git\n"
    git["w/.git"] = f"gitdir: {tmp_path}/main/.git/worktrees/w\n"
    notes = ("main/private.md", "main/a.md", "w/private.md", "w/in/private.md", "w/in/a.md")
    tree(tmp_path, git | dict.fromkeys(notes, ""))
    main, linked = tmp_path / "main", tmp_path / "w"
    assert uris(main, main) == ["a.md"]
    assert uris(linked, linked) == uris(linked / "in", linked) == ["in/a.md"]


@pytest.mark.parametrize(("rules", "ignored"), cases("files-ignored"))
def test_what_git_ignores_is_left_out(tmp_path, rules, ignored):
    files = cases("files-files")
    tree(tmp_path, dict.fromkeys(files, "") | {".gitignore": rules})
    assert sorted(uris(tmp_path, tmp_path)) == sorted(set(files) - set(ignored))


@pytest.mark.timeout(10)
def test_no_pipe_socket_or_folder_is_read_or_waited_for(tmp_path, monkeypatch):
    tree(tmp_path, {"a/x.md": "", "b/.gitignore/y.md": "", "b/x.md": ""})
    os.mkfifo(tmp_path / "a" / ".gitignore")
    assert uris(tmp_path, tmp_path) == ["a/x.md", "b/x.md"]
    os.mkfifo(tmp_path / "pipe.md")
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("socket.md")
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "null.md").symlink_to("/dev/null")
    names = ("pipe.md", "socket.md", "folder.md", "null.md", "gone.md", "a\0b")
    reasons = {name: text_of(tmp_path / name) for name in names}
    listener.close()
    assert all(isinstance(reason, Skipped) for reason in reasons.values())
    assert reasons["pipe.md"] == Skipped("pipe.md", "cannot be read: not a regular file")
    assert reasons["gone.md"] == Skipped("gone.md", "cannot be read: No such file or directory")


def test_links_are_not_followed_but_a_root_reached_through_one_gives_the_same_paths(tmp_path):
    base = tree(tmp_path / "project", {"real.md": "", "docs/c.md": ""})
    tree(tmp_path, {"secret/key.md": ""})
    secret = tmp_path / "secret"
    inside = {"alias.md": "real.md", "again": "docs", "docs/up": base, "loop": "loop"}
    outside = {"key.md": secret / "key.md", "other": secret, "gone.md": "nowhere"}
    for name, target in (inside | outside | {"gone.so": tmp_path / "nowhere"}).items():
        (base / name).symlink_to(target)
    found = list(walk(base, base, (".md",)))
    assert [one.uri for one in found if isinstance(one, Found)] == ["real.md", "docs/c.md"]
    why = "symbolic link out of the project or to nothing, which is not followed"
    assert {one for one in found if isinstance(one, Skipped)} == {Skipped(u, why) for u in outside}
    tree(tmp_path, {"real/docs/a.md": ""})
    (tmp_path / "link").symlink_to("real")
    for start in ("real/docs", "link/docs"):
        for base in ("real", "link"):
            assert uris(tmp_path / start, tmp_path / base) == ["docs/a.md"]


def test_text_is_decoded_and_what_is_none_is_skipped_with_the_reason(tmp_path):
    for data, text in cases("files-text-is-decoded", {}):
        (tmp_path / "a.md").write_bytes(data)
        assert text_of(tmp_path / "a.md") == text
    for data, reason in cases("files-what-is-no-text"):
        (tmp_path / "a.md").write_bytes(data)
        assert text_of(tmp_path / "a.md").reason.startswith(reason)
    with (tmp_path / "a.md").open("wb") as file:
        file.truncate(50_000_000)
    why = "cannot be read: 50.0 MB, larger than the limit of 10 MB"
    assert text_of(tmp_path / "a.md") == Skipped("a.md", why)
    (tmp_path / "b.md").write_bytes(b"x" * 100)
    assert text_of(tmp_path / "b.md", longest=100) == "x" * 100
    assert isinstance(text_of(tmp_path / "b.md", longest=99), Skipped)
