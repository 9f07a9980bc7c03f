"""Failures of many tools, worded from knowledge of the tools before it was known what the code shows for them."""

from case import Case, calls, edits, fails, hides, runs

CASES = (
    Case(
        "docker: the daemon is not up",
        (
            fails(
                "docker compose up -d",
                "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
            ),
            runs("which colima", "/opt/homebrew/bin/colima"),
            runs("colima start", 'time="2026-04-02T09:11:02+02:00" level=info msg=done'),
            runs("docker compose up -d", " Container shop-db-1  Started"),
        ),
        (
            fails(
                "docker build -t api:dev .",
                "ERROR: Cannot connect to the Docker daemon at unix:///Users/bo/.docker/run/docker.sock. Is the docker daemon running?",
            ),
        ),
        "colima start",
        (
            fails(
                "docker build -t api:dev .",
                "ERROR: failed to build: failed to solve: failed to read dockerfile: open Dockerfile: no such file or directory",
            ),
        ),
    ),
    Case(
        "docker: no right to the socket",
        (
            fails(
                "docker ps",
                'permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: Get "http://%2Fvar%2Frun%2Fdocker.sock/v1.47/containers/json": dial unix /var/run/docker.sock: connect: permission denied',
            ),
            runs("sudo docker ps", "CONTAINER ID   IMAGE     COMMAND"),
        ),
        (
            fails(
                "docker logs api --tail 50",
                'permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: Get "http://%2Fvar%2Frun%2Fdocker.sock/v1.47/containers/api/json": dial unix /var/run/docker.sock: connect: permission denied',
            ),
        ),
        "sudo docker",
        (fails("docker logs apii", "Error response from daemon: No such container: apii"),),
    ),
    Case(
        "docker: a service that is not running",
        (
            fails("docker compose exec web bash -lc 'ls'", 'service "web" is not running'),
            runs("docker compose up -d web", " Container shop-web-1  Started"),
            runs("docker compose exec web bash -lc 'ls'", "manage.py"),
        ),
        (
            fails(
                "docker compose exec -T web python manage.py migrate",
                'service "web" is not running',
            ),
        ),
        "docker compose up -d web",
        (fails("docker compose exec -T wbe python manage.py migrate", "no such service: wbe"),),
    ),
    Case(
        "docker: a container's name is taken",
        (
            fails(
                "docker run -d --name pg -p 5433:5432 postgres:16",
                'docker: Error response from daemon: Conflict. The container name "/pg" is already in use by container "3f2b8c6a9d10e4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6d7e8f9". You have to remove (or rename) that container to be able to reuse that name.\n\nRun \'docker run --help\' for more information',
            ),
            runs("docker rm -f pg", "pg"),
            runs("docker run -d --name pg -p 5433:5432 postgres:16", "8d7c6b5a4f3e"),
        ),
        (
            fails(
                "docker run -d --name pg -e POSTGRES_DB=shop postgres:17",
                'docker: Error response from daemon: Conflict. The container name "/pg" is already in use by container "9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a0b9c8d7e6f5a4b3c2d1e0f9a8b". You have to remove (or rename) that container to be able to reuse that name.\n\nRun \'docker run --help\' for more information',
            ),
        ),
        "docker rm -f pg",
        (
            fails(
                "docker run -d --name pg -p 5433:5432 postgres:17",
                "docker: Error response from daemon: driver failed programming external connectivity on endpoint pg: Bind for 0.0.0.0:5433 failed: port is already allocated\n\nRun 'docker run --help' for more information",
            ),
        ),
    ),
    Case(
        "docker: another architecture",
        (
            fails("docker run --rm api:dev", "exec /app/serve: exec format error"),
            runs(
                "docker build --platform linux/amd64 -t api:dev .",
                "naming to docker.io/library/api:dev done",
            ),
            runs("docker run --rm api:dev", "listening on :8080"),
        ),
        (fails("docker run --rm worker:dev ./worker --once", "exec ./worker: exec format error"),),
        "--platform linux/amd64",
        (
            fails(
                "docker run --rm api:dev",
                "panic: open /etc/shop/config.yaml: no such file or directory",
            ),
        ),
    ),
    Case(
        "python: the runner of the project",
        (
            fails("pytest -q", "bash: pytest: command not found"),
            runs("ls", "pyproject.toml uv.lock src tests"),
            runs("uv run pytest -q", "41 passed in 3.02s"),
        ),
        (
            fails("pytest tests/test_cart.py -x", "zsh: command not found: pytest"),
            hides("pytest tests/ 2>&1 | tail -20", "/bin/bash: line 1: pytest: command not found"),
        ),
        "uv run pytest",
        (
            fails(
                "uv run pytest tests/test_carts.py",
                "ERROR: file or directory not found: tests/test_carts.py\n\nno tests ran in 0.01s",
            ),
        ),
    ),
    Case(
        "python: a module of the project itself",
        (
            fails(
                "python scripts/seed.py",
                "Traceback (most recent call last):\n  File \"/home/ada/shop/scripts/seed.py\", line 4, in <module>\n    from shop.db import Session\nModuleNotFoundError: No module named 'shop'",
            ),
            runs("PYTHONPATH=src python scripts/seed.py", "seeded 40 rows"),
        ),
        (
            fails(
                "python scripts/report.py --month 3",
                "Traceback (most recent call last):\n  File \"/srv/t/shop/scripts/report.py\", line 9, in <module>\n    from shop.orders import by_month\nModuleNotFoundError: No module named 'shop'",
            ),
        ),
        "PYTHONPATH=src",
        (
            fails(
                "python scripts/report.py --month 3",
                "Traceback (most recent call last):\n  File \"/srv/t/shop/scripts/report.py\", line 2, in <module>\n    import pandas as pd\nModuleNotFoundError: No module named 'pandas'",
            ),
        ),
    ),
    Case(
        "python: a module whose package is called differently",
        (
            fails(
                "python tools/gen.py",
                "Traceback (most recent call last):\n  File \"/home/ada/shop/tools/gen.py\", line 3, in <module>\n    import yaml\nModuleNotFoundError: No module named 'yaml'",
            ),
            fails(
                "pip install yaml",
                "ERROR: Could not find a version that satisfies the requirement yaml (from versions: none)\nERROR: No matching distribution found for yaml",
            ),
            runs("pip install pyyaml", "Successfully installed pyyaml-6.0.2"),
            runs("python tools/gen.py", "written 12 files"),
        ),
        (
            fails(
                "pytest tests/test_gen.py -q",
                "tests/test_gen.py:2: in <module>\n    from tools import gen\ntools/gen.py:3: in <module>\n    import yaml\nE   ModuleNotFoundError: No module named 'yaml'\n=========================== short test summary info ============================\nERROR tests/test_gen.py\n!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!",
            ),
        ),
        "pip install pyyaml",
        (
            fails(
                "pytest tests/test_gen.py -q",
                "tests/test_gen.py:2: in <module>\n    import toml\nE   ModuleNotFoundError: No module named 'toml'\nERROR tests/test_gen.py\n!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!",
            ),
        ),
    ),
    Case(
        "django: settings from the environment",
        (
            fails(
                "python manage.py check",
                'Traceback (most recent call last):\n  File "/home/ada/shop/manage.py", line 22, in <module>\n    main()\ndjango.core.exceptions.ImproperlyConfigured: The SECRET_KEY setting must not be empty.',
            ),
            runs(
                "set -a; source .env; set +a; python manage.py check",
                "System check identified no issues (0 silenced).",
            ),
        ),
        (
            fails(
                "python manage.py makemigrations orders",
                'Traceback (most recent call last):\n  File "/srv/x/manage.py", line 22, in <module>\n    main()\ndjango.core.exceptions.ImproperlyConfigured: The SECRET_KEY setting must not be empty.',
            ),
        ),
        "source .env",
        (
            fails(
                "python manage.py makemigrations orders",
                "Traceback (most recent call last):\n  File \"/srv/x/manage.py\", line 22, in <module>\n    main()\ndjango.core.exceptions.ImproperlyConfigured: WSGI application 'shop.wsgi.application' could not be loaded; Error importing module.",
            ),
        ),
    ),
    Case(
        "postgres is not up",
        (
            fails(
                "python manage.py migrate",
                'django.db.utils.OperationalError: connection to server at "localhost" (127.0.0.1), port 5432 failed: Connection refused\n\tIs the server running on that host and accepting TCP/IP connections?',
            ),
            runs("docker compose ps", "NAME      IMAGE     STATUS"),
            runs("docker compose up -d postgres", " Container shop-postgres-1  Started"),
            runs("python manage.py migrate", "No migrations to apply."),
        ),
        (
            fails(
                "alembic current",
                'sqlalchemy.exc.OperationalError: (psycopg2.OperationalError) connection to server at "localhost" (::1), port 5432 failed: Connection refused\n\tIs the server running on that host and accepting TCP/IP connections?\n\n(Background on this error at: https://sqlalche.me/e/20/e3q8)',
            ),
            fails(
                "npm run e2e",
                "Error: connect ECONNREFUSED 127.0.0.1:5432\n    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1611:16)",
            ),
        ),
        "docker compose up -d postgres",
        (
            fails(
                "alembic current",
                'sqlalchemy.exc.OperationalError: (psycopg2.OperationalError) connection to server at "localhost" (::1), port 5432 failed: FATAL:  database "shop_test" does not exist',
            ),
        ),
    ),
    Case(
        "redis is not up",
        (
            fails(
                "pytest tests/test_queue.py",
                "E   redis.exceptions.ConnectionError: Error 111 connecting to localhost:6379. Connection refused.\nFAILED tests/test_queue.py::test_push - redis.exceptions.ConnectionError: Error 111 connecting to localhost:6379. Connection refused.\n1 failed in 1.2s",
            ),
            runs("redis-server --daemonize yes", "Configuration loaded"),
            runs("pytest tests/test_queue.py", "4 passed in 0.9s"),
        ),
        (
            fails(
                "pytest tests/test_worker.py -q",
                "E   redis.exceptions.ConnectionError: Error 61 connecting to localhost:6379. Connection refused.\nFAILED tests/test_worker.py::test_retry - redis.exceptions.ConnectionError: Error 61 connecting to localhost:6379. Connection refused.\n3 failed in 1.9s",
            ),
            fails(
                "node scripts/drain.js",
                "Error: connect ECONNREFUSED 127.0.0.1:6379\n    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1611:16)",
            ),
        ),
        "redis-server --daemonize yes",
        (
            fails(
                "node scripts/drain.js",
                "Error: connect ECONNREFUSED 127.0.0.1:9200\n    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1611:16)",
            ),
        ),
    ),
    Case(
        "alembic: behind",
        (
            fails(
                "alembic revision --autogenerate -m 'add plan'",
                "INFO  [alembic.runtime.migration] Context impl PostgresqlImpl.\nERROR [alembic.util.messaging] Target database is not up to date.\nFAILED: Target database is not up to date.",
            ),
            runs(
                "alembic upgrade head",
                "INFO  [alembic.runtime.migration] Running upgrade a1b2c3d4 -> e5f6a7b8",
            ),
            runs(
                "alembic revision --autogenerate -m 'add plan'",
                "Generating versions/9c0d_add_plan.py ...  done",
            ),
        ),
        (
            fails(
                "alembic revision --autogenerate -m 'add coupons'",
                "INFO  [alembic.runtime.migration] Context impl PostgresqlImpl.\nERROR [alembic.util.messaging] Target database is not up to date.\nFAILED: Target database is not up to date.",
            ),
        ),
        "alembic upgrade head",
        (
            fails(
                "alembic revision --autogenerate -m 'add coupons'",
                "INFO  [alembic.runtime.migration] Context impl PostgresqlImpl.\nERROR [alembic.util.messaging] Can't locate revision identified by '77aa88bb'\nFAILED: Can't locate revision identified by '77aa88bb'",
            ),
        ),
    ),
    Case(
        "pytest: coroutines",
        (
            fails(
                "pytest -q tests/test_api.py",
                "FAILED tests/test_api.py::test_get - Failed: async def functions are not natively supported.\n2 failed in 0.31s",
            ),
            runs("cat pyproject.toml", "[project]\nname = 'shop'"),
            runs("pip install pytest-asyncio", "Successfully installed pytest-asyncio-0.25.0"),
            edits(
                "pyproject.toml",
                '[tool.pytest.ini_options] → [tool.pytest.ini_options]\nasyncio_mode = "auto"',
            ),
            runs("pytest -q tests/test_api.py", "2 passed in 0.40s"),
        ),
        (
            fails(
                "pytest tests/test_stream.py",
                "FAILED tests/test_stream.py::test_chunks - Failed: async def functions are not natively supported.\n5 failed in 0.52s",
            ),
        ),
        "pytest-asyncio",
    ),
    Case(
        "pytest: fixtures of another folder",
        (
            fails(
                "pytest api/tests/test_users.py",
                "E       fixture 'db_session' not found\n>       available fixtures: cache, capfd, capsys, tmp_path\n/home/ada/shop/api/tests/test_users.py:8\n1 error in 0.09s",
            ),
            runs("cd api && pytest tests/test_users.py", "9 passed in 1.0s"),
        ),
        (
            fails(
                "pytest api/tests/test_orders.py -k total",
                "E       fixture 'db_session' not found\n>       available fixtures: cache, capfd, capsys, tmp_path\n/srv/w/api/tests/test_orders.py:31\n1 error in 0.11s",
            ),
        ),
        "api",
        (
            fails(
                "cd api && pytest tests/test_orders.py",
                "E       fixture 'coupon' not found\n>       available fixtures: cache, capfd, db_session, tmp_path\n/srv/w/api/tests/test_orders.py:44\n1 error in 0.11s",
            ),
        ),
    ),
    Case(
        "mypy: packages without types",
        (
            fails(
                "mypy src",
                'src/shop/tasks.py:3: error: Skipping analyzing "celery": module is installed, but missing library stubs or py.typed marker  [import-untyped]\nsrc/shop/tasks.py:3: note: See https://mypy.readthedocs.io/en/stable/running_mypy.html#missing-imports\nFound 1 error in 1 file (checked 40 source files)',
            ),
            edits(
                "pyproject.toml",
                '[tool.mypy] → [[tool.mypy.overrides]]\nmodule = ["celery.*"]\nignore_missing_imports = true\n\n[tool.mypy]',
            ),
            runs("mypy src", "Success: no issues found in 40 source files"),
        ),
        (
            fails(
                "mypy src tests",
                'src/shop/mail.py:7: error: Skipping analyzing "boto3": module is installed, but missing library stubs or py.typed marker  [import-untyped]\nsrc/shop/mail.py:7: note: See https://mypy.readthedocs.io/en/stable/running_mypy.html#missing-imports\nFound 1 error in 1 file (checked 61 source files)',
            ),
        ),
        "pyproject.toml",
        (
            fails(
                "mypy src",
                'src/shop/mail.py:19: error: Argument 1 to "send" has incompatible type "int"; expected "str"  [arg-type]\nFound 1 error in 1 file (checked 61 source files)',
            ),
        ),
    ),
    Case(
        "ruff: a rule that configuration settles",
        (
            fails(
                "ruff check src",
                "src/shop/routes.py:14:30: B008 Do not perform function call `Depends` in argument defaults; instead, perform the call within the function, or read the default from a module-level singleton variable\nFound 1 error.",
            ),
            edits(
                "ruff.toml",
                '[lint] → [lint.flake8-bugbear]\nextend-immutable-calls = ["fastapi.Depends"]\n\n[lint]',
            ),
            runs("ruff check src", "All checks passed!"),
        ),
        (
            fails(
                "ruff check .",
                "src/shop/admin.py:22:41: B008 Do not perform function call `Query` in argument defaults; instead, perform the call within the function, or read the default from a module-level singleton variable\nFound 1 error.",
            ),
        ),
        "ruff.toml",
        (
            fails(
                "ruff check .",
                "src/shop/admin.py:3:8: F401 `os` imported but unused\nFound 1 error.",
            ),
        ),
    ),
    Case(
        "eslint: a file outside of the projects",
        (
            fails(
                "npx eslint scripts/seed.ts",
                "/home/ada/shop/scripts/seed.ts\n  0:0  error  Parsing error: ESLint was configured to run on `<tsconfigRootDir>/scripts/seed.ts` using `parserOptions.project`: <tsconfigRootDir>/tsconfig.json\nHowever, that TSConfig does not include this file\n\n✖ 1 problem (1 error, 0 warnings)",
            ),
            edits("tsconfig.eslint.json", '"include": ["src"] → "include": ["src", "scripts"]'),
            runs("npx eslint scripts/seed.ts"),
        ),
        (
            fails(
                "npm run lint",
                "/home/bo/w/e2e/cart.ts\n  0:0  error  Parsing error: ESLint was configured to run on `<tsconfigRootDir>/e2e/cart.ts` using `parserOptions.project`: <tsconfigRootDir>/tsconfig.json\nHowever, that TSConfig does not include this file\n\n✖ 1 problem (1 error, 0 warnings)",
            ),
        ),
        "tsconfig.eslint.json",
        (
            fails(
                "npm run lint",
                "/home/bo/w/src/cart.ts\n  9:7  error  'name' is assigned a value but never used  @typescript-eslint/no-unused-vars\n\n✖ 1 problem (1 error, 0 warnings)",
            ),
        ),
    ),
    Case(
        "cargo: the formatter",
        (
            fails(
                "cargo fmt --check",
                "Diff in /home/ada/shop/src/main.rs:12:\n-    let a=1;\n+    let a = 1;",
            ),
            runs("cargo fmt"),
            runs("cargo fmt --check"),
        ),
        (
            fails(
                "cargo fmt --all -- --check",
                "Diff in /srv/w/src/cart/mod.rs:88:\n-fn total( ){}\n+fn total() {}",
            ),
        ),
        "cargo fmt",
    ),
    Case(
        "clippy: a lint that is allowed here",
        (
            fails(
                "cargo clippy -- -D warnings",
                "error: this function has too many arguments (9/7)\n  --> src/pay.rs:40:1\n   |\n40 | pub fn charge(\n   = help: for further information visit https://rust-lang.github.io/rust-clippy/master/index.html#too_many_arguments\n   = note: `-D clippy::too-many-arguments` implied by `-D warnings`\nerror: could not compile `shop` (lib) due to 1 previous error",
            ),
            edits(
                "src/pay.rs",
                "pub fn charge( → #[allow(clippy::too_many_arguments)]\npub fn charge(",
            ),
            runs("cargo clippy -- -D warnings", "Finished `dev` profile"),
        ),
        (
            fails(
                "cargo clippy --all-targets -- -D warnings",
                "error: this function has too many arguments (8/7)\n  --> src/mail.rs:9:1\n   |\n9 | pub fn send(\n   = help: for further information visit https://rust-lang.github.io/rust-clippy/master/index.html#too_many_arguments\n   = note: `-D clippy::too-many-arguments` implied by `-D warnings`\nerror: could not compile `shop` (lib) due to 1 previous error",
            ),
        ),
        "too_many_arguments",
        (
            fails(
                "cargo clippy -- -D warnings",
                "error: redundant clone\n  --> src/mail.rs:31:20\n   = help: for further information visit https://rust-lang.github.io/rust-clippy/master/index.html#redundant_clone\nerror: could not compile `shop` (lib) due to 1 previous error",
            ),
        ),
    ),
    Case(
        "go: embedded files that a build makes",
        (
            fails(
                "go test ./...",
                "internal/web/embed.go:8:12: pattern dist/*: no matching files found\nFAIL\tshop/cmd/server [setup failed]\nok  \tshop/internal/cart\t0.012s\nFAIL",
            ),
            runs("cat Makefile", "web:\n\tcd ui && npm run build"),
            runs("make web", "✓ built in 2.1s"),
            runs("go test ./...", "ok  \tshop/cmd/server\t0.30s"),
        ),
        (
            fails(
                "go build -o /tmp/server ./cmd/server",
                "internal/web/embed.go:11:12: pattern dist/*: no matching files found",
            ),
        ),
        "make web",
        (fails("go build ./cmd/server", "cmd/server/main.go:9:2: undefined: config.Load"),),
    ),
    Case(
        "go: no compiler for C",
        (
            fails(
                "go build ./...",
                '# runtime/cgo\ncgo: C compiler "gcc" not found: exec: "gcc": executable file not found in $PATH',
            ),
            runs("CGO_ENABLED=0 go build ./..."),
        ),
        (
            fails(
                "go test ./internal/...",
                '# runtime/cgo\ncgo: C compiler "gcc" not found: exec: "gcc": executable file not found in $PATH\nFAIL\tshop/internal/cart [build failed]',
            ),
        ),
        "CGO_ENABLED=0",
    ),
    Case(
        "golangci-lint: a version",
        (
            fails(
                "golangci-lint run",
                "Error: can't load config: unsupported version of the configuration: \"2\" See https://golangci-lint.run/product/migration-guide for migration instructions\nThe command is terminated due to an error: can't load config",
            ),
            runs("golangci-lint --version", "golangci-lint has version v1.64.8"),
            runs("go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@latest"),
            runs("golangci-lint run", "0 issues."),
        ),
        (
            fails(
                "make lint",
                'golangci-lint run --timeout 5m\nError: can\'t load config: unsupported version of the configuration: "2" See https://golangci-lint.run/product/migration-guide for migration instructions\nmake: *** [Makefile:31: lint] Error 3',
            ),
        ),
        "golangci-lint/v2",
        (
            fails(
                "make lint",
                "golangci-lint run --timeout 5m\ninternal/cart/cart.go:41:2: ineffectual assignment to err (ineffassign)\n1 issues:\nmake: *** [Makefile:31: lint] Error 1",
            ),
        ),
    ),
    Case(
        "cargo: a library of the system",
        (
            fails(
                "cargo build",
                'error: linking with `cc` failed: exit status: 1\n  = note: /usr/bin/ld: cannot find -lpq: No such file or directory\n          collect2: error: ld returned 1 exit status\nerror: could not compile `shop` (bin "shop") due to 1 previous error',
            ),
            runs("apt-get install -y libpq-dev", "Setting up libpq-dev (16.4-1) ..."),
            runs("cargo build", "Finished `dev` profile [unoptimized + debuginfo]"),
        ),
        (
            fails(
                "cargo test -p api",
                'error: linking with `cc` failed: exit status: 1\n  = note: /usr/bin/ld: cannot find -lpq: No such file or directory\n          collect2: error: ld returned 1 exit status\nerror: could not compile `api` (test "orders") due to 1 previous error',
            ),
        ),
        "libpq-dev",
        (
            fails(
                "cargo test -p api",
                'error: linking with `cc` failed: exit status: 1\n  = note: /usr/bin/ld: cannot find -lsodium: No such file or directory\n          collect2: error: ld returned 1 exit status\nerror: could not compile `api` (test "orders") due to 1 previous error',
            ),
        ),
    ),
    Case(
        "cargo: a build script's library",
        (
            fails(
                "cargo build --release",
                "error: failed to run custom build command for `openssl-sys v0.9.99`\n\nCaused by:\n  process didn't exit successfully: `/home/ada/shop/target/release/build/openssl-sys-1b2c3d4e5f607182/build-script-main` (exit status: 101)\n  --- stderr\n  Could not find directory of OpenSSL installation, and this `-sys` crate cannot\n  proceed without this knowledge.",
            ),
            runs(
                "sudo apt-get install -y pkg-config libssl-dev",
                "Setting up libssl-dev:amd64 (3.0.13-0ubuntu3) ...",
            ),
            runs("cargo build --release", "Finished `release` profile [optimized]"),
        ),
        (
            fails(
                "cargo check",
                "error: failed to run custom build command for `openssl-sys v0.9.104`\n\nCaused by:\n  process didn't exit successfully: `/srv/w/target/debug/build/openssl-sys-99aabbccddeeff00/build-script-main` (exit status: 101)\n  --- stderr\n  Could not find directory of OpenSSL installation, and this `-sys` crate cannot\n  proceed without this knowledge.",
            ),
        ),
        "libssl-dev",
        (
            fails(
                "cargo check",
                "error: failed to run custom build command for `prost-build v0.13.1`\n\nCaused by:\n  process didn't exit successfully: `/srv/w/target/debug/build/prost-build-99aabbccddeeff00/build-script-build` (exit status: 101)\n  --- stderr\n  Could not find `protoc`.",
            ),
        ),
    ),
    Case(
        "cargo: queries without a database",
        (
            fails(
                "cargo check",
                'error: error communicating with database: Connection refused (os error 111)\n  --> src/orders.rs:18:5\n   |\n18 |     sqlx::query!("select 1")\nerror: could not compile `shop` (lib) due to 1 previous error',
            ),
            runs("ls .sqlx", "query-0a1b.json"),
            runs("SQLX_OFFLINE=true cargo check", "Finished `dev` profile"),
        ),
        (
            fails(
                "cargo test --lib orders",
                "error: error communicating with database: Connection refused (os error 111)\n  --> src/coupons.rs:44:9\n   |\n44 |     sqlx::query_as!(\nerror: could not compile `shop` (lib test) due to 3 previous errors",
            ),
        ),
        "SQLX_OFFLINE=true",
    ),
    Case(
        "node: an old bundler and a new OpenSSL",
        (
            fails(
                "npm run build",
                "> shop@1.0.0 build\n> react-scripts build\n\nError: error:0308010C:digital envelope routines::unsupported\n    at new Hash (node:internal/crypto/hash:79:19)\n  opensslErrorStack: [ 'error:03000086:digital envelope routines::initialization error' ],\n  code: 'ERR_OSSL_EVP_UNSUPPORTED'",
            ),
            runs("NODE_OPTIONS=--openssl-legacy-provider npm run build", "Compiled successfully."),
        ),
        (
            fails(
                "yarn start",
                "yarn run v1.22.22\n$ react-scripts start\nError: error:0308010C:digital envelope routines::unsupported\n    at new Hash (node:internal/crypto/hash:71:19)\n  code: 'ERR_OSSL_EVP_UNSUPPORTED'\nerror Command failed with exit code 1.",
            ),
        ),
        "--openssl-legacy-provider",
        (
            fails(
                "yarn start",
                "yarn run v1.22.22\n$ react-scripts start\nFailed to compile.\n\n./src/App.js\nModule not found: Can't resolve './Cart' in '/srv/w/src'\nerror Command failed with exit code 1.",
            ),
        ),
    ),
    Case(
        "node: the wrong version",
        (
            fails(
                "yarn install",
                'yarn install v1.22.22\nerror shop@1.0.0: The engine "node" is incompatible with this module. Expected version ">=22". Got "18.19.0"\nerror Found incompatible module.',
            ),
            runs(
                "source ~/.nvm/nvm.sh && nvm use 22 && yarn install",
                "Now using node v22.11.0\nDone in 9.81s.",
            ),
        ),
        (
            fails(
                "yarn add zod",
                'yarn add v1.22.22\nerror shop@1.4.0: The engine "node" is incompatible with this module. Expected version ">=22". Got "20.10.0"\nerror Found incompatible module.',
            ),
        ),
        "nvm use 22",
        (
            fails(
                "yarn add zodd",
                'yarn add v1.22.22\nerror Couldn\'t find package "zodd" on the "npm" registry.',
            ),
        ),
    ),
    Case(
        "node: memory",
        (
            fails(
                "npx tsc -b",
                "<--- Last few GCs --->\n[91244:0x7f8] 40211 ms: Mark-Compact 2046.1 (2082.9) -> 2045.2 (2083.1) MB\nFATAL ERROR: Ineffective mark-compacts near heap limit Allocation failed - JavaScript heap out of memory\n----- Native stack trace -----\nAborted (core dumped)",
            ),
            runs("NODE_OPTIONS=--max-old-space-size=8192 npx tsc -b"),
        ),
        (
            fails(
                "pnpm build",
                "> shop@1.0.0 build\n> vite build\n<--- Last few GCs --->\n[1203:0x55d] 61002 ms: Scavenge 4041.0 (4129.1) -> 4039.9 (4130.0) MB\nFATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n ELIFECYCLE  Command failed.",
            ),
        ),
        "--max-old-space-size=8192",
    ),
    Case(
        "npm: peers",
        (
            fails(
                "npm install",
                'npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree\nnpm error\nnpm error While resolving: shop@1.0.0\nnpm error Found: react@19.0.0\nnpm error node_modules/react\nnpm error Could not resolve dependency:\nnpm error peer react@"^18.0.0" from react-flow@11.1.0',
            ),
            runs("npm install --legacy-peer-deps", "added 812 packages in 14s"),
        ),
        (
            fails(
                "npm install -D @storybook/react",
                'npm error code ERESOLVE\nnpm error ERESOLVE could not resolve\nnpm error\nnpm error While resolving: @storybook/addon-a@7.6.1\nnpm error Found: react@19.1.0\nnpm error node_modules/react\nnpm error Could not resolve dependency:\nnpm error peer react@"^16 || ^17" from @storybook/addon-a@7.6.1',
            ),
        ),
        "--legacy-peer-deps",
        (
            fails(
                "npm install -D @storybook/reakt",
                "npm error code E404\nnpm error 404 Not Found - GET https://example.org/@storybook%2freakt - Not found",
            ),
        ),
    ),
    Case(
        "pnpm: a frozen lock file",
        (
            fails(
                "pnpm install --frozen-lockfile",
                ' ERR_PNPM_OUTDATED_LOCKFILE  Cannot install with "frozen-lockfile" because pnpm-lock.yaml is not up to date with <ROOT>/package.json\n\n  Failure reason:\n  specifiers in the lockfile don\'t match specifiers in package.json:\n* 1 dependencies were added: zod@^3.23.0',
            ),
            runs("pnpm install --no-frozen-lockfile", "Done in 4.1s"),
        ),
        (
            fails(
                "CI=1 pnpm install",
                ' ERR_PNPM_OUTDATED_LOCKFILE  Cannot install with "frozen-lockfile" because pnpm-lock.yaml is not up to date with <ROOT>/packages/api/package.json\n\n  Failure reason:\n  specifiers in the lockfile don\'t match specifiers in package.json:\n* 2 dependencies were removed: got@^14.0.0, ky@^1.0.0',
            ),
        ),
        "--no-frozen-lockfile",
        (
            fails(
                "pnpm install", " ERR_PNPM_FETCH_404  GET https://example.org/zodd: Not Found - 404"
            ),
        ),
    ),
    Case(
        "pnpm: the root of a workspace",
        (
            fails(
                "pnpm add -D vitest",
                " ERR_PNPM_ADDING_TO_ROOT  Running this command will add the dependency to the workspace root, which might not be what you want",
            ),
            runs("pnpm add -D vitest -w", "Done in 3.3s"),
        ),
        (
            fails(
                "pnpm add zod",
                " ERR_PNPM_ADDING_TO_ROOT  Running this command will add the dependency to the workspace root, which might not be what you want",
            ),
        ),
        "-w",
    ),
    Case(
        "workspace: the checker of a package",
        (
            fails(
                "npx tsc --noEmit",
                "                This is not the tsc command you are looking for                 \n\nTo get access to the TypeScript compiler, tsc, from the command line either:",
            ),
            runs("ls", "package.json packages pnpm-workspace.yaml"),
            runs("pnpm --filter web exec tsc --noEmit"),
        ),
        (
            fails(
                "npx tsc -p packages/web --noEmit",
                "                This is not the tsc command you are looking for                 \n\nTo get access to the TypeScript compiler, tsc, from the command line either:",
            ),
        ),
        "--filter web",
        (
            fails(
                "pnpm --filter web exec tsc --noEmit",
                "src/cart.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.",
            ),
        ),
    ),
    Case(
        "workspace: a package that is not built",
        (
            fails(
                "pnpm --filter web exec tsc --noEmit",
                "src/cart.ts(1,23): error TS2307: Cannot find module '@shop/core' or its corresponding type declarations.",
            ),
            runs("pnpm --filter @shop/core build", "Done"),
            runs("pnpm --filter web exec tsc --noEmit"),
        ),
        (
            fails(
                "pnpm --filter admin typecheck",
                "> admin@1.0.0 typecheck\n> tsc --noEmit\n\nsrc/pages/orders.tsx(4,30): error TS2307: Cannot find module '@shop/core' or its corresponding type declarations.\n ELIFECYCLE  Command failed with exit code 2.",
            ),
        ),
        "pnpm --filter @shop/core build",
        (
            fails(
                "pnpm --filter admin typecheck",
                "> admin@1.0.0 typecheck\n> tsc --noEmit\n\nsrc/pages/orders.tsx(4,30): error TS2307: Cannot find module './ordres' or its corresponding type declarations.\n ELIFECYCLE  Command failed with exit code 2.",
            ),
        ),
    ),
    Case(
        "jest: a package that is an ES module",
        (
            fails(
                "npx jest src/id.test.ts",
                "FAIL src/id.test.ts\n  ● Test suite failed to run\n\n    Jest encountered an unexpected token\n\n    /home/ada/shop/node_modules/nanoid/index.browser.js:1\n    SyntaxError: Cannot use import statement outside a module",
            ),
            edits(
                "jest.config.js",
                "testEnvironment: 'node', → testEnvironment: 'node',\n  transformIgnorePatterns: ['node_modules/(?!(nanoid)/)'],",
            ),
            runs("npx jest src/id.test.ts", "Tests: 3 passed, 3 total"),
        ),
        (
            fails(
                "npm test -- src/cart.test.ts",
                "> jest src/cart.test.ts\n\nFAIL src/cart.test.ts\n  ● Test suite failed to run\n\n    Jest encountered an unexpected token\n\n    /srv/w/node_modules/p-limit/index.js:1\n    SyntaxError: Cannot use import statement outside a module",
            ),
        ),
        "jest.config.js",
        (
            fails(
                "npm test -- src/cart.test.ts",
                "> jest src/cart.test.ts\n\nFAIL src/cart.test.ts\n  ● adds\n\n    expect(received).toBe(expected)\n    Expected: 3\n    Received: 2",
            ),
        ),
    ),
    Case(
        "e2e: the page is not served",
        (
            fails(
                "npx playwright test cart",
                "  1) [chromium] › e2e/cart.spec.ts:5:1 › adds an item\n    Error: page.goto: net::ERR_CONNECTION_REFUSED at http://localhost:4173/\n  1 failed",
            ),
            runs("npm run preview &", "➜  Local:   http://localhost:4173/"),
            runs("npx playwright test cart", "  1 passed (2.9s)"),
        ),
        (
            fails(
                "npx playwright test login --project=chromium",
                "  1) [chromium] › e2e/login.spec.ts:9:1 › signs in\n    Error: page.goto: net::ERR_CONNECTION_REFUSED at http://localhost:4173/login\n  1 failed",
            ),
        ),
        "npm run preview",
        (
            fails(
                "npx playwright test login",
                "  1) [chromium] › e2e/login.spec.ts:9:1 › signs in\n    Error: Timed out 5000ms waiting for expect(locator).toBeVisible()\n  1 failed",
            ),
        ),
    ),
    Case(
        "vite: a strict port",
        (
            fails(
                "npm run dev",
                "> shop@1.0.0 dev\n> vite --strictPort\n\nerror when starting dev server:\nError: Port 5173 is already in use\n    at Server.onError (file:///home/ada/shop/node_modules/vite/dist/node/chunks/dep-1a2b3c4d.js:45596:18)",
            ),
            runs("npm run dev -- --port 5180", "➜  Local:   http://localhost:5180/"),
        ),
        (
            fails(
                "pnpm run dev",
                "> shop@1.3.0 dev\n> vite --strictPort\n\nerror when starting dev server:\nError: Port 5173 is already in use\n    at Server.onError (file:///srv/w/node_modules/vite/dist/node/chunks/dep-9f8e7d6c.js:45596:18)",
            ),
        ),
        "--port 5180",
    ),
    Case(
        "uvicorn: a port in use",
        (
            fails(
                "uvicorn shop.main:app",
                "INFO:     Started server process [4121]\nERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 8000): address already in use",
            ),
            runs("fuser -k 8000/tcp", "8000/tcp: 3981"),
            runs("uvicorn shop.main:app", "INFO:     Uvicorn running on http://127.0.0.1:8000"),
        ),
        (
            fails(
                "uvicorn shop.main:app --reload",
                "INFO:     Will watch for changes in these directories: ['/srv/w']\nERROR:    [Errno 48] Address already in use",
            ),
            fails(
                "python -m uvicorn shop.main:app --workers 2",
                "INFO:     Started parent process [9002]\nERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 8000): address already in use",
            ),
        ),
        "fuser -k 8000/tcp",
        (
            fails(
                "uvicorn shop.man:app",
                'ERROR:    Error loading ASGI app. Could not import module "shop.man".',
            ),
        ),
    ),
    Case(
        "git: a protected branch",
        (
            fails(
                "git push origin main",
                "remote: error: GH006: Protected branch update failed for refs/heads/main.\nremote: error: Changes must be made through a pull request.\nTo github.com:ada/shop.git\n ! [remote rejected] main -> main (protected branch hook declined)\nerror: failed to push some refs to 'github.com:ada/shop.git'",
            ),
            runs("git checkout -b chore/bump", "Switched to a new branch 'chore/bump'"),
            runs("git push -u origin chore/bump", " * [new branch]      chore/bump -> chore/bump"),
        ),
        (
            fails(
                "git push",
                "remote: error: GH006: Protected branch update failed for refs/heads/main.\nremote: error: Changes must be made through a pull request.\nTo github.com:ada/shop.git\n ! [remote rejected] main -> main (protected branch hook declined)\nerror: failed to push some refs to 'github.com:ada/shop.git'",
            ),
        ),
        "chore/bump",
        (
            fails(
                "git push origin chore/x",
                "To github.com:ada/shop.git\n ! [rejected]        chore/x -> chore/x (non-fast-forward)\nerror: failed to push some refs to 'github.com:ada/shop.git'",
            ),
        ),
    ),
    Case(
        "git: a hook before a push",
        (
            fails(
                "git push -u origin feat/plan",
                "╭───────────────────────────────────────╮\n│ 🥊 lefthook v1.7.2  hook: pre-push │\n╰───────────────────────────────────────╯\n✗ generated types are out of date (src/gql/types.ts)\nsummary: (done in 3.21 seconds)\n🥊  typecheck\nerror: failed to push some refs to 'github.com:ada/shop.git'",
            ),
            runs("cat lefthook.yml", "pre-push:\n  commands:\n    typecheck:"),
            runs("pnpm codegen", "✔ Generate outputs"),
            runs("git commit -am 'chore: types'", "[feat/plan 1a2b3c4] chore: types"),
            runs("git push -u origin feat/plan", " * [new branch]      feat/plan -> feat/plan"),
        ),
        (
            fails(
                "git push",
                "╭───────────────────────────────────────╮\n│ 🥊 lefthook v1.7.4  hook: pre-push │\n╰───────────────────────────────────────╯\n✗ generated types are out of date (src/gql/types.ts)\nsummary: (done in 2.90 seconds)\n🥊  typecheck\nerror: failed to push some refs to 'github.com:ada/shop.git'",
            ),
        ),
        "pnpm codegen",
        (
            fails(
                "git push",
                "╭───────────────────────────────────────╮\n│ 🥊 lefthook v1.7.4  hook: pre-push │\n╰───────────────────────────────────────╯\nsrc/cart.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.\nsummary: (done in 2.90 seconds)\n🥊  typecheck\nerror: failed to push some refs to 'github.com:ada/shop.git'",
            ),
        ),
    ),
    Case(
        "git: the form of a message",
        (
            fails(
                "git commit -m 'round totals'",
                "⧗   input: round totals\n✖   subject may not be empty [subject-empty]\n✖   type may not be empty [type-empty]\n\n✖   found 2 problems, 0 warnings\nhusky - commit-msg script failed (code 1)",
            ),
            runs("git commit -m 'fix: round totals'", "[fix/cart 9a8b7c6] fix: round totals"),
        ),
        (
            fails(
                "git commit -m 'Add the coupon field'",
                "⧗   input: Add the coupon field\n✖   subject may not be empty [subject-empty]\n✖   type may not be empty [type-empty]\n\n✖   found 2 problems, 0 warnings\nhusky - commit-msg script failed (code 1)",
            ),
        ),
        "fix: round totals",
        (
            fails(
                "git commit -m 'fix: coupons'",
                "✖ eslint --fix --max-warnings 0:\n\n/srv/w/src/a.ts\n  1:7  error  'a' is assigned a value but never used  no-unused-vars\nhusky - pre-commit script failed (code 1)",
            ),
        ),
    ),
    Case(
        "git: signatures",
        (
            fails(
                "git commit -m 'fix: x'",
                "error: gpg failed to sign the data:\n[GNUPG:] KEY_CONSIDERED 0A1B2C3D4E5F60718293A4B5C6D7E8F901234567 2\n[GNUPG:] BEGIN_SIGNING H8\n[GNUPG:] PINENTRY_LAUNCHED 8123\ngpg: signing failed: Inappropriate ioctl for device\n\nfatal: failed to write commit object",
            ),
            runs("git commit --no-gpg-sign -m 'fix: x'", "[main 0f1e2d3] fix: x"),
        ),
        (
            fails(
                "git commit --amend --no-edit",
                "error: gpg failed to sign the data:\n[GNUPG:] KEY_CONSIDERED 0A1B2C3D4E5F60718293A4B5C6D7E8F901234567 2\n[GNUPG:] BEGIN_SIGNING H8\n[GNUPG:] PINENTRY_LAUNCHED 9555\ngpg: signing failed: Inappropriate ioctl for device\n\nfatal: failed to write commit object",
            ),
        ),
        "--no-gpg-sign",
    ),
    Case(
        "git: a lock that was left behind",
        (
            fails(
                "git add -A",
                "fatal: Unable to create '/home/ada/shop/.git/index.lock': File exists.\n\nAnother git process seems to be running in this repository, e.g.\nan editor opened by 'git commit'. Please make sure all processes\nare terminated then try again.",
            ),
            runs("ps aux", "ada 812 bash"),
            runs("rm -f .git/index.lock"),
            runs("git add -A"),
        ),
        (
            fails(
                "git commit -m 'fix: y'",
                "fatal: Unable to create '/srv/w/.git/worktrees/cart/index.lock': File exists.\n\nAnother git process seems to be running in this repository, e.g.\nan editor opened by 'git commit'. Please make sure all processes\nare terminated then try again.",
            ),
        ),
        "index.lock",
    ),
    Case(
        "git: changes before a rebase",
        (
            fails(
                "git pull --rebase",
                "error: cannot pull with rebase: You have unstaged changes.\nerror: Please commit or stash them.",
            ),
            runs("git pull --rebase --autostash", "Applied autostash."),
        ),
        (
            fails(
                "git pull --rebase origin main",
                "error: cannot pull with rebase: You have unstaged changes.\nerror: Please commit or stash them.",
            ),
        ),
        "--autostash",
        (
            fails(
                "git pull --rebase origin main",
                "CONFLICT (content): Merge conflict in src/cart.ts\nerror: could not apply 1a2b3c4... fix: totals",
            ),
        ),
    ),
    Case(
        "git: the name of the main branch",
        (
            fails(
                "git log main..HEAD --oneline",
                "fatal: ambiguous argument 'main..HEAD': unknown revision or path not in the working tree.\nUse '--' to separate paths from revisions, like this:\n'git <command> [<revision>...] -- [<file>...]'",
            ),
            runs("git log master..HEAD --oneline", "9a8b7c6 fix: totals"),
        ),
        (
            fails(
                "git diff main...HEAD --stat",
                "fatal: ambiguous argument 'main...HEAD': unknown revision or path not in the working tree.\nUse '--' to separate paths from revisions, like this:\n'git <command> [<revision>...] -- [<file>...]'",
            ),
        ),
        "master",
        (
            fails(
                "git diff v1.9...HEAD --stat",
                "fatal: ambiguous argument 'v1.9...HEAD': unknown revision or path not in the working tree.\nUse '--' to separate paths from revisions, like this:\n'git <command> [<revision>...] -- [<file>...]'",
            ),
        ),
    ),
    Case(
        "gh: a token that may not",
        (
            fails(
                "gh pr create --fill",
                "pull request create failed: GraphQL: Resource not accessible by personal access token (createPullRequest)",
            ),
            runs("gh auth status", "github.com: Logged in (GH_TOKEN)"),
            runs("unset GH_TOKEN && gh pr create --fill", "https://github.com/ada/shop/pull/71"),
        ),
        (
            fails(
                "gh pr comment 71 --body 'done'",
                "GraphQL: Resource not accessible by personal access token (addComment)",
            ),
        ),
        "unset GH_TOKEN",
        (
            fails(
                "gh pr comment 710 --body 'done'",
                "GraphQL: Could not resolve to a PullRequest with the number of 710. (repository.pullRequest)",
            ),
        ),
    ),
    Case(
        "gh: the base of pull requests",
        (
            fails(
                "gh pr create --title 'Plans' --body x",
                "pull request create failed: GraphQL: No commits between main and feat/plan (createPullRequest)",
            ),
            runs(
                "gh pr create --base develop --title 'Plans' --body x",
                "https://github.com/ada/shop/pull/80",
            ),
        ),
        (
            fails(
                "gh pr create --fill",
                "pull request create failed: GraphQL: No commits between main and fix/coupons (createPullRequest)",
            ),
        ),
        "--base develop",
        (
            fails(
                "gh pr create --fill",
                "pull request create failed: GraphQL: A pull request already exists for ada:fix/coupons. (createPullRequest)",
            ),
        ),
    ),
    Case(
        "gh: logs of a run that goes on",
        (
            fails(
                "gh run view 9120011 --log-failed",
                "run 9120011 is still in progress; logs will be available when it is complete",
            ),
            runs("gh run watch 9120011 --exit-status", "✓ main CI · 9120011"),
            runs("gh run view 9120011 --log-failed", ""),
        ),
        (
            fails(
                "gh run view 9345222 --log",
                "run 9345222 is still in progress; logs will be available when it is complete",
            ),
        ),
        "gh run watch",
        (
            fails(
                "gh run view 93452229 --log",
                "failed to get run: HTTP 404: Not Found (https://api.github.com/repos/ada/shop/actions/runs/93452229?exclude_pull_requests=true)",
            ),
        ),
    ),
    Case(
        "gh: remotes it does not know",
        (
            fails(
                "gh pr list",
                "none of the git remotes configured for this repository point to a known GitHub host. To tell gh about a new GitHub host, please use `gh auth login`",
            ),
            runs("git remote -v", "origin\thttp://local_proxy@127.0.0.1:4100/git/ada/shop (fetch)"),
            runs("gh pr list -R ada/shop", "80\tPlans\tfeat/plan"),
        ),
        (
            fails(
                "gh issue view 12",
                "none of the git remotes configured for this repository point to a known GitHub host. To tell gh about a new GitHub host, please use `gh auth login`",
            ),
        ),
        "-R ada/shop",
    ),
    Case(
        "gh: a label that is not there",
        (
            fails(
                "gh issue create -t 'Cache' -b x --label infra",
                "could not add label: 'infra' not found",
            ),
            runs("gh label create infra --color 0e8a16", '✓ Label "infra" created in ada/shop'),
            runs(
                "gh issue create -t 'Cache' -b x --label infra",
                "https://github.com/ada/shop/issues/90",
            ),
        ),
        (fails("gh pr create --fill --label infra", "could not add label: 'infra' not found"),),
        "gh label create infra",
        (fails("gh pr create --fill --label urgent", "could not add label: 'urgent' not found"),),
    ),
    Case(
        "aws: a session that ended",
        (
            fails(
                "aws s3 ls s3://shop-assets",
                "An error occurred (ExpiredToken) when calling the ListObjectsV2 operation: The provided token has expired.",
            ),
            runs("aws sso login --profile dev", "Successfully logged into Start URL"),
            runs("aws s3 ls s3://shop-assets", "PRE img/"),
        ),
        (
            fails(
                "aws logs tail /shop/api --since 1h",
                "An error occurred (ExpiredToken) when calling the FilterLogEvents operation: The provided token has expired.",
            ),
        ),
        "aws sso login --profile dev",
        (
            fails(
                "aws s3 ls s3://shop-private",
                "An error occurred (AccessDenied) when calling the ListObjectsV2 operation: Access Denied",
            ),
        ),
    ),
    Case(
        "kubectl: no configuration",
        (
            fails(
                "kubectl get pods",
                "The connection to the server localhost:8080 was refused - did you specify the right host or port?",
            ),
            runs(
                "export KUBECONFIG=./kubeconfig.dev && kubectl get pods",
                "NAME    READY\napi-0   1/1",
            ),
        ),
        (
            fails(
                "kubectl apply -f k8s/",
                'error: error validating "k8s/api.yaml": error validating data: failed to download openapi: Get "http://localhost:8080/openapi/v2?timeout=32s": dial tcp 127.0.0.1:8080: connect: connection refused',
            ),
            fails(
                "kubectl logs api-0",
                "The connection to the server localhost:8080 was refused - did you specify the right host or port?",
            ),
        ),
        "KUBECONFIG=./kubeconfig.dev",
        (
            fails(
                "kubectl apply -f k8s/",
                "error: error parsing k8s/api.yaml: error converting YAML to JSON: yaml: line 12: mapping values are not allowed in this context",
            ),
        ),
    ),
    Case(
        "kubectl: the namespace",
        (
            fails(
                "kubectl logs api-7d9f8b6c5-x2x4z",
                'Error from server (NotFound): pods "api-7d9f8b6c5-x2x4z" not found',
            ),
            runs("kubectl logs api-7d9f8b6c5-x2x4z -n shop", "listening"),
        ),
        (
            fails(
                "kubectl describe pod worker-5c6d7e8f9-abcde",
                'Error from server (NotFound): pods "worker-5c6d7e8f9-abcde" not found',
            ),
        ),
        "-n shop",
        (
            fails(
                "kubectl get crd carts.shop.io",
                'Error from server (NotFound): customresourcedefinitions.apiextensions.k8s.io "carts.shop.io" not found',
            ),
        ),
    ),
    Case(
        "terraform: a lock",
        (
            fails(
                "terraform apply -auto-approve",
                "╷\n│ Error: Error acquiring the state lock\n│ \n│ Error message: ConditionalCheckFailedException: The conditional request failed\n│ Lock Info:\n│   ID:        9db590f1-b6fe-c5f2-2678-8804f089deba\n│   Who:       ada@mba\n╵",
            ),
            runs(
                "terraform force-unlock -force 9db590f1-b6fe-c5f2-2678-8804f089deba",
                "Terraform state has been successfully unlocked!",
            ),
            runs("terraform apply -auto-approve", "Apply complete!"),
        ),
        (
            fails(
                "terraform plan",
                "╷\n│ Error: Error acquiring the state lock\n│ \n│ Error message: ConditionalCheckFailedException: The conditional request failed\n│ Lock Info:\n│   ID:        11223344-5566-7788-99aa-bbccddeeff00\n│   Who:       bo@x1\n╵",
            ),
        ),
        "terraform force-unlock",
        (
            fails(
                "terraform plan",
                '╷\n│ Error: Unsupported argument\n│ \n│   on main.tf line 12, in resource "aws_s3_bucket" "a":\n│   12:   acll = "private"\n╵',
            ),
        ),
    ),
    Case(
        "gradle: the version of Java",
        (
            fails(
                "./gradlew build",
                "FAILURE: Build failed with an exception.\n\n* What went wrong:\nBUG! exception in phase 'semantic analysis' in source unit '_BuildScript_' Unsupported class file major version 65\n\n* Try:\n> Run with --stacktrace option to get the stack trace.\n\nBUILD FAILED in 1s",
            ),
            runs("ls /usr/lib/jvm", "java-17-openjdk-amd64 java-21-openjdk-amd64"),
            runs(
                "JAVA_HOME=/usr/lib/jvm/java-17-openjdk-amd64 ./gradlew build",
                "BUILD SUCCESSFUL in 41s",
            ),
        ),
        (
            fails(
                "./gradlew :api:test --tests OrdersTest",
                "FAILURE: Build failed with an exception.\n\n* What went wrong:\nBUG! exception in phase 'semantic analysis' in source unit '_BuildScript_' Unsupported class file major version 65\n\n* Try:\n> Run with --stacktrace option to get the stack trace.\n\nBUILD FAILED in 2s",
            ),
        ),
        "java-17",
        (
            fails(
                "./gradlew :api:test",
                "> Task :api:compileJava FAILED\n/srv/w/api/src/main/java/shop/Orders.java:14: error: cannot find symbol\n  symbol:   class Coupon\n1 error\n\nFAILURE: Build failed with an exception.\n\n* What went wrong:\nExecution failed for task ':api:compileJava'.\n> Compilation failed; see the compiler error output for details.\n\nBUILD FAILED in 2s",
            ),
        ),
    ),
    Case(
        "maven: a module that is not installed",
        (
            fails(
                "mvn -pl api test",
                "[ERROR] Failed to execute goal on project api: Could not resolve dependencies for project com.shop:api:jar:1.2.0-SNAPSHOT\n[ERROR] dependency: com.shop:core:jar:1.2.0-SNAPSHOT (compile)\n[ERROR] \tCould not find artifact com.shop:core:jar:1.2.0-SNAPSHOT in snapshots (https://example.org/snapshots)\n[ERROR] -> [Help 1]",
            ),
            runs("mvn -pl core -am install -DskipTests", "[INFO] BUILD SUCCESS"),
            runs("mvn -pl api test", "[INFO] BUILD SUCCESS"),
        ),
        (
            fails(
                "mvn -pl worker verify",
                "[ERROR] Failed to execute goal on project worker: Could not resolve dependencies for project com.shop:worker:jar:1.3.0-SNAPSHOT\n[ERROR] dependency: com.shop:core:jar:1.3.0-SNAPSHOT (compile)\n[ERROR] \tCould not find artifact com.shop:core:jar:1.3.0-SNAPSHOT in snapshots (https://example.org/snapshots)\n[ERROR] -> [Help 1]",
            ),
        ),
        "mvn -pl core",
        (
            fails(
                "mvn -pl worker verify",
                "[ERROR] Tests run: 12, Failures: 1, Errors: 0, Skipped: 0\n[ERROR] Failed to execute goal org.apache.maven.plugins:maven-surefire-plugin:3.2.5:test (default-test) on project worker: There are test failures.\n[ERROR] -> [Help 1]",
            ),
        ),
    ),
    Case(
        "bundler: headers of a gem",
        (
            fails(
                "bundle install",
                "Gem::Ext::BuildError: ERROR: Failed to build gem native extension.\n\nCan't find the 'libpq-fe.h header\n*** extconf.rb failed ***\n\nAn error occurred while installing pg (1.5.4), and Bundler cannot continue.",
            ),
            runs("bundle config build.pg --with-pg-config=/opt/homebrew/opt/libpq/bin/pg_config"),
            runs("bundle install", "Bundle complete! 44 Gemfile dependencies"),
        ),
        (
            fails(
                "bundle update pg",
                "Gem::Ext::BuildError: ERROR: Failed to build gem native extension.\n\nCan't find the 'libpq-fe.h header\n*** extconf.rb failed ***\n\nAn error occurred while installing pg (1.5.9), and Bundler cannot continue.",
            ),
        ),
        "build.pg",
        (
            fails(
                "bundle install",
                "Gem::Ext::BuildError: ERROR: Failed to build gem native extension.\n\nchecking for magic.h... no\n*** extconf.rb failed ***\n\nAn error occurred while installing ruby-filemagic (0.7.3), and Bundler cannot continue.",
            ),
        ),
    ),
    Case(
        "composer: an extension",
        (
            fails(
                "composer install",
                "Installing dependencies from lock file (including require-dev)\nYour lock file does not contain a compatible set of packages. Please run composer update.\n\n  Problem 1\n    - shop/money is locked to version 2.1.0 and an update of this package was not requested.\n    - shop/money 2.1.0 requires ext-intl * -> it is missing from your system. Install or enable PHP's intl extension.",
            ),
            runs(
                "composer install --ignore-platform-req=ext-intl",
                "Generating optimized autoload files",
            ),
        ),
        (
            fails(
                "composer require monolog/monolog",
                "./composer.json has been updated\nYour requirements could not be resolved to an installable set of packages.\n\n  Problem 1\n    - shop/money 2.1.0 requires ext-intl * -> it is missing from your system. Install or enable PHP's intl extension.",
            ),
        ),
        "--ignore-platform-req=ext-intl",
        (
            fails(
                "composer require shop/img",
                "./composer.json has been updated\nYour requirements could not be resolved to an installable set of packages.\n\n  Problem 1\n    - shop/img 1.0.0 requires ext-gd * -> it is missing from your system. Install or enable PHP's gd extension.",
            ),
        ),
    ),
    Case(
        "xcodebuild: a simulator",
        (
            fails(
                "xcodebuild test -scheme Shop -destination 'platform=iOS Simulator,name=iPhone 15'",
                "xcodebuild: error: Unable to find a device matching the provided destination specifier:\n\t\t{ platform:iOS Simulator, OS:latest, name:iPhone 15 }",
            ),
            runs("xcrun simctl list devices available", "iPhone 16 (A1B2) (Shutdown)"),
            runs(
                "xcodebuild test -scheme Shop -destination 'platform=iOS Simulator,name=iPhone 16'",
                "** TEST SUCCEEDED **",
            ),
        ),
        (
            fails(
                "xcodebuild build -scheme ShopKit -destination 'platform=iOS Simulator,name=iPhone 15' 2>&1",
                "xcodebuild: error: Unable to find a device matching the provided destination specifier:\n\t\t{ platform:iOS Simulator, OS:latest, name:iPhone 15 }",
            ),
        ),
        "iPhone 16",
        (
            fails(
                "xcodebuild test -scheme Shopp",
                'xcodebuild: error: The project named "Shop" does not contain a scheme named "Shopp".',
            ),
        ),
    ),
    Case(
        "cmake: a cache of another folder",
        (
            fails(
                "cmake -B build",
                "CMake Error: The current CMakeCache.txt directory /home/ada/shop/build/CMakeCache.txt is different than the directory /home/ada/old/build where CMakeCache.txt was created. This may result in binaries being created in the wrong place.",
            ),
            runs(
                "rm -rf build && cmake -B build",
                "-- Build files have been written to: /home/ada/shop/build",
            ),
        ),
        (
            fails(
                "cmake --build build",
                "CMake Error: The current CMakeCache.txt directory /srv/w/build/CMakeCache.txt is different than the directory /home/bo/shop/build where CMakeCache.txt was created. This may result in binaries being created in the wrong place.",
            ),
        ),
        "rm -rf build",
        (
            fails(
                "cmake -B build",
                'CMake Error at CMakeLists.txt:14 (find_package):\n  Could not find a package configuration file provided by "fmt"',
            ),
        ),
    ),
    Case(
        "sed on a Mac",
        (
            fails(
                "sed -i 's/v1/v2/' src/app.ts",
                "sed: 1: \"src/app.ts\": bad flag in substitute command: 'a'",
            ),
            runs("sed -i '' 's/v1/v2/' src/app.ts"),
        ),
        (
            fails(
                "sed -i 's/red/blue/g' src/theme.css",
                "sed: 1: \"src/theme.css\": bad flag in substitute command: 'h'",
            ),
        ),
        "sed -i ''",
    ),
    Case(
        "a program with another name here",
        (
            fails("timeout 60 npm test", "zsh: command not found: timeout"),
            runs("gtimeout 60 npm test", "Tests 40 passed"),
        ),
        (fails("timeout 30 cargo test", "(eval):1: command not found: timeout"),),
        "gtimeout",
        (fails("gtimeout 30 cargo tset", "error: no such command: `tset`"),),
    ),
    Case(
        "another program that does the same",
        (
            fails("rg -n 'totalPrice' src", "/bin/bash: line 1: rg: command not found"),
            runs("grep -rn 'totalPrice' src", "src/cart.ts:4:totalPrice"),
        ),
        (fails("rg coupon --type ts", "bash: rg: command not found"),),
        "grep -rn",
        (fails("rgb coupon", "bash: rgb: command not found"),),
    ),
    Case(
        "psql: who you are",
        (
            fails(
                "psql shop -c 'select 1'",
                'psql: error: connection to server on socket "/var/run/postgresql/.s.PGSQL.5432" failed: FATAL:  role "ada" does not exist',
            ),
            runs("psql -U postgres shop -c 'select 1'", "(1 row)"),
        ),
        (
            fails(
                "psql -d shop -f db/seed.sql",
                'psql: error: connection to server on socket "/tmp/.s.PGSQL.5432" failed: FATAL:  role "bo" does not exist',
            ),
        ),
        "-U postgres",
        (
            fails(
                "psql -U postgres -d shop -f db/seed.sql",
                'psql:db/seed.sql:3: ERROR:  relation "coupons" does not exist',
            ),
        ),
    ),
    Case(
        "prisma: the file of variables",
        (
            fails(
                "npx prisma migrate dev",
                "Prisma schema loaded from prisma/schema.prisma\nError: Prisma schema validation - (get-config wasm)\nError code: P1012\nerror: Environment variable not found: DATABASE_URL.\n  -->  prisma/schema.prisma:9",
            ),
            runs(
                "npx dotenv -e .env.local -- npx prisma migrate dev",
                "Your database is now in sync with your schema.",
            ),
        ),
        (
            fails(
                "npx prisma db push",
                "Prisma schema loaded from prisma/schema.prisma\nError: Prisma schema validation - (get-config wasm)\nError code: P1012\nerror: Environment variable not found: DATABASE_URL.\n  -->  prisma/schema.prisma:11",
            ),
        ),
        "dotenv -e .env.local",
        (
            fails(
                "npx prisma db push",
                "Prisma schema loaded from prisma/schema.prisma\nError: Prisma schema validation - (get-config wasm)\nError code: P1012\nerror: Environment variable not found: SHADOW_DATABASE_URL.\n  -->  prisma/schema.prisma:12",
            ),
        ),
    ),
    Case(
        "supabase: not started",
        (
            fails(
                "supabase db diff",
                "failed to inspect container health: Error response from daemon: No such container: supabase_db_shop",
            ),
            runs("supabase start", "Started supabase local development setup."),
            runs("supabase db diff", "No schema changes found"),
        ),
        (
            fails(
                "supabase db reset",
                "failed to inspect container health: Error response from daemon: No such container: supabase_db_shop",
            ),
        ),
        "supabase start",
    ),
    Case(
        "next: another instance",
        (
            fails(
                "npm run dev",
                "> shop@1.0.0 dev\n> next dev\n\n ⨯ Unable to acquire lock at /home/ada/shop/.next/dev/lock, is another instance of next dev running?",
            ),
            runs('pkill -f "next dev"'),
            runs("npm run dev", "✓ Ready in 1204ms"),
        ),
        (
            fails(
                "npx next dev -p 3001",
                " ⨯ Unable to acquire lock at /srv/w/.next/dev/lock, is another instance of next dev running?",
            ),
        ),
        "pkill -f",
        (
            fails(
                "npx next dev -p 3001",
                " ⨯ Failed to start server\nError: listen EADDRINUSE: address already in use :::3001",
            ),
        ),
    ),
    Case(
        "puppeteer: the sandbox",
        (
            fails(
                "node scripts/shot.mjs",
                "Error: Failed to launch the browser process: Code: null\n\nstderr:\n[0402/101112.131415:FATAL:zygote_host_impl_linux.cc(127)] No usable sandbox! If you are running on Ubuntu 23.10+ see https://chromium.googlesource.com/",
            ),
            edits(
                "scripts/browser.mjs",
                "puppeteer.launch() → puppeteer.launch({ args: ['--no-sandbox'] })",
            ),
            runs("node scripts/shot.mjs", "saved shot.png"),
        ),
        (
            fails(
                "node scripts/pdf.mjs invoice.html",
                "Error: Failed to launch the browser process: Code: null\n\nstderr:\n[0519/221100.000111:FATAL:zygote_host_impl_linux.cc(128)] No usable sandbox! If you are running on Ubuntu 23.10+ see https://chromium.googlesource.com/",
            ),
        ),
        "--no-sandbox",
        (
            fails(
                "node scripts/pdf.mjs invoice.html",
                "Error: Failed to launch the browser process: Code: 127\n\nstderr:\n/srv/w/chrome: error while loading shared libraries: libnss3.so: cannot open shared object file",
            ),
        ),
    ),
    Case(
        "eslint: a plugin, after some reading",
        (
            fails(
                "npm run lint",
                "> shop@1.0.0 lint\n> eslint .\n\nOops! Something went wrong! :(\n\nESLint: 9.17.0\n\nError [ERR_MODULE_NOT_FOUND]: Cannot find package 'eslint-plugin-import' imported from /home/ada/shop/eslint.config.js",
            ),
            runs("cat eslint.config.js", "import imp from 'eslint-plugin-import'"),
            runs("grep -n eslint package.json", '12: "eslint": "^9"'),
            runs("npm install -D eslint-plugin-import", "added 31 packages in 4s"),
            runs("npm run lint"),
        ),
        (
            fails(
                "npx eslint src/cart.ts",
                "Oops! Something went wrong! :(\n\nESLint: 9.20.1\n\nError [ERR_MODULE_NOT_FOUND]: Cannot find package 'eslint-plugin-import' imported from /srv/w/eslint.config.js",
            ),
        ),
        "npm install -D eslint-plugin-import",
        (
            fails(
                "npx eslint src/cart.ts",
                'Oops! Something went wrong! :(\n\nESLint: 9.20.1\n\nTypeError: Key "languageOptions": Key "ecmaVersion": Expected a number',
            ),
        ),
    ),
    Case(
        "an attempt that did not help, before the fix",
        (
            fails(
                "npm test",
                '> shop@1.0.0 test\n> vitest run\n\nError: Could not load the "sharp" module using the linux-x64 runtime\n    at Object.<anonymous> (/home/ada/shop/node_modules/sharp/lib/sharp.js:113:9)',
            ),
            runs("npm rebuild sharp", "rebuilt dependencies successfully"),
            fails(
                "npm test",
                '> shop@1.0.0 test\n> vitest run\n\nError: Could not load the "sharp" module using the linux-x64 runtime\n    at Object.<anonymous> (/home/ada/shop/node_modules/sharp/lib/sharp.js:113:9)',
            ),
            runs("npm install --os=linux --cpu=x64 sharp", "added 3 packages in 2s"),
            runs("npm test", "Tests  40 passed (40)"),
        ),
        (
            fails(
                "node scripts/thumbs.js",
                'Error: Could not load the "sharp" module using the linux-x64 runtime\n    at Object.<anonymous> (/srv/w/node_modules/sharp/lib/sharp.js:121:9)',
            ),
        ),
        "--os=linux",
    ),
    Case(
        "cargo: the folder of the crate",
        (
            fails(
                "cargo build",
                "error: could not find `Cargo.toml` in `/home/ada/shop` or any parent directory",
            ),
            runs("cd src-tauri && cargo build", "Finished `dev` profile"),
        ),
        (
            fails(
                "cargo clippy --all-targets",
                "error: could not find `Cargo.toml` in `/srv/w` or any parent directory",
            ),
        ),
        "src-tauri",
    ),
    Case(
        "line ends of Windows",
        (
            fails(
                "./scripts/deploy.sh staging",
                "/usr/bin/env: ‘bash\\r’: No such file or directory\n/usr/bin/env: use -[v]S to pass options in shebang lines",
            ),
            runs(
                "dos2unix scripts/*.sh",
                "dos2unix: converting file scripts/deploy.sh to Unix format...",
            ),
            runs("./scripts/deploy.sh staging", "deployed"),
        ),
        (
            fails(
                "./scripts/backup.sh",
                "/usr/bin/env: ‘bash\\r’: No such file or directory\n/usr/bin/env: use -[v]S to pass options in shebang lines",
            ),
        ),
        "dos2unix",
        (fails("./scripts/backup.sh", "/usr/bin/env: ‘zsh’: No such file or directory"),),
    ),
    Case(
        "git: a key",
        (
            fails(
                "git push",
                "git@github.com: Permission denied (publickey).\nfatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.",
            ),
            runs(
                "ssh-add ~/.ssh/id_ed25519_work", "Identity added: /home/ada/.ssh/id_ed25519_work"
            ),
            runs("git push", "   1a2b3c4..5d6e7f8  main -> main"),
        ),
        (
            fails(
                "git fetch --all --prune",
                "Fetching origin\ngit@github.com: Permission denied (publickey).\nfatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.\nerror: could not fetch origin",
            ),
        ),
        "ssh-add",
        (
            fails(
                "git fetch upstream",
                "fatal: 'upstream' does not appear to be a git repository\nfatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.",
            ),
        ),
    ),
    Case(
        "git: the address of a remote",
        (
            fails(
                "git push -u origin fix/x",
                "remote: Permission to ada/shop.git denied to ada-bot.\nfatal: unable to access 'https://github.com/ada/shop.git/': The requested URL returned error: 403",
            ),
            runs("git remote set-url origin git@github.com:ada/shop.git"),
            runs("git push -u origin fix/x", " * [new branch]      fix/x -> fix/x"),
        ),
        (
            fails(
                "git push origin HEAD",
                "remote: Permission to ada/shop.git denied to ada-bot.\nfatal: unable to access 'https://github.com/ada/shop.git/': The requested URL returned error: 403",
            ),
        ),
        "git remote set-url origin",
    ),
    Case(
        "npm: a private registry",
        (
            fails(
                "npm ci",
                "npm error code E401\nnpm error 401 Unauthorized - GET https://npm.example.com/@shop%2fui - unauthenticated: User cannot be authenticated with the token provided.",
            ),
            runs("cat .npmrc", "//npm.example.com/:_authToken=${NPM_TOKEN}"),
            runs("export NPM_TOKEN=$(gh auth token) && npm ci", "added 90 packages in 3s"),
        ),
        (
            fails(
                "npm install @shop/icons",
                "npm error code E401\nnpm error 401 Unauthorized - GET https://npm.example.com/@shop%2ficons - unauthenticated: User cannot be authenticated with the token provided.",
            ),
        ),
        "gh auth token",
    ),
    Case(
        "vitest: the pool",
        (
            fails(
                "npx vitest run",
                '⎯⎯⎯⎯⎯⎯ Unhandled Errors ⎯⎯⎯⎯⎯⎯\nError: [vitest-worker]: Timeout calling "onTaskUpdate"\nTest Files  31 passed (31)\n     Errors  1 error',
            ),
            runs("npx vitest run --pool=forks", "Test Files  31 passed (31)"),
        ),
        (
            hides(
                "npx vitest run src/cart 2>&1 | tail -30",
                '⎯⎯⎯⎯⎯⎯ Unhandled Errors ⎯⎯⎯⎯⎯⎯\nError: [vitest-worker]: Timeout calling "onTaskUpdate"\nTest Files  4 passed (4)\n     Errors  1 error',
            ),
        ),
        "--pool=forks",
    ),
    Case(
        "android: the folder of the SDK",
        (
            fails(
                "./gradlew assembleDebug",
                "FAILURE: Build failed with an exception.\n\n* What went wrong:\nCould not determine the dependencies of task ':app:compileDebugJavaWithJavac'.\n> SDK location not found. Define a valid SDK location with an ANDROID_HOME environment variable or by setting the sdk.dir path in your project's local properties file at '/home/ada/shop/local.properties'.\n\nBUILD FAILED in 3s",
            ),
            runs('echo "sdk.dir=$HOME/Android/Sdk" > local.properties'),
            runs("./gradlew assembleDebug", "BUILD SUCCESSFUL in 1m 2s"),
        ),
        (
            fails(
                "./gradlew :app:testDebugUnitTest",
                "FAILURE: Build failed with an exception.\n\n* What went wrong:\nCould not determine the dependencies of task ':app:testDebugUnitTest'.\n> SDK location not found. Define a valid SDK location with an ANDROID_HOME environment variable or by setting the sdk.dir path in your project's local properties file at '/srv/w/local.properties'.\n\nBUILD FAILED in 2s",
            ),
        ),
        "local.properties",
    ),
    Case(
        "a worktree without its packages",
        (
            fails(
                "node server.js",
                "node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module 'express'\nRequire stack:\n- /home/ada/shop/server.js\n  code: 'MODULE_NOT_FOUND'",
            ),
            runs("pnpm install", "Done in 6s"),
            runs("node server.js", "listening on 3000"),
        ),
        (
            fails(
                "node scripts/routes.js --json",
                "node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module 'express'\nRequire stack:\n- /srv/trees/w2/scripts/routes.js\n  code: 'MODULE_NOT_FOUND'",
            ),
        ),
        "pnpm install",
        (
            fails(
                "node scripts/routes.js",
                "node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module './lib/tables'\nRequire stack:\n- /srv/trees/w2/scripts/routes.js\n  code: 'MODULE_NOT_FOUND'",
            ),
        ),
    ),
    Case(
        "node: TypeScript run by hand",
        (
            fails(
                "node scripts/seed.ts",
                "TypeError [ERR_UNKNOWN_FILE_EXTENSION]: Unknown file extension \".ts\" for /home/ada/shop/scripts/seed.ts\n    at Object.getFileProtocolModuleFormat (node:internal/modules/esm/get_format:176:9)\n  code: 'ERR_UNKNOWN_FILE_EXTENSION'",
            ),
            runs("npx tsx scripts/seed.ts", "seeded"),
        ),
        (
            fails(
                "node scripts/export.ts --csv",
                "TypeError [ERR_UNKNOWN_FILE_EXTENSION]: Unknown file extension \".ts\" for /srv/w/scripts/export.ts\n    at Object.getFileProtocolModuleFormat (node:internal/modules/esm/get_format:219:9)\n  code: 'ERR_UNKNOWN_FILE_EXTENSION'",
            ),
        ),
        "npx tsx",
    ),
    Case(
        "a tool of a server: the name of a table",
        (
            calls(
                "mcp__db__query",
                'relation "order_line" does not exist',
                True,
                sql="select count(*) from order_line",
            ),
            calls("mcp__db__query", "41", sql="select count(*) from shop.order_lines"),
        ),
        (
            calls(
                "mcp__db__query",
                'relation "order_line" does not exist',
                True,
                sql="select id from order_line limit 5",
            ),
        ),
        "shop.order_lines",
        (
            calls(
                "mcp__db__query",
                'column "totl" does not exist',
                True,
                sql="select totl from shop.order_lines",
            ),
        ),
    ),
    Case(
        "a file that lies elsewhere",
        (
            calls(
                "Read",
                "<tool_use_error>File does not exist.</tool_use_error>",
                True,
                file_path="{project}/src/config.ts",
            ),
            runs("ls src", "app config"),
            calls("Read", "export const port = 1", file_path="{project}/src/config/index.ts"),
        ),
        (
            calls(
                "Read",
                "<tool_use_error>File does not exist.</tool_use_error>",
                True,
                file_path="{project}/src/config.ts",
            ),
        ),
        "src/config/index.ts",
        (
            calls(
                "Read",
                "<tool_use_error>File does not exist.</tool_use_error>",
                True,
                file_path="{project}/src/theme.ts",
            ),
        ),
    ),
    Case(
        "flaky: passed unchanged twice",
        (
            fails(
                "pytest tests/test_sync.py -q",
                "FAILED tests/test_sync.py::test_two_clients - TimeoutError: no event within 2 s\n1 failed, 8 passed in 4.1s",
            ),
            runs("pytest tests/test_sync.py -q", "9 passed in 2.2s"),
            edits("src/other.py", "a → b"),
            fails(
                "pytest tests/test_sync.py -q",
                "FAILED tests/test_sync.py::test_two_clients - TimeoutError: no event within 2 s\n1 failed, 8 passed in 4.4s",
            ),
            runs("pytest tests/test_sync.py -q", "9 passed in 2.0s"),
        ),
        (
            fails(
                "pytest tests/test_sync.py",
                "FAILED tests/test_sync.py::test_two_clients - TimeoutError: no event within 2 s\n1 failed, 8 passed in 4.0s",
            ),
        ),
        "passed",
        (
            fails(
                "pytest tests/test_sync.py",
                "FAILED tests/test_sync.py::test_merge - AssertionError: assert 1 == 2\n1 failed, 8 passed in 2.0s",
            ),
        ),
    ),
    Case(
        "passed unchanged once: nothing to say",
        (
            fails(
                "pytest tests/test_mail.py -q",
                "FAILED tests/test_mail.py::test_send - ConnectionResetError: [Errno 104] Connection reset by peer\n1 failed, 3 passed in 4.1s",
            ),
            runs("pytest tests/test_mail.py -q", "4 passed in 2.2s"),
        ),
        (
            fails(
                "pytest tests/test_mail.py",
                "FAILED tests/test_mail.py::test_send - ConnectionResetError: [Errno 104] Connection reset by peer\n1 failed, 3 passed in 4.0s",
            ),
        ),
        "",
    ),
    Case(
        "a test written before its code",
        (
            fails(
                "cargo test totals",
                "error[E0425]: cannot find function `round_half` in this scope\n --> src/cart.rs:9:5\nerror: could not compile `shop` (lib test) due to 1 previous error",
            ),
            edits("src/cart.rs", "// totals → pub fn round_half(x: f64) -> f64 { x.round() }"),
            runs("cargo test totals", "test result: ok. 2 passed"),
        ),
        (
            fails(
                "cargo test coupons",
                "error[E0425]: cannot find function `apply_coupon` in this scope\n --> src/coupon.rs:9:5\nerror: could not compile `shop` (lib test) due to 1 previous error",
            ),
        ),
        "",
    ),
    Case(
        "searches without a match",
        (
            fails("grep -rn 'legacyTotal' src", ""),
            runs("grep -rn 'legacy' src", "src/a.ts:1:legacy"),
        ),
        (fails("grep -rn 'oldTotal' src", ""),),
        "",
    ),
    Case(
        "a type error in code that was being written",
        (
            fails(
                "npx tsc --noEmit -p api",
                "api/src/cart.ts(14,7): error TS2322: Type 'string' is not assignable to type 'number'.",
            ),
            edits("api/src/cart.ts", "total: '0' → total: 0"),
            runs("npx tsc --noEmit -p api"),
        ),
        (
            fails(
                "npx tsc --noEmit -p api",
                "api/src/mail.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.",
            ),
        ),
        "",
    ),
    Case(
        "a service that answers with an error",
        (
            fails(
                "curl -sf http://localhost:3000/health",
                "curl: (22) The requested URL returned error: 500",
            ),
            edits("src/health.ts", "return bad() → return ok()"),
            runs("curl -sf http://localhost:3000/health", "ok"),
        ),
        (
            fails(
                "curl -sf http://localhost:3000/orders",
                "curl: (22) The requested URL returned error: 500",
            ),
        ),
        "",
    ),
    Case(
        "given up",
        (
            fails(
                "npx wrangler deploy",
                "✘ [ERROR] A request to the Cloudflare API (/accounts/0a1b/workers/scripts/shop) failed.\n\n  Authentication error [code: 10000]",
            ),
            runs("npx wrangler whoami", "You are not authenticated."),
        ),
        (
            fails(
                "npx wrangler deploy --env staging",
                "✘ [ERROR] A request to the Cloudflare API (/accounts/0a1b/workers/scripts/shop-staging) failed.\n\n  Authentication error [code: 10000]",
            ),
        ),
        "",
    ),
    Case(
        "a conflict that was settled by hand",
        (
            fails(
                "git merge main",
                "Auto-merging src/cart.ts\nCONFLICT (content): Merge conflict in src/cart.ts\nAutomatic merge failed; fix conflicts and then commit the result.",
            ),
            edits("src/cart.ts", "<<<<<<< HEAD → const total = 1"),
            runs(
                "git add src/cart.ts && git commit --no-edit",
                "[feat/a 1a2b3c4] Merge branch 'main' into feat/a",
            ),
        ),
        (
            fails(
                "git merge origin/main",
                "Auto-merging src/mail.ts\nCONFLICT (content): Merge conflict in src/mail.ts\nAutomatic merge failed; fix conflicts and then commit the result.",
            ),
        ),
        "",
    ),
    Case(
        "a check whose fix was code elsewhere",
        (
            fails(
                "npm test",
                "> shop@1.0.0 test\n> jest\n\nFAIL src/price.test.ts\n  ● rounds\n\n    expect(received).toBe(expected)\n    Expected: 10\n    Received: 9.99\n\nTests: 1 failed, 39 passed, 40 total",
            ),
            edits("src/price.ts", "return x → return Math.round(x)"),
            runs("npm test", "Tests: 40 passed, 40 total"),
        ),
        (
            fails(
                "npm test",
                "> shop@1.0.0 test\n> jest\n\nFAIL src/login.test.ts\n  ● signs in\n\n    expect(received).toBe(expected)\n    Expected: 200\n    Received: 401\n\nTests: 1 failed, 39 passed, 40 total",
            ),
        ),
        "",
    ),
)
