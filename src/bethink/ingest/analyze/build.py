"""What a project is built from and how one works with it: package manifests, task runners and CI.

`data/manifests.toml` says for each kind of manifest in which format it is and where in it each fact stands; `data/choices.toml`
which dependency stands for which technology. `data/commands.toml` says where task runners keep their tasks, by which words a task is
known, and which program of a line of CI means what. This module reads these tables and knows no package manager. It runs nothing;
where a project has no task runner at all, the usual command of its tool chain is told with less confidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from posixpath import basename, dirname
from typing import Any, NamedTuple

from bethink.ingest.analyze.tree import (
    Finding,
    Tree,
    as_string,
    as_strings,
    as_table,
    clip,
    find_line,
    join_words,
    load_table,
    make_finding,
    quote_code,
    unique,
)
from bethink.types import Entity

# Bounds on how much is told, set by hand.
MOST_DEPENDENCIES = 400  # of one manifest that are read
MOST_MANIFESTS = 10
MOST_CHOICES = 8
MOST_PER_PURPOSE = 4  # commands told together
MOST_RUNNERS = 30  # task files that are read
MOST_WORKFLOWS = 12
_NAME = re.compile(r"[A-Za-z0-9@][\w.@/+-]{0,120}")
_NAME_BEGINS = re.compile(r"(?:^\s{0,40}|[\"'>:{(])([A-Za-z0-9@][\w.@/+-]{0,120})")
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*+)(?:\[[^\]]*+\])?\s*+\(?([^@()]*+)")


class Dependency(NamedTuple):
    name: str
    constraint: str
    line: int = 0


class Manifest(NamedTuple):
    path: str
    language: str
    name: str
    description: str
    requires: str  # of the language itself
    runtime: tuple[Dependency, ...]
    development: tuple[Dependency, ...]
    members: tuple[str, ...]  # folders of a workspace, as written
    commands: tuple[str, ...]  # what an installation puts on the path
    builder: str

    @property
    def dependencies(self) -> tuple[Dependency, ...]:
        return self.runtime + self.development


class Target(NamedTuple):
    """A task of a task runner, what a tool chain answers to, or a line of CI."""

    purpose: str
    call: str
    path: str
    line: int
    runs: str = ""  # the command behind it, or what is said about it in “ ”
    plainness: int = 0  # 0 for the plain word, 1 for another one, 2 for a compound
    confidence: float = 1.0


def analyze(tree: Tree) -> Iterator[Finding]:
    manifests = read_manifests(tree)
    yield from (_describe_manifest(one) for one in _leave_out_repeated(manifests)[:MOST_MANIFESTS])
    yield from _describe_choices(manifests)
    yield from _describe_commands(tree)
    yield from _describe_ci(tree)


# Manifests


def find_all(value: Any, path: str, star: str = "") -> Iterator[tuple[str, Any]]:
    """What stands at a path of keys, with the key that a `*` stood for. Lists are gone through, because XML makes them."""
    if not path:
        yield star, value
        return
    key, _, rest = path.partition("/")
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, dict) and key == "*":
            for name, inner in one.items():
                yield from find_all(inner, rest, str(name))
        elif isinstance(one, dict) and key in one:
            yield from find_all(one[key], rest, star)


def read_manifests(tree: Tree) -> tuple[Manifest, ...]:
    """Every manifest that says something, shallow ones first."""
    return tree.once(_read_manifests)


def _read_manifests(tree: Tree) -> tuple[Manifest, ...]:
    rows = load_table("manifests")["manifest"]
    found = []
    for path in tree.own:
        row = next((row for row in rows if re.fullmatch(row["file"], basename(path))), None)
        if row:
            found.append(_read_manifest(tree, path, row))
    return tuple(one for one in found if one.name or one.dependencies or one.members)


def _read_manifest(tree: Tree, path: str, row: Mapping[str, Any]) -> Manifest:
    value, text = tree.table(path, row["format"]), tree.text(path)
    name, description, requires, backend = (
        _find_fact(value, text, path, row.get(field, ()))
        for field in ("name", "description", "requires", "backend")
    )
    pairs = [*_find_dependencies(value, row), *_match_dependencies(text, row)]
    for_development = re.search(row.get("development_file", "(?!)"), basename(path))
    runtime = [one for one, side in pairs if not side and not for_development]
    development = [one for one, side in pairs if side or for_development]
    typed = any(one.name == "typescript" for one in development)
    return Manifest(
        path,
        "TypeScript" if typed else row["language"],
        name,
        description,
        requires,
        _locate(tree.lines(path), runtime),
        _locate(tree.lines(path), development),
        tuple(_find_members(value, text, row)),
        tuple(_find_commands(value, name, row)),
        row.get("builder") or backend.partition(".")[0],
    )


def _find_fact(value: Any, text: str, path: str, places: Sequence[str]) -> str:
    """The first of the places that says something: a path, a pattern after `re:`, or the file's own name."""
    for place in places:
        if place == "stem":
            return basename(path).rpartition(".")[0]
        if place.startswith("re:"):
            match = re.search(place[3:], text)
            found = [match[1]] if match else []
            lead = ""
        else:
            lead, _, at = place.rpartition(":")
            found = [_flatten_fact(one) for _, one in find_all(value, at)]
        if fact := next(filter(None, found), ""):
            return f"{lead} {fact}".strip()[:120]
    return ""


