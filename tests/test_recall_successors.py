"""A memory that was replaced leads to what replaced it: in one look, and without standing before what answers the question itself."""

from itertools import pairwise

import pytest
from memories import texts, use_tool
from stores import make, put, write

from bethink.model import Change, Filter, Relation
from bethink.store.base import Store

LENGTH = 200


def replace_in_a_row(store, scope, number):
    """A chain of memories, each replaced by the next. Returns their ids in order."""
    chain = [
        make(f"Handoff {at}: the heron census goes on at the lake", scope=scope)
        for at in range(number + 1)
    ]
    put(store, *chain, embed=False, unique=False)
    pairs = list(pairwise(chain))
    write(
        store,
        change=tuple(Change(old.id, "supersede", {"superseded_by": new.id}) for old, new in pairs),
        relate=tuple(Relation(new.id, old.id, "supersedes") for old, new in pairs),
    )
    return [one.id for one in chain]


def count_statements(memory, monkeypatch, question):
    """How many statements a search runs; the first search, which opens things, is not counted."""
    memory.search(question)
    ran = []
    run = type(memory.store).run

    def counted(self: Store, sql: str, *values):
        ran.append(sql)
        return run(self, sql, *values)

    with monkeypatch.context() as patch:
        patch.setattr(type(memory.store), "run", counted)
        answer = memory.search(question)
    return len(ran), answer


@pytest.fixture(params=["hashing", "none"])
def two(open_memory, tmp_path, request):
    """Two memories, each on a database of its own."""
    return [open_memory(request.param, database=tmp_path / f"{name}.db") for name in "ab"]


def count_with_chain(memory, monkeypatch, number):
    replace_in_a_row(memory.store, memory.scope, number)
    return count_statements(memory, monkeypatch, "heron census at the lake")


def test_the_length_of_a_chain_costs_a_search_no_statements(two, monkeypatch):
    lengths = (LENGTH, 2 * LENGTH)
    pairs = zip(two, lengths, strict=True)
    (short, _), (long, _) = [
        count_with_chain(memory, monkeypatch, number) for memory, number in pairs
    ]
    assert long == short


def test_a_chain_costs_a_search_less_than_a_second_look(two, monkeypatch):
    pairs = zip(two, (0, LENGTH), strict=True)
    (without, _), (with_chain, answer) = [
        count_with_chain(memory, monkeypatch, number) for memory, number in pairs
    ]
    assert with_chain <= 2 * without
    assert texts(answer) == [f"Handoff {LENGTH}: the heron census goes on at the lake"]


def test_a_chain_of_replaced_memories_does_not_crowd_out_what_else_holds_the_words(memory):
    kept = memory.add("A heron census needs two people and a boat at the lake").id
    replace_in_a_row(memory.store, memory.scope, LENGTH + 50)
    if memory.embedder:
        memory.reindex()
    assert kept in [hit.memory.id for hit in memory.search("heron census at the lake").hits]


def seen(**fields):
    return Filter(scopes=("project:here",), **fields)


def test_the_last_successors_of_many_memories_are_found(store):
    first = replace_in_a_row(store, "project:here", 5)
    second = replace_in_a_row(store, "project:here", 2)
    keys = store.keys([first[-1], second[-1]])
    ends = store.find_successors([first[0], first[3], second[1], second[2]])
    assert ends == {
        first[0]: keys[first[-1]],
        first[3]: keys[first[-1]],
        second[1]: keys[second[-1]],
        second[2]: keys[second[-1]],
    }


@pytest.mark.parametrize("ids", [[], ["01a1dd89-0000-7000-8000-000000000000"]])
def test_no_successor_is_found_where_there_is_no_memory(store, ids):
    assert store.find_successors(ids) == {}


def test_relations_are_traced_back_through_what_was_replaced(store):
    ids = replace_in_a_row(store, "project:here", 5)
    beside = make("Herons nest in trees", scope="project:here")
    put(store, beside, relate=(Relation(beside.id, ids[-1], "builds_on"),))
    traced = [(one.source, one.target) for one in store.trace_relations([ids[-1]], 3)]
    chain = [(ids[5], ids[4]), (ids[4], ids[3]), (ids[3], ids[2])]
    assert sorted(traced) == sorted([*chain, (beside.id, ids[-1])])


def test_memories_are_selected_by_id_under_a_filter(store):
    wanted, other = make("Herons nest", kind="fact"), make("Herons fly", kind="decision")
    put(store, wanted, other)
    found = store.select([wanted.id, other.id], seen(kinds=("fact",)))
    assert list(found) == [wanted.id]
    assert store.select([], seen()) == {}


