"""Databases that share a project, brought in step again and again, whatever happens to them in between."""

from __future__ import annotations

import json

import pytest
from cli_runner import cli  # noqa: F401
from conftest import BACKENDS
from stores import (
    NOW,
    by_meaning,
    by_words,
    change,
    content_hash,
    day,
    everything,
    make,
    put,
    seen,
    write,
)
from stores import fill

from bethink.features.sync import (
    Shared,
    StorePeer,
    Sync,
    SyncReport,
    TooMany,
    load_shared,
    save_shared,
)
from bethink.store.sqlite import SqliteStore
from bethink.store.transfer import Bundle, team_scope, version
from bethink.types import PERSONAL, Change, Relation

HOME, TEAM = "project:here", team_scope("shop")


@pytest.fixture
def store_kind():
    """These tests say themselves which database is meant."""
    return "sqlite"


def side(store, scope=HOME, kind=StorePeer):
    return kind(store, scope, "anna", lambda: NOW)


class Laptop:
    """A database of one person, and what it had in common with the team's last time."""

    def __init__(self, store, team):
        self.store, self.team, self.shared = store, team, Shared()

    def sync(self, team=None, allow_loss=False) -> SyncReport:
        run = Sync(side(self.store), side(team or self.team, TEAM), "shop", allow_loss)
        report, self.shared = run.run(self.shared)
        return report


@pytest.fixture
def store(request, tmp_path):
    """The team's database."""
    (tmp_path / "team").mkdir()
    with BACKENDS[getattr(request, "param", "sqlite")](tmp_path / "team") as backend:
        yield backend.open()


on_both = pytest.mark.parametrize("store", list(BACKENDS), indirect=True)


@pytest.fixture
def laptops(tmp_path, store):
    """Two laptops and the team's database."""
    stores = [SqliteStore(tmp_path / f"{name}.db", timeout=5) for name in ("anna", "ben")]
    yield [Laptop(each, store) for each in stores]
    for each in stores:
        each.close()


def edit(store, memory, text, at=21, actor="user"):
    change(store, memory.id, at=day(at), actor=actor, content=text, content_hash=content_hash(text))


def forget(store, memory, at=22):
    change(store, memory.id, "forget", at=day(at), deleted_at=day(at))


def purge(store, *memories):
    write(store, purge=tuple(memory.id for memory in memories))


def texts(store, scope=HOME) -> set[str]:
    return {memory.content for memory in store.scan(seen(scope))}


def versions(store, scope=HOME) -> dict[str, bytes]:
    found = [memory.id for memory in store.scan(everything(scope))]
    return {record.memory.id: version(record) for record in store.records(found)}


def round_robin(*laptops) -> None:
    for laptop in (*laptops, *laptops):
        laptop.sync()


@on_both
def test_what_is_told_on_one_laptop_is_found_on_the_other(laptops, store):
    anna, ben = laptops
    told = make("Sessions are kept in Redis", tags=("auth",))
    put(anna.store, told, make("Mine", scope=PERSONAL), make("Elsewhere", scope="project:other"))
    change(anna.store, told.id, importance=8.0, actor="anna")
    assert anna.sync() == SyncReport(pushed=1)
    assert store.overview().extra["scope_names"] == {TEAM: "shop"}
    assert ben.sync() == SyncReport(pulled=1)
    assert (
        by_words(ben.store, "redis sessions")
        == by_meaning(ben.store, "Sessions are kept in Redis")
        == [told.id]
    )
    assert ben.store.get([told.id])[0] == anna.store.get([told.id])[0]
    added, updated = ben.store.history(told.id)
    assert (added.actor, added.action, updated.action) == ("user", "add", "update")
    assert updated.actor in ("anna", "anna for user")  # where the team's database acts for a person
    assert anna.sync() == ben.sync() == SyncReport()


