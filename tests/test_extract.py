"""What `extract` reads out of a text. Wordings are varied on purpose: the cues should carry beyond the phrases they were written for."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.ingest.extract import classify, entities, extract, keywords, summarize
from bethink.model import ENTITY_TYPES, KINDS, Entity, Passage

CLASSIFIED = [
    ("decision", "We decided to keep the session data in Redis rather than in signed cookies."),
    ("decision", "After the review the team settled on Terraform for all new environments."),
    ("decision", "Let's go with cursor pagination; offsets get slow after page 100."),
    ("decision", "Chose Vite over webpack because cold starts were four times faster."),
    ("decision", "We switched the queue from RabbitMQ to Kafka last spring."),
    ("decision", "We will use ULIDs as public identifiers."),
    ("decision", "Rejected the monorepo idea: CI would take an hour."),
    ("decision", "Decision: feature flags live in the database, not in code."),
    ("decision", "We're dropping support for Python 3.9 with the next release."),
    ("decision", "The API gateway was replaced with a thin nginx layer in favour of simplicity."),
    ("decision", "I've picked Postmark for outgoing mail."),
    (
        "decision",
        "We use PostgreSQL for billing, because the ledger needs serializable transactions",
    ),
    ("decision", "We agreed yesterday to freeze releases"),
    ("decision", "We use PostgreSQL for billing"),
    ("preference", "I prefer small pull requests with one concern each."),
    ("preference", "Always use pnpm in this repository."),
    ("preference", "Never commit directly to main."),
    ("preference", "Please don't add emojis to commit messages."),
    ("preference", "The user likes terse answers without a preamble."),
    ("preference", "I'd rather read code than comments."),
    ("preference", "My favourite editor is Helix."),
    ("preference", "Maria prefers to be contacted by mail."),
    ("preference", "Don't mock the database in integration tests."),
    ("preference", "I hate trailing whitespace."),
    ("todo", "TODO: rotate the staging certificates before Friday."),
    ("todo", "- [ ] write a migration for the orders table"),
    ("todo", "We still need to document the retry policy."),
    ("todo", "The exporter should be rewritten to stream rows."),
    ("todo", "Remember to bump the minimum Node version."),
    ("todo", "We should add an index on created_at at some point."),
    ("todo", "Next step: wire the new scheduler into the worker."),
    ("todo", "Someone has to clean up the stale feature flags."),
    ("question", "Should we shard the events table by tenant?"),
    ("question", "How do we invalidate the CDN after a deploy?"),
    ("question", "Open question: who owns the billing alerts."),
    ("question", "It is unclear whether the webhook is retried on a 500."),
    ("question", "Does the importer handle CRLF line endings?"),
    ("question", "What happens when two workers pick the same job?"),
    ("problem", "The nightly build fails with exit code 137 on the ARM runners."),
    ("problem", "Login is broken in Safari since Tuesday."),
    ("problem", "The worker crashes when a payload is larger than 1 MB."),
    (
        "problem",
        "Traceback (most recent call last):\n  File \"app.py\", line 3, in <module>\nKeyError: 'id'",
    ),
    ("problem", "Integration tests are flaky on CI, about one run in ten times out."),
    ("problem", "There is a bug in the tax rounding for Swiss francs."),
    ("problem", "Uploads over 10 MB do not work behind the corporate proxy."),
    ("problem", "The indexer leaks file handles and eventually hangs."),
    ("solution", "Fixed by pinning urllib3 below 2.0."),
    ("solution", "The fix was to close the cursor before committing."),
    ("solution", "Solved the deadlock by taking the locks in id order."),
    ("solution", "Workaround: restart the daemon after changing the locale."),
    ("solution", "Raising the heap to 4 GB made it work."),
    ("solution", "Setting keepalive to 30 seconds resolved the dropped connections."),
    ("solution", "The importer no longer crashes since we validate the header first."),
    ("gotcha", "Careful: the staging bucket is shared with production."),
    ("gotcha", "Beware that the ORM lazily loads relations outside the session."),
    ("gotcha", "Watch out for the timezone of the cron container, it is UTC."),
    ("gotcha", "Gotcha: pip ignores the constraint file in editable mode."),
    ("gotcha", "Note that the client silently drops fields it does not know."),
    ("gotcha", "The cache key is case-sensitive, which is easy to miss."),
    ("gotcha", "strftime without a locale silently falls back to C."),
    ("conclusion", "It turned out that the load balancer cached the 404."),
    ("conclusion", "The root cause was a clock skew of nine seconds."),
    ("conclusion", "We learned that batching below 50 rows is not worth it."),
    ("conclusion", "In conclusion, vector search alone is not enough for identifiers."),
    ("conclusion", "The outage was caused by an expired certificate."),
    ("conclusion", "The benchmarks show that int8 costs no recall."),
    ("discovery", "I found out that the vendor API has an undocumented bulk endpoint."),
    ("discovery", "Discovered that half of the traffic comes from health checks."),
    ("discovery", "While profiling I noticed that JSON parsing takes 40% of the time."),
    ("discovery", "We realized that nobody reads the weekly report."),
    ("architecture", "The system consists of an API, a worker pool and a scheduler."),
    ("architecture", "Architecture: all writes go through the command bus, reads hit replicas."),
    ("architecture", "Envoy sits in front of every service and terminates TLS."),
    ("component", "The billing module is responsible for invoices and dunning."),
    ("component", "The parser class wraps tree-sitter and exposes one function."),
    ("pattern", "By convention, test files mirror the source tree."),
    ("pattern", "Every handler returns a Result and never raises."),
    ("pattern", "We use the repository pattern for all persistence."),
    ("domain", "In our domain a consignment is a set of parcels with one destination."),
    ("domain", "GMV stands for gross merchandise volume."),
    ("relationship", "Priya reports to Jonas."),
    ("relationship", "The checkout service depends on the pricing service."),
    ("relationship", "Lena works with the data team on forecasting."),
    ("relationship", "Tomás owns the mobile app."),
    ("relationship", "The design tokens repo is maintained by the platform team."),
    ("fact", "The production database runs PostgreSQL 16 on three nodes."),
    ("fact", "The API listens on port 8443."),
    ("fact", "Our fiscal year starts in April."),
    ("fact", "The staging cluster has 12 nodes."),
    ("fact", "Anna was born in Lisbon."),
    ("context", "We are currently working on the onboarding flow."),
    ("general", "Hello there"),
    ("general", "Sprint 42 retrospective, Berlin"),
    ("general", ""),
    ("code", "```python\nprint(1)\n```"),
    ("code", "# Tea\n```python\nprint(1)\n```"),
    ("general", "# Tea"),
    ("general", "# Tea\n\n## Green tea"),
    ("decision", "We agreed to freeze the schema until the audit is over."),
    ("question", "Not sure whether we should keep the old endpoint."),
    ("decision", "Going with SQLite for the prototype, maybe Postgres later."),
    ("preference", "Use four spaces, never tabs."),
    ("gotcha", "Never call flush() inside the callback, otherwise the stream deadlocks silently."),
    ("solution", "To get around the rate limit we cache the token for an hour."),
    ("conclusion", "So the reason for the slow start was the DNS lookup."),
    ("todo", "Need to investigate why the cache misses doubled."),
    ("decision", "For auth we ended up choosing Keycloak."),
    ("decision", "The team voted for trunk-based development."),
    ("decision", "I'm going to use Tailwind for the redesign."),
    ("decision", "We'll host the docs on Cloudflare Pages."),
    ("decision", "Postgres it is, then."),
    ("decision", "Moved CI from Jenkins to GitHub Actions in May."),
    ("preference", "He likes his coffee black."),
    ("preference", "Keep functions under 40 lines, please."),
    ("preference", "I don't want generated files in the repository."),
    ("preference", "Commit messages should be in the imperative mood."),
    ("preference", "No semicolons in TypeScript files."),
    ("todo", "Migrate the remaining cron jobs to Temporal."),
    ("todo", "The onboarding docs are outdated and have to be rewritten."),
    ("todo", "Don't forget to renew the domain in June."),
    ("todo", "I want to look into the slow dashboard next week."),
    ("todo", "Tests for the parser are still missing."),
    ("question", "Which region should we deploy to?"),
    ("question", "Why is the p99 twice as high on Mondays?"),
    ("question", "We don't know yet if customers need SSO."),
    ("question", "Is it okay to delete the old S3 bucket?"),
    ("problem", "npm install hangs forever on Node 22."),
    ("problem", "Users report that the export button does nothing."),
    ("problem", "Memory usage grows by 2 GB per day until the pod is killed."),
    ("problem", "Getting 'permission denied' when writing to /var/log."),
    ("problem", "The migration failed halfway and left the table locked."),
    ("solution", "Clearing the Gradle cache helped."),
    ("solution", "We got rid of the warning by upgrading to pydantic v2."),
    ("solution", "Use --legacy-peer-deps to work around the conflict."),
    ("solution", "Adding an index on tenant_id cut the query from 4 s to 20 ms."),
    ("gotcha", "Don't trust the size reported by the API, it includes deleted files."),
    ("gotcha", "Env vars are read at import time, so tests must set them first."),
    ("gotcha", "The sandbox resets at midnight without any notice."),
    ("gotcha", "Surprisingly, the iterator can only be consumed once."),
    ("conclusion", "Bottom line: the rewrite is not worth it."),
    ("conclusion", "It was DNS after all."),
    ("conclusion", "The spike happened because the cron ran twice."),
    ("discovery", "Just learned that git can rebase with --update-refs."),
    ("discovery", "Looks like the vendor changed the payload format in v3."),
    ("architecture", "The frontend talks to the backend over gRPC-web through an Envoy proxy."),
    ("architecture", "There are three layers: transport, domain and persistence."),
    ("component", "AuthMiddleware validates the token and attaches the user."),
    ("component", "The scheduler service takes care of retries."),
    ("pattern", "All repositories expose the same four methods."),
    ("pattern", "We name feature branches after the ticket."),
    ("domain", "A 'lot' refers to all units produced in one run."),
    ("relationship", "Sarah is the product owner of Atlas."),
    ("relationship", "orders-api consumes events from inventory."),
    ("relationship", "Ben's manager is Ulrike."),
    ("fact", "The VPN gateway is at 10.0.0.1."),
    ("decision", "Backups are kept for 30 days."),
    ("fact", "The office is closed on Fridays."),
    ("fact", "We have 14 customers in Japan."),
    ("fact", "The monthly budget is 4000 euros."),
    ("general", "Meeting notes 2024-05-03"),
    ("decision", "Our API will return RFC 7807 problem documents from now on."),
    ("decision", "We are sticking with REST; GraphQL was too much for two clients."),
    ("decision", "Dropped the idea of a plugin system, too early."),
    ("decision", "Argon2 was chosen for password hashing."),
    ("decision", "It was agreed that releases happen on Tuesdays."),
    ("preference", "I like my diffs small."),
    ("preference", "When you write SQL, use lowercase keywords please."),
    ("preference", "Avoid abbreviations in variable names."),
    ("preference", "Kim would rather have a call than a long thread."),
    ("preference", "Answer in German unless I write English."),
    ("todo", "Must update the SLA page before launch."),
    ("todo", "It would be good to add tracing to the importer."),
    ("todo", "Outstanding: rotate keys, close old tickets, archive repo."),
    ("todo", "Fix the typo in the footer."),
    ("question", "Can the free tier handle 10k events a day?"),
    ("question", "Who decides about the pricing page?"),
    ("question", "I'm wondering if we need two replicas."),
    ("problem", "Search returns stale results for up to five minutes."),
    ("problem", "CI has been red since the Python upgrade."),
    ("problem", "ModuleNotFoundError: No module named 'apsw'"),
    ("problem", "On Windows the path separator breaks the glob."),
    ("problem", "Deploys take 40 minutes, which is way too slow."),
    ("solution", "Solution: vacuum the table nightly."),
    ("solution", "Upgrading to 3.2 fixed the memory leak."),
    ("solution", "The trick is to pass stream=True."),
    ("solution", "You can avoid the crash by setting OMP_NUM_THREADS=1."),
    ("gotcha", "Keep in mind that timestamps are in milliseconds here and seconds elsewhere."),
    ("gotcha", "The staging API returns 200 even when the write was rejected."),
    ("gotcha", "Remember: Array.sort mutates in place."),
    ("conclusion", "The experiment shows no gain from reranking."),
    ("conclusion", "Turns out nobody used the export feature."),
    ("conclusion", "So we now know that the bottleneck is the disk."),
    ("discovery", "Found a hidden flag --no-cache in the source."),
    ("discovery", "I noticed the logs contain plaintext emails."),
    ("architecture", "Events flow from the gateway into Kafka and from there to three consumers."),
    ("architecture", "The app is split into a core library and thin adapters."),
    ("pattern", "Errors are always wrapped with context before being returned."),
    ("relationship", "Jo mentors the two new hires."),
    ("relationship", "The mobile app relies on the profile service."),
    ("fact", "Redis listens on 6380 in staging."),
    ("fact", "My birthday is in November."),
    ("fact", "The license costs 300 dollars a year."),
]


HEDGES_LOWER_CONFIDENCE = [
    ("We will use Kafka.", "Maybe we will use Kafka."),
    ("The root cause was clock skew.", "I think the root cause was clock skew."),
    ("The cache expires after an hour.", "The cache probably expires after an hour."),
    ("We decided to drop IE11.", "We tentatively decided to drop IE11."),
    ("The bug is in the parser.", "Not sure, but the bug might be in the parser."),
]


@pytest.mark.parametrize(("kind", "text"), CLASSIFIED)
def test_the_wording_tells_the_kind(kind, text):
    assert classify(text)[0] == kind


@pytest.mark.parametrize(("firm", "hedged"), HEDGES_LOWER_CONFIDENCE)
def test_hedging_lowers_the_confidence(firm, hedged):
    (kind, sure), (same, unsure) = classify(firm), classify(hedged)
    assert kind == same
    assert 0.75 <= sure <= 1 and unsure < sure - 0.1


def test_confirming_raises_the_confidence():
    assert classify("It is verified: the disk is full.")[1] > classify("The disk is full.")[1]


@pytest.mark.parametrize(
    "text",
    [
        "definitely confirmed, always, never, certainly: it is final and proven",
        "maybe perhaps possibly I guess it might be, not sure, no idea, probably I think",
    ],
)
def test_confidence_stays_in_its_range(text):
    assert 0.1 <= classify(text)[1] <= 1


def test_keywords_are_the_telling_words():
    text = "The retry_policy of the payment worker uses Redis. The payment worker retries three times, see worker/retry.py."
    found = keywords(text)
    assert {"retry_policy", "worker/retry.py", "Redis", "payment", "worker"} <= set(found)
    assert not {"the", "of"} & set(found) and len(found) <= 8
    assert keywords("") == keywords("the and of it") == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "We store sessions in postgres and redis.",
            [("PostgreSQL", "technology"), ("Redis", "technology")],
            id="store-sessions-postgres-redis",
        ),
        pytest.param(
            "Deployed to k8s with Helm.",
            [("Kubernetes", "technology"), ("Helm", "technology")],
            id="deployed-k8s-helm",
        ),
        pytest.param(
            "The frontend uses React and TypeScript.",
            [("React", "technology"), ("TypeScript", "technology")],
            id="frontend-uses-react-typescript",
        ),
        pytest.param(
            "The worker is written in Go.", [("Go", "technology")], id="worker-written-go"
        ),
        pytest.param("Go is our main language.", [("Go", "technology")], id="go-our-main-language"),
        pytest.param("We should go", [], id="should-go"),
        pytest.param("Go to the store and react to this.", [], id="go-store-react"),
        pytest.param("The Rest is history", [], id="rest-history"),
        pytest.param("React to this quickly", [], id="react-quickly"),
        pytest.param(
            "Express your opinion. Spring is here. Rust on the bridge.",
            [],
            id="express-your-opinion-spring-here-rust-bridge",
        ),
        pytest.param(
            "The REST endpoint returns JSON.",
            [("REST", "technology"), ("JSON", "technology")],
            id="REST-endpoint-returns-JSON",
        ),
        pytest.param(
            "Node.js 20 and Next.js run on Vercel.",
            [("Node.js", "technology"), ("Next.js", "technology"), ("Vercel", "technology")],
            id="node.js-20-next.js-run-vercel",
        ),
        pytest.param(
            "C++ and C# and .NET code",
            [("C++", "technology"), ("C#", "technology"), (".NET", "technology")],
            id="C-C-NET-code",
        ),
        pytest.param(
            "Ruby on Rails behind GitHub Actions",
            [("Ruby on Rails", "technology"), ("GitHub Actions", "technology")],
            id="ruby-rails-behind-github-actions",
        ),
        pytest.param("a Redis-backed queue", [("Redis", "technology")], id="redis-backed-queue"),
        pytest.param(
            "see src/bethink/store/base.py and README.md",
            [("src/bethink/store/base.py", "file"), ("README.md", "file")],
            id="see-src/bethink/store/base.py-readme.md",
        ),
        pytest.param(
            "edit ./scripts/run and ~/.zshrc",
            [("./scripts/run", "file"), ("~/.zshrc", "file")],
            id="edit-scripts/run-zshrc",
        ),
        pytest.param(
            "The error is at app/main.go:42.", [("app/main.go", "file")], id="error-app/main.go-42"
        ),
        pytest.param(
            "read/write and/or client/server 24/7", [], id="read/write-and/or-client/server-24/7"
        ),
        pytest.param(
            "Visit https://example.com/a/b.py or mail bob@example.com",
            [],
            id="visit-https-example.com/a/b.py-mail-bob",
        ),
        pytest.param(
            "getUserById calls parse_config and MAX_RETRIES",
            [("getUserById", "symbol"), ("parse_config", "symbol"), ("MAX_RETRIES", "symbol")],
            id="getuserbyid-calls-parse_config-max_retries",
        ),
        pytest.param(
            "HttpClient wraps requests.Session",
            [("HttpClient", "symbol"), ("requests.Session", "symbol")],
            id="httpclient-wraps-requests.session",
        ),
        pytest.param(
            "call flush() before close()",
            [("flush", "symbol"), ("close", "symbol")],
            id="call-flush-before-close",
        ),
        pytest.param("the file(s) and option(s)", [], id="file-s-option-s"),
        pytest.param(
            "e.g. this, i.e. that. It was done.Then it ended at 5 p.m.",
            [],
            id="e.g-i.e-done.then-ended-5-p.m",
        ),
        pytest.param(
            "console.log and self.db are no files",
            [("console.log", "symbol"), ("self.db", "symbol")],
            id="console.log-self.db-no-files",
        ),
        pytest.param(
            "Use `fetchAll` on the `order-service`, not `true`.",
            [("fetchAll", "symbol"), ("order-service", "concept")],
            id="use-fetchall-order-service-not-true",
        ),
        pytest.param(
            "I spoke with Maria Lopez about Guido van Rossum.",
            [("Maria Lopez", "person"), ("Guido van Rossum", "person")],
            id="spoke-maria-lopez-about-guido-van-rossum",
        ),
        pytest.param(
            "We rented the Toyota Camry in Napa Valley.",
            [("Toyota Camry", "concept"), ("Napa Valley", "concept")],
            id="rented-toyota-camry-napa-valley",
        ),
        pytest.param(
            "Alice prefers tabs and asked @bob_smith",
            [("bob_smith", "person")],
            id="alice-prefers-tabs-asked-bob_smith",
        ),
        pytest.param(
            "The Billing Service is owned by Project Falcon.",
            [("Billing Service", "concept"), ("Falcon", "project")],
            id="billing-service-owned-project-falcon",
        ),
        pytest.param(
            "On Monday we met in March. The English version is done.",
            [],
            id="monday-met-march-english-version-done",
        ),
        pytest.param("I'm glad. We are happy. They left.", [], id="m-glad-happy-they-left"),
        pytest.param(
            "@property and @app.route and @angular/core", [], id="property-app.route-angular/core"
        ),
        pytest.param(
            "GitHub, YouTube and LinkedIn", [("GitHub", "technology")], id="github-youtube-linkedin"
        ),
        pytest.param("commit c44e9961 uses SHA256", [], id="commit-c44e9961-uses-sha256"),
        pytest.param(
            "The SX1262 needs 1.8 V from the STM32.",
            [("SX1262", "technology"), ("STM32", "technology")],
            id="sx1262-needs-1.8-V-STM32",
        ),
        pytest.param("Thanks, Jonas! See you.", [("Jonas", "concept")], id="thanks-jonas-see"),
        pytest.param(
            "José García wrote the importer",
            [("José García", "person")],
            id="jose-garcia-wrote-importer",
        ),
        pytest.param(
            "```python\nmy_hidden_name = SomeClass()\n```\nshown_name",
            [("shown_name", "symbol")],
            id="python-my_hidden_name-someclass-shown_name",
        ),
        pytest.param(
            "redis Redis REDIS `redis`", [("Redis", "technology")], id="redis-redis-REDIS-redis"
        ),
        pytest.param("", [], id="empty"),
        pytest.param(
            "数据库使用 PostgreSQL，缓存使用 Redis。",
            [("PostgreSQL", "technology"), ("Redis", "technology")],
            id="postgresql-redis",
        ),
    ],
)
def test_entities_are_found_with_their_types(text, expected):
    assert [(one.name, one.type) for one in entities(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", "", id="empty"),
        pytest.param("   \n ", "", id="blank"),
        pytest.param("Use pnpm.", "Use pnpm.", id="use-pnpm"),
        pytest.param("We  use\n JWT   for auth", "We use JWT for auth", id="use-JWT-auth"),
        pytest.param("# Auth\n\nWe use JWT.", "Auth: We use JWT.", id="auth-use-JWT"),
        pytest.param("## Only a heading", "Only a heading", id="only-heading"),
        pytest.param(
            "- one\n- **two**\n- [three](http://x.y)", "one two three", id="one-two-three-http-x.y"
        ),
        pytest.param(
            "The fix:\n```sh\nrm -rf build\n```\ndone",
            "The fix: done",
            id="fix-sh-rm-rf-build-done",
        ),
        pytest.param(
            "```python\ndef load(path):\n    return 1\n```",
            "def load(path):",
            id="python-def-load-path-return-1",
        ),
        pytest.param("今天我们决定使用 Redis。", "今天我们决定使用 Redis。", id="redis"),
        pytest.param(
            "Hello! Thanks for asking. We decided to move the session store from memory to Redis. The weather was fine, and lunch was served at noon in the garden behind the house.",
            "We decided to move the session store from memory to Redis.",
            id="hello-thanks-asking-decided-move-session",
        ),
        pytest.param(
            "# Incident\n\nHi all,\n\nThe root cause of the outage was an expired certificate on the gateway. It was renewed by hand at nine in the evening, after which all the services came back one after another.",
            "The root cause of the outage was an expired certificate on the gateway.",
            id="incident-hi-all-root-cause-outage-expired",
        ),
        pytest.param(
            "우리는 데이터베이스로 포스트그레스를 쓰기로 결정했습니다 왜냐하면 제이슨 지원이 좋고 팀이 이미 운영 경험을 가지고 있기 때문입니다.",
            "우리는 데이터베이스로 포스트그레스를 쓰기로 결정했습니다 왜냐하면 제이슨 지원이 좋고 팀이 이미 운영 경험을 가지고 있기 때문입니다.",
            id="hangul",
        ),
    ],
)
def test_a_summary_is_the_most_telling_sentence(text, expected):
    assert summarize(text) == expected


@pytest.mark.parametrize(
    ("text", "most"),
    [
        pytest.param("数据库连接在高负载下会超时" * 9, 40, id="unspaced"),
        pytest.param("数据库很慢。" * 30, 45, id="unspaced sentences"),
        pytest.param("a" * 100_000, 240, id="one word"),
    ],
)
def test_a_summary_of_text_without_spaces_is_short(text, most):
    assert len(summarize(text)) <= most


def test_a_summary_has_twenty_words():
    words = [f"word{number}" for number in range(60)]
    assert summarize(" ".join(words)) == " ".join(words[:20]) + "…"


def test_a_memory_has_twenty_entities():
    assert len(entities(" ".join(f"name_{number}" for number in range(50)))) == 20


def test_extract_fills_in_open_fields():
    text = "We decided to store sessions in Redis."
    passage = extract(Passage(text))
    assert (passage.kind, passage.importance, passage.summary) == ("decision", 7.0, text)
    assert passage.confidence is not None and passage.confidence > 0.8
    assert passage.entities == (Entity("Redis", "technology"),)
    assert extract(passage) == passage


def test_extract_keeps_given_fields():
    text = "We decided to store sessions in Redis."
    named = (Entity("Shop", "project"), Entity("redis", "concept"))
    given = Passage(text, "context", "mine", None, 0.3, entities=named)
    assert extract(given) == given._replace(importance=3.0)
    assert extract(Passage("x", importance=0.0, confidence=0.0)).importance == 0.0


@pytest.mark.parametrize(
    ("kind", "importance"),
    [("gotcha", 7), ("preference", 6), ("fact", 5), ("general", 5), ("context", 3)],
)
def test_the_kind_gives_the_importance(kind, importance):
    assert extract(Passage("something", kind=kind)).importance == importance


ENTITIES = [
    (
        "We store sessions in postgres and redis.",
        [("PostgreSQL", "technology"), ("Redis", "technology")],
    ),
    ("Deployed to k8s with Helm.", [("Kubernetes", "technology"), ("Helm", "technology")]),
    (
        "The frontend uses React and TypeScript.",
        [("React", "technology"), ("TypeScript", "technology")],
    ),
    ("The worker is written in Go.", [("Go", "technology")]),
    ("Go is our main language.", [("Go", "technology")]),
    ("We should go", []),
    ("Go to the store and react to this.", []),
    ("The Rest is history", []),
    ("React to this quickly", []),
    ("Express your opinion. Spring is here. Rust on the bridge.", []),
    ("The REST endpoint returns JSON.", [("REST", "technology"), ("JSON", "technology")]),
    (
        "Node.js 20 and Next.js run on Vercel.",
        [("Node.js", "technology"), ("Next.js", "technology"), ("Vercel", "technology")],
    ),
    (
        "C++ and C# and .NET code",
        [("C++", "technology"), ("C#", "technology"), (".NET", "technology")],
    ),
    (
        "Ruby on Rails behind GitHub Actions",
        [("Ruby on Rails", "technology"), ("GitHub Actions", "technology")],
    ),
    ("a Redis-backed queue", [("Redis", "technology")]),
    (
        "see src/bethink/store/base.py and README.md",
        [("src/bethink/store/base.py", "file"), ("README.md", "file")],
    ),
    ("edit ./scripts/run and ~/.zshrc", [("./scripts/run", "file"), ("~/.zshrc", "file")]),
    ("The error is at app/main.go:42.", [("app/main.go", "file")]),
    ("read/write and/or client/server 24/7", []),
    ("Visit https://example.com/a/b.py or mail bob@example.com", []),
    (
        "getUserById calls parse_config and MAX_RETRIES",
        [("getUserById", "symbol"), ("parse_config", "symbol"), ("MAX_RETRIES", "symbol")],
    ),
    (
        "HttpClient wraps requests.Session",
        [("HttpClient", "symbol"), ("requests.Session", "symbol")],
    ),
    ("call flush() before close()", [("flush", "symbol"), ("close", "symbol")]),
    ("the file(s) and option(s)", []),
    ("e.g. this, i.e. that. It was done.Then it ended at 5 p.m.", []),
    ("console.log and self.db are no files", [("console.log", "symbol"), ("self.db", "symbol")]),
    (
        "Use `fetchAll` on the `order-service`, not `true`.",
        [("fetchAll", "symbol"), ("order-service", "concept")],
    ),
    (
        "I spoke with Maria Lopez about Guido van Rossum.",
        [("Maria Lopez", "person"), ("Guido van Rossum", "person")],
    ),
    (
        "We rented the Toyota Camry in Napa Valley.",
        [("Toyota Camry", "concept"), ("Napa Valley", "concept")],
    ),
    ("Alice prefers tabs and asked @bob_smith", [("bob_smith", "person")]),
    (
        "The Billing Service is owned by Project Falcon.",
        [("Billing Service", "concept"), ("Falcon", "project")],
    ),
    ("On Monday we met in March. The English version is done.", []),
    ("I'm glad. We are happy. They left.", []),
    ("@property and @app.route and @angular/core", []),
    ("GitHub, YouTube and LinkedIn", [("GitHub", "technology")]),
    ("commit c44e9961 uses SHA256", []),
    ("The SX1262 needs 1.8 V from the STM32.", [("SX1262", "technology"), ("STM32", "technology")]),
    ("Thanks, Jonas! See you.", [("Jonas", "concept")]),
    ("José García wrote the importer", [("José García", "person")]),
    ("```python\nmy_hidden_name = SomeClass()\n```\nshown_name", [("shown_name", "symbol")]),
    ("redis Redis REDIS `redis`", [("Redis", "technology")]),
    ("", []),
    (
        "数据库使用 PostgreSQL，缓存使用 Redis。",
        [("PostgreSQL", "technology"), ("Redis", "technology")],
    ),
]


PIECES = [text for _, text in CLASSIFIED] + [text for text, _ in ENTITIES]
PIECES += ["# ", "```", "`", '"', "\n", "@", "./", "…", "\x00", "<!--", "---\n"]


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=400) | st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_extracting_any_text_is_repeatable(text):
    passage = extract(Passage(text))
    assert passage.kind in KINDS and 0 <= passage.confidence <= 1
    assert len(passage.summary.split()) <= 20 and "\n" not in passage.summary
    assert len(passage.entities) <= 20
    assert all(entity.type in ENTITY_TYPES and entity.name.strip() for entity in passage.entities)
    assert len({entity.name.casefold() for entity in passage.entities}) == len(passage.entities)
    assert extract(Passage(text)) == passage
    assert keywords(text) == keywords(text) and len(keywords(text)) <= 8
