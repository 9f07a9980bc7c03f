"""A project whose folder was moved or renamed: the hint, bringing its memories over, and what is refused."""

from __future__ import annotations

import os
import subprocess

import pytest
from cli_runner import cli  # noqa: F401
from hooking import Shop, context
from test_conversations import CHANGE, CHOICE, transcript

from bethink import project
from bethink.features import adoption
from bethink.hooks import pause
from bethink.hooks.run import run

REMOTE = '[core]\n\tbare = false\n[remote "origin"]\n\turl = {}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n'


@pytest.fixture
def store_kind():
    """These tests say themselves which database is meant."""
    return "sqlite"


def repository(folder, remote="git@example.org:ada/shop.git"):
    (folder / ".git").mkdir(parents=True, exist_ok=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "config").write_text(
        REMOTE.format(remote) if remote else "[core]\n\tbare = false\n"
    )
    return folder


def moved(cli, name="kiosk", folder="shop"):  # noqa: F811
    """The project's folder under another name or in another place, and oneself in it."""
    new = cli.project.parent / name
    new.parent.mkdir(exist_ok=True)
    (cli.project.parent / folder).rename(new)
    cli.monkeypatch.chdir(new)
    return new


def told(cli, *argv):  # noqa: F811
    result = cli(*argv)
    assert result.code in (0, 1), result
    return result.out + result.err


def well(cli):  # noqa: F811
    findings = cli.json("doctor", "--deep") if cli("doctor", "--deep").code == 0 else None
    assert findings, cli("doctor", "--deep")


def test_a_folder_that_is_renamed_gets_its_memories_back(cli):  # noqa: F811
    old = repository(cli.project)
    kept = [
        cli.add("We deploy from main, never from a branch", "--kind", "decision"),
        cli.add("Sessions are kept in Redis", "--tag", "cache"),
    ]
    cli.ok("add", "Routes are loaded late", "--container", "router")
    cli.ok("vote", kept[1], "2")
    (old / "docs").mkdir()
    (old / "docs" / "guide.md").write_text("# Guide\n\nLint with ruff before each commit.\n")
    cli.ok("index", "docs")
    new = moved(cli)
    hint = f"shop ({old}, gone) has 4 memories: `bethink adopt {old}` brings them here."
    for command in (("list",), ("search", "redis"), ("recall", "redis"), ("stats",), ("doctor",)):
        assert hint in told(cli, *command), command
        assert hint not in told(cli, *command, "--quiet") or command == ("doctor",)
    cli.add("I like short commits", "--personal")
    assert (
        hint in told(cli, "list")
        and hint in told(cli, "search", "commits")
        and "adopt" not in told(cli, "list", "--personal")
    )
    assert f"shop  {old}  4 memories  same repository" in cli.ok("adopt")
    assert (
        "would bring 4 memories of shop" in cli.ok("adopt", "../shop", "--dry-run")
        and len(cli.json("list")) == 1
    )
    done = cli.json("adopt", str(old))
    assert done == {
        "name": "shop",
        "path": str(old),
        "memories": 4,
        "why": "same repository",
        "into": str(new),
        "joined": 0,
        "dry_run": False,
    }
    assert {one["id"] for one in cli.json("list")} >= set(kept)
    for mode in ("keyword", "vector", "hybrid"):
        assert cli.json("search", "kept in Redis", "--mode", mode)[0]["id"] == kept[1]
        assert cli.json("search", "lint with ruff", "--mode", mode)[0]["path"] == "docs/guide.md"
    assert cli.json("get", kept[1])[0]["usefulness"] == 2
    assert cli.json("search", "routes", "--container", "router")
    assert cli.json("index", "docs")["unchanged"] == 1  # its documents are known where they are now
    assert cli.json("adopt") == [] and "adopt" not in told(cli, "stats")
    assert "kiosk (here)" in cli.ok("stats") and "shop" not in cli.ok("stats").replace(
        str(old.parent), ""
    )
    well(cli)


