"""The HTTP interface of a project: its routes with method, path, handler and line, told in a few findings.

Frameworks are data: queries over the syntax tree (`data/queries/routes`) find where routers are made, mounted and imported, where
blocks add a prefix, and where routes stand; `data/routes.toml` says which files they are asked of, and where a file's place is its
route. This module follows the prefixes from router to router and from file to file where both names are written out. What is
computed at run time stays unseen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink.ingest.analyze.tree import Finding, Tree, join_words, load_table, make_finding, unique
from bethink.ingest.symbols import SourceText, find_matches, parse_source
from bethink.types import Entity

if TYPE_CHECKING:
    from tree_sitter import Node

# Bounds on how much is told, set by hand.
PER_FINDING = 15  # routes told together
MOST = 14
MOST_ROUTES = 2_000
MOST_PER_FILE = 600
OVERVIEW = 25  # routes from which on an overview helps
DEEPEST = 6  # routers in routers that are followed
NAMED = ("keyword_argument", "element_value_pair", "pair")
METHODS = "GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS"


class Route(NamedTuple):
    method: str  # "GET", "GET, POST", "ANY", or "" where the framework decides it elsewhere
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
    target: str = ""  # what is mounted, as written
    method: str = ""
    handler: str = ""
    line: int = 0


class RouteFile:
    """What one file says."""

    def __init__(self, file: str, text: str, language: str, rules: Mapping[str, Any]) -> None:
        self.file, self.code, self.rules = file, text, rules
        self.source, _ = parse_source(text, language)
        self.routers: dict[str, list[RoutePart]] = {}
        self.imports: dict[str, tuple[str, str]] = {}  # name → module, name there
        self.mounts: list[RoutePart] = []
        self.blocks: list[RoutePart] = []
        self.routes: list[RoutePart] = []
        for query in rules["queries"]:
            for settings, nodes, _ in find_matches(f"routes/{query}", self.source):
                if len(self.routes) < MOST_PER_FILE:
                    _READERS[settings["role"]](self, Call(nodes, self.source))

    @property
    def framework(self) -> str:
        return next((name for word, name in self.rules["frameworks"] if word in self.code), "")


Parents = dict[
    tuple[str, str], tuple[str, RoutePart]
]  # (file, router) → (file, how it is mounted there)


def analyze(tree: Tree) -> Iterator[Finding]:
    by_framework: dict[str, list[Route]] = {}
    for route in find_routes(tree):
        by_framework.setdefault(route.framework, []).append(route)
    made: list[Finding] = []
    for framework, found in by_framework.items():
        if len(found) > OVERVIEW:
            yield _describe_all(framework, found)
        made += [_describe_group(framework, group) for group in _group_routes(found)]
    yield from made[:MOST]


def find_routes(tree: Tree) -> list[Route]:
    """Every route once, in the order of files and lines."""
    rows = load_table("routes")
    found = list(_find_by_place(tree, rows["by_place"]))
    known = {route.file for route in found}
    groups: dict[str, dict[str, RouteFile]] = {}
    for language, row in rows["language"].items():
        family = row.get("like", language)
        rules = {**rows["language"][family], **row}
        for file in tree.find_suffixed(*row["suffixes"]):
            if file not in known and re.search(rules["hint"], tree.text(file)):
                read = RouteFile(file, tree.text(file), language, rules)
                groups.setdefault(family, {})[file] = read
    for group in groups.values():
        found += _resolve(tree, group)
    # A route that two patterns found counts once, with the method if one of them knows it.
    found.sort(key=lambda route: not route.method)
    once = {route[1:5]: route for route in reversed(found)}
    return sorted(once.values(), key=lambda route: (route.file, route.line))[:MOST_ROUTES]


# Reading one file


class Call:
    """The nodes of one match, and the arguments of its call by place and by name; those in an object count as named."""

    def __init__(self, nodes: Mapping[str, Node], source: SourceText) -> None:
        self.nodes, self.source = nodes, source
        self.placed: list[Node] = []
        self.named: dict[str, Node] = {}
        for child in nodes["args"].named_children if "args" in nodes else ():
            pairs = child.named_children if child.type in ("object", "dictionary") else [child]
            for pair in pairs:
                key = pair.child_by_field_name("key") or pair.child_by_field_name("name")
                value = pair.child_by_field_name("value")
                if key and value and pair.type in NAMED:
                    self.named[source.text_of(key).strip("'\":")] = value
                elif pair.type == "shorthand_property_identifier":
                    self.named[source.text_of(pair)] = pair
                elif pair is child and child.type != "comment":
                    self.placed.append(pair)

    def text(self, name: str) -> str:
        return self.source.text_of(self.nodes[name]) if name in self.nodes else ""

    def literal(self, node: Node | None) -> str | None:
        """What a string literal or a symbol says; None for anything else."""
        text = self.source.text_of(node) if node else ""
        match = re.fullmatch(r"[rRuU]{0,2}([\"'`])([^\n]{0,200}?)\1|:(\w{1,80})", text)
        if not match:
            return None
        value = match[3] if match[1] is None else match[2]
        return re.sub(r"\$\{[^}]{0,80}\}", "{…}", value) if match[1] == "`" else value

    @property
    def first(self) -> str | None:
        return self.literal(self.placed[0]) if self.placed else None

    def option(self, *keys: str) -> Node | None:
        return next((self.named[key] for key in keys if key in self.named), None)

    def prefix(self) -> str | None:
        return self.literal(self.option("prefix", "url_prefix", "basePath"))

    def paths(self) -> list[str]:
        """The paths of a route: its first argument or the one of that name; an array in an annotation has several."""
        node = self.placed[0] if self.placed else self.option("path", "value", "rule", "url")
        several = node.named_children if node and node.type.endswith("initializer") else [node]
        return [path for one in several if (path := self.literal(one)) is not None][:6]

    def handler(self, node: Node) -> str:
        """`views.UserList.as_view()` is `views.UserList`, `wrap(list)` is `list`; a function without a name is inline."""
        text = self.source.text_of(node)[:400]
        name = node.child_by_field_name("name")
        if "func" in node.type or re.search(r"=>|\bfunc(?:tion)?\b", text):
            return self.source.text_of(name) if name and "func" in node.type else "inline"
        text = re.sub(r"(?s)(['\"`])[^'\"`\n]*\1|\??\.(?:as_view|bind)\b.*", "", text)
        names: list[str] = re.findall(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*", text)
        return names[-1] if names else "inline"

    def part(self, capture: str, path: str, **more: Any) -> RoutePart:
        node = self.nodes[capture]
        line = self.source.row(node.start_byte) + 1
        more = {"router": self.text("on"), "line": line, **more}
        return RoutePart(node.start_byte, node.end_byte, path, **more)


def _read_router(own: RouteFile, call: Call) -> None:
    prefix = call.first if "on" in call.nodes else call.prefix()
    own.routers.setdefault(call.text("name"), []).append(call.part("name", prefix or ""))


def _read_route(own: RouteFile, call: Call) -> None:
    verb, router, paths = call.text("verb"), call.text("on"), call.paths()
    handler, owner = call.text("handler"), call.text("owner")
    if not handler:
        given = [call.option("handler", "view_func", "endpoint")]
        given += [node for node in call.placed[:0:-1] if call.literal(node) is None]
        # router.route("/users").get(list).post(create)
        if chain := re.match(r"([\w$.]{1,80})\.route\(\s*+['\"`]([^'\"`\n]{1,200})", router):
            router, paths, given = chain[1], [chain[2]], [*call.placed[-1:]]
        handler = next((call.handler(node) for node in given if node), "include")
    known = not router or router in own.routers or re.fullmatch(own.rules["routers"], router)
    if not known or handler == "include":
        # A client's `axios.get("/users")`; no handler, or Django's include("shop.urls"), which is a mount.
        return
    for path in paths if router else paths or [""]:
        # Go 1.22: "GET /users/{id}"
        stated = re.fullmatch(rf"({METHODS})\s+(\S{{1,200}})", path)
        method, path = (stated[1], stated[2]) if stated else (_find_methods(own, call, verb), path)
        path = _plain_pattern(path) if verb in ("re_path", "url") else path
        if not router or not path or path[0] in "/*":
            name = f"{owner}.{handler}" if owner else handler
            own.routes.append(call.part("place", path, router=router, method=method, handler=name))


def _plain_pattern(path: str) -> str:
    """Django's `^archive/(?P<year>[0-9]{4})/$` is `archive/<year>/`."""
    return re.sub(r"[\^$\\]", "", re.sub(r"\(\?P<(\w{1,60})>[^()]{0,80}\)", r"<\1>", path))


