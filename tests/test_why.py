"""`bethink why`: the statement about a subject, its reason in any wording, and what it replaced."""

import pytest
from reasons import UNREASONED, UNWORDED, WORDED
from transcripts import transcript

from bethink.language.reasons import find_reason, list_second_clauses

NO_REASON = "No separate reason recorded; this is the full statement."


@pytest.mark.parametrize(("statement", "reason"), WORDED.items())
def test_a_reason_is_found_by_its_wording(statement, reason):
    assert find_reason(statement) == reason


@pytest.mark.parametrize("statement", UNREASONED)
def test_a_statement_without_a_reason_has_none(statement):
    assert find_reason(statement) is None


@pytest.mark.parametrize(
    "text", ["", " ", ":", "so", "because", "a;", "(", "\n\n- because\n", "x" * 5000]
)
def test_any_text_is_taken(text):
    assert find_reason(text) is None
    assert list_second_clauses(text) == []


@pytest.mark.parametrize(
    ("statement", "subject", "reason"),
    [
        pytest.param(
            "We use Postgres for billing because the ledger needs transactions.",
            "Postgres for billing",
            "the ledger needs transactions",
            id="because",
        ),
        pytest.param("We left Heroku due to the price.", "Heroku", "the price", id="due to"),
        pytest.param(
            "Chose Svelte as the bundle is smaller.", "Svelte", "the bundle is smaller", id="as"
        ),
        pytest.param(
            "Images are distroless to keep them small.",
            "distroless images",
            "to keep them small",
            id="purpose",
        ),
        pytest.param(
            "npm was too slow, so we use pnpm.", "pnpm", "npm was too slow", id="reason first"
        ),
        pytest.param(
            "No Kubernetes: two people cannot run it.",
            "why no Kubernetes",
            "two people cannot run it",
            id="colon",
        ),
        pytest.param(
            "Wir nutzen Hetzner, weil es billig ist.", "Hetzner", "es billig ist", id="German"
        ),
    ],
)
def test_why_quotes_a_statement_with_its_reason(cli, statement, subject, reason):
    cli.add(statement)
    told = cli.ok("why", subject)
    assert statement in told
    assert f"reason: {reason}" in told


@pytest.mark.parametrize(("statement", "reason"), UNWORDED.items())
def test_a_second_clause_that_the_judge_takes_for_a_complaint_is_the_reason(cli, statement, reason):
    cli.monkeypatch.setenv("BETHINK_EMBEDDING", "snowflake-arctic-embed-s")
    cli.add(statement)
    assert cli.json("why", statement)["because"] == reason


def test_why_says_so_where_a_statement_gives_no_reason(cli):
    cli.add("Deploys go out on Tuesdays.")
    told = cli.ok("why", "deploys on Tuesdays")
    assert "Deploys go out on Tuesdays." in told and NO_REASON in told
    assert cli.json("why", "deploys on Tuesdays")["because"] is None


@pytest.mark.parametrize("kind", ["general", "fact", "pattern", "gotcha", "architecture"])
def test_why_finds_a_statement_whatever_its_kind_is(cli, kind):
    cli.add("Images are distroless to keep them small.", "--kind", kind)
    assert cli.json("why", "distroless images")["because"] == "to keep them small"


@pytest.mark.parametrize("kind", ["question", "todo", "handoff"])
def test_why_is_not_answered_by_what_settles_nothing(cli, kind):
    cli.add("Should images be distroless because of their size?", "--kind", kind)
    assert "No decision about distroless images" in cli("why", "distroless images").err


def test_a_decision_comes_before_another_kind_that_fits_as_well(cli):
    cli.add("Redis listens on port 6380", "--kind", "fact")
    cli.add("Redis holds the sessions", "--kind", "decision")
    assert cli.json("why", "Redis")["decision"]["content"] == "Redis holds the sessions"


