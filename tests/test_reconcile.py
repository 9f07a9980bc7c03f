"""The words of two statements, and the verdict on a new one: what repeats, replaces, marks or closes a known one."""

from datetime import timedelta

import pytest
from stores import day, make

from bethink.ingest.effects import EFFECTS
from bethink.ingest.extract import entities
from bethink.ingest.reconcile import (
    ANSWERS,
    BUILDS_ON,
    COMPLETES,
    MARKS,
    ORDERS,
    RETIRES,
    SAME,
    Neighbour,
    needed_to_complete,
    reconcile,
    take_headline,
)
from bethink.ingest.wording import (
    adds_nothing,
    are_equivalent,
    contrasts,
    ends_old_value,
    find_code_tokens,
    find_quantities,
    is_correction,
    makes_one_claim,
    mentions,
    states_change_of,
)
from bethink.language.change import find_change
from bethink.model import TRUST

# Words of one text


@pytest.mark.parametrize(
    ("text", "headline"),
    [
        pytest.param(
            "We moved from A to B. It went well.",
            "We moved from A to B. It went well.",
            id="we-moved-from-a-to-b-it-went-well",
        ),
        pytest.param(
            "We moved from A to B.\n\nIt went well.",
            "We moved from A to B.",
            id="we-moved-from-a-to-b-it-went-well-2",
        ),
        pytest.param(
            "No. That run only synced main. Use C instead of D. Use C instead of D. Use C instead of D. Use C instead of D. Use C instead of D. Use C instead of D. Use C instead of D. Use C instead of D. Use C instead of D. Use C instead of D. Use C instead of D. Use C instead of D. Use C instead of D. Use C instead of D. Use C instead of D. Use C instead of D. Use C instead of D. Use C instead of D. Use C instead of D. Use C instead of D. ",
            "No.",
            id="no-that-run-only-synced-main-use-c-ins",
        ),
        pytest.param(
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            id="xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        ),
    ],
)
def test_the_headline_of_a_long_text_is_its_first_sentence(text, headline):
    assert take_headline(text) == headline


@pytest.mark.parametrize(
    ("text", "change"),
    [
        pytest.param(
            "We switched from MySQL to PostgreSQL",
            ("MySQL", "PostgreSQL"),
            id="we-switched-from-mysql-to-postgresql",
        ),
        pytest.param(
            "We switched the billing service from MySQL to PostgreSQL.",
            ("MySQL", "PostgreSQL"),
            id="we-switched-the-billing-service-from-mysql-to-postgresql",
        ),
        pytest.param(
            "Moved from Jenkins over to GitHub Actions, finally",
            ("Jenkins", "GitHub Actions"),
            id="moved-from-jenkins-over-to-github-actions-finally",
        ),
        pytest.param(
            "We are migrating from REST to gRPC; it takes a month",
            ("REST", "gRPC"),
            id="we-are-migrating-from-rest-to-grpc-it-takes-a-month",
        ),
        pytest.param(
            "The default changed from 10 to 20",
            ("10", "20"),
            id="the-default-changed-from-10-to-20",
        ),
        pytest.param(
            "We replaced webpack with vite", ("webpack", "vite"), id="we-replaced-webpack-with-vite"
        ),
        pytest.param(
            "I swapped moment for dayjs", ("moment", "dayjs"), id="i-swapped-moment-for-dayjs"
        ),
        pytest.param("Use pnpm instead of npm", ("npm", "Use pnpm"), id="use-pnpm-instead-of-npm"),
        pytest.param(
            "We run Podman rather than Docker",
            ("Docker", "run Podman"),
            id="we-run-podman-rather-than-docker",
        ),
        pytest.param(
            "We no longer use Travis, builds run on CircleCI",
            ("Travis", "builds run on CircleCI"),
            id="we-no-longer-use-travis-builds-run-on-circleci",
        ),
        pytest.param(
            "We no longer support Python 3.8.",
            ("Python 3.8", ""),
            id="we-no-longer-support-python-3-8",
        ),
        pytest.param(
            "We moved from Node 18.1 to Node 20.2. It is faster",
            ("Node 18.1", "Node 20.2"),
            id="we-moved-from-node-18-1-to-node-20-2-it-is-faster",
        ),
        pytest.param(
            "We replaced moment.js with day.js",
            ("moment.js", "day.js"),
            id="we-replaced-moment-js-with-day-js",
        ),
        pytest.param(
            "We switched\n  from tabs\nto  spaces",
            ("tabs", "spaces"),
            id="we-switched-from-tabs-to-spaces",
        ),
        pytest.param(
            "The cache runs on Valkey, Redis is gone",
            ("Redis", ""),
            id="the-cache-runs-on-valkey-redis-is-gone",
        ),
        pytest.param(
            "It speaks GraphQL since 4.2, the old REST layer is gone.",
            ("REST", ""),
            id="it-speaks-graphql-since-4-2-the-old-rest-layer-is-gone",
        ),
        pytest.param(
            "The dog was barking and the bone is gone",
            None,
            id="the-dog-was-barking-and-the-bone-is-gone",
        ),
        pytest.param("We use PostgreSQL", None, id="we-use-postgresql"),
        pytest.param(
            "The train from Berlin to Prague is late",
            None,
            id="the-train-from-berlin-to-prague-is-late",
        ),
        pytest.param("We moved house", None, id="we-moved-house"),
        pytest.param(
            "We switched from very very very very very very very very very very very very very very very very very very very very old to new",
            None,
            id="we-switched-from-very-very-very-very-very-very-very-very-ver",
        ),
        pytest.param("", None, id="empty"),
    ],
)
def test_a_stated_change_names_both_things(text, change):
    assert find_change(text) == change


@pytest.mark.parametrize(
    ("text", "quantities"),
    [
        pytest.param("The table has 20,000 rows", {"20000"}, id="separators"),
        pytest.param("The table has twenty thousand rows", {"20000"}, id="words"),
        pytest.param("Ninety-nine retries, 3 workers", {"99", "3"}, id="words-and-digits"),
        pytest.param("One of the workers is slow", set(), id="a-single-one-is-no-number"),
        pytest.param("Version 3.11 at 9:30", {"3.11", "9:30"}, id="versions-and-times"),
        pytest.param("Backups go to S3 and EC2", set(), id="digits-of-a-name"),
        pytest.param("The offset is -5 hours", {"-5"}, id="below-zero"),
        pytest.param("Keep 5-10 backups", {"5", "10"}, id="a-range"),
        pytest.param("Nothing to count here", set(), id="none"),
    ],
)
def test_quantities_are_found_in_digits_or_words(text, quantities):
    assert find_quantities(text) == quantities


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        pytest.param("Run `rm -rf ./build`.", {"-rf", "./build"}, id="options-and-paths"),
        pytest.param(
            "See https://api.example.com/v1.", {"https://api.example.com/v1"}, id="addresses"
        ),
        pytest.param("make lint && make test", {"&&"}, id="operators"),
        pytest.param("Set maxRetries in app.py", {"maxRetries", "app.py"}, id="identifiers"),
        pytest.param("Python 3.11 and node20", {"3.11", "node20"}, id="versions"),
        pytest.param(
            "Tokens expire after 24h, uploads end at 10MB.", set(), id="amounts-with-a-unit"
        ),
        pytest.param("Anna owns the parser, and JWT is used.", set(), id="names-and-prose"),
    ],
)
def test_code_tokens_are_those_in_which_every_sign_counts(text, tokens):
    assert find_code_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "one"),
    [
        pytest.param("We use Redis for the cache", True, id="plain"),
        pytest.param(
            "We use Redis because it is fast, cheap and known", True, id="with-its-reason"
        ),
        pytest.param("Staging is in Frankfurt, production in Dublin.", False, id="comma"),
        pytest.param("The cache is Redis and the queue is Kafka", False, id="and"),
        pytest.param("The cache is Redis. The queue is Kafka.", False, id="two-sentences"),
        pytest.param("Der Cache ist Redis und die Queue Kafka", False, id="german"),
    ],
)
def test_a_text_makes_one_claim_if_nothing_in_it_joins_two(text, one):
    assert makes_one_claim(text) is one


