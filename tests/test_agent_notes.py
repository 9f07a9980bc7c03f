"""Notes of an agent beside what the offline reader found in the same conversation."""

import pytest
from capturing import Desk
from field_surfaces import SECRET
from transcripts import transcript

from bethink.api import Bethink
from bethink.app.mcp import tools
from bethink.errors import InvalidInput, NotFound
from bethink.features import conversations
from bethink.model import TRUST
from bethink.recall.shape import citation

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
        list(conversations.read_on(memory, desk.talk("one", *said), "claude"))


def store(memory, content, kind="conclusion"):
    return call(memory, memories=[{"content": content, "kind": kind}])


def call(memory, **arguments):
    read_arguments = tools.TOOLS["store_memories"].read_arguments(arguments)
    return tools.call(memory, "store_memories", read_arguments).text


def storing(text, *notes, tool="mcp__bethink__store_memories"):
    """An answer before which the agent stored notes, as its transcript has it."""
    memories = {"memories": [{"content": note} for note in notes]}
    stored = {"type": "tool_use", "id": "t1", "name": tool, "input": memories}
    return ("assistant", [stored, {"type": "text", "text": text}])


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


# The turn in which a note was stored

NOTED = "The mailer drops messages when RabbitMQ restarts, because its queue is not durable."


def read_with_note(desk, agent, local, note=NOTED, text=FOUND, **more):
    (stored,) = _store_one(agent, note)
    read(desk, local, SAID[0], storing(text, note, **more), ("user", "Thanks."))
    return agent.one(stored)


def _store_one(agent, note):
    before = {one.id for one in agent.list(limit=50)}
    store(agent, note)
    return {one.id for one in agent.list(limit=50)} - before


def test_a_note_cites_the_turn_in_which_it_was_stored(desk, agent, local):
    assert citation(read_with_note(desk, agent, local)) == "session one:2"


@pytest.mark.parametrize(
    "tool",
    [
        pytest.param("mcp__plugin_bethink_bethink__store_memories", id="plugin"),
        pytest.param("bethink-store_memories", id="Copilot CLI"),
        pytest.param("mcp_bethink_store_memories", id="Gemini CLI"),
        pytest.param("bethink_store_memories", id="opencode"),
    ],
)
def test_a_note_is_recognised_under_every_prefix(desk, agent, local, tool):
    assert citation(read_with_note(desk, agent, local, tool=tool)) == "session one:2"


def test_a_note_with_a_secret_cites_its_turn(desk, agent, local):
    note = f"{NOTED} The key was {SECRET}."
    assert citation(read_with_note(desk, agent, local, note)) == "session one:2"


def test_a_cited_note_keeps_its_text(desk, agent, local):
    assert read_with_note(desk, agent, local).content == NOTED


def test_the_turn_of_a_note_is_its_source(desk, agent, local):
    note = read_with_note(desk, agent, local)
    assert FOUND in [one.content for one in conversations.surroundings(agent, note.id, 1)]


def test_storing_is_what_an_undo_takes_back_after_the_turn_was_cited(desk, agent, local):
    note = read_with_note(desk, agent, local)
    agent.undo()
    assert agent.one(note.id).deleted_at is not None


def test_a_strangers_transcript_cites_nothing(desk, agent, local, tmp_path):
    (stored,) = _store_one(agent, NOTED)
    place = tmp_path / "elsewhere"
    place.mkdir()
    file = transcript(tmp_path / "s.jsonl", "s", place, SAID[0], storing(FOUND, NOTED))
    conversations.backfill(agent, [("claude", file)], named=False)
    assert citation(agent.one(stored)) == "note:agent"


# A statement that the offline reader keeps, though it is less likely than not worth it.
UNLIKELY = "The consumer acknowledges messages before the mail is sent, which means that a crash loses them."


def test_an_unlikely_statement_of_an_agent_is_kept_without_notes(desk, agent, local):
    read(desk, local, ("user", "The mailer loses messages."), ("assistant", UNLIKELY))
    assert UNLIKELY in [one.content for one in find_ideas(agent)]


def test_an_unlikely_statement_of_an_agent_is_not_kept_beside_its_notes(desk, agent, local):
    read_with_note(desk, agent, local, text=UNLIKELY)
    assert UNLIKELY not in [one.content for one in find_ideas(agent)]


