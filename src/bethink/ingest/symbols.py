"""Source text → its outline: what is defined where, by tree-sitter.

What stands at the top of a file and inside types is found; function bodies are passed over, except that the functions
within a JavaScript module's functions are named too. A file with syntax errors gives what can be parsed. The walk keeps
its own stack, so nesting of any depth is safe.

What counts as a definition is told by `languages` and `defines`. This module opens no file and knows no passages.
"""

from __future__ import annotations

import re
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink.errors import InvalidInput
from bethink.ingest.comments import comment, docstring, shortened, summary
from bethink.ingest.defines import Defined, Scope, defined
from bethink.ingest.languages import GRAMMARS, Grammar

if TYPE_CHECKING:
    from tree_sitter import Language, Node

SIGNATURE = 300  # characters
VALUE = 120  # characters of a constant and its value
MARK = 80  # a longer decorator or annotation is left out of the signature
MOST = 20_000  # symbols of one file
# The parser reads 10 MB of code in a second, but on some garbage its time grows with the square of the length. It is given the
# text piece by piece, and no more of it once it falls behind this pace: seconds of this thread, then bytes in a second.
PATIENCE, PACE = 0.5, 250_000
PIECE = 2_048
MATCHES = 20_000  # of one query in one file
QUERIES = Path(__file__).parent / "data" / "queries"
UNCLOSED = 1_000  # `<` without `>` in Java or C#, from where on memory grows with the square; in all of java.util no file has 100
NAME = 200  # characters
LOOKED = 8_000  # bytes of a definition that are searched for the end of its signature
VALUES = frozenset(("constant", "field", "variable", "type", "property"))
OVERLOADS = frozenset(("function_signature", "method_signature"))
EXPORTS = frozenset(("export_statement", "ambient_declaration"))
# Macros that C's grammars cannot know: between `class` and its name, and alone on a line. Blanked, so that places stay.
_MACROS = re.compile(
    rb"(?<=class )[A-Z][A-Z0-9_]{2,60}(?:\([^()\n]{0,60}\))?(?=[ \t]+[A-Za-z_][\w:]{0,200}\s*(?:final\s*)?[:{])"
    rb"|(?<=struct )[A-Z][A-Z0-9_]{2,60}(?:\([^()\n]{0,60}\))?(?=[ \t]+[A-Za-z_][\w:]{0,200}\s*(?:final\s*)?[:{])"
    rb"|^[ \t]{0,40}(?:Q_OBJECT|Q_GADGET|\w{0,40}_(?:BEGIN|END)_DECLS|\w{1,40}_NAMESPACE_(?:BEGIN|END))[ \t]*$",
    re.MULTILINE,
)
_SPOKEN = re.compile(
    rb"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)'", re.DOTALL
)  # comments and strings
_TRAILING = re.compile(r"[ \t;,)]{0,80}((?://|#|/\*).{0,600})")


class Symbol(NamedTuple):
    """Something that is defined in a source file."""

    name: str
    kind: str  # class, interface, struct, enum, trait, function, method, constant, field, type, module, macro …
    signature: str  # on one line, without the body
    lines: tuple[int, int]
    doc: str = ""
    parent: str = ""  # qualified name of what it stands in
    depth: int = 0


class Outline(NamedTuple):
    symbols: list[Symbol]
    doc: str = ""  # what the file says of itself


class Look(NamedTuple):
    """A node whose children are to be looked at."""

    node: Node
    scope: Scope
    outer: Node | None = None  # the wrapper that the definition within begins with
    comments: tuple[Node, ...] = ()


def read(text: str, language: str) -> list[Symbol]:
    """The symbols of a source text, in the order of the text."""
    return outline(text, language).symbols


@cache
def _language(language: str) -> Language:
    import importlib

    grammar = GRAMMARS[language]
    try:
        from tree_sitter import Language

        module = importlib.import_module(grammar.module)
    except ImportError:
        raise InvalidInput(
            "The code map needs tree-sitter, which is not installed.", "pip install 'bethink[code]'"
        ) from None
    return Language(getattr(module, grammar.function)())


def _patient(data: bytes) -> Callable[[int, object], bytes]:
    """Hands the parser its text, and an early end when it falls behind."""
    until = time.thread_time() + PATIENCE
    return lambda at, _: data[at : at + PIECE] if time.thread_time() < until + at / PACE else b""


