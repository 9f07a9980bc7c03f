"""`undo` takes back the last change, whatever it was, and again goes further back."""

import pytest
from transcripts import transcript

from bethink import Bethink
from bethink.errors import InvalidInput, Overtaken
from bethink.ingest import undo

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


def test_two_edits_of_one_field_are_undone_one_after_the_other(cli):
    id = cli.add(OLD, "--importance", "5")
    cli.ok("update", id, "--importance", "9")
    cli.ok("update", id, "--importance", "3")
    cli.ok("undo")
    cli.ok("undo")
    assert cli.json("get", id)[0]["importance"] == 5


def test_what_a_link_replaced_is_valid_again(cli):
    old, new = cli.add(OLD), cli.add("The harbour opens at nine")
    cli.ok("link", new, "supersedes", old)
    cli.ok("undo")
    assert texts(cli) == {OLD, "The harbour opens at nine"}


def test_what_consolidate_merged_is_valid_again(cli):
    both = {"We deploy from main only", "We deploy from main only!"}
    for text in both:
        cli.add(text, "--no-dedup")
    cli.ok("consolidate", "--yes")
    cli.ok("undo")
    assert texts(cli) == both


def test_a_question_that_is_open_again_has_no_answer(cli):
    question = cli.add("Which port does billing use?", "--kind", "question")
    cli.ok("link", cli.add("The harbour opens at nine"), "answers", question)
    cli.ok("undo")
    assert "answered by" not in cli.ok("get", question)


def test_an_undone_restore_is_replaced_as_before(cli):
    old = cli.add(OLD)
    cli.add(NEW, "--supersedes", old)
    cli.ok("restore", old)
    cli.ok("undo")
    assert "superseded by" in cli.ok("get", old)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(("update", "--content", "The tests need port 9000"), id="text"),
        pytest.param(("update", "--importance", "9"), id="field"),
        pytest.param(("vote", "5"), id="vote"),
    ],
)
def test_an_agent_does_not_remove_what_a_person_changed(cli, change):
    with Bethink(directory=cli.project, actor="agent:claude") as agent:
        id = agent.add("The tests need a running server").id
        name, *options = change
        cli.ok(name, id, *options)
        with pytest.raises(InvalidInput, match="changed again since, by user"):
            agent.undo()


def test_what_the_worker_changed_is_not_undone(cli):
    id = cli.add(OLD)
    with Bethink(directory=cli.project, actor="hook") as background:
        background.update(id, importance=9)
    assert cli.ok("undo").startswith("removed ")


TEAM = pytest.mark.parametrize("store_kind", ["postgres"], indirect=True)


@TEAM
def test_a_change_of_a_colleague_is_not_undone(cli, monkeypatch):
    cli.add(OLD)
    monkeypatch.setenv("BETHINK_USER", "bob")
    assert "There is no change to undo" in cli.fails("undo", code=2)


@TEAM
def test_a_note_that_a_colleague_changed_is_not_removed(cli, monkeypatch):
    id = cli.add(OLD)
    monkeypatch.setenv("BETHINK_USER", "bob")
    cli.ok("update", id, "--importance", "9")
    monkeypatch.setenv("BETHINK_USER", "ada")
    assert "was changed again since, by bob" in cli.fails("undo", code=2)


@TEAM
def test_a_person_and_an_agent_of_a_team_undo_their_own_changes(cli):
    cli.add(OLD)
    with Bethink(directory=cli.project, actor="agent:claude") as agent:
        agent.add("The tests need a running server")
        agent.undo()
    assert cli.ok("undo").startswith("removed ")


def test_a_change_that_is_undone_meanwhile_is_not_undone_twice(cli):
    id = cli.add(OLD)
    cli.ok("vote", id, "3")
    with Bethink(directory=cli.project) as memory:
        plan = undo.plan(memory.store, memory.find_last_change(), memory.clock())
        cli.ok("undo")
        with pytest.raises(Overtaken):
            memory.write(change=plan.changes, unchanged=plan.unchanged)
        assert memory.get(id)[0].usefulness == 0


def test_what_a_transcript_closed_is_not_undone(cli, with_model, tmp_path):
    asked = ("user", "Remind me to rename the orders table."), ("assistant", "Noted.")
    done = ("user", "Do it now."), ("assistant", "I renamed the orders table.")
    talk = transcript(tmp_path / "s1.jsonl", "s1", cli.project, *asked)
    cli.ok("backfill", talk)
    transcript(talk, "s1", cli.project, *done, append=True)
    cli.ok("backfill", talk)
    assert [one["answered"] for one in cli.json("list", "--kind", "todo")] == [True]
    assert "There is no change to undo" in cli.fails("undo", code=2)


def test_an_edit_that_changes_nothing_is_skipped(cli):
    id = cli.add("We use tabs")
    cli.ok("update", id, "--content", "We use tabs")
    cli.ok("undo")
    assert cli.json("list") == []
