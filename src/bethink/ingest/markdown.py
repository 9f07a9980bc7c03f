"""Markdown files → passages: frontmatter, directives, and chunks with the headers above them.

A directive says what is to become of a file. It stands in the frontmatter, or before the first header on a line of its own:
`<!-- vector-index: false -->` (or `index: false`) keeps the file out altogether, wherever it stands; `<!-- bethink: kind=gotcha,
importance=8 -->` says what it is. A wrong value is a warning and holds for nothing; a broken frontmatter is a warning, too, and the
text below it is read all the same.

Files are redacted as a whole before they are cut, because half of a private block does not look private any more.
This module knows no store. How text is cut is for `chunks`, which files are read for `files`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple

from bethink.errors import InvalidInput
from bethink.ingest.chunks import BREAK, Chunk, by_headers, by_lines, outline
from bethink.ingest.files import Found, read_text
from bethink.ingest.redact import redact
from bethink.ingest.sync import Document, Skipped
from bethink.text import check_kind
from bethink.types import Passage

VERSION = 4  # raised when the same file gives other passages, so that everything is read again
LONGEST_FRONTMATTER = 64 * 1024
MOST_BRACKETS = 200  # of frontmatter
LONGEST_COMMENT = 2000
MOST_DIRECTIVES = 1000  # further ones are left in the text
LONGEST_TITLE = 200
LONGEST_TAG = 100
MOST_TAGS = 50
# The kind that the passages of a file are of, by the name of the file or of a folder that it is in. The nearest name counts.
KIND_NAMES = {
    name: kind
    for kind in ("architecture", "component", "domain", "pattern", "gotcha", "decision")
    for name in (kind, f"{kind}s")
} | {
    "pitfalls": "gotcha",
    "adr": "decision",
    "adrs": "decision",
    "discovery": "discovery",
    "discoveries": "discovery",
}
# Where projects keep documentation. It is read like the knowledge folders, unless the setting `knowledge` says what is.
DOCUMENTATION = ("docs", "doc", "documentation", "handbook", "wiki", "site", "notebooks")
# A line of text with a line of one sign below it, and perhaps above it, where the text may be indented.
RST_TITLE = re.compile(
    r"(?m)^(?:([=~^\"'`#*+.:_-])\1{2,}[ \t]*\n[ \t]*)?(\S[^\n]{0,200})\n([=~^\"'`#*+.:_-])\3{2,}[ \t]*$"
)
OTHER_NAMES = dict.fromkeys(("vector-index", "vectorindex", "memory", "memory-mode"), "index")
OTHER_NAMES |= {"category": "kind", "keywords": "tags"}
YES, NO = ("true", "yes", "on"), ("false", "no", "off")
_MARKER = re.compile(r"(\[REDACTED(?::[a-z0-9-]+)?\])")
_UNBROKEN = re.compile(
    r"[!-~]{400,}"
)  # no word, and hardly any address; other scripts do without spaces
# Between two lines `---`; where the first of them is followed by an empty line, it is a rule.
_FRONTMATTER = re.compile(
    r"---[ \t]*(?:\r\n?|\n)(?=[^\r\n]*\S)((?:.*?(?:\r\n?|\n))??)(?:---|\.\.\.)[ \t]*(?:\r\n?|\n|\Z)",
    re.DOTALL,
)
_ALIAS = re.compile(r"(?m)(?:^|[\s\[{,:-])([&*!][\w!])")
# Where a comment goes on with another pair; a comma in a list or a title does not end it.
_NEXT_PAIR = re.compile(
    r"(?i)\n|,(?=[^,:=\n]{1,60}=|\s{0,8}(?:(?:vector[-_]?)?index|memory(?:[-_]mode)?|kind|category|tags|keywords|importance|title)\s{0,8}:)"
)
_BRACKET = re.compile(r"[\[{]")
_KEY = re.compile(r"""["']?[^\W\d][\w .-]{0,60}["']?\s{0,8}:(?:\s|$)""")

Warn = Callable[[str, str], None]


class Page(NamedTuple):
    """A Markdown file taken apart."""

    frontmatter: Mapping[str, Any]
    directives: Mapping[str, Any]  # by one name each: index, kind, tags, importance, title
    title: str
    body: str  # with empty lines in the place of directives
    first_line: int  # of the body
    warnings: tuple[str, ...] = ()


def documents(
    found: Iterable[Found | Skipped],
    style: Literal["headers", "lines"],
    size: int,
    overlap: int,
    warn: Warn | None = None,
) -> Iterator[Document | Skipped]:
    """Reads each file and says what it is; it is taken apart only when its passages are asked for. `warn` is told uri and sentence."""
    manner = f":{style[0]}{VERSION}:{size}:{overlap}"
    for one in found:
        read = one if isinstance(one, Skipped) else read_text(one)
        if isinstance(read, Skipped):
            yield read
        else:
            text, hash = read
            yield Document(
                one.uri,
                hash + manner,
                partial(read_passages, text, one.uri, style, size, overlap, warn),
            )


def read_passages(
    text: str, uri: str, style: str, size: int, overlap: int, warn: Warn | None
) -> list[Passage]:
    """What is remembered of the text of a file, without its secrets."""
    text, warnings = redact_in_place(to_markdown(text, uri))
    page = parse(text)
    found = passages(
        page,
        uri,
        (by_headers if style == "headers" else by_lines)(page.body, size, overlap, page.first_line),
    )
    if uri.endswith(".ipynb"):  # its lines are those of JSON
        found = [passage._replace(lines=None) for passage in found]
    kept = [passage for passage in found if not _is_wordless(passage.content)]
    if len(kept) < len(found):
        number = f"{len(found) - len(kept):,} of {len(found):,} passages"
        warnings.append(f"left out what holds no words: {number} are characters without a space")
    if warn:
        for warning in (*warnings, *page.warnings):
            warn(uri, warning)
    return kept


def to_markdown(text: str, uri: str) -> str:
    """reStructuredText, AsciiDoc and notebooks as Markdown, as far as they resemble it: titles, warnings, code. Every line stays where
    it was, except a notebook's. Other files are Markdown already."""
    if uri.endswith(".rst"):
        text = RST_TITLE.sub(partial(_rst_title, []), text)
        text = re.sub(r"(?m)^(?:~{3,}|`{3,})[ \t]*$", "---", text)  # would begin code
        return re.sub(r"(?m)^\.\. (\w{1,20})::", r"!!! \1", text)
    if uri.endswith(".adoc"):
        text = re.sub(r"(?m)^={1,6}(?= \S)", lambda mark: "#" * len(mark[0]), text)
        return re.sub(r"(?m)^(?:-{4,80}|\.{4,80})[ \t]*$", "```", text)
    return _read_notebook(text) if uri.endswith(".ipynb") else text


def _rst_title(styles: list[tuple[bool, str]], found: re.Match[str]) -> str:
    """A title of reStructuredText as one of Markdown. Its level is the place of its style, the sign below and whether there is
    a line above it, in the order in which a file uses them."""
    style = (bool(found[1]), found[3])
    if style not in styles:
        styles.append(style)
    above = "\n" if found[1] else ""
    return f"{above}{'#' * min(styles.index(style) + 1, 6)} {found[2]}\n"


def _read_notebook(text: str) -> str:
    """The text and the code of a notebook, without what the code printed."""
    try:
        cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return "\n\n".join(said if kind == "markdown" else f"```\n{said}\n```" for kind, said in cells)


def _is_wordless(text: str) -> bool:
    """Whether nearly all of a text is data, such as an image that is written out: no question would ever find it."""
    return sum(len(found) for found in _UNBROKEN.findall(text)) > 0.95 * len(text)


def parse(text: str) -> Page:
    """Takes the text of a file apart. Accepts every string."""
    fields, first, body, warnings = _read_frontmatter(text)
    directives, wrong = _read_directives(fields, "frontmatter")
    warnings += wrong
    known = outline(body)
    header = known.headings[0].line if known.headings else len(known.starts)
    pieces, at = [], 0
    for line, (start, end), pairs in islice(_find_comments(body), MOST_DIRECTIVES):
        where = f"line {line + first}"
        values, wrong = _read_directives(pairs, where, "bethink" in pairs)
        warnings += wrong
        pieces += [body[at:start], re.sub(r"[^\r\n]", " ", body[start:end])]
        at = end
        if line < header or not values.get("index", True):
            directives = _merge(directives, values)
        else:
            warnings.append(
                f"{where}: a directive holds for the whole file and stands before its first header"
            )
    title = directives.get("title") or next(
        (heading.title for heading in known.headings if heading.level == 1), ""
    )
    body = "".join((*pieces, body[at:]))
    return Page(fields, directives, title, body, first, tuple(warnings))


def passages(page: Page, uri: str, chunks: Sequence[Chunk]) -> list[Passage]:
    """What is remembered of a file."""
    said = page.directives
    if not said.get("index", True):
        return []
    found: list[Passage] = []
    for chunk in chunks:
        text, overlap = chunk.text.strip(), chunk.overlap.strip()
        if not any(character.isalnum() for character in text):
            continue  # a rule, an ornament, nothing at all
        # Empty lines at its ends do not count.
        first = chunk.lines[0] + len(BREAK.findall(chunk.text.partition(text)[0]))
        found.append(
            Passage(
                content=f"{overlap}\n\n{text}" if overlap else text,
                kind=said.get("kind", find_kind(uri)),
                importance=said.get("importance"),
                tags=said.get("tags", ()),
                section=_find_heading(page, chunk.title) or PurePosixPath(uri).stem,
                lines=(first, first + len(BREAK.findall(text))),
                metadata={"chunk": chunk.index, "overlap": len(overlap)},
            )
        )
    return found


def _find_heading(page: Page, title: str) -> str:
    """The headers above a passage, below the title that the file gives itself where that is not the first of them."""
    own = page.directives.get("title", "")
    if not own or not title:
        return title or page.title
    return title if title.split(" > ")[0].casefold() == own.casefold() else f"{own} > {title}"


def find_kind(uri: str) -> str:
    """The kind of memory that the place of a file stands for. Documentation is written for readers: of it only records of decisions
    say by their place what they are."""
    path = PurePosixPath(uri.casefold())
    names = (path.stem, *reversed(path.parts[:-1]))
    kind = next((KIND_NAMES[name] for name in names if name in KIND_NAMES), "document")
    return kind if path.parts[0] not in DOCUMENTATION or kind == "decision" else "document"


def redact_in_place(text: str) -> tuple[str, list[str]]:
    """A text without secrets and private parts, every line still where it was, and what to say about it."""
    redacted = redact(text)
    if redacted.text == text:
        return text, []
    pieces: list[str] = []
    at = 0
    for part in _MARKER.split(redacted.text):
        where = -1 if _MARKER.fullmatch(part) else text.find(part, at)
        if part and where >= 0:
            pieces.append(
                "\n" * len(BREAK.findall(text, at, where))
            )  # the lines of what was taken out
            at = where + len(part)
        pieces.append(part)
    count = redacted.private + redacted.secrets
    warnings = [f"secrets or private parts were taken out: {count:,}"] if count else []
    if redacted.text.rstrip().endswith("[REDACTED]") and not text.rstrip().casefold().endswith(
        ("</private>", "[redacted]")
    ):
        warnings.append("<private> is opened and not closed, so what follows it was left out")
    return "".join(pieces), warnings


def _read_frontmatter(text: str) -> tuple[dict[str, Any], int, str, list[str]]:
    """The fields between two lines `---`, every value a string, a list or a mapping of strings; the line on which the body begins, the
    body, and warnings. A text between two rules is no frontmatter."""
    import yaml

    match = _FRONTMATTER.match(text, 0, LONGEST_FRONTMATTER)
    if match is None:
        return {}, 1, text, []
    block, warnings = match[1], []
    try:
        # What refers to itself grows without end, what is deep exhausts the stack.
        if _ALIAS.search(block) or len(_BRACKET.findall(block)) > MOST_BRACKETS:
            raise yaml.YAMLError("anchors, aliases, tags and deep nesting are not read")
        fields = yaml.load(block, yaml.BaseLoader) or {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        fields = _read_lines(block)
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        where = f" at line {mark.line + 2}" if mark else ""
        warnings = [f"broken frontmatter{where}: {problem}"]
    if not isinstance(fields, dict):
        return {}, 1, text, []
    first = len(BREAK.findall(match[0])) + 1
    return (
        {str(name): value for name, value in fields.items()},
        first,
        text[match.end() :],
        warnings,
    )


def _read_lines(block: str) -> dict[str, str] | None:
    """The directives of broken frontmatter: a file that says `index: false` means it, however broken the rest. None of a text that
    does not begin like frontmatter."""
    lines = [line for line in block.splitlines() if line.strip() and not line.startswith("#")]
    if not lines or not _KEY.match(lines[0]):
        return None
    pairs = (line.partition(":") for line in lines)
    return {
        name: value.strip().strip("\"'")
        for name, _, value in pairs
        if _normalize(name) in DIRECTIVES and value.strip()
    }


def _find_comments(body: str) -> Iterator[tuple[int, tuple[int, int], dict[str, Any]]]:
    """The HTML comments that are directives: the line, from 0, the place, and what they say."""
    known = outline(body)
    for line, end in known.comments:
        place = known.starts[line], known.starts[end]
        text = body[place[0] : min(place[1], place[0] + LONGEST_COMMENT)].strip()
        whole = text.startswith("<!--") and text.endswith("-->") and text.count("-->") == 1
        if whole and (pairs := _read_pairs(text[4:-3])):
            yield line, place, pairs


def _read_pairs(comment: str) -> dict[str, Any]:
    """`vector-index: false` or `bethink: kind=gotcha, tags=a, b` → names and values; nothing where it is an ordinary comment."""
    found: dict[str, Any] = {}
    head, _, rest = comment.partition(":")
    if head.strip().lower() == "bethink":
        if rest.strip().lower() in (*NO, "ignore"):
            return {"bethink": True, "index": False}
        comment, found = rest, {"bethink": True}
    for piece in filter(str.strip, _NEXT_PAIR.split(comment)):
        name, value = (*re.split("[:=]", piece, maxsplit=1), "")[:2]
        if not found and _normalize(name) not in DIRECTIVES:
            return {}
        found[name.strip()] = value.strip().strip("\"'")
    return found


def _normalize(name: object) -> str:
    plain = str(name).strip().strip("\"'").lower().replace("_", "-")
    return OTHER_NAMES.get(plain, plain)


def _read_directives(
    fields: Mapping[str, Any], where: str, ours: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """The directives among some fields, and a warning for each that cannot be understood. Only where they are meant for us
    is an unknown one a mistake: frontmatter is for everybody."""
    found: dict[str, Any] = {}
    warnings: list[str] = []
    for given, value in fields.items():
        name = _normalize(given)
        if name == "bethink":
            if isinstance(value, Mapping):
                values, wrong = _read_directives(value, where, True)
                found, warnings = _merge(found, values), warnings + wrong
        elif name not in DIRECTIVES:
            warnings += [f"{where}: there is no directive '{given}'"[:200]] if ours else []
        elif value is not None:
            try:
                found = _merge(found, {name: DIRECTIVES[name][0](value)})
            except (InvalidInput, ValueError, OverflowError):
                right = DIRECTIVES[name][1]
                warnings.append(f"{where}: '{given}: {_flatten(value)[:80]}' is not {right}")
    return found, warnings


def _merge(outer: Mapping[str, Any], inner: Mapping[str, Any]) -> dict[str, Any]:
    """What holds where both do: the inner word, and the tags of both."""
    tags = dict.fromkeys((*outer.get("tags", ()), *inner.get("tags", ())))
    return {**outer, **inner, **({"tags": tuple(tags)} if tags else {})}


def _flatten(value: Any) -> str:
    return " ".join(str(value).split())


def _read_switch(value: Any) -> bool:
    plain = str(value).strip().lower()
    if plain not in YES + NO:
        raise ValueError(plain)
    return plain in YES


def _read_kind(value: Any) -> str:
    return check_kind(_flatten(value)) or "document"


def _read_list(value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list) else str(value).strip().strip("[]").split(",")
    if any(isinstance(item, Mapping | list) for item in items) or isinstance(value, Mapping):
        raise ValueError(value)
    words = (_flatten(item).strip("\"'").removeprefix("#")[:LONGEST_TAG].strip() for item in items)
    return tuple(dict.fromkeys(word for word in words if word))[:MOST_TAGS]


def _read_importance(value: Any) -> float:
    number = float(_flatten(value))
    if not 0 <= number <= 10:
        raise ValueError(value)
    return number


def _read_title(value: Any) -> str:
    if isinstance(value, Mapping | list) or not _flatten(value):
        raise ValueError(value)
    return _flatten(value)[:LONGEST_TITLE].strip()


# What directives there are, how each is read, and what it is when it is right.
DIRECTIVES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "index": (_read_switch, "true or false"),
    "kind": (_read_kind, "a kind of memory"),
    "tags": (_read_list, "a list of words"),
    "importance": (_read_importance, "a number from 0 to 10"),
    "title": (_read_title, "a title"),
}
