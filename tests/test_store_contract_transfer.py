"""What every store must do for others: give everything out and take everything in, to the letter."""

import json

import pytest
import stores
from stores import HERE, NOW, OTHER, by_words, everything, make, purge, put, tally, tell, write

from bethink.errors import InvalidInput, StoreError
from bethink.model import PERSONAL, Batch, Change, Entity, Event, Relation
from bethink.store import transfer
from bethink.store.rows import Record
from bethink.store.sqlite import SqliteStore
from bethink.store.transfer import PARTS, Bundle, digest, migrate, team_scope, version


@pytest.fixture
def source(tmp_path):
    """A store with something of everything, from which the others are filled."""
    store = SqliteStore(tmp_path / "full.db", timeout=5)
    store.known = stores.fill(store)
    yield store
    store.close()


@pytest.fixture
def back(tmp_path):
    """An empty store, to which everything comes back."""
    store = SqliteStore(tmp_path / "back.db", timeout=5)
    yield store
    store.close()


def test_an_export_of_a_scope_holds_only_that_scope(source):
    wanted = {"records": 1, "scopes": 1, "sources": 1}
    cases = ["records", "scopes", "sources", "sessions", "spans", "relations", "turns"]
    assert [
        part for part in cases if len(list(source.items(part, [OTHER]))) != wanted.get(part, 0)
    ] == []
    assert list(source.items("records", [])) == []
    assert len(list(source.items("relations", [HERE]))) == 2


@pytest.mark.parametrize("part", PARTS)
def test_a_bundle_survives_json(source, part):
    bundle = next(source.export(part))
    text = json.dumps(transfer.bundle_to_json(bundle))
    back = transfer.bundle_from_json(json.loads(text))
    digests = [[digest(part, item) for item in getattr(one, part)] for one in (back, bundle)]
    assert digests[0] == digests[1], part


def test_an_empty_bundle_survives_json():
    assert transfer.bundle_from_json({}) == Bundle()


def record(memory, *actions, unique=True):
    changed = {"importance": 1.0}
    events = [Event(NOW, "user", action, {}, changed) for action in actions or ("add",)]
    return Record(memory, unique, tuple(events))


def take(store, *records, **how):
    """Ids of those that were left."""
    return store.take(Bundle(records=records), **how)


def test_a_newer_version_takes_the_old_ones_place_unless_that_changed_meanwhile(store):
    (first,) = tell(store, "Tea at four", entities=(Entity("tea"),))
    text = {"content": "Tea at five", "content_hash": stores.content_hash("Tea at five")}
    changed = first._replace(**text, tags=("habit",), entities=(Entity("five"),))
    assert take(store, record(changed, "add", "update")) == ()
    assert store.get([first.id])[0] == changed
    assert by_words(store, "five") == [first.id]
    assert by_words(store, "four") == []
    assert stores.by_meaning(store, "Tea at four") == []  # the old vectors were of another text
    assert [event.action for event in store.history(first.id)] == ["add", "update"]
    (first,), unknown = tell(store, "Tea at four"), make("Coffee at ten")
    was = version(store.records([first.id])[0])
    stores.change(store, first.id, importance=1.0)
    given = (record(first._replace(importance=9.0)), record(unknown))
    assert take(store, *given, expect={first.id: was, unknown.id: was}) == (first.id, unknown.id)
    assert store.get([first.id])[0].importance == 1.0
    now = version(store.records([first.id])[0])
    assert take(store, *given, expect={first.id: now, unknown.id: None}) == ()
    assert store.get([first.id])[0].importance == 9.0
    assert take(store, *given, expect={unknown.id: None}) == (unknown.id,)


def test_a_text_that_exists_is_not_taken_twice(store):
    twin = make("Tea at four")
    _first, _second = tell(store, "Tea at four", "Coffee at ten")
    assert take(store, record(twin)) == (twin.id,)


def test_a_bundle_removes_what_is_gone(store):
    first, second = tell(store, "Tea at four", "Coffee at ten")
    store.take(Bundle(gone=(first.id, "nobody")))
    assert [memory.id for memory in store.scan(everything())] == [second.id]
    assert by_words(store, "tea") == []
    assert stores.by_meaning(store, "Tea at four") == [second.id]
    assert store.check(deep=True) == []


def test_a_removed_memory_may_come_back(store):
    twin = make("Tea at four")
    first, _second = tell(store, "Tea at four", "Coffee at ten")
    store.take(Bundle(gone=(first.id, "nobody")))
    assert take(store, record(first)) == ()
    assert take(store, record(twin._replace(deleted_at=NOW))) == ()
    elsewhere, passage = make("Tea at four", scope=OTHER), make("Tea at four")
    assert take(store, record(elsewhere), record(passage, unique=False)) == ()


