"""Shell commands: the steps of a line, and the name of a command. Light: hooks need it at every call."""

from __future__ import annotations

import re

from bethink.text import compile_late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# Programs whose failures are worth keeping: builds, tests, linters, version control, package managers, services.
PROGRAMS = frozenset(
    "git gh glab npm npx pnpm pnpx yarn bun bunx deno node tsc tsx eslint prettier biome vitest jest playwright cypress mocha turbo nx vite "
    "next wrangler python python3 py pip pip3 pipx uv uvx poetry pdm hatch tox nox pytest mypy pyright ruff black flake8 pylint django-admin "
    "alembic cargo rustc rustup clippy go gofmt golangci-lint staticcheck goreleaser make cmake ninja meson bazel just task mise asdf nix "
    "gradle gradlew mvn mvnw kotlinc javac sbt dotnet msbuild swift xcodebuild pod fastlane flutter dart bundle gem rake rails rspec rubocop "
    "ruby composer php phpunit phpstan artisan mix iex elixir docker docker-compose podman kubectl helm terraform tofu pulumi ansible "
    "ansible-playbook psql mysql sqlite3 redis-cli brew apt apt-get dnf pacman apk systemctl pre-commit lefthook hk act vale shellcheck "
    "hadolint buf protoc sqlc prisma drizzle-kit supabase firebase vercel netlify fly flyctl aws gcloud az".split()
)
# Words behind which the command that counts begins.
PREFIXES = frozenset("sudo time command exec nice nohup env timeout stdbuf xvfb-run".split())
# Words by which a runner starts another program.
RUNNERS = tuple(
    tuple(one.split())
    for one in (
        "npx",
        "pnpx",
        "bunx",
        "uvx",
        "pnpm exec",
        "pnpm dlx",
        "yarn dlx",
        "yarn exec",
        "npm exec",
        "bun x",
        "uv run",
        "uv tool run",
        "poetry run",
        "pdm run",
        "hatch run",
        "pipx run",
        "pipenv run",
        "rye run",
        "bundle exec",
        "mise exec",
        "mise x",
        "dotenv",
        "corepack",
        "direnv exec .",
        "nix develop -c",
    )
)
# Programs without a word that says what they do: what follows is a file or a value.
_SINGLE = frozenset(
    "tsc tsx eslint prettier jest mocha pytest mypy pyright black flake8 pylint rustc gofmt javac kotlinc rspec rubocop phpunit phpstan "
    "psql mysql sqlite3 redis-cli ninja shellcheck hadolint protoc".split()
)
_INTERPRETERS = ("python", "python3", "node", "ruby", "php", "bash", "sh")
_ARGUMENT = compile_late(r"[/.=\\*\d'\"]")
_KEYWORDS = compile_late(
    r"(?:for|while|until|if|case|select|function|\{|\(|!|trap|eval|wait)(?:\s|$)|\w+\s*\(\)"
)
_ASSIGNMENT = compile_late(
    r"\w{1,60}=(?:'[^']{0,400}'|\"[^\"]{0,400}\"|\$\([^)]{0,400}\)|[^\s'\"$]|\$(?!\()){0,400}(?:\s+|$)"
)
_GROUP = compile_late(r"\(([^()]{1,2000})\)(?: ?2>&1)?")
_SHELL = compile_late(r"(?:/usr)?(?:/bin/)?(?:ba|z|da)?sh -l?c (['\"])([^'\"]{1,2000})\1\s*")
# A quoted part or an escaped sign.
_STRING = compile_late(r"(?s)\\.|'[^']{0,1000}'|\"(?:\\.|[^\"\\]){0,1000}\"")
_HIDDEN = compile_late("\0(\\d{1,9})\0")
_TO_FILE = compile_late(r"(?:^|[^<>&\d=-])>{1,2}\s?(?!/dev/|/tmp/|&)[\w./~$-]")
_PLACES = compile_late(
    r"^(pnpm|npm|yarn|bun|make|git|cargo|go|turbo|nx|mvn|docker compose|kubectl|uv|poetry)"
    r"(?: (?:--filter|-F|--workspace|-w|--prefix|-C|--dir|--cwd|--directory|--project|-pl|-n|--namespace|--context)[= ]\S{1,200}| workspace \S{1,200}){1,4}(?= )"
)
_REDIRECTION = compile_late(r"[12&]?>>?\s?&?(?:/dev/null|\d|[^\s;&|]{1,200})|<\s?/dev/null")


