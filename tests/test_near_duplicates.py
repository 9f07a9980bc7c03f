"""Near duplicates told apart from statements that only look alike: two tables of pairs, (new, old), by the words and through the
front door with the model that is shipped."""

from __future__ import annotations

import pytest
import test_embed

from bethink.api import Bethink
from bethink.ingest.wording import say_the_same

model_or_pull, local = test_embed.model_or_pull, test_embed.local

# What adds nothing: articles, inflections, punctuation, spelling, or less than is known.
ALIKE = [
    ("The cache is cleared at midnight", "Cache is cleared at midnight"),
    ("We deploy the shop from main branch", "We deploy the shop from the main branch"),
    ("A worker retries a failed job three times", "The worker retries the failed job three times"),
    ("Invoices are rounded to full cents", "Invoices are rounded to full cents."),
    ("We use Redis for sessions and for locks", "We use Redis for sessions, for locks"),
    ("Feature flags live in Consul", "The feature flags live in Consul!"),
    ("The API returns 404 for unknown orders", "The API will return 404 for unknown orders"),
    ("The importer caches every response", "The importer is caching every response"),
    ("The gateway validates all orders", "The gateway validated all orders"),
    ("Backups are stored in Frankfurt", "The backup is stored in Frankfurt"),
    ("Migrations run before the tests", "The migration runs before the tests"),
    ("Tests stop at the first failure", "The tests stopped at the first failure"),
    ("The linker loads every symbol twice", "The linker loads each symbol twice"),
    ("Don't commit generated files", "Do not commit generated files"),
    ("We can't delete invoices", "We cannot delete invoices"),
    ("The server doesn’t log request bodies", "The server does not log request bodies"),
    ("Uploads are limited to 10MB", "Uploads are limited to 10 MB"),
    ("Tokens expire after 24h", "Tokens expire after 24 h."),
    ("Only admins may delete orders", "Only administrators may delete orders"),
    ("Auth is done by the gateway", "Authentication is done by the gateway"),
    ("The config lives in etc", "The configuration lives in etc"),
    ("The db is backed up every night", "The database is backed up each night"),
    ("Staging and production share one repo", "Staging and production share one repository"),
    ("The env variables are read at start", "The environment variables are read at the start"),
    ("Users log in with a magic link", "Users log in via a magic link"),
    (
        "The service that sends the mails is written in Rust",
        "The service which sends the mails is written in Rust",
    ),
    (
        "Orders older than a year go to the archive",
        "Orders that are older than a year go to the archive",
    ),
    ("We now deploy on Fridays", "We deploy on Fridays"),
    ("The linter also checks the docs", "The linter checks the docs"),
    ("Our API speaks gRPC", "The API speaks gRPC"),
    ("The retries are limited to three", "The retry is limited to three"),
    (
        "The queue keeps failed messages for a week",
        "The queue keeps failed messages for a week, then drops them",
    ),
    ("The report runs at night", "The report runs at night on the replica"),
    ("We decided to use Kafka for billing", "We decided to use Kafka for the billing service"),
    ("the DEFAULT branch is `main`", "The default branch is main"),
    ("**The proxy** listens on port 8080", "The proxy listens on port 8080"),
    ("Is the replica read only?", "is the replica read-only?"),
    ("Never push to main on a Friday", "Never push to the main on a Friday."),
    ("It's the gateway that signs requests", "It is the gateway that signs the requests"),
    ("The crawler follows links for two levels", "The crawlers follow links for two levels"),
    ("Anna's team owns the parser", "Anna’s team owns the parser"),
    ("Logs are shipped to Loki", "Logs are being shipped to Loki"),
    ("The index has been split by tenant", "The index is split by tenant"),
    ("Prices are kept in cents", "Price is kept in cents"),
    ("Secrets come from Vault (never from files)", "Secrets come from Vault, never from files"),
    ("The schema has been frozen", "The schema is frozen"),
]
# What says something else in nearly the same words.
DIFFERENT = [
    ("The build uses just", "The build uses make"),
    ("We are thinking of Valkey for the cache", "We use Redis for the cache"),
    ("Keep the dark mode flag off in production", "Keep the dark mode flag on in production"),
    ("The cache is cleared after the import", "The cache is cleared before the import"),
    ("Migrations run after the deploy of the shop", "Migrations run before the deploy of the shop"),
    (
        "Log files older than a month go down to the archive",
        "Log files older than a month go up to the archive",
    ),
    ("The worker runs over the limit of memory", "The worker runs under the limit of memory"),
    ("Requests must be cached by the proxy", "Requests may be cached by the proxy"),
    ("Some tests must pass before a merge", "All tests must pass before a merge"),
    ("Traffic goes to the gateway from the cache", "Traffic goes from the gateway to the cache"),
    ("Tom reports to Anna", "Anna reports to Tom"),
    ("Postgres is faster than Redis here", "Redis is faster than Postgres here"),
    ("The billing service calls the frontend", "The frontend calls the billing service"),
    ("Users should delete their own orders", "Users can delete their own orders"),
    ("Anna may approve releases", "Only Anna may approve releases"),
    ("Only Anna may approve releases", "Anna may approve releases"),
    ("Lock the table until importing", "Lock the table while importing"),
    ("Is it safe to retry the payment", "It is safe to retry the payment"),
    ("The values are less than ten", "The values are more than ten"),
    ("We want telemetry in the client if any", "We do want telemetry in the client"),
    ("We deploy from the maintenance branch", "We deploy from the main branch"),
    ("International customers pay in euros", "Internal customers pay in euros"),
    (
        "The portal is open to everybody in the office",
        "The port is open to everybody in the office",
    ),
    (
        "The production database is backed up every night",
        "The product database is backed up every night",
    ),
    (
        "Feature flags are stored in the projector settings",
        "Feature flags are stored in the project settings",
    ),
    ("Contractor tests run before every release", "Contract tests run before every release"),
    (
        "All orders are validated by the gateway except refunds",
        "All orders are validated by the gateway",
    ),
    (
        "All orders are validated by the gateway",
        "All orders are validated by the gateway except refunds",
    ),
    ("The customer id is unique per tenant unless merged", "The customer id is unique per tenant"),
    ("The customer id is unique per tenant", "The customer id is unique per tenant unless merged"),
    ("Anna reviews the migrations", "Ann reviews the migrations"),
    ("Deploys need approval from Samantha", "Deploys need approval from Sam"),
    ("The server for Marketing is in the office", "The server for Mark is in the office"),
    ("Retries are unsafe for the payment endpoint", "Retries are safe for the payment endpoint"),
    ("The build was broken on Windows", "The build is broken on Windows"),
    ("The staging database is backed up every night", "The database is backed up every night"),
    ("The database is backed up every night", "The staging database is backed up every night"),
    ("The parser is written in C", "The parser is written in C++"),
    ("Alert when latency > 5 ms", "Alert when latency < 5 ms"),
    ("The seat costs 5 $", "The seat costs 5 €"),
    ("The offset is 5 hours", "The offset is -5 hours"),
    ("The queue runs on Redis and Kafka", "The queue runs on Redis"),
    ("We deploy on Mondays", "We deploy on Mondays, never on Fridays"),
    ("The proxy maps port 80 to 8080", "The proxy maps port 8080 to 80"),
    ("Deploy token is [REDACTED:github-token].", "The deploy token is [REDACTED:github-token]"),
    ("Restart the worker and the proxy", "Restart the worker or the proxy"),
    ("Logs are kept with the invoices", "Logs are kept without the invoices"),
    ("Copy the files from staging into production", "Copy the files from production into staging"),
    ("The first replica answers reads", "The last replica answers reads"),
    ("Both regions must answer", "One region must answer"),
    ("Trusted hosts skip the check", "Untrusted hosts skip the check"),
    ("The upload is synchronous", "The upload is asynchronous"),
    ("Merge when the tests pass", "Merge before the tests pass"),
    ("The job runs since the release", "The job runs until the release"),
    ("Developers may not push to main", "Developers may push to main"),
    ("Users in the EU are asked for consent", "Users outside the EU are asked for consent"),
    ("Deletes are soft for customers", "Deletes are soft for customers only if they ask"),
]
DIRECTIONS = [(new, old, True) for new, old in ALIKE] + [
    (new, old, False) for new, old in DIFFERENT
]


