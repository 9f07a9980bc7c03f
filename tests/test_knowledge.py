"""Project knowledge through the command line: documents as syncs, what is skipped and why, and following changes."""

from __future__ import annotations

import os
import subprocess

import pytest
from cli_runner import cli  # noqa: F401

from bethink.embed.hashing import HashingEmbedder

GUIDE = """# Deploying

We deploy from main, never from a branch.

## Rollback

Run the previous tag again. The database is never rolled back.

## Feature flags

Flags live in Consul and are read at start.
"""


@pytest.fixture
def project(cli):  # noqa: F811
    folder = cli.project / ".claude" / "knowledge"
    (folder / "gotchas").mkdir(parents=True)
    (folder / "deploying.md").write_text(GUIDE)
    (folder / "gotchas" / "cache.md").write_text(
        "---\ntags: [redis]\n---\n# Cache\n\nThe cache forgets everything at midnight.\n"
    )
    return cli


def contents(cli) -> dict[str, dict]:  # noqa: F811
    return {one["content"]: one for one in cli.json("list", "--all")}


def test_knowledge_files_are_found_with_path_lines_heading_and_kind(project):
    assert project.json("index")["added"] == [
        ".claude/knowledge/deploying.md",
        ".claude/knowledge/gotchas/cache.md",
    ]
    hit = project.json("search", "previous tag again")[0]
    assert (hit["path"], hit["kind"], hit["section"]) == (
        ".claude/knowledge/deploying.md",
        "document",
        "Deploying > Rollback",
    )
    first, last = hit["lines"]
    assert "Run the previous tag again" in "\n".join(GUIDE.splitlines()[first - 1 : last])
    gotcha = project.json("search", "midnight")[0]
    assert (gotcha["kind"], gotcha["tags"], gotcha["trust"]) == ("gotcha", ["redis"], 1)


@pytest.mark.parametrize("first", ["note", "document"])
def test_a_note_that_names_a_document_outlives_every_change_of_it(project, first):
    file, path = (
        ".claude/knowledge/gotchas/cache.md",
        project.project / ".claude/knowledge/gotchas/cache.md",
    )
    path.write_text("The cache forgets everything at midnight.\n")
    if first == "document":
        project.ok("index")
    project.ok("add", "Ada wrote this down", "--source", file)
    project.ok(
        "add", "--file", file, "--importance", "9", "--tag", "cache", "--no-dedup"
    )  # says what the document says
    project.ok("index")
    path.write_text("The cache forgets everything at noon.\n")
    assert project.json("index")["memories"]["retired"] == 1
    path.unlink()
    assert project.json("index")["vanished"] == [file]
    kept = project.json("list", "--source", file)
    assert {one["content"] for one in kept} == {
        "Ada wrote this down",
        "The cache forgets everything at midnight.",
    }
    assert {one["kind"] for one in kept} <= {"general", "fact", "gotcha"}
    copied = next(one for one in kept if one["tags"] == ["cache"])
    assert (copied["importance"], copied["path"], copied["source"]) == (9, None, file)


def test_a_second_run_reads_nothing_and_embeds_nothing(project, monkeypatch):
    project.ok("index")
    monkeypatch.setattr(
        HashingEmbedder, "documents", lambda *_: pytest.fail("embedded although nothing changed")
    )
    again = project.json("index")
    assert (again["unchanged"], again["added"], again["memories"]) == (
        2,
        [],
        {"added": 0, "kept": 0, "retired": 0},
    )
    assert project.ok("index").split() == ["sources", "2", "unchanged", "2"]


def test_what_was_indexed_by_its_path_stays_until_its_file_is_gone(project):
    docs = project.project / "docs"
    docs.mkdir()
    (docs / "billing.md").write_text("# Billing\n\nInvoices are sent on the third of the month.\n")
    (docs / "returns.md").write_text("# Returns\n\nA return is paid back within two weeks.\n")
    project.ok("index", "docs")
    assert project.json("index")["vanished"] == []
    assert [
        part["vanished"]
        for part in project.json("init", "--skip-map")["parts"]
        if part["part"] == "index"
    ] == [[]]
    assert project.json("index", ".")["vanished"] == []  # which does not look into .claude
    assert project.json("search", "third of the month", "--mode", "keyword")
    (docs / "billing.md").unlink()
    assert project.json("index", ".claude/knowledge")["vanished"] == []  # looked elsewhere
    assert project.json("index")["vanished"] == ["docs/billing.md"]
    (docs / "returns.md").unlink()
    assert project.json("index", "docs")["vanished"] == ["docs/returns.md"]


