"""`undo` takes back the last change, whatever it was, and again goes further back."""

import pytest

from bethink import Bethink
from bethink.errors import InvalidInput

OLD = "We use PostgreSQL for billing"
NEW = "We moved billing from PostgreSQL to CockroachDB"


def texts(cli):
    return {one["content"] for one in cli.json("list")}


def test_an_added_note_is_removed(cli):
    cli.add(OLD)
    assert cli.ok("undo").startswith("removed ")
    assert texts(cli) == set()


def test_what_a_note_replaced_is_valid_again(cli):
    old = cli.add(OLD)
    cli.add(NEW, "--supersedes", old)
    cli.ok("undo")
    assert texts(cli) == {OLD}


def test_the_relation_of_a_removed_note_is_gone(cli):
    old = cli.add(OLD)
    cli.add(NEW, "--supersedes", old)
    cli.ok("undo")
    assert "supersedes" not in cli.ok("get", old)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        pytest.param(("update", "--content", "We use MySQL"), "changed back", id="text"),
        pytest.param(("update", "--importance", "9"), "changed back", id="field"),
        pytest.param(("update", "--tag", "db,money"), "changed back", id="tags"),
        pytest.param(("update", "--entity", "person:Ada"), "changed back", id="entities"),
        pytest.param(("forget",), "restored", id="forgotten"),
        pytest.param(("vote", "5"), "changed back", id="vote"),
    ],
)
def test_a_changed_memory_is_as_it_was(cli, change, word):
    def read():
        changing = {"updated_at", "last_accessed", "access_count", "history"}
        [one] = cli.json("get", id)
        return {name: value for name, value in one.items() if name not in changing}

    id = cli.add(OLD, "--entity", "tool:PostgreSQL")
    before = read()
    name, *options = change
    cli.ok(name, id, *options)
    assert cli.ok("undo").startswith(f"{word} ")
    assert read() == before


def test_an_undone_text_is_found_by_its_words_again(cli):
    id = cli.add(OLD)
    cli.ok("update", id, "--content", "The harbour opens at nine")
    cli.ok("undo")
    assert [one["id"] for one in cli.json("search", "billing", "--mode", "keyword")] == [id]


def test_a_closed_todo_is_reopened(cli):
    id = cli.add("Buy milk", "--kind", "todo")
    cli.ok("done", id)
    assert cli.ok("undo").startswith("reopened ")


def test_undo_again_goes_one_change_further_back(cli):
    cli.add("The first note is about tea")
    cli.add("A second one tells of harbours")
    cli.ok("undo")
    cli.ok("undo")
    assert texts(cli) == set()


def test_an_undone_change_is_not_undone_twice(cli):
    cli.add("The first note is about tea")
    cli.add("A second one tells of harbours")
    cli.ok("undo")
    cli.add("The third is about ladders")
    cli.ok("undo")
    cli.ok("undo")
    assert texts(cli) == set()


def test_without_a_change_undo_says_so(cli):
    cli.ok("stats")
    assert "There is no change to undo" in cli.fails("undo", code=2)


def test_an_index_is_not_undone(cli):
    cli.add(OLD)
    (cli.project / "docs").mkdir()
    (cli.project / "docs" / "a.md").write_text("# Ports\n\nThe harbour opens at nine each day.\n")
    cli.ok("index")
    cli.ok("undo")
    assert {one["source"] for one in cli.json("list")} & {"note:user"} == set()


def test_a_change_of_an_agent_is_not_undone_by_a_person(cli):
    with Bethink(directory=cli.project, actor="agent:claude") as agent:
        agent.add("The tests need a running server")
    assert "There is no change to undo" in cli.fails("undo", code=2)


def test_a_memory_that_an_agent_changed_since_stays(cli):
    id = cli.add(OLD)
    cli.ok("vote", id, "3")
    with Bethink(directory=cli.project, actor="agent:claude") as agent:
        agent.vote(id, 1)
    assert "was changed again since, by agent:claude" in cli.fails("undo", code=2)


def test_an_agent_undoes_its_own_change_in_python(cli):
    cli.add(OLD)
    with Bethink(directory=cli.project, actor="agent:claude") as agent:
        agent.add("The tests need a running server")
        agent.undo()
        with pytest.raises(InvalidInput):
            agent.undo()
    assert texts(cli) == {OLD}


def test_many_changes_are_undone_only_when_agreed(cli):
    with Bethink(directory=cli.project) as memory:
        from bethink.model import Passage

        memory.add_many(
            [Passage(f"Port {number} is for tenant {number}") for number in range(25)], dedup=False
        )
    cli.fails("undo", code=2)
    cli.ok("undo", "--yes")
    assert texts(cli) == set()
