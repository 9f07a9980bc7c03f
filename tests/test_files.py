"""Which files a walk finds, and what is read of them. The rules of .gitignore were checked against git itself."""

import os
import socket
from pathlib import Path

import pytest
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


@pytest.mark.parametrize(
    ("rule", "files", "start", "suffixes", "expected"),
    [
        pytest.param(
            "the same order, the path from the root",
            {"b.md": "", "a/z.md": "", "a/b/c.md": "", "a.md": "", "c/é x.md": ""},
            ".",
            [],
            ["a.md", "b.md", "a/z.md", "a/b/c.md", "c/é x.md"],
            id="same-order-path-root",
        ),
        pytest.param(
            "a folder below the root",
            {"b.md": "", "a/z.md": "", "a/b/c.md": ""},
            "a",
            [],
            ["a/z.md", "a/b/c.md"],
            id="folder-below-root",
        ),
        pytest.param(
            "suffixes in any case",
            {"a.md": "", "B.MD": "", "c.markdown": "", "d.txt": "", "md": ""},
            ".",
            [".md", ".markdown"],
            ["B.MD", "a.md", "c.markdown"],
            id="suffixes-any-case",
        ),
        pytest.param(
            "a file that is named, though ignored",
            {".gitignore": "*\n", "notes.txt": ""},
            "notes.txt",
            [".md"],
            ["notes.txt"],
            id="file-named-though-ignored",
        ),
        pytest.param(
            "a file that is named, though hidden",
            {".gitignore": "*\n", ".hidden.md": ""},
            ".hidden.md",
            [".md"],
            [".hidden.md"],
            id="file-named-though-hidden",
        ),
        pytest.param(
            "not node_modules/x",
            {"node_modules/x/a.md": "", "b.md": ""},
            ".",
            [],
            ["b.md"],
            id="not-node_modules/x",
        ),
        pytest.param("not .git", {".git/a.md": "", "b.md": ""}, ".", [], ["b.md"], id="not-git"),
        pytest.param(
            "not a/__pycache__",
            {"a/__pycache__/a.md": "", "b.md": ""},
            ".",
            [],
            ["b.md"],
            id="not-pycache",
        ),
        pytest.param(
            "not vendor", {"vendor/a.md": "", "b.md": ""}, ".", [], ["b.md"], id="not-vendor"
        ),
        pytest.param(
            "not lib/site-packages/x",
            {"lib/site-packages/x/a.md": "", "b.md": ""},
            ".",
            [],
            ["b.md"],
            id="not-lib/site-packages/x",
        ),
        pytest.param(
            "not x-1.0.dist-info",
            {"x-1.0.dist-info/a.md": "", "b.md": ""},
            ".",
            [],
            ["b.md"],
            id="not-x-1.0.dist-info",
        ),
        pytest.param(
            "not .bethink", {".bethink/a.md": "", "b.md": ""}, ".", [], ["b.md"], id="not-bethink"
        ),
        pytest.param(
            "not .tox/py", {".tox/py/a.md": "", "b.md": ""}, ".", [], ["b.md"], id="not-tox/py"
        ),
        pytest.param(
            "not .obsidian",
            {".obsidian/a.md": "", "b.md": ""},
            ".",
            [],
            ["b.md"],
            id="not-obsidian",
        ),
        pytest.param(
            "not a folder marked by pyvenv.cfg",
            {"env/pyvenv.cfg": "", "env/a.md": "", "b.md": ""},
            ".",
            [],
            ["b.md"],
            id="not-folder-marked-pyvenv.cfg",
        ),
        pytest.param(
            "a folder marked by pyvenv.cfg that is asked for",
            {"env/pyvenv.cfg": "", "env/a.md": "", "b.md": ""},
            "env",
            [".md"],
            ["env/a.md"],
            id="folder-marked-pyvenv.cfg-asked",
        ),
        pytest.param(
            "not a folder marked by CACHEDIR.TAG",
            {"env/CACHEDIR.TAG": "", "env/a.md": "", "b.md": ""},
            ".",
            [],
            ["b.md"],
            id="not-folder-marked-cachedir.tag",
        ),
        pytest.param(
            "a folder marked by CACHEDIR.TAG that is asked for",
            {"env/CACHEDIR.TAG": "", "env/a.md": "", "b.md": ""},
            "env",
            [".md"],
            ["env/a.md"],
            id="folder-marked-cachedir.tag-asked",
        ),
        pytest.param(
            "not another checkout or another repository",
            {
                "fix/.git": "gitdir: /r/.git/worktrees/fix\n",
                "fix/a.md": "",
                "clone/.git/HEAD": "",
                "clone/a.md": "",
                "b.md": "",
            },
            ".",
            [],
            ["b.md"],
            id="not-another-checkout-another-repository",
        ),
        pytest.param(
            "nothing hidden",
            {".claude/knowledge/a.md": "", ".claude/.cache/b.md": "", ".c.md": ""},
            ".",
            [],
            [],
            id="nothing-hidden",
        ),
        pytest.param(
            "what is hidden as the start",
            {".claude/knowledge/a.md": "", ".claude/.cache/b.md": "", ".c.md": ""},
            ".claude/knowledge",
            [],
            [".claude/knowledge/a.md"],
            id="what-hidden-start",
        ),
        pytest.param(
            "what is not hidden below a hidden start",
            {".claude/knowledge/a.md": "", ".claude/.cache/b.md": "", ".c.md": ""},
            ".claude",
            [],
            [".claude/knowledge/a.md"],
            id="what-not-hidden-below-hidden-start",
        ),
        pytest.param(
            "a deeper file of rules overrules a higher one",
            {
                ".gitignore": "*.log\n/docs/b.md\n",
                "docs/.gitignore": "!keep.log\n/c.md\n",
                "docs/a.log": "",
                "docs/b.md": "",
                "docs/c.md": "",
                "keep.log": "",
                "docs/in/c.md": "",
                "docs/in/keep.log": "",
            },
            ".",
            [],
            ["docs/in/c.md", "docs/in/keep.log"],
            id="deeper-file-rules-overrules-higher-one",
        ),
        pytest.param(
            "also for a start below both",
            {
                ".gitignore": "*.log\n/docs/b.md\n",
                "docs/.gitignore": "!keep.log\n/c.md\n",
                "docs/a.log": "",
                "docs/b.md": "",
                "docs/c.md": "",
                "keep.log": "",
                "docs/in/c.md": "",
                "docs/in/keep.log": "",
            },
            "docs/in",
            [],
            ["docs/in/c.md", "docs/in/keep.log"],
            id="also-start-below-both",
        ),
        pytest.param(
            "a folder that is asked for, though git ignores it",
            {
                ".claude/knowledge/a.md": "",
                ".claude/knowledge/b.md": "",
                ".claude/knowledge/.gitignore": "b.md\n",
                ".gitignore": ".claude/\n",
            },
            ".claude/knowledge",
            [],
            [".claude/knowledge/a.md"],
            id="folder-asked-though-git-ignores",
        ),
        pytest.param(
            "also where a tool ignores its own folder",
            {
                ".claude/knowledge/a.md": "",
                ".claude/knowledge/b.md": "",
                ".claude/knowledge/.gitignore": "b.md\n",
                ".gitignore": ".claude/\n",
                ".claude/.gitignore": "*\n",
            },
            ".claude/knowledge",
            [],
            [".claude/knowledge/a.md"],
            id="also-where-tool-ignores-own-folder",
        ),
        pytest.param(
            "rules made to take forever are passed over",
            {
                ".gitignore": "*a*a*a*a*a*a*a*a*a*b\n**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/b\n*.log\n",
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.md": "",
                "x.log": "",
            },
            ".",
            [],
            [
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.md"
            ],
            id="rules-made-take-forever-passed-over",
        ),
    ],
)
def test_a_walk_finds_what_people_wrote(tmp_path, rule, files, start, suffixes, expected):
    tree(tmp_path, files)
    assert uris(tmp_path / start, tmp_path, *suffixes) == expected, rule


