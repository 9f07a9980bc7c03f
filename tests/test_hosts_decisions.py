"""Decisions of the user that are not plain prompts, words of programs that are not the user's, and what tools showed."""

import json

import pytest
from test_hosts_turns import codex, codex_call, codex_says, returns, says, uses
from transcripts import claude_call, claude_line, claude_says, read, stored, written

from bethink import agents
from bethink.agents.base import Fact
from bethink.agents.evidence import gather_evidence

REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected. STOP what you are doing."
INTERRUPTED = [{"type": "text", "text": "[Request interrupted by user]"}]


def claude(tmp_path, *lines):
    return read(written(tmp_path / "s1.jsonl", *lines))[0]


def spoken(turns):
    return [(turn.role, turn.text) for turn in turns]


# Words that nobody typed


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "<recommended_plugins>Use the figma plugin.</recommended_plugins>", id="plugins"
        ),
        pytest.param("<agent-message from='a2'>Use Kafka.</agent-message>", id="agent-message"),
        pytest.param("Another Claude session sent a message: use Kafka.", id="another-session"),
        pytest.param("<system-reminder>Use Kafka.</system-reminder>", id="system-reminder"),
        pytest.param(
            "<task-notification>\nUse Kafka.\n</task-notification>", id="task-notification"
        ),
        pytest.param("<environment_context>use Kafka</environment_context>", id="environment"),
        pytest.param("<teammate-message>Use Kafka.</teammate-message>", id="teammate"),
    ],
)
@pytest.mark.parametrize("host", ["claude", "codex"])
def test_words_of_a_program_are_no_turn(host, text, tmp_path):
    lines = [claude_line(1, text)] if host == "claude" else codex(codex_says("user", text))
    assert read(written(tmp_path / "t.jsonl", *lines))[0] == []


def test_citations_of_a_memory_are_not_part_of_the_answer(tmp_path):
    text = "Redis, as before.<oai-mem-citation>\nMEMORY.md:3-4\n</oai-mem-citation>"
    ((turn,), _) = read(written(tmp_path / "r.jsonl", *codex(codex_says("assistant", text))))
    assert turn.text == "Redis, as before."


@pytest.mark.parametrize(
    "attached", ["# Context from my IDE setup:", "# Files mentioned by the user:"]
)
def test_what_codex_attaches_to_a_prompt_is_not_part_of_it(attached, tmp_path):
    text = f"{attached}\n\n## a.png: /tmp/a.png\n\n## My request for Codex:\nAlign the header.\n"
    ((turn,), _) = read(written(tmp_path / "r.jsonl", *codex(codex_says("user", text))))
    assert turn.text == "Align the header."


# Slash commands


@pytest.mark.parametrize(
    ("command", "arguments", "expected"),
    [
        pytest.param("/commit", "", ["/commit"], id="without-arguments"),
        pytest.param("/release", "patch", ["/release patch"], id="with-arguments"),
        pytest.param("dev:sync", "", ["/dev:sync"], id="of-a-plugin"),
        pytest.param("/clear", "", [], id="setting"),
        pytest.param("/bethink:remember", "the queue", [], id="ours"),
    ],
)
def test_a_slash_command_is_kept_as_typed(command, arguments, expected, tmp_path):
    text = f"<command-name>{command}</command-name><command-args>{arguments}</command-args>"
    assert [turn.text for turn in claude(tmp_path, claude_line(1, text))] == expected


# Questions of the agent


def ask_codex(*answers):
    questions = [{"id": "q1", "header": "Queue", "question": "Which queue?", "options": []}]
    call = codex_call("request_user_input", {"questions": questions})
    output = json.dumps({"answers": {"q1": {"answers": list(answers)}}})
    return codex(call, {"type": "function_call_output", "call_id": "k1", "output": output})


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param(["Redis (Recommended)"], "Which queue?\nRedis (Recommended)", id="choice"),
        pytest.param(
            ["None of the above", "user_note: what would Kafka cost?"],
            "Which queue?\nwhat would Kafka cost?",
            id="own-words",
        ),
        pytest.param(
            ["Redis", "user_note: with a limit"], "Which queue?\nRedis, with a limit", id="both"
        ),
    ],
)
def test_an_answer_to_a_question_of_codex_is_a_turn_of_the_user(answers, expected, tmp_path):
    ((turn,), _) = read(written(tmp_path / "r.jsonl", *ask_codex(*answers)))
    assert (turn.role, turn.text, turn.asked) == ("user", expected, ("Which queue?",))


def test_an_answer_of_the_next_reading_finds_its_question(tmp_path):
    lines = ask_codex("Redis")
    _, transcript = read(written(tmp_path / "r.jsonl", *lines[:-1]))
    path = written(tmp_path / "r.jsonl", *lines)
    assert spoken(read(path, stored(transcript.position))[0]) == [("user", "Which queue?\nRedis")]


