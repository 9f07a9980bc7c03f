"""Replies that say little alone are completed from what they answer."""

import pytest

from bethink.ingest.picks import complete, read_answers, write_reply

OPTIONS = (
    "We can go three ways.\n\n- **A**: keep the scoped package\n- **B**: publish both\n"
    "- **C**: release the CLI as `kit` instead of @kit/cli\n\nWhere should we publish the CLI?"
)
DESIGN = (
    "Nothing else moves: 120 ms on hover, 200 ms on a panel swap.\n\nDoes this match what you want?"
)


@pytest.mark.parametrize(
    ("reply", "before", "expected"),
    [
        pytest.param(
            "C",
            OPTIONS,
            "Option C: release the CLI as `kit` instead of @kit/cli (asked: Where should we publish the CLI?)",
            id="letter",
        ),
        pytest.param(
            "Option C please, but without the docs",
            OPTIONS,
            "Option C: release the CLI as `kit` instead of @kit/cli, please, but without the docs (asked: Where should we publish the CLI?)",
            id="letter with a limit",
        ),
        pytest.param(
            "the second one",
            OPTIONS,
            "Option B: publish both (asked: Where should we publish the CLI?)",
            id="position",
        ),
        pytest.param(
            "do 0.54.0",
            "It adds a feature. Should we release 0.53.1 or 0.54.0?",
            "do 0.54.0 (asked: Should we release 0.53.1 or 0.54.0?)",
            id="version",
        ),
        pytest.param(
            "yes",
            DESIGN,
            "yes (asked: Nothing else moves: 120 ms on hover, 200 ms on a panel swap. Does this match what you want?)",
            id="assent",
        ),
    ],
)
def test_a_reply_is_completed_from_what_it_answers(reply, before, expected):
    found = complete(reply, before)
    assert found is not None and found.settles
    assert write_reply(found) == expected


@pytest.mark.parametrize(
    ("reply", "before"),
    [
        pytest.param("yes", "All tests pass. Want me to commit these changes?", id="commit"),
        pytest.param("go ahead", "Ready for step 4. Shall I proceed?", id="proceed"),
        pytest.param("push it", "The branch is ready.", id="push"),
        pytest.param("Yes it does", "Does it fail after a restart?", id="yes it does"),
        pytest.param("1", "1. Stop and restart\n2. Wait for it\n\nWhich one?", id="step"),
    ],
)
def test_leave_to_go_on_settles_nothing(reply, before):
    found = complete(reply, before)
    assert found is None or not found.settles


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param("2 tests fail now", id="number"),
        pytest.param("The retry of the uploader must never hide an error.", id="sentence"),
    ],
)
def test_a_statement_is_no_reply_to_complete(reply):
    assert complete(reply, OPTIONS) is None


def test_answers_to_an_agents_questions_are_kept_with_the_questions():
    asked = ("The README was moved. Which database should the shop use?", "Which port?")
    turn = f"{asked[0]}\nKeep PostgreSQL\n\n{asked[1]}\n8080"
    assert [write_reply(one) for one in read_answers(turn, asked)] == [
        "Keep PostgreSQL (asked: Which database should the shop use?)",
        "8080 (asked: Which port?)",
    ]
