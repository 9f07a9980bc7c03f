"""How to test, check, build, run and release: one finding per purpose, from task runners first and from CI where it adds to them.

A target is known by its name, a line of CI by the program it calls; `data/commands.toml` holds both tables and says where each
task runner keeps its tasks. This module reads what is written and runs nothing; where a project has no task runner at all, the
usual command of its tool chain is told with less confidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bethink.ingest.analyze.manifests import find_all, manifests
from bethink.ingest.analyze.tree import (
    Finding,
    Tree,
    code,
    finding,
    folder_of,
    line_of,
    listed,
    load_table,
    merged,
    read_ini,
    read_json,
    read_json_with_comments,
    read_one_yaml,
    read_toml,
    string,
    strings,
    table,
)
from bethink.types import Entity

MOST_PER_PURPOSE = 4  # commands told together; set by hand
MOST_RUNNERS = 30  # task files that are read
MOST_WORKFLOWS = 12
FORMATS = {"yaml": read_one_yaml, "json": read_json_with_comments, "toml": read_toml}


class Target(NamedTuple):
    """A task of a task runner, or what a tool chain answers to."""

    name: str
    call: str
    runs: str  # the command behind it, or what is said about it in “ ”
    path: str
    line: int
    confidence: float = 1.0


class CiStep(NamedTuple):
    purpose: str
    command: str
    path: str
    line: int


class Workflow(NamedTuple):
    path: str
    system: str
    name: str = ""
    triggers: Sequence[str] = ()
    jobs: Sequence[str] = ()
    commands: Sequence[str] = ()
    line: int = 1


def analyze(tree: Tree) -> Iterator[Finding]:
    steps = list(_ci_steps(tree))
    targets: dict[str, list[tuple[int, Target]]] = {}
    for target in _targets(tree):
        if purpose := purpose_of(target.name):
            targets.setdefault(purpose[0], []).append((purpose[1], target))
    known = set(targets) | {step.purpose for step in steps}
    for name, target in _usual_commands(tree):
        if name not in known:
            targets.setdefault(name, []).append((0, target))
    for purpose, row in load_table("commands")["purpose"].items():
        inside = [step for step in steps if step.purpose == purpose]
        if purpose in targets or inside:
            yield _describe(purpose, row, targets.get(purpose, []), inside)
    yield from _describe_ci(tree)


def purpose_of(name: str) -> tuple[str, int] | None:
    """What a target is for, and how plainly its name says so: 0 for the plain word, 1 for another one, 2 for a compound."""
    parts = [part for part in re.split(r"[-_:./ ]+", name.lower()) if part]
    for purpose in load_table("commands")["by_name"]:
        if not set(parts).isdisjoint(purpose["words"].split()):
            plainest = parts[0] in load_table("commands")["plainest"].split()
            return purpose["purpose"], 2 if len(parts) > 1 else 0 if plainest else 1
    return None


def _describe(
    purpose: str,
    row: Mapping[str, Any],
    targets: Sequence[tuple[int, Target]],
    steps: Sequence[CiStep],
) -> Finding:
    ranked = sorted(targets, key=lambda item: (item[1].path.count("/"), item[0]))
    chosen = list(
        {(target.call, folder_of(target.path)): target for _, target in reversed(ranked)}.values()
    )[::-1][:MOST_PER_PURPOSE]
    told = [_cite(target.call, target.runs, target.path, target.line) for target in chosen]
    pieces = []
    if told:
        also = f"; also {listed(told[1:])}" if told[1:] else ""
        pieces.append(f"{row['lead']} {told[0]}{also}.")
    calls = {target.call for target in chosen}
    ci = list({step.command: step for step in reversed(steps)}.values())[::-1]
    # What CI calls in other words than the task runner is news; the same words are worth a mention of where.
    ci.sort(key=lambda step: (step.command not in calls, step.path))
    if ci:
        shown = [
            f"{code(step.command)} ({step.path}:{step.line})" for step in ci[: 3 if chosen else 4]
        ]
        pieces.append(
            f"CI runs {listed(shown)}." if pieces else f"{row['lead']} {listed(shown)} in CI."
        )
    first: Target | CiStep = chosen[0] if chosen else ci[0]
    return finding(
        first.path,
        first.line,
        "pattern",
        "command",
        " ".join(pieces),
        importance=row["importance"],
        confidence=first.confidence if isinstance(first, Target) else 0.9,
        section=f"Commands › {purpose}",
    )


def _cite(call: str, runs: str, path: str, line: int) -> str:
    about = runs if runs.startswith("“") else code(runs, 70) if runs and runs != call else ""
    place = f" in {folder_of(path)}/" if folder_of(path) else ""
    return f"{code(call)}{place} ({about + ', ' if about else ''}{path}:{line})"


# Task runners


def _targets(tree: Tree) -> Iterator[Target]:
    for row in load_table("commands")["runner"]:
        for path in list(tree.named(*row["files"]))[:MOST_RUNNERS]:
            reader = _listed_tasks if "tasks" in row else _matched_tasks
            for target in reader(tree, path, row):
                if len(target.name) <= 60:
                    yield target
    for path in list(tree.named("makefile", "gnumakefile"))[:MOST_RUNNERS]:
        yield from _make_targets(tree, path)
    for path in list(tree.named("tox.ini"))[:MOST_RUNNERS]:
        yield from _tox_targets(tree, path)


def _listed_tasks(tree: Tree, path: str, row: Mapping[str, Any]) -> Iterator[Target]:
    """The tasks of a file in which they are a mapping of names to commands."""
    value = tree.parse(path, read_json if path.endswith("package.json") else FORMATS[row["format"]])
    lines = tree.lines(path)
    start = line_of(lines, row["after"]) - 1
    for key, tasks in find_all(value, row["tasks"]):
        for name, task in table(tasks).items():
            runs = _first_command(task)
            if not isinstance(name, str) or re.fullmatch(
                row.get("left_out", "(?!)"), f"{name}={runs}"
            ):
                continue
            call = row["call"].format(
                name=name, key=key, manager=_package_manager(tree, path, value)
            )
            call = re.sub(r"(?<=npm )run (?=(?:test|start)$)|default:", "", call)
            line = line_of(lines, row["needle"].format(name=name), start)
            yield Target(name, call, runs, path, line)


def _first_command(task: Any) -> str:
    """The first command of a task, in whichever of the usual forms it is written."""
    if isinstance(task, list):
        return next((found for item in task[:20] if (found := _first_command(item))), "")
    for key in ("cmds", "cmd", "command", "shell", "composite"):
        if key in table(task):
            return _first_command(task[key])
    return string(task)


def _package_manager(tree: Tree, path: str, value: Any) -> str:
    """How scripts of a package.json are called: as it says itself, or as the lock file beside it or at the top gives away."""
    named = string(table(value).get("packageManager")).partition("@")[0]
    locks: Mapping[str, str] = load_table("commands")["locks"]
    folders = [f"{folder_of(path)}/" if folder_of(path) else "", ""]
    found = (name for folder in folders for lock, name in locks.items() if folder + lock in tree)
    manager = named if named in locks.values() else next(found, "npm")
    return manager if manager in ("yarn", "pnpm") else f"{manager} run"


def _matched_tasks(tree: Tree, path: str, row: Mapping[str, Any]) -> Iterator[Target]:
    """The tasks of a file that is read by a pattern; the line below may be their command."""
    lines = [*tree.lines(path), ""]
    for match in re.finditer(row["pattern"], tree.text(path)):
        line = tree.text(path).count("\n", 0, match.start(1)) + 1
        indented = lines[line].startswith((" ", "\t")) and row.get("below")
        runs = lines[line].strip().lstrip("@-") if indented else ""
        yield Target(match[1], row["call"].format(name=match[1]), runs, path, line)


_MAKE = re.compile(
    r"([A-Za-z][\w-]{0,60})(?:[ \t]+[A-Za-z][\w-]{0,60}){0,8}[ \t]*::?(?![=:])([^#]{0,400})(?:##\s*(.{1,120}))?"
)
_MAKE_HELP = re.compile(
    r"[ \t]*(?:@?echo|@?printf|#)[^\w\n]{0,12}(?:make )?([A-Za-z][\w-]{0,60})(?:\s{2,40}|\s?[-–:]\s)([^\"'\n]{6,120})"
)


def _make_targets(tree: Tree, path: str) -> Iterator[Target]:
    lines = tree.lines(path)
    helps = {match[1]: match[2] for line in lines[:2_000] if (match := _MAKE_HELP.match(line))}
    for number, line in enumerate(lines, 1):
        match = _MAKE.match(line)
        if not match or ":=" in line or "?=" in line:
            continue
        about = match[3] or helps.get(match[1], "").replace("\\n", "")
        runs = f"“{about.strip()}”" if about else _recipe(lines[number : number + 12], match[2])
        yield Target(match[1], f"make {match[1]}", runs, path, number)


def _recipe(below: Sequence[str], needs: str) -> str:
    """The first line of a recipe that does something, as one would type it; or the targets that it only stands for."""
    recipe = []
    for step in below:
        if not step.startswith("\t"):
            break
        recipe.append(step.strip().lstrip("@-+ "))
    if not recipe:
        return f"make {' '.join(needs.split())}" if needs.split() and "$" not in needs else ""
    idle = re.compile(r"$|(?:echo|printf|set -|#|mkdir|cd [^&]*$)")
    command = next((step for step in recipe if not idle.match(step)), "").rstrip("\\ ")
    if len(command) > 120 or re.match(r"(?:if|for|while|case|set|\()\b", command):
        return ""  # a script that no sentence can hold
    command = re.sub(r"^\$[({]\w+[)}]/", "", command)
    return re.sub(
        r"^(?:(?:uv|poetry|pipenv|hatch|pdm) run |python3? -m |\$\((?:PYTHON|PY)\) -m |npx )",
        "",
        command,
    )


def _tox_targets(tree: Tree, path: str) -> Iterator[Target]:
    for name, options in (tree.parse(path, read_ini) or {}).items():
        runs = options.get("commands", "").strip().split("\n")[0]
        if name.startswith("testenv") and runs:
            line = line_of(tree.lines(path), f"[{name}]")
            environment = name[8:]
            call = f"tox -e {environment}" if environment else "tox"
            yield Target(environment or "test", call, runs, path, line)


def _usual_commands(tree: Tree) -> Iterator[tuple[str, Target]]:
    """What a tool chain always answers to, where nothing else says how to test and build."""
    usual = load_table("commands")["usual"]
    for manifest in manifests(tree):
        if "/" in manifest.path:
            break
        names = [item.name.lower() for item in (*manifest.development, *manifest.runtime)]
        row = usual.get(manifest.builder) or usual.get(manifest.language, {})
        needs = row.get("needs", "")
        if needs and needs not in names:
            continue
        line = line_of(tree.lines(manifest.path), needs) if needs else 1
        for purpose in ("test", "build"):
            if purpose in row:
                yield purpose, Target(purpose, row[purpose], "", manifest.path, line, 0.7)


# CI


def _ci_steps(tree: Tree) -> Iterator[CiStep]:
    programs = [
        (purpose, re.compile(rf"(?:{'|'.join(row['programs'])})(?=\s|$)"))
        for purpose, row in load_table("commands")["purpose"].items()
        if "programs" in row
    ]
    prefix = re.compile(rf"(?:{'|'.join(load_table('commands')['prefixes'])})*+")
    for workflow in workflows(tree):
        lines = tree.lines(workflow.path)
        for command in (line.strip() for block in workflow.commands for line in block.split("\n")):
            begin = prefix.match(command[:300])
            called = command[:300][begin.end() if begin else 0 :]
            purpose = next((name for name, pattern in programs if pattern.match(called)), None)
            if purpose:
                line = line_of(lines, command.split("  ")[0][:80])
                yield CiStep(purpose, command[:120], workflow.path, line)


def workflows(tree: Tree) -> tuple[Workflow, ...]:
    return tree.once(_read_workflows)


def _read_workflows(tree: Tree) -> tuple[Workflow, ...]:
    found: list[Workflow] = []
    for path in tree.paths:
        systems = load_table("commands")["ci"]
        row = next((row for row in systems if re.fullmatch(row["file"], path)), None)
        if row is None or len(found) >= MOST_WORKFLOWS:
            continue
        if row["system"] == "Jenkins":
            text = tree.text(path)
            jobs, commands = re.findall(row["jobs"], text)[:20], re.findall(row["steps"], text)[:60]
            if jobs or commands:
                found.append(Workflow(path, "Jenkins", jobs=jobs, commands=commands))
            continue
        value = tree.parse(path, read_one_yaml)
        if value:
            line = line_of(tree.lines(path), "jobs:")
            on = value.get("on")
            triggers = strings(on) or [str(trigger) for trigger in table(on)]
            name, jobs, commands = string(value.get("name")), _jobs(value), _commands(value)
            found.append(Workflow(path, row["system"], name, triggers, jobs, commands, line))
    return tuple(found)


def _jobs(value: Mapping[str, Any]) -> list[str]:
    """The jobs of a workflow; in GitLab they stand at the top, among other things."""
    other = load_table("commands")["gitlab_no_jobs"].split()
    jobs = table(value, "jobs") or {
        name: job
        for name, job in value.items()
        if "script" in merged(job) and name not in other and name[:1] != "."
    }
    return [str(name) for name in jobs][:40]


def _commands(value: Any) -> list[str]:
    """The scripts of all steps, one command per line: continued lines are joined."""
    found = (
        text for key in ("run", "script", "bash", "pwsh", "command") for text in _values(value, key)
    )
    return [re.sub(r"\\\n\s*+", " ", text) for text in found]


def _values(value: Any, wanted: str) -> list[str]:
    """The texts under a key anywhere in a workflow, in their order."""
    found: list[str] = []
    pending: list[Any] = [value]
    for _ in range(3_000):  # aliases can make a small file a tree without end
        if not pending:
            break
        item = pending.pop()
        if isinstance(item, dict):
            found += strings(item.get(wanted))
            pending += [
                inner for inner in reversed(item.values()) if isinstance(inner, dict | list)
            ]
        elif isinstance(item, list):
            pending += [inner for inner in reversed(item[:100]) if isinstance(inner, dict | list)]
    return found


def _describe_ci(tree: Tree) -> Iterator[Finding]:
    """One finding per CI system, with all its workflows."""
    systems: dict[str, list[Workflow]] = {}
    for workflow in workflows(tree):
        systems.setdefault(workflow.system, []).append(workflow)
    for system, found in systems.items():
        told = []
        for workflow in found[:8]:
            when = f" on {listed(workflow.triggers, 5)}" if workflow.triggers else ""
            several = "jobs" if len(workflow.jobs) > 1 else "job"
            jobs = f" with the {several} {listed(workflow.jobs, 10)}" if workflow.jobs else ""
            named = f"{workflow.name} ({workflow.path})" if workflow.name else workflow.path
            told.append(f"{named} runs{when}{jobs}")
        more = f"; and {len(found) - 8} more workflows" if len(found) > 8 else ""
        yield finding(
            found[0].path,
            found[0].line,
            "pattern",
            "ci",
            f"CI is {system}: {'; '.join(told)}{more}.",
            importance=5.5,
            confidence=1.0,
            entities=[Entity(system, "technology")],
        )