# Words of two texts


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        pytest.param(
            "Use tabs for indentation",
            "Use spaces for indentation",
            True,
            id="use-tabs-for-indentation",
        ),
        pytest.param("We deploy on Monday", "We deploy on Friday", True, id="we-deploy-on-monday"),
        pytest.param("Retry three times", "Retry five times", True, id="retry-three-times"),
        pytest.param("Merging is allowed", "Merging is forbidden", True, id="merging-is-allowed"),
        pytest.param(
            "The build uses gradle", "The build is made by bazel", True, id="the-build-uses-gradle"
        ),
        pytest.param(
            "The cache is in memory and is cleared whenever a deployment finishes",
            "The cache is in memory",
            True,
            id="the-cache-is-in-memory-and-is-cleared-whenever-a-deployment",
        ),
        pytest.param("Use spaces", "Use spaces", False, id="use-spaces"),
        pytest.param("auth by tokens", "authentication by token", False, id="auth-by-tokens"),
        pytest.param(
            "We configure the server",
            "We are configuring the servers",
            False,
            id="we-configure-the-server",
        ),
        pytest.param(
            "The cache is in memory",
            "The cache is in memory and is cleared whenever a deployment finishes",
            False,
            id="the-cache-is-in-memory",
        ),
        pytest.param("the of and", "a to in", False, id="the-of-and"),
        pytest.param("", "", False, id="empty"),
        pytest.param(
            "Deploy on Friday, never late",
            "Never deploy late on Friday",
            False,
            id="deploy-on-friday-never-late",
        ),
    ],
)
def test_texts_contrast_if_a_word_is_exchanged_or_much_is_added(new, old, expected):
    assert contrasts(new, old) is expected


