"""Databases that share a project, brought in step again and again, whatever happens to them in between: nothing that either side sees
is lost, the longer history is right, the later word stands, and nothing that was purged comes back."""

import itertools
import random
from datetime import UTC, datetime, timedelta

import pytest
import stores
from conftest import BACKENDS
from stores import change, day, edit, everything, forget, make, purge, replace, seen, tell, write

from bethink import Bethink
from bethink.config import Config
from bethink.errors import BethinkError
from bethink.features import sync, tending
from bethink.features.sync import Shared, StorePeer, Sync, SyncReport, apply_fields, merge
from bethink.model import PERSONAL, Change, Entity, Entry, Event, Filter, Relation, Source
from bethink.store.rows import Record, stamp
from bethink.store.sqlite import SqliteStore
from bethink.store.transfer import Bundle, list_texts, team_scope, version

STORE = "sqlite"  # these tests say themselves where another is meant
HOME, TEAM = "project:here", team_scope("shop")
NOTHING = SyncReport()


class Laptop:
    """A database of one person, and what it had in common with the team's last time."""

    def __init__(self, path, team):
        self.store, self.team, self.shared = SqliteStore(path, timeout=5), team, Shared()

    def sync(self, team=None, here=StorePeer, there=StorePeer, allow_loss=False) -> SyncReport:
        ends = ((here, self.store, HOME), (there, team or self.team, TEAM))
        peers = (kind(store, scope, "anna", lambda: stores.NOW) for kind, store, scope in ends)
        report, self.shared = Sync(*peers, "shop", allow_loss).run(self.shared)
        return report


class Shuffled(StorePeer):
    """A database that names and gives its memories in any order."""

    chance = random.Random(0)

    def outline(self):
        lines, links = (list(part.items()) for part in super().outline())
        self.chance.shuffle(lines)
        return sync.Outline(dict(lines), dict(links))

    def fetch(self, ids):
        found = super().fetch(ids)
        return self.chance.sample(found, len(found))


@pytest.fixture
def store(request, tmp_path):
    """The team's database."""
    (tmp_path / "team").mkdir()
    with BACKENDS[getattr(request, "param", "sqlite")](tmp_path / "team") as backend:
        yield backend.open()


on_both = pytest.mark.parametrize("store", list(BACKENDS), indirect=True)


@pytest.fixture
def laptops(tmp_path, store):
    laptops = [Laptop(tmp_path / f"{name}.db", store) for name in ("anna", "ben")]
    yield laptops
    for laptop in laptops:
        laptop.store.close()


@pytest.fixture
def anna(laptops):
    return laptops[0]


@pytest.fixture
def ben(laptops):
    return laptops[1]


def texts(store, scope=HOME) -> set[str]:
    return {memory.content for memory in store.scan(seen(scope))}


def round_robin(*laptops) -> None:
    for laptop in (*laptops, *laptops):
        laptop.sync()


def share(first, second, *said):
    """What the first tells is known to everybody."""
    memories = tell(first.store, *said)
    round_robin(first, second)
    return memories


@on_both
def test_a_memory_of_one_laptop_is_found_on_the_other(anna, ben, store):
    (told,) = tell(anna.store, "Sessions are kept in Redis", tags=("auth",))
    stores.put(anna.store, make("Mine", scope=PERSONAL), make("Elsewhere", scope="project:other"))
    change(anna.store, told.id, importance=8.0, actor="anna")
    assert anna.sync() == SyncReport(pushed=1)
    assert store.scopes() == {TEAM: "shop"}
    assert ben.sync() == SyncReport(pulled=1)
    cases = [stores.by_words(ben.store, "redis"), stores.by_meaning(ben.store, told.content)]
    assert [found for found in cases if found != [told.id]] == []
    assert ben.store.get([told.id])[0] == anna.store.get([told.id])[0]
    added, updated = ben.store.history(told.id)
    assert (added.actor, added.action, updated.action) == ("user", "add", "update")
    assert updated.actor in ("anna", "anna for user")  # where the team's database acts for a person
    assert anna.sync() == ben.sync() == NOTHING


