"""Moving everything into another database: whole, resumable, compared, and only into a place of its own."""

from __future__ import annotations

import json

import pytest
from cli_runner import cli  # noqa: F401
from stores import HERE, OTHER, change, everything, make, put, write
from travel import fill, tallies

from bethink.errors import InvalidInput
from bethink.store import transfer as migration
from bethink.store.sqlite import SqliteStore
from bethink.store.transfer import team_scope
from bethink.types import PERSONAL, Relation


@pytest.fixture
def store_kind():
    """These tests say themselves which database is meant."""
    return "sqlite"


@pytest.fixture
def source(tmp_path):
    store = SqliteStore(tmp_path / "source.db", timeout=5)
    store.known = fill(store)
    yield store
    store.close()


class Interrupted(Exception):
    pass


class Breaking:
    """A target whose process is gone after so many pages."""

    def __init__(self, store, pages):
        self._store, self.pages = store, pages

    def __getattr__(self, name):
        return getattr(self._store, name)

    def take(self, *given, **how):
        self.pages -= 1
        if self.pages < 0:
            raise Interrupted
        return self._store.take(*given, **how)


class Busy:
    """A source of small pages, in which something happens just when a part has been read."""

    def __init__(self, store, part="", happen=None):
        self._store, self._part, self._happen = store, part, happen

    def __getattr__(self, name):
        return getattr(self._store, name)

    def export(self, part):
        yield from self._store.export(part, size=3)
        if part == self._part:
            self._part = ""
            self._happen()


def as_there(source, store):
    """What the source holds, with its scopes named as the target names them."""
    return tallies(source, migration.map_scopes(source, store))


def test_there_and_back_is_where_it_began(source, store, tmp_path):
    back = SqliteStore(tmp_path / "back.db", timeout=5)
    there = migration.migrate(Busy(source), store, "here")
    assert there.parts["records"].number == 9
    again = migration.migrate(store, back, "there")
    assert there.parts == as_there(source, store)
    assert again.parts == tallies(source) == tallies(back)
    back.close()


def test_it_goes_on_where_it_was_cut_off_wherever_that_was(source, tmp_path):
    whole, pages, cut = tallies(source), 0, True
    while cut:
        store = SqliteStore(tmp_path / f"cut-{pages}.db", timeout=5)
        cut = False
        try:
            migration.migrate(Busy(source), Breaking(store, pages), "here")
        except Interrupted:
            cut = True
        moved = migration.migrate(source, store, "here")
        assert moved.parts == whole
        assert moved.resumed == (pages > 0)
        store.close()
        pages += 1
    assert pages > 10


def test_what_is_written_to_the_source_meanwhile_comes_too(source, store):
    known = source.known

    def happen():
        put(source, make("A late arrival"), sources=())
        change(source, known["told"].id, importance=2.0)
        write(source, relate=(Relation(known["told"].id, known["new"].id, "relates_to"),))
        write(source, unrelate=(Relation(known["told"].id, known["turn"].id, "relates_to"),))
        write(source, retire=((HERE, "docs/a.md"),))
        write(source, purge=(known["hidden"].id,))

    moved = migration.migrate(Busy(source, "records", happen), store, "here")
    assert moved.parts == as_there(source, store) == tallies(store)
    assert store.check(deep=True) == []


def test_projects_go_by_name_in_a_teams_database_and_by_folder_in_ones_own(source, store, tmp_path):
    migration.migrate(source, store, "here")
    team = hasattr(store, "act_as")
    assert sorted(store.scopes()) == sorted([team_scope("shop") if team else HERE, OTHER, PERSONAL])
    assert len(list(store.scan(everything(team_scope("shop"))))) == (8 if team else 0)


def test_projects_of_the_same_name_are_not_thrown_together(tmp_path, backend):
    one, store = SqliteStore(tmp_path / "one.db", timeout=5), backend.open()
    put(
        one,
        make("Mine"),
        make("Theirs", scope=OTHER),
        scopes={HERE: ("api", "/a/api"), OTHER: ("api", "/b/api")},
    )
    migration.migrate(one, store, "here")
    assert {*store.scopes()} - {PERSONAL} == {HERE, OTHER}
    one.close()


def test_a_database_with_memories_of_its_own_is_left_alone(source, store):
    put(store, make("Mine"))
    with pytest.raises(InvalidInput, match="holds 1 memories already") as error:
        migration.migrate(source, store, "here")
    assert "sync" in error.value.hint
    assert store.count(everything()) == 1
    store.reset()
    migration.migrate(source, store, "here")
    with pytest.raises(InvalidInput, match="brought from here"):
        migration.migrate(source, store, "elsewhere")


def test_the_command_moves_and_says_what_it_compared(cli, tmp_path):  # noqa: F811
    id = cli.add("We deploy from main", "--kind", "decision")
    cli.ok("vote", id)
    told = cli.ok("migrate", "--to", str(tmp_path / "new.db"))
    assert "verified  true" in told
    assert (
        cli.json("get", id, "--database", str(tmp_path / "new.db"))[0]["content"]
        == "We deploy from main"
    )
    value = cli.json("migrate", "--to", str(tmp_path / "new.db"))
    assert value["verified"]
    assert value["resumed"]
    assert value["parts"]["records"]["number"] == 1
    history = json.loads(cli.ok("--json", "history", id, "--database", str(tmp_path / "new.db")))
    assert [event["action"] for event in history] == ["add", "vote"]
