"""Project knowledge through the command line: documents as syncs, code, analysis, what is skipped and why, following changes; and what
is private in files and history stays out of memory, whichever reader takes it apart."""

import json
import os

import pytest
from memories import use_tool
from trees import git, plant

from bethink import Bethink
from bethink.app.mcp import resources
from bethink.embed.hashing import HashingEmbedder
from bethink.errors import NotFound

KNOWLEDGE = ".claude/knowledge"
GUIDE = """# Deploying\n\nWe deploy from main, never from a branch.\n
## Rollback\n\nRun the previous tag again. The database is never rolled back.\n
## Feature flags\n\nFlags live in Consul and are read at start.
"""
CACHE = "---\ntags: [redis]\n---\n# Cache\n\nThe cache forgets everything at midnight.\n"
NOTHING = {"added": 0, "kept": 0, "retired": 0}


@pytest.fixture
def project(cli):
    plant(cli.project / KNOWLEDGE, {"deploying.md": GUIDE, "gotchas/cache.md": CACHE})
    return cli


def everything(cli) -> str:
    return str(cli.json("list", "--all"))


def names(paths: list[str]) -> list[str]:
    return [path.rpartition("/")[2] for path in paths]


def test_knowledge_files_are_indexed_with_their_lines(project):
    files = [f"{KNOWLEDGE}/deploying.md", f"{KNOWLEDGE}/gotchas/cache.md"]
    assert project.json("index")["added"] == files
    hit = project.json("search", "previous tag again")[0]
    told = (hit["path"], hit["kind"], hit["section"])
    assert told == (files[0], "document", "Deploying > Rollback")
    first, last = hit["lines"]
    assert "Run the previous tag again" in "\n".join(GUIDE.splitlines()[first - 1 : last])
    gotcha = project.json("search", "midnight")[0]
    assert (gotcha["kind"], gotcha["tags"], gotcha["trust"]) == ("gotcha", ["redis"], 1)


def test_unchanged_files_are_not_read_again(project, monkeypatch):
    files = [f"{KNOWLEDGE}/deploying.md", f"{KNOWLEDGE}/gotchas/cache.md"]
    assert project.json("index")["added"] == files
    with monkeypatch.context() as patch:
        patch.setattr(HashingEmbedder, "documents", lambda *_: pytest.fail("embedded"))
        again = project.json("index")
    assert (again["unchanged"], again["added"], again["memories"]) == (2, [], NOTHING)


def test_a_note_about_a_file_outlives_it(project):
    file = f"{KNOWLEDGE}/gotchas/cache.md"
    plant(project.project, {file: "The cache forgets everything at midnight.\n"})
    project.ok("index")
    project.ok("add", "Ada wrote this down", "--source", file)
    # Says what the document says.
    project.ok("add", "--file", file, "--importance", "9", "--tag", "cache", "--no-dedup")
    plant(project.project, {file: "The cache forgets everything at noon.\n"})
    assert project.json("index")["memories"]["retired"] == 1
    (project.project / file).unlink()
    assert project.json("index")["vanished"] == [file]
    kept = {one["content"]: one for one in project.json("list", "--source", file)}
    copied = kept.pop("The cache forgets everything at midnight.")
    assert (copied["importance"], copied["path"], copied["source"]) == (9, None, file)
    assert list(kept) == ["Ada wrote this down"]


def test_the_knowledge_setting_decides_what_is_indexed(project):
    billing = {"billing.md": "# Billing\n\nInvoices are sent on the third of the month.\n"}
    plant(project.project / "docs", billing)
    project.ok("index")
    project.ok("config", "knowledge", KNOWLEDGE)
    assert project.json("index")["vanished"] == ["docs/billing.md"]
    assert not project.json("search", "third of the month", "--mode", "keyword")
    project.ok("config", "knowledge", f"{KNOWLEDGE},docs")
    assert project.json("index")["added"] == ["docs/billing.md"]
    assert project.json("search", "third of the month", "--mode", "keyword")


