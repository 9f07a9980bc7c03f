"""Routes of Flask, FastAPI, Starlette and Django, from the syntax tree. Prefixes are followed from router to router and from
file to file where both names are written out; what is computed at run time stays unseen."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bethink.ingest.analyze.formats import read_python
from bethink.ingest.analyze.route import METHODS, Route, join
from bethink.ingest.analyze.tree import Tree, folder_of

_HINT = re.compile(
    r"\.(?:get|post|put|patch|delete|route|api_route|websocket|add_\w+)\(|\b(?:Route|Mount|path|re_path|url)\("
)
_FRAMEWORK = re.compile(
    r"(?m)^[ \t]*(?:from|import)[ \t]+(?:flask\w*|fastapi\w*|starlette|quart)\b|\b(?:APIRouter|Blueprint|include_router)\b"
)
_VERBS = {method.lower(): method for method in METHODS} | {
    "websocket": "WEBSOCKET",
    "route": "",
    "api_route": "",
}
_DEEPEST = 5
Node = tuple[str, str]  # a file and the name of a router in it


class Place(NamedTuple):
    """A route before the prefixes of its router are known."""

    router: Node
    method: str
    path: str
    handler: str
    line: int


class Reading(NamedTuple):
    """What one file says: its routers' own prefixes, what is mounted where, its routes, and the names it imports."""

    file: str
    frameworks: dict[str, str]
    own: dict[str, str]
    mounts: list[
        tuple[ast.expr, str, str]
    ]  # what is mounted, the prefix, the router that takes it in
    places: list[Place]
    imports: dict[str, tuple[str, str]]  # name → module, attribute


def routes(tree: Tree) -> Iterator[Route]:
    readings: dict[str, Reading] = {}
    urls: dict[str, ast.Module] = {}
    for file in tree.suffixed(".py"):
        text = tree.text(file)
        django = "urlpatterns" in text
        if not (django or _FRAMEWORK.search(text)) or not _HINT.search(text):
            continue  # parsing is what takes time
        module = tree.parse(file, read_python)
        if module is not None and django:
            urls[file] = module
        elif module is not None:
            readings[file] = _read(file, module)
    yield from _served(tree, readings)
    yield from _django(tree, urls)


def _read(file: str, module: ast.Module) -> Reading:
    reading = Reading(file, {}, {}, [], [], {})
    for node in ast.walk(module):
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
            _router(reading, node, node.value)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            _imported(reading, node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call):
                    reading.places.extend(_decorated(file, node, decorator))
        elif isinstance(node, ast.Call):
            _called(reading, node)
    return reading


