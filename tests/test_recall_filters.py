"""Filters hold for everything that comes back, related memories included, whichever way memory is asked."""

import contextlib
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from http_server import V1, body, home_at, running
from memories import use_tool
from stores import make, put, write

from bethink import Bethink
from bethink.app.cli.main import main
from bethink.model import RELATIONS, Change, Entity, Relation, Session

BEFORE, MADE, LATER = (datetime(2026, 3, day, 12, tzinfo=UTC) for day in (1, 10, 20))
WANTED, UNWANTED = "heron {} stays by the lake", "forbidden note about {}"


class Case(NamedTuple):
    """A filter as each surface takes it, what passes it and what does not."""

    options: dict[str, Any]  # of the command line and of HTTP
    tool: dict[str, Any] | None  # of MCP; None where the tool does not have it
    good: dict[str, Any]
    bad: dict[str, Any]


SESSIONS = ("one", "two")
CASES = {
    "kind": Case({"kind": "fact"}, {"kinds": ["fact"]}, {"kind": "fact"}, {"kind": "problem"}),
    "tag": Case({"tag": "lake"}, {"tags": ["lake"]}, {"tags": ("lake",)}, {"tags": ("sea",)}),
    "entity": Case(
        {"entity": "Redis"},
        {"entities": ["Redis"]},
        {"entities": (Entity("Redis", "technology"),)},
        {"entities": (Entity("Valkey", "technology"),)},
    ),
    "importance": Case(
        {"min_importance": "7"}, {"min_importance": 7}, {"importance": 8.0}, {"importance": 3.0}
    ),
    "since": Case({"since": "2026-03-05"}, {"since": "2026-03-05"}, {}, {"created_at": BEFORE}),
    "until": Case({"until": "2026-03-15"}, None, {}, {"created_at": LATER}),
    "expiry": Case({}, {}, {}, {"expires_at": LATER}),
    "session": Case(
        {"session": "session-one"},
        {"session": "session-one"},
        {"session": "session-one"},
        {"session": "session-two"},
    ),
    "host": Case({"host": "claude"}, None, {"session": "host-one"}, {"session": "host-two"}),
    "scope": Case({}, {}, {}, {"scope": "project:elsewhere"}),
    "forgotten": Case({}, {}, {}, {"deleted_at": LATER}),
    "quarantined": Case({}, {}, {}, {"trust": 0}),
}


class World(NamedTuple):
    memories: dict[str, Bethink]  # a container for each filter
    http: Any
    folder: Any


def subject(name: str) -> str:
    """The words by which the memories of a case are found."""
    return f"heron {name}word"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """One database under every surface. Of each filter a memory that passes, and for each relation one at either end that does not."""
    folder = tmp_path_factory.mktemp("filters")
    (folder / "shop").mkdir()
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(home_at(folder))
        served = stack.enter_context(running(home, folder / "shop"))
        memories = {}
        for name, case in CASES.items():
            opened = Bethink(directory=folder / "shop", container=name)
            memories[name] = stack.enter_context(opened)
            tell(memories[name], name, case)
            memories[name].reindex()
        yield World(memories, served.owner, folder)


def tell(memory: Bethink, name: str, case: Case) -> None:
    hosts = zip(SESSIONS, ("claude", "codex"), strict=True)
    started = {"started_at": MADE, "ended_at": MADE}
    sessions = tuple(Session(f"{name}-{id}", memory.scope, host, **started) for id, host in hosts)
    names = {**memory.names_of(memory.scope), "project:elsewhere": ("other", "")}
    write(memory.store, scopes=names, sessions=sessions)
    usual = {"scope": memory.scope, "created_at": MADE, "trust": 2}
    text = WANTED.format(f"{name}word")
    good = make(text, summary=text, **usual | case.good)
    usual |= {"created_at": MADE + timedelta(days=1), "trust": 3}
    put(memory.store, good, embed=False, unique=False)
    for type in RELATIONS:
        for out in (True, False):
            # Half of them are found by the question itself, too.
            about = subject(name) if out else "something else"
            text = f"{UNWANTED.format(about)}, {type} {'out' if out else 'in'}"
            bad = make(text, summary=text, **{**usual, **case.good, **case.bad})
            ends = (good.id, bad.id) if out else (bad.id, good.id)
            put(memory.store, bad, embed=False, unique=False, relate=(Relation(*ends, type),))


def run_cli(world: World, name: str, *words: str) -> str:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(io.StringIO()):
        code = main([*words, "--project", str(world.folder / "shop"), "--container", name])
    assert code == 0
    return shown.getvalue()


def flags(case: Case) -> list[str]:
    return [
        word
        for name, value in case.options.items()
        for word in (f"--{name.replace('_', '-')}", value)
    ]


