"""What every store must do for others: give everything out and take everything in, to the letter."""

from __future__ import annotations

import json

import pytest
from cli_runner import cli  # noqa: F401
from stores import (
    HERE,
    NOW,
    OTHER,
    by_meaning,
    by_words,
    change,
    content_hash,
    day,
    everything,
    make,
    put,
    snapshot,
    write,
)
from travel import fill, tallies

from bethink.errors import InvalidInput, Overtaken, StoreError
from bethink.store import transfer as migration
from bethink.store.rows import Record
from bethink.store.sqlite import SqliteStore
from bethink.store.transfer import (
    PARTS,
    Bundle,
    bundle_from_json,
    bundle_to_json,
    digest,
    team_scope,
    version,
)
from bethink.types import PERSONAL, Batch, Change, Entity, Event, Relation


@pytest.fixture
def full(tmp_path):
    """A store with something of everything, from which the others are filled."""
    store = SqliteStore(tmp_path / "full.db", timeout=5)
    store.known = fill(store)
    yield store
    store.close()


def pour(source, target, **how):
    for part in PARTS:
        for bundle in source.export(part, size=2):
            assert target.take(bundle, allow_purged=True, **how) == ()


def test_everything_comes_over_to_the_letter_and_back(full, store, tmp_path):
    pour(full, store)
    assert tallies(store) == tallies(full)
    back = SqliteStore(tmp_path / "back.db", timeout=5)
    pour(store, back)
    assert tallies(back) == tallies(full)
    assert [memory.id for memory in snapshot(back)[0]] == [
        memory.id for memory in snapshot(full)[0]
    ]
    assert back.check(deep=True) == []
    back.close()


def test_only_the_scopes_that_are_asked_for_come_out(full):
    for part, number in (
        ("records", 1),
        ("scopes", 1),
        ("sources", 1),
        ("sessions", 0),
        ("spans", 0),
        ("relations", 0),
        ("turns", 0),
    ):
        assert len(list(full.items(part, [OTHER]))) == number, part
    assert list(full.items("records", [])) == []
    assert len(list(full.items("relations", [HERE]))) == 2


def record(memory, *actions, unique=True):
    return Record(
        memory,
        unique,
        tuple(
            Event(NOW, "user", action, {}, {"importance": 1.0}) for action in actions or ("add",)
        ),
    )


def test_a_newer_version_takes_the_place_of_the_old_one(store):
    first = make("Tea at four", entities=(Entity("tea"),))
    put(store, first)
    changed = first._replace(
        content="Tea at five",
        content_hash=content_hash("Tea at five"),
        tags=("habit",),
        entities=(Entity("five"),),
    )
    assert store.take(Bundle(records=(record(changed, "add", "update"),))) == ()
    assert store.get([first.id])[0] == changed
    assert by_words(store, "five") == [first.id]
    assert by_words(store, "four") == []
    assert by_meaning(store, "Tea at four") == []  # the old vectors were of another text
    assert [event.action for event in store.history(first.id)] == ["add", "update"]
    assert store.check(deep=True) == []


def test_what_changed_meanwhile_is_not_overwritten(store):
    first, unknown = make("Tea at four"), make("Coffee at ten")
    put(store, first)
    was = version(store.records([first.id])[0])
    change(store, first.id, importance=1.0)
    given = Bundle(records=(record(first._replace(importance=9.0)), record(unknown)))
    assert store.take(given, expect={first.id: was, unknown.id: was}) == (first.id, unknown.id)
    assert store.get([first.id])[0].importance == 1.0
    now = version(store.records([first.id])[0])
    assert store.take(given, expect={first.id: now, unknown.id: None}) == ()
    assert store.get([first.id])[0].importance == 9.0
    assert store.take(given, expect={unknown.id: None}) == (unknown.id,)


def test_a_text_that_the_scope_holds_already_is_not_taken_twice(store):
    first, twin = make("Tea at four"), make("Tea at four")
    put(store, first)
    assert store.take(Bundle(records=(record(twin),))) == (twin.id,)
    assert store.take(Bundle(records=(record(twin._replace(deleted_at=NOW)),))) == ()
    assert (
        store.take(
            Bundle(
                records=(
                    record(make("Tea at four", scope=OTHER)),
                    record(make("Tea at four"), unique=False),
                )
            )
        )
        == ()
    )