def test_memories_of_both_folders_are_joined(cli):  # noqa: F811
    old = repository(cli.project)
    first = cli.add("We deploy from main, never from a branch", "--kind", "decision")
    owls = cli.add("Barn owls hunt at night")
    (old / "docs").mkdir()
    (old / "docs" / "guide.md").write_text("# Guide\n\nLint with ruff before each commit.\n")
    cli.ok("index", "docs")
    moved(cli)
    again = cli.add("We deploy from main, never from a branch")
    kiwis = cli.add("Kiwis do not fly")
    cli.ok("index", "docs")
    assert "adopt" not in told(cli, "list") and "has 3 memories" in told(
        cli, "stats"
    )  # who looks after it hears of the same repository
    assert "2 memories that both held joined" in cli.ok("adopt", "shop")
    found = {one["id"] for one in cli.json("list", "--kind", "decision,fact,general,domain")}
    assert {first, owls, kiwis} <= found and again not in found
    for mode in ("keyword", "vector"):
        assert cli.json("search", "Barn owls hunt", "--mode", mode)[0]["id"] == owls
        assert cli.json("search", "Kiwis do not fly", "--mode", mode)[0]["id"] == kiwis
        assert [
            one["path"]
            for one in cli.json("search", "lint with ruff", "--mode", mode, "--limit", "9")
        ].count("docs/guide.md") == 1
    assert cli.json("adopt") == []
    well(cli)


def test_conversations_come_along_and_are_read_on_where_they_belong_now(cli, tmp_path):  # noqa: F811
    old = repository(cli.project)
    file = transcript(tmp_path / "t" / "one.jsonl", "s-one", old, *CHOICE)
    unread = transcript(tmp_path / "t" / "two.jsonl", "s-two", old / "src", *CHANGE)
    cli.ok("backfill", str(file))
    before = cli.json("list", "--all")
    topics = cli.ok("topics", "s-one")
    moved(cli)
    cli.ok("adopt", str(old))
    assert cli.json("list", "--all") == [
        one | {"scope": cli.json("list")[0]["scope"]} for one in before
    ]
    assert cli.ok("topics", "s-one") == topics and "s-one" in cli.ok("topics")
    assert cli.json("search", "which database for orders?")
    transcript(
        file,
        "s-one",
        old,
        ("user", "We decided to keep invoices in PDF for seven years."),
        append=True,
    )
    cli.ok("backfill", str(tmp_path / "t"))
    assert cli.json("search", "invoices in PDF", "--mode", "keyword") and cli.json(
        "search", "nightly report", "--mode", "keyword"
    )
    assert unread.exists() and cli.json("adopt") == []  # nothing went to the folder that is gone
    old.mkdir()
    cli.ok(
        "backfill",
        str(
            transcript(
                tmp_path / "t" / "three.jsonl",
                "s-three",
                old / "src",
                ("user", "We decided to sell tea in tins."),
            )
        ),
    )
    assert "tins" not in cli.ok("export")  # a new project in the old place has its own
    well(cli)


def test_a_folder_that_was_put_elsewhere_is_known_by_its_name(cli):  # noqa: F811
    cli.add("Sessions are kept in Redis")
    old, new = cli.project, moved(cli, "work/shop")
    assert f"`bethink adopt {old}` brings it here" in told(cli, "list")
    other = cli.project.parent / "other"
    other.mkdir()
    cli.monkeypatch.chdir(other)
    assert "hint" not in told(cli, "list")  # nothing says that it was this one
    assert [one["why"] for one in cli.json("adopt")] == ["gone"]
    cli.monkeypatch.chdir(new)
    assert cli.json("adopt", "shop")["why"] == "same name"
    assert len(cli.json("list")) == 1


def test_what_was_told_before_a_folder_was_put_under_git_is_brought_to_it(cli):  # noqa: F811
    known = cli.add("Sessions are kept in Redis")
    (cli.project / "src").mkdir()
    cli.monkeypatch.chdir(cli.project / "src")
    below = cli.add("Parsers live in src")
    cli.monkeypatch.chdir(cli.project)
    repository(cli.project)
    assert f"shop ({cli.project}, from before it was part of this project) has 1 memory" in told(
        cli, "list"
    )
    assert {one["path"] for one in cli.json("adopt")} == {
        str(cli.project),
        str(cli.project / "src"),
    }
    cli.ok("adopt", ".")
    cli.ok("adopt", "src")
    assert {one["id"] for one in cli.json("list")} == {known, below}


def test_what_cannot_be_adopted_is_said_and_nothing_changes(cli):  # noqa: F811
    known = cli.add("Sessions are kept in Redis")
    old, other = cli.project, cli.project.parent / "other"
    other.mkdir()
    cli.monkeypatch.chdir(other)
    said = cli.fails("adopt", str(old), code=2)
    assert "still there" in said and "--force" in said
    assert "known by nowhere" in cli.fails("adopt", "nowhere", code=1)
    assert "is this project" in cli.fails("adopt", ".", code=2)
    assert "containers" in cli.fails("adopt", str(old), "--container", "x", code=2)
    assert cli.json("list") == [] and cli.json("adopt") == []
    assert cli.json("adopt", str(old), "--force")["why"] == "in use"
    assert [one["id"] for one in cli.json("list")] == [known]


