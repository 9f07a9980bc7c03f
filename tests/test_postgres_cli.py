"""The command line on a team's PostgreSQL database: what is shared and what is private, the audit trail, and what is told when it fails."""

from __future__ import annotations

import postgres
import pytest

pytest_plugins = ["cli_runner"]


@pytest.fixture
def store_kind():
    return "postgres"


@pytest.fixture
def team(cli, monkeypatch, tmp_path):
    """Runs a command as somebody, each in a folder of their own that is called the same."""

    def act(person: str, *words: str, folder: str = "shop"):
        place = tmp_path / person / folder
        place.mkdir(parents=True, exist_ok=True)
        monkeypatch.setenv("BETHINK_USER", person)
        return cli.json(*words, "--project", str(place))

    return act


def test_a_project_is_shared_by_its_name_and_what_is_personal_is_not(team):
    team("anna", "add", "We deploy on Fridays")
    team("anna", "add", "I like tea on Fridays", "--personal")
    team("anna", "add", "The office is closed on Fridays", "--team")
    team("anna", "add", "Another project's Fridays", folder="other")
    everybodys = {"The office is closed on Fridays"}
    shared = everybodys | {"We deploy on Fridays"}
    for person, folder, seen in (
        ("anna", "shop", shared | {"I like tea on Fridays"}),
        ("ben", "shop", shared),
        ("ben", "elsewhere", everybodys),
    ):
        hits = team(person, "search", "fridays", folder=folder)
        assert {hit["content"] for hit in hits} == seen
    assert team("ben", "stats")["by_scope"].get("personal") is None


def test_history_and_audit_trail_name_the_person(team, cli):
    id = team("anna", "add", "We deploy on Fridays")["id"]
    team("ben", "update", id, "--importance", "9")
    assert [event["actor"] for event in team("anna", "history", id)] == ["anna", "ben"]
    lines = cli.json("audit")
    told = [(line["person"], line["changes"]) for line in lines]
    assert told == [("ben", {"update": [id]}), ("anna", {"add": [id]})]
    assert f"add {id}" in cli.ok("audit", "--limit", "5")


def test_your_own_database_has_no_team_and_no_audit_trail(cli, monkeypatch):
    monkeypatch.delenv("BETHINK_DATABASE")
    assert "no team" in cli.fails("add", "We deploy on Fridays", "--team", code=2)
    assert "audit trail" in cli.fails("audit", code=2)


def test_no_command_prints_a_password(cli, monkeypatch):
    monkeypatch.delenv("BETHINK_DATABASE")
    url = f"postgresql://anna:hunter2@127.0.0.1:{postgres.free_port()}/team?sslpassword=hunter2"
    cli.ok("config", "database", url)
    told = "config|config database|config --json|add x|doctor|stats|init --dry-run".split("|")
    for result in (cli(*words.split()) for words in told):
        assert "hunter2" not in result.out + result.err
    assert "cannot be reached" in cli.fails("search", "tea", code=1)
    assert "hunter2" in (cli.home / "config.toml").read_text()


def test_a_memory_moves_only_with_a_name_for_what_is_personal(cli, tmp_path, monkeypatch):
    own, target = ["--database", str(tmp_path / "own.db")], postgres.migrated()
    cli.ok("add", "We deploy on Fridays", *own)
    cli.ok("add", "I like tea", "--personal", *own)
    monkeypatch.delenv("BETHINK_USER")
    said = cli.fails("migrate", "--to", target, *own, code=2)
    assert "belongs to somebody" in said and "`user`" in said
    assert postgres.run(target, "SELECT count(*) FROM bethink.memories") == [(0,)]
    monkeypatch.setenv("BETHINK_USER", "anna")
    assert cli.json("migrate", "--to", target, *own)["verified"]
    owners = postgres.run(target, "SELECT owner FROM bethink.scopes WHERE key = 'personal'")
    assert owners == [("anna",)]