def test_another_kind_that_fits_clearly_better_comes_before_a_decision(cli):
    cli.add("Sessions are kept on the server", "--kind", "decision")
    cli.add("The session cookie lasts twelve hours", "--kind", "fact")
    told = cli.json("why", "session cookie lasts twelve hours")
    assert told["decision"]["kind"] == "fact"


def test_the_reason_may_be_in_another_note(cli):
    cli.add("Orders moved from MySQL to PostgreSQL.", "--kind", "decision")
    other = cli.add("The reason we left MySQL was licensing.", "--kind", "fact")
    told = cli.json("why", "orders PostgreSQL MySQL")
    assert told["decision"]["content"] == "Orders moved from MySQL to PostgreSQL."
    assert (told["because"], told["because_from"]["id"]) == ("licensing", other)
    assert "reason, from " in cli.ok("why", "orders PostgreSQL MySQL")


def test_a_reason_for_something_else_is_not_taken(cli):
    cli.add("Orders are in PostgreSQL.", "--kind", "decision")
    cli.add("Billing runs on PostgreSQL because the ledger needs it.", "--kind", "fact")
    assert cli.json("why", "orders")["because"] is None


def test_why_says_what_a_statement_replaced(cli):
    old = cli.add("Sessions are kept in Redis", "--kind", "decision")
    new = "Sessions are kept in Valkey because of the licence"
    cli.add(new, "--kind", "decision", "--supersedes", old)
    told = cli.json("why", "sessions in Redis")
    assert told["decision"]["content"] == new
    assert [one["id"] for one in told["replaced"]] == [old]
    assert (
        ": Sessions are kept in Redis" in cli.ok("why", "sessions in Redis").split("replaced ")[1]
    )


@pytest.fixture
def proposed(cli):
    """A user's decision, and an agent's newer one that may replace it."""
    old = cli.add("Sessions are kept in Redis", "--kind", "decision")
    cli.ok("add", "Sessions are kept in Valkey", "--supersedes", old, "--for-agent")
    new = next(one["id"] for one in cli.json("list") if "Valkey" in one["content"])
    return old, new


def test_why_quotes_a_newer_statement_that_may_replace_the_older_one(cli, proposed):
    old, new = proposed
    told = cli.json("why", "sessions")
    assert told["decision"]["id"] == new
    assert [one["id"] for one in told["may_replace"]] == [old]
    assert "may replace " in cli.ok("why", "sessions")


def test_why_mentions_a_newer_statement_where_the_older_one_fits_better(cli, proposed):
    old, new = proposed
    told = cli.json("why", "Redis")
    assert told["decision"]["id"] == old
    assert [one["id"] for one in told["newer"]] == [new]
    assert "newer " in cli.ok("why", "Redis")


def test_the_reason_may_be_in_the_conversation_around_the_decision(cli):
    said = (
        ("user", "Where should we keep the rendered pages?"),
        ("assistant", "Redis fits best, because it expires the rendered pages by itself."),
        ("user", "Yes, let's do that. We decided to keep the rendered pages in Redis."),
    )
    file = transcript(cli.home / "talk.jsonl", "talk-1", cli.project, *said)
    cli.ok("backfill", str(file))
    told = cli.json("why", "rendered pages in Redis")
    assert told["decision"]["kind"] == "decision"
    assert told["because"] == "it expires the rendered pages by itself"
    assert "Redis fits best" in told["because_from"]["content"]


def test_an_id_names_the_statement(cli):
    id = cli.add("We chose pnpm because npm hoists wrongly", "--kind", "decision")
    cli.add("We chose Redis because it is fast", "--kind", "decision")
    assert "npm hoists wrongly" in cli.ok("why", id[:13])


def test_an_unknown_id_is_not_explained(cli):
    cli.add("We chose pnpm because npm hoists wrongly", "--kind", "decision")
    assert "No decision about 01a1f5d4-2dd3 is known" in cli("why", "01a1f5d4-2dd3").err
