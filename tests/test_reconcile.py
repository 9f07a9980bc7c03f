"""What new memories mean for old ones: what repeats, what contrasts and what replaces."""

import pytest
from stores import make

from bethink.ingest.extract import entities
from bethink.ingest.reconcile import SUBJECT, SUPERSEDED, Neighbour, reconcile, take_headline
from bethink.ingest.wording import contrasts, find_change, mentions, say_the_same

JWT = "Auth uses JWT tokens with 24h expiry"
MAGIC = "Users sign in with a magic link that is sent by email"
# A new text, an old one, and why the new one is worth keeping.
DIFFERENT = [
    (
        "We deploy on Mondays from main",
        "Deployments go out on Friday, from the main branch",
        "a word exchanged beside a variant of another",
    ),
    ("Use tabs for indentation", "Use spaces for indentation", "a word exchanged"),
    ("We deploy on Monday", "We deploy on Friday", "another day"),
    ("The worker retries three times", "The worker retries five times", "a number in words"),
    ("The worker retries 3 times", "The worker retries 5 times", "a number"),
    ("Force pushes to main are allowed", "Force pushes to main are forbidden", "the opposite word"),
    (
        "The proxy maps port 80 to 8080",
        "The proxy maps port 8080 to 80",
        "numbers in another order",
    ),
    ("Does the cache live in Redis?", "The cache lives in Redis.", "a question"),
    ("The cache lives in Redis.", "Does the cache live in Redis?", "its answer"),
    ("Never deploy on Friday", "Always deploy on Friday", "never for always"),
    ("Do not commit generated files", "Do commit generated files", "a negation"),
    ("The linter is disabled in tests", "The linter is enabled in tests", "enabled or disabled"),
    ("Sessions are kept in PostgreSQL", "Sessions are kept in MySQL", "another technology"),
    (
        "The client library is written in Rust",
        "The client library is written in Go",
        "another language",
    ),
    ("Alice owns the billing service", "Bob owns the billing service", "another person"),
    ("Uploads are limited to 10 MB", "Uploads are limited to 10 MB for 5 users", None),
    ("Uploads are limited to 10 MB for 5 users", "Uploads are limited to 10 MB", "a number added"),
    ("The queue runs on Redis and Kafka", "The queue runs on Redis", "a name added"),
    ("Backups run nightly", "Backups run weekly", "another rhythm"),
    (
        "Version 2.1 dropped Windows",
        "Version 2.10 dropped Windows",
        "a version that only starts alike",
    ),
    ("The API listens on 127.0.0.1:8000", "The API listens on 127.0.0.1:9000", "another port"),
    (
        "The build is slow because the linker loads every symbol twice",
        "The build is slow",
        "a reason added",
    ),
    ("Meetings start at 9:30", "Meetings start at 10:30", "another time"),
]
ALIKE = [
    (JWT, JWT),
    ("Authentication uses JWT tokens with a 24h expiry", JWT),
    ("auth uses JWT tokens, with 24h expiry.", JWT),
    ("Users sign in with a magic link sent by email", MAGIC),
    ("Users sign in by a magic link that is sent by email.", MAGIC),
    (
        "We decided to use PostgreSQL for billing",
        "We decided to use PostgreSQL for the billing service",
    ),
    ("The worker retries 3 times", "The worker retries 3 times, then waits 60 seconds"),
    (
        "The deployment pipeline runs on every push to main",
        "The deployment pipelines run on each push to main",
    ),
    ("Don’t commit generated files", "Don't commit generated files"),
    ("Is the cache warm?", "is the cache warm? "),
]


def told(text, **fields):
    return make(text, entities=entities(text), **fields)


@pytest.mark.parametrize(
    ("new", "old"),
    [(new, old) for new, old, why in DIFFERENT if why],
    ids=[why for *_, why in DIFFERENT if why],
)
def test_what_says_something_else_is_not_the_same(new, old):
    assert not say_the_same(new, old)
    assert reconcile(told(new), [Neighbour(told(old), 0.99)], threshold=0.9).duplicate is None


@pytest.mark.parametrize(("new", "old"), ALIKE)
def test_what_adds_nothing_is_the_same(new, old):
    assert say_the_same(new, old)
    neighbour = Neighbour(told(old), 0.95)
    assert reconcile(told(new), [neighbour], threshold=0.9).duplicate is neighbour


def test_less_than_is_known_already_adds_nothing():
    new, old, _ = next(case for case in DIFFERENT if case[2] is None)
    assert say_the_same(new, old)


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ("Use tabs for indentation", "Use spaces for indentation", True),
        ("We deploy on Monday", "We deploy on Friday", True),
        ("Retry three times", "Retry five times", True),
        ("Merging is allowed", "Merging is forbidden", True),
        ("The build uses gradle", "The build is made by bazel", True),
        (
            "The cache is in memory and is cleared whenever a deployment finishes",
            "The cache is in memory",
            True,
        ),
        ("Use spaces", "Use spaces", False),
        ("auth by tokens", "authentication by token", False),
        ("We configure the server", "We are configuring the servers", False),
        (
            "The cache is in memory",
            "The cache is in memory and is cleared whenever a deployment finishes",
            False,
        ),
        ("the of and", "a to in", False),
        ("", "", False),
        ("Deploy on Friday, never late", "Never deploy late on Friday", False),
    ],
)
def test_contrast_is_a_word_exchanged_or_much_added(new, old, expected):
    assert contrasts(new, old) is expected


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("We switched from MySQL to PostgreSQL", ("MySQL", "PostgreSQL")),
        ("We switched the billing service from MySQL to PostgreSQL.", ("MySQL", "PostgreSQL")),
        ("Moved from Jenkins over to GitHub Actions, finally", ("Jenkins", "GitHub Actions")),
        ("We are migrating from REST to gRPC; it takes a month", ("REST", "gRPC")),
        ("The default changed from 10 to 20", ("10", "20")),
        ("We replaced webpack with vite", ("webpack", "vite")),
        ("I swapped moment for dayjs", ("moment", "dayjs")),
        ("Use pnpm instead of npm", ("npm", "Use pnpm")),
        ("We run Podman rather than Docker", ("Docker", "run Podman")),
        ("We no longer use Travis, builds run on CircleCI", ("Travis", "builds run on CircleCI")),
        ("We no longer support Python 3.8.", ("Python 3.8", "")),
        ("We moved from Node 18.1 to Node 20.2. It is faster", ("Node 18.1", "Node 20.2")),
        ("We replaced moment.js with day.js", ("moment.js", "day.js")),
        ("We switched\n  from tabs\nto  spaces", ("tabs", "spaces")),
        ("We use PostgreSQL", None),
        ("The train from Berlin to Prague is late", None),
        ("We moved house", None),
        (f"We switched from {'very ' * 20}old to new", None),
        ("", None),
    ],
)
def test_a_stated_change_names_the_old_and_the_new(text, change):
    assert find_change(text) == change