def test_one_of_several_of_the_same_name_is_asked_for(cli):  # noqa: F811
    gone = [cli.project.parent / name / "shop" for name in ("a", "b")]
    for folder in gone:
        folder.mkdir(parents=True)
        cli.monkeypatch.chdir(folder)
        cli.add(f"Something of {folder.parent.name}")
    cli.monkeypatch.chdir(cli.project)
    for folder in gone:
        folder.rmdir()
    said = cli.fails("adopt", "shop", code=1)
    assert all(str(folder) in said for folder in gone)
    assert all(
        str(folder) in cli.fails("adopt", "kiosk", code=1) for folder in gone
    )  # those that there are
    cli.ok("adopt", str(gone[0]))
    cli.ok("adopt", "shop")
    assert len(cli.json("list")) == 2


def test_a_pause_goes_with_the_project(cli):  # noqa: F811
    repository(cli.project)
    cli.add("Sessions are kept in Redis")
    cli.ok("pause")
    new = moved(cli)
    assert not pause.paused(str(new))
    cli.ok("adopt", "shop")
    assert pause.paused(str(new)) and "kiosk" in cli.ok("resume")


def test_a_session_that_starts_in_a_moved_folder_is_told(offline, tmp_path, monkeypatch):
    shop = Shop(tmp_path, offline, monkeypatch)
    shop.add("We deploy from main, never from a branch", "decision")
    gone = shop.project
    shop.project = tmp_path / "moved" / "shop"
    shop.project.parent.mkdir()
    gone.rename(shop.project)
    assert f"`bethink adopt {gone}` brings it here. Ask the user" in shop.start()
    with shop.memory() as memory:
        adoption.adopt(memory, str(gone))
    said = shop.start(session_id="s2")
    assert "We deploy from main" in said and "adopt" not in said
    (tmp_path / "fresh").mkdir()
    assert (
        context(
            run(
                "session-start",
                "claude",
                b'{"cwd": "%s", "session_id": "s3"}' % str(tmp_path / "fresh").encode(),
            )
        )
        == ""
    )


@pytest.mark.parametrize("store_kind", ["postgres"])
def test_a_team_is_told_why_it_needs_none_of_this(cli):  # noqa: F811
    cli.add("Sessions are kept in Redis")
    old = cli.project
    moved(cli, "work/shop")
    assert len(cli.json("list")) == 1  # by its name
    assert "by its folder's name" in cli.fails("adopt", str(old), code=2)
    assert "by name" in told(cli, "adopt") and cli.json("adopt") == []
    moved(cli, "kiosk", "work/shop")
    assert "hint" not in told(cli, "list")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("git@example.org:ada/shop.git", "https://token@Example.org/ada/shop"),
        ("ssh://git@example.org:2222/ada/shop.git", "git@example.org:ada/shop"),
        ("/srv/git/shop.git", "/srv/git/shop/"),
    ],
)
def test_a_remote_is_the_same_however_it_is_reached(tmp_path, one, other):
    first, second = (
        project.origin(project.find(repository(tmp_path / name, url)))
        for name, url in (("a", one), ("b", other))
    )
    assert first == second and first.startswith("remote:") and "shop" not in first
    assert (
        project.origin(project.find(repository(tmp_path / "c", "git@example.org:ada/kiosk.git")))
        != first
    )
    assert project.origin(project.find(repository(tmp_path / "d", ""))) == ""


def test_a_repository_without_a_remote_is_known_by_when_it_was_made(tmp_path):
    marks = []
    for name, at in (("a", 1_000_000_000), ("b", 1_000_000_001)):
        (tmp_path / name).mkdir()
        subprocess.run(("git", "init", "-q", "."), cwd=tmp_path / name, check=True)
        os.utime(tmp_path / name / ".git" / "description", (at, at))
        marks.append(project.origin(project.find(tmp_path / name)))
    (tmp_path / "a").rename(tmp_path / "c")
    assert marks[0] != marks[1] and project.origin(project.find(tmp_path / "c")) == marks[0] != ""