@on_both
def test_conversations_or_documents_are_not_synced(anna, store):
    known = stores.fill(anna.store)
    anna.sync()
    assert store.get([known["turn"].id, known["page"].id]) == store.sessions([TEAM]) == []
    assert store.get([known["told"].id])


def test_changes_on_both_sides_are_merged(anna, ben):
    (told,) = share(anna, ben, "Tea at four")
    edit(anna.store, told, "Tea at five", at=day(21), actor="anna")
    change(anna.store, told.id, at=day(21), actor="anna", kind="preference")
    edit(ben.store, told, "Tea at six", at=day(22), actor="ben")
    for own, value in ((ben.store, 2.0), (anna.store, 1.0)):
        write(own, at=day(23), change=(Change(told.id, "vote", {"vote": value}),))
    assert anna.sync().pushed == 0
    report = ben.sync()
    assert (report.merged, report.conflicts) == (1, ((told.id, ("content",)),))
    anna.sync()
    for own in (anna.store, ben.store):
        (found,) = own.get([told.id])
        assert (found.content, found.kind, found.usefulness) == ("Tea at six", "preference", 3.0)
        assert "Tea at five" in str(own.history(told.id))
        assert stores.by_words(own, "six") == [told.id]
        assert own.check(deep=True) == []
    one, other = (version(each.store.records([told.id])[0]) for each in (anna, ben))
    assert one == other


def test_a_relation_is_synced_then_removed(anna, ben, store):
    one, other = share(anna, ben, "Old", "New")
    link = Relation(other.id, one.id, "builds_on")
    write(anna.store, at=day(21), actor="anna", relate=(link,))
    assert anna.sync().links == ben.sync().links == 1
    assert [found[:3] for found in ben.store.relations([one.id])] == [link[:3]]
    write(ben.store, at=day(22), unrelate=(link,))
    assert ben.sync().links == anna.sync().links == 1
    assert anna.store.relations([one.id]) == store.relations([one.id]) == []
    assert anna.sync() == ben.sync() == NOTHING


def test_a_change_during_a_sync_is_not_overwritten(anna, ben, store):
    (told,) = share(anna, ben, "Tea at four")
    change(anna.store, told.id, importance=1.0, at=day(21))

    class Slow(StorePeer):
        def take(self, *given):
            change(self.store, told.id, confidence=0.5, at=day(22))
            return super().take(*given)

    assert anna.sync(there=Slow).left == (told.id,)
    assert anna.sync().merged == 1
    assert (store.get([told.id])[0].importance, store.get([told.id])[0].confidence) == (1.0, 0.5)


@pytest.mark.parametrize("now", ["A secret", "Something else"], ids=["text", "history"])
def test_what_was_purged_here_is_not_pulled_again_under_another_id(anna, ben, store, now):
    purge(anna.store, *tell(anna.store, "A secret"))
    (theirs,) = tell(ben.store, "A secret")
    if now != theirs.content:
        edit(ben.store, theirs, now)
    ben.sync()
    assert anna.sync().left == (theirs.id,)
    assert texts(anna.store) == set()
    assert texts(store, TEAM) == {now}  # what a colleague said is theirs to purge


@pytest.mark.parametrize(
    ("theirs", "here"),
    [
        pytest.param("replace", {"Deploy on Mondays"}, id="replace"),
        pytest.param("forget", set(), id="forget"),
    ],
)
def test_a_replacement_that_is_not_visible_hides_nothing(anna, ben, store, theirs, here):
    friday, monday = share(anna, ben, "Deploy on Fridays", "Deploy on Mondays")
    replace(anna.store, monday, friday, day(21))
    if theirs == "replace":
        replace(store, friday, monday, day(22))
    else:
        forget(store, monday, day(22))
    for _ in range(2):
        anna.sync()
        assert (texts(anna.store), texts(store, TEAM)) == (here, {"Deploy on Fridays"})


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_arrival_does_not_matter(anna, ben, store, seed):
    said = ("On Fridays", "On Mondays", "On Tuesdays", "One", "Two", "Three")
    friday, monday, tuesday, one, two, three = share(anna, ben, *said)
    replace(anna.store, monday, friday, day(21))
    forget(anna.store, tuesday, day(22))
    replace(store, tuesday, monday, day(22))
    replace(anna.store, two, one, day(23))
    replace(anna.store, three, two, day(23))
    replace(store, one, three, day(23))
    Shuffled.chance = random.Random(seed)
    for _ in range(2):
        anna.sync(here=Shuffled, there=Shuffled)
        assert texts(anna.store) == {"On Mondays", "Three"}
        assert texts(store, TEAM) == {"On Fridays", "Two"}


