"""What the project is made from: one finding per manifest, and one per kind of technology that was chosen.

A dependency by itself is no news; that the API is built with FastAPI is. `NOTABLE` says which names are worth a sentence
and what the sentence says. Versions of tools that only developers need are left out, because they change every week.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bethink.ingest.analyze.ecosystems import Dependency, Manifest, manifests
from bethink.ingest.analyze.prose import clip, listed, unique
from bethink.ingest.analyze.tree import Finding, Tree, finding, folder_of
from bethink.types import Entity

MOST_MANIFESTS = 10
MOST_CHOICES = 8

# What is chosen → how one says it, the kind, the importance; the sentences stand in the order of what matters most.
SENTENCES = {
    "web": ("The server side is built with {}", "architecture", 6.5),
    "frontend": ("The user interface is built with {}", "architecture", 6.5),
    "data": ("The database layer uses {}", "architecture", 6.5),
    "queue": ("Background jobs and messages go through {}", "architecture", 6.5),
    "api": ("The API speaks {}", "architecture", 6.0),
    "auth": ("Signing in and tokens rely on {}", "architecture", 6.0),
    "llm": ("Language models are used through {}", "architecture", 6.0),
    "cloud": ("Outside services are reached through {}", "fact", 5.0),
    "app": ("The application is packaged with {}", "architecture", 6.0),
    "cli": ("The command line is built with {}", "fact", 5.0),
    "science": ("Numerical work and machine learning use {}", "fact", 5.0),
    "test": ("Tests are written with {}", "pattern", 5.5),
}
# What a dependency's name stands for. `data` names the database where the driver gives it away.
_NOTABLE = {
    "web": """
        fastapi=FastAPI flask=Flask django=Django starlette=Starlette aiohttp=aiohttp tornado=Tornado sanic=Sanic litestar=Litestar
        pyramid=Pyramid bottle=Bottle falcon=Falcon djangorestframework=Django-REST-framework quart=Quart express=Express koa=Koa
        fastify=Fastify @nestjs/core=NestJS hono=Hono @hapi/hapi=hapi next=Next.js nuxt=Nuxt @remix-run/node=Remix
        @sveltejs/kit=SvelteKit astro=Astro gatsby=Gatsby github.com/gin-gonic/gin=Gin github.com/labstack/echo=Echo
        github.com/go-chi/chi=chi github.com/gofiber/fiber=Fiber github.com/gorilla/mux=gorilla/mux actix-web=Actix-Web axum=Axum
        rocket=Rocket warp=warp spring-boot-starter-web=Spring-MVC spring-boot-starter-webflux=Spring-WebFlux
        spring-boot-starter-parent=Spring-Boot org.springframework.boot=Spring-Boot io.quarkus=Quarkus quarkus-rest=Quarkus
        micronaut-http-server-netty=Micronaut ktor-server-core=Ktor rails=Ruby-on-Rails sinatra=Sinatra hanami=Hanami
        laravel/framework=Laravel symfony/framework-bundle=Symfony slim/slim=Slim phoenix=Phoenix Microsoft.AspNetCore=ASP.NET-Core
    """,
    "frontend": """
        react=React vue=Vue.js svelte=Svelte @angular/core=Angular solid-js=SolidJS preact=Preact lit=Lit ember-source=Ember
        htmx.org=htmx alpinejs=Alpine.js tailwindcss=Tailwind-CSS @mui/material=Material-UI @chakra-ui/react=Chakra-UI
        redux=Redux @reduxjs/toolkit=Redux-Toolkit zustand=Zustand @tanstack/react-query=TanStack-Query mobx=MobX pinia=Pinia
        three=Three.js d3=D3.js vite=Vite webpack=webpack streamlit=Streamlit gradio=Gradio leptos=Leptos yew=Yew
        phoenix_live_view=Phoenix-LiveView livewire/livewire=Livewire turbo-rails=Hotwire
    """,
    "data": """
        sqlalchemy=SQLAlchemy sqlmodel=SQLModel tortoise-orm=Tortoise-ORM peewee=Peewee alembic=Alembic asyncpg=PostgreSQL-(asyncpg)
        psycopg=PostgreSQL-(psycopg) psycopg2=PostgreSQL-(psycopg2) psycopg2-binary=PostgreSQL-(psycopg2) pymysql=MySQL-(PyMySQL)
        mysqlclient=MySQL-(mysqlclient) pymongo=MongoDB-(PyMongo) motor=MongoDB-(Motor) redis=Redis aiosqlite=SQLite-(aiosqlite)
        apsw=SQLite-(apsw) duckdb=DuckDB elasticsearch=Elasticsearch opensearch-py=OpenSearch clickhouse-connect=ClickHouse
        neo4j=Neo4j pgvector=pgvector chromadb=Chroma qdrant-client=Qdrant faiss-cpu=FAISS lancedb=LanceDB pg=PostgreSQL-(pg)
        postgres=PostgreSQL-(postgres.js) mysql2=MySQL-(mysql2) better-sqlite3=SQLite-(better-sqlite3) sqlite3=SQLite mongodb=MongoDB
        mongoose=MongoDB-(Mongoose) ioredis=Redis-(ioredis) prisma=Prisma @prisma/client=Prisma typeorm=TypeORM
        sequelize=Sequelize drizzle-orm=Drizzle knex=Knex @elastic/elasticsearch=Elasticsearch @supabase/supabase-js=Supabase
        firebase=Firebase gorm.io/gorm=GORM github.com/jackc/pgx=PostgreSQL-(pgx) github.com/lib/pq=PostgreSQL-(pq)
        github.com/jmoiron/sqlx=sqlx github.com/redis/go-redis=Redis-(go-redis) github.com/mattn/go-sqlite3=SQLite
        go.mongodb.org/mongo-driver=MongoDB entgo.io/ent=ent diesel=Diesel sqlx=SQLx sea-orm=SeaORM rusqlite=SQLite-(rusqlite)
        tokio-postgres=PostgreSQL-(tokio-postgres) spring-boot-starter-data-jpa=Spring-Data-JPA hibernate-core=Hibernate
        postgresql=PostgreSQL mysql-connector-j=MySQL flyway-core=Flyway liquibase-core=Liquibase spring-boot-starter-data-redis=Redis
        spring-boot-starter-data-mongodb=MongoDB jooq=jOOQ activerecord=Active-Record doctrine/orm=Doctrine ecto_sql=Ecto
        postgrex=PostgreSQL-(Postgrex) Npgsql=PostgreSQL-(Npgsql) Npgsql.EntityFrameworkCore.PostgreSQL=PostgreSQL
        Microsoft.EntityFrameworkCore=Entity-Framework-Core Microsoft.EntityFrameworkCore.SqlServer=SQL-Server Dapper=Dapper
    """,
    "queue": """
        celery=Celery rq=RQ dramatiq=Dramatiq arq=arq huey=Huey kafka-python=Kafka confluent-kafka=Kafka aiokafka=Kafka pika=RabbitMQ
        aio-pika=RabbitMQ kombu=Kombu nats-py=NATS temporalio=Temporal apache-airflow=Airflow prefect=Prefect dagster=Dagster
        bull=Bull bullmq=BullMQ agenda=Agenda kafkajs=Kafka-(KafkaJS) amqplib=RabbitMQ-(amqplib) @temporalio/client=Temporal
        github.com/segmentio/kafka-go=Kafka github.com/IBM/sarama=Kafka-(Sarama) github.com/nats-io/nats.go=NATS
        github.com/rabbitmq/amqp091-go=RabbitMQ github.com/hibiken/asynq=Asynq rdkafka=Kafka lapin=RabbitMQ spring-kafka=Kafka
        spring-boot-starter-amqp=RabbitMQ sidekiq=Sidekiq resque=Resque good_job=GoodJob solid_queue=Solid-Queue oban=Oban
        MassTransit=MassTransit Hangfire=Hangfire
    """,
    "api": """
        graphql=GraphQL strawberry-graphql=GraphQL-(Strawberry) graphene=GraphQL-(Graphene) ariadne=GraphQL-(Ariadne)
        @apollo/server=GraphQL-(Apollo) type-graphql=GraphQL @trpc/server=tRPC grpcio=gRPC @grpc/grpc-js=gRPC google.golang.org/grpc=gRPC
        tonic=gRPC-(tonic) async-graphql=GraphQL github.com/99designs/gqlgen=GraphQL-(gqlgen) grpc-netty-shaded=gRPC socket.io=Socket.IO
        mcp=MCP @modelcontextprotocol/sdk=MCP fastmcp=MCP
    """,
    "auth": """
        pyjwt=JWT-(PyJWT) python-jose=JWT-(python-jose) authlib=Authlib django-allauth=django-allauth fastapi-users=fastapi-users
        passport=Passport next-auth=NextAuth.js @auth/core=Auth.js jsonwebtoken=JWT-(jsonwebtoken) @clerk/nextjs=Clerk
        @auth0/nextjs-auth0=Auth0 github.com/golang-jwt/jwt=JWT-(golang-jwt) github.com/coreos/go-oidc=OpenID-Connect
        spring-boot-starter-security=Spring-Security devise=Devise keycloak-js=Keycloak laravel/sanctum=Laravel-Sanctum
    """,
    "llm": """
        openai=OpenAI anthropic=Anthropic langchain=LangChain llama-index=LlamaIndex transformers=Hugging-Face-Transformers
        sentence-transformers=sentence-transformers vllm=vLLM litellm=LiteLLM ollama=Ollama
        @anthropic-ai/sdk=Anthropic @langchain/core=LangChain ai=Vercel-AI-SDK google-generativeai=Gemini pydantic-ai=PydanticAI
    """,
    "cloud": """
        boto3=AWS-(boto3) aioboto3=AWS aws-sdk=AWS @aws-sdk/client-s3=Amazon-S3 google-cloud-storage=Google-Cloud-Storage
        google-cloud-pubsub=Google-Pub/Sub azure-storage-blob=Azure-Blob-Storage stripe=Stripe twilio=Twilio sendgrid=SendGrid
        sentry-sdk=Sentry @sentry/node=Sentry @sentry/react=Sentry opentelemetry-sdk=OpenTelemetry prometheus-client=Prometheus
        github.com/aws/aws-sdk-go-v2=AWS github.com/prometheus/client_golang=Prometheus go.opentelemetry.io/otel=OpenTelemetry
        minio=MinIO firebase-admin=Firebase slack-sdk=Slack @slack/bolt=Slack
    """,
    "app": """
        electron=Electron @tauri-apps/api=Tauri tauri=Tauri react-native=React-Native expo=Expo @ionic/core=Ionic @capacitor/core=Capacitor
        flutter=Flutter pyqt5=Qt-(PyQt5) pyqt6=Qt-(PyQt6) pyside6=Qt-(PySide6) kivy=Kivy bevy=Bevy egui=egui
    """,
    "cli": """
        click=Click typer=Typer rich=Rich textual=Textual commander=Commander yargs=yargs oclif=oclif @oclif/core=oclif ink=Ink
        github.com/spf13/cobra=Cobra github.com/urfave/cli=urfave/cli github.com/charmbracelet/bubbletea=Bubble-Tea clap=clap
        ratatui=Ratatui picocli=picocli thor=Thor symfony/console=Symfony-Console
    """,
    "science": """
        numpy=NumPy onnxruntime=ONNX-Runtime pandas=pandas polars=Polars scipy=SciPy scikit-learn=scikit-learn torch=PyTorch tensorflow=TensorFlow jax=JAX
        xgboost=XGBoost lightgbm=LightGBM pyspark=Apache-Spark dask=Dask pyarrow=Apache-Arrow matplotlib=Matplotlib
    """,
    "test": """
        pytest=pytest hypothesis=Hypothesis nose2=nose2 playwright=Playwright pytest-playwright=Playwright selenium=Selenium locust=Locust
        jest=Jest vitest=Vitest mocha=Mocha ava=AVA cypress=Cypress @playwright/test=Playwright @testing-library/react=Testing-Library
        supertest=SuperTest msw=MSW storybook=Storybook github.com/stretchr/testify=testify github.com/onsi/ginkgo=Ginkgo
        testcontainers=Testcontainers junit-jupiter=JUnit-5 junit=JUnit spring-boot-starter-test=JUnit-with-Spring-Boot-Test mockito-core=Mockito
        assertj-core=AssertJ rspec=RSpec rspec-rails=RSpec minitest=Minitest capybara=Capybara phpunit/phpunit=PHPUnit pestphp/pest=Pest
        proptest=proptest criterion=Criterion rstest=rstest xunit=xUnit NUnit=NUnit
    """,
}


def _label(written: str) -> str:
    """`PostgreSQL-(tokio-postgres)` → `PostgreSQL (tokio-postgres)`: a name with a capital has blanks where a dash stands."""
    name, bracket, driver = written.partition("-(")
    return (name.replace("-", " ") if name[0].isupper() else name) + (
        f" ({driver}" if bracket else ""
    )


NOTABLE = {
    name.lower(): (choice, _label(label))
    for choice, names in _NOTABLE.items()
    for name, _, label in (entry.partition("=") for entry in names.split())
}


def analyze(tree: Tree) -> Iterator[Finding]:
    found = manifests(tree)
    yield from (_told(manifest) for manifest in _telling(found)[:MOST_MANIFESTS])
    yield from _choices(found)


def _telling(found: Sequence[Manifest]) -> list[Manifest]:
    """Manifests that say more than a name. A requirements file beside a manifest with the same dependencies repeats it."""
    told: list[Manifest] = []
    for manifest in found:
        names = {item.name.lower() for item in (*manifest.runtime, *manifest.development)}
        known = {
            item.name.lower()
            for other in told
            if other.language == manifest.language
            and folder_of(other.path) == folder_of(manifest.path)
            for item in (*other.runtime, *other.development)
        }
        if names - known or manifest.members:
            told.append(manifest)
    return told


def _told(manifest: Manifest) -> Finding:
    folder = folder_of(manifest.path)
    name = manifest.name or (folder.rsplit("/", 1)[-1] if folder else "")
    pieces = [f"{manifest.language} project{f' {name}' if name else ''} ({manifest.path})"]
    pieces[0] += (
        f": {clip(manifest.description, 200).rstrip('.')}." if manifest.description else "."
    )
    if manifest.requires:
        pieces.append(f"It needs {_runtime(manifest)}.")
    if manifest.builder:
        pieces.append(f"It is built with {manifest.builder}.")
    if manifest.runtime:
        pieces.append(
            f"Main dependencies: {listed([_constrained(item) for item in manifest.runtime], 16)}."
        )
    if manifest.development:
        pieces.append(
            f"For development and extras: {listed([item.name for item in manifest.development], 14)}."
        )
    if manifest.commands:
        pieces.append(f"It installs the command {listed(manifest.commands, 6)}.")
    if manifest.members:
        pieces.append(f"It is a workspace of {listed(manifest.members, 12)}.")
    lines = [item.line for item in (*manifest.runtime, *manifest.development)] or [1]
    return finding(
        manifest.path,
        (min(lines), max(lines)),
        "fact",
        "dependency",
        " ".join(pieces),
        importance=5.5 if "/" not in manifest.path else 4.5,
        confidence=1.0,
        section=f"{manifest.path} › dependencies",
        entities=[*([Entity(name, "project")] if name else []), *_technologies(manifest)],
    )


def _runtime(manifest: Manifest) -> str:
    plain = manifest.language in ("JavaScript", "TypeScript") or manifest.requires.startswith(
        ("edition", "net")
    )
    return manifest.requires if plain else f"{manifest.language} {manifest.requires}"


def _constrained(item: Dependency) -> str:
    constraint = item.constraint
    return (
        f"{item.name} {constraint}"
        if constraint and constraint != "*" and len(constraint) <= 24
        else item.name
    )


def _technologies(manifest: Manifest) -> Iterator[Entity]:
    labels = (NOTABLE.get(item.name.lower(), ("", ""))[1] for item in manifest.runtime)
    return (Entity(label.partition(" (")[0], "technology") for label in unique(labels)[:8])


def _choices(found: Sequence[Manifest]) -> Iterator[Finding]:
    """One sentence per kind of choice, each technology with the line that asks for it."""
    chosen: dict[str, dict[str, tuple[str, str, int]]] = {}
    for manifest in found:
        for item in (*manifest.runtime, *manifest.development):
            choice, label = NOTABLE.get(_plain_name(item.name), ("", ""))
            if choice and (choice == "test" or item in manifest.runtime or choice == "frontend"):
                chosen.setdefault(choice, {}).setdefault(
                    label, (item.name, manifest.path, item.line)
                )
    made = 0
    for choice, (words, kind, importance) in SENTENCES.items():
        named = chosen.get(choice, {})
        if named and made < MOST_CHOICES:
            made += 1
            labels = [
                f"{label} ({f'{path}:{line}' if name.lower() in label.lower() else f'{name}, {path}:{line}'})"
                for label, (name, path, line) in named.items()
            ]
            _, path, line = next(iter(named.values()))
            yield finding(
                path,
                line,
                kind,
                "dependency",
                words.format(listed(labels, 6)) + ".",
                importance=importance,
                section="Technology",
                entities=[
                    Entity(label.partition(" (")[0], "technology") for label in list(named)[:6]
                ],
                confidence=0.9,
            )


def _plain_name(name: str) -> str:
    """Go modules carry their major version in the path."""
    head, _, tail = name.lower().rpartition("/")
    return head if tail[:1] == "v" and tail[1:].isdecimal() else name.lower()
