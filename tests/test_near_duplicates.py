"""Near duplicates told apart from statements that only look alike: by their words, and through the API with the packaged models."""

import itertools

import pytest

from bethink.api import Bethink
from bethink.config import Config
from bethink.ingest.wording import are_equivalent
from bethink.judge import Judge
from bethink.store.sqlite import SqliteStore

# New and old text: articles, inflections, punctuation and spelling differ, or the new one says less.
ALIKE = [
    pytest.param(
        "The cache is cleared at midnight",
        "Cache is cleared at midnight",
        id="the-cache-is-cleared-at-midnight",
    ),
    pytest.param(
        "We deploy the shop from main branch",
        "We deploy the shop from the main branch",
        id="we-deploy-the-shop-from-main-branch",
    ),
    pytest.param(
        "A worker retries a failed job three times",
        "The worker retries the failed job three times",
        id="a-worker-retries-a-failed-job-three-times",
    ),
    pytest.param(
        "Invoices are rounded to full cents",
        "Invoices are rounded to full cents.",
        id="invoices-are-rounded-to-full-cents",
    ),
    pytest.param(
        "We use Redis for sessions and for locks",
        "We use Redis for sessions, for locks",
        id="we-use-redis-for-sessions-and-for-locks",
    ),
    pytest.param(
        "Feature flags live in Consul",
        "The feature flags live in Consul!",
        id="feature-flags-live-in-consul",
    ),
    pytest.param(
        "The API returns 404 for unknown orders",
        "The API will return 404 for unknown orders",
        id="the-api-returns-404-for-unknown-orders",
    ),
    pytest.param(
        "The importer caches every response",
        "The importer is caching every response",
        id="the-importer-caches-every-response",
    ),
    pytest.param(
        "The gateway validates all orders",
        "The gateway validated all orders",
        id="the-gateway-validates-all-orders",
    ),
    pytest.param(
        "Backups are stored in Frankfurt",
        "The backup is stored in Frankfurt",
        id="backups-are-stored-in-frankfurt",
    ),
    pytest.param(
        "Migrations run before the tests",
        "The migration runs before the tests",
        id="migrations-run-before-the-tests",
    ),
    pytest.param(
        "Tests stop at the first failure",
        "The tests stopped at the first failure",
        id="tests-stop-at-the-first-failure",
    ),
    pytest.param(
        "The linker loads every symbol twice",
        "The linker loads each symbol twice",
        id="the-linker-loads-every-symbol-twice",
    ),
    pytest.param(
        "Don't commit generated files",
        "Do not commit generated files",
        id="don-t-commit-generated-files",
    ),
    pytest.param(
        "We can't delete invoices", "We cannot delete invoices", id="we-can-t-delete-invoices"
    ),
    pytest.param(
        "The server doesn’t log request bodies",
        "The server does not log request bodies",
        id="the-server-doesn-t-log-request-bodies",
    ),
    pytest.param(
        "Uploads are limited to 10MB",
        "Uploads are limited to 10 MB",
        id="uploads-are-limited-to-10mb",
    ),
    pytest.param(
        "Tokens expire after 24h", "Tokens expire after 24 h.", id="tokens-expire-after-24h"
    ),
    pytest.param(
        "Only admins may delete orders",
        "Only administrators may delete orders",
        id="only-admins-may-delete-orders",
    ),
    pytest.param(
        "Auth is done by the gateway",
        "Authentication is done by the gateway",
        id="auth-is-done-by-the-gateway",
    ),
    pytest.param(
        "The config lives in etc", "The configuration lives in etc", id="the-config-lives-in-etc"
    ),
    pytest.param(
        "The db is backed up every night",
        "The database is backed up each night",
        id="the-db-is-backed-up-every-night",
    ),
    pytest.param(
        "Staging and production share one repo",
        "Staging and production share one repository",
        id="staging-and-production-share-one-repo",
    ),
    pytest.param(
        "The env variables are read at start",
        "The environment variables are read at the start",
        id="the-env-variables-are-read-at-start",
    ),
    pytest.param(
        "Users log in with a magic link",
        "Users log in via a magic link",
        id="users-log-in-with-a-magic-link",
    ),
    pytest.param(
        "The service that sends the mails is written in Rust",
        "The service which sends the mails is written in Rust",
        id="the-service-that-sends-the-mails-is-written-in-rust",
    ),
    pytest.param(
        "Orders older than a year go to the archive",
        "Orders that are older than a year go to the archive",
        id="orders-older-than-a-year-go-to-the-archive",
    ),
    pytest.param("We now deploy on Fridays", "We deploy on Fridays", id="we-now-deploy-on-fridays"),
    pytest.param(
        "The linter also checks the docs",
        "The linter checks the docs",
        id="the-linter-also-checks-the-docs",
    ),
    pytest.param("Our API speaks gRPC", "The API speaks gRPC", id="our-api-speaks-grpc"),
    pytest.param(
        "The retries are limited to three",
        "The retry is limited to three",
        id="the-retries-are-limited-to-three",
    ),
    pytest.param(
        "The queue keeps failed messages for a week",
        "The queue keeps failed messages for a week, then drops them",
        id="the-queue-keeps-failed-messages-for-a-week",
    ),
    pytest.param(
        "The report runs at night",
        "The report runs at night on the replica",
        id="the-report-runs-at-night",
    ),
    pytest.param(
        "We decided to use Kafka for billing",
        "We decided to use Kafka for the billing service",
        id="we-decided-to-use-kafka-for-billing",
    ),
    pytest.param(
        "the DEFAULT branch is `main`",
        "The default branch is main",
        id="the-default-branch-is-main",
    ),
    pytest.param(
        "**The proxy** listens on port 8080",
        "The proxy listens on port 8080",
        id="the-proxy-listens-on-port-8080",
    ),
    pytest.param(
        "Is the replica read only?", "is the replica read-only?", id="is-the-replica-read-only"
    ),
    pytest.param(
        "Never push to main on a Friday",
        "Never push to the main on a Friday.",
        id="never-push-to-main-on-a-friday",
    ),
    pytest.param(
        "It's the gateway that signs requests",
        "It is the gateway that signs the requests",
        id="it-s-the-gateway-that-signs-requests",
    ),
    pytest.param(
        "The crawler follows links for two levels",
        "The crawlers follow links for two levels",
        id="the-crawler-follows-links-for-two-levels",
    ),
    pytest.param(
        "Anna's team owns the parser",
        "Anna’s team owns the parser",
        id="anna-s-team-owns-the-parser",
    ),
    pytest.param(
        "Logs are shipped to Loki", "Logs are being shipped to Loki", id="logs-are-shipped-to-loki"
    ),
    pytest.param(
        "The index has been split by tenant",
        "The index is split by tenant",
        id="the-index-has-been-split-by-tenant",
    ),
    pytest.param(
        "Prices are kept in cents", "Price is kept in cents", id="prices-are-kept-in-cents"
    ),
    pytest.param(
        "Secrets come from Vault (never from files)",
        "Secrets come from Vault, never from files",
        id="secrets-come-from-vault-never-from-files",
    ),
    pytest.param(
        "The schema has been frozen", "The schema is frozen", id="the-schema-has-been-frozen"
    ),
]

