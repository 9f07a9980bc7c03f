"""Whose word a user's turn is: what was typed is the user's, what was pasted, quoted, reported or asked about is not."""

import json
from datetime import UTC, datetime, timedelta

import attack_forms
import pytest
from attack_forms import FORMS, OWN
from transcripts import claude_line, transcript, written

from bethink import agents
from bethink.app.cli.main import main
from bethink.features import conversations, inbox
from bethink.ingest.ideas import is_users_own
from bethink.ingest.provenance import find_own, find_probable
from bethink.model import TRUST

HOUR = timedelta(hours=1)
# Enough of a claim to know it by, whatever a form does with its beginning and its end.
CORE = slice(8, -4)


def read_turns(shop, *texts, session="talk", began=None):
    """Reads a session in which the user says these and the agent says yes."""
    turns = [turn for text in texts for turn in (("user", text), ("assistant", "Understood."))]
    file = shop.project.parent / f"{session}.jsonl"
    transcript(file, session, shop.project, *turns, began=began or datetime.now(UTC) - 8 * HOUR)
    with shop.memory() as memory:
        list(conversations.read_on(memory, file, "claude"))
        return list(memory.export(memory.filter(include_superseded=True)))


def command(*words):
    assert main([str(word) for word in words]) == 0


@pytest.mark.parametrize("form", [pytest.param(form, id=form.name) for form in FORMS])
def test_what_comes_in_this_form_is_not_the_users_word(form):
    assert [
        turn
        for turn in attack_forms.turns((form,))
        for own in [find_own(turn.text)]
        if turn.claim[CORE] in own.text or own.whole
    ] == []


@pytest.mark.parametrize("turn", [pytest.param(turn, id=turn.name) for turn in OWN])
def test_what_a_user_types_is_the_users_word(turn):
    own = find_own(turn.text)
    assert [one for one in turn.own if not own.hold(one)] == []


def test_no_form_of_pasting_makes_a_memory_on_the_users_word(shop):
    with shop.memory(clock=lambda: datetime.now(UTC) - 24 * HOUR) as memory:
        decided = memory.add("We use PostgreSQL for the billing service.", kind="decision").id
    # One claim per form, another one each time.
    every = [list(attack_forms.turns((form,))) for form in FORMS]
    turns = [some[at % len(some)] for at, some in enumerate(every)]
    found = read_turns(shop, *(turn.text for turn in turns))
    claims = {turn.claim[CORE] for turn in turns}
    told = [one for one in found if any(claim in one.content for claim in claims)]
    assert len(told) > len(FORMS) / 2  # the turns themselves are kept
    assert [one.content for one in told if one.trust > TRUST["pasted"]] == []
    (kept,) = [one for one in found if one.id == decided]
    assert (kept.superseded_by, kept.trust) == (None, TRUST["user"])
    briefing = shop.start(session_id="next")
    assert [claim for claim in claims if claim in briefing] == []


def test_a_pasted_turn_is_not_recalled_at_a_prompt(shop):
    claim = "The gateway drops websocket frames above 64 kilobytes."
    question = "Which websocket frames does the gateway drop?"
    read_turns(shop, f"Eve Miller\n10:42\n{claim}", session="pasted")
    assert claim not in shop.ask(question, session_id="s1")
    read_turns(shop, claim, session="typed")
    assert claim in shop.ask(question, session_id="s2")


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        pytest.param(
            "the export still fails, as per the log. We need it to skip empty rows.",
            "We need it to skip empty rows.",
            id="behind a reporting phrase",
        ),
        pytest.param(
            "Some ideas for the sandbox are below, here is what matters:\n- The sandbox is agentic first\n- Code is viewable",
            "Code is viewable",
            id="list below an announcement",
        ),
        pytest.param(
            "Traceback (most recent call last):\n  File \"a.py\", line 3, in run\n",
            "",
            id="nothing of a log",
        ),
        pytest.param(
            "this is the log:\nERROR: cannot open file\nplease never delete the folder tmp",
            "please never delete the folder tmp",
            id="request below a log",
        ),
        pytest.param(
            "# Deploys\n\nWe moved deploys to the nightly branch.", "", id="nothing of a document"
        ),
    ],
)  # fmt: skip
def test_words_that_were_most_likely_typed_are_told_from_pasted_ones(text, typed):
    assert find_probable(text).text.split("\n")[-1] == typed


def test_a_doubtful_statement_is_kept_without_the_users_authority(shop):
    text = "the export fails as per the log, so we need it to always skip rows without an invoice number"
    (kept,) = [one for one in read_turns(shop, text) if one.kind != "context"]
    assert kept.trust == TRUST["pasted"]
    assert "invoice" not in shop.start(session_id="next")
    assert "invoice" not in shop.ask("skip rows without an invoice number?", session_id="s2")
    with shop.memory() as memory:
        assert inbox.list_queue(memory, "doubtful").items == ()


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param("We decided to use PostgreSQL for the billing service.", id="decision"),
        pytest.param("Always run make lint before committing.", id="rule"),
        pytest.param("No, use pnpm instead of npm in this repository.", id="correction"),
    ],
)
def test_a_typed_statement_becomes_a_memory_on_the_users_word(shop, rule):
    found = read_turns(shop, rule)
    kept = [one for one in found if one.kind != "context" and one.content in rule]
    assert kept
    assert {one.trust for one in kept} == {TRUST["user"]}


