"""The HTTP interface of a project: its routes with method, path, handler and line, told in a few findings.

One finding per file and up to fifteen routes; small files beside each other are told together, and an interface with many
routes gets an overview. Each framework has a reader of its own beside this file, which knows how to write it down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from bethink.ingest.analyze import (
    routes_go,
    routes_javascript,
    routes_python,
    routes_rails,
    routes_spring,
)
from bethink.ingest.analyze.prose import listed, unique
from bethink.ingest.analyze.route import Route
from bethink.ingest.analyze.tree import Finding, Tree, finding, folder_of
from bethink.types import Entity

READERS = (
    routes_python.routes,
    routes_javascript.routes,
    routes_go.routes,
    routes_spring.routes,
    routes_rails.routes,
)
PER_FINDING = 15
MOST = 14
MOST_ROUTES = 2_000
SMALL = 5  # routes; files with no more are told together with their neighbours
OVERVIEW = 25  # routes from which on an overview helps


def analyze(tree: Tree) -> Iterator[Finding]:
    by_framework: dict[str, list[Route]] = {}
    for route in routes(tree):
        by_framework.setdefault(route.framework, []).append(route)
    made = 0
    for framework, found in by_framework.items():
        if len(found) > OVERVIEW:
            yield _overview(framework, found)
        for group in _groups(found):
            made += 1
            if made <= MOST:
                yield _told(framework, group)


def routes(tree: Tree) -> list[Route]:
    """Every route once, in the order of files and lines."""
    found: dict[tuple[str, str, str, str], Route] = {}
    for reader in READERS:
        for route in reader(tree):
            if len(found) < MOST_ROUTES:
                found.setdefault((route.method, route.path, route.file, route.handler), route)
    return list(found.values())


def _groups(found: Sequence[Route]) -> Iterator[list[Route]]:
    by_file: dict[str, list[Route]] = {}
    for route in sorted(found, key=lambda route: (route.file, route.line)):
        by_file.setdefault(route.file, []).append(route)
    small: dict[str, list[Route]] = {}
    for file, own in by_file.items():
        if len(own) <= SMALL and len(by_file) > 2:
            small.setdefault("/".join(folder_of(file).split("/")[:4]), []).extend(own)
        else:
            yield from _pieces(own)
    held: list[Route] = []
    for own in small.values():
        if len(held) + len(own) > PER_FINDING:
            yield from _pieces(held)
            held = []
        held += own
    yield from _pieces(held)


def _pieces(found: list[Route]) -> Iterator[list[Route]]:
    for start in range(0, len(found), PER_FINDING):
        yield found[start : start + PER_FINDING]


def _told(framework: str, group: Sequence[Route]) -> Finding:
    files = unique(route.file for route in group)
    first = files[0]
    shown = [
        _shown(route, f"{route.file}:{route.line}" if len(files) > 1 else f"line {route.line}")
        for route in group
    ]
    where = f" in {first}" if len(files) == 1 else ""
    lines = [route.line for route in group if route.file == first]
    top = Counter(segment for route in group if (segment := _segment(route.path))).most_common(1)
    handlers = unique(
        route.handler.rpartition(".")[2] for route in group if route.handler.isidentifier()
    )
    return finding(
        first,
        (min(lines), max(lines)),
        "architecture",
        "api-route",
        f"The HTTP API{where} ({framework}) has {listed(shown, PER_FINDING)}.",
        importance=5.5,
        section=f"API routes › {top[0][0]}" if top else "API routes",
        entities=[
            Entity(framework, "technology"),
            *(Entity(name, "symbol") for name in handlers[:6]),
            *(Entity(file, "file") for file in files[:4]),
        ],
        metadata={"routes": len(group)},
    )


def _shown(route: Route, place: str) -> str:
    named = f"{route.method} {route.path}".strip()
    return f"{named} ({', '.join(filter(None, (route.handler if route.handler != 'inline' else '', place)))})"


def _segment(path: str) -> str:
    """The first segment that tells something: `/api/v1/users/{id}` is about users."""
    parts: Iterable[str] = path.strip("/").split("/")
    return next(
        (
            f"/{part}"
            for part in parts
            if part
            and part not in ("api", "rest")
            and part[:1] not in "{:<[*"
            and not (part[0] == "v" and part[1:].isdigit())
        ),
        "",
    )


def _overview(framework: str, found: Sequence[Route]) -> Finding:
    counts = Counter(_segment(route.path) or "/" for route in found)
    files: dict[str, str] = {}
    for route in found:
        files.setdefault(_segment(route.path) or "/", route.file)
    shown = [f"{segment} ({count}, {files[segment]})" for segment, count in counts.most_common(15)]
    first = min(found, key=lambda route: (route.file.count("/"), route.file, route.line))
    content = f"The HTTP API ({framework}) has {len(found)} routes in {len({route.file for route in found})} files: {listed(shown, 15)}."
    if len(counts) > 15:
        content = content[:-1] + f" and {len(counts) - 15} more."
    return finding(
        first.file,
        first.line,
        "architecture",
        "api-route",
        content,
        importance=6.5,
        section="API routes › overview",
        entities=[Entity(framework, "technology")],
    )