def split_line(text: str) -> list[tuple[str, list[str]]] | None:
    """Split a shell line into pipelines, each with its joint (`&&`, `||`, `;`, `&`); None for a script."""
    steps: list[tuple[str, list[str]]] = []
    part, joint, members = "", "", []
    quote, depth, at = "", 0, 0

    def end_member() -> None:
        nonlocal part
        if part.strip():
            members.append(part.strip())
        part = ""

    def end_step(following: str) -> None:
        nonlocal joint, members
        end_member()
        if members:
            steps.append((joint, members))
            joint = following
        elif following != ";":
            joint = following
        members = []

    while at < len(text):
        char, pair = text[at], text[at : at + 2]
        if quote:
            if char == "\\" and quote == '"':
                part, at = part + pair, at + 2
                continue
            quote = "" if char == quote else quote
        elif char == "\\":
            part += " " if pair == "\\\n" else pair
            at += 2
            continue
        elif char in "'\"`":
            quote = char
        elif char == "(":
            depth += 1
        elif char == ")":
            depth = max(0, depth - 1)
        elif not depth and pair in ("&&", "||"):
            end_step(pair)
            at += 2
            continue
        elif not depth and char in ";\n":
            end_step(";")
            at += 1
            continue
        elif not depth and char == "&" and text[at - 1 : at] not in (">", "<") and pair != "&>":
            end_step("&")
            at += 1
            continue
        elif not depth and char == "|":
            end_member()
            at += 2 if pair == "|&" else 1
            continue
        elif char == "#" and not part.strip() and not depth:
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
            continue
        part, at = part + char, at + 1
    end_step("")
    script = any(_KEYWORDS.match(member) for _, step in steps for member in step)
    return None if quote or script else steps


def unwrap_line(text: str) -> str:
    """Return the line inside of `( … )` or `bash -c '…'`, or else the line."""
    found = _GROUP.fullmatch(text.strip())
    inner = found[1].strip() if found else ""
    found = None if inner else _SHELL.fullmatch(text.strip())
    return inner or (found[2] if found else text)


def writes_file(step: str) -> bool:
    """Return True if a step puts its output into a file that stays."""
    return bool(_TO_FILE.search(_STRING.sub("''", step)))


def clean_command(command: str) -> str:
    """Drop redirections and extra blanks. Assignments stay: another variable makes another command."""
    return _outside_quotes(command, lambda bare: _REDIRECTION.sub("", f" {bare}"))


def join_blanks(command: str) -> str:
    """Join the lines and blanks of a command, except inside quotes, where they belong to its arguments."""
    return _outside_quotes(command, lambda bare: bare)


def _outside_quotes(command: str, change: Callable[[str], str]) -> str:
    """Change what is not quoted in a command, and join its blanks."""
    command = command.replace("\0", "")
    quoted = _STRING.findall(command)
    numbers = iter(range(len(quoted)))
    bare = _STRING.sub(lambda _: f"\0{next(numbers)}\0", command)
    return _HIDDEN.sub(lambda found: quoted[int(found[1])], " ".join(change(bare).split()))


def strip_command(command: str) -> str:
    """Drop assignments, wrappers and redirections."""
    text = clean_command(command)
    while True:
        assignment = _ASSIGNMENT.match(text)
        shorter = text[assignment.end() :] if assignment else text
        first, _, rest = shorter.partition(" ")
        if first in PREFIXES and rest.strip():
            shorter = re.sub(r"^(?:-\S+\s+|\d+\w?\s+)+", "", rest.strip())
        if shorter == text:
            return text
        text = shorter


def name_family(command: str) -> str:
    """The program of a command and the word that says what it does: `npm test`, `git push`, `pytest`."""
    words = [word for word in strip_command(command).split() if not word.startswith("-")]
    if not words:
        return ""
    program = name_program(words[0])
    rest = words[1:]
    if program.startswith("python") and " -m " in f"{command} " and rest:
        return rest[0]
    if program in ("npm", "pnpm", "yarn", "bun") and rest[:1] == ["run"]:
        rest = rest[1:]
    if program in ("npx", "pnpx", "bunx", "uvx") and rest:
        return rest[0]
    if program in ("uv", "poetry", "pdm", "mise", "bundle", "dotenv") and rest[:1] in (
        ["run"],
        ["exec"],
        ["x"],
    ):
        return " ".join([program, *rest[:2]])
    if program not in _INTERPRETERS:  # what follows is a file or a value, not a verb
        rest = [word for word in rest[:2] if not _ARGUMENT.search(word)] + rest[2:]
    if program in _SINGLE:
        return program
    deep = program in ("gh", "glab", "docker", "aws", "gcloud")
    return " ".join([program, *rest[: 2 if deep else 1]]) if program in PROGRAMS else program


def drop_places(command: str) -> str:
    """Return a command without its options for a place: `pnpm exec tsc` for `pnpm --filter web exec tsc`."""
    return _PLACES.sub(r"\1", command)


def name_job(command: str) -> str:
    """The work of a command under any runner: `pytest` for `uv run pytest`."""
    words = drop_places(strip_command(command)).split()
    for runner in RUNNERS:
        if words[: len(runner)] == list(runner) and len(words) > len(runner):
            words = words[len(runner) :]
            break
    if len(words) > 2 and words[0].startswith("python") and words[1] == "-m":
        words = words[2:]
    program, _, rest = name_family(" ".join(words)).partition(" ")
    return (
        f"npm {rest}".strip() if program in ("pnpm", "yarn", "bun") else f"{program} {rest}".strip()
    )


def name_program(command: str) -> str:
    return strip_command(command).partition(" ")[0].strip("'\"").rpartition("/")[2]
