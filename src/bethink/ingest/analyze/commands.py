"""How to test, check, build, run and release: one finding per purpose, from task runners first and from CI where it adds to them.

A target is known by its name, a line of CI by the program it calls. This module reads what is written and runs nothing;
where a project has no task runner at all, the usual command of its tool chain is told with less confidence.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from bethink.ingest.analyze import continuous
from bethink.ingest.analyze.ecosystems import manifests
from bethink.ingest.analyze.formats import (
    merged,
    read_ini,
    read_json,
    read_json_with_comments,
    read_python,
    read_toml,
    read_yaml,
    string,
    strings,
    table,
)
from bethink.ingest.analyze.prose import code, listed
from bethink.ingest.analyze.tree import Finding, Tree, finding, folder_of, line_of

MOST_PER_PURPOSE = 4
MOST_RUNNERS = 30  # task files that are read
# Purpose → how the sentence begins, its importance.
SENTENCES = {
    "test": ("Tests run with", 7.0),
    "lint": ("The code is checked and formatted with", 6.0),
    "build": ("It is built with", 6.0),
    "run": ("To run it locally:", 6.0),
    "release": ("Releases and deployments are made with", 6.5),
    "setup": ("To set up for development:", 6.0),
    "data": ("The database is migrated or seeded with", 6.0),
    "generate": ("Generated files are made anew with", 5.5),
    "docs": ("The documentation is built with", 4.5),
    "bench": ("Benchmarks run with", 4.5),
}
# Words of a target's name, the telling ones first: `docs-test` is a test, `build-docs` is about documentation.
_NAMES: tuple[tuple[str, frozenset[str]], ...] = (
    (
        "test",
        frozenset(
            "test tests unittest unit integration e2e spec specs pytest coverage cov check-tests".split()
        ),
    ),
    (
        "lint",
        frozenset(
            "lint linter format fmt typecheck types mypy ruff eslint prettier tsc clippy vet check style precommit fix".split()
        ),
    ),
    ("docs", frozenset("docs doc documentation mkdocs sphinx storybook".split())),
    ("bench", frozenset("bench benchmark benchmarks perf".split())),
    ("data", frozenset("migrate migration migrations seed db database schema".split())),
    ("generate", frozenset("generate gen codegen proto protobuf openapi graphql".split())),
    ("release", frozenset("release publish deploy ship".split())),
    (
        "setup",
        frozenset(
            "install setup bootstrap init deps dependencies venv prepare requirements".split()
        ),
    ),
    ("run", frozenset("run start dev serve server up develop watch".split())),
    ("build", frozenset("build compile bundle package dist image docker wheel".split())),
)
_PLAINEST = frozenset(
    "test tests lint check build compile run start dev serve release deploy install setup migrate generate docs bench".split()
)


class Command(NamedTuple):
    purpose: str
    call: str
    runs: str
    path: str
    line: int
    place: str  # the folder to be in; empty for the top
    rank: int  # 0 for the plain name of the purpose, 1 for another single word, 2 for a compound
    confidence: float = 1.0


def analyze(tree: Tree) -> Iterator[Finding]:
    found = list(_targets(tree))
    steps = list(continuous.steps(tree))
    by_purpose: dict[str, list[Command]] = {}
    for command in found:
        by_purpose.setdefault(command.purpose, []).append(command)
    for command in _usual(tree, by_purpose, steps):
        by_purpose.setdefault(command.purpose, []).append(command)
    for purpose in SENTENCES:
        commands = by_purpose.get(purpose, [])
        inside = [step for step in steps if step.purpose == purpose]
        if commands or inside:
            yield _told(purpose, commands, inside)
    yield from continuous.analyze(tree)


def purpose_of(name: str) -> tuple[str, int] | None:
    """What a target is for, and how plainly its name says so."""
    words = [word for word in re.split(r"[-_:./ ]+", name.lower()) if word]
    for purpose, names in _NAMES:
        if any(word in names for word in words):
            return purpose, 2 if len(words) > 1 else 0 if words[0] in _PLAINEST else 1
    return None


def _told(purpose: str, commands: Sequence[Command], inside: Sequence[continuous.Step]) -> Finding:
    lead, importance = SENTENCES[purpose]
    ranked = sorted(commands, key=lambda command: (command.path.count("/"), command.rank))
    shown: dict[str, Command] = {}
    for command in ranked:
        shown.setdefault(f"{command.call} {command.place}", command)
    chosen = list(shown.values())[:MOST_PER_PURPOSE]
    told = [
        _cited(command.call, command.runs, command.path, command.line, command.place)
        for command in chosen
    ]
    pieces = (
        [f"{lead} {told[0]}" + (f"; also {listed(told[1:])}" if told[1:] else "") + "."]
        if told
        else []
    )
    calls = {command.call for command in chosen}
    ci: dict[str, continuous.Step] = {}
    for step in inside:
        ci.setdefault(step.command, step)
    # What CI calls in other words than the task runner is news; the same words are worth a mention of where.
    steps = sorted(ci.values(), key=lambda step: (step.command not in calls, step.path))[
        : 3 if chosen else 4
    ]
    if steps:
        run = listed([_cited(step.command, "", step.path, step.line) for step in steps])
        pieces.append(f"CI runs {run}." if pieces else f"{lead} {run} in CI.")
    first = chosen[0] if chosen else None
    path, line = (first.path, first.line) if first else (steps[0].path, steps[0].line)
    confidence = first.confidence if first else 0.9
    section = f"Commands › {purpose}"
    return finding(
        path,
        line,
        "pattern",
        "command",
        " ".join(pieces),
        importance=importance,
        confidence=confidence,
        section=section,
    )


def _cited(call: str, runs: str, path: str, line: int, place: str = "") -> str:
    about = runs if runs.startswith("“") else code(runs, 70) if runs and runs != call else ""
    return f"{code(call)}{f' in {place}/' if place else ''} ({about + ', ' if about else ''}{path}:{line})"


def _targets(tree: Tree) -> Iterator[Command]:
    readers = (
        (("makefile", "gnumakefile"), _makefile),
        (("justfile", ".justfile"), _justfile),
        (("taskfile.yml", "taskfile.yaml"), _taskfile),
        (("package.json",), _scripts),
        (("composer.json",), _scripts),
        (("deno.json", "deno.jsonc"), _deno),
        (("pyproject.toml",), _pyproject),
        (("tox.ini",), _tox),
        (("noxfile.py",), _nox),
        (("rakefile",), _rake),
    )
    for names, reader in readers:
        for path in list(tree.named(*names))[:MOST_RUNNERS]:
            for call, name, runs, line in reader(tree, path):
                purpose = purpose_of(name)
                if purpose and len(name) <= 60:
                    yield Command(purpose[0], call, runs, path, line, folder_of(path), purpose[1])


Target = tuple[str, str, str, int]  # call, name, what it runs, line


def _makefile(tree: Tree, path: str) -> Iterator[Target]:
    lines = tree.lines(path)
    helps = _helps(lines)
    for number, line in enumerate(lines, 1):
        match = re.match(
            r"([A-Za-z][\w-]{0,60})(?:[ \t]+[A-Za-z][\w-]{0,60}){0,8}[ \t]*::?(?![=:])([^#]{0,400})(?:##\s*(.{1,120}))?",
            line,
        )
        if match and ":=" not in line and "?=" not in line:
            recipe = [step.strip().lstrip("@-+ ") for step in lines[number : number + 12]]
            until = next(
                (
                    at
                    for at, step in enumerate(lines[number : number + 12])
                    if not step.startswith("\t")
                ),
                12,
            )
            telling = [
                step
                for step in recipe[:until]
                if step and not re.match(r"(?:echo|printf|set -|#|mkdir|cd [^&]*$)", step)
            ]
            needs = match[2].split()
            runs = (
                telling[0]
                if telling
                else f"make {' '.join(needs)}"
                if needs and until == 0 and not needs[0].startswith("$")
                else ""
            )
            told = match[3] or helps.get(match[1])
            yield (
                f"make {match[1]}",
                match[1],
                f"“{told.strip()}”" if told else _plain(runs.rstrip("\\ ")),
                number,
            )


def _helps(lines: Sequence[str]) -> dict[str, str]:
    """What the target `help` prints about the others: `make test      set up and run the tests`."""
    pattern = re.compile(
        r"[ \t]*(?:@?echo|@?printf|#)[^\w\n]{0,12}(?:make )?([A-Za-z][\w-]{0,60})(?:\s{2,40}|\s?[-–:]\s)([^\"'\n]{6,120})"
    )
    found = (match for line in lines[:2_000] if (match := pattern.match(line)))
    return {match[1]: match[2].replace("\\n", "").strip() for match in found}


def _plain(command: str) -> str:
    """Make's `$(BIN)/python -m pytest` as one would type it; nothing for a script that no sentence can hold."""
    if len(command) > 120 or re.match(r"(?:if|for|while|case|set|\()\b", command):
        return ""
    command = re.sub(r"^\$[({]\w+[)}]/", "", command)
    return re.sub(
        r"^(?:(?:uv|poetry|pipenv|hatch|pdm) run |python3? -m |\$\((?:PYTHON|PY)\) -m |npx )",
        "",
        command,
    )