def test_a_sync_that_is_cut_off_is_finished_by_the_next_from_what_was_noted(anna, ben, store):
    tell(anna.store, *(f"Anna {number}" for number in range(5)))
    tell(ben.store, *(f"Ben {number}" for number in range(5)))
    ben.sync()

    class Cut(Exception):
        pass

    class Failing(StorePeer):
        left = 0

        def take(self, *given):
            Failing.left -= 1
            if Failing.left < 0:
                raise Cut
            return super().take(*given)

    for allowed in range(2):
        Failing.left = allowed
        with pytest.raises(Cut):
            anna.sync(here=Failing, there=Failing)
    anna.sync()
    assert len(texts(anna.store)) == len(texts(store, TEAM)) == 10
    shared = Shared(frozenset({"a"}), frozenset({("a", "b", "answers")}))
    assert sync.load_shared(store, "team") == Shared()
    sync.save_shared(store, "team", shared)
    assert sync.load_shared(store, "team") == shared


@on_both
def test_forgetting_or_purging_is_synced(anna, ben, store):
    forgotten, purged, _ = share(anna, ben, "Forgotten", "Purged", "Kept")
    forget(anna.store, forgotten, day(22))
    purge(anna.store, purged)
    change(ben.store, purged.id, importance=9.0, at=day(25))  # a purge wins over it
    assert anna.sync() == SyncReport(merged=1, removed_there=1)
    assert ben.sync() == SyncReport(merged=1, removed_here=1)
    assert [
        each
        for each in (store, ben.store)
        if each.get([purged.id]) != [] or not each.find_purged([stores.content_hash("Purged")])
    ] == []
    assert texts(ben.store) == {"Kept"}
    assert ben.sync() == anna.sync() == NOTHING


@on_both
def test_a_restored_memory_is_synced(anna, ben, store):
    forgotten, purged, _ = share(anna, ben, "Forgotten", "Purged", "Kept")
    forget(anna.store, forgotten, day(22))
    purge(anna.store, purged)
    change(ben.store, purged.id, importance=9.0, at=day(25))  # a purge wins over it
    assert anna.sync() == SyncReport(merged=1, removed_there=1)
    assert ben.sync() == SyncReport(merged=1, removed_here=1)
    change(ben.store, forgotten.id, "restore", at=day(23), deleted_at=None)
    round_robin(ben, anna)
    assert texts(anna.store) == {"Kept", "Forgotten"}
    forget(ben.store, forgotten, day(24))
    round_robin(ben, anna)
    share(anna, ben, "Forgotten")  # what everybody forgot may be told again to everybody
    assert texts(ben.store) == texts(store, TEAM) == {"Kept", "Forgotten"}


def test_the_same_text_from_two_people_is_stored_once(anna, ben, store):
    (one,), (other,) = (tell(each.store, "We deploy from main") for each in (anna, ben))
    round_robin(anna, ben)
    cases = [(anna.store, HOME, one), (ben.store, HOME, other), (store, TEAM, one)]
    assert [
        each
        for each, scope, id in cases
        if [memory.id for memory in each.scan(everything(scope))] != [id.id]
    ] == []
    assert anna.sync() == ben.sync() == NOTHING


def test_a_purge_removes_every_wording(anna, ben):
    (told,) = share(anna, ben, "The password is swordfish")
    edit(anna.store, told, "Passwords lie in the vault", at=day(21))
    purge(ben.store, told)
    tell(ben.store, "Passwords lie in the vault")
    ben.sync()
    assert anna.sync().removed_here == 1
    assert anna.store.get([told.id]) == []


