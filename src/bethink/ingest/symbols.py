"""Source text → its outline: what is defined where, by tree-sitter.

Which nodes define something is data: queries in `data/queries/symbols`, one file a language, listed in `data/languages.toml`. This
module runs them and combines the results: nesting, the end of a signature, the comment that belongs to it. Function
bodies are skipped. A file with syntax errors gives what can be parsed; nesting of any depth is safe, because nothing here recurses.
"""

from __future__ import annotations

import re
import time
import tomllib
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Language, Node

_DATA = Path(__file__).parent / "data"
SIGNATURE = 300  # characters
VALUE = 120  # characters of a constant and its value
_MARK = 80  # a longer decorator or annotation is left out of the signature; a bound
_MOST = 20_000  # symbols of one file
MATCHES = 200_000  # of all queries in one file
_DEEPEST = 500  # nodes in nodes that definitions are looked for in
CROWD = 2_000  # brackets in a row that the parser could make nothing of; twenty times as many take a second
_NAME = 200  # characters
LOOKED = 8_000  # bytes of a definition that are searched for the end of its signature
# The parser reads 10 MB of code in a second, but on some garbage its time grows with the square of the length. It is given the
# text piece by piece, and no more of it once it falls behind this pace: seconds of this thread, then bytes in a second. By hand.
LONGEST_PARSE, PACE = 0.5, 250_000
_PIECE = 2_048
UNCLOSED = 1_000  # `<` without `>` in Java or C#, from where on memory grows with the square; in all of java.util no file has 100
HEAD = 8_192  # characters of a file that tell its language
_VALUES = frozenset("constant field variable type property".split())
CALLABLE = frozenset("function method task".split())
NAMESPACES = frozenset(("namespace", "module"))
_TYPES = "class interface struct enum union trait record annotation delegate concept macro scope"
_KINDS = _VALUES | CALLABLE | NAMESPACES | {*_TYPES.split()}
PREAMBLE = ("php_tag", "hash_bang_line")
_LISTS = frozenset(
    "lexical_declaration variable_declaration const_declaration var_declaration type_declaration".split()
)


class Symbol(NamedTuple):
    """Something that is defined in a source file."""

    name: str
    kind: str  # class, interface, struct, enum, trait, function, method, constant, field, type, module, macro …
    signature: str  # on one line, without the body
    lines: tuple[int, int]
    doc: str = ""
    parent: str = ""  # qualified name of the definition around it
    depth: int = 0


class FileOutline(NamedTuple):
    symbols: list[Symbol]
    doc: str = ""  # documentation of the file


# Languages

TableRow = Mapping[str, Any]


@cache
def load_table(name: str) -> dict[str, Any]:
    """A table of words and patterns that readers of projects are driven by."""
    return tomllib.loads((_DATA / f"{name}.toml").read_text("utf-8"))


@cache
def load_pattern(name: str) -> re.Pattern[str]:
    """A shape in source code of `data/code.toml`."""
    return re.compile("|".join(load_table("code")[name]))


LANGUAGES: Mapping[str, TableRow] = load_table("languages")
_SUFFIXES = {suffix: name for name, row in LANGUAGES.items() for suffix in row["suffixes"].split()}


def language_of(path: str, text: str = "") -> str | None:
    """Return the language of a file by its suffix, or None. A header is C or C++ by its text."""
    suffix = PurePosixPath(path).suffix
    if suffix == ".h" and load_pattern("cpp_only").search(text[:HEAD]):
        return "cpp"
    return _SUFFIXES.get(suffix) or _SUFFIXES.get(suffix.lower())


# Parsing


