"""From a conversation to the ideas worth keeping, by the packaged judge."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.ingest.ideas import LASTING_KINDS, read_ideas
from bethink.judge import Judge

REPLY = ("assistant", "Understood.")
PLAIN = [
    ("Watch out: staging is wiped every Sunday night.", "gotcha"),
    ("Careful, the importer drops rows without an id.", "gotcha"),
    ("We switch from the ESP32 to the STM32 because the WiFi stack resets under load.", "decision"),
    ("Always run the linter before you commit.", "preference"),
    ("I prefer small commits with a reason.", "preference"),
    ("We use Jest for unit tests.", "fact"),
    ("Tickets are in Jira under the key SHOP.", "fact"),
    ("We decided to keep the monorepo because releases go together.", "decision"),
    ("We moved billing from PostgreSQL to CockroachDB.", "decision"),
    ("Which database do we use for the orders service?", "question"),
    ("TODO: rotate the signing key before March", "todo"),
]


@pytest.fixture(scope="module")
def reader():
    return Judge(threads=2)


def kinds(reader, *turns):
    return [(idea.kind, idea.text) for idea in read_ideas(turns, reader)]


@pytest.mark.parametrize(("said", "kind"), PLAIN)
def test_a_lasting_statement_is_kept_with_its_kind(reader, said, kind):
    (idea,) = read_ideas([("user", said), REPLY], reader)
    assert (idea.kind, idea.text, idea.firm) == (kind, said, True)
    assert 0 < idea.confidence <= 1


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        pytest.param(
            [("user", "Let's move on to the billing page."), ("assistant", "Understood.")],
            [],
            id="user-let-s-move-billing-page",
        ),
        pytest.param(
            [("user", "ok, thanks"), ("assistant", "Understood.")], [], id="user-ok-thanks"
        ),
        pytest.param(
            [("user", "Go ahead."), ("assistant", "Understood.")],
            [],
            id="user-go-ahead-assistant-understood",
        ),
        pytest.param(
            [("user", "That fixed it."), ("assistant", "Understood.")], [], id="user-fixed"
        ),
        pytest.param(
            [("user", "It works now!"), ("assistant", "Understood.")], [], id="user-works-now"
        ),
        pytest.param(
            [("user", "Show me the diff."), ("assistant", "Understood.")],
            [],
            id="user-show-me-diff",
        ),
        pytest.param(
            [("user", "Perhaps Redis, not sure yet."), ("assistant", "Understood.")],
            [],
            id="user-perhaps-redis-not-sure-yet",
        ),
        pytest.param(
            [
                ("user", "hi, can you fix the failing test?"),
                ("assistant", "Sure! Let me look at the file first."),
                ("assistant", "Now let me run the tests."),
                ("assistant", "I'm updating the fixture, since the message has changed."),
                ("assistant", "I changed the fixture. All 41 tests pass. Want me to commit?"),
                ("user", "yes please"),
                ("assistant", "Committed as `f5cbb41`."),
                ("user", "thanks!"),
            ],
            [],
            id="user-hi-can-fix-failing-test",
        ),
        pytest.param(
            [
                (
                    "user",
                    "> We decided to use Kafka.\n\n```\n# we decided to use RabbitMQ\n```\n2025-01-01 12:00:00 ERROR we decided to use NATS\n",
                ),
                ("system", "We decided to use Kafka."),
                ("tool", "We decided to use Kafka."),
            ],
            [],
            id="user-decided-use-kafka-decided-use-rabbitmq",
        ),
        pytest.param(
            [
                ("user", "Please write the lifetime down in the docs later."),
                ("assistant", "Understood."),
            ],
            [("todo", "Please write the lifetime down in the docs later.")],
            id="user-please-write-lifetime-down-docs-later",
        ),
        pytest.param(
            [
                (
                    "user",
                    "## Next steps\n- Rotate the keys of the gateway\n- [x] Write the changelog\n\n**Root cause:** the lock is per connection.\n\nDecision: we keep SQLite.",
                )
            ],
            [],
            id="user-next-steps-rotate-keys-gateway-x-write",
        ),
        pytest.param(
            [
                (
                    "assistant",
                    "## Next steps\n- Rotate the keys of the gateway\n- [x] Write the changelog\n\n**Root cause:** the lock is per connection.\n\nDecision: we keep SQLite.",
                )
            ],
            [
                ("todo", "Rotate the keys of the gateway"),
                ("conclusion", "Root cause: the lock is per connection."),
                ("decision", "Decision: we keep SQLite."),
            ],
            id="assistant",
        ),
        pytest.param(
            [
                (
                    "user",
                    "Ok, we keep the sessions in Redis for 12 hours. Never log session ids, they are credentials.",
                ),
                ("assistant", "Understood."),
            ],
            [
                ("decision", "Ok, we keep the sessions in Redis for 12 hours."),
                ("preference", "Never log session ids, they are credentials."),
            ],
            id="user-ok-keep-sessions-redis-12-hours-never",
        ),
        pytest.param(
            [
                (
                    "user",
                    "Back to the control board: I changed my mind. We switch from the ESP32 to the STM32 because the WiFi stack resets under load.",
                ),
                ("assistant", "Understood."),
            ],
            [
                (
                    "decision",
                    "We switch from the ESP32 to the STM32 because the WiFi stack resets under load.",
                )
            ],
            id="user-back-control-board-changed-my-mind",
        ),
        pytest.param(
            [
                ("user", "We still have to write the migration for the sessions table."),
                ("assistant", "Understood."),
            ],
            [("todo", "We still have to write the migration for the sessions table.")],
            id="user-still-write-migration-sessions-table",
        ),
        pytest.param(
            [
                (
                    "user",
                    "Let's settle where the sessions live. We will keep sessions in Valkey instead of Redis, because Redis changed its licence. Please add the client to requirements.txt.",
                ),
                (
                    "assistant",
                    "Done: I added valkey==6.1 to requirements.txt, and sessions go to Valkey.",
                ),
            ],
            [
                (
                    "decision",
                    "We will keep sessions in Valkey instead of Redis, because Redis changed its licence.",
                ),
                ("fact", "Please add the client to requirements.txt."),
            ],
            id="user-let-s-settle-where-sessions-live-will",
        ),
        pytest.param(
            [
                ("user", "Put the footer on the to-do list, we do it in the next session."),
                ("assistant", "Understood."),
            ],
            [("todo", "Put the footer on the to-do list, we do it in the next session.")],
            id="user-put-footer-list-next-session",
        ),
        pytest.param(
            [
                ("user", "From now on answer in German and keep it short."),
                ("assistant", "Understood."),
            ],
            [("preference", "From now on answer in German and keep it short.")],
            id="user-now-answer-german-keep-short",
        ),
        pytest.param(
            [
                (
                    "user",
                    "We decided to ship on Tuesdays only, because support is thin on Fridays. Remind me to update the runbook.",
                ),
                ("assistant", "Understood."),
            ],
            [
                (
                    "decision",
                    "We decided to ship on Tuesdays only, because support is thin on Fridays.",
                ),
                ("todo", "Remind me to update the runbook."),
            ],
            id="user-decided-ship-tuesdays-only-because",
        ),
        pytest.param(
            [("user", "We go with MySQL for reporting. We stay with Postgres for orders.")],
            [
                ("decision", "We go with MySQL for reporting."),
                ("decision", "We stay with Postgres for orders."),
            ],
            id="user-go-mysql-reporting-stay-postgres-orders",
        ),
        pytest.param(
            [
                ("user", "Use Redis for sessions. Remind me to rotate the signing keys next week."),
                ("assistant", "Sessions are stored in Redis now. They live for 30 minutes."),
            ],
            [
                ("decision", "Use Redis for sessions."),
                ("todo", "Remind me to rotate the signing keys next week."),
            ],
            id="user-use-redis-sessions-remind-me-rotate",
        ),
        pytest.param(
            [
                ("user", "Will this be removed next month? Add a filter to the backlog page."),
                (
                    "assistant",
                    "The page has a filter for the status now. I added an index on the status column.",
                ),
            ],
            [("fact", "Add a filter to the backlog page.")],
            id="user-will-removed-next-month-add-filter",
        ),
        pytest.param(
            [
                ("user", "Go ahead."),
                (
                    "assistant",
                    "I've switched the queue from RabbitMQ to SQS because RabbitMQ lost messages on restart.",
                ),
            ],
            [
                (
                    "decision",
                    "I've switched the queue from RabbitMQ to SQS because RabbitMQ lost messages on restart.",
                )
            ],
            id="user-go-ahead-assistant",
        ),
        pytest.param(
            [("user", "The tiers are Solo, Crew and Fleet. Marketing signed it off today.")],
            [("fact", "The tiers are Solo, Crew and Fleet. Marketing signed it off today.")],
            id="user-tiers-solo-crew-fleet-marketing-signed",
        ),
    ],
)
def test_only_what_lasts_becomes_an_idea(reader, turns, expected):
    assert kinds(reader, *turns) == expected


def test_an_idea_names_its_entities(reader):
    (idea,) = read_ideas([("user", "we decided to use PostgreSQL for the `OrderService`")], reader)
    named = {(entity.name, entity.type) for entity in idea.entities}
    assert named == {("PostgreSQL", "technology"), ("OrderService", "symbol")}


def test_ideas_are_read_from_the_given_turn_on(reader):
    turns = [("user", "We use Jest for unit tests."), REPLY] * 2
    turns[2] = ("user", "Tickets are in Jira under the key SHOP.")
    assert [idea.turn for idea in read_ideas(turns, reader, first=2)] == [2]


@pytest.mark.parametrize(
    ("turns", "asked", "expected"),
    [
        pytest.param(
            [
                ("user", "How long do sessions live?"),
                (
                    "assistant",
                    "Sessions live thirty minutes. The limit stands in config/session.rb.",
                ),
                ("user", "Add a test for the refund path."),
                ("assistant", "I added three cases to the refund tests. All of them pass now."),
            ],
            ("question", "todo"),
            [],
            id="how-long-sessions-live",
        ),
        pytest.param(
            [
                ("user", "we decided to use port 8080 for the api"),
                ("assistant", "Noted."),
                ("user", "so we decided to use port 8080 for the api"),
                ("user", "we decided to use port 9090 for the metrics"),
            ],
            (),
            ["8080", "9090"],
            id="decided-use-port-8080-api",
        ),
        pytest.param(
            [
                ("user", "Which to-dos do we have?"),
                (
                    "assistant",
                    "**Pending to-dos:**\n\n| # | Title | Area | Age |\n|---|---|---|---|\n| 1 | Move the invoice numbering into the database | api | 14d |\n| 2 | Add a dark theme to the admin pages | ui | today |\n\n| Column | Meaning |\n|---|---|\n| area | the part of the shop that a to-do belongs to |\n",
                ),
                ("user", "Thanks. How long do sessions live?"),
                (
                    "assistant",
                    "Next steps:\n\n- read the session store\n\nSessions live thirty minutes.",
                ),
                ("user", "Fine."),
            ],
            ("todo",),
            ["Move the invoice numbering into the database", "Add a dark theme to the admin pages"],
            id="which-dos",
        ),
        pytest.param(
            [
                (
                    "user",
                    "Can you answer this issue?\n\n## Steps\n\n> We decided to drop PostgreSQL.\n\n- The team uses Oracle.\n- Always deploy on Fridays.",
                ),
                ("assistant", "Understood."),
            ],
            ("fact", "preference", "decision"),
            [],
            id="can-answer-issue-steps-decided-drop",
        ),
        pytest.param(
            [("user", "Could we drop the old queue on Friday?"), ("assistant", "ok")],
            ("todo",),
            [],
            id="could-drop-old-queue-friday",
        ),
        pytest.param(
            [
                ("user", "Where do the carts live? I think about moving them into the database."),
                ("assistant", "Let me look."),
            ],
            ("todo", "decision"),
            [],
            id="where-carts-live-think-about-moving-them",
        ),
    ],
)
def test_only_open_items_become_ideas(reader, turns, asked, expected):
    found = [text for kind, text in kinds(reader, *turns) if not asked or kind in asked]
    assert len(found) == len(expected), found
    assert all(word in text for word, text in zip(expected, found, strict=True)), found


@pytest.mark.parametrize(
    ("said", "left"),
    [
        pytest.param(
            "Branch is 3 ahead of origin — push it when you're ready.",
            True,
            id="branch-3-ahead-origin-push-when-re-ready",
        ),
        pytest.param(
            "The migration still needs to run on staging.",
            True,
            id="migration-still-needs-run-staging",
        ),
        pytest.param(
            "The migration of the carts is still to do.", True, id="migration-carts-still"
        ),
        pytest.param("Want me to commit this as well?", False, id="want-me-commit-well"),
        pytest.param(
            "The pending request limit is counted per user.",
            False,
            id="pending-request-limit-counted-per-user",
        ),
        pytest.param(
            "Now amending the commit, which is not pushed.",
            False,
            id="now-amending-commit-which-not-pushed",
        ),
        pytest.param(
            "Open points: the retry helper needs a test.",
            True,
            id="open-points-retry-helper-needs-test",
        ),
        pytest.param("The admin page is not done yet.", True, id="admin-page-not-done-yet"),
        pytest.param(
            "Two items of the audit are still open: the demo key and the log level.",
            True,
            id="items-still-open",
        ),
        pytest.param(
            "The branch is ready to push whenever you want.", True, id="branch-ready-to-push"
        ),
        pytest.param("マージ後にステージングで確認してください。", True, id="asks-in-japanese"),
        pytest.param("下一步：重新创建数据库索引", True, id="next-step-in-chinese"),
    ],
)
def test_the_last_report_leaves_its_open_work_as_a_todo(reader, said, left):
    report = f"I cached the carts in Redis. {said}"
    turns = [("user", "Cache the carts."), ("assistant", report)]
    assert any(said in text for kind, text in kinds(reader, *turns) if kind == "todo") == left


@pytest.mark.parametrize(
    ("lead", "item"),
    [
        pytest.param("Committed as `f5cbb41`. Next up:", "Publish the beta package", id="next-up"),
        pytest.param("## Stashed for later", "Port fix of the viewer", id="stashed-for-later"),
        pytest.param("## Next up after the login", "Plan the sharing phase", id="next-up-after"),
        pytest.param("The index is gone. Then you need to:", "Create the index", id="you-need-to"),
        pytest.param("索引没了，然后你需要：", "重新创建数据库索引", id="chinese"),
    ],
)
def test_a_list_of_what_is_left_gives_todos(reader, lead, item):
    turns = [("user", "Cache the carts."), ("assistant", f"{lead}\n\n- {item}")]
    assert ("todo", item) in kinds(reader, *turns)


@pytest.mark.parametrize(
    ("said", "left"),
    [
        pytest.param(
            "The pull request flags the batching of large pushes as a follow-up.",
            True,
            id="as-a-follow-up",
        ),
        pytest.param(
            "A strict script policy needs nonces and is best done as a separate change.",
            True,
            id="as-a-separate-change",
        ),
        pytest.param(
            "The exit code after Ctrl+C is wrong, already a `TODO` in the shell script.",
            True,
            id="already-a-todo",
        ),
        pytest.param("Fixed in a follow-up commit this morning.", False, id="follow-up-commit"),
        pytest.param("This can be addressed separately.", False, id="without-its-subject"),
    ],
)
def test_what_an_agent_defers_stays_open(reader, said, left):
    """A deferral counts anywhere in the session, other announcements only in its last report."""
    later = [("user", "Now sort the carts."), ("assistant", "The carts are sorted by date.")]
    turns = [("user", "Cache the carts."), ("assistant", f"I cached the carts. {said}"), *later]
    assert any(said in text for kind, text in kinds(reader, *turns) if kind == "todo") == left


PIECES = [said for said, _ in PLAIN] + [
    "yes",
    "no",
    "go with 2",
    "\x00\ud800",
    "我们决定使用PostgreSQL。为什么？",
    "why?",
    "It works now.",
    "## Next steps\n- rotate the keys\n- [ ] write docs",
    "Options:\n\n1. use Redis\n2. use Kafka",
    "Root cause: the lock is per connection. That fixed it.",
    "```\ncode\n```",
    "Want me to switch the ids to random ones?",
]
ROLES = st.sampled_from(["user", "assistant", "assistant", "system"])
SAID = st.lists(st.sampled_from(PIECES) | st.text(max_size=12), max_size=4).map("\n\n".join)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(ROLES, SAID), max_size=8))
def test_ideas_use_the_words_of_their_turns(reader, turns):
    found = read_ideas(turns, reader)
    assert [idea.turn for idea in found] == sorted(idea.turn for idea in found)
    assert len({idea.text for idea in found}) == len(found)
    for idea in found:
        role, text = turns[idea.turn]
        assert role in ("user", "assistant") and idea.kind in (
            *LASTING_KINDS,
            "conclusion",
            "question",
            "todo",
        )
        assert len(idea.text) <= 400
        assert set(re.findall(r"\w+", idea.text)) <= set(re.findall(r"\w+", text))


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("never open PRs against release!!!", id="forbids"),
        pytest.param(
            "okay then let's start releasing the cli as kit instead of @kit/cli", id="choice"
        ),
        pytest.param("when working with json outputs, never use grep, but rather jq", id="rule"),
        pytest.param("Next time you made changes to the code, let me commit.", id="next time"),
    ],
)
@pytest.mark.parametrize(
    "reply",
    [
        pytest.param("Understood.", id="acknowledged"),
        pytest.param(
            "Done. I changed it everywhere and pushed the branch; CI is green.", id="done"
        ),
        pytest.param(
            "I would rather not: it breaks the docs. Shall I go on anyway?", id="objected"
        ),
    ],
)
def test_an_instruction_is_kept_however_the_agent_replies(reader, said, reply):
    ideas = read_ideas([("user", said), ("assistant", reply)], reader)
    assert [one.text for one in ideas if one.kind in ("decision", "preference")] == [said]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        pytest.param("We decided to use SQLite for the index.", "decision", id="decision"),
        pytest.param(
            "The key insight is that WiFi blocks the relay loop.", "conclusion", id="conclusion"
        ),
        pytest.param("The issue is that the TCXO needs 5 ms to settle.", "problem", id="problem"),
        pytest.param("Fixed by raising the TCXO delay to 10 ms.", "solution", id="solution"),
        pytest.param("Need to implement the fail-safe for the boiler.", "todo", id="todo"),
    ],
)
def test_an_agent_states_an_intent_plainly(reader, said, kind):
    (idea,) = read_ideas([("user", "what is the state?"), ("assistant", said)], reader)
    assert (idea.kind, idea.text) == (kind, said)


@pytest.mark.parametrize(
    ("answer", "closed"),
    [
        pytest.param("The orders service uses PostgreSQL 16.", True, id="answered"),
        pytest.param("Understood.", False, id="acknowledged"),
        pytest.param("I don't know which database the orders service uses.", False, id="unknown"),
    ],
)
def test_a_question_is_closed_by_the_next_turn_that_answers_it(reader, answer, closed):
    question = "Which database do we use for the orders service?"
    ideas = read_ideas([("user", question), ("assistant", answer)], reader)
    assert [one.closed for one in ideas if one.kind == "question"] == [closed]


@pytest.mark.parametrize(
    ("turns", "kind"),
    [
        pytest.param(
            [
                ("user", "How far does the radio reach?"),
                ("assistant", "About 300 m with WiFi and 2 km without."),
            ],
            "question",
            id="amount",
        ),
        pytest.param(
            [
                ("user", "Half of the packets are lost."),
                ("assistant", "The issue is that the TCXO needs 5 ms to settle."),
                ("user", "hm"),
                ("assistant", "Fixed by raising the TCXO delay to 10 ms; the test passes now."),
            ],
            "problem",
            id="fix",
        ),
    ],
)
def test_what_a_later_turn_settles_is_closed(reader, turns, kind):
    assert [idea.closed for idea in read_ideas(turns, reader) if idea.kind == kind][-1]


def test_work_that_a_user_says_is_needed_is_a_todo(reader):
    turns = [
        ("user", "Need to implement the fail-safe watchdog before the first test."),
        ("assistant", "Yes, I noted that."),
    ]
    assert ("todo", turns[0][1]) in kinds(reader, *turns)


def test_an_option_that_the_agent_only_offers_is_no_idea(reader):
    turns = [
        ("user", "How do we publish?"),
        (
            "assistant",
            "A. Publish the CLI as kit, because npm rejects scoped names.\n"
            "B. Keep the scope and add an alias, because users know it.\n\nWhich do you prefer?",
        ),
    ]
    assert kinds(reader, *turns) == []


def test_a_short_rule_comes_with_the_sentence_before_it(reader):
    turns = [("user", "I run the review tool myself. Never do that again on your own.")]
    assert any("review tool myself. Never" in text for _, text in kinds(reader, *turns))


@pytest.mark.parametrize("thanks", ["perfect, thank you!", "great, thanks a lot"])
def test_thanks_are_not_kept(reader, thanks):
    turns = [
        ("user", "Fix the date picker."),
        ("assistant", "Fixed; tests pass."),
        ("user", thanks),
    ]
    assert thanks not in [idea.text for idea in read_ideas(turns, reader)]


def test_an_answer_that_the_user_acknowledges_closes_the_question(reader):
    turns = [
        ("user", "what does `git bisect` do?"),
        ("assistant", "It searches the history by halves for a change."),
        ("user", "cool, thanks"),
    ]
    assert [(idea.kind, idea.closed) for idea in read_ideas(turns, reader)] == [("question", True)]


def test_a_postponed_task_says_what_it_is(reader):
    turns = [
        ("user", "Someone has to tell the Danish supplier. I'll do it next week, remind me"),
        ("assistant", "I'll note that as open."),
    ]
    assert ("todo", turns[0][1]) in kinds(reader, *turns)


def test_an_accepted_offer_of_a_test_is_no_decision(reader):
    turns = [
        ("user", "Stream the file."),
        ("assistant", "Done. Shall I also write a test?"),
        ("user", "yes please"),
        ("assistant", "Added a test; it passes."),
    ]
    assert "decision" not in [kind for kind, _ in kinds(reader, *turns)]


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("Fix: Applied `cargo fmt` to 8 files", id="label"),
        pytest.param("Added `ensureAuth()`, which runs `npm whoami` and fails fast.", id="bare"),
        pytest.param("Cart page fixes: Used `as_ref()` to avoid moved values", id="lead"),
    ],
)
def test_what_an_agent_reports_of_its_own_edits_is_not_kept(reader, said):
    assert kinds(reader, ("user", "the build is red"), ("assistant", said)) == []


def test_a_sentence_and_the_decision_after_it_are_one_idea(reader):
    said = "The only problem left is the ratchet. We decided to lower it to 55 %."
    found = kinds(reader, ("user", said), REPLY)
    assert [text for _, text in found if "ratchet" in text] == [said]


def test_the_users_words_are_kept_though_an_agent_repeats_them(reader):
    said = "We use Valkey instead of Redis for the carts."
    found = kinds(reader, ("user", said), ("assistant", f"Got it. {said}"))
    assert [text for _, text in found] == [said]
    assert read_ideas([("user", said), ("assistant", f"Got it. {said}")], reader)[0].turn == 0


def test_an_answer_that_picks_the_next_step_is_no_decision(reader):
    question = "What would you like to do with this todo?"
    turns = [("assistant", question), ("user", f"{question}\nWork on it now"), REPLY]
    assert read_ideas(turns, reader, asked={1: (question,)}) == []


def test_an_idea_of_an_earlier_page_is_not_kept_again(reader):
    said = "The gateway drops idle sockets after 60 seconds, so the pool must ping."
    turns = [("user", "why does it fail?"), ("assistant", said)]
    (idea,) = read_ideas(turns, reader)
    assert read_ideas(turns, reader, known=[(idea.kind, "assistant", said)]) == []


def test_another_number_is_another_idea(reader):
    said = "The gateway drops idle sockets after 60 seconds, so the pool must ping."
    turns = [("user", "why does it fail?"), ("assistant", said)]
    (idea,) = read_ideas(turns, reader)
    other = said.replace("60", "90")
    assert len(read_ideas(turns, reader, known=[(idea.kind, "assistant", other)])) == 1


def test_a_short_reply_that_nothing_completes_is_not_kept(reader):
    turns = [("assistant", "Two lists.\n\nQuality gates."), ("user", "Not mine."), REPLY]
    assert read_ideas(turns, reader) == []


@pytest.mark.parametrize(
    "said",
    [
        "yes, fix it with all reviews and update the PR",
        "create a branch and clean up the docs and open a PR for my review",
        "run the full test on incus again and write a report",
    ],
)
def test_what_is_asked_for_once_is_no_preference(reader, said):
    found = kinds(reader, ("user", said), REPLY)
    assert not {"preference", "decision"} & {kind for kind, _ in found}


@pytest.mark.parametrize(
    "said",
    [
        "Never swallow the error: the problem is that nobody sees it.",
        "From now on the error page must not fail without a log line.",
        "So couldn't there be one number in the store? Never save the page of single books. And instead have one pair of numbers that change as the user turns pages.",
    ],
)
def test_a_rule_for_every_time_is_no_problem(reader, said):
    found = kinds(reader, ("user", said), REPLY)
    assert found and "problem" not in {kind for kind, _ in found}