def test_only_the_users_part_of_a_turn_is_asked_in_the_digest(shop):
    read_turns(shop, "Add retries to the payment worker.\n\n# Deploys moved to the nightly branch")
    briefing = shop.start(session_id="next")
    assert "Add retries to the payment worker" in briefing
    assert "nightly" not in briefing


def test_an_idea_of_a_language_model_must_be_in_the_users_part():
    turn = "We stay with PostgreSQL. What do you make of this?\n\nThe team moves to MySQL soon."
    own = "We stay with PostgreSQL.\n\nFrom: eve@shop.test\n\nThe team moves to MySQL soon."
    assert not is_users_own("The team moves to MySQL", turn)
    assert not is_users_own("The team moves to MySQL", own)
    assert is_users_own("We stay with PostgreSQL", "We stay with PostgreSQL.")


def answer(question, reply):
    """A line of Claude Code with the user's answer to a question of the agent."""
    result = {"questions": [{"question": question}], "answers": {question: reply}}
    content = [{"type": "tool_result", "tool_use_id": "t1", "content": "answered"}]
    return claude_line(1, content, toolUseResult=result)


def test_an_answer_to_the_agents_question_is_the_users_word_without_what_the_agent_states(tmp_path):
    question = "The README was moved. Which database should the shop use?"
    file = written(tmp_path / "s1.jsonl", answer(question, "Keep PostgreSQL"))
    (turn,) = agents.read(file).turns()
    own = find_own(turn.text, turn.asked)
    assert own.hold("Which database should the shop use?") and own.hold("Keep PostgreSQL")
    assert not own.hold("The README was moved.")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("<system-reminder>\nWe use MySQL.\n</system-reminder>", id="reminder"),
        pytest.param("<system_instruction>\nWe use MySQL.\n</system_instruction>", id="instruction"),
        pytest.param("<task-notification>\nWe use MySQL.\n</task-notification>", id="notification"),
        pytest.param("<heartbeat>\nWe use MySQL.\n</heartbeat>", id="heartbeat"),
        pytest.param("<agent-message>We use MySQL.</agent-message>", id="agent message"),
        pytest.param("<recommended_plugins>\nWe use MySQL.\n</recommended_plugins>", id="plugins"),
        pytest.param("Another Claude session sent a message:\n\nWe use MySQL.", id="other session"),
        pytest.param(
            "This session is being continued from a previous conversation that ran out of context. We use MySQL.",
            id="continued",
        ),
        pytest.param(
            "The user wants to clarify these questions.\n    This means they may have additional information.",
            id="clarify",
        ),
        pytest.param("Base directory for this skill: /x\n\nWe use MySQL.", id="skill"),
        pytest.param("<local-command-stdout>We use MySQL.</local-command-stdout>", id="output"),
    ],
)  # fmt: skip
def test_a_message_that_the_host_wrote_is_no_turn_of_the_user(tmp_path, text):
    file = written(tmp_path / "s1.jsonl", claude_line(1, text))
    assert [turn.text for turn in agents.read(file).turns()] == []


def test_a_turn_dated_ahead_of_time_does_not_outrank_what_is_said_today(shop):
    future = datetime(2099, 1, 1, tzinfo=UTC)
    found = read_turns(shop, "We deploy the shop from the main branch.", began=future)
    now = datetime.now(UTC)
    assert found
    assert [one.created_at for one in found if one.created_at > now] == []
    with shop.memory() as memory:
        (session,) = memory.store.sessions(memory.scopes, 5)
        assert session.started_at <= now and session.ended_at <= now
        spans = memory.store.spans_by_id([one.span for one in found if one.span], memory.scopes)
        assert all(span.created_at <= now for span in spans.values())


def test_a_turn_of_long_ago_keeps_its_date(shop):
    past = datetime(2019, 5, 4, tzinfo=UTC)
    found = read_turns(shop, "We deploy the shop from the main branch.", began=past)
    assert {one.created_at.year for one in found} == {2019}


@pytest.mark.parametrize("trusted", [False, True], ids=["plain", "trusted"])
def test_an_imported_memory_is_dated_no_later_than_now(shop, trusted):
    shop.add("We deploy the shop from the main branch.", "decision")
    file, other = shop.project.parent / "out.jsonl", shop.project.parent / "other.db"
    command("--project", shop.project, "export", "--jsonl", "--output", file)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    ahead = [{**one, "created_at": "2099-01-01T00:00:00Z"} for one in lines]
    file.write_text("\n".join(map(json.dumps, ahead)))
    flags = ["--trusted"] if trusted else []
    command("--database", other, "--project", shop.project, "import", file, *flags)
    with shop.memory(database=other) as memory:
        found = list(memory.export(memory.filter()))
    assert found
    assert [one for one in found if one.created_at > datetime.now(UTC)] == []
