"""An export read back: whole, any number of times, and without what may not come in."""

from __future__ import annotations

import gzip
import json

import pytest
from cli_runner import cli  # noqa: F401
from test_conversations import CHOICE, transcript


@pytest.fixture(params=["sqlite", "postgres"])
def store_kind(request):
    return request.param


def fill(cli):  # noqa: F811
    first = cli.add(
        "We deploy from main, never from a branch",
        "--kind",
        "decision",
        "--metadata",
        "ticket=OPS-7",
    )
    second = cli.add("We deploy after two reviews", "--supersedes", first)
    third = cli.add(
        "Sessions are kept in Redis",
        "--tag",
        "cache",
        "--entity",
        "technology:Redis",
        "--importance",
        "8",
        "--expires",
        "30d",
    )
    gone = cli.add("Nobody wants this")
    cli.ok("forget", gone)
    cli.ok("vote", third, "2")
    cli.ok("link", third, "builds_on", second)
    cli.add("I like short commits", "--personal")
    (cli.project / "docs").mkdir()
    (cli.project / "docs" / "a.md").write_text("# Guide\n\nLint with ruff before each commit.\n")
    cli.ok("index", "docs")
    return first, second, third, gone


def exported(cli, *options):  # noqa: F811
    return {one["id"]: one for one in json.loads(cli.ok("export", *options))}


def emptied(cli):  # noqa: F811
    """The same database with nothing in it."""
    for scope in ("this", "personal"):
        cli.ok("reset", "--scope", scope, "--yes")
    assert exported(cli) == {}


@pytest.mark.parametrize("form", ["json", "jsonl", "gzip"])
def test_an_export_comes_back_as_it_was(cli, tmp_path, form):  # noqa: F811
    _, second, third, _ = fill(cli)
    file = tmp_path / "memories"
    cli.ok("export", "--output", str(file), *(() if form == "json" else ("--jsonl",)))
    if form == "gzip":
        file.write_bytes(gzip.compress(file.read_bytes()))
    before = exported(cli)
    emptied(cli)
    assert (
        cli.json("import", str(file), "--trusted", "--dry-run")["added"] == 6
        and exported(cli) == {}
    )
    done = cli.json("import", str(file), "--trusted")
    assert done == {
        "added": 6,
        "known": 0,
        "purged": 0,
        "redactions": 0,
        "relations": 2,
        "dry_run": False,
    }
    assert exported(cli) == before
    for mode in ("keyword", "vector"):
        assert cli.json("search", "kept in Redis", "--mode", mode)[0]["id"] == third
    assert cli.json("list", "--entity", "Redis")[0]["id"] == third
    assert {relation["type"] for relation in before[second]["relations"]} == {"supersedes"}
    assert cli.json("index", "docs")["memories"] == {"added": 0, "kept": 1, "retired": 0}
    assert cli("doctor", "--deep").code == 0


def test_it_may_be_read_any_number_of_times_and_what_is_known_stays(cli, tmp_path, monkeypatch):  # noqa: F811
    fill(cli)
    file = tmp_path / "memories.json"
    cli.ok("export", "--output", str(file))
    before = exported(cli)
    assert "added 0 memories, 6 known already" in cli.ok("import", str(file))
    assert exported(cli) == before
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    known = cli.add("Sessions are kept in Redis")
    assert (
        cli.json("import", str(file))["added"] == 4
    )  # what is personal and what was told here is known
    assert cli.json("import", str(file))["added"] == 0
    found = cli.json("list", "--include-superseded")
    assert [one["id"] for one in found if one["content"] == "Sessions are kept in Redis"] == [known]
    replaced = next(one for one in found if one["content"].startswith("We deploy from"))
    successor = next(one for one in found if one["content"].startswith("We deploy after"))
    assert replaced["superseded_by"] == successor["id"] and successor["id"] not in before
    assert {link["target"] for link in exported(cli)[successor["id"]]["relations"]} == {
        replaced["id"]
    }


