"""What a project is built from, how one works with it, and how it is put together: manifests, tasks, CI, and signs in files and folders.

All of it is tables. `data/manifests.toml` says in which format a manifest is and where in it each fact stands; `data/choices.toml`
which dependency stands for which technology; `data/commands.toml` where task runners keep their tasks, by which words a task is
known, and which program of a line of CI means what; `data/structure.toml` which paths, or which words in them, mean what. This module
reads these tables and knows no package manager. It runs nothing. Values of environment variables are never read, they are where
passwords stand. Names of folders are conventions, not proof: confidence in a pattern stays between .6 and .8.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from posixpath import basename, dirname
from typing import Any, NamedTuple

from bethink.ingest.analyze.tree import (
    Finding,
    Tree,
    as_string,
    as_table,
    clip,
    find_all,
    find_line,
    flatten,
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
MOST_PER_SIGN, MOST_PATTERNS, MOST_LAYERS = 2, 8, 2
_NAME = re.compile(r"[A-Za-z0-9@][\w.@/+-]{0,120}")
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*+)(?:\[[^\]]*+\])?\s*+\(?([^@();]*+)")


class Manifest(NamedTuple):
    path: str
    language: str
    name: str
    description: str
    requires: str  # of the language itself
    builder: str
    runtime: Mapping[str, str]  # dependency → constraint
    development: Mapping[str, str]
    members: Sequence[str]  # folders of a workspace, as written
    commands: Sequence[str]  # what an installation puts on the path


class KnownCommand(NamedTuple):
    """A task of a task runner, or a line of CI."""

    purpose: str
    call: str
    path: str
    line: int
    runs: str = ""  # the command behind it, or what is said about it in “ ”
    plain: bool = False  # whether its name is one plain word


def analyze(tree: Tree) -> Iterator[Finding]:
    manifests = read_manifests(tree)
    for manifest in _leave_out_repeated(manifests)[:MOST_MANIFESTS]:
        yield _describe_manifest(tree, manifest)
    yield from _describe_choices(tree, manifests)
    yield from _describe_commands(tree)
    signs = [*_describe_signs(tree), *_describe_layers(tree)]
    patterns = [one for one in signs if one.passage.tags[1] == "pattern"]
    yield from (one for one in signs if one not in patterns[MOST_PATTERNS:])


# Manifests


def read_manifests(tree: Tree) -> list[Manifest]:
    """Every manifest that says something, shallow ones first."""
    rows = load_table("manifests")["manifest"]
    found = [
        _read_manifest(tree, path, row)
        for path in tree.own
        for row in rows
        if re.fullmatch(row["file"], basename(path))
    ]
    return [one for one in found if one.name or one.runtime or one.development or one.members]


def _read_manifest(tree: Tree, path: str, row: Mapping[str, Any]) -> Manifest:
    value, text = tree.table(path, row["format"]), tree.text(path)
    facts = {
        field: next(filter(None, _find_facts(value, text, path, row.get(field, ()))), "")
        for field in ("name", "description", "requires", "backend")
    }
    runtime, development = _find_dependencies(value, text, row)
    if re.search(row.get("development_file", "(?!)"), basename(path)):
        runtime, development = {}, runtime
    commands = [one for place in row.get("commands", ()) for _, one in find_all(value, place)]
    return Manifest(
        path,
        "TypeScript" if "typescript" in development else row["language"],
        facts["name"],
        facts["description"],
        facts["requires"],
        row.get("builder") or facts["backend"].partition(".")[0],
        runtime,
        development,
        list(_find_facts(value, text, path, row.get("members", ()))),
        [
            f"{name} ({target})"
            for one in commands
            for name, target in (as_table(one) or {facts["name"]: one}).items()
        ],
    )


def _find_facts(value: Any, text: str, path: str, places: Sequence[str]) -> Iterator[str]:
    """What the places say: a path of keys, a pattern after `re:`, or the file's own name."""
    for place in places:
        lead, _, at = place.rpartition(":")
        if place == "stem":
            yield basename(path).rpartition(".")[0]
        elif place.startswith("re:"):
            yield from (one.strip(":").replace(":", "/") for one in re.findall(place[3:], text))
        else:
            for _, found in find_all(value, at):
                several = found if isinstance(found, list) else [found]
                yield from (f"{lead} {flatten(one)}".strip() for one in several if flatten(one))