def _find_methods(own: RouteFile, call: Call, verb: str) -> str:
    given = call.option("methods", "method")
    if stated := call.text("methods") or (call.source.text_of(given) if given else ""):
        known = re.findall(rf"\b(?:{METHODS})\b", stated.upper())
        return ", ".join(dict.fromkeys(known))
    method: str = own.rules["verbs"].get(verb, verb.removesuffix("Mapping").upper())
    return method


def _read_mount(own: RouteFile, call: Call) -> None:
    placed = call.placed[1:] if call.first is not None else call.placed
    if placed and (call.text("verb") != "route" or call.first):
        target = call.source.text_of(placed[-1 if call.text("verb") == "use" else 0])[:200]
        prefix = call.first if call.first is not None else call.prefix()
        own.mounts.append(call.part("args", prefix or "", target=call.text("target") or target))


def _read_block(own: RouteFile, call: Call) -> None:
    own.blocks.append(call.part("scope", (call.paths() or [""])[0]))


def _read_import(own: RouteFile, call: Call) -> None:
    whole = call.nodes["module"] is call.nodes["name"]
    name = "" if whole else call.text("attribute") or call.text("name")
    own.imports[call.text("name")] = (call.text("module").strip("'\""), name)


def _read_global(own: RouteFile, call: Call) -> None:
    if call.first:
        own.mounts.append(call.part("args", call.first))