@pytest.mark.parametrize(
    ("text", "thing", "expected"),
    [
        pytest.param(
            "We keep sessions in MySQL.", "mysql", True, id="we-keep-sessions-in-mysql-mysql"
        ),
        pytest.param(
            "We keep sessions in MySQL.",
            "the MySQL",
            False,
            id="we-keep-sessions-in-mysql-the-mysql",
        ),
        pytest.param(
            "The session store is Redis",
            "session stores",
            True,
            id="the-session-store-is-redis-session-stores",
        ),
        pytest.param(
            "We keep sessions in MySQL.",
            "PostgreSQL",
            False,
            id="we-keep-sessions-in-mysql-postgresql",
        ),
        pytest.param("MySQLdump runs at night", "MySQL", False, id="mysqldump-runs-at-night-mysql"),
        pytest.param(
            "GitHub Actions builds it",
            "GitHub Actions",
            True,
            id="github-actions-builds-it-github-actions",
        ),
        pytest.param("Anything", "", False, id="anything"),
        pytest.param("Anything", "…", False, id="anything-2"),
        pytest.param(
            "one two three four",
            "one two three four five six",
            True,
            id="one-two-three-four-one-two-three-four-five-six",
        ),
    ],
)
def test_a_text_mentions_a_thing_if_all_of_its_words_are_there(text, thing, expected):
    assert mentions(text, thing) is expected


ALIKE = [
    pytest.param(
        "Auth uses JWT tokens with 24h expiry",
        "Auth uses JWT tokens with 24h expiry",
        id="auth-uses-jwt-tokens-with-24h-expiry",
    ),
    pytest.param(
        "Authentication uses JWT tokens with a 24h expiry",
        "Auth uses JWT tokens with 24h expiry",
        id="authentication-uses-jwt-tokens-with-a-24h-expiry",
    ),
    pytest.param(
        "auth uses JWT tokens, with 24h expiry.",
        "Auth uses JWT tokens with 24h expiry",
        id="auth-uses-jwt-tokens-with-24h-expiry-2",
    ),
    pytest.param(
        "Users sign in with a magic link sent by email",
        "Users sign in with a magic link that is sent by email",
        id="users-sign-in-with-a-magic-link-sent-by-email",
    ),
    pytest.param(
        "Users sign in by a magic link that is sent by email.",
        "Users sign in with a magic link that is sent by email",
        id="users-sign-in-by-a-magic-link-that-is-sent-by-email",
    ),
    pytest.param(
        "We decided to use PostgreSQL for billing",
        "We decided to use PostgreSQL for the billing service",
        id="we-decided-to-use-postgresql-for-billing",
    ),
    pytest.param(
        "The worker retries 3 times",
        "The worker retries 3 times, then waits 60 seconds",
        id="the-worker-retries-3-times",
    ),
    pytest.param(
        "The deployment pipeline runs on every push to main",
        "The deployment pipelines run on each push to main",
        id="the-deployment-pipeline-runs-on-every-push-to-main",
    ),
    pytest.param(
        "Don’t commit generated files",
        "Don't commit generated files",
        id="don-t-commit-generated-files",
    ),
    pytest.param("Is the cache warm?", "is the cache warm? ", id="is-the-cache-warm"),
]


@pytest.mark.parametrize(("new", "old"), ALIKE)
def test_the_same_words_say_the_same(new, old):
    assert are_equivalent(new, old)


@pytest.mark.parametrize(("new", "old"), ALIKE)
def test_the_same_words_repeat_a_near_statement(new, old):
    known = Neighbour(note(old), 0.95)
    assert reconcile(note(new), [known], threshold=0.9).duplicate is known