def test_the_chunk_size_decides_how_files_are_cut(project):
    owls = "# Long\n\n" + "A sentence about owls in the barn. " * 100
    plant(project.project / KNOWLEDGE, {"long.md": owls})
    project.ok("index")
    several = len(project.json("list", "--all"))
    project.ok("config", "chunk_size", "500")
    assert f"{KNOWLEDGE}/long.md" in project.json("index")["changed"]
    assert len(project.json("list", "--all")) > several


def test_unreadable_files_are_skipped_by_name(project):
    files = {"binary.md": b"\x00\x01\x02" * 100, "huge.md": b"word " * 2_100_000}
    files["broken.md"] = "---\ntags: [a, b\n---\n# Broken\n\nStill readable text.\n"
    files["open.md"] = "# Open\n\n```python\nprint('no end')\n"
    folder = plant(project.project / KNOWLEDGE, files)
    (folder / "loop").symlink_to(folder)
    (folder / "gone.md").symlink_to(folder / "nowhere.md")
    os.mkfifo(folder / "pipe.md")
    result = project("index")
    assert result.code == 0 and "binary" in result.out
    rows = project.json("index")["skipped"]
    skipped = {row["source"].rpartition("/")[2]: row["reason"] for row in rows}
    assert "binary" in skipped["binary.md"] and "MB" in skipped["huge.md"]
    assert {"gone.md", "pipe.md"} <= set(skipped)
    assert [
        text
        for text in ("Still readable text", "no end", "never from a branch")
        if text not in everything(project)
    ] == []


def test_text_without_words_is_left_out(project):
    image = f"![till](data:image/png;base64,{'iVBORw0KGgo' * 3000})"
    tea = "烏龍茶以百克罐裝出售，從不散裝。" * 60
    files = {"noise.md": "a" * 300_000, "tea.md": f"# 茶\n\n{tea}\n"}
    files["picture.md"] = f"# Till\n\nThe till is drawn here.\n\n{image}\n"
    plant(project.project / KNOWLEDGE, files)
    told = project("index")
    assert told.code == 0 and "noise.md: left out what holds no words" in told.err
    assert "tea.md" not in told.err
    found = names([one["path"] for one in project.json("list", "--all")])
    assert "noise.md" not in found and found.count("picture.md") == 1 and "tea.md" in found
    assert project.json("search", "till drawn", "--mode", "keyword")


def test_an_empty_project_says_what_to_do(cli):
    error = cli.fails("index", code=1)
    assert KNOWLEDGE in error and "bethink init" in error
    plant(cli.project, {".bethink/config.toml": 'knowledge = ["../../outside"]\n'})
    assert "outside the project" in cli.fails("index", code=2)


def test_a_folder_of_markdown_is_imported(project, tmp_path):
    outage = "The queue was full because the worker had died.\n" * 120
    page = "# Page\n\nMDX is read as Markdown.\n"
    files = {"post.markdown": f"# Outage\n\n{outage}", "page.mdx": page, "skip.txt": "no Markdown"}
    notes = plant(tmp_path / "elsewhere", files)
    take = ("import", "--markdown", str(notes))
    assert names(project.json(*take)["added"]) == ["page.mdx", "post.markdown"]
    hits = [one for one in project.json("list", "--all") if one["path"].endswith("post.markdown")]
    assert len(hits) > 2 and all(one["path"].startswith("/") for one in hits)
    assert project.json(*take)["unchanged"] == 2
    (notes / "page.mdx").unlink()
    assert names(project.json(*take)["vanished"]) == ["page.mdx"]
    project.ok("index")
    assert "post.markdown" in everything(project)  # other sources are left alone