def _justfile(tree: Tree, path: str) -> Iterator[Target]:
    lines = tree.lines(path)
    for number, line in enumerate(lines, 1):
        match = re.match(r"@?([A-Za-z][\w-]{0,60})(?:[ \t]+[^:=]{0,200})?:(?!=)", line)
        if match and match[1] not in ("set", "alias", "export", "import", "mod"):
            runs = (
                lines[number].strip().lstrip("@-")
                if number < len(lines) and lines[number].startswith((" ", "\t"))
                else ""
            )
            yield f"just {match[1]}", match[1], runs, number


def _taskfile(tree: Tree, path: str) -> Iterator[Target]:
    documents = tree.parse(path, read_yaml)
    lines = tree.lines(path)
    for name, task in table(documents[0], "tasks").items() if documents else ():
        steps = task if isinstance(task, list) else merged(task).get("cmds")
        first = (
            next((string(step) or string(table(step).get("cmd")) for step in steps if step), "")
            if isinstance(steps, list)
            else string(task)
        )
        yield f"task {name}", str(name), first, line_of(lines, f"{name}:", line_of(lines, "tasks:"))


def _scripts(tree: Tree, path: str) -> Iterator[Target]:
    value = tree.parse(path, read_json)
    lines = tree.lines(path)
    start = line_of(lines, '"scripts"') - 1
    scripts = table(value, "scripts")
    manager = "composer" if path.endswith("composer.json") else _manager(tree, path, value)
    for name, script in scripts.items():
        runs = string(script) or (strings(script) or [""])[0]
        if (
            not runs
            or re.match(r"(?:pre|post)(?!view|ss)", name)
            or re.fullmatch(r"echo .{0,60}no test specified.{0,40}", runs)
        ):
            continue
        call = (
            f"{manager} {name}"
            if manager in ("yarn", "pnpm", "composer") or name in ("test", "start")
            else f"{manager} run {name}"
        )
        yield call, name, runs, line_of(lines, f'"{name}"', start)