# New and old text: nearly the same words that say something else.
DIFFERENT = [
    pytest.param("The build uses just", "The build uses make", id="the-build-uses-just"),
    pytest.param(
        "We are thinking of Valkey for the cache",
        "We use Redis for the cache",
        id="we-are-thinking-of-valkey-for-the-cache",
    ),
    pytest.param(
        "Keep the dark mode flag off in production",
        "Keep the dark mode flag on in production",
        id="keep-the-dark-mode-flag-off-in-production",
    ),
    pytest.param(
        "The cache is cleared after the import",
        "The cache is cleared before the import",
        id="the-cache-is-cleared-after-the-import",
    ),
    pytest.param(
        "Migrations run after the deploy of the shop",
        "Migrations run before the deploy of the shop",
        id="migrations-run-after-the-deploy-of-the-shop",
    ),
    pytest.param(
        "Log files older than a month go down to the archive",
        "Log files older than a month go up to the archive",
        id="log-files-older-than-a-month-go-down-to-the-archive",
    ),
    pytest.param(
        "The worker runs over the limit of memory",
        "The worker runs under the limit of memory",
        id="the-worker-runs-over-the-limit-of-memory",
    ),
    pytest.param(
        "Requests must be cached by the proxy",
        "Requests may be cached by the proxy",
        id="requests-must-be-cached-by-the-proxy",
    ),
    pytest.param(
        "Some tests must pass before a merge",
        "All tests must pass before a merge",
        id="some-tests-must-pass-before-a-merge",
    ),
    pytest.param(
        "Traffic goes to the gateway from the cache",
        "Traffic goes from the gateway to the cache",
        id="traffic-goes-to-the-gateway-from-the-cache",
    ),
    pytest.param("Tom reports to Anna", "Anna reports to Tom", id="tom-reports-to-anna"),
    pytest.param(
        "Postgres is faster than Redis here",
        "Redis is faster than Postgres here",
        id="postgres-is-faster-than-redis-here",
    ),
    pytest.param(
        "The billing service calls the frontend",
        "The frontend calls the billing service",
        id="the-billing-service-calls-the-frontend",
    ),
    pytest.param(
        "Users should delete their own orders",
        "Users can delete their own orders",
        id="users-should-delete-their-own-orders",
    ),
    pytest.param(
        "Anna may approve releases",
        "Only Anna may approve releases",
        id="anna-may-approve-releases",
    ),
    pytest.param(
        "Only Anna may approve releases",
        "Anna may approve releases",
        id="only-anna-may-approve-releases",
    ),
    pytest.param(
        "Lock the table until importing",
        "Lock the table while importing",
        id="lock-the-table-until-importing",
    ),
    pytest.param(
        "Is it safe to retry the payment",
        "It is safe to retry the payment",
        id="is-it-safe-to-retry-the-payment",
    ),
    pytest.param(
        "The values are less than ten",
        "The values are more than ten",
        id="the-values-are-less-than-ten",
    ),
    pytest.param(
        "We want telemetry in the client if any",
        "We do want telemetry in the client",
        id="we-want-telemetry-in-the-client-if-any",
    ),
    pytest.param(
        "We deploy from the maintenance branch",
        "We deploy from the main branch",
        id="we-deploy-from-the-maintenance-branch",
    ),
    pytest.param(
        "International customers pay in euros",
        "Internal customers pay in euros",
        id="international-customers-pay-in-euros",
    ),
    pytest.param(
        "The portal is open to everybody in the office",
        "The port is open to everybody in the office",
        id="the-portal-is-open-to-everybody-in-the-office",
    ),
    pytest.param(
        "The production database is backed up every night",
        "The product database is backed up every night",
        id="the-production-database-is-backed-up-every-night",
    ),
    pytest.param(
        "Feature flags are stored in the projector settings",
        "Feature flags are stored in the project settings",
        id="feature-flags-are-stored-in-the-projector-settings",
    ),
    pytest.param(
        "Contractor tests run before every release",
        "Contract tests run before every release",
        id="contractor-tests-run-before-every-release",
    ),
    pytest.param(
        "All orders are validated by the gateway except refunds",
        "All orders are validated by the gateway",
        id="all-orders-are-validated-by-the-gateway-except-refunds",
    ),
    pytest.param(
        "All orders are validated by the gateway",
        "All orders are validated by the gateway except refunds",
        id="all-orders-are-validated-by-the-gateway",
    ),
    pytest.param(
        "The customer id is unique per tenant unless merged",
        "The customer id is unique per tenant",
        id="the-customer-id-is-unique-per-tenant-unless-merged",
    ),
    pytest.param(
        "The customer id is unique per tenant",
        "The customer id is unique per tenant unless merged",
        id="the-customer-id-is-unique-per-tenant",
    ),
    pytest.param(
        "Anna reviews the migrations",
        "Ann reviews the migrations",
        id="anna-reviews-the-migrations",
    ),
    pytest.param(
        "Deploys need approval from Samantha",
        "Deploys need approval from Sam",
        id="deploys-need-approval-from-samantha",
    ),
    pytest.param(
        "The server for Marketing is in the office",
        "The server for Mark is in the office",
        id="the-server-for-marketing-is-in-the-office",
    ),
    pytest.param(
        "Retries are unsafe for the payment endpoint",
        "Retries are safe for the payment endpoint",
        id="retries-are-unsafe-for-the-payment-endpoint",
    ),
    pytest.param(
        "The build was broken on Windows",
        "The build is broken on Windows",
        id="the-build-was-broken-on-windows",
    ),
    pytest.param(
        "The staging database is backed up every night",
        "The database is backed up every night",
        id="the-staging-database-is-backed-up-every-night",
    ),
    pytest.param(
        "The database is backed up every night",
        "The staging database is backed up every night",
        id="the-database-is-backed-up-every-night",
    ),
    pytest.param(
        "The parser is written in C",
        "The parser is written in C++",
        id="the-parser-is-written-in-c",
    ),
    pytest.param(
        "Alert when latency > 5 ms", "Alert when latency < 5 ms", id="alert-when-latency-5-ms"
    ),
    pytest.param("The seat costs 5 $", "The seat costs 5 €", id="the-seat-costs-5"),
    pytest.param("The offset is 5 hours", "The offset is -5 hours", id="the-offset-is-5-hours"),
    pytest.param(
        "The queue runs on Redis and Kafka",
        "The queue runs on Redis",
        id="the-queue-runs-on-redis-and-kafka",
    ),
    pytest.param(
        "We deploy on Mondays", "We deploy on Mondays, never on Fridays", id="we-deploy-on-mondays"
    ),
    pytest.param(
        "The proxy maps port 80 to 8080",
        "The proxy maps port 8080 to 80",
        id="the-proxy-maps-port-80-to-8080",
    ),
    pytest.param(
        "Deploy token is [REDACTED:github-token].",
        "The deploy token is [REDACTED:github-token]",
        id="deploy-token-is-redacted-github-token",
    ),
    pytest.param(
        "Restart the worker and the proxy",
        "Restart the worker or the proxy",
        id="restart-the-worker-and-the-proxy",
    ),
    pytest.param(
        "Logs are kept with the invoices",
        "Logs are kept without the invoices",
        id="logs-are-kept-with-the-invoices",
    ),
    pytest.param(
        "Copy the files from staging into production",
        "Copy the files from production into staging",
        id="copy-the-files-from-staging-into-production",
    ),
    pytest.param(
        "The first replica answers reads",
        "The last replica answers reads",
        id="the-first-replica-answers-reads",
    ),
    pytest.param(
        "Both regions must answer", "One region must answer", id="both-regions-must-answer"
    ),
    pytest.param(
        "Trusted hosts skip the check",
        "Untrusted hosts skip the check",
        id="trusted-hosts-skip-the-check",
    ),
    pytest.param(
        "The upload is synchronous", "The upload is asynchronous", id="the-upload-is-synchronous"
    ),
    pytest.param(
        "Merge when the tests pass", "Merge before the tests pass", id="merge-when-the-tests-pass"
    ),
    pytest.param(
        "The job runs since the release",
        "The job runs until the release",
        id="the-job-runs-since-the-release",
    ),
    pytest.param(
        "Developers may not push to main",
        "Developers may push to main",
        id="developers-may-not-push-to-main",
    ),
    pytest.param(
        "Users in the EU are asked for consent",
        "Users outside the EU are asked for consent",
        id="users-in-the-eu-are-asked-for-consent",
    ),
    pytest.param(
        "Deletes are soft for customers",
        "Deletes are soft for customers only if they ask",
        id="deletes-are-soft-for-customers",
    ),
    pytest.param("Now lint:", "Lint is failing", id="now-lint"),
    pytest.param(
        "Run rm -rf /build first", "Run rm -rf ./build first", id="a-point-in-front-of-a-path"
    ),
]