def _read_rails_block(own: RouteFile, call: Call) -> None:
    prefix = call.literal(call.named.get("path")) or call.first or ""
    # A collection's routes stand beside the id of the resource around it.
    endings = {"resources": f"{prefix}/:id", "collection": ".."}
    own.blocks.append(call.part("scope", endings.get(call.text("verb"), prefix)))


def _read_rails_route(own: RouteFile, call: Call) -> None:
    verb, first = call.text("verb"), call.first
    options = {key: call.literal(value) or "" for key, value in call.named.items()}
    # `post "login" => "sessions#create"` and `mount Engine => "/path"` name one by the other.
    key, value = next(iter(options.items()), ("", ""))
    if verb == "mount" and first is None:
        key, value = value, key
    path, handler = (key, value) if first is None else (first, first)
    handler = options.get("to") or handler
    via = ", ".join(re.findall(rf"(?i)\b(?:{METHODS})\b", call.text("args")))
    methods = {"match": via.upper() or "ANY", "root": "GET", "mount": ""}
    method = "REST" if verb.startswith("resource") else methods.get(verb, verb.upper())
    path = "" if verb == "root" else f"../{path}" if options.get("on") == "collection" else path
    own.routes.append(call.part("place", path, method=method, handler=handler))


_READERS = {
    "router": _read_router,
    "route": _read_route,
    "mount": _read_mount,
    "scope": _read_block,
    "import": _read_import,
    "global": _read_global,
    "rails_block": _read_rails_block,
    "rails_route": _read_rails_route,
}


def _find_by_place(tree: Tree, rows: Sequence[Mapping[str, Any]]) -> Iterator[Route]:
    """Routes of frameworks in which the place of a file is its path, and what it exports its methods."""
    for row in rows:
        pattern = re.compile(row["file"])
        for file in tree.find_suffixed(".js", ".ts", ".jsx", ".tsx", ".mjs"):
            place, text = pattern.search(file), tree.text(file)
            for export in re.finditer(row["exports"], text) if place else ():
                named = [one for one in METHODS.split("|") if re.search(rf"['\"]{one}['\"]", text)]
                method = export["method"] if "method" in export.groupdict() else ", ".join(named)
                handler = export["handler"] or "handler"
                path = join_paths(re.sub(row["left_out"], "", place[1] if place else ""))
                line = text.count("\n", 0, export.start()) + 1
                yield Route(method, path, handler, file, line, row["framework"])


# Following prefixes


def _resolve(tree: Tree, files: Mapping[str, RouteFile]) -> Iterator[Route]:
    parents: Parents = {}
    everywhere = ""
    for own in files.values():
        for mount in own.mounts:
            if not mount.target:
                everywhere = mount.path
            child = _find_mounted(tree, own, mount.target)
            if child and child != (own.file, mount.router):
                parents.setdefault(child, (own.file, mount))
    named = Counter(filter(None, (own.framework for own in files.values()))).most_common(1)
    for own in files.values():
        framework = own.framework or (named[0][0] if named else own.rules["default"])
        base = everywhere if framework == "NestJS" else ""
        for route in own.routes:
            around = [block for block in own.blocks if block.start < route.start < block.end]
            around.sort(key=lambda block: block.start)
            prefixes = _find_prefixes(own, route.router, route.start, parents, files, around)
            path = join_paths(base, *prefixes, *(block.path for block in around), route.path)
            yield Route(route.method, path, route.handler, own.file, route.line, framework)


def _find_prefixes(
    own: RouteFile,
    router: str,
    at: int,
    parents: Parents,
    files: Mapping[str, RouteFile],
    around: Sequence[RoutePart] = (),
    depth: int = 0,
) -> list[str]:
    """What a router answers below: the groups it was made from, and what it is mounted in."""
    if depth > DEEPEST:
        return []
    made = [one for one in own.routers.get(router, ()) if one.start < at]
    if around and around[0].router and not (made and made[-1].start > around[-1].start):
        # Inside a closure the name stands for a router of its own.
        outer = around[0]
        return _find_prefixes(own, outer.router, outer.start, parents, files, (), depth + 1)
    found = made[-1:] or own.routers.get(router, [])[:1]
    prefix = [one.path for one in found]
    if found and found[0].router:
        group = found[0]
        above = _find_prefixes(own, group.router, group.start, parents, files, (), depth + 1)
        return above + prefix
    mounted = parents.get((own.file, router)) or parents.get((own.file, ""))
    if mounted and mounted[0] in files and (mounted[0], mounted[1].router) != (own.file, router):
        file, mount = mounted
        above = _find_prefixes(
            files[file], mount.router, mount.start, parents, files, (), depth + 1
        )
        return [*above, mount.path, *prefix]
    return prefix