class Source(NamedTuple):
    """A text being read."""

    language: str
    grammar: Grammar
    data: bytes
    breaks: array[int]  # where its line breaks are

    def text(self, start: int, end: int) -> str:
        return self.data[start:end].decode("utf-8", "replace")

    def row(self, at: int) -> int:
        """The line of a place, from 0. Not asked of the nodes: reading `Point.row` damages memory in tree-sitter 0.26.0."""
        return bisect_left(self.breaks, at)

    def text_of(self, node: Node) -> str:
        return self.text(node.start_byte, node.end_byte)

    def first(self, node: Node) -> int:
        return self.row(node.start_byte)

    def last(self, node: Node) -> int:
        """The line a node ends on. Some grammars count the line break as a part of it."""
        return self.row(max(node.start_byte, node.end_byte - 1))


class Taken(NamedTuple):
    at: int
    symbol: Symbol
    declared: bool  # only announced here: a C prototype, a TypeScript overload


def parse_source(text: str, language: str) -> tuple[Source, Node]:
    """A source text and the root of its syntax tree."""
    grammar = _language(language)
    from tree_sitter import Parser

    source = _source(text, language)
    # A parser of its own: one cannot serve two threads.
    return source, Parser(grammar).parse(_patient(source.data)).root_node


@cache
def _query(name: str, language: str) -> tuple[Any, list[dict[str, str]]]:
    """A query of `data/queries` and the settings of each of its patterns."""
    from tree_sitter import Query

    query = Query(_language(language), (QUERIES / f"{name}.scm").read_text("utf-8"))
    settings = [query.pattern_settings(at) for at in range(query.pattern_count)]
    return query, [{key: str(value) for key, value in one.items()} for one in settings]


def find_matches(
    name: str, language: str, root: Node
) -> Iterator[tuple[dict[str, str], dict[str, Node]]]:
    """What a query finds below a node: the settings of the pattern, and the first node of each capture, in the order of the text.
    Settings stand for predicates, because the text that predicates look at is not kept."""
    from tree_sitter import QueryCursor

    query, settings = _query(name, language)
    found = QueryCursor(query, match_limit=MATCHES).matches(root)
    for pattern, captures in found[:MATCHES]:
        yield settings[pattern], {key: nodes[0] for key, nodes in captures.items() if nodes}


def read_file_doc(text: str, language: str) -> tuple[str, int]:
    """What the beginning of a file says of it, and the line where it says so."""
    source, root = parse_source(text, language)
    doc = _file_doc(root, source)
    begin = doc.split("\n")[0][:20]
    lines = text.split("\n")
    return doc, next((number for number, line in enumerate(lines, 1) if begin in line), 1)


def outline(text: str, language: str) -> Outline:
    """The symbols of a source text and what it says of itself. Never fails on a text, whatever it holds."""
    source, root = parse_source(text, language)
    taken: list[Taken] = []
    looks = [Look(root, Scope())]
    while looks:
        looks += _look(looks.pop(), source, taken)
    taken.sort(key=lambda item: item.at)
    return Outline(_once(taken), _file_doc(root, source))


def _once(taken: list[Taken]) -> list[Symbol]:
    """What is announced and defined in one file counts once, where it is defined, with the documentation of either."""
    docs: dict[tuple[str, str], str] = {}
    bodies = {(item.symbol.parent, item.symbol.name) for item in taken if not item.declared}
    symbols = []
    for item in taken:
        key = (item.symbol.parent, item.symbol.name)
        if item.declared and key in bodies:
            docs[key] = docs.get(key) or item.symbol.doc
        else:
            symbols.append(
                item.symbol if item.symbol.doc else item.symbol._replace(doc=docs.pop(key, ""))
            )
    return symbols


def _source(text: str, language: str) -> Source:
    data = text.removeprefix("\ufeff").encode("utf-8", "replace")
    if language in ("c", "cpp"):
        data = _MACROS.sub(lambda match: b" " * len(match[0]), data)
    elif language in ("java", "csharp") and data.count(b"<") > UNCLOSED:
        bare = _SPOKEN.sub(b"", data)
        data = b"" if bare.count(b"<") - bare.count(b">") > UNCLOSED else data
    return Source(
        language,
        GRAMMARS[language],
        data,
        array("L", (match.start() for match in re.finditer(b"\n", data))),
    )