@on_both
def test_a_mark_of_a_newer_memory_is_derived_on_the_other_laptop(anna, ben, store):
    old, new = tell(anna.store, "Deploy on Fridays", "Deploy on Mondays")
    write(anna.store, relate=(Relation(new.id, old.id, "may_replace"),))
    round_robin(anna, ben)
    assert ben.store.get([old.id])[0].newer == (new.id,)
    forget(ben.store, new, day(22))
    round_robin(ben, anna)
    assert anna.store.get([old.id])[0].newer == ()


def test_a_lost_database_is_filled_again(anna, ben, tmp_path):
    share(anna, ben, *(f"Memory {number}" for number in range(50)))
    empty = SqliteStore(tmp_path / "empty.db", timeout=5)
    assert anna.sync(team=empty).pushed == 50
    anna.store.take(Bundle(gone=tuple(anna.shared.ids)))
    assert anna.sync(team=empty).pulled == len(texts(anna.store)) == 50
    empty.close()


def test_a_purge_of_many_memories_needs_a_confirmation(anna, ben, tmp_path):
    share(anna, ben, *(f"Memory {number}" for number in range(50)))
    empty = SqliteStore(tmp_path / "empty.db", timeout=5)
    assert anna.sync(team=empty).pushed == 50
    purge(empty, *empty.scan(everything(TEAM)))
    with pytest.raises(sync.TooMany, match="Nothing was changed"):
        anna.sync(team=empty)
    assert len(texts(anna.store)) == 50
    assert anna.sync(team=empty, allow_loss=True).removed_here == 50
    empty.close()


def test_what_a_conversation_replaced_stays_visible_to_others(anna, ben, store):
    one, _ = share(anna, ben, "Deploy on Fridays", "Deploy on Mondays")
    where = {"source": "talk.jsonl", "source_type": "transcript", "session": "session-1"}
    (said,) = tell(anna.store, "Deploy on Tuesdays", **where)
    replace(anna.store, said, one, day(21))
    change(ben.store, one.id, importance=9.0, at=day(22))
    assert anna.sync() == NOTHING
    ben.sync()
    assert anna.sync() == NOTHING
    assert texts(store, TEAM) == {"Deploy on Fridays", "Deploy on Mondays"}
    assert store.get([said.id]) == []
    assert texts(anna.store) == {"Deploy on Tuesdays", "Deploy on Mondays"}
    purge(anna.store, one)
    anna.sync()
    assert store.get([one.id]) == []


class Counted(StorePeer):
    """A database that counts its requests."""

    requests = 0

    def fetch(self, ids):
        Counted.requests += 1
        return super().fetch(ids)

    def take(self, bundle, expect):
        Counted.requests += 1
        return super().take(bundle, expect)


def changed(store, old, new):
    edit(store, old, f"{old.content}, they say", at=day(21))


def replaced(store, old, new):
    replace(store, new, old, day(21))


@on_both
@pytest.mark.parametrize("how", [changed, replaced])
def test_requests_do_not_grow_with_changed_memories(anna, ben, store, how):
    def count(number):
        old = share(anna, ben, *(f"Old {how.__name__} {at} of {number}" for at in range(number)))
        new = share(anna, ben, *(f"New {how.__name__} {at} of {number}" for at in range(number)))
        for one, other in zip(old, new, strict=True):
            how(anna.store, one, other)
        Counted.requests = 0
        assert anna.sync(there=Counted).merged == number
        return Counted.requests

    assert count(2) == count(9)


def test_an_undone_import_stays_away_after_a_sync(cli, tmp_path):
    def sync_and_list(*place):
        cli.ok(*words, *place)
        return cli.json("list", *place)

    file = tmp_path / "notes.jsonl"
    file.write_text('{"text": "Taken in by mistake"}\n')
    other = ("--project", str(tmp_path), "--database", str(tmp_path / "other.db"))
    words = ("sync", "--with", str(tmp_path / "team.db"), "--as", "shop")
    cli.ok("import", str(file))
    assert (cli.json(*words)["pushed"], cli.json(*words, *other)["pulled"]) == (1, 1)
    file.write_text('{"text": "Taken in by mistake"}\n{"text": "Exchanged with nobody"}\n')
    cli.ok("import", str(file))
    done = cli.json("import", str(file), "--undo")
    assert (done["removed"], done["forgotten"]) == (1, 1)
    assert [sync_and_list(), sync_and_list(*other), sync_and_list()] == [[], [], []]