def ask_python(world, name, case):
    from bethink.app.operations.find import build_filter
    from bethink.app.operations.requests import Filters
    from bethink.recall.shape import plain_hit

    lists = {"kind": "kinds", "tag": "tags", "entity": "entities", "host": "hosts"}
    given = {
        lists.get(one, one): (value,) if one in lists else value
        for one, value in case.options.items()
    }
    if "min_importance" in given:
        given["min_importance"] = float(given["min_importance"])
    wanted = build_filter(world.memories[name], Filters(**given))
    hits = world.memories[name].search(subject(name), filter=wanted).hits
    return json.dumps([plain_hit(hit) for hit in hits])


def ask_search(world, name, case):
    return run_cli(world, name, "search", subject(name), "--json", *flags(case))


def ask_recall(world, name, case):
    return run_cli(world, name, "recall", subject(name), "--max-tokens", "4000", *flags(case))


def ask_list(world, name, case):
    return run_cli(world, name, "list", "--all", *flags(case))


def ask_http(world, name, case):
    asked = {"query": subject(name), **case.options, "container": name}
    return json.dumps(body(world.http.get(f"{V1}/search", params=asked)))


def ask_http_recall(world, name, case):
    asked = {"query": subject(name), **case.options, "container": name, "max_tokens": 4000}
    return json.dumps(body(world.http.get(f"{V1}/recall", params=asked)))


def ask_http_list(world, name, case):
    asked = {**case.options, "container": name, "limit": 100}
    return json.dumps(body(world.http.get(f"{V1}/memories", params=asked)))


def ask_tool(world, name, case):
    asked = {"query": subject(name), **case.tool, "max_tokens": 4000, "limit": 50}
    return use_tool(world.memories[name], "search_memories", **asked)


def ask_tool_list(world, name, case):
    return use_tool(
        world.memories[name], "search_memories", **case.tool, max_tokens=20000, limit=50
    )


SURFACES = {
    "python": ask_python,
    "search": ask_search,
    "recall": ask_recall,
    "list": ask_list,
    "http search": ask_http,
    "http recall": ask_http_recall,
    "http list": ask_http_list,
    "search_memories": ask_tool,
    "search_memories without a query": ask_tool_list,
}
ALL = [
    pytest.param(filter, surface, id=f"{filter}, {surface}")
    for filter, case in CASES.items()
    for surface in SURFACES
    if case.tool is not None or "search_memories" not in surface
]


@pytest.mark.parametrize(("filter", "surface"), ALL)
def test_nothing_that_a_filter_leaves_out_comes_back(world, filter, surface):
    shown = SURFACES[surface](world, filter, CASES[filter])
    assert f"heron {filter}word" in shown
    assert "forbidden" not in shown


@pytest.mark.parametrize("surface", ["python", "search", "http search"])
def test_without_the_filter_the_related_ones_come_back(world, surface):
    shown = SURFACES[surface](world, "kind", CASES["kind"]._replace(options={}))
    related = {f"{type} {end}" for type in RELATIONS for end in ("out", "in")}
    assert {one for one in related if one in shown} == related


@pytest.fixture
def memory(open_memory, clock):
    memory = open_memory()
    memory.clock = clock
    return memory


def replace(memory, clock, old, new, **values):
    first = memory.add(old, **values).id
    clock.move(days=1)
    return first, memory.add(new, kind="fact", supersedes=[first]).id


def test_a_replaced_memory_is_shown_under_its_successor(memory, clock):
    old, new = replace(memory, clock, "The heron eats frogs", "The heron eats fish", kind="fact")
    (hit,) = memory.search("what does the heron eat?").hits
    assert hit.memory.id == new
    assert [(relation.type, other.id) for relation, other in hit.related] == [("supersedes", old)]


def test_a_replaced_memory_of_another_kind_is_not_shown_where_a_kind_is_asked_for(memory, clock):
    replace(memory, clock, "The heron eats frogs", "The heron eats fish", kind="problem")
    (hit,) = memory.search("heron", filter=memory.filter(kinds=("fact",))).hits
    assert hit.related == ()


@pytest.mark.parametrize("included", [True, False])
def test_a_replaced_memory_that_expired_is_shown_only_if_expired_ones_are_asked_for(
    memory, clock, included
):
    expires = {"expires_at": clock() + timedelta(hours=1)}
    replace(memory, clock, "The heron eats frogs", "The heron eats fish", kind="fact", **expires)
    wanted = memory.filter(include_expired=included)
    (hit,) = memory.search("heron fish", filter=wanted).hits
    assert len(hit.related) == included


