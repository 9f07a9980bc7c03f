"""Statements, a question about each, and the words in which each gives its reason (None where it gives none).

The patterns of `bethink.language.reasons` were written while looking at `TUNING`; `UNSEEN` was only ever measured.
"""

TUNING = [
    (
        "We use Postgres for billing because the ledger needs serializable transactions.",
        "billing database",
        "the ledger needs serializable transactions",
    ),
    ("pnpm it is, npm was too slow on the monorepo.", "pnpm", "npm was too slow on the monorepo"),
    ("We left Heroku due to the price of dynos.", "Heroku", "the price of dynos"),
    (
        "Since nobody could operate Kafka, events go through Postgres now.",
        "events in Postgres",
        "nobody could operate Kafka",
    ),
    ("Images are built with distroless to keep them small.", "distroless", "to keep them small"),
    (
        "No Kubernetes: two people cannot run a cluster.",
        "no Kubernetes",
        "two people cannot run a cluster",
    ),
    (
        "The search index was too big for one node, so we shard it by tenant.",
        "shard by tenant",
        "The search index was too big for one node",
    ),
    (
        "We pin the Terraform version so that plans look the same everywhere.",
        "pin Terraform",
        "so that plans look the same everywhere",
    ),
    (
        "Chose Svelte over React as the bundle is a third of the size.",
        "Svelte",
        "the bundle is a third of the size",
    ),
    (
        "Uploads go straight to S3; the API pods ran out of memory.",
        "uploads to S3",
        "the API pods ran out of memory",
    ),
    (
        "Tests run serially in CI, otherwise they fight over the port.",
        "serial tests",
        "otherwise they fight over the port",
    ),
    (
        "We kept the monolith (splitting it would take a year).",
        "monolith",
        "splitting it would take a year",
    ),
    (
        "Commit messages follow one template for consistency.",
        "commit message template",
        "for consistency",
    ),
    (
        "Given that legal wants the data in the EU, we host in Frankfurt.",
        "Frankfurt",
        "legal wants the data in the EU",
    ),
    (
        "Sentry is self-hosted — customer data must not leave our network.",
        "Sentry self-hosted",
        "customer data must not leave our network",
    ),
    (
        "Thanks to the new index we dropped the nightly cache warm-up.",
        "cache warm-up",
        "the new index",
    ),
    (
        "We signed with Adyen. Stripe doesn't support iDEAL refunds.",
        "Adyen",
        "Stripe doesn't support iDEAL refunds",
    ),
    (
        "Dates are ISO 8601 in every log line, which lets us sort them as text.",
        "ISO dates",
        "lets us sort them as text",
    ),
    ("The reason we pay for Datadog is the trace search.", "Datadog", "the trace search"),
    (
        "Feature flags are plain rows in a table. It lets support switch them without a deploy.",
        "feature flags in a table",
        "lets support switch them without a deploy",
    ),
    (
        "MySQL locked up under load, that's why orders are in CockroachDB.",
        "CockroachDB",
        "MySQL locked up under load",
    ),
    (
        "In order to avoid double charges every payment has an idempotency key.",
        "idempotency key",
        "to avoid double charges",
    ),
    (
        "On-call is a week long, not a day: handovers cost too much.",
        "on-call week",
        "handovers cost too much",
    ),
    (
        "gRPC was dropped in favour of JSON owing to the browser clients.",
        "gRPC",
        "the browser clients",
    ),
    (
        "We cap uploads at 20 MB, or else the virus scanner times out.",
        "upload cap",
        "or else the virus scanner times out",
    ),
    (
        "Because of the audit, access to production needs two approvals.",
        "two approvals",
        "the audit",
    ),
    (
        "Elixir for the chat server, it handles the sockets without any tuning.",
        "Elixir",
        "it handles the sockets without any tuning",
    ),
    ("Secrets moved to Vault after the leak in March.", "Vault", "after the leak in March"),
    ("Wir nutzen Hetzner, weil es halb so viel kostet.", "Hetzner", "es halb so viel kostet"),
    (
        "On garde SQLite parce que l'installation reste simple.",
        "SQLite",
        "l'installation reste simple",
    ),
    (
        "Usamos Terraform porque el equipo ya lo conoce.",
        "Terraform equipo",
        "el equipo ya lo conoce",
    ),
    ("We use Mongo for the catalogue.", "catalogue Mongo", None),
    ("Deploys go out on Tuesdays since March.", "deploys on Tuesdays", None),
    ("Use tabs as indentation in Go files.", "tabs in Go", None),
    ("Billing queue: RabbitMQ 3.13 on two nodes.", "billing queue", None),
    ("The public API stays on v1 until March.", "API v1", None),
    ("Sessions are kept in Redis (port 6380).", "sessions in Redis", None),
    ("Go for the backend; Python for scripts.", "Go backend", None),
    ("We use Celery to send mails.", "Celery mails", None),
    ("The mobile team ships on Mondays, the web team on Wednesdays.", "mobile team Mondays", None),
    (
        "The invoices live in MariaDB because accounting's reports are written for it.",
        "invoices in MariaDB",
        "accounting's reports are written for it",
    ),
    (
        "Bun it is, Node started too slowly in the lambdas.",
        "Bun",
        "Node started too slowly in the lambdas",
    ),
    ("We gave up Jenkins on account of its plugins.", "Jenkins", "its plugins"),
    (
        "As the vendor ends support in June, we replace the scanner library.",
        "scanner library",
        "the vendor ends support in June",
    ),
    (
        "The client is generated from the schema to avoid drift.",
        "generated client",
        "to avoid drift",
    ),
    (
        "No ORM: the queries became impossible to read.",
        "no ORM",
        "the queries became impossible to read",
    ),
    (
        "Safari crashed on WebGL, so the map falls back to canvas.",
        "canvas map",
        "Safari crashed on WebGL",
    ),
    (
        "Every job writes a heartbeat so we notice when it hangs.",
        "heartbeat",
        "so we notice when it hangs",
    ),
    (
        "Picked Hugo since the docs team knows Go templates.",
        "Hugo",
        "the docs team knows Go templates",
    ),
    (
        "Avatars are served by Cloudflare; our egress bill doubled last year.",
        "avatars Cloudflare",
        "our egress bill doubled last year",
    ),
    (
        "Migrations take a lock first, otherwise two pods run them at once.",
        "migration lock",
        "otherwise two pods run them at once",
    ),
    (
        "We stay on Angular (a rewrite would cost two quarters).",
        "Angular",
        "a rewrite would cost two quarters",
    ),
    ("All services log JSON for easier parsing.", "JSON logs", "for easier parsing"),
    (
        "Considering that half of our users are on 3G, images are lazy-loaded.",
        "lazy images",
        "half of our users are on 3G",
    ),
    (
        "The design system is private - marketing wants to launch it themselves.",
        "design system private",
        "marketing wants to launch it themselves",
    ),
    (
        "With the larger instance we no longer need the read replica.",
        "read replica",
        "the larger instance",
    ),
    (
        "We buy the address data from Loqate. OpenStreetMap was too patchy in Poland.",
        "Loqate",
        "OpenStreetMap was too patchy in Poland",
    ),
    ("Ids are ULIDs, which keeps the index compact.", "ULIDs", "keeps the index compact"),
    (
        "The reason for the second queue is that exports starved the webhooks.",
        "second queue",
        "exports starved the webhooks",
    ),
    (
        "Prices are recalculated at night. That way the shop stays fast during the day.",
        "prices at night",
        "That way the shop stays fast during the day",
    ),
    (
        "Auth0 raised its prices threefold, which is why we run Keycloak.",
        "Keycloak",
        "Auth0 raised its prices threefold",
    ),
    (
        "To make rollbacks safe, a release never drops a column.",
        "never drop a column",
        "To make rollbacks safe",
    ),
    (
        "Support answers in the app and not by mail: mails got lost in spam.",
        "support in the app",
        "mails got lost in spam",
    ),
    (
        "We freeze releases in December, for the sake of the shops.",
        "release freeze",
        "for the sake of the shops",
    ),
    (
        "Retry at most three times, or the partner bans our IP.",
        "three retries",
        "or the partner bans our IP",
    ),
    ("Due to GDPR we hash e-mail addresses in the logs.", "hash mail addresses", "GDPR"),
    (
        "Playwright for the browser tests, Cypress cannot open two tabs.",
        "Playwright",
        "Cypress cannot open two tabs",
    ),
    (
        "Nginx was replaced by Caddy following the certificate outage.",
        "Caddy",
        "following the certificate outage",
    ),
    ("Wir bleiben bei Java, da niemand Kotlin kann.", "Java Kotlin", "niemand Kotlin kann"),
    (
        "On a choisi OVH car les données doivent rester en France.",
        "OVH",
        "les données doivent rester en France",
    ),
    (
        "Elegimos Flutter ya que tenemos un solo equipo móvil.",
        "Flutter",
        "tenemos un solo equipo móvil",
    ),
    ("We run the jobs on Fargate.", "jobs on Fargate", None),
    ("The style guide has been in force since 2024.", "style guide", None),
    ("Docs are published as static pages.", "docs static pages", None),
    ("Test database: one container per worker.", "test database container", None),
    ("The warehouse sync is paused until the audit is over.", "warehouse sync", None),
    ("The dashboards are in Grafana (folder Shop).", "dashboards Grafana", None),
    ("English in code; German in the user interface.", "German user interface", None),
    ("We use ffmpeg to cut the trailers.", "ffmpeg trailers", None),
    ("Fridays are for reviews, no deploys.", "Friday reviews", None),
    (
        "Keep the websocket gateway on Node 18 for now; uWebSockets segfaults on 20.",
        "websocket gateway Node 18",
        "uWebSockets segfaults on 20",
    ),
    (
        "I went with msgpack on the internal bus, JSON parsing ate 15% of the CPU.",
        "msgpack",
        "JSON parsing ate 15% of the CPU",
    ),
    (
        "The retention job runs hourly instead of nightly, because a nightly run blocked the backups for two hours.",
        "retention job",
        "a nightly run blocked the backups for two hours",
    ),
    (
        "squash merges only, bisecting through wip commits was hell",
        "squash merges",
        "bisecting through wip commits was hell",
    ),
    (
        "We mirror crates.io internally; builds must not depend on the internet.",
        "crates mirror",
        "builds must not depend on the internet",
    ),
    (
        "Tenants are capped at 50 webhooks in order not to starve the small ones.",
        "webhook cap per tenant",
        "in order not to starve the small ones",
    ),
    (
        "To stay under the Lambda limit, PDFs are rendered page by page.",
        "PDF page by page",
        "To stay under the Lambda limit",
    ),
    (
        "The team picked Linear over Jira for its keyboard shortcuts.",
        "Linear",
        "for its keyboard shortcuts",
    ),
    (
        "CSV exports use semicolons, as Excel in Germany expects them.",
        "CSV semicolons",
        "Excel in Germany expects them",
    ),
    (
        "The old importer stays read-only until the auditors sign off, they want to be able to compare.",
        "old importer read-only",
        "they want to be able to compare",
    ),
    (
        "Terraform state lives in GCS with locking on, two people once applied at the same time.",
        "Terraform state in GCS",
        "two people once applied at the same time",
    ),
    (
        "We no longer cache permissions, a revoked user kept access for an hour.",
        "permission cache",
        "a revoked user kept access for an hour",
    ),
    (
        "Cursor pagination everywhere: offset queries took seconds past page 200.",
        "cursor pagination",
        "offset queries took seconds past page 200",
    ),
    (
        "The SDK is written in TypeScript, given that most partners are on Node.",
        "SDK in TypeScript",
        "most partners are on Node",
    ),
    (
        "Rate limits are per key and not per IP, since whole offices share an address.",
        "rate limit per key",
        "whole offices share an address",
    ),
    (
        "The mobile app pins certificates, a requirement of the bank.",
        "certificate pinning",
        "a requirement of the bank",
    ),
    (
        "All cron jobs moved into the scheduler service so somebody gets paged when one fails.",
        "cron jobs in the scheduler",
        "so somebody gets paged when one fails",
    ),
    (
        "Fastly was chosen on the grounds that it purges within a second.",
        "Fastly",
        "it purges within a second",
    ),
    (
        "Alpine images are banned: musl broke our DNS lookups twice.",
        "Alpine images",
        "musl broke our DNS lookups twice",
    ),
    (
        "Support asked for it, hence the export button for raw events.",
        "export button for raw events",
        "Support asked for it",
    ),
    (
        "We render mails on the server. Outlook mangles everything the builder produces.",
        "server-side mails",
        "Outlook mangles everything the builder produces",
    ),
    (
        "The feature store is plain Parquet, that is enough for the next two years.",
        "feature store Parquet",
        "that is enough for the next two years",
    ),
    (
        "Translations are frozen on Thursdays which gives the translators a full day.",
        "translation freeze",
        "which gives the translators a full day",
    ),
    (
        "After the data loss in May every table has a nightly dump.",
        "nightly table dump",
        "the data loss in May",
    ),
    (
        "Wir haben Kafka abgeschafft, damit weniger Leute Bereitschaft haben.",
        "Kafka abgeschafft",
        "damit weniger Leute Bereitschaft haben",
    ),
    ("The proxy listens on 8443 as of June.", "proxy port", None),
    ("Invoices go out on the first, reminders on the fifteenth.", "invoices on the first", None),
    (
        "The staging cluster has three nodes: two in Paris and one in Lyon.",
        "staging cluster nodes",
        None,
    ),
    ("We use Figma to draw the wireframes.", "Figma", None),
    ("The beta is open to all customers since last Monday.", "beta open", None),
    ("Logs are rotated daily; metrics are kept for a year.", "log rotation", None),
]

