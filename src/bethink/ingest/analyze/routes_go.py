"""Routes of Go: net/http (also with the methods of Go 1.22), gin, echo, chi, fiber and gorilla, from text without comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from bethink.ingest.analyze.route import MOST_CALLS, Route, join
from bethink.ingest.analyze.source import arguments, literal, without_comments
from bethink.ingest.analyze.tree import Tree, line_at

_VERB = "GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS|Get|Post|Put|Patch|Delete|Head|Options|Any|All"
_CALL = re.compile(rf"\b(\w{{1,60}})\s*+\.\s*+({_VERB}|HandleFunc|Handle|Method|MethodFunc)\s*+\(")
_GROUP = re.compile(
    r"\b(\w{1,60})\s*+(?::=|=)\s*+(\w{1,60})\s*+\.\s*+(Group|Route|PathPrefix)\s*+\("
)
_SCOPE = re.compile(
    r"\b(\w{1,60})\s*+\.\s*+(Route|Group)\s*+\(\s*+(\"[^\"\n]{0,160}\")\s*+,\s*+func\s*+\(\s*+(\w{1,60})"
)
_FRAMEWORKS = (
    ("gin-gonic/gin", "Gin"),
    ("labstack/echo", "Echo"),
    ("go-chi/chi", "chi"),
    ("gofiber/fiber", "Fiber"),
    ("gorilla/mux", "gorilla/mux"),
    ("net/http", "net/http"),
)


def routes(tree: Tree) -> Iterator[Route]:
    for file in tree.suffixed(".go"):
        raw = tree.text(file)
        framework = next((name for module, name in _FRAMEWORKS if f"{module}" in raw), None)
        if framework is None and not re.search(
            r"\*?(?:gin|echo|chi|fiber|mux)\.\w*(?:Router|Group|Engine|Echo|App)", raw
        ):
            continue
        if _CALL.search(raw):
            yield from _file(file, without_comments(raw, "go"), framework or "Go")


def _file(file: str, text: str, framework: str) -> Iterator[Route]:
    groups: list[tuple[int, str, str, str]] = []  # offset, name, parent, prefix
    for match in islice(_GROUP.finditer(text), MOST_CALLS):
        given = arguments(text, match.end() - 1, "go")
        prefix = literal(given[0].text) if given else None
        if prefix is not None:
            groups.append((match.start(), match[1], match[2], prefix))
    scopes = [
        (match.start(3), _end(text, match), match[4], match[1], literal(match[3]) or "")
        for match in islice(_SCOPE.finditer(text), MOST_CALLS // 4)
    ]

    def prefixes(name: str, at: int, depth: int = 0) -> list[str]:
        """What a router answers below: the closures it stands in, or the groups it was made from."""
        if depth > 6:
            return []
        inner = [scope for scope in scopes if scope[0] < at < scope[1] and scope[2] == name]
        made = [
            group
            for group in groups
            if group[0] < at and group[1] == name and (not inner or group[0] > inner[-1][0])
        ]
        if made:
            offset, _, parent, prefix = made[-1]
            return [*prefixes(parent, offset, depth + 1), prefix]
        if inner:
            start, _, _, parent, prefix = inner[-1]
            return [*prefixes(parent, start - 1, depth + 1), prefix]
        return []

    for match in islice(_CALL.finditer(text), MOST_CALLS):
        given = arguments(text, match.end() - 1, "go")
        verb = match[2]
        method = "" if verb in ("HandleFunc", "Handle") else verb.upper().replace("ALL", "ANY")
        if verb in ("Method", "MethodFunc") and len(given) > 2:
            method, given = (literal(given[0].text) or "").upper(), given[1:]
        path = literal(given[0].text) if len(given) > 1 else None
        if path is None or (verb in ("Method", "MethodFunc") and not method):
            continue
        if stated := re.match(r"([A-Z]{3,7})\s++(\S+)", path):  # Go 1.22: "GET /users/{id}"
            method, path = stated[1], stated[2]
        if not path.startswith("/") and not (path == "" and prefixes(match[1], match.start())):
            continue
        if verb in ("HandleFunc", "Handle"):
            chained = re.compile(r"\s*+\)\s*+\.\s*+Methods\(([^)\n]{1,120})\)").match(
                text, given[-1].offset + len(given[-1].text)
            )
            method = (
                ", ".join(re.findall(r"[A-Z]{3,7}", chained[1].upper().replace("HTTP.METHOD", "")))
                if chained
                else method
            )
        yield Route(
            method,
            join(*prefixes(match[1], match.start()), path),
            _handler(given[-1].text),
            file,
            line_at(text, match.start()),
            framework,
        )


def _end(text: str, match: re.Match[str]) -> int:
    """Where the closure of a scope ends. Braces inside strings are rare enough in routing tables to be ignored."""
    depth, at = 0, text.find("{", match.end())
    if at < 0:
        return match.end()
    for brace in re.compile(r"[{}]").finditer(text, at, at + 60_000):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    return len(text)


def _handler(text: str) -> str:
    if re.fullmatch(r"[\w.]{1,80}(?:\(\))?", text):
        return text.removesuffix("()")
    inner = re.search(r"([A-Za-z_][\w.]{0,80})\s*+\){1,4}$", text)  # what is wrapped stands last
    return "inline" if text.startswith("func") else inner[1] if inner else ""