def _manager(tree: Tree, path: str, value: Any) -> str:
    named = string(table(value).get("packageManager")).partition("@")[0]
    if named in ("npm", "yarn", "pnpm", "bun"):
        return named
    locks = {
        "pnpm-lock.yaml": "pnpm",
        "yarn.lock": "yarn",
        "bun.lockb": "bun",
        "bun.lock": "bun",
        "pnpm-workspace.yaml": "pnpm",
    }
    folders = [f"{folder_of(path)}/" if folder_of(path) else "", ""]
    return next(
        (manager for folder in folders for lock, manager in locks.items() if folder + lock in tree),
        "npm",
    )


def _deno(tree: Tree, path: str) -> Iterator[Target]:
    value = tree.parse(path, read_json_with_comments)
    for name, task in table(value, "tasks").items():
        yield (
            f"deno task {name}",
            name,
            string(task) or string(table(task).get("command")),
            line_of(tree.lines(path), f'"{name}"'),
        )


def _pyproject(tree: Tree, path: str) -> Iterator[Target]:
    """The task runners that keep their tasks in pyproject.toml."""
    value = tree.parse(path, read_toml)
    lines = tree.lines(path)
    tools = table(value, "tool")
    groups: list[tuple[str, dict[str, Any]]] = [
        ("poe", table(tools, "poe", "tasks")),
        ("task", table(tools, "taskipy", "tasks")),
        ("pdm run", table(tools, "pdm", "scripts")),
        ("rye run", table(tools, "rye", "scripts")),
        *(
            (f"hatch run {name}:".replace("default:", ""), table(environment, "scripts"))
            for name, environment in table(tools, "hatch", "envs").items()
        ),
        *(
            (
                f"pixi run {'' if name == 'default' else f'-e {name}'}".strip(),
                table(feature, "tasks"),
            )
            for name, feature in table(tools, "pixi", "feature").items()
        ),
        ("pixi run", table(tools, "pixi", "tasks")),
    ]
    for call, tasks in groups:
        for name, task in tasks.items():
            runs = (
                string(task)
                or (strings(task) or [""])[0]
                or next(
                    (
                        found
                        for key in ("cmd", "shell", "composite")
                        if (found := string(table(task).get(key)))
                    ),
                    "",
                )
            )
            yield (
                (call + name if call.endswith((":", " ")) else f"{call} {name}"),
                name,
                runs,
                line_of(lines, name, line_of(lines, "[tool.")),
            )