def test_changes_on_both_sides_are_merged_and_the_later_word_stands(laptops):
    anna, ben = laptops
    told = make("Tea at four")
    put(anna.store, told)
    round_robin(anna, ben)
    edit(anna.store, told, "Tea at five", 21, "anna")
    change(anna.store, told.id, at=day(21), actor="anna", kind="preference")
    edit(ben.store, told, "Tea at six", 22, "ben")
    for store, value in ((ben.store, 2.0), (anna.store, 1.0)):
        write(store, at=day(23), change=(Change(told.id, "vote", {"vote": value}),))
    assert anna.sync().pushed == 0
    report = ben.sync()
    assert report.merged == 1
    assert report.conflicts == ((told.id, ("content",)),)
    anna.sync()
    for laptop in laptops:
        (found,) = laptop.store.get([told.id])
        assert (found.content, found.kind, found.usefulness) == ("Tea at six", "preference", 3.0)
        assert "Tea at five" in str(laptop.store.history(told.id))
        assert by_words(laptop.store, "six") == [told.id]
        assert laptop.store.check(deep=True) == []
    assert versions(anna.store) == versions(ben.store)


@pytest.mark.parametrize("now", ["A secret", "Something else"], ids=["text", "history"])
def test_what_was_purged_here_is_not_pulled_again_under_another_id(laptops, store, now):
    anna, ben = laptops
    mine, theirs = make("A secret"), make("A secret")
    put(anna.store, mine)
    purge(anna.store, mine)
    put(ben.store, theirs)
    if now != theirs.content:
        edit(ben.store, theirs, now)
    ben.sync()
    assert anna.sync().left == (theirs.id,)
    assert texts(anna.store) == set()
    assert texts(store, TEAM) == {now}  # what a colleague said is theirs to purge


def test_what_everybody_forgot_may_be_told_again_to_everybody(laptops, store):
    anna, ben = laptops
    told = make("We deploy from main")
    put(anna.store, told)
    round_robin(anna, ben)
    forget(ben.store, told)
    round_robin(ben, anna)
    put(anna.store, make("We deploy from main"))
    round_robin(anna, ben)
    assert texts(ben.store) == texts(store, TEAM) == {"We deploy from main"}


def test_a_purge_goes_over_though_the_other_side_says_it_in_words_that_are_told_here(laptops):
    anna, ben = laptops
    told = make("The password is swordfish")
    put(anna.store, told)
    round_robin(anna, ben)
    edit(anna.store, told, "Passwords lie in the vault")
    purge(ben.store, told)
    put(ben.store, make("Passwords lie in the vault"))
    ben.sync()
    assert anna.sync().removed_here == 1
    assert anna.store.get([told.id]) == []


def test_relations_come_and_go_with_their_memories(laptops, store):
    anna, ben = laptops
    one, other = make("Old"), make("New")
    put(anna.store, one, other)
    round_robin(anna, ben)
    link = Relation(other.id, one.id, "builds_on")
    write(anna.store, at=day(21), actor="anna", relate=(link,))
    assert anna.sync().links == ben.sync().links == 1
    assert [found[:3] for found in ben.store.relations([one.id])] == [link[:3]]
    write(ben.store, at=day(22), unrelate=(link,))
    assert ben.sync().links == anna.sync().links == 1
    assert anna.store.relations([one.id]) == store.relations([one.id]) == []
    assert anna.sync() == ben.sync() == SyncReport()


def test_a_change_that_comes_between_is_not_overwritten(laptops, store):
    anna, _ = laptops
    told = make("Tea at four")
    put(anna.store, told)
    anna.sync()
    change(anna.store, told.id, importance=1.0, at=day(21))

    class Slow(StorePeer):
        def take(self, *given):
            change(self.store, told.id, confidence=0.5, at=day(22))
            return super().take(*given)

    run = Sync(side(anna.store, HOME, StorePeer), side(store, TEAM, Slow))
    report, anna.shared = run.run(anna.shared)
    assert report.left == (told.id,)
    assert anna.sync().merged == 1
    assert (store.get([told.id])[0].importance, store.get([told.id])[0].confidence) == (1.0, 0.5)


def supersede(store, new, old, at) -> None:
    changes = (Change(old.id, "supersede", {"superseded_by": new.id, "valid_to": new.created_at}),)
    write(store, at=at, change=changes, relate=(Relation(new.id, old.id, "supersedes"),))