@pytest.mark.parametrize(
    ("text", "thing", "expected"),
    [
        ("We keep sessions in MySQL.", "mysql", True),
        ("We keep sessions in MySQL.", "the MySQL", False),
        ("The session store is Redis", "session stores", True),
        ("We keep sessions in MySQL.", "PostgreSQL", False),
        ("MySQLdump runs at night", "MySQL", False),
        ("GitHub Actions builds it", "GitHub Actions", True),
        ("Anything", "", False),
        ("Anything", "…", False),
        ("one two three four", "one two three four five six", True),
    ],
)
def test_a_text_mentions_a_thing_when_all_its_words_stand_there(text, thing, expected):
    assert mentions(text, thing) is expected


@pytest.mark.parametrize(
    ("text", "headline"),
    [
        ("We moved from A to B. It went well.", "We moved from A to B. It went well."),
        ("We moved from A to B.\n\nIt went well.", "We moved from A to B."),
        ("No. That run only synced main. " + "Use C instead of D. " * 20, "No."),
        ("x" * 400, "x" * 320),
    ],
)
def test_a_long_text_states_what_its_first_sentence_states(text, headline):
    assert take_headline(text) == headline


OLD, OTHER, NEW = (
    told("We use MySQL for billing"),
    told("We use Redis for caching"),
    told("We use PostgreSQL for billing, not MySQL"),
)
SWITCH = told("We switched from MySQL to PostgreSQL for billing")


@pytest.mark.parametrize(
    ("known", "nearness", "replaced"),
    [
        (
            "We use PostgreSQL for billing, because the ledger needs serializable transactions",
            SUBJECT,
            True,
        ),
        (
            "We use PostgreSQL for billing, because the ledger needs serializable transactions",
            SUBJECT - 0.01,
            False,
        ),
        (
            "We use PostgreSQL for analytics, because the analysts know SQL",
            SUPERSEDED - 0.01,
            False,
        ),
    ],
)
def test_a_change_that_names_its_subject_replaces_what_is_farther_away(known, nearness, replaced):
    verdict = reconcile(
        told("We moved billing from PostgreSQL to CockroachDB"),
        [Neighbour(told(known), nearness)],
        threshold=0.9,
    )
    assert bool(verdict.supersedes) is replaced


@pytest.mark.parametrize(
    ("neighbours", "replaced"),
    [
        ([Neighbour(OLD, 0.8)], [OLD]),
        ([Neighbour(OLD, SUPERSEDED)], [OLD]),
        ([Neighbour(OLD, SUPERSEDED - 0.01)], []),
        ([Neighbour(OTHER, 0.9)], []),
        ([Neighbour(NEW, 0.9)], []),
        ([Neighbour(OLD._replace(superseded_by="x"), 0.9)], []),
        (
            [
                Neighbour(OLD, 0.9),
                Neighbour(OTHER, 0.8),
                Neighbour(told("MySQL runs on port 3306"), 0.6),
            ],
            "two",
        ),
        ([], []),
    ],
)
@pytest.mark.parametrize("dedup", [True, False])
def test_a_stated_change_replaces_near_memories_of_the_old_thing(neighbours, replaced, dedup):
    verdict = reconcile(SWITCH, neighbours, threshold=0.9 if dedup else None)
    assert verdict.duplicate is None
    expected = [neighbours[0].memory, neighbours[2].memory] if replaced == "two" else replaced
    assert verdict.supersedes == tuple(memory.id for memory in expected)


def test_a_change_that_was_told_before_is_a_duplicate():
    before = Neighbour(told(SWITCH.content + "."), 0.99)
    assert reconcile(SWITCH, [before], threshold=0.9).duplicate is before


@pytest.mark.parametrize(
    ("similarity", "dedup", "repeats"),
    [(0.95, True, True), (0.9, True, True), (0.89, True, False), (0.95, False, False)],
)
def test_only_near_texts_repeat_and_only_where_that_matters(similarity, dedup, repeats):
    verdict = reconcile(
        told(JWT), [Neighbour(told(JWT + "."), similarity)], threshold=0.9 if dedup else None
    )
    assert (verdict.duplicate is not None) is repeats
    assert verdict.supersedes == ()


def test_a_contrasting_neighbour_does_not_hide_a_real_duplicate_behind_it():
    contrast, real = (
        Neighbour(told("We deploy on Friday"), 0.98),
        Neighbour(told("we deploy on Monday"), 0.97),
    )
    assert reconcile(told("We deploy on Monday"), [contrast, real], threshold=0.9).duplicate is real