def test_a_purged_text_is_taken_only_on_request(store):
    first, second = tell(store, "Cake at four", "Milk at ten")
    purge(store, first)
    before, after = {"content": "Cake at four"}, {"content": "Milk at ten"}
    events = (*record(first).events, Event(NOW, "user", "update", before, after))
    fresh = Record(make("Cake at five"), True, events)
    known = Record(second._replace(importance=9.0), True, events)
    assert take(store, fresh, known) == (fresh.memory.id, second.id)
    assert store.get([fresh.memory.id]) == []
    assert len(store.history(second.id)) == 1
    assert take(store, fresh, known, allow_purged=True) == ()
    again = known._replace(memory=second._replace(importance=1.0))
    assert take(store, again) == ()  # which brings nothing that is not there


def test_a_note_is_stored_with_its_bundle_or_not_at_all(store):
    assert store.read_note("place") is None
    store.take(Bundle(scopes=((HERE, "shop", ""),)), note=("place", "here"))
    store.take(Bundle(), note=("place", "there"))
    wrong = record(make("Tea"))._replace(vectors=(("m", 64, b"short"),))
    with pytest.raises(InvalidInput, match="bytes"):
        take(store, record(make("Coffee")), wrong, note=("place", "nowhere"))
    assert store.read_note("place") == "there"
    assert store.count(everything()) == 0


def test_a_purge_removes_cached_answers(store):
    memory, other = tell(store, "gone", "stays")
    names = ("answer:1", "answers", "place")
    for end, kept in (
        (lambda: stores.change(store, other.id, importance=3.0), names),
        (lambda: purge(store, memory), names[1:]),
        (lambda: store.reset((HERE,)), names[1:]),
    ):
        for name in names:
            store.take(Bundle(), note=(name, "gone"))
        end()
        assert tuple(name for name in names if store.read_note(name)) == kept


def test_tombstones_of_another_database_are_refused(store, source):
    purge(store, *tell(store, "mine"))
    with pytest.raises(StoreError, match="purged"):
        store.take(next(source.export("tombstones")))
    assert store.find_purged([stores.content_hash("mine")])


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
    return tally(source, transfer.map_scopes(source, store))


def test_a_migrated_database_is_the_same_after_the_way_back(source, store, back):
    there = migrate(Busy(source), store, "here")
    assert there.parts["records"].number == 9
    # Projects go by name in a team's database and by folder in one's own.
    team = hasattr(store, "act_as")
    assert sorted(store.scopes()) == sorted([team_scope("shop") if team else HERE, OTHER, PERSONAL])
    again = migrate(store, back, "there")
    assert there.parts == as_there(source, store)
    assert again.parts == tally(source) == tally(back)
    came, there = (stores.snapshot(one)[0] for one in (back, source))
    assert [one.id for one in came] == [one.id for one in there]
    assert back.check(deep=True) == []


def test_it_goes_on_where_it_was_cut_off_wherever_that_was(source, tmp_path):
    whole, pages, cut = tally(source), 0, True
    while cut:
        store = SqliteStore(tmp_path / f"cut-{pages}.db", timeout=5)
        cut = False
        try:
            migrate(Busy(source), Breaking(store, pages), "here")
        except Interrupted:
            cut = True
        moved = migrate(source, store, "here")
        assert moved.parts == whole
        assert moved.resumed == (pages > 0)
        store.close()
        pages += 1
    assert pages > 10


def test_what_is_written_to_the_source_meanwhile_comes_too(source, store):
    told, new = (source.known[name].id for name in ("told", "new"))

    def happen():
        put(source, make("A late arrival"), sources=())
        stores.change(source, told, importance=2.0)
        write(source, relate=(Relation(told, new, "relates_to"),))

    moved = migrate(Busy(source, "records", happen), store, "here")
    assert moved.parts == as_there(source, store) == tally(store)
    assert store.check(deep=True) == []
    purge(source, source.known["hidden"])
    with pytest.raises(StoreError, match="1 records that the source no longer has"):
        migrate(source, store, "here")


def test_a_database_with_memories_is_not_migrated_into(source, store):
    put(store, make("Mine"))
    with pytest.raises(InvalidInput, match="contains 1 memories") as error:
        migrate(source, store, "here")
    assert "sync" in error.value.hint
    assert store.count(everything()) == 1


def test_projects_of_the_same_name_are_kept_apart(source, back, store):
    # Projects of the same name are not thrown together.
    names = {HERE: ("api", "/a/api"), OTHER: ("api", "/b/api")}
    put(back, make("Mine"), make("Theirs", scope=OTHER), scopes=names)
    migrate(back, store, "here")
    assert {*store.scopes()} - {PERSONAL} == {HERE, OTHER}
    with pytest.raises(InvalidInput, match="brought from here"):
        migrate(source, store, "elsewhere")