def test_a_strangers_file_brings_neither_secrets_nor_trust_nor_what_was_purged(cli, tmp_path):  # noqa: F811
    gone = cli.add("The old staging host is alpha")
    cli.add("Sessions are kept in Redis")
    file = tmp_path / "memories.json"
    cli.ok("export", "--output", str(file))
    cli.ok("forget", gone, "--purge", "--yes")
    emptied(cli)
    text = json.loads(file.read_text())
    text[1]["content"] += " with the password=hunter2hunter2hunter2"
    file.write_text(json.dumps(text))
    done = cli.json("import", str(file))
    assert (done["added"], done["purged"], done["redactions"]) == (1, 1, 1)
    (one,) = cli.json("list")
    assert one["trust"] == 1 and "hunter2" not in json.dumps(one) and "REDACTED" in one["content"]


def test_conversations_that_came_back_are_not_read_twice(cli, tmp_path):  # noqa: F811
    talk = transcript(tmp_path / "t" / "one.jsonl", "s-one", cli.project, *CHOICE)
    cli.ok("backfill", str(talk))
    file = tmp_path / "memories.json"
    cli.ok("export", "--output", str(file))
    number = len(exported(cli))
    emptied(cli)
    cli.ok("import", str(file))
    assert len(exported(cli)) == number
    assert cli.json("backfill", str(talk))["turns"] == 0
    assert len(exported(cli)) == number


def test_memories_of_several_projects_go_to_each_of_them(cli, tmp_path, monkeypatch):  # noqa: F811
    cli.add("Something of the shop")
    cli.ok("add", "A route of the shop", "--container", "router")
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    cli.add("Something of another")
    file = tmp_path / "memories.json"
    cli.ok("export", "--all-projects", "--output", str(file))
    cli.ok("reset", "--scope", "all", "--yes")
    cli.ok("import", str(file))
    assert [one["content"] for one in cli.json("list")] == ["Something of another"]
    monkeypatch.chdir(cli.project)
    assert [one["content"] for one in cli.json("list")] == ["Something of the shop"]
    assert [one["content"] for one in cli.json("list", "--container", "router")] == [
        "A route of the shop"
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hello", "is no export of Bethink"),
        ("[1]", "Memory 1 of"),
        ("[{}]", "it has no 'content'"),
        ('[{"content": "x"}]', "it has no 'summary'"),
        ("[" * 5000, "is no export"),
        ("\xff", "is no export"),
        ("\x1f\x8bnot gzip", "cannot be read"),
    ],
)
def test_what_is_no_export_is_refused_and_nothing_is_stored(cli, tmp_path, text, said):  # noqa: F811
    file = tmp_path / "memories.json"
    file.write_bytes(text.encode("latin-1"))
    assert said in cli.fails("import", str(file), code=2)
    assert exported(cli) == {}


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "nonsense"},
        {"importance": 99},
        {"created_at": "soon"},
        {"content": " "},
        {"trust": "all"},
        {"lines": [1]},
    ],
)
def test_one_wrong_value_refuses_the_file(cli, tmp_path, change):  # noqa: F811
    cli.add("Sessions are kept in Redis")
    cli.add("Barn owls hunt at night")
    (first, second), file = exported(cli).values(), tmp_path / "memories.json"
    emptied(cli)
    file.write_text(json.dumps([first, {**second, **change}]))
    assert "Memory 2 of" in cli.fails("import", str(file), code=2)
    assert exported(cli) == {}


def test_options_of_one_form_are_not_for_another(cli, tmp_path):  # noqa: F811
    (tmp_path / "a.md").write_text("# A\n")
    assert "--markdown" in cli.fails("import", str(tmp_path / "a.md"), code=2)
    assert "nothing at" in cli.fails("import", str(tmp_path / "none.json"), code=1)
    assert "Give one" in cli.fails("import", code=2)
    assert "go with an export" in cli.fails(
        "import", "--markdown", str(tmp_path / "a.md"), "--trusted", code=2
    )