def _flatten_fact(value: Any) -> str:
    if isinstance(value, list):
        value = value[0] if value else ""
    if isinstance(value, dict):
        pairs = (f"{key} {as_string(item)}" for key, item in value.items() if as_string(item))
        return as_string(value.get("version")) or ", ".join(pairs)
    return as_string(value)


def _find_dependencies(value: Any, row: Mapping[str, Any]) -> Iterator[tuple[Dependency, bool]]:
    """Each dependency in a parsed manifest, without its line, and whether it is for development only."""
    left_out = re.compile(row.get("left_out", "(?!)"))
    for field in ("runtime", "development"):
        for place in row.get(field, ()):
            for _, found in find_all(value, place):
                for one, for_tests in _read_dependencies(found):
                    if not left_out.fullmatch(one.name):
                        yield one, for_tests or field == "development"


def _read_dependencies(found: Any) -> Iterator[tuple[Dependency, bool]]:
    if isinstance(found, str):
        found = found.splitlines()
    for item in found if isinstance(found, list) else [found]:
        if isinstance(item, str):
            if match := _REQUIREMENT.match(re.split(r"\s#|;", item, maxsplit=1)[0].strip()):
                yield Dependency(match[1], match[2].strip()), False
        elif isinstance(item, dict) and ("artifactId" in item or "Include" in item):  # Maven, .NET
            name, version, scope = (
                next((text for key in keys for text in as_strings(item.get(key))), "")
                for keys in (("artifactId", "Include"), ("version", "Version"), ("scope",))
            )
            yield Dependency(name, version if version[:1] != "$" else ""), scope == "test"
        elif isinstance(item, dict):
            for name, version in item.items():
                constraint = as_string(version) or as_string(as_table(version).get("version"))
                yield Dependency(str(name), constraint), False


def _match_dependencies(text: str, row: Mapping[str, Any]) -> Iterator[tuple[Dependency, bool]]:
    """The same, of a manifest that is read by a pattern."""
    if "dependency" not in row:
        return
    blocks = [one.span() for one in re.finditer(row.get("development_block", "(?!)"), text)][:200]
    for match in re.finditer(row["dependency"], text):
        groups = match.groupdict()
        inside = any(start <= match.start() < end for start, end in blocks)
        line = text.count("\n", 0, match.start("name")) + 1
        found = Dependency(match["name"], groups.get("version") or "", line)
        yield found, inside or bool(groups.get("development"))


