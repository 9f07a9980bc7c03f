"""What CI does: which systems, when they run, which jobs, and the commands of their steps with their lines.

GitHub Actions, GitLab, CircleCI and Azure are read as YAML, a Jenkinsfile by its `sh` lines. Nothing of a run is known:
only what the files say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from bethink.ingest.analyze.formats import merged, read_yaml, string, strings, table
from bethink.ingest.analyze.prose import listed
from bethink.ingest.analyze.tree import Finding, Tree, finding, line_of
from bethink.types import Entity

MOST_WORKFLOWS = 12
# The program a step calls → what it is for. Tried in this order on each line of a step.
_SCRIPT = r"(?:npm|pnpm|yarn|bun)(?: run)?"
_PROGRAMS = {
    "test": (
        r"(?:python3? -m )?pytest\b|unittest\b|tox\b(?! -e (?:lint|docs|type))|nox -s test\w*|make [\w-]*test[\w-]*|just [\w-]*test[\w-]*|ctest"
        rf"|{_SCRIPT} (?:\S* )?test\b\S*|vitest|jest\b|playwright test|cypress run|go test\b|cargo (?:nextest|test)\b"
        r"|(?:\./)?mvnw? .{0,40}(?:test|verify)|(?:\./)?gradlew? .{0,40}(?:test|check)\b|rspec|rails test|phpunit|mix test|dotnet test"
    ),
    "lint": (
        rf"ruff\b|flake8|mypy\b|pyright|black\b|pylint|isort|eslint|prettier|tsc\b|{_SCRIPT} (?:lint|typecheck|format)\S*|golangci-lint|go vet"
        r"|gofmt|cargo (?:clippy|fmt)|rubocop|phpstan|pre-commit run|mix (?:format|credo)|make (?:lint|format|check|typecheck)\S*"
        r"|just (?:lint|fmt|check)\S*|nox -s lint\w*|tox -e (?:lint|type)\w*"
    ),
    "release": (
        r"twine upload|(?:uv|poetry|hatch|flit) publish|(?:npm|cargo|changeset) publish|semantic-release|goreleaser|docker push|gh release"
        r"|helm upgrade|kubectl (?:apply|rollout)|(?:terraform|tofu) apply|ansible-playbook|aws (?:s3 sync|ecs|lambda)|make (?:release|deploy|publish)\S*"
        r"|(?:serverless|sls|vercel|netlify|fly|flyctl|gcloud run|wrangler|cdk) deploy"
    ),
    "build": (
        rf"python3? -m build|(?:uv|poetry|hatch) build|{_SCRIPT} build\S*|(?:go|cargo|vite|next) build|docker (?:buildx )?build|cmake --build"
        r"|(?:\./)?mvnw? .{0,40}package|(?:\./)?gradlew? .{0,40}(?:build|assemble)|make (?:build|all|dist|image)\S*|dotnet (?:build|publish)"
    ),
}


# What may stand before the program: `FOO=1 uv run --frozen pytest`.
_PREFIX = r"sudo |time |env |\w+=\S{0,80} |(?:uv|poetry|pipenv|pdm|hatch) run (?:--?[\w-]+(?:[ =][\w.-]+)? )*|npx |pnpm exec |bundle exec |xvfb-run "
# What stands beside the jobs in a GitLab file.
_NO_JOBS = frozenset(
    "stages variables default include image services cache workflow before_script after_script pages spec".split()
)


class Step(NamedTuple):
    purpose: str
    command: str
    path: str
    line: int


class Workflow(NamedTuple):
    path: str
    system: str
    name: str
    triggers: tuple[str, ...]
    jobs: tuple[str, ...]
    commands: tuple[str, ...]
    line: int


def steps(tree: Tree) -> Iterator[Step]:
    for workflow in workflows(tree):
        lines = tree.lines(workflow.path)
        for block in workflow.commands:
            for command in block.split("\n"):
                command = command.strip()
                purpose = _purpose(command)
                if purpose:
                    yield Step(
                        purpose,
                        command[:120],
                        workflow.path,
                        line_of(lines, command.split("  ")[0][:80]),
                    )


def _purpose(command: str) -> str | None:
    command = re.sub(rf"^(?:{_PREFIX})+", "", command[:300])
    return next(
        (
            purpose
            for purpose, pattern in _PROGRAMS.items()
            if re.match(rf"(?:{pattern})(?=\s|$)", command)
        ),
        None,
    )


def workflows(tree: Tree) -> tuple[Workflow, ...]:
    return tree.once(_workflows)


def _workflows(tree: Tree) -> tuple[Workflow, ...]:
    found: list[Workflow] = []
    for path in tree.paths:
        reader = None
        if re.fullmatch(r"\.github/workflows/[^/]+\.ya?ml", path):
            reader = _github
        elif path == ".gitlab-ci.yml":
            reader = _gitlab
        elif path == ".circleci/config.yml":
            reader = _circle
        elif re.fullmatch(r"(?:\.azure/)?azure-pipelines[\w.-]*\.ya?ml", path):
            reader = _azure
        elif path == "Jenkinsfile":
            found += _jenkins(tree, path)
        documents = tree.parse(path, read_yaml) if reader and len(found) < MOST_WORKFLOWS else None
        if reader and documents and isinstance(documents[0], dict):
            found.append(reader(tree, path, documents[0]))
    return tuple(found)


def analyze(tree: Tree) -> Iterator[Finding]:
    """One finding per CI system, with all its workflows."""
    systems: dict[str, list[Workflow]] = {}
    for workflow in workflows(tree):
        systems.setdefault(workflow.system, []).append(workflow)
    for system, found in systems.items():
        told = []
        for workflow in found[:8]:
            when = f" on {listed(workflow.triggers, 5)}" if workflow.triggers else ""
            jobs = (
                f" with the jobs {listed(workflow.jobs, 10)}"
                if len(workflow.jobs) > 1
                else f" with the job {workflow.jobs[0]}"
                if workflow.jobs
                else ""
            )
            named = (
                f"{workflow.name} ({workflow.path})"
                if workflow.name and workflow.name != workflow.path
                else workflow.path
            )
            told.append(f"{named} runs{when}{jobs}")
        more = f"; and {len(found) - 8} more workflows" if len(found) > 8 else ""
        content = f"CI is {system}: {'; '.join(told)}{more}."
        yield finding(
            found[0].path,
            found[0].line,
            "pattern",
            "ci",
            content,
            importance=5.5,
            confidence=1.0,
            entities=[Entity(system, "technology")],
        )


def _github(tree: Tree, path: str, value: dict[str, Any]) -> Workflow:
    on = value.get("on")
    triggers = strings(on) or (list(map(str, on)) if isinstance(on, dict) else [])
    push, schedule = table(on, "push"), table(on).get("schedule")
    if strings(push.get("tags")):
        triggers = [
            f"push of tags {', '.join(strings(push['tags'])[:3])}" if trigger == "push" else trigger
            for trigger in triggers
        ]
    elif strings(push.get("branches")):
        triggers = [
            f"push to {', '.join(strings(push['branches'])[:3])}" if trigger == "push" else trigger
            for trigger in triggers
        ]
    if isinstance(schedule, list):
        crons = [string(table(item).get("cron")) for item in schedule]
        triggers = [
            f"schedule ({', '.join(filter(None, crons))})" if trigger == "schedule" else trigger
            for trigger in triggers
        ]
    jobs: list[str] = []
    commands: list[str] = []
    for name, job in list(table(value, "jobs").items())[:40]:
        jobs.append(f"{name}{_matrix(table(job, 'strategy', 'matrix'))}")
        steps = table(job).get("steps")
        commands += (
            [string_lines(table(step).get("run")) for step in steps if isinstance(step, dict)]
            if isinstance(steps, list)
            else []
        )
    line = line_of(tree.lines(path), "jobs:")
    return Workflow(
        path,
        "GitHub Actions",
        string(value.get("name")),
        tuple(triggers),
        tuple(jobs),
        tuple(filter(None, commands)),
        line,
    )


def _matrix(matrix: dict[str, Any]) -> str:
    told = [
        f"{name} {', '.join(strings(values)[:6])}"
        for name, values in matrix.items()
        if name not in ("include", "exclude") and strings(values)
    ]
    return f" ({'; '.join(told[:2])})" if told else ""


def string_lines(value: Any) -> str:
    """The text of a script, one command per line: continued lines are joined."""
    return re.sub(r"\\\n\s*+", " ", value) if isinstance(value, str) else ""


def _gitlab(tree: Tree, path: str, value: dict[str, Any]) -> Workflow:
    jobs: list[str] = []
    commands: list[str] = []
    for name, raw in list(value.items())[:80]:
        job = merged(raw)
        script = strings(job.get("script"))
        if not isinstance(name, str) or name in _NO_JOBS or name.startswith("."):
            continue
        stage = string(job.get("stage"))
        jobs.append(f"{name} ({stage})" if stage and stage != name else name)
        commands += map(string_lines, script)
    return Workflow(
        path,
        "GitLab CI",
        "",
        (),
        tuple(jobs),
        tuple(commands),
        line_of(tree.lines(path), "script:"),
    )


def _circle(tree: Tree, path: str, value: dict[str, Any]) -> Workflow:
    jobs: list[str] = []
    commands: list[str] = []
    for name, job in list(table(value, "jobs").items())[:40]:
        jobs.append(str(name))
        for step in table(job).get("steps") or ():
            run = table(step).get("run")
            commands.append(string_lines(run) or string_lines(table(run).get("command")))
    return Workflow(
        path,
        "CircleCI",
        "",
        (),
        tuple(jobs),
        tuple(filter(None, commands)),
        line_of(tree.lines(path), "jobs:"),
    )


def _azure(tree: Tree, path: str, value: dict[str, Any]) -> Workflow:
    jobs: list[str] = []
    commands: list[str] = []
    pending: list[Any] = [value]
    for _ in range(2_000):  # aliases can make a small file a tree without end
        if not pending:
            break
        item = pending.pop(0)
        if isinstance(item, dict):
            jobs += [name for key in ("job", "deployment") if (name := string(item.get(key)))]
            commands += [
                told for key in ("script", "bash", "pwsh") if (told := string_lines(item.get(key)))
            ]
            pending += [
                below
                for key in ("stages", "jobs", "steps")
                if isinstance(below := item.get(key), list)
            ]
        elif isinstance(item, list):
            pending += item[:100]
    triggers = strings(value.get("trigger")) or strings(
        table(value, "trigger", "branches").get("include")
    )
    return Workflow(
        path,
        "Azure Pipelines",
        "",
        tuple(f"push to {branch}" for branch in triggers[:4]),
        tuple(jobs),
        tuple(commands),
        1,
    )


def _jenkins(tree: Tree, path: str) -> Iterator[Workflow]:
    text = tree.text(path)
    stages = re.findall(r"\bstage\s*+\(\s*+['\"]([^'\"\n]{1,60})['\"]", text)
    commands = re.findall(r"\bsh\s*+\(?\s*+(?:script:\s*+)?['\"]{1,3}\s*+([^'\"\n]{1,200})", text)
    if stages or commands:
        yield Workflow(path, "Jenkins", "", (), tuple(stages[:20]), tuple(commands[:60]), 1)