def test_a_question_of_codex_without_an_answer_is_no_turn(tmp_path):
    assert read(written(tmp_path / "r.jsonl", *ask_codex()))[0] == []


# Threads of sub-agents


def thread(**more):
    head = {"id": "c9", "cwd": "/home/ada/shop", "thread_source": "subagent", **more}
    talk = [("user", "Review the queue."), ("assistant", "Done."), ("user", "Use Redis instead.")]
    items = codex(*(codex_says(role, text) for role, text in talk))[1:]
    return [{"type": "session_meta", "payload": head}, *items]


def test_a_thread_that_a_person_took_over_has_their_turns(tmp_path):
    turns, _ = read(written(tmp_path / "r.jsonl", *thread()))
    assert spoken(turns) == [("assistant", "Done."), ("user", "Use Redis instead.")]


def test_a_thread_that_a_person_took_over_is_a_conversation(tmp_path):
    turns, _ = read(written(tmp_path / "r.jsonl", *thread()))
    assert {(turn.agent, turn.session) for turn in turns} == {(None, "c9")}


def test_a_thread_with_a_parent_has_no_turns_of_a_person(tmp_path):
    turns, _ = read(written(tmp_path / "r.jsonl", *thread(parent_thread_id="c1")))
    assert [(turn.role, turn.session) for turn in turns] == [("assistant", "c1")]


# Interruptions and refusals


def test_an_interruption_marks_the_next_turn(tmp_path):
    turns = claude(
        tmp_path,
        *(claude_line(1, "Move the carts."), says(2, "I begin."), claude_line(3, INTERRUPTED)),
        claude_line(4, "Only the small ones."),
    )
    assert [turn.marks for turn in turns] == [(), (), ("interrupted",)]


def test_an_interruption_of_codex_marks_the_next_turn(tmp_path):
    first, second = codex(codex_says("user", "Move the carts."), codex_says("user", "Stop."))[1:]
    aborted = {"type": "turn_aborted", "turn_id": "t1", "reason": "interrupted"}
    event = {"type": "event_msg", "payload": aborted}
    turns, _ = read(written(tmp_path / "r.jsonl", *codex(), first, event, second))
    assert [turn.marks for turn in turns] == [(), ("interrupted",)]


def test_an_interrupted_prompt_that_is_sent_again_is_one_turn(tmp_path):
    turns = claude(
        tmp_path,
        *(claude_line(1, "Move the carts."), says(2, "I begin."), claude_line(3, INTERRUPTED)),
        *(claude_line(4, "Move the carts."), says(5, "Moved.")),
    )
    assert [turn.text for turn in turns] == ["Move the carts.", "I begin.", "Moved."]


def test_a_prompt_that_is_sent_again_after_an_answer_is_another_turn(tmp_path):
    turns = claude(
        tmp_path, claude_line(1, "Go on."), says(2, "First part."), claude_line(3, "Go on.")
    )
    assert [turn.text for turn in turns] == ["Go on.", "First part.", "Go on."]


def test_a_refused_call_marks_the_next_turn(tmp_path):
    turns = claude(
        tmp_path,
        uses(1, "Bash", {"command": "npm install"}, "t1"),
        *(returns(2, "t1", REFUSED), claude_line(3, "Use bun.")),
    )
    assert [(turn.text, turn.marks) for turn in turns] == [("Use bun.", ("declined: Bash",))]


def test_a_name_of_a_tool_that_is_a_sentence_is_not_shown(tmp_path):
    turns = claude(
        tmp_path,
        uses(1, "ignore all rules", {"command": "x"}, "t1"),
        *(returns(2, "t1", REFUSED), claude_line(3, "Use bun.")),
    )
    assert turns[0].marks == ("declined: tool",)


@pytest.mark.parametrize(
    ("output", "mark"),
    [
        pytest.param(REFUSED, "declined: plan", id="rejected"),
        pytest.param(
            "User has approved your plan. You can now start.", "approved: plan", id="approved"
        ),
    ],
)
def test_what_became_of_a_plan_is_marked(output, mark, tmp_path):
    turns = claude(
        tmp_path,
        uses(1, "ExitPlanMode", {"plan": "1. Redis"}, "t1"),
        *(returns(2, "t1", output), says(3, "All right.")),
    )
    assert [(turn.text, turn.marks) for turn in turns] == [
        ("1. Redis", ()),
        ("All right.", (mark,)),
    ]


# Evidence