class SourceFile:
    """A source text with its syntax tree."""

    def __init__(self, text: str, language: str) -> None:
        grammar = _grammar(language)
        from tree_sitter import Parser

        text = text.removeprefix("\ufeff")
        if language in ("c", "cpp"):
            text = load_pattern("macro").sub(lambda match: " " * len(match[0]), text)
        elif language in ("java", "csharp") and text.count("<") > UNCLOSED:
            bare = load_pattern("spoken").sub("", text)
            text = "" if bare.count("<") - bare.count(">") > UNCLOSED else text
        data = text.encode("utf-8", "replace")
        until = time.thread_time() + LONGEST_PARSE

        def read(at: int, _: object) -> bytes:
            """Hand the parser its text, and an early end when it falls behind."""
            return data[at : at + _PIECE] if time.thread_time() < until + at / PACE else b""

        self.language, self.data = language, data
        self.breaks = array("L", (match.start() for match in re.finditer(b"\n", data)))
        # A new parser: one cannot serve two threads.
        self.root = Parser(grammar).parse(read).root_node

    def text(self, start: int, end: int) -> str:
        return self.data[start:end].decode("utf-8", "replace")

    def text_of(self, node: Node) -> str:
        return self.text(node.start_byte, node.end_byte)

    def row(self, at: int) -> int:
        """Return the line of a position, from 0. Reading `Point.row` damages memory in tree-sitter 0.26.0."""
        return bisect_left(self.breaks, at)

    def find_matches(
        self, name: str
    ) -> Iterator[tuple[Mapping[str, str], Mapping[str, Node], int]]:
        """Yield the matches of a query: settings of the pattern, first node of each capture, pattern number.

        A setting named like a capture is a pattern for its text, because the text that predicates look at is not kept.
        """
        from tree_sitter import QueryCursor

        query, settings = _query(name, self.language)
        cursor = QueryCursor(query)
        cursor.set_max_start_depth(_DEEPEST)
        matches = [] if _is_crowded(self.root) else cursor.matches(self.root)
        for number, captures in matches[:MATCHES]:
            nodes = {key: found[0] for key, found in captures.items() if found}
            texts = ((value, nodes.get(key)) for key, value in settings[number].items())
            if all(
                not node or re.fullmatch(value, self.text_of(node)[:2_000]) for value, node in texts
            ):
                yield settings[number], nodes, number


@cache
def _grammar(language: str) -> Language:
    import importlib

    from tree_sitter import Language

    row = LANGUAGES[language]
    module = importlib.import_module(row["module"])
    return Language(getattr(module, row.get("function", "language"))())


@cache
def _query(name: str, language: str) -> tuple[Any, list[dict[str, str]]]:
    """Return a query of `data/queries` and the settings of each of its patterns."""
    from tree_sitter import Query

    query = Query(_grammar(language), (_DATA / "queries" / f"{name}.scm").read_text("utf-8"))
    settings = [query.pattern_settings(at) for at in range(query.pattern_count)]
    return query, [{key: str(value) for key, value in one.items()} for one in settings]


def _is_crowded(root: Node) -> bool:
    """Return True if a tree has so many stray brackets in a row that queries would take quadratic time."""
    return any(
        node.child_count - node.named_child_count >= CROWD
        for node in (root, *root.children)
        if node is root or node.type == "ERROR"
    )


# Reading


class Definition(NamedTuple):
    """A definition, as one match of a query gives it."""

    node: Node
    kind: str
    name: str
    order: int  # of its pattern: the first that fits a node counts
    end: int  # where the signature ends
    closes: int  # where what it encloses ends
    owner: str | None
    holds: bool  # it may contain others
    settings: Mapping[str, str]


class CommentBlock(NamedTuple):
    """Comments on separate lines that follow each other without a blank line."""

    start: int
    end: int
    sign: str  # how its last comment begins


class Enclosing(NamedTuple):
    """The definitions that are open around a place."""

    end: int
    name: str = ""  # of the nearest definition
    kind: str = "module"
    depth: int = -1
    hidden: bool = False  # definitions inside are skipped


def outline(text: str, language: str) -> FileOutline:
    """Return the symbols and the documentation of a source text. Never fails on a text."""
    return OutlinedFile(text, language).outline()


