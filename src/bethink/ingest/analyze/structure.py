"""How a project is put together and what runs where: container images, services, and what files and folders give away.

Most of it is a table of signs (`data/structure.toml`): which paths, or which words in them, mean what. Of infrastructure only what a
file says in plain sight is told; values of environment variables are never read, they are where passwords stand. Names of folders
are conventions, not proof: confidence in a pattern stays between .6 and .8, and each text says what it concludes from.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from posixpath import dirname
from typing import Any

from bethink.ingest.analyze.build import read_manifests
from bethink.ingest.analyze.tree import (
    Finding,
    Tree,
    as_string,
    as_strings,
    as_table,
    find_line,
    join_words,
    load_table,
    make_finding,
    quote_code,
    unique,
)
from bethink.types import Entity

MOST_IMAGES, MOST_COMPOSED, MOST_PER_SIGN, MOST_PATTERNS = 4, 3, 2, 8  # set by hand
COMPOSE = ("docker-compose*.y*ml", "compose.y*ml", "compose.*.y*ml")
DOCKERFILES = ("dockerfile", "dockerfile.*", "*.dockerfile", "containerfile")
_STEP = re.compile(r"(?mi)^[ \t]{0,8}(FROM|EXPOSE|CMD|ENTRYPOINT)[ \t]++([^\n]{1,400})")
_pattern = partial(
    make_finding, kind="architecture", tag="pattern", importance=6, section="Structure"
)


def analyze(tree: Tree) -> Iterator[Finding]:
    found = [*_describe_images(tree), *_describe_services(tree), *_describe_signs(tree)]
    found += [*_describe_layers(tree), *_describe_workspace(tree)]
    patterns = [one for one in found if one.passage.tags[1] == "pattern"]
    yield from (one for one in found if one not in patterns[MOST_PATTERNS:])


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
    path, line = found[0][0], 1
    counts = Counter(shown for _, shown in found if shown)
    if "words" in row:
        files = [file for file, _ in found[:200]]
        matches = [
            (file, one) for file in files for one in re.finditer(row["words"], tree.text(file))
        ]
        if not matches:
            return None
        path, first = matches[0]
        line = tree.text(path).count("\n", 0, first.start()) + 1
        counts = Counter(" ".join(match[1].split()) for _, match in matches)
    if len(counts or found) < row.get("least", 1):
        return None
    newest = max(file for file, _ in found)
    content = row["content"].format(
        path=path,
        line=line,
        folder=dirname(path) or "the root",
        place=place or "the root",
        count=len(found),
        total=sum(counts.values()),
        members=len(counts),
        shown=join_words(list(counts), 10),
        counted=join_words(_count_each(counts), 10),
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


def _count_each(counts: Counter[str]) -> list[str]:
    return [f"{name} × {count}" if count > 1 else name for name, count in counts.most_common()]


def _describe_images(tree: Tree) -> Iterator[Finding]:
    names = [path for path in tree.find_named(*DOCKERFILES) if not path.endswith((".md", "ignore"))]
    for path in names[:MOST_IMAGES]:
        text = tree.text(path)
        steps = [
            (text.count("\n", 0, one.start(1)) + 1, one[1].upper(), one[2].strip())
            for one in _STEP.finditer(text)
        ]
        values = {
            word: [value for _, step, value in steps if step in word.split()]
            for word in ("FROM", "EXPOSE", "CMD ENTRYPOINT")
        }
        bases = [re.sub(r"^--\S{1,200}\s{1,20}", "", value).split() for value in values["FROM"]]
        stages = {parts[-1] for parts in bases if len(parts) > 2}
        images = unique(parts[0][:60] for parts in bases if parts and parts[0] not in stages)
        starts = list(map(_join_command, values["CMD ENTRYPOINT"]))
        ports = unique(" ".join(values["EXPOSE"]).split())
        if not images or not (starts or ports):
            continue  # that there is an image is no news
        of = f" of {dirname(path)}/" if "/" in path else ""
        pieces = [
            f"The container image{of} ({path}) is based on {join_words(images, 4)}"
            + f" in {len(bases)} stages" * (len(bases) > 1),
            f"exposes port {join_words(ports, 4)}" if ports else "",
            f"starts {quote_code(' '.join(starts[-2:]))}" if starts else "",
        ]
        yield make_finding(
            path,
            (steps[0][0], steps[-1][0]),
            "architecture",
            "container",
            f"{join_words(unique(pieces))}.",
            entities=[Entity("Docker", "technology")],
        )


def _join_command(value: str) -> str:
    try:
        return " ".join(as_strings(json.loads(value))) or value
    except (ValueError, RecursionError):
        return value


def _describe_services(tree: Tree) -> Iterator[Finding]:
    """The services of each compose file; and that they are separate ones, where it builds several."""
    for path in list(tree.find_named(*COMPOSE))[:MOST_COMPOSED]:
        found = as_table(tree.table(path, "yaml"), "services").items()
        services = {str(name): as_table(one) for name, one in found if as_table(one)}
        lines = tree.lines(path)
        first = find_line(lines, "services:")
        shown = [_describe_service(name, service) for name, service in services.items()]
        if shown:
            yield make_finding(
                path,
                (first, max(find_line(lines, f"{name}:", first) for name in services)),
                "architecture",
                "services",
                f"{path} runs {len(shown)} service{'s' if shown[1:] else ''}: {'; '.join(shown[:14])}.",
                importance=6.5,
                confidence=1.0,
                entities=[Entity(name, "concept") for name in list(services)[:8]],
            )
        built = [name for name, service in services.items() if service.get("build")]
        if len(built) > 2:
            why = f"{path} builds {len(built)} of its own: {join_words(built, 10)}"
            content = f"The system runs as separate services, because {why}."
            yield _pattern(path, 1, content=content, confidence=0.7)


def _describe_service(name: str, service: Mapping[str, Any]) -> str:
    build, needs = service.get("build"), service.get("depends_on")
    context = as_string(build) or as_string(as_table(build).get("context"))
    needed = as_strings(needs) or [str(one) for one in as_table(needs)]
    ports = ", ".join(port[:24] for port in as_strings(service.get("ports"))[:3])
    about = [
        f"built from {context}" if context else as_string(service.get("image"))[:60],
        f"port {ports}" if ports else "",
        f"needs {', '.join(needed[:5])}" if needed else "",
    ]
    return f"{name} ({', '.join(filter(None, about))})" if any(about) else name


def _describe_workspace(tree: Tree) -> Iterator[Finding]:
    for manifest in read_manifests(tree)[:1]:
        if manifest.members and "/" not in manifest.path:
            members = join_words(manifest.members, 10)
            content = f"This is a monorepo: {manifest.path} declares a workspace of {members}."
            yield _pattern(manifest.path, 1, content=content, confidence=0.8)


def _describe_layers(tree: Tree) -> Iterator[Finding]:
    """What the two shallowest telling folders show: the first row of the table whose groups all have a folder in it."""
    inside: dict[
        str, dict[str, str]
    ] = {}  # folder → names of the folders in it → a file below each
    for path in tree.own:
        parts = path.split("/")
        for depth, name in enumerate(parts[:-1]):
            inside.setdefault("/".join(parts[:depth]), {}).setdefault(name.lower(), path)
    made = 0
    for folder in sorted(inside, key=lambda folder: (folder.count("/"), folder)):
        for row in load_table("structure")["layers"]:
            names = [
                next((name for name in group.split() if name in inside[folder]), "")
                for group in row["folders"]
            ]
            if all(names) and made < 2:
                made += 1
                where = f"{folder}/" if folder else "the top folder"
                shown = join_words([f"{name}/" for name in names])
                content = f"The code follows {row['pattern']}, because {where} has {shown}."
                path = inside[folder][names[0]]
                yield _pattern(path, 1, content=content, confidence=row["confidence"])
                break
