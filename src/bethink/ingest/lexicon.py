"""The words that `extract` goes by: technologies, everyday words, file extensions, and the cue phrases of each kind.

Data only. How it is looked up is told in `lookup`; what is added here needs no change anywhere else. The weights of
the cues come from reading some 200 example sentences (the table in `tests/test_extract.py`), not from a benchmark.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Technologies whose name is no ordinary word: found in any case, at any place. Written as the entity is called.
NAMES = """
Python, JavaScript, TypeScript, Kotlin, Golang, PHP, Haskell, Erlang, Elixir, Clojure, OCaml, Fortran, COBOL, MATLAB, PowerShell,
Solidity, VHDL, Verilog, GraphQL, HTML, CSS, SQL, YAML, TOML, JSON, XML, Markdown, LaTeX, WebAssembly, PL/pgSQL, CUDA, OpenCL, Groovy,
Lua, PostgreSQL, MySQL, MariaDB, SQLite, DuckDB, MongoDB, Redis, Valkey, Memcached, Cassandra, ScyllaDB, CockroachDB, DynamoDB, Firestore,
CouchDB, Couchbase, Neo4j, ArangoDB, InfluxDB, TimescaleDB, ClickHouse, BigQuery, Elasticsearch, OpenSearch, Solr, Meilisearch, Typesense,
Qdrant, Weaviate, Milvus, pgvector, sqlite-vec, FAISS, LanceDB, RocksDB, LevelDB, LMDB, PlanetScale, Supabase, Firebase, Pinecone,
ChromaDB, SurrealDB, Databricks, Vitess, PgBouncer, etcd, ZooKeeper, Kafka, RabbitMQ, ActiveMQ, ZeroMQ, MQTT, AMQP, Kinesis, EventBridge,
Celery, Sidekiq, BullMQ, Django, FastAPI, Starlette, Uvicorn, Gunicorn, Pydantic, SQLAlchemy, Alembic, NumPy, pandas, SciPy, scikit-learn,
PyTorch, TensorFlow, Keras, JAX, Hugging Face, LangChain, LlamaIndex, OpenAI, Anthropic, ChatGPT, Ollama, vLLM, llama.cpp, ONNX,
ONNX Runtime, Jupyter, Streamlit, Matplotlib, pytest, mypy, Pyright, Pylint, Ruff, tox, setuptools, Numba, Cython, aiohttp, httpx,
Tortoise ORM, asyncpg, psycopg, apsw, Node.js, Deno, npm, pnpm, Yarn, webpack, esbuild, Rollup, Babel, ESLint, Prettier, Next.js, Nuxt,
Vue.js, AngularJS, SvelteKit, Gatsby, jQuery, Redux, Zustand, MobX, RxJS, Tailwind CSS, Bootstrap CSS, Storybook, Vitest, Mocha.js,
Playwright, Puppeteer, Selenium, Electron.js, Tauri, React Native, NestJS, Express.js, Fastify, Hono, tRPC, Three.js, D3.js, Chart.js,
Socket.IO, Turborepo, Vercel, Netlify, WebSocket, WebRTC, Prisma ORM, Drizzle ORM, TypeORM, Sequelize, Mongoose ODM, Zod, Axios, Laravel,
Symfony, WordPress, Drupal, Composer PHP, Ruby on Rails, RSpec, Spring Boot, Hibernate, Gradle, Maven, JUnit, Kotlin Multiplatform,
Jetpack Compose, SwiftUI, Xcode, CocoaPods, Tokio, Serde, Actix, Axum, Cargo.toml, WebGPU, WebGL, Vulkan, OpenGL, Qt, GTK, Flutter, .NET,
ASP.NET, Blazor, Entity Framework, LINQ, Docker, Docker Compose, Podman, Kubernetes, Helm Chart, Istio, Linkerd, Envoy Proxy, Traefik,
Nginx, HAProxy, Caddy Server, Apache HTTP Server, Terraform, OpenTofu, Pulumi, Ansible, CloudFormation, Vagrantfile, Jenkins, CircleCI,
GitHub Actions, GitLab CI, Argo CD, Bazel, CMake, Makefile, GitHub, GitLab, Bitbucket, Jira, Confluence, Bash, Zsh, tmux, Neovim, Vim,
Emacs, Visual Studio Code, IntelliJ IDEA, PyCharm, systemd, Linux, Ubuntu, Debian, Fedora, Alpine Linux, Windows, macOS, iOS, Android,
FreeBSD, Raspberry Pi, Arduino, ESP32, LoRaWAN, AWS, Amazon S3, Amazon EC2, Amazon RDS, AWS Lambda, CloudFront, CloudWatch, Google Cloud,
Cloud Run, Azure, Azure DevOps, Cloudflare, Cloudflare Workers, DigitalOcean, Heroku, Fly.io, Hetzner, OpenStack, Okta, Auth0, Keycloak,
Twilio, SendGrid, PayPal API, Stripe API, Datadog, Grafana, Prometheus, OpenTelemetry, Jaeger, Kibana, Logstash, Fluentd, Splunk,
PagerDuty, Snowflake DB, Airflow, Dagster, dbt, Apache Spark, PySpark, Hadoop, Parquet, Protobuf, Protocol Buffers, Apache Avro,
MessagePack, Apache Arrow, gRPC, OpenAPI, Swagger UI, OAuth, OAuth2, OpenID Connect, SAML, JWT, LDAP, Kerberos, TLS, mTLS, SSH, HTTP,
HTTPS, HTTP/2, QUIC, TCP, UDP, DNS, SMTP, IMAP, WebDAV, MCP, Model Context Protocol, tree-sitter, Claude Code, Codex CLI, GitHub Copilot,
BM25, HNSW, UUIDv7, FTS5, Homebrew, Nix, uv, pip, Conda, Figma, Asana, Trello, Zapier, Shopify, Sentry.io
"""

# Exactly so or not at all: in other letters these are something else.
EXACT = """
REST, SOAP, SAP, CORS, CSRF, XSS, WASM, LLVM, GCC, Clang, RAG, GPU, CPU, VPN, CDN, GCP, IAM, KMS, SQS, SNS, ECS, EKS, GKE,
AKS, VS Code, LoRa, SwiftPM
"""

# Ordinary words as well: only with a capital and inside a sentence, or before a word such as "is" or "app".
ORDINARY = """
Go, React, Rust, Swift, Ruby, Java, Dart, Scala, Julia, Perl, Zig, Nim, Crystal, Elm, Express, Flask, Click, Spark, Lambda, Oracle,
Chrome, Firefox, Safari, Svelte, Angular, Ember, Remix, Astro, Meteor, Apollo, Relay, Prisma, Drizzle, Knex, Jest, Cypress, Mocha, Vite,
Bun, Node, Puppet, Chef, Consul, Vault, Nomad, Packer, Vagrant, Helm, Envoy, Caddy, Apache, Sentry, Slack, Notion, Linear, Discord, Zoom,
Stripe, Render, Railway, Unity, Godot, Electron, Phoenix, Rails, Sinatra, Gin, Fiber, Rocket, Temporal, Prefect, Dask, Polars, Chroma,
Snowflake, Redshift, Athena, Looker, Tableau, Metabase, Superset, Swagger, Postman, Insomnia, Poetry, Hatch, Pulsar, Flink, Presto, Trino,
Iceberg, Avro, Arrow, Claude, Gemini, Copilot, Codex, Cursor, Llama, Mistral, Bootstrap, Tailwind, Composer, Ninja, Cargo, Git, Mercurial,
Expo, Capacitor
"""

# Other spellings, in small letters.
ALIASES = {
    "postgres": "PostgreSQL",
    "pgsql": "PostgreSQL",
    "psql": "PostgreSQL",
    "postgre": "PostgreSQL",
    "sqlite3": "SQLite",
    "mongo": "MongoDB",
    "k8s": "Kubernetes",
    "kubectl": "Kubernetes",
    "kube": "Kubernetes",
    "js": "JavaScript",
    "ts": "TypeScript",
    "python3": "Python",
    "py3": "Python",
    "cpython": "CPython",
    "pypy": "PyPy",
    "nodejs": "Node.js",
    "node.js": "Node.js",
    "nextjs": "Next.js",
    "vue": "Vue.js",
    "vuejs": "Vue.js",
    "reactjs": "React",
    "react.js": "React",
    "golang": "Go",
    "rustlang": "Rust",
    "rustc": "Rust",
    "c++": "C++",
    "c#": "C#",
    "f#": "F#",
    "csharp": "C#",
    "objective-c": "Objective-C",
    "dotnet": ".NET",
    "asp.net core": "ASP.NET",
    "elastic search": "Elasticsearch",
    "opensearch": "OpenSearch",
    "rabbit mq": "RabbitMQ",
    "apache kafka": "Kafka",
    "tailwindcss": "Tailwind CSS",
    "tailwind css": "Tailwind CSS",
    "sklearn": "scikit-learn",
    "tf": "TensorFlow",
    "torch": "PyTorch",
    "huggingface": "Hugging Face",
    "llamacpp": "llama.cpp",
    "onnxruntime": "ONNX Runtime",
    "docker-compose": "Docker Compose",
    "dockerfile": "Docker",
    "vscode": "Visual Studio Code",
    "vs code": "Visual Studio Code",
    "gh actions": "GitHub Actions",
    "github action": "GitHub Actions",
    "s3": "Amazon S3",
    "ec2": "Amazon EC2",
    "aws s3": "Amazon S3",
    "aws ec2": "Amazon EC2",
    "rds": "Amazon RDS",
    "gcloud": "Google Cloud",
    "google cloud platform": "Google Cloud",
    "msft azure": "Azure",
    "microsoft azure": "Azure",
    "rails": "Ruby on Rails",
    "ror": "Ruby on Rails",
    "websockets": "WebSocket",
    "web sockets": "WebSocket",
    "web socket": "WebSocket",
    "protobufs": "Protocol Buffers",
    "protobuf": "Protocol Buffers",
    "protocol buffers": "Protocol Buffers",
    "oauth2": "OAuth",
    "oauth 2.0": "OAuth",
    "oidc": "OpenID Connect",
    "jwts": "JWT",
    "treesitter": "tree-sitter",
    "tree sitter": "tree-sitter",
    "elk": "Elasticsearch",
    "mssql": "SQL Server",
    "sql server": "SQL Server",
    "ms sql": "SQL Server",
    "express.js": "Express",
    "expressjs": "Express",
    "nest.js": "NestJS",
    "socket.io": "Socket.IO",
    "wasm": "WebAssembly",
    "osx": "macOS",
    "os x": "macOS",
    "fly.io": "Fly.io",
    "cloudflare worker": "Cloudflare Workers",
    "argocd": "Argo CD",
    "otel": "OpenTelemetry",
    "neo4j": "Neo4j",
    "es6": "JavaScript",
    "ecmascript": "JavaScript",
    "shellcheck": "ShellCheck",
    "zsh": "Zsh",
    "bash": "Bash",
    "claude code": "Claude Code",
    "copilot cli": "GitHub Copilot",
    "amazon web services": "AWS",
    "aws lambda": "AWS Lambda",
    "spring boot": "Spring Boot",
    "springboot": "Spring Boot",
    "jetbrains": "JetBrains",
    "unreal engine": "Unreal Engine",
    "esp-32": "ESP32",
    "svelte kit": "SvelteKit",
    "graphql": "GraphQL",
    "restful": "REST",
    "apache spark": "Spark",
    "apache flink": "Flink",
    "apache airflow": "Airflow",
    "nginx": "Nginx",
    "vim": "Vim",
    "pytorch lightning": "PyTorch Lightning",
    "gitlab-ci": "GitLab CI",
    "sentry.io": "Sentry",
    "stripe api": "Stripe",
    "prisma orm": "Prisma",
    "drizzle orm": "Drizzle",
    "helm chart": "Helm",
    "helm charts": "Helm",
    "envoy proxy": "Envoy",
    "electron.js": "Electron",
    "apache avro": "Avro",
    "apache arrow": "Arrow",
    "snowflake db": "Snowflake",
    "swagger ui": "Swagger",
    "caddy server": "Caddy",
    "mocha.js": "Mocha",
    "bootstrap css": "Bootstrap",
    "composer php": "Composer",
    "paypal api": "PayPal",
}


def _listed(names: str) -> list[str]:
    return [" ".join(name.split()) for name in names.split(",")]


# Every spelling of a name that is no ordinary word, in small letters or exactly so, with how the entity is called.
TECHNOLOGIES = (
    {name.lower(): name for name in _listed(NAMES)}
    | {name: name for name in _listed(EXACT)}
    | ALIASES
)
ORDINARY_TECHNOLOGIES = {name: ALIASES.get(name.lower(), name) for name in _listed(ORDINARY)}
# All of them word by word, and the words that they begin with, in small letters.
TECHNOLOGY_WORDS = frozenset(name.lower().replace("-", " ") for name in TECHNOLOGIES)
TECHNOLOGY_OPENINGS = frozenset(name.split()[0] for name in TECHNOLOGY_WORDS) | frozenset(
    map(str.lower, ORDINARY_TECHNOLOGIES)
)

# What may follow an ordinary word at the start of a sentence when it is the technology that is meant.
BESIDE_TECHNOLOGY = _words("""
    is isn't was wasn't has hasn't uses runs needs supports doesn't version versions code app apps application component components hooks
    service services server project backend frontend module modules package packages binary binaries developer developers program programs
    library libraries compiler script scripts extension client bindings
    """)

STOP_WORDS = _words("""
    a about above across after again against all almost along already also although always am among an and another any anybody anyone
    anything are aren't around as at away back be because been before being below between both but by came can can't cannot come could
    couldn't did didn't do does doesn't doing don't done down during each either else enough etc even ever every everybody everyone
    everything few first for from further get gets getting give given go goes going gone got had hadn't has hasn't have haven't having he
    he'd he'll he's hence her here here's hers herself him himself his how how's however i i'd i'll i'm i've if in indeed instead into is
    isn't it it'd it'll it's its itself just keep kind last later least less let let's like made make makes making many may maybe me might
    mine more most much must my myself near need needs neither never next no nobody none nor not nothing now of off often ok okay on once
    one ones only onto or other others otherwise our ours ourselves out over own per perhaps please put quite rather really same say says
    see seem seems seen set several shall she she'd she'll she's should shouldn't since so some somebody someone something sometimes
    somewhere still such sure take taken than that that's the their theirs them themselves then there there's therefore these they they'd
    they'll they're they've thing things this those though through thus to together too toward towards two under unless until up upon us
    use used uses using usually very via want wants was wasn't way we we'd we'll we're we've well went were weren't what what's whatever
    when when's where where's whether which while who who's whoever whole whom whose why why's will with within without won't would
    wouldn't yes yet you you'd you'll you're you've your yours yourself yourselves
    """)

# Words that begin with a capital for other reasons than being a name: openers, verbs in headings and lists, dates, peoples.
COMMON = _words("""
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september october november
    december english german french spanish italian chinese japanese korean russian american european british internet english-speaking
    christmas easter add added adding allow apply ask assume avoid build built call change changed check choose chose clean close commit
    compare confirm consider convert copy create created cut debug decide decided define delete deploy deployed describe disable document
    download drop dropped edit enable ensure everything expect explain export extend extract fail failed fetch file find finish fix fixed
    follow follow-up found generate give go great handle hello help hi hey hide ignore implement implemented import improve include
    increase inspect install introduce investigate known later launch learn leave lets link list load log look lower mark mark-up measure
    meet merge migrate migrated mind mock mount move moved name new nice note notice notes old open optimize order parse pass pick plan
    please prefer prepare prevent print pull push raise read rebase reduce refactor reject release reload remember remind remove removed
    rename render replace replaced report reproduce request require research reset resolve restart restore return revert review rewrite
    run running save scan schedule search select send ship show simplify skip solve sort split start started stop store suggest support
    switch switched test tests thank thanks think track treat try turn type update updated upgrade upload use user users using validate
    verify view visit wait watch wire work works wrap write actually additionally alternatively apparently basically because besides both
    caution careful certainly clearly consequently currently decision especially eventually exactly example examples fact false finally
    fine first firstly fortunately full generally good gotcha here hopefully immediately important initially interesting interestingly
    internally ironically lastly likewise locally luckily mainly meanwhile moreover mostly naturally nevertheless next none nonetheless
    normally obviously occasionally originally overall perhaps personally possibly preferably presumably previously probably problem
    question quick quickly reason recently roughly second secondly sadly similarly simply sometimes soon specifically step steps still
    strictly summary surprisingly technically temporarily thankfully third today todo together tomorrow tonight total true typically
    ultimately unfortunately unlike usually warning whenever wherever yesterday yet beware rest sorry same self dear mr mrs ms dr sir
    madam god love happy welcome congratulations cheers regards best sincerely wow yep yeah oh hmm haha ah aha cool awesome amazing
    absolutely sounds glad super surely woohoo bye okay ok hm ha indeed speaking nobody somebody anybody everybody marketing sales legal
    finance management customer customers docs documentation north south east west
    """)

# Nouns that make a run of capitalised words a thing rather than a person.
GENERIC = _words("""
    account accounts admin agent agents alert analytics api apis app application apps architecture archive area assistant audit auth
    authentication backend bank batch bench billing board book bot branch bridge browser bucket budget build bus cache calendar campaign
    cart catalog center centre channel chart chat checklist checkout class client cloud cluster code command committee community company
    component components conference config configuration connector console contract control controller core corp corporation council
    course crawler dashboard data database day deployment desk desktop development device directory document domain driver edition editor
    email endpoint engine engineering entity environment error event events exchange explorer export extension feature feed field fields
    file files filter flow folder form format foundation framework frontend function gateway graph group guide guidelines handler header
    health history home hook house hub inc index industries institute integration interface inventory invoice invoices island issue item
    items job jobs journal kernel key keys kit lab labs lake language law layer ledger library limit list listener lite loader log login
    logs loop ltd machine mail manager map market marketplace memory menu message messages method metrics middleware migration mobile mode
    model module monitor mountain museum network news node note notebook notification notifications object office operations orchestrator
    order orders organization page panel park parser partner pass payment payments phase pipeline plan platform player plugin policy pool
    portal principle process processor product production profile program project protocol provider proxy queue reader record recovery
    registry release report reports repository request requests resource response retry review river role room router rule rules runner
    runtime sandbox scheduler schema school science scope score screen script search security sensor series server service services
    session settings shell shop site social software source space spec sprint stack stage standard state station storage store stream
    street strategy structure studio style suite summary support sync system systems table task tasks team teams template test testing
    theme thread ticket timeline token tokens tool toolkit tools topic tower tracker transaction transport tree trial type university
    update user users utility validation value values valley vault
    vector version video view viewer warehouse week wiki window worker workers
    workflow workspace world wrapper year zone
    """)

LITERALS = _words("true false null none nil undefined nan yes no on off ok")
PLAIN = STOP_WORDS | COMMON
KNOWN = PLAIN | GENERIC | LITERALS

NAME_PARTICLES = _words("van von der den de da del di la bin al")
# What no name begins or ends with, whatever its capital. "Order" may: the Order Service.
NEVER_OUTERMOST = (COMMON - GENERIC) | STOP_WORDS | NAME_PARTICLES
ABSTRACT_ENDINGS = (
    "ing",
    "tion",
    "ment",
    "ness",
    "ity",
    "ance",
    "ence",
    "able",
    "ous",
    "ive",
    "ology",
    "ism",
)

# Names that carry capitals inside and are neither symbols nor technologies.
BRANDS = _words("""
    youtube linkedin facebook whatsapp paypal iphone ipad macbook powerpoint deepmind devops devsecops finops phd wifi mcdonald macdonald
    ebay ecommerce jpmorgan blackrock fedex mastercard hubspot salesforce imac airpods kwh mhz ghz khz vcpu vcpus
    """)

# Verbs that only people are the subject of.
HUMAN_VERBS = _words("""
    said says asked asks wants wanted prefers preferred thinks thought suggested suggests proposed approved reviewed owns leads joined
    told wrote agreed disagreed mentioned reported reports likes dislikes hates loves lives moved works worked insisted recommended
    confirmed believes knows decided pointed noticed complained promised explained manages maintains
    """)
BEFORE_PEOPLE = _words("""
    ask asked told tell ping cc thank thanks hey hi hello wow yep yes yeah dear sorry congrats congratulations
    """)
BEFORE_THINGS = _words("the a an my our your his her their this that these in at into near visit")
PROJECT_WORDS = _words("project repo repository codebase initiative")

EXTENSIONS = _words("""
    py pyi pyx ipynb js mjs cjs jsx ts tsx vue svelte go rs rb java kt kts scala c h cc cpp hpp cs fs swift m mm php pl lua ex exs erl hs
    ml clj dart zig nim sol sql sh bash zsh fish ps1 bat html htm css scss sass less json jsonl json5 jsonc yaml yml toml ini cfg conf env
    xml csv tsv md mdx rst txt log lock proto graphql tf tfvars hcl gradle dockerfile db sqlite sqlite3 parquet onnx pt gguf pkl npy png
    jpg jpeg gif svg webp pdf docx xlsx pptx zip gz tgz tar whl pem crt adoc wasm so dll exe bin service tmpl j2 snap patch diff
    """)
FILE_NAMES = _words("""
    dockerfile makefile jenkinsfile procfile gemfile rakefile vagrantfile justfile license readme changelog codeowners cmakelists.txt .env
    .gitignore .gitattributes .dockerignore .npmrc .editorconfig .bashrc .zshrc .eslintrc .prettierrc
    """)
# Files that have no dot to tell them by.
UNDOTTED_FILE_NAMES = frozenset(name for name in FILE_NAMES if "." not in name)
DIRECTORIES = _words("""
    src lib libs app apps cmd pkg internal tests test spec docs doc bin etc usr var home opt tmp scripts config packages node_modules
    migrations public static assets templates examples bench tools .github .claude .git .vscode .bethink
    """)
# `self.db` and `console.log` end like files and are none.
OBJECTS = _words("""
    self this cls window document console math np numpy torch request response res req process logger log app ctx module
    """)
DOMAINS = _words("com org net io dev ai co edu gov uk de eu info me tv us ca fr")
DECORATORS = _words("""
    property dataclass staticmethod classmethod override overload cached cache test component injectable input output param params return
    returns throws deprecated todo media import charset pytest fixture app router bean autowired nullable nonnull entity table see author
    since example type typedef abstract final abstractmethod wraps lru_cache asynccontextmanager contextmanager tailwind apply keyframes
    font-face supports
    """)
LITTLE_IDEOGRAPHS = "的了是在和与或及而不我们你他她它这那就都也很把被将对为到从用有个要会能可以"
ABBREVIATIONS = _words(
    "e.g i.e etc vs cf mr mrs ms dr prof inc ltd no fig approx resp st jr sr al dept est min max"
)

GREETING = (
    r"(?:hi|hello|hey|thanks|thank you|ok|okay|sure|great|got it|yes|yep|no|sounds good|good (?:morning|afternoon"
    r"|evening)|perfect|awesome|cool|right|"
    r"alright|absolutely|certainly|of course|you're (?:absolutely )?right|done|dear|understood|nice|hope|please find|cheers|best"
    r"|regards)\b"
)
# An agent telling what it does next. It says nothing worth keeping beyond the moment.
FILLER = (
    r"(?:(?:(?:ok|okay|good|great|alright|done|sure|right|yes|now|next|first|then|also|finally)[,.:]? )*(?:let me"
    r"|let's (?:check|look|see|start|continue|try|run|verify|read)"
    r"|i(?:'ll| will) (?:now |also |just |then |next )?(?:check|look|read|run|inspect|patch|update|add|rerun"
    r"|start|commit|verify|apply|begin|create|take|go ahead|wait|see|fix|review|search|open|list|try|continue|proceed|push|trace)"
    r"|i(?:'m| am) (?:now |also |going to |just )?(?:check|read|look|patch|updat|add|review|runn|stag|committ"
    r"|inspect|trac|verify|widen|rerunn|fix|start|mov|kick|search|writ|pull|wir|incorporat)(?:ing)?"
    r"|now (?:add|update|set|create|run|fix|remove|check|look|write|the|i|for|push|commit)|here's|here is|here are|looking at"
    r"|as you can see|see below|good question))\b"
)

HEDGES = (
    (
        0.25,
        r"\bmaybe\b|\bperhaps\b|\bnot (?:entirely |quite |really |100% |so )?sure\b|\bunsure\b|\bno idea\b|\btentative(?:ly)?\b"
        r"|\bpossibly\b|\bguess(?:ing)?\b"
        r"|\b(?:might|could|may) be\b|\bunclear\b|\bspeculat\w*|\bnot certain\b|\buncertain\b|\bconceivabl[ey]\b|\bfor now\b"
        r"|\bsort of\b|\bkind of\b",
    ),
    (
        0.15,
        r"\bprobably\b|\bi (?:think|believe|suspect|assume|suppose|feel|reckon)\b|\bwe (?:think|believe|suspect|assume)\b"
        r"|\blikely\b|\bseem(?:s|ed|ingly)?\b"
        r"|\bappears?\b|\bmight\b|\bapparently\b|\bpresumably\b|\bimo\b|\bin my opinion\b|\bleaning towards?\b"
        r"|\bas far as i (?:know|can tell)\b|\biirc\b|\bafaik\b"
        r"|\broughly\b|\bsupposedly\b|\ballegedly\b|\bshould work\b|\bconsidering\b|\bthinking (?:of|about)\b",
    ),
)
FIRM = (
    r"\bdefinite(?:ly)?\b|\bmust\b|\balways\b|\bnever\b|\bconfirmed\b|\bverified\b|\bmeasured\b|\bagreed\b|\bfinal(?:ly|ised|ized)?\b"
    r"|\bcertain(?:ly)?\b|\bdecided\b"
    r"|\bwithout (?:a )?doubt\b|\bproven\b|\bguaranteed\b|\bexactly\b|\bclearly\b|\bobviously\b|\bundoubtedly\b|\bsettled\b"
    r"|\bapproved\b|\bfor sure\b|\bevery time\b"
)

_DO = (
    r"(?:use|go with|go for|switch|move|adopt|keep|stick|migrate|drop|stay|store|ship|standardi[sz]e|replace|target|rely|build|host"
    r"|write|run|retire|deprecate)"
)
_WORK = (
    r"(?:add|fix|write|update|remove|refactor|implement|investigate|move|rename|document|test|replace|clean|check"
    r"|create|migrate|support|handle|upgrade|rotate|review|extend|measure|publish|automate|split|backfill|delete|revisit|look into"
    r"|set up|bump|wire|port|cover|schedule"
    r"|finish|verify)"
)
_PART = (
    r"(?:component|module|class|package|service|library|worker|daemon|crate|subsystem|handler|controller|client|middleware|parser|"
    r"scheduler|layer)"
)

_STATES = (
    r"is|are|was|were|has|had|uses|runs|lives|contains|supports|requires|listens|stores|costs|takes|starts|expires|returns|defaults"
    r"|equals|weighs|owns|speaks|keeps|holds|accepts|serves|comes|allows|sends|reads|writes|means|includes|provides|needs|consists"
    r"|isn't|aren't|wasn't|doesn't"
)
_OWNS = "owns|maintains|leads|manages|mentors|extends|inherits from|supersedes|implements|is part of|collaborates with"
_HANDLES = "validates|parses|renders|handles|wraps|orchestrates|converts|encapsulates|exposes|schedules|dispatches"
_KIN = "manager|boss|lead|wife|husband|sister|brother|owner|team|partner|mentor"
_LIKES = "likes|dislikes|hates|loves|insists on"
_ASKING = (
    r"(?:should (?:we|i|it|the)|(?:how|why|when|where|who|what|which|(?:which|what) \w+|how (?:many|much|often|long)(?: \w+)?)"
    r" (?:do|does|did|can|could|should|would|is|are|will) )"
)

# For each kind, (weight, pattern) pairs; like the other patterns here they are held against small letters.
# Earlier kinds win ties. Weights: 4 says it outright, 3 clearly, 2 suggests, 1 hints.
# So that few phrases have to be tried, each alternative begins with a word, or else with a comment: `(?#from *ing)` lists
# what its first word can be (here: what it can end in), `(?#with silently)` the words one of which it cannot do without.
CUES: dict[str, tuple[tuple[float, str], ...]] = {
    "question": (
        (
            4,
            r"\bopen (?:question|issue)s?\b|\b(?:unresolved|undecided|still debating|question is|question remains)\b|^q:",
        ),
        (
            3.5,
            r"\b(?:unclear|unsure|wonder(?:ing)?|unknown|don'?t know|do not know|not sure|no idea|undecided|asking)"
            r"\b[^.!?\n]{0,20}\b(?:whether|if|how|why|what|which|who|when|where)\b",
        ),
        (3, rf"^{_ASKING}|(?#with should|how|why|when|where|who|what|which)[.!?:] {_ASKING}"),
        (2, r"\b(?:tbd|to be decided|any ideas?|figure out (?:whether|if|how|why|what))\b"),
    ),
    "todo": (
        (4.5, r"(?#with [ ])(?:^|\s)[-*] \[ \]|\baction items?\b|^outstanding\b"),
        (
            4,
            r"\bto-?do\b|\bfixme\b|\b(?:don'?t|do not) forget to\b|\bremember to\b|\bnext steps?\b",
        ),
        (
            3,
            r"\b(?:we|i|you|someone|somebody|they|team|which|that|it|and|still) (?:still |also |really )?(?:need"
            r"|needs|have|has|got|ought) to (?:be )?\w+|\bstill (?:missing|outstanding|pending|to do)\b",
        ),
        (
            3,
            rf"\b(?:should|must|needs? to|has to|have to|remains? to|is to|are to|ought to|want to|plan to|going to have to) (?:also "
            rf"|still |really |probably )?(?:be )?{_WORK}",
        ),
        (
            2.5,
            r"\bneeds? (?:a |an |some |more |better )?(?:\w+ing|tests?|docs?|documentation|cleanup|review|work|attention|fix)\b"
            r"|\b(?:as a|needs a|in a) follow[- ]up\b|\bleft to do\b|\bbacklog\b|\bnot (?:yet )?(?:implemented|done)\b"
            r"|\bshould (?:really |also )?be \w+(?:ed|en|t)\b"
            r"|\bit would be (?:good|nice|great|better|useful) to\b",
        ),
        (1.8, rf"^{_WORK}\b"),
    ),
    "gotcha": (
        (
            4.2,
            r"\bgotchas?\b|\bbeware\b|\bwatch out\b|\bpitfalls?\b|\bfoot-?guns?\b|\bheads[- ]up\b|\bcaveats?\b"
            r"|\btripped (?:us|me|people) up\b|\b(?:bites?|bit|bitten) (?:us|me|you|people)\b",
        ),
        (
            3.6,
            r"\b(?:be |very )?careful\b|\bcaution\b|\bdon'?t be fooled\b"
            r"|\b(?:easy|easily) (?:to )?(?:miss|overlook|forget|forgotten|overlooked|missed)\b|\bsurpris(?:ing|ingly)\b",
        ),
        (
            3.4,
            r"\b(?:silently|quietly) \w+|\bwithout (?:any |a )?(?:warning|error|notice)\b"
            r"|(?#with silently)\b\w+s? (?:\w+ ){0,6}silently\b|\bcounter-?intuitive(?:ly)?\b|\bunexpectedly\b|\bquirks?\b",
        ),
        (
            2.8,
            r"\bmind (?:that|the)\b|\bnote that\b|^warning\b|\bwarning:|\b(?:don'?t|do not|never) (?:assume|rely on|trust|expect)\b"
            r"|\bonly works? (?:if|when|on|with|after)\b"
            r"|\bmust be (?:called|set|run|loaded|imported|closed|opened) (?:before|after|first)\b"
            r"|\bso [^.!?\n]{1,40}\bmust\b[^.!?\n]{1,40}\b(?:first|before)\b",
        ),
        (2.6, r"^remember:|\beven (?:when|if|though)\b"),
        (
            2,
            r"\botherwise (?:it|the|you)\b|\bor else\b|\bcontrary to\b|\bdespite (?:the|its) (?:name|docs)\b"
            r"|\beven (?:though|if) the docs\b",
        ),
    ),
    "solution": (
        (
            4.4,
            r"\b(?:fixed|solved|resolved|cured|remedied|mitigated|repaired|sorted|worked around|got around)(?: (?:it"
            r"|this|that|them|the [\w-]+(?: [\w-]+)?))? (?:by|with|via|through|using|after|once|when|in)\b",
        ),
        (
            4.4,
            r"\b(?:the|a|our|my|one|real|actual|quick) (?:fix|solution|remedy|cure|answer)(?: here| now)? (?:is|was|turned)\b"
            r"|\bwork-?arounds?\b|\bdid the trick\b|\bthe trick (?:is|was)\b"
            r"|^(?:fix|solution):|^(?:fixed|solved|resolved)\b|\bavoid(?:s|ed)? [^.!?\n]{1,40} by \w+ing\b",
        ),
        (
            4,
            r"(?#from *ing)\b\w+ing\b(?:[^.!?\n]|\.(?=\S)){1,80}?\b(?:fix(?:es|ed)|solv(?:es|ed)|help(?:s|ed)|resolv(?:es|ed)"
            r"|cures?d?|did the trick|made it work|makes it work|got rid|gets rid|stops the|stopped the)\b",
        ),
        (
            3.4,
            r"\bto (?:fix|solve|resolve|work around|get around|avoid) (?:this|it|that|the)\b"
            r"|\bno longer (?:fails?|crash(?:es)?|happens?|occurs?|leaks?|hangs?|times? out|breaks?)\b|\bworks? (?:now|again)\b"
            r"|\bgoes away (?:if|when|after|once)\b",
        ),
        (
            3.4,
            r"\b(?:got|get|gets) rid of\b[^.!?\n]{1,60}\bby\b|\bwork(?:s|ed)? around (?:the|this|it|that)\b"
            r"|(?#from *ing)^\w+ing\b[^.!?\n]{1,60}\b(?:cut|reduced|halved|sped up|improved|brought|lowered|eliminated)\b",
        ),
        (2.4, r"\bsolution\b|\bpatched\b|\bsolved\b|\bresolved\b|\bmitigat\w+"),
    ),
    "conclusion": (
        (
            4.2,
            r"\bin conclusion\b|\bconclusions?\b|\bconcluded?\b|\blessons?(?: learn(?:ed|t))?\b|\bbottom line\b|\btake-?aways?\b"
            r"|\bto sum up\b|\bin summary\b|\bverdict\b|\bwe(?:'ve| have)? learn(?:ed|t)\b",
        ),
        (
            4.1,
            r"\bturn(?:s|ed) out\b|\broot cause\b|\b(?:was|were|is|are) (?:actually |really )?(?:caused|due|down) (?:by|to)\b"
            r"|\bthe (?:real )?(?:reason|culprit|cause)\b[^.!?\n]{0,40}\b(?:is|was|were|lies)\b",
        ),
        (
            3,
            r"\bthis (?:means|shows|proves|confirms|implies|tells us)\b"
            r"|\b(?:benchmarks?|measurements?|results?|tests?|data|profiling|numbers|experiments?|analysis)(?: clearly)? (?:shows?|showed"
            r"|proves?|proved|confirm(?:s|ed)?|indicates?)\b|\b(?:happen(?:s|ed)|occurred|was slow|came) because\b",
        ),
        (
            2,
            r"\b(?:therefore|hence|thus|consequently)\b|\bwhich is why\b|\boverall\b|\bafter all\b|\bwe (?:now )?know (?:that|why)\b",
        ),
    ),
    "discovery": (
        (
            3.8,
            r"\b(?:found|find|finding|figured) out\b|\bdiscover(?:ed|ies|ing)\b|^discovery\b|^til\b|\bstumbled (?:up)?on\b"
            r"|\buncovered\b|\bcame across\b|\bunearthed\b",
        ),
        (
            3.2,
            r"\b(?:noticed|reali[sz]ed|spotted|observed|learned) (?:that|how|why|an?|the|in)\b"
            r"|\b(?:i|we)(?:'ve)? (?:just )?found (?:that|an?|the|in|two|three|several)\b|\bdigging (?:in|into|around)\b"
            r"|^found (?:that|an?|the|some|two)\b",
        ),
        (2, r"^(?:it )?looks like\b"),
        (1.6, r"\binteresting(?:ly)?\b|\bundocumented\b"),
    ),
    "decision": (
        (
            4,
            r"\b(?:decided|opted|elected|resolved) (?:to|on|against|for|that|not)\b"
            r"|\b(?:agreed|settled|standardi[sz]ed) (?:\w+ )?(?:on|to|that)\b|\bdecisions?\b(?:\W+\w+){0,3}?\W*(?::| is| was| to)"
            r"|\bit(?:'s| is| was) decided\b|\bvoted (?:for|to|against)\b"
            r"|\bended up (?:choosing|using|with|going|picking|keeping|dropping)\b",
        ),
        (
            3.8,
            rf"\b(?:we|i|they|team)(?:'ll| will| shall| are going to|'(?:re|m) going to)(?: now| just| simply"
            rf"| not| no longer)* {_DO}\b|\blet'?s (?:just )?(?:go (?:with|for)|settle|{_DO})\b",
        ),
        (
            3.8,
            r"\b(?:chose|chosen|choosing|picked|selected|went with|going with|go with|went for|preferred)\b[^.!?\n]{1,60}\b(?:over"
            r"|instead|rather than|because|as (?:the|our)|for)\b"
            r"|\b(?:we|i|they|team)(?:'ve| have)? (?:chose|chosen|picked|selected|adopted|committed)\b"
            r"|\b(?:we|i|they)(?:'re| are)? (?:went|going) with\b",
        ),
        (
            3.6,
            r"\b(?:switch|migrat|mov|chang|transition)(?:ed|es|e|ing) (?:\w+ ){0,4}?(?:from|off|away from|over to)\b"
            r"|\bswitched (?:\w+ ){0,3}to\b"
            r"|\b(?:replaced|replacing|swapped|ditched|dropped) [^.!?\n]{1,40} (?:with|for|by|in favou?r)\b|\bin favou?r of\b",
        ),
        # Who gives the reason tells of a choice.
        (
            3.4,
            r"\bwe (?:now )?(?:use|run|keep|store|write|host|deploy|build|ship|test|cache|log|sign|pin)\b[^.!?\n]{3,80}\b(?:because|so that)\b",
        ),
        (
            3,
            r"(?:^|\b(?:we|i|they|team|has been|have) )(?:rejected|ruled out|abandoned|discarded|turned down"
            r"|dropped the (?:idea|plan))\b|\b(?:the )?plan is to\b|(?#with it)^\S+ it is\b|\bfrom now on\b"
            r"|\bgoing forward\b"
            r"|\bwe(?:'re| are) (?:using|keeping|dropping|sticking|moving|standardi[sz]ing|staying)\b|\badopted\b"
            r"|\bwill be (?:used|replaced|moved|stored|written|hosted|built|deprecated)\b",
        ),
        (1.2, r"\binstead of\b|\brather than\b|\bapproved\b"),
    ),
    "preference": (
        (
            4,
            r"\b(?:i|we)(?:'d| would| do)?(?: really| strongly| much| generally| usually| always)? (?:prefer"
            r"|rather|hate|dislike|love|can'?t stand)\b"
            rf"|(?#with prefer|prefers|{_LIKES})\b(?:user|team|client|customer|boss|she|he|they|[a-z]\w+) (?:strongly |really )?"
            rf"(?:prefers?|{_LIKES})\b"
            r"|\bmy (?:preferred|favou?rite|preference)\b|^prefer\b|\bwould rather\b",
        ),
        (
            3.7,
            r"\bplease (?:don'?t|do not|always|never|use|keep|avoid|stop|make sure|stick|answer|write|reply)\b|^(?:always|never)\b"
            r"|(?<=[.!] )(?:always|never) [a-z]+",
        ),
        (
            3.2,
            r"\b(?:always|never) (?:use|run|write|ask|add|include|put|format|keep|commit|name|sign|respond|reply"
            r"|answer|push|merge|touch|edit|mock|squash|start|end|amend|rebase|skip|leave|log|return|hard-?code)\b",
        ),
        (
            2.8,
            r"^(?:don'?t|do not|avoid|stop) \w+|\bpreferences?\b|\bprefer(?:red|s|ably)?\b"
            r"|\bi(?:'d)? (?:like|want) (?:my|it|the|you|all|to|short|small|things|code|tests|answers)\b"
            r"|\bi don'?t (?:like|want)\b|^no \w+(?: \w+)? (?:in|on|for|at|please)\b"
            r"|\b(?:messages|names|files|functions|tests|comments|answers|branches|commits|replies) should (?:be|have|use|start|end"
            r"|not)\b",
        ),
        (2.6, r"\bplease[.!]?$|^(?:answer|reply|respond|write|speak|talk) (?:in|with|to)\b"),
        (1.4, r"^(?:use|keep|write|make|stick to)\b"),
    ),
    "problem": (
        (
            5,
            r"\btraceback \(most recent call last\)|(?#with at)^\s+at [\w$.<>]+ ?\(.{1,200}:\d+"
            r"|^panic: |\bcore dumped\b|\bsegmentation fault\b",
        ),
        (
            3.4,
            r"\bfail(?:s|ed|ing) (?:with|on|when|if|to|because|in|after|for|every|at|intermittently|randomly)\b"
            r"|\bcrash(?:es|ed|ing)?\b|\b(?:does|do|did)(?:n'?t| not) (?:work|start|build|compile|load|respond|scale)\b"
            r"|\bnot working\b|\bdead-?locks?\b|\bsegfaults?\b|(?#from *error|*exception)\b\w*(?:error|exception): ",
        ),
        (
            2.9,
            r"\bbugs?\b|\bbroken\b|\bbreaks?\b|\bbroke\b|\bflaky\b|\btim(?:es|ed|ing) out\b"
            r"|\bregression\b(?! (?:tests?|suite|passe[sd]))|\bout of memory\b|\boom\b|\bmemory leak\b|\bleaks?\b|\bhangs?\b"
            r"|\bstuck\b|\bunable to\b|\brefuses to\b|\brace condition\b|\bpanics?\b|\bdoes nothing\b|\b(?:permission|access) denied\b"
            r"|\bconnection (?:refused|reset)\b|\bno such file\b|\b(?:is|gets?|was|are|were|got) killed\b",
        ),
        (
            2.2,
            r"\bfail(?:s|ed|ing)\b|\ban? (?:\w+ )?(?:error|exception|issue|problem) (?:in|with|when|on|if)\b|\bthrows\b"
            r"|\bcorrupt(?:s|ed|ion)?\b|\bthe (?:problem|issue|trouble|bug)\b"
            r"|\bcan(?:not|'t) (?:be|connect|find|open|load|build|reach|log|parse)\b|\breturns? (?:an? )?(?:http )?[45]\d\d\b"
            r"|\bexit(?:s|ed)? (?:with )?(?:code|status) [1-9]|\bloses?\b|\bstopped working\b"
            r"|\b(?:way|far|much) too \w+|\b(?:been|is|went|turned) red\b|\bstale\b",
        ),
        (
            1.25,
            r"\bproblems?\b|\bfailures?\b|\bwrong(?:ly)?\b|\berrors?\b|\bexceptions?\b|\bissues?\b"
            r"|\btoo (?:slow|large|big|many|long)\b|\bmissing\b|\bincorrect(?:ly)?\b",
        ),
    ),
    "domain": (
        (
            4,
            r"\b(?:domain|business) (?:terms?|rules?|logic|concepts?|language|model|object)\b"
            r"|\bin our (?:domain|terminology|vocabulary|jargon|business|industry)\b|\bglossary\b|\bubiquitous language\b",
        ),
        (
            3.2,
            r"\bis defined as\b|\bstands for\b|\bis short for\b|\brefers? to\b|\b(?:is|are) what we call\b|\bwe call\b"
            r"|\bis called an?\b|^(?:an?|the) [\"“`']?[\w-]+[\"”`']?(?: [\w-]+)? means\b|\bby [\"“`']?\w+[\"”`']?,? we mean\b",
        ),
    ),
    "pattern": (
        (
            4,
            r"\bby convention\b|\bconventions?\b|\bnaming (?:scheme|rule|convention)s?\b"
            r"|\b(?:design|repository|factory|observer|adapter|singleton|strategy|builder|saga|outbox|decorator) pattern\b"
            r"|\bpattern (?:we|used|here|is|for)\b|\bidioms?\b|\brule of thumb\b|\bcoding style\b",
        ),
        (
            2.8,
            r"\b(?:every|all|each) (?:new |of our |our |public |of the )?[\w-]+(?: [\w-]+)? (?:must|should|is"
            r"|are|returns?|inherits?|extends?|follows?|goes|go|lives?|uses?|takes?|starts?|ends?|gets?|has|have"
            r"|implements?|raises?|exposes?|shares?)\b|\bwe (?:always |usually )?(?:name|prefix|suffix|tag|group|version) "
            r"|\bfollows? the (?:same|usual|standard)\b|\bare (?:named|prefixed|suffixed|grouped)\b|\bare always \w+ed\b",
        ),
        (1.5, r"\bpatterns?\b"),
    ),
    "architecture": (
        (
            4,
            r"\b(?:system|overall|software|high-level|our|the) architecture\b|\barchitecture\b(?: is|:)|\barchitectural(?:ly)?\b"
            r"|\b(?:hexagonal|event[- ]driven|layered|three-tier|client[- ]server|microservices?|serverless|monolithic) (?:architecture"
            r"|design|system|style)\b",
        ),
        (
            3,
            r"\bsits? (?:in front of|behind|between|on top of)\b|\b(?:consists?|composed|made up|built up) of\b"
            r"|\b(?:is|are) (?:split|divided|organi[sz]ed|structured|layered) (?:into|as|in|across)\b"
            r"|\b(?:requests?|data|events?|messages?|traffic|calls?) (?:first )?(?:go(?:es)?|flows?|pass(?:es)?"
            r"|travels?|enters?|are routed|is routed) (?:from|through|to|into|via|in)\b",
        ),
        (
            2.6,
            r"\bdata ?flow\b|\b(?:talks?|communicates?|connects?|speaks?) (?:to|with) [^.!?\n]{1,60}? (?:over|via|through|by)\b"
            r"|\b(?:micro-?services?|monolith)\b|\btopology\b|\bfans? out to\b|\bsingle source of truth\b"
            r"|(?#with layers)\b(?:two|three|four|five|\d) layers\b",
        ),
        (1.2, r"\blayers?\b|\bpipeline\b"),
    ),
    "component": (
        (
            3.6,
            rf"\bis responsible for\b"
            rf"|\b{_PART}\b[^.!?\n]{{0,40}}\b(?:handles|manages|wraps|provides|implements|exposes|takes care of"
            rf"|parses|renders|validates|converts|encapsulates|orchestrates|schedules|serves)\b|^components?:",
        ),
        (
            2.6,
            rf"\bthe [\w./-]+ {_PART} (?:is|does|\w+s)\b|\bentry ?points?\b"
            rf"|\b(?:lives|is (?:defined|implemented|located)) in [`\w./-]+\.\w+"
            rf"|(?#with {_HANDLES})^[`\w.]+ (?:{_HANDLES}) ",
        ),
    ),
    "relationship": (
        (
            3.6,
            r"\breports? (?:directly )?to\b|\bdepends? (?:up)?on\b|\bworks? (?:with|for|at|alongside|under)\b|\bbelongs? to\b"
            r"|\bis (?:owned|maintained|managed|led|run|written) by\b"
            r"|\bis (?:the |an? )?(?:\w+ )?(?:owner|maintainer|manager|lead|leader|head|parent|successor|author"
            r"|member|sister|brother|wife|husband|colleague|boss|friend|founder|fork|subclass|subset|superset"
            r"|replacement|dependency|contact) (?:of|for)\b"
            rf"|(?#with {_KIN})'s (?:{_KIN}) is\b",
        ),
        (
            3.2,
            rf"(?#with {_OWNS})^[\w'@.-]+(?: [\w'-]+){{0,2}} (?:{_OWNS})\b"
            r"|\b(?:is|are) part of\b|\bcollaborates? with\b"
            r"|\binherits? from\b|\brel(?:y|ies) (?:up)?on\b|\b(?:consumes|subscribes to|publishes to|is consumed by)\b",
        ),
    ),
    "context": (
        (
            3.4,
            r"^(?:context|background|fyi|for context|status)\b|\b(?:currently|presently|now) (?:working|busy|in the middle)\b"
            r"|\b(?:we|i)(?:'re| are|'m| am) (?:currently |now |still )?(?:working on|looking at"
            r"|in the middle of|about to)\b",
        ),
    ),
    "fact": (
        (1.4, rf"(?#with {_STATES})\b\w+ (?:{_STATES})\b"),
        (
            1.4,
            r"(?#from we|they|i|you|all|both|*s)\b(?:we|they|i|you|all|both|\w+s) (?:use|run|have|store|keep|own|live|support"
            r"|require|need|speak|expire|start|return|accept|come|cost|contain|hold) ",
        ),
    ),
}