# Whose evidence counts


@pytest.fixture
def replaced(memory, clock):
    """Notes of which one was replaced by a note about something else that it said."""
    old = memory.add(
        "The session store is Redis; Priya owns the OpenAPI export", kind="decision", dedup=False
    ).id
    clock.move(days=1)
    for text in (
        "Invoices go out on Monday",
        "The OpenAPI export of the catalogue belongs to Priya",
        "Backups are kept for thirty days",
    ):
        memory.add(text, kind="fact", dedup=False)
    clock.move(days=1)
    memory.add("Sessions live in Valkey", kind="decision", supersedes=[old], dedup=False)
    return memory


def test_a_question_is_answered_by_its_note_before_a_successor(replaced):
    found = texts(replaced.search("who owns the OpenAPI export?"))
    assert found[0] == "The OpenAPI export of the catalogue belongs to Priya"


@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
def test_a_question_about_the_old_value_gets_the_current_one_first(memory, clock, mode):
    for text in ("Invoices go out on Monday", "Backups are kept for thirty days"):
        memory.add(text, kind="fact")
    old = memory.add("We use MySQL for the orders", kind="decision").id
    clock.move(days=1)
    memory.add("Everything moved to PostgreSQL", kind="decision", supersedes=[old], dedup=False)
    assert (
        texts(memory.search("do we use MySQL?", mode=mode))[0] == "Everything moved to PostgreSQL"
    )


def test_a_successor_says_how_much_it_inherited(memory, clock):
    old = memory.add("We use MySQL for the orders", kind="decision").id
    clock.move(days=1)
    memory.add("Everything moved to PostgreSQL", kind="decision", supersedes=[old], dedup=False)
    (hit,) = memory.search("do we use MySQL?", mode="keyword").hits
    assert hit.why["inherited"] > 0


def test_an_answer_comes_before_the_question_that_it_answers(memory, clock):
    asked = memory.add("Which bird is counted at the lake in May?", kind="question").id
    clock.move(days=1)
    answer = memory.add("Herons", kind="fact", dedup=False).id
    memory.link(answer, asked, "answers")
    order = [hit.memory.id for hit in memory.search("which bird is counted at the lake?").hits]
    assert order[:2] == [answer, asked]


# What is open

ASKED = [
    pytest.param("what is left to do?", id="left to do"),
    pytest.param("open questions?", id="open questions"),
    pytest.param("what is still open?", id="still open"),
]


@pytest.fixture
def settled(memory):
    """A project in which everything is done."""
    memory.add("We deploy on Fridays", kind="decision")
    memory.update(memory.add("Write the deploy guide", kind="todo").id, answered=True)
    memory.update(memory.add("Who writes the deploy guide?", kind="question").id, answered=True)
    return memory


@pytest.mark.parametrize("question", ASKED)
def test_where_nothing_is_open_the_answer_says_so(settled, question):
    answer = settled.search(question)
    assert (answer.hits, answer.total, answer.hints) == ((), 0, ("Nothing is open.",))


@pytest.mark.parametrize("question", ASKED)
def test_where_nothing_is_open_the_tool_says_so(settled, question):
    assert use_tool(settled, "search_memories", query=question) == "Nothing is open."


@pytest.mark.parametrize("command", ["search", "recall"])
@pytest.mark.parametrize("question", ASKED)
def test_where_nothing_is_open_a_command_says_so(cli, command, question):
    cli.add("We deploy on Fridays", "--kind", "decision")
    todo = cli.add("Write the deploy guide", "--kind", "todo")
    cli.ok("link", cli.add("The guide is written", "--kind", "fact"), "answers", todo)
    result = cli(command, question)
    assert (result.code, result.out, result.err) == (0, "", "Nothing is open.\n")


def test_where_only_other_things_are_open_the_answer_names_the_kind(settled):
    settled.add("Write the release notes", kind="todo")
    assert settled.search("open questions?").hints == ("No question is open.",)


@pytest.mark.parametrize("kind", ["todo", "question", "problem"])
def test_what_is_left_is_every_open_item(settled, kind):
    settled.add("The release notes lack a date", kind=kind)
    assert texts(settled.search("what is left to do?")) == ["The release notes lack a date"]


def test_a_settled_question_for_a_subject_gets_no_unrelated_hits(settled):
    assert settled.search("open questions about the deploy guide").hits == ()