def _find_dependencies(
    value: Any, text: str, row: Mapping[str, Any]
) -> tuple[dict[str, str], dict[str, str]]:
    """The dependencies that a program needs, and those that only who works on it needs, each with its constraint."""
    found = [
        (name, constraint, scope == "test" or field == "development")
        for field in ("runtime", "development")
        for place in row.get(field, ())
        for _, listed in find_all(value, place)
        for name, constraint, scope in _read_dependencies(listed)
        if not re.fullmatch(row.get("left_out", "(?!)"), name)
    ]
    blocks = [one.span() for one in re.finditer(row.get("development_block", "(?!)"), text)][:200]
    for match in re.finditer(row.get("dependency", "(?!)"), text):
        groups = match.groupdict("")
        inside = any(start <= match.start() < end for start, end in blocks)
        aside = inside or bool(groups.get("development"))
        found.append((match["name"], groups.get("version", ""), aside))
    sides: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for name, constraint, aside in found[:MOST_DEPENDENCIES]:
        if _NAME.fullmatch(name):
            sides[aside].setdefault(name, " ".join(constraint.split())[:40])
    return sides


def _read_dependencies(listed: Any) -> Iterator[tuple[str, str, str]]:
    """Name, constraint and scope of each: in lines or a list of requirements, a mapping, or elements of XML."""
    for item in listed if isinstance(listed, list) else [listed]:
        if isinstance(item, str):
            for line in item.splitlines():
                if match := _REQUIREMENT.match(line.partition(" #")[0].strip()):
                    yield match[1], match[2].strip(), ""
        elif "artifactId" in as_table(item) or "Include" in as_table(item):  # Maven, .NET
            texts = {key.lower(): flatten(text) for key, text in item.items()}
            name, version = texts.get("include") or texts["artifactid"], texts.get("version", "")
            yield name, version if version[:1] != "$" else "", texts.get("scope", "")
        else:
            for name, given in as_table(item).items():
                yield str(name), as_string(given) or as_string(as_table(given).get("version")), ""


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


def _leave_out_repeated(found: Iterable[Manifest]) -> list[Manifest]:
    """Manifests that say more than a name. A requirements file beside a manifest with the same dependencies repeats it."""
    kept: list[Manifest] = []
    known: dict[tuple[str, str], set[str]] = {}
    for manifest in found:
        names = {name.lower() for name in (*manifest.runtime, *manifest.development)}
        beside = known.setdefault((manifest.language, dirname(manifest.path)), set())
        if names - beside or manifest.members:
            kept.append(manifest)
        beside |= names
    return kept


def _describe_manifest(tree: Tree, manifest: Manifest) -> Finding:
    path, language, requires = manifest.path, manifest.language, manifest.requires
    name = manifest.name or basename(dirname(path))
    about = f": {clip(manifest.description, 200).rstrip('.')}" if manifest.description else ""
    says_what = language in ("JavaScript", "TypeScript") or requires.startswith(("edition", "net"))
    needed = [f"{one} {version}".strip(" *") for one, version in manifest.runtime.items()]
    shown = (
        ("{}", f"{language} project{f' {name}' if name else ''} ({path}){about}"),
        ("It needs {}", requires and (requires if says_what else f"{language} {requires}")),
        ("It is built with {}", manifest.builder),
        ("Main dependencies: {}", join_words(needed, 16)),
        ("For development and extras: {}", join_words(list(manifest.development), 14)),
        ("It installs the command {}", join_words(manifest.commands, 6)),
        ("It is a workspace of {}", join_words(manifest.members, 12)),
    )
    labels = unique(_find_choice(item)[1].partition(" (")[0] for item in manifest.runtime)
    return make_finding(
        path,
        _find_dependency_line(
            tree, path, next(iter({**manifest.runtime, **manifest.development}), "")
        ),
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


def _describe_choices(tree: Tree, found: Iterable[Manifest]) -> Iterator[Finding]:
    """One sentence per kind of choice, each technology with the line that asks for it."""
    chosen: dict[str, dict[str, tuple[str, str]]] = {}
    for manifest in found:
        for name in (*manifest.runtime, *manifest.development):
            choice, label = _find_choice(name)
            if choice in ("test", "frontend") or (choice and name in manifest.runtime):
                chosen.setdefault(choice, {}).setdefault(label, (name, manifest.path))
    rows = [(row, chosen[name]) for name, row in load_table("choices").items() if name in chosen]
    for row, named in rows[:MOST_CHOICES]:
        cited = [
            (label, name, path, _find_dependency_line(tree, path, name))
            for label, (name, path) in named.items()
        ]
        shown = [
            f"{label} ({'' if name.lower() in label.lower() else f'{name}, '}{path}:{line})"
            for label, name, path, line in cited
        ]
        yield make_finding(
            *cited[0][2:],
            row["kind"],
            "dependency",
            f"{row['sentence']} {join_words(shown, 6)}.",
            importance=row["importance"],
            section="Technology",
            entities=[Entity(label.partition(" (")[0], "technology") for label in list(named)[:6]],
        )


def _find_dependency_line(tree: Tree, path: str, name: str) -> int:
    """The line that names a dependency, from the first list of dependencies on."""
    lines = tree.lines(path)
    whole = re.compile(rf"(?<![\w@/.-]){re.escape(name)}(?![\w/-])")
    start = find_line(lines, "ependencies") - 1
    numbered = enumerate(lines[start:], start + 1)
    return next((number for number, line in numbered if whole.search(line[:2_000])), start + 1)


# Commands


def _describe_commands(tree: Tree) -> Iterator[Finding]:
    """One finding per purpose, from task runners first and from CI where it adds to them."""
    steps, tasks = list(_find_ci_steps(tree)), list(_find_tasks(tree))
    for purpose, row in load_table("commands")["purpose"].items():
        own = [one for one in tasks if one.purpose == purpose]
        inside = [one for one in steps if one.purpose == purpose]
        if own or inside:
            yield _describe_purpose(purpose, row, own, inside)


def _describe_purpose(
    purpose: str, row: Mapping[str, Any], tasks: list[KnownCommand], steps: Sequence[KnownCommand]
) -> Finding:
    tasks.sort(key=lambda one: (one.path.count("/"), not one.plain))
    chosen = list({(one.call, dirname(one.path)): one for one in reversed(tasks)}.values())[::-1]
    chosen = chosen[:MOST_PER_PURPOSE]
    ci = list({one.call: one for one in reversed(steps)}.values())[::-1][:MOST_PER_PURPOSE]
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
        confidence=1.0 if chosen else 0.9,
        section=f"Commands › {purpose}",
    )


