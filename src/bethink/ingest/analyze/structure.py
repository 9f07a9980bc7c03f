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
from typing import Any

from bethink.ingest.analyze.manifests import manifests
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
    read_one_yaml,
    string,
    strings,
    table,
    unique,
)
from bethink.types import Entity

MOST_IMAGES, MOST_COMPOSED, MOST_PER_SIGN, MOST_PATTERNS = 4, 3, 2, 8  # set by hand
COMPOSE = ("docker-compose*.y*ml", "compose.y*ml", "compose.*.y*ml")


def analyze(tree: Tree) -> Iterator[Finding]:
    found = [*_images(tree), *_composed_services(tree), *_signs(tree), *_layers(tree)]
    found += [*_workspace(tree), *_separate_services(tree), *_tests(tree)]
    patterns = [one for one in found if one.passage.tags[1] == "pattern"]
    yield from (one for one in found if one not in patterns[MOST_PATTERNS:])


# Signs


def _signs(tree: Tree) -> Iterator[Finding]:
    for row in load_table("structure")["sign"]:
        paths = re.compile(row["paths"])
        groups: dict[str, list[tuple[str, str]]] = {}  # place → path and what its name shows
        for path in tree.own if row.get("own", True) else tree.paths:
            if match := paths.fullmatch(path):
                named = match.groupdict()
                place = named.get("place") or ""
                groups.setdefault(place, []).append((path, named.get("shown") or ""))
        told = (_sign(tree, row, place, found) for place, found in groups.items())
        yield from [one for one in told if one][:MOST_PER_SIGN]


def _sign(
    tree: Tree, row: Mapping[str, Any], place: str, found: Sequence[tuple[str, str]]
) -> Finding | None:
    """What a sign tells of the files at one place, if enough of them show it."""
    path, counts = found[0][0], Counter(shown for _, shown in found if shown)
    line = 1
    if "words" in row:
        words = re.compile(row["words"])
        matches = [
            (file, match) for file, _ in found[:200] for match in words.finditer(tree.text(file))
        ]
        if not matches:
            return None
        path, first = matches[0]
        line = tree.text(path).count("\n", 0, first.start()) + 1
        counts = Counter(" ".join(match[1].split()) for _, match in matches)
    if len(counts or found) < row.get("least", 1):
        return None
    counted = [f"{name} × {count}" if count > 1 else name for name, count in counts.most_common()]
    content = row["content"].format(
        path=path,
        line=line,
        folder=folder_of(path) or "the root",
        place=place or "the root",
        count=len(found),
        total=sum(counts.values()),
        members=len(counts),
        shown=listed(list(counts), row.get("most", 10)),
        counted=listed(counted, 10),
        newest=max(file for file, _ in found).removeprefix(f"{place}/"),
    )
    tag = row.get("tag", "pattern")
    return finding(
        max(file for file, _ in found) if "{newest}" in row["content"] else path,
        line,
        row.get("kind", "architecture"),
        tag,
        content,
        importance=row.get("importance", 6),
        confidence=row.get("confidence", 0.9),
        section="Structure" if tag == "pattern" else tag,
        entities=[Entity(row["technology"], "technology")] if "technology" in row else (),
    )


# Containers


def _images(tree: Tree) -> Iterator[Finding]:
    paths = tree.named("dockerfile", "dockerfile.*", "*.dockerfile", "containerfile")
    step = re.compile(r"(?mi)^[ \t]{0,8}(FROM|EXPOSE|CMD|ENTRYPOINT)[ \t]++([^\n]{1,400})")
    for path in [path for path in paths if not path.endswith((".md", "ignore"))][:MOST_IMAGES]:
        text = tree.text(path)
        steps = [
            (text.count("\n", 0, match.start(1)) + 1, match[1].upper(), match[2].strip())
            for match in step.finditer(text)
        ]
        bases = [
            (line, re.sub(r"^--\S{1,200}\s{1,20}", "", value).split())
            for line, word, value in steps
            if word == "FROM"
        ]
        stages = {parts[-1] for _, parts in bases if len(parts) > 2}
        images = unique(parts[0][:60] for _, parts in bases if parts and parts[0] not in stages)
        start = [(line, value) for line, word, value in steps if word in ("CMD", "ENTRYPOINT")]
        ports = unique(
            port for _, word, value in steps if word == "EXPOSE" for port in value.split()
        )
        if not images or not (start or ports):
            continue  # that there is an image is no news
        of = f" of {folder_of(path)}/" if "/" in path else ""
        in_stages = f" in {len(bases)} stages" if len(bases) > 1 else ""
        pieces = [f"The container image{of} ({path}) is based on {listed(images, 4)}{in_stages}"]
        pieces += [f"exposes port {listed(ports, 4)}"] if ports else []
        if start:
            pieces.append(f"starts {code(' '.join(_command(value) for _, value in start[-2:]))}")
        yield finding(
            path,
            (bases[0][0], max([line for line, _ in start] or [bases[-1][0]])),
            "architecture",
            "container",
            f"{listed(pieces)}.",
            importance=5,
            entities=[Entity("Docker", "technology")],
        )