@pytest.fixture
def pair(laptops):
    """Two memories that everybody has."""
    found = make("Deploy on Fridays"), make("Deploy on Mondays")
    put(laptops[0].store, *found)
    round_robin(*laptops)
    return found


@pytest.mark.parametrize(
    ("theirs", "here"), [("replaces it back", {"Deploy on Mondays"}), ("forgets", set())]
)
def test_nothing_is_hidden_behind_what_cannot_be_seen(laptops, pair, theirs, here):
    anna, team = laptops[0].store, laptops[0].team
    friday, monday = pair
    supersede(anna, monday, friday, day(21))
    if theirs == "replaces it back":
        supersede(team, friday, monday, day(22))
    else:
        forget(team, monday)
    for _ in range(2):
        laptops[0].sync()
        assert (texts(anna), texts(team, TEAM)) == (here, {"Deploy on Fridays"})


def test_a_sync_that_is_cut_off_is_finished_by_the_next(laptops, store):
    anna, ben = laptops
    put(anna.store, *(make(f"Anna {number}") for number in range(5)))
    put(ben.store, *(make(f"Ben {number}") for number in range(5)))
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

    for allowed in range(4):
        Failing.left = allowed
        run = Sync(side(anna.store, HOME, Failing), side(store, TEAM, Failing))
        try:
            _, anna.shared = run.run(anna.shared)
        except Cut:
            continue
    anna.sync()
    assert len(texts(anna.store)) == len(texts(store, TEAM)) == 10


@on_both
def test_what_is_forgotten_or_purged_goes_on_the_other_side_too(laptops, store):
    anna, ben = laptops
    forgotten, purged, kept = (make(text) for text in ("Forgotten", "Purged", "Kept"))
    put(anna.store, forgotten, purged, kept)
    round_robin(anna, ben)
    forget(anna.store, forgotten)
    purge(anna.store, purged)
    change(ben.store, purged.id, importance=9.0, at=day(25))  # a purge wins over it
    assert anna.sync() == SyncReport(merged=1, removed_there=1)
    assert ben.sync() == SyncReport(merged=1, removed_here=1)
    for each in (store, ben.store):
        assert each.get([purged.id]) == []
        assert each.find_purged([content_hash("Purged")])
    assert texts(ben.store) == {"Kept"}
    assert ben.sync() == anna.sync() == SyncReport()
    change(ben.store, forgotten.id, "restore", at=day(23), deleted_at=None)
    round_robin(ben, anna)
    assert texts(anna.store) == {"Kept", "Forgotten"}


def test_the_same_said_by_two_people_stays_what_each_of_them_said(laptops, store):
    anna, ben = laptops
    one, other = make("We deploy from main"), make("We deploy from main")
    put(anna.store, one)
    put(ben.store, other)
    round_robin(anna, ben)
    for each, scope, id in ((anna.store, HOME, one), (ben.store, HOME, other), (store, TEAM, one)):
        assert [memory.id for memory in each.scan(everything(scope))] == [id.id]
    assert anna.sync() == ben.sync() == SyncReport()


@on_both
def test_neither_conversations_nor_documents_are_exchanged(laptops, store):
    anna, _ = laptops
    known = fill(anna.store)
    anna.sync()
    assert store.get([known["turn"].id, known["page"].id]) == []
    assert store.sessions([TEAM]) == []
    assert store.get([known["told"].id])


def test_what_is_lost_comes_again_and_only_what_is_purged_goes(laptops, tmp_path):
    anna, ben = laptops
    put(anna.store, *(make(f"Memory {number}") for number in range(50)))
    round_robin(anna, ben)
    empty = SqliteStore(tmp_path / "empty.db", timeout=5)
    assert anna.sync(team=empty).pushed == 50
    anna.store.take(Bundle(gone=tuple(anna.shared.ids)))
    assert anna.sync(team=empty).pulled == len(texts(anna.store)) == 50
    purge(empty, *empty.scan(everything(TEAM)))
    with pytest.raises(TooMany, match="Nothing was changed"):
        anna.sync(team=empty)
    assert len(texts(anna.store)) == 50
    assert anna.sync(team=empty, allow_loss=True).removed_here == 50
    empty.close()


