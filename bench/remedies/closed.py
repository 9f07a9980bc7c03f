"""A second set of other tools, written together with `other.py`, before any change was made for that set. Only its totals were looked at."""

from case import Case, calls, edits, fails, hides, runs

CASES = (
    # ---- with a fix that holds again
    Case(
        "nix: experimental features",
        (
            fails("nix develop -c make check", "error: experimental Nix feature 'nix-command' is disabled; add '--extra-experimental-features nix-command' to enable it"),
            runs("nix --extra-experimental-features 'nix-command flakes' develop -c make check", "ok"),
        ),
        (fails("nix build .#shop", "error: experimental Nix feature 'nix-command' is disabled; add '--extra-experimental-features nix-command' to enable it"),),
        "--extra-experimental-features",
        (fails("nix build .#shopp", "error: flake 'git+file:///srv/shop' does not provide attribute 'packages.x86_64-linux.shopp'"),),
    ),
    Case(
        "expo: a stale cache of Metro",
        (
            fails("npx expo export", "error: Unable to resolve module ./Cart from /srv/shop/app/index.tsx: none of these files exist:\n  * app/Cart(.ios.ts|.native.ts|.ts)"),
            runs("ls app", "Cart.tsx index.tsx"),
            runs("rm -rf node_modules/.cache && npx expo export --clear", "Exported: dist"),
        ),
        (fails("npx expo start --no-dev", "error: Unable to resolve module ./Cart from /home/bo/shop/app/index.tsx: none of these files exist:\n  * app/Cart(.ios.ts|.native.ts|.ts)"),),
        "--clear",
    ),
    Case(
        "mise: a file that is not trusted",
        (
            fails("mise run check", "mise ERROR Config files in ~/shop/mise.toml are not trusted.\nTrust them with `mise trust`. See https://mise.jdx.dev/cli/trust.html for more information."),
            runs("mise trust", "mise trusted ~/shop"),
            runs("mise run check", "ok"),
        ),
        (fails("mise install", "mise ERROR Config files in ~/w/shop-2/mise.toml are not trusted.\nTrust them with `mise trust`. See https://mise.jdx.dev/cli/trust.html for more information."),),
        "mise trust",
    ),
    Case(
        "pg_dump: the version of the server",
        (
            fails("pg_dump shop > shop.sql", "pg_dump: error: aborting because of server version mismatch\npg_dump: detail: server version: 16.2; pg_dump version: 14.11"),
            runs("docker compose exec db pg_dump -U shop shop > shop.sql"),
        ),
        (fails("pg_dump -t carts shop -f carts.sql", "pg_dump: error: aborting because of server version mismatch\npg_dump: detail: server version: 16.4; pg_dump version: 14.11"),),
        "docker compose exec db pg_dump",
        (fails("pg_dump -t cartz shop", "pg_dump: error: no matching tables were found"),),
    ),
    Case(
        "jupyter: a kernel",
        (
            fails("jupyter nbconvert --execute report.ipynb", "jupyter_client.kernelspec.NoSuchKernel: No such kernel named shop"),
            runs("python -m ipykernel install --user --name shop", "Installed kernelspec shop"),
            runs("jupyter nbconvert --execute report.ipynb", "Writing 81234 bytes to report.html"),
        ),
        (fails("papermill churn.ipynb out.ipynb", "jupyter_client.kernelspec.NoSuchKernel: No such kernel named shop"),),
        "ipykernel install",
        (fails("papermill churn.ipynb out.ipynb", "papermill.exceptions.PapermillExecutionError:\nKeyError: 'cohort'"),),
    ),
    Case(
        "hugo: a theme that is a submodule",
        (
            fails("hugo --minify", "Error: error building site: render: failed to render pages: template for shortcode \"note\" not found\nWARN found no layout file for \"html\" for kind \"home\""),
            runs("cat .gitmodules", "[submodule \"themes/docsy\"]"),
            runs("git submodule update --init themes/docsy", "Submodule path 'themes/docsy': checked out"),
            runs("hugo --minify", "Total in 812 ms"),
        ),
        (fails("hugo server -D", "WARN found no layout file for \"html\" for kind \"home\"\nError: error building site: template for shortcode \"note\" not found"),),
        "git submodule update --init",
    ),
    Case(
        "openssl: an old format",
        (
            fails("openssl pkcs12 -in cert.p12 -out cert.pem -nodes", "Error outputting keys and certificates\n4047A5:error:0308010C:digital envelope routines:inner_evp_generic_fetch:unsupported:crypto/evp/evp_fetch.c:355:Global default library context, Algorithm (RC2-40-CBC : 0)"),
            runs("openssl pkcs12 -legacy -in cert.p12 -out cert.pem -nodes"),
        ),
        (fails("openssl pkcs12 -in partner.p12 -nokeys -out partner.pem", "Error outputting keys and certificates\n80AB:error:0308010C:digital envelope routines:inner_evp_generic_fetch:unsupported:crypto/evp/evp_fetch.c:375:Global default library context, Algorithm (RC2-40-CBC : 0)"),),
        "-legacy",
        (fails("openssl pkcs12 -in partner.p12 -nokeys -out partner.pem", "Mac verify error: invalid password?"),),
    ),
    Case(
        "elasticsearch: memory maps",
        (
            fails("docker compose up search", "search-1  | ERROR: [1] bootstrap checks failed. max virtual memory areas vm.max_map_count [65530] is too low, increase to at least [262144]\nsearch-1 exited with code 78"),
            runs("sudo sysctl -w vm.max_map_count=262144", "vm.max_map_count = 262144"),
            runs("docker compose up -d search", "Started"),
        ),
        (fails("docker run --rm opensearchproject/opensearch:2", "ERROR: [1] bootstrap checks failed\n[1]: max virtual memory areas vm.max_map_count [65530] is too low, increase to at least [262144]"),),
        "sysctl -w vm.max_map_count",
    ),
    Case(
        "tox: another interpreter",
        (
            fails("tox -e py312", "py312: skipped because could not find python interpreter with spec(s): py312\n  evaluation failed :( (0.05 seconds)"),
            runs("uv python install 3.12", "Installed Python 3.12.7"),
            runs("uv run --with tox-uv tox -e py312", "py312: OK"),
        ),
        (fails("tox", "py311: OK\npy312: skipped because could not find python interpreter with spec(s): py312\n  evaluation failed :( (9.1 seconds)"),),
        "uv",
    ),
    Case(
        "clang: the linker of another package",
        (
            fails("cmake --build build", "/usr/bin/ld: cannot find -lfmt: No such file or directory\ncollect2: error: ld returned 1 exit status"),
            runs("sudo apt-get install -y libfmt-dev", "Setting up libfmt-dev"),
            runs("cmake --build build", "[100%] Built target shop"),
        ),
        (fails("ninja -C out", "FAILED: tools/importer\n/usr/bin/ld: cannot find -lfmt: No such file or directory\ncollect2: error: ld returned 1 exit status"),),
        "libfmt-dev",
        (fails("ninja -C out", "/usr/bin/ld: cart.o: undefined reference to `shop::total(int)'\ncollect2: error: ld returned 1 exit status"),),
    ),
    Case(
        "aws: a region",
        (
            fails("aws lambda list-functions", "You must specify a region. You can also configure your region by running \"aws configure\"."),
            runs("AWS_REGION=eu-central-1 aws lambda list-functions", "[]"),
        ),
        (fails("aws sqs list-queues", "You must specify a region. You can also configure your region by running \"aws configure\"."),),
        "AWS_REGION=eu-central-1",
        (fails("aws sqs list-queues", "An error occurred (AccessDenied) when calling the ListQueues operation"),),
    ),
    Case(
        "rspec: browsers without a display",
        (
            fails("bundle exec rspec spec/system", "Selenium::WebDriver::Error::SessionNotCreatedError: session not created: Chrome failed to start: exited normally.\n(DevToolsActivePort file doesn't exist)"),
            runs("HEADLESS=1 bundle exec rspec spec/system", "14 examples, 0 failures"),
        ),
        (fails("bin/rspec spec/system/checkout_spec.rb", "Failures:\n  1) Checkout\n     Selenium::WebDriver::Error::SessionNotCreatedError: session not created: Chrome failed to start: exited normally.\n     (DevToolsActivePort file doesn't exist)"),),
        "HEADLESS=1",
        (fails("bin/rspec spec/system/checkout_spec.rb", "Capybara::ElementNotFound: Unable to find button \"Pay\""),),
    ),
    Case(
        "a data base tool that needs its schema",
        (
            calls("mcp__postgres__query", "ERROR: relation \"orders\" does not exist", True, sql="select count(*) from orders"),
            calls("mcp__postgres__query", "[{\"count\": 12}]", sql="select count(*) from sales.orders"),
        ),
        (calls("mcp__postgres__query", "ERROR: relation \"orders\" does not exist", True, sql="select id from orders limit 3"),),
        "sales.orders",
        (calls("mcp__postgres__query", "ERROR: relation \"customers\" does not exist", True, sql="select id from customers"),),
    ),
    Case(
        "php: memory of the analyser",
        (
            fails("vendor/bin/phpstan analyse", "PHP Fatal error:  Allowed memory size of 134217728 bytes exhausted (tried to allocate 20480 bytes) in phar:///srv/shop/vendor/phpstan/phpstan/phpstan.phar/src/Type.php on line 41"),
            runs("vendor/bin/phpstan analyse --memory-limit=1G", "[OK] No errors"),
        ),
        (fails("composer stan", "> phpstan analyse src\nPHP Fatal error:  Allowed memory size of 134217728 bytes exhausted (tried to allocate 32768 bytes) in phar:///home/bo/shop/vendor/phpstan/phpstan/phpstan.phar/src/Scope.php on line 9"),),
        "--memory-limit=1G",
        (fails("composer stan", " ------ \n  Line   src/Cart.php\n  12     Parameter #1 $rate of method Cart::total() expects float, string given.\n [ERROR] Found 1 error"),),
    ),
    # ---- never fixed, or fixed in a way that says nothing about the next failure
    Case(
        "scala: a missing value",
        (
            fails("sbt compile", "[error] /srv/shop/src/main/scala/Cart.scala:14:9: not found: value coupon"),
            edits("src/main/scala/Cart.scala", "coupon → cart.coupon"),
            runs("sbt compile", "[success]"),
        ),
        (fails("sbt compile", "[error] /srv/shop/src/main/scala/Plan.scala:3:9: not found: value seats"),),
    ),
    Case(
        "a deploy hook that the platform refused",
        (
            fails("fly deploy", "Error: failed to fetch an image or build from source: error rendering push status stream: unauthorized"),
            runs("fly status", "api started"),
        ),
        (fails("fly deploy --strategy immediate", "Error: failed to fetch an image or build from source: error rendering push status stream: unauthorized"),),
    ),
    Case(
        "ocaml: an unbound module",
        (
            fails("dune build", "File \"lib/cart.ml\", line 3, characters 8-19:\nError: Unbound value coupon_rate"),
            edits("lib/cart.ml", "coupon_rate → Coupon.rate"),
            runs("dune build"),
        ),
        (fails("dune test", "File \"lib/plan.ml\", line 9, characters 2-9:\nError: Unbound value seats"),),
    ),
    Case(
        "a network that came back",
        (
            fails("git fetch origin", "fatal: unable to access 'https://github.com/acme/shop/': Could not resolve host: github.com"),
            runs("ping -c1 1.1.1.1", "1 received"),
            runs("git fetch origin"),
        ),
        (fails("git fetch upstream", "fatal: unable to access 'https://github.com/acme/lib/': Could not resolve host: github.com"),),
    ),
    Case(
        "clojure: an arity",
        (
            fails("lein test", "ERROR in (total-test)\nclojure.lang.ArityException: Wrong number of args (1) passed to: shop.cart/total"),
            edits("test/shop/cart_test.clj", "(total c) → (total c 0)"),
            runs("lein test", "Ran 5 tests. 0 failures, 0 errors."),
        ),
        (fails("lein test", "ERROR in (plan-test)\nclojure.lang.ArityException: Wrong number of args (3) passed to: shop.plan/price"),),
    ),
    Case(
        "a scan that found something else",
        (
            fails("npm audit --audit-level=high", "lodash  <4.17.21\nSeverity: high\n1 high severity vulnerability"),
            runs("npm update lodash", "changed 1 package"),
            runs("npm audit --audit-level=high", "found 0 vulnerabilities"),
        ),
        (fails("npm audit --audit-level=high", "tar  <6.2.1\nSeverity: high\n1 high severity vulnerability"),),
    ),
    Case(
        "the spelling of a test's name",
        (
            fails("mix test test/shop/carts_test.exs", "Paths given to \"mix test\" did not match any directory/file: test/shop/carts_test.exs"),
            runs("mix test test/shop/cart_test.exs", "4 tests, 0 failures"),
        ),
        (fails("mix test test/shop/plans_test.exs", "Paths given to \"mix test\" did not match any directory/file: test/shop/plans_test.exs"),),
    ),
    Case(
        "a pipeline that waits for others",
        (
            fails("glab ci status --live", "Pipeline #8812 failed: lint"),
            edits(".gitlab-ci.yml", "image: node:18 → image: node:20"),
            runs("glab ci status --live", "Pipeline #8815 passed"),
        ),
        (fails("glab ci status --live", "Pipeline #9120 failed: deploy"),),
    ),
    Case(
        "a write that was refused since the file was not read",
        (
            calls("Write", "<tool_use_error>File has not been read yet. Read it first before writing to it.</tool_use_error>", True, file_path="{project}/src/a.ts", content="x"),
            calls("Read", "y", file_path="{project}/src/a.ts"),
            calls("Write", "ok", file_path="{project}/src/a.ts", content="x"),
        ),
        (calls("Write", "<tool_use_error>File has not been read yet. Read it first before writing to it.</tool_use_error>", True, file_path="{project}/src/b.ts", content="x"),),
    ),
    Case(
        "a search tool without a result",
        (
            calls("mcp__docs__search", "Error: no results for 'coupon rate'", True, query="coupon rate"),
            calls("mcp__docs__search", "3 results", query="coupons"),
        ),
        (calls("mcp__docs__search", "Error: no results for 'seat price'", True, query="seat price"),),
    ),
    Case(
        "an out-of-memory of a test behind a filter, never fixed",
        (
            hides("cargo test 2>&1 | tail -4", "thread 'cart::totals' panicked at src/cart.rs:14:5:\nassertion `left == right` failed\ntest result: FAILED. 11 passed; 1 failed"),
            runs("git diff --stat", ""),
        ),
        (hides("cargo test 2>&1 | tail -4", "thread 'plan::price' panicked at src/plan.rs:9:5:\nassertion `left == right` failed\ntest result: FAILED. 12 passed; 1 failed"),),
    ),
)  # fmt: skip