UNSEEN = [
    (
        "The scraper sleeps two seconds between pages because the shop blocked us in spring.",
        "scraper sleeps",
        "the shop blocked us in spring",
    ),
    (
        "Moved the thumbnails off Lambda, cold starts made the gallery jerky.",
        "thumbnails off Lambda",
        "cold starts made the gallery jerky",
    ),
    (
        "We only hire in UTC-1 to UTC+3. Stand-ups at midnight burnt people out.",
        "hiring time zones",
        "Stand-ups at midnight burnt people out",
    ),
    (
        "The admin UI is server-rendered: nobody on the team enjoys React.",
        "admin UI",
        "nobody on the team enjoys React",
    ),
    ("GPU jobs go to Lambda Labs due to the price.", "GPU jobs", "the price"),
    (
        "The desktop client bundles its own Python so that IT departments need not install one.",
        "bundled Python",
        "so that IT departments need not install one",
    ),
    (
        "Passwords are checked against the leak list to comply with the bank's rules.",
        "password leak list",
        "to comply with the bank's rules",
    ),
    (
        "Since the French team joined, all meetings are in English.",
        "meetings in English",
        "the French team joined",
    ),
    (
        "No in-app purchases (Apple takes thirty percent).",
        "in-app purchases",
        "Apple takes thirty percent",
    ),
    ("The archive stays on tape, for cost reasons.", "archive on tape", "for cost reasons"),
    (
        "Tests may not use sleep, it made the suite flaky.",
        "sleep in tests",
        "it made the suite flaky",
    ),
    (
        "The beta ring is ten customers; with more we drowned in tickets.",
        "beta ring",
        "with more we drowned in tickets",
    ),
    (
        "Kotlin replaced Java in the Android app, mainly because of coroutines.",
        "Kotlin",
        "coroutines",
    ),
    (
        "Our vendor stopped patching 9.x, therefore we run the fork.",
        "fork",
        "Our vendor stopped patching 9.x",
    ),
    (
        "Every metric has a unit in its name, otherwise dashboards mix seconds and milliseconds.",
        "unit in metric names",
        "otherwise dashboards mix seconds and milliseconds",
    ),
    (
        "Protobuf schemas live in their own repo, that way both teams can review a change.",
        "protobuf repo",
        "that way both teams can review a change",
    ),
    (
        "Node pools are spot instances, which cuts the bill by 60 percent.",
        "spot instances",
        "cuts the bill by 60 percent",
    ),
    (
        "We answer reviews within a day as unanswered ones hurt our ranking.",
        "answer reviews",
        "unanswered ones hurt our ranking",
    ),
    (
        "The map uses vector tiles; raster looked blurry on retina screens.",
        "vector tiles",
        "raster looked blurry on retina screens",
    ),
    (
        "Two regions, Frankfurt and Dublin, on account of the data residency clause.",
        "two regions",
        "the data residency clause",
    ),
    ("The reports are built in dbt.", "reports dbt", None),
    ("The wiki is in Confluence; the tickets are in Jira.", "wiki Confluence", None),
    ("Maintenance windows are on Sundays, 2 to 4 in the morning.", "maintenance window", None),
    ("Use Blender to render the product pictures.", "Blender", None),
    ("The firmware has two slots: A is active, B takes the update.", "firmware slots", None),
]