def test_bad_files_are_named_and_the_rest_is_indexed(project):
    folder = project.project / ".claude/knowledge"
    (folder / "binary.md").write_bytes(b"\x00\x01\x02" * 100)
    (folder / "huge.md").write_bytes(b"word " * 2_100_000)
    (folder / "broken.md").write_text(
        "---\ntags: [a, b\n---\n# Broken head\n\nStill readable body text.\n"
    )
    (folder / "open.md").write_text("# Open\n\n```python\nprint('no end')\n")
    (folder / "loop").symlink_to(folder)
    (folder / "gone.md").symlink_to(folder / "nowhere.md")
    os.mkfifo(folder / "pipe.md")
    result = project("index")
    assert result.code == 0 and "binary" in result.out
    skipped = {
        row["source"].rpartition("/")[2]: row["reason"] for row in project.json("index")["skipped"]
    }
    assert {"binary.md", "huge.md", "gone.md", "pipe.md"} <= set(skipped)
    assert "binary" in skipped["binary.md"] and "MB" in skipped["huge.md"]
    texts = " ".join(contents(project))
    assert (
        "Still readable body text" in texts and "no end" in texts and "never from a branch" in texts
    )


def test_what_holds_no_words_is_left_out_and_told(project):
    folder = project.project / ".claude/knowledge"
    (folder / "noise.md").write_text("a" * 300_000)
    (folder / "picture.md").write_text(
        f"# Till\n\nThe till is drawn here.\n\n![till](data:image/png;base64,{'iVBORw0KGgo' * 3000})\n"
    )
    (folder / "tea.md").write_text("# 茶\n\n" + "烏龍茶以百克罐裝出售，從不散裝。" * 60 + "\n")
    told = project("index")
    assert (
        told.code == 0
        and "noise.md: left out what holds no words" in told.err
        and "tea.md" not in told.err
    )
    paths = [one["path"].rpartition("/")[2] for one in project.json("list", "--all")]
    assert "noise.md" not in paths and paths.count("picture.md") == 1 and paths.count("tea.md") > 0
    assert project.json("search", "till drawn", "--mode", "keyword")


def test_an_empty_project_says_what_to_do(cli):  # noqa: F811
    error = cli.fails("index", code=1)
    assert ".claude/knowledge" in error and "bethink init" in error
    assert "nothing" in cli.fails("index", "nowhere.md", code=1)


def test_a_project_file_cannot_point_out_of_the_project(cli):  # noqa: F811
    (cli.project / ".bethink").mkdir()
    (cli.project / ".bethink" / "config.toml").write_text('knowledge = ["../../outside"]\n')
    assert "outside the project" in cli.fails("index", code=2)


def test_import_takes_any_markdown_by_windows_of_lines(project, tmp_path):
    notes = tmp_path / "elsewhere"
    notes.mkdir()
    (notes / "post.markdown").write_text(
        "# Outage\n\n" + "The queue was full because the worker had died.\n" * 120
    )
    (notes / "page.mdx").write_text("# Page\n\nMDX is read as Markdown.\n")
    (notes / "skip.txt").write_text("not Markdown")
    taken = project.json("import", "--markdown", str(notes))
    assert [path.rpartition("/")[2] for path in taken["added"]] == ["page.mdx", "post.markdown"]
    hits = [one for one in project.json("list", "--all") if one["path"].endswith("post.markdown")]
    assert len(hits) > 2 and all(one["path"].startswith("/") for one in hits)
    assert project.json("import", "--markdown", str(notes))["unchanged"] == 2
    (notes / "page.mdx").unlink()
    assert [
        path.rpartition("/")[2]
        for path in project.json("import", "--markdown", str(notes))["vanished"]
    ] == ["page.mdx"]
    project.ok("index")
    assert any(one["path"].endswith("post.markdown") for one in project.json("list", "--all")), (
        "other sources are left alone"
    )


def test_an_import_into_a_container_stays_there(project, tmp_path):
    (tmp_path / "router.md").write_text("# Router\n\nLoaders run before the route renders.\n")
    project.ok("import", "--markdown", str(tmp_path / "router.md"), "--container", "react-router")
    assert project.json("search", "loaders route", "--mode", "keyword") == []
    assert (
        len(
            project.json(
                "search", "loaders route", "--container", "react-router", "--mode", "keyword"
            )
        )
        == 1
    )


def test_settings_change_the_passages_of_the_next_run(project):
    (project.project / ".claude/knowledge/long.md").write_text(
        "# Long\n\n" + "A sentence about owls in the barn. " * 100
    )
    project.ok("index")
    several = len(contents(project))
    project.ok("config", "chunk_size", "500")
    assert ".claude/knowledge/long.md" in project.json("index")["changed"]
    assert len(contents(project)) > several


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_missing_extra_is_one_error_and_comes_first(project, monkeypatch, options):
    monkeypatch.setattr("bethink.features.knowledge.find_spec", lambda name: None)
    (project.project / "cart.py").write_text("def total(items):\n    return sum(items)\n")
    refused = project.fails("map", *options, code=1)
    assert "hint: pip install 'bethink[code]'" in refused and "skipped" not in refused