def _locate(lines: Sequence[str], found: Iterable[Dependency]) -> tuple[Dependency, ...]:
    """Dependencies with the line where each name first begins a line or a string, from the first list of dependencies on."""
    start = find_line(lines, "ependencies") - 1
    places: dict[str, int] = {}
    for number, line in enumerate(lines[start : start + 4_000], start + 1):
        for match in _NAME_BEGINS.finditer(line[:2_000]):
            places.setdefault(match[1], number)
    located: dict[str, Dependency] = {}
    for name, constraint, line_number in found:
        if len(located) < MOST_DEPENDENCIES and _NAME.fullmatch(name):
            place = line_number or places.get(name, start + 1)
            located.setdefault(name, Dependency(name, " ".join(constraint.split())[:40], place))
    return tuple(located.values())


def _find_members(value: Any, text: str, row: Mapping[str, Any]) -> Iterator[str]:
    for place in row.get("members", ()):
        if place.startswith("re:"):
            yield from (one.strip(":").replace(":", "/") for one in re.findall(place[3:], text))
        else:
            yield from (one for _, found in find_all(value, place) for one in as_strings(found))


def _find_commands(value: Any, name: str, row: Mapping[str, Any]) -> Iterator[str]:
    for place in row.get("commands", ()):
        for _, found in find_all(value, place):
            if isinstance(found, str):
                yield name
            for command, target in as_table(found).items():
                if isinstance(target, str):
                    yield f"{command} ({target})"


@cache
def _notable_dependencies() -> Mapping[str, tuple[str, str]]:
    """Each dependency that stands for a technology → what is chosen by it, and the technology's name."""
    return {
        name.lower(): (choice, label.replace("_", " "))
        for choice, row in load_table("choices").items()
        for name, _, label in (entry.partition("=") for entry in row["names"].split())
    }


def _find_choice(dependency: str) -> tuple[str, str]:
    """What is chosen by a dependency. Go modules carry their major version in the path."""
    return _notable_dependencies().get(re.sub(r"/v\d+$", "", dependency.lower()), ("", ""))


def _leave_out_repeated(found: Sequence[Manifest]) -> list[Manifest]:
    """Manifests that say more than a name. A requirements file beside a manifest with the same dependencies repeats it."""
    kept: list[Manifest] = []
    known: dict[tuple[str, str], set[str]] = {}
    for manifest in found:
        names = {item.name.lower() for item in manifest.dependencies}
        beside = known.setdefault((manifest.language, dirname(manifest.path)), set())
        if names - beside or manifest.members:
            kept.append(manifest)
        beside |= names
    return kept


def _describe_manifest(manifest: Manifest) -> Finding:
    path, language, requires = manifest.path, manifest.language, manifest.requires
    name = manifest.name or basename(dirname(path))
    about = f": {clip(manifest.description, 200).rstrip('.')}" if manifest.description else ""
    says_what = language in ("JavaScript", "TypeScript") or requires.startswith(("edition", "net"))
    shown = (
        ("{}", f"{language} project{f' {name}' if name else ''} ({path}){about}"),
        ("It needs {}", requires and (requires if says_what else f"{language} {requires}")),
        ("It is built with {}", manifest.builder),
        ("Main dependencies: {}", join_words([_constrain(one) for one in manifest.runtime], 16)),
        ("For development and extras: {}", join_words([o.name for o in manifest.development], 14)),
        ("It installs the command {}", join_words(manifest.commands, 6)),
        ("It is a workspace of {}", join_words(manifest.members, 12)),
    )
    lines = [item.line for item in manifest.dependencies] or [1]
    labels = unique(_find_choice(item.name)[1].partition(" (")[0] for item in manifest.runtime)
    return make_finding(
        path,
        (min(lines), max(lines)),
        "fact",
        "dependency",
        " ".join(f"{words.format(value)}." for words, value in shown if value),
        importance=5.5 if "/" not in path else 4.5,
        confidence=1.0,
        section=f"{path} › dependencies",
        entities=[
            *([Entity(name, "project")] if name else []),
            *(Entity(label, "technology") for label in labels[:8]),
        ],
    )


