"""The contract of one scope going over to another: whole, joined with what is there, and seen by every process. PostgreSQL refuses."""

from __future__ import annotations

import pytest
from stores import (
    HERE,
    MODEL,
    NOW,
    OTHER,
    by_meaning,
    by_words,
    change,
    day,
    everything,
    ids,
    make,
    put,
    seen,
    snapshot,
    vector,
)

from bethink.errors import InvalidInput
from bethink.recall.query import parse
from bethink.types import Batch, Entity, Entry, Filter, Relation, Session, Source, Span, Words

BOX, NEW_BOX = "container:other/routers", "container:here/routers"
ADOPT = ((OTHER, HERE), (BOX, NEW_BOX))
NAMES = {HERE: ("shop", "/new/shop", "remote:1"), NEW_BOX: ("shop/routers", "/new/shop")}


by_path = pytest.mark.parametrize(
    "backend", ["sqlite"], indirect=True
)  # whose projects are known by their paths


def adopt(store, pairs=ADOPT):
    return store.write(Batch(at=NOW, adopt=pairs, scopes=NAMES))


def fill(store):
    """A project with something of everything, in OTHER."""
    known = {
        "redis": make(
            "Sessions are kept in Redis",
            scope=OTHER,
            entities=(Entity("Redis", "technology"),),
            tags=("cache",),
        ),
        "owls": make("Barn owls hunt at night", scope=OTHER),
        "gone": make("Nobody wants this", scope=OTHER),
        "old": make("We deploy on Fridays", scope=OTHER),
        "guide": make(
            "The guide says lint first", scope=OTHER, source="docs/guide.md", source_type="markdown"
        ),
        "box": make("Routes are lazy in the router", scope=BOX),
        "turn": make(
            "Which owl is it?",
            scope=OTHER,
            kind="context",
            source="/t/a.jsonl",
            source_type="transcript",
            session="s1",
            span="t1",
        ),
    }
    names = {OTHER: ("shop", "/old/shop", "remote:1 made:2"), BOX: ("shop/routers", "/old/shop")}
    put(store, *(one for name, one in known.items() if name != "turn"), scopes=names)
    states = {"position": {"offset": 9}, "sessions": {"s1": {"scope": OTHER}}}
    store.write(
        Batch(
            at=NOW,
            sources=(
                (OTHER, Source("/t/a.jsonl", "transcript", position=9, metadata=states)),
                (OTHER, Source("docs/guide.md", "markdown", "h1")),
            ),
            sessions=(Session("s1", OTHER, "claude", "Owls", "/t/a.jsonl", day(1), day(2)),),
            spans=(
                (
                    Span("t1", OTHER, "s1", None, "Owls at night", "barn owls", (1, 9), 0, day(1)),
                    [vector("owls at night")],
                ),
            ),
            add=(Entry(known["turn"], [vector(known["turn"].content)], False, b"turn-1"),),
            model=MODEL,
        )
    )
    change(store, known["gone"].id, "forget", deleted_at=NOW)
    change(store, known["old"].id, superseded_by=known["redis"].id, valid_to=day(5))
    store.write(
        Batch(at=NOW, relate=(Relation(known["redis"].id, known["owls"].id, "relates_to"),))
    )
    return known


def topics(store, *scopes):
    words = {id for id, _ in store.keyword_spans(parse("owls", NOW), scopes, 10)}
    assert words == {
        id for id, _ in store.nearest_spans(vector("owls at night"), MODEL, scopes, 10)
    }
    return words


def all_is_there(store, known):
    """Everything of the old scope is found in the new one by every way, and by none in the old one."""
    project = {one.id for name, one in known.items() if name != "box"}
    assert project <= ids(store.scan(everything(HERE))) and known["box"].id in ids(
        store.scan(everything(NEW_BOX))
    )
    assert list(store.scan(everything(OTHER, BOX))) == []
    assert by_words(store, "redis")[0] == known["redis"].id == by_words(store, "cache")[0]
    assert (
        by_words(store, "lazy", seen(NEW_BOX))
        == by_meaning(store, known["box"].content, seen(NEW_BOX), 1)
        == [known["box"].id]
    )
    assert by_meaning(store, "Barn owls hunt at night")[0] == known["owls"].id
    assert (
        by_words(store, "redis owls", seen(OTHER, BOX))
        == by_meaning(store, "owls", seen(OTHER, BOX))
        == []
    )
    assert known["gone"].id not in by_words(store, "nobody wants") and known[
        "old"
    ].id not in by_words(store, "deploy fridays")
    assert [one.id for one in store.list(seen(entities=("Redis",)))] == [known["redis"].id]
    assert topics(store, HERE) == {"t1"} and topics(store, OTHER) == set()
    assert [one.id for one in store.sessions((HERE,))] == ["s1"] and store.sessions((OTHER,)) == []
    assert (
        store.known_turns(HERE, [b"turn-1"]) == {b"turn-1"}
        and store.known_turns(OTHER, [b"turn-1"]) == set()
    )
    home, transcript = store.find_source("/t/a.jsonl")
    assert home == HERE and transcript.metadata["sessions"] == {"s1": {"scope": HERE}}
    assert [one.source for one in store.relations([known["owls"].id])] == [known["redis"].id]
    assert [event.action for event in store.history(known["gone"].id)] == ["add", "forget"]
    assert store.check(deep=True) == []