class OutlinedFile(SourceFile):
    """The definitions that the queries of a language find in a file."""

    def __init__(self, text: str, language: str) -> None:
        super().__init__(text, language)
        self.rules = LANGUAGES[language]
        self.definitions: list[Definition] = []
        nodes: defaultdict[str, dict[tuple[int, int], Node]] = defaultdict(dict)  # by their places
        for number, name in enumerate(self.rules.get("queries", [language])):
            for settings, captures, pattern in self.find_matches(f"symbols/{name}"):
                for capture, node in captures.items():
                    nodes[capture][node.start_byte, node.end_byte] = node
                    if capture in _KINDS:
                        self._define(capture, captures, settings, number * 1_000 + pattern)
        # Parts that are skipped: bodies of functions, arguments.
        self.opaque = nodes["opaque"].keys() - nodes["open"].keys()
        above = ((doc.parent.parent if doc.parent else None, doc) for doc in nodes["doc"].values())
        # Docstrings by where their block begins.
        self.docs = {block.start_byte if block else 0: doc for block, doc in above}
        self.comments, self.marks = sorted(nodes["comment"]), sorted(nodes["mark"])
        long = (place for place in self.marks if place[1] - place[0] > _MARK)
        self.left_out = sorted((*self.comments, *long))  # what no signature shows
        self.blocks = self._join_comments()
        # By the line right below each; `//!` is about the file, and some leave a line free below `/** … */`.
        self.above = {
            self.row(block.end - 1) + free: block
            for block in self.blocks
            if block.sign != "//!"
            for free in range(3 if block.sign == "/**" else 2)
        }

    def outline(self) -> FileOutline:
        taken: list[Symbol] = []
        begins: set[int] = set()
        for definition, parent, kind, depth in islice(self._nest(), _MOST):
            begin = self._find_begin(definition)
            begins.add(begin)
            # Some grammars count the line break as a part of a node.
            last = max(definition.node.start_byte, definition.node.end_byte - 1)
            symbol = Symbol(
                definition.name[:_NAME],
                kind,
                self._make_signature(definition, kind, begin),
                (self.row(begin) + 1, self.row(last) + 1),
                self._find_doc(definition, kind, begin),
                parent,
                depth,
            )
            taken.append(symbol)
        return FileOutline(taken, self._find_file_doc(begins))

    def _define(
        self, kind: str, captures: Mapping[str, Node], settings: Mapping[str, str], order: int
    ) -> None:
        """Notes what a match defines, if it does."""
        node, owner = captures[kind], None
        if "declarator" in captures:
            declared = load_pattern("declared").match(
                _bare(self.text_of(captures["declarator"])[:1_000])
            )
            if not declared:
                return
            owner, name = declared[1].removesuffix("::") or None, " ".join(declared[2].split())
            function = "yes" if declared[3] else "no"
            fits = settings.get("callable", function) == function
            if not fits or not re.fullmatch(settings.get("named", ".*"), name):
                return
        else:
            name = " ".join(self.text_of(captures["name"])[:1_000].split()).strip("'\"`:$ ")
            if kind in ("class", "struct", "scope", "type", "interface"):
                name = _bare(name)
        if "owner" in captures and settings.get("owned") != "no":
            owner = _bare(self.text_of(captures["owner"])).removesuffix(".prototype")
        until, body = captures.get("until"), captures.get("body")
        end = until.end_byte if until else body.start_byte if body else node.end_byte
        closes = len(self.data) + 1 if "rest" in settings else node.end_byte
        holds = body is not None or kind not in _VALUES | {"macro"}
        if name:
            one = Definition(node, kind, name, order, end, closes, owner, holds, settings)
            self.definitions.append(one)

    def _nest(self) -> Iterator[tuple[Definition, str, str, int]]:
        """Yield the definitions that count, each with the name of its parent, its kind there, and its depth."""
        joint = self.rules.get("joined", self.rules.get("separator", "."))
        seen: set[tuple[int, int, str]] = set()
        around = [Enclosing(len(self.data) + 2)]
        # An enclosing definition comes before its members; the first pattern that fits a node counts.
        events: list[tuple[int, int, int, Definition | None]] = [
            (one.node.start_byte, -one.closes, one.order, one) for one in self.definitions
        ]
        events += [(start, -end, MATCHES * 9, None) for start, end in self.opaque]
        for start, closes, _, definition in sorted(events, key=lambda event: event[:3]):
            while around[-1].end <= start:
                around.pop()
            holder = around[-1]
            if definition is None:
                around.append(holder._replace(end=-closes, hidden=True))
                continue
            name, kind, owned = definition.name, definition.kind, definition.owner is not None
            key = (start, definition.node.end_byte, name)
            place = "top" if holder.kind in NAMESPACES else "type"
            if key in seen or holder.hidden or definition.settings.get("within", place) != place:
                continue
            seen.add(key)
            parent = joint.join(filter(None, (holder.name, definition.owner)))
            depth = holder.depth + 1 + owned
            if kind in ("function", "method"):
                inside = holder.kind not in NAMESPACES | CALLABLE
                kind = "method" if owned or inside else "function"
            elif kind == "field" and not parent:  # of C's nameless enums
                kind = "constant"
            if definition.holds:
                whole = joint.join(filter(None, (parent, name)))
                around.append(Enclosing(-closes, whole, kind, depth, holder.hidden))
            if kind != "scope":
                yield definition, parent, kind, depth

    def _find_begin(self, definition: Definition) -> int:
        """Return the start of a definition, with its wrapper (export, template, decorator) or its marks."""
        node, wrappers = definition.node, self.rules.get("wrappers", "").split()
        begin = node.start_byte
        for _ in range(8):
            above = node.parent
            if above is None or above.type not in wrappers:
                break
            # The first of several in one statement has the keyword; in brackets none has it.
            between = self.data[above.start_byte : begin]
            if above.type in _LISTS and not re.fullmatch(rb"\w+\s+", between):
                break
            node, begin = above, above.start_byte
        for at in range(bisect_left(self.marks, (begin, 0)) - 1, -1, -1):
            start, end = self.marks[at]
            if self.data[end:begin].strip():
                break
            begin = start
        return begin

    def _make_signature(self, definition: Definition, kind: str, begin: int) -> str:
        """Return the text from the first decorator to the body, on one line, without comments.

        Long decorators are left out, too.
        """
        end = max(definition.end, begin)
        low, high = (bisect_left(self.left_out, (at, 0)) for at in (begin, end))
        pieces, at = [], begin
        for start, stop in self.left_out[low:high]:
            pieces.append(self.text(at, start))
            at = max(at, min(stop, end))
        pieces.append(self.text(at, min(end, at + LOOKED)))
        text = " ".join(" ".join(pieces).split()).rstrip(" {:;,=\\").removesuffix("=>").rstrip()
        if "tail" in definition.settings:
            text += f" {definition.name}"
        text = text.replace("( ", "(").replace(" )", ")").replace(",)", ")")
        whole = definition.end == definition.node.end_byte
        return shorten(text, VALUE if whole and kind in _VALUES else SIGNATURE)

    def _find_doc(self, definition: Definition, kind: str, begin: int) -> str:
        """Return the documentation of a symbol: its docstring, the comment above it, or the one on its line."""
        body = definition.node.child_by_field_name("body")
        if body is not None and body.start_byte in self.docs:
            return summarize_comment(self.text_of(self.docs[body.start_byte]))
        above = self.above.get(self.row(begin))
        if above and (summary := summarize_comment(self.text(above.start, above.end))):
            return summary
        if kind not in _VALUES and kind != "macro":
            return ""
        at = definition.end if kind == "macro" else definition.node.end_byte
        line = self.text(at, at + 1000).partition("\n")[0]
        trailing = load_pattern("trailing").match(line)
        return summarize_comment(trailing[1]) if trailing else ""

    def _join_comments(self) -> list[CommentBlock]:
        blocks: list[CommentBlock] = []
        for start, end in self.comments:
            if self.data[self.data.rfind(b"\n", 0, start) + 1 : start].strip():
                continue  # it is after code
            # `//!` is about the file, `/**` about what follows.
            sign = re.match(r"//[/!]?|/\*{1,2}|#?", self.text(start, start + 3))[0]  # type: ignore[index]
            before = blocks[-1] if blocks else None
            if before and before.sign == sign and self.row(start) <= self.row(before.end - 1) + 1:
                start = blocks.pop().start
            blocks.append(CommentBlock(start, end, sign))
        return blocks

    def _find_file_doc(self, begins: set[int]) -> str:
        """Return the documentation of a file: its docstring, or its first comment.

        A licence does not count, nor a comment about a definition.
        """
        doc = self.docs.get(self.root.start_byte) or self.docs.get(0)
        if doc and (summary := summarize_comment(self.text_of(doc), 10)):
            return summary
        comments = {start for start, _ in self.comments}
        first = len(self.data)
        above = None  # the comment about the first definition
        for child in self.root.named_children:
            start = child.start_byte
            directive = self.text(start, start + 5) in ("'use ", '"use ')
            if start not in comments and not directive and child.type not in PREAMBLE:
                first = start
                above = self.above.get(self.row(first)) if first in begins else None
                break
        leading = (one for one in self.blocks if one.start < first and one != above)
        docs = (summarize_comment(self.text(one.start, one.end), 10) for one in leading)
        return next(filter(None, docs), "")