DIFFERENT = [
    pytest.param(
        "We deploy on Mondays from main",
        "Deployments go out on Friday, from the main branch",
        id="a-word-exchanged-beside-a-variant-of-another",
    ),
    pytest.param("Use tabs for indentation", "Use spaces for indentation", id="a-word-exchanged"),
    pytest.param("We deploy on Monday", "We deploy on Friday", id="another-day"),
    pytest.param(
        "The worker retries three times", "The worker retries five times", id="a-number-in-words"
    ),
    pytest.param("The worker retries 3 times", "The worker retries 5 times", id="a-number"),
    pytest.param(
        "Force pushes to main are allowed",
        "Force pushes to main are forbidden",
        id="the-opposite-word",
    ),
    pytest.param(
        "The proxy maps port 80 to 8080",
        "The proxy maps port 8080 to 80",
        id="numbers-in-another-order",
    ),
    pytest.param("Does the cache live in Redis?", "The cache lives in Redis.", id="a-question"),
    pytest.param("The cache lives in Redis.", "Does the cache live in Redis?", id="its-answer"),
    pytest.param("Never deploy on Friday", "Always deploy on Friday", id="never-for-always"),
    pytest.param("Do not commit generated files", "Do commit generated files", id="a-negation"),
    pytest.param(
        "The linter is disabled in tests",
        "The linter is enabled in tests",
        id="enabled-or-disabled",
    ),
    pytest.param(
        "Sessions are kept in PostgreSQL", "Sessions are kept in MySQL", id="another-technology"
    ),
    pytest.param(
        "The client library is written in Rust",
        "The client library is written in Go",
        id="another-language",
    ),
    pytest.param(
        "Alice owns the billing service", "Bob owns the billing service", id="another-person"
    ),
    pytest.param(
        "Uploads are limited to 10 MB for 5 users",
        "Uploads are limited to 10 MB",
        id="a-number-added",
    ),
    pytest.param("The queue runs on Redis and Kafka", "The queue runs on Redis", id="a-name-added"),
    pytest.param("Backups run nightly", "Backups run weekly", id="another-rhythm"),
    pytest.param(
        "Version 2.1 dropped Windows",
        "Version 2.10 dropped Windows",
        id="a-version-that-only-starts-alike",
    ),
    pytest.param(
        "The API listens on 127.0.0.1:8000", "The API listens on 127.0.0.1:9000", id="another-port"
    ),
    pytest.param(
        "The build is slow because the linker loads every symbol twice",
        "The build is slow",
        id="a-reason-added",
    ),
    pytest.param("Meetings start at 9:30", "Meetings start at 10:30", id="another-time"),
    pytest.param(
        "The API is at https://shop.example/v1",
        "The API is at http://shop.example/v1",
        id="another protocol",
    ),
    pytest.param(
        "Clean up with rm -rf ./build", "Clean up with rm -rf / build", id="a path in parts"
    ),
    pytest.param("Run lint || test", "Run lint && test", id="another operator"),
    pytest.param("Compile with gcc -w", "Compile with gcc -W", id="an option in capitals"),
    pytest.param(
        "The header is X-Request-ID", "The header is X-Request-Id", id="capitals of a name"
    ),
]


@pytest.mark.parametrize(("new", "old"), DIFFERENT)
def test_a_word_a_number_a_denial_or_a_sign_makes_a_difference(new, old):
    assert not are_equivalent(new, old)


@pytest.mark.parametrize(("new", "old"), DIFFERENT)
def test_what_differs_is_kept_however_near_it_is(new, old):
    assert reconcile(note(new), [Neighbour(note(old), 0.99)], threshold=0.9).duplicate is None


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        pytest.param(
            "Backups go to S3 nightly", "Every night backups go to S3", True, id="other-order"
        ),
        pytest.param(
            "The cache lives seven days", "The cache is kept for 7 days", True, id="number-in-words"
        ),
        pytest.param("Backups go to S3 at 3 am", "Backups go to S3", False, id="a-number"),
        pytest.param("Backups go to s3://nightly", "Backups go to S3", False, id="an-address"),
        pytest.param(
            "Backups go to S3 because disks fail", "Backups go to S3", False, id="a-reason"
        ),
        pytest.param(
            "Backups go to S3 except on Sundays", "Backups go to S3", False, id="an-exception"
        ),
        pytest.param("Staging is backed up", "Production is backed up", False, id="another-part"),
    ],
)
def test_a_rewording_adds_nothing_unless_it_has_a_detail_of_its_own(new, old, expected):
    assert adds_nothing(new, old) is expected


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        pytest.param(
            "The API is at https://shop.example",
            "The API is at http://shop.example",
            True,
            id="protocol",
        ),
        pytest.param(
            "Clean up with rm -rf ./build", "Clean up with rm -rf / build", True, id="path"
        ),
        pytest.param("Compile with gcc -w", "Compile with gcc -W", True, id="capitals"),
        pytest.param(
            "The service is called mailer", "The service is called mailler", True, id="spelling"
        ),
        pytest.param("Tenant 15 pays 60 euros", "Tenant 12 pays 40 euros", False, id="numbers"),
        pytest.param("The queue is Kafka", "The queue is Kafka", False, id="the-same-text"),
        pytest.param("The queue is Kafka", "The cache is Redis", False, id="other-words"),
    ],
)
def test_a_correction_changes_signs_capitals_or_single_letters(new, old, expected):
    assert is_correction(new, old) is expected


BILLING = "We use MySQL for billing"


