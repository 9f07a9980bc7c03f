"""The commands of daily use, through the front door: `main(argv)` on a real database."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

pytest_plugins = ["cli_runner"]

LOGIN = "Users sign in with a magic link that is valid for 15 minutes"
DEPLOY = "We deploy from main, never from a branch"
NAUGHTY = 'Pipes | and "quotes", commas,\nnew lines, <tags> & ampersands \x1b[31mred\x1b[0m'
KEYS = {"id", "kind", "scope", "content", "summary", "source", "path", "lines", "created_at"}


@pytest.fixture(params=["sqlite", "postgres"])
def store_kind(request):
    return request.param


# add


def test_add_says_what_it_did(cli):
    assert re.fullmatch(
        r"added [0-9a-f-]{8,} decision  We deploy from main, never from a branch\n",
        cli.ok("add", DEPLOY, "--kind", "decision"),
    )


def test_add_as_json_holds_only_the_keys_that_are_set(cli):
    assert set(cli.json("add", DEPLOY)) == {"id", "status"}


def test_an_exact_duplicate_is_named(cli):
    first = cli.add(DEPLOY)
    again = cli.json("add", f"  {DEPLOY}\n")
    assert again == {"id": first, "status": "duplicate", "duplicate_of": first, "similarity": 1.0}
    assert "duplicate of" in cli.ok("add", DEPLOY)


def test_a_near_duplicate_is_named_with_its_similarity(cli):
    first = cli.add(LOGIN)
    near = "The users sign in with a magic link that is valid for 15 minutes"
    again = cli.json("add", near)
    assert again["status"] == "near_duplicate"
    assert again["duplicate_of"] == first
    assert 0.9 <= again["similarity"] < 1
    told = cli("add", near)
    assert re.match(r"near duplicate of \S+ \(similarity 0\.9\d\): Users sign in", told.out)
    assert "--no-dedup" in told.err
    assert cli.json("add", near, "--no-dedup")["status"] == "added"


def test_add_keeps_everything_it_is_given(cli):
    id = cli.add(
        "Redis holds the sessions",
        "--kind",
        "architecture",
        "--importance",
        "8",
        "--confidence",
        "0.7",
        "--tag",
        "cache,infra",
        "--tag",
        "ops",
        "--entity",
        "technology:Redis",
        "--entity",
        "sessions",
        "--expires",
        "30d",
        "--summary",
        "sessions in Redis",
        "--metadata",
        "ticket=OPS-7",
        "--metadata",
        '{"port": 6379}',
        "--source",
        "review",
    )
    (kept,) = cli.json("get", id)
    assert kept["kind"] == "architecture"
    assert kept["importance"] == 8
    assert kept["confidence"] == 0.7
    assert kept["tags"] == ["cache", "infra", "ops"]
    assert {"name": "Redis", "type": "technology"} in kept["entities"]
    assert kept["summary"] == "sessions in Redis"
    assert kept["metadata"] == {"ticket": "OPS-7", "port": 6379}
    assert kept["source"] == "review"
    assert kept["expires_at"] > kept["created_at"]


def test_words_and_options_mix_freely(cli):
    id = cli.json("add", "We", "--importance", "3", "deploy", "--kind", "fact", "daily")["id"]
    assert cli.json("get", id)[0]["content"] == "We deploy daily"


@pytest.mark.parametrize("words", [["-"], []])
def test_add_reads_stdin(cli, words):
    id = cli.json("add", *words, stdin="from a pipe: naïve 東京\n")["id"]
    assert cli.json("get", id)[0]["content"] == "from a pipe: naïve 東京"


def test_add_reads_a_file_and_names_it_as_the_source(cli):
    (cli.project / "note.txt").write_bytes(b"\xef\xbb\xbfThe file says so\r\n")
    (kept,) = cli.json("get", cli.json("add", "--file", "note.txt")["id"])
    assert kept["content"] == "The file says so"
    assert kept["source"] == "note.txt"


def test_a_text_that_starts_with_a_dash_comes_after_two(cli):
    assert (
        cli.json("get", cli.json("add", "--", "--force is dangerous")["id"])[0]["content"]
        == "--force is dangerous"
    )


def test_private_parts_and_secrets_are_left_out_and_counted(cli):
    outcome = cli.json("add", "The login is <private>ops / hunter2</private> for staging")
    assert outcome["redactions"] == 1
    assert "hunter2" not in cli.json("get", outcome["id"])[0]["content"]
    assert "hunter2" not in cli("search", "hunter2 login").out
    assert (
        "1 private or secret part"
        in cli("add", "Another login is <private>x</private> for production").err
    )


def test_a_memory_can_replace_another(cli):
    old = cli.add("The orders service stores its data in MySQL")
    new = cli.json("add", "Everything lives in Postgres these days", "--supersedes", old)
    assert new["supersedes"] == [old]
    assert [one["id"] for one in cli.json("list")] == [new["id"]]


def test_purged_text_comes_back_only_by_force(cli):
    id = cli.add(DEPLOY)
    cli.ok("forget", id, "--purge", "--yes")
    assert "--force" in cli.fails("add", DEPLOY, code=1)
    assert cli.json("add", DEPLOY, "--force")["status"] == "added"


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


@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword"])
def test_search_finds_by_every_mode(stocked, mode):
    found = stocked.json("search", "magic", "link", "--mode", mode)
    assert found[0]["content"] == LOGIN
    assert KEYS | {"score"} <= set(found[0])
    assert "why" not in found[0]


def test_search_for_people_is_a_numbered_list(stocked):
    shown = stocked.ok("search", "magic link", "--limit", "1")
    assert re.match(
        r"1\. \[0\.\d\d\] decision  note:user  [0-9a-f-]{8,}\n   Users sign in with a magic link",
        shown,
    )
    assert "\x1b" not in shown


def test_explain_shows_every_signal(stocked):
    (hit,) = stocked.json("search", "magic link", "--limit", "1", "--explain")
    assert {"relevance", "cosine"} < set(hit["why"])
    assert re.search(
        r"^ +relevance +\d+\.\d+  how well",
        stocked.ok("search", "magic link", "--limit", "1", "--explain"),
        re.MULTILINE,
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--kind", "question"], {"Why is the nightly export slow?"}),
        (
            ["--kind", "question,preference"],
            {"Why is the nightly export slow?", "I prefer small pull requests"},
        ),
        (
            ["--kind", "question", "--kind", "preference"],
            {"Why is the nightly export slow?", "I prefer small pull requests"},
        ),
        (["--tag", "auth"], {LOGIN}),
        (["--tag", "AUTH,release"], {LOGIN, DEPLOY}),
        (["--entity", "git"], {DEPLOY}),
        (["--entity", "technology:Git"], {DEPLOY}),
        (["--min-importance", "8"], {LOGIN}),
        (["--personal"], {"I prefer small pull requests"}),
        (["--source", "nowhere"], set()),
        (["--session", "nowhere"], set()),
        (["--since", "1d", "--kind", "question"], {"Why is the nightly export slow?"}),
        (["--until", "1d"], set()),
        (["--since", "tomorrow"], set()),
        (["--as-of", "2020-01-01"], set()),
        (["--limit", "1"], 1),
        (["-n", "2"], 2),
        (["-n2", "--offset", "3"], 1),
    ],
)
def test_list_and_search_take_the_same_filters(stocked, options, expected):
    found = stocked.json("list", *options)
    assert (len(found) if isinstance(expected, int) else set(contents(found))) == expected
    searched = stocked.json("search", "users deploy nightly pull export magic", *options)
    assert (
        len(searched) <= expected
        if isinstance(expected, int)
        else set(contents(searched)) <= expected
    )


def test_an_intent_with_a_seed_repeats(stocked):
    once, again = (
        stocked.json("search", "deploy", "--intent", "explore", "--seed", "7") for _ in range(2)
    )
    assert [hit["score"] for hit in once] == [hit["score"] for hit in again]
    assert (
        stocked.json("search", "deploy", "--profile", "balanced", "--explain")[0]["why"][
            "importance"
        ]
        > 0
    )


def test_a_threshold_hides_weak_hits(stocked):
    assert stocked.json("search", "magic link", "--threshold", "1") == []


def test_no_hits_is_no_error(cli):
    result = cli("search", "nothing here")
    assert (result.code, result.out) == (0, "")
    assert "No memories match." in result.err
    assert "hint: " in result.err
    assert cli.json("search", "nothing here") == []
    assert cli("search", "nothing", "--quiet", "--json") == (0, "[]\n", "")


def test_projects_do_not_see_each_other_unless_asked(stocked, tmp_path):
    (tmp_path / "other").mkdir()
    other = str(tmp_path / "other")
    assert contents(stocked.json("list", "--project", other)) == ["I prefer small pull requests"]
    assert len(stocked.json("list", "--project", other, "--all-projects")) == 4
    assert (
        stocked.json("--project", other, "search", "magic link", "--all-projects", "-n1")[0][
            "content"
        ]
        == LOGIN
    )
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
        assert "[shop]" in told, command
        assert command[0] == "get" or "[personal]" in told
    assert "[shop]" not in stocked.ok("search", "magic link")
    stocked.ok("update", id, "--importance", "9", *there)
    stocked.ok("vote", id, *there)
    assert len(stocked.json("history", id, *there)) == 3
    forgotten = stocked("forget", id, *there)
    assert forgotten.code == 0 and "--all-projects`" in forgotten.err
    assert LOGIN in stocked.ok("restore", id, *there)


def test_what_is_told_outside_of_a_project_is_said_to_be_seen_there_alone(
    cli, tmp_path, monkeypatch, store_kind
):
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    for name in ("ada/notes", "ada/.bethink", "git/.git", "marked/.bethink"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "git/.git/HEAD").write_text("ref: refs/heads/main\n")

    def hinted(folder, text, *options):
        told = cli("add", text, "--project", str(tmp_path / folder), *options)
        assert told.code == 0
        return "--personal" in told.err

    if store_kind == "postgres":  # a team knows projects by their names
        assert not hinted("ada/notes", DEPLOY)
        return
    assert hinted("ada", DEPLOY) and hinted("ada", LOGIN)
    assert not hinted("ada", "I prefer tabs in Makefiles", "--personal")
    assert hinted("ada/notes", DEPLOY) and not hinted("ada/notes", LOGIN)
    assert not hinted("git", DEPLOY) and not hinted("marked", DEPLOY)


def test_a_container_is_a_scope_of_its_own(cli):
    cli.add("Routes are nested", "--container", "React Router")
    assert cli.json("list") == []
    assert contents(cli.json("--container", "react-router", "list")) == ["Routes are nested"]


def test_global_options_may_stand_before_or_after(cli, tmp_path):
    database = str(tmp_path / "elsewhere.db")
    cli.ok("--database", database, "add", DEPLOY)
    assert contents(json.loads(cli.ok("--json", "--database", database, "list"))) == [DEPLOY]
    assert contents(json.loads(cli.ok("list", f"--database={database}", "--json"))) == [DEPLOY]
    assert cli.json("list") == []


def test_a_replaced_memory_shows_as_a_chain(cli):
    first = cli.add("Orders are kept in MySQL")
    second = cli.add("Orders are kept in Postgres", "--supersedes", first, "--no-dedup")
    third = cli.add("Orders are kept in CockroachDB", "--supersedes", second, "--no-dedup")
    (hit,) = cli.json("search", "orders", "--mode", "keyword")
    assert hit["id"] == third
    assert [other["id"] for other in hit["related"]] == [second, first]
    shown = cli.ok("recall", "where are orders kept?")
    assert (
        shown.index("CockroachDB")
        < shown.index("supersedes")
        < shown.index("Postgres")
        < shown.index("MySQL")
    )
    assert {one["id"] for one in cli.json("list", "--include-superseded")} == {first, second, third}


@pytest.mark.parametrize(
    "command", [["recall"], ["search", "--dual"], ["search", "--max-tokens", "1000"]]
)
def test_the_index_and_details_form(stocked, command):
    both = stocked.json(*command, "magic link")
    assert set(both) == {
        "query",
        "index",
        "details",
        "total_count",
        "has_more",
        "tokens_used",
        "hints",
        "topics",
    }
    assert both["query"] == "magic link"
    assert set(both["index"][0]) == {"id", "summary", "kind", "score"}
    assert both["details"][0]["content"] == LOGIN
    shown = stocked.ok(*command, "magic link")
    assert shown.startswith(f"1. {LOGIN}\n   decision · note:user · ")
    assert "confidence" in shown
    assert re.search(r"\d match(es)?, \d in full, \d in the index, about \d+ tokens\.\n$", shown)


def test_recall_keeps_within_its_budget(cli):
    for number in range(12):
        cli.add(f"Fact {number} about the harbour: " + f"ship{number} " * 40)
    both = cli.json("recall", "harbour", "--max-tokens", "500")
    assert both["tokens_used"] <= 500
    assert both["index"]
    assert both["details"]
    assert both["has_more"] == (both["total_count"] > len(both["index"]))


# Formats


def test_csv_gives_everything_back(cli):
    cli.add(NAUGHTY)
    rows = list(
        csv.DictReader(io.StringIO(cli.ok("search", "pipes quotes", "--format", "csv"), newline=""))
    )
    assert list(rows[0]) == [
        "id",
        "score",
        "kind",
        "scope",
        "source",
        "path",
        "lines",
        "created_at",
        "summary",
        "content",
    ]
    assert rows[0]["content"] == NAUGHTY
    assert 0 <= float(rows[0]["score"]) <= 1


def test_markdown_is_one_table_row_per_memory(cli):
    cli.add(NAUGHTY)
    head, rule, row, *rest = cli.ok("list", "--format", "md").splitlines()
    assert rest == []
    assert (
        len(re.split(r"(?<!\\)\|", head))
        == len(re.split(r"(?<!\\)\|", rule))
        == len(re.split(r"(?<!\\)\|", row))
    )
    assert r"Pipes \| and" in row


def test_xml_is_well_formed_whatever_is_stored(cli):
    cli.add(NAUGHTY)
    root = ElementTree.fromstring(cli.ok("search", 'pipes "& <', "--format", "xml"))
    assert root.tag == "searchResults"
    assert root.attrib["query"] == 'pipes "& <'
    assert root[0].tag == "result"
    assert root[0].findtext("content") == NAUGHTY.replace("\x1b", "")
    assert ElementTree.fromstring(cli.ok("list", "--format", "xml"))[0].findtext("kind")


def test_text_cannot_steer_the_terminal(cli):
    id = cli.add(NAUGHTY + "\u202eevil")
    for command in (
        ["search", "pipes"],
        ["recall", "pipes"],
        ["list"],
        ["get", id],
        ["history", id],
        ["export", "--format", "text"],
    ):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", cli.ok(*command))


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


def test_get_shows_everything_and_counts_the_use(cli):
    old = cli.add("Orders are kept in MySQL")
    id = cli.add(DEPLOY, "--tag", "release", "--metadata", "ticket=7", "--supersedes", old)
    shown = cli.ok("get", id)
    assert id in shown
    assert DEPLOY in shown
    for part in ("release", "ticket=7", "importance", "supersedes"):
        assert part in shown
    assert cli.json("get", id)[0]["access_count"] == 2
    assert "(replaced by" in cli.ok("get", old)
    assert len(cli.json("get", id, old)) == 2


def test_ids_are_any_unique_beginning(cli):
    one, two = cli.add(DEPLOY), cli.add(LOGIN)
    shared = len(one) - len(one.lstrip()) + next(at for at in range(len(one)) if one[at] != two[at])
    assert cli.json("get", one[: shared + 1])[0]["id"] == one
    assert cli.json("get", one.replace("-", "").upper())[0]["id"] == one
    printed = re.match(r"(\S+) ", cli.ok("list", "--tag", "none", "--all") or cli.ok("list")).group(
        1
    )
    assert cli.json("get", printed)[0]["id"] == two


def test_list_orders(cli):
    low, high = cli.add(DEPLOY, "--importance", "1"), cli.add(LOGIN, "--importance", "9")
    cli.ok("get", low)
    cli.ok("vote", high, "2")
    cli.ok("vote", high)
    cli.ok("update", low, "--confidence", "0.5")
    orders = {
        "created": high,
        "oldest": low,
        "importance": high,
        "used": high,
        "useful": high,
        "updated": low,
    }
    for order, first in orders.items():
        assert cli.json("list", "--order", order)[0]["id"] == first, order


def test_list_says_when_there_is_more(cli):
    for number in range(22):
        cli.add(
            f"Statement {'abcdefghijklmnopqrstuvwxyz'[number] * 9} number {number}", "--no-dedup"
        )
    result = cli("list")
    assert len(result.out.splitlines()) == 20
    assert "20 of 22" in result.err
    assert len(cli.ok("list", "--all").splitlines()) == 22
    assert cli("list", "--quiet").err == ""


def test_update_changes_only_what_is_given(cli):
    id = cli.add(DEPLOY, "--tag", "release")
    changed = cli.json("update", id, "--importance", "9", "--kind", "decision")
    assert (changed["importance"], changed["kind"], changed["tags"], changed["content"]) == (
        9,
        "decision",
        ["release"],
        DEPLOY,
    )
    assert cli.json("update", id, "--tag", "")["tags"] == []
    assert (
        cli.json("update", id, "--content", "- dashes\n- are fine")["content"]
        == "- dashes\n- are fine"
    )
    assert cli.json("update", id, "--content", "-", stdin="from stdin")["content"] == "from stdin"
    assert cli.json("search", "stdin", "--mode", "keyword")[0]["id"] == id
    assert cli.ok("update", id, "--summary", "new summary").startswith("updated ")


def test_questions_are_answered_and_opened_again(cli):
    id = cli.add("Why is the export slow?", "--kind", "question")
    assert cli.json("update", id, "--answered")["answered"] is True
    assert cli.json("update", id, "--open")["answered"] is False


def test_forget_hides_and_restore_brings_back(cli):
    id = cli.add(DEPLOY)
    result = cli("forget", id)
    assert result.out.startswith("forgotten ")
    assert f"bethink restore {id[:8]}" in result.err
    assert cli.json("list") == []
    assert "(forgotten)" in cli.ok("list", "--include-deleted")
    assert cli.ok("restore", id).startswith("restored ")
    assert contents(cli.json("list")) == [DEPLOY]


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


def test_restore_goes_back_to_a_version(cli):
    id = cli.add(DEPLOY)
    cli.ok("update", id, "--content", "We deploy from anywhere")
    cli.ok("update", id, "--importance", "9")
    assert cli.json("restore", id, "--to", "1")["content"] == DEPLOY
    assert "neither forgotten nor replaced" in cli.fails("restore", id, code=2)
    assert "no version 99" in cli.fails("restore", id, "--to", "99", code=1)


@pytest.mark.parametrize(
    ("words", "usefulness"), [([], 1), (["3"], 3), (["-1"], -1), (["-2.5"], -2.5), (["--down"], -1)]
)
def test_votes_may_be_negative(cli, words, usefulness):
    assert cli.json("vote", cli.add(DEPLOY), *words)["usefulness"] == usefulness


def test_links_are_made_and_removed(cli):
    new, old = cli.add("Orders live in Postgres now"), cli.add("The orders were in MySQL once")
    assert cli.json("link", new, "supersedes", old) == {
        "source": new,
        "type": "supersedes",
        "target": old,
        "status": "linked",
    }
    assert [one["id"] for one in cli.json("list")] == [new]
    assert cli.json("link", new, "supersedes", old, "--remove")["status"] == "removed"
    assert len(cli.json("list")) == 2
    assert cli.json("link", new, old)["type"] == "relates_to"
    assert cli.json("link", new, "builds-on", old)["type"] == "builds_on"
    assert cli.ok("link", new, "contradicts", old).startswith("linked ")


def test_history_numbers_the_versions_and_shows_what_changed(cli):
    id = cli.add(DEPLOY, "--importance", "5")
    cli.ok("update", id, "--importance", "9", "--tag", "a,b")
    cli.ok(
        "update",
        id,
        "--content",
        "We deploy from main, after two reviews and a green build of everything that is affected by it",
    )
    cli.ok("forget", id)
    versions = cli.json("history", id)
    assert [version["version"] for version in versions] == [1, 2, 3, 4]
    assert [version["action"] for version in versions] == ["add", "update", "update", "forget"]
    assert (versions[1]["before"]["importance"], versions[1]["after"]["importance"]) == (5, 9)
    assert versions[1]["after"]["tags"] == ["a", "b"]
    assert versions[3]["after"]["deleted_at"].endswith("Z")
    shown = cli.ok("history", id)
    assert "importance: 5.0 → 9.0" in shown
    assert f"- {DEPLOY}" in shown
    assert "+ We deploy from main, after two reviews" in shown
    assert cli.ok("history", id, "--format", "csv").startswith(
        "version,at,actor,action,before,after"
    )


# Numbers and exports


def test_stats_counts(stocked):
    numbers = stocked.json("stats")
    assert numbers["memories"] == 4
    assert numbers["by_kind"] == {"decision": 2, "preference": 1, "question": 1}
    assert sorted(numbers["by_scope"].values()) == [1, 3]
    assert numbers["database_bytes"] > 0
    assert Path(numbers["database"]).name.startswith(("memory.db", "bethink_"))
    names = {
        "deleted",
        "entities",
        "relations",
        "sources",
        "sessions",
        "spans",
        "vectors",
        "unembedded",
        "cached",
        "bytes_per_memory",
    }
    assert names <= set(numbers)
    shown = stocked.ok("stats")
    assert "4 memories" in shown
    assert "shop (here)" in shown
    assert re.search(r"decision +2", shown)
    assert stocked.json("stats", "--this-project", "--project", "/")["memories"] == 1


def test_export_holds_everything_in_every_format(stocked, tmp_path):
    gone = stocked.json("list", "--kind", "question")[0]["id"]
    stocked.ok("forget", gone)
    exported = json.loads(stocked.ok("export"))
    assert len(exported) == 4
    assert {one["id"] for one in exported if one["deleted_at"]} == {gone}
    assert [json.loads(line) for line in stocked.ok("export", "--jsonl").splitlines()] == exported
    rows = list(csv.DictReader(io.StringIO(stocked.ok("export", "--format", "csv"), newline="")))
    assert [row["content"] for row in rows] == [one["content"] for one in exported]
    assert len(ElementTree.fromstring(stocked.ok("export", "--format", "xml"))) == 4
    assert len(stocked.ok("export", "--format", "md").splitlines()) == 6
    assert LOGIN in stocked.ok("export", "--format", "text")
    assert contents(json.loads(stocked.ok("export", "--kind", "preference"))) == [
        "I prefer small pull requests"
    ]


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
