"""Routes of Express, Koa, Fastify, Hono, Nest, Next and SvelteKit, from source text without its comments.

A call counts only on what is known or plainly named as a router, with a literal path and a handler, so that a client's
`axios.get("/users")` is none. Prefixes are followed through `use`, `register` and `route`, also into other files.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from bethink.ingest.analyze.route import METHODS, MOST_CALLS, Route, join
from bethink.ingest.analyze.source import Argument, arguments, literal, without_comments
from bethink.ingest.analyze.tree import Tree, folder_of, line_at

SUFFIXES = (".js", ".ts", ".mjs", ".cjs", ".mts", ".cts", ".jsx", ".tsx")
_VERB = r"get|post|put|patch|delete|del|all|head|options"
_CALL = re.compile(
    rf"([A-Za-z_$][\w$]{{0,60}})\s{{0,20}}\.\s{{0,4}}({_VERB})\s{{0,4}}(?:<[^<>()]{{0,120}}>)?\("
)
_ROUTER = re.compile(
    r"(?:const|let|var)\s++([A-Za-z_$][\w$]{0,60})\s*+(?::\s*+[\w.<>, ]{1,80})?=\s*+(?:await\s++)?(?:new\s++)?"
    r"(express\.Router|express|Router|KoaRouter|fastify|Fastify|Hono|OpenAPIHono|polka|restify\.createServer"
    r"|require\(['\"]express['\"]\)(?:\.Router)?)\s*+(?:<[^<>()]{0,200}>)?\("
)
_NAMED = re.compile(
    r"(?:app|router|server|api|fastify|routes?|instance|\w{1,40}(?:Router|Routes|Api|App))\Z"
)
_IMPORT = re.compile(
    r"import\s++(?:\*\s++as\s++)?(?:([A-Za-z_$][\w$]{0,60})\s*+,?\s*+)?(?:\{([^}]{0,600})\})?\s*+from\s*+['\"](\.[^'\"\n]{0,200})['\"]"
    r"|(?:const|let|var)\s++(?:([A-Za-z_$][\w$]{0,60})|\{([^}]{0,600})\})\s*+=\s*+require\(\s*+['\"](\.[^'\"\n]{0,200})['\"]\s*+\)"
)
_MOUNT = re.compile(r"\b([A-Za-z_$][\w$]{0,60})\s*+\.\s*+(use|register|route)\s*+\(")
_NEST_CONTROLLER = re.compile(r"@Controller\s*+\(")
_NEST_METHOD = re.compile(r"@(Get|Post|Put|Patch|Delete|All|Head|Options)\s*+\(")
_FRAMEWORKS = (
    ("@nestjs", "NestJS"),
    ("fastify", "Fastify"),
    ("koa", "Koa"),
    ("hono", "Hono"),
    ("express", "Express"),
    ("restify", "restify"),
)


class Reading(NamedTuple):
    file: str
    text: str
    own: dict[str, str]  # router → its own prefix
    imports: dict[str, str]  # name → file
    mounts: list[tuple[str, str, str]]  # router or file, prefix, router that takes it in


def routes(tree: Tree) -> Iterator[Route]:
    readings: dict[str, Reading] = {}
    nest: list[tuple[str, str]] = []
    globally = ""
    for file in tree.suffixed(*SUFFIXES):
        text = tree.text(file)
        if file_route := _file_route(file):
            yield from _exported(file, without_comments(text, "javascript"), *file_route)
        elif "@Controller" in text:
            nest.append((file, without_comments(text, "javascript")))
        elif _CALL.search(text) or _MOUNT.search(text):
            readings[file] = _read(tree, file, without_comments(text, "javascript"))
        if found := re.search(r"\.setGlobalPrefix\(\s*+['\"`]([^'\"`\n]{1,80})", text):
            globally = found[1]
    for file, text in nest:
        yield from _nest(file, text, globally)
    parents = _parents(readings)
    for reading in readings.values():
        framework = next(
            (name for word, name in _FRAMEWORKS if word in reading.text), ""
        ) or _framework(tree, readings)
        for router, method, path, handler, offset in _calls(reading):
            whole = join(*_prefixes(reading.file, router, parents, readings), path)
            yield Route(
                method, whole, handler, reading.file, line_at(reading.text, offset), framework
            )


def _framework(tree: Tree, readings: dict[str, Reading]) -> str:
    """What a file that names no framework belongs to: that of the file beside it which does."""
    texts = [reading.text for reading in readings.values()]
    return next(
        (
            name
            for word, name in _FRAMEWORKS
            for text in texts
            if f"'{word}" in text or f'"{word}' in text
        ),
        "Express",
    )


def _read(tree: Tree, file: str, text: str) -> Reading:
    reading = Reading(file, text, {}, {}, [])
    for match in islice(_ROUTER.finditer(text), MOST_CALLS):
        given = arguments(text, match.end() - 1)
        prefix = (
            re.search(r"\bprefix\s*+:\s*+['\"`]([^'\"`\n]{1,120})", given[0].text)
            if given
            else None
        )
        reading.own[match[1]] = prefix[1] if prefix else ""
    for match in _IMPORT.finditer(text):
        target = _module_file(tree, file, match[3] or match[6])
        names = [match[1] or match[4] or ""] + [
            name.split(" as ")[-1].split(":")[-1].strip()
            for name in (match[2] or match[5] or "").split(",")
        ]
        for name in filter(None, names):
            if target:
                reading.imports[name] = target
    for match in islice(_MOUNT.finditer(text), MOST_CALLS):
        given = arguments(text, match.end() - 1)
        if match[2] == "register":
            prefix = (
                re.search(r"\bprefix\s*+:\s*+['\"`]([^'\"`\n]{1,120})", given[1].text)
                if len(given) > 1
                else None
            )
            target, path = (given[0].text if given else ""), prefix[1] if prefix else ""
        else:
            path = literal(given[0].text) or "" if given else ""
            target = given[-1].text if len(given) > 1 or (given and not path) else ""
        inline = re.match(
            r"(?:await\s++)?(?:require|import)\(\s*+['\"](\.[^'\"\n]{0,200})['\"]\s*+\)", target
        )
        found = _module_file(tree, file, inline[1]) if inline else None
        name = (
            found
            or re.sub(r"\.(?:routes|router|default|middleware)\b\(?\)?|\(\)$", "", target).strip()
        )
        if (
            name
            and (found or re.fullmatch(r"[A-Za-z_$][\w$]{0,60}", name))
            and (path.startswith("/") or match[2] != "route")
        ):
            reading.mounts.append((name, path, match[1]))
    return reading


def _module_file(tree: Tree, file: str, target: str) -> str | None:
    base = posixpath.normpath(posixpath.join(folder_of(file), target))
    stem = re.sub(r"\.[cm]?[jt]sx?$", "", base)
    candidates = (
        base,
        *(stem + suffix for suffix in SUFFIXES),
        *(f"{base}/index{suffix}" for suffix in SUFFIXES),
    )
    return next((candidate for candidate in candidates if candidate in tree), None)


def _parents(readings: dict[str, Reading]) -> dict[tuple[str, str], tuple[str, str, str]]:
    """(file, router) → the file, router and prefix it is mounted with. An imported file counts whole, as router `""`."""
    parents: dict[tuple[str, str], tuple[str, str, str]] = {}
    for reading in readings.values():
        for name, prefix, into in reading.mounts:
            child = (
                (name, "")
                if name in readings
                else (reading.imports[name], "")
                if name in reading.imports
                else (reading.file, name)
            )
            if child != (reading.file, into):
                parents.setdefault(child, (reading.file, into, prefix))
    return parents


def _prefixes(
    file: str,
    router: str,
    parents: dict[tuple[str, str], tuple[str, str, str]],
    readings: dict[str, Reading],
) -> list[str]:
    prefixes: list[str] = []
    for _ in range(5):
        prefixes.insert(0, readings[file].own.get(router, "") if file in readings else "")
        found = parents.get((file, router)) or parents.get((file, ""))
        if found is None or (found[0] == file and found[1] == router):
            break
        file, router, prefix = found
        prefixes.insert(0, prefix)
    return prefixes


def _calls(reading: Reading) -> Iterator[tuple[str, str, str, str, int]]:
    """Router, method, path, handler and offset of each route in a file."""
    text = reading.text
    for match in islice(_CALL.finditer(text), MOST_CALLS):
        if (match[1] not in reading.own and not _NAMED.match(match[1])) or text[
            match.start() - 1 : match.start()
        ] == ".":
            continue
        given = arguments(text, match.end() - 1)
        path = literal(given[0].text) if given else None
        if path is not None and path[:1] in ("/", "*", "") and len(given) > 1:
            yield match[1], _method(match[2]), path, _handler(given[-1]), match.start()
    for match in islice(
        re.finditer(r"\b([A-Za-z_$][\w$]{0,60})\s*+\.\s*+route\s*+\(", text), MOST_CALLS
    ):
        given = arguments(text, match.end() - 1)
        if given and given[0].text.startswith("{"):
            method = re.search(
                r"\bmethod\s*+:\s*+(\[[^\]\n]{1,80}\]|['\"]\w{1,10}['\"])", given[0].text
            )
            url = re.search(r"\b(?:url|path)\s*+:\s*+['\"`]([^'\"`\n]{1,160})", given[0].text)
            handler = re.search(r"\bhandler\s*+(?::\s*+([\w$.]{1,80}))?\s*+[,}(]", given[0].text)
            if method and url:
                yield (
                    match[1],
                    ", ".join(re.findall(r"\w+", method[1])).upper(),
                    url[1],
                    (handler[1] or "handler") if handler else "",
                    match.start(),
                )
        elif len(given) == 1 and (path := literal(given[0].text)) is not None:
            yield from _chained(text, match, path)


def _chained(
    text: str, match: re.Match[str], path: str
) -> Iterator[tuple[str, str, str, str, int]]:
    """`router.route("/users").get(list).post(create)`"""
    at = _closing(text, match.end() - 1)
    link = re.compile(rf"\s*+\.\s*+({_VERB})\s*+\(")
    for _ in range(8):
        following = link.match(text, at)
        if not following:
            return
        given = arguments(text, following.end() - 1)
        yield (
            match[1],
            _method(following[1]),
            path,
            _handler(given[-1]) if given else "",
            following.start(1),
        )
        at = _closing(text, following.end() - 1)


def _closing(text: str, opening: int) -> int:
    given = arguments(text, opening)
    end = given[-1].offset + len(given[-1].text) if given else opening + 1
    closing = re.compile(r"[\s,]*\)").match(text, end)
    return closing.end() if closing else end


def _method(verb: str) -> str:
    return {"del": "DELETE", "all": "ANY"}.get(verb, verb.upper())


def _handler(argument: Argument) -> str:
    if named := re.fullmatch(r"[A-Za-z_$][\w$.]{0,80}", argument.text):
        return named[0]
    called = re.match(r"(?:async\s++)?function\s++([\w$]{1,60})", argument.text) or re.fullmatch(
        r"\w{1,40}\(\s*+([\w$.]{1,80})\s*+\)", argument.text
    )
    bound = re.match(r"([\w$.]{1,80})\.bind\(", argument.text)
    return called[1] if called else bound[1] if bound else "inline"


def _nest(file: str, text: str, globally: str) -> Iterator[Route]:
    bases = [
        (match.start(), _decorated(arguments(text, match.end() - 1)))
        for match in _NEST_CONTROLLER.finditer(text)
    ]
    for match in islice(_NEST_METHOD.finditer(text), MOST_CALLS):
        base = next((path for offset, path in reversed(bases) if offset < match.start()), None)
        if base is None:
            continue
        given = arguments(text, match.end() - 1)
        after = text[_closing(text, match.end() - 1) :][:1_500]
        name = re.search(
            r"(?:^|\n)[ \t]*+(?:public\s++|private\s++|protected\s++)?(?:async\s++)?([A-Za-z_$][\w$]{0,60})\s*+\(",
            re.sub(r"@\w+\([^()]{0,400}\)", "", after),
        )
        yield Route(
            _method(match[1].lower()),
            join(globally, base, _decorated(given)),
            name[1] if name else "",
            file,
            line_at(text, match.start()),
            "NestJS",
        )


def _decorated(given: list[Argument]) -> str:
    if not given:
        return ""
    path = re.search(r"\bpath\s*+:\s*+['\"`]([^'\"`\n]{0,160})", given[0].text)
    return literal(given[0].text) or (path[1] if path else "")


def _file_route(file: str) -> tuple[str, str] | None:
    """The framework and path of a file whose place is its route."""
    if match := re.search(r"(?:^|/)app/(.*?)/?route\.[cm]?[jt]sx?$", file):
        return "Next.js", join(re.sub(r"(?:^|/)(?:\([^)/]*\)|@[^/]+)(?=/|$)", "", match[1]))
    if match := re.search(r"(?:^|/)pages/(api(?:/.*)?)\.[cm]?[jt]sx?$", file):
        return "Next.js pages", join(re.sub(r"(?:^|/)index$", "", match[1]))
    if match := re.search(r"(?:^|/)routes/(.*?)/?\+server\.[jt]s$", file):
        return "SvelteKit", join(re.sub(r"(?:^|/)\([^)/]*\)(?=/|$)", "", match[1]))
    return None


def _exported(file: str, text: str, framework: str, path: str) -> Iterator[Route]:
    if framework == "Next.js pages":
        methods = [method for method in METHODS if re.search(rf"['\"]{method}['\"]", text)]
        main = re.search(
            r"export\s++default\s++(?:async\s++)?(?:function\s++)?([A-Za-z_$][\w$]{0,60})?", text
        )
        if main:
            yield Route(
                ", ".join(methods),
                path,
                main[1] or "handler",
                file,
                line_at(text, main.start()),
                "Next.js",
            )
        return
    for match in re.finditer(
        r"(?m)^export\s++(?:async\s++)?(?:function|const|let)\s++(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\b",
        text,
    ):
        yield Route(match[1], path, match[1], file, line_at(text, match.start()), framework)