@pytest.mark.parametrize(
    ("new", "old", "over"),
    [
        pytest.param("We moved billing from MySQL to PostgreSQL", BILLING, True, id="moved-from"),
        pytest.param(
            "We switched from MySQL to PostgreSQL for billing", BILLING, True, id="switched-from"
        ),
        pytest.param(
            "We replaced MySQL with PostgreSQL for billing", BILLING, True, id="replaced-with"
        ),
        pytest.param(
            "We no longer use MySQL, billing runs on PostgreSQL", BILLING, True, id="no-longer"
        ),
        pytest.param("Billing runs on PostgreSQL, MySQL is gone", BILLING, True, id="is-gone"),
        pytest.param(
            "We moved billing from MySQL to PostgreSQL",
            "The billing service uses MySQL because the ledger needs transactions",
            True,
            id="its-reason-is-not-named",
        ),
        pytest.param(
            "We switched from MySQL to PostgreSQL", BILLING, False, id="its-subject-is-not-named"
        ),
        pytest.param(
            "We moved billing from MySQL to PostgreSQL",
            "Reports read MySQL at night",
            False,
            id="another-subject",
        ),
        pytest.param(
            "We moved billing from MySQL to PostgreSQL",
            "We use Redis for billing",
            False,
            id="another-value",
        ),
        pytest.param("We use PostgreSQL for billing", BILLING, False, id="no-change-is-stated"),
    ],
)
def test_a_text_says_that_the_old_value_is_over_if_it_names_value_and_subject(new, old, over):
    assert ends_old_value(new, old) is over


@pytest.mark.parametrize(
    ("new", "old", "changed"),
    [
        pytest.param(
            "We replaced Ed25519 keys with a shared secret for session tokens",
            "Session tokens are signed with Ed25519 keys",
            True,
            id="not-all-of-it-is-named",
        ),
        pytest.param(
            "We moved billing from MySQL to PostgreSQL",
            "Reports read MySQL at night",
            False,
            id="nothing-else-is-shared",
        ),
        pytest.param("We use PostgreSQL for billing", BILLING, False, id="no-change-is-stated"),
    ],
)
def test_a_text_states_a_change_of_another_if_both_name_something_beside_it(new, old, changed):
    assert states_change_of(new, old) is changed


@pytest.mark.parametrize(
    ("todo", "report", "agent", "needed"),
    [
        pytest.param(
            "Rotate the deploy key", "The deploy key was rotated", False, COMPLETES, id="named"
        ),
        pytest.param("Rotate the deploy key", "Everything is done", False, 1.01, id="not-named"),
        pytest.param(
            "Fix SHOP-12: rounding", "SHOP-12 is fixed: rounding", False, 0.0, id="its-ticket"
        ),
        pytest.param(
            "Fix SHOP-12: rounding", "SHOP-13 is fixed: rounding", False, 1.01, id="another-ticket"
        ),
        pytest.param(
            "Rotate the deploy key",
            "Let me look at the deploy key",
            True,
            1.01,
            id="an-agent-that-reports-no-work",
        ),
        pytest.param(
            "Rotate the deploy key",
            "Rotated the deploy key",
            True,
            COMPLETES,
            id="an-agent-that-reports-work",
        ),
    ],
)
def test_only_a_report_that_names_a_to_do_can_close_it(todo, report, agent, needed):
    assert needed_to_complete(todo, report, agent) == needed


# The verdict


def note(text, **fields):
    return make(text, **{"entities": entities(text), "source_type": "note", **fields})


def effect(**chances):
    return dict.fromkeys(EFFECTS, 0.0) | {"keep": 1 - sum(chances.values())} | chances


def judge_pair(new, old, *, threshold=0.9, similarity=0.8, automatic="full", last=None, **chances):
    effects = {old.id: effect(**chances)} if chances else {}
    near = [Neighbour(old, similarity)]
    return reconcile(
        new, near, threshold=threshold, effects=effects, automatic=automatic, last=last
    )


CACHE = "The cache runs on Redis"
MOVED = "The cache runs on Valkey"


def pair(old=CACHE, new=MOVED, *, old_fields=None, **fields):
    """A known statement and a later one."""
    return note(new, created_at=day(2), **fields), note(old, **(old_fields or {}))


@pytest.mark.parametrize(
    ("similarity", "threshold", "repeats"),
    [
        pytest.param(0.95, 0.9, True, id="near"),
        pytest.param(0.9, 0.9, True, id="at-the-threshold"),
        pytest.param(0.89, 0.9, False, id="not-near-enough"),
        pytest.param(0.95, None, False, id="duplicates-are-wanted"),
    ],
)
def test_the_same_words_repeat_only_from_the_threshold_on(similarity, threshold, repeats):
    new, old = pair(new=CACHE + ".")
    found = judge_pair(new, old, similarity=similarity, threshold=threshold)
    assert (found.duplicate is not None) is repeats


def test_a_rewording_that_is_surely_the_same_repeats():
    new, old = pair(new="Redis is what our cache runs on")
    assert judge_pair(new, old, same=SAME).duplicate.memory is old


