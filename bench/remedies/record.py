"""Run real tools in a temporary folder, and record failures, fixes, recurrences and look-alikes as cases.

    python bench/remedies/record.py bench/remedies/recorded.jsonl

The outputs are those of git, Python, npm, make, Cargo and others as they are on this machine, so nobody has worded the errors. The second
half of each script runs in another folder, with other files. A tool that is missing leaves its scripts out.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple


class Script(NamedTuple):
    """Commands of a first session and of later ones; `set up` runs before each, unrecorded."""

    name: str
    tool: str
    setup: str
    first: tuple[str, ...]  # `edit FILE OLD NEW` changes a file as an agent's tool does
    again: tuple[str, ...]
    fix: str
    silent: tuple[str, ...] = ()
    later: str = ""  # set-up of the later sessions, in another folder; by default the same


GIT = "git init -q -b main . && git config user.email a@b.example && git config user.name Ada && echo a > a.txt && git add . && git commit -qm first"
REMOTE = f"{GIT} && git init -q --bare ../origin.git -b main && git remote add origin ../origin.git"
AHEAD = f"{REMOTE} && git push -qu origin main && git clone -q ../origin.git ../other && cd ../other && git config user.email a@b.example && git config user.name Bo && echo b > b.txt && git add . && git commit -qm second && git push -q && cd - && echo c > c.txt && git add . && git commit -qm third"
NPM = """printf '{"name":"shop","version":"1.0.0","scripts":{"build":"node build.js","check":"node --check build.js","lint":"eslint ."}}' > package.json && echo 'console.log(1)' > build.js"""
CARGO = """cargo init -q --name shop . 2>/dev/null"""
PY = "mkdir -p src tests && touch src/__init__.py"

SCRIPTS = (
    Script("git: no upstream", "git", REMOTE, ("git push", "git push -u origin main"), ("git push",), "git push -u", ("git push nowhere main",), REMOTE.replace("-b main .", "-b fix/cart .")),
    Script("git: behind", "git", AHEAD, ("git push", "git pull -q --rebase", "git push -q"), ("git push origin main",), "git pull -q --rebase"),
    Script("git: not a branch yet", "git", f"{REMOTE} && git push -q origin main:release && git fetch -q", ("git checkout releases", "git checkout release"), ("git checkout releases",), "git checkout release", ("git checkout stable",)),
    Script("git: nothing to commit", "git", GIT, ("git commit -m again", "git add -A", "git status"), ("git commit -m more",), ""),
    Script("git: unknown option", "git", GIT, ("git log --one-line", "git log --oneline"), ("git log --one-line -3",), "--oneline", ("git log --stats",)),
    Script("git: worktree of a branch in use", "git", f"{GIT} && git branch cart", ("git worktree add ../cart main", "git worktree add -b cart2 ../cart main"), ("git worktree add ../login main",), "git worktree add -b"),
    Script("git: identity", "git", "git init -q -b main . && echo a > a && git add a && export HOME=$PWD", ("HOME=$PWD git commit -m first", "git config user.email a@b.example && git config user.name Ada", "HOME=$PWD git commit -m first"), ("HOME=$PWD git commit -m second",), "git config user."),
    Script("git: local changes would be overwritten", "git", f"{GIT} && git checkout -qb cart && echo b > a.txt && git commit -qam b && echo c > a.txt", ("git checkout main", "git stash", "git checkout main"), ("git checkout main",), "git stash"),
    Script("git: a pathspec from a folder", "git", f"{GIT} && mkdir -p web && echo x > web/x.ts && cd web", ("cd web && git add web/x.ts", "git add web/x.ts"), ("cd web && git add web/x.ts",), "ran it in"),
    Script("git: unrelated histories", "git", f"{GIT} && git init -q -b main ../lib && cd ../lib && git config user.email a@b.example && git config user.name Ada && echo l > l && git add . && git commit -qm lib && cd - && git remote add lib ../lib && git fetch -q lib", ("git merge lib/main", "git merge --allow-unrelated-histories --no-edit lib/main"), ("git merge lib/main -m x",), "--allow-unrelated-histories"),
    Script("python: an unknown module by PYTHONPATH", "python3", f"{PY} && mkdir lib && echo 'X = 1' > lib/carts.py && echo 'import carts' > tests/test_a.py", ("python3 tests/test_a.py", "PYTHONPATH=lib python3 tests/test_a.py"), ("python3 tests/test_b.py",), "PYTHONPATH=lib", ("python3 tests/test_c.py",), f"{PY} && echo 'import carts' > tests/test_b.py && echo 'import basket' > tests/test_c.py"),
    Script("python: not executable", "python3", "printf '#!/usr/bin/env python3\\nprint(1)\\n' > manage.py", ("./manage.py migrate", "chmod +x manage.py", "./manage.py migrate"), ("./manage.py runserver",), "chmod +x manage.py", ("./deploy.sh",), "printf '#!/usr/bin/env python3\\nprint(1)\\n' > manage.py; touch deploy.sh"),
    Script("python: no pip module in a venv", "python3", "python3 -m venv --without-pip .venv", (".venv/bin/python -m pip install x", ".venv/bin/python -m ensurepip -q", ".venv/bin/python -m pip --version"), (".venv/bin/python -m pip install y",), "ensurepip"),
    Script("pytest: an unknown option", "pytest", f"{PY} && echo 'def test_a(): pass' > tests/test_a.py", ("pytest --quite", "pytest --quiet"), ("pytest --quite tests",), "--quiet", ("pytest --covv",)),
    Script("pytest: a fixture", "pytest", f"{PY} && echo 'def test_a(store): pass' > tests/test_a.py", ("pytest -q", "edit tests/conftest.py|# none|import pytest", "printf 'import pytest\\n@pytest.fixture\\ndef store(): return 1\\n' > tests/conftest.py", "pytest -q"), ("pytest -q tests/test_b.py",), "", (), f"{PY} && echo 'def test_b(basket): pass' > tests/test_b.py"),
    Script("pytest: a file that is not there", "pytest", f"{PY} && echo 'def test_a(): pass' > tests/test_cart.py", ("pytest tests/test_carts.py", "pytest tests/test_cart.py"), ("pytest tests/test_carts.py -q",), "tests/test_cart.py", ("pytest tests/test_login.py",)),
    Script("npm: a missing script", "npm", NPM, ("npm run test:unit", "npm run check"), ("npm run test:unit",), "", ("npm run deploy",)),
    Script("npm: a wrong folder", "npm", f"mkdir web && cd web && {NPM}", ("npm run build", "cd web && npm run build"), ("npm run build",), "web"),
    Script("npm: a linter that is not installed", "npm", NPM, ("npm run lint", "npm install --save-dev ./eslint-local", "npm run lint"), ("npm run lint 2>&1 | tail -5",), "npm install", (), f"{NPM} && mkdir -p eslint-local"),
    Script("node: a module of the project", "node", f"{NPM} && mkdir -p gen && echo 'require(\"./gen/schema\")' > app.js && printf 'gen:\\n\\techo 1 > gen/schema.js\\n' > Makefile", ("node app.js", "make -B gen", "node app.js"), ("node app.js --port 1",), "make -B gen", ("node other.js",), f"{NPM} && mkdir -p gen && echo 'require(\"./gen/schema\")' > app.js && echo 'require(\"./gen/routes\")' > other.js"),
    Script("node: a syntax error", "node", f"{NPM} && echo 'let a = ;' > build.js", ("npm run build", "edit build.js|let a = ;|let a = 1;", "echo 'let a = 1;' > build.js", "npm run build"), ("npm run build",), "", (), f"{NPM} && echo 'let cart = {{;' > build.js"),
    Script("node: an unknown option", "node", f"{NPM}", ("node --inspct build.js", "node --inspect=0 build.js"), ("node --inspct build.js",), "--inspect=0"),
    Script("make: a missing separator", "make", "printf 'build:\\n    echo a\\n' > Makefile", ("make build", "edit Makefile|    echo a|\techo a", "printf 'build:\\n\\techo a\\n' > Makefile", "make build"), ("make build",), "Makefile", (), "printf 'all:\\n\\techo\\n\\nbuild:\\n        echo a\\n' > Makefile"),
    Script("make: another target", "make", "printf 'check:\\n\\techo a\\n' > Makefile", ("make test", "make check"), ("make test",), "make check", ("make format",)),
    Script("make: a folder that the build needs", "make", "printf 'build:\\n\\ttouch out/app\\n\\nsetup:\\n\\tmkdir -p out\\n' > Makefile", ("make build", "make setup", "make build"), ("make build",), "make setup"),
    Script("make: a variable", "make", "printf 'ifndef STAGE\\n$(error STAGE is not set)\\nendif\\ndeploy:\\n\\techo a\\n' > Makefile", ("make deploy", "STAGE=dev make deploy"), ("make deploy -j2",), "STAGE="),
    Script("cargo: a wrong flag", "cargo", CARGO, ("cargo build --relase", "cargo build --release"), ("cargo build --relase -q",), "--release"),
    Script("cargo: formatting", "cargo", f"{CARGO} && echo 'fn main(){{println!(\"a\");}}' > src/main.rs", ("cargo fmt --check", "cargo fmt", "cargo fmt --check"), ("cargo fmt --all -- --check",), "cargo fmt"),
    Script("cargo: no manifest", "cargo", f"mkdir core && cd core && {CARGO}", ("cargo build", "cd core && cargo build"), ("cargo build --release",), "core"),
    Script("cargo: a type", "cargo", f"{CARGO} && echo 'fn main(){{let a: u8 = \"x\";}}' > src/main.rs", ("cargo check", "edit src/main.rs|let a: u8 = \"x\";|let a: u8 = 1;", "echo 'fn main(){let a: u8 = 1;println!(\"{a}\");}' > src/main.rs", "cargo check"), ("cargo check",), "", (), f"{CARGO} && echo 'fn main(){{let b: u8 = \"y\";}}' > src/main.rs"),
    Script("javac: another folder", "javac", "mkdir -p src && echo 'class A { }' > src/A.java", ("javac A.java", "javac src/A.java"), ("javac A.java -d out",), "src"),
    Script("javac: a wrong flag", "javac", "echo 'class A { }' > A.java", ("javac -realease 17 A.java", "javac --release 17 A.java"), ("javac -realease 17 B.java",), "--release", ("javac -classpth x A.java",)),
    Script("cmake: a second source folder", "cmake", "printf 'cmake_minimum_required(VERSION 3.10)\\nproject(shop NONE)\\n' > CMakeLists.txt", ("cmake -S src -B build", "cmake -S . -B build"), ("cmake -S src -B out",), "cmake -S ."),
    Script("gcc: a header", "gcc", "mkdir -p include && echo '#define A 1' > include/cart.h && printf '#include \"cart.h\"\\nint main(){return A;}\\n' > a.c", ("gcc a.c -o a", "gcc -Iinclude a.c -o a"), ("gcc b.c -o b",), "-Iinclude", ("gcc c.c -o c",), "printf '#include \"cart.h\"\\nint main(){return A;}\\n' > b.c; printf '#include \"login.h\"\\nint main(){return A;}\\n' > c.c"),
    Script("psql: no server", "psql", "true", ("psql -h 127.0.0.1 -p 5999 -c 'select 1'", "docker compose up -d db || true"), ("psql -h 127.0.0.1 -p 5998 shop -c 'select 2'",), ""),
    Script("sqlite3: a table of the migrations", "sqlite3", "echo 'create table carts(a);' > schema.sql", ("sqlite3 shop.db 'select * from carts'", "sqlite3 shop.db < schema.sql", "sqlite3 shop.db 'select * from carts'"), ("sqlite3 test.db 'select a from carts'",), "schema.sql", ("sqlite3 test.db 'select a from logins'",)),
    Script("terraform: not initialised", "terraform", "printf 'terraform {\\n  backend \"local\" {}\\n}\\n' > main.tf", ("terraform plan -no-color", "terraform init -no-color", "terraform plan -no-color"), ("terraform apply -no-color -auto-approve",), "terraform init"),
    Script("terraform: an undeclared variable", "terraform", "printf 'output \"a\" {\\n  value = var.stage\\n}\\n' > main.tf && terraform init -no-color", ("terraform validate -no-color", "edit variables.tf|# none|variable stage", "printf 'variable \"stage\" {}\\n' > variables.tf", "terraform validate -no-color"), ("terraform validate -no-color",), "variables.tf", (), "printf 'output \"b\" {\\n  value = var.stage\\n}\\n' > main.tf && terraform init -no-color"),
    Script("docker: no daemon", "docker", "echo 'FROM scratch' > Dockerfile", ("docker build -t shop .", "sudo systemctl start docker || true"), ("docker compose ps",), ""),
    Script("docker: a wrong flag", "docker", "true", ("docker build --nocache .", "docker build --help"), ("docker build --nocache -t x .",), ""),
    Script("jq: a number for a text", "jq", "echo '{\"a\":1}' > a.json", ("jq '.a + \"x\"' a.json", "jq '(.a|tostring) + \"x\"' a.json"), ("jq '.b + \"y\"' b.json",), "", (), "echo '{\"b\":2}' > b.json"),
    Script("tar: an archive that was moved", "tar", "mkdir dist && tar cf dist/app.tar --files-from /dev/null", ("tar tf app.tar", "tar tf dist/app.tar"), ("tar tf app.tar",), "dist/app.tar"),
)  # fmt: skip


def run(command: str, folder: Path) -> tuple[int, str]:
    keep = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "LANG": "C.UTF-8"}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=keep | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout.decode("utf-8", "replace")[:6000]


def play(script: Script, folder: Path, setup: str, commands: tuple[str, ...]) -> list[dict]:
    folder.mkdir(parents=True)
    code, output = run(setup, folder)
    if code:
        print(f"{script.name}: set-up ended with {code}: {output[-200:]}", file=sys.stderr)
    steps = []
    for command in commands:
        if command.startswith("edit "):
            file, old, new = command.removeprefix("edit ").split("|")
            steps.append({"file": file, "change": f"{old} → {new}"})
        else:
            code, output = run(command, folder)
            text = output.replace(str(folder), "{project}")
            steps.append({"command": command, "output": text, "failed": code != 0})
    return steps


def record(script: Script) -> dict:
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        first = play(script, home / "one" / "shop", script.setup, script.first)
        later = [
            [
                play(
                    script,
                    home / f"{kind}{at}" / "work" / "tree",
                    script.later or script.setup,
                    (one,),
                )[0]
                for at, one in enumerate(commands)
            ]
            for kind, commands in (("again", script.again), ("silent", script.silent))
        ]
    return {
        "name": script.name,
        "first": first,
        "again": later[0],
        "fix": script.fix,
        "silent": later[1],
    }


def main() -> None:
    rows = [record(one) for one in SCRIPTS if shutil.which(one.tool)]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    Path(sys.argv[1]).write_text(text)
    failing = [row for row in rows if not any(step.get("failed") for step in row["first"])]
    print(f"{len(rows)} of {len(SCRIPTS)} scripts recorded", file=sys.stderr)
    print(
        f"nothing failed in: {', '.join(row['name'] for row in failing) or 'none'}", file=sys.stderr
    )


if __name__ == "__main__":
    main()
