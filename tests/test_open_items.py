"""`bethink todo` and `bethink done`: open to-dos, questions and problems, closed by their ids."""

import pytest


def open_texts(cli) -> list[str]:
    return [one["content"] for one in cli.json("todo")]


@pytest.mark.parametrize("kind", ["todo", "question", "problem"])
def test_todo_lists_an_open_item(cli, kind):
    cli.add("The signing key of the shop", "--kind", kind)
    assert open_texts(cli) == ["The signing key of the shop"]


def test_todo_leaves_out_what_cannot_be_open(cli):
    cli.add("We deploy on Fridays", "--kind", "decision")
    assert open_texts(cli) == []


def test_todo_says_that_nothing_is_open(cli):
    assert "Nothing is open." in cli("todo").err


def test_done_closes_an_item(cli):
    id = cli.add("Rotate the signing key", "--kind", "todo")
    assert "closed" in cli.ok("done", id)
    assert open_texts(cli) == []


def test_done_closes_several_items(cli):
    ids = [cli.add(text, "--kind", "todo") for text in ("Rotate the key", "Order the badges")]
    cli.ok("done", *ids)
    assert open_texts(cli) == []


def test_an_item_can_be_opened_again(cli):
    id = cli.add("Rotate the signing key", "--kind", "todo")
    cli.ok("done", id)
    assert "opened" in cli.ok("done", id, "--open")
    assert open_texts(cli) == ["Rotate the signing key"]


def test_done_refuses_what_cannot_be_closed(cli):
    id = cli.add("We deploy on Fridays", "--kind", "decision")
    refused = cli("done", id)
    assert refused.code == 2
    assert "cannot be open or closed" in refused.err


def test_done_closes_nothing_if_one_id_is_wrong(cli):
    id = cli.add("Rotate the signing key", "--kind", "todo")
    assert cli("done", id, "nothing").code != 0
    assert open_texts(cli) == ["Rotate the signing key"]


def test_an_agent_closes_a_persons_item_by_its_id(cli, monkeypatch):
    id = cli.add("Rotate the signing key", "--kind", "todo")
    monkeypatch.setenv("CLAUDECODE", "1")
    cli.ok("done", id)
    assert open_texts(cli) == []