def test_what_is_not_kept_beside_notes_is_found_in_its_turn(desk, agent, local):
    read_with_note(desk, agent, local, text=UNLIKELY)
    found = agent.search("consumer acknowledges messages", filter=agent.filter(kinds=("context",)))
    assert UNLIKELY in [hit.memory.content for hit in found.hits]


def test_a_likely_statement_of_an_agent_is_kept_beside_its_notes(desk, agent, local):
    read_with_note(desk, agent, local, "The user wants to keep RabbitMQ 3.13.", FOUND)
    assert FOUND in [one.content for one in find_ideas(agent)]


def test_what_the_user_says_is_kept_beside_an_agents_notes(desk, agent, local):
    chosen = "We decided to use RabbitMQ for the mailer."
    store(agent, NOTED)
    read(desk, local, ("user", chosen), storing("Good.", NOTED))
    assert chosen in [one.content for one in find_ideas(agent)]


def test_notes_of_one_exchange_say_nothing_about_the_next(desk, agent, local):
    store(agent, NOTED)
    answered = (
        storing("Good.", NOTED),
        ("user", "The mailer loses messages."),
        ("assistant", UNLIKELY),
    )
    read(desk, local, SAID[0], *answered)
    assert UNLIKELY in [one.content for one in find_ideas(agent)]


# Closing


@pytest.fixture
def todo(agent):
    return agent.add("Add a retry policy to the mailer", kind="todo").id


def test_a_call_that_stores_notes_closes_what_is_done(agent, todo):
    call(agent, memories=[{"content": NOTED}], done=[todo[:13]])
    assert agent.one(todo).answered


def test_a_call_may_only_close(agent, todo):
    assert "closed" in call(agent, done=[todo])


def test_nothing_is_stored_if_an_id_to_close_is_unknown(agent, todo):
    with pytest.raises(NotFound):
        call(agent, memories=[{"content": NOTED}], done=["ffffffff"])
    assert [one.id for one in agent.list()] == [todo]


def test_only_open_kinds_are_closed(agent):
    fact = agent.add(NOTED, kind="fact").id
    with pytest.raises(InvalidInput, match="is a fact, which cannot be open or closed"):
        call(agent, done=[fact])


# Notes that say too little


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("Option B", id="a pick alone"),
        pytest.param("We will use it instead.", id="it"),
        pytest.param("They decided to go with the second one", id="the second one"),
        pytest.param("This must be done before the release", id="this"),
    ],
)
def test_a_note_that_means_nothing_later_is_stored_with_advice(agent, content):
    printed = store(agent, content, "decision")
    assert "not understood without this conversation" in printed
    assert [one.content for one in agent.list()] == [content]


def test_a_decision_without_a_reason_is_asked_for_it(agent):
    printed = store(agent, "The user chose NATS over Kafka.", "decision")
    assert "no reason. If there was one, add it: update_memory" in printed


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        pytest.param(
            "The user chose NATS over Kafka, because Kafka needs a cluster.", "decision", id="whole"
        ),
        pytest.param("The mailer needs RabbitMQ 3.13.", "fact", id="no decision"),
        pytest.param("メーラーのキューにはRabbitMQを使う。", "fact", id="Japanese"),
    ],
)
def test_a_note_that_says_enough_gets_no_advice(agent, content, kind):
    assert "update_memory" not in store(agent, content, kind)


# Notes of one session beside one another

MOVED = "The user decided to move the MCP server from vps-01 to simplemap.safecast.org, because a local database is faster."
BOTH = "The user decided to keep both MCP servers running: simplemap.safecast.org as primary and vps-01 as backup."


@pytest.mark.parametrize(
    ("stored", "marked"),
    [
        pytest.param(None, True, id="by others"),
        pytest.param(set(), False, id="by the same agent in this session"),
    ],
)
def test_a_doubtful_mark_is_not_made_between_notes_of_one_session(agent, stored, marked):
    agent.stored_here = stored
    first = agent.add(MOVED)
    agent.add(BOTH)
    assert bool(agent.one(first.id).newer) is marked


def test_a_note_that_contradicts_another_of_its_session_is_newer(agent):
    agent.stored_here = set()
    first = agent.add("We keep sessions in Redis.")
    agent.add("We keep sessions in Valkey.")
    assert agent.one(first.id).newer
