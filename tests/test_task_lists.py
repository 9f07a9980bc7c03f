"""Task lists that agents keep in their hosts: what is open becomes a to-do, what is done closes it."""

import pytest
from transcripts import claude_line, written

from bethink.features import conversations

TABLE, CARTS = "Add the table for the carts", "Move the carts to Redis"


def asks(number, text):
    return claude_line(number, text)


def lists(number, **states):
    texts = {"table": TABLE, "carts": CARTS}
    items = [{"content": texts[name], "status": state} for name, state in states.items()]
    call = {"type": "tool_use", "id": f"t{number}", "name": "TodoWrite", "input": {"todos": items}}
    return claude_line(number, [call], "assistant")


def says(number, text):
    return claude_line(number, [{"type": "text", "text": text}], "assistant")


BEGUN = (
    asks(1, "Please move the carts."),
    lists(2, table="completed", carts="pending"),
    says(3, "I added the table."),
)


@pytest.fixture
def todos(shop):
    """Read a conversation of these lines, and return its to-dos as (text, still open)."""

    def read(*lines):
        placed = [{**line, "cwd": str(shop.project)} for line in lines]
        file = written(shop.project / "s1.jsonl", *placed)
        with shop.memory() as memory:
            conversations.backfill(memory, [("claude", file)], trusted=True)
            found = memory.list(filter=memory.filter(kinds=("todo",)))
            return [(one.content, not one.answered) for one in found]

    return read


def test_an_item_that_is_open_at_the_end_is_a_todo(todos):
    assert todos(*BEGUN) == [(CARTS, True)]


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(lists(5, table="completed", carts="completed"), id="done"),
        pytest.param(lists(5, table="completed"), id="dropped"),
    ],
)
def test_an_item_closes_its_todo_when_the_session_goes_on(todos, now):
    todos(*BEGUN)
    assert todos(*BEGUN, asks(4, "Go on."), now, says(6, "The carts are in Redis.")) == [
        (CARTS, False)
    ]


def test_an_item_that_stays_open_is_kept_once(todos):
    todos(*BEGUN)
    still = lists(5, table="completed", carts="in_progress")
    assert todos(*BEGUN, asks(4, "Go on."), still, says(6, "Redis is installed.")) == [
        (CARTS, True)
    ]