def test_a_successor_that_a_filter_leaves_out_does_not_stand_in_for_what_it_replaced(memory, clock):
    old, _ = replace(memory, clock, "The heron eats frogs", "Fish is eaten", kind="decision")
    assert memory.search("heron frogs", filter=memory.filter(kinds=("decision",))).hits == ()
    seen = memory.filter(kinds=("decision",), include_superseded=True)
    assert [hit.memory.id for hit in memory.search("heron frogs", filter=seen).hits] == [old]


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("kind:decision heron", id="by kind"),
        pytest.param("tags:lake", id="by tag"),
        pytest.param("heron NOT fish", id="by excluded word"),
    ],
)
def test_what_the_syntax_of_a_question_leaves_out_does_not_join_the_hits(memory, clock, question):
    old = memory.add("The heron eats frogs", kind="decision", tags=["lake"]).id
    clock.move(days=1)
    new = memory.add("The heron eats fish", kind="fact", dedup=False).id
    memory.link(new, old, "may_replace")
    assert [hit.memory.id for hit in memory.search(question).hits] == [old]


def chain(memory, clock, *texts, relation="may_replace"):
    """Statements, each linked to the one before it."""
    ids = []
    for text in texts:
        ids.append(memory.add(text, kind="fact", dedup=False).id)
        clock.move(days=1)
    for new, old in zip(ids[1:], ids, strict=False):
        memory.link(new, old, relation)
    return ids


def found(memory, question, **how):
    return [hit.memory.id for hit in memory.search(question, **how).hits]


@pytest.mark.parametrize("relation", ["may_replace", "contradicts"])
def test_a_newer_statement_comes_directly_before_the_older_one(memory, clock, relation):
    other = memory.add("The heron sleeps on one leg in the reeds", kind="fact").id
    texts = ("The heron eats frogs in the morning", "The heron eats fish in the morning now")
    old, new = chain(memory, clock, *texts, relation=relation)
    order = found(memory, "does the heron eat frogs in the morning?")
    assert order.index(new) + 1 == order.index(old)
    assert other in order


def test_a_newer_statement_about_something_else_stays_where_it_is(memory, clock):
    texts = ("The heron eats frogs in the morning", "Boats need a licence")
    old, _ = chain(memory, clock, *texts)
    order = found(memory, "does the heron eat frogs in the morning?")
    assert order[0] == old


def test_a_newer_statement_that_was_not_found_does_not_join_the_hits(memory, clock):
    old, _ = chain(memory, clock, "The heron eats frogs", "Fish is eaten")
    assert found(memory, "heron frogs", mode="keyword") == [old]


def test_the_older_statement_names_the_newer_one_that_was_not_found(memory, clock):
    _, new = chain(memory, clock, "The heron eats frogs", "Fish is eaten")
    (hit,) = memory.search("heron frogs", mode="keyword").hits
    assert hit.memory.newer == (new,)


def test_two_newer_statements_at_most_come_before_one(memory, clock):
    old = memory.add("The heron eats frogs in the morning", kind="fact").id
    for food in ("eels", "snails", "newts", "mice"):
        clock.move(days=1)
        new = memory.add(f"The heron eats {food} in the morning", kind="fact", dedup=False).id
        memory.link(new, old, "may_replace")
    assert found(memory, "does the heron eat frogs in the morning?").index(old) == 2


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_pages_hold_each_hit_once(memory, clock, limit):
    told = [memory.add(f"Heron number {number} eats frogs", dedup=False).id for number in range(5)]
    for at in (1, 3):
        clock.move(days=1)
        new = memory.add(f"Heron number {at} eats no frogs", dedup=False).id
        memory.link(new, told[at], "may_replace")
        told.append(new)
    pages = []
    while page := memory.search("heron frogs", limit=limit, offset=len(pages), mode="keyword").hits:
        assert len(page) <= limit
        pages += [hit.memory.id for hit in page]
    assert sorted(pages) == sorted(told)


def test_an_expired_newer_statement_leaves_the_older_one_alone(memory, clock):
    old, new = chain(memory, clock, "The heron eats frogs", "Fish is eaten")
    expires = Change(new, "update", {"expires_at": clock() + timedelta(hours=1)})
    memory.write(change=(expires,))
    clock.move(days=1)
    assert found(memory, "heron frogs") == [old]


def test_pages_hold_each_hit_once_where_a_newer_statement_is_found_far_below(memory, clock):
    told = [memory.add(f"Heron {at} eats frogs at the lake", dedup=False).id for at in range(32)]
    clock.move(days=1)
    for at in range(3):
        text = f"Heron {at} eats frogs at the lake, " + "by boat"
        told.append(memory.add(text, dedup=False).id)
    for new, old in zip(told[-3:], found(memory, "heron frogs lake", limit=3), strict=True):
        memory.link(new, old, "may_replace")
    pages = []
    while page := found(memory, "heron frogs lake", limit=10, offset=len(pages)):
        pages += page
    assert sorted(pages) == sorted(told)
