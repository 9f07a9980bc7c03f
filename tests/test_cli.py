"""The commands of daily use, through the front door: `main(argv)` on a real database."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ElementTree

import pytest

from bethink.types import KINDS

pytest_plugins = ["cli_runner"]

LOGIN = "Users sign in with a magic link that is valid for 15 minutes"
DEPLOY = "We deploy from main, never from a branch"
NAUGHTY = 'Pipes | and "quotes", commas,\nnew lines, <tags> & ampersands \x1b[31mred\x1b[0m'


@pytest.fixture(params=["sqlite", "postgres"])
def store_kind(request):
    return request.param


# add


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["We", "--importance", "3", "deploy", "--kind", "fact", "daily"], "We deploy daily"),
        (["--", "--force is dangerous"], "--force is dangerous"),
    ],
)
def test_words_and_options_mix_freely_and_behind_two_dashes_all_are_words(cli, words, text):
    assert cli.json("get", cli.add(*words))[0]["content"] == text


# search


@pytest.fixture
def stocked(cli):
    cli.add(LOGIN, "--kind", "decision", "--tag", "auth", "--importance", "8")
    cli.add(DEPLOY, "--kind", "decision", "--tag", "release", "--entity", "technology:Git")
    cli.add("Why is the nightly export slow?", "--kind", "question", "--importance", "2")
    cli.add("I prefer small pull requests", "--kind", "preference", "--personal")
    return cli


def contents(found):
    return [one["content"] for one in found]


def test_projects_do_not_see_each_other_unless_asked(stocked, tmp_path):
    (tmp_path / "other").mkdir()
    other = str(tmp_path / "other")
    assert contents(stocked.json("list", "--project", other)) == ["I prefer small pull requests"]
    assert len(stocked.json("list", "--project", other, "--all-projects")) == 4
    found = stocked.json("--project", other, "search", "magic link", "--all-projects", "-n1")
    assert contents(found) == [LOGIN]
    id = stocked.json("list", "--tag", "auth")[0]["id"]
    refused = stocked.fails("get", id, "--project", other, code=1)
    assert "no memory" in refused and "--all-projects" in refused
    assert stocked.json("get", id, "--project", other, "--all-projects")[0]["content"] == LOGIN


def test_what_all_projects_finds_tells_its_project_and_can_be_changed(stocked, tmp_path):
    (tmp_path / "other").mkdir()
    there = ("--project", str(tmp_path / "other"), "--all-projects")
    id = stocked.json("list", "--tag", "auth")[0]["id"]
    for command in (["search", "magic link"], ["recall", "magic link"], ["list"], ["get", id]):
        told = stocked.ok(*command, *there)
        assert "in shop" in told, command
        assert command[0] == "get" or "in personal" in told
    assert "in shop" not in stocked.ok("search", "magic link")
    stocked.ok("update", id, "--importance", "9", *there)
    stocked.ok("vote", id, *there)
    assert len(stocked.json("history", id, *there)) == 3
    forgotten = stocked("forget", id, *there)
    assert forgotten.code == 0 and "--all-projects`" in forgotten.err
    assert LOGIN in stocked.ok("restore", id, *there)


def test_what_is_told_outside_of_a_project_is_said_to_be_seen_there_alone(
    cli, tmp_path, store_kind
):
    for name in ("notes", "git/.git", "marked/.bethink"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "git/.git/HEAD").write_text("ref: refs/heads/main\n")

    def hinted(folder, text):
        return "--personal" in cli("add", text, "--project", str(tmp_path / folder)).err

    # A team knows projects by their names.
    assert hinted("notes", DEPLOY) == (store_kind == "sqlite") and not hinted("notes", LOGIN)
    assert not hinted("git", DEPLOY) and not hinted("marked", DEPLOY)


def test_a_container_is_a_scope_of_its_own(cli):
    cli.add("Routes are nested", "--container", "React Router")
    assert cli.json("list") == []
    assert contents(cli.json("--container", "react-router", "list")) == ["Routes are nested"]


def test_what_lies_in_a_container_is_forgotten_and_restored_there(cli):
    id = cli.add("Routes are nested", "--container", "React Router")
    for command in ("forget", "get", "restore"):
        assert "add `--container react-router`" in cli.fails(command, id, code=1)
    hint = cli("forget", id, "--container", "React Router").err
    assert f"bethink restore {id[:8]}" in hint and "--container 'React Router'`" in hint
    assert cli.json("restore", id, "--container", "react-router")["deleted_at"] is None


@pytest.mark.parametrize(("name", "meant"), [("delete", "forget"), ("serch", "search")])
def test_a_command_that_is_none_is_told_which_is_meant(cli, name, meant):
    assert f"Did you mean '{meant}'?" in cli.fails(name, "x", code=2)


def test_weights_of_ones_own(cli):
    low = cli.add("The deploy runs on Friday", "--importance", "1")
    high = cli.add("The deploy runs on Monday", "--importance", "9")

    def first(*how):
        return cli.json("search", "deploy Friday", "--mode", "keyword", *how)[0]["id"]

    assert first() == first("--intent", "relevance") == low
    assert first("--profile", "importance=0.5") == high
    assert "Did you mean 'balanced'?" in cli.fails("search", "x", "--intent", "balancd", code=2)
    assert "'size=1' are no weights" in cli.fails("search", "x", "--intent", "size=1", code=2)


def test_entities_may_be_a_comma_list(cli):
    cli.add("The queue is shared", "--entity", "Redis, person:Ada")
    cli.add("The cache is warm", "--entity", "Valkey")
    cli.add("The door is red")
    for asked in (["--entity", "Redis,Valkey"], ["--entity", "Ada", "--entity", "Valkey"]):
        found = contents(cli.json("search", "the", "--mode", "keyword", *asked))
        assert set(found) == {"The queue is shared", "The cache is warm"}, asked
        assert set(contents(cli.json("list", *asked))) == set(found)


def test_every_kind_can_be_told_and_asked_for(cli):
    for kind in KINDS:
        cli.add(f"A memory of the kind {kind} and of no other", "--kind", kind, "--no-dedup")
    for kind in KINDS:
        assert [one["kind"] for one in cli.json("list", "--kind", kind)] == [kind]


# Formats


def test_csv_gives_everything_back(cli):
    cli.add(NAUGHTY)
    shown = cli.ok("search", "pipes quotes", "--format", "csv")
    [row] = csv.DictReader(io.StringIO(shown, newline=""))
    fields = "id score kind scope source path lines created_at summary content"
    assert list(row) == fields.split() and row["content"] == NAUGHTY
    assert 0 <= float(row["score"]) <= 1


def test_xml_is_well_formed_whatever_is_stored(cli):
    cli.add(NAUGHTY)
    root = ElementTree.fromstring(cli.ok("search", 'pipes "& <', "--format", "xml"))
    assert (root.tag, root.attrib["query"], root[0].tag) == (
        "searchResults",
        'pipes "& <',
        "result",
    )
    assert root[0].findtext("content") == NAUGHTY.replace("\x1b", "")


def test_an_explicit_format_wins_over_json(stocked):
    assert stocked.ok("list", "--json", "--format", "csv").startswith("id,score,")
    assert stocked.ok("--format", "md", "list", "--json").startswith("| id |")


@pytest.mark.parametrize("format", ["csv", "md", "xml", "json"])
@pytest.mark.parametrize("command", [["search", "zebra"], ["list"], ["export"]])
def test_every_format_can_be_empty(cli, command, format):
    shown = cli.ok(*command, "--format", format)
    if format == "json":
        assert json.loads(shown) == []
    elif format == "xml":
        assert len(ElementTree.fromstring(shown)) == 0
    else:
        assert len(shown.splitlines()) == {"csv": 1, "md": 2}[format]


# By id


def test_ids_are_any_unique_beginning(cli):
    one, two = cli.add(DEPLOY), cli.add(LOGIN)
    shared = next(at for at in range(len(one)) if one[at] != two[at])
    for typed in (one[: shared + 1], one.replace("-", "").upper()):
        assert cli.json("get", typed)[0]["id"] == one
    assert cli.json("get", cli.ok("list").split()[0])[0]["id"] == two


def test_forgetting_a_replacement_tells_what_stays_hidden(cli):
    old = cli.add("Orders are kept in MySQL")
    new = cli.add("Everything lives in Postgres these days", "--supersedes", old)
    told = cli("forget", new).err
    assert "stays hidden too" in told
    cli.ok("restore", re.search(r"`bethink restore (\S+)` brings", told)[1])
    assert [one["id"] for one in cli.json("list")] == [old]


def test_purge_asks_on_a_terminal(cli):
    id = cli.add(DEPLOY)
    assert "Nothing was changed" in cli("forget", id, "--purge", stdin="n\n", terminal=True).err
    assert len(cli.json("list")) == 1
    result = cli("forget", id, "--purge", "--json", stdin="y\n", terminal=True)
    assert json.loads(result.out) == [{"id": id, "status": "purged"}]
    assert "cannot be undone" in result.err
    assert cli.json("list", "--include-deleted") == []


# Numbers and exports


def test_export_into_a_file(stocked, tmp_path):
    target = tmp_path / "out.json"
    target.write_text("old")
    result = stocked("export", "--output", str(target))
    assert result.out == ""
    assert "4 memories written" in result.err
    assert len(json.loads(target.read_text())) == 4
    assert target.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []
    assert "cannot be written" in stocked.fails(
        "export", "-o", str(tmp_path / "no" / "where.json"), code=1
    )
    assert stocked("export", "-o", "/dev/null").code == 0
    assert "not both" in stocked.fails("export", "--jsonl", "--json", code=2)