def test_the_command_exchanges_with_a_database(cli, tmp_path):
    team = str(tmp_path / "team.db")
    cli.add("We deploy from main", "--kind", "decision")
    cli.ok("add", "My own", "--personal")
    assert cli.json("sync", "--with", team, "--as", "Shop")["pushed"] == 1
    assert not any(cli.json("sync", "--with", team, "--as", "shop").values())
    cli.ok("config", "team", team)
    cli.ok("add", "Another thing")
    assert cli.ok("sync", "--as", "shop").split() == ["pushed", "1"]
    other = ("--project", str(tmp_path), "--database", str(tmp_path / "other.db"))
    assert cli.json("sync", "--as", "shop", *other)["pulled"] == 2
    found = {one["content"] for one in cli.json("list", *other)}
    assert found == {"We deploy from main", "Another thing"}
    assert cli.json("sync", "--personal", "--as", "shop")["pushed"] == 1


MEMORY = make("Tea at four", id="0" * 36, importance=5.0)
ADDED = Event(day(1), "user", "add", {}, {})


def base(*events: Event, **fields) -> Record:
    memory = MEMORY
    for event in events:
        memory = apply_fields(memory, event.after)._replace(updated_at=event.at)
    return Record(memory._replace(**fields), True, (ADDED, *events))


def said(number: int, action: str = "update", actor: str = "user", before=None, **after) -> Event:
    return Event(day(number), actor, action, before or {}, after)


FORGOTTEN = said(2, "forget", deleted_at=stamp(day(2)))
NOT_USEFUL = said(2, "vote", "anna", before={"usefulness": 0.0}, usefulness=-1.0)
USEFUL = [
    said(2, "vote", before={"usefulness": 0.0}, usefulness=2.0),
    said(3, "vote", before={"usefulness": 2.0}, usefulness=3.0),
]
CASES = [
    ([], [], {}, ()),
    ([said(2, importance=7.0)], [], {"importance": 7.0}, ()),
    (
        [said(2, importance=7.0)],
        [said(3, kind="gotcha")],
        {"importance": 7.0, "kind": "gotcha"},
        (),
    ),
    ([said(4, importance=7.0)], [said(3, importance=2.0)], {"importance": 7.0}, ("importance",)),
    ([said(3, importance=7.0)], [said(3, "update", "x", importance=7.0)], {"importance": 7.0}, ()),
    ([said(2, content="Five")], [said(3, content="Six")], {"content": "Six"}, ("content",)),
    ([FORGOTTEN], [said(3, importance=1.0)], {"deleted_at": day(2), "importance": 1.0}, ()),
    ([FORGOTTEN], [said(3, "restore", deleted_at=None)], {"deleted_at": None}, ("deleted_at",)),
    (
        [said(2, tags='["a"]')],
        [said(2, metadata='{"x": 1}')],
        {"tags": ("a",), "metadata": {"x": 1}},
        (),
    ),
    (
        [said(2, entities=[["Tea", "concept"]])],
        [said(2, answered=1)],
        {"entities": (Entity("Tea", "concept"),), "answered": True},
        (),
    ),
    (USEFUL, [NOT_USEFUL], {"usefulness": 2.0}, ()),
]


@pytest.mark.parametrize("swapped", [False, True], ids=["mine first", "theirs first"])
@pytest.mark.parametrize(("mine", "theirs", "expected", "conflicts"), CASES)
def test_each_field_keeps_its_last_value(mine, theirs, expected, conflicts, swapped):
    sides = base(*mine), base(*theirs)
    merged = merge(*(reversed(sides) if swapped else sides))
    assert {name: getattr(merged.record.memory, name) for name in expected} == expected
    assert merged.conflicts == conflicts
    actions = {event.action for event in merged.record.events}
    assert actions >= {event.action for event in (*mine, *theirs)}


