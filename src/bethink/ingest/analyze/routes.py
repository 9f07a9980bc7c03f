"""The HTTP interface of a project: its routes with method, path, handler and line, told in a few findings.

Frameworks are data: queries over the syntax tree (`data/queries/routes`) find where routers are made, mounted and imported, where
blocks add a prefix, and where routes stand; `data/routes.toml` says which files they are asked of. This module follows the prefixes
from router to router and from file to file where both names are written out. What is computed at run time stays unseen.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink.ingest.analyze.tree import (
    Finding,
    Tree,
    finding,
    folder_of,
    listed,
    load_table,
    unique,
)
from bethink.ingest.symbols import Source, find_matches, parse_source
from bethink.types import Entity

if TYPE_CHECKING:
    from tree_sitter import Node

PER_FINDING = 15  # routes told together; set by hand, as all of these
MOST = 14
MOST_ROUTES = 2_000
MOST_PER_FILE = 600
SMALL = 5  # routes; files with no more are told together with their neighbours
OVERVIEW = 25  # routes from which on an overview helps
DEEPEST = 6  # routers in routers that are followed
METHODS = "GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS"
_NAMED_TYPES = ("keyword_argument", "element_value_pair", "pair")
_CALLS = ("call", "call_expression")
_DOTTED = ("identifier", "attribute", "member_expression", "selector_expression", "field_access")


class Route(NamedTuple):
    method: str  # "GET", "GET, POST", "ANY", or "" where the framework decides it elsewhere
    path: str
    handler: str
    file: str
    line: int
    framework: str


class Place(NamedTuple):
    """A route before the prefixes of its router are known."""

    router: str
    at: int
    method: str
    path: str
    handler: str
    line: int


class Router(NamedTuple):
    at: int
    parent: str  # the router it is a group of
    prefix: str


class Mount(NamedTuple):
    at: int
    into: str
    prefix: str


class Scope(NamedTuple):
    """A block that adds a prefix to every route in it."""

    start: int
    end: int
    router: str
    prefix: str


class Reading(NamedTuple):
    """What one file says."""

    file: str
    source: Source
    rules: Mapping[str, Any]
    routers: dict[str, list[Router]]
    imports: dict[str, tuple[str, str]]  # name → module, name there
    mounts: list[tuple[str, Mount]]  # what is mounted, as written
    scopes: list[Scope]
    places: list[Place]


Parents = dict[
    tuple[str, str], tuple[str, Mount]
]  # (file, router) → (file, how it is mounted there)


def analyze(tree: Tree) -> Iterator[Finding]:
    by_framework: dict[str, list[Route]] = {}
    for route in find_routes(tree):
        by_framework.setdefault(route.framework, []).append(route)
    made: list[Finding] = []
    for framework, found in by_framework.items():
        if len(found) > OVERVIEW:
            yield _overview(framework, found)
        made += [_describe(framework, group) for group in _groups(found)]
    yield from made[:MOST]


def find_routes(tree: Tree) -> list[Route]:
    """Every route once, in the order of files and lines."""
    readings: dict[str, dict[str, Reading]] = {}
    found: list[Route] = []
    for language, row in load_table("routes").items():
        base = load_table("routes")[row.get("like", language)]
        rules = {**base, **row}
        hint = re.compile(rules["hint"])
        for file in tree.suffixed(*row["suffixes"]):
            if by_place := _route_of_file(file):
                found += _exported_routes(tree, file, *by_place)
            elif hint.search(tree.text(file)) or "@Controller" in tree.text(file):
                group = readings.setdefault(row.get("like", language), {})
                group[file] = _read(file, tree.text(file), language, rules)
    for group in readings.values():
        found += _resolve(tree, group)
    # A route that two patterns found counts once, with the method if one of them knows it.
    once: dict[tuple[str, int, str, str], Route] = {}
    for route in found:
        key = (route.file, route.line, route.path, route.handler)
        if key not in once or not once[key].method:
            once[key] = route
    return list({(*route[:4],): route for route in reversed(once.values())}.values())[::-1][
        :MOST_ROUTES
    ]


# Reading one file


def _read(file: str, text: str, language: str, rules: Mapping[str, Any]) -> Reading:
    source, _ = parse_source(text, language)
    reading = Reading(file, source, rules, {}, {}, [], [], [])
    readers = {
        "router": _add_router,
        "route": _add_route,
        "decorated": _add_route,
        "mount": _add_mount,
        "scope": _add_scope,
        "django": _add_django,
        "import": _add_import,
        "global": _add_global,
        "rails_block": _add_rails_block,
        "rails_route": _add_rails_route,
    }
    for name in rules["queries"]:
        for _, settings, captures in find_matches(f"routes/{name}", source):
            texts = {key: source.text_of(node) for key, node in captures.items()}
            fits = all(
                re.fullmatch(pattern, texts[key])
                for key, pattern in settings.items()
                if key in texts
            )
            if fits and len(reading.places) < MOST_PER_FILE:
                readers[settings["role"]](reading, captures, texts)
    return reading


def _arguments(node: Node | None, source: Source) -> tuple[list[Node], dict[str, Node]]:
    """The arguments of a call by place and by name; those in an object count as named."""
    placed: list[Node] = []
    named: dict[str, Node] = {}
    for child in node.named_children if node else ():
        pairs = child.named_children if child.type in ("object", "dictionary") else [child]
        for pair in pairs if child.type != "comment" else ():
            key = pair.child_by_field_name("key") or pair.child_by_field_name("name")
            value = pair.child_by_field_name("value")
            if pair.type in _NAMED_TYPES and key and value:
                named[source.text_of(key).strip("'\":")] = value
            elif pair.type == "shorthand_property_identifier":
                named[source.text_of(pair)] = pair
            elif pair is child:
                placed.append(pair)
    return placed, named


def _literal(node: Node | None, source: Source) -> str | None:
    """What a string literal or a symbol says; None for anything else."""
    text = source.text_of(node) if node else ""
    match = re.fullmatch(r"[rRuU]{0,2}([\"'`])([^\n]{0,200}?)\1|(:)(\w{1,80})", text)
    if not match:
        return None
    value = match[2] if match[1] else match[4]
    return re.sub(r"\$\{[^}]{0,80}\}", "{…}", value) if match[1] == "`" else value


def _named_literal(named: Mapping[str, Node], source: Source, *keys: str) -> str | None:
    return next((_literal(named[key], source) for key in keys if key in named), None)


def _paths(placed: Sequence[Node], named: Mapping[str, Node], source: Source) -> list[str]:
    """The paths of a route: its first argument or the one of that name; an array in an annotation has several."""
    keys = ("path", "value", "rule", "url")
    node = placed[0] if placed else next((named[key] for key in keys if key in named), None)
    several = node.named_children if node and node.type.endswith("array_initializer") else [node]
    found = (_literal(one, source) for one in several)
    return [path for path in found if path is not None][:6]


def _handler_name(node: Node | None, source: Source) -> str:
    """`views.UserList.as_view()` is `views.UserList`, `wrap(list)` is `list`; a function without a name is inline."""
    for _ in range(DEEPEST):
        if node is None or node.type not in _CALLS:
            break
        function = node.child_by_field_name("function")
        placed, _named = _arguments(node.child_by_field_name("arguments"), source)
        text = source.text_of(function).replace("?.", ".") if function else ""
        if text.endswith((".as_view", ".bind")):
            return text.rpartition(".")[0]
        node = placed[-1] if placed and placed[-1].type in (*_DOTTED, *_CALLS) else function
    text = source.text_of(node) if node else ""
    if re.fullmatch(r"[A-Za-z_$][\w$.]{0,80}", text):
        return text
    name = node.child_by_field_name("name") if node else None
    return source.text_of(name) if name and node and "function" in node.type else "inline"


def _methods(reading: Reading, verb: str, named: Mapping[str, Node], chained: str = "") -> str:
    stated = chained or " ".join(
        reading.source.text_of(named[key]) for key in ("methods", "method") if key in named
    )
    if stated:
        known = re.findall(rf"\b(?:{METHODS})\b", stated.upper().replace("HTTP.METHOD", ""))
        return ", ".join(dict.fromkeys(known))
    plain = verb.removesuffix("Mapping").upper()
    method: str = reading.rules["verbs"].get(verb, plain)
    return method


def _add_router(reading: Reading, nodes: Mapping[str, Node], texts: Mapping[str, str]) -> None:
    placed, named = _arguments(nodes.get("args"), reading.source)
    prefix = _named_literal(named, reading.source, "prefix", "url_prefix", "basePath")
    if "on" in texts:
        prefix = _literal(placed[0], reading.source) if placed else ""
    at = nodes["name"].start_byte
    made = Router(at, texts.get("on", ""), prefix or "")
    reading.routers.setdefault(texts["name"], []).append(made)


def _add_route(reading: Reading, nodes: Mapping[str, Node], texts: Mapping[str, str]) -> None:
    source, verb = reading.source, texts["verb"]
    placed, named = _arguments(nodes.get("args"), source)
    paths, router = _paths(placed, named, source), texts.get("on", "")
    handler = texts.get("handler", "")
    if not handler:
        given = [named[key] for key in ("handler", "view_func", "endpoint") if key in named]
        given = [node for node in (*given, *placed[:0:-1]) if _literal(node, source) is None]
        chain, start = _chain_start(nodes.get("on"), source)
        if start:
            router, paths, given = chain, [start], placed[-1:]
        if not given:
            return
        handler = _handler_name(given[0], source)
    elif "on" not in nodes:
        paths = paths or [""]
        owner = (
            _enclosing_class(nodes["handler"], source)
            if reading.rules["default"] == "Spring"
            else ""
        )
        handler = f"{owner}.{handler}" if owner else handler
    elif not paths:
        return
    pattern = reading.rules.get("routers")
    known = router in reading.routers or not pattern or not nodes.get("on")
    if not known and not re.fullmatch(pattern or "", router):
        return
    chained = source.text_of(nodes["methods"]) if "methods" in nodes else ""
    method = _methods(reading, verb, named, chained)
    line = source.first(nodes["place"]) + 1
    for path in paths:
        # Go 1.22: "GET /users/{id}"
        stated = re.fullmatch(rf"({METHODS})\s+(\S{{1,200}})", path)
        own, path = (stated[1], stated[2]) if stated else (method, path)
        if "on" in nodes and path and path[0] not in "/*":
            continue
        reading.places.append(Place(router, nodes["place"].start_byte, own, path, handler, line))


def _chain_start(node: Node | None, source: Source) -> tuple[str, str]:
    """The router and path of `router.route("/users").get(list).post(create)`."""
    for _ in range(DEEPEST):
        function = node.child_by_field_name("function") if node and node.type in _CALLS else None
        if node is None or function is None or function.type != "member_expression":
            break
        placed, _named = _arguments(node.child_by_field_name("arguments"), source)
        owner, verb = (function.child_by_field_name(field) for field in ("object", "property"))
        if owner and verb and source.text_of(verb) == "route" and placed:
            return source.text_of(owner), _literal(placed[0], source) or ""
        node = owner
    return "", ""


def _enclosing_class(node: Node, source: Source) -> str:
    above: Node | None = node
    while above is not None and above.type != "class_declaration":
        above = above.parent
    name = above.child_by_field_name("name") if above else None
    return source.text_of(name) if name else ""


def _add_mount(reading: Reading, nodes: Mapping[str, Node], texts: Mapping[str, str]) -> None:
    source = reading.source
    placed, named = _arguments(nodes["args"], source)
    prefix = _named_literal(named, source, "prefix", "url_prefix")
    first = _literal(placed[0], source) if placed else None
    if first is not None:
        prefix, placed = first, placed[1:]
    if placed and (texts["verb"] != "route" or first):
        target = source.text_of(placed[-1 if texts["verb"] == "use" else 0])[:200]
        mount = Mount(nodes["args"].start_byte, texts["on"], prefix or "")
        reading.mounts.append((target, mount))


def _add_scope(reading: Reading, nodes: Mapping[str, Node], texts: Mapping[str, str]) -> None:
    placed, named = _arguments(nodes["args"], reading.source)
    prefix = (_paths(placed, named, reading.source) or [""])[0]
    scope = nodes["scope"]
    reading.scopes.append(Scope(scope.start_byte, scope.end_byte, texts.get("on", ""), prefix))


def _add_django(reading: Reading, nodes: Mapping[str, Node], texts: Mapping[str, str]) -> None:
    source = reading.source
    placed, _named = _arguments(nodes["args"], source)
    pattern = _literal(placed[0], source) if len(placed) > 1 else None
    if pattern is None or "urlpatterns" not in source.text(0, len(source.data)):
        return
    if texts["verb"] in ("re_path", "url"):
        pattern = re.sub(r"\(\?P<(\w{1,60})>[^()]{0,80}\)", r"<\1>", pattern)
        pattern = pattern.strip("^$").replace("\\", "")
    included = re.match(r"include\(\s*+\(?\s*+[\"']([\w.]{1,200})[\"']", source.text_of(placed[1]))
    at = nodes["place"].start_byte
    if included:
        reading.mounts.append((f"'{included[1]}'", Mount(at, "", pattern)))
    else:
        line = source.first(nodes["place"]) + 1
        handler = _handler_name(placed[1], source)
        reading.places.append(Place("", at, "", pattern, handler, line))


def _add_import(reading: Reading, nodes: Mapping[str, Node], texts: Mapping[str, str]) -> None:
    module = texts["module"].strip("'\"")
    whole = nodes["module"] is nodes["name"]
    name = "" if whole else texts.get("attribute", texts["name"])
    reading.imports[texts["name"]] = (module, name)


def _add_global(reading: Reading, nodes: Mapping[str, Node], texts: Mapping[str, str]) -> None:
    placed, _named = _arguments(nodes["args"], reading.source)
    prefix = _literal(placed[0], reading.source) if placed else None
    if prefix:
        reading.mounts.append(("", Mount(0, "", prefix)))


# Following prefixes


def _resolve(tree: Tree, readings: Mapping[str, Reading]) -> Iterator[Route]:
    parents: Parents = {}
    everywhere = ""
    for reading in readings.values():
        for target, mount in reading.mounts:
            if not target:
                everywhere = mount.prefix
            child = _mounted(tree, reading, target, readings)
            if child and child != (reading.file, mount.into):
                parents.setdefault(child, (reading.file, mount))
    named = Counter(filter(None, (_framework(reading) for reading in readings.values())))
    for reading in readings.values():
        framework = _framework(reading) or (
            named.most_common(1)[0][0] if named else reading.rules["default"]
        )
        for place in reading.places:
            around = [scope for scope in reading.scopes if scope.start < place.at < scope.end]
            around.sort(key=lambda scope: scope.start)
            prefixes = _prefixes(reading, place.router, place.at, parents, readings, around)
            base = everywhere if framework == "NestJS" else ""
            path = join_paths(base, *prefixes, *(scope.prefix for scope in around), place.path)
            yield Route(place.method, path, place.handler, reading.file, place.line, framework)


def _framework(reading: Reading) -> str:
    text = reading.source.text(0, len(reading.source.data))
    return next((name for word, name in reading.rules["frameworks"] if word in text), "")


def _prefixes(
    reading: Reading,
    router: str,
    at: int,
    parents: Parents,
    readings: Mapping[str, Reading],
    around: Sequence[Scope] = (),
    depth: int = 0,
) -> list[str]:
    """What a router answers below: the groups it was made from, and what it is mounted in."""
    if depth > DEEPEST:
        return []
    made = [one for one in reading.routers.get(router, ()) if one.at < at]
    if around and around[0].router and not (made and made[-1].at > around[-1].start):
        # Inside a closure the name stands for a router of its own.
        return _prefixes(
            reading, around[0].router, around[0].start, parents, readings, (), depth + 1
        )
    own = made[-1:] or reading.routers.get(router, [])[:1]
    found = [own[0].prefix] if own else []
    if own and own[0].parent:
        parent = _prefixes(reading, own[0].parent, own[0].at, parents, readings, (), depth + 1)
        return [*parent, *found]
    mounted = parents.get((reading.file, router)) or parents.get((reading.file, ""))
    if mounted and mounted[0] in readings:
        file, mount = mounted
        if (file, mount.into) != (reading.file, router):
            above = _prefixes(
                readings[file], mount.into, mount.at, parents, readings, (), depth + 1
            )
            return [*above, mount.prefix, *found]
    return found


def _mounted(
    tree: Tree, reading: Reading, target: str, readings: Mapping[str, Reading]
) -> tuple[str, str] | None:
    """The file and router that a mounted expression names: in this file, `users.router` of an imported module, an imported
    name, or a module that is named in place. A JavaScript module counts whole, as router `""`."""
    if target in reading.routers:
        return reading.file, target
    script = reading.source.language not in ("python", "go")
    inline = re.match(r"(?:(?:await )?(?:require|import)\()?['\"]([^'\"\n]{1,200})['\"]", target)
    if inline:
        file = _module_file(tree, reading, inline[1], readings)
        return (file, "") if file else None
    first, _, attribute = re.sub(r"\(\)", "", target).partition(".")
    if first not in reading.imports:
        return None
    module, name = reading.imports[first]
    if script:
        file = _module_file(tree, reading, module, readings)
        return (file, "") if file else None
    whole = f"{module}.{name}" if name and not module.endswith(".") else module + name
    for dotted, variable in ((whole, attribute),) if attribute else ((module, name),):
        if file := _module_file(tree, reading, dotted, readings):
            return file, variable
    return None


def _module_file(
    tree: Tree, reading: Reading, module: str, readings: Mapping[str, Reading]
) -> str | None:
    """The file of a module: a relative path in JavaScript, dotted names in Python. Whether `src/` stands before those is not
    known, so the shortest path that ends so is taken."""
    if reading.source.language != "python":
        if not module.startswith("."):
            return None
        base = posixpath.normpath(posixpath.join(folder_of(reading.file), module))
        stem = re.sub(r"\.[cm]?[jt]sx?$", "", base)
        endings = (".js", ".ts", ".mjs", ".cjs", ".mts", ".jsx", ".tsx")
        candidates = [
            base,
            *(stem + end for end in endings),
            *(f"{base}/index{end}" for end in endings),
        ]
        return next((path for path in candidates if path in tree), None)
    dots = len(module) - len(module.lstrip("."))
    parts = folder_of(reading.file).split("/")
    above = "/".join(parts[: len(parts) - dots + 1]) if dots else ""
    path = "/".join(filter(None, (above, *module.lstrip(".").split("."))))
    fitting = [
        file
        for file in readings
        if path and f"/{file}".endswith((f"/{path}.py", f"/{path}/__init__.py"))
    ]
    return min(fitting, key=len) if fitting else None


def join_paths(*parts: str) -> str:
    """Prefixes and a path as one path: `/api/` and `users` are `/api/users`, and `..` takes one part back. A trailing slash of
    the last part stays."""
    found: list[str] = []
    for part in "/".join(parts).split("/"):
        found = found[:-1] if part == ".." else [*found, *([part] if part else [])]
    path = "/".join(found)
    slash = "/" if parts and len(parts[-1]) > 1 and parts[-1].endswith("/") and path else ""
    return re.sub(r"\s+", " ", f"/{path}{slash}")[:160]


# Frameworks that need more than queries


def _route_of_file(file: str) -> tuple[str, str] | None:
    """The framework and path of a file whose place is its route."""
    if match := re.search(r"(?:^|/)app/(.*?)/?route\.[cm]?[jt]sx?$", file):
        return "Next.js", join_paths(re.sub(r"(?:^|/)(?:\([^)/]*\)|@[^/]+)(?=/|$)", "", match[1]))
    if match := re.search(r"(?:^|/)pages/(api(?:/.*)?)\.[cm]?[jt]sx?$", file):
        return "Next.js pages", join_paths(re.sub(r"(?:^|/)index$", "", match[1]))
    if match := re.search(r"(?:^|/)routes/(.*?)/?\+server\.[jt]s$", file):
        return "SvelteKit", join_paths(re.sub(r"(?:^|/)\([^)/]*\)(?=/|$)", "", match[1]))
    return None


def _exported_routes(tree: Tree, file: str, framework: str, path: str) -> Iterator[Route]:
    text = tree.text(file)
    name = METHODS
    if framework == "Next.js pages":
        name = r"default\s++(?:async\s++)?(?:function\s++)?([A-Za-z_$][\w$]{0,60})?"
        methods = [one for one in METHODS.split("|") if re.search(rf"['\"]{one}['\"]", text)]
        match = re.search(rf"(?m)^export\s++{name}", text)
        if match:
            line = text.count("\n", 0, match.start()) + 1
            yield Route(", ".join(methods), path, match[1] or "handler", file, line, "Next.js")
        return
    exports = re.compile(rf"(?m)^export\s++(?:async\s++)?(?:function|const|let)\s++({METHODS})\b")
    for match in exports.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Route(match[1], path, match[1], file, line, framework)


def _add_rails_block(reading: Reading, nodes: Mapping[str, Node], texts: Mapping[str, str]) -> None:
    placed, named = _arguments(nodes.get("args"), reading.source)
    first = _literal(placed[0], reading.source) if placed else ""
    prefix = _named_literal(named, reading.source, "path") or first or ""
    # A collection's routes stand beside the id of the resource around it.
    endings = {"resources": f"{prefix}/:id", "collection": ".."}
    scope = nodes["scope"]
    prefix = endings.get(texts["verb"], prefix)
    reading.scopes.append(Scope(scope.start_byte, scope.end_byte, "", prefix))


def _add_rails_route(reading: Reading, nodes: Mapping[str, Node], texts: Mapping[str, str]) -> None:
    source, verb = reading.source, texts["verb"]
    placed, named = _arguments(nodes["args"], source)
    options = {key: _literal(value, source) or "" for key, value in named.items()}
    # `post "login" => "sessions#create"` and `mount Engine => "/path"` name one by the other.
    key, value = next(iter(options.items()), ("", ""))
    first = _literal(placed[0], source) if placed else None
    path = first if first is not None else value if verb == "mount" else key
    handler = options.get("to") or (key if verb == "mount" else value if first is None else path)
    via = ", ".join(re.findall(rf"(?i)\b(?:{METHODS})\b", texts["args"])) if verb == "match" else ""
    methods = {"match": via.upper() or "ANY", "root": "GET", "mount": ""}
    method = "REST" if verb.startswith("resource") else methods.get(verb, verb.upper())
    if verb == "root":
        path = ""
    elif options.get("on") == "collection":
        path = f"../{path}"
    at, line = nodes["place"].start_byte, source.first(nodes["place"]) + 1
    reading.places.append(Place("", at, method, path, handler, line))


# What is told


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


def _describe(framework: str, group: Sequence[Route]) -> Finding:
    files = unique(route.file for route in group)
    first = files[0]
    shown = []
    for route in group:
        place = f"{route.file}:{route.line}" if len(files) > 1 else f"line {route.line}"
        handler = f"{route.handler}, " if route.handler not in ("", "inline") else ""
        shown.append(f"{f'{route.method} {route.path}'.strip()} ({handler}{place})")
    lines = [route.line for route in group if route.file == first]
    top = Counter(filter(None, (_segment(route.path) for route in group))).most_common(1)
    handlers = unique(
        route.handler.rpartition(".")[2] for route in group if route.handler.isidentifier()
    )
    where = f" in {first}" if len(files) == 1 else ""
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


def _segment(path: str) -> str:
    """The first segment that tells something: `/api/v1/users/{id}` is about users."""
    idle = re.compile(r"(?:api|rest|v\d+)?|[{:<\[*].*")
    return next((f"/{part}" for part in path.split("/") if not idle.fullmatch(part)), "")


def _overview(framework: str, found: Sequence[Route]) -> Finding:
    counts = Counter(_segment(route.path) or "/" for route in found)
    files = {_segment(route.path) or "/": route.file for route in reversed(found)}
    shown = [f"{segment} ({count}, {files[segment]})" for segment, count in counts.most_common()]
    first = min(found, key=lambda route: (route.file.count("/"), route.file, route.line))
    total = f"{len(found)} routes in {len({route.file for route in found})} files"
    return finding(
        first.file,
        first.line,
        "architecture",
        "api-route",
        f"The HTTP API ({framework}) has {total}: {listed(shown, 15)}.",
        importance=6.5,
        section="API routes › overview",
        entities=[Entity(framework, "technology")],
    )