def _tox(tree: Tree, path: str) -> Iterator[Target]:
    value = tree.parse(path, read_ini)
    for name, options in (value or {}).items():
        runs = options.get("commands", "").strip().split("\n")[0]
        if name == "testenv" and runs:
            environments = (
                " ".join(value["tox"].get("envlist", "").split())
                if value and "tox" in value
                else ""
            )
            yield (
                "tox",
                "test",
                f"{runs}{f' for {environments}' if environments else ''}",
                line_of(tree.lines(path), "[testenv]"),
            )
        elif name.startswith("testenv:") and runs:
            yield f"tox -e {name[8:]}", name[8:], runs, line_of(tree.lines(path), f"[{name}]")


def _nox(tree: Tree, path: str) -> Iterator[Target]:
    module = tree.parse(path, read_python)
    for node in module.body if module else ():
        called = (
            [item.func if isinstance(item, ast.Call) else item for item in node.decorator_list]
            if isinstance(node, ast.FunctionDef)
            else []
        )
        if isinstance(node, ast.FunctionDef) and any(
            getattr(item, "attr", getattr(item, "id", "")) == "session" for item in called
        ):
            yield f"nox -s {node.name}", node.name, "", node.lineno


def _rake(tree: Tree, path: str) -> Iterator[Target]:
    for number, line in enumerate(tree.lines(path), 1):
        if match := re.match(
            r"\s{0,8}(?:task|RSpec::Core::RakeTask\.new|Rake::TestTask\.new)[ (]\s*:?[\"']?(\w{1,60})",
            line,
        ):
            yield f"rake {match[1]}", match[1], "", number


def _usual(
    tree: Tree, known: dict[str, list[Command]], steps: Sequence[continuous.Step]
) -> Iterator[Command]:
    """What a tool chain always answers to, where nothing else says how to test and build."""
    said = set(known) | {step.purpose for step in steps}
    for manifest in manifests(tree):
        if "/" in manifest.path:
            break
        lines = tree.lines(manifest.path)
        has_pytest = manifest.language == "Python" and any(
            item.name.lower() == "pytest" for item in (*manifest.development, *manifest.runtime)
        )
        usual = {
            "Go": (("test", "go test ./...", ""), ("build", "go build ./...", "")),
            "Rust": (("test", "cargo test", ""), ("build", "cargo build", "")),
            "Elixir": (("test", "mix test", ""),),
            "Python": (("test", "pytest", "pytest"),) if has_pytest else (),
            "Dart": (
                (
                    "test",
                    "flutter test"
                    if any(item.name == "flutter" for item in manifest.runtime)
                    else "dart test",
                    "",
                ),
            ),
            "C#": (("test", "dotnet test", ""), ("build", "dotnet build", "")),
        }.get(
            manifest.language,
            (("test", "mvn test", ""), ("build", "mvn package", ""))
            if manifest.builder == "Maven"
            else (),
        )
        for purpose, call, needle in usual:
            if purpose not in said:
                said.add(purpose)
                yield Command(
                    purpose,
                    call,
                    "",
                    manifest.path,
                    line_of(lines, needle) if needle else 1,
                    "",
                    0,
                    0.7,
                )