def test_a_rewording_with_a_new_detail_is_kept_beside_the_old_text():
    new, old = pair(new="Redis 7 is what our cache runs on")
    assert judge_pair(new, old, same=0.99).duplicate is None


def test_a_rewording_that_is_not_surely_the_same_is_kept():
    new, old = pair(new="Redis is what our cache runs on")
    assert judge_pair(new, old, same=SAME - 0.05).duplicate is None


@pytest.mark.parametrize("trusts", [("user", "agent"), ("agent", "user")])
def test_rewordings_of_different_trust_are_never_merged(trusts):
    mine, theirs = (TRUST[name] for name in trusts)
    new, old = pair(new="Redis is what our cache runs on", trust=mine, old_fields={"trust": theirs})
    assert judge_pair(new, old, same=0.99).duplicate is None


def test_the_same_words_of_different_trust_are_never_merged():
    new, old = pair(new=CACHE + ".", old_fields={"trust": TRUST["agent"]})
    assert judge_pair(new, old, similarity=0.99).duplicate is None


def test_a_contrast_hides_no_duplicate_behind_it():
    near = [
        Neighbour(note("We deploy on Friday"), 0.98),
        Neighbour(note("we deploy on Monday"), 0.97),
    ]
    assert reconcile(note("We deploy on Monday"), near, threshold=0.9).duplicate is near[1]


def test_what_surely_replaces_a_single_claim_retires_it():
    new, old = pair()
    found = judge_pair(new, old, replaces=RETIRES)
    assert (found.supersedes, found.marks) == ((old.id,), ())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("The cache is Redis, the queue Kafka", "The cache is Valkey", id="two-claims"),
        pytest.param(
            "The pool holds 5 connections", "The pool holds more connections", id="a-number-is-lost"
        ),
    ],
)
def test_what_an_old_text_says_beside_the_changed_claim_keeps_it_valid(old, new):
    new, old = pair(old, new)
    found = judge_pair(new, old, replaces=0.99)
    assert (found.supersedes, found.marks) == ((), (old.id,))


@pytest.mark.parametrize(
    "chances",
    [
        pytest.param({"replaces": RETIRES - 0.05}, id="not-quite-sure"),
        pytest.param({"replaces": MARKS}, id="at-the-bar"),
        pytest.param({"changes": MARKS}, id="changed-in-part"),
        pytest.param({"replaces": MARKS / 2, "changes": MARKS / 2}, id="either"),
    ],
)
def test_a_possible_replacement_retires_nothing(chances):
    new, old = pair()
    found = judge_pair(new, old, **chances)
    assert (found.supersedes, found.marks, found.proposals) == ((), (old.id,), ())


def test_a_text_that_states_a_change_marks_at_a_lower_bar():
    new, old = pair(
        "Okay, the orders service uses MySQL", "We switched the orders service from MySQL to Go"
    )
    assert judge_pair(new, old, replaces=ORDERS).marks == (old.id,)


def test_what_may_have_to_do_with_another_only_relates_to_it():
    new, old = pair()
    found = judge_pair(new, old, replaces=ORDERS)
    assert (found.marks, found.relations) == ((), (("relates_to", old.id),))


def test_what_extends_another_builds_on_it():
    new, old = pair(new="The cache runs on Redis with two replicas")
    assert judge_pair(new, old, keep=1.0, extends=BUILDS_ON).relations == (("builds_on", old.id),)


def test_what_is_unlikely_to_change_anything_does_nothing():
    new, old = pair()
    found = judge_pair(new, old, replaces=ORDERS - 0.01)
    assert (found.supersedes, found.marks, found.relations, found.proposals) == ((), (), (), ())


def test_a_text_that_says_that_the_old_value_is_over_retires_it_without_a_judge():
    new, old = pair(BILLING, "We moved billing from MySQL to PostgreSQL")
    assert judge_pair(new, old).supersedes == (old.id,)


def test_a_stated_change_that_does_not_name_all_marks_without_a_judge():
    new, old = pair(
        "Session tokens are signed with Ed25519 keys",
        "We replaced Ed25519 keys with a shared secret for session tokens",
    )
    found = judge_pair(new, old)
    assert (found.supersedes, found.marks) == ((), (old.id,))


def test_a_stated_change_that_is_told_late_is_marked_by_the_later_statement():
    new, old = pair(BILLING, "We moved billing from MySQL to PostgreSQL")
    new = new._replace(created_at=old.created_at - timedelta(days=1))
    found = judge_pair(new, old)
    assert (found.supersedes, found.marks, found.marked_by) == ((), (), (old.id,))


def test_a_stated_change_marks_a_text_that_claims_more():
    new, old = pair(
        "We use MySQL for billing, Redis for carts", "We moved billing from MySQL to PostgreSQL"
    )
    found = judge_pair(new, old, replaces=0.99)
    assert (found.supersedes, found.marks) == ((), (old.id,))