def test_what_a_conversation_replaced_stays_visible_to_those_who_do_not_get_the_conversation(
    laptops, store, pair
):
    anna, ben = laptops
    one, _ = pair
    where = {"source": "talk.jsonl", "source_type": "transcript", "session": "session-1"}
    said = make("Deploy on Tuesdays", **where)
    put(anna.store, said, unique=False)
    supersede(anna.store, said, one, day(21))
    change(ben.store, one.id, importance=9.0, at=day(22))
    assert anna.sync() == SyncReport()
    ben.sync()
    assert anna.sync() == SyncReport()
    assert texts(store, TEAM) == {"Deploy on Fridays", "Deploy on Mondays"}
    assert store.get([said.id]) == []
    assert texts(anna.store) == {"Deploy on Tuesdays", "Deploy on Mondays"}
    purge(anna.store, one)
    anna.sync()
    assert store.get([one.id]) == []


def test_what_both_had_is_noted_in_the_database(laptops):
    store = laptops[0].store
    shared = Shared(frozenset({"a"}), frozenset({("a", "b", "answers")}))
    assert load_shared(store, "team") == Shared()
    save_shared(store, "team", shared)
    assert load_shared(store, "team") == shared
    assert json.loads(store.read_note("team"))["records"] == {"a": ""}  # 0.10 looks for versions
    of_0_10 = '{"records": {"a": "0102"}, "links": [["a", "b", "answers"]]}'
    store.take(Bundle(), note=("team", of_0_10))
    assert load_shared(store, "team") == shared


def test_a_record_of_another_scope_is_not_given_out(laptops):
    store, mine = laptops[0].store, make("Mine", scope=PERSONAL)
    put(store, mine)
    assert side(store).fetch([mine.id]) == []
    assert side(store, PERSONAL).fetch([mine.id])[0].memory.content == "Mine"


def test_an_import_that_was_exchanged_and_taken_back_stays_away(cli, tmp_path):  # noqa: F811
    team, file = str(tmp_path / "team.db"), tmp_path / "notes.jsonl"
    file.write_text('{"text": "Taken in by mistake"}\n')
    other = ("--project", str(tmp_path), "--database", str(tmp_path / "other.db"))
    words = ("sync", "--with", team, "--as", "shop")
    cli.ok("import", str(file))
    assert (cli.json(*words)["pushed"], cli.json(*words, *other)["pulled"]) == (1, 1)
    file.write_text('{"text": "Taken in by mistake"}\n{"text": "Exchanged with nobody"}\n')
    cli.ok("import", str(file))
    done = cli.json("import", str(file), "--undo")
    assert (done["removed"], done["forgotten"]) == (1, 1)
    for place in ((), other, ()):
        cli.ok(*words, *place)
        assert cli.json("list", *place) == []


def test_the_command_exchanges_with_a_database(cli, tmp_path):  # noqa: F811
    team = str(tmp_path / "team.db")
    cli.add("We deploy from main", "--kind", "decision")
    cli.ok("add", "My own", "--personal")
    assert cli.json("sync", "--with", team, "--as", "Shop")["pushed"] == 1
    assert cli.json("sync", "--with", team, "--as", "shop") == {
        "pushed": 0,
        "pulled": 0,
        "merged": 0,
        "removed_here": 0,
        "removed_there": 0,
        "links": 0,
        "conflicts": [],
        "left": [],
    }
    cli.ok("config", "team", team)
    cli.ok("add", "Another thing")
    assert cli.ok("sync", "--as", "shop").split() == ["pushed", "1"]
    other = tmp_path / "elsewhere"
    other.mkdir()
    home = str(tmp_path / "other.db")
    assert (
        cli.json(
            "sync", "--with", team, "--as", "shop", "--project", str(other), "--database", home
        )["pulled"]
        == 2
    )
    found = cli.json("list", "--project", str(other), "--database", home)
    assert {one["content"] for one in found} == {"We deploy from main", "Another thing"}
    assert cli.json("sync", "--personal", "--as", "shop")["pushed"] == 1
