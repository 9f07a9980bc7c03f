"""Routes of Spring controllers in Java and Kotlin: the mapping of the class, then that of each method."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from bethink.ingest.analyze.route import MOST_CALLS, Route, join
from bethink.ingest.analyze.source import arguments, without_comments
from bethink.ingest.analyze.tree import Tree, line_at

_MAPPING = re.compile(r"@(Request|Get|Post|Put|Patch|Delete)Mapping\b\s*+(\()?")
_CLASS = re.compile(r"\b(?:class|interface)\s++(\w{1,80})")
_METHOD = re.compile(r"\b(?:fun\s++)?([a-z]\w{0,80})\s*+\(")


def routes(tree: Tree) -> Iterator[Route]:
    for file in tree.suffixed(".java", ".kt"):
        text = tree.text(file)
        if "Mapping" in text and "Controller" in text:
            yield from _file(file, without_comments(text, "java"))


def _file(file: str, text: str) -> Iterator[Route]:
    classes = [(match.start(), match[1]) for match in _CLASS.finditer(text)]
    base, controller = "", ""
    for match in islice(_MAPPING.finditer(text), MOST_CALLS):
        given = (
            " , ".join(argument.text for argument in arguments(text, match.end() - 1, "java"))
            if match[2]
            else ""
        )
        paths = _paths(given)
        declared = _declared(text, match.end() - 1 if match[2] else match.end())
        if declared and declared[0] == "class":
            base, controller = (paths or [""])[0], declared[1]
            continue
        owner = next((name for offset, name in reversed(classes) if offset < match.start()), "")
        if owner != controller:
            base, controller = "", owner
        methods = (
            re.findall(r"RequestMethod\.([A-Z]+)", given)
            if match[1] == "Request"
            else [match[1].upper()]
        )
        for path in paths or [""]:
            handler = f"{owner}.{declared[1]}" if declared else owner
            yield Route(
                ", ".join(methods) or "ANY",
                join(base, path),
                handler,
                file,
                line_at(text, match.start()),
                "Spring",
            )


def _paths(given: str) -> list[str]:
    """The literal paths of an annotation: alone, in `value`/`path`, or in braces; not `produces`, `consumes` and the rest."""
    wanted = re.sub(
        r"\b(?:produces|consumes|params|headers|name|method)\s*+=\s*+(?:[\{\[][^}\]]{0,300}[}\]]|\"[^\"\n]{0,200}\"|[\w.]{1,120})",
        "",
        given,
    )
    return re.findall(r"\"([^\"\n]{0,160})\"", wanted)[:6]


def _declared(text: str, at: int) -> tuple[str, str] | None:
    """What the annotation stands on: a class, or a method and its name. Further annotations in between are passed over."""
    rest = text[at : at + 3_000]
    if rest.startswith("("):
        given = arguments(text, at, "java")
        end = given[-1].offset + len(given[-1].text) - at if given else 1
        rest = rest[end:].lstrip().removeprefix(")")
    rest = re.sub(
        r"@\w{1,80}(?:\.\w{1,80})*(?:\s*+\([^()]{0,400}(?:\([^()]{0,200}\)[^()]{0,200}){0,4}\))?",
        "",
        rest,
    )
    head = re.split(r"[{;]", rest, maxsplit=1)[0]
    if found := _CLASS.search(head):
        return "class", found[1]
    found = _METHOD.search(head)
    return ("method", found[1]) if found else None
