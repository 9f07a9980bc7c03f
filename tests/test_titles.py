"""Names and summaries of topics: what they say, that they say nothing else, and that no text breaks them."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.agents.base import Fact, Task
from bethink.ingest.digest import compose_digest, follow
from bethink.ingest.titles import make_session_title as session_title
from bethink.ingest.titles import make_title as name
from bethink.ingest.titles import name_picks, only_asks, summarise
from bethink.recall.shape import tokens

REPORT = "I added a retry with backoff to the payment worker. All 40 tests pass."
COMMIT = Fact("commit", "Retry failed charges with backoff")
SHIPPED = Fact("commit", "Round prices once in the formatter")
IDEAS = [
    ("decision", "The retry uses exponential backoff with five attempts.", False),
    ("decision", "A declined card is never retried.", False),
    ("solution", "The worker acknowledges a message only after the charge is stored.", False),
    ("question", "Who reads the dead letter queue?", True),
    ("todo", "Add an alert for the dead letter queue.", True),
    ("context", "The broker restarts every night.", False),
]
TALK = [
    ("user", "Please add retry logic to the payment worker."),
    (
        "assistant",
        "The payment worker acknowledges a message before the charge is stored. I added a retry with backoff.",
    ),
    ("user", "Should the retry also cover a declined card?"),
    ("assistant", "No, a declined card is final."),
]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(
            "Please add retry logic to the payment worker, it drops messages when the broker restarts.",
            "Add retry logic to the payment worker",
            id="please-add-retry-logic-payment-worker-drops",
        ),
        pytest.param(
            "can you fix the flaky test in tests/test_queue.py?",
            "Fix the flaky test in tests/test_queue.py",
            id="can-fix-flaky-test-tests/test_queue.py",
        ),
        pytest.param(
            "ok, next task: the documentation site needs a dark theme",
            "The documentation site needs a dark theme",
            id="ok-next-task-documentation-site-needs-dark",
        ),
        pytest.param(
            "hey, could you please take a look at the ingress certificates? They expire tomorrow.",
            "Take a look at the ingress certificates",
            id="hey-could-please-take-look-ingress",
        ),
        pytest.param(
            "I'd like to rename UserStore to AccountStore everywhere",
            "Rename UserStore to AccountStore everywhere",
            id="d-like-rename-userstore-accountstore",
        ),
        pytest.param(
            "is there an easy way to show upload progress including throughput? or is it a huge effort?",
            "Is there an easy way to show upload progress including…",
            id="there-easy-way-show-upload-progress",
        ),
        pytest.param(
            "how can I profile the import of a large spreadsheet",
            "How can I profile the import of a large spreadsheet",
            id="how-can-profile-import-large-spreadsheet",
        ),
        pytest.param(
            "We need to migrate the session cache from Redis to PostgreSQL because the cluster is too expensive",
            "Migrate the session cache from Redis to PostgreSQL",
            id="need-migrate-session-cache-redis-postgresql",
        ),
        pytest.param(
            "thanks! by the way, the login page lost its footer on mobile",
            "The login page lost its footer on mobile",
            id="thanks-way-login-page-lost-footer-mobile",
        ),
        pytest.param(
            "look at https://github.com/acme/shop/pull/53 and tell me about the locking",
            "Look at shop/pull/53 and tell me about the locking",
            id="look-https-github.com/acme/shop/pull/53-tell",
        ),
        pytest.param(
            "read /home/me/projects/acme/shop/src/billing/invoice.py and explain the rounding",
            "Read invoice.py and explain the rounding",
            id="read",
        ),
        pytest.param(
            "what does `pack-reused` mean exactly?",
            "What does pack-reused mean exactly",
            id="what-pack-reused-mean-exactly",
        ),
        pytest.param(
            "Kannst du bitte die Anmeldung mit OAuth im Backend einbauen?",
            "Kannst du bitte die Anmeldung mit OAuth im Backend einbauen",
            id="kannst-du-bitte-die-anmeldung-mit-oauth-im",
        ),
        pytest.param(
            "Peux-tu corriger le calcul de la TVA ?",
            "Peux-tu corriger le calcul de la TVA",
            id="peux-tu-corriger-le-calcul-de-la-TVA",
        ),
        pytest.param(
            "¿Puedes arreglar el cálculo de los impuestos?",
            "Puedes arreglar el cálculo de los impuestos",
            id="puedes-arreglar-el-calculo-de-los-impuestos",
        ),
        pytest.param(
            "支付服务在消息队列重启时会丢失消息，请加上重试逻辑。",
            "支付服务在消息队列重启时会丢失消息",
            id="cjk",
        ),
    ],
)
def test_a_topic_is_named_after_the_first_request(asked, expected):
    assert name([("user", asked), ("assistant", "I look into it.")]) == expected


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        pytest.param(
            [
                ("user", "hi"),
                ("assistant", "Hello!"),
                ("user", "ok lets get back to main"),
                ("assistant", "Done."),
                ("user", "the checkout page shows prices without tax"),
                ("assistant", "The formatter ignores the tax rate."),
            ],
            "The checkout page shows prices without tax",
            id="user-hi",
        ),
        pytest.param(
            [("assistant", "The cache is cold after every deployment.")],
            "The cache is cold after every deployment",
            id="assistant",
        ),
        pytest.param(
            [
                ("user", "```\nfoo(bar)\n```"),
                ("assistant", "The deployment script calls the linter twice."),
            ],
            "The deployment script calls the linter twice",
            id="user-foo-bar",
        ),
    ],
)
def test_a_topic_name_skips_turns_that_say_little(turns, expected):
    assert name(turns) == expected


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        pytest.param(
            [
                ("user", "can you take a look at this?"),
                ("assistant", "Let me look. The PriceFormatter rounds twice."),
                ("user", "fix it"),
            ],
            "The PriceFormatter rounds twice",
            id="can-take-look",
        ),
        pytest.param(
            [("user", "8"), ("assistant", "# Plan: Round prices once\n\nFirst …")],
            "Round prices once",
            id="8",
        ),
        pytest.param(
            [("user", "ship it"), ("assistant", "Pushed.")],
            "Round prices once in the formatter",
            id="ship",
        ),
        pytest.param(
            [("user", "3 but on this branch"), ("assistant", "Ok."), ("user", "only euros here")],
            "Only euros here",
            id="3-but-branch",
        ),
        pytest.param(
            [
                ("user", "have a look at this:\n\n## Bug\nThe ledger loses cents\n"),
                ("user", "make the rounding configurable"),
            ],
            "Make the rounding configurable",
            id="look-bug-ledger-loses-cents",
        ),
        pytest.param(
            [
                (
                    "user",
                    "Implement the following plan:\n\n# Plan: Round prices once\n\n## Context\n",
                )
            ],
            "Round prices once",
            id="implement-following-plan-plan-round-prices",
        ),
    ],
)
def test_a_session_title_uses_plans_reports_or_commits(turns, expected):
    assert session_title(turns, [SHIPPED] if turns[0][1] == "ship it" else []) == expected


@pytest.mark.parametrize(
    ("listed", "reply", "expected"),
    [
        pytest.param(
            "| # | Title | Area |\n|---|---|---|\n| 1 | Cache the carts | api |\n| 2 | Round prices (A-1) once | ui |\n",
            "2 seems like a good one",
            "2 (Round prices (A-1) once) seems like a good one",
            id="title-area-1-cache-carts-api-2-round-prices",
        ),
        pytest.param(
            "1. **Cache the carts**: slow today\n2. Round prices once\n",
            "can we handle #1 quickly?",
            "can we handle #1 (Cache the carts: slow today) quickly?",
            id="1-cache-carts-slow-today-2-round-prices-once",
        ),
        pytest.param(
            "### Option A: Use Redis\n\nFast.\n\n### Option B: Use PostgreSQL\n",
            "A for carts. Orders should do B instead.",
            "A (Use Redis) for carts. Orders should do B (Use PostgreSQL) instead.",
            id="option-use-redis-fast-option-B-use",
        ),
        pytest.param(
            "1. Cache the carts\n2. Round prices once\n",
            "ok, 2",
            "ok, 2 (Round prices once)",
            id="1-cache-carts-2-round-prices-once-ok-2",
        ),
        pytest.param(
            "1. Cache the carts\n2. Round prices once\n",
            "2 tests fail now",
            "2 tests fail now",
            id="1-cache-carts-2-round-prices-once-2-tests-fail-now",
        ),
        pytest.param(
            "1. Cache the carts\n2. Round prices once\n",
            "do 3",
            "do 3",
            id="1-cache-carts-2-round-prices-once-3",
        ),
        pytest.param("Which of them?", "2", "2", id="which-them"),
        pytest.param(
            "1. [ ] Cache the carts\n2. [ ] Round prices once\n",
            "2",
            "2 (Round prices once)",
            id="1-cache-carts-2-round-prices-once-2",
        ),
        pytest.param(
            "- [ ] Cache the carts\n- [ ] Round prices once\n",
            "2",
            "2 (Round prices once)",
            id="cache-carts-round-prices-once",
        ),
    ],
)
def test_a_picked_list_item_is_named_beside_its_number(listed, reply, expected):
    assert name_picks("user", reply, [("assistant", listed)]) == expected


@pytest.mark.parametrize(
    "pasted",
    [
        pytest.param(
            "```python\nretry = backoff(worker)\n```\nthe payment worker never stops retrying",
            id="python-retry-backoff-worker-payment",
        ),
        pytest.param(
            "❯ npm run build --verbose\nUsername for registry: x\nERR! code 1\n\nthe payment worker never stops retrying",
            id="npm-run-build-verbose-username-registry",
        ),
        pytest.param(
            "error: sync: push target refs: 500\n\nthe payment worker never stops retrying",
            id="error-sync-push-target-refs-500-payment",
        ),
        pytest.param(
            '2026-03-02T09:00:00Z level=info msg="attempt 4"\n2026-03-02T09:00:09Z level=info msg="attempt 5"\n\nthe payment worker never stops retrying',
            id="2026-03-02T09-00-00Z-level-info-msg",
        ),
        pytest.param(
            '    File "worker.py", line 3\n        raise Retry\n\nthe payment worker never stops retrying',
            id="file-worker.py-line-3-raise-retry",
        ),
        pytest.param(
            "go run ./cmd/worker --attempts 5 \\\n  --verbose $BROKER\n\nthe payment worker never stops retrying",
            id="go-run-cmd/worker-attempts-5-verbose",
        ),
    ],
)
def test_pasted_code_or_output_gives_no_name(pasted):
    turns = [("user", pasted), ("assistant", "It counts attempts per process.")]
    assert name(turns) == "The payment worker never stops retrying"
    # What may be pasted names a topic, but is not told as what the user asked.
    assert summarise(turns) == "Focus: It counts attempts per process"


@pytest.mark.parametrize(
    "turns",
    [
        pytest.param([], id="empty"),
        pytest.param([("user", "")], id="user-empty"),
        pytest.param([("user", "  \n"), ("assistant", "")], id="user-blank"),
    ],
)
def test_empty_turns_have_no_title(turns):
    assert name(turns) == session_title(turns) == summarise(turns) == ""


def test_code_alone_names_a_topic():
    assert name([("user", "```\nPriceFormatter(rounding=2)\n```")])


def test_a_session_title_is_longer_than_a_topic_name():
    said = "migrate the session cache from Redis to PostgreSQL with zero downtime for customers in Europe"
    turns = [("user", said)]
    assert len(name(turns).split()) <= 10 < len(session_title(turns).split()) <= 12


SUMMARY_HAS_LINE = [
    "Focus: Please add retry logic to the payment worker; Should the retry also cover a declined card?",
    "Done: I added a retry with backoff",
    "Decisions: The retry uses exponential backoff with five attempts; A declined card is never retried",
    "Conclusions: The worker acknowledges a message only after the charge is stored",
    "Open: Who reads the dead letter queue?; Add an alert for the dead letter queue",
]


def test_a_summary_has_a_line_per_kind_of_idea():
    assert summarise(TALK, IDEAS).splitlines() == SUMMARY_HAS_LINE


def test_an_answered_question_is_left_out_of_a_summary():
    answered = summarise(TALK, [("question", "Who reads the dead letter queue?", False)])
    assert answered.startswith("Focus: ") and "dead letter" not in answered


def test_a_summary_says_each_thing_once():
    said = ("We use PostgreSQL", "We use pgvector", "We use  PostgreSQL")
    told = summarise([], [("decision", text, False) for text in said])
    assert told == "Decisions: We use PostgreSQL; We use pgvector"


def test_a_summary_keeps_the_newest_of_many_ideas():
    rule = "Rule {0} says that orders of group {0} are shipped from warehouse {0}"
    ideas = [("decision", f"{rule.format(number)}.", False) for number in range(40)]
    lines = summarise(TALK, [*ideas, *IDEAS[2:]]).splitlines()
    (line,) = [line for line in lines if line.startswith("Decisions")]
    kept = [int(number) for number in re.findall(r"Rule (\d+)", line)]
    assert kept == list(range(kept[0], 40)) and len(kept) >= 2
    assert all(rule.format(number) in line for number in kept)


def test_a_summary_of_long_ideas_is_cut():
    long = "the importer decodes every cell of a spreadsheet " * 30
    ideas = [("decision", long, False), ("conclusion", f"so {long}", False)]
    found = summarise(
        [("user", f"please speed it up: {long}")], [*ideas, ("question", f"why {long}", True)]
    )
    assert len(found) <= 600
    heads = [line.partition(":")[0] for line in found.splitlines()]
    assert heads == ["Focus", "Decisions", "Conclusions", "Open"]
    assert all(line.endswith("…") for line in found.splitlines())


TEXT = st.lists(
    st.sampled_from(
        [
            "please",
            "can you",
            "add",
            "PriceFormatter",
            "src/tax/rate.py",
            "https://a.org/b/c?d#e",
            "```\ncode()\n```",
            "\n- ",
            "\n# ",
            "`x y`",
            "**bold**",
            "[a](b)",
            "because",
            "so that",
            "?",
            ". ",
            "支付",
            "。",
            "über",
            "¿",
            "\x00",
            "🎉",
            "42",
            "--flag",
            "$HOME",
            "if we",
            "the",
            "of",
            "\n\n",
            "'",
            '"',
            "…",
        ]
    ),
    max_size=25,
).map(" ".join)
TEXT |= st.text(max_size=80)
TURNS = st.lists(st.tuples(st.sampled_from(["user", "assistant"]), TEXT), max_size=8)
KINDS = st.sampled_from(["decision", "solution", "question", "todo", "odd"])
HEADS = r"(?m)^(Focus|Done|Decisions|Conclusions|Open): "


@given(TURNS, st.lists(st.tuples(KINDS, TEXT, st.booleans()), max_size=6))
@settings(max_examples=100, deadline=None)
def test_titles_use_only_words_of_the_turns(turns, ideas):
    said = " ".join([text for _, text in turns] + [text for _, text, _ in ideas]).lower()
    title, summary = name(turns), summarise(turns, ideas)
    assert len(title.split()) <= 10 and len(title) <= 72 and "\n" not in title
    assert len(summary) <= 600 and len(summary.splitlines()) <= 5
    assert all(re.match(HEADS + r"\S", line) for line in summary.split("\n") if line)
    told = f"{title} {re.sub(HEADS, '', summary)}".lower()
    assert not {word for word in re.findall(r"\w+", told) if word not in said}
    assert (name(turns), summarise(turns, ideas)) == (title, summary)


def digest(*turns, work=(), **more):
    """What was asked, done and left; what tools did, they did before the last turn."""
    lines = compose_digest(follow({}, turns, [*[()] * (len(turns) - 1), work], **more))
    return lines["asked"], lines["done"], lines["left"]


ASKED = ("user", "hey, can you add retry logic to the payment worker? It drops messages.")
ASKED_FOR = "add retry logic to the payment worker?"
ANSWERED = ("assistant", REPORT)
DELIVERED = f"{COMMIT.name}; I added a retry with backoff to the payment worker"


@pytest.mark.parametrize(
    ("answer", "work", "done", "left"),
    [
        pytest.param(
            REPORT,
            (),
            "I added a retry with backoff to the payment worker",
            "",
            id="report-added-retry-backoff-payment-worker",
        ),
        pytest.param(REPORT, (COMMIT,), DELIVERED, "not pushed", id="report-commit"),
        pytest.param(
            "Committed as `602c11e`. Want me to push and open a PR?",
            (COMMIT, Fact("pull request", "#7")),
            f"PR #7: {COMMIT.name}; Committed as `602c11e`",
            "push and open a PR; PR #7 open",
            id="committed-602c11e-want-me-push-open-PR",
        ),
        pytest.param(
            f"{REPORT}\n\n## Next steps\n\n- Alert on the dead letter queue\n- Rotate the key\n",
            (),
            "I added a retry with backoff to the payment worker",
            "Alert on the dead letter queue; Rotate the key",
            id="report-next-steps-alert-dead-letter",
        ),
        pytest.param(
            f"{REPORT} The migration is not merged yet.",
            (COMMIT,),
            DELIVERED,
            "The migration is not merged yet; not pushed",
            id="report-migration-not-merged-yet",
        ),
        pytest.param(
            "Now wiring the backoff into the worker.",
            (),
            "",
            "announced: wiring the backoff into the worker",
            id="now-wiring-backoff-into-worker",
        ),
        pytest.param(
            "It fails.", (Fact("failed", "make test"),), "", "make test fails", id="fails"
        ),
        pytest.param(
            "The worker is fine.",
            (Fact("failed", "make test"), Fact("passed", "make test")),
            "",
            "",
            id="worker-fine",
        ),
        pytest.param("Noted, the docs follow.", (), "", "", id="noted-docs-follow"),
        pytest.param(
            "Ok.",
            (Fact("edit", "src/worker.py"), Fact("edit", "api.py")),
            "edited worker.py, api.py",
            "no commit seen of worker.py, api.py",
            id="ok",
        ),
        pytest.param(
            REPORT,
            (Fact("edit", "src/worker.py"),),
            "I added a retry with backoff to the payment worker",
            "no commit seen of worker.py",
            id="report-fact",
        ),
        pytest.param(
            "Done: I added a retry to the payment worker, which is now paging.",
            (),
            "I added a retry to the payment worker, which is now paging",
            "",
            id="done-added-retry-payment-worker-which",
        ),
        pytest.param(
            "The docs of the worker are still to do.",
            (),
            "",
            "The docs of the worker are still to do",
            id="docs-worker-still",
        ),
        pytest.param(
            "Will do. I should have asked for this one already, sorry.",
            (),
            "",
            "",
            id="will-should-asked-one-already-sorry",
        ),
        pytest.param(
            f"{REPORT} All done.",
            (),
            "I added a retry with backoff to the payment worker",
            "nothing",
            id="report-all-done",
        ),
        pytest.param(
            "I added the key to both workers. Want me to commit this?",
            (),
            "I added the key to both workers",
            "commit this (I added the key to both workers)",
            id="added-key-both-workers-want-me-commit",
        ),
    ],
)
def test_a_digest_has_three_lines(answer, work, done, left):
    assert digest(ASKED, ("assistant", answer), work=work) == (ASKED_FOR, done, left)


def test_a_repeated_request_is_listed_once():
    # A request is told once, and what nobody answered or took up is left.
    assert digest(ASKED, ANSWERED, ASKED)[0] == ASKED_FOR


def test_an_unanswered_request_is_left():
    later = "now move the dead letter queue to Redis"
    assert digest(ASKED, ANSWERED, ("user", later))[2] == later


@pytest.mark.parametrize(
    "last",
    [
        pytest.param("Ok.", id="ok"),
        pytest.param("thanks!", id="thanks"),
        pytest.param("👍", id="thumbs-up-sign"),
    ],
)
def test_an_acknowledgement_changes_no_digest(last):
    assert digest(ASKED, ANSWERED, ("user", last))[2] == digest(ASKED, ANSWERED)[2]


def test_a_greeting_is_no_request():
    assert digest(("user", "morning"), ("assistant", "Hi."), ASKED, ANSWERED)[0] == ASKED_FOR


def test_a_reply_to_a_question_is_no_request():
    which = ("assistant", "I could not reproduce it; which editor do you use?")
    assert digest(ASKED, which, ("user", "vim"))[2] == digest(ASKED)[2]


def test_a_plan_is_left_to_do():
    plan = ("assistant", "# Plan: Retry with backoff\n\n## Context\n\nThe worker was changed.")
    assert digest(ASKED, plan, plan=True)[1:] == ("", "planned: Retry with backoff")


def test_a_recap_describes_the_whole_session():
    # It goes on from page to page, and a recap speaks for the whole session.
    done = "the worker retries and PR #9 was opened"
    recap = f"Goal: retries. Done: {done}. Next: rotate the key."
    told = digest(ASKED, ("assistant", "Ok."), work=[COMMIT], recap=recap)
    assert told == (ASKED_FOR, f"{done}; {COMMIT.name}", "rotate the key")


def test_a_digest_continues_on_the_next_page():
    first = follow({}, [("user", "hi"), ("assistant", "Hello!")])
    second = follow(first._asdict(), [ASKED, ANSWERED], [(), [COMMIT]])
    now = "Now checking the logs of the worker"
    third = follow(second._asdict(), [("user", "thanks"), ("assistant", f"{now}.")])
    assert compose_digest(second)["asked"] == ASKED_FOR
    left = f"announced: {now.removeprefix('Now ')}; not pushed"
    assert tuple(compose_digest(third).values()) == (ASKED_FOR, DELIVERED, left)


def test_a_commit_after_the_last_turn_is_added():
    first = follow({}, [("user", "hi"), ("assistant", "Hello!")])
    second = follow(first._asdict(), [ASKED, ANSWERED], [(), [COMMIT]])
    now = "Now checking the logs of the worker"
    third = follow(second._asdict(), [("user", "thanks"), ("assistant", f"{now}.")])
    log = Fact("commit", "Log retries")
    assert follow(third._asdict(), [], [[log]]).commits[-1] == log.name


def test_a_digest_state_of_an_earlier_version_is_read():
    first = follow({}, [("user", "hi"), ("assistant", "Hello!")])
    second = follow(first._asdict(), [ASKED, ANSWERED], [(), [COMMIT]])
    now = "Now checking the logs of the worker"
    third = follow(second._asdict(), [("user", "thanks"), ("assistant", f"{now}.")])
    # What was kept by an earlier version is read.
    old = {**json.loads(json.dumps(third._asdict())), "asked": [ASKED[1]]}
    assert compose_digest(follow(old, [("user", "thanks")]))["asked"].startswith("add retry")


def test_a_digest_lists_the_requests_that_led_to_work():
    asks = ("how do I list the queues?", "round the prices once", "what is a dead letter?")
    asks += ("move the carts to Redis",)
    turns = [turn for text in asks for turn in (("user", text), ("assistant", "Ok."))]
    edit, books = Fact("edit", "a.py"), Fact("commit", "docs: tick off a to-do")
    work = [(), (), (), [edit], (), (), (), [edit, SHIPPED, books], ()]
    told = compose_digest(follow({}, turns, work))
    assert told["asked"] == "; ".join((*asks[:2], asks[3]))
    assert told["done"] == SHIPPED.name and told["left"] == "not pushed"


def test_a_digest_lists_the_commits_of_the_product():
    asks = ("how do I list the queues?", "round the prices once", "what is a dead letter?")
    asks += ("move the carts to Redis",)
    turns = [turn for text in asks for turn in (("user", text), ("assistant", "Ok."))]
    edit, books = Fact("edit", "a.py"), Fact("commit", "docs: tick off a to-do")
    work = [(), (), (), [edit], (), (), (), [edit, SHIPPED, books], ()]
    reported = [*turns[:-1], ("assistant", REPORT)]
    report = REPORT.partition(".")[0]
    course = follow({}, reported, [*work[:7], [books, SHIPPED]])
    assert compose_digest(course)["done"] == f"{SHIPPED.name}; {report}"


@pytest.mark.parametrize(
    ("opened", "done"),
    [
        pytest.param(
            ("#7: Round prices", "#8: docs: list the queues"),
            "PR #7: Round prices; PR #8: docs: list",
            id="7-round-prices",
        ),
        pytest.param(("#8",), f"PR #8: {SHIPPED.name}", id="8"),
    ],
)
def test_a_digest_lists_its_pull_requests(opened, done):
    asks = ("how do I list the queues?", "round the prices once", "what is a dead letter?")
    asks += ("move the carts to Redis",)
    turns = [turn for text in asks for turn in (("user", text), ("assistant", "Ok."))]
    edit, books = Fact("edit", "a.py"), Fact("commit", "docs: tick off a to-do")
    work = [(), (), (), [edit], (), (), (), [edit, SHIPPED, books], ()]
    told = compose_digest(follow({}, turns, work))
    pulls = [Fact("pull request", one) for one in opened]
    told = compose_digest(follow({}, turns, [*work[:7], [SHIPPED, *pulls]]))
    assert done in told["done"] and told["left"] == "PR #8 open"


def test_a_turn_that_only_asks_makes_no_statement():
    thought = "I think about moving them into the database."
    assert only_asks(f"Where do we keep the carts? {thought}") and only_asks("Please move them.")
    assert not only_asks(f"We keep the carts in Redis. {thought}")


@pytest.mark.parametrize(
    ("work", "said", "left"),
    [
        pytest.param(
            "commit", "Committed as `602c11e`.", "not pushed", id="commit-committed-602c11e"
        ),
        pytest.param("commit, push", "Committed and pushed.", "nothing", id="commit-push"),
        pytest.param(
            "commit", "You merged it, I see, and pushed.", "nothing", id="commit-merged-see-pushed"
        ),
        pytest.param(
            "commit",
            "The branch is now 2 ahead of origin — push with `git push` when ready.",
            "push with `git push` when ready",
            id="commit-branch-now-2-ahead-origin-push-git-push-when",
        ),
        pytest.param(
            "edit",
            "Both branches were moved onto main and will need force-pushes when you are ready.",
            "Both branches were moved onto main and will need force-pushes when you are ready; no commit seen of #7",
            id="edit-both-branches-moved-onto-main-will-need",
        ),
        pytest.param(
            "commit, pull request", "It is there.", "PR #7 open", id="commit-pull-request-there"
        ),
        pytest.param(
            "commit, pull request, merge", "All done.", "nothing", id="commit-pull-request-merge"
        ),
        pytest.param(
            "commit, pull request",
            "PR #7 was merged.",
            "nothing",
            id="commit-pull-request-PR-7-merged",
        ),
        pytest.param(
            "edit",
            "The worker retries three times.",
            "no commit seen of #7",
            id="edit-worker-retries-three-times",
        ),
    ],
)
def test_work_is_left_until_it_is_merged(work, said, left):
    facts = [Fact(what.strip(), "#7") for what in work.split(",")]
    course = follow({}, [ASKED, ANSWERED], [(), facts])
    assert compose_digest(follow(course._asdict(), [("assistant", said)]))["left"] == left


EDIT, TESTED = Fact("edit", "src/worker.py"), Fact("passed", "go test ./...")


@pytest.mark.parametrize(
    ("work", "checks"),
    [
        pytest.param([EDIT, TESTED], "go test ./... passed", id="passed-after-the-edit"),
        pytest.param(
            [TESTED, EDIT], "go test ./... passed, before the last edits", id="edited-after-it"
        ),
        pytest.param(
            [TESTED, Fact("failed", "make lint")],
            "go test ./... passed; make lint failed",
            id="one-failed",
        ),
        pytest.param([Fact("passed", "bun update")], None, id="no-check"),
    ],
)
def test_a_digest_says_which_checks_passed(work, checks):
    assert compose_digest(follow({}, [ASKED, ANSWERED], [(), work])).get("checks") == checks


def test_a_digest_reports_what_earlier_answers_say_was_done():
    later = ("user", "and rotate the key of the mailer"), ("assistant", "Rotated the mailer's key.")
    done = digest(ASKED, ANSWERED, *later)[1]
    assert done == "Rotated the mailer's key; I added a retry with backoff to the payment worker"


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        pytest.param(
            "All pass. The broader suite still has the unrelated `user_query` failure.",
            "The broader suite still has the unrelated `user_query` failure",
            id="known-failure",
        ),
        pytest.param(
            "Fixed and pushed. The thread on PR #7 is still open — want me to reply there?",
            "The thread on PR #7 is still open: reply there",
            id="offer-at-the-end-of-a-sentence",
        ),
        pytest.param("Renamed the worker. Shall I help with anything else?", "", id="any-help"),
    ],
)
def test_a_digest_lists_what_the_last_answer_leaves(answer, left):
    assert digest(ASKED, ("assistant", answer))[2] == left


FACTS = st.builds(Fact, st.sampled_from(["commit", "edit", "failed"]), TEXT)


@given(TURNS, st.lists(FACTS, max_size=6), TEXT)
@settings(max_examples=60, deadline=None)
def test_a_digest_has_at_most_260_tokens(turns, work, recap):
    told = compose_digest(follow({}, turns, [work], recap))
    assert list(told)[:3] == ["asked", "done", "left"]
    assert tokens("\n".join(f"{name.capitalize()}: {text}" for name, text in told.items())) <= 260
    assert all("\n" not in text for text in told.values())


LISTED = [Task(f"Write page {number}", "open") for number in range(1, 5)]


def test_what_is_left_names_the_first_open_items_of_the_task_list():
    turns = [("user", "Write the pages."), ("assistant", "I begin with the first.")]
    _, _, left = digest(*turns, tasks=[(), LISTED])
    assert left == "Write page 1; Write page 2; 2 more on the task list"


def test_an_item_that_is_done_leaves_the_task_list():
    turns = [("user", "Write the pages."), ("assistant", "Two are written.")]
    done = [one._replace(state="done") for one in LISTED[:3]]
    assert digest(*turns, tasks=[(), [*LISTED, *done]])[2] == "Write page 4"


def test_a_task_list_that_the_user_has_moved_on_from_is_not_left():
    turns = [("user", "Write the pages."), ("assistant", "Done."), ("user", "Fix the footer.")]
    answer = ("assistant", "I fixed the footer.")
    assert digest(*turns, answer, tasks=[(), LISTED, (), ()])[2] == ""


def test_an_edit_after_a_merge_has_no_commit():
    turns = [("user", "Merge it."), ("assistant", "Merged to main."), ("user", "Split the page.")]
    work = [(), (Fact("edit", "a.py"),), (), (Fact("edit", "b.py"),)]
    lines = compose_digest(follow({}, [*turns, ("assistant", "I split the page.")], work))
    assert lines["left"] == "no commit seen of b.py"


def test_an_answer_that_breaks_off_leaves_what_it_announces():
    answer = ("assistant", "Now extend the workflow to publish both parts:")
    _, done, left = digest(("user", "Publish both parts."), answer)
    assert (done, left) == ("", "announced: extend the workflow to publish both parts")


def test_a_question_in_bold_at_the_end_is_left():
    answer = (
        "assistant",
        "The worker has crashed.\n\n**Would you like me to restart the worker?**",
    )
    assert digest(("user", "What happened?"), answer)[2] == "restart the worker"


def test_a_pull_request_that_is_said_to_be_open_is_left():
    answer = ("assistant", "The pull request is open against main: #17.")
    assert digest(("user", "Open one."), answer)[2] == "PR #17 open"


def test_a_digest_believes_a_failed_check_more_than_the_report():
    turns = [("user", "Mend the tests."), ("assistant", "I mended the parser: all 41 tests pass.")]
    _, done, left = digest(*turns, work=(Fact("failed", "make test"),))
    assert ("tests pass" in done, left) == (False, "make test fails")


def test_a_digest_reports_passing_tests_that_no_check_denies():
    turns = [("user", "Mend the tests."), ("assistant", "I mended the parser: all 41 tests pass.")]
    assert "all 41 tests pass" in digest(*turns, work=(Fact("passed", "make test"),))[1]