@pytest.mark.parametrize("name", ["missing", "a.md/below", "a\0b", "x" * 300])
def test_a_start_that_does_not_exist_is_an_error(tmp_path, name):
    tree(tmp_path, {"a.md": ""})
    with pytest.raises(NotFound) as caught:
        walk(tmp_path / name, tmp_path)
    assert name in caught.value.message
    assert caught.value.hint


def test_exclusions_of_the_clone_count(tmp_path):
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


FILES = [
    "a.md",
    "b.log",
    "docs/a.md",
    "docs/b.log",
    "docs/deep/a.md",
    "docs/deep/keep.md",
    "logs/a.log",
    "logs/b.md",
    "out/deep/a.md",
]


@pytest.mark.parametrize(
    ("rules", "ignored"),
    [
        pytest.param("*.log", ["b.log", "docs/b.log", "logs/a.log"], id="log"),
        pytest.param("/a.md", ["a.md"], id="a.md-a.md"),
        pytest.param(
            "docs/",
            ["docs/a.md", "docs/b.log", "docs/deep/a.md", "docs/deep/keep.md"],
            id="docs-docs/a.md-docs/b.log-docs/deep/a.md",
        ),
        pytest.param(
            "docs",
            ["docs/a.md", "docs/b.log", "docs/deep/a.md", "docs/deep/keep.md"],
            id="docs-docs/a.md-docs/b.log-docs/deep/a.md-2",
        ),
        pytest.param(
            "deep/",
            ["docs/deep/a.md", "docs/deep/keep.md", "out/deep/a.md"],
            id="deep-docs/deep/a.md",
        ),
        pytest.param("/deep", [], id="deep"),
        pytest.param("docs/*.md", ["docs/a.md"], id="docs-md-docs/a.md"),
        pytest.param(
            "docs/**/*.md",
            ["docs/a.md", "docs/deep/a.md", "docs/deep/keep.md"],
            id="docs-md-docs/a.md-docs/deep/a.md",
        ),
        pytest.param("**/deep/a.md", ["docs/deep/a.md", "out/deep/a.md"], id="deep/a.md"),
        pytest.param("docs/**/", ["docs/deep/a.md", "docs/deep/keep.md"], id="docs-docs/deep/a.md"),
        pytest.param("*\n!*/\n!*.md", ["b.log", "docs/b.log", "logs/a.log"], id="md"),
        pytest.param("*.log\n!logs/", ["b.log", "docs/b.log", "logs/a.log"], id="log-logs"),
        pytest.param(
            "docs/deep/*\n!docs/deep/keep.md",
            ["docs/deep/a.md"],
            id="docs/deep-docs/deep/keep.md-docs/deep/a.md",
        ),
        pytest.param(
            "docs/deep/\n!docs/deep/keep.md",
            ["docs/deep/a.md", "docs/deep/keep.md"],
            id="docs/deep-docs/deep/keep.md-docs/deep/a.md-docs/deep/keep.md",
        ),
        pytest.param(
            "docs/deep/**\n!docs/deep/keep.md",
            ["docs/deep/a.md"],
            id="docs/deep-docs/deep/keep.md-docs/deep/a.md-2",
        ),
        pytest.param(
            "/*\n!/docs/",
            ["a.md", "b.log", "logs/a.log", "logs/b.md", "out/deep/a.md"],
            id="docs-a.md",
        ),
        pytest.param(
            "# comment\n\n\\#x\n[ab].log",
            ["b.log", "docs/b.log", "logs/a.log"],
            id="comment-x-ab-log",
        ),
        pytest.param("!\n/\n[a-\n[[a]]\nb.log  \r\n", ["b.log", "docs/b.log"], id="b.log"),
        pytest.param(
            "\ufeffa.md",
            ["a.md", "docs/a.md", "docs/deep/a.md", "out/deep/a.md"],
            id="a.md-a.md-docs/a.md",
        ),
    ],
)
def test_what_git_ignores_is_left_out(tmp_path, rules, ignored):
    files = FILES
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
    assert [
        (start, base)
        for start in ("real/docs", "link/docs")
        for base in ("real", "link")
        if uris(tmp_path / start, tmp_path / base) != ["docs/a.md"]
    ] == []


