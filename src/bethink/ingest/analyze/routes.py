"""The HTTP interface of a project: its routes with method, path, handler and line.

Frameworks are data: queries over the syntax tree (`data/queries/routes`) find where routers are made and mounted, where blocks add a
prefix, and where routes stand; `data/routes.toml` says which files they are asked of, and where a file's place is its route. This
module follows the prefixes from router to router within a file; what a file mounts from another one is told beside its routes.
What is computed at run time stays unseen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink.ingest.analyze.tree import Finding, Tree, join_words, load_table, make_finding, unique
from bethink.ingest.symbols import SourceFile
from bethink.types import Entity

if TYPE_CHECKING:
    from tree_sitter import Node

# Bounds on how much is told, set by hand.
PER_FINDING = 15  # routes told together
MOST = 20
MOST_PER_FILE = 600
DEEPEST = 6  # routers in routers that are followed
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
    """What one match of a query says: that a router is made or mounted, that a block adds a prefix, or a route before the prefixes
    of its router are known."""

    start: int
    end: int
    path: str  # or prefix
    router: str = ""  # that it is on, made from or mounted into
    method: str = ""
    handler: str = ""  # or what is mounted, as written
    line: int = 0


class RouteFile:
    """What one file says."""

    def __init__(self, file: str, text: str, language: str, rules: Mapping[str, Any]) -> None:
        self.file, self.rules = file, rules
        self.source = SourceFile(text, language)
        names = (name for word, name in rules["frameworks"] if word in text)
        self.framework = next(names, rules["default"])
        self.routers: dict[str, list[RoutePart]] = {}
        self.mounts: list[RoutePart] = []
        self.blocks: list[RoutePart] = []
        self.routes: list[RoutePart] = []
        for query in rules["queries"]:
            for settings, nodes, _ in self.source.find_matches(f"routes/{query}"):
                if len(self.routes) < MOST_PER_FILE:
                    self._read(settings["role"], Call(nodes, self.source))

    def _read(self, role: str, call: Call) -> None:
        if role == "route":
            self.routes += filter(None, [_read_route(self, call)])
        elif role == "router":
            prefix = call.path() if "on" in call.nodes else call.prefix()
            self.routers.setdefault(call.text("name"), []).append(call.part("name", prefix or ""))
        elif role == "scope":
            self.blocks.append(call.part("scope", call.path() or ""))
        elif placed := [node for node in call.placed if call.literal(node) is None]:  # a mount
            written = call.source.text_of(placed[-1 if call.text("verb") == "use" else 0])[:80]
            prefix = call.path() or call.prefix() or ""
            target = call.text("target") or written
            self.mounts.append(call.part("args", prefix, method="mounts", handler=target))

    def find_prefixes(self, router: str, at: int, depth: int = 0) -> list[str]:
        """What stands before a path of a router at a place: what the router is mounted in, the groups that it was made from, and
        the blocks around the place."""
        if depth > DEEPEST:
            return []
        around = sorted(block for block in self.blocks if block.start < at < block.end)
        known = self.routers.get(router, [])
        found = [one for one in known if one.start < at][-1:] or known[:1]
        inner = [one.path for one in (*found, *around)]
        if found and found[0].router:
            return [*self.find_prefixes(found[0].router, found[0].start, depth + 1), *inner]
        mount = next((one for one in self.mounts if one.handler == router != one.router), None)
        if mount is None:
            return inner
        return [*self.find_prefixes(mount.router, mount.start, depth + 1), mount.path, *inner]

    def list_routes(self) -> Iterator[Route]:
        """The routes, and what is mounted from elsewhere at a path."""
        elsewhere = [one for one in self.mounts if one.path and one.handler not in self.routers]
        for one in (*self.routes, *elsewhere):
            path = join_paths(*self.find_prefixes(one.router, one.start), one.path)
            yield Route(one.method, path, one.handler, self.file, one.line, self.framework)


def analyze(tree: Tree) -> Iterator[Finding]:
    groups = (list(own) for _, own in groupby(find_routes(tree), lambda route: route.file))
    cut = (own[at : at + PER_FINDING] for own in groups for at in range(0, len(own), PER_FINDING))
    yield from [_describe_routes(group) for group in cut][:MOST]


def find_routes(tree: Tree) -> list[Route]:
    """Every route once, in the order of files and lines."""
    rows = load_table("routes")
    found = list(_find_by_place(tree, rows["by_place"]))
    known = {route.file for route in found}
    for language, row in rows["language"].items():
        rules = {**rows["language"][row.get("like", language)], **row}
        for file, _ in tree.find(rf".*(?:{'|'.join(map(re.escape, row['suffixes']))})"):
            if file not in known and re.search(rules["hint"], tree.text(file)):
                found += RouteFile(file, tree.text(file), language, rules).list_routes()
    return sorted(dict.fromkeys(found), key=lambda route: (route.file, route.line))


# Reading one file


class Call:
    """The nodes of one match, and the arguments of its call by place and by name; those in an object count as named."""

    def __init__(self, nodes: Mapping[str, Node], source: SourceFile) -> None:
        self.nodes, self.source = nodes, source
        self.placed: list[Node] = []
        self.named: dict[str, Node] = {}
        for child in nodes["args"].named_children if "args" in nodes else ():
            for pair in child.named_children if child.type == "object" else [child]:
                key = pair.child_by_field_name("key") or pair.child_by_field_name("name")
                value = pair.child_by_field_name("value")
                if key and value:
                    self.named[source.text_of(key)] = value
                elif pair is child and child.type != "comment":
                    self.placed.append(pair)

    def text(self, name: str) -> str:
        return self.source.text_of(self.nodes[name]) if name in self.nodes else ""

    def literal(self, node: Node | None) -> str | None:
        """What a string literal, or a symbol of Ruby, says; None for anything else."""
        text = self.source.text_of(node) if node else ""
        match = re.fullmatch(r":(\w{1,200})|[rRuU]{0,2}([\"'`])([^\n]{0,200}?)\2", text)
        return match and (match[1] or match[3])

    def option(self, *keys: str) -> Node | None:
        return next((self.named[key] for key in keys if key in self.named), None)

    def prefix(self) -> str | None:
        return self.literal(self.option("prefix", "url_prefix", "basePath"))

    def path(self) -> str | None:
        """The path of a route or block: its first argument, or the one of that name."""
        named = self.option("path", "value", "rule", "url")
        return self.literal(self.placed[0] if self.placed else named)

    def handler(self, node: Node) -> str:
        """`views.UserList.as_view()` is `views.UserList`, `wrap(list)` is `list`; a function without a name is inline."""
        if said := self.literal(node):
            return said
        text = self.source.text_of(node)[:400]
        if re.search(r"=>|\bfunc(?:tion)?\b", text):
            return "inline"
        text = re.sub(r"(?s)(['\"`])[^'\"`\n]*\1|\??\.(?:as_view|bind)\b.*", "", text)
        names: list[str] = re.findall(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*", text)
        return names[-1] if names else "inline"

    def part(self, capture: str, path: str, **more: Any) -> RoutePart:
        node = self.nodes[capture]
        line = self.source.row(node.start_byte) + 1
        more = {"router": self.text("on"), "line": line, **more}
        return RoutePart(node.start_byte, node.end_byte, path, **more)


def _read_route(own: RouteFile, call: Call) -> RoutePart | None:
    verb, router, path = call.text("verb"), call.text("on"), call.path()
    handler, owner = call.text("handler"), call.text("owner")
    stated = re.fullmatch(rf"({METHODS})\s+(\S{{1,200}})", path or "")  # Go 1.22: "GET /users/{id}"
    method, path = (stated[1], stated[2]) if stated else (_find_methods(own, call, verb), path)
    if not handler:
        given = [call.option("handler", "view_func", "endpoint", "to")]
        given += [node for node in call.placed[:0:-1] if call.literal(node) is None]
        handler = next((call.handler(node) for node in given if node), "include")
    known = not router or router in own.routers or re.fullmatch(own.rules["routers"], router)
    if not known or handler == "include" or (router and (path is None or path[:1] not in "/*")):
        # A client's `axios.get("/users")`; no handler, or Django's include("shop.urls"), which is a mount.
        return None
    name = f"{owner}.{handler}" if owner else handler
    return call.part("place", path or "", router=router, method=method, handler=name)


def _find_methods(own: RouteFile, call: Call, verb: str) -> str:
    if given := call.option("methods", "method"):
        stated = call.source.text_of(given).upper()
        return ", ".join(unique(re.findall(rf"\b(?:{METHODS})\b", stated)))
    method: str = own.rules["verbs"].get(verb, verb.removesuffix("Mapping").upper())
    return method


def _find_by_place(tree: Tree, rows: Sequence[Mapping[str, Any]]) -> Iterator[Route]:
    """Routes of frameworks in which the place of a file is its path, and what it exports its methods."""
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
    """Prefixes and a path as one path: `/api/` and `users` are `/api/users`. A trailing slash of the last part stays."""
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