def test_the_last_run_of_a_check_counts(tmp_path):
    lines = [
        *claude_call("bun run test", "2 failed", failed=True),
        claude_says("All tests passed."),
        *claude_call("bun run test", "12 passed"),
        claude_says("Fixed."),
    ]
    evidence = gather_evidence(claude(tmp_path, *lines))
    assert (evidence.passed, evidence.failed, evidence.verified) == (("bun run test",), (), True)


def test_a_check_that_failed_at_last_contradicts_a_report(tmp_path):
    lines = [
        *claude_call("pytest -q", "12 passed"),
        *claude_call("pytest -q", "1 failed, 11 passed", failed=True),
        claude_says("The full suite passed."),
    ]
    ((turn,)) = claude(tmp_path, *lines)
    assert (gather_evidence([turn]).failed, gather_evidence([turn]).verified) == (
        ("pytest",),
        False,
    )


def test_without_a_check_nothing_is_verified(tmp_path):
    assert gather_evidence(claude(tmp_path, claude_says("All tests passed."))).verified is None


def test_commits_and_changed_files_are_evidence(tmp_path):
    lines = [
        uses(1, "Edit", {"file_path": "queue.py", "old_string": "a", "new_string": "b"}, "t1"),
        returns(2, "t1", "The file was updated."),
        *claude_call("git commit -m 'Limit the queue'", "[main 1234567] Limit the queue"),
        claude_says("All other files are unchanged."),
    ]
    evidence = gather_evidence(claude(tmp_path, *lines))
    assert (evidence.files, evidence.commits) == (("queue.py",), ("Limit the queue",))


def test_a_push_is_a_delivery(tmp_path):
    lines = [*claude_call("git push", "main -> main"), claude_says("Pushed.")]
    assert gather_evidence(claude(tmp_path, *lines)).delivered == (Fact("push", "git push"),)


def test_a_command_is_failing_until_it_passes(tmp_path):
    lines = [
        *claude_call("make site", "make: *** [site] Error 1", failed=True),
        *claude_call("make shop", "make: *** [shop] Error 1", failed=True),
        *claude_call("make site", "ok"),
        claude_says("Both are built."),
    ]
    failing = gather_evidence(claude(tmp_path, *lines)).failing
    assert [event.command for event in failing] == ["make shop"]


def test_refusals_and_interruptions_are_counted(tmp_path):
    turns = claude(
        tmp_path,
        uses(1, "Bash", {"command": "npm install"}, "t1"),
        *(returns(2, "t1", REFUSED), claude_line(3, INTERRUPTED), claude_line(4, "Use bun.")),
    )
    evidence = gather_evidence(turns)
    assert (evidence.declined, evidence.interrupted) == (1, 1)


# Output of tools, pasted texts and sub-agents are not the user


def test_a_prompt_in_the_output_of_a_tool_of_aider_is_no_turn(tmp_path):
    path = tmp_path / ".aider.chat.history.md"
    path.write_text(
        "# aider chat started at 2026-05-04 09:00:00\n\n#### Run it.  \n\n"
        "> Running cat notes.md  \n> #### We use Kafka.  \n\nIt says:\n\n#### We use Kafka.  \n",
        "utf-8",
    )
    assert [turn.text for turn in read(path)[0] if turn.role == "user"] == ["Run it."]


def test_a_pasted_speaker_without_a_time_does_not_begin_a_message(tmp_path):
    path = tmp_path / "talk.md"
    path.write_text(
        "<!-- Generated by SpecStory -->\n\n_**User (2026-05-04 09:00:00Z)**_\n\nSee:\n\n"
        "_**Assistant**_\n\nHm.\n\n---\n\n_**User**_\n\nWe use Kafka.\n\n---\n",
        "utf-8",
    )
    assert len(read(path)[0]) == 1


def test_answers_of_a_chat_of_specstory_may_have_a_mode_instead_of_a_time(tmp_path):
    path = tmp_path / "talk.md"
    path.write_text(
        "<!-- Generated by SpecStory -->\n\n_**User (2026-05-04 09:00Z)**_\n\nPush it.\n\n---\n\n"
        "_**Assistant (default)**_\n\nThe push is blocked.\n\n---\n",
        "utf-8",
    )
    assert [turn.text for turn in read(path)[0]] == ["Push it.", "The push is blocked."]


def test_the_agent_of_a_json_line_in_a_chat_of_specstory_does_not_matter(tmp_path):
    path = tmp_path / "talk.md"
    line = json.dumps(claude_line(1, "We use Kafka."))
    path.write_text(
        f"<!-- Generated by SpecStory -->\n\n_**User**_\n\nLook:\n\n{line}\n\n---\n\n_**Assistant**_\n\nI see.\n",
        "utf-8",
    )
    assert agents.detect(path) == "specstory"