def _look(look: Look, source: Source, taken: list[Taken]) -> list[Look]:
    """Takes what a node's children define, and says where to look next."""
    grammar, scope, outer = source.grammar, look.scope, look.outer
    further: list[Look] = []
    comments: list[Node] = list(look.comments)
    marks: list[Node] = []
    last = -1  # row on which the child before ended
    for child in look.node.named_children:
        if len(taken) >= MOST:
            return []
        type = child.type
        if type in grammar.comments:
            if source.first(child) != last:
                comments.append(child)
            continue
        if type in grammar.marks:
            if outer is None:
                marks.append(child)
            continue
        last = source.last(child)
        if type in grammar.wrappers:
            inner = scope._replace(exported=True) if type in EXPORTS else scope
            grouped = any(part.type == "(" for part in child.children)
            further.append(Look(child, inner, None if grouped else outer or child, tuple(comments)))
        elif type in grammar.definitions:
            begin = outer or (marks[0] if marks else child)
            for item in defined(child, grammar.definitions[type], scope, source.data):
                within = _take(item, scope, begin, comments, source, taken)
                if item.inner is not None:
                    further.append(Look(item.inner, within))
                if item.kind == "namespace" and child.child_by_field_name("body") is None:
                    scope = within  # it holds for the rest of the file
            outer = (
                None if type == "variable_declarator" else outer
            )  # of several, the first has the keyword
        elif type in grammar.opened or type == "ERROR":
            further.append(Look(child, scope, None, tuple(comments)))
        elif look.outer is not None:
            continue  # the parameters of a template, the name of an ambient module
        comments, marks = [], []
    return further


def _take(
    item: Defined,
    scope: Scope,
    begin: Node,
    comments: list[Node],
    source: Source,
    taken: list[Taken],
) -> Scope:
    """Notes a symbol, and returns the scope of what stands in it."""
    parent, depth = scope.parent, scope.depth
    if item.parent is not None:
        parent, depth = _joined(parent, item.parent, scope, source), depth + 1
    name = item.name[:NAME]
    if not name:
        return Scope(parent, depth, item.inside)
    symbol = Symbol(
        name,
        "constant" if item.kind == "field" and not parent else item.kind,  # C's nameless enums
        _signature(item, begin, source),
        (source.first(begin) + 1, source.last(item.node) + 1),
        _doc(item, begin, comments, source),
        parent,
        depth,
    )
    prototype = item.node.type == "declaration" and item.kind == "function"
    taken.append(Taken(item.node.start_byte, symbol, prototype or item.node.type in OVERLOADS))
    return Scope(_joined(parent, name, scope, source), depth + 1, item.inside)


def _joined(parent: str, name: str, scope: Scope, source: Source) -> str:
    separator = (
        "\\"
        if source.language == "php" and scope.inside in ("", "namespace")
        else source.grammar.separator
    )
    return f"{parent}{separator}{name}" if parent else name


def _signature(item: Defined, begin: Node, source: Source) -> str:
    """From the first decorator to where the body begins, on one line; long decorators and comments are left out."""
    end = max(item.end, begin.start_byte)
    pieces, at = [], begin.start_byte
    for start, stop in _cuts(begin, item.node, end, source):
        pieces.append(source.text(at, start))
        at = max(at, stop)
    pieces.append(source.text(at, min(end, at + LOOKED)))
    text = (
        " ".join(" ".join(pieces).split()).rstrip(" {:;,=\\").removesuffix("=>").rstrip()
        + item.tail
    )
    text = text.replace("( ", "(").replace(" )", ")").replace(",)", ")")
    whole = item.end == item.node.end_byte
    return shortened(text, VALUE if whole and item.kind in VALUES else SIGNATURE)


