"""Failures written when the rules were finished. Only the totals were looked at."""

from case import Case, calls, edits, fails, hides, runs

CASES = (
    Case(
        "rails: migrations of the tests",
        (
            fails(
                "bin/rails test",
                "ActiveRecord::NoDatabaseError: We could not find your database: shop_test. Available database configurations can be found in config/database.yml.",
            ),
            runs(
                "RAILS_ENV=test bin/rails db:create db:schema:load", "Created database 'shop_test'"
            ),
            runs("bin/rails test", "41 runs, 90 assertions, 0 failures, 0 errors, 0 skips"),
        ),
        (
            fails(
                "bundle exec rspec spec/cart_spec.rb",
                "ActiveRecord::NoDatabaseError:\n  We could not find your database: shop_test. Available database configurations can be found in config/database.yml.",
            ),
        ),
        "db:create",
        (
            fails(
                "bundle exec rspec",
                "Failures:\n\n  1) Cart adds\n     expected: 2\n          got: 1\n\n1 example, 1 failure",
            ),
        ),
    ),
    Case(
        "vite: an old Node",
        (
            fails(
                "npm run build",
                "> vite build\n\nYou are using Node.js 18.19.0. Vite requires Node.js version 20.19+ or 22.12+. Please upgrade your Node.js version.\nTypeError: crypto.hash is not a function",
            ),
            runs("nvm use 22 && npm run build", "✓ built in 2.2s"),
        ),
        (
            fails(
                "npx vite preview",
                "You are using Node.js 18.20.4. Vite requires Node.js version 20.19+ or 22.12+. Please upgrade your Node.js version.\nTypeError: crypto.hash is not a function",
            ),
        ),
        "nvm use 22",
        (
            fails(
                "npx vite build",
                'error during build:\n[vite]: Rollup failed to resolve import "@/cart" from "/srv/w/src/main.ts".',
            ),
        ),
    ),
    Case(
        "poetry: another Python",
        (
            fails(
                "poetry install",
                'The currently activated Python version 3.9.6 is not supported by the project (^3.11).\nTrying to find and use a compatible version.\n\nPoetry was unable to find a compatible version. If you have one, you can explicitly use it via the "env use" command.',
            ),
            runs(
                "poetry env use /opt/homebrew/bin/python3.12",
                "Creating virtualenv shop in /home/ada/.cache",
            ),
            runs("poetry install", "Installing dependencies from lock file"),
        ),
        (
            fails(
                "poetry run pytest",
                'The currently activated Python version 3.9.18 is not supported by the project (^3.11).\nTrying to find and use a compatible version.\n\nPoetry was unable to find a compatible version. If you have one, you can explicitly use it via the "env use" command.',
            ),
        ),
        "poetry env use",
    ),
    Case(
        "buf: a plugin",
        (
            fails(
                "buf generate",
                "Failure: plugin protoc-gen-go: could not find protoc plugin for name go - please make sure protoc-gen-go is installed and present on your $PATH",
            ),
            runs("go install google.golang.org/protobuf/cmd/protoc-gen-go@latest"),
            runs("buf generate"),
        ),
        (
            fails(
                "make proto",
                "buf generate --template buf.gen.yaml\nFailure: plugin protoc-gen-go: could not find protoc plugin for name go - please make sure protoc-gen-go is installed and present on your $PATH\nmake: *** [Makefile:12: proto] Error 1",
            ),
        ),
        "protoc-gen-go@latest",
        (
            fails(
                "make proto",
                "buf generate --template buf.gen.yaml\nproto/cart.proto:14:3:syntax error: unexpected '}'\nmake: *** [Makefile:12: proto] Error 100",
            ),
        ),
    ),
    Case(
        "docker: a full disk",
        (
            fails(
                "docker compose build",
                "failed to solve: write /var/lib/docker/overlay2/9a8b/diff/usr/lib/x.so: no space left on device",
            ),
            runs("docker system df", "Images 40GB"),
            runs("docker system prune -af", "Total reclaimed space: 31GB"),
            runs("docker compose build", "api  Built"),
        ),
        (
            fails(
                "docker build -t api .",
                "ERROR: failed to solve: failed to copy files: copy file range failed: no space left on device",
            ),
        ),
        "docker system prune",
    ),
    Case(
        "git: line ends",
        (
            fails(
                "git apply fix.patch",
                "error: patch failed: src/cart.ts:14\nerror: src/cart.ts: patch does not apply",
            ),
            runs("git apply --ignore-whitespace fix.patch"),
        ),
        (
            fails(
                "git apply plans.patch",
                "error: patch failed: src/plans.ts:3\nerror: src/plans.ts: patch does not apply",
            ),
        ),
        "--ignore-whitespace",
        (
            fails(
                "git apply planss.patch",
                "error: can't open patch 'planss.patch': No such file or directory",
            ),
        ),
    ),
    Case(
        "git: submodules",
        (
            fails(
                "cmake -B build",
                "CMake Error at CMakeLists.txt:9 (add_subdirectory):\n  The source directory\n\n    /home/ada/shop/third_party/fmt\n\n  does not contain a CMakeLists.txt file.",
            ),
            runs(
                "git submodule update --init --recursive",
                "Submodule path 'third_party/fmt': checked out '1a2b3c4'",
            ),
            runs("cmake -B build", "-- Configuring done"),
        ),
        (
            fails(
                "cmake -S . -B out -G Ninja",
                "CMake Error at CMakeLists.txt:9 (add_subdirectory):\n  The source directory\n\n    /srv/w/third_party/fmt\n\n  does not contain a CMakeLists.txt file.",
            ),
        ),
        "git submodule update",
        (
            fails(
                "cmake -B build",
                "CMake Error at CMakeLists.txt:1 (cmake_minimum_required):\n  CMake 3.28 or higher is required.  You are running version 3.22.1",
            ),
        ),
    ),
    Case(
        "gh: a workflow that cannot be started",
        (
            fails(
                "gh workflow run deploy.yml",
                "could not create workflow dispatch event: HTTP 422: Workflow does not have 'workflow_dispatch' trigger (https://api.github.com/repos/ada/shop/actions/workflows/1/dispatches)",
            ),
            edits(".github/workflows/deploy.yml", "on: push → on: [push, workflow_dispatch]"),
            runs("git push", "main -> main"),
            runs("gh workflow run deploy.yml", "✓ Created workflow_dispatch event"),
        ),
        (
            fails(
                "gh workflow run nightly.yml --ref main",
                "could not create workflow dispatch event: HTTP 422: Workflow does not have 'workflow_dispatch' trigger (https://api.github.com/repos/ada/shop/actions/workflows/2/dispatches)",
            ),
        ),
        "workflow_dispatch",
        (fails("gh workflow run nihgtly.yml", "could not find any workflows named nihgtly.yml"),),
    ),
    Case(
        "psycopg: a role's password",
        (
            fails(
                "python seed.py",
                'psycopg.OperationalError: connection failed: connection to server at "127.0.0.1", port 5432 failed: FATAL:  password authentication failed for user "shop"',
            ),
            runs(
                "docker compose down -v && docker compose up -d db", "Container shop-db-1  Started"
            ),
            runs("python seed.py", "seeded"),
        ),
        (
            fails(
                "alembic upgrade head",
                'sqlalchemy.exc.OperationalError: (psycopg.OperationalError) connection failed: connection to server at "127.0.0.1", port 5432 failed: FATAL:  password authentication failed for user "shop"',
            ),
        ),
        "docker compose down -v",
    ),
    Case(
        "deno: permissions",
        (
            fails(
                "deno test",
                'error: Uncaught (in promise) NotCapable: Requires env access to "DATABASE", run again with the --allow-env flag',
            ),
            runs("deno test -A", "ok | 12 passed | 0 failed"),
        ),
        (
            fails(
                "deno test src/cart_test.ts",
                'error: Uncaught (in promise) NotCapable: Requires env access to "DATABASE", run again with the --allow-env flag',
            ),
        ),
        "deno test -A",
    ),
    Case(
        "tofu: a plugin's cache",
        (
            fails(
                "tofu init",
                "╷\n│ Error: Failed to install provider\n│ \n│ Error while installing hashicorp/aws v5.31.0: the local package for registry.opentofu.org/hashicorp/aws 5.31.0 doesn't match any of the checksums previously recorded in the dependency lock file\n╵",
            ),
            runs("tofu providers lock -platform=linux_amd64 -platform=darwin_arm64", "Success!"),
            runs("tofu init", "OpenTofu has been successfully initialized!"),
        ),
        (
            fails(
                "tofu init -upgrade",
                "╷\n│ Error: Failed to install provider\n│ \n│ Error while installing hashicorp/aws v5.40.0: the local package for registry.opentofu.org/hashicorp/aws 5.40.0 doesn't match any of the checksums previously recorded in the dependency lock file\n╵",
            ),
        ),
        "tofu providers lock",
    ),
    Case(
        "pnpm: the store of another version",
        (
            fails(
                "pnpm install",
                ' ERR_PNPM_UNEXPECTED_STORE  Unexpected store location\n\nThe dependencies at "/home/ada/shop/node_modules" are currently linked from the store at "/home/ada/.pnpm-store/v3".',
            ),
            runs("rm -rf node_modules"),
            runs("pnpm install", "Done in 11s"),
        ),
        (
            fails(
                "pnpm add -D tsx",
                ' ERR_PNPM_UNEXPECTED_STORE  Unexpected store location\n\nThe dependencies at "/srv/w/node_modules" are currently linked from the store at "/srv/.pnpm-store/v3".',
            ),
        ),
        "rm -rf node_modules",
    ),
    Case(
        "storybook behind a pipe",
        (
            fails(
                "npx storybook build",
                "Error: Cannot find module 'react-docgen'\nRequire stack:\n- /home/ada/shop/node_modules/x.js",
            ),
            runs("npm i -D react-docgen", "added 1 package"),
            runs("npx storybook build", "Output directory: storybook-static"),
        ),
        (
            hides(
                "npm run build-storybook > /tmp/sb.log 2>&1; tail -30 /tmp/sb.log",
                "> storybook build\n\nError: Cannot find module 'react-docgen'\nRequire stack:\n- /srv/w/node_modules/x.js\nnpm error Lifecycle script `build-storybook` failed with error:",
            ),
        ),
        "npm i -D react-docgen",
    ),
    Case(
        "swift: a tool of Xcode",
        (
            fails(
                "xcrun simctl list",
                'xcrun: error: unable to find utility "simctl", not a developer tool or in PATH',
            ),
            runs("sudo xcode-select -s /Applications/Xcode.app"),
            runs("xcrun simctl list", "== Devices =="),
        ),
        (
            fails(
                "xcrun simctl boot 'iPhone 16'",
                'xcrun: error: unable to find utility "simctl", not a developer tool or in PATH',
            ),
        ),
        "xcode-select -s",
    ),
    Case(
        "kubectl: a context",
        (
            fails(
                "kubectl get pods -n shop",
                "Unable to connect to the server: dial tcp: lookup k8s.shop.internal: no such host",
            ),
            runs("kubectl config use-context shop-dev", 'Switched to context "shop-dev".'),
            runs("kubectl get pods -n shop", "api-0 1/1 Running"),
        ),
        (
            fails(
                "kubectl apply -f deploy/",
                "Unable to connect to the server: dial tcp: lookup k8s.shop.internal on 127.0.0.53:53: no such host",
            ),
        ),
        "kubectl config use-context",
        (fails("kubectl apply -f deployy/", 'error: the path "deployy/" does not exist'),),
    ),
    Case(
        "a tool of a server: the form of an id",
        (
            calls(
                "mcp__crm__get",
                "Invalid value for customer_id: expected a number",
                True,
                customer_id="C-12",
            ),
            calls("mcp__crm__get", "Ada", customer_id="12"),
        ),
        (
            calls(
                "mcp__crm__get",
                "Invalid value for customer_id: expected a number",
                True,
                customer_id="C-77",
            ),
        ),
        "customer_id=12",
        (calls("mcp__crm__get", "Customer not found", True, customer_id="99"),),
    ),
    Case(
        "a value that a test expected",
        (
            fails(
                "go test ./cart",
                "--- FAIL: TestTotal (0.00s)\n    cart_test.go:14: got 3, want 4\nFAIL\nFAIL\tshop/cart\t0.01s",
            ),
            edits("cart/cart.go", "a + b → a + b + 1"),
            runs("go test ./cart", "ok  \tshop/cart\t0.01s"),
        ),
        (
            fails(
                "go test ./cart",
                "--- FAIL: TestRound (0.00s)\n    cart_test.go:31: got 7, want 8\nFAIL\nFAIL\tshop/cart\t0.01s",
            ),
        ),
        "",
    ),
    Case(
        "an unused import",
        (
            fails("go vet ./...", '# shop/mail\nmail/mail.go:4:2: "fmt" imported and not used'),
            edits("mail/mail.go", 'import "fmt" → '),
            runs("go vet ./..."),
        ),
        (fails("go vet ./...", '# shop/cart\ncart/cart.go:5:2: "os" imported and not used'),),
        "",
    ),
    Case(
        "a url that was mistyped",
        (
            fails(
                "curl -sf https://example.org/heath",
                "curl: (22) The requested URL returned error: 404",
            ),
            runs("curl -sf https://example.org/health", "ok"),
        ),
        (
            fails(
                "curl -sf https://example.org/orders",
                "curl: (22) The requested URL returned error: 404",
            ),
        ),
        "",
    ),
    Case(
        "a network that was down",
        (
            fails(
                "npm ci",
                "npm error code ECONNRESET\nnpm error network aborted\nnpm error network This is a problem related to network connectivity.",
            ),
            runs("npm ci", "added 300 packages"),
        ),
        (
            fails(
                "npm ci",
                "npm error code ECONNRESET\nnpm error network aborted\nnpm error network This is a problem related to network connectivity.",
            ),
        ),
        "",
    ),
)
