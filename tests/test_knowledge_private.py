"""What is private in a project's files and history stays out of memory, whichever reader takes it apart."""

from __future__ import annotations

import json
import subprocess

import pytest
from cli_runner import cli  # noqa: F401
from memories import use_tool

from bethink import Bethink
from bethink.errors import NotFound
from bethink.surface.mcp import tools

TOLD = "Globex pays 40 million"
KEY = "0123456789abcdef0123456789abcdef"  # behind `key-` the form of a vendor's key
FILES = {
    "README.md": f"# Shop\n\n<private>\n\nThe shop exists because {TOLD}.\n\n## Decisions\n\nWe decided to use Redis because {TOLD}.\n\n"
    "</private>\n\nShop sells bread.\n",
    "docs/adr/0001-kafka.md": f"# 1. Use Kafka\n\n## Status\n\nAccepted\n\n<private>\n\n## Context\n\n{TOLD}.\n\n## Decision\n\nWe will use "
    f"Kafka because {TOLD}.\n\n</private>\n\n## Consequences\n\nWe run brokers.\n",
    "CLAUDE.md": f"# Rules\n\n<private>\n\n## Gotchas\n\n- Never tell anyone that {TOLD}.\n\n</private>\n\n- Run tests with make\n",
    "Makefile": f"# <private>\ndeploy: ## deploys what {TOLD} for\n\ttrue\n# </private>\n\ntest: ## runs the tests\n\tpytest\n",
    "shop.py": f'"""Sells bread."""\n\n# <private>\n\n\ndef deal():\n    """A deal: {TOLD}."""\n\n\n# </private>\n\n\ndef bake():\n    """Bakes bread."""\n',
}


@pytest.fixture
def project(cli):  # noqa: F811
    for name, text in FILES.items():
        (cli.project / name).parent.mkdir(parents=True, exist_ok=True)
        (cli.project / name).write_text(text)
    return cli


def everything(cli) -> str:  # noqa: F811
    return str(cli.json("list", "--all"))


@pytest.mark.parametrize("command", ["analyze", "map"])
def test_readers_see_no_private_part_of_a_file(project, command):
    project.ok(command)
    told = everything(project)
    assert "Globex" not in told and "40 million" not in told
    assert "Bakes bread" in told if command == "map" else "runs the tests" in told


def test_the_map_that_goes_out_holds_no_private_part_and_every_line_stays_where_it_was(project):
    (entry,) = [one for one in project.json("map", "--json") if one["path"] == "shop.py"]
    assert "Globex" not in str(entry) and entry["lines"] == FILES["shop.py"].count("\n")
    assert (
        f"{FILES['shop.py'].splitlines().index('def bake():') + 1}: def bake()" in entry["content"]
    )


def test_commits_are_read_without_their_private_parts(cli):  # noqa: F811
    def git(*arguments):
        subprocess.run(
            ["git", "-C", cli.project, "-c", "user.name=ada", "-c", "user.email=ada@x", *arguments],
            check=True,
            capture_output=True,
        )

    git("init")
    (cli.project / "x").write_text("1")
    git("add", ".")
    why = "We replaced RabbitMQ because it lost messages under load."
    private = f"<private>\n\nWe did it because {TOLD}.\n\n</private>"
    git("commit", "-m", f"Switch the queue to Kafka\n\n{private}\n\n{why}")
    cli.ok("analyze", "--git")
    assert "Globex" not in everything(cli) and "lost messages under load" in everything(cli)


def test_files_named_like_secrets_stay_apart_and_their_names_out(cli):  # noqa: F811
    folder = cli.project / "docs"
    folder.mkdir()
    lines = ["We deploy on Fridays.", "Lunch is at noon.", "Tests run at night."]
    for number, line in enumerate(lines):
        (folder / f"key-{number}{KEY[1:]}.md").write_text(f"# Part {number}\n\n{line}\n")

    def index():
        return cli.json("import", "--markdown", str(folder))

    def sources():
        return {one["source"] for one in cli.json("list", "--all")}

    assert len(index()["added"]) == 3
    kept = sources()
    assert len(kept) == 3 and all("[REDACTED:mailgun-key]" in uri for uri in kept)
    again = index()
    changes = (again[name] for name in ("added", "changed", "moved", "vanished"))
    assert (again["unchanged"], *changes) == (3, [], [], [], [])
    (folder / f"key-0{KEY[1:]}.md").write_text("# Part 0\n\nWe deploy on Mondays.\n")
    (folder / f"key-1{KEY[1:]}.md").unlink()
    (folder / "copy.md").write_text(f"# Part 2\n\n{lines[2]}\n")
    third = index()
    assert (len(third["changed"]), len(third["vanished"])) == (1, 1)
    contents = everything(cli)
    assert KEY[1:] not in contents and "noon" not in contents
    assert "Mondays" in contents and contents.count("at night") >= 2


