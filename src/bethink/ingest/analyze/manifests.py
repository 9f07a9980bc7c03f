"""Package manifests: dependencies, runtime, workspaces, and the notable technologies among them.

`data/manifests.toml` says for each kind of manifest in which format it is and where in it each fact stands; `data/choices.toml`
which dependency stands for which technology, and how one says so. This module reads both and knows no package manager.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from bethink.ingest.analyze.tree import (
    Finding,
    Tree,
    clip,
    finding,
    folder_of,
    line_of,
    listed,
    load_table,
    name_of,
    read_ini,
    read_json,
    read_one_yaml,
    read_python,
    read_toml,
    read_xml,
    string,
    strings,
    table,
    unique,
)
from bethink.types import Entity

MOST_DEPENDENCIES = 400  # of one manifest that are read
MOST_MANIFESTS = 10  # that are told; set by hand, like all bounds on how much is told
MOST_CHOICES = 8
_NAME = re.compile(r"[A-Za-z0-9@][\w.@/+-]{0,120}")
_BEGUN = re.compile(r"(?:^\s{0,40}|[\"'>:{(])([A-Za-z0-9@][\w.@/+-]{0,120})")
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*+)(?:\[[^\]]*+\])?\s*+\(?([^@()]*+)")


class Dependency(NamedTuple):
    name: str
    constraint: str
    line: int


class Manifest(NamedTuple):
    path: str
    language: str
    name: str = ""
    description: str = ""
    requires: str = ""  # of the language itself
    runtime: tuple[Dependency, ...] = ()
    development: tuple[Dependency, ...] = ()
    members: tuple[str, ...] = ()  # folders of a workspace, as written
    commands: tuple[str, ...] = ()  # what an installation puts on the path
    builder: str = ""


def read_setup_py(text: str) -> dict[str, Any]:
    """The arguments of the call of `setup` that are written out; what is computed at run time stays unseen."""
    given: dict[str, Any] = {}
    for node in ast.walk(read_python(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("setup"):
            for keyword in node.keywords:
                try:
                    given[keyword.arg or ""] = ast.literal_eval(keyword.value)
                except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                    continue
    return given


def read_nothing(text: str) -> dict[str, Any]:
    """For formats that are read by patterns alone."""
    return {}


FORMATS: Mapping[str, Callable[[str], Any]] = {
    "toml": read_toml,
    "json": read_json,
    "yaml": read_one_yaml,
    "xml": read_xml,
    "ini": read_ini,
    "setup.py": read_setup_py,
    "text": read_nothing,
}


def find_all(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """What stands at a path of keys, with the key that a `*` stood for. Lists are gone through, because XML makes them."""
    found = [("", value)]
    for key in path.split("/"):
        below: list[tuple[str, Any]] = []
        for star, item in found:
            for one in item if isinstance(item, list) else [item]:
                if isinstance(one, dict) and key == "*":
                    below += [(str(name), inner) for name, inner in one.items()]
                elif isinstance(one, dict) and key in one:
                    below.append((star, one[key]))
        found = below[:MOST_DEPENDENCIES]
    yield from found


def manifests(tree: Tree) -> tuple[Manifest, ...]:
    """Every manifest that could be read, shallow ones first."""
    return tree.once(_read_manifests)


def _read_manifests(tree: Tree) -> tuple[Manifest, ...]:
    rows = load_table("manifests")["manifest"]
    found: list[Manifest] = []
    for path in tree.own:
        row = next((row for row in rows if re.fullmatch(row["file"], name_of(path))), None)
        manifest = _read_manifest(tree, path, row) if row else None
        if manifest and any(manifest[2:3] + manifest[5:8]):
            found.append(manifest)
    return tuple(found)


def _read_manifest(tree: Tree, path: str, row: Mapping[str, Any]) -> Manifest | None:
    value = tree.parse(path, FORMATS[row["format"]])
    if not isinstance(value, dict):
        return None
    text, lines = tree.text(path), tree.lines(path)
    pairs = [*_structured(value, row), *_matched(text, row)]
    side = row.get("development_file")
    aside = bool(side and re.search(side, name_of(path)))
    runtime, development = (
        _placed(lines, [one for one, side in pairs if (side or aside) == wanted])
        for wanted in (False, True)
    )
    name = _fact(value, text, path, row.get("name"))
    language = row["language"]
    if any(item.name == "typescript" for item in development):
        language = "TypeScript"
    return Manifest(
        path,
        language,
        name,
        _fact(value, text, path, row.get("description")),
        _fact(value, text, path, row.get("requires")),
        runtime,
        development,
        tuple(_members(value, text, row)),
        tuple(_commands(value, name, row.get("commands", []))),
        row.get("builder") or _fact(value, text, path, row.get("backend")).partition(".")[0],
    )


def _fact(value: Any, text: str, path: str, places: Sequence[str] | None) -> str:
    """The first of the places that says something: a path, a pattern after `re:`, or the file's own name."""
    for place in places or ():
        if place == "stem":
            return name_of(path).rpartition(".")[0]
        if place.startswith("re:"):
            match = re.search(place[3:], text)
            if match:
                return match[1]
            continue
        lead, _, at = place.rpartition(":")
        for _, found in find_all(value, at):
            one = found[0] if isinstance(found, list) and found else found
            if isinstance(one, dict):
                one = one.get("version") or ", ".join(
                    f"{key} {string(item)}" for key, item in one.items() if string(item)
                )
            if string(one):
                return f"{lead} {string(one)}".strip()[:120]
    return ""