@by_path
def test_a_scope_takes_the_place_of_one_that_is_not_there(backend, store):
    known = fill(store)
    before = store.statistics(Words(("owl", "redi")), (OTHER,))
    reader = backend.open()  # has looked at both before, as another process may
    assert by_meaning(reader, "owls", seen(OTHER)) and by_meaning(reader, "owls", seen(HERE)) == []
    assert adopt(store).changed == len(known)
    for one in (store, backend.open()):
        all_is_there(one, known)
        assert one.statistics(Words(("owl", "redi")), (HERE,)) == before
    assert (
        by_meaning(reader, "Barn owls hunt at night")[0] == known["owls"].id
        and by_words(reader, "redis")[0] == known["redis"].id
    )
    assert OTHER not in store.scopes() and BOX not in store.scopes()
    places = {key: (name, path) for key, name, path in store.export("scopes", "", 10)[0].scopes}
    assert places == {HERE: ("shop", "/new/shop"), NEW_BOX: ("shop/routers", "/new/shop")}
    assert (store.noted(f"origin:{HERE}"), store.noted(f"origin:{OTHER}")) == ("remote:1", None)
    assert store.noted("adopted:/old/shop") == HERE


@by_path
def test_a_scope_is_joined_with_one_that_holds_something(backend, store):
    known = fill(store)
    mine, boxed = make("Kiwis do not fly"), make("The router has guards", scope=NEW_BOX)
    put(store, mine, boxed)
    reader = backend.open()
    assert by_meaning(reader, "owls", seen(OTHER)) and by_meaning(reader, "Kiwis do not fly") == [
        mine.id
    ]
    assert adopt(store) == adopt(store)._replace(
        changed=len(known)
    )  # a second time there is nothing left to bring
    for one in (store, reader, backend.open()):
        all_is_there(one, known)
        assert (
            mine.id in by_words(one, "kiwis") and by_meaning(one, "Kiwis do not fly")[0] == mine.id
        )
        assert boxed.id in by_words(one, "guards", seen(NEW_BOX))
    counted = store.statistics(Words(("owl", "kiwi", "redi")), (HERE,))
    assert store.statistics(Words(("owl", "redi")), (OTHER,)).memories == 0
    store.rebuild()
    assert store.statistics(Words(("owl", "kiwi", "redi")), (HERE,)) == counted


@by_path
def test_what_both_were_told_stands_once_and_keeps_what_was_thought_of_it(backend, store):
    first, again = make("We deploy from main", scope=OTHER), make("We deploy from main")
    about, doubted = make("Releases are tagged"), make("We deploy on Fridays", scope=OTHER)
    told_anew = make("We deploy on Fridays")
    put(store, first, again, about, doubted, told_anew)
    change(store, doubted.id, superseded_by=first.id)
    change(store, first.id, "vote", vote=2)
    change(store, again.id, "vote", vote=3)
    store.write(
        Batch(at=NOW, relate=(Relation(about.id, again.id, "builds_on"),), access=(again.id,))
    )
    assert adopt(store).retired == 2
    # The first stays, since its id may stand in a rule; but not where it had been replaced and was told anew.
    assert ids(store.list(seen())) == {first.id, about.id, told_anew.id}
    (kept,) = store.get([first.id])
    assert (kept.usefulness, kept.access_count) == (5, 1)
    assert (about.id, first.id, "builds_on") in [one[:3] for one in store.relations([about.id])]
    (hidden,) = store.get([again.id])
    assert (
        hidden.superseded_by == first.id
        and hidden.deleted_at == NOW
        and store.history(again.id)[-1].action == "merge"
    )
    assert by_words(store, "deploy main")[0] == first.id
    assert store.check(deep=True) == []