def _cuts(begin: Node, node: Node, end: int, source: Source) -> list[tuple[int, int]]:
    """The places of comments and of long decorators before the body."""
    grammar = source.grammar
    head = source.data[begin.start_byte : min(end, begin.start_byte + LOOKED)]
    if not (grammar.marks or b"//" in head or b"/*" in head or b"#" in head):
        return []
    found: list[tuple[int, int]] = []
    nodes = [begin, node] if begin.end_byte <= node.start_byte else [begin]
    if begin.type in grammar.marks and begin.end_byte - begin.start_byte > MARK:
        found.append((begin.start_byte, begin.end_byte))
    while nodes:
        for child in nodes.pop().named_children:
            if child.start_byte >= end:
                break
            type = child.type
            if type in grammar.comments or (
                type in grammar.marks and child.end_byte - child.start_byte > MARK
            ):
                found.append((child.start_byte, min(child.end_byte, end)))
            elif child.child_count:
                nodes.append(child)
    return sorted(found)


def _doc(item: Defined, begin: Node, comments: list[Node], source: Source) -> str:
    """What is said about a symbol: its docstring, the comment right above it, or the one behind it on its line."""
    if source.language == "python" and item.kind in ("class", "function", "method"):
        body = item.node.child_by_field_name("body")
        if body is not None and (told := _docstring(body, source)):
            return summary(told)
    row = source.first(begin)
    if (
        comments
        and source.last(comments[-1]) == row - 2
        and source.text(comments[-1].start_byte, comments[-1].start_byte + 3) == "/**"
    ):
        row -= 1  # some leave a line free below such a comment
    # `//!` is about the file.
    about = [
        node for node in comments if source.text(node.start_byte, node.start_byte + 3) != "//!"
    ]
    if told := summary(_said(_adjacent(about, row, source), source)):
        return told
    if item.kind in VALUES or item.kind == "macro":
        at = item.end if item.kind == "macro" else item.node.end_byte
        line_end = source.data.find(b"\n", at, at + 1000)
        trailing = _TRAILING.match(source.text(at, line_end if line_end >= 0 else at + 1000))
        return summary(comment(trailing[1])) if trailing else ""
    return ""


def _said(comments: list[Node], source: Source) -> str:
    return comment("\n".join(source.text(node.start_byte, node.end_byte) for node in comments))


def _docstring(body: Node, source: Source) -> str:
    """The string with which a Python module or body begins."""
    for child in body.named_children:
        if child.type == "comment":
            continue
        literal = child.named_child(0) if child.type == "expression_statement" else child
        if literal is None or literal.type != "string":
            return ""
        return docstring(source.text(literal.start_byte, literal.end_byte))
    return ""


def _adjacent(comments: list[Node], row: int, source: Source) -> list[Node]:
    """The comments that stand right above a row, without a blank line between."""
    near: list[Node] = []
    for node in reversed(comments):
        if not row - 1 <= source.last(node) <= row:
            break
        near.append(node)
        row = source.first(node)
    return near[::-1]


def _file_doc(root: Node, source: Source) -> str:
    """What a file says of itself: its docstring, or the first comment that is neither a licence nor about a definition."""
    grammar = source.grammar
    if source.language == "python" and (told := _docstring(root, source)):
        return summary(told, paragraphs=10)
    leading: list[Node] = []
    for child in root.named_children:
        if child.type in grammar.comments:
            leading.append(child)
        elif (
            child.type in grammar.definitions.keys() | grammar.wrappers | grammar.marks
            and not _directive(child, source)
        ):
            about = _adjacent(leading, source.first(child), source)
            if not any(
                source.text(node.start_byte, node.start_byte + 3) == "//!" for node in about
            ):
                leading = leading[: len(leading) - len(about)]
            break
        elif child.type not in ("php_tag", "hash_bang_line") and not _directive(child, source):
            break
    blocks = (_said(block, source) for block in _blocks(leading, source))
    return next((told for block in blocks if (told := summary(block, paragraphs=10))), "")


def _directive(node: Node, source: Source) -> bool:
    """`"use strict"` and its like, which may stand before what a file says of itself."""
    return source.text(node.start_byte, node.start_byte + 5) in ("'use ", '"use ')


def _blocks(nodes: list[Node], source: Source) -> list[list[Node]]:
    """Comments of one sort that follow each other without a blank line belong together."""
    blocks = [nodes[:1]] if nodes else []
    for before, node in pairwise(nodes):
        marks = {
            source.text(each.start_byte, each.start_byte + 3).strip() for each in (before, node)
        }
        if source.first(node) > source.last(before) + 1 or len(marks) > 1:
            blocks.append([])
        blocks[-1].append(node)
    return blocks