def _constrain(one: Dependency) -> str:
    telling = one.constraint not in ("", "*") and len(one.constraint) <= 24
    return f"{one.name} {one.constraint}" if telling else one.name


def _describe_choices(found: Sequence[Manifest]) -> Iterator[Finding]:
    """One sentence per kind of choice, each technology with the line that asks for it."""
    chosen: dict[str, dict[str, tuple[str, str, int]]] = {}
    for manifest in found:
        for item in manifest.dependencies:
            choice, label = _find_choice(item.name)
            if choice in ("test", "frontend") or (choice and item in manifest.runtime):
                place = (item.name, manifest.path, item.line)
                chosen.setdefault(choice, {}).setdefault(label, place)
    rows = [(row, chosen[name]) for name, row in load_table("choices").items() if name in chosen]
    for row, named in rows[:MOST_CHOICES]:
        labels = [
            f"{label} ({'' if name.lower() in label.lower() else f'{name}, '}{path}:{line})"
            for label, (name, path, line) in named.items()
        ]
        _, path, line = next(iter(named.values()))
        yield make_finding(
            path,
            line,
            row["kind"],
            "dependency",
            f"{row['sentence']} {join_words(labels, 6)}.",
            importance=row["importance"],
            section="Technology",
            entities=[Entity(label.partition(" (")[0], "technology") for label in list(named)[:6]],
        )


# Commands


def _describe_commands(tree: Tree) -> Iterator[Finding]:
    """One finding per purpose, from task runners first and from CI where it adds to them."""
    steps, targets = list(_find_ci_steps(tree)), list(_find_targets(tree))
    known = {one.purpose for one in (*steps, *targets)}
    targets += [one for one in _find_usual_commands(tree) if one.purpose not in known]
    for purpose, row in load_table("commands")["purpose"].items():
        own = [one for one in targets if one.purpose == purpose]
        inside = [one for one in steps if one.purpose == purpose]
        if own or inside:
            yield _describe_purpose(purpose, row, own, inside)


def _describe_purpose(
    purpose: str, row: Mapping[str, Any], targets: list[Target], steps: list[Target]
) -> Finding:
    targets.sort(key=lambda one: (one.path.count("/"), one.plainness))
    by_call = {(one.call, dirname(one.path)): one for one in reversed(targets)}
    chosen = list(by_call.values())[::-1][:MOST_PER_PURPOSE]
    # What CI calls in other words than the task runner is news; the same words are worth a mention of where.
    calls = {one.call for one in chosen}
    ci = list({one.call: one for one in reversed(steps)}.values())[::-1]
    ci.sort(key=lambda one: (one.call not in calls, one.path))
    ci = ci[: 3 if chosen else 4]
    shown = join_words([_cite(one) for one in ci])
    if chosen:
        also = f"; also {join_words([_cite(one) for one in chosen[1:]])}" if chosen[1:] else ""
        content = f"{row['lead']} {_cite(chosen[0])}{also}." + (f" CI runs {shown}." if ci else "")
    else:
        content = f"{row['lead']} {shown} in CI."
    first = (chosen or ci)[0]
    return make_finding(
        first.path,
        first.line,
        "pattern",
        "command",
        content,
        importance=row["importance"],
        confidence=first.confidence,
        section=f"Commands › {purpose}",
    )


def _cite(one: Target) -> str:
    runs, folder = one.runs, dirname(one.path)
    about = runs if runs.startswith("“") else quote_code(runs, 70) if runs != one.call else ""
    place = f" in {folder}/" if folder and not folder.startswith(".") else ""
    return f"{quote_code(one.call)}{place} ({f'{about}, ' if runs and about else ''}{one.path}:{one.line})"