def test_a_text_that_was_purged_is_not_taken_in_a_history_either(store):
    first, second = make("Tea at four"), make("Coffee at ten")
    put(store, first, second)
    write(store, purge=(first.id,))
    events = (
        Event(NOW, "user", "add", {}, {}),
        Event(NOW, "user", "update", {"content": "Tea at four"}, {"content": "Coffee at ten"}),
    )
    fresh, known = (
        Record(make("Tea at five"), True, events),
        Record(second._replace(importance=9.0), True, events),
    )
    assert store.take(Bundle(records=(fresh, known))) == (fresh.memory.id, second.id)
    assert store.get([fresh.memory.id]) == []
    assert len(store.history(second.id)) == 1
    assert store.take(Bundle(records=(fresh, known)), allow_purged=True) == ()
    again = known._replace(memory=second._replace(importance=1.0))
    assert store.take(Bundle(records=(again,))) == ()  # which brings nothing that is not there


def test_what_is_gone_leaves_no_trace_and_may_come_back(store):
    first, second = make("Tea at four"), make("Coffee at ten")
    put(store, first, second)
    store.take(Bundle(gone=(first.id, "nobody")))
    assert [memory.id for memory in store.scan(everything())] == [second.id]
    assert by_words(store, "tea") == []
    assert by_meaning(store, "Tea at four") == [second.id]
    assert store.check(deep=True) == []
    assert store.take(Bundle(records=(record(first),))) == ()


def test_a_note_goes_in_with_its_bundle_or_not_at_all(store):
    assert store.read_note("place") is None
    store.take(Bundle(scopes=((HERE, "shop", ""),)), note=("place", "here"))
    store.take(Bundle(), note=("place", "there"))
    assert store.read_note("place") == "there"
    wrong = record(make("Tea"))._replace(vectors=(("m", 64, b"short"),))
    with pytest.raises(InvalidInput, match="bytes"):
        store.take(Bundle(records=(record(make("Coffee")), wrong)), note=("place", "nowhere"))
    assert store.read_note("place") == "there"
    assert store.count(everything()) == 0


def test_what_is_purged_or_reset_is_quoted_by_no_answer_that_was_kept(store):
    (memory, other) = make("gone"), make("stays")
    put(store, memory, other)

    def keep():
        for name in ("answer:1", "answers", "place"):
            store.take(Bundle(), note=(name, "gone"))

    def kept():
        return [name for name in ("answer:1", "answers", "place") if store.read_note(name)]

    keep()
    change(store, other.id, importance=3.0)
    assert len(kept()) == 3
    write(store, purge=(memory.id,))
    assert kept() == ["answers", "place"]
    keep()
    store.reset((HERE,))
    assert kept() == ["answers", "place"]


def test_tombstones_of_two_stores_are_not_mixed(full, store):
    mine = make("mine")
    put(store, mine)
    write(store, purge=(mine.id,))
    with pytest.raises(StoreError, match="purged"):
        store.take(next(full.export("tombstones")))
    assert store.find_purged([content_hash("mine")])


def test_a_bundle_survives_json(full):
    import json

    for part in PARTS:
        bundle = next(full.export(part))
        back = bundle_from_json(json.loads(json.dumps(bundle_to_json(bundle))))
        assert [digest(part, item) for item in getattr(back, part)] == [
            digest(part, item) for item in getattr(bundle, part)
        ]
    assert bundle_from_json({}) == Bundle()


def test_a_write_under_a_key_is_done_once(store, backend):
    told = make("Tea at four")
    first = put(store, told, once="spool/1")
    voted = Batch(at=NOW, change=(Change(told.id, "vote", {"vote": 1.0}),), once="spool/2")
    receipts = [store.write(voted), backend.open().write(voted), store.write(voted)]
    assert receipts == [receipts[0]] * 3
    assert store.get([told.id])[0].usefulness == 1.0
    assert put(store, make("Something else"), once="spool/1") == first
    assert store.count(everything()) == 1
    assert put(store, make("Something else"), once="spool/3").added == 1


def test_a_change_of_what_somebody_changed_meanwhile_is_refused(store):
    told = make("Tea at four")
    put(store, told)
    was = store.get([told.id])[0].updated_at
    write(
        store,
        at=day(21),
        change=(Change(told.id, "update", {"importance": 1.0}),),
        unchanged=((told.id, was),),
    )
    with pytest.raises(Overtaken, match=told.id):
        write(
            store,
            at=day(22),
            change=(Change(told.id, "update", {"importance": 2.0}),),
            unchanged=((told.id, was),),
        )
    assert store.get([told.id])[0].importance == 1.0
    with pytest.raises(Overtaken):
        write(store, at=day(22), unchanged=(("nobody", was),))


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
