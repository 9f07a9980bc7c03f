"""The HTTP interface of a project: its routes with method, path, handler and line.

Frameworks are data: queries over the syntax tree (`data/queries/routes`) find where routers are made and mounted, where blocks add a
prefix, and where routes are declared; `data/routes.toml` says which files they apply to, and where the path of a file is its route. This
module follows the prefixes from router to router within a file; a mount of a router from another file is listed beside the routes.
Routes computed at run time are not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING, NamedTuple

from bethink.ingest.analyze.tree import Finding, Tree, join_words, make_finding, unique
from bethink.ingest.symbols import SourceFile, TableRow, load_table
from bethink.model import Entity

if TYPE_CHECKING:
    from tree_sitter import Node

# Bounds on the findings, set by hand.
PER_FINDING = 15  # routes in one finding
MOST_ROUTES = 20
_MOST_PER_FILE = 600
_DEEPEST = 6  # routers in routers that are followed
METHODS = "GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS"


class Route(NamedTuple):
    method: (
        str  # "GET", "GET, POST", "ANY", "mounts", or "" where the framework decides it elsewhere
    )
    path: str
    handler: str
    file: str
    line: int
    framework: str


class RoutePart(NamedTuple):
    """A route as one match of a query gives it, before the prefixes of its router are known."""

    role: str  # router: one is made; mount: one is put into another; scope: a block adds a prefix; route
    start: int
    end: int
    path: str  # or prefix
    router: str  # that it is on, made from or mounted into
    name: str  # of the router that is made, of the handler, or what is mounted, as written
    method: str
    line: int


def analyze(tree: Tree) -> Iterator[Finding]:
    groups = (list(own) for _, own in groupby(find_routes(tree), lambda route: route.file))
    cut = (own[at : at + PER_FINDING] for own in groups for at in range(0, len(own), PER_FINDING))
    yield from [_describe_routes(group) for group in cut][:MOST_ROUTES]


def find_routes(tree: Tree) -> list[Route]:
    """Return every route once, in the order of files and lines."""
    rows = load_table("routes")
    found = list(_find_by_place(tree, rows["by_place"]))
    known = {route.file for route in found}
    for language, row in rows["language"].items():
        rules = {**rows["language"][row.get("like", language)], **row}
        for file, _ in tree.find(rf".*(?:{'|'.join(map(re.escape, row['suffixes']))})"):
            if file not in known and re.search(rules["hint"], tree.text(file)):
                found += _read_file(tree, file, language, rules)
    return sorted(dict.fromkeys(found), key=lambda route: (route.file, route.line))


# Reading one file


def _read_file(tree: Tree, file: str, language: str, rules: TableRow) -> Iterator[Route]:
    """Yield the routes of a file, and mounts of routers from elsewhere."""
    text = tree.text(file)
    names = (name for word, name in rules["frameworks"] if word in text)
    framework = next(names, rules["default"])
    source = SourceFile(text, language)
    parts: list[RoutePart] = []
    for query in rules["queries"]:
        for settings, nodes, _ in islice(source.find_matches(f"routes/{query}"), _MOST_PER_FILE):
            parts += filter(None, [_read_part(settings["role"], Call(nodes, source), rules)])
    routers = {one.name for one in parts if one.role == "router"} | {""}
    for one in parts:
        # A client's `axios.get("/users")` is no route.
        known = one.router in routers or re.fullmatch(rules["routers"], one.router)
        elsewhere = one.role == "mount" and one.path and one.name not in routers
        if elsewhere or (one.role == "route" and known):
            path = join_paths(*_find_prefixes(parts, one.router, one.start), one.path)
            yield Route(one.method, path, one.name, file, one.line, framework)


def _find_prefixes(parts: Sequence[RoutePart], router: str, at: int, depth: int = 0) -> list[str]:
    """Return the prefixes of a path of a router at a place.

    They come from the mount of the router, the groups that it was made from, and the blocks around the place.
    """
    if depth > _DEEPEST:
        return []
    around = sorted(one for one in parts if one.role == "scope" and one.start < at < one.end)
    made = [one for one in parts if (one.role, one.name) == ("router", router)]
    made = [one for one in made if one.start < at][-1:] or made[:1]
    inner = [one.path for one in (*made, *around)]
    if made and made[0].router:
        return [*_find_prefixes(parts, made[0].router, made[0].start, depth + 1), *inner]
    for one in parts:
        if one.role == "mount" and one.name == router != one.router:
            return [*_find_prefixes(parts, one.router, one.start, depth + 1), one.path, *inner]
    return inner


class Call:
    """The nodes of one match, with the arguments of its call by position and by name.

    Entries of an object count as named arguments.
    """

    def __init__(self, nodes: Mapping[str, Node], source: SourceFile) -> None:
        self.nodes, self.source = nodes, source
        self.placed: list[str] = []
        self.named: dict[str, str] = {}
        for child in nodes["args"].named_children if "args" in nodes else ():
            for pair in child.named_children if child.type == "object" else [child]:
                key = pair.child_by_field_name("key") or pair.child_by_field_name("name")
                value = pair.child_by_field_name("value")
                if key and value:
                    self.named[source.text_of(key)] = source.text_of(value)
                elif pair is child and child.type != "comment":
                    self.placed.append(source.text_of(pair))

    def text(self, name: str) -> str:
        return self.source.text_of(self.nodes[name]) if name in self.nodes else ""

    def option(self, *keys: str) -> str:
        return next((self.named[key] for key in keys if key in self.named), "")

    def prefix(self) -> str | None:
        return _read_literal(self.option("prefix", "url_prefix", "basePath"))

    def path(self) -> str | None:
        """Return the path of a route or block: its first argument, or the one of that name."""
        return _read_literal((*self.placed, self.option("path", "value", "rule", "url"))[0])

    def part(self, role: str, at: str, path: str | None, name: str, method: str = "") -> RoutePart:
        node = self.nodes[at]
        line = self.source.row(node.start_byte) + 1
        place = node.start_byte, node.end_byte
        return RoutePart(role, *place, path or "", self.text("on"), name, method, line)


def _read_literal(text: str) -> str | None:
    """Return the value of a string literal or a symbol of Ruby; None for anything else."""
    match = re.fullmatch(r":(\w{1,200})|[rRuU]{0,2}([\"'`])([^\n]{0,200}?)\2", text)
    return match and (match[1] or match[3])


def _name_handler(text: str) -> str:
    """Name a handler: `views.UserList.as_view()` is `views.UserList`, `wrap(list)` is `list`, or "inline"."""
    if literal := _read_literal(text):
        return literal
    if re.search(r"=>|\bfunc(?:tion)?\b", text[:400]):
        return "inline"
    bare = re.sub(r"(?s)(['\"`])[^'\"`\n]*\1|\??\.(?:as_view|bind)\b.*", "", text[:400])
    names: list[str] = re.findall(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*", bare)
    return names[-1] if names else "inline"


def _read_part(role: str, call: Call, rules: TableRow) -> RoutePart | None:
    if role == "route":
        return _read_route(call, rules)
    if role == "router":
        prefix = call.path() if "on" in call.nodes else call.prefix()
        return call.part(role, "name", prefix, call.text("name"))
    if role == "scope":
        return call.part(role, "scope", call.path(), "")
    placed = [text for text in call.placed if _read_literal(text) is None]
    if not placed:
        return None
    target = call.text("target") or placed[-1 if call.text("verb") == "use" else 0][:80]
    return call.part(role, "args", call.path() or call.prefix(), target, "mounts")


def _read_route(call: Call, rules: TableRow) -> RoutePart | None:
    """Return a route; None without a handler, or for Django's include("shop.urls"), which is a mount."""
    verb, path = call.text("verb"), call.path()
    handler, owner = call.text("handler"), call.text("owner")
    method = rules["verbs"].get(verb, verb.removesuffix("Mapping").upper())
    if stated := re.fullmatch(rf"({METHODS})\s+(\S{{1,200}})", path or ""):
        method, path = stated.groups()  # Go 1.22: "GET /users/{id}"
    elif option := call.option("methods", "method"):
        named = re.findall(rf"\b(?:{METHODS})\b", option.upper())
        method = ", ".join(unique(named))
    if not handler:
        candidates = [call.option("handler", "view_func", "endpoint", "to")]
        candidates += [text for text in call.placed[:0:-1] if _read_literal(text) is None]
        handler = next(map(_name_handler, filter(None, candidates)), "include")
    no_path = "on" in call.nodes and (path is None or path[:1] not in "/*")
    if handler == "include" or no_path:
        return None
    name = f"{owner}.{handler}" if owner else handler
    return call.part("route", "place", path, name, method)