def _find_targets(tree: Tree) -> Iterator[Target]:
    for row in load_table("commands")["runner"]:
        read = _list_tasks if "tasks" in row else _match_tasks
        for path in list(tree.find_named(*row["files"]))[:MOST_RUNNERS]:
            for name, call, runs, line in read(tree, path, row):
                purpose = _find_purpose(name) if len(name) <= 60 else None
                if purpose:
                    yield Target(purpose[0], call, path, line, runs, purpose[1])


def _find_purpose(name: str) -> tuple[str, int] | None:
    """What a target is for, and how plainly its name says so."""
    parts = [part for part in re.split(r"[-_:./ ]+", name.lower()) if part]
    for purpose in load_table("commands")["by_name"]:
        if not set(parts).isdisjoint(purpose["words"].split()):
            plainest = parts[0] in load_table("commands")["plainest"].split()
            return purpose["purpose"], 2 if len(parts) > 1 else 0 if plainest else 1
    return None


def _list_tasks(
    tree: Tree, path: str, row: Mapping[str, Any]
) -> Iterator[tuple[str, str, str, int]]:
    """Name, call, command and line of the tasks of a file in which they are a mapping of names to commands."""
    value, lines = tree.table(path, row["format"]), tree.lines(path)
    start = find_line(lines, row.get("after", "")) - 1
    manager = _find_package_manager(tree, path, value)
    for key, tasks in find_all(value, row["tasks"]):
        for name, task in as_table(tasks).items():
            runs = _find_command(task)
            if not re.fullmatch(row.get("left_out", "(?!)"), f"{name}={runs}"):
                call = row["call"].format(name=name, key=key, manager=manager)
                tidy = re.compile(row.get("tidy", "(?!)"))
                yield (
                    tidy.sub("", name),
                    tidy.sub("", call),
                    runs,
                    find_line(lines, row["needle"].format(name=name), start),
                )


def _find_command(task: Any) -> str:
    """The first command of a task, in whichever of the usual forms it is written."""
    if isinstance(task, list):
        return next((found for item in task[:20] if (found := _find_command(item))), "")
    for key in ("cmds", "cmd", "command", "commands", "shell", "composite"):
        if key in as_table(task):
            return _find_command(task[key])
    return as_string(task.strip().split("\n")[0]) if isinstance(task, str) else ""


def _find_package_manager(tree: Tree, path: str, value: Mapping[str, Any]) -> str:
    """How scripts of a package.json are called: as it says itself, or as the lock file beside it or at the top gives away."""
    locks: Mapping[str, str] = load_table("commands")["locks"]
    named = as_string(value.get("packageManager")).partition("@")[0]
    folders = (f"{dirname(path)}/".lstrip("/"), "")
    found = (name for folder in folders for lock, name in locks.items() if folder + lock in tree)
    manager = named if named in locks.values() else next(found, "npm")
    return manager if manager in ("yarn", "pnpm") else f"{manager} run"


def _match_tasks(
    tree: Tree, path: str, row: Mapping[str, Any]
) -> Iterator[tuple[str, str, str, int]]:
    """The same of a file that is read by a pattern. Its groups may tell what a task is about, and what it stands for; the lines
    below that begin with `below` are its recipe."""
    text, lines = tree.text(path), tree.lines(path)
    idle, noise = (re.compile(load_table("commands")[name]) for name in ("idle", "noise"))
    for match in re.finditer(row["pattern"], text):
        groups = match.groupdict()
        line = text.count("\n", 0, match.start("name")) + 1
        about, needs = groups.get("about"), " ".join((groups.get("needs") or "").split())
        recipe = []
        for step in lines[line : line + 12]:
            if "below" not in row or not step.startswith(row["below"]):
                break
            recipe.append(noise.sub("", step.strip()))
        runs = next((step for step in recipe if not idle.match(step)), "").rstrip("\\ ")
        if about:
            runs = f"“{about.strip()}”"
        elif not recipe and needs and "$" not in needs:
            runs = row["call"].format(name=needs)
        elif len(runs) > 120 or re.match(load_table("commands")["script"], runs):
            runs = ""
        yield match["name"], row["call"].format(name=match["name"]), runs, line