def _structured(value: Any, row: Mapping[str, Any]) -> Iterator[tuple[Dependency, bool]]:
    """Each dependency in a parsed manifest, without its line, and whether it is for development only."""
    left_out = re.compile(row.get("left_out", "(?!)"))
    for field, development in (("runtime", False), ("development", True)):
        for place in row.get(field, ()):
            for _, found in find_all(value, place):
                for name, constraint, side in _dependencies(found):
                    if not left_out.fullmatch(name):
                        yield Dependency(name, constraint, 0), development or side


def _dependencies(found: Any) -> Iterator[tuple[str, str, bool]]:
    if isinstance(found, str):
        found = found.splitlines()
    for item in found if isinstance(found, list) else [found]:
        if isinstance(item, str):
            plain = re.split(r"\s#|;", item, maxsplit=1)[0].strip()
            if match := _REQUIREMENT.match(plain):
                yield match[1], match[2].strip(), False
        elif isinstance(item, dict) and ("artifactId" in item or "Include" in item):  # Maven, .NET
            name, version, scope = (
                next((text for key in keys for text in strings(item.get(key))), "")
                for keys in (("artifactId", "Include"), ("version", "Version"), ("scope",))
            )
            yield name, "" if version.startswith("$") else version, scope == "test"
        elif isinstance(item, dict):
            for name, version in item.items():
                yield str(name), string(version) or string(table(version).get("version")), False


def _matched(text: str, row: Mapping[str, Any]) -> Iterator[tuple[Dependency, bool]]:
    """The same, of a manifest that is read by a pattern."""
    if "dependency" not in row:
        return
    blocks = row.get("development_block")
    spans = [match.span() for match in re.finditer(blocks, text)][:200] if blocks else []
    for match in re.finditer(row["dependency"], text):
        groups = match.groupdict()
        inside = any(start <= match.start() < end for start, end in spans)
        line = text.count("\n", 0, match.start("name")) + 1
        found = Dependency(match["name"], groups.get("version") or "", line)
        yield found, inside or bool(groups.get("development"))


def _placed(lines: Sequence[str], given: Iterable[Dependency]) -> tuple[Dependency, ...]:
    """Dependencies with the line where each name first begins a line or a string, from the first list of dependencies on."""
    start = line_of(lines, "ependencies") - 1
    places: dict[str, int] = {}
    for number, line in enumerate(lines[start : start + 4_000], start + 1):
        for match in _BEGUN.finditer(line[:2_000]):
            places.setdefault(match[1], number)
    found: dict[str, Dependency] = {}
    for name, constraint, line_number in given:
        if len(found) < MOST_DEPENDENCIES and _NAME.fullmatch(name):
            short = " ".join(constraint.split())[:40]
            place = line_number or places.get(name, start + 1)
            found.setdefault(name, Dependency(name, short, place))
    return tuple(found.values())


def _members(value: Any, text: str, row: Mapping[str, Any]) -> Iterator[str]:
    for place in row.get("members", ()):
        if place.startswith("re:"):
            yield from (
                member.strip(":").replace(":", "/") for member in re.findall(place[3:], text)
            )
        else:
            for _, found in find_all(value, place):
                yield from strings(found)


def _commands(value: Any, name: str, places: Sequence[str]) -> Iterator[str]:
    for place in places:
        for _, found in find_all(value, place):
            if isinstance(found, str):
                yield name
            for command, target in table(found).items():
                if isinstance(target, str):
                    yield f"{command} ({target})"


# What is told