def _find_by_place(tree: Tree, rows: Sequence[TableRow]) -> Iterator[Route]:
    """Yield routes of frameworks in which a file's path is the route and its exports are the methods."""
    for row in rows:
        for file, place in tree.find(row["file"]):
            text = tree.text(file)
            for export in re.finditer(row["exports"], text):
                named = [one for one in METHODS.split("|") if re.search(rf"['\"]{one}['\"]", text)]
                method = export["method"] if "method" in export.groupdict() else ", ".join(named)
                path = join_paths(re.sub(row["left_out"], "", place[1]))
                line = text.count("\n", 0, export.start()) + 1
                handler = export["handler"] or "handler"
                yield Route(method, path, handler, file, line, row["framework"])


def join_paths(*parts: str) -> str:
    """Join prefixes and a path: `/api/` and `users` are `/api/users`. A trailing slash at the end stays."""
    path = "/".join(filter(None, "/".join(parts).split("/")))
    slash = "/" if path and len(parts[-1]) > 1 and parts[-1].endswith("/") else ""
    return re.sub(r"\s+", " ", f"/{path}{slash}")[:160]


def _describe_routes(group: Sequence[Route]) -> Finding:
    file, framework = group[0].file, group[0].framework
    shown = []
    for route in group:
        handler = f"{route.handler}, " if route.handler != "inline" else ""
        shown.append(f"{f'{route.method} {route.path}'.strip()} ({handler}line {route.line})")
    handlers = unique(route.handler for route in group if route.handler.isidentifier())
    return make_finding(
        file,
        (group[0].line, group[-1].line),
        "architecture",
        "api-route",
        f"The HTTP API in {file} ({framework}) has {join_words(shown, PER_FINDING)}.",
        importance=5.5,
        section="API routes",
        entities=[
            Entity(framework, "technology"),
            *(Entity(name, "symbol") for name in handlers[:6]),
        ],
        metadata={"routes": len(group)},
    )
