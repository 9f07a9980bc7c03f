"""What every store must do, whatever database is behind it. Runs once for each backend in conftest.BACKENDS.

Reading and care are here; writing and searching have files of their own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from case_tables import cases
from conftest import Backend
from stores import (
    HERE,
    LIMIT,
    MODEL,
    NOW,
    OTHER,
    by_meaning,
    by_words,
    change,
    content_hash,
    day,
    edit,
    everything,
    ids,
    make,
    pick,
    put,
    seen,
    snapshot,
    tell,
    vector,
    write,
)

from bethink.errors import Ambiguous, InvalidInput, NotFound, StoreError
from bethink.recall.query import parse
from bethink.store.base import Store
from bethink.types import PERSONAL, Entity, Relation, Session, Source, Span

# Adding and reading back


def test_a_memory_comes_back_as_it_was_written(store):
    (fields,) = cases("store-contract-every-field", globals())
    full = make("Sessions are kept in Redis, not in cookies", **fields)
    put(store, full)
    (found,) = store.get([full.id])
    assert found._replace(entities=()) == full._replace(entities=())
    assert set(found.entities) == set(full.entities)


def test_a_time_at_the_end_of_the_calendar_is_kept_within_it(store):
    last = datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))
    times = dict.fromkeys(("created_at", "valid_from", "expires_at", "last_accessed"), last)
    put(store, memory := make("never expires", **times), make("an owl"))
    talk = Session("s1", HERE, "claude", started_at=last, ended_at=last)
    span = Span("t1", HERE, "s1", None, "Owls", "", (1, 2), 0, last)
    write(store, at=last, sessions=(talk,), spans=((span, ()),))
    change(store, memory.id, at=last, valid_to=last)
    (found,) = store.get([memory.id])
    kept = found.expires_at
    assert datetime.max.replace(tzinfo=UTC) - kept < timedelta(milliseconds=2)
    assert {*pick(found, "updated_at valid_to"), *pick(found, " ".join(times))} == {kept}
    assert [event.at for event in store.history(memory.id)][-1] == kept
    assert store.sessions((HERE,))[0].ended_at == store.spans("s1", (HERE,))[0].created_at == kept
    assert store.count(everything()) == 2 and by_words(store, "owl")
    assert store.check(deep=True) == []


def test_any_text_is_kept_to_the_letter_and_found_in_the_order_asked_for(store):
    texts = cases("store-contract-any-text-is-kept", globals())
    memories = tell(store, *texts)
    asked = [*(memory.id for memory in reversed(memories)), make("never stored").id]
    assert [memory.content for memory in store.get(asked)] == texts[::-1]
    assert store.get([]) == []
    with pytest.raises(InvalidInput, match="cannot be stored"):
        put(store, make("fine", tags=("half a pair \udcff",)))
    assert store.count(everything()) == len(texts)
    assert store.check(deep=True) == []


# Lists


def test_each_order_of_a_list(store):
    names = ("created_at", "updated_at", "importance", "usefulness", "access_count")
    table = {
        "a": (day(1), day(9), 5.0, 0.0, 9),
        "b": (day(2), day(2), 9.0, 1.0, 0),
        "c": (day(3), day(3), 1.0, 5.0, 1),
    }
    put(store, *(make(text, **dict(zip(names, row, strict=True))) for text, row in table.items()))
    orders = "created:cba oldest:abc importance:bac used:acb useful:cba updated:acb".split()
    for order, _, expected in (one.partition(":") for one in orders):
        assert "".join(one.content for one in store.list(seen(), order=order)) == expected


def test_scan_reads_everything_oldest_first_even_beyond_a_page(store):
    memories = [make(f"text {n}", created_at=day(1) + timedelta(seconds=n)) for n in range(503)]
    put(store, *memories, embed=False)
    assert [memory.id for memory in store.scan(seen())] == [memory.id for memory in memories]


# Filters: one table of memories, one table of what each filter shows

OWL = "the owl"
REDIS = Entity("Redis", "technology")
MARCH = dict(cases("store-contract-march", globals()))
USUAL = {"plain", "decision", "open", "closed", "document", "later", "backdated"}
FILTERS = cases("store-contract-filters", globals())


def fill(store: Store) -> dict[str, str]:
    """Writes the table; gives each id its name."""
    memories = {name: make(f"{OWL} of {name}", **fields) for name, fields in MARCH.items()}
    put(store, *memories.values())
    return {memory.id: name for name, memory in memories.items()}


@pytest.fixture
def march(store) -> dict[str, str]:
    return fill(store)


@pytest.fixture(scope="module")
def calendar(lasting) -> tuple[Store, dict[str, str]]:
    """The same, for reading only."""
    store = lasting()
    return store, fill(store)


@pytest.mark.parametrize(("fields", "expected"), FILTERS, ids=lambda value: str(value)[:60])
def test_every_read_obeys_the_filter(calendar, fields, expected):
    store, march = calendar
    filter = seen()._replace(**fields)
    assert {march[memory.id] for memory in store.list(filter)} == expected
    assert {march[memory.id] for memory in store.scan(filter)} == expected
    assert store.count(filter) == len(expected)
    assert {march[id] for id in by_words(store, "owl", filter)} == expected
    assert {march[id] for id in by_meaning(store, OWL, filter)} == expected
    words, meaning, named = (
        store.load([key for key, _ in ranking.items]).values()
        for ranking in (
            store.keyword(parse("owl", NOW), filter, LIMIT),
            store.nearest(vector(OWL), MODEL, filter, LIMIT),
            store.by_entity(["redis"], filter, LIMIT),
        )
    )
    assert {march[memory.id] for memory in named} == expected & {"decision", "open", "other"}
    # Nor does what is only offered, before candidates are filtered, ever leave the scope.
    assert {memory.scope for memory in (*words, *meaning)} <= set(filter.scopes)


def test_a_filter_may_name_as_many_things_as_there_are(store):
    memory = make(OWL, source="docs/70000.md", source_type="markdown")
    put(store, memory, make("another owl"))
    many = [f"docs/{number}.md" for number in range(70_001)]
    assert by_words(store, "owl", seen(sources=many)) == [memory.id]


def test_what_was_said_is_told_from_what_was_told_of_it(store):
    said = make("said", session="s", source="talk.jsonl", source_type="transcript")
    put(store, said, make("a summary", session="s", source="compaction:s"), unique=False)
    assert store.count(seen(session="s")) == 2
    assert [one.id for one in store.list(seen(session="s", transcribed=True))] == [said.id]


@pytest.mark.parametrize("how", [by_words, by_meaning])
def test_hidden_memories_do_not_take_the_places_of_visible_ones(store, how):
    tell(store, *(f"zebra zebra zebra {n}" for n in range(40)), deleted_at=day(2))
    (live,) = tell(store, "a single zebra among very many other animals, seen at dawn")
    assert how(store, "zebra", limit=10) == [live.id]


# Ids

TWINS = (
    "01900000-1111-7000-8000-00000000000a",
    "01900000-1111-7000-8000-00000000000b",
    "01900000-2222-7000-8000-000000000000",
    "01911111-0000-7000-8000-000000000000",
)


@pytest.fixture(scope="module")
def twins(lasting) -> Store:
    store = lasting()
    put(store, *(make(f"text {id}", id=id) for id in TWINS))
    tell(store, "not here", id="01922222-0000-7000-8000-000000000000", scope=OTHER)
    return store


KNOWN = {"TWINS": TWINS, "NotFound": NotFound, "Ambiguous": Ambiguous}


@pytest.mark.parametrize(("prefix", "which"), cases("store-contract-an-id-is-known", KNOWN))
def test_an_id_is_known_by_any_unique_prefix(twins, prefix, which):
    if isinstance(which, int):
        assert twins.resolve(prefix, [HERE]) == TWINS[which]
    else:
        with pytest.raises(which) as caught:
            twins.resolve(prefix, [HERE])
        assert caught.value.hint


def test_short_ids_are_unique_prefixes(twins):
    every = [memory.id for memory in twins.scan(everything(HERE, OTHER))]
    short = twins.abbreviate(every)
    assert list(short) == every
    for id, prefix in short.items():
        assert len(prefix) >= 8 and not prefix.endswith("-")
        assert [other for other in every if other.startswith(prefix)] == [id]
        assert twins.resolve(prefix) == id


# Care


def test_an_overview_counts_what_there_is(store, march):
    link = Relation(*list(march)[:2], "builds_on")
    write(store, relate=(link,), model=MODEL, cache={"00" * 16: [vector("x")]})
    found = store.overview()
    assert pick(found, "memories deleted relations cached unembedded") == (13, 1, 1, 1, 0)
    assert found.by_scope == {HERE: 11, OTHER: 1, PERSONAL: 1}
    kinds = {"fact": 7, "decision": 2, "question": 2, "document": 1, "preference": 1}
    assert (found.by_kind, found.vectors, found.entities) == (kinds, {MODEL: 14}, 3)
    assert found.database_bytes > 0
    inside = store.overview([OTHER])
    assert pick(inside, "memories deleted by_scope by_kind") == (1, 0, {OTHER: 1}, {"decision": 1})
    assert store.overview([]).memories == 0
    assert sorted(store.scopes()) == sorted([HERE, OTHER, PERSONAL])


def test_an_empty_store_is_well_and_answers_everything(store):
    assert store.check(deep=True) == []
    assert store.list(seen()) == list(store.scan(seen())) == store.scopes() == store.models() == []
    assert store.count(seen()) == store.overview().memories == 0
    assert by_words(store, "anything") == by_meaning(store, "anything") == []
    assert store.rebuild() == store.drop_vectors() == store.reset() == 0
    assert write(store).outcomes == ()


def test_a_rebuilt_index_gives_the_same_answers(store, march):
    page = {"source": "docs/walrus.md", "source_type": "markdown", "section": "Heading"}
    tell(store, "a text in docs", **page)
    edit(store, store.get(list(march)[:1])[0], "owl of the night, changed")
    before = snapshot(store)
    assert store.rebuild() == 15
    assert snapshot(store) == before
    assert store.check(deep=True) == []


def test_a_backup_opens_and_is_the_same(backend: Backend, store, march, tmp_path):
    write(store, access=(next(iter(march)),), relate=(Relation(*list(march)[:2], "builds_on"),))
    target = tmp_path / "copies" / "backup"
    target.parent.mkdir()
    before = snapshot(store)
    assert store.backup(str(target)) == target.stat().st_size > 0
    copy = backend.open(str(target))
    assert snapshot(copy) == before
    assert copy.check(deep=True) == []
    put(copy, make("only in the copy"))
    assert snapshot(store) == before
    for place, said in ((target, "exists already"), (tmp_path / "no" / "copy", "does not exist")):
        with pytest.raises(StoreError, match=said):
            store.backup(str(place))


def test_resetting_a_scope_leaves_the_others(store, march):
    mine = [id for id, name in march.items() if name not in ("other", "mine")]
    read = (HERE, Source("docs/a.md", "markdown", "h"))
    write(store, relate=(Relation(mine[0], mine[1], "builds_on"),), sources=(read,))
    assert store.reset([HERE]) == 12
    left = store.scan(everything(HERE, OTHER, PERSONAL))
    assert {march[id] for id in ids(left)} == {"other", "mine"}
    assert store.relations(mine) == store.history(mine[0]) == []
    assert store.source(HERE, "docs/a.md") is None
    assert by_words(store, "owl", everything()) == by_meaning(store, OWL, everything()) == []
    assert len(by_words(store, "owl", seen(OTHER))) == len(by_meaning(store, OWL, seen(OTHER))) == 1
    assert store.overview().entities == 1
    assert store.check(deep=True) == []
    assert put(store, make("a new start")).added == 1
    assert store.reset(["project:unknown"]) == store.reset([]) == 0


def test_resetting_everything_leaves_nothing_and_works_on(store, march):
    write(store, purge=(next(iter(march)),), model=MODEL, cache={"00" * 16: [vector("x")]})
    assert store.reset() == 13
    found = store.overview()
    assert set(pick(found, "memories deleted relations entities sources cached")) == {0}
    assert set(found.vectors.values()) <= {0}
    assert store.find_purged([content_hash(f"{OWL} of plain")]) == set()
    assert store.check(deep=True) == []
    tell(store, f"{OWL} of plain")
    assert len(by_words(store, "owl")) == len(by_meaning(store, OWL)) == 1