@pytest.fixture(scope="module")
def judge():
    return Judge()


@pytest.fixture(scope="module")
def open_memory(local, judge, tmp_path_factory):
    """Opens an empty project; all of them share one database and both models."""
    folder = tmp_path_factory.mktemp("projects")
    store, numbers = SqliteStore(folder / "memory.db"), itertools.count()

    def open_():
        project = folder / str(next(numbers))
        project.mkdir()
        return Bethink(directory=project, config=Config(), store=store, embedder=local, judge=judge)

    yield open_
    store.close()


@pytest.mark.parametrize(("new", "old"), ALIKE)
def test_words_that_say_the_same_are_recognised(new, old):
    assert are_equivalent(new, old)


@pytest.mark.parametrize(("new", "old"), DIFFERENT)
def test_words_that_say_something_else_are_recognised(new, old):
    assert not are_equivalent(new, old)


@pytest.mark.parametrize(("new", "old"), ALIKE)
def test_what_repeats_is_kept_once(open_memory, new, old):
    memory = open_memory()
    known = memory.add(old).id
    assert memory.add(new).duplicate_of == known


@pytest.mark.parametrize(("new", "old"), DIFFERENT)
def test_what_says_something_else_is_stored(open_memory, new, old):
    memory = open_memory()
    memory.add(old)
    assert memory.add(new).status == "added"


