"""A medium project as one meets it: a FastAPI backend, a React frontend, decisions, CI, containers. Path → text."""

from __future__ import annotations

SHOP: dict[str, str] = {
    "README.md": """
        <p align="center"><img src="logo.svg" width="200"></p>

        # Harbour

        [![CI](https://example.org/ci.svg)](https://example.org/ci) ![coverage](https://example.org/cov.svg)

        Harbour takes orders for ship supplies: chandlers offer goods per port, crews order them before they arrive.
        It is used by 40 chandlers in the Baltic.

        ## Getting started

        You need Docker and make.

        ```sh
        $ make setup
        $ make dev
        ```

        ## Project structure

        | folder | what |
        |---|---|
        | `backend/` | the API, in Python |
        | `web/` | the crew's app, in React |
        | `infra/` | Terraform for the two regions |

        ## Known issues

        - Orders placed within one second of each other may share a number in the PDF.
        - The port search does not know Russian names.

        > [!WARNING]
        > Never run `make seed` against staging: it truncates the orders table first.

        ## License

        MIT
    """,
    "docs/architecture.md": """
        # Architecture

        ## Overview

        Requests come in through the API, which writes events to RabbitMQ. Workers turn events into mails and PDFs.

        ## Why the outbox

        An order and its event are written in one transaction. A relay sends what is in the outbox, so no event is lost
        when the broker is down.
    """,
    "docs/guides/orders.md": "# Taking orders\n\nHow chandlers take orders.\n",
    "docs/guides/ports.md": "# Managing ports\n\nHow ports are managed.\n",
    "docs/adr/0001-record-decisions.md": """
        # 1. Record architecture decisions

        Date: 2023-01-10

        ## Status

        Accepted

        ## Context

        We need to remember why things are as they are.

        ## Decision

        We keep records as described by Michael Nygard.

        ## Consequences

        Every larger change comes with a record.
    """,
    "docs/adr/0002-sqlite.md": """
        # 2. SQLite for the start

        Date: 2023-01-12

        ## Status

        Accepted

        Superceded by [3. PostgreSQL](0003-postgresql.md)

        ## Context

        One server, one process.

        ## Decision

        We use SQLite.
    """,
    "docs/adr/0003-postgresql.md": """
        # 3. PostgreSQL

        Date: 2023-06-02

        ## Status

        Accepted

        Supercedes [2. SQLite for the start](0002-sqlite.md)

        ## Context

        A second region writes at the same time.

        ## Decision

        We use PostgreSQL with logical replication between the regions.

        ## Consequences

        Migrations have to be compatible with the version before.
    """,
    "docs/adr/template.md": "# N. Title\n\n## Status\n\nProposed\n",
    "Makefile": """
        .PHONY: setup dev test lint seed

        setup: ## install everything
        \tuv sync
        \tcd web && pnpm install

        dev:
        \tdocker compose up

        test: test-backend test-web

        test-backend:
        \tcd backend && pytest -q

        test-web:
        \tpnpm --dir web test

        lint:
        \truff check backend
        \tpnpm --dir web lint

        seed: ## fill the local database
        \tpython -m backend.seed
    """,
    ".github/workflows/ci.yml": """
        name: CI
        on:
          push:
            branches: [main]
          pull_request:
        jobs:
          test:
            runs-on: ubuntu-latest
            strategy:
              matrix:
                python: ["3.11", "3.12"]
            steps:
              - uses: actions/checkout@v4
              - run: make test
          lint:
            runs-on: ubuntu-latest
            steps:
              - run: make lint
    """,
    ".github/workflows/release.yml": """
        name: Release
        on:
          push:
            tags: ["v*"]
        jobs:
          image:
            runs-on: ubuntu-latest
            steps:
              - run: |
                  docker build -t harbour .
                  docker push registry.example.org/harbour
    """,
    "docker-compose.yml": """
        services:
          api:
            build: ./backend
            ports: ["8000:8000"]
            depends_on: [db, broker]
            environment:
              SECRET_KEY: not-to-be-remembered
          worker:
            build: ./backend
            depends_on:
              broker:
                condition: service_started
          web:
            build: ./web
          db:
            image: postgres:16
          broker:
            image: rabbitmq:3.13
    """,
    "backend/pyproject.toml": """
        [project]
        name = "harbour"
        description = "The API of Harbour"
        requires-python = ">=3.11"
        dependencies = [
          "fastapi>=0.110",
          "sqlalchemy[asyncio]>=2.0",
          "asyncpg",
          "aio-pika>=9; python_version > '3.10'",
          "stripe",
        ]

        [project.optional-dependencies]
        dev = ["pytest", "ruff", "hypothesis"]

        [project.scripts]
        harbour = "harbour.cli:main"
    """,
    "backend/Dockerfile": """
        FROM python:3.12-slim AS build
        RUN pip install uv
        FROM python:3.12-slim
        EXPOSE 8000
        CMD ["uvicorn", "harbour.main:app", "--host", "0.0.0.0"]
    """,
    "backend/harbour/__init__.py": """
        \"\"\"Orders for ship supplies.\"\"\"

        from harbour.orders.service import OrderError, place

        __all__ = ["OrderError", "place"]
    """,
    "backend/harbour/main.py": """
        \"\"\"The application: routers, middleware, start and stop.\"\"\"

        from fastapi import FastAPI

        from harbour.orders import router as orders

        app = FastAPI()
        app.include_router(orders.router, prefix="/api")


        @app.get("/health")
        def health(): ...
    """,
    "backend/harbour/cli.py": '"""The command line: users, ports, maintenance."""\n\n\ndef main(): ...\n',
    "backend/harbour/orders/__init__.py": '"""Taking and changing orders."""\n',
    "backend/harbour/orders/router.py": """
        from fastapi import APIRouter

        router = APIRouter(prefix="/orders")


        @router.get("")
        def list_orders(): ...


        @router.post("")
        def place_order(): ...


        @router.delete("/{number}")
        def cancel_order(number: int): ...
    """,
    "backend/harbour/orders/service.py": """
        \"\"\"What can be done with an order, and when it cannot.\"\"\"


        class OrderError(Exception):
            \"\"\"An order that cannot be placed, with the reason.\"\"\"


        def place(cart):
            \"\"\"Places an order. Writes the event into the outbox in the same transaction.\"\"\"
            # WARNING: the port's clock decides what "today" is. UTC gave Kaliningrad a day less,
            # and two ships left without water.
            return cart
    """,
    "backend/harbour/workers/__init__.py": "",
    "backend/harbour/workers/mail.py": '"""Sends the mails that orders cause."""\n',
    "backend/alembic/versions/0001_start.py": "",
    "backend/alembic/versions/0002_outbox.py": "",
    "backend/tests/test_orders.py": "def test_a(): ...\n",
    "backend/tests/test_ports.py": "def test_b(): ...\n",
    "backend/tests/test_mail.py": "def test_c(): ...\n",
    "web/package.json": """
        {
          "name": "harbour-web",
          "description": "The app that crews use on board",
          "packageManager": "pnpm@9.1.0",
          "engines": { "node": ">=20" },
          "scripts": {
            "dev": "vite",
            "build": "tsc && vite build",
            "test": "vitest run",
            "lint": "eslint src",
            "preview": "vite preview"
          },
          "dependencies": { "react": "^18.3.0", "@tanstack/react-query": "^5.0.0" },
          "devDependencies": { "typescript": "^5.4.0", "vite": "^5.2.0", "vitest": "^1.5.0" }
        }
    """,
    "web/Dockerfile": "FROM node:20\n",
    "web/.nvmrc": "20\n",
    ".python-version": "3.12\n",
    "infra/main.tf": 'resource "aws_s3_bucket" "files" {}\nresource "aws_db_instance" "main" {}\nresource "aws_db_instance" "other" {}\n',
}