def _cite(one: KnownCommand) -> str:
    runs, folder = one.runs, dirname(one.path)
    about = runs if runs.startswith("“") else quote_code(runs, 70) if runs else ""
    place = f" in {folder}/" if folder and not folder.startswith(".") else ""
    return f"{quote_code(one.call)}{place} ({f'{about}, ' if about else ''}{one.path}:{one.line})"


def _find_tasks(tree: Tree) -> Iterator[KnownCommand]:
    table = load_table("commands")
    for row in table["runner"]:
        read = _list_tasks if "tasks" in row else _match_tasks
        for path in list(tree.find_named(*row["files"]))[:MOST_RUNNERS]:
            for name, call, runs, line in read(tree, path, row):
                parts = [part for part in re.split(r"[-_:./ ]+", name.lower()[:60]) if part]
                fitting = (
                    one["purpose"]
                    for one in table["by_name"]
                    if not set(parts).isdisjoint(one["words"].split())
                )
                if purpose := next(fitting, None):
                    yield KnownCommand(purpose, call, path, line, runs, len(parts) == 1)


def _list_tasks(
    tree: Tree, path: str, row: Mapping[str, Any]
) -> Iterator[tuple[str, str, str, int]]:
    """Name, call, command and line of the tasks of a file in which they are a mapping of names to commands."""
    value, lines = tree.table(path, row["format"]), tree.lines(path)
    start = find_line(lines, row.get("after", "")) - 1
    manager = _find_package_manager(tree, path, value)
    tidy = re.compile(row.get("tidy", "(?!)"))
    for key, tasks in find_all(value, row["tasks"]):
        for name, task in as_table(tasks).items():
            runs = _find_command(task)
            if not re.fullmatch(row.get("left_out", "(?!)"), f"{name}={runs}"):
                call = row["call"].format(name=name, key=key, manager=manager)
                line = find_line(lines, row["needle"].format(name=name), start)
                yield tidy.sub("", name), tidy.sub("", call), runs, line


def _find_command(task: Any) -> str:
    """The first command of a task, in whichever of the usual forms it is written."""
    if isinstance(task, list):
        return next(filter(None, map(_find_command, task[:20])), "")
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
    """The same of a file that is read by a pattern: a task is told by what is said about it, by the first line of its recipe that
    does something, or by what it only stands for."""
    text, lines = tree.text(path), tree.lines(path)
    idle = re.compile(load_table("commands")["idle"])
    for match in re.finditer(row["pattern"], text):
        groups = match.groupdict("")
        line = text.count("\n", 0, match.start("name")) + 1
        below = lines[line : line + 12] if "below" in row else []
        end = next((at for at, one in enumerate(below) if not one.startswith(row["below"])), 12)
        recipe = [one.strip(" \t@+-") for one in below[:end]]
        runs = next((one for one in recipe if not idle.match(one)), "").rstrip("\\ ")
        needs = groups.get("needs", "").strip()
        if groups.get("about"):
            runs = f"“{groups['about'].strip()}”"
        elif not recipe and needs and "$" not in needs:
            runs = row["call"].format(name=needs)
        yield match["name"], row["call"].format(name=match["name"]), runs, line