@pytest.mark.parametrize(
    ("new", "old"),
    [
        pytest.param(
            "Backups can be restored by the infra team only.",
            "Only the infra team may restore backups.",
            id="passive",
        ),
        pytest.param("Release notes owner: Ines", "Ines owns the release notes.", id="a-label"),
    ],
)
def test_the_judge_recognises_other_words_for_the_same(open_memory, new, old):
    memory = open_memory()
    known = memory.add(old).id
    assert memory.add(new).duplicate_of == known


@pytest.mark.parametrize(
    "thought",
    ["We are thinking of Valkey for the cache", "The cache runs on Valkey, I think."],
    ids=["thinking-of", "i-think"],
)
def test_who_only_thinks_of_something_changes_nothing(open_memory, thought):
    memory = open_memory()
    known = memory.add("We use Redis for the cache").id
    outcome = memory.add(thought)
    assert (outcome.supersedes, outcome.marks, outcome.proposals) == ((), (), ())
    assert memory.one(known).newer == ()


def test_who_says_that_the_old_value_is_gone_replaces_it(open_memory):
    memory = open_memory()
    known = memory.add("We use Redis for the cache").id
    assert memory.add("The cache runs on Valkey, Redis is gone").supersedes == (known,)


@pytest.mark.parametrize(
    ("text", "is_todo"),
    [
        pytest.param("Ask Olga for an account on the build server.", True, id="ask"),
        pytest.param("Remind me to renew the wildcard certificate.", True, id="remind"),
        pytest.param("Let's set up a weekly load test for the gateway.", True, id="let-us"),
        pytest.param("Back up the database before each migration.", False, id="a-rule"),
        pytest.param("Every exported type needs a comment.", False, id="a-need"),
        pytest.param("fix: retry the flaky upload", False, id="a-commit"),
    ],
)
def test_a_note_that_wants_something_done_is_a_to_do(open_memory, text, is_todo):
    memory = open_memory()
    assert (memory.one(memory.add(text).id).kind == "todo") is is_todo


