"""Central rows of docs/seeds.md as scenarios: the command line and the usual model, as a user tries them."""

import pytest
from transcripts import claude_line, written

STORE = "sqlite"
TALK = [
    ("user", "Let's use Postgres for the orders service, because we need row level security."),
    ("assistant", "Done, the orders service uses Postgres now."),
    ("user", "How should we handle failed webhooks?"),
    ("assistant", "I have no good answer yet."),
    ("user", "We still need to add a retry to the mailer, later."),
    ("assistant", "Noted."),
]


@pytest.fixture
def cli(cli, with_model):
    return cli


@pytest.fixture
def talked(cli, tmp_path):
    """A project whose one conversation was read."""
    place = {"cwd": str(cli.project)}
    lines = [claude_line(at, text, role, **place) for at, (role, text) in enumerate(TALK)]
    cli.ok("backfill", str(written(tmp_path / "talk.jsonl", *lines)))
    return cli


def contents(found):
    return [one["content"] for one in found]


# 000: project knowledge


def test_a_question_finds_a_document_by_its_meaning(cli, tmp_path):
    page = tmp_path / "docs" / "release.md"
    page.parent.mkdir()
    page.write_text("# Release\n\nWe ship to customers every second Tuesday.\n")
    cli.ok("import", "--markdown", str(page))
    found = cli.json("search", "when do we deploy to production?", "--limit", "1")
    assert "every second Tuesday" in found[0]["content"]


def test_a_setting_of_the_project_wins_over_that_of_the_user(cli):
    cli.ok("config", "limit", "7")
    cli.ok("config", "limit", "3", "--project-file")
    assert cli.json("config", "limit")["value"] == 3


# 001: conversations


REPAIR = [
    ("user", "The tests fail on CI since yesterday, but they pass on my machine."),
    ("assistant", "The root cause is that CI runs in UTC, while the fixtures assume Berlin time."),
    ("user", "OK, fix it."),
    ("assistant", "Fixed: the test runner now sets TZ=Europe/Berlin before pytest starts."),
    ("user", "Let's use UTC in all fixtures from now on."),
    ("assistant", "Done, all fixtures use UTC."),
    ("user", "How should we handle daylight saving in the invoices?"),
    ("assistant", "I have no good answer yet."),
    ("user", "We still need to write a migration for old invoices, later."),
    ("assistant", "Noted."),
]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        pytest.param("problem", REPAIR[0][1], id="problem"),
        pytest.param("conclusion", REPAIR[1][1], id="conclusion"),
        pytest.param("solution", REPAIR[3][1], id="solution"),
        pytest.param("decision", REPAIR[4][1], id="decision"),
        pytest.param("question", REPAIR[6][1], id="question"),
        pytest.param("todo", REPAIR[8][1], id="todo"),
        pytest.param("context", REPAIR[7][1], id="context"),
    ],
)
def test_each_intent_is_read_from_a_conversation(cli, tmp_path, kind, text):
    place = {"cwd": str(cli.project)}
    lines = [claude_line(at, said, role, **place) for at, (role, said) in enumerate(REPAIR)]
    cli.ok("backfill", str(written(tmp_path / "repair.jsonl", *lines)))
    assert text in contents(cli.json("list", "--kind", kind, "--limit", "20"))


@pytest.mark.parametrize(
    "kind",
    "decision conclusion question problem solution todo context preference fact gotcha".split(),
)
def test_a_note_can_have_each_intent(cli, kind):
    cli.ok("add", "The mailer sends at most ten mails a second", "--kind", kind)
    assert len(cli.json("list", "--kind", kind)) == 1


def test_every_turn_of_a_conversation_is_kept_as_context(talked):
    found = contents(talked.json("list", "--kind", "context", "--limit", "20"))
    assert "I have no good answer yet." in found


def test_open_questions_lists_only_unanswered_questions(talked):
    talked.ok("add", "Failed webhooks are retried for a day", "--kind", "fact")
    assert contents(talked.json("search", "open questions")) == [TALK[2][1]]


def test_an_answered_question_is_no_longer_open(talked):
    (question,) = talked.json("search", "open questions")
    talked.ok("update", question["id"], "--answered")
    assert talked.json("search", "open questions") == []


def test_a_conversation_is_listed_with_its_topic_and_lines(talked):
    printed = talked.ok("topics")
    assert "Postgres" in printed
    assert "(lines 1-" in printed