@by_path
def test_a_document_that_both_read_stands_once_as_it_was_read_last(backend, store):
    def passage(text, scope, at, **more):
        return make(
            text,
            scope=scope,
            source="docs/a.md",
            source_type="markdown",
            section="A",
            position=at,
            lines=(at * 10 + 1, at * 10 + 5),
            **more,
        )

    same, changed, forgotten, linked = (
        passage(text, OTHER, at)
        for at, text in enumerate(("lint first", "old advice", "not this", "linked one"))
    )
    told = make("The guide is good", scope=OTHER, source="docs/a.md")
    put(
        store,
        same,
        changed,
        forgotten,
        linked,
        told,
        sources=((OTHER, Source("docs/a.md", "markdown", "h1")),),
    )
    change(store, forgotten.id, "forget", deleted_at=NOW)
    change(store, same.id, "vote", vote=2)
    store.write(Batch(at=NOW, relate=(Relation(told.id, linked.id, "relates_to"),)))
    intro, lint, fresh, back = (
        passage(text, HERE, at)
        for at, text in enumerate(("intro", "lint first", "new advice", "not this"))
    )
    put(store, intro, lint, fresh, back, sources=((HERE, Source("docs/a.md", "markdown", "h2")),))
    assert adopt(store).retired == 2
    assert ids(store.list(seen())) == {intro.id, same.id, fresh.id, told.id}
    assert store.get([changed.id, lint.id, back.id]) == []
    (kept,) = store.get([same.id])
    assert (kept.position, kept.lines, kept.usefulness) == (1, (11, 15), 2)
    assert store.get([linked.id])[0].deleted_at == NOW
    assert store.source(HERE, "docs/a.md").hash == "h2" and store.source(OTHER, "docs/a.md") is None
    assert [
        one.memory.id for one in store.held(HERE, "docs/a.md") if one.memory.deleted_at is None
    ] == [intro.id, same.id, fresh.id]
    assert store.check(deep=True) == []


@pytest.mark.parametrize(("there", "here"), [(90, 40), (40, 90)])
@by_path
def test_a_transcript_that_both_read_goes_on_from_where_it_was_read_furthest(
    backend, store, there, here
):
    for scope, position in ((OTHER, there), (HERE, here)):
        one = make(
            f"said to {position}",
            scope=scope,
            kind="context",
            source="/t/a.jsonl",
            source_type="transcript",
            session="s1",
        )
        source = Source(
            "/t/a.jsonl",
            "transcript",
            position=position,
            metadata={"sessions": {"s1": {"scope": scope}}},
        )
        store.write(
            Batch(
                at=NOW,
                sources=((scope, source),),
                add=(Entry(one, (), False, f"turn {position}".encode()),),
            )
        )
    adopt(store)
    home, source = store.find_source("/t/a.jsonl")
    assert (home, source.position, source.metadata) == (
        HERE,
        90,
        {"sessions": {"s1": {"scope": HERE}}},
    )
    assert len(store.held(HERE, "/t/a.jsonl")) == 2
    assert store.known_turns(HERE, [b"turn 40", b"turn 90"]) == {b"turn 40", b"turn 90"}


@by_path
def test_what_is_not_known_changes_nothing(backend, store):
    fill(store)
    before = snapshot(store)
    assert adopt(store, (("project:nowhere", HERE), (OTHER, OTHER))).changed == 0
    assert snapshot(store) == before


@by_path
def test_numbers_of_scopes_never_come_to_mean_another_project(backend, store):
    put(store, make("Kiwis do not fly"))
    put(store, make("Barn owls hunt at night", scope=OTHER))
    reader = backend.open()
    assert by_words(reader, "owls", seen(OTHER))
    adopt(store)
    put(store, make("A stranger's secret", scope="project:stranger"))
    assert reader.list(seen(OTHER)) == [] and by_words(reader, "secret", seen(OTHER)) == []


@pytest.mark.parametrize("backend", ["postgres"], indirect=True)
def test_a_team_knows_projects_by_name_and_refuses(store):
    put(store, make("Barn owls hunt at night", scope=OTHER))
    with pytest.raises(InvalidInput, match="by its name") as refused:
        adopt(store)
    assert refused.value.hint
    assert (
        store.count(Filter((OTHER,), now=NOW)) == 1 and store.count(Filter((HERE,), now=NOW)) == 0
    )
