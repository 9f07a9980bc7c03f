"""`bethink todo` and `bethink done`: open to-dos, questions and problems, closed by their ids."""

import pytest


def open_texts(cli) -> list[str]:
    return [one["content"] for one in cli.json("todo")]


@pytest.mark.parametrize("kind", ["todo", "question", "problem"])
def test_todo_lists_an_open_item(cli, kind):
    cli.add("The signing key of the shop", "--kind", kind)
    assert open_texts(cli) == ["The signing key of the shop"]


def test_todo_with_a_text_adds_a_to_do(cli):
    cli.ok("todo", "Write", "the", "retry", "policy")
    assert open_texts(cli) == ["Write the retry policy"]


def test_todo_with_a_text_takes_the_options_of_add(cli):
    cli.ok("todo", "Write the retry policy", "--tag", "billing")
    assert cli.json("todo")[0]["tags"] == ["billing"]


def test_todo_names_an_option_that_it_does_not_know(cli):
    assert "--limt" in cli.fails("todo", "--limt", "5", code=2)


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


def test_done_closes_the_only_item_with_these_words(cli):
    cli.add("Write the retry policy for invoices", "--kind", "todo")
    cli.add("Rotate the signing key", "--kind", "todo")
    cli.ok("done", "retry", "POLICY")
    assert open_texts(cli) == ["Rotate the signing key"]


def test_done_finds_the_words_of_a_closed_item_to_reopen(cli):
    cli.add("Rotate the signing key", "--kind", "todo")
    cli.ok("done", "signing key")
    cli.ok("done", "signing key", "--open")
    assert open_texts(cli) == ["Rotate the signing key"]


def test_done_closes_nothing_if_several_items_have_the_words(cli):
    ids = [cli.add(text, "--kind", "todo") for text in ("Rotate the key", "Order the key")]
    refused = cli("done", "the key")
    assert (refused.code, len(open_texts(cli))) == (1, 2)
    assert all(id[:13] in refused.err for id in ids)


@pytest.mark.parametrize("words", ["", " ", "-"])
def test_done_without_words_closes_nothing(cli, words):
    cli.add("Add a retry policy to the mailer", "--kind", "todo")
    assert "by words of its text" in cli.fails("done", words, code=2)


def test_done_names_words_that_no_open_item_has(cli):
    refused = cli("done", "buy", "milk")
    assert "No open to-do, question or problem has the id or the words 'buy milk'." in refused.err


def test_an_agent_closes_a_persons_item_by_its_id(cli, monkeypatch):
    id = cli.add("Rotate the signing key", "--kind", "todo")
    monkeypatch.setenv("CLAUDECODE", "1")
    cli.ok("done", id)
    assert open_texts(cli) == []


def test_a_closed_item_is_not_closed_again(cli):
    id = cli.add("Rotate the signing key", "--kind", "todo")
    cli.ok("done", id)
    assert cli.ok("done", id).startswith("closed already, ")


def test_closing_a_closed_item_is_no_change_to_undo(cli):
    id = cli.add("Rotate the signing key", "--kind", "todo")
    cli.ok("done", id)
    cli.ok("done", id)
    assert cli.ok("undo").startswith("reopened ")