def _command(value: str) -> str:
    try:
        return " ".join(strings(json.loads(value))) or value
    except (ValueError, RecursionError):
        return value


def _services(tree: Tree, path: str) -> dict[str, dict[str, Any]]:
    """The services of a compose file by name."""
    services = table(tree.parse(path, read_one_yaml), "services").items()
    return {name: merged(one) for name, one in services if isinstance(name, str) and table(one)}


def _composed_services(tree: Tree) -> Iterator[Finding]:
    for path in list(tree.named(*COMPOSE))[:MOST_COMPOSED]:
        services, lines = _services(tree, path), tree.lines(path)
        first = line_of(lines, "services:")
        told = [_service(name, service) for name, service in services.items()]
        if told:
            yield finding(
                path,
                (first, max(line_of(lines, f"{name}:", first) for name in services)),
                "architecture",
                "services",
                f"{path} runs {len(told)} service{'s' if told[1:] else ''}: {'; '.join(told[:14])}.",
                importance=6.5,
                confidence=1.0,
                entities=[Entity(name, "concept") for name in list(services)[:8]],
            )


def _service(name: str, service: Mapping[str, Any]) -> str:
    build, needs = service.get("build"), service.get("depends_on")
    context = string(build) or string(table(build).get("context"))
    needed = strings(needs) or [str(one) for one in table(needs)]
    ports = ", ".join(port[:24] for port in strings(service.get("ports"))[:3])
    about = [
        f"built from {context}" if context else string(service.get("image"))[:60],
        f"port {ports}" if ports else "",
        f"needs {', '.join(needed[:5])}" if needed else "",
    ]
    return f"{name} ({', '.join(filter(None, about))})" if any(about) else name


# Patterns that need more than a sign


def _pattern(
    tree: Tree, path: str, content: str, confidence: float, kind: str = "architecture"
) -> Finding:
    return finding(
        path,
        1,
        kind,
        "pattern",
        content,
        importance=6,
        confidence=confidence,
        section="Structure",
    )


def _workspace(tree: Tree) -> Iterator[Finding]:
    for manifest in manifests(tree)[:1]:
        if manifest.members and "/" not in manifest.path:
            members = listed(manifest.members, 10)
            content = f"This is a monorepo: {manifest.path} declares a workspace of {members}."
            yield _pattern(tree, manifest.path, content, 0.8)


def _separate_services(tree: Tree) -> Iterator[Finding]:
    for path in list(tree.named(*COMPOSE))[:1]:
        built = [name for name, service in _services(tree, path).items() if service.get("build")]
        if len(built) > 2:
            why = f"{path} builds {len(built)} of its own: {listed(built, 10)}"
            content = f"The system runs as separate services, because {why}."
            yield _pattern(tree, path, content, 0.7)


def _layers(tree: Tree) -> Iterator[Finding]:
    """What the two shallowest telling folders show: the first row of the table whose groups all have a folder in it."""
    made = 0
    for folder in sorted(tree.folders, key=lambda folder: (folder.count("/"), folder)):
        inside = {name.lower(): name for name in tree.folders[folder] if name.endswith("/")}
        for row in load_table("structure")["layers"]:
            groups = [
                [f"{name}/" for name in group.split() if f"{name}/" in inside]
                for group in row["folders"]
            ]
            if all(groups) and made < 2:
                made += 1
                where = f"{folder}/" if folder else ""
                shown = listed([group[0] for group in groups])
                below = where + inside[groups[0][0]]
                path = next(path for path in tree.paths if path.startswith(below))
                content = f"The code follows {row['pattern']}, because {where or 'the top folder'} has {shown}."
                yield _pattern(tree, path, content, row["confidence"])
                break


def _tests(tree: Tree) -> Iterator[Finding]:
    rows = load_table("structure")["tests"]
    foreign = re.compile(r"(?:^|/)(?:vendor|node_modules|third_party)/")
    test = re.compile("|".join(rows["files"]))
    found = [path for path in tree.paths if test.search(path) and not foreign.search(path)]
    if len(found) < 3:
        return
    matches = (re.match(r"(?:.*?/)?(?:tests?|spec|__tests__|e2e)(?=/)", path) for path in found)
    roots = Counter(match[0] for match in matches if match)
    ending = re.compile(rows["ending"])
    shapes = Counter(
        f"*{match[0]}" if (match := ending.search(path)) else "test_*.py" for path in found
    )
    shape, first = shapes.most_common(1)[0][0], found[0]
    content = f"Tests live beside the code they test, in {len(found)} files named {shape}, such as {first}."
    if sum(roots.values()) >= len(found) * 0.6:
        places = [f"{folder}/ ({count} files)" for folder, count in roots.most_common(4)]
        content = f"Tests live in {listed(places)}; their files are named {shape}."
        first = next(path for path in found if path.startswith(roots.most_common(1)[0][0]))
    yield _pattern(tree, first, content, 0.8, "pattern")