def test_an_import_stays_in_its_container(project, tmp_path):
    plant(tmp_path, {"router.md": "# Router\n\nLoaders run before the route renders.\n"})
    container = ("--container", "react-router")
    project.ok("import", "--markdown", str(tmp_path / "router.md"), *container)
    ask = ("search", "loaders route", "--mode", "keyword")
    assert project.json(*ask) == []
    assert len(project.json(*ask, *container)) == 1


CODE = {
    "client.py": '"""Talks to the payment gateway."""\n\n\nclass Gateway:\n    def charge(self, cents: int) -> str:\n        """Charges a card, and tries again when the connection breaks."""\n        return self._with_backoff(cents)\n\n    def _with_backoff(self, cents: int) -> str:\n        """Waits longer after each failed attempt."""\n        return str(cents)\n',
    "cart.ts": "/** Sums the prices. */\nexport function totalOf(items: number[]): number {\n  return 0;\n}\n",
}


@pytest.fixture
def coded(cli):
    plant(cli.project / "src", CODE)
    return cli


def test_the_map_needs_its_extra(coded, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("bethink.features.knowledge.find_spec", lambda name: None)
        assert [
            options
            for options in ([], ["--json"])
            for refused in [coded.fails("map", *options, code=1)]
            if "hint: pip install 'bethink[code]'" not in refused or "skipped" in refused
        ] == []


def test_a_map_as_json_stores_nothing(coded):
    keys = ["content", "language", "lines", "path", "symbols"]
    assert sorted(coded.json("map")[0]) == keys
    assert coded.json("stats")["memories"] == 0, "--json prints and stores nothing"


def test_code_is_found_by_symbol_path_or_purpose(coded):
    assert "2 added" in coded.ok("map")
    questions = {"totalOf": "src/cart.ts", "src/client.py": "src/client.py"}
    questions["tries again when the connection breaks"] = "src/client.py"
    assert [
        question
        for question, path in questions.items()
        for hit in [coded.json("search", question, "--limit", "1")[0]]
        if (hit["path"], hit["kind"]) != (path, "code") or not hit["lines"]
    ] == []


def test_an_unchanged_map_is_kept(coded):
    assert "2 added" in coded.ok("map")
    assert "unchanged  2" in coded.ok("map")
    (coded.project / "src" / "cart.ts").unlink()
    assert "vanished   src/cart.ts" in coded.ok("map")


def test_a_repo_map_can_be_exported_then_imported(coded, tmp_path):
    file = tmp_path / "repo-map.json"
    file.write_text(coded.ok("map", "--json"))
    take = ("import", "--repo-map", str(file))
    assert coded.json(*take)["memories"]["added"] == 2
    found = coded.json("search", "totalOf", "--mode", "keyword")[0]
    assert found["metadata"]["import_type"] == "repo-map"
    file.write_text('[{"path": "only/this.go"}]')
    assert coded.json(*take)["memories"] == {"added": 1, "kept": 0, "retired": 2}
    assert coded.ok("search", "only/this.go", "--mode", "keyword").count("only/this.go") == 1


ADR = "# {}. Use {}\n\n## Status\n\n{}\n\n## Decision\n\nOrders are kept in {}.\n"
SUPERSEDED = "Superseded by [2. Use Postgres](0002-postgres.md)"


def test_analysis_finds_commands_or_decisions(cli):
    files = {
        "README.md": "# Shop\n\nA shop that sells tea by subscription.\n",
        "Makefile": "test:  ## run the tests\n\tpytest -q\n",
        "docs/adr/0001-mysql.md": ADR.format(1, "MySQL", SUPERSEDED, "MySQL"),
        "docs/adr/0002-postgres.md": ADR.format(2, "Postgres", "Accepted", "Postgres"),
        "package.json": "{broken",
    }
    plant(cli.project, files)
    assert any("package.json" in row["source"] for row in cli.json("analyze")["skipped"])
    assert "make test" in cli.json("search", "how do I run the tests?")[0]["content"]
    decision = cli.json("search", "where are orders kept?", "--kind", "decision")[0]
    assert "Postgres" in decision["content"] and decision["lines"]
    assert decision["path"] == "docs/adr/0002-postgres.md"
    assert [other["type"] for other in decision["related"]] == ["supersedes"]
    assert cli.json("analyze")["memories"] == NOTHING


def test_commits_that_explain_become_memories_that_cite_them_without_private_parts(cli):
    why = "Because the gateway drops one connection in fifty, a single attempt lost orders."
    private = f"<private>\n\nWe did it because {TOLD}.\n\n</private>"
    git(cli.project, "init", "-q")
    for message in ("Bump version", f"Retry uploads three times\n\n{private}\n\n{why}"):
        git(cli.project, "commit", "-q", "--allow-empty", "-m", message)
    assert cli.json("analyze", "--git")["memories"]["added"] == 1
    (found,) = cli.json("list")
    assert found["source"] == f"git:{git(cli.project, 'rev-parse', 'HEAD')}"
    assert "one connection in fifty" in found["content"] and "Globex" not in everything(cli)
    assert cli.json("analyze", "--git")["memories"]["added"] == 0


TOLD = "Globex pays 40 million"
KEY = "0123456789abcdef0123456789abcdef"  # behind `key-` the form of a vendor's key
FILES = {
    "README.md": f"# Shop\n\n<private>\n\nThe shop exists because {TOLD}.\n\n## Decisions\n\nWe decided to use Redis because {TOLD}.\n\n</private>\n\nShop sells bread.\n",
    "docs/adr/0001-kafka.md": f"# 1. Use Kafka\n\n## Status\n\nAccepted\n\n<private>\n\n## Context\n\n{TOLD}.\n\n## Decision\n\nWe will use Kafka because {TOLD}.\n\n</private>\n\n## Consequences\n\nWe run brokers.\n",
    "CLAUDE.md": f"# Rules\n\n<private>\n\n## Gotchas\n\n- Never tell anyone that {TOLD}.\n\n</private>\n\n- Run tests with make\n",
    "Makefile": f"# <private>\ndeploy: ## deploys what {TOLD} for\n\ttrue\n# </private>\n\ntest: ## runs the tests\n\tpytest\n",
    "shop.py": f'"""Sells bread."""\n\n# <private>\n\n\ndef deal():\n    """A deal: {TOLD}."""\n\n\n# </private>\n\n\ndef bake():\n    """Bakes bread."""\n',
}


def test_private_parts_of_files_are_not_read(cli):
    plant(cli.project, FILES)
    cli.ok("analyze")
    cli.ok("map")
    told = everything(cli)
    assert "Globex" not in told and "40 million" not in told
    assert "Bakes bread" in told and "runs the tests" in told
    (entry,) = [one for one in cli.json("map", "--json") if one["path"] == "shop.py"]
    assert "Globex" not in str(entry) and entry["lines"] == FILES["shop.py"].count("\n")
    line = FILES["shop.py"].splitlines().index("def bake():") + 1
    assert f"{line}: def bake()" in entry["content"]


def test_secrets_in_file_names_are_not_stored(cli):
    token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    name = f"bad\nname\x1b[31m {token}"
    files = {
        f"{name}.md": "# A\n\nSome sentence about the thing here.\n",
        f"{name}.py": 'def f():\n    """Does it."""\n',
        f"{name}/Makefile": "test: ## runs the tests\n\tpytest\n",
        f"{name}/broken.md": b"\0\0",
    }
    plant(cli.project, {f"docs/{path}": text for path, text in files.items()})
    said = cli.ok("index") + cli.ok("map") + cli.ok("analyze")
    said += str(cli.json("map", "--json")) + everything(cli)
    assert token not in said and "\x1b" not in said
    found = cli.json("list", "--all")
    assert {one["kind"] for one in found} >= {"document", "code", "pattern"}
    assert [
        one
        for one in found
        if "\n" in f"{one['source']}{one['section']}{one['summary']}{one['metadata'].get('path')}"
        or "bad\n" in one["content"]
    ] == []


def test_files_named_like_secrets_stay_apart(cli):
    lines = ["We deploy on Fridays.", "Lunch is at noon.", "Tests run at night."]
    paths = [f"key-{number}{KEY[1:]}.md" for number in range(3)]
    folder = cli.project / "docs"
    plant(folder, {path: f"# Part\n\n{line}\n" for path, line in zip(paths, lines, strict=True)})
    take = ("import", "--markdown", str(folder))
    assert len(cli.json(*take)["added"]) == 3
    kept = {one["source"] for one in cli.json("list", "--all")}
    assert len(kept) == 3 and all("[REDACTED:mailgun-key]" in uri for uri in kept)
    again = cli.json(*take)
    changes = (again[name] for name in ("added", "changed", "moved", "vanished"))
    assert (again["unchanged"], *changes) == (3, [], [], [], [])
    plant(folder, {paths[0]: "# Part\n\nWe deploy on Mondays.\n", "copy.md": f"{lines[2]}\n"})
    (folder / paths[1]).unlink()
    third = cli.json(*take)
    assert (len(third["changed"]), len(third["vanished"])) == (1, 1)
    contents = everything(cli)
    assert KEY[1:] not in contents and "noon" not in contents
    assert "Mondays" in contents and contents.count("at night") >= 2


# What asks to be left out: `index: false` in the frontmatter, or the same as a comment, wherever it stands

OUT = "Quokkas decide about the budget, never the board"
HEADS = [
    ("docs/marsupials.md", "---\nindex: false\n---\n# Quokka plan\n\n"),
    (".claude/knowledge/gotchas.md", "<!-- vector-index: false -->\n# Quokka gotchas\n\n"),
    (
        "docs/adr/0002-quokka.md",
        "---\nvector-index: false\n---\n# 2. Let quokkas decide\n\n## Decision\n\n",
    ),
    (
        "docs/part.md",
        "# Bread\n\nBread is baked at night.\n\n## Quokkas\n<!-- index: false -->\n\n",
    ),
]


def test_a_file_that_opts_out_is_shown_nowhere(cli):
    (cli.project / ".git").mkdir()
    plant(cli.project, {name: f"{text}{OUT}.\n" for name, text in HEADS})
    bread = {"README.md": "# Shop\n\nShop sells bread.\n"}
    plant(cli.project, bread | {"docs/bread.md": "# Bread\n\nBread is baked at night.\n"})
    cli.ok("init")
    question = "Who decides about the quokka budget, the board?"
    told = [cli.ok("recall", question, "--for-agent"), everything(cli)]
    given = {"prompt": {"prompt": question}, "session-start": {"source": "startup"}}
    for event, message in given.items():
        told.append(cli.ok("hook", event, "--host", "claude", stdin=json.dumps(message)))
    searches = ((question,), ("quokka*", "--mode", "keyword"))
    told += [str(cli.json("search", *words)) for words in searches]
    with Bethink(directory=cli.project) as memory:
        assert [one["name"] for one in resources.list_resources(memory)] == ["bread.md"]
        told += [
            resources.read_resource(memory, "memory://bread.md")[1],
            use_tool(memory, "search_memories", limit=50, max_tokens=20_000),
            use_tool(memory, "search_memories", query=question),
            use_tool(memory, "memory_overview"),
        ]
        assert "baked at night" in told[-4]
        for name in ("marsupials.md", "gotchas.md", "docs/adr/0002-quokka.md", "part.md"):
            with pytest.raises(NotFound, match="no resource"):
                resources.read_resource(memory, f"memory://{name}")
    assert [
        one for one in told if "never the board" in one or "marsupials" in one or "Quokka" in one
    ] == []