def _bare(name: str) -> str:
    """Return a type's name without its arguments: `Cache[K, V]` → Cache, `Foo<T<U>>` → Foo."""
    for _ in range(8):
        name = re.sub(r"<[^<>]*>|\[[^\[\]]*\]", "", name)
    return name.strip("*& ")


# The text of a comment or docstring, without its marks: `/** … */`, `///`, `#`, Javadoc and XML tags, pragmas, licences. A mark that means
# nothing in one language is taken off all the same.

LONGEST_DOC = 600  # characters of documentation that are kept
READ_COMMENT = 8_000  # characters of a comment that are looked at
# Replacements for markup in a comment.
REPLACED = {"inline": r"\1", "doxygen_word": "", "reference": r"\1", "markup": " "}


def _strip_marks(raw: str) -> str:
    """Return the text of a docstring, or of one or more comments, line by line."""
    lines: Iterable[str]
    if quotes := load_pattern("quotes").match(raw):
        lines = map(str.strip, raw[quotes.end() :].removesuffix(quotes[1]).splitlines())
    else:
        bare = (line.rstrip().removesuffix("*/").rstrip() for line in raw.splitlines())
        stripped = (load_pattern("mark").sub("", line, count=1) for line in bare)
        lines = (line for line in stripped if not load_pattern("pragma").match(line))
    return "\n".join(load_pattern("ruler").sub(" ", line) for line in lines)