def test_a_correction_by_signs_marks_whatever_the_judge_says():
    new, old = pair("Compile with gcc -W", "Compile with gcc -w")
    assert judge_pair(new, old, same=0.9).marks == (old.id,)


@pytest.mark.parametrize(
    "thought",
    ["We are thinking of Valkey for the cache", "The cache runs on Valkey, I think."],
    ids=["thinking-of", "i-think"],
)
def test_a_mere_thought_changes_nothing(thought):
    new, old = pair(new=thought)
    found = judge_pair(new, old, replaces=0.99)
    assert (found.supersedes, found.marks) == ((), ())


def test_a_thing_of_another_number_is_not_retired():
    new, old = pair("Tenant 12 pays 40 euros a month", "Tenant 15 pays 60 euros a month")
    assert judge_pair(new, old, replaces=0.99).supersedes == ()


def test_a_statement_about_another_part_of_the_system_does_nothing():
    new, old = pair("Staging runs on Redis", "Production runs on Valkey")
    found = judge_pair(new, old, replaces=0.99)
    assert (found.supersedes, found.marks) == ((), ())


def test_what_is_retired_already_is_left_alone():
    new, old = pair(old_fields={"superseded_by": "x"})
    assert judge_pair(new, old, replaces=0.99).supersedes == ()


@pytest.mark.parametrize(
    ("kind", "session", "retired"),
    [
        pytest.param("solution", "s1", False, id="its-solution"),
        pytest.param("decision", "s1", False, id="its-decision"),
        pytest.param("gotcha", "s1", True, id="another-trap"),
        pytest.param("solution", "s2", True, id="of-another-conversation"),
    ],
)
def test_what_a_conversation_made_of_a_trap_does_not_retire_the_trap(kind, session, retired):
    trap = {"kind": "gotcha", "session": "s1"}
    new, old = pair(kind=kind, session=session, old_fields=trap)
    found = judge_pair(new, old, replaces=0.99)
    assert (found.supersedes == (old.id,), found.marks) == (retired, ())


# Open items


TODO, DONE = "Rotate the deploy key", "The deploy key was rotated"


@pytest.mark.parametrize(
    ("kind", "old", "new", "chances"),
    [
        pytest.param("todo", TODO, DONE, {"completes": COMPLETES}, id="done"),
        pytest.param("todo", TODO, DONE, {"completes": 0.4, "same": 0.4}, id="done-in-its-words"),
        pytest.param(
            "todo", "Fix SHOP-12", "SHOP-12 is fixed", {"completes": 0.1}, id="by-its-ticket"
        ),
        pytest.param(
            "question", "Which cache do we use?", CACHE, {"answers": ANSWERS}, id="answered"
        ),
        pytest.param(
            "problem",
            "The mailer loses messages",
            "A durable queue mends the mailer",
            {"completes": 0.8},
            id="solved",
        ),
    ],
)
def test_what_names_an_open_item_closes_it(kind, old, new, chances):
    new, old = pair(old, new, old_fields={"kind": kind})
    assert judge_pair(new, old, **chances).settles == (old.id,)


@pytest.mark.parametrize(
    ("kind", "old", "new", "chances"),
    [
        pytest.param(
            "todo",
            "Need to implement a retry limit",
            "Fixed by adding a consumer",
            {"completes": 0.99},
            id="it-is-not-named",
        ),
        pytest.param("todo", TODO, DONE, {"completes": COMPLETES - 0.05}, id="not-sure"),
        pytest.param(
            "todo",
            "Fix SHOP-12 in the cart",
            "SHOP-13 of the cart is fixed",
            {"completes": 0.99},
            id="another-ticket",
        ),
        pytest.param(
            "question",
            "Which cache do we use?",
            "Is the cache Redis?",
            {"answers": 0.99},
            id="a-question-answers-nothing",
        ),
        pytest.param(
            "question",
            "Which cache do we use?",
            "It is green",
            {"answers": 0.99},
            id="not-named-and-not-right-before",
        ),
    ],
)
def test_what_does_not_surely_close_an_open_item_leaves_it_open(kind, old, new, chances):
    new, old = pair(old, new, old_fields={"kind": kind})
    assert judge_pair(new, old, **chances).settles == ()


def test_an_answer_right_after_a_question_need_not_name_it():
    new, old = pair("Which cache do we use?", "It is green", old_fields={"kind": "question"})
    assert judge_pair(new, old, answers=ANSWERS, last=old.id).settles == (old.id,)


def test_a_todo_closes_no_todo():
    new, old = pair(
        TODO, "TODO: the deploy key must be rotated", kind="todo", old_fields={"kind": "todo"}
    )
    assert judge_pair(new, old, completes=0.99).settles == ()


# Trust and time


AGENT, USER, PASTED = TRUST["agent"], TRUST["user"], TRUST["pasted"]


