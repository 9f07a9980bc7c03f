"""Notes of an agent beside what the offline reader found in the same conversation."""

import pytest
from capturing import Desk

from bethink.api import Bethink
from bethink.app.mcp import tools
from bethink.model import TRUST

FOUND = "The root cause is that the mailer's queue is not durable."
SAME = "Root cause: the mailer's queue is not durable."
MORE = "The root cause is that the mailer's queue is not durable, so RabbitMQ 3.13 drops it after a restart."
SAID = [
    ("user", "The mailer loses messages when RabbitMQ restarts. Why?"),
    ("assistant", FOUND),
]


@pytest.fixture
def desk(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("BETHINK_HOME", str(home))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return Desk(tmp_path, home)


@pytest.fixture
def agent(desk, local):
    """The memory as an agent's MCP server opens it, with the real models."""
    with Bethink(desk.database, directory=desk.project, embedder=local, actor="agent") as memory:
        memory.trust = TRUST["agent"]
        yield memory


def read(desk, local, *said):
    with Bethink(desk.database, directory=desk.project, embedder=local, actor="hook") as memory:
        from bethink.features import conversations

        list(conversations.read_on(memory, desk.talk("one", *said), "claude"))


def store(memory, content, kind="conclusion"):
    statement = tools.TOOLS["store_memories"].read_arguments(
        {"memories": [{"content": content, "kind": kind}]}
    )
    return tools.call(memory, "store_memories", statement).text


def find_ideas(memory):
    return [one for one in memory.list(limit=50) if one.kind != "context"]


def test_a_note_replaces_the_readers_words_for_the_same(desk, agent, local):
    read(desk, local, *SAID)
    (found,) = [one for one in find_ideas(agent) if one.content == FOUND]
    printed = store(agent, SAME)
    now = agent.one(found.id)
    assert now.content == SAME
    assert "which has these words now" in printed


def test_a_reworded_idea_still_cites_its_turn(desk, agent, local):
    read(desk, local, *SAID)
    (found,) = [one for one in find_ideas(agent) if one.content == FOUND]
    store(agent, SAME)
    now = agent.one(found.id)
    assert (now.session, now.lines, now.source) == (found.session, found.lines, found.source)


def test_the_readers_words_are_an_earlier_version(desk, agent, local):
    read(desk, local, *SAID)
    (found,) = [one for one in find_ideas(agent) if one.content == FOUND]
    store(agent, SAME)
    assert FOUND in [event.before.get("content") for event in agent.history(found.id)]


def test_a_reworded_idea_is_found_by_its_new_words(desk, agent, local):
    read(desk, local, *SAID)
    store(agent, SAME)
    hits = agent.search("queue of the mailer durable", mode="vector").hits
    assert SAME in [hit.memory.content for hit in hits]


def test_a_note_with_another_detail_is_stored_beside_it(desk, agent, local):
    read(desk, local, *SAID)
    store(agent, MORE)
    assert {FOUND, MORE} <= {one.content for one in find_ideas(agent)}


def test_the_reader_does_not_store_again_what_was_noted(desk, agent, local):
    store(agent, SAME)
    read(desk, local, *SAID)
    texts = [one.content for one in find_ideas(agent)]
    assert SAME in texts
    assert FOUND not in texts


def test_an_agent_does_not_reword_what_the_user_said(desk, agent, local):
    read(
        desk, local, ("user", "We decided to use RabbitMQ for the mailer."), ("assistant", "Good.")
    )
    theirs = [one for one in find_ideas(agent) if one.trust == TRUST["user"]]
    store(agent, "We decided that the mailer uses RabbitMQ.", "decision")
    assert [agent.one(one.id).content for one in theirs] == [one.content for one in theirs]