def test_a_name_is_text_too_without_its_secrets_and_on_one_line(cli):  # noqa: F811
    token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    name = f"bad\nname\x1b[31m {token}"
    files = {
        f"{name}.md": "# A\n\nSome sentence about the thing here.\n",
        f"{name}.py": 'def f():\n    """Does it."""\n',
        f"{name}/Makefile": "test: ## runs the tests\n\tpytest\n",
        f"{name}/broken.md": b"\0\0",
    }
    for path, text in files.items():
        (cli.project / path).parent.mkdir(exist_ok=True)
        (cli.project / path).write_bytes(text if isinstance(text, bytes) else text.encode())
    said = "".join(cli.ok(*command) for command in (["index", "."], ["map"], ["analyze"]))
    said += str(cli.json("map", "--json")) + everything(cli)
    assert token not in said and "\x1b" not in said
    found = cli.json("list", "--all")
    assert {one["kind"] for one in found} >= {"document", "code", "pattern"}
    for one in found:
        texts = [one["source"], one["section"], one["summary"], str(one["metadata"].get("path"))]
        assert not any("\n" in text for text in texts), one
        assert "bad\n" not in one["content"]


# What asks to be left out: `index: false` in the frontmatter, or the same as a comment, wherever it stands

OUT = "Quokkas decide about the budget, never the board"
HEADS = {
    "docs/marsupials.md": "---\nindex: false\n---\n# Quokka plan\n\n",
    ".claude/knowledge/gotchas.md": "<!-- vector-index: false -->\n# Quokka gotchas\n\n",
    "docs/adr/0002-quokka.md": "---\nvector-index: false\n---\n# 2. Let quokkas decide\n\n## Decision\n\n",
    "docs/part.md": "# Bread\n\nBread is baked at night.\n\n## Quokkas\n<!-- index: false -->\n\n",
}


def test_what_asks_to_be_left_out_is_told_and_listed_by_nobody(cli):  # noqa: F811
    (cli.project / ".git").mkdir()
    (cli.project / "README.md").write_text("# Shop\n\nShop sells bread.\n")
    for name, text in HEADS.items():
        (cli.project / name).parent.mkdir(parents=True, exist_ok=True)
        (cli.project / name).write_text(f"{text}{OUT}.\n")
    (cli.project / "docs/bread.md").write_text("# Bread\n\nBread is baked at night.\n")
    cli.ok("init")
    question = "Who decides about the quokka budget, the board?"
    told = [
        cli.ok("search", question, "--json"),
        cli.ok("search", "quokka*", "--mode", "keyword", "--json"),
        cli.ok("recall", question, "--for-agent"),
        everything(cli),
        cli.ok("hook", "prompt", "--host", "claude", stdin=json.dumps({"prompt": question})),
        cli.ok(
            "hook", "session-start", "--host", "claude", stdin=json.dumps({"source": "startup"})
        ),
    ]
    with Bethink(directory=cli.project) as memory:
        names = [one["name"] for one in tools.list_resources(memory)]
        assert names == ["bread.md"]
        told += [
            tools.read_resource(memory, "memory://bread.md")[1],
            use_tool(memory, "search_memories", limit=50, max_tokens=20_000),
            use_tool(memory, "search_memories", query=question),
            use_tool(memory, "memory_overview"),
        ]
        assert "baked at night" in told[-4]
        for name in ("marsupials.md", "gotchas.md", "docs/adr/0002-quokka.md", "part.md"):
            with pytest.raises(NotFound, match="no resource"):
                tools.read_resource(memory, f"memory://{name}")
    for one in told:
        assert "never the board" not in one and "marsupials" not in one and "Quokka" not in one