@pytest.mark.parametrize(
    ("trust", "closes"),
    [
        pytest.param(USER, True, id="the user"),
        pytest.param(AGENT, True, id="an agent"),
        pytest.param(PASTED, False, id="a pasted text"),
    ],
)
def test_an_open_item_of_the_user_is_closed_by(trust, closes):
    new, old = pair(TODO, DONE, trust=trust, old_fields={"kind": "todo"})
    assert judge_pair(new, old, completes=0.99).settles == ((old.id,) if closes else ())


def test_an_agents_to_do_in_the_users_words_is_not_merged_into_the_users():
    fields = {"kind": "todo", "trust": AGENT}
    new, old = pair(TODO, TODO + ".", **fields, old_fields={"kind": "todo"})
    assert judge_pair(new, old, similarity=0.95).duplicate is None


def test_a_less_trusted_note_that_surely_replaces_is_a_proposal():
    new, old = pair(trust=AGENT)
    found = judge_pair(new, old, replaces=0.99)
    assert found.supersedes == ()
    assert [(one.relation, one.id, one.reason) for one in found.proposals] == [
        ("replaces", old.id, "less trusted")
    ]


def test_an_agents_note_that_may_replace_the_users_marks_it():
    new, old = pair(trust=AGENT)
    found = judge_pair(new, old, replaces=MARKS)
    assert (found.marks, found.proposals) == ((old.id,), ())


@pytest.mark.parametrize("known", [USER, AGENT, PASTED], ids=["user", "agent", "pasted"])
def test_pasted_text_proposes_nothing(known):
    new, old = pair(trust=PASTED, old_fields={"trust": known})
    found = judge_pair(new, old, replaces=0.99)
    assert (found.supersedes, found.marks, found.proposals) == ((), (), ())


def test_a_statement_from_a_transcript_retires_nothing():
    new, old = pair(source_type="transcript")
    found = judge_pair(new, old, replaces=0.99)
    assert (found.supersedes, found.marks) == ((), (old.id,))


def test_an_agents_statement_from_a_transcript_is_related_and_does_not_mark_the_users():
    new, old = pair(source_type="transcript", trust=AGENT)
    found = judge_pair(new, old, replaces=0.99)
    assert (found.supersedes, found.marks, found.proposals) == ((), (), ())
    assert found.relations == (("may_replace", old.id),)


def test_an_earlier_statement_does_nothing_to_a_later_one():
    new, old = pair()
    new = new._replace(created_at=old.created_at - timedelta(days=1))
    found = judge_pair(new, old, replaces=0.99)
    assert (found.supersedes, found.marks, found.relations) == ((), (), ())


def test_an_explicit_replacement_needs_no_judge():
    new, old = pair()
    assert reconcile(new, [], threshold=0.9, explicit=[old]).supersedes == (old.id,)


def test_an_explicit_replacement_by_a_less_trusted_author_is_a_proposal():
    new, old = pair(trust=AGENT)
    found = reconcile(new, [], threshold=0.9, explicit=[old])
    assert (found.supersedes, [one.id for one in found.proposals]) == ((), [old.id])


# How much may happen by itself


def test_with_mark_what_surely_replaces_only_marks():
    new, old = pair()
    found = judge_pair(new, old, automatic="mark", replaces=0.99)
    assert (found.supersedes, found.marks) == ((), (old.id,))


def test_with_mark_a_stated_change_only_marks():
    new, old = pair(BILLING, "We moved billing from MySQL to PostgreSQL")
    found = judge_pair(new, old, automatic="mark", replaces=0.99)
    assert (found.supersedes, found.marks) == ((), (old.id,))


def test_with_mark_a_rewording_is_kept_as_a_memory_of_its_own():
    new, old = pair(new="Redis is what our cache runs on")
    assert judge_pair(new, old, automatic="mark", same=0.99).duplicate is None


def test_with_mark_an_open_item_is_proposed_to_be_closed():
    new, old = pair(TODO, DONE, old_fields={"kind": "todo"})
    found = judge_pair(new, old, automatic="mark", completes=0.99)
    assert (found.settles, [one.relation for one in found.proposals]) == ((), ["completes"])


@pytest.mark.parametrize("automatic", ["mark", "off"])
def test_an_explicit_replacement_counts_however_little_may_happen(automatic):
    new, old = pair()
    found = reconcile(new, [], threshold=0.9, explicit=[old], automatic=automatic)
    assert found.supersedes == (old.id,)


@pytest.mark.parametrize("chances", [{"replaces": 0.99}, {"same": 0.99}], ids=["replaces", "same"])
def test_with_off_nothing_happens(chances):
    new, old = pair(new=CACHE + ".")
    found = judge_pair(new, old, automatic="off", similarity=0.99, **chances)
    assert (found.duplicate, found.supersedes, found.marks, found.relations) == (None, (), (), ())
