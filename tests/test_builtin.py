"""What agents remember by themselves: found by a search, marked, never written, in step with its files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from capturing import SAID, Desk
from cli_runner import cli  # noqa: F401

from bethink.api import Bethink
from bethink.features import knowledge
from bethink.types import BUILTIN, TRUST

NOTE = """---
name: prefers-pnpm
description: The user wants pnpm, not npm
metadata:
  type: feedback
modified: 2026-11-02T10:11:12Z
---
Use pnpm in the storefront. **Why:** the lock file. See [[monorepo-layout]].
"""


@pytest.fixture
def desk(offline: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return Desk(tmp_path, offline)


def put(desk: Desk, name: str, text: str) -> Path:
    path = desk.project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def remember(desk: Desk, name: str, text: str) -> Path:
    path = (
        desk.folder / "claude" / "projects" / knowledge.claude_slug(desk.project) / "memory" / name
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def kept(desk: Desk) -> list:
    with desk.memory() as memory:
        knowledge.sync_builtin(memory)
        return [
            one for one in memory.list(limit=200, order="oldest") if one.source.startswith(BUILTIN)
        ]


def test_rules_and_auto_memory_are_found_by_a_search_and_marked(desk: Desk) -> None:
    put(desk, "AGENTS.md", "# Rules\n\nNever deploy the storefront on Fridays.\n")
    file = remember(desk, "prefers-pnpm.md", NOTE)
    rule, note = sorted(kept(desk), key=lambda one: "pnpm" in one.content)
    assert (rule.path, rule.lines, rule.metadata["builtin"], rule.trust) == (
        "AGENTS.md",
        (1, 3),
        "rules",
        TRUST["import"],
    )
    assert (note.path, note.kind, note.metadata["builtin"]) == (
        str(file),
        "preference",
        "auto memory",
    )
    with desk.memory() as memory:
        (hit, *_) = memory.search("when may the storefront be deployed?", mode="keyword").hits
        assert hit.memory.id == rule.id


@pytest.mark.parametrize(
    ("type", "kind"),
    [("user", "preference"), ("project", "fact"), ("reference", "document"), ("odd", "document")],
)
def test_the_type_of_an_auto_memory_becomes_its_kind(desk: Desk, type: str, kind: str) -> None:
    remember(desk, "one.md", NOTE.replace("feedback", type))
    assert [one.kind for one in kept(desk)] == [kind]


def test_it_follows_its_files_and_never_writes_them(desk: Desk) -> None:
    rules = put(desk, "CLAUDE.md", "# Rules\n\nUse tabs.\n")
    os.utime(rules, (1, 1))
    (before,) = kept(desk)
    assert [one.id for one in kept(desk)] == [before.id]
    assert rules.stat().st_mtime == 1
    rules.write_text("# Rules\n\nUse spaces.\n")
    assert [one.content for one in kept(desk)] == ["# Rules\n\nUse spaces."]
    rules.unlink()
    assert kept(desk) == []


def test_imports_are_followed_inside_the_project_only(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("The villa is in Nice.\n")
    (desk.project / "link.md").symlink_to(tmp_path / "secret.md")
    put(
        desk,
        "CLAUDE.md",
        "See @docs/style.md, @AGENTS.md and @missing.md.\n@../secret.md\n@link.md\n`@docs/code.md`\n```\n@docs/fence.md\n```\nada@docs/mail.md\n",
    )
    put(desk, "AGENTS.md", "Tests first.\n")
    put(desk, "docs/style.md", "Short sentences. @deeper.md\n")
    put(desk, "docs/deeper.md", "Whole words. @style.md\n")
    for name in ("code", "fence", "mail"):
        put(desk, f"docs/{name}.md", "Not brought in.\n")
    assert {one.path for one in kept(desk)} == {
        "CLAUDE.md",
        "AGENTS.md",
        "docs/style.md",
        "docs/deeper.md",
    }


def test_one_file_under_two_names_is_read_once(desk: Desk) -> None:
    put(desk, "AGENTS.md", "Tests first.\n")
    (desk.project / "CLAUDE.md").symlink_to("AGENTS.md")
    assert [one.path for one in kept(desk)] == ["AGENTS.md"]


def test_rules_that_were_promoted_from_memory_are_not_learned_again(desk: Desk) -> None:
    put(
        desk,
        "AGENTS.md",
        "# Rules\n\nTests first.\n\n<!-- bethink:begin -->\n## Learned in this project\n\n"
        "- Deploy from main. <!-- bethink:01a1dd89 -->\n<!-- bethink:end -->\n\n# Also\n\nBe kind.\n",
    )
    assert [(one.content, one.lines[0]) for one in kept(desk)] == [
        ("# Rules\n\nTests first.", 1),
        ("# Also\n\nBe kind.", 11),
    ]


def test_private_parts_and_secrets_are_left_out(desk: Desk) -> None:
    put(
        desk,
        "CLAUDE.local.md",
        "Call <private>Ada at home</private> first. The key is AKIA" + "ABCDEFGHIJKLMNOP.\n",
    )
    (one,) = kept(desk)
    assert "Ada" not in one.content and "AKIAABCD" not in one.content


def test_it_stays_apart_from_the_knowledge_folders(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bethink.features import knowledge

    monkeypatch.setenv("BETHINK_KNOWLEDGE", "AGENTS.md")
    put(desk, "AGENTS.md", "Tests first.\n")
    with desk.memory() as memory:
        for _ in range(2):
            assert knowledge.index(memory).sources == 1
            synced = knowledge.sync_builtin(memory)
        assert (synced.unchanged, synced.memories_retired) == (1, 0)
        assert sorted(one.source for one in memory.list()) == ["AGENTS.md", "builtin:AGENTS.md"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\x01\x02",
        b"\xff\xfe",
        b"---\n: [\n",
        b"@" * 10_000,
        b"<private>",
        b"x" * 1_100_000,
    ],
    ids=range(7),
)
def test_files_of_any_content_are_survived(desk: Desk, content: bytes) -> None:
    put(desk, "CLAUDE.md", "").write_bytes(content)
    remember(desk, "odd.md", "").write_bytes(content)
    put(desk, "AGENTS.md", "Tests first.\n")
    assert "Tests first." in [one.content for one in kept(desk)]


@pytest.mark.parametrize(
    ("path", "slug"),
    [
        ("/home/u/my.app", "-home-u-my-app"),
        ("/größe/日本", "-gr--e---"),
        ("/a b/😀", "-a-b---"),
        ("/x_y-1", "-x-y-1"),
    ],
)
def test_the_name_of_a_projects_folder_is_that_of_claude_code(path: str, slug: str) -> None:
    assert knowledge.claude_slug(Path(path)) == slug


def test_a_long_name_is_found_by_its_beginning(desk: Desk, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 120) / ("e" * 120)
    deep.mkdir(parents=True)
    folder = (
        tmp_path / "claude" / "projects" / f"{knowledge.claude_slug(deep)[:200]}-1x2y3z" / "memory"
    )
    folder.mkdir(parents=True)
    (folder / "one.md").write_text("Found all the same.\n")
    with Bethink(desk.database, directory=deep) as memory:
        knowledge.sync_builtin(memory)
        assert [one.content for one in memory.list()] == ["Found all the same."]


def test_a_capture_brings_it_in_step(desk: Desk) -> None:
    put(desk, "AGENTS.md", "Tests first.\n")
    desk.note(desk.talk("a", *SAID))
    desk.work()
    with desk.memory() as memory:
        assert [one.content for one in memory.list() if one.source.startswith(BUILTIN)] == [
            "Tests first."
        ]


def test_index_reads_it_too_also_where_there_is_no_knowledge_folder(cli):  # noqa: F811
    cli.fails("index", code=1)
    (cli.project / "AGENTS.md").write_text("# Rules\n\nTests first.\n")
    told = cli.json("index")
    assert (told["added"], told["sources"]) == (["AGENTS.md"], 1)
    (cli.project / ".claude" / "knowledge").mkdir(parents=True)
    (cli.project / ".claude" / "knowledge" / "auth.md").write_text(
        "# Tokens\n\nThey expire after an hour.\n"
    )
    told = cli.json("index")
    assert (told["added"], told["unchanged"], told["sources"]) == (
        [".claude/knowledge/auth.md"],
        1,
        2,
    )
    assert cli.json("index", ".claude/knowledge")["sources"] == 1
    assert cli.json("search", "tests first")[0]["path"] == "AGENTS.md"
