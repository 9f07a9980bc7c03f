"""A database of an earlier release opens, is read and is written, in SQLite and in PostgreSQL."""

import json

import pytest
import releases
from releases import MYSQL, POSTGRESQL, PROXY, PULLS, PURGED, WIKI

from bethink import Bethink

STORE = "sqlite"  # the tests say themselves which database is meant


RELEASES = [
    pytest.param((release, kind), id=f"{release}-{kind}")
    for release in releases.POSTGRES_MIGRATIONS
    for kind in ("sqlite", "postgres")
]


@pytest.fixture(params=RELEASES)
def cli(request, cli, monkeypatch, tmp_path):
    """The command line on a database of an earlier release."""
    settings = releases.load_release(*request.param, tmp_path, monkeypatch)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return cli


def find(cli, text: str) -> dict:
    listed = cli.json("list", "--all-projects", "--include-deleted", "--include-superseded")
    return next(one for one in listed if one["content"] == text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(MYSQL, {"kind": "architecture", "tags": ["orders"]}, id="replaced"),
        pytest.param(
            POSTGRESQL,
            {
                "importance": 9.0,
                "confidence": 0.9,
                "metadata": {"ticket": "OPS-7"},
                "usefulness": 1.0,
            },
            id="edited-and-voted-for",
        ),
        pytest.param(PROXY, {"kind": "question", "answered": False}, id="question"),
        pytest.param(
            PULLS, {"scope": "personal", "expires_at": "2099-01-01T00:00:00.000Z"}, id="personal"
        ),
    ],
)
def test_a_memory_is_read_as_it_was_written(cli, text, expected):
    found = find(cli, text)
    assert {name: found[name] for name in expected} == expected


def test_a_replaced_memory_names_its_successor(cli):
    assert find(cli, MYSQL)["superseded_by"] == find(cli, POSTGRESQL)["id"]


def test_a_forgotten_memory_is_hidden(cli):
    assert WIKI not in [one["content"] for one in cli.json("list", "--all-projects")]


def test_every_row_is_intact(cli):
    with Bethink() as memory:
        assert memory.check(deep=True) == []


def test_a_search_finds_it_by_its_words(cli):
    found = cli.json("search", "staging proxy", "--mode", "keyword", "--all-projects")
    assert found[0]["content"] == PROXY


def test_a_search_finds_it_by_its_vectors(cli):
    found = cli.json("search", "staging proxy port", "--mode", "vector", "--all-projects")
    assert found[0]["content"] == PROXY


def test_its_history_is_kept(cli):
    with Bethink(everywhere=True) as memory:
        events = memory.history(find(cli, POSTGRESQL)["id"])
    assert [event.action for event in events] == ["add", "update", "vote"]


def test_an_earlier_version_is_restored(cli):
    with Bethink(everywhere=True) as memory:
        assert memory.restore(find(cli, POSTGRESQL)["id"], 1).importance == 7.0


def test_it_is_changed(cli):
    with Bethink(everywhere=True) as memory:
        memory.update(find(cli, PULLS)["id"], importance=8.0)
        assert memory.check(deep=True) == []


def test_something_new_is_stored_beside_it(cli):
    id = cli.add("The cache lives in Redis")
    assert cli.json("get", id)[0]["content"] == "The cache lives in Redis"


def test_a_purged_text_stays_purged(cli):
    assert "was purged" in cli("add", PURGED).err


def test_it_is_exported_and_imported_elsewhere(cli, monkeypatch, tmp_path):
    file = tmp_path / "export.json"
    cli.ok("export", "--all-projects", "--output", str(file))
    exported = json.loads(file.read_text("utf-8"))
    monkeypatch.setenv("BETHINK_DATABASE", str(tmp_path / "other.db"))
    cli.ok("import", str(file), "--trusted", "--all-scopes")
    listed = cli.json("list", "--all-projects", "--include-deleted", "--include-superseded")
    assert {one["id"] for one in listed} == {one["id"] for one in exported}


def test_a_passage_of_a_document_is_found(cli):
    found = cli.json("search", "deploys reviews", "--mode", "keyword", "--all-projects")
    assert found[0]["source"].endswith(".md")