def _find_mounted(tree: Tree, own: RouteFile, target: str) -> tuple[str, str] | None:
    """The file and router that a mounted expression names: in this file, `users.router` of an imported module, an imported
    name, or a module that is named in place. A JavaScript module counts whole, as router `""`."""
    if target in own.routers:
        return own.file, target
    inline = re.match(r"(?:(?:await )?(?:require|import)\()?['\"]([^'\"\n]{1,200})['\"]", target)
    first, _, attribute = target.replace("()", "").partition(".")
    module, name = (inline[1], "") if inline else own.imports.get(first, ("", ""))
    if own.source.language == "python" and not inline:
        if attribute:
            module = f"{module}.{name}" if name and not module.endswith(".") else module + name
        name = attribute or name
    else:
        name = ""
    file = tree.find_module(own.file, module) if module else None
    return (file, name) if file else None


def join_paths(*parts: str) -> str:
    """Prefixes and a path as one path: `/api/` and `users` are `/api/users`, and `..` takes one part back. A trailing slash of
    the last part stays."""
    found: list[str] = []
    for part in "/".join(parts).split("/"):
        found = found[:-1] if part == ".." else [*found, *([part] if part else [])]
    path = "/".join(found)
    slash = "/" if parts and len(parts[-1]) > 1 and parts[-1].endswith("/") and path else ""
    return re.sub(r"\s+", " ", f"/{path}{slash}")[:160]


# What is told


def _group_routes(found: Sequence[Route]) -> list[list[Route]]:
    """So many routes as a finding holds together: those of a file, and of small files beside each other."""
    groups: list[list[Route]] = [[]]
    ordered = sorted(found, key=lambda route: (route.file, route.line))
    for _, several in groupby(ordered, key=lambda route: route.file):
        own = list(several)
        if len(groups[-1]) + len(own) > PER_FINDING:
            groups.append([])
        for route in own:
            if len(groups[-1]) == PER_FINDING:
                groups.append([])
            groups[-1].append(route)
    return [group for group in groups if group]


def _describe_group(framework: str, group: Sequence[Route]) -> Finding:
    files = unique(route.file for route in group)
    first = files[0]
    shown = []
    for route in group:
        place = f"{route.file}:{route.line}" if len(files) > 1 else f"line {route.line}"
        handler = f"{route.handler}, " if route.handler not in ("", "inline") else ""
        shown.append(f"{f'{route.method} {route.path}'.strip()} ({handler}{place})")
    lines = [route.line for route in group if route.file == first]
    top = Counter(filter(None, (_find_subject(route.path) for route in group))).most_common(1)
    handlers = unique(route.handler for route in group if route.handler.isidentifier())
    where = f" in {first}" if len(files) == 1 else ""
    return make_finding(
        first,
        (min(lines), max(lines)),
        "architecture",
        "api-route",
        f"The HTTP API{where} ({framework}) has {join_words(shown, PER_FINDING)}.",
        importance=5.5,
        section=f"API routes › {top[0][0]}" if top else "API routes",
        entities=[
            Entity(framework, "technology"),
            *(Entity(name, "symbol") for name in handlers[:6]),
            *(Entity(file, "file") for file in files[:4]),
        ],
        metadata={"routes": len(group)},
    )


def _find_subject(path: str) -> str:
    """The first segment that tells something: `/api/v1/users/{id}` is about users."""
    idle = re.compile(r"(?:api|rest|v\d+)?|[{:<\[*].*")
    return next((f"/{part}" for part in path.split("/") if not idle.fullmatch(part)), "")


def _describe_all(framework: str, found: Sequence[Route]) -> Finding:
    counts = Counter(_find_subject(route.path) or "/" for route in found)
    files = {_find_subject(route.path) or "/": route.file for route in reversed(found)}
    shown = [f"{segment} ({count}, {files[segment]})" for segment, count in counts.most_common()]
    first = min(found, key=lambda route: (route.file.count("/"), route.file, route.line))
    total = f"{len(found)} routes in {len({route.file for route in found})} files"
    return make_finding(
        first.file,
        first.line,
        "architecture",
        "api-route",
        f"The HTTP API ({framework}) has {total}: {join_words(shown, 15)}.",
        importance=6.5,
        section="API routes › overview",
        entities=[Entity(framework, "technology")],
    )