TEXT_DECODED = [
    (b"", ""),
    (b"plain\n", "plain\n"),
    ("naïve – 日本語\r\n".encode(), "naïve – 日本語\n"),
    (b"\xef\xbb\xbfmarked", "marked"),
    (b"caf\xe9 in latin-1", "café in latin-1"),
    ("café and ".encode() + b"na\xefve", "café and na\ufffdve"),
    (b"a" * 2000 + b"\x00", "a" * 2000 + "\x00"),
]

NO_TEXT = [
    (b"GIF89a\x00\x00", "binary file (NUL at byte 6)"),
    (b"\xff\xfea\x00b\x00", "binary file (NUL at byte 3)"),
]


@pytest.mark.parametrize(("data", "text"), TEXT_DECODED)
def test_text_is_decoded(tmp_path, data, text):
    (tmp_path / "a.md").write_bytes(data)
    assert text_of(tmp_path / "a.md") == text


@pytest.mark.parametrize(
    ("data", "reason"), [pytest.param(*row, id=ascii(row[0][:20])) for row in NO_TEXT]
)
def test_a_file_that_is_no_text_is_skipped_with_the_reason(tmp_path, data, reason):
    (tmp_path / "a.md").write_bytes(data)
    assert text_of(tmp_path / "a.md").reason.startswith(reason)


def test_a_file_over_the_limit_is_skipped_with_the_reason(tmp_path):
    with (tmp_path / "a.md").open("wb") as file:
        file.truncate(50_000_000)
    why = "cannot be read: 50.0 MB, larger than the limit of 10 MB"
    assert text_of(tmp_path / "a.md") == Skipped("a.md", why)


def test_a_limit_holds_to_the_byte(tmp_path):
    (tmp_path / "b.md").write_bytes(b"x" * 100)
    assert text_of(tmp_path / "b.md", longest=100) == "x" * 100
    assert isinstance(text_of(tmp_path / "b.md", longest=99), Skipped)
