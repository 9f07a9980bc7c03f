"""What every store must do, whatever database is behind it: reading, writing and care. Runs once for each backend in conftest.BACKENDS."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
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
    forget,
    ids,
    make,
    pick,
    purge,
    put,
    replace,
    seen,
    snapshot,
    source_of,
    tell,
    vector,
    vectors_of,
    write,
)

from bethink.errors import Ambiguous, BethinkError, InvalidInput, NotFound, StoreError
from bethink.model import PERSONAL, Change, Entity, Entry, Relation, Session, Source
from bethink.recall.query import parse
from bethink.store.base import Store
from bethink.store.transfer import Bundle
from bethink.text import hash_text

ANY_TEXT_KEPT = [
    "a",
    "ünï → 漢字 🦉",
    "x" * 100000,
    "line\nline\r\nline",
    "tab\tand \u2028 separators",
    "'; DROP TABLE memories; --",
    "%s {} \\",
]

EVERY_FIELD = [
    {
        "kind": "architecture",
        "summary": "sessions in Redis",
        "importance": 7.5,
        "confidence": 0.25,
        "usefulness": 2.0,
        "access_count": 3,
        "last_accessed": day(3),
        "valid_from": day(2),
        "valid_to": day(30),
        "expires_at": day(60),
        "answered": True,
        "source": "docs/auth.md",
        "source_type": "markdown",
        "lines": (10, 14),
        "position": 4,
        "section": "Auth > Sessions",
        "span": "span-1",
        "session": "session-1",
        "tags": ("auth", "Größe"),
        "keywords": ("sessions", "redis"),
        "entities": (Entity("Redis", "technology"), Entity("cookies")),
        "metadata": {"ticket": "OPS-7", "nested": {"list": [1, 2.5, None, "é"]}},
        "trust": 1,
    },
]


def test_any_text_is_stored_to_the_letter(store):
    texts = ANY_TEXT_KEPT
    memories = tell(store, *texts)
    asked = [*(memory.id for memory in reversed(memories)), make("never stored").id]
    assert [memory.content for memory in store.get(asked)] == texts[::-1]
    assert store.get([]) == []


def test_a_text_that_is_not_unicode_is_refused(store):
    with pytest.raises(InvalidInput, match="cannot be stored"):
        put(store, make("fine", tags=("half a pair \udcff",)))


def test_a_refused_write_stores_nothing(store):
    with pytest.raises(InvalidInput):
        put(store, make("first"), make("fine", tags=("half a pair \udcff",)))
    assert store.count(everything()) == 0


def test_every_field_comes_back_as_written(store):
    (fields,) = EVERY_FIELD
    full = make("Sessions are kept in Redis, not in cookies", **fields)
    put(store, full)
    (found,) = store.get([full.id])
    assert found._replace(entities=()) == full._replace(entities=())
    assert set(found.entities) == set(full.entities)


def test_the_last_possible_time_is_stored(store):
    last = datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))
    put(store, memory := make("never expires", expires_at=last))
    change(store, memory.id, at=last, valid_to=last)
    (found,) = store.get([memory.id])
    assert datetime.max.replace(tzinfo=UTC) - found.expires_at < timedelta(milliseconds=2)
    assert found.expires_at == found.valid_to == store.history(memory.id)[-1].at


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        pytest.param("created", "cba", id="newest-first"),
        pytest.param("oldest", "abc", id="oldest-first"),
        pytest.param("importance", "bac", id="importance"),
        pytest.param("used", "acb", id="most-used"),
        pytest.param("useful", "cba", id="most-useful"),
        pytest.param("updated", "acb", id="last-updated"),
        pytest.param("proven", "cab", id="proven"),
    ],
)
def test_a_list_has_each_order(store, order, expected):
    for text, created, updated, importance, usefulness, used in (
        ("a", 1, 9, 5.0, 0.0, 9),
        ("b", 2, 2, 9.0, 1.0, 0),
        ("c", 3, 3, 1.0, 5.0, 1),
    ):
        times = {"created_at": day(created), "updated_at": day(updated), "access_count": used}
        tell(store, text, importance=importance, usefulness=usefulness, **times)
    assert "".join(one.content for one in store.list(seen(), order=order)) == expected


def test_a_scan_reads_everything_oldest_first(store):
    times = [day(1) + timedelta(seconds=n) for n in range(503)]
    memories = [make(f"text {at}", created_at=at, scope=OTHER) for at in times]
    put(store, *memories, embed=False)
    assert [memory.id for memory in store.scan(seen(OTHER))] == [memory.id for memory in memories]


# Filters: one table of memories, one table of what each filter shows

OWL = "the owl"
REDIS = Entity("Redis", "technology")
MARCH = {
    "plain": {"created_at": day(1)},
    "decision": {
        "kind": "decision",
        "importance": 8.0,
        "created_at": day(2),
        "tags": ("db", "Infra"),
        "entities": (REDIS,),
        "usefulness": 1.0,
    },
    "open": {
        "kind": "question",
        "answered": False,
        "created_at": day(3),
        "session": "s1",
        "entities": (Entity("Straße"), Entity("redis")),
    },
    "closed": {
        "kind": "question",
        "answered": True,
        "created_at": day(4),
        "session": "s2",
        "tags": ("db-two",),
    },
    "document": {
        "kind": "document",
        "importance": 2.0,
        "created_at": day(5),
        "source": "docs/a.md",
        "source_type": "markdown",
        "trust": 1,
        "access_count": 2,
    },
    "expired": {"created_at": day(6), "expires_at": day(10)},
    "later": {"created_at": day(7), "expires_at": day(30)},
    "deleted": {"created_at": day(8), "deleted_at": day(9)},
    "superseded": {"created_at": day(9), "valid_to": day(12), "superseded_by": "0190-none"},
    "ended": {"created_at": day(10), "valid_to": day(12)},
    "tool": {"created_at": day(11), "trust": 0},
    "backdated": {"created_at": day(13), "valid_from": day(2)},
    "other": {
        "scope": OTHER,
        "kind": "decision",
        "importance": 9.0,
        "tags": ("db",),
        "entities": (REDIS,),
        "created_at": day(2),
    },
    "mine": {"scope": PERSONAL, "kind": "preference", "created_at": day(2)},
}
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
    ({"max_trust": 1}, {"document"}),
    ({"max_trust": 1, "include_quarantined": True}, {"document", "tool"}),
    ({"max_trust": 0, "include_quarantined": True}, {"tool"}),
    ({"max_trust": 1, "kinds": ("fact",), "include_quarantined": True}, {"tool"}),
    ({"max_trust": 3}, USUAL),
    ({"used": True}, {"decision", "document"}),
    ({"used": True, "kinds": ("document",)}, {"document"}),
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
    (
        {"as_of": day(9)},
        set("plain decision open closed document expired later superseded backdated".split()),
    ),
    ({"as_of": day(12)}, USUAL),
    ({"as_of": day(11) + timedelta(hours=23)}, USUAL | {"superseded", "ended"}),
    ({"as_of": day(3)}, {"plain", "decision", "open", "backdated"}),
    ({"as_of": day(1) - timedelta(seconds=1)}, set()),
    ({"now": day(10) - timedelta(seconds=1)}, USUAL | {"expired", "ended"}),
    ({"now": day(31)}, USUAL - {"later"}),
    (
        {
            "kinds": ("question",),
            "since": day(4),
            "session": "s2",
            "answered": True,
            "tags": ("db-two",),
        },
        {"closed"},
    ),
    ({"min_trust": 2}, USUAL - {"document"}),
    ({"spans": ("nowhere",)}, set()),
]


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


def name_case(value: dict | set) -> str:
    """Name a case by its filter; a set, whose order differs from process to process, by its sorted members."""
    return str(value)[:60] if isinstance(value, dict) else "-".join(sorted(value))[:60] or "none"


@pytest.mark.parametrize(("fields", "expected"), FILTERS, ids=name_case)
def test_every_read_obeys_the_filter(calendar, fields, expected):
    store, march = calendar
    filter = seen()._replace(**fields)
    assert {march[memory.id] for memory in store.list(filter)} == expected
    assert {march[memory.id] for memory in store.scan(filter)} == expected
    assert store.count(filter) == len(expected)
    assert {march[id] for id in by_words(store, "owl", filter)} == expected
    assert {march[id] for id in by_meaning(store, OWL, filter)} == expected
    by_word = store.keyword(parse("owl", NOW), filter, LIMIT)
    rankings = by_word, store.nearest(vector(OWL), MODEL, filter, LIMIT)
    rankings += (store.by_entity(["redis"], filter, LIMIT),)
    words, meaning, named = (store.load([key for key, _ in one]).values() for one in rankings)
    assert {march[memory.id] for memory in named} == expected & {"decision", "open", "other"}
    # Nor does what is only offered, before candidates are filtered, ever leave the scope.
    assert {memory.scope for memory in (*words, *meaning)} <= set(filter.scopes)


def test_a_filter_may_name_many_sources(store):
    memory = make(OWL, source="docs/70000.md", source_type="markdown")
    put(store, memory, make("another owl"))
    many = [f"docs/{number}.md" for number in range(70_001)]
    assert by_words(store, "owl", seen(sources=many)) == [memory.id]


def test_a_filter_separates_turns_from_notes_about_a_session(store):
    said = make("said", session="s", source="talk.jsonl", source_type="transcript")
    put(store, said, make("a summary", session="s", source="compaction:s"), unique=False)
    assert store.count(seen(session="s")) == 2
    assert [one.id for one in store.list(seen(session="s", transcribed=True))] == [said.id]


@pytest.mark.parametrize("how", [by_words, by_meaning])
def test_hidden_memories_do_not_take_the_places_of_visible_ones(store, how):
    tell(store, *(f"zebra zebra zebra {n}" for n in range(40)), deleted_at=day(2))
    (live,) = tell(store, "a single zebra among very many other animals, seen at dawn")
    assert how(store, "zebra", limit=10) == [live.id]


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


@pytest.mark.parametrize(
    ("prefix", "which"),
    [
        pytest.param(TWINS[0], 0, id="TWINS-0"),
        pytest.param(TWINS[1], 1, id="TWINS-1"),
        pytest.param(TWINS[0].upper(), 0, id="TWINS-0-upper"),
        pytest.param(TWINS[0].replace("-", ""), 0, id="TWINS-0-replace"),
        pytest.param(f"  {TWINS[2]}\n", 2, id="TWINS-2"),
        pytest.param("01900000-2", 2, id="01900000-2"),
        pytest.param("019000002", 2, id="019000002"),
        pytest.param("01900000-2222-7", 2, id="01900000-2222-7"),
        pytest.param("0190000022227", 2, id="0190000022227"),
        pytest.param("01911", 3, id="01911"),
        pytest.param("0191111100", 3, id="0191111100"),
        pytest.param("01900000-22227", 2, id="01900000-22227"),
        pytest.param("01911111-", 3, id="01911111"),
        pytest.param("01922", NotFound, id="01922"),
        pytest.param("0193", NotFound, id="0193"),
        pytest.param("019000003", NotFound, id="019000003"),
        pytest.param(TWINS[0] + "0", NotFound, id="TWINS-0-notfound"),
        pytest.param("", NotFound, id="empty"),
        pytest.param("  ", NotFound, id="blank"),
        pytest.param("-", NotFound, id="hyphen-minus"),
        pytest.param("xyz", NotFound, id="xyz"),
        pytest.param("0190%", NotFound, id="0190"),
        pytest.param("01900000_1111", NotFound, id="01900000_1111"),
        pytest.param("０１９", NotFound, id="019-notfound"),
        pytest.param("*", NotFound, id="asterisk"),
        pytest.param("0" * 1000, NotFound, id="0-1000"),
        pytest.param("0", Ambiguous, id="0-ambiguous"),
        pytest.param("019", Ambiguous, id="019-ambiguous"),
        pytest.param("01900000", Ambiguous, id="01900000"),
        pytest.param("01900000-1111", Ambiguous, id="01900000-1111"),
        pytest.param("019000001111", Ambiguous, id="019000001111"),
        pytest.param(TWINS[0][:-1], Ambiguous, id="TWINS-0-1-ambiguous"),
        pytest.param(TWINS[0][:-1].upper(), Ambiguous, id="TWINS-0-1-upper"),
    ],
)
def test_an_id_is_resolved_by_any_unique_prefix(twins, prefix, which):
    if isinstance(which, int):
        assert twins.resolve(prefix, [HERE]) == TWINS[which]
    else:
        with pytest.raises(which) as caught:
            twins.resolve(prefix, [HERE])
        assert caught.value.hint


def test_an_abbreviated_id_is_a_unique_prefix(twins):
    every = [memory.id for memory in twins.scan(everything(HERE, OTHER))]
    short = twins.abbreviate(every)
    assert list(short) == every
    assert [
        id
        for id, prefix in short.items()
        if (len(prefix) < 8 or prefix.endswith("-"))
        or [other for other in every if other.startswith(prefix)] != [id]
        or twins.resolve(prefix) != id
    ] == []


def test_a_backup_holds_everything(store, march, backend, tmp_path):
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


def test_a_backup_is_refused_where_it_cannot_be_written(store, tmp_path):
    target = tmp_path / "copies" / "backup"
    target.parent.mkdir()
    assert store.backup(str(target)) == target.stat().st_size > 0
    for place, said in ((target, "exists already"), (tmp_path / "no" / "copy", "does not exist")):
        with pytest.raises(StoreError, match=said):
            store.backup(str(place))


def test_an_overview_counts_everything(store, march):
    link = Relation(*list(march)[:2], "builds_on")
    write(store, relate=(link,), model=MODEL, cache={"00" * 16: [vector("x")]})
    found = store.overview()
    assert pick(found, "memories deleted relations cached unembedded") == (13, 1, 1, 1, 0)
    assert found.by_scope == {HERE: 11, OTHER: 1, PERSONAL: 1}
    kinds = {"fact": 7, "decision": 2, "question": 2, "document": 1, "preference": 1}
    assert (found.by_kind, found.vectors, found.entities) == (kinds, {MODEL: 14}, 3)
    assert found.database_bytes > 0


def test_an_overview_can_be_limited_to_scopes(store, march):
    link = Relation(*list(march)[:2], "builds_on")
    write(store, relate=(link,), model=MODEL, cache={"00" * 16: [vector("x")]})
    inside = store.overview([OTHER])
    assert pick(inside, "memories deleted by_scope by_kind") == (1, 0, {OTHER: 1}, {"decision": 1})
    assert store.overview([]).memories == 0
    assert sorted(store.scopes()) == sorted([HERE, OTHER, PERSONAL])


def test_rebuilding_the_index_changes_nothing(store, march):
    page = {"source": "docs/walrus.md", "source_type": "markdown", "section": "Heading"}
    tell(store, "a text in docs", **page)
    edit(store, store.get(list(march)[:1])[0], "owl of the night, changed")
    before = snapshot(store)
    assert store.rebuild() == 15
    assert snapshot(store) == before


def test_an_empty_store_answers_everything(store):
    assert store.check(deep=True) == []
    assert (
        store.list(seen()) == list(store.scan(seen())) == store.models() == [*store.scopes()] == []
    )
    assert store.count(seen()) == store.overview().memories == 0
    assert by_words(store, "anything") == by_meaning(store, "anything") == []
    assert store.rebuild() == store.drop_vectors() == store.reset() == 0
    assert write(store).outcomes == ()


def test_resetting_a_scope_leaves_the_others(store, march):
    mine = [id for id, name in march.items() if name not in ("other", "mine")]
    read = (HERE, Source("docs/a.md", "markdown", "h"))
    write(store, relate=(Relation(mine[0], mine[1], "builds_on"),), sources=(read,))
    assert store.reset([HERE]) == 12
    left = store.scan(everything(HERE, OTHER, PERSONAL))
    assert {march[id] for id in ids(left)} == {"other", "mine"}
    assert store.relations(mine) == store.history(mine[0]) == []
    assert source_of(store, HERE, "docs/a.md") is None
    assert by_words(store, "owl", everything()) == by_meaning(store, OWL, everything()) == []
    assert len(by_words(store, "owl", seen(OTHER))) == len(by_meaning(store, OWL, seen(OTHER))) == 1
    assert store.overview().entities == 1
    assert store.check(deep=True) == []
    assert store.reset(["project:unknown"]) == store.reset([]) == 0


def test_resetting_everything_leaves_nothing(store):
    (gone, _) = tell(store, f"{OWL} of plain", "redis sessions")
    purge(store, gone, model=MODEL, cache={"00" * 16: [vector("x")]})
    write(store, sources=((HERE, Source("docs/a.md", "markdown", "h")),))
    assert store.reset() == 1
    found = store.overview()
    assert set(pick(found, "memories deleted relations entities sources cached")) == {0}
    assert set(found.vectors.values()) <= {0}
    assert store.find_purged([gone.content_hash]) == set()
    assert store.check(deep=True) == []


def test_resetting_everything_resets_every_scope(store, march):
    first, second, *_ = march
    write(store, relate=(Relation(first, second, "builds_on"),))
    assert store.reset() == len(march)
    assert set(pick(store.overview(), "memories deleted relations entities")) == {0}


def test_a_reset_store_takes_memories_again(store):
    (gone,) = tell(store, f"{OWL} of plain")
    purge(store, gone)
    store.reset()
    tell(store, gone.content)
    assert len(by_words(store, "owl")) == len(by_meaning(store, OWL)) == 1


def test_a_text_is_stored_once_per_scope(store):
    """Duplicates are looked up by hash among the living of a scope; passages are none."""
    (first,) = tell(store, "We deploy on Fridays")
    receipt = put(store, make("We deploy on Fridays"))
    (outcome,) = receipt.outcomes
    assert (outcome.status, outcome.id, outcome.duplicate_of) == ("duplicate", first.id, first.id)
    assert (outcome.similarity, receipt.added) == (1.0, 0)
    assert store.count(everything()) == len(store.history(first.id)) == 1


def test_duplicates_are_looked_up_by_hash(store):
    (first,) = tell(store, "We deploy on Fridays")
    tell(store, "gone", deleted_at=day(2))
    put(store, make("passage"), unique=False)
    hashes = [content_hash(text) for text in (first.content, "gone", "passage", "unknown")]
    assert store.duplicates(hashes, HERE) == {first.content_hash: first.id}
    assert store.duplicates(hashes, OTHER) == store.duplicates([], HERE) == {}


def test_a_forgotten_text_may_be_added_again(store):
    (first,) = tell(store, "We rest on Sundays")
    forget(store, first)
    again, third = tell(store, "We rest on Sundays", "something else")
    with pytest.raises(InvalidInput, match=again.id):
        change(store, first.id, "restore", deleted_at=None)
    with pytest.raises(InvalidInput, match=again.id):
        edit(store, third, "We rest on Sundays")
    assert store.get([first.id])[0].deleted_at == NOW
    assert store.get([again.id])


def test_a_purged_text_is_not_stored_again(store):
    first, other = tell(store, "the salary is 12345", "something else")
    assert purge(store, first).purged == 1
    assert store.find_purged([first.content_hash, content_hash("else")]) == {first.content_hash}
    again = make(first.content)
    attempts = ((again, True), (again._replace(scope=OTHER), True), (again, False))
    stored = [put(store, memory, unique=unique).outcomes[0].status for memory, unique in attempts]
    assert stored == ["purged"] * 3
    fields = {"content": again.content, "content_hash": again.content_hash}
    with pytest.raises(InvalidInput, match="was purged"):
        change(store, other.id, **fields)
    assert [memory.content for memory in store.scan(everything(HERE, OTHER))] == ["something else"]


def test_a_purged_text_is_stored_on_request(store):
    first, other = tell(store, "the salary is 12345", "something else")
    assert purge(store, first).purged == 1
    again = make(first.content)
    fields = {"content": again.content, "content_hash": again.content_hash}
    write(store, change=(Change(other.id, "update", fields),), allow_purged=True)
    edit(store, other, "something else")
    assert put(store, again, allow_purged=True).outcomes[0].status == "added"


@pytest.mark.parametrize("which", ["purged", "known"])
def test_a_memory_that_was_not_stored_replaces_nothing(store, which):
    # A re-import of a purged or known text brings its relations along; they must not point at what is not there.
    old, new, known = tell(store, "We use MySQL", "We moved to PostgreSQL", "known already")
    purge(store, new)
    copy = make(new.content if which == "purged" else known.content)
    changes = (Change(old.id, "supersede", {"superseded_by": copy.id, "valid_to": day(3)}),)
    put(store, copy, relate=(Relation(copy.id, old.id, "supersedes"),), change=changes)
    assert store.get([copy.id]) == store.relations([old.id, copy.id]) == []
    assert store.get([old.id])[0].superseded_by is None
    assert old.id in ids(store.list(seen()))


def test_a_source_is_stored_with_its_position(store):
    source = Source("docs/a.md", "markdown", "hash-1", 42, {"title": "A"})
    write(store, sources=((HERE, source),))
    assert source_of(store, HERE, "docs/a.md") == source
    newer = source._replace(hash="hash-2", position=50)
    write(store, sources=((HERE, newer),))
    assert source_of(store, HERE, "docs/a.md") == newer
    assert source_of(store, OTHER, "docs/a.md") is source_of(store, HERE, "docs/b.md") is None


WRITING_EACH_FIELD_CAN = [
    {"kind": "decision"},
    {"summary": "short"},
    {"importance": 1.5},
    {"confidence": 0.5},
    {"tags": ("a", "b")},
    {"metadata": {"a": [1]}},
    {"keywords": ("k",)},
    {"valid_from": day(2)},
    {"valid_to": day(3)},
    {"expires_at": day(4)},
    {"deleted_at": day(5)},
    {"answered": True},
    {"section": "Heading"},
    {"trust": 0},
    {"session": "s"},
    {"entities": (Entity("Redis", "technology"),)},
    {"last_accessed": day(6)},
]


def test_the_history_keeps_both_values_of_a_change(store):
    (memory,) = tell(store, "The limit is 10", importance=5.0)
    new = {"content": "The limit is 20", "importance": 8.0}
    edit(store, memory, new["content"], actor="claude", at=day(5), importance=8.0)
    (now,) = store.get([memory.id])
    assert {name: getattr(now, name) for name in new} == new
    assert (now.updated_at, now.created_at) == (day(5), day(1))
    assert now.content_hash == content_hash(new["content"])
    added, changed = store.history(memory.id)
    assert (added.action, added.at, dict(added.before), dict(added.after)) == ("add", NOW, {}, {})
    assert (changed.action, changed.at) == ("update", day(5))
    assert changed.actor in ("claude", "claude for user")  # where the store acts for a person
    assert changed.before == {"content": "The limit is 10", "importance": 5.0}
    assert changed.after == new
    assert added.number < changed.number


@pytest.mark.parametrize("fields", WRITING_EACH_FIELD_CAN, ids="-".join)
def test_each_field_can_be_changed(store, fields):
    (memory,) = tell(store, "The limit is 10", importance=5.0)
    change(store, memory.id, **fields)
    (now,) = store.get([memory.id])
    assert {name: getattr(now, name) for name in fields} == fields
    assert [event.action for event in store.history(memory.id)] == ["add", "update"]


def test_a_use_leaves_no_history(store):
    memory, other = tell(store, "a text", "another")
    write(store, at=day(21), access=(memory.id,))
    write(store, at=day(22), access=(memory.id, make("unknown").id))
    used, unused = store.get([memory.id, other.id])
    assert pick(used, "access_count last_accessed updated_at") == (2, day(22), memory.updated_at)
    assert (unused.access_count, unused.last_accessed) == (0, None)
    assert [event.action for event in store.history(memory.id)] == ["add"]


def test_a_vote_is_no_edit(store):
    memory, _other = tell(store, "a text", "another")
    change(store, memory.id, "vote", usefulness=1.0)  # is kept in history but is no edit
    (now,) = store.get([memory.id])
    assert (now.usefulness, now.updated_at) == (1.0, memory.updated_at)
    assert store.history(memory.id)[-1].after == {"usefulness": 1.0}


def test_relations_are_found_from_both_ends(store):
    a, b, c = (memory.id for memory in tell(store, *"abc"))
    builds, contradicts = Relation(a, b, "builds_on"), Relation(c, a, "contradicts")
    write(store, relate=(builds, builds, contradicts))
    cases = [(a, {builds, contradicts}), (b, {builds}), (c, {contradicts})]
    assert [
        id
        for id, expected in cases
        for found in [store.relations([id])]
        if {relation[:3] for relation in found} != {relation[:3] for relation in expected}
        or {relation.created_at for relation in found} != {NOW}
    ] == []
    assert len(store.relations([a, b, c])) == 2


def test_a_relation_can_be_removed(store):
    a, b, c = (memory.id for memory in tell(store, *"abc"))
    builds, contradicts = Relation(a, b, "builds_on"), Relation(c, a, "contradicts")
    write(store, relate=(builds, builds, contradicts))
    write(store, unrelate=(builds._replace(type="relates_to"), builds))
    assert store.relations([b]) == []
    assert len(store.relations([a])) == 1


PAGE = {"source": "docs/a.md", "source_type": "markdown"}


def test_reading_a_source_again_replaces_only_its_own_memories(store):
    named = {**PAGE, "entities": (Entity("Thing"),)}
    own = tell(store, *"plain used voted linked kept edited believed reread".split(), **named)
    plain, used, voted, linked, kept, edited, believed, reread = own
    (note,) = tell(store, "a note")
    others = (note, *tell(store, "other", **{**named, "source": "docs/b.md"}))
    others += tuple(tell(store, "far", **named, scope=OTHER))
    vote = Change(voted.id, "vote", {"usefulness": 1.0})
    link = Relation(note.id, linked.id, "builds_on")
    write(store, access=(used.id,), change=(vote,), relate=(link,))
    edit(store, edited, "edited, said Anna")
    change(store, believed.id, "believe", trust=3)
    change(store, reread.id, "reread", section="Elsewhere")
    fresh = make("new", **named)
    gone = ((HERE, "docs/a.md"), (HERE, "never/read.md"))
    assert put(store, fresh, retire=gone, keep=(kept.id,)).retired == 7
    living = ids([kept, fresh, *others])
    assert ids(store.list(seen(HERE, OTHER))) == living
    hidden = ids([used, voted, linked, edited, believed])
    assert ids(store.scan(everything(HERE, OTHER))) == living | hidden
    assert store.get([plain.id]) == store.history(plain.id) == []
    assert [event.action for event in store.history(used.id)] == ["add", "retire"]
    assert [event.action for event in store.history(edited.id)] == ["add", "update", "retire"]
    assert store.get([used.id])[0].deleted_at == NOW
    assert plain.id not in by_words(store, "plain", everything())
    assert plain.id not in by_meaning(store, plain.content, everything())


def test_a_note_about_a_document_is_not_one_of_its_passages(store):
    uri = "docs/a.md"
    told, linked = tell(store, "told of the document", "told of it and linked", source=uri)
    write(store, relate=(Relation(linked.id, told.id, "builds_on"),))
    for hash in ("one", "two"):
        passage, read = make(f"passage {hash}", **PAGE), (HERE, Source(uri, "markdown", hash))
        receipt = put(store, passage, sources=(read,), retire=((HERE, uri),))
    assert receipt.retired == 1
    types = {told.id: "note", linked.id: "note", passage.id: "markdown"}
    assert {memory.id: memory.source_type for memory in store.list(seen())} == types
    assert [held.memory.id for held in store.list_passages(HERE, uri)] == [passage.id]


def test_a_note_has_no_neighbours_in_its_document(store):
    uri = "docs/a.md"
    told, linked = tell(store, "told of the document", "told of it and linked", source=uri)
    write(store, relate=(Relation(linked.id, told.id, "builds_on"),))
    for hash in ("one", "two"):
        passage, read = make(f"passage {hash}", **PAGE), (HERE, Source(uri, "markdown", hash))
        put(store, passage, sources=(read,), retire=((HERE, uri),))
    again = [make("told twice") for _ in range(2)]
    put(store, *again, unique=False)
    assert [
        id
        for id in (passage.id, told.id, again[0].id)
        if [memory.id for memory in store.around(id, 9, 9)] != [id]
    ] == []


def test_a_note_survives_the_move_of_its_document(store):
    uri = "docs/a.md"
    told, linked = tell(store, "told of the document", "told of it and linked", source=uri)
    write(store, relate=(Relation(linked.id, told.id, "builds_on"),))
    for hash in ("one", "two"):
        passage, read = make(f"passage {hash}", **PAGE), (HERE, Source(uri, "markdown", hash))
        put(store, passage, sources=(read,), retire=((HERE, uri),))
    change(store, told.id, tags=["edited"])
    moved = write(store, move=((HERE, uri, "docs/b.md"),), vanish=((HERE, "docs/b.md"),))
    assert moved.retired == 1
    sources = {memory.id: memory.source for memory in store.list(seen())}
    assert sources == dict.fromkeys((told.id, linked.id), "docs/b.md")
    before = snapshot(store)
    store.rebuild()
    assert snapshot(store) == before


GHOST = make("an owl that must not stay", source="docs/ghost.md", source_type="markdown")
ADDING = {
    "add": (Entry(GHOST._replace(entities=(Entity("Ghost"),)), vectors_of(GHOST)),),
    "model": MODEL,
    "cache": {"77" * 16: [vector("ghost")]},
}


def change_to(which: str, **fields) -> Change:
    return Change(which, "update", fields)


TWIN = {"content": "a thing", "content_hash": content_hash("a thing")}
TAKEN = Entry(make("twin", id="taken"))
# What goes wrong after other parts of the batch went in, by the ids of known memories.
FAILING = {
    "an unknown id": lambda known: {
        "change": (change_to(known[1], importance=1.0), change_to("x"))
    },
    "a fixed field": lambda known: {"purge": known[:1], "change": (change_to(known[1], id="x"),)},
    "no text": lambda known: {"access": known[:1], "change": (change_to(known[1], kind="\udcff"),)},
    "a taken id": lambda known: {"add": (*ADDING["add"], TAKEN, TAKEN._replace(unique=False))},
    "no vector": lambda known: {"add": (*ADDING["add"], Entry(make("another"), ["none"]))},
    "a vector of another size": lambda known: {
        "add": (*ADDING["add"], Entry(make("another"), [vector("another")[:8]]))
    },
    "a twin": lambda known: {"keep": tuple(known), "change": (change_to(known[3], **TWIN),)},
}


@pytest.mark.parametrize("batch", FAILING.values(), ids=FAILING)
def test_a_batch_that_fails_half_way_changes_nothing_at_all(backend, store, batch):
    known = tell(store, "an owl", "redis text", "a thing", "fourth of a kind", source="kept")
    write(store, relate=(Relation(known[0].id, known[1].id, "builds_on"),))
    before = snapshot(store)
    with pytest.raises((BethinkError, ValueError)):
        write(store, **ADDING | batch([memory.id for memory in known]))
    assert snapshot(store) == snapshot(backend.open()) == before
    assert store.check(deep=True) == []
    assert put(store, make("an owl that may stay")).added == 1


def test_a_purge_takes_the_title_of_its_session(store):
    uri, state = "/t/a.jsonl", {"turns": 1, "scope": HERE, "open": {"asked": "a vector"}}
    said = make("Kumquats for lunch", source=uri, source_type="transcript", session="s1")
    metadata = {"sessions": {"s1": state, "s2": state}, "host": "claude"}
    source = Source(uri, "transcript", position=7, metadata=metadata)
    talk = Session("s1", HERE, "claude", "Lunch", uri)
    put(store, said, unique=False, sessions=(talk,), sources=((HERE, source),))
    purge(store, said)
    assert store.list(everything()) == []
    (session,) = store.sessions((HERE,))
    assert (session.title, session.source) == ("", uri)
    left = source_of(store, HERE, uri)
    assert left.position == 7
    assert left.metadata["sessions"] == {"s1": {"turns": 1, "scope": HERE}, "s2": state}
    write(store, vanish=((HERE, uri),))
    assert store.sessions((HERE,))[0].source == uri


def test_a_purge_takes_names_that_nothing_else_mentions(store):
    bird, marsupial = Entity("Zebrafinch"), Entity("Quokka")
    memory = make("Owls", entities=(bird, marsupial))
    put(store, memory, make("Mice", entities=(marsupial,)))
    change(store, memory.id, entities=())
    purge(store, memory)
    assert store.column("SELECT name FROM entities") == ["Quokka"]


def test_a_purge_takes_cached_vectors_of_every_version(store):
    text, edited, other = "the secret plan", "the secret plan of May", "something else"
    under = [f"{heading}\n{each}" for heading in ("Old", "New") for each in (text, edited)]
    every = {each: hash_text(each) for each in (text, edited, *under, other)}

    def cached() -> set[str]:
        found = store.read_cache(list(every.values()), MODEL)
        return {each for each, key in every.items() if key in found}

    memory = make(text, section="Old", **PAGE)
    put(store, memory)
    cache = {key.hex(): [vector(each)] for each, key in every.items()}
    write(store, model=MODEL, cache=cache)
    change(store, memory.id, "reread", section="New")
    edit(store, memory, edited)
    assert cached() == set(every)
    purge(store, memory)
    assert cached() == {other}


@pytest.mark.parametrize("end", ["purge", "reset", "gone"])
def test_removing_a_memory_undoes_what_it_replaced_or_answered(store, end):
    (old,) = tell(store, "We use MySQL")
    open_, twice = tell(store, "Which queue?", "Which cache?", kind="question")
    (new,) = tell(store, "We use PostgreSQL", scope=OTHER, created_at=day(4))
    (other,) = tell(store, "Redis it is")
    replace(store, new, old, day(4))
    for answer, asked in ((new, open_), (new, twice), (other, twice)):
        answered = (Change(asked.id, "answer", {"answered": True}),)
        write(store, change=answered, relate=(Relation(answer.id, asked.id, "answers"),))
    if end == "purge":
        purge(store, new)
    elif end == "reset":
        assert store.reset([OTHER]) == 1
    else:
        assert store.take(Bundle(gone=(new.id,))) == ()
    assert store.get([new.id]) == store.relations([new.id]) == []
    back, unanswered, answered = store.get([old.id, open_.id, twice.id])
    assert (back.superseded_by, back.valid_to) == (None, None)
    assert (unanswered.answered, answered.answered) == (False, True)
    assert ids(store.list(seen())) == ids([old, open_, twice, other])
    assert store.history(old.id)[-1].action == "restore"


def test_what_two_replaced_goes_back_to_the_other_when_one_is_purged(store):
    old, new, newest = (make(f"{at}", created_at=day(at)) for at in (1, 4, 5))
    put(store, old, new, newest)
    replace(store, new, old, day(4))
    for each in (old, new):
        replace(store, newest, each, day(5))
    purge(store, newest)
    assert ids(store.list(seen())) == {new.id}
    (back,) = store.get([old.id])
    assert (back.superseded_by, back.valid_to) == (new.id, day(4))
    purge(store, new)
    assert ids(store.list(seen())) == {old.id}


@pytest.fixture
def pair(store):
    """An older and a newer statement about the same thing, of which the newer one may replace the older."""
    old = make("The API is at http://shop.example", created_at=day(1))
    new = make("The API is at https://shop.example", created_at=day(2))
    put(store, old, new, relate=(Relation(new.id, old.id, "may_replace"),))
    return old, new


def read_newer(store, memory):
    return store.get([memory.id])[0].newer


def test_a_memory_names_what_is_newer(store, pair):
    old, new = pair
    assert (read_newer(store, old), read_newer(store, new)) == ((new.id,), ())


def test_every_read_names_what_is_newer(store, pair):
    old, new = pair
    listed = {one.id: one.newer for one in store.list(seen(), 10)}
    assert listed == {old.id: (new.id,), new.id: ()}


def test_several_that_are_newer_are_named_in_the_order_of_their_ids(store, pair):
    old, new = pair
    newest = make("The API is at https://shop.example/v2", created_at=day(3))
    put(store, newest, relate=(Relation(newest.id, old.id, "may_replace"),))
    assert read_newer(store, old) == tuple(sorted((new.id, newest.id)))


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda store, new: forget(store, new), id="forgotten"),
        pytest.param(lambda store, new: purge(store, new), id="purged"),
        pytest.param(
            lambda store, new: replace(store, tell(store, "It has no API")[0], new), id="replaced"
        ),
    ],
)
def test_what_is_gone_is_not_newer(store, pair, end):
    old, new = pair
    end(store, new)
    assert read_newer(store, old) == ()


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"trust": 1, "created_at": day(3)}, id="less-trusted"),
        pytest.param({"trust": 3, "created_at": day(1) - timedelta(days=1)}, id="older"),
    ],
)
def test_what_is_less_trusted_or_older_is_not_newer(store, fields):
    (old,) = tell(store, "The API is at http://shop.example")
    other = make("The API is at ftp://shop.example", **fields)
    put(store, other, relate=(Relation(other.id, old.id, "may_replace"),))
    assert read_newer(store, old) == ()


def test_a_repetition_is_only_kept_in_the_history(store):
    (memory,) = tell(store, "Only Ines restores backups")
    before = store.get([memory.id])
    change(store, memory.id, "repeat", content="Backups are restored by Ines only")
    assert store.get([memory.id]) == before
    repeated = [event for event in store.history(memory.id) if event.action == "repeat"]
    assert [event.after for event in repeated] == [{"content": "Backups are restored by Ines only"}]


def test_other_words_are_kept_once(store):
    (memory,) = tell(store, "Only Ines restores backups")
    for _ in range(2):
        change(store, memory.id, "repeat", content="Backups are restored by Ines only")
    assert [event.action for event in store.history(memory.id)].count("repeat") == 1
