"""Cases that were looked at while the code was written."""

from case import Case, edits, fails, hides, runs

CASES = (
    Case(
        "node: a package that is not installed yet",
        (
            fails(
                "npm test",
                "> shop@1.4.0 test\n> vitest run\n\nsh: 1: vitest: not found\nnpm error Lifecycle script `test` failed with error:\nnpm error code 127",
            ),
            runs("npm ci", "added 412 packages in 9s"),
            runs("npm test", "Test Files  12 passed (12)"),
        ),
        (
            fails(
                "npm test -- cart",
                "> shop@1.5.2 test\n> vitest run cart\n\nsh: line 1: vitest: command not found\nnpm error Lifecycle script `test` failed with error:\nnpm error code 127",
            ),
            hides(
                "npm test 2>&1 | tail -20",
                "> shop@1.5.2 test\n> vitest run\n\nsh: 1: vitest: not found\nnpm error Lifecycle script `test` failed with error:",
            ),
        ),
        "npm ci",
        (
            fails(
                "npm test",
                "> shop@1.5.2 test\n> vitest run\n\n FAIL  src/cart.test.ts > adds\nAssertionError: expected 2 to be 3",
            ),
        ),
    ),
    Case(
        "node: pnpm instead of npm, by workspace protocol",
        (
            fails(
                "npm install",
                'npm error code EUNSUPPORTEDPROTOCOL\nnpm error Unsupported URL Type "workspace:": workspace:*\nnpm error A complete log of this run can be found in: /home/ada/.npm/_logs/2026-03-02T09_14_11_903Z-debug-0.log',
            ),
            runs("ls", "package.json pnpm-lock.yaml pnpm-workspace.yaml"),
            runs("pnpm install", "Done in 6.2s"),
        ),
        (
            fails(
                "npm install zod",
                'npm error code EUNSUPPORTEDPROTOCOL\nnpm error Unsupported URL Type "workspace:": workspace:^\nnpm error A complete log of this run can be found in: /home/bo/.npm/_logs/2026-05-19T10_00_00_000Z-debug-0.log',
            ),
        ),
        "pnpm install",
        (
            fails(
                "npm install zodd",
                "npm error code E404\nnpm error 404 Not Found - GET https://example.org/zodd - Not found",
            ),
        ),
    ),
    Case(
        "node: the database is not up",
        (
            fails(
                "npm run migrate",
                "> shop@1.4.0 migrate\n> prisma migrate deploy\n\nError: P1001: Can't reach database server at `localhost:5432`\n\nPlease make sure your database server is running at `localhost:5432`.",
            ),
            runs("docker compose up -d db", "Container shop-db-1  Started"),
            runs("npm run migrate", "All migrations have been successfully applied."),
        ),
        (
            fails(
                "npx prisma migrate dev",
                "Error: P1001: Can't reach database server at `127.0.0.1:5433`\n\nPlease make sure your database server is running at `127.0.0.1:5433`.",
            ),
        ),
        "docker compose up -d db",
        (
            fails(
                "npx prisma migrate dev",
                "Error: P3009\nmigrate found failed migrations in the target database, new migrations will not be applied.",
            ),
        ),
    ),
    Case(
        "node: a port in use",
        (
            fails(
                "npm run dev",
                "Error: listen EADDRINUSE: address already in use :::3000\n    at Server.setupListenHandle [as _listen2] (node:net:1817:16)",
            ),
            runs("lsof -ti:3000", "48121"),
            runs("kill 48121"),
            runs("npm run dev", "ready on http://localhost:3000"),
        ),
        (
            fails(
                "pnpm dev",
                "Error: listen EADDRINUSE: address already in use 0.0.0.0:3000\n    at Server.setupListenHandle [as _listen2] (node:net:1908:16)",
            ),
        ),
        "kill",
    ),
    Case(
        "node: a missing variable, given in front of the command",
        (
            fails(
                "npm run e2e",
                "Error: STRIPE_KEY is not set. Tests need a test key.\n    at setup (/home/ada/shop/e2e/setup.ts:14:11)",
            ),
            runs("cp .env.example .env"),
            runs("npm run e2e", "14 passed (41.2s)"),
        ),
        (
            fails(
                "npm run e2e -- --grep cart",
                "Error: STRIPE_KEY is not set. Tests need a test key.\n    at setup (/srv/trees/cart/e2e/setup.ts:16:11)",
            ),
        ),
        "cp .env.example .env",
        (
            fails(
                "npm run e2e",
                "Error: SENTRY_DSN is not set. Tests need a test key.\n    at setup (/home/ada/shop/e2e/setup.ts:15:11)",
            ),
        ),
    ),
    Case(
        "node: the generated client",
        (
            fails(
                "npx tsc --noEmit",
                "src/db.ts(3,10): error TS2305: Module '\"@prisma/client\"' has no exported member 'PrismaClient'.",
            ),
            runs("npx prisma generate", "Generated Prisma Client"),
            runs("npx tsc --noEmit"),
        ),
        (
            fails(
                "pnpm tsc --noEmit",
                "packages/api/src/db/index.ts(1,10): error TS2305: Module '\"@prisma/client\"' has no exported member 'PrismaClient'.",
            ),
        ),
        "prisma generate",
        (
            fails(
                "npx tsc --noEmit",
                "src/db.ts(3,10): error TS2305: Module '\"./models\"' has no exported member 'Cart'.",
            ),
        ),
    ),
    Case(
        "node: a snapshot that has to be written anew",
        (
            fails(
                "npx jest",
                "  ● renders the cart\n\n    expect(received).toMatchSnapshot()\n\n    Snapshot name: `renders the cart 1`\n\n › 1 snapshot failed.\nTests: 1 failed, 31 passed, 32 total",
            ),
            edits("src/Cart.tsx", "<b> → <strong>"),
            runs("npx jest", "Tests: 32 passed, 32 total"),
        ),
        (
            fails(
                "npx jest",
                "  ● renders the login\n\n    expect(received).toMatchSnapshot()\n\n    Snapshot name: `renders the login 1`\n\n › 1 snapshot failed.\nTests: 1 failed, 31 passed, 32 total",
            ),
        ),
        "",
    ),
    Case(
        "node: peer dependencies",
        (
            fails(
                "npm install",
                "npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree\nnpm error\nnpm error While resolving: shop@1.4.0\nnpm error Found: react@19.0.0",
            ),
            runs("npm install --legacy-peer-deps", "added 812 packages"),
        ),
        (
            fails(
                "npm install dayjs",
                "npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree\nnpm error\nnpm error While resolving: shop@1.6.0\nnpm error Found: react@19.1.0",
            ),
        ),
        "--legacy-peer-deps",
    ),
    Case(
        "python: no module, installed as an extra",
        (
            fails(
                "pytest",
                "ImportError while importing test module '/home/ada/api/tests/test_auth.py'.\nE   ModuleNotFoundError: No module named 'jwt'\n=========== 1 error in 0.31s ===========",
            ),
            runs("pip install -e '.[dev]'", "Successfully installed api-0.3.0"),
            runs("pytest", "88 passed in 4.20s"),
        ),
        (
            fails(
                "python -m pytest tests/test_login.py -q",
                "ImportError while importing test module '/srv/trees/login/tests/test_login.py'.\nE   ModuleNotFoundError: No module named 'jwt'\n=========== 1 error in 0.52s ===========",
            ),
        ),
        "pip install -e '.[dev]'",
        (
            fails(
                "pytest",
                "ImportError while importing test module '/home/ada/api/tests/test_x.py'.\nE   ModuleNotFoundError: No module named 'api.carts'\n=========== 1 error in 0.31s ===========",
            ),
        ),
    ),
    Case(
        "python: pytest by uv",
        (
            fails("pytest -q", "bash: pytest: command not found"),
            runs("uv run pytest -q", "41 passed in 2.03s"),
        ),
        (fails("pytest tests/test_cart.py", "/bin/bash: line 1: pytest: command not found"),),
        "uv run pytest",
        (fails("mypy src", "bash: mypy: command not found"),),
    ),
    Case(
        "python: pip outside of a virtual environment",
        (
            fails(
                "pip install requests",
                "error: externally-managed-environment\n\n× This environment is externally managed\n╰─> To install Python packages system-wide, try apt install\n    python3-xyz, where xyz is the package you are trying to\n    install.",
            ),
            runs("python3 -m venv .venv"),
            runs(".venv/bin/pip install requests", "Successfully installed requests-2.33.0"),
        ),
        (
            fails(
                "pip3 install pyyaml",
                "error: externally-managed-environment\n\n× This environment is externally managed\n╰─> To install Python packages system-wide, try apt install\n    python3-xyz, where xyz is the package you are trying to\n    install.",
            ),
        ),
        ".venv",
    ),
    Case(
        "python: migrations are behind",
        (
            fails(
                "pytest tests/api",
                'E   sqlalchemy.exc.ProgrammingError: (psycopg.errors.UndefinedTable) relation "carts" does not exist\nE   LINE 1: SELECT * FROM carts\n2 failed, 10 passed in 3.11s',
            ),
            runs("alembic upgrade head", "Running upgrade 4f1c -> 9e2b, carts"),
            runs("pytest tests/api", "12 passed in 3.00s"),
        ),
        (
            fails(
                "pytest tests/api -x",
                'E   sqlalchemy.exc.ProgrammingError: (psycopg.errors.UndefinedTable) relation "carts" does not exist\nE   LINE 1: SELECT * FROM carts\n1 failed, 3 passed in 1.01s',
            ),
        ),
        "alembic upgrade head",
        (
            fails(
                "pytest tests/api -x",
                'E   sqlalchemy.exc.ProgrammingError: (psycopg.errors.UndefinedColumn) column "carts.note" does not exist\n1 failed, 3 passed in 1.01s',
            ),
        ),
    ),
    Case(
        "python: the settings module",
        (
            fails(
                "python manage.py test",
                "django.core.exceptions.ImproperlyConfigured: Requested setting INSTALLED_APPS, but settings are not configured. You must either define the environment variable DJANGO_SETTINGS_MODULE or call settings.configure() before accessing settings.",
            ),
            runs(
                "DJANGO_SETTINGS_MODULE=shop.settings.test python manage.py test",
                "Ran 41 tests in 2.1s\n\nOK",
            ),
        ),
        (
            fails(
                "python manage.py test carts",
                "django.core.exceptions.ImproperlyConfigured: Requested setting INSTALLED_APPS, but settings are not configured. You must either define the environment variable DJANGO_SETTINGS_MODULE or call settings.configure() before accessing settings.",
            ),
        ),
        "DJANGO_SETTINGS_MODULE=shop.settings.test",
    ),
    Case(
        "python: a wrong flag of ruff",
        (
            fails(
                "ruff check --format=json src",
                "error: unexpected argument '--format' found\n\n  tip: a similar argument exists: '--output-format'",
            ),
            runs("ruff check --output-format=json src", "[]"),
        ),
        (
            fails(
                "ruff check --format=github .",
                "error: unexpected argument '--format' found\n\n  tip: a similar argument exists: '--output-format'",
            ),
        ),
        "--output-format",
        (fails("ruff check --fixx src", "error: unexpected argument '--fixx' found"),),
    ),
    Case(
        "python: the version that the project needs",
        (
            fails(
                "pip install -e .",
                "ERROR: Package 'api' requires a different Python: 3.9.18 not in '>=3.11'",
            ),
            runs(
                "python3.11 -m venv .venv && .venv/bin/pip install -e .",
                "Successfully installed api-0.3.0",
            ),
        ),
        (
            fails(
                "pip install -e '.[dev]'",
                "ERROR: Package 'api' requires a different Python: 3.10.4 not in '>=3.11'",
            ),
        ),
        "python3.11",
    ),
    Case(
        "go: the module file is behind",
        (
            fails(
                "go build ./...",
                "internal/cart/cart.go:7:2: no required module provides package github.com/google/uuid; to add it:\n\tgo get github.com/google/uuid",
            ),
            runs("go mod tidy"),
            runs("go build ./..."),
        ),
        (
            fails(
                "go test ./internal/login/...",
                "internal/login/login.go:11:2: no required module provides package github.com/google/uuid; to add it:\n\tgo get github.com/google/uuid",
            ),
        ),
        "go mod tidy",
        (
            fails(
                "go build ./...",
                "internal/cart/cart.go:9:2: undefined: total",
            ),
        ),
    ),
    Case(
        "go: generated mocks",
        (
            fails(
                "go test ./...",
                "# shop/internal/store_test\ninternal/store/store_test.go:21:10: undefined: mocks.NewMockClock\nFAIL\tshop/internal/store [build failed]",
            ),
            runs("go generate ./..."),
            runs("go test ./...", "ok  \tshop/internal/store\t0.11s"),
        ),
        (
            fails(
                "go test ./internal/...",
                "# shop/internal/store_test\ninternal/store/clock_test.go:9:12: undefined: mocks.NewMockClock\nFAIL\tshop/internal/store [build failed]",
            ),
        ),
        "go generate",
        (
            fails(
                "go test ./internal/...",
                "# shop/internal/store_test\ninternal/store/clock_test.go:9:12: undefined: newCart\nFAIL\tshop/internal/store [build failed]",
            ),
        ),
    ),
    Case(
        "go: cgo needs a compiler setting",
        (
            fails(
                "go test ./...",
                "go: -race requires cgo; enable cgo by setting CGO_ENABLED=1",
            ),
            runs("CGO_ENABLED=1 go test ./...", "ok  \tshop/internal/store\t0.11s"),
        ),
        (
            fails(
                "go test -race ./internal/cart",
                "go: -race requires cgo; enable cgo by setting CGO_ENABLED=1",
            ),
        ),
        "CGO_ENABLED=1",
    ),
    Case(
        "rust: a missing system library",
        (
            fails(
                "cargo build",
                "error: failed to run custom build command for `openssl-sys v0.9.104`\n\nCaused by:\n  process didn't exit successfully: `/home/ada/shop/target/debug/build/openssl-sys-91c/build-script-main` (exit status: 101)\n  Could not find directory of OpenSSL installation",
            ),
            runs("sudo apt-get install -y libssl-dev pkg-config"),
            runs("cargo build", "Finished `dev` profile in 41.2s"),
        ),
        (
            fails(
                "cargo test",
                "error: failed to run custom build command for `openssl-sys v0.9.109`\n\nCaused by:\n  process didn't exit successfully: `/srv/shop/target/debug/build/openssl-sys-17d/build-script-main` (exit status: 101)\n  Could not find directory of OpenSSL installation",
            ),
        ),
        "libssl-dev",
        (
            fails(
                "cargo build",
                "error: failed to run custom build command for `ring v0.17.8`\n\nCaused by:\n  process didn't exit successfully: `/home/ada/shop/target/debug/build/ring-1/build-script-build`",
            ),
        ),
    ),
    Case(
        "rust: formatting",
        (
            fails(
                "cargo fmt --check",
                "Diff in /home/ada/shop/src/cart.rs:14:\n-    let a=1;\n+    let a = 1;",
            ),
            runs("cargo fmt"),
            runs("cargo fmt --check"),
        ),
        (
            fails(
                "cargo fmt --all -- --check",
                "Diff in /srv/trees/x/src/login.rs:3:\n-    let b=1;\n+    let b = 1;",
            ),
        ),
        "cargo fmt",
    ),
    Case(
        "rust: the toolchain",
        (
            fails(
                "cargo build",
                "error: rustc 1.78.0 is not supported by the following package:\n  shop@0.3.0 requires rustc 1.85",
            ),
            runs("rustup update stable", "stable updated"),
            runs("cargo build", "Finished `dev` profile"),
        ),
        (
            fails(
                "cargo clippy",
                "error: rustc 1.78.0 is not supported by the following package:\n  shop@0.4.1 requires rustc 1.86",
            ),
        ),
        "rustup update stable",
    ),
    Case(
        "java: the wrapper is not executable",
        (
            fails("./gradlew test", "bash: ./gradlew: Permission denied"),
            runs("chmod +x gradlew"),
            runs("./gradlew test", "BUILD SUCCESSFUL in 12s"),
        ),
        (fails("./gradlew build --info", "/bin/bash: line 1: ./gradlew: Permission denied"),),
        "chmod +x gradlew",
        (fails("./deploy.sh", "bash: ./deploy.sh: Permission denied"),),
    ),
    Case(
        "java: the version of the JDK",
        (
            fails(
                "mvn -q test",
                "[ERROR] Failed to execute goal org.apache.maven.plugins:maven-compiler-plugin:3.13.0:compile (default-compile) on project shop: Fatal error compiling: error: invalid target release: 21 -> [Help 1]",
            ),
            runs("export JAVA_HOME=/usr/lib/jvm/java-21-openjdk-amd64"),
            runs("mvn -q test"),
        ),
        (
            fails(
                "mvn package",
                "[ERROR] Failed to execute goal org.apache.maven.plugins:maven-compiler-plugin:3.14.1:compile (default-compile) on project shop-web: Fatal error compiling: error: invalid target release: 21 -> [Help 1]",
            ),
        ),
        "JAVA_HOME",
    ),
    Case(
        "docker: the daemon",
        (
            fails(
                "docker compose up -d",
                "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
            ),
            runs("colima start", "done"),
            runs("docker compose up -d", "Started"),
        ),
        (
            fails(
                "docker build -t shop .",
                "ERROR: Cannot connect to the Docker daemon at unix:///Users/bo/.colima/default/docker.sock. Is the docker daemon running?",
            ),
        ),
        "colima start",
    ),
    Case(
        "docker: a network that has to be made",
        (
            fails(
                "docker compose up -d",
                "network shop_edge declared as external, but could not be found",
            ),
            runs("docker network create shop_edge", "9f2c"),
            runs("docker compose up -d", "Started"),
        ),
        (
            fails(
                "docker compose up web",
                "network shop_edge declared as external, but could not be found",
            ),
        ),
        "docker network create shop_edge",
    ),
    Case(
        "git: behind the remote",
        (
            fails(
                "git push",
                "To github.com:ada/shop.git\n ! [rejected]        main -> main (fetch first)\nerror: failed to push some refs to 'github.com:ada/shop.git'\nhint: Updates were rejected because the remote contains work that you do not\nhint: have locally.",
            ),
            runs("git pull --rebase", "Successfully rebased and updated refs/heads/main."),
            runs("git push", "main -> main"),
        ),
        (
            fails(
                "git push origin fix/cart",
                "To github.com:ada/shop.git\n ! [rejected]        fix/cart -> fix/cart (fetch first)\nerror: failed to push some refs to 'github.com:ada/shop.git'",
            ),
        ),
        "git pull --rebase",
        (
            fails(
                "git push",
                "To github.com:ada/shop.git\n ! [remote rejected] main -> main (protected branch hook declined)\nerror: failed to push some refs to 'github.com:ada/shop.git'",
            ),
        ),
    ),
    Case(
        "git: an ignored file",
        (
            fails(
                "git add dist/app.js",
                "The following paths are ignored by one of your .gitignore files:\ndist\nhint: Use -f if you really want to add them.",
            ),
            runs("git add -f dist/app.js"),
        ),
        (
            fails(
                "git add dist/app.js src/a.ts",
                "The following paths are ignored by one of your .gitignore files:\ndist\nhint: Use -f if you really want to add them.",
            ),
        ),
        "git add -f",
    ),
    Case(
        "git: a hook that lints",
        (
            fails(
                "git commit -m 'feat: cart'",
                "husky - pre-commit script failed (code 1)\n✖ eslint --fix:\n/home/ada/shop/src/cart.ts\n  3:7  error  'total' is assigned a value but never used  no-unused-vars",
            ),
            edits("src/cart.ts", "const total = 1 → "),
            runs("git commit -m 'feat: cart'"),
        ),
        (
            fails(
                "git commit -m 'feat: login'",
                "husky - pre-commit script failed (code 1)\n✖ eslint --fix:\n/home/ada/shop/src/login.ts\n  9:7  error  'name' is assigned a value but never used  no-unused-vars",
            ),
        ),
        "",
    ),
    Case(
        "gh: a field that does not exist",
        (
            fails(
                "gh pr view 41 --json title,checks",
                'Unknown JSON field: "checks"\nAvailable fields:\n  additions\n  assignees\n  statusCheckRollup',
            ),
            runs("gh pr view 41 --json title,statusCheckRollup", "{}"),
        ),
        (
            fails(
                "gh pr view 58 --json number,checks",
                'Unknown JSON field: "checks"\nAvailable fields:\n  additions\n  assignees\n  statusCheckRollup',
            ),
        ),
        "statusCheckRollup",
        (
            fails(
                "gh pr view 58 --json number,reviewsx",
                'Unknown JSON field: "reviewsx"\nAvailable fields:\n  additions',
            ),
        ),
    ),
    Case(
        "gh: not signed in",
        (
            fails(
                "gh pr create --fill",
                "To get started with GitHub CLI, please run:  gh auth login\nAlternatively, populate the GH_TOKEN environment variable with a GitHub API authentication token.",
            ),
            runs("export GH_TOKEN=$(cat ~/.config/gh-token)"),
            runs("gh pr create --fill", "https://github.com/ada/shop/pull/61"),
        ),
        (
            fails(
                "gh issue list",
                "To get started with GitHub CLI, please run:  gh auth login\nAlternatively, populate the GH_TOKEN environment variable with a GitHub API authentication token.",
            ),
        ),
        "GH_TOKEN",
    ),
    Case(
        "terraform: not initialised",
        (
            fails(
                "terraform plan",
                '╷\n│ Error: Backend initialization required, please run "terraform init"\n│ \n│ Reason: Initial configuration of the requested backend "s3"\n╵',
            ),
            runs(
                "terraform init -backend-config=env/dev.hcl",
                "Terraform has been successfully initialized!",
            ),
            runs("terraform plan", "No changes."),
        ),
        (
            fails(
                "terraform apply -auto-approve",
                '╷\n│ Error: Backend initialization required, please run "terraform init"\n│ \n│ Reason: Initial configuration of the requested backend "s3"\n╵',
            ),
        ),
        "-backend-config=env/dev.hcl",
    ),
    Case(
        "make: the target's name",
        (
            fails("make tests", "make: *** No rule to make target 'tests'.  Stop."),
            runs("make check", "ok"),
        ),
        (fails("make tests", "make: *** No rule to make target 'tests'.  Stop."),),
        "make check",
        (fails("make docs", "make: *** No rule to make target 'docs'.  Stop."),),
    ),
    Case(
        "make: tabs",
        (
            fails("make build", "Makefile:12: *** missing separator.  Stop."),
            edits("Makefile", "    go build → \tgo build"),
            runs("make build", "ok"),
        ),
        (fails("make build", "Makefile:18: *** missing separator.  Stop."),),
        "Makefile",
    ),
    Case(
        "a folder that the command needs",
        (
            fails(
                "npm run build",
                "npm error code ENOENT\nnpm error syscall open\nnpm error path /home/ada/shop/package.json\nnpm error enoent Could not read package.json: Error: ENOENT: no such file or directory, open '/home/ada/shop/package.json'",
            ),
            runs("cd web && npm run build", "built in 2.1s"),
        ),
        (
            fails(
                "npm run build",
                "npm error code ENOENT\nnpm error syscall open\nnpm error path /srv/trees/x/package.json\nnpm error enoent Could not read package.json: Error: ENOENT: no such file or directory, open '/srv/trees/x/package.json'",
            ),
        ),
        "web",
    ),
    Case(
        "a failed check that an edit of configuration mends",
        (
            fails(
                "npm run build",
                '> shop@1.4.0 build\n> vite build\n\nerror during build:\n[vite]: Rollup failed to resolve import "@/cart" from "/home/ada/shop/src/main.ts".',
            ),
            edits("vite.config.ts", "resolve: {} → resolve: { alias: { '@': '/src' } }"),
            runs("npm run build", "✓ built in 2.31s"),
        ),
        (
            fails(
                "npm run build",
                '> shop@1.5.0 build\n> vite build\n\nerror during build:\n[vite]: Rollup failed to resolve import "@/cart" from "/home/ada/shop/src/checkout.ts".',
            ),
        ),
        "vite.config.ts",
        (
            fails(
                "npm run build",
                '> shop@1.5.0 build\n> vite build\n\nerror during build:\n[vite]: Rollup failed to resolve import "lodash" from "/home/ada/shop/src/checkout.ts".',
            ),
        ),
    ),
    Case(
        "flaky by nature",
        (
            fails(
                "npm run e2e",
                "Error: page.goto: net::ERR_CONNECTION_RESET at http://localhost:3000/cart\n1 failed",
            ),
            runs("npm run e2e", "14 passed (31.2s)"),
        ),
        (fails("npm run e2e", "Error: expect(locator).toBeVisible() failed\n1 failed"),),
        "",
    ),
    Case(
        "an edit of code that mends a test says nothing about the next",
        (
            fails(
                "pytest -q",
                "E   AssertionError: assert 3 == 4\nFAILED tests/test_cart.py::test_total - AssertionError: assert 3 == 4\n1 failed, 20 passed in 0.52s",
            ),
            edits("src/cart.py", "a + b → a + b + 1"),
            runs("pytest -q", "21 passed in 0.50s"),
        ),
        (
            fails(
                "pytest -q",
                "E   AssertionError: assert 3 == 4\nFAILED tests/test_login.py::test_name - AssertionError: assert 3 == 4\n1 failed, 20 passed in 0.52s",
            ),
        ),
        "",
    ),
)
