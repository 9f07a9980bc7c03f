"""More failures of many tools, written after `wider.py` was opened by half, and before it was known what is shown for them."""

from case import Case, calls, edits, fails, hides, runs

CASES = (
    Case(
        "tsc: types of a tool",
        (
            fails(
                "npx tsc --noEmit",
                "error TS2688: Cannot find type definition file for 'vitest/globals'.\n  The file is in the program because:\n    Entry point of type library 'vitest/globals' specified in compilerOptions",
            ),
            runs("npm install -D vitest", "added 40 packages"),
            runs("npx tsc --noEmit"),
        ),
        (
            fails(
                "npm run typecheck",
                "> tsc -b\n\nerror TS2688: Cannot find type definition file for 'vitest/globals'.\n  The file is in the program because:\n    Entry point of type library 'vitest/globals' specified in compilerOptions",
            ),
        ),
        "npm install -D vitest",
        (
            fails(
                "npm run typecheck",
                "> tsc -b\n\nsrc/a.ts(3,9): error TS2339: Property 'plan' does not exist on type 'User'.",
            ),
        ),
    ),
    Case(
        "gh: a scope of the token",
        (
            fails(
                "gh project list",
                "error: your authentication token is missing required scopes [read:project]\nTo request it, run:  gh auth refresh -s read:project",
            ),
            runs("GH_TOKEN=$PROJECT_TOKEN gh project list", "1 Roadmap open"),
        ),
        (
            fails(
                "gh project view 1",
                "error: your authentication token is missing required scopes [read:project]\nTo request it, run:  gh auth refresh -s read:project",
            ),
        ),
        "PROJECT_TOKEN",
        (
            fails(
                "gh project view 99",
                "GraphQL: Could not resolve to a ProjectV2 with the number 99. (user.projectV2)",
            ),
        ),
    ),
    Case(
        "python: a tool as a module",
        (
            fails("poetry run pytest", "bash: poetry: command not found"),
            runs("python3 -m poetry run pytest", "12 passed in 1.2s"),
        ),
        (fails("poetry add httpx", "/bin/sh: 1: poetry: not found"),),
        "python3 -m poetry",
    ),
    Case(
        "make: in the folder of the service",
        (
            fails("make migrate", "make: *** No rule to make target 'migrate'.  Stop."),
            runs("make -C backend migrate", "ok"),
        ),
        (fails("make migrate", "make: *** No rule to make target 'migrate'.  Stop."),),
        "make -C backend migrate",
        (fails("make docs", "make: *** No rule to make target 'docs'.  Stop."),),
    ),
    Case(
        "docker compose: a port of another project",
        (
            fails(
                "docker compose up -d",
                "Error response from daemon: driver failed programming external connectivity on endpoint shop-db-1 (0aa1): Bind for 0.0.0.0:5432 failed: port is already allocated",
            ),
            runs("docker ps", "other-db-1 0.0.0.0:5432->5432/tcp"),
            runs("docker stop other-db-1", "other-db-1"),
            runs("docker compose up -d", "Container shop-db-1  Started"),
        ),
        (
            fails(
                "docker compose up -d db",
                "Error response from daemon: failed to set up container networking: driver failed programming external connectivity on endpoint shop-db-1 (77bb): Bind for 0.0.0.0:5432 failed: port is already allocated",
            ),
        ),
        "docker stop other-db-1",
        (fails("docker compose up -d dbb", "no such service: dbb"),),
    ),
    Case(
        "git: a rebase that is going on",
        (
            fails(
                "git rebase main",
                "fatal: It seems that there is already a rebase-merge directory, and\nI wonder if you are in the middle of another rebase.  If that is the\ncase, please try\n\tgit rebase (--continue | --abort | --skip)",
            ),
            runs("git rebase --abort"),
            runs("git rebase main", "Successfully rebased and updated refs/heads/fix/x."),
        ),
        (
            fails(
                "git pull --rebase",
                "fatal: It seems that there is already a rebase-merge directory, and\nI wonder if you are in the middle of another rebase.  If that is the\ncase, please try\n\tgit rebase (--continue | --abort | --skip)",
            ),
        ),
        "git rebase --abort",
        (
            fails(
                "git rebase main",
                "error: could not apply 9a8b7c6... totals\nCONFLICT (content): Merge conflict in src/cart.ts",
            ),
        ),
    ),
    Case(
        "git: a hook that changes files",
        (
            fails(
                "git commit -m 'fix: totals'",
                "black....................................................................Failed\n- hook id: black\n- files were modified by this hook\n\nreformatted src/shop/cart.py\n1 file reformatted.",
            ),
            runs("git add -u && git commit -m 'fix: totals'", "[main 1a2b3c4] fix: totals"),
        ),
        (
            fails(
                "git commit -m 'feat: plans'",
                "black....................................................................Failed\n- hook id: black\n- files were modified by this hook\n\nreformatted src/shop/plans.py\n1 file reformatted.",
            ),
        ),
        "git add -u",
        (
            fails(
                "git commit -m 'feat: plans'",
                "mypy.....................................................................Failed\n- hook id: mypy\n- exit code: 1\n\nsrc/shop/plans.py:3: error: Missing return statement  [return]",
            ),
        ),
    ),
    Case(
        "cargo: an old compiler",
        (
            fails(
                "cargo build",
                "error: rustc 1.75.0 is not supported by the following package:\n  home@0.5.11 requires rustc 1.81\nEither upgrade rustc or select compatible dependency versions",
            ),
            runs("rustup update stable", "stable updated - rustc 1.83.0"),
            runs("cargo build", "Finished `dev` profile"),
        ),
        (
            fails(
                "cargo test --workspace",
                "error: rustc 1.75.0 is not supported by the following packages:\n  idna_adapter@1.2.1 requires rustc 1.82\nEither upgrade rustc or select compatible dependency versions",
            ),
        ),
        "rustup update stable",
    ),
    Case(
        "go: the folder of the module",
        (
            fails(
                "go test ./...",
                "go: go.mod file not found in current directory or any parent directory; see 'go help modules'",
            ),
            runs("cd services/api && go test ./...", "ok  \tshop/api\t0.1s"),
        ),
        (
            fails(
                "go build ./cmd/api",
                "go: go.mod file not found in current directory or any parent directory; see 'go help modules'",
            ),
        ),
        "api",
    ),
    Case(
        "rails: a file of a server that is gone",
        (
            fails(
                "bin/rails server -d",
                "=> Booting Puma\n=> Rails 7.1.2 application starting in development\nA server is already running (pid: 3121, file: /home/ada/shop/tmp/pids/server.pid).\nExiting",
            ),
            runs("rm -f tmp/pids/server.pid"),
            runs("bin/rails server -d", "=> Booting Puma"),
        ),
        (
            fails(
                "bundle exec rails s -p 4000",
                "=> Booting Puma\n=> Rails 7.1.3 application starting in development\nA server is already running (pid: 88, file: /srv/w/tmp/pids/server.pid).\nExiting",
            ),
        ),
        "rm -f tmp/pids/server.pid",
        (
            fails(
                "bundle exec rails s",
                "bundler: failed to load command: rails\nLoadError: cannot load such file -- bootsnap/setup",
            ),
        ),
    ),
    Case(
        "pods: a stale index",
        (
            fails(
                "pod install",
                '[!] CocoaPods could not find compatible versions for pod "Firebase/Core":\n  In Podfile:\n    Firebase/Core (= 10.20.0)\n\nNone of your spec sources contain a spec satisfying the dependency: `Firebase/Core (= 10.20.0)`.',
            ),
            runs("pod install --repo-update", "Pod installation complete!"),
        ),
        (
            fails(
                "pod update Sentry",
                '[!] CocoaPods could not find compatible versions for pod "Sentry":\n  In Podfile:\n    Sentry (= 8.40.1)\n\nNone of your spec sources contain a spec satisfying the dependency: `Sentry (= 8.40.1)`.',
            ),
        ),
        "--repo-update",
        (fails("pod update Sentry", "[!] No `Podfile' found in the project directory."),),
    ),
    Case(
        "terraform: providers of the lock file",
        (
            fails(
                "terraform plan",
                '╷\n│ Error: Inconsistent dependency lock file\n│ \n│ The following dependency selections recorded in the lock file are inconsistent with the current configuration:\n│   - provider registry.terraform.io/hashicorp/aws: locked version selection 5.1.0 doesn\'t match the updated version constraints ">= 5.30.0"\n╵',
            ),
            runs("terraform init -upgrade", "Terraform has been successfully initialized!"),
            runs("terraform plan", "No changes."),
        ),
        (
            fails(
                "terraform apply",
                "╷\n│ Error: Inconsistent dependency lock file\n│ \n│ The following dependency selections recorded in the lock file are inconsistent with the current configuration:\n│   - provider registry.terraform.io/hashicorp/random: required by this configuration but no version is selected\n╵",
            ),
        ),
        "terraform init -upgrade",
        (
            fails(
                "terraform apply",
                '╷\n│ Error: Reference to undeclared resource\n│ \n│   on main.tf line 4, in output "a":\n╵',
            ),
        ),
    ),
    Case(
        "helm: an operation that hangs",
        (
            fails(
                "helm upgrade shop ./chart",
                "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress",
            ),
            runs("helm history shop", "7 pending-upgrade"),
            runs("helm rollback shop 6", "Rollback was a success! Happy Helming!"),
            runs("helm upgrade shop ./chart", 'Release "shop" has been upgraded.'),
        ),
        (
            fails(
                "helm upgrade --install shop ./chart -f values.dev.yaml",
                "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress",
            ),
        ),
        "helm rollback shop",
        (
            fails(
                "helm upgrade --install shop ./chart",
                'Error: UPGRADE FAILED: failed to create resource: Deployment.apps "api" is invalid: spec.selector: Required value',
            ),
        ),
    ),
    Case(
        "kubectl: a login that ended",
        (
            fails("kubectl get ns", "error: You must be logged in to the server (Unauthorized)"),
            runs("aws eks update-kubeconfig --name shop", "Updated context"),
            runs("kubectl get ns", "default Active"),
        ),
        (
            fails(
                "kubectl rollout status deploy/api",
                "error: You must be logged in to the server (Unauthorized)",
            ),
        ),
        "aws eks update-kubeconfig",
        (
            fails(
                "kubectl rollout status deploy/apii",
                'Error from server (NotFound): deployments.apps "apii" not found',
            ),
        ),
    ),
    Case(
        "jest: names of workspace packages",
        (
            fails(
                "npx jest",
                "FAIL src/cart.test.ts\n  ● Test suite failed to run\n\n    Cannot find module '@shop/ui' from 'src/cart.ts'\n\n    Require stack:\n      src/cart.ts",
            ),
            edits(
                "jest.config.js",
                "testEnvironment: 'jsdom' → testEnvironment: 'jsdom', moduleNameMapper: { '^@shop/(.*)$': '<rootDir>/../$1/src' }",
            ),
            runs("npx jest", "Tests: 40 passed, 40 total"),
        ),
        (
            fails(
                "npm test -- login",
                "> jest login\n\nFAIL src/login.test.ts\n  ● Test suite failed to run\n\n    Cannot find module '@shop/ui' from 'src/login.ts'\n\n    Require stack:\n      src/login.ts",
            ),
        ),
        "jest.config.js",
    ),
    Case(
        "python: a script that is part of a package",
        (
            fails(
                "python src/shop/cli.py",
                'Traceback (most recent call last):\n  File "/home/ada/shop/src/shop/cli.py", line 3, in <module>\n    from .db import connect\nImportError: attempted relative import with no known parent package',
            ),
            runs("cd src && python -m shop.cli", "usage: shop"),
        ),
        (
            fails(
                "python src/shop/cli.py list",
                'Traceback (most recent call last):\n  File "/srv/w/src/shop/cli.py", line 3, in <module>\n    from .db import connect\nImportError: attempted relative import with no known parent package',
            ),
        ),
        "python -m shop.cli",
        (
            fails(
                "python src/shop/cli.py list",
                "Traceback (most recent call last):\n  File \"/srv/w/src/shop/cli.py\", line 9, in <module>\n    main()\nTypeError: main() missing 1 required positional argument: 'argv'",
            ),
        ),
    ),
    Case(
        "pip: a system's own Python",
        (
            fails(
                "pip install httpx",
                "error: externally-managed-environment\n\n× This environment is externally managed\n╰─> To install Python packages system-wide, try apt install\n    python3-xyz, where xyz is the package you are trying to\n    install.",
            ),
            runs("python3 -m venv .venv"),
            runs(".venv/bin/pip install httpx", "Successfully installed httpx-0.28.1"),
        ),
        (
            fails(
                "pip3 install -r requirements.txt",
                "error: externally-managed-environment\n\n× This environment is externally managed\n╰─> To install Python packages system-wide, try apt install\n    python3-xyz, where xyz is the package you are trying to\n    install.",
            ),
        ),
        ".venv",
    ),
    Case(
        "pip: a package that must be built",
        (
            fails(
                "pip install psycopg2",
                "  error: subprocess-exited-with-error\n  × python setup.py egg_info did not run successfully.\n  │ exit code: 1\n  ╰─> [23 lines of output]\n      Error: pg_config executable not found.\n      pg_config is required to build psycopg2 from source.",
            ),
            runs("pip install psycopg2-binary", "Successfully installed psycopg2-binary-2.9.10"),
        ),
        (
            fails(
                "pip install -r requirements.txt",
                "  error: subprocess-exited-with-error\n  × python setup.py egg_info did not run successfully.\n  │ exit code: 1\n  ╰─> [21 lines of output]\n      Error: pg_config executable not found.\n      pg_config is required to build psycopg2 from source.",
            ),
        ),
        "psycopg2-binary",
        (
            fails(
                "pip install -r requirements.txt",
                "  error: subprocess-exited-with-error\n  × python setup.py egg_info did not run successfully.\n  │ exit code: 1\n  ╰─> [9 lines of output]\n      RuntimeError: mysql_config not found",
            ),
        ),
    ),
    Case(
        "npm: optional packages of another system",
        (
            fails(
                "npm run build",
                "> vite build\n\nError: Cannot find module @rollup/rollup-linux-x64-gnu. npm has a bug related to optional dependencies (https://github.com/npm/cli/issues/4828). Please try `npm i` again after removing both package-lock.json and node_modules directory.",
            ),
            runs("npm ci", "added 300 packages"),
            fails(
                "npm run build",
                "> vite build\n\nError: Cannot find module @rollup/rollup-linux-x64-gnu. npm has a bug related to optional dependencies (https://github.com/npm/cli/issues/4828). Please try `npm i` again after removing both package-lock.json and node_modules directory.",
            ),
            runs("rm -rf node_modules package-lock.json && npm install", "added 301 packages"),
            runs("npm run build", "✓ built in 3.1s"),
        ),
        (
            fails(
                "npx vitest run",
                "Error: Cannot find module @rollup/rollup-linux-x64-gnu. npm has a bug related to optional dependencies (https://github.com/npm/cli/issues/4828). Please try `npm i` again after removing both package-lock.json and node_modules directory.",
            ),
        ),
        "npm install",
    ),
    Case(
        "sqlite: no tables yet",
        (
            fails(
                "sqlite3 dev.db 'select count(*) from users'",
                "Error: in prepare, no such table: users",
            ),
            runs("npm run migrate", "applied 12 migrations"),
            runs("sqlite3 dev.db 'select count(*) from users'", "0"),
        ),
        (
            fails(
                "node scripts/report.js",
                "SqliteError: no such table: users\n    at Database.prepare (/srv/w/node_modules/better-sqlite3/lib/methods/wrappers.js:5:21)",
            ),
        ),
        "npm run migrate",
        (
            fails(
                "node scripts/report.js",
                'SqliteError: near "form": syntax error\n    at Database.prepare (/srv/w/node_modules/better-sqlite3/lib/methods/wrappers.js:5:21)',
            ),
        ),
    ),
    Case(
        "a host name that only containers know",
        (
            fails(
                "python manage.py migrate",
                'django.db.utils.OperationalError: could not translate host name "db" to address: nodename nor servname provided, or not known',
            ),
            runs("DB_HOST=localhost python manage.py migrate", "No migrations to apply."),
        ),
        (
            fails(
                "python manage.py shell -c 'print(1)'",
                'django.db.utils.OperationalError: could not translate host name "db" to address: Name or service not known',
            ),
        ),
        "DB_HOST=localhost",
        (
            fails(
                "python manage.py shell -c 'print(1)'",
                'django.db.utils.OperationalError: FATAL:  database "shop" does not exist',
            ),
        ),
    ),
    Case(
        "ruff: the formatter",
        (
            fails(
                "ruff format --check .",
                "Would reformat: src/shop/cart.py\n1 file would be reformatted, 40 files already formatted",
            ),
            runs("ruff format ."),
            runs("ruff format --check .", "41 files already formatted"),
        ),
        (
            fails(
                "uv run ruff format --check src",
                "Would reformat: src/shop/mail.py\nWould reformat: src/shop/plans.py\n2 files would be reformatted, 40 files already formatted",
            ),
        ),
        "ruff format",
        (
            fails(
                "uv run ruff check src",
                "src/shop/mail.py:3:8: F401 [*] `os` imported but unused\nFound 1 error.",
            ),
        ),
    ),
    Case(
        "dotnet: another SDK",
        (
            fails(
                "dotnet build",
                "/usr/lib/dotnet/sdk/8.0.110/Sdks/Microsoft.NET.Sdk/targets/Microsoft.NET.TargetFrameworkInference.targets(166,5): error NETSDK1045: The current .NET SDK does not support targeting .NET 9.0. [/home/ada/shop/Shop.csproj]",
            ),
            runs('export PATH="$HOME/.dotnet:$PATH" && dotnet build', "Build succeeded."),
        ),
        (
            fails(
                "dotnet test tests/Shop.Tests",
                "/usr/lib/dotnet/sdk/8.0.404/Sdks/Microsoft.NET.Sdk/targets/Microsoft.NET.TargetFrameworkInference.targets(166,5): error NETSDK1045: The current .NET SDK does not support targeting .NET 9.0. [/srv/w/tests/Shop.Tests/Shop.Tests.csproj]",
            ),
        ),
        ".dotnet",
        (
            fails(
                "dotnet test tests/Shop.Tests",
                "/srv/w/tests/Shop.Tests/CartTests.cs(14,9): error CS0103: The name 'Total' does not exist in the current context [/srv/w/tests/Shop.Tests/Shop.Tests.csproj]",
            ),
        ),
    ),
    Case(
        "maven: a release of Java",
        (
            fails(
                "mvn -q compile",
                "[ERROR] COMPILATION ERROR :\n[ERROR] Failed to execute goal org.apache.maven.plugins:maven-compiler-plugin:3.11.0:compile (default-compile) on project api: Fatal error compiling: error: release version 21 not supported -> [Help 1]",
            ),
            runs("JAVA_HOME=/usr/lib/jvm/java-21 mvn -q compile"),
        ),
        (
            fails(
                "mvn test -pl worker",
                "[ERROR] Failed to execute goal org.apache.maven.plugins:maven-compiler-plugin:3.13.0:testCompile (default-testCompile) on project worker: Fatal error compiling: error: release version 21 not supported -> [Help 1]",
            ),
        ),
        "java-21",
        (
            fails(
                "mvn test -pl worker",
                "[ERROR] COMPILATION ERROR :\n[ERROR] /srv/w/worker/src/main/java/A.java:[3,8] cannot find symbol\n[ERROR] Failed to execute goal org.apache.maven.plugins:maven-compiler-plugin:3.13.0:compile (default-compile) on project worker: Compilation failure",
            ),
        ),
    ),
    Case(
        "node: too few watchers",
        (
            fails(
                "npm run dev",
                "> vite\n\nError: ENOSPC: System limit for number of file watchers reached, watch '/home/ada/shop/vite.config.ts'\n    at FSWatcher.<computed> (node:internal/fs/watchers:247:19)",
            ),
            runs(
                "sudo sysctl fs.inotify.max_user_watches=524288",
                "fs.inotify.max_user_watches = 524288",
            ),
            runs("npm run dev", "ready in 300 ms"),
        ),
        (
            fails(
                "npx vitest",
                "Error: ENOSPC: System limit for number of file watchers reached, watch '/srv/w/src/cart'\n    at FSWatcher.<computed> (node:internal/fs/watchers:247:19)",
            ),
        ),
        "fs.inotify.max_user_watches",
        (fails("npm run build", "Error: ENOSPC: no space left on device, write"),),
    ),
    Case(
        "wrangler: a token",
        (
            fails(
                "npx wrangler deploy",
                "✘ [ERROR] In a non-interactive environment, it's necessary to set a CLOUDFLARE_API_TOKEN environment variable for wrangler to work.",
            ),
            runs(
                "set -a && source .dev.vars && set +a && npx wrangler deploy",
                "Deployed shop triggers",
            ),
        ),
        (
            fails(
                "npx wrangler d1 migrations apply shop --remote",
                "✘ [ERROR] In a non-interactive environment, it's necessary to set a CLOUDFLARE_API_TOKEN environment variable for wrangler to work.",
            ),
        ),
        "source .dev.vars",
        (
            fails(
                "npx wrangler d1 migrations apply shopp --remote",
                "✘ [ERROR] Couldn't find a D1 DB with the name or binding 'shopp' in your wrangler.toml file.",
            ),
        ),
    ),
    Case(
        "gh: how to merge",
        (
            fails(
                "gh pr merge 12",
                "--merge, --rebase, or --squash required when not running interactively",
            ),
            runs("gh pr merge 12 --squash", "✓ Squashed and merged pull request #12"),
        ),
        (
            fails(
                "gh pr merge 41 --delete-branch",
                "--merge, --rebase, or --squash required when not running interactively",
            ),
        ),
        "--squash",
        (
            fails(
                "gh pr merge 41 --squash",
                "X Pull request ada/shop#41 is not mergeable: the merge commit cannot be cleanly created.",
            ),
        ),
    ),
    Case(
        "git: a worktree's folder that is left",
        (
            fails("git worktree add ../wt-cart -b cart2", "fatal: '../wt-cart' already exists"),
            runs("git worktree remove --force ../wt-cart"),
            runs("git worktree add ../wt-cart -b cart2", "Preparing worktree (new branch 'cart2')"),
        ),
        (fails("git worktree add ../wt-cart -b cart3", "fatal: '../wt-cart' already exists"),),
        "git worktree remove --force",
        (
            fails(
                "git worktree add ../wt-mail -b mail", "fatal: a branch named 'mail' already exists"
            ),
        ),
    ),
    Case(
        "bun: packages",
        (
            fails(
                "bun test",
                "error: Cannot find package 'zod' from '/home/ada/shop/src/cart.ts'\n\n 0 pass\n 1 fail",
            ),
            runs("bun install", "41 packages installed [1.20s]"),
            runs("bun test", " 12 pass\n 0 fail"),
        ),
        (
            hides(
                "bun test src/mail 2>&1 | tail -20",
                "error: Cannot find package 'zod' from '/srv/w/src/mail.ts'\n\n 0 pass\n 1 fail\nRan 1 tests across 1 files. [31.00ms]",
            ),
        ),
        "bun install",
    ),
    Case(
        "a tool of a server: what it needs",
        (
            calls("mcp__tracker__create", "Missing required parameter: team", True, title="Cache"),
            calls("mcp__tracker__create", "SHOP-12", title="Cache", team="SHOP"),
        ),
        (
            calls(
                "mcp__tracker__create", "Missing required parameter: team", True, title="Plans page"
            ),
        ),
        "team=SHOP",
        (calls("mcp__tracker__create", "Title is too long", True, title="x" * 100),),
    ),
    Case(
        "mysql: a socket",
        (
            fails(
                "mysql -u root shop -e 'show tables'",
                "ERROR 2002 (HY000): Can't connect to local MySQL server through socket '/var/run/mysqld/mysqld.sock' (2)",
            ),
            runs("mysql -h 127.0.0.1 -u root shop -e 'show tables'", "users"),
        ),
        (
            fails(
                "mysql -u root shop -e 'select 1'",
                "ERROR 2002 (HY000): Can't connect to local MySQL server through socket '/tmp/mysql.sock' (2)",
            ),
        ),
        "-h 127.0.0.1",
        (
            fails(
                "mysql -u root shop -e 'selct 1'",
                "ERROR 1064 (42000) at line 1: You have an error in your SQL syntax",
            ),
        ),
    ),
    Case(
        "a certificate of a proxy",
        (
            fails(
                "npm ci",
                "npm error code SELF_SIGNED_CERT_IN_CHAIN\nnpm error errno SELF_SIGNED_CERT_IN_CHAIN\nnpm error request to https://registry.example.com/zod failed, reason: self-signed certificate in certificate chain",
            ),
            runs("export NODE_EXTRA_CA_CERTS=/etc/ssl/proxy.pem && npm ci", "added 300 packages"),
        ),
        (
            fails(
                "npx create-vite@latest web",
                "npm error code SELF_SIGNED_CERT_IN_CHAIN\nnpm error errno SELF_SIGNED_CERT_IN_CHAIN\nnpm error request to https://registry.example.com/create-vite failed, reason: self-signed certificate in certificate chain",
            ),
        ),
        "NODE_EXTRA_CA_CERTS",
    ),
    Case(
        "protoc",
        (
            fails(
                "cargo build",
                'error: failed to run custom build command for `api v0.1.0 (/home/ada/shop/api)`\n\nCaused by:\n  process didn\'t exit successfully: `/home/ada/shop/target/debug/build/api-0a1b2c3d4e5f6071/build-script-build` (exit status: 1)\n  --- stderr\n  Error: Custom { kind: NotFound, error: "Could not find `protoc`. If `protoc` is installed, try setting the `PROTOC` environment variable" }',
            ),
            runs("brew install protobuf", "protobuf 29.1 installed"),
            runs("cargo build", "Finished `dev` profile"),
        ),
        (
            fails(
                "cargo test -p worker",
                'error: failed to run custom build command for `worker v0.1.0 (/srv/w/worker)`\n\nCaused by:\n  process didn\'t exit successfully: `/srv/w/target/debug/build/worker-99aa88bb77cc66dd/build-script-build` (exit status: 1)\n  --- stderr\n  Error: Custom { kind: NotFound, error: "Could not find `protoc`. If `protoc` is installed, try setting the `PROTOC` environment variable" }',
            ),
        ),
        "brew install protobuf",
    ),
    Case(
        "a hand-made mistake in a config",
        (
            fails(
                "npm run lint",
                "> eslint .\n\nSyntaxError: Unexpected token '}'\n    at compileSourceTextModule (node:internal/modules/esm/utils:337:16)",
            ),
            edits("eslint.config.js", "},} → }"),
            runs("npm run lint"),
        ),
        (
            fails(
                "node scripts/x.mjs",
                "file:///srv/w/scripts/x.mjs:9\n  }}\n   ^\nSyntaxError: Unexpected token '}'\n    at compileSourceTextModule (node:internal/modules/esm/utils:337:16)",
            ),
        ),
        "",
    ),
    Case(
        "an import that was forgotten",
        (
            fails(
                "pytest -q",
                "E   NameError: name 'datetime' is not defined\nFAILED tests/test_cart.py::test_a - NameError: name 'datetime' is not defined",
            ),
            edits("src/cart.py", "import os → import os, datetime"),
            runs("pytest -q", "9 passed"),
        ),
        (
            fails(
                "pytest -q",
                "E   NameError: name 'datetime' is not defined\nFAILED tests/test_mail.py::test_b - NameError: name 'datetime' is not defined",
            ),
        ),
        "",
    ),
    Case(
        "a branch that was not there yet",
        (
            fails(
                "git push origin HEAD:refs/heads/x/y",
                "error: src refspec nowhere does not match any\nerror: failed to push some refs to 'origin'",
            ),
            runs("git commit --allow-empty -m start", "[x 1a2b3c4] start"),
            runs("git status", "clean"),
        ),
        (
            fails(
                "git push origin nowhere",
                "error: src refspec nowhere does not match any\nerror: failed to push some refs to 'origin'",
            ),
        ),
        "",
    ),
)
