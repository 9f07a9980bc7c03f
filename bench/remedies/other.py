"""Failures of tools and ecosystems that no other set has, written before the code that looks them up was opened for this purpose.

Half of the cases have a fix that holds again; the other half were never fixed, or were fixed in a way that says nothing about the next failure.
"""

from case import Case, calls, edits, fails, hides, runs

CASES = (
    # ---- the same failure, with a fix that holds again
    Case(
        "mix: dependencies that were never fetched",
        (
            fails("mix test", "Unchecked dependencies for environment test:\n* jason (Hex package)\n  the dependency is not available, run \"mix deps.get\"\n** (Mix) Can't continue due to errors on dependencies"),
            runs("mix deps.get", "* Getting jason (Hex package)"),
            runs("mix test", "12 tests, 0 failures"),
        ),
        (fails("mix phx.server", "Unchecked dependencies for environment dev:\n* bandit (Hex package)\n  the dependency is not available, run \"mix deps.get\"\n** (Mix) Can't continue due to errors on dependencies"),),
        "mix deps.get",
        (fails("mix phx.server", "** (Mix) The task \"phx.server\" could not be found\nNote no mix.exs was found in the current directory"),),
    ),
    Case(
        "mix: the database of the tests is not there",
        (
            fails("mix test test/shop/cart_test.exs", "** (Postgrex.Error) FATAL 3D000 (invalid_catalog_name) database \"shop_test\" does not exist"),
            runs("MIX_ENV=test mix ecto.create", "The database for Shop.Repo has been created"),
            runs("mix test test/shop/cart_test.exs", "4 tests, 0 failures"),
        ),
        (fails("mix test --only integration", "14:02:11.120 [error] Postgrex.Protocol (#PID<0.310.0>) failed to connect: ** (Postgrex.Error) FATAL 3D000 (invalid_catalog_name) database \"shop_test\" does not exist"),),
        "mix ecto.create",
        (fails("mix test", "** (Postgrex.Error) ERROR 42703 (undefined_column) column c0.coupon does not exist"),),
    ),
    Case(
        "flutter: generated code is missing",
        (
            fails("flutter test", "lib/models/cart.dart:4:6: Error: Error when reading 'lib/models/cart.g.dart': No such file or directory\npart 'cart.g.dart';"),
            runs("ls lib/models", "cart.dart"),
            runs("dart run build_runner build --delete-conflicting-outputs", "[INFO] Succeeded after 11.2s with 9 outputs"),
            runs("flutter test", "00:04 +18: All tests passed!"),
        ),
        (fails("flutter build apk", "lib/models/order.dart:3:6: Error: Error when reading 'lib/models/order.g.dart': No such file or directory\npart 'order.g.dart';"),),
        "build_runner build",
        (fails("flutter build apk", "lib/models/order.dart:9:3: Error: Type 'Decimal' not found."),),
    ),
    Case(
        "bazel: a lock of another server",
        (
            fails("bazel build //services/api", "Another command (pid=4312) is running. Waiting for it to complete on the server (server_pid=4101)...\nERROR: Timed out waiting for the lock of the output base"),
            runs("bazel shutdown"),
            runs("bazel build //services/api", "INFO: Build completed successfully, 31 total actions"),
        ),
        (fails("bazel test //web/...", "Another command (pid=991) is running. Waiting for it to complete on the server (server_pid=870)...\nERROR: Timed out waiting for the lock of the output base"),),
        "bazel shutdown",
        (fails("bazel test //web/...", "ERROR: no such package 'web': BUILD file not found in any of the following directories."),),
    ),
    Case(
        "ansible: a collection",
        (
            fails("ansible-playbook site.yml", "ERROR! couldn't resolve module/action 'community.postgresql.postgresql_db'. This often indicates a misspelling, missing collection, or incorrect module path."),
            runs("ansible-galaxy collection install -r requirements.yml", "community.postgresql:3.4.0 was installed successfully"),
            runs("ansible-playbook site.yml", "PLAY RECAP ok=11 failed=0"),
        ),
        (fails("ansible-playbook -i staging db.yml --check", "ERROR! couldn't resolve module/action 'community.postgresql.postgresql_user'. This often indicates a misspelling, missing collection, or incorrect module path."),),
        "ansible-galaxy collection install",
        (fails("ansible-playbook db.yml", "ERROR! the playbook: db.yml could not be found"),),
    ),
    Case(
        "playwright: browsers",
        (
            fails("npx playwright test", "Error: browserType.launch: Executable doesn't exist at /home/ada/.cache/ms-playwright/chromium-1140/chrome-linux/chrome\n╔════╗\n║ Looks like Playwright Test or Playwright was just installed or updated. ║"),
            runs("npx playwright install chromium --with-deps", "Chromium 130.0 downloaded"),
            runs("npx playwright test", "6 passed (9.1s)"),
        ),
        (fails("pnpm e2e --grep checkout", "Error: browserType.launch: Executable doesn't exist at /home/bo/.cache/ms-playwright/chromium-1155/chrome-linux/chrome\n╔════╗\n║ Looks like Playwright Test or Playwright was just installed or updated. ║"),),
        "playwright install",
        (fails("pnpm e2e --grep checkout", "Error: Timed out waiting 60000ms from config.webServer."),),
    ),
    Case(
        "apt: stale lists",
        (
            fails("apt-get install -y libpq-dev", "E: Failed to fetch http://mirror.example.org/debian/pool/main/p/postgresql-15/libpq-dev_15.5-0.deb  404  Not Found [IP: 151.101.2.132 80]\nE: Unable to fetch some archives, maybe run apt-get update or try with --fix-missing?"),
            runs("apt-get update", "Reading package lists... Done"),
            runs("apt-get install -y libpq-dev", "Setting up libpq-dev (15.8-0)"),
        ),
        (fails("apt-get install -y libvips-dev", "E: Failed to fetch http://mirror.example.org/debian/pool/main/v/vips/libvips-dev_8.14.deb  404  Not Found [IP: 146.75.118.132 80]\nE: Unable to fetch some archives, maybe run apt-get update or try with --fix-missing?"),),
        "apt-get update",
        (fails("apt-get install -y libvips", "E: Unable to locate package libvips"),),
    ),
    Case(
        "dbt: packages",
        (
            fails("dbt run --select orders", "Compilation Error\n  dbt found 2 package(s) specified in packages.yml, but only 0 package(s) installed in dbt_packages. Run \"dbt deps\" to install package dependencies."),
            runs("dbt deps", "Installed from version 1.3.0"),
            runs("dbt run --select orders", "Completed successfully"),
        ),
        (fails("dbt test", "Compilation Error\n  dbt found 3 package(s) specified in packages.yml, but only 2 package(s) installed in dbt_packages. Run \"dbt deps\" to install package dependencies."),),
        "dbt deps",
    ),
    Case(
        "dbt: the profile lies in the repository",
        (
            fails("dbt compile", "Runtime Error\n  Could not find profile named 'shop'"),
            runs("ls analytics", "dbt_project.yml profiles.yml"),
            runs("dbt compile --profiles-dir analytics", "Found 31 models"),
        ),
        (fails("dbt build --select carts", "Runtime Error\n  Could not find profile named 'shop'"),),
        "--profiles-dir analytics",
        (fails("dbt build --select carts", "Runtime Error\n  The selection criterion 'carts' does not match any nodes"),),
    ),
    Case(
        "cabal: the package list",
        (
            fails("cabal build", "Error: [Cabal-7107]\nCould not resolve dependencies:\n[__0] trying: shop-0.1.0.0 (user goal)\n[__1] unknown package: servant-server (dependency of shop)"),
            runs("cabal update", "Package list of hackage.haskell.org has been updated."),
            runs("cabal build", "Linking dist-newstyle/build/shop"),
        ),
        (fails("cabal test all", "Error: [Cabal-7107]\nCould not resolve dependencies:\n[__0] trying: shop-0.1.0.0 (user goal)\n[__1] unknown package: aeson-pretty (dependency of shop)"),),
        "cabal update",
    ),
    Case(
        "sbt: memory of the virtual machine",
        (
            fails("sbt test", "[error] java.lang.OutOfMemoryError: Java heap space\n[error] \tat java.base/java.util.Arrays.copyOf(Arrays.java:3537)"),
            runs("SBT_OPTS=-Xmx4g sbt test", "[success] Total time: 71 s"),
        ),
        (fails("sbt assembly", "[info] Strategy 'deduplicate' was applied to 12 files\n[error] java.lang.OutOfMemoryError: Java heap space"),),
        "SBT_OPTS=-Xmx4g",
        (fails("sbt assembly", "[error] Deduplicate found different file contents in the following:\n[error]   META-INF/versions/9/module-info.class"),),
    ),
    Case(
        "latex: a package of the distribution",
        (
            fails("latexmk -pdf thesis.tex", "! LaTeX Error: File `biblatex.sty' not found.\n\nType X to quit or <RETURN> to proceed,"),
            runs("tlmgr install biblatex", "[1/1] install: biblatex"),
            runs("latexmk -pdf thesis.tex", "Output written on thesis.pdf (81 pages)."),
        ),
        (fails("pdflatex -interaction=nonstopmode slides.tex", "! LaTeX Error: File `biblatex.sty' not found.\n! Emergency stop."),),
        "tlmgr install biblatex",
        (fails("pdflatex slides.tex", "! Undefined control sequence.\nl.12 \\toprulee"),),
    ),
    Case(
        "ssh: a key that is not loaded",
        (
            fails("rsync -az dist/ deploy@shop.example:/srv/shop", "deploy@shop.example: Permission denied (publickey).\nrsync: connection unexpectedly closed (0 bytes received so far) [sender]"),
            runs("ssh-add ~/.ssh/deploy_ed25519", "Identity added: deploy"),
            runs("rsync -az dist/ deploy@shop.example:/srv/shop", "sent 4,121 bytes"),
        ),
        (fails("scp backup.sql deploy@shop.example:/srv/", "deploy@shop.example: Permission denied (publickey).\nscp: Connection closed"),),
        "ssh-add ~/.ssh/deploy_ed25519",
        (fails("scp backup.sql deploy@shop.example:/srv/", "scp: dest open \"/srv/backup.sql\": Permission denied"),),
    ),
    Case(
        "gcloud: a project that is not chosen",
        (
            fails("gcloud run deploy api --source .", "ERROR: (gcloud.run.deploy) The required property [project] is not currently set.\nIt can be set on a per-command basis by re-running your command with the [--project] flag."),
            runs("gcloud config set project shop-prod-41", "Updated property [core/project]."),
            runs("gcloud run deploy api --source .", "Service [api] revision [api-00042] has been deployed"),
        ),
        (fails("gcloud builds submit", "ERROR: (gcloud.builds.submit) The required property [project] is not currently set.\nIt can be set on a per-command basis by re-running your command with the [--project] flag."),),
        "shop-prod-41",
        (fails("gcloud builds submit", "ERROR: (gcloud.builds.submit) PERMISSION_DENIED: The caller does not have permission"),),
    ),
    Case(
        "conda: activate",
        (
            fails("conda activate shop && python train.py", "CondaError: Run 'conda init' before 'conda activate'"),
            runs("conda run -n shop python train.py", "epoch 1 loss .31"),
        ),
        (fails("conda activate shop && python evaluate.py", "CondaError: Run 'conda init' before 'conda activate'"),),
        "conda run -n shop",
    ),
    Case(
        "mongo: not a replica set",
        (
            fails("npm run test:orders", "MongoServerError: Transaction numbers are only allowed on a replica set member or mongos\n    at Connection.sendCommand"),
            runs("cat docker-compose.yml", "mongo:\n  command: mongod --replSet rs0"),
            runs("docker compose exec mongo mongosh --eval 'rs.initiate()'", "{ ok: 1 }"),
            runs("npm run test:orders", "8 passing"),
        ),
        (fails("npx mocha test/payments", "  1) refunds\n     MongoServerError: Transaction numbers are only allowed on a replica set member or mongos"),),
        "rs.initiate()",
        (fails("npx mocha test/payments", "MongoServerError: E11000 duplicate key error collection: shop.payments index: _id_"),),
    ),
    Case(
        "turbo: a package that only exists after a build",
        (
            fails("pnpm --filter web typecheck", "src/app.ts(1,24): error TS2307: Cannot find module '@shop/ui' or its corresponding type declarations."),
            runs("pnpm --filter @shop/ui build", "dist/index.d.ts"),
            runs("pnpm --filter web typecheck"),
        ),
        (fails("pnpm --filter admin typecheck", "src/main.ts(3,20): error TS2307: Cannot find module '@shop/ui' or its corresponding type declarations."),),
        "pnpm --filter @shop/ui build",
        (fails("pnpm --filter admin typecheck", "src/main.ts(3,20): error TS2307: Cannot find module './routes/refunds' or its corresponding type declarations."),),
    ),
    Case(
        "zig: another version",
        (
            fails("zig build", "build.zig:7:14: error: no field named 'root_source_file' in struct 'Build.ExecutableOptions'"),
            runs("zig version", "0.15.1"),
            runs("mise exec zig@0.13.0 -- zig build", ""),
        ),
        (fails("zig build test", "build.zig:19:14: error: no field named 'root_source_file' in struct 'Build.TestOptions'"),),
        "mise exec zig@0.13.0",
    ),
    Case(
        "ffmpeg: an encoder",
        (
            fails("ffmpeg -i intro.mov -c:v libx265 intro.mp4", "Unknown encoder 'libx265'"),
            runs("ffmpeg -hide_banner -encoders | grep 265", ""),
            runs("/opt/ffmpeg-full/bin/ffmpeg -i intro.mov -c:v libx265 intro.mp4", "frame= 812"),
        ),
        (fails("ffmpeg -y -i demo.mov -c:v libx265 -crf 28 demo.mp4", "[vost#0:0 @ 0x5591] Unknown encoder 'libx265'\nError selecting an encoder"),),
        "/opt/ffmpeg-full/bin/ffmpeg",
        (fails("ffmpeg -i demo.mov demo.mp4", "demo.mov: No such file or directory"),),
    ),
    Case(
        "kafka: a topic",
        (
            fails("python scripts/replay_orders.py", "cimpl.KafkaException: KafkaError{code=UNKNOWN_TOPIC_OR_PART,val=3,str=\"Subscribed topic not available: orders.v2: Broker: Unknown topic or partition\"}"),
            runs("./scripts/create-topics.sh", "Created topic orders.v2."),
            runs("python scripts/replay_orders.py", "replayed 120"),
        ),
        (fails("pytest tests/stream -q", "E   cimpl.KafkaException: KafkaError{code=UNKNOWN_TOPIC_OR_PART,val=3,str=\"Subscribed topic not available: refunds.v1: Broker: Unknown topic or partition\"}\n1 failed in 4.20s"),),
        "create-topics.sh",
        (fails("pytest tests/stream -q", "E   AssertionError: assert 119 == 120\n1 failed in 3.01s"),),
    ),
    Case(
        "artisan: the application key",
        (
            fails("php artisan test", "Illuminate\\Encryption\\MissingAppKeyException: No application encryption key has been specified."),
            runs("cp .env.example .env && php artisan key:generate", "Application key set successfully."),
            runs("php artisan test", "Tests: 31 passed"),
        ),
        (fails("vendor/bin/phpunit --filter Cart", "There was 1 error:\n1) CartTest::test_total\nIlluminate\\Encryption\\MissingAppKeyException: No application encryption key has been specified."),),
        "php artisan key:generate",
    ),
    Case(
        "just: recipes of a folder",
        (
            fails("just seed", "error: Justfile does not contain recipe `seed`."),
            runs("just --list", "Available recipes:\n    db::seed"),
            runs("just db::seed", "seeded 40 carts"),
        ),
        (fails("just seed", "error: Justfile does not contain recipe `seed`."),),
        "just db::seed",
        (fails("just lint", "error: Justfile does not contain recipe `lint`."),),
    ),
    Case(
        "systemd: a unit of the user",
        (
            fails("systemctl restart shop-worker", "Failed to restart shop-worker.service: Unit shop-worker.service not found."),
            runs("systemctl --user restart shop-worker"),
        ),
        (fails("systemctl status shop-worker", "Unit shop-worker.service could not be found."),),
        "systemctl --user",
        (fails("systemctl status shop-mailer", "Unit shop-mailer.service could not be found."),),
    ),
    Case(
        "a browser tool that is not connected",
        (
            calls("mcp__chrome__navigate", "Error: No browser connected. Waiting for the extension timed out.", True, url="http://localhost:3000/cart"),
            runs("./scripts/start-chrome.sh", "DevTools listening on ws://127.0.0.1:9222"),
            calls("mcp__chrome__navigate", "Navigated", url="http://localhost:3000/cart"),
        ),
        (calls("mcp__chrome__screenshot", "Error: No browser connected. Waiting for the extension timed out.", True, page="1"),),
        "start-chrome.sh",
        (calls("mcp__chrome__click", "Error: No element matches selector #buy", True, selector="#buy"),),
    ),
    Case(
        "an emulator hidden behind a filter",
        (
            hides("npm run test:rules 2>&1 | tail -20", "FirebaseError: The host and port of the firestore emulator must be specified. (You may wish to use 'firebase emulators:exec' to start the emulator and run tests.)\nTest Suites: 1 failed, 1 total"),
            runs("npx firebase emulators:exec --only firestore 'npm run test:rules'", "Tests: 14 passed, 14 total"),
        ),
        (hides("npm run test:rules -- carts 2>&1 | tail -30", "FirebaseError: The host and port of the firestore emulator must be specified. (You may wish to use 'firebase emulators:exec' to start the emulator and run tests.)\nTest Suites: 1 failed, 2 total"),),
        "firebase emulators:exec",
        (hides("npm run test:rules 2>&1 | tail -20", "expected PERMISSION_DENIED but got success\nTest Suites: 1 failed, 1 total"),),
    ),
    Case(
        "pulumi: a passphrase",
        (
            fails("pulumi preview", "error: getting secrets manager: passphrase must be set with PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE environment variables"),
            runs("PULUMI_CONFIG_PASSPHRASE_FILE=~/.pulumi-pass pulumi preview", "Resources: 12 unchanged"),
        ),
        (fails("pulumi stack output url", "error: getting secrets manager: passphrase must be set with PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE environment variables"),),
        "PULUMI_CONFIG_PASSPHRASE_FILE=",
    ),
    # ---- never fixed, or fixed in a way that says nothing about the next failure
    Case(
        "elixir: a test whose code was written afterwards",
        (
            fails("mix test", "  1) test totals (Shop.CartTest)\n     ** (UndefinedFunctionError) function Shop.Cart.total/1 is undefined or private"),
            edits("lib/shop/cart.ex", "defmodule Shop.Cart do → defmodule Shop.Cart do\n  def total(c), do: c"),
            runs("mix test", "5 tests, 0 failures"),
        ),
        (fails("mix test", "  1) test plans (Shop.PlanTest)\n     ** (UndefinedFunctionError) function Shop.Plan.price/1 is undefined or private"),),
    ),
    Case(
        "a deploy that was refused by quota, given up",
        (
            fails("gcloud run deploy web", "ERROR: (gcloud.run.deploy) RESOURCE_EXHAUSTED: Quota exceeded for total allowable CPU per project per region."),
            runs("gcloud run services list", "api"),
            runs("git status --short", ""),
        ),
        (fails("gcloud run deploy web --region europe-west1", "ERROR: (gcloud.run.deploy) RESOURCE_EXHAUSTED: Quota exceeded for total allowable CPU per project per region."),),
    ),
    Case(
        "haskell: a type error",
        (
            fails("cabal build", "src/Cart.hs:14:9: error: [GHC-83865]\n    • Couldn't match expected type ‘Int’ with actual type ‘Text’"),
            edits("src/Cart.hs", "total = name → total = price"),
            runs("cabal build", "Linking"),
        ),
        (fails("cabal build", "src/Plan.hs:31:12: error: [GHC-83865]\n    • Couldn't match expected type ‘Text’ with actual type ‘Maybe Text’"),),
    ),
    Case(
        "curl: a server that was restarted by somebody",
        (
            fails("curl -fsS https://staging.shop.example/health", "curl: (22) The requested URL returned error: 503"),
            runs("sleep 60"),
            runs("curl -fsS https://staging.shop.example/health", "ok"),
        ),
        (fails("curl -fsS https://staging.shop.example/orders", "curl: (22) The requested URL returned error: 503"),),
    ),
    Case(
        "swift: an exhaustive switch",
        (
            fails("swift build", "Sources/Shop/Cart.swift:22:9: error: switch must be exhaustive\n        switch plan {"),
            edits("Sources/Shop/Cart.swift", "case .free: → case .free, .team:"),
            runs("swift build", "Build complete!"),
        ),
        (fails("swift build", "Sources/Shop/Order.swift:40:5: error: switch must be exhaustive\n    switch state {"),),
    ),
    Case(
        "ansible: a host that is down",
        (
            fails("ansible-playbook site.yml", "fatal: [db1]: UNREACHABLE! => {\"msg\": \"Failed to connect to the host via ssh: ssh: connect to host 10.0.4.7 port 22: No route to host\"}"),
            runs("ansible-playbook site.yml --limit web", "PLAY RECAP failed=0"),
        ),
        (fails("ansible-playbook rotate.yml", "fatal: [cache2]: UNREACHABLE! => {\"msg\": \"Failed to connect to the host via ssh: ssh: connect to host 10.0.9.2 port 22: Connection timed out\"}"),),
    ),
    Case(
        "kotlin: an unresolved reference",
        (
            fails("./gradlew compileKotlin", "e: file:///srv/shop/src/main/kotlin/Cart.kt:8:5 Unresolved reference: couponRate\n> Compilation error. See log for more details"),
            edits("src/main/kotlin/Cart.kt", "couponRate → coupon.rate"),
            runs("./gradlew compileKotlin", "BUILD SUCCESSFUL"),
        ),
        (fails("./gradlew compileKotlin", "e: file:///srv/shop/src/main/kotlin/Plan.kt:51:13 Unresolved reference: seats\n> Compilation error. See log for more details"),),
    ),
    Case(
        "a grep that finds nothing",
        (
            fails("grep -rn couponRate src", ""),
            runs("grep -rn coupon_rate src", "src/a.py:1"),
        ),
        (fails("grep -rn seatPrice src", ""),),
    ),
    Case(
        "an edit whose text was not there",
        (
            calls("Edit", "<tool_use_error>String to replace not found in file.\nString: total = 1</tool_use_error>", True, file_path="{project}/src/cart.py", old_string="total = 1", new_string="total = 2"),
            calls("Read", "total = 0", file_path="{project}/src/cart.py"),
            edits("src/cart.py", "total = 0 → total = 2"),
        ),
        (calls("Edit", "<tool_use_error>String to replace not found in file.\nString: rate = 1</tool_use_error>", True, file_path="{project}/src/plan.py", old_string="rate = 1", new_string="rate = 2"),),
    ),
    Case(
        "prettier: other files every time",
        (
            fails("npx prettier --check src", "[warn] src/cart.tsx\n[warn] Code style issues found in the above file. Run Prettier with --write to fix."),
            edits("src/cart.tsx", "a=1 → a = 1"),
            runs("npx prettier --check src", "All matched files use Prettier code style!"),
        ),
        (fails("npx tsc --noEmit", "src/plan.tsx(4,1): error TS2304: Cannot find name 'plan'."),),
    ),
    Case(
        "a merge that was settled by hand",
        (
            fails("git cherry-pick 9a1b2c3", "error: could not apply 9a1b2c3... Add coupons\nhint: After resolving the conflicts, mark them with \"git add/rm <pathspec>\""),
            edits("src/cart.ts", "<<<<<<< HEAD → const rate = 2"),
            runs("git add src/cart.ts && git cherry-pick --continue --no-edit", "[main 77aa] Add coupons"),
        ),
        (fails("git cherry-pick 41fe001", "error: could not apply 41fe001... Add plans\nhint: After resolving the conflicts, mark them with \"git add/rm <pathspec>\"\nCONFLICT (content): Merge conflict in src/plan.ts"),),
    ),
    Case(
        "a URL that was mistyped",
        (
            calls("WebFetch", "Request failed with status code 404", True, url="https://docs.example/cart/v1", prompt="how"),
            calls("WebFetch", "Carts are …", url="https://docs.example/carts/v1", prompt="how"),
        ),
        (calls("WebFetch", "Request failed with status code 404", True, url="https://docs.example/plans/v2", prompt="how"),),
    ),
    Case(
        "perl: a syntax error, then another task",
        (
            fails("perl -c bin/report.pl", "syntax error at bin/report.pl line 41, near \"}\"\nbin/report.pl had compilation errors."),
            edits("bin/report.pl", "} } → }"),
            runs("perl -c bin/report.pl", "bin/report.pl syntax OK"),
        ),
        (fails("perl -c bin/import.pl", "syntax error at bin/import.pl line 7, near \"my \"\nbin/import.pl had compilation errors."),),
    ),
    Case(
        "R: an object that was misspelt",
        (
            fails("Rscript report.R", "Error: object 'ordrs' not found\nExecution halted"),
            edits("report.R", "ordrs → orders"),
            runs("Rscript report.R", "done"),
        ),
        (fails("Rscript churn.R", "Error: object 'cohort' not found\nExecution halted"),),
    ),
    Case(
        "a benchmark above its limit that passed the next day",
        (
            fails("npm run bench", "p95 412 ms is above the limit of 400 ms"),
            runs("npm run bench", "p95 371 ms"),
        ),
        (fails("npm run bench", "p95 455 ms is above the limit of 400 ms"),),
    ),
    Case(
        "a process that was killed, and something else that ran",
        (
            fails("python train.py --epochs 40", "Killed"),
            runs("free -h", "Mem: 16Gi"),
            runs("python evaluate.py", "accuracy .81"),
        ),
        (fails("python train.py --epochs 10", "Killed"),),
    ),
    Case(
        "psql: a column that does not exist",
        (
            fails("psql shop -c 'select coupon from carts'", "ERROR:  column \"coupon\" does not exist\nLINE 1: select coupon from carts"),
            runs("psql shop -c 'select coupon_code from carts'", " coupon_code"),
        ),
        (fails("psql shop -c 'select seats from plans'", "ERROR:  column \"seats\" does not exist\nLINE 1: select seats from plans"),),
    ),
    Case(
        "a review bot that rejects",
        (
            fails("gh pr merge 12 --squash", "X Pull request acme/shop#12 is not mergeable: the base branch policy prohibits the merge."),
            runs("gh pr view 12 --json reviewDecision", "REVIEW_REQUIRED"),
        ),
        (fails("gh pr merge 19 --squash", "X Pull request acme/shop#19 is not mergeable: the base branch policy prohibits the merge."),),
    ),
    Case(
        "cypress: an assertion",
        (
            fails("npx cypress run --spec cart.cy.ts", "AssertionError: Timed out retrying after 4000ms: Expected to find element: `.total`, but never found it."),
            edits("cypress/e2e/cart.cy.ts", ".total → [data-total]"),
            runs("npx cypress run --spec cart.cy.ts", "1 passing"),
        ),
        (fails("npx cypress run --spec plan.cy.ts", "AssertionError: Timed out retrying after 4000ms: Expected to find element: `.seats`, but never found it."),),
    ),
    Case(
        "a file that another task had removed",
        (
            fails("cat docs/adr/004.md", "cat: docs/adr/004.md: No such file or directory"),
            runs("git log --oneline -3", "aa Remove old records"),
            runs("cat docs/adr/005.md", "# Carts"),
        ),
        (fails("cat docs/adr/009.md", "cat: docs/adr/009.md: No such file or directory"),),
    ),
)  # fmt: skip