def _router(reading: Reading, node: ast.Assign | ast.AnnAssign, call: ast.Call) -> None:
    kind = _dotted(call.func).rpartition(".")[2]
    names = [
        _dotted(target)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    framework = {
        "FastAPI": "FastAPI",
        "APIRouter": "FastAPI",
        "Flask": "Flask",
        "Blueprint": "Flask",
        "Starlette": "Starlette",
        "Quart": "Quart",
    }.get(kind)
    if framework:
        for name in names:
            reading.frameworks[name] = framework
            reading.own[name] = _keyword(call, "prefix") or _keyword(call, "url_prefix") or ""
    if (
        kind == "Starlette"
        and (
            listed := next(
                (keyword.value for keyword in call.keywords if keyword.arg == "routes"), None
            )
        )
        is not None
    ):
        reading.places.extend(_starlette(reading.file, listed, "", names[0] if names else ""))


def _imported(reading: Reading, node: ast.Import | ast.ImportFrom) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            reading.imports[alias.asname or alias.name] = (alias.name, "")
        return
    base = (node.module or "").split(".") if node.module else []
    if node.level:
        parents = folder_of(reading.file).split("/")
        base = [part for part in parents[: len(parents) - node.level + 1] if part] + base
    for alias in node.names:
        reading.imports[alias.asname or alias.name] = (".".join(base), alias.name)


def _decorated(
    file: str, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, call: ast.Call
) -> Iterator[Place]:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _VERBS:
        return
    path = _path(call)
    if path is None:
        return
    method = _VERBS[call.func.attr] or ", ".join(_methods(call))
    if isinstance(node, ast.ClassDef):
        verbs = [
            _VERBS[item.name]
            for item in node.body
            if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and item.name in _VERBS
        ]
        method = ", ".join(filter(None, verbs)) or method
    elif call.func.attr == "route" and not method:
        method = "GET"
    yield Place((file, _dotted(call.func.value)), method, path, node.name, call.lineno)


def _called(reading: Reading, call: ast.Call) -> None:
    if (
        isinstance(call.func, ast.Name)
        and call.func.id in ("Route", "WebSocketRoute")
        and len(call.args) >= 2
    ):
        return  # read with the list it stands in, whose prefixes count
    if not isinstance(call.func, ast.Attribute):
        return
    name, router = call.func.attr, (reading.file, _dotted(call.func.value))
    first = call.args[0] if call.args else None
    if name in ("include_router", "register_blueprint", "mount") and call.args:
        target = call.args[1] if name == "mount" and len(call.args) > 1 else call.args[0]
        prefix = (
            _constant(first)
            if name == "mount"
            else _keyword(call, "prefix") or _keyword(call, "url_prefix")
        ) or ""
        reading.mounts.append((target, prefix, router[1]))
    elif name in ("add_url_rule", "add_api_route", "add_route", "add_websocket_route"):
        path = _path(call)
        handler = next(
            (
                keyword.value
                for keyword in call.keywords
                if keyword.arg in ("view_func", "endpoint")
            ),
            None,
        )
        given = [argument for argument in call.args[1:3] if not isinstance(argument, ast.Constant)]
        handler = (
            handler
            if handler is not None and not isinstance(handler, ast.Constant)
            else given[0]
            if given
            else None
        )
        if path is not None and handler is not None:
            reading.places.append(
                Place(
                    router, ", ".join(_methods(call)) or "GET", path, _handler(handler), call.lineno
                )
            )
    elif name == "add_resource" and len(call.args) > 1:
        for argument in call.args[1:]:
            if (path := _constant(argument)) is not None and path.startswith("/"):
                reading.places.append(Place(router, "", path, _handler(call.args[0]), call.lineno))


def _starlette(
    file: str, node: ast.expr, prefix: str, router: str, depth: int = 0
) -> Iterator[Place]:
    for item in node.elts if isinstance(node, ast.List | ast.Tuple) and depth < _DEEPEST else ():
        kind = _dotted(item.func).rpartition(".")[2] if isinstance(item, ast.Call) else ""
        if not isinstance(item, ast.Call) or kind not in ("Route", "WebSocketRoute", "Mount"):
            continue
        path = _path(item)
        nested = next((keyword.value for keyword in item.keywords if keyword.arg == "routes"), None)
        if path is not None and kind == "Mount" and nested is not None:
            yield from _starlette(file, nested, join(prefix, path), router, depth + 1)
        elif path is not None and kind != "Mount":
            given = [
                keyword.value for keyword in item.keywords if keyword.arg == "endpoint"
            ] or item.args[1:2]
            method = "WEBSOCKET" if kind == "WebSocketRoute" else ", ".join(_methods(item)) or "GET"
            yield Place(
                (file, router),
                method,
                join(prefix, path),
                _handler(given[0]) if given else "",
                item.lineno,
            )


def _served(tree: Tree, readings: dict[str, Reading]) -> Iterator[Route]:
    """The routes with the prefixes of everything that their routers are mounted in."""
    parents: dict[Node, tuple[Node, str]] = {}
    for reading in readings.values():
        for target, prefix, into in reading.mounts:
            child = _resolved(reading, target, readings)
            if child and child != (reading.file, into):
                parents.setdefault(child, ((reading.file, into), prefix))
    for reading in readings.values():
        for place in reading.places:
            node, prefixes = place.router, [place.path]
            if node[1] not in reading.own and not place.path.startswith("/"):
                continue  # `@patch("module.name")` and the like
            for _ in range(_DEEPEST):
                prefixes.insert(
                    0, readings[node[0]].own.get(node[1], "") if node[0] in readings else ""
                )
                if node not in parents:
                    break
                node, prefix = parents[node]
                prefixes.insert(0, prefix)
            framework = reading.frameworks.get(place.router[1]) or _framework(
                tree.text(reading.file)
            )
            yield Route(
                place.method, join(*prefixes), place.handler, reading.file, place.line, framework
            )


def _framework(text: str) -> str:
    return next(
        (
            name
            for word, name in (
                ("fastapi", "FastAPI"),
                ("starlette", "Starlette"),
                ("flask", "Flask"),
                ("quart", "Quart"),
            )
            if word in text
        ),
        "Python",
    )


def _resolved(reading: Reading, target: ast.expr, readings: dict[str, Reading]) -> Node | None:
    """The router that an expression names: in this file, `users.router` of an imported module, or an imported name."""
    dotted = _dotted(target)
    if dotted in reading.own:
        return reading.file, dotted
    first, _, attribute = dotted.partition(".")
    if first not in reading.imports:
        return None
    module, name = reading.imports[first]
    candidates = (
        [(f"{module}.{name}" if name else module, attribute)] if attribute else [(module, name)]
    )
    for dotted_module, variable in candidates:
        file = _module_file(dotted_module, readings)
        if file:
            return file, variable
    return None


def _module_file(module: str, files: Iterable[str]) -> str | None:
    """The file of a dotted module. Whether `src/` stands before it is not known, so the shortest path that ends so is taken."""
    path = module.strip(".").replace(".", "/")
    if not path:
        return None
    endings = (f"{path}.py", f"{path}/__init__.py")
    fitting = [
        file
        for file in files
        if any(file == ending or file.endswith(f"/{ending}") for ending in endings)
    ]
    return min(fitting, key=len) if fitting else None


def _django(tree: Tree, urls: dict[str, ast.Module]) -> Iterator[Route]:
    prefixes: dict[str, str] = {}
    raw: list[tuple[str, str, str, int]] = []
    for file, module in urls.items():
        for node in ast.walk(module):
            if not isinstance(node, ast.Call):
                continue
            name = _dotted(node.func).rpartition(".")[2]
            pattern = _constant(node.args[0]) if node.args else None
            if pattern is None or name not in ("path", "re_path", "url", "register"):
                continue
            path = (
                re.sub(r"\(\?P<(\w{1,60})>[^()]{0,80}\)", r"<\1>", pattern)
                .strip("^$")
                .replace("\\", "")
                if name in ("re_path", "url")
                else pattern
            )
            target = node.args[1] if len(node.args) > 1 else None
            if (
                isinstance(target, ast.Call)
                and _dotted(target.func).rpartition(".")[2] == "include"
            ):
                included = _constant(target.args[0]) if target.args else None
                if (
                    included is None
                    and target.args
                    and isinstance(target.args[0], ast.Tuple)
                    and target.args[0].elts
                ):
                    included = _constant(target.args[0].elts[0])
                child = _module_file(included, urls) if included else None
                if child and child != file:
                    prefixes.setdefault(
                        child,
                        join(prefixes.get(file, ""), path) if path else prefixes.get(file, ""),
                    )
            elif target is not None and (
                name != "register" or isinstance(target, ast.Name | ast.Attribute)
            ):
                raw.append((file, path, _handler(target), node.lineno))
    for file, path, handler, line in raw:
        yield Route("", join(prefixes.get(file, ""), path), handler, file, line, "Django")


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (
        ".".join([node.id, *reversed(parts)])
        if isinstance(node, ast.Name)
        else ".".join(reversed(parts))
    )


def _handler(node: ast.expr) -> str:
    """`views.UserList.as_view()` is `views.UserList`; a lambda has no name."""
    while isinstance(node, ast.Call):
        inner = (
            node.args[0]
            if node.args and _dotted(node.func).rpartition(".")[2] != "as_view"
            else None
        )
        node = (
            inner
            if inner is not None and isinstance(inner, ast.Name | ast.Attribute | ast.Call)
            else node.func
        )
    return _dotted(node).removesuffix(".as_view") or "lambda"


def _constant(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _keyword(call: ast.Call, name: str) -> str | None:
    return next(
        (_constant(keyword.value) for keyword in call.keywords if keyword.arg == name), None
    )


def _path(call: ast.Call) -> str | None:
    path = (
        _constant(call.args[0])
        if call.args
        else next(
            (found for name in ("path", "rule") if (found := _keyword(call, name)) is not None),
            None,
        )
    )
    return path if path is not None and (not path or path.startswith("/")) else None


def _methods(call: ast.Call) -> list[str]:
    given = next((keyword.value for keyword in call.keywords if keyword.arg == "methods"), None)
    items = given.elts if isinstance(given, ast.List | ast.Tuple | ast.Set) else []
    return [method.upper() for item in items if (method := _constant(item)) is not None]
