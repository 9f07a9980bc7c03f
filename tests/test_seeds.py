"""Central rows of docs/seeds.md as scenarios: the command line and the usual model, as a user tries them."""

import json

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


# Searches that several seeds ask for, over the same few notes

NOTES = {
    "replication": ("--kind", "fact", "--importance", "8", "--tag", "db"),
    "scheduler": ("--kind", "decision", "--importance", "3"),
    "signing": ("--kind", "question"),
    "mailer": ("--kind", "todo"),
    "staging host": ("--expires", "30d"),
}
TEXTS = {
    "replication": "The orders API uses PostgreSQL with logical replication",
    "scheduler": "We decided to run the café scheduler every Monday",
    "signing": "How do we rotate the signing key?",
    "mailer": "Add a retry to the mailer",
    "staging host": "The staging host is called harbour-two",
}


@pytest.fixture
def noted(cli):
    for name, options in NOTES.items():
        cli.add(TEXTS[name], *options)
    return cli


@pytest.mark.parametrize(
    ("words", "first"),
    [
        pytest.param(("logical replication", "--mode", "keyword"), "replication", id="000-1"),
        pytest.param(("running schedulers", "--mode", "keyword"), "scheduler", id="000-5"),
        pytest.param(("CAFE", "--mode", "keyword"), "scheduler", id="000-6"),
        pytest.param(("the", "--kind", "decision"), "scheduler", id="000-21"),
        pytest.param(("open questions",), "signing", id="001-61"),
        pytest.param(("what is stored in postgres?",), "replication", id="001-48"),
        pytest.param(("orders", "--tag", "db"), "replication", id="004-18"),
        pytest.param(("orders scheduler", "--min-importance", "7"), "replication", id="004-15"),
        pytest.param(("orders", "--entity", "PostgreSQL,Redis"), "replication", id="004-14"),
        pytest.param(('"logical replication"',), "replication", id="004-22"),
        pytest.param(("replic*", "--mode", "keyword"), "replication", id="004-25"),
        pytest.param(("{content}: mailer", "--mode", "keyword"), "mailer", id="004-26"),
        pytest.param(('"unclosed mailer (AND', "--mode", "keyword"), "mailer", id="004-27"),
        pytest.param(("mailer " * 500,), "mailer", id="004-28"),
        pytest.param(
            ("orders", "--intent", "relevance=0.6 recency=0.4"), "replication", id="004-12"
        ),
    ],
)
def test_a_search_finds_a_note_first(noted, words, first):
    assert contents(noted.json("search", *words))[0] == TEXTS[first]


@pytest.mark.parametrize(
    ("words", "never"),
    [
        pytest.param(("orders NOT replication", "--mode", "keyword"), "replication", id="004-24"),
        pytest.param(("replication AND mailer", "--mode", "keyword"), "mailer", id="004-23"),
        pytest.param(("scheduler", "--min-importance", "7"), "scheduler", id="004-15"),
        pytest.param(("open questions",), "mailer", id="001-61"),
        pytest.param(("orders", "--kind", "todo"), "replication", id="004-13"),
    ],
)
def test_a_search_leaves_out_a_note(noted, words, never):
    assert TEXTS[never] not in contents(noted.json("search", *words))


@pytest.mark.parametrize("intent", "continuity fact_check frequent associative explore".split())
def test_a_seed_makes_the_chance_of_an_intent_repeatable(noted, intent):
    search = ("search", "orders", "--intent", intent, "--seed", "7")
    assert noted.json(*search) == noted.json(*search)


def test_a_search_counts_no_use(noted):
    noted.ok("search", "mailer")
    assert {one["access_count"] for one in noted.json("list")} == {0}


def test_a_vote_counts_a_use(noted):
    id = noted.json("search", "mailer")[0]["id"]
    noted.ok("vote", id, "-2")
    [one] = [one for one in noted.json("list") if one["id"] == id]
    assert (one["usefulness"], one["access_count"]) == (-2, 1)


def test_the_dual_answer_keeps_its_budget(noted):
    assert noted.json("search", "orders", "--dual", "--max-tokens", "120")["tokens_used"] <= 120


def test_the_dual_answer_names_its_parts(noted):
    answer = noted.json("search", "orders", "--dual")
    assert {"query", "total_count", "has_more", "tokens_used"} <= answer.keys()


def test_a_question_that_nothing_fits_gets_few_results(noted):
    assert len(noted.json("search", "quantum chromodynamics lattice")) <= 3


def test_a_summary_has_at_most_twenty_words(cli):
    cli.add("The relay sends " + "one event after another " * 30)
    assert len(cli.json("list")[0]["summary"].split()) <= 20


def test_an_entry_of_a_repo_map_is_found_by_its_symbol(cli, tmp_path):
    entry = {"path": "src/x.py", "language": "python", "symbols": ["launch_crane"]}
    (tmp_path / "map.json").write_text(json.dumps([entry]))
    cli.ok("import", "--repo-map", tmp_path / "map.json")
    assert contents(cli.json("search", "launch_crane"))[0].startswith("src/x.py [python]")
