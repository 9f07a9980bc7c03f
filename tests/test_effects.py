"""What a note does to known ones, as people and agents meet it: through the command line and the tools, with the packaged models."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from memories import use_tool
from transcripts import transcript

from bethink import Bethink
from bethink.model import TRUST

STILL_TRUE = """
The frontend is written in TypeScript.
The frontend uses React 18.
Components of the frontend are styled with Tailwind.
The frontend talks to the API over GraphQL.
State in the frontend is kept in Zustand.
The frontend is built with Vite.
Unit tests of the frontend run in Vitest.
End-to-end tests of the frontend use Playwright.
The frontend is deployed to Cloudflare Pages.
Errors in the frontend are reported to Sentry.
Texts of the frontend are translated with i18next.
Forms in the frontend are validated with zod.
""".strip().splitlines()


@pytest.fixture
def cli(cli, with_model):
    return cli


@pytest.fixture
def as_agent(cli):
    """Calls a tool as an agent would."""

    def call(tool, **arguments):
        with Bethink(directory=cli.project, actor="agent:test") as memory:
            return use_tool(memory, tool, **arguments)

    return call


def list_contents(cli, *options):
    return [one["content"] for one in cli.json("list", "--limit", "100", *options)]


def find(cli, question):
    return [one["content"] for one in cli.json("search", question)]


def get(cli, id):
    return cli.json("get", id)[0]


# What is true together stays


def test_twelve_true_facts_about_one_component_all_stay_valid(cli):
    for fact in STILL_TRUE:
        cli.add(fact)
    assert sorted(list_contents(cli)) == sorted(STILL_TRUE)


def test_a_fact_among_many_is_still_found(cli):
    for fact in STILL_TRUE:
        cli.add(fact)
    assert "The frontend is built with Vite." in find(cli, "what builds the frontend?")[:3]


@pytest.fixture
def two_claims(cli):
    """A note with two claims, of which a later note changes one."""
    old = cli.add("Staging is in Frankfurt, production in Dublin.")
    cli.add("Staging moved to Paris.")
    return old


def test_a_note_of_which_one_claim_changes_stays_valid(cli, two_claims):
    assert get(cli, two_claims)["superseded_by"] is None


def test_the_other_claim_of_a_changed_note_is_found(cli, two_claims):
    assert "Staging is in Frankfurt, production in Dublin." in find(cli, "where is production?")


# Corrections


CORRECTIONS = [
    pytest.param(
        "The API is at http://api.example.com/v1",
        "The API is at https://api.example.com/v1",
        "where is the API?",
        id="protocol",
    ),
    pytest.param(
        "Clean the tree with rm -rf / build",
        "Clean the tree with rm -rf ./build",
        "how do I clean the tree?",
        id="path-in-parts",
    ),
    pytest.param(
        "Clean the tree with rm -rf /build",
        "Clean the tree with rm -rf ./build",
        "how do I clean the tree?",
        id="path-with-a-point",
    ),
    pytest.param(
        "Before a push run make lint && make test",
        "Before a push run make lint || make test",
        "what to run before a push?",
        id="operator",
    ),
    pytest.param(
        "The firmware is compiled with gcc -W",
        "The firmware is compiled with gcc -w",
        "how is the firmware compiled?",
        id="option-in-capitals",
    ),
    pytest.param(
        "The config file is /etc/shop/config.yaml",
        "The config file is /etc/shop.d/config.yaml",
        "where is the config file?",
        id="directory",
    ),
    pytest.param(
        "The image is based on python:3.11-slim",
        "The image is based on python:3.12-slim",
        "what is the image based on?",
        id="version",
    ),
    pytest.param(
        "The header is called X-Request-Id",
        "The header is called X-Request-ID",
        "what is the header called?",
        id="capitals",
    ),
    pytest.param(
        "An alert fires when latency > 5 ms",
        "An alert fires when latency < 5 ms",
        "when does an alert fire?",
        id="comparison",
    ),
    pytest.param(
        "Build the image with the option --nocache",
        "Build the image with the option --no-cache",
        "how to build the image?",
        id="hyphen",
    ),
    pytest.param(
        "Log in to the shop with ssh deploy@shop-1",
        "Log in to the shop with ssh deploy@shop_1",
        "how to log in to the shop?",
        id="underscore",
    ),
]


@pytest.mark.parametrize(("wrong", "right", "question"), CORRECTIONS)
def test_a_correction_by_signs_is_stored(cli, wrong, right, question):
    cli.add(wrong)
    assert cli.json("add", right)["status"] == "added"


@pytest.mark.parametrize(("wrong", "right", "question"), CORRECTIONS)
def test_a_correction_by_signs_comes_first(cli, wrong, right, question):
    cli.add(wrong)
    cli.add(right)
    assert find(cli, question)[0] == right


def test_a_correction_marks_what_it_corrects(cli):
    old = cli.add("The API is at http://api.example.com/v1")
    new = cli.add("The API is at https://api.example.com/v1")
    assert get(cli, old)["newer"] == [new]


def test_the_answer_says_how_to_retire_the_older_statement(cli):
    cli.add("The API is at http://api.example.com/v1")
    said = cli.ok("add", "The API is at https://api.example.com/v1")
    assert "newer than" in said
    assert "both stay valid; to retire the older one: bethink link" in said


def test_an_older_statement_says_which_one_is_newer(cli):
    old = cli.add("The API is at http://api.example.com/v1")
    new = cli.add("The API is at https://api.example.com/v1")
    assert f"newer: {new[:8]}" in cli.ok("get", old)


# Replacements


def test_of_many_notes_about_one_thing_only_the_one_that_is_meant_is_touched(cli):
    told = """
    Password reset links are valid for 24 hours
    E-mail confirmation links are valid for 48 hours
    Session cookies are valid for 30 days
    Refresh tokens live 30 days, access tokens 15 minutes
    """
    first, *others = [cli.add(line.strip()) for line in told.strip().splitlines()]
    new = cli.json("add", "Password reset links are valid for one hour since the audit")
    touched = [*new.get("supersedes", []), *new.get("marks", [])]
    assert touched == [first]
    assert not any(get(cli, id)["superseded_by"] or get(cli, id)["newer"] for id in others)


def test_a_text_that_says_that_the_old_value_is_over_retires_it(cli):
    old = cli.add("We use MySQL for billing")
    said = cli.ok("add", "We moved billing from MySQL to PostgreSQL")
    assert f"replaces {old[:8]}" in said
    assert list_contents(cli) == ["We moved billing from MySQL to PostgreSQL"]


def test_a_retired_note_is_restored_by_one_command(cli):
    old = cli.add("We use MySQL for billing")
    cli.add("We moved billing from MySQL to PostgreSQL")
    cli.ok("restore", old)
    assert len(list_contents(cli)) == 2


def test_a_changed_value_comes_first(cli):
    cli.add("CAN bus runs at 250 kbit/s")
    cli.add("The CAN bus runs at 500 kbit/s")
    assert find(cli, "how fast is the CAN bus?")[0] == "The CAN bus runs at 500 kbit/s"


# Open items


def test_a_report_that_names_a_to_do_closes_it(cli):
    todo = cli.add("TODO: rotate the signing key")
    assert f"closes {todo[:8]}" in cli.ok("add", "The signing key has been rotated")
    assert get(cli, todo)["answered"] is True


def test_a_report_that_names_no_to_do_closes_none(cli):
    todo = cli.add("Need to implement a retry limit", "--kind", "todo")
    assert "closes" not in cli.ok("add", "Fixed by adding a consumer for the dead letter queue")
    assert not get(cli, todo)["answered"]


def test_an_answer_closes_its_question(cli):
    question = cli.add("Which database do we use for the ledger?")
    assert f"closes {question[:8]}" in cli.ok("add", "The database of the ledger is PostgreSQL 16")
    assert get(cli, question)["answered"] is True


# Other words


@pytest.fixture
def reworded(cli):
    """The id of a note that was told again in other words."""
    id = cli.add("Only the infra team may restore backups.")
    cli.ok("add", "Backups can be restored by the infra team only.")
    return id


def test_the_answer_to_other_words_names_the_memory(cli):
    id = cli.add("Only the infra team may restore backups.")
    said = cli.ok("add", "Backups can be restored by the infra team only.")
    assert f"same as {id[:8]}" in said
    assert "these words are kept as a version of it" in said


def test_the_answer_to_the_same_text_names_the_memory(cli):
    id = cli.add("Only the infra team may restore backups.")
    assert f"already stored as {id[:8]}" in cli.ok(
        "add", "Only the infra team may restore backups."
    )


def test_other_words_are_shown_by_history(cli, reworded):
    assert "Backups can be restored by the infra team only." in cli.ok("history", reworded)


def test_other_words_are_brought_back_by_their_number(cli, reworded):
    (version,) = [one for one in cli.json("history", reworded) if one["action"] == "repeat"]
    cli.ok("restore", reworded, "--to", version["version"])
    assert get(cli, reworded)["content"] == "Backups can be restored by the infra team only."


def test_the_first_words_can_be_brought_back_after_that(cli, reworded):
    (version,) = [one for one in cli.json("history", reworded) if one["action"] == "repeat"]
    cli.ok("restore", reworded, "--to", version["version"])
    cli.ok("restore", reworded, "--to", "1")
    assert get(cli, reworded)["content"] == "Only the infra team may restore backups."


# Agents


@pytest.mark.parametrize(
    ("known", "text", "said"),
    [
        pytest.param("The queue is Kafka", "The tests need Docker", "added [", id="new"),
        pytest.param("The queue is Kafka", "The queue is Kafka", "already stored as [", id="same"),
        pytest.param(
            "Only the infra team may restore backups.",
            "Backups can be restored by the infra team only.",
            "these words are kept as a version of it",
            id="other-words",
        ),
        pytest.param(
            "Retries are limited to 3", "Retries are limited to 5", "added [", id="other-value"
        ),
    ],
)
def test_an_agents_note_is_stored_or_becomes_a_version_and_the_answer_says_which(
    as_agent, known, text, said
):
    as_agent("store_memories", memories=[{"content": known}])
    assert said in as_agent("store_memories", memories=[{"content": text}])


def test_statements_of_agent_or_user_keep_their_trust(cli, as_agent):
    as_agent("store_memories", memories=[{"content": "Clean the tree with rm -rf / build"}])
    cli.add("Clean the tree with rm -rf ./build")
    trust = {one["content"]: one["trust"] for one in cli.json("list")}
    assert trust == {
        "Clean the tree with rm -rf / build": TRUST["agent"],
        "Clean the tree with rm -rf ./build": TRUST["user"],
    }


def test_an_agents_rewording_is_not_merged_into_the_users_statement(cli, as_agent):
    cli.add("Only the infra team may restore backups.")
    text = "Backups can be restored by the infra team only."
    assert "added [" in as_agent("store_memories", memories=[{"content": text}])


def test_the_user_who_repeats_an_agents_text_raises_its_trust(cli, as_agent):
    as_agent("store_memories", memories=[{"content": "The queue is Kafka"}])
    id = cli.json("add", "The queue is Kafka")["id"]
    assert get(cli, id)["trust"] == TRUST["user"]


def test_an_agent_is_told_what_is_newer(cli, as_agent):
    cli.add("The API is at http://api.example.com/v1")
    new = cli.add("The API is at https://api.example.com/v1")
    assert f"newer: {new[:8]}" in as_agent("search_memories", query="where is the API?")


# Text that nobody vouches for


def test_an_imported_statement_marks_nothing(cli, tmp_path):
    old = cli.add("We use MySQL for billing")
    with Bethink(directory=cli.project, trust=TRUST["import"]) as stranger:
        outcome = stranger.add("We moved billing from MySQL to MongoDB")
    assert (outcome.supersedes, outcome.marks, outcome.proposals) == ((), (), ())
    assert get(cli, old)["newer"] == []


def test_a_transcript_does_not_retire_the_users_decision(cli, tmp_path):
    old = cli.add("We use MySQL for billing", "--kind", "decision")
    said = [
        ("user", "Which database should billing use from now on?"),
        ("assistant", "We decided: we moved billing from MySQL to MongoDB."),
        ("user", "We moved billing from MySQL to MongoDB, that is decided."),
    ]
    began = datetime.now(UTC) + timedelta(minutes=1)
    file = transcript(tmp_path / "talk.jsonl", "s1", cli.project, *said, began=began)
    cli.ok("backfill", str(file))
    assert get(cli, old)["superseded_by"] is None


# How much may happen


@pytest.fixture(params=["mark", "off"])
def level(request):
    return request.param


def test_below_full_nothing_is_retired(cli, level):
    old = cli.add("We use MySQL for billing")
    cli.ok("add", "We moved billing from MySQL to PostgreSQL", "--automatic", level)
    assert get(cli, old)["superseded_by"] is None


def test_below_full_nothing_is_closed(cli, level):
    todo = cli.add("TODO: rotate the signing key")
    cli.ok("add", "The signing key has been rotated", "--automatic", level)
    assert not get(cli, todo)["answered"]


def test_below_full_nothing_is_merged(cli, level):
    cli.add("Only the infra team may restore backups.")
    text = "Backups can be restored by the infra team only."
    assert cli.json("add", text, "--automatic", level)["status"] == "added"


def test_with_mark_the_older_one_is_marked(cli):
    old = cli.add("We use MySQL for billing")
    new = cli.json("add", "We moved billing from MySQL to PostgreSQL", "--automatic", "mark")
    assert new["marks"] == [old]
    assert get(cli, old)["newer"] == [new["id"]]


def test_with_off_nothing_is_marked(cli):
    old = cli.add("We use MySQL for billing")
    cli.ok("add", "We moved billing from MySQL to PostgreSQL", "--automatic", "off")
    assert get(cli, old)["newer"] == []


def test_the_level_is_a_setting(cli):
    cli.ok("config", "automatic", "off")
    old = cli.add("We use MySQL for billing")
    cli.add("We moved billing from MySQL to PostgreSQL")
    assert get(cli, old)["superseded_by"] is None


# Marks are derived


@pytest.fixture
def marked(cli):
    """The ids of a statement and of a newer one."""
    old = cli.add("The API is at http://api.example.com/v1")
    return old, cli.add("The API is at https://api.example.com/v1")


def test_an_export_does_not_hold_marks(cli, marked):
    assert not any("newer" in one for one in json.loads(cli.ok("export")))


def test_an_import_finds_the_marks_again(cli, marked, tmp_path, monkeypatch):
    old, new = marked
    file = tmp_path / "export.jsonl"
    cli.ok("export", "--output", str(file))
    monkeypatch.setenv("BETHINK_DATABASE", str(tmp_path / "other.db"))
    cli.ok("import", str(file), "--trusted")
    assert get(cli, old)["newer"] == [new]