@pytest.mark.parametrize(
    ("new", "old", "alike"), DIRECTIONS, ids=[f"{new} / {old}" for new, old, _ in DIRECTIONS]
)
def test_the_words_tell_whether_anything_is_added(new, old, alike):
    assert say_the_same(new, old) is alike


def test_memory_keeps_what_says_something_else_and_not_what_repeats(local, tmp_path, monkeypatch):
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path / "home"))
    status = {}
    for number, (new, old, _) in enumerate(DIRECTIONS):
        (tmp_path / str(number)).mkdir()
        with Bethink(
            tmp_path / "memory.db", directory=tmp_path / str(number), embedder=local
        ) as memory:
            memory.add(old)
            status[new, old] = memory.add(new).status
    assert [pair for pair in DIFFERENT if status[pair] != "added"] == []
    assert [pair for pair in ALIKE if status[pair] == "added"] == []


def test_who_only_thinks_of_something_replaces_nothing(local, tmp_path, monkeypatch):
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path / "home"))
    (tmp_path / "shop").mkdir()
    with Bethink(tmp_path / "memory.db", directory=tmp_path / "shop", embedder=local) as memory:
        known = memory.add("We use Redis for the cache")
        thought = memory.add("We are thinking of Valkey for the cache")
        assert not thought.supersedes and [one.id for one in thought.proposals] == [known.id]
        assert memory.add("The cache runs on Valkey, Redis is gone").supersedes