@pytest.mark.parametrize(("mine", "theirs", "expected", "conflicts"), CASES)
def test_both_sides_merge_to_the_same_version(mine, theirs, expected, conflicts):
    one, other = base(*mine), base(*theirs)
    assert version(merge(one, other).record) == version(merge(other, one).record)


def _field(chance: random.Random) -> dict:
    number = chance.randint(0, 9)
    text, summary = {"content": f"Text {number}"}, {"summary": f"Summary {number}"}
    return chance.choice([{"importance": float(number)}, text, summary, text | summary])


@pytest.mark.parametrize("_unused", range(50))
def test_any_order_of_merging_ends_the_same(_unused):
    chance = random.Random(7)
    copies = []
    for who in ("a", "b", "c"):
        days = sorted(chance.sample(range(2, 20), chance.randint(1, 3)))
        copies.append(base(*(said(at, actor=who, **_field(chance)) for at in days)))
    ends = set()
    for first, second, third in itertools.permutations(copies):
        ends.add(version(merge(merge(first, second).record, third).record))
    assert len(ends) == 1


def test_a_use_is_no_new_version():
    one = base(access_count=3, last_accessed=day(4))
    other = base(access_count=5, last_accessed=day(2))
    assert version(one) == version(other)
    merged = merge(one, other).record.memory
    assert (merged.access_count, merged.last_accessed) == (5, day(4))


def test_vectors_stay_with_their_text():
    vectors = (("m", 2, b"12345678"),)
    one = base(said(2, importance=7.0))._replace(vectors=vectors)
    other = base(said(3, content="Tea at six"))
    assert merge(one, other).record.vectors == ()
    assert merge(one, base(said(3, kind="gotcha"))).record.vectors in (vectors, ())
    assert merge(one, other._replace(vectors=vectors)).record.vectors == vectors


OPERATIONS = (
    "add repeat edit edit vote supersede supersede consolidate consolidate talk forget restore unlink purge"
).split()


class Side:
    """A database with a project of its own, a clock that is not quite right, and somebody who does this and that."""

    def __init__(self, path, name, chance):
        self.store, self.name = SqliteStore(path / f"{name}.db", timeout=5), name
        self.chance, self.now = chance, datetime(2026, 4, 1, tzinfo=UTC)
        (path / name).mkdir()
        how = {"config": Config(embedding="none"), "clock": self.clock, "actor": name}
        self.memory = Bethink(store=self.store, directory=path / name, **how)
        self.scope = self.memory.scope
        self.purged: dict[str, set[str]] = {}  # id → the texts that it had
        self.said = 0

    def clock(self):
        self.now += timedelta(seconds=self.chance.randint(1, 600))
        return self.now

    def text(self) -> str:
        self.said += 1
        subject = self.chance.choice(("queues", "deploys", "caches"))
        return f"{self.name} said {self.said} of {subject}"

    def all(self) -> dict[str, object]:
        ids = [one.id for one in self.store.scan(everything(self.scope))]
        return {record.memory.id: record for record in self.store.records(ids)}

    def visible(self) -> set[str]:
        later = self.now + timedelta(days=1000)
        return {one.id for one in self.store.scan(Filter((self.scope,), now=later))}

    def stands(self, id: str, all, visible) -> bool:
        """Whether a memory, or what replaced it in the end, can be seen."""
        return any(one in visible for one in self.chain(id, all))

    def chain(self, id: str | None, all) -> list[str]:
        """A memory and what replaced it, step by step, as far as that is known here and one step further."""
        found = []
        while id and id not in found:
            found.append(id)
            id = all[id].memory.superseded_by if id in all else None
        return found

    def act(self) -> None:
        operation = self.chance.choice(OPERATIONS)
        alive = sorted(id for id in self.visible() if not self.store.get([id])[0].session)
        try:
            if operation == "add" or len(alive) < 3:
                self.memory.add(self.text(), dedup=False)
            else:
                getattr(self, operation)(*self.chance.sample(alive, 2))
        except BethinkError:
            pass  # a text that is there already, or a circle

    def repeat(self, *_):
        """What somebody else may say too, word for word."""
        self.memory.add(f"Everybody says {self.chance.randint(1, 6)}", dedup=False)

    def edit(self, id, _):
        self.memory.update(id, content=self.text())

    def vote(self, id, _):
        self.memory.vote(id)

    def supersede(self, new, old):
        self.memory.link(new, old, "supersedes")

    def consolidate(self, one, other):
        both = tuple(self.store.get([one, other]))
        tending.apply_steps(self.memory, [tending.Step("merge", both, "alike")])

    def talk(self, old, _):
        """An idea of a conversation, which is nobody else's, takes the place of what was told."""
        at, where = self.clock(), {"source": "talk.jsonl", "source_type": "transcript"}
        idea = make(self.text(), scope=self.scope, created_at=at, session="talk", **where)
        source = (self.scope, Source("talk.jsonl", "transcript"))
        batch = {"add": (Entry(idea, (), False),), "sources": (source,)}
        write(self.store, at, actor=self.name, **batch)
        replace(self.store, idea, self.store.get([old])[0], at)

    def forget(self, id, _):
        self.memory.forget(id)

    def restore(self, *_):
        hidden = sorted(self.all().keys() - self.visible())
        self.memory.restore(self.chance.choice(hidden or ["nothing"]))

    def unlink(self, *_):
        related = self.store.relations(sorted(self.all()))
        if known := [one for one in related if one.type == "supersedes"]:
            self.memory.unlink(*self.chance.choice(known)[:3])

    def purge(self, id, _):
        texts = list_texts(self.store.records([id])[0])
        self.purged[id] = {text for text in texts if not text.startswith("Everybody")}
        self.memory.forget(id, purge=True)