def summarize_comment(raw: str, paragraphs: int = 1) -> str:
    """Return the first paragraphs of a comment or docstring, each on one line, without tags and licences."""
    text = _strip_marks(raw[:READ_COMMENT])
    if load_pattern("licence_text").search(text):
        return ""
    kept: list[str] = []
    for paragraph in re.split(r"\n[ \t]*(?:\n[ \t]*)+|<p>", text):
        line = _plain_comment(paragraph)
        if line and not load_pattern("licence").search(line):
            kept.append(line)
        if len(kept) == paragraphs or (kept and load_pattern("tag").match(paragraph.strip())):
            break
    return shorten("\n".join(kept), LONGEST_DOC)


def _plain_comment(paragraph: str) -> str:
    lines: list[str] = []
    for line in map(str.strip, paragraph.strip().splitlines()):
        bare = load_pattern("lead").sub("", line, count=1)
        if load_pattern("tag").match(bare):
            break
        lines.append(bare)
    text = " ".join(lines)
    for name, kept in REPLACED.items():
        text = load_pattern(name).sub(kept, text)
    return " ".join(text.split())


def shorten(text: str, longest: int) -> str:
    """Cut a text to at most `longest` characters, at a word."""
    if len(text) <= longest:
        return text
    cut = text.rfind(" ", longest // 2, longest - 1)
    return text[: cut if cut > 0 else longest - 1].rstrip() + "…"


def find_sentence(text: str) -> str:
    """Return the first sentence of a text."""
    end = re.search(r"[.!?](?=\s|$)", text)
    return text[: end.end()] if end else text.split("\n")[0]