def _find_ci_steps(tree: Tree) -> Iterator[KnownCommand]:
    """The lines of CI that call a program by which a purpose is known."""
    table = load_table("commands")
    programs = [
        (purpose, re.compile(rf"(?:{'|'.join(row['programs'])})(?=\s|$)"))
        for purpose, row in table["purpose"].items()
        if "programs" in row
    ]
    prefix = re.compile(rf"(?:{'|'.join(table['prefixes'])})*+")
    for row in table["ci"]:
        for path in [path for path in tree.paths if re.fullmatch(row["file"], path)][:12]:
            text = tree.text(path)
            for step in re.finditer(row["steps"], text):
                command = " ".join(step[1].replace("\\\n", " ").split()).strip("\"'")[:300]
                called = prefix.sub("", command, count=1)
                purpose = next((name for name, words in programs if words.match(called)), None)
                if purpose:
                    line = text.count("\n", 0, step.start(1)) + 1
                    yield KnownCommand(purpose, command[:120], path, line)


# Signs


def _describe_signs(tree: Tree) -> Iterator[Finding]:
    for row in load_table("structure")["sign"]:
        paths = re.compile(row["paths"])
        groups: dict[str, list[tuple[str, str]]] = {}  # place → path and what its name shows
        for path in tree.own if row.get("own", True) else tree.paths:
            if match := paths.fullmatch(path):
                named = {"place": "", "shown": "", **match.groupdict("")}
                groups.setdefault(named["place"], []).append((path, named["shown"]))
        made = (_describe_sign(tree, row, place, found) for place, found in groups.items())
        yield from [one for one in made if one][:MOST_PER_SIGN]


def _describe_sign(
    tree: Tree, row: Mapping[str, Any], place: str, found: Sequence[tuple[str, str]]
) -> Finding | None:
    """What a sign tells of the files at one place, if enough of them show it."""
    shown = [
        (path, line, text)
        for path, name in found[:2_000]
        for line, text in _find_shown(tree, row, path, name)
    ]
    counts = Counter(text for _, _, text in shown if text)
    if not shown or len(counts or found) < row.get("least", 1):
        return None
    path, line, _ = shown[0]
    newest = max(file for file, _ in found)
    content = row["content"].format(
        path=path,
        line=line,
        folder=dirname(path) or "the root",
        place=place or "the root",
        count=len(found),
        total=sum(counts.values()),
        members=len(counts),
        shown=join_words(list(counts), 14),
        counted=join_words(
            [f"{name} × {n}" if n > 1 else name for name, n in counts.most_common()]
        ),
        newest=newest.removeprefix(f"{place}/"),
    )
    tag = row.get("tag", "pattern")
    return make_finding(
        newest if "{newest}" in row["content"] else path,
        line,
        row.get("kind", "architecture"),
        tag,
        content,
        importance=row.get("importance", 6),
        confidence=row.get("confidence", 0.9),
        section="Structure" if tag == "pattern" else tag,
        entities=[Entity(row["technology"], "technology")] if "technology" in row else (),
    )


def _find_shown(
    tree: Tree, row: Mapping[str, Any], path: str, name: str
) -> Iterator[tuple[int, str]]:
    """Line and text of what a file shows: the matches of a pattern, the names at a place of YAML with the values of some keys, or else
    what its own name shows."""
    if "words" in row:
        text = tree.text(path)
        for match in re.finditer(row["words"], text):
            yield text.count("\n", 0, match.start(1)) + 1, " ".join(match[1].split())
    elif "at" in row:
        for key, value in find_all(tree.table(path, "yaml"), row["at"]):
            given = as_table(value)
            keys = [one for one in row.get("keys", "").split() if one in given]
            told = ", ".join(f"{one} {flatten(given[one])}" for one in keys)
            yield find_line(tree.lines(path), f"{key}:"), f"{key} ({told})" if told else key
    else:
        yield 1, name


def _describe_layers(tree: Tree) -> Iterator[Finding]:
    """What the shallowest telling folders show: the first row of the table whose groups all have a folder in it."""
    inside: dict[str, dict[str, str]] = {}  # folder → names of folders in it → a file below each
    for path in tree.own:
        parts = path.split("/")
        for depth, name in enumerate(parts[:-1]):
            inside.setdefault("/".join(parts[:depth]), {}).setdefault(name.lower(), path)
    found = []
    for folder in sorted(inside, key=lambda folder: (folder.count("/"), folder)):
        for row in load_table("structure")["layers"]:
            names = [
                next((name for name in group.split() if name in inside[folder]), "")
                for group in row["folders"]
            ]
            if all(names):
                found.append((folder, row, names))
                break
    for folder, row, names in found[:MOST_LAYERS]:
        where = f"{folder}/" if folder else "the top folder"
        shown = join_words([f"{name}/" for name in names])
        yield make_finding(
            inside[folder][names[0]],
            1,
            "architecture",
            "pattern",
            f"The code follows {row['pattern']}, because {where} has {shown}.",
            importance=6,
            confidence=row["confidence"],
            section="Structure",
        )