@cache
def notable_dependencies() -> Mapping[str, tuple[str, str]]:
    """Each dependency that stands for a technology → what is chosen by it, and the technology's name."""
    return {
        name.lower(): (choice, label.replace("_", " "))
        for choice, row in load_table("choices").items()
        for name, _, label in (entry.partition("=") for entry in row["names"].split())
    }


def choice_of(dependency: str) -> tuple[str, str]:
    """Go modules carry their major version in the path."""
    head, _, tail = dependency.lower().rpartition("/")
    plain = head if tail[:1] == "v" and tail[1:].isdecimal() else dependency.lower()
    return notable_dependencies().get(plain, ("", ""))


def analyze(tree: Tree) -> Iterator[Finding]:
    found = manifests(tree)
    yield from (_describe(manifest) for manifest in _telling(found)[:MOST_MANIFESTS])
    yield from _describe_choices(found)


def _telling(found: Sequence[Manifest]) -> list[Manifest]:
    """Manifests that say more than a name. A requirements file beside a manifest with the same dependencies repeats it."""
    told: list[Manifest] = []
    for manifest in found:
        names = {item.name.lower() for item in (*manifest.runtime, *manifest.development)}
        known = {
            item.name.lower()
            for other in told
            if other.language == manifest.language
            and folder_of(other.path) == folder_of(manifest.path)
            for item in (*other.runtime, *other.development)
        }
        if names - known or manifest.members:
            told.append(manifest)
    return told


def _describe(manifest: Manifest) -> Finding:
    name = manifest.name or name_of(folder_of(manifest.path))
    about = f": {clip(manifest.description, 200).rstrip('.')}." if manifest.description else "."
    pieces = [f"{manifest.language} project{f' {name}' if name else ''} ({manifest.path}){about}"]
    unnamed = manifest.language in ("JavaScript", "TypeScript") or manifest.requires.startswith(
        ("edition", "net")
    )
    constrained = [
        f"{item.name} {item.constraint}"
        if item.constraint not in ("", "*") and len(item.constraint) <= 24
        else item.name
        for item in manifest.runtime
    ]
    more = (
        (
            "It needs {}.",
            manifest.requires if unnamed else f"{manifest.language} {manifest.requires}",
            manifest.requires,
        ),
        ("It is built with {}.", manifest.builder, manifest.builder),
        ("Main dependencies: {}.", listed(constrained, 16), manifest.runtime),
        (
            "For development and extras: {}.",
            listed([item.name for item in manifest.development], 14),
            manifest.development,
        ),
        ("It installs the command {}.", listed(manifest.commands, 6), manifest.commands),
        ("It is a workspace of {}.", listed(manifest.members, 12), manifest.members),
    )
    pieces += [words.format(shown) for words, shown, present in more if present]
    lines = [item.line for item in (*manifest.runtime, *manifest.development)] or [1]
    labels = unique(choice_of(item.name)[1].partition(" (")[0] for item in manifest.runtime)
    return finding(
        manifest.path,
        (min(lines), max(lines)),
        "fact",
        "dependency",
        " ".join(pieces),
        importance=5.5 if "/" not in manifest.path else 4.5,
        confidence=1.0,
        section=f"{manifest.path} › dependencies",
        entities=[
            *([Entity(name, "project")] if name else []),
            *(Entity(label, "technology") for label in labels[:8]),
        ],
    )


def _describe_choices(found: Sequence[Manifest]) -> Iterator[Finding]:
    """One sentence per kind of choice, each technology with the line that asks for it."""
    chosen: dict[str, dict[str, tuple[str, str, int]]] = {}
    for manifest in found:
        for item in (*manifest.runtime, *manifest.development):
            choice, label = choice_of(item.name)
            if choice in ("test", "frontend") or (choice and item in manifest.runtime):
                place = (item.name, manifest.path, item.line)
                chosen.setdefault(choice, {}).setdefault(label, place)
    told = [(row, chosen[name]) for name, row in load_table("choices").items() if name in chosen]
    for row, named in told[:MOST_CHOICES]:
        labels = [
            f"{label} ({'' if name.lower() in label.lower() else f'{name}, '}{path}:{line})"
            for label, (name, path, line) in named.items()
        ]
        _, path, line = next(iter(named.values()))
        yield finding(
            path,
            line,
            row["kind"],
            "dependency",
            f"{row['sentence']} {listed(labels, 6)}.",
            importance=row["importance"],
            section="Technology",
            entities=[Entity(label.partition(" (")[0], "technology") for label in list(named)[:6]],
        )