def _find_usual_commands(tree: Tree) -> Iterator[Target]:
    """What a tool chain always answers to, where nothing else says how to test and build."""
    usual = load_table("commands")["usual"]
    for manifest in read_manifests(tree):
        row = usual.get(manifest.builder) or usual.get(manifest.language, {})
        needs = row.get("needs", "")
        names = {item.name.lower() for item in manifest.dependencies}
        if "/" not in manifest.path and (not needs or needs in names):
            line = find_line(tree.lines(manifest.path), needs)
            for purpose in {"test", "build"} & row.keys():
                yield Target(purpose, row[purpose], manifest.path, line, confidence=0.7)


# CI


def _find_workflows(tree: Tree) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The files that CI reads, each with the row of its system."""
    found = (
        (path, row)
        for path in tree.paths
        for row in load_table("commands")["ci"]
        if re.fullmatch(row["file"], path)
    )
    yield from list(found)[:MOST_WORKFLOWS]


def _find_ci_steps(tree: Tree) -> Iterator[Target]:
    rows = load_table("commands")
    programs = [
        (purpose, re.compile(rf"(?:{'|'.join(row['programs'])})(?=\s|$)"))
        for purpose, row in rows["purpose"].items()
        if "programs" in row
    ]
    prefix = re.compile(rf"(?:{'|'.join(rows['prefixes'])})*+")
    for path, row in _find_workflows(tree):
        text = tree.text(path)
        for step in re.finditer(row.get("steps", rows["steps"]), text):
            command = " ".join(step[1].replace("\\\n", " ").split()).strip("\"'")[:300]
            called = prefix.sub("", command, count=1)
            purpose = next((name for name, pattern in programs if pattern.match(called)), None)
            if purpose:
                line = text.count("\n", 0, step.start(1)) + 1
                yield Target(purpose, command[:120], path, line, confidence=0.9)


def _find_jobs(value: Mapping[str, Any]) -> list[str]:
    """The jobs of a workflow; in GitLab they stand at the top, among other things."""
    other = load_table("commands")["gitlab_no_jobs"].split()
    jobs = as_table(value, "jobs") or {
        name: job
        for name, job in value.items()
        if "script" in as_table(job) and name not in other and name[:1] != "."
    }
    return [str(name) for name in jobs][:40]


def _describe_ci(tree: Tree) -> Iterator[Finding]:
    """One finding per CI system, with all its workflows."""
    systems: dict[str, list[str]] = {}
    first: dict[str, tuple[str, int]] = {}
    for path, row in _find_workflows(tree):
        value = tree.table(path, "text" if "jobs" in row else "yaml")
        jobs = re.findall(row["jobs"], tree.text(path))[:20] if "jobs" in row else _find_jobs(value)
        if not value and not jobs:
            continue
        triggers = as_strings(value.get("on")) or [str(one) for one in as_table(value, "on")]
        name = as_string(value.get("name"))
        shown = f"{name} ({path}) runs" if name else f"{path} runs"
        shown += f" on {join_words(triggers, 5)}" if triggers else ""
        shown += f" with the job{'s' * (len(jobs) > 1)} {join_words(jobs, 10)}" if jobs else ""
        systems.setdefault(row["system"], []).append(shown)
        first.setdefault(row["system"], (path, find_line(tree.lines(path), "jobs:")))
    for system, workflows in systems.items():
        more = f"; and {len(workflows) - 8} more workflows" if len(workflows) > 8 else ""
        yield make_finding(
            *first[system],
            "pattern",
            "ci",
            f"CI is {system}: {'; '.join(workflows[:8])}{more}.",
            importance=5.5,
            confidence=1.0,
            entities=[Entity(system, "technology")],
        )