def test_a_kind_that_is_given_is_kept(open_memory):
    memory = open_memory()
    assert memory.one(memory.add("Ask Ben about the logo", kind="fact").id).kind == "fact"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(
            "Deployments to production happen on Tuesdays and Thursdays only.",
            "We deploy to production any weekday, not just Tuesdays and Thursdays.",
            id="any-day",
        ),
        pytest.param(
            "The API limit is 100 requests per minute.",
            "API clients can send at most 100 requests per second.",
            id="unit",
        ),
        pytest.param(
            "The uploader copies files from S3 to GCS.",
            "Files are copied from GCS to S3 by the uploader.",
            id="direction",
        ),
        pytest.param(
            "Invoices are sent by Anna to Bert.", "Bert sends the invoices to Anna.", id="roles"
        ),
        pytest.param(
            "Passwords must have at least 12 characters.",
            "Passwords can have at most 12 characters.",
            id="limit",
        ),
        pytest.param(
            "Reports are generated in the morning.",
            "We generate the reports in the evening.",
            id="time-of-day",
        ),
        pytest.param(
            "Schema changes need approval by the DBA first.",
            "The DBA must approve schema changes afterwards.",
            id="order",
        ),
        pytest.param(
            "Everyone except contractors can merge.", "Only contractors can merge.", id="exception"
        ),
        pytest.param(
            "The sandbox sends real emails.", "No email ever leaves the sandbox.", id="no"
        ),
    ],
)
def test_an_opposite_in_other_words_is_stored(open_memory, old, new):
    memory = open_memory()
    memory.add(old)
    assert memory.add(new).status == "added"
