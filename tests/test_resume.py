"""Questions about the last session and about what is left, on every surface that searches."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from transcripts import claude_call, claude_says, transcript, written

from bethink.app.mcp import tools
from bethink.features import conversations

NOW = datetime(2026, 6, 10, 9, tzinfo=UTC)
TALK = (
    ("user", "Please cache the carts in Redis."),
    (
        "assistant",
        "I cached the carts in Redis.\n\nNext steps:\n\n- [ ] Measure the cart page under load\n",
    ),
)
DONE, LEFT = "I cached the carts in Redis", "Measure the cart page under load"


@pytest.fixture
def talk(shop):
    def read(name, *said, days=0):
        began = NOW - timedelta(days=days)
        file = transcript(shop.project / f"{name}.jsonl", name, shop.project, *said, began=began)
        with shop.memory() as memory:
            conversations.backfill(memory, [("claude", file)], trusted=True)

    return read


def search(shop, question, **options):
    with shop.memory(clock=lambda: NOW + timedelta(hours=1)) as memory:
        return memory.search(question, **options)


def note(shop, text):
    with shop.memory(clock=lambda: NOW) as memory:
        memory.add(text, kind="preference")


def texts(answer):
    return [hit.memory.content for hit in answer.hits]


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("what did we do last time?", id="english"),
        pytest.param("where did we leave off?", id="leave-off"),
        pytest.param("was haben wir letztes Mal gemacht?", id="german"),
        pytest.param("¿qué hicimos la última vez?", id="spanish"),
        pytest.param("qu'est-ce qu'on a fait la dernière fois ?", id="french"),
        pytest.param("前回は何をしましたか", id="japanese"),
        pytest.param("我们上次做了什么?", id="chinese"),
    ],
)
def test_the_last_session_is_told_by_its_digest(shop, talk, question):
    talk("one", *TALK)
    assert f"Done: {DONE}" in texts(search(shop, question))[0]


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("what is left to do?", id="english"),
        pytest.param("what's next?", id="next"),
        pytest.param("was ist noch offen?", id="german"),
        pytest.param("¿qué queda por hacer?", id="spanish"),
        pytest.param("que reste-t-il à faire ?", id="french"),
        pytest.param("次は何をしますか", id="japanese"),
        pytest.param("接下来做什么?", id="chinese"),
    ],
)
def test_what_is_left_is_told_first(shop, talk, question):
    talk("one", *TALK)
    assert f"Left: {LEFT}" in texts(search(shop, question))[0]


def test_what_is_left_includes_open_items_of_earlier_sessions(shop, talk):
    shop.add("Rename the orders table", "todo")
    talk("one", *TALK)
    assert "Rename the orders table" in texts(search(shop, "what is left?"))


def test_a_closed_item_is_not_left(shop, talk):
    id = shop.add("Rename the orders table", "todo")
    talk("one", *TALK)
    with shop.memory() as memory:
        memory.update(id, answered=True)
    assert "Rename the orders table" not in texts(search(shop, "what is left?"))


def test_yesterday_finds_the_session_of_that_day(shop, talk):
    talk("one", *TALK, days=1)
    talk("two", ("user", "Please sort the basket."), ("assistant", "I sorted the basket."))
    assert DONE in texts(search(shop, "what did we do yesterday?"))[0]


def test_yesterday_leaves_out_what_was_done_today(shop, talk):
    talk("one", *TALK, days=1)
    talk("two", ("user", "Please sort the basket."), ("assistant", "I sorted the basket."))
    assert not [one for one in texts(search(shop, "what did we do yesterday?")) if "basket" in one]


def test_notes_of_a_day_follow_its_session(shop, talk):
    talk("one", *TALK)
    note(shop, "Never log session ids")
    found = texts(search(shop, "what did we do today?"))
    assert DONE in found[0]
    assert "Never log session ids" in found


def test_notes_of_a_day_without_a_session_are_listed(shop, talk):
    talk("one", *TALK, days=1)
    note(shop, "Never log session ids")
    assert texts(search(shop, "what did we do today?")) == ["Never log session ids"]


def test_a_later_session_is_not_the_one_before(shop, talk):
    talk("one", *TALK)
    answer = search(shop, "what did we do last month?")
    assert not [one for one in texts(answer) if DONE in one]


def test_a_day_without_a_session_gets_the_one_before(shop, talk):
    talk("one", *TALK, days=5)
    answer = search(shop, "what did we do yesterday?")
    assert DONE in texts(answer)[0]
    assert "Nothing is known from that time" in answer.hints[0]


def test_a_digest_opens_the_last_turn_of_its_session(shop, talk):
    talk("one", *TALK)
    (hit,) = search(shop, "what did we do last time?").hits
    assert (hit.memory.session, hit.memory.lines) == ("one", (2, 2))


def test_a_filter_holds_for_digests(shop, talk):
    talk("one", *TALK)
    with shop.memory() as memory:
        decisions = memory.filter(kinds=("decision",))
    assert texts(search(shop, "what did we do last time?", filter=decisions)) == []


def test_a_question_with_a_subject_is_searched(shop, talk):
    talk("one", *TALK)
    shop.add("The migration to Valkey lacks the session store", "fact")
    assert "Valkey" in texts(search(shop, "what is left of the migration to Valkey?"))[0]


def test_an_agent_gets_what_is_left_by_its_tool(shop, talk):
    talk("one", *TALK)
    with shop.memory() as memory:
        asked = tools.TOOLS["search_memories"].read_arguments({"query": "what is left to do?"})
        assert LEFT in tools.call(memory, "search_memories", asked).text


def test_the_command_line_prints_what_is_left(cli, tmp_path):
    cli.ok("add", "Rename the orders table", "--kind", "todo")
    found = json.loads(cli.ok("--json", "search", "what is left?"))
    assert "Rename the orders table" in json.dumps(found)


def test_a_check_that_passed_in_another_form_is_not_left(shop):
    cwd = str(shop.project)
    lines = [
        claude_says("Please make the tests run with the environment", "user", cwd=cwd),
        *claude_call("bun run test", "1 fail", failed=True, cwd=cwd),
        *claude_call("bun run test:env", "80 pass", cwd=cwd),
        claude_says("The tests run with the environment now.", cwd=cwd),
    ]
    file = written(shop.project / "s1.jsonl", *lines)
    with shop.memory() as memory:
        conversations.backfill(memory, [("claude", file)], trusted=True)
        (session,) = conversations.sessions(memory)
    assert "fails" not in session.digest["left"]


def test_a_check_that_fails_at_the_end_is_left(shop):
    cwd = str(shop.project)
    lines = [
        claude_says("Please make the tests run with the environment", "user", cwd=cwd),
        *claude_call("bun run test", "1 fail", failed=True, cwd=cwd),
        claude_says("The tests cannot run here.", cwd=cwd),
    ]
    file = written(shop.project / "s1.jsonl", *lines)
    with shop.memory() as memory:
        conversations.backfill(memory, [("claude", file)], trusted=True)
        (session,) = conversations.sessions(memory)
    assert "bun run test fails" in session.digest["left"]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        pytest.param("what is left?", LEFT, id="left"),
        pytest.param("what's next?", LEFT, id="next"),
        pytest.param("where were we?", DONE, id="where"),
        pytest.param("what did we do last time?", DONE, id="last-time"),
    ],
)
def test_a_prompt_about_the_last_session_gets_its_digest(shop, talk, question, expected):
    talk("one", *TALK)
    assert expected in shop.ask(question, session_id="next")


def test_a_briefed_session_is_not_told_its_last_one_again(shop, talk):
    talk("one", *TALK)
    assert DONE in shop.start(session_id="next")
    assert shop.ask("what did we do last time?", session_id="next") == ""


def test_a_session_that_asks_is_not_its_own_last_one(shop, talk):
    talk("one", *TALK, days=1)
    talk(
        "two", ("user", "Please round the prices."), ("assistant", "I rounded the prices to cents.")
    )
    assert DONE in shop.ask("what did we do last time?", session_id="two")


def test_today_lists_no_session_of_another_day(cli, tmp_path):
    talk = transcript(tmp_path / "one.jsonl", "one", cli.project, *TALK, began=NOW)
    cli.ok("backfill", talk, "--trusted")
    cli.add("Never log session ids")
    assert [one["content"] for one in cli.json("today")] == ["Never log session ids"]


def test_today_prints_the_digests_of_the_time(cli, tmp_path):
    talk = transcript(tmp_path / "one.jsonl", "one", cli.project, *TALK, began=NOW)
    cli.ok("backfill", talk, "--trusted")
    lines = cli.ok("today", f"{NOW:%Y-%m-%d}").splitlines()
    assert (lines[0], f"  Done: {DONE}" in lines) == ("Sessions (1):", True)