def synced(mine: Side, theirs: Side, shared: Shared, purged):
    """A sync of the two, after which nothing is lost that either saw, unless somebody purged it."""
    sides = (mine, theirs)
    before = {side: (side.all(), side.visible()) for side in sides}
    ends = (Shuffled(side.store, side.scope, side.name, side.clock) for side in sides)
    report, shared = Sync(*ends, allow_loss=True).run(shared)
    for side, other in (sides, sides[::-1]):
        (all, visible), (there, seen_there) = before[side], before[other]
        now, seen = side.all(), side.visible()
        for id in visible - purged.keys():
            # Somebody forgot it, or what replaced it.
            chosen = id in there and (
                there[id].memory.deleted_at or not other.stands(id, there, seen_there)
            )
            lost = f"{all[id].memory.content!r} was lost by {side.name}"
            assert side.stands(id, now, seen) or chosen, lost
    return report, shared


def gone(purged, *sides: Side) -> bool:
    """Whether nothing that was purged is left, not even in the history of something else."""
    words = set().union(*purged.values())
    records = [record for side in sides for record in side.all().values()]
    return not any(record.memory.id in purged or list_texts(record) & words for record in records)


@pytest.mark.parametrize("seed", [0, 47])
def test_random_changes_on_two_sides_lose_nothing(tmp_path, seed):
    Shuffled.chance, chance = random.Random(seed), random.Random(seed)
    sides = anna, team = tuple(Side(tmp_path, name, chance) for name in ("anna", "team"))
    shared, purged = Shared(), {}
    for _ in range(8):
        for side in sides:
            for _ in range(chance.randint(0, 8)):
                side.act()
            purged |= side.purged
        for _ in range(2):
            report, shared = synced(anna, team, shared, purged)
            assert gone(purged, *sides)
        ours, theirs = (
            {id: version(one) for id, one in side.all().items() if not one.memory.session}
            for side in sides
        )
        apart = {id for id in {**ours, **theirs} if ours.get(id) != theirs.get(id)}
        for id in apart - set(report.left):
            # Only what is replaced by something that the other side does not show, or told there in the same words.
            own = [side.all()[id] for side in sides if id in side.all()]
            told = [one.memory.content_hash for side in sides for one in side.all().values()]
            replaced = any(len(side.chain(id, side.all())) > 1 for side in sides)
            assert replaced or told.count(own[0].memory.content_hash) > 1
    for side in sides:
        assert side.store.check(deep=True) == []
        side.store.close()
