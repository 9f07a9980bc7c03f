"""What every store must do, whatever database is behind it. Runs once for each backend in conftest.BACKENDS."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from conftest import EMBEDDER, HERE, MODEL, NOW, Backend, content_hash, day, everything, make, put, seen, vector, vectors_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.errors import Ambiguous, InvalidInput, NotFound, RecollectError, StoreError
from recollect.recall.query import parse
from recollect.store.base import Store
from recollect.store.match import query_words
from recollect.types import PERSONAL, Batch, Change, Entity, Entry, Query, Relation, Source, Term, Words

OTHER = "project:other"
LIMIT = 100


def ids(memories) -> set[str]:
    return {memory.id for memory in memories}


def change(store: Store, id: str, action: str = "update", at=NOW, actor: str = "user", **fields) -> None:
    store.write(Batch(at=at, actor=actor, change=(Change(id, action, fields),)))


def by_words(store: Store, query: str | Query, filter=None, limit: int = LIMIT) -> list[str]:
    """Ids that the words of a query find, best first, after the filter had its say."""
    asked = parse(query, NOW) if isinstance(query, str) else query
    filter = filter or seen()
    keys = [key for key, _ in store.keyword(asked, filter, limit).items]
    return _visible(store, keys, filter)


def by_meaning(store: Store, text: str, filter=None, limit: int = LIMIT) -> list[str]:
    filter = filter or seen()
    return _visible(store, [key for key, _ in store.nearest(vector(text), MODEL, filter, limit).items], filter)


def _visible(store: Store, keys: list[int], filter) -> list[str]:
    shown = {candidate.key for candidate in store.candidates(keys, filter, Words(), ())}
    loaded = store.load(keys)
    return [loaded[key].id for key in keys if key in shown]


def term(text: str, **fields) -> Query:
    return Query(text, text, (Term(text, **fields),))


# Adding and reading back


def test_a_memory_comes_back_as_it_was_written(store):
    full = make(
        "Sessions are kept in Redis, not in cookies",
        kind="architecture", summary="sessions in Redis", importance=7.5, confidence=0.25, usefulness=2.0, access_count=3,
        last_accessed=day(3), valid_from=day(2), valid_to=day(30), expires_at=day(60), answered=True, source="docs/auth.md",
        source_type="markdown", lines=(10, 14), position=4, section="Auth > Sessions", span="span-1", session="session-1",
        tags=("auth", "Größe"), keywords=("sessions", "redis"), entities=(Entity("Redis", "technology"), Entity("cookies")),
        metadata={"ticket": "OPS-7", "nested": {"list": [1, 2.5, None, "é"]}}, trust=1,
    )  # fmt: skip
    put(store, full)
    (found,) = store.get([full.id])
    assert found._replace(entities=()) == full._replace(entities=())
    assert set(found.entities) == set(full.entities)


def test_a_write_says_what_became_of_each_memory(store):
    first, second = make("one thing"), make("another thing")
    receipt = put(store, first, second)
    assert [(outcome.id, outcome.status) for outcome in receipt.outcomes] == [(first.id, "added"), (second.id, "added")]
    assert receipt.added == 2


@pytest.mark.parametrize("text", ["a", "ünï → 漢字 🦉", "x" * 100_000, "line\nline\r\nline", "tab\tand \u2028 separators", "'; DROP TABLE memories; --", "%s {} \\"])
def test_any_text_is_kept_to_the_letter(store, text):
    memory = make(text)
    put(store, memory)
    assert store.get([memory.id])[0].content == text
    assert store.check(deep=True) == []


def test_get_keeps_the_order_asked_for_and_leaves_out_what_is_unknown(store):
    memories = [make(f"number {n}") for n in range(4)]
    put(store, *memories)
    wanted = [memories[2].id, make("never stored").id, memories[0].id]
    assert [memory.id for memory in store.get(wanted)] == [memories[2].id, memories[0].id]
    assert store.get([]) == []


def test_keys_and_load_lead_back_to_the_same_memory(store):
    memory = make("a thing")
    put(store, memory)
    keys = store.keys([memory.id, make("unknown").id])
    assert list(keys) == [memory.id]
    assert store.load([keys[memory.id], 10**9])[keys[memory.id]].content == "a thing"
    assert store.load([]) == {}


def test_a_text_that_cannot_be_stored_is_refused_with_a_sentence(store):
    with pytest.raises(InvalidInput, match="cannot be stored"):
        put(store, make("fine", tags=("half a pair \udcff",)))
    assert store.count(everything()) == 0


# Lists


def test_each_order_of_a_list(store):
    a = make("a", created_at=day(1), updated_at=day(9), importance=5.0, usefulness=0.0, access_count=9)
    b = make("b", created_at=day(2), updated_at=day(2), importance=9.0, usefulness=1.0, access_count=0)
    c = make("c", created_at=day(3), updated_at=day(3), importance=1.0, usefulness=5.0, access_count=1)
    put(store, a, b, c)
    orders = {"created": "cba", "oldest": "abc", "importance": "bac", "used": "acb", "useful": "cba", "updated": "acb"}
    assert {order: "".join(memory.content for memory in store.list(seen(), order=order)) for order in orders} == orders


def test_a_list_comes_in_pages_without_gaps_or_repeats(store):
    put(store, *(make(f"text {n}", created_at=day(1 + n % 3)) for n in range(25)))
    pages = [memory.id for offset in range(0, 30, 10) for memory in store.list(seen(), limit=10, offset=offset)]
    assert len(pages) == len(set(pages)) == 25


def test_scan_reads_everything_oldest_first_even_beyond_a_page(store):
    memories = [make(f"text {n}", created_at=day(1) + timedelta(seconds=n)) for n in range(1203)]
    put(store, *memories, embed=False)
    assert [memory.id for memory in store.scan(seen())] == [memory.id for memory in memories]


# Filters: one table of memories, one table of what each filter shows

OWL = "the owl"
MARCH = {
    "plain": {"created_at": day(1)},
    "decision": {"kind": "decision", "importance": 8.0, "created_at": day(2), "tags": ("db", "Infra"), "entities": (Entity("Redis", "technology"),)},
    "open": {"kind": "question", "answered": False, "created_at": day(3), "session": "s1", "entities": (Entity("Straße"), Entity("redis"))},
    "closed": {"kind": "question", "answered": True, "created_at": day(4), "session": "s2", "tags": ("db-two",)},
    "document": {"kind": "document", "importance": 2.0, "created_at": day(5), "source": "docs/a.md", "source_type": "markdown"},
    "expired": {"created_at": day(6), "expires_at": day(10)},
    "later": {"created_at": day(7), "expires_at": day(30)},
    "deleted": {"created_at": day(8), "deleted_at": day(9)},
    "superseded": {"created_at": day(9), "valid_to": day(12), "superseded_by": "0190-none"},
    "ended": {"created_at": day(10), "valid_to": day(12)},
    "tool": {"created_at": day(11), "trust": 0},
    "backdated": {"created_at": day(13), "valid_from": day(2)},
    "other": {"scope": OTHER, "kind": "decision", "importance": 9.0, "tags": ("db",), "entities": (Entity("Redis", "technology"),), "created_at": day(2)},
    "mine": {"scope": PERSONAL, "kind": "preference", "created_at": day(2)},
}  # fmt: skip
USUAL = {"plain", "decision", "open", "closed", "document", "later", "backdated"}
FILTERS = [
    ({}, USUAL),
    ({"scopes": ()}, set()),
    ({"scopes": ("project:unknown",)}, set()),
    ({"scopes": (OTHER,)}, {"other"}),
    ({"scopes": (HERE, PERSONAL)}, USUAL | {"mine"}),
    ({"kinds": ("decision",)}, {"decision"}),
    ({"kinds": ("question", "document")}, {"open", "closed", "document"}),
    ({"kinds": ("nonsense",)}, set()),
    ({"scopes": (HERE, OTHER), "kinds": ("decision",)}, {"decision", "other"}),
    ({"entities": ("redis",)}, {"decision", "open"}),
    ({"entities": ("REDIS", "nobody")}, {"decision", "open"}),
    ({"entities": ("STRASSE",)}, {"open"}),
    ({"entities": ("Red",)}, set()),
    ({"tags": ("db",)}, {"decision"}),
    ({"tags": ("INFRA", "nothing")}, {"decision"}),
    ({"sources": ("docs/a.md",)}, {"document"}),
    ({"sources": ("docs/a.md", "note")}, USUAL),
    ({"session": "s1"}, {"open"}),
    ({"min_importance": 8.0}, {"decision"}),
    ({"min_importance": 8.1}, set()),
    ({"min_importance": 0.0}, USUAL),
    ({"since": day(4)}, {"closed", "document", "later", "backdated"}),
    ({"until": day(4)}, {"plain", "decision", "open"}),
    ({"since": day(2), "until": day(4)}, {"decision", "open"}),
    ({"since": day(4), "until": day(4)}, set()),
    ({"answered": False, "kinds": ("question",)}, {"open"}),
    ({"answered": True}, {"closed"}),
    ({"include_expired": True}, USUAL | {"expired"}),
    ({"include_deleted": True}, USUAL | {"deleted"}),
    ({"include_superseded": True}, USUAL | {"superseded", "ended"}),
    ({"include_quarantined": True}, USUAL | {"tool"}),
    ({"follow": True}, USUAL | {"superseded"}),
    ({"as_of": day(9)}, {"plain", "decision", "open", "closed", "document", "expired", "later", "superseded", "backdated"}),
    ({"as_of": day(12)}, USUAL),
    ({"as_of": day(11) + timedelta(hours=23)}, USUAL | {"superseded", "ended"}),
    ({"as_of": day(3)}, {"plain", "decision", "open", "backdated"}),
    ({"as_of": day(1) - timedelta(seconds=1)}, set()),
    ({"now": day(10) - timedelta(seconds=1)}, USUAL | {"expired", "ended"}),
    ({"now": day(31)}, USUAL - {"later"}),
    ({"kinds": ("question",), "since": day(4), "session": "s2", "answered": True, "tags": ("db-two",)}, {"closed"}),
]  # fmt: skip


@pytest.fixture
def march(store) -> dict[str, str]:
    """A name for every id."""
    memories = {name: make(f"{OWL} of {name}", **fields) for name, fields in MARCH.items()}
    put(store, *memories.values())
    return {memory.id: name for name, memory in memories.items()}


@pytest.mark.parametrize(("fields", "expected"), FILTERS, ids=lambda value: str(value)[:60] if isinstance(value, dict) else "")
def test_every_read_obeys_the_filter(store, march, fields, expected):
    filter = seen()._replace(**fields)
    assert {march[memory.id] for memory in store.list(filter)} == expected
    assert {march[memory.id] for memory in store.scan(filter)} == expected
    assert store.count(filter) == len(expected)
    assert {march[id] for id in by_words(store, "owl", filter)} == expected
    assert {march[id] for id in by_meaning(store, OWL, filter)} == expected
    named = {march[memory.id] for memory in store.load([key for key, _ in store.by_entity(["redis"], filter, 10).items]).values()}
    assert named == expected & {"decision", "open", "other"}


@pytest.mark.parametrize("fields", [fields for fields, _ in FILTERS if "now" not in fields], ids=str)
def test_what_a_search_offers_never_leaves_the_scope(store, march, fields):
    filter = seen()._replace(**fields)
    rankings = (store.keyword(parse("owl", NOW), filter, LIMIT), store.nearest(vector(OWL), MODEL, filter, LIMIT), store.by_entity(["redis"], filter, LIMIT))
    for ranking in rankings:
        assert {memory.scope for memory in store.load([key for key, _ in ranking.items]).values()} <= set(filter.scopes)


def test_a_filter_knows_whether_it_is_narrow():
    assert not seen().narrow
    assert not seen(include_deleted=True, include_expired=True, include_superseded=True, include_quarantined=True, follow=True).narrow
    for fields in ({"kinds": ("fact",)}, {"entities": ("x",)}, {"tags": ("x",)}, {"sources": ("x",)}, {"session": "s"}, {"min_importance": 0.0},
                   {"since": NOW}, {"until": NOW}, {"as_of": NOW}, {"answered": False}):  # fmt: skip
        assert seen(**fields).narrow, fields


@pytest.mark.parametrize("how", [by_words, by_meaning])
def test_hidden_memories_do_not_take_the_places_of_visible_ones(store, how):
    gone = [make(f"zebra zebra zebra {n}", deleted_at=day(2)) for n in range(40)]
    live = make("a single zebra among very many other animals of the savannah, seen at dawn")
    put(store, *gone, live)
    assert how(store, "zebra", limit=10) == [live.id]


# Ids

TWINS = ("01900000-1111-7000-8000-00000000000a", "01900000-1111-7000-8000-00000000000b", "01900000-2222-7000-8000-000000000000", "01911111-0000-7000-8000-000000000000")


@pytest.fixture
def twins(store):
    put(store, *(make(f"text {id}", id=id) for id in TWINS), make("not here", id="01922222-0000-7000-8000-000000000000", scope=OTHER))


@pytest.mark.parametrize(
    ("prefix", "which"),
    [
        (TWINS[0], 0), (TWINS[1], 1), (TWINS[0].upper(), 0), (TWINS[0].replace("-", ""), 0), (f"  {TWINS[2]}\n", 2), ("01900000-2", 2), ("019000002", 2),
        ("01900000-2222-7", 2), ("0190000022227", 2), ("01911", 3), ("0191111100", 3), ("01900000-22227", 2), ("01911111-", 3), ("01922", None), ("0193", None), ("019000003", None),
        (TWINS[0] + "0", None), ("", None), ("  ", None), ("-", None), ("xyz", None), ("0190%", None), ("01900000_1111", None), ("０１９", None), ("*", None), ("0" * 1000, None),
    ],
)  # fmt: skip
def test_an_id_is_known_by_any_unique_prefix(store, twins, prefix, which):
    if which is None:
        with pytest.raises(NotFound) as caught:
            store.resolve(prefix, [HERE])
        assert caught.value.hint
    else:
        assert store.resolve(prefix, [HERE]) == TWINS[which]


@pytest.mark.parametrize("prefix", ["0", "019", "01900000", "01900000-1111", "019000001111", TWINS[0][:-1], TWINS[0][:-1].upper()])
def test_a_prefix_of_several_ids_is_ambiguous(store, twins, prefix):
    with pytest.raises(Ambiguous, match="fits [234] memories"):
        store.resolve(prefix, [HERE])


def test_a_prefix_only_fits_memories_of_the_scopes_asked_for(store, twins):
    assert store.resolve("01922", [OTHER]) == store.resolve("01922", None) == store.resolve("01922", [HERE, OTHER])
    assert store.resolve("019", [OTHER]).startswith("01922222")
    with pytest.raises(NotFound):
        store.resolve("019", ["project:unknown"])
    with pytest.raises(NotFound):
        store.resolve("019", [])


def test_a_crowd_in_another_scope_does_not_hide_an_id(store):
    put(store, *(make(f"passage {n}", id=f"01900000-0000-7000-8000-{n:012x}", scope=OTHER) for n in range(80)), embed=False)
    mine = make("mine", id="01900000-0001-7000-8000-000000000000")
    put(store, mine)
    assert store.resolve("01900000", [HERE]) == mine.id


def test_short_ids_are_unique_prefixes(store, twins):
    every = [memory.id for memory in store.scan(everything(HERE, OTHER))]
    short = store.abbreviate(every)
    assert list(short) == every
    for id, prefix in short.items():
        assert id.startswith(prefix)
        assert len(prefix) >= 8
        assert not prefix.endswith("-")
        assert [other for other in every if other.startswith(prefix)] == [id]
        assert store.resolve(prefix) == id


def test_short_ids_of_memories_made_together(store):
    memories = [make(f"text {n}") for n in range(50)]
    put(store, *memories, embed=False)
    for id, prefix in store.abbreviate([memory.id for memory in memories]).items():
        assert store.resolve(prefix, [HERE]) == id


# Duplicates and tombstones


def test_the_same_text_is_stored_once_per_scope(store):
    first = make("We deploy on Fridays")
    put(store, first)
    receipt = put(store, make("We deploy on Fridays"))
    (outcome,) = receipt.outcomes
    assert (outcome.status, outcome.id, outcome.duplicate_of, outcome.similarity) == ("duplicate", first.id, first.id, 1.0)
    assert receipt.added == 0
    assert store.count(everything()) == 1
    assert len(store.history(first.id)) == 1


def test_the_same_text_twice_in_one_batch_is_stored_once(store):
    one, other = make("We deploy on Fridays"), make("We deploy on Fridays")
    assert [outcome.status for outcome in put(store, one, other).outcomes] == ["added", "duplicate"]
    assert store.count(everything()) == 1
    assert store.check(deep=True) == []


def test_another_scope_may_hold_the_same_text(store):
    put(store, make("We deploy on Fridays"))
    assert put(store, make("We deploy on Fridays", scope=OTHER)).outcomes[0].status == "added"


def test_passages_of_a_source_may_repeat(store):
    receipt = put(store, make("License: MIT"), make("License: MIT"), unique=False)
    assert [outcome.status for outcome in receipt.outcomes] == ["added", "added"]


def test_duplicates_are_looked_up_by_hash_among_the_living_of_a_scope(store):
    live, gone, passage = make("alive"), make("gone", deleted_at=day(2)), make("passage")
    put(store, live, gone)
    put(store, passage, unique=False)
    hashes = [content_hash(text) for text in ("alive", "gone", "passage", "unknown")]
    assert store.duplicates(hashes, HERE) == {content_hash("alive"): live.id}
    assert store.duplicates(hashes, OTHER) == {}
    assert store.duplicates([], HERE) == {}


def test_a_forgotten_text_may_be_told_again_but_not_brought_back_beside_its_twin(store):
    first, again = make("We deploy on Fridays"), make("We deploy on Fridays")
    put(store, first)
    change(store, first.id, "forget", deleted_at=day(2))
    assert put(store, again).outcomes[0].status == "added"
    with pytest.raises(InvalidInput, match=again.id):
        change(store, first.id, "restore", deleted_at=None)
    with pytest.raises(InvalidInput, match=again.id):
        put(store, third := make("something else"))
        change(store, third.id, content="We deploy on Fridays", content_hash=content_hash("We deploy on Fridays"))
    assert store.get([first.id])[0].deleted_at == day(2)


def test_what_was_purged_is_refused_unless_it_is_allowed(store):
    first = make("the wedding is on the 12th of May")
    put(store, first)
    receipt = store.write(Batch(at=NOW, purge=(first.id,)))
    assert receipt.purged == 1
    assert store.tombstoned([first.content_hash, content_hash("else")]) == {first.content_hash}
    again = make("the wedding is on the 12th of May")
    assert put(store, again).outcomes[0].status == "purged"
    assert put(store, again._replace(scope=OTHER)).outcomes[0].status == "purged"
    assert put(store, again, unique=False).outcomes[0].status == "purged"
    assert store.count(everything(HERE, OTHER)) == 0
    assert put(store, again, allow_purged=True).outcomes[0].status == "added"


def test_what_was_not_stored_replaces_nothing(store):
    """A re-import of a purged or known text brings its relations along; they must not point at what is not there."""
    old, new, known = make("We use MySQL"), make("We moved from MySQL to PostgreSQL"), make("known already")
    put(store, old, new, known)
    store.write(Batch(at=NOW, purge=(new.id,)))
    for text in (new.content, known.content):
        copy = make(text)
        put(
            store, copy, relate=(Relation(copy.id, old.id, "supersedes"),),
            change=(Change(old.id, "supersede", {"superseded_by": copy.id, "valid_to": day(3)}),),
        )  # fmt: skip
        assert store.get([copy.id]) == []
        assert store.get([old.id])[0].superseded_by is None
        assert store.relations([old.id, copy.id]) == []
    assert old.id in ids(store.list(seen()))


# Changing


def test_a_change_sets_the_fields_and_keeps_before_and_after(store):
    memory = make("The limit is 10", importance=5.0)
    put(store, memory)
    change(store, memory.id, actor="claude", at=day(5), content="The limit is 20", content_hash=content_hash("The limit is 20"), importance=8.0)
    (now,) = store.get([memory.id])
    assert (now.content, now.importance, now.updated_at, now.created_at) == ("The limit is 20", 8.0, day(5), day(1))
    assert now.content_hash == content_hash("The limit is 20")
    added, changed = store.history(memory.id)
    assert (added.action, added.at, dict(added.before), dict(added.after)) == ("add", NOW, {}, {})
    assert (changed.action, changed.actor, changed.at) == ("update", "claude", day(5))
    assert changed.before == {"content": "The limit is 10", "importance": 5.0}
    assert changed.after == {"content": "The limit is 20", "importance": 8.0}
    assert added.number < changed.number
    assert store.check(deep=True) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "decision"}, {"summary": "short"}, {"importance": 1.5}, {"confidence": 0.5}, {"tags": ("a", "b")}, {"metadata": {"a": [1]}},
        {"keywords": ("k",)}, {"valid_from": day(2)}, {"valid_to": day(3)}, {"expires_at": day(4)}, {"deleted_at": day(5)}, {"answered": True},
        {"section": "Heading"}, {"trust": 0}, {"session": "s"}, {"entities": (Entity("Redis", "technology"),)}, {"last_accessed": day(6)},
    ],
    ids=str,
)  # fmt: skip
def test_each_field_that_can_change(store, fields):
    memory = make("a text")
    put(store, memory)
    change(store, memory.id, **fields)
    (now,) = store.get([memory.id])
    assert {name: getattr(now, name) for name in fields} == fields
    assert [event.action for event in store.history(memory.id)] == ["add", "update"]
    assert store.check(deep=True) == []


def test_a_times_value_can_be_emptied(store):
    memory = make("a text", expires_at=day(3), answered=True)
    put(store, memory)
    change(store, memory.id, expires_at=None, answered=None)
    assert store.get([memory.id])[0].expires_at is None
    assert store.get([memory.id])[0].answered is None


def test_a_change_of_what_is_not_there_is_an_error(store):
    with pytest.raises(NotFound):
        change(store, make("unknown").id, importance=1.0)


def test_a_vote_is_kept_in_history_but_is_no_edit(store):
    memory = make("a text")
    put(store, memory)
    change(store, memory.id, "vote", usefulness=1.0)
    (now,) = store.get([memory.id])
    assert (now.usefulness, now.updated_at) == (1.0, memory.updated_at)
    assert store.history(memory.id)[-1].after == {"usefulness": 1.0}


def test_a_use_is_counted_and_leaves_no_history(store):
    memory, other = make("a text"), make("another")
    put(store, memory, other)
    store.write(Batch(at=day(21), access=(memory.id,)))
    store.write(Batch(at=day(22), access=(memory.id, make("unknown").id)))
    used, unused = store.get([memory.id, other.id])
    assert (used.access_count, used.last_accessed, used.updated_at) == (2, day(22), memory.updated_at)
    assert (unused.access_count, unused.last_accessed) == (0, None)
    assert [event.action for event in store.history(memory.id)] == ["add"]


def test_reading_changes_nothing(store, march):
    before = snapshot(store)
    store.list(seen())
    list(store.scan(seen()))
    by_words(store, "owl")
    by_meaning(store, OWL)
    store.get(list(march))
    store.overview()
    store.check(deep=True)
    assert snapshot(store) == before


def test_supersession_hides_the_old_and_keeps_the_chain(store):
    old, new = make("We use MySQL"), make("We use PostgreSQL", created_at=day(4))
    put(store, old)
    put(store, new, relate=(Relation(new.id, old.id, "supersedes"),), change=(Change(old.id, "supersede", {"superseded_by": new.id, "valid_to": day(4)}),))
    assert ids(store.list(seen())) == {new.id}
    assert ids(store.list(seen(include_superseded=True))) == {old.id, new.id}
    assert ids(store.list(seen(as_of=day(3)))) == {old.id}
    assert [(r.source, r.target, r.type) for r in store.relations([old.id])] == [(new.id, old.id, "supersedes")]
    (candidate,) = store.candidates([store.keys([old.id])[old.id]], seen(follow=True), Words(), ())
    assert candidate.superseded_by == new.id


def test_a_purged_successor_gives_its_predecessor_back(store):
    old, new = make("We use MySQL"), make("We use PostgreSQL", created_at=day(4))
    put(store, old)
    put(store, new, relate=(Relation(new.id, old.id, "supersedes"),), change=(Change(old.id, "supersede", {"superseded_by": new.id, "valid_to": day(4)}),))
    store.write(Batch(at=NOW, purge=(new.id,)))
    assert ids(store.list(seen())) == {old.id}
    assert store.relations([old.id]) == []
    assert store.check(deep=True) == []


def test_relations_are_seen_from_both_ends_once_and_can_be_taken_back(store):
    a, b, c = (make(text) for text in "abc")
    put(store, a, b, c, relate=(Relation(a.id, b.id, "builds_on"), Relation(a.id, b.id, "builds_on"), Relation(c.id, a.id, "contradicts")))
    seen_from = {name: {(r.source, r.target, r.type) for r in store.relations([memory.id])} for name, memory in zip("abc", (a, b, c), strict=True)}
    builds, contradicts = (a.id, b.id, "builds_on"), (c.id, a.id, "contradicts")
    assert seen_from == {"a": {builds, contradicts}, "b": {builds}, "c": {contradicts}}
    assert all(relation.created_at == NOW for relation in store.relations([a.id]))
    assert len(store.relations([a.id, b.id, c.id])) == 2
    store.write(Batch(at=NOW, unrelate=(Relation(a.id, b.id, "relates_to"), Relation(a.id, b.id, "builds_on"))))
    assert store.relations([b.id]) == []
    assert len(store.relations([a.id])) == 1


# Sources


def test_a_source_is_kept_with_how_far_it_was_read(store):
    source = Source("docs/a.md", "markdown", "hash-1", 42, {"title": "A"})
    store.write(Batch(at=NOW, sources=((HERE, source),)))
    assert store.source(HERE, "docs/a.md") == source
    assert store.source(OTHER, "docs/a.md") is None
    assert store.source(HERE, "docs/b.md") is None
    store.write(Batch(at=NOW, sources=((HERE, source._replace(hash="hash-2", position=50)),)))
    assert store.source(HERE, "docs/a.md").hash == "hash-2"


def test_a_source_that_is_read_anew_replaces_its_own_memories_and_nothing_else(store):
    def passage(text: str, **fields):
        return make(text, **{"source": "docs/a.md", "source_type": "markdown", "entities": (Entity("Thing"),), **fields})

    plain, used, voted, linked, kept = (passage(f"the {name} passage") for name in ("plain", "used", "voted", "linked", "kept"))
    elsewhere, note, foreign = passage("of another file", source="docs/b.md"), make("a note"), passage("of another project", scope=OTHER)
    put(store, plain, used, voted, linked, kept, elsewhere, note, foreign, unique=False, relate=(Relation(note.id, linked.id, "builds_on"),))
    store.write(Batch(at=NOW, access=(used.id,), change=(Change(voted.id, "vote", {"usefulness": 1.0}),)))
    fresh = passage("the new passage")
    receipt = put(store, fresh, unique=False, retire=((HERE, "docs/a.md"), (HERE, "never/read.md")), keep=(kept.id,))
    assert receipt.retired == 4
    assert ids(store.list(seen(HERE, OTHER))) == {kept.id, fresh.id, elsewhere.id, note.id, foreign.id}
    assert ids(store.scan(everything(HERE, OTHER))) == {used.id, voted.id, linked.id, kept.id, fresh.id, elsewhere.id, note.id, foreign.id}
    assert store.get([plain.id]) == []
    assert store.history(plain.id) == []
    assert [event.action for event in store.history(used.id)] == ["add", "retire"]
    assert store.get([used.id])[0].deleted_at == NOW
    assert plain.id not in by_words(store, "plain", everything())
    assert plain.id not in by_meaning(store, plain.content, everything())
    assert store.check(deep=True) == []


# Words


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("The deployments were failing", "deployment fails"),  # stems
        ("Le café est fermé", "cafe"), ("Le cafe est ferme", "café"), ("Größe zählt", "grosse zahlt größe"),  # accents
        ("我们用数据库存储会话", "数据库"), ("我们用数据库存储会话", "存储"), ("我们用数据库", "库"),  # no spaces
        ("セッションはデータベースに保存", "データベース"), ("데이터베이스에 저장한다", "데이터베이스"),
        ("call parseHttpUrl first", "http"), ("call parseHttpUrl first", "parseHttpUrl"), ("parse http url", "parseHttpUrl"),
        ("call XMLHttpRequest first", "xml request"), ("use max_retry_count", "retry"), ("see src/store/rows.py", "rows.py"),
        ("UPPER CASE WORDS", "upper"), ("version 3.51.3 is fixed", "3.51.3"), ("C++ and C# differ", "C#"), ("don't panic", "panic"),
        ("quick brown fox", '"quick brown fox"'), ("rollback of the migration", "roll*"), ("rollback of the migration", "content:rollback"),
    ],
)  # fmt: skip
def test_words_are_found_however_they_are_written(store, text, question):
    memory = make(text)
    put(store, memory, make("nothing of the kind whatsoever"))
    assert by_words(store, question)[0] == memory.id


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (term("alpha"), {"a", "ab", "abc"}),
        (term("alpha beta", phrase=True), {"ab"}),
        (term("beta alpha", phrase=True), set()),
        (term("alp", prefix=True), {"a", "ab", "abc"}),
        (term("alp"), set()),
        (term("heading", column="section"), {"b"}),
        (term("heading", column="content"), set()),
        (term("heading"), {"b"}),
        (term("labelled", column="tags"), {"c"}),
        (term("labelled"), {"c"}),
        (term("abstract", column="summary"), {"c"}),
        (term("abstract"), set()),
        (term("alpha", column="nonsense"), {"a", "ab", "abc"}),
        (Query("", "", (Term("alpha"), Term("delta"))), {"a", "ab", "abc", "d"}),
        (Query("", "", expression=("and", Term("alpha"), Term("gamma"))), {"abc"}),
        (Query("", "", expression=("or", Term("delta"), Term("gamma"))), {"abc", "d"}),
        (Query("", "", expression=("not", Term("alpha"), Term("beta"))), {"a"}),
        (Query("", "", expression=("and", ("or", Term("alpha"), Term("delta")), ("not", Term("alpha"), Term("gamma")))), {"a", "ab"}),
        (Query("", "", expression=("and", Term("***"), Term("alpha"))), {"a", "ab", "abc"}),
        (Query("", "", expression=("not", Term("alpha"), Term("--"))), {"a", "ab", "abc"}),
        (Query("", ""), set()),
        (term(""), set()),
        (term("-:*"), set()),
    ],
)  # fmt: skip
def test_each_form_of_a_query(store, query, found):
    memories = {
        "a": make("alpha"), "ab": make("alpha beta"), "abc": make("beta gamma alpha"), "b": make("bare", section="Some heading"),
        "c": make("common", tags=("labelled",), summary="abstract"), "d": make("delta"), "x": make("alpha delta", scope=OTHER),
    }  # fmt: skip
    put(store, *memories.values())
    names = {memory.id: name for name, memory in memories.items()}
    assert {names[id] for id in by_words(store, query)} == found


def test_the_better_match_comes_first_and_scores_fall(store):
    both, one, long = make("redis cache"), make("redis queue"), make("redis " + "and many other words about nothing in particular " * 5)
    put(store, long, one, both, *(make(f"filler text number {n}") for n in range(20)))
    ranking = store.keyword(parse("redis cache", NOW), seen(), LIMIT)
    found = store.load([key for key, _ in ranking.items])
    assert [found[key].id for key, _ in ranking.items] == [both.id, one.id, long.id]
    scores = [score for _, score in ranking.items]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)
    assert len(store.keyword(parse("redis cache", NOW), seen(), 2).items) == 2


def test_the_file_of_a_passage_is_a_word_of_it_also_after_an_edit(store):
    memory = make("Ships are built here", source="docs/walrus.md", source_type="markdown")
    put(store, memory, unique=False)
    assert by_words(store, "walrus") == [memory.id]
    change(store, memory.id, tags=("sea",))
    assert by_words(store, "walrus") == by_words(store, "sea") == [memory.id]


def test_a_changed_text_is_found_by_its_new_words_only(store):
    memory = make("pelicans are large")
    put(store, memory)
    change(store, memory.id, content="herons are slender", content_hash=content_hash("herons are slender"), summary="herons")
    assert by_words(store, "herons") == [memory.id]
    assert by_words(store, "pelicans") == []
    assert by_words(store, term("pelicans", column="summary")) == []


HOSTILE = [
    "", " ", '"', '""', '"""', "'", "NEAR(", "NEAR(a b, 5)", "*", "* *", "a*", "**a**", ":", "a:", ":a", "content:", "content:*", "^a", "^", "-", "--a", "- a", "+a", "(", ")", "((((",
    ")(", "(a", "a AND", "AND a", "OR", "NOT", "NOT a", "a AND OR b", "a AND (b OR", "{a b}: c", "{content}: a", "- {content} : a", "a + b", "\x00", "a\x00b", "\\", "a\\b", "%", "_", "?1", ":x", "@y", "$z",
    "'; DROP TABLE memories; --", '" OR 1=1 --', "zq1", "scope:zq1", 'scope : "zq2"', 'x") OR scope : ("zq2', "\ud800", "a\udcffb", "\ufeff", "\u202e", "🦉", "½", "²", "㉈", "Ⅷ", "é" * 500,
    "a" * 100_000, "a " * 20_000, "(" * 2000 + "a" + ")" * 2000, " AND ".join(["word"] * 500), " OR ".join(f"w{n}" for n in range(500)), "NOT " * 300 + "a", "漢" * 3000, "\n\t\r",
    "rank MATCH 'bm25(0)'", "memories_fts", "a NEAR b", 'a "b', "a\"b'c", "[a-z]+", "<script>", "..", "...a...", "１２３", "ａｂｃ", "ß", "İ", "ﬁ", "\u0301", "a\u0301", "🏳️‍🌈",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:20]))
def test_no_query_is_an_error_and_none_leaves_its_scope(store, text):
    put(store, make("zq1 zq2 a word b word"), make("a secret word", scope=OTHER), embed=False)
    asked = (
        parse(text, NOW), term(text), term(text, phrase=True), term(text, prefix=True), term(text, column=text), term(text, column="tags"),
        Query(text, text, (Term("word"), Term(text), Term("b"))), Query(text, text, expression=("and", Term("word"), Term(text))),
        Query(text, text, expression=("not", Term("word"), Term(text))),
    )  # fmt: skip
    for query in asked:
        for filter in (seen(), seen(kinds=("fact",)), seen()._replace(scopes=())):
            keys = [key for key, _ in store.keyword(query, filter, 10).items]
            words = query_words(query)
            store.statistics(words, filter.scopes)
            store.candidates(keys, filter, words, keys)
            assert {memory.scope for memory in store.load(keys).values()} <= set(filter.scopes)


@settings(max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(st.text(max_size=12), st.sampled_from(['"', "*", "(", ")", "AND", "OR", "NOT", "NEAR(", ":", "^", "-", "content:", "owl", "zq1", "+", "{", "}", ","])), max_size=8))  # fmt: skip
def test_no_string_of_words_and_signs_is_an_error(store, pieces):
    if not store.count(seen()):
        put(store, make("an owl"))
    text = " ".join(pieces)
    for query in (parse(text, NOW), term(text), term(text, phrase=True, prefix=True), Query(text, text, tuple(map(Term, pieces)))):
        store.keyword(query, seen(), 10)
        store.statistics(query_words(query), (HERE,))


# Vectors


def test_a_text_is_nearest_to_itself(store):
    texts = ["redis holds the sessions", "we deploy on fridays", "the owl hunts at night", "parse the url of a request"]
    memories = [make(text) for text in texts]
    put(store, *memories)
    for memory in memories:
        ranking = store.nearest(vector(memory.content), MODEL, seen(), 3)
        (first, cosine), *rest = ranking.items
        assert store.load([first])[first].id == memory.id
        assert cosine == pytest.approx(1.0, abs=0.02)
        assert len(ranking.items) == 3
        assert all(cosine >= other for _, other in rest)


def test_an_unknown_model_or_scope_finds_nothing(store):
    put(store, make("a text"))
    assert store.nearest(vector("a text"), "another-model", seen(), 10).items == ()
    assert store.nearest(vector("a text"), MODEL, seen("project:unknown"), 10).items == ()
    assert store.nearest(vector("a text"), MODEL, seen()._replace(scopes=()), 10).items == ()


def test_a_text_of_several_windows_counts_once_with_its_best(store):
    long = make("a text of several windows")
    parts = ["redis sessions", "deploy on friday", "owls at night"]
    entry = Entry(long, [vector(part) for part in parts])
    store.write(Batch(at=NOW, add=(entry,), model=MODEL))
    put(store, make("something else"))
    for part in parts:
        (first, cosine), (_, lower) = store.nearest(vector(part), MODEL, seen(), 10).items
        assert store.load([first])[first].id == long.id
        assert cosine == pytest.approx(1.0, abs=0.02)
        assert lower < cosine


def test_vectors_follow_their_memories_at_once_and_for_every_reader(backend, store):
    """Found right after its commit, gone right after its delete: also in a store that had already searched before."""
    second = backend.open()
    put(store, make("an unrelated text about boats"))
    memory = make("the heron stands in the reeds")
    text = memory.content
    for reader in (store, second):
        assert memory.id not in by_meaning(reader, text)
    put(store, memory)
    for reader in (second, store):
        assert by_meaning(reader, text)[0] == memory.id
    change(second, memory.id, "forget", deleted_at=NOW)
    for reader in (store, second):
        assert memory.id not in by_meaning(reader, text)
    change(second, memory.id, "restore", deleted_at=None)
    for reader in (store, second):
        assert by_meaning(reader, text)[0] == memory.id
    new = "a lighthouse blinks at the coast"
    second.write(Batch(at=NOW, change=(Change(memory.id, "update", {"content": new, "content_hash": content_hash(new)}),), vectors={memory.id: [vector(new)]}, model=MODEL))
    for reader in (store, second):
        assert reader.nearest(vector(text), MODEL, seen(), 1).items[0][1] < 0.6
        assert reader.nearest(vector(new), MODEL, seen(), 1).items[0][1] > 0.98
    store.write(Batch(at=NOW, purge=(memory.id,)))
    for reader in (second, store):
        assert memory.id not in by_meaning(reader, new, everything())
        assert len(reader.nearest(vector(new), MODEL, everything(), 10).items) == 1


def test_a_text_that_changed_without_a_model_is_no_longer_found_by_its_old_meaning(store):
    memory = make("the heron stands in the reeds")
    put(store, memory)
    assert by_meaning(store, memory.content) == [memory.id]
    change(store, memory.id, content="a lighthouse", content_hash=content_hash("a lighthouse"))
    assert by_meaning(store, "the heron stands in the reeds") == []
    assert store.unembedded(MODEL, 10)[0].id == memory.id


def test_the_removal_of_many_vectors_among_those_of_another_scope(backend, store):
    """Ids of both scopes interleave, so that the log of removals names many that a reader of one scope does not hold."""
    reader = backend.open()
    mine = [make(f"mine {n} {'x' * (n % 7)}") for n in range(30)]
    theirs = [make(f"theirs {n} {'y' * (n % 5)}", scope=OTHER) for n in range(30)]
    put(store, *(memory for pair in zip(theirs, mine, strict=True) for memory in pair))
    for scope in (HERE, OTHER):
        by_meaning(reader, "mine", seen(scope))
    store.write(Batch(at=NOW, purge=tuple(memory.id for memory in (*theirs[5:20], *mine[5:12]))))
    statistics = {scope: reader.statistics(Words(), (scope,), vector("mine 3"), MODEL) for scope in (HERE, OTHER)}
    fresh = backend.open()
    for scope in (HERE, OTHER):
        assert by_meaning(reader, "mine 3", seen(scope)) == by_meaning(fresh, "mine 3", seen(scope))
        assert statistics[scope].mean_cosine == pytest.approx(fresh.statistics(Words(), (scope,), vector("mine 3"), MODEL).mean_cosine, abs=1e-6)


def test_made_vectors_are_kept_by_text_and_model(backend, store):
    one, two = EMBEDDER.documents(["a text", "words " * 1000])
    keys = [bytes(range(16)), bytes(range(16, 32))]
    store.write(Batch(at=NOW, model=MODEL, cache={keys[0].hex(): one, keys[1].hex(): two}))
    for reader in (store, backend.open()):
        found = reader.cached([*keys, bytes(16)], MODEL)
        assert set(found) == set(keys)
        for key, matrix in zip(keys, (one, two), strict=True):
            np.testing.assert_allclose(np.stack(found[key]), matrix, atol=0.005)
    assert store.cached(keys, "another-model") == {}
    assert store.cached([], MODEL) == {}


def test_what_has_no_vector_of_a_model_is_listed_oldest_first(store):
    bare, also, embedded = make("bare"), make("also bare"), make("embedded")
    never = make("never to be embedded", metadata={"vector_index": False})
    put(store, bare, also, never, embed=False)
    put(store, embedded)
    assert [memory.id for memory in store.unembedded(MODEL, 10)] == [bare.id, also.id]
    assert [memory.id for memory in store.unembedded(MODEL, 1)] == [bare.id]
    assert store.count_unembedded(MODEL) == store.overview().unembedded == 2
    assert store.count_unembedded("another-model") == 3
    assert store.models() == [MODEL]
    store.write(Batch(at=NOW, vectors={bare.id: vectors_of(bare), also.id: vectors_of(also)}, model=MODEL))
    assert store.count_unembedded(MODEL) == 0
    assert by_meaning(store, "bare")[0] == bare.id


def test_vectors_of_a_model_can_be_dropped_and_given_anew(backend, store):
    memory = make("the heron stands in the reeds")
    put(store, memory)
    store.write(Batch(at=NOW, vectors={memory.id: [np.ones(8, np.float32) / 8**0.5]}, model="tiny", cache={"00" * 16: [np.ones(8, np.float32)]}))
    assert sorted(store.models()) == sorted([MODEL, "tiny"])
    assert store.drop_vectors("tiny") == 1
    assert store.models() == [MODEL]
    assert store.cached([bytes(16)], "tiny") == {}
    assert store.drop_vectors() == 1
    assert store.models() == []
    assert by_meaning(store, memory.content) == []
    store.write(Batch(at=NOW, vectors={memory.id: vectors_of(memory)}, model=MODEL))
    assert by_meaning(store, memory.content) == [memory.id]


def test_each_model_searches_its_own_vectors(store):
    one, other = make("one"), make("other")
    store.write(Batch(at=NOW, add=(Entry(one, [np.array([1, 0, 0, 0], np.float32)]),), model="four"))
    store.write(Batch(at=NOW, add=(Entry(other, [np.array([0, 1], np.float32)]),), model="two"))
    assert [key for key, _ in store.nearest(np.array([1, 0, 0, 0], np.float32), "four", seen(), 5).items] == [store.keys([one.id])[one.id]]
    assert [key for key, _ in store.nearest(np.array([0, 1], np.float32), "two", seen(), 5).items] == [store.keys([other.id])[other.id]]


# Entities and the numbers behind scores


def test_by_entity_counts_how_many_of_the_names_a_memory_has(store):
    both = make("both", entities=(Entity("Redis", "technology"), Entity("cache")))
    one = make("one", entities=(Entity("redis", "concept"),), created_at=day(3))
    newer = make("newer", entities=(Entity("CACHE"),), created_at=day(4))
    put(store, both, one, newer, make("none"), make("theirs", scope=OTHER, entities=(Entity("Redis", "technology"),)))
    ranking = store.by_entity(["REDIS", "Cache"], seen(), 10)
    found = store.load([key for key, _ in ranking.items])
    assert [(found[key].id, score) for key, score in ranking.items] == [(both.id, 2.0), (newer.id, 1.0), (one.id, 1.0)]
    assert store.by_entity([], seen(), 10).items == store.by_entity(["unknown"], seen(), 10).items == ()


def test_statistics_count_inside_the_scopes_asked_for(store):
    words = Words(("owl", "night", "nowher"))
    put(store, make("owl owl owl"), make("owl night"), make("four words of text"), make("owl night night", scope=OTHER))
    here = store.statistics(words, (HERE,))
    assert (here.memories, here.average_length, here.counts, here.mean_cosine) == (3, 3.0, (2, 1, 0), None)
    both = store.statistics(words, (HERE, OTHER))
    assert (both.memories, both.counts) == (4, (3, 2, 0))
    for nowhere in ((), ("project:unknown",)):
        assert store.statistics(words, nowhere, vector("owl"), MODEL) == type(here)(0, 0.0, (0, 0, 0), 0.0)
    assert store.statistics(Words(), (HERE,)).counts == ()


def test_statistics_follow_every_change(store):
    words = Words(("owl", "heron"))

    def counts():
        found = store.statistics(words, (HERE,))
        return (found.memories, found.average_length * found.memories, *found.counts)

    one, other = make("an owl"), make("an owl and a heron", tags=("heron",))
    put(store, one, other)
    assert counts() == (2, 8, 2, 1)
    change(store, one.id, content="two herons fly", content_hash="x")
    assert counts() == (2, 9, 1, 2)
    change(store, one.id, importance=1.0)
    change(store, one.id, "forget", deleted_at=NOW)
    assert counts() == (2, 9, 1, 2)
    store.write(Batch(at=NOW, purge=(other.id,)))
    assert counts() == (1, 3, 0, 1)
    store.reset([HERE])
    assert counts() == (0, 0, 0, 0)


def test_the_mean_cosine_is_that_of_every_vector_in_scope(store):
    texts = ["owls at night", "deploy on friday", "redis sessions"]
    put(store, *(make(text) for text in texts), make("owls at night too", scope=OTHER))
    question = vector("owls")
    exact = np.mean([EMBEDDER.documents([text])[0][0] @ question for text in texts])
    assert store.statistics(Words(), (HERE,), question, MODEL).mean_cosine == pytest.approx(exact, abs=0.005)


def test_candidates_carry_what_scoring_needs(store):
    query = parse("redis cache sessions", NOW)
    words = query_words(query)
    memory = make(
        "redis redis cache", importance=7.0, confidence=0.5, usefulness=1.0, access_count=2, last_accessed=day(3), trust=2, position=6,
        created_at=day(2), kind="decision",
    )  # fmt: skip
    apart, wordless = make("cache of sessions in redis"), make("owls", created_at=day(5))
    put(store, memory, apart, wordless)
    keys = store.keys([memory.id, apart.id, wordless.id])
    worded = {keys[memory.id], keys[apart.id]}
    found = {candidate.key: candidate for candidate in store.candidates(list(keys.values()), seen(), words, worded)}
    first, second, third = found[keys[memory.id]], found[keys[apart.id]], found[keys[wordless.id]]
    assert (first.kind, first.importance, first.confidence, first.usefulness, first.access_count) == ("decision", 7.0, 0.5, 1.0, 2)
    assert (first.created_at, first.last_accessed, first.trust, first.position) == (day(2).timestamp(), day(3).timestamp(), 2, 6)
    assert (first.length, third.last_accessed) == (3, day(5).timestamp())
    assert dict(zip(words.lexemes, first.frequencies, strict=True)) == {"redi": 2, "cach": 1, "session": 0}
    assert dict(zip(words.pairs, first.pairs, strict=True)) == {("redi", "cach"): True, ("cach", "session"): False}
    assert second.frequencies == (1, 1, 1)
    assert second.pairs == (False, True)  # "of" does not stand between
    assert third.frequencies == (0, 0, 0)
    assert store.candidates([], seen(), words, ()) == []
    assert store.candidates(list(keys.values()), seen(OTHER), words, ()) == []
    (decision,) = store.candidates(list(keys.values()), seen(kinds=("decision",)), words, ())
    assert (decision.key, decision.frequencies) == (keys[memory.id], (0, 0, 0))


def test_cosines_are_those_of_the_vectors_even_before_any_search(backend, store):
    texts = ["redis cache", "owls at night", "a cache of sessions"]
    memories = [make(text) for text in texts]
    bare, theirs = make("no vector"), make("redis cache too", scope=OTHER)
    put(store, *memories, theirs)
    put(store, bare, embed=False)
    question = vector("redis cache")
    for reader in (backend.open(), store):
        keys = reader.keys([memory.id for memory in (*memories, bare, theirs)])
        found = reader.cosines(list(keys.values()), question, MODEL, (HERE,))
        exact = {keys[memory.id]: float(vectors_of(memory)[0] @ question) for memory in memories}
        assert found == pytest.approx(exact, abs=0.01)
        assert reader.cosines(list(keys.values()), question, "another-model", (HERE,)) == {}
        assert reader.cosines([], question, MODEL, (HERE,)) == {}
    store.write(Batch(at=NOW, purge=(memories[0].id,)))
    assert store.cosines(list(keys.values()), question, MODEL, (HERE,)).keys() == {keys[memory.id] for memory in memories[1:]}


# Care


def snapshot(store: Store) -> tuple:
    """Everything a store can be asked for, so that two moments can be compared."""
    scopes = (HERE, OTHER, PERSONAL)
    memories = list(store.scan(everything(*scopes)))
    known = [memory.id for memory in memories]
    words = Words(("owl", "text", "thing", "redi", "of"))
    return (
        memories, [store.history(id) for id in known], store.relations(known), store.statistics(words, scopes, vector("owl"), MODEL), sorted(store.models()),
        by_words(store, "owl text thing redis of", everything(*scopes)), by_meaning(store, "owl text", everything(*scopes)),
        store.overview()._replace(database_bytes=0), store.tombstoned([content_hash("gone")]), store.source(HERE, "docs/a.md"), sorted(store.scopes()),
    )  # fmt: skip


def test_an_overview_counts_what_there_is(store, march):
    a, b = list(march)[:2]
    store.write(Batch(at=NOW, relate=(Relation(a, b, "builds_on"),), model=MODEL, cache={"00" * 16: [vector("x")]}))
    found = store.overview()
    assert (found.memories, found.deleted, found.relations, found.cached, found.unembedded) == (13, 1, 1, 1, 0)
    assert found.by_scope == {HERE: 11, OTHER: 1, PERSONAL: 1}
    assert found.by_kind == {"fact": 7, "decision": 2, "question": 2, "document": 1, "preference": 1}
    assert found.vectors == {MODEL: 14}
    assert found.entities == 3
    assert found.database_bytes > 0
    inside = store.overview([OTHER])
    assert (inside.memories, inside.deleted, inside.by_scope, inside.by_kind) == (1, 0, {OTHER: 1}, {"decision": 1})
    assert store.overview([]).memories == 0
    assert sorted(store.scopes()) == sorted([HERE, OTHER, PERSONAL])


def test_an_empty_store_is_well_and_answers_everything(store):
    assert store.check(deep=True) == []
    assert (store.count(seen()), store.list(seen()), list(store.scan(seen())), store.scopes(), store.models()) == (0, [], [], [], [])
    assert store.overview().memories == 0
    assert by_words(store, "anything") == by_meaning(store, "anything") == []
    assert store.rebuild() == 0
    assert store.drop_vectors() == 0
    assert store.reset() == 0
    assert store.write(Batch(at=NOW)).outcomes == ()


def test_a_rebuilt_index_gives_the_same_answers(store, march):
    put(store, make("a text in docs", source="docs/walrus.md", source_type="markdown", section="Heading"), unique=False)
    change(store, list(march)[0], content="owl of the night, changed", content_hash="changed")
    before = snapshot(store)
    assert store.rebuild() == 15
    assert snapshot(store) == before
    assert store.check(deep=True) == []


def test_a_backup_opens_and_is_the_same(backend: Backend, store, march, tmp_path):
    store.write(Batch(at=NOW, access=(list(march)[0],), relate=(Relation(*list(march)[:2], "builds_on"),)))
    target = tmp_path / "copies" / "backup"
    target.parent.mkdir()
    before = snapshot(store)
    assert store.backup(str(target)) == target.stat().st_size > 0
    copy = backend.open(str(target))
    assert snapshot(copy) == before
    assert copy.check(deep=True) == []
    put(copy, make("only in the copy"))
    assert snapshot(store) == before
    with pytest.raises(StoreError, match="exists already"):
        store.backup(str(target))
    with pytest.raises(StoreError, match="does not exist"):
        store.backup(str(tmp_path / "nowhere" / "backup"))


def test_resetting_a_scope_leaves_the_others(store, march):
    mine = [id for id, name in march.items() if name not in ("other", "mine")]
    store.write(Batch(at=NOW, relate=(Relation(mine[0], mine[1], "builds_on"),), sources=((HERE, Source("docs/a.md", "markdown", "h")),)))
    assert store.reset([HERE]) == 12
    assert store.list(everything()) == []
    assert {march[memory.id] for memory in store.scan(everything(HERE, OTHER, PERSONAL))} == {"other", "mine"}
    assert store.relations(mine) == []
    assert store.history(mine[0]) == []
    assert store.source(HERE, "docs/a.md") is None
    assert by_words(store, "owl", everything()) == by_meaning(store, OWL, everything()) == []
    assert len(by_words(store, "owl", seen(OTHER))) == len(by_meaning(store, OWL, seen(OTHER))) == 1
    assert store.overview().entities == 1
    assert store.check(deep=True) == []
    assert put(store, make("a new start")).added == 1
    assert store.reset(["project:unknown"]) == 0
    assert store.reset([]) == 0


def test_resetting_everything_leaves_nothing_and_works_on(store, march):
    store.write(Batch(at=NOW, purge=(list(march)[0],), model=MODEL, cache={"00" * 16: [vector("x")]}))
    assert store.reset() == 13
    found = store.overview()
    assert (found.memories, found.deleted, found.relations, found.entities, found.sources, found.cached) == (0, 0, 0, 0, 0, 0)
    assert set(found.vectors.values()) <= {0}
    assert store.tombstoned([content_hash(f"{OWL} of plain")]) == set()
    assert store.check(deep=True) == []
    assert put(store, make(f"{OWL} of plain")).added == 1
    assert len(by_words(store, "owl")) == len(by_meaning(store, OWL)) == 1


# All or nothing


def failing_batches():
    memory = make("an owl that must not stay", entities=(Entity("Ghost"),), source="docs/ghost.md", source_type="markdown")
    unknown = make("unknown").id
    adding = {"add": (Entry(memory, vectors_of(memory)),), "model": MODEL, "cache": {"77" * 16: [vector("ghost")]}}
    yield "a change of an unknown id", lambda known: Batch(at=NOW, **adding, change=(Change(known[1], "update", {"importance": 1.0}), Change(unknown, "update", {"importance": 1.0})))  # fmt: skip
    yield "a field that cannot change", lambda known: Batch(at=NOW, **adding, purge=(known[0],), change=(Change(known[1], "update", {"id": "x"}),))
    yield "a text that cannot be stored", lambda known: Batch(at=NOW, **adding, access=(known[0],), change=(Change(known[1], "update", {"summary": "\udcff"}),))
    yield "an id that is taken", lambda known: Batch(at=NOW, add=(*adding["add"], Entry(make("twin", id=known[2]))), model=MODEL)
    yield "a twin of a living text", lambda known: Batch(
        at=NOW, **adding, retire=((HERE, "note"),), relate=(Relation(known[0], known[1], "answers"),), change=(Change(known[3], "update", {"content_hash": content_hash("a thing"), "content": "a thing"}),)
    )  # fmt: skip
    yield "a vector that is none", lambda known: Batch(at=NOW, add=(*adding["add"], Entry(make("another"), ["no vector"])), model=MODEL)


@pytest.mark.parametrize(("name", "batch"), list(failing_batches()), ids=lambda value: value if isinstance(value, str) else "")
def test_a_batch_that_fails_half_way_changes_nothing_at_all(backend, store, name, batch):
    known = [make(text, source="kept") for text in ("an owl", "redis text", "a thing", "fourth of a kind")]
    put(store, *known, relate=(Relation(known[0].id, known[1].id, "builds_on"),))
    before = snapshot(store)
    with pytest.raises((RecollectError, ValueError)):
        store.write(batch([memory.id for memory in known]))
    assert snapshot(store) == before
    assert snapshot(backend.open()) == before
    assert store.check(deep=True) == []
    assert put(store, make("an owl that may stay")).added == 1