def test_an_idea_leads_to_the_turns_around_it(talked):
    (decision,) = talked.json("list", "--kind", "decision")
    assert "uses Postgres now" in talked.ok("get", decision["id"], "--source")


def test_reading_a_conversation_twice_adds_nothing(talked, tmp_path):
    done = talked.json("backfill", str(tmp_path / "talk.jsonl"))
    assert (done["turns"], done["ideas"]) == (0, 0)


def test_a_changed_mind_retires_the_old_decision(cli):
    cli.ok("add", "We use npm for all packages", "--kind", "decision")
    cli.ok("add", "We switched from npm to pnpm for all packages", "--kind", "decision")
    assert contents(cli.json("list", "--kind", "decision")) == [
        "We switched from npm to pnpm for all packages"
    ]


# 002: intents and handoffs


def test_a_vote_changes_the_usefulness_of_a_memory(cli):
    id = cli.add("The API listens on port 8080")
    cli.ok("vote", id, "1")
    (one,) = cli.json("get", id)
    assert one["usefulness"] == 1.0


def test_a_handoff_is_read_by_the_next_session(cli):
    cli.ok("handoff", "save", "--summary", "Sync is half done", "--next-steps", "Retry jobs")
    assert "Retry jobs" in cli.ok("handoff", "show")


# 003: notes, passages, duplicates


def test_a_passage_knows_its_source_and_lines(cli, tmp_path):
    page = tmp_path / "docs" / "auth.md"
    page.parent.mkdir()
    page.write_text("# Auth\n\nTokens last a day.\n\n## Keys\n\nKeys rotate each month.\n")
    cli.ok("import", "--markdown", str(page))
    (one,) = (one for one in cli.json("list", "--kind", "document") if "rotate" in one["content"])
    assert one["source"].endswith("docs/auth.md")
    assert one["lines"][1] == 7


def test_the_passages_around_one_come_in_their_order(cli, tmp_path):
    page = tmp_path / "docs" / "auth.md"
    page.parent.mkdir()
    parts = ("Tokens last a day.", "Keys rotate each month.", "Sessions end at midnight.")
    page.write_text(
        "# Auth\n\n" + "\n".join(f"## Part {at}\n\n{one}\n" for at, one in enumerate(parts))
    )
    cli.ok("import", "--markdown", str(page))
    (one,) = (one for one in cli.json("list", "--kind", "document") if "rotate" in one["content"])
    printed = cli.ok("get", one["id"], "--source")
    assert sorted(parts, key=printed.index) == list(parts)


def test_a_private_part_is_never_stored(cli):
    cli.ok("add", "The vault opens at nine <private>with code 4711</private> each day")
    assert "4711" not in cli.ok("export")


def test_a_repeated_note_is_stored_once(cli):
    cli.ok("add", "Auth uses JWT with a lifetime of a day")
    assert "already stored" in cli.ok("add", "Auth uses JWT with a lifetime of a day")


# 004: dual answers and filters


@pytest.fixture
def many(cli):
    """More matches than a small budget shows in full."""
    for number in range(12):
        ports = f"The API of region {number} listens on port {8000 + number}. "
        cli.ok("add", ports + "Each region has its own load balancer. " * 12, "--no-dedup")
    return cli


def test_a_dual_answer_has_an_index_and_details_within_the_budget(many):
    found = many.json("search", "API port", "--dual", "--max-tokens", "600")
    assert len(found["index"]) > len(found["details"]) > 0
    assert found["tokens_used"] <= 600


def test_a_dual_answer_names_the_query_the_total_and_that_there_is_more(many):
    found = many.json("search", "API port", "--dual", "--limit", "5")
    assert (found["query"], found["total_count"], found["has_more"]) == ("API port", 12, True)


def test_a_note_is_found_by_its_importance(cli):
    cli.ok("add", "Never delete the ledger", "--importance", "9")
    (one,) = cli.json("search", "ledger", "--min-importance", "8")
    assert one["importance"] == 9


def test_and_requires_every_word(cli):
    cli.ok("add", "The ledger is written by the billing service")
    cli.ok("add", "The ledger is closed at midnight")
    found = contents(cli.json("search", "ledger AND midnight", "--mode", "keyword"))
    assert found == ["The ledger is closed at midnight"]
