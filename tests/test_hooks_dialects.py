"""Hooks of agents whose messages lack something: Antigravity CLI, and VS Code, which runs the hooks of others."""

import json

import pytest
from hooking import context
from hooking import shop as shop  # the fixture

from bethink.hooks import spool, state

FACT = "The staging database listens on port 6543"
ASKED = "Which port does the staging database listen on?"


@pytest.fixture
def agy(shop, tmp_path):
    """Antigravity CLI calls the hook before each call of its model."""
    transcript = tmp_path / "brain" / "c1" / ".system_generated" / "logs" / "transcript_full.jsonl"
    transcript.parent.mkdir(parents=True)

    def call(*prompts, source="USER_EXPLICIT"):
        steps = [
            {
                "step_index": number,
                "type": "USER_INPUT",
                "source": source,
                "status": "DONE",
                "content": f"<USER_REQUEST>\n{prompt}\n</USER_REQUEST>",
            }
            for number, prompt in enumerate(prompts)
        ]
        transcript.write_text("".join(f"{json.dumps(step)}\n" for step in steps))
        message = {
            "conversationId": "c1",
            "transcriptPath": str(transcript),
            "workspacePaths": [str(shop.project)],
        }
        printed = shop.printed("prompt", "antigravity", session_id=None, cwd=None, **message)
        return json.loads(printed)["injectSteps"][0]["ephemeralMessage"] if printed else ""

    call.shop, call.transcript = shop, transcript
    return call


def test_antigravity_gets_recall_for_the_prompt_in_its_transcript(agy):
    agy.shop.add(FACT)
    assert FACT in agy("Say hello.", ASKED)


def test_antigravity_gets_the_briefing_with_any_prompt(agy):
    agy.shop.add("We deploy on Tuesdays only", kind="decision")
    assert "We deploy on Tuesdays only" in agy("hello")


def test_antigravity_gets_the_same_context_at_each_call_of_a_turn(agy):
    agy.shop.add(FACT)
    assert FACT in agy(ASKED)
    assert FACT in agy(ASKED)


def test_a_memory_of_the_briefing_is_not_repeated_by_the_recall(agy):
    agy.shop.add("We chose port 6543 for the staging database", kind="decision")
    assert agy(ASKED).count("We chose port 6543 for the staging database") == 1


def test_a_memory_shown_to_antigravity_is_recorded(agy):
    id = agy.shop.add(FACT)
    agy(ASKED)
    assert [known.ids for _, known in state.list_deliveries()] == [(id,)]


def test_a_step_of_the_model_is_no_prompt(agy):
    agy.shop.add(FACT)
    assert agy(ASKED, source="MODEL") == ""


def test_a_message_without_a_transcript_gets_nothing(agy):
    agy.shop.add(FACT)
    assert agy.shop.printed("prompt", "antigravity", conversationId="c2") == ""


def test_a_phrase_in_a_transcript_grants_nothing(agy):
    agy.shop.add(FACT)
    assert agy("bethink forget K7QX") == ""


def test_the_transcript_of_antigravity_is_noted_at_a_call(agy):
    agy(ASKED)
    (waiting,) = spool.list_waiting()
    assert (waiting.host, waiting.transcript) == ("antigravity", str(agy.transcript))


@pytest.fixture
def code(shop):
    """VS Code runs the hooks of Claude Code and of Copilot CLI with its own transcript."""
    path = "/home/ada/.config/Code/User/workspaceStorage/1/GitHub.copilot-chat/transcripts/v.jsonl"

    def call(event, host, **said):
        return context(shop.printed(event, host, transcript_path=path, **said))

    shop.add("We deploy on Tuesdays only", kind="decision")
    call.path = path
    return call


@pytest.mark.parametrize("host", ["claude", "copilot"])
def test_vs_code_gets_a_nested_briefing_from_the_hooks_of_another_agent(code, host):
    assert "We deploy on Tuesdays only" in code("session-start", host)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("claude", "copilot", id="claude-first"),
        pytest.param("copilot", "claude", id="copilot-first"),
    ],
)
def test_vs_code_gets_one_briefing_from_two_hooks(code, first, second):
    assert code("session-start", first)
    assert code("session-start", second) == ""


def test_vs_code_gets_nothing_at_a_prompt_because_it_would_drop_it(code, shop):
    shop.add(FACT)
    assert code("prompt", "claude", prompt=ASKED) == ""


def test_two_hooks_in_vs_code_note_one_transcript(code):
    for host in ("claude", "copilot"):
        code("stop", host)
    (waiting,) = spool.list_waiting()
    assert (waiting.host, waiting.transcript) == ("vscode", code.path)


def test_a_rule_is_enforced_in_vs_code_in_its_own_form(cli, shop, code, monkeypatch):
    rule = shop.add("Never force-push", kind="preference")
    monkeypatch.chdir(shop.project)
    cli.ok("enforce", rule, "--command", "git push --force")
    call = {"tool_name": "Bash", "tool_input": {"command": "git push --force"}}
    printed = shop.printed("tool-before", "copilot", transcript_path=code.path, **call)
    assert json.loads(printed)["hookSpecificOutput"]["permissionDecision"] == "deny"