# The code map, through the command line


@pytest.fixture
def coded(cli):  # noqa: F811
    (cli.project / "src").mkdir()
    (cli.project / "src" / "client.py").write_text(
        '"""Talks to the payment gateway."""\n\n\nclass Gateway:\n    def charge(self, cents: int) -> str:\n        """Charges a card, and tries again when the connection breaks."""\n'
        "        return self._with_backoff(cents)\n\n    def _with_backoff(self, cents: int) -> str:\n"
        '        """Waits longer after each failed attempt."""\n        return str(cents)\n'
    )
    (cli.project / "src" / "cart.ts").write_text(
        "/** Sums the prices of the cart. */\nexport function totalOf(items: number[]): number {\n  return 0;\n}\n"
    )
    return cli


def test_code_is_found_by_symbol_path_and_purpose(coded):
    keys = ["content", "language", "lines", "path", "symbols"]
    assert sorted(coded.json("map")[0]) == keys
    assert coded.json("stats")["memories"] == 0, "--json prints and stores nothing"
    assert "2 added" in coded.ok("map")
    for question, path in (
        ("totalOf", "src/cart.ts"),
        ("src/client.py", "src/client.py"),
        ("tries again when the connection breaks", "src/client.py"),
    ):
        hit = coded.json("search", question, "--limit", "1")[0]
        assert (hit["path"], hit["kind"]) == (path, "code") and hit["lines"]
    assert "unchanged  2" in coded.ok("map")
    (coded.project / "src" / "cart.ts").unlink()
    assert "vanished   src/cart.ts" in coded.ok("map")


def test_a_repo_map_goes_out_and_comes_in_again(coded, tmp_path):
    file = tmp_path / "repo-map.json"
    file.write_text(coded.ok("map", "--json"))
    assert coded.json("import", "--repo-map", str(file))["memories"]["added"] == 2
    assert (
        coded.json("search", "totalOf", "--mode", "keyword")[0]["metadata"]["import_type"]
        == "repo-map"
    )
    file.write_text('[{"path": "only/this.go"}]')
    assert coded.json("import", "--repo-map", str(file))["memories"] == {
        "added": 1,
        "kept": 0,
        "retired": 2,
    }


# Analysis, through the command line


def test_analysis_finds_commands_decisions_and_what_replaced_them(cli):  # noqa: F811
    root = cli.project
    (root / "README.md").write_text("# Shop\n\nA shop that sells tea by subscription.\n")
    (root / "Makefile").write_text("test:  ## run the tests\n\tpytest -q\n")
    (root / "docs" / "adr").mkdir(parents=True)
    (root / "docs/adr/0001-mysql.md").write_text(
        "# 1. Use MySQL\n\n## Status\n\nSuperseded by [2. Use Postgres](0002-postgres.md)\n\n## Decision\n\nOrders are kept in MySQL.\n"
    )
    (root / "docs/adr/0002-postgres.md").write_text(
        "# 2. Use Postgres\n\n## Status\n\nAccepted\n\n## Decision\n\nOrders are kept in Postgres.\n"
    )
    (root / "package.json").write_text("{broken")
    done = cli.json("analyze")
    assert any("package.json" in row["source"] for row in done["skipped"])
    assert "make test" in cli.json("search", "how do I run the tests?")[0]["content"]
    decision = cli.json("search", "where are orders kept?", "--kind", "decision")[0]
    assert (
        "Postgres" in decision["content"]
        and decision["path"] == "docs/adr/0002-postgres.md"
        and decision["lines"]
    )
    assert [other["type"] for other in decision["related"]] == ["supersedes"]
    assert cli.json("analyze")["memories"] == {"added": 0, "kept": 0, "retired": 0}


def test_commits_that_explain_become_memories_that_cite_them(cli):  # noqa: F811
    def git(*words):
        return subprocess.run(
            ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *words],
            cwd=cli.project,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "Bump version")
    git(
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "Retry uploads three times\n\nBecause the gateway drops one connection in fifty, a single attempt lost orders.",
    )
    sha = git("rev-parse", "HEAD")
    assert cli.json("analyze", "--git")["memories"]["added"] == 1
    (found,) = cli.json("list")
    assert found["source"] == f"git:{sha}" and "one connection in fifty" in found["content"]
    assert cli.json("analyze", "--git")["memories"]["added"] == 0
    assert "--git" in cli.fails("analyze", "--since", "2025-01-01", code=2)
